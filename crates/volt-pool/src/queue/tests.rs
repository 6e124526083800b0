use std::ptr::NonNull;

use super::Queue;
use crate::task::{Action, Task, TaskList};

unsafe fn nothing(_: NonNull<Task>, _: Action) {}

fn push(queue: &Queue, task: &Task) -> Result<bool, super::Closed> {
    // SAFETY: the tests' tasks outlive the queue and are pushed once.
    unsafe { queue.push((NonNull::from(task), NonNull::from(task))) }
}

#[test]
fn the_first_push_is_told_and_the_last_unlock_finds_nothing() {
    let (queue, a, b) = (Queue::new(), Task::new(nothing), Task::new(nothing));
    assert!(queue.is_empty());
    assert!(push(&queue, &a).unwrap());
    assert!(!push(&queue, &b).unwrap());
    let mut consumer = queue.try_lock().unwrap();
    assert!(queue.try_lock().is_none(), "one consumer at a time");
    assert_eq!(consumer.pop(), Some(NonNull::from(&b)));
    assert_eq!(consumer.pop(), Some(NonNull::from(&a)));
    assert_eq!(consumer.pop(), None);
    assert!(!consumer.unlock());
    assert!(queue.is_empty());
}

#[test]
fn what_is_pushed_while_consuming_comes_after_the_catch() {
    let tasks: Vec<Task> = (0..3).map(|_| Task::new(nothing)).collect();
    let queue = Queue::new();
    push(&queue, &tasks[0]).unwrap();
    push(&queue, &tasks[1]).unwrap();
    let mut consumer = queue.try_lock().unwrap();
    assert_eq!(consumer.pop(), Some(NonNull::from(&tasks[1])));
    push(&queue, &tasks[2]).unwrap();
    assert!(consumer.unlock(), "one cached, one pushed");
    let mut consumer = queue.try_lock().unwrap();
    assert_eq!(consumer.pop(), Some(NonNull::from(&tasks[0])));
    assert_eq!(consumer.pop(), Some(NonNull::from(&tasks[2])));
    assert!(!consumer.unlock());
}

#[test]
fn a_closed_queue_refuses_and_still_gives_what_it_has() {
    let (queue, a, b) = (Queue::new(), Task::new(nothing), Task::new(nothing));
    push(&queue, &a).unwrap();
    queue.close();
    assert!(push(&queue, &b).is_err());
    let mut list = TaskList::new();
    queue.drain(&mut list);
    assert_eq!(list.len(), 1);
    assert!(push(&queue, &b).is_err());
}

#[test]
fn a_drain_in_order_gives_the_oldest_first() {
    let tasks = [(); 5].map(|()| Task::new(nothing));
    let queue = Queue::new();
    let mut list = TaskList::new();
    push(&queue, &tasks[0]).unwrap();
    push(&queue, &tasks[1]).unwrap();
    push(&queue, &tasks[2]).unwrap();
    queue.drain_in_order(&mut list);
    push(&queue, &tasks[3]).unwrap();
    push(&queue, &tasks[4]).unwrap();
    queue.drain_in_order(&mut list);
    assert!(queue.is_empty());
    for task in &tasks {
        assert_eq!(list.pop(), Some(NonNull::from(task)));
    }
    assert_eq!(list.len(), 0);
}
