//! Accepting TCP connections.
#![forbid(unsafe_code)]

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};

use super::TcpStream;
use crate::io::{Evented, Interest};
use crate::net::addr::{ToSocketAddrs, try_each};
use crate::reactor::Direction;

/// Accepts TCP connections.
///
/// Any number of tasks may accept at once.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use volt::net::{TcpListener, TcpStream};
///
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let client = TcpStream::connect(listener.local_addr()?).await?;
/// let (server, address) = listener.accept().await?;
/// assert_eq!(address, client.local_addr()?);
/// # Ok(()) })
/// # }
/// ```
pub struct TcpListener {
    io: Evented<mio::net::TcpListener>,
}

crate::net::share::descriptor!(TcpListener);

/// So many connections wait to be accepted at most. The system may set a lower limit.
const BACKLOG: i32 = 1024;

impl TcpListener {
    /// Listens at `addr`, with `SO_REUSEADDR` (not on Windows) and a backlog of 1024; use
    /// [`TcpSocket`](super::TcpSocket) for other choices. Port 0 lets the system choose.
    ///
    /// # Errors
    /// If the name cannot be resolved, or as the last address tried reports.
    ///
    /// # Panics
    /// Outside a runtime.
    ///
    /// # Cancel safety
    /// Safe: it waits for the name only, before anything is bound.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// assert_ne!(listener.local_addr()?.port(), 0);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn bind<A: ToSocketAddrs>(addr: A) -> io::Result<Self> {
        let caller = "TcpListener::bind";
        try_each(caller, addr, |addr| async move {
            let io = mio::net::TcpListener::bind(addr)?;
            // `mio` has room for 128, as the standard library: less than a server gets at once.
            socket2::SockRef::from(&io).listen(BACKLOG)?;
            Self::new(caller, io)
        })
        .await
    }

    #[track_caller]
    pub(super) fn new(caller: &'static str, io: mio::net::TcpListener) -> io::Result<Self> {
        let handle = crate::reactor::Handle::current(caller);
        let start = crate::reactor::Start::Open;
        Ok(Self { io: Evented::new(handle, io, Interest::READABLE, start)? })
    }

    /// The next connection, and its address.
    ///
    /// # Errors
    /// Whatever `accept(2)` reports. The listener stays usable: after an error that is due to a
    /// limit of the process or the system (`EMFILE`, `ENFILE`), the connection stays in the queue
    /// and the next call tries again at once, so it is wise to wait a moment.
    ///
    /// # Cancel safety
    /// Safe: no connection is lost.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// let address = listener.local_addr()?;
    /// let client = volt::spawn(volt::net::TcpStream::connect(address));
    /// let (stream, from) = listener.accept().await?;
    /// assert_eq!(stream.peer_addr()?, from);
    /// # client.await??;
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (io, addr) =
            self.io.registration().async_io(Interest::READABLE, || self.io.accept()).await?;
        Ok((TcpStream::accepted("TcpListener::accept", io)?, addr))
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
    /// let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// let client = volt::net::TcpStream::connect(listener.local_addr()?).await?;
    /// let (_, from) = std::future::poll_fn(|cx| listener.poll_accept(cx)).await?;
    /// assert_eq!(from, client.local_addr()?);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let (io, addr) =
            ready!(self.io.registration().poll_io(Direction::Read, cx, |_| self.io.accept()))?;
        Poll::Ready(Ok((TcpStream::accepted("TcpListener::poll_accept", io)?, addr)))
    }

    /// Takes over a listener of the standard library, which must be non-blocking.
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
    /// listener.set_nonblocking(true)?;
    /// let listener = volt::net::TcpListener::from_std(listener)?;
    /// # Ok(()) })
    /// # }
    /// ```
    #[track_caller]
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<Self> {
        crate::net::check_nonblocking(&listener)?;
        Self::new("TcpListener::from_std", mio::net::TcpListener::from_std(listener))
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
    /// let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// let listener: std::net::TcpListener = listener.into_std()?;
    /// listener.set_nonblocking(false)?;
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn into_std(self) -> io::Result<std::net::TcpListener> {
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
    /// let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// println!("listening on {}", listener.local_addr()?);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
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
    /// let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// listener.set_ttl(7)?;
    /// assert_eq!(listener.ttl()?, 7);
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
    /// let listener = volt::net::TcpListener::bind("127.0.0.1:0").await?;
    /// listener.set_ttl(7)?;
    /// assert_eq!(listener.ttl()?, 7);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.io.set_ttl(ttl)
    }
}

impl TryFrom<std::net::TcpListener> for TcpListener {
    type Error = io::Error;

    /// As [`TcpListener::from_std`].
    #[track_caller]
    fn try_from(listener: std::net::TcpListener) -> io::Result<Self> {
        Self::from_std(listener)
    }
}
