//! Tasks that compete for a lock: throughput, and in a pass of its own fairness and waits.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::bench::Bench;
use crate::kind::{Lock, Permits, Runtime, SharedLock, Signal};
use crate::on_tokio;
use crate::on_volt;
use crate::peers::locks::AsyncLockSemaphore;
use crate::registry::Row;

const BARGES: &str = "lets newcomers pass the queue, so a tight loop rarely waits and others wait longer; see the fairness table";

pub(crate) fn rows() -> Vec<Row> {
    type Tokio = on_tokio::Multi;
    vec![
        Row::new("contended/mutex_4", "Mutex, 4 tasks")
            .headline()
            .detail()
            .why(
                "strictly first in, first out: async-lock lets the releaser pass its queue, and stays at what its lock costs \
                 on one thread. Here each release of a queued lock hands it over, and the releaser gives the others a \
                 turn, so that the queue is gone soon; until then an operation is a wake-up and a poll",
            )
            .volt("volt", compete::<on_volt::Multi, MutexOf4<volt_sync::Mutex<u64>>>)
            .volt("volt on tokio", compete::<Tokio, MutexOf4<volt_sync::Mutex<u64>>>)
            .peer("tokio", compete::<Tokio, MutexOf4<tokio::sync::Mutex<u64>>>)
            .peer("async-lock", compete::<Tokio, MutexOf4<async_lock::Mutex<u64>>>)
            .but(BARGES)
            .peer("asyncband", compete::<Tokio, MutexOf4<asyncband::mutex::Mutex<u64>>>)
            .floor("parking_lot", compete::<Tokio, MutexOf4<parking_lot::Mutex<u64>>>)
            .but("blocks the worker thread")
            .floor("std", compete::<Tokio, MutexOf4<std::sync::Mutex<u64>>>)
            .but("blocks the worker thread"),
        Row::new("contended/mutex_64", "Mutex, 64 tasks")
            .detail()
            .note("more tasks must not mean collapse: compare with the row of 4 tasks")
            .volt("volt", compete::<on_volt::Multi, MutexOf64<volt_sync::Mutex<u64>>>)
            .volt("volt on tokio", compete::<Tokio, MutexOf64<volt_sync::Mutex<u64>>>)
            .peer("tokio", compete::<Tokio, MutexOf64<tokio::sync::Mutex<u64>>>)
            .peer("async-lock", compete::<Tokio, MutexOf64<async_lock::Mutex<u64>>>)
            .but(BARGES)
            .peer("asyncband", compete::<Tokio, MutexOf64<asyncband::mutex::Mutex<u64>>>),
        Row::new("contended/rwlock_4r_2w", "RwLock, 4 readers, 2 writers")
            .headline()
            .detail()
            .volt("volt", compete::<on_volt::Multi, ReadersWriters<volt_sync::RwLock<u64>>>)
            .volt("volt on tokio", compete::<Tokio, ReadersWriters<volt_sync::RwLock<u64>>>)
            .peer("tokio", compete::<Tokio, ReadersWriters<tokio::sync::RwLock<u64>>>)
            .peer("async-lock", compete::<Tokio, ReadersWriters<async_lock::RwLock<u64>>>)
            .but(BARGES)
            .peer("asyncband", compete::<Tokio, ReadersWriters<asyncband::rwlock::RwLock<u64>>>)
            .floor("parking_lot", compete::<Tokio, ReadersWriters<parking_lot::RwLock<u64>>>)
            .but("blocks the worker thread"),
        Row::new("contended/semaphore_8_2", "Semaphore, 8 tasks, 2 permits")
            .headline()
            .detail()
            .volt("volt", compete::<on_volt::Multi, TwoPermits<volt_sync::Semaphore>>)
            .volt("volt on tokio", compete::<Tokio, TwoPermits<volt_sync::Semaphore>>)
            .peer("tokio", compete::<Tokio, TwoPermits<tokio::sync::Semaphore>>)
            .peer("async-lock", compete::<Tokio, TwoPermits<AsyncLockSemaphore>>)
            .but(BARGES)
            .peer("asyncband", compete::<Tokio, TwoPermits<asyncband::semaphore::Semaphore>>),
        Row::new("contended/notify_ping_pong", "Notify: there and back between two tasks")
            .headline()
            .volt("volt", ping_pong::<on_volt::Multi, volt_sync::Notify>)
            .volt("volt on tokio", ping_pong::<Tokio, volt_sync::Notify>)
            .peer("tokio", ping_pong::<Tokio, tokio::sync::Notify>)
            .peer("asyncband", ping_pong::<Tokio, asyncband::event::AutoResetEvent>),
    ]
}

