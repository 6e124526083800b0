//! The sending half of a bounded channel.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use super::error::{SendError, SendTimeoutError, TrySendError};
use super::{OwnedPermit, Permit, PermitIterator, Receiver};
use crate::block_on::block_on;
use crate::cache_padded::{Gap, is_quickly_allocated};
use crate::channel::closed::WaitClosed;
use crate::channel::handles::Handles;
use crate::channel::limited::{Limited, MAX_CAPACITY};
use crate::channel::waiter::Waiter;
use crate::delay::Delay;
use crate::first_panic;
use crate::may_block::assert_may_block;
use crate::primitive::Arc;

/// What the halves share.
#[repr(C)]
pub(super) struct Shared<T> {
    pub(super) senders: Handles,
    pub(super) weak: Handles,
    _gap: Gap,
    pub(super) channel: Limited<T>,
}

const _: () = assert!(is_quickly_allocated::<Shared<u64>>());

/// Creates a channel that holds at most `buffer` messages.
///
/// # Panics
/// If `buffer` is zero, or above [`MAX_CAPACITY`](super::MAX_CAPACITY) (`usize::MAX >> 3`).
///
/// ```
/// let (tx, mut rx) = volt_sync::mpsc::channel(1);
/// tx.try_send(1).unwrap();
/// assert_eq!(rx.try_recv(), Ok(1));
/// ```
#[track_caller]
pub fn channel<T>(buffer: usize) -> (Sender<T>, Receiver<T>) {
    assert!(buffer > 0, "mpsc bounded channel requires buffer > 0");
    assert!(
        buffer <= MAX_CAPACITY,
        "mpsc bounded channel requires buffer <= {MAX_CAPACITY}, but it is {buffer}"
    );
    let shared = Arc::new(Shared {
        senders: Handles::new(1),
        weak: Handles::new(0),
        _gap: Gap::GAP,
        channel: Limited::new(buffer),
    });
    (Sender { shared: shared.clone() }, Receiver { shared })
}

/// Sends messages to the [`Receiver`]; see the [module](super).
///
/// ```
/// let (tx, mut rx) = volt_sync::mpsc::channel(2);
/// let other = tx.clone();
/// std::thread::spawn(move || other.blocking_send(1).unwrap()).join().unwrap();
/// tx.blocking_send(2).unwrap();
/// drop(tx);
/// assert_eq!((rx.blocking_recv(), rx.blocking_recv()), (Some(1), Some(2)));
/// assert_eq!(rx.blocking_recv(), None);
/// ```
pub struct Sender<T> {
    pub(super) shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
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
    /// let (tx, rx) = volt_sync::mpsc::channel(1);
    /// tx.send(1).await.unwrap();
    /// drop(rx);
    /// assert_eq!(tx.send(2).await.unwrap_err().0, 2);
    /// # });
    /// ```
    #[inline]
    pub fn send(&self, value: T) -> impl Future<Output = Result<(), SendError<T>>> {
        self.sending(value)
    }

