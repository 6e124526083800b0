//! A scheduler of a queue, for the tests of this module.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::task::{Context, Poll, Wake, Waker};

use volt_sync::internal::primitive::{Arc, AtomicUsize, Mutex, UnsafeCell};

use super::header::Header;
use super::{JoinHandle, Notified, OwnedTasks, Schedule, ToIdle, unowned};

pub(super) struct Queue {
    tasks: Mutex<VecDeque<Notified>>,
    pub(super) owned: OwnedTasks,
    pub(super) yields: AtomicUsize,
    /// Touched by every call and by the drop, so that loom sees a call that outlives the queue.
    alive: UnsafeCell<()>,
}

// SAFETY: `alive` is only written by the drop.
unsafe impl Send for Queue {}
// SAFETY: the other fields are `Sync`.
unsafe impl Sync for Queue {}

impl Queue {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            tasks: Mutex::new(VecDeque::new()),
            owned: OwnedTasks::new(1),
            yields: AtomicUsize::new(0),
            alive: UnsafeCell::new(()),
        })
    }

    pub(super) fn spawn<F>(this: &Arc<Self>, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (join, notified) = Self::bind(this, future);
        if let Some(notified) = notified {
            this.tasks.lock().unwrap().push_back(notified);
        }
        join
    }

    pub(super) fn bind<F>(this: &Arc<Self>, future: F) -> (JoinHandle<F::Output>, Option<Notified>)
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // SAFETY:
        // 1. The tests shut a queue down before they drop it; `release` is below.
        // 2. The future is `Send`.
        unsafe { this.owned.bind(0, future, Self::pointer(this)) }
    }

    /// As tasks know it.
    fn pointer(this: &Arc<Self>) -> NonNull<Self> {
        // SAFETY: an `Arc`'s, so not null. (That of a reference would not do: `schedule` changes the count.)
        unsafe { NonNull::new_unchecked(Arc::as_ptr(this).cast_mut()) }
    }

    /// As [`spawn`](Self::spawn), but the task is linked when it is pending.
    pub(super) fn spawn_unlinked<F>(this: &Arc<Self>, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // SAFETY: the tests run or drop what is queued before they drop the queue; then as `bind`.
        let (notified, join) = unsafe { unowned(future, Self::pointer(this), 0) };
        this.tasks.lock().unwrap().push_back(notified);
        join
    }

    pub(super) fn pop(&self) -> Option<Notified> {
        self.tasks.lock().unwrap().pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.lock().unwrap().len()
    }

    /// Runs what is queued, and what that queues.
    pub(super) fn run(&self) -> usize {
        let mut polls = 0;
        while let Some(task) = self.pop() {
            task.run();
            polls += 1;
        }
        polls
    }

    /// What a runtime does at its end.
    pub(super) fn shutdown(this: Arc<Self>) {
        this.owned.close_and_cancel(|| ());
        loop {
            match this.pop() {
                Some(task) => drop(task),
                None if this.owned.is_empty() => return,
                None => volt_sync::internal::primitive::spin(100),
            }
        }
    }
}

// SAFETY:
// 1. `release` unlinks from `owned`.
// 2. `shutdown` closes and empties it before the queue is dropped.
unsafe impl Schedule for Queue {
    unsafe fn schedule(this: NonNull<Self>, task: Notified) {
        // SAFETY: alive as long as we have not handed the task over.
        unsafe { Arc::increment_strong_count(this.as_ptr()) };
        // SAFETY: that count is ours.
        let this = unsafe { Arc::from_raw(this.as_ptr()) };
        this.alive.with(|_| {});
        this.tasks.lock().unwrap().push_back(task);
        // A scheduler looks for somebody to wake up now.
        this.alive.with(|_| {});
    }

    unsafe fn yield_now(this: NonNull<Self>, task: Notified) {
        // SAFETY: alive, as above.
        unsafe { this.as_ref() }.yields.fetch_add(1, Relaxed);
        // SAFETY: the same obligations.
        unsafe { Self::schedule(this, task) };
    }

    unsafe fn release(this: NonNull<Self>, task: NonNull<Header>) -> bool {
        // SAFETY: alive: the task is still linked.
        let this = unsafe { this.as_ref() };
        this.alive.with(|_| {});
        // SAFETY: the runner calls this once.
        unsafe { this.owned.release(task) }
    }

    unsafe fn link(this: NonNull<Self>, task: NonNull<Header>) -> ToIdle {
        // SAFETY: alive, since the caller of `run` keeps it so.
        let this = unsafe { this.as_ref() };
        this.alive.with(|_| {});
        // SAFETY: the runner calls this, for a task of `spawn_unlinked`.
        unsafe { this.owned.link(0, task) }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.alive.with_mut(|_| {});
    }
}

/// Counts its drops.
#[derive(Clone)]
pub(super) struct Dropped(pub(super) std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl Dropped {
    pub(super) fn counter() -> (Self, impl Fn() -> usize) {
        let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        (Self(count.clone()), move || count.load(SeqCst))
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Counts its wake-ups.
#[derive(Default)]
pub(super) struct Counter(pub(super) std::sync::atomic::AtomicUsize);

impl Wake for Counter {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Counter {
    pub(super) fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

pub(super) fn counting_waker() -> (std::sync::Arc<Counter>, Waker) {
    let counter = std::sync::Arc::new(Counter::default());
    (counter.clone(), Waker::from(counter))
}

pub(super) fn poll_with<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}
