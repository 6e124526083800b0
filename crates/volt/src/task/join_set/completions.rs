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
//!    It holds a count of the `Shared`.
//! 2. An entry is pushed at most once between two times that it is free. `next` and `counted` belong
//!    to the pusher until the push, and then to the set.
//! 3. Everything in `Shared` but `completed`, `waiter` and `counts` belongs to the set.
//! 4. `counts` is the number of wakers, of entries in the stack that are `counted`, of the set's spare
//!    counts, and 1 for the set. Whoever takes it to 0 frees the `Shared`.
//! 5. Once the set has gone the stack is closed: a pusher that finds it so gives its count back.
//!
//! | Edge  | Release side  | Acquire side   | Carries            | Model |
//! |-------|---------------|----------------|--------------------|-------|
//! | [JS1] | `Shared::push` | `Shared::take` | the links          | `task::join_set::model::each_task_is_joined_once` |
//! | [JS2] | `Shared::give_back` | `Shared::give_back` | every access before the memory is freed | `task::join_set::model::the_last_of_set_and_task_frees_the_entry` |
//!
//! Progress: whoever pushes on the empty stack wakes the set. The set registers its waker before it
//! looks at the stack for the last time. Whoever pushes on others leaves the wake-up to the first.
//!
//! Cost: per task 1 read-modify-write, for the push: its waker's count comes from a stock that the
//! set takes at once, and goes back there with the entry. Per batch a wake-up and 1 for its count.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::task::{RawWaker, RawWakerVTable, Waker};

use volt_sync::internal::WaiterSlot;
use volt_sync::internal::primitive::{AtomicPtr, AtomicUsize, UnsafeCell};

use crate::task::{AbortHandle, JoinHandle};

/// The number of entries in the first chunk; each further one has twice as many.
const FIRST_CHUNK: usize = if cfg!(volt_loom) { 1 } else { 8 };

/// Counts that the set takes at once.
const STOCK: usize = if cfg!(volt_loom) { 1 } else { 1024 };

/// The set gives its chunks back when it runs empty and has more entries than this.
const KEEP: usize = 512;

/// What the set and the wakers of its tasks share.
pub(super) struct Shared<T> {
    completed: AtomicPtr<Entry<T>>,
    counts: AtomicUsize,
    pub(super) waiter: WaiterSlot,
    /// The set's own (invariant 3).
    chunks: UnsafeCell<Vec<(NonNull<Entry<T>>, usize)>>,
}

/// A task of the set, or a place for one.
pub(super) struct Entry<T> {
    shared: NonNull<Shared<T>>,
    /// The next one in the list or stack that the entry is in.
    next: UnsafeCell<*mut Entry<T>>,
    /// In the stack: its waker's count came with it.
    counted: UnsafeCell<bool>,
    /// The set's own (invariant 3).
    handle: UnsafeCell<Option<JoinHandle<T>>>,
}

