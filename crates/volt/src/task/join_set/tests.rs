//! Sequential tests of `JoinSet`, on a scheduler that is a queue.

use std::future::{pending, ready};
use std::task::{Context, Poll, Waker};

use super::JoinSet;
use crate::task::test::{Dropped, Queue, counting_waker};

fn join<T: 'static>(set: &mut JoinSet<T>) -> Poll<Option<Result<T, super::JoinError>>> {
    set.poll_join_next(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn tasks_are_joined_in_the_order_of_completion() {
    let queue = Queue::new();
    let mut set = JoinSet::new();
    assert!(matches!(join(&mut set), Poll::Ready(None)));
    for n in 0..100 {
        set.insert(Queue::spawn(&queue, ready(n)));
    }
    assert_eq!(set.len(), 100);
    assert!(join(&mut set).is_pending());
    queue.run();
    for n in 0..100 {
        let Poll::Ready(Some(Ok(output))) = join(&mut set) else { panic!("nothing to join") };
        assert_eq!(output, n);
    }
    assert!(set.is_empty());
    assert!(matches!(join(&mut set), Poll::Ready(None)));
    Queue::shutdown(queue);
}

#[test]
fn task_that_has_completed_before_it_is_added() {
    let queue = Queue::new();
    let mut set = JoinSet::new();
    let handle = Queue::spawn(&queue, ready(1));
    queue.run();
    let abort = set.insert(handle);
    assert!(abort.is_finished());
    let (id, output) = set.try_join_next_with_id().unwrap().unwrap();
    assert_eq!((id, output), (abort.id(), 1));
    assert!(set.try_join_next().is_none());
    Queue::shutdown(queue);
}

#[test]
fn only_one_wake_up_for_a_batch() {
    let queue = Queue::new();
    let mut set = JoinSet::new();
    for n in 0..10 {
        set.insert(Queue::spawn(&queue, ready(n)));
    }
    let (counter, waker) = counting_waker();
    assert!(set.poll_join_next(&mut Context::from_waker(&waker)).is_pending());
    queue.run();
    assert_eq!(counter.get(), 1);
    assert_eq!(std::iter::from_fn(|| set.try_join_next()).count(), 10);
    Queue::shutdown(queue);
}

#[test]
fn dropping_the_set_aborts_and_detaching_does_not() {
    let queue = Queue::new();
    let (owned, dropped) = Dropped::counter();
    let mut set = JoinSet::new();
    for _ in 0..20 {
        let owned = owned.clone();
        set.insert(Queue::spawn(&queue, async move {
            let _owned = owned;
            pending::<()>().await;
        }));
    }
    queue.run();
    set.detach_all();
    assert!(set.is_empty());
    queue.run();
    assert_eq!(dropped(), 0);
    for _ in 0..20 {
        let owned = owned.clone();
        set.insert(Queue::spawn(&queue, async move {
            let _owned = owned;
            pending::<()>().await;
        }));
    }
    queue.run();
    drop(set);
    queue.run();
    assert_eq!(dropped(), 20);
    Queue::shutdown(queue);
    assert_eq!(dropped(), 40);
}

#[test]
fn abort_all_leaves_the_tasks_to_be_joined() {
    let queue = Queue::new();
    let mut set = JoinSet::new();
    set.insert(Queue::spawn(&queue, ready(())));
    queue.run();
    set.insert(Queue::spawn(&queue, pending()));
    set.insert(Queue::spawn(&queue, async { panic!("before the abort") }));
    queue.run();
    set.abort_all();
    queue.run();
    let mut results = Vec::new();
    while let Some(result) = set.try_join_next() {
        results.push(result.map_err(|error| error.is_cancelled()));
    }
    results.sort();
    assert_eq!(results, [Ok(()), Err(false), Err(true)]);
    Queue::shutdown(queue);
}

#[test]
fn memory_of_a_burst_is_given_back_and_entries_are_used_again() {
    let queue = Queue::new();
    let mut set = JoinSet::new();
    for round in 0..3 {
        for n in 0..1000 {
            set.insert(Queue::spawn(&queue, ready(n)));
        }
        queue.run();
        let sum: i32 = std::iter::from_fn(|| set.try_join_next()).map(Result::unwrap).sum();
        assert_eq!(sum, 499_500, "round {round}");
    }
    Queue::shutdown(queue);
}

#[test]
fn drop_with_outputs_that_were_not_joined() {
    let queue = Queue::new();
    let (owned, dropped) = Dropped::counter();
    let mut set = JoinSet::new();
    for _ in 0..3 {
        set.insert(Queue::spawn(&queue, ready(owned.clone())));
    }
    queue.run();
    drop(set.try_join_next());
    set.insert(Queue::spawn(&queue, ready(owned)));
    drop(set);
    queue.run();
    assert_eq!(dropped(), 4);
    Queue::shutdown(queue);
}

/// The memory goes although a wake-up has panicked.
#[test]
fn panic_in_the_sets_waker_keeps_no_count() {
    struct Panics {
        _owns: Dropped,
    }
    impl std::task::Wake for Panics {
        fn wake(self: std::sync::Arc<Self>) {
            panic!("a test");
        }
    }
    let queue = Queue::new();
    let mut set = JoinSet::new();
    let (owns, dropped) = Dropped::counter();
    let waker = Waker::from(std::sync::Arc::new(Panics { _owns: owns }));
    set.insert(Queue::spawn(&queue, ready(1)));
    assert!(set.poll_join_next(&mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    queue.run();
    assert_eq!(dropped(), 1);
    let Poll::Ready(Some(Ok(1))) = join(&mut set) else { panic!("nothing to join") };
    let (counts, own) = set.tasks.counts();
    assert_eq!(counts, own);
    Queue::shutdown(queue);
}
