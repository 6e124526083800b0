//! `broadcast`: a call of one function on each thread of a pool.
//!
//! Purpose: each thread gets its part by mail, and does it between two pieces of work, or while it
//! waits for something of which the broadcast is a part.
//!
//! That is not enough if two tasks broadcast: each one's thread would wait for the other's part, and
//! keep the other's from it. So a thread that waits, for whatever, also does its parts of other
//! broadcasts, whose function is called on each thread anyway. Only of those for which a thread of
//! some pool waits, like itself: a broadcast from outside can wait until this thread is free, and its
//! function may want a lock that the stack here holds.
//!
//! Rejected: only a thread that waits for a broadcast, itself or through what it waits for. That may
//! end while the part stays on the stack; who waits for what is below the part then waits for the
//! part's own broadcasts, but not through what it waits for, and did no part of these. Only if all of
//! the parts that are missing are with threads which wait for this one: it is a cycle through any
//! number of broadcasts, which one would have to look for under a lock.
//!
//! A thread takes its parts in the order in which they came. A part on top of another one keeps that
//! from its end, and may itself want a thread of another pool, for a scope in place. If it is that of
//! the outer broadcast, on top of one of the inner one, that thread has called both, and waits for the
//! inner one: they would wait for each other. In order, what is on top began later, and so each such
//! wait leads to a later broadcast, and never back.
//!
//! That is so if the thread that is wanted has itself called the broadcast on top, and has no part of
//! one on its own stack. It is not so for all trees of calls that go through two pools and back: if
//! broadcasts into both are open, a part on top may want a thread that waits, with a part on top as
//! well, for what is below. Then they wait for each other.
//!
//! Rejected: last in, first out, as the queues are.
//!
//! A thread's stack has at most one part of each broadcast that has begun and not ended.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::AcqRel;
use std::thread;

use volt_sync::internal::primitive::{AtomicUsize, UnsafeCell};

use crate::engine::Core;
use crate::frame::{Frame, Outcome};
use crate::install::wait_outside;
use crate::parking;
use crate::payload::{Payload, discard_payload};
use crate::task::{Action, Task};
use crate::worker::{Help, Worker, with_current};

/// One thread's part of a broadcast.
#[repr(C)]
struct Part<'a, F, R> {
    task: Task,
    index: usize,
    shared: &'a Shared<'a, F>,
    result: UnsafeCell<Option<thread::Result<R>>>,
}

struct Shared<'a, F> {
    frame: Frame,
    left: AtomicUsize,
    function: &'a F,
}

impl<F: Fn(usize) -> R + Sync, R: Send> Part<'_, F, R> {
    /// # Safety
    /// 1. `task` is the first field of a `Self` whose caller waits for the shared frame.
    unsafe fn call(task: NonNull<Task>, _action: Action) {
        // SAFETY: the caller waits (1).
        let this = unsafe { &*task.cast::<Self>().as_ptr() };
        this.run();
        let frame = &raw const this.shared.frame;
        // AcqRel, so that the last one passes on what all did.
        // ORD relaxed: stronger; the result is carried by the frame's outcome.
        if this.shared.left.fetch_sub(1, AcqRel) == 1 {
            // SAFETY: the last part ends it.
            unsafe { Frame::finish(frame, Outcome::Done) };
        }
    }

    fn run(&self) {
        let function = self.shared.function;
        let result = catch_unwind(AssertUnwindSafe(|| function(self.index)));
        // SAFETY: the part's own; the caller reads it after the outcome.
        self.result.with_mut(|place| unsafe { *place = Some(result) });
    }
}

/// Runs `function` on every thread of the pool.
pub(crate) fn broadcast<F, R>(core: &Core, function: &F) -> Vec<R>
where
    F: Fn(usize) -> R + Sync,
    R: Send,
{
    core.start_all();
    with_current(|worker| {
        let parent = worker.map_or(ptr::null(), Worker::current);
        let parker = worker.map_or_else(parking::mine, Worker::parker);
        let owner = worker.map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the code that runs here is a part of `parent`, which outlives this call.
        let frame = unsafe { Frame::new(parent, parker, owner) }.of_broadcast();
        // One more for this thread, until all parts are sent.
        let shared = Shared { frame, left: AtomicUsize::new(1), function };
        let mut parts: Vec<(Part<'_, F, R>, &Worker)> = core
            .workers
            .iter()
            .filter_map(|target| target.thread().map(|index| (index, target)))
            .map(|(index, target)| {
                let part = Part {
                    task: Task::within(Part::<F, R>::call, &raw const shared.frame),
                    index,
                    shared: &shared,
                    result: UnsafeCell::new(None),
                };
                (part, target)
            })
            .collect();
        parts.sort_by_key(|(part, _)| part.index);
        let mut own = None;
        for (part, target) in &parts {
            if worker.is_some_and(|worker| ptr::eq(worker, *target)) {
                own = Some(part);
                continue;
            }
            // ORD relaxed: our own count keeps it from ending; see `call`.
            shared.left.fetch_add(1, AcqRel);
            let task = NonNull::from(part).cast::<Task>();
            // SAFETY: alive until the frame's outcome.
            unsafe { Task::mark_queued(task) };
            // SAFETY: alive until it is called, in no queue, and its function is `Sync`.
            if unsafe { target.post(task) }.is_ok() {
                target.parker().unpark();
            } else {
                // The thread has left after a shutdown.
                // SAFETY: refused, so in no queue.
                unsafe { Task::call(task, Action::Run) };
            }
        }
        core.sync.post_all();
        if let Some(own) = own {
            own.run();
        }
        // ORD relaxed: stronger, so that what the parts did is seen if they all ended.
        if shared.left.fetch_sub(1, AcqRel) != 1 {
            match worker {
                Some(worker) => drop(worker.wait(&shared.frame, Help::Mail)),
                None => drop(wait_outside(core, &shared.frame, || false, || false)),
            }
        }
        collect(parts.into_iter().map(|(part, _)| part))
    })
}

/// The results, or the first panic.
fn collect<'a, F: 'a, R: 'a>(parts: impl Iterator<Item = Part<'a, F, R>>) -> Vec<R> {
    let mut results = Vec::new();
    let mut panic: Option<Payload> = None;
    for part in parts {
        match part.result.into_inner() {
            Some(Ok(result)) => results.push(result),
            Some(Err(payload)) if panic.is_none() => panic = Some(payload),
            Some(Err(payload)) => discard_payload(payload),
            None => {}
        }
    }
    if let Some(payload) = panic {
        crate::payload::discard(move || drop(results));
        resume_unwind(payload);
    }
    results
}
