//! Whoever runs has an alarm that goes off, whatever others do with it meanwhile.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use volt_sync::internal::primitive::{Arc, AtomicBool, explore, thread};

use super::{AWAKE, CALM_LOOK, Doze};
use crate::runtime::scheduler::idle::{Idle, SelfUnpark};

/// Member 0 watches, and dozes.
struct World {
    idle: Idle,
    doze: Doze,
    is_set: AtomicBool,
}

impl World {
    fn new(dozes: bool) -> Arc<Self> {
        let world = Self { idle: Idle::new(3), doze: Doze::new(), is_set: AtomicBool::new(false) };
        for index in 0..3 {
            world.idle.attach();
            let _ = world.idle.park(index, false, index == 1);
        }
        if dozes {
            world.begin(Some(CALM_LOOK));
        }
        Arc::new(world)
    }

    fn set(&self) -> impl Fn(Option<Duration>) {
        |after| self.is_set.store(after.is_some(), SeqCst)
    }

    fn all_parked(&self) -> bool {
        self.idle.load().all_parked()
    }

    /// As `Worker::doze`.
    fn begin(&self, interval: Option<Duration>) {
        self.doze.begin(0, interval, || self.all_parked(), self.set());
    }

    /// As `Worker::wait`, of one that was woken.
    fn get_up(&self) {
        assert_eq!(self.idle.unpark_self(2, false), SelfUnpark::Up);
        self.doze.put_off(|| 0, || true, self.set());
    }

    fn check(&self) {
        assert_ne!(self.doze.load(), AWAKE);
        assert!(self.is_set.load(SeqCst), "member 2 runs");
    }
}

/// While member 2 gets up, another one does something with the alarm.
fn against_who_gets_up(dozes: bool, act: fn(&World)) {
    explore(move || {
        let world = World::new(dozes);
        let theirs = world.clone();
        let other = thread::spawn(move || theirs.get_up());
        act(&world);
        other.join().unwrap();
        world.check();
    });
}

#[test]
fn who_gets_up_sets_an_alarm_that_is_off() {
    against_who_gets_up(true, |world| {
        let _ = world.doze.rest(|| 0, || world.all_parked(), world.set());
    });
}

#[test]
fn a_watcher_that_begins_to_rest_against_who_gets_up() {
    against_who_gets_up(false, |world| world.begin(None));
}
