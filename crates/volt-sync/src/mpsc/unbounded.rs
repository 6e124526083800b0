//! The unbounded channel.
#![forbid(unsafe_code)]

use std::fmt;
use std::future::{Future, poll_fn};
use std::task::{Context, Poll};

use super::error::{SendError, TryRecvError};
use super::receiver::{Receive, Receiving};
use crate::block_on::block_on;
use crate::cache_padded::{Gap, is_quickly_allocated};
use crate::channel::closed::WaitClosed;
use crate::channel::handles::Handles;
use crate::channel::list::Unbounded;
use crate::may_block::assert_may_block;
use crate::primitive::Arc;

#[repr(C)]
struct Shared<T> {
    senders: Handles,
    weak: Handles,
    _gap: Gap,
    channel: Unbounded<T>,
}

const _: () = assert!(is_quickly_allocated::<Shared<u64>>());

/// Creates a channel that holds any number of messages; sending never waits.
///
/// A receiver that is slower than its senders lets memory grow without limit; blocks of 32 messages
/// are freed as they are received.
///
/// ```
/// let (tx, mut rx) = volt_sync::mpsc::unbounded_channel();
/// tx.send(1).unwrap();
/// assert_eq!(rx.try_recv(), Ok(1));
/// ```
pub fn unbounded_channel<T>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    let shared = Arc::new(Shared {
        senders: Handles::new(1),
        weak: Handles::new(0),
        _gap: Gap::GAP,
        channel: Unbounded::new(),
    });
    (UnboundedSender { shared: shared.clone() }, UnboundedReceiver { shared })
}

/// Sends messages to the [`UnboundedReceiver`]; see [`unbounded_channel`].
///
/// ```
/// let (tx, mut rx) = volt_sync::mpsc::unbounded_channel();
/// let other = tx.clone();
/// std::thread::spawn(move || other.send(1).unwrap()).join().unwrap();
/// drop(tx);
/// assert_eq!((rx.blocking_recv(), rx.blocking_recv()), (Some(1), None));
/// ```
pub struct UnboundedSender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> UnboundedSender<T> {
    /// Sends a message; never waits.
    ///
    /// # Errors
    /// Gives the message back if the channel is closed.
    ///
    /// # Cost
    /// One read-modify-write; an allocation once in 32 messages unless the receiver keeps up.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::mpsc::unbounded_channel();
    /// assert!(tx.send(1).is_ok());
    /// drop(rx);
    /// assert_eq!(tx.send(2).unwrap_err().0, 2);
    /// ```
    #[inline]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.shared.channel.send(message).map_err(SendError)
    }

    /// Waits until the channel is closed: by [`UnboundedReceiver::close`], or because the receiver
    /// was dropped. Cancel safe.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (tx, rx) = volt_sync::mpsc::unbounded_channel::<()>();
    /// drop(rx);
    /// tx.closed().await;
    /// # });
    /// ```
    pub async fn closed(&self) {
        WaitClosed::new(&self.shared.channel).await;
    }

    /// True if the channel is closed.
    ///
    /// ```
    /// let (tx, mut rx) = volt_sync::mpsc::unbounded_channel::<()>();
    /// assert!(!tx.is_closed());
    /// rx.close();
    /// assert!(tx.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.shared.channel.is_closed()
    }

    /// True if both belong to one channel.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::unbounded_channel::<()>();
    /// let (other, _rx) = volt_sync::mpsc::unbounded_channel::<()>();
    /// assert!(tx.same_channel(&tx.clone()));
    /// assert!(!tx.same_channel(&other));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// A handle that does not keep the channel open.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::mpsc::unbounded_channel::<()>();
    /// let weak = tx.downgrade();
    /// drop(tx);
    /// assert!(weak.upgrade().is_none());
    /// assert!(rx.is_closed());
    /// ```
    #[must_use = "a weak sender is made, and this one is there as before"]
    pub fn downgrade(&self) -> WeakUnboundedSender<T> {
        WeakUnboundedSender::new(&self.shared)
    }

    /// The number of senders.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::unbounded_channel::<()>();
    /// let other = tx.clone();
    /// assert_eq!(tx.strong_count(), 2);
    /// drop(other);
    /// assert_eq!(tx.strong_count(), 1);
    /// ```
    pub fn strong_count(&self) -> usize {
        self.shared.senders.count()
    }

    /// The number of weak senders.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::unbounded_channel::<()>();
    /// let weak = tx.downgrade();
    /// assert_eq!(tx.weak_count(), 1);
    /// drop(weak);
    /// assert_eq!(tx.weak_count(), 0);
    /// ```
    pub fn weak_count(&self) -> usize {
        self.shared.weak.count()
    }
}

