//! Ends of runtimes in awkward places: in destructors of thread-locals, in hooks, where futures are polled.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use volt::runtime::{Builder, Handle, LocalRuntime, Runtime};
use volt::task::{JoinHandle, JoinSet, spawn_local};

const HANGS: Duration = Duration::from_secs(20);

/// Calls its closure when it is dropped.
struct AtEnd<F: FnOnce() = Box<dyn FnOnce()>>(Option<F>);

impl<F: FnOnce()> Drop for AtEnd<F> {
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

fn builder(multi: bool) -> Builder {
    let mut builder =
        if multi { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    builder.worker_threads(1).enable_all();
    builder
}

/// It waits for the closures of other threads, and neither for its own thread nor for those that wait for that one to end.
#[test]
fn a_thread_local_of_a_blocking_thread_drops_the_runtime() {
    for (multi, others) in (0..3).flat_map(|others| [(true, others), (false, others)]) {
        let keep_alive = Duration::from_millis(20);
        let runtime = builder(multi).thread_keep_alive(keep_alive).build().unwrap();
        let (tell, told) = mpsc::channel();
        let gate = Arc::new(Barrier::new(others + 1));
        let done = Arc::new(AtomicUsize::new(0));
        for _ in 0..others {
            let (gate, done) = (gate.clone(), done.clone());
            runtime.spawn_blocking(move || {
                gate.wait();
                std::thread::sleep(10 * keep_alive);
                done.fetch_add(1, SeqCst);
            });
        }
        let handle = runtime.handle().clone();
        handle.spawn_blocking(move || {
            at_end(move || {
                drop(runtime);
                tell.send(done.load(SeqCst)).unwrap();
            });
            gate.wait();
        });
        drop(handle);
        assert_eq!(told.recv_timeout(HANGS), Ok(others), "multi-thread: {multi}");
    }
}

/// The same of a worker's thread: it joins the others.
#[test]
fn a_thread_local_of_a_worker_drops_the_runtime() {
    for workers in [1, 2, 4] {
        let runtime = builder(true).worker_threads(workers).build().unwrap();
        let (tell, told) = mpsc::channel();
        let handle = runtime.handle().clone();
        // Another thread is the worker from there on, and this one ends.
        handle.spawn(async move {
            volt::task::block_in_place(|| ());
            at_end(move || {
                drop(runtime);
                tell.send(()).unwrap();
            });
        });
        assert_eq!(told.recv_timeout(HANGS), Ok(()), "{workers} workers");
    }
}

/// On each worker, where one calls a blocking closure, and the first was handed over.
#[test]
fn thread_locals_of_workers_are_gone_with_the_runtime() {
    let runtime = builder(true).worker_threads(2).build().unwrap();
    let gone = Arc::new(AtomicUsize::new(0));
    let (gate, (tell, told)) = (Arc::new(Barrier::new(2)), mpsc::channel());
    for first in [true, false] {
        let (gone, gate, tell) = (gone.clone(), gate.clone(), tell.clone());
        let handle = runtime.handle().clone();
        runtime.spawn(async move {
            gate.wait();
            if first {
                volt::task::block_in_place(|| ());
            }
            at_end(move || {
                std::thread::sleep(Duration::from_millis(50));
                // It is run, or the runtime has ended before.
                let _either_way = handle.spawn_blocking(|| ()).join();
                gone.fetch_add(1, SeqCst);
            });
            tell.send(()).unwrap();
        });
    }
    told.recv().unwrap();
    told.recv().unwrap();
    drop(runtime);
    assert_eq!(gone.load(SeqCst), 2);
}

/// They may even wait for the thread that shuts the runtime down.
#[test]
fn a_shutdown_with_a_timeout_does_not_wait_for_thread_locals() {
    let runtime = builder(true).build().unwrap();
    let ((tell, told), (end, ends)) = (mpsc::channel(), mpsc::channel());
    runtime.spawn(async move {
        at_end(move || ends.recv().unwrap());
        tell.send(()).unwrap();
    });
    told.recv().unwrap();
    let start = Instant::now();
    runtime.shutdown_timeout(2 * HANGS);
    assert!(start.elapsed() < HANGS);
    end.send(()).unwrap();
}

/// Of a blocking thread that has ended, and is counted no longer.
#[test]
fn nor_for_those_of_an_idle_thread_that_has_ended() {
    for in_background in [true, false] {
        let keep_alive = Duration::from_millis(1);
        let runtime = builder(true).thread_keep_alive(keep_alive).build().unwrap();
        let ((tell, told), (end, ends)) = (mpsc::channel(), mpsc::channel());
        runtime.spawn_blocking(move || {
            at_end(move || {
                tell.send(()).unwrap();
                ends.recv().unwrap();
            });
        });
        told.recv().unwrap();
        let start = Instant::now();
        if in_background {
            runtime.shutdown_background();
        } else {
            runtime.shutdown_timeout(2 * HANGS);
        }
        assert!(start.elapsed() < HANGS);
        end.send(()).unwrap();
    }
}

/// The shutdown goes on when the hook has returned, since it would wait for that.
#[test]
fn a_hook_of_a_workers_thread_drops_the_runtime() {
    // The hooks of which threads: a worker's, and that of one which takes its place; and they end in this order.
    for (stop, thread) in [(false, 0), (false, 1), (true, 0)] {
        let slot = Arc::new(Mutex::new(None::<Runtime>));
        let (tell, told) = mpsc::channel();
        let (theirs, calls) = (slot.clone(), AtomicUsize::new(0));
        let hook = move || {
            if calls.fetch_add(1, SeqCst) != thread {
                return;
            }
            let start = Instant::now();
            let runtime = loop {
                if let Some(runtime) = theirs.lock().unwrap().take() {
                    break runtime;
                }
                assert!(start.elapsed() < HANGS);
                std::thread::sleep(Duration::from_millis(1));
            };
            drop(runtime);
            tell.send(()).unwrap();
        };
        let mut builder = builder(true);
        if stop {
            builder.on_thread_stop(hook)
        } else {
            builder.on_thread_start(hook)
        };
        let runtime = builder.build().unwrap();
        let alive = Arc::new(());
        let held = alive.clone();
        let handle = runtime.handle().clone();
        *slot.lock().unwrap() = Some(runtime);
        let task = handle.spawn(async move {
            let _held = held;
            volt::task::block_in_place(|| ());
            std::future::pending::<()>().await;
        });
        assert_eq!(told.recv_timeout(HANGS), Ok(()), "at its end: {stop}, thread {thread}");
        assert!(task.join().unwrap_err().is_cancelled());
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}

/// A worker waits for a closure that waits for the thread whose hook it is.
#[test]
fn a_hook_of_a_blocking_thread_drops_the_runtime() {
    let slot = Arc::new(Mutex::new(None::<Runtime>));
    let theirs = slot.clone();
    let hook = move || drop(theirs.lock().unwrap().take());
    let mut builder = builder(true);
    let runtime = builder.max_blocking_threads(1).on_thread_start(hook).build().unwrap();
    // The worker is past its hook.
    let (begin, begun) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    let (go, goes) = mpsc::channel::<()>();
    runtime.spawn(async move {
        begin.send(()).unwrap();
        goes.recv().unwrap();
        let closure = volt::task::spawn_blocking(|| ());
        tell.send(closure.join().is_ok()).unwrap();
    });
    begun.recv().unwrap();
    *slot.lock().unwrap() = Some(runtime);
    go.send(()).unwrap();
    // It runs, or the shutdown has come before it.
    told.recv_timeout(HANGS).unwrap();
}

/// The same of the one that makes names: a thread of the pool calls it for the next one, before it runs its closure.
#[test]
fn a_hook_that_names_a_thread_drops_the_runtime() {
    let slot = Arc::new(Mutex::new(None::<Runtime>));
    let (theirs, calls) = (slot.clone(), AtomicUsize::new(0));
    let name = move || {
        // The first is the worker's, the second that of the first blocking thread.
        if calls.fetch_add(1, SeqCst) == 2 {
            drop(theirs.lock().unwrap().take());
        }
        "a thread".to_owned()
    };
    let runtime = builder(true).thread_name_fn(name).build().unwrap();
    let (tell, told) = mpsc::channel();
    let (go, goes) = mpsc::channel::<()>();
    runtime.spawn(async move {
        goes.recv().unwrap();
        let closures = [(); 3].map(|()| volt::task::spawn_blocking(|| ()));
        tell.send(closures.map(|closure| closure.join().is_ok())).unwrap();
    });
    *slot.lock().unwrap() = Some(runtime);
    go.send(()).unwrap();
    told.recv_timeout(HANGS).unwrap();
}

/// The threads that were started end.
#[test]
fn a_runtime_that_gets_no_thread_is_an_error_where_futures_are_polled() {
    let build = || Builder::new_multi_thread().worker_threads(2).thread_stack_size(1 << 46).build();
    let expected = build().unwrap_err().kind();
    for multi in [true, false] {
        let error = builder(multi).build().unwrap().block_on(async { build().map(drop) });
        assert_eq!(error.unwrap_err().kind(), expected);
    }
}

/// Nobody looks at timers and sockets any more then, so these waits would have no end. One that begins later ends at once.
#[test]
fn what_a_poll_waits_for_in_block_in_place_ends_with_the_runtime() {
    for (workers, late, timer) in
        [(1, false, true), (1, true, false), (3, false, false), (3, true, true)]
    {
        let runtime = builder(true).worker_threads(workers).build().unwrap();
        let (begin, begins) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        runtime.spawn(async move {
            volt::task::block_in_place(|| {
                if late {
                    begin.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(50));
                }
                Handle::current().block_on(async {
                    let socket = volt::net::UdpSocket::bind("127.0.0.1:0").await;
                    let wait = async {
                        if timer {
                            volt::time::sleep(Duration::from_secs(3600)).await;
                        } else {
                            let error = async { socket?.recv(&mut [0]).await }.await.unwrap_err();
                            tell.send(error).unwrap();
                        }
                    };
                    volt::join!(wait, async { begin.send(()) }).1.unwrap();
                });
            });
        });
        begins.recv().unwrap();
        let (end, ended) = mpsc::channel();
        std::thread::spawn(move || {
            drop(runtime);
            end.send(()).unwrap();
        });
        ended.recv_timeout(HANGS).expect("it hangs");
        // That of the timer is a panic.
        assert_eq!(told.recv().is_ok(), !timer);
    }
}

/// In its first call another thread goes on as the worker, so that what it waits for later is nothing that a worker waits for.
#[test]
fn what_the_rest_of_such_a_poll_waits_for_ends_as_well() {
    for in_place in [true, false] {
        let runtime = builder(true).build().unwrap();
        let (begin, begins) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        runtime.spawn(async move {
            volt::task::block_in_place(|| ());
            let handle = Handle::current();
            let waits = move || {
                handle.block_on(async {
                    let wait = volt::time::sleep(Duration::from_secs(3600));
                    volt::join!(wait, async { begin.send(()) }).1.unwrap();
                });
            };
            if in_place {
                let waits = || volt::task::block_in_place(waits);
                tell.send(catch_unwind(AssertUnwindSafe(waits)).is_err()).unwrap();
            } else {
                let joined = volt::task::spawn_blocking(waits).join();
                tell.send(joined.unwrap_err().is_panic()).unwrap();
            }
        });
        begins.recv().unwrap();
        std::thread::spawn(move || drop(runtime));
        assert!(told.recv_timeout(HANGS).expect("it hangs"));
    }
}

/// A worker that waits in a blocking join does not end before whom it joins, and no worker is the last one until it does.
#[test]
fn what_somebody_waits_for_who_is_joined_ends_with_the_runtime() {
    for in_place in [true, false] {
        let runtime = builder(true).worker_threads(2).build().unwrap();
        let (begin, begins) = mpsc::channel();
        let waits = move || {
            Handle::current().block_on(async {
                let wait = volt::time::sleep(Duration::from_secs(3600));
                volt::join!(wait, async { begin.send(()) }).1.unwrap();
            });
        };
        let joined = if in_place {
            runtime.spawn(async move { volt::task::block_in_place(waits) })
        } else {
            runtime.spawn_blocking(waits)
        };
        begins.recv().unwrap();
        let (tell, told) = mpsc::channel();
        let (join, joins) = mpsc::channel();
        runtime.spawn(async move {
            join.send(()).unwrap();
            tell.send(joined.join()).unwrap();
        });
        joins.recv().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let (end, ended) = mpsc::channel();
        std::thread::spawn(move || {
            drop(runtime);
            end.send(()).unwrap();
        });
        ended.recv_timeout(HANGS).expect("it hangs");
        let panic = told.recv().unwrap().unwrap_err().into_panic();
        let message = panic.downcast_ref::<&str>().unwrap();
        assert!(message.contains("has been shut down"), "{message}");
    }
}

/// The thread that drops the tasks of a current-thread runtime is the one that would look at timers and sockets.
#[test]
fn what_a_drop_waits_for_at_a_shutdown_ends_at_once() {
    struct WaitsInDrop {
        handle: Handle,
        for_timer: bool,
        tell: mpsc::Sender<std::thread::Result<io::Result<usize>>>,
    }
    impl Drop for WaitsInDrop {
        fn drop(&mut self) {
            let wait = async {
                if self.for_timer {
                    volt::time::sleep(Duration::from_millis(1)).await;
                }
                volt::net::UdpSocket::bind("127.0.0.1:0").await?.recv(&mut [0]).await
            };
            let waited = catch_unwind(AssertUnwindSafe(|| self.handle.block_on(wait)));
            self.tell.send(waited).unwrap();
        }
    }
    for for_timer in [false, true] {
        let runtime = builder(false).build().unwrap();
        let (tell, told) = mpsc::channel();
        let waits = WaitsInDrop { handle: runtime.handle().clone(), for_timer, tell };
        runtime.spawn(async move {
            let _waits = waits;
            std::future::pending::<()>().await;
        });
        runtime.block_on(volt::task::yield_now());
        std::thread::spawn(move || drop(runtime));
        match told.recv_timeout(HANGS).expect("it hangs") {
            Ok(received) => assert!(!for_timer && received.is_err()),
            Err(panic) => {
                let message = panic.downcast_ref::<&str>().unwrap();
                assert!(for_timer && message.contains("has been shut down"), "{message}");
            }
        }
    }
}

/// A runtime of one of the kinds that there are.
enum Any {
    Local(LocalRuntime),
    Other(Runtime),
}

impl Any {
    /// Calls `f` when it drops an idle task; a local one, if `local`.
    fn at_drop(&self, local: bool, f: impl FnOnce() + Send + 'static) {
        let at_drop = AtEnd(Some(f));
        let (idle, is_idle) = mpsc::channel();
        let task = async move {
            let _at_drop = at_drop;
            volt::join!(std::future::pending::<()>(), async { idle.send(()).unwrap() });
        };
        match self {
            Self::Local(runtime) if local => drop(runtime.spawn_local(task)),
            Self::Local(runtime) => drop(runtime.handle().spawn(task)),
            Self::Other(runtime) => drop(runtime.spawn(task)),
        }
        match self {
            Self::Local(runtime) => runtime.block_on(volt::task::yield_now()),
            Self::Other(runtime) => runtime.block_on(volt::task::yield_now()),
        }
        is_idle.recv().unwrap();
    }
}

/// Calls `test` with each kind of runtime, and whether the task is to be local, on a thread of its own, which is to return.
fn with_all_kinds(test: fn(Any, bool)) {
    for (workers, local) in
        [(None, true), (None, false), (Some(0), false), (Some(1), false), (Some(2), false)]
    {
        let (end, ended) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = match workers {
                None => Any::Local(LocalRuntime::new().unwrap()),
                Some(0) => Any::Other(builder(false).build().unwrap()),
                Some(n) => Any::Other(builder(true).worker_threads(n).build().unwrap()),
            };
            test(runtime, local);
            end.send(()).unwrap();
        });
        if ended.recv_timeout(HANGS) == Err(mpsc::RecvTimeoutError::Timeout) {
            panic!("it hangs: {workers:?} {local}");
        }
        thread.join().unwrap();
    }
}

