//! Who is woken for what is found in the driver.

use crate::runtime::context;
use crate::runtime::scheduler::by_hand;
use crate::runtime::scheduler::idle::Roles;
use crate::runtime::scheduler::parking::park::ROOT;
use crate::runtime::scheduler::worker::Stage;

/// What member 1 finds in the driver, and how it is.
#[derive(Clone, Copy)]
struct Case {
    found: usize,
    quick: bool,
    rested: bool,
    poll_ns: f32,
    /// Its own future was woken as well.
    root: bool,
    watched: bool,
}

/// The one in which it keeps as much as it may.
const FEW: Case =
    Case { found: 3, quick: true, rested: true, poll_ns: 5_000.0, root: false, watched: true };

impl Case {
    /// True if nobody is woken to share it.
    fn is_kept(self) -> bool {
        let mut keeps = false;
        by_hand::with_members(|shared, [first, finds, other]| {
            assert!(shared.idle.park(first.index, false, false).watcher);
            let _ = (shared.idle.park(2, false, false), shared.idle.park(1, false, false));
            assert!(shared.idle.load().has_driver(finds.index));
            context::with_worker(finds, || {
                let find = |_| shared.spawn(async {});
                if self.quick {
                    finds.turn_driver(|_, _| drop(find(0)));
                    let task = finds.adopt(finds.slot.ring.pop().unwrap());
                    shared.quick.learn(task.header().type_key());
                }
                let mut tasks = Vec::new();
                finds.turn_driver(|_, _| tasks.extend((0..self.found).map(find)));
                finds.rested.set(self.rested);
                finds.pace.set_poll_ns(self.poll_ns);
                finds.roots.set(u32::from(self.root));
                if self.root {
                    finds.park.unpark(ROOT);
                }
                if !self.watched {
                    shared.idle.release_watch(first.index);
                }
                let summary = shared.idle.load();
                keeps = !finds.shares_what_was_found(summary);
                finds.roles.set(Roles { driver: true, watcher: false });
                finds.stage.set(Stage::Asleep);
                finds.woke(0, finds.roles.get());
                assert!(finds.is_running());
                let sleep_on = [first, other].iter().all(|it| shared.idle.is_parked(it.index));
                assert_eq!(sleep_on, keeps && self.watched, "somebody has to watch");
            });
        });
        keeps
    }
}

#[test]
fn a_few_quick_tasks_that_a_rested_member_finds_wake_nobody_else() {
    assert!(FEW.is_kept());
    assert!(!Case { found: 4, ..FEW }.is_kept());
    assert!(!Case { quick: false, ..FEW }.is_kept());
    assert!(!Case { rested: false, ..FEW }.is_kept());
    assert!(!Case { poll_ns: 300_000.0, ..FEW }.is_kept());
    assert!(!Case { poll_ns: 0.0, ..FEW }.is_kept(), "nothing is known");
    assert!(!Case { root: true, ..FEW }.is_kept());
    assert!(!Case { watched: false, ..FEW }.is_kept());
    assert!(Case { found: 1, rested: false, quick: false, ..FEW }.is_kept(), "nothing to share");
}
