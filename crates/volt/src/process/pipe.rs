//! The pipes to and from a child.
#![forbid(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::net::unix::pipe;

/// The child's standard input: what is written here, the child reads.
///
/// Dropping it, or [shutting it down](crate::io::AsyncWriteExt::shutdown), is the child's end of
/// file.
///
/// ```
/// use std::process::Stdio;
/// use volt::io::AsyncWriteExt;
///
/// volt::run(async {
///     let mut command = volt::process::Command::new("cat");
///     let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
///     let mut stdin = child.stdin.take().unwrap();
///     stdin.write_all(b"hello").await?;
///     drop(stdin);
///     assert_eq!(child.wait_with_output().await?.stdout, b"hello");
///     std::io::Result::Ok(())
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct ChildStdin {
    pipe: Option<pipe::Sender>,
}

/// The child's standard output.
///
/// ```
/// use std::process::Stdio;
/// use volt::io::AsyncReadExt;
///
/// volt::run(async {
///     let mut command = volt::process::Command::new("echo");
///     let mut child = command.arg("hello").stdout(Stdio::piped()).spawn()?;
///     let mut text = String::new();
///     child.stdout.take().unwrap().read_to_string(&mut text).await?;
///     assert_eq!(text, "hello\n");
///     child.wait().await.map(drop)
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct ChildStdout {
    pipe: pipe::Receiver,
}

/// The child's standard error.
///
/// ```
/// use std::process::Stdio;
/// use volt::io::AsyncReadExt;
///
/// volt::run(async {
///     let mut command = volt::process::Command::new("sh");
///     let mut child = command.args(["-c", "echo oh no >&2"]).stderr(Stdio::piped()).spawn()?;
///     let mut text = String::new();
///     child.stderr.take().unwrap().read_to_string(&mut text).await?;
///     assert_eq!(text, "oh no\n");
///     child.wait().await.map(drop)
/// })
/// .unwrap();
/// ```
#[derive(Debug)]
pub struct ChildStderr {
    pipe: pipe::Receiver,
}

impl ChildStdin {
    /// Takes over a pipe made by `std::process`.
    ///
    /// ```
    /// use std::process::{Command, Stdio};
    /// use volt::io::AsyncWriteExt;
    ///
    /// volt::run(async {
    ///     let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    ///     let mut stdin = volt::process::ChildStdin::from_std(child.stdin.take().unwrap())?;
    ///     stdin.write_all(b"hello").await?;
    ///     stdin.shutdown().await?;
    ///     assert_eq!(child.wait_with_output()?.stdout, b"hello");
    ///     std::io::Result::Ok(())
    /// })
    /// .unwrap();
    /// ```
    ///
    /// # Errors
    /// If it cannot be registered.
    ///
    /// # Panics
    /// Outside a Volt runtime.
    pub fn from_std(stdin: std::process::ChildStdin) -> io::Result<Self> {
        let pipe = mio::unix::pipe::Sender::from(stdin);
        pipe.set_nonblocking(true)?;
        Ok(Self { pipe: Some(pipe::Sender::new("process::ChildStdin", pipe)?) })
    }

    /// Gives the descriptor up, set to blocking.
    ///
    /// ```
    /// use std::io::Write;
    /// use std::process::Stdio;
    ///
    /// volt::run(async {
    ///     let mut command = volt::process::Command::new("cat");
    ///     let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    ///     let fd = child.stdin.take().unwrap().into_owned_fd()?;
    ///     std::fs::File::from(fd).write_all(b"hello")?;
    ///     assert_eq!(child.wait_with_output().await?.stdout, b"hello");
    ///     std::io::Result::Ok(())
    /// })
    /// .unwrap();
    /// ```
    ///
    /// # Errors
    /// If it was shut down, or cannot be taken out of the runtime.
    pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
        self.pipe.ok_or_else(shut_down)?.into_blocking_fd()
    }
}