/// Something that tasks compete for.
pub(crate) trait Contest: Send + Sync + 'static {
    const TASKS: usize;
    fn create() -> Self;
    /// One operation of the task with this number.
    fn once(&self, task: usize) -> impl Future<Output = ()> + Send;
    /// Checks the outcome after `each` operations of each task.
    fn check(&self, each: u64);
}

pub(crate) struct MutexOf<M, const TASKS: usize>(M);
pub(crate) type MutexOf4<M> = MutexOf<M, 4>;
pub(crate) type MutexOf64<M> = MutexOf<M, 64>;

impl<M: Lock, const N: usize> Contest for MutexOf<M, N> {
    const TASKS: usize = N;

    fn create() -> Self {
        MutexOf(M::create())
    }

    async fn once(&self, _: usize) {
        self.0.bump().await;
    }

    fn check(&self, each: u64) {
        assert_eq!(self.0.count(), each * N as u64, "each bump counts once");
    }
}

pub(crate) struct ReadersWriters<L>(L);

impl<L: SharedLock> Contest for ReadersWriters<L> {
    const TASKS: usize = 6;

    fn create() -> Self {
        ReadersWriters(L::create())
    }

    async fn once(&self, task: usize) {
        if task < 4 {
            std::hint::black_box(self.0.peek().await);
        } else {
            self.0.bump().await;
        }
    }

    fn check(&self, each: u64) {
        assert_eq!(self.0.try_peek(), Some(each * 2), "each bump counts once");
    }
}

pub(crate) struct TwoPermits<S>(S);

impl<S: Permits> Contest for TwoPermits<S> {
    const TASKS: usize = 8;

    fn create() -> Self {
        TwoPermits(S::create(2))
    }

    async fn once(&self, _: usize) {
        self.0.pass().await;
    }

    fn check(&self, _: u64) {
        assert_eq!(self.0.available(), 2, "each permit is given back");
    }
}

/// The tasks of a contest, each as often as the others; or, asked for fairness, for a fixed time.
pub(crate) fn compete<R: Runtime, C: Contest>(b: &mut Bench) {
    let runtime = R::start();
    if b.detail() {
        return compete_for_shares::<R, C>(b, &runtime);
    }
    b.iter_ops(C::TASKS as u64, |n| {
        let contest = Arc::new(C::create());
        let join = |task| {
            let contest = Arc::clone(&contest);
            runtime.spawn_outside(async move {
                for _ in 0..n {
                    contest.once(task).await;
                }
            })
        };
        let joins: Vec<_> = (0..C::TASKS).map(join).collect();
        runtime.block_on(async {
            for join in joins {
                join.await;
            }
        });
        contest.check(n);
    });
}

fn compete_for_shares<R: Runtime, C: Contest>(b: &mut Bench, runtime: &R) {
    /// Waits kept of each task, the latest.
    const KEPT: usize = 200_000;
    let contest = Arc::new(C::create());
    let stop = Arc::new(AtomicBool::new(false));
    let join = |task| {
        let (contest, stop) = (Arc::clone(&contest), Arc::clone(&stop));
        runtime.spawn_outside(async move {
            let (mut waits, mut count) = (Vec::with_capacity(KEPT), 0_u64);
            while !stop.load(Ordering::Relaxed) {
                let start = Instant::now();
                contest.once(task).await;
                let wait = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                if waits.len() < KEPT {
                    waits.push(wait);
                } else {
                    waits[count as usize % KEPT] = wait;
                }
                count += 1;
                if count % 64 == 0 {
                    // A lock that is always free when its holder comes back must not keep the
                    // worker from the other tasks: that would measure the executor.
                    R::yield_now().await;
                }
            }
            (waits, count)
        })
    };
    let joins: Vec<_> = (0..C::TASKS).map(join).collect();
    std::thread::sleep(b.duration() * 4);
    stop.store(true, Ordering::Relaxed);
    let (mut waits, mut shares) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        for join in joins {
            let (waited, count) = join.await;
            waits.extend(waited);
            shares.push(count);
        }
    });
    b.fairness(waits, &shares);
}

pub(crate) fn ping_pong<R: Runtime, S: Signal>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        let pair = Arc::new((S::create(), S::create()));
        let other = Arc::clone(&pair);
        let pong = runtime.spawn_outside(async move {
            for _ in 0..n {
                other.0.wait().await;
                other.1.notify();
            }
        });
        let ping = runtime.spawn_outside(async move {
            for _ in 0..n {
                pair.0.notify();
                pair.1.wait().await;
            }
            n
        });
        assert_eq!(runtime.block_on(ping), n);
        runtime.block_on(pong);
    });
}
