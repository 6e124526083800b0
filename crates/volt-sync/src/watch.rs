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
//! A new value wakes those who wait in the order in which they began to. Among senders and borrows
//! there is no order, but who has tried for a while makes senders stand back, and a sender that waits
//! for borrows keeps new ones out until its turn.
//!
//! # Cancel safety
//! A [`changed`](Receiver::changed) that is dropped has marked nothing as seen. A
//! [`wait_for`](Receiver::wait_for) has marked the values that it has rejected, and no other.
//!
//! # Cost and memory
//! [`channel`] allocates once, 17 words and the value. Sending is one read-modify-write if nobody
//! waits; two with a closure, or behind a [`Ref`]. `borrow` is two. Waiting takes the lock once for
//! reading, and allocates nothing; it never waits for the lock, and does not keep the processor busy
//! while a sender's closure runs. A thread that waits for the lock sleeps, but behind a sender that
//! has just to store a value: there it spins, and gives its processor away.

mod lock;
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
use std::task::Waker;

use self::lock::{Lock, ReadGuard, SPINS, TryRead, WriteGuard};
use crate::event::Event;
use crate::first_panic::FirstPanic;
use crate::primitive::{Arc, AtomicU64, AtomicUsize, spin};

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
    value: Lock<T>,
    /// [`CLOSED`], and the number of values sent in steps of [`STEP`]. Changed only in a turn with
    /// `value`, but for the CLOSED bit, which is set when no sender is left.
    version: AtomicU64,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    /// A new version, or the close.
    changed: Event,
    /// The last receiver has left.
    abandoned: Event,
}

const CLOSED: u64 = 1;
const STEP: u64 = 2;

impl<T> Shared<T> {
    fn new(init: T) -> Self {
        Self {
            value: Lock::new(init),
            version: AtomicU64::new(0),
            senders: AtomicUsize::new(1),
            receivers: AtomicUsize::new(0),
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

    /// Ends a change of the value: a new version, and a wake-up for those who wait for it.
    ///
    /// # Panics
    /// If a waker does, after all have been woken.
    #[inline]
    fn publish(&self, guard: WriteGuard<'_, T>) -> FirstPanic {
        // ORD relaxed: it is this sender's turn, and no other thread changes the word meanwhile.
        let version = self.version.load(Relaxed);
        // ORD[WA1] release: publishes the value to those who look without the lock.
        self.version.store(version.wrapping_add(STEP), Release);
        if guard.unlock() {
            self.changed.notify_all()
        } else {
            // A waiter listens and then looks at the version under the lock (`listened`): if it had
            // the lock before us, we see it listening; if after us, it sees our version.
            self.changed.notify_if_waiting()
        }
    }

    /// Ends a long turn that has changed nothing.
    ///
    /// # Panics
    /// If a waker does, after all have been woken.
    fn leave_as_it_is(&self, guard: WriteGuard<'_, T>) {
        let tasks = guard.unlock();
        // Killed by `watch::model::a_receiver_wakes_up_after_a_sender_that_changed_nothing`.
        #[cfg(not(volt_mutant = "watch_long"))]
        if tasks {
            self.changed.notify_all().resume();
        }
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
                TryRead::Locked(_guard) => return Some(self.version()),
                TryRead::Long => return None,
                TryRead::Short => spin(attempt),
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
    value: ReadGuard<'a, T>,
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
