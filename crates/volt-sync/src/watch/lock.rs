//! The reader-writer lock around the value.
//!
//! Purpose: most senders only store a value. They have the lock for a few instructions, a *short*
//! turn, and unlock with a plain store. A sender that runs a closure of its user's, or waits for a
//! [`Ref`](super::Ref), has a *long* turn: threads sleep meanwhile, and a task that begins to wait
//! for a version is told that it will be woken, since it must know that the next sender sees it.
//!
//! Rejected: std's `RwLock`, whose senders unlock with a second read-modify-write, whose readers look
//! at the word before they exchange it (a load of a word that was just exchanged waits for that), and
//! which does not say how long a turn may take: a second word, with two more read-modify-writes a
//! long turn, had to. A `fence(SeqCst)` in every sender, between the unlock and the look for waiters,
//! which costs half as much as the rest of a send.
//!
//! State: `[readers : 28][TASKS][THREADS][LONG][SHORT]`.
//!
//! | Operation       | free, or readers     | SHORT           | LONG                             |
//! |-----------------|----------------------|-----------------|----------------------------------|
//! | `read`          | one more reader      | tries again     | sets THREADS, sleeps             |
//! | `try_read`      | one more reader      | refused         | sets TASKS                       |
//! | a reader leaves | one less             |                 | one less; the last wakes sleepers |
//! | `write`         | SHORT, if it is free | tries again, then as `write_long` | as there       |
//! | `write_long`    | LONG, sleeps until no reader is left | tries again | sets THREADS, sleeps |
//! | `unlock`        |                      | free            | free; wakes threads, tells of tasks |
//!
//! Invariant 1: in a short turn the word is SHORT and nothing else, and nobody but its sender changes
//! it: so a plain store erases nothing.
//! Invariant 2: in a long turn no reader comes; THREADS and TASKS are set only then.
//! Invariant 3: the value is written in a short turn, or in a long one without readers, and read by
//! readers.
//! Invariant 4: no code of a user runs in a short turn.
//!
//! | Edge  | Release side         | Acquire side         | Carries               | Model                |
//! |-------|----------------------|----------------------|-----------------------|----------------------|
//! | [WL1] | the end of a short turn | every turn and look | the value             | `watch::lock::model::short_turns_carry_the_value` |
//! | [WL2] | the end of a long turn | every turn and look | the value              | `watch::lock::model::long_turns_carry_the_value` |
//! | [WL3] | a reader leaves      | every turn           | that it does not look any more | `watch::lock::model::a_turn_comes_after_the_looks_before_it` |
//!
//! Progress: who finds a short turn spins, and gives its processor away if that takes long (invariant
//! 4 bounds it). Who sleeps has seen its bit, or a reader, in the word on which it sleeps: the end of
//! the turn, or the last reader in it, changes the word and wakes all. A task waits in the set of the
//! channel before it sets TASKS. If its sender took the set's lock before it, to wake those in it, the
//! task would have seen the word that this sender left: so it is woken.
//!
//! Fairness: a sender that sends on and on takes the word again right behind its store: who exchanges
//! it from another processor gets the line behind an exchange of the sender's, and finds SHORT every
//! time. So who has tried for a while says so in a word beside (`starving`). Senders that see it stand
//! back for a moment, in which the lock is free, and then have a long turn, which wakes those behind.
//!
//! Cost: a short turn 1 RMW and a store, a long one 2 RMWs, a look 2 (one more for each reader that
//! comes or goes at the same moment).

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::primitive::{AtomicU32, Futex, RawCell, spin};

const SHORT: u32 = 1;
const LONG: u32 = 2;
const THREADS: u32 = 4;
const TASKS: u32 = 8;
const READER: u32 = 16;

/// How often to try again before a thread sleeps, a sender asks for a long turn, or a task comes back later.
pub(super) const SPINS: u32 = if cfg!(volt_loom) { 1 } else { 48 };

#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(u32);

impl Word {
    const FREE: Self = Self(0);

    /// A sender has its turn.
    const fn is_locked(self) -> bool {
        self.0 & (SHORT | LONG) != 0
    }

    const fn is_short(self) -> bool {
        self.0 & SHORT != 0
    }

    const fn has_readers(self) -> bool {
        self.0 >= READER
    }

    /// With one reader left, for whom a sender waits.
    const fn is_awaited_reader(self) -> bool {
        self.0 & LONG != 0 && self.0 / READER == 1
    }

    const fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    const fn with(self, bit: u32) -> Self {
        Self(self.0 | bit)
    }

    fn with_reader(self) -> Self {
        Self(self.0.checked_add(READER).expect("too many looks at the value of a watch channel"))
    }
}

pub(super) struct Lock<T> {
    word: Futex,
    /// How many threads have tried for a while, see Fairness. A hint: it orders nothing.
    starving: AtomicU32,
    value: RawCell<T>,
}

// SAFETY: the value moves between threads.
unsafe impl<T: Send> Send for Lock<T> {}
// SAFETY: invariant 3: readers share the value, a sender has it alone.
unsafe impl<T: Send + Sync> Sync for Lock<T> {}

