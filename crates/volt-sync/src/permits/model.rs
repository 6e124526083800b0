//! What a model needs to hand over: data that only a holder of the permits may touch is in a checked
//! cell, so that an exclusion or an ordering that is missing is reported.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc as StdArc;
use std::task::{Context, Poll, Wake, Waker};

use super::{AcquirePermits, Closed, Permits, Refused};
use crate::block_on::block_on;
use crate::primitive::{Arc, UnsafeCell, explore, explore_preempted, thread};

mod defects;
mod guess;

struct Shared {
    permits: Permits,
    data: UnsafeCell<usize>,
}

// SAFETY: the permits guard the data, which is what the models check.
unsafe impl Sync for Shared {}
// SAFETY: the cell is what loom checks; the permits guard it.
unsafe impl Send for Shared {}

fn shared(permits: usize) -> Arc<Shared> {
    Arc::new(Shared { permits: Permits::new(permits), data: UnsafeCell::new(0) })
}

impl Shared {
    fn bump(&self) {
        // SAFETY: checked by loom.
        self.data.with_mut(|data| unsafe { *data += 1 });
    }

    fn read(&self) -> usize {
        // SAFETY: checked by loom.
        self.data.with(|data| unsafe { *data })
    }

    fn acquire(&self, n: usize) {
        block_on(self.permits.acquire(n)).unwrap();
    }

    fn with(&self, n: usize, f: impl FnOnce()) {
        self.acquire(n);
        f();
        self.permits.give_back(n);
    }
}

fn poll_once(future: Pin<&mut AcquirePermits<'_>>) -> Poll<Result<(), Closed>> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn mutex_by_try_lock() {
    explore(|| {
        let shared = shared(1);
        let other = shared.clone();
        let enter = |shared: &Shared| {
            let entered = shared.permits.try_acquire(1).is_ok();
            if entered {
                shared.bump();
                shared.permits.release(1);
            }
            usize::from(entered)
        };
        let thread = thread::spawn(move || enter(&other));
        let here = enter(&shared);
        let there = thread.join().unwrap();
        shared.acquire(1);
        assert_eq!(shared.read(), here + there);
    });
}

/// Enters twice at the same time; `take` takes two of three permits, so only one is in.
fn one_of_two_enters(permits: usize, take: fn(&Permits) -> Result<(), Refused>) {
    explore(move || {
        let shared = shared(permits);
        let other = shared.clone();
        let enter = move |shared: &Shared| {
            let entered = take(&shared.permits).is_ok();
            if entered {
                shared.bump();
                shared.permits.give_back(2);
            }
            usize::from(entered)
        };
        let thread = thread::spawn(move || {
            let entered = enter(&other);
            other.permits.release(3 - permits);
            entered
        });
        let here = enter(&shared);
        let there = thread.join().unwrap();
        shared.acquire(3);
        assert_eq!(shared.read(), here + there);
    });
}

/// It finds another word than it looked for, and takes its permits from that.
#[test]
fn a_look_for_all_permits_that_finds_more() {
    one_of_two_enters(3, |permits| permits.try_acquire_all(2));
}

#[test]
fn a_look_for_all_permits_that_finds_them() {
    one_of_two_enters(2, |permits| permits.try_acquire_all(2));
}

/// There are more when it takes them than when it looked.
#[test]
fn permits_come_between_the_look_and_the_taking() {
    one_of_two_enters(2, |permits| permits.try_acquire(2));
}

/// It once wrapped the counter for a moment: the permits seemed to be gone.
#[test]
fn a_release_beyond_the_maximum_disturbs_nobody() {
    explore(|| {
        let shared = shared(Permits::MAX);
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let refused = || other.permits.release(1);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(refused)).unwrap_err();
        });
        for _ in 0..3 {
            assert_eq!(shared.permits.available(), Permits::MAX);
            thread::yield_now();
        }
        thread.join().unwrap();
        assert_eq!(shared.permits.available(), Permits::MAX);
    });
}

