use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::{Notified, SyncWord, Waited};
use volt_sync::internal::Parker;
use volt_sync::internal::primitive::{AtomicU32, AtomicUsize, Mutex, UnsafeCell, explore, thread};

/// The seed's mistakes, each of which a model has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// T2: a thread that cannot be started leaves the state SIGNALED.
    FailureStaysSignaled,
    /// The garbled `wait`, whose branch that counts the thread as idle has lost its `else`.
    AwakeButIdle,
    /// T7: `notify` returns after a plain look.
    LookWithoutFence,
    /// T3: a shutdown does not reach all sleepers.
    ShutdownWakesOne,
    /// Somebody is woken only if he sleeps on another processor.
    WakesOnlyElsewhere,
}

/// A pool reduced to a counter of tasks.
struct Pool {
    sync: SyncWord,
    queue: AtomicU32,
    ran: AtomicU32,
    max: u32,
    /// How many starts fail.
    failures: AtomicU32,
    handles: Mutex<Vec<thread::JoinHandle<()>>>,
    /// What the threads did, for the end of the pool.
    seen: UnsafeCell<u32>,
    starts: AtomicUsize,
    begun: AtomicU32,
    another_ran: Parker,
    /// The first task waits for another one to have run.
    first_waits: bool,
}

// SAFETY: loom checks the cell.
unsafe impl Sync for Pool {}
// SAFETY: as for the one above.
unsafe impl Send for Pool {}

impl Pool {
    fn new(max: u32, failures: u32, defect: Option<Defect>) -> Arc<Self> {
        Arc::new(Self {
            sync: SyncWord { defect, ..SyncWord::new() },
            queue: AtomicU32::new(0),
            ran: AtomicU32::new(0),
            max,
            failures: AtomicU32::new(failures),
            handles: Mutex::new(Vec::new()),
            seen: UnsafeCell::new(0),
            starts: AtomicUsize::new(0),
            begun: AtomicU32::new(0),
            another_ran: Parker::new(),
            first_waits: false,
        })
    }

    fn schedule(self: &Arc<Self>) {
        // A plain store, as in the ring: one producer.
        let queued = self.queue.load(Relaxed);
        if self.queue.compare_exchange(queued, queued + 1, Release, Relaxed).is_err() {
            self.queue.fetch_add(1, Release);
        }
        self.notify();
    }

    fn notify(self: &Arc<Self>) {
        if self.sync.notify(self.max) == Notified::Start {
            self.start();
        }
    }

    fn start(self: &Arc<Self>) {
        let failed = self.failures.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1)).is_ok();
        if failed {
            self.sync.start_failed();
            if self.sync.spawned() == 0 {
                while self.take() {
                    self.work();
                }
            }
            return;
        }
        self.starts.fetch_add(1, Relaxed);
        let pool = self.clone();
        let handle = thread::spawn(move || pool.live());
        self.handles.lock().unwrap().push(handle);
    }

    fn take(&self) -> bool {
        self.queue.fetch_update(AcqRel, Acquire, |n| n.checked_sub(1)).is_ok()
    }

    /// Runs a task that was taken.
    fn work(&self) {
        if self.first_waits && self.begun.fetch_add(1, Relaxed) == 0 {
            while self.ran.load(Acquire) == 0 {
                self.another_ran.park();
            }
        }
        self.ran.fetch_add(1, Release);
        if self.first_waits {
            self.another_ran.unpark();
        }
    }

    fn live(self: &Arc<Self>) {
        let mut waking = false;
        let mut first = true;
        loop {
            if !first && self.take() {
                if waking {
                    waking = false;
                    self.sync.found();
                    if self.queue.load(Relaxed) > 0 {
                        self.notify();
                    }
                }
                self.work();
                continue;
            }
            first = false;
            match self.sync.wait(waking, || false) {
                Waited::Search { waking: role } => waking = role,
                Waited::Shutdown => break,
            }
        }
        while self.take() {
            self.work();
        }
        self.seen.with(|_| ());
        self.sync.exited();
    }

    fn shut_down(&self) {
        self.sync.shut_down();
        loop {
            let handles = std::mem::take(&mut *self.handles.lock().unwrap());
            if handles.is_empty() && self.sync.spawned() == 0 {
                break;
            }
            for handle in handles {
                handle.join().unwrap();
            }
        }
        // Finding T6: what is left is drained.
        while self.take() {
            self.work();
        }
    }
}