/// As std's lock: a panic leaves a value that others can see, as its closure left it.
impl<T> UnwindSafe for Lock<T> {}
impl<T> RefUnwindSafe for Lock<T> {}

/// A look at the value.
///
/// For the compiler it is a `&'a T` that stays in its thread, as std's guards are: who holds it
/// across an `.await` is told so.
pub(super) struct ReadGuard<'a, T> {
    /// The [`Lock<T>`], borrowed for `'a`. Not as a reference: that fixes the lifetimes in `T`, and
    /// other threads may look through one only if `T` is `Send`.
    lock: NonNull<()>,
    _value: PhantomData<&'a T>,
}

// SAFETY: through a shared guard one gets a `&T`, and no more. (It leaves where it is dropped.)
unsafe impl<T: Sync> Sync for ReadGuard<'_, T> {}

/// A sender's turn. Ends with [`unlock`](Self::unlock), not by a drop.
#[must_use = "the lock is never unlocked"]
pub(super) struct WriteGuard<'a, T> {
    lock: &'a Lock<T>,
    long: bool,
}

/// What [`Lock::try_read`] comes back with.
#[must_use]
pub(super) enum TryRead<'a, T> {
    Locked(ReadGuard<'a, T>),
    /// A sender has a few instructions to go.
    Short,
    /// The sender whose turn it is wakes the tasks of the set when it has ended.
    Long,
}

impl<T> Lock<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            word: Futex::new(Word::FREE.0),
            starving: AtomicU32::new(0),
            value: RawCell::new(value),
        }
    }

    /// Waits for senders.
    #[inline]
    pub(super) fn read(&self) -> ReadGuard<'_, T> {
        if let Err(word) = self.enter() {
            self.enter_slow(word);
        }
        ReadGuard::new(self)
    }

    /// Does not wait. For a task that is in the set of those that a sender wakes.
    pub(super) fn try_read(&self) -> TryRead<'_, T> {
        loop {
            let word = match self.enter() {
                Ok(()) => return TryRead::Locked(ReadGuard::new(self)),
                Err(word) if word.is_short() => return TryRead::Short,
                Err(word) => word,
            };
            if self.set(word, TASKS) {
                return TryRead::Long;
            }
        }
    }

    /// A turn for a few instructions, which are no user's. Waits for readers and senders.
    #[inline]
    pub(super) fn write(&self) -> WriteGuard<'_, T> {
        self.try_write().unwrap_or_else(|| self.write_slow())
    }

    /// A turn that may take as long as it likes. Waits for readers and senders.
    pub(super) fn write_long(&self) -> WriteGuard<'_, T> {
        let readers = self.lock_long();
        if readers {
            self.wait_for_readers();
        }
        WriteGuard { lock: self, long: true }
    }

    /// One more reader, or the word with a sender that does not allow it.
    #[inline]
    fn enter(&self) -> Result<(), Word> {
        // ORD[WL1] acquire: the value of the last short turn.
        // ORD[WL2] acquire: the value of the last long turn.
        // ORD relaxed: failure: tried again.
        match self.word.word().compare_exchange(0, READER, Acquire, Relaxed) {
            Ok(_) => Ok(()),
            Err(word) => self.enter_beside(Word(word)),
        }
    }

    /// [`enter`](Self::enter) beside other readers.
    #[inline(never)]
    fn enter_beside(&self, mut word: Word) -> Result<(), Word> {
        while !word.is_locked() {
            // ORD[WL1] acquire: the value of the last short turn.
            // ORD[WL2] acquire: the value of the last long turn.
            // ORD relaxed: failure: tried again.
            match self.word.word().compare_exchange(word.0, word.with_reader().0, Acquire, Relaxed)
            {
                Ok(_) => return Ok(()),
                Err(actual) => word = Word(actual),
            }
        }
        Err(word)
    }

    #[cold]
    fn enter_slow(&self, mut word: Word) {
        let mut patience = Patience::new(self);
        loop {
            patience.wait(word);
            match self.enter() {
                Ok(()) => return,
                Err(actual) => word = actual,
            }
        }
    }

    /// A short turn, if nobody has the lock, or has tried for a while.
    #[inline]
    fn try_write(&self) -> Option<WriteGuard<'_, T>> {
        // ORD relaxed: a hint.
        if self.starving.load(Relaxed) != 0 {
            return None;
        }
        // ORD[WL1] acquire: the value of the last short turn.
        // ORD[WL2] acquire: the value of the last long turn.
        // ORD[WL3] acquire: the readers before have looked.
        // ORD relaxed: failure: tried again.
        let before = self.word.word().compare_exchange(0, SHORT, Acquire, Relaxed);
        before.is_ok().then_some(WriteGuard { lock: self, long: false })
    }

    #[cold]
    fn write_slow(&self) -> WriteGuard<'_, T> {
        for attempt in 0..SPINS {
            spin(attempt);
            if let Some(guard) = self.try_write() {
                return guard;
            }
        }
        // From now on no reader comes.
        self.write_long()
    }

    /// Begins a long turn. True if there are readers to wait for.
    fn lock_long(&self) -> bool {
        let (mut word, mut patience) = (Word::FREE, Patience::new(self));
        loop {
            // ORD[WL1] acquire: the value of the last short turn.
            // ORD[WL2] acquire: the value of the last long turn.
            // ORD[WL3] acquire: the readers before have looked.
            // ORD relaxed: failure: tried again.
            match self.word.word().compare_exchange(word.0, word.0 | LONG, Acquire, Relaxed) {
                Ok(_) => return word.has_readers(),
                Err(actual) => word = Word(actual),
            }
            if word.is_locked() {
                patience.wait(word);
                word = Word::FREE;
            }
        }
    }

    #[cold]
    fn wait_for_readers(&self) {
        for attempt in 0.. {
            // ORD[WL3] acquire: the readers before have looked.
            let word = Word(self.word.word().load(Acquire));
            if !word.has_readers() {
                return;
            }
            if attempt < SPINS {
                spin(attempt);
            } else {
                self.word.wait(word.0, None);
            }
        }
    }

    /// Waits until something may have changed for a thread that has found `word`, with a sender.
    fn wait(&self, word: Word, attempt: u32) {
        if word.is_short() {
            spin_behind_short(&self.word, attempt);
        } else if attempt < SPINS {
            spin(attempt);
        } else if self.set(word, THREADS) {
            self.word.wait(word.with(THREADS).0, None);
        }
    }

    /// Sets a bit of a long turn. False if it is no longer that of `word`.
    fn set(&self, word: Word, bit: u32) -> bool {
        let with = word.with(bit);
        // ORD relaxed: carries nothing, see Progress.
        word.has(bit) || self.word.word().compare_exchange(word.0, with.0, Relaxed, Relaxed).is_ok()
    }

    #[inline]
    fn unlock_short(&self) {
        // ORD[WL1] release: the value.
        self.word.word().store(Word::FREE.0, Release);
        // Loom's threads do not spin here.
        #[cfg(volt_loom)]
        self.word.wake_all();
    }

    fn unlock_long(&self) -> bool {
        // ORD[WL2] release: the value.
        let word = Word(self.word.word().swap(Word::FREE.0, Release));
        if word.has(THREADS) {
            self.word.wake_all();
        }
        word.has(TASKS)
    }

    #[inline]
    fn leave(&self) {
        // ORD[WL3] release: this reader has looked.
        let word = Word(self.word.word().fetch_sub(READER, Release));
        if word.is_awaited_reader() {
            self.wake_sender();
        }
    }

    /// Where futexes have no kinds, that is all who sleep.
    #[cold]
    fn wake_sender(&self) {
        self.word.wake_all();
    }
}

