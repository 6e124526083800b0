//! Streams whose operations count: those of the `tokio` crate in memory, and whatever is copied.
//!
//! The `tokio` crate counts them in a budget of its own, which nobody but its runtime sets. Here each
//! operation that is ready takes a unit of Volt's budget, unless what it wraps took one itself, as Volt's
//! sockets do ([`poll_operation`]). That holds for flushes, too: a copy whose budget is used up must not
//! take that for a reader without data, and flush its writer.
#![forbid(unsafe_code)]

use std::io::{IoSlice, Result, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};
use volt_sync::coop::poll_operation;

use super::memory::{DuplexStream, Empty, Repeat, SimplexStream, Sink};

/// One end of a copy.
pub(super) struct Counted<'a, T: ?Sized>(pub(super) &'a mut T);

macro_rules! read {
    ($([$($generics:tt)*] $type:ty),*) => {$(
        impl<$($generics)*> AsyncRead for $type {
            #[inline]
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<Result<()>> {
                let inner = Pin::new(&mut self.get_mut().0);
                poll_operation(cx, |cx| inner.poll_read(cx, buf))
            }
        }
    )*};
}

macro_rules! read_buffered {
    ($([$($generics:tt)*] $type:ty),*) => {$(
        impl<$($generics)*> AsyncBufRead for $type {
            #[inline]
            fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<&[u8]>> {
                let inner = Pin::new(&mut self.get_mut().0);
                poll_operation(cx, |cx| inner.poll_fill_buf(cx))
            }

            #[inline]
            fn consume(self: Pin<&mut Self>, count: usize) {
                Pin::new(&mut self.get_mut().0).consume(count);
            }
        }
    )*};
}

macro_rules! write {
    ($([$($generics:tt)*] $type:ty),*) => {$(
        impl<$($generics)*> AsyncWrite for $type {
            #[inline]
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<Result<usize>> {
                let inner = Pin::new(&mut self.get_mut().0);
                poll_operation(cx, |cx| inner.poll_write(cx, buf))
            }

            #[inline]
            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<Result<usize>> {
                let inner = Pin::new(&mut self.get_mut().0);
                poll_operation(cx, |cx| inner.poll_write_vectored(cx, bufs))
            }

            #[inline]
            fn is_write_vectored(&self) -> bool {
                self.0.is_write_vectored()
            }

            #[inline]
            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
                let inner = Pin::new(&mut self.get_mut().0);
                poll_operation(cx, |cx| inner.poll_flush(cx))
            }

            #[inline]
            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
                let inner = Pin::new(&mut self.get_mut().0);
                poll_operation(cx, |cx| inner.poll_shutdown(cx))
            }
        }
    )*};
}

read!([] DuplexStream, [] Empty, [] Repeat, [] SimplexStream);
read!([T: AsyncRead + Unpin + ?Sized] Counted<'_, T>);
read_buffered!([] Empty, [T: AsyncBufRead + Unpin + ?Sized] Counted<'_, T>);
write!([] DuplexStream, [] Empty, [] SimplexStream, [] Sink);
write!([T: AsyncWrite + Unpin + ?Sized] Counted<'_, T>);

impl AsyncSeek for Empty {
    #[inline]
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> Result<()> {
        Pin::new(&mut self.get_mut().0).start_seek(position)
    }

    #[inline]
    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        let inner = Pin::new(&mut self.get_mut().0);
        poll_operation(cx, |cx| inner.poll_complete(cx))
    }
}
