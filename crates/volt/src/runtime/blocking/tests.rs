//! Tests of the blocking pool, without a runtime.
#![allow(clippy::disallowed_methods, reason = "the tests look at the clock")]

use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use volt_sync::internal::{block_on, primitive::Mutex};

use super::{Config, Pool};
use crate::task::JoinHandle;

fn pool(max_threads: usize) -> Pool {
    Pool::new(Config { max_threads, ..Config::default() })
}

fn join<T>(handle: JoinHandle<T>) -> T {
    block_on(handle).unwrap()
}

/// A closure that has begun, and ends when the sender is dropped.
fn occupy(pool: &Pool) -> (JoinHandle<bool>, mpsc::Sender<()>) {
    let (release, gate) = mpsc::channel::<()>();
    let (started, begin) = mpsc::channel::<()>();
    let closure = move || {
        started.send(()).unwrap();
        gate.recv().is_err()
    };
    let handle = pool.spawn(closure).unwrap();
    begin.recv().unwrap();
    (handle, release)
}

#[test]
fn closures_return_their_results() {
    let pool = pool(4);
    let handles: Vec<_> = (0..100).map(|n| pool.spawn(move || n * 2).unwrap()).collect();
    for (n, handle) in handles.into_iter().enumerate() {
        assert_eq!(join(handle), n * 2);
    }
    assert!(pool.shutdown(None));
    assert_eq!(pool.metrics(), (0, 0, 0));
}

#[test]
fn panic_becomes_an_error_and_the_thread_lives() {
    let pool = pool(1);
    let error = block_on(pool.spawn(|| panic!("no")).unwrap()).unwrap_err();
    assert!(error.is_panic());
    assert_eq!(join(pool.spawn(|| 1).unwrap()), 1);
    assert_eq!(pool.metrics().0, 1);
    pool.shutdown(None);
}

#[test]
fn as_many_threads_as_closures_that_wait_for_each_other() {
    let pool = pool(16);
    let barrier = Arc::new(Barrier::new(16));
    let handles: Vec<_> = (0..16)
        .map(|_| {
            let barrier = barrier.clone();
            pool.spawn(move || barrier.wait().is_leader()).unwrap()
        })
        .collect();
    let leaders = handles.into_iter().map(join).filter(|leader| *leader).count();
    assert_eq!(leaders, 1);
    assert_eq!(pool.metrics().0, 16);
    pool.shutdown(None);
}

#[test]
fn no_more_threads_than_allowed() {
    let pool = pool(2);
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handles: Vec<_> = (0..20)
        .map(|_| {
            let (running, most) = (running.clone(), most.clone());
            pool.spawn(move || {
                most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                // So many are, though the second may come late.
                let start = Instant::now();
                while most.load(SeqCst) < 2 && start.elapsed() < Duration::from_secs(10) {
                    thread::yield_now();
                }
                thread::sleep(Duration::from_millis(1));
                running.fetch_sub(1, SeqCst);
            })
            .unwrap()
        })
        .collect();
    handles.into_iter().for_each(join);
    assert_eq!(most.load(SeqCst), 2);
    pool.shutdown(None);
}

#[test]
fn burst_of_short_closures_needs_few_threads() {
    let threads = || {
        let pool = pool(512);
        let handles: Vec<_> = (0..1000).map(|_| pool.spawn(|| ()).unwrap()).collect();
        handles.into_iter().for_each(join);
        let threads = pool.metrics().0;
        pool.shutdown(None);
        threads
    };
    assert!((0..10).any(|_| threads() <= 64), "for 1000 closures that do nothing");
}

#[test]
fn idle_threads_end_after_the_keep_alive_time() {
    let pool = Pool::new(Config { keep_alive: Duration::from_millis(20), ..Config::default() });
    let (running, release) = occupy(&pool);
    assert_eq!(pool.metrics().0, 1);
    drop(release);
    assert!(join(running));
    let start = Instant::now();
    while pool.metrics().0 > 0 {
        assert!(start.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(5));
    }
    join(pool.spawn(|| ()).unwrap());
    pool.shutdown(None);
}

