//! Children whose end is hard to see: another process traces them, or the runtime that started them is gone.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    reason = "the tracer starts a thread, and is waited for by one"
)]

#[path = "support/limits.rs"]
mod limits;
#[path = "support/net.rs"]
mod support;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdin, Stdio};
use std::time::Duration;

use volt::process::{Child, Command};
use volt::runtime::{Builder, Runtime};
use volt::task::unconstrained;
use volt::time::timeout;

use limits::limit;
use support::{bounded, runtimes};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// What the tracer says when the system does not let it trace.
const REFUSED: &str = "refused";

/// The tracer, in a process of its own: traces the process of this number until its input ends.
fn trace(process: libc::pid_t) {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: this request of `ptrace` takes a number and two nulls, and touches no memory of ours.
    let traced = unsafe { libc::ptrace(libc::PTRACE_SEIZE, process, none, none) };
    println!("\n{}", if traced == 0 { "traces" } else { REFUSED });
    // Not for ever, should the test hang.
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(20));
        std::process::exit(1);
    });
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
}

/// Has another process trace `child` until the result is dropped. `None` if the system does not allow it.
fn traced(child: &Child) -> Option<ChildStdin> {
    let mut tracer = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "a_traced_child_that_has_ended_is_waited_for_without_work",
            "--nocapture",
        ])
        .env("VOLT_TEST_TRACE", child.id().unwrap().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(tracer.stdout.take().unwrap()).lines().map(Result::unwrap);
    let answer = lines.find(|line| line == "traces" || line == REFUSED).unwrap();
    let input = tracer.stdin.take();
    std::thread::spawn(move || tracer.wait());
    if answer == REFUSED { None } else { input }
}

/// The time that this thread has used a processor.
fn used() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to `time`, which has room for it.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// A child that was killed, and who traces it.
async fn killed_and_traced() -> Option<(Child, ChildStdin)> {
    let mut command = Command::new("sleep");
    command.arg("100").kill_on_drop(true);
    let allow = || {
        // SAFETY: it takes numbers and touches no memory. Some systems trace only what allows it.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY) };
        Ok(())
    };
    // SAFETY: `prctl` is async-signal-safe.
    unsafe { command.pre_exec(allow) };
    let mut child = command.spawn().unwrap();
    let Some(tracer) = traced(&child) else {
        eprintln!("not tested: no process may trace another here");
        return None;
    };
    child.start_kill().unwrap();
    Some((child, tracer))
}

const LIMIT: Duration = Duration::from_millis(300);

/// Its pidfd is readable from the end on, but its status is the tracer's first.
#[test]
fn a_traced_child_that_has_ended_is_waited_for_without_work() {
    if let Ok(process) = std::env::var("VOLT_TEST_TRACE") {
        trace(process.parse().unwrap());
    }
    runtime().block_on(bounded(async {
        let Some((mut child, tracer)) = killed_and_traced().await else { return };
        let before = used();
        assert!(timeout(LIMIT, child.wait()).await.is_err(), "the tracer has not looked yet");
        let work = used() - before;
        assert!(work < LIMIT / 3, "a wait of {LIMIT:?} took {work:?} of a processor");
        // Not by the budget alone.
        assert!(timeout(LIMIT, unconstrained(child.wait())).await.is_err());
        drop(tracer);
        assert_eq!(child.wait().await.unwrap().signal(), Some(libc::SIGKILL));
    }));
}

