//! Drops that block on the one thread that would drop what they wait for.
#![allow(clippy::disallowed_methods, reason = "a test")]

use std::future::{Future, pending};
use std::ptr::NonNull;
use std::time::Duration;

use volt_sync::internal::primitive::{Arc, Mutex, thread};

use crate::runtime::be_worker;
use crate::runtime::config::Config;
use crate::runtime::context;
use crate::runtime::driver::Driver;
use crate::runtime::scheduler::guests::guest;
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::worker::Worker;
use crate::task::{Header, JoinError, JoinHandle, block_in_place};
use crate::time::Clock;

/// A way to block for a task.
type Waits = fn(&Arc<Shared>, JoinHandle<()>) -> Result<(), JoinError>;

const WAYS: [Waits; 3] = [
    |_, task| task.join(),
    |shared, task| guest::block_on(shared, task),
    // From a poll, of a future that is no member's.
    |shared, task| guest::block_on(shared, async { task.join() }),
];

/// The task that a drop waits for, which is spawned after the one that is dropped.
type Later = Arc<Mutex<Option<JoinHandle<()>>>>;

/// A future that never ends, and whose drop waits for `task`.
fn waiting(shared: &Arc<Shared>, task: Later, way: Waits) -> impl Future<Output = ()> + use<> {
    struct Waiting(Arc<Shared>, Later, Waits);

    impl Drop for Waiting {
        fn drop(&mut self) {
            let task = self.1.lock().unwrap().take().expect("dropped once");
            let joined = block_in_place(|| (self.2)(&self.0, task));
            assert!(joined.unwrap_err().is_cancelled());
        }
    }

    let waiting = Waiting(shared.clone(), task, way);
    async move {
        pending::<()>().await;
        drop(waiting);
    }
}

fn scheduler(workers: usize, config: Config) -> Arc<Shared> {
    let (driver, handle) = Driver::new(workers.max(1), Clock::real()).unwrap();
    Shared::new(config, workers, driver, handle)
}

/// No thread can have such a stack: a worker is never handed over.
fn without_threads() -> Config {
    Config { thread_stack_size: Some(1 << 60), ..Config::default() }
}

/// Runs `f` on a thread of its own, which has to end.
fn ends(f: impl FnOnce() + Send + 'static) {
    let (done, ended) = std::sync::mpsc::channel();
    let thread = thread::spawn(move || {
        f();
        done.send(()).unwrap();
    });
    let waited = ended.recv_timeout(Duration::from_secs(60));
    assert_ne!(waited, Err(std::sync::mpsc::RecvTimeoutError::Timeout), "it hangs");
    thread.join().unwrap();
}

/// Of a chain of tasks, each waits in its drop for the next one, which is spawned, and so dropped, after
/// it. The first one.
fn chain(shared: &Arc<Shared>, length: usize, way: Waits) -> JoinHandle<()> {
    let mut waits = Later::default();
    let first = shared.spawn(waiting(shared, waits.clone(), way));
    for _ in 2..length {
        let later = Later::default();
        let task = shared.spawn(waiting(shared, later.clone(), way));
        *waits.lock().unwrap() = Some(task);
        waits = later;
    }
    *waits.lock().unwrap() = Some(shared.spawn(pending()));
    first
}

#[test]
fn the_thread_that_ends_a_current_thread_runtime_drops_what_a_drop_waits_for() {
    for way in WAYS {
        for (length, idle) in [(2, true), (2, false), (20, true), (20, false)] {
            ends(move || {
                let shared = scheduler(0, Config::default());
                let first = chain(&shared, length, way);
                if idle {
                    guest::block_on(&shared, crate::task::yield_now());
                }
                shared.begin_shutdown();
                shared.shut_down_current_thread(None);
                assert_eq!(shared.alive_tasks(), 0);
                assert!(first.join().unwrap_err().is_cancelled());
            });
        }
    }
}

#[test]
fn the_only_worker_drops_what_a_drop_waits_for_if_no_thread_can_go_on_as_it() {
    for way in WAYS {
        for length in [2, 20] {
            ends(move || {
                let shared = scheduler(1, without_threads());
                let first = chain(&shared, length, way);
                shared.begin_shutdown();
                let park = shared.park_of(0);
                let worker = Worker::new(&shared, 0, &park);
                context::with_worker(&worker, || worker.run_thread());
                assert!(!worker.handed_over.get());
                assert_eq!((shared.alive_tasks(), shared.workers_left()), (0, 0));
                assert!(first.join().unwrap_err().is_cancelled());
            });
        }
    }
}

