use std::sync::atomic::Ordering::Relaxed;

use super::Ring;
use crate::channel::Nothing;
use crate::primitive::{Arc, explore, spin, thread};

fn send<T>(ring: &Ring<T>, value: T) -> bool {
    ring.claim_tail().map(|at| at.publish(value)).is_ok()
}

fn recv<T>(ring: &Ring<T>) -> Result<T, Nothing> {
    ring.claim_head().map(|at| at.take())
}

/// Finding C8.
#[test]
fn a_stale_tail_is_not_a_full_ring() {
    explore(|| {
        let ring = Ring::new(3);
        let stale = ring.tail();
        assert!(send(&ring, 1));
        assert_eq!(recv(&ring), Ok(1));
        assert_eq!(ring.room(stale), None, "out of date, not full");
        assert_eq!(ring.room(ring.tail()), Some(3));
    });
}

/// Finding C7.
#[test]
fn a_message_that_is_being_written_is_not_the_end() {
    explore(|| {
        let ring = Ring::new(2);
        let at = ring.claim_tail().unwrap();
        ring.close();
        assert_eq!(recv(&ring), Err(Nothing::Busy));
        at.publish(1);
        assert_eq!(recv(&ring), Ok(1));
        assert_eq!(recv(&ring), Err(Nothing::Closed));
    });
}

/// A sender that finds room in the stamps alone has seen the head pass the place. So has whoever
/// sees its move of the tail.
#[test]
fn nobody_sees_more_messages_than_fit() {
    let one = |ring: &Ring<i32>| recv(ring).is_ok();
    // SAFETY: one thread receives.
    let many = |ring: &Ring<i32>| unsafe { ring.take_many(&mut Vec::new(), 1) }.is_ok();
    for receive in [one, many] {
        explore(move || {
            let ring = Arc::new(Ring::new(3));
            (0..3).for_each(|value| assert!(send(&ring, value)));
            let (receives, sends) = (ring.clone(), ring.clone());
            let receiver = thread::spawn(move || assert!(receive(&receives)));
            let sender = thread::spawn(move || send(&sends, 3));
            sender.join().unwrap();
            let (tail, head) = (ring.tail(), ring.head.load(Relaxed));
            assert!(tail.ahead_of(head).is_none_or(|len| len <= 3), "more than fit");
            receiver.join().unwrap();
        });
    }
}

/// One place, two messages, and each way to receive: the messages arrive whole, and the place is written
/// again only when they have left it.
#[test]
fn messages_and_places_change_hands_in_every_way() {
    type Way = fn(&Ring<Box<u32>>) -> Option<Box<u32>>;
    let ways: [Way; 4] = [
        |ring| ring.claim_head_once().map(|at| at.take()),
        |ring| ring.claim_head().ok().map(|at| at.take()),
        // SAFETY: one thread receives.
        |ring| unsafe { ring.claim_only_head() }.ok().map(|at| at.take()),
        |ring| {
            let mut into = Vec::new();
            // SAFETY: one thread receives.
            unsafe { ring.take_many(&mut into, 1) }.ok()?;
            into.pop()
        },
    ];
    for receive in ways {
        explore(move || {
            let ring = Arc::new(Ring::new(1));
            let sends = ring.clone();
            let sender = thread::spawn(move || {
                for value in [1, 2] {
                    while !send(&sends, Box::new(value)) {
                        thread::yield_now();
                    }
                }
            });
            for value in [1, 2] {
                let received = loop {
                    match receive(&ring) {
                        Some(received) => break *received,
                        None => thread::yield_now(),
                    }
                };
                assert_eq!(received, value);
            }
            sender.join().unwrap();
        });
    }
}

/// A sender that goes by the head writes behind a receiver that has claimed its message and not yet left
/// the place. That place is the next sender's, which goes by the stamps.
#[test]
fn a_place_whose_receiver_was_overtaken_is_reused_after_it_left() {
    explore(|| {
        let ring = Arc::new(Ring::new(3));
        (0..3).for_each(|value| assert!(send(&ring, Box::new(value))));
        let (receives, sends) = (ring.clone(), ring.clone());
        let receiver = thread::spawn(move || drop(recv(&receives).unwrap()));
        let sender = thread::spawn(move || send(&sends, Box::new(3)));
        drop(recv(&ring).unwrap());
        send(&ring, Box::new(4));
        receiver.join().unwrap();
        sender.join().unwrap();
        while recv(&ring).is_ok() {}
    });
}

