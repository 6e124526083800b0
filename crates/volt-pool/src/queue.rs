//! An unbounded queue of tasks: any producer, and one consumer at a time that never waits.
//!
//! Purpose: what overflows a thread's ring, what comes from outside, and the tasks of a scope. A
//! Treiber stack whose two low bits make it a queue with a `try_lock` for the consumer side, so that
//! pushing is one compare-and-swap and a consumer takes everything that is there with one more.
//!
//! Rejected: Vyukov's intrusive queue with a stub, whose consumer can find it "empty" while a
//! producer is between its two stores; a mutex, which a preempted holder keeps from everybody.
//!
//! Order: mostly last in, first out. What was pushed while the consumer worked on one catch comes
//! after the whole of that catch, so nothing starves. Chains keep their order.
//!
//! | Bit | Meaning |
//! |-----|---------|
//! | CONSUMING | a consumer has the lock, and with it `cache` |
//! | CACHED | `cache` is not empty |
//! | CLOSED | pushing fails |
//! | the rest | the chain of tasks pushed since the last catch |
//!
//! Invariants:
//! 1. `cache` and the links of its chain belong to the holder of CONSUMING.
//! 2. Taking the lock never loses the pushed chain: it is caught only when `cache` is empty
//!    (finding K6, where the seed overwrites the word).
//! 3. An exchange may take a word that has changed and is the same again, because a task lies where an
//!    earlier one did: nothing was read behind the word, so the old look is as good as a new one.
//!
//! | Edge | Release side | Acquire side | Carries | Model that fails without it |
//! |------|--------------|--------------|---------|-----------------------------|
//! | [QU1] | `Queue::push` | `Queue::try_lock`, `Consumer::pop` | the tasks and their links | `pushed_tasks_arrive_whole_and_once` |
//! | [QU2] | `Consumer::unlock` | `Queue::try_lock` | `cache` | `consumers_pass_the_cache_on` |
//!
//! Progress: `push` is lock-free. A consumer that finds the lock held goes away; what it would have
//! found is announced again by the holder, whose [`Consumer::unlock`] tells whether anything is left
//! (finding T8).
//!
//! Cost: `push` 1 RMW; a catch 2 for all of its tasks.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use volt_sync::internal::primitive::{AtomicPtr, UnsafeCell};

use crate::task::{Task, TaskList};

const CONSUMING: usize = 0b001;
const CACHED: usize = 0b010;
const CLOSED: usize = 0b100;
const BITS: usize = CONSUMING | CACHED | CLOSED;

fn bits(word: *mut Task) -> usize {
    word.addr() & BITS
}

fn chain(word: *mut Task) -> *mut Task {
    word.map_addr(|addr| addr & !BITS)
}

fn with_bits(chain: *mut Task, bits: usize) -> *mut Task {
    chain.map_addr(|addr| addr | bits)
}

#[derive(Debug)]
pub(crate) struct Queue {
    stack: AtomicPtr<Task>,
    cache: UnsafeCell<*mut Task>,
    #[cfg(all(test, volt_loom))]
    pub(crate) forgetful_lock: bool,
}

// SAFETY: `cache` is accessed by the holder of CONSUMING only (invariant 1); tasks are `Send`.
unsafe impl Sync for Queue {}
// SAFETY: as for the one above.
unsafe impl Send for Queue {}

/// The queue was closed.
#[derive(Debug)]
pub(crate) struct Closed;

