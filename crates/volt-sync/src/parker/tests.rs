use std::sync::Arc;
use std::time::Duration;

use super::Parker;
use crate::primitive::thread;

#[test]
fn a_token_makes_the_next_park_return_at_once() {
    let parker = Parker::new();
    parker.unpark();
    parker.unpark();
    parker.park();
    assert!(!parker.park_timeout(Duration::from_millis(1)), "two unparks make one token");
}

#[test]
fn ping_pong_between_two_threads_loses_no_token() {
    let (a, b) = (Arc::new(Parker::new()), Arc::new(Parker::new()));
    let rounds = 10_000;
    let other = thread::Builder::new()
        .spawn({
            let (a, b) = (a.clone(), b.clone());
            move || {
                for _ in 0..rounds {
                    a.park();
                    b.unpark();
                }
            }
        })
        .unwrap();
    for _ in 0..rounds {
        a.unpark();
        b.park();
    }
    other.join().unwrap();
}
