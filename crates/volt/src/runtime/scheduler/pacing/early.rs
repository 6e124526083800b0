//! Looking into the driver before the last tasks of what was found there have run.
//!
//! Purpose: among many busy sockets the members run what one of them has found in the driver, and run out of it
//! at about the same time. If only then one of them looks again, the others wait for what it finds, which is
//! 10 to 20 us for some dozen sockets. So a member that has found [`MANY`] tasks looks again when [`FEW`] of them are left
//! in its ring: the others have theirs to run meanwhile, and mostly come to look by themselves, instead of stealing.
//!
//! Such a look is one more: the next one comes when it would have come, and a read that was put off is not made sooner. And
//! nobody is woken for the tasks that were left.
//!
//! Not while the polls are short, as the last few are over before the look is; and not for a member that runs alone:
//! nobody waits for it.
#![forbid(unsafe_code)]

use crate::reactor::Why;
use crate::runtime::scheduler::worker::Worker;

/// So many tasks are left when the driver is looked at again.
const FEW: usize = 2;
/// If it had at least so many.
const MANY: usize = 6;

impl Worker<'_> {
    /// The driver was turned.
    pub(crate) fn note_what_was_found(&self) {
        let is_much = self.found.get() >= MANY && self.pace.polls_are_not_short();
        // Or of what was found before, some are still to run.
        let still = self.found_many.get() && self.slot.ring.len() > FEW;
        self.found_many.set(is_much || still);
    }

    /// Before a task of the ring, while much was found: is it time to look again?
    pub(crate) fn look_early(&self) {
        if self.slot.ring.len() > FEW {
            return;
        }
        self.found_many.set(false);
        if self.shared.idle.load().others_run() {
            self.look_at_driver(Why::Early);
        }
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
