//! A pool for the models, which play its threads.

use std::ptr::NonNull;
use std::sync::Arc as StdArc;
use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::{Arc, AtomicU32, UnsafeCell};

use crate::engine::{Config, Core};
use crate::task::Task;
use crate::worker::Worker;

/// A pool that starts no threads of its own, the record of its one thread, and what its tasks do.
pub(crate) struct Pool {
    pub(crate) core: StdArc<Core>,
    pub(crate) worker: Worker,
    pub(crate) runs: AtomicU32,
    pub(crate) values: [UnsafeCell<u32>; 2],
}

// SAFETY: loom checks the cells; the worker's are used by the one thread that plays it.
unsafe impl Sync for Pool {}
// SAFETY: as for `Sync`, above.
unsafe impl Send for Pool {}

impl Pool {
    pub(crate) fn new() -> Arc<Self> {
        let core = Core::new(Config { threads: 1, ..Config::default() });
        core.count_played_thread();
        Arc::new(Self {
            worker: Worker::new(StdArc::as_ptr(&core), 0, Some(0)),
            core,
            runs: AtomicU32::new(0),
            values: [UnsafeCell::new(0), UnsafeCell::new(0)],
        })
    }

    /// What one search of a thread finds.
    pub(crate) fn search(&self) -> Option<NonNull<Task>> {
        let mut consumer = self.core.injector.try_lock()?;
        let task = consumer.pop();
        let _ = consumer.unlock();
        task
    }

    pub(crate) fn task(&self, number: usize) {
        self.values[number].with_mut(|_| ());
        // ORD relaxed: read when the threads are joined.
        self.runs.fetch_add(1, Relaxed);
    }
}
