//! What this thread polls: a wake-up of it, and a reference to it, that need no atomic operation.
//!
//! Purpose: a future that stops waiting drops its waker, and the next one in the same poll clones the task's waker again: a
//! time limit around each of many operations, say. Each of the two would be a read-modify-write of the state word. So a
//! reference that is dropped is kept for a clone, until the poll ends. A wake-up of the polled task is noted, and seen when the poll returns.
//!
//! Rejected: lending the runner's own reference to the first clone, while the owned list has another. It saves an
//! operation in each poll that waits, a nanosecond, and costs two where polls complete.
//!
//! State: one word of the thread: the address of the polled task, [`WOKEN`] if it has woken itself, and [`SPARE`] if
//! there is such a reference.
//!
//! Invariants:
//! 1. The poll that is on top of this thread's stack is the one that is noted here: one inside of it puts it back.
//! 2. A spare reference is counted in the state word, and belongs to the runner.
//!
//! Cost: a thread-local and a comparison for each clone, wake-up by reference and drop of a task's waker.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::ptr::NonNull;

use super::header::Header;

const WOKEN: usize = 1 << 0;
const SPARE: usize = 1 << 1;
const FLAGS: usize = WOKEN | SPARE;

const _: () = assert!(align_of::<Header>() > FLAGS);

volt_sync::internal::primitive::const_thread_local! {
    static POLLED: Cell<usize> = Cell::new(0);
}

/// What has happened to a task while it was polled, apart from what its state word tells.
#[derive(Clone, Copy)]
pub(super) struct Seen(usize);

impl Seen {
    /// It woke itself.
    #[inline]
    pub(super) fn woken(self) -> bool {
        self.0 & WOKEN != 0
    }

    /// A reference to it is left over, which is the caller's.
    #[inline]
    pub(super) fn spare(self) -> bool {
        self.0 & SPARE != 0
    }
}

/// Calls `poll`, which must not panic, on this thread and for `task`.
#[inline]
pub(super) fn while_polled<R>(task: NonNull<Header>, poll: impl FnOnce() -> R) -> (R, Seen) {
    let address = task.addr().get();
    // An error, here and below, means that the thread is ending: all is done by the state word then.
    let outer = POLLED.try_with(|polled| polled.replace(address)).unwrap_or_default();
    let result = poll();
    let seen = POLLED.try_with(|polled| polled.replace(outer)).unwrap_or(address);
    (result, Seen(seen))
}

/// Notes a wake-up of `task`, if that is what this thread polls.
#[inline]
pub(super) fn wake(task: NonNull<Header>) -> bool {
    let noted = POLLED.try_with(|polled| {
        let now = polled.get();
        let is_polled = now & !FLAGS == task.addr().get();
        if is_polled {
            polled.set(now | WOKEN);
        }
        is_polled
    });
    noted.unwrap_or(false)
}

/// Keeps the reference of a waker of `task` that is dropped, if that is what this thread polls and there is none yet.
#[inline]
pub(super) fn keep(task: NonNull<Header>) -> bool {
    let address = task.addr().get();
    change(address, address | SPARE)
}

/// Takes that reference, for a new waker of `task`, if that is what this thread polls and there is one.
#[inline]
pub(super) fn take(task: NonNull<Header>) -> bool {
    let address = task.addr().get();
    change(address | SPARE, address)
}

/// Replaces `from` by `to`. (Once the task has woken itself, that is not worth a second comparison.)
#[inline]
fn change(from: usize, to: usize) -> bool {
    let changed = POLLED.try_with(|polled| {
        let is_so = polled.get() == from;
        if is_so {
            polled.set(to);
        }
        is_so
    });
    changed.unwrap_or(false)
}
