//! UDP.
#![forbid(unsafe_code)]

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll};

use bytes::BufMut;
use socket2::{SockAddr, SockRef};
use tokio::io::ReadBuf;

use super::addr::{ToSocketAddrs, resolve, try_each};
use crate::io::{Evented, Interest, Ready, receive_into};
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

crate::net::stream::descriptor!(UdpSocket);

impl UdpSocket {
    /// Binds a socket to `addr`; if it stands for several addresses, to the first that works.
    ///
    /// # Errors
    /// If the name cannot be resolved, or as the last address tried reports.
    ///
    /// # Panics
    /// Outside a runtime.
    pub async fn bind<A: ToSocketAddrs>(addr: A) -> io::Result<Self> {
        try_each(addr, |addr| async move {
            Self::new("UdpSocket::bind", mio::net::UdpSocket::bind(addr)?)
        })
        .await
    }

    #[track_caller]
    fn new(caller: &'static str, io: mio::net::UdpSocket) -> io::Result<Self> {
        Ok(Self { io: Evented::open(caller, io, None)? })
    }

    /// Takes over a socket of the standard library, which must be non-blocking.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if it is in blocking mode (on unix); if it
    /// cannot be registered.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn from_std(socket: std::net::UdpSocket) -> io::Result<Self> {
        super::check_nonblocking(&socket)?;
        Self::new("UdpSocket::from_std", mio::net::UdpSocket::from_std(socket))
    }

    /// Gives the socket back to the standard library, in non-blocking mode.
    ///
    /// # Errors
    /// If it cannot be taken out of the reactor.
    pub fn into_std(self) -> io::Result<std::net::UdpSocket> {
        self.io.into_inner().map(Into::into)
    }

    /// This end's address.
    ///
    /// # Errors
    /// Whatever `getsockname(2)` reports.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// The address that the socket is connected to.
    ///
    /// # Errors
    /// `NotConnected` if there is none.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.io.peer_addr()
    }

    /// Fixes the peer: [`send`](Self::send) goes there, and only its datagrams are received.
    ///
    /// # Errors
    /// If the name cannot be resolved, or as the last address tried reports.
    pub async fn connect<A: ToSocketAddrs>(&self, addr: A) -> io::Result<()> {
        try_each(addr, |addr| std::future::ready(self.io.connect(addr))).await
    }

    /// Waits until the socket is ready for some of `interest`. A hint.
    ///
    /// # Errors
    /// If the runtime has shut down.
    ///
    /// # Cancel safety
    /// Safe: readiness stays until an operation has used it up.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        self.io.ready(interest).await
    }

    /// Waits until there is a datagram, or an error to report.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub async fn readable(&self) -> io::Result<()> {
        self.ready(Interest::READABLE).await.map(drop)
    }

    /// Waits until there is room to send.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub async fn writable(&self) -> io::Result<()> {
        self.ready(Interest::WRITABLE).await.map(drop)
    }

    /// [`readable`](Self::readable) for hand-written futures; the last task to poll is woken.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub fn poll_recv_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_ready(Direction::Read, cx)
    }

    /// [`writable`](Self::writable) for hand-written futures; the last task to poll is woken.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub fn poll_send_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_ready(Direction::Write, cx)
    }

    async fn read<R>(&self, f: impl FnMut() -> io::Result<R>) -> io::Result<R> {
        self.io.registration().async_io(Interest::READABLE, f).await
    }

    fn try_receive<R>(&self, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.io.registration().try_io(Interest::READABLE, f)
    }

    /// Sends to the peer. Returns the number of bytes, always all.
    ///
    /// # Errors
    /// Whatever `send(2)` reports: the datagram is too long, or an earlier one was refused.
    ///
    /// # Cancel safety
    /// Safe: a send that is dropped has sent nothing.
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.io.registration().async_io(Interest::WRITABLE, || self.io.send(buf)).await
    }

    /// [`send`](Self::send) for hand-written futures.
    ///
    /// # Errors
    /// As `send`.
    pub fn poll_send(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.io.registration().poll_io(Direction::Write, cx, |_| self.io.send(buf))
    }

    /// [`send`](Self::send) without waiting.
    ///
    /// # Errors
    /// As `send`, and [`WouldBlock`](io::ErrorKind::WouldBlock).
    pub fn try_send(&self, buf: &[u8]) -> io::Result<usize> {
        self.io.registration().try_io(Interest::WRITABLE, || self.io.send(buf))
    }

    /// Sends to `target` (the first address that it stands for).
    ///
    /// # Errors
    /// As [`send`](Self::send), or if the name cannot be resolved.
    ///
    /// # Cancel safety
    /// Safe: a send that is dropped has sent nothing.
    pub async fn send_to<A: ToSocketAddrs>(&self, buf: &[u8], target: A) -> io::Result<usize> {
        let target = resolve(target).await?.next().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "no addresses to send data to")
        })?;
        let send = || self.io.send_to(buf, target);
        self.io.registration().async_io(Interest::WRITABLE, send).await
    }

    /// [`send_to`](Self::send_to) for hand-written futures.
    ///
    /// # Errors
    /// As `send_to`.
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
    pub fn try_send_to(&self, buf: &[u8], target: SocketAddr) -> io::Result<usize> {
        self.io.registration().try_io(Interest::WRITABLE, || self.io.send_to(buf, target))
    }

    /// Receives a datagram of the peer. Returns its length.
    ///
    /// # Errors
    /// Whatever `recv(2)` reports, `ConnectionRefused` for one if nobody listens there.
    ///
    /// # Cancel safety
    /// Safe: no datagram is lost.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.read(|| self.io.recv(buf)).await
    }

    /// [`recv`](Self::recv) for hand-written futures; the last task to poll is woken.
    ///
    /// # Errors
    /// As `recv`.
    pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.io
            .poll_receive(cx, buf, |io, room| Ok((io.try_io(|| SockRef::from(io).recv(room))?, ())))
    }

    /// [`recv`](Self::recv) without waiting.
    ///
    /// # Errors
    /// As `recv`, and [`WouldBlock`](io::ErrorKind::WouldBlock).
    pub fn try_recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.try_receive(|| self.io.recv(buf))
    }

    /// [`recv`](Self::recv) into the spare room of `buf`.
    ///
    /// # Errors
    /// As `recv`.
    ///
    /// # Cancel safety
    /// Safe: no datagram is lost.
    pub async fn recv_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.read(|| self.receive_buf(buf)).await
    }

    /// [`try_recv`](Self::try_recv) into the spare room of `buf`.
    ///
    /// # Errors
    /// As `try_recv`.
    pub fn try_recv_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.try_receive(|| self.receive_buf(buf))
    }

    fn receive_buf(&self, buf: &mut impl BufMut) -> io::Result<usize> {
        let io = &*self.io;
        let receive = |room: &mut [_]| Ok((io.try_io(|| SockRef::from(io).recv(room))?, ()));
        receive_into(buf, receive).map(|(count, ())| count)
    }

    /// Receives a datagram. Returns its length and who sent it.
    ///
    /// # Errors
    /// Whatever `recvfrom(2)` reports.
    ///
    /// # Cancel safety
    /// Safe: no datagram is lost.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.read(|| self.io.recv_from(buf)).await
    }

    /// [`recv_from`](Self::recv_from) for hand-written futures; the last task to poll is woken.
    ///
    /// # Errors
    /// As `recv_from`.
    pub fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        self.io.poll_receive(cx, buf, |io, room| {
            let (count, from) = io.try_io(|| SockRef::from(io).recv_from(room))?;
            Ok((count, address(&from)?))
        })
    }

    /// [`recv_from`](Self::recv_from) without waiting.
    ///
    /// # Errors
    /// As `recv_from`, and [`WouldBlock`](io::ErrorKind::WouldBlock).
    pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.try_receive(|| self.io.recv_from(buf))
    }

    /// [`recv_from`](Self::recv_from) into the spare room of `buf`.
    ///
    /// # Errors
    /// As `recv_from`.
    ///
    /// # Cancel safety
    /// Safe: no datagram is lost.
    pub async fn recv_buf_from<B: BufMut>(&self, buf: &mut B) -> io::Result<(usize, SocketAddr)> {
        self.read(|| self.receive_buf_from(buf)).await
    }

    /// [`try_recv_from`](Self::try_recv_from) into the spare room of `buf`.
    ///
    /// # Errors
    /// As `try_recv_from`.
    pub fn try_recv_buf_from<B: BufMut>(&self, buf: &mut B) -> io::Result<(usize, SocketAddr)> {
        self.try_receive(|| self.receive_buf_from(buf))
    }

    fn receive_buf_from(&self, buf: &mut impl BufMut) -> io::Result<(usize, SocketAddr)> {
        let io = &*self.io;
        receive_into(buf, |room| {
            let (count, from) = io.try_io(|| SockRef::from(io).recv_from(room))?;
            Ok((count, address(&from)?))
        })
    }

    /// [`recv`](Self::recv) that leaves the datagram in the queue.
    ///
    /// # Errors
    /// As `recv`.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.read(|| self.io.peek(buf)).await
    }

    /// [`poll_recv`](Self::poll_recv) that leaves the datagram in the queue.
    ///
    /// # Errors
    /// As `recv`.
    pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.io
            .poll_receive(cx, buf, |io, room| Ok((io.try_io(|| SockRef::from(io).peek(room))?, ())))
    }

    /// [`try_recv`](Self::try_recv) that leaves the datagram in the queue.
    ///
    /// # Errors
    /// As `try_recv`.
    pub fn try_peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.try_receive(|| self.io.peek(buf))
    }

    /// [`recv_from`](Self::recv_from) that leaves the datagram in the queue.
    ///
    /// # Errors
    /// As `recv_from`.
    pub async fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.read(|| self.io.peek_from(buf)).await
    }

    /// [`poll_recv_from`](Self::poll_recv_from) that leaves the datagram in the queue.
    ///
    /// # Errors
    /// As `recv_from`.
    pub fn poll_peek_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        self.io.poll_receive(cx, buf, |io, room| {
            let (count, from) = io.try_io(|| SockRef::from(io).peek_from(room))?;
            Ok((count, address(&from)?))
        })
    }

    /// [`try_recv_from`](Self::try_recv_from) that leaves the datagram in the queue.
    ///
    /// # Errors
    /// As `try_recv_from`.
    pub fn try_peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.try_receive(|| self.io.peek_from(buf))
    }

    /// Who sent the next datagram, which stays in the queue.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub async fn peek_sender(&self) -> io::Result<SocketAddr> {
        self.read(|| self.sender()).await
    }

    /// [`peek_sender`](Self::peek_sender) for hand-written futures.
    ///
    /// # Errors
    /// As `peek_sender`.
    pub fn poll_peek_sender(&self, cx: &mut Context<'_>) -> Poll<io::Result<SocketAddr>> {
        self.io.registration().poll_io(Direction::Read, cx, |_| self.sender())
    }

    /// [`peek_sender`](Self::peek_sender) without waiting.
    ///
    /// # Errors
    /// As `peek_sender`, and [`WouldBlock`](io::ErrorKind::WouldBlock).
    pub fn try_peek_sender(&self) -> io::Result<SocketAddr> {
        self.try_receive(|| self.sender())
    }

    fn sender(&self) -> io::Result<SocketAddr> {
        let io = &*self.io;
        io.try_io(|| address(&SockRef::from(io).peek_sender()?))
    }

    /// Runs `io`, an operation of the caller's own on this socket, if the socket is ready for some
    /// of `interest`; a `WouldBlock` from it takes the readiness back.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if it is not; whatever `io` returns.
    pub fn try_io<R>(
        &self,
        interest: Interest,
        io: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        self.io.registration().try_io(interest, io)
    }

    /// As [`try_io`](Self::try_io), but waits and runs `io` again as often as it returns
    /// `WouldBlock`.
    ///
    /// # Errors
    /// Whatever else `io` returns, or if the runtime has shut down.
    pub async fn async_io<R>(
        &self,
        interest: Interest,
        io: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        self.io.registration().async_io(interest, io).await
    }

    /// Joins a multicast group (`IP_ADD_MEMBERSHIP`); the interface 0.0.0.0 lets the system choose.
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    pub fn join_multicast_v4(&self, multiaddr: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.io.join_multicast_v4(&multiaddr, &interface)
    }

    /// Joins a multicast group (`IPV6_ADD_MEMBERSHIP`); the interface 0 lets the system choose.
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    pub fn join_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.io.join_multicast_v6(multiaddr, interface)
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    pub fn leave_multicast_v4(&self, multiaddr: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.io.leave_multicast_v4(&multiaddr, &interface)
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    /// Whatever `setsockopt(2)` reports.
    pub fn leave_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.io.leave_multicast_v6(multiaddr, interface)
    }

    /// Takes the error that the socket has recorded, if any (`SO_ERROR`).
    ///
    /// # Errors
    /// Whatever `getsockopt(2)` reports.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.io.take_error()
    }
}

