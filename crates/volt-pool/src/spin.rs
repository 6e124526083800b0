//! How long a thread looks before it sleeps.
//!
//! Waking a sleeping thread costs both sides several microseconds, so a thread that ran out of work
//! looks for about that long once more. Not where that takes a processor from the thread that it
//! waits for: on a machine with fewer processors than the pool has threads; on the processor on which
//! it was woken, whose thread wants to go on there; and outside, where it did not help lately.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use volt_sync::internal::primitive::{AtomicU32, const_thread_local, hint, now, processor};

use crate::engine::Core;

/// How long a thread of the pool looks: about the cost of sleeping and being woken.
pub(crate) const SPIN: Duration = Duration::from_micros(8);
/// How long a thread outside waits for an answer: about what it takes to wake a thread. Not longer,
/// since the thread that it has woken may be bound for the same processor.
const SPIN_OUTSIDE: Duration = Duration::from_micros(5);
/// How often a thread outside does without, after it has waited in vain again and again.
const MOST_SKIPPED: u8 = 63;

const_thread_local! {
    /// What this thread knows of the one for which it has just ended something.
    static ANSWERED: Cell<Answered> = Cell::new(Answered::Nobody);
}

/// What a thread outside has learnt of its waits.
#[derive(Clone, Copy, Debug, Default)]
struct Outside {
    /// It has just woken a thread of the pool.
    woke: bool,
    /// How many waits after such a wake-up went without spinning when the last one spun in vain: the
    /// thread took longer to answer, or needed this very processor, and so will the next.
    skips: u8,
    /// How many of them are left.
    left: u8,
}

const_thread_local! {
    static OUTSIDE: Cell<Outside> = Cell::new(Outside { woke: false, skips: 0, left: 0 });
}

fn outside(change: impl FnOnce(&mut Outside)) {
    OUTSIDE.with(|cell| {
        let mut outside = cell.get();
        change(&mut outside);
        cell.set(outside);
    });
}

/// Who got the result of a thread's last piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    Nobody,
    /// A thread that slept, and was woken: it may want this processor.
    Sleeper,
    /// A thread that has not fallen asleep yet: if it was this one's waker, perhaps because it has no
    /// processor while this one runs.
    Awake,
}

/// Tells how this thread spins next.
pub(crate) fn answered(whom: Answered) {
    ANSWERED.with(|answered| answered.set(whom));
}

/// The processor on which a sleeper of the pool was woken last, plus one; 0 when that was used.
#[derive(Debug)]
pub(crate) struct WokenOn(AtomicU32);

impl WokenOn {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// The calling thread is about to wake a sleeper.
    pub(crate) fn note(&self) {
        // ORD relaxed: a hint.
        self.0.store(processor(), Relaxed);
        outside(|outside| outside.woke = true);
    }

    /// True if the calling thread runs where the last sleeper was woken; forgets that.
    fn is_here(&self) -> bool {
        // ORD relaxed: a hint.
        let on = self.0.load(Relaxed);
        if on == 0 {
            return false;
        }
        // ORD relaxed: a hint.
        self.0.store(0, Relaxed);
        on == processor()
    }
}

/// One wait's patience.
#[derive(Debug)]
pub(crate) struct Spin {
    limit: Duration,
    until: Option<Instant>,
}

impl Spin {
    pub(crate) fn new(core: &Core) -> Self {
        Self { limit: core.spin_limit(), until: None }
    }

    /// For a thread that looks for work.
    pub(crate) fn searching(core: &Core) -> Self {
        Self::searching_for(core.spin_limit(), &core.sync.woken_on)
    }

    fn searching_for(limit: Duration, woken_on: &WokenOn) -> Self {
        let in_the_way = match ANSWERED.with(|answered| answered.replace(Answered::Nobody)) {
            Answered::Nobody => false,
            Answered::Sleeper => true,
            Answered::Awake => woken_on.is_here(),
        };
        Self { limit: if in_the_way { Duration::ZERO } else { limit }, until: None }
    }

    /// For a thread outside that waits for an answer.
    pub(crate) fn outside(core: &Core) -> Self {
        Self::outside_for(core.spin_limit().min(SPIN_OUTSIDE))
    }

    fn outside_for(mut limit: Duration) -> Self {
        outside(|outside| {
            if outside.woke && outside.left > 0 {
                outside.left -= 1;
                limit = Duration::ZERO;
            }
        });
        Self { limit, until: None }
    }

    /// For a thread outside: the answer has come, or it is about to sleep.
    pub(crate) fn end_outside(&mut self, answered: bool) {
        let spun = self.until.take().is_some();
        outside(|outside| {
            if outside.woke && spun {
                let more = outside.skips.saturating_mul(2).saturating_add(1).min(MOST_SKIPPED);
                outside.skips = if answered { 0 } else { more };
                outside.left = outside.skips;
            }
            outside.woke = false;
        });
    }

    /// Waits a moment. False if it is time to sleep.
    pub(crate) fn once(&mut self) -> bool {
        if self.limit.is_zero() {
            return false;
        }
        for _ in 0..8 {
            hint::spin_loop();
        }
        let now = now();
        let until = *self.until.get_or_insert(now + self.limit);
        if now < until {
            return true;
        }
        self.limit = Duration::ZERO;
        false
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
