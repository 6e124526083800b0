//! A channel with many senders and many receivers; each message goes to one receiver.
//!
//! [`bounded`] holds a fixed number of messages and makes senders wait; [`unbounded`] holds as many
//! as memory does. Both have the same [`Sender`] and [`Receiver`], which can be cloned and shared,
//! used on any executor, and from plain threads with the `blocking_*` and `try_*` methods.
//!
//! # When to use which
//! Several workers share a queue. With one consumer [`mpsc`](crate::mpsc) receives a little faster and
//! can reserve places; if every consumer is to get every message, take
//! [`broadcast`](crate::broadcast). The [crate's page](crate#which-channel) has a table of all.
//!
//! # Closing
//! The channel closes when the last sender or the last receiver is dropped, or by `close` on either
//! side. A closed channel refuses sends, and its receivers get what was sent before. Messages that
//! nobody can receive any more are dropped when the last receiver is.
//!
//! # Order and fairness
//! Messages are received in the order in which they were sent. Of two sends that are pending at once, also
//! in one task, either may be first: await one before the next if their order matters. Waiting senders
//! get free places in the order in which they began to wait, and nobody overtakes them. Waiting receivers
//! are woken in the order in which they began to wait; a receiver that comes between a wake-up and its
//! effect may take the message, and the one that was woken waits on before all that were not, several such
//! ones in the order in which they came back.
//!
//! On a runtime that allows it ([`allow_turns`](crate::coop::allow_turns)), and on any executor while several
//! tasks of one thread wait for the same channel again and again, a task that would have to wait gives
//! others up to sixteen turns before it begins to: others may be faster until then. Receivers stop that
//! for a while when one of them was woken and came too late 64 times, so that none is passed over for ever.
//!
//! # Cancel safety
//! A future of this module may be dropped at any time. `recv`: nothing is lost. `send`: if it did
//! not return, it did not send; the message is dropped with the future. A future that was woken must
//! be polled or dropped: kept aside, it keeps a message from the other receivers, or a place from
//! the other senders.
//!
//! # Cost and memory
//! A send and a receive are one atomic read-modify-write each, and a clone of the waker if they
//! have to wait. A bounded channel may take up to sixteen more polls instead, by a task that wakes itself
//! at once: turns for others, as above, while these are short (a quarter of a millisecond together, as far
//! as the thread knows) and mostly spare the wait. `bounded(n)` allocates twice when it is made and never again (but see `Stream`, below): `n` places, rounded
//! up to a power of two, of 8 bytes and a message each, and less than a kilobyte. `unbounded()` has
//! blocks of 32 messages and frees them as they are received, all but two; so has `bounded(n)` if its places are more
//! than 128 and would take more than a mebibyte. A capacity that is a power of two is a little faster.
//!
//! With the feature `futures`, senders are `Sink` and receivers `Stream`, the traits of the crate `futures`. Each handle
//! that waits as one of these allocates once, at its first wait.
//!
//! But for those of blocks, which have a small lock, the data path takes no lock; "lock-free" would be too much said: a thread that is preempted
//! in the middle of writing a message makes the receivers behind it wait for that message.
//!
//! ```
//! # volt_doctest::run(|| async {
//! use volt_sync::mpmc;
//!
//! let (tx, rx) = mpmc::bounded(16);
//! let (tx2, rx2) = (tx.clone(), rx.clone());
//! tx.send(1).await?;
//! tx2.send(2).await?;
//! drop((tx, tx2));
//! assert_eq!(rx2.recv().await, Some(1));
//! assert_eq!(rx.recv().await, Some(2));
//! assert_eq!(rx.recv().await, None);
//! # Ok::<(), mpmc::SendError<i32>>(())
//! # }).unwrap();
//! ```

mod receiver;
mod sender;
#[cfg(feature = "futures")]
mod stream;

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

pub use self::receiver::{Receiver, RecvFuture, WeakReceiver};
pub use self::sender::{ClosedFuture, SendFuture, Sender, WeakSender};
use crate::cache_padded::{Gap, is_quickly_allocated};
use crate::channel::Refused;
use crate::channel::closed::Closes;
pub use crate::channel::error::{SendError, TryRecvError, TrySendError};
use crate::channel::handles::Handles;
use crate::channel::limited::Limited;
pub use crate::channel::limited::MAX_CAPACITY;
use crate::channel::list::Unbounded;
use crate::channel::waiter::Waiter;
use crate::primitive::Arc;

