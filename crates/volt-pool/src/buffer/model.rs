use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use super::Buffer;
use crate::task::{Action, Task, TaskList};
use volt_sync::internal::primitive::{Arc, AtomicU32, UnsafeCell, explore, thread};

/// A task with a payload that only whoever has the task touches: loom reports a second one.
#[repr(C)]
struct Node {
    task: Task,
    value: UnsafeCell<u32>,
    runs: AtomicU32,
}

unsafe fn nothing(_: NonNull<Task>, _: Action) {}

impl Node {
    fn new() -> Self {
        Self { task: Task::new(nothing), value: UnsafeCell::new(0), runs: AtomicU32::new(0) }
    }

    fn task(&self) -> NonNull<Task> {
        NonNull::from(self).cast()
    }

    fn run(task: NonNull<Task>) {
        // SAFETY: the models' tasks are nodes.
        let node = unsafe { task.cast::<Self>().as_ref() };
        node.value.with_mut(|_| ());
        node.runs.fetch_add(1, Relaxed);
    }
}

struct Shared {
    buffer: Buffer,
    nodes: Vec<Node>,
}

// SAFETY: the nodes' payloads are checked by loom.
unsafe impl Sync for Shared {}
// SAFETY: as for the one above.
unsafe impl Send for Shared {}

fn check(count: usize, buffer: impl Fn() -> Buffer + Sync + Send + 'static, thieves: usize) {
    explore(move || {
        let nodes = (0..count).map(|_| Node::new()).collect();
        let shared = Arc::new(Shared { buffer: buffer(), nodes });
        let threads: Vec<_> = (0..thieves)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let own = Buffer::new();
                    // SAFETY: `own` is this thread's, and empty.
                    if let Some((task, _)) = unsafe { shared.buffer.steal_into(&own) } {
                        Node::run(task);
                    }
                    // SAFETY: `own` is this thread's ring.
                    while let Some(task) = unsafe { own.pop() } {
                        Node::run(task);
                    }
                })
            })
            .collect();
        for node in &shared.nodes {
            node.value.with_mut(|_| ());
            // SAFETY: this thread owns the ring.
            if let Err(task) = unsafe { shared.buffer.push(node.task()) } {
                let mut list = TaskList::new();
                // SAFETY: as for the one above.
                unsafe { shared.buffer.overflow(task, &mut list) };
                while let Some(task) = list.pop() {
                    Node::run(task);
                }
            }
        }
        // SAFETY: as for the one above.
        while let Some(task) = unsafe { shared.buffer.pop() } {
            Node::run(task);
        }
        for thread in threads {
            thread.join().unwrap();
        }
        for node in &shared.nodes {
            assert_eq!(node.runs.load(Relaxed), 1, "each task runs once");
        }
    });
}

#[test]
fn a_stolen_task_is_whole() {
    check(2, Buffer::new, 1);
}

#[test]
fn a_thief_never_reads_an_overwritten_slot() {
    check(5, Buffer::new, 1);
}

/// What a thief has moved into its own ring is stolen from there by another one.
#[test]
fn a_stolen_task_is_whole_when_it_is_stolen_again() {
    explore(|| {
        let nodes = (0..3).map(|_| Node::new()).collect();
        let first = Arc::new(Shared { buffer: Buffer::new(), nodes });
        let other = first.clone();
        let thread = thread::spawn(move || {
            let owned = Buffer::new();
            for node in &other.nodes {
                node.value.with_mut(|_| ());
                // SAFETY: this thread's own ring.
                unsafe { owned.push(node.task()) }.unwrap();
            }
            // SAFETY: the first thief's ring, which this thread plays as well; it is empty.
            let (task, moved) = unsafe { owned.steal_into(&other.buffer) }.unwrap();
            assert_eq!(moved, 1);
            Node::run(task);
            // SAFETY: this thread's own ring.
            Node::run(unsafe { owned.pop() }.unwrap());
        });
        let own = Buffer::new();
        let mut stolen = 0;
        for _ in 0..3 {
            // SAFETY: `own` is this thread's, and empty.
            if let Some((task, _)) = unsafe { first.buffer.steal_into(&own) } {
                Node::run(task);
                stolen += 1;
            }
            thread::yield_now();
        }
        thread.join().unwrap();
        // SAFETY: the thread that owned the ring has ended.
        while let Some(task) = unsafe { first.buffer.pop() } {
            Node::run(task);
            stolen += 1;
        }
        assert_eq!(stolen, 1);
        for node in &first.nodes {
            assert_eq!(node.runs.load(Relaxed), 1, "each task runs once");
        }
    });
}

#[test]
fn two_thieves_and_the_owner_share_without_loss() {
    check(2, Buffer::new, 2);
}

/// The seed's `pop` returns the slot of the new head.
#[test]
#[should_panic(expected = "")]
fn seed_defect_pop_reads_the_slot_after_the_one_it_took() {
    check(2, || Buffer { stale_head: true, ..Buffer::new() }, 1);
}
