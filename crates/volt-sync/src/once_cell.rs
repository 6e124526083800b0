//! A value that is made once, by an async function.
//!
//! Those who want to make it wait for the one permit of `once.rs`, and learn from the same queue that
//! they need it no more.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::mem::forget;

use crate::held::One;
use crate::once::{self, Once};
use crate::permits::Refused;

/// A cell that is filled once, by whoever comes first, and read by all.
///
/// **Semantics.** [`get_or_init`](Self::get_or_init) runs the function of one caller; the others
/// wait for it. If it panics or is cancelled, or [`get_or_try_init`](Self::get_or_try_init)'s fails,
/// the next in line runs its own.
///
/// **When to use which.** For a value that those who need it make, by an async function. If it is made
/// by somebody else, [`SetOnce`](crate::SetOnce) waits for it; if making it awaits nothing, std's
/// `OnceLock` does.
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
/// # volt_doctest::run(|| async {
/// assert_eq!(*config().await, 5);
/// assert_eq!(CONFIG.get(), Some(&5));
/// # });
/// ```
pub struct OnceCell<T> {
    once: Once<T>,
}

once::common!(OnceCell);

impl<T> OnceCell<T> {
    /// The value, if it is there.
    ///
    /// # Examples
    /// ```
    /// let mut cell = volt_sync::OnceCell::new_with(Some(5));
    /// *cell.get_mut().unwrap() += 1;
    /// assert_eq!(cell.into_inner(), Some(6));
    /// ```
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.once.get_mut()
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
        match self.once.permits().try_acquire_all(1) {
            Ok(()) => {
                self.fill(One::new(self.once.permits()), value);
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
    /// # volt_doctest::run(|| async {
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
    /// # volt_doctest::run(|| async {
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
        if !self.initialized() && self.once.permits().acquire(1).await.is_ok() {
            // Given back if `f` fails, panics or is cancelled.
            let permit = One::new(self.once.permits());
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
        // It stays taken.
        forget(permit);
        // SAFETY: the permit was the one of this cell, and was not given back.
        unsafe { self.once.fill(value) };
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
