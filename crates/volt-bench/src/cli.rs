//! The command line.
#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::bench::{Bench, Mode, Settings};
use crate::record::Record;
use crate::registry::{self, Row};
use crate::report::markdown;
use crate::{child, run};

/// Measures Volt side by side with its peers and says where it is ahead, even or behind.
///
/// Without arguments: the headline rows, in under three minutes. Exit codes: 0 done, 1 something
/// could not be read or written, 2 wrong arguments, 3 `--fail-behind` found a row, 130 Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "volt-bench", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    run: RunArguments,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArguments {
    /// Short rounds [default]
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,

    /// All rows, longer rounds, and more of them for rows that vary (about half an hour)
    #[arg(long)]
    pub(crate) full: bool,

    /// Only rows whose id contains this; repeatable; takes rows that are not in the quick set as well
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) filter: Vec<String>,

    /// Only these contenders beside Volt (comma-separated)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) contenders: Vec<String>,

    /// Exactly so many rounds for each row
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,

    /// Show the rows and who competes, and measure nothing
    #[arg(long)]
    list: bool,

    /// Show the rows that `count-row` supports
    #[arg(long)]
    list_count: bool,

    /// Write the record here; updated after each row, so that an interrupted run (Ctrl-C) keeps its part
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write a self-contained page here
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Print what Volt's scheduler did as well: polls, steals, parks, wake-ups, ...
    #[arg(long)]
    pub(crate) stats: bool,

    /// Compare Volt with an older record of this command
    #[arg(long, value_name = "OLD.json")]
    pub(crate) compare: Option<PathBuf>,

    /// End with exit code 3 if Volt is behind a row's best peer (or, with --compare, behind the
    /// older record) by more than this, interval considered, or failed in a row
    #[arg(long, value_name = "PERCENT")]
    pub(crate) fail_behind: Option<f64>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Write BENCHMARKS.md and the README's performance section from the newest record
    Render {
        /// Root of the source tree [default: the nearest one above the current directory]
        #[arg(long, value_name = "DIRECTORY")]
        root: Option<PathBuf>,
        /// Only check that both are what the newest record says
        #[arg(long)]
        check: bool,
    },
    /// Print the report of a record (and write the page)
    Show {
        record: PathBuf,
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// As in a run
        #[arg(long)]
        stats: bool,
    },
    /// Run a single-thread row once, for an instruction counter (`--list-count` shows which)
    CountRow {
        row: String,
        iterations: u64,
        #[arg(long, default_value = "volt")]
        contender: String,
    },
    #[command(hide = true)]
    Child(child::Arguments),
}

pub(crate) fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Some(Command::Child(arguments)) => return child::main(&arguments),
        Some(Command::CountRow { row, iterations, contender }) => {
            count_row(&row, iterations, &contender)
        }
        Some(Command::Render { root, check }) => render(root, check),
        Some(Command::Show { record, html, stats }) => show(&record, html.as_deref(), stats),
        None if arguments.run.list => list(&arguments.run),
        None if arguments.run.list_count => list_count(),
        None => run::run(&arguments.run),
    };
    result.unwrap_or_else(|failure| failure.exit())
}

/// The whole command where rows are only counted: `count-row ROW ITERATIONS`, of Volt. What reads more than that takes
/// longer to build than what is counted.
pub(crate) fn count() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let counted = match &arguments[..] {
        [command, row, iterations] if command == "count-row" => iterations
            .parse()
            .map_err(|error| Failure::usage(format!("`{iterations}` iterations: {error}")))
            .and_then(|iterations| count_row(row, iterations, "volt")),
        _ => {
            Err(Failure::usage("built to count, with `count-row ROW ITERATIONS` and nothing else"))
        }
    };
    counted.unwrap_or_else(|failure| failure.exit())
}

/// Why the command ends early.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) code: u8,
}

impl Failure {
    /// The arguments make no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure { message: message.into(), code: 2 }
    }

    fn exit(self) -> ExitCode {
        eprintln!("volt-bench: {}", self.message);
        ExitCode::from(self.code)
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure { message, code: 1 }
    }
}

