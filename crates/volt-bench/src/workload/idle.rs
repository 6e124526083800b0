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
        Row::new("idle/tick_cpu", "Processor time of a 1 ms interval, a second")
            .long()
            .unit("us", 5.0)
            .volt("volt", ticking::<on_volt::Multi>)
            .peer("tokio", ticking::<on_tokio::Multi>)
            .peer("async-io", ticking::<smol::Multi>)
            .floor("sleeping thread", |b| {
                let time = time(b);
                measure(b, || sleep_each_millisecond(time));
            }),
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

pub(crate) fn ticking<R: Timers>(b: &mut Bench) {
    let runtime = R::start();
    let time = time(b);
    measure(b, || {
        runtime.run_task(async move {
            let mut interval = R::interval(Duration::from_millis(1));
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
fn sleep_each_millisecond(time: Duration) {
    let start = Instant::now();
    let mut next = start;
    while start.elapsed() < time {
        next += Duration::from_millis(1);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
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
