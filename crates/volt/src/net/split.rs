//! Halves of a stream, for reading and writing at the same time.
//!
//! [`tcp`](super::tcp) and [`unix`](super::unix) name them for their streams.
#![forbid(unsafe_code)]
#![allow(private_bounds, reason = "the bound is sealed: TCP and unix streams")]

use std::error::Error;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::io::{Evented, Interest, RawStream, Ready};

/// A stream type of this crate.
pub(crate) trait Half {
    type Io: RawStream;
    fn io(&self) -> &Evented<Self::Io>;
}

/// The reading half that [`TcpStream::split`](super::TcpStream::split) borrows.
pub struct ReadHalf<'a, S>(pub(super) &'a S);

/// The writing half that [`TcpStream::split`](super::TcpStream::split) borrows.
pub struct WriteHalf<'a, S>(pub(super) &'a S);

/// The reading half that [`TcpStream::into_split`](super::TcpStream::into_split) makes.
pub struct OwnedReadHalf<S>(pub(super) Arc<S>);

/// The writing half that [`TcpStream::into_split`](super::TcpStream::into_split) makes. Dropping it
/// shuts the stream down for writing.
pub struct OwnedWriteHalf<S: Half> {
    pub(super) stream: Arc<S>,
    shutdown_on_drop: bool,
}

/// The two halves given to `reunite` are of different streams; returns them.
pub struct ReuniteError<S: Half = super::TcpStream>(pub OwnedReadHalf<S>, pub OwnedWriteHalf<S>);

pub(super) fn borrow<S: Half>(stream: &mut S) -> (ReadHalf<'_, S>, WriteHalf<'_, S>) {
    (ReadHalf(stream), WriteHalf(stream))
}

pub(super) fn own<S: Half>(stream: S) -> (OwnedReadHalf<S>, OwnedWriteHalf<S>) {
    let stream = Arc::new(stream);
    (OwnedReadHalf(stream.clone()), OwnedWriteHalf { stream, shutdown_on_drop: true })
}

/// Methods and traits of a reading half. `$stream` is the field that holds the stream.
macro_rules! read_half {
    ([$($generics:tt)*] $type:ty, $stream:tt) => {
        impl<$($generics)*> $type {
            /// Waits until the stream is ready for some of `interest`, as the stream's own `ready`.
            ///
            /// # Errors
            /// If the runtime has shut down.
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                self.$stream.io().ready(interest).await
            }

            /// Waits until there is something to read, or the end of the stream.
            ///
            /// # Errors
            /// If the runtime has shut down.
            pub async fn readable(&self) -> io::Result<()> {
                self.ready(Interest::READABLE).await.map(drop)
            }

            /// Reads what there is, without waiting.
            ///
            /// # Errors
            /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is nothing; whatever `recv(2)`
            /// reports.
            pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
                self.$stream.io().try_read(buf)
            }

            /// As [`try_read`](Self::try_read), into several buffers.
            ///
            /// # Errors
            /// As `try_read`.
            pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                self.$stream.io().try_read_vectored(bufs)
            }

            /// As [`try_read`](Self::try_read), into the spare room of `buf`.
            ///
            /// # Errors
            /// As `try_read`.
            pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
                self.$stream.io().try_read_buf(buf)
            }
        }

        impl<$($generics)*> AsyncRead for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.$stream.io().poll_read(cx, buf)
            }
        }
    };
}

