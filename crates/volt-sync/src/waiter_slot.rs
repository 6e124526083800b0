//! A place for the waker of one waiter, filled and emptied without a lock.
//!
//! Purpose: the wake-up of the only waiter (the owner of a `JoinSet`, a pool's joiner) costs one
//! read-modify-write when nobody waits and two when somebody does.
//!
//! Rejected:
//! * A flag beside the waker, read by the waking side (the seed's first attempt): the flag is a hint
//!   that can be stale, so a wake-up is lost. Here the read-modify-write that looks also takes.
//! * Copying a callback and its context out of the waiter (finding S9): the context may be freed
//!   before it is called. Here the reference-counted `Waker` itself moves out.
//! * Waking by reference and keeping the waker for the next round: saves a clone, but user code
//!   would run while the registrant finds the slot busy, and a finished task would stay allocated.
//!
//! | State             | The cell                | `register`                  | `take`, `wake`       |
//! |-------------------|-------------------------|-----------------------------|----------------------|
//! | empty (0)         | no waker; registrant's  | writes, to ARMED and BUSY   | nothing              |
//! | ARMED and BUSY    | a waker; the next taker's | same waker: nothing; other: to BUSY, writes, back | to BUSY, moves it out, to 0 |
//! | BUSY              | whoever went to BUSY    | wakes itself                | nothing              |
//!
//! Invariants:
//! 1. The cell holds a waker that the slot owns if and only if ARMED is set, or BUSY is set and its
//!    holder has not moved the waker out yet.
//! 2. The cell is written only by the registrant, in state 0 or after it moved the state from ARMED
//!    to BUSY itself. Takers read it only after they did so. A taker copies the bits out without
//!    changing the cell, so the registrant may compare them at the same time.
//!
//! | Edge  | Release side                  | Acquire side           | Carries | Model that fails without it |
//! |-------|-------------------------------|------------------------|---------|-----------------------------|
//! | [WS1] | `WaiterSlot::arm`             | `WaiterSlot::take`     | the waker in the cell | `a_wake_up_is_never_lost` |
//! | [WS2] | `WaiterSlot::take`, the return | `WaiterSlot::register` | that the taker has left the cell | `waiter_slot::model` |
//! | [WS3] | `WaiterSlot::take`, the look  | `WaiterSlot::arm`      | what the waking side published | `a_wake_up_is_never_lost` |
//!
//! Progress: the registrant registers and *then* looks at its condition. Every `take` is a
//! read-modify-write of the word on which `register` ends, so of the two one comes first. If it is
//! `register`, the taker finds the waker. If it is `take`, the look after `register` sees what the
//! waking side published ([WS3]), also through other takers in between, since each of their
//! operations is a read-modify-write too and continues the release sequence. A registrant that
//! finds a taker in the cell wakes itself instead of waiting.
//!
//! Cost: `register` 1 RMW and a clone; again with the same waker, still armed: 1 load; with another
//! waker, still armed: 2 RMWs. `take` 1 RMW if empty, 2 otherwise.

use std::fmt;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::task::Waker;

use crate::primitive::{AtomicU8, UnsafeCell, spin};

const ARMED: u8 = 1;
const BUSY: u8 = 2;

/// The waker of one waiter.
pub struct WaiterSlot {
    state: AtomicU8,
    waker: UnsafeCell<MaybeUninit<Waker>>,
}

// SAFETY: wakers are `Send`; the cell is accessed as invariant 2 says.
unsafe impl Send for WaiterSlot {}
// SAFETY: wakers are `Send` and `Sync`; the cell is accessed as invariant 2 says.
unsafe impl Sync for WaiterSlot {}

impl WaiterSlot {
    crate::const_fn! {
        /// An empty slot.
        pub const fn new() -> Self {
            Self { state: AtomicU8::new(0), waker: UnsafeCell::new(MaybeUninit::uninit()) }
        }
    }

