//! The traits of `futures-io` and hyper on Volt's sockets.
#![allow(clippy::disallowed_methods, reason = "compares with the machine's clock")]

#[path = "support/net.rs"]
mod support;

use std::convert::Infallible;
use std::io::{IoSlice, IoSliceMut};
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures::io::{AsyncReadExt, AsyncWriteExt};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::rt::{Executor, Sleep, Timer};
use hyper::service::service_fn;
use hyper::{Request, Response};
use support::{bounded, each, tcp_pair};
use volt::hyper::{VoltExecutor, VoltIo, VoltTimer};
use volt::net::{TcpStream, UnixStream};

#[test]
fn futures_io_reads_and_writes() {
    each(|| async {
        let (mut a, b) = UnixStream::pair().unwrap();
        let (mut reader, mut writer) = b.into_split();
        let other = volt::spawn(async move {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).await.unwrap();
            writer.write_all(&all).await.unwrap();
            writer.close().await.unwrap();
        });
        a.write_all(&[3; 500_000]).await.unwrap();
        a.close().await.unwrap();
        let mut back = Vec::new();
        AsyncReadExt::read_to_end(&mut a, &mut back).await.unwrap();
        assert!(back == [3; 500_000]);
        other.await.unwrap();
    });
}

/// What `$writer` sends is what `$reader` finds, in one buffer and in several; each of those is one
/// read. In the end `$writer` closes.
macro_rules! exchange_vectored {
    ($reader:expr, $writer:expr) => {{
        let (reader, writer) = (&mut $reader, &mut $writer);
        let sent = writer.write_vectored(&[IoSlice::new(b"he"), IoSlice::new(b"llo")]).await;
        assert_eq!(sent.unwrap(), 5);
        let (mut first, mut second) = ([0; 2], [0; 8]);
        let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(bounded(reader.read_vectored(&mut bufs)).await.unwrap(), 5);
        assert_eq!((&first, &second[..3]), (b"he", &b"llo"[..]));
        // It waits.
        let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        let later = async {
            volt::time::sleep(Duration::from_millis(2)).await;
            writer.write_all(b"abc").await.unwrap();
        };
        let read = futures::future::join(reader.read_vectored(&mut bufs), later);
        assert_eq!(bounded(read).await.0.unwrap(), 3);
        assert_eq!((&first, second[0]), (b"ab", b'c'));
        writer.write_all(b"xyz").await.unwrap();
        let mut rest = [0; 3];
        bounded(reader.read_exact(&mut rest)).await.unwrap();
        assert_eq!(&rest, b"xyz");
        writer.flush().await.unwrap();
        writer.close().await.unwrap();
        let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(bounded(reader.read_vectored(&mut bufs)).await.unwrap(), 0);
        assert_eq!(bounded(reader.read(&mut rest)).await.unwrap(), 0);
    }};
}

#[test]
fn futures_io_on_streams_and_halves() {
    each(|| async {
        let (mut a, mut b) = tcp_pair().await;
        exchange_vectored!(a, b);
        exchange_vectored!(b, a);
        let (mut a, mut b) = tcp_pair().await;
        {
            // Not the trait's `split`, which takes the stream.
            let (mut reader, mut writer) = TcpStream::split(&mut a);
            let (mut other, mut answer) = TcpStream::split(&mut b);
            exchange_vectored!(reader, answer);
            exchange_vectored!(other, writer);
        }
        let (a, b) = tcp_pair().await;
        let ((mut reader, mut writer), (mut other, mut answer)) = (a.into_split(), b.into_split());
        exchange_vectored!(reader, answer);
        exchange_vectored!(other, writer);

        let (mut a, mut b) = UnixStream::pair().unwrap();
        exchange_vectored!(a, b);
        exchange_vectored!(b, a);
        let (mut a, mut b) = UnixStream::pair().unwrap();
        {
            // Not the trait's `split`, which takes the stream.
            let (mut reader, mut writer) = UnixStream::split(&mut a);
            let (mut other, mut answer) = UnixStream::split(&mut b);
            exchange_vectored!(reader, answer);
            exchange_vectored!(other, writer);
        }
        let (a, b) = UnixStream::pair().unwrap();
        let ((mut reader, mut writer), (mut other, mut answer)) = (a.into_split(), b.into_split());
        exchange_vectored!(reader, answer);
        exchange_vectored!(other, writer);
    });
}

