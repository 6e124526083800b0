//! Locks: async-lock, asyncband; parking_lot, std and a bare atomic as floors.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

use crate::kind::{Gate, Lock, Once, Permits, SharedLock, Signal};

impl Lock for async_lock::Mutex<u64> {
    fn create() -> Self {
        async_lock::Mutex::new(0)
    }

    fn try_bump(&self) -> bool {
        self.try_lock().map(|mut count| *count += 1).is_some()
    }

    async fn bump(&self) {
        *self.lock().await += 1;
    }

    fn count(&self) -> u64 {
        *self.try_lock().expect("nobody holds it")
    }
}

impl Lock for asyncband::mutex::Mutex<u64> {
    fn create() -> Self {
        asyncband::mutex::Mutex::new(0)
    }

    fn try_bump(&self) -> bool {
        self.try_lock().map(|mut count| *count += 1).is_some()
    }

    async fn bump(&self) {
        *self.lock().await += 1;
    }

    fn count(&self) -> u64 {
        *self.try_lock().expect("nobody holds it")
    }
}

/// A thread lock: it blocks the worker instead of the task.
impl Lock for parking_lot::Mutex<u64> {
    fn create() -> Self {
        parking_lot::Mutex::new(0)
    }

    fn try_bump(&self) -> bool {
        self.try_lock().map(|mut count| *count += 1).is_some()
    }

    async fn bump(&self) {
        *self.lock() += 1;
    }

    fn count(&self) -> u64 {
        *self.lock()
    }
}

/// A thread lock: it blocks the worker instead of the task.
impl Lock for std::sync::Mutex<u64> {
    fn create() -> Self {
        std::sync::Mutex::new(0)
    }

    fn try_bump(&self) -> bool {
        self.try_lock().map(|mut count| *count += 1).is_ok()
    }

    async fn bump(&self) {
        *self.lock().expect("not poisoned") += 1;
    }

    fn count(&self) -> u64 {
        *self.lock().expect("not poisoned")
    }
}

/// One compare-and-swap to take it, one swap to give it back: nobody can wait.
pub(crate) struct BarePair {
    word: AtomicU64,
    count: AtomicU64,
}

impl Lock for BarePair {
    fn create() -> Self {
        BarePair { word: AtomicU64::new(0), count: AtomicU64::new(0) }
    }

    fn try_bump(&self) -> bool {
        let taken = self.word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if taken {
            self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            self.word.swap(0, Ordering::Release);
        }
        taken
    }

