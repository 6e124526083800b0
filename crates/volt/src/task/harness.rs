//! What happens to a task: the generic functions behind its vtable.

use std::alloc::Layout;
use std::any::Any;
use std::future::Future;
use std::mem::{ManuallyDrop, forget};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use super::cell::{Cell, Failure, Stage};
use super::error::JoinError;
use super::header::{Header, Vtable};
use super::id;
use super::memory;
use super::notified::{Notified, Schedule};
use super::state::{Completed, ToIdle, ToRunning};
use super::waker::WakerRef;

/// How many successful operations a task may do in one poll before it has to yield.
const BUDGET: u32 = 128;

/// The payload of a panic.
type Payload = Box<dyn Any + Send>;

/// The functions for tasks of `F` that `S` schedules.
pub(super) fn vtable<F: Future, S: Schedule>() -> &'static Vtable {
    const {
        &Vtable {
            run: run::<F, S>,
            cancel_notified: cancel_notified::<F, S>,
            cancel_running: cancel_running::<F, S>,
            schedule: schedule::<S>,
            take_output: take_output::<F>,
            drop_output: drop_output::<F>,
            free: free::<F>,
            type_name: std::any::type_name::<F>,
        }
    }
}

/// The task as what it is.
///
/// # Safety
/// 1. The task's future is an `F`.
/// 2. It stays alive for `'a`.
unsafe fn cell<'a, F: Future>(task: NonNull<Header>) -> &'a Cell<F> {
    // SAFETY: `Cell` starts with its header; obligations 1 and 2.
    unsafe { task.cast().as_ref() }
}

/// Polls the task. `Vtable::run`.
///
/// # Safety
/// 1. `F` and `S` are the task's.
/// 2. The caller gives the task's `Notified` away.
unsafe fn run<F: Future, S: Schedule>(task: NonNull<Header>) {
    // SAFETY: obligation 1; the `Notified`'s reference is the runner's until the end.
    let cell = unsafe { cell::<F>(task) };
    match cell.header.state.to_running() {
        ToRunning::Poll => {}
        // SAFETY: obligation 1; we are the runner.
        ToRunning::Cancel => return unsafe { cancel::<F, S>(task, true) },
    }
    let _entered = id::enter(cell.header.id());
    // SAFETY: the runner's reference lives longer than `waker`, except if `poll` completes the
    // task below: by then `waker` is not used any more.
    let waker = unsafe { WakerRef::new(task) };
    let (polled, woken) = id::while_polled(task, || {
        catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: we are the runner of a task whose future has not completed.
            unsafe { poll(cell, &mut Context::from_waker(&waker)) }
        }))
    });
    let result = match polled {
        // It woke itself: kept. A cancellation is seen when it runs again.
        // SAFETY: obligation 1; our reference, and RUNNING, are now the `Notified`'s.
        Ok(Poll::Pending) if woken => return unsafe { yield_now::<S>(task) },
        Ok(Poll::Pending) => {
            let idle = match cell.header.state.to_idle() {
                // SAFETY: obligation 1; we are the runner of a task that was never linked.
                ToIdle::Unlinked => unsafe { S::link(cell.header.scheduler.cast(), task) },
                other => other,
            };
            return match idle {
                ToIdle::Idle => {}
                ToIdle::Unlinked => unreachable!("`link` has decided"),
                // SAFETY: obligation 1; our reference is now the `Notified`'s.
                ToIdle::Notified => unsafe { yield_now::<S>(task) },
                // SAFETY: obligation 1; we still are the runner.
                ToIdle::Cancel => unsafe { cancel::<F, S>(task, true) },
            };
        }
        Ok(Poll::Ready(output)) => {
            // SAFETY: we are the runner, and drop the future once.
            match unsafe { drop_future(cell) } {
                None => Ok(output),
                Some(payload) => {
                    swallow(|| drop(output));
                    Err(Some(payload))
                }
            }
        }
        Err(payload) => {
            // SAFETY: we are the runner, and drop the future once.
            if let Some(second) = unsafe { drop_future(cell) } {
                swallow(|| drop(second));
            }
            Err(Some(payload))
        }
    };
    // SAFETY: obligation 1; we are the runner and the future is gone.
    unsafe { finish::<F, S>(task, result, true) };
}

/// Polls the future.
///
/// # Safety
/// The caller is the task's runner, and the future has not been dropped.
#[inline]
unsafe fn poll<F: Future>(cell: &Cell<F>, cx: &mut Context<'_>) -> Poll<F::Output> {
    volt_sync::coop::with_budget(Some(BUDGET), || {
        cell.stage.with_mut(|stage| {
            // SAFETY: the runner has the stage to itself.
            let stage = unsafe { &mut *stage };
            // SAFETY: the future is there.
            let future: &mut F = unsafe { &mut stage.future };
            // SAFETY: it does not move before it is dropped: tasks live on the heap.
            unsafe { Pin::new_unchecked(future) }.poll(cx)
        })
    })
}