/// The one release that can wrap the counter: another one brings nearly all permits just then.
#[test]
fn a_counter_that_wrapped_is_repaired() {
    explore_preempted(3, || {
        let shared = shared(Permits::MAX);
        let other = shared.clone();
        let release = |shared: &Shared, n| {
            let release = || shared.permits.release(n);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(release)).is_ok()
        };
        let thread = thread::spawn(move || release(&other, 1));
        let most = Permits::MAX - 1;
        let took = shared.permits.try_acquire(most).is_ok();
        let brought = took && release(&shared, most);
        if brought {
            shared.acquire(most);
        }
        let left = if took { 1 } else { Permits::MAX };
        let brought_one = thread.join().unwrap();
        assert!(!took || brought || brought_one);
        assert_eq!(shared.permits.available(), left + usize::from(brought_one));
    });
}

/// A guard that finds no room for its permits any more: whoever found none meanwhile gets one.
#[test]
fn giving_back_what_others_have_brought_meanwhile() {
    explore_preempted(3, || {
        let shared = shared(Permits::MAX);
        assert_eq!(shared.permits.try_acquire(1), Ok(()));
        shared.permits.release(1);
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let give_back = || other.permits.release(1);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(give_back)).is_err()
        });
        shared.acquire(1);
        let refused = thread.join().unwrap();
        assert_eq!(shared.permits.available(), Permits::MAX - usize::from(refused));
    });
}

/// One too many, while a waiter is granted some of them: it alone panics, and adds none.
#[test]
fn one_beyond_the_maximum_beside_a_grant() {
    explore_preempted(3, || {
        let shared = shared(1);
        assert_eq!(shared.permits.try_acquire(1), Ok(()));
        let mut waiter = Box::pin(shared.permits.acquire(2));
        assert!(poll_once(waiter.as_mut()).is_pending());
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let one = || other.permits.release(1);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(one)).is_err()
        });
        let all = || shared.permits.release(Permits::MAX);
        let added = std::panic::catch_unwind(std::panic::AssertUnwindSafe(all)).is_ok();
        let refused = thread.join().unwrap();
        if added {
            block_on(waiter).unwrap();
            let left = Permits::MAX + usize::from(!refused) - 2;
            assert_eq!(shared.permits.available(), left, "refused {refused}");
        } else {
            assert!(!refused);
            drop(waiter);
            assert_eq!(shared.permits.available(), 1);
        }
    });
}

/// Findings S1 and S3: nobody sleeps beside a free permit, and no waiter is touched after its end.
#[test]
fn mutex_of_two_threads() {
    explore(|| {
        let shared = shared(1);
        let other = shared.clone();
        let thread = thread::spawn(move || other.with(1, || other.bump()));
        shared.with(1, || shared.bump());
        thread.join().unwrap();
        shared.acquire(1);
        assert_eq!(shared.read(), 2);
    });
}

#[test]
fn mutex_of_three_threads() {
    explore_preempted(2, || {
        let shared = shared(1);
        let threads = [(), ()].map(|()| {
            let other = shared.clone();
            thread::spawn(move || other.with(1, || other.bump()))
        });
        shared.with(1, || shared.bump());
        for thread in threads {
            thread.join().unwrap();
        }
        shared.acquire(1);
        assert_eq!(shared.read(), 3);
    });
}

/// Findings S3 and S4: a waiter dropped while a releaser serves it is neither touched afterwards nor
/// does it keep the permit.
#[test]
fn cancel_against_release() {
    explore(|| {
        let shared = shared(0);
        let other = shared.clone();
        let thread = thread::spawn(move || other.permits.release(1));
        {
            let mut future = pin!(shared.permits.acquire(1));
            if poll_once(future.as_mut()).is_ready() {
                shared.permits.release(1);
            }
        }
        thread.join().unwrap();
        assert_eq!(shared.permits.try_acquire(1), Ok(()));
    });
}

/// Findings S5 and S6: the permits that a cancelled waiter had gathered go to the one behind it.
#[test]
fn cancel_in_front_of_a_waiter() {
    explore_preempted(3, || {
        let shared = shared(1);
        let waits = shared.clone();
        let mut front = Box::pin(shared.permits.acquire(2));
        assert!(poll_once(front.as_mut()).is_pending());
        let thread = thread::spawn(move || waits.with(1, || waits.bump()));
        drop(front);
        thread.join().unwrap();
        assert_eq!(shared.permits.try_acquire(1), Ok(()));
        assert_eq!(shared.read(), 1);
    });
}