/// The set's side: entries and lists. Everything but `shared` is reached through `&mut` only.
pub(super) struct Completions<T> {
    /// With a count, and `spare` more.
    shared: Option<NonNull<Shared<T>>>,
    spare: usize,
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
        Self {
            shared: None,
            spare: 0,
            free: ptr::null_mut(),
            ready: ptr::null_mut(),
            len: 0,
            capacity: 0,
        }
    }

    fn shared(&self) -> Option<&Shared<T>> {
        // SAFETY: alive by the set's count.
        self.shared.map(|shared| unsafe { shared.as_ref() })
    }

    /// How many tasks have not been joined.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Where the set registers its waker, if it has tasks.
    pub(super) fn waiter(&self) -> Option<&WaiterSlot> {
        self.shared().map(|shared| &shared.waiter)
    }

    /// Adds a task.
    #[inline]
    pub(super) fn insert(&mut self, mut handle: JoinHandle<T>) -> AbortHandle {
        let entry = self.allocate();
        // SAFETY: the entry is alive as long as the set.
        let place = unsafe { &*entry };
        // A count for the waker.
        if self.spare == 0 {
            self.spare = self.shared().map_or(0, Shared::stock_up);
        }
        self.spare -= 1;
        // SAFETY: the entry is free and stays at its address as long as `shared` lives, of which
        // the waker gets the count.
        let waker = unsafe { Entry::waker(entry) };
        let (abort, unused) = handle.register_first(waker);
        if let Some(waker) = unused {
            // It has completed already.
            drop(waker);
            // SAFETY: the entry has no waker: its link is the set's.
            place.next.with_mut(|next| unsafe { *next = self.ready });
            self.ready = entry;
        }
        // SAFETY: the handle is the set's, and `&mut self` makes this the only access.
        place.handle.with_mut(|slot| unsafe { *slot = Some(handle) });
        self.len += 1;
        abort
    }

    /// Takes a task that has completed.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<JoinHandle<T>> {
        if self.ready.is_null() {
            let (ready, counted) = self.shared()?.take(ptr::null_mut());
            self.ready = ready;
            self.spare += counted;
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
            drop(std::mem::replace(self, Self::new()));
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
            // may push the entry still: it has a count.
            drop(handle);
        });
    }

    fn entries(&self, mut f: impl FnMut(&Entry<T>)) {
        let Some(shared) = self.shared() else { return };
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
        let address =
            *self.shared.get_or_insert_with(|| NonNull::from(Box::leak(Box::new(Shared::new()))));
        // SAFETY: alive by the set's count.
        let shared = unsafe { address.as_ref() };
        let len = self.capacity.max(FIRST_CHUNK);
        let chunk: Box<[Entry<T>]> = (0..len)
            .map(|_| Entry {
                shared: address,
                next: UnsafeCell::new(ptr::null_mut()),
                counted: UnsafeCell::new(false),
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

#[cfg(all(test, not(volt_loom)))]
impl<T> Completions<T> {
    /// How many counts there are, and how many of them are the set's.
    pub(super) fn counts(&self) -> (usize, usize) {
        // ORD relaxed: a statistic.
        (self.shared().map_or(0, |shared| shared.counts.load(Relaxed)), 1 + self.spare)
    }
}

impl<T> Drop for Completions<T> {
    fn drop(&mut self) {
        if self.len > 0 {
            self.clear();
        }
        let Some(shared) = self.shared else { return };
        // SAFETY: alive by the set's count.
        let (_, counted) = unsafe { shared.as_ref() }.take(Shared::CLOSED);
        // SAFETY: the set's counts, and those that came with the entries of the stack.
        unsafe { Shared::give_back(shared, 1 + self.spare + counted) };
    }
}

impl<T> Shared<T> {
    /// The stack once the set has gone. Never looked into.
    const CLOSED: *mut Entry<T> = ptr::dangling_mut();

    /// With one count, for the set.
    fn new() -> Self {
        Self {
            completed: AtomicPtr::new(ptr::null_mut()),
            counts: AtomicUsize::new(1),
            waiter: WaiterSlot::new(),
            chunks: UnsafeCell::new(Vec::new()),
        }
    }

    /// Adds some counts, for the set.
    #[cold]
    fn stock_up(&self) -> usize {
        // ORD relaxed: the caller has a count; giving more carries nothing.
        self.counts.fetch_add(STOCK, Relaxed);
        STOCK
    }

    /// Gives counts back; frees the `Shared` if they were the last.
    ///
    /// # Safety
    /// The caller has that many counts, and uses the `Shared` no more.
    unsafe fn give_back(this: NonNull<Self>, counts: usize) {
        // SAFETY: alive by the counts.
        let shared = unsafe { this.as_ref() };
        // ORD[JS2] release: what was done with these counts.
        if shared.counts.fetch_sub(counts, Release) == counts {
            // ORD[JS2] acquire: what was done with all others. Not a fence, which ThreadSanitizer does
            // not see: this reads what the subtraction left, and that continues all their releases.
            shared.counts.load(Acquire);
            // SAFETY: leaked by `grow`; nobody else has a count.
            drop(unsafe { Box::from_raw(this.as_ptr()) });
        }
    }

    /// Pushes an entry whose task has completed; its waker's count goes with it if it is not the
    /// first in the stack. If it is, or the stack is closed, the count stays the caller's.
    ///
    /// By pointer, since a reference in the arguments would have to be valid until the return, and
    /// the `Shared` may go as soon as the entry is in the stack.
    ///
    /// # Safety
    /// The entry is one of this set's, and the caller has used up its waker, but not its count.
    #[inline]
    unsafe fn push(this: NonNull<Self>, entry: *mut Entry<T>) -> Pushed {
        // SAFETY: alive by the waker's count until the push.
        let completed = unsafe { &this.as_ref().completed };
        // SAFETY: alive as long as the `Shared`.
        let place = unsafe { &*entry };
        // ORD relaxed: only the operand of the exchange.
        let mut head = completed.load(Relaxed);
        loop {
            if head == Self::CLOSED {
                return Pushed::Closed;
            }
            // SAFETY: the link is the pusher's until the push (invariant 2).
            place.next.with_mut(|next| unsafe { *next = head });
            // SAFETY: so is this (invariant 2).
            place.counted.with_mut(|counted| unsafe { *counted = !head.is_null() });
            // ORD[JS1] release: publishes the link.
            match completed.compare_exchange_weak(head, entry, Release, Relaxed) {
                Ok(_) if head.is_null() => return Pushed::First,
                Ok(_) => return Pushed::Behind,
                Err(now) => head = now,
            }
        }
    }

    /// Takes all that has completed, in the order in which it did, and leaves `end`, null or
    /// `CLOSED`. The second value: how many of the entries are counted. Only for the set.
    fn take(&self, end: *mut Entry<T>) -> (*mut Entry<T>, usize) {
        // ORD relaxed: null means that there is nothing, or that the pusher will wake us.
        if self.completed.load(Relaxed) == end {
            return (ptr::null_mut(), 0);
        }
        // ORD[JS1] acquire: the links.
        let mut entry = self.completed.swap(end, Acquire);
        let (mut reversed, mut counts) = (ptr::null_mut(), 0);
        // SAFETY: null, or an entry of the set, alive as long as `self`.
        while let Some(place) = unsafe { entry.as_ref() } {
            // SAFETY: it was pushed: this is the set's.
            counts += usize::from(place.counted.with(|counted| unsafe { *counted }));
            // SAFETY: it was pushed: its link is the set's.
            let next =
                place.next.with_mut(|link| unsafe { std::mem::replace(&mut *link, reversed) });
            reversed = std::mem::replace(&mut entry, next);
        }
        (reversed, counts)
    }
}

/// What a push did.
#[must_use]
enum Pushed {
    /// Nothing: the set has gone.
    Closed,
    /// The stack was empty.
    First,
    /// It was not. The `Shared` must not be used any more.
    Behind,
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // Loom takes no notice of a drop: this is the access that the last ones come before. A task
        // contains the panics of its joiner's waker, so loom's complaint has to end the process.
        #[cfg(volt_loom)]
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.completed.with_mut(|_| ())))
            .unwrap_or_else(|_| std::process::abort());
        for (first, len) in self.chunks.get_mut().drain(..) {
            let chunk = NonNull::slice_from_raw_parts(first, len);
            // SAFETY: leaked by `grow`; nobody has a reference to the `Shared`, so none to it.
            drop(unsafe { Box::from_raw(chunk.as_ptr()) });
        }
    }
}

