//! An event without a value; its protocol is in `wait_set.rs`.
//!
//! State: the set's PERMIT flag is a notification that nobody waited for. It is never set while
//! somebody waits.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use crate::coop;
use crate::first_panic::FirstPanic;
use crate::wait_set::{ALL, Entry, WaitSet};
use crate::waiter::WAITING;
use crate::wake_list::WakeList;

/// A waiter's `status` after `notify_one`.
const ONE: u8 = 2;
/// A waiter's `status` after `notify_last`.
const LAST: u8 = 3;

/// Tells one task, or all, that something has happened.
///
/// **Semantics.** As if it held at most one permit. [`notify_one`](Self::notify_one) completes the
/// task that waits longest or, if nobody waits, stores the permit, which completes the next
/// [`notified`](Self::notified)`.await` at once. [`notify_waiters`](Self::notify_waiters) completes
/// everybody whose future exists, polled or not, and stores nothing. What happened before a
/// notification is visible after the wait that it ends.
///
/// **When to use which.** For values use a channel; for "it is there now, for good"
/// [`SetOnce`](crate::SetOnce).
///
/// **Fairness.** `notify_one` goes by the order in which the futures were first polled (or
/// [enabled](futures::Notified::enable)); [`notify_last`](Self::notify_last) takes the newest.
///
/// **Cancel safety.** A future that was notified by `notify_one` and is dropped before it returned
/// `Ready` passes the notification on. One that is polled again after `Ready` is so again, as Tokio's.
///
/// **Cost.** `notify_one` and a `notified` that finds its permit are one atomic read-modify-write
/// each; a wait is one, and waking it another. Nothing allocates.
///
/// **Memory.** Five words.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use volt_sync::Notify;
///
/// # volt_doctest::run(|| async {
/// let notify = Arc::new(Notify::new());
/// let other = notify.clone();
/// std::thread::spawn(move || other.notify_one());
/// notify.notified().await;
/// # });
/// ```
pub struct Notify {
    set: WaitSet<()>,
}

/// The futures of [`Notify`](crate::Notify).
pub mod futures {
    pub use super::{Notified, OwnedNotified};
}

impl Notify {
    crate::const_fn! {
        /// Without a permit. Allocates nothing.
        ///
        /// # Examples
        /// ```
        /// let notify = volt_sync::Notify::new();
        /// ```
        pub const fn new() -> Self {
            Self { set: WaitSet::new(()) }
        }
    }

    crate::const_fn! {
        /// As [`new`](Self::new), for statics; the two are the same.
        ///
        /// # Examples
        /// ```
        /// static NOTIFY: volt_sync::Notify = volt_sync::Notify::const_new();
        /// NOTIFY.notify_one();
        /// ```
        pub const fn const_new() -> Self {
            Self::new()
        }
    }

