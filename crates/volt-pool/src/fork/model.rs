use std::sync::Arc as StdArc;
use std::sync::atomic::Ordering::Relaxed;

use crate::engine::{Config, Core, processors};
use crate::offer::OFFERS;
use crate::worker::{Work, Worker};
use volt_sync::internal::primitive::{Arc, AtomicU32, UnsafeCell, explore, thread};

/// Two workers of a pool that starts no threads of its own: the models play its threads.
struct Pair {
    core: StdArc<Core>,
    owner: Worker,
    thief: Worker,
    runs: AtomicU32,
    value: UnsafeCell<u32>,
}

// SAFETY: loom checks the cell.
unsafe impl Sync for Pair {}
// SAFETY: as for the one above.
unsafe impl Send for Pair {}

impl Pair {
    fn new() -> Arc<Self> {
        Self::with_threads(1)
    }

    fn with_threads(threads: u32) -> Arc<Self> {
        let core = Core::new(Config { threads, ..Config::default() });
        // Nobody is started: all threads are counted.
        core.count_played_thread();
        for _ in 1..threads {
            assert!(core.sync.count_start(threads));
        }
        Arc::new(Self {
            owner: Worker::new(StdArc::as_ptr(&core), 0, Some(0)),
            thief: Worker::new(StdArc::as_ptr(&core), 1, Some(1)),
            core,
            runs: AtomicU32::new(0),
            value: UnsafeCell::new(0),
        })
    }

    fn b(&self) -> u32 {
        self.value.with_mut(|_| ());
        self.runs.fetch_add(1, Relaxed);
        2
    }

    fn steal(&self) {
        self.owner.fork.ask();
        if let Some(fork) = self.owner.offer.claim() {
            self.thief.run(Work::Fork(fork));
        }
    }
}

#[test]
fn a_fork_is_run_once_wherever_it_runs() {
    explore(|| {
        let pair = Pair::new();
        pair.value.with_mut(|_| ());
        let other = pair.clone();
        let thread = thread::spawn(move || other.steal());
        // The stack is asked from the start, so this one is offered.
        assert_eq!(pair.owner.join(|| 1, || pair.b()), (1, 2));
        pair.value.with_mut(|_| ());
        assert_eq!(pair.runs.load(Relaxed), 1);
        assert!(pair.owner.offer.is_empty());
        thread.join().unwrap();
        drop(pair.core.clone());
    });
}

#[test]
fn two_thieves_take_a_fork_once() {
    explore(|| {
        let pair = Pair::new();
        let threads = [pair.clone(), pair.clone()].map(|other| {
            thread::spawn(move || {
                if let Some(fork) = other.owner.offer.claim() {
                    other.thief.run(Work::Fork(fork));
                }
            })
        });
        assert_eq!(pair.owner.join(|| 1, || pair.b()), (1, 2));
        assert_eq!(pair.runs.load(Relaxed), 1);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// The older of two offered forks is claimed while the owner takes the younger one back, and fills its
/// place again.
#[test]
fn two_offered_forks_are_each_run_once() {
    explore(|| {
        let pair = Pair::with_threads(processors() + 1);
        let other = pair.clone();
        let thread = thread::spawn(move || other.steal());
        assert_eq!(pair.core.least_offers(), OFFERS);
        let runs = [0; 3].map(AtomicU32::new);
        let run = |i: usize| runs[i].fetch_add(1, Relaxed);
        let inner = || {
            pair.owner.join(|| (), || run(0));
            pair.owner.join(|| (), || run(1));
        };
        pair.owner.join(inner, || run(2));
        assert!(runs.iter().all(|runs| runs.load(Relaxed) == 1));
        assert!(pair.owner.offer.is_empty());
        thread.join().unwrap();
    });
}

/// The thief has made its record after the fork: its owner sees it only through the fork.
#[test]
fn the_thief_is_seen_whole() {
    explore(|| {
        let pair = Pair::new();
        let other = pair.clone();
        let thread = thread::spawn(move || {
            let thief = Box::new(Worker::new(StdArc::as_ptr(&other.core), 1, Some(1)));
            if let Some(fork) = other.owner.offer.claim() {
                thief.run(Work::Fork(fork));
            }
            // Given back, so that it outlives the looks of the owner.
            thief
        });
        assert_eq!(pair.owner.join(|| 1, || pair.b()), (1, 2));
        drop(thread.join().unwrap());
    });
}

/// A fork that turns out to be unrelated goes back to its owner, who runs it.
#[test]
fn a_returned_fork_is_run_by_its_owner() {
    use crate::fork::Fork;
    use crate::frame::{Frame, Outcome};
    explore(|| {
        let pair = Pair::new();
        let other = pair.clone();
        let thread = thread::spawn(move || {
            if let Some(fork) = other.owner.offer.claim() {
                // SAFETY: claimed, so alive and offered.
                let frame = unsafe { &raw const Fork::promoted(fork.as_ptr()).frame };
                // SAFETY: claimed, and not run.
                unsafe { Frame::finish(frame, Outcome::Returned) };
            }
        });
        assert_eq!(pair.owner.join(|| 1, || pair.b()), (1, 2));
        assert_eq!(pair.runs.load(Relaxed), 1);
        thread.join().unwrap();
    });
}
