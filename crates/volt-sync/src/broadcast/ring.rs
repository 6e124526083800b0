//! The ring of values that all handles of a broadcast channel share.
//!
//! Purpose: a receiver takes part in a value with one read-modify-write on the value's own word, and
//! a sender with one on the tail, so that receivers meet senders only where they must.
//!
//! Rejected:
//! * A reader-writer lock in each slot beside a count of remaining receivers: three
//!   read-modify-writes for each receiver instead of one.
//! * Several receivers in a slot at once: `T` would have to be `Sync`, which the users of this API
//!   (Tokio's) do not expect; cloning without it was unsound (RUSTSEC-2025-0023).
//!
//! State of a slot: `position` says which value it holds; `users` is BUSY (somebody holds the slot)
//! and the number of receivers that have not got the value yet, `remaining`.
//!
//! | `users`                | The slot belongs to                                   |
//! |------------------------|-------------------------------------------------------|
//! | 0                      | the sender of the next value that comes here          |
//! | `remaining` > 0        | nobody: the value waits                               |
//! | `remaining` > 0, BUSY  | one receiver, or a sender that overwrites the value   |
//!
//! Invariants:
//! 1. Positions are handed out, and values published, under the tail's lock.
//! 2. A receiver that may still ask for the value at `p` counts in the `remaining` of `p`'s slot.
//! 3. Receivers make a slot BUSY only while `remaining` is not 0. So whoever sees 0 under the tail's
//!    lock is alone with the slot, without a read-modify-write.
//! 4. The value is initialised if and only if `remaining` is not 0, but for the one who holds the slot.
//!
//! | Edge  | Release side                  | Acquire side                 | Carries                 | Model              |
//! |-------|-------------------------------|------------------------------|-------------------------|--------------------|
//! | [BR1] | `Ring::publish`, `Taken`'s drop | `Ring::take`, `empty`      | the slot's value        | `broadcast::model` |
//! | [BR2] | `TailGuard`'s drop            | `Ring::lock`                 | the tail                | `broadcast::model` |
//!
//! Progress: no operation waits but for the tail's lock (a few instructions, no user code) and, in a
//! slot, for one that clones the same value. A sender waits there without the tail's lock, so that a
//! long clone delays nobody but those who need that slot.

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::cache_padded::{Gap, Spaced};
use crate::primitive::{AtomicBool, AtomicU64, UnsafeCell, spin};

const BUSY: u64 = 1 << 63;

#[repr(C)]
pub(super) struct Ring<T> {
    slots: Box<[Slot<T>]>,
    _gap: Gap,
    tail: Spaced<Lock>,
}

struct Slot<T> {
    position: AtomicU64,
    users: AtomicU64,
    value: UnsafeCell<MaybeUninit<T>>,
}

struct Lock {
    locked: AtomicBool,
    tail: UnsafeCell<Tail>,
}

/// What the tail's lock protects.
#[derive(Debug)]
pub(super) struct Tail {
    /// Where the next value goes.
    pub(super) position: u64,
    pub(super) receivers: u64,
    /// Every sender is gone.
    pub(super) closed: bool,
}

// SAFETY: values move between threads.
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: whoever uses a value holds its slot alone, so `T` need not be `Sync`.
unsafe impl<T: Send> Sync for Ring<T> {}

// A panic of `T::clone` or `T::drop` leaves the slot as if it had been received.
impl<T> std::panic::UnwindSafe for Ring<T> {}
impl<T> std::panic::RefUnwindSafe for Ring<T> {}

impl<T> Ring<T> {
    /// A ring of `capacity` slots, a power of two.
    pub(super) fn new(capacity: usize) -> Self {
        debug_assert!(capacity.is_power_of_two());
        let slot = |index: usize| Slot {
            // Nobody's position: one lap before the first.
            position: AtomicU64::new((index as u64).wrapping_sub(capacity as u64)),
            users: AtomicU64::new(0),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        };
        let tail = Tail { position: 0, receivers: 0, closed: false };
        Self {
            slots: (0..capacity).map(slot).collect(),
            _gap: Gap::GAP,
            tail: Spaced::new(Lock { locked: AtomicBool::new(false), tail: UnsafeCell::new(tail) }),
        }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.slots.len() as u64
    }

