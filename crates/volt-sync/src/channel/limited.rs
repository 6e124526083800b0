//! A bounded channel of either kind.
//!
//! Up to [`RING_BYTES`] its places are a [ring](super::ring): a lock-free data path, and all memory at once, every
//! byte of which is used before a place is used again. More places are a [list](super::list), which takes the memory
//! of the messages that are there, in blocks; so a few places of large messages are a ring as well.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Refused;
use super::bounded::Bounded;
use super::closed::Closes;
use super::error::TryRecvError;
use super::list::{BLOCK, List, Places};
use super::ring::Ring;
use super::senders::Senders;
use super::waiter::Waiter;

/// The largest capacity of a bounded channel: `usize::MAX >> 3`, as Tokio's.
///
/// ```
/// use volt_sync::mpmc;
/// let (tx, rx) = mpmc::bounded(mpmc::MAX_CAPACITY);
/// tx.try_send(1).unwrap();
/// assert_eq!(rx.try_recv(), Ok(1));
/// let too_large = || mpmc::bounded::<()>(mpmc::MAX_CAPACITY + 1);
/// assert!(std::panic::catch_unwind(too_large).is_err());
/// ```
pub const MAX_CAPACITY: usize = usize::MAX >> 3;

/// The largest ring of more than [`FEW`] places.
const RING_BYTES: usize = if cfg!(volt_list) { 0 } else { 1 << 20 };

/// So many places are a ring, however large: of a list, two or three blocks take nearly as much.
const FEW: usize = if cfg!(volt_list) { 0 } else { 4 * BLOCK };

#[expect(clippy::large_enum_variant, reason = "one allocation for a channel of the usual kind")]
pub(crate) enum Limited<T> {
    Ring(Bounded<T>),
    List(Box<List<T, Places>>),
}

