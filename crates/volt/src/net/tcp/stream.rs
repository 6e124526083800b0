//! A TCP connection.
#![forbid(unsafe_code)]

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::ReadBuf;

use super::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
use crate::io::{Evented, Interest};
use crate::net::addr::{ToSocketAddrs, try_each};
use crate::net::{split, stream};
use crate::reactor::{Direction, Handle, Start};

/// A TCP connection.
///
/// Reading and writing are [`AsyncRead`](crate::io::AsyncRead) and
/// [`AsyncWrite`](crate::io::AsyncWrite), with the methods of
/// [`AsyncReadExt`](crate::io::AsyncReadExt) and [`AsyncWriteExt`](crate::io::AsyncWriteExt).
/// Dropping the stream closes it.
///
/// Cost: a read or write is one system call when it need not wait. A read that finds less than it
/// has room for makes the next one wait at once, without asking. Memory: 64 bytes besides the
/// stream, in chunks of 64.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use volt::io::{AsyncReadExt, AsyncWriteExt};
/// use volt::net::{TcpListener, TcpStream};
///
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let mut client = TcpStream::connect(listener.local_addr()?).await?;
/// let (mut server, _) = listener.accept().await?;
///
/// client.write_all(b"hello").await?;
/// client.shutdown().await?;
/// let mut all = String::new();
/// server.read_to_string(&mut all).await?;
/// assert_eq!(all, "hello");
/// # Ok(()) })
/// # }
/// ```
pub struct TcpStream {
    pub(super) io: Evented<mio::net::TcpStream>,
}

crate::net::stream::stream!(
    TcpStream,
    "# let listener = volt::net::TcpListener::bind(\"127.0.0.1:0\").await?;
# let a = volt::net::TcpStream::connect(listener.local_addr()?).await?;
# let (b, _) = listener.accept().await?;
// `a` and `b` are the two ends of a connection.
"
);

