//! A run from selection to exit code.
#![forbid(unsafe_code)]

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::{Failure, RunArguments, keep_contenders, put};
use crate::harness::{self, Plan};
use crate::record::{FORMAT, Record, Role};
use crate::registry::{self, Row};
use crate::report::{self, compare};
use crate::stats::Verdict;
use crate::{child, interrupt, load, machine};

/// Exit code of `--fail-behind`.
const BEHIND: u8 = 3;

/// Exit code after Ctrl-C, as of a shell.
const INTERRUPTED: u8 = 130;

pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let rows = registry::select(registry::rows(), &arguments.filter, !arguments.full)
        .map_err(Failure::usage)?;
    let rows = keep_contenders(rows, &arguments.contenders)?;
    if rows.is_empty() {
        return Err(Failure::usage("no row is left: nobody to compare with"));
    }
    let old = arguments.compare.as_deref().map(Record::read).transpose()?;
    let outputs = Outputs::open(arguments)?;
    let mut plan = if arguments.full { Plan::full() } else { Plan::quick() };
    if let Some(rounds) = arguments.rounds {
        (plan.rounds, plan.long_rounds, plan.patience) = (rounds as usize, rounds as usize, 1);
    }
    interrupt::watch();
    hint_at_load();
    let record = measure(&rows, &plan, arguments.full, &outputs)?;
    let mut report = report::table::render(&record, colour(), arguments.stats);
    report.extend(old.as_ref().map(|old| compare::render(old, &record)));
    let told = put(&report);
    let code = judge(&record, old.as_ref(), arguments.fail_behind);
    // First of all, what was measured is kept.
    outputs.finish(&record)?;
    told?;
    Ok(ExitCode::from(if interrupt::asked() { INTERRUPTED } else { code }))
}

fn measure(rows: &[Row], plan: &Plan, full: bool, outputs: &Outputs) -> Result<Record, Failure> {
    let mut start = harness::Reexec::new()?;
    let began = Instant::now();
    let mut record = Record {
        format: FORMAT,
        started: machine::now(),
        seconds: 0.0,
        mode: if full { "full" } else { "quick" }.to_owned(),
        profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
        commit: machine::commit(),
        complete: false,
        handicapped: child::slowed() > 0,
        rounds: plan.rounds,
        batch_ms: u64::try_from(plan.batch.as_millis()).unwrap_or(u64::MAX),
        machine: machine::facts(),
        versions: machine::versions(),
        rows: Vec::new(),
    };
    let bar = progress(rows.iter().map(|row| plan.steps(row)).sum());
    for (index, row) in rows.iter().enumerate() {
        bar.set_message(row.id);
        if bar.is_hidden() {
            eprintln!("volt-bench: {} of {}: {}", index + 1, rows.len(), row.id);
        }
        let mut planned = plan.steps(row);
        let result = harness::measure(row, plan, &mut start, &mut |_| {
            bar.inc_length(u64::from(planned == 0));
            planned = planned.saturating_sub(1);
            bar.inc(1);
        });
        if interrupt::asked() {
            // The row lacks rounds, and its children may have met the signal.
            break;
        }
        record.rows.push(result);
        record.seconds = began.elapsed().as_secs_f64();
        record.complete = index + 1 == rows.len();
        outputs.keep(&record);
    }
    bar.finish_and_clear();
    Ok(record)
}

/// Looks at the machine before anything is measured, since it is then that one can still wait.
fn hint_at_load() {
    let mark = load::Mark::now();
    std::thread::sleep(Duration::from_millis(300));
    let percent = mark.load().others_percent;
    if percent > report::LOAD_WARNING_PERCENT {
        eprintln!(
            "volt-bench: other processes use {percent:.0} % of the processors; a quiet machine gives narrower intervals"
        );
    }
}

/// On standard error, where that is a terminal (else there is a line for each row); it moves when a child ends, never in
/// between, so that it does not disturb what is measured.
fn progress(steps: u64) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template("{bar:32} {percent:>3} %  about {eta} left  {msg}")
        .expect("the template is valid");
    ProgressBar::with_draw_target(Some(steps), target)
        .with_style(style)
        .with_elapsed(Duration::ZERO)
}

