//! A runtime with nothing to do does nothing: its threads are never scheduled.
#![cfg(target_os = "linux")]

use std::fs;
use std::time::Duration;

use volt::runtime::Builder;

/// How often the threads of this name gave up the processor, or lost it.
fn switches(name: &str) -> (usize, u64) {
    let (mut threads, mut switches) = (0, 0);
    for thread in fs::read_dir("/proc/self/task").unwrap() {
        let path = thread.unwrap().path();
        let Ok(status) = fs::read_to_string(path.join("status")) else { continue };
        let field = |key: &str| {
            status.lines().find_map(|line| line.strip_prefix(key)).map_or("", str::trim).to_owned()
        };
        if field("Name:") == name {
            threads += 1;
            switches += field("voluntary_ctxt_switches:").parse::<u64>().unwrap();
        }
    }
    (threads, switches)
}

#[test]
fn an_idle_runtime_makes_no_system_calls() {
    let rt = Builder::new_multi_thread()
        .worker_threads(4)
        .thread_name("idle-test")
        .enable_all()
        .build()
        .unwrap();
    // Some of everything first: tasks, timers, wake-ups from outside.
    rt.block_on(async {
        for _ in 0..100 {
            volt::spawn(volt::time::sleep(Duration::from_micros(50))).await.unwrap();
        }
    });
    (0..100).for_each(|_| drop(rt.spawn(async {})));
    rt.spawn(std::future::pending::<()>());
    std::thread::sleep(Duration::from_millis(300));
    // On a busy machine they may come to rest later.
    for attempt in 1.. {
        let before = switches("idle-test");
        std::thread::sleep(Duration::from_secs(2));
        let after = switches("idle-test");
        assert_eq!((before.0, after.0), (4, 4));
        if before == after {
            break;
        }
        assert!(attempt < 5, "{before:?} {after:?}");
    }
}

/// What wakes the future of `block_on` in its thread's own turn of the driver does not end the next wait.
#[test]
fn a_tick_in_block_on_takes_one_turn_of_the_driver() {
    const TICKS: u64 = 50;
    for rt in [Builder::new_current_thread(), Builder::new_multi_thread()].iter_mut() {
        let rt = rt.enable_all().build().unwrap();
        let turns = rt.block_on(async {
            let mut interval = volt::time::interval(Duration::from_millis(1));
            // The driver comes to the thread that it wakes again and again.
            for _ in 0..20 {
                interval.tick().await;
            }
            let before = rt.metrics().driver_wakeups_count();
            for _ in 0..TICKS {
                interval.tick().await;
            }
            rt.metrics().driver_wakeups_count() - before
        });
        assert!(turns < TICKS * 3 / 2, "{turns} turns for {TICKS} ticks");
    }
}
