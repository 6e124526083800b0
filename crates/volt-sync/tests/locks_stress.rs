//! Threads that lock, give up half-way and unlock, at random, through the public interface.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;

use futures::executor::block_on;
use volt_sync::{Barrier, Mutex, Notify, RwLock, Semaphore};

/// How much longer than usual the tests run.
fn scale() -> usize {
    std::env::var("VOLT_STRESS").ok().and_then(|scale| scale.parse().ok()).unwrap_or(1)
}

/// xorshift64*: reproducible, and different for each thread.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }
}

/// Polls `future` `polls` times at most.
fn try_for<F: Future>(future: F, polls: u64) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..polls {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Some(output);
        }
        thread::yield_now();
    }
    None
}

/// Runs `body` on four threads, each with its own numbers.
fn on_threads(body: impl Fn(&mut Random) + Sync) {
    thread::scope(|scope| {
        for seed in 1..=4 {
            let body = &body;
            scope.spawn(move || {
                let mut random = Random(seed * 0x9e37_79b9);
                for _ in 0..scale() * 1_000 {
                    body(&mut random);
                }
            });
        }
    });
}

#[test]
fn a_mutex_excludes_and_survives_cancellation() {
    let mutex = Mutex::new((0_u64, 0_u64));
    let enter = |pair: &mut (u64, u64)| {
        assert_eq!(pair.0, pair.1);
        pair.0 += 1;
        thread::yield_now();
        pair.1 += 1;
    };
    on_threads(|random| match random.below(4) {
        0 => {
            if let Some(mut guard) = try_for(mutex.lock(), random.below(4)) {
                enter(&mut guard);
            }
        }
        1 => {
            if let Ok(mut guard) = mutex.try_lock() {
                enter(&mut guard);
            }
        }
        2 => enter(&mut mutex.blocking_lock()),
        _ => enter(&mut block_on(mutex.lock())),
    });
    let pair = mutex.try_lock().expect("everybody has left");
    assert_eq!(pair.0, pair.1);
}

#[test]
fn a_read_write_lock_excludes_and_survives_cancellation() {
    let lock = RwLock::with_max_readers((0_u64, 0_u64), 3);
    on_threads(|random| match random.below(5) {
        0 => {
            if let Some(guard) = try_for(lock.read(), random.below(4)) {
                assert_eq!(guard.0, guard.1);
            }
        }
        1 => {
            if let Some(mut guard) = try_for(lock.write(), random.below(4)) {
                *guard = (guard.0 + 1, guard.1 + 1);
            }
        }
        2 => {
            let mut guard = block_on(lock.write());
            guard.0 += 1;
            thread::yield_now();
            guard.1 += 1;
            let reader = guard.downgrade();
            assert_eq!(reader.0, reader.1);
        }
        _ => {
            let guard = block_on(lock.read());
            assert_eq!(guard.0, guard.1);
        }
    });
    assert!(lock.try_write().is_ok(), "everybody has left");
}

#[test]
fn a_semaphore_keeps_its_permits() {
    let semaphore = Semaphore::new(5);
    on_threads(|random| {
        let n = 1 + u32::try_from(random.below(5)).expect("small");
        if random.below(3) == 0 {
            drop(try_for(semaphore.acquire_many(n), random.below(4)));
        } else {
            let mut permits = block_on(semaphore.acquire_many(n)).expect("not closed");
            drop(permits.split(1));
        }
    });
    assert_eq!(semaphore.available_permits(), 5);
}

#[test]
fn notifications_survive_cancellation() {
    let notify = Notify::new();
    // A token that goes round: whoever is notified notifies the next, also when it is cancelled.
    notify.notify_one();
    on_threads(|random| {
        if random.below(3) == 0 {
            if try_for(notify.notified(), random.below(4)).is_some() {
                notify.notify_one();
            }
        } else {
            block_on(notify.notified());
            if random.below(2) == 0 { notify.notify_one() } else { notify.notify_last() }
        }
    });
    assert!(try_for(notify.notified(), 1).is_some(), "the token is still there");
}

#[test]
fn threads_meet_at_a_barrier_round_after_round() {
    let barrier = Barrier::new(3);
    let rounds = scale() * 300;
    let leaders: usize = thread::scope(|scope| {
        let threads = [(); 3].map(|()| {
            scope.spawn(|| (0..rounds).filter(|_| block_on(barrier.wait()).is_leader()).count())
        });
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    assert_eq!(leaders, rounds);
}
