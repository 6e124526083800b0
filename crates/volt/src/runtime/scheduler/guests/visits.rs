//! Threads that come and go: who calls `block_on` again and again, for what tasks do at once.
//!
//! Purpose: on a current-thread runtime nobody waits in the driver between two such calls, and in one whose future
//! waits for tasks that can run, nobody has a reason to; it is over before a tick is, and before the injector has its
//! turn. So a call that begins to run tasks looks at the driver first, and then into the injector, if nobody has turned the
//! driver for [`LOOK_NS`]. And the polls before the injector's turn are counted on from call to call, since calls of
//! some hundred polls each turn the driver, and what that finds goes to the injector when they leave.
//!
//! State: all accesses are relaxed: they are of the one guest that there is at a time (`guest.rs`).
//!
//! Cost: one look at the clock for each call, on a current-thread runtime only. It is the machine's, as a paused one stands
//! still.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::{AtomicU32, AtomicU64};

use crate::reactor::Why;
use crate::runtime::scheduler::pacing::pace::LOOK_NS;
use crate::runtime::scheduler::worker::Worker;
use crate::time::machine_ns;

#[derive(Debug)]
pub(crate) struct Visits {
    /// How often the driver had been turned at the last visit.
    turns: AtomicU64,
    /// The first visit that has seen that number.
    since_ns: AtomicU64,
    /// What the last guest has left of [`Pace::until_injector`](crate::runtime::scheduler::pacing::pace::Pace::until_injector).
    until_injector: AtomicU32,
}

impl Visits {
    pub(crate) fn new() -> Self {
        Self {
            turns: AtomicU64::new(0),
            since_ns: AtomicU64::new(0),
            until_injector: AtomicU32::new(u32::MAX),
        }
    }

    /// A visit, `now`; the driver has been turned so often. True if that should be done.
    fn is_look_due(&self, now: u64, turns: u64) -> bool {
        // ORD relaxed: see the module's documentation.
        if self.turns.load(Relaxed) != turns {
            self.looked(now, turns);
            return false;
        }
        // ORD relaxed: as above.
        now.saturating_sub(self.since_ns.load(Relaxed)) >= LOOK_NS
    }

    fn looked(&self, now: u64, turns: u64) {
        // ORD relaxed: see the module's documentation.
        self.turns.store(turns, Relaxed);
        // ORD relaxed: as above.
        self.since_ns.store(now, Relaxed);
    }
}

impl Worker<'_> {
    /// A guest of a current-thread runtime comes.
    pub(crate) fn begin_visit(&self) {
        // ORD relaxed: see the module's documentation.
        self.pace.goes_on(self.shared.visits.until_injector.load(Relaxed));
        self.note_sources();
        self.busy_since.set(self.now_ns());
    }

    /// A guest leaves.
    pub(crate) fn end_visit(&self) {
        if self.shared.is_current_thread() {
            // ORD relaxed: see the module's documentation.
            self.shared.visits.until_injector.store(self.pace.until_injector(), Relaxed);
            self.was_busy(self.now_ns());
        }
    }

    /// This thread begins to run tasks, as a future of its own waits.
    #[inline]
    pub(crate) fn visit(&self) {
        if self.shared.is_current_thread() {
            self.look_if_due();
        }
    }

    fn look_if_due(&self) {
        let (visits, turns) = (&self.shared.visits, &self.shared.driver_turns);
        let now = if cfg!(volt_loom) { 0 } else { machine_ns() };
        if visits.is_look_due(now, turns.get()) {
            self.look_around();
            visits.looked(now, turns.get());
        }
    }

    /// Looks at the driver, which does not count as a turn for those who come: it tells nothing of when.
    pub(crate) fn look_beside_visits(&self, why: Why) {
        let (visits, turns) = (&self.shared.visits, &self.shared.driver_turns);
        // ORD relaxed: see the module's documentation.
        let was_seen = visits.turns.load(Relaxed) == turns.get();
        self.look_at_driver(why);
        if was_seen {
            // ORD relaxed: as above.
            visits.turns.store(turns.get(), Relaxed);
        }
    }

    /// Looks at the driver now, and next into the injector.
    pub(crate) fn look_around(&self) {
        self.look_at_driver(Why::Due);
        self.pace.injector_is_next();
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_due_once_the_driver_was_left_alone_for_long() {
        let visits = Visits::new();
        assert!(!visits.is_look_due(1, 7), "it was turned");
        assert!(!visits.is_look_due(LOOK_NS, 7));
        assert!(visits.is_look_due(1 + LOOK_NS, 7));
        visits.looked(1 + LOOK_NS, 8);
        assert!(!visits.is_look_due(2 * LOOK_NS, 8));
        assert!(visits.is_look_due(1 + 2 * LOOK_NS, 8));
    }
}
