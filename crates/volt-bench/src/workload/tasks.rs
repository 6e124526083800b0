//! Spawning, waking and joining tasks.
#![forbid(unsafe_code)]

use std::future::{self, Future};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use crate::bench::Bench;
use crate::kind::{Runtime, Single};
use crate::on_tokio;
use crate::on_volt;
use crate::peers::channels::OneshotCrate;
use crate::peers::smol;
use crate::registry::Row;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = joining();
    rows.extend(many());
    rows.extend(waking());
    rows.extend(one_thread());
    rows
}

fn joining() -> Vec<Row> {
    vec![
        Row::new("tasks/spawn_await_outside", "spawn, await, from block_on")
            .headline()
            .volt("volt", spawn_await_outside::<on_volt::Multi>)
            .peer("tokio", spawn_await_outside::<on_tokio::Multi>)
            .peer("async-executor", spawn_await_outside::<smol::Multi>),
        Row::new("tasks/spawn_await", "spawn, await, inside a task")
            .headline()
            .volt("volt", spawn_await::<on_volt::Multi>)
            .peer("tokio", spawn_await::<on_tokio::Multi>)
            .peer("async-executor", spawn_await::<smol::Multi>),
        Row::new("tasks/spawn_100", "spawn 100, await all (per task)")
            .headline()
            .volt("volt", spawn_100::<on_volt::Multi>)
            .peer("tokio", spawn_100::<on_tokio::Multi>)
            .peer("async-executor", spawn_100::<smol::Multi>),
        Row::new("tasks/joinset_100", "JoinSet of 100 (per task)")
            .headline()
            .volt("volt", on_volt::tasks::joinset_100)
            .peer("tokio", on_tokio::tasks::joinset_100)
            .peer("async-executor", spawn_100::<smol::Multi>)
            .but("has no such set: spawns, then awaits in order"),
    ]
}

fn many() -> Vec<Row> {
    vec![
        Row::new("tasks/spawn_many_local", "10,000 spawns from a task")
            .headline()
            .volt("volt", spawn_many_local::<on_volt::Multi>)
            .peer("tokio", spawn_many_local::<on_tokio::Multi>)
            .peer("async-executor", spawn_many_local::<smol::Multi>),
        Row::new("tasks/spawn_many_remote_idle", "10,000 spawns from outside, idle workers")
            .headline()
            .volt("volt", spawn_many_remote::<on_volt::Multi, 0>)
            .peer("tokio", spawn_many_remote::<on_tokio::Multi, 0>)
            .peer("async-executor", spawn_many_remote::<smol::Multi, 0>),
        Row::new("tasks/spawn_many_remote_busy", "10,000 spawns from outside, a busy worker")
            .volt("volt", spawn_many_remote::<on_volt::Multi, 1>)
            .peer("tokio", spawn_many_remote::<on_tokio::Multi, 1>)
            .peer("async-executor", spawn_many_remote::<smol::Multi, 1>),
        Row::new("tasks/tree", "Tree of 2^16 spawned tasks (per task)")
            .headline()
            .volt("volt", tree::<on_volt::Multi>)
            .peer("tokio", tree::<on_tokio::Multi>)
            .peer("async-executor", tree::<smol::Multi>),
        Row::new("tasks/chained_spawn", "Each task spawns the next (per task)")
            .headline()
            .volt("volt", chained::<on_volt::Multi>)
            .peer("tokio", chained::<on_tokio::Multi>)
            .peer("async-executor", chained::<smol::Multi>),
    ]
}

