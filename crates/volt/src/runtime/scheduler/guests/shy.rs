//! Guests that run no tasks.
//!
//! While a guest runs a task, its own future waits, and no other thread can poll that. So a guest is *shy*, and
//! leaves all tasks to others, while its future waits for something outside of the runtime (`outside.rs`): a
//! `main` that accepts connections, or waits for a signal, is not held up by a task that blocks. And so is one on
//! whose thread tasks would miss what the builder has promised, or that is in a blocking call (it is *unfit*). It is a member all the same: it waits
//! in the driver, or watches. Posts of work do not wake it, as it would only wake somebody else; and if no worker
//! goes on, it runs what is quick, until it parks, or one of them goes on.
//!
//! And a guest that has run tasks for [`LOOK_NS`], while nobody woke its future, is a *bystander*. While all workers run,
//! and as many members as there are processors, and all of them will soon look for their next task, it has none to give:
//! three threads take turns on two processors, or two are put on one of them while the other is idle. So it stands aside: it
//! takes nothing and looks for nothing, and a post wakes it no more than a shy one. Workers never stand
//! aside: each of them runs, and looks at the queues before it parks, or is parked, and is woken. When one
//! parks, or a watcher has caught it in a slow poll, the bystander takes part again: what is posted then wakes a worker, or
//! it, and it looks by itself once it is awake. (The watcher, which it may be itself, finds a slow poll after some
//! milliseconds, as that of any member that stands still. One that sleeps for long is woken first.) Its tasks may be slow
//! ones, as long as none is caught; if they wait for the system in their polls, a processor may be idle beside it, as
//! beside a thread in `block_on` that runs no tasks.
//!
//! Not while its polls are short. Then a task that it runs saves a wake-up, which is longer: beside tasks that only
//! pass messages on, two members instead of three took 1.05 to 1.3 times as long.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;

use crate::runtime::outside;
use crate::runtime::scheduler::pacing::pace::LOOK_NS;
use crate::runtime::scheduler::shared::{Shared, Slot};
use crate::runtime::scheduler::stalls::stall::STALL_NS;
use crate::runtime::scheduler::worker::{Stage, Step, Worker};

/// So many members at work are looked at.
const MOST: usize = 4;
/// Who has no processor has one again sooner, mostly: others have theirs for some milliseconds.
pub(crate) const HELD_UP_NS: u64 = 20_000_000;

impl Shared {
    /// True if guest `index`, which is parked, should not be woken for work.
    pub(crate) fn keeps_off(&self, index: usize) -> bool {
        if index < self.workers {
            return false;
        }
        let guest = &self.slots[index];
        // ORD relaxed: a member writes these before it parks, which [ID3] orders.
        if guest.shy.load(Relaxed) {
            return true;
        }
        // ORD relaxed: as above.
        let bystander = guest.bystander.load(Relaxed);
        // ORD relaxed: as above.
        let vain = self.is_before(guest.vain_until.load(Relaxed));
        // A watcher that sleeps for long would look too late.
        (bystander || vain)
            && !self.sleep.is_drowsy()
            && (bystander && self.others_are_enough(index) || vain && self.nobody_is_held_up(index))
    }

    /// True if all workers run, and as many members as there are processors, beside `index`; and all of them will soon
    /// look for the next task.
    fn others_are_enough(&self, index: usize) -> bool {
        let running = self.idle.load().running();
        let others = running.saturating_sub(usize::from(!self.idle.is_parked(index)));
        (self.config.processors..=MOST).contains(&others)
            && self.others_are_quick(index)
            && self.workers_go_on(index)
    }

    /// True if all workers run, and neither one of them nor a guest beside `index` was caught in a slow poll.
    fn workers_go_on(&self, index: usize) -> bool {
        self.all_workers_run()
            && !self.any_beside(index, |slot| slot.watched.is_caught(slot.polls()))
    }

    /// The same; but where this guest would be one more than there are processors, a member that was caught may just have
    /// none: it is held up if it has stood still for [`HELD_UP_NS`], as far as the watcher knows.
    pub(crate) fn nobody_is_held_up(&self, index: usize) -> bool {
        let members = self.idle.load().running() + usize::from(self.idle.is_parked(index));
        if members <= self.config.processors {
            return self.workers_go_on(index);
        }
        self.all_workers_run() && {
            let now = self.driver_handle.clock.now_ns();
            !self.any_beside(index, |slot| slot.watched.still_ns(slot.steps(), now) >= HELD_UP_NS)
        }
    }

