//! Puts one thread to sleep until another one wakes it.
//!
//! Purpose: the sleeping half of every blocking call of Volt. One token: an [`unpark`] before the
//! [`park`] makes that `park` return at once; several of them count as one.
//!
//! Rejected: `std::thread::park`, whose token is shared with every other user of the thread, and
//! which looks up the thread's handle on the way.
//!
//! | State    | `park`                         | `unpark`                |
//! |----------|--------------------------------|-------------------------|
//! | EMPTY    | to PARKED, sleeps              | to NOTIFIED             |
//! | PARKED   | (asleep)                       | to NOTIFIED, futex wake |
//! | NOTIFIED | to EMPTY, returns at once      | nothing                 |
//!
//! | Edge  | Release side     | Acquire side            | Carries                   | Model           |
//! |-------|------------------|-------------------------|---------------------------|-----------------|
//! | [PK1] | `Parker::unpark` | every exit from a sleep | what the waker did before | `parker::model` |
//!
//! Progress: a notification is consumed only by a read-modify-write of the sleeper (finding K4: a
//! plain store could overwrite a NOTIFIED that it never saw), so each one is seen by the `park`
//! that it concerns, or by the next.
//!
//! Cost: `park` with a token 1 RMW; `unpark` 1 RMW, and a system call only if the thread sleeps.
//!
//! [`park`]: Parker::park
//! [`unpark`]: Parker::unpark

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use crate::primitive::Futex;

const EMPTY: u32 = 0;
const PARKED: u32 = 1;
const NOTIFIED: u32 = 2;

/// One thread's place to sleep, with one token.
#[derive(Debug)]
pub struct Parker {
    state: Futex,
}

impl Parker {
    crate::const_fn! {
        /// A parker without a token.
        pub const fn new() -> Self {
            Self { state: Futex::new(EMPTY) }
        }
    }

    /// Sleeps until [`unpark`](Self::unpark) is called, or returns at once if it was.
    ///
    /// Only one thread may park at a time.
    pub fn park(&self) {
        if !self.begin() {
            return;
        }
        loop {
            self.state.wait(PARKED, None);
            if self.take_token() {
                return;
            }
        }
    }

    /// As [`park`](Self::park), but for `timeout` at most. Returns whether a token was consumed.
    pub fn park_timeout(&self, timeout: Duration) -> bool {
        if !self.begin() {
            return true;
        }
        self.state.wait(PARKED, Some(timeout));
        // One wait only: callers look at the clock and come back after a spurious return.
        // ORD[PK1] acquire: the token carries the waker's writes.
        self.state.word().swap(EMPTY, Acquire) == NOTIFIED
    }

    /// Hands the thread a token, and wakes it if it sleeps.
    pub fn unpark(&self) {
        // ORD[PK1] release: everything before this call happens before the `park` that takes the
        // token returns.
        if self.state.word().swap(NOTIFIED, Release) == PARKED {
            self.state.wake(1);
        }
    }

    /// True if there is a token.
    pub fn is_notified(&self) -> bool {
        // ORD relaxed: a look; whoever takes the token acquires.
        self.state.word().load(Relaxed) == NOTIFIED
    }

    /// Announces the sleep. False if a token was there: it is consumed.
    fn begin(&self) -> bool {
        // ORD relaxed: entering the sleep carries nothing; a token is read by the swap below.
        match self.state.word().compare_exchange(EMPTY, PARKED, Relaxed, Relaxed) {
            Ok(_) => true,
            Err(_) => {
                // ORD[PK1] acquire: the token carries the waker's writes.
                self.state.word().swap(EMPTY, Acquire);
                false
            }
        }
    }

    /// Takes the token if there is one; otherwise the wake-up was spurious.
    fn take_token(&self) -> bool {
        // ORD[PK1] acquire: the token carries the waker's writes. A failure read PARKED: nobody's.
        self.state.word().compare_exchange(NOTIFIED, EMPTY, Acquire, Relaxed).is_ok()
    }
}

impl Default for Parker {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
