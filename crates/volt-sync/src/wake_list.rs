//! A fixed-size batch of wakers, woken after a lock is released.
//!
//! Purpose: no waker (user code) runs while a lock of Volt is held, and collecting them allocates
//! nothing.

use std::mem::MaybeUninit;
use std::task::Waker;

use crate::first_panic::FirstPanic;

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
        let mut panic = FirstPanic::new();
        self.wake_all_into(&mut panic);
        panic.resume();
    }

    /// As [`wake_all`](Self::wake_all), for callers that have more to do before a panic goes on.
    pub(crate) fn wake_all_into(&mut self, panic: &mut FirstPanic) {
        let len = std::mem::take(&mut self.len);
        for slot in &self.wakers[..len] {
            // SAFETY: `slot` is below the old `len`, so it is initialised, and with `len` now 0
            // nobody reads it again.
            let waker = unsafe { slot.assume_init_read() };
            panic.catch(|| waker.wake());
        }
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

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::Wake;

    use super::WakeList;

    /// What the panic carries panics when it is dropped.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a payload that panics");
        }
    }

    struct Panics(AtomicUsize);

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
            panic_any(Bomb);
        }
    }

    /// The payloads of all but the first panic are dropped on the way.
    #[test]
    fn payloads_that_panic_in_drop_keep_nobody_from_being_woken() {
        let woken = Arc::new(Panics(AtomicUsize::new(0)));
        let mut wakers = WakeList::new();
        (0..5).for_each(|_| wakers.push(woken.clone().into()));
        let payload = catch_unwind(AssertUnwindSafe(|| wakers.wake_all())).unwrap_err();
        assert_eq!(woken.0.load(Relaxed), 5);
        std::mem::forget(payload.downcast::<Bomb>().unwrap());
    }
}
