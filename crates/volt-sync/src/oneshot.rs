//! A channel for one value, from one sender to one receiver.
//!
//! # When to use which
//! For the answer to a request, or for the result of a task; for a value that several wait for
//! [`SetOnce`](crate::SetOnce), for more than one value [`mpsc`](crate::mpsc). [`Sender::send`] never waits
//! and needs no `.await`; the [`Receiver`] is the future of the value.
//!
//! ```
//! use volt_sync::oneshot;
//!
//! # volt_doctest::run(|| async {
//! let (tx, rx) = oneshot::channel();
//! std::thread::spawn(move || tx.send("hello").unwrap());
//! assert_eq!(rx.await, Ok("hello"));
//! # });
//! ```
//!
//! # Closing
//! If the sender is dropped without sending, the receiver gets [`error::RecvError`]. If the receiver
//! is dropped or [closed](Receiver::close), [`Sender::send`] returns the value, and
//! [`Sender::closed`] completes, so that the sender's side can stop its work.
//!
//! # Fairness
//! There is nobody to be fair to: one sender, one receiver.
//!
//! # Cost and memory
//! [`channel`] allocates once, five words and the value. `send` is one read-modify-write, two if the receiver waits for it;
//! receiving is one load and frees the allocation without a further read-modify-write. Waiting
//! allocates nothing.
//!
//! # Cancel safety
//! The receiver may be polled by reference, `(&mut rx).await`, and dropping that borrow loses
//! nothing. Dropping the receiver itself closes the channel; a value that was sent is dropped.

mod inner;

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;

use std::fmt;
use std::future::{Future, poll_fn};
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, ready};

use self::error::{RecvError, TryRecvError};
use self::inner::{Inner, Received};
use crate::block_on::block_on;
use crate::coop;
use crate::may_block::assert_may_block;

/// The errors of this channel.
pub mod error {
    use std::{error::Error, fmt};

    /// The sender was dropped without sending, or the receiver was closed before it sent.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (tx, rx) = volt_sync::oneshot::channel::<()>();
    /// drop(tx);
    /// assert_eq!(rx.await.unwrap_err().to_string(), "channel closed");
    /// # });
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RecvError(pub(super) ());

    impl fmt::Display for RecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("channel closed")
        }
    }

    impl Error for RecvError {}

    /// Why [`try_recv`](super::Receiver::try_recv) has no value.
    ///
    /// ```
    /// use volt_sync::oneshot::{channel, error::TryRecvError};
    ///
    /// let (tx, mut rx) = channel();
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.send(1).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum TryRecvError {
        /// The sender has not sent yet.
        Empty,
        /// The sender is gone without sending, or the value has been taken.
        Closed,
    }

    impl fmt::Display for TryRecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(match self {
                Self::Empty => "channel empty",
                Self::Closed => "channel closed",
            })
        }
    }

    impl Error for TryRecvError {}
}

/// Sends the value. Made by [`channel`].
///
/// ```
/// let (tx, rx) = volt_sync::oneshot::channel();
/// std::thread::spawn(move || tx.send(1).unwrap());
/// assert_eq!(rx.blocking_recv(), Ok(1));
/// ```
pub struct Sender<T> {
    /// Invariant: alive. The sender frees it only after the receiver has left it (`inner`).
    inner: NonNull<Inner<T>>,
}

/// The future of the value. Made by [`channel`].
///
/// Resolves to `Err` if the sender is dropped without sending.
///
/// ```
/// # volt_doctest::run(|| async {
/// let (tx, mut rx) = volt_sync::oneshot::channel();
/// tx.send(1).unwrap();
/// // By reference, as in a `select!` in a loop.
/// assert_eq!((&mut rx).await, Ok(1));
/// # });
/// ```
///
/// # Panics
/// When polled again after it was ready.
pub struct Receiver<T> {
    /// Invariant: alive. `None` once the value or an error was returned.
    inner: Option<NonNull<Inner<T>>>,
}

