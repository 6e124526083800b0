//! Tasks through the public API, on both flavours and with different numbers of workers.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use volt::runtime::{Builder, Handle, Runtime};
use volt::task::{self, JoinSet, LocalSet};

fn flavours() -> Vec<Runtime> {
    let multi = [1, 2, 8].map(|workers| {
        Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
    });
    let current = Builder::new_current_thread().enable_all().build().unwrap();
    multi.into_iter().chain([current]).collect()
}

fn scale() -> usize {
    std::env::var("VOLT_STRESS").map_or(1, |s| s.parse().unwrap_or(1))
}

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn counter() -> (impl Fn() -> Counted, impl Fn() -> usize) {
    let count = Arc::new(AtomicUsize::new(0));
    let theirs = count.clone();
    (move || Counted(theirs.clone()), move || count.load(SeqCst))
}

#[test]
fn abort_from_everywhere() {
    for rt in flavours() {
        rt.block_on(async {
            let (new, drops) = counter();
            let handles: Vec<_> = (0..100)
                .map(|n| {
                    let held = new();
                    volt::spawn(async move {
                        let _held = held;
                        if n % 2 == 0 {
                            task::yield_now().await;
                        }
                        pending::<()>().await;
                    })
                })
                .collect();
            let aborts: Vec<_> = handles.iter().map(|handle| handle.abort_handle()).collect();
            let threads = std::thread::spawn(move || {
                aborts.iter().step_by(2).for_each(|abort| abort.abort());
            });
            handles.iter().skip(1).step_by(2).for_each(|handle| handle.abort());
            for handle in handles {
                assert!(handle.await.unwrap_err().is_cancelled());
            }
            threads.join().unwrap();
            assert_eq!(drops(), 100);
        });
    }
}

#[test]
fn runtime_drops_pending_tasks_exactly_once() {
    for rt in flavours() {
        let tasks = 10_000 * scale();
        let (new, drops) = counter();
        rt.block_on(async {
            for _ in 0..tasks {
                let held = new();
                volt::spawn(async move {
                    let _held = held;
                    pending::<()>().await;
                });
            }
            task::yield_now().await;
        });
        drop(rt);
        assert_eq!(drops(), tasks);
    }
}

#[test]
fn wakers_outlive_their_runtime() {
    for rt in flavours() {
        let (send, receive) = std::sync::mpsc::channel();
        rt.block_on(async {
            volt::spawn(std::future::poll_fn(move |cx| {
                send.send(cx.waker().clone()).unwrap();
                std::task::Poll::<()>::Pending
            }));
            task::yield_now().await;
        });
        let waker = receive.recv().unwrap();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let waker = waker.clone();
                std::thread::spawn(move || (0..1000).for_each(|_| waker.wake_by_ref()))
            })
            .collect();
        drop(rt);
        waker.wake();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn join_set_joins_all() {
    for rt in flavours() {
        rt.block_on(async {
            let mut set = JoinSet::new();
            let mut sum = 0;
            for round in 0..10 {
                set.extend((0..100).map(|n| async move {
                    if n % 3 == 0 {
                        task::yield_now().await;
                    }
                    n
                }));
                set.spawn_on(async { 1000 }, &Handle::current());
                set.spawn_blocking(move || round);
                while let Some(result) = set.join_next().await {
                    sum += result.unwrap();
                }
            }
            assert_eq!(sum, 10 * (4950 + 1000) + 45);
            assert!(set.is_empty());
        });
    }
}

#[test]
fn join_set_aborts_on_drop_and_on_shutdown() {
    for rt in flavours() {
        rt.block_on(async {
            let (new, drops) = counter();
            let pend = |held: Counted| async move {
                let _held = held;
                pending::<()>().await;
            };
            let mut set = JoinSet::new();
            (0..50).for_each(|_| drop(set.spawn(pend(new()))));
            set.shutdown().await;
            assert_eq!((set.len(), drops()), (0, 50));
            (0..50).for_each(|_| drop(set.spawn(pend(new()))));
            drop(set);
            while drops() < 100 {
                task::yield_now().await;
            }
        });
    }
}

