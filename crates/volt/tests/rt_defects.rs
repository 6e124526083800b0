//! User code that panics, blocks or ends the runtime at a bad moment hangs nobody.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Waker;
use std::time::{Duration, Instant};

use volt::runtime::{Builder, Runtime};
use volt::task::{block_in_place, spawn_blocking, yield_now};

const SOON: Duration = Duration::from_secs(20);

fn multi(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
}

fn current() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Calls `f` on another thread, and fails if it takes too long.
fn within<T: Send + 'static>(what: &str, f: impl FnOnce() -> T + Send + 'static) -> T {
    let (tx, rx) = mpsc::channel();
    std::thread::spawn(move || tx.send(f()));
    rx.recv_timeout(SOON).unwrap_or_else(|_| panic!("{what} hangs, or panicked"))
}

/// Counts the values that were dropped.
struct Drops(Arc<AtomicUsize>);

impl Drop for Drops {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

// ---- Hooks

#[test]
fn a_panic_of_the_thread_names_costs_no_thread() {
    for flavor in [Builder::new_multi_thread, Builder::new_current_thread] {
        within("the runtime", move || {
            let calls = Arc::new(AtomicUsize::new(0));
            let count = calls.clone();
            let rt = flavor()
                .worker_threads(2)
                .thread_name_fn(move || {
                    count.fetch_add(1, Ordering::SeqCst);
                    panic!("no name")
                })
                .build()
                .unwrap();
            // Each waits for the other: the second thread is started by the first.
            let barrier = Arc::new(std::sync::Barrier::new(3));
            let tasks: Vec<_> = (0..3)
                .map(|_| {
                    let barrier = barrier.clone();
                    rt.spawn_blocking(move || barrier.wait().is_leader())
                })
                .collect();
            let leaders: usize =
                tasks.into_iter().map(|task| usize::from(rt.block_on(task).unwrap())).sum();
            assert_eq!(leaders, 1);
            assert!(calls.load(Ordering::SeqCst) >= 3);
            drop(rt);
        });
    }
}

#[test]
fn a_name_that_no_thread_can_have_costs_no_thread() {
    within("the runtime", || {
        let rt = Builder::new_multi_thread().worker_threads(1).thread_name("a\0b").build().unwrap();
        let name = rt.spawn_blocking(|| std::thread::current().name().map(str::to_owned));
        assert_eq!(rt.block_on(name).unwrap().as_deref(), Some("ab"));
    });
}

/// Of the names' function nothing is called under a lock that `spawn_blocking` needs.
#[test]
fn thread_names_may_use_the_runtime() {
    within("the runtime", || {
        let handle: Arc<std::sync::OnceLock<volt::runtime::Handle>> = Arc::default();
        let theirs = handle.clone();
        let rt = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name_fn(move || match theirs.get() {
                None => "worker".into(),
                Some(handle) => format!("blocking-{}", handle.metrics().num_blocking_threads()),
            })
            .build()
            .unwrap();
        handle.set(rt.handle().clone()).unwrap();
        let name = rt.spawn_blocking(|| std::thread::current().name().map(str::to_owned));
        assert_eq!(rt.block_on(name).unwrap().as_deref(), Some("blocking-0"));
    });
}

#[test]
fn panics_of_hooks_are_contained() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("a payload that panics in its drop");
            }
        }
    }
    for flavor in [Builder::new_multi_thread, Builder::new_current_thread] {
        within("the runtime", move || {
            let calls = Arc::new([const { AtomicUsize::new(0) }; 4]);
            let hook = |which: usize| {
                let calls = calls.clone();
                move || {
                    calls[which].fetch_add(1, Ordering::SeqCst);
                    std::panic::panic_any(Bomb)
                }
            };
            let rt = flavor()
                .worker_threads(2)
                .on_thread_start(hook(0))
                .on_thread_stop(hook(1))
                .on_thread_park(hook(2))
                .on_thread_unpark(hook(3))
                .build()
                .unwrap();
            for round in 0..20 {
                let sum = rt.block_on(async move {
                    volt::time::sleep(Duration::from_micros(200)).await;
                    let one = volt::spawn(async move { round });
                    spawn_blocking(move || round).await.unwrap() + one.await.unwrap()
                });
                assert_eq!(sum, 2 * round);
            }
            drop(rt);
            for (which, calls) in calls.iter().enumerate() {
                assert!(calls.load(Ordering::SeqCst) > 0, "hook {which} was not called");
            }
        });
    }
}

// ---- Shutdown on a thread of the runtime

