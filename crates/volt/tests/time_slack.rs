//! Who waits for a runtime's timers has a timer slack of 1 ns; nobody else gets it from there.
#![cfg(target_os = "linux")]

#[path = "support/net.rs"]
mod support;

use std::io;
use std::time::Duration;

use support::{bounded, each};
use volt::process::Command;
use volt::runtime::Builder;
use volt::task::{block_in_place, spawn_blocking, yield_now};
use volt::time::sleep;

/// This thread's.
fn slack() -> u32 {
    // SAFETY: this option takes no argument and touches no memory of the process.
    let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    u32::try_from(slack).unwrap()
}

/// What the test begins with, and everybody shall have.
fn default_slack() -> u32 {
    let slack = slack();
    assert!(slack > 1, "a test's thread has the default, mostly 50 us");
    slack
}

/// Sleeps until this thread has waited for its timer: who loses the processor for so long finds the time over.
async fn wait_for_a_timer() {
    for _ in 0..1_000 {
        sleep(Duration::from_millis(1)).await;
        if slack() == 1 {
            break;
        }
    }
    assert_eq!(slack(), 1);
}

/// What a child has that this thread starts.
async fn childs_slack() -> u32 {
    let output = Command::new("cat").arg("/proc/self/timerslack_ns").output().await.unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

#[test]
fn block_on_restores_the_slack_of_its_thread() {
    let runtime = Builder::new_current_thread().build().unwrap();
    let before = default_slack();
    runtime.block_on(wait_for_a_timer());
    assert_eq!(slack(), before);
}

#[test]
fn a_child_has_the_slack_of_before() {
    let before = default_slack();
    each(move || async move {
        for _ in 0..3 {
            sleep(Duration::from_millis(1)).await;
            assert_eq!(childs_slack().await, before);
        }
    });
}

/// Also if the child could not be started.
#[test]
fn who_starts_a_child_keeps_its_own_slack() {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        wait_for_a_timer().await;
        Command::new("true").spawn().unwrap();
        assert_eq!(slack(), 1);
        assert!(Command::new("/no/such/program").spawn().is_err());
        assert_eq!(slack(), 1);
        let mut command = Command::new("true");
        // SAFETY: the closure makes a number and nothing else.
        unsafe { command.pre_exec(|| Err(io::Error::from_raw_os_error(libc::EDOM))) };
        assert!(command.spawn().is_err());
        assert_eq!(slack(), 1);
    });
}

#[test]
fn threads_that_a_worker_starts_have_the_slack_of_before() {
    let before = default_slack();
    each(move || async move {
        sleep(Duration::from_millis(1)).await;
        assert_eq!(bounded(spawn_blocking(slack)).await.unwrap(), before);
        // A runtime's own workers, which remember it.
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let child = runtime.spawn(async {
            wait_for_a_timer().await;
            (slack(), childs_slack().await)
        });
        assert_eq!(bounded(child).await.unwrap(), (1, before));
        runtime.shutdown_background();
        let pool = volt::pool::Builder::new().threads(1).build().unwrap();
        let (tell, told) = volt::sync::oneshot::channel();
        pool.spawn(move || tell.send(slack()).unwrap());
        assert_eq!(bounded(told).await.unwrap(), before);
    });
}

/// A thread that went on as a worker for one that blocks, and is one of the blocking pool again.
#[test]
fn a_thread_that_was_lent_as_a_worker_gets_its_slack_back() {
    let before = default_slack();
    let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    runtime.block_on(async {
        for _ in 0..20 {
            let task = volt::spawn(async {
                sleep(Duration::from_millis(1)).await;
                block_in_place(|| ());
                yield_now().await;
            });
            bounded(task).await.unwrap();
        }
        let wait = || {
            let slack = slack();
            std::thread::sleep(Duration::from_millis(20));
            slack
        };
        let threads: Vec<_> = (0..8).map(|_| spawn_blocking(wait)).collect();
        for thread in threads {
            assert_eq!(bounded(thread).await.unwrap(), before);
        }
    });
}
