//! A signal's listener that is awaited in another runtime than the one that it was made in. The tests share the
//! process, and a runtime of one would hear the signals of another: so one at a time.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

#[cfg(target_os = "linux")]
#[path = "support/pidfds.rs"]
mod pidfds;
#[path = "support/net.rs"]
mod support;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use support::{alone, bounded, runtimes, stays_pending, stress};
use volt::runtime::{Builder, Runtime};
use volt::signal::ctrl_c;
use volt::signal::unix::{Signal, SignalKind, signal};

/// A runtime that does nothing outside of its `block_on`.
fn idle() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A listener that was made in this runtime.
fn made_in(runtime: &Runtime) -> Signal {
    let _guard = runtime.enter();
    signal(SignalKind::user_defined1()).unwrap()
}

/// Sends this process the signal. Somebody must have listened before.
fn raise_kind(number: libc::c_int) {
    // SAFETY: the signal has a handler by now, so it runs that and nothing else.
    assert_eq!(unsafe { libc::raise(number) }, 0);
}

fn raise() {
    raise_kind(libc::SIGUSR1);
}

fn press() {
    raise_kind(libc::SIGINT);
}

async fn is_pending(mut future: Pin<&mut impl Future>) -> bool {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

/// Hears a signal that comes before it looks, and one that comes while it waits, and no other.
async fn hears(signals: &mut Signal) {
    raise();
    assert_eq!(bounded(signals.recv()).await, Some(()));
    assert!(stays_pending(signals.recv()).await);
    raise();
    assert_eq!(bounded(signals.recv()).await, Some(()));
    let mut waits = Box::pin(signals.recv());
    assert!(is_pending(waits.as_mut()).await);
    raise();
    assert_eq!(bounded(waits).await, Some(()));
}

#[test]
fn one_of_an_idle_runtime_is_heard_in_another() {
    let _alone = alone();
    for other in runtimes() {
        let own = idle();
        let mut signals = made_in(&own);
        other.block_on(hears(&mut signals));
        let mut signals = made_in(&own);
        other.block_on(other.spawn(async move { hears(&mut signals).await })).unwrap();
    }
}

/// Once as well, without anything that listens in the other runtime before the signal comes.
#[test]
fn the_first_wait_in_another_runtime_hears_what_came_before_it() {
    let _alone = alone();
    for other in runtimes() {
        let own = idle();
        let mut signals = made_in(&own);
        raise();
        assert_eq!(other.block_on(bounded(signals.recv())), Some(()));
        assert!(other.block_on(stays_pending(signals.recv())));
    }
}

/// Its waker is of the first runtime, which does not turn any more.
#[test]
fn a_wait_that_began_in_one_runtime_goes_on_in_another() {
    let _alone = alone();
    for other in runtimes() {
        for early in [true, false] {
            let own = idle();
            let mut signals = made_in(&own);
            let mut waits = Box::pin(async move { signals.recv().await });
            assert!(own.block_on(is_pending(waits.as_mut())));
            if early {
                raise();
                assert_eq!(other.block_on(bounded(waits)), Some(()));
            } else {
                assert!(other.block_on(is_pending(waits.as_mut())));
                raise();
                assert_eq!(other.block_on(bounded(waits)), Some(()));
            }
        }
    }
}

#[test]
fn it_goes_back_and_forth_between_runtimes() {
    let _alone = alone();
    let (own, mut all) = (idle(), runtimes());
    let mut signals = made_in(&own);
    all.push(own);
    for _ in 0..3 {
        for runtime in &all {
            runtime.block_on(hears(&mut signals));
        }
    }
}

/// Each runtime watches the bell once, however many listeners come by, and until it ends.
#[cfg(target_os = "linux")]
#[test]
fn to_go_back_and_forth_takes_nothing() {
    let _alone = alone();
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let runtimes = [idle(), idle()];
    let mut signals: Vec<_> = (0..100).map(|_| made_in(&runtimes[0])).collect();
    let round = |signals: &mut Vec<Signal>| {
        for runtime in &runtimes {
            for signals in &mut *signals {
                let mut waits = Box::pin(signals.recv());
                assert!(runtime.block_on(is_pending(waits.as_mut())));
            }
        }
        open()
    };
    let first = round(&mut signals);
    for _ in 0..10 {
        assert_eq!(round(&mut signals), first);
    }
    raise();
    for signals in &mut signals {
        assert_eq!(runtimes[1].block_on(bounded(signals.recv())), Some(()));
    }
}

#[test]
fn that_its_first_runtime_ends_changes_nothing() {
    let _alone = alone();
    for other in runtimes() {
        // Before it is awaited, between two waits, and during one.
        for moment in 0..3 {
            let mut own = Some(idle());
            let mut signals = made_in(own.as_ref().unwrap());
            own.take_if(|_| moment == 0);
            other.block_on(hears(&mut signals));
            own.take_if(|_| moment == 1);
            other.block_on(hears(&mut signals));
            let mut waits = Box::pin(signals.recv());
            assert!(other.block_on(is_pending(waits.as_mut())));
            drop(own);
            assert!(other.block_on(is_pending(waits.as_mut())));
            raise();
            assert_eq!(other.block_on(bounded(waits)), Some(()));
            let own = idle();
            own.block_on(hears(&mut signals));
        }
    }
}

/// The one that it is awaited in ends: it goes on in the one that it was made in.
#[test]
fn it_comes_back_when_the_other_runtime_ends() {
    let _alone = alone();
    for other in runtimes() {
        let own = idle();
        let mut signals = made_in(&own);
        other.block_on(hears(&mut signals));
        drop(other);
        own.block_on(hears(&mut signals));
    }
}

/// By the runtime that it was awaited in last, which has threads of its own.
#[test]
fn outside_of_any_runtime_it_is_heard_by_the_last_one() {
    let _alone = alone();
    for other in runtimes().into_iter().skip(1) {
        let own = idle();
        let mut signals = made_in(&own);
        let mut waits = Box::pin(signals.recv());
        assert!(other.block_on(is_pending(waits.as_mut())));
        let pending = waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
        assert!(pending);
        drop(waits);
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut first = true;
            let waits = poll_fn(|cx| {
                let polled = signals.poll_recv(cx);
                if std::mem::take(&mut first) {
                    assert!(polled.is_pending());
                    tell.send(None).unwrap();
                }
                polled
            });
            tell.send(Some(futures::executor::block_on(waits))).unwrap();
        });
        assert_eq!(told.recv().unwrap(), None);
        raise();
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(Some(Some(()))));
        thread.join().unwrap();
    }
}

