//! Loom models of the blocking pool.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Waker};
use std::time::Duration;
use volt_sync::internal::primitive::{explore, explore_preempted, thread};

use super::pool::Part;
use super::{Config, Pool};

fn config(max_threads: usize, keep_alive: Duration) -> Config {
    Config { max_threads, keep_alive, ..Config::default() }
}

/// A closure that counts that it was run.
fn count(ran: &Arc<AtomicUsize>) -> impl FnOnce() + Send + 'static {
    let ran = ran.clone();
    move || {
        ran.fetch_add(1, SeqCst);
    }
}

/// Queues two closures, and waits until both have run.
fn run_two(pool: &Pool) {
    let ran = Arc::new(AtomicUsize::new(0));
    let done = Arc::new(volt_sync::internal::Parker::new());
    for _ in 0..2 {
        let (count, done) = (count(&ran), done.clone());
        pool.spawn(move || {
            count();
            done.unpark();
        })
        .unwrap();
    }
    while ran.load(SeqCst) < 2 {
        done.park();
    }
}

/// Invariants 1 and 2: a closure that is queued while the only thread goes to sleep is run: with
/// a keep-alive that never ends, a lost wake-up is a deadlock.
#[test]
fn spawn_against_sleep() {
    explore(|| {
        let pool = Pool::new(config(1, Duration::from_secs(1)));
        run_two(&pool);
        assert!(pool.shutdown(None));
    });
}

/// A closure that is queued while the only thread ends for idleness (at once, here): that thread
/// runs it, or another is started.
#[test]
fn spawn_against_idle_timeout() {
    explore(|| {
        let pool = Pool::new(config(1, Duration::ZERO));
        run_two(&pool);
        assert!(pool.shutdown(None));
        assert_eq!(pool.metrics(), (0, 0, 0));
    });
}

/// Two threads, closures from outside, shutdown at any moment: each closure is run or cancelled,
/// the mandatory one is run, and shutdown returns after the last thread.
#[test]
fn spawn_against_shutdown() {
    explore(|| {
        let pool = Pool::new(config(2, Duration::from_secs(1)));
        let (ran, must) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mandatory = pool.spawn_mandatory(count(&must)).unwrap();
        let (pool2, ran2) = (pool.clone(), ran.clone());
        let spawner = thread::spawn(move || {
            let mut join = pool2.spawn(count(&ran2)).unwrap();
            std::future::Future::poll(
                std::pin::Pin::new(&mut join),
                &mut Context::from_waker(Waker::noop()),
            )
            .is_ready()
        });
        assert!(pool.shutdown(None));
        assert_eq!(must.load(SeqCst), 1);
        assert!(mandatory.is_finished());
        let _early = spawner.join().unwrap();
        assert!(ran.load(SeqCst) <= 1);
        assert_eq!(Arc::strong_count(&ran), 1, "the closure was run or dropped");
        assert_eq!(pool.metrics(), (0, 0, 0));
    });
}

/// Throttling wakes enough: of two closures, the first waits for the second, so that each needs
/// its thread, although only one was sent on its way.
#[test]
fn closures_that_wait_for_each_other_get_a_thread_each() {
    explore(|| {
        let pool = Pool::new(config(2, Duration::from_secs(1)));
        let gate = Arc::new(volt_sync::internal::Parker::new());
        let gate2 = gate.clone();
        let done = Arc::new(volt_sync::internal::Parker::new());
        let done2 = done.clone();
        pool.spawn(move || {
            gate.park();
            done2.unpark();
        })
        .unwrap();
        pool.spawn(move || gate2.unpark()).unwrap();
        done.park();
        assert!(pool.shutdown(None));
    });
}

/// The same if they do so in their hooks, before either takes a closure.
#[test]
fn threads_that_wait_for_each_other_in_their_hooks() {
    explore(|| {
        let (first, gate) = (AtomicUsize::new(0), volt_sync::internal::Parker::new());
        let hook =
            move || if first.fetch_add(1, SeqCst) == 0 { gate.park() } else { gate.unpark() };
        let on_start: Option<super::pool::Hook> = Some(Arc::new(hook));
        let pool = Pool::new(Config { on_start, ..config(2, Duration::from_secs(1)) });
        run_two(&pool);
        assert!(pool.shutdown(None));
        assert_eq!(pool.metrics(), (0, 0, 0));
    });
}

