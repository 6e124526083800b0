//! The child process: runs one contender of one row once and prints what it saw.

use std::process::ExitCode;
use std::time::Duration;

use crate::bench::{Bench, Mode, Settings};
use crate::registry::{self, Row};

/// What stands before the sample in the child's output, since a contender may print as well.
pub(crate) const MARKER: &str = "volt-bench-sample ";

/// Set to N: Volt's operations take N times their time in addition.
pub(crate) const SLOW_VARIABLE: &str = "VOLT_BENCH_SLOW";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    row: String,
    #[arg(long)]
    contender: String,
    #[arg(long)]
    mode: Mode,
    #[arg(long, default_value_t = 1)]
    iterations: u64,
    #[arg(long, default_value_t = 10_000_000)]
    batch_ns: u64,
}

pub(crate) fn main(arguments: &Arguments) -> ExitCode {
    die_with_parent();
    let rows = registry::rows();
    let Some((row, contender)) = find(&rows, &arguments.row, &arguments.contender) else {
        eprintln!("no contender `{}` in row `{}`", arguments.contender, arguments.row);
        return ExitCode::from(2);
    };
    crate::kind::ask_for_workers(row.workers);
    let mut bench = Bench::new(Settings {
        mode: arguments.mode,
        iterations: arguments.iterations.max(1),
        batch: Duration::from_nanos(arguments.batch_ns),
        slow: if contender.role == crate::record::Role::Volt { slowed() } else { 0 },
    });
    (contender.run)(&mut bench);
    let sample = bench.finish();
    if arguments.mode == Mode::Time && sample.value.is_none() {
        eprintln!("row `{}` reported no value", row.id);
        return ExitCode::FAILURE;
    }
    println!("{MARKER}{}", serde_json::to_string(&sample).expect("a sample is plain data"));
    // A contender may leave threads behind that would be joined at exit: what counts is known.
    std::process::exit(0)
}

/// By how much Volt is to be slowed on purpose.
pub(crate) fn slowed() -> u32 {
    std::env::var(SLOW_VARIABLE).ok().and_then(|v| v.parse().ok()).unwrap_or(0)
}

pub(crate) fn find<'a>(
    rows: &'a [Row],
    row: &str,
    contender: &str,
) -> Option<(&'a Row, &'a registry::Contender)> {
    let row = rows.iter().find(|r| r.id == row)?;
    Some((row, row.contenders.iter().find(|c| c.name == contender)?))
}

/// The child is killed when the command is, so that an interrupted run leaves nothing behind.
fn die_with_parent() {
    #[cfg(target_os = "linux")]
    // SAFETY: this `prctl` takes a signal number and touches no memory.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}
