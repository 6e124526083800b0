//! The counting semaphore; its protocol is in `permits.rs`.
#![forbid(unsafe_code)]

use std::sync::Arc;

use crate::block_on::block_on;
use crate::may_block::assert_may_block;
use crate::permits::{Closed, Guessed, Permits};
use crate::{AcquireError, TryAcquireError};

mod permit;

pub use permit::{OwnedSemaphorePermit, SemaphorePermit};

/// A number of permits for tasks and threads to take and give back.
///
/// **Semantics.** [`acquire`](Self::acquire) waits until a permit is free and takes it; dropping the
/// [`SemaphorePermit`] gives it back. [`close`](Self::close) refuses everybody from then on.
///
/// **When to use which.** To bound how much is done or held at a time: connections, memory, requests.
/// For one holder and a value take a [`Mutex`](crate::Mutex); to bound what is queued, a bounded
/// channel.
///
/// **Fairness.** First in, first out: permits go to those who wait in the order in which they began
/// to, a waiter for many permits included. While somebody waits, newcomers and `try_acquire` get
/// nothing, so nobody starves. Fair are the waits, not the shares of tasks that do not wait: a permit
/// that is free goes to whoever asks, however many that one had before, and a future that finds none
/// looks again for about a microsecond at most (a task of Volt for less) before it takes its place in
/// the queue. A task of Volt that has just handed permits over and wants some again may first go to the
/// end of the run queue, again as long as its thread serves those who wait, 64 times at most, unless that
/// has been in vain before; on other runtimes it queues at once.
///
/// **Cancel safety.** Dropping a waiting future gives up its place in the queue and passes on
/// permits that it had been granted. Nothing is lost.
///
/// **Cost.** One atomic read-modify-write to acquire and one to release; two more when somebody
/// waits. They begin with a guess of what the semaphore looks like; a wrong one, which other threads cause, costs
/// one more, at most once in 1024 acquisitions of a thread. Nothing allocates: a waiter is part of the future.
///
/// **Memory.** Four words.
///
/// # Examples
/// ```
/// use volt_sync::Semaphore;
///
/// # volt_doctest::run(|| async {
/// let semaphore = Semaphore::new(3);
/// let one = semaphore.acquire().await?;
/// let two = semaphore.acquire_many(2).await?;
/// assert!(semaphore.try_acquire().is_err());
/// drop((one, two));
/// assert_eq!(semaphore.available_permits(), 3);
/// # Ok::<(), volt_sync::AcquireError>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Semaphore {
    permits: Guessed,
}

impl Semaphore {
    /// The most permits that a semaphore can have.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(volt_sync::Semaphore::MAX_PERMITS, usize::MAX >> 3);
    /// ```
    pub const MAX_PERMITS: usize = Permits::MAX;

    crate::const_fn! {
        /// A semaphore with `permits` permits. Allocates nothing.
        ///
        /// # Panics
        /// If that is more than [`MAX_PERMITS`](Self::MAX_PERMITS).
        ///
        /// # Examples
        /// ```
        /// let semaphore = volt_sync::Semaphore::new(2);
        /// assert_eq!(semaphore.available_permits(), 2);
        /// ```
        #[track_caller]
        pub const fn new(permits: usize) -> Self {
            assert!(
                permits <= Self::MAX_PERMITS,
                "a semaphore may not have more than MAX_PERMITS permits (usize::MAX >> 3)"
            );
            Self { permits: Guessed::new(permits) }
        }
    }

    crate::const_fn! {
        /// As [`new`](Self::new), for statics; the two are the same.
        ///
        /// # Panics
        /// If `permits` is more than [`MAX_PERMITS`](Self::MAX_PERMITS).
        ///
        /// # Examples
        /// ```
        /// use volt_sync::Semaphore;
        /// static SEMAPHORE: Semaphore = Semaphore::const_new(2);
        /// assert_eq!(SEMAPHORE.available_permits(), 2);
        /// ```
        #[track_caller]
        pub const fn const_new(permits: usize) -> Self {
            Self::new(permits)
        }
    }

