//! Guesses that are out of date: whoever has them gets no permits that are not there, and forgets nobody.

use super::super::Guessed;
use crate::block_on::block_on;
use crate::primitive::{Arc, UnsafeCell, explore, explore_preempted, thread};

struct Shared {
    permits: Guessed,
    data: UnsafeCell<usize>,
}

// SAFETY: the permit guards the data, which is what the models check.
unsafe impl Sync for Shared {}
// SAFETY: the cell is what loom checks; the permit guards it.
unsafe impl Send for Shared {}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self { permits: Guessed::new(1), data: UnsafeCell::new(0) })
    }

    fn bump_and_release(&self) {
        // SAFETY: checked by loom.
        self.data.with_mut(|data| unsafe { *data += 1 });
        self.permits.release(1);
    }

    /// Enters if the permit is free, `times` times; how often it was.
    fn tries(&self, times: usize) -> usize {
        let enter = |_: &usize| {
            let entered = self.permits.try_acquire(1).is_ok();
            if entered {
                self.bump_and_release();
            }
            entered
        };
        (0..times).filter(enter).count()
    }

    fn waits(&self) {
        block_on(self.permits.acquire(1)).unwrap();
        self.bump_and_release();
    }

    /// At the end: nobody is inside, and `entries` were.
    fn check(&self, entries: usize) {
        assert_eq!(self.permits.available(), 1);
        assert_eq!(self.tries(1), 1);
        // SAFETY: checked by loom.
        assert_eq!(self.data.with(|data| unsafe { *data }), entries + 1);
    }
}

#[test]
fn two_threads_that_guess_exclude_each_other() {
    explore(|| {
        let shared = Shared::new();
        let other = shared.clone();
        let thread = thread::spawn(move || other.tries(2));
        let here = shared.tries(2);
        let there = thread.join().unwrap();
        assert!(here + there >= 2, "each finds it free after the other has ended");
        shared.check(here + there);
    });
}

#[test]
fn a_release_by_a_guess_against_one_that_queues() {
    explore(|| {
        let shared = Shared::new();
        let other = shared.clone();
        assert!(shared.permits.try_acquire(1).is_ok());
        let thread = thread::spawn(move || other.waits());
        shared.bump_and_release();
        let here = shared.tries(1);
        thread.join().unwrap();
        shared.check(2 + here);
    });
}

#[test]
fn two_that_guess_beside_one_that_queues() {
    explore_preempted(2, || {
        let shared = Shared::new();
        let (waiting, trying) = (shared.clone(), shared.clone());
        let waiting = thread::spawn(move || waiting.waits());
        let trying = thread::spawn(move || trying.tries(1));
        let here = shared.tries(1);
        waiting.join().unwrap();
        let there = trying.join().unwrap();
        shared.check(1 + here + there);
    });
}

/// The one that waits gets permits of both, of which one was released before it came.
#[test]
fn what_is_released_by_a_guess_reaches_a_waiter_for_two() {
    explore(|| {
        let shared = Arc::new(Shared { permits: Guessed::new(2), data: UnsafeCell::new(0) });
        let other = shared.clone();
        assert!(shared.permits.try_acquire(1).is_ok());
        assert!(shared.permits.try_acquire(1).is_ok());
        let thread = thread::spawn(move || other.bump_and_release());
        let last = shared.clone();
        let last = thread::spawn(move || last.permits.release(1));
        assert!(block_on(shared.permits.acquire(2)).is_ok());
        // SAFETY: checked by loom.
        assert_eq!(shared.data.with(|data| unsafe { *data }), 1);
        thread.join().unwrap();
        last.join().unwrap();
    });
}