/// Creates a channel that holds at most `capacity` messages.
///
/// # Panics
/// If `capacity` is zero, or above [`MAX_CAPACITY`] (`usize::MAX >> 3`).
///
/// ```
/// let (tx, rx) = volt_sync::mpmc::bounded(1);
/// assert!(tx.try_send("a").is_ok());
/// assert!(tx.try_send("b").is_err());
/// assert_eq!(rx.try_recv(), Ok("a"));
/// ```
#[track_caller]
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(capacity > 0, "mpmc bounded channel requires capacity > 0");
    assert!(
        capacity <= MAX_CAPACITY,
        "mpmc bounded channel requires capacity <= {MAX_CAPACITY}, but it is {capacity}"
    );
    Channel::handles(Flavor::Bounded(Limited::new(capacity)))
}

/// Creates a channel that holds any number of messages; `send` never waits.
///
/// ```
/// let (tx, rx) = volt_sync::mpmc::unbounded();
/// for i in 0..100 {
///     tx.try_send(i).unwrap();
/// }
/// assert_eq!(rx.len(), 100);
/// ```
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    Channel::handles(Flavor::Unbounded(Unbounded::new()))
}

#[expect(clippy::large_enum_variant, reason = "one allocation for a channel of either kind")]
enum Flavor<T> {
    Bounded(Limited<T>),
    Unbounded(Unbounded<T>),
}

/// What senders and receivers share.
#[repr(C)]
struct Channel<T> {
    senders: Handles,
    receivers: Handles,
    _gap: Gap,
    flavor: Flavor<T>,
}

const _: () = assert!(is_quickly_allocated::<Channel<u64>>());

impl<T> fmt::Debug for Channel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.flavor {
            Flavor::Bounded(channel) => channel.fmt(f),
            Flavor::Unbounded(channel) => channel.fmt(f),
        }
    }
}

impl<T> Closes for Channel<T> {
    fn poll_closed(&self, waiter: Pin<&mut Waiter>, cx: &mut Context<'_>) -> Poll<()> {
        match &self.flavor {
            Flavor::Bounded(channel) => channel.poll_closed(waiter, cx),
            Flavor::Unbounded(channel) => channel.poll_closed(waiter, cx),
        }
    }

    #[cold]
    fn cancel_closed(&self, waiter: Pin<&mut Waiter>) {
        match &self.flavor {
            Flavor::Bounded(channel) => channel.cancel_closed(waiter),
            Flavor::Unbounded(channel) => channel.cancel_closed(waiter),
        }
    }
}

impl<T> Channel<T> {
    fn handles(flavor: Flavor<T>) -> (Sender<T>, Receiver<T>) {
        let channel = Arc::new(Self {
            senders: Handles::new(1),
            receivers: Handles::new(1),
            _gap: Gap::GAP,
            flavor,
        });
        (Sender::new(channel.clone()), Receiver::new(channel))
    }