// SAFETY: the two halves share `Inner` as its protocol says; a `T` moves from one thread to another.
unsafe impl<T: Send> Send for Sender<T> {}
// SAFETY: `&Sender` only reads the state word.
unsafe impl<T: Send> Sync for Sender<T> {}
// SAFETY: as for `Sender`.
unsafe impl<T: Send> Send for Receiver<T> {}
// SAFETY: `&Receiver` only reads the state word.
unsafe impl<T: Send> Sync for Receiver<T> {}

impl<T> Unpin for Sender<T> {}
impl<T> Unpin for Receiver<T> {}
impl<T> std::panic::UnwindSafe for Sender<T> {}
impl<T> std::panic::RefUnwindSafe for Sender<T> {}
impl<T> std::panic::UnwindSafe for Receiver<T> {}
impl<T> std::panic::RefUnwindSafe for Receiver<T> {}

/// Makes a channel for one value. One allocation.
///
/// ```
/// let (tx, mut rx) = volt_sync::oneshot::channel();
/// tx.send(7).unwrap();
/// assert_eq!(rx.try_recv(), Ok(7));
/// ```
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let inner = Inner::allocate();
    (Sender { inner }, Receiver { inner: Some(inner) })
}

impl<T> Sender<T> {
    /// Sends `value` and wakes the receiver. Never waits.
    ///
    /// # Errors
    /// Returns the value if the receiver is closed or gone. `Ok` does not mean that it will be
    /// received: the receiver may be dropped before it looks.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::oneshot::channel();
    /// drop(rx);
    /// assert_eq!(tx.send("unheard"), Err("unheard"));
    /// ```
    #[inline]
    pub fn send(self, value: T) -> Result<(), T> {
        let this = ManuallyDrop::new(self);
        // SAFETY: alive (invariant of `inner`), and `this` is never used again.
        unsafe { Inner::send(this.inner, value) }
    }

    /// Completes when the receiver is closed or dropped.
    ///
    /// Cancel safe.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (mut tx, rx) = volt_sync::oneshot::channel::<u32>();
    /// drop(rx);
    /// tx.closed().await;
    /// # });
    /// ```
    pub async fn closed(&mut self) {
        poll_fn(|cx| self.poll_closed(cx)).await;
    }

    /// True once the receiver is closed or dropped.
    ///
    /// ```
    /// let (tx, mut rx) = volt_sync::oneshot::channel::<u32>();
    /// assert!(!tx.is_closed());
    /// rx.close();
    /// assert!(tx.is_closed());
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.inner().is_closed()
    }

    /// Ready when the receiver is closed or dropped; otherwise registers the task to be woken.
    ///
    /// ```
    /// use std::task::Poll;
    /// # volt_doctest::run(|| async {
    /// let (mut tx, rx) = volt_sync::oneshot::channel::<u32>();
    /// std::future::poll_fn(|cx| {
    ///     assert!(tx.poll_closed(cx).is_pending());
    ///     Poll::Ready(())
    /// }).await;
    /// # drop(rx);
    /// # });
    /// ```
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(coop::poll_proceed(cx));
        ready!(self.inner().poll_closed(cx.waker()));
        coop::made_progress();
        Poll::Ready(())
    }

    fn inner(&self) -> &Inner<T> {
        // SAFETY: alive (invariant of the field).
        unsafe { self.inner.as_ref() }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // SAFETY: alive (invariant of `inner`), and `self` is gone after this.
        unsafe { Inner::drop_sender(self.inner) };
    }
}

impl<T> Receiver<T> {
    /// Refuses a value that has not been sent yet. One that has can still be received.
    ///
    /// ```
    /// let (tx, mut rx) = volt_sync::oneshot::channel();
    /// rx.close();
    /// assert_eq!(tx.send(1), Err(1));
    /// ```
    pub fn close(&mut self) {
        if let Some(inner) = self.inner() {
            inner.close();
        }
    }

