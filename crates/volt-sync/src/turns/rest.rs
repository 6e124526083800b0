//! When a thread gives no turns: they were in vain.

use std::cell::Cell;

/// So many turns may be in vain, the first time.
pub(super) const FEWEST: u16 = 8;
/// And at most so many.
pub(crate) const MOST: u16 = 1024;
/// One that pays is worth so many in vain: a place in a queue and a wake-up take about as long.
pub(super) const WORTH: u16 = 4;
/// More turns each time.
pub(super) const LONGER: u16 = 4;
/// So many opportunities are let pass after that, the first time.
pub(super) const SHORTEST: u32 = 64;
/// And at most so many: some hundredths of a second.
pub(super) const LONGEST: u32 = 1 << 18;
/// More of them each time.
pub(super) const SLOWER: u32 = 4;

#[derive(Debug)]
pub(super) struct Rest {
    /// Opportunities to let pass now.
    pass: Cell<u32>,
    /// How many to let pass when `turns` are used up.
    length: Cell<u32>,
    /// Turns that may still be in vain.
    turns: Cell<u16>,
    /// How many these are at most.
    most: Cell<u16>,
}

impl Rest {
    pub(super) const fn new() -> Self {
        Self {
            pass: Cell::new(0),
            length: Cell::new(SHORTEST),
            turns: Cell::new(FEWEST),
            most: Cell::new(FEWEST),
        }
    }

    /// An opportunity. True if it is one to let pass.
    pub(super) fn lets_pass(&self) -> bool {
        let pass = self.pass.get();
        self.pass.set(pass.saturating_sub(1));
        pass > 0
    }

    /// A turn was given, in vain as far as is known.
    pub(super) fn gave(&self) {
        let left = self.turns.get() - 1;
        self.turns.set(left);
        if left == 0 {
            let most = (self.most.get() * LONGER).min(MOST);
            self.most.set(most);
            self.turns.set(most);
            self.take();
        }
    }

    /// A rest begins, and the next one is longer.
    pub(super) fn take(&self) {
        let length = self.length.get();
        self.pass.set(length);
        self.length.set((length * SLOWER).min(LONGEST));
    }

    /// A rest begins, as long as the next one will be.
    pub(super) fn again(&self) {
        self.pass.set(self.length.get());
    }

    /// The rest is over.
    pub(super) fn end(&self) {
        self.pass.set(0);
    }

    /// A turn was not in vain.
    pub(super) fn paid(&self) {
        let most = self.most.get();
        if self.pass.get() > 0 {
            // It was given before the rest began.
            return;
        }
        self.turns.set(most.min(self.turns.get() + WORTH));
        let shortest = SHORTEST / u32::from(FEWEST) * u32::from(most);
        self.length.set((self.length.get() / 2).max(shortest));
    }

    #[cfg(all(test, not(volt_loom)))]
    pub(super) fn length(&self) -> u32 {
        self.length.get()
    }

    /// As if nothing had been learnt, but that a crowd may need so many turns.
    #[cfg(all(test, not(volt_loom)))]
    pub(super) fn know(&self, most: u16) {
        self.pass.set(0);
        self.most.set(most);
        self.turns.set(most);
        self.length.set(0);
        self.paid();
    }
}
