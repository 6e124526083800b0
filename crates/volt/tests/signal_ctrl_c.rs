//! `ctrl_c`: who hears it, and who does not. The tests share the process, and so the signal.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

#[path = "support/net.rs"]
mod support;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use support::{alone, bounded, each, stays_pending};
use volt::signal::ctrl_c;
use volt::signal::unix::{SignalKind, signal};
use volt::time::sleep;

/// Presses ctrl-c. Somebody must have listened before.
fn press() {
    // SAFETY: the signal has a handler by now, so it runs that and nothing else.
    assert_eq!(unsafe { libc::raise(libc::SIGINT) }, 0);
}

/// Until whoever is to be told has been.
async fn told() {
    sleep(Duration::from_millis(20)).await;
}

async fn is_pending(mut future: Pin<&mut impl Future>) -> bool {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

#[test]
fn it_is_heard_by_all_who_wait_and_by_none_who_do_not() {
    let _alone = alone();
    each(|| async {
        let (mut early, late) = (pin!(ctrl_c()), ctrl_c());
        let mut dropped = Box::pin(ctrl_c());
        assert!(is_pending(early.as_mut()).await);
        assert!(is_pending(dropped.as_mut()).await);
        drop(dropped);
        let task = volt::spawn(ctrl_c());
        // Until the task listens too, whichever thread it is on.
        let mut task = Box::pin(task);
        while stays_pending(&mut task).await {
            press();
        }
        early.await.unwrap();
        told().await;
        // It was not waiting yet when the signal came. And with nobody waiting, the process lives on.
        press();
        told().await;
        assert!(stays_pending(late).await);
    });
}

/// As in `loop { select! { _ = ctrl_c() => break, message = receiver.recv() => handle(message) } }`.
#[test]
fn none_is_lost_between_two_futures_of_a_loop() {
    let _alone = alone();
    each(|| async {
        for round in 0..4 {
            let mut first = Box::pin(ctrl_c());
            assert!(is_pending(first.as_mut()).await);
            drop(first);
            press();
            if round % 2 == 0 {
                told().await;
            }
            bounded(ctrl_c()).await.unwrap();
            // Once.
            told().await;
            assert!(stays_pending(ctrl_c()).await);
            let mut last = Box::pin(ctrl_c());
            assert!(is_pending(last.as_mut()).await);
            press();
            bounded(last).await.unwrap();
        }
    });
}

/// Told while another branch of the loop was ready, and dropped before it looked.
#[test]
fn one_that_was_told_and_did_not_see_it_leaves_it_to_the_next() {
    let _alone = alone();
    each(|| async {
        let mut first = Box::pin(ctrl_c());
        assert!(is_pending(first.as_mut()).await);
        press();
        told().await;
        drop(first);
        bounded(ctrl_c()).await.unwrap();
        assert!(stays_pending(ctrl_c()).await);
        // Also if whoever takes it over does not look.
        let mut first = Box::pin(ctrl_c());
        assert!(is_pending(first.as_mut()).await);
        press();
        told().await;
        drop(first);
        drop(signal(SignalKind::interrupt()).unwrap());
        bounded(ctrl_c()).await.unwrap();
    });
}

/// Both are told, and give up before they look.
#[test]
fn two_loops_lose_no_signal() {
    let _alone = alone();
    each(|| async {
        let (mut one, mut two) = (Box::pin(ctrl_c()), Box::pin(ctrl_c()));
        assert!(is_pending(one.as_mut()).await && is_pending(two.as_mut()).await);
        press();
        told().await;
        drop(one);
        let mut one = Box::pin(ctrl_c());
        let first = !is_pending(one.as_mut()).await;
        drop(two);
        let mut two = Box::pin(ctrl_c());
        assert!(first || !is_pending(two.as_mut()).await);
        // Nor does one who never looks take it from them.
        let _idle = signal(SignalKind::interrupt()).unwrap();
        let mut one = Box::pin(ctrl_c());
        assert!(is_pending(one.as_mut()).await);
        press();
        told().await;
        drop(one);
        bounded(ctrl_c()).await.unwrap();
        // Also if it is told while none of them waits.
        let mut one = Box::pin(ctrl_c());
        assert!(is_pending(one.as_mut()).await);
        drop(one);
        press();
        told().await;
        bounded(ctrl_c()).await.unwrap();
        told().await;
        assert!(stays_pending(ctrl_c()).await, "once");
    });
}

/// It listens from now on, and what was kept is for those who wait for one signal.
#[test]
fn a_listener_for_all_signals_does_not_take_what_was_kept() {
    let _alone = alone();
    each(|| async {
        let mut first = Box::pin(ctrl_c());
        assert!(is_pending(first.as_mut()).await);
        drop(first);
        press();
        told().await;
        let mut all = signal(SignalKind::interrupt()).unwrap();
        assert!(stays_pending(all.recv()).await, "it came before");
        bounded(ctrl_c()).await.unwrap();
        press();
        bounded(all.recv()).await.unwrap();
        assert!(stays_pending(ctrl_c()).await);
    });
}

/// "Press again to end at once": that was a key for those who have completed.
#[test]
fn a_signal_after_one_that_was_seen_is_not_kept_for_those_who_gave_up_before() {
    let _alone = alone();
    each(|| async {
        let (mut sees, mut gone) = (Box::pin(ctrl_c()), Box::pin(ctrl_c()));
        assert!(is_pending(sees.as_mut()).await);
        assert!(is_pending(gone.as_mut()).await);
        drop(gone);
        press();
        bounded(sees).await.unwrap();
        press();
        told().await;
        assert!(stays_pending(ctrl_c()).await);
        // Nothing is left for the next test.
        bounded(async {
            let mut last = Box::pin(ctrl_c());
            while stays_pending(&mut last).await {
                press();
            }
        })
        .await;
    });
}

/// A waker of whatever executor keeps nobody else from hearing.
#[test]
fn a_waker_that_panics_takes_no_signal_from_others() {
    struct Panics;
    impl std::task::Wake for Panics {
        fn wake(self: std::sync::Arc<Self>) {
            panic!("as the test wants it");
        }
    }
    let _alone = alone();
    each(|| async {
        let mut other = signal(SignalKind::user_defined1()).unwrap();
        let waker = std::task::Waker::from(std::sync::Arc::new(Panics));
        let mut bad = Box::pin(ctrl_c());
        assert!(bad.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
        let good = volt::spawn(async move {
            let mut all = signal(SignalKind::interrupt()).unwrap();
            let hears = all.recv();
            let mut hears = pin!(hears);
            while stays_pending(hears.as_mut()).await {
                press();
            }
            drop(bad);
        });
        // SAFETY: the signal has a handler by now, so it runs that and nothing else.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
        bounded(other.recv()).await.unwrap();
        bounded(good).await.unwrap();
    });
}

/// Also if something listens still that was made before.
#[test]
fn after_the_end_of_its_runtime_no_listener_is_made() {
    let _alone = alone();
    for runtime in support::runtimes() {
        let handle = runtime.handle().clone();
        let _guard = handle.enter();
        let old = signal(SignalKind::user_defined2()).unwrap();
        drop(runtime);
        assert!(signal(SignalKind::user_defined2()).is_err());
        drop(old);
    }
}

/// Who listens all the time has heard it, so it is not kept for those who gave up.
#[test]
fn what_somebody_has_heard_is_kept_for_nobody() {
    let _alone = alone();
    each(|| async {
        let mut all = signal(SignalKind::interrupt()).unwrap();
        let mut gone = Box::pin(ctrl_c());
        assert!(is_pending(gone.as_mut()).await);
        drop(gone);
        press();
        bounded(all.recv()).await.unwrap();
        assert!(stays_pending(ctrl_c()).await);
    });
}

/// A listener more costs no descriptor. (A runtime opens three when it first has nothing to do.)
#[cfg(target_os = "linux")]
#[test]
fn many_listeners_take_no_descriptors() {
    let _alone = alone();
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    each(move || async move {
        let first = signal(SignalKind::interrupt()).unwrap();
        let before = open();
        let mut all: Vec<_> = (0..1000).map(|_| Box::pin(ctrl_c())).collect();
        for listener in &mut all {
            assert!(is_pending(listener.as_mut()).await);
        }
        assert!(open() < before + 100);
        press();
        for listener in all {
            bounded(listener).await.unwrap();
        }
        drop(first);
    });
}

/// The bell is one for all runtimes, and one of them reads it.
#[test]
fn it_is_heard_in_all_runtimes() {
    let _alone = alone();
    let threads: Vec<_> = support::runtimes()
        .into_iter()
        .map(|runtime| {
            let (tell, told) = std::sync::mpsc::channel();
            let thread = std::thread::spawn(move || {
                runtime.block_on(async {
                    let mut all = signal(SignalKind::interrupt()).unwrap();
                    for _ in 0..50 {
                        tell.send(()).unwrap();
                        bounded(all.recv()).await.unwrap();
                    }
                    drop(tell);
                });
            });
            (thread, told)
        })
        .collect();
    for _ in 0..50 {
        threads.iter().for_each(|(_, told)| told.recv().unwrap());
        press();
    }
    for (thread, _) in threads {
        thread.join().unwrap();
    }
}

/// Also those that the system does not know.
#[test]
fn a_signal_that_cannot_be_listened_for_is_named() {
    let _alone = alone();
    let runtime = volt::runtime::Builder::new_current_thread().build().unwrap();
    let _guard = runtime.enter();
    for number in [-1, 0, libc::SIGKILL, libc::SIGSTOP, 999] {
        let error = signal(SignalKind::from_raw(number)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::Other);
        assert_eq!(error.to_string(), format!("signal {number} cannot be listened for"));
    }
}
