//! forte, as a pool and as an executor; only with the feature of that name.
#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use forte::{Task, ThreadPool, Worker};

use crate::kind::{Runtime, workers};
use crate::registry::Row;

static POOL: ThreadPool = ThreadPool::new();

/// The pool with so many threads of its own.
fn pool(threads: usize) -> &'static ThreadPool {
    POOL.resize_to(threads);
    &POOL
}

/// For threads that only hand work in.
pub(crate) fn whole_pool() -> &'static ThreadPool {
    pool(workers())
}

/// The caller takes part, so one thread less.
pub(crate) fn enter<R>(run: impl FnOnce(&Worker) -> R) -> R {
    pool(workers() - 1).with_worker(run)
}

/// The pool, and the thread in `block_on`.
pub(crate) struct Multi;

pub(crate) struct Join<T>(Task<T>);

impl<T> Future for Join<T> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl Runtime for Multi {
    type Join<T: Send + 'static> = Join<T>;

    fn start() -> Self {
        pool(workers());
        Multi
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        futures_lite::future::block_on(future)
    }

    #[inline]
    fn spawn_outside<F>(&self, future: F) -> Join<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        Join(POOL.spawn(future))
    }

    #[inline]
    fn spawn<F>(future: F) -> Join<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        Join(POOL.spawn(future))
    }

    #[inline]
    fn detach<T: Send + 'static>(join: Join<T>) {
        join.0.detach();
    }

    #[inline]
    async fn yield_now() {
        futures_lite::future::yield_now().await;
    }

    fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Join<T> {
        Join(POOL.spawn(async move { work() }))
    }
}

/// Adds forte to the rows that it can take part in.
pub(crate) fn join_in(rows: Vec<Row>) -> Vec<Row> {
    use crate::workload::{pool, tasks};
    rows.into_iter()
        .map(|row| match row.id {
            "pool/fib" => row.peer("forte", pool::forks::on_forte::bench_fib::<20>),
            "pool/fib_narrow" => row.peer("forte", pool::forks::on_forte::bench_fib::<10>),
            "pool/fib_wide" => row.peer("forte", pool::forks::on_forte::bench_fib::<27>),
            "pool/join_deep" => row.peer("forte", pool::forks::on_forte::bench_chain),
            "pool/quicksort" => row.peer("forte", pool::forks::on_forte::bench_sort),
            "pool/sum" => row.peer("forte", pool::forks::on_forte::bench_sum),
            "pool/tiny_100k" => row.peer("forte", pool::spawns::tiny_forte::<1>),
            "pool/tiny_from_2" => row.peer("forte", pool::spawns::tiny_forte::<2>),
            "pool/tiny_from_4" => row.peer("forte", pool::spawns::tiny_forte::<4>),
            "pool/scope_10k" => row.peer("forte", pool::spawns::scope_forte),
            "pool/wake_idle" => row.peer("forte", pool::spawns::wake_forte),
            "tasks/spawn_await" => row.peer("forte", tasks::spawn_await::<Multi>),
            "tasks/spawn_100" => row.peer("forte", tasks::spawn_100::<Multi>),
            "tasks/spawn_many_local" => row.peer("forte", tasks::many::spawn_many_local::<Multi>),
            "tasks/spawn_many_remote_idle" => {
                row.peer("forte", tasks::many::spawn_many_remote::<Multi, tasks::many::Idle>)
            }
            "tasks/tree" => row.peer("forte", tasks::many::tree::<Multi>),
            "tasks/chained_spawn" => row.peer("forte", tasks::many::chained::<Multi>),
            "tasks/ping_pong" => {
                row.peer("forte", tasks::ping_pong::<Multi, super::channels::OneshotCrate>)
            }
            "memory/idle_task" => row.peer("forte", crate::workload::memory::idle_task::<Multi>),
            _ => row,
        })
        .collect()
}
