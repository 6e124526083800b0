//! The receiving halves: what they have in common, and that of a bounded channel.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::bounded::Shared;
use super::error::TryRecvError;
use crate::block_on::block_on;
use crate::may_block::assert_may_block;
use crate::primitive::Arc;

/// How a receiver gets messages out of its channel.
pub(super) trait Receive {
    type Message;

    /// Waits for a sender that is in the middle of a message, for nothing else.
    fn try_receive(&mut self) -> Result<Self::Message, TryRecvError>;

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Self::Message>>;

    fn poll_receive_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<Self::Message>,
        limit: usize,
    ) -> Poll<usize>;
}

/// The future of `recv`.
pub(super) struct Receiving<'a, R> {
    /// `None` once it completed.
    receiver: Option<&'a mut R>,
}

impl<'a, R> Receiving<'a, R> {
    #[inline]
    pub(super) const fn new(receiver: &'a mut R) -> Self {
        Self { receiver: Some(receiver) }
    }
}

impl<R: Receive> Future for Receiving<'_, R> {
    type Output = Option<R::Message>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<R::Message>> {
        let receiver =
            self.receiver.as_mut().expect("the future of `recv` was polled after completion");
        let received = std::task::ready!(receiver.poll_receive(cx));
        self.receiver = None;
        Poll::Ready(received)
    }
}

