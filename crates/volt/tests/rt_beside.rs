//! `Handle::block_on` of a current-thread runtime: it keeps nobody from being the runtime, and is it if nobody else is.
#![allow(clippy::disallowed_methods, reason = "a test")]

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use volt::net::UnixStream;
use volt::runtime::{Builder, Handle, Runtime};
use volt::task::{spawn_blocking, yield_now};
use volt::time::sleep;

const LIMIT: Duration = Duration::from_secs(60);

fn current() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

/// Ends the process if `f` hangs.
fn within_limit<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, result) = mpsc::channel();
    let thread = thread::spawn(move || done.send(f()).unwrap());
    let result = result.recv_timeout(LIMIT).expect("it hangs, or has panicked");
    thread.join().unwrap();
    result
}

#[test]
fn a_future_that_blocks_in_a_poll_does_not_hold_up_the_thread_that_is_the_runtime() {
    within_limit(|| {
        let rt = current();
        let handle = rt.handle().clone();
        let (tx, rx) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let other = thread::spawn(move || {
            handle.block_on(async move {
                volt::spawn(async move { tx.send(7).unwrap() });
                ready.send(()).unwrap();
                rx.recv().unwrap()
            })
        });
        is_ready.recv().unwrap();
        rt.block_on(async { volt::spawn(async {}).await.unwrap() });
        rt.block_on(async { sleep(Duration::from_millis(1)).await });
        assert_eq!(other.join().unwrap(), 7);
    });
}

#[test]
fn nor_in_a_later_poll_on_a_blocking_thread() {
    within_limit(|| {
        let rt = current();
        let (tx, rx) = mpsc::channel();
        let blocked = rt.block_on(async {
            let handle = Handle::current();
            let blocked = spawn_blocking(move || {
                handle.block_on(async move {
                    sleep(Duration::from_millis(1)).await;
                    rx.recv().unwrap()
                })
            });
            // It has the place of the runtime meanwhile, and is in `recv` when this poll is over.
            thread::sleep(Duration::from_millis(50));
            volt::spawn(async move { tx.send(7).unwrap() }).await.unwrap();
            blocked.await.unwrap()
        });
        assert_eq!(blocked, 7);
    });
}

#[test]
fn alone_it_runs_tasks_timers_and_sockets() {
    within_limit(|| {
        let rt = current();
        let handle = rt.handle().clone();
        let before = rt.spawn(async { 1 });
        let output = handle.block_on(async {
            let task = volt::spawn(async {
                sleep(Duration::from_millis(2)).await;
                yield_now().await;
                2
            });
            let (one, other) = UnixStream::pair().unwrap();
            let reads = volt::spawn(async move {
                one.readable().await.unwrap();
                let mut byte = [0];
                assert_eq!(one.try_read(&mut byte).unwrap(), 1);
                byte[0]
            });
            yield_now().await;
            assert_eq!(other.try_write(&[3]).unwrap(), 1);
            before.await.unwrap() + task.await.unwrap() + i32::from(reads.await.unwrap())
        });
        assert_eq!(output, 6);
        assert_eq!(handle.block_on(async { volt::spawn(async { 1 }).join().unwrap() }), 1);
    });
}

