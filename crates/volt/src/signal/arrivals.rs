//! The arrivals of each kind of signal, for the whole process.
//!
//! Purpose: any number of listeners, in any number of runtimes, at the price of one handler for each kind and two
//! descriptors for the process.
//!
//! State: for each kind how many signals have come, which the handler counts; and under a lock, of how many of them the
//! listeners have been told, how many listeners there are, and who waits. The handler then writes a byte to the
//! *bell*, a socket pair whose other end each runtime with a listener watches (`hub.rs`). Whoever reads it tells all.
//!
//! A listener hears of what it is told since it began: so each signal is told once, also if listeners come and go, and
//! what came before a listener, but was not told yet, counts for it. If one has given up (a future of `ctrl_c` in a
//! loop around `select!`), what it was told, or what is told after it, is kept for the next of its kind until some
//! listener has seen a signal. A listener that does not look changes nothing.
//!
//! Ordering: the handler counts before it writes, and whoever has read looks at the count after that. A write that finds
//! the socket full tells nobody, and the system may look whether it is full without any lock: so a look at the room comes
//! after the count, and a look at the count after what made room, in one total order.
//!
//! | Edge  | Release side         | Acquire side      | Carries | Model |
//! | [SA1] | `Arrivals::install`  | `Arrivals::told`  | the count against the room in the socket | none: the room is a number of the system's |
#![allow(unsafe_code, reason = "installing a signal handler")]

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::os::raw::c_int;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::{Acquire, Release, SeqCst};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use signal_hook_registry::FORBIDDEN;
use volt_sync::internal::contain;
use volt_sync::internal::primitive::{AtomicUsize, StaticMutex, fence};

static PROCESS: StaticMutex<Process> = StaticMutex::new(Process { bell: None, kinds: Vec::new() });

struct Process {
    bell: Option<Arc<Bell>>,
    /// With a handler.
    kinds: Vec<Arc<Arrivals>>,
}

