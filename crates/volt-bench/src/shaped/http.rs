//! hyper on a Tokio-shaped runtime.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::rt::net::TcpStream;
use super::runtime::Multi;
use crate::bench::Bench;
use crate::kind::{Runtime, Sockets};
use crate::workload::http::{hello, measure, measure_wrk};

/// Under the load generator of this crate.
pub(crate) fn serve<const CONNECTIONS: usize>(b: &mut Bench) {
    let (runtime, address) = start();
    measure::<Multi, CONNECTIONS>(b, runtime, address);
}

/// Under `wrk`.
pub(crate) fn serve_wrk(b: &mut Bench) {
    let (runtime, address) = start();
    measure_wrk(b, runtime, address);
}

fn start() -> (Multi, SocketAddr) {
    let runtime = Multi::start();
    let (mut listener, address) = runtime.block_on(Multi::listen());
    Multi::detach(runtime.spawn_outside(async move {
        loop {
            let stream = Multi::accept(&mut listener).await;
            Multi::detach(Multi::spawn(async move {
                let service = hyper::service::service_fn(hello);
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(Io(stream), service);
                // A generator that closes its connections in the middle of a response is no
                // failure; that responses are right is checked by ours.
                drop(connection.await);
            }));
        }
    }));
    (runtime, address)
}

/// Tokio's I/O traits as hyper's.
struct Io(TcpStream);

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
