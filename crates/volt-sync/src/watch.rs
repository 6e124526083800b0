//! One value that senders replace and receivers look at: configuration, state, progress.
//!
//! # When to use which
//! A receiver sees the newest value; values in between may be missed. Use
//! [`broadcast`](crate::broadcast) if every value matters, and [`SetOnce`](crate::SetOnce) if there is
//! only one.
//!
//! ```
//! use volt_sync::watch;
//!
//! # volt_doctest::run(|| async {
//! let (tx, mut rx) = watch::channel("starting");
//! tx.send("running").unwrap();
//! rx.changed().await.unwrap();
//! assert_eq!(*rx.borrow_and_update(), "running");
//! # });
//! ```
//!
//! # Semantics
//! Every receiver remembers which version it has seen. [`Receiver::changed`] waits for a newer one;
//! [`Receiver::borrow_and_update`] marks the current one as seen, [`Receiver::borrow`] does not. The
//! version with which a receiver is made counts as seen. When the last sender is dropped, `changed`
//! reports a version that was not seen yet, and then the close.
//!
//! # Borrows
//! [`Ref`] holds a read lock on the value: senders block their thread while it lives. Keep it short,
//! and never across an `.await`. As with every reader-writer lock, a thread that holds one `Ref` and
//! asks for another can deadlock with a sender in between.
//!
//! # Fairness
//! A new value wakes those who wait in the order in which they began to. Senders and borrows take
//! turns as std's `RwLock` lets them.
//!
//! # Cancel safety
//! A [`changed`](Receiver::changed) that is dropped has marked nothing as seen. A
//! [`wait_for`](Receiver::wait_for) has marked the values that it has rejected, and no other.
//!
//! # Cost and memory
//! [`channel`] allocates once, 18 words and the value. Sending is the two read-modify-writes of the
//! lock, a store, and a load if nobody waits; two more with a closure, or behind a [`Ref`]. `borrow`
//! is those of the lock and a load. Waiting takes the lock once for reading, and allocates nothing;
//! it never waits for the lock, and does not keep the processor busy while a sender's closure runs.

mod long;
mod receiver;
mod sender;

pub use self::receiver::Receiver;
pub use self::sender::Sender;

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{PoisonError, TryLockError};
use std::task::Waker;

use self::long::LongTurns;
use crate::event::Event;
use crate::first_panic::FirstPanic;
use crate::primitive::spin;
use crate::primitive::{Arc, AtomicU64, AtomicUsize, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The errors of this channel.
pub mod error {
    use std::{error::Error, fmt};

    /// There is no receiver; holds the value that was not sent.
    ///
    /// ```
    /// let (tx, rx) = volt_sync::watch::channel(0);
    /// drop(rx);
    /// assert_eq!(tx.send(7).unwrap_err().0, 7);
    /// ```
    #[derive(PartialEq, Eq, Clone, Copy)]
    pub struct SendError<T>(pub T);

    impl<T> fmt::Debug for SendError<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("SendError").finish_non_exhaustive()
        }
    }

    impl<T> fmt::Display for SendError<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("channel closed")
        }
    }

    impl<T> Error for SendError<T> {}

    /// Every sender is gone.
    ///
    /// ```
    /// # volt_doctest::run(|| async {
    /// let (tx, mut rx) = volt_sync::watch::channel(0);
    /// drop(tx);
    /// assert_eq!(rx.changed().await.unwrap_err().to_string(), "channel closed");
    /// assert_eq!(*rx.borrow(), 0, "the last value stays");
    /// # });
    /// ```
    #[derive(Debug, Clone)]
    pub struct RecvError(pub(super) ());

    impl fmt::Display for RecvError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("channel closed")
        }
    }

    impl Error for RecvError {}
}

/// Makes a channel that holds `init`, which counts as seen by the receiver. One allocation.
///
/// ```
/// let (tx, rx) = volt_sync::watch::channel(0);
/// tx.send_modify(|value| *value += 1);
/// assert_eq!(*rx.borrow(), 1);
/// ```
pub fn channel<T>(init: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(init);
    let receiver = sender.subscribe();
    (sender, receiver)
}

/// What all handles of a channel share.
struct Shared<T> {
    value: RwLock<T>,
    /// [`CLOSED`], and the number of values sent in steps of [`STEP`]. Changed only under the write
    /// lock of `value`, but for the CLOSED bit, which is set when no sender is left.
    version: AtomicU64,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    long: LongTurns,
    /// A new version, or the close.
    changed: Event,
    /// The last receiver has left.
    abandoned: Event,
}

const CLOSED: u64 = 1;
const STEP: u64 = 2;

/// How often to try again behind somebody who holds the lock for a few instructions.
const SPINS: u32 = if cfg!(volt_loom) { 1 } else { 48 };

impl<T> Shared<T> {
    fn new(init: T) -> Self {
        Self {
            value: RwLock::new(init),
            version: AtomicU64::new(0),
            senders: AtomicUsize::new(1),
            receivers: AtomicUsize::new(0),
            long: LongTurns::new(),
            changed: Event::new(),
            abandoned: Event::new(),
        }
    }

