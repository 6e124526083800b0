use std::future::{Future, poll_fn};
use std::task::{Poll, Waker};

use super::block_on;
use crate::primitive::thread;

fn current_waker() -> Waker {
    block_on(poll_fn(|cx| Poll::Ready(cx.waker().clone())))
}

#[test]
fn calls_of_one_thread_share_a_waker_and_nested_ones_do_not() {
    let outer = current_waker();
    assert!(outer.will_wake(&current_waker()));
    block_on(async {
        assert!(!outer.will_wake(&current_waker()));
    });
}

#[test]
fn a_wake_up_from_another_thread_ends_the_wait() {
    let mut started = false;
    let value = block_on(poll_fn(|cx| {
        if std::mem::replace(&mut started, true) {
            return Poll::Ready(7);
        }
        let waker = cx.waker().clone();
        thread::Builder::new().spawn(move || waker.wake()).unwrap();
        Poll::Pending
    }));
    assert_eq!(value, 7);
}

#[test]
fn a_panicking_future_leaves_the_thread_usable() {
    let before = current_waker();
    std::panic::catch_unwind(|| block_on(async { panic!("inside the future") })).unwrap_err();
    assert!(before.will_wake(&current_waker()));
}

/// As in `block_in_place`, or in a `block_on` of a runtime: the calling poll's budget says nothing.
#[test]
fn what_blocks_inside_a_poll_needs_no_budget() {
    let mutex = crate::Mutex::new(0);
    let polls = crate::coop::with_budget(Some(0), || {
        let mut polls = 0;
        let mut lock = Box::pin(mutex.lock());
        block_on(poll_fn(|cx| {
            polls += 1;
            assert!(polls < 10, "never gets anywhere");
            lock.as_mut().poll(cx).map(drop)
        }));
        polls
    });
    assert_eq!(polls, 1);
}