/// At once, so that it may even wait there with another executor. (What runs on a thread of its own is not.)
#[test]
fn what_a_drop_spawns_at_a_shutdown_is_refused() {
    fn is_cancelled<T>(mut task: JoinHandle<T>) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        matches!(Pin::new(&mut task).poll(&mut cx), Poll::Ready(Err(error)) if error.is_cancelled())
    }
    with_all_kinds(|runtime, local| {
        let (tell, told) = mpsc::channel();
        let is_local = matches!(runtime, Any::Local(_));
        runtime.at_drop(local, move || {
            let (owned, handle) = (Arc::new(()), Handle::current());
            let future = || {
                let owned = owned.clone();
                async move { drop(owned) }
            };
            let mut all =
                vec![is_cancelled(volt::spawn(future())), is_cancelled(handle.spawn(future()))];
            let mut set = JoinSet::new();
            set.spawn(future());
            set.spawn_on(future(), &handle);
            if is_local {
                all.push(is_cancelled(spawn_local(future())));
                set.spawn_local(future());
            }
            while let Some(joined) = set.try_join_next() {
                all.push(joined.unwrap_err().is_cancelled());
            }
            // The futures are gone as well.
            all.push(set.is_empty() && Arc::strong_count(&owned) == 1);
            let (run, runs) = mpsc::channel();
            drop(volt::task::spawn_blocking(move || run.send(()).unwrap()));
            all.push(runs.recv_timeout(HANGS).is_ok());
            tell.send(all).unwrap();
        });
        drop(runtime);
        let all = told.recv().unwrap();
        assert!(all.iter().all(|&it| it) && all.len() >= 6, "{all:?}");
    });
}

/// A task of either kind that is dropped later, or a timer that nobody looks at any more.
#[test]
fn a_local_drop_may_wait_for_what_ends_later() {
    for what in 0..3 {
        let (end, ended) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = LocalRuntime::new().unwrap();
            let handle = runtime.handle().clone();
            let later = Rc::new(Cell::new(None::<JoinHandle<()>>));
            let waits = AtEnd(Some({
                let later = later.clone();
                move || match later.take() {
                    Some(task) => assert!(handle.block_on(task).unwrap_err().is_cancelled()),
                    None => {
                        let sleep = || handle.block_on(volt::time::sleep(HANGS));
                        catch_unwind(AssertUnwindSafe(sleep)).unwrap_err();
                    }
                }
            }));
            drop(runtime.spawn_local(async move {
                let _waits = waits;
                std::future::pending::<()>().await;
            }));
            match what {
                0 => later.set(Some(runtime.spawn_local(std::future::pending()))),
                1 => later.set(Some(runtime.handle().spawn(std::future::pending()))),
                _ => {}
            }
            runtime.block_on(volt::task::yield_now());
            drop(runtime);
            end.send(()).unwrap();
        });
        ended.recv_timeout(HANGS).expect("it hangs");
    }
}
