use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use super::{OnceCell, SetError};
use crate::test::{Wakes, drop_at_every_await, not_impl, poll_once, ready};

#[test]
fn the_first_initialisation_wins_and_the_others_wait() {
    let cell = OnceCell::new();
    let go = Cell::new(false);
    let slow = || poll_fn(|_| if go.get() { Poll::Ready(1) } else { Poll::Pending });
    let mut first = pin!(cell.get_or_init(slow));
    assert!(poll_once(first.as_mut()).is_pending());
    let wakes = Wakes::new();
    let mut second = pin!(cell.get_or_init(|| async { unreachable!("the first makes it") }));
    assert!(wakes.poll(second.as_mut()).is_pending());
    assert_eq!(cell.set(3), Err(SetError::InitializingError(3)));
    assert_eq!(cell.get(), None);
    go.set(true);
    assert_eq!(poll_once(first.as_mut()), Poll::Ready(&1));
    assert_eq!(wakes.count(), 1);
    assert_eq!(poll_once(second.as_mut()), Poll::Ready(&1));
    assert_eq!(cell.set(3), Err(SetError::AlreadyInitializedError(3)));
}

#[test]
fn after_an_error_a_panic_or_a_cancellation_the_next_one_tries() {
    let cell = OnceCell::new();
    assert_eq!(ready(cell.get_or_try_init(|| async { Err("no") })), Err("no"));
    catch_unwind(AssertUnwindSafe(|| {
        ready(cell.get_or_init(|| async { panic!("in the future") }));
    }))
    .unwrap_err();
    catch_unwind(AssertUnwindSafe(|| {
        ready(cell.get_or_init(|| -> std::future::Ready<i32> { panic!("in the closure") }));
    }))
    .unwrap_err();
    let mut first = Box::pin(cell.get_or_init(pending));
    assert!(poll_once(first.as_mut()).is_pending());
    let wakes = Wakes::new();
    let mut second = pin!(cell.get_or_init(|| async { 2 }));
    assert!(wakes.poll(second.as_mut()).is_pending());
    drop(first);
    assert_eq!(wakes.count(), 1);
    assert_eq!(poll_once(second), Poll::Ready(&2));
}

#[test]
fn dropping_a_wait_at_any_point_leaves_the_cell_usable() {
    drop_at_every_await(
        || {
            let cell = Arc::new(OnceCell::new());
            let held = cell.clone();
            let other = Box::pin(async move {
                held.get_or_init(pending::<u8>).await;
            });
            let mut other = Some(other);
            assert!(poll_once(other.as_mut().unwrap().as_mut()).is_pending());
            (cell, Cell::new(other))
        },
        |(cell, _)| {
            let cell = cell.clone();
            async move { *cell.get_or_init(|| async { 1 }).await }
        },
        |(_, other), poll| {
            if poll == 2 {
                drop(other.take());
            }
        },
        |(cell, other)| {
            drop(other);
            assert!((1..=2).contains(ready(cell.get_or_init(|| async { 2 }))));
        },
    );
}

#[test]
fn values_are_dropped_once_and_can_be_taken() {
    let value = Rc::new(());
    let mut cell = OnceCell::new_with(Some(value.clone()));
    assert_eq!(cell.clone(), cell);
    assert!(cell.take().is_some());
    assert!(cell.take().is_none());
    cell.set(value.clone()).unwrap();
    assert!(cell.get_mut().is_some());
    assert_eq!(Rc::strong_count(&value), 2);
    drop(cell);
    assert_eq!(Rc::strong_count(&value), 1);
    drop(OnceCell::from(value.clone()).into_inner());
    drop(OnceCell::<Rc<()>>::default().into_inner());
    assert_eq!(Rc::strong_count(&value), 1);
    assert_eq!(format!("{:?}", OnceCell::from(1)), "OnceCell { value: Some(1) }");
}

const _: () = {
    const fn all<T: Send + Sync + Unpin>() {}
    all::<OnceCell<u8>>();
};
not_impl!(OnceCell<Cell<u8>>: Sync);
not_impl!(OnceCell<Rc<u8>>: Send);
