use std::future::poll_fn;
use std::sync::{Arc, PoisonError};

use std::task::{Poll, Waker};
use std::time::Duration;
use volt_sync::internal::primitive::Mutex;

use super::{Failure, Reason, Sim, explore};
use crate::task;
use crate::time;

fn stress(seeds: u64) -> u64 {
    seeds * std::env::var("VOLT_STRESS").map_or(1, |s| s.parse().unwrap_or(1))
}

/// Counts, and wakes whoever waits for a count.
#[derive(Clone, Default)]
struct Counter(Arc<Mutex<(usize, Option<Waker>)>>);

impl Counter {
    fn add(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 += 1;
        let waker = state.1.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn reaches(self, count: usize) -> impl Future<Output = ()> + Send {
        poll_fn(move |cx| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if state.0 >= count {
                return Poll::Ready(());
            }
            state.1 = Some(cx.waker().clone());
            Poll::Pending
        })
    }
}

/// Threads outside spawn tasks for which the future waits.
fn outside_spawns(sim: Sim, spawns: usize) -> Result<(), Failure> {
    let counter = Counter::default();
    let sim = (0..spawns).fold(sim, |sim, _| {
        let counter = counter.clone();
        sim.outside(move |handle| drop(handle.spawn(async move { counter.add() })))
    });
    sim.run(counter.reaches(spawns))
}

#[test]
fn spawns_from_outside_are_never_lost() {
    // The simulation is of one thread, which has no races to find.
    let seeds = if cfg!(volt_tsan) { 50 } else { 1000 };
    for workers in [1, 2, 3, 8] {
        let run = |seed| outside_spawns(Sim::new(seed).workers(workers), 4);
        explore(0..stress(seeds), run).unwrap();
    }
}

/// Finding P1: without the look at the queues after the parked bit is published, a wake-up is lost;
/// the simulation finds that soon, and its seed shows it again.
#[test]
fn a_planted_lost_wake_up_is_found_and_replayed() {
    let run = |seed| outside_spawns(Sim::new(seed).planted_bug(), 2);
    let failure = explore(0..10_000, run).unwrap_err();
    assert_eq!(failure.reason, Reason::LostWakeup);
    assert_eq!(run(failure.seed).unwrap_err(), failure, "the same seed, the same run");
    outside_spawns(Sim::new(failure.seed), 2).unwrap();
}

#[test]
fn a_tree_of_tasks_completes_in_every_order() {
    fn tree(depth: u32) -> std::pin::Pin<Box<dyn Future<Output = u32> + Send>> {
        Box::pin(async move {
            if depth == 0 {
                task::yield_now().await;
                return 1;
            }
            let left = crate::spawn(tree(depth - 1));
            let right = crate::spawn(tree(depth - 1));
            left.await.unwrap() + right.await.unwrap()
        })
    }
    let run = |seed| Sim::new(seed).workers(4).run(tree(5));
    explore(0..stress(200), |seed| run(seed).map(|leaves| assert_eq!(leaves, 32))).unwrap();
}

#[test]
fn timers_fire_in_virtual_time() {
    let run = |seed| {
        Sim::new(seed).workers(3).run(async {
            let start = time::Instant::now();
            let tasks: Vec<_> = (1..=10)
                .map(|minutes| crate::spawn(time::sleep(Duration::from_secs(60 * minutes))))
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            start.elapsed()
        })
    };
    explore(0..stress(100), |seed| {
        run(seed).map(|elapsed| assert!(elapsed >= Duration::from_secs(600)))
    })
    .unwrap();
}

/// So many that no earliest one is looked for among them.
#[test]
fn many_timers_of_one_time_fire_in_virtual_time() {
    let run = |seed| {
        Sim::new(seed).workers(3).run(async {
            let wait = |i: u64| crate::spawn(time::sleep(Duration::from_secs(1 + i / 40)));
            for task in (0..80).map(wait).collect::<Vec<_>>() {
                task.await.unwrap();
            }
        })
    };
    explore(0..stress(20), run).unwrap();
}

/// In whatever order: before the first poll, between two, or after the last.
#[test]
fn aborts_and_panics_end_their_tasks_only() {
    let run = |seed| {
        Sim::new(seed).workers(3).run(async {
            let panics = crate::spawn(async {
                task::yield_now().await;
                std::panic::resume_unwind(Box::new("boom"));
            });
            let aborted = crate::spawn(async {
                time::sleep(Duration::from_secs(1)).await;
                std::future::pending::<()>().await;
            });
            let raced = crate::spawn(async {
                task::yield_now().await;
                7
            });
            raced.abort();
            let aborter = aborted.abort_handle();
            crate::spawn(async move {
                time::sleep(Duration::from_secs(2)).await;
                aborter.abort();
            })
            .await
            .unwrap();
            assert!(panics.await.unwrap_err().is_panic());
            assert!(aborted.await.unwrap_err().is_cancelled());
            match raced.await {
                Ok(output) => output == 7,
                Err(error) => error.is_cancelled(),
            }
        })
    };
    explore(0..stress(300), |seed| run(seed).map(|fine| assert!(fine))).unwrap();
}

#[test]
fn failures_are_told_apart() {
    let stuck = Sim::new(1).run(std::future::pending::<()>()).unwrap_err();
    assert_eq!(stuck.reason, Reason::Deadlock);
    let endless = async {
        loop {
            task::yield_now().await;
        }
    };
    let endless: Result<(), _> = Sim::new(1).max_steps(100).run(endless);
    assert_eq!(endless.unwrap_err().reason, Reason::TooManySteps);
    let panics = Sim::new(1).run(async { panic!("boom") });
    assert_eq!(panics.unwrap_err().reason, Reason::Panicked);
}

