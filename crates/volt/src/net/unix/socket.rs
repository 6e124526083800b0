//! A unix socket before it is connected, listens, or is a datagram socket.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::path::Path;

use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use super::{UnixDatagram, UnixListener, UnixStream};
use crate::reactor::Handle;

/// A unix socket that is neither connected nor listening yet.
///
/// Unlike [`UnixListener::bind`] it lets the caller choose the backlog, and unlike
/// [`UnixStream::connect`] the client's own path.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// # let directory = tempfile::tempdir()?;
/// # let (path, own) = (directory.path().join("server"), directory.path().join("client"));
/// use volt::net::UnixSocket;
///
/// let socket = UnixSocket::new_stream()?;
/// socket.bind(&path)?;
/// let listener = socket.listen(16)?;
///
/// let socket = UnixSocket::new_stream()?;
/// socket.bind(&own)?;
/// let client = socket.connect(&path).await?;
/// let (_, from) = listener.accept().await?;
/// assert_eq!(from.as_pathname(), Some(own.as_path()));
/// # Ok(()) })
/// # }
/// ```
pub struct UnixSocket {
    socket: Socket,
}

impl UnixSocket {
    /// A stream socket, to [connect](Self::connect) or to [listen](Self::listen).
    ///
    /// # Errors
    /// Whatever `socket(2)` reports.
    ///
    /// # Examples
    /// ```
    /// let socket = volt::net::UnixSocket::new_stream()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new_stream() -> io::Result<Self> {
        Self::new(Type::STREAM)
    }

    /// A datagram socket, see [`datagram`](Self::datagram).
    ///
    /// # Errors
    /// Whatever `socket(2)` reports.
    ///
    /// # Examples
    /// ```
    /// let socket = volt::net::UnixSocket::new_datagram()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new_datagram() -> io::Result<Self> {
        Self::new(Type::DGRAM)
    }

    fn new(kind: Type) -> io::Result<Self> {
        let socket = Socket::new(Domain::UNIX, kind, None)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }

    /// Gives the socket an address, where nothing may be yet. The path may be an abstract name as for
    /// [`UnixListener::bind`].
    ///
    /// # Errors
    /// Whatever `bind(2)` reports; `InvalidInput` if the path is too long for an address.
    ///
    /// # Examples
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("socket");
    /// let socket = volt::net::UnixSocket::new_stream()?;
    /// socket.bind(&path)?;
    /// assert!(path.exists());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn bind(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.socket.bind(&SockAddr::unix(path)?)
    }

    /// Listens, with room for `backlog` connections that nobody has accepted.
    ///
    /// # Errors
    /// One of the kind `Other` for a datagram socket; whatever `listen(2)` reports.
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("socket");
    /// use volt::net::{UnixSocket, UnixStream};
    ///
    /// let socket = UnixSocket::new_stream()?;
    /// socket.bind(&path)?;
    /// let listener = socket.listen(16)?;
    /// let _client = UnixStream::connect(&path).await?;
    /// listener.accept().await?;
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn listen(self, backlog: u32) -> io::Result<UnixListener> {
        self.check(Type::STREAM, "a datagram socket cannot listen")?;
        self.socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        let io = mio::net::UnixListener::from_std(OwnedFd::from(self.socket).into());
        UnixListener::new("UnixSocket::listen", io)
    }

    /// Connects to the socket at `path`, which may be an abstract name as for [`UnixStream::connect`].
    ///
    /// # Errors
    /// One of the kind `Other` for a datagram socket; as [`UnixStream::connect`].
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Cancel safety
    /// Safe: the attempt is given up.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("socket");
    /// use volt::net::{UnixListener, UnixSocket};
    ///
    /// let nobody = UnixSocket::new_stream()?.connect(&path).await.unwrap_err();
    /// assert_eq!(nobody.kind(), std::io::ErrorKind::NotFound);
    /// let _listener = UnixListener::bind(&path)?;
    /// let client = UnixSocket::new_stream()?.connect(&path).await?;
    /// assert_eq!(client.peer_addr()?.as_pathname(), Some(path.as_path()));
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
    pub async fn connect(self, path: impl AsRef<Path>) -> io::Result<UnixStream> {
        let handle = Handle::current("UnixSocket::connect");
        self.check(Type::STREAM, "a datagram socket cannot connect as a stream")?;
        match self.socket.connect(&SockAddr::unix(path)?) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        let io = mio::net::UnixStream::from_std(OwnedFd::from(self.socket).into());
        UnixStream::finish_connect(handle, io).await
    }

    /// The socket as a datagram socket.
    ///
    /// # Errors
    /// One of the kind `Other` for a stream socket; if it cannot be registered.
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
    /// use volt::net::{UnixDatagram, UnixSocket};
    ///
    /// let socket = UnixSocket::new_datagram()?;
    /// socket.bind(&path)?;
    /// let server = socket.datagram()?;
    /// UnixDatagram::unbound()?.send_to(b"hello", &path).await?;
    /// assert_eq!(server.recv(&mut [0; 16]).await?, 5);
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn datagram(self) -> io::Result<UnixDatagram> {
        self.check(Type::DGRAM, "a stream socket is no datagram socket")?;
        let io = mio::net::UnixDatagram::from_std(OwnedFd::from(self.socket).into());
        UnixDatagram::new("UnixSocket::datagram", io)
    }

    fn check(&self, wanted: Type, otherwise: &'static str) -> io::Result<()> {
        if self.socket.r#type()? == wanted {
            return Ok(());
        }
        Err(io::Error::other(otherwise))
    }
}

impl fmt::Debug for UnixSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SockRef::from(&self.socket).fmt(f)
    }
}

impl AsRawFd for UnixSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsFd for UnixSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl IntoRawFd for UnixSocket {
    fn into_raw_fd(self) -> RawFd {
        self.socket.into_raw_fd()
    }
}

impl FromRawFd for UnixSocket {
    /// Takes over a unix socket, which must be non-blocking.
    ///
    /// # Safety
    /// 1. `fd` is open, and the caller's to give away.
    unsafe fn from_raw_fd(fd: RawFd) -> Self {
        // SAFETY: (1) by the caller's promise.
        Self { socket: unsafe { Socket::from_raw_fd(fd) } }
    }
}
