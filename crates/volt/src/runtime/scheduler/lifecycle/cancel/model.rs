//! Drops that block at a shutdown, on loom's threads. One that waits for ever is a deadlock to loom.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::{Arc, AtomicUsize, explore, explore_preempted, thread};

use crate::runtime::be_worker;
use crate::runtime::config::Config;
use crate::runtime::driver::Driver;
use crate::runtime::scheduler::guests::{guest, helping};
use crate::runtime::scheduler::shared::Shared;
use crate::task::{Header, JoinHandle};
use crate::time::Clock;

fn scheduler(workers: usize) -> Arc<Shared> {
    let config = Config { seed: 1, ..Config::default() };
    let (driver, handle) = Driver::new(workers, Clock::real()).unwrap();
    Shared::new(config, workers, driver, handle)
}

/// Joins a task in its drop, and counts that.
struct Waits {
    task: Option<JoinHandle<()>>,
    in_place: bool,
    dropped: Arc<AtomicUsize>,
}

impl Drop for Waits {
    fn drop(&mut self) {
        let task = self.task.take().expect("dropped once");
        let join = || helping::block_on_helping(task);
        let joined = if self.in_place { guest::block_in_place(join) } else { join() };
        assert!(joined.unwrap_err().is_cancelled());
        self.dropped.fetch_add(1, Relaxed);
    }
}

/// Two tasks that somebody is about to queue; the first waits for the second.
fn two_tasks(
    shared: &Shared,
    in_place: bool,
    dropped: &Arc<AtomicUsize>,
) -> (NonNull<Header>, NonNull<Header>) {
    let task = shared.spawn(std::future::pending());
    let second = shared.injector.pop().unwrap();
    let waits = Waits { task: Some(task), in_place, dropped: dropped.clone() };
    drop(shared.spawn(async move {
        std::future::pending::<()>().await;
        drop(waits);
    }));
    (shared.injector.pop().unwrap(), second)
}

/// Both come late, perhaps in the last drain of the only worker, which is handed over for the first, and
/// ends once, on one thread or the other.
#[test]
fn last_worker_is_handed_over_in_its_last_drain() {
    explore_preempted(1, || {
        let shared = scheduler(1);
        let dropped = Arc::new(AtomicUsize::new(0));
        let (first, second) = two_tasks(&shared, true, &dropped);
        shared.begin_shutdown();
        let worker = thread::spawn({
            let shared = shared.clone();
            move || be_worker(&shared, 0)
        });
        // SAFETY: the task's `Notified`, from `two_tasks`.
        unsafe { shared.injector.push(first) };
        // SAFETY: the second `Notified` of the two.
        unsafe { shared.injector.push(second) };
        worker.join().unwrap();
        shared.threads.wait(None);
        shared.blocking.shutdown(None);
        assert_eq!(shared.alive_tasks(), 0);
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

/// The thread that shuts a current-thread runtime down drops the task for which a drop on its stack
/// waits, when another thread queues it.
#[test]
fn canceller_drops_what_a_drop_waits_for() {
    explore(|| {
        let shared = scheduler(0);
        let dropped = Arc::new(AtomicUsize::new(0));
        let (first, second) = two_tasks(&shared, false, &dropped);
        // SAFETY: the task's `Notified`, from `two_tasks`.
        unsafe { shared.injector.push(first) };
        let late = Late(second);
        let outside = thread::spawn({
            let shared = shared.clone();
            move || {
                let Late(second) = { late };
                // SAFETY: the second `Notified` of the two.
                unsafe { shared.injector.push(second) };
            }
        });
        shared.begin_shutdown();
        shared.shut_down_current_thread(None);
        outside.join().unwrap();
        assert_eq!(shared.alive_tasks(), 0);
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

/// A `Notified` on its way to another thread.
struct Late(NonNull<Header>);
// SAFETY: headers are `Send`, and so is the right to queue them.
unsafe impl Send for Late {}
