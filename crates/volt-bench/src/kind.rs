//! What the workloads ask of a contender: one small trait for each kind of thing.
//!
//! A workload is generic over these traits, so it is written once for all contenders, and an adapter
//! is a few lines. Everything is static: the adapters vanish when compiled.
#![forbid(unsafe_code)]

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::time::Duration;

/// Workers of every runtime and pool that is compared, unless the row says otherwise.
pub(crate) const WORKERS: usize = 2;

static ASKED: AtomicUsize = AtomicUsize::new(WORKERS);

/// Workers of this process's runtime or pool.
pub(crate) fn workers() -> usize {
    ASKED.load(Ordering::Relaxed)
}

/// Asks for another number of workers, before any runtime or pool is started.
pub(crate) fn ask_for_workers(workers: usize) {
    ASKED.store(workers, Ordering::Relaxed);
}

/// A mutex around a counter.
pub(crate) trait Lock: Send + Sync + 'static {
    fn create() -> Self;
    /// Tries to lock, adds one.
    fn try_bump(&self) -> bool;
    /// Locks, adds one.
    fn bump(&self) -> impl Future<Output = ()> + Send;
    fn count(&self) -> u64;
}

/// A reader-writer lock around a counter.
pub(crate) trait SharedLock: Send + Sync + 'static {
    fn create() -> Self;
    fn try_peek(&self) -> Option<u64>;
    fn try_bump(&self) -> bool;
    fn peek(&self) -> impl Future<Output = u64> + Send;
    fn bump(&self) -> impl Future<Output = ()> + Send;
}

/// A semaphore.
pub(crate) trait Permits: Send + Sync + 'static {
    fn create(permits: usize) -> Self;
    /// Tries to take one permit, gives it back.
    fn try_pass(&self) -> bool;
    /// Takes one permit, gives it back.
    fn pass(&self) -> impl Future<Output = ()> + Send;
    fn available(&self) -> usize;
}

/// A cell that is set once.
pub(crate) trait Once: Send + Sync + 'static {
    fn create() -> Self;
    fn get(&self) -> Option<u64>;
    fn set(&self, value: u64) -> impl Future<Output = bool> + Send;
}

/// A signal that remembers one notification.
pub(crate) trait Signal: Send + Sync + 'static {
    fn create() -> Self;
    fn notify(&self);
    fn wait(&self) -> impl Future<Output = ()> + Send;
}

/// A barrier.
pub(crate) trait Gate: Send + Sync + 'static {
    fn create(parties: u32) -> Self;
    /// Waits for the others; whether this one is the leader.
    fn pass(&self) -> impl Future<Output = bool> + Send;
}

/// A place where one waiter leaves its waker.
pub(crate) trait WakerPlace: Send + Sync + 'static {
    fn create() -> Self;
    fn register(&mut self, waker: &Waker);
    fn take(&self) -> Option<Waker>;
}

/// A channel of numbers.
pub(crate) trait Channel: 'static {
    type Tx: Send + Clone + 'static;
    type Rx: Send + 'static;
    /// `None`: unbounded.
    fn create(capacity: Option<usize>) -> (Self::Tx, Self::Rx);
    fn try_send(tx: &Self::Tx, value: u64) -> bool;
    fn try_recv(rx: &mut Self::Rx) -> Option<u64>;
    fn send(tx: &Self::Tx, value: u64) -> impl Future<Output = bool> + Send;
    /// `None`: closed and empty.
    fn recv(rx: &mut Self::Rx) -> impl Future<Output = Option<u64>> + Send;
    /// As many receivers; a channel for one receiver cannot.
    fn receivers(rx: Self::Rx, count: usize) -> Vec<Self::Rx>;
}

/// A channel for one value.
pub(crate) trait Single: 'static {
    type Tx: Send + 'static;
    type Rx: Send + 'static;
    fn create() -> (Self::Tx, Self::Rx);
    fn send(tx: Self::Tx, value: u64) -> bool;
    fn recv(rx: Self::Rx) -> impl Future<Output = Option<u64>> + Send;
}