    #[inline]
    fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let sent = match &self.flavor {
            Flavor::Bounded(Limited::Ring(channel)) => channel.try_send(value),
            _ => self.try_send_apart(value),
        };
        sent.map_err(|(value, why)| TrySendError::new(value, why))
    }

    /// Not inlined: what the lists keep on the stack is not for a ring's send beside it.
    #[inline(never)]
    fn try_send_apart(&self, value: T) -> Result<(), (T, Refused)> {
        match &self.flavor {
            Flavor::Bounded(Limited::Ring(_)) => unreachable!("a ring's send is inlined"),
            Flavor::Bounded(Limited::List(channel)) => channel.try_send(value),
            Flavor::Unbounded(channel) => {
                channel.send(value).map_err(|value| (value, Refused::Closed))
            }
        }
    }

    #[inline(always)]
    fn send_if_plain(&self, value: &mut Option<T>, waiter: &Waiter) -> bool {
        match &self.flavor {
            Flavor::Bounded(channel) => channel.send_if_plain(value, waiter),
            Flavor::Unbounded(_) => false,
        }
    }

    fn poll_send(
        &self,
        value: &mut Option<T>,
        waiter: Pin<&mut Waiter>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ()>> {
        match &self.flavor {
            Flavor::Bounded(channel) => channel.poll_send(value, waiter, cx),
            Flavor::Unbounded(channel) => channel.poll_send(value, waiter, cx),
        }
    }

    #[inline]
    fn try_recv(&self) -> Result<T, TryRecvError> {
        match &self.flavor {
            Flavor::Bounded(Limited::Ring(channel)) => channel.try_recv(),
            _ => self.try_recv_apart(),
        }
    }

    /// As `try_send_apart`.
    #[inline(never)]
    fn try_recv_apart(&self) -> Result<T, TryRecvError> {
        match &self.flavor {
            Flavor::Bounded(Limited::Ring(_)) => unreachable!("a ring's receive is inlined"),
            Flavor::Bounded(Limited::List(channel)) => channel.try_recv(),
            Flavor::Unbounded(channel) => channel.try_recv(),
        }
    }

    #[inline(always)]
    fn recv_if_plain(&self, waiter: &Waiter) -> Option<T> {
        match &self.flavor {
            Flavor::Bounded(channel) => channel.recv_if_plain(waiter),
            Flavor::Unbounded(_) => None,
        }
    }

    fn poll_recv(&self, waiter: Pin<&mut Waiter>, cx: &mut Context<'_>) -> Poll<Result<T, ()>> {
        match &self.flavor {
            Flavor::Bounded(channel) => channel.poll_recv(waiter, cx),
            Flavor::Unbounded(channel) => channel.poll_recv(waiter, cx),
        }
    }

    #[cold]
    fn cancel_send(&self, waiter: Pin<&mut Waiter>) {
        // Sends into an unbounded channel do not wait.
        if let Flavor::Bounded(channel) = &self.flavor {
            channel.cancel_sender(waiter);
        }
    }

    #[cold]
    fn cancel_recv(&self, waiter: Pin<&mut Waiter>) {
        match &self.flavor {
            Flavor::Bounded(channel) => channel.cancel_receiver(waiter),
            Flavor::Unbounded(channel) => channel.cancel_receiver(waiter),
        }
    }

    fn close(&self) -> bool {
        match &self.flavor {
            Flavor::Bounded(channel) => channel.close(),
            Flavor::Unbounded(channel) => channel.close(),
        }
    }

    fn is_closed(&self) -> bool {
        match &self.flavor {
            Flavor::Bounded(channel) => channel.is_closed(),
            Flavor::Unbounded(channel) => channel.is_closed(),
        }
    }

    /// True if there is no message, and none can come any more.
    #[cfg(feature = "futures")]
    fn has_ended(&self) -> bool {
        match &self.flavor {
            Flavor::Bounded(channel) => channel.has_ended(),
            Flavor::Unbounded(channel) => channel.has_ended(),
        }
    }

    fn discard(&self) {
        match &self.flavor {
            Flavor::Bounded(channel) => channel.discard(),
            Flavor::Unbounded(channel) => channel.discard(),
        }
    }

    fn len(&self) -> usize {
        match &self.flavor {
            Flavor::Bounded(channel) => channel.len(),
            Flavor::Unbounded(channel) => channel.len(),
        }
    }

    fn capacity(&self) -> Option<usize> {
        match &self.flavor {
            Flavor::Bounded(channel) => Some(channel.capacity()),
            Flavor::Unbounded(_) => None,
        }
    }

    fn is_full(&self) -> bool {
        match &self.flavor {
            Flavor::Bounded(channel) => channel.free() == 0,
            Flavor::Unbounded(_) => false,
        }
    }
}

