//! What the channels share: the small lock, queues of waiting futures, the bounded ring and the
//! unbounded list of blocks.

pub(crate) mod bounded;
pub(crate) mod error;
pub(crate) mod handles;
pub(crate) mod lock;
pub(crate) mod ring;
pub(crate) mod unbounded;
pub(crate) mod waiter;

use crate::primitive;

/// Why nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// No capacity, or others wait for it.
    Full,
    /// The channel is closed.
    Closed,
    /// There is room, but a consumer has not left the place yet: it is a few instructions away.
    Busy,
}

/// Why nothing was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// No message.
    Empty,
    /// No message, and none will come.
    Closed,
    /// There is a message, but its sender has not finished writing it.
    Busy,
}

/// Waits a moment for a place that another thread has claimed and is about to leave. False after a
/// few microseconds: an async operation then reschedules its task. `attempt` counts the calls.
///
/// A place that stays claimed belongs to a thread that has lost its processor. All who come to the
/// channel find the same place, so that rescheduling alone would use up this thread's time slice
/// with polls in vain, before that thread gets its turn: hence the processor is given away first.
/// With eight workers on two processors a message takes 22 ns so, and 60 to 100 without.
#[must_use]
pub(crate) fn settle(attempt: u32) -> bool {
    const SPINS: u32 = if cfg!(volt_loom) { 1 } else { 32 };
    const YIELDS: u32 = if cfg!(volt_loom) { 0 } else { 4 };
    if attempt >= SPINS + YIELDS {
        return false;
    }
    primitive::spin(if attempt < SPINS { 0 } else { u32::MAX });
    true
}

/// What a thread does whose exchanges others win: it waits, so that the winner can do many operations
/// with the cache lines to itself. After about ten microseconds it gives the processor away, since
/// the winner may have lost it.
///
/// A short wait ends while the winner is still at it, and the two go on taking the lines from each
/// other for every message: four senders and four receivers of a channel for 16 need 70 to 170 ns a
/// message with a first wait of one hint or of 32, by how far the processors are apart, and 35 to 50
/// with this one. Where threads meet by chance, a wait is rare. The exchanges are strong ones: a weak
/// one fails for no reason on some machines, and would pay for a wait nobody gains by.
pub(crate) struct BackOff(u32);

impl BackOff {
    /// How many spin hints a wait is: two to five microseconds.
    const HINTS: u32 = if cfg!(volt_loom) { 1 } else { 128 };
    /// How many waits come before the processor is given away.
    const WAITS: u32 = if cfg!(volt_loom) { 0 } else { 4 };

    pub(crate) fn new() -> Self {
        Self(0)
    }

    /// An exchange was lost.
    #[cold]
    pub(crate) fn lost(&mut self) {
        if self.0 == Self::WAITS {
            return primitive::spin(u32::MAX);
        }
        self.0 += 1;
        for _ in 0..Self::HINTS {
            primitive::spin(0);
        }
    }
}
