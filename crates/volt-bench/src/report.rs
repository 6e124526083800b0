//! Reports drawn from a record; nothing in them is typed by hand.
#![forbid(unsafe_code)]

pub(crate) mod compare;
pub(crate) mod detail;
pub(crate) mod html;
pub(crate) mod markdown;
pub(crate) mod table;

use crate::record::{Contender, Record, Role, RowResult};
use crate::stats::{self, Estimate, Verdict};

/// Load of other processes from which on a report warns.
pub(crate) const LOAD_WARNING_PERCENT: f64 = 5.0;

/// What a report says of a row in one line.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub(crate) row: &'a RowResult,
    pub(crate) volt: String,
    pub(crate) tokio: String,
    pub(crate) best: String,
    pub(crate) floor: String,
    /// Volt over the best peer, with its interval.
    pub(crate) ratio: String,
    pub(crate) verdict: Option<Verdict>,
}

pub(crate) fn line(row: &RowResult) -> Line<'_> {
    let shown = |contender: Option<&Contender>| contender.map_or_else(|| "-".to_owned(), value_of);
    let named = |contender: Option<&Contender>| {
        contender.map_or_else(|| "-".to_owned(), |c| format!("{} {}", c.name, value_of(c)))
    };
    let standing = row.standing();
    Line {
        row,
        volt: shown(row.volt()),
        tokio: shown(row.named("tokio")),
        best: named(row.best(Role::Peer)),
        floor: named(row.best(Role::Floor)),
        ratio: standing.map_or_else(|| "-".to_owned(), |s| interval(s.ratio)),
        verdict: standing.map(|s| s.verdict),
    }
}

/// The median, or "failed".
pub(crate) fn value_of(contender: &Contender) -> String {
    match (contender.estimate(), &contender.failure) {
        (Some(estimate), None) => number(estimate.median),
        (Some(estimate), Some(_)) => format!("{} (then failed)", number(estimate.median)),
        (None, _) => "failed".to_owned(),
    }
}

/// `0.48 [0.47-0.50]`
pub(crate) fn interval(ratio: Estimate) -> String {
    format!("{} [{}-{}]", short(ratio.median), short(ratio.low), short(ratio.high))
}

fn short(ratio: f64) -> String {
    if ratio < 0.01 {
        format!("{ratio:.4}")
    } else if ratio < 10.0 {
        format!("{ratio:.2}")
    } else {
        format!("{ratio:.0}")
    }
}

/// Three significant digits below a thousand, whole and grouped above.
pub(crate) fn number(value: f64) -> String {
    if value.abs() < 1.0 && value != 0.0 {
        return format!("{value:.3}");
    }
    if value.abs() < 10.0 {
        return format!("{value:.2}");
    }
    if value.abs() < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if value < 0.0 { format!("-{grouped}") } else { grouped }
}

/// The heading of a group.
pub(crate) fn group_title(group: &str) -> &str {
    match group {
        "sync" => "Locks and friends, one thread",
        "channel" => "Channels, one thread",
        "contended" => "Contended, two workers",
        "tasks" => "Tasks, two workers",
        "time" => "Timers",
        "net" => "Sockets, loopback",
        "http" => "HTTP/1.1, hyper, loopback",
        "memory" => "Memory",
        "hogs" => "Latency while others compute",
        "oversubscribed" => "More workers than processors",
        "idle" => "Cost of doing nothing",
        "pool" => "CPU pool, two threads",
        other => other,
    }
}

/// Failures, as `row: contender: reason`.
pub(crate) fn failures(record: &Record) -> Vec<String> {
    let of_row = |row: &RowResult| {
        let id = row.id.clone();
        row.contenders
            .iter()
            .filter_map(|c| c.failure.as_ref().map(|f| format!("{}: {}: {f}", id, c.name)))
            .collect::<Vec<_>>()
    };
    record.rows.iter().flat_map(of_row).collect()
}

