use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use crate::frame::{Frame, Outcome};
use crate::install::install;
use crate::played::Pool;
use crate::task::{Action, Task};
use crate::worker::{Help, Worker};
use volt_sync::internal::primitive::{Arc, explore, thread};

/// One search of a thread that is free. (The record is that of the host.)
fn work(pool: &Pool) {
    if let Some(task) = pool.search() {
        // SAFETY: out of the queue.
        unsafe { Task::call(task, Action::Run) };
    }
}

/// A guest, which is a part of `frame`, calls into the pool.
fn call(pool: &Pool, frame: &Frame) {
    pool.core.as_guest(|guest| {
        guest.unwrap().within(frame, || install(&pool.core, || pool.task(0)));
    });
    pool.values[0].with_mut(|_| ());
    assert_eq!(pool.runs.load(Relaxed), 1);
}

/// The host waits for the guest, and another thread looks for work once: one of them makes the call. What
/// is left of it is called later, and does nothing.
#[test]
fn the_host_or_a_free_thread_makes_the_call() {
    explore(|| {
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
        let free = thread::spawn(move || work(&free));
        call(&pool, &frame);
        // SAFETY: nobody else finishes it.
        unsafe { Frame::finish(&raw const *frame, Outcome::Done) };
        drop(frame);
        free.join().unwrap();
        waiting.join().unwrap();
        work(&pool);
        assert_eq!(pool.runs.load(Relaxed), 1);
    });
}
