use std::sync::atomic::Ordering::Relaxed;

use super::Parker;
use crate::primitive::{Arc, AtomicU32, explore, thread};

#[test]
fn unpark_carries_the_writes_before_it() {
    explore(|| {
        let shared = Arc::new((Parker::new(), AtomicU32::new(0)));
        let waker = shared.clone();
        let thread = thread::spawn(move || {
            waker.1.store(1, Relaxed);
            waker.0.unpark();
        });
        shared.0.park();
        assert_eq!(shared.1.load(Relaxed), 1);
        thread.join().unwrap();
    });
}

#[test]
fn a_token_given_while_parking_is_never_erased() {
    explore(|| {
        let parker = Arc::new(Parker::new());
        let waker = parker.clone();
        let thread = thread::spawn(move || {
            waker.unpark();
            waker.unpark();
        });
        parker.park();
        thread.join().unwrap();
        // The second unpark left a token, or came before the first was consumed.
        parker.unpark();
        parker.park();
    });
}

#[test]
fn a_timed_sleep_carries_the_writes_too() {
    explore(|| {
        let shared = Arc::new((Parker::new(), AtomicU32::new(0)));
        let waker = shared.clone();
        let thread = thread::spawn(move || {
            waker.1.store(1, Relaxed);
            waker.0.unpark();
        });
        // The model's timeouts never elapse, so this returns with the token.
        assert!(shared.0.park_timeout(std::time::Duration::from_secs(1)));
        assert_eq!(shared.1.load(Relaxed), 1);
        thread.join().unwrap();
    });
}
