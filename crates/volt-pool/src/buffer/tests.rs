use std::collections::VecDeque;
use std::ptr::NonNull;

use super::{Buffer, CAPACITY};
use crate::task::{Action, Task, TaskList};

unsafe fn nothing(_: NonNull<Task>, _: Action) {}

fn tasks(count: usize) -> Vec<Task> {
    (0..count).map(|_| Task::new(nothing)).collect()
}

fn at(tasks: &[Task], index: usize) -> NonNull<Task> {
    NonNull::from(&tasks[index])
}

#[test]
fn tasks_leave_in_the_order_in_which_they_came() {
    let (buffer, tasks) = (Buffer::new(), tasks(3 * CAPACITY));
    let mut expected = VecDeque::new();
    for (index, _) in tasks.iter().enumerate() {
        // SAFETY: one thread owns the ring; the tasks outlive it.
        unsafe { buffer.push(at(&tasks, index)) }.unwrap();
        expected.push_back(at(&tasks, index));
        if index % 3 != 0 {
            // SAFETY: one thread owns the ring.
            assert_eq!(unsafe { buffer.pop() }, expected.pop_front());
        }
        if expected.len() == CAPACITY {
            break;
        }
    }
    while let Some(task) = expected.pop_front() {
        // SAFETY: one thread owns the ring.
        assert_eq!(unsafe { buffer.pop() }, Some(task));
    }
    assert!(buffer.is_empty());
}

#[test]
fn a_full_ring_gives_half_of_itself_and_the_new_task_away() {
    let (buffer, tasks) = (Buffer::new(), tasks(CAPACITY + 1));
    for index in 0..CAPACITY {
        // SAFETY: one thread owns the ring; the tasks outlive it.
        unsafe { buffer.push(at(&tasks, index)) }.unwrap();
    }
    let last = at(&tasks, CAPACITY);
    // SAFETY: as for the one above.
    assert_eq!(unsafe { buffer.push(last) }, Err(last));
    let mut list = TaskList::new();
    // SAFETY: as for the one above.
    unsafe { buffer.overflow(last, &mut list) };
    assert_eq!(list.len(), CAPACITY / 2 + 1);
    for index in 0..CAPACITY / 2 {
        assert_eq!(list.pop(), Some(at(&tasks, index)));
    }
    assert_eq!(list.pop(), Some(last));
    for index in CAPACITY / 2..CAPACITY {
        // SAFETY: as for the one above.
        assert_eq!(unsafe { buffer.pop() }, Some(at(&tasks, index)));
    }
}

#[test]
fn a_thief_takes_the_older_half() {
    let (buffer, thief, tasks) = (Buffer::new(), Buffer::new(), tasks(5));
    for index in 0..5 {
        // SAFETY: one thread owns both rings; the tasks outlive them.
        unsafe { buffer.push(at(&tasks, index)) }.unwrap();
    }
    // SAFETY: as above; `thief` is empty.
    assert_eq!(unsafe { buffer.steal_into(&thief) }, Some((at(&tasks, 2), 2)));
    for (ring, index) in [(&thief, 0), (&thief, 1), (&buffer, 3), (&buffer, 4)] {
        // SAFETY: as for the one above.
        assert_eq!(unsafe { ring.pop() }, Some(at(&tasks, index)));
    }
    // SAFETY: as for the one above.
    assert_eq!(unsafe { buffer.steal_into(&thief) }, None);
}
