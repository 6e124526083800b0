//! The tasks that are further down on this thread's stack, in a blocking `join`.
//!
//! Purpose: other tasks are polled on top of such a one, and it goes on only when they have returned. A join
//! of it among them would wait for ever, and is refused by a panic instead.
//!
//! Not seen: a task that blocks otherwise (a `block_on` in `block_in_place`), and one that is awaited, on top
//! of this, by what is joined.
//!
//! Invariant: a frame is in the list from when it is made until it is dropped, in the reverse order, on one
//! thread.
//!
//! Cost: no allocation; a walk through the joins on the stack, for each join.

use std::cell::Cell;
use std::ptr;

use crate::task::{self, Id};

volt_sync::internal::primitive::const_thread_local! {
    static TOP: Cell<*const Frame> = Cell::new(ptr::null());
}

/// A blocking join.
struct Frame {
    /// Who joins, if it is a task.
    task: Option<Id>,
    outer: *const Frame,
}

/// Calls `join`, which waits for `target` and runs other tasks meanwhile.
///
/// # Panics
/// If `target` can only go on when this has returned.
#[track_caller]
pub(crate) fn waiting_for<R>(target: Id, join: impl FnOnce() -> R) -> R {
    struct Restore(*const Frame);
    impl Drop for Restore {
        fn drop(&mut self) {
            TOP.with(|top| top.set(self.0));
        }
    }
    let outer = TOP.with(Cell::get);
    let frame = Frame { task: task::try_id(), outer };
    assert!(
        !frame.has(target),
        "a blocking join of task {target}, which is further down on this thread's stack and goes on only when \
         this has returned, would wait for ever: use `.await`"
    );
    TOP.with(|top| top.set(&raw const frame));
    let _restore = Restore(outer);
    join()
}

impl Frame {
    /// True if this is a join by `task`, or one below.
    fn has(&self, task: Id) -> bool {
        let mut next = ptr::from_ref(self);
        // SAFETY: the frames below are on this stack and in use, by the invariant.
        while let Some(frame) = unsafe { next.as_ref() } {
            if frame.task == Some(task) {
                return true;
            }
            next = frame.outer;
        }
        false
    }
}
