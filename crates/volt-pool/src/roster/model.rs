use std::ptr;

use super::Roster;
use crate::worker::Worker;
use volt_sync::internal::primitive::{Arc, explore, thread};

fn publish(roster: &Roster) -> usize {
    let index = roster.reserve();
    roster.publish(index, Box::new(Worker::new(ptr::null(), index, None)));
    index
}

/// Looks until there is a record; loom reports one that is seen before it is made.
fn look(roster: &Roster, index: usize) {
    while roster.get(index).is_none() {
        thread::yield_now();
    }
}

#[test]
fn a_published_record_is_seen_whole() {
    explore(|| {
        let roster = Arc::new(Roster::new());
        // The segment is there before the threads are.
        publish(&roster);
        let other = roster.clone();
        let thread = thread::spawn(move || publish(&other));
        look(&roster, 1);
        thread.join().unwrap();
    });
}

#[test]
fn the_segment_is_seen_with_its_slots() {
    explore(|| {
        let roster = Arc::new(Roster::new());
        let (first, second) = (roster.clone(), roster.clone());
        let threads = [first, second].map(|roster| thread::spawn(move || publish(&roster)));
        look(&roster, 0);
        let indices = threads.map(|thread| thread.join().unwrap());
        assert_eq!(indices[0] + indices[1], 1, "each has a place of its own");
        look(&roster, 1);
    });
}
