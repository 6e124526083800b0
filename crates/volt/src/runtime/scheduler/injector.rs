//! The queue between the workers and everybody else: tasks woken by other threads, and overflow.
//!
//! Purpose: an unbounded FIFO that allocates nothing (the tasks are its nodes), from which workers
//! take batches, and whose emptiness costs one load to see.
//!
//! Rejected: a lock-free queue. Producers are threads that wake single tasks, consumers take up to
//! 64 at once; the short critical section is cheaper than the reclamation such a queue needs.
//!
//! State: a singly linked list under a mutex, and its length as an atomic.
//!
//! Invariants:
//! 1. `len` is written under the lock, and is the length of the list.
//! 2. A linked task is the queue's alone: nobody else holds its `Notified`.
//!
//! | Edge  | Release side                  | Acquire side         | Carries | Model |
//! |-------|-------------------------------|----------------------|---------|-------|
//! | [IS1] | `Injector::push_if`, `Injector::push_batch` (and `Ring::publish`, `Ring::steal_into`) | `Injector::is_empty`, `Ring::is_empty` | that there is work, to a worker that parks (`idle.rs`) | none: under loom the fences of [ID1] stand between. Litmus test `order_parking::weak_orders_of_the_summary_or_the_queues_lose_a_task` of volt-models |
//!
//! Progress: a thread that is stopped inside the critical section holds up the others: at most 64
//! pointer moves.
//!
//! Cost: push a lock and an unlock, and one SeqCst store; a batch the same for all its tasks.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use volt_sync::internal::primitive::{AtomicUsize, Mutex, MutexGuard};

/// A node of an intrusive singly linked queue.
///
/// # Safety
/// `next` returns what the last `set_next` of the same node stored.
pub(crate) unsafe trait Linked {
    /// The link of `node`.
    ///
    /// # Safety
    /// `node` is alive, and the caller's alone.
    unsafe fn next(node: NonNull<Self>) -> Option<NonNull<Self>>;

    /// Changes the link of `node`.
    ///
    /// # Safety
    /// `node` is alive, and the caller's alone.
    unsafe fn set_next(node: NonNull<Self>, next: Option<NonNull<Self>>);
}

/// A chain of linked nodes, owned.
pub(crate) struct Chain<T> {
    ends: Option<(NonNull<T>, NonNull<T>)>,
    len: usize,
}

// SAFETY: a chain owns its nodes, which are made to move between threads (`Notified` is `Send`).
unsafe impl<T> Send for Chain<T> {}

impl<T: Linked> Chain<T> {
    pub(crate) const fn new() -> Self {
        Self { ends: None, len: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Appends `node`.
    ///
    /// # Safety
    /// `node` is alive, and becomes the chain's alone.
    #[inline]
    pub(crate) unsafe fn push(&mut self, node: NonNull<T>) {
        // SAFETY: the caller gives the node away.
        unsafe { T::set_next(node, None) };
        self.len += 1;
        match &mut self.ends {
            None => self.ends = Some((node, node)),
            Some((_, last)) => {
                // SAFETY: the chain owns its last node.
                unsafe { T::set_next(*last, Some(node)) };
                *last = node;
            }
        }
    }

    /// Takes the first node.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<NonNull<T>> {
        let (first, last) = self.ends?;
        self.len -= 1;
        // SAFETY: the chain owns its nodes.
        let next = unsafe { T::next(first) };
        self.ends = next.map(|next| (next, last));
        Some(first)
    }

    fn append(&mut self, other: Self) {
        let Some((other_first, other_last)) = other.ends else { return };
        self.len += other.len;
        match &mut self.ends {
            None => self.ends = Some((other_first, other_last)),
            Some((_, last)) => {
                // SAFETY: the chain owns its last node.
                unsafe { T::set_next(*last, Some(other_first)) };
                *last = other_last;
            }
        }
    }

    /// Takes the first `count` nodes, or all.
    fn take(&mut self, count: usize) -> Self {
        let mut taken = Self::new();
        if count >= self.len {
            std::mem::swap(self, &mut taken);
            return taken;
        }
        let Some((first, last)) = self.ends else { return taken };
        if count == 0 {
            return taken;
        }
        let mut cut = first;
        for _ in 1..count {
            // SAFETY: the chain owns its nodes, and has more than `count`.
            cut = unsafe { T::next(cut) }.expect("a chain is as long as it says");
        }
        // SAFETY: the chain owns the node, which is not its last.
        let rest = unsafe { T::next(cut) }.expect("a chain is as long as it says");
        // SAFETY: the chain owns the node until it is cut off.
        unsafe { T::set_next(cut, None) };
        taken.ends = Some((first, cut));
        taken.len = count;
        self.ends = Some((rest, last));
        self.len -= count;
        taken
    }
}

impl<T: Linked> FromIterator<NonNull<T>> for Chain<T> {
    /// The caller owns the nodes, and gives them away.
    fn from_iter<I: IntoIterator<Item = NonNull<T>>>(nodes: I) -> Self {
        let mut chain = Self::new();
        for node in nodes {
            // SAFETY: the nodes are given away by whoever has them (a ring that was emptied).
            unsafe { chain.push(node) };
        }
        chain
    }
}

impl<T> std::fmt::Debug for Chain<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").field("len", &self.len).finish()
    }
}

