//! Combinations that are nasty on purpose: shutdowns from the wrong place, panics in the wrong
//! place, drops while something is under way.
//!
//! `VOLT_STRESS` (a number, 1 by default) multiplies the rounds of the tests that depend on timing.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use volt::runtime::{Builder, Handle, Runtime};

const SOON: Duration = Duration::from_secs(30);

fn rounds(base: usize) -> usize {
    let factor = std::env::var("VOLT_STRESS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    base * factor
}

fn multi(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
}

fn current() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Calls `f` on a thread of its own; panics if that takes too long.
#[track_caller]
fn in_time<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    let (tx, rx) = mpsc::channel();
    let thread = std::thread::spawn(move || tx.send(f()));
    match rx.recv_timeout(SOON) {
        Ok(result) => {
            thread.join().unwrap().unwrap();
            result
        }
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Err(payload) => std::panic::resume_unwind(payload),
            Ok(_) => unreachable!("it sends before it ends"),
        },
    }
}

/// Pending once, having woken itself.
async fn yield_once() {
    let mut first = true;
    poll_fn(|cx| {
        if std::mem::take(&mut first) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

// ---- Contexts

/// The guard of an outer scope, dropped inside of `block_on`, would give back the count behind the
/// pointer to which the thread returns afterwards.
#[test]
fn an_enter_guard_is_not_dropped_inside_of_another_scope() {
    in_time(|| {
        let runtime = current();
        let handle = runtime.handle().clone();
        let guard = handle.enter();
        let dropped = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(async move { drop(guard) });
        }));
        assert!(dropped.is_err(), "the guards' order was broken without notice");
        drop(runtime);
        // Still the current one, shut down: nothing dangles.
        let task = handle.spawn(async {});
        assert!(task.is_finished());
        assert!(Handle::try_current().is_ok());
    });
}

/// A guard that outlives the scope that it was made in.
#[test]
fn an_enter_guard_does_not_leave_its_scope() {
    in_time(|| {
        let (one, two) = (current(), current());
        let handle = two.handle().clone();
        let guard = one.block_on(async { handle.enter() });
        assert!(Handle::try_current().is_err());
        let mine = two.enter();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(guard))).is_err());
        assert!(Handle::try_current().is_ok());
        drop(mine);
        assert!(Handle::try_current().is_err());
    });
}

volt::task_local! {
    static NUMBER: u32;
}

#[test]
fn a_task_local_goes_along_with_block_in_place_and_a_nested_block_on() {
    in_time(|| {
        let (one, two) = (multi(1), multi(1));
        let inner = two.handle().clone();
        let task = one.spawn(NUMBER.scope(7, async move {
            yield_once().await;
            let seen = volt::task::block_in_place(|| {
                let before = NUMBER.get();
                // A guest of another runtime, on a thread that was a worker of the first.
                let theirs = inner.block_on(async {
                    let spawned = volt::spawn(async { NUMBER.try_with(|_| ()).is_err() });
                    NUMBER.scope(9, async { yield_once().await }).await;
                    spawned.await.unwrap() && NUMBER.get() == 7
                });
                assert!(theirs);
                before
            });
            yield_once().await;
            (seen, NUMBER.get())
        }));
        assert_eq!(one.block_on(task).unwrap(), (7, 7));
    });
}

#[test]
fn guests_of_two_runtimes_take_turns_on_one_thread() {
    in_time(|| {
        for round in 0..rounds(50) {
            let (outer, inner) =
                if round % 2 == 0 { (multi(2), current()) } else { (current(), multi(2)) };
            let inner = Arc::new(inner);
            let other = inner.clone();
            let sum = outer.block_on(async move {
                let a = volt::spawn(async { 1 });
                // The inner one is awaited from the outer one, and the other way round.
                let b = other.spawn(async { 2 });
                let c = outer_and_inner(&other, b).await;
                a.await.unwrap() + c
            });
            assert_eq!(sum, 7);
            drop(outer);
        }
    });
}

async fn outer_and_inner(inner: &Arc<Runtime>, theirs: volt::task::JoinHandle<u32>) -> u32 {
    let back = Handle::current();
    let handle = inner.clone();
    volt::task::spawn_blocking(move || {
        handle.block_on(async {
            yield_once().await;
            back.spawn(async { 4 }).await.unwrap() + theirs.await.unwrap()
        })
    })
    .await
    .unwrap()
}

