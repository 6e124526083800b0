//! How many waits give turns, one after the other.

use std::cell::Cell;

/// So many others are a crowd.
const MANY: u32 = 8;

/// The turns that a thread gives, from one of a wait to the next one of the same wait.
#[derive(Debug)]
pub(super) struct Round {
    /// The wait with which it began; 0 before the first.
    first: Cell<usize>,
    /// The turns of others since. At 255 a new round begins: that wait is over, or elsewhere.
    turns: Cell<u8>,
    /// Who gave them: a bit for each, by its address. Some share one.
    others: Cell<u64>,
    /// How many that were in the rounds before: the most, one less with each round.
    before: Cell<u32>,
}

impl Round {
    pub(super) const fn new() -> Self {
        Self {
            first: Cell::new(0),
            turns: Cell::new(0),
            others: Cell::new(0),
            before: Cell::new(0),
        }
    }

    /// `wait` gives a turn.
    pub(super) fn gives(&self, wait: usize) {
        let (first, turns) = (self.first.get(), self.turns.get());
        if first != wait && first != 0 && turns < u8::MAX {
            self.turns.set(turns + 1);
            self.others.set(self.others.get() | 1 << super::hash(wait, u64::BITS));
            return;
        }
        if first == wait {
            let before = self.before.get().saturating_sub(1);
            self.before.set(self.others.get().count_ones().max(before));
        }
        self.first.set(wait);
        self.turns.set(0);
        self.others.set(0);
    }

    /// True if many others gave turns, not many rounds ago.
    pub(super) fn was_of_many(&self) -> bool {
        self.before.get() >= MANY
    }

    #[cfg(all(test, not(volt_loom)))]
    pub(super) fn forget(&self) {
        self.first.set(0);
        self.before.set(0);
    }
}
