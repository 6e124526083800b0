//! The allocation contract of the locks: nothing at construction, nothing for a wait, a cancellation
//! or a wake-up.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use volt_sync::{Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce};

/// Counts the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // An error: the thread is being torn down.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's obligations are those of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligations are those of `System`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count<R>(f: impl FnOnce() -> R) -> (usize, R) {
    let before = ALLOCATIONS.with(Cell::get);
    let result = f();
    (ALLOCATIONS.with(Cell::get) - before, result)
}

#[track_caller]
fn free_of_allocations<R>(f: impl FnOnce() -> R) -> R {
    let (allocations, result) = count(f);
    assert_eq!(allocations, 0);
    result
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn the_counter_counts() {
    assert_eq!(count(|| drop(Box::new(5_u8))).0, 1);
}

#[test]
fn construction_allocates_nothing() {
    free_of_allocations(|| {
        black_box(Mutex::new(1));
        black_box(RwLock::new(1));
        black_box(Semaphore::new(1));
        black_box(Notify::new());
        black_box(Barrier::new(2));
        black_box(OnceCell::<u8>::new());
        black_box(SetOnce::<u8>::new());
    });
}

/// One that waits, is polled again and is woken, and one that is cancelled while it waits. What
/// `start` returns makes the futures wait, and completes the oldest when it is dropped.
fn waits_are_free<A: Future, B>(make: impl Fn() -> A, start: impl FnOnce() -> B) {
    free_of_allocations(|| {
        let held = start();
        let mut woken = pin!(make());
        assert!(poll(woken.as_mut()).is_pending());
        assert!(poll(woken.as_mut()).is_pending());
        {
            let cancelled = pin!(make());
            assert!(poll(cancelled).is_pending());
        }
        drop(held);
        assert!(poll(woken.as_mut()).is_ready());
    });
}

/// Calls a function on drop.
struct Then<F: FnMut()>(F);

impl<F: FnMut()> Drop for Then<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_wait_for_a_mutex_allocates_nothing() {
    let mutex = Mutex::new(1);
    waits_are_free(|| mutex.lock(), || mutex.try_lock().unwrap());
}

#[test]
fn a_wait_for_a_read_or_write_lock_allocates_nothing() {
    let lock = RwLock::new(1);
    waits_are_free(|| lock.read(), || lock.try_write().unwrap());
    waits_are_free(|| lock.write(), || lock.try_read().unwrap());
}

#[test]
fn a_wait_for_permits_allocates_nothing() {
    let semaphore = Semaphore::new(3);
    waits_are_free(|| semaphore.acquire_many(2), || semaphore.try_acquire_many(2).unwrap());
    semaphore.forget_permits(3);
    waits_are_free(|| semaphore.acquire(), || Then(|| semaphore.add_permits(1)));
}

#[test]
fn a_wait_for_a_notification_allocates_nothing() {
    let notify = Notify::new();
    waits_are_free(|| notify.notified(), || Then(|| notify.notify_one()));
    waits_are_free(|| notify.notified(), || Then(|| notify.notify_waiters()));
}

#[test]
fn a_wait_at_a_barrier_allocates_nothing() {
    let barrier = Barrier::new(3);
    free_of_allocations(|| {
        let mut one = pin!(barrier.wait());
        assert!(poll(one.as_mut()).is_pending());
        {
            let cancelled = pin!(barrier.wait());
            assert!(poll(cancelled).is_pending());
        }
        let mut two = pin!(barrier.wait());
        assert!(poll(two.as_mut()).is_pending());
        assert!(poll(pin!(barrier.wait())).is_ready());
        assert!(poll(one).is_ready() && poll(two).is_ready());
    });
}

#[test]
fn a_wait_for_a_cell_allocates_nothing() {
    let cell = OnceCell::new();
    free_of_allocations(|| {
        let mut waiting = pin!(cell.get_or_init(|| async { 2 }));
        {
            let mut first = pin!(cell.get_or_init(std::future::pending::<u8>));
            assert!(poll(first.as_mut()).is_pending());
            assert!(poll(waiting.as_mut()).is_pending());
        }
        assert_eq!(poll(waiting), Poll::Ready(&2));
    });
    let cell = SetOnce::new();
    waits_are_free(|| cell.wait(), || Then(|| drop(cell.set(1))));
}

#[test]
fn more_waiters_than_one_round_wakes_allocate_nothing() {
    let semaphore = Semaphore::new(0);
    let notify = Notify::new();
    let mut permits: Vec<_> = (0..50).map(|_| Box::pin(semaphore.acquire())).collect();
    let mut notified: Vec<_> = (0..50).map(|_| Box::pin(notify.notified())).collect();
    free_of_allocations(|| {
        assert!(permits.iter_mut().all(|future| poll(future.as_mut()).is_pending()));
        assert!(notified.iter_mut().all(|future| poll(future.as_mut()).is_pending()));
        semaphore.add_permits(50);
        notify.notify_waiters();
        assert!(permits.iter_mut().all(|future| poll(future.as_mut()).is_ready()));
        assert!(notified.iter_mut().all(|future| poll(future.as_mut()).is_ready()));
    });
}

#[test]
fn a_blocking_call_allocates_only_the_first_time_on_a_thread() {
    let mutex = Mutex::new(1);
    let semaphore = Semaphore::new(1);
    drop(semaphore.blocking_acquire().unwrap());
    free_of_allocations(|| {
        drop(mutex.blocking_lock());
        drop(semaphore.blocking_acquire().unwrap());
    });
}
