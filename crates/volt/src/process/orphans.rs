//! Collecting the status of children that were dropped while they ran, so that no zombie stays.
//!
//! Purpose: any runtime that is driven does it. The one in whose context a child was dropped, or started, may be driven no
//! more, or be about to shut down, and there may be none at all yet.
//!
//! Rejected: a task of the current runtime, which may never run again, or go with its runtime. A thread: some programs have one
//! thread only and rely on it (`unshare`), and one that a runtime wakes up for is enough. SIGCHLD where there are pidfds: a handler
//! interrupts the system calls of all threads, for each child of the process from then on. A task in each runtime: it keeps their
//! schedulers busy, and takes part in their metrics.
//!
//! State, all under one lock:
//!
//! | Orphans  | Why there      | What finds that one has ended                         |
//! |----------|----------------|-------------------------------------------------------|
//! | signed   | it has a pidfd | the *nursery*, a poll of all pidfds, becomes readable |
//! | unsigned | it has none    | any SIGCHLD: all of them are looked at                |
//!
//! And the watches: while there are signed orphans, each runtime's reactor watches the nursery; while there are unsigned ones, each
//! has a [`Signal`]. The thread that turns a reactor which says so looks. Several may: the lock makes each end one's. With the last
//! orphan of its kind the watches go, so that a runtime without orphans is as before. If a runtime cannot have its watch, for want
//! of descriptors, all orphans are looked at every 10 ms (`rest.rs`), and the watch is tried again.
//!
//! Invariants:
//! 1. A child is here if and only if it has not been waited for: so its number is its own, and no other is waited for.
//! 2. Under the lock nothing is called but the system, and nothing is dropped but children and pidfds: no waker runs, is
//!    cloned or dropped, and no runtime is.
//! 3. While there are orphans of a kind, each runtime that has not shut down has a watch of that kind, or somebody is on the
//!    way to make it, or `unheard` is set.
//!
//! Progress: the list of runtimes has a lock of its own. Who adopts an orphan puts it here, then looks at that list; who makes a
//! runtime puts it into that list, then looks here. So one of the two sees the other (invariant 3). Of signed orphans, epoll tells
//! of one that has ended before it was asked, at both levels. An unsigned one is looked at after it is here, and after a
//! watch is made: whatever ends later sends a SIGCHLD that the watches hear.
//!
//! One that has ended while another process traces it stays: the system says it a second time when the tracer has let go of
//! it. If no runtime is driven, the next use of the module looks.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Child as StdChild;
use std::sync::{Arc, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mio::unix::SourceFd;
use volt_sync::coop;
use volt_sync::internal::primitive::StaticMutex;

use super::{exit, rest};
use crate::io::Interest;
use crate::reactor::{Direction, Handle, Registration, Start};
use crate::runtime;
use crate::signal::unix::{Signal, SignalKind, signal_in};

static ORPHANS: StaticMutex<Orphans> = StaticMutex::new(Orphans {
    process: 0,
    signed: BTreeMap::new(),
    unsigned: Pile::new(),
    adopted: 0,
    unheard: false,
    nursery: None,
    watches: Vec::new(),
});

/// See the module's documentation.
struct Orphans {
    /// Whose children these are; 0 before the first.
    process: u32,
    /// By their number, which is their token in the nursery.
    signed: BTreeMap<usize, (StdChild, OwnedFd)>,
    unsigned: Pile,
    /// So many signed ones there have been.
    adopted: usize,
    /// Some runtime lacks a watch.
    unheard: bool,
    /// Stays from the first signed orphan on.
    nursery: Option<Nursery>,
    watches: Vec<Arc<Watch>>,
}

struct Nursery {
    poll: mio::Poll,
    events: mio::Events,
}

/// Children that are looked at in turn.
struct Pile {
    children: Vec<StdChild>,
    /// Which one is next.
    next: usize,
}

/// How many of them are looked at for each child that is started or dropped.
const LOOKS: usize = 32;

/// What a watch waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Signed,
    Unsigned,
}

/// How one runtime hears of ends.
struct Watch {
    reactor: Handle,
    sign: Sign,
}

enum Sign {
    /// By a descriptor of its own, so that a reactor does not take it for one that is about to go.
    Nursery(Registration, mio::Registry),
    Sigchld(StaticMutex<Signal>),
}

/// The waker of a watch, which the reactor has: so it does not keep the watch.
struct Bell(Weak<Watch>);

/// Takes a child that nobody waits for any more, and its pidfd, if there is one already.
pub(super) fn adopt(child: StdChild, pidfd: Option<OwnedFd>) {
    // Nobody else can have waited for it so far (invariant 1).
    let pidfd = pidfd.or_else(|| exit::pidfd(&child));
    with_orphans(|orphans| orphans.add(child, pidfd));
    runtime::reactors().iter().for_each(watch_in);
    collect();
}

