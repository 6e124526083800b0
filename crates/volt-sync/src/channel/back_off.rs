//! What a thread does whose exchanges others win.
//!
//! Purpose: it waits, so that the winner can do many operations with the cache lines to itself. A short
//! wait ends while the winner is still at it, and the two go on taking the lines from each other for every
//! message. But a wait is time lost where threads meet by chance. So one that comes sooner after the last
//! one than that took is twice as long, up to 23 us, and any other one 3 us. After some waits for one operation the
//! thread gives the processor away, since the winner may have lost it.
//!
//! Four senders and four receivers of a channel for 16, ns a message: with waits of one hint or of 32, 70 to 170 on
//! several machines; with 128, 35 to 50 on one and 66 to 74 on another (kanal 46 to 50), and so 42 to 52.
//! Tasks that work for 0.2 to 1 us between two messages take as long as with short waits.
//!
//! The exchanges are strong ones: a weak one fails for no reason on some machines, and would pay for a wait
//! nobody gains by.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::primitive;

/// Spin hints of a wait: about three microseconds, and 23.
const FIRST: u32 = if cfg!(volt_loom) { 1 } else { 128 };
const LAST: u32 = if cfg!(volt_loom) { 1 } else { 1024 };
/// So many waits for one operation come before the processor is given away.
const WAITS: u32 = if cfg!(volt_loom) { 0 } else { 4 };

/// A wait of this thread.
#[derive(Clone, Copy)]
struct Wait {
    hints: u32,
    took: Duration,
    end: Instant,
}

std::thread_local! {
    static LAST_WAIT: Cell<Option<Wait>> = const { Cell::new(None) };
}

/// The waits of one operation.
pub(super) struct BackOff(u32);

impl BackOff {
    pub(super) fn new() -> Self {
        Self(0)
    }

    /// An exchange was lost.
    #[cold]
    pub(super) fn lost(&mut self) {
        if self.0 == WAITS {
            return primitive::spin(u32::MAX);
        }
        self.0 += 1;
        let start = primitive::now();
        let hints = LAST_WAIT.get().map_or(FIRST, |last| last.next(start));
        for _ in 0..hints {
            primitive::spin(0);
        }
        let end = primitive::now();
        let took = end.saturating_duration_since(start);
        LAST_WAIT.set(Some(Wait { hints, took, end }));
    }
}

impl Wait {
    /// For how many hints to wait at the time `now`.
    fn next(self, now: Instant) -> u32 {
        let gap = now.saturating_duration_since(self.end);
        if gap < self.took { (self.hints * 2).min(LAST) } else { FIRST }
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use std::time::Duration;

    use super::{FIRST, LAST, Wait};
    use crate::primitive;

    #[test]
    fn a_wait_soon_after_another_is_twice_as_long_up_to_a_limit() {
        let end = primitive::now();
        let took = Duration::from_micros(3);
        let mut wait = Wait { hints: FIRST, took, end };
        let mut all = vec![];
        for _ in 0..5 {
            wait.hints = wait.next(end + took - Duration::from_nanos(1));
            all.push(wait.hints);
        }
        assert_eq!(all, [2 * FIRST, 4 * FIRST, LAST, LAST, LAST]);
        assert_eq!(wait.next(end + took), FIRST);
    }
}
