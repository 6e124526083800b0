use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::{Arc, AtomicUsize, UnsafeCell, thread};

use super::{Injector, Linked};

struct Node {
    next: UnsafeCell<Option<NonNull<Node>>>,
}

// SAFETY: a cell returns what was stored; loom checks that accesses are ordered.
unsafe impl Linked for Node {
    unsafe fn next(node: NonNull<Self>) -> Option<NonNull<Self>> {
        // SAFETY: alive and the caller's alone, says the caller.
        unsafe { node.as_ref() }.next.with(|next| unsafe { *next })
    }
    unsafe fn set_next(node: NonNull<Self>, next: Option<NonNull<Self>>) {
        // SAFETY: alive and the caller's alone, says the caller.
        unsafe { node.as_ref() }.next.with_mut(|place| unsafe { *place = next });
    }
}

/// Shared by the threads of a model.
struct World {
    nodes: Vec<Node>,
    queue: Injector<Node>,
    taken: AtomicUsize,
}

// SAFETY: loom checks the accesses to the nodes.
unsafe impl Send for World {}
// SAFETY: loom checks the accesses to the nodes.
unsafe impl Sync for World {}

#[test]
fn producers_and_a_batching_consumer() {
    loom::model(|| {
        let world = Arc::new(World {
            nodes: (0..3).map(|_| Node { next: UnsafeCell::new(None) }).collect(),
            queue: Injector::new(),
            taken: AtomicUsize::new(0),
        });
        let take = |world: &World, choosy: bool| {
            let mut batch = world.queue.consumer().pop_batch(2, (!choosy).then_some(|_| true));
            while let Some(node) = batch.pop() {
                assert!(!choosy || node != NonNull::from(&world.nodes[0]));
                world.taken.fetch_add(1, Relaxed);
            }
        };
        let single = thread::spawn({
            let world = world.clone();
            // SAFETY: the world outlives the queue.
            move || unsafe { world.queue.set_aside(NonNull::from(&world.nodes[0])) }
        });
        let consumer = thread::spawn({
            let world = world.clone();
            move || take(&world, true)
        });
        world.queue.push_batch(world.nodes[1..].iter().map(NonNull::from).collect());
        single.join().unwrap();
        consumer.join().unwrap();
        while !world.queue.is_empty_for(false) {
            take(&world, false);
        }
        assert_eq!(world.taken.load(Relaxed), 3);
    });
}
