//! Running programs, and counting the tests that they report.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

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

/// Where that is which [`optimised`] builds.
pub(crate) const OPTIMISED: &str = "target/optimised";

/// An invocation that builds our crates optimised, but not what they depend on, which would take much longer than what
/// is looked at. In a folder of its own, where the dependencies are built once.
pub(crate) fn optimised(arguments: &[&str]) -> Command {
    let mut command = cargo(arguments);
    command.args(["--release", "--target-dir", OPTIMISED]);
    for setting in ["opt-level=0", "codegen-units=16"] {
        command.args(["--config", &format!("profile.release.package.'*'.{setting}")]);
    }
    command
}

/// Seconds that a command may take, for continuous integration: a test that hangs then fails, and with its
/// name (libtest warns of tests that run for over a minute).
pub(crate) const LIMIT: &str = "VOLT_LIMIT";

/// What `timeout` exits with when it had to end the command.
const TIMED_OUT: i32 = 124;

/// `command`, under the `timeout` of coreutils if there is a `limit`.
pub(crate) fn limited(command: &Command, limit: Option<OsString>) -> Command {
    let mut limited = match limit {
        Some(seconds) => {
            let mut timeout = Command::new("timeout");
            timeout.arg("--kill-after=10").arg(seconds).arg(command.get_program());
            timeout
        }
        None => Command::new(command.get_program()),
    };
    limited.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    limited
}

/// Turns a failure into a message that names the command.
fn checked(name: &str, status: ExitStatus) -> Result<(), String> {
    match status.code() {
        Some(0) => Ok(()),
        Some(TIMED_OUT) => Err(format!("{name} took longer than {LIMIT} allows")),
        _ => Err(format!("{name} failed: {status}")),
    }
}

/// Runs `command`; its failure becomes a message that names it.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let name = line(command);
    let status = limited(command, std::env::var_os(LIMIT))
        .status()
        .map_err(|error| format!("{name}: {error}"))?;
    checked(&name, status)
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
    let mut child = limited(command, std::env::var_os(LIMIT))
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{name}: {error}"))?;
    let stdout = child.stdout.take().expect("stdout is piped");
    let mut tests = Tests::default();
    let mut terminal = std::io::stdout();
    for text in BufReader::new(stdout).lines() {
        let text = text.map_err(|error| format!("{name}: {error}"))?;
        tests += parse_result(&text).unwrap_or_default();
        writeln!(terminal, "{text}").map_err(|error| format!("cannot print: {error}"))?;
    }
    let status = child.wait().map_err(|error| format!("{name}: {error}"))?;
    checked(&name, status).map(|()| tests)
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
pub(crate) fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_timeout_says_is_told_from_a_failure() {
        let exit = |code: &str| Command::new("sh").args(["-c", code]).status().unwrap();
        assert_eq!(checked("x", exit("exit 0")), Ok(()));
        assert!(checked("x", exit("exit 124")).unwrap_err().contains(LIMIT));
        assert!(checked("x", exit("exit 1")).unwrap_err().contains("failed"));
    }

    #[test]
    fn a_limited_command_keeps_its_folder_and_environment() {
        let mut command = Command::new("sh");
        command.args(["-c", "test \"$PWD$X$HOME\" = /y"]).current_dir("/");
        command.env("X", "y").env_remove("HOME");
        assert!(limited(&command, None).status().unwrap().success());
        assert!(limited(&command, Some("9".into())).status().unwrap().success());
        let mut endless = Command::new("sleep");
        let status = limited(endless.arg("9"), Some("0.1".into())).status().unwrap();
        assert_eq!(status.code(), Some(TIMED_OUT));
    }

    #[test]
    fn libtest_result_lines_are_counted() {
        let line =
            "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(parse_result(line), Some(Tests { passed: 12, failed: 3 }));
        assert_eq!(parse_result("test a::b ... ok"), None);
    }
}
