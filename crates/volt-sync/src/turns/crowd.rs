//! If several tasks of a thread want the same.

use std::cell::Cell;

/// So often in a row, others wanted it: then they are a crowd.
pub(crate) const CROWD: u8 = 16;

#[derive(Debug)]
pub(super) struct Crowd {
    /// What was wanted last, and the task that wanted it.
    last: Cell<(usize, usize)>,
    /// How often in a row that was another task than the time before, up to [`CROWD`].
    others: Cell<u8>,
}

impl Crowd {
    pub(super) const fn new() -> Self {
        Self { last: Cell::new((0, 0)), others: Cell::new(0) }
    }

    /// `task` wants what is at `address`. True if it is one of a crowd.
    pub(super) fn wants(&self, address: usize, task: usize) -> bool {
        let (wanted, by) = self.last.replace((address, task));
        let others = if wanted == address && by != task { self.others.get() + 1 } else { 0 };
        self.others.set(others.min(CROWD));
        others >= CROWD
    }

    #[cfg(all(test, not(volt_loom)))]
    pub(super) fn forget(&self) {
        self.others.set(0);
    }
}
