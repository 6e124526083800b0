//! The queue of one worker: a bounded ring that its owner fills and any thread may take from.
//!
//! Purpose: runnable tasks at the cost of a store to push and one read-modify-write to pop, with
//! thieves that take half of what is there in one claim.
//!
//! Rejected (each is a test below, by its finding in the design of the protocols):
//! * giving up the third phase of a steal when its CAS fails: the claimed tasks, or their places,
//!   are lost (P5);
//! * stealing into a ring whose own places are still being copied out by a thief, and judging
//!   "full" by the real head: both overwrite tasks (P6, P7);
//! * moving both halves of the head on overflow while a steal runs, or a second thief during the
//!   first one's copy: the first thief's third phase would give back places that are not its own (P7);
//! * halves of 16 bits: after 65,536 operations a stale claim succeeds and tasks run twice (P8).
//!   With 32 bits a thief would have to sleep through exactly 4,294,967,296 of them.
//!
//! State: `head` packs two indices, `tail` is the third; the place of index `i` is `i % N`.
//!
//! ```text
//!   steal <= real <= tail <= steal + N          (wrapping)
//!   [steal, real)  being copied out by one thief; empty if no steal runs
//!   [real, tail)   tasks
//! ```
//!
//! Invariants:
//! 1. Only the owner writes `tail` and the places; it writes a place only while its index is
//!    outside of `[steal, tail)`.
//! 2. `steal != real` means that exactly one thief is between its first and its third phase; until
//!    then nobody else moves `steal`.
//! 3. A task belongs to whoever moved `real` beyond its index.
//!
//! | Edge  | Release side                | Acquire side            | Carries | Model |
//! |-------|-----------------------------|-------------------------|---------|-------|
//! | [RQ1] | `Ring::publish`             | `Ring::steal_into`, `Ring::pop` | the places below `tail`, and the tasks in them | `scheduler::queues::ring::model` |
//! | [RQ2] | `Ring::claim`               | `Ring::load_head`, `Ring::claim` | a `tail` that is not behind `head` | `scheduler::queues::ring::model` |
//! | [RQ3] | `Ring::claim`, `Ring::release` | `Ring::load_head`     | that the places were read | none: loom and RC11 perform a thread's load before its later store, which C++20 does not promise |
//!
//! Progress: push is wait-free until the ring is full, the loops retry only if another thread
//! succeeded. A thief that is stopped between its phases keeps other thieves away from this ring
//! and its places from being used again; the owner goes on (a full ring overflows to the injector).
//!
//! Cost: push 1 SeqCst store (a read-modify-write on x86), `push_quiet` a plain store, pop 1 RMW,
//! steal 2 RMW for any number of tasks.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use volt_sync::internal::CachePadded;
use volt_sync::internal::primitive::{AtomicPtr, AtomicU32, AtomicU64};

/// A ring of `N` places, a power of two.
pub(crate) struct Ring<T, const N: usize> {
    head: CachePadded<AtomicU64>,
    tail: CachePadded<AtomicU32>,
    places: [AtomicPtr<T>; N],
}

/// The two halves of `head`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Head(u64);

impl Head {
    #[inline]
    const fn new(steal: u32, real: u32) -> Self {
        Self((steal as u64) << 32 | real as u64)
    }

