use std::cell::Cell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use crate::TryAcquireError;
use crate::primitive::thread;
use crate::test::{Wakes, drop_at_every_await, poll_once, ready};

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

/// Those of a budget in bytes, for one.
#[cfg(target_pointer_width = "64")]
#[test]
fn a_guard_has_more_permits_than_one_acquisition_can_bring() {
    let most = u32::MAX as usize;
    let semaphore = Arc::new(Semaphore::new(2 * most));
    let mut permits = semaphore.try_acquire_many(u32::MAX).unwrap();
    permits.merge(semaphore.try_acquire_many(u32::MAX).unwrap());
    assert_eq!((permits.num_permits(), semaphore.available_permits()), (2 * most, 0));
    drop(permits.split(most + 1).unwrap());
    assert_eq!((permits.num_permits(), semaphore.available_permits()), (most - 1, most + 1));
    permits.forget();
    semaphore.add_permits(most - 1);
    let mut permits = semaphore.clone().try_acquire_many_owned(u32::MAX).unwrap();
    permits.merge(semaphore.clone().try_acquire_many_owned(u32::MAX).unwrap());
    drop(permits.split(most + 1).unwrap());
    drop(permits);
    assert_eq!(semaphore.available_permits(), 2 * most);
}

#[test]
fn more_than_the_maximum_of_permits_panics() {
    catch_unwind(|| Semaphore::new(Semaphore::MAX_PERMITS + 1)).unwrap_err();
    let semaphore = Semaphore::new(Semaphore::MAX_PERMITS);
    catch_unwind(|| semaphore.add_permits(1)).unwrap_err();
    catch_unwind(|| semaphore.add_permits(usize::MAX)).unwrap_err();
    assert_eq!(semaphore.available_permits(), Semaphore::MAX_PERMITS);
}

/// A guard may have more than all permits that there can be.
#[cfg(target_pointer_width = "32")]
#[test]
fn a_guard_of_more_than_the_maximum_panics_and_gives_none_back() {
    let semaphore = Semaphore::new(Semaphore::MAX_PERMITS);
    let all = || semaphore.try_acquire_many(Semaphore::MAX_PERMITS as u32).unwrap();
    let mut permits = all();
    semaphore.add_permits(Semaphore::MAX_PERMITS);
    permits.merge(all());
    assert_eq!(permits.num_permits(), 2 * Semaphore::MAX_PERMITS);
    catch_unwind(AssertUnwindSafe(|| drop(permits))).unwrap_err();
    assert_eq!(semaphore.available_permits(), 0);
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
    semaphore.clone().blocking_acquire_many_owned(1).unwrap_err();
    drop(permit);
    assert_eq!(semaphore.available_permits(), 2);
}

/// They wait until they are polled.
#[test]
fn who_waits_is_refused_by_the_close_although_its_permits_were_there_before() {
    let semaphore = Arc::new(Semaphore::new(0));
    let mut one = pin!(semaphore.acquire());
    let mut two = pin!(semaphore.acquire_many(2));
    let mut owned = pin!(semaphore.clone().acquire_owned());
    let mut two_owned = pin!(semaphore.clone().acquire_many_owned(2));
    assert!(poll_once(one.as_mut()).is_pending());
    assert!(poll_once(two.as_mut()).is_pending());
    assert!(poll_once(owned.as_mut()).is_pending());
    assert!(poll_once(two_owned.as_mut()).is_pending());
    semaphore.add_permits(6);
    assert_eq!(semaphore.available_permits(), 0, "they have them");
    semaphore.close();
    ready(one).unwrap_err();
    assert_eq!(semaphore.available_permits(), 1, "given back");
    ready(two).unwrap_err();
    ready(owned).unwrap_err();
    ready(two_owned).unwrap_err();
    assert_eq!(semaphore.available_permits(), 6);
}

#[test]
fn a_permit_names_its_semaphore() {
    let semaphore = Arc::new(Semaphore::new(2));
    let permit = semaphore.try_acquire().unwrap();
    // Not borrowed from the permit.
    let of_permit = permit.semaphore();
    drop(permit);
    assert!(std::ptr::eq(of_permit, &*semaphore));
    let owned = semaphore.clone().try_acquire_owned().unwrap();
    assert!(Arc::ptr_eq(owned.semaphore(), &semaphore));
}

/// Threads wait in the same queue as tasks: whoever asked first gets what is given back.
#[test]
fn threads_wait_for_owned_permits() {
    let semaphore = Arc::new(Semaphore::new(3));
    let held = semaphore.try_acquire_many(2).unwrap();
    let theirs = || semaphore.clone();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| theirs().blocking_acquire_many_owned(3).unwrap());
        // None is available to others as soon as somebody waits.
        while semaphore.available_permits() > 0 {
            thread::yield_now();
        }
        assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
        drop(held);
        let permits = waiter.join().unwrap();
        assert_eq!((permits.num_permits(), semaphore.available_permits()), (3, 0));

        let refused = scope.spawn(|| theirs().blocking_acquire_owned());
        semaphore.close();
        assert!(refused.join().unwrap().is_err());
        drop(permits);
    });
    assert_eq!(semaphore.available_permits(), 3);
}

/// Eight tasks use two permits, and are polled in any order, some far more often than others: each
/// permit that is given back goes to the one that waits longest, and to nobody else.
#[test]
fn permits_go_to_whoever_waits_longest_however_often_others_ask() {
    const TASKS: usize = 8;
    let semaphore = Semaphore::new(2);
    let turns: Vec<_> = (0..TASKS).map(|_| Cell::new(0)).collect();
    let run = |task: usize| {
        let (semaphore, turns) = (&semaphore, &turns);
        async move {
            loop {
                let permit = semaphore.acquire().await.unwrap();
                turns[task].set(turns[task].get() + 1);
                yield_once().await;
                drop(permit);
            }
        }
    };
    let mut tasks: Vec<_> = (0..TASKS).map(|task| (Box::pin(run(task)), Wakes::new())).collect();
    let (mut queue, mut woken) = (VecDeque::new(), [0; TASKS]);
    let mut holds = [false; TASKS];
    for poll in 0..20_000_usize {
        let random = (poll + 1).wrapping_mul(0x9e37_79b9);
        let task = ((random >> 7) % TASKS).min((random >> 11) % TASKS);
        let turns_before = turns[task].get();
        let (future, wakes) = &mut tasks[task];
        assert!(wakes.poll(future.as_mut()).is_pending());
        let took = turns[task].get() > turns_before;
        if holds[task] {
            // It gave its permit back and asked for another one.
            if let Some(oldest) = queue.pop_front() {
                woken[oldest] += 1;
            }
        }
        holds[task] = took;
        if !took && !queue.contains(&task) {
            queue.push_back(task);
        }
        let counts: Vec<usize> = tasks.iter().map(|(_, wakes)| wakes.count()).collect();
        assert_eq!(counts, woken, "after poll {poll}");
    }
    assert!(turns.iter().all(|turns| turns.get() > 100), "{turns:?}");
}

/// `Pending` once.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(
        |_| if std::mem::replace(&mut yielded, true) { Poll::Ready(()) } else { Poll::Pending },
    )
    .await;
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
