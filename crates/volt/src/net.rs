//! TCP, UDP and unix-domain sockets.
//!
//! Names and semantics are Tokio's. A socket belongs to the runtime in which it was made, and works
//! in any task; its operations try the system call first and wait only when it would block, or when as
//! far as is known it would. So a future that is polled once and is pending does not say that nothing
//! is there: the `try_` functions ask the system.
//!
//! # Panics
//! Whatever makes a socket panics outside a runtime.
//!
//! # Examples
//! ```
//! use volt::io::{AsyncReadExt, AsyncWriteExt};
//! use volt::net::{TcpListener, TcpStream};
//!
//! volt::run(async {
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     let address = listener.local_addr()?;
//!     let echo = volt::spawn(async move {
//!         let (mut client, _) = listener.accept().await?;
//!         let (mut reader, mut writer) = client.split();
//!         volt::io::copy(&mut reader, &mut writer).await
//!     });
//!     let mut stream = TcpStream::connect(address).await?;
//!     stream.write_all(b"hello").await?;
//!     stream.shutdown().await?;
//!     let mut answer = String::new();
//!     stream.read_to_string(&mut answer).await?;
//!     assert_eq!(answer, "hello");
//!     assert_eq!(echo.await.unwrap()?, 5);
//!     std::io::Result::Ok(())
//! })
//! .unwrap();
//! ```

mod addr;
mod datagram;
mod share;
pub mod split;
mod stream;
pub mod tcp;
mod udp;
#[cfg(unix)]
pub mod unix;

pub use self::addr::{ToSocketAddrs, lookup_host};
pub use self::tcp::{TcpListener, TcpSocket, TcpStream};
pub use self::udp::UdpSocket;
#[cfg(unix)]
pub use self::unix::{UnixDatagram, UnixListener, UnixSocket, UnixStream};

/// An error unless a descriptor that comes from outside is non-blocking: one that blocks would stop
/// a worker.
#[cfg(unix)]
fn check_nonblocking(fd: &impl std::os::fd::AsFd) -> std::io::Result<()> {
    if socket2::SockRef::from(fd).nonblocking()? {
        return Ok(());
    }
    Err(std::io::Error::new(
        std::io::ErrorKind::InvalidInput,
        "the socket is in blocking mode: call `set_nonblocking(true)` before `from_std`",
    ))
}

/// Windows cannot tell whether a socket is non-blocking.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "as on other platforms")]
fn check_nonblocking<T>(_: &T) -> std::io::Result<()> {
    Ok(())
}
