//! What a `Sleep` lends to the wheel.
//!
//! Purpose: the intrusive node of a timer: registering allocates nothing.
//!
//! Who may touch what:
//!
//! | Field      | Written by                                  | Read by                         |
//! |------------|---------------------------------------------|---------------------------------|
//! | `links`    | whoever holds the shard's lock              | the same                        |
//! | `slot`     | whoever holds the shard's lock              | the same                        |
//! | `waker`    | the owner, under the lock                   | under the lock, or by the owner |
//! | `deadline` | the owner; under the lock if it moves earlier | anybody                       |
//! | `state`    | see below                                   | anybody                         |
//! | `shard`, `moved` | the owner                             | the owner                       |
//!
//! The owner is whoever holds the `Sleep` exclusively.
//!
//! | State      | Meaning                              | Left by                                |
//! |------------|--------------------------------------|----------------------------------------|
//! | LAZY       | `deadline` holds a duration          | owner, when the time is first looked at |
//! | NEW        | deadline in the future when made     | owner: REGISTERED, or FIRED if it has come |
//! | CHECK      | nobody looked at the clock yet       | owner: REGISTERED or FIRED             |
//! | REGISTERED | linked in the wheel of `shard`       | under the lock: FIRED, SHUTDOWN, CHECK |
//! | FIRED      | unlinked, the deadline has passed    | owner: CHECK (reset)                   |
//! | SHUTDOWN   | unlinked, the runtime has gone       | owner: CHECK (reset)                   |
//!
//! Invariants:
//! 1. REGISTERED if and only if linked; both change under the lock of `shard`.
//! 2. `waker` is initialised if and only if the state is REGISTERED (seen under the lock). Taking
//!    it does not write to it, so that the owner may compare it with another one at any time.
//! 3. `shard` is set from the first registration until the owner lets go of it, and the entry
//!    counts in the shard's `refs` for exactly as long.
//!
//! | Edge  | Release side    | Acquire side        | Carries | Model test |
//! |-------|-----------------|---------------------|---------|------------|
//! | [TE1] | `Entry::finish` | `Entry::state`      | what happened before the timer fired | `fired_state_carries_what_the_firer_did` |

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::task::Waker;

use volt_sync::internal::primitive::{AtomicU8, AtomicU64, RawCell, UnsafeCell};
use volt_sync::internal::{Link, Pointers};

use super::timers::Shard;

pub(super) const LAZY: u8 = 0;
pub(super) const NEW: u8 = 1;
pub(super) const CHECK: u8 = 2;
pub(super) const REGISTERED: u8 = 3;
pub(super) const FIRED: u8 = 4;
pub(super) const SHUTDOWN: u8 = 5;

/// See the module documentation.
pub(super) struct Entry {
    links: RawCell<Pointers<Entry>>,
    /// Nanoseconds on the clock's scale.
    deadline: AtomicU64,
    waker: UnsafeCell<MaybeUninit<Waker>>,
    pub(super) shard: Cell<Option<NonNull<Shard>>>,
    pub(super) slot: Cell<u16>,
    state: AtomicU8,
    /// The deadline was moved later while the wheel kept the old place.
    pub(super) moved: Cell<bool>,
}

// SAFETY: the table above says which field is touched by whom: under the shard's lock, by the owner
// alone, or atomically. A `Waker` may go to any thread.
unsafe impl Send for Entry {}
// SAFETY: as above; a shared `Sleep` gives access to atomics, and to `shard` for reading.
unsafe impl Sync for Entry {}

// SAFETY: `pointers` returns the place of the field `links` (1), from the address alone (2).
unsafe impl Link for Entry {
    unsafe fn pointers(node: NonNull<Self>) -> NonNull<Pointers<Self>> {
        let node = node.as_ptr();
        // SAFETY: `node` is alive, so the field's place is inside its allocation.
        let links = unsafe { &raw const (*node).links };
        // SAFETY: not null: a field of a live node.
        unsafe { NonNull::new_unchecked(RawCell::raw_get(links)) }
    }
}

impl Entry {
    #[inline]
    pub(super) fn new(state: u8, deadline: u64) -> Self {
        Self {
            links: RawCell::new(Pointers::new()),
            deadline: AtomicU64::new(deadline),
            waker: UnsafeCell::new(MaybeUninit::uninit()),
            shard: Cell::new(None),
            slot: Cell::new(0),
            state: AtomicU8::new(state),
            moved: Cell::new(false),
        }
    }

    #[inline]
    pub(super) fn deadline(&self) -> u64 {
        // ORD relaxed: the owner wrote it, or the lock orders it; a firer that misses a move to
        // later finds the owner's `moved` on the other side.
        self.deadline.load(Relaxed)
    }

    #[inline]
    pub(super) fn set_deadline(&self, deadline: u64) {
        // ORD relaxed: see `deadline`.
        self.deadline.store(deadline, Relaxed);
    }

    #[inline]
    pub(super) fn state(&self) -> u8 {
        // ORD[TE1] acquire: a fired timer's owner sees what the firer did before.
        self.state.load(Acquire)
    }

    /// Changes the state by the owner, or under the lock when nothing needs to be published.
    #[inline]
    pub(super) fn set_state(&self, state: u8) {
        // ORD relaxed: seen by the owner itself, or under the lock.
        self.state.store(state, Relaxed);
    }

    /// Publishes FIRED or SHUTDOWN: after this the owner may not need the lock to see it.
    #[inline]
    pub(super) fn finish(&self, state: u8) {
        // ORD[TE1] release: publishes what the firer did before.
        self.state.store(state, Release);
    }

    /// True if the registered waker wakes the same task as `waker`.
    ///
    /// # Safety
    /// 1. The caller is the owner.
    /// 2. It registered the entry and has not taken the waker out since.
    #[inline]
    pub(super) unsafe fn will_wake(&self, waker: &Waker) -> bool {
        self.waker.with(|cell| {
            // SAFETY: only the owner, which calls this (1), writes the cell.
            let cell = unsafe { &*cell };
            // SAFETY: initialised by the registration (2). A firer may have taken the waker
            // meanwhile, which leaves the bits (invariant 2), and no more than the bits is
            // compared.
            unsafe { cell.assume_init_ref() }.will_wake(waker)
        })
    }

    /// Stores the waker.
    ///
    /// # Safety
    /// 1. The caller is the owner and holds the shard's lock.
    /// 2. The cell holds no waker (it would leak).
    #[inline]
    pub(super) unsafe fn put_waker(&self, waker: Waker) {
        self.waker.with_mut(|cell| {
            // SAFETY: exclusive (1): other threads read it under the lock only.
            let cell = unsafe { &mut *cell };
            cell.write(waker);
        });
    }

    /// Takes the waker out.
    ///
    /// # Safety
    /// 1. The caller holds the shard's lock.
    /// 2. The state was REGISTERED under this lock, and the caller changes it or puts a new waker
    ///    before it unlocks.
    #[inline]
    pub(super) unsafe fn take_waker(&self) -> Waker {
        self.waker.with(|cell| {
            // SAFETY: nobody writes it meanwhile: that takes the lock (1).
            let cell = unsafe { &*cell };
            // SAFETY: initialised (invariant 2), and taken once (2).
            unsafe { cell.assume_init_read() }
        })
    }
}
