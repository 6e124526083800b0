//! What the channels share: the small lock, queues of waiting futures, the ring and the list of blocks.

mod back_off;
pub(crate) mod bounded;
pub(crate) mod closed;
pub(crate) mod error;
pub(crate) mod handles;
pub(crate) mod limited;
pub(crate) mod list;
pub(crate) mod lock;
mod only_turns;
pub(crate) mod ring;
mod senders;
pub(crate) mod waiter;

use self::back_off::BackOff;
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
