//! Returns to each client what it sends.
//!
//! `cargo run --release --example tcp_echo -- 127.0.0.1:7000`, then `nc 127.0.0.1 7000`.
//! Without an address it listens at 127.0.0.1:7000; port 0 lets the system choose. Ctrl-c ends it:
//! what clients have sent by then is still returned.

#[path = "support/serve.rs"]
mod serve;

use std::io;
use std::process::ExitCode;

use volt::io::{AsyncReadExt, AsyncWriteExt};
use volt::net::TcpStream;

async fn echo(mut client: TcpStream, mut stopping: serve::Stopping) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut buf = vec![0; 16 * 1024];
    loop {
        let count = volt::select! {
            biased;
            count = client.read(&mut buf) => count?,
            _ = stopping.wait_for(|stopping| *stopping) => 0,
        };
        match count {
            0 => return client.shutdown().await,
            count => client.write_all(&buf[..count]).await?,
        }
    }
}

fn main() -> ExitCode {
    let mut arguments = match serve::arguments(1, "tcp_echo [ADDRESS:PORT]") {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:7000".to_owned());
    serve::exit(volt::run(serve::serve(&address, "", echo)))
}
