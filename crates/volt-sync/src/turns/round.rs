//! How many waits give turns, one after the other.

use std::cell::Cell;

/// So many others are a crowd.
const MANY: u8 = 8;
/// So many at most are remembered.
const MOST: u8 = 64;

/// The turns that a thread gives, from one of a wait to the next one of the same wait.
#[derive(Debug)]
pub(super) struct Round {
    /// The wait with which it began; 0 before the first.
    first: Cell<usize>,
    /// How many others gave a turn since. At 255 a new round begins: that wait is over, or elsewhere.
    others: Cell<u8>,
    /// How many did in the rounds before: the most, one less with each round.
    before: Cell<u8>,
}

impl Round {
    pub(super) const fn new() -> Self {
        Self { first: Cell::new(0), others: Cell::new(0), before: Cell::new(0) }
    }

    /// `wait` gives a turn.
    pub(super) fn gives(&self, wait: usize) {
        let (first, others) = (self.first.get(), self.others.get());
        if first != wait && first != 0 && others < u8::MAX {
            return self.others.set(others + 1);
        }
        if first == wait {
            let before = self.before.get().saturating_sub(1);
            self.before.set(others.min(MOST).max(before));
        }
        self.first.set(wait);
        self.others.set(0);
    }

    /// True if many others gave turns, not many rounds ago.
    pub(super) fn was_of_many(&self) -> bool {
        self.before.get() >= MANY
    }

    #[cfg(all(test, not(volt_loom)))]
    pub(super) fn forget(&self) {
        self.first.set(0);
        self.others.set(0);
        self.before.set(0);
    }
}