/// Drops the future; returns the payload if that panics.
///
/// # Safety
/// The caller is the task's runner, and the future has not been dropped.
#[inline]
unsafe fn drop_future<F: Future>(cell: &Cell<F>) -> Option<Payload> {
    if !std::mem::needs_drop::<F>() {
        return None;
    }
    catch_unwind(AssertUnwindSafe(|| {
        cell.stage.with_mut(|stage| {
            // SAFETY: the runner has the stage to itself.
            let stage = unsafe { &mut *stage };
            // SAFETY: the future is there, and nobody uses it afterwards.
            unsafe { ManuallyDrop::drop(&mut stage.future) };
        });
    }))
    .err()
}

/// Drops the future of a task that was notified. `Vtable::cancel_notified`.
///
/// # Safety
/// As of [`run`].
unsafe fn cancel_notified<F: Future, S: Schedule>(task: NonNull<Header>) {
    // SAFETY: obligation 1 of `run`; the `Notified`'s reference is the runner's.
    let cell = unsafe { cell::<F>(task) };
    let _either_way = cell.header.state.to_running();
    // SAFETY: the same obligation; we are the runner.
    unsafe { cancel::<F, S>(task, true) };
}

/// Drops the future of a task that shutdown made RUNNING. `Vtable::cancel_running`.
///
/// # Safety
/// 1. `F` and `S` are the task's.
/// 2. The caller is the runner, and has taken the task out of its owned list.
unsafe fn cancel_running<F: Future, S: Schedule>(task: NonNull<Header>) {
    // SAFETY: the same obligations.
    unsafe { cancel::<F, S>(task, false) };
}

/// Drops the future and completes the task as cancelled.
///
/// # Safety
/// 1. `F` and `S` are the task's.
/// 2. The caller is the runner; `owned` is false if the task has left its owned list.
#[cold]
unsafe fn cancel<F: Future, S: Schedule>(task: NonNull<Header>, owned: bool) {
    // SAFETY: obligation 1; the runner's reference.
    let cell = unsafe { cell::<F>(task) };
    let _entered = id::enter(cell.header.id());
    // SAFETY: the runner of a task that is not complete finds the future.
    let failure = unsafe { drop_future(cell) };
    // SAFETY: obligations 1 and 2; the future is gone.
    unsafe { finish::<F, S>(task, Err(failure), owned) };
}

/// Completes the task and gives up the runner's reference.
///
/// # Safety
/// 1. `F` and `S` are the task's.
/// 2. The caller is the runner; `owned` is false if the task has left its owned list.
/// 3. The future has been dropped.
#[inline(always)]
unsafe fn finish<F: Future, S: Schedule>(
    task: NonNull<Header>,
    result: Result<F::Output, Option<Payload>>,
    owned: bool,
) {
    // SAFETY: obligation 1; the runner's reference.
    let cell = unsafe { cell::<F>(task) };
    let state = &cell.header.state;
    let failed = result.is_err();
    let stored = state.peek().is_join_interested();
    if stored {
        cell.stage.with_mut(|stage| {
            let content = match result {
                Ok(output) => Stage { output: ManuallyDrop::new(output) },
                Err(payload) => Stage { failure: ManuallyDrop::new(payload.map(Box::new)) },
            };
            // SAFETY: the runner has the stage to itself, and it is empty (obligation 3).
            unsafe { stage.write(content) };
        });
    } else {
        swallow(|| drop(result));
    }
    // SAFETY: obligation 1; the scheduler is alive until this has been called (invariant 4 of `task.rs`).
    let unlinked = owned && unsafe { S::release(cell.header.scheduler.cast(), task) };
    // The list's reference is ours now.
    let refs = 1 + u32::from(unlinked);
    match state.complete(refs, stored, failed) {
        Completed::Done => return,
        // SAFETY: our references were the last.
        Completed::Last => return unsafe { free::<F>(task) },
        Completed::WakeJoin => {
            // SAFETY: JOIN_WAKER was set when the task became COMPLETE: the waker is ours.
            let waker = unsafe { cell.header.take_join_waker() };
            swallow(|| waker.wake());
        }
        // SAFETY: there was an output and no join handle when the task became COMPLETE.
        Completed::DropOutput => swallow(|| unsafe { drop_output::<F>(task) }),
    }
    // SAFETY: the references are ours, and `cell` is not used any more.
    unsafe { Header::release(task, refs) };
}