/// Methods and traits of a writing half.
macro_rules! write_half {
    ([$($generics:tt)*] $type:ty, $stream:tt, |$half:ident| $shut:block) => {
        impl<$($generics)*> $type {
            /// Waits until the stream is ready for some of `interest`, as the stream's own `ready`.
            ///
            /// # Errors
            /// If the runtime has shut down.
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                self.$stream.io().ready(interest).await
            }

            /// Waits until there is room to write, or an error to report.
            ///
            /// # Errors
            /// If the runtime has shut down.
            pub async fn writable(&self) -> io::Result<()> {
                self.ready(Interest::WRITABLE).await.map(drop)
            }

            /// Writes as much as there is room for, without waiting.
            ///
            /// # Errors
            /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is no room; whatever `send(2)`
            /// reports.
            pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
                self.$stream.io().try_write(buf)
            }

            /// As [`try_write`](Self::try_write), from several buffers.
            ///
            /// # Errors
            /// As `try_write`.
            pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
                self.$stream.io().try_write_vectored(bufs)
            }
        }

        impl<$($generics)*> AsyncWrite for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.$stream.io().poll_write(cx, buf)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.$stream.io().poll_write_vectored(cx, bufs)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            /// Nothing is buffered.
            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                let $half = self.get_mut();
                let result = $half.$stream.io().shutdown_write();
                if result.is_ok() $shut
                Poll::Ready(result)
            }
        }
    };
}

read_half!(['a, S: Half] ReadHalf<'a, S>, 0);
read_half!([S: Half] OwnedReadHalf<S>, 0);
write_half!(['a, S: Half] WriteHalf<'a, S>, 0, |half| {});
write_half!([S: Half] OwnedWriteHalf<S>, stream, |half| { half.shutdown_on_drop = false });

impl<S> AsRef<S> for ReadHalf<'_, S> {
    fn as_ref(&self) -> &S {
        self.0
    }
}

impl<S> AsRef<S> for WriteHalf<'_, S> {
    fn as_ref(&self) -> &S {
        self.0
    }
}

impl<S> AsRef<S> for OwnedReadHalf<S> {
    fn as_ref(&self) -> &S {
        &self.0
    }
}

impl<S: Half> AsRef<S> for OwnedWriteHalf<S> {
    fn as_ref(&self) -> &S {
        &self.stream
    }
}

impl<S: Half> OwnedReadHalf<S> {
    /// Puts the two halves of a stream together again.
    ///
    /// # Errors
    /// If they are of different streams: the error holds both.
    pub fn reunite(self, other: OwnedWriteHalf<S>) -> Result<S, ReuniteError<S>> {
        if !Arc::ptr_eq(&self.0, &other.stream) {
            return Err(ReuniteError(self, other));
        }
        other.forget();
        Ok(last(self.0))
    }
}

/// A stream has two halves, and the other one is gone.
fn last<S>(stream: Arc<S>) -> S {
    Arc::into_inner(stream).expect("only halves hold the stream")
}

impl<S: Half> OwnedWriteHalf<S> {
    /// Puts the two halves of a stream together again.
    ///
    /// # Errors
    /// If they are of different streams: the error holds both.
    pub fn reunite(self, other: OwnedReadHalf<S>) -> Result<S, ReuniteError<S>> {
        other.reunite(self)
    }

    /// Drops the half without shutting the stream down.
    pub fn forget(mut self) {
        self.shutdown_on_drop = false;
    }
}

impl<S: Half> Drop for OwnedWriteHalf<S> {
    fn drop(&mut self) {
        if self.shutdown_on_drop {
            // A stream that cannot be shut down is not connected any more.
            let _ = self.stream.io().shutdown_write();
        }
    }
}

impl<S: Half> fmt::Display for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tried to reunite halves that are not from the same socket")
    }
}

impl<S: Half> Error for ReuniteError<S> {}

impl<S: Half> fmt::Debug for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReuniteError").field(&self.0).field(&self.1).finish()
    }
}

impl<S: Half> fmt::Debug for ReadHalf<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadHalf").field(self.0.io()).finish()
    }
}

impl<S: Half> fmt::Debug for WriteHalf<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteHalf").field(self.0.io()).finish()
    }
}

impl<S: Half> fmt::Debug for OwnedReadHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedReadHalf").field(self.0.io()).finish()
    }
}

impl<S: Half> fmt::Debug for OwnedWriteHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedWriteHalf").field(self.stream.io()).finish()
    }
}
