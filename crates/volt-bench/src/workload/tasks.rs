//! Spawning, waking and joining tasks.
#![forbid(unsafe_code)]

pub(crate) mod many;
mod wake;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use self::many::Countdown;
use crate::bench::Bench;
use crate::kind::{Runtime, Single};
use crate::on_tokio;
use crate::on_volt;
use crate::peers::channels::OneshotCrate;
use crate::peers::smol;
use crate::registry::Row;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = joining();
    rows.extend(many::rows());
    rows.extend(waking());
    rows.extend(wake::rows());
    rows.extend(one_thread());
    rows
}

fn joining() -> Vec<Row> {
    vec![
        Row::new("tasks/spawn_await_outside", "spawn, await, from block_on")
            .headline()
            .volt("volt", spawn_await_outside::<on_volt::Multi>)
            .peer("tokio", spawn_await_outside::<on_tokio::Multi>)
            .peer("async-executor", spawn_await_outside::<smol::Multi>),
        Row::new("tasks/spawn_await", "spawn, await, inside a task")
            .headline()
            .volt("volt", spawn_await::<on_volt::Multi>)
            .peer("tokio", spawn_await::<on_tokio::Multi>)
            .peer("async-executor", spawn_await::<smol::Multi>),
        Row::new("tasks/spawn_100", "spawn 100, await all (per task)")
            .headline()
            .volt("volt", spawn_100::<on_volt::Multi>)
            .peer("tokio", spawn_100::<on_tokio::Multi>)
            .peer("async-executor", spawn_100::<smol::Multi>),
        Row::new("tasks/joinset_100", "JoinSet of 100 (per task)")
            .headline()
            .volt("volt", on_volt::tasks::joinset_100)
            .peer("tokio", on_tokio::tasks::joinset_100)
            .peer("async-executor", spawn_100::<smol::Multi>)
            .but("has no such set: spawns, then awaits in order"),
    ]
}

fn waking() -> Vec<Row> {
    vec![
        Row::new("tasks/yield", "yield_now, 200 tasks")
            .headline()
            .detail()
            .volt("volt", yield_many::<on_volt::Multi>)
            .peer("tokio", yield_many::<on_tokio::Multi>)
            .peer("async-executor", yield_many::<smol::Multi>),
        Row::new("tasks/ping_pong", "Two tasks and two oneshots, 1,000 pairs (per pair)")
            .headline()
            .volt("volt", ping_pong::<on_volt::Multi, on_volt::channel::Oneshot>)
            .peer("tokio", ping_pong::<on_tokio::Multi, on_tokio::channel::Oneshot>)
            .peer("async-executor", ping_pong::<smol::Multi, OneshotCrate>),
    ]
}

fn one_thread() -> Vec<Row> {
    vec![
        Row::new("tasks/current_spawn_await", "Current thread: spawn, await")
            .countable()
            .volt("volt", spawn_await_outside::<on_volt::Current>)
            .peer("tokio", spawn_await_outside::<on_tokio::Current>)
            .peer("async-executor", spawn_await_outside::<smol::Current>),
        Row::new("tasks/current_spawn_100", "Current thread: spawn 100, await all (per task)")
            .countable()
            .volt("volt", current_100::<on_volt::Current>)
            .peer("tokio", current_100::<on_tokio::Current>)
            .peer("async-executor", current_100::<smol::Current>),
        Row::new("tasks/current_yield", "Current thread: yield_now")
            .countable()
            .volt("volt", current_yield::<on_volt::Current>)
            .peer("tokio", current_yield::<on_tokio::Current>)
            .peer("async-executor", current_yield::<smol::Current>),
        Row::new(
            "tasks/current_ping_pong",
            "Current thread: two tasks and two oneshots (per pair)",
        )
        .countable()
        .volt("volt", ping_pong::<on_volt::Current, on_volt::channel::Oneshot>)
        .peer("tokio", ping_pong::<on_tokio::Current, on_tokio::channel::Oneshot>)
        .peer("async-executor", ping_pong::<smol::Current, OneshotCrate>),
    ]
}