impl TcpStream {
    /// Connects to `addr`; if it stands for several addresses, to the first that accepts.
    ///
    /// # Errors
    /// If the name cannot be resolved, or as the last address tried reports.
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
    /// use volt::net::{TcpListener, TcpStream};
    ///
    /// let listener = TcpListener::bind("127.0.0.1:0").await?;
    /// let port = listener.local_addr()?.port();
    /// // By its name: if that has an IPv6 address, too, where nobody listens, the other one is tried.
    /// let stream = TcpStream::connect(("localhost", port)).await?;
    /// assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn connect<A: ToSocketAddrs>(addr: A) -> io::Result<Self> {
        let caller = "TcpStream::connect";
        try_each(caller, addr, |addr| async move {
            let handle = Handle::current(caller);
            Self::finish_connect(handle, mio::net::TcpStream::connect(addr)?).await
        })
        .await
    }

    /// Wraps a connection that has been accepted.
    #[track_caller]
    pub(super) fn accepted(caller: &'static str, io: mio::net::TcpStream) -> io::Result<Self> {
        Ok(Self { io: Evented::open(caller, io, stream::EXTRA)? })
    }

    /// Takes over a connected stream of the standard library, which must be non-blocking.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if it is in blocking mode (on unix); if it
    /// cannot be registered.
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = std::net::TcpStream::connect(listener.local_addr()?)?;
    /// stream.set_nonblocking(true)?;
    /// let stream = volt::net::TcpStream::from_std(stream)?;
    /// assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn from_std(stream: std::net::TcpStream) -> io::Result<Self> {
        crate::net::check_nonblocking(&stream)?;
        const CALLER: &str = "TcpStream::from_std";
        let io = mio::net::TcpStream::from_std(stream);
        // It may connect just now: an event says when it has.
        let start = if io.peer_addr().is_ok() { Start::Open } else { Start::Unknown };
        Ok(Self { io: Evented::new(Handle::current(CALLER), io, stream::interest(), start)? })
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
    /// # let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let stream = volt::net::TcpStream::connect(listener.local_addr()?).await?;
    /// let stream: std::net::TcpStream = stream.into_std()?;
    /// stream.set_nonblocking(false)?;
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn into_std(self) -> io::Result<std::net::TcpStream> {
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
    /// # let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let stream = volt::net::TcpStream::connect(listener.local_addr()?).await?;
    /// println!("{} speaks to {}", stream.local_addr()?, stream.peer_addr()?);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// The other end's address.
    ///
    /// # Errors
    /// Whatever `getpeername(2)` reports, `NotConnected` for one.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let stream = volt::net::TcpStream::connect(listener.local_addr()?).await?;
    /// assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.peer_addr()
    }

    /// Reads without taking the data out: the next read finds it again. `Ok(0)` is the end.
    ///
    /// # Errors
    /// Whatever `recv(2)` reports, or if the runtime has shut down.
    ///
    /// # Cancel safety
    /// Safe: nothing is taken.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let a = volt::net::TcpStream::connect(listener.local_addr()?).await?;
    /// # let (b, _) = listener.accept().await?;
    /// a.try_write(b"x")?;
    /// assert_eq!(b.peek(&mut [0; 8]).await?, 1);
    /// assert_eq!(b.peek(&mut [0; 8]).await?, 1);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io.registration().async_peek(Interest::READABLE, || self.io.peek(buf)).await
    }

    /// [`peek`](Self::peek) for hand-written futures. Returns how many bytes were added to `buf`.
    ///
    /// # Errors
    /// As `peek`.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let a = volt::net::TcpStream::connect(listener.local_addr()?).await?;
    /// # let (b, _) = listener.accept().await?;
    /// a.try_write(b"x")?;
    /// let mut room = [0; 8];
    /// let mut buf = volt::io::ReadBuf::new(&mut room);
    /// assert_eq!(std::future::poll_fn(|cx| b.poll_peek(cx, &mut buf)).await?, 1);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn poll_peek(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        self.io.poll_receive(Direction::Read, cx, buf, |io, room| {
            let count = io.try_io(|| SockRef::from(io).peek(room))?;
            Ok((count, count))
        })
    }

    /// Whether small writes are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// Whatever `getsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let stream = volt::net::TcpStream::connect(listener.local_addr()?).await?;
    /// stream.set_nodelay(true)?;
    /// assert!(stream.nodelay()?);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn nodelay(&self) -> io::Result<bool> {
        self.io.nodelay()
    }

    /// Sets whether small writes are sent at once instead of being gathered (`TCP_NODELAY`).
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let stream = volt::net::TcpStream::connect(listener.local_addr()?).await?;
    /// stream.set_nodelay(true)?;
    /// assert!(stream.nodelay()?);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.io.set_nodelay(nodelay)
    }

    /// Whether acknowledgements are sent at once (`TCP_QUICKACK`).
    ///
    /// # Errors
    /// Whatever `getsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let stream = volt::net::TcpStream::connect(listener.local_addr()?).await?;
    /// println!("acknowledges at once: {}", stream.quickack()?);
    /// # Ok(()) })
    /// # }
    /// ```
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn quickack(&self) -> io::Result<bool> {
        SockRef::from(self).tcp_quickack()
    }

    /// Sets whether acknowledgements are sent at once (`TCP_QUICKACK`); the kernel may change it
    /// back.
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let stream = volt::net::TcpStream::connect(listener.local_addr()?).await?;
    /// stream.set_quickack(true)?;
    /// # Ok(()) })
    /// # }
    /// ```
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn set_quickack(&self, quickack: bool) -> io::Result<()> {
        SockRef::from(self).set_tcp_quickack(quickack)
    }

    /// How long closing waits for unsent data (`SO_LINGER`).
    ///
    /// # Errors
    /// Whatever `getsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let stream = volt::net::TcpStream::connect(listener.local_addr()?).await?;
    /// assert_eq!(stream.linger()?, None);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        SockRef::from(self).linger()
    }

    /// Sets how long closing waits for unsent data (`SO_LINGER`); zero resets the connection.
    /// Anything but `None` and zero makes the drop of the stream block its thread.
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let stream = volt::net::TcpStream::connect(listener.local_addr()?).await?;
    /// use std::time::Duration;
    /// stream.set_linger(Some(Duration::ZERO))?;
    /// assert_eq!(stream.linger()?, Some(Duration::ZERO));
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        SockRef::from(self).set_linger(linger)
    }

    /// Makes closing reset the connection: [`set_linger`](Self::set_linger) with zero.
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let stream = volt::net::TcpStream::connect(listener.local_addr()?).await?;
    /// stream.set_zero_linger()?;
    /// assert_eq!(stream.linger()?, Some(std::time::Duration::ZERO));
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// The time-to-live of packets (`IP_TTL`).
    ///
    /// # Errors
    /// Whatever `getsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let stream = volt::net::TcpStream::connect(listener.local_addr()?).await?;
    /// stream.set_ttl(7)?;
    /// assert_eq!(stream.ttl()?, 7);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn ttl(&self) -> io::Result<u32> {
        self.io.ttl()
    }

    /// Sets the time-to-live of packets (`IP_TTL`).
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let stream = volt::net::TcpStream::connect(listener.local_addr()?).await?;
    /// stream.set_ttl(7)?;
    /// assert_eq!(stream.ttl()?, 7);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.io.set_ttl(ttl)
    }
}

impl TryFrom<std::net::TcpStream> for TcpStream {
    type Error = io::Error;

    /// As [`TcpStream::from_std`].
    #[track_caller]
    fn try_from(stream: std::net::TcpStream) -> io::Result<Self> {
        Self::from_std(stream)
    }
}

