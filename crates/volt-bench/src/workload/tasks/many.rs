//! Thousands of spawns: from a task, from outside, to idle and to busy workers; trees and chains.
//! The delay from spawn to first poll is looked at in a pass of its own.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use super::detach;
use crate::bench::Bench;
use crate::kind::{Runtime, workers};
use crate::on_tokio;
use crate::on_volt;
use crate::peers::smol;
use crate::registry::Row;

const MANY: u64 = 10_000;

/// Where the workers are busy: some runtimes then look at spawns from outside so rarely that more of
/// them would take half a minute.
const FEW: u64 = 1_000;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("tasks/spawn_many_local", "10,000 spawns from a task")
            .headline()
            .detail()
            .volt("volt", spawn_many_local::<on_volt::Multi>)
            .peer("tokio", spawn_many_local::<on_tokio::Multi>)
            .peer("async-executor", spawn_many_local::<smol::Multi>),
        Row::new("tasks/spawn_many_remote_idle", "10,000 spawns from outside, idle workers")
            .headline()
            .detail()
            .volt("volt", spawn_many_remote::<on_volt::Multi, Idle>)
            .peer("tokio", spawn_many_remote::<on_tokio::Multi, Idle>)
            .peer("async-executor", spawn_many_remote::<smol::Multi, Idle>),
        Row::new(
            "tasks/spawn_many_remote_busy1",
            "1,000 spawns from outside, workers busy with yields",
        )
        .detail()
        .note("4 tasks compute for 10 us, then yield")
        .volt("volt", spawn_many_remote::<on_volt::Multi, Yielding>)
        .peer("tokio", spawn_many_remote::<on_tokio::Multi, Yielding>)
        .peer("async-executor", spawn_many_remote::<smol::Multi, Yielding>),
        Row::new(
            "tasks/spawn_many_remote_busy2",
            "1,000 spawns from outside, workers busy with spawns",
        )
        .detail()
        .note("4 tasks compute for 10 us, then spawn their successor")
        .volt("volt", spawn_many_remote::<on_volt::Multi, Respawning>)
        .peer("tokio", spawn_many_remote::<on_tokio::Multi, Respawning>)
        .peer("async-executor", spawn_many_remote::<smol::Multi, Respawning>),
        Row::new("tasks/tree", "Tree of 2^16 spawned tasks (per task)")
            .headline()
            .volt("volt", tree::<on_volt::Multi>)
            .peer("tokio", tree::<on_tokio::Multi>)
            .peer("async-executor", tree::<smol::Multi>)
            .floor("two stacks", tree_on_stacks),
        Row::new("tasks/chained_spawn", "Each task spawns the next (per task)")
            .headline()
            .volt("volt", chained::<on_volt::Multi>)
            .peer("tokio", chained::<on_tokio::Multi>)
            .peer("async-executor", chained::<smol::Multi>),
        Row::new("tasks/current_spawn_many", "Current thread: 10,000 spawns from a task")
            .countable()
            .volt("volt", spawn_many_local::<on_volt::Current>)
            .peer("tokio", spawn_many_local::<on_tokio::Current>)
            .peer("async-executor", spawn_many_local::<smol::Current>),
        Row::new("tasks/current_spawn_remote", "Current thread: 10,000 spawns from outside")
            .countable()
            .volt("volt", current_remote::<on_volt::Current>)
            .peer("tokio", current_remote::<on_tokio::Current>)
            .peer("async-executor", current_remote::<smol::Current>),
        Row::new("tasks/current_chained", "Current thread: each task spawns the next (per task)")
            .countable()
            .volt("volt", chained::<on_volt::Current>)
            .peer("tokio", chained::<on_tokio::Current>)
            .peer("async-executor", chained::<smol::Current>),
    ]
}

/// Counts down; whoever reaches zero tells.
///
/// Aligned, so that the count and that of its `Arc` are in two cache lines for all contenders, whatever else they have on the
/// heap: where threads contend for both, it makes a difference of 4 % whether that is one line.
#[repr(align(128))]
pub(super) struct Countdown {
    left: AtomicU64,
    done: async_channel::Sender<()>,
    /// From spawn to first poll, where that is asked for.
    delays: Vec<AtomicU64>,
    noted: AtomicUsize,
}