fn waking() -> Vec<Row> {
    vec![
        Row::new("tasks/yield", "yield_now, 200 tasks")
            .headline()
            .volt("volt", yield_many::<on_volt::Multi>)
            .peer("tokio", yield_many::<on_tokio::Multi>)
            .peer("async-executor", yield_many::<smol::Multi>),
        Row::new("tasks/ping_pong", "Two tasks and two oneshots, 1,000 pairs (per pair)")
            .headline()
            .volt("volt", ping_pong::<on_volt::Multi, on_volt::channel::Oneshot>)
            .peer("tokio", ping_pong::<on_tokio::Multi, on_tokio::channel::Oneshot>)
            .peer("async-executor", ping_pong::<smol::Multi, OneshotCrate>),
        Row::new("tasks/block_on_ready", "block_on a ready future")
            .headline()
            .countable()
            .volt("volt", block_on_ready::<on_volt::Multi>)
            .peer("tokio", block_on_ready::<on_tokio::Multi>)
            .peer("async-io", block_on_ready::<smol::Multi>)
            .floor("futures-lite", |b| {
                b.iter(|n| {
                    (0..n).for_each(|i| assert_eq!(crate::kind::block_on(future::ready(i)), i))
                })
            }),
        Row::new("tasks/thread_wakes_block_on", "A thread wakes block_on and waits for its answer")
            .headline()
            .volt("volt", thread_wakes_block_on::<on_volt::Multi>)
            .peer("tokio", thread_wakes_block_on::<on_tokio::Multi>)
            .peer("async-io", thread_wakes_block_on::<smol::Multi>)
            .peer("futures-lite", thread_wakes_futures_lite)
            .floor("threads", threads_unpark),
        Row::new("tasks/thread_wakes_task", "A thread wakes a task and waits for its answer")
            .headline()
            .volt("volt", thread_wakes_task::<on_volt::Multi>)
            .peer("tokio", thread_wakes_task::<on_tokio::Multi>)
            .peer("async-executor", thread_wakes_task::<smol::Multi>)
            .floor("threads", threads_unpark),
        Row::new("tasks/blocking", "spawn_blocking, await")
            .headline()
            .volt("volt", blocking::<on_volt::Multi>)
            .peer("tokio", blocking::<on_tokio::Multi>)
            .peer("blocking", blocking::<smol::Multi>),
        Row::new("tasks/blocking_100", "spawn_blocking of 100, await all (per task)")
            .headline()
            .volt("volt", blocking_100::<on_volt::Multi>)
            .peer("tokio", blocking_100::<on_tokio::Multi>)
            .peer("blocking", blocking_100::<smol::Multi>),
    ]
}

fn one_thread() -> Vec<Row> {
    vec![
        Row::new("tasks/current_spawn_await", "Current thread: spawn, await")
            .countable()
            .volt("volt", spawn_await_outside::<on_volt::Current>)
            .peer("tokio", spawn_await_outside::<on_tokio::Current>)
            .peer("async-executor", spawn_await_outside::<smol::Current>),
        Row::new("tasks/current_spawn_100", "Current thread: spawn 100, await all (per task)")
            .countable()
            .volt("volt", current_100::<on_volt::Current>)
            .peer("tokio", current_100::<on_tokio::Current>)
            .peer("async-executor", current_100::<smol::Current>),
        Row::new("tasks/current_yield", "Current thread: yield_now")
            .countable()
            .volt("volt", current_yield::<on_volt::Current>)
            .peer("tokio", current_yield::<on_tokio::Current>)
            .peer("async-executor", current_yield::<smol::Current>),
    ]
}

pub(crate) fn spawn_await_outside<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        runtime.block_on(async {
            for i in 0..n {
                assert_eq!(R::spawn(async move { i }).await, i);
            }
        });
    });
}

pub(crate) fn spawn_await<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        runtime.run_task(async move {
            for i in 0..n {
                assert_eq!(R::spawn(async move { i }).await, i);
            }
        });
    });
}

async fn spawn_batches<R: Runtime>(n: u64) {
    let mut joins = Vec::with_capacity(100);
    for i in 0..n {
        joins.extend((0..100).map(|j| R::spawn(async move { i + j })));
        for (j, join) in joins.drain(..).enumerate() {
            assert_eq!(join.await, i + j as u64);
        }
    }
}