#[test]
fn shutdown_cancels_what_waits_and_runs_what_must() {
    let pool = pool(1);
    let (running, release) = occupy(&pool);
    let drops = Arc::new(());
    let held = drops.clone();
    let waiting = pool.spawn(move || drop(held)).unwrap();
    let mandatory = pool.spawn_mandatory(|| 5).unwrap();
    let start = Instant::now();
    assert!(!pool.shutdown(Some(Duration::from_millis(30))), "the first closure still runs");
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(Arc::strong_count(&drops), 1);
    assert!(block_on(waiting).unwrap_err().is_cancelled());
    drop(release);
    assert!(join(running));
    assert_eq!(join(mandatory), 5);
    assert!(block_on(pool.spawn(|| ()).unwrap()).unwrap_err().is_cancelled());
    assert!(pool.spawn_mandatory(|| ()).is_err());
}

#[test]
fn shutdown_without_threads_returns() {
    assert!(pool(1).shutdown(None));
    assert!(pool(1).shutdown(Some(Duration::ZERO)));
}

#[test]
fn shutdown_in_the_background_does_not_wait() {
    let pool = pool(1);
    let (running, release) = occupy(&pool);
    let start = Instant::now();
    assert!(!pool.shutdown(Some(Duration::ZERO)));
    assert!(start.elapsed() < Duration::from_secs(5));
    drop(release);
    assert!(join(running));
}

#[test]
fn hooks_and_names() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let (start, stop) = (log.clone(), log.clone());
    let pool = Pool::new(Config {
        on_start: Some(Arc::new(move || {
            start.lock().unwrap().push("start");
            panic!("contained");
        })),
        on_stop: Some(Arc::new(move || stop.lock().unwrap().push("stop"))),
        thread_name: Arc::new(|| "blocker".to_owned()),
        stack_size: Some(256 * 1024),
        ..Config::default()
    });
    let name = join(pool.spawn(|| thread::current().name().map(str::to_owned)).unwrap());
    assert_eq!(name.as_deref(), Some("blocker"));
    assert!(pool.shutdown(None));
    assert_eq!(*log.lock().unwrap(), ["start", "stop"]);
}

