//! The receiving half of `watch`.
#![forbid(unsafe_code)]

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::task::{Poll, ready};

use super::error::RecvError;
use super::{CLOSED, Handle, Ref, STEP};
use crate::coop;

/// Looks at the value. Made by [`channel`](super::channel) or
/// [`Sender::subscribe`](super::Sender::subscribe).
///
/// A clone has seen what the original has.
///
/// ```
/// # volt_doctest::run(|| async {
/// let (tx, mut rx) = volt_sync::watch::channel(0);
/// tx.send(1).unwrap();
/// tx.send(2).unwrap();
/// rx.changed().await.unwrap();
/// assert_eq!(*rx.borrow_and_update(), 2, "only the newest");
/// assert!(!rx.clone().has_changed().unwrap());
/// # });
/// ```
pub struct Receiver<T> {
    shared: Handle<T>,
    /// The version that this receiver has seen, without CLOSED.
    seen: u64,
}

impl<T> Receiver<T> {
    pub(super) fn new(shared: Handle<T>, version: u64) -> Self {
        // ORD relaxed: the caller's handle keeps the channel alive.
        shared.receivers.fetch_add(1, Relaxed);
        Self { shared, seen: version & !CLOSED }
    }

    /// Looks at the newest value, without marking it as seen. See the module's notes on
    /// [borrows](super#borrows).
    ///
    /// ```
    /// let (tx, rx) = volt_sync::watch::channel(1);
    /// assert_eq!(*rx.borrow(), 1);
    /// ```
    pub fn borrow(&self) -> Ref<'_, T> {
        let value = self.shared.value.read();
        // Under the lock, so that it is the version of this value.
        let has_changed = self.shared.version() & !CLOSED != self.seen;
        Ref { value, has_changed }
    }

    /// Looks at the newest value and marks it as seen.
    ///
    /// ```
    /// let (tx, mut rx) = volt_sync::watch::channel(1);
    /// tx.send(2).unwrap();
    /// assert_eq!(*rx.borrow_and_update(), 2);
    /// assert!(!rx.has_changed().unwrap());
    /// ```
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let value = self.shared.value.read();
        let version = self.shared.version() & !CLOSED;
        let has_changed = std::mem::replace(&mut self.seen, version) != version;
        Ref { value, has_changed }
    }

    /// True if there is a value that this receiver has not seen.
    ///
    /// # Errors
    /// If every sender is gone.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::watch::channel(1);
    /// tx.send(2).unwrap();
    /// assert!(rx.has_changed().unwrap());
    /// drop(tx);
    /// assert!(rx.has_changed().is_err());
    /// ```
    pub fn has_changed(&self) -> Result<bool, RecvError> {
        let version = self.shared.version();
        if version & CLOSED != 0 {
            return Err(RecvError(()));
        }
        Ok(version != self.seen)
    }

    /// True once every sender is gone. There may still be a value that this receiver has not seen.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::watch::channel(1);
    /// assert!(!rx.is_closed());
    /// drop(tx);
    /// assert!(rx.is_closed());
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.version() & CLOSED != 0
    }

    /// Treats the current value as not seen.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (_tx, mut rx) = volt_sync::watch::channel(1);
    /// rx.mark_changed();
    /// rx.changed().await.unwrap();
    /// # });
    /// ```
    pub fn mark_changed(&mut self) {
        self.seen = (self.shared.version() & !CLOSED).wrapping_sub(STEP);
    }

    /// Treats the current value as seen.
    ///
    /// ```
    /// let (tx, mut rx) = volt_sync::watch::channel(1);
    /// tx.send(2).unwrap();
    /// rx.mark_unchanged();
    /// assert!(!rx.has_changed().unwrap());
    /// ```
    pub fn mark_unchanged(&mut self) {
        self.seen = self.shared.version() & !CLOSED;
    }

    /// Waits for a value that this receiver has not seen, and marks it as seen.
    ///
    /// Cancel safe: a change is not marked as seen unless this completes.
    ///
    /// # Errors
    /// If every sender is gone and the last value was seen.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (tx, mut rx) = volt_sync::watch::channel(1);
    /// tx.send(2).unwrap();
    /// drop(tx);
    /// assert!(rx.changed().await.is_ok());
    /// assert!(rx.changed().await.is_err());
    /// # });
    /// ```
    pub async fn changed(&mut self) -> Result<(), RecvError> {
        let version = self.wait_for_news().await?;
        self.seen = version;
        Ok(())
    }

    /// Waits until `condition` holds for the value, and returns it, marked as seen. Looks at the
    /// current value first.
    ///
    /// Cancel safe: values that were looked at and did not fulfil the condition are marked as seen.
    ///
    /// # Errors
    /// If every sender is gone and the condition does not hold for the last value.
    ///
    /// # Panics
    /// With the panic of `condition`.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (tx, mut rx) = volt_sync::watch::channel(1);
    /// std::thread::spawn(move || (2..=9).for_each(|number| tx.send(number).unwrap()));
    /// assert_eq!(*rx.wait_for(|number| *number > 8).await.unwrap(), 9);
    /// # });
    /// ```
    pub async fn wait_for(
        &mut self,
        mut condition: impl FnMut(&T) -> bool,
    ) -> Result<Ref<'_, T>, RecvError> {
        poll_fn(coop::poll_proceed).await;
        loop {
            let closed = {
                let value = self.shared.value.read();
                let version = self.shared.version();
                let has_changed = version & !CLOSED != self.seen;
                self.seen = version & !CLOSED;
                if condition(&value) {
                    coop::made_progress();
                    return Ok(Ref { value, has_changed });
                }
                version & CLOSED != 0
            };
            if closed {
                coop::made_progress();
                return Err(RecvError(()));
            }
            self.wait_for_news().await?;
        }
    }

    /// True if both receive from the same channel.
    ///
    /// ```
    /// let (_tx, rx) = volt_sync::watch::channel(1);
    /// assert!(rx.same_channel(&rx.clone()));
    /// ```
    #[must_use]
    pub fn same_channel(&self, other: &Self) -> bool {
        Handle::ptr_eq(&self.shared, &other.shared)
    }

    /// Waits until the version differs from the one seen, and returns it.
    async fn wait_for_news(&self) -> Result<u64, RecvError> {
        let mut listener = pin!(self.shared.changed.listener());
        poll_fn(|cx| {
            ready!(coop::poll_proceed(cx));
            let mut news = self.news(self.shared.version());
            if news.is_pending() {
                listener.as_mut().listen(cx.waker());
                let Some(version) = self.shared.listened(cx.waker()) else { return Poll::Pending };
                news = self.news(version);
            }
            let news = ready!(news);
            coop::made_progress();
            Poll::Ready(news)
        })
        .await
    }

    fn news(&self, version: u64) -> Poll<Result<u64, RecvError>> {
        if version & !CLOSED != self.seen {
            Poll::Ready(Ok(version & !CLOSED))
        } else if version & CLOSED != 0 {
            Poll::Ready(Err(RecvError(())))
        } else {
            Poll::Pending
        }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Self::new(self.shared.clone(), self.seen)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        // ORD[WA3] release: what this receiver did before it left.
        if self.shared.receivers.fetch_sub(1, Release) == 1 {
            self.shared.abandoned.notify_all().resume();
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("seen", &(self.seen / STEP)).finish_non_exhaustive()
    }
}
