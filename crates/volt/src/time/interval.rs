//! `interval` and `Interval`.
#![forbid(unsafe_code)]

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::scale::nanos;
use super::{Instant, Sleep, clock, scope};

/// A tick that comes less than this late was not missed (nor one that is not a period late).
const TOLERANCE_NS: u64 = 5_000_000;

/// Ticks every `period`, for the first time at once.
///
/// # Panics
/// If `period` is zero, and outside of a Volt runtime.
///
/// ```
/// # volt::run(async {
/// use volt::time::{Duration, Instant, interval};
///
/// let start = Instant::now();
/// let mut interval = interval(Duration::from_millis(2));
/// interval.tick().await; // at once
/// interval.tick().await;
/// interval.tick().await;
/// assert!(start.elapsed() >= Duration::from_millis(4));
/// # });
/// ```
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    assert!(!period.is_zero(), "`period` must be non-zero.");
    let now = scope::with_timers("time::interval", |timers| timers.clock().now_ns());
    Interval::new(Instant::from_ns(now), period)
}

/// Ticks every `period`, for the first time at `start`.
///
/// # Panics
/// As [`interval`].
///
/// ```
/// # volt::run(async {
/// use volt::time::{Duration, Instant, interval_at};
///
/// let start = Instant::now() + Duration::from_millis(2);
/// let mut interval = interval_at(start, Duration::from_millis(5));
/// assert_eq!(interval.tick().await, start);
/// # });
/// ```
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(!period.is_zero(), "`period` must be non-zero.");
    scope::with_timers("time::interval_at", |_| ());
    Interval::new(start, period)
}

/// What an [`Interval`] does about ticks that were missed: whose task came more than 5 ms, or a
/// period if that is shorter, too late to take them.
///
/// With a period of 50 ms, and a task that takes the second tick at 120 instead of 50:
///
/// | | ticks at |
/// |---|---|
/// | on time | 0, 50, 100, 150, 200, 250 |
/// | `Burst` | 0, 120, 120, 150, 200, 250 |
/// | `Delay` | 0, 120, 170, 220, 270, 320 |
/// | `Skip`  | 0, 120, 150, 200, 250, 300 |
///
/// # Examples
/// ```
/// # volt::run(async {
/// use std::time::Duration;
/// use volt::time::{Instant, MissedTickBehavior, interval, sleep};
/// let mut ticks = interval(Duration::from_millis(10));
/// ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
/// ticks.tick().await;
/// sleep(Duration::from_millis(25)).await;
/// let late = Instant::now();
/// ticks.tick().await;
/// assert!(ticks.tick().await >= late + Duration::from_millis(10));
/// # });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissedTickBehavior {
    /// The missed ticks come at once, until the interval has caught up: no tick is lost.
    #[default]
    Burst,
    /// The next tick comes a period after the late one.
    Delay,
    /// The missed ticks are left out: the next one comes at a multiple of the period after the
    /// start.
    Skip,
}

impl MissedTickBehavior {
    /// The tick after the one that was due at `missed`, in nanoseconds of the clock.
    fn next(self, missed: u64, now: u64, period: u64) -> u64 {
        match self {
            Self::Burst => clock::after(missed, period),
            Self::Delay => clock::after(now, period),
            Self::Skip => clock::after(now, period - now.saturating_sub(missed) % period),
        }
    }
}

/// Made by [`interval`] and [`interval_at`].
///
/// Cost: one allocation for its life; a tick costs as a [`sleep`](super::sleep).
///
/// # Examples
/// ```
/// # volt::run(async {
/// use std::time::Duration;
/// use volt::time::{Instant, Interval, interval};
/// let mut ticks: Interval = interval(Duration::from_millis(2));
/// let start = ticks.tick().await;
/// ticks.tick().await;
/// assert!(Instant::now() >= start + Duration::from_millis(2));
/// # });
/// ```
#[derive(Debug)]
pub struct Interval {
    delay: Pin<Box<Sleep>>,
    period: Duration,
    missed_tick_behavior: MissedTickBehavior,
}

impl Interval {
    fn new(start: Instant, period: Duration) -> Self {
        let delay = Box::pin(Sleep::until(start));
        Self { delay, period, missed_tick_behavior: MissedTickBehavior::default() }
    }

