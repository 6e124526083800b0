use std::ptr;

use super::{Frame, Outcome};
use crate::parking;
use volt_sync::internal::primitive::{Arc, UnsafeCell, explore, thread};

struct Shared {
    frame: Frame,
    result: UnsafeCell<u32>,
}

// SAFETY: loom checks the cell; the frame's pointers are null.
unsafe impl Sync for Shared {}
// SAFETY: as for the one above.
unsafe impl Send for Shared {}

fn shared() -> Arc<Shared> {
    // SAFETY: a null parent is allowed.
    let frame = unsafe { Frame::new(ptr::null(), parking::mine(), ptr::null()) };
    Arc::new(Shared { frame, result: UnsafeCell::new(0) })
}

fn wait(shared: &Shared) -> Outcome {
    loop {
        if let Some(outcome) = shared.frame.outcome() {
            return outcome;
        }
        shared.frame.sleep(|| false);
    }
}

#[test]
fn the_result_arrives_and_the_sleeper_wakes() {
    explore(|| {
        let shared = shared();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            // SAFETY: the result is the finisher's until the outcome.
            other.result.with_mut(|result| unsafe { *result = 7 });
            // SAFETY: alive, finished once.
            unsafe { Frame::finish(&raw const other.frame, Outcome::Done) };
        });
        assert_eq!(wait(&shared), Outcome::Done);
        // SAFETY: there is an outcome.
        assert_eq!(shared.result.with(|result| unsafe { *result }), 7);
        thread.join().unwrap();
    });
}

#[test]
fn calling_a_helper_races_with_the_end() {
    explore(|| {
        let shared = shared();
        let (helper, finisher) = (shared.clone(), shared.clone());
        let caller = thread::spawn(move || helper.frame.call_helper());
        let thread = thread::spawn(move || {
            // SAFETY: alive, finished once.
            unsafe { Frame::finish(&raw const finisher.frame, Outcome::Returned) };
        });
        assert_eq!(wait(&shared), Outcome::Returned);
        thread.join().unwrap();
        caller.join().unwrap();
    });
}
