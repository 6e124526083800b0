//! How pools begin, end, and survive what goes wrong, through the public API.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use plain threads and clocks"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use volt_sync::internal::primitive::Mutex;

use volt_pool::{Action, BuildError, Builder, Task, TaskList, ThreadPool};

fn add(to: &AtomicUsize, count: usize) {
    to.fetch_add(count, SeqCst);
}

fn message(payload: &(dyn std::any::Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("")
}

#[test]
fn bad_input_is_refused() {
    let build = |threads| Builder::new().threads(threads).build().map(drop);
    assert_eq!(build(0), Err(BuildError::ZeroThreads));
    assert_eq!(build(ThreadPool::MAX_THREADS + 1), Err(BuildError::TooManyThreads));
    assert_eq!(build(usize::MAX), Err(BuildError::TooManyThreads));
    assert_eq!(build(ThreadPool::MAX_THREADS), Ok(()));
    let named = Builder::new().thread_name("a\0b").build().map(drop);
    assert_eq!(named, Err(BuildError::InvalidName));
    assert!(catch_unwind(|| ThreadPool::with_threads(0)).is_err());
    let panic = catch_unwind(|| ThreadPool::with_threads(ThreadPool::MAX_THREADS + 1)).unwrap_err();
    let most = format!("at most {}", ThreadPool::MAX_THREADS);
    assert!(message(&*panic).ends_with(&most), "{}", message(&*panic));
}

#[test]
fn a_pool_starts_no_thread_before_there_is_work() {
    let pool = ThreadPool::with_threads(4);
    assert_eq!((pool.max_threads(), pool.started_threads()), (4, 0));
    assert_eq!(pool.install(|| 7), 7);
    assert!((1..=4).contains(&pool.started_threads()));
}

#[test]
fn a_pool_that_never_started_a_thread_ends() {
    ThreadPool::with_threads(4).shutdown();
    assert!(ThreadPool::with_threads(4).shutdown_now().is_empty());
    drop(ThreadPool::new());
}

#[test]
fn hooks_run_on_every_thread_and_names_and_stacks_are_as_asked() {
    let (started, stopped) = (Arc::new(Mutex::new(vec![])), Arc::new(Mutex::new(vec![])));
    let (on_start, on_stop) = (started.clone(), stopped.clone());
    let pool = Builder::new()
        .threads(3)
        .thread_name("worker")
        .stack_size(256 * 1024)
        .pin_threads(true)
        .on_thread_start(move |index| on_start.lock().unwrap().push(index))
        .on_thread_stop(move |index| on_stop.lock().unwrap().push(index))
        .build()
        .unwrap();
    let names = pool.broadcast(|_| std::thread::current().name().map(str::to_owned));
    assert_eq!(names, vec![Some("worker".to_owned()); 3]);
    pool.shutdown();
    for seen in [&started, &stopped] {
        let mut seen = seen.lock().unwrap().clone();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2]);
    }
}

#[test]
fn shutdown_runs_what_is_queued_and_later_work_runs_with_its_submitter() {
    let pool = ThreadPool::with_threads(2);
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..10_000 {
        let ran = ran.clone();
        pool.spawn(move || add(&ran, 1));
    }
    pool.shutdown();
    assert_eq!(ran.load(SeqCst), 10_000);
    let here = std::thread::current().id();
    assert_eq!(pool.install(|| std::thread::current().id()), here);
    let also = ran.clone();
    pool.spawn(move || add(&also, 1));
    assert_eq!(ran.load(SeqCst), 10_001);
    assert_eq!(pool.join(|| 1, || 2), (1, 2));
    pool.in_place_scope(|s| s.spawn(|_| add(&ran, 1)));
    assert_eq!(ran.load(SeqCst), 10_002);
    assert_eq!(volt_pool::block_on(pool.run(|| 5)), 5);
    pool.shutdown();
}

#[test]
fn shutdown_now_hands_back_what_has_not_begun() {
    // Nothing shows that the shutdown has begun while all threads are busy.
    let patience = [20, 200, 2_000].map(Duration::from_millis);
    assert!(patience.into_iter().any(shutdown_now_begins_within), "three times too late");
}

