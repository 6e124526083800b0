use super::super::by_hand::with_members;
use super::{AT_ONCE_NS, IN_A_ROW, LONG_NS};
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
