//! Ties a descriptor to its source: try the I/O, note what is used up, wait for more.
//!
//! Writing is registered late. Most sockets never fill their send buffer, yet every
//! datagram or unix message that a peer takes out would make a "writable" event, and each new socket
//! one at once. So a socket starts out writable by assumption, and the operating system is asked
//! about it when a write has found no room for the first time ([`Registration::used_up`]). One that connects waits for such an
//! event first ([`Registration::disarm`]).
//!
//! Ordering: `armed` orders nothing. Registering the interest, once or twice, makes the system report the current state. Whoever finds
//! no room clears WRITABLE and then registers, so an event follows if there is room by then; or registers first
//! ([`Registration::clear`]), and then the event is newer than the look, so that the clear leaves it alone, or comes after the clear.
#![forbid(unsafe_code)]

use std::fmt;
use std::future::poll_fn;
use std::io;
#[cfg(unix)]
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use mio::event::Source as MioSource;
use volt_sync::coop;
#[cfg(unix)]
use volt_sync::internal::primitive::AtomicBool;

use super::Handle;
use super::habit::Habit;
use super::slab::{Key, Patience};
use super::source::{Direction, Event, Source};
use crate::io::{Interest, Ready};

/// A source's place in the reactor, for as long as this lives.
pub(crate) struct Registration {
    handle: Handle,
    key: Key,
    habit: Habit,
    #[cfg(unix)]
    late: LateWrite,
}

/// The interest in writing that is not registered yet.
#[cfg(unix)]
struct LateWrite {
    fd: std::os::fd::RawFd,
    /// With writing.
    interest: Interest,
    armed: AtomicBool,
}

/// How a registration starts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start {
    /// An open socket: worth a read, and writable until a write finds no room.
    Open,
    /// Nothing is known: wait for events.
    Unknown,
}

impl Registration {
    /// Registers `source`, which is and stays the descriptor `fd`.
    ///
    /// # Errors
    /// If the descriptor is invalid or cannot be waited for, if it is registered already, if the
    /// system's limit is reached, or if the runtime has shut down.
    pub(crate) fn new(
        handle: Handle,
        source: &mut impl MioSource,
        #[cfg(unix)] fd: std::os::fd::RawFd,
        interest: Interest,
        start: Start,
    ) -> io::Result<Self> {
        let ready = match start {
            Start::Open => Ready::WRITABLE,
            Start::Unknown => Ready::EMPTY,
        };
        let late = cfg!(unix) && !ready.is_empty() && interest.is_writable();
        let first = if late { interest.remove(Interest::WRITABLE) } else { None };
        let Some(key) = handle.0.slab.insert(ready, matches!(start, Start::Open)) else {
            return Err(shut_down());
        };
        let token = mio::Token(key.token.0);
        let registered =
            handle.0.registry.register(source, token, first.unwrap_or(interest).to_mio());
        if let Err(error) = registered {
            handle.0.slab.remove(&key);
            return Err(error);
        }
        Ok(Self {
            handle,
            key,
            habit: Habit::new(),
            #[cfg(unix)]
            late: LateWrite { fd, interest, armed: AtomicBool::new(first.is_none()) },
        })
    }

    /// Tells the operating system that `source` is not of interest any more.
    ///
    /// # Errors
    /// If the descriptor was closed behind our back.
    pub(crate) fn deregister(&self, source: &mut impl MioSource) -> io::Result<()> {
        self.handle.0.registry.deregister(source)
    }

    #[inline]
    fn source(&self) -> &Source {
        self.key.source()
    }

    /// Takes back what an attempt has used up; WRITABLE comes again by an event only if it is
    /// registered, so this does that if need be.
    pub(crate) fn used_up(&self, event: Event, bits: Ready) -> io::Result<()> {
        self.take_back(event, bits);
        self.arm_for(bits)
    }

