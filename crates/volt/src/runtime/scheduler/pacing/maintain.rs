//! What a member does between two ticks, and where it puts what the driver has for it.
//!
//! Purpose: among tasks that compute for milliseconds in each poll, what a socket or a timer makes
//! runnable waits for the poll that is under way, and not also for those of the ring. If that poll was
//! a long one of a task from the ring, what the look at the driver finds goes into the batch, which
//! is before the ring.
//!
//! Only tasks of quick kinds do so, and only while the batch holds nothing of the injector, which is older.
//!
//! The ring is not starved: such a look follows a long poll from the ring only, and a long poll from
//! the batch sends the rest of it behind the ring. So there is at most one long poll of a task that
//! overtook, for each of the ring.
//!
//! Rejected: the LIFO slot for what is found, which has one place; always before the ring, since a
//! server's sockets would run at once, each time a few of them, instead of all in turn.

use std::ptr::NonNull;

use super::pace::Waited;
use super::quick::QUICK_NS;
use crate::reactor::Why;
use crate::runtime::scheduler::idle::Summary;
use crate::runtime::scheduler::worker::{LIFO_RUN, Worker};
use crate::task::Header;

/// So many tasks are few.
const FEW: usize = 3;

impl Worker<'_> {
    /// Between two ticks.
    #[cold]
    pub(crate) fn maintain(&self) {
        // Each of those that overtook is a tick of its own after a long one: it may be long as well. And what is its own
        // is in the mean.
        let counts = self.overtook.get() || self.batch_is_own.get();
        let queued = if counts { 0 } else { self.slot.batch.len() };
        let now = self.now_ns();
        let tick = self.pace.tick(now, queued);
        self.was_busy(now);
        self.note_sources();
        self.look_for_crowd(now);
        self.rested.set(false);
        self.forget_what_was_sent();
        if tick.long_ns.is_some() {
            self.cut_round();
            self.share_ring();
        } else {
            self.attend();
        }
        if self.waits_outside.get() && !self.shy.get() && !self.no_worker_goes_on() {
            self.be_shy_again();
        }
        volt_sync::coop::allow_turns(self.pace.polls_are_short());
        if tick.overran {
            self.run.times_the_next();
        }
        let waited = self.waited.get();
        let left = || tick.lifo_left(waited, self.lifo_left.get(), LIFO_RUN);
        self.lifo_left.set(tick.lifo_run(waited).unwrap_or_else(left));
        if tick.long_ns.is_some() && self.overtook.replace(false) {
            self.send_batch_back();
        }
        let all_yielded = self.yields.take_look();
        if all_yielded && !tick.look {
            self.look_after_round();
        }
        if tick.look {
            self.overtakes.set(tick.long_ns.is_some() && waited == Waited::Ring);
            self.look_at_driver(if tick.long_ns.is_some() { Why::Hurry } else { Why::Due });
            self.overtakes.set(false);
        }
    }

    /// True if another member should be woken for a part of what was found in the driver.
    ///
    /// Not for a few tasks of quick kinds, if this member has slept for long, its last polls were quick as well, and its own
    /// future does not go before them: another one is up no sooner, and finds cold caches, too. If one of them is not
    /// quick this time, the watcher finds the others.
    pub(crate) fn shares_what_was_found(&self, summary: Summary) -> bool {
        let found = self.slot.ring.len();
        let is_soon_done = || {
            let takes = self.pace.poll_ns() * found as f32;
            let is_quick = self.found_quick.get() && takes > 0.0 && takes < QUICK_NS as f32;
            self.rested.get() && found <= FEW && is_quick && !self.root_woken()
        };
        let keeps = || summary.has_watcher() && is_soon_done();
        summary.parked() > 0 && found > 1 && !keeps() && self.tells_others()
    }

    /// Sends the rest of the batch behind the ring. Nobody can see a task on its way there: whoever has
    /// looked meanwhile, and sleeps now, is woken.
    pub(crate) fn send_batch_back(&self) {
        let mut any = false;
        while let Some(task) = self.slot.batch.pop() {
            self.push(task);
            any = true;
        }
        // Killed by `runtime::scheduler::worker::model::a_batch_that_goes_back_against_parking`.
        #[cfg(not(volt_mutant = "batch_goes_back"))]
        if any {
            self.notify();
        }
    }

    /// Queues a task that the driver made runnable, without waking others: whoever turns the driver
    /// does that when it is back.
    pub(crate) fn keep_found(&self, task: NonNull<Header>) {
        // SAFETY: the task is in no queue: this member has its `Notified`.
        let kind = unsafe { task.as_ref() }.type_key();
        let is_quick = self.shared.quick.knows(kind);
        self.found_quick.set(self.found_quick.get() && is_quick);
        self.found.set(self.found.get() + 1);
        // What came from the injector is older.
        let may = is_quick && (self.overtook.get() || self.slot.batch.is_empty());
        if !self.overtakes.get() || !may || self.slot.batch.room() == 0 {
            return self.push(task);
        }
        self.overtook.set(true);
        self.batch_is_own.set(false);
        // SAFETY: this member owns the ring, and there is room.
        unsafe { self.slot.batch.push_quiet(task) };
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
