//! How many tasks of a runtime are alive, counted by its members, each for itself.
//!
//! Purpose: a shutdown waits until no task is left, wherever it is: in a queue, in a poll, idle, or on
//! its way from one to another. Only idle tasks are in the owned list; all of them are counted here. A
//! member alone writes its two counts, so that a spawn and a completion cost a store each.
//!
//! Rejected: one count for the runtime (all members would write its line for each task); to ask each
//! member whether it has tasks (one that is on its way between two members, or with a thread that has
//! handed its worker over, is nobody's); to find them in the owned list, from the spawn on (two locks for
//! each task, and the lines of its neighbours there).
//!
//! | Who spawns           | counts            | finds that the runtime was closed                    |
//! |----------------------|-------------------|------------------------------------------------------|
//! | a worker             | by a store        | late: but it ends before the last one reads its count |
//! | a guest in `Runtime::block_on` | by a store | never: the call borrows the `Runtime`, whose end closes it |
//! | any other guest      | by a read-modify-write | by a look after that: [LV2]                     |
//! | a thread that is none | under the injector's push lock | under the same lock                          |
//!
//! Invariants:
//! 1. A task is counted as spawned before anybody else can have it, and as finished once: by its runner,
//!    when its future is gone (before that, if a shutdown took it out of the owned list, or it was
//!    refused: whoever drops the future then keeps the scheduler alive by itself). A thread that does not keep
//!    the scheduler alive uses it no more after that.
//! 2. A count is written by one thread at a time: that which is the member. Those of threads that are
//!    none are under the injector's push lock (`spawned`), or written by read-modify-writes (`finished`).
//! 3. After `Shared::close`, when all workers have ended, no task is counted as spawned and then queued.
//!
//! Why `Shared::has_tasks` can be believed then: it adds up the finished tasks first, and sees of each of
//! them that it was spawned ([LV1]). So equal sums are sums of the same tasks, and no other task is
//! queued (3).
//!
//! | Edge  | Release side          | Acquire side           | Carries | Model |
//! |-------|-----------------------|------------------------|---------|-------|
//! | [LV1] | `Tally::finish`, `Tally::finish_shared` | `Tally::finished` | that the task was spawned | `runtime::scheduler::lifecycle::living::model::nothing_finishes_before_it_is_spawned` |
//! | [LV2] | `Tally::spawned_exactly` | `Tally::spawn_visibly` | that the runtime was closed | `runtime::scheduler::lifecycle::living::model::a_spawn_is_counted_or_refused` |
//!
//! Cost: spawn and completion on a worker, or in `Runtime::block_on`: a store each. Another guest's spawn: 1
//! read-modify-write.

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

use volt_sync::internal::primitive::{self, Arc, AtomicBool, AtomicU64, AtomicUsize};

use super::threads::{BEFORE_PAUSES, wait_briefly};
use crate::runtime::context;
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::worker::Worker;
use crate::task::{Home, Notified};

