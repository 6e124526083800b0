//! Scopes: tasks that borrow, because their scope waits for them.
//!
//! Purpose: a scope has a queue of its own, from which its owner helps itself while it waits, and
//! nothing else. The pool's queues hold only a *ticket* for the scope; whoever runs it takes a chunk
//! of the scope's tasks. So a scope with many tasks costs the pool's queues and its sleepers little,
//! and the owner never meets unrelated tasks.
//!
//! Rejected: the tasks themselves in the pool's queues, where the owner would have to search for
//! them among unrelated ones, oldest first.
//!
//! Invariants:
//! 1. `pending` is BIAS plus the tasks that are not finished, less those that the owner counted in
//!    `local`; the owner settles both when the body has ended. It is zero only once, at the end.
//! 2. The state is in an `Arc`: the owner holds one, a queued ticket another. The ticket may be run
//!    long after the scope's end, and finds nothing.
//! 3. If the queue is not empty, a ticket is queued, or a consumer is at work, or the owner is.
//!    Whoever keeps more of a chunk than the task that it runs has told somebody of it.
//! 4. Everything that a task borrows outlives the scope; the state's frame outlives its tasks.
//!
//! | Edge | Release side | Acquire side | Carries | Model that fails without it |
//! |------|--------------|--------------|---------|-----------------------------|
//! | [SC1] | `State::announce` | `State::ticket_called` | the tasks pushed before a ticket that was queued already | `a_ticket_in_flight_finds_the_task` |
//! | [SC2] | `State::finished` | `State::settle`, the last `State::finished` | what the tasks did, a kept panic too | `the_scope_ends_after_all_of_its_tasks` |
//! | [SC3] | `State::order_called` | `State::has_unordered` | the link of the order, which is used again | `a_host_runs_the_tasks_of_an_owner_elsewhere` |
//!
//! Progress: whoever pushes into an empty queue makes sure that somebody comes: a thread of the pool,
//! to which the ticket goes, or, if none is idle, the owner, who is called. After a shutdown the ticket
//! may stay where it is: the idle threads leave, also one that was woken for it just before, and the
//! spawning thread leaves without a look at its ring. So then nobody counts as idle, and the shutdown
//! itself wakes all owners, once it has set its flag. The spawner has a fence between its push and its
//! look at the flag, the shutdown one between the flag and the wake-ups, an owner one between the
//! announcement of its sleep and its last look at the queue.
//! * The spawner does not see the flag. Then its fence is before that of the shutdown, and the owner,
//!   when it is woken, sees the task. If the shutdown misses an owner, since that one comes only now,
//!   the owner's fence is the later one as well, and its last look sees the task.
//! * The spawner sees it. Then it calls the owner, who sees the task, or is seen to sleep.
//!
//! Cost: a spawn is an allocation and 1 RMW on the owner's thread (2 elsewhere), a task another half
//! RMW to take and 1 to take it out of the rest of its chunk; a chunk 2 fences, and perhaps a wake-up.

use std::fmt;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use volt_sync::internal::primitive::{AtomicBool, AtomicPtr, AtomicUsize, fence};

use crate::engine::Core;
use crate::frame::{Frame, Outcome};
use crate::install::{host_of, wait_foreign, wait_outside};
use crate::parking;
use crate::payload::{Payload, discard_payload};
use crate::queue::Queue;
use crate::task::{Action, Task, TaskList};
use crate::worker::{self, Help, Worker, with_current};

/// How many tasks are taken at once.
const CHUNK: usize = 16;
/// More than a scope can have tasks.
const BIAS: usize = 1 << (usize::BITS - 2);
/// `local` when the body has ended.
const SETTLED: usize = usize::MAX;

/// What a scope's owner, its tasks and its ticket share.
#[repr(C)]
pub(crate) struct State {
    frame: Frame,
    ticket: Task,
    ticket_queued: AtomicBool,
    /// See `State::order`.
    order: Task,
    ordered: AtomicBool,
    queue: Queue,
    pending: AtomicUsize,
    /// Tasks that the owner's thread has spawned during the body; only that thread uses it.
    local: AtomicUsize,
    panic: AtomicPtr<Payload>,
    core: *const Core,
    /// The state itself, as the `Arc` has it: a pointer that may reach the counts beside it.
    own: *const Self,
}

