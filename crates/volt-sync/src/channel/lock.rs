//! A lock for a few instructions.
//!
//! Purpose: guards the waiter queues of a channel, and the blocks of one that is a list. One byte,
//! one read-modify-write to lock, a plain store to unlock.
//!
//! Rejected: std's mutex, which costs a second read-modify-write to unlock and can be poisoned; a
//! ticket or queue lock, which hands over to a preempted thread and stalls all behind it.
//!
//! | State    | `with`                     |
//! |----------|----------------------------|
//! | unlocked | locks, runs, unlocks       |
//! | locked   | backs off, later yields, retries |
//!
//! Invariant 1: no user code (wakers, destructors, clones) runs inside the closure, so that it
//! neither panics nor re-enters, and is over in a bounded number of instructions.
//!
//! | Edge  | Release side | Acquire side | Carries | Model that fails without it |
//! |-------|--------------|--------------|---------|-----------------------------|
//! | [SL1] | `Unlock::drop` | `SpinLock::with_spinning` | the content | `channel::lock::model::the_content_is_exclusive` |
//!
//! Progress: a preempted holder delays the others, which give their time slices away after a while.
//! A thread that found the lock taken waits for microseconds, so that the holder can take it several
//! times: throughput comes before fairness between threads (among waiting futures, the queues are
//! what is fair).
//!
//! Cost: 1 RMW.

use std::fmt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::BackOff;
use crate::primitive::{AtomicBool, UnsafeCell};

pub(crate) struct SpinLock<T> {
    locked: AtomicBool,
    content: UnsafeCell<T>,
    /// Loom lets two spinning threads take turns for ever while the holder waits: there the lock is
    /// taken behind a mutex, except in this module's model.
    #[cfg(volt_loom)]
    turn: crate::primitive::Mutex<()>,
}

// SAFETY: the content moves between threads, one at a time.
unsafe impl<T: Send> Send for SpinLock<T> {}
// SAFETY: as above; `with` is the only shared access and excludes others.
unsafe impl<T: Send> Sync for SpinLock<T> {}

struct Unlock<'a>(&'a AtomicBool);

impl Drop for Unlock<'_> {
    #[inline]
    fn drop(&mut self) {
        // ORD[SL1] release: hands the content to the next holder.
        self.0.store(false, Release);
    }
}

impl<T> SpinLock<T> {
    crate::const_fn! {
        pub(crate) const fn new(content: T) -> Self {
            Self {
                locked: AtomicBool::new(false),
                content: UnsafeCell::new(content),
                #[cfg(volt_loom)]
                turn: crate::primitive::Mutex::new(()),
            }
        }
    }

    /// Runs `f` with exclusive access.
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(volt_loom)]
        let _turn = self.turn.lock();
        self.with_spinning(f)
    }

    #[inline]
    fn with_spinning<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // ORD[SL1] acquire: the content as the last holder left it.
        if self.locked.compare_exchange(false, true, Acquire, Relaxed).is_err() {
            self.lock_slow();
        }
        let _unlock = Unlock(&self.locked);
        // SAFETY: between lock and unlock the content is ours alone.
        self.content.with_mut(|content| f(unsafe { &mut *content }))
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        let mut back_off = BackOff::new();
        loop {
            back_off.lost();
            // ORD relaxed: a hint that the exchange is worth its cache line.
            if self.locked.load(Relaxed) {
                continue;
            }
            // ORD[SL1] acquire: the content as the last holder left it.
            if self.locked.compare_exchange(false, true, Acquire, Relaxed).is_ok() {
                return;
            }
        }
    }
}

impl<T> fmt::Debug for SpinLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpinLock").finish_non_exhaustive()
    }
}

#[cfg(all(test, volt_loom))]
mod model {
    use super::SpinLock;
    use crate::primitive::explore;
    use crate::primitive::{Arc, thread};

    #[test]
    fn the_content_is_exclusive() {
        explore(|| {
            let lock = Arc::new(SpinLock::new(0));
            let other = lock.clone();
            let thread = thread::spawn(move || other.with_spinning(|n| *n += 1));
            lock.with_spinning(|n| *n += 1);
            thread.join().unwrap();
            assert_eq!(lock.with(|n| *n), 2);
        });
    }
}
