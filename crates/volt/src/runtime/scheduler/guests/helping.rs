//! The blocking `join`: it runs other tasks meanwhile, on top of what it was called in.
//!
//! Hazards, which are in the documentation of the call: see [`guest`](super::guest).

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering::Relaxed;

use super::below;
use super::guest::{join_outside, poll_once, stack_is_used_up};
use crate::runtime::scheduler::lifecycle::cancel;
use crate::runtime::scheduler::lifecycle::registry;
use crate::runtime::scheduler::pacing::quick;
use crate::runtime::scheduler::pacing::round::Before;
use crate::runtime::scheduler::parking::park::Park;
use crate::runtime::{context, level};
use crate::task::{JoinError, JoinHandle, is_driven_below};

/// Blocks the thread until the task of `handle` has completed. A member of a runtime runs tasks
/// meanwhile, on top of the one that it is running, and that very task first if it has it. A thread
/// that is no member becomes a guest of the task's runtime.
///
/// # Panics
/// If such calls are nested too deeply on the thread of a current-thread runtime; or made by a waker
/// that this calls for an event or a timer, or the only worker of a runtime: nobody else could run what they wait for. If the task is further
/// down on this thread's stack, or of a `LocalSet` that is driven there.
#[track_caller]
pub(crate) fn block_on_helping<T>(handle: JoinHandle<T>) -> Result<T, JoinError> {
    if handle.is_finished() {
        // Perhaps by a waker that its completion calls, where it is the current task still.
        return help_until_done(handle);
    }
    context::assert_no_hook();
    assert!(
        !is_driven_below(handle.scheduler()),
        "a blocking join of task {}, of a `LocalSet` that this thread drives and that goes on only when this has \
         returned, would wait for ever: use `.await`",
        handle.id()
    );
    below::waiting_for(handle.id(), || help_until_done(handle))
}

fn help_until_done<T>(handle: JoinHandle<T>) -> Result<T, JoinError> {
    // The runtime that it is beside goes on meanwhile: what it waits for may wait for a task of that.
    let runtime = context::beside_runtime().or_else(|| {
        let outside = !context::in_async();
        outside.then(|| registry::find(handle.scheduler())).flatten()
    });
    if let Some(runtime) = runtime {
        return join_outside(&runtime, handle);
    }
    let mut handle = pin!(handle);
    loop {
        if let Some(output) = help_with(handle.as_mut()).or_else(|| wait_beside(handle.as_mut())) {
            return output;
        }
    }
}

/// Waits until the task has completed, on a thread that is no member; or until it has become one, since the place
/// of a current-thread runtime was free. With too little stack to run tasks on, it leaves that to others.
fn wait_beside<T>(mut handle: Pin<&mut JoinHandle<T>>) -> Option<Result<T, JoinError>> {
    context::current_guest(|guest| match guest {
        Some(guest) if !stack_is_used_up() => context::with_place(|park, waker| {
            let mut poll = || poll_once(handle.as_mut(), waker);
            poll().or_else(|| guest.wait_without_place(park, &mut poll))
        }),
        _ => Some(context::outside_async(|| wait_only(handle))),
    })
}

/// Runs tasks until that one has completed, on a member. None if this thread is none, or no longer.
#[track_caller]
fn help_with<T>(mut handle: Pin<&mut JoinHandle<T>>) -> Option<Result<T, JoinError>> {
    let target = handle.target();
    context::current_member(|worker| {
        let worker = worker?;
        let waker = Park::waker(worker.park);
        if let Some(output) = poll_once(handle.as_mut(), &waker) {
            return Some(output);
        }
        // In a waker that the driver calls, what would be run here could turn the driver once more.
        let in_turn = worker.turns_driver();
        if in_turn || stack_is_used_up() {
            let alone = worker.shared.is_current_thread();
            assert!(in_turn || !alone, "blocking joins are nested too deeply: use `.await`");
            if !(in_turn && alone) && worker.hand_over() {
                return None;
            }
            let only = worker.shared.workers <= 1;
            assert!(
                !(in_turn && only),
                "a waker cannot block in a join: nobody would run the task"
            );
            return Some(context::as_canceller(worker.shared, || wait_only(handle.as_mut())));
        }
        // ORD relaxed: this member wrote it.
        let (kind, parks) = (worker.slot.kind.load(Relaxed), worker.slot.metrics.parks.get());
        // Whoever blocks in a join would rather help with anything than wait for nothing: with what it waits
        // for to begin with, and from wherever, as the workers may all be blocked.
        let choosy = worker.choosy.replace(worker.unfit.get());
        let shy = worker.shy.replace(worker.unfit.get());
        let waits_outside = worker.waits_outside.replace(false);
        let root_kind = worker.root_kind.replace(quick::OF_NO_TASK);
        let runs = target.filter(|_| !worker.unfit.get());
        let output = level::above(|below| {
            if let Some(task) = runs.and_then(|target| worker.take_own(target)) {
                worker.run_now(task);
            }
            let mut poll = || below.call(|| poll_once(handle.as_mut(), &waker));
            let output = worker.run_until(&mut poll, Before::Nothing);
            let cancels = output.is_none() && !worker.handed_over.get();
            if cancels { Some(worker.cancel_until(&mut poll)) } else { output }
        });
        // The task below goes on, and may take long.
        worker.flush_yielded(None);
        worker.share_ring();
        if !worker.handed_over.get() {
            // ORD relaxed: a hint.
            worker.slot.kind.store(kind, Relaxed);
            worker.run.poll_goes_on();
            if worker.slot.metrics.parks.get() != parks {
                // A poll that has slept is not a quick one.
                worker.shared.is_not_quick(kind);
            }
        }
        worker.choosy.set(choosy);
        worker.shy.set(shy);
        worker.waits_outside.set(waits_outside);
        worker.root_kind.set(root_kind);
        output
    })
}

/// Waits for `future` without running anything else.
fn wait_only<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    context::with_place(|park, waker| {
        let mut poll = || poll_once(future.as_mut(), waker);
        if let Some(output) = poll() {
            return output;
        }
        loop {
            if let Some(output) = cancel::wait(park, &mut poll) {
                return output;
            }
        }
    })
}
