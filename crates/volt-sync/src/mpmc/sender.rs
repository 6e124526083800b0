//! The sending half.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Channel, SendError, TrySendError, common_methods};
use crate::block_on::block_on;
use crate::channel::closed::WaitClosed;
use crate::channel::waiter::Waiter;
use crate::first_panic::{self, FirstPanic};
use crate::may_block::assert_may_block;
use crate::primitive::Arc;

/// Sends messages; see the [module](super). Clones send into the same channel.
///
/// ```
/// let (tx, rx) = volt_sync::mpmc::unbounded();
/// let senders: Vec<_> = (0..4).map(|_| tx.clone()).collect();
/// drop(tx);
/// let threads = senders.into_iter().map(|tx| std::thread::spawn(move || tx.try_send(1).unwrap()));
/// threads.for_each(|thread| thread.join().unwrap());
/// let sum: i32 = std::iter::from_fn(|| rx.blocking_recv()).sum();
/// assert_eq!(sum, 4);
/// ```
pub struct Sender<T> {
    pub(super) channel: Arc<Channel<T>>,
    /// What the `Sink` of this handle waits with.
    #[cfg(feature = "futures")]
    pub(super) sink: super::stream::SinkState,
}

impl<T> Sender<T> {
    /// A handle that has been counted.
    pub(super) fn new(channel: Arc<Channel<T>>) -> Self {
        Self {
            channel,
            #[cfg(feature = "futures")]
            sink: Default::default(),
        }
    }

    /// Sends a message, and waits for a free place if there is none.
    ///
    /// # Errors
    /// Gives the message back if the channel is closed, or closes while this waits.
    ///
    /// # Panics
    /// If the future is polled again after it completed.
    ///
    /// # Cancel safety
    /// A future that is dropped before it completes has not sent; the message is dropped with it,
    /// and its place in the order of waiting senders is lost.
    ///
    /// # Cost
    /// One read-modify-write if there is a place and nobody waits for it.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (tx, rx) = volt_sync::mpmc::bounded(1);
    /// tx.send(1).await.unwrap();
    /// drop(rx);
    /// assert_eq!(tx.send(2).await.unwrap_err().0, 2);
    /// # });
    /// ```
    #[inline]
    pub fn send(&self, value: T) -> SendFuture<'_, T> {
        SendFuture { channel: &self.channel, value: Some(value), waiter: Waiter::new(1) }
    }

    /// Sends a message if there is a free place that nobody waits for.
    ///
    /// # Errors
    /// Gives the message back: [`Full`](TrySendError::Full) or [`Closed`](TrySendError::Closed).
    ///
    /// ```
    /// use volt_sync::mpmc::{self, TrySendError};
    /// let (tx, _rx) = mpmc::bounded(1);
    /// assert_eq!(tx.try_send(1), Ok(()));
    /// assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
    /// ```
    #[inline]
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.channel.try_send(value)
    }

    /// As [`send`](Self::send), but blocks the calling thread. Not for use inside a task.
    ///
    /// # Errors
    /// As `send`.
    ///
    /// # Panics
    /// Where a Volt runtime polls futures: in a task, in the future of `block_on`, and in wakers and hooks that it calls.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::mpmc::bounded(1);
    /// let thread = std::thread::spawn(move || (0..3).try_for_each(|i| tx.blocking_send(i)));
    /// assert_eq!(std::iter::from_fn(|| rx.blocking_recv()).sum::<i32>(), 3);
    /// thread.join().unwrap().unwrap();
    /// ```
    #[track_caller]
    pub fn blocking_send(&self, value: T) -> Result<(), SendError<T>> {
        assert_may_block("mpmc::Sender::blocking_send");
        match self.try_send(value) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(value)) => Err(SendError(value)),
            Err(TrySendError::Full(value)) => block_on(self.send(value)),
        }
    }

    /// Waits until the channel is closed: by [`close`](Self::close), or because there is no
    /// receiver left. Cancel safe.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (tx, rx) = volt_sync::mpmc::bounded::<()>(1);
    /// drop(rx);
    /// tx.closed().await;
    /// # });
    /// ```
    pub fn closed(&self) -> ClosedFuture<'_, T> {
        ClosedFuture(WaitClosed::new(&*self.channel))
    }

    /// A handle that does not keep the channel open.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::mpmc::bounded::<()>(1);
    /// let weak = tx.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(tx);
    /// assert!(weak.upgrade().is_none());
    /// assert!(rx.is_closed());
    /// ```
    #[must_use = "a weak sender is made, and this one is there as before"]
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender { channel: self.channel.clone() }
    }

    common_methods!();
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.channel.senders.add();
        Self::new(self.channel.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // All of it is done also if a waker panics.
        let mut panic = FirstPanic::new();
        #[cfg(feature = "futures")]
        panic.catch(|| self.release_sink());
        if self.channel.senders.remove() {
            panic.catch(|| {
                self.channel.close();
            });
        }
        panic.resume();
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("channel", &self.channel).finish()
    }
}