// SAFETY: all fields are atomic or constant; the core outlives the scope, which borrows its pool or
// runs on one of its threads, and is not used by late tickets.
unsafe impl Send for State {}
// SAFETY: as for the one above.
unsafe impl Sync for State {}

impl State {
    /// # Safety
    /// 1. The caller waits for the scope, and `core` lives until then.
    unsafe fn new(core: &Core, owner: Option<&Worker>) -> Arc<Self> {
        let parent = owner.map_or(ptr::null(), Worker::current);
        let parker = owner.map_or_else(parking::mine, Worker::parker);
        let owner = owner.map_or(ptr::null(), ptr::from_ref);
        let mut state = Arc::new(Self {
            // SAFETY: the code that the owner runs is a part of `parent`, which outlives it.
            frame: unsafe { Frame::new(parent, parker, owner) },
            ticket: Task::new(Self::ticket_called),
            ticket_queued: AtomicBool::new(false),
            order: Task::new(Self::order_called),
            ordered: AtomicBool::new(false),
            queue: Queue::new(),
            pending: AtomicUsize::new(BIAS),
            local: AtomicUsize::new(0),
            panic: AtomicPtr::new(ptr::null_mut()),
            core,
            own: ptr::null(),
        });
        let own = Arc::as_ptr(&state);
        if let Some(state) = Arc::get_mut(&mut state) {
            state.own = own;
            // SAFETY: a field of the state, in its place for good.
            let frame = unsafe { &raw const (*own).frame };
            state.order = Task::within(Self::order_called, frame);
        }
        state
    }

    /// The frame, as tasks refer to it.
    fn frame(&self) -> *const Frame {
        // SAFETY: `own` is this very state.
        unsafe { &raw const (*self.own).frame }
    }

    /// The scope of a task.
    ///
    /// # Safety
    /// 1. `task` is a task of a scope, not finished, and the caller has it.
    unsafe fn of(task: NonNull<Task>) -> Arc<Self> {
        // SAFETY: alive (1); the frame is the first field of its state.
        let state = unsafe { Task::origin(task) }.cast::<Self>();
        // SAFETY: the state is in an `Arc`, which the owner holds until the task is finished.
        unsafe { Arc::increment_strong_count(state) };
        // SAFETY: the count that was just added.
        unsafe { Arc::from_raw(state) }
    }

    /// Counts a task.
    #[inline]
    fn count(&self) {
        let owner = self.frame.owner();
        if !owner.is_null() && ptr::eq(owner, worker::current()) {
            // ORD relaxed: only this thread uses it.
            let local = self.local.load(Relaxed);
            if local != SETTLED {
                // ORD relaxed: as above.
                self.local.store(local + 1, Relaxed);
                return;
            }
        }
        // ORD relaxed: the spawning code is itself counted, so the count cannot be zero.
        self.pending.fetch_add(1, Relaxed);
    }

    /// Counts `tasks` as ended, and ends the scope with the last one.
    ///
    /// # Safety
    /// 1. The caller holds the state otherwise than by the tasks.
    unsafe fn finished(&self, tasks: usize) {
        // ORD[SC2] release: what the tasks did.
        // ORD[SC2] acquire: what the others did, for the owner.
        if self.pending.fetch_sub(tasks, AcqRel) == tasks {
            // SAFETY: the last one finishes it, once (invariant 1).
            unsafe { Frame::finish(&raw const self.frame, Outcome::Done) };
        }
    }

    /// The body has ended: true if all tasks have as well.
    fn settle(&self) -> bool {
        // ORD relaxed: only this thread uses it.
        let local = self.local.load(Relaxed);
        // ORD relaxed: as above.
        self.local.store(SETTLED, Relaxed);
        let change = local.wrapping_sub(BIAS);
        // ORD[SC2] acquire: what the tasks did.
        self.pending.fetch_add(change, AcqRel).wrapping_add(change) == 0
    }

