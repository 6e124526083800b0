//! The parking protocol with a queue that is a counter: loom reports a deadlock if a wake-up is
//! lost. `worker/model.rs` has the same with the real worker.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};

use volt_sync::internal::primitive::{Arc, AtomicBool, AtomicUsize, UnsafeCell, explore, thread};

use super::{Idle, SelfUnpark};
use crate::runtime::scheduler::parking::park::{CLAIMED, Park, ROOT};

struct World {
    idle: Idle,
    parks: Vec<Park>,
    queue: AtomicUsize,
    left: AtomicUsize,
    stop: AtomicBool,
}

impl World {
    fn new(members: usize, tasks: usize) -> Arc<Self> {
        let idle = Idle::new(members);
        (0..members).for_each(|_| idle.attach());
        Arc::new(Self {
            idle,
            parks: (0..members).map(|_| Park::new()).collect(),
            queue: AtomicUsize::new(0),
            left: AtomicUsize::new(tasks),
            stop: AtomicBool::new(false),
        })
    }

    fn push(&self) {
        self.queue.fetch_add(1, SeqCst);
        self.notify();
    }

    fn notify(&self) {
        if let Some(index) = self.idle.notify() {
            self.parks[index].unpark(CLAIMED);
        }
    }

    fn pop(&self) -> bool {
        let mut len = self.queue.load(Relaxed);
        while len > 0 {
            match self.queue.compare_exchange(len, len - 1, AcqRel, Relaxed) {
                Ok(_) => return true,
                Err(now) => len = now,
            }
        }
        false
    }

    /// Runs a task; the last one stops everybody.
    fn run(&self) {
        if self.left.fetch_sub(1, AcqRel) == 1 {
            self.stop.store(true, SeqCst);
            while let Some(index) = self.idle.claim_any() {
                self.parks[index].unpark(CLAIMED);
            }
        }
    }

    fn work(&self, index: usize) {
        let mut searching = false;
        while !self.stop.load(Acquire) {
            if self.pop() {
                if std::mem::take(&mut searching)
                    && self.idle.end_search()
                    && self.queue.load(SeqCst) > 0
                {
                    self.notify();
                }
                self.run();
                continue;
            }
            if !searching {
                searching = self.idle.start_search();
                if searching {
                    continue;
                }
            }
            self.idle.park(index, searching, true);
            if self.queue.load(SeqCst) > 0 || self.stop.load(SeqCst) {
                if let Some(index) = self.idle.notify_preferring(index) {
                    self.parks[index].unpark(CLAIMED);
                }
            }
            if self.stop.load(SeqCst) {
                return;
            }
            while self.parks[index].sleep(None) == 0 {}
            self.idle.drop_roles(index);
            searching = true;
        }
    }
}

/// Finding P1: the parked bit, then the searchers, then a look at the queues.
#[test]
fn outside_push_against_parking() {
    explore(|| {
        let world = World::new(2, 1);
        let workers = [0, 1].map(|index| {
            let world = world.clone();
            thread::spawn(move || world.work(index))
        });
        world.push();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!(world.left.load(Relaxed), 0);
    });
}

/// Two pushes and one worker: the second push may come while the first is searched for.
#[test]
fn a_push_during_a_search_is_found() {
    explore(|| {
        let world = World::new(1, 2);
        let worker = thread::spawn({
            let world = world.clone();
            move || world.work(0)
        });
        world.push();
        world.push();
        worker.join().unwrap();
        assert_eq!(world.left.load(Relaxed), 0);
    });
}

/// Member 1 sets a task aside, while member 0, which takes anything since a moment ago, parks.
#[test]
fn a_task_that_is_set_aside_reaches_one_that_has_begun_to_take_it() {
    explore(|| {
        let world = World::new(2, 1);
        let choosy = Arc::new(AtomicBool::new(true));
        let taker = thread::spawn({
            let (world, choosy) = (world.clone(), choosy.clone());
            move || {
                choosy.store(false, Relaxed);
                world.work(0);
            }
        });
        let searching = world.idle.start_search();
        world.queue.fetch_add(1, SeqCst);
        if searching {
            world.idle.end_search();
        }
        if let Some(index) =
            world.idle.notify_taker(|| 2, |_, index| index == 0 && !choosy.load(Relaxed), |_| false)
        {
            world.parks[index].unpark(CLAIMED);
        }
        taker.join().unwrap();
        assert_eq!(world.left.load(Relaxed), 0);
    });
}