/// The methods that both receivers have. For the examples: how a channel is made, and how a message
/// is sent without waiting.
macro_rules! common {
    ($Receiver:ident, $channel:literal, $send:literal) => {
        impl<T> $Receiver<T> {
            /// Receives the oldest message, and waits for one if there is none. `None` if the
            /// channel is closed and empty, and no permit is outstanding.
            ///
            /// # Panics
            /// If the future is polled again after it completed.
            ///
            /// # Cancel safety
            /// A future that is dropped before it completes has received nothing.
            ///
            /// # Cost
            /// One read-modify-write if there is a message.
            ///
            /// ```
            /// # volt_doctest::run(|| async {
            #[doc = concat!("let (tx, mut rx) = volt_sync::mpsc::", $channel, ";")]
            #[doc = concat!("tx.", $send, "(1).unwrap();")]
            /// drop(tx);
            /// assert_eq!(rx.recv().await, Some(1));
            /// assert_eq!(rx.recv().await, None);
            /// # });
            /// ```
            #[inline]
            pub fn recv(&mut self) -> impl Future<Output = Option<T>> {
                Receiving::new(self)
            }

            /// Receives up to `limit` messages, appends them to `buffer`, and returns their number.
            /// Waits only if there is none at all. 0 if the channel is closed and empty, or if
            /// `limit` is 0.
            ///
            /// # Cancel safety
            /// A future that is dropped before it completes has received nothing.
            ///
            /// # Cost
            /// One read-modify-write for all of them in a bounded channel; in one of blocks one, and one for each 32 of them.
            ///
            /// ```
            /// # volt_doctest::run(|| async {
            #[doc = concat!("let (tx, mut rx) = volt_sync::mpsc::", $channel, ";")]
            #[doc = concat!("(0..3).for_each(|i| tx.", $send, "(i).unwrap());")]
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
            /// [`Empty`](TryRecvError::Empty), or [`Disconnected`](TryRecvError::Disconnected) if
            /// none can come any more.
            ///
            /// ```
            /// use volt_sync::mpsc::{self, error::TryRecvError};
            #[doc = concat!("let (tx, mut rx) = mpsc::", $channel, ";")]
            /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
            #[doc = concat!("tx.", $send, "(1).unwrap();")]
            /// drop(tx);
            /// assert_eq!(rx.try_recv(), Ok(1));
            /// assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
            /// ```
            #[inline]
            pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
                self.try_receive()
            }

            /// As [`recv`](Self::recv), but blocks the calling thread. Not for use inside a task.
            ///
            /// # Panics
            /// Where a Volt runtime polls futures: in a task, in the future of `block_on`, and in wakers and hooks that it calls.
            ///
            /// ```
            #[doc = concat!("let (tx, mut rx) = volt_sync::mpsc::", $channel, ";")]
            #[doc = concat!("std::thread::spawn(move || tx.", $send, "(1));")]
            /// assert_eq!(rx.blocking_recv(), Some(1));
            /// assert_eq!(rx.blocking_recv(), None);
            /// ```
            #[track_caller]
            pub fn blocking_recv(&mut self) -> Option<T> {
                assert_may_block(concat!("mpsc::", stringify!($Receiver), "::blocking_recv"));
                match self.try_receive() {
                    Ok(value) => Some(value),
                    Err(TryRecvError::Disconnected) => None,
                    Err(_) => block_on(self.recv()),
                }
            }

            /// As [`recv_many`](Self::recv_many), but blocks the calling thread.
            ///
            /// # Panics
            /// Where a Volt runtime polls futures: in a task, in the future of `block_on`, and in wakers and hooks that it calls.
            ///
            /// ```
            #[doc = concat!("let (tx, mut rx) = volt_sync::mpsc::", $channel, ";")]
            #[doc = concat!("std::thread::spawn(move || tx.", $send, "(1));")]
            /// assert_eq!(rx.blocking_recv_many(&mut Vec::new(), 8), 1);
            /// ```
            #[track_caller]
            pub fn blocking_recv_many(&mut self, buffer: &mut Vec<T>, limit: usize) -> usize {
                assert_may_block(concat!("mpsc::", stringify!($Receiver), "::blocking_recv_many"));
                block_on(self.recv_many(buffer, limit))
            }

            /// Closes the channel: nothing more can be sent, except with permits that are
            /// outstanding. What is in the channel can still be received, until `recv` returns
            /// `None`.
            ///
            /// ```
            #[doc = concat!("let (tx, mut rx) = volt_sync::mpsc::", $channel, ";")]
            #[doc = concat!("tx.", $send, "(1).unwrap();")]
            /// rx.close();
            #[doc = concat!("assert!(tx.", $send, "(2).is_err());")]
            /// assert_eq!(rx.blocking_recv(), Some(1));
            /// assert_eq!(rx.blocking_recv(), None);
            /// ```
            pub fn close(&mut self) {
                self.shared.channel.close();
            }

            /// True if the channel is closed: by [`close`](Self::close), or because there is no
            /// sender left.
            ///
            /// ```
            #[doc = concat!("let (tx, rx) = volt_sync::mpsc::", $channel, ";")]
            #[doc = concat!("tx.", $send, "(1).unwrap();")]
            /// drop(tx);
            /// assert!(rx.is_closed());
            /// assert_eq!(rx.len(), 1, "there may still be messages to receive");
            /// ```
            pub fn is_closed(&self) -> bool {
                self.shared.channel.is_closed()
            }

            /// True if there is no message in the channel.
            ///
            /// ```
            #[doc = concat!("let (tx, rx) = volt_sync::mpsc::", $channel, ";")]
            /// assert!(rx.is_empty());
            #[doc = concat!("tx.", $send, "(1).unwrap();")]
            /// assert!(!rx.is_empty());
            /// ```
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The number of messages that are in the channel.
            ///
            /// ```
            #[doc = concat!("let (tx, rx) = volt_sync::mpsc::", $channel, ";")]
            #[doc = concat!("tx.", $send, "(1).unwrap();")]
            /// assert_eq!(rx.len(), 1);
            /// ```
            pub fn len(&self) -> usize {
                self.shared.channel.len()
            }

            /// As [`recv`](Self::recv), inside a poll function. `Pending` registers the waker of
            /// the last call only.
            ///
            /// ```
            /// # volt_doctest::run(|| async {
            #[doc = concat!("let (tx, mut rx) = volt_sync::mpsc::", $channel, ";")]
            #[doc = concat!("tx.", $send, "(1).unwrap();")]
            /// assert_eq!(std::future::poll_fn(|cx| rx.poll_recv(cx)).await, Some(1));
            /// # });
            /// ```
            #[inline]
            pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
                self.poll_receive(cx)
            }

            /// As [`recv_many`](Self::recv_many), inside a poll function. `Pending` registers the
            /// waker of the last call only.
            ///
            /// ```
            /// # volt_doctest::run(|| async {
            #[doc = concat!("let (tx, mut rx) = volt_sync::mpsc::", $channel, ";")]
            #[doc = concat!("(0..3).for_each(|i| tx.", $send, "(i).unwrap());")]
            /// let mut all = Vec::new();
            /// let count = std::future::poll_fn(|cx| rx.poll_recv_many(cx, &mut all, 8)).await;
            /// assert_eq!((count, all), (3, vec![0, 1, 2]));
            /// # });
            /// ```
            pub fn poll_recv_many(
                &mut self,
                cx: &mut Context<'_>,
                buffer: &mut Vec<T>,
                limit: usize,
            ) -> Poll<usize> {
                self.poll_receive_many(cx, buffer, limit)
            }

            /// The number of senders, owned permits included.
            ///
            /// ```
            #[doc = concat!("let (tx, mut rx) = volt_sync::mpsc::", $channel, ";")]
            #[doc = concat!("tx.", $send, "(1).unwrap();")]
            /// assert_eq!(rx.sender_strong_count(), 1);
            /// drop(tx);
            /// assert_eq!(rx.sender_strong_count(), 0);
            /// # assert_eq!(rx.try_recv(), Ok(1));
            /// ```
            pub fn sender_strong_count(&self) -> usize {
                self.shared.senders.count()
            }

            /// The number of weak senders.
            ///
            /// ```
            #[doc = concat!("let (tx, rx) = volt_sync::mpsc::", $channel, ";")]
            #[doc = concat!("tx.", $send, "(1).unwrap();")]
            /// let weak = tx.downgrade();
            /// assert_eq!(rx.sender_weak_count(), 1);
            /// # drop(weak);
            /// ```
            pub fn sender_weak_count(&self) -> usize {
                self.shared.weak.count()
            }
        }

        impl<T> Drop for $Receiver<T> {
            fn drop(&mut self) {
                // The messages go also if a waker panics.
                let mut panic = $crate::first_panic::FirstPanic::new();
                panic.catch(|| self.close());
                panic.catch(|| self.shared.channel.discard());
                panic.resume();
            }
        }

        impl<T> fmt::Debug for $Receiver<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($Receiver))
                    .field("channel", &self.shared.channel)
                    .finish()
            }
        }
    };
}
pub(super) use common;