/// The methods that senders and receivers have in common.
macro_rules! common_methods {
    () => {
        /// Closes the channel for everybody. False if it was closed already.
        ///
        /// Waiting senders get their messages back; receivers get what was sent before.
        ///
        /// ```
        /// let (tx, rx) = volt_sync::mpmc::bounded(2);
        /// tx.try_send(1).unwrap();
        /// assert!(rx.close());
        /// assert!(!tx.close());
        /// assert!(tx.try_send(2).is_err());
        /// assert_eq!(rx.blocking_recv(), Some(1));
        /// assert_eq!(rx.blocking_recv(), None);
        /// ```
        pub fn close(&self) -> bool {
            self.channel.close()
        }

        /// True if the channel is closed; there may still be messages to receive.
        ///
        /// ```
        /// let (tx, rx) = volt_sync::mpmc::bounded(1);
        /// tx.try_send(1).unwrap();
        /// drop(tx);
        /// assert!(rx.is_closed());
        /// assert_eq!(rx.try_recv(), Ok(1));
        /// ```
        pub fn is_closed(&self) -> bool {
            self.channel.is_closed()
        }

        /// The number of messages that are in the channel.
        ///
        /// ```
        /// let (tx, rx) = volt_sync::mpmc::bounded(2);
        /// tx.try_send(1).unwrap();
        /// assert_eq!((tx.len(), rx.len()), (1, 1));
        /// ```
        pub fn len(&self) -> usize {
            self.channel.len()
        }

        /// True if there is no message in the channel.
        ///
        /// ```
        /// let (tx, rx) = volt_sync::mpmc::bounded(1);
        /// assert!(rx.is_empty());
        /// tx.try_send(1).unwrap();
        /// assert!(!rx.is_empty());
        /// ```
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// True if a `try_send` would find no place. Never for an unbounded channel.
        ///
        /// ```
        /// let (tx, _rx) = volt_sync::mpmc::bounded(1);
        /// assert!(!tx.is_full());
        /// tx.try_send(1).unwrap();
        /// assert!(tx.is_full());
        /// ```
        pub fn is_full(&self) -> bool {
            self.channel.is_full()
        }

        /// The number of messages that the channel can hold, `None` if it is unbounded.
        ///
        /// ```
        /// use volt_sync::mpmc;
        /// assert_eq!(mpmc::bounded::<()>(100).0.capacity(), Some(100));
        /// assert_eq!(mpmc::unbounded::<()>().1.capacity(), None);
        /// ```
        pub fn capacity(&self) -> Option<usize> {
            self.channel.capacity()
        }

        /// The number of senders now.
        ///
        /// ```
        /// let (tx, rx) = volt_sync::mpmc::bounded::<()>(1);
        /// let other = tx.clone();
        /// assert_eq!(rx.sender_count(), 2);
        /// drop((tx, other));
        /// assert_eq!(rx.sender_count(), 0);
        /// ```
        pub fn sender_count(&self) -> usize {
            self.channel.senders.count()
        }

        /// The number of receivers now.
        ///
        /// ```
        /// let (tx, rx) = volt_sync::mpmc::bounded::<()>(1);
        /// let other = rx.clone();
        /// assert_eq!(tx.receiver_count(), 2);
        /// drop((rx, other));
        /// assert_eq!(tx.receiver_count(), 0);
        /// ```
        pub fn receiver_count(&self) -> usize {
            self.channel.receivers.count()
        }

        /// True if both belong to one channel.
        ///
        /// ```
        /// let (tx, _rx) = volt_sync::mpmc::bounded::<()>(1);
        /// assert!(tx.same_channel(&tx.clone()));
        /// ```
        pub fn same_channel(&self, other: &Self) -> bool {
            Arc::ptr_eq(&self.channel, &other.channel)
        }
    };
}
use common_methods;

impl<T> Unbounded<T> {
    /// Sends at once; for the one future of both kinds.
    fn poll_send(
        &self,
        value: &mut Option<T>,
        waiter: Pin<&mut Waiter>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ()>> {
        std::task::ready!(crate::coop::poll_proceed(cx));
        waiter.polled("send");
        waiter.set_state(crate::channel::waiter::State::Done);
        let value_now = value.take().expect("present until it is sent");
        match self.send(value_now) {
            Ok(()) => {
                crate::coop::made_progress();
                Poll::Ready(Ok(()))
            }
            Err(refused) => {
                *value = Some(refused);
                Poll::Ready(Err(()))
            }
        }
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
