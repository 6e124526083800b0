//! Timers whose time has come before anybody looks.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Waker};

use volt::runtime::{Builder, Runtime};
use volt::task::{JoinHandle, spawn_blocking, yield_now};
use volt::time::{Duration, interval, pause, resume, sleep};

const MS: Duration = Duration::from_millis(1);

fn paused<F: Future>(future: F) -> F::Output {
    Builder::new_current_thread().start_paused(true).build().unwrap().block_on(future)
}

/// One with a running clock for each flavour.
fn runtimes() -> [Runtime; 2] {
    let two = Builder::new_multi_thread().worker_threads(2).build();
    [Builder::new_current_thread().build(), two].map(|runtime| runtime.expect("a runtime"))
}

fn is_ready(future: impl Future) -> bool {
    pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// A blocking task that waits until it is told, and whether that was in time.
fn blocking() -> (Sender<()>, JoinHandle<bool>) {
    let (told, tells) = channel();
    (told, spawn_blocking(move || tells.recv_timeout(Duration::from_secs(10)).is_ok()))
}

#[test]
fn a_blocking_task_may_wait_for_a_timer_that_is_due() {
    paused(async {
        let deadline = sleep(5 * MS);
        sleep(10 * MS).await;
        let (told, task) = blocking();
        deadline.await;
        told.send(()).unwrap();
        assert!(task.await.unwrap());
    });
}

#[test]
fn a_blocking_task_may_wait_for_a_tick_that_is_due() {
    paused(async {
        let mut ticks = interval(5 * MS);
        ticks.tick().await;
        sleep(7 * MS).await;
        let (told, task) = blocking();
        ticks.tick().await;
        told.send(()).unwrap();
        assert!(task.await.unwrap());
    });
}

/// Nobody has looked since its time has come.
#[test]
fn a_blocking_task_may_wait_for_a_timer_that_was_due_when_the_clock_was_paused() {
    Builder::new_current_thread().build().unwrap().block_on(async {
        let sleeper = volt::spawn(sleep(10 * MS));
        yield_now().await;
        std::thread::sleep(20 * MS);
        pause();
        let (told, task) = blocking();
        sleeper.await.unwrap();
        told.send(()).unwrap();
        assert!(task.await.unwrap());
    });
}

#[test]
fn what_has_become_due_during_a_sleep_is_ready_at_the_first_poll() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let mut limit = pin!(sleep(5 * MS));
            let mut ticks = interval(5 * MS);
            ticks.tick().await;
            sleep(20 * MS).await;
            assert!(limit.is_elapsed() && is_ready(limit.as_mut()));
            assert!(is_ready(ticks.tick()));
            sleep(20 * MS).await;
            for _ in 0..4 {
                assert!(is_ready(ticks.tick()), "the clock is at the eighth tick at least");
            }
        });
    }
}

/// No timer was pending meanwhile.
#[test]
fn what_has_become_due_during_another_wait_is_ready_at_the_first_poll() {
    Builder::new_current_thread().build().unwrap().block_on(async {
        let mut limit = pin!(sleep(5 * MS));
        spawn_blocking(|| std::thread::sleep(20 * MS)).await.unwrap();
        volt::select! {
            biased;
            () = &mut limit => {}
            () = async {} => panic!("the time was over"),
        }
    });
}

/// With another timer pending, and without.
#[test]
fn what_has_become_due_by_an_advance_is_ready_at_the_first_poll() {
    for pending in [false, true] {
        paused(async {
            let mut later = pin!(sleep(3600 * 1000 * MS));
            assert!(!pending || !is_ready(later.as_mut()));
            for step in [Duration::from_nanos(1), Duration::from_micros(20), MS] {
                let (due, not_yet) = (sleep(step), sleep(step + Duration::from_nanos(1)));
                volt::time::advance(step).await;
                assert!(is_ready(due) && !is_ready(not_yet));
            }
        });
    }
}

#[test]
fn what_is_due_when_the_clock_is_paused_is_ready_at_the_first_poll() {
    Builder::new_current_thread().build().unwrap().block_on(async {
        let (due, later) = (sleep(MS), sleep(3600 * 1000 * MS));
        std::thread::sleep(2 * MS);
        pause();
        assert!(is_ready(due) && !is_ready(later));
    });
}

/// The driver waits for no time then, as the task holds the clock.
#[test]
fn a_blocking_task_may_let_the_clock_run_on() {
    paused(async {
        let (told, task) = blocking();
        let resumes = spawn_blocking(|| {
            std::thread::sleep(20 * MS);
            resume();
        });
        sleep(5 * MS).await;
        told.send(()).unwrap();
        resumes.await.unwrap();
        assert!(task.await.unwrap());
    });
}
