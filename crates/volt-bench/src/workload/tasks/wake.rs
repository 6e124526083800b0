//! Waking a runtime from outside, and from its blocking threads.
#![forbid(unsafe_code)]

use std::future::{self, Future};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use crate::bench::Bench;
use crate::kind::Runtime;
use crate::on_tokio;
use crate::on_volt;
use crate::peers::smol;
use crate::registry::Row;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("tasks/block_on_ready", "block_on a ready future")
            .headline()
            .countable()
            .why(
                "entering the runtime makes the thread one of its members, so that spawn, timers and sockets work inside; \
                 an executor without such a context has nothing to enter",
            )
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
            .why(
                "the time is the kernel's, for two wake-ups; the thread in block_on may be the one that watches timers and \
                 sockets, and is then woken through the driver instead of a futex",
            )
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