    /// Returns a future that waits for a notification.
    ///
    /// It counts for [`notify_waiters`](Self::notify_waiters) from this call on, and for
    /// [`notify_one`](Self::notify_one) from its first poll on.
    ///
    /// # Cancel safety
    /// Dropping it gives up its place, and passes on a notification that it had received.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let notify = volt_sync::Notify::new();
    /// let notified = notify.notified();
    /// notify.notify_waiters();
    /// notified.await;
    /// # });
    /// ```
    #[inline]
    pub fn notified(&self) -> Notified<'_> {
        Notified { wait: Wait::new(self) }
    }

    /// As [`notified`](Self::notified), with a future that owns the `Notify`.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let notify = std::sync::Arc::new(volt_sync::Notify::new());
    /// let notified = notify.clone().notified_owned();
    /// std::thread::spawn(move || notify.notify_waiters());
    /// notified.await;
    /// # });
    /// ```
    pub fn notified_owned(self: Arc<Self>) -> OwnedNotified {
        OwnedNotified { wait: Wait::new(self) }
    }

    /// Completes the task that waits longest, or stores a permit if nobody waits.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let notify = volt_sync::Notify::new();
    /// notify.notify_one();
    /// notify.notify_one();
    /// notify.notified().await; // The permit; there is only one.
    /// # });
    /// ```
    #[inline]
    pub fn notify_one(&self) {
        self.notify(ONE);
    }

    /// Completes the task that began to wait last, or stores a permit if nobody waits.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let notify = volt_sync::Notify::new();
    /// notify.notify_last();
    /// notify.notified().await;
    /// # });
    /// ```
    #[inline]
    pub fn notify_last(&self) {
        self.notify(LAST);
    }

    /// Completes all futures that exist now. Stores no permit.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let notify = volt_sync::Notify::new();
    /// let (one, two) = (notify.notified(), notify.notified());
    /// notify.notify_waiters();
    /// one.await;
    /// two.await;
    /// # });
    /// ```
    pub fn notify_waiters(&self) {
        let mut word = self.set.word();
        while word.is_idle() {
            match self.set.try_change(word, word.next_generation()) {
                Ok(()) => return,
                Err(actual) => word = actual,
            }
        }
        self.open();
    }

    #[cold]
    fn open(&self) {
        let mut wakers = WakeList::new();
        let more = self.set.locked(|word, lists| lists.open(word, &mut wakers));
        self.set.wake(wakers, more).resume();
    }

    #[inline]
    fn notify(&self, status: u8) {
        let mut word = self.set.word();
        while word.is_idle() {
            match self.set.try_change(word, word.with_permit(true)) {
                Ok(()) => return,
                Err(actual) => word = actual,
            }
        }
        self.notify_waiter(status);
    }

    #[cold]
    fn notify_waiter(&self, status: u8) {
        let waker = self.set.locked(|word, lists| {
            let waker = lists.complete_one(status == LAST, status);
            if waker.is_none() {
                *word = word.with_permit(true);
            }
            waker
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Default for Notify {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.set.word();
        f.debug_struct("Notify").field("permit", &word.has_permit()).finish_non_exhaustive()
    }
}

impl UnwindSafe for Notify {}
impl RefUnwindSafe for Notify {}

/// Waits for a notification; made by [`Notify::notified`].
///
/// # Examples
/// ```
/// # volt_doctest::run(|| async {
/// let notify = volt_sync::Notify::new();
/// let notified: volt_sync::futures::Notified<'_> = notify.notified();
/// notify.notify_one();
/// notified.await;
/// # });
/// ```
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct Notified<'a> {
    wait: Wait<&'a Notify>,
}

/// Waits for a notification, and owns the [`Notify`]; made by [`Notify::notified_owned`].
///
/// # Examples
/// ```
/// # volt_doctest::run(|| async {
/// let notify = std::sync::Arc::new(volt_sync::Notify::new());
/// let notified: volt_sync::futures::OwnedNotified = notify.clone().notified_owned();
/// notify.notify_waiters();
/// notified.await;
/// # });
/// ```
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct OwnedNotified {
    wait: Wait<Arc<Notify>>,
}

impl Notified<'_> {
    fn wait(self: Pin<&mut Self>) -> Pin<&mut Wait<impl Deref<Target = Notify>>> {
        // SAFETY: structural pinning: `wait` is not moved out of a pinned `Notified`.
        unsafe { self.map_unchecked_mut(|this| &mut this.wait) }
    }

    /// Begins to wait, without polling: [`notify_one`](Notify::notify_one) counts this future from
    /// here on. True if it has been notified already; it is ready then.
    ///
    /// # Examples
    /// ```
    /// use std::pin::pin;
    /// let notify = volt_sync::Notify::new();
    /// let mut notified = pin!(notify.notified());
    /// assert!(!notified.as_mut().enable());
    /// notify.notify_one();
    /// assert!(notified.as_mut().enable());
    /// ```
    pub fn enable(self: Pin<&mut Self>) -> bool {
        self.wait().advance(None)
    }
}

impl OwnedNotified {
    fn wait(self: Pin<&mut Self>) -> Pin<&mut Wait<impl Deref<Target = Notify>>> {
        // SAFETY: structural pinning: `wait` is not moved out of a pinned `OwnedNotified`.
        unsafe { self.map_unchecked_mut(|this| &mut this.wait) }
    }

