//! A thread's own ring of tasks: one producer, any number of consumers.
//!
//! Purpose: pushing costs no read-modify-write, taking one compare-and-swap, and a thief takes half
//! of the ring with a single one.
//!
//! Rejected:
//! * A Chase-Lev deque: last in, first out for the owner, but thieves take one task at a time and
//!   every `pop` of the owner needs a full fence. Fork-join, which wants that order, has its own
//!   stack (`worker.rs`).
//! * A head of 16 or 32 bits: a thief that sleeps for that many operations would claim tasks that
//!   were taken long ago (finding P8).
//!
//! State: `head..tail` (wrapping) are the positions that hold tasks; a task at position `p` is in
//! slot `p % CAPACITY`.
//!
//! Invariants:
//! 1. Only the owner writes `tail` and the slots; `tail - head <= CAPACITY`.
//! 2. A task belongs to whoever moves `head` past it.
//! 3. A slot is overwritten only after `head` was seen past its position.
//!
//! | Edge | Release side | Acquire side | Carries | Model that fails without it |
//! |------|--------------|--------------|---------|-----------------------------|
//! | [BU1] | `Buffer::push`, `Buffer::steal_into` (its own tail) | `Buffer::steal_into` (the victim's tail) | the slots and the tasks | `a_stolen_task_is_whole` |
//! | [BU2] | `Buffer::steal_into` | `Buffer::push` | that the thief has read the slots | none: without it a load could see a later store, which hardware may do but neither loom nor RC11 shows |
//!
//! Progress: lock-free. A failed compare-and-swap means that another consumer took something.
//!
//! Cost: `push` 0 RMW, `pop` 1, a steal of half 1.

use std::array;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use volt_sync::internal::CachePadded;
use volt_sync::internal::primitive::{AtomicPtr, AtomicUsize};

use crate::task::{Task, TaskList};

/// Small in the models, so that they wrap around.
pub(crate) const CAPACITY: usize = if cfg!(volt_loom) { 3 } else { 256 };

#[derive(Debug)]
pub(crate) struct Buffer {
    head: CachePadded<AtomicUsize>,
    tail: CachePadded<AtomicUsize>,
    slots: [AtomicPtr<Task>; CAPACITY],
    #[cfg(all(test, volt_loom))]
    pub(crate) stale_head: bool,
}

impl Buffer {
    pub(crate) fn new() -> Self {
        Self {
            head: CachePadded::new(AtomicUsize::new(0)),
            tail: CachePadded::new(AtomicUsize::new(0)),
            slots: array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            #[cfg(all(test, volt_loom))]
            stale_head: false,
        }
    }