    fn take_back(&self, event: Event, bits: Ready) {
        if bits.intersects(Ready::READABLE) {
            let had_taken = self.habit.failed(event);
            if event.is_guess() && !had_taken {
                self.handle.0.failures.add();
            }
        }
        self.source().clear(event, bits);
    }

    /// Registers writing, if `bits` have it and it is not registered.
    #[inline]
    fn arm_for(&self, bits: Ready) -> io::Result<()> {
        if !bits.intersects(Ready::WRITABLE) {
            return Ok(());
        }
        #[cfg(unix)]
        // ORD relaxed: see the module's documentation.
        if !self.late.armed.load(Relaxed) {
            return self.arm();
        }
        Ok(())
    }

    #[cfg(unix)]
    #[cold]
    fn arm(&self) -> io::Result<()> {
        self.register_anew(self.late.interest, true)
    }

    /// With writing, if `armed`.
    #[cfg(unix)]
    fn register_anew(&self, interest: Interest, armed: bool) -> io::Result<()> {
        let token = mio::Token(self.key.token.0);
        let mut source = mio::unix::SourceFd(&self.late.fd);
        self.handle.0.registry.reregister(&mut source, token, interest.to_mio())?;
        // ORD relaxed: see the module's documentation.
        self.late.armed.store(armed, Relaxed);
        Ok(())
    }

    /// The source is writable, by an event: the system is asked about that no longer, until a write finds no room. Nobody else
    /// uses the source yet.
    ///
    /// # Errors
    /// If the system's limit is reached.
    pub(crate) fn disarm(&self) -> io::Result<()> {
        #[cfg(unix)]
        if let Some(first) = self.late.interest.remove(Interest::WRITABLE) {
            self.register_anew(first, false)?;
        }
        Ok(())
    }

    /// What an attempt at `mask` may rely on, if there is any point in one.
    #[inline]
    pub(crate) fn look_to_try(&self, mask: Ready) -> Option<Event> {
        self.source().look_to_try(mask)
    }

    /// Clears what a caller has found to be no longer so.
    pub(crate) fn clear(&self, event: Event, bits: Ready) {
        // First, since nobody here could be told of an error: then the source stays ready, and the next attempt tells. (An event
        // that comes of this is newer than `event`, and so not cleared.)
        if self.arm_for(bits).is_ok() {
            self.take_back(event, bits);
        }
    }

    /// Ready when `direction` is worth a try. One task a direction: the last that polled is woken.
    #[inline]
    pub(crate) fn poll_to_try(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Event>> {
        let event = match self.look_to_wait(direction.mask(), cx) {
            Some(event) => event,
            None => ready!(self.source().poll_ready(direction, cx)),
        };
        Poll::Ready(event.live())
    }

    /// As [`look_to_try`](Self::look_to_try), for a caller who waits otherwise: none either if that is to
    /// read, and the read is put off.
    #[inline]
    fn look_to_wait(&self, mask: Ready, cx: &Context<'_>) -> Option<Event> {
        self.look_to_try(mask).filter(|event| {
            !matches!(mask, Ready::READ | Ready::RECEIVE) || !self.puts_off(*event, cx)
        })
    }

    /// Whether the read after `event` is put off until the next event, or a look of the reactor that
    /// finds none. Only by those who turn that reactor: it may rest while others read.
    #[inline]
    fn puts_off(&self, event: Event, cx: &Context<'_>) -> bool {
        self.habit.expects_nothing(event)
            && self.handle.is_turned_for(cx.waker())
            && self.key.put_off(event, self.habit.patience(), &self.handle.0.unpark)
    }

    /// A call begins that may wait for `mask`. If it would wait to read, and a read was put off, that is
    /// made now: who asks again without an event has not waited for one.
    #[inline]
    fn asked(&self, mask: Ready) {
        if !mask.intersects(Ready::READABLE) {
            return;
        }
        if let Some(tick) = self.source().unreadable_since() {
            self.habit.asked_again(tick);
            self.source().remind();
        }
    }

    /// Says that a read of a stream after `event` has found something, and whether that was all.
    #[inline]
    pub(crate) fn has_read(&self, event: Event, all: bool) {
        if all {
            self.habit.emptied(event);
            self.source().clear(event, Ready::READABLE);
        } else {
            self.habit.took(event, Patience::Stream);
        }
    }

    /// Ready when `direction` is known to be.
    pub(crate) fn poll_ready(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Event>> {
        ready!(coop::poll_proceed(cx));
        self.asked(direction.mask());
        let event = ready!(self.source().poll_ready(direction, cx));
        coop::made_progress();
        Poll::Ready(event.live())
    }

    /// Tries `io`, and waits for readiness as often as it would block.
    #[inline]
    pub(crate) fn poll_io<R>(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        mut io: impl FnMut(Event) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        ready!(coop::poll_proceed(cx));
        self.asked(direction.mask());
        loop {
            let event = ready!(self.poll_to_try(direction, cx))?;
            match io(event) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.used_up(event, direction.mask())?;
                }
                result => {
                    coop::made_progress();
                    return Poll::Ready(result);
                }
            }
        }
    }

