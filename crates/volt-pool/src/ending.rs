//! Which pools are being shut down, and by whom, so that a shutdown that could never end is told
//! from one that takes long.
//!
//! A shutdown waits for the threads of its pool. It never ends if one of them waits for the caller:
//! because the caller is that thread, or runs what it waits for, or because it shuts down the pool
//! to which the caller belongs.
//!
//! Rejected: a look without a lock. Two pools' tasks that end each other's pools would both pass.
//!
//! Invariants:
//! 1. While an entry is there, its caller is inside its shutdown, and runs nothing.

use std::cell::Cell;
#[cfg(not(volt_loom))]
use std::{ptr, sync::PoisonError};

use volt_sync::internal::primitive::const_thread_local;
#[cfg(not(volt_loom))]
use volt_sync::internal::primitive::{AtomicU64, Mutex, MutexGuard};

use crate::engine::Core;
#[cfg(not(volt_loom))]
use crate::worker::{self, Worker};

const_thread_local! {
    /// The pool of which this thread was a part until it ended; 0 if there was none.
    static ENDED: Cell<u64> = Cell::new(0);
}

/// The calling thread has ended its part in the pool of that number. What still runs in it are the
/// destructors of its thread-locals, for which the pool's shutdown waits.
pub(crate) fn note_end(pool: u64) {
    ENDED.with(|ended| ended.set(pool));
}

/// The number of the pool whose thread this one was.
#[inline]
pub(crate) fn ended_here() -> u64 {
    ENDED.with(Cell::get)
}

/// A number of its own for each pool. Not the address of its core, which a later one may get.
#[cfg(not(volt_loom))]
pub(crate) fn new_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    // ORD relaxed: a count.
    LAST.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1
}

/// Loom has no statics; its models have no destructors of thread-locals.
#[cfg(volt_loom)]
pub(crate) fn new_number() -> u64 {
    1
}

/// A shutdown that waits.
#[cfg(not(volt_loom))]
#[derive(PartialEq)]
struct Entry {
    /// The number of the pool that ends.
    pool: u64,
    /// The record of the thread that waits; null outside of pools.
    caller: *const Worker,
}

// SAFETY: the record is used under the lock only, while its thread does nothing (invariant 1).
#[cfg(not(volt_loom))]
unsafe impl Send for Entry {}

#[cfg(not(volt_loom))]
static ENTRIES: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

#[cfg(not(volt_loom))]
fn entries() -> MutexGuard<'static, Vec<Entry>> {
    ENTRIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right to wait for the end of a pool.
pub(crate) struct Ending {
    #[cfg(not(volt_loom))]
    entry: Entry,
}

#[cfg(not(volt_loom))]
impl Ending {
    /// None if the pool waits for the caller.
    pub(crate) fn begin(core: &Core) -> Option<Self> {
        let mut entries = entries();
        let caller = worker::current();
        // SAFETY: null, or the calling thread's own record.
        let inside = match unsafe { caller.as_ref() } {
            Some(worker) => is_waited_for(core, worker, &entries, &mut Vec::new()),
            None => is_ended_by(core, ended_here(), &entries, &mut Vec::new()),
        };
        if inside {
            return None;
        }
        entries.push(Entry { pool: core.number, caller });
        Some(Self { entry: Entry { pool: core.number, caller } })
    }
}

#[cfg(volt_loom)]
impl Ending {
    pub(crate) fn begin(_core: &Core) -> Option<Self> {
        Some(Self {})
    }
}

#[cfg(not(volt_loom))]
impl Drop for Ending {
    fn drop(&mut self) {
        let mut entries = entries();
        if let Some(at) = entries.iter().position(|entry| *entry == self.entry) {
            entries.swap_remove(at);
        }
    }
}

/// True if a thread of `core` waits for what runs in `worker`, which is the caller's record or that
/// of an entry.
#[cfg(not(volt_loom))]
fn is_waited_for(core: &Core, worker: &Worker, entries: &[Entry], seen: &mut Vec<u64>) -> bool {
    let mut owner = Some(worker);
    let mut frame = worker.current();
    loop {
        if let Some(owner) = owner {
            // Nobody waits for the end of a guest.
            let has_end = owner.thread().is_some();
            if ptr::eq(owner.core(), core)
                || has_end && is_ended_by(core, owner.core().number, entries, seen)
            {
                return true;
            }
        }
        // SAFETY: null, or an ancestor of code that is running, so alive.
        let Some(ancestor) = (unsafe { frame.as_ref() }) else { return false };
        // SAFETY: null, or a thread that waits for the ancestor.
        owner = unsafe { ancestor.owner().as_ref() };
        frame = ancestor.parent();
    }
}

/// True if a thread of `core` waits for the end of the pool of that number.
#[cfg(not(volt_loom))]
fn is_ended_by(core: &Core, pool: u64, entries: &[Entry], seen: &mut Vec<u64>) -> bool {
    if seen.contains(&pool) {
        return false;
    }
    seen.push(pool);
    entries.iter().filter(|entry| entry.pool == pool).any(|entry| {
        // SAFETY: null, or the record of a thread that is inside its shutdown (invariant 1).
        let caller = unsafe { entry.caller.as_ref() };
        caller.is_some_and(|caller| is_waited_for(core, caller, entries, seen))
    })
}