    async fn bump(&self) {
        assert!(self.try_bump(), "one thread only");
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

macro_rules! shared_lock {
    ($type:ty, $new:expr, $try_read:ident, $try_write:ident) => {
        impl SharedLock for $type {
            fn create() -> Self {
                $new
            }

            fn try_peek(&self) -> Option<u64> {
                self.$try_read().map(|count| *count)
            }

            fn try_bump(&self) -> bool {
                self.$try_write().map(|mut count| *count += 1).is_some()
            }

            async fn peek(&self) -> u64 {
                *self.read().await
            }

            async fn bump(&self) {
                *self.write().await += 1;
            }
        }
    };
}

shared_lock!(async_lock::RwLock<u64>, async_lock::RwLock::new(0), try_read, try_write);
shared_lock!(
    asyncband::rwlock::RwLock<u64>,
    asyncband::rwlock::RwLock::new(0),
    try_read,
    try_write
);

/// A thread lock: it blocks the worker instead of the task.
impl SharedLock for parking_lot::RwLock<u64> {
    fn create() -> Self {
        parking_lot::RwLock::new(0)
    }

    fn try_peek(&self) -> Option<u64> {
        self.try_read().map(|count| *count)
    }

    fn try_bump(&self) -> bool {
        self.try_write().map(|mut count| *count += 1).is_some()
    }

    async fn peek(&self) -> u64 {
        *self.read()
    }

    async fn bump(&self) {
        *self.write() += 1;
    }
}

/// A thread lock: it blocks the worker instead of the task.
impl SharedLock for std::sync::RwLock<u64> {
    fn create() -> Self {
        std::sync::RwLock::new(0)
    }

    fn try_peek(&self) -> Option<u64> {
        self.try_read().map(|count| *count).ok()
    }

    fn try_bump(&self) -> bool {
        self.try_write().map(|mut count| *count += 1).is_ok()
    }

    async fn peek(&self) -> u64 {
        *self.read().expect("not poisoned")
    }

    async fn bump(&self) {
        *self.write().expect("not poisoned") += 1;
    }
}

/// async-lock's semaphore does not tell what is left: the adapter remembers what it was made with.
pub(crate) struct AsyncLockSemaphore(async_lock::Semaphore);

impl Permits for AsyncLockSemaphore {
    fn create(permits: usize) -> Self {
        AsyncLockSemaphore(async_lock::Semaphore::new(permits))
    }

    fn try_pass(&self) -> bool {
        self.0.try_acquire().is_some()
    }

    async fn pass(&self) {
        drop(self.0.acquire().await);
    }

    fn available(&self) -> usize {
        std::iter::from_fn(|| self.0.try_acquire()).collect::<Vec<_>>().len()
    }
}

impl Permits for asyncband::semaphore::Semaphore {
    fn create(permits: usize) -> Self {
        asyncband::semaphore::Semaphore::new(permits)
    }

    fn try_pass(&self) -> bool {
        self.try_acquire(1).is_some()
    }

    async fn pass(&self) {
        drop(self.acquire(1).await);
    }

    fn available(&self) -> usize {
        self.available_permits()
    }
}

impl Once for async_lock::OnceCell<u64> {
    fn create() -> Self {
        async_lock::OnceCell::new()
    }

    fn get(&self) -> Option<u64> {
        async_lock::OnceCell::get(self).copied()
    }

    async fn set(&self, value: u64) -> bool {
        async_lock::OnceCell::set(self, value).await.is_ok()
    }
}

impl Once for asyncband::once::OnceCell<u64> {
    fn create() -> Self {
        asyncband::once::OnceCell::new()
    }

    fn get(&self) -> Option<u64> {
        asyncband::once::OnceCell::get(self).copied()
    }

    async fn set(&self, value: u64) -> bool {
        asyncband::once::OnceCell::set(self, value).await.is_ok()
    }
}

impl Once for std::sync::OnceLock<u64> {
    fn create() -> Self {
        std::sync::OnceLock::new()
    }

    fn get(&self) -> Option<u64> {
        std::sync::OnceLock::get(self).copied()
    }

    async fn set(&self, value: u64) -> bool {
        std::sync::OnceLock::set(self, value).is_ok()
    }
}

impl Signal for asyncband::event::AutoResetEvent {
    fn create() -> Self {
        asyncband::event::AutoResetEvent::new()
    }

    fn notify(&self) {
        self.set();
    }

    async fn wait(&self) {
        asyncband::event::AutoResetEvent::wait(self).await;
    }
}

/// An atomic flag: one swap to set it, one to take it.
pub(crate) struct BareFlag(AtomicU64);

impl Signal for BareFlag {
    fn create() -> Self {
        BareFlag(AtomicU64::new(0))
    }

    fn notify(&self) {
        self.0.swap(1, Ordering::Release);
    }

    async fn wait(&self) {
        assert_eq!(self.0.swap(0, Ordering::Acquire), 1, "one thread only");
    }
}

impl Gate for async_lock::Barrier {
    fn create(parties: u32) -> Self {
        async_lock::Barrier::new(parties as usize)
    }

    async fn pass(&self) -> bool {
        self.wait().await.is_leader()
    }
}

impl Gate for asyncband::barrier::Barrier {
    fn create(parties: u32) -> Self {
        asyncband::barrier::Barrier::new(parties)
    }

    async fn pass(&self) -> bool {
        self.wait().await.is_leader()
    }
}
