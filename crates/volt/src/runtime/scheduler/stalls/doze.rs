//! The sleep of a drowsy watcher (`stall.rs`), which those put off that it looks after.
//!
//! Purpose: a runtime that does a little now and then needs somebody who notices if a poll of it does not end; and
//! nobody has to wake up as long as they do. So the watcher sleeps at an alarm
//! (`driver/alarm.rs`), and a member that wakes up sets it anew, if half of the time is over. One that is about to sleep,
//! as the last one, and seldom has something to do, turns it off: the watcher *rests*. What it does not see, as
//! it ends sooner than its sleep, they see by themselves (`Worker::judge_run`).
//!
//! State: one word: `AWAKE`, nobody sleeps here; `RESTS`, the alarm is off; else the time of the runtime's clock at which it goes
//! off. It is written, and the alarm set, under a lock.
//!
//! Invariant: if a watcher sleeps here, the alarm is set, or all other members are parked (or about to call
//! [`put_off`](Doze::put_off)). Who comes back from the driver's wait sets it before it calls wakers, which may block; but a
//! watcher that begins to rest in that moment takes it for parked.
//!
//! | Edge  | Release side | Acquire side | Carries | Model |
//! |-------|--------------|--------------|---------|-------|
//! | [DZ1] | `Doze::set`  | `Doze::put_off` | nothing but itself; SeqCst, as [ID3]: who gets up sees that the alarm is off, or is seen | none: under loom the fences of [ID1] stand between |
//!
//! Who turns it off writes the word, then looks whether all are parked; who gets up changes the members' state (`idle.rs`),
//! then reads the word. In one total order, one of them sees the other.
//!
//! Cost: `put_off` is a load; a lock and a system call once in [`HALF`], or at both ends of a rest.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use volt_sync::internal::primitive::{AtomicU64, Mutex, MutexGuard};

use super::stall::{CALM_LOOK, STALL_NS};
use crate::runtime::scheduler::idle::total_order;
use crate::runtime::scheduler::pacing::pace::LOOK_NS;
use crate::runtime::scheduler::pacing::quick;
use crate::runtime::scheduler::worker::Worker;

const AWAKE: u64 = 0;
const RESTS: u64 = 1;
/// The time after which the alarm is put off. Who wakes up less often lets the watcher rest.
const HALF: u64 = CALM_LOOK.as_nanos() as u64 / 2;
/// Who was up for long, in several polls, times so many.
const TIMED: u32 = 64;
const SKIPS: u32 = 16;

#[derive(Debug)]
pub(crate) struct Doze {
    until: AtomicU64,
    lock: Mutex<()>,
}

impl Doze {
    pub(crate) fn new() -> Self {
        Self { until: AtomicU64::new(AWAKE), lock: Mutex::new(()) }
    }

    /// The watcher is about to sleep, until the alarm goes off after `interval`. If that is None, it rests for as
    /// long as `all_parked`.
    pub(crate) fn begin(
        &self,
        now: u64,
        interval: Option<Duration>,
        all_parked: impl Fn() -> bool,
        alarm: impl Fn(Option<Duration>),
    ) {
        self.set(&self.lock(), now, interval, &alarm);
        if interval.is_none() {
            self.unless(all_parked, || now, alarm);
        }
    }

    /// The watcher is awake.
    pub(crate) fn end(&self) {
        let _lock = self.lock();
        // ORD relaxed: under the lock; a hint for those who have none.
        self.until.store(AWAKE, Relaxed);
    }

    /// A member that was parked is no longer. If it `goes_on` as always, the watcher may sleep on for the whole time.
    #[inline]
    pub(crate) fn put_off(
        &self,
        now: impl FnOnce() -> u64,
        goes_on: impl FnOnce() -> bool,
        alarm: impl Fn(Option<Duration>),
    ) {
        let until = self.load();
        if until == RESTS || until != AWAKE && goes_on() {
            let now = now();
            // Of a rest, which is a time that has passed, that is always true.
            if until.saturating_sub(now) < HALF {
                self.set_anew(until, now, alarm);
            }
        }
    }

    /// Unless somebody has done something since `seen`.
    #[cold]
    fn set_anew(&self, seen: u64, now: u64, alarm: impl Fn(Option<Duration>)) {
        let lock = self.lock();
        if self.load() == seen {
            self.set(&lock, now, Some(CALM_LOOK), alarm);
        }
    }

