//! Ends of pools in awkward places: destructors of thread-locals, hooks, other pools' tasks.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use plain threads and clocks"
)]

use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::task::Context;
use std::time::{Duration, Instant};

use volt_pool::{Action, Builder, Scope, Task, ThreadPool};
use volt_sync::internal::primitive::Mutex;

/// Runs `test` on a thread of its own, and fails if it does not end.
fn must_end(test: impl FnOnce() + Send + 'static) {
    let (send, ended) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        send.send(()).unwrap();
    });
    match ended.recv_timeout(Duration::from_secs(20)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it does not end"),
        _ => thread.join().unwrap(),
    }
}

fn add(to: &AtomicUsize) {
    to.fetch_add(1, SeqCst);
}

/// Calls its closure when its thread ends.
struct AtEnd(Option<Box<dyn FnOnce()>>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            work();
        }
    }
}

thread_local! {
    static AT_END: RefCell<AtEnd> = const { RefCell::new(AtEnd(None)) };
}

fn at_end(work: impl FnOnce() + 'static) {
    AT_END.with(|at_end| at_end.borrow_mut().0 = Some(Box::new(work)));
}

/// Everything that a pool can be asked for by a thread of its own that has ended its part.
fn use_all(pool: &ThreadPool, ran: &Arc<AtomicUsize>) {
    let count = || {
        let ran = ran.clone();
        move || add(&ran)
    };
    pool.spawn(count());
    pool.install(count());
    pool.join(count(), count());
    pool.scope(|s| s.spawn(|_| count()()));
    pool.in_place_scope(|s| s.spawn(|_| count()()));
    volt_pool::block_on(pool.run(count()));
    pool.broadcast(|_| ());
}

#[test]
fn a_thread_local_of_a_pools_thread_uses_and_ends_the_pool() {
    for threads in [1, 2, 4] {
        must_end(move || {
            let pool = Arc::new(ThreadPool::with_threads(threads));
            let ran = Arc::new(AtomicUsize::new(0));
            pool.broadcast(|_| {
                let (pool, ran) = (pool.clone(), ran.clone());
                at_end(move || {
                    use_all(&pool, &ran);
                    pool.shutdown();
                    assert!(pool.shutdown_now().is_empty());
                });
            });
            pool.shutdown();
            assert_eq!(ran.load(SeqCst), 7 * threads);
        });
    }
}

#[test]
fn a_thread_local_of_another_thread_ends_the_pool() {
    must_end(|| {
        for other in [false, true] {
            let pool = ThreadPool::with_threads(2);
            let ran = Arc::new(AtomicUsize::new(0));
            let counted = ran.clone();
            let hold = move || {
                at_end(move || {
                    for _ in 0..100 {
                        let ran = counted.clone();
                        pool.spawn(move || add(&ran));
                    }
                    use_all(&pool, &counted);
                    pool.shutdown();
                    drop(pool);
                });
            };
            if other {
                let second = ThreadPool::with_threads(1);
                second.spawn(hold);
                second.shutdown();
            } else {
                std::thread::spawn(hold).join().unwrap();
            }
            assert_eq!(ran.load(SeqCst), 107);
        }
    });
}

/// Two pools without a thread: what one's task submits to the other runs as well.
#[test]
fn two_pools_without_threads_run_all_work() {
    let alone = || Arc::new(Builder::new().threads(2).fail_start(|_| true).build().unwrap());
    let (a, b) = (alone(), alone());
    let ran = Arc::new(AtomicUsize::new(0));
    let (inner, outer, counted) = (b.clone(), a.clone(), ran.clone());
    a.spawn(move || {
        let again = counted.clone();
        inner.spawn(move || {
            outer.spawn(move || add(&again));
            add(&counted);
        });
    });
    assert_eq!(ran.load(SeqCst), 2);
}

/// What comes in while the threads end is run by the shutdown, panics or not.
#[test]
fn a_raw_task_that_panics_during_the_shutdown_stops_nothing() {
    static RAN: AtomicUsize = AtomicUsize::new(0);
    unsafe fn panics(task: NonNull<Task>, action: Action) {
        // SAFETY: made by `Box::into_raw` below.
        drop(unsafe { Box::from_raw(task.as_ptr()) });
        if action == Action::Run {
            RAN.fetch_add(1, SeqCst);
        }
        panic!("a raw task");
    }
    let (stopping, stopped) = mpsc::channel();
    let (release, go) = mpsc::channel::<()>();
    let (stopping, go) = (Mutex::new(stopping), Mutex::new(go));
    let pool = Builder::new()
        .threads(1)
        .on_thread_stop(move |_| {
            stopping.lock().unwrap().send(()).unwrap();
            go.lock().unwrap().recv().unwrap();
        })
        .build()
        .unwrap();
    pool.install(|| ());
    std::thread::scope(|s| {
        let ending = s.spawn(|| pool.shutdown());
        stopped.recv().unwrap();
        for _ in 0..3 {
            let task = NonNull::from(Box::leak(Box::new(Task::new(panics))));
            // SAFETY: fresh, and freed by its function.
            unsafe { pool.schedule(task) }.unwrap();
        }
        release.send(()).unwrap();
        ending.join().expect("the shutdown does not panic");
    });
    assert_eq!(RAN.load(SeqCst), 3);
}