    /// True if there was nothing at the time of the call: a hint for everybody but the owner.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // ORD relaxed: a hint; the callers that rely on it have a fence before this.
        let head = self.head.load(Relaxed);
        // ORD relaxed: a hint, as above.
        head == self.tail.load(Relaxed)
    }

    /// Appends a task, or gives it back if the ring is full.
    ///
    /// # Safety
    /// 1. Only the owner calls this.
    #[inline]
    pub(crate) unsafe fn push(&self, task: NonNull<Task>) -> Result<(), NonNull<Task>> {
        // ORD relaxed: only the owner writes `tail`.
        let tail = self.tail.load(Relaxed);
        // ORD[BU2] acquire: a thief that moved `head` has read the slot that we overwrite.
        let head = self.head.load(Acquire);
        if tail.wrapping_sub(head) >= CAPACITY {
            return Err(task);
        }
        // ORD relaxed: published by the store of `tail`.
        self.slots[tail % CAPACITY].store(task.as_ptr(), Relaxed);
        // ORD[BU1] release: publishes the slot and the task.
        self.tail.store(tail.wrapping_add(1), Release);
        Ok(())
    }

    /// Takes the oldest task.
    ///
    /// # Safety
    /// 1. Only the owner calls this.
    #[inline]
    pub(crate) unsafe fn pop(&self) -> Option<NonNull<Task>> {
        // ORD relaxed: only the owner writes `tail`.
        let tail = self.tail.load(Relaxed);
        // ORD relaxed: a stale head makes the exchange fail.
        let mut head = self.head.load(Relaxed);
        while head != tail {
            // ORD relaxed: the owner wrote the slot itself, and nobody else reads what it took.
            match self.head.compare_exchange_weak(head, head.wrapping_add(1), Relaxed, Relaxed) {
                Ok(_) => {
                    let at = self.taken_slot(head);
                    // ORD relaxed: the owner wrote the slot itself.
                    return NonNull::new(self.slots[at].load(Relaxed));
                }
                Err(now) => head = now,
            }
        }
        None
    }

    /// The slot of the position that was taken.
    #[inline(always)]
    fn taken_slot(&self, head: usize) -> usize {
        // The seed reads the slot of the new head.
        #[cfg(all(test, volt_loom))]
        if self.stale_head {
            return head.wrapping_add(1) % CAPACITY;
        }
        head % CAPACITY
    }

    /// Takes half of the tasks out, and `task` after them: the way out of a full ring.
    ///
    /// # Safety
    /// 1. Only the owner calls this.
    #[cold]
    pub(crate) unsafe fn overflow(&self, task: NonNull<Task>, list: &mut TaskList) {
        // ORD relaxed: a stale head makes the exchange fail.
        let mut head = self.head.load(Relaxed);
        // ORD relaxed: only the owner writes `tail`.
        let tail = self.tail.load(Relaxed);
        loop {
            let half = tail.wrapping_sub(head) / 2;
            // ORD relaxed: as in `pop`.
            match self.head.compare_exchange(head, head.wrapping_add(half), Relaxed, Relaxed) {
                Err(now) => head = now,
                Ok(_) => {
                    for position in 0..half {
                        let slot = &self.slots[head.wrapping_add(position) % CAPACITY];
                        // ORD relaxed: the owner wrote the slot itself.
                        if let Some(task) = NonNull::new(slot.load(Relaxed)) {
                            // SAFETY: `head` moved past it, so it is ours (invariant 2).
                            unsafe { list.append(task) };
                        }
                    }
                    break;
                }
            }
        }
        // SAFETY: the caller's, and in no queue.
        unsafe { list.append(task) };
    }

    /// Moves half of this ring's tasks into `into`, but for one, which is returned. The number is
    /// that of the tasks that went into `into`.
    ///
    /// # Safety
    /// 1. The caller owns `into`, which is another ring and is empty.
    pub(crate) unsafe fn steal_into(&self, into: &Self) -> Option<(NonNull<Task>, usize)> {
        // ORD relaxed: only the caller writes it (1).
        let own_tail = into.tail.load(Relaxed);
        // ORD[BU2] acquire: the thieves that emptied `into` have read the slots that we overwrite.
        let own_head = into.head.load(Acquire);
        debug_assert_eq!(own_head, own_tail, "only an empty ring takes what it steals");
        // ORD relaxed: a stale head makes the exchange fail, or the ring look too full.
        let mut head = self.head.load(Relaxed);
        loop {
            // ORD[BU1] acquire: the slots and tasks up to this tail.
            let tail = self.tail.load(Acquire);
            let len = tail.wrapping_sub(head);
            if len == 0 || len > usize::MAX / 2 {
                // Empty, or the tail that we see is behind the head: what it tells of was taken.
                return None;
            }
            if len > CAPACITY {
                // The head that we see is behind: the owner has seen a newer one, and [BU1] shows it.
                // ORD relaxed: as above.
                head = self.head.load(Relaxed);
                continue;
            }
            let half = len - len / 2;
            for position in 0..half {
                let from = &self.slots[head.wrapping_add(position) % CAPACITY];
                let to = &into.slots[own_tail.wrapping_add(position) % CAPACITY];
                // ORD relaxed: ordered by [BU1]; if it is overwritten meanwhile, the exchange fails.
                let task = from.load(Relaxed);
                // ORD relaxed: `own_tail` is published below.
                to.store(task, Relaxed);
            }
            // ORD[BU2] release: the slots were read before the owner may overwrite them.
            match self.head.compare_exchange(head, head.wrapping_add(half), Release, Relaxed) {
                Err(now) => head = now,
                Ok(_) => {
                    let last = own_tail.wrapping_add(half - 1);
                    // ORD relaxed: this thread stored it above.
                    let task = NonNull::new(into.slots[last % CAPACITY].load(Relaxed));
                    if half > 1 {
                        // ORD[BU1] release: publishes the stolen tasks to the next thief.
                        into.tail.store(last, Release);
                    }
                    return task.map(|task| (task, half - 1));
                }
            }
        }
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