#[derive(Debug)]
struct Bell {
    ring: UnixStream,
    heard: UnixStream,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Arrivals {
    number: c_int,
    bell: Arc<Bell>,
    count: AtomicUsize,
    listeners: StaticMutex<Listeners>,
}

#[derive(Debug)]
struct Listeners {
    /// Of so many signals they have been told.
    told: usize,
    /// Up to these, some listener has seen them.
    heard: usize,
    /// One has given up since the last time that one has seen a signal.
    gave_up: bool,
    /// There is a signal that nobody has seen, for the next one that waits for one signal.
    kept: bool,
    next: u64,
    /// Who waits, of those that are alive. (They have their place from the start, so that waiting allocates nothing.)
    waiting: BTreeMap<u64, Option<Waker>>,
}

/// One listener.
#[derive(Debug)]
pub(super) struct Listener {
    of: Arc<Arrivals>,
    id: u64,
    seen: usize,
    /// What it has not seen is for the next one.
    leaves: bool,
}

/// A descriptor that becomes readable with each signal that has a listener.
pub(super) fn bell() -> io::Result<UnixStream> {
    locked(&PROCESS, |process| process.bell()?.heard.try_clone())
}

/// Wakes those whose signal has come; or all who wait, who then find out why. A waker that panics keeps nobody else from
/// being woken.
pub(super) fn tell(all: bool) {
    let mut index = 0;
    loop {
        let next = locked(&PROCESS, |process| process.kinds.get(index).cloned());
        let Some(arrivals) = next else { return };
        for waker in arrivals.told(all) {
            contain(|| waker.wake());
        }
        index += 1;
    }
}

/// Calls `f` under the lock. Wakers are cloned, woken and dropped outside, since that is others' code.
fn locked<T, R>(mutex: &StaticMutex<T>, f: impl FnOnce(&mut T) -> R) -> R {
    f(&mut mutex.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Process {
    fn bell(&mut self) -> io::Result<&Arc<Bell>> {
        if self.bell.is_none() {
            let (ring, heard) = UnixStream::pair()?;
            ring.set_nonblocking(true)?;
            heard.set_nonblocking(true)?;
            self.bell = Some(Arc::new(Bell { ring, heard }));
        }
        Ok(self.bell.as_ref().expect("it is there by now"))
    }

    fn arrivals(&mut self, number: c_int) -> io::Result<&Arc<Arrivals>> {
        let known = self.kinds.iter().position(|arrivals| arrivals.number == number);
        let index = match known {
            Some(index) => index,
            None => {
                let arrivals = Arc::new(Arrivals::new(number, self.bell()?.clone()));
                arrivals.clone().install()?;
                self.kinds.push(arrivals);
                self.kinds.len() - 1
            }
        };
        Ok(&self.kinds[index])
    }
}

impl Arrivals {
    fn new(number: c_int, bell: Arc<Bell>) -> Self {
        let listeners = Listeners {
            told: 0,
            heard: 0,
            gave_up: false,
            kept: false,
            next: 0,
            waiting: BTreeMap::new(),
        };
        Self { number, bell, count: AtomicUsize::new(0), listeners: StaticMutex::new(listeners) }
    }

    /// Counts from now on.
    fn install(self: Arc<Self>) -> io::Result<()> {
        let number = self.number;
        let handler = move || {
            // ORD release: who is told by way of the bell sees it.
            self.count.fetch_add(1, Release);
            // ORD[SA1] release: the count, before the write looks for room.
            fence(SeqCst);
            // Full means that somebody has yet to make room, and then looks at the count.
            let _ = (&self.bell.ring).write(&[1]);
        };
        // SAFETY: the handler does one addition, a fence and one `write` on a socket, which are async-signal-safe: no
        // allocation, no lock; the registry saves and restores `errno` around it.
        let registered = unsafe { signal_hook_registry::register(number, handler) };
        registered.map(drop).map_err(|error| match error.kind() {
            ErrorKind::InvalidInput => cannot_listen(number),
            _ => error,
        })
    }

    /// Tells the listeners, and returns whom to wake.
    fn told(&self, all: bool) -> Vec<Waker> {
        locked(&self.listeners, |listeners| {
            // ORD[SA1] acquire: after the reads that have made room.
            fence(SeqCst);
            // ORD acquire: what the handler has counted before it rang.
            let count = self.count.load(Acquire);
            if count != listeners.told {
                listeners.told = count;
                listeners.kept |= listeners.gave_up;
            } else if !all {
                return Vec::new();
            }
            listeners.waiting.values_mut().filter_map(Option::take).collect()
        })
    }
}

fn cannot_listen(number: c_int) -> io::Error {
    io::Error::other(format!("signal {number} cannot be listened for"))
}

impl Listener {
    /// # Errors
    /// If the signal `number` is none that can be listened for.
    pub(super) fn check(number: c_int) -> io::Result<()> {
        if number <= 0 || FORBIDDEN.contains(&number) {
            return Err(cannot_listen(number));
        }
        Ok(())
    }

    /// Listens for the signal `number` from now on; `once`: for one of them, and gives up if it is dropped before.
    ///
    /// # Errors
    /// If the system does not allow it, or if there are no descriptors left for the bell.
    pub(super) fn new(number: c_int, once: bool) -> io::Result<Self> {
        let of = locked(&PROCESS, |process| process.arrivals(number).cloned())?;
        let (id, seen) = locked(&of.listeners, |listeners| {
            listeners.next += 1;
            listeners.waiting.insert(listeners.next, None);
            let kept = once && std::mem::take(&mut listeners.kept);
            (listeners.next, listeners.told.wrapping_sub(usize::from(kept)))
        });
        Ok(Self { of, id, seen, leaves: once })
    }

    /// Ready when a signal has come since the last time. An error if none is heard any more, as `ended` says.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        ended: impl FnOnce() -> bool,
    ) -> Poll<io::Result<()>> {
        let mut waker = Some(cx.waker().clone());
        locked(&self.of.listeners, |listeners| {
            if listeners.told != self.seen {
                (self.seen, self.leaves) = (listeners.told, false);
                listeners.heard = listeners.told;
                (listeners.gave_up, listeners.kept) = (false, false);
                Poll::Ready(Ok(()))
            } else if ended() {
                Poll::Ready(Err(crate::runtime::shut_down("the runtime")))
            } else {
                let place = listeners.waiting.get_mut(&self.id).expect("it is alive");
                std::mem::swap(place, &mut waker);
                Poll::Pending
            }
        })
    }

    /// It ends with an error, so it has not given up.
    pub(super) fn has_failed(&mut self) {
        self.leaves = false;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _waker = locked(&self.of.listeners, |listeners| {
            let waker = listeners.waiting.remove(&self.id);
            if self.leaves {
                listeners.gave_up = true;
                listeners.kept |= ![self.seen, listeners.heard].contains(&listeners.told);
            }
            waker
        });
    }
}
