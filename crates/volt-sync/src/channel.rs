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

/// What a thread does whose exchanges others win: it waits, twice as long each time, so that the
/// winner can do several operations with the cache lines to itself. After about ten microseconds it
/// gives the processor away, since the winner may have lost it.
pub(crate) struct BackOff(u32);

impl BackOff {
    /// The longest wait, as a power of two of spin hints.
    const LONGEST: u32 = if cfg!(volt_loom) { 0 } else { 6 };

    pub(crate) fn new() -> Self {
        Self(0)
    }

    /// An exchange was lost.
    #[cold]
    pub(crate) fn lost(&mut self) {
        let yields = if self.0 < 2 * Self::LONGEST { 0 } else { u32::MAX };
        for _ in 0..1_u32 << if yields == 0 { self.0.min(Self::LONGEST) } else { 0 } {
            crate::primitive::spin(yields);
        }
        self.0 = self.0.saturating_add(1);
    }
}
