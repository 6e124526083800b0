//! The receiving half of `broadcast`.
#![forbid(unsafe_code)]

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, ready};

use super::error::{RecvError, TryRecvError};
use super::ring::Taken;
use super::sender::Shared;
use crate::block_on::block_on;
use crate::coop;
use crate::first_panic::FirstPanic;
use crate::may_block::assert_may_block;
use crate::primitive::Arc;

/// Receives a clone of every value sent after it subscribed. Made by [`channel`](super::channel) or
/// [`Sender::subscribe`](super::Sender::subscribe).
///
/// ```
/// # volt_doctest::run(|| async {
/// let (tx, mut one) = volt_sync::broadcast::channel(4);
/// tx.send(1).unwrap();
/// let mut two = tx.subscribe();
/// tx.send(2).unwrap();
/// assert_eq!((one.recv().await, one.recv().await), (Ok(1), Ok(2)));
/// assert_eq!(two.recv().await, Ok(2), "sent after it subscribed");
/// # });
/// ```
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// The position of the next value.
    next: u64,
}

impl<T> Receiver<T> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        let mut tail = shared.ring.lock();
        assert!(tail.receivers < 1 << 62, "too many receivers of a broadcast channel");
        tail.receivers += 1;
        let next = tail.position;
        drop(tail);
        Self { shared, next }
    }

    /// The number of values that were sent and that this receiver has not got, those that were
    /// overwritten meanwhile included.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::broadcast::channel(4);
    /// tx.send(1).unwrap();
    /// assert_eq!(rx.len(), 1);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        let tail = self.shared.ring.lock().position;
        usize::try_from(tail.wrapping_sub(self.next)).unwrap_or(usize::MAX)
    }

    /// True if this receiver has got every value.
    ///
    /// ```
    /// let (_tx, rx) = volt_sync::broadcast::channel::<u8>(4);
    /// assert!(rx.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if both receive from the same channel.
    ///
    /// ```
    /// let (_tx, rx) = volt_sync::broadcast::channel::<u8>(4);
    /// assert!(rx.same_channel(&rx.resubscribe()));
    /// ```
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The number of senders.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::broadcast::channel::<u8>(4);
    /// assert_eq!(rx.sender_strong_count(), 1);
    /// drop(tx);
    /// assert_eq!(rx.sender_strong_count(), 0);
    /// ```
    #[must_use]
    pub fn sender_strong_count(&self) -> usize {
        self.shared.sender_count()
    }

    /// The number of weak senders.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::broadcast::channel::<u8>(4);
    /// let weak = tx.downgrade();
    /// assert_eq!(rx.sender_weak_count(), 1);
    /// drop(weak);
    /// assert_eq!(rx.sender_weak_count(), 0);
    /// ```
    #[must_use]
    pub fn sender_weak_count(&self) -> usize {
        self.shared.weak_count()
    }

    /// True once every sender is gone. There may still be values to receive.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::broadcast::channel::<u8>(4);
    /// drop(tx);
    /// assert!(rx.is_closed());
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.ring.lock().closed
    }

    /// Another receiver, of the values sent from now on.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::broadcast::channel(4);
    /// tx.send(1).unwrap();
    /// assert!(rx.resubscribe().is_empty());
    /// ```
    #[must_use]
    pub fn resubscribe(&self) -> Self {
        Self::new(self.shared.clone())
    }
}

/// Holds the slot of the value at `next`, and moves `next` on.
#[inline]
fn take<'a, T>(shared: &'a Shared<T>, next: &mut u64) -> Result<Taken<'a, T>, TryRecvError> {
    loop {
        if let Some(taken) = shared.ring.take(*next) {
            *next += 1;
            return Ok(taken);
        }
        locate(shared, next)?;
    }
}

/// True if a receiver whose next value is that at `next` has no reason to wait.
fn has_news<T>(shared: &Shared<T>, next: u64) -> bool {
    let tail = shared.ring.lock();
    next != tail.position || tail.closed
}

