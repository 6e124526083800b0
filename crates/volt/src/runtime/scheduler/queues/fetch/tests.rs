//! What counts as a member's own, and how long the injector's turn is.

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::{Arc, AtomicUsize};

use crate::runtime::config::Config;
use crate::runtime::context;
use crate::runtime::driver::Driver;
use crate::runtime::scheduler::pacing::pace::Waited;
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::worker::{Step, Worker};
use crate::time::Clock;

/// The only worker of a scheduler, which `test` ends.
fn alone(clock: Clock, test: impl FnOnce(&Arc<Shared>, &Worker<'_>)) {
    let (driver, handle) = Driver::new(1, clock).unwrap();
    let shared = Shared::new(Config::default(), 1, driver, handle);
    let park = shared.park_of(0);
    test(&shared, &Worker::new(&shared, 0, &park));
}

/// A worker whose polls take 150 us, and which has sent `sent` of the `there` tasks of the injector.
fn with_injector(sent: usize, there: usize, test: impl FnOnce(&Worker<'_>)) {
    alone(Clock::real(), |shared, worker| {
        worker.pace.set_poll_ns(150_000.0);
        let tasks: Vec<_> = (0..there).map(|i| shared.spawn(async move { i })).collect();
        assert_eq!(shared.injector.len(), there);
        worker.sent.set(sent);
        context::with_worker(worker, || test(worker));
        drop(tasks);
        shared.begin_shutdown();
        context::with_worker(worker, || worker.end());
    });
}

fn fetch(worker: &Worker<'_>) {
    let task = worker.fetch().unwrap();
    worker.adopt(task).run();
    assert!(worker.slot.batch.len() > 8);
}

#[test]
fn a_batch_is_own_if_all_that_was_there_was_sent() {
    for (sent, is_own) in [(0, false), (128, false), (300, true)] {
        with_injector(sent, 300, |worker| {
            fetch(worker);
            assert_eq!(worker.batch_is_own.get(), is_own, "{sent}");
        });
    }
}

#[test]
fn a_task_of_others_is_soon_forgotten_among_ones_own() {
    for (sent, is_own) in [(150, false), (299, true)] {
        with_injector(sent, 300, |worker| {
            for fetches in 0..2 {
                fetch(worker);
                assert_eq!(worker.batch_is_own.get(), is_own && fetches > 0, "{sent}");
                if fetches == 0 {
                    let left = worker.shared.injector.len();
                    assert_eq!(worker.sent.get(), if is_own { left } else { left - 150 }, "{sent}");
                }
                while let Some(task) = worker.slot.batch.pop().or_else(|| worker.slot.ring.pop()) {
                    worker.adopt(task).run();
                }
            }
        });
    }
}

/// The ticks of a flood from outside are as long as these have shown; one's own are in the mean.
#[test]
fn a_batch_that_is_own_makes_no_tick_longer() {
    for (sent, longer) in [(0, true), (300, false)] {
        with_injector(sent, 300, |worker| {
            fetch(worker);
            // So much that the next tick has one poll of the member's own.
            while worker.pace.polls_left() > 0 {
                worker.pace.count();
            }
            worker.pace.began_long_ago();
            worker.maintain();
            assert_eq!(worker.pace.polls_left() > 1, longer, "{sent}");
        });
    }
}

#[test]
fn what_overtakes_is_not_of_a_batch_that_is_own() {
    with_injector(300, 300, |worker| {
        fetch(worker);
        while let Some(task) = worker.slot.batch.pop() {
            worker.adopt(task).run();
        }
        let task = worker.shared.injector.pop().unwrap();
        // SAFETY: the handle keeps the task alive.
        worker.shared.quick.learn(unsafe { task.as_ref() }.type_key());
        worker.waited.set(Waited::Ring);
        worker.overtakes.set(true);
        worker.keep_found(task);
        worker.overtakes.set(false);
        assert!(worker.overtook.get() && !worker.batch_is_own.get());
    });
}

/// A worker has two tasks of its own, whose polls take 10 us, and the injector 400, each of which does `each`: how many of
/// these run before one of its own does.
fn turn_beside_own_tasks(each: impl Fn(&Clock) + Clone + Send + 'static) -> usize {
    let clock = Clock::paused();
    let (driver, handle) = Driver::new(1, clock.clone()).unwrap();
    let shared = Shared::new(Config::default(), 1, driver, handle);
    let park = shared.park_of(0);
    let worker = Worker::new(&shared, 0, &park);
    let (ran, ran_before) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(usize::MAX)));
    for _ in 0..2 {
        let (ran, ran_before) = (ran.clone(), ran_before.clone());
        drop(shared.spawn(async move { _ = ran_before.fetch_min(ran.load(Relaxed), Relaxed) }));
        worker.push(shared.injector.pop().unwrap());
    }
    for _ in 0..400 {
        let (ran, each, clock) = (ran.clone(), each.clone(), clock.clone());
        drop(shared.spawn(async move {
            ran.fetch_add(1, Relaxed);
            each(&clock);
        }));
    }
    worker.pace.set_poll_ns(10_000.0);
    worker.pace.injector_is_next();
    context::with_worker(&worker, || {
        while ran_before.load(Relaxed) == usize::MAX {
            assert_eq!(worker.step(), Step::Continue);
        }
        shared.begin_shutdown();
        worker.end();
    });
    ran_before.load(Relaxed)
}

