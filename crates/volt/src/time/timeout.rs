//! `timeout` and `Timeout`.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use volt_sync::coop;

use super::error::Elapsed;
use super::{Instant, Sleep};

/// Runs `future` for `duration` at most.
///
/// **From when it counts**: from the first poll at which `future` is not ready, not from this
/// call. A timeout that is awaited at once, as nearly all are, cannot tell the difference, and one
/// whose future is ready looks neither at the clock nor at the timers. If the time until the first
/// poll counts (the timeout is kept for a while, or its future computes for long at first), give
/// [`timeout_at`] a deadline.
///
/// The future is polled first: if it is ready at the same poll at which the time is over, its
/// output is returned.
///
/// # Errors
/// [`Elapsed`] if the time is over before the future completes, which is then dropped with the
/// `Timeout`.
///
/// # Panics
/// If the future is not ready outside of a Volt runtime.
///
/// # Cancel safety
/// Dropping it drops the future and cancels the timer.
///
/// # Cost
/// None for a future that is ready at once; otherwise as [`sleep`](super::sleep).
///
/// ```
/// # volt::run(async {
/// use volt::time::{Duration, timeout};
///
/// let ten = Duration::from_millis(10);
/// assert_eq!(timeout(ten, async { 42 }).await, Ok(42));
/// assert!(timeout(ten, std::future::pending::<()>()).await.is_err());
/// # });
/// ```
#[inline]
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout { value: future.into_future(), delay: Sleep::lazy(duration) }
}

/// Runs `future` until `deadline` at most. Otherwise as [`timeout`].
///
/// # Errors
/// As [`timeout`].
///
/// ```
/// # volt::run(async {
/// use volt::time::{Duration, Instant, timeout_at};
///
/// let deadline = Instant::now() + Duration::from_millis(5);
/// assert!(timeout_at(deadline, std::future::pending::<()>()).await.is_err());
/// assert!(Instant::now() >= deadline);
/// # });
/// ```
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    Timeout { value: future.into_future(), delay: Sleep::until(deadline) }
}

/// The future of [`timeout`] and [`timeout_at`].
///
/// # Examples
/// ```
/// # volt::run(async {
/// use std::time::Duration;
/// use volt::time::{Timeout, timeout};
/// let limited: Timeout<_> = timeout(Duration::from_secs(1), std::future::ready(7));
/// assert_eq!(limited.await, Ok(7));
/// # });
/// ```
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct Timeout<T> {
    value: T,
    delay: Sleep,
}

impl<T> Timeout<T> {
    /// The future inside.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// use std::time::Duration;
    /// let limited = volt::time::timeout(Duration::from_secs(1), Box::pin(async { 7 }));
    /// let future: &std::pin::Pin<Box<_>> = limited.get_ref();
    /// # let _ = future;
    /// # });
    /// ```
    pub const fn get_ref(&self) -> &T {
        &self.value
    }

    /// The future inside.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// use std::time::Duration;
    /// let mut limited = volt::time::timeout(Duration::from_secs(1), Box::pin(async { 7 }));
    /// assert_eq!(limited.get_mut().await, 7);
    /// # });
    /// ```
    pub const fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// The future inside, without its timeout.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// use std::time::Duration;
    /// let limited = volt::time::timeout(Duration::from_millis(1), async { 7 });
    /// assert_eq!(limited.into_inner().await, 7);
    /// # });
    /// ```
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T: Future> Future for Timeout<T> {
    type Output = Result<T::Output, Elapsed>;

    #[inline]
    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: neither field is moved out of it below.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: structurally pinned: there is no other access to `value` by `&mut` while pinned
        // (`get_mut` takes an unpinned timeout), and `Timeout` has no `Drop` of its own.
        let value = unsafe { Pin::new_unchecked(&mut this.value) };
        let had_budget = coop::has_budget_remaining();
        if let Poll::Ready(output) = value.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        // SAFETY: structurally pinned, as above.
        let delay = unsafe { Pin::new_unchecked(&mut this.delay) };
        // A future that uses up the budget at every poll must not hide that the time is over.
        let delay = if had_budget && !coop::has_budget_remaining() {
            coop::with_budget(None, || delay.poll_elapsed("time::timeout", cx))
        } else {
            delay.poll_elapsed("time::timeout", cx)
        };
        delay.map(|()| Err(Elapsed::new()))
    }
}
