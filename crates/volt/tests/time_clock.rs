//! The paused clock, and intervals in exact time.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use std::task::Poll;
use volt::sync::internal::primitive::Mutex;

use volt::runtime::Builder;
use volt::task::{LocalSet, spawn_local, yield_now};
use volt::time::{
    Duration, Instant, Interval, MissedTickBehavior, advance, interval, interval_at, pause, resume,
    sleep, sleep_until, timeout,
};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);
/// What a wait for ever takes.
const YEARS: Duration = Duration::from_secs(86_400 * 365 * 30);

fn paused<F: Future>(future: F) -> F::Output {
    Builder::new_current_thread().start_paused(true).build().unwrap().block_on(future)
}

/// As requests that have all begun at once, with a time-out each, and another one for all of it.
#[test]
fn paused_time_passes_for_many_that_wait_until_the_same_time() {
    paused(async {
        let start = Instant::now();
        let wait = |seconds| volt::spawn(sleep(Duration::from_secs(seconds)));
        let tasks: Vec<_> = (0..100).map(|i| wait(1 + i / 50)).collect();
        for (i, task) in tasks.into_iter().enumerate() {
            task.await.unwrap();
            assert_eq!(start.elapsed(), Duration::from_secs(1 + i as u64 / 50));
        }
    });
}

/// The kernel has been told of the next ticks by then, and its timers go off meanwhile.
#[test]
fn ticks_go_on_after_the_clock_stood_still_in_the_middle_of_a_wait() {
    Builder::new_current_thread().build().unwrap().block_on(async {
        for _ in 0..10 {
            let mut ticks = interval(MS);
            for _ in 0..10 {
                ticks.tick().await;
            }
            let (tell, told) = volt::sync::oneshot::channel();
            let thread = std::thread::spawn(move || {
                std::thread::sleep(MS / 2);
                // The tick may have been sooner.
                let _ = tell.send(());
            });
            volt::select! {
                biased;
                _ = ticks.tick() => {}
                _ = told => {}
            }
            thread.join().unwrap();
            pause();
            std::thread::sleep(5 * MS);
            resume();
            for _ in 0..3 {
                ticks.tick().await;
            }
        }
    });
}

#[test]
fn an_idle_runtime_jumps_to_the_next_deadline() {
    let real = std::time::Instant::now();
    paused(async {
        let start = Instant::now();
        sleep(24 * HOUR).await;
        assert_eq!(start.elapsed(), 24 * HOUR, "to the nanosecond");
        assert!(timeout(HOUR, sleep(2 * HOUR)).await.is_err());
        assert_eq!(start.elapsed(), 25 * HOUR);
        assert_eq!(timeout(HOUR, sleep(HOUR / 2)).await, Ok(()));
        assert_eq!(start.elapsed(), 25 * HOUR + HOUR / 2);
    });
    assert!(real.elapsed() < Duration::from_secs(60));
}

#[test]
fn tasks_wake_in_the_order_of_their_deadlines() {
    paused(async {
        let order = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = [70, 3, 50_000, 1, 900, 2, 400]
            .map(|after| {
                let order = order.clone();
                volt::spawn(async move {
                    sleep(after * MS).await;
                    order.lock().unwrap().push(after);
                })
            })
            .into();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [1, 2, 3, 70, 400, 900, 50_000]);
    });
}

#[test]
fn advance_fires_what_is_due_then() {
    paused(async {
        let start = Instant::now();
        let task = volt::spawn(async {
            sleep(10 * MS).await;
            Instant::now()
        });
        advance(Duration::ZERO).await; // It registers its timer.
        advance(9 * MS).await;
        assert!(!task.is_finished());
        assert_eq!(start.elapsed(), 9 * MS);
        advance(5 * MS).await;
        assert!(task.is_finished());
        assert_eq!(task.await.unwrap() - start, 14 * MS);
    });
}

/// A runtime that looks around often, as after some turns, does so while only some of them have run.
#[test]
fn advance_lets_all_tasks_run_whose_timers_fired() {
    paused(async {
        let done = Arc::new(Mutex::new(0));
        for _ in 0..24 {
            let done = done.clone();
            volt::spawn(async move {
                loop {
                    sleep(MS).await;
                    *done.lock().unwrap() += 1;
                }
            });
        }
        advance(Duration::ZERO).await; // They register their timers.
        for round in 1..=50 {
            advance(MS).await;
            assert_eq!(*done.lock().unwrap(), 24 * round, "in round {round}");
        }
    });
}

/// Also if they are more than a queue has room for, and whoever advances the clock is a task.
#[test]
fn advance_lets_many_tasks_run() {
    async fn run(count: usize) {
        let done = Arc::new(Mutex::new(0));
        for _ in 0..count {
            let done = done.clone();
            volt::spawn(async move {
                sleep(MS).await;
                *done.lock().unwrap() += 1;
            });
        }
        advance(Duration::ZERO).await;
        advance(MS).await;
        assert_eq!(*done.lock().unwrap(), count);
    }
    for count in [1, 24, 250, 300, 1000, 5000] {
        paused(run(count));
        paused(async { volt::spawn(run(count)).await.unwrap() });
        let local = LocalSet::new();
        paused(local.run_until(run(count)));
        paused(local.run_until(async { spawn_local(run(count)).await.unwrap() }));
    }
}