/// The same of either kind.
macro_rules! of {
    ($limited:expr, $channel:ident => $what:expr) => {
        match $limited {
            Limited::Ring($channel) => $what,
            Limited::List($channel) => $what,
        }
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ring,
    List,
}

impl Kind {
    /// The one for so many messages.
    fn for_capacity<T>(capacity: usize) -> Self {
        let is_small = Ring::<T>::bytes(capacity) <= RING_BYTES || capacity <= FEW;
        if is_small { Self::Ring } else { Self::List }
    }
}

impl<T> Limited<T> {
    #[inline(always)]
    pub(crate) fn new(capacity: usize) -> Self {
        Self::of(Kind::for_capacity::<T>(capacity), capacity)
    }

    #[inline(always)]
    pub(super) fn of(kind: Kind, capacity: usize) -> Self {
        match kind {
            Kind::Ring => Self::Ring(Bounded::new(capacity)),
            Kind::List => Self::List(Box::new(List::bounded(capacity))),
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        match self {
            Self::Ring(channel) => channel.capacity(),
            Self::List(channel) => channel.places().0,
        }
    }

    /// Places that a `try_send` could have now.
    pub(crate) fn free(&self) -> usize {
        match self {
            Self::Ring(channel) => channel.free(),
            Self::List(channel) => channel.places().1,
        }
    }

    pub(crate) fn len(&self) -> usize {
        of!(self, channel => channel.len())
    }

    pub(crate) fn is_closed(&self) -> bool {
        of!(self, channel => channel.is_closed())
    }

    /// True if there is no message, and none can come any more.
    #[cfg(feature = "futures")]
    pub(crate) fn has_ended(&self) -> bool {
        of!(self, channel => channel.has_ended())
    }

    pub(crate) fn close(&self) -> bool {
        of!(self, channel => channel.close())
    }

    pub(crate) fn discard(&self) {
        of!(self, channel => channel.discard());
    }

    // ------------------------------------------------------------------ senders

    #[inline]
    pub(crate) fn try_send(&self, value: T) -> Result<(), (T, Refused)> {
        of!(self, channel => channel.try_send(value))
    }

    #[inline(always)]
    pub(crate) fn send_if_plain(&self, value: &mut Option<T>, waiter: &Waiter) -> bool {
        match self {
            Self::Ring(channel) => channel.send_if_plain(value, waiter),
            Self::List(_) => false,
        }
    }

    pub(crate) fn poll_send(
        &self,
        value: &mut Option<T>,
        waiter: Pin<&mut Waiter>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ()>> {
        of!(self, channel => channel.poll_send(value, waiter, cx))
    }

    pub(crate) fn try_reserve(&self, count: usize) -> Result<(), Refused> {
        of!(self, channel => channel.try_reserve(count))
    }

    pub(crate) fn poll_reserve(
        &self,
        waiter: Pin<&mut Waiter>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ()>> {
        of!(self, channel => channel.poll_reserve(waiter, cx))
    }

    pub(crate) fn cancel_sender(&self, waiter: Pin<&mut Waiter>) {
        of!(self, channel => channel.cancel_sender(waiter));
    }

    pub(crate) fn unreserve(&self, count: usize) {
        of!(self, channel => channel.unreserve(count));
    }

    #[inline]
    pub(crate) fn send_reserved(&self, value: T) {
        of!(self, channel => channel.send_reserved(value));
    }

    // ------------------------------------------------------------------ receivers

    #[cfg(test)]
    pub(crate) fn try_recv(&self) -> Result<T, TryRecvError> {
        of!(self, channel => channel.try_recv())
    }

    #[inline(always)]
    pub(crate) fn recv_if_plain(&self, waiter: &Waiter) -> Option<T> {
        match self {
            Self::Ring(channel) => channel.recv_if_plain(waiter),
            Self::List(_) => None,
        }
    }

    pub(crate) fn poll_recv(
        &self,
        waiter: Pin<&mut Waiter>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<T, ()>> {
        of!(self, channel => channel.poll_recv(waiter, cx))
    }

    pub(crate) fn cancel_receiver(&self, waiter: Pin<&mut Waiter>) {
        of!(self, channel => channel.cancel_receiver(waiter));
    }

    /// # Safety
    /// No other thread receives at the same time.
    #[inline]
    pub(crate) unsafe fn try_recv_only(&self) -> Result<T, TryRecvError> {
        match self {
            // SAFETY: the only receiver (obligation).
            Self::Ring(channel) => unsafe { channel.try_recv_only() },
            Self::List(channel) => channel.try_recv_apart(),
        }
    }

    /// Receives, or registers the waker.
    ///
    /// # Safety
    /// No other thread receives at the same time.
    #[inline]
    pub(crate) unsafe fn poll_recv_only(&self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        match self {
            // SAFETY: the only receiver (obligation).
            Self::Ring(channel) => unsafe { channel.poll_recv_only(cx) },
            Self::List(channel) => channel.poll_recv_only_apart(cx),
        }
    }

    /// Receives up to `limit` messages, or registers the waker. 0 if nothing can come any more.
    ///
    /// # Safety
    /// No other thread receives at the same time.
    pub(crate) unsafe fn poll_recv_many_only(
        &self,
        into: &mut Vec<T>,
        limit: usize,
        cx: &mut Context<'_>,
    ) -> Poll<usize> {
        match self {
            // SAFETY: the only receiver (obligation).
            Self::Ring(channel) => unsafe { channel.poll_recv_many_only(into, limit, cx) },
            Self::List(channel) => channel.poll_recv_many_only(into, limit, cx),
        }
    }
}

impl<T> Closes for Limited<T> {
    fn poll_closed(&self, waiter: Pin<&mut Waiter>, cx: &mut Context<'_>) -> Poll<()> {
        of!(self, channel => channel.poll_closed(waiter, cx))
    }

    fn cancel_closed(&self, waiter: Pin<&mut Waiter>) {
        of!(self, channel => channel.cancel_closed(waiter));
    }
}

impl<T> fmt::Debug for Limited<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        of!(self, channel => channel.fmt(f))
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
