//! One member in a crowd: who serves alone while others want the processors.
//!
//! Purpose: beside a program that takes one of two processors and waits for us (the client of a
//! server), two members and that program take turns, and each wake-up of one member by the other
//! is a wait for a processor. One member that serves all does more. So in a *crowd* one member, the
//! *attended* one, keeps the tasks of its ring to itself: its pushes wake nobody, and no other member
//! steals from it, as long as it has less than [`ALONE_NS`] of work there.
//!
//! What a crowd is, is told every [`WINDOW_NS`] by sums of the whole process ([`Judge`]), so that a
//! thread in `block_on` counts as a worker does. Enter: the members go to sleep very often, the process
//! got about one processor, and hardly one is idle. Leave: it gets more, or a processor is free, or
//! members hardly go to sleep for [`PATIENCE`] windows in a row. (Beside a program that computes they
//! do not, whoever serves; one member beside a client does, but for some windows, the best ones.)
//!
//! State: one word.
//!
//! | Value     | Means                                              | To                                   |
//! |-----------|----------------------------------------------------|--------------------------------------|
//! | OFF       | no crowd                                           | FREE: the judge                      |
//! | FREE      | a crowd, and nobody is attended                    | a member: itself, when it has work   |
//! | a member  | that one is attended                               | FREE: itself, or the watcher; another one: itself, if this one is parked |
//! | CLOSED    | the runtime shuts down                             |                                      |
//!
//! Any of them but CLOSED becomes OFF by the judge.
//!
//! Invariants:
//! 1. A ring is left to its member only while somebody else is the watcher, and the member runs
//!    ([`Shared::is_left_alone`]). So everybody who stops to be the watcher looks at the rings after
//!    that, as for any other work; who parks without a watcher sees the ring as work; and a watcher that
//!    would go to sleep for good looks at the ring first.
//! 2. The watcher looks as long as there is work in that ring, and at least every 4 ms while
//!    somebody is attended; a member whose poll count stood still since its last look, or whose polls took more than
//!    [`QUICK_NS`] on average over 8 ms, loses the privilege (`stall.rs`). So does one when the crowd is over.
//! 3. A member gives up the privilege ([`Worker::share_ring`]) before it polls anything that is not of a
//!    quick kind, after a long tick, after a blocking join, before `block_in_place`, and when a guest leaves.
//!    A shutdown takes it for good.
//! 4. Only tasks of the ring are left alone. What is in the injector is for all, also what the ring had no room
//!    for, and a batch of it, but for what did not fit and went to the ring; the LIFO slot is for the watcher.
//!
//! | Edge  | Release side         | Acquire side            | Carries | Model |
//! |-------|----------------------|-------------------------|---------|-------|
//! | [CR1] | `Crowd::release`, `Crowd::set`, `Worker::attend_in_crowd` | `Shared::is_left_alone` | whose ring is for all, and whose is not; SeqCst, as [IS1] with [ID3]: a member that parks sees it, or is woken; a watcher that goes to sleep for good sees it, or the push sees no watcher | none: under loom the fences of [ID1] stand between. Litmus tests of volt-models: `order_parking::a_lifo_push_and_a_retiring_watcher_do_not_miss_each_other` has its shape; `order_parking::who_becomes_attended_and_a_retiring_watcher_do_not_miss_each_other` |
//!
//! Progress: a push that wakes nobody has seen a watcher (1). While there is one, it looks (2), and
//! the ring either empties or is shared; when there is none, the ring is work like any other.
//!
//! Cost: one load for each tick and each sleep, of a word that is written every [`WINDOW_NS`]; then, by
//! one member, a sum of the members' sleeps, and two system calls if these are so many that the next window may
//! be one of a crowd, or this one is.
//!
//! Rejected: windows of 10 ms (they differ by a fifth among themselves); how long the members waited for
//! processors (beside programs that compute, two members get two shares, and one gets one); to stay only
//! while the one that is alone goes to sleep (that leaves the best windows); to stay while more polls are
//! done than with all before (after a window that was half empty, alone looks good for seconds).

#[cfg(volt_loom)]
// STD: in models of other things, loom should have no more to try than without this.
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use volt_sync::internal::primitive::{AtomicU64, AtomicUsize, Mutex};

use crate::runtime::scheduler::pacing::quick::QUICK_NS;
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::worker::Worker;

mod system;

use system::System;

