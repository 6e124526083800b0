//! How much sooner than at the deadline the kernel is told to end a wait.
//!
//! Purpose: a thread that sleeps until a time runs some tens of microseconds after it: the interrupt, the way
//! out of the processor's idle state, the scheduler. As far as each wait takes that long, it can begin
//! sooner: then the timer fires when it is due.
//!
//! The lead is about the least latency of the last waits: what one took at most, and a little more after each
//! that took longer. If a wait ends sooner than that, the rest is waited out here, so no timer fires early. The
//! hypervisors do the same for the timers of their guests (`lapic_timer_advance_ns` of KVM, tuned by itself since
//! Linux commit 3b8a5df6c4dc).
//!
//! Rejected: the average, which would have every second wait end in a loop; a second sleep for the rest, which
//! is late by a latency again.
//!
//! State: all accesses are relaxed: it belongs to whoever waits in the driver, which is one thread at a time,
//! and its role passes on with an edge (`idle.rs`).
//!
//! Cost: a look at the clock for each wait for a timer.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::AtomicU64;

use super::NEVER;

/// The lead never gets longer, and so a rest is not either.
const MOST_NS: u64 = 64_000;
/// A wait that took longer than the lead moves it by one in so many parts of the difference.
const SLOWLY: u64 = 64;

#[derive(Debug)]
pub(super) struct Lead {
    lead: AtomicU64,
    /// When the kernel was told to end the wait; [`NEVER`] if nobody waits for a timer.
    asked: AtomicU64,
    /// When the timer is due.
    due: AtomicU64,
}

impl Lead {
    pub(super) fn new() -> Self {
        Self { lead: AtomicU64::new(0), asked: AtomicU64::new(NEVER), due: AtomicU64::new(0) }
    }

    /// For how long to ask the kernel, `now`, for a timer that is `due`.
    pub(super) fn wait(&self, now: u64, due: u64) -> u64 {
        let rest = due.saturating_sub(now);
        // ORD relaxed: see above.
        let lead = self.lead.load(Relaxed);
        // A timer that is due soon has a sleep as well.
        let wait = rest - lead.min(rest / 2);
        // Who only looks does not sleep.
        let asked = if wait > 0 { now + wait } else { NEVER };
        // ORD relaxed: see above.
        self.asked.store(asked, Relaxed);
        // ORD relaxed: see above.
        self.due.store(due, Relaxed);
        wait
    }

    /// The wait has ended; `idly` if for no other reason than the time. Then it returns when the timer is due.
    #[inline]
    pub(super) fn end(&self, idly: bool, clock: impl Fn() -> u64) {
        // ORD relaxed: see above.
        let asked = self.asked.load(Relaxed);
        if asked == NEVER {
            return;
        }
        // ORD relaxed: see above.
        self.asked.store(NEVER, Relaxed);
        if idly {
            self.learn(asked, clock);
        }
    }

    fn learn(&self, asked: u64, clock: impl Fn() -> u64) {
        let Some(took) = clock().checked_sub(asked) else {
            return; // Something else ended it, or the wait was cut short.
        };
        // ORD relaxed: see above.
        let lead = self.lead.load(Relaxed);
        let longer = took.min(MOST_NS).saturating_sub(lead);
        // ORD relaxed: see above.
        self.lead.store(took.min(lead + longer / SLOWLY), Relaxed);
        // ORD relaxed: see above.
        let due = self.due.load(Relaxed);
        while clock() < due {
            std::hint::spin_loop();
        }
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use std::cell::Cell;

    use super::*;

    const TICK: u64 = 1_000_000;

    /// A second of ticks, each wait of which takes `latency` longer than was asked for: how late the ticks are
    /// on average and at most, and for how long they looked at the clock, in nanoseconds.
    fn run(lead: &Lead, latency: impl Fn(u64) -> u64) -> (u64, u64, u64) {
        const STEP: u64 = 50;
        let (mut late, mut latest, mut spun) = (0, 0, 0);
        for tick in 1..=1_000 {
            let due = tick * TICK;
            let begin = due - TICK / 2;
            let woken = begin + lead.wait(begin, due) + latency(tick);
            let now = Cell::new(woken);
            lead.end(true, || now.replace(now.get() + STEP));
            assert!(now.get() > due, "never early");
            spun += now.get() - woken;
            late += now.get() - due;
            latest = latest.max(now.get() - due);
        }
        (late / 1_000, latest, spun / 1_000)
    }

    #[test]
    fn a_latency_that_each_wait_has_is_made_up_for() {
        let lead = Lead::new();
        run(&lead, |_| 40_000);
        let (late, latest, spun) = run(&lead, |_| 40_000);
        assert!(late < 1_000 && latest < 2_000 && spun < 300, "{late} {latest} {spun}");
    }

    #[test]
    fn what_only_some_waits_have_is_not() {
        // Between 30 and 60 us: late by what they differ, and hardly ever too soon.
        let lead = Lead::new();
        let scattered = |tick: u64| 30_000 + tick.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 30_000;
        run(&lead, scattered);
        let (late, latest, spun) = run(&lead, scattered);
        assert!(late < 20_000 && latest < 31_000 && spun < 2_000, "{late} {latest} {spun}");

        // One in four has hardly any.
        let (late, _, spun) = run(&lead, |tick| if tick % 4 == 0 { 5_000 } else { 50_000 });
        assert!((25_000..45_000).contains(&late) && spun < 3_000, "{late} {spun}");
    }

    #[test]
    fn a_wait_that_something_else_ended_teaches_nothing() {
        let lead = Lead::new();
        run(&lead, |_| 40_000);
        // ORD relaxed: one thread.
        let learnt = lead.lead.load(Relaxed);
        for _ in 0..1_000 {
            lead.wait(0, TICK);
            lead.end(false, || panic!("nobody asks what time it is"));
            lead.end(true, || panic!("nobody waited"));
            lead.wait(0, TICK);
            lead.end(true, || TICK / 3);
        }
        // ORD relaxed: one thread.
        assert_eq!(lead.lead.load(Relaxed), learnt);
    }

    #[test]
    fn a_preempted_thread_teaches_little_and_a_short_wait_is_one() {
        let lead = Lead::new();
        run(&lead, |tick| if tick == 900 { 100 * TICK } else { 20_000 });
        assert!(lead.wait(0, TICK) > TICK - 22_000);
        assert!(lead.wait(0, 10_000) >= 5_000);
        assert_eq!(lead.wait(20_000, 10_000), 0);
        lead.end(true, || panic!("nobody slept"));
    }
}
