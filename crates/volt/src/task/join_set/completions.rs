//! The tasks of a `JoinSet`, and those of them that have completed.
//!
//! Purpose: `join_next` looks only at tasks that have completed, however many there are, and adding
//! a task allocates nothing but the task (amortised).
//!
//! Rejected: polling every handle (quadratic); an allocated entry a task with two lists under a
//! mutex (an allocation and three locks a task).
//!
//! A task of the set has an entry, at an address that does not change. The waker in the task's
//! join slot points to the entry, and its wake-up pushes the entry on a stack of completed ones,
//! which the set takes as a whole.
//!
//! | Entry     | `handle` | its waker                | is in                        |
//! |-----------|----------|--------------------------|------------------------------|
//! | free      | none     | none                     | the free list                |
//! | running   | some     | in the task's join slot  | nothing                      |
//! | completed | some     | used up, or about to be  | the stack, or the ready list |
//!
//! Invariants:
//! 1. A waker of the set exists once for each running entry; it is woken or dropped, never cloned.
//!    It holds a strong count of the `Shared`.
//! 2. An entry is pushed at most once between two times that it is free. `next` belongs to the
//!    pusher until the push, and then to the set.
//! 3. Everything in `Shared` but `completed` and `waiter` belongs to the set.
//!
//! | Edge  | Release side  | Acquire side   | Carries            | Model |
//! |-------|---------------|----------------|--------------------|-------|
//! | [JS1] | `Shared::push` | `Shared::take` | the links          | `task::join_set::model::each_task_is_joined_once` |
//!
//! Progress: whoever pushes on the empty stack wakes the set. The set registers its waker before it
//! looks at the stack for the last time. Whoever pushes on others leaves the wake-up to the first.
//!
//! Cost: per task 1 read-modify-write for the push, 2 for the count; a wake-up per batch.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::task::{RawWaker, RawWakerVTable, Waker};

use volt_sync::internal::WaiterSlot;
use volt_sync::internal::primitive::{Arc, AtomicPtr, UnsafeCell};

use crate::task::JoinHandle;

/// The number of entries in the first chunk; each further one has twice as many.
const FIRST_CHUNK: usize = if cfg!(volt_loom) { 1 } else { 8 };

/// The set gives its chunks back when it runs empty and has more entries than this.
const KEEP: usize = 512;

/// What the set and the wakers of its tasks share.
pub(super) struct Shared<T> {
    completed: AtomicPtr<Entry<T>>,
    pub(super) waiter: WaiterSlot,
    /// The set's own (invariant 3).
    chunks: UnsafeCell<Vec<(NonNull<Entry<T>>, usize)>>,
}

/// A task of the set, or a place for one.
pub(super) struct Entry<T> {
    shared: *const Shared<T>,
    /// The next one in the list or stack that the entry is in.
    next: UnsafeCell<*mut Entry<T>>,
    /// The set's own (invariant 3).
    handle: UnsafeCell<Option<JoinHandle<T>>>,
}

/// The set's side: entries and lists. Everything but `shared` is reached through `&mut` only.
pub(super) struct Completions<T> {
    shared: Option<Arc<Shared<T>>>,
    free: *mut Entry<T>,
    /// Completed ones, the first to complete first.
    ready: *mut Entry<T>,
    len: usize,
    capacity: usize,
}

// SAFETY: the handles may be sent if their outputs may; the rest is pointers to what the set owns,
// and counted references.
unsafe impl<T: Send> Send for Completions<T> {}
// SAFETY: `&Completions` gives access to the length only.
unsafe impl<T: Send> Sync for Completions<T> {}

impl<T> Completions<T> {
    pub(super) const fn new() -> Self {
        Self { shared: None, free: ptr::null_mut(), ready: ptr::null_mut(), len: 0, capacity: 0 }
    }

    /// How many tasks have not been joined.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Where the set registers its waker, if it has tasks.
    pub(super) fn waiter(&self) -> Option<&WaiterSlot> {
        self.shared.as_deref().map(|shared| &shared.waiter)
    }

    /// Adds a task.
    pub(super) fn insert(&mut self, mut handle: JoinHandle<T>) {
        let entry = self.allocate();
        // SAFETY: the entry is alive as long as the set.
        let place = unsafe { &*entry };
        // SAFETY: the entry is free and stays at its address as long as `shared` lives, of which
        // the waker gets a strong count.
        let waker = unsafe { Entry::waker(entry) };
        if let Err(waker) = handle.register_first(waker) {
            // It has completed already.
            drop(waker);
            // SAFETY: the entry has no waker: its link is the set's.
            place.next.with_mut(|next| unsafe { *next = self.ready });
            self.ready = entry;
        }
        // SAFETY: the handle is the set's, and `&mut self` makes this the only access.
        place.handle.with_mut(|slot| unsafe { *slot = Some(handle) });
        self.len += 1;
    }

