//! Tokio-shaped locks, compiled for each library that has them.

use super::rt::sync;
use crate::kind::{Lock, Once, Permits, SharedLock};

impl Lock for sync::Mutex<u64> {
    fn create() -> Self {
        sync::Mutex::new(0)
    }

    fn try_bump(&self) -> bool {
        self.try_lock().map(|mut count| *count += 1).is_ok()
    }

    async fn bump(&self) {
        *self.lock().await += 1;
    }

    fn count(&self) -> u64 {
        *self.try_lock().expect("nobody holds it")
    }
}

impl SharedLock for sync::RwLock<u64> {
    fn create() -> Self {
        sync::RwLock::new(0)
    }

    fn try_peek(&self) -> Option<u64> {
        self.try_read().ok().map(|count| *count)
    }

    fn try_bump(&self) -> bool {
        self.try_write().map(|mut count| *count += 1).is_ok()
    }

    async fn peek(&self) -> u64 {
        *self.read().await
    }

    async fn bump(&self) {
        *self.write().await += 1;
    }
}

impl Permits for sync::Semaphore {
    fn create(permits: usize) -> Self {
        sync::Semaphore::new(permits)
    }

    fn try_pass(&self) -> bool {
        self.try_acquire().is_ok()
    }

    async fn pass(&self) {
        drop(self.acquire().await.expect("never closed"));
    }

    fn available(&self) -> usize {
        self.available_permits()
    }
}

impl Once for sync::OnceCell<u64> {
    fn create() -> Self {
        sync::OnceCell::new()
    }

    fn get(&self) -> Option<u64> {
        sync::OnceCell::get(self).copied()
    }

    async fn set(&self, value: u64) -> bool {
        sync::OnceCell::set(self, value).is_ok()
    }
}
