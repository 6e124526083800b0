//! Spawn storms, cancellation, sets of tasks, blocking closures, the pool.

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::Poll;

use volt::runtime::Builder;
use volt::task::{JoinSet, LocalSet, spawn_blocking, yield_now};
use volt::time::{sleep, timeout};

use crate::support::{Context, Tally, assert_planned, bounded, planned};

fn nest(depth: u64, tally: Arc<Tally>) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    let token = tally.plan();
    Box::pin(async move {
        let mut leaves = 1;
        if depth > 0 {
            let children: Vec<_> =
                (0..3).map(|_| volt::spawn(nest(depth - 1, tally.clone()))).collect();
            leaves = 0;
            for child in children {
                leaves += child.await.unwrap();
            }
        }
        token.run();
        leaves
    })
}

pub async fn storm(mut c: Context) {
    let mut tasks = Vec::new();
    for _ in 0..300 {
        let token = c.plan();
        let kind = c.below(5);
        let steps = c.below(20);
        let wait = c.rng.micros(2000);
        let task = volt::spawn(async move {
            match kind {
                0 => {}
                1 => {
                    for _ in 0..steps {
                        yield_now().await;
                    }
                }
                2 => sleep(wait).await,
                _ => volt::spawn(async {}).await.unwrap(),
            }
            token.run();
        });
        // The others run detached; the tally waits for them.
        if kind < 4 {
            tasks.push(task);
        }
    }
    for _ in 0..3 {
        let depth = c.below(5);
        assert_eq!(nest(depth, c.tally.clone()).await, 3_u64.pow(depth as u32));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

/// Spawns from threads that are not of the runtime.
pub fn outside(mut c: Context) {
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let mut rng = c.rng.fork();
            let (handle, tally) = (&c.handle, &c.tally);
            scope.spawn(move || {
                for _ in 0..100 {
                    let (token, value, yields) = (tally.plan(), rng.next(), rng.below(4));
                    let task = handle.spawn(async move {
                        for _ in 0..yields {
                            yield_now().await;
                        }
                        token.run();
                        value
                    });
                    match yields {
                        0 => assert_eq!(task.join().unwrap(), value),
                        1 => drop(task),
                        _ => assert_eq!(handle.block_on(task).unwrap(), value),
                    }
                }
            });
        }
    });
    let _ = c.below(1);
}

/// `block_on` from many threads.
pub fn guests(mut c: Context) {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut rng = c.rng.fork();
            let (handle, tally) = (&c.handle, &c.tally);
            scope.spawn(move || {
                for _ in 0..20 {
                    let (token, wait) = (tally.plan(), rng.micros(500));
                    handle.block_on(bounded(async move {
                        let task = volt::spawn(async move {
                            sleep(wait).await;
                            token.run();
                        });
                        yield_now().await;
                        task.await.unwrap();
                    }));
                }
            });
        }
    });
}

