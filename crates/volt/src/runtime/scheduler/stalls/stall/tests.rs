//! How often the watcher looks, and who wakes it.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::time::Duration;

use volt_sync::internal::primitive::Arc;

use super::{CALM_LOOK, FEW_NS, FIRST_LOOK, LAST_LOOK, Look, Watch};
use crate::reactor::Why;
use crate::runtime::Builder;
use crate::runtime::config::Config;
use crate::runtime::context;
use crate::runtime::driver::Driver;
use crate::runtime::metrics::SlotMetrics;
use crate::runtime::scheduler::by_hand::{self, QUICK};
use crate::runtime::scheduler::guests::guest;
use crate::runtime::scheduler::idle::{Idle, Roles, SelfUnpark};
use crate::runtime::scheduler::parking::park::Park;
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::worker::{Stage, Step, Worker};
use crate::time::Clock;

const SLOW: usize = 48;

/// Members 0, the watcher, 1, which works from time to time, and 2, all of them parked.
fn with_members(test: impl FnOnce(&Arc<Shared>, [&Worker<'_>; 3])) {
    by_hand::with_members(|shared, members| {
        assert!(shared.idle.park(0, false, false).watcher);
        let _ = (shared.idle.park(1, false, true), shared.idle.park(2, false, false));
        test(shared, members);
    });
}

/// One poll of member 1, and a look of the watcher after it.
fn poll_and_look(worker: [&Worker<'_>; 3], kind: usize, watch: &mut Watch) {
    worker[1].slot.kind.store(kind, Relaxed);
    worker[1].count_poll();
    assert!(matches!(worker[0].look_after_others(watch), Look::Again));
}

/// Looks until they are as rare as they get.
fn become_drowsy(worker: [&Worker<'_>; 3], watch: &mut Watch) {
    // The kind of a task, which is an address, may have the place of the other one.
    let polled = worker[1].slot.kind.load(Relaxed);
    let kind = if worker[0].shared.quick.knows(polled) { polled } else { QUICK };
    for _ in 0..8 {
        poll_and_look(worker, kind, watch);
    }
    assert_eq!(watch.interval, CALM_LOOK);
    // ORD relaxed: of this thread.
    assert!(worker[0].shared.sleep.is_drowsy());
}

fn get_up(idle: &Idle, index: usize) {
    assert_eq!(idle.unpark_self(index, false), SelfUnpark::Up);
}

#[test]
fn looks_are_rare_while_polls_are_few_and_quick_and_members_park_again() {
    with_members(|shared, members| {
        let mut watch = members[0].begin_watch();
        poll_and_look(members, QUICK, &mut watch);
        assert_eq!(watch.interval, CALM_LOOK);
        assert!(shared.sleep.is_drowsy());
        // Somebody is at work.
        get_up(&shared.idle, 1);
        poll_and_look(members, QUICK, &mut watch);
        assert_eq!(watch.interval, FIRST_LOOK);
        assert!(!shared.sleep.is_drowsy());
        for _ in 0..8 {
            poll_and_look(members, QUICK, &mut watch);
        }
        assert_eq!(watch.interval, LAST_LOOK);
        let _ = shared.idle.park(1, false, true);
        become_drowsy(members, &mut watch);
        // Nothing happens.
        assert!(matches!(members[0].look_after_others(&mut watch), Look::Quiet));
        assert_eq!(watch.interval, FIRST_LOOK);
        assert!(!shared.sleep.is_drowsy());
    });
}

#[test]
fn looks_become_rare_step_by_step_while_polls_are_many() {
    with_members(|shared, members| {
        let mut watch = members[0].begin_watch();
        for interval in [2, 4, 8, 16, 32, 32].map(Duration::from_millis) {
            for _ in 0..watch.interval.as_nanos() as u64 / FEW_NS {
                members[1].count_poll();
            }
            poll_and_look(members, QUICK, &mut watch);
            assert_eq!(watch.interval, interval);
        }
        assert!(shared.sleep.is_drowsy());
    });
}

/// Otherwise every burst would cost as many looks as a runtime that is up for long.
#[test]
fn a_burst_is_not_watched_after_its_end_unless_they_are_frequent() {
    with_members(|shared, members| {
        let mut watch = members[0].begin_watch();
        assert!(matches!(members[0].look_after_others(&mut watch), Look::Quiet));
        std::thread::sleep(2 * CALM_LOOK);
        let mut watch = members[0].begin_watch();
        assert!(matches!(members[0].look_after_others(&mut watch), Look::Quiet));
        // As if it were just now, however long this thread has had no processor.
        shared.sleep.ended(u64::MAX);
        let mut watch = members[0].begin_watch();
        assert!(matches!(members[0].look_after_others(&mut watch), Look::Again));
        assert_eq!(watch.interval, CALM_LOOK);
        assert!(matches!(members[0].look_after_others(&mut watch), Look::Quiet));
    });
}

/// It may be that each burst has a poll that wakes the watcher.
#[test]
fn a_watcher_that_was_roused_becomes_drowsy_step_by_step() {
    with_members(|shared, members| {
        let mut watch = members[0].begin_watch();
        become_drowsy(members, &mut watch);
        members[1].wake_drowsy_watcher();
        assert!(!shared.idle.is_parked(0));
        let _ = shared.idle.park(0, true, true);
        let mut watch = members[0].begin_watch();
        for interval in [2, 4, 8, 32].map(Duration::from_millis) {
            poll_and_look(members, QUICK, &mut watch);
            assert_eq!(watch.interval, interval);
        }
        // From now on it is as if it had not been.
        get_up(&shared.idle, 1);
        poll_and_look(members, QUICK, &mut watch);
        let _ = shared.idle.park(1, false, true);
        poll_and_look(members, QUICK, &mut watch);
        assert_eq!(watch.interval, CALM_LOOK);
    });
}

/// It gets up for its next burst, and has not polled yet.
#[test]
fn who_has_slept_meanwhile_does_not_stand_still() {
    with_members(|shared, members| {
        get_up(&shared.idle, 1);
        members[1].slot.kind.store(QUICK, Relaxed);
        members[1].count_poll();
        let mut watch = members[0].begin_watch();
        members[1].stage.set(Stage::Searched);
        assert_eq!(members[1].step(), Step::Continue);
        assert!(shared.idle.is_parked(1));
        std::thread::sleep(2 * FIRST_LOOK);
        get_up(&shared.idle, 1);
        let _ = members[0].look_after_others(&mut watch);
        let metrics = &members[1].slot.metrics;
        assert_eq!((metrics.parks.get(), metrics.slow_polls.get()), (1, 0));
        assert!(shared.quick.knows(QUICK));
    });
}

/// It is the one that has to run that, and knows after two looks that nobody else does.
#[test]
fn a_shy_watcher_looks_on_beside_work_and_a_member_that_stands_still() {
    with_members(|shared, [watcher, stalled, _]| {
        get_up(&shared.idle, 1);
        stalled.slot.kind.store(SLOW, Relaxed);
        stalled.count_poll();
        let mut watch = watcher.begin_watch();
        let _ = watcher.look_after_others(&mut watch);
        let task = shared.spawn(async {});
        stalled.push(shared.injector.pop().unwrap());
        for (shy, unfit, looks_on) in
            [(true, false, true), (true, true, false), (false, false, false)]
        {
            watcher.shy.set(shy);
            watcher.unfit.set(unfit);
            let look = watcher.look_after_others(&mut watch);
            assert_eq!(matches!(look, Look::Again), looks_on, "{look:?}");
            assert_eq!(
                !looks_on,
                shared.sleep.quiet_ns.swap(0, Relaxed) != 0,
                "when it went to sleep"
            );
        }
        drop(task);
    });
}

/// A shy guest helps workers that stand still in two looks (`shy.rs`).
#[test]
fn the_first_look_is_not_the_last_one_beside_somebody_at_work() {
    with_members(|shared, members| {
        get_up(&shared.idle, 1);
        members[1].slot.kind.store(SLOW, Relaxed);
        members[1].count_poll();
        let mut watch = members[0].begin_watch();
        assert!(matches!(members[0].look_after_others(&mut watch), Look::Again));
        assert!(matches!(members[0].look_after_others(&mut watch), Look::Quiet));
    });
}

/// It does not return from the poll in which it was when the watch began.
#[test]
fn who_stands_still_from_the_start_is_seen_at_the_first_look() {
    with_members(|shared, members| {
        get_up(&shared.idle, 1);
        members[1].slot.kind.store(SLOW, Relaxed);
        members[1].count_poll();
        let mut watch = members[0].begin_watch();
        std::thread::sleep(2 * FIRST_LOOK);
        let _ = members[0].look_after_others(&mut watch);
        assert_eq!(members[1].slot.metrics.slow_polls.get(), 1);
    });
}

#[test]
fn looks_stay_frequent_while_polls_may_be_long() {
    with_members(|shared, members| {
        let mut watch = members[0].begin_watch();
        for _ in 0..8 {
            poll_and_look(members, SLOW, &mut watch);
        }
        assert_eq!(watch.interval, LAST_LOOK);
        // That of long ago does not count.
        members[2].slot.kind.store(SLOW, Relaxed);
        members[2].count_poll();
        poll_and_look(members, QUICK, &mut watch);
        become_drowsy(members, &mut watch);
        poll_and_look(members, SLOW, &mut watch);
        assert_eq!(watch.interval, FIRST_LOOK);
        assert!(!shared.sleep.is_drowsy());
    });
}

/// Member 1 gets up and polls a task, always of the same kind; true if the watcher sleeps on.
fn poll_a_task(worker: [&Worker<'_>; 3]) -> bool {
    get_up(&worker[0].shared.idle, 1);
    worker[1].stage.set(Stage::Running);
    context::with_worker(worker[1], || {
        let task = worker[0].shared.spawn(async {});
        assert!(worker[0].shared.idle.is_parked(0), "a push relies on the watcher");
        assert_eq!(worker[1].step(), Step::Continue);
        assert!(task.is_finished());
    });
    assert!(worker[0].shared.idle.is_parked(2), "nobody else is woken");
    worker[0].shared.idle.is_parked(0)
}

#[test]
fn a_poll_that_may_be_long_wakes_a_drowsy_watcher_once() {
    with_members(|shared, members| {
        let mut watch = members[0].begin_watch();
        become_drowsy(members, &mut watch);
        assert!(!poll_a_task(members));
        assert!(!shared.sleep.is_drowsy());
    });
}

#[test]
fn a_quick_poll_lets_a_drowsy_watcher_sleep() {
    with_members(|shared, members| {
        let mut watch = members[0].begin_watch();
        let mut known = false;
        // The machine may be busy, so that the first ones take long.
        while !known {
            assert!(poll_a_task(members), "it is not drowsy");
            known = shared.quick.knows(members[1].slot.kind.load(Relaxed));
            let _ = shared.idle.park(1, false, true);
        }
        become_drowsy(members, &mut watch);
        assert!(poll_a_task(members));
        assert!(shared.sleep.is_drowsy());
    });
}

/// Otherwise the watcher and those who run would take turns in it for each event.
#[test]
fn a_driver_that_somebody_turns_is_left_to_them() {
    with_members(|shared, members| {
        get_up(&shared.idle, 1);
        members[0].roles.set(Roles { driver: false, watcher: true });
        let look = |turn: bool| {
            members[1].slot.kind.store(SLOW, Relaxed);
            members[1].count_poll();
            if turn {
                members[1].look_at_driver(Why::Due);
            }
            members[0].woke(0, members[0].roles.get());
            shared.idle.load().has_driver(0)
        };
        assert!(!look(true));
        assert!(!look(true));
        assert!(look(false), "the one that runs does not come back to it");
    });
}

/// Whoever is not going to look again must not count on others.
#[test]
fn a_watcher_that_stops_takes_the_driver_even_if_it_was_turned() {
    with_members(|shared, members| {
        get_up(&shared.idle, 1);
        members[0].roles.set(Roles { driver: false, watcher: true });
        members[1].look_at_driver(Why::Due);
        members[0].woke(0, members[0].roles.get());
        assert!(!shared.idle.load().has_watcher(), "nothing was polled");
        assert!(shared.idle.load().has_driver(0));
    });
}

/// A guest that has left stands still, but in no poll.
#[test]
fn who_has_left_is_not_stalled() {
    with_members(|shared, members| {
        let guests = [Park::new(), Park::new()].map(Arc::new);
        let [first, second] = guests.each_ref().map(|park| shared.attach_guest(park).unwrap());
        // It has polled a task, and leaves. The other one stays, and its place is behind.
        shared.slot(first).kind.store(QUICK, Relaxed);
        shared.slot(first).polls.store(1, Relaxed);
        let _ = shared.detach_guest(first);
        let _ = shared.idle.park(second, false, false);
        let mut watch = members[0].begin_watch();
        poll_and_look(members, QUICK, &mut watch);
        std::thread::sleep(2 * FIRST_LOOK);
        become_drowsy(members, &mut watch);
        assert!(shared.all_slots().all(|slot| slot.metrics.slow_polls.get() == 0));
        assert!(shared.quick.knows(QUICK));
        get_up(&shared.idle, second);
        let _ = shared.detach_guest(second);
    });
}

/// Member 1 stands still with a task in its LIFO slot, of which nobody was told. Who takes that has stolen it,
/// and the slow poll is member 1's, counted once.
#[test]
fn what_is_taken_from_a_stalled_members_lifo_slot_is_counted_as_stolen() {
    with_members(|shared, members| {
        let [watcher, stalled, _] = members;
        get_up(&shared.idle, 1);
        let task = context::with_worker(stalled, || shared.spawn(async {}));
        stalled.slot.kind.store(SLOW, Relaxed);
        stalled.count_poll();
        let mut watch = members[0].begin_watch();
        assert_eq!(watcher.slot.metrics.stolen.get(), 0);
        std::thread::sleep(2 * FIRST_LOOK);
        match watcher.look_after_others(&mut watch) {
            Look::Found(found) => stalled.push(found.into_raw()),
            other => panic!("{other:?}"),
        }
        let _ = watcher.look_after_others(&mut watch);
        let counts = members.map(|member| {
            let SlotMetrics { steals, stolen, slow_polls, .. } = &member.slot.metrics;
            (steals.get(), stolen.get(), slow_polls.get())
        });
        assert_eq!(counts, [(1, 1, 0), (0, 0, 1), (0, 0, 0)]);
        drop(task);
    });
}

/// A choosy guest watches beside a ring of which nobody was told.
#[test]
fn a_choosy_watcher_gets_up_for_a_ring() {
    with_members(|shared, members| {
        let [watcher, stalled, _] = members;
        get_up(&shared.idle, 1);
        watcher.choosy.set(true);
        watcher.roles.set(Roles { driver: false, watcher: true });
        watcher.stage.set(Stage::Asleep);
        stalled.slot.kind.store(QUICK, Relaxed);
        stalled.count_poll();
        let task = shared.spawn(async {});
        stalled.push(shared.injector.pop().unwrap());
        if !shared.idle.is_parked(2) {
            // The spawn has woken it.
            shared.idle.end_search();
            let _ = shared.idle.park(2, false, false);
        }
        watcher.woke(0, watcher.roles.get());
        assert!(!shared.idle.is_parked(watcher.index), "it was not told");
        drop(task);
    });
}

/// Waits for a message in a poll.
async fn block(told: crate::sync::oneshot::Receiver<()>, from: mpsc::Receiver<()>) -> bool {
    told.await.is_ok() && from.recv_timeout(Duration::from_secs(5)).is_ok()
}

/// Has the other one block, and sends it that message in its next poll. False if it did not come to
/// that: a thread in `block_on` should watch, and the other worker sleep.
async fn answer(tell: crate::sync::oneshot::Sender<()>, to: mpsc::Sender<()>) -> bool {
    for _ in 0..200_000 {
        crate::task::yield_now().await;
        let summary = context::current_worker(|worker| worker.unwrap().shared.idle.load());
        if summary.is_watcher(2) && summary.parked() == 2 {
            tell.send(()).unwrap();
            crate::task::yield_now().await;
            let _ = to.send(());
            return true;
        }
    }
    false
}

#[test]
fn who_blocks_does_not_hold_up_its_ring_while_a_choosy_guest_watches() {
    // On a busy machine, few tries come to it.
    let mut shown = 0;
    for _ in 0..100 {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (tell, told) = crate::sync::oneshot::channel();
        let (to, from) = mpsc::channel();
        let (blocks, answers) = runtime.block_on(async {
            let (first, second) = (crate::spawn(block(told, from)), crate::spawn(answer(tell, to)));
            (first.await, second.await.unwrap())
        });
        if answers {
            assert!(blocks.unwrap(), "nobody has run the other one");
            shown += 1;
        }
        if shown == 10 {
            break;
        }
    }
    assert_ne!(shown, 0);
}

/// A guest beside a worker that is parked, and watches.
fn with_guest(test: impl FnOnce(&Arc<Shared>)) {
    let (driver, handle) = Driver::new(2, Clock::real()).unwrap();
    let shared = Shared::new(Config::default(), 1, driver, handle);
    let park = shared.park_of(0);
    let worker = Worker::new(&shared, 0, &park);
    assert!(shared.idle.park(0, false, false).watcher);
    test(&shared);
    shared.begin_shutdown();
    context::with_worker(&worker, || worker.end());
}

/// Nothing is known of the first poll of a future in `block_on`, which may be long.
#[test]
fn who_becomes_a_guest_wakes_a_drowsy_watcher() {
    with_guest(|shared| {
        // ORD relaxed: of this thread.
        shared.sleep.set_drowsy();
        guest::block_on(shared, async {
            let task = shared.spawn(async {});
            assert!(!shared.idle.is_parked(0));
            drop(task);
        });
    });
}

/// `main` may be a loop that ticks, or accepts.
#[test]
fn a_future_of_block_on_that_is_always_quick_lets_a_drowsy_watcher_sleep() {
    with_guest(|shared| {
        let drowsy_after_a_poll = async || {
            // ORD relaxed: of this thread.
            shared.sleep.set_drowsy();
            crate::task::yield_now().await;
            // ORD relaxed: of this thread.
            shared.sleep.is_drowsy()
        };
        guest::block_on(shared, async {
            let is_known = || {
                context::current_member(|worker| {
                    // ORD relaxed: of this thread.
                    shared.quick.knows(worker.unwrap().slot.kind.load(Relaxed))
                })
            };
            for polls in 1..32 {
                assert!(!is_known(), "known in its poll {polls}");
                assert!(!drowsy_after_a_poll().await, "roused before poll {}", polls + 1);
            }
            // The machine may be busy, so that some take long.
            while !is_known() {
                crate::task::yield_now().await;
            }
            assert!(drowsy_after_a_poll().await);
        });
    });
}

/// It may be so again: `main` may be a loop that computes for long from time to time.
#[test]
fn a_future_of_block_on_that_was_caught_in_a_slow_poll_is_never_quick_again() {
    with_guest(|shared| {
        guest::block_on(shared, async {
            let kind = || {
                context::current_member(|worker| {
                    // ORD relaxed: of this thread.
                    worker.unwrap().slot.kind.load(Relaxed)
                })
            };
            while !shared.quick.knows(kind()) {
                crate::task::yield_now().await;
            }
            // The worker's looks: the first remembers how many polls there were.
            let park = shared.park_of(0);
            let watcher = Worker::new(shared, 0, &park);
            let mut watch = watcher.begin_watch();
            let _ = watcher.look_after_others(&mut watch);
            std::thread::sleep(2 * FIRST_LOOK);
            let _ = watcher.look_after_others(&mut watch);
            for _ in 0..100 {
                assert!(!shared.quick.knows(kind()));
                crate::task::yield_now().await;
            }
        });
    });
}

/// The one that looks at the driver just when the watcher goes to sleep for good leaves it to nobody.
#[test]
fn a_driver_that_is_looked_at_is_not_forgotten() {
    with_members(|shared, members| {
        get_up(&shared.idle, 1);
        // As in `look_at_driver`.
        if !shared.idle.load().has_driver(1) {
            assert!(shared.idle.take_driver(1));
        }
        members[0].roles.set(Roles { driver: false, watcher: true });
        members[0].woke(0, members[0].roles.get());
        shared.idle.release_driver(1);
        let summary = shared.idle.load();
        assert!(summary.has_watcher() || summary.driver_taken(), "{summary:?}");
    });
}