    fn slot(&self, position: u64) -> &Slot<T> {
        // The mask makes it fit a `usize`.
        &self.slots[(position & (self.capacity() - 1)) as usize]
    }

    /// Takes the tail's lock.
    pub(super) fn lock(&self) -> TailGuard<'_> {
        let mut attempt = 0;
        // ORD[BR2] acquire: the tail, as the last holder left it.
        while self.tail.locked.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
            spin(attempt);
            attempt = attempt.saturating_add(1);
        }
        TailGuard { lock: &self.tail }
    }

    /// Publishes `value` at the tail, or gives it back if there is no receiver. Returns how many there
    /// are, and the value that it overwrites, if somebody has not got that yet.
    pub(super) fn write(&self, value: T) -> Result<(u64, Option<T>), T> {
        let mut tail = self.lock();
        loop {
            if tail.receivers == 0 {
                return Err(value);
            }
            let slot = self.slot(tail.position);
            if let Ok(old) = empty(slot) {
                Self::publish(&mut tail, slot, value);
                return Ok((tail.receivers, old));
            }
            // A receiver is cloning, which is user code: nobody else need wait for that.
            drop(tail);
            let mut attempt = 0;
            // ORD relaxed: a hint; looked at again under the lock.
            while slot.users.load(Relaxed) & BUSY != 0 {
                spin(attempt);
                attempt = attempt.saturating_add(1);
            }
            tail = self.lock();
        }
    }

    /// Fills the slot of the tail's position, which is empty, and moves the tail.
    fn publish(tail: &mut TailGuard<'_>, slot: &Slot<T>, value: T) {
        let position = tail.position;
        // SAFETY: the slot is ours alone, and its value was taken out (invariants 3, 4).
        slot.value.with_mut(|cell| unsafe { (*cell).write(value) });
        // ORD relaxed: a hint for receivers; they look again when they hold the slot.
        slot.position.store(position, Relaxed);
        // ORD[BR1] release: publishes the value and its position.
        slot.users.store(tail.receivers, Release);
        tail.position = position.wrapping_add(1);
    }

    /// Holds the slot of `position`, if it is there: published, and not yet overwritten.
    #[inline]
    pub(super) fn take(&self, position: u64) -> Option<Taken<'_, T>> {
        let slot = self.slot(position);
        // ORD relaxed: a hint; looked at again below.
        if slot.position.load(Relaxed) != position {
            return None;
        }
        let remaining = acquire(&slot.users)?;
        let taken = Taken { slot, remaining, received: false };
        // ORD relaxed: changed only by whoever holds the slot, and we do.
        (slot.position.load(Relaxed) == position).then_some(taken)
    }

    /// True if some receiver has not got the value at `position`, which is in the ring.
    pub(super) fn is_awaited(&self, position: u64) -> bool {
        // ORD relaxed: a number for `len`, outdated when it is returned.
        self.slot(position).users.load(Relaxed) != 0
    }
}

/// Makes the slot of the tail's position the caller's, who holds the tail's lock, and takes the value
/// out that somebody has not got yet. `Err` if a receiver holds the slot.
#[inline]
fn empty<T>(slot: &Slot<T>) -> Result<Option<T>, ()> {
    // ORD[BR1] acquire: a 0 is the last receiver's leave; the slot is ours (invariant 3).
    let users = slot.users.load(Acquire);
    if users == 0 { Ok(None) } else { overwrite(slot, users) }
}

