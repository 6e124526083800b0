//! A value that is set once and waited for.
//!
//! Whoever takes the one permit of `once.rs`, past the queue, sets the value. Those who wait for it
//! wait in that queue for the close.

use std::error::Error;
use std::fmt;

use crate::once::{self, Once};

/// A value that somebody sets once, and others wait for.
///
/// **Semantics.** The first [`set`](Self::set) wins; [`wait`](Self::wait) is ready once the value is
/// there.
///
/// **When to use which.** For a value that comes once, from elsewhere, and stays. If it is made by
/// those who need it, use [`OnceCell`](crate::OnceCell); if it changes, [`watch`](crate::watch); for
/// one receiver that takes it, [`oneshot`](crate::oneshot).
///
/// **Fairness.** All who wait are woken in the order in which they came.
///
/// **Cancel safety.** Dropping a waiting future has no effect on others.
///
/// **Cost.** Reading is one load; setting two atomic read-modify-writes. Nothing allocates.
///
/// **Memory.** Three words and the value.
///
/// # Examples
/// ```
/// use volt_sync::SetOnce;
///
/// static READY: SetOnce<u32> = SetOnce::const_new();
///
/// # volt_doctest::run(|| async {
/// std::thread::spawn(|| READY.set(5));
/// assert_eq!(*READY.wait().await, 5);
/// # });
/// ```
pub struct SetOnce<T> {
    once: Once<T>,
}

once::common!(SetOnce);

impl<T> SetOnce<T> {
    /// Sets the value and wakes all who wait.
    ///
    /// # Errors
    /// Returns the value if there is one already, or another `set` is under way.
    ///
    /// # Examples
    /// ```
    /// let cell = volt_sync::SetOnce::new();
    /// assert_eq!(cell.set(5), Ok(()));
    /// assert_eq!(cell.set(6).unwrap_err().0, 6);
    /// ```
    pub fn set(&self, value: T) -> Result<(), SetOnceError<T>> {
        if !self.once.permits().claim() {
            return Err(SetOnceError(value));
        }
        // SAFETY: the permit was taken above, and is not given back.
        unsafe { self.once.fill(value) };
        Ok(())
    }

    /// Waits for the value.
    ///
    /// # Cancel safety
    /// Cancelling has no effect on others.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let cell = volt_sync::SetOnce::new();
    /// let (value, ()) = futures::join!(cell.wait(), async { cell.set(5).unwrap() });
    /// assert_eq!(*value, 5);
    /// # });
    /// ```
    pub async fn wait(&self) -> &T {
        if !self.initialized() {
            let closed = self.once.permits().closed().await;
            debug_assert!(closed.is_err(), "there is one permit");
        }
        match self.get() {
            Some(value) => value,
            None => unreachable!("closed, so the value is there"),
        }
    }
}

/// The value that [`SetOnce::set`] did not take.
///
/// # Examples
/// ```
/// let cell = volt_sync::SetOnce::new_with(Some(5));
/// assert_eq!(cell.set(6), Err(volt_sync::SetOnceError(6)));
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct SetOnceError<T>(pub T);

impl<T> fmt::Display for SetOnceError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SetOnceError")
    }
}

impl<T: fmt::Debug> Error for SetOnceError<T> {}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