/// False if the shutdown began later, so that what was queued has run.
fn shutdown_now_begins_within(patience: Duration) -> bool {
    let pool = ThreadPool::with_threads(1);
    let (begun, wait) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (on_pool, release) = (begun.clone(), wait.clone());
    pool.spawn(move || {
        on_pool.wait();
        release.wait();
    });
    begun.wait();
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..5 {
        let ran = ran.clone();
        pool.spawn(move || add(&ran, 1));
    }
    let in_time = std::thread::scope(|s| {
        let installed = s.spawn(|| pool.install(|| 42));
        let awaited = s.spawn(|| volt_pool::block_on(pool.run(|| 43)));
        let counted = ran.clone();
        let scoped = s.spawn(|| pool.in_place_scope(|s| s.spawn(move |_| add(&counted, 100))));
        std::thread::sleep(Duration::from_millis(50));
        let ending = s.spawn(|| pool.shutdown_now());
        std::thread::sleep(patience);
        wait.wait();
        let list = ending.join().unwrap();
        let in_time = ran.load(SeqCst) % 100 == 0;
        // The five closures, and the nodes of the calls that wait.
        assert!(list.len() >= 5 || !in_time, "{list:?}");
        drop(list);
        assert_eq!(installed.join().unwrap(), 42, "the caller runs what was handed back");
        assert_eq!(awaited.join().unwrap(), 43);
        scoped.join().unwrap();
        in_time
    });
    assert_eq!(Arc::strong_count(&ran), 1, "nothing leaks");
    let ran = ran.load(SeqCst);
    assert!(ran == 100 || !in_time, "discarded closures are dropped, not run: {ran}");
    in_time
}

#[test]
fn shutdown_by_a_task_of_the_pool_panics() {
    static POOL: ThreadPool = ThreadPool::with_threads(1);
    let panic = catch_unwind(|| POOL.install(|| POOL.shutdown())).unwrap_err();
    assert!(message(&*panic).contains("one of its own tasks"), "{}", message(&*panic));
    let owned = Arc::new(ThreadPool::with_threads(1));
    let (send, receive) = mpsc::channel();
    let held = owned.clone();
    let (ready, go) = mpsc::channel::<()>();
    owned.spawn(move || {
        go.recv().unwrap();
        let panic = catch_unwind(AssertUnwindSafe(|| drop(held))).unwrap_err();
        send.send(message(&*panic).to_owned()).unwrap();
    });
    drop(owned);
    ready.send(()).unwrap();
    assert!(receive.recv().unwrap().contains("one of its own tasks"));
    assert_eq!(POOL.install(|| 1), 1, "the pool survives");
}

/// The task does not run in the pool that is shut down, but one of that pool waits for it.
#[test]
fn shutdown_by_what_a_task_waits_for_panics() {
    let (a, b) = (ThreadPool::with_threads(1), ThreadPool::with_threads(2));
    let end = || {
        let panic = catch_unwind(AssertUnwindSafe(|| a.shutdown())).unwrap_err();
        message(&*panic).contains("one of its own tasks")
    };
    assert!(a.install(|| b.install(end)));
    assert!(a.install(|| b.install(|| volt_pool::join(end, end)) == (true, true)));
    let ended = AtomicUsize::new(0);
    a.install(|| b.scope(|s| s.spawn(|_| add(&ended, usize::from(end())))));
    a.install(|| b.in_place_scope(|s| s.spawn(|_| add(&ended, usize::from(end())))));
    assert_eq!(ended.load(SeqCst), 2);
    assert!(a.enter(|| b.install(end)), "a guest is a part of the pool as well");
    assert_eq!(a.install(|| 1), 1, "the pool survives");
    b.install(|| a.shutdown());
}

/// Finding T2: each start fails in turn, then two, then all.
#[test]
fn failed_starts_lose_no_work() {
    for failing in 0..6_usize {
        let fails: Arc<dyn Fn(usize) -> bool + Send + Sync> = match failing {
            0..4 => Arc::new(move |start| start == failing),
            4 => Arc::new(|start| start < 2),
            _ => Arc::new(|_| true),
        };
        let pool = Builder::new().threads(4).fail_start(move |start| fails(start)).build().unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..1000 {
            let ran = ran.clone();
            pool.spawn(move || add(&ran, 1));
        }
        pool.scope(|s| {
            for _ in 0..1000 {
                s.spawn(|_| add(&ran, 1));
            }
        });
        pool.in_place_scope(|s| {
            for _ in 0..1000 {
                s.spawn(|_| add(&ran, 1));
            }
        });
        assert_eq!(pool.join(|| 1, || 2), (1, 2));
        assert_eq!(volt_pool::block_on(pool.run(|| 3)), 3);
        let _ = pool.broadcast(|_| ());
        pool.shutdown();
        assert_eq!(ran.load(SeqCst), 3000, "start {failing} fails");
    }
}

