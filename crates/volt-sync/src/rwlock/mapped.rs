//! Guards of writers for a part of the value.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use super::RwLock;
use crate::held::{Exclusive, Held, Several};

/// Exclusive access to a part of the value of an [`RwLock`]; unlocks on drop.
///
/// Made by [`RwLockWriteGuard::map`](crate::RwLockWriteGuard::map).
///
/// # Examples
/// ```
/// use volt_sync::{RwLock, RwLockMappedWriteGuard, RwLockWriteGuard};
/// let lock = RwLock::new((1, 2));
/// let second: RwLockMappedWriteGuard<'_, u32> =
///     RwLockWriteGuard::map(lock.blocking_write(), |pair| &mut pair.1);
/// assert_eq!(*second, 2);
/// ```
#[must_use = "if unused the lock is released at once"]
#[clippy::has_significant_drop]
pub struct RwLockMappedWriteGuard<'a, T: ?Sized> {
    data: NonNull<T>,
    held: Several<'a>,
    _value: PhantomData<&'a mut T>,
}

// SAFETY: as a unique reference to the data, which the permits make it.
unsafe impl<T: ?Sized + Send> Send for RwLockMappedWriteGuard<'_, T> {}
// SAFETY: as a unique reference to the data.
unsafe impl<T: ?Sized + Sync> Sync for RwLockMappedWriteGuard<'_, T> {}

impl<'a, T: ?Sized> RwLockMappedWriteGuard<'a, T> {
    /// `data` is part of the value that the permits protect.
    pub(super) const fn new(held: Several<'a>, data: NonNull<T>) -> Self {
        Self { data, held, _value: PhantomData }
    }

    /// A guard for a part of the value.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{RwLock, RwLockMappedWriteGuard, RwLockWriteGuard};
    /// let lock = RwLock::new((1, 2));
    /// let whole = RwLockWriteGuard::into_mapped(lock.blocking_write());
    /// let part = RwLockMappedWriteGuard::map(whole, |pair| &mut pair.1);
    /// assert_eq!(*part, 2);
    /// ```
    pub fn map<U, F>(mut this: Self, f: F) -> RwLockMappedWriteGuard<'a, U>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> &mut U,
    {
        let data = NonNull::from(f(&mut this));
        RwLockMappedWriteGuard::new(this.held, data)
    }

    /// As [`map`](Self::map), if there is such a part.
    ///
    /// # Errors
    /// This guard, if `f` returns `None`.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{RwLock, RwLockMappedWriteGuard, RwLockWriteGuard};
    /// let lock = RwLock::new((1, 2));
    /// let whole = RwLockWriteGuard::into_mapped(lock.blocking_write());
    /// let guard = RwLockMappedWriteGuard::try_map(whole, |_| None::<&mut u32>).unwrap_err();
    /// assert_eq!(*guard, (1, 2));
    /// ```
    pub fn try_map<U, F>(mut this: Self, f: F) -> Result<RwLockMappedWriteGuard<'a, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut this).map(NonNull::from) {
            Some(data) => Ok(RwLockMappedWriteGuard::new(this.held, data)),
            None => Err(this),
        }
    }
}