#[test]
fn ctrl_c_is_heard_in_another_runtime() {
    let _alone = alone();
    for other in runtimes() {
        for ends in [false, true] {
            let mut own = Some(idle());
            let mut pressed = Box::pin(ctrl_c());
            assert!(own.as_ref().unwrap().block_on(is_pending(pressed.as_mut())));
            own.take_if(|_| ends);
            assert!(other.block_on(is_pending(pressed.as_mut())));
            press();
            other.block_on(bounded(pressed)).unwrap();

            // Or before it is known there.
            let mut own = Some(idle());
            let mut pressed = Box::pin(ctrl_c());
            assert!(own.as_ref().unwrap().block_on(is_pending(pressed.as_mut())));
            own.take_if(|_| ends);
            press();
            other.block_on(bounded(other.spawn(pressed))).unwrap().unwrap();
        }
    }
}

/// As one that has stayed in its runtime.
#[test]
fn a_ctrl_c_that_has_gone_over_and_gives_up_leaves_the_signal_to_the_next() {
    let _alone = alone();
    for other in runtimes() {
        for ends in [false, true] {
            let mut own = Some(idle());
            let mut first = Box::pin(ctrl_c());
            assert!(own.as_ref().unwrap().block_on(is_pending(first.as_mut())));
            own.take_if(|_| ends);
            assert!(other.block_on(is_pending(first.as_mut())));
            drop(first);
            press();
            other.block_on(bounded(ctrl_c())).unwrap();
            assert!(other.block_on(stays_pending(ctrl_c())), "once");
        }
    }
}

/// And one that has failed has not given up.
#[test]
fn ctrl_c_fails_when_its_runtime_has_ended_and_there_is_no_other() {
    let _alone = alone();
    let own = idle();
    // Nothing is kept for those who gave up in the other tests, once somebody has heard it.
    let mut heard = Box::pin(ctrl_c());
    own.block_on(async {
        while stays_pending(&mut heard).await {
            press();
        }
    });
    let mut failed = Box::pin(ctrl_c());
    assert!(own.block_on(is_pending(failed.as_mut())));
    drop(own);
    let polled = failed.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Err(_))));
    drop(failed);
    let other = idle();
    press();
    assert!(other.block_on(stays_pending(ctrl_c())));
}

/// It goes from runtime to runtime, while a thread sends signals, which come at any time of a move.
#[test]
fn none_is_missed_at_any_time_of_a_move() {
    let _alone = alone();
    let rounds = stress(300);
    let (own, mut all) = (idle(), runtimes());
    all.push(idle());
    let (ask, asked) = mpsc::channel();
    let raiser = std::thread::spawn(move || {
        for delay in asked {
            for _ in 0..delay {
                std::hint::spin_loop();
            }
            raise();
        }
    });
    let mut signals = made_in(&own);
    for round in 0..rounds {
        let runtime = &all[round % all.len()];
        let mut waits = Box::pin(signals.recv());
        if round % 3 == 0 {
            assert!(own.block_on(is_pending(waits.as_mut())));
        }
        ask.send(round * 37 % 2000).unwrap();
        assert_eq!(runtime.block_on(bounded(waits)), Some(()));
    }
    drop(ask);
    raiser.join().unwrap();
}

/// On a kernel without pidfds, by SIGCHLD.
#[cfg(target_os = "linux")]
#[test]
fn a_child_of_an_idle_runtime_is_waited_for_in_another_without_pidfds() {
    let _alone = alone();
    pidfds::without_pidfds();
    for other in runtimes() {
        let own = idle();
        let mut sleep = volt::process::Command::new("sleep");
        let mut child = own.block_on(async { sleep.arg("0.05").spawn().unwrap() });
        // A task, as a poll of its own would find the end without any sign of it.
        let waiting = other.spawn(async move { child.wait().await });
        assert!(other.block_on(bounded(waiting)).unwrap().unwrap().success());
    }
}
