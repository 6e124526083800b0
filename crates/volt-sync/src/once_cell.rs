//! A value that is made once, by an async function; the protocol is in `permits.rs`.
//!
//! State: whoever has the one permit makes the value; the permits are closed once it is there. So
//! "is it there" is one load ([PM4] carries the value), and those who wait for the permit learn from
//! the same queue that they need it no more.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::mem::{MaybeUninit, forget};

use crate::held::One;
use crate::permits::{Permits, Refused};
use crate::primitive::RawCell;

/// A cell that is filled once, by whoever comes first, and read by all.
///
/// **Semantics.** [`get_or_init`](Self::get_or_init) runs the function of one caller; the others
/// wait for it. If it panics or is cancelled, or [`get_or_try_init`](Self::get_or_try_init)'s fails,
/// the next in line runs its own.
///
/// **Fairness.** First in, first out among those who wait to initialise.
///
/// **Cancel safety.** Dropping a waiting future gives up its place; dropping the one that runs its
/// function drops the function's future and lets the next one try.
///
/// **Cost.** Reading is one load. Filling is two atomic read-modify-writes. Nothing allocates.
///
/// **Memory.** Three words and the value.
///
/// # Examples
/// ```
/// use volt_sync::OnceCell;
///
/// static CONFIG: OnceCell<u32> = OnceCell::const_new();
///
/// async fn config() -> &'static u32 {
///     CONFIG.get_or_init(|| async { 5 }).await
/// }
///
/// assert_eq!(*futures::executor::block_on(config()), 5);
/// assert_eq!(CONFIG.get(), Some(&5));
/// ```
pub struct OnceCell<T> {
    permits: Permits,
    /// Initialised if and only if the permits are closed.
    value: RawCell<MaybeUninit<T>>,
}

// SAFETY: the cell owns the value.
unsafe impl<T: Send> Send for OnceCell<T> {}
// SAFETY: the value is shared once it is there, and may come from another thread than it goes to.
unsafe impl<T: Send + Sync> Sync for OnceCell<T> {}

impl<T> OnceCell<T> {
    crate::const_fn! {
        /// An empty cell. Allocates nothing.
        ///
        /// # Examples
        /// ```
        /// assert_eq!(volt_sync::OnceCell::<u32>::new().get(), None);
        /// ```
        pub const fn new() -> Self {
            Self { permits: Permits::new(1), value: RawCell::new(MaybeUninit::uninit()) }
        }
    }

    crate::const_fn! {
        /// As [`new`](Self::new), for statics; the two are the same.
        ///
        /// # Examples
        /// ```
        /// static CELL: volt_sync::OnceCell<u32> = volt_sync::OnceCell::const_new();
        /// assert!(!CELL.initialized());
        /// ```
        pub const fn const_new() -> Self {
            Self::new()
        }
    }

    crate::const_fn! {
        /// A full cell, for statics.
        ///
        /// # Examples
        /// ```
        /// static CELL: volt_sync::OnceCell<u32> = volt_sync::OnceCell::const_new_with(5);
        /// assert_eq!(CELL.get(), Some(&5));
        /// ```
        pub const fn const_new_with(value: T) -> Self {
            Self { permits: Permits::new_closed(), value: RawCell::new(MaybeUninit::new(value)) }
        }
    }

    /// A full cell, or an empty one for `None`.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(volt_sync::OnceCell::new_with(Some(5)).get(), Some(&5));
    /// ```
    pub fn new_with(value: Option<T>) -> Self {
        value.map_or_else(Self::new, Self::const_new_with)
    }

    /// True if the value is there.
    ///
    /// # Examples
    /// ```
    /// let cell = volt_sync::OnceCell::new();
    /// cell.set(5).unwrap();
    /// assert!(cell.initialized());
    /// ```
    #[inline]
    pub fn initialized(&self) -> bool {
        self.permits.is_closed()
    }

