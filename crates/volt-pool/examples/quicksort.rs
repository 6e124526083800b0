//! A parallel quicksort of ten million numbers by `join`, checked against the standard library's.
//!
//! `cargo run --release -p volt-pool --example quicksort -- [COUNT]`
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "an example reads the clock")]

use std::collections::TryReserveError;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

/// Below this, a part is sorted in sequence.
const SMALL: usize = 2048;

fn quicksort(values: &mut [u64]) {
    if values.len() <= SMALL {
        values.sort_unstable();
        return;
    }
    let middle = partition(values);
    let (left, right) = values.split_at_mut(middle);
    // The pivot, the first of the right part, is in its place.
    volt_pool::join(|| quicksort(left), || quicksort(&mut right[1..]));
}

/// Moves what is smaller than a pivot to the front, and the pivot behind that.
fn partition(values: &mut [u64]) -> usize {
    let last = values.len() - 1;
    let mut probes = [0, last / 2, last].map(|at| (values[at], at));
    probes.sort_unstable();
    values.swap(0, probes[1].1);
    let (pivot, rest) = values.split_first_mut().expect("not empty");
    let mut smaller = 0;
    for at in 0..rest.len() {
        let belongs = rest[at] < *pivot;
        rest.swap(at, smaller);
        smaller += usize::from(belongs);
    }
    values.swap(0, smaller);
    smaller
}

fn random(count: usize) -> Result<Vec<u64>, TryReserveError> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut values = Vec::new();
    // For the copies as well, so that all of them fit or none is made.
    values.try_reserve_exact(count.saturating_mul(3))?;
    values.shrink_to(count);
    values.extend((0..count).map(|_| next()));
    Ok(values)
}

/// Sorts in three ways, and reports.
fn compare(values: Vec<u64>) -> io::Result<()> {
    let (count, mut out) = (values.len(), io::stdout());
    let mut expected = values.clone();
    let start = Instant::now();
    expected.sort_unstable();
    writeln!(out, "std sort_unstable    {:>9.1?}", start.elapsed())?;

    let mut sorted = values.clone();
    let start = Instant::now();
    quicksort(&mut sorted);
    writeln!(out, "quicksort by join    {:>9.1?}", start.elapsed())?;
    assert_eq!(sorted, expected);

    let mut sorted = values;
    let start = Instant::now();
    volt_pool::par::par_sort_unstable(&mut sorted);
    writeln!(out, "par_sort_unstable    {:>9.1?}", start.elapsed())?;
    assert_eq!(sorted, expected);

    writeln!(out, "{count} numbers, {} threads: all three agree", volt_pool::current_num_threads())
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.next().map_or(Ok(10_000_000), |count| count.parse::<usize>());
    let (Ok(count), None) = (count, arguments.next()) else {
        eprintln!("usage: quicksort [COUNT], a number");
        return ExitCode::from(2);
    };
    let Ok(values) = random(count) else {
        eprintln!("there is no memory for {count} numbers");
        return ExitCode::FAILURE;
    };
    match compare(values) {
        // Whoever reads this has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("cannot write: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
