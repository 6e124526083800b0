//! A channel with many senders and one receiver: Tokio's `mpsc`, on any executor.
//!
//! [`channel`] holds a fixed number of messages and makes senders wait; [`unbounded_channel`] holds
//! as many as memory does. Names, signatures and semantics are those of `tokio::sync::mpsc`, except
//! for the order of sends that are pending together.
//! This crate knows no clock: [`Sender::send_timeout`] goes by that of Volt, and [`Sender::send_until`] takes any future as
//! its deadline.
//!
//! # When to use which
//! One task does the work, or owns the state, and others send it requests. For several consumers
//! take [`mpmc`](crate::mpmc), for one answer [`oneshot`](crate::oneshot). Prefer the bounded channel:
//! it makes senders wait for a slow receiver, where the unbounded one grows. The
//! [crate's page](crate#which-channel) has a table of all channels.
//!
//! # Closing
//! The channel closes when the last sender or the receiver is dropped, or by [`Receiver::close`].
//! A closed channel refuses sends, but capacity that was reserved before can still be used; the
//! receiver gets everything and then `None`.
//!
//! # Order and fairness
//! Messages are received in the order in which they were sent. Senders that wait get free places in
//! the order in which they began to wait; newcomers and `try_*` methods do not overtake them. A task
//! may give others up to sixteen turns before it begins to, as in [`mpmc`](crate::mpmc), which has their
//! cost as well: of two sends that are pending at once, also in one task, either may be first.
//!
//! # Cancel safety
//! Every future of this module may be dropped at any time. `recv`: nothing is lost. `send`: if it
//! did not return, it did not send, and the message is dropped with it; use [`Sender::reserve`] to
//! keep the message. Capacity that a dropped future was given goes to the next that waits.
//!
//! # Cost and memory
//! As [`mpmc`](crate::mpmc): one read-modify-write to send, one to receive, two allocations for a
//! bounded channel, none for a message. [`Receiver::recv_many`] takes a batch with one
//! read-modify-write.
//!
//! The places of a bounded channel, as many as the next power of two, are allocated with it if they take no more than a
//! mebibyte, each of them eight bytes beside the message, or if they are no more than 128. A channel of more places, up
//! to [`MAX_CAPACITY`], takes the memory of the messages that are in
//! it, in blocks of 32; a send then allocates once in 32 messages, or not at all while the channel is drained as fast
//! as it is filled, and sends and receives share one small lock, as in the unbounded channel.
//!
//! ```
//! # volt_doctest::run(|| async {
//! use volt_sync::mpsc;
//!
//! let (tx, mut rx) = mpsc::channel(16);
//! let tx2 = tx.clone();
//! tx.send("hello").await?;
//! tx2.send("world").await?;
//! drop((tx, tx2));
//! while let Some(word) = rx.recv().await {
//!     println!("{word}");
//! }
//! # Ok::<(), mpsc::error::SendError<&str>>(())
//! # }).unwrap();
//! ```

mod bounded;
mod permit;
mod receiver;
mod unbounded;

/// What the operations of these channels return if they fail.
pub mod error {
    pub use crate::channel::error::{SendError, SendTimeoutError, TryRecvError, TrySendError};
}

pub use self::bounded::{Sender, WeakSender, channel};
pub use self::permit::{OwnedPermit, Permit, PermitIterator};
pub use self::receiver::Receiver;
pub use self::unbounded::{
    UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel,
};
pub use crate::channel::limited::MAX_CAPACITY;

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
