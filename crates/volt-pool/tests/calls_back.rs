//! Chains of calls that come back to where they began, through the public API.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use plain threads and clocks"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use volt_pool::{ThreadPool, join};

#[path = "support/in_time.rs"]
mod in_time;
use in_time::in_time;

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

/// A guest runs a fork of a thread, and calls into the pool. That thread waits for the guest later, but is
/// busy for now, and the other ones have nothing to do.
#[test]
fn a_call_of_a_guest_does_not_wait_for_a_busy_thread() {
    let pool = ThreadPool::with_threads(3);
    pool.broadcast(|_| ());
    let mut by_guest = 0;
    for _ in 0..20 {
        let (taken, begun, called) =
            (AtomicBool::new(false), Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
        let blocked = Arc::new(AtomicUsize::new(0));
        let deadline = Instant::now() + Duration::from_secs(2);
        let wait_until = move |done: &dyn Fn() -> bool| {
            while !done() && Instant::now() < deadline {
                std::thread::yield_now();
            }
        };
        let is_guest = || pool.current_thread_index().is_none();
        let on_a_thread = || {
            taken.store(true, SeqCst);
            let here = pool.current_thread_index()?;
            for _ in 0..2 {
                let (blocked, begun) = (blocked.clone(), begun.clone());
                pool.spawn(move || {
                    blocked.fetch_add(1, SeqCst);
                    wait_until(&|| begun.load(SeqCst));
                });
            }
            // Only the guest is left for the next fork.
            wait_until(&|| blocked.load(SeqCst) == 2);
            let (_, there) = join(
                || {
                    // Forks again and again, so that the other side is offered when somebody asks.
                    wait_until(&|| {
                        join(std::thread::yield_now, || ());
                        called.load(SeqCst)
                    });
                },
                || {
                    begun.store(true, SeqCst);
                    let there = is_guest().then(|| pool.install(|| pool.current_thread_index()));
                    called.store(true, SeqCst);
                    there
                },
            );
            there.map(|there| assert!(there.is_some() && there != Some(here), "{there:?}"))
        };
        let (_, called) = pool.enter(|| join(|| wait_until(&|| taken.load(SeqCst)), on_a_thread));
        by_guest += usize::from(called.is_some());
        assert!(Instant::now() < deadline, "in time");
        if by_guest == 3 {
            return;
        }
    }
    assert!(by_guest > 0, "the guest got no fork");
}
