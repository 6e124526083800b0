//! Threads that wait for a future of their own: in `block_on`, or outside of all runtimes in a blocking `join`.
//!
//! A thread in `block_on` is a member of the scheduler (a *guest*) while its future is pending: it
//! has a slot with queues from which others may steal, runs tasks, and parks like a worker. What
//! its future spawns goes to its own LIFO slot, so that spawning and awaiting needs no second
//! thread. It becomes one when its future spawns or is pending for the first time; a future that
//! is ready at once costs nothing of this.
//!
//! A guest that leaves puts its tasks into the injector, and passes on the notification that it may
//! have consumed. Its place to sleep may be looked at by whoever has cleared its parked bit, until
//! that one's token has come: a guest leaves only while it runs, when its bit is clear and no token
//! is under way (`idle.rs`, invariant 2).
//!
//! A current-thread runtime has no workers and one place for a guest: the thread in `block_on` is
//! the runtime. Other threads in `block_on` poll their own future only, and take the place when it
//! becomes free; in the handle's `block_on`, for as long as they have nothing else to do (`beside.rs`).
//!
//! While the guest runs a task, its own future waits, and no other thread can poll that: see `shy.rs`.
//!
//! Hazards, which are in the documentation of the calls: a task that blocks holds up a guest's future that waits
//! for tasks only; a task that blocks in `join` may find itself below a helped task on the stack,
//! and cannot go on before that one returns.
//!
//! | Edge  | Release side           | Acquire side                        | Carries | Model |
//! |-------|------------------------|-------------------------------------|---------|-------|
//! | [GU1] | `Shared::detach_guest` | `Shared::attach_guest`              | the slot as its last guest left it | none: under loom the fences of [ID1] carry it: a guest leaves and joins the members beside it |
//! | [GU2] | `Shared::attach_guest` | `Shared::used_slots`                | that there is a guest, with [ID3] in one total order | none: [ID3] alone orders it: joining the members, after this, changes their state, and so does whoever parks and then looks |
//! | [GU3] | `Shared::attach_guest` | `Shared::unpark`                    | a guest's place to sleep | none: [ID2] alone orders it: whoever wakes a member has cleared its bit |

use std::cell::{Cell, OnceCell};
use std::future::Future;
use std::ops::ControlFlow;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

use volt_sync::internal::primitive::Arc;

use crate::runtime::blocking::is_blocking_thread;
use crate::runtime::metrics::SlotMetrics;
use crate::runtime::scheduler::lifecycle::cancel;
use crate::runtime::scheduler::lifecycle::living::IsInPlace;
use crate::runtime::scheduler::pacing::quick::{self, QUICK_NS};
use crate::runtime::scheduler::pacing::round::Before;
use crate::runtime::scheduler::parking::park::Park;
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::stalls::stall::STALL_NS;
use crate::runtime::scheduler::worker::{Step, Worker};
use crate::runtime::slow_poll::SlowPolls;
use crate::runtime::{context, level, outside};
use crate::task::Header;

/// How many successful operations the future of `block_on` may do in one poll.
const COOP_BUDGET: u32 = 128;
/// How much of a thread's stack may be used where a blocking call begins to run tasks; of a smaller one,
/// a quarter.
const STACK_LIMIT: usize = 512 << 10;
/// Of less use, nobody has to ask how large a stack is.
const LEAST_STACK: usize = 16 << 10;
/// So many quick polls in a row of the future of `block_on` make its kind a quick one.
const QUICK_ROOTS: u32 = 32;

/// A thread in `block_on`.
pub(crate) struct Guest<'r> {
    pub(crate) shared: &'r Arc<Shared>,
    pub(crate) park: &'r Arc<Park>,
    waits: Waits,
    /// It has claimed a current-thread runtime, which another thread has.
    claims: Cell<bool>,
    worker: OnceCell<Worker<'r>>,
    /// It was a member, and is no longer; or there is too little stack to run tasks on; or it is beside.
    left: Cell<bool>,
}

