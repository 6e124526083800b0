use std::ptr;
use std::sync::Arc as StdArc;
use std::sync::atomic::Ordering::Relaxed;

use crate::engine::{Config, Core};
use crate::frame::{Frame, Outcome};
use crate::install::install;
use crate::task::{Action, Task};
use crate::worker::{Help, Worker};
use volt_sync::internal::primitive::{Arc, AtomicU32, UnsafeCell, thread};

/// A pool that starts no threads of its own. The record is that of the host.
struct Pool {
    core: StdArc<Core>,
    worker: Worker,
    runs: AtomicU32,
    value: UnsafeCell<u32>,
}

// SAFETY: loom checks the cell; the worker's are used by the one thread that plays it.
unsafe impl Sync for Pool {}
// SAFETY: as for the one above.
unsafe impl Send for Pool {}

impl Pool {
    fn new() -> Arc<Self> {
        let core = Core::new(Config { threads: 1, ..Config::default() });
        core.count_played_thread();
        Arc::new(Self {
            worker: Worker::new(StdArc::as_ptr(&core), 0, Some(0)),
            core,
            runs: AtomicU32::new(0),
            value: UnsafeCell::new(0),
        })
    }

    /// One search of a thread that is free.
    fn work(&self) {
        if let Some(mut consumer) = self.core.injector.try_lock() {
            let task = consumer.pop();
            let _ = consumer.unlock();
            if let Some(task) = task {
                // SAFETY: out of the queue.
                unsafe { Task::call(task, Action::Run) };
            }
        }
    }

    /// A guest, which is a part of `frame`, calls into the pool.
    fn call(&self, frame: &Frame) {
        self.core.as_guest(|guest| {
            guest.unwrap().within(frame, || {
                install(&self.core, || {
                    self.value.with_mut(|_| ());
                    self.runs.fetch_add(1, Relaxed);
                });
            });
        });
        self.value.with_mut(|_| ());
        assert_eq!(self.runs.load(Relaxed), 1);
    }
}

/// The host waits for the guest, and another thread looks for work once: one of them makes the call. What
/// is left of it is called later, and does nothing.
#[test]
fn the_host_or_a_free_thread_makes_the_call() {
    loom::model(|| {
        let pool = Pool::new();
        // SAFETY: the model keeps the pool, and so the record, until the threads are joined.
        let host: &'static Worker = unsafe { &*(&raw const pool.worker) };
        // SAFETY: a null parent is allowed.
        let frame = Arc::new(unsafe { Frame::new(ptr::null(), host.parker(), host) });
        let waits_for = frame.clone();
        let waiting = thread::spawn(move || {
            Worker::enter(host);
            host.wait(&waits_for, Help::Mail);
            drop(waits_for);
            // The order may still be there.
            // SAFETY: a null parent is allowed.
            let next = unsafe { Frame::new(ptr::null(), host.parker(), host) };
            host.wait_once(&next, || true);
            assert!(!host.has_mail());
            Worker::enter(ptr::null());
        });
        let free = pool.clone();
        let free = thread::spawn(move || free.work());
        pool.call(&frame);
        // SAFETY: nobody else finishes it.
        unsafe { Frame::finish(&raw const *frame, Outcome::Done) };
        drop(frame);
        free.join().unwrap();
        waiting.join().unwrap();
        pool.work();
        assert_eq!(pool.runs.load(Relaxed), 1);
    });
}
