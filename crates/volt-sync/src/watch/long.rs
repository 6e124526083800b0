//! Senders whose turn with the value may take long, and receivers that sleep meanwhile.
//!
//! Purpose: a receiver that begins to wait must know that the next sender sees it waiting. It knows
//! that once it has had the value's read lock, which it must not wait for (somebody may hold a
//! `Ref`). Behind a sender that has just to store a value it tries again, a few instructions later.
//! Behind one that runs a closure of its user's, or waits for a `Ref`, it sleeps until that is over.
//!
//! Rejected: coming back by itself for as long as it takes, which keeps a processor busy; a
//! `fence(SeqCst)` in every sender, between the unlock and the look for waiters, which costs half as
//! much as the rest of a send.
//!
//! State: `[senders that may take long : BITS - 1][ASLEEP]`.
//!
//! | Operation | no sender  | senders                    | senders, ASLEEP                     |
//! |-----------|------------|----------------------------|-------------------------------------|
//! | `enter`   | one more   | one more                   | one more                            |
//! | `leave`   |            | one less                   | one less, clears ASLEEP, wakes all  |
//! | `sleep`   | refused    | sets ASLEEP                | nothing                             |
//!
//! Invariant 1: ASLEEP is set only while a sender is counted, which will leave.
//!
//! | Edge  | Release side       | Acquire side       | Carries | Model that fails without it |
//! |-------|--------------------|--------------------|---------|-----------------------------|
//! | [WL1] | `LongTurns::sleep` | `LongTurns::leave` | that the receiver waits in the set | none: a loss would be a cycle of program order and reads (both words change by updates only), which C++20 allows on paper, but neither loom nor RC11 |
//!
//! Progress: a receiver waits in the set before it sets ASLEEP, by an exchange that finds a sender
//! counted. The first sender that leaves after that finds ASLEEP, and wakes all who wait: they look
//! again. A version that comes from another sender in between may reach the sleeper only then; the
//! value cannot be borrowed before that either.
//!
//! Cost: 2 RMWs for a long turn, none for a short one.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::primitive::AtomicUsize;

const ASLEEP: usize = 1;
const SENDER: usize = 2;

pub(super) struct LongTurns(AtomicUsize);

impl LongTurns {
    pub(super) fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// A sender is about to take long.
    pub(super) fn enter(&self) {
        // ORD relaxed: a receiver that does not see it tries again.
        self.0.fetch_add(SENDER, Relaxed);
    }

    /// A sender that entered is through. True if it must wake all who wait.
    #[must_use = "somebody may sleep until this sender wakes it"]
    pub(super) fn leave(&self) -> bool {
        // ORD[WL1] acquire: those who sleep are in the set.
        if self.0.fetch_sub(SENDER, Acquire) & ASLEEP == 0 {
            return false;
        }
        // ORD[WL1] acquire: so are those who came since.
        self.0.fetch_and(!ASLEEP, Acquire);
        true
    }

    /// For a receiver that waits in the set: true if a sender will wake it.
    pub(super) fn sleep(&self) -> bool {
        // ORD relaxed: a guess, which the exchange verifies.
        let mut word = self.0.load(Relaxed);
        while word >= SENDER {
            // ORD[WL1] release: this receiver is in the set.
            match self.0.compare_exchange_weak(word, word | ASLEEP, Release, Relaxed) {
                Ok(_) => return true,
                Err(actual) => word = actual,
            }
        }
        false
    }
}
