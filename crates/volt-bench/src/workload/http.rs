//! HTTP/1.1: hyper's server on each runtime, under a load generator of our own.
#![forbid(unsafe_code)]

mod load;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::{Request, Response};

use crate::bare;
use crate::bench::Bench;
use crate::kind::Http;
use crate::on_tokio;
use crate::on_volt;
use crate::peers::smol;
use crate::registry::Row;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = vec![
        Row::new("http/hello_64", "hello over 64 kept-alive connections (per request)")
            .headline()
            .volt("volt", serve::<on_volt::Multi, 64>)
            .peer("tokio", serve::<on_tokio::Multi, 64>)
            .peer("async-io", serve::<smol::Multi, 64>)
            .floor("hyper on epoll", serve_bare::<1, 64>)
            .floor("hyper on 2 epolls", serve_bare::<2, 64>)
            .floor("raw epoll", load::floor::<64>)
            .but("one thread, fixed bytes, no HTTP library"),
        Row::new("http/hello_1", "hello over one kept-alive connection (per request)")
            .why(
                "one request is under way at a time, so almost all of a round trip is two wake-ups by the kernel and hyper's \
                 own work; the rest decides, and it is small",
            )
            .volt("volt", serve::<on_volt::Multi, 1>)
            .peer("tokio", serve::<on_tokio::Multi, 1>)
            .peer("async-io", serve::<smol::Multi, 1>)
            .floor("hyper on epoll", serve_bare::<1, 1>)
            .floor("raw epoll", load::floor::<1>)
            .but("one thread, fixed bytes, no HTTP library"),
    ];
    if wrk_is_here() {
        rows.push(
            Row::new("http/hello_wrk", "hello under wrk -t1 -c64 (per request)")
                .long()
                .why(
                    "wrk is the limit: its one thread has a processor of its own for all of the time, and an epoll loop that answers \
                     fixed bytes is hardly further ahead of Tokio; a second thread of such a loop makes it slower",
                )
                .volt("volt", serve_wrk::<on_volt::Multi>)
                .peer("tokio", serve_wrk::<on_tokio::Multi>)
                .peer("async-io", serve_wrk::<smol::Multi>)
                .floor("hyper on epoll", serve_wrk_bare::<1>)
                .floor("hyper on 2 epolls", serve_wrk_bare::<2>)
                .floor("raw epoll", serve_wrk_raw)
                .but("one thread, fixed bytes, no HTTP library"),
        );
    }
    rows
}

/// hyper's server on a runtime of its own.
fn start<R: Http>() -> (R, SocketAddr) {
    let runtime = R::start();
    let (mut listener, address) = runtime.block_on(R::listen());
    R::detach(runtime.spawn_outside(async move {
        loop {
            let io = R::io(R::accept(&mut listener).await);
            R::detach(R::spawn(connection(io)));
        }
    }));
    (runtime, address)
}

/// Answers the requests of one connection.
///
/// A generator that closes its connections in the middle of a response is no failure; that responses
/// are right is checked by ours.
async fn connection(io: impl hyper::rt::Read + hyper::rt::Write + Unpin) {
    let service = hyper::service::service_fn(hello);
    drop(hyper::server::conn::http1::Builder::new().serve_connection(io, service).await);
}

fn wrk_is_here() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join("wrk").is_file())
}

/// Loads the server of a runtime with a process of `wrk` for a second.
fn serve_wrk<R: Http>(b: &mut Bench) {
    if b.rehearsal() {
        return;
    }
    let (runtime, address) = start::<R>();
    load_with_wrk(b, address);
    std::mem::forget(runtime);
}

/// The same with no runtime.
fn serve_wrk_bare<const THREADS: usize>(b: &mut Bench) {
    if !b.rehearsal() {
        load_with_wrk(b, bare::serve(THREADS, connection));
    }
}

/// The same with no HTTP library either: what `wrk` itself takes.
fn serve_wrk_raw(b: &mut Bench) {
    if !b.rehearsal() {
        load_with_wrk(b, bare::serve(1, load::fixed));
    }
}

fn load_with_wrk(b: &mut Bench, address: SocketAddr) {
    let output = std::process::Command::new("wrk")
        .args(["-t1", "-c64", "-d1s", &format!("http://{address}/hello")])
        .output()
        .expect("wrk starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !text.contains("Non-2xx"), "{text}");
    let rate = text
        .lines()
        .find_map(|l| l.trim().strip_prefix("Requests/sec:")?.trim().parse::<f64>().ok());
    let rate = rate.unwrap_or_else(|| panic!("wrk tells no rate: {text}"));
    b.value(1e9 / rate);
    b.extra("requests_per_second", rate);
}

/// What every server answers.
const HELLO: &[u8] = b"Hello, World!";

/// Loads the server with a thread of ours and reports the time for each request.
fn serve<R: Http, const CONNECTIONS: usize>(b: &mut Bench) {
    let (runtime, address) = start::<R>();
    let mut load = load::Load::connect(address, CONNECTIONS);
    b.iter_ops(CONNECTIONS as u64, |n| load.run(n));
    drop(load);
    // Ends with the process: its tasks still wait for connections.
    std::mem::forget(runtime);
}

/// The same with no runtime.
fn serve_bare<const THREADS: usize, const CONNECTIONS: usize>(b: &mut Bench) {
    let mut load = load::Load::connect(bare::serve(THREADS, connection), CONNECTIONS);
    b.iter_ops(CONNECTIONS as u64, |n| load.run(n));
}

/// The handler of every runtime.
async fn hello(request: Request<hyper::body::Incoming>) -> Result<Response<Text>, Infallible> {
    assert_eq!(request.uri().path(), "/hello");
    Ok(Response::new(Text(Some(Bytes::from_static(HELLO)))))
}

/// A body of one piece.
struct Text(Option<Bytes>);

impl Body for Text {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
