//! What UDP and unix datagram sockets have in common.
#![forbid(unsafe_code)]

/// The methods of a datagram socket with a field `io: Evented<_>`, whose addresses are `$addr`, made by
/// `$address` of those of `socket2`. `$pair` are the lines of an example that make two sockets, `a` and
/// `b`, that are connected to each other.
macro_rules! datagram {
    ($type:ident, $std:ty, $addr:ty, $address:expr, $pair:literal) => {
        crate::net::share::ready!([] $type, |this| this.io, $pair, "", "READABLE | Interest::WRITABLE");
        crate::net::share::readable!([] $type, $pair, try_send, try_recv);
        crate::net::share::writable!([] $type, $pair, try_send);
        crate::net::share::poll_readable!($type, $pair, poll_recv_ready, try_send, try_recv);
        crate::net::share::poll_writable!($type, $pair, poll_send_ready, try_send);
        crate::net::share::own_io!($type, $pair, try_send);
        crate::net::share::descriptor!($type);

        impl $type {
            #[track_caller]
            pub(super) fn new(caller: &'static str, io: mio::net::$type) -> std::io::Result<Self> {
                Ok(Self { io: crate::io::Evented::open(caller, io, None)? })
            }

            /// Takes over a socket of the standard library, which must be non-blocking.
            ///
            /// # Errors
            /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) if it is in blocking mode (on
            /// unix); if it cannot be registered.
            ///
            /// # Panics
            /// Outside a runtime.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair, "let std = a.into_std()?; // non-blocking
let a = volt::net::", stringify!($type), "::from_std(std)?;
b.send(b\"hello\").await?;
assert_eq!(a.recv(&mut [0; 16]).await?, 5);
")]
            #[track_caller]
            pub fn from_std(socket: $std) -> std::io::Result<Self> {
                crate::net::check_nonblocking(&socket)?;
                let io = mio::net::$type::from_std(socket);
                Self::new(concat!(stringify!($type), "::from_std"), io)
            }

            /// Gives the socket back to the standard library, in non-blocking mode.
            ///
            /// # Errors
            /// If it cannot be taken out of the reactor.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair, "
let a = a.into_std()?;
a.set_nonblocking(false)?;
b.send(b\"hello\").await?;
assert_eq!(a.recv(&mut [0; 16])?, 5);
")]
            pub fn into_std(self) -> std::io::Result<$std> {
                self.io.into_inner().map(Into::into)
            }

            /// This end's address.
            ///
            /// # Errors
            /// Whatever `getsockname(2)` reports.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair,
                "println!(\"{:?} is connected to {:?}\", a.local_addr()?, a.peer_addr()?);\n")]
            pub fn local_addr(&self) -> std::io::Result<$addr> {
                self.io.local_addr().map(Into::into)
            }

            /// The address that the socket is connected to.
            ///
            /// # Errors
            /// `NotConnected` if there is none.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair,
                "println!(\"{:?} is connected to {:?}\", a.local_addr()?, a.peer_addr()?);\n")]
            pub fn peer_addr(&self) -> std::io::Result<$addr> {
                self.io.peer_addr().map(Into::into)
            }

            /// Waits for a datagram, or the error of one that was sent.
            async fn read<R>(&self, f: impl FnMut() -> std::io::Result<R>) -> std::io::Result<R> {
                self.io.registration().async_io(crate::io::Interest::RECEIVE, f).await
            }

            /// Takes a datagram if there is one.
            fn try_receive<R>(&self, f: impl FnOnce() -> std::io::Result<R>) -> std::io::Result<R> {
                self.io.registration().try_receive(f)
            }

            /// Sends to the peer. Returns the number of bytes, always all.
            ///
            /// # Errors
            /// Whatever `send(2)` reports: the datagram is too long, or an earlier one was refused.
            ///
            /// # Cancel safety
            /// Safe: a send that is dropped has sent nothing.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair, "assert_eq!(a.send(b\"hello\").await?, 5);
assert_eq!(b.recv(&mut [0; 16]).await?, 5);
")]
            pub async fn send(&self, buf: &[u8]) -> std::io::Result<usize> {
                let send = || self.io.send(buf);
                self.io.registration().async_io(crate::io::Interest::WRITABLE, send).await
            }

            /// [`send`](Self::send) for hand-written futures; the last task to poll is woken.
            ///
            /// # Errors
            /// As `send`.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair,
                "assert_eq!(std::future::poll_fn(|cx| a.poll_send(cx, b\"hello\")).await?, 5);\n")]
            pub fn poll_send(
                &self,
                cx: &mut std::task::Context<'_>,
                buf: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let write = crate::reactor::Direction::Write;
                self.io.registration().poll_io(write, cx, |_| self.io.send(buf))
            }

            /// [`send`](Self::send) without waiting.
            ///
            /// # Errors
            /// As `send`, and [`WouldBlock`](std::io::ErrorKind::WouldBlock).
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair, "assert_eq!(a.try_send(b\"hello\")?, 5);\n")]
            pub fn try_send(&self, buf: &[u8]) -> std::io::Result<usize> {
                let send = || self.io.send(buf);
                self.io.registration().try_io(crate::io::Interest::WRITABLE, send)
            }

            /// Receives a datagram of the peer. Returns its length; what is longer than `buf` is cut.
            ///
            /// # Errors
            /// Whatever `recv(2)` reports, `ConnectionRefused` for one if nobody listens there.
            ///
            /// # Cancel safety
            /// Safe: no datagram is lost.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair, "b.send(b\"hello\").await?;
