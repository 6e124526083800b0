//! Tasks that a thread runs on top of a wait in the middle of something else: they see nothing of that, and hold it up
//! only once.
#![allow(clippy::disallowed_methods, reason = "a test")]

use std::sync::mpsc;
use std::time::Duration;

use volt::runtime::{Builder, Handle, Runtime};
use volt::sync::oneshot;
use volt::task::{LocalSet, block_in_place, spawn_blocking, spawn_local, yield_now};

volt::task_local! {
    static KEY: u32;
}

fn current() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

fn workers(count: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(count).build().unwrap()
}

#[test]
fn tasks_of_block_on_do_not_see_the_task_locals_of_its_caller() {
    for rt in [current(), workers(1), workers(2)] {
        KEY.sync_scope(1, || {
            rt.block_on(async {
                for _ in 0..100 {
                    let task = volt::spawn(async { KEY.try_get().is_err() });
                    assert!(task.await.unwrap(), "a task has its own");
                    assert_eq!(KEY.get(), 1, "the future of `block_on` has its caller's");
                }
            });
            assert_eq!(KEY.get(), 1);
        });
    }
}

#[test]
fn tasks_on_top_of_a_join_keep_their_task_locals_to_themselves() {
    let rt = current();
    rt.block_on(KEY.scope(1, async {
        let sees = volt::spawn(async { KEY.try_get().ok() });
        let scoped = volt::spawn(KEY.scope(2, async { KEY.get() }));
        // Somebody holds a reference to the value meanwhile.
        KEY.with(|value| {
            assert_eq!(sees.join().unwrap(), None);
            assert_eq!(scoped.join().unwrap(), 2);
            assert_eq!((*value, KEY.get()), (1, 1));
        });
    }));
}

#[test]
fn a_panic_on_top_of_a_wait_leaves_the_task_locals_as_they_were() {
    let rt = current();
    rt.block_on(KEY.scope(1, async {
        let panics = volt::spawn(KEY.scope(2, async { panic!("on purpose") }));
        assert!(panics.join().unwrap_err().is_panic());
        assert_eq!(KEY.get(), 1);
    }));
    assert!(KEY.try_get().is_err());
}

#[test]
fn a_scope_may_be_entered_while_its_value_is_borrowed() {
    KEY.sync_scope(1, || {
        KEY.with(|outer| {
            KEY.sync_scope(2, || assert_eq!((*outer, KEY.get()), (1, 2)));
            assert_eq!(KEY.get(), 1);
        });
    });
}

#[test]
fn a_task_on_top_of_a_wait_in_a_local_set_is_not_of_that_set() {
    let set = LocalSet::new();
    set.block_on(&current(), async {
        let task = volt::spawn(async { spawn_local(async {}).await });
        let error = task.join().unwrap_err();
        let message = *error.into_panic().downcast::<String>().unwrap();
        assert!(message.contains("`spawn_local` needs a `LocalSet`"), "{message}");
        assert_eq!(spawn_local(async { 3 }).await.unwrap(), 3);
    });
}

/// Polls quickly, then blocks for the end of somebody who waits for it.
async fn bridge(began: oneshot::Sender<()>, end: oneshot::Receiver<()>) {
    for _ in 0..20 {
        yield_now().await;
    }
    began.send(()).unwrap();
    block_in_place(|| Handle::current().block_on(end).unwrap());
}

/// The future of `block_on` waits for a message, and then lets a task go on that blocks for it.
fn round(rt: &Runtime) {
    rt.block_on(async {
        let (tell, told) = oneshot::channel();
        let (begin, began) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let bridge = volt::spawn(bridge(begin, ended));
        let middle = volt::spawn(async move {
            began.await.unwrap();
            volt::time::sleep(Duration::from_micros(100)).await;
            tell.send(()).unwrap();
        });
        told.await.unwrap();
        end.send(()).unwrap();
        bridge.await.unwrap();
        middle.await.unwrap();
    });
}

/// Fails if `f` hangs.
fn ends(f: impl FnOnce() + Send + 'static) {
    let (tell, told) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        f();
        tell.send(()).unwrap();
    });
    match told.recv_timeout(Duration::from_secs(30)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        _ => thread.join().unwrap(),
    }
}

#[test]
fn a_kind_that_has_blocked_in_place_is_left_to_the_workers() {
    ends(|| {
        let rt = workers(3);
        // Each kind blocks for the first time where it does no harm.
        rt.block_on(async {
            let (begin, began) = oneshot::channel();
            let (end, ended) = oneshot::channel();
            let first = volt::spawn(bridge(begin, ended));
            end.send(()).unwrap();
            began.await.unwrap();
            first.await.unwrap();
        });
        (0..300).for_each(|_| round(&rt));
    });
}

