//! How a child is started.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command as StdCommand, ExitStatus, Output, Stdio};

use volt_sync::internal::slack;

use super::{Child, orphans};
use crate::runtime::context;

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
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let mut command = volt::process::Command::new("true");
    /// assert!(command.status().await?.success());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self::from(StdCommand::new(program))
    }

    /// The command of the standard library.
    ///
    /// # Examples
    /// ```
    /// use volt::process::Command;
    /// let mut command = Command::new("echo");
    /// assert_eq!(command.as_std().get_program(), "echo");
    /// ```
    #[must_use]
    pub fn as_std(&self) -> &StdCommand {
        &self.command
    }

    /// The command of the standard library.
    ///
    /// # Examples
    /// ```
    /// use volt::process::Command;
    /// let mut command = Command::new("echo");
    /// command.as_std_mut().arg("hello");
    /// assert_eq!(command.as_std().get_args().count(), 1);
    /// ```
    pub fn as_std_mut(&mut self) -> &mut StdCommand {
        &mut self.command
    }

    /// The command of the standard library.
    ///
    /// # Examples
    /// ```
    /// use volt::process::Command;
    /// let mut command = Command::new("echo");
    /// let command: std::process::Command = command.into_std();
    /// ```
    #[must_use]
    pub fn into_std(self) -> StdCommand {
        self.command
    }

    /// Adds an argument.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::process::Command;
    /// let mut command = Command::new("echo");
    /// command.arg("hello");
    /// assert_eq!(command.output().await?.stdout, b"hello\n");
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::process::Command;
    /// let mut command = Command::new("echo");
    /// command.args(["hello", "world"]);
    /// assert_eq!(command.output().await?.stdout, b"hello world\n");
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn args<I, S>(&mut self, args: I) -> &mut Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.command.args(args);
        self
    }

    /// Sets an environment variable.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::process::Command;
    /// let mut command = Command::new("env");
    /// command.env_clear().env("NAME", "value");
    /// assert_eq!(command.output().await?.stdout, b"NAME=value\n");
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn env(&mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.command.env(key, value);
        self
    }

    /// Sets environment variables.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::process::Command;
    /// let mut command = Command::new("env");
    /// command.env_clear().envs([("NAME", "value")]);
    /// assert_eq!(command.output().await?.stdout, b"NAME=value\n");
    /// # Ok(()) })
    /// # }
    /// ```
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
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::process::Command;
    /// let mut command = Command::new("env");
    /// command.env_clear().env("NAME", "value").env_remove("NAME");
    /// assert_eq!(command.output().await?.stdout, b"");
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn env_remove(&mut self, key: impl AsRef<OsStr>) -> &mut Self {
        self.command.env_remove(key);
        self
    }

    /// Passes no environment variable on.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::process::Command;
    /// let mut command = Command::new("env");
    /// command.env_clear();
    /// assert_eq!(command.output().await?.stdout, b"");
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn env_clear(&mut self) -> &mut Self {
        self.command.env_clear();
        self
    }

    /// Where it runs.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let mut command = volt::process::Command::new("pwd");
    /// command.current_dir("/");
    /// assert_eq!(command.output().await?.stdout, b"/\n");
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn current_dir(&mut self, folder: impl AsRef<Path>) -> &mut Self {
        self.command.current_dir(folder);
        self
    }

    /// Its standard input.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use std::process::Stdio;
    /// let mut command = volt::process::Command::new("cat");
    /// assert!(command.stdin(Stdio::null()).status().await?.success());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn stdin(&mut self, config: impl Into<Stdio>) -> &mut Self {
        self.command.stdin(config);
        self
    }

    /// Its standard output.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::process::Command;
    /// let mut command = Command::new("echo");
    /// use std::process::Stdio;
    /// command.arg("hello").stdout(Stdio::piped());
    /// assert_eq!(command.spawn()?.wait_with_output().await?.stdout, b"hello\n");
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn stdout(&mut self, config: impl Into<Stdio>) -> &mut Self {
        self.command.stdout(config);
        self
    }

    /// Its standard error.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use std::process::Stdio;
    /// let mut command = volt::process::Command::new("sh");
    /// command.args(["-c", "echo oops >&2"]).stderr(Stdio::piped());
    /// assert_eq!(command.spawn()?.wait_with_output().await?.stderr, b"oops\n");
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn stderr(&mut self, config: impl Into<Stdio>) -> &mut Self {
        self.command.stderr(config);
        self
    }

    /// Whether dropping the [`Child`] kills it. False by default.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let mut command = volt::process::Command::new("sleep");
    /// let child = command.arg("60").kill_on_drop(true).spawn()?;
    /// drop(child); // and with it the minute
    /// # Ok(()) })
    /// # }
    /// ```
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

    /// The user under whom it runs. Only root may choose another one than its own.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # // SAFETY: it touches no memory.
    /// # let user = unsafe { libc::getuid() };
    /// let mut command = volt::process::Command::new("id");
    /// let output = command.arg("-u").uid(user).output().await?;
    /// assert_eq!(output.stdout, format!("{user}\n").as_bytes());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn uid(&mut self, id: u32) -> &mut Self {
        self.command.uid(id);
        self
    }

    /// The group under which it runs. Only root may choose another one than its own.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # // SAFETY: it touches no memory.
    /// # let group = unsafe { libc::getgid() };
    /// let mut command = volt::process::Command::new("id");
    /// let output = command.arg("-g").gid(group).output().await?;
    /// assert_eq!(output.stdout, format!("{group}\n").as_bytes());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn gid(&mut self, id: u32) -> &mut Self {
        self.command.gid(id);
        self
    }

    /// What it is told as its own name.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let mut command = volt::process::Command::new("sh");
    /// command.arg0("another name").args(["-c", "echo $0"]);
    /// assert_eq!(command.output().await?.stdout, b"another name\n");
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn arg0(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.command.arg0(arg);
        self
    }

    /// Its process group; 0 for one of its own.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let mut command = volt::process::Command::new("true");
    /// assert!(command.process_group(0).status().await?.success());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn process_group(&mut self, group: i32) -> &mut Self {
        self.command.process_group(group);
        self
    }

    /// Calls `f` in the child, before the program is run.
    ///
    /// # A signal when the parent ends
    /// With `prctl(PR_SET_PDEATHSIG)` (Linux) the child gets the signal when the *thread* that has started it ends, not the
    /// process. A task does not choose its thread. Those of a multi-thread runtime also run on a thread in `block_on`, which may end
    /// soon after; a worker's thread may end with a [`block_in_place`](crate::task::block_in_place); and one of
    /// [`spawn_blocking`](crate::task::spawn_blocking) ends when it has been idle for some seconds. So start such a child where the
    /// thread is known and lives on: in the future of `block_on` itself (of `#[volt::main]`: on the main thread), or in
    /// a task of a current-thread runtime whose `block_on` does not return before the child may end. Or without the signal: give it a
    /// pipe as its standard input that it reads to the end, which comes when the process is gone.
    ///
    /// # Safety
    /// That of [`CommandExt::pre_exec`]: between `fork` and `exec` only async-signal-safe
    /// operations are allowed.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let mut command = volt::process::Command::new("true");
    /// // SAFETY: the closure does nothing that the fork of a threaded process may not.
    /// unsafe { command.pre_exec(|| Ok(())) };
    /// assert!(command.status().await?.success());
    /// # Ok(()) })
    /// # }
    /// ```
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
    #[track_caller]
    pub fn spawn(&mut self) -> io::Result<Child> {
        self.spawn_as("Command::spawn")
    }

    /// The same for the function `caller`, which the panic names.
    #[track_caller]
    fn spawn_as(&mut self, caller: &'static str) -> io::Result<Child> {
        // Before the child starts: nobody would own it after a panic.
        context::require(caller);
        orphans::collect();
        Child::new(slack::without(|| self.command.spawn())?, self.kill_on_drop)
    }

    /// Starts the child and waits for its end.
    ///
    /// The child is started here, not when the future is polled. Dropping the future drops the
    /// [`Child`].
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn) and [`Child::wait`].
    ///
    /// # Panics
    /// Outside a Volt runtime.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let status = volt::process::Command::new("false").status().await?;
    /// assert_eq!(status.code(), Some(1));
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn status(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + use<> {
        let child = self.spawn_as("Command::status");
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
    ///
    /// # Panics
    /// Outside a Volt runtime.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::process::Command;
    /// let mut command = Command::new("echo");
    /// assert_eq!(command.arg("hello").output().await?.stdout, b"hello\n");
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn output(&mut self) -> impl Future<Output = io::Result<Output>> + use<> {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.spawn_as("Command::output");
        async { child?.wait_with_output().await }
    }
}

impl From<StdCommand> for Command {
    fn from(command: StdCommand) -> Self {
        Self { command, kill_on_drop: false }
    }
}