pub(crate) fn spawn_100<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    b.iter_ops(100, |n| runtime.run_task(spawn_batches::<R>(n)));
}

pub(crate) fn current_100<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    b.iter_ops(100, |n| runtime.block_on(spawn_batches::<R>(n)));
}

/// Counts down; whoever reaches zero tells.
struct Countdown {
    left: AtomicU64,
    done: async_channel::Sender<()>,
}

impl Countdown {
    fn new(count: u64) -> (Arc<Self>, async_channel::Receiver<()>) {
        let (done, wait) = async_channel::bounded(1);
        (Arc::new(Countdown { left: AtomicU64::new(count), done }), wait)
    }

    fn down(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.done.try_send(()).expect("told once");
        }
    }
}

const MANY: u64 = 10_000;

pub(crate) fn spawn_many_local<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    b.iter_ops(MANY, |n| {
        for _ in 0..n {
            runtime.run_task(async {
                let (countdown, done) = Countdown::new(MANY);
                for _ in 0..MANY {
                    let countdown = Arc::clone(&countdown);
                    detach::<R, _>(async move { countdown.down() });
                }
                done.recv().await.expect("told");
            });
        }
    });
}

/// `BUSY` workers are kept busy by a task that yields all the time.
pub(crate) fn spawn_many_remote<R: Runtime, const BUSY: usize>(b: &mut Bench) {
    let runtime = R::start();
    let stop = Arc::new(AtomicU64::new(0));
    let busy: Vec<_> = (0..BUSY)
        .map(|_| {
            let stop = Arc::clone(&stop);
            runtime.spawn_outside(async move {
                while stop.load(Ordering::Relaxed) == 0 {
                    R::yield_now().await;
                }
            })
        })
        .collect();
    b.iter_ops(MANY, |n| {
        for _ in 0..n {
            let (countdown, done) = Countdown::new(MANY);
            for _ in 0..MANY {
                let countdown = Arc::clone(&countdown);
                R::detach(runtime.spawn_outside(async move { countdown.down() }));
            }
            done.recv_blocking().expect("told");
        }
    });
    stop.store(1, Ordering::Relaxed);
    for task in busy {
        runtime.block_on(task);
    }
}

pub(crate) fn tree<R: Runtime>(b: &mut Bench) {
    const DEPTH: u32 = 15;
    fn node<R: Runtime>(
        depth: u32,
        countdown: Arc<Countdown>,
    ) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
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
    ) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
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

/// Spawns and lets go.
fn detach<R: Runtime, F: Future<Output: Send + 'static> + Send + 'static>(future: F) {
    R::detach(R::spawn(future));
}

pub(crate) fn yield_many<R: Runtime>(b: &mut Bench) {
    const TASKS: u64 = 200;
    let runtime = R::start();
    b.iter_ops(TASKS, |n| {
        let joins: Vec<_> = (0..TASKS)
            .map(|_| {
                runtime.spawn_outside(async move {
                    for _ in 0..n {
                        R::yield_now().await;
                    }
                    n
                })
            })
            .collect();
        runtime.block_on(async {
            for join in joins {
                assert_eq!(join.await, n);
            }
        });
    });
}

pub(crate) fn current_yield<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        runtime.block_on(async {
            let task = R::spawn(async move {
                for _ in 0..n {
                    R::yield_now().await;
                }
                n
            });
            assert_eq!(task.await, n);
        });
    });
}

pub(crate) fn ping_pong<R: Runtime, S: Single>(b: &mut Bench) {
    const PAIRS: u64 = 1_000;
    let runtime = R::start();
    b.iter_ops(PAIRS, |n| {
        for _ in 0..n {
            runtime.run_task(async {
                let (countdown, done) = Countdown::new(PAIRS);
                for i in 0..PAIRS {
                    let countdown = Arc::clone(&countdown);
                    detach::<R, _>(async move {
                        let (there, ask) = S::create();
                        let (back, answer) = S::create();
                        detach::<R, _>(async move {
                            let value = S::recv(ask).await.expect("asked");
                            assert!(S::send(back, value + 1), "awaited");
                        });
                        assert!(S::send(there, i), "awaited");
                        assert_eq!(S::recv(answer).await, Some(i + 1));
                        countdown.down();
                    });
                }
                done.recv().await.expect("told");
            });
        }
    });
}

