//! Chains of calls that go through two pools and back, through the public API.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use plain threads and clocks"
)]

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::Duration;

use volt_pool::ThreadPool;

/// Calls `work` on a thread of its own, and fails if it does not return.
fn in_time<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || send.send(work()).unwrap());
    receive.recv_timeout(Duration::from_secs(20)).expect("it returns")
}

/// A thread of the second pool gets its parts of the outer and of the inner broadcast at about the
/// same time. Were the inner one below the outer one on its stack, the outer part's scope would want
/// the thread of the first pool, which waits for the inner one.
#[test]
fn a_part_that_came_first_is_not_on_top_of_a_later_one() {
    fn go(a: &ThreadPool, b: &ThreadPool, depth: usize, ran: &AtomicUsize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        b.broadcast(|_| {
            a.in_place_scope(|s| {
                s.spawn(|_| {
                    ran.fetch_add(1, SeqCst);
                    go(a, b, depth, ran);
                });
            });
        });
    }
    for (threads, depth) in [(1, 2), (2, 2), (1, 3), (2, 3)] {
        in_time(move || {
            let (a, b) = (ThreadPool::with_threads(threads), ThreadPool::with_threads(2));
            for _ in 0..100 {
                let ran = AtomicUsize::new(0);
                a.install(|| go(&a, &b, depth, &ran));
                assert_eq!(ran.load(SeqCst), (2 << depth) - 2);
            }
        });
    }
}