/// Hands the `Notified` to the scheduler. `Vtable::schedule`.
///
/// # Safety
/// 1. `S` is the task's scheduler's type.
/// 2. The caller has the task's `Notified` and gives it away.
unsafe fn schedule<S: Schedule>(task: NonNull<Header>) {
    // SAFETY: the `Notified` keeps the task alive.
    let scheduler = unsafe { task.as_ref() }.scheduler.cast();
    // SAFETY: the caller gives its `Notified` away (obligation 2).
    let notified = unsafe { Notified::from_raw(task) };
    // SAFETY: obligation 1; it is alive while a `Notified` exists (invariant 4 of `task.rs`).
    unsafe { S::schedule(scheduler, notified) };
}

/// Hands the `Notified` of a task that was woken while it ran to the scheduler.
///
/// # Safety
/// As of [`schedule`].
unsafe fn yield_now<S: Schedule>(task: NonNull<Header>) {
    // SAFETY: the `Notified` keeps the task alive.
    let scheduler = unsafe { task.as_ref() }.scheduler.cast();
    // SAFETY: the caller gives its `Notified` away (obligation 2).
    let notified = unsafe { Notified::from_raw(task) };
    // SAFETY: obligation 1; it is alive while a `Notified` exists (invariant 4 of `task.rs`).
    unsafe { S::yield_now(scheduler, notified) };
}

/// Moves the output to `place`. `Vtable::take_output`.
///
/// # Safety
/// 1. `F` is the task's.
/// 2. The task is COMPLETE, and the caller has its join handle and asks once.
/// 3. `place` is that of a `Result<F::Output, JoinError>`.
unsafe fn take_output<F: Future>(task: NonNull<Header>, place: NonNull<()>) {
    // SAFETY: obligation 1; the join handle's reference.
    let cell = unsafe { cell::<F>(task) };
    let result = if cell.header.state.load().is_failed() {
        // SAFETY: obligation 2: the failure is the join handle's.
        let failure = cell.stage.with_mut(|stage| unsafe { stage.cast::<Failure>().read() });
        let id = cell.header.id();
        Err(match failure {
            None => JoinError::cancelled(id),
            Some(payload) => JoinError::panicked(id, *payload),
        })
    } else {
        // SAFETY: obligation 2: the output is the join handle's.
        Ok(cell.stage.with_mut(|stage| unsafe { stage.cast::<F::Output>().read() }))
    };
    // SAFETY: the place is that of such a result (obligation 3).
    unsafe { place.cast::<Result<F::Output, JoinError>>().write(result) };
}

/// Drops the output. `Vtable::drop_output`. Panics if the output's drop does.
///
/// # Safety
/// 1. `F` is the task's.
/// 2. The task is COMPLETE, and the output is the caller's, who asks once.
unsafe fn drop_output<F: Future>(task: NonNull<Header>) {
    // SAFETY: obligation 1; the caller's reference.
    let cell = unsafe { cell::<F>(task) };
    let _entered = id::enter(cell.header.id());
    if cell.header.state.load().is_failed() {
        // SAFETY: it is the caller's, who asks once (obligation 2).
        cell.stage.with_mut(|stage| unsafe { stage.cast::<Failure>().drop_in_place() });
    } else {
        // SAFETY: it is the caller's, who asks once (obligation 2).
        cell.stage.with_mut(|stage| unsafe { stage.cast::<F::Output>().drop_in_place() });
    }
}

/// Frees the memory. `Vtable::free`.
///
/// # Safety
/// 1. `F` is the task's.
/// 2. No reference is left. The task is COMPLETE then (invariant 1 of `task.rs`), its output gone.
unsafe fn free<F: Future>(task: NonNull<Header>) {
    #[cfg(volt_loom)]
    {
        // SAFETY: obligations 1 and 2. For the model: every other access came before this.
        let cell = unsafe { cell::<F>(task) };
        cell.header.queue_next.with_mut(|_| {});
        cell.header.owned.with_mut(|_| {});
        cell.header.join_waker.with_mut(|_| {});
        cell.stage.with_mut(|_| {});
    }
    // SAFETY: nobody uses it any more (obligation 2).
    unsafe { task.cast::<Cell<F>>().drop_in_place() };
    // SAFETY: it was allocated with this layout (obligation 1), and nobody is left (2).
    unsafe { memory::free(task.cast(), Layout::new::<Cell<F>>()) };
}

/// Runs user code whose panic nobody listens to. (The panic hook has reported it.)
pub(super) fn swallow(f: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
        // A payload may panic in its own drop, and so may that panic's: end it here.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            forget(second);
        }
    }
}
