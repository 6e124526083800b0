use std::time::Duration;

use super::{Answered, MOST_SKIPPED, Spin, WokenOn, answered};

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn a_thread_outside_stops_spinning_where_it_does_not_help() {
    let woken_on = WokenOn::new();
    let wait = |wakes: bool, helps: bool| {
        if wakes {
            woken_on.note();
        }
        let mut spin = Spin::outside_for(LONG);
        let spun = spin.once();
        spin.end_outside(helps);
        spun
    };
    let (mut gaps, mut gap) = (Vec::new(), 0);
    for _ in 0..1000 {
        if wait(true, false) {
            gaps.push(gap);
            gap = 0;
        } else {
            gap += 1;
        }
    }
    assert_eq!(gaps[..8], [0, 1, 3, 7, 15, 31, 63, MOST_SKIPPED]);
    assert!(wait(false, true), "whoever wakes nobody spins");
    while !wait(true, true) {}
    assert!(wait(true, true), "and so does whoever was helped by it");
}

#[test]
#[cfg(target_os = "linux")]
fn a_thread_that_is_in_the_way_of_its_waker_does_not_spin() {
    let woken_on = WokenOn::new();
    let spins = |whom| {
        answered(whom);
        Spin::searching_for(LONG, &woken_on).once()
    };
    assert!(spins(Answered::Nobody));
    assert!(!spins(Answered::Sleeper));
    assert!(spins(Answered::Awake), "nobody was woken");
    // This thread may change its processor in between, but not each time.
    let in_the_way = (0..10_000).any(|_| {
        woken_on.note();
        !spins(Answered::Awake)
    });
    assert!(in_the_way);
    woken_on.note();
    spins(Answered::Awake);
    assert!(spins(Answered::Awake), "said once");
}
