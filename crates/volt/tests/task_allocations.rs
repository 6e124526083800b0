//! What tasks allocate.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use volt::runtime::Builder;
use volt::task::{self, JoinSet};

/// Bytes of a task whose future is empty: with a span, if tasks have any.
const IDLE: isize = if cfg!(feature = "tracing") { 112 } else { 72 };

struct Counting;

/// Allocations of the process.
static COUNT: AtomicUsize = AtomicUsize::new(0);

std::thread_local! {
    /// Those of this thread.
    static HERE: Cell<usize> = const { Cell::new(0) };
    /// The bytes that this thread has allocated and not freed.
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Relaxed);
        HERE.set(HERE.get() + 1);
        BYTES.set(BYTES.get().wrapping_add_unsigned(layout.size()));
        // SAFETY: the caller's obligations.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get().wrapping_sub_unsigned(layout.size()));
        // SAFETY: the caller's obligations.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Asserts that a blocking closure, awaited, is one allocation at most.
async fn blocking_closure_is_one_allocation() {
    // The first round makes what is made at the first use, and a thread that is started in another one
    // allocates, too: the least counts.
    let mut least = usize::MAX;
    for _ in 0..20 {
        let before = COUNT.load(Relaxed);
        for n in 0..100 {
            assert_eq!(task::spawn_blocking(move || n).await.unwrap(), n);
        }
        least = least.min(COUNT.load(Relaxed) - before);
    }
    assert!(least <= 100, "blocking closures: {least}");
}

/// One test: all but [`HERE`] counts the whole process. Where one thread does it all, `HERE` counts, as the
/// thread that has started this one may still have something to write down.
#[test]
fn task_is_one_allocation_or_has_the_memory_of_one_that_ended() {
    let rt = Builder::new_current_thread().build().unwrap();
    let size_of =
        |handles: &Vec<_>| isize::try_from(handles.capacity() * size_of_val(&handles[0])).unwrap();
    let without = rt.block_on(async {
        // Whatever is made at the first use.
        volt::spawn(task::yield_now()).await.unwrap();
        volt::spawn(std::future::ready(0)).await.unwrap();

        let before = HERE.get();
        for n in 0..1000 {
            assert_eq!(volt::spawn(async move { n }).await.unwrap(), n);
        }
        assert_eq!(HERE.get() - before, 0, "spawn, run, await");

        let before = HERE.get();
        for _ in 0..1000 {
            task::yield_now().await;
        }
        assert_eq!(HERE.get() - before, 0, "yield");

        blocking_closure_is_one_allocation().await;

        let mut set = JoinSet::new();
        for round in 0..3 {
            let before = HERE.get();
            for n in 0..100 {
                set.spawn(async move { n });
            }
            while let Some(result) = set.join_next().await {
                result.unwrap();
            }
            if round > 0 {
                assert_eq!(HERE.get() - before, 0, "a set that has been used");
            }
        }

        // These take what is left of others.
        let first: Vec<_> = (0..1000).map(|_| volt::spawn(std::future::pending::<()>())).collect();
        let without = BYTES.get() - size_of(&first) - 1000 * IDLE;
        let (bytes, count) = (BYTES.get(), HERE.get());
        let tasks: Vec<_> = (0..100).map(|_| volt::spawn(std::future::pending::<()>())).collect();
        assert_eq!(HERE.get() - count, 100 + 1, "a task, and the vector");
        assert_eq!(BYTES.get() - bytes, 100 * IDLE + size_of(&tasks), "an idle task");

        first.iter().chain(&tasks).for_each(|task| task.abort());
        for task in first.into_iter().chain(tasks) {
            assert!(task.await.unwrap_err().is_cancelled());
        }
        let kept = BYTES.get() - without;
        assert!((16 << 10..=32 << 10).contains(&kept), "by a thread that runs tasks: {kept}");
        without
    });
    let kept = BYTES.get() - without;
    assert!(kept < IDLE, "by a thread that runs none: {kept}");
    drop(rt);

    let rt = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    rt.block_on(blocking_closure_is_one_allocation());
}
