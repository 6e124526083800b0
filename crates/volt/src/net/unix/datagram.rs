//! Datagrams between processes of one machine.
#![forbid(unsafe_code)]

use std::io;
use std::net::Shutdown;
use std::path::Path;
use std::task::{Context, Poll};

use bytes::BufMut;
use socket2::SockRef;
use tokio::io::ReadBuf;

use super::SocketAddr;
use crate::io::{Evented, Interest, Ready, receive_into};
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

crate::net::stream::descriptor!(UnixDatagram);

impl UnixDatagram {
    /// A socket at `path`, where nothing may be yet.
    ///
    /// # Errors
    /// Whatever `bind(2)` reports.
    ///
    /// # Panics
    /// Outside a runtime.
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
    #[track_caller]
    pub fn unbound() -> io::Result<Self> {
        Self::new("UnixDatagram::unbound", mio::net::UnixDatagram::unbound()?)
    }

    #[track_caller]
    fn new(caller: &'static str, io: mio::net::UnixDatagram) -> io::Result<Self> {
        Ok(Self { io: Evented::open(caller, io, None)? })
    }

    /// Takes over a socket of the standard library, which must be non-blocking.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if it is in blocking mode; if it cannot be
    /// registered.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn from_std(datagram: std::os::unix::net::UnixDatagram) -> io::Result<Self> {
        crate::net::check_nonblocking(&datagram)?;
        Self::new("UnixDatagram::from_std", mio::net::UnixDatagram::from_std(datagram))
    }

    /// Gives the socket back to the standard library, in non-blocking mode.
    ///
    /// # Errors
    /// If it cannot be taken out of the reactor.
    pub fn into_std(self) -> io::Result<std::os::unix::net::UnixDatagram> {
        self.io.into_inner().map(Into::into)
    }

    /// Fixes the peer for [`send`](Self::send) and [`recv`](Self::recv).
    ///
    /// # Errors
    /// Whatever `connect(2)` reports.
    pub fn connect<P: AsRef<Path>>(&self, path: P) -> io::Result<()> {
        self.io.connect(path)
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

    /// Takes the error that the socket has recorded, if any (`SO_ERROR`).
    ///
    /// # Errors
    /// Whatever `getsockopt(2)` reports.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.io.take_error()
    }

    /// Shuts one or both directions down.
    ///
    /// # Errors
    /// Whatever `shutdown(2)` reports.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.io.shutdown(how)
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

    /// Sends to the peer.
    ///
    /// # Errors
    /// Whatever `send(2)` reports.
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

    /// Sends to the socket at `target`.
    ///
    /// # Errors
    /// Whatever `sendto(2)` reports.
    ///
    /// # Cancel safety
    /// Safe: a send that is dropped has sent nothing.
    pub async fn send_to<P: AsRef<Path>>(&self, buf: &[u8], target: P) -> io::Result<usize> {
        let target = target.as_ref();
        let send = || self.io.send_to(buf, target);
        self.io.registration().async_io(Interest::WRITABLE, send).await
    }

    /// [`send_to`](Self::send_to) for hand-written futures.
    ///
    /// # Errors
    /// As `send_to`.
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
    pub fn try_send_to<P: AsRef<Path>>(&self, buf: &[u8], target: P) -> io::Result<usize> {
        self.io.registration().try_io(Interest::WRITABLE, || self.io.send_to(buf, target))
    }

    /// Receives a datagram. Returns its length.
    ///
    /// # Errors
    /// Whatever `recv(2)` reports.
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
        self.io.poll_receive(cx, buf, |io, room| Ok((SockRef::from(io).recv(room)?, ())))
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
        let receive = |room: &mut [_]| Ok((SockRef::from(&*self.io).recv(room)?, ()));
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
        self.io.registration().poll_io(Direction::Read, cx, |_| {
            // The standard library makes the address, and wants initialised room for that.
            let (count, from) = self.io.recv_from(buf.initialize_unfilled())?;
            buf.advance(count);
            Ok(from)
        })
    }

    /// [`recv_from`](Self::recv_from) without waiting.
    ///
    /// # Errors
    /// As `recv_from`, and [`WouldBlock`](io::ErrorKind::WouldBlock).
    pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.try_receive(|| self.io.recv_from(buf))
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
}

impl TryFrom<std::os::unix::net::UnixDatagram> for UnixDatagram {
    type Error = io::Error;

    /// As [`UnixDatagram::from_std`].
    #[track_caller]
    fn try_from(datagram: std::os::unix::net::UnixDatagram) -> io::Result<Self> {
        Self::from_std(datagram)
    }
}
