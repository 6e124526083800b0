//! The rest of a scope's chunk, where others can take it while its thread runs one of the tasks.
//!
//! Invariants:
//! 1. Only the record's own thread puts a chain in, and only where there is none.
//! 2. From then on it is empty only when all tasks have been taken: the thread takes the next one and
//!    leaves the rest in one step. So whoever finds nothing here may sleep: of what is put in later
//!    somebody is told (`State::tell_of_held`), as of what a thief gives back to the scope.
//!
//! | Edge | Release side | Acquire side | Carries | Model that fails without it |
//! |------|--------------|--------------|---------|-----------------------------|
//! | [HE1] | `Held::put` | `Held::take` | the chain of tasks | `the_rest_of_a_chunk_can_be_taken_while_it_runs` |

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use volt_sync::internal::primitive::AtomicPtr;

use crate::scope::State;
use crate::task::Task;

pub(crate) struct Held {
    chain: AtomicPtr<Task>,
    /// Whose tasks they are, to tell without following them.
    scope: AtomicPtr<State>,
}

impl Held {
    pub(crate) fn new() -> Self {
        Self { chain: AtomicPtr::new(ptr::null_mut()), scope: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Puts a chain of tasks of `scope` in. The caller tells somebody.
    #[inline]
    pub(crate) fn put(&self, chain: NonNull<Task>, scope: *const State) {
        // ORD relaxed: a hint, see `is_of`.
        self.scope.store(scope.cast_mut(), Relaxed);
        // ORD[HE1] release: the chain.
        let order = Release;
        if cfg!(volt_loom) {
            // Loom orders a plain store before an exchange that did not read it.
            self.chain.swap(chain.as_ptr(), order);
        } else {
            self.chain.store(chain.as_ptr(), order);
        }
    }

    /// Takes the first task, and leaves `rest`. False if somebody has taken them all.
    ///
    /// Only for the thread that put them in, which knows both: the links are not its own any more.
    #[inline]
    pub(crate) fn take_first(&self, first: *mut Task, rest: *mut Task) -> bool {
        // ORD relaxed: an exchange, so whoever takes the rest still reads what `put` has released. If it
        // fails nothing is read: nobody but this thread puts in what would be found.
        self.chain.compare_exchange(first, rest, Relaxed, Relaxed).is_ok()
    }

    /// Takes all.
    pub(crate) fn take(&self) -> Option<NonNull<Task>> {
        // ORD[HE1] acquire: the chain.
        NonNull::new(self.chain.swap(ptr::null_mut(), Acquire))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // ORD relaxed: a hint for others, who have a fence before it if they rely on it; the thread
        // itself is the only one that puts a chain in.
        self.chain.load(Relaxed).is_null()
    }

    /// True if there are tasks of `scope`. Perhaps wrong, but after the caller's fence it does not miss those that
    /// were put in before the fence of `State::tell_of_held`.
    pub(crate) fn is_of(&self, scope: *const State) -> bool {
        // ORD relaxed: compared, and never followed.
        !self.is_empty() && ptr::eq(self.scope.load(Relaxed), scope)
    }
}
