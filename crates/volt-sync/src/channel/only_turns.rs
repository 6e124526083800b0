//! Turns that a channel's only receiver gives others, which has no future of its own to count them in.
//!
//! Purpose: as in `Waiter::give_turn`. Messages that come one by one, from threads that are a little slower
//! than the receiver, would each find it registered, and cost a wake-up. Only while turns are brief: see
//! `turns.rs`.
//!
//! State: one byte, of the receiver alone.
//!
//! | Value     | Means                                                                     |
//! |-----------|---------------------------------------------------------------------------|
//! | 0         | it has found a message last                                               |
//! | 1..=TURNS | it has found none, and given so many turns                                |
//! | WAITS     | it has given all turns, or has others to wait for, and registers its waker  |
#![forbid(unsafe_code)]

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Context;

use super::waiter::TURNS;
use crate::coop::{self, Givers};
use crate::primitive::AtomicU8;
use crate::turns;

const WAITS: u8 = TURNS + 1;

#[derive(Debug)]
pub(super) struct OnlyTurns(AtomicU8);

impl OnlyTurns {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    /// The receiver finds nothing. True if it gives others a turn: its task is woken, and it is not to
    /// register its waker. On Volt's members only: who waits alone elsewhere registers at once.
    pub(super) fn give(&self, cx: &mut Context<'_>) -> bool {
        // ORD relaxed: only the receiver looks at it.
        let given = self.0.load(Relaxed);
        let wait = ptr::from_ref(self).addr();
        let gives = given < TURNS
            && coop::givers() == Givers::All
            && turns::with_brief_lesson(wait, |lesson| lesson.give(wait, given));
        // ORD relaxed: as above.
        self.0.store(if gives { given + 1 } else { WAITS }, Relaxed);
        if gives {
            // User code, which may panic: nothing is registered, and the turn counts.
            cx.waker().wake_by_ref();
        }
        gives
    }

    /// The receiver finds a message: if turns were given, they paid.
    #[inline]
    pub(super) fn found(&self) {
        // ORD relaxed: as above.
        if self.0.load(Relaxed) != 0 {
            self.found_after_turns();
        }
    }

    #[inline(never)]
    fn found_after_turns(&self) {
        // ORD relaxed: as above.
        let given = self.0.load(Relaxed);
        // ORD relaxed: as above.
        self.0.store(0, Relaxed);
        if given != WAITS {
            let wait = ptr::from_ref(self).addr();
            turns::with_brief_lesson(wait, |lesson| lesson.paid(wait));
        }
    }
}
