//! A current-thread runtime on which everything that can run has yielded, beside sockets.
//!
//! Purpose: "yield a few times, and what was sent has arrived". Nobody else looks at the sockets there, and the one thread looks
//! after so many polls or so much time (`pace.rs`): a poll that yields is short, so that was after hundreds of them. In Tokio a task
//! that yields waits until the driver was turned.
//!
//! State: how many polls in a row have woken themselves. When that is as many as can run, all of them have waited for something
//! else, and the thread looks. Whether it is any use is learnt: after [`EACH`] looks that have found nothing, a few of such rounds end
//! with one, until one finds something. (A program that goes on yielding waits for no socket.)
//!
//! Rejected: a look at each of them (a yield takes 20 ns, a look some hundred).
#![forbid(unsafe_code)]

use std::cell::Cell;

use crate::reactor::Why;
use crate::runtime::scheduler::worker::Worker;

/// So many looks may find nothing. Then each [`OF`]th round ends with one.
const EACH: u32 = 16;
const OF: u32 = 16;
/// After so many sleeps, one more may.
const SLEEPS: u32 = 8;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Yields {
    /// What the member had polled when one yielded last.
    polls: Cell<u64>,
    /// So many yields since the last round was over.
    count: Cell<usize>,
    /// Looks that have found nothing, up to [`EACH`], and the rounds since the last one.
    vain: Cell<u32>,
    sleeps: Cell<u32>,
    look: Cell<bool>,
    /// Is anybody to be looked for? As of the last tick, or the last sleep.
    counts: Cell<bool>,
}

impl Yields {
    /// A poll has yielded, the `polls`th. True if it was the last of a round of `all()` in which nothing else was done, and that
    /// is worth a look.
    fn note(&self, polls: u64, all: impl FnOnce() -> usize) -> bool {
        let in_a_row = polls.wrapping_sub(self.polls.replace(polls)) <= 1;
        let count = if in_a_row { self.count.get() + 1 } else { 1 };
        let is_over = count >= all();
        self.count.set(if is_over { 0 } else { count });
        if !is_over {
            return false;
        }
        let vain = self.vain.get() + 1;
        let skips = vain > EACH && vain < EACH + OF;
        self.vain.set(if vain < EACH + OF { vain } else { EACH });
        !skips
    }

    /// A look has found something, so others may as well.
    fn found(&self) {
        self.vain.set(0);
    }

    fn slept(&self) {
        self.sleeps.set(self.sleeps.get() + 1);
        if self.sleeps.get() >= SLEEPS {
            self.sleeps.set(0);
            self.vain.set(self.vain.get().min(EACH).saturating_sub(1));
        }
    }

    /// True once after a round that is worth a look.
    pub(crate) fn take_look(&self) -> bool {
        self.look.take()
    }
}

impl Worker<'_> {
    /// What is polled has been woken meanwhile.
    #[inline]
    pub(crate) fn note_yield(&self) {
        if self.yields.counts.get() {
            self.note_yield_beside_sources();
        }
    }

    /// Each round would end with a look.
    pub(crate) fn looks_between_yields(&self) -> bool {
        self.yields.counts.get() && self.yields.vain.get() < EACH
    }

    /// Looks, as a round is over.
    pub(crate) fn look_after_round(&self) {
        // It may be one of those that have yielded.
        let root_was_woken = self.root_woken();
        self.look_beside_visits(Why::Due);
        if self.found.get() > 0 || self.root_woken() && !root_was_woken {
            self.yields.found();
        }
        // The look is none of the next polls.
        self.pace.looked_at(self.now_ns());
    }

    pub(crate) fn slept_beside_sources(&self) {
        self.note_sources();
        if self.yields.counts.get() {
            self.yields.slept();
        }
    }

    /// Looks if there are sockets, and nobody else who looks at them.
    pub(crate) fn note_sources(&self) {
        let alone = self.shared.is_current_thread();
        self.yields.counts.set(alone && self.shared.driver_handle.reactor.registered() > 0);
    }

    #[inline(never)]
    fn note_yield_beside_sources(&self) {
        let all = || 1 + self.slot.depth() + self.shared.injector.len();
        if self.yields.note(self.polls.get(), all) {
            self.yields.look.set(true);
            self.pace.hurry();
        }
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_as_many_yields_in_a_row_as_can_run() {
        let yields = Yields::default();
        let looks = |polls: std::ops::Range<u64>, all| -> Vec<u64> {
            polls.filter(|&polls| yields.note(polls, || all)).collect()
        };
        assert_eq!(looks(1..10, 3), [3, 6, 9]);
        // Something else was done.
        assert_eq!(looks(20..25, 3), [22]);
        assert_eq!(looks(30..31, 1), [30], "alone");
    }

    #[test]
    fn who_goes_on_yielding_waits_for_no_socket() {
        let yields = Yields::default();
        let looks = |polls: std::ops::Range<u64>| -> Vec<u64> {
            polls.filter(|&polls| yields.note(polls, || 1)).collect()
        };
        assert_eq!(looks(1..17), (1..17).collect::<Vec<_>>());
        assert_eq!(looks(17..97), [32, 48, 64, 80, 96], "each {OF}th");
        // What else is done tells nothing, and a sleep little.
        assert_eq!(looks(200..210), []);
        (0..SLEEPS).for_each(|_| yields.slept());
        assert_eq!(looks(300..310), [300]);
        yields.found();
        assert_eq!(looks(400..410), (400..410).collect::<Vec<_>>());
    }
}
