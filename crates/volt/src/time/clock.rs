//! The clock of a runtime: the machine's, or one that stands still until it is told to move.
//!
//! Purpose: all of `volt::time` reads the time here, so that tests and the simulation can set it.
//!
//! Times are numbers (`scale.rs`).
//!
//! State: one word.
//!
//! | Word           | Meaning                                         |
//! |----------------|-------------------------------------------------|
//! | 0              | the machine's clock                             |
//! | `2 * lag`      | the machine's clock minus `lag` (63 bits, wrapping), after a pause |
//! | `2 * time + 1` | paused at `time`                                |
//!
//! Invariants: the clock of a runtime never runs backwards; it is paused only where one thread at
//! a time runs the runtime.

use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use volt_sync::internal::primitive::{Arc, AtomicU64, AtomicUsize};

use super::scale::{machine_ns, nanos};
use super::scope;
use crate::runtime::Handle;
use crate::task;

/// The last time at which a clock can stand: one bit of its word says that it does.
pub(super) const LAST: u64 = u64::MAX >> 1;

/// The time `wait` after `now`; about 30 years after it, as in Tokio, if no clock can stand there: a paused one
/// has to reach whatever is waited for.
#[inline]
pub(super) fn after(now: u64, wait: u64) -> u64 {
    let at = now.saturating_add(wait);
    if at <= LAST { at } else { now.saturating_add(nanos(super::FAR_FUTURE)) }
}

/// A handle to a runtime's clock.
#[derive(Debug, Clone)]
pub(crate) struct Clock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    word: AtomicU64,
    pausable: bool,
    /// While not zero, a paused clock does not advance by itself.
    inhibitors: AtomicUsize,
}

impl Clock {
    /// The machine's clock, for a runtime with several workers: it cannot be paused.
    pub(crate) fn real() -> Self {
        Self::with(0, false)
    }

    /// The machine's clock until it is paused.
    pub(crate) fn pausable() -> Self {
        Self::with(0, true)
    }

    /// A paused clock: for `start_paused`, and as the virtual time of the simulation.
    pub(crate) fn paused() -> Self {
        scope::note_pause();
        Self::with(paused_at(machine_ns()), true)
    }

    fn with(word: u64, pausable: bool) -> Self {
        let word = AtomicU64::new(word);
        Self(Arc::new(Inner { word, pausable, inhibitors: AtomicUsize::new(0) }))
    }

    #[inline]
    fn word(&self) -> u64 {
        // ORD relaxed: one word is the whole state.
        self.0.word.load(Relaxed)
    }

    fn set_word(&self, word: u64) {
        // ORD relaxed: one word is the whole state; one thread runs such a runtime.
        self.0.word.store(word, Relaxed);
    }

