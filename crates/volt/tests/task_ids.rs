//! No id soon comes back.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::collections::HashSet;

use volt::runtime::Builder;
use volt::task::{Id, JoinHandle};

const TASKS: usize = 500;

/// Each on a thread of its own, which is new, as the task's memory is the same as before.
#[test]
fn tasks_of_one_thread_after_the_other_have_different_ids() {
    let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let handle = runtime.handle();
    let one = || {
        let task = handle.spawn(async { panic!("its error has its id") });
        let id = task.id();
        assert_eq!(handle.block_on(task).unwrap_err().id(), id);
        id
    };
    let on_a_thread = |_| std::thread::scope(|scope| scope.spawn(one).join().unwrap());
    let ids: HashSet<Id> = (0..TASKS).map(on_a_thread).collect();
    assert_eq!(ids.len(), TASKS);
}

#[test]
fn handles_of_tasks_that_have_ended_have_different_ids() {
    let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let handle = runtime.handle();
    let one = || {
        let mut task = handle.spawn(async {});
        handle.block_on(&mut task).unwrap();
        task
    };
    let on_a_thread = |_| std::thread::scope(|scope| scope.spawn(one).join().unwrap());
    let handles: Vec<JoinHandle<()>> = (0..TASKS).map(on_a_thread).collect();
    let ids: HashSet<Id> = handles.iter().map(JoinHandle::id).collect();
    assert_eq!(ids.len(), TASKS);
}

/// Tasks that are spawned by different threads in turn, at the same few addresses.
#[test]
fn tasks_of_all_threads_of_a_runtime_have_different_ids() {
    let runtime = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let ids: HashSet<Id> = runtime.block_on(async {
        let mut ids = HashSet::new();
        for _ in 0..10 * TASKS {
            let parent = volt::spawn(async {
                let child = volt::spawn(async {});
                let id = child.id();
                child.await.unwrap();
                [volt::task::id(), id]
            });
            ids.extend(parent.await.unwrap());
        }
        ids
    });
    assert_eq!(ids.len(), 20 * TASKS);
}

/// A thread that spawns many gets its numbers in larger portions. (The other tests take some as well.)
#[test]
fn many_tasks_of_one_thread_have_different_ids() {
    let runtime = Builder::new_current_thread().build().unwrap();
    let ids: HashSet<Id> = runtime.block_on(async {
        let mut ids = HashSet::new();
        for _ in 0..40_000 {
            let task = volt::spawn(async {});
            ids.insert(task.id());
            task.await.unwrap();
        }
        ids
    });
    assert_eq!(ids.len(), 40_000);
}
