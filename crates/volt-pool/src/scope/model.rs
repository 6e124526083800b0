use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::Relaxed;

use super::{Scope, State, run_scope};
use crate::engine::{Config, Core};
use crate::frame::{Frame, Outcome};
use crate::played::Pool;
use crate::worker::{Help, Work, Worker};
use volt_sync::internal::primitive::{Arc, UnsafeCell, explore, thread};

/// One search of the pool's thread.
fn work(pool: &Pool) {
    if let Some(task) = pool.search() {
        Worker::enter(&raw const pool.worker);
        pool.worker.run(Work::Task(task));
        Worker::enter(std::ptr::null());
    }
}

#[derive(Clone, Copy)]
struct SendState(*const State);

// SAFETY: a state is shared by threads.
unsafe impl Send for SendState {}

fn guest<'s, R>(pool: &Pool, body: impl FnOnce(&Scope<'s>) -> R) -> R {
    pool.core.as_guest(|_| run_scope(&pool.core, body))
}

#[test]
fn the_scope_ends_after_all_of_its_tasks() {
    explore(|| {
        let pool = Pool::new();
        let other = pool.clone();
        let thread = thread::spawn(move || work(&other));
        let shared = &pool;
        guest(shared, |scope| {
            scope.spawn(move |_| shared.task(0));
        });
        // Loom reports a task that is still at work.
        pool.values[0].with_mut(|_| ());
        assert_eq!(pool.runs.load(Relaxed), 1);
        thread.join().unwrap();
    });
}

