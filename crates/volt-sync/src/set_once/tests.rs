use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use super::{SetOnce, SetOnceError};
use crate::test::{Wakes, drop_at_every_await, not_impl, ready};

#[test]
fn set_wakes_all_and_only_the_first_counts() {
    let cell = SetOnce::new();
    let wakes = Wakes::new();
    let mut waiters: Vec<_> = (0..40).map(|_| Box::pin(cell.wait())).collect();
    for waiter in &mut waiters {
        assert!(wakes.poll(waiter.as_mut()).is_pending());
    }
    let cancelled = waiters.pop();
    drop(cancelled);
    assert_eq!(cell.set(1), Ok(()));
    assert_eq!(wakes.count(), 39);
    assert_eq!(cell.set(2), Err(SetOnceError(2)));
    for waiter in waiters {
        assert_eq!(ready(waiter), &1);
    }
    assert_eq!(ready(cell.wait()), &1);
}

#[test]
fn dropping_a_wait_at_any_point_leaves_the_cell_usable() {
    drop_at_every_await(
        || Arc::new(SetOnce::new()),
        |cell| {
            let cell = cell.clone();
            async move { *cell.wait().await }
        },
        |cell, poll| {
            if poll == 2 {
                cell.set(1).unwrap();
            }
        },
        |cell| {
            let _ = cell.set(1);
            assert_eq!(ready(cell.wait()), &1);
        },
    );
}

#[test]
fn values_are_dropped_once() {
    let value = Rc::new(());
    let cell = SetOnce::new_with(Some(value.clone()));
    assert_eq!(cell.clone(), cell);
    assert_eq!(Rc::strong_count(&value), 2);
    drop(cell);
    drop(SetOnce::from(value.clone()).into_inner());
    drop(SetOnce::<Rc<()>>::default().into_inner());
    let full = SetOnce::from(value.clone());
    drop(full.set(value.clone()));
    drop(full);
    assert_eq!(Rc::strong_count(&value), 1);
    assert_eq!(format!("{:?}", SetOnce::from(1)), "SetOnce { value: Some(1) }");
}

#[test]
fn a_waiter_in_the_queue_does_not_keep_set_out() {
    let cell = SetOnce::new();
    let wakes = Wakes::new();
    let mut waiter = pin!(cell.wait());
    assert!(wakes.poll(waiter.as_mut()).is_pending());
    cell.set(1).unwrap();
    assert_eq!(wakes.count(), 1);
}

const _: () = {
    const fn all<T: Send + Sync + Unpin>() {}
    all::<SetOnce<u8>>();
};
not_impl!(SetOnce<Cell<u8>>: Sync);
not_impl!(SetOnce<Rc<u8>>: Send);
