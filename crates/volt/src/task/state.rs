//! The state word of a task: lifecycle, notification, the join handle's claims, references.
//!
//! Purpose: every decision about a task is one read-modify-write of one word, so that there is no
//! order of two of them to get wrong.
//!
//! Rejected: a notification that is dropped without a read-modify-write when the task is already
//! notified (finding K8: the next poll would not see what the waker wrote); a shutdown that runs a
//! task whose `Notified` somebody holds (that somebody could use the scheduler after it is freed).
//!
//! Bits: 0..8 flags, 8..16 the owned list's shard, 16..32 the generation (part of the task's id),
//! 32..64 the references.
//!
//! A task is queued as NOTIFIED after a wake-up from outside, and as RUNNING (*kept*) after its spawn
//! and after a wake-up by its own poll: nobody else has to be told, so neither the way into the queue
//! nor the way out of it writes the word. A wake-up of a kept task adds NOTIFIED, as of a running one.
//!
//! LINKED says that the task is in its owned list, or was: from its first idle time on (or from its
//! spawn), for good. A task that was never idle has no other users of its scheduler than those who
//! are about to poll it, so it need not be found there.
//!
//! Lifecycle, with the references that a transition takes (-) or gives (+) in the same operation:
//!
//! | Transition         | idle                   | NOTIFIED          | RUNNING             | RUNNING, NOTIFIED | COMPLETE |
//! |--------------------|------------------------|-------------------|---------------------|-------------------|----------|
//! | `to_running`       |                        | to RUNNING        | stays               | - NOTIFIED        |          |
//! | `to_idle`          |                        |                   | to idle, -1         | to NOTIFIED       |          |
//! | `to_idle`, CANCELLED |                      |                   | stays               | stays             |          |
//! | `to_idle`, not LINKED |                     |                   | stays: `to_linked`  | stays (kept)      |          |
//! | `to_linked`        |                        |                   | to idle, LINKED, shard; the reference is the list's | stays (kept) |  |
//! | `complete`         |                        |                   | to COMPLETE, -n     | to COMPLETE, -n   |          |
//! | `wake_by_ref`      | to NOTIFIED, +1        | same              | + NOTIFIED          | same              | same     |
//! | `wake_by_val`      | to NOTIFIED            | -1                | + NOTIFIED, -1      | -1                | -1       |
//! | `abort`            | to NOTIFIED, CANCELLED, +1 | + CANCELLED   | + NOTIFIED, CANCELLED | + CANCELLED     | same     |
//! | `shutdown`         | to RUNNING, CANCELLED  | + CANCELLED       | + CANCELLED         | + CANCELLED       | (gone)   |
//!
//! The join handle's part:
//!
//! | Transition           | not COMPLETE                               | COMPLETE                    |
//! |----------------------|--------------------------------------------|-----------------------------|
//! | `set_join_waker`     | + JOIN_WAKER                               | refused                     |
//! | `set_join_waker_and_ref` | + JOIN_WAKER, +1                       | +1                          |
//! | `unset_join_waker`   | - JOIN_WAKER: the slot is the handle's     | refused: the runner's       |
//! | `drop_join_handle`   | - JOIN_INTEREST, - JOIN_WAKER; -1 if there was no waker | same: the output is the handle's |
//!
//! Invariants: those of `task.rs`.
//!
//! | Edge  | Release side                 | Acquire side                  | Carries | Model |
//! |-------|------------------------------|-------------------------------|---------|-------|
//! | [TK1] | `State::update` (`wake_by_ref`, `wake_by_val`, `abort`) | `State::to_running` | what the waker did before | `task::model::wake_while_running_is_seen`, `task::model::wake_of_a_kept_task_is_seen` |
//! | [TK2] | `State::update` (`to_idle`, `to_linked`) | `State::to_running`           | the future as the last poll left it | `task::model::wake_while_running_is_seen` |
//! | [TK3] | `State::update` (`complete`) | `State::load` | the output | `task::model::join_waker_change_against_completion` |
//! | [TK4] | `State::update` (`set_join_waker`, `set_join_waker_and_ref`) | `State::update` (`complete`) | the join waker | `task::model::join_waker_change_against_completion` |
//! | [TK5] | `State::ref_dec`, `State::update`, `State::drop_join_handle` | `State::ref_dec`, `State::complete`, `State::update` | every access before the memory is freed | `task::model::last_reference_frees_after_all_others`, `task::model::a_handle_that_is_dropped_has_left_the_task` |
//! | [TK6] | `State::update` (`to_idle`, `to_linked`) | `State::update` (`shutdown`)  | the future as the last poll left it | `task::model::shutdown_against_poll` |
//!
//! Progress: every loop is a compare-and-exchange that fails only if another thread's succeeded.
//!
//! Cost: spawn 0 read-modify-writes here; the first poll, and one after a wake-up by the poll before,
//! 0 to begin, others 1; to end as pending 1, after a wake-up by itself 0, as complete 1 (0 if nobody
//! else has a reference, 2 if a join handle waits); wake 1, join 1 (0 if nobody else has a
//! reference), clone and drop of a waker 1 each.

