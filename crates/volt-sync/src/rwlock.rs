//! The asynchronous readers-writer lock; its protocol is in `permits.rs`.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::TryLockError;
use crate::block_on::block_on;
use crate::held::{Held, Lock, acquired};
use crate::may_block::assert_may_block;
use crate::permits::Permits;
use crate::primitive::RawCell;

mod mapped;
mod owned;
mod read;
mod write;

pub use mapped::{OwnedRwLockMappedWriteGuard, RwLockMappedWriteGuard};
pub use owned::OwnedRwLockWriteGuard;
pub use read::{OwnedRwLockReadGuard, RwLockReadGuard};
pub use write::RwLockWriteGuard;

/// The most readers at a time.
const MAX_READS: u32 = u32::MAX >> 3;

/// Shared or exclusive access to a value, waited for without blocking the thread.
///
/// **Semantics.** Any number of readers (up to a maximum), or one writer. The guards may be held
/// across an `.await`. There is no poisoning, as in [`Mutex`](crate::Mutex). A read guard held while
/// the same task waits for another one deadlocks if a writer queues in between.
///
/// **When to use which.** A reader writes the same word as all others, so short reads on many cores
/// gain nothing over a mutex; long reads, or reads that wait, do.
///
/// **Fairness.** First in, first out among those who wait, readers and writers alike: a reader that
/// comes after a waiting writer waits too, so writers do not starve. Whoever would have to wait looks
/// again first, as in [`Mutex`](crate::Mutex), as long as nobody else waits. A task of Volt that has just handed
/// the lock over and wants it again may first go to the end of the run queue, again as long as its
/// thread serves those who wait, 64 times at most, unless that has been in vain before; on other
/// runtimes it queues at once.
///
/// **Cancel safety.** Dropping a waiting future gives up its place in the queue; one that had been
/// handed the lock passes it on.
///
/// **Cost.** One atomic read-modify-write to lock and one to unlock; two more when somebody waits.
/// Nothing allocates: a waiter is part of the future.
///
/// **Memory.** Four words and the value.
///
/// # Examples
/// ```
/// use volt_sync::RwLock;
///
/// # volt_doctest::run(|| async {
/// let lock = RwLock::new(5);
/// {
///     let (one, two) = (lock.read().await, lock.read().await);
///     assert_eq!(*one + *two, 10);
/// }
/// *lock.write().await += 1;
/// assert_eq!(*lock.read().await, 6);
/// # });
/// ```
pub struct RwLock<T: ?Sized> {
    permits: Permits,
    /// What a writer takes.
    max_readers: u32,
    data: RawCell<T>,
}

// SAFETY: the lock owns the value.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: readers share the value, writers send it.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T: ?Sized> Lock for RwLock<T> {
    #[inline(always)]
    fn permits(&self) -> &Permits {
        &self.permits
    }

    #[inline(always)]
    fn exclusive(&self) -> usize {
        self.max_readers as usize
    }
}

impl<T> RwLock<T> {
    crate::const_fn! {
        /// A free lock around `value`, for up to `u32::MAX >> 3` readers at a time. Allocates
        /// nothing.
        ///
        /// # Examples
        /// ```
        /// let lock = volt_sync::RwLock::new(5);
        /// assert_eq!(*lock.blocking_read(), 5);
        /// ```
        pub const fn new(value: T) -> Self {
            Self::with_max_readers(value, MAX_READS)
        }
    }

    crate::const_fn! {
        /// A free lock around `value`, for up to `max_readers` readers at a time.
        ///
        /// # Panics
        /// If `max_readers` is 0 or more than `u32::MAX >> 3`.
        ///
        /// # Examples
        /// ```
        /// let lock = volt_sync::RwLock::with_max_readers(5, 1);
        /// let reader = lock.blocking_read();
        /// assert!(lock.try_read().is_err());
        /// ```
        #[track_caller]
        pub const fn with_max_readers(value: T, max_readers: u32) -> Self {
            assert!(max_readers > 0, "`max_readers` of an RwLock is at least 1");
            assert!(max_readers <= MAX_READS, "`max_readers` of an RwLock is at most u32::MAX >> 3");
            Self {
                permits: Permits::new(max_readers as usize),
                max_readers,
                data: RawCell::new(value),
            }
        }
    }