    #[inline]
    fn sending(&self, value: T) -> Sending<'_, T> {
        Sending { channel: &self.shared.channel, value: Some(value), waiter: Waiter::new(1) }
    }

    /// As [`send`](Self::send), but gives up, with the message, when `delay` is ready: usually the
    /// sleep of a runtime. `delay` is looked at only if the channel is full.
    ///
    /// # Errors
    /// Gives the message back: [`Timeout`](SendTimeoutError::Timeout) or
    /// [`Closed`](SendTimeoutError::Closed).
    ///
    /// # Cancel safety
    /// As `send`.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (tx, _rx) = volt_sync::mpsc::channel(1);
    /// let now = || std::future::ready(());
    /// assert!(tx.send_until(1, now()).await.is_ok());
    /// assert_eq!(tx.send_until(2, now()).await.unwrap_err().into_inner(), 2);
    /// # });
    /// ```
    pub async fn send_until<D: Future>(
        &self,
        value: T,
        delay: D,
    ) -> Result<(), SendTimeoutError<T>> {
        let mut sending = pin!(self.sending(value));
        let mut delay = pin!(delay);
        std::future::poll_fn(|cx| {
            if let Poll::Ready(sent) = sending.as_mut().poll(cx) {
                return Poll::Ready(sent.map_err(|error| SendTimeoutError::Closed(error.0)));
            }
            if delay.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let value = sending.as_mut().take_back();
            Poll::Ready(Err(SendTimeoutError::Timeout(value)))
        })
        .await
    }

    /// As [`send`](Self::send), but gives up, with the message, when `timeout` has passed since the first poll.
    ///
    /// It goes by the timer of a Volt runtime, which is asked only if the channel is full.
    /// [`send_until`](Self::send_until) goes by whatever it is given.
    ///
    /// # Errors
    /// Gives the message back: [`Timeout`](SendTimeoutError::Timeout) or
    /// [`Closed`](SendTimeoutError::Closed).
    ///
    /// # Panics
    /// If it has to wait outside of a Volt runtime, or in one that has been shut down.
    ///
    /// # Cancel safety
    /// As `send`.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// use std::time::Duration;
    /// use volt_sync::mpsc::{self, error::SendTimeoutError};
    ///
    /// let (tx, rx) = mpsc::channel(1);
    /// let ten = Duration::from_millis(10);
    /// tx.send_timeout(1, ten).await.unwrap();
    /// // With this one still in the channel, `Err(SendTimeoutError::Timeout(2))` would follow, after ten milliseconds.
    /// drop(rx);
    /// assert_eq!(tx.send_timeout(2, ten).await, Err(SendTimeoutError::Closed(2)));
    /// # });
    /// ```
    pub fn send_timeout(
        &self,
        value: T,
        timeout: Duration,
    ) -> impl Future<Output = Result<(), SendTimeoutError<T>>> {
        self.send_until(value, Delay::new(timeout))
    }

    /// Sends a message if there is a free place that nobody waits for.
    ///
    /// # Errors
    /// Gives the message back: [`Full`](TrySendError::Full) or [`Closed`](TrySendError::Closed).
    ///
    /// ```
    /// use volt_sync::mpsc::{self, error::TrySendError};
    /// let (tx, _rx) = mpsc::channel(1);
    /// assert_eq!(tx.try_send(1), Ok(()));
    /// assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
    /// ```
    #[inline]
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        self.shared.channel.try_send(message).map_err(|(value, why)| TrySendError::new(value, why))
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
    /// let (tx, mut rx) = volt_sync::mpsc::channel(1);
    /// let thread = std::thread::spawn(move || (0..3).try_for_each(|i| tx.blocking_send(i)));
    /// assert_eq!(std::iter::from_fn(|| rx.blocking_recv()).sum::<i32>(), 3);
    /// thread.join().unwrap().unwrap();
    /// ```
    #[track_caller]
    pub fn blocking_send(&self, value: T) -> Result<(), SendError<T>> {
        assert_may_block("mpsc::Sender::blocking_send");
        block_on(self.sending(value))
    }

    /// Reserves a place, and waits for a free one if there is none. The place is given back if the
    /// permit is dropped.
    ///
    /// # Errors
    /// If the channel is closed, or closes while this waits.
    ///
    /// # Cancel safety
    /// A dropped future has reserved nothing; its place in the order of waiting senders is lost.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (tx, mut rx) = volt_sync::mpsc::channel(1);
    /// let permit = tx.reserve().await.unwrap();
    /// assert!(tx.try_send(1).is_err());
    /// permit.send(2);
    /// assert_eq!(rx.recv().await, Some(2));
    /// # });
    /// ```
    pub async fn reserve(&self) -> Result<Permit<'_, T>, SendError<()>> {
        self.reserving(1).await?;
        Ok(Permit::new(&self.shared.channel))
    }

    /// Reserves `n` places, and waits until there are as many. Waiting with a large `n` holds back
    /// the senders that came later. For no places it does not wait.
    ///
    /// # Errors
    /// If the channel is closed, closes while this waits, or never holds `n` messages.
    ///
    /// # Cancel safety
    /// As [`reserve`](Self::reserve).
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (tx, mut rx) = volt_sync::mpsc::channel(2);
    /// for (i, permit) in tx.reserve_many(2).await.unwrap().enumerate() {
    ///     permit.send(i);
    /// }
    /// assert_eq!(rx.recv().await, Some(0));
    /// assert_eq!(rx.recv().await, Some(1));
    /// # });
    /// ```
    pub async fn reserve_many(&self, n: usize) -> Result<PermitIterator<'_, T>, SendError<()>> {
        if n > self.max_capacity() {
            return Err(SendError(()));
        }
        self.reserving(n).await?;
        Ok(PermitIterator::new(&self.shared.channel, n))
    }

    /// As [`reserve`](Self::reserve), but the permit owns the sender.
    ///
    /// # Errors
    /// If the channel is closed, or closes while this waits.
    ///
    /// # Cancel safety
    /// As `reserve`; the sender is dropped with the future.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (tx, mut rx) = volt_sync::mpsc::channel(1);
    /// let permit = tx.reserve_owned().await.unwrap();
    /// let tx = permit.send(1);
    /// assert_eq!(rx.recv().await, Some(1));
    /// # drop(tx);
    /// # });
    /// ```
    pub async fn reserve_owned(self) -> Result<OwnedPermit<T>, SendError<()>> {
        self.reserving(1).await?;
        Ok(OwnedPermit::new(self))
    }

    /// Reserves a place if there is a free one that nobody waits for.
    ///
    /// # Errors
    /// [`Full`](TrySendError::Full) or [`Closed`](TrySendError::Closed).
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::channel::<()>(1);
    /// let permit = tx.try_reserve().unwrap();
    /// assert!(tx.try_reserve().is_err());
    /// drop(permit);
    /// assert!(tx.try_reserve().is_ok());
    /// ```
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TrySendError<()>> {
        self.shared.channel.try_reserve(1).map_err(|why| TrySendError::new((), why))?;
        Ok(Permit::new(&self.shared.channel))
    }

    /// Reserves `n` places if there are as many and nobody waits for them, or if `n` is 0.
    ///
    /// # Errors
    /// [`Full`](TrySendError::Full), also of a closed channel that never held `n` messages, or [`Closed`](TrySendError::Closed).
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::channel::<()>(2);
    /// assert!(tx.try_reserve_many(3).is_err());
    /// assert_eq!(tx.try_reserve_many(2).unwrap().len(), 2);
    /// ```
    pub fn try_reserve_many(&self, n: usize) -> Result<PermitIterator<'_, T>, TrySendError<()>> {
        if n > self.max_capacity() {
            return Err(TrySendError::Full(()));
        }
        self.shared.channel.try_reserve(n).map_err(|why| TrySendError::new((), why))?;
        Ok(PermitIterator::new(&self.shared.channel, n))
    }

    /// As [`try_reserve`](Self::try_reserve), but the permit owns the sender.
    ///
    /// # Errors
    /// Gives the sender back: [`Full`](TrySendError::Full) or [`Closed`](TrySendError::Closed).
    ///
    /// ```
    /// let (tx, mut rx) = volt_sync::mpsc::channel(1);
    /// tx.try_reserve_owned().unwrap().send(1);
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// ```
    pub fn try_reserve_owned(self) -> Result<OwnedPermit<T>, TrySendError<Self>> {
        match self.shared.channel.try_reserve(1) {
            Ok(()) => Ok(OwnedPermit::new(self)),
            Err(why) => Err(TrySendError::new(self, why)),
        }
    }

    fn reserving(&self, need: usize) -> Reserving<'_, T> {
        Reserving { channel: &self.shared.channel, waiter: Waiter::new(need) }
    }

    /// Waits until the channel is closed: by [`Receiver::close`], or because the receiver was
    /// dropped. Cancel safe.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (tx, rx) = volt_sync::mpsc::channel::<()>(1);
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
    /// let (tx, mut rx) = volt_sync::mpsc::channel::<()>(1);
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
    /// let (tx, _rx) = volt_sync::mpsc::channel::<()>(1);
    /// let (other, _rx) = volt_sync::mpsc::channel::<()>(1);
    /// assert!(tx.same_channel(&tx.clone()));
    /// assert!(!tx.same_channel(&other));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The number of places that are free now: neither holding a message nor reserved.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::channel(2);
    /// tx.try_send(1).unwrap();
    /// assert_eq!((tx.capacity(), tx.max_capacity()), (1, 2));
    /// ```
    pub fn capacity(&self) -> usize {
        self.shared.channel.free()
    }

    /// The number of messages that the channel can hold.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::channel(2);
    /// tx.try_send(1).unwrap();
    /// assert_eq!(tx.max_capacity(), 2);
    /// ```
    pub fn max_capacity(&self) -> usize {
        self.shared.channel.capacity()
    }

    /// A handle that does not keep the channel open.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::channel::<()>(1);
    /// let weak = tx.downgrade();
    /// assert_eq!((tx.strong_count(), tx.weak_count()), (1, 1));
    /// drop(tx);
    /// assert!(weak.upgrade().is_none());
    /// ```
    #[must_use = "a weak sender is made, and this one is there as before"]
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender::new(&self.shared)
    }

    /// The number of senders, owned permits included.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::channel::<()>(1);
    /// let permit = tx.clone().try_reserve_owned().unwrap();
    /// assert_eq!(tx.strong_count(), 2);
    /// drop(permit);
    /// assert_eq!(tx.strong_count(), 1);
    /// ```
    pub fn strong_count(&self) -> usize {
        self.shared.senders.count()
    }

    /// The number of weak senders.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::channel::<()>(1);
    /// let weak = tx.downgrade();
    /// assert_eq!(tx.weak_count(), 1);
    /// drop(weak);
    /// assert_eq!(tx.weak_count(), 0);
    /// ```
    pub fn weak_count(&self) -> usize {
        self.shared.weak.count()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.shared.senders.add();
        Self { shared: self.shared.clone() }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.shared.senders.remove() {
            self.shared.channel.close();
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("channel", &self.shared.channel).finish()
    }
}

