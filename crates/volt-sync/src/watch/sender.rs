//! The sending half of `watch`.
//!
//! The ordering edges of both halves and of what they share:
//!
//! | Edge  | Release side      | Acquire side             | Carries                           | Model          |
//! |-------|-------------------|--------------------------|-----------------------------------|----------------|
//! | [WA1] | sending           | every look at the version | what the sender did before       | `watch::model` |
//! | [WA2] | the last sender's drop | every look at the version | what it did before          | `watch::model` |
//! | [WA3] | a receiver's drop | `Sender::receiver_count` | what the receiver did before      | `watch::model` |
//! | [WA4] | a sender's drop   | the last sender's drop   | the last store to the version     | none: loom makes stores to one word in the order in which it runs them. Litmus test `order_words::a_watch_channels_last_store_does_not_erase_the_close` of volt-models |
#![forbid(unsafe_code)]

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::task::{Poll, ready};

use super::error::SendError;
use super::{CLOSED, Handle, Receiver, Ref, Shared};
use crate::coop;
use crate::first_panic::FirstPanic;

/// Replaces the value. Made by [`channel`](super::channel) or [`Sender::new`]; clones send to the
/// same channel, which closes when the last one is dropped.
///
/// ```
/// let (tx, rx) = volt_sync::watch::channel(0);
/// let other = tx.clone();
/// tx.send(1).unwrap();
/// other.send_modify(|value| *value += 1);
/// assert_eq!(*rx.borrow(), 2);
/// ```
pub struct Sender<T> {
    shared: Handle<T>,
}

impl<T> Sender<T> {
    /// A channel without a receiver yet; [`subscribe`](Self::subscribe) makes one.
    ///
    /// ```
    /// let tx = volt_sync::watch::Sender::new(1);
    /// assert_eq!(tx.receiver_count(), 0);
    /// assert_eq!(*tx.subscribe().borrow(), 1);
    /// ```
    #[must_use]
    pub fn new(init: T) -> Self {
        Self { shared: Handle::new(Shared::new(init)) }
    }

