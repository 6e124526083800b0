//! Every receiver gets every value: events, log lines, chat messages.
//!
//! Each receiver gets its own clone of each value sent after it subscribed. The channel keeps a
//! bounded number of values; a sender never waits, and a receiver that falls behind misses the
//! oldest ones and is told how many.
//!
//! ```
//! use volt_sync::broadcast;
//!
//! # volt_doctest::run(|| async {
//! let (tx, mut first) = broadcast::channel(16);
//! let mut second = tx.subscribe();
//! tx.send("hello").unwrap();
//! assert_eq!(first.recv().await.unwrap(), "hello");
//! assert_eq!(second.recv().await.unwrap(), "hello");
//! # });
//! ```
//!
//! # Falling behind
//! [`Receiver::recv`] returns [`RecvError::Lagged`](error::RecvError::Lagged) with the number of
//! values that were overwritten before this receiver got them, and continues with the oldest one
//! that is left.
//!
//! # When to use which
//! If a receiver needs only the newest value, [`watch`](crate::watch) never lags; if each value is for
//! one receiver, take [`mpmc`](crate::mpmc); if none may be missed, one [`mpsc`](crate::mpsc) channel
//! for each receiver.
//!
//! # Fairness
//! All senders' values have one order, which every receiver sees. A value wakes those who wait in the
//! order in which they began to.
//!
//! # Cancel safety
//! A [`recv`](Receiver::recv) that is dropped has received nothing: the next one gets the same value.
//!
//! # Cost and memory
//! [`channel`] allocates twice: a few hundred bytes, and for each place two words and a value. Sending is one read-modify-write, and a load if nobody waits, two if
//! it overwrites; receiving is one and the clone, or, for the last receiver of a value, the value
//! itself. Waiting allocates nothing. A value is dropped as soon as every receiver has got it or is
//! gone.
//!
//! # Cloning
//! Receivers of one value clone it one after the other, so that `T` need not be `Sync`; those who
//! meet wait for each other, and so does a sender that overwrites just that value: spinning at first,
//! then giving the processor away. Nobody else waits for a clone. Keep `Clone` short, as for an
//! `Arc`; it must not use the same channel.

mod receiver;
mod ring;
mod sender;

pub use self::receiver::Receiver;
pub use self::sender::{Sender, WeakSender};

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;

/// The errors of this channel.
pub mod error {
    use std::{error::Error, fmt};

    /// There is no receiver; holds the value that was not sent.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::broadcast::channel(1);
    /// drop(rx);
    /// let error = tx.send(7).unwrap_err();
    /// assert_eq!(error.0, 7, "the value is given back");
    /// ```
    #[derive(PartialEq, Eq, Clone, Copy)]
    pub struct SendError<T>(pub T);

    impl<T> fmt::Debug for SendError<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("SendError").finish_non_exhaustive()
        }
    }

    impl<T> fmt::Display for SendError<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("channel closed")
        }
    }

    impl<T> Error for SendError<T> {}

    /// Why [`recv`](super::Receiver::recv) has no value.
    ///
    /// ```
    /// use volt_sync::broadcast::{channel, error::RecvError};
    ///
    /// # volt_doctest::run(|| async {
    /// let (tx, mut rx) = channel(1);
    /// tx.send(1).unwrap();
    /// tx.send(2).unwrap();
    /// assert_eq!(rx.recv().await, Err(RecvError::Lagged(1)));
    /// assert_eq!(rx.recv().await, Ok(2));
    /// drop(tx);
    /// assert_eq!(rx.recv().await, Err(RecvError::Closed));
    /// # });
    /// ```
    #[derive(Debug, PartialEq, Eq, Clone)]
    pub enum RecvError {
        /// Every sender is gone, and every value was received.
        Closed,
        /// This many values were overwritten before this receiver got them.
        Lagged(u64),
    }

    impl fmt::Display for RecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::Closed => f.write_str("channel closed"),
                Self::Lagged(missed) => write!(f, "channel lagged by {missed}"),
            }
        }
    }

    impl Error for RecvError {}

    /// Why [`try_recv`](super::Receiver::try_recv) has no value.
    ///
    /// ```
    /// use volt_sync::broadcast::{channel, error::TryRecvError};
    ///
    /// let (tx, mut rx) = channel(1);
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.send(1).unwrap();
    /// tx.send(2).unwrap();
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Lagged(1)));
    /// assert_eq!(rx.try_recv(), Ok(2));
    /// drop(tx);
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    /// ```
    #[derive(Debug, PartialEq, Eq, Clone)]
    pub enum TryRecvError {
        /// There is none at the moment.
        Empty,
        /// Every sender is gone, and every value was received.
        Closed,
        /// This many values were overwritten before this receiver got them.
        Lagged(u64),
    }

    impl fmt::Display for TryRecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::Empty => f.write_str("channel empty"),
                Self::Closed => f.write_str("channel closed"),
                Self::Lagged(missed) => write!(f, "channel lagged by {missed}"),
            }
        }
    }

    impl Error for TryRecvError {}
}

/// Makes a channel that keeps the last `capacity` values, rounded up to a power of two.
///
/// # Panics
/// If `capacity` is 0, or larger than `usize::MAX / 2`.
///
/// ```
/// let (tx, mut rx) = volt_sync::broadcast::channel(2);
/// for number in 1..=3 {
///     tx.send(number).unwrap();
/// }
/// use volt_sync::broadcast::error::TryRecvError;
/// assert_eq!(rx.try_recv(), Err(TryRecvError::Lagged(1)));
/// assert_eq!(rx.try_recv(), Ok(2));
/// ```
#[must_use]
#[track_caller]
pub fn channel<T: Clone>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(capacity);
    let receiver = sender.subscribe();
    (sender, receiver)
}
