use std::time::Duration;

use volt_sync::internal::primitive::Arc;

use super::{CLAIMED, Park, ROOT};
use crate::runtime::driver::Driver;
use crate::time::Clock;

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

/// A thread that has its claim may be gone at once: it is its caller who names the driver to get it out of.
#[test]
fn a_claim_looks_at_nothing_after_it_was_given() {
    let (mut driver, handle) = Driver::new(1, Clock::real()).unwrap();
    let park = Park::new();
    assert!(park.enter_driver());
    let locked = park.driver.lock().unwrap();
    park.claim(&handle);
    drop(locked);
    driver.wait(&handle, None, || true, || ());
    assert_eq!(park.take(), CLAIMED);
}

#[test]
#[cfg(target_os = "linux")]
fn who_sleeps_at_the_alarm_is_woken_there() {
    let (_driver, handle) = Driver::new(1, Clock::real()).unwrap();
    assert!(handle.alarm.is_there());
    let park = Park::new();
    // SAFETY: the handle is alive until the end of the test.
    unsafe { park.set_driver(Some(std::ptr::NonNull::from(&handle))) };
    for wake in
        [|park: &Park, handle: &_| park.claim(handle), |park: &Park, _: &_| park.unpark(ROOT)]
    {
        assert!(park.enter_alarm());
        wake(&park, &handle);
        handle.alarm.sleep();
        assert_ne!(park.take(), 0);
    }
    // SAFETY: no pointer, no obligation.
    unsafe { park.set_driver(None) };
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
