//! Tasks through the public API, on both flavours and with different numbers of workers.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::cell::Cell;
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use volt::runtime::{Builder, Handle, Runtime};
use volt::task::{self, JoinError, JoinSet, LocalSet};

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
    for rt in flavours() {
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
    for rt in flavours() {
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
                        let child = volt::spawn(async { NUMBER.get() }).await.unwrap_err();
                        assert!(child.to_string().contains("inherits none"), "{child}");
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
    for rt in flavours() {
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
}

/// Panics when it is dropped; what it holds is dropped all the same.
struct Bomb {
    _held: Counted,
}

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a bomb");
    }
}

/// A panic that comes from a drop is the task's, as one in a poll is: whoever joins gets it, and nobody else.
#[test]
fn panics_in_drops_of_futures_and_outputs_are_contained() {
    for rt in flavours() {
        let (new, drops) = counter();
        let bomb = || Bomb { _held: new() };
        let rounds = 3 * scale();
        for _ in 0..rounds {
            // The future, when it has completed: its output is lost.
            let (future, output) = (bomb(), new());
            let mut output = Some(output);
            let error = rt.block_on(rt.spawn(poll_fn(move |_| {
                let _ = &future;
                Poll::Ready(output.take().unwrap())
            })));
            assert_bomb(error.map(drop));
            // When it is aborted.
            let future = bomb();
            let aborted = rt.spawn(poll_fn(move |_| {
                let _ = &future;
                Poll::<()>::Pending
            }));
            rt.block_on(task::yield_now());
            aborted.abort();
            assert_bomb(rt.block_on(aborted));
            // When its poll has panicked: that one counts.
            let future = bomb();
            let panicked = rt.spawn(poll_fn(move |_| -> Poll<()> {
                let _ = &future;
                panic!("the first");
            }));
            let error = rt.block_on(panicked).unwrap_err();
            assert_eq!(*error.into_panic().downcast::<&str>().unwrap(), "the first");
            // An output that nobody wants, before and after it is there; and a payload.
            let output = bomb();
            drop(rt.spawn(async move { output }));
            let output = bomb();
            let done = rt.spawn(async move { output });
            rt.block_on(async {
                while !done.is_finished() {
                    task::yield_now().await;
                }
            });
            drop(done);
            let payload = bomb();
            drop(rt.spawn(async move { std::panic::panic_any(payload) }));
            // One that somebody has is theirs.
            let output = bomb();
            let got = rt.block_on(rt.spawn(async move { output })).unwrap();
            assert!(catch_unwind(AssertUnwindSafe(|| drop(got))).is_err());
            assert_eq!(rt.block_on(async { volt::spawn(async { 1 }).await.unwrap() }), 1);
        }
        // And those that are there when the runtime ends.
        for _ in 0..rounds {
            let future = bomb();
            rt.spawn(async move {
                pending::<()>().await;
                drop(future);
            });
        }
        rt.block_on(task::yield_now());
        drop(rt);
        assert_eq!(drops(), rounds * (8 + 1));
    }
}

fn assert_bomb(result: Result<(), JoinError>) {
    let payload = result.unwrap_err().into_panic();
    assert_eq!(*payload.downcast::<&str>().unwrap(), "a bomb");
}

#[test]
fn join_sets_take_blocking_closures_and_tell_ids() {
    for rt in flavours() {
        let mut set = JoinSet::new();
        // From outside of the runtime.
        let mut ids: Vec<_> =
            (0..10).map(|n| (set.spawn_blocking_on(move || n, rt.handle()).id(), n)).collect();
        let failed = set.spawn_blocking_on(|| panic!("not this one"), rt.handle()).id();
        assert_eq!(set.len(), 11);
        rt.block_on(async {
            let mut failures = 0;
            while let Some(result) = poll_fn(|cx| set.poll_join_next_with_id(cx)).await {
                match result {
                    Ok(done) => ids.retain(|other| *other != done),
                    Err(error) => {
                        assert!(error.is_panic() && error.id() == failed);
                        failures += 1;
                    }
                }
            }
            assert_eq!((ids.len(), failures), (0, 1));
            // None is there: ready, and not pending for ever.
            assert!(poll_fn(|cx| set.poll_join_next_with_id(cx)).await.is_none());
            set.spawn(pending());
            let polled = poll_fn(|cx| Poll::Ready(set.poll_join_next_with_id(cx).is_pending()));
            assert!(polled.await);
        });
    }
}