/// A pool that is dropped by its own task is waited for by nobody: its threads run everything.
#[test]
fn what_a_stop_hook_spawns_runs_although_nobody_waits() {
    must_end(|| {
        let (send, receive) = mpsc::channel();
        let send = Mutex::new(send);
        let pool = Builder::new()
            .threads(1)
            .on_thread_stop(move |index| {
                let send = send.lock().unwrap().clone();
                volt_pool::spawn(move || send.send(index).unwrap());
            })
            .build()
            .unwrap();
        let pool = Arc::new(pool);
        let held = pool.clone();
        let (ready, go) = mpsc::channel::<()>();
        pool.spawn(move || {
            go.recv().unwrap();
            assert!(catch_unwind(AssertUnwindSafe(|| drop(held))).is_err());
        });
        drop(pool);
        ready.send(()).unwrap();
        assert_eq!(receive.recv_timeout(Duration::from_secs(10)), Ok(0));
    });
}

/// Each pool's end waits for a task that waits for the other one's: the second one to ask panics.
#[test]
fn pools_that_end_each_other_panic() {
    must_end(|| {
        let (a, b) = (ThreadPool::with_threads(1), ThreadPool::with_threads(1));
        let (ends, panics) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let met = Barrier::new(2);
        let end = |pool: &ThreadPool| {
            met.wait();
            let ended = catch_unwind(AssertUnwindSafe(|| pool.shutdown()));
            add(if ended.is_ok() { &ends } else { &panics });
        };
        std::thread::scope(|s| {
            s.spawn(|| a.install(|| end(&b)));
            s.spawn(|| b.install(|| end(&a)));
        });
        assert_eq!((ends.load(SeqCst), panics.load(SeqCst)), (1, 1));
    });
}

/// As above along three pools: nobody waits for the task itself, but for the end of its pool.
#[test]
fn a_task_of_a_pool_that_is_being_ended_does_not_end_the_one_that_waits() {
    must_end(|| {
        let (stopping, stops) = mpsc::channel();
        let third = Builder::new().threads(2).on_thread_stop(move |_| _ = stopping.send(()));
        let third = third.build().unwrap();
        assert_eq!(third.broadcast(|index| index), [0, 1]);
        let [first, second] = [(); 2].map(|()| Arc::new(ThreadPool::with_threads(1)));
        let (send, receive) = mpsc::channel();
        let ended = first.clone();
        third.spawn(move || {
            // The other thread, which has nothing to do, stops when the shutdown has begun.
            stops.recv().unwrap();
            let panicked = catch_unwind(AssertUnwindSafe(|| ended.shutdown())).is_err();
            send.send((panicked, ended)).unwrap();
        });
        first.install(|| {
            second.install(|| third.shutdown());
        });
        let (panicked, _first) = receive.recv().unwrap();
        assert!(panicked, "the third pool's end is what the first one's task waits for");
        assert_eq!(first.install(|| 1), 1);
    });
}

/// Whoever gets the queued tasks back runs them, panics or not, or drops them: all of either.
#[test]
fn what_is_handed_back_is_run_or_dropped_as_a_whole() {
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            add(&self.0);
            assert_ne!(self.0.load(SeqCst), 3, "the third one");
        }
    }
    for run in [true, false] {
        let pool = ThreadPool::with_threads(1);
        let (begun, started) = mpsc::channel();
        let (release, go) = mpsc::channel::<()>();
        pool.spawn(move || {
            begun.send(()).unwrap();
            go.recv().unwrap();
        });
        started.recv().unwrap();
        let counts = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        for _ in 0..10 {
            let (ran, dropped) = (counts[0].clone(), Dropped(counts[1].clone()));
            pool.spawn(move || {
                let _dropped = dropped;
                add(&ran);
            });
        }
        let list = std::thread::scope(|s| {
            let ending = s.spawn(|| pool.shutdown_now());
            std::thread::sleep(Duration::from_millis(100));
            release.send(()).unwrap();
            ending.join().unwrap()
        });
        // On a machine that is slow to begin the shutdown, some have run before.
        let before = 10 - list.len();
        if run {
            list.run()
        } else {
            drop(list)
        }
        let ran = if run { 10 } else { before };
        assert_eq!(counts.map(|count| count.load(SeqCst)), [ran, 10]);
    }
}