/// The injection queue.
pub(crate) struct Injector<T> {
    len: AtomicUsize,
    list: Mutex<Chain<T>>,
}

/// The smallest and the largest batch that a worker takes.
pub(crate) const MIN_BATCH: usize = 4;
pub(crate) const MAX_BATCH: usize = 64;

impl<T: Linked> Injector<T> {
    pub(crate) fn new() -> Self {
        Self { len: AtomicUsize::new(0), list: Mutex::new(Chain::new()) }
    }

    fn lock(&self) -> MutexGuard<'_, Chain<T>> {
        self.list.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// True if there is nothing to take; for the parking protocol, as `Ring::is_empty`.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // ORD[IS1] acquire: SeqCst; the total order with the store in `push_batch` decides.
        self.len.load(SeqCst) == 0
    }

    /// The number of tasks, as a snapshot.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // ORD relaxed: a hint; whoever acts on it takes the lock.
        self.len.load(Relaxed)
    }

    /// Appends `node`.
    ///
    /// # Safety
    /// `node` is alive, and becomes the queue's alone.
    pub(crate) unsafe fn push(&self, node: NonNull<T>) {
        // SAFETY: the same obligation.
        let _always = unsafe { self.push_if(node, || true) };
    }

    /// As [`push`](Self::push), if `accept`, called under the lock, says so. Else the node is still the
    /// caller's, and this says false.
    ///
    /// # Safety
    /// As of `push`.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn push_if(&self, node: NonNull<T>, accept: impl FnOnce() -> bool) -> bool {
        let mut list = self.lock();
        if !accept() {
            return false;
        }
        // SAFETY: the same obligation.
        unsafe { list.push(node) };
        // ORD[IS1] release: SeqCst, see `is_empty`.
        self.len.store(list.len, SeqCst);
        true
    }

    /// Calls `f` under the lock: each push comes before it, with all that it leaves to see, or after.
    pub(crate) fn between_pushes<R>(&self, f: impl FnOnce() -> R) -> R {
        let _list = self.lock();
        f()
    }

    /// Appends a chain.
    pub(crate) fn push_batch(&self, chain: Chain<T>) {
        let mut list = self.lock();
        list.append(chain);
        // ORD[IS1] release: SeqCst, see `is_empty`.
        self.len.store(list.len, SeqCst);
    }

    /// Takes the oldest node.
    pub(crate) fn pop(&self) -> Option<NonNull<T>> {
        self.pop_batch(1).pop()
    }

    /// How many tasks a worker should take: its share, from 4 to 64.
    #[inline]
    pub(crate) fn fair_share(&self, workers: usize) -> usize {
        (self.len() / workers.max(1)).clamp(MIN_BATCH, MAX_BATCH)
    }

    /// Takes the `count` oldest nodes, or all.
    pub(crate) fn pop_batch(&self, count: usize) -> Chain<T> {
        if self.is_empty() {
            return Chain::new();
        }
        let mut list = self.lock();
        let taken = list.take(count);
        // ORD relaxed: a consumer need not be seen: the stale length makes somebody look in vain.
        self.len.store(list.len, Relaxed);
        taken
    }
}

impl<T: Linked> std::fmt::Debug for Injector<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Injector").field("len", &self.len()).finish()
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