    #[inline]
    const fn steal(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    const fn real(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    const fn steal_runs(self) -> bool {
        self.steal() != self.real()
    }

    /// The head after `count` tasks were taken by their owner.
    #[inline]
    const fn advanced(self, count: u32) -> Self {
        let real = self.real().wrapping_add(count);
        Self::new(if self.steal_runs() { self.steal() } else { real }, real)
    }
}

/// What a push did.
#[must_use]
#[derive(Debug)]
pub(crate) enum Pushed<T, B> {
    /// The task is in the ring.
    Stored,
    /// The ring was full. The older half was moved into the batch; the task is in the ring.
    Overflowed(B),
    /// The ring was full and a thief is about to empty it: the task is the caller's again.
    Refused(NonNull<T>),
}

impl<T, const N: usize> Ring<T, N> {
    const MASK: usize = {
        assert!(N.is_power_of_two() && N >= 4 && N <= 1 << 20);
        N - 1
    };

    /// How many tasks an overflow moves.
    pub(crate) const HALF: usize = N / 2;

    pub(crate) fn new() -> Self {
        Self::starting_at(0)
    }

    /// An empty ring whose indices begin at `index`.
    fn starting_at(index: u32) -> Self {
        Self {
            head: CachePadded::new(AtomicU64::new(Head::new(index, index).0)),
            tail: CachePadded::new(AtomicU32::new(index)),
            places: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
        }
    }

    #[inline]
    fn place(&self, index: u32) -> &AtomicPtr<T> {
        &self.places[index as usize & Self::MASK]
    }

    /// The task at `index`.
    #[inline]
    fn read(&self, index: u32) -> *mut T {
        // ORD relaxed: whoever uses the result has acquired the tail beyond `index`, or wrote the
        // place itself.
        self.place(index).load(Relaxed)
    }

    #[inline]
    fn load_head(&self) -> Head {
        // ORD[RQ2] acquire: the tail that is loaded after this is not behind.
        // ORD[RQ3] acquire: places that were given back were read before.
        Head(self.head.load(Acquire))
    }

    /// Moves the head from `from` to `to`.
    #[inline]
    fn claim(&self, from: Head, to: Head) -> Result<(), Head> {
        // ORD[RQ2] release: the tail that made this claim possible is visible to whoever sees it.
        // ORD[RQ3] release: the place was read.
        // ORD[RQ2] acquire: of a failure, for the next attempt, as `load_head`.
        match self.head.compare_exchange(from.0, to.0, Release, Acquire) {
            Ok(_) => Ok(()),
            Err(head) => Err(Head(head)),
        }
    }

    /// True if no task is here for anybody to take.
    ///
    /// SeqCst, for the parking protocol (`idle.rs`): a worker that looks after it has published
    /// that it parks, and a pusher that looks for parked workers after [`push`](Self::push), do
    /// not miss each other.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // ORD[IS1] acquire: pairs with `publish`; the total order of the four accesses decides.
        let tail = self.tail.load(SeqCst);
        // ORD relaxed: an old head makes the ring look fuller than it is, never emptier: a head
        // that is not older than the push is at most the pusher's tail.
        Head(self.head.load(Relaxed)).real() == tail
    }

    /// How many tasks are here, as a snapshot.
    pub(crate) fn len(&self) -> usize {
        let head = self.load_head();
        // ORD relaxed: a snapshot.
        let len = self.tail.load(Relaxed).wrapping_sub(head.real());
        // A head that is newer than the tail would make it negative.
        if len as usize > N { 0 } else { len as usize }
    }

    /// How many tasks the owner could push, at least.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        let head = self.load_head();
        // ORD relaxed: only the owner, who asks, writes it.
        let tail = self.tail.load(Relaxed);
        N - tail.wrapping_sub(head.steal()) as usize
    }

    /// Appends a task, or says that there is no room.
    ///
    /// # Safety
    /// The caller is the owner of the ring.
    #[inline]
    pub(crate) unsafe fn push_if_room(&self, task: NonNull<T>) -> bool {
        // ORD relaxed: only the owner, who calls this, writes it.
        let tail = self.tail.load(Relaxed);
        let has_room = (tail.wrapping_sub(self.load_head().steal()) as usize) < N;
        if has_room {
            // SAFETY: the caller is the owner; the place is outside of [steal, tail).
            unsafe { self.publish(tail, task) };
        }
        has_room
    }

    /// Appends a task. On overflow the older half goes, in order, through `collect` into a batch.
    ///
    /// # Safety
    /// The caller is the owner of the ring.
    #[inline]
    pub(crate) unsafe fn push<B>(
        &self,
        task: NonNull<T>,
        collect: impl FnOnce(&mut dyn Iterator<Item = NonNull<T>>) -> B,
    ) -> Pushed<T, B> {
        // SAFETY: the caller is the owner.
        if unsafe { self.push_if_room(task) } {
            return Pushed::Stored;
        }
        // SAFETY: the caller is the owner.
        unsafe { self.push_full(task, collect) }
    }

    /// Appends a task without the store that the parking protocol needs: for a caller that is
    /// about to take it itself.
    ///
    /// # Safety
    /// The caller is the owner of the ring, and there is [room](Self::room).
    #[inline]
    pub(crate) unsafe fn push_quiet(&self, task: NonNull<T>) {
        // ORD relaxed: only the owner, who calls this, writes it.
        let tail = self.tail.load(Relaxed);
        // ORD relaxed: published by the tail.
        self.place(tail).store(task.as_ptr(), Relaxed);
        // ORD[RQ1] release: publishes the place and the task.
        self.tail.store(tail.wrapping_add(1), Release);
    }

    /// Writes the place of index `tail` and makes it visible.
    ///
    /// # Safety
    /// The caller is the owner; `tail` is the tail, and its place is outside of `[steal, tail)`.
    #[inline]
    unsafe fn publish(&self, tail: u32, task: NonNull<T>) {
        // ORD relaxed: published by the tail.
        self.place(tail).store(task.as_ptr(), Relaxed);
        // ORD[RQ1] release: publishes the place and the task.
        // ORD[IS1] release: SeqCst, see `is_empty`.
        self.tail.store(tail.wrapping_add(1), SeqCst);
    }

