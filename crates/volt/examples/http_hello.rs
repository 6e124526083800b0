//! An HTTP/1.1 server: hyper on Volt's executor, timer and sockets.
//!
//! `cargo run --release --example http_hello -- 127.0.0.1:8080 [WORKERS]`, then
//! `curl http://127.0.0.1:8080/` or `wrk -t1 -c64 -d5 http://127.0.0.1:8080/`.
//! Without an address it listens at 127.0.0.1:8080; port 0 lets the system choose.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use volt::hyper::VoltTimer;
use volt::net::{TcpListener, TcpStream};

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"Hello, Volt!\n"))))
}

async fn connection(client: TcpStream) -> Result<(), hyper::Error> {
    let mut http = http1::Builder::new();
    http.timer(VoltTimer::new()).header_read_timeout(Duration::from_secs(30));
    http.serve_connection(client, service_fn(hello)).await
}

async fn serve(address: String) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    loop {
        match listener.accept().await {
            Ok((client, from)) => {
                client.set_nodelay(true)?;
                drop(volt::spawn(async move {
                    if let Err(error) = connection(client).await {
                        eprintln!("{from}: {error}");
                    }
                }));
            }
            Err(error) => {
                // Out of descriptors, for one: let some clients finish.
                eprintln!("accept: {error}");
                volt::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let mut builder = volt::runtime::Builder::new_multi_thread();
    if let Some(workers) = arguments.next().and_then(|workers| workers.parse().ok()) {
        builder.worker_threads(workers);
    }
    builder.enable_all().build()?.block_on(serve(address))
}