/// Waits a moment for the end of a short turn. Who has tried for a while gives its processor away.
#[inline]
#[cfg(not(volt_loom))]
fn spin_behind_short(_: &Futex, attempt: u32) {
    spin(if attempt < SPINS { attempt } else { u32::MAX });
}

/// Loom would let two threads that spin take turns for ever: there they sleep.
#[cfg(volt_loom)]
fn spin_behind_short(word: &Futex, _: u32) {
    word.wait(SHORT, None);
}

/// A thread that tries for its turn.
struct Patience<'a, T> {
    lock: &'a Lock<T>,
    attempt: u32,
}

impl<'a, T> Patience<'a, T> {
    const fn new(lock: &'a Lock<T>) -> Self {
        Self { lock, attempt: 0 }
    }

    /// Waits until something may have changed after `word`, with a sender, was found.
    fn wait(&mut self, word: Word) {
        self.lock.wait(word, self.attempt);
        if self.attempt <= SPINS {
            self.attempt += 1;
            if self.attempt > SPINS {
                // ORD relaxed: a hint.
                self.lock.starving.fetch_add(1, Relaxed);
            }
        }
    }
}

impl<T> Drop for Patience<'_, T> {
    fn drop(&mut self) {
        if self.attempt > SPINS {
            // ORD relaxed: a hint.
            self.lock.starving.fetch_sub(1, Relaxed);
        }
    }
}

impl<'a, T> ReadGuard<'a, T> {
    /// For a reader that has entered.
    #[inline]
    fn new(lock: &'a Lock<T>) -> Self {
        Self { lock: NonNull::from(lock).cast(), _value: PhantomData }
    }

    #[inline]
    const fn lock(&self) -> &Lock<T> {
        // SAFETY: it is borrowed for `'a`. Its `T` may have had longer lifetimes: what is called
        // here writes no value.
        unsafe { self.lock.cast().as_ref() }
    }
}

impl<T> Drop for ReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock().leave();
    }
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: invariant 3: this reader is counted until the guard is dropped.
        unsafe { &*self.lock().value.get() }
    }
}

impl<T> WriteGuard<'_, T> {
    /// True if tasks wait in the set for the end of this turn: the caller must wake them.
    #[inline]
    #[must_use = "somebody may sleep until this sender wakes it"]
    pub(super) fn unlock(self) -> bool {
        if self.long {
            return self.lock.unlock_long();
        }
        self.lock.unlock_short();
        false
    }
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: invariant 3: it is this sender's turn until the guard is unlocked.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`.
        unsafe { &mut *self.lock.value.get() }
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