#[test]
fn advance_lets_the_tasks_of_a_local_set_run() {
    async fn run() {
        let done = std::rc::Rc::new(std::cell::Cell::new(0));
        for _ in 0..200 {
            let done = done.clone();
            spawn_local(async move {
                sleep(MS).await;
                done.set(done.get() + 1);
            });
        }
        advance(Duration::ZERO).await;
        advance(MS).await;
        assert_eq!(done.get(), 200);
    }
    let local = LocalSet::new();
    paused(local.run_until(run()));
    paused(local.run_until(async { spawn_local(run()).await.unwrap() }));
}

/// It waits for what is queued, not for all that goes on.
#[test]
fn advance_ends_beside_tasks_that_never_rest() {
    paused(async {
        for _ in 0..3 {
            volt::spawn(async {
                loop {
                    yield_now().await;
                }
            });
        }
        for _ in 0..100 {
            advance(MS).await;
        }
        let local = LocalSet::new();
        let task = local.run_until(async { spawn_local(async { advance(MS).await }).await });
        task.await.unwrap();
    });
    paused(async {
        volt::spawn(async {
            loop {
                yield_now().await;
            }
        });
        advance(MS).await;
    });
}

/// Their differences, by the paused clock too: an earlier one is no time before a later one, or none.
#[test]
fn instants_are_subtracted() {
    paused(async {
        let start = Instant::now();
        sleep(3 * HOUR).await;
        let end = Instant::now();
        assert_eq!(end.checked_duration_since(start), Some(3 * HOUR));
        assert_eq!(start.checked_duration_since(end), None);
        assert_eq!(end.checked_duration_since(end), Some(Duration::ZERO));
        assert_eq!(end.saturating_duration_since(start), 3 * HOUR);
        assert_eq!(start.saturating_duration_since(end), Duration::ZERO);
    });
}

#[test]
fn pause_and_resume() {
    Builder::new_current_thread().build().unwrap().block_on(async {
        pause();
        let start = Instant::now();
        std::thread::sleep(3 * MS);
        assert_eq!(start.elapsed(), Duration::ZERO);
        sleep(HOUR).await;
        assert_eq!(start.elapsed(), HOUR);
        resume();
        sleep(2 * MS).await;
        assert!(start.elapsed() >= HOUR + 2 * MS && start.elapsed() < 2 * HOUR);
        // Pausing again goes on from there.
        pause();
        let start = Instant::now();
        sleep(HOUR).await;
        assert_eq!(start.elapsed(), HOUR);
    });
}

#[test]
fn misuse_of_the_clock_panics() {
    let panics = |f: fn()| {
        let rt = Builder::new_current_thread().build().unwrap();
        let panic = catch_unwind(AssertUnwindSafe(|| rt.block_on(async { f() }))).unwrap_err();
        match panic.downcast::<&str>() {
            Ok(message) => message.to_string(),
            Err(panic) => *panic.downcast::<String>().unwrap(),
        }
    };
    let says = |f: fn(), what: &str, advice: &str| {
        let message = panics(f);
        assert!(message.contains(what) && message.contains(advice), "{message}");
    };
    says(resume, "`time::resume`: time is not paused", "call `time::pause` first");
    says(
        || {
            pause();
            pause();
        },
        "`time::pause`: time is paused already",
        "`time::resume` lets time run",
    );
    says(|| drop(interval(Duration::ZERO)), "`period`", "non-zero");
    for (mut flavour, advice) in [
        (Builder::new_current_thread(), "call `time::pause` first"),
        (Builder::new_multi_thread(), "the default of `#[volt::test]`"),
    ] {
        let rt = flavour.worker_threads(1).build().unwrap();
        let advances = AssertUnwindSafe(|| rt.block_on(advance(MS)));
        let panic = catch_unwind(advances).unwrap_err();
        let message = panic.downcast_ref::<&str>().unwrap();
        assert!(message.starts_with("`time::advance`") && message.contains(advice), "{message}");
    }
    let multi = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| multi.block_on(async { pause() }))).unwrap_err();
    let message = panic.downcast_ref::<&str>().unwrap();
    assert!(message.starts_with("`time::pause` needs a current-thread runtime"), "{message}");
    assert!(message.contains("the default of `#[volt::test]`"), "{message}");
}

/// A poll of `advance` that is dropped has moved the clock; one that never was polled has not.
#[test]
fn advance_moves_the_clock_at_its_first_poll() {
    paused(async {
        let start = Instant::now();
        drop(advance(HOUR));
        assert_eq!(start.elapsed(), Duration::ZERO);
        let mut moves = Box::pin(advance(HOUR));
        poll_fn(|cx| Poll::Ready(moves.as_mut().poll(cx).is_pending())).await;
        drop(moves);
        assert_eq!(start.elapsed(), HOUR);
    });
}

