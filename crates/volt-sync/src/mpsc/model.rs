use super::{channel, unbounded_channel};
use crate::block_on::block_on;
use crate::primitive::{Arc, explore, thread};

#[test]
fn a_permit_races_with_the_drop_of_the_receiver() {
    explore(|| {
        let (tx, rx) = channel(1);
        let value = Arc::new(());
        let sent = value.clone();
        let permit = tx.try_reserve_owned().unwrap();
        let sender = thread::spawn(move || drop(permit.send(sent)));
        drop(rx);
        sender.join().unwrap();
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

#[test]
fn a_sleeping_sender_races_with_the_drop_of_the_receiver() {
    explore(|| {
        let (tx, rx) = channel(1);
        let value = Arc::new(());
        let sent = value.clone();
        let sender = thread::spawn(move || {
            assert!(tx.try_send(sent.clone()).is_ok() || tx.is_closed());
            assert!(block_on(tx.send(sent)).is_err());
        });
        drop(rx);
        sender.join().unwrap();
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

#[test]
fn the_last_sender_wakes_the_receiver() {
    explore(|| {
        let (tx, mut rx) = unbounded_channel::<()>();
        let sender = thread::spawn(move || drop(tx));
        assert_eq!(rx.blocking_recv(), None);
        sender.join().unwrap();
        let (tx, mut rx) = channel::<()>(1);
        let sender = thread::spawn(move || drop(tx));
        assert_eq!(rx.blocking_recv(), None);
        sender.join().unwrap();
    });
}