/// It was shut down before.
fn shut_down() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the child's standard input was shut down")
}

impl AsyncWrite for ChildStdin {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Some(pipe) = &mut self.pipe else { return Poll::Ready(Err(shut_down())) };
        Pin::new(pipe).poll_write(cx, from)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Some(pipe) = &mut self.pipe else { return Poll::Ready(Err(shut_down())) };
        Pin::new(pipe).poll_write_vectored(cx, from)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A pipe has no other way to say that there is no more.
        self.pipe = None;
        Poll::Ready(Ok(()))
    }
}

macro_rules! output {
    ($name:ident) => {
        impl $name {
            /// Takes over a pipe made by `std::process`.
            ///
            /// ```
            /// use std::process::{Command, Stdio};
            /// use volt::io::AsyncReadExt;
            ///
            /// volt::run(async {
            ///     let script = "echo out; echo err >&2";
            ///     let mut command = Command::new("sh");
            ///     let mut child =
            ///         command.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
            ///     let mut stdout = volt::process::ChildStdout::from_std(child.stdout.take().unwrap())?;
            ///     let mut stderr = volt::process::ChildStderr::from_std(child.stderr.take().unwrap())?;
            ///     let mut text = String::new();
            ///     stdout.read_to_string(&mut text).await?;
            ///     stderr.read_to_string(&mut text).await?;
            ///     assert_eq!(text, "out\nerr\n");
            ///     child.wait().map(drop)
            /// })
            /// .unwrap();
            /// ```
            ///
            /// # Errors
            /// If it cannot be registered.
            ///
            /// # Panics
            /// Outside a Volt runtime.
            pub fn from_std(output: std::process::$name) -> io::Result<Self> {
                let pipe = mio::unix::pipe::Receiver::from(output);
                pipe.set_nonblocking(true)?;
                let pipe = pipe::Receiver::new(concat!("process::", stringify!($name)), pipe)?;
                Ok(Self { pipe })
            }

            /// Gives the descriptor up, set to blocking.
            ///
            /// ```
            /// use std::process::Stdio;
            ///
            /// volt::run(async {
            ///     // The output of one child is the input of another.
            ///     let mut echo = volt::process::Command::new("echo");
            ///     let mut first = echo.arg("hello").stdout(Stdio::piped()).spawn()?;
            ///     let fd = first.stdout.take().unwrap().into_owned_fd()?;
            ///     let second = volt::process::Command::new("cat").stdin(fd).output().await?;
            ///     assert_eq!(second.stdout, b"hello\n");
            ///     first.wait().await.map(drop)
            /// })
            /// .unwrap();
            /// ```
            ///
            /// # Errors
            /// If it cannot be taken out of the runtime.
            pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
                self.pipe.into_blocking_fd()
            }
        }

        impl AsyncRead for $name {
            fn poll_read(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                to: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                Pin::new(&mut self.pipe).poll_read(cx, to)
            }
        }

        impl TryFrom<$name> for Stdio {
            type Error = io::Error;

            fn try_from(output: $name) -> io::Result<Self> {
                output.into_owned_fd().map(Stdio::from)
            }
        }

        impl AsRawFd for $name {
            fn as_raw_fd(&self) -> RawFd {
                self.pipe.as_raw_fd()
            }
        }

        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.pipe.as_fd()
            }
        }
    };
}

output!(ChildStdout);
output!(ChildStderr);

impl TryFrom<ChildStdin> for Stdio {
    type Error = io::Error;

    fn try_from(stdin: ChildStdin) -> io::Result<Self> {
        stdin.into_owned_fd().map(Stdio::from)
    }
}

/// The pipe's; there is none after a shutdown.
impl AsRawFd for ChildStdin {
    /// # Panics
    /// If it was shut down.
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl AsFd for ChildStdin {
    /// # Panics
    /// If it was shut down.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_ref().expect("the child's standard input was shut down").as_fd()
    }
}