/// A [`Sender`] that does not keep the channel open; see [`Sender::downgrade`].
///
/// ```
/// let (tx, mut rx) = volt_sync::mpsc::channel::<()>(1);
/// let weak = tx.downgrade();
/// drop(tx);
/// assert_eq!(rx.blocking_recv(), None, "a weak sender does not count");
/// # drop(weak);
/// ```
pub struct WeakSender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> WeakSender<T> {
    fn new(shared: &Arc<Shared<T>>) -> Self {
        shared.weak.add();
        Self { shared: shared.clone() }
    }

    /// A sender, unless all are gone.
    ///
    /// ```
    /// let (tx, mut rx) = volt_sync::mpsc::channel(1);
    /// let weak = tx.downgrade();
    /// weak.upgrade().unwrap().try_send(1).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// drop(tx);
    /// assert!(weak.upgrade().is_none());
    /// ```
    pub fn upgrade(&self) -> Option<Sender<T>> {
        self.shared.senders.upgrade().then(|| Sender { shared: self.shared.clone() })
    }

    /// The number of senders, owned permits included.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::mpsc::channel::<()>(1);
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
    /// let (tx, _rx) = volt_sync::mpsc::channel::<()>(1);
    /// let weak = tx.downgrade();
    /// let other = weak.clone();
    /// assert_eq!(other.weak_count(), 2);
    /// ```
    pub fn weak_count(&self) -> usize {
        self.shared.weak.count()
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        Self::new(&self.shared)
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        self.shared.weak.remove();
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSender").finish_non_exhaustive()
    }
}