    /// # Safety
    /// The caller is the owner of the ring, in which there was no room.
    #[cold]
    unsafe fn push_full<B>(
        &self,
        task: NonNull<T>,
        collect: impl FnOnce(&mut dyn Iterator<Item = NonNull<T>>) -> B,
    ) -> Pushed<T, B> {
        // ORD relaxed: only the owner, who calls this, writes it.
        let tail = self.tail.load(Relaxed);
        let head = self.load_head();
        let first = head.real();
        let is_full = tail.wrapping_sub(head.steal()) as usize == N;
        if !is_full
            || head.steal_runs()
            || self.claim(head, head.advanced(Self::HALF as u32)).is_err()
        {
            // A thief (or pop) is at work, or was faster: there is room now, or there will be soon.
            // SAFETY: the caller is the owner.
            let stored = unsafe { self.push_if_room(task) };
            return if stored { Pushed::Stored } else { Pushed::Refused(task) };
        }
        let mut taken = (0..Self::HALF as u32).map(|offset| {
            // SAFETY: an index below the tail holds a task.
            unsafe { NonNull::new_unchecked(self.read(first.wrapping_add(offset))) }
        });
        let batch = collect(&mut taken);
        // SAFETY: the caller is the owner; half of the places are free.
        unsafe { self.publish(tail, task) };
        Pushed::Overflowed(batch)
    }

    /// Takes the oldest task. Any thread may call this.
    #[inline]
    pub(crate) fn pop(&self) -> Option<NonNull<T>> {
        let mut head = self.load_head();
        loop {
            // ORD[RQ1] acquire: the place and the task below the tail. (Free for the owner.)
            if head.real() == self.tail.load(Acquire) {
                return None;
            }
            // Before the claim: after it the owner may use the place again.
            let task = self.read(head.real());
            match self.claim(head, head.advanced(1)) {
                // SAFETY: an index below the tail holds a task.
                Ok(()) => return Some(unsafe { NonNull::new_unchecked(task) }),
                Err(newer) => head = newer,
            }
        }
    }

    /// Takes half of the tasks, rounded up: the oldest is returned, the others are appended to `to`.
    ///
    /// None if there is nothing, another thief is at work, or `to` has no room for half a ring.
    /// The second value is the number of tasks taken.
    ///
    /// # Safety
    /// The caller is the owner of `to`, which is not `self`.
    pub(crate) unsafe fn steal_into<const M: usize>(
        &self,
        to: &Ring<T, M>,
    ) -> Option<(NonNull<T>, usize)> {
        // Room is counted from the steal head: a thief may still be copying from there (P6).
        if to.room() < N / 2 {
            return None;
        }
        // Phase 1: claim.
        let mut head = self.load_head();
        let (claimed, count) = loop {
            if head.steal_runs() {
                return None;
            }
            // ORD[RQ1] acquire: the places and the tasks below the tail.
            let len = self.tail.load(Acquire).wrapping_sub(head.real());
            let count = len - len / 2;
            if count == 0 {
                return None;
            }
            if count as usize > N / 2 {
                // The head is older than the tail by more than a round.
                head = self.load_head();
                continue;
            }
            let claimed = Head::new(head.steal(), head.real().wrapping_add(count));
            match self.claim(head, claimed) {
                Ok(()) => break (claimed, count),
                Err(newer) => head = newer,
            }
        };
        // Phase 2: copy.
        let first = head.real();
        // ORD relaxed: only the owner of `to`, who calls this, writes it.
        let to_tail = to.tail.load(Relaxed);
        for offset in 1..count {
            let task = self.read(first.wrapping_add(offset));
            let place = to.place(to_tail.wrapping_add(offset - 1));
            // ORD relaxed: published by the tail below.
            place.store(task, Relaxed);
        }
        // SAFETY: an index below the tail holds a task.
        let oldest = unsafe { NonNull::new_unchecked(self.read(first)) };
        // Phase 3: give the places back.
        self.release(claimed);
        if count > 1 {
            // ORD[RQ1] release: publishes the places and the tasks.
            // ORD[IS1] release: SeqCst, see `is_empty`.
            to.tail.store(to_tail.wrapping_add(count - 1), SeqCst);
        }
        Some((oldest, count as usize))
    }

    /// The third phase of a steal: moves the steal head up to wherever the real head is by now.
    #[inline]
    fn release(&self, claimed: Head) {
        let mut head = claimed;
        // ORD[RQ3] release: the places were read. Never given up (P5): only the owner's pops can
        // make it fail.
        // ORD relaxed: a failure only brings the owner's new real head.
        while let Err(newer) = self.head.compare_exchange(
            head.0,
            Head::new(head.real(), head.real()).0,
            Release,
            Relaxed,
        ) {
            head = Head(newer);
        }
    }
}

impl<T, const N: usize> std::fmt::Debug for Ring<T, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("len", &self.len()).finish()
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
