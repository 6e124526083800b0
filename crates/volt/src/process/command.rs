//! How a child is started.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command as StdCommand, ExitStatus, Output, Stdio};

use super::{Child, exit};

/// A child to be started, as [`std::process::Command`], whose methods and defaults it has.
///
/// ```
/// use std::process::Stdio;
/// use volt::io::{AsyncReadExt, AsyncWriteExt};
/// use volt::process::Command;
///
/// volt::run(async {
///     let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
///     let mut stdin = child.stdin.take().expect("piped");
///     stdin.write_all(b"through a child").await?;
///     drop(stdin);
///     let output = child.wait_with_output().await?;
///     assert_eq!(output.stdout, b"through a child");
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
#[derive(Debug)]
pub struct Command {
    command: StdCommand,
    kill_on_drop: bool,
}

impl Command {
    /// Runs `program`, looked up in `PATH` unless it is a path.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self::from(StdCommand::new(program))
    }

    /// The command of the standard library.
    #[must_use]
    pub fn as_std(&self) -> &StdCommand {
        &self.command
    }

    /// The command of the standard library.
    pub fn as_std_mut(&mut self) -> &mut StdCommand {
        &mut self.command
    }

    /// The command of the standard library.
    #[must_use]
    pub fn into_std(self) -> StdCommand {
        self.command
    }

    /// Adds an argument.
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<I, S>(&mut self, args: I) -> &mut Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.command.args(args);
        self
    }

    /// Sets an environment variable.
    pub fn env(&mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.command.env(key, value);
        self
    }

    /// Sets environment variables.
    pub fn envs<I, K, V>(&mut self, vars: I) -> &mut Self
    where
        I: IntoIterator<Item = (K, V)>,
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        self.command.envs(vars);
        self
    }

    /// Does not pass this environment variable on.
    pub fn env_remove(&mut self, key: impl AsRef<OsStr>) -> &mut Self {
        self.command.env_remove(key);
        self
    }

    /// Passes no environment variable on.
    pub fn env_clear(&mut self) -> &mut Self {
        self.command.env_clear();
        self
    }

    /// Where it runs.
    pub fn current_dir(&mut self, folder: impl AsRef<Path>) -> &mut Self {
        self.command.current_dir(folder);
        self
    }

    /// Its standard input.
    pub fn stdin(&mut self, config: impl Into<Stdio>) -> &mut Self {
        self.command.stdin(config);
        self
    }

    /// Its standard output.
    pub fn stdout(&mut self, config: impl Into<Stdio>) -> &mut Self {
        self.command.stdout(config);
        self
    }

    /// Its standard error.
    pub fn stderr(&mut self, config: impl Into<Stdio>) -> &mut Self {
        self.command.stderr(config);
        self
    }

    /// Whether dropping the [`Child`] kills it. False by default.
    pub fn kill_on_drop(&mut self, kill_on_drop: bool) -> &mut Self {
        self.kill_on_drop = kill_on_drop;
        self
    }

    /// What [`kill_on_drop`](Self::kill_on_drop) has set.
    ///
    /// # Examples
    /// ```
    /// let mut command = volt::process::Command::new("sleep");
    /// assert!(!command.get_kill_on_drop());
    /// assert!(command.kill_on_drop(true).get_kill_on_drop());
    /// ```
    #[must_use]
    pub fn get_kill_on_drop(&self) -> bool {
        self.kill_on_drop
    }

    /// The user under whom it runs.
    pub fn uid(&mut self, id: u32) -> &mut Self {
        self.command.uid(id);
        self
    }

    /// The group under which it runs.
    pub fn gid(&mut self, id: u32) -> &mut Self {
        self.command.gid(id);
        self
    }

    /// What it is told as its own name.
    pub fn arg0(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.command.arg0(arg);
        self
    }

    /// Its process group; 0 for one of its own.
    pub fn process_group(&mut self, group: i32) -> &mut Self {
        self.command.process_group(group);
        self
    }

    /// Calls `f` in the child, before the program is run.
    ///
    /// # Safety
    /// That of [`CommandExt::pre_exec`]: between `fork` and `exec` only async-signal-safe
    /// operations are allowed.
    pub unsafe fn pre_exec<F>(&mut self, f: F) -> &mut Self
    where
        F: FnMut() -> io::Result<()> + Send + Sync + 'static,
    {
        // SAFETY: the caller's obligation.
        unsafe { self.command.pre_exec(f) };
        self
    }

    /// Starts the child.
    ///
    /// # Errors
    /// As [`std::process::Command::spawn`], or if a pipe cannot be registered.
    ///
    /// # Panics
    /// Outside a Volt runtime.
    pub fn spawn(&mut self) -> io::Result<Child> {
        exit::reap();
        Child::new(self.command.spawn()?, self.kill_on_drop)
    }

    /// Starts the child and waits for its end.
    ///
    /// The child is started here, not when the future is polled. Dropping the future drops the
    /// [`Child`].
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn) and [`Child::wait`].
    pub fn status(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + use<> {
        let child = self.spawn();
        async {
            let mut child = child?;
            // Nobody can read these.
            drop((child.stdout.take(), child.stderr.take()));
            child.wait().await
        }
    }

    /// Starts the child with both outputs piped, and waits for its end and all that it prints.
    ///
    /// The child is started here, not when the future is polled.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn) and [`Child::wait_with_output`].
    pub fn output(&mut self) -> impl Future<Output = io::Result<Output>> + use<> {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.spawn();
        async { child?.wait_with_output().await }
    }
}

impl From<StdCommand> for Command {
    fn from(command: StdCommand) -> Self {
        Self { command, kill_on_drop: false }
    }
}
