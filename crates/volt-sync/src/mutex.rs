//! The asynchronous mutex; its protocol is in `permits.rs`.

use std::fmt;
use std::sync::Arc;

use crate::TryLockError;
use crate::block_on::block_on;
use crate::held::{Held, Lock, acquired};
use crate::may_block::assert_may_block;
use crate::permits::Permits;
use crate::primitive::RawCell;

mod guard;
mod mapped;

pub use guard::{MutexGuard, OwnedMutexGuard};
pub use mapped::{MappedMutexGuard, OwnedMappedMutexGuard};

/// Exclusive access to a value, waited for without blocking the thread.
///
/// **Semantics.** [`lock`](Self::lock) waits until nobody else has the value; the guard gives access
/// to it and lets the next one in on drop. The guard may be held across an `.await`. There is no
/// poisoning: a panic while the guard is held unlocks, and the value stays as the panic left it.
///
/// **When to use which.** If the guard never lives across an `.await`, a blocking mutex of std is
/// cheaper under contention.
///
/// **Fairness.** First in, first out among those who wait; while somebody does, newcomers queue
/// behind and [`try_lock`](Self::try_lock) fails. Before it queues, `lock` looks again for about a
/// microsecond at most (a task of Volt for less), as long as nobody else waits; a thread whose looks
/// did not pay takes fewer. A task of Volt that has just handed the lock over and wants it again may give
/// others a turn first: it goes to the end of the run queue before it queues, again as long as its
/// thread serves those who wait, 64 times at most, unless that has been in vain before. On other
/// runtimes it queues at once.
///
/// **Cancel safety.** Dropping a waiting future gives up its place in the queue; one that had been
/// handed the lock passes it on.
///
/// **Cost.** One atomic read-modify-write to lock and one to unlock; two more when somebody waits.
/// Nothing allocates: a waiter is part of the future.
///
/// **Memory.** Three words and the value.
///
/// # Examples
/// ```
/// use volt_sync::Mutex;
///
/// static COUNT: Mutex<u32> = Mutex::const_new(0);
///
/// # volt_doctest::run(|| async {
/// let before = *COUNT.lock().await;
/// *COUNT.lock().await += 1;
/// assert_eq!(*COUNT.lock().await, before + 1);
/// # });
/// ```
pub struct Mutex<T: ?Sized> {
    permits: Permits,
    data: RawCell<T>,
}

// SAFETY: the mutex owns the value.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: one permit: only one thread at a time reaches the value, so being sent suffices.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T: ?Sized> Lock for Mutex<T> {
    #[inline(always)]
    fn permits(&self) -> &Permits {
        &self.permits
    }

    #[inline(always)]
    fn exclusive(&self) -> usize {
        1
    }
}

impl<T> Mutex<T> {
    crate::const_fn! {
        /// A free mutex around `value`. Allocates nothing.
        ///
        /// # Examples
        /// ```
        /// let mutex = volt_sync::Mutex::new(5);
        /// assert_eq!(mutex.into_inner(), 5);
        /// ```
        pub const fn new(value: T) -> Self {
            Self { permits: Permits::new(1), data: RawCell::new(value) }
        }
    }

    crate::const_fn! {
        /// As [`new`](Self::new), for statics; the two are the same.
        ///
        /// # Examples
        /// ```
        /// static MUTEX: volt_sync::Mutex<u32> = volt_sync::Mutex::const_new(5);
        /// assert_eq!(*MUTEX.blocking_lock(), 5);
        /// ```
        pub const fn const_new(value: T) -> Self {
            Self::new(value)
        }
    }

