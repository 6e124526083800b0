//! The traits of `futures-io` and hyper on Volt's sockets.
#![allow(clippy::disallowed_methods, reason = "compares with the machine's clock")]

#[path = "support/net.rs"]
mod support;

use std::convert::Infallible;
use std::pin::Pin;
use std::time::{Duration, Instant};

use futures::io::{AsyncReadExt, AsyncWriteExt};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::rt::{Executor, Sleep, Timer};
use hyper::service::service_fn;
use hyper::{Request, Response};
use support::each;
use volt::hyper::{VoltExecutor, VoltIo, VoltTimer};
use volt::net::UnixStream;

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
