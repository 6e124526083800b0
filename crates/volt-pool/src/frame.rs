//! Something that a thread waits for, and of what it is a part.
//!
//! Purpose: a fork, a scope and a call into the pool each have a frame. Its state ends the waiting;
//! its chain of parents tells whether a piece of work is a descendant of what a thread waits for, so
//! that a waiting thread helps with that and with nothing else. A thread that holds a lock while it
//! waits therefore never runs unrelated work that could want the same lock.
//!
//! Work that somebody offers cannot be asked for its parents before it is claimed: by then it may be
//! gone. So it stands beside a [`Lineage`], a filter that tells nearly all that is unrelated.
//!
//! Rejected: helping with anything (rayon), which deadlocks in that case; only the thief's work
//! ("leapfrogging"), which leaves a scope's owner idle while its tasks fork; the outermost frame as
//! the hint, which takes all work of one call for related.
//!
//! | State    | Meaning                         | the owner                | the finisher      |
//! |----------|---------------------------------|--------------------------|-------------------|
//! | RUNNING  | somebody has it                 | looks, helps, to WAITING | to an outcome     |
//! | WAITING  | the owner sleeps                | to RUNNING when awake    | to an outcome, unparks |
//! | DONE     | it ended                        | goes on                  | -                 |
//! | RETURNED | it will not be run by the others | runs it                 | -                 |
//!
//! Invariants:
//! 1. A frame lives until its owner has seen an outcome; the finisher's exchange is its last access.
//!    The parkers are never freed.
//! 2. A frame lives as long as any unfinished descendant, since each owner waits.
//!
//! | Edge | Release side | Acquire side | Carries | Model that fails without it |
//! |------|--------------|--------------|---------|-----------------------------|
//! | [FR1] | `Frame::finish` | `Frame::outcome` | the result | `the_result_arrives_and_the_sleeper_wakes` |
//!
//! Progress: the owner sleeps only after its exchange to WAITING, which fails once there is an
//! outcome; the finisher's exchange sees WAITING and unparks.
//!
//! Cost: nothing until somebody else has the work; then 1 RMW to finish, 1 to sleep, 1 to wake.

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use volt_sync::internal::Parker;
use volt_sync::internal::primitive::{AtomicU32, fence};

use crate::spin::{self, Answered};
use crate::worker::Worker;

const RUNNING: u32 = 0;
const WAITING: u32 = 1;
const DONE: u32 = 2;
const RETURNED: u32 = 3;

/// How the waiting ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The work was done, or its panic caught.
    Done,
    /// The work was not done: the owner does it.
    Returned,
}

/// Which ancestors something may have: a set that may seem to hold more than it does (B. H. Bloom,
/// "Space/Time Trade-offs in Hash Coding with Allowable Errors", CACM 1970), with two bits for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lineage(usize);

impl Lineage {
    /// Nobody.
    pub(crate) const NONE: Self = Self(0);

