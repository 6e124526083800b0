//! What the channels share: the small lock, queues of waiting futures, the bounded ring and the
//! unbounded list of blocks.

pub(crate) mod bounded;
pub(crate) mod error;
pub(crate) mod handles;
pub(crate) mod lock;
pub(crate) mod ring;
pub(crate) mod unbounded;
pub(crate) mod waiter;

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

/// How many rounds an async operation spins on `Busy` before it reschedules its task.
pub(crate) const SPINS: u32 = if cfg!(volt_loom) { 1 } else { 32 };
