//! Guards of readers.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use super::RwLock;
use crate::held::{Held, One, Shared};

/// Shared access to the value of an [`RwLock`], or to a part of it; unlocks on drop.
///
/// # Examples
/// ```
/// let lock = volt_sync::RwLock::new(1);
/// let (one, two) = (lock.blocking_read(), lock.blocking_read());
/// assert_eq!(*one, *two);
/// ```
#[must_use = "if unused the lock is released at once"]
#[clippy::has_significant_drop]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    data: NonNull<T>,
    held: One<'a>,
    _value: PhantomData<&'a T>,
}

// SAFETY: as a shared reference to the data, which the permit makes it.
unsafe impl<T: ?Sized + Sync> Send for RwLockReadGuard<'_, T> {}
// SAFETY: as a shared reference to the data.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockReadGuard<'_, T> {}

impl<'a, T: ?Sized> RwLockReadGuard<'a, T> {
    /// Takes over the permit that the caller has acquired.
    #[inline(always)]
    pub(super) fn new(lock: &'a RwLock<T>) -> Self {
        Self::part(Held::<_, Shared>::new(lock).erase_one(), lock.data_ptr())
    }

    /// `data` is part of the value that the permit protects.
    #[inline(always)]
    pub(super) const fn part(held: One<'a>, data: NonNull<T>) -> Self {
        Self { data, held, _value: PhantomData }
    }

    /// A guard for a part of the value.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{RwLock, RwLockReadGuard};
    /// let lock = RwLock::new((1, 2));
    /// let part = RwLockReadGuard::map(lock.blocking_read(), |pair| &pair.1);
    /// assert_eq!(*part, 2);
    /// ```
    pub fn map<U, F>(this: Self, f: F) -> RwLockReadGuard<'a, U>
    where
        U: ?Sized,
        F: FnOnce(&T) -> &U,
    {
        let data = NonNull::from(f(&this));
        RwLockReadGuard::part(this.held, data)
    }

    /// As [`map`](Self::map), if there is such a part.
    ///
    /// # Errors
    /// This guard, if `f` returns `None`.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{RwLock, RwLockReadGuard};
    /// let lock = RwLock::new((1, 2));
    /// let guard = RwLockReadGuard::try_map(lock.blocking_read(), |_| None::<&u32>).unwrap_err();
    /// assert_eq!(*guard, (1, 2));
    /// ```
    pub fn try_map<U, F>(this: Self, f: F) -> Result<RwLockReadGuard<'a, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&T) -> Option<&U>,
    {
        match f(&this).map(NonNull::from) {
            Some(data) => Ok(RwLockReadGuard::part(this.held, data)),
            None => Err(this),
        }
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: part of the value, which no writer changes while a reader's permit is held.
        unsafe { self.data.as_ref() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// As [`RwLockReadGuard`], but owns its lock, so that it can outlive the scope it came from.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// let lock = Arc::new(volt_sync::RwLock::new(1));
/// let reader = lock.clone().try_read_owned().unwrap();
/// std::thread::spawn(move || assert_eq!(*reader, 1)).join().unwrap();
/// assert!(lock.try_write().is_ok());
/// ```
#[must_use = "if unused the lock is released at once"]
#[clippy::has_significant_drop]
pub struct OwnedRwLockReadGuard<T: ?Sized, U: ?Sized = T> {
    data: NonNull<U>,
    held: Held<Arc<RwLock<T>>, Shared>,
    _value: PhantomData<(*mut T, *const U)>,
}

// SAFETY: owns the lock, hence perhaps the value, and a shared reference to the data.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Sync> Send for OwnedRwLockReadGuard<T, U> {}
// SAFETY: `&self` gives access to the data, and to the lock.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync for OwnedRwLockReadGuard<T, U> {}

impl<T: ?Sized> OwnedRwLockReadGuard<T> {
    /// Takes over the permit that the caller has acquired.
    #[inline(always)]
    pub(super) fn new(lock: Arc<RwLock<T>>) -> Self {
        let data = lock.data_ptr();
        Self::part(Held::new(lock), data)
    }
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockReadGuard<T, U> {
    /// `data` is part of the value that the permit protects.
    #[inline(always)]
    pub(super) const fn part(held: Held<Arc<RwLock<T>>, Shared>, data: NonNull<U>) -> Self {
        Self { data, held, _value: PhantomData }
    }

    /// A guard for a part of the value.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{OwnedRwLockReadGuard, RwLock};
    /// let lock = std::sync::Arc::new(RwLock::new((1, 2)));
    /// let part = OwnedRwLockReadGuard::map(lock.try_read_owned().unwrap(), |pair| &pair.1);
    /// assert_eq!(*part, 2);
    /// ```
    pub fn map<S, F>(this: Self, f: F) -> OwnedRwLockReadGuard<T, S>
    where
        S: ?Sized,
        F: FnOnce(&U) -> &S,
    {
        let data = NonNull::from(f(&this));
        OwnedRwLockReadGuard::part(this.held, data)
    }

    /// As [`map`](Self::map), if there is such a part.
    ///
    /// # Errors
    /// This guard, if `f` returns `None`.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{OwnedRwLockReadGuard, RwLock};
    /// let lock = std::sync::Arc::new(RwLock::new((1, 2)));
    /// let guard = OwnedRwLockReadGuard::try_map(lock.try_read_owned().unwrap(), |_| None::<&u32>).unwrap_err();
    /// assert_eq!(*guard, (1, 2));
    /// ```
    pub fn try_map<S, F>(this: Self, f: F) -> Result<OwnedRwLockReadGuard<T, S>, Self>
    where
        S: ?Sized,
        F: FnOnce(&U) -> Option<&S>,
    {
        match f(&this).map(NonNull::from) {
            Some(data) => Ok(OwnedRwLockReadGuard::part(this.held, data)),
            None => Err(this),
        }
    }

    /// The lock that this guard locks.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use volt_sync::{OwnedRwLockReadGuard, RwLock};
    /// let lock = Arc::new(RwLock::new(1));
    /// let guard = lock.clone().try_read_owned().unwrap();
    /// assert!(Arc::ptr_eq(OwnedRwLockReadGuard::rwlock(&guard), &lock));
    /// ```
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        this.held.lock()
    }
}

impl<T: ?Sized, U: ?Sized> Deref for OwnedRwLockReadGuard<T, U> {
    type Target = U;

    #[inline(always)]
    fn deref(&self) -> &U {
        // SAFETY: part of the value, which no writer changes while a reader's permit is held.
        unsafe { self.data.as_ref() }
    }
}

impl<T: ?Sized, U: ?Sized + fmt::Debug> fmt::Debug for OwnedRwLockReadGuard<T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized, U: ?Sized + fmt::Display> fmt::Display for OwnedRwLockReadGuard<T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
