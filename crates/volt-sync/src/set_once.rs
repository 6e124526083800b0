//! A value that is set once and waited for; the protocol is in `permits.rs`.
//!
//! State: whoever takes the one permit, past the queue, sets the value; the permits are closed once
//! it is there ([PM4] carries it). Those who wait for the value wait for that.

use std::error::Error;
use std::fmt;
use std::mem::MaybeUninit;

use crate::permits::Permits;
use crate::primitive::RawCell;

/// A value that somebody sets once, and others wait for.
///
/// **Semantics.** The first [`set`](Self::set) wins; [`wait`](Self::wait) is ready once the value is
/// there. If the value is made by those who need it, use [`OnceCell`](crate::OnceCell).
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
/// let setter = std::thread::spawn(|| READY.set(5));
/// assert_eq!(*futures::executor::block_on(READY.wait()), 5);
/// setter.join().unwrap().unwrap();
/// ```
pub struct SetOnce<T> {
    permits: Permits,
    /// Initialised if and only if the permits are closed.
    value: RawCell<MaybeUninit<T>>,
}

// SAFETY: the cell owns the value.
unsafe impl<T: Send> Send for SetOnce<T> {}
// SAFETY: the value is shared once it is there, and may come from another thread than it goes to.
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}

impl<T> SetOnce<T> {
    crate::const_fn! {
        /// An empty cell. Allocates nothing.
        ///
        /// # Examples
        /// ```
        /// assert_eq!(volt_sync::SetOnce::<u32>::new().get(), None);
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
        /// static CELL: volt_sync::SetOnce<u32> = volt_sync::SetOnce::const_new();
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
        /// static CELL: volt_sync::SetOnce<u32> = volt_sync::SetOnce::const_new_with(5);
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
    /// assert_eq!(volt_sync::SetOnce::new_with(Some(5)).get(), Some(&5));
    /// ```
    pub fn new_with(value: Option<T>) -> Self {
        value.map_or_else(Self::new, Self::const_new_with)
    }

    /// True if the value is there.
    ///
    /// # Examples
    /// ```
    /// let cell = volt_sync::SetOnce::new();
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
    /// let cell = volt_sync::SetOnce::new_with(Some(5));
    /// assert_eq!(cell.get(), Some(&5));
    /// ```
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.initialized().then(|| {
            // SAFETY: the value was written before the permits were closed, and nobody changes it.
            unsafe { &*self.value.get().cast::<T>() }
        })
    }

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
        if !self.permits.claim() {
            return Err(SetOnceError(value));
        }
        // SAFETY: the permit makes the cell ours until it is closed, which happens once.
        unsafe { self.value.get().cast::<T>().write(value) };
        self.permits.close();
        Ok(())
    }

    /// Waits for the value.
    ///
    /// # Cancel safety
    /// Cancelling has no effect on others.
    ///
    /// # Examples
    /// ```
    /// # futures::executor::block_on(async {
    /// let cell = volt_sync::SetOnce::new();
    /// let (value, ()) = futures::join!(cell.wait(), async { cell.set(5).unwrap() });
    /// assert_eq!(*value, 5);
    /// # });
    /// ```
    pub async fn wait(&self) -> &T {
        if !self.initialized() {
            let closed = self.permits.closed().await;
            debug_assert!(closed.is_err(), "there is one permit");
        }
        match self.get() {
            Some(value) => value,
            None => unreachable!("closed, so the value is there"),
        }
    }

    /// The value, if it is there.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(volt_sync::SetOnce::new_with(Some(5)).into_inner(), Some(5));
    /// ```
    pub fn into_inner(mut self) -> Option<T> {
        self.initialized().then(|| {
            self.permits = Permits::new(1);
            // SAFETY: it was closed, so the value is there; with open permits nobody reads it again.
            unsafe { self.value.get_mut().assume_init_read() }
        })
    }
}

impl<T> Drop for SetOnce<T> {
    fn drop(&mut self) {
        if self.initialized() {
            // SAFETY: closed, so the value is there, and nobody reads it again.
            unsafe { self.value.get_mut().assume_init_drop() };
        }
    }
}

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for SetOnce<T> {
    fn from(value: T) -> Self {
        Self::const_new_with(value)
    }
}

impl<T: Clone> Clone for SetOnce<T> {
    fn clone(&self) -> Self {
        Self::new_with(self.get().cloned())
    }
}

impl<T: PartialEq> PartialEq for SetOnce<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for SetOnce<T> {}

impl<T: fmt::Debug> fmt::Debug for SetOnce<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetOnce").field("value", &self.get()).finish()
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
