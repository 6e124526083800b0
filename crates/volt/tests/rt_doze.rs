//! The watcher of a runtime that does little: it costs nothing, and is there when it is needed.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::ffi::OsStr;
use std::fs;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use volt::runtime::{Builder, Runtime};
use volt::time::interval;

fn runtime(name: &str) -> Runtime {
    Builder::new_multi_thread().worker_threads(2).thread_name(name).enable_all().build().unwrap()
}

/// How often the threads of this name, and the thread `guest`, have gone to sleep.
fn switches(name: &str, guest: &OsStr) -> u64 {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    let of_thread = |path: std::path::PathBuf| {
        // A thread of another test may end meanwhile.
        let is_named = fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim() == name);
        let is_ours = is_named || path.file_name() == Some(guest);
        let status = is_ours.then(|| fs::read_to_string(path.join("status")).ok()).flatten()?;
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count?.trim().parse::<u64>().ok()
    };
    threads.filter_map(|thread| of_thread(thread.unwrap().path())).sum()
}

/// It once was 1.7 for each tick of 20 ms, and 3.0 for one of 100 ms, as the watcher woke up beside them.
#[test]
fn a_tick_wakes_one_thread() {
    for (name, period, ticks) in [("tick-20", 20, 30), ("tick-100", 100, 10)] {
        let counts = std::iter::repeat_with(|| switches_of_ticks(name, period, ticks));
        // Other programs may keep a thread from the processor for so long that it counts as stalled.
        let as_many = |count| (ticks..ticks * 3 / 2).contains(&count);
        assert!(counts.take(5).any(as_many), "{ticks} ticks of {period} ms");
    }
}

fn switches_of_ticks(name: &'static str, period: u64, ticks: u64) -> u64 {
    let runtime = runtime(name);
    // It may be the one that waits in the driver, and runs the task.
    let this = fs::read_link("/proc/thread-self").unwrap().file_name().unwrap().to_owned();
    runtime.block_on(async move {
        let task = volt::spawn(async move {
            let mut interval = interval(Duration::from_millis(period));
            // Until its kind is known to be quick, and the watcher is drowsy.
            for _ in 0..10 {
                interval.tick().await;
            }
            let before = switches(name, &this);
            for _ in 0..ticks {
                interval.tick().await;
            }
            switches(name, &this) - before
        });
        task.await.unwrap()
    })
}

/// Ticks, and in the last poll spawns a task and blocks its thread. How long the task had to wait.
async fn tick_and_block(period: Duration, ticks: u32) -> Duration {
    let mut interval = interval(period);
    for _ in 0..ticks {
        interval.tick().await;
    }
    let (tell, told) = mpsc::channel();
    let start = Instant::now();
    drop(volt::spawn(async move { tell.send(start.elapsed()).unwrap() }));
    told.recv_timeout(Duration::from_secs(5)).unwrap_or(Duration::MAX)
}

/// Its kind is known to be quick, and so nobody was told of the task that it holds up.
#[test]
fn a_poll_that_does_not_end_is_noticed_however_seldom_the_others_were() {
    for (period, ticks) in [(1, 100), (20, 20), (100, 5)] {
        let runtime = runtime("blocks");
        let waited = runtime.block_on(async move {
            let task = tick_and_block(Duration::from_millis(period), ticks);
            volt::spawn(task).await.unwrap()
        });
        assert!(waited < Duration::from_secs(1), "{waited:?} among ticks of {period} ms");
    }
}

/// All sleep, the watcher too; it is the one that is woken.
#[test]
fn a_watcher_that_rests_is_woken_for_work() {
    let runtime = runtime("rests");
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(3));
        let (tell, told) = mpsc::channel();
        drop(runtime.spawn(async move { tell.send(()).unwrap() }));
        told.recv_timeout(Duration::from_secs(5)).expect("it runs");
    }
}

/// How late the timers of a task are beside another one that is quick 20 times, and then blocks.
fn late(period: Duration, blocks: Duration, yields: bool, event_interval: u32) -> Vec<Duration> {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).event_interval(event_interval).build().unwrap();
    let late = runtime.block_on(async move {
        let (tell, mut told) = volt::sync::mpsc::unbounded_channel::<Instant>();
        let slow = volt::spawn(async move {
            let mut interval = interval(period);
            for tick in 0..40 {
                interval.tick().await;
                if tick >= 20 {
                    tell.send(Instant::now() + blocks / 2).unwrap();
                    // Until the other one waits for its timer.
                    volt::time::sleep(Duration::from_millis(1)).await;
                    if yields {
                        volt::task::yield_now().await;
                    }
                    std::thread::sleep(blocks);
                }
            }
        });
        let waits = volt::spawn(async move {
            let mut late = Vec::new();
            while let Some(due) = told.recv().await {
                volt::time::sleep_until(due.into()).await;
                late.push(due.elapsed());
            }
            late
        });
        slow.await.unwrap();
        waits.await.unwrap()
    });
    assert!(runtime.metrics().slow_polls_count() >= 10);
    late
}

/// As long as it is thought to be quick, nobody has the driver while it is polled.
#[test]
fn a_kind_that_becomes_slow_holds_up_timers_only_at_first() {
    for (period, blocks, yields, event_interval) in
        [(20, 10, false, 61), (60, 20, false, 61), (20, 10, true, 61), (20, 10, true, 1)]
    {
        let [period, blocks] = [period, blocks].map(Duration::from_millis);
        // On a machine that has something else to do, timers are late for other reasons, too.
        let mut tries = (0..5).map(|_| late(period, blocks, yields, event_interval));
        let is_mostly_in_time = |late: &Vec<Duration>| {
            late.iter().filter(|&&late| late > blocks / 4).count() < late.len() / 2
        };
        assert!(tries.any(|late| is_mostly_in_time(&late)), "{period:?} {blocks:?} {yields}");
    }
}