impl Countdown {
    pub(super) fn new(count: u64) -> (Arc<Self>, async_channel::Receiver<()>) {
        Self::with_delays(count, 0)
    }

    fn with_delays(count: u64, delays: u64) -> (Arc<Self>, async_channel::Receiver<()>) {
        let (done, wait) = async_channel::bounded(1);
        let delays = (0..delays).map(|_| AtomicU64::new(0)).collect();
        let noted = AtomicUsize::new(0);
        (Arc::new(Countdown { left: AtomicU64::new(count), done, delays, noted }), wait)
    }

    pub(super) fn down(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.done.try_send(()).expect("told once");
        }
    }
}

/// What a task remembers of its spawn: nothing, or when that was.
trait Stamp: Copy + Send + 'static {
    fn now() -> Self;
    fn note(self, countdown: &Countdown);
}

impl Stamp for () {
    fn now() -> Self {}

    fn note(self, _: &Countdown) {}
}

impl Stamp for Instant {
    fn now() -> Self {
        Instant::now()
    }

    fn note(self, countdown: &Countdown) {
        let delay = u64::try_from(self.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let place = countdown.noted.fetch_add(1, Ordering::Relaxed);
        countdown.delays[place].store(delay, Ordering::Relaxed);
    }
}

/// The tasks that are spawned by the thousand.
async fn job<S: Stamp>(stamp: S, countdown: Arc<Countdown>) {
    stamp.note(&countdown);
    countdown.down();
}

/// Times `burst`, or collects the delays of its jobs. `burst` is given a countdown of `count`.
fn measure<F>(b: &mut Bench, count: u64, mut burst: F)
where
    F: FnMut(bool, Arc<Countdown>, async_channel::Receiver<()>),
{
    if !b.detail() {
        b.iter_ops(count, |n| {
            for _ in 0..n {
                let (countdown, done) = Countdown::new(count);
                burst(false, countdown, done);
            }
        });
        return;
    }
    let (start, mut delays) = (Instant::now(), Vec::new());
    while start.elapsed() < b.duration() * 4 {
        let (countdown, done) = Countdown::with_delays(count, count);
        burst(true, Arc::clone(&countdown), done);
        delays.extend(countdown.delays.iter().map(|delay| delay.load(Ordering::Relaxed)));
    }
    b.waits(delays);
}

fn spawn_local<R: Runtime, S: Stamp>(countdown: &Arc<Countdown>) {
    for _ in 0..MANY {
        detach::<R, _>(job(S::now(), Arc::clone(countdown)));
    }
}

pub(crate) fn spawn_many_local<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    measure(b, MANY, |detail, countdown, done| {
        runtime.run_task(async move {
            if detail {
                spawn_local::<R, Instant>(&countdown);
            } else {
                spawn_local::<R, ()>(&countdown);
            }
            done.recv().await.expect("told");
        });
    });
}

fn spawn_outside<R: Runtime, S: Stamp>(runtime: &R, count: u64, countdown: &Arc<Countdown>) {
    for _ in 0..count {
        R::detach(runtime.spawn_outside(job(S::now(), Arc::clone(countdown))));
    }
}

/// With what the workers are busy meanwhile.
pub(crate) trait Busy {
    const SPAWNS: u64 = FEW;
    fn start<R: Runtime>(runtime: &R, stop: &Arc<AtomicBool>);
}

pub(crate) struct Idle;

impl Busy for Idle {
    const SPAWNS: u64 = MANY;

    fn start<R: Runtime>(_: &R, _: &Arc<AtomicBool>) {}
}

fn compute() {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(10) {
        std::hint::spin_loop();
    }
}

/// Two tasks for each worker that compute and yield.
pub(crate) struct Yielding;

impl Busy for Yielding {
    fn start<R: Runtime>(runtime: &R, stop: &Arc<AtomicBool>) {
        for _ in 0..2 * workers() {
            let stop = Arc::clone(stop);
            R::detach(runtime.spawn_outside(async move {
                while !stop.load(Ordering::Relaxed) {
                    compute();
                    R::yield_now().await;
                }
            }));
        }
    }
}

/// Two tasks for each worker that compute and spawn their successor.
pub(crate) struct Respawning;

