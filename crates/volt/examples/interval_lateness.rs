//! How late the ticks of a 1 ms interval come.
//!
//! ```sh
//! cargo run --release -p volt-rt --example interval_lateness -- [TICKS [current]]
//! ```
//!
//! With `current` on a current-thread runtime, otherwise with two workers.

use std::io::{self, Write};
use std::process::ExitCode;

use volt::runtime::Builder;
use volt::time::{Duration, Instant, MissedTickBehavior, interval};

/// The lateness of `ticks` ticks, in microseconds, sorted.
async fn measure(ticks: usize) -> Vec<f64> {
    let mut interval = interval(Duration::from_millis(1));
    interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
    interval.tick().await;
    let mut late = Vec::with_capacity(ticks);
    for _ in 0..ticks {
        let due = interval.tick().await;
        late.push(Instant::now().duration_since(due).as_secs_f64() * 1e6);
    }
    late.sort_by(f64::total_cmp);
    late
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let ticks = arguments.next().map_or(Ok(2_000), |ticks| ticks.parse::<usize>());
    let flavour = arguments.next();
    let (Ok(ticks @ 1..), None | Some("current"), None) =
        (ticks, flavour.as_deref(), arguments.next())
    else {
        eprintln!("usage: interval_lateness [TICKS [current]]");
        return ExitCode::from(2);
    };
    let runtime = match flavour {
        Some(_) => Builder::new_current_thread().build(),
        None => Builder::new_multi_thread().worker_threads(2).build(),
    };
    let late = match runtime {
        Ok(runtime) => runtime.block_on(async move {
            // A task, so that the worker's path is measured and not `block_on`'s.
            volt::spawn(measure(ticks)).await.expect("the measurement does not panic")
        }),
        Err(error) => {
            eprintln!("cannot start the runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let at = |share: f64| late[((ticks - 1) as f64 * share) as usize];
    let written = writeln!(
        io::stdout(),
        "{ticks} ticks of 1 ms: late by p50 {:.1} us, p90 {:.1} us, p99 {:.1} us, at most {:.1} us",
        at(0.50),
        at(0.90),
        at(0.99),
        at(1.0),
    );
    match written {
        // Whoever reads this has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("cannot write: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
