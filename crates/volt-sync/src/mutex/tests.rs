use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;

use super::{MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard};
use crate::test::{Wakes, drop_at_every_await, poll_once, ready};

#[test]
fn lock_excludes_and_unlock_hands_over() {
    let mutex = Mutex::new(1);
    let mut guard = ready(mutex.lock());
    let wakes = Wakes::new();
    let mut waiter = pin!(mutex.lock());
    assert!(wakes.poll(waiter.as_mut()).is_pending());
    assert!(mutex.try_lock().is_err());
    *guard += 1;
    drop(guard);
    assert_eq!(wakes.count(), 1);
    assert!(mutex.try_lock().is_err(), "it belongs to the waiter already");
    assert_eq!(*ready(waiter), 2);
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn dropping_a_wait_at_any_point_leaves_the_mutex_usable() {
    drop_at_every_await(
        || {
            let mutex = Arc::new(Mutex::new(0));
            let guard = mutex.clone().try_lock_owned().unwrap();
            (mutex, Cell::new(Some(guard)))
        },
        |(mutex, _)| mutex.clone().lock_owned(),
        |(_, guard), poll| {
            if poll == 2 {
                drop(guard.take());
            }
        },
        |(mutex, guard)| {
            drop(guard);
            assert!(mutex.try_lock().is_ok());
        },
    );
}

#[test]
fn a_panic_in_the_critical_section_unlocks() {
    let mutex = Mutex::new(1);
    catch_unwind(AssertUnwindSafe(|| {
        let mut guard = mutex.blocking_lock();
        *guard = 2;
        panic!("while locked");
    }))
    .unwrap_err();
    assert_eq!(*mutex.try_lock().unwrap(), 2);
}

#[test]
fn a_panic_in_map_unlocks() {
    let mutex = Arc::new(Mutex::new((1, 2)));
    let map = || drop(MutexGuard::map(mutex.blocking_lock(), |_| -> &mut i32 { panic!("map") }));
    catch_unwind(AssertUnwindSafe(map)).unwrap_err();
    let map = || {
        let guard = mutex.clone().blocking_lock_owned();
        drop(OwnedMutexGuard::map(guard, |_| -> &mut i32 { panic!("map") }));
    };
    catch_unwind(AssertUnwindSafe(map)).unwrap_err();
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn mapped_guards_write_through_and_unlock() {
    let mutex = Arc::new(Mutex::new((1, [2, 3])));
    let mut part = MutexGuard::map(mutex.blocking_lock(), |value| &mut value.1[..]);
    part[0] = 4;
    let mut element = MappedMutexGuard::try_map(part, |slice| slice.get_mut(1)).unwrap();
    *element = 5;
    assert!(mutex.try_lock().is_err());
    drop(element);
    let part = OwnedMutexGuard::map(mutex.clone().blocking_lock_owned(), |value| &mut value.1);
    let mut part = OwnedMappedMutexGuard::try_map(part, |_| None::<&mut u8>).unwrap_err();
    part[0] += 1;
    assert!(mutex.try_lock().is_err());
    drop(part);
    assert_eq!(*mutex.blocking_lock(), (1, [5, 5]));
}

#[test]
fn unsized_values_and_formatting() {
    let mutex: Arc<Mutex<[u8]>> = Arc::new(Mutex::new([1, 2]));
    assert_eq!(format!("{mutex:?}"), "Mutex { data: [1, 2] }");
    let guard = mutex.try_lock().unwrap();
    assert_eq!(format!("{guard:?} {mutex:?}"), "[1, 2] Mutex { data: <locked> }");
    assert_eq!(format!("{}", Mutex::new(7).blocking_lock()), "7");
    assert_eq!(Mutex::from(1).into_inner() + Mutex::<i32>::default().into_inner(), 1);
}

#[test]
fn polling_a_completed_lock_panics() {
    let mutex = Mutex::new(());
    let mut future = pin!(mutex.lock());
    drop(poll_once(future.as_mut()));
    catch_unwind(AssertUnwindSafe(|| drop(poll_once(future.as_mut())))).unwrap_err();
}

#[test]
fn sizes() {
    assert_eq!(size_of::<Mutex<()>>(), 3 * size_of::<usize>());
    assert_eq!(size_of::<MutexGuard<'_, u8>>(), size_of::<usize>());
    assert!(size_of_val(&Mutex::new(()).lock()) <= 12 * size_of::<usize>());
}

const _: () = {
    const fn all<T: Send + Sync + Unpin>() {}
    const fn send<T: Send>() {}
    all::<Mutex<u8>>();
    all::<Mutex<Cell<u8>>>();
    all::<MutexGuard<'static, u8>>();
    send::<MutexGuard<'static, Cell<u8>>>();
    all::<OwnedMutexGuard<u8>>();
    send::<OwnedMutexGuard<Cell<u8>>>();
    all::<MappedMutexGuard<'static, u8>>();
    all::<OwnedMappedMutexGuard<u8, u16>>();
};

/// What must not be shared or sent is not.
mod negative {
    use super::{
        Cell, MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard,
    };
    use crate::test::not_impl;
    use std::rc::Rc;

    not_impl!(Mutex<Rc<u8>>: Send);
    not_impl!(Mutex<Rc<u8>>: Sync);
    not_impl!(MutexGuard<'static, Cell<u8>>: Sync);
    not_impl!(MutexGuard<'static, Rc<u8>>: Send);
    not_impl!(OwnedMutexGuard<Cell<u8>>: Sync);
    not_impl!(OwnedMutexGuard<Rc<u8>>: Send);
    not_impl!(MappedMutexGuard<'static, Cell<u8>>: Sync);
    not_impl!(MappedMutexGuard<'static, Rc<u8>>: Send);
    not_impl!(OwnedMappedMutexGuard<u8, Cell<u8>>: Sync);
    not_impl!(OwnedMappedMutexGuard<Rc<u8>, u8>: Send);
}
