//! The driver by hand: what its waits teach.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use super::*;
use crate::time::{sleep, with_timers};

const REST: Duration = Duration::from_micros(600);

/// True if waits are told to end sooner after 20 of them, with this `limit`, and `idle` or not.
fn learns(limit: Option<Duration>, idle: impl Fn() -> bool) -> bool {
    let (mut driver, handle) = Driver::new(1, Clock::real()).unwrap();
    for _ in 0..20 {
        with_timers(&handle.timers, Some(0), || {
            let mut sleep = pin!(sleep(REST));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(sleep.as_mut().poll(&mut cx).is_pending());
            driver.wait(&handle, limit, &idle, || ());
            let early = sleep.is_elapsed() && crate::time::Instant::now() < sleep.deadline();
            assert!(!early);
        });
    }
    handle.timers.lead_ns(REST) > 0
}

#[test]
fn only_a_wait_that_nothing_but_its_timer_ended_teaches_how_much_longer_waits_take() {
    assert!(learns(None, || true), "no kernel is that quick");
    assert!(learns(Some(2 * REST), || true));
    let late = || {
        std::thread::sleep(2 * REST);
        true
    };
    assert!(!learns(Some(REST / 4), late), "its limit ended it");
    assert!(!learns(None, || false), "somebody did");
}
