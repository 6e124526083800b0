//! Child processes and signals, on both flavours, in `block_on` and on workers.
#![cfg(unix)]

#[path = "support/net.rs"]
mod support;

use std::future::{Future, poll_fn};
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::Stdio;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use volt::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use volt::process::Command;
use volt::runtime::Builder;
use volt::signal::ctrl_c;
use volt::signal::unix::{SignalKind, signal};
use volt::time::{sleep, timeout};

use support::{alone, each, stays_pending};

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// True while the process is there, zombies included.
fn exists(id: u32) -> bool {
    std::path::Path::new(&format!("/proc/{id}")).exists()
}

/// Waits until the child has ended, and leaves its status to others.
fn wait_for_end(id: u32) {
    // SAFETY: the information is plain data, for which zeros are valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: writes to a variable of ours.
    let _ = unsafe { libc::waitid(libc::P_PID, id, &raw mut info, libc::WEXITED | libc::WNOWAIT) };
}

#[test]
fn the_status_is_the_childs_and_stays() {
    each(|| async {
        assert!(Command::new("true").status().await.unwrap().success());
        let mut child = shell("exit 3").spawn().unwrap();
        assert!(child.id().is_some());
        assert_eq!(child.wait().await.unwrap().code(), Some(3));
        assert_eq!(child.wait().await.unwrap().code(), Some(3));
        assert_eq!(child.try_wait().unwrap().unwrap().code(), Some(3));
        assert_eq!(child.id(), None);
        child.start_kill().unwrap();
        child.kill().await.unwrap();
        assert!(Command::new("/no/such/program").spawn().is_err());
    });
}

#[test]
fn output_larger_than_a_pipe_is_read_while_waiting() {
    each(|| async {
        let script = "head -c 300000 /dev/zero; head -c 200000 /dev/zero >&2; exit 1";
        let output = shell(script).output().await.unwrap();
        assert_eq!((output.stdout.len(), output.stderr.len()), (300_000, 200_000));
        assert_eq!(output.status.code(), Some(1));
    });
}

#[test]
fn a_child_is_talked_to_through_its_pipes() {
    each(|| async {
        let mut cat = Command::new("cat");
        let mut child = cat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for number in 0..100 {
            stdin.write_all(format!("{number}\n").as_bytes()).await.unwrap();
            assert_eq!(lines.next_line().await.unwrap().unwrap(), number.to_string());
        }
        stdin.shutdown().await.unwrap();
        assert!(stdin.write_all(b"x").await.is_err());
        assert_eq!(lines.next_line().await.unwrap(), None);
        assert!(child.wait().await.unwrap().success());
    });
}

#[test]
fn one_childs_output_is_anothers_input() {
    each(|| async {
        let mut first = shell("echo through both").stdout(Stdio::piped()).spawn().unwrap();
        let pipe: Stdio = first.stdout.take().unwrap().try_into().unwrap();
        let output = Command::new("cat").stdin(pipe).output().await.unwrap();
        assert_eq!(output.stdout, b"through both\n");
        assert!(first.wait().await.unwrap().success());
    });
}

#[test]
fn waiting_can_be_cancelled_and_the_child_killed() {
    each(|| async {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        assert!(timeout(Duration::from_millis(20), child.wait()).await.is_err());
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().await.unwrap();
        assert_eq!(child.wait().await.unwrap().signal(), Some(9));
    });
}