    /// `frame` alone.
    pub(crate) fn of(frame: *const Frame) -> Self {
        if cfg!(volt_loom) {
            // The executions of a model must not differ in the addresses.
            return Self(1);
        }
        // Fibonacci hashing (Knuth, TAOCP 3, 6.4): the addresses of frames differ in few bits.
        let hash = (frame.addr() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let bit = |shift: u32| 1_usize << ((hash >> shift) as u32 % usize::BITS);
        Self(bit(58) | bit(52))
    }

    /// What [`bits`](Self::bits) gave.
    pub(crate) fn from_bits(bits: usize) -> Self {
        Self(bits)
    }

    pub(crate) fn bits(self) -> usize {
        self.0
    }

    /// False if `other` is not a part of this; true perhaps.
    pub(crate) fn may_include(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

#[derive(Debug)]
pub(crate) struct Frame {
    state: AtomicU32,
    parker: &'static Parker,
    parent: *const Frame,
    /// Of all ancestors.
    lineage: Lineage,
    /// The worker that waits for it; null for threads outside of pools.
    owner: *const Worker,
    /// It is that of a broadcast.
    broadcast: bool,
}

impl Frame {
    /// # Safety
    /// 1. `parent` is null, or outlives this frame.
    pub(crate) unsafe fn new(
        parent: *const Self,
        parker: &'static Parker,
        owner: *const Worker,
    ) -> Self {
        // SAFETY: null, or alive, as obligation 1 says.
        let lineage = unsafe { parent.as_ref() }
            .map_or(Lineage::NONE, |ancestor| Lineage(ancestor.lineage.0 | Lineage::of(parent).0));
        Self { state: AtomicU32::new(RUNNING), parker, parent, lineage, owner, broadcast: false }
    }

    /// The same as that of a broadcast.
    pub(crate) fn of_broadcast(self) -> Self {
        Self { broadcast: true, ..self }
    }

    pub(crate) fn is_broadcast(&self) -> bool {
        self.broadcast
    }

    /// True if a thread of a pool waits for `this`, or for something of which it is a part.
    ///
    /// # Safety
    /// 1. `this` is null, or a frame with work that is not finished.
    pub(crate) unsafe fn has_thread_waiting(mut this: *const Self) -> bool {
        // SAFETY: null, or of unfinished work (1), or an ancestor of that (invariant 2).
        while let Some(frame) = unsafe { this.as_ref() } {
            // SAFETY: null, or a record in a pool whose thread waits for the frame.
            let owner = unsafe { frame.owner.as_ref() };
            if owner.is_some_and(|owner| owner.thread().is_some()) {
                return true;
            }
            this = frame.parent;
        }
        false
    }

    pub(crate) fn lineage(&self) -> Lineage {
        self.lineage
    }

    pub(crate) fn owner(&self) -> *const Worker {
        self.owner
    }

    pub(crate) fn parker(&self) -> &'static Parker {
        self.parker
    }

    pub(crate) fn parent(&self) -> *const Self {
        self.parent
    }

    /// True if `ancestor` is `this`, or one of its ancestors.
    ///
    /// # Safety
    /// 1. `this` is null, or a frame with work that is not finished.
    pub(crate) unsafe fn descends(mut this: *const Self, ancestor: *const Self) -> bool {
        while !this.is_null() {
            if ptr::eq(this, ancestor) {
                return true;
            }
            // SAFETY: an ancestor of unfinished work (1, invariant 2).
            this = unsafe { (*this).parent };
        }
        false
    }

    /// How it ended, if it did.
    #[inline]
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        // ORD[FR1] acquire: the result.
        match self.state.load(Acquire) {
            DONE => Some(Outcome::Done),
            RETURNED => Some(Outcome::Returned),
            _ => None,
        }
    }

    /// Ends the waiting.
    ///
    /// # Safety
    /// 1. `this` is alive and has no outcome; the caller is the one who has the work.
    pub(crate) unsafe fn finish(this: *const Self, outcome: Outcome) {
        // SAFETY: alive (1). Read before the exchange, after which the frame may be gone.
        let parker = unsafe { (*this).parker };
        let new = if outcome == Outcome::Done { DONE } else { RETURNED };
        // SAFETY: alive, as obligation 1 says.
        let state = unsafe { &(*this).state };
        // ORD[FR1] release: the result.
        if state.swap(new, Release) == WAITING {
            parker.unpark();
            spin::answered(Answered::Sleeper);
        } else {
            spin::answered(Answered::Awake);
        }
    }

    /// Gives an outcome to a frame for which nobody sleeps.
    pub(crate) fn void(&self) {
        // ORD relaxed: carries nothing. See `errand.rs` for who looks.
        self.state.store(DONE, Relaxed);
    }

    /// True if it has an outcome, for those who need nothing that came before.
    pub(crate) fn has_ended(&self) -> bool {
        // ORD relaxed: see above.
        self.state.load(Relaxed) >= DONE
    }

    /// Sleeps until the outcome, or until called to help; also returns for no reason. `reconsider`
    /// is called after the sleep was announced and tells whether there is something to help with.
    pub(crate) fn sleep(&self, reconsider: impl FnOnce() -> bool) {
        // ORD relaxed: announces the sleep; the outcome is read by `outcome`.
        if self.state.compare_exchange(RUNNING, WAITING, Relaxed, Relaxed).is_err() {
            return;
        }
        // ORD SeqCst fence: pairs with the fence of whoever publishes work and then looks for sleepers.
        fence(SeqCst);
        if !reconsider() {
            self.parker.park();
        }
        // ORD relaxed: awake; if it fails there is an outcome, or a helper was called.
        let _ = self.state.compare_exchange(WAITING, RUNNING, Relaxed, Relaxed);
    }

    /// Wakes the owner, if it sleeps, so that it helps. True if it was asleep.
    ///
    /// The caller has published what there is to help with, and has a `fence(SeqCst)` behind it.
    pub(crate) fn call_helper(&self) -> bool {
        // ORD relaxed: a look, ordered by the caller's fence.
        let asleep = self.state.load(Relaxed) == WAITING
            // ORD relaxed: the token of the parker carries what was published.
            && self.state.compare_exchange(WAITING, RUNNING, Relaxed, Relaxed).is_ok();
        if asleep {
            self.parker.unpark();
        }
        asleep
    }
}

#[cfg(all(test, volt_loom))]
mod model;