    /// The time on this clock.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        match self.word() {
            0 => machine_ns(),
            word => Self::read(word),
        }
    }

    /// The time on this clock, unless it is paused.
    pub(super) fn running_ns(&self) -> Option<u64> {
        (!self.is_paused()).then(|| self.now_ns())
    }

    #[cold]
    fn read(word: u64) -> u64 {
        if word & 1 == 1 {
            return word >> 1;
        }
        // The lag is a signed 63-bit number.
        let lag = (word as i64) >> 1;
        machine_ns().wrapping_sub(lag as u64)
    }

    /// True while it stands still.
    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.word() & 1 == 1
    }

    /// True if it has never been paused: its distances are those of the machine's, also to a time before now.
    #[inline]
    pub(crate) fn is_the_machines(&self) -> bool {
        self.word() == 0
    }

    /// True if [`pause`](Self::pause) may stop it.
    pub(crate) fn is_pausable(&self) -> bool {
        self.0.pausable
    }

    /// Stops it. False if it cannot be paused, or is.
    pub(crate) fn pause(&self) -> bool {
        if !self.0.pausable || self.is_paused() {
            return false;
        }
        scope::note_pause();
        self.set_word(paused_at(self.now_ns()));
        true
    }

    /// Lets it run on from where it stands. False if it is not paused.
    pub(crate) fn resume(&self) -> bool {
        let word = self.word();
        if word & 1 == 0 {
            return false;
        }
        self.set_word(machine_ns().wrapping_sub(word >> 1) << 1);
        true
    }

    /// Moves a paused clock to `at`, never backwards. False if it is not paused, or that is a time after [`LAST`].
    pub(crate) fn advance_to(&self, at: u64) -> bool {
        let word = self.word();
        if word & 1 == 0 || at > LAST {
            return false;
        }
        self.set_word(paused_at(at.max(word >> 1)));
        true
    }

    /// As [`advance_to`](Self::advance_to), if the clock [may](Self::may_auto_advance).
    pub(crate) fn auto_advance_to(&self, at: u64) -> bool {
        self.may_auto_advance() && self.advance_to(at)
    }

    /// True if it is paused and nothing inhibits that it advances when the runtime is idle.
    pub(crate) fn may_auto_advance(&self) -> bool {
        // ORD relaxed: a blocking task's end is ordered by the wake-up that it causes.
        self.is_paused() && self.0.inhibitors.load(Relaxed) == 0
    }

    /// From now to the matching [`allow_auto_advance`](Self::allow_auto_advance) the clock does
    /// not advance by itself: something outside of the runtime, such as a blocking task, is at
    /// work, and its result must not come after timers that wait longer.
    pub(crate) fn inhibit_auto_advance(&self) {
        // ORD relaxed: called on the thread that runs the runtime.
        self.0.inhibitors.fetch_add(1, Relaxed);
    }

    /// See [`inhibit_auto_advance`](Self::inhibit_auto_advance). The caller wakes the runtime
    /// afterwards.
    pub(crate) fn allow_auto_advance(&self) {
        // ORD relaxed: the wake-up that follows orders it.
        self.0.inhibitors.fetch_sub(1, Relaxed);
    }
}

/// The word of a clock that is paused at `ns`.
const fn paused_at(ns: u64) -> u64 {
    (ns << 1) | 1
}

/// Stops the clock of the current runtime: [`Instant::now`](super::Instant::now) does not change
/// any more, except by [`advance`] and when the runtime is idle.
///
/// With a paused clock a runtime that has nothing to run jumps to the next deadline at once, so
/// that a test of an hour's timeouts takes no time. It does not while a `spawn_blocking` task
/// runs. Sockets are not affected; a test should not wait for them while the clock is paused.
///
/// # Panics
/// If the clock is paused already, and outside of a current-thread runtime, such as
/// [`#[volt::test]`](macro@crate::test) has by default: with several workers there is no moment at
/// which nothing runs.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use std::time::Duration;
/// use volt::time::{Instant, pause, sleep};
/// pause();
/// let start = Instant::now();
/// sleep(Duration::from_secs(3600)).await;
/// assert!(start.elapsed() >= Duration::from_secs(3600), "and it took no time");
/// # Ok(()) })
/// # }
/// ```
#[track_caller]
pub fn pause() {
    // Asserted outside of the closure: a panic names the caller's line.
    let (was_paused, paused) = scope::with_timers("time::pause", |timers| {
        let clock = timers.clock();
        let (was_paused, paused) = (clock.is_paused(), clock.pause());
        timers.forget_time();
        (was_paused, paused)
    });
    assert!(
        !was_paused,
        "`time::pause`: time is paused already: call it once, and not with `start_paused`; \
         `time::resume` lets time run"
    );
    assert!(
        paused,
        "`time::pause` needs a current-thread runtime: `runtime::Builder::new_current_thread`, \
         `flavor = \"current_thread\"` of `#[volt::main]`, or the default of `#[volt::test]`"
    );
}