/// A channel on which each receiver sees each value.
pub(crate) trait Broadcast: 'static {
    type Tx: Send + 'static;
    type Rx: Send + 'static;
    fn create(capacity: usize, receivers: usize) -> (Self::Tx, Vec<Self::Rx>);
    fn send(tx: &Self::Tx, value: u64) -> impl Future<Output = ()> + Send;
    /// `None`: closed. Losing a value is a failure: the workload never sends ahead of the capacity.
    fn recv(rx: &mut Self::Rx) -> impl Future<Output = Option<u64>> + Send;
    fn try_recv(rx: &mut Self::Rx) -> Option<u64>;
}

/// A channel that keeps the latest value.
pub(crate) trait Watch: 'static {
    type Tx: Send + 'static;
    type Rx: Send + Clone + 'static;
    fn create() -> (Self::Tx, Self::Rx);
    fn send(tx: &Self::Tx, value: u64);
    fn get(rx: &mut Self::Rx) -> u64;
    /// Waits for a change; `false`: closed.
    fn changed(rx: &mut Self::Rx) -> impl Future<Output = bool> + Send;
}

/// A runtime. There is one in a process, so tasks are spawned without naming it.
pub(crate) trait Runtime: Send + Sync + 'static {
    type Join<T: Send + 'static>: Future<Output = T> + Send + Unpin + 'static;
    fn start() -> Self;
    fn block_on<F: Future>(&self, future: F) -> F::Output;
    /// From a thread that is not the runtime's.
    fn spawn_outside<F>(&self, future: F) -> Self::Join<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static;
    /// From a task (or inside `block_on`).
    fn spawn<F>(future: F) -> Self::Join<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static;
    fn yield_now() -> impl Future<Output = ()> + Send;
    fn spawn_blocking<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Self::Join<T>;

    /// Lets a task go on by itself.
    fn detach<T: Send + 'static>(join: Self::Join<T>);

    /// Runs a future as a task and waits for it.
    fn run_task<F>(&self, future: F) -> F::Output
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.block_on(self.spawn_outside(future))
    }
}

/// A runtime with timers.
pub(crate) trait Timers: Runtime {
    type Interval: Send + 'static;
    type Sleep: Future + Send + 'static;
    fn sleep(time: Duration) -> Self::Sleep;
    fn timeout<F: Future<Output: Send> + Send>(
        time: Duration,
        future: F,
    ) -> impl Future<Output = Option<F::Output>> + Send;
    fn interval(period: Duration) -> Self::Interval;
    fn tick(interval: &mut Self::Interval) -> impl Future<Output = ()> + Send;
}

/// A runtime with sockets. Errors end the workload.
pub(crate) trait Sockets: Runtime {
    type Listener: Send + 'static;
    type Stream: Send + 'static;
    type Datagram: Send + 'static;
    type Unix: Send + 'static;
    fn listen() -> impl Future<Output = (Self::Listener, std::net::SocketAddr)> + Send;
    fn accept(listener: &mut Self::Listener) -> impl Future<Output = Self::Stream> + Send;
    fn connect(to: std::net::SocketAddr) -> impl Future<Output = Self::Stream> + Send;
    /// Fills the buffer; `false`: closed.
    fn read(stream: &mut Self::Stream, buffer: &mut [u8]) -> impl Future<Output = bool> + Send;
    fn write(stream: &mut Self::Stream, buffer: &[u8]) -> impl Future<Output = ()> + Send;
    /// Two sockets connected to each other.
    fn datagrams() -> impl Future<Output = (Self::Datagram, Self::Datagram)> + Send;
    fn send(socket: &Self::Datagram, buffer: &[u8]) -> impl Future<Output = ()> + Send;
    fn recv(socket: &Self::Datagram, buffer: &mut [u8]) -> impl Future<Output = usize> + Send;
    fn unix_pair() -> impl Future<Output = (Self::Unix, Self::Unix)> + Send;
    fn unix_read(stream: &mut Self::Unix, buffer: &mut [u8]) -> impl Future<Output = bool> + Send;
    fn unix_write(stream: &mut Self::Unix, buffer: &[u8]) -> impl Future<Output = ()> + Send;
}

/// A runtime whose streams hyper can use.
pub(crate) trait Http: Sockets {
    type Io: hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static;
    fn io(stream: Self::Stream) -> Self::Io;
}

/// The locks' and channels' thread-blocking executor: the same for all of them.
pub(crate) use futures_lite::future::block_on;