#[test]
fn join_all_propagates_the_panic() {
    let rt = Runtime::new().unwrap();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        rt.block_on(async {
            let mut set = JoinSet::new();
            set.spawn(async {});
            set.spawn(async { panic!("one of them") });
            set.join_all().await
        })
    }));
    assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "one of them");
}

#[test]
fn local_set_on_every_runtime() {
    for rt in flavours() {
        let local = LocalSet::new();
        let count = Rc::new(Cell::new(0));
        let total = count.clone();
        local.block_on(&rt, async move {
            let mut set = JoinSet::new();
            for n in 0..100 {
                let count = count.clone();
                set.spawn_local(async move {
                    // A wake-up from one of the runtime's threads, or from a blocking one.
                    let remote = volt::spawn(async move { n }).await.unwrap();
                    let blocking = task::spawn_blocking(move || n).await.unwrap();
                    count.set(count.get() + remote + blocking);
                });
            }
            while let Some(result) = set.join_next().await {
                result.unwrap();
            }
        });
        assert_eq!(total.get(), 9900);
    }
}

#[test]
fn local_set_dropped_while_others_wake_its_tasks() {
    let rt = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for _ in 0..50 * scale() {
        let (new, drops) = counter();
        let local = LocalSet::new();
        local.block_on(&rt, async {
            for _ in 0..10 {
                let held = new();
                task::spawn_local(async move {
                    let _held = held;
                    loop {
                        volt::spawn(async {}).await.unwrap();
                    }
                });
            }
            task::yield_now().await;
            task::yield_now().await;
        });
        drop(local);
        assert_eq!(drops(), 10);
    }
}

#[test]
fn join_helps_on_workers_and_waits_on_other_threads() {
    fn fib(n: u64) -> u64 {
        if n < 2 {
            return n;
        }
        let left = volt::spawn(async move { fib(n - 1) });
        fib(n - 2) + left.join().unwrap()
    }
    for rt in flavours() {
        // At the limit of the depth a worker hands its tasks over, for which a current-thread
        // runtime has nobody.
        let multi = rt.handle().runtime_flavor() == volt::runtime::RuntimeFlavor::MultiThread;
        let (n, expected) = if multi { (12, 144) } else { (5, 5) };
        assert_eq!(rt.block_on(async { fib(n) }), expected);
        let inside = async move { volt::spawn(async move { fib(n) }).await.unwrap() };
        assert_eq!(rt.block_on(inside), expected);
    }
    let rt = Runtime::new().unwrap();
    assert_eq!(rt.spawn(async { 5 }).join().unwrap(), 5);
    assert!(rt.spawn(async { panic!("no") }).join().is_err_and(|error| error.is_panic()));
}

#[test]
fn spawn_blocking_serial_parallel_and_panicking() {
    for rt in flavours() {
        rt.block_on(async {
            for n in 0..20 {
                assert_eq!(task::spawn_blocking(move || n).await.unwrap(), n);
            }
            let handles: Vec<_> = (0..100).map(|n| task::spawn_blocking(move || n)).collect();
            for (n, handle) in handles.into_iter().enumerate() {
                assert_eq!(handle.await.unwrap(), n);
            }
            assert!(task::spawn_blocking(|| panic!("no")).await.unwrap_err().is_panic());
            let inside = task::spawn_blocking(|| {
                Handle::current().block_on(async { volt::spawn(async { 1 }).await.unwrap() })
            });
            assert_eq!(inside.await.unwrap(), 1);
        });
    }
}

#[test]
fn shutdown_does_not_wait_for_a_blocking_closure_that_hangs() {
    for rt in flavours() {
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let (started, begin) = std::sync::mpsc::channel();
        rt.spawn_blocking(move || {
            started.send(()).unwrap();
            gate.recv().unwrap_err();
        });
        begin.recv().unwrap();
        let start = Instant::now();
        rt.shutdown_timeout(Duration::from_millis(20));
        assert!(start.elapsed() < Duration::from_secs(5));
        drop(release);
    }
}

