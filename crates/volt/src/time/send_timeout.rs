//! `send_timeout` for the channels.
#![forbid(unsafe_code)]

use std::future::Future;
use std::time::Duration;

use volt_sync::mpsc::Sender;
use volt_sync::mpsc::error::SendTimeoutError;

use super::Sleep;

/// `send_timeout` for [`mpsc::Sender`](crate::sync::mpsc::Sender), which lives in a crate that
/// knows no clock: bring this trait into scope.
///
/// ```
/// # volt::run(async {
/// use volt::sync::mpsc::{self, error::SendTimeoutError};
/// use volt::time::{Duration, SendTimeout};
///
/// let (tx, mut rx) = mpsc::channel(1);
/// let ten = Duration::from_millis(10);
/// tx.send_timeout(1, ten).await.unwrap();
/// let error = tx.send_timeout(2, ten).await.unwrap_err();
/// assert_eq!(error, SendTimeoutError::Timeout(2));
/// assert_eq!(rx.recv().await, Some(1));
/// # });
/// ```
///
/// The future is `Send` if the message is.
pub trait SendTimeout<T> {
    /// Sends `value`, waiting at most `timeout` for a free place. The time counts from the first
    /// poll, and only if the channel is full then.
    ///
    /// ```
    /// use std::time::Duration;
    /// use volt::sync::mpsc::{self, error::SendTimeoutError};
    /// use volt::time::SendTimeout;
    ///
    /// # volt::run(async {
    /// let (tx, rx) = mpsc::channel(1);
    /// let ten = Duration::from_millis(10);
    /// tx.send_timeout(1, ten).await.unwrap();
    /// assert_eq!(tx.send_timeout(2, ten).await, Err(SendTimeoutError::Timeout(2)));
    /// drop(rx);
    /// assert_eq!(tx.send_timeout(3, ten).await, Err(SendTimeoutError::Closed(3)));
    /// # });
    /// ```
    ///
    /// # Errors
    /// Gives the message back: `Timeout` if there was no place in time, `Closed` if the channel
    /// was or has been closed.
    ///
    /// # Panics
    /// If it has to wait outside of a Volt runtime.
    ///
    /// # Cancel safety
    /// As [`Sender::send`]: dropping the future drops the message.
    fn send_timeout(
        &self,
        value: T,
        timeout: Duration,
    ) -> impl Future<Output = Result<(), SendTimeoutError<T>>>;
}

impl<T> SendTimeout<T> for Sender<T> {
    async fn send_timeout(&self, value: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        self.send_until(value, Sleep::lazy(timeout)).await
    }
}
