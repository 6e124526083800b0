//! Returns to each client what it sends.
//!
//! `cargo run --release --example tcp_echo -- 127.0.0.1:7000`, then `nc 127.0.0.1 7000`.
//! Without an address it listens at 127.0.0.1:7000; port 0 lets the system choose.

use std::io;
use std::time::Duration;

use volt::io::{AsyncReadExt, AsyncWriteExt};
use volt::net::{TcpListener, TcpStream};

async fn echo(mut client: TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut buf = vec![0; 16 * 1024];
    loop {
        match client.read(&mut buf).await? {
            0 => return client.shutdown().await,
            count => client.write_all(&buf[..count]).await?,
        }
    }
}

async fn serve(address: String) -> io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        match listener.accept().await {
            Ok((client, from)) => {
                drop(volt::spawn(async move {
                    if let Err(error) = echo(client).await {
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
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7000".to_owned());
    volt::runtime::Runtime::new()?.block_on(serve(address))
}
