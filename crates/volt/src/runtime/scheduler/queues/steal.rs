//! Looking for work in other members' queues.
//!
//! The protocol, and why a searcher's end loses no wake-up, is in `idle.rs`; which rings are left to
//! their members, in `crowd.rs`.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::spin;

use crate::choice;
use crate::runtime::scheduler::idle::Summary;
use crate::runtime::scheduler::pacing::quick;
use crate::runtime::scheduler::worker::Worker;
use crate::task::Header;

/// How often a searcher looks before it parks, if others run who may have something for it.
const SEARCHES: u32 = if cfg!(volt_loom) { 1 } else { 3 };

impl Worker<'_> {
    /// Looks at the other members' queues. If all others are parked, these are empty, but for what one finds in the driver that
    /// is about to get up; and who parks looks once more.
    pub(crate) fn search(&self) -> Option<NonNull<Header>> {
        if !self.searching.get() {
            if !self.shared.idle.load().others_run() || !self.shared.idle.start_search() {
                return None;
            }
            self.searching.set(true);
        }
        for attempt in 0..SEARCHES {
            if let Some(task) = self.steal().or_else(|| self.fetch()) {
                return Some(task);
            }
            if self.root_woken() || !self.shared.idle.load().others_run() {
                return None;
            }
            spin(attempt);
        }
        self.steal_from_a_look()
    }

    /// Takes half of another member's tasks.
    pub(crate) fn steal(&self) -> Option<NonNull<Header>> {
        let slots = self.shared.used_slots();
        let start = self.next_random() as usize % slots.len();
        for offset in 0..slots.len() {
            let victim = (start + offset) % slots.len();
            if victim == self.index {
                continue;
            }
            let slot = &*slots[victim];
            let of_ring = if self.shared.is_left_alone(victim) {
                None
            } else {
                // SAFETY: this member owns its ring, which is not the victim's.
                unsafe { slot.ring.steal_into(&self.slot.ring) }
            };
            let stolen = of_ring
                // SAFETY: this member owns its ring, which is not the victim's.
                .or_else(|| unsafe { slot.batch.steal_into(&self.slot.ring) });
            if let Some((task, count)) = stolen {
                self.count_stolen(count as u64);
                return Some(task);
            }
        }
        None
    }

    /// Counts what was found in another member's queue.
    pub(crate) fn count_stolen(&self, tasks: u64) {
        if self.choosy.get() {
            self.vain.stole(tasks as u32, || self.now_ns());
        }
        self.slot.metrics.steals.add(1);
        self.slot.metrics.stolen.add(tasks);
    }

    fn next_random(&self) -> u64 {
        let mut state = self.random.get();
        let random = choice::next(&mut state) >> 32;
        self.random.set(state);
        random
    }

    /// Something was found: the last searcher makes sure that somebody looks for the rest.
    #[inline]
    pub(crate) fn end_search(&self) {
        if self.stop_searching() {
            self.pass_on();
        }
    }

    /// As [`end_search`](Self::end_search), but leaves it to the caller to wake somebody. True if this was the last
    /// searcher.
    #[inline]
    pub(crate) fn stop_searching(&self) -> bool {
        self.searching.replace(false) && self.shared.idle.end_search()
    }

    /// Wakes another member if there is work left, or something to watch and nobody who does.
    fn pass_on(&self) {
        let summary = self.shared.idle.load();
        if summary.parked() == 0 {
            return;
        }
        // Killed by `runtime::scheduler::worker::model::what_is_set_aside_against_a_choosy_guest_that_ends_its_search`.
        #[cfg(not(volt_mutant = "passed_on_quietly"))]
        self.shared.offer_set_aside();
        if self.is_unwatched(summary) || self.shared.has_work(true) {
            self.notify();
        }
    }

    /// True if there is something to watch and nobody who does.
    fn is_unwatched(&self, summary: Summary) -> bool {
        !summary.has_watcher()
            && (!summary.driver_taken()
                || self.shared.used_slots().iter().any(|s| !s.lifo.is_empty()))
    }

    /// A guest sets a task aside that is not for it: those who take anything are told, and of what there is
    /// besides, all.
    pub(crate) fn set_aside(&self, task: NonNull<Header>) {
        // It counts as one from the injector: a flood of such tasks does not keep this member from the driver,
        // nor make its own polls look short.
        self.pace.count();
        self.pace.count_fetched();
        self.vain.set_aside();
        // ORD relaxed: a hint: it is in no poll.
        self.slot.kind.store(quick::OF_NOBODY, Relaxed);
        // SAFETY: its `Notified` is given away by the caller.
        unsafe { self.shared.injector.set_aside(task) };
        self.release_ring();
        if self.stop_searching() {
            return self.pass_on();
        }
        // Killed by `runtime::scheduler::worker::model::what_a_guest_sets_aside_against_parking`.
        #[cfg(not(volt_mutant = "set_aside_quietly"))]
        self.shared.offer_set_aside();
    }
}
