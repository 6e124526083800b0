//! Loom models. The clock is virtual and set by the models; the runtime's thread-locals are not
//! used, since loom's threads share those of one thread: the models register by hand.

use std::pin::{Pin, pin};
use std::sync::atomic::AtomicUsize as Counter;
use std::task::{Context, Poll, Wake};

use volt_sync::internal::primitive::{AtomicBool, UnsafeCell, explore, thread};

use super::super::entry::NEW;
use super::super::sleep::Sleep;
use super::*;

/// Counts its wake-ups. Not a loom atomic: it is read when the threads have ended.
#[derive(Default)]
struct Count(Counter);

impl Count {
    fn new() -> (std::sync::Arc<Self>, Waker) {
        let count = std::sync::Arc::new(Self::default());
        (count.clone(), count.into())
    }

    fn get(&self) -> usize {
        self.0.load(Relaxed)
    }
}

impl Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Timers with one shard, and the time at which their clock stands: a timer for it is linked, as nobody has looked yet.
///
/// That is just after a time at which slots of all but the highest levels begin, so that in all executions the same timers
/// share a slot.
fn timers() -> (Arc<Timers>, u64) {
    let clock = Clock::paused();
    assert!(clock.advance_to((clock.now_ns() | ((1 << 50) - 1)) + 1));
    let timers = Timers::new(1, clock);
    let now = timers.clock().now_ns() + 1;
    assert!(timers.clock().advance_to(now));
    (Arc::new(timers), now)
}

fn try_register(timers: &Timers, sleep: Pin<&mut Sleep>, waker: &Waker) -> Registered {
    // SAFETY: owned, pinned, not registered; `Sleep` calls `forget` when it is dropped; the shard lives as long as `timers`.
    unsafe { Shard::register(timers.shards[0], sleep.entry(), waker) }
}

fn register(timers: &Timers, sleep: Pin<&mut Sleep>, waker: &Waker) -> bool {
    try_register(timers, sleep, waker) == Registered::Linked
}

fn poll(sleep: Pin<&mut Sleep>, waker: &Waker) -> Poll<()> {
    sleep.poll_elapsed("model", &mut Context::from_waker(waker))
}

fn references(timers: &Timers) -> usize {
    timers.shards().map(|shard| shard.0.locked.with(|locked| locked.refs)).sum()
}

/// Does that on another thread.
fn beside<T: 'static>(timers: &Arc<Timers>, act: fn(&Timers) -> T) -> thread::JoinHandle<T> {
    let timers = timers.clone();
    thread::spawn(move || act(&timers))
}

#[test]
fn lock_orders_the_guarded_value() {
    explore(|| {
        let lock = Arc::new(Lock::new(0));
        let other = lock.clone();
        let thread = thread::spawn(move || other.with(|value| *value += 1));
        lock.with(|value| *value += 1);
        thread.join().unwrap();
        assert_eq!(lock.with(|value| *value), 2);
    });
}

/// A thread registers a timer at 5 us while another is about to wait.
fn waiter_against_registrar(pending: Option<u64>) {
    let (timers, now) = timers();
    let unparked = Arc::new(AtomicBool::new(false));
    let flag = unparked.clone();
    timers.set_unpark(move || flag.store(true, Relaxed));
    let (_, waker) = Count::new();
    let pending = pending.map(|after| {
        let mut sleep = Box::pin(Sleep::at(NEW, now + after));
        assert!(register(&timers, sleep.as_mut(), &waker));
        sleep
    });
    let registrar = {
        let timers = timers.clone();
        thread::spawn(move || {
            let (_, waker) = Count::new();
            let mut sleep = Box::pin(Sleep::at(NEW, now + 5_000));
            assert!(register(&timers, sleep.as_mut(), &waker));
            sleep
        })
    };
    let until = timers.publish_sleep();
    let sleep = registrar.join().unwrap();
    assert!(
        until.is_some_and(|until| until <= now + 5_000) || unparked.load(Relaxed),
        "sleeps too long"
    );
    drop((sleep, pending));
}

/// With no timer before, the waiter takes no lock: only the fences order the two.
#[test]
fn first_timer_is_seen_or_wakes_the_waiter() {
    explore(|| waiter_against_registrar(None));
}

#[test]
fn earlier_timer_is_seen_or_wakes_the_waiter() {
    explore(|| waiter_against_registrar(Some(10_000)));
}

#[test]
fn of_two_earlier_timers_one_wakes_the_waiter_or_both_are_seen() {
    explore(|| {
        let (timers, now) = timers();
        let unparked = Arc::new(AtomicBool::new(false));
        let flag = unparked.clone();
        timers.set_unpark(move || flag.store(true, Relaxed));
        let threads: Vec<_> = [5_000, 6_000]
            .into_iter()
            .map(|after| {
                let timers = timers.clone();
                thread::spawn(move || {
                    let (_, waker) = Count::new();
                    let mut sleep = Box::pin(Sleep::at(NEW, now + after));
                    assert!(register(&timers, sleep.as_mut(), &waker));
                    sleep
                })
            })
            .collect();
        let until = timers.publish_sleep();
        let sleeps: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(
            until.is_some_and(|until| until <= now + 5_000) || unparked.load(Relaxed),
            "sleeps too long"
        );
        drop(sleeps);
    });
}