pub(crate) fn spawn_await_outside<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        runtime.block_on(async {
            for i in 0..n {
                assert_eq!(R::spawn(async move { i }).await, i);
            }
        });
    });
}

pub(crate) fn spawn_await<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        runtime.run_task(async move {
            for i in 0..n {
                assert_eq!(R::spawn(async move { i }).await, i);
            }
        });
    });
}

async fn spawn_batches<R: Runtime>(n: u64) {
    let mut joins = Vec::with_capacity(100);
    for i in 0..n {
        joins.extend((0..100).map(|j| R::spawn(async move { i + j })));
        for (j, join) in joins.drain(..).enumerate() {
            assert_eq!(join.await, i + j as u64);
        }
    }
}

pub(crate) fn spawn_100<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    b.iter_ops(100, |n| runtime.run_task(spawn_batches::<R>(n)));
}

pub(crate) fn current_100<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    b.iter_ops(100, |n| runtime.block_on(spawn_batches::<R>(n)));
}

/// Spawns and lets go.
fn detach<R: Runtime, F: Future<Output: Send + 'static> + Send + 'static>(future: F) {
    R::detach(R::spawn(future));
}

pub(crate) fn yield_many<R: Runtime>(b: &mut Bench) {
    const TASKS: u64 = 200;
    let runtime = R::start();
    if b.detail() {
        return yields_in_turn(b, &runtime, TASKS);
    }
    b.iter_ops(TASKS, |n| {
        let joins: Vec<_> = (0..TASKS)
            .map(|_| {
                runtime.spawn_outside(async move {
                    for _ in 0..n {
                        R::yield_now().await;
                    }
                    n
                })
            })
            .collect();
        runtime.block_on(async {
            for join in joins {
                assert_eq!(join.await, n);
            }
        });
    });
}

/// How long a task waits for its next turn, and who gets how many.
fn yields_in_turn<R: Runtime>(b: &mut Bench, runtime: &R, tasks: u64) {
    let stop = Arc::new(AtomicBool::new(false));
    let task = |stop: Arc<AtomicBool>| async move {
        let (mut waits, mut before) = (Vec::with_capacity(10_000), Instant::now());
        while !stop.load(Ordering::Relaxed) {
            R::yield_now().await;
            let now = Instant::now();
            waits.push(u64::try_from((now - before).as_nanos()).unwrap_or(u64::MAX));
            before = now;
        }
        waits
    };
    let joins: Vec<_> =
        (0..tasks).map(|_| runtime.spawn_outside(task(Arc::clone(&stop)))).collect();
    std::thread::sleep(b.duration() * 4);
    stop.store(true, Ordering::Relaxed);
    let mut of_each = Vec::new();
    runtime.block_on(async {
        for join in joins {
            of_each.push(join.await);
        }
    });
    let shares: Vec<u64> = of_each.iter().map(|waits| waits.len() as u64).collect();
    b.fairness(of_each.concat(), &shares);
}

pub(crate) fn current_yield<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        runtime.block_on(async {
            let task = R::spawn(async move {
                for _ in 0..n {
                    R::yield_now().await;
                }
                n
            });
            assert_eq!(task.await, n);
        });
    });
}

pub(crate) fn ping_pong<R: Runtime, S: Single>(b: &mut Bench) {
    const PAIRS: u64 = 1_000;
    let runtime = R::start();
    b.iter_ops(PAIRS, |n| {
        for _ in 0..n {
            runtime.run_task(async {
                let (countdown, done) = Countdown::new(PAIRS);
                for i in 0..PAIRS {
                    let countdown = Arc::clone(&countdown);
                    detach::<R, _>(async move {
                        let (there, ask) = S::create();
                        let (back, answer) = S::create();
                        detach::<R, _>(async move {
                            let value = S::recv(ask).await.expect("asked");
                            assert!(S::send(back, value + 1), "awaited");
                        });
                        assert!(S::send(there, i), "awaited");
                        assert_eq!(S::recv(answer).await, Some(i + 1));
                        countdown.down();
                    });
                }
                done.recv().await.expect("told");
            });
        }
    });
}