/// Who waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// In `Runtime::block_on`: a current-thread runtime is this thread. The call has borrowed the `Runtime`, so a shutdown
    /// begins after it only.
    AsRuntime,
    /// In `Handle::block_on`: a current-thread runtime may be another thread.
    Beside,
    /// Between the polls of one that is beside a current-thread runtime.
    Visits,
    /// In a blocking join: it helps with anything. A current-thread runtime may be another thread.
    ToHelp,
}

impl<'r> Guest<'r> {
    pub(crate) fn new(shared: &'r Arc<Shared>, park: &'r Arc<Park>, waits: Waits) -> Self {
        let claims = Cell::new(false);
        let guest =
            Self { shared, park, waits, claims, worker: OnceCell::new(), left: Cell::new(false) };
        guest.left.set(guest.is_beside());
        guest
    }

    /// It is no member in the polls of its future, and becomes none.
    pub(crate) fn is_beside(&self) -> bool {
        matches!(self.waits, Waits::Beside | Waits::ToHelp) && self.may_be_other()
    }

    /// It sets tasks of unknown kinds aside.
    fn is_choosy(&self) -> bool {
        self.waits != Waits::ToHelp
    }

    /// A current-thread runtime may be another thread. (A `LocalRuntime` is no other than the one that has made it.)
    fn may_be_other(&self) -> bool {
        self.shared.is_current_thread() && self.shared.config.home.is_none()
    }