/// Has the runtime of this reactor collect orphans, if there are any. It is in the list of runtimes.
pub(crate) fn watch_in(reactor: &Handle) {
    for kind in [Kind::Signed, Kind::Unsigned] {
        let wanted = with_orphans(|orphans| orphans.wants(kind, reactor));
        if !wanted {
            continue;
        }
        match Watch::new(kind, reactor.clone()) {
            Ok(watch) => {
                let watch = Arc::new(watch);
                let added = with_orphans(|orphans| {
                    // Somebody else may have made one meanwhile, or the orphans may be gone.
                    let wanted = orphans.wants(kind, reactor);
                    wanted.then(|| orphans.watches.push(watch.clone())).is_some()
                });
                if added {
                    watch.begin();
                }
            }
            // No descriptors, or no memory.
            Err(error) if error.raw_os_error().is_some() => {
                with_orphans(|orphans| orphans.unheard = true)
            }
            // It has shut down.
            Err(_) => {}
        }
    }
}

/// Collects the status of orphans that have ended. (Mostly a runtime has.)
pub(super) fn collect() {
    with_orphans(|orphans| {
        orphans.look_at_signed();
        orphans.unsigned.look(LOOKS);
    });
}

/// Collects what no runtime may hear of, and lets each that could not have its watch try again. True if one still cannot.
pub(super) fn look_again() -> bool {
    with_orphans(|orphans| {
        orphans.look_at_signed();
        orphans.unsigned.look(usize::MAX);
        orphans.unheard = false;
    });
    runtime::reactors().iter().for_each(watch_in);
    with_orphans(|orphans| orphans.unheard)
}

/// Calls `f` under the lock, and does what follows from it outside (invariant 2).
fn with_orphans<R>(f: impl FnOnce(&mut Orphans) -> R) -> R {
    let (result, surplus, unheard) = {
        let mut orphans = ORPHANS.lock().unwrap_or_else(PoisonError::into_inner);
        orphans.leave_to_the_parent();
        let result = f(&mut orphans);
        (result, orphans.surplus(), orphans.unheard)
    };
    drop(surplus);
    if unheard {
        rest::look_at_orphans();
    }
    result
}

impl Orphans {
    /// In a process that was forked: forgets the parent's, whose nursery and reactors it has copies of. It may close them, but not
    /// change what they watch, which is the same for both.
    fn leave_to_the_parent(&mut self) {
        let process = std::process::id();
        if self.process == process {
            return;
        }
        self.process = process;
        self.signed.clear();
        self.unsigned.children.clear();
        self.nursery = None;
        self.watches.drain(..).for_each(std::mem::forget);
    }

    fn add(&mut self, mut child: StdChild, pidfd: Option<OwnedFd>) {
        let number = self.adopted;
        if let Some(pidfd) = pidfd.filter(|pidfd| self.register(number, pidfd).is_ok()) {
            self.adopted += 1;
            self.signed.insert(number, (child, pidfd));
        } else if matches!(child.try_wait(), Ok(None)) {
            // What ends from here on, each watch hears of.
            self.unsigned.children.push(child);
        }
    }

    /// The nursery, which the first signed orphan makes.
    fn nursery(&mut self) -> io::Result<&mut Nursery> {
        Ok(match &mut self.nursery {
            Some(nursery) => nursery,
            none => none.insert(Nursery::new()?),
        })
    }

    fn register(&mut self, number: usize, pidfd: &OwnedFd) -> io::Result<()> {
        let (fd, readable) = (pidfd.as_raw_fd(), mio::Interest::READABLE);
        let registry = self.nursery()?.poll.registry();
        registry.register(&mut SourceFd(&fd), mio::Token(number), readable)
    }

    /// Whether there are orphans of this kind.
    fn has(&self, kind: Kind) -> bool {
        match kind {
            Kind::Signed => !self.signed.is_empty(),
            Kind::Unsigned => !self.unsigned.children.is_empty(),
        }
    }

    /// Whether there are, and this reactor does not watch them yet.
    fn wants(&self, kind: Kind, reactor: &Handle) -> bool {
        let has_watch = |watch: &Arc<Watch>| watch.kind() == kind && watch.reactor.is(reactor);
        self.has(kind) && !self.watches.iter().any(has_watch)
    }

    /// Takes the watches that nobody needs any more.
    fn surplus(&mut self) -> Vec<Arc<Watch>> {
        let watches = std::mem::take(&mut self.watches);
        let (needed, surplus) = watches.into_iter().partition(|watch| self.has(watch.kind()));
        self.watches = needed;
        surplus
    }

