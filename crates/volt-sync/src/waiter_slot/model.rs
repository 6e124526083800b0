use std::future::poll_fn;
use std::sync::Arc as StdArc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Wake, Waker};

use super::WaiterSlot;
use crate::block_on::block_on;
use crate::primitive::{Arc, AtomicU32, explore, thread};

/// Passes wake-ups on: two of them are different wakers for the same task.
struct Forward(Waker);

impl Wake for Forward {
    fn wake(self: StdArc<Self>) {
        self.0.wake_by_ref();
    }
}

fn wait_for(slot: &WaiterSlot, look: impl Fn() -> bool) {
    block_on(poll_fn(|cx| {
        // SAFETY: only this thread registers.
        unsafe { slot.register(cx.waker()) };
        if look() { Poll::Ready(()) } else { Poll::Pending }
    }));
}

#[test]
fn a_wake_up_is_never_lost() {
    explore(|| {
        let shared = Arc::new((WaiterSlot::new(), AtomicU32::new(0)));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.1.store(1, Relaxed);
            other.0.wake();
        });
        wait_for(&shared.0, || shared.1.load(Relaxed) == 1);
        thread.join().unwrap();
    });
}

#[test]
fn two_wakers_while_one_registers() {
    explore(|| {
        let shared = Arc::new((WaiterSlot::new(), [AtomicU32::new(0), AtomicU32::new(0)]));
        let threads = [0, 1].map(|i| {
            let other = shared.clone();
            thread::spawn(move || {
                other.1[i].store(1, Relaxed);
                other.0.wake();
            })
        });
        wait_for(&shared.0, || shared.1.iter().all(|data| data.load(Relaxed) == 1));
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn registering_again_while_a_wake_up_runs() {
    explore(|| {
        let shared = Arc::new((WaiterSlot::new(), AtomicU32::new(0)));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            for value in 1..=2 {
                other.1.store(value, Relaxed);
                other.0.wake();
            }
        });
        // One `block_on`: loom does not see how an `Arc` orders the reuse of its memory, so a second
        // one could get a waker that looks like the first.
        let mut next = 1;
        block_on(poll_fn(|cx| {
            while next <= 2 {
                // SAFETY: only this thread registers.
                unsafe { shared.0.register(cx.waker()) };
                if shared.1.load(Relaxed) < next {
                    return Poll::Pending;
                }
                next += 1;
            }
            Poll::Ready(())
        }));
        thread.join().unwrap();
    });
}

/// Finding K2: the waker changes on re-poll while the waking side reads it.
#[test]
fn changing_the_waker_while_it_is_taken() {
    explore(|| {
        let shared = Arc::new((WaiterSlot::new(), AtomicU32::new(0)));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.1.store(1, Relaxed);
            other.0.wake();
        });
        block_on(poll_fn(|cx: &mut Context<'_>| {
            for _ in 0..2 {
                let fresh = Waker::from(StdArc::new(Forward(cx.waker().clone())));
                // SAFETY: only this thread registers.
                unsafe { shared.0.register(&fresh) };
            }
            if shared.1.load(Relaxed) == 1 { Poll::Ready(()) } else { Poll::Pending }
        }));
        thread.join().unwrap();
    });
}

/// The waker that is being taken may be another task's: its wake-up does not reach this one.
#[test]
fn the_next_task_registers_while_the_last_ones_waker_is_taken() {
    explore(|| {
        let shared = Arc::new((WaiterSlot::new(), AtomicU32::new(0)));
        // SAFETY: only this thread registers.
        unsafe { shared.0.register(Waker::noop()) };
        let taker = thread::spawn({
            let shared = shared.clone();
            move || shared.0.wake()
        });
        let publisher = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.1.store(1, Relaxed);
                shared.0.wake();
            }
        });
        wait_for(&shared.0, || shared.1.load(Relaxed) == 1);
        taker.join().unwrap();
        publisher.join().unwrap();
        // SAFETY: only this thread registers.
        unsafe { shared.0.register(Waker::noop()) };
        assert!(shared.0.is_registered(), "the takers have left");
    });
}

#[test]
fn of_two_takers_one_gets_the_waker() {
    explore(|| {
        let slot = Arc::new(WaiterSlot::new());
        // SAFETY: only this thread registers.
        unsafe { slot.register(Waker::noop()) };
        let other = slot.clone();
        let thread = thread::spawn(move || other.take().is_some());
        let here = slot.take().is_some();
        assert!(here ^ thread.join().unwrap());
    });
}

/// The taker copies the words while they are rewritten, for wakers of different kinds and owners.
#[test]
fn a_taker_never_gets_halves_of_two_wakers() {
    explore(|| {
        let slot = Arc::new(WaiterSlot::new());
        let owners = [0, 1].map(|_| StdArc::new(Forward(Waker::noop().clone())));
        let [first, last] = owners.clone().map(Waker::from);
        // SAFETY: only this thread registers.
        unsafe { slot.register(&first) };
        let taker = thread::spawn({
            let slot = slot.clone();
            move || slot.wake()
        });
        // SAFETY: only this thread registers.
        unsafe { slot.register(Waker::noop()) };
        // SAFETY: only this thread registers.
        unsafe { slot.register(&last) };
        assert!(taker.join().unwrap() || slot.is_registered(), "nobody took the last one");
        drop((slot, first, last));
        assert_eq!(owners.map(|owner| StdArc::strong_count(&owner)), [1, 1], "each dropped once");
    });
}
