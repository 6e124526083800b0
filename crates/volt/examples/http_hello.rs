//! An HTTP/1.1 server: hyper on Volt's executor, timer and sockets.
//!
//! `cargo run --release --example http_hello -- 127.0.0.1:8080 [WORKERS]`, then
//! `curl http://127.0.0.1:8080/` or `wrk -t1 -c64 -d5 http://127.0.0.1:8080/`.
//! Without an address it listens at 127.0.0.1:8080; port 0 lets the system choose. Ctrl-c ends it:
//! requests under way are still answered.

#[path = "support/serve.rs"]
mod serve;

use std::convert::Infallible;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use volt::hyper::VoltTimer;
use volt::net::TcpStream;

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"Hello, Volt!\n"))))
}

async fn connection(
    client: TcpStream,
    mut stopping: serve::Stopping,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    client.set_nodelay(true)?;
    let mut http = http1::Builder::new();
    http.timer(VoltTimer::new()).header_read_timeout(Duration::from_secs(30));
    let mut serving = pin!(http.serve_connection(client, service_fn(hello)));
    volt::select! {
        result = serving.as_mut() => return Ok(result?),
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
    serving.as_mut().graceful_shutdown();
    Ok(serving.await?)
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let mut builder = volt::runtime::Builder::new_multi_thread();
    if let Some(workers) = arguments.next() {
        match workers.parse() {
            Ok(workers) if workers > 0 => _ = builder.worker_threads(workers),
            _ => {
                return Err(format!("the number of workers is {workers:?}, not a positive number"));
            }
        }
    }
    let runtime = builder.enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start the runtime: {error}"))?;
    runtime.block_on(serve::serve(&address, "http://", connection))
}

fn main() -> ExitCode {
    match serve::arguments(2, "http_hello [ADDRESS:PORT [WORKERS]]") {
        Ok(arguments) => serve::exit(run(arguments)),
        Err(code) => code,
    }
}
