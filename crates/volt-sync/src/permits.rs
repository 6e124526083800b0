//! Permits and the queue of those who wait for them, in one word and two pointers.
//!
//! Purpose: the core of `Semaphore`, `Mutex`, `RwLock`, `OnceCell` and `SetOnce`. Strictly first in,
//! first out among those who queue; nobody takes permits past a queue; nothing is allocated; wakers
//! run after the queue's lock is released.
//!
//! Rejected (each finding is a model in `permits/model/defects.rs`):
//! * A counter, a mutex around a list, and a slot for the only waiter that is served without the
//!   mutex (the seed): permits float past sleepers (S1, S7), newcomers overtake (S2), partial grants
//!   race with cancellation (S5, S6, S8). Here the counter, the lock and "somebody waits" are one
//!   word, so that one compare-and-swap decides.
//! * The need of the oldest waiter in the word, as the prototype had it: it saves locking when a
//!   deposit does not suffice, but halves the range of permits and needs 64-bit atomics. One bit
//!   "somebody waits" does, and keeps Tokio's range.
//! * Partial grants: permits gather in the word instead, reserved by QUEUED for the oldest waiter.
//! * Barging past the queue for throughput: waiting spins a little before it queues instead
//!   (`permits/patience.rs`), and a task that has just handed permits over gives those others a turn
//!   before it does (`permits/convoy.rs`).
//!
//! State: `[available : BITS - 3][QUEUED][CLOSED][LOCKED]`, and a list guarded by LOCKED.
//!
//! | Operation       | free            | QUEUED                   | LOCKED                        |
//! |-----------------|-----------------|--------------------------|-------------------------------|
//! | `try_acquire`   | takes           | refused                  | as QUEUED says                |
//! | `release`       | adds            | adds and locks, serves   | adds; whoever unlocks serves  |
//! | `give_back`     | adds            | adds; locks, serves      | adds; whoever unlocks serves  |
//! | `close`         | sets CLOSED     | sets and locks, serves   | sets; whoever unlocks serves  |
//! | enqueue         | locks           | locks                    | spins                         |
//! | cancel, new waker | locks         | locks                    | spins                         |
//! | `claim`         | takes           | takes                    | takes                         |
//! | `forget`        | takes           | nothing                  | spins                         |
//!
//! Invariants:
//! 1. QUEUED is set if the list is not empty and LOCKED is not set.
//! 2. The list is accessed only by the holder of LOCKED.
//! 3. Unlocked and QUEUED: not closed, and the oldest waiter wants more than there is; except between
//!    two rounds of one `serve`, which takes the lock again or leaves it to somebody who has it, and
//!    between the two steps of a `give_back` or `release` whose addition came after QUEUED: it is about
//!    to serve.
//! 4. Permits are taken from a word with QUEUED only by the holder of LOCKED, for waiters, and by
//!    `claim`, where waiters get none.
//! 5. A waiter that was granted permits and is dropped before it saw them gives them back (S4).
//! 6. A release that would bring more than MAX permits panics, and adds none. Only if it brings few
//!    and read less than MAX / 2 does it add without a look at the sum. The counter can wrap then if
//!    others, between its two instructions, bring more than MAX / 4 at once: it sees that, takes its
//!    permits out again, and serves those who found too few in between. Another such release that
//!    comes before that does not see it: then MAX are left, and only the first one panics. `give_back` never
//!    looks at the sum, and is only for owners that have at most MAX / 2 permits, all told: also if those that
//!    were just granted are still counted (7), it does not wrap.
//! 7. Permits that are granted are counted until the holder of LOCKED unlocks, so those of a waiter that gives
//!    them back before are counted twice. A sum that is too large is therefore believed only when it is
//!    not LOCKED.
//!
//! | Edge  | Release side      | Acquire side        | Carries | Model that fails without it |
//! |-------|-------------------|---------------------|---------|-----------------------------|
//! | [PM1] | `Permits::deposit`, `Guessed::release` | `Permits::take`, `Permits::try_acquire_all`, `Guessed::try_acquire` | what the permits protect | `permits::model` |
//! | [PM2] | `Permits::release_slow`, `Permits::deposit`, `Guessed::release` | whoever takes the lock, on to [WN1] | what the permits protect | `permits::model` |
//! | [PM3] | `Permits::serve`, the unlock | whoever takes the lock | the list | `permits::model` |
//! | [PM4] | `Permits::close`, `Permits::close_taken` | `Permits::is_closed` | what was done before closing | `what_was_written_before_close_is_seen` |
//!
//! Progress: a deposit that finds nobody queued is one addition. One that finds LOCKED leaves: the
//! holder's unlock is a compare-and-swap on the same word, fails, and looks again. Otherwise the
//! deposit takes LOCKED itself. An enqueuer sets QUEUED and LOCKED in the compare-and-swap in which
//! it sees too few permits, so no release can come between its look and its place in the queue.
//! Waiting for LOCKED is bounded by the other holders' few instructions; a preempted holder delays
//! enqueuers and cancellers, and of releasers only one that may be about to panic.
//!
//! Cost in RMWs: `try_acquire` 1; `give_back` 1 with an empty queue (`permits/plain.rs`); hand-off 3, or
//! 2 by `release`, and a store; enqueue 2; cancel 2; re-poll 0. Between them no load of the word: whoever
//! takes the lock knows what it has written. Memory: 3 words; a waiter is 6 words inside its future.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::first_panic::FirstPanic;
use crate::linked_list::LinkedList;
use crate::primitive::{AtomicUsize, UnsafeCell, hint, spin};
use crate::waiter::Waiter;
use crate::wake_list::WakeList;

