//! The bridge from async code: work for the pool as a future.
//!
//! | State   | The cell holds | the task           | the future                 |
//! |---------|----------------|--------------------|----------------------------|
//! | QUEUED  | the closure    | to RUNNING, takes it | dropped: to CANCELLED, drops it |
//! | RUNNING | nothing        | to DONE            | waits, or is gone          |
//! | DONE    | the result     | -                  | to TAKEN, takes it         |
//! | ORPHAN  | the closure    | (was discarded)    | runs it, TAKEN             |
//! | TAKEN, CANCELLED | nothing | nothing          | -                          |
//!
//! | Edge | Release side | Acquire side | Carries | Model that fails without it |
//! |------|--------------|--------------|---------|-----------------------------|
//! | [RN1] | `Shared::publish` | `Shared::poll_result` | the result | `the_result_reaches_the_future` |
//!
//! Cost: one allocation; 2 RMWs to run, and those of the waker's slot.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::task::{Context, Poll};
use std::thread;

use volt_sync::internal::WaiterSlot;
use volt_sync::internal::primitive::{AtomicU8, UnsafeCell};

use crate::engine::Core;
use crate::payload::discard;
use crate::task::{Action, Task};

const QUEUED: u8 = 0;
const RUNNING: u8 = 1;
const DONE: u8 = 2;
const ORPHAN: u8 = 3;
const TAKEN: u8 = 4;
const CANCELLED: u8 = 5;

enum Content<F, T> {
    Empty,
    Work(F),
    Result(thread::Result<T>),
}

#[repr(C)]
struct Shared<F, T> {
    task: Task,
    state: AtomicU8,
    slot: WaiterSlot,
    content: UnsafeCell<Content<F, T>>,
}

// SAFETY: the content belongs to the task or the future, as the state says; both parts are `Send`.
unsafe impl<F: Send, T: Send> Send for Shared<F, T> {}
// SAFETY: as for the one above.
unsafe impl<F: Send, T: Send> Sync for Shared<F, T> {}

impl<F: FnOnce() -> T + Send, T: Send> Shared<F, T> {
    /// Takes what the cell holds.
    ///
    /// # Safety
    /// 1. The state gives the cell to the caller.
    unsafe fn replace(&self, content: Content<F, T>) -> Content<F, T> {
        // SAFETY: the caller's (1).
        self.content.with_mut(|cell| unsafe { std::mem::replace(&mut *cell, content) })
    }

    /// # Safety
    /// 1. `task` is the first field of a `Self` in an `Arc`, of which the task owns one count.
    unsafe fn call(task: NonNull<Task>, action: Action) {
        // SAFETY: the task's count (1).
        let this = unsafe { Arc::from_raw(task.cast::<Self>().as_ptr().cast_const()) };
        match action {
            Action::Run => this.run(),
            Action::Discard => {
                // ORD relaxed: the closure is the future's own; the wake-up carries the state.
                let orphan = this.state.compare_exchange(QUEUED, ORPHAN, Relaxed, Relaxed);
                if orphan.is_ok() {
                    discard(|| {
                        this.slot.wake();
                    });
                }
            }
        }
        // It may be the last count, and drop a result.
        discard(move || drop(this));
    }

    fn run(&self) {
        if !self.begin() {
            return;
        }
        // SAFETY: RUNNING gives the cell to the task.
        if let Content::Work(work) = unsafe { self.replace(Content::Empty) } {
            let result = catch_unwind(AssertUnwindSafe(work));
            // SAFETY: RUNNING still gives the cell to the task.
            unsafe { self.replace(Content::Result(result)) };
        }
        self.publish();
        discard(|| {
            self.slot.wake();
        });
    }

    /// True if the task may run: it was not cancelled.
    fn begin(&self) -> bool {
        // ORD relaxed: the closure came through the queue; if it was cancelled nothing is touched.
        self.state.compare_exchange(QUEUED, RUNNING, Relaxed, Relaxed).is_ok()
    }