/// The consumer's side of a queue, held.
#[derive(Debug)]
pub(crate) struct Consumer<'a> {
    queue: &'a Queue,
    /// What is left of the catch; `queue.cache` is stale while this lives.
    caught: *mut Task,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self {
            stack: AtomicPtr::new(ptr::null_mut()),
            cache: UnsafeCell::new(ptr::null_mut()),
            #[cfg(all(test, volt_loom))]
            forgetful_lock: false,
        }
    }

    /// True if there was nothing to take: a hint, exact for what happened before the caller's fence.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // ORD relaxed: a hint; the callers that rely on it have a fence before this.
        let word = self.stack.load(Relaxed);
        chain(word).is_null() && bits(word) & CACHED == 0
    }

    /// True if there is something to take and nobody at work: a consumer announces what it leaves.
    /// A hint, as `is_empty`.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        // ORD relaxed: a hint; the callers that rely on it have a fence before this.
        let word = self.stack.load(Relaxed);
        bits(word) & CONSUMING == 0 && (!chain(word).is_null() || bits(word) & CACHED != 0)
    }

    /// Puts a chain in. True if the queue was empty and nobody consumed it.
    ///
    /// # Safety
    /// 1. The chain's tasks are alive, scheduled, and in no queue.
    #[inline]
    pub(crate) unsafe fn push(
        &self,
        (head, tail): (NonNull<Task>, NonNull<Task>),
    ) -> Result<bool, Closed> {
        // ORD relaxed: a stale word makes the exchange fail.
        let mut word = self.stack.load(Relaxed);
        loop {
            if bits(word) & CLOSED != 0 {
                return Err(Closed);
            }
            // SAFETY: not in a queue yet (1), so the link is ours.
            unsafe { Task::set_next(tail, NonNull::new(chain(word))) };
            let new = with_bits(head.as_ptr(), bits(word));
            // ORD[QU1] release: publishes the tasks and their links.
            match self.stack.compare_exchange_weak(word, new, Release, Relaxed) {
                Ok(_) => return Ok(word.is_null()),
                Err(now) => word = now,
            }
        }
    }

    /// Makes every later `push` fail.
    pub(crate) fn close(&self) {
        // ORD relaxed: a stale word makes the exchange fail.
        let mut word = self.stack.load(Relaxed);
        loop {
            let new = with_bits(word, CLOSED);
            // ORD relaxed: closing carries nothing; the chain keeps its release sequence.
            match self.stack.compare_exchange_weak(word, new, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// Takes the consumer's side, unless there is nothing or somebody else has it.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Consumer<'_>> {
        // ORD relaxed: a stale word makes the exchange fail, or the attempt: see Progress.
        let mut word = self.stack.load(Relaxed);
        loop {
            let held = bits(word);
            if held & CONSUMING != 0 || (chain(word).is_null() && held & CACHED == 0) {
                return None;
            }
            let kept = if held & CACHED == 0 { ptr::null_mut() } else { chain(word) };
            let new = with_bits(kept, held | CONSUMING | CACHED);
            // The seed's `new = CONSUMING | CACHED` forgets the chain.
            #[cfg(all(test, volt_loom))]
            let new = if self.forgetful_lock {
                with_bits(ptr::null_mut(), held | CONSUMING | CACHED)
            } else {
                new
            };
            // ORD[QU1] acquire: the caught tasks.
            // ORD[QU2] acquire: the cache as the last consumer left it.
            match self.stack.compare_exchange_weak(word, new, Acquire, Relaxed) {
                Err(now) => word = now,
                Ok(_) => {
                    let caught = if held & CACHED == 0 {
                        chain(word)
                    } else {
                        // SAFETY: we hold CONSUMING (invariant 1).
                        self.cache.with(|cache| unsafe { *cache })
                    };
                    return Some(Consumer { queue: self, caught });
                }
            }
        }
    }

    /// Takes everything, waiting for a consumer that is at work.
    pub(crate) fn drain(&self, into: &mut TaskList) {
        let mut attempt = 0;
        while !self.is_empty() {
            if let Some(mut consumer) = self.try_lock() {
                while let Some(task) = consumer.pop() {
                    // SAFETY: out of the queue, so ours.
                    unsafe { into.append(task) };
                }
                let _ = consumer.unlock();
            } else {
                volt_sync::internal::primitive::spin(attempt);
                attempt += 1;
            }
        }
    }

    /// As `drain`, but in the order in which the tasks were pushed, each by itself. The caller is the only
    /// consumer.
    pub(crate) fn drain_in_order(&self, into: &mut TaskList) {
        while let Some(mut consumer) = self.try_lock() {
            while let Some(last) = consumer.take_catch() {
                let (mut pushed, mut first) = (Some(last), None);
                while let Some(task) = pushed {
                    // SAFETY: the chain was caught, so it is ours.
                    pushed = unsafe { Task::next(task) };
                    // SAFETY: out of the chain, and still ours.
                    unsafe { Task::set_next(task, first) };
                    first = Some(task);
                }
                while let Some(task) = first {
                    // SAFETY: in the reversed chain, which is ours.
                    first = unsafe { Task::next(task) };
                    // SAFETY: out of the chain.
                    unsafe { into.append(task) };
                }
            }
            // What has come meanwhile is what the next round looks for.
            let _left = consumer.unlock();
        }
    }
}

impl Consumer<'_> {
    /// Takes the whole chain of one catch, which begins with what was pushed last.
    fn take_catch(&mut self) -> Option<NonNull<Task>> {
        let caught = std::mem::replace(&mut self.caught, ptr::null_mut());
        NonNull::new(caught).or_else(|| self.catch())
    }

    /// Takes one task.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<NonNull<Task>> {
        let task = match NonNull::new(self.caught) {
            Some(task) => task,
            None => self.catch()?,
        };
        // SAFETY: the chain is ours (invariant 1).
        let next = unsafe { Task::next(task) };
        self.caught = next.map_or(ptr::null_mut(), NonNull::as_ptr);
        Some(task)
    }

    /// Takes what was pushed since the last catch.
    fn catch(&mut self) -> Option<NonNull<Task>> {
        // ORD relaxed: only to spare the exchange.
        let mut word = self.queue.stack.load(Relaxed);
        while !chain(word).is_null() {
            let new = with_bits(ptr::null_mut(), bits(word));
            // ORD[QU1] acquire: the caught tasks.
            match self.queue.stack.compare_exchange_weak(word, new, Acquire, Relaxed) {
                Ok(_) => return NonNull::new(chain(word)),
                Err(now) => word = now,
            }
        }
        None
    }

    /// Puts a task that was popped back to the front.
    pub(crate) fn put_back(&mut self, task: NonNull<Task>) {
        // SAFETY: popped, so its link is the caller's.
        unsafe { Task::set_next(task, NonNull::new(self.caught)) };
        self.caught = task.as_ptr();
    }

    /// Gives the consumer's side back. True if tasks are left, which somebody has to be told.
    #[inline]
    #[must_use = "whoever leaves tasks behind wakes somebody for them"]
    pub(crate) fn unlock(self) -> bool {
        let cached = if self.caught.is_null() { 0 } else { CACHED };
        // SAFETY: we hold CONSUMING (invariant 1).
        self.queue.cache.with_mut(|cache| unsafe { *cache = self.caught });
        // ORD relaxed: a stale word makes the exchange fail.
        let mut word = self.queue.stack.load(Relaxed);
        loop {
            let new = with_bits(chain(word), (bits(word) & CLOSED) | cached);
            // ORD[QU2] release: passes the cache on.
            match self.queue.stack.compare_exchange_weak(word, new, Release, Relaxed) {
                Ok(_) => return cached != 0 || !chain(word).is_null(),
                Err(now) => word = now,
            }
        }
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
