//! A running child.
#![forbid(unsafe_code)]

use std::io;
use std::process::{Child as StdChild, ExitStatus, Output};

use tokio::io::{AsyncRead, AsyncReadExt};

use super::exit::Exit;
use super::orphans;
use super::{ChildStderr, ChildStdin, ChildStdout};

/// A child process. Made by [`Command::spawn`](super::Command::spawn).
///
/// See the [module](super#dropping) for what dropping it does.
///
/// ```
/// volt::run(async {
///     let mut child = volt::process::Command::new("true").spawn()?;
///     assert!(child.id().is_some());
///     assert!(child.wait().await?.success());
///     assert_eq!(child.id(), None, "the system may use it again");
///     std::io::Result::Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct Child {
    state: State,
    kill_on_drop: bool,
    /// The pipe to its standard input, if it was [piped](std::process::Stdio::piped).
    pub stdin: Option<ChildStdin>,
    /// The pipe from its standard output, if it was piped.
    pub stdout: Option<ChildStdout>,
    /// The pipe from its standard error, if it was piped.
    pub stderr: Option<ChildStderr>,
}

#[derive(Debug)]
enum State {
    Running {
        child: StdChild,
        exit: Exit,
    },
    Ended(ExitStatus),
    /// Only while it is dropped.
    Gone,
}

impl Child {
    pub(super) fn new(mut child: StdChild, kill_on_drop: bool) -> io::Result<Self> {
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let watched = (|| {
            Ok((
                Exit::watch(&child)?,
                pipes.0.map(ChildStdin::from_std).transpose()?,
                pipes.1.map(ChildStdout::from_std).transpose()?,
                pipes.2.map(ChildStderr::from_std).transpose()?,
            ))
        })();
        match watched {
            Ok((exit, stdin, stdout, stderr)) => {
                let state = State::Running { child, exit };
                Ok(Self { state, kill_on_drop, stdin, stdout, stderr })
            }
            Err(error) => {
                // It runs, but nobody could ever wait for it: as if it had not been started.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// The process id. `None` once its end was noticed: the number may be another's then.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let mut child = volt::process::Command::new("sleep").arg("60").spawn()?;
    /// assert!(child.id().is_some());
    /// child.kill().await?;
    /// assert_eq!(child.id(), None);
    /// # Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        match &self.state {
            State::Running { child, .. } => Some(child.id()),
            _ => None,
        }
    }

    /// Kills it (SIGKILL), without waiting for its end. One that has ended needs no killing; neither does one whose status was
    /// taken by others (by `waitpid(-1)`, or by the system where SIGCHLD is ignored): its number may be another process's.
    ///
    /// # Errors
    /// If the system does not allow it.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let mut child = volt::process::Command::new("sleep").arg("60").spawn()?;
    /// child.start_kill()?;
    /// assert!(!child.wait().await?.success());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn start_kill(&mut self) -> io::Result<()> {
        // An error means that others have its status.
        if let (Ok(None), State::Running { child, .. }) = (self.try_wait(), &mut self.state) {
            child.kill()?;
        }
        Ok(())
    }

    /// Kills it and waits for its end.
    ///
    /// # Errors
    /// As [`start_kill`](Self::start_kill) and [`wait`](Self::wait).
    ///
    /// # Cancel safety
    /// Safe: the first poll has sent the signal, and [`wait`](Self::wait) waits for the end.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let mut child = volt::process::Command::new("sleep").arg("60").spawn()?;
    /// child.kill().await?;
    /// assert!(child.try_wait()?.is_some());
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn kill(&mut self) -> io::Result<()> {
        self.start_kill()?;
        self.wait().await.map(drop)
    }

    /// Waits for its end. Closes the pipe to its standard input first, so that a child that reads to
    /// the end of it does not wait for ever; take [`stdin`](Self::stdin) out to keep it open.
    ///
    /// Cancel safe. Returns the status again when called again. Pipes that the caller does not read
    /// can fill up and stop the child: see [`wait_with_output`](Self::wait_with_output).
    ///
    /// In any runtime and executor, while the one that started it is being driven; in any runtime when that is gone.
    ///
    /// # Errors
    /// If the status cannot be had, or the runtime shuts down.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let mut child = volt::process::Command::new("true").spawn()?;
    /// assert!(child.wait().await?.success());
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        let status = match &mut self.state {
            State::Running { child, exit } => exit.status(child).await?,
            State::Ended(status) => *status,
            State::Gone => unreachable!("only while it is dropped"),
        };
        self.state = State::Ended(status);
        Ok(status)
    }

    /// Its status, if it has ended. Does not wait.
    ///
    /// # Errors
    /// If the status cannot be had.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let mut child = volt::process::Command::new("sleep").arg("60").spawn()?;
    /// assert_eq!(child.try_wait()?, None);
    /// child.kill().await?;
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match &mut self.state {
            State::Running { child, .. } => {
                let status = child.try_wait()?;
                if let Some(status) = status {
                    self.state = State::Ended(status);
                }
                Ok(status)
            }
            State::Ended(status) => Ok(Some(*status)),
            State::Gone => unreachable!("only while it is dropped"),
        }
    }

    /// Waits for its end while reading what it prints, as far as that was piped.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), or of reading.
    ///
    /// # Cancel safety
    /// Not safe: what was read is lost, and the child is dropped, which goes on unless
    /// [`kill_on_drop`](super::Command::kill_on_drop) was set.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use std::process::Stdio;
    /// let mut command = volt::process::Command::new("echo");
    /// let child = command.arg("hello").stdout(Stdio::piped()).spawn()?;
    /// assert_eq!(child.wait_with_output().await?.stdout, b"hello\n");
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn wait_with_output(mut self) -> io::Result<Output> {
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        let (status, stdout, stderr) =
            tokio::try_join!(self.wait(), read_all(stdout), read_all(stderr))?;
        Ok(Output { status, stdout, stderr })
    }
}

async fn read_all(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// True if it has not ended. An error means that there is nothing to wait for any more: others have its status.
fn is_running(child: &mut StdChild) -> bool {
    matches!(child.try_wait(), Ok(None))
}

impl Drop for Child {
    fn drop(&mut self) {
        let State::Running { mut child, exit } = std::mem::replace(&mut self.state, State::Gone)
        else {
            return;
        };
        let mut runs = is_running(&mut child);
        if runs && self.kill_on_drop {
            // An error means that it has ended.
            let _ = child.kill();
            runs = is_running(&mut child);
        }
        if runs {
            orphans::adopt(child, exit.into_pidfd());
        }
    }
}
