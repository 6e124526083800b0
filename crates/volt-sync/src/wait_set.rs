//! Waiters for an event: the core of `Notify` and `Barrier`.
//!
//! Purpose: a word with a lock bit, a generation and two flags, and the waiters in the order in
//! which they came. One of them can be completed, or all at once.
//!
//! Rejected:
//! * A mutex of std beside the word: two more read-modify-writes for each wait and each wake-up.
//! * To wake all waiters, a list on the waking thread's stack (Tokio): a second list in the set does
//!   the same without pinning, and several threads can work on it.
//! * The deposit-and-leave protocol of `permits.rs`: events do not add up, so there is nothing to
//!   deposit while somebody else has the lock.
//!
//! State: `[generation : BITS - 3][PERMIT][QUEUED][LOCKED]`. PERMIT belongs to the owner of the set.
//! `live` are the waiters of the word's generation, `stale` those of older ones: their event has
//! come, and somebody is about to wake them.
//!
//! Invariants:
//! 1. While LOCKED is set, only its holder writes the word, and the lists.
//! 2. Unlocked: QUEUED is set if and only if `live` is not empty.
//! 3. A waiter that waits is in `live` if its generation is the word's, and in `stale` otherwise.
//! 4. Whoever fills `stale` empties it, or finds that somebody else has.
//!
//! | Edge  | Release side          | Acquire side          | Carries | Model that fails without it |
//! |-------|-----------------------|-----------------------|---------|-----------------------------|
//! | [WT1] | `WaitSet::locked`, the unlock | `WaitSet::locked`, the lock | the lists; a generation | `notify::model::each_notify_one_wakes_one_of_two` |
//! | [WT2] | `WaitSet::try_change`, `WaitSet::locked` | `WaitSet::word` | what came before a new generation or a permit | `notify::model` |
//! | [WT3] | `WaitSet::try_change` | `WaitSet::try_change` | what came before the permit that is taken | `notify::model` |
//!
//! Progress: the lock is held for a few instructions, without user code; whoever finds it taken
//! spins, then gives the processor away.
//!
//! Models of three and four threads: `wait_set` in `docs/design/models.md`.
//!
//! Cost: a locked operation is one RMW and a store. Memory: five words and the owner's data.

use std::mem::MaybeUninit;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::first_panic::FirstPanic;
use crate::linked_list::LinkedList;
use crate::primitive::{AtomicUsize, UnsafeCell, spin};
use crate::waiter::Waiter;
use crate::wake_list::WakeList;

mod entry;

pub(crate) use entry::Entry;

const LOCKED: usize = 1;
const QUEUED: usize = 2;
const PERMIT: usize = 4;
const GENERATION: usize = 8;

/// A waiter's `status` when the event for all came.
pub(crate) const ALL: u8 = 1;

/// One value of the word, without the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(usize);

impl Word {
    #[inline(always)]
    pub(crate) const fn generation(self) -> usize {
        self.0 / GENERATION
    }

    #[inline(always)]
    pub(crate) const fn next_generation(self) -> Self {
        Self(self.0.wrapping_add(GENERATION))
    }

    #[inline(always)]
    pub(crate) const fn has_permit(self) -> bool {
        self.0 & PERMIT != 0
    }

    #[inline(always)]
    pub(crate) const fn with_permit(self, permit: bool) -> Self {
        Self(self.0 & !PERMIT | if permit { PERMIT } else { 0 })
    }

    /// True if a change may bypass the lists: they are not locked, and nobody waits.
    #[inline(always)]
    pub(crate) const fn is_idle(self) -> bool {
        self.0 & (LOCKED | QUEUED) == 0
    }

    const fn is_locked(self) -> bool {
        self.0 & LOCKED != 0
    }
}

/// What the lock guards.
pub(crate) struct Lists<E> {
    /// Waiters of the current generation.
    live: LinkedList<Waiter<()>>,
    /// Waiters of older generations.
    stale: LinkedList<Waiter<()>>,
    /// The owner's.
    pub(crate) extra: E,
}

impl<E> Lists<E> {
    /// Completes the oldest waiter, or the newest; the result is to be woken after the unlock.
    pub(crate) fn complete_one(&mut self, newest: bool, status: u8) -> Option<std::task::Waker> {
        let node = if newest { self.live.pop_back() } else { self.live.pop_front() }?;
        // SAFETY: it was linked, so it waited; the caller is inside `locked`.
        Some(unsafe { Waiter::complete(node, status) })
    }

