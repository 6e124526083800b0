//! Datagrams between processes of one machine.
#![forbid(unsafe_code)]

use std::io;
use std::net::Shutdown;
use std::path::Path;
use std::task::{Context, Poll};

use super::SocketAddr;
use super::addr::address;
use crate::io::{Evented, Interest};
use crate::reactor::Direction;

/// A socket for datagrams between processes of one machine: in order, none lost.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// let (a, b) = volt::net::UnixDatagram::pair()?;
/// a.send(b"hello").await?;
/// let mut buf = [0; 16];
/// assert_eq!(b.recv(&mut buf).await?, 5);
/// # Ok(()) })
/// # }
/// ```
pub struct UnixDatagram {
    io: Evented<mio::net::UnixDatagram>,
}

crate::net::datagram::datagram!(
    UnixDatagram,
    std::os::unix::net::UnixDatagram,
    SocketAddr,
    address,
    "let (a, b) = volt::net::UnixDatagram::pair()?;\n"
);

impl UnixDatagram {
    /// A socket at `path`, where nothing may be yet.
    ///
    /// # Errors
    /// Whatever `bind(2)` reports.
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("socket");
    /// let socket = volt::net::UnixDatagram::bind(&path)?;
    /// assert_eq!(socket.local_addr()?.as_pathname(), Some(path.as_path()));
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<Self> {
        Self::new("UnixDatagram::bind", mio::net::UnixDatagram::bind(path)?)
    }

    /// Two sockets that are connected to each other.
    ///
    /// # Errors
    /// Whatever `socketpair(2)` reports.
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let (a, b) = volt::net::UnixDatagram::pair()?;
    /// a.send(b"hello").await?;
    /// assert_eq!(b.recv(&mut [0; 16]).await?, 5);
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = mio::net::UnixDatagram::pair()?;
        Ok((Self::new("UnixDatagram::pair", a)?, Self::new("UnixDatagram::pair", b)?))
    }

    /// A socket without an address: nobody can reply to it.
    ///
    /// # Errors
    /// Whatever `socket(2)` reports.
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("socket");
    /// use volt::net::UnixDatagram;
    /// let server = UnixDatagram::bind(&path)?;
    /// let client = UnixDatagram::unbound()?;
    /// client.send_to(b"hello", &path).await?;
    /// let (_, from) = server.recv_from(&mut [0; 16]).await?;
    /// assert!(from.is_unnamed());
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn unbound() -> io::Result<Self> {
        Self::new("UnixDatagram::unbound", mio::net::UnixDatagram::unbound()?)
    }

    /// Fixes the peer for [`send`](Self::send) and [`recv`](Self::recv).
    ///
    /// # Errors
    /// Whatever `connect(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("socket");
    /// use volt::net::UnixDatagram;
    /// let server = UnixDatagram::bind(&path)?;
    /// let client = UnixDatagram::unbound()?;
    /// client.connect(&path)?;
    /// client.send(b"hello").await?;
    /// assert_eq!(server.recv(&mut [0; 16]).await?, 5);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn connect<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        self.io.connect(path)
    }

    /// Shuts one or both directions down.
    ///
    /// # Errors
    /// Whatever `shutdown(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let (a, b) = volt::net::UnixDatagram::pair()?;
    /// a.shutdown(std::net::Shutdown::Both)?;
    /// assert!(b.send(b"hello").await.is_err());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.io.shutdown(how)
    }

    /// Sends to the socket at `target`.
    ///
    /// While the queue of that one is full, Linux says again and again that this one has room, and each time it is tried. If that may
    /// be so for long, [`connect`](Self::connect) and [`send`](Self::send): then it says so once there is room.
    ///
    /// # Errors
    /// Whatever `sendto(2)` reports.
    ///
    /// # Cancel safety
    /// Safe: a send that is dropped has sent nothing.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("socket");
    /// use volt::net::UnixDatagram;
    /// let server = UnixDatagram::bind(&path)?;
    /// let client = UnixDatagram::unbound()?;
    /// client.send_to(b"hello", &path).await?;
    /// assert_eq!(server.recv(&mut [0; 16]).await?, 5);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn send_to<P: AsRef<Path>>(&self, buf: &[u8], target: P) -> io::Result<usize> {
        let target = target.as_ref();
        let send = || self.io.send_to(buf, target);
        self.io.registration().async_io(Interest::WRITABLE, send).await
    }

    /// [`send_to`](Self::send_to) for hand-written futures.
    ///
    /// # Errors
    /// As `send_to`.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("socket");
    /// use volt::net::UnixDatagram;
    /// let server = UnixDatagram::bind(&path)?;
    /// let client = UnixDatagram::unbound()?;
    /// std::future::poll_fn(|cx| client.poll_send_to(cx, b"hello", &path)).await?;
    /// assert_eq!(server.recv(&mut [0; 16]).await?, 5);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn poll_send_to<P: AsRef<Path>>(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        target: P,
    ) -> Poll<io::Result<usize>> {
        let target = target.as_ref();
        self.io.registration().poll_io(Direction::Write, cx, |_| self.io.send_to(buf, target))
    }

    /// [`send_to`](Self::send_to) without waiting.
    ///
    /// # Errors
    /// As `send_to`, and [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("socket");
    /// use volt::net::UnixDatagram;
    /// let server = UnixDatagram::bind(&path)?;
    /// let client = UnixDatagram::unbound()?;
    /// client.try_send_to(b"hello", &path)?;
    /// assert_eq!(server.recv(&mut [0; 16]).await?, 5);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn try_send_to<P: AsRef<Path>>(&self, buf: &[u8], target: P) -> io::Result<usize> {
        self.io.registration().try_io(Interest::WRITABLE, || self.io.send_to(buf, target))
    }
}
