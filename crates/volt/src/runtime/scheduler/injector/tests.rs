use std::cell::Cell;
use std::ptr::NonNull;

use super::{Chain, Injector, Linked, MAX_BATCH, MIN_BATCH};

struct Node {
    value: usize,
    next: Cell<Option<NonNull<Node>>>,
}

// SAFETY: a cell returns what was stored.
unsafe impl Linked for Node {
    unsafe fn next(node: NonNull<Self>) -> Option<NonNull<Self>> {
        // SAFETY: alive, says the caller.
        unsafe { node.as_ref() }.next.get()
    }
    unsafe fn set_next(node: NonNull<Self>, next: Option<NonNull<Self>>) {
        // SAFETY: alive, says the caller.
        unsafe { node.as_ref() }.next.set(next);
    }
}

fn nodes(count: usize) -> Vec<Node> {
    (0..count).map(|value| Node { value, next: Cell::new(None) }).collect()
}

fn values(mut chain: Chain<Node>) -> Vec<usize> {
    // SAFETY: the tests keep the nodes.
    std::iter::from_fn(|| chain.pop()).map(|node| unsafe { node.as_ref() }.value).collect()
}

#[test]
fn tasks_come_out_in_order_singly_and_in_batches() {
    let (nodes, queue) = (nodes(10), Injector::new());
    // SAFETY: the nodes outlive the queue, and are pushed once.
    unsafe { queue.push(NonNull::from(&nodes[0])) };
    queue.push_batch(nodes[1..9].iter().map(NonNull::from).collect());
    // SAFETY: the nodes outlive the queue, and each is pushed once.
    unsafe { queue.push(NonNull::from(&nodes[9])) };
    assert_eq!(queue.len(), 10);
    // SAFETY: the nodes are alive.
    assert_eq!(unsafe { queue.pop().unwrap().as_ref() }.value, 0);
    assert_eq!(values(queue.pop_batch(3)), [1, 2, 3]);
    assert_eq!(values(queue.pop_batch(0)), []);
    assert_eq!(values(queue.pop_batch(100)), [4, 5, 6, 7, 8, 9]);
    assert!(queue.is_empty() && queue.pop().is_none());
}

#[test]
fn a_share_is_fair_and_within_bounds() {
    let (nodes, queue) = (nodes(400), Injector::new());
    assert_eq!(queue.fair_share(4), MIN_BATCH);
    queue.push_batch(nodes.iter().map(NonNull::from).collect());
    assert_eq!(queue.fair_share(8), 50);
    assert_eq!(queue.fair_share(2), MAX_BATCH);
    assert_eq!(queue.fair_share(1000), MIN_BATCH);
}
