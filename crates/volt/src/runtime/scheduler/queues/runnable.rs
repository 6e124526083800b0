//! How a task becomes runnable on a member's thread: to which of its queues it goes, and who is woken for it.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::processor;

use super::injector::Chain;
use super::ring::Pushed;
use crate::runtime::scheduler::pacing::pace::Waited;
use crate::runtime::scheduler::stalls::crowd::ALONE_NS;
use crate::runtime::scheduler::worker::Worker;
use crate::task::{Header, Notified};

/// About the time that a sleeping member takes to wake up and find something.
pub(crate) const WAKE_NS: f32 = 10_000.0;

impl Worker<'_> {
    /// The task that is polled has completed; who waits for it is woken next.
    ///
    /// A task that waited in the ring is one of several: who waits for it goes behind them, and so
    /// finds all of them done when it runs, instead of being polled for each. (A task from the LIFO
    /// slot is probably the only one, and who waits for it goes on at once.)
    #[inline]
    pub(crate) fn completed(&self) {
        self.fan_in.set(self.waited.get() != Waited::Lifo);
    }

    /// How many tasks of the ring who waits for the last task goes behind.
    #[inline]
    pub(crate) fn fan_in_behind(&self) -> usize {
        if self.fan_in.get() { self.slot.ring.len() } else { 0 }
    }

    /// A task was spawned: it runs next, unless another one does. (What was spawned first is mostly
    /// awaited first, so it keeps the LIFO slot.)
    #[inline]
    pub(crate) fn schedule_spawned(&self, task: Notified) {
        if self.shared.config.lifo && !self.quiet.get() && self.slot.lifo.is_taken() {
            return self.schedule_in_ring(task.into_raw(), true);
        }
        self.schedule_local(task);
    }

    /// A task became runnable: it runs next.
    #[inline]
    pub(crate) fn schedule_local(&self, task: Notified) {
        let task = task.into_raw();
        if !self.shared.config.lifo || self.quiet.get() {
            return self.schedule_back(task);
        }
        if self.fan_in_behind() > 0 {
            return self.schedule_in_ring(task, false);
        }
        match self.slot.lifo.push(task) {
            None => {
                let summary = self.shared.idle.load();
                if summary.wants_watcher() {
                    self.notify();
                }
            }
            Some(evicted) => self.schedule_in_ring(evicted, false),
        }
    }

    /// As [`Shared::notify`], for what this member has to do. If its polls take [`WAKE_NS`] or more, it rather wakes one that
    /// fell asleep on another processor: Linux often runs a thread where it ran last. On this one, it would take turns with
    /// this member, while the other processor has nothing to do.
    #[inline]
    pub(crate) fn notify(&self) {
        if self.shared.idle.load().wants_searcher() {
            self.notify_somebody();
        }
    }

    #[cold]
    fn notify_somebody(&self) {
        let is_far = self.pace.poll_ns() >= WAKE_NS;
        self.shared.notify_somebody(is_far.then(processor));
    }

    /// To the back of the ring; wakes somebody who could take it, if that is worth while.
    #[inline]
    fn schedule_in_ring(&self, task: NonNull<Header>, is_new: bool) {
        // ORD relaxed: this member wrote it.
        self.push_beside(task, self.slot.kind.load(Relaxed), is_new);
    }

    /// The same, beside a poll of the kind `running`. (What is rare is called last, so that the rest keeps nothing on the stack.)
    #[inline]
    pub(crate) fn push_beside(&self, task: NonNull<Header>, running: usize, is_new: bool) {
        // SAFETY: the task is in no queue: this member has its `Notified`.
        let kind = unsafe { task.as_ref() }.type_key();
        // SAFETY: this member owns its ring.
        if unsafe { self.slot.ring.push_if_room(task) } {
            if self.shared.idle.load().wants_searcher() {
                self.tell_of_ring(kind, running);
            }
        } else {
            self.push_full_beside(task, running, is_new);
        }
    }

    #[cold]
    fn push_full_beside(&self, task: NonNull<Header>, running: usize, is_new: bool) {
        // SAFETY: as in `push_beside`.
        let kind = unsafe { task.as_ref() }.type_key();
        self.push_full(task, is_new);
        self.tell_of_ring(kind, running);
    }

    /// A task of the kind `newest` is in the ring now: wakes somebody for it, unless that takes longer than this member.
    #[inline(never)]
    fn tell_of_ring(&self, newest: usize, running: usize) {
        let summary = self.shared.idle.load();
        if summary.wants_searcher()
            && !(summary.has_watcher() && self.is_soon_done(newest, running))
        {
            self.release_ring();
            self.notify();
        }
    }

    /// True if this member will have run what waits in its ring before another one could wake up:
    /// the newest is of a quick kind, so is the one that runs, and the last polls took little time.
    /// If that turns out to be wrong, the watcher finds the ring at its next look. In a crowd more may
    /// wait, since another one would wake up to wait for a processor; but not in the injector, where it may
    /// have no end.
    #[cold]
    fn is_soon_done(&self, newest: usize, running: usize) -> bool {
        let per_poll = self.pace.poll_ns();
        let keeps = self.is_attended() && self.shared.injector.is_empty_for(self.choosy.get());
        let limit = if keeps { ALONE_NS } else { WAKE_NS };
        per_poll > 0.0
            && self.slot.ring.len() as f32 * per_poll < limit
            && self.shared.quick.knows(newest)
            && self.shared.quick.knows(running)
    }

    /// To the back of the ring.
    #[inline]
    fn schedule_back(&self, task: NonNull<Header>) {
        if self.quiet.get() {
            return self.keep_found(task);
        }
        self.push(task);
        if self.tells_others() {
            self.notify();
        }
    }

    /// A task was woken while it ran.
    #[inline]
    pub(crate) fn schedule_yielded(&self, task: Notified) {
        self.note_yield();
        let task = task.into_raw();
        if let Some(other) = self.yielded.replace(Some(task)) {
            // Cannot happen between two polls; a blocking join may have left one.
            self.push(other);
            self.notify();
        }
    }

    /// Appends to the ring, or what does not fit to the injector.
    #[inline]
    pub(crate) fn push(&self, task: NonNull<Header>) {
        // SAFETY: this member owns its ring.
        if !unsafe { self.slot.ring.push_if_room(task) } {
            self.push_full(task, false);
        }
    }

    /// The same, of a task for which there was no room in the ring. It `is_new` if it was never polled: then this is part of a burst, if polls are short.
    #[cold]
    pub(crate) fn push_full(&self, task: NonNull<Header>, is_new: bool) {
        // SAFETY: this member owns its ring; what comes out of it is on its way to the injector.
        let pushed = unsafe { self.slot.ring.push(task, |taken| taken.collect::<Chain<_>>()) };
        let sent = match &pushed {
            Pushed::Stored => 0,
            Pushed::Overflowed(older) => older.len(),
            Pushed::Refused(_) => 1,
        };
        if sent > 0 {
            if self.shared.injector.is_empty_for(self.choosy.get()) {
                // What will be there has its turn after what stays here, this time: it may be the rest of what
                // one poll spawns, and others take it.
                self.pace.injector_had_its_turn(self.slot.ring.len() as u32, false);
                self.sent.set(0);
            }
            self.sent.set(self.sent.get() + sent);
            let is_burst = is_new && !self.pace.polls_are_not_short();
            self.shared.overflow(pushed, is_burst.then_some(self.index));
        }
    }
}
