//! The seed's semaphore with its slot for one waiter, and a model for each of its defects. Each
//! model here fails (or asserts the wrong outcome) on the seed's protocol; its namesake in
//! `model.rs` or `tests.rs` passes on ours.
//!
//! Nothing here is dropped: after a failure loom has no execution left for destructors to run in.

use std::collections::VecDeque;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::primitive::{AtomicPtr, AtomicUsize, Mutex, UnsafeCell, explore, thread};

/// The seed's waiter, leaked so that only the model sees its end.
struct Waiter {
    /// Permits that it still needs.
    state: AtomicUsize,
    requested: usize,
    /// Stands for the callback and its context; written by the owner, read by the releaser.
    waker: UnsafeCell<u8>,
}

// SAFETY: the cell is what loom checks.
unsafe impl Sync for Waiter {}

impl Waiter {
    fn new(requested: usize) -> &'static Self {
        Box::leak(Box::new(Self {
            state: AtomicUsize::new(requested),
            requested,
            waker: UnsafeCell::new(0),
        }))
    }

    fn is_complete(&self) -> bool {
        self.state.load(Acquire) == 0
    }

    fn copy_waker(&self) -> u8 {
        // SAFETY: checked by loom.
        self.waker.with(|waker| unsafe { *waker })
    }

    /// The owner writes the cell: it sets the waker, or frees the waiter.
    fn write(&self) {
        // SAFETY: checked by loom.
        self.waker.with_mut(|waker| unsafe { *waker += 1 });
    }
}

struct Seed {
    permits: AtomicUsize,
    slot: AtomicPtr<Waiter>,
    /// Oldest first.
    list: Mutex<VecDeque<&'static Waiter>>,
}

impl Seed {
    fn new() -> &'static Self {
        Box::leak(Box::new(Self {
            permits: AtomicUsize::new(0),
            slot: AtomicPtr::new(null_mut()),
            list: Mutex::new(VecDeque::new()),
        }))
    }

    fn register_in_slot(&self, waiter: &'static Waiter) -> bool {
        let waiter = std::ptr::from_ref(waiter).cast_mut();
        self.slot.compare_exchange(null_mut(), waiter, Release, Relaxed).is_ok()
    }

    /// `acquireWaitDirect`: true if acquired.
    fn acquire(&self, waiter: &'static Waiter) -> bool {
        let mut list = self.list.lock().unwrap();
        let permits = self.permits.load(Acquire);
        let taken = permits.min(waiter.requested);
        self.permits.fetch_sub(taken, Acquire);
        waiter.state.store(waiter.requested - taken, Relaxed);
        if taken == waiter.requested {
            return true;
        }
        if !self.register_in_slot(waiter) {
            list.push_back(waiter);
        }
        false
    }

    fn release(&self, n: usize) {
        let waiter = self.slot.swap(null_mut(), AcqRel);
        if waiter.is_null() {
            return self.release_to_list(n);
        }
        // SAFETY: `Waiter::new` leaks, so the pointer in the slot stays valid.
        let waiter = unsafe { &*waiter };
        waiter.copy_waker();
        let remaining = waiter.state.load(Relaxed);
        let given = n.min(remaining);
        waiter.state.store(remaining - given, Release);
        if given < remaining {
            if !self.register_in_slot(waiter) {
                self.list.lock().unwrap().push_back(waiter);
            }
        } else if n > given {
            self.release_to_list(n - given);
        }
    }

    fn release_to_list(&self, mut n: usize) {
        let mut list = self.list.lock().unwrap();
        while n > 0 {
            let Some(waiter) = list.front() else { break };
            let remaining = waiter.state.load(Relaxed);
            let given = n.min(remaining);
            waiter.copy_waker();
            waiter.state.store(remaining - given, Release);
            n -= given;
            if given == remaining {
                list.pop_front();
            }
        }
        self.permits.fetch_add(n, Release);
    }

    fn cancel(&self, waiter: &'static Waiter) {
        if waiter.is_complete() {
            return;
        }
        let place = std::ptr::from_ref(waiter).cast_mut();
        if self.slot.compare_exchange(place, null_mut(), AcqRel, Relaxed).is_err() {
            let mut list = self.list.lock().unwrap();
            if waiter.is_complete() {
                return;
            }
            list.retain(|queued| !std::ptr::eq(*queued, waiter));
        }
        let acquired = waiter.requested - waiter.state.load(Relaxed);
        if acquired > 0 {
            self.release(acquired);
        }
    }

    fn nobody_sleeps_beside_permits(&self, waiter: &Waiter) {
        let permits = self.permits.load(Acquire);
        assert!(
            waiter.is_complete() || permits == 0,
            "a sleeper beside {permits} permits, for ever"
        );
    }
}

/// Finding S1. Ours: `mutex_of_two_threads`.
#[test]
#[should_panic(expected = "a sleeper beside 1 permits")]
fn s1_a_permit_floats_past_a_waiter_in_the_slot() {
    explore(|| {
        let (seed, waiter) = (Seed::new(), Waiter::new(1));
        let thread = thread::spawn(|| seed.release(1));
        let acquired = seed.acquire(waiter);
        thread.join().unwrap();
        if !acquired {
            seed.nobody_sleeps_beside_permits(waiter);
        }
    });
}

