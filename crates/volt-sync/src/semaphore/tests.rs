use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use crate::TryAcquireError;
use crate::test::{drop_at_every_await, ready};

#[test]
fn permits_split_merge_and_forget() {
    let semaphore = Semaphore::new(10);
    let mut permits = semaphore.try_acquire_many(6).unwrap();
    let part = permits.split(4).unwrap();
    assert!(permits.split(3).is_none());
    assert!(permits.split(usize::MAX).is_none());
    assert_eq!((permits.num_permits(), part.num_permits()), (2, 4));
    permits.forget();
    assert_eq!(semaphore.available_permits(), 4);
    drop(part);
    assert_eq!(semaphore.available_permits(), 8);
}

#[test]
fn merging_permits_of_different_semaphores_panics_and_gives_both_back() {
    let (a, b) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(1)));
    let merge = || {
        let mut one = a.try_acquire().unwrap();
        one.merge(b.try_acquire().unwrap());
    };
    catch_unwind(AssertUnwindSafe(merge)).unwrap_err();
    let merge = || {
        let mut one = a.clone().try_acquire_owned().unwrap();
        one.merge(b.clone().try_acquire_owned().unwrap());
    };
    catch_unwind(AssertUnwindSafe(merge)).unwrap_err();
    assert_eq!((a.available_permits(), b.available_permits()), (1, 1));
}

#[test]
fn more_than_the_maximum_of_permits_panics() {
    catch_unwind(|| Semaphore::new(Semaphore::MAX_PERMITS + 1)).unwrap_err();
    let semaphore = Semaphore::new(Semaphore::MAX_PERMITS);
    catch_unwind(|| semaphore.add_permits(1)).unwrap_err();
    catch_unwind(|| semaphore.add_permits(usize::MAX)).unwrap_err();
    assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS);
}

#[test]
fn a_closed_semaphore_refuses_and_takes_back() {
    let semaphore = Arc::new(Semaphore::new(2));
    let permit = semaphore.try_acquire().unwrap();
    semaphore.close();
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::Closed);
    assert_eq!(semaphore.clone().try_acquire_owned().unwrap_err(), TryAcquireError::Closed);
    ready(semaphore.acquire()).unwrap_err();
    ready(semaphore.clone().acquire_many_owned(1)).unwrap_err();
    semaphore.blocking_acquire().unwrap_err();
    drop(permit);
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn dropping_a_wait_at_any_point_loses_no_permit() {
    drop_at_every_await(
        || Arc::new(Semaphore::new(1)),
        |semaphore| semaphore.clone().acquire_many_owned(3),
        |semaphore, poll| semaphore.add_permits(usize::from(poll <= 2)),
        |semaphore| {
            let permits = semaphore.available_permits();
            assert!((1..=3).contains(&permits));
            drop(ready(semaphore.acquire_many(u32::try_from(permits).unwrap())).unwrap());
        },
    );
}

const _: () = {
    const fn all<T: Send + Sync + Unpin>() {}
    all::<Semaphore>();
    all::<SemaphorePermit<'static>>();
    all::<OwnedSemaphorePermit>();
};

#[test]
fn futures_are_send_and_sync() {
    fn check<T: Send + Sync>(_: T) {}
    let semaphore = Arc::new(Semaphore::new(1));
    check(semaphore.acquire());
    check(semaphore.acquire_many(1));
    check(semaphore.clone().acquire_owned());
    check(semaphore.acquire_many_owned(1));
}
