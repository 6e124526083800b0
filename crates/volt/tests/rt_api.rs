//! Builder, handles, guards, shutdown, metrics.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::cell::Cell;
use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};

use std::time::{Duration, Instant};
use volt::sync::internal::primitive::Mutex;

use volt::runtime::{Builder, Handle, Runtime, RuntimeMetrics};

fn multi(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
}

fn current() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
#[should_panic(expected = "`worker_threads` must be at least 1")]
fn zero_workers_are_refused() {
    Builder::new_multi_thread().worker_threads(0);
}

#[test]
#[should_panic(expected = "`max_blocking_threads` must be at least 1")]
fn zero_blocking_threads_are_refused() {
    Builder::new_multi_thread().max_blocking_threads(0);
}

#[test]
#[should_panic(expected = "`global_queue_interval` must be at least 1")]
fn a_queue_interval_of_zero_is_refused() {
    Builder::new_multi_thread().global_queue_interval(0);
}

#[test]
#[should_panic(expected = "`event_interval` must be at least 1")]
fn an_event_interval_of_zero_is_refused() {
    Builder::new_current_thread().event_interval(0);
}

#[test]
fn builders_in_conflict_give_errors() {
    let paused = Builder::new_multi_thread().start_paused(true).build().unwrap_err();
    assert_eq!(paused.kind(), std::io::ErrorKind::InvalidInput);
    assert!(paused.to_string().contains("`start_paused`"), "{paused}");
    let many = Builder::new_multi_thread().worker_threads(100_000).build().unwrap_err();
    assert_eq!(many.kind(), std::io::ErrorKind::InvalidInput);
    assert!(many.to_string().contains("`worker_threads`"), "{many}");
}

/// No thread can have such a stack; nothing is left of the attempt.
#[cfg(target_pointer_width = "64")]
#[test]
fn a_thread_that_cannot_be_started_is_an_error() {
    for _ in 0..10 {
        let built =
            Builder::new_multi_thread().worker_threads(2).thread_stack_size(1 << 50).build();
        let error = built.unwrap_err();
        assert!(
            error.to_string().starts_with("worker thread 1 of 2 could not be started: "),
            "{error}"
        );
    }
}

/// How often each hook was called: start, stop, park, unpark.
#[derive(Clone, Default)]
struct Calls(Arc<[AtomicUsize; 4]>);

impl Calls {
    fn counted(&self, hook: usize) -> impl Fn() + Send + Sync + 'static {
        let calls = self.clone();
        move || {
            calls.0[hook].fetch_add(1, Ordering::SeqCst);
        }
    }

    fn get(&self) -> [usize; 4] {
        self.0.each_ref().map(|count| count.load(Ordering::SeqCst))
    }

    fn build(&self, mut builder: Builder) -> Runtime {
        builder
            .thread_name("a-name")
            .on_thread_start(self.counted(0))
            .on_thread_stop(self.counted(1))
            .on_thread_park(self.counted(2))
            .on_thread_unpark(self.counted(3))
            .build()
            .unwrap()
    }
}

#[test]
fn threads_have_names_and_hooks() {
    for workers in [1, 2, 3, 8] {
        let calls = Calls::default();
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(workers);
        let rt = calls.build(builder);
        let name = rt.spawn_blocking(|| std::thread::current().name().map(str::to_owned));
        assert_eq!(rt.block_on(name).unwrap().as_deref(), Some("a-name"));
        // Each worker parks.
        until(|| calls.get()[2] >= workers);
        drop(rt);
        let [started, stopped, parked, unparked] = calls.get();
        assert_eq!((started, stopped), (workers + 1, workers + 1), "and one blocking thread");
        assert_eq!(unparked, parked);
    }
}

