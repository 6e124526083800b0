//! A task that does not yield stops nobody else.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use volt::runtime::{Builder, Runtime};

const SOON: Duration = Duration::from_secs(20);

fn multi(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
}

/// Spins until it is dropped.
struct Hog(Arc<AtomicBool>);

impl Hog {
    fn new() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }

    /// Runs `first`, then stays in its poll.
    fn start(&self, rt: &Runtime, first: impl FnOnce() + Send + 'static) -> mpsc::Receiver<()> {
        let (stop, (started, receiver)) = (self.0.clone(), mpsc::channel());
        rt.spawn(async move {
            first();
            started.send(()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        receiver
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn what_a_stalled_task_spawned_is_taken_over() {
    for workers in [2, 8] {
        let rt = multi(workers);
        for idle in [Duration::ZERO, Duration::from_millis(30)] {
            // The others are asleep for good when the hog starts.
            std::thread::sleep(idle);
            let (tx, rx) = mpsc::channel();
            let hog = Hog::new();
            let started = hog.start(&rt, move || {
                // One of them ends in the LIFO slot, which wakes nobody.
                for i in 0..10 {
                    let tx = tx.clone();
                    volt::spawn(async move { tx.send(i).unwrap() });
                }
            });
            started.recv_timeout(SOON).unwrap();
            let mut got: Vec<_> = (0..10).map(|_| rx.recv_timeout(SOON).unwrap()).collect();
            got.sort_unstable();
            assert_eq!(got, (0..10).collect::<Vec<_>>());
        }
    }
}

/// A task that has been quick for long, in a runtime that sleeps most of the time, is the last that
/// anybody expects to stall.
#[test]
fn what_a_tick_leaves_behind_is_taken_over_if_it_stalls_at_last() {
    for workers in [2, 8] {
        let rt = multi(workers);
        let (tx, rx) = mpsc::channel();
        rt.spawn(async move {
            let mut interval = volt::time::interval(Duration::from_millis(1));
            for _ in 0..150 {
                interval.tick().await;
            }
            // One stays in the LIFO slot, and nobody waits in the driver.
            let (started, others) = mpsc::channel();
            for nap in [Duration::ZERO, Duration::from_millis(1)] {
                let started = started.clone();
                volt::spawn(async move {
                    volt::time::sleep(nap).await;
                    started.send(()).unwrap();
                });
            }
            let both = (0..2).all(|_| others.recv_timeout(SOON).is_ok());
            tx.send(both).unwrap();
        });
        assert!(rx.recv_timeout(2 * SOON).unwrap());
    }
}

#[test]
fn timers_go_on_beside_a_stalled_task() {
    for workers in [2, 8] {
        let rt = multi(workers);
        let hog = Hog::new();
        hog.start(&rt, || ()).recv_timeout(SOON).unwrap();
        for _ in 0..5 {
            let (tx, rx) = mpsc::channel();
            rt.spawn(async move {
                volt::time::sleep(Duration::from_millis(5)).await;
                tx.send(()).unwrap();
            });
            rx.recv_timeout(SOON).unwrap();
        }
    }
}

/// The worker that waits in the driver is the one that the hog gets.
#[test]
fn a_stalled_task_does_not_keep_the_driver() {
    [2, 8].map(multi).iter().for_each(the_driver_goes_on_beside_a_stalled_task);
}

fn the_driver_goes_on_beside_a_stalled_task(rt: &Runtime) {
    let stop = Arc::new(AtomicBool::new(false));
    for _ in 0..2 {
        let (tx, rx) = mpsc::channel();
        let stopped = stop.clone();
        // Woken by its timer, it runs on the thread that waited in the driver.
        let hog = rt.spawn(async move {
            volt::time::sleep(Duration::from_millis(2)).await;
            tx.send(()).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        rx.recv_timeout(SOON).unwrap();
        let (tx, rx) = mpsc::channel();
        rt.spawn(async move {
            for _ in 0..10 {
                volt::time::sleep(Duration::from_millis(1)).await;
            }
            tx.send(()).unwrap();
        });
        rx.recv_timeout(SOON).unwrap();
        stop.store(true, Ordering::Relaxed);
        rt.block_on(hog).unwrap();
        stop.store(false, Ordering::Relaxed);
    }
    stop.store(true, Ordering::Relaxed);
}

/// The thread in `block_on` runs tasks, but not one that could keep it from its own future.
#[test]
fn block_on_is_not_held_up_by_a_task_that_never_yields() {
    for workers in [1, 2, 8] {
        let rt = multi(workers);
        let hog = Hog::new();
        let stop = hog.0.clone();
        let start = Instant::now();
        rt.block_on(async {
            volt::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_micros(100));
                }
            });
            volt::time::sleep(Duration::from_millis(20)).await;
        });
        assert!(start.elapsed() < SOON);
    }
}

#[test]
fn other_tasks_of_block_on_go_on_beside_a_stalled_one() {
    for workers in [2, 8] {
        let rt = multi(workers);
        let hog = Hog::new();
        let stop = hog.0.clone();
        rt.block_on(async {
            volt::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_micros(100));
                }
            });
            for i in 0..1000 {
                assert_eq!(volt::spawn(async move { i }).await.unwrap(), i);
            }
        });
    }
}

