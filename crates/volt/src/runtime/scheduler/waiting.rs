//! Threads that sleep beside a runtime until something changes in it: until the place of a current-thread
//! runtime's guest may be free, or until a shutdown begins.
//!
//! State: a list of their places to sleep. A thread is on it from before its last look until it is awake
//! again, so a list is as long as there are threads that wait.
#![forbid(unsafe_code)]

use volt_sync::internal::primitive::{Arc, Mutex, MutexGuard};

use super::park::{Park, ROOT};

/// The list.
pub(super) struct Waiting(Mutex<Vec<Arc<Park>>>);

impl Waiting {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Park>>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// `park` is woken at the next [`wake_all`](Self::wake_all), unless it is removed before.
    pub(super) fn add(&self, park: &Arc<Park>) {
        let mut list = self.lock();
        if !list.iter().any(|other| Arc::ptr_eq(other, park)) {
            list.push(park.clone());
        }
    }

    /// The thread of `park` is awake.
    pub(super) fn remove(&self, park: &Arc<Park>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, park));
    }

    /// Has everybody look again.
    pub(super) fn wake_all(&self) {
        let woken = std::mem::take(&mut *self.lock());
        woken.iter().for_each(|park| park.unpark(ROOT));
    }

    #[cfg(all(test, not(volt_loom)))]
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
