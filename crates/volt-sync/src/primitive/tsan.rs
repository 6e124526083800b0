//! Locks that ThreadSanitizer sees, for `--cfg volt_tsan` builds only.
//!
//! The prebuilt standard library is not instrumented, so the contended paths of its locks are
//! invisible to the tool, which then reports what they protect. These spin on atomics of ours, and
//! have the part of the standard locks' interface that Volt uses.
//!
//! | Edge  | Release side   | Acquire side     | Carries   | Model                                     |
//! |-------|----------------|------------------|-----------|-------------------------------------------|
//! | [TS1] | a guard's drop | `RwLock::change` | the value | none: not compiled in anything that ships |

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{LockResult, TryLockError, TryLockResult};
use std::time::Duration;

const WRITER: u32 = u32::MAX;

/// A reader-writer lock on one word: the number of readers, or `WRITER`.
#[derive(Debug, Default)]
pub struct RwLock<T> {
    users: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: as for the standard lock: the value moves between threads.
unsafe impl<T: Send> Send for RwLock<T> {}
// SAFETY: as for the standard lock: readers share the value, writers have it alone.
unsafe impl<T: Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    /// An unlocked value.
    pub const fn new(value: T) -> Self {
        Self { users: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Locks for reading.
    ///
    /// # Errors
    /// Never.
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        self.change(|users| (users != WRITER).then(|| users + 1));
        Ok(RwLockReadGuard(self))
    }

    /// Locks for reading, unless a writer has it.
    ///
    /// # Errors
    /// If a writer has it.
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let more = |users| (users != WRITER).then(|| users + 1);
        // ORD[TS1] acquire: what the last holder did with the value.
        match self.users.fetch_update(Acquire, Relaxed, more) {
            Ok(_) => Ok(RwLockReadGuard(self)),
            Err(_) => Err(TryLockError::WouldBlock),
        }
    }

    /// Locks for writing.
    ///
    /// # Errors
    /// Never.
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        self.change(|users| (users == 0).then_some(WRITER));
        Ok(RwLockWriteGuard(self))
    }

    /// Locks for writing, unless somebody has it.
    ///
    /// # Errors
    /// If somebody has it.
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        // ORD[TS1] acquire: what the last holder did with the value.
        match self.users.compare_exchange(0, WRITER, Acquire, Relaxed) {
            Ok(_) => Ok(RwLockWriteGuard(self)),
            Err(_) => Err(TryLockError::WouldBlock),
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

    fn change(&self, to: impl Fn(u32) -> Option<u32>) {
        // ORD[TS1] acquire: what the last holder did with the value.
        while self.users.fetch_update(Acquire, Relaxed, &to).is_err() {
            std::thread::yield_now();
        }
    }
}

/// Shares the value.
#[derive(Debug)]
pub struct RwLockReadGuard<'a, T>(&'a RwLock<T>);

/// Has the value alone.
#[derive(Debug)]
pub struct RwLockWriteGuard<'a, T>(&'a RwLock<T>);

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: counted as a reader, so no writer has it.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the writer has it alone.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the writer has it alone.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        // ORD[TS1] release: the reads are done.
        self.0.users.fetch_sub(1, Release);
    }
}

impl<T> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        // ORD[TS1] release: the writes are done.
        self.0.users.store(0, Release);
    }
}

/// A mutex: the write half of the lock above.
#[derive(Debug, Default)]
pub struct Mutex<T>(RwLock<T>);

/// Has the value alone.
pub type MutexGuard<'a, T> = RwLockWriteGuard<'a, T>;

// SAFETY: a mutex never shares the value, so `T` need not be `Sync`.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// An unlocked value.
    pub const fn new(value: T) -> Self {
        Self(RwLock::new(value))
    }

    /// Locks.
    ///
    /// # Errors
    /// Never.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.0.write()
    }

    /// The value.
    ///
    /// # Errors
    /// Never.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }

    /// The value.
    ///
    /// # Errors
    /// Never.
    pub fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
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
        lock.write()
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
        lock.change(|users| (users == 0).then_some(WRITER));
        Ok((RwLockWriteGuard(lock), WaitTimeoutResult(timeout <= LONGEST)))
    }

    /// Does nothing: the waits end by themselves.
    pub fn notify_one(&self) {}

    /// Does nothing: the waits end by themselves.
    pub fn notify_all(&self) {}
}
