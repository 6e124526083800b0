//! Locks that ThreadSanitizer sees, for `--cfg volt_tsan` builds only.
//!
//! The prebuilt standard library is not instrumented, so the contended paths of its locks are
//! invisible to the tool, which then reports what they protect. These spin on atomics of ours, and
//! have the part of the standard locks' interface that Volt uses.
//!
//! | Edge  | Release side   | Acquire side     | Carries   | Model                                     |
//! |-------|----------------|------------------|-----------|-------------------------------------------|
//! | [TS1] | a guard's drop | `Mutex::try_lock` | the value | none: not compiled in anything that ships |

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{LockResult, TryLockError, TryLockResult};
use std::time::Duration;

/// A mutex whose waiters yield.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: as for the standard mutex: the value moves between threads, one at a time.
unsafe impl<T: Send> Send for Mutex<T> {}
// SAFETY: a shared mutex hands the value to one thread at a time.
unsafe impl<T: Send> Sync for Mutex<T> {}

/// Has the value alone.
#[derive(Debug)]
pub struct MutexGuard<'a, T>(&'a Mutex<T>);

// SAFETY: through a shared guard one gets a `&T`.
unsafe impl<T: Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    /// An unlocked value.
    pub const fn new(value: T) -> Self {
        Self { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Locks.
    ///
    /// # Errors
    /// Never.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        Ok(self.take())
    }

    /// Locks, unless it is locked.
    ///
    /// # Errors
    /// If it is.
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        // ORD[TS1] acquire: what the last holder did with the value.
        match self.locked.compare_exchange(false, true, Acquire, Relaxed) {
            Ok(_) => Ok(MutexGuard(self)),
            Err(_) => Err(TryLockError::WouldBlock),
        }
    }

    fn take(&self) -> MutexGuard<'_, T> {
        loop {
            if let Ok(guard) = self.try_lock() {
                return guard;
            }
            std::thread::yield_now();
        }
    }

    /// The value.
    ///
    /// # Errors
    /// Never.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        Ok(self.value.get_mut())
    }

    /// The value.
    ///
    /// # Errors
    /// Never.
    pub fn into_inner(self) -> LockResult<T> {
        Ok(self.value.into_inner())
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the holder has it alone.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the holder has it alone.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // ORD[TS1] release: the holder is done with the value.
        self.0.locked.store(false, Release);
    }
}

/// A condition variable all of whose waits are short and may end for no reason, which the standard
/// one's may too.
#[derive(Debug, Default)]
pub struct Condvar(());

/// Whether a wait has timed out.
#[derive(Clone, Copy, Debug)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether it has.
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

/// How long a wait lasts at most.
const LONGEST: Duration = Duration::from_micros(200);

impl Condvar {
    /// Nobody waits.
    pub const fn new() -> Self {
        Self(())
    }

    /// Waits a moment.
    ///
    /// # Errors
    /// Never.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let lock = guard.0;
        drop(guard);
        std::thread::sleep(LONGEST);
        Ok(lock.take())
    }

    /// Waits a moment, `timeout` at most.
    ///
    /// # Errors
    /// Never.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let lock = guard.0;
        drop(guard);
        std::thread::sleep(LONGEST.min(timeout));
        Ok((lock.take(), WaitTimeoutResult(timeout <= LONGEST)))
    }

    /// Does nothing: the waits end by themselves.
    pub fn notify_one(&self) {}

    /// Does nothing: the waits end by themselves.
    pub fn notify_all(&self) {}
}
