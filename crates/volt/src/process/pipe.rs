//! The pipes to and from a child.
#![forbid(unsafe_code)]

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll};

use mio::unix::pipe;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::io::{Evented, Interest};
use crate::reactor::{Direction, Handle, Start};

/// The child's standard input: what is written here, the child reads.
///
/// Dropping it, or [shutting it down](crate::io::AsyncWriteExt::shutdown), is the child's end of
/// file.
#[derive(Debug)]
pub struct ChildStdin {
    pipe: Option<Evented<pipe::Sender>>,
}

/// The child's standard output.
#[derive(Debug)]
pub struct ChildStdout {
    pipe: Evented<pipe::Receiver>,
}

/// The child's standard error.
#[derive(Debug)]
pub struct ChildStderr {
    pipe: Evented<pipe::Receiver>,
}

impl ChildStdin {
    /// Takes over a pipe made by `std::process`.
    ///
    /// # Errors
    /// If it cannot be registered.
    ///
    /// # Panics
    /// Outside a Volt runtime.
    pub fn from_std(stdin: std::process::ChildStdin) -> io::Result<Self> {
        let pipe = pipe::Sender::from(stdin);
        pipe.set_nonblocking(true)?;
        let handle = Handle::current("process::ChildStdin");
        let pipe = Evented::new(handle, pipe, Interest::WRITABLE, Start::Open)?;
        Ok(Self { pipe: Some(pipe) })
    }

    /// Gives the descriptor up, set to blocking.
    ///
    /// # Errors
    /// If it was shut down, or cannot be taken out of the runtime.
    pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
        let pipe = self.pipe.ok_or_else(shut_down)?.into_inner()?;
        pipe.set_nonblocking(false)?;
        Ok(pipe.into())
    }
}

/// It was shut down before.
fn shut_down() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the child's standard input was shut down")
}

impl AsyncWrite for ChildStdin {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Some(pipe) = &self.pipe else { return Poll::Ready(Err(shut_down())) };
        pipe.registration().poll_io(Direction::Write, cx, |_| (&**pipe).write(from))
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
            /// # Errors
            /// If it cannot be registered.
            ///
            /// # Panics
            /// Outside a Volt runtime.
            pub fn from_std(output: std::process::$name) -> io::Result<Self> {
                let pipe = pipe::Receiver::from(output);
                pipe.set_nonblocking(true)?;
                let handle = Handle::current(concat!("process::", stringify!($name)));
                let pipe = Evented::new(handle, pipe, Interest::READABLE, Start::Open)?;
                Ok(Self { pipe })
            }

            /// Gives the descriptor up, set to blocking.
            ///
            /// # Errors
            /// If it cannot be taken out of the runtime.
            pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
                let pipe = self.pipe.into_inner()?;
                pipe.set_nonblocking(false)?;
                Ok(pipe.into())
            }
        }

        impl AsyncRead for $name {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                to: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                let pipe = &self.pipe;
                let read = pipe.registration().poll_io(Direction::Read, cx, |_| {
                    // Zeroes what the buffer has not initialised yet, once in its life.
                    (&**pipe).read(to.initialize_unfilled())
                });
                read.map_ok(|length| to.advance(length))
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
