//! Small tasks for the pools, and how fast a sleeping pool answers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use crate::bench::Bench;
use crate::registry::Row;

const TINY: u64 = 100_000;
const SCOPED: u64 = 10_000;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("pool/tiny_100k", "100,000 tiny tasks from one outside thread (per task)")
            .headline()
            .volt("volt", tiny_volt::<1>)
            .peer("rayon", tiny_rayon::<1>)
            .floor("sequential", |b| {
                b.iter_ops(TINY, |n| {
                    for _ in 0..n {
                        let done = AtomicU64::new(0);
                        let tasks: Vec<Box<dyn Fn() + '_>> =
                            (0..TINY).map(|_| Box::new(|| count(&done)) as Box<dyn Fn()>).collect();
                        tasks.iter().for_each(|task| task());
                        assert_eq!(done.load(Ordering::Relaxed), TINY);
                    }
                });
            }),
        Row::new("pool/tiny_from_2", "100,000 tiny tasks from 2 outside threads (per task)")
            .volt("volt", tiny_volt::<2>)
            .peer("rayon", tiny_rayon::<2>),
        Row::new("pool/tiny_from_4", "100,000 tiny tasks from 4 outside threads (per task)")
            .volt("volt", tiny_volt::<4>)
            .peer("rayon", tiny_rayon::<4>),
        Row::new("pool/scope_10k", "A scope with 10,000 spawns (per spawn)")
            .headline()
            .volt("volt", scope_volt)
            .peer("rayon", scope_rayon)
            .floor("sequential", |b| {
                b.iter_ops(SCOPED, |n| {
                    for _ in 0..n {
                        let done = AtomicU64::new(0);
                        (0..SCOPED).for_each(|_| count(&done));
                        assert_eq!(done.load(Ordering::Relaxed), SCOPED);
                    }
                });
            }),
        Row::new("pool/wake_idle", "Wake an idle pool, run, return")
            .headline()
            .detail()
            .volt("volt", |b| wake_with(b, |i| super::volt_enter(move || i + 1)))
            .peer("rayon", |b| wake_with(b, |i| super::rayon_enter(move || i + 1)))
            .floor("two threads", wake_thread),
    ]
}

fn count(done: &AtomicU64) {
    done.fetch_add(1, Ordering::Relaxed);
}

/// Counts up to a number, then wakes the thread that waits for it.
struct Tally {
    done: AtomicU64,
    all: u64,
    waiter: std::thread::Thread,
}

impl Tally {
    fn new(all: u64) -> Arc<Self> {
        Arc::new(Tally { done: AtomicU64::new(0), all, waiter: std::thread::current() })
    }

    fn count(&self) {
        if self.done.fetch_add(1, Ordering::AcqRel) + 1 == self.all {
            self.waiter.unpark();
        }
    }

    fn wait(&self) {
        while self.done.load(Ordering::Acquire) < self.all {
            std::thread::park();
        }
    }
}

/// `spawn(tally)` makes the pool count once; `FROM` threads share the calls.
fn tiny_with<const FROM: u64>(b: &mut Bench, spawn: impl Fn(Arc<Tally>) + Sync) {
    b.iter_ops(TINY, |n| {
        for _ in 0..n {
            let tally = Tally::new(TINY);
            let share = || (0..TINY / FROM).for_each(|_| spawn(Arc::clone(&tally)));
            std::thread::scope(|scope| {
                (1..FROM).for_each(|_| drop(scope.spawn(share)));
                share();
            });
            tally.wait();
        }
    });
}

fn tiny_volt<const FROM: u64>(b: &mut Bench) {
    let pool = super::volt_pool();
    tiny_with::<FROM>(b, |tally| pool.spawn(move || tally.count()));
}

fn tiny_rayon<const FROM: u64>(b: &mut Bench) {
    let pool = super::rayon_pool();
    tiny_with::<FROM>(b, |tally| pool.spawn(move || tally.count()));
}

/// `scope(done)` counts `SCOPED` times from a scope's tasks.
pub(crate) fn scope_with(b: &mut Bench, mut scope: impl FnMut(&AtomicU64, u64)) {
    b.iter_ops(SCOPED, |n| {
        for _ in 0..n {
            let done = AtomicU64::new(0);
            scope(&done, SCOPED);
            assert_eq!(done.load(Ordering::Relaxed), SCOPED, "the scope waits for all");
        }
    });
}

/// The caller takes part, as a guest, so one thread less.
fn scope_volt(b: &mut Bench) {
    let pool = super::volt_pool_of(crate::kind::workers() - 1);
    scope_with(b, |done, spawns| {
        pool.scope(|scope| {
            for _ in 0..spawns {
                scope.spawn(|_| count(done));
            }
        });
    });
}

fn scope_rayon(b: &mut Bench) {
    let pool = super::rayon_pool();
    scope_with(b, |done, spawns| {
        pool.scope(|scope| {
            for _ in 0..spawns {
                scope.spawn(|_| count(done));
            }
        });
    });
}

#[cfg(feature = "forte")]
pub(crate) fn tiny_forte<const FROM: u64>(b: &mut Bench) {
    let pool = crate::peers::forte::whole_pool();
    tiny_with::<FROM>(b, |tally| pool.spawn(move |_: &forte::Worker| tally.count()));
}

#[cfg(feature = "forte")]
pub(crate) fn scope_forte(b: &mut Bench) {
    scope_with(b, |done, spawns| {
        crate::peers::forte::enter(|worker| {
            worker.scope(|scope| {
                for _ in 0..spawns {
                    scope.spawn(move |_: &forte::Worker| count(done));
                }
            });
        });
    });
}

#[cfg(feature = "forte")]
pub(crate) fn wake_forte(b: &mut Bench) {
    let pool = crate::peers::forte::whole_pool();
    wake_with(b, |i| crate::kind::block_on(pool.spawn(async move { i + 1 })));
}

/// Lets the pool fall asleep, then times one call.
pub(crate) fn wake_with(b: &mut Bench, mut call: impl FnMut(u64) -> u64) {
    let mut once = |i| {
        std::thread::sleep(Duration::from_micros(300));
        let start = Instant::now();
        assert_eq!(call(i), i + 1);
        start.elapsed()
    };
    if b.detail() {
        let waits = (0..500).map(|i| u64::try_from(once(i).as_nanos()).unwrap_or(u64::MAX));
        b.waits(waits.collect());
        return;
    }
    b.iter_timed(1, |n| (0..n).map(&mut once).sum());
}

fn wake_thread(b: &mut Bench) {
    let (ask, asked) = mpsc::channel::<u64>();
    let (answer, answered) = mpsc::channel::<u64>();
    let server = std::thread::Builder::new().name("server".to_owned()).spawn(move || {
        for value in asked {
            answer.send(value + 1).expect("awaited");
        }
    });
    wake_with(b, |i| {
        ask.send(i).expect("the thread waits");
        answered.recv().expect("answered")
    });
    drop(ask);
    server.expect("a thread can be started").join().expect("the thread ends well");
}
