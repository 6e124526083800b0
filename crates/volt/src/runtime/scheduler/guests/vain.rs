//! Guests that steal in vain.
//!
//! Purpose: a guest sets tasks aside that are not of a quick kind (`quick.rs`), for the workers. What it has stolen from
//! these has lost its place in their rings then, and it is soon back for more: it only mixes up the order in which tasks
//! run. Among 300 connections whose requests took 300 us each, some were answered at once and some after three rounds of all
//! others. So a guest that has set a quarter of what it stole aside lets the workers alone for some time, twice as long
//! each time in a row, as long as they go on. It still runs what it finds in the driver.
//!
//! If a worker parks, the guest takes part again, as a bystander does (`shy.rs`); and if one stands still for longer than one
//! that just has no processor. (If it was enough that the watcher had caught it, four workers on two processors were caught
//! all the time: of 2,000 connections with 300 us for each request, the slowest 1 % took 0.93 s, and take 0.56 s now.)
#![forbid(unsafe_code)]

use std::cell::Cell;

use crate::runtime::scheduler::shared::Shared;

/// So many stolen tasks tell what others would be like.
const ENOUGH: u32 = 8;
/// One in so many was set aside, at least.
const PART: u32 = 4;
/// How long it steals nothing, at first and at most.
const FIRST_NS: u64 = 2_000_000;
const MOST_NS: u64 = 128_000_000;

/// What a guest knows of that.
#[derive(Debug, Default)]
pub(crate) struct Vain {
    stolen: Cell<u32>,
    aside: Cell<u32>,
    lasts_ns: Cell<u64>,
    until_ns: Cell<u64>,
}

impl Vain {
    /// A task was set aside. (If it was not stolen, it may count as one that was.)
    pub(crate) fn set_aside(&self) {
        self.aside.set(self.stolen.get().min(self.aside.get() + 1));
    }

    /// So many were stolen, at the time `now`; those before were run or set aside. If these are enough to tell, the new ones
    /// are not looked at: it may be back only after some time, and set aside others in it.
    pub(crate) fn stole(&self, tasks: u32, now: impl FnOnce() -> u64) {
        let stolen = self.stolen.get();
        if stolen >= ENOUGH {
            if self.aside.get() >= stolen / PART {
                let lasts = (self.lasts_ns.get() * 2).clamp(FIRST_NS, MOST_NS);
                self.lasts_ns.set(lasts);
                self.until_ns.set(now().saturating_add(lasts));
            } else {
                self.lasts_ns.set(0);
            }
            self.aside.set(0);
            self.stolen.set(0);
            return;
        }
        self.stolen.set(self.stolen.get().saturating_add(tasks));
    }

    /// When it may steal again, by the runtime's clock, or 0.
    #[inline]
    pub(crate) fn until_ns(&self) -> u64 {
        self.until_ns.get()
    }

    /// For a test: it has stolen in vain, and for good.
    #[cfg(all(test, not(volt_loom)))]
    pub(crate) fn for_ever(&self) {
        self.until_ns.set(u64::MAX);
    }
}

impl Shared {
    /// True if that time has not come.
    #[inline]
    pub(crate) fn is_before(&self, until_ns: u64) -> bool {
        until_ns != 0 && !cfg!(volt_loom) && self.driver_handle.clock.now_ns() < until_ns
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::*;

    /// Steals four tasks at a time, of which so many are set aside; the times at which it may not go on, so many in a row.
    fn pauses(vain: &Vain, aside: u32, times: usize) -> Vec<u64> {
        let steals = (0..4 * times).filter_map(|_| {
            let now = vain.until_ns.get();
            vain.stole(4, || now);
            (0..aside).for_each(|_| vain.set_aside());
            (vain.until_ns.get() != now).then(|| vain.until_ns.get() - now)
        });
        steals.take(times).collect()
    }

    #[test]
    fn who_sets_a_quarter_aside_pauses_for_longer_and_longer() {
        let vain = Vain::default();
        let expected = [2, 4, 8, 16, 32, 64, 128, 128].map(|ms| ms * 1_000_000);
        assert_eq!(pauses(&vain, 1, 8), expected);
        assert_eq!(pauses(&vain, 0, 8), []);
        assert_eq!(pauses(&vain, 4, 1), [FIRST_NS]);
    }
}
