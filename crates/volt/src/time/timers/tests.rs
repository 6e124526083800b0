//! Timers driven by hand: no scheduler, a paused clock.

use std::cell::Cell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll, Wake, Waker};

use super::super::{Duration, Instant, Sleep, scope, sleep, sleep_until, timeout, timeout_at};
use super::*;

mod due;

#[derive(Default)]
struct Count(AtomicUsize);

impl Count {
    fn new() -> (Arc<Self>, Waker) {
        let count = Arc::new(Self::default());
        (count.clone(), count.into())
    }

    fn get(&self) -> usize {
        self.0.load(Relaxed)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

const SECOND: Duration = Duration::from_secs(1);
const YEAR: Duration = Duration::from_secs(86_400 * 365);

fn paused() -> Timers {
    Timers::new(2, Clock::paused())
}

fn advance(timers: &Timers, by: Duration) -> usize {
    let clock = timers.clock();
    assert!(clock.advance_to(clock.now_ns() + by.as_nanos() as u64));
    timers.fire_due()
}

fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// Runs `test` inside a runtime's timers with a paused clock, as worker 0.
fn with_paused(test: impl FnOnce(&Timers)) {
    let timers = paused();
    scope::enter(&timers, Some(0), || test(&timers));
}

fn references(timers: &Timers) -> usize {
    timers.shards().map(|shard| shard.0.locked.with(|locked| locked.refs)).sum()
}

#[test]
fn sleep_fires_at_its_deadline_and_not_before() {
    with_paused(|timers| {
        let (count, waker) = Count::new();
        let mut timer = pin!(sleep(SECOND));
        assert!(poll(timer.as_mut(), &waker).is_pending());
        assert_eq!(advance(timers, SECOND - Duration::from_nanos(1)), 0);
        assert!(!timer.is_elapsed() && poll(timer.as_mut(), &waker).is_pending());
        assert_eq!(advance(timers, Duration::from_nanos(1)), 1);
        assert_eq!(count.get(), 1);
        assert!(timer.is_elapsed());
        assert!(poll(timer.as_mut(), &waker).is_ready());
        assert!(poll(timer, &waker).is_ready(), "stays ready");
    });
}

#[test]
fn sleep_counts_from_its_creation() {
    with_paused(|timers| {
        let (_, waker) = Count::new();
        let timer = sleep(SECOND);
        assert_eq!(timer.deadline(), Instant::now() + SECOND);
        advance(timers, SECOND);
        let mut timer = pin!(timer);
        // It was in the future when made, so it goes through the wheel, which has it fire at once.
        let first = poll(timer.as_mut(), &waker);
        timers.fire_due();
        assert!(first.is_ready() || poll(timer, &waker).is_ready());
    });
}

#[test]
fn zero_and_past_deadlines_are_ready_at_the_first_poll() {
    with_paused(|timers| {
        let (_, waker) = Count::new();
        assert!(poll(pin!(sleep(Duration::ZERO)), &waker).is_ready());
        let past = Instant::now();
        advance(timers, SECOND);
        assert!(poll(pin!(sleep_until(past)), &waker).is_ready());
        assert!(poll(pin!(sleep_until(Instant::now())), &waker).is_ready());
        assert_eq!(references(timers), 0);
    });
}

#[test]
fn a_dropped_sleep_wakes_nobody_and_holds_nothing() {
    with_paused(|timers| {
        let (count, waker) = Count::new();
        {
            let mut timer = pin!(sleep(SECOND));
            assert!(poll(timer.as_mut(), &waker).is_pending());
            assert_eq!((references(timers), Arc::strong_count(&count)), (1, 3));
        }
        assert_eq!((references(timers), Arc::strong_count(&count)), (0, 2));
        assert_eq!(timers.prepare_wait(), None);
        assert_eq!(advance(timers, SECOND * 2), 0);
        assert_eq!(count.get(), 0);
    });
}

#[test]
fn the_last_waker_is_the_one_that_is_woken() {
    with_paused(|timers| {
        let (first, waker) = Count::new();
        let (second, other) = Count::new();
        let mut timer = pin!(sleep(SECOND));
        assert!(poll(timer.as_mut(), &waker).is_pending());
        assert!(poll(timer.as_mut(), &other).is_pending());
        assert_eq!(Arc::strong_count(&first), 2, "the old waker is dropped");
        advance(timers, SECOND);
        assert_eq!((first.get(), second.get()), (0, 1));
    });
}

#[test]
fn far_future_deadlines_are_accepted() {
    with_paused(|timers| {
        let (_, waker) = Count::new();
        let mut timer = pin!(sleep(Duration::MAX));
        assert!(poll(timer.as_mut(), &waker).is_pending());
        assert!(timer.deadline() > Instant::now() + YEAR * 20);
        assert_eq!(advance(timers, YEAR * 29), 0);
        assert!(poll(pin!(timeout(Duration::MAX, timer)), &waker).is_pending());
    });
}

/// A paused clock reaches them all.
#[test]
fn of_waits_beyond_the_clock_each_is_30_years() {
    with_paused(|_| {
        let now = Instant::now();
        let longest = Duration::from_nanos(clock::LAST - now.to_ns());
        assert_eq!(sleep(longest).deadline(), now + longest);
        for beyond in [longest + Duration::from_nanos(1), YEAR * 400, YEAR * 600, Duration::MAX] {
            assert_eq!(sleep(beyond).deadline(), now + YEAR * 30, "{beyond:?}");
            let mut lazy = pin!(Sleep::lazy(beyond));
            assert_eq!(lazy.deadline(), now + YEAR * 30);
            assert!(poll(lazy.as_mut(), Waker::noop()).is_pending());
            assert_eq!(lazy.deadline(), now + YEAR * 30);
        }
    });
}

#[test]
fn reset_to_a_later_deadline_keeps_the_registration() {
    for placed in [false, true] {
        with_paused(|timers| {
            let (count, waker) = Count::new();
            let mut timer = pin!(sleep(SECOND));
            assert!(poll(timer.as_mut(), &waker).is_pending());
            if placed {
                timers.shards().for_each(|shard| _ = shard.next_exactly());
            }
            let later = Instant::now() + SECOND * 3;
            timer.as_mut().reset(later);
            assert_eq!(timer.deadline(), later);
            assert_eq!(advance(timers, SECOND * 2), 0);
            assert_eq!(count.get(), 0);
            assert_eq!(advance(timers, SECOND), 1, "without another poll");
            assert_eq!(count.get(), 1);
            assert!(poll(timer, &waker).is_ready());
        });
    }
}

#[test]
fn reset_to_an_earlier_deadline_fires_earlier() {
    with_paused(|timers| {
        let (count, waker) = Count::new();
        let mut timer = pin!(sleep(SECOND * 10));
        assert!(poll(timer.as_mut(), &waker).is_pending());
        timer.as_mut().reset(Instant::now() + SECOND);
        assert_eq!(advance(timers, SECOND), 1);
        assert_eq!(count.get(), 1);
        assert!(poll(timer, &waker).is_ready());
    });
}

/// Tokio's `reset_sleep_to_past`: without a look of the driver between.
#[test]
fn reset_to_the_past_wakes_and_is_ready_at_once() {
    with_paused(|timers| {
        let start = Instant::now();
        advance(timers, SECOND);
        for (deadline, later) in [(start, false), (start + SECOND, false), (start, true)] {
            let (count, waker) = Count::new();
            let mut timer = pin!(sleep(SECOND * 5));
            assert!(poll(timer.as_mut(), &waker).is_pending());
            if later {
                timer.as_mut().reset(start + SECOND * 10);
            }
            timer.as_mut().reset(deadline);
            assert_eq!((count.get(), Arc::strong_count(&count)), (1, 2), "woken by the reset");
            assert!(timer.is_elapsed() && timer.deadline() == deadline);
            assert_eq!(timers.prepare_wait(), None, "its old time wakes nobody");
            assert_eq!(timers.end_wait(false, None), 0);
            assert!(poll(timer.as_mut(), &waker).is_ready());
            // As one that has fired in the wheel.
            timer.as_mut().reset(Instant::now() + SECOND);
            assert!(poll(timer.as_mut(), &waker).is_pending());
            timer.as_mut().reset(Instant::now() + Duration::from_nanos(1));
            assert!(poll(timer.as_mut(), &waker).is_pending(), "not yet");
            assert_eq!((advance(timers, Duration::from_nanos(1)), count.get()), (1, 2));
        }
    });
}

/// A waker may drop other timers of the same shard.
#[test]
fn reset_to_the_past_wakes_outside_the_lock() {
    #[derive(Default)]
    struct DropsAnother(std::sync::Mutex<Option<Pin<Box<Sleep>>>>);
    impl Wake for DropsAnother {
        fn wake(self: Arc<Self>) {
            drop(self.0.lock().unwrap().take());
        }
    }
    with_paused(|timers| {
        let mut other = Box::pin(sleep(SECOND));
        assert!(poll(other.as_mut(), Waker::noop()).is_pending());
        let drops = Arc::new(DropsAnother(std::sync::Mutex::new(Some(other))));
        let mut timer = pin!(sleep(SECOND));
        assert!(poll(timer.as_mut(), &drops.into()).is_pending());
        timer.as_mut().reset(Instant::now());
        assert_eq!((references(timers), timers.prepare_wait()), (1, None));
    });
}

#[test]
fn reset_after_firing_starts_anew() {
    with_paused(|timers| {
        let (count, waker) = Count::new();
        let mut timer = pin!(sleep(SECOND));
        assert!(poll(timer.as_mut(), &waker).is_pending());
        advance(timers, SECOND);
        timer.as_mut().reset(Instant::now() + SECOND);
        assert!(!timer.is_elapsed());
        assert!(poll(timer.as_mut(), &waker).is_pending());
        advance(timers, SECOND);
        assert_eq!(count.get(), 2);
        assert!(poll(timer, &waker).is_ready());
    });
}

#[test]
fn a_timer_that_fired_while_it_was_moved_later_registers_again() {
    with_paused(|timers| {
        let (count, waker) = Count::new();
        let mut timer = pin!(sleep(SECOND));
        assert!(poll(timer.as_mut(), &waker).is_pending());
        // As if the firer had read the deadline just before `reset` changed it.
        let deadline = timer.deadline();
        timer.as_mut().reset(deadline + SECOND);
        timer.entry().set_deadline(deadline.to_ns());
        assert_eq!(advance(timers, SECOND), 1);
        timer.entry().set_deadline((deadline + SECOND).to_ns());
        assert!(!timer.is_elapsed());
        assert!(poll(timer.as_mut(), &waker).is_pending());
        advance(timers, SECOND);
        assert_eq!(count.get(), 2);
        assert!(poll(timer, &waker).is_ready());
    });
}

#[test]
fn timeout_of_a_ready_future_does_not_touch_the_timers() {
    let (_, waker) = Count::new();
    // No runtime: it would panic.
    assert_eq!(poll(pin!(timeout(SECOND, async { 1 })), &waker), Poll::Ready(Ok(1)));
}

#[test]
fn timeout_counts_from_the_first_pending_poll() {
    with_paused(|timers| {
        let (count, waker) = Count::new();
        let mut late = pin!(timeout(SECOND, std::future::pending::<()>()));
        let mut exact = pin!(timeout_at(Instant::now() + SECOND, std::future::pending::<()>()));
        advance(timers, SECOND * 5);
        assert!(poll(exact.as_mut(), &waker).is_ready());
        assert!(poll(late.as_mut(), &waker).is_pending());
        advance(timers, SECOND);
        assert_eq!(count.get(), 1);
        assert_eq!(poll(late, &waker).map(|r| r.is_err()), Poll::Ready(true));
    });
}

#[test]
fn prepare_wait_gives_the_exact_time_to_the_earliest_of_all_shards() {
    let timers = Timers::new(3, Clock::real());
    let (_, waker) = Count::new();
    let mut long = pin!(scope::enter(&timers, Some(0), || sleep(SECOND * 100)));
    let mut short = pin!(scope::enter(&timers, None, || sleep(SECOND * 10)));
    assert_eq!(timers.prepare_wait(), None);
    assert_eq!(timers.end_wait(false, None), 0);
    assert!(scope::enter(&timers, Some(0), || poll(long.as_mut(), &waker)).is_pending());
    assert!(scope::enter(&timers, None, || poll(short.as_mut(), &waker)).is_pending());
    let wait = timers.prepare_wait().expect("two timers");
    assert!(wait <= SECOND * 10 && wait > SECOND * 9, "{wait:?}");
    short.set(scope::enter(&timers, None, || sleep(SECOND * 1000)));
    let wait = timers.prepare_wait().expect("one timer");
    assert!(wait <= SECOND * 100 && wait > SECOND * 99, "a cancelled timer wakes nobody: {wait:?}");
}

/// By hand, a kernel that ends each wait 60 us too late, then one that ends it in time.
#[test]
fn waits_that_end_too_late_begin_sooner_and_end_when_the_timer_is_due() {
    let clock = Clock::real();
    let timers = Timers::new(1, clock.clone());
    let (_, waker) = Count::new();
    for round in 1..=50 {
        let due = clock.now_ns() + 500_000;
        let mut sleep = pin!(Sleep::due(due));
        assert!(scope::enter(&timers, Some(0), || poll(sleep.as_mut(), &waker)).is_pending());
        let wait = timers.prepare_wait().expect("a timer").as_nanos() as u64;
        let late = if round < 50 { 60_000 } else { 0 };
        let ends = clock.now_ns() + wait + late;
        assert!(round < 50 || wait < 480_000, "{wait}");
        while clock.now_ns() < ends {}
        let now = timers.wait_out(|| true);
        assert!(now.is_some_and(|now| now >= due), "it is {now:?} at {due}");
        assert_eq!(
            timers.end_wait(false, now),
            1,
            "it ended {} ns before",
            due as i64 - ends as i64
        );
        assert!(clock.now_ns() >= due && sleep.is_elapsed());
    }
}

/// Its end says nothing of the kernel.
#[test]
fn a_wait_that_an_earlier_timer_or_a_task_ended_teaches_nothing() {
    for (earlier, idle) in [(false, true), (true, true), (false, false)] {
        let clock = Clock::real();
        let timers = Timers::new(1, clock.clone());
        let (_, waker) = Count::new();
        let register = |after| {
            let mut sleep = Box::pin(Sleep::due(clock.now_ns() + after));
            assert!(scope::enter(&timers, Some(0), || poll(sleep.as_mut(), &waker)).is_pending());
            sleep
        };
        let _sleep = register(50_000_000);
        let wait = timers.prepare_wait().expect("a timer").as_nanos() as u64;
        let ends = clock.now_ns() + wait;
        let _earlier = earlier.then(|| register(500_000));
        while clock.now_ns() < ends + 10_000 {}
        let _ = timers.wait_out(|| idle);
        let rest = Duration::from_nanos(wait);
        assert_eq!(timers.lead_ns(rest) > 0, !earlier && idle, "{earlier} {idle}");
    }
}

/// The member has that to do, and waits for the timer no longer.
#[test]
fn an_earlier_timer_or_a_task_ends_the_rest_of_a_wait() {
    let clock = Clock::real();
    let register = |timers: &Timers, after| {
        let mut sleep = Box::pin(Sleep::due(clock.now_ns() + after));
        let mut poll = || poll(sleep.as_mut(), Waker::noop());
        assert!(scope::enter(timers, Some(0), &mut poll).is_pending());
        sleep
    };
    // False if the machine is busy, so that the rest is over before the last look.
    let ends_in_time = |earlier: bool| {
        let timers = Timers::new(1, clock.clone());
        let wait = |late, idle: &dyn Fn() -> bool| {
            let sleep = register(&timers, 500_000);
            let wait = timers.prepare_wait().expect("a timer").as_nanos() as u64;
            let ends = clock.now_ns() + wait + late;
            while clock.now_ns() < ends {}
            let _ = timers.wait_out(idle);
            let in_time = !sleep.is_elapsed();
            timers.end_wait(false, None);
            in_time
        };
        for _ in 0..50 {
            wait(60_000, &|| true);
        }
        let (looks, first) = (Cell::new(0), Cell::new(None));
        let in_time = wait(0, &|| {
            looks.set(looks.get() + 1);
            if earlier && looks.get() == 2 {
                first.set(Some(register(&timers, 0)));
            }
            earlier || looks.get() < 3
        });
        assert!(!in_time || looks.get() == if earlier { 2 } else { 3 }, "{}", looks.get());
        in_time
    };
    for earlier in [false, true] {
        assert!((0..50).any(|_| ends_in_time(earlier)), "the rest was waited out");
    }
}

/// There is no such time on a clock that stands: a timer for it is pending for ever, and does not move the clock.
#[test]
fn a_paused_clock_does_not_advance_beyond_its_end() {
    let clock = Clock::paused();
    let timers = Timers::new(1, clock.clone());
    let (_, waker) = Count::new();
    let start = clock.now_ns();
    for (at, fires) in [(clock::LAST + 1, 0), (NEVER - 1, 0), (clock::LAST, 1)] {
        let mut sleep = pin!(Sleep::due(at));
        assert!(scope::enter(&timers, Some(0), || poll(sleep.as_mut(), &waker)).is_pending());
        assert_eq!(timers.prepare_wait(), (fires == 1).then_some(Duration::ZERO));
        assert_eq!((timers.end_wait(false, None), timers.auto_advance()), (0, fires));
        assert_eq!(clock.now_ns(), if fires == 1 { at } else { start });
    }
}

/// After more wake-ups than should be.
#[test]
fn prepare_wait_joins_timers_of_all_shards_but_waits_for_no_lone_one() {
    const AFTER: u64 = 1_000_000_000;
    for (second, joins) in [(Some(0), true), (Some(1), true), (None, false)] {
        let clock = Clock::real();
        let timers = Timers::new(2, clock.clone());
        timers.shared.wakes.wake_at(NEVER - 1, |until| until);
        timers.shared.wakes.count();
        let (_, waker) = Count::new();
        let start = clock.now_ns() + AFTER;
        let mut sleeps = [0, 50_000, 500_000]
            .map(|after| Box::pin(Sleep::until(Instant::from_ns(start + after))));
        for (shard, sleep) in [Some(0), second, Some(1)].into_iter().zip(&mut sleeps) {
            if let Some(shard) = shard {
                assert!(
                    scope::enter(&timers, Some(shard), || poll(sleep.as_mut(), &waker))
                        .is_pending()
                );
            }
        }
        let before = clock.now_ns();
        let wait = timers.prepare_wait().expect("there is a timer").as_nanos() as u64;
        let after = clock.now_ns();
        let wake_at = start + if joins { 50_000 } else { 0 };
        assert!((before..=after).contains(&(wake_at - wait)), "{second:?}: {wait} ns");
        // One that comes later than the first wakes nobody.
        assert_eq!(timers.shared.sleeping_until.load(Relaxed), start);
        assert_eq!(timers.end_wait(false, None), 0);
    }
}

#[test]
fn an_earlier_timer_wakes_the_waiter_once() {
    let timers = Timers::new(2, Clock::real());
    let unparked = Arc::new(AtomicUsize::new(0));
    let counter = unparked.clone();
    timers.set_unpark(move || {
        counter.fetch_add(1, Relaxed);
    });
    let (_, waker) = Count::new();
    let register = |after: Duration| {
        let mut timer = Box::pin(scope::enter(&timers, None, || sleep(after)));
        assert!(scope::enter(&timers, None, || poll(timer.as_mut(), &waker)).is_pending());
        timer
    };
    let _a = register(SECOND * 50);
    assert_eq!(unparked.load(Relaxed), 0, "nobody waits");
    timers.prepare_wait();
    let _b = register(SECOND * 60);
    assert_eq!(unparked.load(Relaxed), 0, "a later one needs no wake-up");
    let _c = register(SECOND * 40);
    let _d = register(SECOND * 30);
    assert_eq!(unparked.load(Relaxed), 1, "one wake-up is enough");
    assert_eq!(timers.end_wait(false, None), 0);
    let _e = register(SECOND * 20);
    assert_eq!(unparked.load(Relaxed), 1);
    timers.prepare_wait();
    let mut f = register(SECOND * 25);
    assert_eq!(unparked.load(Relaxed), 1);
    f.as_mut().reset(Instant::now() + SECOND);
    assert_eq!(unparked.load(Relaxed), 2, "so does a reset");
}

#[test]
fn a_paused_clock_advances_by_itself_from_deadline_to_deadline() {
    with_paused(|timers| {
        let (count, waker) = Count::new();
        let start = Instant::now();
        let mut sleeps: Vec<_> = (1..=3).map(|i| Box::pin(sleep(SECOND * 3600 * i))).collect();
        for timer in &mut sleeps {
            assert!(poll(timer.as_mut(), &waker).is_pending());
        }
        assert_eq!(timers.prepare_wait(), Some(Duration::ZERO));
        assert_eq!(timers.end_wait(false, None), 0);
        assert_eq!(timers.fire_due(), 0);
        for i in 1..=3 {
            assert_eq!(timers.auto_advance(), 1);
            assert_eq!(start.elapsed(), SECOND * 3600 * i);
            assert_eq!(count.get(), i as usize);
        }
        assert_eq!(timers.auto_advance(), 0);
        assert_eq!(timers.prepare_wait(), None);
    });
}

/// They share a slot, in which a deadline is not searched for elsewhere; none of them is at its start, mostly.
#[test]
fn a_paused_clock_advances_to_a_deadline_of_many() {
    for many in [16, 17, 1000] {
        with_paused(|timers| {
            let (count, waker) = Count::new();
            let start = Instant::now();
            let at = |part| SECOND + Duration::from_nanos(part);
            let mut sleeps: Vec<_> = (0..2 * many).map(|i| Box::pin(sleep(at(i / many)))).collect();
            for timer in &mut sleeps {
                assert!(poll(timer.as_mut(), &waker).is_pending());
            }
            for part in 0..2 {
                assert_eq!(timers.auto_advance(), many as usize);
                assert_eq!((start.elapsed(), count.get() as u64), (at(part), (part + 1) * many));
            }
        });
    }
}

#[test]
fn a_resumed_clock_runs_on_from_where_it_stood() {
    let clock = Clock::pausable();
    assert!(!clock.resume() && !clock.advance_to(7));
    assert!(clock.pause() && !clock.pause());
    let stopped = clock.now_ns();
    assert_eq!(clock.now_ns(), stopped);
    let ahead = stopped + 3_600_000_000_000;
    assert!(clock.advance_to(ahead));
    assert!(clock.advance_to(stopped), "it does not go back");
    assert_eq!(clock.now_ns(), ahead);
    assert!(clock.resume());
    let now = clock.now_ns();
    assert!(now >= ahead && now < ahead + 60_000_000_000, "{now} {ahead}");
    assert!(!Clock::real().pause());
}

#[test]
fn shutdown_wakes_the_sleepers_and_they_panic() {
    let timers = paused();
    let (count, waker) = Count::new();
    let mut timer = pin!(scope::enter(&timers, Some(1), || sleep(SECOND)));
    let mut fresh = pin!(scope::enter(&timers, Some(1), || sleep(SECOND)));
    assert!(scope::enter(&timers, Some(1), || poll(timer.as_mut(), &waker)).is_pending());
    timers.shutdown();
    assert_eq!(count.get(), 1);
    assert_eq!(Arc::strong_count(&count), 2, "the waker is gone");
    let message = |sleep: Pin<&mut Sleep>| {
        let poll = || scope::enter(&timers, Some(1), || poll(sleep, &waker));
        let panic = catch_unwind(AssertUnwindSafe(poll)).expect_err("it panics");
        *panic.downcast::<&str>().expect("a message")
    };
    assert!(message(timer.as_mut()).contains("shut down"));
    assert!(message(fresh.as_mut()).contains("shut down"));
    drop(timers);
    // Both outlive the timers, and are dropped now; one is even reset.
    timer.reset(Instant::now());
}

#[test]
fn without_a_runtime_the_panic_names_the_call() {
    let message = |call: &dyn Fn()| {
        let panic = catch_unwind(AssertUnwindSafe(call)).expect_err("it panics");
        *panic.downcast::<String>().expect("a message")
    };
    assert!(message(&|| drop(sleep(SECOND))).starts_with("`time::sleep` needs a Volt runtime"));
    let (_, waker) = Count::new();
    let pending = || drop(poll(pin!(timeout(SECOND, std::future::pending::<()>())), &waker));
    assert!(message(&pending).starts_with("`time::timeout` needs a Volt runtime"));
}

#[test]
fn a_panicking_waker_does_not_stop_the_others() {
    struct Bad;
    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            panic!("a waker that panics, on purpose");
        }
    }
    with_paused(|timers| {
        let (count, waker) = Count::new();
        let bad = Waker::from(Arc::new(Bad));
        let mut sleeps: Vec<_> = (0..40).map(|_| Box::pin(sleep(SECOND))).collect();
        for (i, timer) in sleeps.iter_mut().enumerate() {
            let waker = if i % 20 == 3 { &bad } else { &waker };
            assert!(poll(timer.as_mut(), waker).is_pending());
        }
        assert_eq!(advance(timers, SECOND), 40);
        assert_eq!(count.get(), 38);
    });
}