/// What one member has spawned and finished. Wraps around.
pub(crate) struct Tally {
    spawned: AtomicU64,
    finished: AtomicU64,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self { spawned: AtomicU64::new(0), finished: AtomicU64::new(0) }
    }

    /// A task is about to be queued, by the only thread that writes this.
    #[inline]
    pub(crate) fn spawn(&self) {
        // ORD relaxed: whoever finishes the task has it from this thread, and see [LV1].
        self.spawned.store(self.spawned.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// The same, so that this thread sees that the runtime was closed, or who closed it sees the task.
    #[inline]
    fn spawn_visibly(&self) {
        // ORD[LV2] acquire: that the runtime was closed, if that came first.
        self.spawned.fetch_add(1, Acquire);
    }

    /// A task has ended on the only thread that writes this.
    #[inline]
    fn finish(&self) {
        // ORD relaxed: this thread wrote it, or the member before it ([GU1]).
        let finished = self.finished.load(Relaxed).wrapping_add(1);
        // ORD[LV1] release: that it was spawned.
        self.finished.store(finished, Release);
    }

    /// A task has ended on some thread.
    fn finish_shared(&self) {
        // ORD[LV1] release: that it was spawned; the threads before pass theirs on through this.
        self.finished.fetch_add(1, Release);
    }

    fn finished(&self) -> u64 {
        // ORD[LV1] acquire: that these were spawned.
        self.finished.load(Acquire)
    }

    /// How many were spawned, as a statistic.
    pub(crate) fn spawned(&self) -> u64 {
        // ORD relaxed: a statistic.
        self.spawned.load(Relaxed)
    }

    /// How many were spawned: each thread that spawns later, visibly, sees what this one did.
    fn spawned_exactly(&self) -> u64 {
        // ORD[LV2] release: that the runtime was closed. (A store of the member is not lost: this
        // writes what it reads.)
        self.spawned.fetch_add(0, Release)
    }

    /// How many tasks are alive, if `spawned` is asked for the numbers.
    fn alive<'a>(
        tallies: impl Iterator<Item = &'a Self> + Clone,
        spawned: impl Fn(&Self) -> u64,
    ) -> u64 {
        let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::wrapping_add);
        let finished = sum(&mut tallies.clone().map(Self::finished));
        sum(&mut tallies.map(spawned)).wrapping_sub(finished)
    }
}

/// Waits for timers and sockets in the end: nobody looks at these when the workers have ended, and a poll that waits for them on
/// its thread would wait for ever, and the shutdown for it.
pub(crate) struct DriverWaits {
    /// How many polls are in a `block_in_place` for which somebody else goes on as the member, or in what comes after that.
    in_place: AtomicUsize,
    ended: AtomicBool,
}

impl DriverWaits {
    pub(crate) fn new() -> Self {
        Self { in_place: AtomicUsize::new(0), ended: AtomicBool::new(false) }
    }
}

/// One poll (of a task, or of the future of a `block_on`) that is in a `block_in_place`, until this is dropped: a worker's until its end, as
/// it is no member any more.
pub(crate) struct IsInPlace(Arc<Shared>);

impl IsInPlace {
    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        // ORD relaxed: a hint, and who waits for the poll looks again.
        shared.waits.in_place.fetch_add(1, Relaxed);
        Self(shared)
    }
}

impl Drop for IsInPlace {
    fn drop(&mut self) {
        // ORD relaxed: a hint.
        self.0.waits.in_place.fetch_sub(1, Relaxed);
    }
}

impl Shared {
    /// Counts a task that the member `worker` of this scheduler spawns. False if the runtime was closed: it
    /// must not be queued.
    #[inline]
    pub(crate) fn count_spawned(&self, worker: &Worker<'_>) -> bool {
        let tally = &worker.slot.tally;
        if worker.spawns_visibly.get() {
            tally.spawn_visibly();
        } else {
            tally.spawn();
        }
        // ORD relaxed: [LV2]; for a worker, a hint; for who has borrowed the `Runtime`, always true.
        let open = !self.closed.load(Relaxed);
        if !open {
            tally.finish();
        }
        open
    }

    /// Counts a task that a thread spawns that is no member, under the injector's push lock. False as above.
    pub(crate) fn count_spawned_outside(&self) -> bool {
        // ORD relaxed: under the lock.
        let open = !self.closed.load(Relaxed);
        if open {
            self.outside.spawn();
        }
        open
    }

    /// A task has ended on this thread, or is about to be dropped by it.
    #[inline]
    pub(crate) fn count_finished(&self) {
        context::current_worker(|worker| match worker {
            Some(worker) if ptr::eq(&**worker.shared, self) => worker.slot.tally.finish(),
            _ => self.outside.finish_shared(),
        });
    }

    /// Cancels a task that came too late, and was not counted.
    #[cold]
    pub(crate) fn refuse(&self, task: Notified) {
        if let Some(slow) = &self.slow {
            slow.remove(task.header().id());
        }
        task.refuse();
    }

    /// From now on no task is accepted.
    pub(crate) fn refuse_all(&self) {
        // ORD relaxed: for guests [LV2], for threads outside the lock.
        self.injector.between_pushes(|| self.closed.store(true, Relaxed));
    }