/// A thread is lent while it goes to sleep, or ends for idleness; its job and a closure are both
/// run, by it and another one, or one after the other.
#[test]
fn lend_against_sleep() {
    for keep_alive in [Duration::from_secs(1), Duration::ZERO] {
        explore_preempted(2, move || {
            let pool = Pool::new(config(1, keep_alive));
            let gate = Arc::new(volt_sync::internal::Parker::new());
            let done = Arc::new(volt_sync::internal::Parker::new());
            pool.spawn(|| ()).unwrap();
            let (gate2, done2) = (gate.clone(), done.clone());
            let job = move || {
                // Lent threads do not count: the closure gets one, although the limit is 1.
                gate2.park();
                done2.unpark();
            };
            pool.lend(Box::new(job)).unwrap();
            pool.spawn(move || gate.unpark()).unwrap();
            done.park();
            assert!(pool.shutdown(None));
            assert_eq!(pool.metrics(), (0, 0, 0));
        });
    }
}

/// A job for which a thread was lent is done, whatever a shutdown says meanwhile; the shutdown waits
/// for it.
#[test]
fn lend_against_shutdown() {
    explore(|| {
        let pool = Pool::new(config(1, Duration::from_secs(1)));
        let ran = Arc::new(AtomicUsize::new(0));
        pool.spawn(|| ()).unwrap();
        let (pool2, ran2) = (pool.clone(), ran.clone());
        let lender = thread::spawn(move || pool2.lend(Box::new(count(&ran2))).is_ok());
        pool.shutdown(None);
        assert!(lender.join().unwrap());
        // It may have been lent after the shutdown was over.
        while ran.load(SeqCst) == 0 {
            thread::yield_now();
        }
    });
}

/// A closure that shuts its own pool down waits for the other thread, not for itself.
#[test]
fn shutdown_by_an_own_thread() {
    explore(|| {
        let pool = Pool::new(config(2, Duration::from_secs(1)));
        let other = Arc::new(AtomicUsize::new(0));
        let done = Arc::new(volt_sync::internal::Parker::new());
        drop(pool.spawn_mandatory(count(&other)).unwrap());
        let (pool2, done2) = (pool.clone(), done.clone());
        drop(pool.spawn_mandatory(move || {
            assert!(pool2.shutdown(None));
            assert_eq!(other.load(SeqCst), 1);
            done2.unpark();
        }));
        done.park();
    });
}

/// Shuts a pool down when its thread, one of the pool's, ends.
struct EndsPool(
    std::cell::RefCell<Option<(Pool, Arc<AtomicUsize>, Arc<volt_sync::internal::Parker>)>>,
);

impl Drop for EndsPool {
    fn drop(&mut self) {
        if let Some((pool, other, done)) = self.0.take() {
            // The thread-local that says so is gone here as well, as it is not with real threads.
            assert!(pool.shutdown_by(Some(Part::Ended), None));
            assert_eq!(other.load(SeqCst), 1);
            done.unpark();
        }
    }
}

volt_sync::internal::primitive::thread_local! {
    static ENDS_POOL: EndsPool = EndsPool(std::cell::RefCell::new(None));
}

/// A thread whose part has ended does so in the destructor of a thread-local: it waits for the other one, which joins it.
#[test]
fn shutdown_by_a_thread_that_has_ended_its_part() {
    explore(|| {
        let pool = Pool::new(config(2, Duration::ZERO));
        let other = Arc::new(AtomicUsize::new(0));
        let done = Arc::new(volt_sync::internal::Parker::new());
        drop(pool.spawn_mandatory(count(&other)).unwrap());
        let (pool2, done2) = (pool.clone(), done.clone());
        drop(pool.spawn_mandatory(move || {
            ENDS_POOL.with(|ends| *ends.0.borrow_mut() = Some((pool2, other, done2)));
        }));
        done.park();
    });
}
