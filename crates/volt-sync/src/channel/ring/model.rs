use super::Ring;
use crate::channel::Nothing;
use crate::primitive::{Arc, spin, thread};

fn send<T>(ring: &Ring<T>, value: T) -> bool {
    ring.claim_tail().map(|at| at.publish(value)).is_ok()
}

fn recv<T>(ring: &Ring<T>) -> Result<T, Nothing> {
    ring.claim_head().map(|at| at.take())
}

/// Finding C8.
#[test]
fn a_stale_tail_is_not_a_full_ring() {
    loom::model(|| {
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
    loom::model(|| {
        let ring = Ring::new(2);
        let at = ring.claim_tail().unwrap();
        ring.close();
        assert_eq!(recv(&ring), Err(Nothing::Busy));
        at.publish(1);
        assert_eq!(recv(&ring), Ok(1));
        assert_eq!(recv(&ring), Err(Nothing::Closed));
    });
}

#[test]
fn two_senders_and_two_receivers_share_one_place() {
    loom::model(|| {
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
