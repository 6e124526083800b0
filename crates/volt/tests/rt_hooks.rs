//! Hooks of the builder that use the runtime.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use volt::runtime::{Builder, Runtime};
use volt::sync::{Notify, oneshot};
use volt::task::{block_in_place, yield_now};
use volt::time::sleep;

const ROUNDS: u32 = 10;
const HANGS: Duration = Duration::from_secs(20);

std::thread_local! {
    /// The hook of this thread shall do it, once.
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

/// Has a task that computes and yields as long as `f` takes: others park beside it, and one of them
/// watches, another one waits for events, the rest do neither.
fn beside_a_busy_worker(rt: &Runtime, f: impl FnOnce()) {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let task = rt.spawn(async move {
        while !stopped.load(Ordering::Relaxed) {
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(2) {}
            yield_now().await;
        }
    });
    f();
    stop.store(true, Ordering::Relaxed);
    rt.block_on(task).unwrap();
}

/// Asks the hook of whatever thread runs this, and waits for what it sends.
fn each_round_is_answered(rt: &Runtime, answers: &mpsc::Receiver<()>) {
    for round in 0..ROUNDS {
        rt.spawn(async { ASKED.set(true) });
        let answer = answers.recv_timeout(HANGS);
        assert!(answer.is_ok(), "round {round}: what the hook made runnable does not run");
    }
}

#[test]
fn what_a_park_hook_spawns_runs() {
    for workers in [1, 2, 8] {
        let (answer, answers) = mpsc::channel();
        let hook = move || {
            if ASKED.replace(false) {
                let answer = answer.clone();
                volt::spawn(async move { answer.send(()).unwrap() });
            }
        };
        let rt = Builder::new_multi_thread()
            .worker_threads(workers)
            .on_thread_park(hook)
            .build()
            .unwrap();
        each_round_is_answered(&rt, &answers);
        if workers > 1 {
            beside_a_busy_worker(&rt, || each_round_is_answered(&rt, &answers));
        }
    }
}

#[test]
fn what_a_park_hook_wakes_runs() {
    for workers in [1, 2, 8] {
        let notify = Arc::new(Notify::new());
        let theirs = notify.clone();
        let rt = Builder::new_multi_thread()
            .worker_threads(workers)
            .on_thread_park(move || {
                if ASKED.replace(false) {
                    theirs.notify_one();
                }
            })
            .build()
            .unwrap();
        let (answer, answers) = mpsc::channel();
        rt.spawn(async move {
            loop {
                notify.notified().await;
                answer.send(()).unwrap();
            }
        });
        each_round_is_answered(&rt, &answers);
        if workers > 1 {
            beside_a_busy_worker(&rt, || each_round_is_answered(&rt, &answers));
        }
    }
}

#[test]
fn on_a_current_thread_runtime_as_well() {
    let (answer, answered) = oneshot::channel();
    let answer = std::sync::Mutex::new(Some(answer));
    let refused = Arc::new(AtomicBool::new(false));
    let theirs = refused.clone();
    let rt = Builder::new_current_thread()
        .on_thread_park(move || {
            let Some(answer) = answer.lock().unwrap().take() else { return };
            volt::spawn(async move { answer.send(7).unwrap() });
            let nested =
                catch_unwind(|| volt::runtime::Handle::current().block_on(std::future::ready(())));
            theirs.store(nested.is_err(), Ordering::Relaxed);
        })
        .build()
        .unwrap();
    assert_eq!(rt.block_on(answered).unwrap(), 7);
    assert!(refused.load(Ordering::Relaxed), "`block_on` blocks a thread that has tasks to run");
}

/// No other thread becomes the worker whose hook blocks.
#[test]
fn hooks_may_call_block_in_place() {
    const TASKS: usize = 100;
    static LEFT: AtomicI32 = AtomicI32::new(0);

    fn hook() {
        if LEFT.fetch_sub(1, Ordering::Relaxed) > 0 {
            block_in_place(|| std::thread::sleep(Duration::from_micros(50)));
        }
    }

    for which in 0..4 {
        let mut builder = Builder::new_multi_thread();
        match which {
            0 => builder.on_thread_park(hook),
            1 => builder.on_thread_unpark(hook),
            2 => builder.slow_poll_threshold(Duration::from_micros(20)).on_slow_poll(|_| hook()),
            _ => builder.thread_name_fn(|| {
                hook();
                "named".to_owned()
            }),
        };
        LEFT.store(200, Ordering::Relaxed);
        let (done, is_done) = mpsc::channel();
        let body = move || {
            let rt = builder.worker_threads(2).build().unwrap();
            while LEFT.load(Ordering::Relaxed) > 0 {
                let body = || async {
                    for _ in 0..3 {
                        sleep(Duration::from_micros(100)).await;
                        std::thread::sleep(Duration::from_micros(20));
                        yield_now().await;
                    }
                    block_in_place(|| {});
                };
                let tasks: Vec<_> = (0..TASKS).map(|_| rt.spawn(body())).collect();
                for task in tasks {
                    rt.block_on(task).unwrap();
                }
                if which == 3 {
                    break;
                }
            }
            drop(rt);
        };
        let thread = std::thread::spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(body));
            done.send(result.is_ok()).unwrap();
        });
        assert_eq!(is_done.recv_timeout(3 * HANGS), Ok(true), "hook {which}");
        thread.join().unwrap();
    }
}