    /// True once this receiver has returned a value or an error: polling it again would panic.
    ///
    /// ```
    /// let (tx, mut rx) = volt_sync::oneshot::channel();
    /// tx.send(1).unwrap();
    /// assert!(!rx.is_terminated());
    /// rx.try_recv().unwrap();
    /// assert!(rx.is_terminated());
    /// ```
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        self.inner.is_none()
    }

    /// True if there is no value to receive at this moment.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::oneshot::channel();
    /// assert!(rx.is_empty());
    /// tx.send(1).unwrap();
    /// assert!(!rx.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner().is_none_or(|inner| !inner.has_value())
    }

    /// Takes the value if it is there. Never waits.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] if the sender may still send, [`TryRecvError::Closed`] if it cannot
    /// or if the value was taken before.
    ///
    /// ```
    /// use volt_sync::oneshot::{self, error::TryRecvError};
    ///
    /// let (tx, mut rx) = oneshot::channel();
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.send(1).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    /// ```
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let Some(inner) = self.inner else { return Err(TryRecvError::Closed) };
        // SAFETY: alive (invariant of the field).
        match unsafe { Inner::try_recv(inner) } {
            Received::Nothing => Err(TryRecvError::Empty),
            Received::Closed => {
                self.leave();
                Err(TryRecvError::Closed)
            }
            Received::Value(value) => {
                // It was freed when the value was taken out.
                self.inner = None;
                Ok(value)
            }
        }
    }

    /// Waits for the value on this thread.
    ///
    /// # Errors
    /// As awaiting the receiver.
    ///
    /// # Panics
    /// Where a Volt runtime polls futures: in a task, in the future of `block_on`, and in wakers and hooks that it calls.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::oneshot::channel();
    /// std::thread::spawn(move || tx.send(3).unwrap());
    /// assert_eq!(rx.blocking_recv(), Ok(3));
    /// ```
    #[track_caller]
    pub fn blocking_recv(self) -> Result<T, RecvError> {
        assert_may_block("oneshot::Receiver::blocking_recv");
        block_on(self)
    }

    fn inner(&self) -> Option<&Inner<T>> {
        // SAFETY: alive (invariant of the field).
        self.inner.map(|inner| unsafe { inner.as_ref() })
    }

    /// Gives the shared memory up.
    #[inline]
    fn leave(&mut self) {
        if let Some(inner) = self.inner.take() {
            // SAFETY: alive (invariant of the field), and no longer referred to from here.
            unsafe { Inner::drop_receiver(inner) };
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(inner) = self.inner else { polled_again() };
        ready!(coop::poll_proceed(cx));
        // SAFETY: alive (invariant of the field).
        match unsafe { Inner::try_recv(inner) } {
            Received::Value(value) => {
                // It was freed when the value was taken out.
                self.inner = None;
                coop::made_progress();
                Poll::Ready(Ok(value))
            }
            _ => self.poll_slow(cx),
        }
    }
}

impl<T> Receiver<T> {
    /// Waits, or learns that there will be no value. Apart, so that the rest of a poll is small.
    #[cold]
    fn poll_slow(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, RecvError>> {
        let inner = self.inner().expect("polled until it was ready");
        ready!(inner.poll_complete(cx.waker()));
        coop::made_progress();
        match self.try_recv() {
            Ok(value) => Poll::Ready(Ok(value)),
            Err(TryRecvError::Closed) => Poll::Ready(Err(RecvError(()))),
            Err(TryRecvError::Empty) => unreachable!("complete, and still empty"),
        }
    }
}

#[cold]
fn polled_again() -> ! {
    panic!("`oneshot::Receiver` polled after completion")
}

impl<T> Drop for Receiver<T> {
    #[inline]
    fn drop(&mut self) {
        self.leave();
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("closed", &self.is_closed()).finish()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let empty = self.is_empty();
        f.debug_struct("Receiver")
            .field("terminated", &self.is_terminated())
            .field("empty", &empty)
            .finish()
    }
}