/// More than the sockets hold, in reads of many buffers, while the other side writes in parts.
#[test]
fn futures_io_vectored_reads_keep_the_order() {
    each(|| async {
        let (mut a, mut b) = tcp_pair().await;
        let data: Vec<u8> = (0..1_000_000_u32).map(|i| (i % 251) as u8).collect();
        let sent = data.clone();
        let writing = volt::spawn(async move {
            for part in sent.chunks(70_001) {
                a.write_all(part).await.unwrap();
            }
            a.close().await.unwrap();
        });
        let (mut all, mut memory) = (Vec::new(), vec![0; 9_000]);
        loop {
            let (first, rest) = memory.split_at_mut(1);
            let (second, third) = rest.split_at_mut(999);
            let mut bufs = [first, second, third].map(IoSliceMut::new);
            match bounded(b.read_vectored(&mut bufs)).await.unwrap() {
                0 => break,
                count => all.extend_from_slice(&memory[..count]),
            }
        }
        assert!(all == data);
        writing.await.unwrap();
    });
}

async fn hello(request: Request<Incoming>) -> Result<Response<Full<bytes::Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    Ok(Response::new(Full::new(body)))
}

/// hyper on a wrapped pipe, and on a stream as it is.
#[test]
fn hyper_speaks_over_wrapped_and_plain_streams() {
    each(|| async {
        let (near, far) = volt::io::duplex(1000);
        let server = hyper::server::conn::http1::Builder::new()
            .timer(VoltTimer::new())
            .serve_connection(VoltIo::new(far), service_fn(hello));
        let server = volt::spawn(server);
        exchange(VoltIo::new(near)).await;
        server.await.unwrap().unwrap();

        let (near, far) = UnixStream::pair().unwrap();
        let server =
            hyper::server::conn::http1::Builder::new().serve_connection(far, service_fn(hello));
        let server = volt::spawn(server);
        exchange(near).await;
        server.await.unwrap().unwrap();
    });
}

async fn exchange(io: impl hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static) {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    let connection = volt::spawn(connection);
    let body = vec![9; 200_000];
    let request = Request::post("/").header("host", "volt");
    let request = request.body(Full::new(bytes::Bytes::from(body.clone()))).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert!(answer.into_body().collect().await.unwrap().to_bytes() == body);
    drop(sender);
    connection.await.unwrap().unwrap();
}

#[test]
fn the_timer_sleeps_and_is_reset() {
    each(|| async {
        let timer = VoltTimer::new();
        let start = Instant::now();
        timer.sleep(Duration::from_millis(2)).await;
        timer.sleep_until(start + Duration::from_millis(4)).await;
        assert!(start.elapsed() >= Duration::from_millis(4));
        let mut sleep: Pin<Box<dyn Sleep>> = timer.sleep(Duration::from_secs(1000));
        timer.reset(&mut sleep, Instant::now() + Duration::from_millis(2));
        sleep.await;
        // A sleep of another timer is replaced.
        let mut sleep: Pin<Box<dyn Sleep>> = Box::pin(Never);
        timer.reset(&mut sleep, Instant::now() + Duration::from_millis(2));
        sleep.await;
    });
}

struct Never;

impl Future for Never {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        std::task::Poll::Pending
    }
}

impl Sleep for Never {}

#[test]
fn the_executor_spawns() {
    each(|| async {
        let (sender, receiver) = futures::channel::oneshot::channel();
        VoltExecutor::new().execute(async move { sender.send(7).unwrap() });
        assert_eq!(receiver.await.unwrap(), 7);
    });
}