/// As [`empty`], for a slot whose value not everybody has got.
#[cold]
fn overwrite<T>(slot: &Slot<T>, mut users: u64) -> Result<Option<T>, ()> {
    while users & BUSY == 0 {
        if users == 0 {
            return Ok(None);
        }
        // ORD[BR1] acquire: the last receiver has left the value; a failure may find it gone (0).
        match slot.users.compare_exchange_weak(users, users | BUSY, Acquire, Acquire) {
            // SAFETY: we hold the slot, and `remaining` is not 0 (invariant 4).
            Ok(_) => return Ok(Some(slot.value.with(|cell| unsafe { cell.cast::<T>().read() }))),
            Err(changed) => users = changed,
        }
    }
    Err(())
}

/// Makes a slot BUSY and returns its `remaining`. `None` if that is 0.
#[inline]
fn acquire(users: &AtomicU64) -> Option<u64> {
    let mut attempt = 0;
    // ORD relaxed: the exchange decides.
    let mut now = users.load(Relaxed);
    loop {
        if now == 0 {
            return None;
        }
        if now & BUSY != 0 {
            spin(attempt);
            attempt = attempt.saturating_add(1);
            // ORD relaxed: as above.
            now = users.load(Relaxed);
            continue;
        }
        // ORD[BR1] acquire: the value, and that the last one has left it.
        match users.compare_exchange_weak(now, now | BUSY, Acquire, Relaxed) {
            Ok(_) => return Some(now),
            Err(changed) => now = changed,
        }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        for slot in &mut self.slots {
            // ORD relaxed: `&mut self`: nobody else is here.
            if slot.users.load(Relaxed) != 0 {
                // SAFETY: initialised (invariant 4), and never used again.
                slot.value.with_mut(|cell| unsafe { cell.cast::<T>().drop_in_place() });
            }
        }
    }
}

/// A slot that one receiver holds. Leaves it when dropped.
pub(super) struct Taken<'a, T> {
    slot: &'a Slot<T>,
    remaining: u64,
    /// This receiver has got the value, or gives it up.
    received: bool,
}

impl<T> Taken<'_, T> {
    /// The value: a clone, or the original for the last one.
    #[inline]
    pub(super) fn receive(mut self) -> T
    where
        T: Clone,
    {
        self.received = true;
        if let Some(value) = self.original() {
            return value;
        }
        self.slot.value.with(|cell| {
            // SAFETY: we hold the slot, and `remaining` is not 0 (invariant 4).
            let value = unsafe { &*cell.cast::<T>() };
            value.clone()
        })
    }

    /// Counts as received without a clone. Returns the original if this was the last one.
    pub(super) fn give_up(mut self) -> Option<T> {
        self.received = true;
        self.original()
    }

    fn original(&mut self) -> Option<T> {
        // SAFETY: we hold the slot; the drop below makes `remaining` 0, so nobody reads it again.
        let take = || self.slot.value.with(|cell| unsafe { cell.cast::<T>().read() });
        (self.remaining == 1).then(take)
    }
}

impl<T> Drop for Taken<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let remaining = self.remaining - u64::from(self.received);
        // ORD[BR1] release: we have left the value.
        self.slot.users.store(remaining, Release);
    }
}

/// Holds the tail's lock.
pub(super) struct TailGuard<'a> {
    lock: &'a Lock,
}

impl Deref for TailGuard<'_> {
    type Target = Tail;

    fn deref(&self) -> &Tail {
        // SAFETY: the lock is held for as long as `self` lives.
        self.lock.tail.with(|tail| unsafe { &*tail })
    }
}

impl DerefMut for TailGuard<'_> {
    fn deref_mut(&mut self) -> &mut Tail {
        // SAFETY: the lock is held for as long as `self` lives.
        self.lock.tail.with_mut(|tail| unsafe { &mut *tail })
    }
}

impl Drop for TailGuard<'_> {
    fn drop(&mut self) {
        // ORD[BR2] release: hands the tail to the next holder.
        self.lock.locked.store(false, Release);
    }
}