/// Finding S2. Ours: `a_newcomer_does_not_overtake`, `grants_come_in_the_order_of_the_queue`.
#[test]
fn s2_newcomers_overtake_through_the_slot() {
    explore(|| {
        let seed = Seed::new();
        let [first, old, newcomer] = [(); 3].map(|()| Waiter::new(1));
        seed.acquire(first);
        seed.acquire(old);
        seed.release(1);
        seed.acquire(newcomer);
        seed.release(1);
        assert!(newcomer.is_complete() && !old.is_complete(), "the defect");
    });
}

/// Finding S3. Ours: `cancel_against_release`.
#[test]
#[should_panic(expected = "Causality violation")]
fn s3_a_releaser_uses_a_cancelled_waiter() {
    explore(|| {
        let (seed, waiter) = (Seed::new(), Waiter::new(1));
        seed.acquire(waiter);
        let thread = thread::spawn(|| seed.release(1));
        seed.cancel(waiter);
        // Its memory goes to somebody else.
        waiter.write();
        thread.join().unwrap();
    });
}

/// Finding S4. Ours: `dropping_a_granted_waiter_passes_the_permits_on`.
#[test]
fn s4_a_cancelled_waiter_keeps_the_permit_it_was_granted() {
    explore(|| {
        let (seed, waiter) = (Seed::new(), Waiter::new(1));
        seed.acquire(waiter);
        seed.release(1);
        seed.cancel(waiter);
        assert!(!seed.acquire(Waiter::new(1)), "the defect: the permit is nowhere");
    });
}

/// Finding S5: a waiter that goes back to the slot can be cancelled in between. Ours:
/// `cancel_in_front_of_a_waiter`.
#[test]
#[should_panic(expected = "Causality violation")]
fn s5_a_partly_served_waiter_goes_back_to_the_slot_after_its_end() {
    explore(|| {
        let (seed, waiter) = (Seed::new(), Waiter::new(2));
        seed.acquire(waiter);
        let thread = thread::spawn(|| {
            seed.release(1);
            seed.release(1);
        });
        seed.cancel(waiter);
        waiter.write();
        thread.join().unwrap();
    });
}

/// Finding S6. Ours: `served_from_two_releases`.
#[test]
#[should_panic(expected = "a sleeper beside 1 permits")]
fn s6_a_second_releaser_finds_a_partly_served_waiter_nowhere() {
    explore(|| {
        let (seed, waiter) = (Seed::new(), Waiter::new(2));
        seed.acquire(waiter);
        let thread = thread::spawn(|| seed.release(1));
        seed.release(1);
        thread.join().unwrap();
        seed.nobody_sleeps_beside_permits(waiter);
    });
}

/// Finding S7. Ours: `more_waiters_than_a_round_wakes`.
#[test]
#[should_panic(expected = "a sleeper beside 1 permits")]
fn s7_a_surplus_floats_past_a_newcomer_in_the_slot() {
    explore(|| {
        let (seed, waiter, newcomer) = (Seed::new(), Waiter::new(1), Waiter::new(1));
        seed.acquire(waiter);
        let thread = thread::spawn(|| seed.release(2));
        let acquired = seed.acquire(newcomer);
        thread.join().unwrap();
        if !acquired {
            seed.nobody_sleeps_beside_permits(newcomer);
        }
    });
}

/// Finding S8. Ours: `a_waiter_keeps_its_place_and_its_waker_across_polls`.
#[test]
#[should_panic(expected = "the oldest waiter is served last")]
fn s8_a_partly_served_waiter_ends_up_behind_newcomers() {
    explore(|| {
        let (seed, old) = (Seed::new(), Waiter::new(2));
        let [newcomer, another] = [(); 2].map(|()| Waiter::new(1));
        seed.acquire(old);
        let thread = thread::spawn(|| seed.release(1));
        seed.acquire(newcomer);
        seed.acquire(another);
        thread.join().unwrap();
        seed.release(1);
        seed.release(1);
        let others = newcomer.is_complete() && another.is_complete();
        assert!(!others || old.is_complete(), "the oldest waiter is served last");
    });
}

/// Finding S9: the callback's context is the future. Ours: `mutex_of_two_threads`, in which every
/// waiter is retired.
#[test]
#[should_panic(expected = "Causality violation")]
fn s9_a_copied_callback_reaches_into_a_freed_future() {
    explore(|| {
        let waiter = Waiter::new(1);
        let thread = thread::spawn(move || {
            // The bridge: copied before the state is stored, called after.
            let context = waiter;
            waiter.state.store(0, Release);
            context.copy_waker();
        });
        if waiter.is_complete() {
            // The owner has its permit, and frees the future.
            waiter.write();
        }
        thread.join().unwrap();
    });
}

/// Finding K2. Ours: `another_waker_on_every_poll`.
#[test]
#[should_panic(expected = "Causality violation")]
fn k2_the_waker_is_updated_while_the_releaser_reads_it() {
    explore(|| {
        let (seed, waiter) = (Seed::new(), Waiter::new(1));
        seed.acquire(waiter);
        let thread = thread::spawn(|| seed.release(1));
        // A re-poll from another task.
        if !waiter.is_complete() {
            waiter.write();
        }
        thread.join().unwrap();
    });
}
