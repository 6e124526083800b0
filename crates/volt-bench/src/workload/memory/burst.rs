//! What is kept of the memory that a burst needed, once it is over.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::resident;
use crate::alloc;
use crate::bench::Bench;
use crate::kind::{Channel, Runtime, Timers, block_on};
use crate::on_tokio::{self, channel as tokio};
use crate::on_volt::mpmc::Mpmc;
use crate::on_volt::{self, channel as volt};
use crate::peers::channels as peers;
use crate::peers::smol;
use crate::registry::Row;

const BURST: u64 = 100_000;

pub(super) fn rows() -> Vec<Row> {
    let row = |id, title| {
        // Below a page a difference is of no use to anybody.
        Row::new(id, title).long().unit("KiB", 4.0)
    };
    vec![
        row("memory/after_tasks", "Heap kept after 100,000 runnable tasks")
            .headline()
            .volt("volt", tasks::<on_volt::Multi>)
            .peer("tokio", tasks::<on_tokio::Multi>)
            .peer("async-executor", tasks::<smol::Multi>),
        row("memory/after_timers", "Heap kept after 100,000 sleeping tasks")
            .volt("volt", timers::<on_volt::Multi>)
            .peer("tokio", timers::<on_tokio::Multi>)
            .peer("async-io", timers::<smol::Multi>),
        row("memory/after_messages", "Heap kept after 100,000 messages in an unbounded channel")
            .why(
                "one block of 32 slots stays beside the one in use, so that a channel that fills and empties by \
                 turns allocates nothing; crossbeam frees each block that was emptied, and allocates the next",
            )
            .volt("volt", messages::<volt::Unbounded>)
            .volt("volt mpmc", messages::<Mpmc>)
            .peer("tokio", messages::<tokio::Unbounded>)
            .peer("kanal", messages::<peers::Kanal>)
            .peer("flume", messages::<peers::Flume>)
            .peer("crossbeam", messages::<peers::Crossbeam>)
            .peer("async-channel", messages::<peers::AsyncChannel>)
            .peer("asyncband", messages::<peers::AsyncbandUnbounded>),
    ]
}

/// What the process has more than before the burst, in KiB: heap, and memory from the system.
struct Growth {
    resident: u64,
}

impl Growth {
    fn start() -> Self {
        alloc::start();
        Growth { resident: resident() }
    }

    fn now(&self) -> (f64, f64) {
        let heap = alloc::read().live as f64 / 1024.0;
        (heap, resident().saturating_sub(self.resident) as f64 / 1024.0)
    }

    fn report(&self, b: &mut Bench, (heap, resident): (f64, f64)) {
        let (heap_after, resident_after) = self.now();
        b.value(heap_after.max(0.0));
        b.extra("burst_heap_kib", heap);
        b.extra("burst_resident_kib", resident);
        b.extra("kept_resident_kib", resident_after);
    }
}

fn count(b: &Bench) -> u64 {
    if b.rehearsal() { 100 } else { BURST }
}

/// All are in the queues at once, since each yields until the last has been spawned.
fn tasks<R: Runtime>(b: &mut Bench) {
    let (runtime, count) = (R::start(), count(b));
    let go = Arc::new(AtomicBool::new(false));
    let task = |go: Arc<AtomicBool>| async move {
        while !go.load(Ordering::Relaxed) {
            R::yield_now().await;
        }
    };
    runtime.block_on(runtime.spawn_outside(async {}));
    let growth = Growth::start();
    let mut joins: Vec<_> =
        (0..count).map(|_| runtime.spawn_outside(task(Arc::clone(&go)))).collect();
    let most = growth.now();
    go.store(true, Ordering::Relaxed);
    runtime.block_on(async {
        for join in joins.drain(..) {
            join.await;
        }
    });
    drop(joins);
    std::thread::sleep(Duration::from_millis(50));
    growth.report(b, most);
}

fn timers<R: Timers>(b: &mut Bench) {
    let (runtime, count) = (R::start(), count(b));
    runtime.run_task(async { drop(R::sleep(Duration::from_millis(1)).await) });
    let growth = Growth::start();
    let mut joins: Vec<_> = (0..count)
        .map(|_| runtime.spawn_outside(async { drop(R::sleep(Duration::from_millis(200)).await) }))
        .collect();
    let most = growth.now();
    runtime.block_on(async {
        for join in joins.drain(..) {
            join.await;
        }
    });
    drop(joins);
    std::thread::sleep(Duration::from_millis(50));
    growth.report(b, most);
}

/// The channel stays open: what it keeps, it keeps as long as it lives.
fn messages<C: Channel>(b: &mut Bench) {
    let count = count(b);
    let (tx, mut rx) = C::create(None);
    block_on(async {
        assert!(C::send(&tx, 0).await);
        assert_eq!(C::recv(&mut rx).await, Some(0));
    });
    let growth = Growth::start();
    (0..count).for_each(|value| assert!(C::try_send(&tx, value), "it has no bound"));
    let most = growth.now();
    (0..count).for_each(|value| assert_eq!(C::try_recv(&mut rx), Some(value)));
    growth.report(b, most);
    drop((tx, rx));
}