/// Without it, two tasks that compute and yield have a poll each for 33 short ones of a thousand from outside.
#[test]
fn the_injectors_turn_takes_as_long_as_a_round_of_ones_own() {
    fn takes(ns: u64) -> usize {
        turn_beside_own_tasks(move |clock| {
            clock.advance_to(clock.now_ns() + ns);
        })
    }
    // A batch is run to its end, and a paused clock ends no turn.
    assert_eq!([0, 10, 200, 310, 700].map(takes), [8 * 33, 8 * 33, 4 * 33, 2 * 33, 33]);
}

#[test]
fn who_is_woken_by_the_injectors_turn_waits_for_a_batch() {
    let first = std::sync::atomic::AtomicBool::new(true);
    let first = std::sync::Arc::new(first);
    let before = turn_beside_own_tasks(move |_| {
        if first.swap(false, Relaxed) {
            drop(crate::spawn(async {}));
        }
    });
    assert_eq!(before, 33);
}

/// A worker has 300 tasks whose polls take `poll_ns`, each of which spawns the next one of its kind, and `others` are pushed from
/// outside: how many polls it makes before it takes some of the injector.
fn polls_before_a_batch(poll_ns: f32, others: usize) -> u32 {
    struct Chain(Arc<Shared>);
    impl Chain {
        fn spawn(self) {
            let shared = self.0.clone();
            drop(shared.spawn(async move { self.go_on() }));
        }

        fn go_on(self) {
            if !self.0.is_shut_down() {
                self.spawn();
            }
        }
    }
    let mut polls = 0;
    alone(Clock::paused(), |shared, worker| {
        context::with_worker(worker, || (0..300).for_each(|_| Chain(shared.clone()).spawn()));
        assert!(!shared.injector.is_empty_for(false));
        (0..others).for_each(|_| drop(shared.spawn(async {})));
        context::with_worker(worker, || {
            while worker.slot.metrics.batch_fetches.get() == 0 {
                worker.pace.set_poll_ns(poll_ns);
                assert_eq!(worker.step(), Step::Continue);
                polls += 1;
            }
            shared.begin_shutdown();
            worker.end();
        });
    });
    polls
}

/// Each batch of it would make the full ring overflow once more.
#[test]
fn what_short_tasks_spawn_beside_a_full_ring_waits_for_four_rounds() {
    let rounds = polls_before_a_batch(40.0, 0);
    let round = polls_before_a_batch(40.0, 1);
    assert!((100..=256).contains(&round), "{round}");
    // The first was shorter, as the ring had just overflowed.
    assert!((560..=720).contains(&rounds), "{rounds}");
    // Four rounds of 255 polls would take longer than a quarter of a millisecond.
    assert!(polls_before_a_batch(300.0, 0) < rounds);
    assert_eq!(polls_before_a_batch(600.0, 0), round);
    assert_eq!(polls_before_a_batch(10_000.0, 0), polls_before_a_batch(10_000.0, 1));
}

/// A batch of a burst fits into one that is less than half full.
#[test]
fn only_a_ring_that_is_half_full_lets_a_burst_wait() {
    for (left, waits) in [(127, false), (128, true)] {
        alone(Clock::paused(), |shared, worker| {
            context::with_worker(worker, || {
                (0..300).for_each(|_| drop(shared.spawn(async {})));
                while worker.slot.ring.len() > left {
                    worker.adopt(worker.slot.ring.pop().unwrap()).run();
                }
                worker.pace.set_poll_ns(40.0);
                let task = worker.next_of_injector();
                assert_eq!(task.is_none(), waits, "{left}");
                task.into_iter().for_each(|task| worker.adopt(task).run());
                shared.begin_shutdown();
                worker.end();
            });
        });
    }
}