/// `tasks` tasks from one thread; a shutdown by itself would hide lost wake-ups, so the tasks are
/// awaited first: loom reports a deadlock if nobody runs them.
fn run(tasks: u32, max: u32, failures: u32, defect: Option<Defect>) {
    explore(move || {
        let pool = Pool::new(max, failures, defect);
        for _ in 0..tasks {
            pool.schedule();
        }
        while pool.ran.load(Acquire) < tasks {
            thread::yield_now();
        }
        pool.shut_down();
        assert_eq!(pool.ran.load(Relaxed), tasks);
    });
}

#[test]
fn a_task_pushed_before_notify_is_run() {
    run(2, 1, 0, None);
}

#[test]
fn two_threads_run_all_tasks() {
    run(2, 2, 0, None);
}

#[test]
fn a_failed_start_loses_no_task() {
    run(2, 2, 1, None);
}

#[test]
fn with_no_thread_at_all_the_submitter_runs_the_tasks() {
    run(2, 1, 9, None);
}

#[test]
fn shutdown_waits_for_every_thread() {
    explore(|| {
        let pool = Pool::new(1, 0, None);
        pool.schedule();
        pool.shut_down();
        // Findings T4 and K7: nothing of the threads comes after this.
        pool.seen.with_mut(|_| ());
        assert_eq!(pool.ran.load(Relaxed), 1);
    });
}

/// Finding T5.
#[test]
fn shutdown_without_any_thread_returns() {
    explore(|| {
        let pool = Pool::new(1, 0, None);
        pool.shut_down();
        assert_eq!(pool.starts.load(Relaxed), 0);
    });
}

#[test]
fn shutdown_races_with_a_submission() {
    explore(|| {
        let pool = Pool::new(1, 0, None);
        let other = pool.clone();
        let thread = thread::spawn(move || other.schedule());
        pool.sync.shut_down();
        thread.join().unwrap();
        pool.shut_down();
        assert_eq!(pool.ran.load(Relaxed), 1);
    });
}

/// The seed's pool after one failed start: every later notification believes that a thread is on
/// its way.
#[test]
#[should_panic(expected = "")]
fn seed_defect_t2_one_failed_start_kills_the_pool() {
    run(2, 1, 1, Some(Defect::FailureStaysSignaled));
}

/// One thread is busy with a task that waits for the next one: another thread has to be started.
fn a_task_waits_for_the_next(defect: Option<Defect>) {
    explore(move || {
        let mut pool = Pool::new(2, 0, defect);
        Arc::get_mut(&mut pool).unwrap().first_waits = true;
        for begun in 1..=2 {
            pool.schedule();
            while pool.begun.load(Relaxed) < begun {
                thread::yield_now();
            }
        }
        pool.shut_down();
        assert_eq!(pool.ran.load(Relaxed), 2);
    });
}

#[test]
fn a_busy_thread_is_not_counted_as_idle() {
    a_task_waits_for_the_next(None);
}

/// The seed's garbled `wait`: a thread that was woken counts as idle, and is woken in vain.
#[test]
#[should_panic(expected = "")]
fn seed_defect_a_woken_thread_stays_counted_as_idle() {
    a_task_waits_for_the_next(Some(Defect::AwakeButIdle));
}

/// Two threads sleep, both on the processor of the thread that notifies.
fn one_of_two_sleepers_is_woken(defect: Option<Defect>) {
    explore(move || {
        let pool = Pool::new(2, 0, defect);
        let sleepers = [(); 2].map(|()| {
            assert!(pool.sync.count_start(2));
            let pool = pool.clone();
            thread::spawn(move || {
                let waited = pool.sync.wait(false, || false);
                pool.begun.fetch_add(u32::from(waited != Waited::Shutdown), Release);
            })
        });
        while pool.sync.idle() < 2 {
            thread::yield_now();
        }
        assert_eq!(pool.sync.notify_elsewhere(2), Notified::Done);
        while pool.begun.load(Acquire) == 0 {
            thread::yield_now();
        }
        pool.sync.shut_down();
        for sleeper in sleepers {
            sleeper.join().unwrap();
        }
        assert_eq!(pool.begun.load(Relaxed), 1);
    });
}