#[test]
fn nothing_runs_on_top_of_a_block_on_in_a_blocking_call() {
    ends(|| {
        let rt = workers(4);
        for turn in 0..300 {
            rt.block_on(async {
                let (to_one, one) = oneshot::channel();
                let (to_two, two) = oneshot::channel();
                let first = volt::spawn(async move {
                    yield_now().await;
                    block_in_place(|| Handle::current().block_on(one).unwrap());
                    to_two.send(()).unwrap();
                });
                let second = async move {
                    yield_now().await;
                    let wait = move || Handle::current().block_on(two).unwrap();
                    if turn % 2 == 0 {
                        block_in_place(wait);
                    } else {
                        spawn_blocking(wait).await.unwrap();
                    }
                };
                let second = volt::spawn(second);
                volt::spawn(async move { to_one.send(()).unwrap() });
                first.await.unwrap();
                second.await.unwrap();
            });
        }
    });
}

#[test]
fn a_thread_in_a_blocking_call_runs_no_tasks_of_others() {
    let rt = workers(1);
    let ran_here = rt.block_on(async {
        let closure = || {
            let here = std::thread::current().id();
            Handle::current().block_on(async {
                let mut any = false;
                for _ in 0..1_000 {
                    let task = volt::spawn(async { std::thread::current().id() });
                    any |= task.await.unwrap() == here;
                }
                any
            })
        };
        let both = async move { (block_in_place(closure), spawn_blocking(closure).await.unwrap()) };
        volt::spawn(both).await.unwrap()
    });
    assert_eq!(ran_here, (false, false));
}

/// Who drives a set inside of its own drive takes the place of the driver below only as long as that lasts.
#[test]
fn a_set_that_is_driven_on_top_of_its_driver_goes_on() {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        let rt = workers(2);
        let (set, (sender, receiver)) = (LocalSet::new(), oneshot::channel());
        let value = rt.block_on(set.run_until(async {
            let task = spawn_local(receiver);
            block_in_place(|| rt.handle().block_on(set.run_until(async {})));
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                sender.send(7).unwrap();
            });
            task.await.unwrap().unwrap()
        }));
        done.send(value).unwrap();
    });
    assert_eq!(is_done.recv_timeout(Duration::from_secs(10)), Ok(7), "the task's wake-up is lost");
}

/// A guard that is held over an `.await`, or over a blocking join, is the caller's, not that of the tasks that are run
/// meanwhile.
#[test]
fn tasks_on_top_of_a_wait_are_in_their_own_runtime() {
    for (a, b) in [(current(), workers(1)), (workers(1), current()), (workers(2), workers(1))] {
        let (a_id, b_id) = (a.handle().id(), b.handle().id());
        let id_of_child = || async {
            let own = Handle::current().id();
            (own, volt::spawn(async { Handle::current().id() }).await.unwrap())
        };
        a.block_on(async {
            let guard = b.enter();
            for _ in 0..200 {
                assert_eq!(a.spawn(id_of_child()).await.unwrap(), (a_id, a_id));
                assert_eq!(Handle::current().id(), b_id, "the caller's guard is still there");
                assert_eq!(a.spawn(id_of_child()).join().unwrap(), (a_id, a_id));
                assert_eq!(Handle::current().id(), b_id, "after a join as well");
            }
            drop(guard);
            assert_eq!(Handle::current().id(), a_id);
        });
        // In a task, which cannot hold it over an `.await`.
        let (a_handle, b_handle) = (a.handle().clone(), b.handle().clone());
        let task = a.spawn(async move {
            for _ in 0..50 {
                let guard = b_handle.enter();
                assert_eq!(a_handle.spawn(id_of_child()).join().unwrap(), (a_id, a_id));
                assert_eq!(Handle::current().id(), b_id);
                drop(guard);
                assert_eq!(Handle::current().id(), a_id);
            }
        });
        a.block_on(task).unwrap();
    }
}

#[test]
fn a_panic_below_a_guard_leaves_the_callers_runtime_as_it_was() {
    let (a, b) = (workers(1), workers(1));
    let (a_id, b_id) = (a.handle().id(), b.handle().id());
    a.block_on(async {
        let _guard = b.enter();
        volt::task::yield_now().await;
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _inner = a.enter();
            let panics = a.spawn(async { panic!("on purpose") });
            assert_eq!(Handle::current().id(), a_id);
            panics.join().unwrap()
        }));
        assert!(caught.is_err());
        assert_eq!(Handle::current().id(), b_id);
    });
    assert!(Handle::try_current().is_err());
}

/// A guard that was forgotten by a task keeps its runtime for ever, and no more.
#[test]
fn a_task_on_top_of_a_guard_may_forget_its_own() {
    let (rt, other) = (current(), workers(1));
    let inside = rt.block_on(async {
        let forgets = async || {
            #[allow(clippy::mem_forget, reason = "what is tested")]
            std::mem::forget(Handle::current().enter());
        };
        let _guard = other.enter();
        rt.spawn(forgets()).await.unwrap();
        rt.spawn(forgets()).join().unwrap();
        Handle::current().id()
    });
    assert_eq!(inside, other.handle().id());
    other.shutdown_background();
}
