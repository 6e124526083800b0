//! Two or three threads, bounded by `LOOM_MAX_PREEMPTIONS`.

use super::channel;
use crate::block_on::block_on;
use crate::primitive::{Arc, UnsafeCell, explore, explore_preempted, thread};

/// Data that an edge carries: loom checks that its accesses are ordered.
fn data() -> (Arc<UnsafeCell<u8>>, Arc<UnsafeCell<u8>>) {
    let data = Arc::new(UnsafeCell::new(0));
    (data.clone(), data)
}

fn write(data: &UnsafeCell<u8>) {
    // SAFETY: loom checks that nobody else accesses it at the same time.
    data.with_mut(|data| unsafe { *data = 1 });
}

fn read(data: &UnsafeCell<u8>) {
    // SAFETY: loom checks that nobody writes it at the same time.
    assert_eq!(data.with(|data| unsafe { *data }), 1);
}

#[test]
fn a_waiting_receiver_is_woken_by_a_value() {
    explore(|| {
        let (tx, mut rx) = channel(0);
        let (written, seen) = data();
        let sender = thread::spawn(move || {
            write(&written);
            tx.send_replace(1);
            tx
        });
        block_on(rx.changed()).unwrap();
        read(&seen);
        assert_eq!(*rx.borrow(), 1);
        sender.join().unwrap();
    });
}

/// The sender's turn may be long: the receiver does not come back by itself, so somebody must wake it.
#[test]
fn a_receiver_sleeps_while_a_sender_is_at_work() {
    explore(|| {
        let (tx, mut rx) = channel(0);
        let (written, seen) = data();
        let sender = thread::spawn(move || {
            write(&written);
            tx.send_modify(|value| *value = 1);
            tx
        });
        block_on(rx.changed()).unwrap();
        read(&seen);
        sender.join().unwrap();
    });
}

/// The receiver sleeps on a sender that changes nothing, while another one sends shortly.
#[test]
fn a_receiver_wakes_up_after_a_sender_that_changed_nothing() {
    explore_preempted(2, || {
        let (tx, mut rx) = channel(0);
        let short = tx.clone();
        let long = thread::spawn(move || {
            tx.send_if_modified(|_| false);
            tx
        });
        let short = thread::spawn(move || {
            short.send_replace(1);
            short
        });
        block_on(rx.changed()).unwrap();
        let _senders = (long.join().unwrap(), short.join().unwrap());
    });
}

#[test]
fn a_new_version_carries_what_came_before() {
    explore(|| {
        let (tx, rx) = channel(0);
        let (written, seen) = data();
        let sender = thread::spawn(move || {
            write(&written);
            tx.send_replace(1);
            tx
        });
        while !rx.has_changed().unwrap() {
            thread::yield_now();
        }
        read(&seen);
        sender.join().unwrap();
    });
}

#[test]
fn the_close_carries_what_came_before_and_wakes() {
    explore(|| {
        let (tx, mut rx) = channel(0);
        let (written, seen) = data();
        let sender = thread::spawn(move || {
            write(&written);
            drop(tx);
        });
        assert!(block_on(rx.changed()).is_err());
        read(&seen);
        sender.join().unwrap();
    });
}

#[test]
fn the_close_without_a_lock_carries_what_came_before() {
    explore(|| {
        let (tx, rx) = channel(0);
        let (written, seen) = data();
        let sender = thread::spawn(move || {
            write(&written);
            drop(tx);
        });
        while rx.has_changed().is_ok() {
            thread::yield_now();
        }
        read(&seen);
        sender.join().unwrap();
    });
}

/// The last sender's CLOSED bit must come after every other sender's last version.
#[test]
fn two_senders_leave_and_the_close_is_not_erased() {
    explore(|| {
        let (tx, mut rx) = channel(0);
        let senders: Vec<_> = [tx.clone(), tx]
            .into_iter()
            .map(|tx| {
                thread::spawn(move || {
                    tx.send_replace(1);
                    drop(tx);
                })
            })
            .collect();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        assert!(block_on(rx.changed()).is_ok());
        assert!(block_on(rx.changed()).is_err());
    });
}

#[test]
fn the_last_receiver_is_noticed() {
    explore(|| {
        let (tx, rx) = channel(0);
        let (written, seen) = data();
        let receiver = thread::spawn(move || {
            write(&written);
            drop(rx);
        });
        block_on(tx.closed());
        read(&seen);
        receiver.join().unwrap();
    });
}

#[test]
fn the_receiver_count_carries_what_receivers_did() {
    explore(|| {
        let (tx, rx) = channel(0);
        let (written, seen) = data();
        let receiver = thread::spawn(move || {
            write(&written);
            drop(rx);
        });
        while !tx.is_closed() {
            thread::yield_now();
        }
        read(&seen);
        receiver.join().unwrap();
    });
}
