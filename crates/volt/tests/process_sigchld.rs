//! Children on a kernel without pidfds, as before Linux 5.3: their ends are noticed by SIGCHLD. A filter
//! on the system calls of this test's threads makes `pidfd_open` fail as it does there.
#![cfg(target_os = "linux")]

#[path = "support/net.rs"]
mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use volt::process::Command;
use volt::time::timeout;

use support::each;

/// From here on `pidfd_open` fails with ENOSYS, in this thread and in those that it starts.
fn without_pidfds() {
    let number = u32::try_from(libc::SYS_pidfd_open).unwrap();
    let filter = |code: u32, on_true, on_false, k| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt: on_true,
        jf: on_false,
        k,
    };
    let mut program = [
        // The number of the call is the first field of what the filter sees.
        filter(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        filter(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number),
        filter(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | u32::try_from(libc::ENOSYS).unwrap(),
        ),
        filter(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program =
        libc::sock_fprog { len: program.len().try_into().unwrap(), filter: program.as_mut_ptr() };
    // SAFETY: this option takes numbers only. What it forbids are privileges through `exec`.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    // SAFETY: the program is alive during the call, which copies it, and its length is right.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the call takes two integers and touches no memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, std::process::id(), 0) };
    assert_eq!(fd, -1);
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOSYS));
}

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
