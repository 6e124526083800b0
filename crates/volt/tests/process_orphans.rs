//! Children that were dropped while they ran, and whose own runtime is not the one that goes on: any runtime that runs
//! collects their status, whether the kernel has pidfds or not.
//!
//! One test at a time, since a runtime of another one would do as well.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "threads that are no runtime's")]

#[path = "support/pidfds.rs"]
mod pidfds;
#[path = "support/net.rs"]
mod support;

use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use volt::process::{Child, Command};
use volt::runtime::{Builder, Runtime};
use volt::signal::unix::{SignalKind, signal};

use pidfds::without_pidfds;
use support::runtimes;

const MOMENT: Duration = Duration::from_millis(5);

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Two workers, one of which waits for events while there is nothing to do.
fn multi_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Runs `test` on a thread of its own with pidfds and on one without, and on no other at the same time. Fails if it hangs.
fn each_way(test: fn()) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let failed: Vec<_> =
        [true, false].into_iter().filter(|pidfds| !passes(test, *pidfds)).collect();
    assert!(failed.is_empty(), "it failed with pidfds: {failed:?}");
}

fn passes(test: fn(), pidfds: bool) -> bool {
    let (done, ended) = channel();
    let runs = thread::spawn(move || {
        if !pidfds {
            without_pidfds();
        }
        test();
        done.send(()).unwrap();
    });
    match ended.recv_timeout(Duration::from_secs(60)) {
        Err(RecvTimeoutError::Timeout) => false,
        _ => runs.join().is_ok(),
    }
}

/// A child that ends when its input does.
fn cat(runtime: &Runtime) -> (Child, u32, ChildStdin) {
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped());
    let mut child = runtime.block_on(async { command.spawn().unwrap() });
    let input = child.stdin.take().unwrap();
    let input = runtime.block_on(async { input.into_owned_fd().unwrap() });
    let id = child.id().unwrap();
    (child, id, input.into())
}

/// True while there is a process of this number that has not been waited for.
fn is_there(id: u32) -> bool {
    std::fs::exists(format!("/proc/{id}")).unwrap()
}

/// Returns when there is none any more. Uses no runtime.
fn wait_until_gone(id: u32) {
    let start = Instant::now();
    while is_there(id) {
        assert!(start.elapsed() < Duration::from_secs(10), "its status is not collected");
        thread::sleep(MOMENT / 5);
    }
}

/// Drives `runtime` until there is none any more.
fn drive_until_gone(runtime: &Runtime, id: u32) {
    runtime.block_on(async {
        let start = Instant::now();
        while is_there(id) {
            assert!(start.elapsed() < Duration::from_secs(10), "its status is not collected");
            volt::time::sleep(MOMENT / 5).await;
        }
    });
}

#[test]
fn a_child_is_collected_where_it_is_dropped_if_its_own_runtime_is_not_driven() {
    each_way(|| {
        for own in runtimes() {
            for other in runtimes() {
                let (child, id, input) = cat(&own);
                other.block_on(async move { drop(child) });
                // One that has ended before anybody looks, too.
                drop(input);
                drive_until_gone(&other, id);
            }
        }
    });
}

#[test]
fn a_child_that_is_dropped_outside_of_runtimes_is_collected_by_one_that_runs() {
    each_way(|| {
        let (own, idle) = (current_thread(), multi_thread());
        for _ in 0..3 {
            let (child, id, input) = cat(&own);
            drop(child);
            thread::sleep(MOMENT);
            drop(input);
            wait_until_gone(id);
        }
        drop(idle);
    });
}

#[test]
fn a_child_that_goes_with_its_runtime_is_collected_by_another_one() {
    each_way(|| {
        let idle = multi_thread();
        for own in runtimes() {
            let mut command = Command::new("sleep");
            command.arg("100").kill_on_drop(true);
            let mut child = own.block_on(async { command.spawn().unwrap() });
            let id = child.id().unwrap();
            own.spawn(async move { child.wait().await });
            own.block_on(volt::task::yield_now());
            drop(own);
            wait_until_gone(id);
        }
        drop(idle);
    });
}

#[test]
fn a_child_is_collected_by_another_runtime_if_the_one_where_it_is_dropped_is_driven_no_more() {
    each_way(|| {
        let (own, other) = (current_thread(), current_thread());
        let (child, id, input) = cat(&own);
        own.block_on(async {
            drop(child);
            volt::time::sleep(MOMENT).await;
        });
        drop(input);
        drive_until_gone(&other, id);
        assert_eq!(own.metrics().num_alive_tasks(), 0);
    });
}

#[test]
fn a_child_that_is_dropped_while_there_is_no_runtime_is_collected_by_the_next_one() {
    each_way(|| {
        for ended in [false, true] {
            let own = current_thread();
            let (child, id, input) = cat(&own);
            drop(own);
            drop(child);
            let input = Some(input).filter(|_| !ended);
            thread::sleep(MOMENT);
            let next = multi_thread();
            thread::sleep(MOMENT);
            drop(input);
            wait_until_gone(id);
            drop(next);
        }
    });
}

/// How many descriptors the process has.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// True if a thread looks at children again and again.
fn has_thread() -> bool {
    let mut threads = std::fs::read_dir("/proc/self/task").unwrap();
    threads.any(|thread| {
        let name = std::fs::read_to_string(thread.unwrap().path().join("comm"));
        name.is_ok_and(|name| name.trim() == "volt-children")
    })
}

