//! A point in time of the runtime's clock.
#![forbid(unsafe_code)]

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::{Duration, Instant as StdInstant};

use super::{scale, scope};

/// A measurement of the clock, as [`std::time::Instant`], from which and into which it converts.
///
/// Inside a runtime with a [paused](super::pause) clock, [`now`](Self::now) is that clock's time.
///
/// Cost: as `std`'s.
///
/// ```
/// use volt::time::{Duration, Instant};
///
/// let start = Instant::now();
/// let deadline = start + Duration::from_secs(5);
/// assert_eq!(deadline.duration_since(start), Duration::from_secs(5));
/// assert_eq!(start.duration_since(deadline), Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(StdInstant);

impl Instant {
    /// The time now.
    ///
    /// # Examples
    /// ```
    /// use volt::time::Instant;
    /// let before = Instant::now();
    /// assert!(Instant::now() >= before);
    /// ```
    #[inline]
    pub fn now() -> Self {
        Self(scope::now())
    }

    /// Wraps an instant of the standard library.
    ///
    /// # Examples
    /// ```
    /// use volt::time::Instant;
    /// let std = std::time::Instant::now();
    /// assert_eq!(Instant::from_std(std).into_std(), std);
    /// ```
    #[inline]
    pub const fn from_std(instant: StdInstant) -> Self {
        Self(instant)
    }

    /// The instant as the standard library's.
    ///
    /// # Examples
    /// ```
    /// use volt::time::Instant;
    /// let now = Instant::now();
    /// assert_eq!(Instant::from_std(now.into_std()), now);
    /// ```
    #[inline]
    pub const fn into_std(self) -> StdInstant {
        self.0
    }

    /// A place on the clock's scale as an instant.
    pub(super) fn from_ns(ns: u64) -> Self {
        Self(scale::to_instant(ns))
    }

    /// The place on the clock's scale.
    #[inline]
    pub(super) fn to_ns(self) -> u64 {
        scale::to_ns(self.0)
    }

    /// The time from `earlier` to this instant, zero if it is not earlier.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use volt::time::Instant;
    /// let start = Instant::now();
    /// let end = start + Duration::from_millis(3);
    /// assert_eq!(end.duration_since(start), Duration::from_millis(3));
    /// assert_eq!(start.duration_since(end), Duration::ZERO);
    /// ```
    pub fn duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// The time from `earlier` to this instant, `None` if it is later.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use volt::time::Instant;
    /// let start = Instant::now();
    /// let end = start + Duration::from_millis(3);
    /// assert_eq!(end.checked_duration_since(start), Some(Duration::from_millis(3)));
    /// assert_eq!(start.checked_duration_since(end), None);
    /// ```
    pub fn checked_duration_since(&self, earlier: Self) -> Option<Duration> {
        self.0.checked_duration_since(earlier.0)
    }

    /// As [`duration_since`](Self::duration_since).
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use volt::time::Instant;
    /// let start = Instant::now();
    /// let end = start + Duration::from_millis(3);
    /// assert_eq!(start.saturating_duration_since(end), Duration::ZERO);
    /// ```
    pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// The time from this instant to now, zero if it lies in the future.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// use std::time::Duration;
    /// use volt::time::{Instant, sleep};
    /// let start = Instant::now();
    /// sleep(Duration::from_millis(2)).await;
    /// assert!(start.elapsed() >= Duration::from_millis(2));
    /// # });
    /// ```
    pub fn elapsed(&self) -> Duration {
        Self::now().duration_since(*self)
    }

    /// This instant plus `duration`, `None` if the platform cannot represent it.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use volt::time::Instant;
    /// let now = Instant::now();
    /// assert_eq!(now.checked_add(Duration::from_secs(1)), Some(now + Duration::from_secs(1)));
    /// assert_eq!(now.checked_add(Duration::MAX), None);
    /// ```
    pub fn checked_add(&self, duration: Duration) -> Option<Self> {
        self.0.checked_add(duration).map(Self)
    }

    /// This instant minus `duration`, `None` if the platform cannot represent it.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use volt::time::Instant;
    /// let now = Instant::now();
    /// let later = now + Duration::from_secs(1);
    /// assert_eq!(later.checked_sub(Duration::from_secs(1)), Some(now));
    /// assert_eq!(now.checked_sub(Duration::MAX), None);
    /// ```
    pub fn checked_sub(&self, duration: Duration) -> Option<Self> {
        self.0.checked_sub(duration).map(Self)
    }
}

impl From<StdInstant> for Instant {
    fn from(instant: StdInstant) -> Self {
        Self(instant)
    }
}

impl From<Instant> for StdInstant {
    fn from(instant: Instant) -> Self {
        instant.0
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        self.0 += duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0 - duration)
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        self.0 -= duration;
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
