//! The receiving half.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Channel, TryRecvError, common_methods};
use crate::block_on::block_on;
use crate::channel::waiter::Waiter;
use crate::first_panic::FirstPanic;
use crate::may_block::assert_may_block;
use crate::primitive::Arc;

/// Receives messages; see the [module](super). Clones receive from the same channel: each message
/// goes to one of them.
///
/// ```
/// let (tx, one) = volt_sync::mpmc::bounded(2);
/// let two = one.clone();
/// tx.try_send(1).unwrap();
/// tx.try_send(2).unwrap();
/// assert_eq!((two.try_recv(), one.try_recv()), (Ok(1), Ok(2)));
/// ```
pub struct Receiver<T> {
    pub(super) channel: Arc<Channel<T>>,
    /// What the `Stream` of this handle waits with.
    #[cfg(feature = "futures")]
    pub(super) stream: Option<Pin<Box<Waiter>>>,
}

impl<T> Receiver<T> {
    /// A handle that has been counted.
    pub(super) fn new(channel: Arc<Channel<T>>) -> Self {
        Self {
            channel,
            #[cfg(feature = "futures")]
            stream: None,
        }
    }

    /// Receives the oldest message, and waits for one if there is none. `None` if the channel is
    /// closed and empty.
    ///
    /// # Panics
    /// If the future is polled again after it completed.
    ///
    /// # Cancel safety
    /// A future that is dropped before it completes has received nothing; if it was about to be
    /// woken, the next waiting receiver is.
    ///
    /// # Cost
    /// One read-modify-write if there is a message.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (tx, rx) = volt_sync::mpmc::bounded(1);
    /// tx.send(1).await.unwrap();
    /// drop(tx);
    /// assert_eq!(rx.recv().await, Some(1));
    /// assert_eq!(rx.recv().await, None);
    /// # });
    /// ```
    #[inline]
    pub fn recv(&self) -> RecvFuture<'_, T> {
        RecvFuture { channel: &self.channel, waiter: Waiter::new(1) }
    }

    /// Receives the oldest message if there is one.
    ///
    /// # Errors
    /// [`Empty`](TryRecvError::Empty), or [`Disconnected`](TryRecvError::Disconnected) if none can
    /// come any more.
    ///
    /// ```
    /// use volt_sync::mpmc::{self, TryRecvError};
    /// let (tx, rx) = mpmc::bounded(1);
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.try_send(1).unwrap();
    /// drop(tx);
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
    /// ```
    #[inline]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.channel.try_recv()
    }

    /// As [`recv`](Self::recv), but blocks the calling thread. Not for use inside a task.
    ///
    /// # Panics
    /// Where a Volt runtime polls futures: in a task, in the future of `block_on`, and in wakers and hooks that it calls.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::mpmc::unbounded();
    /// std::thread::spawn(move || tx.try_send(1));
    /// assert_eq!(rx.blocking_recv(), Some(1));
    /// assert_eq!(rx.blocking_recv(), None);
    /// ```
    #[track_caller]
    pub fn blocking_recv(&self) -> Option<T> {
        assert_may_block("mpmc::Receiver::blocking_recv");
        match self.try_recv() {
            Ok(value) => Some(value),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => block_on(self.recv()),
        }
    }

    /// A handle that does not keep the channel open.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::mpmc::bounded::<()>(1);
    /// let weak = rx.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(rx);
    /// assert!(weak.upgrade().is_none());
    /// assert!(tx.is_closed());
    /// ```
    #[must_use = "a weak receiver is made, and this one is there as before"]
    pub fn downgrade(&self) -> WeakReceiver<T> {
        WeakReceiver { channel: self.channel.clone() }
    }

    common_methods!();
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.channel.receivers.add();
        Self::new(self.channel.clone())
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        // All of it is done also if a waker or a message panics.
        let mut panic = FirstPanic::new();
        #[cfg(feature = "futures")]
        panic.catch(|| self.release_stream());
        if self.channel.receivers.remove() {
            panic.catch(|| {
                self.channel.close();
            });
            panic.catch(|| self.channel.discard());
        }
        panic.resume();
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("channel", &self.channel).finish()
    }
}

/// A [`Receiver`] that does not keep the channel open; see [`Receiver::downgrade`].
///
/// ```
/// let (tx, rx) = volt_sync::mpmc::unbounded();
/// let weak = rx.downgrade();
/// drop(rx);
/// assert!(tx.try_send(1).is_err(), "a weak receiver does not count");
/// # drop(weak);
/// ```
pub struct WeakReceiver<T> {
    channel: Arc<Channel<T>>,
}

impl<T> WeakReceiver<T> {
    /// A receiver, unless all are gone.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::mpmc::unbounded();
    /// let weak = rx.downgrade();
    /// tx.try_send(1).unwrap();
    /// assert_eq!(weak.upgrade().unwrap().try_recv(), Ok(1));
    /// drop(rx);
    /// assert!(weak.upgrade().is_none());
    /// ```
    pub fn upgrade(&self) -> Option<Receiver<T>> {
        self.channel.receivers.upgrade().then(|| Receiver::new(self.channel.clone()))
    }
}

impl<T> Clone for WeakReceiver<T> {
    fn clone(&self) -> Self {
        Self { channel: self.channel.clone() }
    }
}

impl<T> fmt::Debug for WeakReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakReceiver").finish_non_exhaustive()
    }
}

/// The future of [`Receiver::recv`].
///
/// ```
/// use volt_sync::mpmc::RecvFuture;
///
/// # volt_doctest::run(|| async {
/// let (tx, rx) = volt_sync::mpmc::bounded(1);
/// let next: RecvFuture<'_, u32> = rx.recv();
/// tx.send(1).await.unwrap();
/// assert_eq!(next.await, Some(1));
/// # });
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct RecvFuture<'a, T> {
    channel: &'a Channel<T>,
    waiter: Waiter,
}

impl<T> Future for RecvFuture<'_, T> {
    type Output = Option<T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        match self.channel.recv_if_plain(&self.waiter) {
            Some(value) => Poll::Ready(Some(value)),
            None => self.poll_slow(cx),
        }
    }
}

impl<T> RecvFuture<'_, T> {
    #[inline(never)]
    fn poll_slow(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        // SAFETY: the waiter is pinned with the future and not moved.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above, for the same reason.
        let waiter = unsafe { Pin::new_unchecked(&mut this.waiter) };
        this.channel.poll_recv(waiter, cx).map(Result::ok)
    }
}

impl<T> Drop for RecvFuture<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.waiter.is_engaged() {
            // SAFETY: engaged, so it was polled, so it is pinned; it is not moved before it is freed.
            self.channel.cancel_recv(unsafe { Pin::new_unchecked(&mut self.waiter) });
        }
    }
}

impl<T> fmt::Debug for RecvFuture<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvFuture").field("waiter", &self.waiter).finish()
    }
}