    /// Makes this thread a member, if there is room. Only inside of `context::with_guest`.
    pub(crate) fn attach(&self) -> Option<&Worker<'r>> {
        if self.left.get() {
            return None;
        }
        if let Some(worker) = self.worker.get() {
            debug_assert!(context::is_member_of(self.shared), "it waits for this to become one");
            return Some(worker);
        }
        if !self.shared.is_current_thread() && stack_is_used_up() {
            self.left.set(true);
            return None;
        }
        if self.waits == Waits::Visits && self.shared.waiting.is_claimed() {
            return None;
        }
        let Some(index) = self.shared.attach_guest(self.park) else {
            let may_claim = self.waits == Waits::AsRuntime && self.may_be_other();
            if may_claim && !self.claims.replace(true) {
                self.shared.waiting.claim();
            }
            return None;
        };
        // SAFETY: the scheduler outlives the guest, which takes the pointer away when it leaves.
        unsafe { self.park.set_driver(Some(NonNull::from(&self.shared.driver_handle))) };
        let worker = self.worker.get_or_init(|| Worker::new(self.shared, index, self.park));
        worker.spawns_visibly.set(self.waits != Waits::AsRuntime);
        if self.shared.is_current_thread() {
            if self.waits == Waits::Visits {
                self.shared.waiting.begin_visit(self.park);
            }
            self.end_claim();
            worker.begin_visit();
        } else {
            // No other thread goes on as the worker that this one was: it is here that its tasks are run.
            let is_worker = context::cancels(self.shared);
            let unfit = !is_worker && self.is_unfit();
            worker.choosy.set(self.is_choosy() && !is_worker || unfit);
            worker.unfit.set(unfit);
            worker.shy.set(unfit);
        }
        context::set_worker(worker);
        worker.put_off_watcher(|| worker.now_ns());
        // It may be in the first poll of its future.
        worker.begin_root();
        Some(worker)
    }

    /// True if tasks would miss something on this thread that the builder has promised them; or in a `block_on` in a
    /// blocking call: one that blocks would do so on top of what it may wait for.
    fn is_unfit(&self) -> bool {
        let config = &self.shared.config;
        let in_blocking_call = || context::is_nested() || is_blocking_thread();
        self.is_choosy() && in_blocking_call()
            || config.on_thread_start.is_some()
            // Of a main thread, the system says a little less.
            || config.thread_stack_size.is_some_and(|size| context::stack_size() < size - size / 16)
    }

    /// What it counts, if it is a member.
    fn metrics(&self) -> Option<&SlotMetrics> {
        let worker = self.worker.get().filter(|_| !self.left.get());
        worker.map(|worker| &worker.slot.metrics)
    }

    /// Polls the future of this thread, which is of `kind` (`quick.rs`), until it is ready, and runs tasks in
    /// between.
    pub(crate) fn run<T>(&self, kind: usize, mut poll: impl FnMut() -> Option<T>) -> T {
        level::above(|below| self.run_above(kind, || below.call(&mut poll)))
    }

    fn run_above<T>(&self, kind: usize, mut poll: impl FnMut() -> Option<T>) -> T {
        loop {
            match self.attach() {
                Some(worker) => {
                    worker.root_kind.set(kind);
                    worker.become_shy();
                    if let Some(output) = worker.run_until(&mut poll, self.before_second_poll()) {
                        return output;
                    }
                    // The runtime shuts down: only the future is left.
                    context::forget_member();
                    self.leave();
                    // A wake-up may have been noticed, but not acted on.
                    if let Some(output) = poll() {
                        return output;
                    }
                }
                None => {
                    if let Some(output) = self.wait_without_place(self.park, &mut poll) {
                        return output;
                    }
                }
            }
        }
    }

    /// The future was polled just now.
    fn before_second_poll(&self) -> Before {
        // A blocking join, and who has workers beside it, does not do their work first.
        let runs_all = self.is_choosy() && self.shared.is_current_thread();
        if runs_all { Before::Round } else { Before::Task }
    }

    /// No room: sleeps at `park` until the future was woken, which is polled then, or there is room.
    pub(crate) fn wait_without_place<T>(
        &self,
        park: &Arc<Park>,
        poll: &mut impl FnMut() -> Option<T>,
    ) -> Option<T> {
        struct Awake<'a>(&'a Shared, &'a Arc<Park>);
        impl Drop for Awake<'_> {
            fn drop(&mut self) {
                self.0.waiting.remove(self.1);
            }
        }
        let _awake;
        if self.shared.is_current_thread() && !self.left.get() {
            _awake = Awake(self.shared, park);
            self.shared.waiting.add(park);
            // The place may have become free before we were on the list.
            if self.attach().is_some() {
                return None;
            }
        }
        cancel::wait(park, poll)
    }

    fn end_claim(&self) {
        if self.claims.take() {
            self.shared.waiting.end_claim();
        }
    }

    /// True if it was a member, and the runtime has shut down.
    pub(crate) fn has_left(&self) -> bool {
        self.left.get()
    }

    /// Leaves the members.
    fn leave(&self) {
        if self.left.replace(true) {
            return;
        }
        let Some(worker) = self.worker.get() else { return };
        if self.waits == Waits::Visits {
            self.shared.waiting.end_visit();
        }
        worker.leave();
        // SAFETY: no pointer, no obligation.
        unsafe { self.park.set_driver(None) };
        volt_sync::internal::slack::restore();
        crate::task::memory::give_back();
        if self.shared.is_current_thread() && self.shared.is_shut_down() {
            // Perhaps by a task on this thread, which could not wait for itself.
            self.shared.shut_down_current_thread(None);
        }
    }
}

impl Drop for Guest<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.worker.get().is_some() {
            self.leave();
        } else if self.claims.get() {
            self.end_claim();
            // Visitors wait for it to have been there.
            self.shared.waiting.wake_all();
        }
    }
}