    fn all_workers_run(&self) -> bool {
        (0..self.workers).all(|worker| !self.idle.is_parked(worker))
    }

    /// True if it `is` so of a member beside `index` that runs.
    fn any_beside(&self, index: usize, is: impl Fn(&Slot) -> bool) -> bool {
        self.used_slots()
            .iter()
            .enumerate()
            .any(|(other, slot)| other != index && is(slot) && !self.idle.is_parked(other))
    }
}

impl Worker<'_> {
    /// Is this a guest whose future was not woken for some time, while it ran tasks that are not short?
    #[inline]
    pub(crate) fn is_bystander(&self) -> bool {
        if cfg!(volt_loom) {
            // In a model, no time passes: where it says how many processors there are, each is one.
            return self.choosy.get() && self.shared.config.processors != usize::MAX;
        }
        self.choosy.get()
            && self.pace.polls_are_not_short()
            && self.polls_since_root() as f32 * self.pace.poll_ns() >= LOOK_NS as f32
    }

    /// What it has polled since it polled its own future.
    fn polls_since_root(&self) -> u64 {
        self.polls.get().wrapping_sub(self.polls_at_root.get())
    }

    /// Until when this, a guest that has stolen in vain, lets workers alone, or 0.
    pub(crate) fn vain_until(&self) -> u64 {
        if self.choosy.get() { self.vain.until_ns() } else { 0 }
    }

    #[inline]
    pub(crate) fn steals_in_vain(&self) -> bool {
        self.shared.is_before(self.vain_until())
    }

    /// Does it leave what there is to the others?
    #[inline]
    pub(crate) fn stands_aside(&self) -> bool {
        // Who was woken for work looks for it once.
        !self.searching.get()
            && (self.is_bystander() && self.shared.others_are_enough(self.index)
                || self.steals_in_vain() && self.shared.nobody_is_held_up(self.index))
            && !self.root_woken()
    }

    /// After a poll of this thread's own future: may no task hold that up?
    #[inline]
    pub(crate) fn become_shy(&self) {
        self.waits_outside.set(outside::waited());
        self.be_shy_again();
    }

    /// Unless a guest helps workers that stand still, for once.
    #[inline]
    pub(crate) fn be_shy_again(&self) {
        self.shy.set(self.choosy.get() && (self.waits_outside.get() || self.unfit.get()));
    }

    /// Is this guest to run tasks for once? None of the workers goes on, though there is something to run, and
    /// that was so some time ago as well. (One whose long poll is just over goes on at once, but does not look so.)
    pub(crate) fn has_to_help(&self) -> bool {
        let stuck = !self.unfit.get() && self.shared.has_work(true) && self.no_worker_goes_on();
        if !stuck {
            self.stuck_since.set(None);
            return false;
        }
        let now = self.now_ns();
        let since = self.stuck_since.get().unwrap_or(now);
        self.stuck_since.set(Some(since));
        now.saturating_sub(since) >= STALL_NS
    }

    #[inline]
    pub(crate) fn after_root(&self) -> Step {
        if !self.shy.get() {
            return self.step_after_root();
        }
        self.pace.count();
        self.step_shy()
    }

    /// As [`step`](Self::step), but runs no task.
    #[cold]
    pub(crate) fn step_shy(&self) -> Step {
        if let Some(step) = self.step_without_task() {
            return step;
        }
        if self.shared.is_shut_down() {
            return Step::Exit;
        }
        self.leave_to_others();
        if self.has_to_help() {
            self.shy.set(false);
        } else if !self.looks_instead_of_parking()
            && !self.root_woken()
            && !self.looks_before_leaving()
        {
            self.stage.set(Stage::Searched);
        }
        Step::Continue
    }

    /// A shy guest has tasks: its future has spawned or woken them, or the driver.
    fn leave_to_others(&self) {
        let any = self.give_up_tasks();
        // Killed by `runtime::scheduler::worker::model::what_a_shy_guest_spawns_against_parking`.
        #[cfg(not(volt_mutant = "left_quietly"))]
        if any {
            self.shared.notify();
        }
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
