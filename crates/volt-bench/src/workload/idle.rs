//! What a runtime costs while it has nothing, or almost nothing, to do.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use crate::bench::{Bench, Usage};
use crate::kind::{Runtime, Timers};
use crate::on_tokio;
use crate::on_volt;
use crate::peers::smol;
use crate::registry::Row;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new("idle/cpu", "Processor time of an idle runtime, a second")
            .headline()
            .long()
            // What the measuring thread's own sleep costs: differences below it are not seen.
            .unit("us", 20.0)
            .volt("volt", idle::<on_volt::Multi>)
            .peer("tokio", idle::<on_tokio::Multi>)
            .peer("async-executor", idle::<smol::Multi>)
            .floor("sleeping thread", |b| {
                let time = time(b);
                measure(b, || std::thread::sleep(time));
            }),
        tick_row("idle/tick_cpu", "Processor time of a 1 ms interval, a second")
            .volt("volt", |b| ticking::<on_volt::Multi>(b, 1))
            .peer("tokio", |b| ticking::<on_tokio::Multi>(b, 1))
            .peer("async-io", |b| ticking::<smol::Multi>(b, 1))
            .floor("sleeping thread", |b| sleeping(b, 1)),
        // As many programs that mostly wait do it; the switches beside those of the tick show here.
        tick_row("idle/slow_tick_cpu", "Processor time of a 20 ms interval, a second")
            .volt("volt", |b| ticking::<on_volt::Multi>(b, 20))
            .peer("tokio", |b| ticking::<on_tokio::Multi>(b, 20))
            .peer("async-io", |b| ticking::<smol::Multi>(b, 20))
            .floor("sleeping thread", |b| sleeping(b, 20)),
    ]
}

pub(crate) fn idle<R: Runtime>(b: &mut Bench) {
    let runtime = R::start();
    // One task has run, so everything that starts lazily has started.
    runtime.run_task(async {});
    std::thread::sleep(Duration::from_millis(20));
    let time = time(b);
    measure(b, || std::thread::sleep(time));
}

fn tick_row(id: &'static str, title: &'static str) -> Row {
    Row::new(id, title).long().unit("us", 5.0)
}

/// A task that ticks every `ms` milliseconds.
pub(crate) fn ticking<R: Timers>(b: &mut Bench, ms: u64) {
    let runtime = R::start();
    let time = time(b);
    measure(b, || {
        runtime.run_task(async move {
            let mut interval = R::interval(Duration::from_millis(ms));
            let start = Instant::now();
            let mut ticks = 0;
            while start.elapsed() < time {
                R::tick(&mut interval).await;
                ticks += 1;
            }
            assert!(ticks > 1, "it ticked");
        });
    });
}

/// The same ticks without a runtime: what the kernel takes for them.
fn sleeping(b: &mut Bench, ms: u64) {
    let time = time(b);
    measure(b, || {
        let start = Instant::now();
        let mut next = start;
        while start.elapsed() < time {
            next += Duration::from_millis(ms);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    });
}

fn time(b: &Bench) -> Duration {
    if b.rehearsal() {
        Duration::from_millis(10)
    } else {
        (b.duration() * 16).clamp(Duration::from_millis(200), Duration::from_secs(1))
    }
}

fn measure(b: &mut Bench, wait: impl FnOnce()) {
    let (start, before) = (Instant::now(), Usage::now());
    wait();
    let (used, seconds) = (Usage::now().since(before), start.elapsed().as_secs_f64());
    b.value(used.cpu_ns as f64 / 1000.0 / seconds);
    b.extra("context_switches_per_second", used.switches as f64 / seconds);
}