mod acquire;
mod convoy;
mod guess;
mod patience;
mod plain;
mod word;

pub(crate) use acquire::AcquirePermits;
pub(crate) use guess::Guessed;
use word::Word;

/// A waiter's `status` when it got its permits.
const GRANTED: u8 = 1;
/// A waiter's `status` when the permits were closed first.
const SHUT: u8 = 2;

/// Why permits could not be had at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// They are closed.
    Closed,
    /// Too few, or somebody waits already.
    TooFew,
}

/// The permits are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed;

/// A number of permits, and the queue for them.
pub(crate) struct Permits {
    word: AtomicUsize,
    queue: UnsafeCell<LinkedList<Waiter<usize>>>,
}

// SAFETY: the list is accessed only under LOCKED (invariant 2); wakers are `Send`.
unsafe impl Send for Permits {}
// SAFETY: shared access goes through the atomic word, and to the list only under LOCKED (invariant 2).
unsafe impl Sync for Permits {}

// User code never runs while the word or the list is between two states.
impl UnwindSafe for Permits {}
impl RefUnwindSafe for Permits {}

impl Permits {
    /// The most permits that fit the word.
    pub(crate) const MAX: usize = usize::MAX >> 3;

    crate::const_fn! {
        /// `permits` of them, at most [`MAX`](Self::MAX).
        pub(crate) const fn new(permits: usize) -> Self {
            Self {
                word: AtomicUsize::new(Word::new(permits).bits()),
                queue: UnsafeCell::new(LinkedList::new()),
            }
        }
    }

    crate::const_fn! {
        /// None, and closed.
        pub(crate) const fn new_closed() -> Self {
            Self {
                word: AtomicUsize::new(Word::new(0).with_closed().bits()),
                queue: UnsafeCell::new(LinkedList::new()),
            }
        }
    }

    /// How many a newcomer could take: none while somebody waits.
    pub(crate) fn available(&self) -> usize {
        // ORD relaxed: a snapshot.
        let word = Word::from_bits(self.word.load(Relaxed));
        if word.is_queued() { 0 } else { word.available() }
    }

    /// True if a newcomer would have to wait for `n`.
    fn are_too_few(&self, n: usize) -> bool {
        // ORD relaxed: a snapshot.
        let word = Word::from_bits(self.word.load(Relaxed));
        matches!(word.take_free(n), Err(Refused::TooFew))
    }

