//! Timers: what they cost, and how late they fire.
#![forbid(unsafe_code)]

use std::future::{self, Future};
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use crate::bench::Bench;
use crate::kind::Timers;
use crate::on_tokio;
use crate::on_volt;
use crate::peers::smol;
use crate::registry::Row;
use crate::stats;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new("time/register_cancel", "Register a sleep of 1 s, cancel it")
            .headline()
            .volt("volt", register_cancel::<on_volt::Multi>)
            .peer("tokio", register_cancel::<on_tokio::Multi>)
            .peer("async-io", register_cancel::<smol::Multi>)
            .floor("clock, waker, 2 locks", look_and_lock),
        Row::new("time/sleep_10000", "10,000 tasks sleep 1 ms (per sleep)")
            .headline()
            .volt("volt", sleep_many::<on_volt::Multi>)
            .peer("tokio", sleep_many::<on_tokio::Multi>)
            .peer("async-io", sleep_many::<smol::Multi>),
        Row::new("time/timeout_ready", "timeout around a ready future")
            .headline()
            .countable()
            .volt("volt", timeout_ready::<on_volt::Multi>)
            .peer("tokio", timeout_ready::<on_tokio::Multi>)
            .peer("async-io", timeout_ready::<smol::Multi>)
            .but("polls the future before it makes a timer, as the workload's helper is written"),
        Row::new("time/timeout_recv", "timeout around a recv that another task completes")
            .headline()
            .volt("volt", timeout_recv::<on_volt::Multi>)
            .peer("tokio", timeout_recv::<on_tokio::Multi>)
            .peer("async-io", timeout_recv::<smol::Multi>),
        Row::new("time/interval_p50", "Interval of 1 ms: median lateness")
            .headline()
            .long()
            .unit("us", 1.0)
            .volt("volt", interval::<on_volt::Multi>)
            .peer("tokio", interval::<on_tokio::Multi>)
            .but("rounds to milliseconds")
            .peer("async-io", interval::<smol::Multi>)
            .floor("thread sleep", interval_thread),
    ]
}

/// What no timer does without: a look at the clock, a waker that is kept, and a lock for each of its ends.
fn look_and_lock(b: &mut Bench) {
    struct Counted;
    impl std::task::Wake for Counted {
        fn wake(self: Arc<Self>) {}
    }
    let waker = Waker::from(Arc::new(Counted));
    let locked = AtomicBool::new(false);
    let lock = || {
        assert!(
            locked.compare_exchange(false, true, Acquire, Relaxed).is_ok(),
            "nobody else is here"
        );
        locked.store(black_box(false), Release);
    };
    b.iter(|n| {
        for _ in 0..n {
            let deadline = Instant::now() + Duration::from_secs(1);
            let waker = black_box(waker.clone());
            lock();
            black_box(deadline);
            lock();
            drop(waker);
        }
    });
}

pub(crate) fn register_cancel<R: Timers>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        runtime.run_task(async move {
            for _ in 0..n {
                let mut sleep = pin!(R::sleep(Duration::from_secs(1)));
                let pending =
                    future::poll_fn(|cx| Poll::Ready(sleep.as_mut().poll(cx).is_pending())).await;
                assert!(pending, "a second has not passed");
            }
        });
    });
}

pub(crate) fn sleep_many<R: Timers>(b: &mut Bench) {
    const SLEEPS: u64 = 10_000;
    let runtime = R::start();
    b.iter_ops(SLEEPS, |n| {
        for _ in 0..n {
            runtime.run_task(async {
                let sleep = |_| {
                    R::spawn(async {
                        let start = Instant::now();
                        R::sleep(Duration::from_millis(1)).await;
                        start.elapsed()
                    })
                };
                let joins: Vec<_> = (0..SLEEPS).map(sleep).collect();
                for join in joins {
                    assert!(join.await >= Duration::from_millis(1), "never early");
                }
            });
        }
    });
}

pub(crate) fn timeout_ready<R: Timers>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        runtime.run_task(async move {
            for i in 0..n {
                let result =
                    R::timeout(Duration::from_secs(1), future::ready(std::hint::black_box(i)))
                        .await;
                assert_eq!(result, Some(i));
            }
        });
    });
}

pub(crate) fn timeout_recv<R: Timers>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        let (ask, asked) = async_channel::bounded::<u64>(1);
        let (answer, answered) = async_channel::bounded::<u64>(1);
        let echo = runtime.spawn_outside(async move {
            while let Ok(value) = asked.recv().await {
                answer.send(value).await.expect("open");
            }
        });
        runtime.run_task(async move {
            for i in 0..n {
                ask.send(i).await.expect("open");
                let result = R::timeout(Duration::from_secs(1), answered.recv()).await;
                assert_eq!(result, Some(Ok(i)), "in time");
            }
        });
        runtime.block_on(echo);
    });
}

/// The first tick comes at once, the others each a millisecond later, whatever became of the one
/// before: lateness is against that schedule.
pub(crate) fn interval<R: Timers>(b: &mut Bench) {
    let runtime = R::start();
    let ticks = ticks(b);
    let lateness = runtime.run_task(async move {
        let start = Instant::now();
        let mut interval = R::interval(Duration::from_millis(1));
        R::tick(&mut interval).await;
        let mut lateness = Vec::new();
        for i in 1..=ticks {
            R::tick(&mut interval).await;
            lateness.push(late(start, i));
        }
        lateness
    });
    report(b, lateness);
}

fn interval_thread(b: &mut Bench) {
    let ticks = ticks(b);
    let start = Instant::now();
    let mut lateness = Vec::new();
    for i in 1..=ticks {
        let due = Duration::from_millis(u64::from(i));
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        lateness.push(late(start, i));
    }
    report(b, lateness);
}

fn ticks(b: &Bench) -> u32 {
    if b.rehearsal() {
        10
    } else {
        u32::try_from(b.duration().as_millis() * 8).unwrap_or(100).clamp(100, 1000)
    }
}

fn late(start: Instant, tick: u32) -> u64 {
    let due = Duration::from_millis(u64::from(tick));
    u64::try_from(start.elapsed().saturating_sub(due).as_nanos()).unwrap_or(u64::MAX)
}

fn report(b: &mut Bench, mut lateness: Vec<u64>) {
    lateness.sort_unstable();
    let us = |q| stats::quantile_sorted(&lateness, q) as f64 / 1000.0;
    b.value(us(0.5));
    b.extra("late_p99_us", us(0.99));
    b.extra("late_max_us", us(1.0));
}
