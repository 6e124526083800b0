//! Many tasks at one lock, or one channel: throughput must not collapse when a crowd comes.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use volt::runtime::{Builder, Runtime};
use volt::sync::{Mutex, RwLock, Semaphore, mpmc};

const OPERATIONS: usize = 32_000;
const ROUNDS: usize = 40;
/// A wait has as many turns as fit into a millisecond, and a poll takes 4 us and more without optimisation.
const CROWD: usize = if cfg!(debug_assertions) { 24 } else { 64 };

/// How long `tasks` tasks take for all operations together.
fn time<F>(
    rt: &Runtime,
    tasks: usize,
    operation: impl Fn(usize) -> F + Clone + Send + 'static,
) -> Duration
where
    F: Future<Output = ()> + Send,
{
    let begin = Instant::now();
    rt.block_on(async {
        let tasks: Vec<_> = (0..tasks)
            .map(|task| {
                let operation = operation.clone();
                volt::spawn(async move {
                    for _ in 0..OPERATIONS / tasks {
                        operation(task).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    begin.elapsed()
}

/// A crowd on four workers is to take at most twice the time of four tasks; the test allows twice
/// that, since the machine may be busy. For the same reason the best round counts for each, of five
/// at least, and of as many as it takes to find one that was not disturbed.
fn does_not_collapse<F>(name: &str, operation: impl Fn(usize) -> F + Clone + Send + 'static)
where
    F: Future<Output = ()> + Send,
{
    let rt = Builder::new_multi_thread().worker_threads(4).build().unwrap();
    let (mut few, mut many) = (Duration::MAX, Duration::MAX);
    for round in 0..ROUNDS {
        if round >= 5 && many < 4 * few {
            break;
        }
        few = few.min(time(&rt, 4, operation.clone()));
        many = many.min(time(&rt, CROWD, operation.clone()));
    }
    assert!(many < 4 * few, "{name}: 4 tasks {few:?}, {CROWD} tasks {many:?}");
}

#[test]
fn a_mutex_does_not_collapse_under_a_crowd() {
    let mutex = Arc::new(Mutex::new(0_u64));
    does_not_collapse("mutex", move |_| {
        let mutex = mutex.clone();
        async move { *mutex.lock().await += 1 }
    });
}

/// Held across a yield, so that there is a queue all the time.
#[test]
fn a_mutex_that_is_held_across_a_yield_does_not_collapse_under_a_crowd() {
    let mutex = Arc::new(Mutex::new(0_u64));
    does_not_collapse("mutex across a yield", move |_| {
        let mutex = mutex.clone();
        async move {
            let mut guard = mutex.lock().await;
            volt::task::yield_now().await;
            *guard += 1;
        }
    });
}

#[test]
fn a_semaphore_does_not_collapse_under_a_crowd() {
    let semaphore = Arc::new(Semaphore::new(2));
    does_not_collapse("semaphore", move |_| {
        let semaphore = semaphore.clone();
        async move { drop(semaphore.acquire().await.unwrap()) }
    });
}

#[test]
fn a_read_write_lock_does_not_collapse_under_a_crowd() {
    let lock = Arc::new(RwLock::new(0_u64));
    does_not_collapse("rwlock", move |task| {
        let lock = lock.clone();
        async move {
            if task % 4 == 0 {
                *lock.write().await += 1;
            } else {
                std::hint::black_box(*lock.read().await);
            }
        }
    });
}

/// Half of the tasks send, half of them receive.
#[test]
fn a_channel_does_not_collapse_under_a_crowd() {
    for capacity in [16, 1024] {
        let (tx, rx) = mpmc::bounded(capacity);
        does_not_collapse(&format!("mpmc of {capacity}"), move |task| {
            let (tx, rx) = (tx.clone(), rx.clone());
            async move {
                if task % 2 == 0 {
                    tx.send(task).await.unwrap();
                } else {
                    std::hint::black_box(rx.recv().await.unwrap());
                }
            }
        });
    }
}

/// One queue must not make every later operation a place in the queue, a wake-up and a poll. Returns
/// the operations.
async fn tasks_in_a_queue(tasks: u64) -> u64 {
    let each = 40_000 / tasks.min(8);
    let mutex = Arc::new(Mutex::new(0_u64));
    let guard = mutex.lock().await;
    let joins: Vec<_> = (0..tasks)
        .map(|_| {
            let mutex = mutex.clone();
            volt::spawn(async move {
                for _ in 0..each {
                    *mutex.lock().await += 1;
                }
            })
        })
        .collect();
    for _ in 0..10 {
        volt::task::yield_now().await;
    }
    drop(guard);
    assert!(mutex.try_lock().is_err(), "it is handed over");
    for join in joins {
        join.await.unwrap();
    }
    assert_eq!(*mutex.lock().await, tasks * each);
    tasks * each
}

/// Polls and operations, on one worker.
fn polls_of_a_queue(tasks: u64) -> (u64, u64) {
    let rt = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (done, wait) = std::sync::mpsc::channel();
    rt.spawn(async move { done.send(tasks_in_a_queue(tasks).await).unwrap() });
    // Outside the runtime, so that one thread runs them all.
    let operations = wait.recv().unwrap();
    (rt.metrics().polls_count(), operations)
}

#[test]
fn a_short_queue_is_gone_after_a_turn_for_each() {
    let (polls, operations) = polls_of_a_queue(4);
    assert!(polls < operations / 20, "{polls} polls");
}

/// It takes some thousand operations to learn how many turns it needs.
#[test]
fn the_queue_of_a_crowd_is_gone_after_several_turns_for_each() {
    let (polls, operations) = polls_of_a_queue(CROWD as u64);
    assert!(polls < operations / 10, "{polls} polls of {operations} operations");
}

#[test]
fn a_short_queue_is_gone_in_a_current_thread_runtime() {
    let rt = Builder::new_current_thread().build().unwrap();
    let operations = rt.block_on(tasks_in_a_queue(4));
    let polls = rt.metrics().polls_count();
    assert!(polls < operations / 20, "{polls} polls");
}

/// Who gave others a turn is still one of several futures of its task, and may have a deadline.
#[test]
fn a_turn_is_given_by_futures_inside_select_and_timeout() {
    let rt = Builder::new_current_thread().enable_all().build().unwrap();
    let mutex = Arc::new(Mutex::new(0_u64));
    rt.block_on(async {
        let guard = mutex.lock().await;
        let tasks: Vec<_> = (0..3)
            .map(|task| {
                let mutex = mutex.clone();
                volt::spawn(async move {
                    for _ in 0..300 {
                        match task {
                            0 => *mutex.lock().await += 1,
                            1 => {
                                let wait =
                                    volt::time::timeout(Duration::from_secs(60), mutex.lock());
                                *wait.await.expect("nobody keeps it") += 1;
                            }
                            _ => volt::select! {
                                biased;
                                mut count = mutex.lock() => *count += 1,
                                () = std::future::pending::<()>() => unreachable!(),
                            },
                        }
                    }
                })
            })
            .collect();
        volt::task::yield_now().await;
        drop(guard);
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(*mutex.try_lock().unwrap(), 900);
}
