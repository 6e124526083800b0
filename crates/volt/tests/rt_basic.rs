//! The runtime's basic promises, on both flavours and with different numbers of workers.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::future::Future;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use volt::io::{AsyncReadExt, AsyncWriteExt};
use volt::runtime::{Builder, Handle, Runtime, RuntimeFlavor};

/// Every kind of runtime that a test should hold on.
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

#[test]
fn block_on_gives_the_output() {
    for rt in flavours() {
        assert_eq!(rt.block_on(async { 3 }), 3);
        assert_eq!(rt.block_on(async { rt.spawn(async { 4 }).await.unwrap() }), 4);
    }
}

#[test]
fn many_tasks_all_complete() {
    for rt in flavours() {
        let done = Arc::new(AtomicUsize::new(0));
        let tasks = 10_000 * scale();
        rt.block_on(async {
            let handles: Vec<_> = (0..tasks)
                .map(|_| {
                    let done = done.clone();
                    volt::spawn(async move {
                        done.fetch_add(1, Ordering::Relaxed);
                    })
                })
                .collect();
            for handle in handles {
                handle.await.unwrap();
            }
        });
        assert_eq!(done.load(Ordering::Relaxed), tasks);
        assert_eq!(rt.metrics().num_alive_tasks(), 0);
    }
}

/// Awaits 100 tasks in turn; how often that is polled.
async fn polls_for_100_joins() -> usize {
    let mut joins: Vec<_> = (0..100).map(|n| volt::spawn(async move { n })).collect();
    let mut all = std::pin::pin!(async {
        for (n, join) in joins.drain(..).enumerate() {
            assert_eq!(join.await.unwrap(), n);
        }
    });
    let mut polls = 0;
    std::future::poll_fn(|cx| {
        polls += 1;
        all.as_mut().poll(cx)
    })
    .await;
    polls
}

#[test]
fn joiner_of_several_is_polled_once() {
    let current = Builder::new_current_thread().build().unwrap();
    let polls = current.block_on(polls_for_100_joins());
    assert!(polls <= 3, "{polls} polls of the future of `block_on`");
    let polls = current.block_on(async { volt::spawn(polls_for_100_joins()).await.unwrap() });
    assert!(polls <= 3, "{polls} polls of a task");
    // Other threads may take some of the tasks, and wake the joiner for each: not every time.
    let multi = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let polls = (0..100).map(|_| multi.block_on(multi.spawn(polls_for_100_joins())).unwrap());
    let polls = polls.min().unwrap();
    assert!(polls <= 4, "{polls} polls of a task on a worker");
}

#[test]
fn tree_of_spawns() {
    fn tree(depth: u32) -> std::pin::Pin<Box<dyn Future<Output = u64> + Send>> {
        Box::pin(async move {
            if depth == 0 {
                return 1;
            }
            let left = volt::spawn(tree(depth - 1));
            let right = volt::spawn(tree(depth - 1));
            left.await.unwrap() + right.await.unwrap()
        })
    }
    for rt in flavours() {
        assert_eq!(rt.block_on(tree(12)), 4096);
    }
}

#[test]
fn spawn_from_outside_and_from_other_threads() {
    for rt in flavours() {
        let handle = rt.handle().clone();
        let thread = std::thread::spawn(move || {
            (0..100).map(|i| handle.spawn(async move { i })).collect::<Vec<_>>()
        });
        let tasks = thread.join().unwrap();
        let sum: usize = rt.block_on(async {
            let mut sum = 0;
            for task in tasks {
                sum += task.await.unwrap();
            }
            sum
        });
        assert_eq!(sum, 4950);
    }
}

#[test]
fn tasks_are_woken_by_other_threads() {
    for rt in flavours() {
        for _ in 0..100 {
            let (tx, rx) = futures_channel();
            let task = rt.spawn(rx);
            let thread = std::thread::spawn(move || tx.send(7));
            assert_eq!(rt.block_on(task).unwrap(), 7);
            thread.join().unwrap();
        }
    }
}