// ---- Shutdown from the wrong place

/// The only thread of the runtime is the one that shuts it down, from inside of a poll.
#[test]
fn a_current_thread_runtime_is_shut_down_by_its_own_task() {
    for background in [true, false] {
        in_time(move || {
            let drops = Arc::new(AtomicUsize::new(0));
            let runtime = current();
            let handle = runtime.handle().clone();
            let (idle, queued) = (Counted(drops.clone()), Counted(drops.clone()));
            runtime.spawn(async move {
                let _idle = idle;
                std::future::pending::<()>().await;
            });
            let task = handle.spawn(async move {
                yield_once().await;
                volt::spawn(async move {
                    let _queued = queued;
                    yield_once().await;
                });
                if background {
                    runtime.shutdown_background();
                } else {
                    assert!(catch_unwind(AssertUnwindSafe(|| drop(runtime))).is_err());
                }
                5
            });
            // The task's own poll ends as it would have.
            assert_eq!(handle.block_on(task).unwrap(), 5);
            drop(handle);
            assert_eq!(drops.load(Ordering::SeqCst), 2);
        });
    }
}

/// As above, by the future of `block_on`, while a task has yielded on that thread.
#[test]
fn a_current_thread_runtime_is_shut_down_inside_of_block_on() {
    in_time(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let runtime = current();
        let handle = runtime.handle().clone();
        let counted = Counted(drops.clone());
        handle.block_on(async move {
            volt::spawn(async move {
                let _counted = counted;
                loop {
                    yield_once().await;
                }
            });
            for _ in 0..10 {
                yield_once().await;
            }
            runtime.shutdown_background();
        });
        drop(handle);
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_multi_thread_runtime_is_shut_down_by_its_own_task() {
    in_time(|| {
        for _ in 0..rounds(20) {
            let drops = Arc::new(AtomicUsize::new(0));
            let runtime = multi(2);
            let (tx, rx) = mpsc::channel();
            for _ in 0..10 {
                let counted = Counted(drops.clone());
                runtime.spawn(async move {
                    let _counted = counted;
                    loop {
                        yield_once().await;
                    }
                });
            }
            let handle = runtime.handle().clone();
            let task = handle.spawn(async move {
                runtime.shutdown_background();
                tx.send(()).unwrap();
            });
            rx.recv().unwrap();
            task.join().unwrap();
            while drops.load(Ordering::SeqCst) < 10 {
                std::thread::yield_now();
            }
        }
    });
}

/// Nothing of the runtime is left when its drop returns: the configuration (and with it the
/// reactor's descriptors) has gone.
#[test]
fn the_drop_waits_for_the_threads_to_let_go() {
    in_time(|| {
        for _ in 0..rounds(200) {
            let token = Arc::new(());
            let kept = token.clone();
            let runtime = Builder::new_multi_thread()
                .worker_threads(3)
                .on_thread_stop(move || drop(kept.clone()))
                .build()
                .unwrap();
            runtime.block_on(async { volt::task::spawn_blocking(|| ()).await.unwrap() });
            drop(runtime);
            assert_eq!(Arc::strong_count(&token), 1);
        }
    });
}

/// Tasks and closures from everywhere while the runtime goes: each one is run or dropped, once, and
/// each handle gets an answer.
#[test]
fn spawning_from_outside_during_a_shutdown_loses_nothing() {
    in_time(|| {
        for round in 0..rounds(40) {
            let runtime = if round % 3 == 0 { current() } else { multi(2) };
            let drops = Arc::new(AtomicUsize::new(0));
            let go = Arc::new(AtomicBool::new(false));
            let spawners: Vec<_> = (0..2)
                .map(|_| {
                    let (handle, drops, go) = (runtime.handle().clone(), drops.clone(), go.clone());
                    std::thread::spawn(move || {
                        let mut handles = Vec::new();
                        go.store(true, Ordering::SeqCst);
                        for _ in 0..200 {
                            let counted = Counted(drops.clone());
                            handles.push(handle.spawn(async move {
                                let _counted = counted;
                                yield_once().await;
                            }));
                            let counted = Counted(drops.clone());
                            handles.push(handle.spawn_blocking(move || drop(counted)));
                        }
                        let count = handles.len();
                        drop(handle);
                        for task in handles {
                            // Ready, or cancelled.
                            let _either_way = task.join();
                        }
                        count
                    })
                })
                .collect();
            while !go.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            if round % 2 == 0 {
                drop(runtime);
            } else {
                runtime.shutdown_background();
            }
            let count: usize = spawners.into_iter().map(|thread| thread.join().unwrap()).sum();
            assert_eq!(drops.load(Ordering::SeqCst), count);
        }
    });
}

/// The futures of tasks spawn, wake and block on things when they are dropped by a shutdown.
#[test]
fn drops_at_shutdown_use_the_runtime() {
    struct Busy(Option<Handle>, Arc<AtomicUsize>);
    impl Drop for Busy {
        fn drop(&mut self) {
            let handle = self.0.take().unwrap();
            let counted = Counted(self.1.clone());
            assert!(handle.spawn(async move { drop(counted) }).is_finished());
            let counted = Counted(self.1.clone());
            drop(handle.spawn_blocking(move || drop(counted)));
            panic!("in a drop at shutdown, which is contained");
        }
    }
    in_time(|| {
        for workers in 0..3 {
            let drops = Arc::new(AtomicUsize::new(0));
            let runtime = if workers == 0 { current() } else { multi(workers) };
            let (tx, rx) = mpsc::channel();
            for _ in 0..4 {
                let busy = Busy(Some(runtime.handle().clone()), drops.clone());
                let tx = tx.clone();
                runtime.spawn(async move {
                    let _busy = busy;
                    tx.send(()).unwrap();
                    std::future::pending::<()>().await;
                });
            }
            runtime.block_on(yield_once());
            if workers > 0 {
                rx.iter().take(4).for_each(drop);
            }
            drop(runtime);
            assert_eq!(drops.load(Ordering::SeqCst), 8);
        }
    });
}

/// A write that was reported as done, behind a closure that takes long, when the runtime ends.
#[test]
fn a_write_that_was_accepted_survives_the_shutdown() {
    in_time(|| {
        let path = std::env::temp_dir().join(format!("volt-hostile-{}", std::process::id()));
        let runtime =
            Builder::new_multi_thread().worker_threads(1).max_blocking_threads(1).build().unwrap();
        let (tx, rx) = mpsc::channel::<()>();
        let name = path.clone();
        runtime.block_on(async move {
            let mut file = volt::fs::File::create(&name).await.unwrap();
            let _busy = volt::task::spawn_blocking(move || rx.recv().unwrap_err());
            file.write_all(b"accepted").await.unwrap();
            // It waits for the only blocking thread.
        });
        let release = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(tx);
        });
        drop(runtime);
        release.join().unwrap();
        let written = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(written, b"accepted");
    });
}