/// Writes to the standard output. Whoever reads that may have seen enough, and gone: no failure.
pub(crate) fn put(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to the standard output: {e}").into())
        }
        _ => Ok(()),
    }
}

fn list(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let rows =
        registry::select(registry::rows(), &arguments.filter, false).map_err(Failure::usage)?;
    let line = |row: &Row| {
        let names: Vec<&str> = row.contenders.iter().map(|c| c.name).collect();
        let mark = if row.headline { '*' } else { ' ' };
        let title = format!("{} ({})", row.title, row.unit);
        format!("{mark} {:<34} {title:<52} {}\n", row.id, names.join(", "))
    };
    let lines: String = rows.iter().map(line).collect();
    put(&format!("{lines}\n* headline row: part of the quick run\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn list_count() -> Result<ExitCode, Failure> {
    let line = |row: &Row| {
        let names: Vec<&str> = row.contenders.iter().map(|c| c.name).collect();
        format!("{} {}\n", row.id, names.join(","))
    };
    let lines: String = registry::rows().iter().filter(|r| r.countable).map(line).collect();
    put(&lines)?;
    Ok(ExitCode::SUCCESS)
}

fn count_row(row: &str, iterations: u64, contender: &str) -> Result<ExitCode, Failure> {
    let rows = registry::rows();
    let Some(found) = rows.iter().find(|r| r.id == row && r.countable) else {
        let hint = if registry::COUNTED { "" } else { " (`--list-count` shows them)" };
        return Err(Failure::usage(format!("`{row}` is not a row that can be counted{hint}")));
    };
    let Some((_, contender)) = child::find(&rows, row, contender) else {
        let names: Vec<&str> = found.contenders.iter().map(|c| c.name).collect();
        return Err(Failure::usage(format!(
            "`{contender}` is not in `{row}`; there are: {}",
            names.join(", ")
        )));
    };
    let mut bench = Bench::new(Settings {
        mode: Mode::Count,
        iterations: iterations.max(1),
        batch: Duration::ZERO,
        slow: 0,
    });
    (contender.run)(&mut bench);
    let sample = bench.finish();
    put(&format!("{} iterations of {} operations\n", sample.iterations, sample.ops))?;
    Ok(ExitCode::SUCCESS)
}

fn show(path: &Path, html: Option<&Path>, stats: bool) -> Result<ExitCode, Failure> {
    let record = Record::read(path)?;
    let told = put(&crate::report::table::render(&record, run::colour(), stats));
    if let Some(html) = html {
        std::fs::write(html, crate::report::html::render(&record))
            .map_err(|e| format!("cannot write {}: {e}", html.display()))?;
    }
    told?;
    Ok(ExitCode::SUCCESS)
}

fn render(root: Option<PathBuf>, check: bool) -> Result<ExitCode, Failure> {
    let root = match root {
        Some(root) => root,
        None => source_root()
            .ok_or_else(|| "run `render` inside the source tree, or give --root".to_owned())?,
    };
    for line in markdown::write(&root, check)? {
        put(&format!("{line}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The nearest directory upwards that holds the records.
fn source_root() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().find(|d| d.join("crates/volt-bench/records").is_dir()).map(Path::to_path_buf)
}

/// Leaves only Volt and the named contenders; an unknown name is an error.
pub(crate) fn keep_contenders(mut rows: Vec<Row>, names: &[String]) -> Result<Vec<Row>, Failure> {
    if names.is_empty() {
        return Ok(rows);
    }
    for name in names {
        if !rows.iter().flat_map(|r| &r.contenders).any(|c| c.name == name) {
            return Err(Failure::usage(format!(
                "no contender `{name}` in the selected rows (`--list` shows them)"
            )));
        }
    }
    for row in &mut rows {
        row.contenders
            .retain(|c| c.role == crate::record::Role::Volt || names.iter().any(|n| n == c.name));
    }
    rows.retain(|row| row.contenders.iter().any(|c| c.role != crate::record::Role::Volt));
    Ok(rows)
}
