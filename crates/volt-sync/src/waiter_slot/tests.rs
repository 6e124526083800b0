#![allow(clippy::disallowed_types, reason = "counters of the tests")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{RawWaker, RawWakerVTable, Wake, Waker};

use super::WaiterSlot;
use crate::test::hostile_waker;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn counting() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (count.clone(), Waker::from(count))
}

fn register(slot: &WaiterSlot, waker: &Waker) {
    // SAFETY: each test has one thread.
    unsafe { slot.register(waker) };
}

#[test]
fn wake_wakes_the_registered_waker_once() {
    let slot = WaiterSlot::new();
    let (count, waker) = counting();
    assert!(!slot.wake());
    register(&slot, &waker);
    assert!(slot.is_registered());
    assert!(slot.wake());
    assert!(!slot.wake());
    assert_eq!(count.0.load(Relaxed), 1);
}

#[test]
fn registering_the_same_waker_again_costs_no_clone() {
    let slot = WaiterSlot::new();
    let (count, waker) = counting();
    for _ in 0..3 {
        register(&slot, &waker);
        assert_eq!(Arc::strong_count(&count), 3);
    }
    drop(slot.take());
    assert_eq!(Arc::strong_count(&count), 2);
}

#[test]
fn another_waker_replaces_the_first_and_drops_it() {
    let slot = WaiterSlot::new();
    let ((first, a), (second, b)) = (counting(), counting());
    register(&slot, &a);
    register(&slot, &b);
    assert_eq!(Arc::strong_count(&first), 2);
    slot.wake();
    assert_eq!((first.0.load(Relaxed), second.0.load(Relaxed)), (0, 1));
}

#[test]
fn dropping_an_armed_slot_drops_the_waker() {
    let (count, waker) = counting();
    let slot = WaiterSlot::new();
    register(&slot, &waker);
    drop(slot);
    assert_eq!(Arc::strong_count(&count), 2);
}

#[test]
fn a_panic_in_the_clone_or_drop_of_a_waker_leaves_the_slot_usable() {
    static BAD_CLONE: RawWakerVTable =
        RawWakerVTable::new(|_| panic!("clone"), |_| {}, |_| {}, |_| {});
    static BAD_DROP: RawWakerVTable =
        RawWakerVTable::new(|data| RawWaker::new(data, &BAD_DROP_COPY), |_| {}, |_| {}, |_| {});
    static BAD_DROP_COPY: RawWakerVTable =
        RawWakerVTable::new(|_| panic!("clone"), |_| {}, |_| {}, |_| panic!("drop"));
    let bad = |vtable| {
        // SAFETY: the functions ignore their data.
        unsafe { Waker::new(std::ptr::null(), vtable) }
    };
    let slot = WaiterSlot::new();
    let (count, waker) = counting();
    let catch = |waker: &Waker| catch_unwind(AssertUnwindSafe(|| register(&slot, waker)));
    catch(&bad(&BAD_CLONE)).unwrap_err();
    assert!(!slot.is_registered());
    register(&slot, &waker);
    catch(&bad(&BAD_CLONE)).unwrap_err();
    assert!(slot.wake(), "the registered waker survives");
    assert_eq!(count.0.load(Relaxed), 1);
    register(&slot, &bad(&BAD_DROP));
    catch(&waker).unwrap_err();
    assert!(slot.wake());
    assert_eq!(count.0.load(Relaxed), 2);
}

/// As a `LocalSet` that is polled by the clone of the waker with which it is polled.
#[test]
fn a_clone_that_registers_another_waker_comes_before_its_own() {
    for armed in [false, true] {
        let slot = Rc::new(WaiterSlot::new());
        if armed {
            register(&slot, Waker::noop());
        }
        let (count, nested) = counting();
        let outer = hostile_waker({
            let slot = slot.clone();
            move || register(&slot, &nested)
        });
        register(&slot, &outer);
        assert_eq!(Arc::strong_count(&count), 1, "replaced, and dropped");
        assert!(slot.is_registered());
        catch_unwind(AssertUnwindSafe(|| slot.wake())).expect_err("it is the hostile one");
        assert_eq!(count.0.load(Relaxed), 0);
        assert!(!slot.is_registered());
    }
}