use std::fmt;
use std::process::abort as abort_process;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use volt_sync::internal::primitive::{AtomicU64, fence};

const RUNNING: u64 = 1 << 0;
const NOTIFIED: u64 = 1 << 1;
const COMPLETE: u64 = 1 << 2;
const CANCELLED: u64 = 1 << 3;
const JOIN_INTEREST: u64 = 1 << 4;
const JOIN_WAKER: u64 = 1 << 5;
const FAILED: u64 = 1 << 6;
const LINKED: u64 = 1 << 7;
const SHARD_SHIFT: u32 = 8;
const GENERATION_SHIFT: u32 = 16;
const REF_ONE: u64 = 1 << 32;

/// Above this many references the process is aborted: long before they could overflow.
const MAX_REFS: u64 = u32::MAX as u64 / 2;

/// The state word.
pub(super) struct State(AtomicU64);

/// One reading of the state word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Snapshot(u64);

/// What [`State::to_running`] found.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ToRunning {
    /// Poll the future.
    Poll,
    /// Drop the future: the task was aborted, or its runtime shuts down.
    Cancel,
}

/// What [`State::to_idle`] did.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ToIdle {
    /// Idle; the runner's reference is gone.
    Idle,
    /// It was notified meanwhile: the runner's reference is now the `Notified`'s.
    Notified,
    /// It was cancelled meanwhile: still RUNNING, drop the future.
    Cancel,
    /// It is idle for the first time, and has to be linked before: still RUNNING.
    Unlinked,
}

/// Whether a task is in its owned list from its spawn on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Birth {
    /// It is, in this shard.
    Linked(u8),
    /// It is not; this is a mark for its scheduler, until it is linked.
    Marked(u8),
}

/// What is left to do after [`State::complete`].
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Completed {
    /// Nothing; the references are gone, others exist.
    Done,
    /// Free the task: the references were the last.
    Last,
    /// Take and wake the join waker, then drop the references.
    WakeJoin,
    /// Drop the output, since nobody else will, then drop the references.
    DropOutput,
}

/// What is left to do after a notification.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Notify {
    /// Schedule the task: a reference for its `Notified` was given.
    Submit,
    /// Nothing.
    Done,
    /// Free the task: the waker's reference was the last.
    Last,
}

/// What [`State::shutdown`] did.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shutdown {
    /// The task was idle; the caller is its runner now and has to cancel it.
    Cancel,
    /// Whoever holds its `Notified`, or runs it, will see that it is cancelled.
    Busy,
}

/// What is left to do for a join handle that goes away.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JoinDropped {
    /// Nothing; its reference is gone.
    Done,
    /// Drop the join waker, then the reference.
    DropWaker,
    /// Drop the output, then the reference.
    DropOutput,
}

impl State {
    /// A task that was just spawned: kept, with references for its `Notified`, its join handle, and
    /// its owned list, if it is in that.
    #[inline]
    pub(super) fn new(birth: Birth, generation: u16) -> Self {
        let (shard, linked, refs) = match birth {
            Birth::Linked(shard) => (shard, LINKED, 3 * REF_ONE),
            Birth::Marked(mark) => (mark, 0, 2 * REF_ONE),
        };
        Self(AtomicU64::new(
            RUNNING
                | JOIN_INTEREST
                | linked
                | (u64::from(shard) << SHARD_SHIFT)
                | (u64::from(generation) << GENERATION_SHIFT)
                | refs,
        ))
    }

    /// Looks. What the task wrote before it was COMPLETE is visible if this says that it is.
    #[inline]
    pub(super) fn load(&self) -> Snapshot {
        // ORD[TK3] acquire: the output of a task that is COMPLETE.
        Snapshot(self.0.load(Acquire))
    }

    /// Looks at what never changes (the generation; the shard and LINKED for the runner), or for a
    /// hint.
    #[inline]
    pub(super) fn peek(&self) -> Snapshot {
        // ORD relaxed: nothing is read on the strength of it.
        Snapshot(self.0.load(Relaxed))
    }

