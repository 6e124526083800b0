//! A connection between processes of one machine.
#![forbid(unsafe_code)]

use std::io;
use std::path::Path;

use super::addr::from_path;
use super::{
    OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, SocketAddr, UCred, WriteHalf, ucred,
};
use crate::io::Evented;
use crate::net::{split, stream};
use crate::reactor::Handle;

/// A connection between processes of one machine.
///
/// Reading and writing as for a [`TcpStream`](crate::net::TcpStream).
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use volt::io::{AsyncReadExt, AsyncWriteExt};
/// use volt::net::UnixStream;
///
/// let (mut a, mut b) = UnixStream::pair()?;
/// a.write_all(b"hello").await?;
/// drop(a);
/// let mut all = String::new();
/// b.read_to_string(&mut all).await?;
/// assert_eq!(all, "hello");
/// # Ok(()) })
/// # }
/// ```
pub struct UnixStream {
    io: Evented<mio::net::UnixStream>,
}

crate::net::stream::stream!(UnixStream, "let (a, b) = volt::net::UnixStream::pair()?;\n");

impl UnixStream {
    /// Connects to the socket at `path`.
    ///
    /// On Linux a path that begins with a NUL is not one, but an abstract name: the bytes behind it.
    ///
    /// # Errors
    /// Whatever `connect(2)` reports; [`WouldBlock`](io::ErrorKind::WouldBlock) if the listener's
    /// queue is full; [`InvalidInput`](io::ErrorKind::InvalidInput) if the path is too long for an
    /// address, or has a NUL in it elsewhere.
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Cancel safety
    /// Safe: the attempt is given up.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("socket");
    /// let listener = volt::net::UnixListener::bind(&path)?;
    /// let stream = volt::net::UnixStream::connect(&path).await?;
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn connect<P: AsRef<Path>>(path: P) -> io::Result<Self> {
        let handle = Handle::current("UnixStream::connect");
        Self::finish_connect(
            handle,
            mio::net::UnixStream::connect_addr(&from_path(path.as_ref())?)?,
        )
        .await
    }

    /// Connects to a socket by its address, which may be abstract (Linux).
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
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
    /// let stream = volt::net::UnixStream::connect_addr(&listener.local_addr()?).await?;
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn connect_addr(addr: &SocketAddr) -> io::Result<Self> {
        let handle = Handle::current("UnixStream::connect_addr");
        Self::finish_connect(handle, mio::net::UnixStream::connect_addr(&addr.0)?).await
    }

    #[track_caller]
    pub(super) fn open(caller: &'static str, io: mio::net::UnixStream) -> io::Result<Self> {
        Ok(Self { io: Evented::open(caller, io, stream::EXTRA)? })
    }

    /// Two streams that are connected to each other.
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
    /// let (a, b) = volt::net::UnixStream::pair()?;
    /// a.try_write(b"hello")?;
    /// b.readable().await?;
    /// assert_eq!(b.try_read(&mut [0; 16])?, 5);
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = mio::net::UnixStream::pair()?;
        Ok((Self::open("UnixStream::pair", a)?, Self::open("UnixStream::pair", b)?))
    }

    /// Takes over a connected stream of the standard library, which must be non-blocking.
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
    /// let (a, b) = std::os::unix::net::UnixStream::pair()?;
    /// a.set_nonblocking(true)?;
    /// let a = volt::net::UnixStream::from_std(a)?;
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn from_std(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        crate::net::check_nonblocking(&stream)?;
        Self::open("UnixStream::from_std", mio::net::UnixStream::from_std(stream))
    }

    /// Gives the stream back to the standard library, in non-blocking mode.
    ///
    /// # Errors
    /// If it cannot be taken out of the reactor.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let (a, b) = volt::net::UnixStream::pair()?;
    /// let a: std::os::unix::net::UnixStream = a.into_std()?;
    /// a.set_nonblocking(false)?;
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn into_std(self) -> io::Result<std::os::unix::net::UnixStream> {
        self.io.into_inner().map(Into::into)
    }

    /// This end's address.
    ///
    /// # Errors
    /// Whatever `getsockname(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let (a, b) = volt::net::UnixStream::pair()?;
    /// assert!(a.local_addr()?.is_unnamed());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr().map(SocketAddr)
    }

    /// The other end's address.
    ///
    /// # Errors
    /// Whatever `getpeername(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let (a, b) = volt::net::UnixStream::pair()?;
    /// assert!(a.peer_addr()?.is_unnamed());
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.peer_addr().map(SocketAddr)
    }

    /// Who the other end was when it connected.
    ///
    /// # Errors
    /// Whatever `getsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let (a, b) = volt::net::UnixStream::pair()?;
    /// assert_eq!(a.peer_cred()?, b.peer_cred()?);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn peer_cred(&self) -> io::Result<UCred> {
        ucred::of(self)
    }
}

impl TryFrom<std::os::unix::net::UnixStream> for UnixStream {
    type Error = io::Error;

    /// As [`UnixStream::from_std`].
    #[track_caller]
    fn try_from(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        Self::from_std(stream)
    }
}

/// What halves have besides: addresses.
macro_rules! addresses {
    ($($half:ty),*) => {$(
        impl $half {
            /// The other end's address.
            ///
            /// ```
            /// # volt::run(async {
            /// let (mut a, _b) = volt::net::UnixStream::pair()?;
            /// let (reader, writer) = a.split();
            /// assert!(reader.peer_addr()?.is_unnamed() && writer.peer_addr()?.is_unnamed());
            /// # std::io::Result::Ok(())
            /// # }).unwrap();
            /// ```
            ///
            /// # Errors
            /// As [`UnixStream::peer_addr`].
            pub fn peer_addr(&self) -> io::Result<SocketAddr> {
                self.as_ref().peer_addr()
            }

            /// This end's address.
            ///
            /// ```
            /// # volt::run(async {
            /// let (a, _b) = volt::net::UnixStream::pair()?;
            /// let (reader, writer) = a.into_split();
            /// assert!(reader.local_addr()?.is_unnamed() && writer.local_addr()?.is_unnamed());
            /// # std::io::Result::Ok(())
            /// # }).unwrap();
            /// ```
            ///
            /// # Errors
            /// As [`UnixStream::local_addr`].
            pub fn local_addr(&self) -> io::Result<SocketAddr> {
                self.as_ref().local_addr()
            }
        }
    )*};
}

addresses!(
    split::ReadHalf<'_, UnixStream>,
    split::WriteHalf<'_, UnixStream>,
    split::OwnedReadHalf<UnixStream>,
    split::OwnedWriteHalf<UnixStream>
);