    /// A member is about to sleep: the watcher, if it dozes, rests for as long as `all_parked`. True if that is so from
    /// now on.
    pub(crate) fn rest(
        &self,
        now: impl FnOnce() -> u64,
        all_parked: impl Fn() -> bool,
        alarm: impl Fn(Option<Duration>),
    ) -> bool {
        let is_set = || !matches!(self.load(), AWAKE | RESTS);
        if !is_set() || !all_parked() {
            return false;
        }
        let lock = self.lock();
        let rests = is_set();
        if rests {
            self.set(&lock, 0, None, &alarm);
            drop(lock);
            self.unless(all_parked, now, alarm);
        }
        rests
    }

    /// True if a watcher sleeps here.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        // ORD relaxed: a hint.
        self.until.load(Relaxed) != AWAKE
    }

    /// The alarm is off, unless somebody got up meanwhile.
    fn unless(
        &self,
        all_parked: impl Fn() -> bool,
        now: impl FnOnce() -> u64,
        alarm: impl Fn(Option<Duration>),
    ) {
        // Killed by `runtime::scheduler::stalls::doze::model::who_gets_up_sets_an_alarm_that_is_off`.
        #[cfg(not(volt_mutant = "rests_blindly"))]
        if !all_parked() {
            self.set_anew(RESTS, now(), alarm);
        }
    }

    fn set(
        &self,
        _lock: &MutexGuard<'_, ()>,
        now: u64,
        after: Option<Duration>,
        alarm: impl Fn(Option<Duration>),
    ) {
        let at = |after: Duration| now.saturating_add(after.as_nanos() as u64).max(RESTS + 1);
        // ORD[DZ1] release: SeqCst, before a look at the members' state, if the alarm is off.
        self.until.store(after.map_or(RESTS, at), SeqCst);
        alarm(after);
        total_order();
    }

    #[inline]
    fn load(&self) -> u64 {
        total_order();
        // ORD[DZ1] acquire: SeqCst, after a change of the members' state.
        self.until.load(SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Worker<'_> {
    /// Sleeps as a drowsy watcher, or rests: the reasons to wake up.
    pub(crate) fn doze(&self) -> u32 {
        if !self.park.enter_alarm() {
            return self.park.take();
        }
        let (doze, interval) = (&self.shared.sleep.doze, self.watch.get().alarm_after());
        doze.begin(self.now_ns(), interval, self.all_parked(), self.alarm());
        self.shared.driver_handle.alarm.sleep();
        doze.end();
        self.park.take()
    }

    /// This member, which was parked or is new, runs: a watcher that dozes may do so for longer, if nothing else does.
    #[inline]
    pub(crate) fn put_off_watcher(&self, now: impl FnOnce() -> u64) {
        let shared = self.shared;
        let goes_on = || !shared.idle.load().others_run() && !shared.crowd.is_there();
        shared.sleep.doze.put_off(now, goes_on, self.alarm());
    }

    /// This member comes back from a wait in the driver. What it calls there may block.
    pub(crate) fn end_watchers_rest(&self) {
        self.shared.sleep.doze.put_off(|| self.now_ns(), || false, self.alarm());
    }

    /// This member sleeps now: if it seldom has something to do, the watcher may rest meanwhile.
    pub(crate) fn let_watcher_rest(&self) {
        if !self.rhythm.is_slow() || self.shared.crowd.is_there() {
            return;
        }
        if self.shared.sleep.doze.rest(|| self.now_ns(), self.all_parked(), self.alarm()) {
            self.rhythm.rests();
        }
    }

    fn all_parked(&self) -> impl Fn() -> bool {
        let idle = &self.shared.idle;
        || idle.load().all_parked()
    }

    fn alarm(&self) -> impl Fn(Option<Duration>) {
        let alarm = &self.shared.driver_handle.alarm;
        |after| alarm.set(after)
    }

    /// This member parks. The watcher, if it dozes, does not see polls that end before its sleep does, and the member has
    /// left the driver to nobody meanwhile. So it looks for how long it was up: if that was one poll, and a long
    /// one, its kind is not quick; if it may have been any of several, the next ones are timed. (Wakers that it called
    /// meanwhile, and a time without a processor, count as well: so nothing is decided for good.)
    #[inline]
    pub(crate) fn judge_run(&self) {
        let judges = self.shared.sleep.doze.is_used();
        if judges || self.is_counted() {
            let now = self.now_ns();
            self.was_busy(now);
            if judges {
                self.judge_run_at(now);
            }
        }
    }

    #[cold]
    fn judge_run_at(&self, now: u64) {
        if self.run.took(now) < STALL_NS {
            return;
        }
        let polls = self.slot.polls();
        // ORD relaxed: this member wrote it.
        let kind = self.slot.kind.load(Relaxed);
        match self.run.polls(polls) {
            0 => {}
            // (What was set aside last hides whose poll it was.)
            1 if kind != quick::OF_NOBODY => {
                let _ = self.shared.saw_slow_poll(self.slot, polls, kind);
            }
            _ => self.run.times_the_next(),
        }
    }

    /// A poll of `kind` took so long. If that is a look's time or more, and this member has done `steps` by now, so nothing else
    /// meanwhile, the kind is not quick.
    pub(crate) fn judge_poll(&self, took: u64, steps: u64, kind: usize) {
        if took < LOOK_NS || self.handed_over.get() || self.slot.steps() != steps {
            return;
        }
        if took < STALL_NS {
            self.shared.is_not_quick(kind);
        } else if self.shared.quick.knows(kind) || self.shared.untimed.knows(kind) {
            let _ = self.shared.saw_slow_poll(self.slot, self.slot.polls(), kind);
        }
    }
}

/// What a member has done since it woke up, and what it does about it.
#[derive(Debug)]
pub(crate) struct Run {
    /// When that was; 0 if it has not slept yet.
    since_ns: Cell<u64>,
    /// Its polls before.
    polls: Cell<u64>,
    /// So many polls are timed, whatever is known of their kinds.
    timed: Cell<u32>,
}

impl Run {
    pub(crate) fn new() -> Self {
        Self { since_ns: Cell::new(0), polls: Cell::new(0), timed: Cell::new(0) }
    }

    /// It woke up. How long after it did so before; 0 if it did not.
    pub(crate) fn begin(&self, now: u64, polls: u64) -> u64 {
        let since = self.took(now);
        self.since_ns.set(now);
        self.polls.set(polls);
        since
    }

    fn took(&self, now: u64) -> u64 {
        let since = self.since_ns.get();
        if since == 0 { 0 } else { now.saturating_sub(since) }
    }

    fn polls(&self, polls: u64) -> u64 {
        polls.wrapping_sub(self.polls.get())
    }

    /// A poll goes on that was interrupted by others.
    pub(crate) fn poll_goes_on(&self) {
        self.polls.set(self.polls.get().wrapping_sub(1));
    }

    /// One of several polls was long, and nobody knows which.
    pub(crate) fn times_the_next(&self) {
        self.timed.set(TIMED);
    }

    /// True if the next poll is one of those that are timed; counts it.
    #[inline]
    pub(crate) fn takes_timed(&self) -> bool {
        let left = self.timed.get().checked_sub(1);
        left.inspect(|&left| self.timed.set(left)).is_some()
    }
}

/// How seldom a member wakes up. One that does so for several things in a row, each soon after the other, cannot tell
/// the last of them: it lets the watcher rest in vain, and does not try again for some time.
#[derive(Debug)]
pub(crate) struct Rhythm {
    is_slow: Cell<bool>,
    rested: Cell<bool>,
    /// So many times it was slow, and does not try.
    skips: Cell<u32>,
}

impl Rhythm {
    pub(crate) fn new() -> Self {
        Self { is_slow: Cell::new(false), rested: Cell::new(false), skips: Cell::new(0) }
    }

    /// It woke up, so long after it did so before.
    pub(crate) fn woke(&self, since: u64) {
        let is_slow = since >= HALF;
        if self.rested.replace(false) && !is_slow {
            self.skips.set(SKIPS);
        }
        let skips = self.skips.get();
        if is_slow {
            self.skips.set(skips.saturating_sub(1));
        }
        self.is_slow.set(is_slow && skips == 0);
    }

    fn is_slow(&self) -> bool {
        self.is_slow.get()
    }

    fn rests(&self) {
        self.rested.set(true);
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