#[test]
fn a_dropped_child_goes_on_unless_told_otherwise_and_leaves_no_zombie() {
    each(|| async {
        let child = Command::new("sleep").arg("100").kill_on_drop(true).spawn().unwrap();
        let killed = child.id().unwrap();
        drop(child);
        let mut going = shell("read line").stdin(Stdio::piped()).spawn().unwrap();
        let (id, stdin) = (going.id().unwrap(), going.stdin.take().unwrap());
        drop(going);
        while exists(killed) {
            sleep(Duration::from_millis(5)).await;
        }
        assert!(exists(id), "it still waits for its line");
        drop(stdin);
        while exists(id) {
            sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn a_child_that_outlives_its_runtime_is_reaped_by_the_next_use() {
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let id = runtime().block_on(async {
        let child = Command::new("sleep").arg("0.1").spawn().unwrap();
        child.id().unwrap()
    });
    wait_for_end(id);
    runtime().block_on(async { Command::new("true").status().await.unwrap() });
    assert!(!exists(id));
}

/// A signal would go to whoever has its number by then.
#[test]
fn a_child_whose_status_somebody_else_has_taken_is_not_killed() {
    each(|| async {
        let mut child = Command::new("true").spawn().unwrap();
        let id = child.id().unwrap().try_into().unwrap();
        // SAFETY: the call takes numbers, and writes nowhere.
        assert_eq!(unsafe { libc::waitpid(id, std::ptr::null_mut(), 0) }, id);
        child.start_kill().unwrap();
        let error = child.wait().await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ECHILD));
        child.start_kill().unwrap();

        // The look before the kill notices the end, and so the number is not told any more.
        let mut child = Command::new("true").spawn().unwrap();
        wait_for_end(child.id().unwrap());
        child.start_kill().unwrap();
        assert_eq!(child.id(), None);
        assert!(child.wait().await.unwrap().success());
    });
}

#[test]
fn every_listener_of_a_signal_hears_it() {
    let _alone = alone();
    each(|| async {
        let mut one = signal(SignalKind::user_defined1()).unwrap();
        let mut two = signal(SignalKind::user_defined1()).unwrap();
        let mut other = signal(SignalKind::user_defined2()).unwrap();
        let id = std::process::id().to_string();
        for _ in 0..3 {
            Command::new("kill").args(["-USR1", &id]).status().await.unwrap();
            assert_eq!(one.recv().await, Some(()));
            assert_eq!(two.recv().await, Some(()));
        }
        assert!(timeout(Duration::from_millis(20), other.recv()).await.is_err());
        drop(one);
        Command::new("kill").args(["-USR1", &id]).status().await.unwrap();
        assert_eq!(two.recv().await, Some(()));
    });
}

/// Sends this process a signal, which is caught.
fn raise(kind: SignalKind) {
    // SAFETY: the signal has a handler by now, so it runs that and nothing else.
    assert_eq!(unsafe { libc::raise(kind.as_raw_value()) }, 0);
}

#[test]
fn signals_are_polled_and_those_before_a_look_count_once() {
    let _alone = alone();
    each(|| async {
        let mut alarms = signal(SignalKind::alarm()).unwrap();
        assert!(poll_fn(|cx| std::task::Poll::Ready(alarms.poll_recv(cx).is_pending())).await);
        for _ in 0..10 {
            raise(SignalKind::alarm());
        }
        sleep(Duration::from_millis(5)).await; // So that it has heard of all.
        assert_eq!(poll_fn(|cx| alarms.poll_recv(cx)).await, Some(()));
        assert!(stays_pending(poll_fn(|cx| alarms.poll_recv(cx))).await);
        // Woken, not only found: the signal comes while the task waits.
        let waiting = volt::spawn(async move { poll_fn(|cx| alarms.poll_recv(cx)).await });
        sleep(Duration::from_millis(5)).await;
        raise(SignalKind::alarm());
        assert_eq!(waiting.await.unwrap(), Some(()));
    });
}

#[test]
fn a_signals_stream_goes_on_in_another_runtime() {
    let _alone = alone();
    for runtime in support::runtimes() {
        let other = Builder::new_current_thread().enable_all().build().unwrap();
        let guard = runtime.enter();
        let mut ready = signal(SignalKind::io()).unwrap();
        drop(guard);
        // It waits there, and is told that there is nobody any more who would tell it.
        let waiting = other.spawn(async move {
            ready.recv().await.unwrap();
            ready
        });
        other.block_on(async { sleep(Duration::from_millis(1)).await });
        drop(runtime);
        other.block_on(async { sleep(Duration::from_millis(1)).await });
        assert!(!waiting.is_finished());
        raise(SignalKind::io());
        let mut ready = other.block_on(support::bounded(waiting)).unwrap();
        drop(other);
        // Nobody hears it, but it is not lost.
        raise(SignalKind::io());
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(ready.poll_recv(&mut cx), Poll::Ready(None));
        let next = Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(next.block_on(support::bounded(ready.recv())), Some(()));
    }
}

#[test]
fn signals_that_cannot_be_caught_are_refused_by_name() {
    let _alone = alone();
    each(|| async {
        for number in [-1, 0, 9, 19] {
            let error = signal(SignalKind::from_raw(number)).unwrap_err();
            assert!(error.to_string().contains(&number.to_string()), "{error}");
        }
        assert!(signal(SignalKind::from_raw(10_000)).is_err());
    });
}

#[test]
fn outside_a_runtime_no_child_is_started_and_the_panic_names_the_call() {
    fn message(call: impl FnOnce() + std::panic::UnwindSafe) -> String {
        *std::panic::catch_unwind(call).unwrap_err().downcast::<String>().unwrap()
    }
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("started");
    let mut command = shell("mkdir \"$MARK\"");
    command.env("MARK", &mark);
    let spawned = message(std::panic::AssertUnwindSafe(|| drop(command.spawn())));
    assert!(spawned.starts_with("`Command::spawn` needs a Volt runtime"), "{spawned}");
    let waited = message(std::panic::AssertUnwindSafe(|| drop(command.status())));
    assert!(waited.starts_with("`Command::status` needs a Volt runtime"), "{waited}");
    let read = message(std::panic::AssertUnwindSafe(|| drop(command.output())));
    assert!(read.starts_with("`Command::output` needs a Volt runtime"), "{read}");
    let listened = message(|| drop(signal(SignalKind::hangup())));
    assert!(listened.starts_with("`signal` needs a Volt runtime"), "{listened}");
    let pressed = message(|| {
        let _ = pin!(ctrl_c()).poll(&mut Context::from_waker(Waker::noop()));
    });
    assert!(pressed.starts_with("`signal::ctrl_c` needs a Volt runtime"), "{pressed}");
    // Long enough for a child to get there.
    std::thread::sleep(Duration::from_millis(50));
    assert!(!mark.exists());
}

#[test]
fn the_standard_output_of_a_child_that_uses_volt() {
    if std::env::var_os("VOLT_TEST_CHILD").is_some() {
        volt::run(async {
            let mut text = String::new();
            volt::io::stdin().read_to_string(&mut text).await.unwrap();
            let mut out = volt::io::stdout();
            out.write_all(format!("<{text}>").as_bytes()).await.unwrap();
            out.flush().await.unwrap();
            let mut err = volt::io::stderr();
            err.write_all(b"[done]").await.unwrap();
            err.flush().await.unwrap();
        });
        return;
    }
    each(|| async {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "the_standard_output_of_a_child_that_uses_volt", "--nocapture"]);
        command.env("VOLT_TEST_CHILD", "1").stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"echo").await.unwrap();
        let output = child.wait_with_output().await.unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("<echo>"));
        assert!(String::from_utf8_lossy(&output.stderr).contains("[done]"));
    });
}

/// The one that ends may do so at any time of a poll.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test")]
fn a_signals_stream_does_not_end_while_it_goes_over_to_another_runtime() {
    let _alone = alone();
    for _ in 0..100 {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let guard = runtime.enter();
        let mut ready = signal(SignalKind::io()).unwrap();
        drop(guard);
        let other = Builder::new_current_thread().enable_all().build().unwrap();
        let _other = other.enter();
        let ends = std::thread::spawn(move || drop(runtime));
        let mut cx = Context::from_waker(Waker::noop());
        while !ends.is_finished() {
            assert_ne!(ready.poll_recv(&mut cx), Poll::Ready(None));
        }
        ends.join().unwrap();
    }
}