/// What reading halves have besides: addresses and `peek`.
macro_rules! addresses {
    ($($half:ty),*) => {$(
        impl $half {
            /// The other end's address.
            ///
            /// # Errors
            /// As [`TcpStream::peer_addr`].
            ///
            /// # Examples
            /// ```
            /// # fn main() -> std::io::Result<()> {
            /// # volt::runtime::Runtime::new()?.block_on(async {
            /// use volt::net::{TcpListener, TcpStream};
            /// let listener = TcpListener::bind("127.0.0.1:0").await?;
            /// let address = listener.local_addr()?;
            /// let mut client = TcpStream::connect(address).await?;
            /// let (reader, writer) = client.split();
            /// assert_eq!(reader.peer_addr()?, address);
            /// assert_eq!(writer.peer_addr()?, address);
            /// # Ok(()) })
            /// # }
            /// ```
            pub fn peer_addr(&self) -> io::Result<SocketAddr> {
                self.as_ref().peer_addr()
            }

            /// This end's address.
            ///
            /// # Errors
            /// As [`TcpStream::local_addr`].
            ///
            /// # Examples
            /// ```
            /// # fn main() -> std::io::Result<()> {
            /// # volt::runtime::Runtime::new()?.block_on(async {
            /// use volt::net::{TcpListener, TcpStream};
            /// let listener = TcpListener::bind("127.0.0.1:0").await?;
            /// let address = listener.local_addr()?;
            /// let mut client = TcpStream::connect(address).await?;
            /// let (server, from) = listener.accept().await?;
            /// let (reader, writer) = client.into_split();
            /// assert_eq!(reader.local_addr()?, from);
            /// assert_eq!(writer.local_addr()?, from);
            /// # drop(server);
            /// # Ok(()) })
            /// # }
            /// ```
            pub fn local_addr(&self) -> io::Result<SocketAddr> {
                self.as_ref().local_addr()
            }
        }
    )*};
}

macro_rules! peek {
    ($($half:ty),*) => {$(
        impl $half {
            /// As [`TcpStream::peek`].
            ///
            /// # Errors
            /// As `TcpStream::peek`.
            ///
            /// # Cancel safety
            /// Safe: nothing is taken.
            ///
            /// # Examples
            /// ```
            /// # fn main() -> std::io::Result<()> {
            /// # volt::runtime::Runtime::new()?.block_on(async {
            /// use volt::io::AsyncWriteExt;
            /// use volt::net::{TcpListener, TcpStream};
            /// let listener = TcpListener::bind("127.0.0.1:0").await?;
            /// let address = listener.local_addr()?;
            /// let mut client = TcpStream::connect(address).await?;
            /// let (mut server, _) = listener.accept().await?;
            /// server.write_all(b"hi").await?;
            /// let (mut reader, _writer) = client.split();
            /// let mut bytes = [0; 8];
            /// assert!(reader.peek(&mut bytes).await? > 0);
            /// assert_eq!(bytes[0], b'h');
            /// # Ok(()) })
            /// # }
            /// ```
            pub async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                self.as_ref().peek(buf).await
            }

            /// As [`TcpStream::poll_peek`].
            ///
            /// # Errors
            /// As `TcpStream::peek`.
            ///
            /// # Examples
            /// ```
            /// # fn main() -> std::io::Result<()> {
            /// # volt::runtime::Runtime::new()?.block_on(async {
            /// use std::future::poll_fn;
            /// use volt::io::AsyncWriteExt;
            /// use volt::io::ReadBuf;
            /// use volt::net::{TcpListener, TcpStream};
            /// let listener = TcpListener::bind("127.0.0.1:0").await?;
            /// let address = listener.local_addr()?;
            /// let mut client = TcpStream::connect(address).await?;
            /// let (mut server, _) = listener.accept().await?;
            /// server.write_all(b"hi").await?;
            /// let (mut reader, _writer) = client.split();
            /// let mut bytes = [0; 8];
            /// let mut buf = ReadBuf::new(&mut bytes);
            /// assert!(poll_fn(|cx| reader.poll_peek(cx, &mut buf)).await? > 0);
            /// assert_eq!(buf.filled()[0], b'h');
            /// # Ok(()) })
            /// # }
            /// ```
            pub fn poll_peek(
                &mut self,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<usize>> {
                self.as_ref().poll_peek(cx, buf)
            }
        }
    )*};
}

addresses!(
    split::ReadHalf<'_, TcpStream>,
    split::WriteHalf<'_, TcpStream>,
    split::OwnedReadHalf<TcpStream>,
    split::OwnedWriteHalf<TcpStream>
);
peek!(split::ReadHalf<'_, TcpStream>, split::OwnedReadHalf<TcpStream>);