/// Each task ends on a thread of its own, and only the last one wakes the owner.
#[test]
fn the_scope_ends_after_all_of_its_tasks_on_two_threads() {
    explore(|| {
        let pool = Pool::new();
        // SAFETY: waited for below; the model keeps the core.
        let state = unsafe { State::new(&pool.core, None) };
        let own = SendState(state.own);
        state.count();
        state.count();
        let threads = [0, 1].map(|number| {
            let pool = pool.clone();
            thread::spawn(move || {
                let own = own;
                pool.task(number);
                // SAFETY: the model holds the state until the threads are joined.
                unsafe { (*own.0).finished(1) };
            })
        });
        if !state.settle() {
            while state.frame.outcome().is_none() {
                state.frame.sleep(|| false);
            }
        }
        pool.values.iter().for_each(|value| value.with_mut(|_| ()));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_ticket_in_flight_finds_the_task() {
    explore(|| {
        let pool = Pool::new();
        let other = pool.clone();
        let thread = thread::spawn(move || work(&other));
        let shared = &pool;
        guest(shared, |scope| {
            scope.spawn(move |_| shared.task(0));
            scope.spawn(move |_| shared.task(1));
        });
        pool.values.iter().for_each(|value| value.with_mut(|_| ()));
        assert_eq!(pool.runs.load(Relaxed), 2);
        thread.join().unwrap();
    });
}

/// The same without an owner that helps itself: with a task left, a ticket is queued.
#[test]
fn a_ticket_in_flight_finds_the_task_or_another_one_will() {
    explore(|| {
        let pool = Pool::new();
        let shared = &pool;
        // SAFETY: settled below; the model keeps the core.
        let state = unsafe { State::new(&pool.core, None) };
        let scope = Scope { state, marker: PhantomData };
        scope.spawn(|_| shared.task(0));
        let other = pool.clone();
        let thread = thread::spawn(move || work(&other));
        // The queue is empty again, and the ticket is perhaps still queued.
        scope.state.run_outside();
        scope.spawn(|_| shared.task(1));
        thread.join().unwrap();
        // The pool's thread, which is free now.
        Worker::enter(&raw const pool.worker);
        while let Some((work, _)) = pool.worker.find() {
            pool.worker.run(work);
        }
        Worker::enter(std::ptr::null());
        assert_eq!(pool.runs.load(Relaxed), 2);
        assert!(scope.state.settle());
    });
}

/// Two tasks panic: the owner gets one of the payloads, whole.
#[test]
fn the_first_panic_reaches_the_owner() {
    struct Payload(UnsafeCell<u32>);
    // SAFETY: loom checks the cell.
    unsafe impl Send for Payload {}
    fn panics() -> ! {
        let payload = Payload(UnsafeCell::new(0));
        payload.0.with_mut(|_| ());
        resume_unwind(Box::new(payload))
    }
    explore(|| {
        let pool = Pool::new();
        let other = pool.clone();
        let thread = thread::spawn(move || work(&other));
        let result = catch_unwind(AssertUnwindSafe(|| {
            guest(&pool, |scope| {
                scope.spawn(|_| panics());
                scope.spawn(|_| panics());
            });
        }));
        let payload = result.unwrap_err().downcast::<Payload>().unwrap();
        payload.0.with_mut(|_| ());
        thread.join().unwrap();
    });
}

/// A ticket that is run after the scope has ended finds nothing, and frees the state.
#[test]
fn a_late_ticket_is_harmless() {
    explore(|| {
        let pool = Pool::new();
        let shared = &pool;
        guest(shared, |scope| scope.spawn(move |_| shared.task(0)));
        assert_eq!(pool.runs.load(Relaxed), 1);
        let other = pool.clone();
        thread::spawn(move || work(&other)).join().unwrap();
        assert!(pool.core.injector.is_empty());
        assert_eq!(pool.runs.load(Relaxed), 1);
    });
}

/// A thread takes the rest of another one's chunk and gives it back to the scope.
#[test]
fn the_rest_of_a_chunk_can_be_taken_while_it_runs() {
    explore(|| {
        let pool = Pool::new();
        let other = pool.clone();
        let shared = &pool;
        pool.core.as_guest(|worker| {
            let record: &Worker = worker.unwrap();
            // SAFETY: the model keeps the pool, and so the record, until the thread is joined.
            let record: &'static Worker = unsafe { &*std::ptr::from_ref(record) };
            let thread = thread::spawn(move || {
                if let Some(rest) = record.held.take() {
                    // SAFETY: taken from `held`.
                    unsafe { State::put_back(rest) };
                }
                drop(other);
            });
            run_scope(&shared.core, |scope| {
                scope.spawn(move |_| shared.task(0));
                scope.spawn(move |_| shared.task(1));
            });
            assert_eq!(shared.runs.load(Relaxed), 2);
            thread.join().unwrap();
        });
    });
}

/// A thread takes tasks together, and the last one but one waits for the last, if it runs it: the owner, who may
/// just fall asleep, has to come for that.
fn the_last_of_a_chunk_is_waited_for(count: u32) {
    explore(move || {
        let pool = Pool::new();
        let helper = std::cell::Cell::new(None);
        let begun = &pool.runs;
        let owner = thread::current().id();
        guest(&pool, |scope| {
            for _ in 0..count {
                scope.spawn(move |_| {
                    let waits = begun.fetch_add(1, Relaxed) == count - 2;
                    while waits && thread::current().id() != owner && begun.load(Relaxed) < count {
                        thread::yield_now();
                    }
                });
            }
            let (pool, state) = (pool.clone(), scope.state.clone());
            helper.set(Some(thread::spawn(move || {
                pool.core.as_guest(|worker| state.run_chunk(worker.unwrap()));
            })));
        });
        assert_eq!(begun.load(Relaxed), count);
        helper.take().unwrap().join().unwrap();
    });
}

#[test]
fn an_owner_who_sleeps_is_told_of_the_rest_of_a_chunk() {
    the_last_of_a_chunk_is_waited_for(2);
}

/// Between the first and the second one there is no moment at which nothing is left to take.
#[test]
fn an_owner_who_sleeps_has_seen_the_rest_of_a_chunk() {
    the_last_of_a_chunk_is_waited_for(3);
}

#[derive(Clone, Copy)]
struct SendScope(*const Scope<'static>);

// SAFETY: a scope is shared by threads.
unsafe impl Send for SendScope {}

/// A task spawns another one, and its thread leaves without having looked at its ring, as does the
/// one that sleeps: the pool is shut down meanwhile. With `queued` a ticket is out already.
fn spawn_beside_a_shutdown(
    queued: bool,
    run: impl Fn(&Pool, &dyn Fn(&Scope<'static>)) + Sync + Send + 'static,
) {
    explore(move || {
        let pool = Pool::new();
        pool.core.sync.count_sleeper();
        let threads = std::cell::Cell::new(None);
        run(&pool, &|scope| {
            scope.state.ticket_queued.store(queued, Relaxed);
            // The task that spawns.
            scope.state.count();
            let (spawner, ending) = (pool.clone(), pool.clone());
            let scope = SendScope(scope);
            let spawner = thread::spawn(move || {
                let scope = scope;
                // SAFETY: the scope waits for the task that this thread plays.
                let scope = unsafe { &*scope.0 };
                Worker::enter(&raw const spawner.worker);
                let pool = spawner.clone();
                scope.spawn(move |_| pool.task(0));
                // The last use of the scope.
                let state = scope.state.clone();
                // SAFETY: holds the state.
                unsafe { state.finished(1) };
                Worker::enter(std::ptr::null());
            });
            let ending = thread::spawn(move || ending.core.announce_end());
            threads.set(Some([spawner, ending]));
        });
        assert_eq!(pool.runs.load(Relaxed), 1);
        for thread in threads.take().unwrap() {
            thread.join().unwrap();
        }
        let mut left = crate::task::TaskList::new();
        pool.worker.drain(&mut left);
    });
}

#[test]
fn a_task_spawned_beside_a_shutdown_is_run() {
    spawn_beside_a_shutdown(false, |pool, body| guest(pool, body));
}

/// The spawner has no other fence then.
#[test]
fn a_task_spawned_beside_a_shutdown_and_a_ticket_is_run() {
    spawn_beside_a_shutdown(true, |pool, body| guest(pool, body));
}

/// The owner has no record in the pool.
#[test]
fn a_task_spawned_beside_a_shutdown_is_run_outside() {
    spawn_beside_a_shutdown(false, |pool, body| run_scope(&pool.core, body));
}

/// The owner is a thread of another pool, for which the pool's only thread waits: that one runs what
/// the body has spawned, and what another task spawns.
#[test]
fn a_host_runs_the_tasks_of_an_owner_elsewhere() {
    explore(|| {
        let (pool, other) = (Pool::new(), Core::new(Config { threads: 1, ..Config::default() }));
        // SAFETY: the model keeps the pool, and so the record, until the threads are joined.
        let host: &'static Worker = unsafe { &*(&raw const pool.worker) };
        // SAFETY: a null parent is allowed.
        let call = unsafe { Frame::new(std::ptr::null(), host.parker(), host) };
        let call = Arc::new(call);
        let waits_for = call.clone();
        let waiting = thread::spawn(move || {
            Worker::enter(host);
            host.wait(&waits_for, Help::Mail);
            Worker::enter(std::ptr::null());
        });
        let spawner = std::cell::Cell::new(None);
        other.as_guest(|owner| {
            owner.unwrap().within(&raw const *call, || {
                run_scope(&pool.core, |scope: &Scope<'static>| {
                    let first = pool.clone();
                    scope.spawn(move |_| first.task(0));
                    // The task that spawns.
                    scope.state.count();
                    let (state, pool) = (scope.state.clone(), pool.clone());
                    let scope = SendScope(scope);
                    spawner.set(Some(thread::spawn(move || {
                        let scope = scope;
                        // SAFETY: the scope waits for the task that this thread plays.
                        unsafe { &*scope.0 }.spawn(move |_| pool.task(1));
                        // SAFETY: holds the state.
                        unsafe { state.finished(1) };
                    })));
                });
            });
        });
        assert_eq!(pool.runs.load(Relaxed), 2);
        // SAFETY: nobody else finishes it.
        unsafe { Frame::finish(&raw const *call, Outcome::Done) };
        spawner.take().unwrap().join().unwrap();
        waiting.join().unwrap();
    });
}