/// Member 0 gets up by itself, while member 1 is parked and somebody else claims one of them.
fn getting_up(claim: fn(&Idle) -> Option<usize>, parks_before: bool) {
    let world = World::new(2, 0);
    if parks_before {
        let _ = world.idle.park(0, false, false);
    }
    let _ = world.idle.park(1, false, true);
    let claimer = thread::spawn({
        let world = world.clone();
        move || {
            if let Some(index) = claim(&world.idle) {
                world.parks[index].unpark(CLAIMED);
            }
        }
    });
    if !parks_before {
        let _ = world.idle.park(0, false, true);
    }
    let mut claimed = false;
    loop {
        match world.idle.unpark_self(0, false) {
            SelfUnpark::Up => break,
            SelfUnpark::Claimed => {
                while world.parks[0].sleep(None) == 0 {}
                claimed = true;
                break;
            }
            SelfUnpark::Busy if world.parks[0].take() == CLAIMED => {
                claimed = true;
                break;
            }
            SelfUnpark::Busy => thread::yield_now(),
        }
    }
    claimer.join().unwrap();
    let other = world.parks[1].take() == CLAIMED;
    let summary = world.idle.load();
    assert_eq!(summary.searching(), usize::from(claimed) + usize::from(other));
    assert_eq!(summary.parked(), usize::from(!other));
    assert_eq!(world.idle.is_parked(1), !other);
    assert!(!world.idle.is_parked(0));
}

/// Finding P2: a member that gets up by itself while it is claimed, and while another one's claim
/// is under way, leaves the counts right.
#[test]
fn getting_up_against_claims() {
    explore(|| getting_up(Idle::notify, false));
}

/// The same with a claim of the watcher, which is the other member, or the one that gets up.
#[test]
fn getting_up_against_claims_of_the_watcher() {
    for parks_before in [false, true] {
        explore(move || getting_up(Idle::claim_watcher, parks_before));
    }
}

/// A claim is for whichever member has its bit set: also for one that parked after the ticket was
/// taken, and whose change of the packed word the claimer has not seen.
#[test]
fn a_claim_finds_the_members_place_to_sleep() {
    explore(|| {
        let places = [UnsafeCell::new(()), UnsafeCell::new(())];
        let world = Arc::new((World::new(2, 0), places));
        let _ = world.0.idle.park(1, false, true);
        let claimer = thread::spawn({
            let world = world.clone();
            move || {
                let index = world.0.idle.notify().expect("nobody searches, one is parked");
                // Loom checks that the member's access below comes before this one.
                world.1[index].with(|_| ());
            }
        });
        world.1[0].with_mut(|_| ());
        let _ = world.0.idle.park(0, false, true);
        claimer.join().unwrap();
    });
}

/// A guest gets up for its own future and leaves while others push.
#[test]
fn guest_leaves_while_others_push() {
    explore(|| {
        let world = World::new(2, 1);
        let worker = thread::spawn({
            let world = world.clone();
            move || world.work(0)
        });
        let pusher = thread::spawn({
            let world = world.clone();
            move || {
                world.parks[1].unpark(ROOT);
                world.push();
            }
        });
        let _ = world.idle.park(1, false, true);
        if world.queue.load(SeqCst) > 0 {
            if let Some(index) = world.idle.notify_preferring(1) {
                world.parks[index].unpark(CLAIMED);
            }
        }
        let mut reasons = 0;
        while reasons == 0 {
            reasons = world.parks[1].sleep(None);
        }
        let mut searching = reasons & CLAIMED != 0;
        while !searching {
            match world.idle.unpark_self(1, false) {
                SelfUnpark::Up => break,
                SelfUnpark::Busy if world.parks[1].take() & CLAIMED == 0 => thread::yield_now(),
                SelfUnpark::Busy => searching = true,
                SelfUnpark::Claimed => {
                    while world.parks[1].sleep(None) & CLAIMED == 0 {}
                    searching = true;
                }
            }
        }
        // The notification that it consumed is passed on.
        if searching && world.idle.end_search() && world.queue.load(SeqCst) > 0 {
            world.notify();
        }
        if world.idle.detach(1) {
            world.notify();
        }
        pusher.join().unwrap();
        worker.join().unwrap();
        assert_eq!(world.left.load(Relaxed), 0);
    });
}
