//! Guards of writers.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::RefUnwindSafe;
use std::ptr::NonNull;

use super::{RwLock, RwLockMappedWriteGuard, RwLockReadGuard};
use crate::held::{Exclusive, Held};

/// Exclusive access to the value of an [`RwLock`]; unlocks on drop.
///
/// # Examples
/// ```
/// let lock = volt_sync::RwLock::new(1);
/// let mut writer = lock.blocking_write();
/// *writer += 1;
/// drop(writer);
/// assert_eq!(*lock.blocking_read(), 2);
/// ```
#[must_use = "if unused the lock is released at once"]
#[clippy::has_significant_drop]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    held: Held<&'a RwLock<T>, Exclusive>,
    /// `Send` and `Sync` as a unique reference to the value is.
    _value: PhantomData<&'a mut T>,
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    #[inline(always)]
    pub(super) const fn new(held: Held<&'a RwLock<T>, Exclusive>) -> Self {
        Self { held, _value: PhantomData }
    }

    /// A guard for a part of the value.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{RwLock, RwLockWriteGuard};
    /// let lock = RwLock::new((1, 2));
    /// let part = RwLockWriteGuard::map(lock.blocking_write(), |pair| &mut pair.1);
    /// assert_eq!(*part, 2);
    /// ```
    pub fn map<U, F>(mut this: Self, f: F) -> RwLockMappedWriteGuard<'a, U>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> &mut U,
    {
        let data = NonNull::from(f(&mut this));
        RwLockMappedWriteGuard::new(this.held.erase(), data)
    }

    /// As [`map`](Self::map), if there is such a part.
    ///
    /// # Errors
    /// This guard, if `f` returns `None`.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{RwLock, RwLockWriteGuard};
    /// let lock = RwLock::new((1, 2));
    /// let guard = RwLockWriteGuard::try_map(lock.blocking_write(), |_| None::<&mut u32>).unwrap_err();
    /// assert_eq!(*guard, (1, 2));
    /// ```
    pub fn try_map<U, F>(mut this: Self, f: F) -> Result<RwLockMappedWriteGuard<'a, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut this).map(NonNull::from) {
            Some(data) => Ok(RwLockMappedWriteGuard::new(this.held.erase(), data)),
            None => Err(this),
        }
    }

    /// A reader's guard for a part of the value: other readers come in, writers do not in between.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{RwLock, RwLockWriteGuard};
    /// let lock = RwLock::new((1, 2));
    /// let part = RwLockWriteGuard::downgrade_map(lock.blocking_write(), |pair| &pair.1);
    /// assert_eq!(*part, 2);
    /// ```
    pub fn downgrade_map<U, F>(this: Self, f: F) -> RwLockReadGuard<'a, U>
    where
        U: ?Sized,
        F: FnOnce(&T) -> &U,
    {
        let data = NonNull::from(f(&this));
        RwLockReadGuard::part(this.held.downgrade().erase_one(), data)
    }

    /// As [`downgrade_map`](Self::downgrade_map), if there is such a part.
    ///
    /// # Errors
    /// This guard, if `f` returns `None`.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{RwLock, RwLockWriteGuard};
    /// let lock = RwLock::new((1, 2));
    /// let guard = RwLockWriteGuard::try_downgrade_map(lock.blocking_write(), |_| None::<&u32>).unwrap_err();
    /// assert_eq!(*guard, (1, 2));
    /// ```
    pub fn try_downgrade_map<U, F>(this: Self, f: F) -> Result<RwLockReadGuard<'a, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&T) -> Option<&U>,
    {
        match f(&this).map(NonNull::from) {
            Some(data) => Ok(RwLockReadGuard::part(this.held.downgrade().erase_one(), data)),
            None => Err(this),
        }
    }

    /// A guard for the whole value, of the type that [`map`](Self::map) returns.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{RwLock, RwLockWriteGuard};
    /// let lock = RwLock::new((1, 2));
    /// let guard = RwLockWriteGuard::into_mapped(lock.blocking_write());
    /// assert_eq!(*guard, (1, 2));
    /// ```
    pub fn into_mapped(this: Self) -> RwLockMappedWriteGuard<'a, T> {
        let data = this.held.lock().data_ptr();
        RwLockMappedWriteGuard::new(this.held.erase(), data)
    }

    /// Becomes a reader, without a writer in between.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::RwLock;
    /// let lock = RwLock::new((1, 2));
    /// let mut writer = lock.blocking_write();
    /// writer.0 = 3;
    /// let reader = writer.downgrade();
    /// assert_eq!(*reader, *lock.blocking_read());
    /// ```
    pub fn downgrade(self) -> RwLockReadGuard<'a, T> {
        let data = self.held.lock().data_ptr();
        RwLockReadGuard::part(self.held.downgrade().erase_one(), data)
    }
}

// As `&mut T`: `&self` gives access to nothing but the value.
impl<T: ?Sized + RefUnwindSafe> RefUnwindSafe for RwLockWriteGuard<'_, T> {}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the writer's permits exclude all others, and `&self` excludes `deref_mut`.
        unsafe { &*self.held.lock().data.get() }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the writer's permits exclude all others, and the guard is borrowed mutably.
        unsafe { &mut *self.held.lock().data.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
