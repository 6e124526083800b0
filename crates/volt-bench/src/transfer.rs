//! What it costs to hand a cache line from one processor to another.
//!
//! The processors of a virtual machine are threads of the host, which moves them: now they share a
//! cache, now they are on different chips, and what several threads write to costs several times as
//! much for the next minutes. A record tells which of it a round met.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// Each way, in one timed batch.
const EXCHANGES: u32 = 200;

/// Of these the fastest counts: all of them together take less than a millisecond.
const BATCHES: u32 = 9;

/// No cache line takes as long: the threads had to take turns, as others used the processors.
const NO_TRANSFER_NS: f64 = 1_000.0;

/// After so many looks in vain the other thread may be waiting for this one's processor.
const PATIENCE: u32 = 1 << 14;

/// One way, in nanoseconds, between two threads as the system places them; `None` if two processors were not to be had.
pub(crate) fn nanoseconds() -> Option<f64> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return None;
    }
    let turn = Turn(AtomicU32::new(0));
    let fastest = std::thread::scope(|scope| {
        // The first one waits for the thread's start.
        scope.spawn(|| (0..=BATCHES * EXCHANGES).for_each(|round| turn.answer(round)));
        turn.ask(0);
        let batch = |batch| {
            let start = Instant::now();
            (1..=EXCHANGES).for_each(|round| turn.ask(batch * EXCHANGES + round));
            start.elapsed().as_nanos() as f64 / f64::from(2 * EXCHANGES)
        };
        (0..BATCHES).map(batch).min_by(f64::total_cmp)
    });
    fastest.filter(|&ns| ns < NO_TRANSFER_NS)
}

/// Odd while the other thread is asked; on a line of its own.
#[repr(align(128))]
struct Turn(AtomicU32);

impl Turn {
    fn ask(&self, round: u32) {
        self.0.store(2 * round + 1, Ordering::Release);
        self.wait_for(2 * round + 2);
    }

    fn answer(&self, round: u32) {
        self.wait_for(2 * round + 1);
        self.0.store(2 * round + 2, Ordering::Release);
    }

    /// Without a spin hint, which takes as long as what is measured.
    fn wait_for(&self, value: u32) {
        let mut looks = 0;
        while self.0.load(Ordering::Acquire) != value {
            looks += 1;
            if looks % PATIENCE == 0 {
                std::thread::yield_now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_takes_longer_than_a_load() {
        let best = (0..20).filter_map(|_| nanoseconds()).min_by(f64::total_cmp);
        assert!(best.is_none_or(|ns| ns > 1.0), "{best:?} ns");
        if std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1) {
            assert_eq!(best, None);
        }
    }
}