#[test]
fn a_runtime_is_dropped_on_its_own_blocking_thread() {
    for make in [|| multi(2), current] {
        let drops = within("the drop", move || {
            let rt = make();
            let drops = Arc::new(AtomicUsize::new(0));
            for _ in 0..10 {
                let counted = Drops(drops.clone());
                rt.spawn(async move {
                    let _counted = counted;
                    std::future::pending::<()>().await;
                });
            }
            // Another one, for which the drop does wait.
            let (done, other) = (drops.clone(), Arc::new(AtomicBool::new(false)));
            let finished = other.clone();
            rt.spawn_blocking(move || {
                std::thread::sleep(Duration::from_millis(50));
                finished.store(true, Ordering::SeqCst);
            });
            let (tx, rx) = mpsc::channel();
            let handle = rt.handle().clone();
            std::thread::sleep(Duration::from_millis(5));
            drop(handle.spawn_blocking(move || {
                drop(rt);
                tx.send((drops.load(Ordering::SeqCst), other.load(Ordering::SeqCst))).unwrap();
            }));
            let (dropped, waited) = rx.recv_timeout(SOON).unwrap();
            assert!(waited, "the drop waits for the other blocking threads");
            assert_eq!(dropped, done.load(Ordering::SeqCst));
            dropped
        });
        assert_eq!(drops, 10);
    }
}