/// The time between two judgements.
const WINDOW_NS: u64 = 30_000_000;
/// A window that took so many times as long tells nothing.
const STALE: u64 = 4;
/// Members that sleep once in so much time, each, sleep often.
const OFTEN_NS: u64 = 300_000;
/// While they sleep less than so many times less often, the system is not asked.
const NEAR: u64 = 2;
/// If all together sleep once in more than so much, they hardly do.
const SELDOM_NS: u64 = 3_000_000;
/// Windows in a row without sleeps, before the crowd is over.
const PATIENCE: u32 = 4;
/// Hundredths of a processor that the process gets in a crowd.
const LEAST: u64 = 25;
const MOST: u64 = 115;
/// Hundredths of a processor of the machine that are idle in a crowd, at most.
const IDLE: u64 = 70;
/// The work that a member keeps to itself.
pub(crate) const ALONE_NS: f32 = 2_000_000.0;

const OFF: usize = 0;
const FREE: usize = 1;
const CLOSED: usize = usize::MAX;

/// What the word says of a member that is attended.
const fn attended(index: usize) -> usize {
    index + 2
}

/// What is shared of it.
#[derive(Debug)]
pub(crate) struct Crowd {
    word: AtomicUsize,
    /// When the window is over.
    due_ns: AtomicU64,
    judge: Mutex<Judge>,
    /// The model is about crowds.
    #[cfg(volt_loom)]
    modelled: AtomicBool,
}

/// Sums since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    now_ns: u64,
    process_ns: u64,
    idle_ns: u64,
    parks: u64,
}

impl Sums {
    fn since(self, before: Self) -> Self {
        Self {
            now_ns: self.now_ns.saturating_sub(before.now_ns),
            process_ns: self.process_ns.saturating_sub(before.process_ns),
            idle_ns: self.idle_ns.saturating_sub(before.idle_ns),
            parks: self.parks.wrapping_sub(before.parks),
        }
    }
}

/// Who decides.
#[derive(Debug, Default)]
struct Judge {
    system: Option<System>,
    before: Sums,
    /// `before` has what the system says.
    asked: bool,
    crowd: bool,
    /// Windows in a row with hardly a sleep.
    seldom: u32,
}

impl Judge {
    /// A window may be over, at these sums, of which `ask` has those of the system: whether this is a
    /// crowd, of so many `workers`. None if the system does not say it any more.
    fn judge(
        &mut self,
        mut sums: Sums,
        workers: usize,
        ask: impl FnOnce() -> Option<(u64, u64)>,
    ) -> Option<bool> {
        let asks = self.depends_on_system(sums.since(self.before), workers);
        if asks {
            (sums.process_ns, sums.idle_ns) = ask()?;
        }
        let window = sums.since(self.before);
        self.before = sums;
        let asked_before = std::mem::replace(&mut self.asked, asks);
        if asks && asked_before {
            return Some(self.decide(window, workers));
        }
        (self.crowd, self.seldom) = (false, 0);
        Some(false)
    }

    /// False if this window is no crowd, and the next one does not become one, whatever the system says:
    /// a runtime that does little does not ask it.
    fn depends_on_system(&self, window: Sums, workers: usize) -> bool {
        let near = window.parks.saturating_mul(NEAR) >= often(window, workers);
        window.now_ns < STALE * WINDOW_NS && (self.crowd || near)
    }

    /// A window is over: whether this is a crowd, of so many `workers`.
    fn decide(&mut self, window: Sums, workers: usize) -> bool {
        let ns = window.now_ns;
        let gets = window.process_ns.saturating_mul(100) / ns.max(1);
        let idle = window.idle_ns.saturating_mul(100) / ns.max(1);
        let full = gets <= MOST && idle < IDLE && ns < STALE * WINDOW_NS;
        let often = window.parks >= often(window, workers);
        self.seldom = if window.parks < ns / SELDOM_NS { self.seldom + 1 } else { 0 };
        self.crowd =
            full && if self.crowd { self.seldom < PATIENCE } else { often && gets >= LEAST };
        if !self.crowd {
            self.seldom = 0;
        }
        self.crowd
    }
}

/// How often so many members sleep in a window, if they sleep often.
fn often(window: Sums, workers: usize) -> u64 {
    window.now_ns / OFTEN_NS * workers as u64
}

