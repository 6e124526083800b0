//! The lock of one timer shard.
//!
//! Purpose: guards one worker's wheel. Almost always taken by that worker alone, for a few dozen
//! nanoseconds, so what counts is the cost when it is free.
//!
//! Rejected: `std::sync::Mutex`, whose unlock is a second read-modify-write (it has to learn
//! whether somebody sleeps), 5 ns of the 60 ns that a timer may cost, paid twice per timer.
//!
//! | State | meaning          | next                                   |
//! |-------|------------------|----------------------------------------|
//! | 0     | free             | 1, by the thread whose CAS wins        |
//! | 1     | one thread inside| 0, by that thread                      |
//!
//! Invariants:
//! 1. The value is touched only by the thread that changed the word from 0 to 1.
//! 2. No user code (wakers, drops) runs inside, and the work inside is bounded.
//!
//! | Edge  | Release side | Acquire side | Carries            | Model test |
//! |-------|--------------|--------------|--------------------|------------|
//! | [TL1] | `Unlock::drop` | `Lock::try_lock` | the guarded value | `lock_orders_the_guarded_value` |
//!
//! Progress: a waiter spins and then gives its time slice away, so that a preempted holder can
//! go on (invariant 2 bounds the wait).
//!
//! Cost: 1 RMW and 1 store.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use volt_sync::internal::primitive::{AtomicU32, UnsafeCell};

/// A value behind a spin lock.
#[derive(Debug)]
pub(super) struct Lock<T> {
    word: imp::Word,
    value: UnsafeCell<T>,
}

// SAFETY: invariant 1: the lock gives one thread at a time access to the value, so the value needs
// to be `Send` only.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Unlocks, also if the closure panics.
struct Unlock<'a>(&'a imp::Word);

impl Drop for Unlock<'_> {
    #[inline]
    fn drop(&mut self) {
        let sleepers = self.0.sleepers();
        // ORD[TL1] release: publishes what this thread did to the value.
        self.0.word().store(0, Release);
        // From here on the lock may be gone.
        sleepers.wake();
    }
}

impl<T> Lock<T> {
    pub(super) fn new(value: T) -> Self {
        Self { word: imp::Word::new(), value: UnsafeCell::new(value) }
    }

    /// Calls `f` with the value while holding the lock.
    #[inline]
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        if !self.try_lock() {
            self.lock_slow();
        }
        let _unlock = Unlock(&self.word);
        // SAFETY: invariant 1: the lock is held until `_unlock` goes, which outlives the closure.
        self.value.with_mut(|value| f(unsafe { &mut *value }))
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // ORD[TL1] acquire: sees what the last holder did to the value.
        self.word.word().compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn lock_slow(&self) {
        let mut attempt = 0;
        loop {
            self.word.wait(attempt);
            if self.try_lock() {
                return;
            }
            attempt = attempt.saturating_add(1);
        }
    }
}

#[cfg(not(volt_loom))]
mod imp {
    use std::sync::atomic::Ordering::Relaxed;

    use super::AtomicU32;
    use volt_sync::internal::primitive::spin;

    #[derive(Debug)]
    pub(super) struct Word(AtomicU32);

    /// Nobody sleeps: waiters spin.
    pub(super) struct Sleepers;

    impl Word {
        pub(super) const fn new() -> Self {
            Self(AtomicU32::new(0))
        }

        #[inline]
        pub(super) const fn word(&self) -> &AtomicU32 {
            &self.0
        }

        #[inline]
        pub(super) const fn sleepers(&self) -> Sleepers {
            Sleepers
        }

        pub(super) fn wait(&self, mut attempt: u32) {
            loop {
                spin(attempt);
                // ORD relaxed: only a hint when to try again.
                if self.0.load(Relaxed) == 0 {
                    return;
                }
                attempt = attempt.saturating_add(1);
            }
        }
    }

    impl Sleepers {
        #[inline]
        pub(super) const fn wake(self) {}
    }
}

/// Loom cannot explore endless spinning: its waiters sleep on a futex, which the unlocking thread
/// keeps alive while it wakes them.
#[cfg(volt_loom)]
mod imp {
    use super::AtomicU32;
    use volt_sync::internal::primitive::{Arc, Futex};

    #[derive(Debug)]
    pub(super) struct Word(Arc<Futex>);

    pub(super) struct Sleepers(Arc<Futex>);

    impl Word {
        pub(super) fn new() -> Self {
            Self(Arc::new(Futex::new(0)))
        }

        pub(super) fn word(&self) -> &AtomicU32 {
            self.0.word()
        }

        pub(super) fn sleepers(&self) -> Sleepers {
            Sleepers(self.0.clone())
        }

        pub(super) fn wait(&self, _attempt: u32) {
            self.0.wait(1, None);
        }
    }

    impl Sleepers {
        pub(super) fn wake(self) {
            self.0.wake(1);
        }
    }
}