    /// Ends the generation: `word` becomes the next, and all waiters stale. Completes the first of
    /// them; the rest is for [`WaitSet::wake`], with the result.
    pub(crate) fn open(&mut self, word: &mut Word, wakers: &mut WakeList) -> bool {
        *word = word.next_generation();
        self.stale.append(&mut self.live);
        self.complete_stale(wakers)
    }

    /// Completes stale waiters until `wakers` is full. True if there are more.
    fn complete_stale(&mut self, wakers: &mut WakeList) -> bool {
        while !wakers.is_full() {
            let Some(node) = self.stale.pop_front() else { return false };
            // SAFETY: it was linked, so it waited; the caller is inside `locked`.
            wakers.push(unsafe { Waiter::complete(node, ALL) });
        }
        !self.stale.is_empty()
    }
}

/// The set.
pub(crate) struct WaitSet<E> {
    word: AtomicUsize,
    lists: UnsafeCell<Lists<E>>,
}

// SAFETY: the lists are accessed only under LOCKED; wakers are `Send`.
unsafe impl<E: Send> Send for WaitSet<E> {}
// SAFETY: shared access goes through the atomic word, and to the lists only under LOCKED.
unsafe impl<E: Send> Sync for WaitSet<E> {}

// No user code runs under the lock.
impl<E> UnwindSafe for WaitSet<E> {}
impl<E> RefUnwindSafe for WaitSet<E> {}

impl<E> WaitSet<E> {
    crate::const_fn! {
        /// An empty set.
        pub(crate) const fn new(extra: E) -> Self {
            Self {
                word: AtomicUsize::new(0),
                lists: UnsafeCell::new(Lists {
                    live: LinkedList::new(),
                    stale: LinkedList::new(),
                    extra,
                }),
            }
        }
    }

    /// The word now.
    #[inline]
    pub(crate) fn word(&self) -> Word {
        // ORD[WT2] acquire: what came before a generation that is new.
        Word(self.word.load(Acquire))
    }

    /// Changes an idle word; `Err` is what it is instead.
    #[inline]
    pub(crate) fn try_change(&self, from: Word, to: Word) -> Result<(), Word> {
        debug_assert!(from.is_idle() && to.is_idle());
        // ORD[WT3] release: what came before a permit or a generation. The same
        // ORD[WT2] release: for those who only look.
        // ORD[WT3] acquire: what came before the permit that this takes.
        match self.word.compare_exchange_weak(from.0, to.0, AcqRel, Acquire) {
            Ok(_) => Ok(()),
            Err(actual) => Err(Word(actual)),
        }
    }

    /// Runs `change` with the lock. It must not run user code.
    pub(crate) fn locked<R>(&self, change: impl FnOnce(&mut Word, &mut Lists<E>) -> R) -> R {
        let mut attempt = 0;
        // ORD relaxed: a guess, which the compare-and-swap verifies.
        let mut word = Word(self.word.load(Relaxed));
        loop {
            if word.is_locked() {
                spin(attempt);
                attempt = attempt.saturating_add(1);
                // ORD relaxed: a guess, which the compare-and-swap verifies.
                word = Word(self.word.load(Relaxed));
                continue;
            }
            // ORD[WT1] acquire: the lists, and the word's history.
            match self.word.compare_exchange_weak(word.0, word.0 | LOCKED, Acquire, Relaxed) {
                Ok(_) => break,
                Err(actual) => word = Word(actual),
            }
        }
        let result = self.lists.with_mut(|lists| {
            // SAFETY: the lock is held.
            let lists = unsafe { &mut *lists };
            let result = change(&mut word, lists);
            word.0 = word.0 & !QUEUED | if lists.live.is_empty() { 0 } else { QUEUED };
            result
        });
        // ORD[WT1] release: the lists, to the next holder. The same
        // ORD[WT2] release: a new generation or permit, to those who look.
        self.word.store(word.0, Release);
        result
    }

    /// Wakes `wakers` and, if there are `more`, all stale waiters. Returns the first panic of a waker.
    pub(crate) fn wake(&self, mut wakers: WakeList, mut more: bool) -> FirstPanic {
        let mut panic = FirstPanic::new();
        wakers.wake_all_into(&mut panic);
        while more {
            more = self.locked(|_, lists| lists.complete_stale(&mut wakers));
            wakers.wake_all_into(&mut panic);
        }
        panic
    }
}

/// The place of a waiter that is filled in when it queues.
type Place = MaybeUninit<Waiter<()>>;
