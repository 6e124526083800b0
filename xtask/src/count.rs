//! Instructions per operation, counted by callgrind: repeatable where times are not.

use std::process::Command;

use crate::command::{OPTIMISED, optimised, root, run as run_command};

/// The committed bounds: `row = instructions`, one a line.
const BOUNDS: &str = "xtask/counts.toml";

/// How far above its bound a row may be before it fails: compilers differ a little.
const SLACK: f64 = 1.05;

/// Counts `row`, or checks every row with a bound.
///
/// # Errors
/// Lists the rows that exceed their bounds.
pub(crate) fn run(row: Option<&str>) -> Result<(), String> {
    let text = std::fs::read_to_string(root().join(BOUNDS))
        .map_err(|error| format!("{BOUNDS}: {error}"))?;
    let bounds = parse(&text)?;
    let build = ["build", "--quiet", "-p", "volt-bench", "--features", "counted"];
    run_command(&mut optimised(&build))?;
    let rows: Vec<(&str, Option<f64>)> = match row {
        Some(row) => {
            let bound = bounds.iter().find(|bound| bound.0 == row).map(|bound| bound.1);
            vec![(row, bound)]
        }
        None => bounds.iter().map(|(row, bound)| (row.as_str(), Some(*bound))).collect(),
    };
    let mut exceeded = Vec::new();
    for (row, bound) in rows {
        let limit = bound.map_or(f64::INFINITY, |bound| bound * SLACK);
        let counted = least(limit, || counted(row))?;
        let bound = bound.unwrap_or(f64::INFINITY);
        println!("{row:<32} {counted:>9.1} instructions, bound {bound}");
        if counted > limit {
            exceeded.push(format!("{row}: {counted:.1} instructions, bound {bound}"));
        }
    }
    if exceeded.is_empty() { Ok(()) } else { Err(exceeded.join("\n")) }
}

/// How often a row is counted that exceeds its bound: some of the work is due by the clock, and on a machine that others
/// use more of it falls to an operation.
const TRIES: usize = 3;

/// The first count that is not above `limit`, or the least of all.
fn least(limit: f64, mut count: impl FnMut() -> Result<f64, String>) -> Result<f64, String> {
    let mut least = f64::INFINITY;
    for _ in 0..TRIES {
        least = least.min(count()?);
        if least <= limit {
            break;
        }
    }
    Ok(least)
}

/// The instructions of one operation of `row`.
fn counted(row: &str) -> Result<f64, String> {
    // The difference of two runs leaves only the operations themselves.
    let (few, many) = (1_000_u32, 6_000_u32);
    let (base, whole) = std::thread::scope(|scope| {
        let base = scope.spawn(|| instructions(row, few));
        let whole = instructions(row, many);
        (base.join().expect("errors are values here"), whole)
    });
    Ok((whole? - base?) / f64::from(many - few))
}

/// The instructions of one run of `row`.
fn instructions(row: &str, iterations: u32) -> Result<f64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(root().join(OPTIMISED).join("release/volt-bench"))
        .args(["count-row", row, &iterations.to_string()])
        .output()
        .map_err(|error| format!("valgrind: {error} (Debian: apt-get install valgrind)"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("row `{row}` under callgrind: {}\n{text}", output.status));
    }
    let collected =
        text.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    collected.ok_or_else(|| format!("row `{row}`: callgrind printed no count:\n{text}"))
}

fn parse(text: &str) -> Result<Vec<(String, f64)>, String> {
    let mut bounds = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let parsed = line.split_once('=').and_then(|(row, bound)| {
            Some((row.trim().trim_matches('"').to_owned(), bound.trim().parse().ok()?))
        });
        bounds.push(parsed.ok_or_else(|| format!("{BOUNDS}: `{line}` is not `row = number`"))?);
    }
    Ok(bounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_exceeds_its_bound_is_counted_again() {
        let counts = |counts: [f64; 3]| {
            let mut calls = 0;
            let counted = least(10.0, || {
                calls += 1;
                Ok(counts[calls - 1])
            });
            (counted, calls)
        };
        assert_eq!(counts([9.0, 0.0, 0.0]), (Ok(9.0), 1));
        assert_eq!(counts([12.0, 10.0, 0.0]), (Ok(10.0), 2));
        assert_eq!(counts([13.0, 11.0, 12.0]), (Ok(11.0), 3));
        assert!(least(10.0, || Err("no valgrind".to_owned())).is_err());
    }

    #[test]
    fn bounds_are_read_and_mistakes_named() {
        assert_eq!(parse("# rows\n\"a/b\" = 12.5\n").unwrap(), [("a/b".to_owned(), 12.5)]);
        assert!(parse("a 12").unwrap_err().contains("`a 12`"));
    }
}