impl<T> Clone for UnboundedSender<T> {
    fn clone(&self) -> Self {
        self.shared.senders.add();
        Self { shared: self.shared.clone() }
    }
}

impl<T> Drop for UnboundedSender<T> {
    fn drop(&mut self) {
        if self.shared.senders.remove() {
            self.shared.channel.close();
        }
    }
}

impl<T> fmt::Debug for UnboundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundedSender").field("channel", &self.shared.channel).finish()
    }
}

/// An [`UnboundedSender`] that does not keep the channel open; see [`UnboundedSender::downgrade`].
///
/// ```
/// let (tx, mut rx) = volt_sync::mpsc::unbounded_channel::<()>();
/// let weak = tx.downgrade();
/// drop(tx);
/// assert_eq!(rx.blocking_recv(), None, "a weak sender does not count");
/// # drop(weak);
/// ```
pub struct WeakUnboundedSender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> WeakUnboundedSender<T> {
    fn new(shared: &Arc<Shared<T>>) -> Self {
        shared.weak.add();
        Self { shared: shared.clone() }
    }

    /// A sender, unless all are gone.
    ///
    /// ```
    /// let (tx, mut rx) = volt_sync::mpsc::unbounded_channel();
    /// let weak = tx.downgrade();
    /// weak.upgrade().unwrap().send(1).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// drop(tx);
    /// assert!(weak.upgrade().is_none());
    /// ```
    pub fn upgrade(&self) -> Option<UnboundedSender<T>> {
        self.shared.senders.upgrade().then(|| UnboundedSender { shared: self.shared.clone() })
    }

    /// The number of senders.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::unbounded_channel::<()>();
    /// let weak = tx.downgrade();
    /// assert_eq!(weak.strong_count(), 1);
    /// drop(tx);
    /// assert_eq!(weak.strong_count(), 0);
    /// ```
    pub fn strong_count(&self) -> usize {
        self.shared.senders.count()
    }

    /// The number of weak senders.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::unbounded_channel::<()>();
    /// let weak = tx.downgrade();
    /// let other = weak.clone();
    /// assert_eq!(other.weak_count(), 2);
    /// ```
    pub fn weak_count(&self) -> usize {
        self.shared.weak.count()
    }
}

impl<T> Clone for WeakUnboundedSender<T> {
    fn clone(&self) -> Self {
        Self::new(&self.shared)
    }
}

impl<T> Drop for WeakUnboundedSender<T> {
    fn drop(&mut self) {
        self.shared.weak.remove();
    }
}

impl<T> fmt::Debug for WeakUnboundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakUnboundedSender").finish_non_exhaustive()
    }
}

/// Receives the messages of the [`UnboundedSender`]s; see [`unbounded_channel`].
///
/// ```
/// # volt_doctest::run(|| async {
/// let (tx, mut rx) = volt_sync::mpsc::unbounded_channel();
/// (0..3).for_each(|i| tx.send(i).unwrap());
/// drop(tx);
/// let mut sum = 0;
/// while let Some(i) = rx.recv().await {
///     sum += i;
/// }
/// assert_eq!(sum, 3);
/// # });
/// ```
pub struct UnboundedReceiver<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Receive for UnboundedReceiver<T> {
    type Message = T;

    #[inline]
    fn try_receive(&mut self) -> Result<T, TryRecvError> {
        self.shared.channel.try_recv()
    }

    #[inline]
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.shared.channel.poll_recv_only(cx)
    }

    fn poll_receive_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        self.shared.channel.poll_recv_many_only(buffer, limit, cx)
    }
}

super::receiver::common!(UnboundedReceiver, "unbounded_channel()", "send");
