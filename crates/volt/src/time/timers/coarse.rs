//! A recent reading of the clock, for those who register a timer.
//!
//! Purpose: a timer whose time has come is ready at its first poll, and another is linked where it will not be moved down
//! soon, without a look at the clock.
//!
//! Rejected: to look at the clock at each first poll, which is a third of what a timer costs; to look after each wait, also
//! where no timer is pending.
//!
//! State:
//!
//! | Value   | Meaning                                    | Next                                         |
//! |---------|--------------------------------------------|----------------------------------------------|
//! | a time  | the clock has reached it                   | a later one, by who looks at the clock; UNKNOWN |
//! | UNKNOWN | time has passed, or the clock was stopped or moved, without a look at it | a time, by the first who asks |
//!
//! Invariants: a time is never later than the clock. All accesses are relaxed: any time that somebody has seen serves.
//! Whoever fires timers notes for which time before it wakes their tasks, so these see that one, or a later one.
//!
//! Cost: for those who register, one load of a line that is written about once in 65 us, and at each wait.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::AtomicU64;

use super::Clock;

/// Later than any time.
const UNKNOWN: u64 = u64::MAX;

pub(super) struct Coarse(AtomicU64);

impl Coarse {
    pub(super) fn new(now: u64) -> Self {
        Self(AtomicU64::new(now))
    }

    /// Remembers a reading of the clock if the last one is older than `lag`. (One that is unknown stays so.)
    #[inline]
    pub(super) fn note(&self, now: u64, lag: u64) {
        // ORD relaxed: see above.
        if now.saturating_sub(self.0.load(Relaxed)) > lag {
            // Of two who note at the same time, the later reading stays: more timers have fired for it.
            // ORD relaxed: see above.
            self.0.fetch_max(now, Relaxed);
        }
    }

    /// Time has passed, or the clock was stopped or moved, and nobody has looked.
    #[inline]
    pub(super) fn forget(&self) {
        // ORD relaxed: see above.
        self.0.store(UNKNOWN, Relaxed);
    }

    /// A time that the `clock` has reached, and whether that is so of `deadline`.
    #[inline]
    pub(super) fn reaches(&self, deadline: u64, clock: &Clock) -> (u64, bool) {
        // ORD relaxed: see above.
        let time = self.0.load(Relaxed);
        if deadline > time {
            return (time, false);
        }
        let time = if time == UNKNOWN { self.look(clock) } else { time };
        (time, deadline <= time)
    }

    #[cold]
    fn look(&self, clock: &Clock) -> u64 {
        let now = clock.now_ns();
        // If another one was quicker, that is as recent.
        // ORD relaxed: see above.
        _ = self.0.compare_exchange(UNKNOWN, now, Relaxed, Relaxed);
        now
    }
}
