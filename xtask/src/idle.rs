//! Idle runtimes make no system call: the example `idle` under strace, which sees all its threads.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::command::{cargo, root, run as run_command};

/// For how long nothing may happen, in seconds.
const WINDOW: f64 = 2.0;
/// What the thread that says so takes to begin its own wait.
const SETTLE: f64 = 0.1;
/// The main thread, two workers, and a thread with a runtime of its own.
const THREADS: usize = 4;

/// Checks that the example makes no system call for two seconds, and that strace would have seen one.
///
/// # Errors
/// Lists the calls that were made, or says what is missing.
pub(crate) fn run() -> Result<(), String> {
    run_command(&mut cargo(&["build", "--quiet", "-p", "volt-rt", "--example", "idle"]))?;
    let ticking = calls_while_idle(Some("tick"))?;
    if ticking.is_empty() {
        return Err(
            "strace shows no call of a runtime that ticks: its silence means nothing".into()
        );
    }
    let calls = calls_while_idle(None)?;
    if !calls.is_empty() {
        let some = calls.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
        return Err(format!("{} calls of idle runtimes in {WINDOW} s:\n{some}", calls.len()));
    }
    println!("no call in {WINDOW} s; {} while a task ticks", ticking.len());
    Ok(())
}

/// What strace shows of the example between its own `idle` and the end.
fn calls_while_idle(argument: Option<&str>) -> Result<Vec<String>, String> {
    let target = root().join("target");
    let log = target.join("idle.strace");
    let mut child = Command::new("strace")
        .args(["--follow-forks", "--timestamps=unix,us", "--output"])
        .args([log.as_path(), Path::new("--"), &target.join("debug/examples/idle")])
        .args(argument)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("strace: {error} (Debian: apt-get install strace)"))?;
    let mut said = String::new();
    let stdout = child.stdout.take().expect("stdout is piped");
    let read = BufReader::new(stdout).read_line(&mut said);
    if read.is_ok() && said.trim() == "idle" {
        std::thread::sleep(Duration::from_secs_f64(SETTLE + WINDOW + SETTLE));
    }
    // The end of its input ends it.
    let status = child.wait().map_err(|error| format!("strace: {error}"))?;
    if !status.success() || said.trim() != "idle" {
        return Err(format!("the example under strace said `{}`: {status}", said.trim()));
    }
    let text = std::fs::read_to_string(&log).map_err(|error| format!("{log:?}: {error}"))?;
    in_window(&text)
}

/// The lines of the log in the two seconds after it says `idle`.
fn in_window(log: &str) -> Result<Vec<String>, String> {
    let mut threads = HashSet::new();
    let mut lines = Vec::new();
    let mut start = None;
    for line in log.lines() {
        let mut words = line.split_whitespace();
        let (Some(thread), Some(Ok(time))) = (words.next(), words.next().map(str::parse::<f64>))
        else {
            return Err(format!("strace wrote a line without a thread and a time: `{line}`"));
        };
        threads.insert(thread);
        if line.contains(r#"write(1, "idle\n""#) {
            start = Some(time + SETTLE);
        }
        lines.push((time, line));
    }
    let start = start.ok_or("strace shows no `idle` written")?;
    if threads.len() != THREADS {
        return Err(format!("strace saw {} threads instead of {THREADS}", threads.len()));
    }
    lines.retain(|(time, _)| (start..start + WINDOW).contains(time));
    Ok(lines.into_iter().map(|(_, line)| line.to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r#"10 5.0 execve("idle") = 0
11 5.1 futex(0x1, FUTEX_WAIT_BITSET_PRIVATE, 1, NULL, FUTEX_BITSET_MATCH_ANY <unfinished ...>
12 5.1 epoll_pwait2(3,  <unfinished ...>
13 5.2 epoll_pwait2(5,  <unfinished ...>
10 5.5 write(1, "idle\n", 5) = 5
10 5.501 read(0,  <unfinished ...>
10 7.8 <... read resumed>"", 32) = 0
"#;

    #[test]
    fn only_calls_of_the_two_seconds_count() {
        assert_eq!(in_window(LOG), Ok(vec![]));
        let call = "12 6.0 <... epoll_pwait2 resumed>[], 512, NULL, NULL, 8) = 0";
        assert_eq!(in_window(&format!("{LOG}{call}\n")), Ok(vec![call.to_owned()]));
    }

    #[test]
    fn a_log_that_shows_too_little_is_an_error() {
        assert!(in_window("").unwrap_err().contains("no `idle`"));
        assert!(in_window("strace: ?").unwrap_err().contains("`strace: ?`"));
        let without: Vec<_> = LOG.lines().filter(|line| !line.starts_with("12")).collect();
        assert!(in_window(&without.join("\n")).unwrap_err().contains("3 threads"));
    }
}
