//! Which kinds of tasks guests leave to the workers for some time, though they are quick.
//!
//! Purpose: a task of a kind that is quick mostly, and now and then blocks for long, holds the future of a
//! `block_on` up if it does so on that thread. One quick poll makes a kind quick again (`quick.rs`), so that
//! would happen each time. Here it is left to the workers: for a [`FIRST_NS`] at first, and, if it holds a
//! guest up again within an [`AGAIN_NS`] after that time, for [`TIMES`] as long, up to [`LAST_NS`].
//!
//! Rejected: for good, as of the futures of `block_on`: on a machine with other work any kind is held up
//! now and then, by having no processor, and a task for which a thread is woken costs some microseconds more.
//! So that time is short at first, and only [`HELD_UP_NS`] count, which is longer than a wait for a processor
//! mostly is.
//!
//! State: a table, in which a kind has one place; who comes later takes it. All hints, so all accesses are relaxed.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::{AtomicU64, AtomicUsize};

use super::quick;
use crate::runtime::scheduler::guests::shy::HELD_UP_NS;
use crate::runtime::scheduler::shared::Shared;

const PLACES: usize = if cfg!(volt_loom) { 1 } else { 64 };
const FIRST_NS: u64 = 200_000_000;
const TIMES: u64 = 8;
const LAST_NS: u64 = 60_000_000_000;
const AGAIN_NS: u64 = LAST_NS;

/// The table.
#[derive(Debug)]
pub(crate) struct Distrust([Place; PLACES]);

#[derive(Debug)]
struct Place {
    kind: AtomicUsize,
    /// For so long it is left to the workers, until then.
    term_ns: AtomicU64,
    until_ns: AtomicU64,
}

impl Distrust {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| Place {
            kind: AtomicUsize::new(0),
            term_ns: AtomicU64::new(0),
            until_ns: AtomicU64::new(0),
        }))
    }

    fn place(&self, kind: usize) -> &Place {
        &self.0[quick::hash(kind) % PLACES]
    }

    /// True if guests leave tasks of this kind to the workers.
    #[inline]
    pub(crate) fn holds(&self, kind: usize, now: u64) -> bool {
        let place = self.place(kind);
        // ORD relaxed: hints.
        place.kind.load(Relaxed) == kind && now < place.until_ns.load(Relaxed)
    }

    /// A guest is held up by a task of this kind, now: said again and again while it is.
    #[cold]
    pub(crate) fn held_up(&self, kind: usize, now: u64) {
        let place = self.place(kind);
        // ORD relaxed: hints, of one watcher after the other.
        let (term, until) = (place.term_ns.load(Relaxed), place.until_ns.load(Relaxed));
        // ORD relaxed: as above.
        let is_known = place.kind.load(Relaxed) == kind && now < until.saturating_add(AGAIN_NS);
        let term = match is_known {
            true if now < until => term,
            true => (term * TIMES).min(LAST_NS),
            false => FIRST_NS,
        };
        // ORD relaxed: as above.
        place.kind.store(kind, Relaxed);
        // ORD relaxed: as above.
        place.term_ns.store(term, Relaxed);
        // ORD relaxed: as above.
        place.until_ns.store(now.saturating_add(term), Relaxed);
    }
}

impl Shared {
    /// The watcher's look at member `index`, which has stood still for `still_ns` in a poll of `kind`.
    pub(crate) fn saw_still(&self, index: usize, still_ns: u64, kind: usize, now: u64) {
        if index >= self.workers && still_ns >= HELD_UP_NS {
            // Another member may have learnt it since the poll was seen to be slow.
            self.is_not_quick(kind);
            self.distrust.held_up(kind, now);
        }
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::*;
    use crate::runtime::scheduler::by_hand;

    #[test]
    fn a_kind_is_left_to_the_workers_for_longer_each_time() {
        let distrust = Distrust::new();
        let kind = 0x1230;
        assert!(!distrust.holds(kind, 0));
        let mut now = 5;
        let mut term = FIRST_NS;
        for _ in 0..10 {
            // It blocks for a while, at whose end the time begins.
            for _ in 0..3 {
                now += HELD_UP_NS;
                distrust.held_up(kind, now);
            }
            assert!(distrust.holds(kind, now + term - 1) && !distrust.holds(kind, now + term));
            now += term;
            term = (term * TIMES).min(LAST_NS);
        }
        assert_eq!(term, LAST_NS);
        now += AGAIN_NS;
        distrust.held_up(kind, now);
        assert!(!distrust.holds(kind, now + FIRST_NS), "that is long ago");
    }

    /// Between the time when it was seen to be slow and the one when it counts here, others may have been quick.
    #[test]
    fn a_kind_that_holds_a_guest_up_is_not_known_to_be_quick() {
        by_hand::with_members(|shared, _| {
            let guest = shared.workers;
            for (member, still_ns, known) in [
                (guest - 1, HELD_UP_NS, true),
                (guest, HELD_UP_NS - 1, true),
                (guest, HELD_UP_NS, false),
            ] {
                shared.saw_still(member, still_ns, by_hand::QUICK, 7);
                assert_eq!(shared.quick.knows(by_hand::QUICK), known);
                assert_eq!(shared.distrust.holds(by_hand::QUICK, 8), !known);
            }
        });
    }

    #[test]
    fn another_kind_may_take_the_place() {
        let distrust = Distrust::new();
        let [first, second] = [1, 2].map(|kind| kind * (PLACES << 12));
        distrust.held_up(first, 0);
        assert!(distrust.holds(first, 1) && !distrust.holds(second, 1));
        distrust.held_up(second, 1);
        assert!(distrust.holds(second, 2) && !distrust.holds(first, 2));
        assert!(!distrust.holds(second, 1 + FIRST_NS));
    }
}