#[test]
fn two_senders_and_two_receivers_share_one_place() {
    explore(|| {
        let ring = Arc::new(Ring::new(1));
        let spawn = |value: Box<u32>| {
            let ring = ring.clone();
            thread::spawn(move || {
                let mut sent = false;
                for attempt in 0..2 {
                    sent = send(&ring, value.clone());
                    if sent {
                        break;
                    }
                    spin(attempt);
                }
                u32::from(sent) * *value
            })
        };
        let senders = [spawn(Box::new(1)), spawn(Box::new(2))];
        let mut received = recv(&ring).map_or(0, |value| *value);
        let sent: u32 = senders.map(|sender| sender.join().unwrap()).iter().sum();
        while let Ok(value) = recv(&ring) {
            received += *value;
        }
        assert_eq!(received, sent);
    });
}

/// Two threads claim by their guesses, of which one is mostly old: by the word of the other, or since it was
/// loaded. Each message arrives once, whole.
#[test]
fn an_old_guess_claims_nothing_twice() {
    type Send = fn(&Ring<Box<u32>>, u32) -> bool;
    let once: Send =
        |ring, value| ring.claim_tail_once(false).map(|at| at.publish(Box::new(value))).is_some();
    let also_reserved: Send =
        |ring, value| ring.claim_tail_once(true).map(|at| at.publish(Box::new(value))).is_some();
    for send in [once, also_reserved] {
        explore(move || {
            let ring = Arc::new(Ring::new(2));
            let other = ring.clone();
            let both = move |ring: &Ring<Box<u32>>, value: u32| {
                let sent = u32::from(send(ring, value)) * value;
                (sent, ring.claim_head_once().map_or(0, |at| *at.take()))
            };
            let thread = thread::spawn(move || {
                let (one, two) = (both(&other, 1), both(&other, 2));
                (one.0 + two.0, one.1 + two.1)
            });
            let (one, two) = (both(&ring, 4), both(&ring, 8));
            let (sent, received) = thread.join().unwrap();
            let (sent, mut received) = (sent + one.0 + two.0, received + one.1 + two.1);
            while let Ok(value) = recv(&ring) {
                received += *value;
            }
            assert_eq!(received, sent);
        });
    }
}

/// The guess that a sender leaves is older than a close, a reservation or the wait of another sender. Nobody
/// is let in by it.
#[test]
fn an_old_guess_lets_nobody_in() {
    type Change = fn(&Ring<u32>) -> bool;
    let changes: [Change; 3] = [
        |ring| !ring.close().is_closed(),
        |ring| !ring.set_waiters(true).has_waiters(),
        |ring| ring.reserve(2, false).is_ok(),
    ];
    let once = |ring: &Ring<u32>| ring.claim_tail_once(true).map(|at| at.publish(1)).is_some();
    for (change, capacity) in changes.into_iter().flat_map(|change| [(change, 3), (change, 4)]) {
        explore(move || {
            let ring = Arc::new(Ring::new(capacity));
            // Of four places one is reserved.
            ring.reserve(capacity - 3, false).unwrap();
            let other = ring.clone();
            let sender = thread::spawn(move || once(&other));
            let changed = change(&ring);
            let let_in = once(&ring);
            let sent = sender.join().unwrap();
            let (len, _) = ring.snapshot();
            assert_eq!(len, usize::from(sent) + usize::from(let_in));
            assert!(len + ring.tail().reserved() <= capacity, "more than fit");
            // The last place that is left beside the reservation is for one of the two.
            let one_is_left = ring.tail().reserved() == capacity - 1 && !sent;
            assert!(!(changed && let_in) || one_is_left, "let in");
        });
    }
}

/// The only receiver is another thread from time to time: what it goes by is what the last one left.
#[test]
fn the_only_receiver_moves_to_another_thread() {
    explore(|| {
        let ring = Arc::new(Ring::new(2));
        let sends = ring.clone();
        let sender = thread::spawn(move || {
            for value in [1, 2, 3] {
                while !send(&sends, Box::new(value)) {
                    thread::yield_now();
                }
            }
        });
        let receive = |ring: &Ring<Box<u32>>| loop {
            // SAFETY: a thread that receives ends before the next one does.
            match unsafe { ring.claim_only_head() } {
                Ok(at) => break *at.take(),
                Err(_) => thread::yield_now(),
            }
        };
        assert_eq!(receive(&ring), 1);
        let other = ring.clone();
        let receiver = thread::spawn(move || assert_eq!(receive(&other), 2));
        receiver.join().unwrap();
        assert_eq!(receive(&ring), 3);
        sender.join().unwrap();
    });
}
