//! A member of a scheduler: the state machine that runs tasks, looks for them, and parks.
//!
//! The same code is the loop of a worker thread, the inside of `block_on` (`guest.rs`), a blocking
//! `join` (`guest.rs` too) and a virtual worker of the simulation (`sim.rs`): a [`step`] runs one
//! task or moves one stage further towards sleep; [`wait`] sleeps.
//!
//! | Stage     | `step` does                                          | then                    |
//! |-----------|------------------------------------------------------|-------------------------|
//! | Running   | runs a task, found in the order of `next` and `search` | Running; if there is none, or a guest stands aside (`shy.rs`): Searched |
//! | Searched  | publishes that it parks                              | Published               |
//! | Published | looks at all queues once more (`idle.rs`, P1)        | Asleep                  |
//! | Asleep    | nothing: the caller [`wait`]s                        | Running, when woken     |
//!
//! Order of the search: the batch from the injector, the LIFO slot, the ring, the injector,
//! other members' rings, the injector again; and every so often (`pace.rs`) the injector before the
//! LIFO slot.
//!
//! [`step`]: Worker::step
//! [`wait`]: Worker::wait

use std::cell::Cell;
use std::ops::ControlFlow;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::Linger;
use volt_sync::internal::primitive::Arc;

use crate::runtime::scheduler::guests::vain::Vain;
use crate::runtime::scheduler::idle::Roles;
use crate::runtime::scheduler::lifecycle::living::IsInPlace;
use crate::runtime::scheduler::pacing::pace::{LOOK_NS, Pace, Waited};
use crate::runtime::scheduler::pacing::quick::{self, QUICK_NS};
use crate::runtime::scheduler::pacing::yields::Yields;
use crate::runtime::scheduler::parking::park::Park;
use crate::runtime::scheduler::shared::{Shared, Slot};
use crate::runtime::scheduler::stalls::doze::{Rhythm, Run};
use crate::runtime::scheduler::stalls::stall::Watch;
use crate::task::{Header, Notified};

/// Tasks in a row from the LIFO slot before the ring has its turn.
pub(super) const LIFO_RUN: u32 = if cfg!(volt_loom) { 2 } else { 3 };

/// Where a member is on its way to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Running,
    Searched,
    Published,
    Asleep,
}

/// What a step did.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Ran a task, or went on to the next stage.
    Continue,
    /// Nothing to do: call [`Worker::wait`].
    Wait,
    /// The runtime shuts down, or the worker was handed to another thread.
    Exit,
}

