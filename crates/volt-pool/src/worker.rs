//! One thread of a pool: where it finds work, and what it does while it waits.
//!
//! A *guest* is a thread from outside that forks, or opens a scope, in a pool: for that time it has
//! a record too, so that it works in place, and the others take from it. It queues nothing in it.
//!
//! Purpose: the record of a thread, which the others read to steal from it; the search; waiting by
//! helping. `fork.rs` has the part for `join`.
//!
//! Order of the search: mail for this thread, own ring, own overflow queue, the pool's queue, then
//! the others in random order (random start and a step coprime to their number, so that each is
//! visited once): the fork on offer, the overflow queue, half of the ring, the rest of a scope's
//! chunk. Every 61st search looks at the pool's queue first, so that a thread which feeds itself
//! cannot starve it.
//!
//! A thread that waits for a frame runs only what descends from that frame (`frame.rs` says why), and
//! parts of broadcasts for which a thread waits as well (`broadcast.rs`).
//!
//! Invariants:
//! 1. The cells, the mail's receiving and the ring's producer side belong to the thread itself.
//! 2. A record lives as long as the pool's core, which its thread holds.
//! 3. Tasks in `held` belong to one scope, which lives until they have run.
//!
//! | Edge | Release side | Acquire side | Carries | Model that fails without it |
//! |------|--------------|--------------|---------|-----------------------------|
//! | [WK1] | `Worker::help`, its own wait | `Worker::help`, along the waits of others | the record of the thief | `the_thief_of_the_thief_is_seen_whole` |

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use volt_sync::internal::primitive::{AtomicPtr, const_thread_local, fence};
use volt_sync::internal::{CachePadded, Parker};

use crate::buffer::{Buffer, CAPACITY};
use crate::engine::Core;
use crate::fork::{Fork, ForkStack, Promoted};
use crate::frame::{Frame, Lineage, Outcome};
use crate::held::Held;
use crate::made::Made;
use crate::mail::Mailbox;
use crate::offer::Offer;
use crate::parking;
use crate::queue::{Closed, Queue};
use crate::scope::State;
use crate::spin::Spin;
use crate::task::{Action, Task, TaskList};

const_thread_local! {
    static CURRENT: Cell<*const Worker> = Cell::new(ptr::null());
}

/// The calling thread's record; null outside of pools.
#[inline(always)]
pub(crate) fn current() -> *const Worker {
    CURRENT.with(Cell::get)
}

/// The calling thread's record, if it is a thread of a pool.
#[inline(always)]
pub(crate) fn with_current<R>(work: impl FnOnce(Option<&Worker>) -> R) -> R {
    // SAFETY: set by the thread itself, whose record outlives its run (invariant 2).
    work(unsafe { current().as_ref() })
}

/// What a search finds.
pub(crate) enum Work {
    Task(NonNull<Task>),
    Fork(NonNull<Fork>),
}

