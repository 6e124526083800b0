//! The tasks of a runtime that have been idle, so that a shutdown can find them.
//!
//! Purpose: a list of the tasks that only wakers may know, in shards, each behind a lock of one bit: a
//! worker links to its own shard and mostly completes there, so that the lock is free and its line in
//! the worker's cache. A task that completes in its first poll never comes here: until it is idle it
//! is in a queue, or somebody polls it, and the shutdown waits for both.
//!
//! Rejected: one list behind one mutex (contended by every spawn); a `Vec` or slab (allocates, and
//! a spawn is one allocation); popping tasks at shutdown whose `Notified` somebody holds (the
//! list would be empty while that somebody still uses the scheduler); linking at the spawn, except in
//! a `LocalSet` (two read-modify-writes for each task, on another worker's lines if it was stolen).
//!
//! | State of a shard | bind, link        | release  | shutdown                             |
//! |------------------|-------------------|----------|--------------------------------------|
//! | open             | links             | unlinks  | to closed; cancels all idle tasks, marks the others |
//! | closed           | refused: cancelled | unlinks | cancels all idle tasks, marks the others |
//!
//! A shutdown moves the idle tasks to a second list of the shard, and cancels them one by one: the drop
//! of one may wait for another one, which the thread that it blocks must not have to itself.
//!
//! Invariants:
//! 1. The lists and the links of their tasks are touched under the shard's lock only.
//! 2. No user code runs under the lock.
//! 3. A task is linked from its bind, or its first idle time, until its runner releases it, or
//!    shutdown becomes its runner; it is in the second list from then on until it is about to be
//!    cancelled.
//! 4. A task that `link` refuses, or that was woken or cancelled meanwhile, is not linked when the lock
//!    is free again, and not LINKED.
//!
//! | Edge  | Release side        | Acquire side      | Carries                   | Model |
//! |-------|---------------------|-------------------|---------------------------|-------|
//! | [OT1] | `Guard::drop`       | `Shard::lock`     | the list                  | `task::model::bind_against_close`, `task::model::first_idle_against_close` |
//!
//! Progress: after `close_and_cancel`, every task that was linked is COMPLETE, or somebody runs it,
//! or somebody holds its `Notified` and will run or drop it, and it is still linked. So whoever
//! drains all queues until [`is_empty`](OwnedTasks::is_empty) knows that no other thread has a
//! `Notified` of a task that was ever idle.
//!
//! Cost: bind and link 1 read-modify-write, release 1 if the task is linked.

use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use volt_sync::internal::primitive::{AtomicBool, AtomicUsize, UnsafeCell, spin};
use volt_sync::internal::{CachePadded, LinkedList};

use super::cell;
use super::header::Header;
use super::join::JoinHandle;
use super::notified::{Notified, Schedule};
use super::state::{Birth, Shutdown, ToIdle};

/// The number of shards is kept in 8 bits of the task's state.
const MAX_SHARDS: usize = 256;

/// The list.
pub(crate) struct OwnedTasks {
    shards: Box<[CachePadded<Shard>]>,
}

struct Shard {
    locked: AtomicBool,
    /// Written under the lock, read by anyone for statistics.
    len: AtomicUsize,
    content: UnsafeCell<Content>,
}

struct Content {
    tasks: LinkedList<Header>,
    /// Tasks that were idle at shutdown: whoever takes one is its runner.
    cancelled: LinkedList<Header>,
    closed: bool,
}

// SAFETY: the list holds references to headers, which are `Send` and `Sync`; its cell is guarded by
// the lock.
unsafe impl Send for OwnedTasks {}
// SAFETY: `&OwnedTasks` reaches the cell only through the lock.
unsafe impl Sync for OwnedTasks {}

impl OwnedTasks {
    /// An empty list with `shards` shards (at most 256; more share).
    pub(crate) fn new(shards: usize) -> Self {
        let shard = || {
            CachePadded::new(Shard {
                locked: AtomicBool::new(false),
                len: AtomicUsize::new(0),
                content: UnsafeCell::new(Content {
                    tasks: LinkedList::new(),
                    cancelled: LinkedList::new(),
                    closed: false,
                }),
            })
        };
        Self { shards: (0..shards.clamp(1, MAX_SHARDS)).map(|_| shard()).collect() }
    }