impl Worker<'_> {
    /// Polls with `poll` whenever this thread's ROOT reason is given, and runs tasks in between.
    /// None if the runtime shuts down, or another thread has become this worker.
    pub(crate) fn run_until<T>(
        &self,
        poll: &mut impl FnMut() -> Option<T>,
        before: Before,
    ) -> Option<T> {
        struct Leave<'a, 'r>(&'a Worker<'r>, usize);
        impl Drop for Leave<'_, '_> {
            fn drop(&mut self) {
                self.0.before_root.set(self.1);
                let roots = self.0.roots.get() - 1;
                self.0.roots.set(roots);
                // What woke this one may have been meant for another, further down on the stack; below a
                // guest's there is one also in its first poll, which is not counted.
                self.0.root.set(roots > 0 || self.0.index >= self.0.shared.workers);
            }
        }
        self.roots.set(self.roots.get() + 1);
        let _leave = Leave(self, self.before_root.replace(0));
        // By itself: who is woken by what a look finds does not go behind that.
        let round = before == Before::Round && self.root_woken();
        if !round {
            self.visit();
        }
        if before != Before::Nothing {
            let step = if round { self.run_round() } else { self.after_root() };
            if matches!(step, Step::Exit) {
                return None;
            }
        }
        self.run_until_woken(poll, before)
    }

    /// A poll of this thread's own future begins. True if it may be long.
    #[inline]
    fn begin_root(&self) -> bool {
        let kind = self.root_kind.get();
        // ORD relaxed: a hint.
        self.slot.kind.store(kind, Relaxed);
        let may_be_long = !self.shared.quick.knows(kind);
        if may_be_long {
            self.rouse_watcher();
        }
        may_be_long
    }

    /// A poll of this thread's own future, and what comes after it; or its output.
    #[inline]
    fn root_turn<T>(
        &self,
        poll: &mut impl FnMut() -> Option<T>,
        goes_behind: Before,
    ) -> ControlFlow<T, Step> {
        if self.choosy.get() {
            return self.root_turn_beside_workers(poll);
        }
        match self.poll_root(poll) {
            Some(output) => ControlFlow::Break(output),
            None => {
                if goes_behind != Before::Nothing && self.root_woken() {
                    // It has woken itself, as to give the others a turn: the first of these is next.
                    self.note_yield();
                    self.before_root.set(self.behind_itself(goes_behind));
                }
                ControlFlow::Continue(self.step_after_root())
            }
        }
    }

    #[inline(never)]
    fn root_turn_beside_workers<T>(
        &self,
        poll: &mut impl FnMut() -> Option<T>,
    ) -> ControlFlow<T, Step> {
        // By tasks, since the last poll.
        let _ = outside::waited();
        match self.poll_root(poll) {
            Some(output) => ControlFlow::Break(output),
            None => {
                self.become_shy();
                ControlFlow::Continue(self.after_root())
            }
        }
    }

    /// A poll of this thread's own future. Its kind is known to be quick after [`QUICK_ROOTS`] quick ones in a
    /// row, and not after the first: there is one such future, and in its life it may do this and that. And one
    /// that a watcher has caught in a slow poll is never known to be quick again.
    #[inline]
    pub(crate) fn poll_root<T>(&self, poll: &mut impl FnMut() -> Option<T>) -> Option<T> {
        self.polls_at_root.set(self.polls.get());
        let may_be_long = self.begin_root();
        let is_of_no_kind = self.root_kind.get() == quick::OF_NO_TASK;
        if is_of_no_kind || !(may_be_long || self.run.takes_timed()) {
            return poll();
        }
        // This poll is counted already.
        let (start, steps) = (self.now_ns(), self.slot.steps());
        let output = poll();
        let took = self.now_ns().saturating_sub(start);
        if took >= STALL_NS {
            self.judge_poll(took, steps, self.root_kind.get());
        }
        let is_quick = took < QUICK_NS;
        self.quick_roots.set(if is_quick { self.quick_roots.get() + 1 } else { 0 });
        if self.quick_roots.get() == QUICK_ROOTS {
            self.quick_roots.set(0);
            if !self.shared.caught.knows(self.root_kind.get()) {
                self.shared.quick.learn(self.root_kind.get());
            }
        }
        output
    }

    fn run_until_woken<T>(
        &self,
        poll: &mut impl FnMut() -> Option<T>,
        goes_behind: Before,
    ) -> Option<T> {
        loop {
            // By a call on top of this one: who wakes this member, wakes the other thread.
            if self.handed_over.get() {
                return None;
            }
            if self.is_running() && self.is_roots_turn(goes_behind) {
                self.end_search();
                self.flush_yielded_quietly();
                self.count_poll();
                match self.root_turn(poll, goes_behind) {
                    ControlFlow::Break(output) => return Some(output),
                    ControlFlow::Continue(Step::Exit) => return None,
                    ControlFlow::Continue(_) => {}
                }
                continue;
            }
            let step = if self.shy.get() { self.step_shy() } else { self.step() };
            match step {
                Step::Continue => {}
                Step::Wait => self.wait(),
                Step::Exit => return None,
            }
        }
    }

    /// A guest that runs stops being a member.
    fn leave(&self) {
        volt_sync::coop::allow_turns(false);
        self.end_visit();
        let any = self.give_up_tasks();
        self.share_ring();
        self.end_search();
        let left_alone = self.shared.detach_guest(self.index);
        // Beside other guests, this one may have been among those that were enough (`shy.rs`).
        let others = || self.shared.idle.load().attached() > self.shared.workers;
        if any || left_alone || others() && self.shared.has_work(true) {
            self.notify();
        }
        if self.shared.is_shut_down() {
            self.shared.wake_all();
        }
        if self.shared.is_current_thread() && self.shared.config.home.is_none() {
            self.shared.waiting.wake_all();
        }
    }
}