/// The thread in `block_on` parks, but the runtime has neither started it nor stops it.
#[test]
fn hooks_of_a_current_thread_runtime() {
    let calls = Calls::default();
    let rt = calls.build(Builder::new_current_thread());
    rt.block_on(async {
        // Who loses the processor for so long finds the time over, and does not park.
        let mut sleeps = 0..1_000;
        while calls.get()[2] < 5 && sleeps.next().is_some() {
            volt::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let [started, stopped, parked, unparked] = calls.get();
    assert_eq!((started, stopped, unparked), (0, 0, parked));
    assert!(parked >= 5, "{parked}");
    rt.block_on(rt.spawn_blocking(|| ())).unwrap();
    // Whoever parks sleeps once, or, to look after others, more often.
    assert!(calls.get()[2] as u64 >= rt.metrics().parks_count());
    drop(rt);
    let [started, stopped, parked, unparked] = calls.get();
    assert_eq!((started, stopped, unparked), (1, 1, parked), "one blocking thread");
}

/// Waits for something that happens soon.
#[track_caller]
fn until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never happens");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn many_workers_all_get_work() {
    let rt = multi(100);
    let barrier = Arc::new(Barrier::new(50));
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let barrier = barrier.clone();
            rt.spawn(async move {
                // Only if fifty workers run a task each at the same time does this return.
                barrier.wait();
                std::thread::current().id()
            })
        })
        .collect();
    let mut threads = HashSet::new();
    for task in tasks {
        threads.insert(rt.block_on(task).unwrap());
    }
    assert_eq!(threads.len(), 50);
}