impl Crowd {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicUsize::new(OFF),
            due_ns: AtomicU64::new(u64::MAX),
            judge: Mutex::new(Judge::default()),
            #[cfg(volt_loom)]
            modelled: AtomicBool::new(false),
        }
    }

    /// False in a model that is not about crowds.
    #[inline]
    fn is_possible(&self) -> bool {
        #[cfg(volt_loom)]
        // ORD relaxed: set before the scheduler is shared.
        return self.modelled.load(Relaxed);
        #[cfg(not(volt_loom))]
        true
    }

    /// True if somebody is left alone, or soon may be.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        // ORD relaxed: a hint.
        self.is_possible() && !matches!(self.word.load(Relaxed), OFF | CLOSED)
    }

    #[inline]
    fn attends(&self, index: usize) -> bool {
        // ORD relaxed: a hint; of a member that asks for itself, it cannot be older than its own.
        self.is_possible() && self.word.load(Relaxed) == attended(index)
    }

    /// The judge has decided. Returns the member that was attended, and is no longer.
    fn set(&self, crowd: bool) -> Option<usize> {
        // ORD[CR1] release: SeqCst, before a look at the members' state.
        // ORD relaxed: failure, nothing has changed.
        let before = self.word.fetch_update(SeqCst, Relaxed, |word| match (crowd, word) {
            (true, OFF) => Some(FREE),
            (false, OFF | CLOSED) | (true, _) => None,
            (false, _) => Some(OFF),
        });
        before.ok()?.checked_sub(attended(0))
    }

    /// Member `index` is attended no longer. True if it was.
    fn release(&self, index: usize) -> bool {
        // ORD[CR1] release: SeqCst, before a look at the members' state.
        // ORD relaxed: failure, there is nothing to share.
        self.word.compare_exchange(attended(index), FREE, SeqCst, Relaxed).is_ok()
    }

    /// The runtime shuts down: nobody is left alone any more.
    pub(crate) fn close(&self) {
        if !self.is_possible() {
            return;
        }
        // ORD relaxed: members are told of the shutdown by itself.
        self.word.store(CLOSED, Relaxed);
        // ORD relaxed: as above.
        self.due_ns.store(u64::MAX, Relaxed);
    }
}

impl Shared {
    /// Looks out for crowds from now on, if the system says what has to be known for it.
    pub(crate) fn look_for_crowds(&self) {
        if self.workers < 2 || cfg!(volt_loom) {
            return;
        }
        let Some(system) = System::open(self.workers) else { return };
        let mut judge = self.crowd.judge.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        judge.system = Some(system);
        // ORD relaxed: a hint.
        self.crowd.due_ns.store(0, Relaxed);
    }

    /// True if what waits in the ring of member `index` is left to it.
    pub(crate) fn is_left_alone(&self, index: usize) -> bool {
        // ORD[CR1] acquire: SeqCst, after the members' state was changed.
        if !self.crowd.is_possible() || self.crowd.word.load(SeqCst) != attended(index) {
            return false;
        }
        // Killed by `runtime::scheduler::stalls::crowd::model::held_up`.
        #[cfg(not(volt_mutant = "unwatched"))]
        if !self.idle.load().is_watched(index) {
            return false;
        }
        !self.idle.is_parked(index)
    }

    /// True if member `index` is attended and has work, which nobody may have been told of. A hint: who is the watcher no
    /// longer looks at the rings again.
    pub(crate) fn is_kept(&self, index: usize) -> bool {
        // ORD relaxed: a hint.
        self.crowd.is_possible()
            && self.crowd.word.load(Relaxed) == attended(index)
            && self.slots[index].has_work()
    }

    /// True if there is something that is for the watcher only.
    pub(crate) fn relies_on_a_watcher(&self) -> bool {
        self.used_slots().iter().any(|slot| !slot.lifo.is_empty())
    }

    /// Member `index` is attended no longer: what is in its ring is for all.
    pub(crate) fn share_ring_of(&self, index: usize) {
        if self.crowd.attends(index) {
            self.share_ring_slow(index);
        }
    }

    #[cold]
    fn share_ring_slow(&self, index: usize) {
        // Killed by `runtime::scheduler::stalls::crowd::model::a_ring_that_is_shared_against_parking`.
        #[cfg(not(volt_mutant = "shared_quietly"))]
        if self.crowd.release(index) && self.slots[index].has_work() {
            self.notify();
        }
        #[cfg(volt_mutant = "shared_quietly")]
        self.crowd.release(index);
    }

