//! Guards of writers that own their lock.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use super::{OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, RwLock};
use crate::held::{Exclusive, Held};

/// As [`RwLockWriteGuard`](crate::RwLockWriteGuard), but owns its lock, so that it can outlive the
/// scope it came from.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// let lock = Arc::new(volt_sync::RwLock::new(1));
/// let mut writer = lock.clone().try_write_owned().unwrap();
/// std::thread::spawn(move || *writer += 1).join().unwrap();
/// assert_eq!(*lock.blocking_read(), 2);
/// ```
#[must_use = "if unused the lock is released at once"]
#[clippy::has_significant_drop]
pub struct OwnedRwLockWriteGuard<T: ?Sized> {
    held: Held<Arc<RwLock<T>>, Exclusive>,
    /// `Send` and `Sync` as the value is.
    _value: PhantomData<T>,
}

impl<T: ?Sized> OwnedRwLockWriteGuard<T> {
    #[inline(always)]
    pub(super) const fn new(held: Held<Arc<RwLock<T>>, Exclusive>) -> Self {
        Self { held, _value: PhantomData }
    }

    /// A guard for a part of the value.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{OwnedRwLockWriteGuard, RwLock};
    /// let lock = std::sync::Arc::new(RwLock::new((1, 2)));
    /// let part = OwnedRwLockWriteGuard::map(lock.try_write_owned().unwrap(), |pair| &mut pair.1);
    /// assert_eq!(*part, 2);
    /// ```
    pub fn map<U, F>(mut this: Self, f: F) -> OwnedRwLockMappedWriteGuard<T, U>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> &mut U,
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
    /// use volt_sync::{OwnedRwLockWriteGuard, RwLock};
    /// let lock = std::sync::Arc::new(RwLock::new((1, 2)));
    /// let guard = OwnedRwLockWriteGuard::try_map(lock.try_write_owned().unwrap(), |_| None::<&mut u32>).unwrap_err();
    /// assert_eq!(*guard, (1, 2));
    /// ```
    pub fn try_map<U, F>(mut this: Self, f: F) -> Result<OwnedRwLockMappedWriteGuard<T, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut this).map(NonNull::from) {
            Some(data) => Ok(OwnedRwLockMappedWriteGuard::new(this.held, data)),
            None => Err(this),
        }
    }

    /// A reader's guard for a part of the value: other readers come in, writers do not in between.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{OwnedRwLockWriteGuard, RwLock};
    /// let lock = std::sync::Arc::new(RwLock::new((1, 2)));
    /// let part = OwnedRwLockWriteGuard::downgrade_map(lock.try_write_owned().unwrap(), |pair| &pair.1);
    /// assert_eq!(*part, 2);
    /// ```
    pub fn downgrade_map<U, F>(this: Self, f: F) -> OwnedRwLockReadGuard<T, U>
    where
        U: ?Sized,
        F: FnOnce(&T) -> &U,
    {
        let data = NonNull::from(f(&this));
        OwnedRwLockReadGuard::part(this.held.downgrade(), data)
    }

    /// As [`downgrade_map`](Self::downgrade_map), if there is such a part.
    ///
    /// # Errors
    /// This guard, if `f` returns `None`.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{OwnedRwLockWriteGuard, RwLock};
    /// let lock = std::sync::Arc::new(RwLock::new((1, 2)));
    /// let guard = OwnedRwLockWriteGuard::try_downgrade_map(lock.try_write_owned().unwrap(), |_| None::<&u32>).unwrap_err();
    /// assert_eq!(*guard, (1, 2));
    /// ```
    pub fn try_downgrade_map<U, F>(this: Self, f: F) -> Result<OwnedRwLockReadGuard<T, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&T) -> Option<&U>,
    {
        match f(&this).map(NonNull::from) {
            Some(data) => Ok(OwnedRwLockReadGuard::part(this.held.downgrade(), data)),
            None => Err(this),
        }
    }

    /// A guard for the whole value, of the type that [`map`](Self::map) returns.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{OwnedRwLockWriteGuard, RwLock};
    /// let lock = std::sync::Arc::new(RwLock::new((1, 2)));
    /// let guard = OwnedRwLockWriteGuard::into_mapped(lock.try_write_owned().unwrap());
    /// assert_eq!(*guard, (1, 2));
    /// ```
    pub fn into_mapped(this: Self) -> OwnedRwLockMappedWriteGuard<T> {
        let data = this.held.lock().data_ptr();
        OwnedRwLockMappedWriteGuard::new(this.held, data)
    }

    /// Becomes a reader, without a writer in between.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::RwLock;
    /// let lock = std::sync::Arc::new(RwLock::new((1, 2)));
    /// let mut writer = lock.clone().try_write_owned().unwrap();
    /// writer.0 = 3;
    /// let reader = writer.downgrade();
    /// assert_eq!(*reader, *lock.blocking_read());
    /// ```
    pub fn downgrade(self) -> OwnedRwLockReadGuard<T> {
        let data = self.held.lock().data_ptr();
        OwnedRwLockReadGuard::part(self.held.downgrade(), data)
    }

    /// The lock that this guard locks.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use volt_sync::{OwnedRwLockWriteGuard, RwLock};
    /// let lock = Arc::new(RwLock::new(1));
    /// let guard = lock.clone().try_write_owned().unwrap();
    /// assert!(Arc::ptr_eq(OwnedRwLockWriteGuard::rwlock(&guard), &lock));
    /// ```
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        this.held.lock()
    }
}

impl<T: ?Sized> Deref for OwnedRwLockWriteGuard<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the writer's permits exclude all others, and `&self` excludes `deref_mut`.
        unsafe { &*self.held.lock().data.get() }
    }
}

impl<T: ?Sized> DerefMut for OwnedRwLockWriteGuard<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the writer's permits exclude all others, and the guard is borrowed mutably.
        unsafe { &mut *self.held.lock().data.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for OwnedRwLockWriteGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for OwnedRwLockWriteGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