#[test]
fn fired_state_carries_what_the_firer_did() {
    explore(|| {
        let (timers, now) = timers();
        let (_, waker) = Count::new();
        let mut sleep = pin!(Sleep::at(NEW, now));
        assert!(register(&timers, sleep.as_mut(), &waker));
        let cell = Arc::new(UnsafeCell::new(0));
        let firer = {
            let (timers, cell) = (timers.clone(), cell.clone());
            thread::spawn(move || {
                // SAFETY: read only after the timer has fired.
                cell.with_mut(|value| unsafe { *value = 1 });
                timers.fire_due();
            })
        };
        if poll(sleep.as_mut(), &waker).is_ready() {
            // SAFETY: the firer wrote before it fired.
            assert_eq!(cell.with(|value| unsafe { *value }), 1);
        }
        firer.join().unwrap();
        assert!(poll(sleep, &waker).is_ready());
    });
}

#[test]
fn cancel_against_fire_drops_the_waker_once() {
    explore(|| {
        let (timers, now) = timers();
        let (count, waker) = Count::new();
        let mut kept = pin!(Sleep::at(NEW, now));
        assert!(register(&timers, kept.as_mut(), &waker));
        let mut cancelled = Box::pin(Sleep::at(NEW, now));
        assert!(register(&timers, cancelled.as_mut(), &waker));
        let firer = beside(&timers, Timers::fire_due);
        drop(cancelled);
        let fired = firer.join().unwrap();
        assert!((1..=2).contains(&fired) && count.get() == fired);
        assert_eq!(std::sync::Arc::strong_count(&count), 2);
        assert!(poll(kept, &waker).is_ready());
        assert_eq!(references(&timers), 1);
    });
}

#[test]
fn two_firers_fire_each_timer_once() {
    explore(|| {
        let (timers, now) = timers();
        let (count, waker) = Count::new();
        let mut sleeps: Vec<_> = (0..3).map(|_| Box::pin(Sleep::at(NEW, now))).collect();
        for sleep in &mut sleeps {
            assert!(register(&timers, sleep.as_mut(), &waker));
        }
        let other = beside(&timers, Timers::fire_due);
        let fired = timers.fire_due();
        assert_eq!(fired + other.join().unwrap(), 3);
        assert_eq!(count.get(), 3);
    });
}

#[test]
fn the_waker_of_the_last_pending_poll_is_woken() {
    explore(|| {
        let (timers, now) = timers();
        let (first, waker) = Count::new();
        let (second, other) = Count::new();
        let mut sleep = pin!(Sleep::at(NEW, now));
        assert!(register(&timers, sleep.as_mut(), &waker));
        let firer = beside(&timers, Timers::fire_due);
        let pending = poll(sleep.as_mut(), &other).is_pending();
        firer.join().unwrap();
        assert_eq!(second.get(), usize::from(pending));
        assert_eq!(first.get(), usize::from(!pending));
        assert!(poll(sleep, &other).is_ready());
        assert_eq!(std::sync::Arc::strong_count(&first), 2);
    });
}

#[test]
fn reset_to_later_against_fire_loses_no_wake_up() {
    explore(|| {
        let (timers, now) = timers();
        let (count, waker) = Count::new();
        let mut sleep = pin!(Sleep::at(NEW, now));
        assert!(register(&timers, sleep.as_mut(), &waker));
        let firer = beside(&timers, Timers::fire_due);
        sleep.as_mut().reset_ns(now + 9_000);
        firer.join().unwrap();
        let woken = count.get();
        // The task polls when it was woken; otherwise the new deadline wakes it.
        if woken == 1 {
            assert!(poll(sleep.as_mut(), &waker).is_pending());
        }
        assert!(timers.clock().advance_to(now + 8_999));
        assert_eq!(timers.fire_due(), 0, "early");
        assert!(timers.clock().advance_to(now + 9_000));
        assert_eq!(timers.fire_due(), 1);
        assert_eq!(count.get(), woken + 1);
        assert!(poll(sleep, &waker).is_ready());
    });
}

/// The firer has another timer to fire.
#[test]
fn reset_to_earlier_against_fire_fires_once() {
    explore(|| {
        let (timers, now) = timers();
        let (count, waker) = Count::new();
        let (other, others_waker) = Count::new();
        let mut due = pin!(Sleep::at(NEW, now));
        assert!(register(&timers, due.as_mut(), &others_waker));
        let mut sleep = pin!(Sleep::at(NEW, now + 90_000));
        assert!(register(&timers, sleep.as_mut(), &waker));
        let firer = beside(&timers, Timers::fire_due);
        sleep.as_mut().reset_ns(now + 5_000);
        assert_eq!(firer.join().unwrap(), 1);
        assert!(timers.clock().advance_to(now + 4_999));
        assert_eq!(timers.fire_due(), 0, "early");
        assert!(timers.clock().advance_to(now + 5_000));
        assert_eq!((timers.fire_due(), count.get(), other.get()), (1, 1, 1));
        assert!(poll(sleep, &waker).is_ready());
    });
}

