use volt_sync::internal::primitive::{Arc, UnsafeCell, explore, thread};

use crate::runtime::scheduler::idle::{Idle, SelfUnpark};

struct World {
    idle: Idle,
    driver: UnsafeCell<usize>,
}

// SAFETY: loom checks the accesses to the cell.
unsafe impl Sync for World {}
// SAFETY: loom checks that the accesses to the cell are ordered.
unsafe impl Send for World {}

impl World {
    fn turn(&self) {
        // SAFETY: the caller has the driver.
        self.driver.with_mut(|turns| unsafe { *turns += 1 });
    }

    fn member(&self, index: usize) {
        if self.idle.park(index, false, true).driver {
            self.turn();
        }
        // Nobody claims: but the other one may hold the last ticket for a moment.
        while self.idle.unpark_self(index, false) != SelfUnpark::Up {
            thread::yield_now();
        }
        assert!(!self.idle.load().has_driver(index));
        // A look in passing.
        if self.idle.take_driver(index) {
            self.turn();
            self.idle.release_driver(index);
        }
    }
}

/// The driver passes from member to member with its content; two never have it.
#[test]
fn the_driver_is_handed_over() {
    explore(|| {
        let idle = Idle::new(2);
        (0..2).for_each(|_| idle.attach());
        let world = Arc::new(World { idle, driver: UnsafeCell::new(0) });
        let other = thread::spawn({
            let world = world.clone();
            move || world.member(1)
        });
        world.member(0);
        other.join().unwrap();
        assert!(!world.idle.load().driver_taken());
    });
}
