//! Decisions of one worker beside a parked one.

use crate::runtime::config::Config;
use crate::runtime::context;
use crate::runtime::driver::Driver;
use crate::runtime::scheduler::idle::Roles;
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::worker::{Stage, Step, Worker};
use crate::time::Clock;

/// What a fork pushes wakes the others, unless the ring will be empty before they are up: that is so
/// only if both what waits there and what runs now return quickly.
#[test]
fn a_fork_wakes_nobody_only_if_the_poll_that_forks_is_quick() {
    for (runs_quick, waits_quick) in [(true, true), (false, true), (true, false)] {
        let (driver, handle) = Driver::new(2, Clock::real()).unwrap();
        let shared = Shared::new(Config::default(), 2, driver, handle);
        let parks = [shared.park_of(0), shared.park_of(1)];
        let [running, parked] = [0, 1].map(|index| Worker::new(&shared, index, &parks[index]));
        running.pace.set_poll_ns(100.0);
        assert!(shared.idle.park(1, false, false).watcher);
        context::with_worker(&running, || {
            let forks: Vec<_> = [1, 2]
                .into_iter()
                .map(|i| {
                    let task = shared.spawn(async move { i });
                    // SAFETY: the handle keeps the task alive.
                    let kind = unsafe { task.target().unwrap().as_ref() }.type_key();
                    if waits_quick {
                        shared.quick.learn(kind);
                    }
                    let running_kind = if runs_quick { kind } else { 1 };
                    running.slot.kind.store(running_kind, std::sync::atomic::Ordering::Relaxed);
                    if runs_quick && !waits_quick {
                        // Another kind than that of the tasks.
                        shared.quick.learn(32);
                        running.slot.kind.store(32, std::sync::atomic::Ordering::Relaxed);
                    }
                    task
                })
                .collect();
            assert_eq!(shared.idle.is_parked(1), runs_quick && waits_quick);
            drop(forks);
        });
        shared.begin_shutdown();
        for worker in [&running, &parked] {
            context::with_worker(worker, || worker.end());
        }
    }
}

/// Who parks beside a member that will be back soon does not go into the driver before it; beside
/// one that may take long it does.
#[test]
fn a_driver_is_left_to_a_member_in_a_quick_poll() {
    const QUICK: usize = 32;
    const SLOW: usize = 48;
    for (kind, left) in [(QUICK, true), (SLOW, false), (super::super::quick::OF_NO_TASK, false)] {
        let (driver, handle) = Driver::new(2, Clock::real()).unwrap();
        let shared = Shared::new(Config::default(), 2, driver, handle);
        let parks = [shared.park_of(0), shared.park_of(1)];
        let members = [0, 1].map(|index| Worker::new(&shared, index, &parks[index]));
        let park = |worker: &Worker<'_>| {
            worker.ran.set(true);
            worker.stage.set(Stage::Searched);
            assert_eq!(worker.step(), Step::Continue);
            worker.roles.get()
        };
        shared.quick.learn(QUICK);
        members[1].slot.kind.store(kind, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(park(&members[0]), Roles { driver: !left, watcher: true });
        assert_eq!(park(&members[1]), Roles { driver: left, watcher: false });
        shared.begin_shutdown();
        for worker in &members {
            context::with_worker(worker, || worker.end());
        }
    }
}

/// A drop that blocks while its worker ends has the worker end elsewhere, and once: each is counted
/// once, and what the drop waits for is dropped by the other thread.
#[test]
fn a_worker_whose_end_blocks_ends_once_and_on_another_thread() {
    struct WaitsFor(Option<crate::task::JoinHandle<()>>);

    impl Drop for WaitsFor {
        fn drop(&mut self) {
            let task = self.0.take().expect("dropped once");
            let cancelled = crate::task::block_in_place(|| task.join().unwrap_err().is_cancelled());
            assert!(cancelled, "nothing runs this far into a shutdown");
        }
    }

    for workers in [1, 2, 8] {
        let (driver, handle) = Driver::new(workers, Clock::real()).unwrap();
        let shared = Shared::new(Config::default(), workers, driver, handle);
        // Idle ones, and some that are queued.
        for _ in 0..6 {
            let waited_for = shared.spawn(std::future::pending());
            let waits = WaitsFor(Some(waited_for));
            drop(shared.spawn(async move {
                std::future::pending::<()>().await;
                drop(waits);
            }));
        }
        shared.begin_shutdown();
        let parks: Vec<_> = (0..workers).map(|index| shared.park_of(index)).collect();
        for (index, park) in parks.iter().enumerate() {
            let worker = Worker::new(&shared, index, park);
            context::with_worker(&worker, || worker.run_thread());
            assert_eq!(worker.handed_over.get(), index == 0, "the first one drops them");
        }
        assert!(shared.threads.wait(Some(std::time::Duration::from_secs(60))));
        assert_eq!(shared.alive_tasks(), 0);
        assert_eq!(shared.workers_left(), 0);
    }
}
