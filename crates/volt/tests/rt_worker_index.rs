//! Which worker a thread is.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use volt::runtime::{Builder, LocalRuntime, Runtime, worker_index};
use volt::task::{LocalSet, block_in_place, spawn_local};
use volt::time::sleep;

fn multi(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).build().unwrap()
}

fn current() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

/// What `ask` says in a task on a worker.
fn on_worker<T: Send + 'static>(rt: &Runtime, ask: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    rt.spawn(async move { tell.send(ask()).unwrap() });
    // Not in `join`, which would run the task here.
    told.recv().unwrap()
}

#[test]
fn each_worker_has_a_number_of_its_own() {
    const WORKERS: usize = 3;
    let rt = multi(WORKERS);
    let (tell, told) = mpsc::channel();
    let all_are_there = Arc::new(Barrier::new(WORKERS));
    for _ in 0..WORKERS {
        let (tell, all_are_there) = (tell.clone(), all_are_there.clone());
        rt.spawn(async move {
            all_are_there.wait();
            tell.send(worker_index()).unwrap();
        });
    }
    let mut indices: Vec<_> = told.iter().take(WORKERS).collect();
    indices.sort();
    assert_eq!(indices, (0..WORKERS).map(Some).collect::<Vec<_>>());
}

/// By what they count.
#[test]
fn the_number_is_that_of_the_metrics() {
    let rt = multi(2);
    let metrics = rt.metrics();
    on_worker(&rt, move || {
        let index = worker_index().unwrap();
        let count = || [0, 1].map(|worker| metrics.worker_local_spawn_count(worker));
        let mut expected = count();
        expected[index] += 1;
        drop(volt::spawn(async {}));
        assert_eq!(count(), expected);
    });
}

#[test]
fn a_thread_in_block_on_beside_workers_is_none_of_them_also_in_a_task() {
    let rt = multi(2);
    let here = std::thread::current().id();
    let ran_here = rt.block_on(async {
        assert_eq!(worker_index(), None);
        let mut ran_here = false;
        for _ in 0..1000 {
            let task = async { (std::thread::current().id(), worker_index()) };
            let (thread, index) = volt::spawn(task).await.unwrap();
            ran_here |= thread == here;
            assert_eq!(index.is_none(), thread == here);
            assert!(index.is_none_or(|index| index < 2));
            assert_eq!(worker_index(), None);
        }
        ran_here
    });
    assert!(ran_here, "a task or two do");
}

#[test]
fn the_thread_of_a_current_thread_runtime_is_worker_0() {
    let rt = current();
    let set = LocalSet::new();
    for _ in 0..2 {
        assert_eq!(rt.block_on(async { worker_index() }), Some(0), "in its first poll");
        rt.block_on(async {
            assert_eq!(volt::spawn(async { worker_index() }).await.unwrap(), Some(0));
            sleep(Duration::from_millis(1)).await;
            assert_eq!(worker_index(), Some(0));
        });
        let local = set.block_on(&rt, async { spawn_local(async { worker_index() }).await });
        assert_eq!(local.unwrap(), Some(0));
    }
    let local = LocalRuntime::new().unwrap();
    assert_eq!(local.block_on(async { worker_index() }), Some(0));
    assert_eq!(
        local.block_on(async { spawn_local(async { worker_index() }).await }).unwrap(),
        Some(0)
    );
    assert_eq!(worker_index(), None);
}

#[test]
fn of_two_threads_in_block_on_only_the_one_that_runs_the_tasks_is_worker_0() {
    let rt = current();
    let ask = || async { worker_index() };
    rt.block_on(async {
        assert_eq!(worker_index(), Some(0));
        let handle = rt.handle().clone();
        let other = std::thread::spawn(move || handle.block_on(ask())).join();
        assert_eq!(other.unwrap(), None);
        assert_eq!(worker_index(), Some(0));
    });
    // The future of a handle's `block_on` never is; the tasks that run on its thread are.
    let handle = rt.handle().clone();
    let other = std::thread::spawn(move || {
        handle.block_on(async move { (worker_index(), volt::spawn(ask()).await.unwrap()) })
    });
    assert_eq!(other.join().unwrap(), (None, Some(0)));
    assert_eq!(std::thread::spawn(move || rt.block_on(ask())).join().unwrap(), Some(0));
}

#[test]
fn where_a_thread_may_block_it_is_no_worker() {
    for rt in [current(), multi(1)] {
        assert_eq!(rt.block_on(rt.spawn_blocking(worker_index)).unwrap(), None);
        let _entered = rt.enter();
        assert_eq!(worker_index(), None);
    }
    on_worker(&multi(1), || {
        assert_eq!(worker_index(), Some(0));
        block_in_place(|| {
            assert_eq!(worker_index(), None);
            assert_eq!(current().block_on(async { worker_index() }), Some(0));
            assert_eq!(multi(1).block_on(async { worker_index() }), None);
            assert_eq!(worker_index(), None);
        });
        assert_eq!(worker_index(), None, "another thread is the worker");
    });
}

#[test]
fn another_runtime_that_was_entered_makes_no_difference() {
    let (rt, other) = (multi(1), Arc::new(current()));
    let theirs = other.clone();
    let (index, id) = on_worker(&rt, move || {
        let _entered = theirs.enter();
        (worker_index(), volt::runtime::Handle::current().id())
    });
    assert_eq!((index, id), (Some(0), other.handle().id()));
}

