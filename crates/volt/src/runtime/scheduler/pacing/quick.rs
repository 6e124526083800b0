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
//! State: a table of the kinds' keys, each at one of the places of its hash; of those that collide, one is forgotten.
//! All hints, so all accesses are relaxed.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::AtomicUsize;

use crate::runtime::scheduler::shared::Shared;

/// So many kinds have hashes of their own.
const SETS: usize = if cfg!(volt_loom) { 1 } else { 128 };
/// A kind has so many of them. (With one, two hot kinds of the same place took it from each other at each poll.)
const WAYS: usize = if cfg!(volt_loom) { 1 } else { 2 };

/// A first poll that takes longer is not quick.
pub(crate) const QUICK_NS: u64 = 50_000;

/// The kind of what a member polls that has not polled yet, or a guest that has left.
pub(crate) const OF_NOBODY: usize = 0;
/// What stands for the kind of a future that is no task, of which nothing is known.
pub(crate) const OF_NO_TASK: usize = 1;

/// Of the key of a kind, which is the address of a function.
#[inline]
pub(crate) const fn hash(key: usize) -> usize {
    key >> 4 ^ key >> 12
}

/// The table.
#[derive(Debug)]
pub(crate) struct Quick([[AtomicUsize; WAYS]; SETS]);

impl Quick {
    pub(crate) fn new() -> Self {
        let places = || std::array::from_fn(|_| AtomicUsize::new(0));
        Self(std::array::from_fn(|_| places()))
    }

    /// Where this kind may be.
    #[inline]
    fn places(&self, key: usize) -> &[AtomicUsize; WAYS] {
        &self.0[hash(key) % SETS]
    }

    #[inline]
    pub(crate) fn knows(&self, key: usize) -> bool {
        // ORD relaxed: a hint.
        self.places(key).iter().any(|place| place.load(Relaxed) == key)
    }

    pub(crate) fn learn(&self, key: usize) {
        // A look first: who blocks again and again would take the line from those that look.
        if !self.knows(key) {
            // ORD relaxed: a hint.
            let is_free = |place: &&AtomicUsize| place.load(Relaxed) == 0;
            let places = self.places(key);
            let place = places.iter().find(is_free).unwrap_or(&places[WAYS - 1]);
            // ORD relaxed: a hint.
            place.store(key, Relaxed);
        }
    }

    pub(crate) fn forget(&self, key: usize) {
        // In both, if two members have learnt it at the same time.
        for place in self.places(key) {
            // ORD relaxed: a hint.
            if place.load(Relaxed) == key {
                // ORD relaxed: a hint.
                place.store(0, Relaxed);
            }
        }
    }
}

impl Shared {
    /// True if each member that runs, beside this one, is in a poll of a quick kind: it will look for the next
    /// task soon.
    pub(crate) fn others_are_quick(&self, index: usize) -> bool {
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

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::*;

    #[test]
    fn two_kinds_of_the_same_hash_are_both_known() {
        let quick = Quick::new();
        let [first, second, third] = [1, 2, 3].map(|kind| kind * (SETS << 12));
        [first, second].into_iter().for_each(|kind| quick.learn(kind));
        assert!(quick.knows(first) && quick.knows(second) && !quick.knows(third));
        quick.learn(third);
        assert!(quick.knows(third));
        let others = [first, second].into_iter().filter(|&kind| quick.knows(kind));
        assert_eq!(others.clone().count(), 1, "there are two places");
        let other = others.last().unwrap();
        quick.forget(other);
        assert!(!quick.knows(other) && quick.knows(third));
        quick.learn(other);
        assert!(quick.knows(other) && quick.knows(third), "in the free place");
        quick.places(first).iter().for_each(|place| place.store(first, Relaxed));
        quick.forget(first);
        assert!(!quick.knows(first), "in either");
        quick.forget(OF_NOBODY);
    }
}