pub(crate) fn block_on_ready<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        for i in 0..n {
            assert_eq!(runtime.block_on(future::ready(i)), i);
        }
    });
}

/// The answering side: sees each new value of a counter that another thread raises.
struct Question {
    asked: AtomicU64,
    answered: AtomicU64,
    waker: std::sync::Mutex<Option<std::task::Waker>>,
    asker: std::thread::Thread,
}

impl Question {
    async fn answer_all(&self, n: u64) {
        for i in 1..=n {
            future::poll_fn(|cx| {
                if self.asked.load(Ordering::Acquire) >= i {
                    return Poll::Ready(());
                }
                *self.waker.lock().expect("not poisoned") = Some(cx.waker().clone());
                if self.asked.load(Ordering::Acquire) >= i {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
            self.answered.store(i, Ordering::Release);
            self.asker.unpark();
        }
    }

    fn ask_all(&self, n: u64) {
        for i in 1..=n {
            self.asked.store(i, Ordering::Release);
            let waker = self.waker.lock().expect("not poisoned").take();
            if let Some(waker) = waker {
                waker.wake();
            }
            while self.answered.load(Ordering::Acquire) < i {
                std::thread::park();
            }
        }
    }
}

/// Another thread asks `n` times; `answer` runs the answering side on this thread.
fn questions(n: u64, answer: impl FnOnce(Arc<Question>)) {
    let (tx, rx) = std::sync::mpsc::channel::<Arc<Question>>();
    let asker = std::thread::Builder::new()
        .name("asker".to_owned())
        .spawn(move || rx.recv().expect("a question").ask_all(n))
        .expect("a thread can be started");
    let question = Arc::new(Question {
        asked: AtomicU64::new(0),
        answered: AtomicU64::new(0),
        waker: std::sync::Mutex::new(None),
        asker: asker.thread().clone(),
    });
    tx.send(Arc::clone(&question)).expect("the asker waits");
    answer(question);
    asker.join().expect("the asker ends well");
}

pub(crate) fn thread_wakes_block_on<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| questions(n, |question| runtime.block_on(question.answer_all(n))));
}

fn thread_wakes_futures_lite(b: &mut Bench) {
    b.iter(|n| questions(n, |question| crate::kind::block_on(question.answer_all(n))));
}

pub(crate) fn thread_wakes_task<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        questions(n, |question| {
            let task = runtime.spawn_outside(async move { question.answer_all(n).await });
            runtime.block_on(task);
        });
    });
}

/// Two threads that unpark each other.
fn threads_unpark(b: &mut Bench) {
    b.iter(|n| {
        questions(n, |question| {
            let waker = std::task::Waker::from(Arc::new(Unpark(std::thread::current())));
            let mut cx = std::task::Context::from_waker(&waker);
            let mut answers = pin!(question.answer_all(n));
            while answers.as_mut().poll(&mut cx).is_pending() {
                std::thread::park();
            }
        });
    });
}

struct Unpark(std::thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub(crate) fn blocking<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        runtime.block_on(async {
            for i in 0..n {
                assert_eq!(R::spawn_blocking(move || i).await, i);
            }
        });
    });
}

pub(crate) fn blocking_100<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    b.iter_ops(100, |n| {
        runtime.block_on(async {
            for i in 0..n {
                let joins: Vec<_> = (0..100).map(|j| R::spawn_blocking(move || i + j)).collect();
                for (j, join) in joins.into_iter().enumerate() {
                    assert_eq!(join.await, i + j as u64);
                }
            }
        });
    });
}