    /// A window may be over.
    #[cold]
    fn judge_crowd(&self, now: u64, due: u64) {
        // ORD relaxed: whoever moves it does the work, under the lock.
        if self.crowd.due_ns.compare_exchange(due, now + WINDOW_NS, Relaxed, Relaxed).is_err() {
            return;
        }
        let mut judge = self.crowd.judge.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let parks = self.all_slots().map(|slot| slot.metrics.parks.get());
        let parks = parks.fold(0, u64::wrapping_add);
        let sums = Sums { now_ns: now, parks, ..Sums::default() };
        if sums.since(judge.before).now_ns < WINDOW_NS / 2 {
            // Somebody else was here meanwhile.
            return;
        }
        let system = judge.system.take();
        let crowd = system.and_then(|system| {
            let crowd = judge.judge(sums, self.workers, || system.read())?;
            judge.system = Some(system);
            Some(crowd)
        });
        if crowd.is_none() {
            // It does not say it any more.
            // ORD relaxed: a hint.
            self.crowd.due_ns.store(u64::MAX, Relaxed);
        }
        self.set_crowd(crowd.unwrap_or(false));
    }

    /// The crowd begins, or goes on, or is over: then what is in its member's ring is for all.
    fn set_crowd(&self, crowd: bool) {
        let Some(index) = self.crowd.set(crowd) else { return };
        // Killed by `runtime::scheduler::stalls::crowd::model::a_crowd_that_ends_against_parking`.
        #[cfg(not(volt_mutant = "ended_quietly"))]
        if self.slots[index].has_work() {
            self.notify();
        }
        #[cfg(volt_mutant = "ended_quietly")]
        let _ = index;
    }
}

impl Worker<'_> {
    /// At the end of a tick or a sleep.
    #[inline]
    pub(crate) fn look_for_crowd(&self, now: u64) {
        if cfg!(volt_loom) {
            return;
        }
        // ORD relaxed: a hint.
        let due = self.shared.crowd.due_ns.load(Relaxed);
        if now >= due {
            self.shared.judge_crowd(now, due);
        }
    }

    /// In a crowd: becomes the attended member, unless another one is that runs, or its polls are long.
    #[inline]
    pub(crate) fn attend(&self) {
        if self.shared.crowd.is_there() {
            self.attend_in_crowd();
        }
    }

    #[cold]
    fn attend_in_crowd(&self) {
        let crowd = &self.shared.crowd;
        // ORD relaxed: a hint.
        let word = crowd.word.load(Relaxed);
        let me = attended(self.index);
        if word == me && !self.has_little_work() {
            return self.share_ring();
        }
        // (Of a fresh member, whose kind no table knows, the pace is not known either.)
        let is_free = match word {
            OFF | CLOSED => false,
            FREE => true,
            other => other != me && self.shared.idle.is_parked(other - attended(0)),
        };
        // ORD relaxed: a hint.
        let kind = self.slot.kind.load(Relaxed);
        if is_free && self.has_little_work() && self.shared.quick.knows(kind) {
            // ORD[CR1] release: SeqCst, before a push relies on the watcher: one that retires sees it.
            // ORD relaxed: failure, somebody else was first.
            if crowd.word.compare_exchange(word, me, SeqCst, Relaxed).is_ok() {
                self.wake_drowsy_watcher();
            }
        }
    }

    /// True if its polls are known to be short, and what waits in its ring will not take long.
    fn has_little_work(&self) -> bool {
        let per_poll = self.pace.poll_ns();
        per_poll > 0.0
            && per_poll < QUICK_NS as f32
            && self.slot.ring.len() as f32 * per_poll < ALONE_NS
    }

    #[inline]
    pub(crate) fn is_attended(&self) -> bool {
        self.shared.crowd.attends(self.index)
    }

    /// True if others should be told of what is in its queues: in a crowd the attended member keeps
    /// what there is in its ring, unless that is too much, or nobody watches, or there is more elsewhere.
    /// Who is told to does so: the ring may have become one for all just now.
    #[must_use]
    #[inline]
    pub(crate) fn tells_others(&self) -> bool {
        if !self.is_attended() {
            return true;
        }
        let keeps = self.slot.batch.is_empty()
            && self.shared.injector.is_empty_for(self.choosy.get())
            && self.has_little_work()
            && self.shared.idle.load().has_watcher();
        if !keeps {
            self.release_ring();
        }
        !keeps
    }

    /// It is attended no longer, if it was.
    #[inline]
    pub(crate) fn share_ring(&self) {
        self.shared.share_ring_of(self.index);
    }

    /// The same, by who tells others of the ring next.
    #[inline]
    pub(crate) fn release_ring(&self) {
        if self.is_attended() {
            self.release_ring_slow();
        }
    }

    #[cold]
    fn release_ring_slow(&self) {
        let _was_attended = self.shared.crowd.release(self.index);
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
