use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::Arc;

use crate::runtime::config::Config;
use crate::runtime::driver::Driver;
use crate::runtime::scheduler::pace::BUDGET;
use crate::runtime::scheduler::park::Park;
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::worker::Worker;
use crate::time::Clock;

const UNKNOWN: usize = 48;

/// A guest beside two workers, for as many processors, which has polled tasks for some time.
fn with_bystander(f: impl FnOnce(&Arc<Shared>, &Worker<'_>)) {
    let (driver, handle) = Driver::new(2, Clock::real()).unwrap();
    let config = Config { processors: 2, ..Config::default() };
    let shared = Shared::new(config, 2, driver, handle);
    let park = Arc::new(Park::new());
    let index = shared.attach_guest(&park).unwrap();
    let guest = Worker::new(&shared, index, &park);
    guest.choosy.set(true);
    guest.pace.set_poll_ns(5_000.0);
    assert!(!guest.is_bystander(), "it has polled nothing");
    (0..BUDGET).for_each(|_| guest.count_poll());
    assert!(guest.is_bystander());
    f(&shared, &guest);
}

#[test]
fn a_guest_stands_aside_while_the_processors_are_taken_by_others_that_are_soon_back() {
    with_bystander(|shared, guest| {
        assert!(guest.stands_aside());
        shared.slots[1].kind.store(UNKNOWN, Relaxed);
        assert!(!guest.stands_aside(), "that poll may be long");
        shared.quick.learn(UNKNOWN);
        assert!(guest.stands_aside());

        guest.pace.set_poll_ns(1_000.0);
        assert!(!guest.stands_aside(), "a wake-up takes longer than its polls");
        guest.pace.set_poll_ns(5_000.0);

        guest.choosy.set(false);
        assert!(!guest.stands_aside(), "in a blocking join it helps");
        guest.choosy.set(true);

        guest.roots.set(1);
        guest.root.set(true);
        assert!(!guest.stands_aside(), "its own future was woken");
        guest.root.set(false);
        assert!(guest.stands_aside());
        guest.polls_at_root.set(guest.polls.get());
        assert!(!guest.stands_aside(), "and polled");
        guest.polls_at_root.set(0);

        let _roles = shared.idle.park(1, false, false);
        assert!(!guest.stands_aside(), "a processor is free");
    });
}

#[test]
fn a_bystander_is_woken_only_if_others_park_or_may_not_be_back_soon() {
    for reason in ["none", "parks", "unknown", "unwatched"] {
        with_bystander(|shared, guest| {
            guest.slot.bystander.store(guest.is_bystander(), Relaxed);
            let roles = shared.idle.park(guest.index, false, true);
            assert!(roles.watcher);
            match reason {
                "parks" => assert!(!shared.idle.park(1, false, false).driver),
                "unknown" => shared.slots[0].kind.store(UNKNOWN, Relaxed),
                "unwatched" => shared.idle.release_watch(guest.index),
                _ => {}
            }
            shared.notify();
            assert_eq!(shared.idle.load().searching(), usize::from(reason != "none"), "{reason}");
            if reason == "parks" {
                assert!(!shared.idle.is_parked(1), "the worker is woken first");
                assert!(!shared.idle.end_search() || shared.idle.is_parked(guest.index));
            } else {
                assert_eq!(shared.idle.is_parked(guest.index), reason == "none", "{reason}");
            }
        });
    }
}
