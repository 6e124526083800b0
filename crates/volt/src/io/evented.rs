//! A non-blocking descriptor and its registration: what every socket type is made of.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::ops::Deref;
use std::task::{Context, Poll, ready};

use bytes::BufMut;
use mio::event::Source;
use tokio::io::ReadBuf;

use super::raw::{Descriptor, RawRead, RawStream, RawWrite};
use super::{Interest, Ready};
use crate::reactor::{Direction, Event, Handle, Registration, Start};

/// Whether a read or write of less than was asked for shows that the socket's buffer is empty or
/// full, so that the next event says when to go on (epoll(7), on edge-triggered notification).
const SHORT_IS_ALL: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// So many slices are written at once (`IOV_MAX`; elsewhere the standard library may pass fewer, where no write is
/// taken for a short one).
const MOST_SLICES: usize = 1024;

/// See the module's documentation. `E` is one of `mio`'s sockets.
pub(crate) struct Evented<E: Source + Descriptor> {
    /// `None` only while it is taken apart.
    io: Option<E>,
    registration: Registration,
}

impl<E: Source + Descriptor> Evented<E> {
    /// Registers an open, non-blocking socket with the runtime in scope.
    ///
    /// # Panics
    /// Outside a runtime, naming `caller`.
    #[track_caller]
    pub(crate) fn open(caller: &'static str, io: E, extra: Option<Interest>) -> io::Result<Self> {
        let both = Interest::READABLE | Interest::WRITABLE;
        let interest = extra.map_or(both, |extra| both | extra);
        Self::new(Handle::current(caller), io, interest, Start::Open)
    }

    pub(crate) fn new(
        handle: Handle,
        mut io: E,
        interest: Interest,
        start: Start,
    ) -> io::Result<Self> {
        #[cfg(unix)]
        let fd = io.as_raw_fd();
        let registration = Registration::new(
            handle,
            &mut io,
            #[cfg(unix)]
            fd,
            interest,
            start,
        )?;
        Ok(Self { io: Some(io), registration })
    }

    #[inline]
    pub(crate) fn registration(&self) -> &Registration {
        &self.registration
    }

    /// Takes the socket out of the reactor.
    pub(crate) fn into_inner(mut self) -> io::Result<E> {
        let mut io = self.io.take().expect("taken apart once");
        self.registration.deregister(&mut io)?;
        Ok(io)
    }

    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        Ok(self.registration.ready(interest).await?.ready() & interest.mask())
    }

    pub(crate) fn poll_ready(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.registration.poll_ready(direction, cx).map_ok(|_| ())
    }

    /// As [`Registration::poll_io`], into a buffer that need not be initialised. `receive` returns
    /// how many bytes it has written to the front of its argument.
    #[inline]
    pub(crate) fn poll_receive<R>(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
        receive: impl Fn(&E, &mut [MaybeUninit<u8>]) -> io::Result<(usize, R)>,
    ) -> Poll<io::Result<R>> {
        let (filled, result) = ready!(self.registration.poll_io(direction, cx, |_| {
            // SAFETY: `receive` only writes initialised bytes to the slice.
            let room = unsafe { buf.unfilled_mut() };
            receive(self, room)
        }))?;
        advance(buf, filled);
        Poll::Ready(Ok(result))
    }
}

/// Counts the first `filled` bytes of the unfilled part as filled.
#[inline]
fn advance(buf: &mut ReadBuf<'_>, filled: usize) {
    assert!(filled <= buf.remaining(), "a read returned more bytes than there was room for");
    // SAFETY: the callers' `receive` has written that many bytes.
    unsafe { buf.assume_init(filled) };
    buf.advance(filled);
}

/// Receives into the spare room of `buf`. Returns the byte count and what `receive` returns.
pub(crate) fn receive_into<R>(
    buf: &mut (impl BufMut + ?Sized),
    receive: impl FnOnce(&mut [MaybeUninit<u8>]) -> io::Result<(usize, R)>,
) -> io::Result<(usize, R)> {
    let chunk = buf.chunk_mut();
    // SAFETY: `receive` only writes initialised bytes to the slice.
    let room = unsafe { chunk.as_uninit_slice_mut() };
    let size = room.len();
    let (filled, result) = receive(room)?;
    assert!(filled <= size, "a read returned more bytes than there was room for");
    // SAFETY: `receive` has written that many bytes.
    unsafe { buf.advance_mut(filled) };
    Ok((filled, result))
}

