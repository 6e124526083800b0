//! A blocking closure as a task: it has the same handle, and one allocation.

use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use crate::task::{Header, JoinHandle, Notified, Schedule, unowned};

/// Run the closure even at shutdown.
const MANDATORY: u8 = 1;

/// The closure as a future that is ready at its first poll.
struct Blocking<F>(Option<F>);

impl<F> Unpin for Blocking<F> {}

impl<F: FnOnce() -> R, R> Future for Blocking<F> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<R> {
        let closure = self.0.take().expect("a blocking closure is polled once");
        // A closure may wait for as much as it likes: no budget.
        Poll::Ready(volt_sync::coop::with_budget(None, closure))
    }
}

/// The scheduler of tasks that are never scheduled again.
struct Never;

// SAFETY:
// 1. The tasks are unowned, and `release` returns false.
// 2. It is nothing: a dangling pointer to it is as good as any.
unsafe impl Schedule for Never {
    unsafe fn schedule(_this: NonNull<Self>, _task: Notified) {
        // A task is scheduled when it is woken while it is idle; these are notified, running, or
        // complete.
        unreachable!("a blocking closure is never idle")
    }

    unsafe fn release(_this: NonNull<Self>, _task: NonNull<Header>) -> bool {
        false
    }
}

/// Makes a task of `closure`.
pub(super) fn new<F, R>(closure: F, mandatory: bool) -> (Notified, JoinHandle<R>)
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let mark = if mandatory { MANDATORY } else { 0 };
    // SAFETY: `Never` is a type without content, never accessed; its `release` returns false.
    unsafe { unowned(Blocking(Some(closure)), NonNull::<Never>::dangling(), mark) }
}

/// True if the task is to be run even at shutdown.
pub(super) fn is_mandatory(task: &Notified) -> bool {
    task.mark() == MANDATORY
}
