use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;

use super::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock,
    RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard,
};
use crate::test::{Wakes, drop_at_every_await, poll_once, ready};

#[test]
fn readers_share_and_a_writer_excludes() {
    let lock = RwLock::new(1);
    let (one, two) = (ready(lock.read()), ready(lock.read()));
    assert!(lock.try_write().is_err());
    drop((one, two));
    let writer = ready(lock.write());
    assert!(lock.try_read().is_err());
    assert!(lock.try_write().is_err());
    drop(writer);
    assert!(lock.try_read().is_ok());
}

#[test]
fn a_waiting_writer_goes_before_later_readers() {
    let lock = RwLock::new(0);
    let reader = ready(lock.read());
    let wakes = [Wakes::new(), Wakes::new(), Wakes::new()];
    let mut writer = Box::pin(lock.write());
    assert!(wakes[0].poll(writer.as_mut()).is_pending());
    assert!(lock.try_read().is_err());
    let (mut one, mut two) = (pin!(lock.read()), pin!(lock.read()));
    assert!(wakes[1].poll(one.as_mut()).is_pending());
    assert!(wakes[2].poll(two.as_mut()).is_pending());
    let counts = || wakes.each_ref().map(Wakes::count);
    drop(reader);
    assert_eq!(counts(), [1, 0, 0]);
    drop(ready(writer));
    assert_eq!(counts(), [1, 1, 1], "both readers at once");
    assert!(poll_once(one).is_ready() && poll_once(two).is_ready());
}

#[test]
fn a_cancelled_writer_lets_the_readers_behind_it_in() {
    let lock = RwLock::new(0);
    let _reader = ready(lock.read());
    let mut writer = Box::pin(lock.write());
    assert!(poll_once(writer.as_mut()).is_pending());
    let mut behind = pin!(lock.read());
    assert!(poll_once(behind.as_mut()).is_pending());
    drop(writer);
    assert!(poll_once(behind).is_ready());
}

#[test]
fn downgrade_lets_readers_in_but_no_writer() {
    let lock = Arc::new(RwLock::new((1, 2)));
    let mut writer = ready(lock.write());
    writer.0 = 3;
    let mut second = pin!(lock.write());
    assert!(poll_once(second.as_mut()).is_pending());
    let reader = writer.downgrade();
    assert!(poll_once(second.as_mut()).is_pending());
    assert_eq!(*reader, (3, 2));
    drop(reader);
    drop(ready(second));
    let part = RwLockWriteGuard::downgrade_map(ready(lock.write()), |pair| &pair.1);
    let (other, owned) = (lock.try_read().unwrap(), lock.clone().try_write_owned());
    assert!(owned.is_err());
    assert_eq!(*part, other.1);
    drop((part, other));
    let writer = lock.clone().try_write_owned().unwrap();
    let part = OwnedRwLockWriteGuard::try_downgrade_map(writer, |pair| Some(&pair.0)).unwrap();
    assert_eq!(*part, lock.try_read().unwrap().0);
    drop(part);
    assert!(lock.try_write().is_ok());
}

#[test]
fn the_number_of_readers_is_bounded() {
    let lock = RwLock::with_max_readers(0, 2);
    let readers = (lock.try_read().unwrap(), lock.try_read().unwrap());
    assert!(lock.try_read().is_err());
    drop(readers);
    let reader = lock.try_write().unwrap().downgrade();
    assert!(lock.try_read().is_ok());
    drop(reader);
    assert!(lock.try_write().is_ok());
    catch_unwind(|| RwLock::with_max_readers(0, 0)).unwrap_err();
    catch_unwind(|| RwLock::with_max_readers(0, (u32::MAX >> 3) + 1)).unwrap_err();
}

#[test]
fn mapped_guards_write_through_and_unlock() {
    let lock = Arc::new(RwLock::new((1, [2, 3])));
    let part = RwLockWriteGuard::map(ready(lock.write()), |value| &mut value.1);
    let mut element = RwLockMappedWriteGuard::map(part, |array| &mut array[0]);
    *element = 4;
    assert!(lock.try_read().is_err());
    drop(element);
    let part = OwnedRwLockWriteGuard::map(ready(lock.clone().write_owned()), |value| &mut value.1);
    let mut element = OwnedRwLockMappedWriteGuard::map(part, |array| &mut array[1]);
    *element = 5;
    drop(element);
    let part = OwnedRwLockReadGuard::map(ready(lock.clone().read_owned()), |value| &value.1);
    assert_eq!(*part, [4, 5]);
    let part = OwnedRwLockReadGuard::try_map(part, |_| None::<&u8>).unwrap_err();
    assert!(lock.try_write().is_err());
    drop(part);
    let part = RwLockReadGuard::map(lock.blocking_read(), |value| &value.1[1]);
    assert_eq!(*part, 5);
    drop(part);
    assert!(lock.try_write().is_ok());
}

#[test]
fn a_panic_while_locked_unlocks() {
    let lock = RwLock::new(1);
    catch_unwind(AssertUnwindSafe(|| {
        let _writer = lock.blocking_write();
        panic!("while locked");
    }))
    .unwrap_err();
    catch_unwind(AssertUnwindSafe(|| {
        drop(RwLockWriteGuard::downgrade_map(lock.blocking_write(), |_| -> &u8 { panic!("map") }));
    }))
    .unwrap_err();
    assert!(lock.try_write().is_ok());
}

