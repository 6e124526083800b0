//! Waiting for the close of a channel: what all kinds have in common.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::waiter::Waiter;

/// A channel whose close can be waited for.
pub(crate) trait Closes {
    /// Ready once the channel is closed.
    fn poll_closed(&self, waiter: Pin<&mut Waiter>, cx: &mut Context<'_>) -> Poll<()>;

    /// A future that waits for the close is dropped.
    fn cancel_closed(&self, waiter: Pin<&mut Waiter>);
}

/// A future that waits for the close.
pub(crate) struct WaitClosed<'a, C: Closes> {
    channel: &'a C,
    waiter: Waiter,
}

impl<'a, C: Closes> WaitClosed<'a, C> {
    pub(crate) fn new(channel: &'a C) -> Self {
        Self { channel, waiter: Waiter::new(0) }
    }
}

impl<C: Closes> Future for WaitClosed<'_, C> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the waiter is pinned with the future and not moved.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above, for the same reason.
        let waiter = unsafe { Pin::new_unchecked(&mut this.waiter) };
        this.channel.poll_closed(waiter, cx)
    }
}

impl<C: Closes> Drop for WaitClosed<'_, C> {
    fn drop(&mut self) {
        if self.waiter.is_engaged() {
            // SAFETY: engaged, so it was polled, so it is pinned; it is not moved before it is freed.
            self.channel.cancel_closed(unsafe { Pin::new_unchecked(&mut self.waiter) });
        }
    }
}

impl<C: Closes> fmt::Debug for WaitClosed<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.waiter.fmt(f)
    }
}
