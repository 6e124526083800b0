//! How long a thread that has run its last closure looks for the next one before it sleeps.
//!
//! Purpose: who awaited the last closure often queues the next one within microseconds, and mostly
//! on this very processor; so the thread gives it away for a moment. It is *on its way* meanwhile,
//! and nobody else is woken: if somebody computes on the processor, that moment is a time slice of
//! milliseconds, and what was queued waits for it. After such a one it goes to sleep, and leaves out
//! giving the processor away the next 1, 3, 7, up to 1,023 times. After one in which nothing came it leaves out
//! up to 15: a closure every now and then should not cost such a moment each.
#![forbid(unsafe_code)]

use std::time::Duration;

use volt_sync::internal::primitive::{hint, now, thread};

/// Looks that cost a few cycles each: a microsecond or two.
const SPINS: u32 = if cfg!(volt_loom) { 1 } else { 64 };
/// Looks after which the processor is given away.
const YIELDS: u32 = if cfg!(volt_loom) { 0 } else { 16 };
/// The processor was away for a time slice, and not for what others do in passing.
const LONG: Duration = Duration::from_micros(50);
/// Waits that go without giving the processor away: at most, after it was away for long, and after
/// nothing came.
const MOST_AFTER_LONG: u16 = 1023;
const MOST_IN_VAIN: u16 = 15;

/// What the pool's threads have learnt of giving the processor away.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    long: Skips,
    in_vain: Skips,
}

/// Waits that go without it.
#[derive(Clone, Copy, Debug, Default)]
struct Skips {
    after_last: u16,
    left: u16,
}

impl Skips {
    fn skip(&mut self) -> bool {
        let skips = self.left > 0;
        self.left -= u16::from(skips);
        skips
    }

    fn double(&mut self, most: u16) {
        self.after_last = self.after_last.saturating_mul(2).saturating_add(1).min(most);
        self.left = self.after_last;
    }
}

impl Patience {
    /// Waits for a moment, or until `called`.
    pub(super) fn wait(&mut self, called: impl Fn() -> bool) {
        for _ in 0..SPINS {
            if called() {
                self.in_vain = Skips::default();
                return;
            }
            hint::spin_loop();
        }
        if !self.skips() {
            self.give_way(called, || {
                let start = now();
                thread::yield_now();
                start.elapsed()
            });
        }
    }

    fn skips(&mut self) -> bool {
        self.long.skip() || self.in_vain.skip()
    }

    fn give_way(&mut self, called: impl Fn() -> bool, mut give_away: impl FnMut() -> Duration) {
        for _ in 0..YIELDS {
            if called() {
                *self = Self::default();
                return;
            }
            if give_away() > LONG {
                return self.long.double(MOST_AFTER_LONG);
            }
        }
        self.long = Skips::default();
        self.in_vain.double(MOST_IN_VAIN);
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// The numbers of waits that go without giving the processor away, before each that `takes` so long
    /// each time, of which there are so many.
    fn skipped(patience: &mut Patience, takes: Duration, times: u32) -> Vec<u16> {
        let skipped_before_next = |_| {
            let skipped = (0..).take_while(|_| patience.skips()).count();
            let given_away = Cell::new(0);
            patience.give_way(
                || false,
                || {
                    given_away.set(given_away.get() + 1);
                    takes
                },
            );
            assert_eq!(given_away.get(), if takes > LONG { 1 } else { YIELDS });
            skipped as u16
        };
        (0..times).map(skipped_before_next).collect()
    }

    #[test]
    fn who_lost_the_processor_for_long_keeps_it_for_more_and_more_waits() {
        let mut patience = Patience::default();
        let long = Duration::from_millis(3);
        let expected = [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 1023];
        assert_eq!(skipped(&mut patience, long, 12), expected);
        let free_again = skipped(&mut patience, Duration::from_micros(2), 2);
        assert_eq!(free_again, [1023, 1]);
    }

    #[test]
    fn who_waited_in_vain_sleeps_at_once_for_some_waits() {
        let mut patience = Patience::default();
        let short = Duration::from_micros(2);
        assert_eq!(skipped(&mut patience, short, 6), [0, 1, 3, 7, 15, 15]);
        patience.wait(|| true);
        assert_eq!(skipped(&mut patience, short, 2), [0, 1]);
        patience.give_way(|| true, || unreachable!("called"));
        assert_eq!(skipped(&mut patience, short, 2), [0, 1]);
    }

    #[test]
    fn a_call_ends_the_wait() {
        let looks = Cell::new(0);
        Patience::default().wait(|| {
            looks.set(looks.get() + 1);
            looks.get() == 3
        });
        assert_eq!(looks.get(), 3);
    }
}
