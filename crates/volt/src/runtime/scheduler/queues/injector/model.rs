use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::{Arc, AtomicUsize, UnsafeCell, explore, thread};

use super::{Chain, Consumer, Injector, Linked};

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

impl World {
    /// Three nodes and an empty queue.
    fn new() -> Arc<Self> {
        Arc::new(Self {
            nodes: (0..3).map(|_| Node { next: UnsafeCell::new(None) }).collect(),
            queue: Injector::new(),
            taken: AtomicUsize::new(0),
        })
    }
}

// SAFETY: loom checks the accesses to the nodes.
unsafe impl Send for World {}
// SAFETY: loom checks the accesses to the nodes.
unsafe impl Sync for World {}

#[test]
fn producers_and_a_batching_consumer() {
    explore(|| {
        let world = World::new();
        let take = |world: &World, choosy: bool| {
            let mut batch = world.queue.consumer().pop_batch(2, (!choosy).then_some(|_| true), 1);
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
        world.queue.push_burst(world.nodes[1..].iter().map(NonNull::from).collect(), 0);
        single.join().unwrap();
        consumer.join().unwrap();
        while !world.queue.is_empty_for(false) {
            take(&world, false);
        }
        assert_eq!(world.taken.load(Relaxed), 3);
    });
}

/// One waits for the other, which does not wait; what one leaves, the other one takes, in order.
#[test]
fn two_consumers_against_a_producer() {
    explore(|| {
        let world = World::new();
        world.queue.push_batch(world.nodes[..2].iter().map(NonNull::from).collect());
        let producer = thread::spawn({
            let world = world.clone();
            // SAFETY: the world outlives the queue.
            move || unsafe { world.queue.push(NonNull::from(&world.nodes[2])) }
        });
        let take = |world: &World, consumer: Option<Consumer<'_, Node>>| {
            let mut batch = consumer.map_or(Chain::new(), |it| it.pop_batch(1, Some(|_| true), 0));
            let taken = batch.pop();
            assert!(world.queue.len() <= 3, "a length below 0");
            world.taken.fetch_add(usize::from(taken.is_some()), Relaxed);
            taken
        };
        let other = thread::spawn({
            let world = world.clone();
            move || take(&world, world.queue.try_consumer()).map(|node| node.as_ptr() as usize)
        });
        let first = take(&world, Some(world.queue.consumer())).expect("two were there");
        let second = other.join().unwrap();
        let address = |index: usize| NonNull::from(&world.nodes[index]).as_ptr() as usize;
        let oldest = usize::from(second == Some(address(0)));
        assert_eq!(first.as_ptr() as usize, address(oldest), "not the oldest that was left");
        producer.join().unwrap();
        while !world.queue.is_empty_for(false) {
            take(&world, Some(world.queue.consumer()));
        }
        assert_eq!(world.taken.load(Relaxed), 3);
    });
}
