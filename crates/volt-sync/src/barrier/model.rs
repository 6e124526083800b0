//! Two threads each: of three, two may spin for the lock in turns for ever, as far as loom knows.

use std::sync::atomic::Ordering::Relaxed;

use super::Barrier;
use crate::block_on::block_on;
use crate::primitive::{Arc, AtomicU32, explore, explore_preempted, thread};
use crate::test::poll_once;

#[test]
fn all_see_what_each_did_before() {
    explore_preempted(2, || {
        let shared = Arc::new((Barrier::new(2), AtomicU32::new(0)));
        let meet = |shared: &(Barrier, AtomicU32)| {
            shared.1.fetch_add(1, Relaxed);
            let leader = block_on(shared.0.wait()).is_leader();
            assert_eq!(shared.1.load(Relaxed), 2);
            usize::from(leader)
        };
        let other = shared.clone();
        let thread = thread::spawn(move || meet(&other));
        assert_eq!(meet(&shared) + thread.join().unwrap(), 1);
    });
}

#[test]
fn a_barrier_starts_over() {
    explore_preempted(2, || {
        let barrier = Arc::new(Barrier::new(2));
        let other = barrier.clone();
        let thread = thread::spawn(move || {
            block_on(other.wait());
            block_on(other.wait());
        });
        block_on(barrier.wait());
        block_on(barrier.wait());
        thread.join().unwrap();
    });
}

#[test]
fn a_cancelled_arrival_does_not_count() {
    explore(|| {
        let barrier = Arc::new(Barrier::new(2));
        let other = barrier.clone();
        let thread = thread::spawn(move || {
            let mut wait = Box::pin(other.wait());
            let met = poll_once(wait.as_mut()).is_ready();
            drop(wait);
            met
        });
        let mut wait = Box::pin(barrier.wait());
        let here = poll_once(wait.as_mut()).is_ready();
        let there = thread.join().unwrap();
        assert!(!(here && there), "one of the two comes first");
        if !here && !there {
            // The other one came and went: this one waits for somebody else.
            let mut second = Box::pin(barrier.wait());
            assert!(poll_once(second.as_mut()).is_ready() || poll_once(wait.as_mut()).is_ready());
        }
    });
}
