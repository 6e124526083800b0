//! Calls into a pool that the caller waits for: `install`.
//!
//! A caller outside waits without helping. A caller that is a thread of *another* pool may be
//! called back: work that descends from what it waits for, and is for its own pool, comes by mail
//! to that very thread. So one chain of calls may pass through a pool as often as it likes, whatever
//! the number of its threads.
//!
//! A guest is in no pool, but may run a fork of a thread, which then waits for it. Its call into the
//! pool goes to that thread as well, since all others may wait. But whoever is free first takes it:
//! see `errand.rs`.
//!
//! That is not so for unrelated calls. If each thread of one pool waits for a call into another, and
//! each thread of that one for a call into the first, all wait for ever.
//!
//! Rejected: a thread that waits for another pool runs what is queued in its own (rayon). It would run
//! unrelated work on its stack, and deadlock where that wants a lock which the stack holds; `frame.rs`
//! says more. Rejected as well: to do so only if all threads of both pools wait. One would have to look
//! at all of them at once, and longer cycles, through three pools, would still be missed.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use volt_sync::internal::primitive::{UnsafeCell, fence};

use crate::engine::Core;
use crate::errand::Errand;
use crate::frame::{Frame, Outcome};
use crate::parking;
use crate::spin::Spin;
use crate::task::{Action, Task};
use crate::worker::{Worker, with_current};

/// A call on its caller's stack.
#[repr(C)]
struct Call<F, R> {
    task: Task,
    frame: Frame,
    function: UnsafeCell<ManuallyDrop<F>>,
    result: UnsafeCell<MaybeUninit<thread::Result<R>>>,
}

impl<F: FnOnce() -> R, R> Call<F, R> {
    /// # Safety
    /// 1. `task` is the first field of a `Self` whose caller waits for its frame.
    unsafe fn call(task: NonNull<Task>, action: Action) {
        let this = task.cast::<Self>().as_ptr();
        // SAFETY: the caller waits (1).
        let frame = unsafe { &raw const (*this).frame };
        if action == Action::Discard {
            // SAFETY: we have the call; the caller runs it itself.
            return unsafe { Frame::finish(frame, Outcome::Returned) };
        }
        // SAFETY: the caller waits (1).
        let function = unsafe { &(*this).function };
        // SAFETY: called once, and the caller does not touch it meanwhile.
        let function = function.with_mut(|f| unsafe { take(f) });
        let result = catch_unwind(AssertUnwindSafe(function));
        // SAFETY: the caller waits (1).
        let place = unsafe { &(*this).result };
        // SAFETY: the caller reads it after the outcome only.
        place.with_mut(|place| unsafe { (*place).write(result) });
        // SAFETY: we have the call.
        unsafe { Frame::finish(frame, Outcome::Done) };
    }
}

/// # Safety
/// 1. The pointer is valid and the caller's alone, and its content is not used again.
unsafe fn take<F>(function: *mut ManuallyDrop<F>) -> F {
    // SAFETY: valid and ours (1).
    let function = unsafe { &mut *function };
    // SAFETY: not used again (1).
    unsafe { ManuallyDrop::take(function) }
}

/// Runs `function` with the pool as the current one: on this thread if it is in the pool already or
/// in none (then as a guest), otherwise on a thread of the pool.
pub(crate) fn enter<F: FnOnce() -> R + Send, R: Send>(core: &Core, function: F) -> R {
    with_current(|worker| match worker {
        Some(worker) if ptr::eq(worker.core(), core) => function(),
        Some(_) => install(core, function),
        None => enter_in_place(core, function),
    })
}

/// As `enter`, for a thread that is in no pool.
pub(crate) fn enter_in_place<R>(core: &Core, function: impl FnOnce() -> R) -> R {
    // Without a record it does all by itself.
    core.as_guest(|_| function())
}

/// Runs `function` on a thread of the pool and returns its result; at once, if this is one, or was
/// called back.
pub(crate) fn install<F: FnOnce() -> R + Send, R: Send>(core: &Core, function: F) -> R {
    with_current(|worker| match worker {
        Some(worker) if ptr::eq(worker.core(), core) && !is_mere_guest(worker) => function(),
        _ => install_there(core, worker, function),
    })
}

/// True for a guest, unless what it runs was called by another pool, for which it waits: the threads
/// of its own pool may wait for that one as well, until this call returns.
fn is_mere_guest(worker: &Worker) -> bool {
    if worker.thread().is_some() {
        return false;
    }
    let mut frame = worker.current();
    // SAFETY: null, or an ancestor of the code that runs here, so alive.
    while let Some(ancestor) = unsafe { frame.as_ref() } {
        // SAFETY: null, or a worker that waits for the ancestor.
        let owner = unsafe { ancestor.owner().as_ref() };
        if owner.is_some_and(|owner| !ptr::eq(owner.core(), worker.core())) {
            return false;
        }
        frame = ancestor.parent();
    }
    true
}