    /// The poll begins: RUNNING, and not NOTIFIED. Only for the holder of the `Notified`.
    #[inline]
    pub(super) fn to_running(&self) -> ToRunning {
        // ORD relaxed: RUNNING is the holder's. A waker or canceller that is not seen here is seen
        // after the poll, when RUNNING is given up, or at the next look here.
        let now = Snapshot(self.0.load(Relaxed));
        if now.has(RUNNING) && !now.has(NOTIFIED | CANCELLED) {
            // What the last poll wrote came with the `Notified`.
            return ToRunning::Poll;
        }
        let before = if now.has(RUNNING) {
            // ORD[TK1] acquire: what the wakers wrote.
            Snapshot(self.0.fetch_and(!NOTIFIED, AcqRel))
        } else {
            // Invariant 2 of `task.rs`: NOTIFIED is set and RUNNING is not, so this moves the bit.
            // ORD[TK1] acquire: what the wakers wrote. ORD[TK2] acquire: what the last poll wrote.
            Snapshot(self.0.fetch_sub(NOTIFIED - RUNNING, AcqRel))
        };
        debug_assert!(before.has(NOTIFIED | RUNNING) && !before.has(COMPLETE), "{before:?}");
        if before.has(CANCELLED) { ToRunning::Cancel } else { ToRunning::Poll }
    }

    /// The future is pending.
    #[inline]
    pub(super) fn to_idle(&self) -> ToIdle {
        self.update(|state| {
            debug_assert!(state.has(RUNNING) && !state.has(COMPLETE), "{state:?}");
            if state.has(CANCELLED) {
                (ToIdle::Cancel, None)
            } else if !state.has(LINKED) {
                let notified = state.has(NOTIFIED);
                (if notified { ToIdle::Notified } else { ToIdle::Unlinked }, None)
            } else if state.has(NOTIFIED) {
                (ToIdle::Notified, Some(state.without(RUNNING)))
            } else {
                debug_assert!(state.refs() > 1, "invariant 1 of task.rs: {state:?}");
                (ToIdle::Idle, Some(state.without(RUNNING).minus_refs(1)))
            }
        })
    }

    /// The future is pending for the first time, and the task in `shard` of its owned list, whose
    /// lock the caller holds. Unless this says that it is idle, it has to leave the list again.
    #[inline]
    pub(super) fn to_linked(&self, shard: u8) -> ToIdle {
        self.update(|state| {
            debug_assert!(state.has(RUNNING) && !state.has(COMPLETE | LINKED), "{state:?}");
            debug_assert_eq!(state.shard(), 0, "a task with a mark is never pending");
            if state.has(CANCELLED) {
                (ToIdle::Cancel, None)
            } else if state.has(NOTIFIED) {
                (ToIdle::Notified, None)
            } else {
                // The runner's reference is the list's from now on.
                let shard = u64::from(shard) << SHARD_SHIFT;
                (ToIdle::Idle, Some(state.without(RUNNING).with(LINKED | shard)))
            }
        })
    }

    /// RUNNING to COMPLETE. `stored` says whether there is an output (or, if `failed`, an error) in
    /// the task, `refs` how many references the runner gives back, if nothing remains to be done.
    #[inline]
    pub(super) fn complete(&self, refs: u32, stored: bool, failed: bool) -> Completed {
        // ORD[TK5] acquire: what was done through all other references, if they are gone.
        if !stored && Snapshot(self.0.load(Acquire)).refs() == refs {
            // Nobody is left who could look.
            return Completed::Last;
        }
        self.update(|state| {
            debug_assert!(state.has(RUNNING) && !state.has(COMPLETE), "{state:?}");
            let done = state.without(RUNNING).with(COMPLETE | if failed { FAILED } else { 0 });
            if !state.has(JOIN_INTEREST) && stored {
                (Completed::DropOutput, Some(done))
            } else if state.has(JOIN_WAKER) {
                (Completed::WakeJoin, Some(done))
            } else if state.refs() == refs {
                (Completed::Last, Some(done.minus_refs(refs)))
            } else {
                (Completed::Done, Some(done.minus_refs(refs)))
            }
        })
    }

    /// A waker was used and stays.
    #[inline]
    pub(super) fn wake_by_ref(&self) -> Notify {
        self.update(|state| {
            if state.has(COMPLETE) {
                (Notify::Done, None)
            } else if state.has(RUNNING | NOTIFIED) {
                // Finding K8: written even if it changes nothing, so that the next poll acquires
                // what this waker did.
                (Notify::Done, Some(state.with(NOTIFIED)))
            } else {
                (Notify::Submit, Some(state.with(NOTIFIED).plus_ref()))
            }
        })
    }