/// A waker's count. It is given back also if the set's own waker panics.
struct Count<T>(NonNull<Shared<T>>);

impl<T> Drop for Count<T> {
    fn drop(&mut self) {
        // SAFETY: the count is this one's.
        unsafe { Shared::give_back(self.0, 1) };
    }
}

impl<T> Entry<T> {
    const VTABLE: RawWakerVTable =
        RawWakerVTable::new(Self::clone, Self::wake, Self::wake_by_ref, Self::drop);

    /// The waker that pushes the entry.
    ///
    /// # Safety
    /// `entry` is free. The caller gives a count of its `Shared` away.
    #[inline]
    unsafe fn waker(entry: *mut Self) -> Waker {
        // SAFETY: the functions take the entry's address, which the count keeps alive.
        unsafe { Waker::new(entry.cast_const().cast(), &Self::VTABLE) }
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
        // SAFETY: the waker's count keeps the entry alive.
        let shared = unsafe { (*entry).shared };
        // SAFETY: the entry is of this set, and its waker is used up here.
        let pushed = unsafe { Shared::push(shared, entry) };
        if let Pushed::Behind = pushed {
            return;
        }
        let count = Count(shared);
        if let Pushed::First = pushed {
            // SAFETY: alive by the count.
            unsafe { count.0.as_ref() }.waiter.wake();
        }
    }

    unsafe fn drop(entry: *const ()) {
        let entry = entry.cast_mut().cast::<Self>();
        // SAFETY: the waker's count keeps the entry alive.
        drop(Count(unsafe { (*entry).shared }));
    }
}
