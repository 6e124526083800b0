//! What an edge that publishes a pointer carries, as the models see it.
//!
//! Loom does not notice an atomic that is used by a thread which did not see its making. So what is
//! published has one of these, a cell whose making is a write and whose sight is a read: without
//! the edge they race. Nothing, and free, outside of the models.

#[cfg(volt_loom)]
use volt_sync::internal::primitive::UnsafeCell;

pub(crate) struct Made {
    #[cfg(volt_loom)]
    cell: UnsafeCell<()>,
}

// SAFETY: the cell is only looked at once it can be seen, which is what loom checks.
#[cfg(volt_loom)]
unsafe impl Sync for Made {}

#[cfg(volt_loom)]
impl Made {
    pub(crate) fn new() -> Self {
        let cell = UnsafeCell::new(());
        cell.with_mut(|_| ());
        Self { cell }
    }

    pub(crate) fn seen(&self) {
        self.cell.with(|_| ());
    }
}

#[cfg(not(volt_loom))]
impl Made {
    pub(crate) fn new() -> Self {
        Self {}
    }

    #[inline(always)]
    #[allow(clippy::unused_self, reason = "the models look at it")]
    pub(crate) fn seen(&self) {}
}
