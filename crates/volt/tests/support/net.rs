//! Runs a test on every kind of runtime, with a bound on its time.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary includes this file and uses a part"
)]

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use volt::net::{TcpListener, TcpStream, UdpSocket};
use volt::runtime::{Builder, Runtime};

/// One test of signals at a time: its runtime may be the one that hears another one's.
#[allow(clippy::disallowed_types, reason = "a test")]
pub fn alone() -> MutexGuard<'static, ()> {
    static TEST: Mutex<()> = Mutex::new(());
    TEST.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn runtimes() -> Vec<Runtime> {
    let mut all = vec![Builder::new_current_thread().enable_all().build().unwrap()];
    for workers in [1, 2, 8] {
        let mut builder = Builder::new_multi_thread();
        all.push(builder.worker_threads(workers).enable_all().build().unwrap());
    }
    all
}

/// Runs `test` on a current-thread runtime, and with 1, 2 and 8 workers; in each case in the thread
/// of `block_on` and on a worker.
pub fn each<F>(test: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    for runtime in runtimes() {
        runtime.block_on(bounded(test()));
        runtime.block_on(async { volt::spawn(bounded(test())).await.unwrap() });
    }
}

pub async fn bounded<R>(future: impl Future<Output = R>) -> R {
    volt::time::timeout(Duration::from_secs(60), future).await.expect("the test got stuck")
}

/// True if `future` is still pending after a moment.
pub async fn stays_pending(future: impl Future) -> bool {
    volt::time::timeout(Duration::from_millis(20), future).await.is_err()
}

/// A client's end of a connection, and the server's.
pub async fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (server, address) = listener.accept().await.unwrap();
    assert_eq!(address, client.local_addr().unwrap());
    (client, server)
}

/// Two sockets that are connected to each other.
pub async fn udp_pair() -> (UdpSocket, UdpSocket) {
    let a = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let b = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    a.connect(b.local_addr().unwrap()).await.unwrap();
    b.connect(a.local_addr().unwrap()).await.unwrap();
    (a, b)
}

/// `count`, times what `VOLT_STRESS` says.
pub fn stress(count: usize) -> usize {
    count * std::env::var("VOLT_STRESS").map_or(1, |factor| factor.parse().unwrap_or(1))
}
