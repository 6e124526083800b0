//! Two or three threads, bounded by `LOOM_MAX_PREEMPTIONS`; rings of one or two slots.

use super::error::{RecvError, TryRecvError};
use super::{Receiver, channel};
use crate::block_on::block_on;
use crate::primitive::{Arc, UnsafeCell, explore, explore_preempted, thread};

/// A value whose clones and drops loom checks for races, and whose leak it reports.
#[derive(Clone)]
struct Value(Arc<UnsafeCell<u8>>);

impl Value {
    fn new(number: u8) -> Self {
        Self(Arc::new(UnsafeCell::new(number)))
    }

    fn number(&self) -> u8 {
        // SAFETY: never written after it was made.
        self.0.with(|number| unsafe { *number })
    }
}

fn receive_all(mut rx: Receiver<Value>) -> (Vec<u8>, u64) {
    let (mut numbers, mut missed) = (Vec::new(), 0);
    loop {
        match block_on(rx.recv()) {
            Ok(value) => numbers.push(value.number()),
            Err(RecvError::Lagged(lagged)) => missed += lagged,
            Err(RecvError::Closed) => return (numbers, missed),
        }
    }
}

#[test]
fn a_waiting_receiver_gets_the_value_and_then_the_close() {
    explore(|| {
        let (tx, rx) = channel(1);
        let sender = thread::spawn(move || assert!(tx.send(Value::new(7)).is_ok()));
        assert_eq!(receive_all(rx), (vec![7], 0));
        sender.join().unwrap();
    });
}

#[test]
fn an_overwriting_sender_races_with_the_receiver() {
    explore(|| {
        let (tx, rx) = channel(1);
        let sender = thread::spawn(move || {
            assert!(tx.send(Value::new(1)).is_ok());
            assert!(tx.send(Value::new(2)).is_ok());
        });
        let (numbers, missed) = receive_all(rx);
        assert_eq!(numbers.len() as u64 + missed, 2);
        assert_eq!(numbers.last(), Some(&2));
        sender.join().unwrap();
    });
}

#[test]
fn two_receivers_share_one_value() {
    explore(|| {
        let (tx, first) = channel(1);
        let second = tx.subscribe();
        assert!(tx.send(Value::new(3)).is_ok());
        drop(tx);
        let other = thread::spawn(move || assert_eq!(receive_all(first), (vec![3], 0)));
        assert_eq!(receive_all(second), (vec![3], 0));
        other.join().unwrap();
    });
}

#[test]
fn a_receiver_leaves_while_another_receives_and_a_sender_overwrites() {
    explore_preempted(1, || {
        let (tx, first) = channel(1);
        let mut second = tx.subscribe();
        assert!(tx.send(Value::new(1)).is_ok());
        let leaves = thread::spawn(move || drop(first));
        let sender = thread::spawn(move || assert!(tx.send(Value::new(2)).is_ok()));
        // Without waiting: three threads that wait are too many interleavings.
        let expected = match second.try_recv() {
            Ok(value) if value.number() == 1 => None,
            Err(TryRecvError::Lagged(1)) => Some(2),
            _ => panic!("the first value was sent before"),
        };
        leaves.join().unwrap();
        sender.join().unwrap();
        assert_eq!(second.try_recv().ok().map(|it| it.number()), expected.or(Some(2)));
    });
}

#[test]
fn the_last_receiver_is_noticed() {
    explore(|| {
        let (tx, rx) = channel::<Value>(1);
        let receiver = thread::spawn(move || drop(rx));
        block_on(tx.closed());
        receiver.join().unwrap();
    });
}

#[test]
fn the_close_carries_what_all_senders_did() {
    explore(|| {
        let (tx, mut rx) = channel::<Value>(1);
        let cells = [Arc::new(UnsafeCell::new(0)), Arc::new(UnsafeCell::new(0))];
        let senders: Vec<_> = [(tx.clone(), cells[0].clone()), (tx, cells[1].clone())]
            .into_iter()
            .map(|(tx, cell)| {
                thread::spawn(move || {
                    // SAFETY: read only after the close.
                    cell.with_mut(|cell| unsafe { *cell = 1 });
                    drop(tx);
                })
            })
            .collect();
        while matches!(rx.try_recv(), Err(TryRecvError::Empty)) {
            thread::yield_now();
        }
        for cell in cells {
            // SAFETY: its writer has dropped its sender.
            assert_eq!(cell.with(|cell| unsafe { *cell }), 1);
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
}
