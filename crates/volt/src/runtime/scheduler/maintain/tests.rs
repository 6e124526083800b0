//! Who is woken for what is found in the driver.

use crate::runtime::context;
use crate::runtime::scheduler::by_hand;
use crate::runtime::scheduler::idle::Roles;
use crate::runtime::scheduler::worker::{Stage, Worker};

/// Member 1 finds `found` tasks in the driver. True if nobody is woken to share them.
fn keeps_what_it_finds(found: usize, rested: bool, quick: bool) -> bool {
    let mut keeps = false;
    by_hand::with_members(|shared, [watcher, finds, other]| {
        assert!(shared.idle.park(watcher.index, false, false).watcher);
        let _ = (shared.idle.park(other.index, false, false), shared.idle.park(1, false, false));
        assert!(shared.idle.load().has_driver(finds.index));
        let kind = |worker: &Worker<'_>| {
            let task = worker.slot.ring.pop().unwrap();
            worker.push(task);
            // SAFETY: the ring has its `Notified`.
            unsafe { task.as_ref() }.type_key()
        };
        context::with_worker(finds, || {
            let find = |_| shared.spawn(async {});
            if quick {
                let mut first = None;
                finds.turn_driver(|_, _| first = Some(find(0)));
                shared.quick.learn(kind(finds));
                drop(finds.slot.ring.pop().map(|task| finds.adopt(task)));
            }
            let mut tasks = Vec::new();
            finds.turn_driver(|_, _| tasks.extend((0..found).map(find)));
            finds.rested.set(rested);
            finds.roles.set(Roles { driver: true, watcher: false });
            finds.stage.set(Stage::Asleep);
            finds.woke(0, finds.roles.get());
            assert!(finds.is_running());
            keeps = shared.idle.is_parked(watcher.index) && shared.idle.is_parked(other.index);
        });
    });
    keeps
}

#[test]
fn a_few_quick_tasks_that_a_rested_member_finds_wake_nobody_else() {
    assert!(keeps_what_it_finds(3, true, true));
    assert!(!keeps_what_it_finds(4, true, true));
    assert!(!keeps_what_it_finds(3, false, true));
    assert!(!keeps_what_it_finds(3, true, false));
    assert!(keeps_what_it_finds(1, false, false), "nothing is left to share");
}
