//! Names of tasks.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::fmt;
use std::num::NonZeroU64;
use std::ptr::NonNull;
// STD: what a static holds; no model asks which number it gets.
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use super::header::Header;

/// Tells a task from all others that are alive.
///
/// The id of a task that has completed may be given to another one later, though hardly soon: it
/// combines the task's address with a counter of the process, of which each thread takes 64 numbers at a time. So it is
/// given again after some 60,000 others, or, where one thread spawns much less often than the others, after any number, if that
/// one happens to get the memory just then. A program that keeps the ids of tasks that have ended should know
/// that. The order of ids, which is there for sets and maps, says nothing about which task is older.
///
/// # Examples
/// ```
/// volt::run(async {
///     let (a, b) = (volt::spawn(async {}), volt::spawn(async {}));
///     assert_ne!(a.id(), b.id());
///     assert_eq!(std::collections::BTreeSet::from([a.id(), b.id(), a.id()]).len(), 2);
/// });
/// ```
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(NonZeroU64);

impl Id {
    #[inline]
    pub(super) fn new(task: NonNull<Header>, generation: u16) -> Self {
        // Headers are aligned to 8 bytes and user addresses end below 2^48 (where they do not, the
        // generation only overlaps the highest bits).
        let address = task.addr().get() as u64 >> 3;
        let id = address ^ (u64::from(generation) << 48);
        Self(NonZeroU64::new(id).unwrap_or(NonZeroU64::MAX))
    }
}

impl Id {
    pub(crate) fn as_u64(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

volt_sync::internal::primitive::const_thread_local! {
    static CURRENT: Cell<Option<Id>> = Cell::new(None);
    /// The next generation that this thread gives, in the upper half, and how many it has left.
    static GENERATIONS: Cell<u32> = Cell::new(0);
    /// How many it took the last time.
    static TAKEN: Cell<u16> = Cell::new(0);
    static POLLED: Cell<usize> = Cell::new(0);
}

/// The id of the running task.
///
/// # Examples
/// ```
/// volt::run(async {
///     let task = volt::spawn(async { volt::task::id() });
///     assert_eq!(task.id(), task.await.unwrap());
/// });
/// ```
///
/// # Panics
/// If it is not called from within a task. The future of `block_on` is none.
#[track_caller]
pub fn id() -> Id {
    try_id().expect("`task::id` needs a running task: call it inside a spawned future")
}

/// The id of the running task, if there is one.
///
/// # Examples
/// ```
/// assert!(volt::task::try_id().is_none());
/// ```
pub fn try_id() -> Option<Id> {
    CURRENT.try_with(Cell::get).ok().flatten()
}

/// The most generations that a thread takes at once.
const PORTION: u16 = 64;

/// The first generation that no thread has taken. It begins anew after 2^16 of them.
static NEXT_GENERATION: AtomicU16 = AtomicU16::new(0);

/// The next generation. A thread takes some at once, so tasks at one address, which mostly follow each other, have
/// different ones on whatever thread they are spawned.
#[inline]
pub(super) fn next_generation() -> u16 {
    // An error means that the thread is ending: it takes one each time.
    let next = GENERATIONS.try_with(|cell| {
        let mut generations = cell.get();
        if generations & LEFT == 0 {
            generations = take_generations();
        }
        cell.set(generations.wrapping_add(FIRST - 1));
        generations
    });
    (next.unwrap_or_else(|_| take_generations()) >> FIRST.trailing_zeros()) as u16
}

/// In [`GENERATIONS`]: the unit of what is next, and the bits that say how many are left.
const FIRST: u32 = 1 << 16;
const LEFT: u32 = FIRST - 1;

/// Takes generations for this thread: one to begin with, as most threads spawn one task or many.
#[cold]
fn take_generations() -> u32 {
    let portion = TAKEN.try_with(|taken| {
        taken.set((2 * taken.get()).clamp(1, PORTION));
        taken.get()
    });
    let portion = portion.unwrap_or(1);
    // ORD relaxed: numbers of this thread's own, and nothing with them.
    let first = NEXT_GENERATION.fetch_add(portion, Relaxed);
    u32::from(first) << FIRST.trailing_zeros() | u32::from(portion)
}

/// Makes `id` the running task's until the result is dropped.
#[inline]
pub(super) fn enter(id: Id) -> Entered {
    Entered(CURRENT.try_with(|current| current.replace(Some(id))).unwrap_or_default())
}

/// Puts the outer task's id back.
pub(super) struct Entered(Option<Id>);

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        // An error means that the thread is ending: nobody asks any more.
        let _ended = CURRENT.try_with(|current| current.set(self.0));
    }
}

/// Set in `POLLED` by a wake-up of the polled task. (Headers are aligned.)
const WOKEN: usize = 1;

/// Calls `poll`, on this thread and for `task`; true if that woke the task by [`wake_polled`].
#[inline]
pub(super) fn while_polled<R>(task: NonNull<Header>, poll: impl FnOnce() -> R) -> (R, bool) {
    let address = task.addr().get();
    let outer = POLLED.try_with(|polled| polled.replace(address)).unwrap_or_default();
    let result = poll();
    let woken = POLLED.try_with(|polled| polled.replace(outer)).is_ok_and(|now| now != address);
    (result, woken)
}

/// Notes a wake-up of `task`, if that is what this thread polls: it needs no atomic operation then.
#[inline]
pub(super) fn wake_polled(task: NonNull<Header>) -> bool {
    let woken = task.addr().get() | WOKEN;
    POLLED
        .try_with(|polled| polled.get() | WOKEN == woken && polled.replace(woken) != 0)
        .unwrap_or(false)
}
