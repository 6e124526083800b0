//! A current-thread runtime on which everything that can run has yielded, beside sockets.
//!
//! Purpose: "yield a few times, and what was sent has arrived". Nobody else looks at the sockets there, and the one thread looks
//! after so many polls or so much time (`pace.rs`): a poll that yields is short, so that was after hundreds of them. In Tokio a task
//! that yields waits until the driver was turned.
//!
//! State: how many polls in a row have woken themselves. When that is as many as can run, all of them have waited for something
//! else, and the thread looks. A program that goes on like that waits for no socket: the first [`EACH`] rounds end with a look, and
//! of the next ones a few.
//!
//! Rejected: a look at each of them (a yield takes 20 ns, a look some hundred).
#![forbid(unsafe_code)]

use std::cell::Cell;

use super::worker::Worker;

/// So many rounds in a row end with a look, and then each [`OF`]th.
const EACH: u32 = 16;
const OF: u32 = 16;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Yields {
    /// What the member had polled when one yielded last.
    polls: Cell<u64>,
    /// So many yields since the last round was over.
    count: Cell<usize>,
    rounds: Cell<u32>,
    look: Cell<bool>,
    /// Is anybody to be looked for? As of the last tick, or the last sleep.
    counts: Cell<bool>,
}

impl Yields {
    /// A poll has yielded, the `polls`th. True if it was the last of a round of `all()` in which nothing else was done, and that
    /// is worth a look.
    fn note(&self, polls: u64, all: impl FnOnce() -> usize) -> bool {
        let in_a_row = polls.wrapping_sub(self.polls.replace(polls)) <= 1;
        if !in_a_row {
            self.rounds.set(0);
        }
        let count = if in_a_row { self.count.get() + 1 } else { 1 };
        let is_over = count >= all();
        self.count.set(if is_over { 0 } else { count });
        if !is_over {
            return false;
        }
        let rounds = self.rounds.get();
        self.rounds.set(if rounds < EACH + OF { rounds + 1 } else { EACH + 1 });
        rounds < EACH || rounds == EACH + OF
    }

    /// True once after a round that is worth a look.
    pub(super) fn take_look(&self) -> bool {
        self.look.take()
    }
}

impl Worker<'_> {
    /// What is polled has been woken meanwhile.
    #[inline]
    pub(super) fn note_yield(&self) {
        if self.yields.counts.get() {
            self.note_yield_beside_sources();
        }
    }

    /// Looks if there are sockets, and nobody else who looks at them.
    pub(super) fn note_sources(&self) {
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
        let looks: Vec<_> = (1..100).filter(|&polls| yields.note(polls, || 1)).collect();
        let first = u64::from(EACH);
        assert!(looks.starts_with(&(1..=first).collect::<Vec<_>>()), "{looks:?}");
        let later = &looks[EACH as usize..];
        assert_eq!(later, [33, 49, 65, 81, 97], "each {OF}th");
        assert!(yields.note(200, || 1), "after something else");
    }
}