    /// Takes a task that has completed.
    pub(super) fn pop(&mut self) -> Option<JoinHandle<T>> {
        if self.ready.is_null() {
            self.ready = self.shared.as_deref()?.take();
        }
        let entry = self.ready;
        // SAFETY: null, or an entry of the set.
        let place = unsafe { entry.as_ref() }?;
        // SAFETY: the entry is in the ready list: its link is the set's.
        self.ready = place.next.with(|next| unsafe { *next });
        // SAFETY: the handle is the set's, and `&mut self` makes this the only access.
        let handle = place.handle.with_mut(|slot| unsafe { (*slot).take() });
        // SAFETY: the entry's waker is used up and it is in no list: its link is the set's.
        place.next.with_mut(|next| unsafe { *next = self.free });
        self.free = entry;
        self.len -= 1;
        if self.len == 0 && self.capacity > KEEP {
            *self = Self::new();
        }
        debug_assert!(handle.is_some(), "a completed entry has a handle");
        handle
    }

    /// Calls `f` for every task that was not joined.
    pub(super) fn for_each(&self, mut f: impl FnMut(&JoinHandle<T>)) {
        self.entries(|entry| {
            // SAFETY: the handle is the set's. `f` gets no access to the set, so nothing changes
            // it meanwhile.
            let handle = entry.handle.with(|slot| unsafe { &*slot });
            handle.iter().for_each(&mut f);
        });
    }

    /// Drops all handles, and forgets the tasks.
    pub(super) fn clear(&mut self) {
        let mut old = std::mem::replace(self, Self::new());
        old.len = 0;
        old.entries(|entry| {
            // SAFETY: the handle is the set's, which is `old` now.
            let handle = entry.handle.with_mut(|slot| unsafe { (*slot).take() });
            // This takes the waker back, or leaves it to the task that has just completed, which
            // may push the entry still: it has a strong count.
            drop(handle);
        });
    }

    fn entries(&self, mut f: impl FnMut(&Entry<T>)) {
        let Some(shared) = self.shared.as_deref() else { return };
        // SAFETY: invariant 3; `allocate`, which changes it, needs `&mut self`.
        let chunks = shared.chunks.with(|chunks| unsafe { &*chunks });
        for &(first, len) in chunks {
            for at in 0..len {
                // SAFETY: within the chunk.
                let entry = unsafe { first.add(at) };
                // SAFETY: initialised, and alive as long as `shared`.
                f(unsafe { entry.as_ref() });
            }
        }
    }

    /// Takes a free entry.
    #[inline]
    fn allocate(&mut self) -> *mut Entry<T> {
        if self.free.is_null() {
            self.grow();
        }
        let entry = self.free;
        // SAFETY: `grow` leaves a free entry.
        let place = unsafe { &*entry };
        // SAFETY: it is in the free list: its link is the set's.
        self.free = place.next.with(|next| unsafe { *next });
        entry
    }

    #[cold]
    fn grow(&mut self) {
        let shared = self.shared.get_or_insert_with(|| Arc::new(Shared::new()));
        let len = self.capacity.max(FIRST_CHUNK);
        let address: *const Shared<T> = Arc::as_ptr(shared);
        let chunk: Box<[Entry<T>]> = (0..len)
            .map(|_| Entry {
                shared: address,
                next: UnsafeCell::new(ptr::null_mut()),
                handle: UnsafeCell::new(None),
            })
            .collect();
        let first = NonNull::from(Box::leak(chunk)).cast::<Entry<T>>();
        // SAFETY: invariant 3, and `&mut self` makes this the only access.
        shared.chunks.with_mut(|chunks| unsafe { &mut *chunks }.push((first, len)));
        self.capacity += len;
        for at in (0..len).rev() {
            // SAFETY: within the chunk.
            let entry = unsafe { first.add(at) };
            // SAFETY: alive as long as `shared`.
            let place = unsafe { entry.as_ref() };
            // SAFETY: a new entry's link is the set's.
            place.next.with_mut(|next| unsafe { *next = self.free });
            self.free = entry.as_ptr();
        }
    }
}