    fn publish(&self) {
        // ORD[RN1] release: the result.
        self.state.store(DONE, Release);
    }
}

/// What the future needs of a `Shared` whatever its closure is.
trait Cell<T>: Send + Sync {
    fn slot(&self) -> &WaiterSlot;
    fn poll_result(&self) -> Option<thread::Result<T>>;
    fn cancel(&self);
}

impl<F: FnOnce() -> T + Send, T: Send> Cell<T> for Shared<F, T> {
    fn slot(&self) -> &WaiterSlot {
        &self.slot
    }

    fn poll_result(&self) -> Option<thread::Result<T>> {
        // ORD[RN1] acquire: the result.
        match self.state.load(Acquire) {
            DONE | ORPHAN => {}
            TAKEN => panic!("`Run` polled after completion"),
            _ => return None,
        }
        // ORD relaxed: the task is done with the cell.
        self.state.store(TAKEN, Relaxed);
        // SAFETY: DONE and ORPHAN give the cell to the future.
        match unsafe { self.replace(Content::Empty) } {
            Content::Result(result) => Some(result),
            Content::Work(work) => Some(catch_unwind(AssertUnwindSafe(work))),
            Content::Empty => None,
        }
    }

    fn cancel(&self) {
        // ORD relaxed: whoever takes it out of QUEUED has the cell; the task touches nothing then.
        if self.state.compare_exchange(QUEUED, CANCELLED, Relaxed, Relaxed).is_ok() {
            // SAFETY: CANCELLED gives the cell to the future.
            drop(unsafe { self.replace(Content::Empty) });
        }
    }
}

/// Work for the pool that can be awaited: returned by [`ThreadPool::run`](crate::ThreadPool::run).
///
/// Dropping it before the work has begun cancels the work: the closure is dropped at once, on the
/// dropping thread, and never runs. Once the work has begun it runs to its end, and its result is
/// dropped by whichever of the two threads is the last.
///
/// ```
/// let pool = volt_pool::ThreadPool::new();
/// let run = pool.run(|| (1..=100).sum::<u32>());
/// assert_eq!(volt_pool::block_on(run), 5050);
/// ```
#[must_use = "dropping it cancels work that has not begun"]
pub struct Run<T> {
    shared: Arc<dyn Cell<T>>,
}

impl<T> Unpin for Run<T> {}

impl<T> Future for Run<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut result = self.shared.poll_result();
        if result.is_none() {
            // SAFETY: only the future registers, and it is borrowed exclusively.
            unsafe { self.shared.slot().register(cx.waker()) };
            result = self.shared.poll_result();
        }
        match result {
            None => Poll::Pending,
            Some(Ok(value)) => Poll::Ready(value),
            Some(Err(payload)) => resume_unwind(payload),
        }
    }
}

impl<T> Drop for Run<T> {
    fn drop(&mut self) {
        self.shared.cancel();
        // The pool may keep the node for long yet.
        if self.shared.slot().is_registered() {
            drop(self.shared.slot().take());
        }
    }
}

impl<T> fmt::Debug for Run<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

/// Queues `work` and returns its future.
pub(crate) fn run<F, T>(core: &Core, work: F) -> Run<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let shared = Arc::new(Shared {
        task: Task::new(Shared::<F, T>::call),
        state: AtomicU8::new(QUEUED),
        slot: WaiterSlot::new(),
        content: UnsafeCell::new(Content::Work(work)),
    });
    let task = Arc::into_raw(shared.clone()).cast_mut().cast::<Task>();
    // SAFETY: an `Arc` is not null.
    let task = unsafe { NonNull::new_unchecked(task) };
    // SAFETY: alive: the count that was turned into the pointer.
    unsafe { Task::mark_queued(task) };
    // SAFETY: alive until it is called, in no queue, and the closure is `Send`.
    if unsafe { core.schedule(task) }.is_err() {
        // SAFETY: refused, so in no queue. The future runs it.
        unsafe { Task::call(task, Action::Discard) };
    }
    Run { shared }
}

#[cfg(all(test, volt_loom))]
mod model;