/// Polls with the budget of a task.
pub(crate) fn poll_once<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Option<F::Output> {
    let mut cx = Context::from_waker(waker);
    match volt_sync::coop::with_budget(Some(COOP_BUDGET), || future.poll(&mut cx)) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// The same, if slow polls are reported. (Not inlined: what it keeps on the stack is not for the others.)
#[inline(never)]
fn poll_timed<F: Future>(
    slow: &SlowPolls,
    place: &'static Location<'static>,
    guest: &Guest<'_>,
    future: Pin<&mut F>,
    waker: &Waker,
) -> Option<F::Output> {
    let timing = slow.begin_root::<F>(place);
    let polled = poll_once(future, waker);
    slow.end(&timing, guest.metrics());
    polled
}

/// Blocks the thread until `future` is ready, and runs tasks meanwhile.
///
/// Only for who has borrowed the `Runtime`: no shutdown may begin before this returns, as it would not see what is spawned
/// here (`living.rs`). Others call [`block_on_beside`].
///
/// # Panics
/// If the thread polls futures already, or `future` panics.
#[track_caller]
pub(crate) fn block_on<F: Future>(shared: &Arc<Shared>, future: F) -> F::Output {
    // Not in a closure: the panic names our caller.
    context::assert_may_block();
    block_on_as(shared, future, Waits::AsRuntime, Location::caller())
}

/// As [`block_on`], but the runtime may be shut down meanwhile, and a current-thread runtime may be another thread.
///
/// # Panics
/// As `block_on`.
#[track_caller]
pub(crate) fn block_on_beside<F: Future>(shared: &Arc<Shared>, future: F) -> F::Output {
    context::assert_may_block();
    block_on_as(shared, future, Waits::Beside, Location::caller())
}

/// Blocks a thread that is no member in a join: it becomes a guest that helps with anything.
pub(crate) fn join_outside<F: Future>(shared: &Arc<Shared>, future: F) -> F::Output {
    block_on_as(shared, future, Waits::ToHelp, Location::caller())
}

#[inline(always)]
fn block_on_as<F: Future>(
    shared: &Arc<Shared>,
    future: F,
    waits: Waits,
    place: &'static Location<'static>,
) -> F::Output {
    context::with_place(|park, waker| {
        let guest = Guest::new(shared, park, waits);
        context::with_guest(&guest, || {
            let mut future = pin!(future);
            let mut poll = || match &shared.slow {
                None => poll_once(future.as_mut(), waker),
                Some(slow) => poll_timed(slow, place, &guest, future.as_mut(), waker),
            };
            // By what this thread polled before.
            let _ = outside::waited();
            match poll() {
                Some(output) => output,
                None => {
                    let kind: fn(Pin<&mut F>, &Waker) -> Option<F::Output> = poll_once::<F>;
                    let kind = kind as usize;
                    if guest.is_beside() { guest.run_beside(poll) } else { guest.run(kind, poll) }
                }
            }
        })
    })
}

/// True if tasks that are run on top of this call could need more stack than there is.
pub(crate) fn stack_is_used_up() -> bool {
    stack_is_used_up_by(1)
}

/// The same for calls that may use so many times as much.
pub(crate) fn stack_is_used_up_by(times: usize) -> bool {
    let here = 0_u8;
    // Not from this member: below it on the stack there may be others, in blocking calls.
    let Some(base) = context::stack_base() else { return false };
    let used = base.abs_diff(ptr::from_ref(&here).addr());
    let limit = || STACK_LIMIT.min(context::stack_size() / 4);
    // Every stack is larger than that.
    used > LEAST_STACK / 4 && used > times * limit()
}

/// Runs `f`, which may block, while another thread goes on as this worker.
///
/// # Panics
/// On the thread of a current-thread runtime.
#[track_caller]
pub(crate) fn block_in_place<R>(f: impl FnOnce() -> R) -> R {
    context::assert_no_hook();
    assert!(
        !context::runs_current_thread(),
        "`block_in_place` needs a multi-thread runtime: the thread of a current-thread runtime has \
         nobody to hand its tasks to"
    );
    let (alone, _in_place) = context::current_worker(|worker| {
        let Some(worker) = worker else { return (None, None) };
        worker.note_blocking_kind();
        if worker.hand_over() {
            // A worker is until the end of its poll.
            let is_guest = worker.index >= worker.shared.workers;
            (None, is_guest.then(|| IsInPlace::of(worker.shared.clone())))
        } else {
            (Some(worker.shared.clone()), None)
        }
    });
    // Whatever blocks in `f` gets no other budget than this task's, which may be used up.
    let f = || volt_sync::coop::with_budget(None, f);
    match alone {
        None => context::outside_async(f),
        Some(shared) => context::as_canceller(&shared, f),
    }
}

impl Worker<'_> {
    /// Takes `target` out of this member's queues, if it is there. The others keep their order. If a watcher has looked
    /// while they were in none, and watches no longer, somebody else is told, if there is `target` to run before them, which may wait for
    /// them.
    pub(crate) fn take_own(&self, target: NonNull<Header>) -> Option<NonNull<Header>> {
        if let Some(newest) = self.slot.lifo.take() {
            if newest == target {
                return Some(newest);
            }
            let evicted = self.slot.lifo.push(newest);
            debug_assert!(evicted.is_none(), "only the owner pushes");
        }
        let mut found = None;
        for _ in 0..self.slot.ring.len() {
            match self.slot.ring.pop() {
                None => break,
                Some(task) if task == target => found = Some(task),
                Some(task) => self.push(task),
            }
        }
        if found.is_some() && self.shared.idle.load().wants_watcher() {
            self.notify();
        }
        found
    }

    /// Polls a task out of order.
    pub(crate) fn run_now(&self, task: NonNull<Header>) {
        let _either_way = self.poll(task);
    }

    /// What this member polls blocks now and then, so a guest should not run it.
    fn note_blocking_kind(&self) {
        // ORD relaxed: this member wrote it.
        let kind = self.slot.kind.load(Relaxed);
        self.shared.blocks.learn(kind);
        self.shared.quick.forget(kind);
        self.shared.untimed.forget(kind);
    }

    /// Leaves this member's tasks to others. A worker gets another thread; a guest only gives up what
    /// is in its queues. False for a worker that gets no thread, as in a waker that it calls while it
    /// turns the driver, which cannot pass to another thread then: it is still the one that cancels at a
    /// shutdown.
    pub(crate) fn hand_over(&self) -> bool {
        // The new thread gets what is in the slot, and this is not.
        self.flush_yielded(None);
        self.share_ring();
        if self.index < self.shared.workers && !self.turns_driver() {
            // Before the other thread can end.
            if self.is_last.get() {
                self.shared.last_worker_is_back();
            }
            if crate::runtime::hand_over_worker(self.shared, self.index, self.turn()).is_ok() {
                self.handed_over.set(true);
                self.in_place.set(Some(IsInPlace::of(self.shared.clone())));
                context::set_worker(ptr::null());
                return true;
            }
            if self.is_last.get() {
                self.shared.worker_ended();
            }
        }
        if self.give_up_tasks() {
            self.notify();
        }
        self.index >= self.shared.workers
    }
}
