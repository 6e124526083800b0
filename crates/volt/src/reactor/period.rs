//! How long a read stays put off while there are events: one to two of these periods.
//!
//! Purpose: where messages go round among many sockets, each has its next one when the others have had
//! theirs. A read that is made before finds nothing, and the habit is unlearned. So a period has as many
//! events as there are sources; and, since most of them may rest, half a millisecond at most.
//!
//! Rejected: a period for each look (64 connections that echo 1 KB have a look in 140 us, and a message
//! each in 380).
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use volt_sync::internal::primitive;

const LONGEST: Duration = Duration::from_micros(500);

/// The period that goes by.
#[derive(Default)]
pub(super) struct Period {
    events: usize,
    /// When it began, if that is known; else the next look is taken for that.
    since: Option<Instant>,
}

impl Period {
    /// After a look that has found `events` of `sources`: true if the period is over. The next begins.
    pub(super) fn is_over(&mut self, events: usize, sources: usize) -> bool {
        self.events = self.events.saturating_add(events);
        if self.events >= sources {
            // The clock need not be read.
            *self = Self::default();
            return true;
        }
        let now = primitive::now();
        let over = now.saturating_duration_since(*self.since.get_or_insert(now)) >= LONGEST;
        if over {
            *self = Self { events: 0, since: Some(now) };
        }
        over
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_period_has_an_event_for_each_source_or_its_time() {
        let mut period = Period::default();
        assert!(!period.is_over(2, 4));
        assert!(!period.is_over(1, 4));
        assert!(period.is_over(1, 4));
        assert!(period.is_over(5, 4));
        assert!(!period.is_over(1, 1_000));
        std::thread::sleep(LONGEST);
        assert!(period.is_over(0, 1_000));
        assert!(!period.is_over(0, 1_000), "a new one");
    }
}
