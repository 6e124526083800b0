//! A ring that is left to its member, against those who park. A lost wake-up is a deadlock to loom.
//!
//! Time does not pass in models, so nothing here may depend on the watcher's next look.

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::{Arc, explore, explore_preempted, thread};

use crate::runtime::be_worker;
use crate::runtime::config::Config;
use crate::runtime::context;
use crate::runtime::driver::Driver;
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::worker::{Stage, Worker};
use crate::time::Clock;

use super::{OFF, attended};

const QUICK: usize = 32;

/// Two workers, of which the first is attended and polls something quick.
fn with_scheduler(test: impl FnOnce(&Arc<Shared>, &Worker<'_>)) {
    let config = Config { seed: 1, ..Config::default() };
    let (driver, handle) = Driver::new(2, Clock::real()).unwrap();
    let shared = Shared::new(config, 2, driver, handle);
    let park = shared.park_of(0);
    let alone = Worker::new(&shared, 0, &park);
    shared.quick.learn(QUICK);
    alone.slot.kind.store(QUICK, Relaxed);
    shared.crowd.modelled.store(true, Relaxed);
    shared.crowd.word.store(attended(0), Relaxed);
    test(&shared, &alone);
}

/// The other worker's thread.
fn start(shared: &Arc<Shared>) -> thread::JoinHandle<()> {
    let shared = shared.clone();
    thread::spawn(move || be_worker(&shared, 1))
}

fn stop(shared: &Shared, alone: &Worker<'_>, other: thread::JoinHandle<()>) {
    shared.begin_shutdown();
    context::with_worker(alone, || alone.end());
    other.join().unwrap();
}

/// Nobody watches: who looks for work takes it from a member that is alone, and waits for it in a poll.
#[test]
fn held_up() {
    explore(|| {
        with_scheduler(|shared, alone| {
            let task = shared.spawn(async { 1 });
            alone.push(shared.injector.pop().unwrap());
            let other = start(shared);
            assert_eq!(volt_sync::internal::block_on(task).unwrap(), 1);
            stop(shared, alone, other);
        });
    });
}

/// The ring becomes one for all while the other member parks, and watches: it is woken, or sees the ring.
fn against_parking(share: fn(&Worker<'_>)) {
    explore_preempted(1, move || {
        with_scheduler(move |shared, alone| {
            // So that its spawn wakes nobody.
            let task = shared.spawn(async { 1 });
            let queued = shared.injector.pop().unwrap();
            let theirs = shared.clone();
            let other = thread::spawn(move || {
                let park = theirs.park_of(1);
                let parks = Worker::new(&theirs, 1, &park);
                // It has found nothing: its search would only make the model large.
                parks.stage.set(Stage::Searched);
                context::with_worker(&parks, || parks.run_thread());
            });
            alone.push(queued);
            share(alone);
            assert_eq!(volt_sync::internal::block_on(task).unwrap(), 1);
            stop(shared, alone, other);
        });
    });
}

#[test]
fn a_ring_that_is_shared_against_parking() {
    against_parking(|alone| alone.share_ring());
}

/// As a push does it that tells others anyway.
#[test]
fn a_ring_that_a_push_shares_against_parking() {
    against_parking(|alone| {
        alone.release_ring();
        alone.shared.notify();
    });
}

#[test]
fn a_crowd_that_ends_against_parking() {
    against_parking(|alone| alone.shared.set_crowd(false));
}

/// A push relies on the watcher, which goes to sleep for good: it watches on, or somebody searches. (A
/// choosy guest watches as well. Without a crowd a push relies on it, too, if what waits will be done soon.)
#[test]
fn a_push_against_a_watcher_that_stops() {
    for (choosy, word) in [(false, attended(0)), (true, attended(0)), (true, OFF)] {
        explore(move || {
            with_scheduler(|shared, alone| {
                shared.crowd.word.store(word, Relaxed);
                // So that its spawn wakes nobody.
                let task = shared.spawn(async { 1 });
                let queued = shared.injector.pop().unwrap();
                let roles = shared.idle.park(1, false, false);
                assert!(roles.watcher);
                let theirs = shared.clone();
                let watches = thread::spawn(move || {
                    let park = theirs.park_of(1);
                    let watcher = Worker::new(&theirs, 1, &park);
                    watcher.choosy.set(choosy);
                    watcher.roles.set(roles);
                    watcher.stage.set(Stage::Asleep);
                    watcher.watch_expired();
                });
                alone.push(queued);
                let relies = shared.idle.load().has_watcher();
                watches.join().unwrap();
                let summary = shared.idle.load();
                assert!(!relies || summary.has_watcher() || summary.searching() > 0);
                drop(task);
                shared.begin_shutdown();
                let park = shared.park_of(1);
                for worker in [alone, &Worker::new(shared, 1, &park)] {
                    context::with_worker(worker, || worker.end());
                }
            });
        });
    }
}