/// Tasks are run in the `block_on`, as they are in a join.
#[test]
fn the_only_worker_runs_what_a_blocking_call_waits_for_if_no_thread_can_go_on_as_it() {
    for way in WAYS {
        for yields in [0, 3] {
            ends(move || {
                let shared = scheduler(1, without_threads());
                let theirs = shared.clone();
                let task = shared.spawn(async move {
                    let other = theirs.spawn(async move {
                        for _ in 0..yields {
                            crate::task::yield_now().await;
                        }
                    });
                    block_in_place(|| way(&theirs, other)).unwrap();
                    theirs.begin_shutdown();
                });
                let park = shared.park_of(0);
                let worker = Worker::new(&shared, 0, &park);
                context::with_worker(&worker, || worker.run_thread());
                assert!(!worker.handed_over.get());
                task.join().unwrap();
            });
        }
    }
}

/// The call has begun to block before the runtime shuts down.
#[test]
fn the_only_worker_drops_what_a_poll_waits_for_if_no_thread_can_go_on_as_it() {
    for way in WAYS {
        ends(move || {
            let shared = scheduler(1, without_threads());
            let (blocks, blocked) = std::sync::mpsc::channel();
            let theirs = shared.clone();
            let task = shared.spawn(async move {
                let other = theirs.spawn(pending());
                let joined = block_in_place(|| {
                    blocks.send(()).unwrap();
                    way(&theirs, other)
                });
                assert!(joined.unwrap_err().is_cancelled());
            });
            let worker = thread::spawn({
                let shared = shared.clone();
                move || be_worker(&shared, 0)
            });
            blocked.recv().unwrap();
            // It sleeps by then, most probably.
            thread::sleep(Duration::from_millis(20));
            shared.begin_shutdown();
            worker.join().unwrap();
            assert_eq!(shared.alive_tasks(), 0);
            assert!(task.join().is_ok());
        });
    }
}

/// A chain that needs more of the stack than there is: the drop at the limit panics, so those above it
/// see that, and no drop waits for ever.
#[test]
fn drops_that_wait_for_each_other_too_deeply_panic() {
    ends(|| {
        context::set_stack_size(Some(64 << 10));
        let shared = scheduler(0, Config::default());
        let way: Waits = |shared, task| match guest::block_on(shared, task) {
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            joined => joined,
        };
        let first = chain(&shared, 1000, way);
        shared.begin_shutdown();
        shared.shut_down_current_thread(None);
        assert_eq!(shared.alive_tasks(), 0);
        let message = first.join().unwrap_err().into_panic().downcast::<&str>().unwrap();
        assert!(message.contains("nested too deeply"), "{message}");
    });
}

/// Takes a queued task, as somebody would who is about to queue it.
fn take(shared: &Shared) -> NonNull<Header> {
    shared.injector.pop().expect("it was just spawned")
}

/// A task that comes late, in the last drain of the last worker, blocks in its drop: the worker goes
/// back among those that have not ended, and ends on the other thread, once.
#[test]
fn the_last_worker_is_handed_over_in_its_last_drain() {
    struct Blocks(Option<JoinHandle<()>>, std::sync::mpsc::Sender<()>);

    impl Drop for Blocks {
        fn drop(&mut self) {
            let task = self.0.take().expect("dropped once");
            let joined = block_in_place(|| {
                self.1.send(()).unwrap();
                task.join()
            });
            assert!(joined.unwrap_err().is_cancelled());
        }
    }

    ends(|| {
        let shared = scheduler(1, Config::default());
        let waited_for = shared.spawn(pending());
        let second = take(&shared);
        let (blocks, blocked) = std::sync::mpsc::channel();
        let blocks = Blocks(Some(waited_for), blocks);
        let waits = shared.spawn(async move {
            pending::<()>().await;
            drop(blocks);
        });
        let first = take(&shared);
        shared.begin_shutdown();
        let worker = thread::spawn({
            let shared = shared.clone();
            move || {
                let park = shared.park_of(0);
                let worker = Worker::new(&shared, 0, &park);
                context::with_worker(&worker, || worker.run_thread());
                worker.handed_over.get()
            }
        });
        while shared.workers_left() > 0 {
            thread::yield_now();
        }
        // SAFETY: the task's `Notified`, taken above.
        unsafe { shared.injector.push(first) };
        blocked.recv().unwrap();
        // SAFETY: the task's `Notified`, taken above.
        unsafe { shared.injector.push(second) };
        assert!(worker.join().unwrap(), "it is handed over");
        assert!(shared.threads.wait(Some(Duration::from_secs(30))));
        assert_eq!((shared.alive_tasks(), shared.workers_left()), (0, 0));
        assert!(waits.join().unwrap_err().is_cancelled());
    });
}