pub async fn cancel(mut c: Context) {
    let finished = Arc::new(AtomicU64::new(0));
    let (mut completed, mut cancelled) = (0, 0);
    for _ in 0..150 {
        let (token, finished) = (c.token(), finished.clone());
        let (steps, kind, wait) = (c.below(6), c.below(4), c.rng.micros(300));
        let mut task = volt::spawn(async move {
            let _token = token;
            for _ in 0..steps {
                match kind {
                    0 => yield_now().await,
                    1 => sleep(wait).await,
                    2 => spawn_blocking(|| ()).await.unwrap(),
                    _ => pending().await,
                }
            }
            finished.fetch_add(1, SeqCst);
        });
        let result = match c.below(5) {
            0 => {
                task.abort();
                task.await
            }
            1 => {
                yield_now().await;
                task.abort();
                task.abort();
                task.await
            }
            2 => {
                if let Ok(result) = timeout(wait, &mut task).await {
                    result
                } else {
                    task.abort();
                    task.await
                }
            }
            3 => volt::select! {
                result = &mut task => result,
                () = sleep(wait) => { task.abort_handle().abort(); task.await }
            },
            _ => {
                let handle = task.abort_handle();
                let thread = std::thread::spawn(move || handle.abort());
                let result = task.await;
                spawn_blocking(move || thread.join().unwrap()).await.unwrap();
                result
            }
        };
        match result {
            Ok(()) => completed += 1,
            Err(error) if error.is_cancelled() => cancelled += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(completed, finished.load(SeqCst), "tasks that completed");
    assert_eq!(completed + cancelled, 150);
}

pub async fn join_sets(mut c: Context) {
    for _ in 0..5 {
        let mut set = JoinSet::new();
        let mut aborted = 0;
        for number in 0..50_u64 {
            let (token, wait) = (c.token(), c.rng.micros(300));
            let handle = match c.below(4) {
                0 => set.spawn_blocking(move || {
                    drop(token);
                    number
                }),
                1 => set.spawn(async move {
                    let _token = token;
                    planned();
                }),
                _ => set.spawn(async move {
                    let _token = token;
                    sleep(wait).await;
                    number
                }),
            };
            if c.below(5) == 0 {
                handle.abort();
                aborted += 1;
            }
        }
        let (mut seen, mut results, mut cancelled) = (0_u64, 0, 0);
        let stop = if c.below(2) == 0 { 50 } else { 20 };
        while results < stop {
            match set.join_next().await.unwrap() {
                Ok(number) => {
                    assert_eq!(seen & 1 << number, 0, "a result comes once");
                    seen |= 1 << number;
                }
                Err(error) if error.is_cancelled() => cancelled += 1,
                Err(error) => assert_planned(error),
            }
            results += 1;
        }
        assert!(cancelled <= aborted);
        match c.below(3) {
            0 => set.shutdown().await,
            1 => set.abort_all(),
            _ => {}
        }
    }
}

pub fn local_sets(mut c: Context) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    for _ in 0..3 {
        let local = LocalSet::new();
        let counter = Rc::new(std::cell::Cell::new(0));
        let rounds = 20 + c.below(30);
        local.block_on(&runtime, async {
            let mut tasks = Vec::new();
            for _ in 0..rounds {
                let (token, wait, counter) = (c.plan(), c.rng.micros(200), counter.clone());
                tasks.push(volt::task::spawn_local(async move {
                    sleep(wait).await;
                    counter.set(counter.get() + 1);
                    token.run();
                }));
                let token = c.token();
                // Left pending when the set is dropped.
                volt::task::spawn_local(async move {
                    let _token = token;
                    pending::<()>().await;
                });
            }
            for task in tasks {
                task.await.unwrap();
            }
        });
        assert_eq!(counter.get(), rounds);
    }
}

pub async fn blocking(mut c: Context) {
    let ran = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for _ in 0..100 {
        let (token, ran, wait) = (c.token(), ran.clone(), c.rng.micros(200));
        let task = spawn_blocking(move || {
            let _token = token;
            std::thread::sleep(wait);
            ran.fetch_add(1, SeqCst);
        });
        if c.below(4) == 0 {
            task.abort();
        }
        tasks.push(task);
    }
    let mut completed = 0;
    for task in tasks {
        match task.await {
            Ok(()) => completed += 1,
            Err(error) => assert!(error.is_cancelled(), "{error}"),
        }
    }
    assert_eq!(completed, ran.load(SeqCst), "closures that ran");
}

pub async fn pool(mut c: Context) {
    let pool = volt::pool::ThreadPool::with_threads(2);
    for _ in 0..100 {
        let (token, value) = (c.token(), c.rng.next());
        let mut run = pool.run(move || {
            drop(token);
            value
        });
        match c.below(4) {
            0 => drop(run),
            1 => {
                // Polled once, and dropped while it runs, maybe.
                poll_fn(|cx| {
                    let _ = Pin::new(&mut run).poll(cx);
                    Poll::Ready(())
                })
                .await;
                drop(run);
            }
            _ => assert_eq!(run.await, value),
        }
        if c.below(10) == 0 {
            assert_planned(volt::spawn(pool.run(|| planned())).await.unwrap_err());
        }
    }
    spawn_blocking(move || drop(pool)).await.unwrap();
}
