//! Hooks of the builder that use the runtime.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use volt::runtime::{Builder, Handle, Runtime};
use volt::sync::{Notify, oneshot};
use volt::task::{block_in_place, spawn_blocking, yield_now};
use volt::time::sleep;

const ROUNDS: u32 = 10;
const HANGS: Duration = Duration::from_secs(20);

std::thread_local! {
    /// The hook of this thread shall do it, once.
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// What the hook has made runnable has run.
    Ran,
    /// The thread that was asked does not park.
    IsBusy,
}

/// Asks the hook of whatever thread runs this, and waits for what it has made runnable.
fn each_round_is_answered(rt: &Runtime, answers: &mpsc::Receiver<Answer>) {
    let mut rounds = 0;
    while rounds < ROUNDS {
        rt.spawn(async { ASKED.set(true) });
        match answers.recv_timeout(HANGS) {
            Ok(Answer::Ran) => rounds += 1,
            Ok(Answer::IsBusy) => {}
            Err(_) => panic!("round {rounds}: what the hook made runnable does not run"),
        }
    }
}

/// Also beside a task that computes and yields: others park, and one of them watches, another one waits for
/// events, the rest do neither.
fn each_round_is_answered_by(
    hook_for: impl Fn(mpsc::Sender<Answer>) -> Box<dyn Fn() + Send + Sync>,
    start: impl Fn(&Runtime, mpsc::Sender<Answer>),
) {
    for workers in [1, 2, 8] {
        let (answer, answers) = mpsc::channel();
        let hook = hook_for(answer.clone());
        let hook = move || {
            if ASKED.replace(false) {
                hook();
            }
        };
        let mut builder = Builder::new_multi_thread();
        let rt = builder.worker_threads(workers).on_thread_park(hook).build().unwrap();
        start(&rt, answer.clone());
        each_round_is_answered(&rt, &answers);
        if workers == 1 {
            continue;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let task = rt.spawn(async move {
            while !stopped.load(Ordering::Relaxed) {
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(2) {}
                if ASKED.replace(false) {
                    answer.send(Answer::IsBusy).unwrap();
                }
                yield_now().await;
            }
        });
        each_round_is_answered(&rt, &answers);
        stop.store(true, Ordering::Relaxed);
        rt.block_on(task).unwrap();
    }
}

#[test]
fn what_a_park_hook_spawns_runs() {
    let hook_for = |answer: mpsc::Sender<Answer>| -> Box<dyn Fn() + Send + Sync> {
        Box::new(move || {
            let answer = answer.clone();
            volt::spawn(async move { answer.send(Answer::Ran).unwrap() });
        })
    };
    each_round_is_answered_by(hook_for, |_, _| {});
}

#[test]
fn what_a_park_hook_wakes_runs() {
    let notify = Arc::new(Notify::new());
    let theirs = notify.clone();
    let hook_for = move |_| -> Box<dyn Fn() + Send + Sync> {
        let notify = theirs.clone();
        Box::new(move || notify.notify_one())
    };
    let start = |rt: &Runtime, answer: mpsc::Sender<Answer>| {
        let notify = notify.clone();
        rt.spawn(async move {
            loop {
                notify.notified().await;
                answer.send(Answer::Ran).unwrap();
            }
        });
    };
    each_round_is_answered_by(hook_for, start);
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

/// Waiting in a hook is refused, with all that goes on as before: the thread may be the one to run what it waits
/// for, and nobody else becomes the worker meanwhile.
#[test]
fn a_hook_that_waits_for_tasks_panics() {
    const TASKS: usize = 100;
    static LEFT: AtomicI32 = AtomicI32::new(0);
    static REFUSED: AtomicI32 = AtomicI32::new(0);

    fn hook() {
        let left = LEFT.fetch_sub(1, Ordering::Relaxed);
        if left <= 0 {
            return;
        }
        let tries = || match left % 3 {
            0 => block_in_place(|| {}),
            // One that another member cannot have ended meanwhile: then there would be nothing to wait for.
            1 => volt::spawn(std::future::pending()).join().unwrap(),
            _ => volt::runtime::Handle::current().block_on(async {}),
        };
        if catch_unwind(tries).is_err() {
            REFUSED.fetch_add(1, Ordering::Relaxed);
        }
    }

    let hooks = [
        |builder: &mut Builder| {
            builder.on_thread_park(hook);
        },
        |builder: &mut Builder| {
            builder.on_thread_unpark(hook);
        },
        |builder: &mut Builder| {
            builder.slow_poll_threshold(Duration::from_micros(20)).on_slow_poll(|_| hook());
        },
    ];
    let new = [Builder::new_multi_thread, Builder::new_current_thread];
    for (which, flavor) in (0..hooks.len()).flat_map(|which| [(which, 0), (which, 1)]) {
        let mut builder = new[flavor]();
        hooks[which](&mut builder);
        LEFT.store(60, Ordering::Relaxed);
        REFUSED.store(0, Ordering::Relaxed);
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
                };
                let tasks: Vec<_> = (0..TASKS).map(|_| rt.spawn(body())).collect();
                for task in tasks {
                    rt.block_on(task).unwrap();
                }
            }
            drop(rt);
        };
        let thread = std::thread::spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(body));
            done.send(result.is_ok()).unwrap();
        });
        assert_eq!(is_done.recv_timeout(3 * HANGS), Ok(true), "hook {which} of flavor {flavor}");
        thread.join().unwrap();
        assert_eq!(REFUSED.load(Ordering::Relaxed), 60);
    }
}

