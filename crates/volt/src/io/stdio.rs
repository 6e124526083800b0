//! The standard streams, through the blocking pool.
#![forbid(unsafe_code)]

use std::io::Result;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::blocking::Blocking;

/// The process's standard input; see [`stdin`].
///
/// # Examples
/// ```
/// let input: volt::io::Stdin = volt::io::stdin();
/// # drop(input);
/// ```
#[derive(Debug)]
pub struct Stdin(Blocking<std::io::Stdin>);

/// The process's standard output; see [`stdout`].
///
/// # Examples
/// ```
/// # volt::run(async {
/// use volt::io::AsyncWriteExt;
/// let mut output: volt::io::Stdout = volt::io::stdout();
/// output.write_all(b"hello\n").await.unwrap();
/// output.flush().await.unwrap();
/// # });
/// ```
#[derive(Debug)]
pub struct Stdout(Blocking<std::io::Stdout>);

/// The process's standard error; see [`stderr`].
///
/// # Examples
/// ```
/// # volt::run(async {
/// use volt::io::AsyncWriteExt;
/// let mut errors: volt::io::Stderr = volt::io::stderr();
/// errors.write_all(b"hello\n").await.unwrap();
/// # });
/// ```
#[derive(Debug)]
pub struct Stderr(Blocking<std::io::Stderr>);

/// A handle to the standard input.
///
/// Each read occupies a thread of the blocking pool until there is input, and cannot be cancelled:
/// a runtime that is dropped meanwhile waits for it (use
/// [`shutdown_background`](crate::runtime::Runtime::shutdown_background)). For interactive programs
/// a thread of their own with `std::io::stdin` and a channel serves better. Several handles share
/// one buffer of the process, but each may hold bytes that it has read ahead.
///
/// ```
/// use volt::io::{AsyncBufReadExt, BufReader};
///
/// # fn main() -> std::io::Result<()> {
/// # use std::io::{Seek, Write};
/// # use std::os::fd::AsRawFd;
/// # let mut input = tempfile::tempfile()?;
/// # input.write_all(b"one\nthree\n")?;
/// # input.rewind()?;
/// # // SAFETY: both descriptors are open; nobody else uses the standard input here.
/// # assert_eq!(unsafe { libc::dup2(input.as_raw_fd(), 0) }, 0);
/// volt::run(async {
///     // echo one; echo three
///     let mut lines = BufReader::new(volt::io::stdin()).lines();
///     let mut lengths = Vec::new();
///     while let Some(line) = lines.next_line().await? {
///         lengths.push(line.len());
///     }
///     assert_eq!(lengths, [3, 5]);
///     Ok(())
/// })
/// # }
/// ```
#[must_use]
pub fn stdin() -> Stdin {
    Stdin(Blocking::new(std::io::stdin()))
}

/// A handle to the standard output.
///
/// A write is done in the background: `flush` before the program ends, or the last ones may be lost.
///
/// ```
/// use volt::io::AsyncWriteExt;
///
/// volt::run(async {
///     let mut out = volt::io::stdout();
///     out.write_all(b"hello\n").await?;
///     out.flush().await
/// }).unwrap();
/// ```
#[must_use]
pub fn stdout() -> Stdout {
    Stdout(Blocking::new(std::io::stdout()))
}

/// A handle to the standard error. `flush` it as [`stdout`].
///
/// ```
/// use volt::io::AsyncWriteExt;
///
/// volt::run(async {
///     let mut err = volt::io::stderr();
///     err.write_all(b"careful\n").await?;
///     err.flush().await
/// }).unwrap();
/// ```
#[must_use]
pub fn stderr() -> Stderr {
    Stderr(Blocking::new(std::io::stderr()))
}

impl AsyncRead for Stdin {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        self.0.poll_read(cx, to)
    }
}

impl AsyncWrite for Stdout {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<Result<usize>> {
        self.0.poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll_flush(cx)
    }
}

impl AsyncWrite for Stderr {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<Result<usize>> {
        self.0.poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.0.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll_flush(cx)
    }
}

/// The descriptors of the standard streams.
#[cfg(unix)]
macro_rules! descriptor {
    ($type:ident, $std:path) => {
        impl std::os::fd::AsRawFd for $type {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                std::os::fd::AsRawFd::as_raw_fd(&$std())
            }
        }

        impl std::os::fd::AsFd for $type {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                // The process's own stream, which lives as long as the process.
                static STREAM: std::sync::LazyLock<std::io::$type> = std::sync::LazyLock::new($std);
                std::os::fd::AsFd::as_fd(&*STREAM)
            }
        }
    };
}

#[cfg(unix)]
descriptor!(Stdin, std::io::stdin);
#[cfg(unix)]
descriptor!(Stdout, std::io::stdout);
#[cfg(unix)]
descriptor!(Stderr, std::io::stderr);