#[cold]
fn install_there<F: FnOnce() -> R + Send, R: Send>(
    core: &Core,
    worker: Option<&Worker>,
    function: F,
) -> R {
    let parent = worker.map_or(ptr::null(), Worker::current);
    let parker = worker.map_or_else(parking::mine, Worker::parker);
    let owner = worker.map_or(ptr::null(), ptr::from_ref);
    let mut call = Call {
        task: Task::new(Call::<F, R>::call),
        // SAFETY: the code that runs here is a part of `parent`, which outlives this call.
        frame: unsafe { Frame::new(parent, parker, owner) },
        function: UnsafeCell::new(ManuallyDrop::new(function)),
        result: UnsafeCell::new(MaybeUninit::<thread::Result<R>>::uninit()),
    };
    // Only now does the frame have its address.
    call.task = Task::within(Call::<F, R>::call, &raw const call.frame);
    let call = &call;
    let task = NonNull::from(call).cast::<Task>();
    // SAFETY: alive until its owner has seen the outcome.
    unsafe { Task::mark_queued(task) };
    let host = worker.and_then(|worker| host_of(core, worker));
    let mut errand = None;
    let queued = match host {
        Some((host, frame)) if worker.is_some_and(|worker| ptr::eq(worker.core(), core)) => {
            // SAFETY: alive until its outcome, marked, in no queue; the closure is `Send`. This code is
            // a part of `frame`, and `end` is called below.
            errand = Some(unsafe { Errand::send(task, core, host, frame) });
            Ok(())
        }
        Some((host, frame)) => {
            // SAFETY: alive until its outcome, and in no queue.
            let posted = unsafe { host.post(task) };
            // ORD SeqCst fence: between publishing and looking for a sleeper; pairs with `Frame::sleep`.
            fence(SeqCst);
            frame.call_helper();
            posted
        }
        // SAFETY: alive until its outcome, marked, in no queue; the closure is `Send`.
        None => unsafe { core.schedule(task) },
    };
    let outcome = match (queued, worker) {
        (Err(_), _) => Outcome::Returned,
        (Ok(()), Some(worker)) => wait_foreign(core, worker, &call.frame, || false, || false),
        (Ok(()), None) => wait_outside(core, &call.frame, || false, || false),
    };
    if let Some(errand) = errand {
        errand.end();
    }
    match outcome {
        Outcome::Returned => {
            // SAFETY: returned to us, not called, and not used again.
            let function = call.function.with_mut(|f| unsafe { take(f) });
            function()
        }
        Outcome::Done => {
            // SAFETY: written before the outcome, and taken once.
            let result = call.result.with_mut(|r| unsafe { r.cast::<thread::Result<R>>().read() });
            result.unwrap_or_else(|payload| resume_unwind(payload))
        }
    }
}

/// The worker of `core` that waits, through its nearest frame, for what `worker` runs. If that is a
/// guest of `core`, a thread.
pub(crate) fn host_of<'a>(core: &Core, worker: &'a Worker) -> Option<(&'a Worker, &'a Frame)> {
    let guests = !ptr::eq(worker.core(), core);
    let mut frame = worker.current();
    // SAFETY: null, or an ancestor of the code that runs here, so alive.
    while let Some(ancestor) = unsafe { frame.as_ref() } {
        // SAFETY: null, or a worker that waits for the ancestor.
        let owner = unsafe { ancestor.owner().as_ref() };
        let can_host =
            |owner: &&Worker| ptr::eq(owner.core(), core) && (guests || owner.thread().is_some());
        if let Some(owner) = owner.filter(can_host) {
            return Some((owner, ancestor));
        }
        frame = ancestor.parent();
    }
    None
}

/// Waits on a thread that is none of a pool. It runs nothing itself, unless the pool was shut down
/// or has not a single thread.
pub(crate) fn wait_outside(
    core: &Core,
    frame: &Frame,
    has_work: impl Fn() -> bool,
    run: impl Fn() -> bool,
) -> Outcome {
    let mut spin = Spin::outside(core);
    loop {
        if let Some(outcome) = frame.outcome() {
            spin.end_outside(true);
            return outcome;
        }
        if (core.sync.is_shut_down() && run()) || core.run_unattended() {
            continue;
        }
        if !spin.once() {
            spin.end_outside(false);
            frame.sleep(|| (core.sync.is_shut_down() && has_work()) || core.is_unattended());
        }
    }
}

/// As `wait_outside`, on a thread of another pool, whether or not `core` was shut down: it does what
/// comes by mail besides.
pub(crate) fn wait_foreign(
    core: &Core,
    worker: &Worker,
    frame: &Frame,
    has_work: impl Fn() -> bool,
    run: impl Fn() -> bool,
) -> Outcome {
    loop {
        if let Some(outcome) = frame.outcome() {
            return outcome;
        }
        if run() || core.run_unattended() {
            continue;
        }
        worker.wait_once(frame, || has_work() || core.is_unattended());
    }
}
