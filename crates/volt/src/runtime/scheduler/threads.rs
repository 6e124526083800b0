//! How many worker threads live, and a wait until none does.
//!
//! A thread is counted until it has dropped its count of the scheduler, so that nothing of the
//! runtime is left when its drop returns; the count lives on its own for that.
//!
//! Rejected: join handles. `block_in_place` passes a worker from thread to thread, and a shutdown
//! with a timeout cannot join.
#![forbid(unsafe_code)]

use std::sync::PoisonError;
use std::time::Duration;

use volt_sync::internal::primitive::{Arc, Condvar, Mutex, spin, thread};

/// The count.
#[derive(Debug)]
pub(crate) struct Threads {
    alive: Mutex<usize>,
    changed: Condvar,
}

impl Threads {
    pub(crate) fn new() -> Self {
        Self { alive: Mutex::new(0), changed: Condvar::new() }
    }

    fn enter(&self) {
        *self.alive.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    fn exit(&self) {
        let mut alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        *alive -= 1;
        if *alive == 0 {
            self.changed.notify_all();
        }
    }

    /// Waits until there is no thread; at most for `timeout`. True if there is none.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> bool {
        let deadline =
            timeout.and_then(|timeout| volt_sync::internal::primitive::now().checked_add(timeout));
        let mut alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        while *alive > 0 {
            alive = match deadline {
                None => self.changed.wait(alive).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left =
                        deadline.saturating_duration_since(volt_sync::internal::primitive::now());
                    if left.is_zero() {
                        return false;
                    }
                    self.changed.wait_timeout(alive, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        true
    }
}

/// A thread that counts, from before it is started until this is dropped.
#[derive(Debug)]
pub(crate) struct Alive(Arc<Threads>);

impl Alive {
    pub(crate) fn new(threads: &Arc<Threads>) -> Self {
        threads.enter();
        Self(threads.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.exit();
    }
}

/// For the end of a shutdown, which waits for another thread's next few instructions, or for a poll of
/// it: spins, and gives the processor away for a moment once that has taken many `attempts`.
pub(super) fn wait_briefly(attempts: u32) {
    spin(attempts);
    if attempts > 1000 {
        #[cfg(not(volt_loom))]
        thread::sleep(Duration::from_micros(50));
        #[cfg(volt_loom)]
        thread::yield_now();
    }
}
