//! Memory for each idle task, timer and connection.
#![forbid(unsafe_code)]

mod burst;

use std::future::{self, Future};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::alloc;
use crate::bench::Bench;
use crate::kind::{Runtime, Sockets, Timers};
use crate::on_tokio;
use crate::on_volt;
use crate::peers::smol;
use crate::registry::Row;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = vec![
        Row::new("memory/idle_task", "Heap of an idle task (8-byte future)")
            .headline()
            .why("the header has 64 bytes: two of its words are the links of the list that a shutdown finds the task by")
            .long()
            .unit("bytes", 0.5)
            .volt("volt", idle_task::<on_volt::Multi>)
            .peer("tokio", idle_task::<on_tokio::Multi>)
            .peer("async-executor", idle_task::<smol::Multi>),
        Row::new("memory/sleep", "Size of a sleep, with what it puts on the heap")
            .long()
            .unit("bytes", 0.5)
            .volt("volt", sleep::<on_volt::Multi>)
            .peer("tokio", sleep::<on_tokio::Multi>)
            .peer("async-io", sleep::<smol::Multi>),
        Row::new("memory/sleeping_tasks", "Resident memory of a sleeping task, of 200,000")
            .headline()
            .long()
            .unit("bytes", 1.0)
            .volt("volt", sleeping_tasks::<on_volt::Multi, 200>)
            .peer("tokio", sleeping_tasks::<on_tokio::Multi, 200>)
            .peer("async-io", sleeping_tasks::<smol::Multi, 200>),
        Row::new("memory/sleeping_million", "Resident memory of a sleeping task, of 1,000,000")
            .long()
            .unit("bytes", 1.0)
            .volt("volt", sleeping_tasks::<on_volt::Multi, 1000>)
            .peer("tokio", sleeping_tasks::<on_tokio::Multi, 1000>)
            .peer("async-io", sleeping_tasks::<smol::Multi, 1000>),
        Row::new(
            "memory/connection",
            "Heap of an idle TCP connection's two ends, each with its task",
        )
        .long()
        .unit("bytes", 0.5)
        .volt("volt", connection::<on_volt::Multi>)
        .peer("tokio", connection::<on_tokio::Multi>)
        .peer("async-io", connection::<smol::Multi>),
    ];
    rows.extend(burst::rows());
    rows
}

/// Heap bytes that `make(i)` leaves behind, for each of `count`.
fn heap_each<T>(b: &mut Bench, count: u32, mut make: impl FnMut(&mut Vec<T>)) -> Vec<T> {
    let mut kept = Vec::with_capacity(count as usize);
    alloc::start();
    for _ in 0..count {
        make(&mut kept);
    }
    std::thread::sleep(Duration::from_millis(30));
    let counts = alloc::stop();
    b.value(counts.live as f64 / f64::from(count));
    b.extra("allocations_each", counts.allocations as f64 / f64::from(count));
    kept
}

pub(crate) fn idle_task<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    runtime.run_task(async {});
    let count = if b.rehearsal() { 100 } else { 20_000 };
    let kept = heap_each(b, count, |kept| kept.push(runtime.spawn_outside(Idle(7))));
    std::mem::forget(kept);
}

/// A future of eight bytes that waits for ever.
struct Idle(u64);

impl Future for Idle {
    type Output = u64;

    fn poll(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<u64> {
        if self.0 == 0 { std::task::Poll::Ready(0) } else { std::task::Poll::Pending }
    }
}

pub(crate) fn sleep<R: Timers>(b: &mut Bench) {
    let runtime = R::start();
    let count = if b.rehearsal() { 100 } else { 10_000 };
    runtime.block_on(async {
        let cx = future::poll_fn(|cx| std::task::Poll::Ready(cx.waker().clone())).await;
        let mut cx = std::task::Context::from_waker(&cx);
        let kept = heap_each(b, count, |all| {
            let mut sleep = Box::pin(R::sleep(Duration::from_secs(3600)));
            assert!(sleep.as_mut().poll(&mut cx).is_pending(), "an hour has not passed");
            all.push(sleep);
        });
        drop(kept);
    });
}

static POLLED: AtomicU32 = AtomicU32::new(0);

/// Of so many thousand tasks.
fn sleeping_tasks<R: Timers, const THOUSANDS: u32>(b: &mut Bench) {
    let count = if b.rehearsal() { 1_000 } else { THOUSANDS * 1_000 };
    let runtime = R::start();
    runtime.run_task(async {
        R::sleep(Duration::from_millis(1)).await;
    });
    let before = resident();
    let kept: Vec<_> = (0..count)
        .map(|_| {
            runtime.spawn_outside(async {
                // Next in the same poll it sleeps.
                POLLED.fetch_add(1, Ordering::Relaxed);
                R::sleep(Duration::from_secs(3600)).await;
            })
        })
        .collect();
    while POLLED.load(Ordering::Relaxed) < count {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(100));
    let handles = std::mem::size_of_val(kept.as_slice()) as u64;
    b.value(resident().saturating_sub(before + handles) as f64 / f64::from(count));
    std::mem::forget(kept);
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("this system tells its memory");
    let pages: u64 =
        statm.split_whitespace().nth(1).and_then(|f| f.parse().ok()).expect("statm has pages");
    pages * 4096
}

pub(crate) fn connection<R: Sockets>(b: &mut Bench) {
    let runtime = R::start();
    let count = if b.rehearsal() { 5 } else { 200 };
    runtime.block_on(async {
        let (mut listener, address) = R::listen().await;
        let warm = R::connect(address).await;
        let _warm = (warm, R::accept(&mut listener).await);
        alloc::start();
        let mut kept = Vec::with_capacity(count as usize * 2);
        for _ in 0..count {
            let ours = R::connect(address).await;
            let theirs = R::accept(&mut listener).await;
            for mut stream in [ours, theirs] {
                kept.push(R::spawn(async move { R::read(&mut stream, &mut [0; 16]).await }));
            }
        }
        std::thread::sleep(Duration::from_millis(30));
        let counts = alloc::stop();
        b.value(
            (counts.live as f64 - std::mem::size_of_val(kept.as_slice()) as f64) / f64::from(count),
        );
        std::mem::forget(kept);
    });
}
