//! A place for the waker of one waiter, filled and emptied without a lock.
//!
//! Purpose: the wake-up of the only waiter (the owner of a `JoinSet`, a pool's joiner) costs one
//! read-modify-write, whether somebody waits or not.
//!
//! Rejected:
//! * A flag beside the waker, read by the waking side (the seed's first attempt): the flag is a hint
//!   that can be stale, so a wake-up is lost. Here the read-modify-write that looks also takes.
//! * Copying a callback and its context out of the waiter (finding S9): the context may be freed
//!   before it is called. Here the reference-counted `Waker` itself moves out.
//! * Waking by reference and keeping the waker for the next round: saves a clone, but user code
//!   would run while the registrant finds the slot busy, and a finished task would stay allocated.
//! * A taker that disarms first and then moves the waker out (`futures::task::AtomicWaker`, and this
//!   slot once): it has to say that it has left the cell, by a second read-modify-write, or by a
//!   store to a second word. Either way a registrant that comes meanwhile has to wake itself: the
//!   waker that is being taken may be another task's, and a second waking side finds nobody.
//!
//! State: one word, a count of its changes. It is odd while a waker is registered ("armed"). The
//! waker's two pointers are words of their own.
//!
//! | The count | The two words            | `register`                             | `take`, `wake`     |
//! |-----------|--------------------------|----------------------------------------|--------------------|
//! | even      | no waker                 | writes them; adds 1                    | leaves the count   |
//! | odd       | a waker of the slot's    | same waker: nothing; other: as `take`, then as above | copies them; adds 1 |
//!
//! Invariants:
//! 1. The slot owns a waker, the one in the two words, if and only if the count is odd. Who makes it
//!    even has taken that waker.
//! 2. Only the registrant writes the two words, and only while the count is even. So they stay as
//!    they are for as long as the count is one odd number.
//! 3. No value of the count comes back (at one change a nanosecond it lasts for five centuries). So
//!    a taker whose compare-and-swap succeeds copied what belongs to the number that it read before.
//!    One that fails may have copied halves of two wakers, and forgets them.
//!
//! | Edge  | Release side                  | Acquire side           | Carries | Model that fails without it |
//! |-------|-------------------------------|------------------------|---------|-----------------------------|
//! | [WS1] | `WaiterSlot::arm`             | `WaiterSlot::take`     | the waker in the two words | `waiter_slot::model` |
//! | [WS2] | `WaiterSlot::take`            | `WaiterSlot::register`, `WaiterSlot::replace` | that the taker has copied the words | none: without it a copy could read words that are written later, which C++20 allows on paper, but neither loom nor RC11 |
//! | [WS3] | `WaiterSlot::take`            | `WaiterSlot::arm`      | what the waking side published | `waiter_slot::model` |
//!
//! Progress: the registrant registers and *then* looks at its condition. Every `take` ends with a
//! read-modify-write of the word on which `register` ends, so of the two one comes first. If it is
//! `register`, the taker finds the waker. If it is `take`, the look after `register` sees what the
//! waking side published ([WS3]), also through other takers in between: nothing but
//! read-modify-writes changes the word, so the release sequence goes on. A registrant that finds its
//! own waker still armed may have read an old number: then the taker wakes the same task, later.
//!
//! `register` never waits. A `take` repeats only after somebody else has changed the count.
//!
//! Cost: `register` 1 RMW and a clone; again with the same waker, still armed: 1 load; with another
//! waker, still armed: 2 RMWs and a clone. `take` 1 RMW.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::task::{RawWakerVTable, Waker};

use crate::primitive::{AtomicPtr, AtomicU64};

/// The waker of one waiter.
pub struct WaiterSlot {
    count: AtomicU64,
    data: AtomicPtr<()>,
    vtable: AtomicPtr<RawWakerVTable>,
}

/// The two pointers of a waker, which is owned only if the count says so.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bits {
    data: *const (),
    vtable: *const RawWakerVTable,
}

impl Bits {
    #[inline]
    fn of(waker: &Waker) -> Self {
        Self { data: waker.data(), vtable: waker.vtable() }
    }

    /// # Safety
    /// 1. These are the pointers of one waker, which was forgotten, and which the caller owns.
    #[inline]
    unsafe fn into_waker(self) -> Waker {
        // SAFETY: a waker's (obligation 1), so it is a reference for ever.
        let vtable: &'static RawWakerVTable = unsafe { &*self.vtable };
        // SAFETY: the two belong together, and nobody else makes a waker of them (obligation 1).
        unsafe { Waker::new(self.data, vtable) }
    }
}

fn is_armed(count: u64) -> bool {
    count & 1 == 1
}

impl WaiterSlot {
    crate::const_fn! {
        /// An empty slot.
        pub const fn new() -> Self {
            Self {
                count: AtomicU64::new(0),
                data: AtomicPtr::new(ptr::null_mut()),
                vtable: AtomicPtr::new(ptr::null_mut()),
            }
        }
    }