/// Receives the messages of the [`Sender`](super::Sender)s; see the [module](super).
///
/// ```
/// # volt_doctest::run(|| async {
/// let (tx, mut rx) = volt_sync::mpsc::channel(4);
/// (0..3).for_each(|i| tx.try_send(i).unwrap());
/// drop(tx);
/// let mut sum = 0;
/// while let Some(i) = rx.recv().await {
///     sum += i;
/// }
/// assert_eq!(sum, 3);
/// # });
/// ```
pub struct Receiver<T> {
    pub(super) shared: Arc<Shared<T>>,
}

impl<T> Receiver<T> {
    /// The number of places that are free now: neither holding a message nor reserved.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::mpsc::channel(2);
    /// tx.try_send(1).unwrap();
    /// assert_eq!((rx.capacity(), rx.max_capacity()), (1, 2));
    /// ```
    pub fn capacity(&self) -> usize {
        self.shared.channel.free()
    }

    /// The number of messages that the channel can hold.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::mpsc::channel(2);
    /// tx.try_send(1).unwrap();
    /// assert_eq!(rx.max_capacity(), 2);
    /// ```
    pub fn max_capacity(&self) -> usize {
        self.shared.channel.capacity()
    }
}

impl<T> Receive for Receiver<T> {
    type Message = T;

    #[inline]
    fn try_receive(&mut self) -> Result<T, TryRecvError> {
        // SAFETY: `&mut self`, and there is one receiver.
        unsafe { self.shared.channel.try_recv_only() }
    }

    #[inline]
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        // SAFETY: `&mut self`, and there is one receiver.
        unsafe { self.shared.channel.poll_recv_only(cx) }
    }

    fn poll_receive_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        // SAFETY: `&mut self`, and there is one receiver.
        unsafe { self.shared.channel.poll_recv_many_only(buffer, limit, cx) }
    }
}

common!(Receiver, "channel(4)", "try_send");
