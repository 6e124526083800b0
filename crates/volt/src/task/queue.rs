//! A queue of runnable tasks that allocates nothing: each task has the link inside.

use std::ptr::NonNull;

use super::header::Header;
use super::notified::Notified;

/// First in, first out. Whoever owns the queue owns the `Notified`s in it; dropping it cancels
/// their tasks.
pub(crate) struct TaskQueue {
    head: Option<NonNull<Header>>,
    tail: Option<NonNull<Header>>,
    len: usize,
}

// SAFETY: the queue consists of `Notified`s, which are `Send`.
unsafe impl Send for TaskQueue {}

impl TaskQueue {
    /// An empty queue.
    pub(crate) const fn new() -> Self {
        Self { head: None, tail: None, len: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// Appends a task.
    pub(crate) fn push(&mut self, task: Notified) {
        let task = task.into_raw();
        // SAFETY: we hold its `Notified`.
        unsafe { Header::set_queue_next(task, None) };
        match self.tail.replace(task) {
            None => self.head = Some(task),
            // SAFETY: the queue holds the `Notified`s of all tasks in it.
            Some(tail) => unsafe { Header::set_queue_next(tail, Some(task)) },
        }
        self.len += 1;
    }

    /// Takes the oldest task.
    pub(crate) fn pop(&mut self) -> Option<Notified> {
        let task = self.head?;
        // SAFETY: the queue holds the `Notified`s of all tasks in it.
        self.head = unsafe { Header::queue_next(task) };
        if self.head.is_none() {
            self.tail = None;
        }
        self.len -= 1;
        // SAFETY: `push` turned it into this pointer, which is in the queue no more.
        Some(unsafe { Notified::from_raw(task) })
    }

    /// Moves all tasks of `other` to the end of this queue.
    pub(crate) fn append(&mut self, other: &mut Self) {
        let other = std::mem::take(other);
        let Some(first) = other.head else { return };
        match self.tail {
            None => self.head = Some(first),
            // SAFETY: the queue holds the `Notified`s of all tasks in it.
            Some(tail) => unsafe { Header::set_queue_next(tail, Some(first)) },
        }
        self.tail = other.tail;
        self.len += other.len;
        std::mem::forget(other);
    }
}

impl Default for TaskQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TaskQueue {
    fn drop(&mut self) {
        while let Some(task) = self.pop() {
            drop(task);
        }
    }
}

impl std::fmt::Debug for TaskQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskQueue").field("len", &self.len).finish()
    }
}
