//! The traits of `futures-io` for Volt's streams. Feature `futures-io`.
#![forbid(unsafe_code)]
#![allow(private_bounds, reason = "the bound is sealed: TCP and unix streams")]

use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncRead, AsyncWrite};

use super::ReadBuf;
use crate::net::TcpStream;
#[cfg(unix)]
use crate::net::UnixStream;
use crate::net::split::{Half, OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};

macro_rules! read {
    ($([$($generics:tt)*] $type:ty, |$this:ident| $io:expr;)*) => {$(
        impl<$($generics)*> AsyncRead for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                let mut buf = ReadBuf::new(buf);
                ready!(super::AsyncRead::poll_read(self, cx, &mut buf))?;
                Poll::Ready(Ok(buf.filled().len()))
            }

            fn poll_read_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &mut [IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                let $this = self.get_mut();
                $io.poll_read_vectored(cx, bufs)
            }
        }
    )*};
}

macro_rules! write {
    ($([$($generics:tt)*] $type:ty),*) => {$(
        impl<$($generics)*> AsyncWrite for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                super::AsyncWrite::poll_write(self, cx, buf)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                super::AsyncWrite::poll_write_vectored(self, cx, bufs)
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                super::AsyncWrite::poll_flush(self, cx)
            }

            /// Shuts the stream down for writing.
            fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                super::AsyncWrite::poll_shutdown(self, cx)
            }
        }
    )*};
}

read!(
    [] TcpStream, |this| Half::io(this);
    ['a, S: Half] ReadHalf<'a, S>, |this| this.0.io();
    [S: Half] OwnedReadHalf<S>, |this| this.0.io();
);
write!([] TcpStream, ['a, S: Half] WriteHalf<'a, S>, [S: Half] OwnedWriteHalf<S>);
#[cfg(unix)]
read!([] UnixStream, |this| Half::io(this););
#[cfg(unix)]
write!([] UnixStream);