/// Lets the clock of the current runtime run on, from the time at which it stands.
///
/// # Panics
/// If it is not [paused](pause), and outside of a runtime.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use std::time::Duration;
/// use volt::time::{Instant, pause, resume};
/// pause();
/// let start = Instant::now();
/// std::thread::sleep(Duration::from_millis(1));
/// assert_eq!(Instant::now(), start);
/// resume();
/// std::thread::sleep(Duration::from_millis(1));
/// assert!(Instant::now() > start);
/// # Ok(()) })
/// # }
/// ```
#[track_caller]
pub fn resume() {
    let resumed = scope::with_timers("time::resume", super::timers::Timers::resume);
    assert!(resumed, "`time::resume`: time is not paused: call `time::pause` first");
}

/// Moves the [paused](pause) clock of the current runtime by `duration`, fires the timers that
/// are due then in the order of their deadlines, and lets the tasks that they woke run.
///
/// A task that sleeps again after it was woken counts from the new time: to go through many ticks
/// of an interval one by one, rather `sleep`, which lets the clock advance by itself from deadline
/// to deadline.
///
/// # Panics
/// At the first poll, if the clock is not paused, and outside of a runtime.
///
/// # Cancel safety
/// The first poll moves the clock and fires the timers. A future that is dropped before it does
/// nothing; one that is dropped after it takes nothing back, and only does not wait for the tasks.
///
/// # Examples
/// ```
/// # fn main() -> std::io::Result<()> {
/// # volt::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use std::time::Duration;
/// use volt::time::{Instant, advance, pause};
/// pause();
/// let start = Instant::now();
/// advance(Duration::from_secs(60)).await;
/// assert_eq!(start.elapsed(), Duration::from_secs(60));
/// # Ok(()) })
/// # }
/// ```
pub fn advance(duration: Duration) -> impl Future<Output = ()> {
    Advance::Moves(duration)
}

/// A future of its own, as the poll of an `async fn` cannot name the caller's line.
enum Advance {
    Moves(Duration),
    /// Lets others go first as long as something is queued: at most so many times, and until so many polls were made.
    Yields {
        times: u64,
        until: u64,
    },
}

impl Future for Advance {
    type Output = ();

    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut *self {
            Self::Moves(duration) => {
                advance_now(*duration);
                let (queued, polls) = queue();
                // In a `LocalSet` it is polled so many times before the runtime has a turn.
                let times = queued + task::LOCAL_POLLS as u64;
                *self = Self::Yields { times, until: polls + queued + 1 };
            }
            Self::Yields { times, until } => {
                let (queued, polls) = queue();
                if queued == 0 || *times == 0 || polls >= *until {
                    return Poll::Ready(());
                }
                *times -= 1;
                // This poll may be one of those that are counted.
                *until += 1;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// How many tasks are queued in the current runtime and in the `LocalSet` that this thread drives, and how many polls the
/// runtime has made.
fn queue() -> (u64, u64) {
    let metrics = Handle::current().metrics();
    let members = 0..metrics.num_workers();
    let local: usize = members.map(|member| metrics.worker_local_queue_depth(member)).sum();
    let queued = metrics.global_queue_depth() + local + task::queued_in_set();
    (queued as u64, metrics.polls_count())
}

/// Moves the clock, and fires the timers that are due then.
#[track_caller]
fn advance_now(duration: Duration) {
    let (moved, pausable) = scope::with_timers("time::advance", |timers| {
        let clock = timers.clock();
        let at = clock.now_ns().saturating_add(nanos(duration)).min(LAST);
        let moved = clock.advance_to(at);
        if moved {
            timers.forget_time();
            timers.fire_due();
        }
        (moved, clock.is_pausable())
    });
    assert!(
        moved || !pausable,
        "`time::advance`: time is not paused: call `time::pause` first, or build the runtime with \
         `start_paused`"
    );
    assert!(
        moved,
        "`time::advance` needs a paused clock, and so a current-thread runtime: \
         `runtime::Builder::new_current_thread`, or the default of `#[volt::test]`"
    );
}
