//! How long a turn takes.
//!
//! From the wake-up to the next poll of the same future on the same thread: its task may poll others as
//! well, whose turns would end it too early. What counts is the middle one of the last three that were
//! timed: the system may take the thread off its processor in the middle of a turn, for longer than any
//! turn should take, and that says nothing of the next one.
//!
//! Rejected: the shorter one of two. If every second turn is long, nobody ever knows.
//!
//! Cost: two readings of the clock for each turn that is timed, one in [`TIMED`] or fewer.

use std::cell::Cell;
use std::time::Instant;

use crate::primitive::now;

/// After one that was timed, the next one is so many turns later: an odd number, since every second one
/// may be long.
pub(super) const TIMED: u16 = 15;
/// So many turns later nobody expects that the timed one comes back: its future was dropped, or is polled
/// elsewhere.
pub(super) const GONE: u16 = 1024;
/// The turns of one wait take so long at most, as far as is known.
pub(super) const DELAY_NS: u32 = 1_000_000;
/// A turn where nothing else is to run does not take longer.
pub(super) const BRIEF_NS: u32 = 500;
/// Turns can be timed here: not in a model, which has no time, nor where the standard library has no clock.
pub(crate) const CLOCK: bool =
    !cfg!(any(volt_loom, all(target_family = "wasm", target_os = "unknown")));

#[derive(Debug)]
pub(super) struct Pace {
    /// A turn that takes longer is long.
    limit_ns: u32,
    /// Turns until the next one that is timed.
    untimed: Cell<u16>,
    /// The wait whose turn is timed, and when that began.
    timed: Cell<Option<(usize, Instant)>>,
    /// How long the last three took that were timed, the newest first.
    last_ns: Cell<[u32; 3]>,
    /// The middle one of them.
    ns: Cell<u32>,
}

impl Pace {
    pub(super) const fn new(limit_ns: u32) -> Self {
        Self {
            limit_ns,
            untimed: Cell::new(0),
            timed: Cell::new(None),
            last_ns: Cell::new([0; 3]),
            ns: Cell::new(0),
        }
    }

    /// True if turns are long.
    pub(super) fn is_long(&self) -> bool {
        self.ns.get() > self.limit_ns
    }

    /// True if a wait that has `given` some turns has time for another.
    pub(super) fn has_time(&self, given: u8) -> bool {
        u32::from(given).saturating_mul(self.ns.get()) <= DELAY_NS
    }

    /// A turn of `wait` begins.
    pub(super) fn begins(&self, wait: usize) {
        match self.untimed.get() {
            0 => self.time(wait),
            untimed => self.untimed.set(untimed - 1),
        }
    }

    /// It does, and is timed.
    pub(super) fn time(&self, wait: usize) {
        self.untimed.set(GONE - 1);
        if CLOCK {
            self.timed.set(Some((wait, now())));
        }
    }

    /// The future at `wait` is polled. How long that took, if its turn was timed.
    pub(super) fn ends(&self, wait: usize) -> Option<u32> {
        let (_, began) = self.timed.get().filter(|(timed, _)| *timed == wait)?;
        self.timed.set(None);
        self.untimed.set(TIMED - 1);
        Some(u32::try_from(began.elapsed().as_nanos()).unwrap_or(u32::MAX))
    }

    /// A turn took so long. True if that is too long.
    pub(super) fn took(&self, ns: u32) -> bool {
        let [newest, older, _] = self.last_ns.get();
        self.last_ns.set([ns, newest, older]);
        self.ns.set(ns.clamp(newest.min(older), newest.max(older)));
        if ns > self.limit_ns {
            // Was it the turn, or the system? The next one will tell.
            self.untimed.set(0);
        }
        ns > self.limit_ns
    }

    #[cfg(all(test, not(volt_loom)))]
    pub(super) fn timed(&self) -> Option<usize> {
        self.timed.get().map(|timed| timed.0)
    }

    /// The next turn is timed.
    #[cfg(all(test, not(volt_loom)))]
    pub(super) fn again(&self) {
        self.untimed.set(0);
    }

    /// No turn is timed from now on.
    #[cfg(all(test, not(volt_loom)))]
    pub(super) fn never(&self) {
        self.timed.set(None);
        self.untimed.set(u16::MAX);
        self.last_ns.set([0; 3]);
        self.ns.set(0);
    }
}
