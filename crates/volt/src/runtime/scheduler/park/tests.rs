use std::time::Duration;

use volt_sync::internal::primitive::Arc;

use super::{CLAIMED, Park, ROOT};

#[test]
fn reasons_add_up_and_are_taken_once() {
    let park = Park::new();
    assert_eq!(park.take(), 0);
    park.unpark(ROOT);
    park.unpark(CLAIMED);
    assert!(park.is_notified() && !park.enter_driver());
    assert_eq!(park.sleep(None), ROOT | CLAIMED);
    assert_eq!(park.sleep(Some(Duration::from_millis(1))), 0);
}

/// A thread that has its claim may be gone at once: it is its caller who gets it out of the driver.
#[test]
fn a_claim_looks_at_nothing_after_it_was_given() {
    let park = Park::new();
    assert!(park.enter_driver());
    let locked = park.driver.lock().unwrap();
    assert!(park.claim());
    drop(locked);
    assert!(!park.claim(), "it has been told");
    assert_eq!(park.take(), CLAIMED);
    assert!(!park.claim(), "it does not sleep");
}

#[test]
fn the_waker_counts_its_references_and_wakes_a_sleeper() {
    let park = Arc::new(Park::new());
    let waker = Park::waker(&park);
    let clone = waker.clone();
    assert_eq!(Arc::strong_count(&park), 3);
    let thread = std::thread::Builder::new().spawn(move || clone.wake()).unwrap();
    while park.sleep(None) != ROOT {}
    thread.join().unwrap();
    waker.wake_by_ref();
    drop(waker);
    assert_eq!((park.take(), Arc::strong_count(&park)), (ROOT, 1));
}