    /// How many permits a newcomer could take now: 0 while somebody waits. Closing does not change it.
    ///
    /// # Examples
    /// ```
    /// let semaphore = volt_sync::Semaphore::new(2);
    /// let _permit = semaphore.try_acquire().unwrap();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// ```
    #[must_use]
    pub fn available_permits(&self) -> usize {
        self.permits.available()
    }

    /// Adds `n` new permits, and gives them to those who wait.
    ///
    /// # Panics
    /// If there would be more than [`MAX_PERMITS`](Self::MAX_PERMITS); the semaphore stays as it was.
    ///
    /// # Examples
    /// ```
    /// let semaphore = volt_sync::Semaphore::new(0);
    /// semaphore.add_permits(3);
    /// assert_eq!(semaphore.available_permits(), 3);
    /// ```
    #[track_caller]
    pub fn add_permits(&self, n: usize) {
        assert!(
            n <= Self::MAX_PERMITS,
            "a semaphore may not have more than MAX_PERMITS permits ({}): {n} more do not fit",
            Self::MAX_PERMITS
        );
        self.permits.release(n);
    }

    /// Removes up to `n` of the permits that nobody has, for good. Returns how many; none while
    /// somebody waits for them.
    ///
    /// # Examples
    /// ```
    /// let semaphore = volt_sync::Semaphore::new(3);
    /// assert_eq!(semaphore.forget_permits(2), 2);
    /// assert_eq!(semaphore.forget_permits(2), 1);
    /// ```
    pub fn forget_permits(&self, n: usize) -> usize {
        self.permits.forget(n)
    }