/// Guards nest, and each gives back what was before.
#[test]
fn a_local_set_is_entered() {
    for rt in flavours() {
        let (outer, inner) = (LocalSet::new(), LocalSet::new());
        let here = Rc::new(std::thread::current().id());
        let spawn = |number: i32| {
            let here = here.clone();
            task::spawn_local(async move {
                assert_eq!(*here, std::thread::current().id());
                number
            })
        };
        let first = outer.enter();
        let one = spawn(1);
        let second = inner.enter();
        let two = spawn(2);
        drop(second);
        let three = spawn(3);
        drop(first);
        assert!(catch_unwind(AssertUnwindSafe(|| spawn(4))).is_err(), "none is entered");
        // Only those of the outer one run.
        outer.block_on(&rt, async {
            assert_eq!((one.await.unwrap(), three.await.unwrap()), (1, 3));
        });
        assert!(!two.is_finished());
        assert_eq!(inner.block_on(&rt, two).unwrap(), 2);
    }
}

/// What is always ready takes the budget, and yields when that is used up: 128 are completed in a poll.
#[test]
fn cooperative_futures_take_the_budget() {
    for rt in flavours() {
        let polls = rt.block_on(rt.spawn(async {
            let mut all = std::pin::pin!(async {
                for _ in 0..1_000 {
                    task::coop::cooperative(std::future::ready(())).await;
                }
            });
            let mut polls = 0;
            poll_fn(|cx| {
                polls += 1;
                all.as_mut().poll(cx)
            })
            .await;
            polls
        }));
        assert_eq!(polls.unwrap(), 8, "1,000 / 128");
        // One that is pending takes nothing.
        rt.block_on(async {
            for _ in 0..1_000 {
                let mut waits = std::pin::pin!(task::coop::cooperative(pending::<()>()));
                assert!(poll_fn(|cx| Poll::Ready(waits.as_mut().poll(cx).is_pending())).await);
            }
            assert!(task::coop::has_budget_remaining());
        });
    }
}

/// How many units are left in this poll.
fn units_left(cx: &mut Context<'_>) -> usize {
    let take = |cx: &mut Context<'_>| std::pin::pin!(task::coop::consume_budget()).poll(cx);
    (0..1000).take_while(|_| take(cx).is_ready()).count()
}

#[test]
fn a_budget_is_given_back_without_progress() {
    fn on_each_runtime(poll: fn(&mut Context<'_>)) {
        for runtime in flavours() {
            let polled = poll_fn(move |cx| {
                poll(cx);
                Poll::Ready(())
            });
            runtime.block_on(runtime.spawn(polled)).unwrap();
        }
    }
    on_each_runtime(|cx| {
        let waits = task::coop::cooperative(async {
            for _ in 0..100 {
                task::coop::consume_budget().await;
            }
            pending::<()>().await;
        });
        assert!(std::pin::pin!(waits).poll(cx).is_pending());
        assert_eq!(units_left(cx), 128);
    });
    on_each_runtime(|cx| {
        let Poll::Ready(guard) = task::coop::poll_proceed(cx) else { panic!("there is budget") };
        assert_eq!(units_left(cx), 127);
        assert!(task::coop::poll_proceed(cx).is_pending());
        drop(guard);
        assert_eq!(units_left(cx), 128);
    });
    on_each_runtime(|cx| {
        let guards: Vec<_> = (0..1000).map_while(|_| ready(task::coop::poll_proceed(cx))).collect();
        assert_eq!(guards.len(), 128);
        guards.iter().for_each(task::coop::RestoreOnPending::made_progress);
        drop(guards);
        assert_eq!(units_left(cx), 0);
    });
    fn ready<T>(poll: Poll<T>) -> Option<T> {
        match poll {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }
}

#[test]
fn a_task_locals_value_is_taken_back() {
    volt::task_local! {
        static WORD: std::cell::RefCell<String>;
    }
    for rt in flavours() {
        let task = rt.spawn(async {
            let mut scoped = Box::pin(WORD.scope("a".to_owned().into(), async {
                task::yield_now().await;
                WORD.with(|word| word.borrow_mut().push('b'));
                pending::<()>().await;
            }));
            // Long enough for two polls, also on a busy machine.
            let long = Duration::from_millis(200);
            assert!(volt::time::timeout(long, scoped.as_mut()).await.is_err());
            let word = scoped.as_mut().take_value().unwrap().into_inner();
            assert!(scoped.as_mut().take_value().is_none());
            assert!(WORD.try_with(|_| ()).is_err());
            word
        });
        assert_eq!(rt.block_on(task).unwrap(), "ab");
    }
}
