//! The counting allocator: the system's, with counters that are off while time is measured.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

#[global_allocator]
static GLOBAL: Counting = Counting;

static ON: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicI64 = AtomicI64::new(0);

/// What was asked of the allocator while counting was on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) allocations: u64,
    /// Bytes requested in total.
    pub(crate) bytes: u64,
    /// Bytes requested minus bytes given back.
    pub(crate) live: i64,
}

/// Starts counting from zero, on every thread.
pub(crate) fn start() {
    ALLOCATIONS.store(0, Relaxed);
    BYTES.store(0, Relaxed);
    LIVE.store(0, Relaxed);
    ON.store(true, Relaxed);
}

/// The counts so far.
pub(crate) fn read() -> Counts {
    Counts {
        allocations: ALLOCATIONS.load(Relaxed),
        bytes: BYTES.load(Relaxed),
        live: LIVE.load(Relaxed),
    }
}

/// Stops counting and returns the counts.
pub(crate) fn stop() -> Counts {
    ON.store(false, Relaxed);
    read()
}

struct Counting;

#[inline]
fn signed(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

#[inline]
fn count_alloc(size: usize) {
    if ON.load(Relaxed) {
        ALLOCATIONS.fetch_add(1, Relaxed);
        BYTES.fetch_add(size as u64, Relaxed);
        LIVE.fetch_add(signed(size), Relaxed);
    }
}

#[inline]
fn count_free(size: usize) {
    if ON.load(Relaxed) {
        LIVE.fetch_sub(signed(size), Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator, which upholds the contract;
// the counters do not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_alloc(layout.size());
        // SAFETY: the caller's obligations are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_alloc(layout.size());
        // SAFETY: the caller's obligations are the system allocator's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count_free(layout.size());
        // SAFETY: the caller's obligations are the system allocator's.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count_alloc(new_size);
        count_free(layout.size());
        // SAFETY: the caller's obligations are the system allocator's.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}
