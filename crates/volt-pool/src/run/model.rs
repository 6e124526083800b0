use std::sync::Arc as StdArc;
use std::sync::atomic::Ordering::Relaxed;

use super::{Run, run};
use crate::engine::{Config, Core};
use crate::task::{Action, Task};
use volt_sync::internal::block_on;
use volt_sync::internal::primitive::{Arc, AtomicU32, explore, thread};

/// A pool without threads: the model's second thread calls what is queued.
fn core() -> StdArc<Core> {
    let core = Core::new(Config { threads: 1, ..Config::default() });
    core.count_played_thread();
    core
}

fn call(core: &Core, action: Action) {
    let mut consumer = core.injector.try_lock().unwrap();
    let task = consumer.pop().unwrap();
    let _ = consumer.unlock();
    // SAFETY: out of the queue.
    unsafe { Task::call(task, action) };
}

/// Counts runs, and drops of closures.
struct Seen {
    runs: AtomicU32,
    drops: AtomicU32,
}

struct Guard(Arc<Seen>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.drops.fetch_add(1, Relaxed);
    }
}

fn start(core: &Core) -> (Arc<Seen>, Run<u32>) {
    let seen = Arc::new(Seen { runs: AtomicU32::new(0), drops: AtomicU32::new(0) });
    let guard = Guard(seen.clone());
    let future = run(core, move || {
        guard.0.runs.fetch_add(1, Relaxed);
        7
    });
    (seen, future)
}

#[test]
fn the_result_reaches_the_future() {
    explore(|| {
        let core = core();
        let (seen, future) = start(&core);
        // The counts of a standard `Arc` are no edges for loom: the last one goes after the join.
        let _keep = future.shared.clone();
        let thread = thread::spawn(move || call(&core, Action::Run));
        assert_eq!(block_on(future), 7);
        thread.join().unwrap();
        assert_eq!((seen.runs.load(Relaxed), seen.drops.load(Relaxed)), (1, 1));
    });
}

#[test]
fn dropping_the_future_races_with_the_start() {
    explore(|| {
        let core = core();
        let (seen, future) = start(&core);
        // The counts of a standard `Arc` are no edges for loom: the last one goes after the join.
        let _keep = future.shared.clone();
        let thread = thread::spawn(move || call(&core, Action::Run));
        drop(future);
        thread.join().unwrap();
        assert!(seen.runs.load(Relaxed) <= 1);
        assert_eq!(seen.drops.load(Relaxed), 1, "dropped once, run or not");
    });
}

#[test]
fn discarded_work_is_run_by_whoever_waits() {
    explore(|| {
        let core = core();
        let (seen, future) = start(&core);
        // The counts of a standard `Arc` are no edges for loom: the last one goes after the join.
        let _keep = future.shared.clone();
        let thread = thread::spawn(move || call(&core, Action::Discard));
        assert_eq!(block_on(future), 7);
        thread.join().unwrap();
        assert_eq!((seen.runs.load(Relaxed), seen.drops.load(Relaxed)), (1, 1));
    });
}
