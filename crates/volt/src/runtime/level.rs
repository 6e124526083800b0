//! On top of how many waits in the middle of user code the current thread runs others.
//!
//! Purpose: a thread that waits in a blocking `join`, or in `block_on`, runs tasks on top of what it is doing. What
//! belongs to that (task-local values, the current `LocalSet`) is not theirs: whoever keeps such things in a
//! thread-local notes the level with them, and finds nothing at another one. Only the runtime that an `EnterGuard` has
//! made the current one is put aside, since whoever spawns should not have to look at the level.
//!
//! Rejected: to put all such things aside before a wait: it would have to know every key that is in use, and
//! somebody may hold a reference to a value.
#![forbid(unsafe_code)]

use std::cell::Cell;

use super::context::{self, Entered};

#[cfg(not(volt_loom))]
std::thread_local! {
    static LEVEL: Cell<u32> = const { Cell::new(0) };
}
#[cfg(volt_loom)]
volt_sync::internal::primitive::thread_local! {
    static LEVEL: Cell<u32> = Cell::new(0);
}

/// The level of the current thread.
#[inline]
pub(crate) fn current() -> u32 {
    LEVEL.with(Cell::get)
}

/// Calls `f`, which polls or drops what is not the caller's, a level above this one. What is the caller's it polls
/// [at](Below::call) this one.
#[inline]
pub(crate) fn above<R>(f: impl FnOnce(&Below) -> R) -> R {
    let below = Below { level: current(), entered: Cell::new(None) };
    below.others_run();
    LEVEL.with(|level| level.set(below.level + 1));
    f(&below)
}

/// The level of somebody who waits; when it is dropped, the current one again.
#[derive(Debug)]
pub(crate) struct Below {
    level: u32,
    /// What its guards have entered, while others run.
    entered: Cell<Option<Entered>>,
}

impl Below {
    /// Calls `f` at this level.
    #[inline]
    pub(crate) fn call<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Above<'a>(&'a Below);
        impl Drop for Above<'_> {
            #[inline]
            fn drop(&mut self) {
                LEVEL.with(|level| level.set(self.0.level + 1));
                self.0.others_run();
            }
        }
        self.put_back();
        LEVEL.with(|level| level.set(self.level));
        let _above = Above(self);
        f()
    }

    #[inline]
    fn others_run(&self) {
        if context::has_entered() {
            self.entered.set(context::put_aside());
        }
    }

    #[inline]
    fn put_back(&self) {
        if let Some(entered) = self.entered.get() {
            self.entered.set(None);
            context::put_back(entered);
        }
    }
}

impl Drop for Below {
    #[inline]
    fn drop(&mut self) {
        LEVEL.with(|level| level.set(self.level));
        self.put_back();
    }
}