    /// A waker was used up, and its reference with it.
    #[inline]
    pub(super) fn wake_by_val(&self) -> Notify {
        self.update(|state| {
            if state.has(COMPLETE) {
                let outcome = if state.refs() == 1 { Notify::Last } else { Notify::Done };
                (outcome, Some(state.minus_refs(1)))
            } else if state.has(RUNNING | NOTIFIED) {
                (Notify::Done, Some(state.with(NOTIFIED).minus_refs(1)))
            } else {
                (Notify::Submit, Some(state.with(NOTIFIED)))
            }
        })
    }

    /// The task shall be cancelled at the next opportunity.
    pub(super) fn abort(&self) -> Notify {
        self.update(|state| {
            if state.has(COMPLETE) {
                (Notify::Done, None)
            } else if state.has(RUNNING | NOTIFIED) {
                (Notify::Done, Some(state.with(NOTIFIED | CANCELLED)))
            } else {
                (Notify::Submit, Some(state.with(NOTIFIED | CANCELLED).plus_ref()))
            }
        })
    }

    /// The runtime shuts down. Only for the owned list, with the task in it.
    pub(super) fn shutdown(&self) -> Shutdown {
        self.update(|state| {
            debug_assert!(!state.has(COMPLETE), "invariant 3 of task.rs: {state:?}");
            if state.has(RUNNING | NOTIFIED) {
                (Shutdown::Busy, Some(state.with(CANCELLED)))
            } else {
                (Shutdown::Cancel, Some(state.with(RUNNING | CANCELLED)))
            }
        })
    }

    /// The join waker was written. False if the task is COMPLETE: the waker is the caller's again.
    #[inline]
    pub(super) fn set_join_waker(&self) -> bool {
        self.update(|state| {
            debug_assert!(state.has(JOIN_INTEREST), "{state:?}");
            if state.has(COMPLETE) {
                (false, None)
            } else {
                debug_assert!(!state.has(JOIN_WAKER), "{state:?}");
                (true, Some(state.with(JOIN_WAKER)))
            }
        })
    }

    /// As [`set_join_waker`](Self::set_join_waker), and one more reference, in either case.
    #[inline]
    pub(super) fn set_join_waker_and_ref(&self) -> bool {
        self.update(|state| {
            debug_assert!(state.has(JOIN_INTEREST) && !state.has(JOIN_WAKER), "{state:?}");
            let complete = state.has(COMPLETE);
            let next = if complete { state } else { state.with(JOIN_WAKER) };
            (!complete, Some(next.plus_ref()))
        })
    }

    /// The join handle wants its waker back. False if the task is COMPLETE: then the runner has it.
    pub(super) fn unset_join_waker(&self) -> bool {
        self.update(|state| {
            debug_assert!(state.has(JOIN_INTEREST) && state.has(JOIN_WAKER), "{state:?}");
            if state.has(COMPLETE) {
                (false, None)
            } else {
                (true, Some(state.without(JOIN_WAKER)))
            }
        })
    }

    /// The join handle goes away without having taken the output.
    ///
    /// Mostly right after the spawn, when one exchange does it: that is inline, without a loop.
    #[inline]
    pub(super) fn drop_join_handle(&self) -> JoinDropped {
        let state = self.peek();
        debug_assert!(state.has(JOIN_INTEREST), "{state:?}");
        let exchange = || {
            let next = state.without_join_handle();
            // ORD[TK5] release: what was done through this reference.
            self.0.compare_exchange(state.0, next.0, Release, Relaxed).is_ok()
        };
        let is_gone = !state.has(COMPLETE | JOIN_WAKER) && exchange();
        if is_gone { JoinDropped::Done } else { self.drop_join_handle_slow() }
    }

    #[cold]
    fn drop_join_handle_slow(&self) -> JoinDropped {
        self.update(|state| {
            if state.has(COMPLETE) {
                (JoinDropped::DropOutput, None)
            } else if state.has(JOIN_WAKER) {
                (JoinDropped::DropWaker, Some(state.without(JOIN_INTEREST | JOIN_WAKER)))
            } else {
                (JoinDropped::Done, Some(state.without_join_handle()))
            }
        })
    }

    /// One more reference.
    #[inline]
    pub(super) fn ref_inc(&self) {
        // ORD relaxed: the caller has a reference; giving another carries nothing.
        let before = Snapshot(self.0.fetch_add(REF_ONE, Relaxed));
        if u64::from(before.refs()) > MAX_REFS {
            abort_process();
        }
    }