    /// Makes a task of `future` and adds it. No `Notified` if the list is closed: the task has been
    /// cancelled.
    ///
    /// `shard` is any number; a worker passes its own index.
    ///
    /// # Safety
    /// 1. `scheduler` lives until this list is closed and empty, and `S::release` calls
    ///    [`release`](Self::release) of this list.
    /// 2. `future` is `Send`, or the scheduler runs it on the current thread only, and this
    ///    thread also closes the list. (The join handle is `Send` only if the output is.)
    #[inline]
    pub(crate) unsafe fn bind<F, S>(
        &self,
        shard: usize,
        future: F,
        scheduler: NonNull<S>,
    ) -> (JoinHandle<F::Output>, Option<Notified>)
    where
        F: Future + 'static,
        F::Output: 'static,
        S: Schedule,
    {
        let index = self.index(shard);
        // The references: list, `Notified`, join handle.
        let task = cell::allocate(future, scheduler, Birth::Linked(index));
        // SAFETY: one of the three references; JOIN_INTEREST is set.
        let join = unsafe { JoinHandle::new(task) };
        let mut shard = self.shards[usize::from(index)].lock();
        if shard.closed {
            drop(shard);
            // SAFETY: the `Notified`'s reference; the task was never queued.
            unsafe { Self::refuse(task) };
            return (join, None);
        }
        // SAFETY: the task was just made; the reference of the list keeps it alive in it.
        unsafe { shard.tasks.push_back(task) };
        shard.add_len(1);
        drop(shard);
        // SAFETY: the third reference, of a task that is kept.
        (join, Some(unsafe { Notified::from_raw(task) }))
    }

    /// The shard for `shard`, which is any number.
    #[inline]
    fn index(&self, shard: usize) -> u8 {
        // A division costs as much as the rest of a bind.
        let index = if shard < self.shards.len() { shard } else { shard % self.shards.len() };
        // `MAX_SHARDS` makes it fit.
        index as u8
    }

    /// Adds a task whose future is pending for the first time, and makes it idle: in one step for a
    /// shutdown, which either finds it idle or has it cancelled.
    ///
    /// `shard` as of [`bind`](Self::bind).
    ///
    /// # Safety
    /// The caller is the runner of `task`, which was never linked; the scheduler is as for `bind`.
    /// The runner's reference is gone if this says that the task is idle.
    #[inline]
    pub(crate) unsafe fn link(&self, shard: usize, task: NonNull<Header>) -> ToIdle {
        let index = self.index(shard);
        let mut shard = self.shards[usize::from(index)].lock();
        if shard.closed {
            return ToIdle::Cancel;
        }
        // SAFETY: alive, and in no list; the runner's reference keeps it alive in it.
        unsafe { shard.tasks.push_back(task) };
        // SAFETY: alive. Once it is idle: who releases it needs the lock that we hold.
        let outcome = unsafe { task.as_ref() }.state.to_linked(index);
        if outcome == ToIdle::Idle {
            shard.add_len(1);
        } else {
            // SAFETY: it was linked above.
            unsafe { shard.tasks.remove(task) };
        }
        outcome
    }

    /// Cancels a task that could not be bound.
    ///
    /// # Safety
    /// The caller has the task's `Notified`, and the list's reference; it is in no list.
    #[cold]
    unsafe fn refuse(task: NonNull<Header>) {
        // SAFETY: alive by the references.
        let header = unsafe { task.as_ref() };
        let _either_way = header.state.to_running();
        // SAFETY: we are the runner of a task that is in no list; this is one of our references.
        unsafe { (header.vtable.cancel_running)(task) };
        // SAFETY: this is the other one.
        unsafe { Header::release(task, 1) };
    }

    /// Unlinks a task that completes, if it is linked: then the list's reference becomes the caller's.
    ///
    /// # Safety
    /// The caller is the runner of `task`, which is linked in this list or never was in any.
    #[inline]
    pub(crate) unsafe fn release(&self, task: NonNull<Header>) -> bool {
        // SAFETY: alive by the runner's reference.
        let state = unsafe { task.as_ref() }.state.peek();
        if !state.is_linked() {
            return false;
        }
        let mut shard = self.shards[usize::from(state.shard())].lock();
        // SAFETY: it is linked (invariant 3).
        unsafe { shard.tasks.remove(task) };
        shard.add_len(-1);
        true
    }

