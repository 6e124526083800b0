//! Reports of polls that take long.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use volt::runtime::{Builder, SlowPoll};
use volt::sync::internal::primitive::Mutex;
use volt::task::{JoinSet, yield_now};

const THRESHOLD: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_millis(40);

type Reports = Arc<Mutex<Vec<SlowPoll>>>;

/// A builder that reports to the list.
fn reporting(mut builder: Builder) -> (Builder, Reports) {
    let reports = Reports::default();
    let theirs = reports.clone();
    builder
        .worker_threads(2)
        .slow_poll_threshold(THRESHOLD)
        .on_slow_poll(move |poll| theirs.lock().unwrap().push(poll.clone()));
    (builder, reports)
}

fn flavors() -> [Builder; 2] {
    [Builder::new_multi_thread(), Builder::new_current_thread()]
}

#[test]
fn each_slow_poll_is_reported_with_its_task() {
    for flavor in flavors() {
        let (mut builder, reports) = reporting(flavor);
        let rt = builder.build().unwrap();
        let line = line!() + 1;
        let task = rt.spawn(async {
            for _ in 0..3 {
                std::thread::sleep(LONG);
                yield_now().await;
            }
        });
        let id = task.id();
        let quick: Vec<_> = (0..100).map(|_| rt.spawn(yield_now())).collect();
        rt.block_on(task).unwrap();
        for task in quick {
            rt.block_on(task).unwrap();
        }
        let metrics = rt.metrics();
        drop(rt);
        let reports = reports.lock().unwrap();
        let ours: Vec<_> = reports.iter().filter(|poll| poll.id() == Some(id)).collect();
        // Its last poll does nothing, but may lose the processor.
        assert!(matches!(ours.len(), 3 | 4), "{}", ours.len());
        for (at, poll) in ours.iter().enumerate() {
            let least = if at < 3 { LONG } else { THRESHOLD };
            assert!(poll.duration() >= least && poll.duration() < Duration::from_secs(10));
            assert_eq!((poll.spawned_at().file(), poll.spawned_at().line()), (file!(), line));
            assert!(poll.type_name().contains("each_slow_poll_is_reported"));
        }
        let text = ours[0].to_string();
        assert!(text.contains(&id.to_string()) && text.contains("rt_slow_polls.rs"), "{text}");
        assert_eq!(metrics.slow_polls_count(), reports.len() as u64);
        let slowest = metrics.slowest_poll().unwrap().duration();
        assert_eq!(Some(slowest), reports.iter().map(SlowPoll::duration).max());
    }
}

#[test]
fn the_future_of_block_on_is_reported() {
    for flavor in flavors() {
        let (mut builder, reports) = reporting(flavor);
        let rt = builder.build().unwrap();
        // In its first poll, and in a later one. (A sleep may be over in the poll in which it begins.)
        let line = line!() + 1;
        rt.block_on(async {
            std::thread::sleep(LONG);
            yield_now().await;
            std::thread::sleep(LONG);
        });
        let reports = reports.lock().unwrap();
        assert_eq!(reports.len(), 2);
        for poll in &*reports {
            assert_eq!(poll.id(), None);
            assert_eq!((poll.spawned_at().file(), poll.spawned_at().line()), (file!(), line));
        }
    }
}

#[test]
fn every_way_to_spawn_knows_its_caller() {
    let (mut builder, reports) = reporting(Builder::new_multi_thread());
    let rt = builder.build().unwrap();
    let nap = async || std::thread::sleep(LONG);
    let lines = rt.block_on(async {
        let mut set = JoinSet::new();
        let handle = rt.handle();
        let first = line!() + 1;
        drop(volt::spawn(nap()).await);
        drop(handle.spawn(nap()).await);
        drop(rt.spawn(nap()).await);
        set.spawn(nap());
        set.spawn_on(nap(), handle);
        while set.join_next().await.is_some() {}
        first..first + 5
    });
    drop(rt);
    let reports = reports.lock().unwrap();
    // The future of `block_on` has no id. It does nothing for long, but may lose the processor.
    let tasks = reports.iter().filter(|poll| poll.id().is_some());
    let mut found: Vec<_> = tasks.map(|poll| poll.spawned_at().line()).collect();
    found.sort_unstable();
    assert_eq!(found, lines.collect::<Vec<_>>());
    assert!(reports.iter().all(|poll| poll.spawned_at().file() == file!()));
}

#[test]
fn a_panic_of_the_hook_is_contained() {
    for mut builder in flavors() {
        let calls = Arc::new(AtomicUsize::new(0));
        let count = calls.clone();
        // Without a threshold: a millisecond.
        let rt = builder
            .on_slow_poll(move |_| {
                count.fetch_add(1, Ordering::SeqCst);
                panic!("contained");
            })
            .build()
            .unwrap();
        let task = rt.spawn(async {
            std::thread::sleep(LONG);
            7
        });
        assert_eq!(rt.block_on(task).unwrap(), 7);
        drop(rt);
        assert!(calls.load(Ordering::SeqCst) >= 1);
    }
}

/// Tasks that compute, on workers only: each of these counts its own.
#[test]
fn slow_polls_are_counted_for_their_workers() {
    for workers in [1, 2, 8] {
        let (mut builder, reports) = reporting(Builder::new_multi_thread());
        let rt = builder.worker_threads(workers).build().unwrap();
        let metrics = rt.metrics();
        for _ in 0..3 {
            rt.spawn(async { std::thread::sleep(LONG) });
        }
        while metrics.num_alive_tasks() > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(rt);
        let by_worker: u64 = (0..workers).map(|at| metrics.worker_slow_polls_count(at)).sum();
        assert_eq!(
            (by_worker, by_worker),
            (metrics.slow_polls_count(), reports.lock().unwrap().len() as u64)
        );
        assert_eq!(by_worker, 3);
    }
    let (mut builder, _) = reporting(Builder::new_current_thread());
    let rt = builder.build().unwrap();
    rt.block_on(async {
        std::thread::sleep(LONG);
        yield_now().await;
        std::thread::sleep(LONG);
    });
    let metrics = rt.metrics();
    assert_eq!(
        (metrics.slow_polls_count(), metrics.worker_slow_polls_count(0)),
        (2, 1),
        "not the first poll"
    );
}

/// Nothing is recorded unless it is asked for.
#[test]
fn no_reports_without_a_threshold() {
    let rt = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    rt.block_on(rt.spawn(async { std::thread::sleep(LONG) })).unwrap();
    assert!(rt.metrics().slowest_poll().is_none());
}