    /// Makes `waker` the one that the next [`wake`](Self::wake) wakes.
    ///
    /// The caller looks at its condition *after* this call (again, if it has before): a `wake` that
    /// came earlier finds nobody, and what was published before it is visible after this call.
    /// `waker` may be woken at once instead of being kept.
    ///
    /// # Safety
    /// 1. No two calls of `register` on one slot overlap, and each happens after the one before.
    #[inline]
    pub unsafe fn register(&self, waker: &Waker) {
        // ORD[WS2] acquire: a 0 is the return of the last taker, which is done with the cell.
        match self.state.load(Acquire) {
            0 => self.arm(waker.clone()),
            BUSY => self.retry(waker),
            _ if self.holds(waker) => {}
            _ => self.replace(waker),
        }
    }

    /// True if the cell's bits are those of `waker`. Only for the registrant, in the ARMED state.
    fn holds(&self, waker: &Waker) -> bool {
        self.waker.with(|cell| {
            // SAFETY: armed once, so the bits are initialised, and only the registrant, who calls
            // this, writes them (invariant 2).
            let held = unsafe { &*cell.cast::<Waker>() };
            // The held waker may just be moved out: only its two pointers are compared.
            held.will_wake(waker)
        })
    }

    /// Fills the empty cell. Only for the registrant, in state 0.
    #[inline]
    fn arm(&self, waker: Waker) {
        // SAFETY: state 0 makes the cell the registrant's (invariant 2).
        self.waker.with_mut(|cell| unsafe { cell.write(MaybeUninit::new(waker)) });
        // ORD[WS1] release: publishes the cell to the taker.
        // ORD[WS3] acquire: the look that follows sees what earlier takers published.
        self.state.fetch_or(ARMED | BUSY, AcqRel);
    }

    /// Changes the waker of an armed slot.
    #[cold]
    fn replace(&self, waker: &Waker) {
        let new = waker.clone();
        // ORD[WS2] acquire: a failure by a taker that has returned makes the cell ours.
        match self.state.compare_exchange(ARMED | BUSY, BUSY, Acquire, Acquire) {
            Ok(_) => {
                let old = self.waker.with(|cell| {
                    // SAFETY: we went from ARMED to BUSY, so the waker is in the cell and ours
                    // (invariants 1, 2); `arm` overwrites it without dropping it.
                    unsafe { cell.cast::<Waker>().read() }
                });
                self.arm(new);
                drop(old);
            }
            Err(0) => self.arm(new),
            Err(_) => self.retry(&new),
        }
    }

    /// A taker is in the cell for a few instructions more: lets the task come back.
    #[cold]
    fn retry(&self, waker: &Waker) {
        spin(0);
        waker.wake_by_ref();
    }

    /// Takes the registered waker, if there is one.
    #[inline]
    pub fn take(&self) -> Option<Waker> {
        // ORD[WS1] acquire: the waker in the cell.
        // ORD[WS3] release: a `register` that comes later sees what this thread published.
        if self.state.fetch_and(!ARMED, AcqRel) & ARMED == 0 {
            return None;
        }
        let waker = self.waker.with(|cell| {
            // SAFETY: we went from ARMED to BUSY, so the waker is in the cell and ours to move out
            // (invariants 1, 2).
            unsafe { cell.cast::<Waker>().read() }
        });
        // ORD[WS2] release: we are done with the cell. Acquire as well, so that what takers that
        // found us busy published travels on to the registrant ([WS3]).
        self.state.fetch_and(!BUSY, AcqRel);
        Some(waker)
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
        self.state.load(Relaxed) & ARMED != 0
    }
}

impl Drop for WaiterSlot {
    fn drop(&mut self) {
        // ORD relaxed: `&mut self` comes after every other access.
        if self.state.load(Relaxed) & ARMED != 0 {
            // SAFETY: armed, so the waker is in the cell (invariant 1), and nobody else is here.
            self.waker.with_mut(|cell| unsafe { cell.cast::<Waker>().drop_in_place() });
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