/// The future of `send`.
struct Sending<'a, T> {
    channel: &'a Limited<T>,
    value: Option<T>,
    waiter: Waiter,
}

impl<T> Sending<'_, T> {
    /// The message, before it is sent. The future is of no use afterwards.
    fn take_back(self: Pin<&mut Self>) -> T {
        // SAFETY: the value is not pinned, and nothing else is moved.
        let this = unsafe { self.get_unchecked_mut() };
        this.cancel();
        this.value.take().expect("not sent, so still here")
    }

    /// Waits no longer.
    #[inline]
    fn cancel(&mut self) {
        if self.waiter.is_engaged() {
            // SAFETY: engaged, so it was polled, so it is pinned; it is not moved before it is freed.
            let waiter = unsafe { Pin::new_unchecked(&mut self.waiter) };
            first_panic::or_drop(|| self.channel.cancel_sender(waiter), || self.value.take());
        }
    }
}

impl<T> Future for Sending<'_, T> {
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

impl<T> Sending<'_, T> {
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

impl<T> Drop for Sending<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.cancel();
    }
}

/// The future of `reserve`.
struct Reserving<'a, T> {
    channel: &'a Limited<T>,
    waiter: Waiter,
}

impl<T> Future for Reserving<'_, T> {
    type Output = Result<(), SendError<()>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the waiter is pinned with the future and not moved.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above, for the same reason.
        let waiter = unsafe { Pin::new_unchecked(&mut this.waiter) };
        this.channel.poll_reserve(waiter, cx).map_err(SendError)
    }
}

impl<T> Drop for Reserving<'_, T> {
    fn drop(&mut self) {
        if self.waiter.is_engaged() {
            // SAFETY: engaged, so it was polled, so it is pinned; it is not moved before it is freed.
            self.channel.cancel_sender(unsafe { Pin::new_unchecked(&mut self.waiter) });
        }
    }
}
