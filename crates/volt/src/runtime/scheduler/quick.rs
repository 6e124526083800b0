//! Which kinds of tasks are known to poll quickly.
//!
//! Purpose: a thread in `block_on` runs tasks while its own future waits. A task that computes for
//! long, or never yields, would hold that future up, which on a worker thread it would not. So such
//! a guest runs only tasks of a kind (a type of future) that a worker has seen to return from a
//! poll quickly, and sets the others aside for the workers (`injector.rs`). A kind that is caught in a slow
//! poll is forgotten. The futures of `block_on` are of kinds, too, so that one that is always quick lets the
//! watcher sleep (`guest.rs`); of these, one that a watcher has caught is never known again.
//!
//! Rejected: timing every poll (two looks at the clock, more than many polls take): a known kind
//! costs one load.
//!
//! State: a table of the kinds' keys, each at the place of its hash; what collides is forgotten.
//! All hints, so all accesses are relaxed.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::AtomicUsize;

use super::shared::Shared;

const PLACES: usize = if cfg!(volt_loom) { 1 } else { 256 };

/// A first poll that takes longer is not quick.
pub(super) const QUICK_NS: u64 = 50_000;

/// The kind of what a member polls that has not polled yet, or a guest that has left.
pub(super) const OF_NOBODY: usize = 0;
/// What stands for the kind of a future that is no task, of which nothing is known.
pub(super) const OF_NO_TASK: usize = 1;

/// The table.
#[derive(Debug)]
pub(crate) struct Quick([AtomicUsize; PLACES]);

impl Quick {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicUsize::new(0)))
    }

    #[inline]
    fn place(&self, key: usize) -> &AtomicUsize {
        // Keys are addresses: of tables of several words, or of functions.
        &self.0[(key >> 4 ^ key >> 12) % PLACES]
    }

    #[inline]
    pub(super) fn knows(&self, key: usize) -> bool {
        // ORD relaxed: a hint.
        self.place(key).load(Relaxed) == key
    }

    pub(super) fn learn(&self, key: usize) {
        // A look first: who blocks again and again would take the line from those that look.
        if !self.knows(key) {
            // ORD relaxed: a hint.
            self.place(key).store(key, Relaxed);
        }
    }

    pub(super) fn forget(&self, key: usize) {
        if self.knows(key) {
            // ORD relaxed: a hint.
            self.place(key).store(0, Relaxed);
        }
    }
}

impl Shared {
    /// True if each member that runs, beside this one, is in a poll of a quick kind: it will look for the next
    /// task soon.
    pub(super) fn others_are_quick(&self, index: usize) -> bool {
        self.used_slots().iter().enumerate().all(|(other, slot)| {
            // ORD relaxed: a hint.
            let kind = slot.kind.load(Relaxed);
            other == index
                || kind == OF_NOBODY
                || self.idle.is_parked(other)
                || self.quick.knows(kind)
        })
    }
}