/// What the thread did before is not a part of the seed: nothing that it has learnt of locks decides.
#[test]
fn a_seed_replays_whatever_the_thread_did_before() {
    fn run(seed: u64) -> Failure {
        let contended = async {
            let lock = Arc::new(volt_sync::Mutex::new(()));
            for _ in 0..4 {
                let lock = lock.clone();
                drop(crate::spawn(async move {
                    loop {
                        let guard = lock.lock().await;
                        task::yield_now().await;
                        drop(guard);
                    }
                }));
            }
            std::future::pending::<()>().await
        };
        Sim::new(seed).max_steps(3_000).run(contended).unwrap_err()
    }
    let on_a_thread = |before: bool| {
        let run = move || {
            before.then(|| run(6));
            run(7)
        };
        std::thread::scope(|s| s.spawn(run).join().unwrap())
    };
    assert_eq!(on_a_thread(false), on_a_thread(true));
}

/// It hangs if the task is polled twice before the one that was stolen from beside it is polled once.
#[test]
fn a_task_that_was_taken_may_be_polled_after_one_that_stayed() {
    let program = || async {
        let notify = std::sync::Arc::new(volt_sync::Notify::new());
        let theirs = notify.clone();
        let other = crate::spawn(async move {
            crate::task::yield_now().await;
            theirs.notify_waiters();
        });
        crate::task::yield_now().await;
        notify.notified().await;
        other.await.unwrap();
    };
    for workers in [2, 4, 8] {
        let run = |seed| Sim::new(seed).workers(workers).run(program());
        assert!((0..1000).any(|seed| run(seed).is_ok()));
        let failure = explore(0..1000, run).unwrap_err();
        assert_eq!(failure.reason, Reason::Deadlock);
    }
}

/// The tasks hold the scheduler, and it holds them: with a panic that passed by, none was ever dropped.
#[test]
fn a_panic_outside_reaches_the_caller_when_all_tasks_are_dropped() {
    async fn yields(mark: Arc<()>) {
        loop {
            task::yield_now().await;
            assert!(Arc::strong_count(&mark) > 1);
        }
    }
    for seed in 0..20 {
        let alive = Arc::new(());
        let (first, second, kept) = (yields(alive.clone()), yields(alive.clone()), alive.clone());
        let sim = Sim::new(seed)
            .outside(move |handle| {
                let _kept = kept;
                drop(handle.spawn(first));
            })
            .outside(move |handle| {
                drop(handle.spawn(second));
                std::panic::resume_unwind(Box::new("outside"));
            });
        let root = yields(alive.clone());
        let run = std::panic::AssertUnwindSafe(|| sim.run(root));
        let payload = std::panic::catch_unwind(run).unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"outside"));
        assert_eq!(Arc::strong_count(&alive), 1, "seed {seed}");
        // The thread is as before.
        assert_eq!(Sim::new(seed).run(async { 1 }), Ok(1));
    }
}

/// A virtual worker cannot be handed to a thread. What is refused panics as any other task does, and the rest goes on.
#[test]
fn what_needs_another_thread_is_refused() {
    for seed in 0..20 {
        let run = |in_root: bool| {
            Sim::new(seed).run(async move {
                let blocks = || task::block_in_place(|| ());
                let other = crate::spawn(async move { blocks() });
                let error = other.await.unwrap_err();
                let payload = error.into_panic();
                let message = payload.downcast_ref::<String>().map_or_else(
                    || payload.downcast_ref::<&str>().copied().unwrap_or_default(),
                    String::as_str,
                );
                assert!(message.contains("simulat"), "{message}");
                if in_root {
                    blocks();
                }
                crate::spawn(async { 1 }).await.unwrap()
            })
        };
        assert_eq!(run(false), Ok(1));
        assert_eq!(run(true).unwrap_err().reason, Reason::Panicked);
    }
    // Drops are called all the same: when a task is dropped at the end of a run, and when its poll panics.
    struct Blocks(Arc<Mutex<usize>>);
    impl Drop for Blocks {
        fn drop(&mut self) {
            task::block_in_place(|| *self.0.lock().unwrap() += 1);
        }
    }
    let drops = Arc::new(Mutex::new(0));
    for seed in 0..20 {
        let (first, second) = (Blocks(drops.clone()), Blocks(drops.clone()));
        let run = Sim::new(seed).run(async move {
            drop(crate::spawn(async move {
                let _first = first;
                std::future::pending::<()>().await;
            }));
            let panics = crate::spawn(async move {
                let _second = second;
                panic!("its future is dropped");
            });
            panics.await.unwrap_err().is_panic()
        });
        assert_eq!(run, Ok(true));
    }
    assert_eq!(*drops.lock().unwrap(), 40);
    // Outside of the simulated runtime a thread is a thread.
    let done = Arc::new(Mutex::new(false));
    let theirs = done.clone();
    let sim = Sim::new(1).outside(move |_| {
        let runtime =
            crate::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let task = runtime.spawn(async { task::block_in_place(|| true) });
        let guest = runtime.block_on(async { task::block_in_place(|| true) });
        *theirs.lock().unwrap() = runtime.block_on(task).unwrap() && guest;
    });
    let result = sim.run(poll_fn(move |cx| {
        cx.waker().wake_by_ref();
        if *done.lock().unwrap() { Poll::Ready(()) } else { Poll::Pending }
    }));
    assert_eq!(result, Ok(()));
}
