use super::{Idle, Roles, SelfUnpark};

/// `members` attached members, all running.
fn idle(members: usize) -> Idle {
    let idle = Idle::new(members);
    (0..members).for_each(|_| idle.attach());
    idle
}

#[test]
fn the_last_to_park_takes_the_driver_and_others_watch() {
    let idle = idle(3);
    assert_eq!(idle.park(1, false, false), Roles { driver: false, watcher: true });
    assert_eq!(idle.park(0, false, true), Roles { driver: true, watcher: false });
    assert_eq!(idle.park(2, false, true), Roles::default());
}

#[test]
fn the_last_to_park_takes_the_driver_even_if_it_ran_nothing() {
    let idle = idle(1);
    assert!(idle.start_search());
    assert_eq!(idle.park(0, true, false), Roles { driver: true, watcher: true });
    assert_eq!(idle.load().searching(), 0);
}

#[test]
fn at_most_half_of_the_members_search() {
    let idle = idle(4);
    assert!(idle.start_search() && idle.start_search() && !idle.start_search());
    assert!(!idle.end_search());
    assert!(idle.end_search(), "the last searcher is told");
}

#[test]
fn a_push_wakes_one_member_and_none_while_somebody_searches() {
    let idle = idle(3);
    for index in 0..3 {
        let _ = idle.park(index, false, true);
    }
    // Member 0 has the driver, 1 and 2 are free; members with a role are woken last.
    assert_eq!(idle.notify(), Some(1));
    assert_eq!(idle.notify(), None);
    assert!(idle.end_search());
    assert_eq!(idle.notify(), Some(2));
    assert!(idle.end_search());
    assert_eq!(idle.notify(), Some(0));
    assert!(idle.end_search());
    assert_eq!(idle.notify(), None, "nobody is parked");
}

/// Finding P2: being claimed and waking up by oneself do not both count.
#[test]
fn a_claimed_member_does_not_get_up_by_itself() {
    let idle = idle(2);
    let _ = idle.park(0, false, true);
    let _ = idle.park(1, false, true);
    assert_eq!(idle.notify(), Some(1));
    assert_eq!(idle.unpark_self(1, false), SelfUnpark::Claimed);
    assert_eq!((idle.load().parked(), idle.load().searching()), (1, 1));
    assert_eq!(idle.unpark_self(0, true), SelfUnpark::Up);
    assert_eq!((idle.load().parked(), idle.load().searching()), (0, 2));
    assert!(!idle.load().driver_taken());
}

/// There is no limit of 64 workers.
#[test]
fn a_thousand_members() {
    let idle = idle(1500);
    for index in 0..1500 {
        let _ = idle.park(index, false, true);
    }
    let mut woken = vec![false; 1500];
    for _ in 0..1500 {
        let index = idle.notify().expect("somebody is parked");
        assert!(!std::mem::replace(&mut woken[index], true), "woken twice");
        assert!(idle.end_search());
    }
    assert!(woken[1499] && idle.notify().is_none());
}

#[test]
fn a_leaving_member_tells_if_the_driver_is_left_alone() {
    let idle = idle(3);
    let _ = idle.park(0, false, false);
    assert!(!idle.detach(2), "member 1 still runs");
    let _ = idle.park(1, false, false);
    assert!(idle.load().driver_taken());
    idle.attach();
    idle.release_driver(1);
    assert!(idle.detach(2));
}

/// Out of a futex the way is shorter than out of the driver.
#[test]
fn a_push_wakes_the_watcher_rather_than_the_member_in_the_driver() {
    for in_driver in [0, 1] {
        let idle = idle(3);
        let watcher = 1 - in_driver;
        assert!(idle.park(watcher, false, false).watcher);
        assert!(idle.park(in_driver, false, true).driver);
        assert_eq!(idle.notify(), Some(watcher));
        assert!(idle.end_search());
        assert_eq!(idle.notify(), Some(in_driver), "nobody else is parked");
    }
}

/// Of the members 0 to 4, 2 and 3 would set it aside once more, and 3 runs.
#[test]
fn what_is_set_aside_wakes_one_that_takes_it_even_in_the_driver() {
    for in_driver in [0, 1] {
        let idle = idle(5);
        let watcher = 1 - in_driver;
        assert!(idle.park(watcher, false, false).watcher);
        assert!(idle.park(in_driver, false, true).driver);
        let _ = [2, 4].map(|guest| idle.park(guest, false, false));
        let notify = || idle.notify_taker(|| 5, |_, index| ![2, 3].contains(&index), |_| false);
        for (index, why) in [
            (4, "who has no duty"),
            (watcher, "whose sleep ends sooner"),
            (in_driver, "rather than nobody"),
        ] {
            assert_eq!(notify(), Some(index), "{why}");
            assert_eq!(notify(), None, "somebody searches");
            idle.drop_roles(index);
            assert!(idle.end_search());
        }
        assert_eq!(notify(), None, "nobody would take it");
        assert_eq!(idle.notify(), Some(2), "who is parked");
    }
}

/// Of the members 0 to 3, 2 runs.
#[test]
fn who_is_not_near_is_woken_first_even_in_the_driver() {
    for (near, woken) in [(vec![], 3), (vec![3], 0), (vec![0, 3], 1), (vec![0, 1, 3], 3)] {
        let idle = idle(4);
        assert!(idle.park(0, false, false).watcher);
        assert!(idle.park(1, false, true).driver);
        let _ = idle.park(3, false, false);
        let claimed = idle.notify_taker(|| 4, |_, _| true, |index| near.contains(&index));
        assert_eq!(claimed, Some(woken), "{near:?}");
    }
}

#[test]
fn the_watcher_is_claimed_whoever_searches() {
    let idle = idle(4);
    assert!(idle.park(2, false, false).watcher);
    let _ = (idle.park(0, false, true), idle.park(1, false, true));
    assert!(idle.start_search());
    assert_eq!(idle.claim_watcher(), Some(2));
    assert_eq!((idle.load().parked(), idle.load().searching()), (2, 2));
    idle.drop_roles(2);
    assert_eq!(idle.claim_watcher(), None, "there is none");
    assert_eq!((idle.load().parked(), idle.load().searching()), (2, 2));
}