/// The caller of `join` may hold a lock that somebody else's task wants.
#[test]
fn a_join_in_a_pool_without_threads_runs_no_task_of_others() {
    let (starting, is_starting) = mpsc::channel();
    let (queueing, is_queueing) = mpsc::channel();
    let is_queueing = Mutex::new(is_queueing);
    let fail_start = move |_| {
        starting.send(()).unwrap();
        is_queueing.lock().unwrap().recv().unwrap();
        // The task is queued meanwhile.
        thread::sleep(Duration::from_millis(50));
        true
    };
    let pool = Builder::new().threads(1).fail_start(fail_start).build().unwrap();
    let (ran, ran_on) = mpsc::channel();
    thread::scope(|s| {
        let joiner = s.spawn(|| {
            assert_eq!(pool.join(|| 1, || 2), (1, 2));
        });
        is_starting.recv().unwrap();
        // Each later start.
        (0..100).for_each(|_| queueing.send(()).unwrap());
        pool.spawn(move || ran.send(thread::current().id()).unwrap());
        let ran_on = ran_on.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_ne!(ran_on, joiner.thread().id());
        joiner.join().unwrap();
    });
    pool.shutdown();
}

#[repr(C)]
struct Node {
    task: Task,
    ran: AtomicUsize,
    discarded: AtomicUsize,
}

unsafe fn count(task: NonNull<Task>, action: Action) {
    // SAFETY: the tests' tasks are nodes that live long enough.
    let node = unsafe { task.cast::<Node>().as_ref() };
    match action {
        Action::Run => node.ran.fetch_add(1, SeqCst),
        Action::Discard => node.discarded.fetch_add(1, SeqCst),
    };
}

fn nodes(count_of: usize) -> Vec<Node> {
    let node = || Node {
        task: Task::new(count),
        ran: AtomicUsize::new(0),
        discarded: AtomicUsize::new(0),
    };
    (0..count_of).map(|_| node()).collect()
}

#[test]
fn batches_run_every_task_once_or_come_back() {
    let nodes = nodes(5000);
    let pool = ThreadPool::with_threads(2);
    let mut list = TaskList::new();
    for node in &nodes {
        // SAFETY: outlives the pool's use of it, queued once.
        unsafe { list.push(NonNull::from(node).cast()) };
    }
    pool.schedule_batch(list).unwrap();
    pool.shutdown();
    assert!(nodes.iter().all(|node| node.ran.load(SeqCst) == 1));
    // SAFETY: as above, and it has run.
    assert!(unsafe { pool.schedule(NonNull::from(&nodes[0]).cast()) }.is_err());
    let mut list = TaskList::new();
    // SAFETY: as above, and it was refused.
    unsafe { list.push(NonNull::from(&nodes[0]).cast()) };
    let list = pool.schedule_batch(list).unwrap_err();
    assert_eq!(list.len(), 1);
    drop(list);
    assert_eq!(nodes[0].discarded.load(SeqCst), 1);
}

/// A guest's own queue is nobody's after the threads have ended.
#[test]
fn a_batch_of_a_guest_runs_or_comes_back() {
    let nodes = nodes(4);
    let list = |nodes: &[Node]| {
        let mut list = TaskList::new();
        for node in nodes {
            // SAFETY: outlives the pool's use of it, queued once.
            unsafe { list.push(NonNull::from(node).cast()) };
        }
        list
    };
    let pool = Builder::new().threads(1).fail_start(|_| true).build().unwrap();
    let first = list(&nodes[..2]);
    pool.enter(|| pool.schedule_batch(first)).unwrap();
    assert!(nodes[..2].iter().all(|node| node.ran.load(SeqCst) == 1), "without any thread");
    pool.shutdown();
    let second = list(&nodes[2..]);
    let back = pool.enter(|| pool.schedule_batch(second)).unwrap_err();
    assert_eq!(back.len(), 2);
    drop(back);
    assert!(nodes[2..].iter().all(|node| node.discarded.load(SeqCst) == 1));
}

