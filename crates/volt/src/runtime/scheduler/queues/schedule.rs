//! What a task asks of its scheduler: to be queued, to be listed while it is idle, to be let go of at its end.

use std::ptr::NonNull;

use crate::runtime::context;
use crate::runtime::scheduler::shared::Shared;
use crate::task::{Header, Notified, Schedule, ToIdle};

// SAFETY:
// 1. `release` and `link` are those of one list.
// 2. `Shared` stays in its `Arc`; the shutdown waits for all tasks that are counted (`living.rs`), and
//    ends before the last count of the `Arc` goes: workers and the `Runtime` each hold one.
unsafe impl Schedule for Shared {
    #[inline]
    unsafe fn schedule(this: NonNull<Self>, task: Notified) {
        // SAFETY: alive, since `task` has not been handed over (the caller's obligation).
        let shared = unsafe { this.as_ref() };
        match context::worker_of(shared) {
            // A member keeps the scheduler alive.
            Some(worker) => worker.schedule_local(task),
            None => shared.schedule_remote(task),
        }
    }

    #[inline]
    unsafe fn yield_now(this: NonNull<Self>, task: Notified) {
        // SAFETY: alive, since `task` has not been handed over (the caller's obligation).
        let shared = unsafe { this.as_ref() };
        match context::worker_of(shared) {
            Some(worker) => worker.schedule_yielded(task),
            None => shared.schedule_remote(task),
        }
    }

    #[inline]
    unsafe fn release(this: NonNull<Self>, task: NonNull<Header>) -> bool {
        // SAFETY: alive, as the task is not counted as finished.
        let shared = unsafe { this.as_ref() };
        // SAFETY: alive by the runner's reference.
        if shared.slow.is_some() || unsafe { task.as_ref() }.is_linked() {
            // SAFETY: the same obligation.
            return unsafe { shared.release_from_lists(task) };
        }
        shared.note_completed();
        false
    }

    #[inline]
    unsafe fn link(this: NonNull<Self>, task: NonNull<Header>) -> ToIdle {
        // SAFETY: alive, as the task is counted.
        let shared = unsafe { this.as_ref() };
        let shard = context::current_worker(|worker| worker.map_or(0, |worker| worker.index));
        // SAFETY: the caller is the task's runner, and never linked it before; `release` is above.
        unsafe { shared.owned.link(shard, task) }
    }
}

impl Shared {
    /// The end of a task that is or may be in lists. (A function of its own, called last: what it keeps on the stack is not for tasks
    /// that are in none.)
    ///
    /// # Safety
    /// As of [`Schedule::release`].
    #[inline(never)]
    unsafe fn release_from_lists(&self, task: NonNull<Header>) -> bool {
        if let Some(slow) = &self.slow {
            // SAFETY: alive by the runner's reference.
            slow.remove(unsafe { task.as_ref() }.id());
        }
        // SAFETY: the caller is the task's runner; `link` is that of this list.
        let linked = unsafe { self.owned.release(task) };
        self.note_completed();
        linked
    }

    #[inline]
    fn note_completed(&self) {
        context::current_worker(|worker| {
            if let Some(worker) = worker {
                worker.completed();
            }
        });
        self.count_finished();
    }
}
