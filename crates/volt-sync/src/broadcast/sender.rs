//! The sending half of `broadcast`.
//!
//! | Edge  | Release side    | Acquire side           | Carries                    | Model              |
//! |-------|-----------------|------------------------|----------------------------|--------------------|
//! | [BS1] | a sender's drop | the last sender's drop | what the senders did       | `broadcast::model` |
#![forbid(unsafe_code)]

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::task::{Poll, ready};

use super::Receiver;
use super::error::SendError;
use super::ring::Ring;
use crate::cache_padded::is_quickly_allocated;
use crate::coop;
use crate::event::Event;
use crate::primitive::{Arc, AtomicUsize};

/// What all handles of a channel share.
pub(super) struct Shared<T> {
    pub(super) ring: Ring<T>,
    senders: AtomicUsize,
    weak_senders: AtomicUsize,
    /// A new value, or the close.
    pub(super) arrived: Event,
    /// The last receiver has left.
    pub(super) abandoned: Event,
}

const _: () = assert!(is_quickly_allocated::<Shared<u64>>());

impl<T> Shared<T> {
    pub(super) fn receivers(&self) -> usize {
        usize::try_from(self.ring.lock().receivers).unwrap_or(usize::MAX)
    }

    pub(super) fn sender_count(&self) -> usize {
        // ORD relaxed: a number, outdated when it is returned.
        self.senders.load(Relaxed)
    }

    pub(super) fn weak_count(&self) -> usize {
        // ORD relaxed: a number, outdated when it is returned.
        self.weak_senders.load(Relaxed)
    }
}

/// Sends values to all receivers. Made by [`channel`](super::channel) or [`Sender::new`]; clones send
/// to the same channel, which closes when the last one is dropped.
///
/// ```
/// let (tx, mut rx) = volt_sync::broadcast::channel(4);
/// let other = tx.clone();
/// tx.send(1).unwrap();
/// other.send(2).unwrap();
/// drop((tx, other));
/// assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1), Ok(2)));
/// assert!(rx.is_closed());
/// ```
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// A channel without a receiver yet; [`subscribe`](Self::subscribe) makes one.
    ///
    /// # Panics
    /// As [`channel`](super::channel).
    ///
    /// ```
    /// let tx = volt_sync::broadcast::Sender::new(4);
    /// let mut rx = tx.subscribe();
    /// tx.send(1).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "broadcast channel capacity cannot be zero");
        let most = usize::MAX >> 1;
        assert!(capacity <= most, "broadcast channel capacity exceeded `usize::MAX / 2`");
        Self {
            shared: Arc::new(Shared {
                ring: Ring::new(capacity.next_power_of_two()),
                senders: AtomicUsize::new(1),
                weak_senders: AtomicUsize::new(0),
                arrived: Event::new(),
                abandoned: Event::new(),
            }),
        }
    }

    /// Sends `value` to every receiver; returns how many there are. Never waits for them to receive.
    /// If the value that it overwrites is just being cloned, it waits for the end of that
    /// [`Clone`](super#cloning).
    ///
    /// # Errors
    /// Returns the value if there is no receiver. A later [`subscribe`](Self::subscribe) makes the
    /// channel usable again.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::broadcast::channel(4);
    /// assert_eq!(tx.send(1).unwrap(), 1);
    /// drop(rx);
    /// assert_eq!(tx.send(2).unwrap_err().0, 2);
    /// ```
    pub fn send(&self, value: T) -> Result<usize, SendError<T>> {
        let (receivers, overwritten) = self.shared.ring.write(value).map_err(SendError)?;
        // A receiver listens and then looks under the tail's lock. Its lock comes either before ours,
        // then we see it listening, or after, then it sees the value.
        let panic = self.shared.arrived.notify_if_waiting();
        if panic.happened() {
            panic.resume_without(overwritten);
        }
        drop(overwritten);
        Ok(usize::try_from(receivers).unwrap_or(usize::MAX))
    }

    /// A receiver of the values sent from now on.
    ///
    /// # Panics
    /// If the channel has 2^62 receivers.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::broadcast::channel(4);
    /// tx.send(1).unwrap();
    /// let mut late = tx.subscribe();
    /// tx.send(2).unwrap();
    /// assert_eq!(late.try_recv(), Ok(2));
    /// ```
    #[must_use]
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver::new(self.shared.clone())
    }

    /// The number of values that some receiver has not got yet.
    ///
    /// ```
    /// let (tx, mut rx) = volt_sync::broadcast::channel(4);
    /// tx.send(1).unwrap();
    /// tx.send(2).unwrap();
    /// assert_eq!(tx.len(), 2);
    /// rx.try_recv().unwrap();
    /// assert_eq!(tx.len(), 1);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        let ring = &self.shared.ring;
        let tail = ring.lock();
        let held = ring.capacity().min(tail.position);
        let oldest = tail.position - held;
        // Values are not always finished in order: from the first one that is awaited on.
        let first = (oldest..tail.position).find(|position| ring.is_awaited(*position));
        first.map_or(0, |first| usize::try_from(tail.position - first).unwrap_or(usize::MAX))
    }

    /// True if every receiver has got every value.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::broadcast::channel(4);
    /// assert!(tx.is_empty());
    /// tx.send(1).unwrap();
    /// assert!(!tx.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of receivers.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::broadcast::channel::<u8>(4);
    /// let _other = tx.subscribe();
    /// assert_eq!(tx.receiver_count(), 2);
    /// ```
    #[must_use]
    pub fn receiver_count(&self) -> usize {
        self.shared.receivers()
    }

    /// True if both send to the same channel.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::broadcast::channel::<u8>(4);
    /// assert!(tx.same_channel(&tx.clone()));
    /// ```
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Completes when there is no receiver. Cancel safe.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (tx, rx) = volt_sync::broadcast::channel::<u8>(4);
    /// drop(rx);
    /// tx.closed().await;
    /// # });
    /// ```
    pub async fn closed(&self) {
        let mut listener = pin!(self.shared.abandoned.listener());
        poll_fn(|cx| {
            ready!(coop::poll_proceed(cx));
            if self.receiver_count() > 0 {
                listener.as_mut().listen(cx.waker());
                if self.receiver_count() > 0 {
                    return Poll::Pending;
                }
            }
            coop::made_progress();
            Poll::Ready(())
        })
        .await;
    }

    /// A handle that does not keep the channel open.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::broadcast::channel::<u8>(4);
    /// let weak = tx.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(tx);
    /// assert!(weak.upgrade().is_none());
    /// ```
    #[must_use]
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender::new(self.shared.clone())
    }

    /// The number of senders.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::broadcast::channel::<u8>(4);
    /// let _other = tx.clone();
    /// assert_eq!(tx.strong_count(), 2);
    /// ```
    #[must_use]
    pub fn strong_count(&self) -> usize {
        self.shared.sender_count()
    }

    /// The number of weak senders.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::broadcast::channel::<u8>(4);
    /// let _weak = tx.downgrade();
    /// assert_eq!(tx.weak_count(), 1);
    /// ```
    #[must_use]
    pub fn weak_count(&self) -> usize {
        self.shared.weak_count()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        // ORD relaxed: this sender keeps the count above zero.
        self.shared.senders.fetch_add(1, Relaxed);
        Self { shared: self.shared.clone() }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // ORD[BS1] release: what this sender did comes before the close.
        // ORD[BS1] acquire: what the others did comes before the close.
        if self.shared.senders.fetch_sub(1, AcqRel) == 1 {
            self.shared.ring.lock().closed = true;
            self.shared.arrived.notify_all().resume();
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("broadcast::Sender").finish_non_exhaustive()
    }
}