/// A task that is done can be joined anywhere. Who names a thread does so as a hook.
#[test]
fn a_hook_may_join_what_has_ended() {
    let joined = Arc::new(AtomicI32::new(0));
    let done = Arc::new(std::sync::Mutex::new(None::<volt::task::JoinHandle<i32>>));
    let (theirs, given) = (joined.clone(), done.clone());
    let rt = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name_fn(move || {
            if let Some(task) = given.lock().unwrap().take() {
                theirs.store(task.join().unwrap(), Ordering::Relaxed);
                assert!(catch_unwind(|| block_in_place(|| {})).is_err(), "nobody is handed over");
            }
            "named".to_owned()
        })
        .build()
        .unwrap();
    rt.block_on(async {
        let task = volt::spawn(async { 7 });
        while !task.is_finished() {
            yield_now().await;
        }
        *done.lock().unwrap() = Some(task);
        volt::task::spawn_blocking(|| {}).await.unwrap();
    });
    assert_eq!(joined.load(Ordering::Relaxed), 7);
}

/// Each call of `block_on` finds its future woken by the hook, before it waits in the driver.
#[test]
fn a_hook_that_wakes_the_future_of_block_on_does_not_hold_up_timers() {
    let notify = Arc::new(Notify::new());
    let runtime = {
        let notify = notify.clone();
        let mut builder = Builder::new_current_thread();
        builder.on_thread_park(move || notify.notify_waiters()).build().unwrap()
    };
    let slept = runtime.spawn(async { sleep(Duration::from_millis(1)).await });
    let start = Instant::now();
    while !slept.is_finished() {
        runtime.block_on(notify.notified());
        assert!(start.elapsed() < HANGS, "the driver is never turned");
    }
}

/// Those of threads, blocking ones included, are called in the runtime, which goes with its drop all the same.
#[test]
fn hooks_of_threads_may_use_their_runtime() {
    const WORKERS: usize = 3;
    for new in [Builder::new_multi_thread, Builder::new_current_thread] {
        let answers = Arc::new(std::sync::Mutex::new(Vec::new()));
        let kept = Arc::new(());
        let hook = |which: &'static str| {
            let (answers, kept) = (answers.clone(), kept.clone());
            move || {
                let workers = catch_unwind(|| Handle::current().metrics().num_workers());
                answers.lock().unwrap().push((which, workers.ok()));
                let kept = kept.clone();
                volt::spawn(async move { drop(kept) });
                panic!("contained");
            }
        };
        let rt = new()
            .worker_threads(WORKERS)
            .on_thread_start(hook("start"))
            .on_thread_stop(hook("stop"))
            .build()
            .unwrap();
        let workers = rt.metrics().num_workers();
        rt.block_on(async { spawn_blocking(|| {}).await.unwrap() });
        let start = Instant::now();
        drop(rt);
        assert!(start.elapsed() < HANGS, "the drop waits for longer than it takes");
        assert_eq!(Arc::strong_count(&kept), 1, "something of the runtime is left");
        let threads = 1 + if workers == WORKERS { WORKERS } else { 0 };
        for which in ["start", "stop"] {
            let answers = answers.lock().unwrap();
            let of_hook = answers.iter().filter(|(name, _)| *name == which);
            assert!(of_hook.clone().all(|(_, found)| *found == Some(workers)), "{answers:?}");
            assert_eq!(of_hook.count(), threads, "{which}");
        }
    }
}

/// One that is waited for by nobody, and ends after its runtime, calls its hook outside.
#[test]
fn a_thread_that_outlives_its_runtime_calls_its_hook() {
    let (stopped, stops) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let rt = Builder::new_current_thread()
        .on_thread_stop(move || stopped.send(Handle::try_current().is_ok()).unwrap())
        .build()
        .unwrap();
    rt.spawn_blocking(move || {
        begun.send(()).unwrap();
        ends.recv().unwrap_err();
    });
    begins.recv().unwrap();
    rt.shutdown_background();
    drop(end);
    assert_eq!(stops.recv_timeout(HANGS), Ok(false));
}
