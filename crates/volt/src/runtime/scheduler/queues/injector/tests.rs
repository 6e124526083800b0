use std::cell::Cell;
use std::ptr::NonNull;

use super::{Chain, FOR_OTHERS, Injector, Linked, MAX_BATCH, MIN_BATCH, OWNERS};

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

/// Who takes, where that is all the same.
const ME: usize = 0;

const CHOOSY: Option<fn(NonNull<Node>) -> bool> = None;

/// All but 13 and 14.
fn is_quick(node: NonNull<Node>) -> bool {
    // SAFETY: the tests keep the nodes.
    ![13, 14].contains(&unsafe { node.as_ref() }.value)
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
    assert_eq!(values(queue.consumer().pop_batch(3, Some(is_quick), ME)), [1, 2, 3]);
    assert_eq!(values(queue.consumer().pop_batch(0, Some(is_quick), ME)), []);
    assert_eq!(values(queue.consumer().pop_batch(100, Some(is_quick), ME)), [4, 5, 6, 7, 8, 9]);
    assert!(queue.is_empty_for(false) && queue.pop().is_none());
}

#[test]
fn a_burst_is_told_from_what_comes_from_elsewhere() {
    let (nodes, queue) = (nodes(20), Injector::new());
    let chain = |range: std::ops::Range<usize>| nodes[range].iter().map(NonNull::from).collect();
    let take = |count| values(queue.consumer().pop_batch(count, Some(is_quick), ME));
    let has_only_bursts = || queue.consumer().has_only_bursts();
    assert!(has_only_bursts());
    queue.push_burst(chain(0..4), ME);
    assert!(has_only_bursts());
    // SAFETY: the nodes outlive the queue, and each is pushed once.
    unsafe { queue.push(NonNull::from(&nodes[4])) };
    queue.push_burst(chain(5..8), ME);
    assert!(!has_only_bursts());
    assert_eq!(take(2), [4, 0], "one at least that is of none");
    assert!(has_only_bursts());
    queue.push_batch(chain(8..10));
    assert_eq!(take(4), [8, 1, 2, 3], "as large a part of both");
    assert!(!has_only_bursts());
    // SAFETY: the nodes outlive the queue, and each is pushed once.
    unsafe { queue.set_aside(NonNull::from(&nodes[15])) };
    assert_eq!(take(9), [15, 9, 5, 6, 7], "beside what was set aside there are none");
    assert!(has_only_bursts() && queue.is_empty_for(false));
    queue.push_burst(chain(16..18), ME);
    assert_eq!(values(queue.consumer().pop_batch(9, CHOOSY, ME)), [16, 17]);
}

#[test]
fn a_burst_is_first_for_who_has_sent_it_and_others_have_their_turn() {
    const EACH: usize = 100;
    let (nodes, queue) = (nodes(3 * EACH), Injector::new());
    for (owner, nodes) in nodes.chunks(EACH).enumerate() {
        // The last one is beyond those that have lists of their own.
        let owner = if owner == 2 { OWNERS + 2 } else { owner };
        queue.push_burst(nodes.iter().map(NonNull::from).collect(), owner);
    }
    assert_eq!(queue.len(), 3 * EACH);
    let take = |owner| values(queue.consumer().pop_batch(2, Some(is_quick), owner));
    assert_eq!((take(1), take(OWNERS + 2), take(7)), (vec![100, 101], vec![200, 201], vec![0, 1]));
    let mut others = 0;
    for _ in 0..4 * FOR_OTHERS {
        let taken = take(0);
        others += taken.iter().filter(|&&value| value >= EACH).count();
        // As many more come.
        queue.push_burst(taken.iter().map(|&value| NonNull::from(&nodes[value])).collect(), 0);
    }
    assert!((1..=8).contains(&others), "{others}");
    assert_eq!(values(queue.consumer().pop_batch(1000, CHOOSY, 3)).len(), 3 * EACH - 6);
}

#[test]
fn a_push_does_not_wait_for_who_takes() {
    let (nodes, queue) = (nodes(3), Injector::new());
    let takes = queue.consumer();
    // SAFETY: the nodes outlive the queue, and are pushed once.
    unsafe { queue.push(NonNull::from(&nodes[0])) };
    // SAFETY: the nodes outlive the queue, and are pushed once.
    unsafe { queue.set_aside(NonNull::from(&nodes[1])) };
    queue.push_batch(std::iter::once(NonNull::from(&nodes[2])).collect());
    assert_eq!(queue.len(), 3);
    drop(takes);
    assert_eq!(values(queue.consumer().pop_batch(3, Some(is_quick), ME)), [1, 0, 2]);
}

