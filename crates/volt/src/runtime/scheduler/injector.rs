//! The queue between the workers and everybody else: tasks woken by other threads, and overflow.
//!
//! Purpose: an unbounded FIFO that allocates nothing (the tasks are its nodes), from which workers
//! take batches, and whose emptiness costs one load to see.
//!
//! There are two lists: the *open* tasks are for every member, and those *set aside* for the ones that poll
//! anything. A choosy guest (`quick.rs`) sets aside what is not for it, and so finds what waits behind that. A
//! batch has the oldest task that was set aside, which is polled at once, and besides only such as have become
//! known to be quick: the others would lie where the guest steals them, and sets them aside again. With whole
//! batches, one task of each was polled and the rest went round, some of them for ever. Neither list waits for
//! the other to end: if there is so much, a batch is at least half open tasks.
//!
//! Rejected: a lock-free queue. Producers are threads that wake single tasks, consumers take up to
//! 64 at once; the short critical section is cheaper than the reclamation such a queue needs.
//!
//! Rejected: a second queue of this type for what is set aside. A worker would look at two words where it
//! looks at one, for each poll while it is the injector's turn.
//!
//! State: two singly linked lists under a mutex, and their lengths in one atomic word.
//!
//! Invariants:
//! 1. `lens` is written under the lock, and has the lengths of the lists.
//! 2. A linked task is the queue's alone: nobody else holds its `Notified`.
//!
//! | Edge  | Release side                  | Acquire side         | Carries | Model |
//! |-------|-------------------------------|----------------------|---------|-------|
//! | [IS1] | `Injector::publish` (and `Ring::publish`, `Ring::steal_into`) | `Injector::lens`, `Ring::is_empty` | that there is work, to a worker that parks (`idle.rs`) | none: under loom the fences of [ID1] stand between. Litmus test `order_parking::weak_orders_of_the_summary_or_the_queues_lose_a_task` of volt-models |
//!
//! Progress: a thread that is stopped inside the critical section holds up the others: at most 64
//! pointer moves.
//!
//! Cost: push a lock and an unlock, and one SeqCst store; a batch the same for all its tasks.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use volt_sync::internal::primitive::{AtomicU64, Mutex, MutexGuard};

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

    /// Takes the first node, and after it as many as `goes_on` says so of, up to `count`.
    fn take_first_and(&mut self, count: usize, goes_on: impl Fn(NonNull<T>) -> bool) -> Self {
        let mut taken = Self::new();
        while let Some((first, _)) = self.ends {
            if taken.len == count || taken.len > 0 && !goes_on(first) {
                break;
            }
            if let Some(node) = self.pop() {
                // SAFETY: it was this chain's.
                unsafe { taken.push(node) };
            }
        }
        taken
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

/// What the mutex holds.
struct Lists<T> {
    open: Chain<T>,
    set_aside: Chain<T>,
}

/// The lengths of both lists: in the low half that of the open tasks. More than fit are told as so many.
#[derive(Clone, Copy)]
struct Lens(u64);

impl Lens {
    fn of<T: Linked>(lists: &Lists<T>) -> Self {
        let half = |list: &Chain<T>| list.len().min(u32::MAX as usize) as u64;
        Self(half(&lists.set_aside) << 32 | half(&lists.open))
    }

    #[inline]
    const fn open(self) -> usize {
        self.0 as u32 as usize
    }

    #[inline]
    const fn set_aside(self) -> usize {
        (self.0 >> 32) as usize
    }

    /// Those for a member, which may be choosy.
    #[inline]
    const fn seen_by(self, choosy: bool) -> usize {
        self.open() + if choosy { 0 } else { self.set_aside() }
    }
}

/// The injection queue.
pub(crate) struct Injector<T> {
    lens: AtomicU64,
    lists: Mutex<Lists<T>>,
}

/// The smallest and the largest batch that a worker takes.
pub(crate) const MIN_BATCH: usize = 4;
pub(crate) const MAX_BATCH: usize = 64;

impl<T: Linked> Injector<T> {
    pub(crate) fn new() -> Self {
        let lists = Lists { open: Chain::new(), set_aside: Chain::new() };
        Self { lens: AtomicU64::new(0), lists: Mutex::new(lists) }
    }

    fn lock(&self) -> MutexGuard<'_, Lists<T>> {
        self.lists.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    #[inline]
    fn lens(&self) -> Lens {
        // ORD[IS1] acquire: SeqCst; the total order with the store in `publish` decides.
        Lens(self.lens.load(SeqCst))
    }

    /// Makes it known that there are more. Under the lock.
    #[inline]
    fn publish(&self, lists: &Lists<T>) {
        // ORD[IS1] release: SeqCst, see `lens`.
        self.lens.store(Lens::of(lists).0, SeqCst);
    }

    /// True if there is nothing to take for a member, which may be choosy; for the parking protocol, as
    /// `Ring::is_empty`.
    #[inline]
    pub(crate) fn is_empty_for(&self, choosy: bool) -> bool {
        let lens = self.lens();
        lens.0 == 0 || choosy && lens.open() == 0
    }

    /// True if there is something that choosy members do not take.
    #[inline]
    pub(crate) fn has_set_aside(&self) -> bool {
        self.lens().set_aside() != 0
    }

    /// The number of tasks, as a snapshot.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len_for(false)
    }

    #[inline]
    fn len_for(&self, choosy: bool) -> usize {
        // ORD relaxed: a hint; whoever acts on it takes the lock.
        Lens(self.lens.load(Relaxed)).seen_by(choosy)
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
        let mut lists = self.lock();
        if !accept() {
            return false;
        }
        // SAFETY: the same obligation.
        unsafe { lists.open.push(node) };
        self.publish(&lists);
        true
    }

    /// Appends `node` for those who are not choosy.
    ///
    /// # Safety
    /// As of `push`.
    pub(crate) unsafe fn set_aside(&self, node: NonNull<T>) {
        let mut lists = self.lock();
        // SAFETY: the same obligation.
        unsafe { lists.set_aside.push(node) };
        self.publish(&lists);
    }

    /// Calls `f` under the lock: each push comes before it, with all that it leaves to see, or after.
    pub(crate) fn between_pushes<R>(&self, f: impl FnOnce() -> R) -> R {
        let _lists = self.lock();
        f()
    }

    /// Appends a chain.
    pub(crate) fn push_batch(&self, chain: Chain<T>) {
        let mut lists = self.lock();
        lists.open.append(chain);
        self.publish(&lists);
    }

    /// Takes a node, from wherever.
    pub(crate) fn pop(&self) -> Option<NonNull<T>> {
        self.pop_batch(1, Some(|_| false)).pop()
    }

    /// How many tasks a member, which may be `choosy`, should take: its share among so many, from 4 to 64.
    #[inline]
    pub(crate) fn fair_share(&self, members: usize, choosy: bool) -> usize {
        (self.len_for(choosy) / members.max(1)).clamp(MIN_BATCH, MAX_BATCH)
    }

    /// Takes up to `count` nodes, the oldest ones of each list. For a choosy member (None) only open ones; for
    /// others what `is_quick` says so of, and first one of which that need not be so.
    pub(crate) fn pop_batch(
        &self,
        count: usize,
        is_quick: Option<impl Fn(NonNull<T>) -> bool>,
    ) -> Chain<T> {
        if self.is_empty_for(is_quick.is_none()) {
            return Chain::new();
        }
        let mut lists = self.lock();
        let open = lists.open.len().min(count / 2);
        let mut taken = match is_quick {
            None => Chain::new(),
            Some(is_quick) => lists.set_aside.take_first_and(count - open, is_quick),
        };
        taken.append(lists.open.take(count - taken.len()));
        // ORD relaxed: a consumer need not be seen: the stale lengths make somebody look in vain.
        self.lens.store(Lens::of(&lists).0, Relaxed);
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
