//! hyper on async-io.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use async_io::Async;
use futures_lite::AsyncWrite;
use hyper::rt::{Read, ReadBufCursor, Write};

use super::Multi;
use crate::kind::Http;

impl Http for Multi {
    type Io = Io;

    fn io(stream: Async<TcpStream>) -> Io {
        Io(stream)
    }
}

/// A stream with hyper's I/O traits. It receives into hyper's uninitialised buffer as it is; an
/// adapter by way of `AsyncRead` would have to fill it with zeros first.
pub(crate) struct Io(Async<TcpStream>);

impl Read for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            // SAFETY: nothing is de-initialised: the memory is only written, by the call below.
            let buffer = unsafe { cursor.as_mut() };
            let (start, length) = (buffer.as_mut_ptr(), buffer.len());
            // SAFETY: the pointer and the length are those of the buffer, which lives on.
            let received =
                unsafe { libc::recv(self.0.get_ref().as_raw_fd(), start.cast(), length, 0) };
            if let Ok(received) = usize::try_from(received) {
                // SAFETY: the call says that so many bytes are written.
                unsafe { cursor.advance(received) };
                return Poll::Ready(Ok(()));
            }
            match io::Error::last_os_error() {
                e if e.kind() == io::ErrorKind::WouldBlock => ready!(self.0.poll_readable(cx))?,
                e if e.kind() == io::ErrorKind::Interrupted => {}
                e => return Poll::Ready(Err(e)),
            }
        }
    }
}

impl Write for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(&mut self.0), cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(Pin::new(&mut self.0), cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_close(Pin::new(&mut self.0), cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write_vectored(Pin::new(&mut self.0), cx, bytes)
    }
}
