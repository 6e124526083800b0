//! Bounded by `LOOM_MAX_PREEMPTIONS`; each model has two threads.

use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Wake, Waker};

use super::{Receiver, Sender, channel};
use crate::block_on::block_on;
use crate::primitive::{Arc, AtomicUsize, UnsafeCell, explore, thread};

/// A value whose drop is counted; loom reports it if it is leaked or raced for.
struct Value(Arc<AtomicUsize>);

impl Drop for Value {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Runs both halves on a thread each, and checks that the value is dropped exactly once.
fn both(
    send: impl Fn(Sender<Value>, Value) + Copy + Send + Sync + 'static,
    receive: impl Fn(Receiver<Value>) + Copy + Send + Sync + 'static,
) {
    explore(move || {
        let drops = Arc::new(AtomicUsize::new(0));
        let value = Value(drops.clone());
        let (tx, rx) = channel();
        let sender = thread::spawn(move || send(tx, value));
        receive(rx);
        sender.join().unwrap();
        assert_eq!(drops.load(Relaxed), 1);
    });
}

fn send(tx: Sender<Value>, value: Value) {
    drop(tx.send(value));
}

/// Polls once with a waker that does nothing.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn the_value_reaches_a_waiting_receiver() {
    both(send, |rx| drop(block_on(rx).unwrap_or_else(|_| panic!("it was sent"))));
}

#[test]
fn a_receiver_that_changes_its_waker_is_woken() {
    both(send, |mut rx| match poll_once(&mut rx) {
        Poll::Ready(value) => assert!(value.is_ok()),
        Poll::Pending => assert!(block_on(rx).is_ok()),
    });
}

#[test]
fn dropping_the_receiver_races_with_sending() {
    both(send, drop);
}

#[test]
fn dropping_a_registered_receiver_races_with_sending() {
    both(send, |mut rx| drop(poll_once(&mut rx)));
}

#[test]
fn a_dropped_sender_is_noticed() {
    both(|tx, value| drop((tx, value)), |rx| assert!(block_on(rx).is_err()));
}

#[test]
fn closing_races_with_sending() {
    both(
        |tx, value| {
            if let Err(value) = tx.send(value) {
                drop(value);
            }
        },
        |mut rx| {
            drop(poll_once(&mut rx));
            rx.close();
            // Either it was sent before the close, or it never comes.
            if !rx.is_terminated() {
                drop(block_on(rx));
            }
        },
    );
}

#[test]
fn the_close_reaches_a_waiting_sender() {
    both(
        |mut tx, value| {
            block_on(tx.closed());
            assert!(tx.send(value).is_err());
        },
        |mut rx| {
            rx.close();
            drop(rx);
        },
    );
}

#[test]
fn a_sender_that_changes_its_waker_is_woken() {
    both(
        |mut tx, value| {
            let _ = tx.poll_closed(&mut Context::from_waker(Waker::noop()));
            block_on(tx.closed());
            assert!(tx.send(value).is_err());
        },
        drop,
    );
}

#[test]
fn a_registered_sender_sends_while_the_receiver_leaves() {
    both(
        |mut tx, value| {
            let _ = tx.poll_closed(&mut Context::from_waker(Waker::noop()));
            drop(tx.send(value));
        },
        |mut rx| drop(poll_once(&mut rx)),
    );
}

/// A waker that the model counts, so that a leaked or doubly dropped one is reported.
struct Counted(Arc<AtomicUsize>);

impl Wake for Counted {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn wakers_are_neither_leaked_nor_dropped_twice() {
    explore(|| {
        let wakes = Arc::new(AtomicUsize::new(0));
        let waker = || Waker::from(std::sync::Arc::new(Counted(wakes.clone())));
        let (mut tx, mut rx) = channel::<()>();
        let (tx_waker, rx_waker) = (waker(), waker());
        let sender = thread::spawn(move || {
            let pending = tx.poll_closed(&mut Context::from_waker(&tx_waker)).is_pending();
            drop(tx);
            pending
        });
        let pinned = std::pin::Pin::new(&mut rx);
        let _ = pinned.poll(&mut Context::from_waker(&rx_waker));
        drop(rx);
        sender.join().unwrap();
        drop(rx_waker);
        assert!(wakes.load(Relaxed) <= 3);
    });
}

struct Panics;

impl Wake for Panics {
    fn wake(self: std::sync::Arc<Self>) {
        std::panic::resume_unwind(Box::new("a waker that panics"));
    }
}

/// The receiver takes the waker of a sender that completes just then, and drops the value before it wakes.
#[test]
fn a_waker_that_panics_keeps_no_value() {
    explore(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let value = Value(drops.clone());
        let (mut tx, rx) = channel();
        let waker = Waker::from(std::sync::Arc::new(Panics));
        assert!(tx.poll_closed(&mut Context::from_waker(&waker)).is_pending());
        let sender = thread::spawn(move || send(tx, value));
        let leaves = std::panic::AssertUnwindSafe(|| drop(rx));
        let _either_way = std::panic::catch_unwind(leaves);
        sender.join().unwrap();
        assert_eq!(drops.load(Relaxed), 1);
    });
}

/// The close carries what the receiver did before it, to whoever notices it in whatever way.
///
/// The sender looks again and again: loom does not always explore a switch between a single load and
/// a compare-exchange that another thread prepares with loads of its own.
#[test]
fn the_close_carries_the_writes_before_it() {
    let ways: [fn(&mut Sender<()>) -> bool; 2] = [
        |tx| tx.is_closed(),
        |tx| tx.poll_closed(&mut Context::from_waker(Waker::noop())).is_ready(),
    ];
    for notices in ways {
        explore(move || {
            let (mut tx, rx) = channel::<()>();
            // A cell, whose accesses loom checks: a yield makes it read the newest of an atomic.
            let written = Arc::new(UnsafeCell::new(0));
            let receiver = thread::spawn({
                let written = written.clone();
                move || {
                    // SAFETY: the sender looks only after it has noticed the close.
                    written.with_mut(|written| unsafe { *written = 1 });
                    drop(rx);
                }
            });
            while !notices(&mut tx) {
                thread::yield_now();
            }
            // SAFETY: the receiver wrote before the close.
            assert_eq!(written.with(|written| unsafe { *written }), 1);
            receiver.join().unwrap();
        });
    }
}

/// A sender that finds the receiver gone frees what the receiver has used until then.
#[test]
fn the_sender_frees_after_the_receiver_has_left() {
    explore(|| {
        let (tx, mut rx) = channel::<()>();
        let gone = Arc::new(AtomicUsize::new(0));
        let receiver = thread::spawn({
            let gone = gone.clone();
            move || {
                drop(poll_once(&mut rx));
                drop(rx);
                gone.store(1, Relaxed);
            }
        });
        // Relaxed: it orders nothing, it only lets the receiver go first.
        while gone.load(Relaxed) == 0 {
            thread::yield_now();
        }
        assert!(tx.send(()).is_err());
        receiver.join().unwrap();
    });
}