#[test]
fn task_locals_follow_their_task() {
    volt::task_local! {
        static NUMBER: usize;
    }
    for rt in flavours() {
        rt.block_on(async {
            let handles: Vec<_> = (0..50)
                .map(|n| {
                    volt::spawn(NUMBER.scope(n, async move {
                        for _ in 0..5 {
                            assert_eq!(NUMBER.get(), n);
                            task::yield_now().await;
                        }
                        assert!(volt::spawn(async { NUMBER.try_get() }).await.unwrap().is_err());
                        NUMBER.sync_scope(n + 1, || NUMBER.get())
                    }))
                })
                .collect();
            for (n, handle) in handles.into_iter().enumerate() {
                assert_eq!(handle.await.unwrap(), n + 1);
            }
            assert!(NUMBER.try_with(|_| ()).is_err());
        });
    }
}

#[test]
fn task_local_is_there_in_the_futures_drop_and_after_a_panic() {
    volt::task_local! {
        static NUMBER: usize;
    }
    struct Looks(Arc<AtomicUsize>);
    impl Drop for Looks {
        fn drop(&mut self) {
            self.0.store(NUMBER.try_get().unwrap_or(1000), SeqCst);
        }
    }
    let seen = Arc::new(AtomicUsize::new(0));
    let looks = Looks(seen.clone());
    drop(NUMBER.scope(7, async move { drop(looks) }));
    assert_eq!(seen.load(SeqCst), 7);
    let panics = || NUMBER.sync_scope(8, || panic!("inside"));
    assert!(std::panic::catch_unwind(panics).is_err());
    assert!(NUMBER.try_get().is_err());
}

/// A task that always finds its operations ready still lets others run.
#[test]
fn budget_makes_a_busy_task_yield() {
    let rt = Builder::new_current_thread().build().unwrap();
    rt.block_on(async {
        let ran = Arc::new(AtomicUsize::new(0));
        let theirs = ran.clone();
        let busy = volt::spawn(async move {
            let mut polls = 0_u64;
            while theirs.load(SeqCst) == 0 {
                task::consume_budget().await;
                polls += 1;
                assert!(polls < 10_000_000, "the other task never ran");
            }
        });
        let theirs = ran.clone();
        let other = volt::spawn(async move {
            theirs.fetch_add(1, SeqCst);
        });
        busy.await.unwrap();
        other.await.unwrap();
        task::unconstrained(async {
            for _ in 0..1000 {
                assert!(task::coop::has_budget_remaining());
                task::consume_budget().await;
            }
        })
        .await;
    });
}

#[test]
fn yield_now_lets_all_others_go_first() {
    let rt = Builder::new_current_thread().build().unwrap();
    rt.block_on(async {
        let log = Arc::new(volt::sync::internal::primitive::Mutex::new(Vec::new()));
        let mut set = JoinSet::new();
        for n in 0..3 {
            let log = log.clone();
            set.spawn(async move {
                for round in 0..3 {
                    log.lock().unwrap().push((round, n));
                    task::yield_now().await;
                }
            });
        }
        set.join_all().await;
        let log = log.lock().unwrap();
        assert!(log.is_sorted_by_key(|(round, _)| *round), "{log:?}");
    });
}

#[test]
fn stress_of_wakes_aborts_and_drops() {
    let rt = Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let (new, drops) = counter();
    let tasks = 2_000 * scale();
    rt.block_on(async {
        let mut aborted = 0;
        for n in 0..tasks {
            let (first, second) = (new(), new());
            let inner = volt::spawn(async move {
                task::yield_now().await;
                first
            });
            let outer = volt::spawn(async move {
                let output = inner.await;
                drop(second);
                output.is_ok()
            });
            match n % 4 {
                0 => outer.abort(),
                1 => drop(outer),
                2 => assert!(outer.await.unwrap()),
                _ => {
                    let abort = outer.abort_handle();
                    volt::spawn(async move { abort.abort() });
                    aborted += usize::from(outer.await.is_err());
                }
            }
        }
        assert!(aborted <= tasks);
    });
    drop(rt);
    assert_eq!(drops(), 2 * tasks);
}