impl<T: ?Sized> Deref for RwLockMappedWriteGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: part of the value that the permits protect; `&self` excludes `deref_mut`.
        unsafe { self.data.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for RwLockMappedWriteGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: part of the value that the permits protect, and borrowed mutably.
        unsafe { self.data.as_mut() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockMappedWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockMappedWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// As [`RwLockMappedWriteGuard`], but owns its lock.
///
/// Made by [`OwnedRwLockWriteGuard::map`](crate::OwnedRwLockWriteGuard::map).
///
/// # Examples
/// ```
/// use volt_sync::{OwnedRwLockMappedWriteGuard, OwnedRwLockWriteGuard, RwLock};
/// let lock = std::sync::Arc::new(RwLock::new((1, 2)));
/// let second: OwnedRwLockMappedWriteGuard<(u32, u32), u32> =
///     OwnedRwLockWriteGuard::map(lock.try_write_owned().unwrap(), |pair| &mut pair.1);
/// assert_eq!(*second, 2);
/// ```
#[must_use = "if unused the lock is released at once"]
#[clippy::has_significant_drop]
pub struct OwnedRwLockMappedWriteGuard<T: ?Sized, U: ?Sized = T> {
    data: NonNull<U>,
    held: Held<Arc<RwLock<T>>, Exclusive>,
    _value: PhantomData<(*mut T, *mut U)>,
}

// SAFETY: owns the lock, hence perhaps the value, and a unique reference to the data.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send> Send for OwnedRwLockMappedWriteGuard<T, U> {}
// SAFETY: `&self` gives access to the data, and to the lock.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync
    for OwnedRwLockMappedWriteGuard<T, U>
{
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockMappedWriteGuard<T, U> {
    /// `data` is part of the value that the permits protect.
    pub(super) const fn new(held: Held<Arc<RwLock<T>>, Exclusive>, data: NonNull<U>) -> Self {
        Self { data, held, _value: PhantomData }
    }

    /// A guard for a part of the value.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{OwnedRwLockMappedWriteGuard, OwnedRwLockWriteGuard, RwLock};
    /// let lock = std::sync::Arc::new(RwLock::new((1, 2)));
    /// let whole = OwnedRwLockWriteGuard::into_mapped(lock.try_write_owned().unwrap());
    /// let part = OwnedRwLockMappedWriteGuard::map(whole, |pair| &mut pair.1);
    /// assert_eq!(*part, 2);
    /// ```
    pub fn map<S, F>(mut this: Self, f: F) -> OwnedRwLockMappedWriteGuard<T, S>
    where
        S: ?Sized,
        F: FnOnce(&mut U) -> &mut S,
    {
        let data = NonNull::from(f(&mut this));
        OwnedRwLockMappedWriteGuard::new(this.held, data)
    }

    /// As [`map`](Self::map), if there is such a part.
    ///
    /// # Errors
    /// This guard, if `f` returns `None`.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{OwnedRwLockMappedWriteGuard, OwnedRwLockWriteGuard, RwLock};
    /// let lock = std::sync::Arc::new(RwLock::new((1, 2)));
    /// let whole = OwnedRwLockWriteGuard::into_mapped(lock.try_write_owned().unwrap());
    /// let guard = OwnedRwLockMappedWriteGuard::try_map(whole, |_| None::<&mut u32>).unwrap_err();
    /// assert_eq!(*guard, (1, 2));
    /// ```
    pub fn try_map<S, F>(mut this: Self, f: F) -> Result<OwnedRwLockMappedWriteGuard<T, S>, Self>
    where
        S: ?Sized,
        F: FnOnce(&mut U) -> Option<&mut S>,
    {
        match f(&mut this).map(NonNull::from) {
            Some(data) => Ok(OwnedRwLockMappedWriteGuard::new(this.held, data)),
            None => Err(this),
        }
    }

    /// The lock that this guard locks.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use volt_sync::{OwnedRwLockMappedWriteGuard, OwnedRwLockWriteGuard, RwLock};
    /// let lock = Arc::new(RwLock::new(1));
    /// let guard = OwnedRwLockWriteGuard::into_mapped(lock.clone().try_write_owned().unwrap());
    /// assert!(Arc::ptr_eq(OwnedRwLockMappedWriteGuard::rwlock(&guard), &lock));
    /// ```
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        this.held.lock()
    }
}

impl<T: ?Sized, U: ?Sized> Deref for OwnedRwLockMappedWriteGuard<T, U> {
    type Target = U;

    #[inline(always)]
    fn deref(&self) -> &U {
        // SAFETY: part of the value that the permits protect; `&self` excludes `deref_mut`.
        unsafe { self.data.as_ref() }
    }
}

impl<T: ?Sized, U: ?Sized> DerefMut for OwnedRwLockMappedWriteGuard<T, U> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut U {
        // SAFETY: part of the value that the permits protect, and borrowed mutably.
        unsafe { self.data.as_mut() }
    }
}

impl<T: ?Sized, U: ?Sized + fmt::Debug> fmt::Debug for OwnedRwLockMappedWriteGuard<T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized, U: ?Sized + fmt::Display> fmt::Display for OwnedRwLockMappedWriteGuard<T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
