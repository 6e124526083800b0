//! The process runs out of descriptors. In a test binary of its own, since the limit is the
//! process's.
#![cfg(target_os = "linux")]

#[path = "support/limits.rs"]
mod limits;
#[path = "support/net.rs"]
mod support;

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use limits::limit;
use support::{each, stays_pending};
use volt::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// A listener of either kind, as this test uses it.
trait Listener: Sized {
    type Stream;
    async fn bind() -> Self;
    async fn connect(&self) -> std::io::Result<Self::Stream>;
    async fn take(&self) -> std::io::Result<Self::Stream>;
    /// Sends a byte from one to the other.
    async fn exchange(client: Self::Stream, server: Self::Stream);
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn bind() -> Self {
        Self::bind("127.0.0.1:0").await.unwrap()
    }

    async fn connect(&self) -> std::io::Result<TcpStream> {
        TcpStream::connect(self.local_addr().unwrap()).await
    }

    async fn take(&self) -> std::io::Result<TcpStream> {
        self.accept().await.map(|(stream, _)| stream)
    }

    async fn exchange(client: TcpStream, server: TcpStream) {
        assert_eq!(client.local_addr().unwrap(), server.peer_addr().unwrap());
        client.try_write(b"x").unwrap();
        server.readable().await.unwrap();
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn bind() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("volt-limits-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        Self::bind_addr(&SocketAddr::from_abstract_name(name).unwrap().into()).unwrap()
    }

    async fn connect(&self) -> std::io::Result<UnixStream> {
        UnixStream::connect_addr(&self.local_addr().unwrap()).await
    }

    async fn take(&self) -> std::io::Result<UnixStream> {
        self.accept().await.map(|(stream, _)| stream)
    }

    async fn exchange(client: UnixStream, server: UnixStream) {
        client.try_write(b"x").unwrap();
        server.readable().await.unwrap();
        assert_eq!(server.try_read(&mut [0; 8]).unwrap(), 1);
    }
}

async fn accept_without_descriptors<L: Listener>() {
    let listener = L::bind().await;
    let client = listener.connect().await.unwrap();
    let highest = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<u64>().ok())
        .max()
        .unwrap();
    let old = limit(libc::RLIMIT_NOFILE, 0);
    for _ in 0..3 {
        let error = listener.take().await.err().unwrap();
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
    }
    let error = listener.connect().await.err().unwrap();
    assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
    limit(libc::RLIMIT_NOFILE, old.max(highest + 1));
    // No event comes for the connection that waits: it must be found without one.
    let server = listener.take().await.unwrap();
    L::exchange(client, server).await;
    assert!(stays_pending(listener.take()).await, "nothing else to accept");
}

/// In the thread of `block_on` and on a worker.
#[test]
fn accept_without_descriptors_is_an_error_and_the_connection_is_not_lost() {
    each(accept_without_descriptors::<TcpListener>);
    each(accept_without_descriptors::<UnixListener>);
}
