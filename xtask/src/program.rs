//! Test programs that are built once, and run one test a process.
//!
//! The models need that. Each execution of a model maps and unmaps a stack for each of its threads, and two
//! tests in one process wait for each other there: `volt-sync`'s 147 models take 63 s on two threads of one
//! process, and 40 s on one.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread;

use crate::command::{Tests, line};

/// A crate's test program.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// The full names of its tests.
    pub(crate) tests: Vec<String>,
}

impl Program {
    /// Asks the program at `path` for its tests.
    pub(crate) fn new(path: PathBuf) -> Result<Self, String> {
        let listed = Command::new(&path)
            .args(["--list", "--format", "terse"])
            .output()
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let listed = String::from_utf8_lossy(&listed.stdout);
        let tests = listed.lines().filter_map(|line| Some(line.strip_suffix(": test")?.to_owned()));
        let tests = tests.collect();
        Ok(Self { path, tests })
    }

    /// The command that runs one test.
    pub(crate) fn command(&self, test: &str) -> Command {
        let mut command = Command::new(&self.path);
        command.args(["--exact", test]);
        command
    }
}

/// Builds the test programs that `cargo test` with these arguments would run.
pub(crate) fn build(mut command: Command) -> Result<Vec<PathBuf>, String> {
    command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    let name = line(&command);
    let built = command.stderr(Stdio::inherit()).output();
    let output = built.map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name} failed: {}", output.status));
    }
    Ok(executables(&String::from_utf8_lossy(&output.stdout)))
}

/// The programs among cargo's messages.
fn executables(messages: &str) -> Vec<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
    let path = |message: serde_json::Value| message["executable"].as_str().map(PathBuf::from);
    messages.filter_map(path).collect()
}

/// Runs the `commands`, each with its test's name, as many at a time as there are processors. All of them,
/// also if some fail: their output is printed.
///
/// # Errors
/// Names the tests that failed.
pub(crate) fn run_all(commands: Vec<(String, Command)>) -> Result<Tests, String> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let queue = Mutex::new(commands.into_iter());
    let done = Mutex::new((Tests::default(), Vec::new()));
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("nobody panics with it").next();
                    let Some((test, mut command)) = next else { return };
                    let why = failure(command.output());
                    let (tests, failed) = &mut *done.lock().expect("nobody panics with it");
                    match why {
                        None => {
                            println!("test {test} ... ok");
                            tests.passed += 1;
                        }
                        Some(why) => {
                            println!("test {test} ... FAILED\n{why}");
                            tests.failed += 1;
                            failed.push(test);
                        }
                    }
                }
            });
        }
    });
    let (tests, failed) = done.into_inner().expect("nobody panics with it");
    if failed.is_empty() { Ok(tests) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// What went wrong with the program of one test: anything but one test that passed.
fn failure(output: std::io::Result<Output>) -> Option<String> {
    let output = match output {
        Ok(output) => output,
        Err(error) => return Some(error.to_string()),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && text.contains("test result: ok. 1 passed") {
        return None;
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Some(format!("{}\n{text}\n{errors}", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(code: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", code]);
        command
    }

    #[test]
    fn executables_are_found_among_the_messages() {
        let messages =
            "{\"executable\":\"/a/b\"}\n{\"executable\":null}\n{\"reason\":\"x\"}\nnoise\n";
        assert_eq!(executables(messages), [PathBuf::from("/a/b")]);
    }

    #[test]
    fn each_command_runs_and_those_that_fail_are_named() {
        let ok = "echo 'test result: ok. 1 passed; 0 failed'";
        let commands =
            |codes: &[&str]| codes.iter().map(|code| ((*code).to_owned(), shell(code))).collect();
        let all = run_all(commands(&[ok, ok, ok]));
        assert_eq!(all, Ok(Tests { passed: 3, failed: 0 }));
        // A filter that matches nothing is no success, nor is a test that passed before its program failed.
        let none = "echo 'test result: ok. 0 passed; 0 failed'";
        let late = "echo 'test result: ok. 1 passed'; exit 3";
        let error = run_all(commands(&[ok, none, late, ok])).unwrap_err();
        assert!(error.contains(none) && error.contains(late) && !error.contains(ok), "{error}");
    }
}
