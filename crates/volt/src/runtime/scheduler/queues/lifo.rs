//! The slot for the task that a worker made runnable last.
//!
//! Purpose: what was just woken has its data in the cache; it runs next. A push costs one
//! read-modify-write and wakes nobody while the owner is about to take it.
//!
//! Rejected: pushes by other threads (finding P3: they break the ring's single producer when they
//! evict); a slot that only the owner can empty (its task would be stuck behind a poll that does
//! not end).
//!
//! State: null, or a task.
//!
//! Invariants:
//! 1. Only the owner pushes; whoever swaps a task out has it.
//!
//! | Edge  | Release side | Acquire side          | Carries  | Model |
//! |-------|--------------|-----------------------|----------|-------|
//! | [LF1] | `Lifo::push` | `Lifo::take`          | the task | `owner_against_thief` |
//! | [LF2] | `Lifo::push` | `Lifo::is_empty`      | with [ID3] in one total order: a task in the slot against a worker that stops watching | none: under loom the fences of [ID1] stand between. Litmus test `order_parking::a_lifo_push_and_a_retiring_watcher_do_not_miss_each_other` of volt-models |
//!
//! Progress: wait-free.
//!
//! Cost: push 1 RMW, take 1 RMW if there is something.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};

use volt_sync::internal::primitive::AtomicPtr;

/// The slot.
pub(crate) struct Lifo<T>(AtomicPtr<T>);

impl<T> Lifo<T> {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Puts `task` in; what was there before comes out. By the owner only (a second pusher would
    /// be no unsoundness here, but see P3).
    #[inline]
    pub(crate) fn push(&self, task: NonNull<T>) -> Option<NonNull<T>> {
        // ORD[LF1] release: the task. (The one that comes out was put in by this thread.)
        // ORD[LF2] release: SeqCst, before a load of the members' state.
        NonNull::new(self.0.swap(task.as_ptr(), SeqCst))
    }

    /// Takes the task out. Any thread.
    #[inline]
    pub(crate) fn take(&self) -> Option<NonNull<T>> {
        // ORD relaxed: a look, the swap decides.
        if self.0.load(Relaxed).is_null() {
            return None;
        }
        // ORD[LF1] acquire: the task.
        NonNull::new(self.0.swap(ptr::null_mut(), AcqRel))
    }

    /// True if there seems to be a task.
    #[inline]
    pub(crate) fn is_taken(&self) -> bool {
        // ORD relaxed: a hint.
        !self.0.load(Relaxed).is_null()
    }

    /// True if nothing is there; in the total order with the members' state.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // ORD[LF2] acquire: SeqCst, after a change of the members' state.
        self.0.load(SeqCst).is_null()
    }
}

impl<T> std::fmt::Debug for Lifo<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Lifo").field(&!self.is_empty()).finish()
    }
}

#[cfg(all(test, volt_loom))]
mod model;