    /// True once [`close`](Self::close) was called.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // ORD[PM4] acquire: what was done before `close`.
        Word::from_bits(self.word.load(Acquire)).is_closed()
    }

    /// Takes `n` permits if they are there and nobody waits.
    #[inline]
    pub(crate) fn try_acquire(&self, n: usize) -> Result<(), Refused> {
        self.take(n).map(drop)
    }

    /// As [`try_acquire`](Self::try_acquire). Returns what it made of the word.
    #[inline]
    fn take(&self, n: usize) -> Result<Word, Refused> {
        // ORD relaxed: a guess, which the compare-and-swap verifies.
        let word = Word::from_bits(self.word.load(Relaxed));
        let taken = word.take_free(n)?;
        // ORD[PM1] acquire: what the last holder of these permits did.
        match self.word.compare_exchange(word.bits(), taken.bits(), Acquire, Relaxed) {
            Ok(_) => Ok(taken),
            Err(actual) => self.take_from(Word::from_bits(actual), n),
        }
    }

    /// As [`take`](Self::take), by somebody who has just seen the `word`.
    #[cold]
    fn take_from(&self, mut word: Word, n: usize) -> Result<Word, Refused> {
        loop {
            let taken = word.take_free(n)?;
            // ORD[PM1] acquire: what the last holder of these permits did.
            match self.word.compare_exchange_weak(word.bits(), taken.bits(), Acquire, Relaxed) {
                Ok(_) => return Ok(taken),
                Err(actual) => word = Word::from_bits(actual),
            }
        }
    }

    /// Returns a future that waits for `n` permits.
    #[inline]
    pub(crate) const fn acquire(&self, n: usize) -> AcquirePermits<'_> {
        AcquirePermits::new(self, n)
    }

    /// Returns a future that waits for [`close`](Self::close), in the queue of those who wait for
    /// permits. Only for permits that are never all there.
    pub(crate) const fn closed(&self) -> AcquirePermits<'_> {
        AcquirePermits::new(self, Self::MAX)
    }

    /// Adds `n` permits and serves the queue.
    ///
    /// # Panics
    /// If there would be more than [`MAX`](Self::MAX).
    #[inline]
    #[track_caller]
    pub(crate) fn release(&self, n: usize) {
        if n == 0 {
            return;
        }
        // ORD relaxed: a guess, which the operations below verify; for the sum see invariant 6.
        let word = Word::from_bits(self.word.load(Relaxed));
        if !(word.is_easy_to_add() && Word::are_few(n)) {
            return self.release_slow(word, n);
        }
        self.deposit(n);
    }

    /// Adds `n` permits without a look at the sum, and serves the queue.
    #[inline]
    #[track_caller]
    fn deposit(&self, n: usize) {
        let deposit = Word::new(n);
        // ORD[PM1] release: the next to take these permits sees what was done with them. The same
        // ORD[PM2] release: if a waiter comes first and is served from them.
        let before = Word::from_bits(self.word.fetch_add(deposit.bits(), Release));
        if before.is_queued() || before.wraps_with(deposit) {
            self.mend(before, deposit);
        }
    }

    /// After the addition of `deposit` to the word `before`: serves the queue, if nobody else does, and
    /// takes the deposit out again if it was too much (invariant 6).
    ///
    /// # Panics
    /// In the second case.
    #[cold]
    #[track_caller]
    fn mend(&self, before: Word, deposit: Word) {
        let n = deposit.available();
        if let Some(after) = before.add(n) {
            return self.release_slow(after, 0);
        }
        if before.is_locked() {
            let word = self.take_out(deposit.bits());
            return self.release_slow(word, n);
        }
        self.undo(deposit.bits());
    }

    /// Takes a deposit out again that was too much, serves those who found too few in between, and
    /// panics.
    #[track_caller]
    fn undo(&self, deposit: usize) -> ! {
        let word = self.take_out(deposit);
        self.release_slow(word, 0);
        overflow(Word::from_bits(deposit).available());
    }

    /// Takes a deposit out again that was too much (invariant 6). Returns the word.
    #[cold]
    fn take_out(&self, deposit: usize) -> Word {
        // ORD relaxed: a guess, which the compare-and-swap verifies.
        let mut word = Word::from_bits(self.word.load(Relaxed));
        loop {
            let next = word.without_wrapped(deposit);
            // ORD relaxed: nothing was handed over.
            match self.word.compare_exchange_weak(word.bits(), next.bits(), Relaxed, Relaxed) {
                Ok(_) => return next,
                Err(actual) => word = Word::from_bits(actual),
            }
        }
    }

    /// Adds `n` permits (0: they were added already) and serves the queue, if nobody else does. The
    /// caller has just seen `word`.
    ///
    /// # Panics
    /// If there would be more than [`MAX`](Self::MAX); nothing was added then.
    #[cold]
    #[track_caller]
    fn release_slow(&self, mut word: Word, n: usize) {
        let mut attempt = 0;
        loop {
            let Some(deposited) = word.add(n) else {
                // Killed by `permits::model::what_is_counted_twice_is_not_too_much`.
                #[cfg(not(volt_mutant = "permits_twice"))]
                if word.is_locked() {
                    // Some may be counted twice (invariant 7).
                    word = self.look_again(&mut attempt);
                    continue;
                }
                overflow(n)
            };
            let serve = word.is_queued() && !word.is_locked();
            if n == 0 && !serve {
                return;
            }
            let next = if serve { deposited.with_locked() } else { deposited };
            // ORD[PM2] release: whoever serves passes on what was done with these permits.
            // ORD[PM2] acquire: what came with the others, if this serves. The same
            // ORD[PM3] acquire: and the list, as it takes the lock.
            match self.word.compare_exchange_weak(word.bits(), next.bits(), AcqRel, Relaxed) {
                Ok(_) if serve => return self.serve(next),
                Ok(_) => return,
                Err(actual) => word = Word::from_bits(actual),
            }
        }
    }

    /// Takes up to `n` permits out, waiters or not; returns how many.
    pub(crate) fn forget(&self, n: usize) -> usize {
        let (_, taken) = self.update_unlocked(|word| {
            let taken = if word.is_queued() { 0 } else { word.available().min(n) };
            (word.take(taken), taken)
        });
        taken
    }

    /// Takes the only permit past the queue. False if it is gone, or closed.
    ///
    /// For primitives whose waiters all wait for [`close`](Self::closed): nobody can be granted
    /// permits meanwhile, so this need not wait for the lock.
    pub(crate) fn claim(&self) -> bool {
        // ORD relaxed: a guess, which the compare-and-swap verifies.
        let mut word = Word::from_bits(self.word.load(Relaxed));
        while !word.is_closed() && word.available() > 0 {
            let next = word.take(1);
            // ORD relaxed: the permit is taken once, so nobody left anything with it.
            match self.word.compare_exchange_weak(word.bits(), next.bits(), Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(actual) => word = Word::from_bits(actual),
            }
        }
        false
    }

    /// Changes the word once nobody holds the lock. Returns what it is then, too.
    fn update_unlocked<R>(&self, change: impl Fn(Word) -> (Word, R)) -> (Word, R) {
        let mut attempt = 0;
        // ORD relaxed: a guess, which the compare-and-swap verifies.
        let mut word = Word::from_bits(self.word.load(Relaxed));
        loop {
            if word.is_locked() {
                word = self.look_again(&mut attempt);
                continue;
            }
            let (next, result) = change(word);
            // ORD[PM2] acquire: what came with the permits that are handed on, if this takes the lock.
            // ORD[PM3] acquire: and the list.
            match self.word.compare_exchange_weak(word.bits(), next.bits(), Acquire, Relaxed) {
                Ok(_) => return (next, result),
                Err(actual) => word = Word::from_bits(actual),
            }
        }
    }

    /// Refuses all waiters from now on, those in the queue included.
    pub(crate) fn close(&self) {
        // ORD relaxed: a guess, which the compare-and-swap verifies.
        let mut word = Word::from_bits(self.word.load(Relaxed));
        while !word.is_closed() {
            let serve = word.is_queued() && !word.is_locked();
            let next = word.with_closed();
            let next = if serve { next.with_locked() } else { next };
            // ORD[PM4] release: whoever sees CLOSED sees what was done before.
            // ORD[PM3] acquire: the list, if this takes the lock.
            match self.word.compare_exchange_weak(word.bits(), next.bits(), AcqRel, Relaxed) {
                Ok(_) if serve => return self.serve(next),
                Ok(_) => return,
                Err(actual) => word = Word::from_bits(actual),
            }
        }
    }

    /// Takes `n` permits or, if it returns the word, the lock, with QUEUED set for whoever enqueues.
    fn take_or_lock(&self, n: usize) -> Result<Result<(), Closed>, Word> {
        let mut attempt = 0;
        // ORD relaxed: a guess, which the compare-and-swap verifies.
        let mut word = Word::from_bits(self.word.load(Relaxed));
        loop {
            let (next, taken) = match word.take_free(n) {
                Err(Refused::Closed) => return Ok(Err(Closed)),
                Ok(next) => (next, Ok(Ok(()))),
                Err(Refused::TooFew) if word.is_locked() => {
                    word = self.look_again(&mut attempt);
                    continue;
                }
                Err(Refused::TooFew) => {
                    let locked = word.with_queued().with_locked();
                    (locked, Err(locked))
                }
            };
            // ORD[PM1] acquire: what the last holder of the permits did, if they are taken.
            // ORD[PM2] acquire: what came with those that are handed on, if the lock is. The same
            // ORD[PM3] acquire: and the list.
            match self.word.compare_exchange_weak(word.bits(), next.bits(), Acquire, Relaxed) {
                Ok(_) => return taken,
                Err(actual) => word = Word::from_bits(actual),
            }
        }
    }

    /// Waits a moment for the holder of the lock, and reads the word.
    fn look_again(&self, attempt: &mut u32) -> Word {
        spin(*attempt);
        *attempt = attempt.saturating_add(1);
        // ORD relaxed: a guess, which a compare-and-swap verifies.
        Word::from_bits(self.word.load(Relaxed))
    }

    /// Takes the lock. Returns the word, for [`serve`](Self::serve).
    #[must_use]
    fn lock(&self) -> Word {
        self.update_unlocked(|word| (word.with_locked(), ())).0
    }

    /// Holding the lock: completes all waiters that can be, in order, and unlocks; then wakes them. The
    /// caller has made the word `word` when it took the lock.
    ///
    /// # Panics
    /// If a waker does, after all others have been woken.
    #[cold]
    fn serve(&self, word: Word) {
        let mut panic = FirstPanic::new();
        let mut locked = Some(word);
        while let Some(word) = locked {
            let mut wakers = WakeList::new();
            let again = self.serve_round(word, &mut wakers);
            wakers.wake_all_into(&mut panic);
            // Whoever has taken the lock meanwhile serves the rest on its way out.
            locked = if again { self.try_lock_queued() } else { None };
        }
        panic.resume();
    }

    /// Holding the lock: completes waiters until `wakers` is full, and unlocks. True if it was full.
    fn serve_round(&self, mut word: Word, wakers: &mut WakeList) -> bool {
        let mut granted = 0;
        let full = loop {
            let (full, empty) = self.complete_fitting(word, &mut granted, wakers);
            let next = word.take(granted).unlocked(!empty);
            // ORD[PM3] release: the next holder of the lock sees the list.
            // ORD[PM2] acquire: a failure brings new permits.
            match self.word.compare_exchange_weak(word.bits(), next.bits(), Release, Acquire) {
                Ok(_) => break full,
                Err(actual) => word = Word::from_bits(actual),
            }
        };
        if granted > 0 {
            convoy::handed_over(self);
        }
        full
    }

    /// Completes waiters that `word` suffices for beyond the `granted` permits, until `wakers` is
    /// full. Returns whether it was full, and whether the list is empty.
    fn complete_fitting(
        &self,
        word: Word,
        granted: &mut usize,
        wakers: &mut WakeList,
    ) -> (bool, bool) {
        self.queue.with_mut(|queue| {
            // SAFETY: the lock is held (invariant 2).
            let queue = unsafe { &mut *queue };
            while let Some(head) = queue.front() {
                // SAFETY: linked, so alive.
                let n = *unsafe { Waiter::data(head) };
                let status = if word.is_closed() { SHUT } else { GRANTED };
                if status == GRANTED && n > word.available() - *granted {
                    return (false, false);
                }
                if wakers.is_full() {
                    return (true, false);
                }
                queue.pop_front();
                if status == GRANTED {
                    *granted += n;
                }
                // SAFETY: linked until now, so it waited; unlinked, and not used after this.
                wakers.push(unsafe { Waiter::complete(head, status) });
            }
            (false, true)
        })
    }

    /// Takes the lock for another round, unless somebody else has it or nobody waits.
    fn try_lock_queued(&self) -> Option<Word> {
        // ORD relaxed: a guess, which the compare-and-swap verifies.
        let mut word = Word::from_bits(self.word.load(Relaxed));
        while word.is_queued() && !word.is_locked() {
            let next = word.with_locked();
            // ORD[PM2] acquire: what came with the permits that are handed on now. The same
            // ORD[PM3] acquire: and the list.
            match self.word.compare_exchange_weak(word.bits(), next.bits(), Acquire, Relaxed) {
                Ok(_) => return Some(next),
                Err(actual) => word = Word::from_bits(actual),
            }
        }
        None
    }

    /// Looks for `n` permits a few times, as long as nobody queues. True if it took them.
    fn spin_for(&self, n: usize) -> bool {
        if n == Self::MAX {
            // Waits for `close`, for as long as it takes.
            return false;
        }
        let looks = patience::get();
        for _ in 0..looks {
            // ORD relaxed: a hint; `try_acquire` decides.
            let word = Word::from_bits(self.word.load(Relaxed));
            if word.is_queued() || word.is_closed() {
                return false;
            }
            if word.available() >= n && self.try_acquire(n).is_ok() {
                patience::paid(looks);
                return true;
            }
            hint::spin_loop();
        }
        patience::wasted(looks);
        false
    }
}

#[cold]
#[track_caller]
fn overflow(n: usize) -> ! {
    panic!(
        "a semaphore may not have more than MAX_PERMITS permits ({}): {n} more do not fit",
        Permits::MAX
    );
}

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // ORD relaxed: a snapshot.
        Word::from_bits(self.word.load(Relaxed)).fmt(f)
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