    /// The value, if it is there.
    ///
    /// # Examples
    /// ```
    /// let cell = volt_sync::OnceCell::new_with(Some(5));
    /// assert_eq!(cell.get(), Some(&5));
    /// ```
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.initialized().then(|| {
            // SAFETY: the value was written before the permits were closed, and only `&mut self`
            // changes it afterwards.
            unsafe { &*self.value.get().cast::<T>() }
        })
    }

    /// The value, if it is there.
    ///
    /// # Examples
    /// ```
    /// let mut cell = volt_sync::OnceCell::new_with(Some(5));
    /// *cell.get_mut().unwrap() += 1;
    /// assert_eq!(cell.into_inner(), Some(6));
    /// ```
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.initialized().then(|| {
            // SAFETY: closed, so the value is there.
            unsafe { self.value.get_mut().assume_init_mut() }
        })
    }

    /// Fills the cell.
    ///
    /// # Errors
    /// Returns the value if the cell is full, or somebody is about to fill it.
    ///
    /// # Examples
    /// ```
    /// let cell = volt_sync::OnceCell::new();
    /// assert!(cell.set(5).is_ok());
    /// assert!(cell.set(6).unwrap_err().is_already_init_err());
    /// ```
    #[inline]
    pub fn set(&self, value: T) -> Result<(), SetError<T>> {
        match self.permits.try_acquire(1) {
            Ok(()) => {
                self.fill(One::new(&self.permits), value);
                Ok(())
            }
            Err(Refused::Closed) => Err(SetError::AlreadyInitializedError(value)),
            Err(Refused::TooFew) => Err(SetError::InitializingError(value)),
        }
    }

    /// The value; if it is not there yet, `f` makes it, or that of another caller does.
    ///
    /// `f` must not use this cell: it would wait for itself.
    ///
    /// # Cancel safety
    /// A cancelled call that runs its function drops that, and the next caller runs its own.
    ///
    /// # Examples
    /// ```
    /// # futures::executor::block_on(async {
    /// let cell = volt_sync::OnceCell::new();
    /// assert_eq!(*cell.get_or_init(|| async { 5 }).await, 5);
    /// assert_eq!(*cell.get_or_init(|| async { 6 }).await, 5);
    /// # });
    /// ```
    pub async fn get_or_init<F, Fut>(&self, f: F) -> &T
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        let make = || async { Ok::<T, Infallible>(f().await) };
        match self.get_or_try_init(make).await {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// The value; if it is not there yet, `f` makes it, or that of another caller does.
    ///
    /// `f` must not use this cell: it would wait for itself.
    ///
    /// # Errors
    /// What `f` returns. The cell stays empty, and the next caller runs its own function.
    ///
    /// # Cancel safety
    /// A cancelled call that runs its function drops that, and the next caller runs its own.
    ///
    /// # Examples
    /// ```
    /// # futures::executor::block_on(async {
    /// let cell = volt_sync::OnceCell::new();
    /// assert_eq!(cell.get_or_try_init(|| async { Err("no") }).await, Err("no"));
    /// assert_eq!(cell.get_or_try_init(|| async { Ok::<_, &str>(5) }).await, Ok(&5));
    /// # });
    /// ```
    pub async fn get_or_try_init<E, F, Fut>(&self, f: F) -> Result<&T, E>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        if !self.initialized() && self.permits.acquire(1).await.is_ok() {
            // Given back if `f` fails, panics or is cancelled.
            let permit = One::new(&self.permits);
            let value = f().await?;
            self.fill(permit, value);
        }
        match self.get() {
            Some(value) => Ok(value),
            None => unreachable!("closed, so the value is there"),
        }
    }

    /// Stores the value and lets everybody see it.
    #[inline]
    fn fill(&self, permit: One<'_>, value: T) {
        // SAFETY: the permit makes the cell ours until it is closed, which happens once.
        unsafe { self.value.get().cast::<T>().write(value) };
        // It stays taken.
        forget(permit);
        self.permits.close();
    }

    /// Takes the value out, and leaves the cell empty.
    ///
    /// # Examples
    /// ```
    /// let mut cell = volt_sync::OnceCell::new_with(Some(5));
    /// assert_eq!(cell.take(), Some(5));
    /// assert_eq!(cell.take(), None);
    /// ```
    pub fn take(&mut self) -> Option<T> {
        std::mem::take(self).into_inner()
    }

    /// The value, if it is there.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(volt_sync::OnceCell::new_with(Some(5)).into_inner(), Some(5));
    /// ```
    pub fn into_inner(mut self) -> Option<T> {
        self.initialized().then(|| {
            self.permits = Permits::new(1);
            // SAFETY: it was closed, so the value is there; with open permits nobody reads it again.
            unsafe { self.value.get_mut().assume_init_read() }
        })
    }
}

impl<T> Drop for OnceCell<T> {
    fn drop(&mut self) {
        if self.initialized() {
            // SAFETY: closed, so the value is there, and nobody reads it again.
            unsafe { self.value.get_mut().assume_init_drop() };
        }
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for OnceCell<T> {
    fn from(value: T) -> Self {
        Self::const_new_with(value)
    }
}

impl<T: Clone> Clone for OnceCell<T> {
    fn clone(&self) -> Self {
        Self::new_with(self.get().cloned())
    }
}

impl<T: PartialEq> PartialEq for OnceCell<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceCell<T> {}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceCell").field("value", &self.get()).finish()
    }
}

/// Why [`OnceCell::set`] did not, with the value.
///
/// # Examples
/// ```
/// use volt_sync::{OnceCell, SetError};
/// let cell = OnceCell::new_with(Some(5));
/// assert_eq!(cell.set(6), Err(SetError::AlreadyInitializedError(6)));
/// ```
#[derive(Debug, PartialEq, Eq)]
pub enum SetError<T> {
    /// The cell is full.
    AlreadyInitializedError(T),
    /// Somebody is about to fill it.
    InitializingError(T),
}

impl<T> SetError<T> {
    /// True if the cell was full.
    ///
    /// # Examples
    /// ```
    /// assert!(volt_sync::SetError::AlreadyInitializedError(1).is_already_init_err());
    /// ```
    pub const fn is_already_init_err(&self) -> bool {
        matches!(self, Self::AlreadyInitializedError(_))
    }

    /// True if somebody was about to fill the cell.
    ///
    /// # Examples
    /// ```
    /// assert!(volt_sync::SetError::InitializingError(1).is_initializing_err());
    /// ```
    pub const fn is_initializing_err(&self) -> bool {
        matches!(self, Self::InitializingError(_))
    }
}

impl<T> fmt::Display for SetError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AlreadyInitializedError(_) => "AlreadyInitializedError",
            Self::InitializingError(_) => "InitializingError",
        })
    }
}

impl<T: fmt::Debug> Error for SetError<T> {}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
