//! The reactor: waits for the operating system's events and makes them readiness and wake-ups.
//!
//! One thread at a time has the [`Reactor`] and turns it; everybody else has its [`Handle`].
//! What one source's readiness is, and how tasks wait for it, is in `source`; how an event finds its
//! source in `slab`; how a socket is tied to both in `registration`; which reads are not worth a try, and
//! which are before there is an event, in `habit` and `guess`.
//!
//! Architecture invariants: no lock is held while a task is woken; a turn costs one system call (one more for each, where
//! there is room for one event, of the bell and of what is the driver's own); a reactor without registrations is asked
//! nothing when its thread only looks in passing.

mod guess;
mod habit;
mod poller;
mod registration;
mod slab;
mod source;
mod unpark;

use std::fmt;
use std::io;
use std::task::Waker;
use std::time::Duration;

use volt_sync::internal::primitive::Arc;

use self::guess::Failures;
use self::poller::Poller;
use self::slab::{Slab, Token, View};
use self::unpark::Unpark;

use crate::runtime::context;
use crate::task;

pub(crate) use self::registration::{Registration, Start};
pub(crate) use self::source::{Direction, Event};

/// The token of [`Handle::unpark`]; no slot gets that far.
const UNPARK: mio::Token = mio::Token(usize::MAX);

/// The token of what is [watched](Reactor::watch_own) for the driver itself. (No source's token is as large, either.)
const OWN: mio::Token = mio::Token(usize::MAX - 1);

/// Why the reactor's thread looks for events without waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Why {
    /// It is time to, or there is nothing else to do.
    #[default]
    Due,
    /// It is time to, and the polls since the last look were long: a read that is put off waits for two such looks at
    /// most.
    Hurry,
    /// One more, while there are still tasks to run.
    Early,
}

/// How many events one turn takes at most. What it leaves, the next one finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventsPerTurn {
    /// A turn that may wait.
    pub(crate) waiting: usize,
    /// One that only looks.
    pub(crate) busy: usize,
}

impl EventsPerTurn {
    /// More are taken as these: the memory for them is there all the time.
    const MOST: usize = 1 << 16;

    /// Of a turn with this timeout.
    #[inline]
    fn of(self, timeout: Option<Duration>) -> usize {
        if timeout == Some(Duration::ZERO) { self.busy } else { self.waiting }
    }

    /// Within bounds.
    fn clamped(self) -> Self {
        let Self { waiting, busy } = self;
        Self { waiting: waiting.clamp(1, Self::MOST), busy: busy.clamp(1, Self::MOST) }
    }
}

impl Default for EventsPerTurn {
    fn default() -> Self {
        Self { waiting: 512, busy: 512 }
    }
}

/// Waits for events; exactly one thread at a time has it.
pub(crate) struct Reactor {
    poller: Poller,
    view: View,
}

/// Registers sources, and wakes the thread that turns the reactor.
#[derive(Clone)]
pub(crate) struct Handle(Arc<Shared>);

struct Shared {
    registry: mio::Registry,
    slab: Slab,
    unpark: Unpark,
    failures: Failures,
    bell: mio::Waker,
}

impl Reactor {
    /// # Errors
    /// If the operating system gives no poll or wake-up descriptor.
    pub(crate) fn new(events: EventsPerTurn) -> io::Result<(Self, Handle)> {
        let poller = Poller::new(events)?;
        let shared = Shared {
            registry: poller.registry().try_clone()?,
            slab: Slab::new(),
            unpark: Unpark::new(),
            failures: Failures::new(),
            bell: mio::Waker::new(poller.registry(), UNPARK)?,
        };
        Ok((Self { poller, view: View::default() }, Handle(Arc::new(shared))))
    }

    /// Waits for readiness at most `timeout` (`None`: until woken; zero: only looks), marks the
    /// registrations ready and wakes their tasks. Returns the number of events.
    ///
    /// May return early without an event. An [`unpark`](Handle::unpark) that finds no wait ends the
    /// next one; a mere look leaves it for that.
    ///
    /// # Errors
    /// Only if the poll descriptor is unusable.
    pub(crate) fn turn(&mut self, handle: &Handle, timeout: Option<Duration>) -> io::Result<usize> {
        self.turn_calling(handle, timeout, || ())
    }

