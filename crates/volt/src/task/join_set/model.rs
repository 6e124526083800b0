//! Loom models of `JoinSet`: completions on other threads against joining and dropping.

use std::future::ready;
use std::task::Poll;
use volt_sync::internal::primitive::{explore, explore_preempted, thread};

use super::JoinSet;
use crate::task::test::{Dropped, Queue, counting_waker};

/// [JS1]: two tasks complete on two threads while the set joins: it gets each once, and is woken
/// whenever it has to wait.
#[test]
fn each_task_is_joined_once() {
    explore(|| {
        let queue = Queue::new();
        let (owns, dropped) = Dropped::counter();
        let mut set = JoinSet::new();
        set.insert(Queue::spawn(&queue, ready(owns.clone())));
        set.insert(Queue::spawn(&queue, ready(owns)));
        let tasks = [queue.pop().unwrap(), queue.pop().unwrap()];
        let threads = tasks.map(|task| thread::spawn(move || task.run()));
        let (counter, waker) = counting_waker();
        let mut cx = std::task::Context::from_waker(&waker);
        let mut joined = 0;
        let mut missed = None;
        for _ in 0..2 {
            match set.poll_join_next(&mut cx) {
                Poll::Ready(output) => {
                    output.unwrap().unwrap();
                    joined += 1;
                }
                Poll::Pending => missed = Some(counter.get()),
            }
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        if joined < 2 && missed.is_some() {
            assert!(counter.get() > 0, "woken");
        }
        while let Some(output) = set.try_join_next() {
            drop(output.unwrap());
            joined += 1;
        }
        assert_eq!((joined, set.len(), dropped()), (2, 0, 2));
        drop(set);
        Queue::shutdown(queue);
    });
}

/// [JS2]: a task completes while the set goes away. Whoever is last frees the entry, after the other one
/// has left it.
#[test]
fn the_last_of_set_and_task_frees_the_entry() {
    explore(|| {
        let queue = Queue::new();
        let mut set = JoinSet::new();
        set.insert(Queue::spawn(&queue, ready(())));
        let task = queue.pop().unwrap();
        let thread = thread::spawn(move || task.run());
        drop(set);
        thread.join().unwrap();
        Queue::shutdown(queue);
    });
}

/// The set goes away while its tasks complete: no entry is pushed into freed memory (loom checks
/// the counts), outputs are dropped once.
#[test]
fn drop_against_completion() {
    // More take long; the model above has two, with one task.
    explore_preempted(1, || {
        let queue = Queue::new();
        let (owns, dropped) = Dropped::counter();
        let mut set = JoinSet::new();
        set.insert(Queue::spawn(&queue, ready(owns.clone())));
        set.insert(Queue::spawn(&queue, ready(owns)));
        let tasks = [queue.pop().unwrap(), queue.pop().unwrap()];
        let threads = tasks.map(|task| thread::spawn(move || task.run()));
        drop(set);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(dropped(), 2);
        Queue::shutdown(queue);
    });
}