/// No descriptor for a sign, nor a thread that rests: whoever waits does so in its stead, and looks seldom.
#[test]
fn a_child_is_waited_for_without_work_if_there_is_no_thread() {
    const ONLY: &str = "VOLT_TEST_NO_THREAD";
    if std::env::var_os(ONLY).is_none() {
        let test = std::thread::current().name().unwrap().to_owned();
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &test, "--test-threads=1", "--nocapture"])
            // A stack that no machine has room for.
            .envs([(ONLY, "1"), ("RUST_MIN_STACK", "72057594037927936")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    assert!(std::thread::Builder::new().spawn(|| ()).is_err());
    runtime().block_on(async {
        limit(libc::RLIMIT_NOFILE, 32);
        let _all: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
        let mut child = Command::new("sleep").arg("0.3").spawn().unwrap();
        let waiting = volt::spawn(async move { child.wait().await });
        let before = used();
        assert!(bounded(waiting).await.unwrap().unwrap().success());
        let work = used() - before;
        assert!(work < LIMIT / 3, "a wait of {LIMIT:?} took {work:?} of a processor");
    });
}

/// Nor does a clock that stands, and would advance while nothing else is to be done.
#[test]
fn a_traced_child_does_not_move_a_paused_clock() {
    let paused = Builder::new_current_thread().start_paused(true).build().unwrap();
    paused.block_on(async {
        let Some((mut child, tracer)) = killed_and_traced().await else { return };
        let start = volt::time::Instant::now();
        let waiting = volt::spawn(async move { child.wait().await });
        let (before, tell) = (
            used(),
            volt::task::spawn_blocking(move || {
                std::thread::sleep(LIMIT);
                drop(tracer);
            }),
        );
        tell.await.unwrap();
        let work = used() - before;
        assert!(work < LIMIT / 3, "a wait of {LIMIT:?} took {work:?} of a processor");
        assert_eq!(waiting.await.unwrap().unwrap().signal(), Some(libc::SIGKILL));
        assert_eq!(start.elapsed(), Duration::ZERO);
    });
}

/// The system says a second time that it has ended: nobody looks in between.
#[test]
fn a_traced_child_that_is_dropped_leaves_no_zombie() {
    runtime().block_on(bounded(async {
        let Some((child, tracer)) = killed_and_traced().await else { return };
        let id = child.id().unwrap();
        drop(child);
        volt::time::sleep(LIMIT / 3).await;
        assert!(is_there(id), "the tracer has not looked yet");
        let before = used();
        volt::time::sleep(LIMIT).await;
        assert!(used() - before < LIMIT / 30);
        drop(tracer);
        while is_there(id) {
            volt::time::sleep(LIMIT / 300).await;
        }
    }));
}

/// Whoever waits goes on elsewhere, and does not panic.
#[test]
fn a_traced_child_is_waited_for_when_its_runtime_goes() {
    for own in runtimes() {
        let Some((mut child, tracer)) = own.block_on(killed_and_traced()) else { return };
        let other = runtime();
        let waiting = other.spawn(async move { child.wait().await });
        // It waits for the tracer, by its own runtime, and then without it.
        other.block_on(async { volt::time::sleep(LIMIT / 10).await });
        drop(own);
        other.block_on(async { volt::time::sleep(LIMIT / 10).await });
        drop(tracer);
        let status = other.block_on(bounded(waiting)).unwrap().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGKILL));
    }
}

#[test]
fn a_child_is_waited_for_in_another_runtime_when_its_own_is_gone() {
    for own in runtimes() {
        let mut ends = own.block_on(async { Command::new("sleep").arg("0.05").spawn().unwrap() });
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped());
        let mut stays = own.block_on(async { command.spawn().unwrap() });
        let input = stays.stdin.take().unwrap();
        let other = runtime();
        // Goes while it is waited for.
        let waiting = other.spawn(async move { (stays.wait().await.unwrap(), stays) });
        other.block_on(volt::task::yield_now());
        drop(own);
        other.block_on(bounded(async {
            // A task, as a poll of its own would find the end without any sign of it.
            let ended = volt::spawn(async move { ends.wait().await });
            assert!(ended.await.unwrap().unwrap().success());
            drop(input);
            let (status, mut stays) = waiting.await.unwrap();
            assert!(status.success());
            assert_eq!(stays.wait().await.unwrap(), status);
        }));
    }
}

/// True while there is a process of this number that has not been waited for.
fn is_there(id: u32) -> bool {
    std::fs::exists(format!("/proc/{id}")).unwrap()
}

/// In the context of a runtime that nobody drives, no task collects its status: the next use of the module does.
#[test]
fn a_child_that_is_dropped_beside_a_runtime_that_nobody_drives_leaves_no_zombie() {
    let idle = runtime();
    for own in runtimes() {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped());
        let mut child = own.block_on(async { command.spawn().unwrap() });
        let (id, input) = (child.id().unwrap(), child.stdin.take());
        {
            let _context = idle.enter();
            drop(child);
        }
        drop(input);
        own.block_on(bounded(async {
            while is_there(id) {
                assert!(Command::new("true").status().await.unwrap().success());
            }
        }));
    }
    // The tasks that it has got by now find that their children are gone.
    idle.block_on(async { volt::time::sleep(LIMIT / 30).await });
    assert_eq!(idle.metrics().num_alive_tasks(), 0);
}

/// A task does it as soon as the child has ended, also if the runtime that started it is gone.
#[test]
fn a_dropped_child_is_collected_without_another_use_of_the_module() {
    for own in runtimes() {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped());
        let mut children: Vec<_> =
            (0..3).map(|_| own.block_on(async { command.spawn().unwrap() })).collect();
        let ids: Vec<_> = children.iter().map(|child| child.id().unwrap()).collect();
        let mut inputs: Vec<_> = children.iter_mut().map(|child| child.stdin.take()).collect();
        let other = runtime();
        {
            let _context = other.enter();
            children.clear();
        }
        drop(own);
        // In another order than they were dropped in.
        for at in [1, 0, 2] {
            inputs[at] = None;
            other.block_on(bounded(async {
                while is_there(ids[at]) {
                    volt::time::sleep(LIMIT / 300).await;
                }
            }));
            assert_eq!(
                ids.iter().filter(|id| is_there(**id)).count(),
                inputs.iter().flatten().count()
            );
        }
    }
}
