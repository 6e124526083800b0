use std::pin::pin;

use super::OnceCell;
use crate::block_on::block_on;
use crate::primitive::{Arc, UnsafeCell, explore, thread};
use crate::test::poll_once;

/// A value that loom watches: read without an ordering after its making, it is reported.
fn value(n: u32) -> UnsafeCell<u32> {
    let cell = UnsafeCell::new(0);
    // SAFETY: not shared yet.
    cell.with_mut(|value| unsafe { *value = n });
    cell
}

fn read(cell: &UnsafeCell<u32>) -> u32 {
    // SAFETY: checked by loom.
    cell.with(|value| unsafe { *value })
}

#[test]
fn one_of_two_initialises_and_both_see_it() {
    explore(|| {
        let cell = Arc::new(OnceCell::new());
        let other = cell.clone();
        let thread =
            thread::spawn(move || read(block_on(other.get_or_init(|| async { value(1) }))));
        let here = read(block_on(cell.get_or_init(|| async { value(2) })));
        assert_eq!(thread.join().unwrap(), here);
    });
}

#[test]
fn what_get_finds_is_complete() {
    explore(|| {
        let cell = Arc::new(OnceCell::new());
        let other = cell.clone();
        let thread = thread::spawn(move || drop(other.set(value(1))));
        while cell.get().is_none() {
            thread::yield_now();
        }
        assert_eq!(read(cell.get().unwrap()), 1);
        thread.join().unwrap();
    });
}

#[test]
fn a_cancelled_initialisation_lets_the_next_one_try() {
    explore(|| {
        let cell = Arc::new(OnceCell::new());
        let other = cell.clone();
        let thread = thread::spawn(move || {
            let mut future = pin!(other.get_or_init(std::future::pending));
            let _ = poll_once(future.as_mut());
        });
        assert_eq!(read(block_on(cell.get_or_init(|| async { value(2) }))), 2);
        thread.join().unwrap();
    });
}
