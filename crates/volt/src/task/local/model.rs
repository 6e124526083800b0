//! Loom models of `LocalSet`: wake-ups from another thread.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};

use volt_sync::internal::primitive::{Arc, AtomicUsize, explore, thread};

use super::LocalSet;
use crate::task::test::{Dropped, counting_waker};

fn waiting(set: &LocalSet, flag: Arc<AtomicUsize>, owns: Dropped) -> Waker {
    let slot = std::rc::Rc::new(Mutex::new(None));
    let stored = slot.clone();
    drop(set.spawn_local(poll_fn(move |cx| {
        let _owns = &owns;
        stored.lock().unwrap().get_or_insert_with(|| cx.waker().clone());
        if flag.load(Relaxed) == 1 { Poll::Ready(()) } else { Poll::Pending }
    })));
    assert!(!set.drive(|| set.tick()));
    let waker = slot.lock().unwrap().take().unwrap();
    waker
}

/// A task woken from another thread while its set goes to sleep: it runs now, or the driver is
/// woken.
#[test]
fn remote_wake_against_the_drivers_sleep() {
    explore(|| {
        let mut set = pin!(LocalSet::new());
        let flag = Arc::new(AtomicUsize::new(0));
        let (owns, dropped) = Dropped::counter();
        let waker = waiting(&set, flag.clone(), owns);
        let remote = thread::spawn(move || {
            flag.store(1, Relaxed);
            waker.wake();
        });
        let (counter, driver) = counting_waker();
        let mut done = set.as_mut().poll(&mut Context::from_waker(&driver)).is_ready();
        remote.join().unwrap();
        if !done {
            assert!(counter.get() > 0, "the driver is woken");
            done = set.as_mut().poll(&mut Context::from_waker(&driver)).is_ready();
        }
        assert!(done);
        assert_eq!(dropped(), 1);
    });
}

/// The same while the set has been driven inside of its own drive, by a driver that is gone since.
#[test]
fn remote_wake_against_a_drive_inside() {
    explore(|| {
        let set = LocalSet::new();
        let flag = Arc::new(AtomicUsize::new(0));
        let (owns, _dropped) = Dropped::counter();
        let waker = waiting(&set, flag.clone(), owns);
        let theirs = flag.clone();
        let remote = thread::spawn(move || {
            theirs.store(1, Relaxed);
            waker.wake();
        });
        let (_, gone) = counting_waker();
        let mut outer = pin!(set.run_until(poll_fn(|_| {
            let inside = pin!(set.run_until(async {}));
            assert!(inside.poll(&mut Context::from_waker(&gone)).is_ready());
            if set.shared.owned.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })));
        let (counter, driver) = counting_waker();
        assert!(outer.as_mut().poll(&mut Context::from_waker(&driver)).is_pending());
        remote.join().unwrap();
        if !set.shared.owned.is_empty() {
            assert!(counter.get() > 0, "the driver is woken");
            assert!(outer.as_mut().poll(&mut Context::from_waker(&driver)).is_pending());
        }
        assert!(outer.poll(&mut Context::from_waker(&driver)).is_ready());
    });
}

/// The same while one of two drivers, the registered one, goes.
#[test]
fn remote_wake_against_a_driver_that_goes() {
    explore(|| {
        let set = LocalSet::new();
        let flag = Arc::new(AtomicUsize::new(0));
        let (owns, _dropped) = Dropped::counter();
        let waker = waiting(&set, flag.clone(), owns);
        let (counter, driver) = counting_waker();
        let mut stays = pin!(set.run_until(std::future::pending::<()>()));
        assert!(stays.as_mut().poll(&mut Context::from_waker(&driver)).is_pending());
        let (_, gone) = counting_waker();
        let mut goes = Box::pin(set.run_until(std::future::pending::<()>()));
        assert!(goes.as_mut().poll(&mut Context::from_waker(&gone)).is_pending());
        let remote = thread::spawn(move || {
            flag.store(1, Relaxed);
            waker.wake();
        });
        drop(goes);
        remote.join().unwrap();
        assert!(counter.get() > 0, "the driver that stays is woken");
        assert!(stays.poll(&mut Context::from_waker(&driver)).is_pending());
        assert!(set.shared.owned.is_empty());
    });
}

/// Invariant 2: a wake-up from another thread against the drop of the set.
#[test]
fn remote_wake_against_drop() {
    explore(|| {
        let set = LocalSet::new();
        let flag = Arc::new(AtomicUsize::new(0));
        let (owns, dropped) = Dropped::counter();
        let waker = waiting(&set, flag, owns);
        let remote = thread::spawn(move || waker.wake());
        drop(set);
        assert_eq!(dropped(), 1);
        remote.join().unwrap();
    });
}
