//! The CPU pools: fork-join and small tasks.
#![forbid(unsafe_code)]

pub(crate) mod forks;
pub(crate) mod spawns;

use std::sync::OnceLock;

use crate::kind::workers;
use crate::registry::Row;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = forks::rows();
    rows.extend(spawns::rows());
    rows
}

/// Volt's pool with so many threads; there is one in a process.
fn volt_pool_of(threads: usize) -> &'static volt_pool::ThreadPool {
    static POOL: OnceLock<volt_pool::ThreadPool> = OnceLock::new();
    let pool = POOL.get_or_init(|| {
        volt_pool::Builder::new().threads(threads).build().expect("the pool starts")
    });
    assert_eq!(pool.max_threads(), threads, "a second pool is asked for");
    pool
}

/// For work from outside: the pool alone does it.
fn volt_pool() -> &'static volt_pool::ThreadPool {
    volt_pool_of(workers())
}

fn volt_enter<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    volt_pool().install(run)
}

/// For fork-join: the caller works in place, as a guest of the pool, so one thread less.
fn volt_guest<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    volt_pool_of(workers() - 1).enter(run)
}

/// rayon's pool.
fn rayon_pool() -> &'static rayon::ThreadPool {
    static POOL: OnceLock<rayon::ThreadPool> = OnceLock::new();
    POOL.get_or_init(|| {
        rayon::ThreadPoolBuilder::new().num_threads(workers()).build().expect("the pool starts")
    })
}

fn rayon_enter<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    rayon_pool().install(run)
}

/// chili: the caller counts as one of its threads.
fn chili_enter<R>(run: impl FnOnce(&mut chili::Scope<'_>) -> R) -> R {
    static POOL: OnceLock<chili::ThreadPool> = OnceLock::new();
    let start = || {
        chili::ThreadPool::with_config(chili::Config {
            thread_count: std::num::NonZero::new(workers()),
            ..Default::default()
        })
    };
    run(&mut POOL.get_or_init(start).scope())
}

/// Threads of the standard library, without a pool: one is started for each worker but the caller.
fn threads_enter<R>(run: impl FnOnce(usize) -> R) -> R {
    run(workers())
}

/// Halves the number of threads with each join, and starts none when there is one left.
fn threads_join<A, B: Send>(
    threads: usize,
    a: impl FnOnce(usize) -> A,
    b: impl FnOnce(usize) -> B + Send,
) -> (A, B) {
    let (here, there) = (threads - threads / 2, threads / 2);
    if there == 0 {
        return (a(1), b(1));
    }
    std::thread::scope(|scope| {
        let b = scope.spawn(move || b(there));
        (a(here), b.join().expect("the workload does not panic"))
    })
}

fn one_after_the_other<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
    (a(), b())
}

fn stay<R>(run: impl FnOnce() -> R) -> R {
    run()
}