/// An absurd stack size is a thread that cannot be started.
#[test]
fn no_stack_of_any_size_loses_work() {
    for size in [1 << 60, usize::MAX >> 1, usize::MAX - 1, usize::MAX] {
        let pool = Builder::new().threads(2).stack_size(size).build().unwrap();
        assert_eq!(pool.install(|| 1), 1);
        assert_eq!(pool.join(|| 1, || 2), (1, 2));
        pool.shutdown();
    }
}

/// A dropped future keeps nothing of its task, although the pool still has its node.
#[test]
fn a_dropped_future_lets_go_of_its_waker() {
    struct Flag;
    impl std::task::Wake for Flag {
        fn wake(self: Arc<Self>) {}
    }
    let pool = ThreadPool::with_threads(1);
    let (send, receive) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    pool.spawn(move || {
        begun.send(()).unwrap();
        receive.recv().unwrap();
    });
    // Else the thread may take what comes now first.
    has_begun.recv().unwrap();
    let waiting = Arc::new(Flag);
    let mut future = pool.run(|| 1);
    let polled = {
        let waker = std::task::Waker::from(waiting.clone());
        Pin::new(&mut future).poll(&mut Context::from_waker(&waker))
    };
    assert!(polled.is_pending());
    drop(future);
    assert_eq!(Arc::strong_count(&waiting), 1);
    send.send(()).unwrap();
}

/// How the owner of a scope comes to be asleep, with all of its tasks in the hands of others.
#[derive(Clone, Copy)]
enum Owner {
    /// A thread of the pool.
    Inside,
    /// A thread of another pool, for which one of this pool waits.
    Foreign,
}

fn busy(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// A scope's task that spawns another one.
struct Spawner {
    started: AtomicBool,
    spawned: AtomicBool,
    ran: AtomicUsize,
    /// When it spawns.
    after: Duration,
}

impl Spawner {
    fn body<'s>(&'s self, s: &Scope<'s>) {
        s.spawn(move |s| {
            self.started.store(true, SeqCst);
            busy(self.after);
            s.spawn(move |_| add(&self.ran));
            self.spawned.store(true, SeqCst);
            busy(Duration::from_millis(1));
        });
        wait_for(&self.started);
    }
}

fn wait_for(flag: &AtomicBool) {
    while !flag.load(SeqCst) {
        std::thread::yield_now();
    }
}

/// Ends a pool of three threads while a scope's owner sleeps, another thread runs the scope's task,
/// and the third one is idle. The task spawns another one: `early`, just before the shutdown begins,
/// or long after that.
fn end_beside_a_scope(owner: Owner, now: bool, early: bool) {
    let (pool, other) = (ThreadPool::with_threads(3), ThreadPool::with_threads(1));
    pool.broadcast(|_| ());
    let after = Duration::from_millis(if early { 3 } else { 100 });
    // The others fall asleep.
    std::thread::sleep(after);
    let [started, spawned] = [(); 2].map(|()| AtomicBool::new(false));
    let scope = Spawner { started, spawned, ran: AtomicUsize::new(0), after };
    std::thread::scope(|threads| {
        threads.spawn(|| match owner {
            Owner::Inside => pool.install(|| volt_pool::scope(|s| scope.body(s))),
            Owner::Foreign => {
                pool.install(|| other.install(|| pool.in_place_scope(|s| scope.body(s))));
            }
        });
        if early {
            wait_for(&scope.spawned);
        } else {
            wait_for(&scope.started);
            std::thread::sleep(after / 2);
        }
        if now {
            drop(pool.shutdown_now());
        } else {
            pool.shutdown();
        }
    });
    assert_eq!(scope.ran.load(SeqCst), 1);
}

/// The idle thread leaves first, and the one that spawns does not look at its queue again.
#[test]
fn a_task_spawned_during_a_shutdown_is_run() {
    for owner in [Owner::Inside, Owner::Foreign] {
        for now in [true, false] {
            must_end(move || end_beside_a_scope(owner, now, false));
        }
    }
}

/// The idle thread is woken for the task, and leaves without it.
#[test]
fn a_task_spawned_just_before_a_shutdown_is_run() {
    for owner in [Owner::Inside, Owner::Foreign] {
        must_end(move || (0..60).for_each(|_| end_beside_a_scope(owner, true, true)));
    }
}