    crate::const_fn! {
        /// As [`new`](Self::new), for statics; the two are the same.
        ///
        /// # Examples
        /// ```
        /// static LOCK: volt_sync::RwLock<u32> = volt_sync::RwLock::const_new(5);
        /// assert_eq!(*LOCK.blocking_read(), 5);
        /// ```
        pub const fn const_new(value: T) -> Self {
            Self::new(value)
        }
    }

    crate::const_fn! {
        /// As [`with_max_readers`](Self::with_max_readers), for statics; the two are the same.
        ///
        /// # Panics
        /// If `max_readers` is 0 or more than `u32::MAX >> 3`.
        ///
        /// # Examples
        /// ```
        /// use volt_sync::RwLock;
        /// static LOCK: RwLock<u32> = RwLock::const_with_max_readers(5, 1024);
        /// assert_eq!(*LOCK.blocking_read(), 5);
        /// ```
        #[track_caller]
        pub const fn const_with_max_readers(value: T, max_readers: u32) -> Self {
            Self::with_max_readers(value, max_readers)
        }
    }

    /// Returns the value.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(volt_sync::RwLock::new(5).into_inner(), 5);
    /// ```
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits for shared access to the value.
    ///
    /// # Cancel safety
    /// Cancelling gives up the place in the queue, and nothing else.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let lock = volt_sync::RwLock::new(1);
    /// assert_eq!(*lock.read().await, 1);
    /// # });
    /// ```
    pub async fn read(&self) -> RwLockReadGuard<'_, T> {
        if !self.permits.acquire_now(1) {
            acquired(self.permits.acquire(1).await);
        }
        RwLockReadGuard::new(self)
    }

    /// As [`read`](Self::read), with a guard that owns the lock.
    ///
    /// # Cancel safety
    /// Cancelling gives up the place in the queue, and nothing else.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let lock = std::sync::Arc::new(volt_sync::RwLock::new(1));
    /// assert_eq!(*lock.clone().read_owned().await, 1);
    /// # });
    /// ```
    pub async fn read_owned(self: Arc<Self>) -> OwnedRwLockReadGuard<T> {
        if !self.permits.acquire_now(1) {
            acquired(self.permits.acquire(1).await);
        }
        OwnedRwLockReadGuard::new(self)
    }

    /// Blocks the thread until it has shared access to the value. Not for use inside async code.
    ///
    /// # Panics
    /// Where a Volt runtime polls futures: in a task, in the future of `block_on`, and in wakers and hooks that it calls.
    ///
    /// # Examples
    /// ```
    /// let lock = volt_sync::RwLock::new(1);
    /// assert_eq!(*lock.blocking_read(), 1);
    /// ```
    #[track_caller]
    pub fn blocking_read(&self) -> RwLockReadGuard<'_, T> {
        assert_may_block("RwLock::blocking_read");
        block_on(self.read())
    }

    /// Gives shared access to the value if no writer has the value or waits for it.
    ///
    /// # Errors
    /// If that is not so.
    ///
    /// # Examples
    /// ```
    /// let lock = volt_sync::RwLock::new(1);
    /// let guard = lock.try_read().unwrap();
    /// assert!(lock.try_write().is_err());
    /// ```
    #[inline]
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        self.permits.try_acquire(1)?;
        Ok(RwLockReadGuard::new(self))
    }

    /// As [`try_read`](Self::try_read), with a guard that owns the lock.
    ///
    /// # Errors
    /// If that is not so.
    ///
    /// # Examples
    /// ```
    /// let lock = std::sync::Arc::new(volt_sync::RwLock::new(1));
    /// let guard = lock.clone().try_read_owned().unwrap();
    /// assert!(lock.try_write().is_err());
    /// ```
    pub fn try_read_owned(self: Arc<Self>) -> Result<OwnedRwLockReadGuard<T>, TryLockError> {
        self.permits.try_acquire(1)?;
        Ok(OwnedRwLockReadGuard::new(self))
    }

    /// Waits for exclusive access to the value.
    ///
    /// # Cancel safety
    /// Cancelling gives up the place in the queue, and nothing else.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let lock = volt_sync::RwLock::new(1);
    /// *lock.write().await += 1;
    /// assert_eq!(*lock.read().await, 2);
    /// # });
    /// ```
    pub async fn write(&self) -> RwLockWriteGuard<'_, T> {
        if !self.permits.acquire_now(self.max_readers as usize) {
            acquired(self.permits.acquire(self.max_readers as usize).await);
        }
        RwLockWriteGuard::new(Held::new(self))
    }

    /// As [`write`](Self::write), with a guard that owns the lock.
    ///
    /// # Cancel safety
    /// Cancelling gives up the place in the queue, and nothing else.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let lock = std::sync::Arc::new(volt_sync::RwLock::new(1));
    /// *lock.clone().write_owned().await += 1;
    /// assert_eq!(*lock.read().await, 2);
    /// # });
    /// ```
    pub async fn write_owned(self: Arc<Self>) -> OwnedRwLockWriteGuard<T> {
        if !self.permits.acquire_now(self.max_readers as usize) {
            acquired(self.permits.acquire(self.max_readers as usize).await);
        }
        OwnedRwLockWriteGuard::new(Held::new(self))
    }

    /// Blocks the thread until it has exclusive access to the value. Not for use inside async code.
    ///
    /// # Panics
    /// Where a Volt runtime polls futures: in a task, in the future of `block_on`, and in wakers and hooks that it calls.
    ///
    /// # Examples
    /// ```
    /// let lock = volt_sync::RwLock::new(1);
    /// *lock.blocking_write() += 1;
    /// assert_eq!(lock.into_inner(), 2);
    /// ```
    #[track_caller]
    pub fn blocking_write(&self) -> RwLockWriteGuard<'_, T> {
        assert_may_block("RwLock::blocking_write");
        block_on(self.write())
    }

    /// Gives exclusive access to the value if nobody has the value or waits for it.
    ///
    /// # Errors
    /// If that is not so.
    ///
    /// # Examples
    /// ```
    /// let lock = volt_sync::RwLock::new(1);
    /// let guard = lock.try_write().unwrap();
    /// assert!(lock.try_read().is_err());
    /// ```
    #[inline]
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        self.permits.try_acquire_all(self.max_readers as usize)?;
        Ok(RwLockWriteGuard::new(Held::new(self)))
    }

    /// As [`try_write`](Self::try_write), with a guard that owns the lock.
    ///
    /// # Errors
    /// If that is not so.
    ///
    /// # Examples
    /// ```
    /// let lock = std::sync::Arc::new(volt_sync::RwLock::new(1));
    /// let guard = lock.clone().try_write_owned().unwrap();
    /// assert!(lock.try_read().is_err());
    /// ```
    pub fn try_write_owned(self: Arc<Self>) -> Result<OwnedRwLockWriteGuard<T>, TryLockError> {
        self.permits.try_acquire_all(self.max_readers as usize)?;
        Ok(OwnedRwLockWriteGuard::new(Held::new(self)))
    }

    /// Access without locking: `&mut self` excludes everybody else.
    ///
    /// # Examples
    /// ```
    /// let mut lock = volt_sync::RwLock::new(1);
    /// *lock.get_mut() += 1;
    /// assert_eq!(lock.into_inner(), 2);
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// Where the value is.
    #[inline(always)]
    fn data_ptr(&self) -> NonNull<T> {
        // SAFETY: the address of a field is not null.
        unsafe { NonNull::new_unchecked(self.data.get()) }
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("RwLock");
        match self.try_read() {
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