/// What makes the record worth less, in sentences.
pub(crate) fn warnings(record: &Record) -> Vec<String> {
    let mut warnings = Vec::new();
    let load = record.load();
    if load.others_percent > LOAD_WARNING_PERCENT {
        warnings.push(format!(
            "Other processes used {:.0} % of the processors during the run: intervals are wider for it, and rows with \
             several threads are the most distorted. Run again on a quiet machine.",
            load.others_percent
        ));
    }
    if load.stolen_percent > 1.0 {
        warnings.push(format!(
            "The hypervisor took {:.0} % of the processors' time.",
            load.stolen_percent
        ));
    }
    if record.profile != "release" {
        warnings.push("This is a debug build: its numbers mean nothing.".to_owned());
    }
    if !record.complete {
        warnings.push("The run was not finished.".to_owned());
    }
    if record.handicapped {
        warnings.push("Volt was slowed on purpose (VOLT_BENCH_SLOW).".to_owned());
    }
    warnings
}

/// What a cache line took between the processors, over all rounds: the median, and the extremes of the rows' medians.
fn transfer(record: &Record) -> String {
    let known = |row: &RowResult| row.transfer_ns.iter().flatten().copied().collect::<Vec<_>>();
    let all: Vec<f64> = record.rows.iter().flat_map(known).collect();
    let rows: Vec<f64> = record.rows.iter().filter_map(|row| stats::median(&known(row))).collect();
    let extreme = |fold: fn(f64, f64) -> f64| rows.iter().copied().reduce(fold).map(number);
    match (stats::median(&all), extreme(f64::min), extreme(f64::max)) {
        (Some(median), Some(least), Some(most)) => format!(
            "; a cache line from one processor to another takes {} ns (in rows {least} to {most})",
            number(median)
        ),
        _ => String::new(),
    }
}

/// A line on the machine and the run.
pub(crate) fn circumstances(record: &Record) -> String {
    let m = &record.machine;
    let rounds = record.rows.iter().flat_map(|row| &row.contenders).map(|c| c.rounds.len());
    let rounds = match rounds.max() {
        Some(most) if most > record.rounds => format!("{} to {most}", record.rounds),
        _ => record.rounds.to_string(),
    };
    format!(
        "{}, {} {}, {} MB, {} {}, rustc {}; source {}; {} run of {:.0} s at {}, {rounds} rounds of {} ms batches; \
         load of others {:.0} %{}.",
        m.cpu,
        m.cpus,
        if m.cpus == 1 { "processor" } else { "processors" },
        m.memory_mb,
        m.os,
        m.kernel,
        m.rustc.split_whitespace().next().unwrap_or("?"),
        record.commit,
        record.mode,
        record.seconds,
        record.started,
        record.batch_ms,
        record.load().others_percent,
        transfer(record),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_groups() {
        for (value, text) in [
            (0.0, "0.00"),
            (0.155, "0.155"),
            (5.5, "5.50"),
            (21.34, "21.3"),
            (178.9, "179"),
            (12_080.4, "12,080"),
            (1_234_567.0, "1,234,567"),
            (-1500.0, "-1,500"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    /// Compares with a committed file; `VOLT_BENCH_BLESS=1` writes it instead.
    pub(crate) fn golden(name: &str, actual: &str) {
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report/golden").join(name);
        if std::env::var_os("VOLT_BENCH_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, actual).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            actual, expected,
            "{name} differs; run with VOLT_BENCH_BLESS=1 and look at the difference"
        );
    }

    #[test]
    fn reports_match_the_golden_files() {
        let record = crate::record::tests::example();
        golden("table.txt", &table::render(&record, false, true));
        golden("report.html", &html::render(&record));
        golden("report.md", &markdown::render(&record, &|_| "it queues"));
        golden("readme.md", &markdown::readme_section(&record));
    }

    #[test]
    fn warnings_name_load_debug_builds_and_unfinished_runs() {
        let mut record = crate::record::tests::example();
        assert!(warnings(&record).is_empty());
        record.profile = "debug".into();
        record.complete = false;
        record.handicapped = true;
        for row in &mut record.rows {
            row.load.others_percent = 40.0;
            row.load.stolen_percent = 3.0;
        }
        assert_eq!(warnings(&record).len(), 5);
    }

    #[test]
    fn html_escapes_what_it_shows_and_loads_nothing() {
        let html = html::render(&crate::record::tests::example());
        assert!(html.contains("assertion failed &lt;x&gt;"));
        for forbidden in ["<script", "http://", "https://", "@import", "url("] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
    }
}
