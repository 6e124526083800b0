//! The unbounded channel.
#![forbid(unsafe_code)]

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::error::{SendError, TryRecvError};
use crate::block_on::block_on;
use crate::channel::handles::Handles;
use crate::channel::unbounded::{Unbounded, WaitClosed};
use crate::primitive::Arc;

struct Shared<T> {
    channel: Unbounded<T>,
    senders: Handles,
    weak: Handles,
}

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
        channel: Unbounded::new(),
        senders: Handles::new(1),
        weak: Handles::new(0),
    });
    (UnboundedSender { shared: shared.clone() }, UnboundedReceiver { shared })
}

/// Sends messages to the [`UnboundedReceiver`]; see [`unbounded_channel`].
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
    pub async fn closed(&self) {
        WaitClosed::new(&self.shared.channel).await;
    }

    /// True if the channel is closed.
    pub fn is_closed(&self) -> bool {
        self.shared.channel.is_closed()
    }

    /// True if both belong to one channel.
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
    pub fn downgrade(&self) -> WeakUnboundedSender<T> {
        WeakUnboundedSender::new(&self.shared)
    }

    /// The number of senders.
    pub fn strong_count(&self) -> usize {
        self.shared.senders.count()
    }

    /// The number of weak senders.
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
pub struct WeakUnboundedSender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> WeakUnboundedSender<T> {
    fn new(shared: &Arc<Shared<T>>) -> Self {
        shared.weak.add();
        Self { shared: shared.clone() }
    }

    /// A sender, unless all are gone.
    pub fn upgrade(&self) -> Option<UnboundedSender<T>> {
        self.shared.senders.upgrade().then(|| UnboundedSender { shared: self.shared.clone() })
    }

    /// The number of senders.
    pub fn strong_count(&self) -> usize {
        self.shared.senders.count()
    }

    /// The number of weak senders.
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
pub struct UnboundedReceiver<T> {
    shared: Arc<Shared<T>>,
}

impl<T> UnboundedReceiver<T> {
    /// Receives the oldest message, and waits for one if there is none. `None` if the channel is
    /// closed and empty.
    ///
    /// # Panics
    /// If the future is polled again after it completed.
    ///
    /// # Cancel safety
    /// A future that is dropped before it completes has received nothing.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let (tx, mut rx) = volt_sync::mpsc::unbounded_channel();
    /// tx.send(1).unwrap();
    /// drop(tx);
    /// assert_eq!(rx.recv().await, Some(1));
    /// assert_eq!(rx.recv().await, None);
    /// # });
    /// ```
    #[inline]
    pub fn recv(&mut self) -> impl Future<Output = Option<T>> {
        Receiving { receiver: Some(self) }
    }

    /// Receives up to `limit` messages, appends them to `buffer`, and returns their number. Waits
    /// only if there is none at all. 0 if the channel is closed and empty, or if `limit` is 0.
    ///
    /// # Cancel safety
    /// A future that is dropped before it completes has received nothing.
    ///
    /// ```
    /// # futures::executor::block_on(async {
    /// let (tx, mut rx) = volt_sync::mpsc::unbounded_channel();
    /// (0..3).for_each(|i| tx.send(i).unwrap());
    /// let mut buffer = Vec::new();
    /// assert_eq!(rx.recv_many(&mut buffer, 2).await, 2);
    /// assert_eq!(buffer, [0, 1]);
    /// # });
    /// ```
    pub async fn recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        poll_fn(|cx| self.poll_recv_many(cx, buffer, limit)).await
    }

    /// Receives the oldest message if there is one.
    ///
    /// # Errors
    /// [`Empty`](TryRecvError::Empty), or [`Disconnected`](TryRecvError::Disconnected) if none can
    /// come any more.
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.shared.channel.try_recv().map_err(TryRecvError::from)
    }

    /// As [`recv`](Self::recv), but blocks the calling thread. Not for use inside a task, whose
    /// thread would do nothing else meanwhile.
    ///
    /// ```
    /// let (tx, mut rx) = volt_sync::mpsc::unbounded_channel();
    /// std::thread::spawn(move || tx.send(1));
    /// assert_eq!(rx.blocking_recv(), Some(1));
    /// assert_eq!(rx.blocking_recv(), None);
    /// ```
    pub fn blocking_recv(&mut self) -> Option<T> {
        block_on(self.recv())
    }

    /// As [`recv_many`](Self::recv_many), but blocks the calling thread.
    pub fn blocking_recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
        block_on(self.recv_many(buffer, limit))
    }

    /// Closes the channel: nothing more can be sent. What is in the channel can still be received,
    /// until `recv` returns `None`.
    pub fn close(&mut self) {
        self.shared.channel.close();
    }

    /// True if the channel is closed: by [`close`](Self::close), or because there is no sender left.
    pub fn is_closed(&self) -> bool {
        self.shared.channel.is_closed()
    }

    /// True if there is no message in the channel.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of messages that are in the channel.
    pub fn len(&self) -> usize {
        self.shared.channel.len()
    }

    /// As [`recv`](Self::recv), inside a poll function. `Pending` registers the waker of the last
    /// call only.
    #[inline]
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.shared.channel.poll_recv_only(cx)
    }

    /// As [`recv_many`](Self::recv_many), inside a poll function. `Pending` registers the waker of
    /// the last call only.
    pub fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        self.shared.channel.poll_recv_many_only(buffer, limit, cx)
    }

    /// The number of senders.
    pub fn sender_strong_count(&self) -> usize {
        self.shared.senders.count()
    }

    /// The number of weak senders.
    pub fn sender_weak_count(&self) -> usize {
        self.shared.weak.count()
    }
}

impl<T> Drop for UnboundedReceiver<T> {
    fn drop(&mut self) {
        self.close();
        self.shared.channel.discard();
    }
}

impl<T> fmt::Debug for UnboundedReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundedReceiver").field("channel", &self.shared.channel).finish()
    }
}

/// The future of `recv`.
struct Receiving<'a, T> {
    /// `None` once it completed.
    receiver: Option<&'a mut UnboundedReceiver<T>>,
}

impl<T> Future for Receiving<'_, T> {
    type Output = Option<T>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let receiver = self.receiver.as_mut().expect("future polled after completion");
        let received = std::task::ready!(receiver.poll_recv(cx));
        self.receiver = None;
        Poll::Ready(received)
    }
}