/// A minimal oneshot of the test's own.
fn futures_channel() -> (Sender, Receiver) {
    let state = Arc::new(volt::sync::internal::primitive::Mutex::new((None, None)));
    (Sender(state.clone()), Receiver(state))
}
type State = Arc<volt::sync::internal::primitive::Mutex<(Option<u32>, Option<std::task::Waker>)>>;
struct Sender(State);
struct Receiver(State);
impl Sender {
    fn send(self, value: u32) {
        let mut state = self.0.lock().unwrap();
        state.0 = Some(value);
        let waker = state.1.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
impl Future for Receiver {
    type Output = u32;
    fn poll(
        self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<u32> {
        let mut state = self.0.lock().unwrap();
        if let Some(value) = state.0 {
            return std::task::Poll::Ready(value);
        }
        state.1 = Some(cx.waker().clone());
        std::task::Poll::Pending
    }
}

#[test]
fn timers_fire() {
    for rt in flavours() {
        let start = std::time::Instant::now();
        rt.block_on(async {
            let task = volt::spawn(volt::time::sleep(Duration::from_millis(20)));
            volt::time::sleep(Duration::from_millis(10)).await;
            task.await.unwrap();
        });
        assert!(start.elapsed() >= Duration::from_millis(20));
    }
}

#[test]
fn dropping_a_runtime_drops_each_task_once() {
    struct Count(Arc<AtomicUsize>);
    impl Drop for Count {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    // Most of them in the queues, or all of them polled, and pending.
    let runtimes =
        [false, true].map(|polls_all| flavours().into_iter().map(move |rt| (rt, polls_all)));
    for (rt, polls_all) in runtimes.into_iter().flatten() {
        let (drops, polls) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        // Where each access is looked at, it takes ten times as long.
        let tasks = if cfg!(volt_tsan) { 20_000 } else { 100_000 };
        for _ in 0..tasks {
            let (count, polls) = (Count(drops.clone()), polls.clone());
            rt.spawn(async move {
                let _count = count;
                polls.fetch_add(1, Ordering::Relaxed);
                std::future::pending::<()>().await;
            });
        }
        if polls_all {
            // On a current-thread runtime this runs them.
            rt.block_on(async {
                while polls.load(Ordering::Relaxed) < tasks {
                    volt::task::yield_now().await;
                }
            });
            assert_eq!(rt.metrics().num_alive_tasks(), tasks);
        }
        drop(rt);
        assert_eq!(drops.load(Ordering::Relaxed), tasks);
    }
}

#[test]
fn handles_know_their_runtime() {
    assert!(Handle::try_current().unwrap_err().is_missing_context());
    for rt in flavours() {
        let flavor = rt.handle().runtime_flavor();
        rt.block_on(async {
            assert_eq!(Handle::current().runtime_flavor(), flavor);
            volt::spawn(async move { assert_eq!(Handle::current().runtime_flavor(), flavor) })
                .await
                .unwrap();
        });
        let _guard = rt.enter();
        assert_eq!(Handle::current().runtime_flavor(), flavor);
        let _ = flavor == RuntimeFlavor::MultiThread;
    }
}

#[test]
#[should_panic(expected = "`block_on` inside of a runtime")]
fn nested_block_on_panics() {
    let rt = Builder::new_current_thread().build().unwrap();
    rt.block_on(async { rt.block_on(async {}) });
}

/// In the future of `block_on`, and in a task: each runtime goes on.
#[test]
fn nested_block_on_panics_on_every_runtime() {
    for rt in flavours() {
        let nest = || Handle::current().block_on(async {});
        let message = message_of(|| rt.block_on(async { nest() }));
        assert!(message.starts_with("`block_on` inside of a runtime"), "{message}");
        let task = rt.spawn(async move { nest() });
        let error = rt.block_on(task).unwrap_err();
        let message = message_of(|| std::panic::resume_unwind(error.into_panic()));
        assert!(message.starts_with("`block_on` inside of a runtime"), "{message}");
        // Nor on another runtime.
        let other = Builder::new_current_thread().build().unwrap();
        let message = message_of(|| rt.block_on(async { other.block_on(async {}) }));
        assert!(message.starts_with("`block_on` inside of a runtime"), "{message}");
        assert_eq!(rt.block_on(async { volt::spawn(async { 1 }).await.unwrap() }), 1);
    }
}

/// The message of the panic of `f`.
fn message_of(f: impl FnOnce()) -> String {
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_err();
    match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => (*payload.downcast::<&str>().unwrap()).to_owned(),
    }
}

#[test]
fn without_a_runtime_the_panic_names_the_call() {
    let calls: [(&str, fn()); 6] = [
        ("spawn", || drop(volt::spawn(async {}))),
        ("spawn_blocking", || drop(volt::task::spawn_blocking(|| ()))),
        ("Handle::current", || drop(Handle::current())),
        ("time::pause", volt::time::pause),
        ("time::resume", volt::time::resume),
        ("time::advance", || {
            let mut advance = std::pin::pin!(volt::time::advance(Duration::ZERO));
            let waker = std::task::Waker::noop();
            let _ = advance.as_mut().poll(&mut std::task::Context::from_waker(waker));
        }),
    ];
    for (name, call) in calls {
        let message = message_of(call);
        assert!(message.starts_with(&format!("`{name}` needs a Volt runtime")), "{message}");
    }
}

#[test]
fn a_panic_in_a_task_is_its_own() {
    for rt in flavours() {
        let error = rt.block_on(async { volt::spawn(async { panic!("boom") }).await.unwrap_err() });
        assert!(error.is_panic());
        assert_eq!(rt.block_on(async { 1 }), 1);
    }
}

#[test]
fn yielding_tasks_share_a_thread() {
    for rt in flavours() {
        rt.block_on(async {
            let tasks: Vec<_> = (0..50)
                .map(|_| {
                    volt::spawn(async {
                        for _ in 0..100 {
                            let mut yielded = false;
                            std::future::poll_fn(|cx| {
                                if yielded {
                                    return std::task::Poll::Ready(());
                                }
                                yielded = true;
                                cx.waker().wake_by_ref();
                                std::task::Poll::Pending
                            })
                            .await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    }
}

#[test]
fn blocking_closures_run_in_the_runtime() {
    for rt in flavours() {
        let value = rt.block_on(async {
            let nested = || Handle::current().block_on(async { volt::spawn(async { 5 }).await });
            volt::task::spawn_blocking(nested).await.unwrap().unwrap()
        });
        assert_eq!(value, 5);
        assert_eq!(rt.block_on(rt.spawn_blocking(|| 6)).unwrap(), 6);
    }
}

#[test]
fn block_in_place_leaves_the_worker_to_others() {
    for workers in [1, 2, 8] {
        let rt = Builder::new_multi_thread().worker_threads(workers).build().unwrap();
        let sum = rt.block_on(async {
            let tasks: Vec<_> = (0..20)
                .map(|i| {
                    volt::spawn(async move {
                        let other = volt::spawn(async move { i });
                        // Nobody else could run `other` if the worker were blocked.
                        volt::task::block_in_place(|| Handle::current().block_on(other).unwrap())
                    })
                })
                .collect();
            let mut sum = 0;
            for task in tasks {
                sum += task.await.unwrap();
            }
            sum
        });
        assert_eq!(sum, 190);
    }
}

/// The round that such a call runs is no longer than a tick: among tasks that compute for long, timers are on time.
#[test]
fn a_block_on_that_yields_waits_for_one_tick_of_long_polls() {
    let rt = Builder::new_current_thread().enable_all().build().unwrap();
    let polls = Arc::new(AtomicUsize::new(0));
    for _ in 0..100 {
        let polls = polls.clone();
        rt.spawn(async move {
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(2));
                polls.fetch_add(1, Ordering::Relaxed);
                volt::task::yield_now().await;
            }
        });
    }
    // The first ones find out how long such polls are.
    for call in 0..20 {
        let before = polls.load(Ordering::Relaxed);
        rt.block_on(volt::task::yield_now());
        let ran = polls.load(Ordering::Relaxed) - before;
        assert!(call < 4 || ran <= 8, "{ran} polls of 2 ms in call {call}");
    }
    assert!(polls.load(Ordering::Relaxed) > 0);
}

/// A program with a loop of its own lets a current-thread runtime go on once in each round: its tasks, its timers and
/// its sockets.
#[test]
fn a_loop_of_block_ons_that_yield_runs_everything() {
    let rt = Builder::new_current_thread().enable_all().build().unwrap();
    let yields = || rt.block_on(volt::task::yield_now());
    let steps = Arc::new(AtomicUsize::new(0));
    for _ in 0..1_000 {
        let steps = steps.clone();
        rt.spawn(async move {
            for _ in 0..3 {
                steps.fetch_add(1, Ordering::Relaxed);
                volt::task::yield_now().await;
            }
        });
    }
    let mut calls = 0;
    while rt.metrics().num_alive_tasks() > 0 {
        yields();
        calls += 1;
        assert!(calls <= 100, "{} of 3,000 steps", steps.load(Ordering::Relaxed));
    }
    assert_eq!(steps.load(Ordering::Relaxed), 3_000);

    let waits = rt.spawn(async {
        volt::time::sleep(Duration::from_millis(2)).await;
        let (mut one, mut other) = volt::net::UnixStream::pair().unwrap();
        let reads = volt::spawn(async move { other.read_u8().await });
        volt::time::sleep(Duration::from_millis(2)).await;
        one.write_u8(7).await.unwrap();
        reads.await.unwrap().unwrap()
    });
    let start = std::time::Instant::now();
    while !waits.is_finished() {
        yields();
        assert!(start.elapsed() < Duration::from_secs(60), "nothing happens");
    }
    assert_eq!(rt.block_on(waits).unwrap(), 7);
}

/// Whatever is runnable runs before the future of `block_on` goes on, at each of its turns.
#[test]
fn a_yield_in_block_on_lets_all_others_run_each_time() {
    for tasks in [1, 2, 8, 100] {
        let rt = Builder::new_current_thread().build().unwrap();
        rt.block_on(async {
            let steps = Arc::new(AtomicUsize::new(0));
            let (tell, _) = volt::sync::broadcast::channel::<()>(8);
            for _ in 0..tasks {
                let (mut told, steps) = (tell.subscribe(), steps.clone());
                volt::spawn(async move {
                    while told.recv().await.is_ok() {
                        steps.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            volt::task::yield_now().await;
            for round in 1..20 {
                tell.send(()).unwrap();
                volt::task::yield_now().await;
                assert_eq!(steps.load(Ordering::Relaxed), round * tasks);
            }
        });
    }
}

/// An end of a connection for `runtime`, and one that blocks.
fn connected(runtime: &Runtime) -> (volt::net::TcpStream, std::net::TcpStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let theirs = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, _) = listener.accept().unwrap();
    ours.set_nonblocking(true).unwrap();
    let _guard = runtime.enter();
    (volt::net::TcpStream::from_std(ours).unwrap(), theirs)
}

/// A facade that blocks: each call finds what it waits for without a wait, and is over soon.
#[test]
fn who_calls_block_on_again_and_again_holds_up_neither_timers_nor_sockets() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (mut server, mut client) = connected(&runtime);
    let read = runtime.spawn(async move { server.read_u8().await.unwrap() });
    let slept = runtime.spawn(async { volt::time::sleep(Duration::from_millis(1)).await });
    let call = || runtime.block_on(async { volt::spawn(async {}).await.unwrap() });
    call();
    client.write_all(&[7]).unwrap();
    let start = Instant::now();
    while !(slept.is_finished() && read.is_finished()) {
        assert!(start.elapsed() < Duration::from_secs(20), "the driver is never turned");
        call();
        std::thread::sleep(Duration::from_micros(200));
    }
    assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
    assert_eq!(runtime.block_on(read).unwrap(), 7);
}

/// All that can run does so before the future of `block_on` that one of the tasks has woken, as in Tokio.
#[test]
fn the_future_of_block_on_finds_what_could_run_done() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let notify = Arc::new(volt::sync::Notify::new());
        let mut told = Vec::new();
        for number in 0..3 {
            let (order, notify) = (order.clone(), notify.clone());
            let (tell, is_told) = volt::sync::oneshot::channel();
            told.push(is_told);
            volt::spawn(async move {
                if number == 2 {
                    notify.notified().await;
                }
                let later = order.clone();
                volt::spawn(async move {
                    later.lock().unwrap().push(number + 10);
                    notify.notify_one();
                });
                order.lock().unwrap().push(number);
                tell.send(()).unwrap();
            });
        }
        futures::future::join_all(told).await;
        assert_eq!(*order.lock().unwrap(), [0, 1, 10, 11, 2, 12]);
    });
    // A chain of tasks is at its end after one yield; also if the thread stands still in one of them, as one that has no
    // processor does. (Slow machines have none twice.)
    let done_after_one_yield = |is_long: fn(u32) -> bool| {
        let count = Arc::new(AtomicUsize::new(0));
        runtime.block_on(async {
            chain(21, is_long, count.clone());
            volt::task::yield_now().await;
            count.load(Ordering::Relaxed)
        })
    };
    assert!((0..10).any(|_| done_after_one_yield(|_| false) == 21));
    assert!((0..10).any(|_| done_after_one_yield(|left| left == 15) == 21));
    // But that future does not wait for all of a chain of long polls.
    assert!(done_after_one_yield(|_| true) < 21);
}

/// Tasks that each spawn the next one, some of them after a long time.
fn chain(left: u32, is_long: fn(u32) -> bool, count: Arc<AtomicUsize>) {
    if left > 0 {
        volt::spawn(async move {
            if is_long(left) {
                std::thread::sleep(Duration::from_millis(2));
            }
            count.fetch_add(1, Ordering::Relaxed);
            chain(left - 1, is_long, count);
        });
    }
}

/// Each call turns the driver itself, and leaves what that finds, and what comes from outside, to the next one.
#[test]
fn calls_of_block_on_with_some_hundred_polls_hold_up_neither_timers_nor_tasks_from_outside() {
    let runtime = Builder::new_current_thread().global_queue_interval(250).build().unwrap();
    let start = Instant::now();
    for tasks in [60, 135, 200, 240] {
        let slept = runtime.spawn(async { volt::time::sleep(Duration::from_millis(1)).await });
        while !slept.is_finished() {
            assert!(start.elapsed() < Duration::from_secs(20), "{tasks} tasks in each call");
            runtime.block_on(async {
                let all: Vec<_> = (0..tasks).map(|_| volt::spawn(async {})).collect();
                for task in all {
                    task.await.unwrap();
                }
            });
        }
    }
}

/// Spawned outside, then awaited: the usual shape of a test. (As above: not if the thread has no processor twice.)
#[test]
fn the_future_of_block_on_finds_what_was_spawned_outside_done() {
    let done_when_told = || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (tell, told) = volt::sync::oneshot::channel();
        let done = Arc::new(AtomicUsize::new(0));
        runtime.spawn(async move { tell.send(()).unwrap() });
        for _ in 0..40 {
            let done = done.clone();
            runtime.spawn(async move { done.fetch_add(1, Ordering::Relaxed) });
        }
        runtime.block_on(async {
            told.await.unwrap();
            done.load(Ordering::Relaxed)
        })
    };
    assert!((0..10).any(|_| done_when_told() == 40));
}

/// Its event goes before the tasks that are there, also in a call that finds it at once.
#[test]
fn what_an_event_wakes_goes_first_in_short_calls_of_block_on() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let polls = Arc::new(AtomicUsize::new(0));
    for _ in 0..30 {
        let polls = polls.clone();
        runtime.spawn(async move {
            loop {
                polls.fetch_add(1, Ordering::Relaxed);
                volt::task::yield_now().await;
            }
        });
    }
    let (mut client, mut server) = connected(&runtime);
    let mut at_once = 0;
    for _ in 0..20 {
        runtime.block_on(async {
            volt::time::timeout(Duration::from_millis(1), client.read_u8()).await.unwrap_err();
        });
        // Since this one nobody has turned the driver, unless it was slow.
        runtime.block_on(async { volt::spawn(async {}).await.unwrap() });
        server.write_all(&[1]).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        let before = polls.load(Ordering::Relaxed);
        assert_eq!(runtime.block_on(client.read_u8()).unwrap(), 1);
        at_once += u32::from(polls.load(Ordering::Relaxed) - before <= 10);
    }
    assert!(at_once > 0 || cfg!(any(volt_tsan, volt_asan)), "the others were polled before");
}
