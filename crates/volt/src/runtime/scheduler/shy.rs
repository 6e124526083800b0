//! Guests that run no tasks.
//!
//! While a guest runs a task, its own future waits, and no other thread can poll that. So a guest is *shy*, and
//! leaves all tasks to others, while its future waits for something outside of the runtime (`outside.rs`): a
//! `main` that accepts connections, or waits for a signal, is not held up by a task that blocks. And so is one on
//! whose thread tasks would miss what the builder has promised, or that is in a blocking call (it is *unfit*). It is a member all the same: it waits
//! in the driver, or watches. Posts of work do not wake it, as it would only wake somebody else; and if no worker
//! goes on, it runs what is quick, until it parks, or one of them goes on.
#![forbid(unsafe_code)]

use super::stall::STALL_NS;
use super::worker::{Stage, Step, Worker};
use crate::runtime::outside;

impl Worker<'_> {
    /// After a poll of this thread's own future: may no task hold that up?
    #[inline]
    pub(super) fn become_shy(&self) {
        self.waits_outside.set(outside::waited());
        self.be_shy_again();
    }

    /// Unless a guest helps workers that stand still, for once.
    #[inline]
    pub(super) fn be_shy_again(&self) {
        self.shy.set(self.choosy.get() && (self.waits_outside.get() || self.unfit.get()));
    }

    /// Is this guest to run tasks for once? None of the workers goes on, though there is something to run, and
    /// that was so some time ago as well. (One whose long poll is just over goes on at once, but does not look so.)
    pub(super) fn has_to_help(&self) -> bool {
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
    pub(super) fn after_root(&self) -> Step {
        if !self.shy.get() {
            return self.step_after_root();
        }
        self.pace.count();
        self.step_shy()
    }

    /// As [`step`](Self::step), but runs no task.
    #[cold]
    pub(super) fn step_shy(&self) -> Step {
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