/// The place goes from one to another, and all that they wait for comes.
#[test]
fn any_number_of_threads_wait_in_both_ways() {
    within_limit(|| {
        let rt = std::sync::Arc::new(current());
        let threads: Vec<_> = (0..6)
            .map(|index| {
                let rt = rt.clone();
                thread::spawn(move || {
                    for round in 0..200 {
                        let work = async {
                            let task = volt::spawn(async {
                                yield_now().await;
                                1
                            });
                            if round % 20 == 0 {
                                sleep(Duration::from_micros(200)).await;
                            }
                            assert_eq!(task.await.unwrap(), 1);
                        };
                        if (index + round) % 3 == 0 {
                            rt.block_on(work);
                        } else {
                            rt.handle().block_on(work);
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(rt.metrics().num_alive_tasks(), 0);
    });
}

#[test]
fn after_a_shutdown_the_future_goes_on_alone() {
    within_limit(|| {
        let rt = current();
        let handle = rt.handle().clone();
        let (ready, is_ready) = mpsc::channel();
        let (tx, rx) = volt::sync::oneshot::channel();
        let waits = thread::spawn(move || {
            handle.block_on(async move {
                let task = volt::spawn(std::future::pending::<()>());
                yield_now().await;
                ready.send(()).unwrap();
                assert!(task.await.unwrap_err().is_cancelled());
                let answer: u32 = rx.await.unwrap();
                assert!(volt::spawn(async {}).await.unwrap_err().is_cancelled());
                answer
            })
        });
        is_ready.recv().unwrap();
        let start = Instant::now();
        rt.shutdown_timeout(LIMIT);
        assert!(start.elapsed() < LIMIT / 2);
        thread::sleep(Duration::from_millis(20));
        assert!(!waits.is_finished());
        tx.send(7).unwrap();
        assert_eq!(waits.join().unwrap(), 7);
    });
}

#[test]
fn a_panic_of_the_future_leaves_the_runtime_whole() {
    within_limit(|| {
        let rt = current();
        let handle = rt.handle().clone();
        let panics = thread::spawn(move || {
            handle.block_on(async {
                yield_now().await;
                panic!("on purpose")
            })
        });
        assert!(panics.join().is_err());
        assert_eq!(rt.block_on(async { volt::spawn(async { 1 }).await.unwrap() }), 1);
    });
}

/// A `join` in its future runs what the joined one waits for, whatever runs that: a blocking thread, or another runtime.
#[test]
fn a_blocking_join_in_the_future_runs_the_tasks_of_its_runtime() {
    within_limit(|| {
        let rt = current();
        let (a_task, result) = rt.handle().block_on(async {
            let (tx, rx) = mpsc::channel();
            let blocked = spawn_blocking(move || rx.recv().unwrap());
            let a_task = volt::spawn(async move { tx.send(7).unwrap() });
            (a_task, blocked.join().unwrap())
        });
        assert_eq!(result, 7);
        a_task.join().unwrap();

        let other = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let result = rt.handle().block_on(async {
            let task = volt::spawn(async { 8 });
            other.spawn(async move { task.await.unwrap() }).join().unwrap()
        });
        assert_eq!(result, 8);
    });
}

/// A task of a thread in `Runtime::block_on` waits for what the future of the other thread does, which came first.
#[test]
fn who_came_first_leaves_the_place_to_the_thread_that_is_the_runtime() {
    within_limit(|| {
        for waits in [0, 20] {
            let rt = current();
            let handle = rt.handle().clone();
            let (asks, asked) = volt::sync::oneshot::channel();
            let (answers, answered) = mpsc::channel();
            let other = thread::spawn(move || {
                handle.block_on(async move {
                    asked.await.unwrap();
                    answers.send(()).unwrap();
                });
            });
            thread::sleep(Duration::from_millis(waits));
            rt.block_on(async {
                let task = volt::spawn(async move {
                    asks.send(()).unwrap();
                    answered.recv().unwrap();
                });
                task.await.unwrap();
            });
            other.join().unwrap();
        }
    });
}

#[test]
fn the_thread_that_is_the_runtime_runs_its_tasks() {
    within_limit(|| {
        let rt = current();
        let handle = rt.handle().clone();
        let (end, ended) = volt::sync::oneshot::channel::<()>();
        let other = thread::spawn(move || handle.block_on(async { ended.await.unwrap() }));
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(1));
            // The other thread may run one that is there when it comes; what this spawns waits for this one.
            let here = thread::current().id();
            rt.block_on(async {
                for _ in 0..20 {
                    let task = volt::spawn(async { thread::current().id() });
                    assert_eq!(task.await.unwrap(), here);
                }
            });
        }
        end.send(()).unwrap();
        other.join().unwrap();
    });
}

/// A claim that comes to nothing keeps nobody out.
#[test]
fn the_place_is_free_after_a_thread_that_did_not_get_it() {
    within_limit(|| {
        let rt = std::sync::Arc::new(current());
        let (holds, is_held) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let theirs = rt.clone();
        let holder = thread::spawn(move || {
            theirs.block_on(async {
                yield_now().await;
                holds.send(()).unwrap();
                ended.recv().unwrap();
            });
        });
        is_held.recv().unwrap();
        // It wants the place, and is done without it; another one panics.
        rt.block_on(yield_now());
        let panics = async {
            yield_now().await;
            panic!("on purpose");
        };
        let panicked =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rt.block_on(panics)));
        assert!(panicked.is_err());
        end.send(()).unwrap();
        holder.join().unwrap();
        assert_eq!(rt.handle().block_on(async { volt::spawn(async { 1 }).await.unwrap() }), 1);
    });
}
