//! Running programs, and counting the tests that they report.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root").to_owned()
}

/// A cargo invocation in the workspace's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root());
    // Set by the cargo that runs xtask; it would override `+nightly`.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    command
}

/// Runs `command`; its failure becomes a message that names it.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed: {status}", line(command))) }
}

/// What a test command reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tests {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl std::ops::AddAssign for Tests {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// Runs a command that prints libtest's closing lines, passes its output on, and sums them up.
pub(crate) fn run_tests(command: &mut Command) -> Result<Tests, String> {
    let name = line(command);
    let mut child =
        command.stdout(Stdio::piped()).spawn().map_err(|error| format!("{name}: {error}"))?;
    let stdout = child.stdout.take().expect("stdout is piped");
    let mut tests = Tests::default();
    let mut terminal = std::io::stdout();
    for text in BufReader::new(stdout).lines() {
        let text = text.map_err(|error| format!("{name}: {error}"))?;
        tests += parse_result(&text).unwrap_or_default();
        writeln!(terminal, "{text}").map_err(|error| format!("cannot print: {error}"))?;
    }
    let status = child.wait().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(tests) } else { Err(format!("{name} failed: {status}")) }
}

/// Reads `test result: ok. 3 passed; 0 failed; ...`.
fn parse_result(line: &str) -> Option<Tests> {
    let rest = line.trim().strip_prefix("test result: ")?;
    let mut tests = Tests::default();
    for part in rest.split([';', '.']) {
        if let Some(number) = part.trim().strip_suffix(" passed") {
            tests.passed = number.parse().ok()?;
        } else if let Some(number) = part.trim().strip_suffix(" failed") {
            tests.failed = number.parse().ok()?;
        }
    }
    Some(tests)
}

/// The command as a person would type it.
fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libtest_result_lines_are_counted() {
        let line =
            "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(parse_result(line), Some(Tests { passed: 12, failed: 3 }));
        assert_eq!(parse_result("test a::b ... ok"), None);
    }
}