#[test]
fn a_panicking_waker_in_downgrade_leaves_no_permit_behind() {
    let lock = RwLock::new(1);
    let writer = lock.blocking_write();
    let wakes = Wakes::panicking();
    let mut reader = Box::pin(lock.read());
    assert!(wakes.poll(reader.as_mut()).is_pending());
    catch_unwind(AssertUnwindSafe(|| drop(writer.downgrade()))).unwrap_err();
    drop(ready(reader));
    assert!(lock.try_write().is_ok());
}

#[test]
fn dropping_a_wait_at_any_point_leaves_the_lock_usable() {
    drop_at_every_await(
        || {
            let lock = Arc::new(RwLock::new(0));
            let reader = lock.clone().try_read_owned().unwrap();
            (lock, Cell::new(Some(reader)))
        },
        |(lock, _)| lock.clone().write_owned(),
        |(_, reader), poll| {
            if poll == 2 {
                drop(reader.take());
            }
        },
        |(lock, reader)| {
            drop(reader);
            assert!(lock.try_write().is_ok());
        },
    );
}

#[test]
fn dropping_a_reader_at_any_point_leaves_the_lock_usable() {
    drop_at_every_await(
        || {
            let lock = Arc::new(RwLock::new(0));
            let writer = lock.clone().try_write_owned().unwrap();
            (lock, Cell::new(Some(writer)))
        },
        |(lock, _)| {
            let lock = lock.clone();
            async move {
                let first = lock.read().await;
                drop((first, lock.read().await));
                drop(lock.clone().read_owned().await);
            }
        },
        |(_, writer), poll| {
            if poll == 2 {
                drop(writer.take());
            }
        },
        |(lock, writer)| {
            drop(writer);
            assert!(lock.try_write().is_ok());
        },
    );
}

#[test]
fn a_dropped_reader_lets_a_queued_writer_pass() {
    let lock = RwLock::new(0);
    let holder = lock.try_write().unwrap();
    let mut reader = Box::pin(lock.read());
    assert!(poll_once(reader.as_mut()).is_pending());
    let wakes = Wakes::new();
    let mut writer = Box::pin(lock.write());
    assert!(wakes.poll(writer.as_mut()).is_pending());
    drop(holder);
    assert_eq!(wakes.count(), 0, "the reader is first");
    drop(reader);
    assert_eq!(wakes.count(), 1);
    drop(ready(writer));
    assert!(lock.try_write().is_ok());
}

#[test]
fn unsized_values_and_formatting() {
    let lock: Arc<RwLock<[u8]>> = Arc::new(RwLock::new([1, 2]));
    assert_eq!(format!("{lock:?}"), "RwLock { data: [1, 2] }");
    let guard = lock.try_write().unwrap();
    assert_eq!(format!("{guard:?} {lock:?}"), "[1, 2] RwLock { data: <locked> }");
    assert_eq!(format!("{}", RwLock::new(7).blocking_read()), "7");
    assert_eq!(RwLock::from(1).into_inner() + RwLock::<i32>::default().into_inner(), 1);
}

const _: () = {
    const fn all<T: Send + Sync + Unpin>() {}
    all::<RwLock<u8>>();
    all::<RwLockReadGuard<'static, u8>>();
    all::<RwLockWriteGuard<'static, u8>>();
    all::<RwLockMappedWriteGuard<'static, u8>>();
    all::<OwnedRwLockReadGuard<u8, u16>>();
    all::<OwnedRwLockWriteGuard<u8>>();
    all::<OwnedRwLockMappedWriteGuard<u8, u16>>();
};

/// What must not be shared or sent is not.
mod negative {
    use super::{
        Cell, OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock,
        RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard,
    };
    use crate::test::not_impl;
    use std::rc::Rc;

    not_impl!(RwLock<Cell<u8>>: Sync);
    not_impl!(RwLock<Rc<u8>>: Send);
    not_impl!(RwLockReadGuard<'static, Cell<u8>>: Send);
    not_impl!(RwLockReadGuard<'static, Cell<u8>>: Sync);
    not_impl!(RwLockWriteGuard<'static, Cell<u8>>: Sync);
    not_impl!(RwLockWriteGuard<'static, Cell<u8>>: Send);
    not_impl!(RwLockMappedWriteGuard<'static, Cell<u8>>: Sync);
    not_impl!(RwLockMappedWriteGuard<'static, Rc<u8>>: Send);
    not_impl!(OwnedRwLockReadGuard<Cell<u8>, u8>: Send);
    not_impl!(OwnedRwLockReadGuard<u8, Cell<u8>>: Send);
    not_impl!(OwnedRwLockWriteGuard<Cell<u8>>: Sync);
    not_impl!(OwnedRwLockMappedWriteGuard<Rc<u8>, u8>: Send);
}

const _: () = {
    const fn all<T: std::panic::RefUnwindSafe>() {}
    all::<crate::RwLockWriteGuard<'static, u8>>();
};
