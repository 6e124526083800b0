use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::Arc;

use crate::runtime::config::Config;
use crate::runtime::context;
use crate::runtime::driver::Driver;
use crate::runtime::scheduler::guests::shy::HELD_UP_NS;
use crate::runtime::scheduler::pacing::pace::{BUDGET, LOOK_NS};
use crate::runtime::scheduler::parking::park::Park;
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::stalls::stall::Look;
use crate::runtime::scheduler::worker::{Stage, Step, Worker};
use crate::time::Clock;

const UNKNOWN: usize = 48;

/// A guest beside two workers, for as many processors, which has polled tasks for some time.
fn with_bystander(f: impl FnOnce(&Arc<Shared>, &Worker<'_>)) {
    with_bystander_and(2, f);
}

/// The same with so many processors.
fn with_bystander_and(processors: usize, f: impl FnOnce(&Arc<Shared>, &Worker<'_>)) {
    let (driver, handle) = Driver::new(2, Clock::real()).unwrap();
    let config = Config { processors, ..Config::default() };
    let shared = Shared::new(config, 2, driver, handle);
    let park = Arc::new(Park::new());
    let index = shared.attach_guest(&park).unwrap();
    let guest = Worker::new(&shared, index, &park);
    guest.choosy.set(true);
    guest.pace.set_poll_ns(5_000.0);
    // As long as a look takes.
    (0..LOOK_NS / 5_000).for_each(|_| {
        assert!(!guest.is_bystander());
        guest.count_poll();
    });
    assert!(guest.is_bystander());
    f(&shared, &guest);
    shared.begin_shutdown();
    for index in 0..shared.workers {
        let park = shared.park_of(index);
        let worker = Worker::new(&shared, index, &park);
        context::with_worker(&worker, || worker.end());
    }
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
        assert!(guest.poll_root(&mut || None::<()>).is_none());
        assert!(!guest.stands_aside(), "and polled");
        (0..BUDGET).for_each(|_| guest.count_poll());
        assert!(guest.stands_aside());

        guest.searching.set(true);
        assert!(!guest.stands_aside(), "it was woken for work");
        guest.searching.set(false);

        let polls = shared.slots[1].polls();
        assert!(shared.slots[1].watched.is_news(polls));
        assert!(!guest.stands_aside(), "that poll is known to be long");
        shared.slots[1].polls.store(polls + 1, Relaxed);
        assert!(guest.stands_aside());

        let _roles = shared.idle.park(1, false, false);
        assert!(!guest.stands_aside(), "a processor is free");
    });
}

#[test]
fn a_bystander_is_woken_only_if_others_park_or_may_not_be_back_soon() {
    for reason in ["none", "parks", "unknown", "caught", "drowsy", "unwatched"] {
        with_bystander(|shared, guest| {
            drop(shared.spawn(async {}));
            // It goes to sleep beside a task.
            for stage in [Stage::Searched, Stage::Published, Stage::Asleep] {
                assert_eq!(guest.step(), Step::Continue);
                assert_eq!(guest.stage.get(), stage);
            }
            assert!(guest.roles.get().watcher && !shared.injector.is_empty_for(false));
            assert_eq!(shared.idle.load().searching(), 0);
            match reason {
                "parks" => assert!(!shared.idle.park(1, false, false).driver),
                "unknown" => shared.slots[0].kind.store(UNKNOWN, Relaxed),
                "caught" => assert!(shared.slots[0].watched.is_news(shared.slots[0].polls())),
                "drowsy" => shared.sleep.set_drowsy(),
                "unwatched" => shared.idle.release_watch(guest.index),
                _ => {}
            }
            shared.notify();
            assert_eq!(shared.idle.load().searching(), usize::from(reason != "none"), "{reason}");
            let sleeps = ["none", "parks"].contains(&reason);
            assert_eq!(shared.idle.is_parked(guest.index), sleeps, "{reason}");
            assert!(!shared.idle.is_parked(1), "the worker is woken, not the guest");
        });
    }
}

/// Beside work, and members that have stood still since its last look: they may do so for long.
#[test]
fn a_bystander_that_watches_does_not_stop_beside_work() {
    for work in [true, false] {
        with_bystander(|shared, guest| {
            if work {
                drop(shared.spawn(async {}));
            }
            shared.quick.learn(UNKNOWN);
            shared.slots[0].kind.store(UNKNOWN, Relaxed);
            let mut watch = guest.begin_watch();
            assert!(matches!(guest.look_after_others(&mut watch), Look::Again));
            assert_eq!(matches!(guest.look_after_others(&mut watch), Look::Again), work);
        });
    }
}

/// Its tasks are on the workers for good reasons: it takes nothing from them for some time, until one parks or does not
/// go on.
#[test]
fn a_guest_that_steals_in_vain_lets_workers_alone_that_go_on() {
    with_bystander(|shared, guest| {
        guest.pace.set_poll_ns(1_000.0);
        shared.slots[1].kind.store(UNKNOWN, Relaxed);
        assert!(!guest.is_bystander() || !guest.stands_aside());
        guest.count_stolen(8);
        (0..2).for_each(|_| guest.vain.set_aside());
        assert_eq!(guest.vain_until(), 0, "who knows");
        guest.count_stolen(1);
        assert_ne!(guest.vain_until(), 0);
        guest.vain.for_ever();
        assert!(guest.stands_aside());
        let (polls, watched) = (shared.slots[1].polls(), &shared.slots[1].watched);
        assert!(watched.is_news(polls));
        assert!(guest.stands_aside(), "that one may have no processor");
        let _begins = watched.look(shared.slots[1].steps(), guest.now_ns() - HELD_UP_NS);
        assert!(!guest.stands_aside(), "that one does not go on");
        shared.slots[1].polls.store(polls + 1, Relaxed);
        guest.choosy.set(false);
        assert!(!guest.stands_aside(), "in a blocking join it helps");
        guest.choosy.set(true);
        assert!(guest.stands_aside());
        let _roles = shared.idle.park(1, false, false);
        assert!(!guest.stands_aside(), "that one has nothing to do");
    });
}

/// Who has a processor and is caught does not go on.
#[test]
fn a_guest_that_steals_in_vain_helps_soon_if_there_is_a_processor_for_each() {
    with_bystander_and(3, |shared, guest| {
        guest.vain.for_ever();
        assert!(guest.stands_aside());
        assert!(shared.slots[1].watched.is_news(shared.slots[1].polls()));
        assert!(!guest.stands_aside());
    });
}

/// An unfit guest has the driver and the watch, wakes up by chance, and finds nothing stalled yet. Who was not woken for
/// the work, as there was a watcher, is not left alone.
#[test]
fn a_watcher_that_keeps_off_does_not_stop_beside_work() {
    for work in [true, false] {
        with_bystander(|shared, guest| {
            guest.unfit.set(true);
            guest.shy.set(true);
            while guest.stage.get() != Stage::Asleep {
                assert_eq!(guest.step(), Step::Continue);
            }
            assert!(guest.roles.get().watcher);
            if work {
                drop(shared.spawn(async {}));
            }
            // The first look is never the last.
            guest.watch_expired();
            guest.watch_expired();
            assert!(guest.roles.get().driver);
            assert_eq!(guest.roles.get().watcher, work);
            assert_eq!(guest.stage.get(), Stage::Asleep);
        });
    }
}