/// A [`Sender`] that does not keep the channel open; see [`Sender::downgrade`].
///
/// ```
/// let (tx, rx) = volt_sync::mpmc::unbounded::<()>();
/// let weak = tx.downgrade();
/// drop(tx);
/// assert_eq!(rx.blocking_recv(), None, "a weak sender does not count");
/// # drop(weak);
/// ```
pub struct WeakSender<T> {
    channel: Arc<Channel<T>>,
}

impl<T> WeakSender<T> {
    /// A sender, unless all are gone.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::mpmc::unbounded();
    /// let weak = tx.downgrade();
    /// weak.upgrade().unwrap().try_send(1).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// drop(tx);
    /// assert!(weak.upgrade().is_none());
    /// ```
    pub fn upgrade(&self) -> Option<Sender<T>> {
        self.channel.senders.upgrade().then(|| Sender::new(self.channel.clone()))
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        Self { channel: self.channel.clone() }
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSender").finish_non_exhaustive()
    }
}

/// The future of [`Sender::send`].
///
/// ```
/// use volt_sync::mpmc::SendFuture;
///
/// # volt_doctest::run(|| async {
/// let (tx, rx) = volt_sync::mpmc::bounded(1);
/// let send: SendFuture<'_, u32> = tx.send(1);
/// assert!(rx.is_empty(), "nothing is sent before it is awaited");
/// send.await.unwrap();
/// assert_eq!(rx.len(), 1);
/// # });
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct SendFuture<'a, T> {
    channel: &'a Channel<T>,
    value: Option<T>,
    waiter: Waiter,
}

impl<T> Future for SendFuture<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: nothing is moved out but the value, which is not pinned.
        let this = unsafe { self.get_unchecked_mut() };
        if this.channel.send_if_plain(&mut this.value, &this.waiter) {
            return Poll::Ready(Ok(()));
        }
        // SAFETY: it came in a pin, and was not moved.
        unsafe { Pin::new_unchecked(this) }.poll_slow(cx)
    }
}

impl<T> SendFuture<'_, T> {
    #[inline(never)]
    fn poll_slow(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
        // SAFETY: the waiter is pinned with the future and not moved; the value is not pinned.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above, for the same reason.
        let waiter = unsafe { Pin::new_unchecked(&mut this.waiter) };
        this.channel.poll_send(&mut this.value, waiter, cx).map(|sent| {
            sent.map_err(|()| SendError(this.value.take().expect("not sent, so still here")))
        })
    }
}

impl<T> Drop for SendFuture<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.waiter.is_engaged() {
            // SAFETY: engaged, so it was polled, so it is pinned; it is not moved before it is freed.
            let waiter = unsafe { Pin::new_unchecked(&mut self.waiter) };
            first_panic::or_drop(|| self.channel.cancel_send(waiter), || self.value.take());
        }
    }
}

impl<T> fmt::Debug for SendFuture<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendFuture").field("waiter", &self.waiter).finish_non_exhaustive()
    }
}

/// The future of [`Sender::closed`].
///
/// ```
/// use volt_sync::mpmc::ClosedFuture;
///
/// # volt_doctest::run(|| async {
/// let (tx, rx) = volt_sync::mpmc::bounded::<u32>(1);
/// let closed: ClosedFuture<'_, u32> = tx.closed();
/// rx.close();
/// closed.await;
/// # });
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct ClosedFuture<'a, T>(WaitClosed<'a, Channel<T>>);

impl<T> Future for ClosedFuture<'_, T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the only field is pinned with the future and not moved.
        unsafe { self.map_unchecked_mut(|this| &mut this.0) }.poll(cx)
    }
}

impl<T> fmt::Debug for ClosedFuture<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClosedFuture").field("waiter", &self.0).finish_non_exhaustive()
    }
}
