//! How long a thread that has run its last closure looks for the next one before it sleeps.
//!
//! Purpose: who awaited the last closure often queues the next one within microseconds, and mostly
//! on this very processor; so the thread gives it away for a moment. It is *on its way* meanwhile,
//! and nobody else is woken: if somebody computes on the processor, that moment is a time slice of
//! milliseconds, and what was queued waits for it. After such a one it goes to sleep, and leaves out
//! giving the processor away the next 1, 3, 7, up to 1,023 times.
#![forbid(unsafe_code)]

use std::time::Duration;

use volt_sync::internal::primitive::{hint, now, thread};

/// Looks that cost a few cycles each: a microsecond or two.
const SPINS: u32 = if cfg!(volt_loom) { 1 } else { 64 };
/// Looks after which the processor is given away.
const YIELDS: u32 = if cfg!(volt_loom) { 0 } else { 16 };
/// The processor was away for a time slice, and not for what others do in passing.
const LONG: Duration = Duration::from_micros(50);
const MOST_SKIPPED: u16 = 1023;

/// What the pool's threads have learnt of giving the processor away.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    /// How many waits went without it after the last one that took long.
    skips: u16,
    /// How many of them are left.
    left: u16,
}

impl Patience {
    /// Waits for a moment, or until `called`.
    pub(super) fn wait(&mut self, called: impl Fn() -> bool) {
        for _ in 0..SPINS {
            if called() {
                return;
            }
            hint::spin_loop();
        }
        if self.left > 0 {
            self.left -= 1;
            return;
        }
        self.give_way(called, || {
            let start = now();
            thread::yield_now();
            start.elapsed()
        });
    }

    fn give_way(&mut self, called: impl Fn() -> bool, mut give_away: impl FnMut() -> Duration) {
        for _ in 0..YIELDS {
            if called() {
                break;
            }
            if give_away() > LONG {
                self.skips = self.skips.saturating_mul(2).saturating_add(1).min(MOST_SKIPPED);
                self.left = self.skips;
                return;
            }
        }
        self.skips = 0;
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn who_lost_the_processor_for_long_keeps_it_for_more_and_more_waits() {
        let mut patience = Patience::default();
        let lost = Cell::new(0);
        // How many waits go without until the processor is given away once more.
        let mut until_next = |took| {
            let before = lost.get();
            for waits in 0_u16.. {
                if patience.left > 0 {
                    patience.left -= 1;
                    continue;
                }
                patience.give_way(
                    || false,
                    || {
                        lost.set(lost.get() + 1);
                        took
                    },
                );
                return (waits, lost.get() - before);
            }
            unreachable!("it is given away again")
        };
        let (long, short) = (Duration::from_millis(3), Duration::from_micros(2));
        assert_eq!(until_next(short), (0, YIELDS), "for as long as it costs nothing");
        let skipped: Vec<u16> = (0..12)
            .map(|_| {
                let (waits, times) = until_next(long);
                assert_eq!(times, 1, "not again in the same wait");
                waits
            })
            .collect();
        assert_eq!(skipped, [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 1023]);
        assert_eq!(until_next(short), (1023, YIELDS));
        assert_eq!(until_next(short), (0, YIELDS), "the processor is free again");
    }

    #[test]
    fn a_call_ends_the_wait() {
        let looks = Cell::new(0);
        Patience::default().wait(|| {
            looks.set(looks.get() + 1);
            looks.get() == 3
        });
        assert_eq!(looks.get(), 3);
        let mut patience = Patience { skips: 1, left: 0 };
        patience.give_way(|| true, || unreachable!("called"));
        assert_eq!(patience.skips, 0);
    }
}