/// A wake-up orders everything by itself: this waiter finds its permit without one.
#[test]
fn served_without_a_wake_up() {
    explore(|| {
        let shared = shared(0);
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.bump();
            other.permits.release(1);
        });
        let mut future = Box::pin(shared.permits.acquire(1));
        while poll_once(future.as_mut()).is_pending() {
            thread::yield_now();
        }
        assert_eq!(shared.read(), 1);
        thread.join().unwrap();
    });
}

#[test]
fn served_from_two_releases() {
    explore_preempted(3, || {
        let shared = shared(0);
        let threads = [true, false].map(|bumps| {
            let other = shared.clone();
            thread::spawn(move || {
                if bumps {
                    other.bump();
                }
                other.permits.release(1);
            })
        });
        shared.acquire(2);
        assert_eq!(shared.read(), 1, "what came before either release");
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(shared.permits.available(), 0);
    });
}

/// One release serves more waiters than one round wakes (two, in models).
#[test]
fn more_waiters_than_a_round_wakes() {
    explore_preempted(1, || {
        let shared = shared(0);
        let mut waiters: Vec<_> = (0..3).map(|_| Box::pin(shared.permits.acquire(1))).collect();
        for waiter in &mut waiters {
            assert!(poll_once(waiter.as_mut()).is_pending());
        }
        let other = shared.clone();
        let thread = thread::spawn(move || other.permits.release(3));
        // Cancelling one while the rounds go on.
        drop(waiters.pop());
        for waiter in waiters {
            block_on(waiter).unwrap();
        }
        thread.join().unwrap();
        assert_eq!(shared.permits.available(), 1);
    });
}

/// Between two rounds somebody else has the list, and leaves a waiter in it.
#[test]
fn a_waiter_leaves_between_two_rounds() {
    explore_preempted(2, || {
        let shared = shared(0);
        let mut waiters: Vec<_> = (0..6).map(|_| Box::pin(shared.permits.acquire(1))).collect();
        for waiter in &mut waiters {
            assert!(poll_once(waiter.as_mut()).is_pending());
        }
        let other = shared.clone();
        let thread = thread::spawn(move || other.permits.release(6));
        let leaves = waiters.pop();
        let mut waiters = waiters.into_iter();
        block_on(waiters.next().unwrap()).unwrap();
        drop(leaves);
        for waiter in waiters {
            block_on(waiter).unwrap();
        }
        thread.join().unwrap();
        assert_eq!(shared.permits.available(), 1);
    });
}

#[test]
fn readers_and_a_writer() {
    explore_preempted(2, || {
        const READERS: usize = 2;
        let shared = shared(READERS);
        let writer = shared.clone();
        let reader = shared.clone();
        let threads = [
            thread::spawn(move || writer.with(READERS, || writer.bump())),
            thread::spawn(move || reader.with(1, || assert!(reader.read() <= 1))),
        ];
        shared.with(1, || assert!(shared.read() <= 1));
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(shared.permits.available(), READERS);
    });
}

/// Passes wake-ups on: each is another waker for the same task.
struct Forward(Waker);

impl Wake for Forward {
    fn wake(self: StdArc<Self>) {
        self.0.wake_by_ref();
    }
}

/// Finding K2: the waker changes while the releaser takes it.
#[test]
fn another_waker_on_every_poll() {
    explore(|| {
        let shared = shared(0);
        let other = shared.clone();
        let thread = thread::spawn(move || other.permits.release(1));
        let mut future = pin!(shared.permits.acquire(1));
        block_on(std::future::poll_fn(|cx| {
            let mut result = Poll::Pending;
            for _ in 0..2 {
                if result.is_pending() {
                    let fresh = Waker::from(StdArc::new(Forward(cx.waker().clone())));
                    result = future.as_mut().poll(&mut Context::from_waker(&fresh));
                }
            }
            result
        }))
        .unwrap();
        thread.join().unwrap();
    });
}

