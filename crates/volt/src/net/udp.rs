//! UDP.
#![forbid(unsafe_code)]

mod options;

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use socket2::{SockAddr, SockRef};
use tokio::io::ReadBuf;

use super::addr::{ToSocketAddrs, resolve, try_each};
use crate::io::{Evented, Interest};
use crate::reactor::Direction;

/// A UDP socket.
///
/// All methods take `&self`: put it in an `Arc` to receive and send from several tasks. A datagram
/// that is longer than the buffer is cut.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Runtime::new()?.block_on(async {
/// use volt::net::UdpSocket;
///
/// let server = UdpSocket::bind("127.0.0.1:0").await?;
/// let client = UdpSocket::bind("127.0.0.1:0").await?;
/// client.connect(server.local_addr()?).await?;
/// client.send(b"ping").await?;
///
/// let mut buf = [0; 64];
/// let (count, from) = server.recv_from(&mut buf).await?;
/// assert_eq!(&buf[..count], b"ping");
/// server.send_to(b"pong", from).await?;
/// assert_eq!(client.recv(&mut buf).await?, 4);
/// # Ok(()) })
/// # }
/// ```
pub struct UdpSocket {
    io: Evented<mio::net::UdpSocket>,
}

super::datagram::datagram!(
    UdpSocket,
    std::net::UdpSocket,
    SocketAddr,
    address,
    "# let a = volt::net::UdpSocket::bind(\"127.0.0.1:0\").await?;
# let b = volt::net::UdpSocket::bind(\"127.0.0.1:0\").await?;
# a.connect(b.local_addr()?).await?;
# b.connect(a.local_addr()?).await?;
// `a` and `b` are connected to each other.
"
);

