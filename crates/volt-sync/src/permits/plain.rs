//! Taking permits and giving them back when nobody waits: what nearly every operation is.
//!
//! Purpose: no instruction in front of a read-modify-write that can be spared. On Intel's processors
//! one starts only when all older instructions are done and their stores have reached the cache, and
//! no later load starts before it is done. So from one read-modify-write to the next, a load and the
//! branch on it cost 4 ns, half of what the read-modify-write itself does, and stores delay it too.
//!
//! * [`Permits::try_acquire_all`] looks for a word that is known: all permits of a free lock.
//! * [`Permits::give_back`] adds without a look. Waiters it finds in what the addition returns; for a sum
//!   beyond the maximum it need not look.
//! * [`Permits::close_taken`] closes a word that is known: no permits, and nobody waits.
//! * [`Permits::acquire_now`] is the first poll of an acquisition without the future, which takes stores
//!   to write down. It looks at the word: the budget has to be read in any case, at the same time.
//!
//! Rejected:
//! * [`Permits::give_back`] for the guards of a semaphore as well: others may bring it up to the maximum
//!   meanwhile. The sum would wrap for a moment, which others would see; and with permits that are granted and given back
//!   at once, a model got MAX permits out of it.
//! * A semaphore that claims by subtraction, and adds again what was not there: between the two,
//!   others find too few, although there are enough.
//! * A semaphore, or the reader of a lock, that looks for the word of a free one: several hold permits at
//!   a time, and then each operation begins with a compare-and-swap in vain (8 ns).
//! * A mutex whose `lock` looks for the word of a free one: behind a holder, the attempt in vain costs 10 ns.
//! * To give a lock back by a compare-and-swap from the word of a held one: as fast, and with a queue a
//!   read-modify-write more as well, but it can also fail because others lock the queue.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::word::Word;
use super::{Permits, Refused};
use crate::coop;

impl Permits {
    /// As [`try_acquire`](Self::try_acquire), for whoever wants the `n` permits that are all there
    /// are: if they are free, it takes them without a look.
    #[inline]
    pub(crate) fn try_acquire_all(&self, n: usize) -> Result<(), Refused> {
        let (free, taken) = (Word::new(n), Word::new(0));
        // ORD[PM1] acquire: what the last holder of these permits did.
        match self.word.compare_exchange(free.bits(), taken.bits(), Acquire, Relaxed) {
            Ok(_) => Ok(()),
            Err(actual) => self.take_from(Word::from_bits(actual), n).map(drop),
        }
    }

    /// The first poll of [`acquire`](Self::acquire), if that is all it takes. Otherwise nothing has
    /// happened.
    #[inline]
    pub(crate) fn acquire_now(&self, n: usize) -> bool {
        coop::attempt(|| self.try_acquire(n).is_ok())
    }

    /// Adds `n` permits that were taken, and serves the queue. For owners of at most [`MAX`](Self::MAX) / 2
    /// permits, all told (invariant 6).
    #[inline]
    pub(crate) fn give_back(&self, n: usize) {
        // Else the largest lock has MAX, and all that it gives back is many.
        const OF_LOCKS: bool = u32::MAX as usize <= Permits::MAX / 2;
        if !OF_LOCKS || !Word::are_few(n) {
            return self.release(n);
        }
        if n > 0 {
            self.deposit(n);
        }
    }

    /// Closes what the caller has taken for good: all permits.
    #[inline]
    pub(crate) fn close_taken(&self) {
        let (taken, closed) = (Word::new(0), Word::new(0).with_closed());
        // ORD[PM4] release: whoever sees CLOSED sees what was done before.
        if self.word.compare_exchange(taken.bits(), closed.bits(), Release, Relaxed).is_err() {
            self.close();
        }
    }
}