impl<T> Drop for Completions<T> {
    fn drop(&mut self) {
        if self.len > 0 {
            self.clear();
        }
    }
}

impl<T> Shared<T> {
    fn new() -> Self {
        Self {
            completed: AtomicPtr::new(ptr::null_mut()),
            waiter: WaiterSlot::new(),
            chunks: UnsafeCell::new(Vec::new()),
        }
    }

    /// Pushes an entry whose task has completed. True if the stack was empty.
    ///
    /// # Safety
    /// The entry is one of this set's, and the caller has used up its waker.
    unsafe fn push(&self, entry: *mut Entry<T>) -> bool {
        // SAFETY: alive as long as `self`.
        let place = unsafe { &*entry };
        // ORD relaxed: only the operand of the exchange.
        let mut head = self.completed.load(Relaxed);
        loop {
            // SAFETY: the link is the pusher's until the push (invariant 2).
            place.next.with_mut(|next| unsafe { *next = head });
            // ORD[JS1] release: publishes the link.
            match self.completed.compare_exchange_weak(head, entry, Release, Relaxed) {
                Ok(_) => return head.is_null(),
                Err(now) => head = now,
            }
        }
    }

    /// Takes all that has completed, in the order in which it did. Only for the set.
    fn take(&self) -> *mut Entry<T> {
        // ORD relaxed: null means that there is nothing, or that the pusher will wake us.
        if self.completed.load(Relaxed).is_null() {
            return ptr::null_mut();
        }
        // ORD[JS1] acquire: the links.
        let mut entry = self.completed.swap(ptr::null_mut(), Acquire);
        let mut reversed = ptr::null_mut();
        // SAFETY: null, or an entry of the set, alive as long as `self`.
        while let Some(place) = unsafe { entry.as_ref() } {
            // SAFETY: it was pushed: its link is the set's.
            let next =
                place.next.with_mut(|link| unsafe { std::mem::replace(&mut *link, reversed) });
            reversed = std::mem::replace(&mut entry, next);
        }
        reversed
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        for (first, len) in self.chunks.get_mut().drain(..) {
            let chunk = NonNull::slice_from_raw_parts(first, len);
            // SAFETY: leaked by `grow`; nobody has a reference to the `Shared`, so none to it.
            drop(unsafe { Box::from_raw(chunk.as_ptr()) });
        }
    }
}

impl<T> Entry<T> {
    const VTABLE: RawWakerVTable =
        RawWakerVTable::new(Self::clone, Self::wake, Self::wake_by_ref, Self::drop);

    /// The waker that pushes the entry.
    ///
    /// # Safety
    /// `entry` is free, and its `Shared` alive.
    unsafe fn waker(entry: *mut Self) -> Waker {
        // SAFETY: an entry lives as long as its `Shared`.
        let shared = unsafe { (*entry).shared };
        // SAFETY: alive; the pointer is an `Arc`'s.
        unsafe { Arc::increment_strong_count(shared) };
        // SAFETY: the functions take the entry's address, which the count just added keeps alive.
        unsafe { Waker::new(entry.cast_const().cast(), &Self::VTABLE) }
    }

    /// The strong count that a waker holds.
    ///
    /// # Safety
    /// The caller has the waker of this entry, and gives it up.
    unsafe fn shared(entry: *mut Self) -> Arc<Shared<T>> {
        // SAFETY: the waker's count keeps the entry alive.
        let shared = unsafe { (*entry).shared };
        // SAFETY: the count was added by `waker`, and is taken once.
        unsafe { Arc::from_raw(shared) }
    }

    unsafe fn clone(_entry: *const ()) -> RawWaker {
        // Only a task's completion gets to see it.
        unreachable!("the waker of a `JoinSet`'s entry is not cloned")
    }

    unsafe fn wake_by_ref(_entry: *const ()) {
        unreachable!("the waker of a `JoinSet`'s entry is used up by its wake-up")
    }

    unsafe fn wake(entry: *const ()) {
        let entry = entry.cast_mut().cast::<Self>();
        // SAFETY: the waker's data; it is used up here.
        let shared = unsafe { Self::shared(entry) };
        // SAFETY: the entry is of this set, and its waker is used up here.
        if unsafe { shared.push(entry) } {
            shared.waiter.wake();
        }
    }

    unsafe fn drop(entry: *const ()) {
        // SAFETY: the waker's data; it is dropped here.
        drop(unsafe { Self::shared(entry.cast_mut().cast()) });
    }
}