/// One member. Lives on its thread's stack; everything in it is that thread's.
pub(crate) struct Worker<'r> {
    pub(crate) shared: &'r Arc<Shared>,
    pub(crate) index: usize,
    pub(super) slot: &'r Slot,
    pub(super) park: &'r Arc<Park>,
    pub(super) stage: Cell<Stage>,
    pub(super) searching: Cell<bool>,
    /// Until when what it did is counted, or when it woke up since; 0 if neither is known.
    pub(super) busy_since: Cell<u64>,
    /// It has run something since it last woke up.
    pub(super) ran: Cell<bool>,
    pub(super) roles: Cell<Roles>,
    pub(super) watch: Cell<Watch>,
    /// A task that yielded while nothing else was there: the owner takes it next.
    pub(super) yielded: Cell<Option<NonNull<Header>>>,
    /// The driver is being turned: what becomes runnable is queued without waking others.
    pub(super) quiet: Cell<bool>,
    /// And so that it runs before the ring (`maintain.rs`).
    pub(super) overtakes: Cell<bool>,
    /// Some of that may be in the batch.
    pub(super) overtook: Cell<bool>,
    /// All that was found there last is of quick kinds.
    pub(super) found_quick: Cell<bool>,
    /// How much that was.
    pub(super) found: Cell<usize>,
    /// It was much, and its last tasks are still to run (`early.rs`).
    pub(super) found_many: Cell<bool>,
    /// It had done little for some time when it last woke up, and has since.
    pub(super) rested: Cell<bool>,
    pub(super) rhythm: Rhythm,
    pub(super) run: Run,
    pub(super) pace: Pace,
    /// So many tasks of the injector may be those that this member's ring had no room for.
    pub(super) sent: Cell<usize>,
    /// The tasks of the batch are such.
    pub(super) batch_is_own: Cell<bool>,
    /// For a current-thread runtime's.
    pub(super) yields: Yields,
    /// Tasks from the LIFO slot before the ring has its turn.
    pub(super) lifo_left: Cell<u32>,
    /// Where the task that is polled, or was last, has waited.
    pub(super) waited: Cell<Waited>,
    /// And has completed: see [`completed`](Worker::completed).
    pub(super) fan_in: Cell<bool>,
    pub(super) polls: Cell<u64>,
    pub(super) random: Cell<u64>,
    /// Futures that this thread polls itself: `block_on`'s, and those of blocking joins.
    pub(super) roots: Cell<u32>,
    /// One of them was woken. (Without any, a late wake-up means nothing.)
    pub(super) root: Cell<bool>,
    /// The kind of the one that it polls (`quick.rs`).
    pub(super) root_kind: Cell<usize>,
    /// What this member had polled when it polled one last.
    pub(super) polls_at_root: Cell<u64>,
    /// So many of its polls in a row were quick; counted only while they are timed.
    pub(super) quick_roots: Cell<u32>,
    /// So many tasks of the ring are before it, and itself; or 0.
    pub(super) before_root: Cell<usize>,
    /// How often it was woken for one of them while another member waited in the driver.
    pub(super) root_wakes: Cell<u32>,
    /// How often it was woken for one of them by another thread while it waited in the driver.
    pub(super) rings: Cell<u32>,
    /// How often in a row it has waited in the driver for what was there already (`wish.rs`).
    pub(super) ready_waits: Cell<u32>,
    /// From when until when it has waited there, or (0) does so, if that tells something.
    pub(super) waited_ns: Cell<Option<(u64, u64)>>,
    /// What the workers had polled when it last wanted to wait in the driver.
    pub(super) others_polls: Cell<u64>,
    pub(super) linger: Linger,
    /// Another thread goes on as this worker.
    pub(super) handed_over: Cell<bool>,
    /// Then the rest of the poll may block, in another `block_in_place` as well.
    pub(super) in_place: Cell<Option<IsInPlace>>,
    /// All workers have ended, and it was the last: it drops what is left.
    pub(super) is_last: Cell<bool>,
    /// A guest that sets tasks of unknown kinds aside (`quick.rs`).
    pub(super) choosy: Cell<bool>,
    /// A guest that leaves all tasks to others (`guest.rs`).
    pub(super) shy: Cell<bool>,
    /// Its future waits for time or the system: it is shy, unless it helps for once.
    pub(super) waits_outside: Cell<bool>,
    /// Since when it has seen work, and no worker that goes on.
    pub(super) stuck_since: Cell<Option<u64>>,
    /// A guest that is shy in any case.
    pub(super) unfit: Cell<bool>,
    /// A guest whose runtime may be closed while it spawns, so that somebody has to see which came first (`living.rs`).
    pub(super) spawns_visibly: Cell<bool>,
    /// For a guest.
    pub(super) vain: Vain,
}

/// Which of a member's queues has its turn when.
#[derive(Debug)]
pub(crate) struct Turn {
    pace: Pace,
    lifo_left: u32,
}