/// Whether standard output shows colours.
pub(crate) fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// The exit code: what `--fail-behind` asks for, with the reasons on standard error.
fn judge(record: &Record, old: Option<&Record>, limit: Option<f64>) -> u8 {
    let Some(limit) = limit else { return 0 };
    let mut reasons = Vec::new();
    for row in &record.rows {
        for contender in row.contenders.iter().filter(|c| c.role == Role::Volt) {
            if let Some(failure) = &contender.failure {
                reasons.push(format!("{}: {} failed: {failure}", row.id, contender.name));
            }
        }
        if let Some(standing) = row.standing().filter(|s| s.verdict == Verdict::Behind) {
            let percent = (standing.ratio.low - 1.0) * 100.0;
            if percent > limit {
                reasons.push(format!(
                    "{}: behind {} by {percent:.1} % at least",
                    row.id, standing.other.name
                ));
            }
        }
    }
    for change in old.map(|old| compare::changes(old, record)).unwrap_or_default() {
        let percent = change.regression_percent();
        if percent > limit {
            reasons.push(format!(
                "{}: slower than the older record by {percent:.1} % at least",
                change.row.id
            ));
        }
    }
    for reason in &reasons {
        eprintln!("volt-bench: {reason}");
    }
    if reasons.is_empty() { 0 } else { BEHIND }
}

/// Where the results go.
struct Outputs {
    json: PathBuf,
    html: PathBuf,
}

impl Outputs {
    /// Checks that the files can be written before anything is measured.
    fn open(arguments: &RunArguments) -> Result<Self, Failure> {
        let writable = |path: &Path| {
            let open = std::fs::OpenOptions::new().create(true).append(true).open(path);
            open.map(drop)
                .map_err(|e| Failure::from(format!("cannot write {}: {e}", path.display())))
        };
        for path in [&arguments.json, &arguments.html].into_iter().flatten() {
            writable(path)?;
        }
        let directory = default_directory();
        Ok(Outputs {
            json: arguments.json.clone().unwrap_or_else(|| directory.join("last.json")),
            html: arguments.html.clone().unwrap_or_else(|| directory.join("last.html")),
        })
    }

    /// Keeps what there is so far; a failure here is told at the end.
    fn keep(&self, record: &Record) {
        let _ = replace(&self.json, &record.to_json());
    }

    fn finish(&self, record: &Record) -> Result<(), Failure> {
        let (mut failures, mut written) = (Vec::new(), String::new());
        for (path, text) in
            [(&self.json, record.to_json()), (&self.html, report::html::render(record))]
        {
            match replace(path, &text) {
                Ok(()) => written += &format!("Written: {}\n", path.display()),
                Err(e) => failures.push(rescue(path, &text, &e)),
            }
        }
        let told = put(&written);
        failures.extend(told.err().map(|failure| failure.message));
        if failures.is_empty() { Ok(()) } else { Err(Failure::from(failures.join("\n"))) }
    }
}

/// In cargo's target directory, if the binary is in one, or in the temporary directory.
fn default_directory() -> PathBuf {
    let target =
        std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.parent()?.to_owned()));
    let beside = target.filter(|d| d.join("CACHEDIR.TAG").exists()).map(|d| d.join("volt-bench"));
    let directory = beside.unwrap_or_else(|| std::env::temp_dir().join("volt-bench"));
    if std::fs::create_dir_all(&directory).is_ok() { directory } else { std::env::temp_dir() }
}

/// Writes beside the file, then renames, so that an interruption leaves the old or the new one.
/// What is no regular file (a pipe, /dev/stdout) is written directly.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        return std::fs::write(path, text);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    std::fs::write(&part, text)?;
    std::fs::rename(&part, path)
}

/// The file could not be written after the measurement: keeps the text elsewhere.
fn rescue(path: &Path, text: &str, error: &std::io::Error) -> String {
    let name =
        path.file_name().map_or_else(|| "record".into(), |n| n.to_string_lossy().into_owned());
    let other = std::env::temp_dir().join(format!("volt-bench-{}-{name}", std::process::id()));
    match std::fs::write(&other, text) {
        Ok(()) => format!("cannot write {}: {error}; kept in {}", path.display(), other.display()),
        Err(second) => {
            format!("cannot write {}: {error}, nor {}: {second}", path.display(), other.display())
        }
    }
}
