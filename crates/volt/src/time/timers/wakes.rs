//! How often a thread wakes up for timers alone.
//!
//! Purpose: few timers fire at their time; of many, each that got a thread out of its sleep would cost some
//! microseconds of a processor, so then one fires several.
//!
//! A wake-up is at the earliest deadline, as long as there is one in [`SPACE_NS`] on average ([`BURST`] may come
//! at once after a time with fewer). If there were more, it is at the last deadline before the time at which the
//! next one may come: [`SPACE_NS`] after the earliest at most. So a lone timer is exact, however often it is set,
//! and so are some that end at the same time.
//!
//! Rejected: to round all to a unit of time, which is late for the lone one; to join what is in one window of the
//! wheel (of timers that are spread over the shards, each has one; and windows are crossed as often as before).
//!
//! State: the time that the next wake-up has if all come as often as they may (the generic cell rate algorithm,
//! ITU-T I.371). All accesses are relaxed: it belongs to whoever waits in the driver, which is one thread at a
//! time, and its role passes on with an edge (`idle.rs`).
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::AtomicU64;

/// The time between two wake-ups for timers, on average, if there are many.
const SPACE_NS: u64 = 125_000;
/// So many may come at once after a time with fewer.
const BURST: u64 = 4;

#[derive(Debug)]
pub(super) struct Wakes {
    /// What is waited for now.
    until: AtomicU64,
    /// When the next wake-up would come if none had been sooner than it should.
    due: AtomicU64,
}

impl Wakes {
    pub(super) fn new() -> Self {
        Self { until: AtomicU64::new(0), due: AtomicU64::new(0) }
    }

    /// When to wake up for the earliest `deadline`; `latest` finds the last one by the given time.
    pub(super) fn wake_at(&self, deadline: u64, latest: impl FnOnce(u64) -> u64) -> u64 {
        // ORD relaxed: see above.
        let due = self.due.load(Relaxed).min(deadline.saturating_add(SPACE_NS));
        let until = if due > deadline { latest(due).clamp(deadline, due) } else { deadline };
        // ORD relaxed: see above.
        self.until.store(until, Relaxed);
        until
    }

    /// The wait that [`wake_at`](Self::wake_at) was asked for has ended with its timers and nothing else.
    pub(super) fn count(&self) {
        // ORD relaxed: see above.
        let until = self.until.load(Relaxed);
        // ORD relaxed: see above.
        let due = self.due.load(Relaxed).max(until.saturating_sub((BURST - 1) * SPACE_NS));
        // Lone timers come as often as they like: that is no debt of others.
        let due = due.min(until).saturating_add(SPACE_NS);
        // ORD relaxed: see above.
        self.due.store(due, Relaxed);
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::*;

    /// Fires timers that are due each `every` ns for a second: how many wake-ups, and the latest.
    fn run(every: u64, lone: bool) -> (u64, u64) {
        const SECOND: u64 = 1_000_000_000;
        let wakes = Wakes::new();
        let (mut next, mut woken, mut latest) = (SECOND, 0, 0);
        while next < 2 * SECOND {
            let last = |until| if lone { next } else { next + (until - next) / every * every };
            let now = wakes.wake_at(next, last);
            assert!(now >= next, "never early");
            latest = latest.max(now - next);
            wakes.count();
            woken += 1;
            next += every * ((now - next) / every + 1);
        }
        (woken, latest)
    }

    #[test]
    fn few_timers_and_a_lone_one_are_exact() {
        assert_eq!(run(1_000_000, false), (1_000, 0));
        assert_eq!(run(SPACE_NS, false), (8_000, 0));
        assert_eq!(run(20_000, true), (50_000, 0));
    }

    #[test]
    fn of_many_timers_several_are_fired_at_once() {
        for every in [100, 1_000, 10_000, 30_000] {
            let (woken, latest) = run(every, false);
            // Each is at a deadline, so up to `every` sooner than it should.
            let most = 1_000_000_000 / (SPACE_NS - every) + BURST;
            assert!((7_500..=most).contains(&woken), "{every}: {woken} wake-ups");
            assert!(latest <= SPACE_NS, "{every}: {latest} ns late");
        }
    }

    #[test]
    fn some_come_at_once_after_a_time_with_fewer() {
        let wakes = Wakes::new();
        for second in 1..4_u64 {
            let start = second * 1_000_000_000;
            let exact = (0..100).take_while(|i| {
                let at = wakes.wake_at(start + i, |until| until);
                wakes.count();
                at == start + i
            });
            assert_eq!(exact.count() as u64, BURST);
        }
    }

    #[test]
    fn lone_timers_leave_no_debt() {
        let wakes = Wakes::new();
        let mut now = 1_000_000_000;
        for _ in 0..100_000 {
            now += 20_000;
            assert_eq!(wakes.wake_at(now, |_| now), now);
            wakes.count();
        }
        for _ in 0..100 {
            now += BURST * SPACE_NS;
            assert_eq!(wakes.wake_at(now, |until| until), now);
            wakes.count();
        }
    }

    /// A paused clock may have been far ahead.
    #[test]
    fn a_time_in_the_far_future_delays_nothing_for_long() {
        let wakes = Wakes::new();
        wakes.wake_at(u64::MAX - 1, |until| until);
        wakes.count();
        assert_eq!(wakes.wake_at(5, |until| until), 5 + SPACE_NS);
    }
}
