//! `LocalRuntime`: tasks that are not `Send`, on one thread, wherever they are spawned.

#[path = "support/net.rs"]
mod support;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::Duration;

use support::bounded;
use volt::net::{TcpListener, TcpStream};
use volt::runtime::{Builder, Handle, LocalOptions, LocalRuntime, RuntimeFlavor};
use volt::task::{LocalSet, spawn_local, yield_now};
use volt::time::{Instant, sleep};

/// What a panic said.
fn message(panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap()
}

fn here() -> ThreadId {
    thread::current().id()
}

#[test]
fn what_is_not_send_runs_on_the_thread_of_the_runtime() {
    let runtime = LocalRuntime::new().unwrap();
    let (home, sum) = (here(), Rc::new(Cell::new(0)));
    let early = runtime.spawn_local({
        let sum = sum.clone();
        async move { sum.set(sum.get() + 1) }
    });
    assert_eq!(sum.get(), 0, "nobody runs it yet");
    runtime.block_on(async {
        let adds: Vec<_> = (0..100)
            .map(|_| {
                let sum = sum.clone();
                spawn_local(async move {
                    yield_now().await;
                    sleep(Duration::from_millis(1)).await;
                    sum.set(sum.get() + 1);
                    here()
                })
            })
            .collect();
        for add in adds {
            assert_eq!(bounded(add).await.unwrap(), home);
        }
        bounded(early).await.unwrap();
    });
    assert_eq!(sum.get(), 101);
    let late = runtime.spawn_local(async move { sum.get() });
    assert_eq!(runtime.block_on(bounded(late)).unwrap(), 101);
    assert_eq!(runtime.handle().runtime_flavor(), RuntimeFlavor::CurrentThread);
}

/// Also where the set is not being driven.
#[test]
fn a_task_of_the_runtime_spawns_local_ones() {
    let runtime = LocalRuntime::new().unwrap();
    let home = here();
    let deep = runtime.block_on(bounded(async {
        let outer = volt::spawn(async {
            let inner = spawn_local(async {
                let value = Rc::new(1);
                let innermost = volt::spawn(async { spawn_local(async { 2 }).await.unwrap() });
                *value + innermost.await.unwrap()
            });
            (inner.await.unwrap(), here())
        });
        outer.await.unwrap()
    }));
    assert_eq!(deep, (3, home));
    // And under a guard, where nobody is in `block_on`.
    let guard = runtime.enter();
    let task = spawn_local(async { here() });
    drop(guard);
    assert_eq!(runtime.block_on(bounded(task)).unwrap(), home);
}

#[test]
fn other_threads_spawn_on_it_and_do_not_run_it() {
    let runtime = LocalRuntime::new().unwrap();
    let (home, handle) = (here(), runtime.handle().clone());
    #[allow(clippy::disallowed_methods, reason = "a test")]
    let other = thread::spawn(move || {
        let task = handle.spawn(async {
            let local = spawn_local(async { here() });
            (here(), local.await.unwrap())
        });
        // Neither this, nor what is awaited in here, makes the thread run the runtime's tasks.
        let mine = handle.block_on(async {
            assert_eq!(task.await.unwrap(), (home, home));
            here()
        });
        assert_eq!(mine, here());
        let joined = handle.spawn(async { here() }).join().unwrap();
        assert_eq!(joined, home);
        // The set is of the other thread.
        let panicked = handle.block_on(async {
            catch_unwind(|| {
                drop(spawn_local(async {}));
            })
        });
        message(panicked.unwrap_err())
    });
    let waits = runtime.spawn_blocking(move || other.join().unwrap());
    let text = runtime.block_on(bounded(waits));
    let text = text.unwrap();
    assert!(text.starts_with("`spawn_local` needs a `LocalSet` or a `LocalRuntime`"), "{text}");
}

#[test]
fn the_current_runtime_is_nearer_than_a_set() {
    let runtime = LocalRuntime::new().unwrap();
    runtime.block_on(bounded(async {
        let inner = LocalSet::new();
        let (own, other) = {
            let _inside = inner.enter();
            (inner.spawn_local(std::future::pending::<()>()), spawn_local(yield_now()))
        };
        inner.run_until(yield_now()).await;
        drop(inner);
        assert!(own.await.unwrap_err().is_cancelled(), "it was of that set");
        other.await.unwrap();
    }));
    // Also than the set of the one that is running.
    let second = LocalRuntime::new().unwrap();
    let task = runtime.block_on(bounded(async {
        let _inside = second.enter();
        let task = spawn_local(async { 1 });
        yield_now().await;
        assert!(!task.is_finished());
        Some(task)
    }));
    assert_eq!(second.block_on(bounded(task.unwrap())).unwrap(), 1);
    // Another runtime's context hides it.
    let other = Builder::new_current_thread().build().unwrap();
    let _outer = runtime.enter();
    let _inner = other.enter();
    assert!(catch_unwind(|| drop(spawn_local(async {}))).is_err());
}

/// Tells when it is dropped, and whether that is in the runtime.
struct Tells(Rc<Cell<usize>>, Arc<AtomicUsize>);

impl Drop for Tells {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
        let inside = usize::from(Handle::try_current().is_ok());
        self.1.fetch_add(inside, Ordering::Relaxed);
    }
}