/// A pool whose threads count themselves in their hook, and wait there until so many `have_come`. Those for
/// which that took too long are counted, too.
fn pool_with_waiting_hook(max_threads: usize, have_come: usize) -> (Pool, Arc<[AtomicUsize; 2]>) {
    let counts = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let theirs = counts.clone();
    let hook = move || {
        theirs[0].fetch_add(1, SeqCst);
        let start = Instant::now();
        while theirs[0].load(SeqCst) < have_come {
            if start.elapsed() > Duration::from_secs(10) {
                theirs[1].fetch_add(1, SeqCst);
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    };
    let on_start: Option<super::pool::Hook> = Some(Arc::new(hook));
    (Pool::new(Config { max_threads, on_start, ..Config::default() }), counts)
}

#[test]
fn hooks_do_not_wait_for_each_other_to_end() {
    const THREADS: usize = 8;
    let (pool, counts) = pool_with_waiting_hook(16, THREADS);
    let barrier = Arc::new(Barrier::new(THREADS));
    let spawn = |_| {
        let barrier = barrier.clone();
        pool.spawn(move || barrier.wait().is_leader()).unwrap()
    };
    let handles: Vec<_> = (0..THREADS).map(spawn).collect();
    assert_eq!(handles.into_iter().map(join).filter(|leader| *leader).count(), 1);
    assert_eq!(counts[1].load(SeqCst), 0, "a hook has waited in vain for other threads");
    assert_eq!(pool.metrics().0, THREADS, "a thread for each closure, and no more");
    assert!(pool.shutdown(None));
    assert_eq!(pool.metrics(), (0, 0, 0));
}

/// What waits has threads that are still in their hooks, and gets no others; but who is idle takes it.
#[test]
fn as_many_threads_in_their_hooks_as_closures_that_wait() {
    let (pool, counts) = pool_with_waiting_hook(16, 4);
    // The first thread does not wait in its hook.
    counts[0].store(4, SeqCst);
    let (running, release) = occupy(&pool);
    counts[0].store(0, SeqCst);
    let waiting: Vec<_> = (0..3).map(|n| pool.spawn(move || n).unwrap()).collect();
    let start = Instant::now();
    while counts[0].load(SeqCst) < 3 {
        assert!(start.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_millis(20));
    assert_eq!(pool.metrics().0, 4, "one that runs, and one for each that waits");
    assert_eq!(counts[0].load(SeqCst), 3);
    drop(release);
    assert!(join(running));
    for (n, handle) in waiting.into_iter().enumerate() {
        assert_eq!(join(handle), n);
    }
    while pool.metrics().1 == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(join(pool.spawn(|| 7).unwrap()), 7);
    assert_eq!(counts[0].load(SeqCst), 3, "they are still in their hooks");
    counts[0].fetch_add(1, SeqCst);
    assert!(pool.shutdown(None));
    assert_eq!(counts[1].load(SeqCst), 0);
}

/// The system refuses the first thread: an error. (A stack larger than the address space.)
#[test]
fn refused_thread_is_an_error_only_if_there_is_none() {
    let pool = Pool::new(Config { stack_size: Some(1 << 50), ..Config::default() });
    let drops = Arc::new(());
    let held = drops.clone();
    assert!(pool.spawn(move || drop(held)).is_err());
    assert_eq!(Arc::strong_count(&drops), 1);
    assert_eq!(pool.metrics(), (0, 0, 0));
    assert!(pool.shutdown(None));
}

#[test]
fn abort_before_and_after_the_start() {
    let pool = pool(1);
    let (running, release) = occupy(&pool);
    let waiting = pool.spawn(|| ()).unwrap();
    running.abort();
    waiting.abort();
    drop(release);
    assert!(join(running), "a closure that has begun is not aborted");
    assert!(block_on(waiting).unwrap_err().is_cancelled());
    pool.shutdown(None);
}

/// What holds the clock lets go of it for every closure, whatever becomes of it.
#[test]
fn each_hold_is_released() {
    let held = Arc::new(AtomicUsize::new(0));
    let add = |held: Arc<AtomicUsize>, by: usize| -> Arc<dyn Fn() + Send + Sync> {
        Arc::new(move || {
            held.fetch_add(by, SeqCst);
        })
    };
    let config = |stack_size| Config {
        max_threads: 1,
        stack_size,
        around_task: Some((add(held.clone(), 1), add(held.clone(), usize::MAX))),
        ..Config::default()
    };
    let refusing = Pool::new(config(Some(1 << 50)));
    assert!(refusing.spawn(|| ()).is_err());
    assert_eq!(held.load(SeqCst), 0, "no thread");

    let pool = Pool::new(config(None));
    let (running, gate) = occupy(&pool);
    let (aborted, panics) = (pool.spawn(|| ()).unwrap(), pool.spawn(|| panic!("no")).unwrap());
    aborted.abort();
    assert_eq!(held.load(SeqCst), 3);
    drop(gate);
    assert!(join(running));
    assert!(block_on(aborted).is_err() && block_on(panics).is_err());

    let (running, gate) = occupy(&pool);
    let dropped = pool.spawn(|| ()).unwrap();
    assert!(!pool.shutdown(Some(Duration::ZERO)));
    assert!(block_on(dropped).unwrap_err().is_cancelled());
    assert_eq!(held.load(SeqCst), 1, "only the one that runs");
    assert!(block_on(pool.spawn(|| ()).unwrap()).unwrap_err().is_cancelled());
    assert!(pool.spawn_mandatory(|| ()).is_err());
    assert_eq!(held.load(SeqCst), 1);
    drop(gate);
    assert!(join(running));
    let start = Instant::now();
    while held.load(SeqCst) > 0 {
        assert!(start.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(1));
    }
}

/// A shutdown with a timeout does not return early for a spurious wake-up, and not late.
#[test]
fn shutdown_on_an_own_thread_waits_for_the_others() {
    let pool = pool(4);
    let (running, release) = occupy(&pool);
    let theirs = pool.clone();
    let inside = pool.spawn(move || {
        let early = theirs.shutdown(Some(Duration::from_millis(20)));
        (early, theirs.metrics().0)
    });
    let (early, threads) = join(inside.unwrap());
    assert!(!early, "another closure still runs");
    assert!(threads >= 2);
    drop(release);
    assert!(join(running));
}

/// A lent thread that finds no room when it is done waits for the next job, or for room.
#[test]
fn spare_threads_are_used_again() {
    let ids = Arc::new(Mutex::new(HashSet::new()));
    let pool = pool(1);
    let lend = |gate: mpsc::Receiver<()>| {
        let (ids, (begun, began)) = (ids.clone(), mpsc::channel());
        let job = move || {
            ids.lock().unwrap().insert(thread::current().id());
            begun.send(()).unwrap();
            let _end = gate.recv();
        };
        pool.lend(Box::new(job)).unwrap();
        began.recv().unwrap();
    };
    for _ in 0..50 {
        let (gates, ends): (Vec<_>, Vec<_>) = (0..3).map(|_| mpsc::channel::<()>()).unzip();
        ends.into_iter().for_each(lend);
        drop(gates);
        // There is room for one of them.
        join(pool.spawn(|| ()).unwrap());
        let start = Instant::now();
        while pool.sleeping() < 3 {
            assert!(start.elapsed() < Duration::from_secs(10));
            thread::sleep(Duration::from_micros(50));
        }
        assert_eq!(pool.metrics().0, 1);
    }
    let used = ids.lock().unwrap().len();
    // Not exactly three: a job that comes before a thread is back asleep starts another one.
    assert!(used <= 20, "{used} threads for 150 jobs, three at a time");
    assert!(pool.shutdown(None));
    assert_eq!(pool.metrics(), (0, 0, 0));
}

/// Ends a pool when its thread ends, and tells whether all threads had ended.
struct EndsPool(std::cell::RefCell<Option<(Pool, mpsc::Sender<bool>)>>);

impl Drop for EndsPool {
    fn drop(&mut self) {
        if let Some((pool, tell)) = self.0.take() {
            tell.send(pool.shutdown(None)).unwrap();
        }
    }
}

thread_local! {
    static ENDS_POOL: EndsPool = const { EndsPool(std::cell::RefCell::new(None)) };
}

/// Some end before that thread, some while it waits, and some are idle.
#[test]
fn shutdown_in_a_thread_local_of_an_own_thread() {
    for (earlier, later, idle) in [(0, 0, 0), (0, 1, 0), (0, 3, 0), (2, 0, 0), (2, 2, 2), (0, 0, 1)]
    {
        let keep_alive = Duration::from_millis(if idle > 0 { 10_000 } else { 1 });
        let pool = Pool::new(Config { keep_alive, ..Config::default() });
        let occupied: Vec<_> = (0..earlier + later + idle + 1).map(|_| occupy(&pool)).collect();
        let (handles, mut releases): (Vec<_>, Vec<_>) = occupied.into_iter().unzip();
        drop(releases.split_off(later + 1));
        let (tell, told) = mpsc::channel();
        let theirs = pool.clone();
        let (begin, begun) = mpsc::channel();
        // Its thread ends for idleness, or since the pool ends, for which it says itself.
        let ends = pool.spawn(move || {
            ENDS_POOL.with(|ends| *ends.0.borrow_mut() = Some((theirs, tell)));
            begin.send(()).unwrap();
        });
        begun.recv().unwrap();
        if idle > 0 {
            // Nobody ends by itself: this is the shutdown, and the other one, which is late, does not wait.
            releases.clear();
            assert!(pool.shutdown(None));
        } else {
            thread::sleep(Duration::from_millis(30));
            releases.clear();
        }
        let all = told.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(all || idle > 0, "{earlier} {later}");
        join(ends.unwrap());
        for handle in handles {
            assert!(join(handle));
        }
        assert_eq!(pool.metrics(), (0, 0, 0));
    }
}
