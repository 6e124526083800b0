//! Guards of a part of a mutex's value.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use super::Mutex;
use crate::held::{Exclusive, Held, One};

/// Access to a part of the value of a locked [`Mutex`]; unlocks on drop.
///
/// Made by [`MutexGuard::map`](crate::MutexGuard::map).
///
/// # Examples
/// ```
/// use volt_sync::{MappedMutexGuard, Mutex, MutexGuard};
/// let mutex = Mutex::new((1, 2));
/// let second: MappedMutexGuard<'_, u32> =
///     MutexGuard::map(mutex.blocking_lock(), |pair| &mut pair.1);
/// assert_eq!(*second, 2);
/// ```
#[must_use = "if unused the mutex unlocks at once"]
#[clippy::has_significant_drop]
pub struct MappedMutexGuard<'a, T: ?Sized> {
    data: NonNull<T>,
    held: One<'a>,
    _value: PhantomData<&'a mut T>,
}

// SAFETY: as a unique reference to the data, which the permit makes it.
unsafe impl<T: ?Sized + Send> Send for MappedMutexGuard<'_, T> {}
// SAFETY: as a unique reference to the data.
unsafe impl<T: ?Sized + Sync> Sync for MappedMutexGuard<'_, T> {}

impl<'a, T: ?Sized> MappedMutexGuard<'a, T> {
    /// `data` is part of the value that the permit protects.
    pub(super) const fn new(held: One<'a>, data: NonNull<T>) -> Self {
        Self { data, held, _value: PhantomData }
    }

    /// A guard for a part of the part.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{MappedMutexGuard, Mutex, MutexGuard};
    /// let mutex = Mutex::new((1, (2, 3)));
    /// let pair = MutexGuard::map(mutex.blocking_lock(), |outer| &mut outer.1);
    /// let three = MappedMutexGuard::map(pair, |pair| &mut pair.1);
    /// assert_eq!(*three, 3);
    /// ```
    pub fn map<U, F>(mut this: Self, f: F) -> MappedMutexGuard<'a, U>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> &mut U,
    {
        let data = NonNull::from(f(&mut this));
        MappedMutexGuard::new(this.held, data)
    }

    /// A guard for a part of the part, if there is one.
    ///
    /// # Errors
    /// This guard, if `f` returns `None`.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{MappedMutexGuard, Mutex, MutexGuard};
    /// let mutex = Mutex::new((1, vec![2]));
    /// let vec = MutexGuard::map(mutex.blocking_lock(), |pair| &mut pair.1);
    /// assert!(MappedMutexGuard::try_map(vec, |vec| vec.get_mut(1)).is_err());
    /// ```
    pub fn try_map<U, F>(mut this: Self, f: F) -> Result<MappedMutexGuard<'a, U>, Self>
    where
        U: ?Sized,
        F: FnOnce(&mut T) -> Option<&mut U>,
    {
        match f(&mut this).map(NonNull::from) {
            Some(data) => Ok(MappedMutexGuard::new(this.held, data)),
            None => Err(this),
        }
    }
}

/// As [`MappedMutexGuard`], but owns its mutex.
///
/// Made by [`OwnedMutexGuard::map`](crate::OwnedMutexGuard::map).
///
/// # Examples
/// ```
/// use volt_sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};
/// let mutex = std::sync::Arc::new(Mutex::new((1, 2)));
/// let second: OwnedMappedMutexGuard<(i32, i32), i32> =
///     OwnedMutexGuard::map(mutex.blocking_lock_owned(), |pair| &mut pair.1);
/// assert_eq!(*second, 2);
/// ```
#[must_use = "if unused the mutex unlocks at once"]
#[clippy::has_significant_drop]
pub struct OwnedMappedMutexGuard<T: ?Sized, U: ?Sized = T> {
    data: NonNull<U>,
    held: Held<Arc<Mutex<T>>, Exclusive>,
    _value: PhantomData<(*mut T, *mut U)>,
}

// SAFETY: owns the mutex, hence the value, and a unique reference to the data.
unsafe impl<T: ?Sized + Send, U: ?Sized + Send> Send for OwnedMappedMutexGuard<T, U> {}
// SAFETY: `&self` gives access to the data, and to nothing else.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync for OwnedMappedMutexGuard<T, U> {}

impl<T: ?Sized, U: ?Sized> OwnedMappedMutexGuard<T, U> {
    /// `data` is part of the value of the mutex.
    pub(super) const fn new(held: Held<Arc<Mutex<T>>, Exclusive>, data: NonNull<U>) -> Self {
        Self { data, held, _value: PhantomData }
    }

    /// As [`MappedMutexGuard::map`].
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};
    /// let mutex = std::sync::Arc::new(Mutex::new((1, (2, 3))));
    /// let pair = OwnedMutexGuard::map(mutex.blocking_lock_owned(), |outer| &mut outer.1);
    /// let three = OwnedMappedMutexGuard::map(pair, |pair| &mut pair.1);
    /// assert_eq!(*three, 3);
    /// ```
    pub fn map<S, F>(mut this: Self, f: F) -> OwnedMappedMutexGuard<T, S>
    where
        S: ?Sized,
        F: FnOnce(&mut U) -> &mut S,
    {
        let data = NonNull::from(f(&mut this));
        OwnedMappedMutexGuard::new(this.held, data)
    }

    /// As [`MappedMutexGuard::try_map`].
    ///
    /// # Errors
    /// This guard, if `f` returns `None`.
    ///
    /// # Examples
    /// ```
    /// use volt_sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};
    /// let mutex = std::sync::Arc::new(Mutex::new((1, vec![2])));
    /// let vec = OwnedMutexGuard::map(mutex.blocking_lock_owned(), |pair| &mut pair.1);
    /// assert!(OwnedMappedMutexGuard::try_map(vec, |vec| vec.get_mut(1)).is_err());
    /// ```
    pub fn try_map<S, F>(mut this: Self, f: F) -> Result<OwnedMappedMutexGuard<T, S>, Self>
    where
        S: ?Sized,
        F: FnOnce(&mut U) -> Option<&mut S>,
    {
        match f(&mut this).map(NonNull::from) {
            Some(data) => Ok(OwnedMappedMutexGuard::new(this.held, data)),
            None => Err(this),
        }
    }
}

impl<T: ?Sized> Deref for MappedMutexGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: part of the value that the permit protects; `&self` excludes `deref_mut`.
        unsafe { self.data.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for MappedMutexGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: part of the value that the permit protects, and borrowed mutably.
        unsafe { self.data.as_mut() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MappedMutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MappedMutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized, U: ?Sized> Deref for OwnedMappedMutexGuard<T, U> {
    type Target = U;

    #[inline(always)]
    fn deref(&self) -> &U {
        // SAFETY: part of the value that the permit protects; `&self` excludes `deref_mut`.
        unsafe { self.data.as_ref() }
    }
}

impl<T: ?Sized, U: ?Sized> DerefMut for OwnedMappedMutexGuard<T, U> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut U {
        // SAFETY: part of the value that the permit protects, and borrowed mutably.
        unsafe { self.data.as_mut() }
    }
}

impl<T: ?Sized, U: ?Sized + fmt::Debug> fmt::Debug for OwnedMappedMutexGuard<T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized, U: ?Sized + fmt::Display> fmt::Display for OwnedMappedMutexGuard<T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