impl<'r> Worker<'r> {
    pub(crate) fn new(shared: &'r Arc<Shared>, index: usize, park: &'r Arc<Park>) -> Self {
        let slot = shared.slot(index);
        // ORD relaxed: only this member writes it; a guest's predecessor is ordered by [GU1].
        let polls = slot.polls.load(Relaxed);
        let seed =
            shared.config.seed.wrapping_add(index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self {
            shared,
            index,
            slot,
            park,
            stage: Cell::new(Stage::Running),
            searching: Cell::new(false),
            busy_since: Cell::new(0),
            ran: Cell::new(false),
            roles: Cell::new(Roles::default()),
            watch: Cell::new(Watch::default()),
            yielded: Cell::new(None),
            quiet: Cell::new(false),
            overtakes: Cell::new(false),
            overtook: Cell::new(false),
            found_quick: Cell::new(false),
            found: Cell::new(0),
            found_many: Cell::new(false),
            rested: Cell::new(false),
            rhythm: Rhythm::new(),
            run: Run::new(),
            pace: Pace::new(&shared.config),
            sent: Cell::new(0),
            batch_is_own: Cell::new(false),
            yields: Yields::default(),
            lifo_left: Cell::new(LIFO_RUN),
            waited: Cell::new(Waited::Elsewhere),
            fan_in: Cell::new(false),
            polls: Cell::new(polls),
            random: Cell::new(seed | 1),
            roots: Cell::new(0),
            root: Cell::new(false),
            root_kind: Cell::new(quick::OF_NO_TASK),
            polls_at_root: Cell::new(polls),
            quick_roots: Cell::new(0),
            before_root: Cell::new(0),
            root_wakes: Cell::new(0),
            rings: Cell::new(0),
            ready_waits: Cell::new(0),
            waited_ns: Cell::new(None),
            others_polls: Cell::new(0),
            linger: Linger::new(),
            handed_over: Cell::new(false),
            in_place: Cell::new(None),
            is_last: Cell::new(false),
            choosy: Cell::new(false),
            shy: Cell::new(false),
            waits_outside: Cell::new(false),
            stuck_since: Cell::new(None),
            unfit: Cell::new(false),
            spawns_visibly: Cell::new(false),
            vain: Vain::default(),
        }
    }

    /// Whose turn it is, for the thread that goes on as this worker.
    pub(super) fn turn(&self) -> Turn {
        Turn { pace: self.pace.handed_over(), lifo_left: self.lifo_left.get() }
    }

    /// Goes on as the thread did that was this worker before. Otherwise tasks that hand over after each few polls would
    /// never let anything else have its turn: the ring, the injector, the driver, or a shutdown.
    pub(crate) fn go_on_from(&mut self, turn: Turn) {
        self.pace = turn.pace;
        self.lifo_left.set(turn.lifo_left);
    }

    /// The loop of a worker thread.
    pub(crate) fn run(&self) {
        loop {
            match self.step() {
                Step::Continue => {}
                Step::Wait => self.wait(),
                Step::Exit => return,
            }
        }
    }

    /// Runs one task, or goes one stage further towards sleep.
    #[inline]
    pub(crate) fn step(&self) -> Step {
        if let Some(step) = self.step_without_task() {
            return step;
        }
        if let Some(task) = self.next() {
            return self.poll(task);
        }
        self.step_search()
    }

    /// A step that is no time to look for tasks: the next stage towards sleep, or the end of a last tick.
    #[inline]
    pub(super) fn step_without_task(&self) -> Option<Step> {
        if self.stage.get() != Stage::Running {
            return Some(self.step_to_sleep());
        }
        self.ends_tick().then_some(Step::Exit)
    }

    /// Ends the tick, if it is over. Returns whether the runtime has shut down meanwhile.
    #[inline]
    fn ends_tick(&self) -> bool {
        if !self.pace.is_over() {
            return false;
        }
        self.maintain();
        self.shared.is_shut_down()
    }

    /// The next task, if there is one, after a poll of this thread's own future: one that wakes
    /// itself goes behind the tasks, and starves neither them nor the driver.
    #[inline]
    pub(super) fn step_after_root(&self) -> Step {
        self.pace.count();
        if self.ends_tick() {
            return Step::Exit;
        }
        self.next().map_or(Step::Continue, |task| self.poll(task))
    }

    /// Polls a task.
    #[inline]
    pub(super) fn poll(&self, task: NonNull<Header>) -> Step {
        // SAFETY: taken from a queue of this scheduler, whose `Notified` it was.
        let task = unsafe { Notified::from_raw(task) };
        let kind = task.header().type_key();
        // ORD relaxed: a hint.
        self.slot.kind.store(kind, Relaxed);
        if !self.shared.untimed.knows(kind) || self.run.takes_timed() {
            return self.poll_timed(task, kind);
        }
        self.poll_now(task)
    }

    #[inline]
    fn poll_now(&self, task: Notified) -> Step {
        if self.searching.get() {
            self.end_search();
        }
        self.count_poll();
        self.fan_in.set(false);
        self.pace.count();
        task.run();
        if self.handed_over.get() { Step::Exit } else { Step::Continue }
    }

    /// Polls a task, and looks how long that takes; or sets it aside for somebody else, if it may be long.
    #[cold]
    fn poll_timed(&self, task: Notified, kind: usize) -> Step {
        if self.choosy.get() && !self.shared.quick.knows(kind) {
            self.set_aside(task.into_raw());
            return Step::Continue;
        }
        if !self.shared.quick.knows(kind) {
            self.rouse_watcher();
        }
        let timing = self.shared.slow.as_ref().map(|slow| slow.begin(task.header()));
        let (start, steps) = (self.now_ns(), self.slot.steps().wrapping_add(1));
        let step = self.poll_now(task);
        let took = self.now_ns().saturating_sub(start);
        if let (Some(slow), Some(timing)) = (&self.shared.slow, &timing) {
            slow.end(timing, Some(&self.slot.metrics));
        }
        if took < QUICK_NS {
            if self.shared.blocks.knows(kind) || self.shared.distrust.holds(kind, start) {
                return step;
            }
            self.shared.quick.learn(kind);
            if timing.is_none() {
                self.shared.untimed.learn(kind);
            }
        } else if took >= LOOK_NS {
            self.pace.hurry();
            self.judge_poll(took, steps, kind);
        } else if took >= QUICK_NS {
            self.look_between_yields(kind);
        }
        step
    }

    /// Tells the watchers that this member goes on.
    #[inline]
    pub(super) fn count_poll(&self) {
        let polls = self.polls.get().wrapping_add(1);
        self.polls.set(polls);
        // ORD relaxed: a hint and a statistic.
        self.slot.polls.store(polls, Relaxed);
        self.ran.set(true);
    }

    // ---- Finding tasks

    /// The next task of this member's own queues.
    #[inline]
    pub(super) fn next(&self) -> Option<NonNull<Header>> {
        self.waited.set(Waited::Elsewhere);
        if let Some(task) = self.slot.batch.pop() {
            self.count_fetched();
            self.flush_yielded(Some(task));
            return Some(task);
        }
        if self.pace.injector_has_its_turn() && !self.shared.injector.is_empty_for(false) {
            if let Some(task) = self.next_of_injector() {
                return Some(task);
            }
        }
        if let Some(task) = self.slot.lifo.take() {
            let left = self.lifo_left.get();
            if left > 0 {
                self.lifo_left.set(left - 1);
                self.waited.set(Waited::Lifo);
                self.flush_yielded(Some(task));
                self.slot.metrics.lifo_hits.add(1);
                return Some(task);
            }
            self.flush_yielded(None);
            self.lifo_left.set(LIFO_RUN);
            return Some(self.behind_the_ring(task));
        }
        self.lifo_left.set(self.lifo_left.get().max(LIFO_RUN));
        if self.found_many.get() {
            self.look_early();
        }
        if let Some(task) = self.slot.ring.pop() {
            self.waited.set(Waited::Ring);
            self.flush_yielded(Some(task));
            return Some(task);
        }
        self.yielded.take()
    }

    /// The LIFO slot has had its run: its task goes to the end of the ring, the oldest is next.
    #[cold]
    fn behind_the_ring(&self, task: NonNull<Header>) -> NonNull<Header> {
        match self.slot.ring.pop() {
            // Nothing waits there: nobody is treated unfairly.
            None => task,
            Some(oldest) => {
                self.waited.set(Waited::Ring);
                self.push(task);
                if self.tells_others() {
                    self.notify();
                }
                oldest
            }
        }
    }

    /// Makes a task that yielded visible, before `next`, or something unknown, runs.
    #[inline]
    pub(super) fn flush_yielded(&self, next: Option<NonNull<Header>>) {
        if let Some(task) = self.yielded.take() {
            // SAFETY: this member has its `Notified`, and so it is alive.
            let next = next.map(|next| unsafe { next.as_ref() }.type_key());
            self.push_beside(task, next.unwrap_or(quick::OF_NO_TASK), false);
        }
    }

    /// As [`flush_yielded`](Self::flush_yielded), before a poll that is mostly short: the watcher
    /// finds the task if it is not. Nobody is woken for it if there is one.
    #[inline]
    pub(super) fn flush_yielded_quietly(&self) {
        if let Some(task) = self.yielded.get() {
            self.yielded.set(None);
            self.push_quietly(task);
        }
    }

    #[inline(never)]
    fn push_quietly(&self, task: NonNull<Header>) {
        self.push(task);
        if self.shared.idle.load().wants_watcher() {
            self.notify();
        }
    }

    /// Polls a task from elsewhere; parks if there is none.
    #[cold]
    fn step_search(&self) -> Step {
        match self.look_elsewhere() {
            ControlFlow::Break(task) => self.poll(task),
            ControlFlow::Continue(step) => step,
        }
    }

    /// It has run out of its own tasks.
    fn note_end_of_run(&self) {
        if self.pace.times_this_run() {
            self.pace.ran_out(self.now_ns());
        }
    }

    /// Looks for a task elsewhere. If there is none: what this step was.
    pub(super) fn look_elsewhere(&self) -> ControlFlow<NonNull<Header>, Step> {
        if self.shared.is_shut_down() {
            return ControlFlow::Continue(Step::Exit);
        }
        if self.stands_aside() {
            self.note_end_of_run();
            self.stage.set(Stage::Searched);
            return ControlFlow::Continue(Step::Continue);
        }
        if let Some(task) = self.fetch() {
            return ControlFlow::Break(task);
        } else if self.looks_instead_of_parking() {
            return ControlFlow::Continue(Step::Continue);
        }
        self.note_end_of_run();
        if let Some(task) = self.search() {
            return ControlFlow::Break(task);
        }
        if !self.root_woken() && !self.looks_before_leaving() {
            self.stage.set(Stage::Searched);
        }
        ControlFlow::Continue(Step::Continue)
    }

    /// A task that was taken from another member's queue.
    pub(super) fn adopt(&self, task: NonNull<Header>) -> Notified {
        // SAFETY: queues hold the `Notified`s of their tasks.
        unsafe { Notified::from_raw(task) }
    }

    /// Puts all of this member's tasks where others find them.
    pub(super) fn give_up_tasks(&self) -> bool {
        let queues = std::iter::from_fn(|| {
            self.slot
                .batch
                .pop()
                .or_else(|| self.slot.lifo.take())
                .or_else(|| self.slot.ring.pop())
                .or_else(|| self.yielded.take())
        });
        let tasks: crate::runtime::scheduler::queues::injector::Chain<Header> = queues.collect();
        let any = tasks.len() > 0;
        if any {
            self.shared.injector.push_batch(tasks);
        }
        any
    }

    // ---- Clock and end

    /// Is it one of those whose statistics are told?
    pub(super) fn is_counted(&self) -> bool {
        self.index < self.shared.workers.max(1)
    }

    /// Counts the time that it was awake.
    #[inline]
    pub(super) fn was_busy(&self, now: u64) {
        let since = self.busy_since.replace(now);
        if since > 0 {
            self.slot.metrics.busy_ns.add(now.saturating_sub(since));
        }
    }

    /// The runtime's clock. It stands still in models, which have to be repeatable.
    #[inline]
    pub(super) fn now_ns(&self) -> u64 {
        if cfg!(volt_loom) { 0 } else { self.shared.driver_handle.clock.now_ns() }
    }

    /// The life of a worker thread.
    pub(crate) fn run_thread(&self) {
        let _seeded = self.shared.config.seed_choices(self.index);
        self.busy_since.set(self.now_ns());
        self.run();
        self.was_busy(self.now_ns());
        if !self.handed_over.get() {
            self.end();
        }
    }

    /// The end of a worker at shutdown.
    ///
    /// What is dropped here may call `block_in_place`, and wait in it for another task that is still
    /// to be dropped: the worker is handed over as ever, and ends on the other thread instead.
    pub(super) fn end(&self) {
        self.give_up_tasks();
        self.stop_searching();
        self.shared.wake_all();
        self.shared.shut_down_inside();
        if !self.handed_over.get() && self.shared.worker_ended() {
            self.is_last.set(true);
            self.shared.drain_to_the_last(None, || self.handed_over.get());
        }
    }
}

impl std::fmt::Debug for Worker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("index", &self.index)
            .field("stage", &self.stage.get())
            .field("searching", &self.searching.get())
            .field("roles", &self.roles.get())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