    /// Makes `waker` the one that the next [`wake`](Self::wake) wakes.
    ///
    /// The caller looks at its condition *after* this call (again, if it has before): a `wake` that
    /// came earlier finds nobody, and what was published before it is visible after this call.
    ///
    /// # Safety
    /// 1. No two threads are in `register` of one slot at once, and each call happens after the one
    ///    before. The clone or the drop of a waker may call it again: the slot is not in between then.
    #[inline]
    pub unsafe fn register(&self, waker: &Waker) {
        if self.holds(waker) {
            return;
        }
        // User code, which may panic, or register: the count is read after it.
        let waker = waker.clone();
        // ORD[WS2] acquire: if even, the last taker has copied the words.
        let count = self.count.load(Acquire);
        if is_armed(count) {
            self.replace(count, waker);
        } else {
            self.arm(waker);
        }
    }

    /// True if `waker` is the one that the next [`wake`](Self::wake) wakes; or somebody else has just taken it to
    /// wake it. Beside another thread in [`register`](Self::register), a guess.
    #[inline]
    pub fn holds(&self, waker: &Waker) -> bool {
        // ORD relaxed: what is odd, and the words that belong to it, are of this side.
        is_armed(self.count.load(Relaxed)) && self.bits() == Bits::of(waker)
    }

    /// What the two words hold: a waker's pointers only if the count is the same odd number before
    /// and after (invariants 2, 3).
    #[inline]
    fn bits(&self) -> Bits {
        Bits {
            // ORD relaxed: the count says to what it belongs.
            data: self.data.load(Relaxed),
            // ORD relaxed: as above.
            vtable: self.vtable.load(Relaxed),
        }
    }

    /// Fills the empty slot. Only for the registrant, while the count is even.
    #[inline]
    fn arm(&self, waker: Waker) {
        let bits = Bits::of(&ManuallyDrop::new(waker));
        // ORD relaxed: nobody uses the words before the count is odd.
        self.data.store(bits.data.cast_mut(), Relaxed);
        // ORD relaxed: as above.
        self.vtable.store(bits.vtable.cast_mut(), Relaxed);
        // ORD[WS1] release: publishes the two words to the taker.
        // ORD[WS3] acquire: the look that follows sees what earlier takers published.
        self.count.fetch_add(1, AcqRel);
    }

    /// Changes the waker of a slot that was armed. Only for the registrant.
    #[cold]
    fn replace(&self, count: u64, new: Waker) {
        let old = self.bits();
        // ORD relaxed: what is in the words was written by this side.
        // ORD[WS2] acquire: the failure is a taker's count; it has copied the words.
        let taken = self.count.compare_exchange(count, count + 1, Relaxed, Acquire).is_err();
        self.arm(new);
        if !taken {
            // SAFETY: we made the count even, so `old` is ours (obligation 1, by invariant 1).
            drop(unsafe { old.into_waker() });
        }
    }

    /// Takes the registered waker, if there is one.
    #[inline]
    pub fn take(&self) -> Option<Waker> {
        loop {
            // ORD[WS1] acquire: the two words of an odd count.
            let count = self.count.load(Acquire);
            let bits = is_armed(count).then(|| self.bits());
            // A write also if it changes nothing: the next `register` reads it or a later one.
            let even = (count + 1) & !1;
            // ORD[WS2] release: we have copied the words.
            // ORD[WS3] release: a `register` that comes later sees what this thread published.
            // ORD relaxed: a failure only makes us look again.
            if self.count.compare_exchange(count, even, Release, Relaxed).is_ok() {
                // SAFETY: it was odd before and after we copied the words, and we made it even: they
                // are of one waker, and ours (obligation 1, by invariants 1, 2 and 3).
                return bits.map(|bits| unsafe { bits.into_waker() });
            }
        }
    }

    /// Wakes the registered waker, if there is one. True if there was.
    #[inline]
    pub fn wake(&self) -> bool {
        match self.take() {
            None => false,
            Some(waker) => {
                waker.wake();
                true
            }
        }
    }

    /// True if a waker is registered: a hint, without any ordering. A waking side that skips `wake`
    /// because of it needs a `fence(SeqCst)` between publishing and this look, and the waiting side
    /// one between `register` and its look.
    #[inline]
    pub fn is_registered(&self) -> bool {
        // ORD relaxed: a hint; see above.
        is_armed(self.count.load(Relaxed))
    }
}

impl Drop for WaiterSlot {
    fn drop(&mut self) {
        // `&mut self` comes after every other access.
        if self.is_registered() {
            // SAFETY: armed, and nobody else is here (obligation 1, by invariant 1).
            drop(unsafe { self.bits().into_waker() });
        }
    }
}

impl Default for WaiterSlot {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for WaiterSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaiterSlot").field("registered", &self.is_registered()).finish()
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