/// The thread that the broadcast waits for ends first, and the shutdown waits for the broadcast.
#[test]
fn a_thread_that_ends_leaves_no_part_of_a_broadcast_behind() {
    let pool = Arc::new(ThreadPool::with_threads(2));
    let (begun, release) = (Arc::new(Barrier::new(3)), Arc::new(Barrier::new(2)));
    let (on_pool, wait) = (begun.clone(), release.clone());
    pool.spawn(move || {
        on_pool.wait();
        wait.wait();
    });
    let (send, results) = mpsc::channel();
    let (on_pool, inside, ended) = (begun.clone(), pool.clone(), send.clone());
    let (give_back, _kept) = mpsc::channel();
    pool.spawn(move || {
        on_pool.wait();
        let parts = inside.broadcast(|index| index);
        // The last `Arc` must not be dropped here, where it would wait for this very thread.
        give_back.send(inside).unwrap();
        send.send(parts).unwrap();
    });
    begun.wait();
    let ending = pool.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        ended.send(vec![ending.shutdown_now().len()]).unwrap();
    });
    std::thread::sleep(Duration::from_millis(100));
    release.wait();
    let patience = Duration::from_secs(20);
    assert_eq!(results.recv_timeout(patience), Ok(vec![0, 1]), "the broadcast ends");
    assert_eq!(results.recv_timeout(patience), Ok(vec![0]), "the shutdown ends");
    assert_eq!(pool.broadcast(|index| index), [0, 1], "later ones run with their caller");
}

#[test]
#[cfg(debug_assertions)]
fn scheduling_a_queued_task_again_panics() {
    let nodes = nodes(1);
    let mut list = TaskList::new();
    let task = NonNull::from(&nodes[0]).cast();
    // SAFETY: outlives the list.
    unsafe { list.push(task) };
    // SAFETY: breaks the rule on purpose; debug builds check it before anything is linked.
    let twice = catch_unwind(AssertUnwindSafe(|| unsafe { TaskList::new().push(task) }));
    assert!(message(&*twice.unwrap_err()).contains("already queued"));
    let pool = ThreadPool::with_threads(1);
    // SAFETY: as for the one above.
    assert!(catch_unwind(AssertUnwindSafe(|| unsafe { pool.schedule(task) })).is_err());
}

#[test]
fn a_raw_task_that_panics_takes_no_thread_with_it() {
    unsafe fn panics(task: NonNull<Task>, _: Action) {
        // SAFETY: made by `Box::into_raw` below.
        drop(unsafe { Box::from_raw(task.as_ptr()) });
        panic!("a raw task");
    }
    let pool = ThreadPool::with_threads(1);
    for _ in 0..3 {
        let task = NonNull::from(Box::leak(Box::new(Task::new(panics))));
        // SAFETY: fresh, and freed by its function.
        unsafe { pool.schedule(task) }.unwrap();
    }
    assert_eq!(pool.install(|| volt_pool::join(|| 1, || 2)), (1, 2));
    // Without any thread it runs inside whatever submitted it, which it must not unwind.
    let alone = Builder::new().threads(1).fail_start(|_| true).build().unwrap();
    let task = NonNull::from(Box::leak(Box::new(Task::new(panics))));
    // SAFETY: fresh, and freed by its function.
    assert!(unsafe { alone.schedule(task) }.is_ok());
}

#[test]
fn submissions_from_many_threads_all_run() {
    let pool = ThreadPool::with_threads(3);
    let ran = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..5000 {
                    let ran = ran.clone();
                    pool.spawn(move || add(&ran, 1));
                }
            });
        }
    });
    pool.shutdown();
    assert_eq!(ran.load(SeqCst), 20_000);
}

/// A shutdown in the middle of submissions from outside: each one runs, here or there.
#[test]
fn shutdown_races_with_submissions() {
    for round in 0..200 {
        let pool = ThreadPool::with_threads(2);
        let ran = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|s| {
            s.spawn(|| {
                for _ in 0..100 {
                    let ran = ran.clone();
                    pool.spawn(move || add(&ran, 1));
                }
            });
            if round % 2 == 0 {
                std::thread::yield_now();
            }
            pool.shutdown();
        });
        assert_eq!(ran.load(SeqCst), 100);
    }
}

#[cfg(target_os = "linux")]
fn switches() -> (u64, u64) {
    let mut total = (0, 0);
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let Ok(name) = std::fs::read_to_string(task.path().join("comm")) else { continue };
        if name.trim() != "quiet" {
            continue;
        }
        let status = std::fs::read_to_string(task.path().join("status")).unwrap();
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap();
        for line in status.lines() {
            if let Some((name, value)) = line.split_once(':') {
                if name.ends_with("_ctxt_switches") {
                    total.0 += value.trim().parse::<u64>().unwrap();
                }
            }
        }
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        total.1 += fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    }
    total
}

