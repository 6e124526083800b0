//! A fixed-size batch of wakers, woken after a lock is released.
//!
//! Purpose: no waker (user code) runs while a lock of Volt is held, and collecting them allocates
//! nothing.

use std::any::Any;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;

const CAPACITY: usize = if cfg!(volt_loom) { 2 } else { 16 };

/// Up to 16 wakers on the stack.
pub struct WakeList {
    wakers: [MaybeUninit<Waker>; CAPACITY],
    /// Invariant: `wakers[..len]` are initialised.
    len: usize,
}

impl WakeList {
    /// An empty list.
    #[inline]
    pub const fn new() -> Self {
        Self { wakers: [const { MaybeUninit::uninit() }; CAPACITY], len: 0 }
    }

    /// True if a [`push`](Self::push) would panic.
    #[inline]
    pub const fn is_full(&self) -> bool {
        self.len == CAPACITY
    }

    /// True if there is nobody to wake.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a waker.
    ///
    /// # Panics
    /// If the list [is full](Self::is_full).
    #[inline]
    pub fn push(&mut self, waker: Waker) {
        self.wakers[self.len].write(waker);
        self.len += 1;
    }

    /// Wakes all, in the order of their arrival, and empties the list.
    ///
    /// # Panics
    /// If a waker panics, with the first such panic, after all the others have been woken.
    #[inline]
    pub fn wake_all(&mut self) {
        if let Some(payload) = self.wake_all_caught() {
            resume_unwind(payload);
        }
    }

    /// As [`wake_all`](Self::wake_all), but returns what the first panic carried, for callers that
    /// have more to do before they pass it on.
    #[must_use]
    pub fn wake_all_caught(&mut self) -> Option<Box<dyn Any + Send>> {
        let mut panic = None;
        let len = std::mem::take(&mut self.len);
        for slot in &self.wakers[..len] {
            // SAFETY: `slot` is below the old `len`, so it is initialised, and with `len` now 0
            // nobody reads it again.
            let waker = unsafe { slot.assume_init_read() };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                panic.get_or_insert(payload);
            }
        }
        panic
    }
}

impl Default for WakeList {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for WakeList {
    fn drop(&mut self) {
        for slot in &mut self.wakers[..self.len] {
            // SAFETY: below `len`, so initialised, and dropped once.
            unsafe { slot.assume_init_drop() };
        }
    }
}

impl std::fmt::Debug for WakeList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WakeList").field("len", &self.len).finish()
    }
}