#[test]
fn its_end_drops_all_tasks_each_once() {
    let ends: [fn(LocalRuntime); 3] = [
        drop,
        |runtime| runtime.shutdown_timeout(Duration::from_secs(10)),
        LocalRuntime::shutdown_background,
    ];
    for end in ends {
        let runtime = LocalRuntime::new().unwrap();
        let (dropped, inside) = (Rc::new(Cell::new(0)), Arc::new(AtomicUsize::new(0)));
        let tells = || Tells(dropped.clone(), inside.clone());
        for delay in 0..50 {
            let tells = tells();
            runtime.spawn_local(async move {
                sleep(Duration::from_millis(delay * 1000)).await;
                drop(tells);
            });
        }
        // One that spawns when it is dropped: that one goes at once.
        let (last, spawns) = (tells(), tells());
        struct Spawns(Option<Tells>);
        impl Drop for Spawns {
            fn drop(&mut self) {
                let tells = self.0.take();
                let late = spawn_local(async move { drop(tells) });
                assert!(late.is_finished());
            }
        }
        let spawns = Spawns(Some(spawns));
        runtime.spawn_local(async move {
            std::future::pending::<()>().await;
            drop(spawns);
        });
        let task = runtime.handle().spawn(std::future::pending::<()>());
        runtime.block_on(bounded(yield_now()));
        assert_eq!(runtime.metrics().num_alive_tasks(), 51);
        end(runtime);
        assert_eq!(dropped.get(), 51);
        assert_eq!(inside.load(Ordering::Relaxed), 51);
        assert!(task.is_finished());
        drop(last);
    }
}

#[test]
fn a_blocking_join_of_a_local_task_is_refused() {
    let runtime = LocalRuntime::new().unwrap();
    let text = runtime.block_on(bounded(async {
        let local = spawn_local(std::future::pending::<()>());
        let join = volt::spawn(async move {
            message(catch_unwind(AssertUnwindSafe(|| local.join())).unwrap_err())
        });
        join.await.unwrap()
    }));
    assert!(text.contains("would wait for ever"), "{text}");
}

#[test]
fn a_panic_stays_in_its_task() {
    let runtime = LocalRuntime::new().unwrap();
    let (bad, good) = runtime.block_on(bounded(async {
        let bad = spawn_local(async { panic!("a local panic") }).await;
        (bad, spawn_local(async { Rc::new(5) }).await)
    }));
    assert!(bad.unwrap_err().is_panic());
    assert_eq!(*good.unwrap(), 5);
    let outer = catch_unwind(|| runtime.block_on(async { panic!("outer") }));
    assert_eq!(message(outer.unwrap_err()), "outer");
    assert_eq!(runtime.block_on(async { spawn_local(async { 6 }).await.unwrap() }), 6);
}

#[test]
fn timers_sockets_and_threads_work_in_it() {
    let runtime = LocalRuntime::new().unwrap();
    let sent = runtime.block_on(bounded(async {
        use volt::io::{AsyncReadExt, AsyncWriteExt};
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let count = Rc::new(Cell::new(0));
        let server = spawn_local({
            let count = count.clone();
            async move {
                for _ in 0..20 {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let count = count.clone();
                    spawn_local(async move {
                        let mut byte = [0];
                        stream.read_exact(&mut byte).await.unwrap();
                        count.set(count.get() + usize::from(byte[0]));
                        stream.write_all(&byte).await.unwrap();
                    });
                }
            }
        });
        for number in 0..20_u8 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(&[number]).await.unwrap();
            let mut byte = [0];
            stream.read_exact(&mut byte).await.unwrap();
            assert_eq!(byte, [number]);
        }
        server.await.unwrap();
        let blocking = volt::task::spawn_blocking(here).await.unwrap();
        assert_ne!(blocking, here());
        count.get()
    }));
    assert_eq!(sent, (0..20).sum());
}

#[test]
fn a_local_runtime_has_one_thread() {
    let build = || Builder::new_multi_thread().build_local(LocalOptions::default());
    let text = message(catch_unwind(build).unwrap_err());
    assert!(text.contains("`build_local` needs `Builder::new_current_thread`"), "{text}");
    // A builder may make several.
    let mut builder = Builder::new_current_thread();
    let (first, second) = (
        builder.build_local(LocalOptions::default()),
        builder.build_local(LocalOptions::default()),
    );
    let (first, second) = (first.unwrap(), second.unwrap());
    let task = second.spawn_local(async { 1 });
    assert_eq!(first.block_on(async { spawn_local(async { 2 }).await.unwrap() }), 2);
    assert!(!task.is_finished());
    assert_eq!(second.block_on(bounded(task)).unwrap(), 1);
    // And others of the builder have no set.
    let plain = builder.build().unwrap();
    assert!(plain.block_on(async { catch_unwind(|| drop(spawn_local(async {}))) }).is_err());
}

#[volt::test(flavor = "local", start_paused = true)]
async fn the_attribute_makes_one() {
    let start = Instant::now();
    let shared = Rc::new(Cell::new(0));
    let tasks: Vec<_> = (1..=3)
        .map(|hours| {
            let shared = shared.clone();
            spawn_local(async move {
                sleep(Duration::from_secs(hours * 3600)).await;
                shared.set(shared.get() + hours);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!((shared.get(), start.elapsed()), (6, Duration::from_secs(3 * 3600)));
}