    pub(crate) fn has_tasks(&self) -> bool {
        self.queue.is_waiting()
    }

    /// Puts a task into the scope's queue.
    ///
    /// # Safety
    /// 1. The chain's tasks are this scope's, counted, and in no queue. The caller keeps the state
    ///    alive.
    #[inline]
    unsafe fn push(this: *const Self, chain: (NonNull<Task>, NonNull<Task>)) {
        // SAFETY: alive, as obligation 1 says.
        let state = unsafe { &*this };
        // SAFETY: in no queue (1). A scope's queue is never closed.
        if let Ok(true) = unsafe { state.queue.push(chain) } {
            // SAFETY: alive, as obligation 1 says.
            unsafe { Self::announce(this) };
        }
    }

    /// Queues the ticket, unless it is queued, and wakes the owner if nobody else may come.
    ///
    /// # Safety
    /// 1. The caller keeps the state alive, and its scope has unfinished tasks.
    unsafe fn announce(this: *const Self) {
        // SAFETY: alive, as obligation 1 says.
        let state = unsafe { &*this };
        // SAFETY: the scope has not ended (1), so its pool has not.
        let core = unsafe { &*state.core };
        // Before the notification of the ticket, which may be what one is woken for.
        let is_one_free = core.sync.has_free_idle();
        // ORD[SC1] release: the pushed tasks, for the ticket that is queued already.
        if !state.ticket_queued.swap(true, AcqRel) {
            // SAFETY: in an `Arc` (invariant 2).
            unsafe { Arc::increment_strong_count(this) };
            // SAFETY: alive, as obligation 1 says.
            let ticket = unsafe { &raw const (*this).ticket };
            // SAFETY: a field is not at address zero.
            let ticket = unsafe { NonNull::new_unchecked(ticket.cast_mut()) };
            // SAFETY: alive, as obligation 1 says.
            unsafe { Task::mark_queued(ticket) };
            // SAFETY: the count above keeps the ticket alive until it is called.
            if unsafe { core.schedule(ticket) }.is_err() {
                // The pool was shut down: the owner does it all.
                // SAFETY: refused, so in no queue.
                unsafe { Task::call(ticket, Action::Discard) };
            }
        }
        // ORD SeqCst fence: between the push and the looks at the flag of a shutdown and at the owner's
        // sleep; pairs with `Core::announce_end` and `Frame::sleep`. See Progress.
        fence(SeqCst);
        if !is_one_free || !core.sync.has_idle() {
            state.frame.call_helper();
        }
    }

    /// The ticket's function.
    ///
    /// # Safety
    /// 1. `ticket` is the ticket of a state in an `Arc`, of which it owns one count.
    unsafe fn ticket_called(ticket: NonNull<Task>, action: Action) {
        // SAFETY: the ticket is this field of a state (1).
        let this = unsafe { ticket.as_ptr().byte_sub(offset_of!(Self, ticket)) }.cast::<Self>();
        // SAFETY: the ticket's count (1).
        let state = unsafe { Arc::from_raw(this.cast_const()) };
        // ORD[SC1] acquire: what was pushed before the ticket was found queued.
        state.ticket_queued.swap(false, AcqRel);
        if action == Action::Discard {
            // ORD SeqCst fence: between publishing and looking for a sleeper; pairs with `Frame::sleep`.
            fence(SeqCst);
            state.frame.call_helper();
            return;
        }
        state.run_some();
    }

    /// True if there are tasks, and no order that will find them.
    fn has_unordered(&self) -> bool {
        // ORD[SC3] acquire: the order's link, for the next order.
        !self.ordered.load(Acquire) && self.has_tasks()
    }

