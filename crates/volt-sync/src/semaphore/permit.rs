//! Permits that somebody holds.

use std::sync::Arc;

use super::Semaphore;

/// Permits of a [`Semaphore`], given back on drop.
///
/// # Examples
/// ```
/// let semaphore = volt_sync::Semaphore::new(1);
/// let permit = semaphore.try_acquire().unwrap();
/// drop(permit);
/// assert_eq!(semaphore.available_permits(), 1);
/// ```
#[must_use]
#[clippy::has_significant_drop]
#[derive(Debug)]
pub struct SemaphorePermit<'a> {
    semaphore: &'a Semaphore,
    permits: usize,
}

impl<'a> SemaphorePermit<'a> {
    #[inline]
    pub(super) const fn new(semaphore: &'a Semaphore, permits: usize) -> Self {
        Self { semaphore, permits }
    }

    /// Drops the permits without giving them back: the semaphore has fewer from now on.
    ///
    /// # Examples
    /// ```
    /// let semaphore = volt_sync::Semaphore::new(3);
    /// semaphore.try_acquire_many(2).unwrap().forget();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// ```
    pub fn forget(mut self) {
        self.permits = 0;
    }

    /// Adds the permits of `other` to this.
    ///
    /// # Panics
    /// If the two are of different semaphores, or there are more than `usize::MAX` together.
    ///
    /// # Examples
    /// ```
    /// let semaphore = volt_sync::Semaphore::new(3);
    /// let mut permits = semaphore.try_acquire().unwrap();
    /// permits.merge(semaphore.try_acquire_many(2).unwrap());
    /// assert_eq!(permits.num_permits(), 3);
    /// ```
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        assert!(
            std::ptr::eq(self.semaphore, other.semaphore),
            "merging permits of different semaphores"
        );
        self.permits = self.permits.checked_add(other.permits).expect("too many permits in one");
        other.permits = 0;
    }

    /// Takes `n` of the permits out, or `None` if there are not as many.
    ///
    /// # Examples
    /// ```
    /// let semaphore = volt_sync::Semaphore::new(3);
    /// let mut permits = semaphore.try_acquire_many(3).unwrap();
    /// let two = permits.split(2).unwrap();
    /// assert_eq!((permits.num_permits(), two.num_permits()), (1, 2));
    /// assert!(permits.split(2).is_none());
    /// ```
    pub fn split(&mut self, n: usize) -> Option<Self> {
        self.permits = self.permits.checked_sub(n)?;
        Some(Self::new(self.semaphore, n))
    }

    /// The semaphore that these are permits of.
    ///
    /// # Examples
    /// ```
    /// let semaphore = volt_sync::Semaphore::new(2);
    /// let permit = semaphore.try_acquire().unwrap();
    /// assert_eq!(permit.semaphore().available_permits(), 1);
    /// ```
    #[must_use]
    pub const fn semaphore(&self) -> &'a Semaphore {
        self.semaphore
    }

    /// How many permits these are.
    ///
    /// # Examples
    /// ```
    /// let semaphore = volt_sync::Semaphore::new(3);
    /// assert_eq!(semaphore.try_acquire_many(2).unwrap().num_permits(), 2);
    /// ```
    #[must_use]
    pub const fn num_permits(&self) -> usize {
        self.permits
    }
}

impl Drop for SemaphorePermit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.give_back(self.permits);
    }
}

/// As [`SemaphorePermit`], but owns its semaphore, so that it can outlive the scope it came from.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// let semaphore = Arc::new(volt_sync::Semaphore::new(1));
/// let permit = semaphore.clone().try_acquire_owned().unwrap();
/// std::thread::spawn(move || drop(permit)).join().unwrap();
/// assert_eq!(semaphore.available_permits(), 1);
/// ```
#[must_use]
#[clippy::has_significant_drop]
#[derive(Debug)]
pub struct OwnedSemaphorePermit {
    semaphore: Arc<Semaphore>,
    permits: usize,
}

impl OwnedSemaphorePermit {
    #[inline]
    pub(super) const fn new(semaphore: Arc<Semaphore>, permits: usize) -> Self {
        Self { semaphore, permits }
    }

    /// As [`SemaphorePermit::forget`].
    ///
    /// # Examples
    /// ```
    /// let semaphore = std::sync::Arc::new(volt_sync::Semaphore::new(1));
    /// semaphore.clone().try_acquire_owned().unwrap().forget();
    /// assert_eq!(semaphore.available_permits(), 0);
    /// ```
    pub fn forget(mut self) {
        self.permits = 0;
    }

    /// As [`SemaphorePermit::merge`].
    ///
    /// # Panics
    /// If the two are of different semaphores, or there are more than `usize::MAX` together.
    ///
    /// # Examples
    /// ```
    /// let semaphore = std::sync::Arc::new(volt_sync::Semaphore::new(2));
    /// let mut permits = semaphore.clone().try_acquire_owned().unwrap();
    /// permits.merge(semaphore.clone().try_acquire_owned().unwrap());
    /// assert_eq!(permits.num_permits(), 2);
    /// ```
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        assert!(
            Arc::ptr_eq(&self.semaphore, &other.semaphore),
            "merging permits of different semaphores"
        );
        self.permits = self.permits.checked_add(other.permits).expect("too many permits in one");
        other.permits = 0;
    }

    /// As [`SemaphorePermit::split`].
    ///
    /// # Examples
    /// ```
    /// let semaphore = std::sync::Arc::new(volt_sync::Semaphore::new(2));
    /// let mut permits = semaphore.try_acquire_many_owned(2).unwrap();
    /// let one = permits.split(1).unwrap();
    /// assert_eq!((permits.num_permits(), one.num_permits()), (1, 1));
    /// ```
    pub fn split(&mut self, n: usize) -> Option<Self> {
        self.permits = self.permits.checked_sub(n)?;
        Some(Self::new(self.semaphore.clone(), n))
    }

    /// The semaphore that these are permits of.
    ///
    /// # Examples
    /// ```
    /// let semaphore = std::sync::Arc::new(volt_sync::Semaphore::new(2));
    /// let permit = semaphore.try_acquire_owned().unwrap();
    /// assert_eq!(permit.semaphore().available_permits(), 1);
    /// ```
    #[must_use]
    pub const fn semaphore(&self) -> &Arc<Semaphore> {
        &self.semaphore
    }

    /// How many permits these are.
    ///
    /// # Examples
    /// ```
    /// let semaphore = std::sync::Arc::new(volt_sync::Semaphore::new(2));
    /// assert_eq!(semaphore.try_acquire_many_owned(2).unwrap().num_permits(), 2);
    /// ```
    #[must_use]
    pub const fn num_permits(&self) -> usize {
        self.permits
    }
}

impl Drop for OwnedSemaphorePermit {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.give_back(self.permits);
    }
}
