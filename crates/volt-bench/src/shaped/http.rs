//! hyper on a Tokio-shaped runtime.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::rt::net::TcpStream;
use super::runtime::Multi;
use crate::kind::Http;

impl Http for Multi {
    type Io = Io;

    fn io(stream: TcpStream) -> Io {
        Io(stream)
    }
}

/// Tokio's I/O traits as hyper's.
pub(crate) struct Io(TcpStream);

impl Read for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        // SAFETY: nothing is de-initialised: the memory is only written through `ReadBuf`.
        let uninit = unsafe { cursor.as_mut() };
        let mut buffer = ReadBuf::uninit(uninit);
        ready!(AsyncRead::poll_read(Pin::new(&mut self.0), cx, &mut buffer))?;
        let filled = buffer.filled().len();
        // SAFETY: `ReadBuf` says that so many bytes are written.
        unsafe { cursor.advance(filled) };
        Poll::Ready(Ok(()))
    }
}

impl Write for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(&mut self.0), cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        AsyncWrite::poll_flush(Pin::new(&mut self.0), cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        AsyncWrite::poll_shutdown(Pin::new(&mut self.0), cx)
    }

    fn is_write_vectored(&self) -> bool {
        AsyncWrite::is_write_vectored(&self.0)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        AsyncWrite::poll_write_vectored(Pin::new(&mut self.0), cx, bytes)
    }
}
