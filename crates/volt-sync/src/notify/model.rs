//! Two threads each: of three, two may spin for the lock in turns for ever, as far as loom knows. Three and four
//! are in the explorer's models (`docs/design/models.md`, `wait_set`).

use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;

use super::Notify;
use crate::block_on::block_on;
use crate::primitive::{Arc, AtomicU32, UnsafeCell, explore, explore_preempted, thread};
use crate::test::poll_once;

type Shared = Arc<(Notify, AtomicU32)>;

fn shared() -> Shared {
    Arc::new((Notify::new(), AtomicU32::new(0)))
}

#[test]
fn a_permit_carries_what_came_before() {
    explore(|| {
        let shared = shared();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.1.store(1, Relaxed);
            other.0.notify_one();
        });
        block_on(shared.0.notified());
        assert_eq!(shared.1.load(Relaxed), 1);
        thread.join().unwrap();
    });
}

/// Two notifications make one permit, which carries what came before both.
#[test]
fn a_second_notification_is_seen_with_the_permit() {
    explore_preempted(3, || {
        let shared = shared();
        shared.0.notify_one();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.1.store(1, Relaxed);
            other.0.notify_one();
        });
        while shared.1.load(Relaxed) == 0 {
            block_on(shared.0.notified());
        }
        thread.join().unwrap();
    });
}

#[test]
fn each_notify_one_wakes_one_of_two() {
    explore_preempted(3, || {
        let shared = shared();
        let mut waiters = [(); 2].map(|()| Box::pin(shared.0.notified()));
        for waiter in &mut waiters {
            assert!(poll_once(waiter.as_mut()).is_pending());
        }
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.0.notify_one();
            other.0.notify_one();
        });
        for waiter in waiters {
            block_on(waiter);
        }
        thread.join().unwrap();
        assert!(poll_once(pin!(shared.0.notified())).is_pending());
    });
}

/// The notified future is dropped: the other one gets the notification.
#[test]
fn a_dropped_notification_is_passed_on() {
    explore(|| {
        let shared = shared();
        let other = shared.clone();
        let mut first = Box::pin(shared.0.notified());
        assert!(poll_once(first.as_mut()).is_pending());
        let mut second = pin!(shared.0.notified());
        assert!(poll_once(second.as_mut()).is_pending());
        let thread = thread::spawn(move || other.0.notify_one());
        drop(first);
        block_on(second);
        thread.join().unwrap();
    });
}

/// What a notification carries, in a cell that loom checks.
struct Carried {
    notify: Notify,
    data: UnsafeCell<u32>,
}

// SAFETY: the notification orders the accesses to the data, which is what the model checks.
unsafe impl Sync for Carried {}
// SAFETY: as above, for the same reason.
unsafe impl Send for Carried {}

/// Nobody is woken and no lock is taken: the look at the word is all the order there is.
#[test]
fn what_comes_before_a_new_generation_is_seen() {
    explore(|| {
        let carried = Arc::new(Carried { notify: Notify::new(), data: UnsafeCell::new(0) });
        let other = carried.clone();
        let before = carried.notify.set.word().generation();
        let thread = thread::spawn(move || {
            // SAFETY: checked by loom.
            other.data.with_mut(|data| unsafe { *data = 1 });
            other.notify.notify_waiters();
        });
        while carried.notify.set.word().generation() == before {
            thread::yield_now();
        }
        // SAFETY: checked by loom.
        assert_eq!(carried.data.with(|data| unsafe { *data }), 1);
        thread.join().unwrap();
    });
}

#[test]
fn what_comes_before_notify_waiters_is_seen() {
    explore(|| {
        let shared = shared();
        let other = shared.clone();
        let notified = shared.0.notified();
        let thread = thread::spawn(move || {
            other.1.store(1, Relaxed);
            other.0.notify_waiters();
        });
        block_on(notified);
        assert_eq!(shared.1.load(Relaxed), 1);
        thread.join().unwrap();
    });
}

/// More waiters than one round wakes (two, in models), one of which is dropped meanwhile.
#[test]
fn notify_waiters_in_rounds_against_a_cancellation() {
    explore_preempted(2, || {
        let shared = shared();
        let mut waiters: Vec<_> = (0..3).map(|_| Box::pin(shared.0.notified())).collect();
        for waiter in &mut waiters {
            assert!(poll_once(waiter.as_mut()).is_pending());
        }
        let other = shared.clone();
        let thread = thread::spawn(move || other.0.notify_waiters());
        drop(waiters.pop());
        for waiter in waiters {
            block_on(waiter);
        }
        thread.join().unwrap();
        assert!(poll_once(pin!(shared.0.notified())).is_pending(), "nothing is stored");
    });
}

#[test]
fn notify_one_against_notify_waiters_wakes_and_leaves_at_most_a_permit() {
    explore_preempted(3, || {
        let shared = shared();
        let other = shared.clone();
        let mut waiter = Box::pin(shared.0.notified());
        assert!(poll_once(waiter.as_mut()).is_pending());
        let thread = thread::spawn(move || other.0.notify_one());
        shared.0.notify_waiters();
        thread.join().unwrap();
        assert!(poll_once(waiter.as_mut()).is_ready());
        drop(waiter);
        let _ = poll_once(pin!(shared.0.notified()));
        assert!(poll_once(pin!(shared.0.notified())).is_pending());
    });
}