    /// For an owner in another pool, for which `host`, a thread of this pool, waits by `frame`: lets
    /// that one run tasks, since nobody else in this pool may be there. False if there are none.
    ///
    /// Unlike the ticket the order counts as a task: so the scope, and with it the host's wait, lasts
    /// until it was called.
    fn order(&self, host: &Worker, frame: &Frame) -> bool {
        let one_more = |pending| (pending != 0).then_some(pending + 1);
        if !self.has_unordered()
            // ORD relaxed: a count, as in `count`. It is zero if the tasks have ended meanwhile.
            // ORD relaxed: a stale count makes the exchange fail.
            || self.pending.fetch_update(Relaxed, Relaxed, one_more).is_err()
        {
            return false;
        }
        // ORD relaxed: the order itself is published by its queue.
        self.ordered.store(true, Relaxed);
        // SAFETY: `own` is this very state.
        let order = unsafe { &raw const (*self.own).order };
        // SAFETY: a field is not at address zero.
        let order = unsafe { NonNull::new_unchecked(order.cast_mut()) };
        // SAFETY: alive, as the state is.
        unsafe { Task::mark_queued(order) };
        // SAFETY: counted, so it lives until it is called; not ordered before, so in no queue.
        if unsafe { host.post(order) }.is_ok() {
            // ORD SeqCst fence: between publishing and looking for a sleeper; pairs with `Frame::sleep`.
            fence(SeqCst);
            frame.call_helper();
        } else {
            // The host ends, and runs its last task.
            // SAFETY: refused, so in no queue.
            unsafe { Task::call(order, Action::Run) };
        }
        true
    }

    /// The order's function.
    ///
    /// # Safety
    /// 1. `order` is the order of a state in an `Arc`, and counted as one of its tasks.
    unsafe fn order_called(order: NonNull<Task>, _action: Action) {
        // SAFETY: the order is this field of a state (1).
        let this = unsafe { order.as_ptr().byte_sub(offset_of!(Self, order)) }.cast::<Self>();
        // SAFETY: in an `Arc`, which the owner holds while a task is counted (1).
        unsafe { Arc::increment_strong_count(this.cast_const()) };
        // SAFETY: the count that was just added.
        let state = unsafe { Arc::from_raw(this.cast_const()) };
        // ORD[SC3] release: the order's link is its owner's again.
        state.ordered.store(false, Release);
        // ORD SeqCst fence: between this and the look at the queue. Whoever pushes has one before it
        // calls the owner: either the look finds the task, or the owner sees that nothing is ordered.
        fence(SeqCst);
        state.run_some();
        // SAFETY: `state` holds it.
        unsafe { state.finished(1) };
    }

    /// Runs tasks on a thread that was sent for them.
    fn run_some(&self) {
        // A thread of another pool gets here when it runs what this pool has handed back, or has no
        // thread for. The rest of a chunk must not be held there: whoever takes it uses our core.
        with_current(|worker| match worker.filter(|worker| ptr::eq(worker.core(), self.core)) {
            Some(worker) => drop(self.run_chunk(worker)),
            None => drop(self.run_outside()),
        });
    }

    /// Runs some of the scope's tasks. False if there were none.
    pub(crate) fn run_chunk(&self, worker: &Worker) -> bool {
        let Some(mut consumer) = self.queue.try_lock() else { return false };
        let most = if worker.held.is_empty() { CHUNK } else { 1 };
        // One more, which ends it.
        let mut chunk = [ptr::null_mut(); CHUNK + 1];
        let mut rest = TaskList::new();
        let mut taken = 0;
        while taken < most {
            let Some(task) = consumer.pop() else { break };
            chunk[taken] = task.as_ptr();
            if taken > 0 {
                // SAFETY: out of the queue.
                unsafe { rest.append(task) };
            }
            taken += 1;
        }
        // Before the queue can look empty, so that whoever looks for a while hardly misses it.
        if let Some((head, _)) = rest.take() {
            worker.held.put(head, self.own);
        }
        if consumer.unlock() {
            // SAFETY: borrowed, and there are tasks left.
            unsafe { Self::announce(self.own) };
        }
        if taken > 1 {
            self.tell_of_held();
        }
        let mut done = 0;
        while let Some(task) = NonNull::new(chunk[done]) {
            if done > 0 && !worker.held.take_first(task.as_ptr(), chunk[done + 1]) {
                break;
            }
            worker.run_task(task);
            done += 1;
        }
        // SAFETY: whoever calls this holds the state: the owner, or a ticket's caller.
        unsafe { self.finished(done) };
        true
    }