    /// From now on no task is accepted, and none becomes idle. Drops those that are idle, and local ones before.
    pub(crate) fn close(&self) {
        self.refuse_all();
        self.config.home.iter().for_each(Home::cancel);
        self.owned.close_and_cancel(|| self.count_finished());
    }

    /// True if a task has been spawned and is not complete, and nobody is about to complete it as
    /// cancelled. Once the runtime is closed, and its workers have ended, false is for good.
    pub(crate) fn has_tasks(&self) -> bool {
        Tally::alive(self.tallies(), Tally::spawned_exactly) != 0
    }

    /// How many tasks have been spawned and are not complete.
    pub(crate) fn alive_tasks(&self) -> usize {
        let local = self.config.home.as_ref().map_or(0, Home::alive_tasks);
        Tally::alive(self.tallies(), Tally::spawned) as usize + local
    }

    /// How many tasks have ever been spawned.
    pub(crate) fn spawned_tasks(&self) -> u64 {
        self.tallies().map(Tally::spawned).fold(0, u64::wrapping_add)
    }

    /// Drops tasks until none is left, and ends all waits for the driver; before that if a poll is in `block_in_place`. Gives up at
    /// the deadline, and if `replaced`.
    pub(crate) fn drain_to_the_last(&self, deadline: Option<Instant>, replaced: impl Fn() -> bool) {
        let mut attempt = 0;
        while self.has_tasks() {
            // Somebody is about to hand a task over, or runs one (a guest's last poll).
            if self.drain() {
                // Others may follow soon.
                attempt = attempt.min(BEFORE_PAUSES);
            }
            if replaced() {
                return;
            }
            // ORD relaxed: a hint, and the loop looks again.
            if self.waits.in_place.load(Relaxed) != 0 {
                self.end_waits();
            }
            if deadline.is_some_and(|deadline| primitive::now() >= deadline) {
                self.injector.between_pushes(|| {
                    // ORD relaxed: under the lock. Who pushes has pushed before this, or sees it.
                    self.abandoned.store(true, Relaxed);
                    // ORD relaxed: under the lock. Who ends the last task looks later, or the look below
                    // finds none.
                    if !self.holds_itself.swap(true, Relaxed) {
                        std::mem::forget(self.to_arc());
                    }
                });
                self.drain();
                if self.has_tasks() {
                    return;
                }
            }
            wait_briefly(attempt);
            attempt += 1;
        }
        if let Some(slow) = &self.slow {
            slow.clear();
        }
        self.end_waits();
        // ORD relaxed: under the lock.
        if self.injector.between_pushes(|| self.holds_itself.swap(false, Relaxed)) {
            // SAFETY: the count that was kept above; the caller has another one.
            drop(unsafe { Arc::from_raw(self.pointer().as_ptr()) });
        }
    }

    /// Ends all waits for timers and sockets, also those that begin later.
    pub(crate) fn end_waits(&self) {
        // ORD relaxed: who finds it done, or about to be done, needs nothing of it.
        if !self.waits.ended.swap(true, Relaxed) {
            self.driver_handle.shutdown();
        }
    }

    /// Drops all queued tasks, whoever's they are, and those that another thread is about to drop. True if there
    /// was one in a queue.
    pub(crate) fn drain(&self) -> bool {
        self.owned.help_to_cancel(|| self.count_finished());
        let mut any = false;
        loop {
            let task =
                self.injector.pop().or_else(|| self.slots.iter().find_map(|slot| slot.pop_any()));
            let Some(task) = task else { return any };
            // SAFETY: taken from a queue, whose `Notified` it was.
            drop(unsafe { Notified::from_raw(task) });
            any = true;
        }
    }

    fn tallies(&self) -> impl Iterator<Item = &Tally> + Clone {
        self.slots.iter().map(|slot| &slot.tally).chain([&self.outside])
    }
}

#[cfg(all(test, volt_loom))]
mod model;