    /// Waits for a permit.
    ///
    /// # Errors
    /// If the semaphore is [closed](Self::close), also while this waits.
    ///
    /// # Cancel safety
    /// Cancelling gives up the place in the queue, and nothing else.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let semaphore = volt_sync::Semaphore::new(1);
    /// let permit = semaphore.acquire().await.unwrap();
    /// assert_eq!(semaphore.available_permits(), 0);
    /// # });
    /// ```
    #[inline]
    pub async fn acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        if !self.permits.acquire_now(1) {
            self.permits.acquire(1).await?;
            self.refuse_if_closed(1)?;
        }
        Ok(SemaphorePermit::new(self, 1))
    }

    /// Waits for `n` permits, which it gets together.
    ///
    /// # Errors
    /// If the semaphore is [closed](Self::close), also while this waits.
    ///
    /// # Cancel safety
    /// Cancelling gives up the place in the queue, and nothing else.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let semaphore = volt_sync::Semaphore::new(5);
    /// let permits = semaphore.acquire_many(3).await.unwrap();
    /// assert_eq!(semaphore.available_permits(), 2);
    /// # });
    /// ```
    #[inline]
    pub async fn acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        if !self.permits.acquire_now(n as usize) {
            self.permits.acquire(n as usize).await?;
            self.refuse_if_closed(n as usize)?;
        }
        Ok(SemaphorePermit::new(self, n as usize))
    }

    /// Takes a permit if one is free and nobody waits.
    ///
    /// # Errors
    /// [`TryAcquireError::NoPermits`] otherwise, [`TryAcquireError::Closed`] after
    /// [`close`](Self::close).
    ///
    /// # Examples
    /// ```
    /// let semaphore = volt_sync::Semaphore::new(1);
    /// let permit = semaphore.try_acquire().unwrap();
    /// assert!(semaphore.try_acquire().is_err());
    /// ```
    #[inline]
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.permits.try_acquire(1)?;
        Ok(SemaphorePermit::new(self, 1))
    }

    /// Takes `n` permits if they are free and nobody waits.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    ///
    /// # Examples
    /// ```
    /// let semaphore = volt_sync::Semaphore::new(4);
    /// let permits = semaphore.try_acquire_many(3).unwrap();
    /// assert!(semaphore.try_acquire_many(2).is_err());
    /// ```
    #[inline]
    pub fn try_acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.permits.try_acquire(n as usize)?;
        Ok(SemaphorePermit::new(self, n as usize))
    }

    /// As [`acquire`](Self::acquire), with a permit that owns the semaphore.
    ///
    /// # Errors
    /// If the semaphore is [closed](Self::close), also while this waits.
    ///
    /// # Cancel safety
    /// Cancelling gives up the place in the queue, and nothing else.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let semaphore = std::sync::Arc::new(volt_sync::Semaphore::new(1));
    /// let permit = semaphore.clone().acquire_owned().await.unwrap();
    /// std::thread::spawn(move || drop(permit)).join().unwrap();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// # });
    /// ```
    pub async fn acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        if !self.permits.acquire_now(1) {
            self.permits.acquire(1).await?;
            self.refuse_if_closed(1)?;
        }
        Ok(OwnedSemaphorePermit::new(self, 1))
    }

    /// As [`acquire_many`](Self::acquire_many), with a permit that owns the semaphore.
    ///
    /// # Errors
    /// If the semaphore is [closed](Self::close), also while this waits.
    ///
    /// # Cancel safety
    /// Cancelling gives up the place in the queue, and nothing else.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let semaphore = std::sync::Arc::new(volt_sync::Semaphore::new(2));
    /// let permits = semaphore.clone().acquire_many_owned(2).await.unwrap();
    /// assert_eq!(permits.num_permits(), 2);
    /// # });
    /// ```
    pub async fn acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        if !self.permits.acquire_now(n as usize) {
            self.permits.acquire(n as usize).await?;
            self.refuse_if_closed(n as usize)?;
        }
        Ok(OwnedSemaphorePermit::new(self, n as usize))
    }

    /// As [`try_acquire`](Self::try_acquire), with a permit that owns the semaphore.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    ///
    /// # Examples
    /// ```
    /// let semaphore = std::sync::Arc::new(volt_sync::Semaphore::new(1));
    /// let permit = semaphore.clone().try_acquire_owned().unwrap();
    /// assert!(semaphore.try_acquire_owned().is_err());
    /// ```
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.try_acquire_many_owned(1)
    }

    /// As [`try_acquire_many`](Self::try_acquire_many), with a permit that owns the semaphore.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    ///
    /// # Examples
    /// ```
    /// let semaphore = std::sync::Arc::new(volt_sync::Semaphore::new(2));
    /// let permits = semaphore.clone().try_acquire_many_owned(2).unwrap();
    /// assert!(semaphore.try_acquire_owned().is_err());
    /// ```
    pub fn try_acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.permits.try_acquire(n as usize)?;
        Ok(OwnedSemaphorePermit::new(self, n as usize))
    }

    /// Blocks the thread until it has a permit. Not for use inside async code.
    ///
    /// # Errors
    /// If the semaphore is [closed](Self::close), also while this waits.
    ///
    /// # Panics
    /// Where a Volt runtime polls futures: in a task, in the future of `block_on`, and in wakers and hooks that it calls.
    ///
    /// # Examples
    /// ```
    /// let semaphore = volt_sync::Semaphore::new(1);
    /// let permit = semaphore.blocking_acquire().unwrap();
    /// ```
    #[track_caller]
    pub fn blocking_acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        assert_may_block("Semaphore::blocking_acquire");
        self.block_on_permits(1)?;
        Ok(SemaphorePermit::new(self, 1))
    }

    /// Blocks the thread until it has `n` permits; see [`blocking_acquire`](Self::blocking_acquire).
    ///
    /// # Errors
    /// If the semaphore is [closed](Self::close), also while this waits.
    ///
    /// # Panics
    /// Where a Volt runtime polls futures: in a task, in the future of `block_on`, and in wakers and hooks that it calls.
    ///
    /// # Examples
    /// ```
    /// let semaphore = volt_sync::Semaphore::new(2);
    /// let permits = semaphore.blocking_acquire_many(2).unwrap();
    /// ```
    #[track_caller]
    pub fn blocking_acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        assert_may_block("Semaphore::blocking_acquire_many");
        self.block_on_permits(n)?;
        Ok(SemaphorePermit::new(self, n as usize))
    }

    /// As [`blocking_acquire`](Self::blocking_acquire), with a permit that owns the semaphore.
    ///
    /// # Errors
    /// If the semaphore is [closed](Self::close), also while this waits.
    ///
    /// # Panics
    /// Where a Volt runtime polls futures: in a task, in the future of `block_on`, and in wakers and hooks that it calls.
    ///
    /// # Examples
    /// ```
    /// let semaphore = std::sync::Arc::new(volt_sync::Semaphore::new(1));
    /// let permit = semaphore.clone().blocking_acquire_owned().unwrap();
    /// let next = std::thread::spawn(move || semaphore.blocking_acquire_owned().unwrap());
    /// drop(permit);
    /// assert_eq!(next.join().unwrap().num_permits(), 1);
    /// ```
    #[track_caller]
    pub fn blocking_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        assert_may_block("Semaphore::blocking_acquire_owned");
        self.block_on_permits(1)?;
        Ok(OwnedSemaphorePermit::new(self, 1))
    }

    /// As [`blocking_acquire_many`](Self::blocking_acquire_many), with a permit that owns the
    /// semaphore.
    ///
    /// # Errors
    /// If the semaphore is [closed](Self::close), also while this waits.
    ///
    /// # Panics
    /// Where a Volt runtime polls futures: in a task, in the future of `block_on`, and in wakers and hooks that it calls.
    ///
    /// # Examples
    /// ```
    /// let semaphore = std::sync::Arc::new(volt_sync::Semaphore::new(3));
    /// let permits = semaphore.clone().blocking_acquire_many_owned(2).unwrap();
    /// std::thread::spawn(move || drop(permits)).join().unwrap();
    /// assert_eq!(semaphore.available_permits(), 3);
    /// ```
    #[track_caller]
    pub fn blocking_acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        assert_may_block("Semaphore::blocking_acquire_many_owned");
        self.block_on_permits(n)?;
        Ok(OwnedSemaphorePermit::new(self, n as usize))
    }

    fn block_on_permits(&self, n: u32) -> Result<(), AcquireError> {
        block_on(self.permits.acquire(n as usize))?;
        self.refuse_if_closed(n as usize)
    }

    /// The end of a wait that has brought `n` permits: gives them back if the semaphore was closed since.
    #[cold]
    fn refuse_if_closed(&self, n: usize) -> Result<(), AcquireError> {
        if self.permits.is_closed() {
            self.give_back(n);
            return Err(Closed.into());
        }
        Ok(())
    }

    /// Refuses everybody from now on, those who wait included, also if there were permits for them before and they
    /// have not been polled since: these permits go back. Permits that are held stay valid.
    ///
    /// # Examples
    /// ```
    /// let semaphore = volt_sync::Semaphore::new(1);
    /// semaphore.close();
    /// assert!(semaphore.blocking_acquire().is_err());
    /// ```
    pub fn close(&self) {
        self.permits.close();
    }

    /// True after [`close`](Self::close).
    ///
    /// # Examples
    /// ```
    /// let semaphore = volt_sync::Semaphore::new(1);
    /// assert!(!semaphore.is_closed());
    /// semaphore.close();
    /// assert!(semaphore.is_closed());
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.permits.is_closed()
    }

    /// Gives back the permits of a guard.
    #[inline]
    fn give_back(&self, n: usize) {
        self.permits.release(n);
    }
}

const _: () = {
    const fn assert_traits<T: Send + Sync + Unpin + std::panic::RefUnwindSafe>() {}
    assert_traits::<Semaphore>();
};

#[cfg(all(test, not(volt_loom)))]
mod tests;