#[test]
fn wakers_may_drop_and_register_timers() {
    use volt_sync::internal::primitive::Mutex;
    /// Woken, it drops another timer of the same shard and registers a new one.
    struct Chain(Mutex<Vec<Pin<Box<Sleep>>>>, Mutex<Vec<Pin<Box<Sleep>>>>, Waker);
    impl Wake for Chain {
        fn wake(self: Arc<Self>) {
            self.0.lock().unwrap().pop();
            let mut next = Box::pin(sleep(SECOND));
            assert!(poll(next.as_mut(), &self.2).is_pending());
            self.1.lock().unwrap().push(next);
        }
    }
    with_paused(|timers| {
        let (count, waker) = Count::new();
        let chain = Arc::new(Chain(Mutex::default(), Mutex::default(), waker));
        for _ in 0..20 {
            let mut victim = Box::pin(sleep(SECOND * 2));
            assert!(poll(victim.as_mut(), &chain.clone().into()).is_pending());
            chain.0.lock().unwrap().push(victim);
        }
        let mut first: Vec<_> = (0..20).map(|_| Box::pin(sleep(SECOND))).collect();
        for timer in &mut first {
            assert!(poll(timer.as_mut(), &chain.clone().into()).is_pending());
        }
        assert_eq!(advance(timers, SECOND), 20);
        assert_eq!(advance(timers, SECOND), 20);
        assert_eq!(count.get(), 20);
    });
}