    /// Tells somebody of the rest of a chunk, since the first task may be long: the owner, if it sleeps, or a
    /// thread of the pool.
    fn tell_of_held(&self) {
        // SAFETY: the scope has not ended, since there are tasks, so its pool has not.
        let core = unsafe { &*self.core };
        // SAFETY: null, or a thread that waits for the scope.
        let owner = unsafe { self.frame.owner().as_ref() };
        // One elsewhere takes nothing from a thread of this pool.
        if owner.is_some_and(|owner| ptr::eq(owner.core(), core)) {
            // ORD SeqCst fence: between `Held::put` and looking for a sleeper; pairs with `Frame::sleep`.
            fence(SeqCst);
            if self.frame.call_helper() {
                return;
            }
        }
        core.notify_elsewhere();
    }

    /// As `run_chunk`, on a thread that is none of a pool: all that there is.
    fn run_outside(&self) -> bool {
        let mut done = 0;
        while let Some(mut consumer) = self.queue.try_lock() {
            let task = consumer.pop();
            // What is left is what the next round looks for.
            let _left = consumer.unlock();
            if let Some(task) = task {
                // SAFETY: out of the queue.
                unsafe { Task::call(task, Action::Run) };
                done += 1;
            }
        }
        if done > 0 {
            // SAFETY: as in `run_chunk`.
            unsafe { self.finished(done) };
        }
        done > 0
    }

    /// Gives a chain of tasks back to their scope.
    ///
    /// # Safety
    /// 1. The chain was taken from a worker's `held`.
    pub(crate) unsafe fn put_back(head: NonNull<Task>) {
        // SAFETY: a scope's task, not finished, and ours (1).
        let state = unsafe { Self::of(head) };
        let mut tail = head;
        // SAFETY: the chain is ours (1).
        while let Some(next) = unsafe { Task::next(tail) } {
            tail = next;
        }
        // SAFETY: ours, counted, in no queue; `state` keeps it alive.
        unsafe { Self::push(state.own, (head, tail)) };
    }

    /// Keeps the first panic.
    fn keep_panic(&self, payload: Payload) {
        let payload = Box::into_raw(Box::new(payload));
        // ORD relaxed: only the owner follows it, after the end of this task, whose edge is [SC2].
        let kept = self.panic.compare_exchange(ptr::null_mut(), payload, Relaxed, Relaxed);
        if kept.is_err() {
            // SAFETY: made above, and not published.
            discard_payload(*unsafe { Box::from_raw(payload) });
        }
    }

    fn take_panic(&self) -> Option<Payload> {
        // ORD relaxed: all tasks have ended, see `keep_panic`.
        let payload = NonNull::new(self.panic.swap(ptr::null_mut(), Relaxed))?;
        // SAFETY: made by `Box::into_raw`, and taken once.
        Some(*unsafe { Box::from_raw(payload.as_ptr()) })
    }
}

/// Where tasks that borrow are spawned: see [`scope`](crate::scope).
///
/// ```
/// let mut numbers = [1, 2, 3];
/// volt_pool::scope(|scope: &volt_pool::Scope<'_>| {
///     for number in &mut numbers {
///         scope.spawn(move |_| *number *= 10);
///     }
/// });
/// assert_eq!(numbers, [10, 20, 30]);
/// ```
pub struct Scope<'scope> {
    state: Arc<State>,
    /// Invariant in `'scope`, and as sharable as the closures.
    marker: PhantomData<fn(&'scope ()) -> &'scope ()>,
}

/// A task of a scope.
#[repr(C)]
struct Spawned<'scope, F> {
    task: Task,
    scope: *const Scope<'scope>,
    work: F,
}

