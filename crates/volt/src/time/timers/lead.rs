//! How much sooner than at the deadline the kernel is told to end a wait.
//!
//! Purpose: a thread that sleeps until a time runs some tens of microseconds after it: the interrupt, the way
//! out of the processor's idle state, the scheduler. As far as each wait takes that long, it can begin
//! sooner: then the timer fires when it is due.
//!
//! The lead is about the least latency of the last waits: what one took at most, and a little more after each
//! that took longer. If a wait ends sooner than that, the rest is waited out here, so no timer fires early. The
//! hypervisors do the same for the timers of their guests (`lapic_timer_advance_ns` of KVM, tuned by itself since
//! Linux commit 3b8a5df6c4dc). The longer a processor is idle, the longer it takes to get out of that: waits of
//! different lengths have leads of their own.
//!
//! Rejected: the average, which would have every second wait end in a loop; a second sleep for the rest, which
//! is late by a latency again.
//!
//! State: all accesses are relaxed: it belongs to whoever waits in the driver, which is one thread at a time,
//! and its role passes on with an edge (`idle.rs`).
//!
//! Cost: one look at the clock more for each wait that no event has ended, and those of the rest.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::AtomicU64;

use super::{NEVER, Timers};

/// No lead is longer, and so no rest is either (by more than what `ahead.rs` takes for near).
const MOST_NS: u64 = 100_000;
/// A wait that took longer than the lead moves it by one in so many parts of the difference.
const SLOWLY: u64 = 64;
/// Waits of 65 us and more have a lead, those of 262 us, 1 ms, 4 ms, and 17 ms. Shorter ones have none: many are
/// over before the thread sleeps.
const LENGTHS: usize = 5;

#[derive(Debug)]
pub(super) struct Lead {
    leads: [AtomicU64; LENGTHS],
    /// When the kernel was told to end the wait; [`NEVER`] if it was not told to wait.
    asked: AtomicU64,
    /// When the timer is due.
    due: AtomicU64,
    /// Its [`length`].
    length: AtomicU64,
}

impl Lead {
    pub(super) fn new() -> Self {
        Self {
            leads: std::array::from_fn(|_| AtomicU64::new(0)),
            asked: AtomicU64::new(NEVER),
            due: AtomicU64::new(0),
            length: AtomicU64::new(0),
        }
    }

    /// For how long to ask the kernel, `now`, for a timer that is `due`.
    pub(super) fn wait(&self, now: u64, due: u64) -> u64 {
        let rest = due.saturating_sub(now);
        let length = length(rest);
        // ORD relaxed: see above.
        let lead = length.map_or(0, |length| self.leads[length].load(Relaxed));
        // A timer that is due soon has a sleep as well.
        let wait = rest - lead.min(rest / 2);
        // Who only looks does not sleep.
        let asked = if wait > 0 { now + wait } else { NEVER };
        // ORD relaxed: see above.
        self.asked.store(asked, Relaxed);
        // ORD relaxed: see above.
        self.due.store(due, Relaxed);
        // ORD relaxed: see above.
        self.length.store(length.map_or(NEVER, |length| length as u64), Relaxed);
        wait
    }

    /// The wait has ended for no other reason than the time, if that is over: returns when the timer is due, or
    /// when the `clock` says `None`, what it has said last.
    pub(super) fn end(&self, clock: impl Fn() -> Option<u64>) -> Option<u64> {
        let mut now = clock();
        // ORD relaxed: see above.
        let asked = self.asked.load(Relaxed);
        let Some(took) = now.and_then(|now| now.checked_sub(asked)) else {
            return now;
        };
        // ORD relaxed: see above.
        if let Some(lead) = self.leads.get(self.length.load(Relaxed) as usize) {
            // ORD relaxed: see above.
            let before = lead.load(Relaxed);
            let longer = took.min(MOST_NS).saturating_sub(before);
            // ORD relaxed: see above.
            lead.store(took.min(before + longer / SLOWLY), Relaxed);
        }
        // ORD relaxed: see above.
        let due = self.due.load(Relaxed);
        while now.is_some_and(|now| now < due) {
            std::hint::spin_loop();
            now = clock();
        }
        now
    }
}