    /// `refs` references fewer. True if none is left: the caller frees the task.
    #[inline]
    pub(super) fn ref_dec(&self, refs: u32) -> bool {
        // ORD[TK5] acquire: what was done through all others, before the memory is freed.
        if Snapshot(self.0.load(Acquire)).refs() == refs {
            // All are the caller's, and new ones are made from old ones only.
            return true;
        }
        // ORD[TK5] release: what was done through this reference.
        let before = Snapshot(self.0.fetch_sub(u64::from(refs) * REF_ONE, Release));
        debug_assert!(before.refs() >= refs, "{before:?}");
        let last = before.refs() == refs;
        if last {
            // ORD[TK5] acquire: what was done through all others, before the memory is freed.
            fence(Acquire);
        }
        last
    }

    /// The one loop behind the transitions: `step` says for a state what follows from it, and what
    /// the state shall be then (`None`: it stays, and nothing is written).
    #[inline(always)]
    fn update<R>(&self, step: impl Fn(Snapshot) -> (R, Option<Snapshot>)) -> R {
        // ORD relaxed: only the operand of the exchange. A transition that writes nothing because
        // the task is COMPLETE is followed by a `load` before the output is touched.
        let mut state = Snapshot(self.0.load(Relaxed));
        loop {
            let (outcome, next) = step(state);
            let Some(next) = next else { return outcome };
            // ORD[TK1] release: a notification passes on what its waker did.
            // ORD[TK2] release: `to_idle` passes the future on.
            // ORD[TK6] release: the same.
            // ORD[TK6] acquire: `shutdown` of an idle task drops its future.
            // ORD[TK3] release: `complete` passes the output on.
            // ORD[TK4] release: `set_join_waker` passes the waker on.
            // ORD[TK4] acquire: `complete` that finds JOIN_WAKER takes the waker.
            // ORD[TK5] release: what was done through a reference that goes away.
            // ORD[TK5] acquire: the same of all others, if it was the last.
            match self.0.compare_exchange_weak(state.0, next.0, AcqRel, Relaxed) {
                Ok(_) => return outcome,
                Err(now) => state = Snapshot(now),
            }
        }
    }
}

impl Snapshot {
    /// True if any of `flags` is set.
    #[inline]
    const fn has(self, flags: u64) -> bool {
        self.0 & flags != 0
    }

    const fn with(self, flags: u64) -> Self {
        Self(self.0 | flags)
    }

    const fn without(self, flags: u64) -> Self {
        Self(self.0 & !flags)
    }

    fn plus_ref(self) -> Self {
        if u64::from(self.refs()) > MAX_REFS {
            abort_process();
        }
        Self(self.0 + REF_ONE)
    }

    const fn minus_refs(self, refs: u32) -> Self {
        Self(self.0 - refs as u64 * REF_ONE)
    }

    /// Without the handle of a task that is not COMPLETE, and the reference that goes with it.
    #[inline]
    fn without_join_handle(self) -> Self {
        debug_assert!(self.refs() > 1, "invariant 1 of task.rs: {self:?}");
        self.without(JOIN_INTEREST).minus_refs(1)
    }

    pub(super) const fn refs(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(super) const fn is_complete(self) -> bool {
        self.has(COMPLETE)
    }

    /// The output is an error.
    pub(super) const fn is_failed(self) -> bool {
        self.has(FAILED)
    }

    pub(super) const fn is_join_interested(self) -> bool {
        self.has(JOIN_INTEREST)
    }

    pub(super) const fn has_join_waker(self) -> bool {
        self.has(JOIN_WAKER)
    }

    /// The task is in its owned list, or has been.
    pub(super) const fn is_linked(self) -> bool {
        self.has(LINKED)
    }

    /// The shard of the owned list that the task is in.
    pub(super) const fn shard(self) -> u8 {
        (self.0 >> SHARD_SHIFT) as u8
    }

    /// Tells tasks apart that had the same address one after the other.
    pub(super) const fn generation(self) -> u16 {
        (self.0 >> GENERATION_SHIFT) as u16
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(u64, &str); 8] = [
            (RUNNING, "RUNNING"),
            (NOTIFIED, "NOTIFIED"),
            (COMPLETE, "COMPLETE"),
            (CANCELLED, "CANCELLED"),
            (JOIN_INTEREST, "JOIN_INTEREST"),
            (JOIN_WAKER, "JOIN_WAKER"),
            (FAILED, "FAILED"),
            (LINKED, "LINKED"),
        ];
        for (flag, name) in NAMES {
            if self.has(flag) {
                write!(f, "{name} ")?;
            }
        }
        write!(f, "refs={}", self.refs())
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.load().fmt(f)
    }
}
