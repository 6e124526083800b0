//! How long a thread stays awake before it sleeps on a futex (spin-then-park, adaptive).
//!
//! To sleep and to be woken costs two system calls, and on an idle processor some 20 us until the
//! thread runs. So one whose last sleeps were all short does not sleep at once: it gives its
//! processor away and looks for a reason to wake up, again and again, for [`SHORT`] at most. Whoever
//! wakes it meanwhile finds no thread that sleeps, so makes no system call. To the protocol of the
//! place to sleep ([`Parker`](crate::parker::Parker), and the runtime's own) this is a reason that came
//! before the sleep.
//!
//! It yields instead of spinning, since the thread that it waits for may be on the same processor. A
//! yield may give away a whole slice of time to a program that computes, which a wake-up would have
//! interrupted; after such a one it lingers only once [`MOST`] sleeps in a row were short.
//!
//! What it costs at most: in vain, [`SHORT`] of a processor's time after as many short sleeps as are
//! needed, a number that doubles each time; and where reasons come in time, up to [`SHORT`] for each, if nobody
//! else wants the processor. Who sleeps for long never lingers.
//!
//! Source: the competitive analysis of spinning before blocking (Karlin, Li, Manasse, Owicki, SOSP 1991).
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::primitive::{now, spin};
use crate::turns;

/// A sleep that is over sooner was not worth it: twice to three times what one costs.
const SHORT: Duration = Duration::from_micros(60);
/// A yield that took so long gave a slice of time to somebody who computes.
const SLICE: Duration = Duration::from_micros(250);
/// Short sleeps in a row before a thread lingers, at first and at most.
const FIRST: u32 = 3;
const MOST: u32 = 256;
/// As an attempt of [`spin`]: yields.
const YIELDS: u32 = u32::MAX;

/// What one thread knows of its sleeps.
#[derive(Debug)]
pub struct Linger {
    /// Short ones in a row.
    short: Cell<u32>,
    /// So many before it lingers.
    needed: Cell<u32>,
}

impl Default for Linger {
    fn default() -> Self {
        Self::new()
    }
}

impl Linger {
    /// Nothing is known yet.
    pub const fn new() -> Self {
        Self { short: Cell::new(0), needed: Cell::new(FIRST) }
    }

    /// Calls `sleep`, but perhaps not at once. It returns when there is a reason, for which `is_notified`
    /// looks, and at once if that is so before.
    pub fn sleep<R>(&self, is_notified: impl Fn() -> bool, sleep: impl FnOnce() -> R) -> R {
        if !turns::CLOCK {
            return sleep();
        }
        let start = now();
        if self.linger(start, is_notified, || spin(YIELDS)) {
            return sleep();
        }
        let result = sleep();
        self.slept(start.elapsed());
        result
    }

    /// Lingers since `start`, if that is worth it. True if there is a reason not to sleep.
    fn linger(&self, start: Instant, is_notified: impl Fn() -> bool, give_away: impl Fn()) -> bool {
        // To whom it would give the processor now may keep it for a slice of time.
        if self.lingers() && is_notified() {
            self.lingered(Duration::ZERO);
            return true;
        }
        while self.lingers() {
            give_away();
            let notified = is_notified();
            let waited = start.elapsed();
            if notified || waited >= SHORT {
                self.lingered(waited);
            }
            if notified {
                return true;
            }
        }
        false
    }

    /// The last sleep was not one that a wake-up in time would have spared.
    pub fn forget(&self) {
        self.short.set(0);
    }

    fn lingers(&self) -> bool {
        self.short.get() >= self.needed.get()
    }

    /// It was awake for `waited`, until there was a reason or in vain.
    fn lingered(&self, waited: Duration) {
        let needed = self.needed.get();
        if waited < SHORT {
            self.needed.set(FIRST.max(needed - 1));
            return;
        }
        self.short.set(0);
        self.needed.set(if waited < SLICE { MOST.min(needed * 2) } else { MOST });
    }

    /// It was asleep.
    fn slept(&self, waited: Duration) {
        self.short.set(if waited < SHORT { MOST.min(self.short.get() + 1) } else { 0 });
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::*;
    use crate::parker::Parker;
    use crate::primitive::{Arc, thread};

    fn after_short_sleeps(count: u32) -> Linger {
        let linger = Linger::new();
        (0..count).for_each(|_| linger.slept(SHORT / 2));
        linger
    }

    #[test]
    fn lingers_after_short_sleeps_in_a_row() {
        assert!(!after_short_sleeps(FIRST - 1).lingers());
        let linger = after_short_sleeps(FIRST);
        assert!(linger.lingers());
        linger.slept(SHORT);
        linger.slept(SHORT / 2);
        assert!(!linger.lingers());
    }

    #[test]
    fn what_is_forgotten_was_no_short_sleep() {
        let linger = after_short_sleeps(FIRST);
        linger.forget();
        assert!(!linger.lingers());
    }

    #[test]
    fn each_time_in_vain_doubles_what_is_needed_and_a_success_takes_one_off() {
        let linger = after_short_sleeps(FIRST);
        linger.lingered(SHORT);
        assert!(!linger.lingers());
        assert_eq!(linger.needed.get(), 2 * FIRST);
        (0..10).for_each(|_| linger.lingered(SHORT));
        assert_eq!(linger.needed.get(), MOST);
        (0..MOST).for_each(|_| linger.slept(SHORT / 2));
        assert!(linger.lingers());
        linger.lingered(SHORT / 2);
        assert_eq!(linger.needed.get(), MOST - 1);
        assert!(linger.lingers());
        (0..MOST).for_each(|_| linger.lingered(SHORT / 2));
        assert_eq!(linger.needed.get(), FIRST);
    }

    #[test]
    fn who_has_a_reason_already_does_not_give_the_processor_away() {
        let linger = after_short_sleeps(FIRST);
        assert!(linger.linger(now(), || true, || unreachable!("given away")));
        assert!(linger.lingers(), "not in vain");
        let yields = Cell::new(0);
        let give_away = || yields.set(yields.get() + 1);
        assert!(linger.linger(now(), || yields.get() == 1, give_away));
    }

    #[test]
    fn who_has_lost_a_slice_does_not_linger_for_long() {
        let linger = after_short_sleeps(MOST);
        linger.lingered(SLICE);
        (1..MOST).for_each(|_| linger.slept(SHORT / 2));
        assert!(!linger.lingers());
        linger.slept(SHORT / 2);
        assert!(linger.lingers());
    }

    #[test]
    fn who_lingers_finds_each_reason_and_sleeps_if_there_is_none() {
        let parker = Arc::new(Parker::new());
        for round in 0..2_000 {
            let linger = after_short_sleeps(FIRST);
            let waker = thread::Builder::new().spawn({
                let parker = parker.clone();
                move || {
                    if round % 100 == 0 {
                        std::thread::sleep(SHORT * 2);
                    }
                    parker.unpark();
                }
            });
            linger.sleep(|| parker.is_notified(), || parker.park());
            waker.unwrap().join().unwrap();
        }
        let linger = after_short_sleeps(FIRST);
        let limit = Duration::from_millis(1);
        assert!(!linger.sleep(|| parker.is_notified(), || parker.park_timeout(limit)));
        assert!(!linger.lingers(), "in vain");
    }
}
