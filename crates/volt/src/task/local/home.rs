//! The set of a `LocalRuntime`: where `spawn_local` spawns in all that its thread does for the runtime.
//!
//! A set is the current one while it is driven (`local.rs`). But a runtime's thread also polls tasks that are not the set's, with the set
//! driven by the future of `block_on` in between. So the runtime knows its set, and on which thread it may be used; and its
//! shutdown, which refuses new tasks of both kinds first, drops the set's.

use std::thread::ThreadId;

use volt_sync::internal::primitive::Arc;

use super::{LocalSet, Shared};
use crate::runtime::context;

/// See the module's documentation.
#[derive(Clone)]
pub(crate) struct Home {
    /// Of all threads that there ever are, so a set that was leaked is nobody else's.
    thread: ThreadId,
    set: Arc<Shared>,
}

impl Home {
    /// That of `set`, which is on this thread.
    pub(crate) fn new(set: &LocalSet) -> Self {
        Self { thread: std::thread::current().id(), set: set.shared.clone() }
    }

    /// True on its thread.
    pub(crate) fn is_here(&self) -> bool {
        std::thread::current().id() == self.thread
    }

    /// Drops all of its tasks, and what is spawned later at once, on its thread.
    pub(crate) fn close(&self) {
        if self.is_here() {
            // SAFETY: this is the set's thread.
            unsafe { Shared::close(&self.set) };
        }
    }

    /// The same, but for those on this thread's stack, and on their way into a queue.
    pub(crate) fn cancel(&self) {
        if self.is_here() {
            // SAFETY: this is the set's thread.
            unsafe { Shared::cancel(&self.set) };
        }
    }

    /// True on its thread if [`cancel`](Self::cancel) may find tasks.
    pub(crate) fn has_tasks(&self) -> bool {
        self.is_here() && !self.set.owned.is_empty()
    }

    /// How many of its tasks have not completed.
    pub(crate) fn alive_tasks(&self) -> usize {
        self.set.owned.len()
    }
}

/// The set of the current runtime, if it has one, and this is its thread.
pub(super) fn of_runtime() -> Option<Arc<Shared>> {
    context::try_with_runtime(|runtime| {
        let home = runtime.config.home.as_ref().filter(|home| home.is_here());
        home.map(|home| home.set.clone())
    })?
}

/// True if `scheduler` is the address of that set.
pub(super) fn is_of_runtime(scheduler: *const ()) -> bool {
    of_runtime().is_some_and(|set| std::ptr::eq(Arc::as_ptr(&set).cast(), scheduler))
}