    /// Waits until the source is ready for some of `interest`. Any number of tasks may.
    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Event> {
        poll_fn(coop::poll_proceed).await;
        self.asked(interest.mask());
        let event = self.source().readiness(interest.mask()).await;
        coop::made_progress();
        event.live()
    }

    /// As [`poll_io`](Self::poll_io), for any number of tasks.
    pub(crate) async fn async_io<R>(
        &self,
        interest: Interest,
        mut io: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        poll_fn(coop::poll_proceed).await;
        self.asked(interest.mask());
        let mut mask = interest.mask();
        loop {
            let look = poll_fn(|cx| Poll::Ready(self.look_to_wait(mask, cx)));
            let event = match look.await {
                Some(event) => event,
                None => self.source().readiness(mask).await,
            }
            .live()?;
            match io() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.used_up(event, interest.refuted())?;
                    // An end that stays is waited for once, or this would go round and round.
                    mask = mask - (event.ready() - interest.refuted());
                }
                result => {
                    coop::made_progress();
                    let reads = matches!(interest, Interest::READABLE | Interest::RECEIVE);
                    if reads && result.is_ok() {
                        self.habit.took(event, Patience::Messages);
                    }
                    return result;
                }
            }
        }
    }

    /// As [`async_io`](Self::async_io), for an `io` that leaves what it has read where it is.
    pub(crate) async fn async_peek<R>(
        &self,
        interest: Interest,
        io: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        let peeked = self.async_io(interest, io).await;
        self.habit.unlearn();
        peeked
    }

    /// Tries `io` once, if there is any point in it.
    pub(crate) fn try_io<R>(
        &self,
        interest: Interest,
        io: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        self.try_refuting(interest, interest.refuted(), io)
    }

    /// As [`try_io`](Self::try_io), to receive a datagram. If there is none, an error stays: who waits to receive has to take it
    /// back, or would go round and round, but this one does not wait, and the system may have a queue of errors.
    pub(crate) fn try_receive<R>(&self, io: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.try_refuting(Interest::RECEIVE, Ready::READ, io)
    }

    fn try_refuting<R>(
        &self,
        interest: Interest,
        refuted: Ready,
        io: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        let Some(event) = self.source().look_at_once(interest.mask()) else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let result = io();
        if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            self.used_up(event, refuted)?;
        }
        result
    }
}

impl Event {
    /// An error if the reactor has shut down.
    pub(crate) fn live(self) -> io::Result<Self> {
        if self.is_shutdown() { Err(shut_down()) } else { Ok(self) }
    }
}

fn shut_down() -> io::Error {
    crate::runtime::shut_down("the Volt runtime that drives this I/O object")
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.handle.0.slab.remove(&self.key);
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("token", &self.key.token).finish_non_exhaustive()
    }
}