// ---- Panics

/// A hook that panics costs neither a worker nor its tasks.
#[test]
fn hooks_that_panic_cost_no_thread() {
    in_time(|| {
        let armed = Arc::new(AtomicBool::new(true));
        let hook = || {
            let armed = armed.clone();
            move || assert!(!armed.load(Ordering::SeqCst), "a hook's panic")
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .on_thread_start(hook())
            .on_thread_stop(hook())
            .on_thread_park(hook())
            .on_thread_unpark(hook())
            .build()
            .unwrap();
        for _ in 0..20 {
            let sum = runtime.block_on(async {
                volt::time::sleep(Duration::from_millis(1)).await;
                let blocking = volt::task::spawn_blocking(|| 1);
                volt::spawn(async { 2 }).await.unwrap() + blocking.await.unwrap()
            });
            assert_eq!(sum, 3);
        }
        let drops = Arc::new(AtomicUsize::new(0));
        let counted = Counted(drops.clone());
        runtime.spawn(async move {
            let _counted = counted;
            std::future::pending::<()>().await;
        });
        drop(runtime);
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    });
}

/// Panics when it is woken or dropped.
struct BadWaker;

impl Wake for BadWaker {
    fn wake(self: Arc<Self>) {
        panic!("a waker's panic");
    }
}

#[test]
fn wakers_that_panic_stop_neither_timers_nor_sockets_nor_completions() {
    in_time(|| {
        for runtime in [current(), multi(2)] {
            runtime.block_on(async {
                let waker = Waker::from(Arc::new(BadWaker));
                let mut bad = Context::from_waker(&waker);
                let listener = volt::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = listener.local_addr().unwrap();
                let mut accept = Box::pin(listener.accept());
                assert!(accept.as_mut().poll(&mut bad).is_pending());
                let mut sleep = Box::pin(volt::time::sleep(Duration::from_millis(5)));
                assert!(sleep.as_mut().poll(&mut bad).is_pending());
                let mut task = volt::spawn(async { yield_once().await });
                let _registered = Pin::new(&mut task).poll(&mut bad);
                // The same moment, by a good waker.
                volt::time::sleep(Duration::from_millis(5)).await;
                let mut client = volt::net::TcpStream::connect(address).await.unwrap();
                let (mut server, _) = accept.await.unwrap();
                client.write_all(b"x").await.unwrap();
                assert_eq!(server.read_u8().await.unwrap(), b'x');
                sleep.await;
                drop(task);
            });
        }
    });
}

// ---- Tasks below on the stack

/// A task that yielded while another one waited in `join` on top of it belongs to no queue; it must
/// be there when that one hands its worker over.
#[test]
fn a_task_that_yielded_below_a_join_survives_block_in_place() {
    in_time(|| {
        let runtime = multi(1);
        let (tx, rx) = mpsc::channel();
        let polled = Arc::new(AtomicBool::new(false));
        runtime.spawn(async move {
            let gate = polled.clone();
            let blocking = volt::task::spawn_blocking(move || {
                while !gate.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
            });
            volt::spawn(async move {
                polled.store(true, Ordering::SeqCst);
                // The closure completes during this poll.
                std::thread::sleep(Duration::from_millis(50));
                yield_once().await;
                tx.send(()).unwrap();
            });
            blocking.join().unwrap();
            volt::task::block_in_place(|| std::thread::sleep(Duration::from_millis(10)));
        });
        rx.recv_timeout(Duration::from_secs(10)).expect("the task was lost");
    });
}

// ---- Timers and sockets

#[test]
fn timers_are_reset_and_dropped_while_they_fire() {
    [current(), multi(1), multi(2), multi(8)].into_iter().for_each(reset_and_drop_timers);
}

fn reset_and_drop_timers(runtime: Runtime) {
    in_time(move || {
        let end = Instant::now() + Duration::from_millis(300) * rounds(1) as u32;
        let tasks: Vec<_> = (0..16_u64)
            .map(|number| {
                runtime.spawn(async move {
                    let mut sleep = Box::pin(volt::time::sleep(Duration::from_micros(10)));
                    let mut count = number;
                    while Instant::now() < end {
                        count += 1;
                        // Often just the moment of the deadline.
                        let pause = Duration::from_micros(count * 7 % 130);
                        let _ = volt::time::timeout(pause, sleep.as_mut()).await;
                        match count % 4 {
                            0 => sleep = Box::pin(volt::time::sleep(pause)),
                            1 => sleep.as_mut().reset(volt::time::Instant::now() + pause),
                            2 => {
                                // Registered on this worker, awaited on whichever gets the task.
                                let mut moved = Box::pin(volt::time::sleep(pause));
                                let waker = Waker::noop();
                                let _ = moved.as_mut().poll(&mut Context::from_waker(waker));
                                volt::spawn(moved).await.unwrap();
                            }
                            _ => sleep.as_mut().await,
                        }
                    }
                    sleep.as_mut().reset(volt::time::Instant::now() + Duration::from_micros(50));
                    sleep.await;
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| runtime.block_on(task).unwrap());
    });
}

#[test]
fn sockets_are_dropped_with_events_under_way() {
    in_time(|| {
        let runtime = multi(2);
        runtime.block_on(async {
            let listener = volt::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let server = volt::spawn(async move {
                loop {
                    let Ok((mut stream, _)) = listener.accept().await else { continue };
                    volt::spawn(async move {
                        let mut buffer = [0; 16];
                        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                            if stream.write_all(&buffer[..count]).await.is_err() {
                                return;
                            }
                        }
                    });
                }
            });
            for round in 0..rounds(300) {
                let mut client = volt::net::TcpStream::connect(address).await.unwrap();
                client.write_all(b"0123").await.unwrap();
                let mut reader = volt::spawn(async move {
                    let mut buffer = [0; 4];
                    client.read_exact(&mut buffer).await.map(|_| client)
                });
                if round % 3 == 0 {
                    // Aborted while the answer comes; the slot in the reactor is used again.
                    reader.abort();
                    let _either_way = (&mut reader).await;
                } else {
                    let mut client = reader.await.unwrap().unwrap();
                    client.write_all(b"x").await.unwrap();
                    drop(client);
                }
            }
            server.abort();
            assert!(server.await.unwrap_err().is_cancelled());
        });
    });
}

/// A socket and a timer that live longer than their runtime, used from another one.
#[test]
fn what_outlives_its_runtime_fails_and_does_not_hang() {
    in_time(|| {
        for runtime in [current(), multi(2)] {
            let (listener, sleep) = runtime.block_on(async {
                let listener = volt::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                let mut sleep = Box::pin(volt::time::sleep(Duration::from_secs(3600)));
                let waker = Waker::noop();
                assert!(sleep.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
                (listener, sleep)
            });
            let other = multi(1);
            let waiting = other.spawn(async move {
                let accepted = listener.accept().await.map(drop);
                (accepted, listener)
            });
            let mut sleep = sleep;
            let timer = other.spawn(async move { sleep.as_mut().await });
            std::thread::sleep(Duration::from_millis(5));
            drop(runtime);
            let (accepted, listener) = waiting.join().unwrap();
            assert!(accepted.is_err());
            assert!(timer.join().unwrap_err().is_panic());
            drop(other);
            drop(listener);
        }
    });
}

// ---- JoinSet and LocalSet

#[test]
fn join_sets_are_dropped_anywhere() {
    in_time(|| {
        for round in 0..rounds(50) {
            let drops = Arc::new(AtomicUsize::new(0));
            let runtime = if round % 2 == 0 { multi(2) } else { current() };
            let mut set = volt::task::JoinSet::new();
            for _ in 0..20 {
                let counted = Counted(drops.clone());
                set.spawn_on(
                    async move {
                        yield_once().await;
                        counted
                    },
                    runtime.handle(),
                );
            }
            if round % 4 < 2 {
                runtime.block_on(async { set.join_next().await.unwrap().unwrap() });
            }
            match round % 3 {
                0 => {
                    drop(set);
                    drop(runtime);
                }
                1 => {
                    drop(runtime);
                    drop(set);
                }
                _ => {
                    let task = runtime.spawn(async move {
                        yield_once().await;
                        drop(set);
                    });
                    runtime.block_on(task).unwrap();
                    drop(runtime);
                }
            }
            assert_eq!(drops.load(Ordering::SeqCst), 20);
        }
    });
}

#[test]
fn a_local_set_is_dropped_while_others_wake_its_tasks() {
    in_time(|| {
        let runtime = multi(1);
        for round in 0..rounds(100) {
            let drops = Arc::new(AtomicUsize::new(0));
            let wakers = Arc::new(Mutex::new(Vec::<Waker>::new()));
            let set = volt::task::LocalSet::new();
            for _ in 0..8 {
                let (wakers, counted) = (wakers.clone(), Counted(drops.clone()));
                set.spawn_local(async move {
                    let _counted = counted;
                    poll_fn(|cx| {
                        wakers.lock().unwrap().push(cx.waker().clone());
                        Poll::<()>::Pending
                    })
                    .await;
                });
            }
            set.block_on(&runtime, yield_once());
            let stolen = std::mem::take(&mut *wakers.lock().unwrap());
            let waking = runtime.spawn(async move {
                for waker in stolen {
                    waker.wake_by_ref();
                    drop(waker);
                }
            });
            if round % 2 == 0 {
                drop(set);
            } else {
                runtime.block_on(async { drop(set) });
            }
            assert_eq!(drops.load(Ordering::SeqCst), 8);
            waking.join().unwrap();
        }
    });
}
