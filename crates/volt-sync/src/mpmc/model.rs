use super::{bounded, unbounded};
use crate::primitive::{Arc, explore, thread};

#[test]
fn the_last_of_two_senders_closes_behind_both_messages() {
    explore(|| {
        let (tx, rx) = bounded(2);
        let other = tx.clone();
        let thread = thread::spawn(move || assert!(other.try_send(Box::new(1)).is_ok()));
        assert!(tx.try_send(Box::new(2)).is_ok());
        drop(tx);
        let first = rx.blocking_recv().expect("two were sent");
        let second = rx.blocking_recv().expect("two were sent");
        assert_eq!(*first + *second, 3);
        assert_eq!(rx.blocking_recv(), None);
        thread.join().unwrap();
    });
}

/// Every value is dropped exactly once: by the receiver, or with the channel.
#[test]
fn a_send_races_with_the_drop_of_the_last_receiver() {
    for is_bounded in [true, false] {
        explore(move || {
            let (tx, rx) = if is_bounded { bounded(1) } else { unbounded() };
            let value = Arc::new(());
            let sent = value.clone();
            let sender = thread::spawn(move || {
                let refused = tx.try_send(sent);
                assert!(refused.is_ok() || tx.is_closed());
            });
            drop(rx);
            sender.join().unwrap();
            assert_eq!(Arc::strong_count(&value), 1);
        });
    }
}

#[test]
fn an_upgrade_races_with_the_drop_of_the_last_sender() {
    explore(|| {
        let (tx, rx) = bounded(1);
        let weak = tx.downgrade();
        let thread = thread::spawn(move || {
            weak.upgrade().is_some_and(|tx| {
                assert!(tx.try_send(1).is_ok());
                true
            })
        });
        drop(tx);
        let received = rx.blocking_recv().is_some();
        assert_eq!(received, thread.join().unwrap());
    });
}
