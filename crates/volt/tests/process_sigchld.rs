//! Children on a kernel without pidfds, as before Linux 5.3: their ends are noticed by SIGCHLD. A filter
//! on the system calls of this test's threads makes `pidfd_open` fail as it does there.
#![cfg(target_os = "linux")]

#[path = "support/pidfds.rs"]
mod pidfds;
#[path = "support/net.rs"]
mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use volt::process::Command;
use volt::time::timeout;

use pidfds::without_pidfds;
use support::each;

/// True while the process is there, zombies included.
fn exists(id: u32) -> bool {
    std::path::Path::new(&format!("/proc/{id}")).exists()
}

#[test]
fn ends_are_noticed_without_pidfds() {
    without_pidfds();
    each(|| async {
        assert!(Command::new("true").status().await.unwrap().success());
        let output = Command::new("echo").arg("hello").output().await.unwrap();
        assert_eq!(output.stdout, b"hello\n");

        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        assert!(timeout(Duration::from_millis(5), child.wait()).await.is_err());
        drop(stdin);
        assert!(child.wait().await.unwrap().success());
        assert!(child.wait().await.unwrap().success());
    });
}

/// One SIGCHLD may stand for several ends, and each end wakes all who wait.
#[test]
fn many_ends_at_once_are_all_noticed() {
    without_pidfds();
    each(|| async {
        let (mut tasks, mut inputs) = (volt::task::JoinSet::new(), Vec::new());
        let (mut killed, mut cat) = (Command::new("sleep"), Command::new("cat"));
        let mut killed = killed.arg("100").spawn().unwrap();
        for _ in 0..12 {
            let mut child = cat.stdin(Stdio::piped()).spawn().unwrap();
            inputs.push(child.stdin.take());
            tasks.spawn(async move { child.wait().await.unwrap().code() });
        }
        drop(inputs);
        while let Some(code) = tasks.join_next().await {
            assert_eq!(code.unwrap(), Some(0));
        }
        assert_eq!(killed.try_wait().unwrap(), None);
        killed.start_kill().unwrap();
        assert_eq!(killed.wait().await.unwrap().signal(), Some(libc::SIGKILL));
    });
}

#[test]
fn dropped_children_leave_no_zombie() {
    without_pidfds();
    each(|| async {
        let child = Command::new("sleep").arg("100").kill_on_drop(true).spawn().unwrap();
        let id = child.id().unwrap();
        drop(child);
        while exists(id) {
            volt::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn a_child_is_waited_for_in_another_runtime_without_pidfds() {
    without_pidfds();
    for own in support::runtimes() {
        let mut child = own.block_on(async { Command::new("sleep").arg("0.05").spawn().unwrap() });
        drop(own);
        let other = volt::runtime::Builder::new_current_thread().build().unwrap();
        // A task, as a poll of its own would find the end without any sign of it.
        let waiting = other.spawn(async move { child.wait().await });
        assert!(other.block_on(support::bounded(waiting)).unwrap().unwrap().success());
    }
}
