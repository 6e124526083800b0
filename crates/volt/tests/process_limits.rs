//! Children when the process has no descriptor left. In a test binary of its own, since the limit is the process's.
#![cfg(target_os = "linux")]

#[path = "support/limits.rs"]
mod limits;
#[path = "support/net.rs"]
mod support;

use std::fs::File;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::time::Duration;

use limits::limit;
use support::{bounded, runtimes};
use volt::process::Command;

/// How many of 300 quick tasks run on this thread, while its own future waits for a child beside them.
async fn run_here() -> usize {
    let here = std::thread::current().id();
    let place = || volt::spawn(async { std::thread::current().id() });
    for _ in 0..300 {
        place().await.unwrap();
    }
    let mut child = Command::new("sleep").arg("100").kill_on_drop(true).spawn().unwrap();
    let mut waits = pin!(child.wait());
    let mut count = 0;
    for _ in 0..300 {
        let mut task = place();
        let place = poll_fn(|cx| {
            assert!(waits.as_mut().poll(cx).is_pending());
            Pin::new(&mut task).poll(cx)
        });
        count += usize::from(place.await.unwrap() == here);
    }
    count
}

/// True if a thread looks at children again and again.
fn looks_again() -> bool {
    let mut threads = std::fs::read_dir("/proc/self/task").unwrap();
    threads.any(|thread| {
        let name = std::fs::read_to_string(thread.unwrap().path().join("comm"));
        name.is_ok_and(|name| name.trim() == "volt-children")
    })
}

#[test]
fn a_child_is_started_and_waited_for_without_a_descriptor() {
    let runtimes = runtimes();
    let new = || volt::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (gone, runtime) = (new(), new());
    let busy = volt::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let early = ["0.3", "100"].map(|time| {
        let mut command = Command::new("sleep");
        gone.block_on(async { command.arg(time).spawn().unwrap() })
    });
    limit(libc::RLIMIT_NOFILE, 64);
    let mut all: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    for each in runtimes {
        each.block_on(async {
            let mut child = Command::new("sleep").arg("0.05").spawn().unwrap();
            // A task, as a poll of its own would find the end without any sign of it.
            let waiting = volt::spawn(async move { child.wait().await });
            assert!(bounded(waiting).await.unwrap().unwrap().success());
            // One that is dropped leaves no zombie.
            let id = Command::new("true").spawn().unwrap().id().unwrap();
            let zombie = || std::path::Path::new(&format!("/proc/{id}")).exists();
            bounded(async {
                while zombie() {
                    volt::time::sleep(Duration::from_millis(5)).await;
                }
            })
            .await;
        });
    }
    all.extend(std::iter::from_fn(|| File::open("/dev/null").ok()));
    // Its runtime goes, and another one's task waits.
    let (own, other) = (gone, runtime);
    let mut child = own.block_on(async { Command::new("sleep").arg("0.1").spawn().unwrap() });
    drop(own);
    let waiting = other.spawn(async move { child.wait().await });
    assert!(other.block_on(bounded(waiting)).unwrap().unwrap().success());
    all.extend(std::iter::from_fn(|| File::open("/dev/null").ok()));
    let count = busy.block_on(run_here());
    assert!(count < 100, "{count} tasks ran where they could delay who waits for the child");
    // Nobody has the descriptors to hear of these, but they are looked at.
    let ids = early.each_ref().map(|child| child.id().unwrap());
    drop(early);
    all.extend(std::iter::from_fn(|| File::open("/dev/null").ok()));
    let is_there = |id| std::path::Path::new(&format!("/proc/{id}")).exists();
    let rest = || volt::time::sleep(Duration::from_millis(5));
    other.block_on(bounded(async {
        while is_there(ids[0]) {
            rest().await;
        }
    }));
    assert!(is_there(ids[1]));
    // With what is needed for a sign, there is one.
    all.truncate(all.len() - 8);
    volt::run(async {
        assert!(Command::new("true").status().await.unwrap().success());
    });
    all.truncate(all.len() - 8);
    other.block_on(bounded(async {
        while looks_again() {
            rest().await;
        }
        assert!(
            std::process::Command::new("kill").arg(ids[1].to_string()).status().unwrap().success()
        );
        while is_there(ids[1]) {
            rest().await;
        }
    }));
}
