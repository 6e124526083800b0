//! Permits, and a guess of what their word is: for those who cannot know it.
//!
//! Purpose: as in `channel/ring/cursor.rs`: on some processors (Intel's) a load of the word that the last
//! read-modify-write has changed waits for its end, and the next one for the load and the branch on it. A
//! semaphore has to look, since there may be too few permits, and since its guards may be too many for an
//! addition without a look (`plain.rs`). A copy of the word, left beside it, is there at once, and that the
//! word is still the same is found by the exchange itself.
//!
//! Among several threads a guess is mostly wrong, and its store comes when the line may be another's
//! already. So a thread that guessed wrong makes its next [`EXACT`] acquisitions that need not wait, of
//! whichever semaphores, by a look at the word, and stores no guess. The last of them leaves one.
//!
//! Invariants:
//! 1. The guess is a word without flags, or [`NONE`].
//! 2. Nothing is concluded from it but what to expect in an exchange, and which way to try first. So it may be
//!    the word of another moment that has come again: the word is all that there is to know.
//! 3. It is written after the permits are there for others, by somebody who borrows the semaphore.
//!
//! Cost: a word more. A load of a thread-local and of the guess, and a plain store, for each operation with a
//! right guess. A wrong one costs an exchange in vain, once in [`EXACT`] acquisitions of a thread; and since
//! the thread does not guess at its other semaphores either, they cost what they would without guesses.
//!
//! Measured (two processors of an Ice Lake): `try_acquire` and its drop 0.75 of the time without guesses; eight
//! tasks at two permits on two threads 1.03.
//!
//! Rejected (the figures are of those eight tasks):
//! * Guesses without end, each wrong one replaced by what the exchange has found: 1.35 times as long.
//! * To write beside the guess that nobody shall use it: 1.33 times, although nothing is stored then. Two loads
//!   from a line that others write are enough for that; hence the thread-local.
//! * What the acquisition has made of the word, kept in the guard: right only if nobody else was there
//!   while it was held, and no help to the next acquisition.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::word::Word;
use super::{Permits, Refused};
use crate::coop;
use crate::primitive::AtomicUsize;

/// No guess: a word that gives no permits, and is not easy to add to.
const NONE: Word = Word::new(0).with_queued();

/// After a wrong guess, a thread makes so many acquisitions without one.
const EXACT: u16 = if cfg!(volt_loom) { 1 } else { 1024 };

crate::const_thread_local! {
    /// How many acquisitions this thread still makes without a guess.
    static EXACT_LEFT: Cell<u16> = Cell::new(0);
}

/// Permits with a guess beside them.
pub(crate) struct Guessed {
    permits: Permits,
    guess: AtomicUsize,
}

impl Guessed {
    crate::const_fn! {
        /// As [`Permits::new`].
        pub(crate) const fn new(permits: usize) -> Self {
            Self {
                permits: Permits::new(permits),
                guess: AtomicUsize::new(Word::new(permits).bits()),
            }
        }
    }

    #[inline]
    fn guess(&self) -> Word {
        if EXACT_LEFT.with(Cell::get) > 0 {
            return NONE;
        }
        // ORD relaxed: an exchange verifies it.
        Word::from_bits(self.guess.load(Relaxed))
    }

    #[inline]
    fn leave(&self, word: Word) {
        // ORD relaxed: as in `guess`.
        self.guess.store(word.bits(), Relaxed);
    }

    /// Leaves a word that may have flags.
    fn leave_seen(&self, word: Word) {
        self.leave(if word.has_flags() { NONE } else { word });
    }

    /// As [`Permits::try_acquire`].
    #[inline]
    pub(crate) fn try_acquire(&self, n: usize) -> Result<(), Refused> {
        let word = self.guess();
        if n == 0 || word.available() < n {
            return self.try_acquire_exact(n);
        }
        let taken = word.take(n);
        // ORD[PM1] acquire: what the last holder of these permits did.
        // ORD relaxed: a failure only says where to try again.
        match self.permits.word.compare_exchange(word.bits(), taken.bits(), Acquire, Relaxed) {
            Ok(_) => {
                self.leave(taken);
                Ok(())
            }
            Err(actual) => self.try_acquire_after(Word::from_bits(actual), n),
        }
    }

    /// The guess was wrong. What the word is instead will be right once this and the release after it are
    /// done: else a thread with several semaphores might never have right guesses for all.
    #[cold]
    fn try_acquire_after(&self, actual: Word, n: usize) -> Result<(), Refused> {
        stop_guessing();
        self.leave_seen(actual);
        self.permits.take_from(actual, n).map(drop)
    }

    /// There is no guess, or it says that there are too few.
    #[inline(never)]
    fn try_acquire_exact(&self, n: usize) -> Result<(), Refused> {
        let taken = self.permits.take(n)?;
        let left = EXACT_LEFT.with(Cell::get).saturating_sub(1);
        EXACT_LEFT.with(|exact_left| exact_left.set(left));
        if left == 0 {
            self.leave_seen(taken);
        }
        Ok(())
    }

    /// As [`Permits::acquire_now`].
    #[inline]
    pub(crate) fn acquire_now(&self, n: usize) -> bool {
        coop::attempt(|| self.try_acquire(n).is_ok())
    }

    /// As [`Permits::release`].
    ///
    /// # Panics
    /// As that.
    #[inline]
    #[track_caller]
    pub(crate) fn release(&self, n: usize) {
        let word = self.guess();
        if n == 0 || !word.is_easy_to_add() || !Word::are_few(n) {
            return self.permits.release(n);
        }
        let more = Word::from_bits(word.bits() + Word::new(n).bits());
        // ORD[PM1] release: the next to take these permits sees what was done with them. The same
        // ORD[PM2] release: if a waiter comes first and is served from them.
        // ORD relaxed: a failure says nothing.
        match self.permits.word.compare_exchange(word.bits(), more.bits(), Release, Relaxed) {
            Ok(_) => self.leave(more),
            Err(_) => self.release_exact(n),
        }
    }

    /// The guess was wrong.
    #[cold]
    #[track_caller]
    fn release_exact(&self, n: usize) {
        stop_guessing();
        self.permits.release(n);
    }
}

fn stop_guessing() {
    EXACT_LEFT.with(|left| left.set(EXACT));
}

impl Deref for Guessed {
    type Target = Permits;

    fn deref(&self) -> &Permits {
        &self.permits
    }
}

impl fmt::Debug for Guessed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.permits.fmt(f)
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