/// Reading, for streams, pipes and their halves.
impl<E: RawRead> Evented<E> {
    pub(crate) fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.registration.try_io(Interest::READABLE, || self.read(buf))
    }

    pub(crate) fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.registration.try_io(Interest::READABLE, || self.read_vectored(bufs))
    }

    pub(crate) fn try_read_buf(&self, buf: &mut impl BufMut) -> io::Result<usize> {
        let read = |room: &mut [_]| Ok((self.receive(room)?.count, ()));
        Ok(self.registration.try_io(Interest::READABLE, || receive_into(buf, read))?.0)
    }

    /// [`tokio::io::AsyncRead::poll_read`].
    #[inline]
    pub(crate) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buf.remaining();
        let (event, received) = ready!(self.registration.poll_io(Direction::Read, cx, |event| {
            // SAFETY: `receive` only writes initialised bytes to the slice.
            let room = unsafe { buf.unfilled_mut() };
            Ok((event, self.receive(room)?))
        }))?;
        advance(buf, received.count);
        if received.count > 0 && !ends(event) {
            let all = SHORT_IS_ALL && received.count < room && !received.cut;
            self.registration.has_read(event, all);
        }
        Poll::Ready(Ok(()))
    }

    /// [`poll_read`](Self::poll_read) into several buffers, for the traits of `futures-io`. A short one
    /// does not count as the last: only `receive` knows whether the read was cut.
    #[cfg(feature = "futures-io")]
    pub(crate) fn poll_read_vectored(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let (event, count) = ready!(
            self.registration
                .poll_io(Direction::Read, cx, |event| { Ok((event, self.read_vectored(bufs)?)) })
        )?;
        if count > 0 && !ends(event) {
            self.registration.has_read(event, false);
        }
        Poll::Ready(Ok(count))
    }
}

/// Writing, for streams, pipes and their halves.
impl<E: RawWrite> Evented<E> {
    pub(crate) fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.registration.try_io(Interest::WRITABLE, || self.write(buf))
    }

    pub(crate) fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.registration.try_io(Interest::WRITABLE, || self.write_vectored(bufs))
    }

    /// [`tokio::io::AsyncWrite::poll_write`].
    #[inline]
    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_send(cx, buf.len(), || self.write(buf))
    }

    /// [`tokio::io::AsyncWrite::poll_write_vectored`].
    #[inline]
    pub(crate) fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // Who has offered more has sent all that the system takes at once, which is not a short write.
        let sizes = bufs.iter().take(MOST_SLICES).map(|buf| buf.len());
        let size = sizes.fold(0, usize::saturating_add);
        self.poll_send(cx, size, || self.write_vectored(bufs))
    }

    #[inline]
    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        size: usize,
        mut send: impl FnMut() -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let (event, sent) =
            ready!(self.registration.poll_io(Direction::Write, cx, |event| Ok((event, send()?))))?;
        if sent > 0 && sent < size && !event.ready().is_write_closed() {
            self.registration.clear(event, short(Ready::WRITABLE));
        }
        Poll::Ready(Ok(sent))
    }
}

impl<E: RawStream> Evented<E> {
    /// [`tokio::io::AsyncWrite::poll_shutdown`].
    pub(crate) fn shutdown_write(&self) -> io::Result<()> {
        match self.shutdown(Shutdown::Write) {
            // The peer was faster: nothing is left to shut down.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            result => result,
        }
    }
}

/// What a short operation clears.
const fn short(bits: Ready) -> Ready {
    if SHORT_IS_ALL { bits } else { Ready::EMPTY }
}

/// After a short read more may follow without another event: the end of the stream or an error,
/// which has been reported already, or what is behind urgent data, where every read stops.
fn ends(event: Event) -> bool {
    event.ready().intersects(Ready::READ_CLOSED | Ready::ERROR | Ready::URGENT)
}

impl<E: Source + Descriptor> Deref for Evented<E> {
    type Target = E;
    #[inline]
    fn deref(&self) -> &E {
        self.io.as_ref().expect("taken apart only by value")
    }
}

impl<E: Source + Descriptor> Drop for Evented<E> {
    fn drop(&mut self) {
        if let Some(mut io) = self.io.take() {
            // Closing the descriptor ends the registration in any case, unless it is shared.
            let _ = self.registration.deregister(&mut io);
        }
    }
}

impl<E: Source + Descriptor + fmt::Debug> fmt::Debug for Evented<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.io.fmt(f)
    }
}
