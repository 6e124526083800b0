//! Something that many wait for and that wakes them all: a new value, a close.
//!
//! Purpose: the waiting half of `watch` and `broadcast`, on the same set of waiters as `Notify`.
//!
//! Rejected: `Notify` itself, whose `notify_waiters` also reaches futures that were created and not
//! yet polled, and so has to write shared memory on every call. Here a notification of nobody is one
//! load.
//!
//! Progress: the waiter first listens, and then looks at its condition; the notifier first changes
//! the condition and then looks for waiters. That needs one of two things to keep both looks from
//! missing the other's change: `notify_all` takes the set's lock unconditionally, which orders it
//! against `listen`; for `notify_if_waiting` the caller's change and the waiter's look happen under
//! one lock of the caller's.
//!
//! Cost: `notify_if_waiting` without waiters 1 load; listening 1 RMW, again with the same waker 2
//! loads.

use std::pin::Pin;
use std::task::Waker;

use crate::first_panic::FirstPanic;
use crate::wait_set::{Entry, WaitSet};
use crate::waiter::WAITING;
use crate::wake_list::WakeList;

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;

/// Those who wait.
pub(crate) struct Event {
    waiters: WaitSet<()>,
}

impl Event {
    crate::const_fn! {
        /// Nobody waits.
        pub(crate) const fn new() -> Self {
            Self { waiters: WaitSet::new(()) }
        }
    }

    /// A place from which one task can wait. Inert until [`Listener::listen`].
    pub(crate) fn listener(&self) -> Listener<'_> {
        Listener { event: self, entry: Entry::new(0) }
    }

    /// Wakes all who listen, unless there is nobody, and returns the first panic of a waker. For callers
    /// whose condition changes under a lock that the waiters take to look at it; see Progress.
    #[inline]
    pub(crate) fn notify_if_waiting(&self) -> FirstPanic {
        if self.waiters.word().is_idle() { FirstPanic::new() } else { self.notify_all() }
    }

    /// Wakes all who listen. Returns the first panic of a waker.
    #[cold]
    pub(crate) fn notify_all(&self) -> FirstPanic {
        let mut wakers = WakeList::new();
        let more = self.waiters.locked(|word, lists| lists.open(word, &mut wakers));
        self.waiters.wake(wakers, more)
    }
}

/// One task's place among the waiters. Leaves it when dropped.
pub(crate) struct Listener<'a> {
    event: &'a Event,
    /// Pinned with the listener.
    entry: Entry,
}

impl Listener<'_> {
    /// Makes the next notification wake `waker`. The caller looks at its condition after this.
    pub(crate) fn listen(mut self: Pin<&mut Self>, waker: &Waker) {
        let set = &self.event.waiters;
        if self.entry.is_linked() && self.as_mut().entry().poll(set, Some(waker)) == WAITING {
            return;
        }
        // User code: before the lock is taken.
        let waker = waker.clone();
        set.locked(|word, lists| {
            let mut entry = self.entry();
            entry.set(Entry::new(word.generation()));
            // SAFETY: 1. It is new, and of the word's generation. 2. A listener has one set.
            unsafe { entry.enqueue(waker, lists) };
        });
    }

    /// True if it listens, and no notification has come since.
    #[inline]
    pub(crate) fn is_waiting(self: Pin<&mut Self>) -> bool {
        let set = &self.event.waiters;
        self.entry.is_linked() && self.entry().poll(set, None) == WAITING
    }

    /// Ends the listening. That drops a waker, which is user code: it may panic.
    pub(crate) fn leave(self: Pin<&mut Self>) {
        let set = &self.event.waiters;
        if self.entry.is_linked() {
            self.entry().cancel(set, |()| ());
        }
    }

    fn entry(self: Pin<&mut Self>) -> Pin<&mut Entry> {
        // SAFETY: the entry is pinned with the listener, which never moves it.
        unsafe { self.map_unchecked_mut(|this| &mut this.entry) }
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        if self.entry.is_linked() {
            // SAFETY: it was pinned to be linked, and is not used after this.
            unsafe { Pin::new_unchecked(self) }.leave();
        }
    }
}