/// Pairs of a getter and a setter that `mio` has, too.
macro_rules! options {
    ($($what:literal $get:ident, $set:ident: $type:ty;)*) => {
        impl UdpSocket {$(
            #[doc = concat!("Returns ", $what, ".")]
            ///
            /// # Errors
            /// Whatever `getsockopt(2)` reports.
            pub fn $get(&self) -> io::Result<$type> {
                self.io.$get()
            }

            #[doc = concat!("Sets ", $what, ".")]
            ///
            /// # Errors
            /// Whatever `setsockopt(2)` reports.
            pub fn $set(&self, value: $type) -> io::Result<()> {
                self.io.$set(value)
            }
        )*}
    };
}

options! {
    "whether it may send to broadcast addresses (`SO_BROADCAST`)" broadcast, set_broadcast: bool;
    "whether its own multicasts come back (`IP_MULTICAST_LOOP`)"
        multicast_loop_v4, set_multicast_loop_v4: bool;
    "whether its own multicasts come back (`IPV6_MULTICAST_LOOP`)"
        multicast_loop_v6, set_multicast_loop_v6: bool;
    "the time-to-live of multicasts (`IP_MULTICAST_TTL`)"
        multicast_ttl_v4, set_multicast_ttl_v4: u32;
    "the time-to-live of packets (`IP_TTL`)" ttl, set_ttl: u32;
}

fn address(from: &SockAddr) -> io::Result<SocketAddr> {
    from.as_socket().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "a datagram from no internet address")
    })
}

impl TryFrom<std::net::UdpSocket> for UdpSocket {
    type Error = io::Error;

    /// As [`UdpSocket::from_std`].
    #[track_caller]
    fn try_from(socket: std::net::UdpSocket) -> io::Result<Self> {
        Self::from_std(socket)
    }
}
