//! One child process with a time limit.
#![forbid(unsafe_code)]

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::Start;
use crate::bench::{Mode, Sample};
use crate::child::MARKER;
use crate::interrupt;

/// What a child is asked to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child<'a> {
    pub(crate) row: &'a str,
    pub(crate) contender: &'a str,
    pub(crate) mode: Mode,
    pub(crate) iterations: u64,
    pub(crate) batch: Duration,
    pub(crate) timeout: Duration,
}

/// This binary again, with the hidden subcommand.
#[derive(Debug)]
pub(crate) struct Reexec {
    program: std::path::PathBuf,
}

impl Reexec {
    pub(crate) fn new() -> Result<Self, String> {
        let program = std::env::current_exe()
            .map_err(|e| format!("cannot find this program's own file: {e}"))?;
        Ok(Reexec { program })
    }
}

impl Start for Reexec {
    fn start(&mut self, child: &Child<'_>) -> Result<Sample, String> {
        if interrupt::asked() {
            return Err("interrupted".to_owned());
        }
        let mode = clap::ValueEnum::to_possible_value(&child.mode).expect("no mode is skipped");
        let mut command = Command::new(&self.program);
        command
            .args([
                "child",
                "--row",
                child.row,
                "--contender",
                child.contender,
                "--mode",
                mode.get_name(),
            ])
            .args(["--iterations", &child.iterations.to_string()])
            .args(["--batch-ns", &child.batch.as_nanos().to_string()]);
        run(command, child.timeout)
    }
}

/// Runs the command and finds the sample in its output. The reason of a failure is one line.
pub(crate) fn run(mut command: Command, timeout: Duration) -> Result<Sample, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot start the child process: {e}"))?;
    // Both ends are read by threads that sleep until the child closes them: no polling while the
    // child measures.
    let (done, finished) = mpsc::channel();
    let output = collect(child.stdout.take(), done.clone());
    let errors = collect(child.stderr.take(), done);
    let mut in_time = true;
    for _ in 0..2 {
        if finished.recv_timeout(timeout) == Err(mpsc::RecvTimeoutError::Timeout) {
            in_time = false;
            // It may just have ended by itself: then there is nothing to kill.
            let _ = child.kill();
            break;
        }
    }
    let status = child.wait().map_err(|e| format!("cannot wait for the child process: {e}"))?;
    let (output, errors) = (output.join().unwrap_or_default(), errors.join().unwrap_or_default());
    if !in_time {
        return Err(format!("hung: killed after {} s", timeout.as_secs_f64()));
    }
    if !status.success() {
        let told = complaint(&errors);
        return Err(if told.is_empty() {
            format!("crashed: {status}")
        } else {
            format!("crashed: {status} ({told})")
        });
    }
    let line = output.lines().rev().find_map(|l| l.strip_prefix(MARKER));
    let line = line.ok_or_else(|| "ended without a result".to_owned())?;
    serde_json::from_str(line).map_err(|e| format!("printed a result that cannot be read: {e}"))
}

fn collect(
    from: Option<impl Read + Send + 'static>,
    done: mpsc::Sender<()>,
) -> std::thread::JoinHandle<String> {
    std::thread::Builder::new()
        .name("child-output".to_owned())
        .spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut from) = from {
                // What was read until an error is still worth showing.
                let _ = from.read_to_end(&mut bytes);
            }
            // The waiting side may have given up.
            let _ = done.send(());
            String::from_utf8_lossy(&bytes).into_owned()
        })
        .expect("a thread can be started")
}

/// The line of a panic that says why, or the last line.
fn complaint(errors: &str) -> String {
    let lines: Vec<&str> = errors
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with("note:"))
        .collect();
    let after_panic =
        lines.iter().position(|l| l.contains("panicked at")).and_then(|i| lines.get(i + 1));
    let line = after_panic.or(lines.last()).copied().unwrap_or("");
    line.chars().take(200).collect()
}
