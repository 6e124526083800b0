//! What a member takes from the injector, also of what it has sent there (`runnable.rs`).
//!
//! A ring that is full sends its older half there. So these tasks are older than all that is in the ring, and this
//! member takes them first, as long as they may be there: it has one of its own polls for each batch. Otherwise some
//! tasks would have their turn in each round, and others in every fifth: of 2,000 connections, one in a hundred waited for 3
//! to 5 times as long as half of them, on one thread, and the last ones for 8 times as long. (What is sent to an empty
//! injector has its turn after a round of the ring, once.) They count as the member's own, if nothing of others is there.
//!
//! And what it takes goes into the batch, which is next. It does not go behind newer tasks: into the ring only if that is
//! empty.
//!
//! Not while polls are not worth the locks: tasks that do nothing but spawn others, without an end, would keep the ring full,
//! and nearly all of them would go through the injector. A round of those takes no time. (With a system call in a poll it
//! does: on one thread others had up to 1,300 answers while one of 300 connections waited for its own.)
//!
//! And while nothing but the bursts of such spawns is there, it has its turn after four rounds only, if these are over within
//! a quarter of a millisecond: each batch of it would make a ring that is half full overflow once more. In a tree of tasks the oldest are nearest to the root, and
//! so a third of all went through the injector; now a seventh do, and mostly return to whom they come from (`injector.rs`). In exchange a long burst takes up to four times as long to be gone, if the
//! ring stays full; with it go tasks of other kinds that were in the ring when a spawn made that overflow.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::SeqCst;

use volt_sync::internal::primitive::fence;

use super::injector::Consumer;
use crate::runtime::scheduler::worker::Worker;
use crate::task::Header;

impl Worker<'_> {
    /// It is the injector's turn. The next one is when each of this member's own tasks has had one, or one of them if
    /// there are older ones left; or at once if another member takes tasks now. If that would take too long, as many have
    /// one as makes their chances equal: of a flood from outside, and of the member's own.
    #[cold]
    pub(crate) fn next_of_injector(&self) -> Option<NonNull<Header>> {
        let is_empty = || self.shared.injector.is_empty_for(self.choosy.get());
        let batches = self.pace.take_batches();
        if is_empty() {
            self.pace.injector_had_its_turn(self.slot.ring.len() as u32, true);
            return None;
        }
        self.flush_yielded(None);
        let own = self.slot.ring.len();
        // Who was woken by one of them waits for no more than a batch.
        let is_over = || self.slot.lifo.is_taken() || self.pace.had_enough(batches, self.now_ns());
        if batches > 0 && is_over() {
            self.pace.injector_had_its_turn_for(self.pace.fair(), own as u32, false);
            // One of these is next.
            let _not_yet = self.pace.injector_has_its_turn();
            return None;
        }
        let share = self.shared.injector.len() / self.shared.idle.load().attached().max(1);
        // Who is woken from a wait for it may find the processor taken.
        let consumer = self.shared.injector.try_consumer()?;
        // A batch would probably make it overflow.
        let is_half_full = own >= self.slot.ring.room();
        if self.pace.puts_injector_off(own as u32, || is_half_full && consumer.has_only_bursts()) {
            return None;
        }
        self.overtook.set(false);
        let task = self.fetch_from(consumer);
        let older = self.sent.get() > 0 && self.keeps_order();
        let (round, fair) = if older {
            (1, 1)
        } else {
            (own, (self.slot.batch.len() + 1) * own / share.max(own).max(1))
        };
        let is_empty = is_empty();
        self.pace.injector_had_its_turn_for(fair as u32, round as u32, is_empty);
        if !older && !is_empty && self.keeps_order() {
            self.pace.injector_goes_on(batches, own, || self.now_ns());
        }
        task.inspect(|_| self.count_fetched())
    }

    /// A task of the batch, or of the injector, is next. What this member has sent there is its own.
    #[inline]
    pub(crate) fn count_fetched(&self) {
        if !self.batch_is_own.get() {
            self.pace.count_fetched();
        }
    }

    /// True if the order is worth the locks.
    pub(crate) fn keeps_order(&self) -> bool {
        self.pace.polls_are_worth_a_lock()
    }

    /// Between two ticks: what was sent there may be gone by now.
    pub(crate) fn forget_what_was_sent(&self) {
        if self.sent.get() > 0 && self.shared.injector.is_empty_for(false) {
            self.sent.set(0);
        }
    }

    /// Takes this member's share of the injector.
    #[cold]
    pub(crate) fn fetch(&self) -> Option<NonNull<Header>> {
        self.overtook.set(false);
        if self.shared.injector.is_empty_for(self.choosy.get()) {
            return None;
        }
        self.fetch_from(self.shared.injector.consumer())
    }

    /// The same, of an injector that is probably not empty.
    fn fetch_from(&self, consumer: Consumer<'_, Header>) -> Option<NonNull<Header>> {
        let choosy = self.choosy.get();
        // Not behind what is in the ring: that is newer, mostly.
        let may_mix = self.slot.ring.is_empty() || !self.keeps_order();
        let ring = if may_mix { self.slot.ring.room() } else { 0 };
        let room = self.slot.batch.room() + ring;
        let share = self.shared.injector.fair_share(self.shared.idle.load().attached(), choosy);
        // SAFETY: the injector has its `Notified`, and so it is alive.
        let kind = |task: NonNull<Header>| unsafe { task.as_ref() }.type_key();
        let is_quick = |task| self.shared.quick.knows(kind(task));
        let there = self.shared.injector.len_for(choosy);
        let mut batch =
            consumer.pop_batch(share.min(room + 1), (!choosy).then_some(is_quick), self.index);
        if self.shared.is_current_thread() && self.shared.waiting.asks_visitor() {
            // They may be for the thread that waits for this one to leave, and wait for what this one's future does.
            self.shared.injector.push_batch(batch);
            return None;
        }
        let sent = self.sent.get();
        // If nothing of others may be there: that would come first.
        self.batch_is_own.set(sent >= there && self.keeps_order());
        // If most of it is its own, so is that part of the batch; else this would no longer be so for good, after one task of
        // others. And others take it, too.
        let own = if 2 * sent > there { batch.len() * sent / there.max(sent) } else { batch.len() };
        self.sent.set(sent.saturating_sub(own).min(self.shared.injector.len()));
        let first = batch.pop()?;
        self.slot.metrics.batch_fetches.add(1);
        if batch.len() == 0 {
            return Some(first);
        }
        let mut room = self.slot.batch.room();
        while let Some(task) = batch.pop() {
            if room > 0 {
                room -= 1;
                // SAFETY: this member owns the ring, and there is room.
                unsafe { self.slot.batch.push_quiet(task) };
            } else {
                // SAFETY: this member owns the ring, and no more was taken than has room in both.
                unsafe { self.slot.ring.push_quiet(task) };
            }
        }
        if !self.searching.get() {
            // ORD[IS1] release: what was pushed quietly, before a look at the members' state. (A
            // searcher looks at the queues when it ends its search.)
            fence(SeqCst);
            self.notify();
        }
        Some(first)
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