type Calls = Sender<(&'static str, Option<usize>)>;

/// Tells of each call of a hook which worker that was.
fn tells(calls: &Calls, hook: &'static str) -> impl Fn() + Send + Sync + use<> {
    let calls = calls.clone();
    move || calls.send((hook, worker_index())).unwrap()
}

fn hooked(mut builder: Builder, calls: &Calls) -> Runtime {
    let slow = tells(calls, "slow poll");
    builder
        .on_thread_start(tells(calls, "start"))
        .on_thread_stop(tells(calls, "stop"))
        .on_thread_park(tells(calls, "park"))
        .on_thread_unpark(tells(calls, "unpark"))
        .on_slow_poll(move |_| slow())
        .build()
        .unwrap()
}

#[test]
fn a_hook_of_a_worker_knows_which_one_that_is() {
    let (calls, called) = mpsc::channel();
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2);
    let rt = hooked(builder, &calls);
    let both_park = Arc::new(Barrier::new(2));
    for _ in 0..2 {
        let both_park = both_park.clone();
        rt.spawn(async move {
            both_park.wait();
            std::thread::sleep(Duration::from_millis(2));
            sleep(Duration::from_millis(1)).await;
        });
    }
    while rt.metrics().num_alive_tasks() > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    // One that has not been to sleep so far would end without.
    let mut seen = Vec::new();
    let hangs = Duration::from_secs(30);
    while !(0..2).all(|worker| seen.contains(&("park", Some(worker)))) {
        seen.push(called.recv_timeout(hangs).expect("each worker parks"));
    }
    drop((rt, calls));
    seen.extend(called.iter());
    seen.sort();
    seen.dedup();
    let both = |hook| [(hook, Some(0)), (hook, Some(1))];
    let mut expected = vec![("start", None), ("stop", None)];
    expected.extend([both("park"), both("unpark"), both("slow poll")].concat());
    expected.sort();
    assert_eq!(seen, expected);
}

#[test]
fn a_hook_of_a_current_thread_runtime_is_called_by_worker_0() {
    let (calls, called) = mpsc::channel();
    let rt = hooked(Builder::new_current_thread(), &calls);
    let mut seen = Vec::new();
    rt.block_on(async {
        // Who loses the processor for so long finds the time over, and does not park.
        for _ in 0..1000 {
            sleep(Duration::from_millis(5)).await;
            seen.extend(called.try_iter());
            if seen.contains(&("park", Some(0))) {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(worker_index(), Some(0));
    });
    drop((rt, calls));
    seen.extend(called.iter());
    seen.sort();
    seen.dedup();
    // In its first poll, which may take long on a busy machine, the thread is not yet the one that runs the tasks.
    seen.retain(|call| *call != ("slow poll", None));
    assert_eq!(seen, [("park", Some(0)), ("slow poll", Some(0)), ("unpark", Some(0))]);
}

/// A hook may have a whole runtime come and go.
#[test]
fn what_a_hook_does_elsewhere_is_not_done_by_its_worker() {
    let (tell, told) = mpsc::channel();
    let done = AtomicBool::new(false);
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).on_thread_park(move || {
        if !done.swap(true, Ordering::Relaxed) {
            let thread = std::thread::spawn(worker_index).join().unwrap();
            let other = multi(1);
            let theirs = on_worker(&other, worker_index);
            other.shutdown_background();
            tell.send((thread, theirs, worker_index())).unwrap();
        }
    });
    let _rt = builder.build().unwrap();
    assert_eq!(told.recv().unwrap(), (None, Some(0), Some(0)));
}

/// Sends which worker drops it, after a whole `block_on` with hooks of its own.
struct AsksWhenDropped(Sender<Option<usize>>);

impl Drop for AsksWhenDropped {
    fn drop(&mut self) {
        let mut builder = Builder::new_multi_thread();
        let (parks, parked) = mpsc::channel();
        let parks = move || parks.send(worker_index()).unwrap();
        let rt = builder.worker_threads(1).on_thread_park(parks).build().unwrap();
        // Who loses the processor for so long finds the time over, and does not sleep.
        let has_slept = (0..1000).any(|_| {
            rt.block_on(sleep(Duration::from_millis(5)));
            parked.try_iter().any(|index| index.is_none())
        });
        drop(rt);
        assert!(has_slept, "this thread does not sleep");
        self.0.send(worker_index()).unwrap();
    }
}

/// Where tasks are dropped in a hook, the thread may block, and be a member of other runtimes.
#[test]
fn a_hook_is_its_workers_also_after_it_was_another_runtimes_thread() {
    let (tell, told) = mpsc::channel();
    let done = AtomicBool::new(false);
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).on_thread_park(move || {
        if !done.swap(true, Ordering::Relaxed) {
            let other = current();
            let dropped = AsksWhenDropped(tell.clone());
            other.spawn(async move {
                let _dropped = dropped;
                std::future::pending::<()>().await;
            });
            other.shutdown_background();
            tell.send(worker_index()).unwrap();
        }
    });
    let _rt = builder.build().unwrap();
    let hangs = Duration::from_secs(20);
    let told = [(), ()].map(|()| told.recv_timeout(hangs).expect("it is told"));
    assert_eq!(told, [None, Some(0)]);
}