impl UdpSocket {
    /// Binds a socket to `addr`; if it stands for several addresses, to the first that works.
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
    /// let socket = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// assert_ne!(socket.local_addr()?.port(), 0);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn bind<A: ToSocketAddrs>(addr: A) -> io::Result<Self> {
        let caller = "UdpSocket::bind";
        try_each(
            caller,
            addr,
            |addr| async move { Self::new(caller, mio::net::UdpSocket::bind(addr)?) },
        )
        .await
    }

    /// Fixes the peer: [`send`](Self::send) goes there, and only its datagrams are received.
    ///
    /// # Errors
    /// If the name cannot be resolved, or as the last address tried reports.
    ///
    /// # Cancel safety
    /// Safe: it waits for the name only, before the peer is set.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::net::UdpSocket;
    /// let server = UdpSocket::bind("127.0.0.1:0").await?;
    /// let client = UdpSocket::bind("127.0.0.1:0").await?;
    /// client.connect(server.local_addr()?).await?;
    /// assert_eq!(client.peer_addr()?, server.local_addr()?);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn connect<A: ToSocketAddrs>(&self, addr: A) -> io::Result<()> {
        let connect = |addr| std::future::ready(self.io.connect(addr));
        try_each("UdpSocket::connect", addr, connect).await
    }

    /// Sends to `target` (the first address that it stands for).
    ///
    /// # Errors
    /// As [`send`](Self::send), or if the name cannot be resolved.
    ///
    /// # Cancel safety
    /// Safe: a send that is dropped has sent nothing.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// use volt::net::UdpSocket;
    /// let a = UdpSocket::bind("127.0.0.1:0").await?;
    /// let b = UdpSocket::bind("127.0.0.1:0").await?;
    /// a.send_to(b"hello", b.local_addr()?).await?;
    /// assert_eq!(b.recv_from(&mut [0; 16]).await?, (5, a.local_addr()?));
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn send_to<A: ToSocketAddrs>(&self, buf: &[u8], target: A) -> io::Result<usize> {
        let mut targets = resolve("UdpSocket::send_to", target).await?;
        let target = targets.next().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "no addresses to send data to")
        })?;
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
    /// use volt::net::UdpSocket;
    /// let a = UdpSocket::bind("127.0.0.1:0").await?;
    /// let b = UdpSocket::bind("127.0.0.1:0").await?;
    /// let to = b.local_addr()?;
    /// std::future::poll_fn(|cx| a.poll_send_to(cx, b"hello", to)).await?;
    /// assert_eq!(b.recv_from(&mut [0; 16]).await?, (5, a.local_addr()?));
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        target: SocketAddr,
    ) -> Poll<io::Result<usize>> {
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
    /// use volt::net::UdpSocket;
    /// let a = UdpSocket::bind("127.0.0.1:0").await?;
    /// let b = UdpSocket::bind("127.0.0.1:0").await?;
    /// a.try_send_to(b"hello", b.local_addr()?)?;
    /// assert_eq!(b.recv_from(&mut [0; 16]).await?, (5, a.local_addr()?));
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn try_send_to(&self, buf: &[u8], target: SocketAddr) -> io::Result<usize> {
        self.io.registration().try_io(Interest::WRITABLE, || self.io.send_to(buf, target))
    }

    /// [`recv`](Self::recv) that leaves the datagram in the queue.
    ///
    /// # Errors
    /// As `recv`.
    ///
    /// # Cancel safety
    /// Safe: nothing is taken.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let a = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # let b = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # a.connect(b.local_addr()?).await?;
    /// # b.connect(a.local_addr()?).await?;
    /// // `a` and `b` are connected to each other.
    /// b.send(b"hello").await?;
    /// let mut buf = [0; 16];
    /// assert_eq!(a.peek(&mut buf).await?, 5);
    /// assert_eq!(a.recv(&mut buf).await?, 5);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.io.registration().async_peek(Interest::RECEIVE, || self.io.peek(buf)).await
    }

    /// [`poll_recv`](Self::poll_recv) that leaves the datagram in the queue.
    ///
    /// # Errors
    /// As `recv`.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let a = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # let b = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # a.connect(b.local_addr()?).await?;
    /// # b.connect(a.local_addr()?).await?;
    /// // `a` and `b` are connected to each other.
    /// b.send(b"hello").await?;
    /// use volt::io::ReadBuf;
    /// let mut room = [0; 16];
    /// let mut buf = ReadBuf::new(&mut room);
    /// std::future::poll_fn(|cx| a.poll_peek(cx, &mut buf)).await?;
    /// assert_eq!(buf.filled(), b"hello");
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.io.poll_receive(Direction::Receive, cx, buf, |io, room| {
            Ok((io.try_io(|| SockRef::from(io).peek(room))?, ()))
        })
    }

    /// [`try_recv`](Self::try_recv) that leaves the datagram in the queue.
    ///
    /// # Errors
    /// As `try_recv`.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let a = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # let b = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # a.connect(b.local_addr()?).await?;
    /// # b.connect(a.local_addr()?).await?;
    /// // `a` and `b` are connected to each other.
    /// b.send(b"hello").await?;
    /// a.readable().await?;
    /// assert_eq!(a.try_peek(&mut [0; 16])?, 5);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn try_peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.try_receive(|| self.io.peek(buf))
    }

    /// [`recv_from`](Self::recv_from) that leaves the datagram in the queue.
    ///
    /// # Errors
    /// As `recv_from`.
    ///
    /// # Cancel safety
    /// Safe: nothing is taken.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let a = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # let b = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # a.connect(b.local_addr()?).await?;
    /// # b.connect(a.local_addr()?).await?;
    /// // `a` and `b` are connected to each other.
    /// b.send(b"hello").await?;
    /// let (count, from) = a.peek_from(&mut [0; 16]).await?;
    /// assert_eq!((count, from), (5, b.local_addr()?));
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.io.registration().async_peek(Interest::RECEIVE, || self.io.peek_from(buf)).await
    }

    /// [`poll_recv_from`](Self::poll_recv_from) that leaves the datagram in the queue.
    ///
    /// # Errors
    /// As `recv_from`.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let a = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # let b = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # a.connect(b.local_addr()?).await?;
    /// # b.connect(a.local_addr()?).await?;
    /// // `a` and `b` are connected to each other.
    /// b.send(b"hello").await?;
    /// use volt::io::ReadBuf;
    /// let mut room = [0; 16];
    /// let mut buf = ReadBuf::new(&mut room);
    /// let from = std::future::poll_fn(|cx| a.poll_peek_from(cx, &mut buf)).await?;
    /// assert_eq!((buf.filled(), from), (&b"hello"[..], b.local_addr()?));
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn poll_peek_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        self.io.poll_receive(Direction::Receive, cx, buf, |io, room| {
            let (count, from) = io.try_io(|| SockRef::from(io).peek_from(room))?;
            Ok((count, address(&from)?))
        })
    }

    /// [`try_recv_from`](Self::try_recv_from) that leaves the datagram in the queue.
    ///
    /// # Errors
    /// As `try_recv_from`.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let a = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # let b = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # a.connect(b.local_addr()?).await?;
    /// # b.connect(a.local_addr()?).await?;
    /// // `a` and `b` are connected to each other.
    /// b.send(b"hello").await?;
    /// a.readable().await?;
    /// assert_eq!(a.try_peek_from(&mut [0; 16])?, (5, b.local_addr()?));
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn try_peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.try_receive(|| self.io.peek_from(buf))
    }

    /// Who sent the next datagram, which stays in the queue.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    ///
    /// # Cancel safety
    /// Safe: nothing is taken.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let a = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # let b = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # a.connect(b.local_addr()?).await?;
    /// # b.connect(a.local_addr()?).await?;
    /// // `a` and `b` are connected to each other.
    /// b.send(b"hello").await?;
    /// assert_eq!(a.peek_sender().await?, b.local_addr()?);
    /// # Ok(()) })
    /// # }
    /// ```
    pub async fn peek_sender(&self) -> io::Result<SocketAddr> {
        self.io.registration().async_peek(Interest::RECEIVE, || self.sender()).await
    }

    /// [`peek_sender`](Self::peek_sender) for hand-written futures.
    ///
    /// # Errors
    /// As `peek_sender`.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let a = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # let b = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # a.connect(b.local_addr()?).await?;
    /// # b.connect(a.local_addr()?).await?;
    /// // `a` and `b` are connected to each other.
    /// b.send(b"hello").await?;
    /// let from = std::future::poll_fn(|cx| a.poll_peek_sender(cx)).await?;
    /// assert_eq!(from, b.local_addr()?);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn poll_peek_sender(&self, cx: &mut Context<'_>) -> Poll<io::Result<SocketAddr>> {
        self.io.registration().poll_io(Direction::Receive, cx, |_| self.sender())
    }

    /// [`peek_sender`](Self::peek_sender) without waiting.
    ///
    /// # Errors
    /// As `peek_sender`, and [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// # Examples
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # volt::runtime::Runtime::new()?.block_on(async {
    /// # let a = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # let b = volt::net::UdpSocket::bind("127.0.0.1:0").await?;
    /// # a.connect(b.local_addr()?).await?;
    /// # b.connect(a.local_addr()?).await?;
    /// // `a` and `b` are connected to each other.
    /// b.send(b"hello").await?;
    /// a.readable().await?;
    /// assert_eq!(a.try_peek_sender()?, b.local_addr()?);
    /// # Ok(()) })
    /// # }
    /// ```
    pub fn try_peek_sender(&self) -> io::Result<SocketAddr> {
        self.try_receive(|| self.sender())
    }

    fn sender(&self) -> io::Result<SocketAddr> {
        let io = &*self.io;
        io.try_io(|| address(&SockRef::from(io).peek_sender()?))
    }
}

fn address(from: &SockAddr) -> io::Result<SocketAddr> {
    from.as_socket().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "a datagram from no internet address")
    })
}
