//! Guards of a whole mutex.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use super::{MappedMutexGuard, Mutex, OwnedMappedMutexGuard};
use crate::held::{Exclusive, Held};

/// Access to the value of a locked [`Mutex`]; unlocks on drop.
///
/// # Examples
/// ```
/// let mutex = volt_sync::Mutex::new(1);
/// let mut guard = mutex.blocking_lock();
/// *guard += 1;
/// drop(guard);
/// assert_eq!(*mutex.blocking_lock(), 2);
/// ```
#[must_use = "if unused the mutex unlocks at once"]
#[clippy::has_significant_drop]
pub struct MutexGuard<'a, T: ?Sized> {
    held: Held<&'a Mutex<T>, Exclusive>,
    /// `Send` and `Sync` as a unique reference to the value is.
    _value: PhantomData<&'a mut T>,
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    #[inline(always)]
    pub(super) const fn new(held: Held<&'a Mutex<T>, Exclusive>) -> Self {
        Self { held, _value: PhantomData }
    }

    /// A guard for a part of the value. The mutex stays locked until it is dropped.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{Mutex, MutexGuard};
    /// let mutex = Mutex::new((1, "one"));
    /// let mut number = MutexGuard::map(mutex.blocking_lock(), |pair| &mut pair.0);
    /// *number = 2;
    /// ```
    pub fn map<U, F>(mut this: Self, f: F) -> MappedMutexGuard<'a, U>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> &mut U,
    {
        let data = NonNull::from(f(&mut this));
        MappedMutexGuard::new(this.held.erase_one(), data)
    }

    /// A guard for a part of the value, if there is one.
    ///
    /// # Errors
    /// This guard, if `f` returns `None`.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{Mutex, MutexGuard};
    /// let mutex = Mutex::new(vec![1, 2]);
    /// let guard = MutexGuard::try_map(mutex.blocking_lock(), |vec| vec.get_mut(7)).unwrap_err();
    /// let second = MutexGuard::try_map(guard, |vec| vec.get_mut(1)).unwrap();
    /// assert_eq!(*second, 2);
    /// ```
    pub fn try_map<U, F>(mut this: Self, f: F) -> Result<MappedMutexGuard<'a, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut this).map(NonNull::from) {
            Some(data) => Ok(MappedMutexGuard::new(this.held.erase_one(), data)),
            None => Err(this),
        }
    }

    /// The mutex that this guard locks.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{Mutex, MutexGuard};
    /// let mutex = Mutex::new(1);
    /// let guard = mutex.blocking_lock();
    /// assert!(std::ptr::eq(MutexGuard::mutex(&guard), &mutex));
    /// ```
    pub fn mutex(this: &Self) -> &'a Mutex<T> {
        this.held.lock()
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the only permit, and `&self` excludes `deref_mut`.
        unsafe { &*self.held.lock().data.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the only permit, and is borrowed mutably.
        unsafe { &mut *self.held.lock().data.get() }
    }
}

/// As [`MutexGuard`], but owns its mutex, so that it can outlive the scope it came from.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// let mutex = Arc::new(volt_sync::Mutex::new(1));
/// let mut guard = mutex.clone().try_lock_owned().unwrap();
/// std::thread::spawn(move || *guard += 1).join().unwrap();
/// assert_eq!(*mutex.blocking_lock(), 2);
/// ```
#[must_use = "if unused the mutex unlocks at once"]
#[clippy::has_significant_drop]
pub struct OwnedMutexGuard<T: ?Sized> {
    held: Held<Arc<Mutex<T>>, Exclusive>,
    /// `Send` and `Sync` as the value is.
    _value: PhantomData<T>,
}

impl<T: ?Sized> OwnedMutexGuard<T> {
    #[inline(always)]
    pub(super) const fn new(held: Held<Arc<Mutex<T>>, Exclusive>) -> Self {
        Self { held, _value: PhantomData }
    }

    /// As [`MutexGuard::map`].
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{Mutex, OwnedMutexGuard};
    /// let mutex = std::sync::Arc::new(Mutex::new((1, "one")));
    /// let number = OwnedMutexGuard::map(mutex.blocking_lock_owned(), |pair| &mut pair.0);
    /// assert_eq!(*number, 1);
    /// ```
    pub fn map<U, F>(mut this: Self, f: F) -> OwnedMappedMutexGuard<T, U>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> &mut U,
    {
        let data = NonNull::from(f(&mut this));
        OwnedMappedMutexGuard::new(this.held, data)
    }

    /// As [`MutexGuard::try_map`].
    ///
    /// # Errors
    /// This guard, if `f` returns `None`.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{Mutex, OwnedMutexGuard};
    /// let mutex = std::sync::Arc::new(Mutex::new(vec![1, 2]));
    /// let second = OwnedMutexGuard::try_map(mutex.blocking_lock_owned(), |vec| vec.get_mut(1));
    /// assert_eq!(*second.unwrap(), 2);
    /// ```
    pub fn try_map<U, F>(mut this: Self, f: F) -> Result<OwnedMappedMutexGuard<T, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut this).map(NonNull::from) {
            Some(data) => Ok(OwnedMappedMutexGuard::new(this.held, data)),
            None => Err(this),
        }
    }

    /// The mutex that this guard locks.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use volt_sync::{Mutex, OwnedMutexGuard};
    /// let mutex = Arc::new(Mutex::new(1));
    /// let guard = mutex.clone().blocking_lock_owned();
    /// assert!(Arc::ptr_eq(OwnedMutexGuard::mutex(&guard), &mutex));
    /// ```
    pub fn mutex(this: &Self) -> &Arc<Mutex<T>> {
        this.held.lock()
    }
}

impl<T: ?Sized> Deref for OwnedMutexGuard<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the only permit, and `&self` excludes `deref_mut`.
        unsafe { &*self.held.lock().data.get() }
    }
}

impl<T: ?Sized> DerefMut for OwnedMutexGuard<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the only permit, and is borrowed mutably.
        unsafe { &mut *self.held.lock().data.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for OwnedMutexGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for OwnedMutexGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