#[test]
fn many_threads_are_in_block_on_at_once() {
    for rt in [multi(1), multi(2), multi(8), current()] {
        let rt = Arc::new(rt);
        let threads: Vec<_> = (0..40)
            .map(|i| {
                let rt = rt.clone();
                std::thread::spawn(move || {
                    for _ in 0..20 {
                        let sum = rt.block_on(async move {
                            let other = volt::spawn(async move { i });
                            volt::time::sleep(Duration::from_micros(50)).await;
                            other.await.unwrap() + 1
                        });
                        assert_eq!(sum, i + 1);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// The second thread runs only its own future; it takes over when the first one leaves.
#[test]
fn current_thread_is_taken_over_by_the_next_thread() {
    let rt = Arc::new(current());
    let (entered, receiver) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let first = std::thread::spawn({
        let rt = rt.clone();
        move || {
            rt.block_on(async move {
                volt::time::sleep(Duration::from_millis(1)).await;
                entered.send(()).unwrap();
                released.recv().unwrap();
            });
        }
    });
    receiver.recv().unwrap();
    let second = std::thread::spawn({
        let rt = rt.clone();
        // Nobody but the thread in the runtime could run the task and the timer.
        move || rt.block_on(async { volt::spawn(async { 8 }).await.unwrap() })
    });
    std::thread::sleep(Duration::from_millis(20));
    release.send(()).unwrap();
    first.join().unwrap();
    assert_eq!(second.join().unwrap(), 8);
}

#[test]
fn current_thread_runs_tasks_in_order() {
    let order = Arc::new(Mutex::new(Vec::new()));
    current().block_on(async {
        let tasks: Vec<_> = (0..100)
            .map(|i| {
                let order = order.clone();
                volt::spawn(async move { order.lock().unwrap().push(i) })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(*order.lock().unwrap(), (0..100).collect::<Vec<_>>());
}

#[test]
fn guards_nest() {
    let (one, two) = (multi(1), current());
    let flavor = || Handle::current().runtime_flavor();
    let outer = one.enter();
    let first = flavor();
    let inner = two.enter();
    assert_ne!(flavor(), first);
    drop(inner);
    assert_eq!(flavor(), first);
    drop(outer);
    assert!(Handle::try_current().is_err());
}

/// By value, with the guard still there: it borrows nothing that its drop needs.
#[test]
fn a_runtime_is_shut_down_under_its_guard() {
    for rt in [multi(1), current()] {
        let _guard = rt.enter();
        rt.shutdown_background();
        assert!(Handle::try_current().is_ok(), "the guard keeps it the current one");
        assert!(volt::spawn(async {}).join().unwrap_err().is_cancelled());
    }
    assert!(Handle::try_current().is_err());
}

/// A task of one runtime works with another one: the queues are not mixed up.
#[test]
fn runtimes_in_runtimes() {
    let (one, two) = (multi(2), multi(2));
    let other = two.handle().clone();
    one.block_on(async {
        let tasks: Vec<_> = (0..100)
            .map(|i| {
                let other = other.clone();
                volt::spawn(async move {
                    let theirs = other.spawn(async move { i });
                    let guard = other.enter();
                    let also_theirs = volt::spawn(async move { i });
                    drop(guard);
                    theirs.await.unwrap() + also_theirs.await.unwrap()
                })
            })
            .collect();
        for (i, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.await.unwrap(), 2 * i);
        }
    });
    assert_eq!(two.metrics().spawned_tasks_count(), 200);
}

#[test]
fn a_spawn_after_the_end_is_cancelled() {
    for rt in [multi(2), current()] {
        let handle = rt.handle().clone();
        drop(rt);
        let task = handle.spawn(async { 1 });
        assert!(handle.block_on(task).unwrap_err().is_cancelled());
    }
}

#[test]
fn a_runtime_ends_in_the_background_of_async_code() {
    let outer = multi(2);
    outer.block_on(async {
        let inner = multi(2);
        inner.spawn(std::future::pending::<()>());
        inner.shutdown_background();
        current().shutdown_background();
    });
}

#[test]
#[should_panic(expected = "a runtime must not be dropped where futures are polled")]
fn dropping_a_runtime_in_async_code_panics() {
    current().block_on(async { drop(multi(1)) });
}

#[test]
fn a_shutdown_does_not_wait_longer_than_it_is_told() {
    let rt = multi(2);
    rt.spawn_blocking(|| std::thread::sleep(Duration::from_secs(2)));
    std::thread::sleep(Duration::from_millis(20));
    let start = Instant::now();
    rt.shutdown_timeout(Duration::from_millis(30));
    assert!(start.elapsed() < Duration::from_secs(1));
}

/// A thread in `block_on` of a runtime that ends goes on with its own future.
#[test]
fn a_guest_outlives_the_runtime() {
    for rt in [multi(2), current()] {
        let handle = rt.handle().clone();
        let (waiting, receiver) = mpsc::channel();
        let (tx, rx) = volt::sync::oneshot::channel();
        let guest = std::thread::spawn(move || {
            handle.block_on(async move {
                waiting.send(()).unwrap();
                let task = volt::spawn(std::future::pending::<()>());
                let value: i32 = rx.await.unwrap();
                assert!(task.await.unwrap_err().is_cancelled());
                value
            })
        });
        receiver.recv().unwrap();
        std::thread::sleep(Duration::from_millis(10));
        drop(rt);
        tx.send(5).unwrap();
        assert_eq!(guest.join().unwrap(), 5);
    }
}

#[test]
fn tasks_that_spawn_while_the_runtime_ends() {
    struct Drops(Arc<AtomicUsize>);
    impl Drop for Drops {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    fn spawner(alive: Arc<AtomicUsize>) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        alive.fetch_add(1, Ordering::SeqCst);
        let drops = Drops(alive.clone());
        Box::pin(async move {
            let _drops = drops;
            loop {
                volt::task::yield_now().await;
                if alive.load(Ordering::SeqCst) < 1000 {
                    volt::spawn(spawner(alive.clone()));
                }
            }
        })
    }
    for workers in [1, 2, 8] {
        for _ in 0..10 {
            let alive = Arc::new(AtomicUsize::new(0));
            let rt = multi(workers);
            rt.spawn(spawner(alive.clone()));
            std::thread::sleep(Duration::from_millis(2));
            drop(rt);
            assert_eq!(alive.load(Ordering::SeqCst), 0);
        }
    }
}

#[test]
fn metrics_count() {
    let rt = multi(2);
    rt.block_on(async {
        for _ in 0..100 {
            volt::spawn(async {}).await.unwrap();
        }
    });
    let metrics = rt.metrics();
    assert_eq!((metrics.num_workers(), metrics.num_alive_tasks()), (2, 0));
    assert_eq!(metrics.spawned_tasks_count(), 100);
    assert!(metrics.polls_count() >= 100);
    let by_worker: u64 = (0..2).map(|worker| metrics.worker_poll_count(worker)).sum();
    assert!(by_worker <= metrics.polls_count());
    assert_eq!((metrics.global_queue_depth(), metrics.worker_local_queue_depth(0)), (0, 0));
}

/// Each mechanism of the scheduler is counted where it is used.
#[test]
fn metrics_name_each_mechanism() {
    let rt = multi(1);
    let join = |task: volt::task::JoinHandle<()>| rt.block_on(task).unwrap();
    // What a task of a worker spawns and awaits comes from its LIFO slot.
    join(rt.spawn(async {
        for _ in 0..100 {
            volt::spawn(async {}).await.unwrap();
        }
    }));
    let metrics = rt.metrics();
    assert!(metrics.worker_lifo_hits_count(0) <= metrics.lifo_hits_count());
    assert!(metrics.lifo_hits_count() >= 50, "{}", metrics.lifo_hits_count());
    // What threads outside spawn while the worker is busy is fetched in batches.
    let (release, released) = mpsc::channel::<()>();
    let (started, starts) = mpsc::channel();
    let busy = rt.spawn(async move {
        started.send(()).unwrap();
        released.recv().unwrap();
    });
    starts.recv().unwrap();
    let (before, remote) = (metrics.batch_fetches_count(), metrics.remote_schedule_count());
    let tasks: Vec<_> = (0..64).map(|_| rt.spawn(async {})).collect();
    assert_eq!(metrics.global_queue_depth(), 64);
    assert_eq!(metrics.remote_schedule_count() - remote, 64);
    release.send(()).unwrap();
    join(busy);
    tasks.into_iter().for_each(join);
    assert!(metrics.batch_fetches_count() > before);
    assert!(metrics.worker_batch_fetches_count(0) <= metrics.batch_fetches_count());
    // Of two that wait for each other one is stolen from the worker that has both.
    let rt = multi(2);
    let pair = rt.spawn(async {
        let barrier = Arc::new(Barrier::new(2));
        for _ in 0..2 {
            let barrier = barrier.clone();
            drop(volt::spawn(async move { barrier.wait() }));
        }
    });
    while !pair.is_finished() || rt.metrics().num_alive_tasks() > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let metrics = rt.metrics();
    assert!(metrics.stolen_tasks_count() >= 1);
    let by_worker: u64 = (0..2).map(|worker| metrics.worker_steal_operations(worker)).sum();
    assert!((1..=metrics.stolen_tasks_count()).contains(&by_worker));
    assert!(metrics.parks_count() >= 1);
}

type PerWorker = fn(&RuntimeMetrics, usize) -> u64;
type Total = fn(&RuntimeMetrics) -> u64;

/// What a worker does in its polls counts, and what it sleeps does not.
#[test]
fn a_worker_is_busy_while_it_polls() {
    let started = std::time::Instant::now();
    let rt = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let metrics = rt.metrics();
    let busy = || metrics.worker_total_busy_duration(0);
    let polls = |time| {
        let (done, ended) = mpsc::channel();
        rt.spawn(async move {
            std::thread::sleep(time);
            // Counted once the worker has gone on.
            volt::time::sleep(Duration::from_millis(1)).await;
            done.send(()).unwrap();
        });
        // Not in `join`, which would run the task here.
        ended.recv().unwrap();
    };
    polls(Duration::from_millis(1));
    let before = busy();
    std::thread::sleep(Duration::from_millis(300));
    polls(Duration::from_millis(40));
    until(|| busy() - before >= Duration::from_millis(40));
    let asleep = started.elapsed().checked_sub(busy()).expect("it is one thread");
    assert!(asleep >= Duration::from_millis(20), "{asleep:?}");
    let parks = metrics.worker_park_count(0);
    let counts = metrics.worker_park_unpark_count(0);
    assert!(counts + 1 >= 2 * parks, "{counts}");
}

#[test]
fn the_one_thread_is_busy_in_each_block_on() {
    let rt = Builder::new_current_thread().build().unwrap();
    for _ in 0..3 {
        rt.block_on(async {
            volt::task::yield_now().await;
            std::thread::sleep(Duration::from_millis(10));
        });
    }
    let busy = rt.metrics().worker_total_busy_duration(0);
    assert!(busy >= Duration::from_millis(30), "{busy:?}");
}

/// 100 tasks from a worker's LIFO slot; and two, of which one is stolen, if that can be.
fn use_the_workers(rt: &Runtime, workers: usize) {
    let (done, ended) = mpsc::channel();
    rt.spawn(async move {
        for _ in 0..100 {
            volt::spawn(async {}).await.unwrap();
        }
        if workers > 1 {
            let barrier = Arc::new(Barrier::new(2));
            for _ in 0..2 {
                let (barrier, done) = (barrier.clone(), done.clone());
                volt::spawn(async move {
                    barrier.wait();
                    done.send(()).unwrap();
                });
            }
        }
        drop(done);
    });
    while ended.recv_timeout(Duration::from_secs(60)).is_ok() {}
}

/// Where no thread is in `block_on`, what all do is what the workers do: and each of them counts.
#[test]
fn the_counts_of_the_workers_add_up() {
    for workers in [1, 2, 8] {
        let rt = multi(workers);
        let metrics = rt.metrics();
        use_the_workers(&rt, workers);
        let all_park = || (0..workers).all(|worker| metrics.worker_park_count(worker) > 0);
        until(|| metrics.num_alive_tasks() == 0 && all_park());
        // Nothing is counted any more.
        drop(rt);
        let (spawned, stolen) = if workers > 1 { (102, 1) } else { (100, 0) };
        let counts: [(&str, PerWorker, Total, u64); 7] = [
            ("polls", RuntimeMetrics::worker_poll_count, RuntimeMetrics::polls_count, spawned + 1),
            (
                "spawns",
                RuntimeMetrics::worker_local_spawn_count,
                |all| all.spawned_tasks_count() - all.remote_schedule_count(),
                spawned,
            ),
            (
                "LIFO hits",
                RuntimeMetrics::worker_lifo_hits_count,
                RuntimeMetrics::lifo_hits_count,
                1,
            ),
            (
                "stolen",
                RuntimeMetrics::worker_stolen_tasks_count,
                RuntimeMetrics::stolen_tasks_count,
                stolen,
            ),
            (
                "steals",
                RuntimeMetrics::worker_steal_operations,
                RuntimeMetrics::steal_operations_count,
                stolen,
            ),
            (
                "fetches",
                RuntimeMetrics::worker_batch_fetches_count,
                RuntimeMetrics::batch_fetches_count,
                1,
            ),
            (
                "parks",
                RuntimeMetrics::worker_park_count,
                RuntimeMetrics::parks_count,
                workers as u64,
            ),
        ];
        for (name, of_worker, total, least) in counts {
            let sum: u64 = (0..workers).map(|worker| of_worker(&metrics, worker)).sum();
            assert_eq!(sum, total(&metrics), "{name} of {workers}");
            assert!(sum >= least, "{sum} {name} of {workers}");
        }
        assert_eq!(metrics.spawned_tasks_count(), spawned + 1);
        assert!(metrics.steal_operations_count() <= metrics.stolen_tasks_count());
        if workers == 1 {
            assert_eq!(metrics.stolen_tasks_count(), 0);
        }
    }
}

/// A thread that joins helps, and steals what it joins. It is no worker.
#[test]
fn what_a_guest_steals_is_counted() {
    let rt = multi(1);
    let ((send, spawned), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
    let busy = rt.spawn(async move {
        // The first one takes the LIFO slot, the second one waits in the ring.
        drop(volt::spawn(async {}));
        send.send(volt::spawn(async { 7 })).unwrap();
        released.recv_timeout(Duration::from_secs(60)).unwrap();
    });
    assert_eq!(spawned.recv().unwrap().join().unwrap(), 7);
    release.send(()).expect("the worker still waits for this");
    busy.join().unwrap();
    let metrics = rt.metrics();
    assert!(metrics.stolen_tasks_count() >= metrics.steal_operations_count());
    // The worker may have stolen the other task back, if this thread took both.
    assert!(metrics.steal_operations_count() > metrics.worker_steal_operations(0));
    assert!(metrics.stolen_tasks_count() > metrics.worker_stolen_tasks_count(0));
}

/// `worker_*` used to panic for the one worker that `num_workers` counts.
#[test]
fn metrics_of_a_current_thread_runtime_are_those_of_worker_0() {
    let rt = current();
    rt.block_on(async {
        for _ in 0..100 {
            volt::spawn(async {}).await.unwrap();
        }
    });
    let metrics = rt.metrics();
    assert_eq!(metrics.num_workers(), 1);
    assert!(metrics.worker_poll_count(0) >= 100);
    assert_eq!(metrics.worker_poll_count(0), metrics.polls_count());
    assert_eq!(metrics.worker_local_spawn_count(0), 100);
    assert_eq!(metrics.worker_park_count(0), metrics.parks_count());
    assert_eq!(metrics.worker_local_queue_depth(0), 0);
    for rt in [rt, multi(3)] {
        let metrics = rt.metrics();
        let beyond = metrics.num_workers();
        let got = std::panic::catch_unwind(AssertUnwindSafe(|| metrics.worker_poll_count(beyond)));
        let message = *got.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(message, format!("worker {beyond} of a runtime with {beyond}"));
    }
}

/// Wake-ups between threads and tasks in all directions, with idle times in between.
#[test]
fn no_wake_up_is_lost_under_load() {
    let rounds = 200 * std::env::var("VOLT_STRESS").map_or(1, |s| s.parse().unwrap_or(1));
    for rt in [multi(1), multi(2), multi(8), current()] {
        let handle = rt.handle().clone();
        let (tx, rx) = mpsc::channel();
        let driver = std::thread::spawn(move || {
            for round in 0..rounds {
                let tx = tx.clone();
                handle.spawn(async move {
                    if round % 3 == 0 {
                        volt::time::sleep(Duration::from_micros(100)).await;
                    }
                    let inner = volt::spawn(async move { round });
                    tx.send(inner.await.unwrap()).unwrap();
                });
                if round % 7 == 0 {
                    std::thread::sleep(Duration::from_micros(300));
                }
            }
        });
        let receiver = rt.handle().spawn_blocking(move || {
            let deadline = Duration::from_secs(30);
            (0..rounds).map(|_| rx.recv_timeout(deadline).expect("a wake-up was lost")).sum()
        });
        let sum: usize = rt.block_on(receiver).unwrap();
        assert_eq!(sum, rounds * (rounds - 1) / 2);
        driver.join().unwrap();
    }
}

/// A thread in `block_on` has not called the hook, or has a smaller stack.
#[test]
fn tasks_run_only_on_threads_that_have_what_the_builder_promised() {
    thread_local! {
        static READY: Cell<bool> = const { Cell::new(false) };
    }
    let ready = || READY.with(Cell::get);
    let multi = || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(2);
        builder
    };
    let start = || READY.with(|ready| ready.set(true));
    let hooked = multi().on_thread_start(start).build().unwrap();
    hooked.block_on(async {
        for _ in 0..1000 {
            assert!(volt::spawn(async move { ready() }).await.unwrap());
        }
    });
    assert!(hooked.spawn(async move { ready() }).join().unwrap());
    let large = multi().thread_stack_size(64 << 20).build().unwrap();
    large.block_on(async {
        let here = std::thread::current().id();
        for _ in 0..1000 {
            assert_ne!(volt::spawn(async { std::thread::current().id() }).await.unwrap(), here);
        }
    });
    // Where nothing was promised, this is the thread that is there already.
    let plain = multi().thread_stack_size(64 << 10).build().unwrap();
    plain.block_on(async {
        let here = std::thread::current().id();
        let mut some = false;
        for _ in 0..1000 {
            some |= volt::spawn(async { std::thread::current().id() }).await.unwrap() == here;
        }
        assert!(some);
    });
}
