use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Context;

use super::Barrier;
use crate::block_on::block_on;
use crate::primitive::thread;
use crate::test::{Wakes, drop_at_every_await, hostile_waker, poll_once, ready};

#[test]
fn the_last_one_leads_and_wakes_the_others_each_time() {
    let barrier = Barrier::new(40);
    for _ in 0..3 {
        let wakes = Wakes::new();
        let mut waiters: Vec<_> = (0..39).map(|_| Box::pin(barrier.wait())).collect();
        for waiter in &mut waiters {
            assert!(wakes.poll(waiter.as_mut()).is_pending());
        }
        assert!(ready(barrier.wait()).is_leader());
        assert_eq!((wakes.count(), wakes.clones()), (39, 0));
        for waiter in waiters {
            assert!(!ready(waiter).is_leader());
        }
    }
}

#[test]
fn a_barrier_for_none_or_one_is_always_open() {
    for n in [0, 1] {
        let barrier = Barrier::new(n);
        assert!(ready(barrier.wait()).is_leader());
        assert!(ready(barrier.wait()).is_leader());
    }
}

#[test]
fn a_cancelled_arrival_does_not_count() {
    let barrier = Barrier::new(2);
    let mut first = Box::pin(barrier.wait());
    assert!(poll_once(first.as_mut()).is_pending());
    drop(first);
    let mut second = pin!(barrier.wait());
    assert!(poll_once(second.as_mut()).is_pending());
    assert!(ready(barrier.wait()).is_leader());
    assert!(!ready(second).is_leader());
}

#[test]
fn a_future_of_an_open_barrier_does_not_count_for_the_next() {
    let barrier = Barrier::new(2);
    let mut first = Box::pin(barrier.wait());
    assert!(poll_once(first.as_mut()).is_pending());
    assert!(ready(barrier.wait()).is_leader());
    let mut next = pin!(barrier.wait());
    assert!(poll_once(next.as_mut()).is_pending());
    drop(first);
    assert!(poll_once(next.as_mut()).is_pending());
    assert!(ready(barrier.wait()).is_leader());
    assert!(!ready(next).is_leader());
}

#[test]
fn dropping_a_wait_at_any_point_leaves_the_barrier_usable() {
    drop_at_every_await(
        || Arc::new(Barrier::new(2)),
        |barrier| {
            let barrier = barrier.clone();
            async move { barrier.wait().await }
        },
        |barrier, poll| {
            if poll == 2 {
                assert!(ready(barrier.wait()).is_leader());
            }
        },
        |barrier| {
            // Its arrival came back, or it met somebody: nobody has arrived now.
            let mut one = pin!(barrier.wait());
            if poll_once(one.as_mut()).is_pending() {
                assert!(ready(barrier.wait()).is_leader());
                assert!(!ready(one).is_leader());
            }
        },
    );
}

#[test]
fn panicking_wakers_keep_nobody_from_being_woken() {
    let barrier = Barrier::new(40);
    let (bad, good) = (Wakes::panicking(), Wakes::new());
    let mut waiters: Vec<_> = (0..39).map(|_| Box::pin(barrier.wait())).collect();
    for (i, waiter) in waiters.iter_mut().enumerate() {
        let wakes = if i % 5 == 0 { &bad } else { &good };
        assert!(wakes.poll(waiter.as_mut()).is_pending());
    }
    catch_unwind(AssertUnwindSafe(|| ready(barrier.wait()))).unwrap_err();
    assert_eq!((bad.count(), good.count()), (8, 31));
    for waiter in waiters {
        assert!(!ready(waiter).is_leader());
    }
}

#[test]
fn a_leader_whose_waker_panics_in_drop_has_woken_the_others() {
    let barrier = Barrier::new(2);
    let wakes = Wakes::new();
    let mut first = pin!(barrier.wait());
    assert!(wakes.poll(first.as_mut()).is_pending());
    let waker = hostile_waker(|| ());
    let mut leader = Box::pin(barrier.wait());
    let poll = || leader.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
    catch_unwind(AssertUnwindSafe(poll)).unwrap_err();
    assert_eq!(wakes.count(), 1);
    assert!(!ready(first).is_leader());
}

#[test]
fn threads_meet_again_and_again() {
    let barrier = Arc::new(Barrier::new(3));
    let rounds = 1_000;
    let run = move |barrier: &Barrier| {
        (0..rounds).filter(|_| block_on(barrier.wait()).is_leader()).count()
    };
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let barrier = barrier.clone();
            thread::Builder::new().spawn(move || run(&barrier)).unwrap()
        })
        .collect();
    let mut leaders = run(&barrier);
    for thread in threads {
        leaders += thread.join().unwrap();
    }
    assert_eq!(leaders, rounds);
}

#[test]
fn polling_after_completion_panics() {
    let barrier = Barrier::new(1);
    let mut wait = pin!(barrier.wait());
    assert!(poll_once(wait.as_mut()).is_ready());
    catch_unwind(AssertUnwindSafe(|| poll_once(wait.as_mut()))).unwrap_err();
}

const _: () = {
    const fn all<T: Send + Sync + Unpin + std::panic::RefUnwindSafe>() {}
    all::<Barrier>();
};
