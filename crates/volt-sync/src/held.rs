//! Permits of a lock that is held, given back on drop: what all guards are made of.
//!
//! The guards themselves have no `Drop`, so that one can be turned into another by moving its
//! fields.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;

use crate::permits::{Closed, Permits};

/// Something that is locked by taking permits.
pub(crate) trait Lock {
    /// The permits.
    fn permits(&self) -> &Permits;

    /// How many of them exclude everybody else.
    fn exclusive(&self) -> usize;
}

/// One permit, as the holder of a mutex and a reader have it.
impl Lock for Permits {
    fn permits(&self) -> &Permits {
        self
    }

    fn exclusive(&self) -> usize {
        1
    }
}

/// Whether a hold excludes all others.
pub(crate) trait Kind {
    /// How many permits it has.
    fn permits(lock: &(impl Lock + ?Sized)) -> usize;
}

/// A reader's hold.
pub(crate) struct Shared;

/// A writer's hold, or that of a mutex.
pub(crate) struct Exclusive;

impl Kind for Shared {
    #[inline(always)]
    fn permits(_: &(impl Lock + ?Sized)) -> usize {
        1
    }
}

impl Kind for Exclusive {
    #[inline(always)]
    fn permits(lock: &(impl Lock + ?Sized)) -> usize {
        lock.exclusive()
    }
}

/// A hold on the lock behind the reference or `Arc` `L`.
pub(crate) struct Held<L: Deref<Target: Lock>, K: Kind> {
    lock: L,
    _kind: PhantomData<K>,
}

impl<L: Deref<Target: Lock>, K: Kind> Held<L, K> {
    /// Takes over permits that the caller has acquired.
    #[inline(always)]
    pub(crate) const fn new(lock: L) -> Self {
        Self { lock, _kind: PhantomData }
    }

    /// The lock.
    #[inline(always)]
    pub(crate) const fn lock(&self) -> &L {
        &self.lock
    }
}

impl<L: Deref<Target: Lock>, K: Kind> Drop for Held<L, K> {
    #[inline]
    fn drop(&mut self) {
        self.lock.permits().give_back(K::permits(&*self.lock));
    }
}

impl<L: Deref<Target: Lock>> Held<L, Exclusive> {
    /// Gives back all permits but one.
    pub(crate) fn downgrade(self) -> Held<L, Shared> {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped, and not used again.
        let lock = unsafe { std::ptr::read(&raw const this.lock) };
        // Made first, so that a panicking waker leaves no permit behind.
        let shared = Held::new(lock);
        shared.lock.permits().give_back(shared.lock.exclusive() - 1);
        shared
    }
}

impl<'a, L: Lock + ?Sized, K: Kind> Held<&'a L, K> {
    /// The same permits, without the type of the data behind the lock.
    #[inline]
    pub(crate) fn erase(self) -> Several<'a> {
        let lock = self.lock;
        std::mem::forget(self);
        Several { permits: lock.permits(), n: K::permits(lock) }
    }

    /// As [`erase`](Self::erase), for one permit.
    #[inline]
    pub(crate) fn erase_one(self) -> One<'a> {
        debug_assert_eq!(K::permits(self.lock), 1);
        let lock = self.lock;
        std::mem::forget(self);
        Held::new(lock.permits())
    }
}

/// One permit of a lock.
pub(crate) type One<'a> = Held<&'a Permits, Shared>;

/// Any number of permits of a lock.
pub(crate) struct Several<'a> {
    permits: &'a Permits,
    n: usize,
}

impl Drop for Several<'_> {
    #[inline]
    fn drop(&mut self) {
        self.permits.give_back(self.n);
    }
}

/// Locks are never closed. Not a method that waits: each layer of `async fn` makes the future larger.
#[inline(always)]
pub(crate) fn acquired(result: Result<(), Closed>) {
    debug_assert!(result.is_ok(), "a lock is never closed");
}
