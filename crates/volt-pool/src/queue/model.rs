use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use super::Queue;
use crate::task::{Action, Task};
use volt_sync::internal::primitive::{Arc, AtomicU32, UnsafeCell, explore, spin, thread};

#[repr(C)]
struct Node {
    task: Task,
    value: UnsafeCell<u32>,
    runs: AtomicU32,
}

unsafe fn nothing(_: NonNull<Task>, _: Action) {}

impl Node {
    fn run(task: NonNull<Task>) {
        // SAFETY: the models' tasks are nodes.
        let node = unsafe { task.cast::<Self>().as_ref() };
        node.value.with_mut(|_| ());
        node.runs.fetch_add(1, Relaxed);
    }
}

struct Shared {
    queue: Queue,
    nodes: Vec<Node>,
    ran: AtomicU32,
}

// SAFETY: the nodes' payloads are checked by loom.
unsafe impl Sync for Shared {}
// SAFETY: as for the one above.
unsafe impl Send for Shared {}

impl Shared {
    fn new(queue: Queue, nodes: usize) -> Arc<Self> {
        let nodes = (0..nodes)
            .map(|_| Node {
                task: Task::new(nothing),
                value: UnsafeCell::new(0),
                runs: AtomicU32::new(0),
            })
            .collect();
        Arc::new(Self { queue, nodes, ran: AtomicU32::new(0) })
    }

    fn push(&self, index: usize) {
        let node = &self.nodes[index];
        node.value.with_mut(|_| ());
        let task = NonNull::from(node).cast();
        // SAFETY: alive, and in no queue.
        unsafe { self.queue.push((task, task)) }.unwrap();
    }

    /// Takes at most `most` tasks. True if the lock was got.
    fn consume(&self, most: usize) -> bool {
        let Some(mut consumer) = self.queue.try_lock() else { return false };
        for _ in 0..most {
            let Some(task) = consumer.pop() else { break };
            Node::run(task);
            self.ran.fetch_add(1, Relaxed);
        }
        let _ = consumer.unlock();
        true
    }

    fn finish(&self) {
        while !self.queue.is_empty() {
            assert!(self.consume(usize::MAX), "nobody else consumes any more");
        }
        for node in &self.nodes {
            assert_eq!(node.runs.load(Relaxed), 1, "each task runs once");
        }
    }
}

#[test]
fn pushed_tasks_arrive_whole_and_once() {
    explore(|| {
        let shared = Shared::new(Queue::new(), 2);
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.push(0);
            other.push(1);
        });
        // Loom would not switch between a lone look and the push.
        for _ in 0..3 {
            shared.consume(1);
            thread::yield_now();
        }
        thread.join().unwrap();
        shared.finish();
    });
}

/// A consumer that is at work catches what is pushed meanwhile.
#[test]
fn pushed_tasks_arrive_whole_and_once_while_others_are_consumed() {
    explore(|| {
        let shared = Shared::new(Queue::new(), 2);
        shared.push(0);
        let other = shared.clone();
        let thread = thread::spawn(move || other.push(1));
        let mut consumer = shared.queue.try_lock().unwrap();
        for _ in 0..3 {
            if let Some(task) = consumer.pop() {
                Node::run(task);
            }
            thread::yield_now();
        }
        let _ = consumer.unlock();
        thread.join().unwrap();
        shared.finish();
    });
}

#[test]
fn consumers_pass_the_cache_on() {
    explore(|| {
        let shared = Shared::new(Queue::new(), 3);
        shared.push(0);
        shared.push(1);
        let other = shared.clone();
        let thread = thread::spawn(move || other.consume(1));
        shared.push(2);
        shared.consume(1);
        thread.join().unwrap();
        shared.finish();
    });
}

/// Finding T8: whoever finds the lock held goes away, so the holder has to see what was pushed.
#[test]
fn the_holder_sees_what_was_pushed_behind_its_back() {
    explore(|| {
        let shared = Shared::new(Queue::new(), 2);
        shared.push(0);
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.push(1);
            // Whoever is notified of this push.
            other.queue.try_lock().is_none_or(|mut consumer| {
                while let Some(task) = consumer.pop() {
                    Node::run(task);
                }
                !consumer.unlock()
            })
        });
        if let Some(mut consumer) = shared.queue.try_lock() {
            if let Some(task) = consumer.pop() {
                Node::run(task);
            }
            if consumer.unlock() {
                // Told that something is left: looks until it is gone.
                let mut attempt = 0;
                while !shared.queue.is_empty() {
                    shared.consume(usize::MAX);
                    spin(attempt);
                    attempt += 1;
                }
            }
        }
        assert!(thread.join().unwrap());
        assert!(shared.queue.is_empty(), "a task is left and nobody was told");
    });
}

/// Finding K6: the seed's `new = CONSUMING | CACHED` forgets the tasks that were pushed while some
/// were cached.
#[test]
#[should_panic(expected = "")]
fn seed_defect_locking_forgets_what_was_pushed() {
    explore(|| {
        let shared = Shared::new(Queue { forgetful_lock: true, ..Queue::new() }, 3);
        shared.push(0);
        shared.push(1);
        let other = shared.clone();
        let thread = thread::spawn(move || other.consume(1));
        shared.push(2);
        shared.consume(1);
        thread.join().unwrap();
        shared.finish();
    });
}
