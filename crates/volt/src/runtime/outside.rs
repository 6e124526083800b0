//! Whether the future that is polled waits for something outside of the runtime: time, or the system.
//!
//! Purpose: a thread in `block_on` runs no task while its own future does (`scheduler/guests/guest.rs`), since
//! no task can hold that up then.
#![forbid(unsafe_code)]

use std::cell::Cell;

#[cfg(not(volt_loom))]
std::thread_local! {
    static WAITS: Cell<bool> = const { Cell::new(false) };
}
#[cfg(volt_loom)]
volt_sync::internal::primitive::thread_local! {
    static WAITS: Cell<bool> = Cell::new(false);
}

/// A timer, or a source of the reactor, was pending at some time in this poll.
#[inline]
pub(crate) fn waits() {
    WAITS.with(|waits| waits.set(true));
}

/// True if [`waits`] was called on this thread since the last time that this was.
#[inline]
pub(crate) fn waited() -> bool {
    WAITS.with(|waits| waits.replace(false))
}