    /// Returns the value.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(volt_sync::Mutex::new(5).into_inner(), 5);
    /// ```
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until nobody has the value, and gives access to it.
    ///
    /// # Cancel safety
    /// Cancelling gives up the place in the queue, and nothing else.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let mutex = volt_sync::Mutex::new(1);
    /// *mutex.lock().await += 1;
    /// assert_eq!(mutex.into_inner(), 2);
    /// # });
    /// ```
    pub async fn lock(&self) -> MutexGuard<'_, T> {
        if !self.permits.acquire_now(1) {
            acquired(self.permits.acquire(1).await);
        }
        MutexGuard::new(Held::new(self))
    }

    /// As [`lock`](Self::lock), with a guard that owns the mutex.
    ///
    /// # Cancel safety
    /// Cancelling gives up the place in the queue, and nothing else.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let mutex = std::sync::Arc::new(volt_sync::Mutex::new(1));
    /// let mut guard = mutex.clone().lock_owned().await;
    /// std::thread::spawn(move || *guard += 1).join().unwrap();
    /// assert_eq!(*mutex.lock().await, 2);
    /// # });
    /// ```
    pub async fn lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        if !self.permits.acquire_now(1) {
            acquired(self.permits.acquire(1).await);
        }
        OwnedMutexGuard::new(Held::new(self))
    }

    /// Blocks the thread until nobody has the value. Not for use inside async code.
    ///
    /// # Panics
    /// Where a Volt runtime polls futures: in a task, in the future of `block_on`, and in wakers and hooks that it calls.
    ///
    /// # Examples
    /// ```
    /// let mutex = volt_sync::Mutex::new(1);
    /// *mutex.blocking_lock() += 1;
    /// assert_eq!(mutex.into_inner(), 2);
    /// ```
    #[track_caller]
    pub fn blocking_lock(&self) -> MutexGuard<'_, T> {
        assert_may_block("Mutex::blocking_lock");
        if let Ok(guard) = self.try_lock() {
            return guard;
        }
        block_on(self.lock())
    }

    /// As [`blocking_lock`](Self::blocking_lock), with a guard that owns the mutex.
    ///
    /// # Panics
    /// Where a Volt runtime polls futures: in a task, in the future of `block_on`, and in wakers and hooks that it calls.
    ///
    /// # Examples
    /// ```
    /// let mutex = std::sync::Arc::new(volt_sync::Mutex::new(1));
    /// *mutex.clone().blocking_lock_owned() += 1;
    /// assert_eq!(*mutex.blocking_lock(), 2);
    /// ```
    #[track_caller]
    pub fn blocking_lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        assert_may_block("Mutex::blocking_lock_owned");
        block_on(self.lock_owned())
    }

    /// Gives access to the value if nobody has it or waits for it.
    ///
    /// # Errors
    /// If somebody does.
    ///
    /// # Examples
    /// ```
    /// let mutex = volt_sync::Mutex::new(1);
    /// let guard = mutex.try_lock().unwrap();
    /// assert!(mutex.try_lock().is_err());
    /// ```
    #[inline]
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        self.permits.try_acquire_all(1)?;
        Ok(MutexGuard::new(Held::new(self)))
    }

    /// As [`try_lock`](Self::try_lock), with a guard that owns the mutex.
    ///
    /// # Errors
    /// If somebody has the value or waits for it.
    ///
    /// # Examples
    /// ```
    /// let mutex = std::sync::Arc::new(volt_sync::Mutex::new(1));
    /// let guard = mutex.clone().try_lock_owned().unwrap();
    /// assert!(mutex.try_lock_owned().is_err());
    /// ```
    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError> {
        self.permits.try_acquire_all(1)?;
        Ok(OwnedMutexGuard::new(Held::new(self)))
    }

    /// Access without locking: `&mut self` excludes everybody else.
    ///
    /// # Examples
    /// ```
    /// let mut mutex = volt_sync::Mutex::new(1);
    /// *mutex.get_mut() += 1;
    /// assert_eq!(mutex.into_inner(), 2);
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Mutex");
        match self.try_lock() {
            Ok(guard) => debug.field("data", &&*guard),
            Err(_) => debug.field("data", &format_args!("<locked>")),
        };
        debug.finish()
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