#[test]
fn a_sleeper_on_the_same_processor_is_woken_if_there_is_no_other() {
    one_of_two_sleepers_is_woken(None);
}

#[test]
#[should_panic(expected = "")]
fn who_wakes_only_elsewhere_forgets_the_sleepers_here() {
    one_of_two_sleepers_is_woken(Some(Defect::WakesOnlyElsewhere));
}

/// The seed's shutdown forgets sleepers.
#[test]
#[should_panic(expected = "")]
fn seed_defect_t3_shutdown_forgets_a_sleeper() {
    explore(|| {
        let pool = Pool::new(1, 0, Some(Defect::ShutdownWakesOne));
        pool.schedule();
        while pool.ran.load(Acquire) < 1 {
            thread::yield_now();
        }
        pool.shut_down();
    });
}

/// How a thread consumes a notification before it searches.
#[derive(Clone, Copy, PartialEq)]
enum Consumer {
    Wait,
    Found,
    StartFailed,
}

/// Finding T7 as a kernel: a push by a plain store, then a look at `notified`. With a second thread
/// that consumes the bit and then searches, the push can be missed by both.
fn is_seen_or_notified(defect: Option<Defect>, consumer: Consumer) {
    explore(move || {
        let pool = Pool::new(1, 0, defect);
        // The one thread is counted, and `notified` is set by an earlier task.
        assert_eq!(pool.sync.notify(1), Notified::Start);
        if consumer == Consumer::Found {
            assert_eq!(pool.sync.wait(false, || false), Waited::Search { waking: true });
            assert_eq!(pool.sync.notify(1), Notified::Done);
        }
        let other = pool.clone();
        let worker = thread::spawn(move || {
            // Consumes the notification, then searches.
            match consumer {
                Consumer::Wait => drop(other.sync.wait(false, || false)),
                Consumer::Found => other.sync.found(),
                Consumer::StartFailed => other.sync.start_failed(),
            }
            other.queue.load(Relaxed) == 1
        });
        // The push of the ring's owner: no read-modify-write.
        pool.queue.store(1, Release);
        let notified = pool.sync.notify(1);
        let seen = worker.join().unwrap();
        // Either the search saw the task, or there is a notification for the next one.
        let told =
            notified == Notified::Start || pool.sync.word.load(Relaxed) & super::NOTIFIED != 0;
        assert!(seen || told, "the task was pushed, and nobody will look for it");
    });
}

#[test]
fn a_plain_push_is_seen_or_notified() {
    is_seen_or_notified(None, Consumer::Wait);
}

#[test]
fn a_push_while_another_task_is_found_is_seen_or_notified() {
    is_seen_or_notified(None, Consumer::Found);
}

#[test]
fn a_push_while_a_start_fails_is_seen_or_notified() {
    is_seen_or_notified(None, Consumer::StartFailed);
}

/// The waking thread has moved tasks, and hands its role on: whoever gets it sees them.
#[test]
fn what_is_handed_on_is_seen_or_notified_of() {
    explore(|| {
        let pool = Pool::new(1, 0, None);
        assert_eq!(pool.sync.notify(1), Notified::Start);
        assert_eq!(pool.sync.wait(false, || false), Waited::Search { waking: true });
        let other = pool.clone();
        let next = thread::spawn(move || {
            let _ = other.sync.wait(false, || false);
            other.queue.load(Relaxed)
        });
        pool.queue.store(1, Relaxed);
        assert_eq!(pool.sync.hand_on(1), Notified::Done);
        assert_eq!(next.join().unwrap(), 1);
    });
}

#[test]
#[should_panic(expected = "nobody will look for it")]
fn seed_defect_t7_a_plain_look_misses_the_notification() {
    is_seen_or_notified(Some(Defect::LookWithoutFence), Consumer::Wait);
}
