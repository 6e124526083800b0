//! The least that hyper can be served with: the limit of what a runtime on readiness can reach.
//!
//! Each thread has an epoll instance and connections of its own. An event polls its connection's
//! future. There are no tasks, queues or timers, nothing is shared, and a thread that has no events
//! sleeps beside one that has many.

use std::future::Future;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};

use hyper::rt::{Read, ReadBufCursor, Write};

use crate::epoll::Epoll;

/// Serves what connects to the returned address with `connection`, on `threads` threads that take
/// turns in getting connections. Ends with the process.
pub(crate) fn serve<F: Future + 'static>(
    threads: usize,
    connection: impl Fn(Io) -> F + Copy + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("bound");
    let spawn = |name: &str| std::thread::Builder::new().name(name.to_owned());
    let servers: Vec<_> = (0..threads)
        .map(|_| {
            let epoll = Arc::new(Epoll::new().expect("epoll"));
            let (sender, streams) = mpsc::channel();
            let waits = epoll.clone();
            let run = move || run(&waits, &streams, connection);
            spawn("bare").spawn(run).expect("a thread can be started");
            (epoll, sender)
        })
        .collect();
    let accept = move || {
        for number in 0.. {
            let (stream, _) = listener.accept().expect("accept");
            stream.set_nodelay(true).expect("nodelay");
            stream.set_nonblocking(true).expect("nonblocking");
            let descriptor = stream.as_raw_fd();
            let (epoll, sender) = &servers[number % threads];
            sender.send(stream).expect("the thread serves for ever");
            epoll.add(&descriptor, (number / threads) as u64).expect("add");
        }
    };
    spawn("accept").spawn(accept).expect("a thread can be started");
    address
}

fn run<F: Future>(
    epoll: &Epoll,
    streams: &mpsc::Receiver<TcpStream>,
    connection: impl Fn(Io) -> F,
) -> ! {
    let again = Arc::new(Again(AtomicBool::new(false)));
    let waker = Waker::from(again.clone());
    let mut context = Context::from_waker(&waker);
    let (mut connections, mut ready) = (Vec::new(), Vec::new());
    loop {
        epoll.wait(&mut ready).expect("wait");
        for &number in &ready {
            let number = usize::try_from(number).expect("a small number");
            while connections.len() <= number {
                let stream = streams.recv().expect("sent before it was added");
                connections.push(Some(Box::pin(connection(Io(stream)))));
            }
            while let Some(future) = &mut connections[number] {
                if future.as_mut().poll(&mut context).is_ready() {
                    connections[number] = None;
                } else if !again.0.swap(false, Ordering::Relaxed) {
                    break;
                }
            }
        }
    }
}

/// The future that is polled has woken itself.
struct Again(AtomicBool);

impl Wake for Again {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A stream that is polled again when it can be read, since epoll tells of its thread's connections
/// for as long as they can (level-triggered).
pub(crate) struct Io(TcpStream);

impl Read for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // SAFETY: nothing is de-initialised: the memory is only written, by the call below.
        let buffer = unsafe { cursor.as_mut() };
        // SAFETY: the kernel writes at most `buffer.len()` bytes to the buffer.
        let read =
            unsafe { libc::recv(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        match usize::try_from(read) {
            Ok(read) => {
                // SAFETY: so many bytes were written.
                unsafe { cursor.advance(read) };
                Poll::Ready(Ok(()))
            }
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                error => Poll::Ready(Err(error)),
            },
        }
    }
}

/// A write that would block is an error: whoever loads the server reads each response before it
/// sends its next request.
impl Write for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(self.0.write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.shutdown(std::net::Shutdown::Write))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(self.0.write_vectored(bytes))
    }
}