/// A future is polled on one thread, then moved to another and polled and dropped there.
#[test]
fn a_waiting_future_moves_to_another_thread() {
    explore_preempted(3, || {
        let shared = shared(0);
        let (releaser, waiter) = (shared.clone(), shared.clone());
        // SAFETY: `waiter` keeps the permits alive for as long as the future is used.
        let permits: &'static Permits = unsafe { &*(&raw const shared.permits) };
        let mut future = Box::pin(permits.acquire(1));
        assert!(poll_once(future.as_mut()).is_pending());
        let threads = [
            thread::spawn(move || releaser.permits.release(1)),
            thread::spawn(move || {
                block_on(future).unwrap();
                waiter.bump();
                waiter.permits.release(1);
            }),
        ];
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(shared.permits.available(), 1);
    });
}

#[test]
fn close_against_acquire() {
    explore(|| {
        let shared = shared(0);
        let other = shared.clone();
        let thread = thread::spawn(move || other.permits.close());
        assert_eq!(block_on(shared.permits.acquire(1)), Err(Closed));
        thread.join().unwrap();
    });
}

#[test]
fn close_against_release_against_acquire() {
    explore_preempted(2, || {
        let shared = shared(0);
        let (closes, releases) = (shared.clone(), shared.clone());
        let threads = [
            thread::spawn(move || closes.permits.close()),
            thread::spawn(move || releases.permits.release(1)),
        ];
        let acquired = block_on(shared.permits.acquire(1)).is_ok();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(shared.permits.available(), usize::from(!acquired));
        assert_eq!(shared.permits.try_acquire(1), Err(Refused::Closed));
    });
}

fn what_was_written_is_seen(close: fn(&Permits)) {
    explore(move || {
        let shared = shared(0);
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.bump();
            close(&other.permits);
        });
        while !shared.permits.is_closed() {
            thread::yield_now();
        }
        assert_eq!(shared.read(), 1);
        thread.join().unwrap();
    });
}

#[test]
fn what_was_written_before_close_is_seen() {
    what_was_written_is_seen(Permits::close);
}

#[test]
fn what_was_written_before_close_is_seen_of_taken_permits() {
    what_was_written_is_seen(Permits::close_taken);
}

/// Finding S2: a newcomer does not overtake a waiter, whatever the releaser does meanwhile.
#[test]
fn a_newcomer_does_not_overtake() {
    explore(|| {
        let shared = shared(0);
        let mut waiter = pin!(shared.permits.acquire(1));
        assert!(poll_once(waiter.as_mut()).is_pending());
        let (other, newcomer) = (shared.clone(), shared.clone());
        let threads = [
            thread::spawn(move || other.permits.release(1)),
            thread::spawn(move || {
                assert_eq!(newcomer.permits.try_acquire(1), Err(Refused::TooFew));
            }),
        ];
        block_on(waiter).unwrap();
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn forgetting_against_a_hand_off_keeps_the_count() {
    explore(|| {
        let shared = shared(0);
        let other = shared.clone();
        let thread = thread::spawn(move || other.permits.release(2));
        let mut waiter = pin!(shared.permits.acquire(1));
        let acquired = poll_once(waiter.as_mut()).is_ready();
        let forgotten = shared.permits.forget(2);
        if !acquired {
            block_on(waiter).unwrap();
        }
        thread.join().unwrap();
        assert_eq!(shared.permits.available() + forgotten, 1);
    });
}

/// MAX permits, all told. One is handed to a waiter, which gives it back before it was taken out of the
/// word; meanwhile all the others come back.
#[test]
fn what_is_counted_twice_is_not_too_much() {
    explore_preempted(3, || {
        let shared = shared(0);
        let (waits, brings) = (shared.clone(), shared.clone());
        let waiter = thread::spawn(move || {
            let mut acquire = pin!(waits.permits.acquire(1));
            // It looks by itself: it would be woken only later.
            while poll_once(acquire.as_mut()).is_pending() {
                thread::yield_now();
            }
            waits.permits.release(1);
        });
        let others = thread::spawn(move || brings.permits.release(Permits::MAX - 1));
        shared.permits.release(1);
        waiter.join().unwrap();
        others.join().unwrap();
        assert_eq!(shared.permits.available(), Permits::MAX);
    });
}