/// How long the threads named `quiet2` have been running on a processor, in nanoseconds.
#[cfg(all(target_os = "linux", not(volt_tsan)))]
fn running_ns() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let mine = tasks.filter(|task| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "quiet2")
    });
    mine.map(|task| {
        let stat = std::fs::read_to_string(task.path().join("schedstat")).unwrap();
        stat.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    })
    .sum()
}

/// After a burst each thread runs for less than a millisecond more. Counted in the time that it runs,
/// since here other tests may have the processor. (Not of a program that ThreadSanitizer has slowed.)
///
/// What a hypervisor takes of a thread's time counts as time that it runs. So three of twenty bursts may
/// be followed by more.
#[test]
#[cfg(all(target_os = "linux", not(volt_tsan)))]
fn a_pool_is_quiet_within_a_millisecond_of_a_burst() {
    let pool = Builder::new().threads(2).thread_name("quiet2").build().unwrap();
    assert_eq!(pool.broadcast(|index| index), [0, 1]);
    let burst = |_| {
        let ran = AtomicUsize::new(0);
        pool.scope(|s| (0..2000).for_each(|_| s.spawn(|_| add(&ran, 1))));
        assert_eq!(ran.load(SeqCst), 2000);
        let before = running_ns();
        std::thread::sleep(Duration::from_millis(20));
        running_ns() - before
    };
    let spent: Vec<u64> = (0..20).map(burst).collect();
    let long = spent.iter().filter(|&&ns| ns >= 2_000_000).count();
    assert!(long <= 3, "two threads ran for so many ns after bursts: {spent:?}");
}

/// No wake-ups and no processor time while there is nothing to do.
#[test]
#[cfg(target_os = "linux")]
fn an_idle_pool_does_nothing() {
    let pool = Builder::new().threads(2).thread_name("quiet").build().unwrap();
    assert_eq!(pool.broadcast(|index| index), [0, 1]);
    pool.scope(|s| (0..1000).for_each(|_| s.spawn(|_| ())));
    // Quiet within a millisecond of its own running time; here other tests may have the processor.
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let before = switches();
        std::thread::sleep(Duration::from_millis(300));
        let after = switches();
        if before == after {
            break;
        }
        assert!(Instant::now() < deadline, "{before:?} {after:?}");
    }
}

#[test]
fn dropping_the_future_cancels_work_that_has_not_begun() {
    let pool = ThreadPool::with_threads(1);
    let (send, receive) = mpsc::channel::<()>();
    let blocked = pool.run(move || receive.recv().is_ok());
    let ran = Arc::new(AtomicBool::new(false));
    let flag = ran.clone();
    let cancelled = pool.run(move || flag.store(true, SeqCst));
    drop(cancelled);
    assert_eq!(Arc::strong_count(&ran), 1, "the closure is dropped at once");
    send.send(()).unwrap();
    assert!(volt_pool::block_on(blocked));
    pool.shutdown();
    assert!(!ran.load(SeqCst));
    let panic = catch_unwind(|| {
        let pool = ThreadPool::with_threads(1);
        volt_pool::block_on(pool.run(|| panic!("in the pool")))
    });
    assert_eq!(message(&*panic.unwrap_err()), "in the pool");
}

/// Who runs the queue because no thread could be started leaves it to the first one that could be:
/// a call that submits one task must not go on with those of others, which may wait for the caller.
#[test]
fn a_submitter_leaves_the_queue_to_a_thread_that_starts() {
    let pool = Builder::new().threads(1).fail_start(|start| start == 0).build().unwrap();
    let pool = Arc::new(pool);
    let released = Arc::new(AtomicBool::new(false));
    let wait_for = |flag: &AtomicBool| {
        let start = Instant::now();
        while !flag.load(SeqCst) && start.elapsed() < Duration::from_secs(10) {
            thread::yield_now();
        }
        flag.load(SeqCst)
    };
    let (others, on_release) = (pool.clone(), released.clone());
    let start = Instant::now();
    pool.spawn(move || {
        let submit_two = move || {
            let begun = Arc::new(AtomicBool::new(false));
            let (first, second) = (on_release.clone(), on_release);
            let begins = begun.clone();
            others.spawn(move || {
                begins.store(true, SeqCst);
                assert!(wait_for(&first));
            });
            assert!(wait_for(&begun), "a thread has started and runs the first one");
            others.spawn(move || assert!(wait_for(&second), "run by who has to release it"));
        };
        thread::spawn(submit_two).join().unwrap();
    });
    assert!(start.elapsed() < Duration::from_secs(9), "it ran the task that waits for it");
    released.store(true, SeqCst);
    pool.shutdown();
}
