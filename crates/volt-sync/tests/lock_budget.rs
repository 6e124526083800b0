//! Each acquisition of a free lock takes one unit of the task's budget, and without one there is no lock:
//! a loop over a lock that is always free gives others a turn.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use volt_sync::{Mutex, RwLock, Semaphore, coop};

/// Whether `acquire` is ready at its first poll, so many times, with a budget of two.
fn ready<F: Future>(acquire: impl Fn() -> F) -> Vec<bool> {
    let mut cx = Context::from_waker(Waker::noop());
    coop::with_budget(Some(2), || {
        let mut poll = |_| matches!(pin!(acquire()).poll(&mut cx), Poll::Ready(_));
        (0..4).map(&mut poll).collect()
    })
}

const TWO: [bool; 4] = [true, true, false, false];

#[test]
fn mutex() {
    let mutex = Arc::new(Mutex::new(0));
    assert_eq!(ready(|| mutex.lock()), TWO);
    assert_eq!(ready(|| mutex.clone().lock_owned()), TWO);
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn rwlock() {
    let lock = Arc::new(RwLock::new(0));
    assert_eq!(ready(|| lock.read()), TWO);
    assert_eq!(ready(|| lock.write()), TWO);
    assert_eq!(ready(|| lock.clone().read_owned()), TWO);
    assert_eq!(ready(|| lock.clone().write_owned()), TWO);
    assert!(lock.try_write().is_ok());
}

#[test]
fn semaphore() {
    let semaphore = Arc::new(Semaphore::new(3));
    assert_eq!(ready(|| semaphore.acquire()), TWO);
    assert_eq!(ready(|| semaphore.acquire_many(3)), TWO);
    assert_eq!(ready(|| semaphore.clone().acquire_owned()), TWO);
    assert_eq!(ready(|| semaphore.clone().acquire_many_owned(3)), TWO);
    assert_eq!(semaphore.available_permits(), 3);
}