#[test]
fn timers_fire_from_many_threads_exactly_once() {
    const TIMERS: usize = 2_000;
    let timers = Timers::new(3, Clock::real());
    let done = AtomicUsize::new(0);
    let counts = volt_sync::internal::primitive::thread::scope(|s| {
        let threads = [0, 1].map(|worker| {
            let (timers, done) = (&timers, &done);
            s.spawn(move || {
                let (count, waker) = Count::new();
                let start = Instant::now();
                let mut pending: Vec<_> = (0..TIMERS)
                    .map(|i| {
                        let after = Duration::from_micros((i * 7 % 3_000) as u64);
                        let mut timer =
                            Box::pin(scope::enter(timers, Some(worker), || sleep(after)));
                        let poll =
                            scope::enter(timers, Some(worker), || poll(timer.as_mut(), &waker));
                        (timer, poll.is_ready())
                    })
                    .collect();
                let ready = pending.iter().filter(|(_, ready)| *ready).count();
                // Every third one is cancelled, perhaps while it fires on the other thread.
                let mut index = 0;
                pending.retain(|_| {
                    index += 1;
                    index % 3 != 0
                });
                done.fetch_add(1, Relaxed);
                while !pending.iter().all(|(timer, _)| timer.is_elapsed()) {
                    timers.fire_due();
                    assert!(start.elapsed() < SECOND * 30, "timers are lost");
                }
                for (timer, _) in &mut pending {
                    let fired = scope::enter(timers, Some(worker), || {
                        loop {
                            match poll(timer.as_mut(), &waker) {
                                Poll::Ready(()) => break timer.deadline() <= Instant::now(),
                                Poll::Pending => {
                                    timers.fire_due();
                                }
                            }
                        }
                    });
                    assert!(fired, "early");
                }
                (count, ready, pending.len())
            })
        });
        threads.map(|thread| thread.join().unwrap())
    });
    // Only now: the other thread may have been about to wake some that had fired.
    for (count, ready, kept) in counts {
        assert!((kept..=TIMERS).contains(&(count.get() + ready)), "{} {ready}", count.get());
    }
    assert_eq!(references(&timers), 0);
}