impl Busy for Respawning {
    fn start<R: Runtime>(runtime: &R, stop: &Arc<AtomicBool>) {
        fn next<R: Runtime>(stop: Arc<AtomicBool>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(async move {
                if !stop.load(Ordering::Relaxed) {
                    compute();
                    detach::<R, _>(next::<R>(stop));
                }
            })
        }
        for _ in 0..2 * workers() {
            R::detach(runtime.spawn_outside(next::<R>(Arc::clone(stop))));
        }
    }
}

pub(crate) fn spawn_many_remote<R: Runtime, B: Busy>(b: &mut Bench) {
    let runtime = R::start();
    let stop = Arc::new(AtomicBool::new(false));
    B::start(&runtime, &stop);
    measure(b, B::SPAWNS, |detail, countdown, done| {
        if detail {
            spawn_outside::<R, Instant>(&runtime, B::SPAWNS, &countdown);
        } else {
            spawn_outside::<R, ()>(&runtime, B::SPAWNS, &countdown);
        }
        done.recv_blocking().expect("told");
    });
    stop.store(true, Ordering::Relaxed);
}

/// As from another thread: the runtime's thread is outside while it spawns.
fn current_remote<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    measure(b, MANY, |_, countdown, done| {
        spawn_outside::<R, ()>(&runtime, MANY, &countdown);
        runtime.block_on(done.recv()).expect("told");
    });
}

/// What the nodes of the tree do themselves, and no more: each of two threads polls half of it, from a stack of its own.
fn tree_on_stacks(b: &mut Bench) {
    type Node = Pin<Box<dyn Future<Output = ()> + Send>>;
    thread_local! {
        static STACK: RefCell<Vec<Node>> = const { RefCell::new(Vec::new()) };
    }
    fn node(depth: u32, countdown: Arc<Countdown>) -> Node {
        Box::pin(async move {
            if depth > 0 {
                for _ in 0..2 {
                    let child = node(depth - 1, Arc::clone(&countdown));
                    STACK.with_borrow_mut(|stack| stack.push(child));
                }
            }
            countdown.down();
        })
    }
    let nodes = (1 << (DEPTH + 1)) - 2;
    b.iter_ops(nodes, |n| {
        let trees: Vec<_> = (0..n).map(|_| Countdown::new(nodes)).collect();
        let half = || {
            for (countdown, _) in &trees {
                let mut next = Some(node(DEPTH - 1, Arc::clone(countdown)));
                while let Some(mut node) = next {
                    let polled = node.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    assert!(polled.is_ready(), "a node waits for nothing");
                    next = STACK.with_borrow_mut(Vec::pop);
                }
            }
        };
        std::thread::scope(|scope| _ = [scope.spawn(half), scope.spawn(half)]);
        trees.iter().for_each(|(_, done)| done.try_recv().expect("told"));
    });
}

/// Of the tree's root.
const DEPTH: u32 = 15;

pub(crate) fn tree<R: Runtime>(b: &mut Bench) {
    fn node<R: Runtime>(
        depth: u32,
        countdown: Arc<Countdown>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            if depth > 0 {
                for _ in 0..2 {
                    detach::<R, _>(node::<R>(depth - 1, Arc::clone(&countdown)));
                }
            }
            countdown.down();
        })
    }
    let runtime = R::start();
    let nodes = (1 << (DEPTH + 1)) - 1;
    b.iter_ops(nodes, |n| {
        for _ in 0..n {
            let (countdown, done) = Countdown::new(nodes);
            runtime.run_task(async move {
                detach::<R, _>(node::<R>(DEPTH, countdown));
                done.recv().await.expect("told");
            });
        }
    });
}

pub(crate) fn chained<R: Runtime>(b: &mut Bench) {
    fn link<R: Runtime>(
        left: u64,
        countdown: Arc<Countdown>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            if left == 0 {
                countdown.down();
            } else {
                detach::<R, _>(link::<R>(left - 1, countdown));
            }
        })
    }
    let runtime = R::start();
    b.iter(|n| {
        let (countdown, done) = Countdown::new(1);
        runtime.run_task(async move {
            detach::<R, _>(link::<R>(n, countdown));
            done.recv().await.expect("told");
        });
    });
}