let mut buf = [0; 16];
let count = a.recv(&mut buf).await?;
assert_eq!(&buf[..count], b\"hello\");
")]
            pub async fn recv(&self, buf: &mut [u8]) -> std::io::Result<usize> {
                self.read(|| self.io.recv(buf)).await
            }

            /// [`recv`](Self::recv) for hand-written futures; the last task to poll is woken.
            ///
            /// # Errors
            /// As `recv`.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair, "
use volt::io::ReadBuf;
b.send(b\"hello\").await?;
let mut room = [0; 16];
let mut buf = ReadBuf::new(&mut room);
std::future::poll_fn(|cx| a.poll_recv(cx, &mut buf)).await?;
assert_eq!(buf.filled(), b\"hello\");
")]
            pub fn poll_recv(
                &self,
                cx: &mut std::task::Context<'_>,
                buf: &mut tokio::io::ReadBuf<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.io.poll_receive(crate::reactor::Direction::Receive, cx, buf, |io, room| {
                    Ok((io.try_io(|| socket2::SockRef::from(io).recv(room))?, ()))
                })
            }

            /// [`recv`](Self::recv) without waiting.
            ///
            /// # Errors
            /// As `recv`, and [`WouldBlock`](std::io::ErrorKind::WouldBlock).
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair, "
let nothing = a.try_recv(&mut [0; 16]).unwrap_err();
assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
b.send(b\"hello\").await?;
a.readable().await?;
assert_eq!(a.try_recv(&mut [0; 16])?, 5);
")]
            pub fn try_recv(&self, buf: &mut [u8]) -> std::io::Result<usize> {
                self.try_receive(|| self.io.recv(buf))
            }

            /// [`recv`](Self::recv) into the spare room of `buf`, which is not zeroed first.
            ///
            /// # Errors
            /// As `recv`.
            ///
            /// # Cancel safety
            /// Safe: no datagram is lost.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair, "b.send(b\"hello\").await?;
let mut buf = Vec::with_capacity(16);
a.recv_buf(&mut buf).await?;
assert_eq!(buf, b\"hello\");
")]
            pub async fn recv_buf<B: bytes::BufMut>(&self, buf: &mut B) -> std::io::Result<usize> {
                self.read(|| self.receive_buf(buf)).await
            }

            /// [`try_recv`](Self::try_recv) into the spare room of `buf`, which is not zeroed first.
            ///
            /// # Errors
            /// As `try_recv`.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair, "b.send(b\"hello\").await?;
a.readable().await?;
let mut buf = Vec::with_capacity(16);
a.try_recv_buf(&mut buf)?;
assert_eq!(buf, b\"hello\");
")]
            pub fn try_recv_buf<B: bytes::BufMut>(&self, buf: &mut B) -> std::io::Result<usize> {
                self.try_receive(|| self.receive_buf(buf))
            }

            fn receive_buf(&self, buf: &mut impl bytes::BufMut) -> std::io::Result<usize> {
                let io = &*self.io;
                let receive = |room: &mut [_]| {
                    Ok((io.try_io(|| socket2::SockRef::from(io).recv(room))?, ()))
                };
                crate::io::receive_into(buf, receive).map(|(count, ())| count)
            }

            /// Receives a datagram. Returns its length and who sent it.
            ///
            /// # Errors
            /// Whatever `recvfrom(2)` reports.
            ///
            /// # Cancel safety
            /// Safe: no datagram is lost.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair, "b.send(b\"hello\").await?;
let mut buf = [0; 16];
let (count, from) = a.recv_from(&mut buf).await?;
println!(\"{count} bytes from {from:?}\");
# assert_eq!(&buf[..count], b\"hello\");
")]
            pub async fn recv_from(&self, buf: &mut [u8]) -> std::io::Result<(usize, $addr)> {
                self.read(|| self.io.recv_from(buf)).await.map(|(count, from)| (count, from.into()))
            }

            /// [`recv_from`](Self::recv_from) for hand-written futures; the last task to poll is
            /// woken.
            ///
            /// # Errors
            /// As `recv_from`.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair, "
use volt::io::ReadBuf;
b.send(b\"hello\").await?;
let mut room = [0; 16];
let mut buf = ReadBuf::new(&mut room);
let from = std::future::poll_fn(|cx| a.poll_recv_from(cx, &mut buf)).await?;
println!(\"{:?} from {from:?}\", buf.filled());
# assert_eq!(buf.filled(), b\"hello\");
")]
            pub fn poll_recv_from(
                &self,
                cx: &mut std::task::Context<'_>,
                buf: &mut tokio::io::ReadBuf<'_>,
            ) -> std::task::Poll<std::io::Result<$addr>> {
                self.io.poll_receive(crate::reactor::Direction::Receive, cx, buf, |io, room| {
                    let (count, from) = io.try_io(|| socket2::SockRef::from(io).recv_from(room))?;
                    Ok((count, $address(&from)?))
                })
            }

            /// [`recv_from`](Self::recv_from) without waiting.
            ///
            /// # Errors
            /// As `recv_from`, and [`WouldBlock`](std::io::ErrorKind::WouldBlock).
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair, "b.send(b\"hello\").await?;
a.readable().await?;
let (count, from) = a.try_recv_from(&mut [0; 16])?;
println!(\"{count} bytes from {from:?}\");
")]
            pub fn try_recv_from(&self, buf: &mut [u8]) -> std::io::Result<(usize, $addr)> {
                self.try_receive(|| self.io.recv_from(buf)).map(|(count, from)| (count, from.into()))
            }

            /// [`recv_from`](Self::recv_from) into the spare room of `buf`, which is not zeroed
            /// first.
            ///
            /// # Errors
            /// As `recv_from`.
            ///
            /// # Cancel safety
            /// Safe: no datagram is lost.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair, "b.send(b\"hello\").await?;
let mut buf = Vec::with_capacity(16);
let (_, from) = a.recv_buf_from(&mut buf).await?;
println!(\"{buf:?} from {from:?}\");
# assert_eq!(buf, b\"hello\");
")]
            pub async fn recv_buf_from<B: bytes::BufMut>(
                &self,
                buf: &mut B,
            ) -> std::io::Result<(usize, $addr)> {
                self.read(|| self.receive_buf_from(buf)).await
            }

            /// [`try_recv_from`](Self::try_recv_from) into the spare room of `buf`, which is not
            /// zeroed first.
            ///
            /// # Errors
            /// As `try_recv_from`.
            ///
            /// # Examples
            #[doc = $crate::net::share::example!($pair, "b.send(b\"hello\").await?;
a.readable().await?;
let mut buf = Vec::with_capacity(16);
let (_, from) = a.try_recv_buf_from(&mut buf)?;
println!(\"{buf:?} from {from:?}\");
# assert_eq!(buf, b\"hello\");
")]
            pub fn try_recv_buf_from<B: bytes::BufMut>(
                &self,
                buf: &mut B,
            ) -> std::io::Result<(usize, $addr)> {
                self.try_receive(|| self.receive_buf_from(buf))
            }

            fn receive_buf_from(&self, buf: &mut impl bytes::BufMut) -> std::io::Result<(usize, $addr)> {
                let io = &*self.io;
                crate::io::receive_into(buf, |room| {
                    let (count, from) = io.try_io(|| socket2::SockRef::from(io).recv_from(room))?;
                    Ok((count, $address(&from)?))
                })
            }
        }

        impl TryFrom<$std> for $type {
            type Error = std::io::Error;

            /// As `from_std`.
            #[track_caller]
            fn try_from(socket: $std) -> std::io::Result<Self> {
                Self::from_std(socket)
            }
        }
    };
}

pub(super) use datagram;
