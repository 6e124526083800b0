//! Something that a thread waits for, and of what it is a part.
//!
//! Purpose: a fork, a scope and a call into the pool each have a frame. Its state ends the waiting;
//! its chain of parents tells whether a piece of work is a descendant of what a thread waits for, so
//! that a waiting thread helps with that and with nothing else. A thread that holds a lock while it
//! waits therefore never runs unrelated work that could want the same lock.
//!
//! Rejected: helping with anything (rayon), which deadlocks in that case; only the thief's work
//! ("leapfrogging"), which leaves a scope's owner idle while its tasks fork.
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

#[derive(Debug)]
pub(crate) struct Frame {
    state: AtomicU32,
    parker: &'static Parker,
    parent: *const Frame,
    /// The outermost ancestor; null if that is the frame itself.
    root: *const Frame,
    /// The worker that waits for it; null for threads outside of pools.
    owner: *const Worker,
}

impl Frame {
    /// # Safety
    /// 1. `parent` is null, or outlives this frame.
    pub(crate) unsafe fn new(
        parent: *const Self,
        parker: &'static Parker,
        owner: *const Worker,
    ) -> Self {
        let root = if parent.is_null() {
            ptr::null()
        } else {
            // SAFETY: alive, as obligation 1 says.
            unsafe { Self::root(parent) }
        };
        Self { state: AtomicU32::new(RUNNING), parker, parent, root, owner }
    }

    /// The outermost ancestor, by which related work can be guessed.
    ///
    /// # Safety
    /// 1. `this` is alive.
    pub(crate) unsafe fn root(this: *const Self) -> *const Self {
        // SAFETY: alive, as obligation 1 says.
        let root = unsafe { (*this).root };
        if root.is_null() { this } else { root }
    }

    pub(crate) fn owner(&self) -> *const Worker {
        self.owner
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
