//! One waiter of a [`WaitSet`], to be embedded in a future.

use std::marker::PhantomPinned;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::Waker;

use super::{ALL, Lists, Place, WaitSet};
use crate::waiter::{WAITING, Waiter};

/// A place in the set, taken or not.
///
/// Its owner calls [`cancel`](Self::cancel) before it drops one that is [linked](Self::is_linked).
pub(crate) struct Entry {
    waiter: Place,
    /// True from `enqueue` until the end of the wait was seen; then the waiter is initialised.
    linked: bool,
    generation: usize,
    /// A linked waiter is used by other threads through its address, also while a `&mut` to the
    /// pinned future exists. That is what being `!Unpin` permits.
    _pinned: PhantomPinned,
}

// SAFETY: the waiter is accessed as `waiter.rs` says; all else is `Send`.
unsafe impl Send for Entry {}
// SAFETY: `&Entry` gives access to nothing.
unsafe impl Sync for Entry {}

impl Entry {
    /// Not in the set; for an event that ends `generation`.
    #[inline]
    pub(crate) const fn new(generation: usize) -> Self {
        Self { waiter: Place::uninit(), linked: false, generation, _pinned: PhantomPinned }
    }

    #[inline]
    pub(crate) const fn is_linked(&self) -> bool {
        self.linked
    }

    #[inline]
    pub(crate) const fn generation(&self) -> usize {
        self.generation
    }

    /// The entry without a `&mut` to the waiter inside, and the waiter.
    fn parts(self: Pin<&mut Self>) -> (NonNull<Self>, NonNull<Waiter<()>>) {
        // SAFETY: nothing is moved out.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: `this` points to a live entry, of which this is a field.
        let waiter = unsafe { &raw mut (*this.as_ptr()).waiter };
        // SAFETY: the address of a field is not null.
        (this, unsafe { NonNull::new_unchecked(waiter.cast()) })
    }

    /// Begins the wait. `lists` are those of the set, inside [`WaitSet::locked`].
    ///
    /// # Safety
    /// 1. The entry is not linked, and its generation is that of the word.
    /// 2. All other calls are made with the same set.
    pub(crate) unsafe fn enqueue<E>(self: Pin<&mut Self>, waker: Waker, lists: &mut Lists<E>) {
        let (this, waiter) = self.parts();
        // SAFETY: the place is not in use while the entry is not linked (obligation 1).
        unsafe { waiter.write(Waiter::new(waker, ())) };
        // SAFETY: 1. Pinned, initialised, in no list. 2. `cancel` unlinks it.
        unsafe { lists.live.push_back(waiter) };
        // SAFETY: the entry is alive, and `linked` is the owner's alone.
        unsafe { (*this.as_ptr()).linked = true };
    }

    /// How the wait of a linked entry stands. If it goes on, its end will wake `waker`, or whom it
    /// would wake already for `None`.
    pub(crate) fn poll<E>(self: Pin<&mut Self>, set: &WaitSet<E>, waker: Option<&Waker>) -> u8 {
        debug_assert!(self.linked);
        let generation = self.generation;
        let (this, waiter) = self.parts();
        // SAFETY: linked, so initialised, and its owner is here.
        let mut status = unsafe { Waiter::status(waiter) };
        if status == WAITING {
            let is_stale = set.word().generation() != generation;
            // SAFETY: linked, so initialised, and its owner is here.
            if !is_stale && waker.is_none_or(|waker| unsafe { Waiter::will_wake(waiter, waker) }) {
                return WAITING;
            }
            // Both are dropped after the unlock.
            let (mut new, mut old) = (waker.cloned(), None);
            status = set.locked(|word, lists| {
                // SAFETY: linked, so initialised, and its owner is here.
                let status = unsafe { Waiter::status(waiter) };
                if status != WAITING {
                    return status;
                }
                if word.generation() != generation {
                    // SAFETY: it waits, so it is linked, and stale by invariant 3 of the set.
                    unsafe { lists.stale.remove(waiter) };
                    // SAFETY: it waited, the lock is held, and it is not used again.
                    old = Some(unsafe { Waiter::take_waker(waiter) });
                    return ALL;
                }
                if let Some(new) = new.take() {
                    // SAFETY: 1. The owner, with the lock. 2. It waits.
                    old = Some(unsafe { Waiter::replace_waker(waiter, new) });
                }
                WAITING
            });
            let removed = status != WAITING && old.is_some();
            if !removed {
                // User code: if it panics, an entry that was completed counts as linked, so that its
                // owner passes on what it did not use.
                drop(new);
            }
            if status != WAITING {
                // SAFETY: the entry is alive, and `linked` is the owner's alone.
                unsafe { (*this.as_ptr()).linked = false };
            }
            drop(old);
            return status;
        }
        // SAFETY: the entry is alive, and `linked` is the owner's alone.
        unsafe { (*this.as_ptr()).linked = false };
        status
    }

    /// Ends the wait of a linked entry. Returns its status: WAITING if no event came. In that case
    /// `removed` runs with the lock held.
    pub(crate) fn cancel<E>(
        self: Pin<&mut Self>,
        set: &WaitSet<E>,
        removed: impl FnOnce(&mut E),
    ) -> u8 {
        debug_assert!(self.linked);
        let generation = self.generation;
        let (this, waiter) = self.parts();
        // SAFETY: the entry is alive, and `linked` is the owner's alone.
        unsafe { (*this.as_ptr()).linked = false };
        // SAFETY: linked until now, so initialised, and its owner is here.
        let mut status = unsafe { Waiter::status(waiter) };
        let mut waker = None;
        if status == WAITING {
            status = set.locked(|word, lists| {
                // SAFETY: linked until now, so initialised, and its owner is here.
                let status = unsafe { Waiter::status(waiter) };
                if status != WAITING {
                    return status;
                }
                // SAFETY: it waited, the lock is held, and it is not used again.
                waker = Some(unsafe { Waiter::take_waker(waiter) });
                if word.generation() == generation {
                    // SAFETY: it waits, so it is linked, and live by invariant 3 of the set.
                    unsafe { lists.live.remove(waiter) };
                    removed(&mut lists.extra);
                    WAITING
                } else {
                    // SAFETY: it waits, so it is linked, and stale by invariant 3 of the set.
                    unsafe { lists.stale.remove(waiter) };
                    ALL
                }
            });
        }
        #[cfg(volt_loom)]
        // SAFETY: unlinked by us, or by whoever completed it.
        unsafe {
            Waiter::retire(waiter);
        }
        drop(waker);
        status
    }
}
