//! A thread's mail: work that is for this thread and no other.
//!
//! Purpose: parts of broadcasts, and calls that come back to a thread which waits for their caller.
//! What the thread may not run yet stays in the stash.
//!
//! What came first is taken first, of what fits: `broadcast.rs` says why.
//!
//! Invariants:
//! 1. The stash belongs to the thread itself, and to whoever drops its pool.
//! 2. Somebody waits for each piece of mail, so its origin and the ancestors of that are alive. Or it is
//!    the order of an errand that has ended: then the origin is alive, and has an outcome.

use std::ptr::NonNull;

use volt_sync::internal::primitive::UnsafeCell;

use crate::frame::Frame;
use crate::queue::{Closed, Queue};
use crate::task::{Task, TaskList};

pub(crate) struct Mailbox {
    queue: Queue,
    /// Mail that is not to be run yet.
    stash: UnsafeCell<TaskList>,
}

impl Mailbox {
    pub(crate) fn new() -> Self {
        Self { queue: Queue::new(), stash: UnsafeCell::new(TaskList::new()) }
    }

    /// Puts a task in. Refused when the thread has left.
    ///
    /// # Safety
    /// 1. The task is scheduled and in no queue, and invariant 2 holds for it.
    pub(crate) unsafe fn post(&self, task: NonNull<Task>) -> Result<(), Closed> {
        // SAFETY: passed on (1).
        unsafe { self.queue.push((task, task)) }.map(drop)
    }

    /// True if something has come that is not in the stash.
    pub(crate) fn has_new(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Refuses what comes from now on.
    pub(crate) fn close(&self) {
        self.queue.close();
    }

    /// Takes the oldest piece of mail whose origin `fits`. The rest waits in the stash.
    ///
    /// # Safety
    /// 1. The caller is the thread whose mail it is, and `fits` does not use it.
    pub(crate) unsafe fn take(&self, fits: impl Fn(*const Frame) -> bool) -> Option<NonNull<Task>> {
        self.stash.with_mut(|stash| {
            // SAFETY: the thread's own (1, invariant 1), and not used by the calls below.
            let stash = unsafe { &mut *stash };
            self.queue.drain_in_order(stash);
            let mut found = None;
            for _ in 0..stash.len() {
                let task = stash.pop()?;
                // SAFETY: scheduled, so alive.
                let origin = unsafe { Task::origin(task) };
                if found.is_none() && fits(origin) {
                    found = Some(task);
                } else {
                    // SAFETY: just taken out.
                    unsafe { stash.append(task) };
                }
            }
            found
        })
    }

    /// True if `take` has nothing to look at.
    ///
    /// # Safety
    /// 1. The caller is the thread whose mail it is.
    pub(crate) unsafe fn is_empty(&self) -> bool {
        // SAFETY: the thread's own (1, invariant 1).
        !self.has_new() && self.stash.with(|stash| unsafe { (*stash).is_empty() })
    }

    /// Takes everything.
    ///
    /// # Safety
    /// 1. The thread whose mail it is has ended.
    pub(crate) unsafe fn drain(&self, into: &mut TaskList) {
        self.queue.drain(into);
        self.stash.with_mut(|stash| {
            // SAFETY: the thread has ended (1, invariant 1).
            let stash = unsafe { &mut *stash };
            while let Some(task) = stash.pop() {
                // SAFETY: just taken out of the list.
                unsafe { into.append(task) };
            }
        });
    }
}
