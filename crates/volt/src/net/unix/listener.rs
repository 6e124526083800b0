//! Accepting connections between processes of one machine.
#![forbid(unsafe_code)]

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::task::{Context, Poll, ready};

use socket2::SockRef;

use super::addr::{address, from_path};
use super::{SocketAddr, UnixStream};
use crate::io::{Evented, Interest};
use crate::reactor::{Direction, Handle, Start};

/// Accepts connections at a path, or at an abstract address.
///
/// Dropping it leaves the file at the path.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use volt::net::{UnixListener, UnixStream};
///
/// let path = std::env::temp_dir().join(format!("volt-doc-{}", std::process::id()));
/// let listener = UnixListener::bind(&path)?;
/// let client = UnixStream::connect(&path).await?;
/// let (server, _) = listener.accept().await?;
/// assert_eq!(client.peer_addr()?.as_pathname(), Some(path.as_path()));
/// # drop(server);
/// # std::fs::remove_file(&path)
/// # })
/// # }
/// ```
pub struct UnixListener {
    io: Evented<mio::net::UnixListener>,
}

crate::net::share::descriptor!(UnixListener);

impl UnixListener {
    /// Listens at `path`, where nothing may be yet.
    ///
    /// On Linux a path that begins with a NUL is not one, but an abstract name: the bytes behind it.
    ///
    /// # Errors
    /// Whatever `bind(2)` reports; [`InvalidInput`](io::ErrorKind::InvalidInput) if the path is too
    /// long for an address, or has a NUL in it elsewhere.
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
    /// let listener = volt::net::UnixListener::bind(&path)?;
    /// assert_eq!(listener.local_addr()?.as_pathname(), Some(path.as_path()));
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn bind<P: AsRef<Path>>(path: P) -> io::Result<Self> {
        Self::new(
            "UnixListener::bind",
            mio::net::UnixListener::bind_addr(&from_path(path.as_ref())?)?,
        )
    }

    /// Listens at an address, which may be abstract (Linux).
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
    /// let address = std::os::unix::net::SocketAddr::from_pathname(&path)?;
    /// let listener = volt::net::UnixListener::bind_addr(&address.into())?;
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn bind_addr(addr: &SocketAddr) -> io::Result<Self> {
        Self::new("UnixListener::bind_addr", mio::net::UnixListener::bind_addr(&addr.0)?)
    }

    #[track_caller]
    pub(super) fn new(caller: &'static str, io: mio::net::UnixListener) -> io::Result<Self> {
        let handle = Handle::current(caller);
        Ok(Self { io: Evented::new(handle, io, Interest::READABLE, Start::Open)? })
    }

    /// The next connection, and its address.
    ///
    /// # Errors
    /// As [`TcpListener::accept`](crate::net::TcpListener::accept); the listener stays usable.
    ///
    /// # Cancel safety
    /// Safe: no connection is lost.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("socket");
    /// let listener = volt::net::UnixListener::bind(&path)?;
    /// let client = volt::net::UnixStream::connect(&path).await?;
    /// let (stream, from) = listener.accept().await?;
    /// assert!(from.is_unnamed());
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let (io, from) =
            self.io.registration().async_io(Interest::READABLE, || self.try_accept()).await?;
        Ok((UnixStream::open("UnixListener::accept", io)?, from))
    }

    /// [`accept`](Self::accept) for hand-written futures. Only the task that polled last is woken.
    ///
    /// # Errors
    /// As `accept`.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("socket");
    /// let listener = volt::net::UnixListener::bind(&path)?;
    /// let client = volt::net::UnixStream::connect(&path).await?;
    /// let (stream, _) = std::future::poll_fn(|cx| listener.poll_accept(cx)).await?;
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(UnixStream, SocketAddr)>> {
        let (io, from) =
            ready!(self.io.registration().poll_io(Direction::Read, cx, |_| self.try_accept()))?;
        Poll::Ready(Ok((UnixStream::open("UnixListener::poll_accept", io)?, from)))
    }

    /// Not by `mio`, which drops a connection from a path of 108 bytes, of which the standard library lets nobody make an
    /// address: so any client could end a server that takes an error for the end.
    fn try_accept(&self) -> io::Result<(mio::net::UnixStream, SocketAddr)> {
        let (socket, from) = SockRef::from(&*self.io).accept()?;
        socket.set_nonblocking(true)?;
        let stream = std::os::unix::net::UnixStream::from(OwnedFd::from(socket));
        let mut address = address(&from)?;
        if address.is_unnamed() && from.as_pathname().is_some() {
            // The library makes such an address of its own system call, if the peer is still there.
            address = stream.peer_addr().map_or(address, SocketAddr::from);
        }
        Ok((mio::net::UnixStream::from_std(stream), address))
    }

    /// Takes over a listener of the standard library, which must be non-blocking.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if it is in blocking mode; if it cannot be
    /// registered.
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
    /// let listener = std::os::unix::net::UnixListener::bind(&path)?;
    /// listener.set_nonblocking(true)?;
    /// let listener = volt::net::UnixListener::from_std(listener)?;
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn from_std(listener: std::os::unix::net::UnixListener) -> io::Result<Self> {
        crate::net::check_nonblocking(&listener)?;
        Self::new("UnixListener::from_std", mio::net::UnixListener::from_std(listener))
    }

    /// Gives the listener back to the standard library, in non-blocking mode.
    ///
    /// # Errors
    /// If it cannot be taken out of the reactor.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("socket");
    /// let listener = volt::net::UnixListener::bind(&path)?;
    /// let listener: std::os::unix::net::UnixListener = listener.into_std()?;
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn into_std(self) -> io::Result<std::os::unix::net::UnixListener> {
        self.io.into_inner().map(Into::into)
    }

    /// The address that it listens at.
    ///
    /// # Errors
    /// Whatever `getsockname(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("socket");
    /// let listener = volt::net::UnixListener::bind(&path)?;
    /// assert_eq!(listener.local_addr()?.as_pathname(), Some(path.as_path()));
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr().map(SocketAddr)
    }

    /// Takes the error that the socket has recorded, if any (`SO_ERROR`).
    ///
    /// # Errors
    /// Whatever `getsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("socket");
    /// let listener = volt::net::UnixListener::bind(&path)?;
    /// assert!(listener.take_error()?.is_none());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.io.take_error()
    }
}

impl TryFrom<std::os::unix::net::UnixListener> for UnixListener {
    type Error = io::Error;

    /// As [`UnixListener::from_std`].
    #[track_caller]
    fn try_from(listener: std::os::unix::net::UnixListener) -> io::Result<Self> {
        Self::from_std(listener)
    }
}
