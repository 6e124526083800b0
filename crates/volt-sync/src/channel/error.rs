//! Why a channel's operation failed. The channels re-export these types.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use super::{Nothing, Refused};

/// The channel is closed; gives the message back.
///
/// ```
/// let (tx, rx) = volt_sync::mpsc::unbounded_channel();
/// drop(rx);
/// assert_eq!(tx.send(7).unwrap_err().0, 7);
/// ```
#[derive(PartialEq, Eq, Clone, Copy)]
pub struct SendError<T>(pub T);

/// Why [`try_send`](crate::mpsc::Sender::try_send) sent nothing; gives the message back.
///
/// ```
/// use volt_sync::mpsc::{channel, error::TrySendError};
///
/// let (tx, rx) = channel(1);
/// tx.try_send(1).unwrap();
/// assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
/// drop(rx);
/// assert_eq!(tx.try_send(3), Err(TrySendError::Closed(3)));
/// ```
#[derive(PartialEq, Eq, Clone, Copy)]
pub enum TrySendError<T> {
    /// There is no free place, or older senders wait for one.
    Full(T),
    /// The channel is closed.
    Closed(T),
}

/// Why [`send_until`](crate::mpsc::Sender::send_until) sent nothing; gives the message back.
///
/// ```
/// use std::future::ready;
/// use volt_sync::mpsc::{channel, error::SendTimeoutError};
///
/// # volt_doctest::run(|| async {
/// let (tx, rx) = channel(1);
/// tx.try_send(1).unwrap();
/// assert_eq!(tx.send_until(2, ready(())).await, Err(SendTimeoutError::Timeout(2)));
/// drop(rx);
/// assert_eq!(tx.send_until(3, ready(())).await, Err(SendTimeoutError::Closed(3)));
/// # });
/// ```
#[derive(PartialEq, Eq, Clone, Copy)]
pub enum SendTimeoutError<T> {
    /// The delay ended first.
    Timeout(T),
    /// The channel is closed.
    Closed(T),
}

/// Why [`try_recv`](crate::mpsc::Receiver::try_recv) received nothing.
///
/// ```
/// use volt_sync::mpsc::{channel, error::TryRecvError};
///
/// let (tx, mut rx) = channel::<u32>(1);
/// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
/// drop(tx);
/// assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
/// ```
#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub enum TryRecvError {
    /// There is no message now.
    Empty,
    /// There is no message, and none can come: the channel is closed.
    Disconnected,
}

impl<T> TrySendError<T> {
    pub(crate) fn new(value: T, refused: Refused) -> Self {
        match refused {
            Refused::Closed => Self::Closed(value),
            Refused::Full | Refused::Busy => Self::Full(value),
        }
    }

    /// The message that was not sent.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::channel(1);
    /// tx.try_send(1).unwrap();
    /// assert_eq!(tx.try_send(2).unwrap_err().into_inner(), 2);
    /// ```
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(value) | Self::Closed(value) => value,
        }
    }
}

impl<T> SendTimeoutError<T> {
    /// The message that was not sent.
    ///
    /// ```
    /// use volt_sync::mpsc::error::SendTimeoutError;
    /// assert_eq!(SendTimeoutError::Timeout(2).into_inner(), 2);
    /// ```
    pub fn into_inner(self) -> T {
        match self {
            Self::Timeout(value) | Self::Closed(value) => value,
        }
    }
}

impl From<Nothing> for TryRecvError {
    fn from(nothing: Nothing) -> Self {
        match nothing {
            Nothing::Closed => Self::Disconnected,
            Nothing::Empty | Nothing::Busy => Self::Empty,
        }
    }
}

impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(error: SendError<T>) -> Self {
        Self::Closed(error.0)
    }
}

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

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "no available capacity",
            Self::Closed(_) => "channel closed",
        })
    }
}

impl<T> Error for TrySendError<T> {}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout(_) => "Timeout(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout(_) => "timed out waiting on send operation",
            Self::Closed(_) => "channel closed",
        })
    }
}

impl<T> Error for SendTimeoutError<T> {}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "receiving on an empty channel",
            Self::Disconnected => "receiving on a closed channel",
        })
    }
}

impl Error for TryRecvError {}
