//! smol: async-executor, async-io, blocking.

mod http;

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_executor::Executor;
use async_io::{Async, Timer};
use futures_lite::{AsyncReadExt as _, AsyncWriteExt as _, FutureExt as _, StreamExt as _, future};

use crate::kind::{Runtime, Sockets, Timers, workers};

static EXECUTOR: Executor<'static> = Executor::new();

/// Worker threads as the crate `smol` runs its global executor (`SMOL_THREADS`).
pub(crate) struct Multi;

/// The executor on the thread in `block_on`.
pub(crate) struct Current;

pub(crate) struct Join<T>(async_executor::Task<T>);

impl<T> Future for Join<T> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.0).poll(cx)
    }
}

macro_rules! runtime {
    ($name:ident, $start:expr, $block_on:expr) => {
        impl Runtime for $name {
            type Join<T: Send + 'static> = Join<T>;

            fn start() -> Self {
                ($start)();
                $name
            }

            #[inline]
            fn block_on<F: Future>(&self, future: F) -> F::Output {
                $block_on(future)
            }

            #[inline]
            fn spawn_outside<F>(&self, future: F) -> Join<F::Output>
            where
                F: Future<Output: Send + 'static> + Send + 'static,
            {
                Join(EXECUTOR.spawn(future))
            }

            #[inline]
            fn spawn<F>(future: F) -> Join<F::Output>
            where
                F: Future<Output: Send + 'static> + Send + 'static,
            {
                Join(EXECUTOR.spawn(future))
            }

            #[inline]
            fn detach<T: Send + 'static>(join: Join<T>) {
                join.0.detach();
            }

            #[inline]
            async fn yield_now() {
                future::yield_now().await;
            }

            #[inline]
            fn spawn_blocking<T: Send + 'static>(
                work: impl FnOnce() -> T + Send + 'static,
            ) -> Join<T> {
                Join(blocking::unblock(work))
            }
        }
    };
}

runtime!(Multi, start_workers, async_io::block_on);
runtime!(Current, || (), |future| async_io::block_on(EXECUTOR.run(future)));

fn start_workers() {
    for _ in 0..workers() {
        std::thread::Builder::new()
            .name("smol-worker".to_owned())
            .spawn(|| async_io::block_on(EXECUTOR.run(future::pending::<()>())))
            .expect("a thread can be started");
    }
}

impl Timers for Multi {
    type Interval = Timer;
    type Sleep = Timer;

    #[inline]
    fn sleep(time: Duration) -> Timer {
        Timer::after(time)
    }

    #[inline]
    async fn timeout<F: Future<Output: Send> + Send>(
        time: Duration,
        future: F,
    ) -> Option<F::Output> {
        let late = async {
            Timer::after(time).await;
            None
        };
        async { Some(future.await) }.or(late).await
    }

    fn interval(period: Duration) -> Timer {
        // The first tick at once, as Tokio's.
        Timer::interval_at(std::time::Instant::now(), period)
    }

    #[inline]
    async fn tick(interval: &mut Timer) {
        interval.next().await;
    }
}

impl Sockets for Multi {
    type Listener = Async<TcpListener>;
    type Stream = Async<TcpStream>;
    type Datagram = Async<UdpSocket>;
    type Unix = Async<UnixStream>;

    async fn listen() -> (Async<TcpListener>, SocketAddr) {
        let listener = Async::<TcpListener>::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind");
        let address = listener.get_ref().local_addr().expect("bound");
        (listener, address)
    }

    async fn accept(listener: &mut Async<TcpListener>) -> Async<TcpStream> {
        let (stream, _) = listener.accept().await.expect("accept");
        stream.get_ref().set_nodelay(true).expect("nodelay");
        stream
    }

    async fn connect(to: SocketAddr) -> Async<TcpStream> {
        let stream = Async::<TcpStream>::connect(to).await.expect("connect");
        stream.get_ref().set_nodelay(true).expect("nodelay");
        stream
    }

    async fn read(stream: &mut Async<TcpStream>, buffer: &mut [u8]) -> bool {
        stream.read_exact(buffer).await.is_ok()
    }

    async fn write(stream: &mut Async<TcpStream>, buffer: &[u8]) {
        stream.write_all(buffer).await.expect("write");
    }

    async fn datagrams() -> (Async<UdpSocket>, Async<UdpSocket>) {
        let a = Async::<UdpSocket>::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind");
        let b = Async::<UdpSocket>::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind");
        a.get_ref().connect(b.get_ref().local_addr().expect("bound")).expect("connect");
        b.get_ref().connect(a.get_ref().local_addr().expect("bound")).expect("connect");
        (a, b)
    }

    async fn send(socket: &Async<UdpSocket>, buffer: &[u8]) {
        socket.send(buffer).await.expect("send");
    }

    async fn recv(socket: &Async<UdpSocket>, buffer: &mut [u8]) -> usize {
        socket.recv(buffer).await.expect("recv")
    }

    async fn unix_pair() -> (Async<UnixStream>, Async<UnixStream>) {
        Async::<UnixStream>::pair().expect("pair")
    }

    async fn unix_read(stream: &mut Async<UnixStream>, buffer: &mut [u8]) -> bool {
        stream.read_exact(buffer).await.is_ok()
    }

    async fn unix_write(stream: &mut Async<UnixStream>, buffer: &[u8]) {
        stream.write_all(buffer).await.expect("write");
    }
}