    /// The version, with the CLOSED bit.
    #[inline]
    fn version(&self) -> u64 {
        // ORD[WA1] acquire: whoever notices a version sees what came before it.
        // ORD[WA2] acquire: so does whoever notices the close.
        self.version.load(Acquire)
    }

    #[inline]
    fn read(&self) -> RwLockReadGuard<'_, T> {
        // A panic in a modifying closure is caught before it can poison the lock (`send_if_modified`).
        self.value.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `change`, which runs no user code while it has it, with the write lock.
    ///
    /// # Panics
    /// If a waker does, after all have been woken.
    #[inline]
    fn change_shortly<R>(&self, change: impl FnOnce(RwLockWriteGuard<'_, T>) -> R) -> R {
        match self.try_write() {
            Some(guard) => change(guard),
            None => self.behind_others(change),
        }
    }

    #[inline]
    fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        match self.value.try_write() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[cold]
    fn behind_others<R>(&self, change: impl FnOnce(RwLockWriteGuard<'_, T>) -> R) -> R {
        for attempt in 0..SPINS {
            spin(attempt);
            if let Some(guard) = self.try_write() {
                return change(guard);
            }
        }
        // Receivers that begin to wait meanwhile cannot have the lock either.
        self.take_long(change)
    }

    /// Runs `change` with the write lock. It may take as long as it likes.
    ///
    /// # Panics
    /// If `change` or a waker does, after all have been woken.
    fn take_long<R>(&self, change: impl FnOnce(RwLockWriteGuard<'_, T>) -> R) -> R {
        let (mut result, mut panic) = (None, FirstPanic::new());
        self.long.enter();
        panic.catch(|| {
            result = Some(change(self.value.write().unwrap_or_else(PoisonError::into_inner)));
        });
        if self.long.leave() {
            // Killed by `watch::model::a_receiver_wakes_up_after_a_sender_that_changed_nothing`.
            #[cfg(not(volt_mutant = "watch_long"))]
            panic.catch(|| self.changed.notify_all());
        }
        panic.resume();
        result.expect("present without a panic")
    }

    /// Ends a change of the value: a new version, and a wake-up for those who wait for it.
    #[inline]
    fn publish(&self, guard: RwLockWriteGuard<'_, T>) {
        // ORD relaxed: the write lock is held, and no other thread changes the word meanwhile.
        let version = self.version.load(Relaxed);
        // ORD[WA1] release: publishes the value to those who look without the lock.
        self.version.store(version.wrapping_add(STEP), Release);
        drop(guard);
        // A waiter listens and then looks at the version under the lock (`listened`): if it had the
        // lock before us, we see it listening; if after us, it sees our version.
        self.changed.notify_if_waiting();
    }

    /// The version, for a receiver that listens: either this is the newest one, or its sender sees
    /// the receiver listening. `None` if that cannot be said yet; then `waker` has been woken, or a
    /// sender will wake it.
    ///
    /// Does not wait for the lock: somebody may hold a [`Ref`], with a sender waiting behind it.
    fn listened(&self, waker: &Waker) -> Option<u64> {
        // Killed by `watch::model::a_waiting_receiver_is_woken_by_a_value`.
        #[cfg(volt_mutant = "watch_listened")]
        return Some(self.version());
        #[cfg(not(volt_mutant = "watch_listened"))]
        for attempt in 0..=SPINS {
            match self.value.try_read() {
                Ok(_guard) => return Some(self.version()),
                Err(TryLockError::Poisoned(_guard)) => return Some(self.version()),
                Err(TryLockError::WouldBlock) if self.long.sleep() => return None,
                Err(TryLockError::WouldBlock) => spin(attempt),
            }
        }
        // A sender that has a few instructions to go has lost the processor: it is given ours, and
        // this receiver comes back by itself.
        spin(u32::MAX);
        waker.wake_by_ref();
        None
    }
}

/// A look at the value. Holds the read lock: senders wait for it.
///
/// Keep it short, and not across an `.await`. Do not take a second look while the first one lives: if
/// a sender waits for the first, the second may wait behind that sender, for ever.
///
/// ```
/// let (_tx, rx) = volt_sync::watch::channel("value".to_owned());
/// let length = rx.borrow().len();
/// assert_eq!(length, 5);
/// ```
pub struct Ref<'a, T> {
    value: RwLockReadGuard<'a, T>,
    has_changed: bool,
}

impl<T> Ref<'_, T> {
    /// True if the value had not been seen by the receiver before this look. Always false for a look
    /// through a sender.
    ///
    /// ```
    /// let (tx, mut rx) = volt_sync::watch::channel(1);
    /// tx.send(2).unwrap();
    /// assert!(rx.borrow_and_update().has_changed());
    /// assert!(!rx.borrow_and_update().has_changed());
    /// ```
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ref")
            .field("value", &**self)
            .field("has_changed", &self.has_changed)
            .finish()
    }
}

/// The two halves keep the channel alive together.
type Handle<T> = Arc<Shared<T>>;
