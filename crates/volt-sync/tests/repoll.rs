//! A future that is polled again after it has completed: it panics, and takes nothing. (That of `Notify` is
//! ready for ever, as Tokio's.)
#![allow(clippy::disallowed_types, reason = "a test")]

use std::fmt::Debug;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use volt_sync::{
    Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce, broadcast, mpmc, mpsc, oneshot,
    watch,
};

/// Asserts that `future` completes at once and panics when it is polled again, each time.
fn completes_once<F: Future>(what: &str, future: F) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut future = pin!(future);
    assert!(future.as_mut().poll(&mut cx).is_ready(), "{what}");
    for _ in 0..2 {
        let again = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx).is_ready()));
        let payload = again.expect_err(what);
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).expect("a text");
        assert!(text.contains("after"), "{what}: {text}");
    }
}

fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("pending"),
    }
}

fn free<T: Debug>(result: Result<T, impl Debug>) {
    result.expect("it is free again");
}

#[test]
fn locks() {
    let mutex = Arc::new(Mutex::new(()));
    completes_once("lock", mutex.lock());
    completes_once("lock_owned", mutex.clone().lock_owned());
    free(mutex.try_lock());

    let lock = Arc::new(RwLock::new(()));
    completes_once("read", lock.read());
    completes_once("write", lock.write());
    completes_once("read_owned", lock.clone().read_owned());
    completes_once("write_owned", lock.clone().write_owned());
    free(lock.try_write());

    let semaphore = Arc::new(Semaphore::new(2));
    completes_once("acquire", semaphore.acquire());
    completes_once("acquire_many", semaphore.acquire_many(2));
    completes_once("acquire_owned", semaphore.clone().acquire_owned());
    completes_once("acquire_many_owned", semaphore.clone().acquire_many_owned(2));
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn events() {
    completes_once("Barrier::wait", Barrier::new(1).wait());
    let cell = OnceCell::new();
    completes_once("get_or_init", cell.get_or_init(async || 1));
    completes_once("get_or_init", cell.get_or_init(async || 2));
    completes_once("get_or_try_init", cell.get_or_try_init(async || Err::<i32, _>("no")));
    assert_eq!(cell.get(), Some(&1));
    let once = SetOnce::new();
    once.set(1).unwrap();
    completes_once("SetOnce::wait", once.wait());

    let notify = Notify::new();
    notify.notify_one();
    let mut notified = pin!(notify.notified());
    ready(notified.as_mut());
    ready(notified.as_mut());
    notify.notify_one();
    ready(notified);
    ready(notify.notified());
}

#[test]
fn channels_of_single_values() {
    let (tx, mut rx) = oneshot::channel();
    tx.send(1).unwrap();
    completes_once("oneshot", &mut rx);

    let (tx, mut rx) = watch::channel(1);
    tx.send(2).unwrap();
    completes_once("changed", rx.changed());
    completes_once("wait_for", rx.wait_for(|value| *value == 2));
    drop(rx);
    completes_once("watch closed", tx.closed());

    let (tx, mut rx) = broadcast::channel(2);
    tx.send(1).unwrap();
    tx.send(2).unwrap();
    completes_once("broadcast recv", rx.recv());
    assert_eq!(rx.try_recv(), Ok(2));
    drop(rx);
    completes_once("broadcast closed", tx.closed());
}

#[test]
fn mpsc_channels() {
    let (tx, mut rx) = mpsc::channel(4);
    completes_once("send", tx.send(1));
    completes_once("reserve", tx.reserve());
    completes_once("reserve_many", tx.reserve_many(2));
    completes_once("reserve_owned", tx.clone().reserve_owned());
    assert_eq!(tx.capacity(), 3);
    tx.try_send(2).unwrap();
    completes_once("recv", rx.recv());
    completes_once("recv_many", rx.recv_many(&mut Vec::new(), 1));
    drop(rx);
    completes_once("send, closed", tx.send(3));
    completes_once("closed", tx.closed());

    let (tx, mut rx) = mpsc::unbounded_channel();
    tx.send(1).unwrap();
    tx.send(2).unwrap();
    completes_once("unbounded recv", rx.recv());
    assert_eq!(rx.try_recv(), Ok(2));
    drop(rx);
    completes_once("unbounded closed", tx.closed());
}

#[test]
fn mpmc_channels() {
    for (tx, rx) in [mpmc::bounded(4), mpmc::unbounded()] {
        completes_once("send", tx.send(1));
        tx.try_send(2).unwrap();
        completes_once("recv", rx.recv());
        assert_eq!((rx.try_recv(), rx.len()), (Ok(2), 0));
        rx.close();
        completes_once("recv, closed", rx.recv());
        completes_once("send, closed", tx.send(3));
        completes_once("closed", tx.closed());
    }
}