    /// As [`Notified::enable`].
    ///
    /// # Examples
    /// ```
    /// use std::pin::pin;
    /// let notify = std::sync::Arc::new(volt_sync::Notify::new());
    /// let mut notified = pin!(notify.clone().notified_owned());
    /// assert!(!notified.as_mut().enable());
    /// notify.notify_one();
    /// assert!(notified.as_mut().enable());
    /// ```
    pub fn enable(self: Pin<&mut Self>) -> bool {
        self.wait().advance(None)
    }
}

impl Future for Notified<'_> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.wait().poll(cx)
    }
}

impl Future for OwnedNotified {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.wait().poll(cx)
    }
}

/// The wait itself, over a reference or an `Arc`.
struct Wait<N: Deref<Target = Notify>> {
    notify: N,
    entry: Entry,
    done: bool,
}

impl<N: Deref<Target = Notify>> Wait<N> {
    #[inline]
    fn new(notify: N) -> Self {
        let entry = Entry::new(notify.set.word().generation());
        Self { notify, entry, done: false }
    }

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        ready!(coop::poll_proceed(cx));
        if self.advance(Some(cx.waker())) {
            coop::made_progress();
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// True if a notification has come. Without a `waker`, nobody is woken by it.
    #[inline]
    fn advance(self: Pin<&mut Self>, waker: Option<&Waker>) -> bool {
        // SAFETY: only `entry` is pinned, and it is not moved out.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: structural pinning of `entry`.
        let entry = unsafe { Pin::new_unchecked(&mut this.entry) };
        if !this.done {
            this.done = if entry.is_linked() {
                Self::poll_linked(&this.notify, entry, waker)
            } else {
                Self::poll_fresh(&this.notify, entry, waker)
            };
        }
        this.done
    }

    #[inline]
    fn poll_fresh(notify: &Notify, entry: Pin<&mut Entry>, waker: Option<&Waker>) -> bool {
        let mut word = notify.set.word();
        // Who was notified with all others leaves the permit to the next.
        while word.generation() == entry.generation() {
            if !word.has_permit() || !word.is_idle() {
                return Self::enqueue(notify, entry, waker);
            }
            match notify.set.try_change(word, word.with_permit(false)) {
                Ok(()) => return true,
                Err(actual) => word = actual,
            }
        }
        true
    }

    /// Takes a place in the queue, unless a notification has come.
    #[cold]
    fn enqueue(notify: &Notify, entry: Pin<&mut Entry>, waker: Option<&Waker>) -> bool {
        // User code, outside the lock.
        let waker = waker.unwrap_or(Waker::noop()).clone();
        let (mut unused, mut took) = (None, false);
        let ready = notify.set.locked(|word, lists| {
            let is_notified = word.generation() != entry.generation();
            if !is_notified && !word.has_permit() {
                // SAFETY: 1. Not linked; the generation was just compared. 2. The same `notify`.
                unsafe { entry.enqueue(waker, lists) };
                return false;
            }
            if !is_notified {
                *word = word.with_permit(false);
                took = true;
            }
            unused = Some(waker);
            true
        });
        // User code: if it panics, the permit is for the next.
        let mut panic = FirstPanic::new();
        panic.catch(|| drop(unused));
        if took && panic.happened() {
            panic.catch(|| notify.notify(ONE));
        }
        panic.resume();
        ready
    }

    #[cold]
    fn poll_linked(notify: &Notify, entry: Pin<&mut Entry>, waker: Option<&Waker>) -> bool {
        entry.poll(&notify.set, waker) != WAITING
    }

    /// Takes a linked entry out of the queue.
    #[cold]
    fn cancel(notify: &Notify, entry: &mut Entry) {
        // SAFETY: a linked entry was pinned, and is not moved before it is gone.
        let entry = unsafe { Pin::new_unchecked(entry) };
        match entry.cancel(&notify.set, |()| ()) {
            WAITING | ALL => {}
            // It was meant for one task, and that was not us.
            status => notify.notify(status),
        }
    }
}

impl<N: Deref<Target = Notify>> Drop for Wait<N> {
    #[inline]
    fn drop(&mut self) {
        if self.entry.is_linked() {
            Self::cancel(&self.notify, &mut self.entry);
        }
    }
}

impl<N: Deref<Target = Notify>> fmt::Debug for Wait<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("done", &self.done).finish_non_exhaustive()
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
