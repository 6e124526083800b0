//! What must not allocate does not: queueing tasks and forking, waiting included.
#![allow(clippy::disallowed_types, reason = "a test's own counters")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use volt_pool::{Action, Task, TaskList, ThreadPool, join};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

std::thread_local! {
    /// Whether this thread's count. The thread that has started the test may still have something to write down.
    static COUNTS: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTS.get() {
            ALLOCATIONS.fetch_add(1, SeqCst);
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[repr(C)]
struct Node {
    task: Task,
    ran: AtomicUsize,
}

unsafe fn count(task: NonNull<Task>, _: Action) {
    // SAFETY: the test's tasks are nodes that outlive the pool's use of them.
    unsafe { task.cast::<Node>().as_ref() }.ran.fetch_add(1, SeqCst);
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

#[test]
fn scheduling_and_joining_allocate_nothing() {
    let pool = ThreadPool::with_threads(2);
    let nodes: Vec<Node> =
        (0..4000).map(|_| Node { task: Task::new(count), ran: AtomicUsize::new(0) }).collect();
    let run = |round: usize| {
        for node in &nodes[..2000] {
            // SAFETY: has run in the round before, and outlives the pool.
            unsafe { pool.schedule(NonNull::from(node).cast()) }.unwrap();
        }
        let mut list = TaskList::new();
        for node in &nodes[2000..] {
            // SAFETY: as for the nodes above.
            unsafe { list.push(NonNull::from(node).cast()) };
        }
        pool.schedule_batch(list).unwrap();
        assert_eq!(pool.install(|| fib(18)), 2584);
        assert_eq!(pool.join(|| fib(10), || fib(11)), (55, 89));
        while nodes.iter().any(|node| node.ran.load(SeqCst) < round) {
            std::thread::yield_now();
        }
    };
    // Starts the threads, and makes what each thread has for itself.
    pool.broadcast(|_| COUNTS.set(true));
    COUNTS.set(true);
    run(1);
    run(2);
    let before = ALLOCATIONS.load(SeqCst);
    for round in 3..10 {
        run(round);
    }
    assert_eq!(ALLOCATIONS.load(SeqCst) - before, 0);
}