    /// Collects those whose end the nursery tells. False if there are none.
    fn look_at_signed(&mut self) -> bool {
        if self.signed.is_empty() {
            return false;
        }
        let (mut ended, mut any) = (Vec::new(), false);
        while self.nursery.as_mut().is_some_and(|nursery| nursery.tells(&mut ended)) {
            any = true;
            for number in ended.drain(..) {
                let Some((child, pidfd)) = self.signed.get_mut(&number) else { continue };
                // An error means that there is nothing to wait for.
                if matches!(child.try_wait(), Ok(None)) {
                    continue;
                }
                if let Some(nursery) = &self.nursery {
                    nursery.forget(pidfd);
                }
                self.signed.remove(&number);
            }
        }
        any
    }
}

impl Nursery {
    fn new() -> io::Result<Self> {
        Ok(Self { poll: mio::Poll::new()?, events: mio::Events::with_capacity(LOOKS) })
    }

    /// Closing it need not be enough: a process that is being started has a copy.
    fn forget(&self, pidfd: &OwnedFd) {
        // An error means that it is not there.
        let _ = self.poll.registry().deregister(&mut SourceFd(&pidfd.as_raw_fd()));
    }

    /// Says whose pidfds have become readable. False if none has.
    fn tells(&mut self, ended: &mut Vec<usize>) -> bool {
        let polled = loop {
            match self.poll.poll(&mut self.events, Some(Duration::ZERO)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                polled => break polled,
            }
        };
        if polled.is_ok() {
            ended.extend(self.events.iter().map(|event| event.token().0));
        }
        !ended.is_empty()
    }
}

impl Pile {
    const fn new() -> Self {
        Self { children: Vec::new(), next: 0 }
    }

    /// Collects those that have ended, of `most` of them.
    fn look(&mut self, most: usize) {
        for _ in 0..most.min(self.children.len()) {
            self.next = if self.next < self.children.len() { self.next } else { 0 };
            // An error means that there is nothing to wait for.
            match self.children[self.next].try_wait() {
                Ok(None) => self.next += 1,
                _ => drop(self.children.remove(self.next)),
            }
        }
    }
}

impl Watch {
    /// # Errors
    /// If there are no descriptors left, or no memory; or, without a number of the system's, if the runtime has shut down.
    fn new(kind: Kind, reactor: Handle) -> io::Result<Self> {
        let sign = match kind {
            Kind::Signed => {
                let nursery =
                    with_orphans(|orphans| orphans.nursery()?.poll.registry().try_clone())?;
                let (handle, fd) = (reactor.clone(), nursery.as_raw_fd());
                let (reads, start) = (Interest::READABLE, Start::Unknown);
                let registration = Registration::new(handle, &mut SourceFd(&fd), fd, reads, start)?;
                Sign::Nursery(registration, nursery)
            }
            Kind::Unsigned => {
                Sign::Sigchld(StaticMutex::new(signal_in(reactor.clone(), SignalKind::child())?))
            }
        };
        Ok(Self { reactor, sign })
    }

    fn kind(&self) -> Kind {
        match self.sign {
            Sign::Nursery(..) => Kind::Signed,
            Sign::Sigchld(_) => Kind::Unsigned,
        }
    }

    /// Has its reactor's thread look from now on.
    fn begin(self: &Arc<Self>) {
        if self.kind() == Kind::Unsigned {
            // What has ended before it heard anything.
            with_orphans(|orphans| orphans.unsigned.look(usize::MAX));
        }
        Arc::new(Bell(Arc::downgrade(self))).wake();
    }

    /// Looks if there is a sign of an end. An error if the runtime has shut down.
    fn poll_look(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.sign {
            Sign::Nursery(registration, _) => registration.poll_io(Direction::Read, cx, |_| {
                let any = with_orphans(Orphans::look_at_signed);
                if any { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
            }),
            Sign::Sigchld(signal) => {
                // Others may wake it, in their runtimes: it stays in its own, and no waker runs under the lock.
                let mut signal = signal.lock().unwrap_or_else(PoisonError::into_inner);
                let arrived = signal.poll_by_its_hub(cx);
                drop(signal);
                arrived.map_ok(|()| with_orphans(|orphans| orphans.unsigned.look(usize::MAX)))
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Sign::Nursery(registration, nursery) = &self.sign {
            // An error means that it is not there.
            let _ = registration.deregister(&mut SourceFd(&nursery.as_raw_fd()));
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let Some(watch) = self.0.upgrade() else { return };
        let waker = Waker::from(self);
        let mut cx = Context::from_waker(&waker);
        coop::with_budget(None, || {
            while let Poll::Ready(looked) = watch.poll_look(&mut cx) {
                if looked.is_err() {
                    // Dropped with the last reference, outside of the lock.
                    let is_it = |other: &Arc<Watch>| Arc::ptr_eq(other, &watch);
                    return with_orphans(|orphans| orphans.watches.retain(|other| !is_it(other)));
                }
            }
        });
    }
}