#[test]
fn a_share_is_fair_and_within_bounds() {
    let (nodes, queue) = (nodes(400), Injector::new());
    assert_eq!(queue.fair_share(4, false), MIN_BATCH);
    queue.push_batch(nodes.iter().map(NonNull::from).collect());
    assert_eq!(queue.fair_share(8, false), 50);
    assert_eq!(queue.fair_share(2, false), MAX_BATCH);
    assert_eq!(queue.fair_share(1000, false), MIN_BATCH);
}

#[test]
fn a_batch_has_one_that_was_set_aside_and_quick_ones_behind_it() {
    let (nodes, queue) = (nodes(20), Injector::new());
    queue.push_batch(nodes[..10].iter().map(NonNull::from).collect());
    assert!(!queue.has_set_aside());
    for node in &nodes[10..] {
        // SAFETY: the nodes outlive the queue, and each is pushed once.
        unsafe { queue.set_aside(NonNull::from(node)) };
    }
    assert!(queue.has_set_aside());
    assert_eq!((queue.len(), queue.fair_share(2, false), queue.fair_share(2, true)), (20, 10, 5));
    assert_eq!(
        values(queue.consumer().pop_batch(4, Some(is_quick), ME)),
        [10, 11, 0, 1],
        "half of each"
    );
    assert_eq!(values(queue.consumer().pop_batch(3, CHOOSY, ME)), [2, 3, 4]);
    assert_eq!(
        values(queue.consumer().pop_batch(7, Some(is_quick), ME)),
        [12, 5, 6, 7, 8, 9],
        "13 is not quick"
    );
    assert_eq!(values(queue.consumer().pop_batch(100, CHOOSY, ME)), []);
    assert!(queue.is_empty_for(true) && !queue.is_empty_for(false));
    assert_eq!(values(queue.consumer().pop_batch(3, Some(is_quick), ME)), [13]);
    assert_eq!(values(queue.consumer().pop_batch(3, Some(is_quick), ME)), [14, 15, 16]);
    // SAFETY: the nodes outlive the queue, and this one is in no list.
    unsafe { queue.push(NonNull::from(&nodes[0])) };
    assert_eq!(values(queue.consumer().pop_batch(1, Some(is_quick), ME)), [17]);
    assert_eq!(values(queue.consumer().pop_batch(9, Some(is_quick), ME)), [18, 19, 0]);
    assert!(queue.is_empty_for(false) && !queue.has_set_aside());
}

/// So many open tasks come before the last of those that were set aside, all of which are not quick.
fn before_the_last(open: usize, aside: usize, count: usize) -> usize {
    let (nodes, queue) = (nodes(open + aside), Injector::new());
    queue.push_batch(nodes[..open].iter().map(NonNull::from).collect());
    for node in &nodes[open..] {
        // SAFETY: the nodes outlive the queue, and each is pushed once.
        unsafe { queue.set_aside(NonNull::from(node)) };
    }
    let mut taken = Vec::new();
    while queue.has_set_aside() {
        let batch = values(queue.consumer().pop_batch(count, Some(|_| false), ME));
        assert!((1..=count).contains(&batch.len()));
        taken.extend(batch);
    }
    taken.iter().filter(|&&value| value < open).count()
}

/// A task waits as long in one list as in the other, whichever is longer: neither is over long before the other.
#[test]
fn each_list_gives_as_large_a_part_of_its_tasks() {
    for (open, aside) in [(10, 1000), (300, 300), (1000, 10), (7, 500)] {
        for count in [1, 2, 5, 64] {
            let before = before_the_last(open, aside, count);
            assert!(before >= open / 2, "{open} {aside} {count}: {before}");
        }
    }
    for (open, aside) in [(1000, 10), (1000, 100)] {
        for count in [1, 2, 5] {
            let before = before_the_last(open, aside, count);
            assert!(before >= open * 9 / 10, "{open} {aside} {count}: {before}");
        }
    }
}

/// Quick ones go before those that wait for their turn beside what was set aside.
#[test]
fn quick_tasks_do_not_wait_for_slow_ones_that_were_set_aside() {
    let (nodes, queue) = (nodes(100), Injector::new());
    for node in [&nodes[99], &nodes[0], &nodes[98]] {
        // SAFETY: the nodes outlive the queue, and are pushed once.
        unsafe { queue.push(NonNull::from(node)) };
    }
    for node in &nodes[1..98] {
        // SAFETY: the nodes outlive the queue, and each is pushed once.
        unsafe { queue.set_aside(NonNull::from(node)) };
    }
    let is_first = |node: NonNull<Node>| {
        // SAFETY: the test keeps the nodes.
        unsafe { node.as_ref() }.value == 0
    };
    assert_eq!(values(queue.consumer().pop_batch(8, Some(is_first), ME)), [1, 0]);
    assert_eq!(values(queue.consumer().pop_batch(8, Some(is_first), ME)), [2]);
    assert_eq!(values(queue.consumer().pop_batch(100, CHOOSY, ME)), [99, 98], "in their order");
    while queue.pop().is_some() {}
}