#[test]
fn a_runtime_is_dropped_in_its_own_block_in_place() {
    for workers in [1, 4] {
        within("the drop", move || {
            let rt = multi(workers);
            let handle = rt.handle().clone();
            let drops = Arc::new(AtomicUsize::new(0));
            let counted = Drops(drops.clone());
            rt.spawn(async move {
                let _counted = counted;
                std::future::pending::<()>().await;
            });
            let (tx, rx) = mpsc::channel();
            drop(handle.spawn(async move {
                block_in_place(|| drop(rt));
                tx.send(()).unwrap();
            }));
            rx.recv_timeout(SOON).unwrap();
            let start = Instant::now();
            while drops.load(Ordering::SeqCst) == 0 {
                assert!(start.elapsed() < SOON, "the shutdown goes on in the background");
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    }
}

#[test]
fn a_runtime_is_dropped_in_block_in_place_of_its_block_on() {
    within("the drop", || {
        let rt = multi(2);
        let handle = rt.handle().clone();
        let task = rt.spawn(std::future::pending::<()>());
        let error = handle.block_on(async move {
            volt::time::sleep(Duration::from_millis(1)).await;
            block_in_place(|| drop(rt));
            task.await.unwrap_err()
        });
        assert!(error.is_cancelled());
    });
}

/// In the poll of a task, the drop is still a panic that says so, not a thread that waits for
/// itself.
#[test]
fn a_runtime_that_is_dropped_in_its_own_task_says_so() {
    for make in [|| multi(1), current] {
        within("the drop", move || {
            let rt = make();
            let handle = rt.handle().clone();
            let (tx, rx) = mpsc::channel();
            let task = handle.spawn(async move {
                let caught = catch_unwind(AssertUnwindSafe(|| drop(rt)));
                tx.send(caught.is_err()).unwrap();
            });
            let _cancelled = handle.block_on(task);
            assert!(rx.recv_timeout(SOON).unwrap());
        });
    }
}

// ---- A current-thread runtime

/// The thread in `block_on` is in a long poll: of a task, or of its own future beside a task that
/// yields.
#[test]
fn shutdown_timeout_of_a_current_thread_runtime_is_kept() {
    for in_task in [true, false] {
        let rt = current();
        let handle = rt.handle().clone();
        let drops = Arc::new(AtomicUsize::new(0));
        let counted = Drops(drops.clone());
        let release = Arc::new(AtomicBool::new(false));
        let released = release.clone();
        let (tx, rx) = mpsc::channel();
        let guest = std::thread::spawn(move || {
            let long = async move {
                yield_now().await;
                tx.send(()).unwrap();
                while !released.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            };
            handle.block_on(async move {
                let pending = volt::spawn(async move {
                    let _counted = counted;
                    loop {
                        yield_now().await;
                    }
                });
                if in_task {
                    let _cancelled = volt::spawn(long).await;
                } else {
                    long.await;
                }
                pending.await.unwrap_err().is_cancelled()
            })
        });
        rx.recv_timeout(SOON).unwrap();
        let (done, waiter) = mpsc::channel();
        std::thread::spawn(move || {
            let start = Instant::now();
            rt.shutdown_timeout(Duration::from_millis(100));
            done.send(start.elapsed()).unwrap();
        });
        let took = waiter.recv_timeout(SOON);
        release.store(true, Ordering::SeqCst);
        let took = took.expect("the shutdown waits for a poll that does not end");
        if in_task {
            assert!(took >= Duration::from_millis(100), "it waits for as long as it was told");
        }
        assert!(guest.join().unwrap(), "the other task was cancelled");
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    }
}

#[test]
#[should_panic(expected = "`block_in_place` needs a multi-thread runtime")]
fn block_in_place_in_the_first_poll_of_block_on() {
    current().block_on(async { block_in_place(|| ()) });
}

// ---- Tasks that yield

/// A task that has yielded, alone on the thread in `block_on`, goes on elsewhere while that thread
/// is in a long poll of its own future.
#[test]
fn a_task_that_yields_is_taken_over_from_a_long_poll_of_block_on() {
    for workers in [1, 2, 8] {
        let rt = multi(workers);
        let (turns, beside) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let went_on = rt.block_on(async {
            for _ in 0..20 {
                // The thread in `block_on` runs only kinds of tasks that are known to be quick.
                let (theirs, both) = (turns.clone(), beside.clone());
                let here = std::thread::current().id();
                let stop = Arc::new(AtomicBool::new(false));
                let stopped = stop.clone();
                let task = volt::spawn(async move {
                    while !stopped.load(Ordering::SeqCst) {
                        theirs.fetch_add(1, Ordering::SeqCst);
                        let is_here = usize::from(std::thread::current().id() == here);
                        both.store(is_here, Ordering::SeqCst);
                        yield_now().await;
                    }
                });
                // Until it is this thread that runs the task.
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(20)
                    && beside.load(Ordering::SeqCst) == 0
                {
                    yield_now().await;
                }
                if beside.load(Ordering::SeqCst) == 1 {
                    let before = turns.load(Ordering::SeqCst);
                    let start = Instant::now();
                    while turns.load(Ordering::SeqCst) == before && start.elapsed() < SOON {
                        std::thread::sleep(Duration::from_micros(100));
                    }
                    let went_on = turns.load(Ordering::SeqCst) > before;
                    stop.store(true, Ordering::SeqCst);
                    task.await.unwrap();
                    if !went_on {
                        return false;
                    }
                    continue;
                }
                stop.store(true, Ordering::SeqCst);
                task.await.unwrap();
            }
            true
        });
        assert!(went_on, "the task waits for the poll of `block_on` to end");
    }
}

// ---- Wake-ups

/// A future of `block_on` that other threads wake again and again waits on its futex, not in the
/// driver: each way out of that is two more system calls.
#[test]
fn block_on_that_threads_wake_leaves_the_driver_to_a_worker() {
    const WAKES: usize = 1000;
    let rt = multi(2);
    let (tx, mut rx) = volt::sync::mpsc::channel(1);
    let (ack, acked) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        for wake in 0..WAKES {
            std::thread::sleep(Duration::from_micros(100));
            tx.blocking_send(wake).unwrap();
            acked.recv_timeout(SOON).unwrap();
        }
    });
    rt.block_on(async {
        while rx.recv().await.is_some() {
            ack.send(()).unwrap();
        }
    });
    thread.join().unwrap();
    let (turns, parks) = (rt.metrics().driver_wakeups_count(), rt.metrics().parks_count());
    assert!(parks >= WAKES as u64 / 2, "it did sleep");
    assert!(turns < WAKES as u64 / 2, "{turns} ways out of the driver for {WAKES} wake-ups");
}

// ---- A paused clock

#[test]
fn a_blocking_closure_that_is_refused_does_not_hold_the_clock() {
    within("the sleep", || {
        let rt = Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .thread_stack_size(1 << 50)
            .build()
            .unwrap();
        rt.block_on(async {
            let refused = catch_unwind(|| drop(spawn_blocking(|| ())));
            assert!(refused.is_err(), "no thread can have such a stack");
            volt::time::sleep(Duration::from_secs(3600)).await;
        });
    });
}

// ---- block_in_place

#[test]
fn block_in_place_starts_no_thread_each_time() {
    for (workers, limit) in [(1, 512), (4, 512), (2, 1)] {
        let started = Arc::new(AtomicUsize::new(0));
        let count = started.clone();
        let rt = Builder::new_multi_thread()
            .worker_threads(workers)
            .max_blocking_threads(limit)
            .on_thread_start(move || {
                count.fetch_add(1, Ordering::SeqCst);
            })
            .build()
            .unwrap();
        for round in 0..500 {
            // Not awaited in `block_on`, whose thread would run it.
            let (tx, rx) = mpsc::channel();
            rt.spawn(async move {
                let inside = block_in_place(|| round);
                yield_now().await;
                tx.send(inside).unwrap();
            });
            assert_eq!(rx.recv_timeout(SOON).unwrap(), round);
        }
        // One whose turn on a busy machine has not come yet is not back, and another one is started.
        let started = started.load(Ordering::SeqCst);
        assert!(started <= workers + 50, "{started} threads for {workers} workers");
    }
}

/// The worker goes on at once although all threads that may block do so.
#[test]
fn block_in_place_needs_no_room_among_the_blocking_threads() {
    within("the other task", || {
        let rt =
            Builder::new_multi_thread().worker_threads(1).max_blocking_threads(1).build().unwrap();
        let (release, gate) = mpsc::channel::<()>();
        let (begun, began) = mpsc::channel();
        drop(rt.spawn_blocking(move || {
            begun.send(()).unwrap();
            gate.recv().is_err()
        }));
        began.recv_timeout(SOON).unwrap();
        let (tx, rx) = mpsc::channel();
        let handle = rt.handle().clone();
        let task = rt.spawn(async move {
            block_in_place(|| {
                handle.spawn(async move { tx.send(()).unwrap() });
                rx.recv_timeout(SOON).unwrap();
            });
        });
        rt.block_on(task).unwrap();
        drop(release);
    });
}

/// Threads that are lent as workers come back to the pool, up to its limit.
#[test]
fn lent_threads_return() {
    let rt = Builder::new_multi_thread().worker_threads(2).max_blocking_threads(3).build().unwrap();
    for _ in 0..20 {
        let tasks: Vec<_> = (0..10)
            .map(|i| {
                rt.spawn(async move {
                    block_in_place(|| std::thread::sleep(Duration::from_millis(1)));
                    spawn_blocking(move || i).await.unwrap()
                })
            })
            .collect();
        for (i, task) in tasks.into_iter().enumerate() {
            assert_eq!(rt.block_on(task).unwrap(), i);
        }
        assert!(rt.metrics().num_blocking_threads() <= 3);
    }
    drop(rt);
}

// ---- A shutdown that wakes tasks

/// Wakes a task when it is dropped, under a lock.
struct Link {
    place: Arc<Mutex<Option<Waker>>>,
    lock: Arc<Mutex<()>>,
}

impl Drop for Link {
    fn drop(&mut self) {
        let waker = self.place.lock().unwrap().take();
        let _held = self.lock.lock();
        waker.into_iter().for_each(Waker::wake);
    }
}

/// Waits to be woken, for ever.
async fn linked(place: Arc<Mutex<Option<Waker>>>, ready: Arc<AtomicUsize>, next: Option<Link>) {
    let _next = next;
    std::future::poll_fn(move |cx| {
        *place.lock().unwrap() = Some(cx.waker().clone());
        ready.fetch_add(1, Ordering::SeqCst);
        std::task::Poll::Pending
    })
    .await
}

/// Each task's drop wakes the next one. The first is in another shard than the others, and goes
/// first; the wake-up of the next one must not drop it, or the stack is as deep as the chain is long.
#[test]
fn a_shutdown_of_a_chain_of_tasks_needs_no_stack() {
    const TASKS: usize = 20_000;
    within("the shutdown", || {
        let rt = current();
        let ready = Arc::new(AtomicUsize::new(0));
        let mut next = None;
        for _ in 0..TASKS {
            let place = Arc::new(Mutex::new(None));
            let link = Link { place: place.clone(), lock: Arc::default() };
            rt.spawn(linked(place, ready.clone(), next.replace(link)));
        }
        rt.block_on(async {
            volt::spawn(linked(Arc::default(), ready.clone(), next));
            while ready.load(Ordering::SeqCst) <= TASKS {
                yield_now().await;
            }
        });
        drop(rt);
    });
}

/// Whoever wakes a task may hold a lock that the task's drop needs.
#[test]
fn a_wake_up_drops_no_task_while_the_runtime_shuts_down() {
    struct Locks(Arc<Mutex<()>>, Arc<AtomicBool>);
    impl Drop for Locks {
        fn drop(&mut self) {
            if self.0.try_lock().is_err() {
                self.1.store(true, Ordering::SeqCst);
            }
        }
    }
    for rt in [current(), multi(1)] {
        let (place, lock) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(())));
        let (ready, held) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let locks = Locks(lock.clone(), held.clone());
        let waits = linked(place.clone(), ready.clone(), None);
        rt.spawn(async move {
            let _locks = locks;
            waits.await;
        });
        rt.block_on(async {
            volt::spawn(linked(Arc::default(), ready.clone(), Some(Link { place, lock })));
            while ready.load(Ordering::SeqCst) < 2 {
                yield_now().await;
            }
        });
        drop(rt);
        assert!(!held.load(Ordering::SeqCst), "dropped by the wake-up");
    }
}
