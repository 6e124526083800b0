use super::super::by_hand::with_members;
use std::sync::atomic::Ordering::Relaxed;

use super::{AT_ONCE_NS, COMPANY_NS, ENOUGH, IN_A_ROW, LONG_NS, Wishes};
use crate::runtime::context;
use crate::runtime::scheduler::worker::{Stage, Step, Worker};

fn parks(worker: &Worker<'_>) {
    worker.stage.set(Stage::Running);
    context::with_worker(worker, || while worker.step() != Step::Wait {});
}

/// How often member 0 has waited until another one is in the driver, of eight waits of which each takes as long.
fn waits_alone(poll_ns: f32, waits_ns: impl Fn(usize) -> u64) -> Option<usize> {
    let mut alone = None;
    with_members(|shared, [asks, other, third]| {
        parks(third);
        parks(other);
        assert!(!shared.idle.load().driver_taken());
        asks.pace.set_poll_ns(poll_ns);
        for wait in 0..8 {
            let Some(start) = asks.begins_to_wait() else { break };
            // So that no wish is over before the test is.
            let start = start + 3_600_000_000_000;
            asks.has_waited(start, start + waits_ns(wait));
            let claimed = [other, third].into_iter().find(|it| !shared.idle.is_parked(it.index));
            let Some(claimed) = claimed else { continue };
            assert!(claimed.is_company_wanted());
            claimed.claimed();
            // It finds nothing.
            parks(claimed);
            assert!(shared.idle.load().has_driver(claimed.index));
            alone = Some(wait + 1);
            break;
        }
    });
    alone
}

#[test]
fn who_finds_its_events_there_after_long_polls_asks_for_company() {
    assert_eq!(waits_alone(LONG_NS, |_| AT_ONCE_NS - 1), Some(IN_A_ROW as usize));
    assert_eq!(waits_alone(LONG_NS, |_| AT_ONCE_NS), None);
    assert_eq!(waits_alone(LONG_NS - 1.0, |_| 0), None);
    let seldom = |wait: usize| if wait % 3 == 2 { AT_ONCE_NS } else { 0 };
    assert_eq!(waits_alone(LONG_NS, seldom), None, "not in a row");
}

/// It has the driver when it goes on, and so there is no need.
#[test]
fn nobody_is_asked_while_another_member_is_in_the_driver() {
    with_members(|shared, [asks, other, _]| {
        parks(other);
        assert!(shared.idle.take_driver(other.index));
        asks.pace.set_poll_ns(LONG_NS);
        for _ in 0..2 * IN_A_ROW {
            asks.has_waited(1, 1);
        }
        assert!(shared.idle.is_parked(other.index) && !shared.wishes.take_company());
        assert!(!asks.is_company_wanted());
    });
}

/// When somebody may ask again, after each of these waits of which so many have gained something.
fn pauses(gains: u32, times: usize) -> Vec<u64> {
    let wishes = Wishes::new();
    let mut now = 1;
    let pauses = (0..times).map(|_| {
        assert!(wishes.begins_company(now));
        assert!(!wishes.begins_company(now), "it lasts");
        for wait in 0..ENOUGH {
            assert!(wishes.is_company_wanted(|| now));
            wishes.count_wait(wait < gains, now);
        }
        let was = now;
        while !wishes.begins_company(now) {
            now += COMPANY_NS;
        }
        // That was asked, and not for the loop.
        wishes.company_until_ns.store(0, Relaxed);
        now - was
    });
    pauses.collect()
}

#[test]
fn company_that_gains_nothing_is_over_and_not_asked_for_again_for_longer_and_longer() {
    let expected: Vec<_> = [64, 128, 256, 512, 1024, 1024].map(|ms| ms * 1_000_000).into();
    assert_eq!(pauses(0, 6), expected);
    assert_eq!(pauses(ENOUGH / 2 - 1, 6), expected);
    assert_eq!(pauses(ENOUGH / 2, 6), [COMPANY_NS; 6]);
}