impl Timers {
    /// When the wait of `prepare_wait` would be told to end, and when its timer is due.
    pub(crate) fn asked_and_due(&self) -> (u64, u64) {
        let lead = &self.shared.lead;
        // ORD relaxed: see above.
        (lead.asked.load(Relaxed), lead.due.load(Relaxed))
    }

    /// It is told to end at the time `asked` instead, a little sooner or later.
    pub(crate) fn set_asked(&self, asked: u64) {
        // ORD relaxed: see above.
        self.shared.lead.asked.store(asked, Relaxed);
    }
}

/// Which lead a wait of `ns` has.
fn length(ns: u64) -> Option<usize> {
    let octaves = ns.checked_ilog2()?.checked_sub(16)?;
    Some((octaves as usize / 2).min(LENGTHS - 1))
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
            let _ = lead.end(|| Some(now.replace(now.get() + STEP)));
            let now = now.get() - STEP;
            assert!(now >= due, "never early");
            spun += now - woken;
            late += now - due;
            latest = latest.max(now - due);
        }
        (late / 1_000, latest, spun / 1_000)
    }

    /// How much sooner a wait of `rest` is told to end.
    fn lead_of(lead: &Lead, rest: u64) -> u64 {
        rest - lead.wait(0, rest)
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
    fn the_lead_has_a_limit_and_goes_there_slowly() {
        let lead = Lead::new();
        run(&lead, |tick| if tick == 1_000 { 100 * TICK } else { 20_000 });
        let learnt = lead_of(&lead, TICK);
        assert!((20_000..22_000).contains(&learnt), "{learnt}");
        run(&lead, |_| 100 * TICK);
        let most = lead_of(&lead, TICK);
        assert!((MOST_NS - 1_000..=MOST_NS).contains(&most), "{most}");
    }

    #[test]
    fn long_waits_have_a_lead_of_their_own_and_short_ones_none() {
        let lead = Lead::new();
        run(&lead, |_| 40_000);
        let of_ticks = lead_of(&lead, TICK / 2);
        for rest in [1_000, 60_000, 100_000, 10 * TICK, 10_000 * TICK] {
            let wait = lead.wait(0, rest);
            let _ = lead.end(|| Some(wait + rest));
        }
        assert_eq!(lead_of(&lead, TICK / 2), of_ticks);
        assert!(lead_of(&lead, 100_000) < 2_000 && lead_of(&lead, 10 * TICK) < 2_000);
        assert_eq!(lead_of(&lead, 60_000), 0);
    }

    #[test]
    fn a_timer_that_is_due_soon_has_a_sleep_as_well() {
        let lead = Lead::new();
        for _ in 0..1_000 {
            let wait = lead.wait(0, 80_000);
            let _ = lead.end(|| Some(wait + 70_000));
        }
        assert_eq!(lead_of(&lead, 80_000), 40_000);
    }

    #[test]
    fn a_wait_that_was_none_or_that_something_else_ended_teaches_nothing() {
        let lead = Lead::new();
        run(&lead, |_| 40_000);
        let learnt = lead_of(&lead, TICK);
        for _ in 0..1_000 {
            lead.wait(0, TICK);
            let _ = lead.end(|| Some(TICK / 3));
            lead.wait(0, TICK);
            let _ = lead.end(|| None);
            assert_eq!(lead.wait(TICK, TICK), 0);
            let _ = lead.end(|| Some(TICK));
        }
        assert_eq!(lead_of(&lead, TICK), learnt);
    }

    #[test]
    fn a_clock_that_is_stopped_meanwhile_is_not_waited_for() {
        let lead = Lead::new();
        run(&lead, |_| 40_000);
        let now = lead.wait(0, TICK);
        let looks = Cell::new(0);
        let _ = lead.end(|| (looks.replace(looks.get() + 1) < 5).then_some(now));
        assert_eq!(looks.get(), 6);
    }
}