/// On time: not before, and, as the machine may be busy, one of some not long after.
#[test]
fn a_shutdown_with_a_timeout_leaves_a_stalled_task_behind() {
    const TIMEOUT: Duration = Duration::from_millis(50);
    for workers in [1, 2, 8] {
        let mut least = Duration::MAX;
        for _ in 0..20 {
            let rt = multi(workers);
            let hog = Hog::new();
            hog.start(&rt, || ()).recv_timeout(SOON).unwrap();
            let start = Instant::now();
            rt.shutdown_timeout(TIMEOUT);
            let took = start.elapsed();
            assert!(took >= TIMEOUT && took < SOON, "{took:?} with {workers} workers");
            least = least.min(took);
            if least < 3 * TIMEOUT {
                break;
            }
        }
        assert!(least < 3 * TIMEOUT, "at least {least:?} with {workers} workers");
    }
}

#[test]
fn slow_polls_are_counted() {
    for workers in [2, 8] {
        let rt = multi(workers);
        let slow = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 {
            let slow = slow.clone();
            rt.block_on(rt.spawn(async move {
                // Something for others to look after.
                volt::spawn(async {});
                std::thread::sleep(Duration::from_millis(30));
                slow.fetch_add(1, Ordering::Relaxed);
            }))
            .unwrap();
        }
        let metrics = rt.metrics();
        let by_worker: u64 = (0..workers).map(|at| metrics.worker_slow_polls_count(at)).sum();
        assert!(by_worker > 0 && by_worker <= metrics.slow_polls_count());
    }
}

/// Short stalls at any time, each with a child in the LIFO slot, or the ring, that wants the driver.
#[test]
fn stress_of_stalls() {
    let rounds = 20 * std::env::var("VOLT_STRESS").map_or(1, |s| s.parse().unwrap_or(1));
    for workers in [1, 2, 8] {
        let rt = multi(workers);
        for round in 0..rounds {
            let (tx, rx) = mpsc::channel();
            for task in 0..6_u64 {
                let tx = tx.clone();
                let micros = move |by: u64| Duration::from_micros((round * 7 + task) * by % 3_000);
                rt.spawn(async move {
                    for child in 0..=task % 3 {
                        let tx = tx.clone();
                        volt::spawn(async move {
                            volt::time::sleep(micros(311 + child)).await;
                            tx.send(()).unwrap();
                        });
                    }
                    std::thread::sleep(micros(977));
                });
            }
            for _ in 0..12 {
                rx.recv_timeout(SOON).expect("a child of a stalled task was lost");
            }
        }
    }
}