#[test]
fn other_runtimes_are_not_affected() {
    let outside = Instant::now();
    paused(async {
        let inside = Instant::now();
        advance(HOUR).await;
        assert_eq!(inside.elapsed(), HOUR);
    });
    assert!(outside.elapsed() < HOUR);
}

/// When the ticks come, in milliseconds since the start, with the second one taken late.
async fn ticks(behavior: MissedTickBehavior) -> Vec<(u128, u128)> {
    let start = Instant::now();
    let mut interval = interval(50 * MS);
    interval.set_missed_tick_behavior(behavior);
    assert_eq!(interval.missed_tick_behavior(), behavior);
    let mut ticks = Vec::new();
    for tick in 0..6 {
        if tick == 1 {
            sleep_until(start + 120 * MS).await;
        }
        let due = interval.tick().await;
        ticks.push(((due - start).as_millis(), start.elapsed().as_millis()));
    }
    ticks
}

#[test]
fn missed_ticks_burst() {
    let expected = [(0, 0), (50, 120), (100, 120), (150, 150), (200, 200), (250, 250)];
    assert_eq!(paused(ticks(MissedTickBehavior::Burst)), expected);
}

#[test]
fn missed_ticks_delay() {
    let expected = [(0, 0), (50, 120), (170, 170), (220, 220), (270, 270), (320, 320)];
    assert_eq!(paused(ticks(MissedTickBehavior::Delay)), expected);
}

#[test]
fn missed_ticks_skip() {
    let expected = [(0, 0), (50, 120), (150, 150), (200, 200), (250, 250), (300, 300)];
    assert_eq!(paused(ticks(MissedTickBehavior::Skip)), expected);
}

#[test]
fn intervals_can_be_reset() {
    async fn next(interval: &mut Interval, start: Instant) -> u128 {
        interval.tick().await;
        start.elapsed().as_millis()
    }
    paused(async {
        let start = Instant::now();
        let mut interval = interval_at(start + 10 * MS, 100 * MS);
        assert_eq!(interval.period(), 100 * MS);
        assert_eq!(next(&mut interval, start).await, 10);
        assert_eq!(next(&mut interval, start).await, 110);
        sleep(30 * MS).await;
        interval.reset();
        assert_eq!(next(&mut interval, start).await, 240);
        interval.reset_immediately();
        assert_eq!(next(&mut interval, start).await, 240);
        assert_eq!(next(&mut interval, start).await, 340);
        interval.reset_after(5 * MS);
        assert_eq!(next(&mut interval, start).await, 345);
        interval.reset_at(start + 400 * MS);
        assert_eq!(next(&mut interval, start).await, 400);
        assert_eq!(next(&mut interval, start).await, 500);
    });
}

#[test]
fn a_tick_that_is_not_taken_is_not_lost() {
    paused(async {
        let start = Instant::now();
        let mut interval = interval(10 * MS);
        interval.tick().await;
        assert!(timeout(5 * MS, interval.tick()).await.is_err());
        assert_eq!(interval.tick().await, start + 10 * MS);
        assert!(poll_fn(|cx| Poll::Ready(interval.poll_tick(cx))).await.is_pending());
        assert_eq!(interval.tick().await, start + 20 * MS);
    });
}

/// Practically never.
#[test]
fn an_interval_of_the_longest_period_ticks_after_30_years() {
    paused(async {
        let mut interval = interval(Duration::MAX);
        let start = interval.tick().await;
        assert!(timeout(1000 * HOUR, interval.tick()).await.is_err());
        assert_eq!(interval.tick().await, start + YEARS);
        assert_eq!(start.elapsed(), YEARS);
        interval.reset();
        assert_eq!(interval.tick().await, start + 2 * YEARS);
        interval.reset_after(12 * YEARS);
        assert_eq!(interval.tick().await, start + 3 * YEARS);
    });
}

/// Tokio's `exactly_max` and `no_out_of_bounds_close_to_max`; and the clock goes on afterwards.
#[test]
fn waits_for_ever_end_after_30_years() {
    paused(async {
        for wait in [Duration::MAX, Duration::MAX - MS, 12 * YEARS] {
            let start = Instant::now();
            sleep(wait).await;
            assert_eq!(start.elapsed(), YEARS);
            sleep(HOUR).await;
            assert_eq!(start.elapsed(), YEARS + HOUR);
            assert!(timeout(wait, std::future::pending::<()>()).await.is_err());
            assert_eq!(start.elapsed(), 2 * YEARS + HOUR);
        }
    });
}

#[test]
fn a_paused_clock_waits_for_blocking_work() {
    paused(async {
        let start = Instant::now();
        let work = volt::runtime::spawn_blocking(|| std::thread::sleep(20 * MS));
        assert!(timeout(HOUR, work).await.is_ok(), "the clock did not jump over it");
        assert_eq!(start.elapsed(), Duration::ZERO);
    });
}

#[test]
fn a_paused_clock_goes_on_after_blocking_work_that_nobody_awaits() {
    paused(async {
        let start = Instant::now();
        for _ in 0..20 {
            drop(volt::runtime::spawn_blocking(|| std::thread::sleep(MS)));
            sleep(HOUR).await;
        }
        assert_eq!(start.elapsed(), 20 * HOUR);
    });
}
