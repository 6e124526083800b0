//! How long a thread looks before it sleeps.
//!
//! Waking a sleeping thread costs both sides several microseconds, so a thread that ran out of work
//! looks for about that long once more. Not on a machine with fewer processors than the pool has
//! threads: there it would take them from the others.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::time::{Duration, Instant};

use volt_sync::internal::primitive::{hint, now};

use crate::engine::Core;
use crate::thread_cell::thread_cell;

/// How long a thread of the pool looks: about the cost of sleeping and being woken.
pub(crate) const SPIN: Duration = Duration::from_micros(8);
/// How long a thread outside waits for an answer: about what it takes to wake a thread. Not longer,
/// since the thread that it has woken may be bound for the same processor.
const SPIN_OUTSIDE: Duration = Duration::from_micros(5);

thread_cell! {
    /// True if this thread has just woken one that may want this processor.
    static WOKE: Cell<bool> = Cell::new(false)
}

/// This thread woke another one, which waited for its work: it does not spin next.
pub(crate) fn woke() {
    WOKE.with(|woke| woke.set(true));
}

/// One wait's patience.
#[derive(Debug)]
pub(crate) struct Spin {
    limit: Duration,
    until: Option<Instant>,
}

impl Spin {
    pub(crate) fn new(core: &Core) -> Self {
        Self { limit: core.spin_limit(), until: None }
    }

    /// For a thread that looks for work.
    pub(crate) fn searching(core: &Core) -> Self {
        let woke = WOKE.with(|woke| woke.replace(false));
        Self { limit: if woke { Duration::ZERO } else { core.spin_limit() }, until: None }
    }

    /// For a thread that has just woken another one.
    pub(crate) fn outside(core: &Core) -> Self {
        Self { limit: core.spin_limit().min(SPIN_OUTSIDE), until: None }
    }

    /// Waits a moment. False if it is time to sleep.
    pub(crate) fn once(&mut self) -> bool {
        if self.limit.is_zero() {
            return false;
        }
        for _ in 0..8 {
            hint::spin_loop();
        }
        let now = now();
        let until = *self.until.get_or_insert(now + self.limit);
        if now < until {
            return true;
        }
        self.limit = Duration::ZERO;
        false
    }
}