    /// Waits for the next tick and returns when it was due.
    ///
    /// # Cancel safety
    /// Dropping the future takes no tick.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// use std::time::Duration;
    /// use volt::time::interval;
    /// let mut ticks = interval(Duration::from_millis(1));
    /// let first = ticks.tick().await;
    /// assert_eq!(ticks.tick().await, first + Duration::from_millis(1));
    /// # });
    /// ```
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// As [`tick`](Self::tick), for use in a `poll` function.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// use std::future::poll_fn;
    /// use std::time::Duration;
    /// use volt::time::interval;
    /// let mut ticks = interval(Duration::from_millis(1));
    /// let first = poll_fn(|cx| ticks.poll_tick(cx)).await;
    /// assert_eq!(poll_fn(|cx| ticks.poll_tick(cx)).await, first + Duration::from_millis(1));
    /// # });
    /// ```
    #[track_caller]
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(self.delay.as_mut().poll(cx));
        let (due, now) = (self.delay.deadline_ns(), scope::now_ns());
        let period = nanos(self.period);
        let is_late = now.saturating_sub(due) > period.min(TOLERANCE_NS);
        let behavior = if is_late { self.missed_tick_behavior } else { MissedTickBehavior::Burst };
        self.delay.as_mut().restart(behavior.next(due, now, period), now);
        Poll::Ready(Instant::from_ns(due))
    }

    /// The next tick comes a period from now.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// use std::time::Duration;
    /// use volt::time::{Instant, interval};
    /// let mut ticks = interval(Duration::from_millis(3));
    /// let before = Instant::now();
    /// ticks.reset();
    /// assert!(ticks.tick().await >= before + Duration::from_millis(3));
    /// # });
    /// ```
    pub fn reset(&mut self) {
        self.reset_after(self.period);
    }

    /// The next tick comes at once.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// use std::time::Duration;
    /// use volt::time::interval;
    /// let mut ticks = interval(Duration::from_secs(3600));
    /// ticks.tick().await;
    /// ticks.reset_immediately();
    /// ticks.tick().await;
    /// # });
    /// ```
    pub fn reset_immediately(&mut self) {
        self.reset_at(Instant::now());
    }

    /// The next tick comes `after` from now, and the others follow by the period.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// use std::time::Duration;
    /// use volt::time::{Instant, interval};
    /// let mut ticks = interval(Duration::from_secs(3600));
    /// let before = Instant::now();
    /// ticks.reset_after(Duration::from_millis(2));
    /// assert!(ticks.tick().await >= before + Duration::from_millis(2));
    /// # });
    /// ```
    pub fn reset_after(&mut self, after: Duration) {
        let deadline = clock::after(scope::now_ns(), nanos(after));
        self.delay.as_mut().reset_ns(deadline);
    }

    /// The next tick comes at `deadline`, and the others follow by the period.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// use std::time::Duration;
    /// use volt::time::{Instant, interval};
    /// let mut ticks = interval(Duration::from_secs(3600));
    /// let deadline = Instant::now() + Duration::from_millis(2);
    /// ticks.reset_at(deadline);
    /// assert_eq!(ticks.tick().await, deadline);
    /// # });
    /// ```
    pub fn reset_at(&mut self, deadline: Instant) {
        self.delay.as_mut().reset(deadline);
    }

    /// What happens to missed ticks.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// use std::time::Duration;
    /// use volt::time::{MissedTickBehavior, interval};
    /// let ticks = interval(Duration::from_millis(1));
    /// assert_eq!(ticks.missed_tick_behavior(), MissedTickBehavior::Burst);
    /// # });
    /// ```
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed_tick_behavior
    }

    /// Sets what happens to missed ticks.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// use std::time::Duration;
    /// use volt::time::{MissedTickBehavior, interval};
    /// let mut ticks = interval(Duration::from_millis(1));
    /// ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    /// assert_eq!(ticks.missed_tick_behavior(), MissedTickBehavior::Skip);
    /// # });
    /// ```
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed_tick_behavior = behavior;
    }

    /// The time between ticks.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// use std::time::Duration;
    /// use volt::time::interval;
    /// let ticks = interval(Duration::from_millis(5));
    /// assert_eq!(ticks.period(), Duration::from_millis(5));
    /// # });
    /// ```
    pub fn period(&self) -> Duration {
        self.period
    }
}
