//! What the channels allocate: at construction, for a message, and while they wait.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use volt_sync::{broadcast, mpmc, mpsc, oneshot, watch};

/// Counts what the current thread allocates.
struct Counting;

std::thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    if bytes > 0 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    }
    BYTES.set(BYTES.get() + bytes);
}

/// The size of an allocation; none is larger than `isize` can say.
fn signed(layout: Layout) -> isize {
    isize::try_from(layout.size()).unwrap_or(isize::MAX)
}

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(signed(layout));
        // SAFETY: the caller's obligations are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(signed(layout));
        // SAFETY: the caller's obligations are the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(-signed(layout));
        // SAFETY: the caller's obligations are the same.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The number of allocations of `f`.
fn allocations<R>(f: impl FnOnce() -> R) -> (usize, R) {
    let before = ALLOCATIONS.get();
    let result = f();
    (ALLOCATIONS.get() - before, result)
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_bounded_channel_allocates_twice() {
    for capacity in [1, 3, 1024] {
        assert_eq!(allocations(|| mpmc::bounded::<u64>(capacity)).0, 2);
        assert_eq!(allocations(|| mpsc::channel::<u64>(capacity)).0, 2);
    }
}

#[test]
fn an_unbounded_channel_allocates_once() {
    assert_eq!(allocations(mpmc::unbounded::<u64>).0, 1);
    assert_eq!(allocations(mpsc::unbounded_channel::<u64>).0, 1);
}

#[test]
fn a_bounded_channel_allocates_nothing_for_messages_waits_and_cancellations() {
    let (tx, rx) = mpmc::bounded(1);
    let (count, ()) = allocations(|| {
        for i in 0..100 {
            let mut recv = pin!(rx.recv());
            assert!(poll(recv.as_mut()).is_pending());
            {
                let mut cancelled = pin!(rx.recv());
                assert!(poll(cancelled.as_mut()).is_pending());
            }
            let mut send = pin!(tx.send(i));
            assert_eq!(poll(send.as_mut()), Poll::Ready(Ok(())));
            let mut second = pin!(tx.send(i + 1));
            assert!(poll(second.as_mut()).is_pending());
            {
                let mut cancelled = pin!(tx.send(0));
                assert!(poll(cancelled.as_mut()).is_pending());
            }
            assert_eq!(poll(recv), Poll::Ready(Some(i)));
            assert_eq!(poll(second), Poll::Ready(Ok(())));
            assert_eq!(rx.try_recv(), Ok(i + 1));
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn a_bounded_mpsc_allocates_nothing_for_permits_and_waits() {
    let (tx, mut rx) = mpsc::channel(2);
    let mut batch = Vec::with_capacity(4);
    let (count, ()) = allocations(|| {
        for i in 0..100 {
            assert!(poll(pin!(rx.recv())).is_pending());
            for permit in tx.try_reserve_many(2).unwrap() {
                permit.send(i);
            }
            let mut reserve = pin!(tx.reserve());
            assert!(poll(reserve.as_mut()).is_pending());
            assert_eq!(poll(pin!(rx.recv_many(&mut batch, 4))), Poll::Ready(2));
            assert!(poll(reserve).is_ready());
            batch.clear();
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn an_unbounded_channel_that_is_drained_allocates_one_block_in_all() {
    let (tx, rx) = mpmc::unbounded();
    let (count, ()) = allocations(|| {
        for i in 0..1000 {
            assert!(poll(pin!(rx.recv())).is_pending());
            tx.try_send(i).unwrap();
            tx.try_send(i).unwrap();
            assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(i), Ok(i)));
        }
    });
    assert!(count <= 2, "{count}");
}

#[test]
fn an_unbounded_channel_with_a_steady_backlog_reuses_its_blocks() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    (0..100).for_each(|i| tx.send(i).unwrap());
    let (count, ()) = allocations(|| {
        for i in 100..10_000 {
            tx.send(i).unwrap();
            assert_eq!(rx.try_recv(), Ok(i - 100));
        }
    });
    assert!(count <= 2, "{count}");
}

#[test]
fn an_unbounded_channel_gives_the_memory_of_a_burst_back() {
    let (tx, mut rx) = mpsc::unbounded_channel::<u64>();
    let before = BYTES.get();
    let (count, ()) = allocations(|| (0..100_000).for_each(|i| tx.send(i).unwrap()));
    assert_eq!(count, 100_000_usize.div_ceil(32), "one block in 32 messages");
    assert!(BYTES.get() - before > 800_000);
    while rx.try_recv().is_ok() {}
    assert!(BYTES.get() - before < 1000, "two blocks are left: {}", BYTES.get() - before);
    drop((tx, rx));
    assert!(BYTES.get() <= before);
}

#[test]
fn a_oneshot_allocates_once_waits_included() {
    let (made, (mut tx, rx)) = allocations(oneshot::channel::<u64>);
    assert_eq!(made, 1);
    let (later, ()) = allocations(|| {
        let mut rx = pin!(rx);
        assert!(poll(pin!(tx.closed())).is_pending());
        assert!(poll(rx.as_mut()).is_pending());
        tx.send(1).unwrap();
        assert_eq!(poll(rx), Poll::Ready(Ok(1)));
    });
    assert_eq!(later, 0);
}

#[test]
fn a_broadcast_channel_allocates_twice_and_nothing_for_values_and_waits() {
    let (made, (tx, mut rx)) = allocations(|| broadcast::channel::<u64>(4));
    assert_eq!(made, 2);
    let (later, ()) = allocations(|| {
        for i in 0..10 {
            let mut recv = pin!(rx.recv());
            assert!(poll(recv.as_mut()).is_pending());
            assert_eq!(tx.send(i), Ok(1));
            assert_eq!(poll(recv), Poll::Ready(Ok(i)));
        }
        drop(tx.subscribe());
        assert!(poll(pin!(tx.closed())).is_pending());
    });
    assert_eq!(later, 0);
}

#[test]
fn a_watch_channel_allocates_once_and_nothing_for_values_and_waits() {
    let (made, (tx, mut rx)) = allocations(|| watch::channel(0));
    assert_eq!(made, 1);
    let (later, ()) = allocations(|| {
        for i in 1..10 {
            let mut changed = pin!(rx.changed());
            assert!(poll(changed.as_mut()).is_pending());
            if i % 2 == 0 {
                tx.send(i).unwrap()
            } else {
                tx.send_modify(|value| *value = i)
            }
            assert!(poll(changed).is_ready());
        }
        assert!(poll(pin!(tx.closed())).is_pending());
    });
    assert_eq!(later, 0);
}

#[test]
fn blocking_allocates_once_a_thread() {
    let (tx, mut rx) = mpsc::channel(1);
    let mut round = || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(5));
                tx.try_send(1).unwrap();
            });
            // The scope and its thread are made before.
            allocations(|| rx.blocking_recv()).0
        })
    };
    // It does not block in a round in which its thread came too late: the value was there already.
    assert!((0..100).any(|_| round() > 0), "it never blocks");
    assert_eq!(round(), 0);
}