/// Why the value at `next` was not there. `Ok` if it is by now.
#[cold]
fn locate<T>(shared: &Shared<T>, next: &mut u64) -> Result<(), TryRecvError> {
    let tail = shared.ring.lock();
    if *next == tail.position {
        return Err(if tail.closed { TryRecvError::Closed } else { TryRecvError::Empty });
    }
    let oldest = tail.position.saturating_sub(shared.ring.capacity());
    if *next >= oldest {
        return Ok(());
    }
    let missed = oldest - *next;
    *next = oldest;
    Err(TryRecvError::Lagged(missed))
}

impl<T: Clone> Receiver<T> {
    /// Takes the next value if it is there. Never waits for a sender.
    ///
    /// # Errors
    /// See [`TryRecvError`].
    ///
    /// # Panics
    /// With a panic of the value's `Clone`; the value counts as received then.
    ///
    /// ```
    /// use volt_sync::broadcast::{self, error::TryRecvError};
    ///
    /// let (tx, mut rx) = broadcast::channel(4);
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.send(1).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// ```
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        take(&self.shared, &mut self.next).map(Taken::receive)
    }

    /// Waits for the next value.
    ///
    /// Cancel safe: no value is lost by dropping the future.
    ///
    /// # Errors
    /// [`RecvError::Closed`] if every sender is gone and every value was received,
    /// [`RecvError::Lagged`] if values were overwritten; the next call continues with the oldest one
    /// that is left.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (tx, mut rx) = volt_sync::broadcast::channel(4);
    /// std::thread::spawn(move || tx.send(1).unwrap());
    /// assert_eq!(rx.recv().await, Ok(1));
    /// assert!(rx.recv().await.is_err());
    /// # });
    /// ```
    pub async fn recv(&mut self) -> Result<T, RecvError> {
        let Self { shared, next } = self;
        let mut listener = pin!(shared.arrived.listener());
        poll_fn(|cx| {
            ready!(coop::poll_proceed(cx));
            loop {
                if !listener.as_mut().is_waiting() {
                    let received = match take(shared, next) {
                        Ok(taken) => Some(Ok(taken.receive())),
                        Err(TryRecvError::Empty) => None,
                        Err(TryRecvError::Closed) => Some(Err(RecvError::Closed)),
                        Err(TryRecvError::Lagged(missed)) => Some(Err(RecvError::Lagged(missed))),
                    };
                    if let Some(received) = received {
                        coop::made_progress();
                        return Poll::Ready(received);
                    }
                }
                listener.as_mut().listen(cx.waker());
                if !has_news(shared, *next) {
                    return Poll::Pending;
                }
                // Before the value is taken: a waker that panics in drop would lose it.
                listener.as_mut().leave();
            }
        })
        .await
    }

    /// Waits for the next value on this thread.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    ///
    /// # Panics
    /// Where a Volt runtime polls futures: in a task, in the future of `block_on`, and in wakers and hooks that it calls.
    ///
    /// ```
    /// let (tx, mut rx) = volt_sync::broadcast::channel(4);
    /// std::thread::spawn(move || tx.send(1).unwrap());
    /// assert_eq!(rx.blocking_recv(), Ok(1));
    /// ```
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Result<T, RecvError> {
        assert_may_block("broadcast::Receiver::blocking_recv");
        block_on(self.recv())
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut tail = self.shared.ring.lock();
        tail.receivers -= 1;
        let (end, last) = (tail.position, tail.receivers == 0);
        drop(tail);
        // The other values go, and those who wait are woken, also if a value panics.
        let mut panic = FirstPanic::new();
        // The values that still count on this receiver; those that are overwritten are skipped.
        self.next = self.next.max(end.saturating_sub(self.shared.ring.capacity()));
        while self.next < end {
            if let Some(taken) = self.shared.ring.take(self.next) {
                let value = taken.give_up();
                panic.catch(|| drop(value));
            }
            self.next += 1;
        }
        // Who hears that nobody receives any more finds no value left.
        if last {
            panic.catch(|| self.shared.abandoned.notify_all().resume());
        }
        panic.resume();
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("broadcast::Receiver").field("next", &self.next).finish_non_exhaustive()
    }
}