/// A sender that does not keep the channel open; see [`Sender::downgrade`].
///
/// ```
/// let (tx, mut rx) = volt_sync::broadcast::channel(4);
/// let weak = tx.downgrade();
/// weak.upgrade().unwrap().send(1).unwrap();
/// assert_eq!(rx.try_recv(), Ok(1));
/// drop(tx);
/// assert!(weak.upgrade().is_none());
/// ```
pub struct WeakSender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> WeakSender<T> {
    fn new(shared: Arc<Shared<T>>) -> Self {
        // ORD relaxed: only a number.
        shared.weak_senders.fetch_add(1, Relaxed);
        Self { shared }
    }

    /// A sender, unless the channel is closed.
    ///
    /// ```
    /// let (tx, mut rx) = volt_sync::broadcast::channel(4);
    /// let weak = tx.downgrade();
    /// weak.upgrade().unwrap().send(1).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// ```
    #[must_use]
    pub fn upgrade(&self) -> Option<Sender<T>> {
        let senders = &self.shared.senders;
        // ORD relaxed: the exchange decides.
        let mut count = senders.load(Relaxed);
        while count > 0 {
            // ORD relaxed: success: the count is above zero, so another sender keeps the channel
            // open; nothing of it is used on failure.
            match senders.compare_exchange_weak(count, count + 1, Relaxed, Relaxed) {
                Ok(_) => return Some(Sender { shared: self.shared.clone() }),
                Err(now) => count = now,
            }
        }
        None
    }

    /// The number of senders.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::broadcast::channel::<u8>(4);
    /// assert_eq!(tx.downgrade().strong_count(), 1);
    /// ```
    #[must_use]
    pub fn strong_count(&self) -> usize {
        self.shared.sender_count()
    }

    /// The number of weak senders.
    ///
    /// ```
    /// let (tx, _rx) = volt_sync::broadcast::channel::<u8>(4);
    /// assert_eq!(tx.downgrade().weak_count(), 1);
    /// ```
    #[must_use]
    pub fn weak_count(&self) -> usize {
        self.shared.weak_count()
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        Self::new(self.shared.clone())
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        // ORD relaxed: only a number.
        self.shared.weak_senders.fetch_sub(1, Relaxed);
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("broadcast::WeakSender").finish_non_exhaustive()
    }
}
