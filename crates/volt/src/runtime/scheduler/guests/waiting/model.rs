use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::{Arc, AtomicBool, Mutex, explore, thread};

use super::{Park, Waiting};

/// The place, and an injector.
struct World {
    waiting: Waiting,
    taken: AtomicBool,
    tasks: Mutex<u32>,
}

/// A visitor against a thread that claims the place, and then spawns: what the visitor takes of that it gives back, and it
/// is woken, or has never come.
#[test]
fn a_visitor_runs_nothing_of_the_thread_that_claims_its_place() {
    explore(|| {
        let taken = AtomicBool::new(false);
        let world = Arc::new(World { waiting: Waiting::new(), taken, tasks: Mutex::new(0) });
        let theirs = world.clone();
        let visitor = thread::spawn(move || {
            let park = Arc::new(Park::new());
            theirs.waiting.add(&park);
            // ORD relaxed: a place is taken once here.
            if theirs.waiting.is_claimed() || theirs.taken.swap(true, Relaxed) {
                return (0, park.is_notified());
            }
            theirs.waiting.begin_visit(&park);
            let found = std::mem::take(&mut *theirs.tasks.lock().unwrap());
            let asked = theirs.waiting.asks_visitor();
            if asked {
                *theirs.tasks.lock().unwrap() += found;
            }
            theirs.waiting.end_visit();
            let ran = if asked { 0 } else { found };
            (ran, park.is_notified())
        });
        // ORD relaxed: as above.
        let has_place = !world.taken.swap(true, Relaxed);
        if !has_place {
            world.waiting.claim();
        }
        *world.tasks.lock().unwrap() += 1;
        let (ran, woken) = visitor.join().unwrap();
        if has_place {
            // Its own wake-up is the next `wake_all`.
            assert!(!woken);
        } else {
            assert_eq!(ran, 0, "a task of the thread that waits for the visitor to leave");
            world.waiting.end_claim();
            assert!(!world.waiting.is_claimed() && !world.waiting.asks_visitor());
        }
        assert_eq!(*world.tasks.lock().unwrap() + ran, 1);
    });
}