impl<'scope, F: FnOnce(&Scope<'scope>) + Send + 'scope> Spawned<'scope, F> {
    /// # Safety
    /// 1. `task` is the first field of a boxed `Self`, whose scope waits for it.
    unsafe fn call(task: NonNull<Task>, _action: Action) {
        let this = task.cast::<Self>().as_ptr();
        // SAFETY: made from a box (1), and called once.
        #[cfg(not(volt_loom))]
        let Self { scope, work, .. } = *unsafe { Box::from_raw(this) };
        // Loom's executions must not differ in which address the next task gets: an exchange of the
        // queue's word succeeds or fails by it. So the memory is not used again.
        // SAFETY: made from a box (1), called once, and never freed.
        #[cfg(volt_loom)]
        let Self { scope, work, .. } = unsafe { ptr::read(this) };
        // SAFETY: the scope waits (1).
        let scope = unsafe { &*scope };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| work(scope))) {
            scope.state.keep_panic(payload);
        }
    }
}

impl<'scope> Scope<'scope> {
    /// Spawns `work` into the scope, which ends only after it. It may spawn more.
    ///
    /// A panic of `work` is passed on by the scope, when all tasks have ended.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut numbers = [1, 2, 3];
    /// volt_pool::scope(|s| {
    ///     for number in &mut numbers {
    ///         s.spawn(move |_| *number *= 2);
    ///     }
    /// });
    /// assert_eq!(numbers, [2, 4, 6]);
    /// ```
    pub fn spawn<F>(&self, work: F)
    where
        F: FnOnce(&Self) + Send + 'scope,
    {
        let task = Task::within(Spawned::<'scope, F>::call, self.state.frame());
        let node = Box::into_raw(Box::new(Spawned { task, scope: self, work }));
        // SAFETY: a box is not null.
        let task = unsafe { NonNull::new_unchecked(node) }.cast::<Task>();
        // SAFETY: fresh and alive until it is called.
        unsafe { Task::mark_queued(task) };
        self.state.count();
        // SAFETY: ours, counted, in no queue; the scope keeps the state.
        unsafe { State::push(self.state.own, (task, task)) };
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

/// Runs `body` on this thread, and then waits for the tasks that were spawned into the scope.
pub(crate) fn run_scope<'scope, R>(core: &Core, body: impl FnOnce(&Scope<'scope>) -> R) -> R {
    with_current(|worker| {
        // SAFETY: this waits below, and borrows the core.
        let state = unsafe { State::new(core, worker) };
        let scope = Scope { state, marker: PhantomData };
        let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
        let state = &*scope.state;
        if !state.settle() {
            match worker {
                Some(worker) if ptr::eq(worker.core(), core) => {
                    worker.wait(&state.frame, Help::Scope(state));
                }
                Some(worker) => wait_elsewhere(core, worker, state),
                None => core.as_owner_elsewhere(state.frame.parker(), || {
                    wait_outside(core, &state.frame, || state.has_tasks(), || state.run_outside());
                }),
            }
        }
        let panic = state.take_panic();
        match (result, panic) {
            (Ok(result), None) => result,
            (Err(payload), second) => {
                second.into_iter().for_each(discard_payload);
                resume_unwind(payload)
            }
            (Ok(result), Some(payload)) => {
                crate::payload::discard(move || drop(result));
                resume_unwind(payload)
            }
        }
    })
}

/// Waits on a thread of another pool. The tasks are not for this thread, except when their pool has
/// ended; but it can send for the thread of that pool which waits for it, if there is one.
fn wait_elsewhere(core: &Core, worker: &Worker, state: &State) {
    let host = host_of(core, worker);
    let has = || match host {
        Some(_) => state.has_unordered(),
        None => core.sync.is_shut_down() && state.has_tasks(),
    };
    let run = || match host {
        Some((host, frame)) => state.order(host, frame),
        None => core.sync.is_shut_down() && state.run_outside(),
    };
    core.as_owner_elsewhere(state.frame.parker(), || {
        wait_foreign(core, worker, &state.frame, has, run);
    });
}

#[cfg(all(test, volt_loom))]
mod model;