/// What a thread may help with while it waits.
pub(crate) enum Help<'a> {
    /// The work of whoever took this fork.
    Thief(&'a Promoted),
    /// A scope's tasks, and what descends from them.
    Scope(&'a State),
    /// Only what comes back to this thread by mail.
    Mail,
}

/// True if `origin` is that of a broadcast in which a thread does its part while it waits for anything: see
/// `broadcast.rs`.
///
/// # Safety
/// 1. `origin` is null, or that of unfinished mail.
unsafe fn joins_in(origin: *const Frame) -> bool {
    // SAFETY: passed on (1).
    let is_broadcast = unsafe { origin.as_ref() }.is_some_and(Frame::is_broadcast);
    // SAFETY: passed on (1).
    is_broadcast && unsafe { Frame::has_thread_waiting(origin) }
}

pub(crate) struct Worker {
    pub(crate) fork: CachePadded<ForkStack>,
    pub(crate) offer: CachePadded<Offer>,
    pub(crate) held: Held,
    /// The thief for whose result this thread waits: where its thief's helpers look next.
    waits_for: AtomicPtr<Worker>,
    buffer: Buffer,
    overflow: Queue,
    mail: Mailbox,
    current: Cell<*const Frame>,
    random: Cell<u32>,
    tick: Cell<u32>,
    core: *const Core,
    /// The place in the roster.
    index: usize,
    /// The number among the pool's threads; `None` for guests.
    thread: Option<usize>,
    /// That of the thread which uses the record. A guest's changes under the lock of the guests.
    parker: Cell<&'static Parker>,
    pub(crate) made: Made,
}

// SAFETY: the fields that are not atomic belong to the thread itself (invariant 1); the others
// reach the record through `&Worker` and use only the atomic ones.
unsafe impl Sync for Worker {}
// SAFETY: made by the thread that starts, dropped by whoever drops the core, when it has ended.
unsafe impl Send for Worker {}

impl Worker {
    pub(crate) fn new(core: *const Core, index: usize, thread: Option<usize>) -> Self {
        Self {
            fork: CachePadded::new(ForkStack::new()),
            offer: CachePadded::new(Offer::new()),
            held: Held::new(),
            waits_for: AtomicPtr::new(ptr::null_mut()),
            buffer: Buffer::new(),
            overflow: Queue::new(),
            mail: Mailbox::new(),
            current: Cell::new(ptr::null()),
            random: Cell::new((index as u32).wrapping_mul(0x9E37_79B9) | 1),
            tick: Cell::new(0),
            core,
            index,
            thread,
            parker: Cell::new(parking::mine()),
            made: Made::new(),
        }
    }

    /// Makes this the calling thread's record, or with null ends that.
    pub(crate) fn enter(this: *const Self) {
        CURRENT.with(|current| current.set(this));
    }

    #[inline(always)]
    pub(crate) fn core(&self) -> &Core {
        // SAFETY: the core outlives its workers (invariant 2).
        unsafe { &*self.core }
    }

    /// The number among the pool's threads; `None` for guests.
    pub(crate) fn thread(&self) -> Option<usize> {
        self.thread
    }

    /// For the thread that uses the record, and of a pool's own thread for everybody. Of a guest also
    /// for whoever has the lock of the guests.
    pub(crate) fn parker(&self) -> &'static Parker {
        self.parker.get()
    }

    /// Makes the record that of a guest with this parker. The caller has the lock of the guests.
    pub(crate) fn adopt(&self, parker: &'static Parker) {
        self.parker.set(parker);
    }

    /// The frame of which the running code is a part.
    #[inline(always)]
    pub(crate) fn current(&self) -> *const Frame {
        self.current.get()
    }

    /// Runs `work` as a part of `frame`. The open forks of the code that called it are out of reach
    /// meanwhile, since they are not a part of `frame`.
    #[inline]
    pub(crate) fn within<R>(&self, frame: *const Frame, work: impl FnOnce() -> R) -> R {
        struct Restore<'a>(&'a Worker, *const Frame, usize);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.current.set(self.1);
                self.0.fork.reveal(self.2);
            }
        }
        let _restore = Restore(self, self.current.replace(frame), self.fork.hide());
        work()
    }

    #[inline]
    pub(crate) fn run_task(&self, task: NonNull<Task>) {
        // SAFETY: scheduled, so alive.
        let origin = unsafe { Task::origin(task) };
        // SAFETY: the caller took it out of its queue.
        self.within(origin, || unsafe { Task::call(task, Action::Run) });
    }

    fn run_fork(&self, fork: NonNull<Fork>) {
        // SAFETY: claimed, so alive and offered.
        let promoted = unsafe { Fork::promoted(fork.as_ptr()) };
        promoted.set_thief(self);
        let frame: *const Frame = &raw const promoted.frame;
        // SAFETY: claimed, run once.
        self.within(frame, || unsafe { Fork::execute(fork.as_ptr()) });
        // SAFETY: ours until this.
        unsafe { Frame::finish(frame, Outcome::Done) };
    }

    pub(crate) fn run(&self, work: Work) {
        match work {
            Work::Task(task) => self.run_task(task),
            Work::Fork(fork) => self.run_fork(fork),
        }
    }

    /// Queues a task on this thread. The caller notifies.
    ///
    /// # Safety
    /// 1. This is the calling thread's record; the task is scheduled and in no queue.
    #[inline]
    pub(crate) unsafe fn push(&self, task: NonNull<Task>) {
        // SAFETY: the owner's call (1).
        if let Err(task) = unsafe { self.buffer.push(task) } {
            let mut list = TaskList::new();
            // SAFETY: the owner's call (1).
            unsafe { self.buffer.overflow(task, &mut list) };
            if let Some(chain) = list.take() {
                // SAFETY: out of the ring, so in no queue. This queue is never closed.
                let _ = unsafe { self.overflow.push(chain) };
            }
        }
    }

    /// Queues a chain on this thread. The caller notifies.
    ///
    /// # Safety
    /// 1. The tasks are scheduled and in no queue.
    pub(crate) unsafe fn push_chain(&self, chain: (NonNull<Task>, NonNull<Task>)) {
        // SAFETY: passed on (1). This queue is never closed.
        let _ = unsafe { self.overflow.push(chain) };
    }

    /// Puts a task into this thread's mail. The caller wakes it. Refused when the thread has left.
    ///
    /// # Safety
    /// 1. The task is scheduled and in no queue.
    pub(crate) unsafe fn post(&self, task: NonNull<Task>) -> Result<(), Closed> {
        // SAFETY: passed on (1).
        unsafe { self.mail.post(task) }
    }

    pub(crate) fn has_mail(&self) -> bool {
        self.mail.has_new()
    }

    /// Takes one piece of mail that this thread may run while it waits for `frame`, or any if that is
    /// null.
    fn take_mail(&self, frame: *const Frame) -> Option<NonNull<Task>> {
        // SAFETY: the thread's own (invariant 1).
        if unsafe { self.mail.is_empty() } {
            return None;
        }
        let fits = |origin: *const Frame| {
            frame.is_null()
                // SAFETY: alive: of unfinished mail, or of the order of an errand, with the order.
                || unsafe { origin.as_ref() }.is_some_and(Frame::has_ended)
                // SAFETY: this mail is unfinished. (An errand that ends just now is a part of what this
                // thread waits for, further down: those are the ancestors.)
                || unsafe { Frame::descends(origin, frame) }
                // SAFETY: as for the other one, unfinished mail.
                || unsafe { joins_in(origin) }
        };
        // SAFETY: the thread's own (invariant 1), which `fits` does not use.
        unsafe { self.mail.take(fits) }
    }

    /// Looks for work. The flag says that there may be more.
    pub(crate) fn find(&self) -> Option<(Work, bool)> {
        let core = self.core();
        if let Some(task) = self.take_mail(ptr::null()) {
            return Some((Work::Task(task), false));
        }
        self.tick.set(self.tick.get().wrapping_add(1));
        if self.tick.get() % 61 == 0 {
            if let Some(mut consumer) = core.injector.try_lock() {
                let task = consumer.pop();
                let more = consumer.unlock();
                if let Some(task) = task {
                    return Some((Work::Task(task), more));
                }
            }
        }
        // SAFETY: the owner's call.
        if let Some(task) = unsafe { self.buffer.pop() } {
            return Some((Work::Task(task), false));
        }
        self.take_from(&self.overflow)
            .or_else(|| self.take_from(&core.injector))
            .map(|(task, more)| (Work::Task(task), more))
            .or_else(|| self.steal())
    }

    /// Takes one task of `queue`, and moves up to half a ring of others into the own ring, which is
    /// empty. True if others may find something now.
    fn take_from(&self, queue: &Queue) -> Option<(NonNull<Task>, bool)> {
        let mut consumer = queue.try_lock()?;
        let first = consumer.pop();
        let mut moved = false;
        for _ in 0..CAPACITY / 2 {
            let Some(task) = consumer.pop() else { break };
            // SAFETY: the owner's call. There is room, since the ring was empty.
            if let Err(task) = unsafe { self.buffer.push(task) } {
                consumer.put_back(task);
                break;
            }
            moved = true;
        }
        let left = consumer.unlock();
        first.map(|task| (task, moved || left))
    }

    /// Calls `visit` for each other worker of the pool, in random order, until it finds something.
    fn others<R>(&self, mut visit: impl FnMut(&Self) -> Option<R>) -> Option<R> {
        let workers = &self.core().workers;
        let count = workers.len();
        if count < 2 {
            return None;
        }
        let random = self.next_random();
        let start = random % count;
        let mut step = 1 + (random >> 16) % (count - 1);
        while gcd(step, count) != 1 {
            step -= 1;
        }
        let mut at = start;
        for _ in 0..count {
            if at != self.index {
                if let Some(found) = workers.get(at).and_then(&mut visit) {
                    return Some(found);
                }
            }
            at = (at + step) % count;
        }
        None
    }

    /// Xorshift.
    fn next_random(&self) -> usize {
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        self.random.set(random);
        random as usize
    }

    fn steal(&self) -> Option<(Work, bool)> {
        self.others(|victim| {
            if let Some(fork) = victim.offer.claim() {
                // There may be a second one where this came from.
                victim.fork.ask();
                return Some((Work::Fork(fork), false));
            }
            if let Some((task, more)) = self.take_from(&victim.overflow) {
                return Some((Work::Task(task), more));
            }
            // SAFETY: the caller owns its ring, which is empty: `find` popped in vain, and nobody
            // else pushes.
            if let Some((task, moved)) = unsafe { victim.buffer.steal_into(&self.buffer) } {
                return Some((Work::Task(task), moved > 0));
            }
            self.reclaim(victim)?;
            // SAFETY: the owner's call.
            let task = unsafe { self.buffer.pop() }?;
            Some((Work::Task(task), false))
        })
    }

    /// Takes the rest of a chunk from a thread that is busy with one of its tasks, and gives it
    /// back to its scope.
    fn reclaim(&self, victim: &Self) -> Option<()> {
        if victim.held.is_empty() {
            return None;
        }
        let rest = victim.held.take()?;
        // SAFETY: taken, so ours; a scope's tasks (invariant 3).
        unsafe { State::put_back(rest) };
        Some(())
    }

    /// Asks all others to offer a fork.
    pub(crate) fn ask_all(&self) {
        let _ = self.others(|victim| {
            victim.fork.ask();
            None::<()>
        });
    }

    /// True if this thread has something that others could take. Exact for what happened before the
    /// caller's fence, except for forks that nobody asked for.
    pub(crate) fn has_work(&self) -> bool {
        !self.buffer.is_empty()
            || self.overflow.is_waiting()
            || !self.offer.is_empty()
            || !self.held.is_empty()
    }

    /// Wakes somebody for the fork that was just offered: the nearest ancestor's owner who sleeps,
    /// if the pool's own sleepers are none, since that one may help with nothing else.
    #[cold]
    pub(crate) fn announce_offer(&self) {
        // ORD SeqCst fence: between publishing and looking for a sleeper; pairs with `Frame::sleep`.
        fence(SeqCst);
        let core = self.core();
        if !core.sync.has_free_idle() {
            let mut frame = self.current();
            // SAFETY: null, or an ancestor of the code that runs here, so alive.
            while let Some(ancestor) = unsafe { frame.as_ref() } {
                // SAFETY: null, or a thread that waits for the ancestor.
                let owner = unsafe { ancestor.owner().as_ref() };
                let can_help = owner.is_some_and(|owner| ptr::eq(owner.core(), core));
                if can_help && ancestor.call_helper() {
                    return;
                }
                frame = ancestor.parent();
            }
        }
        core.notify_elsewhere();
    }

    /// Waits for `frame`, which this thread owns, and helps meanwhile.
    #[cold]
    pub(crate) fn wait(&self, frame: &Frame, help: Help<'_>) -> Outcome {
        let mut spin = Spin::new(self.core());
        let outcome = loop {
            if let Some(outcome) = frame.outcome() {
                break outcome;
            }
            if self.help(frame, &help) {
                spin = Spin::new(self.core());
            } else if !spin.once() {
                self.ask_related(&help);
                frame.sleep(|| self.can_help(frame, &help));
            }
        };
        // ORD relaxed: a hint.
        self.waits_for.store(ptr::null_mut(), Relaxed);
        outcome
    }

    /// One round of waiting for `frame` with nothing to help with but mail.
    pub(crate) fn wait_once(&self, frame: &Frame, reconsider: impl Fn() -> bool) {
        if !self.help(frame, &Help::Mail) {
            frame.sleep(|| self.has_mail() || reconsider());
        }
    }

    /// Runs one piece of work that descends from `frame`, if there is any.
    fn help(&self, frame: &Frame, help: &Help<'_>) -> bool {
        if let Some(task) = self.take_mail(frame) {
            if let Help::Scope(scope) = help {
                // What this thread may have been called for, and the mail may be long.
                let holds_some = |victim: &Self| victim.held.is_of(*scope).then_some(());
                if self.others(holds_some).is_some() {
                    self.core().notify();
                }
            }
            self.run_task(task);
            return true;
        }
        match help {
            Help::Mail => false,
            Help::Thief(promoted) => {
                let mut thief = promoted.thief();
                // ORD[WK1] release: the thief's record.
                self.waits_for.store(thief.cast_mut(), Release);
                // The thief, and whoever it waits for.
                for _ in 0..8 {
                    // SAFETY: null, or a record of this pool (invariant 2).
                    let Some(victim) = (unsafe { thief.as_ref() }) else { break };
                    if self.help_victim(victim, frame) {
                        return true;
                    }
                    // ORD[WK1] acquire: the record.
                    thief = victim.waits_for.load(Acquire);
                }
                false
            }
            Help::Scope(scope) => {
                if scope.run_chunk(self) {
                    return true;
                }
                let ancestor = Lineage::of(frame);
                self.others(|victim| {
                    let holds_some = victim.held.is_of(*scope);
                    if holds_some && self.reclaim(victim).is_some() && scope.run_chunk(self) {
                        return Some(());
                    }
                    let related = victim.offer.is_related(ancestor);
                    (related && self.help_victim(victim, frame)).then_some(())
                })
                .is_some()
            }
        }
    }

    /// Runs a fork that `victim` offers if it descends from `frame`. One that only seemed to is
    /// returned.
    fn help_victim(&self, victim: &Self, frame: &Frame) -> bool {
        victim.made.seen();
        let Some(fork) = victim.offer.claim_related(Lineage::of(frame)) else { return false };
        // SAFETY: claimed, so alive and offered.
        let offered = unsafe { &Fork::promoted(fork.as_ptr()).frame };
        // SAFETY: claimed and not run, so unfinished.
        if unsafe { Frame::descends(offered, frame) } {
            victim.fork.ask();
            self.run_fork(fork);
            return true;
        }
        // SAFETY: claimed, and nobody runs it: its owner will.
        unsafe { Frame::finish(offered, Outcome::Returned) };
        false
    }

    fn ask_related(&self, help: &Help<'_>) {
        match help {
            Help::Mail => {}
            Help::Thief(promoted) => {
                // SAFETY: null, or a record of this pool (invariant 2).
                if let Some(thief) = unsafe { promoted.thief().as_ref() } {
                    thief.fork.ask();
                }
            }
            Help::Scope(_) => self.ask_all(),
        }
    }

    /// True if `help` would probably find something. Called after the sleep was announced.
    fn can_help(&self, frame: &Frame, help: &Help<'_>) -> bool {
        if self.has_mail() {
            return true;
        }
        let ancestor = Lineage::of(frame);
        match help {
            Help::Mail => false,
            Help::Thief(promoted) => {
                // SAFETY: null, or a record of this pool (invariant 2).
                let thief = unsafe { promoted.thief().as_ref() };
                thief.is_some_and(|thief| thief.offer.is_related(ancestor))
            }
            Help::Scope(scope) => {
                let has_some = |v: &Self| v.held.is_of(*scope) || v.offer.is_related(ancestor);
                scope.has_tasks() || self.others(|v| has_some(v).then_some(())).is_some()
            }
        }
    }

    /// The thread's life after its start.
    pub(crate) fn live(&self) {
        let core = self.core();
        let mut waking = false;
        let mut searched = false;
        // Notifications of several queues are one bit: who has taken it looks at all of them.
        let mut notified = false;
        loop {
            // The seed waits before it looks for the first time: it then consumes the notification
            // that it was started for.
            let found = if searched || waking { self.search(&mut waking) } else { None };
            if let Some((work, more)) = found {
                if waking {
                    waking = false;
                    core.found(more);
                } else if more || notified && core.has_work() {
                    core.notify();
                }
                notified = false;
                self.run(work);
                searched = true;
                continue;
            }
            if core.is_abandoned() {
                return self.leave();
            }
            match core.sync.wait(waking, || self.has_mail()) {
                crate::sync_word::Waited::Search { waking: role } => {
                    waking = role;
                    searched = true;
                    notified = true;
                }
                crate::sync_word::Waited::Shutdown => return self.leave(),
            }
        }
    }

    /// The thread's last work. Somebody waits for each piece of mail, perhaps a thread for whose end
    /// the shutdown waits: so none is left behind, and what comes later is done by its sender.
    pub(crate) fn leave(&self) {
        // Killed by `worker::model::mail_is_delivered_or_refused`.
        #[cfg(not(volt_mutant = "leave_closes_the_mail"))]
        self.mail.close();
        while let Some(task) = self.take_mail(ptr::null()) {
            self.run_task(task);
        }
        while !self.core().is_abandoned() {
            let Some((work, _)) = self.find() else { return };
            self.run(work);
        }
    }

    /// Looks for work, and spins for a while if nobody else does.
    fn search(&self, waking: &mut bool) -> Option<(Work, bool)> {
        if self.core().is_abandoned() {
            return None;
        }
        if let Some(found) = self.find() {
            return Some(found);
        }
        self.ask_all();
        if !*waking {
            *waking = self.core().sync.begin_search();
        }
        if *waking {
            let mut spin = Spin::searching(self.core());
            while spin.once() {
                if let Some(found) = self.find() {
                    return Some(found);
                }
            }
            self.ask_all();
        }
        None
    }

    /// Forgets what a panic of a raw task left behind.
    pub(crate) fn reset(&self) {
        self.current.set(ptr::null());
    }

    /// Takes everything that is queued here. For the end of the pool, when its threads have ended.
    pub(crate) fn drain(&self, into: &mut TaskList) {
        if self.thread.is_none() {
            // Guests queue nothing, and may be at work.
            return;
        }
        // SAFETY: the thread has ended, so the caller is the owner now.
        while let Some(task) = unsafe { self.buffer.pop() } {
            // SAFETY: out of the ring.
            unsafe { into.append(task) };
        }
        self.overflow.drain(into);
        // SAFETY: the thread has ended.
        unsafe { self.mail.drain(into) };
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