    /// As [`turn`](Self::turn); calls `is_back` before it wakes anybody, and not while it waits.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub(crate) fn turn_calling(
        &mut self,
        handle: &Handle,
        timeout: Option<Duration>,
        is_back: impl Fn(),
    ) -> io::Result<usize> {
        let shared = &*handle.0;
        shared.slab.trim(&mut self.view);
        if timeout == Some(Duration::ZERO) {
            is_back();
            return if shared.slab.len() == 0 { Ok(0) } else { self.look_now(shared) };
        }
        if shared.unpark.has_notes() || !shared.unpark.begin() {
            is_back();
            return self.look_now(shared);
        }
        let mut ended = false;
        let result = self.poll_with(shared, timeout, || {
            if !ended {
                ended = true;
                shared.unpark.end();
                is_back();
            }
        });
        if !ended {
            shared.unpark.end();
        }
        result
    }

    /// A descriptor of the driver, which ends waits when it becomes readable, and is no source. Closing it undoes this.
    ///
    /// # Errors
    /// If the system refuses it.
    #[cfg(target_os = "linux")]
    pub(crate) fn watch_own(&self, fd: std::os::fd::RawFd) -> io::Result<()> {
        let mut source = mio::unix::SourceFd(&fd);
        self.poller.registry().register(&mut source, OWN, mio::Interest::READABLE)
    }

    /// As [`turn`](Self::turn) without waiting.
    pub(crate) fn look(&mut self, handle: &Handle, why: Why) -> io::Result<usize> {
        self.view.looks(why);
        self.turn(handle, Some(Duration::ZERO))
    }

    /// Instead of a look: has the read made that the next look would probably find an event for, and no
    /// other. False if there is none such, or it is time for a look.
    pub(crate) fn guess(&mut self, handle: &Handle, now: impl FnOnce() -> u64) -> bool {
        self.view.guess(&handle.0.unpark, &handle.0.failures, now)
    }

    /// Looks without waiting, and after the reads that were put off.
    fn look_now(&mut self, shared: &Shared) -> io::Result<usize> {
        let expected = self.view.expected(&shared.unpark);
        let events = self.poll_with(shared, Some(Duration::ZERO), || ())?;
        Ok(events + self.view.remind(&shared.unpark, events, expected))
    }

    /// `woken` is called before each event: before the first wake-up of a task, the wait has to be
    /// declared over, so that an unpark that follows from it does not ring.
    fn poll_with(
        &mut self,
        shared: &Shared,
        mut timeout: Option<Duration>,
        mut woken: impl FnMut(),
    ) -> io::Result<usize> {
        let (mut events, view) = (0, &mut self.view);
        view.begin();
        loop {
            let mut rung = false;
            self.poller.wait(timeout, |token, ready| {
                woken();
                if token >= OWN {
                    rung = true;
                    return;
                }
                events += 1;
                view.deliver(&shared.slab, Token(token.0), ready);
            })?;
            // The bell and what is our own are no events of a source, and may have had the only place. That there is none
            // lets a paused clock move on.
            if events > 0 || !rung || self.poller.takes_more_than_one(timeout) {
                return Ok(events);
            }
            timeout = Some(Duration::ZERO);
        }
    }
}

impl Handle {
    /// The reactor of the runtime in scope; panics outside one, naming `caller`.
    #[track_caller]
    pub(crate) fn current(caller: &'static str) -> Self {
        context::with_driver(caller, |driver| driver.reactor.clone())
    }

    /// The reactor of the runtime in scope, if there is one.
    #[cfg(unix)]
    pub(crate) fn try_current() -> Option<Self> {
        context::try_with_runtime(|runtime| runtime.driver_handle.reactor.clone())
    }

    /// True if `other` is one of the same reactor.
    #[cfg(unix)]
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// True if this thread is a member of the runtime that turns the reactor, and goes on with that while
    /// the owner of `waker` waits, soon. (In another executor it may sleep, or not wait at all.)
    fn is_turned_for(&self, waker: &Waker) -> bool {
        #[cfg(all(test, not(volt_loom)))]
        if tests::TURNS.get() {
            return true;
        }
        let turned = context::current_worker(|worker| {
            worker.is_some_and(|worker| {
                std::ptr::eq(&*worker.shared.driver_handle.reactor.0, &*self.0)
                    && !worker.polls_are_long()
            })
        });
        turned && task::is_polled_by_us(waker)
    }

    /// True if the next turn only looks, since a read was put off.
    #[inline]
    pub(crate) fn owes_a_look(&self) -> bool {
        self.0.unpark.has_notes()
    }

    /// Makes the current turn return, or the next one that waits.
    pub(crate) fn unpark(&self) {
        if self.0.unpark.unpark() {
            self.0.bell.wake().expect("the reactor's wake-up descriptor accepts a write");
        }
    }

    /// Ends all waits with an error and refuses registrations from now on.
    pub(crate) fn shutdown(&self) {
        slab::shut_down(&self.0.slab.close());
        self.unpark();
    }

    /// How many sources are registered.
    pub(crate) fn registered(&self) -> usize {
        self.0.slab.len()
    }
}

impl fmt::Debug for Reactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reactor").finish_non_exhaustive()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("registered", &self.registered()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