    /// Replaces the value and wakes the receivers.
    ///
    /// # Errors
    /// Returns the value if there is no receiver: then nothing is changed. `Ok` does not mean that
    /// anybody will look.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::watch::channel(1);
    /// tx.send(2).unwrap();
    /// drop(rx);
    /// assert_eq!(tx.send(3).unwrap_err().0, 3);
    /// assert_eq!(*tx.borrow(), 2);
    /// ```
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.is_closed() {
            return Err(SendError(value));
        }
        drop(self.send_replace(value));
        Ok(())
    }

    /// Changes the value in place and wakes the receivers, if there are any.
    ///
    /// # Panics
    /// With the panic of `modify`: the receivers are not woken then, and see the value as `modify`
    /// left it.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::watch::channel(vec![1]);
    /// tx.send_modify(|list| list.push(2));
    /// assert_eq!(*rx.borrow(), [1, 2]);
    /// ```
    pub fn send_modify<F>(&self, modify: F)
    where
        F: FnOnce(&mut T),
    {
        self.send_if_modified(|value| {
            modify(value);
            true
        });
    }

    /// Changes the value in place; wakes the receivers only if `modify` returns true. Returns what
    /// `modify` returned.
    ///
    /// # Panics
    /// As [`send_modify`](Self::send_modify).
    ///
    /// ```
    /// let (tx, rx) = volt_sync::watch::channel(5);
    /// let raise = |to: i32| tx.send_if_modified(|value| {
    ///     let higher = to > *value;
    ///     *value = to.max(*value);
    ///     higher
    /// });
    /// assert!(!raise(4));
    /// assert!(raise(6));
    /// assert!(rx.has_changed().unwrap());
    /// ```
    pub fn send_if_modified<F>(&self, modify: F) -> bool
    where
        F: FnOnce(&mut T) -> bool,
    {
        let (mut modified, mut panic) = (false, FirstPanic::new());
        let mut guard = self.shared.value.write_long();
        panic.catch(|| modified = modify(&mut guard));
        if modified {
            // The closure has not panicked, so that there is none to lose.
            self.shared.publish(guard).resume();
        } else {
            panic.catch(|| self.shared.leave_as_it_is(guard));
        }
        panic.resume();
        modified
    }

    /// Replaces the value, also if there is no receiver, wakes the receivers, and returns the old
    /// value.
    ///
    /// ```
    /// let tx = volt_sync::watch::Sender::new(1);
    /// assert_eq!(tx.send_replace(2), 1);
    /// ```
    pub fn send_replace(&self, value: T) -> T {
        let mut guard = self.shared.value.write();
        let old = std::mem::replace(&mut *guard, value);
        let panic = self.shared.publish(guard);
        if panic.happened() {
            panic.resume_without(old);
        }
        old
    }

    /// Looks at the value. See the module's notes on [borrows](super#borrows).
    ///
    /// ```
    /// let tx = volt_sync::watch::Sender::new(1);
    /// assert_eq!(*tx.borrow(), 1);
    /// ```
    #[must_use]
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref { value: self.shared.value.read(), has_changed: false }
    }

    /// True if there is no receiver at the moment.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::watch::channel(1);
    /// assert!(!tx.is_closed());
    /// drop(rx);
    /// assert!(tx.is_closed());
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.receiver_count() == 0
    }

    /// Completes when there is no receiver. Cancel safe.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (tx, rx) = volt_sync::watch::channel(1);
    /// drop(rx);
    /// tx.closed().await;
    /// # });
    /// ```
    pub async fn closed(&self) {
        let mut listener = pin!(self.shared.abandoned.listener());
        poll_fn(|cx| {
            ready!(coop::poll_proceed(cx));
            if !self.is_closed() {
                listener.as_mut().listen(cx.waker());
                // The last receiver takes the event's lock after its decrement, so either it finds
                // this listener or this look finds its decrement.
                if !self.is_closed() {
                    return Poll::Pending;
                }
            }
            coop::made_progress();
            Poll::Ready(())
        })
        .await;
    }

    /// A receiver that has seen the current value.
    ///
    /// ```
    /// let tx = volt_sync::watch::Sender::new(1);
    /// let rx = tx.subscribe();
    /// assert!(!rx.has_changed().unwrap());
    /// ```
    #[must_use]
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver::new(self.shared.clone(), self.shared.version())
    }

    /// The number of receivers.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::watch::channel(1);
    /// let _other = rx.clone();
    /// assert_eq!(tx.receiver_count(), 2);
    /// ```
    #[must_use]
    pub fn receiver_count(&self) -> usize {
        // ORD[WA3] acquire: whoever sees no receivers sees what they did.
        self.shared.receivers.load(Acquire)
    }

    /// The number of senders.
    ///
    /// ```
    /// let tx = volt_sync::watch::Sender::new(1);
    /// let _other = tx.clone();
    /// assert_eq!(tx.sender_count(), 2);
    /// ```
    #[must_use]
    pub fn sender_count(&self) -> usize {
        // ORD relaxed: a number, outdated when it is returned.
        self.shared.senders.load(Relaxed)
    }

    /// True if both send to the same channel.
    ///
    /// ```
    /// let tx = volt_sync::watch::Sender::new(1);
    /// assert!(tx.same_channel(&tx.clone()));
    /// ```
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        Handle::ptr_eq(&self.shared, &other.shared)
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
        // ORD[WA4] release: this sender's last store to the version comes before the last sender's
        // CLOSED bit, which it would erase otherwise.
        // ORD[WA4] acquire: the same, seen from the last one.
        if self.shared.senders.fetch_sub(1, AcqRel) == 1 {
            // ORD[WA2] release: what the last sender did before it left.
            self.shared.version.fetch_or(CLOSED, Release);
            self.shared.changed.notify_all().resume();
        }
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let receivers = self.receiver_count();
        f.debug_struct("Sender").field("receivers", &receivers).finish_non_exhaustive()
    }
}