    /// Closes the list: later binds and links are refused. Drops the futures of all idle tasks, here;
    /// marks the others, which are dropped by whoever runs them or has them queued.
    ///
    /// A second call helps one that has not returned: a drop may wait for another one. Calls `leaves` for
    /// each task that is about to be cancelled here.
    pub(crate) fn close_and_cancel(&self, leaves: impl Fn()) {
        for shard in &self.shards {
            let mut locked = shard.lock();
            locked.closed = true;
            locked.take_idle();
            drop(locked);
            shard.cancel(&leaves);
        }
    }

    /// Drops the futures of tasks that [`close_and_cancel`](Self::close_and_cancel) is about to drop
    /// on another thread, which may wait for them.
    pub(crate) fn help_to_cancel(&self, leaves: impl Fn()) {
        self.shards.iter().for_each(|shard| shard.cancel(&leaves));
    }

    /// True if there is no task. After `close_and_cancel` it stays so once it is.
    pub(crate) fn is_empty(&self) -> bool {
        let is_empty = |shard: Guard<'_>| shard.tasks.is_empty() && shard.cancelled.is_empty();
        self.shards.iter().all(|shard| is_empty(shard.lock()))
    }

    /// How many tasks are linked, roughly.
    pub(crate) fn len(&self) -> usize {
        // ORD relaxed: a statistic.
        self.shards.iter().map(|shard| shard.len.load(Relaxed)).sum()
    }
}

impl Drop for OwnedTasks {
    fn drop(&mut self) {
        debug_assert!(std::thread::panicking() || self.is_empty(), "tasks outlive their scheduler");
    }
}

impl std::fmt::Debug for OwnedTasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnedTasks").field("len", &self.len()).finish()
    }
}

impl Shard {
    #[inline]
    fn lock(&self) -> Guard<'_> {
        if !self.try_lock() {
            self.lock_slow();
        }
        Guard(self)
    }

    /// Cancels the tasks that were idle.
    fn cancel(&self, leaves: &impl Fn()) {
        loop {
            // The lock is free again when the future is dropped.
            let Some(task) = self.lock().cancelled.pop_front() else { return };
            leaves();
            // SAFETY: the list's reference, now the runner's, keeps it alive.
            let cancel = unsafe { task.as_ref() }.vtable.cancel_running;
            // SAFETY: the function is the task's own; we are its runner and it is unlinked.
            unsafe { cancel(task) };
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // ORD[OT1] acquire: the list as the last holder left it. A failure reads nothing.
        self.locked.compare_exchange(false, true, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn lock_slow(&self) {
        let mut attempt = 0;
        while !self.try_lock() {
            spin(attempt);
            attempt += 1;
        }
    }
}

/// A shard's content, locked.
struct Guard<'a>(&'a Shard);

impl Guard<'_> {
    #[inline]
    fn add_len(&self, by: isize) {
        let len = &self.0.len;
        // ORD relaxed: written under the lock only, and read as a statistic.
        len.store(len.load(Relaxed).wrapping_add_signed(by), Relaxed);
    }

    /// Marks all tasks as cancelled; moves those that were idle to the second list.
    fn take_idle(&mut self) {
        let mut next = self.tasks.front();
        while let Some(task) = next {
            // SAFETY: linked in this list.
            next = unsafe { self.tasks.next(task) };
            // SAFETY: alive by the list's reference.
            match unsafe { task.as_ref() }.state.shutdown() {
                Shutdown::Busy => continue,
                Shutdown::Cancel => {}
            }
            // SAFETY: linked in this list.
            unsafe { self.tasks.remove(task) };
            self.add_len(-1);
            // SAFETY: just unlinked; nobody else unlinks a task whose runner shutdown is.
            unsafe { self.cancelled.push_back(task) };
        }
    }
}

impl Deref for Guard<'_> {
    type Target = Content;
    fn deref(&self) -> &Content {
        // SAFETY: the lock is held.
        self.0.content.with(|content| unsafe { &*content })
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Content {
        // SAFETY: the lock is held.
        self.0.content.with_mut(|content| unsafe { &mut *content })
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        // ORD[OT1] release: passes the list on.
        self.0.locked.store(false, Release);
    }
}