/// Whoever is first under the lock wakes; the owner need not wait for the other.
fn reset_to_the_past_against(other: fn(&Timers)) {
    explore(move || {
        let (timers, now) = timers();
        let (count, waker) = Count::new();
        let mut sleep = pin!(Sleep::at(NEW, now));
        assert!(register(&timers, sleep.as_mut(), &waker));
        let thread = beside(&timers, other);
        sleep.as_mut().reset_ns(now - 1);
        assert!(poll(sleep.as_mut(), &waker).is_ready());
        thread.join().unwrap();
        assert_eq!((count.get(), timers.fire_due(), timers.earliest()), (1, 0, NEVER));
        assert_eq!(std::sync::Arc::strong_count(&count), 2);
    });
}

#[test]
fn reset_to_the_past_against_fire_is_ready_at_once_and_wakes_once() {
    reset_to_the_past_against(|timers| assert!(timers.fire_due() <= 1));
}

#[test]
fn reset_to_the_past_against_shutdown_is_ready_at_once_and_wakes_once() {
    reset_to_the_past_against(Timers::shutdown);
}

#[test]
fn shutdown_against_cancel_and_register_frees_the_shard_once() {
    explore(|| {
        let timers = Timers::new(1, Clock::paused());
        let now = timers.clock().now_ns();
        let (count, waker) = Count::new();
        let mut one = Box::pin(Sleep::at(NEW, now + 1));
        let mut two = Box::pin(Sleep::at(NEW, now + 1));
        assert!(register(&timers, one.as_mut(), &waker));
        assert!(register(&timers, two.as_mut(), &waker));
        let owner = thread::spawn(move || {
            drop(two);
            drop(timers);
        });
        one.as_mut().reset_ns(now + 2);
        drop(one);
        owner.join().unwrap();
        assert!(count.get() <= 1);
        assert_eq!(std::sync::Arc::strong_count(&count), 2);
    });
}

#[test]
fn register_against_shutdown_is_woken_or_refused() {
    explore(|| {
        let (timers, now) = timers();
        let (count, waker) = Count::new();
        let mut sleep = Box::pin(Sleep::at(NEW, now + 1));
        let closer = beside(&timers, Timers::shutdown);
        let registered = register(&timers, sleep.as_mut(), &waker);
        closer.join().unwrap();
        assert_eq!(count.get(), usize::from(registered));
        assert_eq!(sleep.entry().state(), SHUTDOWN);
        drop(sleep);
        assert_eq!(references(&timers), 0);
    });
}

/// The time that a firer has seen is known to whoever sees that a timer has fired; a second firer, who looked earlier
/// and notes that later, does not take it back.
#[test]
fn who_sees_a_fired_timer_finds_all_others_due_by_then() {
    explore(|| {
        let (timers, before) = timers();
        let now = before + 1;
        assert!(timers.clock().advance_to(now));
        let (_, waker) = Count::new();
        let mut fires = pin!(Sleep::at(NEW, now));
        assert!(register(&timers, fires.as_mut(), &waker));
        let firer = beside(&timers, Timers::fire_due);
        let earlier = beside(&timers, move |timers| {
            timers.shared.coarse.note(timers.clock().now_ns() - 1, 0)
        });
        if poll(fires.as_mut(), &waker).is_ready() {
            let mut due = pin!(Sleep::at(NEW, now));
            assert_eq!(try_register(&timers, due.as_mut(), &waker), Registered::Due);
            assert!(poll(due, &waker).is_ready());
        }
        let mut later = pin!(Sleep::at(NEW, now + 1));
        assert!(register(&timers, later.as_mut(), &waker), "early");
        firer.join().unwrap();
        earlier.join().unwrap();
    });
}

/// "Unknown" is no time, whoever asks for it first.
#[test]
fn after_a_wait_without_timers_those_who_register_look_at_the_clock() {
    explore(|| {
        let (timers, now) = timers();
        let waiter = beside(&timers, |timers| timers.end_wait(false, None));
        let other = {
            let timers = timers.clone();
            thread::spawn(move || {
                let mut later = Box::pin(Sleep::at(NEW, now + 1));
                assert!(register(&timers, later.as_mut(), Waker::noop()), "early");
                later
            })
        };
        let mut due = pin!(Sleep::at(NEW, now));
        let linked = register(&timers, due.as_mut(), Waker::noop());
        let fired = waiter.join().unwrap();
        let later = other.join().unwrap();
        assert_eq!(fired + timers.fire_due(), usize::from(linked));
        assert!(poll(due, Waker::noop()).is_ready());
        drop(later);
    });
}
