use std::sync::atomic::Ordering::Relaxed;

use super::{AT_ONCE_NS, COMPANY_NS, Company, ENOUGH, IN_A_ROW, LONG_NS};
use crate::runtime::config::Config;
use crate::runtime::context;
use crate::runtime::scheduler::by_hand::{QUICK, with_members, with_members_of};
use crate::runtime::scheduler::worker::{Stage, Step, Worker};

fn parks(worker: &Worker<'_>) {
    worker.stage.set(Stage::Running);
    context::with_worker(worker, || while worker.step() != Step::Wait {});
}

/// When waits end: so that no wish is over before the test is.
const LATER_NS: u64 = u64::MAX / 2;

/// The member has waited in the driver for so long.
fn waits(worker: &Worker<'_>, ns: u64) {
    worker.begins_to_wait();
    worker.ends_to_wait();
    if let Some((start, end)) = worker.waited_ns.get() {
        assert!(start <= end);
        worker.waited_ns.set(Some((start, start + ns)));
        worker.has_waited_for_event(LATER_NS);
    }
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
            waits(asks, waits_ns(wait));
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
        (0..2 * IN_A_ROW).for_each(|_| waits(asks, 0));
        assert!(shared.idle.is_parked(other.index) && !asks.is_company_wanted());
    });
}

/// Nobody is there that it is meant for: so it does not begin, and no one else goes there instead.
#[test]
fn nobody_is_asked_that_would_set_aside_what_it_finds() {
    with_members(|shared, [asks, other, third]| {
        for choosy in [other, third] {
            choosy.choosy.set(true);
            parks(choosy);
        }
        asks.pace.set_poll_ns(LONG_NS);
        (0..2 * IN_A_ROW).for_each(|_| waits(asks, 0));
        assert!([other, third].iter().all(|it| shared.idle.is_parked(it.index)));
        assert!(!asks.is_company_wanted());
    });
}

/// All that are parked are such as it is not meant for, since it has come.
#[test]
fn company_that_lasts_is_not_over_since_nobody_else_could_come() {
    with_members(|shared, [asks, other, third]| {
        third.choosy.set(true);
        [third, other].iter().for_each(|it| parks(it));
        asks.pace.set_poll_ns(LONG_NS);
        for parked in [2, 1, 1] {
            assert_eq!(shared.idle.load().parked(), parked);
            (0..IN_A_ROW).for_each(|_| waits(asks, 0));
            assert!(asks.is_company_wanted());
            if parked == 2 {
                shared.idle.end_search();
            }
        }
    });
}

/// Who was asked may find the driver taken, since it woke up late. So it is asked again.
#[test]
fn who_was_asked_in_vain_is_asked_again() {
    with_members(|shared, [asks, other, third]| {
        [third, other].iter().for_each(|it| parks(it));
        asks.pace.set_poll_ns(LONG_NS);
        for _ in 0..2 {
            (0..IN_A_ROW).for_each(|_| waits(asks, 0));
            let claimed = [other, third].into_iter().find(|it| !shared.idle.is_parked(it.index));
            let claimed = claimed.expect("somebody is asked");
            claimed.claimed();
            assert!(shared.idle.take_driver(asks.index));
            parks(claimed);
            shared.idle.release_driver(asks.index);
        }
    });
}

#[test]
fn nobody_is_asked_without_a_processor() {
    with_members_of(
        Config { processors: 1, ..Config::default() },
        |shared, [asks, other, third]| {
            [third, other].iter().for_each(|it| parks(it));
            asks.pace.set_poll_ns(LONG_NS);
            (0..IN_A_ROW).for_each(|_| waits(asks, 0));
            assert!([other, third].iter().all(|it| shared.idle.is_parked(it.index)));
        },
    );
}

/// A wait is a gain if it has ended while another one of those who wait there is in its polls.
#[test]
fn what_others_do_at_the_same_time_is_no_gain() {
    with_members(|shared, [asks, other, third]| {
        [third, other].iter().for_each(|it| parks(it));
        asks.pace.set_poll_ns(LONG_NS);
        (0..IN_A_ROW).for_each(|_| waits(asks, 0));
        let company = &shared.wishes.company;
        // ORD relaxed: all of this thread.
        let gains = || company.gains.load(Relaxed);
        waits(asks, AT_ONCE_NS);
        assert_eq!(gains(), 0, "nobody else has waited there");
        let (awake, parked) =
            if shared.idle.is_parked(other.index) { (third, other) } else { (other, third) };
        company.add_waiter(awake.index);
        waits(asks, AT_ONCE_NS);
        assert_eq!(gains(), 0, "it searches");
        awake.count_poll();
        awake.slot.kind.store(QUICK, Relaxed);
        shared.idle.end_search();
        [&company.waits, &company.gains].iter().for_each(|it| it.store(0, Relaxed));
        company.waiters.store(0, Relaxed);
        company.add_waiter(parked.index);
        waits(asks, AT_ONCE_NS);
        assert_eq!(gains(), 0, "another one runs");
        company.add_waiter(awake.index);
        waits(asks, AT_ONCE_NS);
        assert_eq!(gains(), 1);
    });
}

/// When somebody may ask again, after each of these waits of which so many have gained something.
fn pauses(gains: u32, times: usize) -> Vec<u64> {
    let company = Company::new();
    let mut now = 1;
    let pauses = (0..times).map(|_| {
        assert!(company.ask(now, false));
        for wait in 0..ENOUGH {
            assert!(company.is_wanted(|| now));
            company.count_wait(wait < gains, now);
        }
        let was = now;
        while !company.ask(now, false) {
            now += COMPANY_NS;
        }
        now - was
    });
    pauses.collect()
}

#[test]
fn company_that_gains_nothing_is_over_and_not_asked_for_again_for_longer_and_longer() {
    let expected: Vec<_> = [64, 128, 256, 512, 1024, 1024].map(|ms| ms * 1_000_000).into();
    assert_eq!(pauses(0, 6), expected);
    assert_eq!(pauses(ENOUGH / 2 - 1, 6), expected);
    assert_eq!(pauses(ENOUGH / 2, 6), [0; 6]);
}