/// In any order, and those that go on are left alone. Nothing stays behind, and no thread is needed.
#[test]
fn each_of_many_is_collected_when_it_ends() {
    each_way(|| {
        let (own, idle) = (current_thread(), multi_thread());
        own.block_on(async { Command::new("true").status().await.unwrap() });
        drop(cat(&own));
        thread::sleep(10 * MOMENT);
        let before = descriptors();
        let mut children: Vec<_> = (0..40).map(|_| cat(&own)).collect();
        let (mut dropped, mut inputs) = (Vec::new(), Vec::new());
        for (child, id, input) in children.drain(..) {
            dropped.push(child);
            inputs.push((id, Some(input)));
        }
        drop(dropped);
        for start in [1, 0, 2] {
            for (id, input) in inputs.iter_mut().skip(start).step_by(3) {
                drop(input.take());
                wait_until_gone(*id);
            }
            let alive = inputs.iter().filter(|(id, _)| is_there(*id)).count();
            assert_eq!(alive, inputs.iter().filter(|(_, input)| input.is_some()).count());
            assert!(!has_thread());
        }
        let start = Instant::now();
        while descriptors() > before {
            assert!(start.elapsed() < Duration::from_secs(10), "descriptors stay open");
            thread::sleep(MOMENT);
        }
        drop(idle);
    });
}

/// Its number may be another's by then: it is not waited for again, and forgotten.
#[test]
fn a_child_whose_status_somebody_else_has_taken_is_forgotten() {
    each_way(|| {
        // The first time, the module gets what it keeps.
        let mut before = usize::MAX;
        for stolen in [false, true] {
            let own = current_thread();
            let (child, id, input) = cat(&own);
            drop(own);
            drop(child);
            drop(input);
            let number = id.try_into().unwrap();
            if stolen {
                // SAFETY: the call takes numbers, and writes nowhere.
                assert_eq!(unsafe { libc::waitpid(number, std::ptr::null_mut(), 0) }, number);
            }
            let next = current_thread();
            drive_until_gone(&next, id);
            next.block_on(async { volt::time::sleep(10 * MOMENT).await });
            assert!(!has_thread());
            drop(next);
            assert!(descriptors() <= before);
            before = descriptors();
        }
    });
}

/// Runtimes come and go meanwhile.
#[test]
fn children_that_are_dropped_everywhere_at_once_are_collected() {
    each_way(|| {
        let idle = multi_thread();
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                thread::spawn(move || {
                    let mut ids = Vec::new();
                    for round in 0..support::stress(10) {
                        let own = current_thread();
                        let mut command = Command::new("sleep");
                        command.arg("0.01").kill_on_drop(round % 2 == 0);
                        let children: Vec<_> = (0..3)
                            .map(|_| own.block_on(async { command.spawn().unwrap() }))
                            .collect();
                        ids.extend(children.iter().map(|child| child.id().unwrap()));
                        match (thread + round) % 3 {
                            0 => drop(own.spawn(async move { drop(children) })),
                            1 => drop(children),
                            _ => {
                                let other = multi_thread();
                                other.block_on(async move { drop(children) });
                            }
                        }
                    }
                    ids
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap().into_iter().for_each(wait_until_gone);
        }
        drop(idle);
    });
}

/// Starts and drops a child when it is woken. Under a lock of this module that would wait for itself.
struct Starts {
    context: volt::runtime::Handle,
    woken: Mutex<usize>,
}

impl Wake for Starts {
    fn wake(self: Arc<Self>) {
        *self.woken.lock().unwrap() += 1;
        let _context = self.context.enter();
        drop(Command::new("true").spawn().unwrap());
    }
}

#[test]
fn a_waker_may_start_and_drop_children() {
    each_way(|| {
        let (own, listening) = (current_thread(), current_thread());
        let mut arrivals = listening.block_on(async { signal(SignalKind::child()).unwrap() });
        let (child, id, input) = cat(&own);
        drop(own);
        let starts = Arc::new(Starts { context: listening.handle().clone(), woken: Mutex::new(0) });
        let waker = Waker::from(starts.clone());
        while arrivals.poll_recv(&mut Context::from_waker(&waker)).is_ready() {}
        // A signal comes for it, but nobody drives its runtime.
        assert!(std::process::Command::new("true").status().unwrap().success());
        // The first that listens for signals here, if that is how ends are noticed: so it hears that one.
        let other = current_thread();
        other.block_on(async move {
            drop(child);
            volt::time::sleep(MOMENT).await;
            let _signals = signal(SignalKind::child()).unwrap();
            while *starts.woken.lock().unwrap() == 0 {
                volt::time::sleep(MOMENT).await;
            }
        });
        drop(input);
        drive_until_gone(&other, id);
    });
}

/// A process that was forked has copies of what its parent watches orphans by, and must leave that alone.
#[test]
fn a_forked_process_leaves_its_parents_orphans_alone() {
    if cfg!(any(volt_tsan, volt_asan)) {
        return; // The forked process of many threads may go on with none of theirs, and these have some.
    }
    each_way(|| {
        let runtime = current_thread();
        let (child, id, input) = cat(&runtime);
        drop(child);
        drop(runtime);
        // SAFETY: no other thread holds a lock that the forked process needs: there is none but this one and those of the test
        // harness, which waits.
        let forked = unsafe { libc::fork() };
        if forked == 0 {
            drop(input);
            let runtime = current_thread();
            runtime.block_on(async { volt::time::sleep(4 * MOMENT).await });
            // SAFETY: it ends this process at once.
            unsafe { libc::_exit(0) };
        }
        assert!(forked > 0);
        drop(input);
        // SAFETY: our own child, and no status is asked for.
        assert_eq!(unsafe { libc::waitpid(forked, std::ptr::null_mut(), 0) }, forked);
        drive_until_gone(&current_thread(), id);
    });
}
