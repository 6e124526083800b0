//! Whether a look at the operating system would find an event for one read that was put off, and nothing else.
//!
//! Two tasks of a thread send each other messages through the system, and nobody else has anything to
//! run: each has put its read off, the one that ran last has answered, so the other one's message is there,
//! and a look (`epoll_pwait2`, an eighth of a round trip over TCP) would say just that. So after enough
//! looks that had this one event the read is made without one. It is the one that was put off
//! first, of two. A read that is made in vain costs less than the look that it was to save.
//!
//! Whoever else waits for the system waits for [`RUN`] short polls at most, since the next look is made
//! whatever the guesses were worth. If it has another event than the expected one, fewer are made or none.
//!
//! Rejected: a guess where one read is put off (the other end is in another thread or process, and
//! slower than a read); the newest of two (its message is what the other one will answer).
//!
//! Ordering: all relaxed; a guess is a reminder that comes sooner (`View::remind`), and the read
//! that it allows finds something or not.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::AtomicU32;

/// Guesses between two looks.
const RUN: u8 = 7;
/// Looks that were as expected before the first guess: what a guess in vain costs is spread over as many.
const TRUST: u8 = if cfg!(volt_loom) { 1 } else { 8 };
/// Of what is remembered, a look that was not as expected takes so much.
const PRICE: u8 = 4;
const MOST: u8 = 2 * TRUST;

/// What the thread that turns the reactor knows.
#[derive(Debug, Default)]
pub(super) struct Guess {
    /// Looks that were as expected, less those that were not.
    score: u8,
    /// Guesses that may be made before the next look.
    left: u8,
    /// Of [`Failures`], those that are known.
    failures: u32,
}

/// Counts the guesses after which a read has found nothing.
#[derive(Debug)]
pub(super) struct Failures(AtomicU32);

impl Failures {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    #[cold]
    pub(super) fn add(&self) {
        // ORD relaxed: see the module's documentation.
        self.0.fetch_add(1, Relaxed);
    }
}

impl Guess {
    /// A look had an event of slot `only` and no other, or it had none or several; `expected` was what would
    /// have been guessed.
    #[inline]
    pub(super) fn looked(&mut self, only: Option<usize>, expected: Option<usize>) {
        self.score = match (only, expected) {
            (Some(only), Some(expected)) if only == expected => MOST.min(self.score + 1),
            // One of the pair has not put its read off, as happens now and then (`habit`).
            (Some(_), None) => self.score,
            _ => self.score.saturating_sub(PRICE),
        };
        self.left = if self.score >= TRUST { RUN } else { 0 };
    }

    /// True if the next look may be spared.
    #[inline]
    pub(super) fn spares_a_look(&mut self, failures: &Failures) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        // ORD relaxed: see the module's documentation.
        let failures = failures.0.load(Relaxed);
        if self.failures != failures {
            *self = Self { failures, ..Self::default() };
            return false;
        }
        true
    }
}

/// Of the reads that were put off since the last look or guess, and before it, the oldest first: the one that
/// is guessed to have the next event. One bit, or none.
#[inline]
pub(super) fn expected(new: u64, old: [u64; 3]) -> u64 {
    let all = old.iter().fold(new, |all, list| all | list);
    let oldest = old.into_iter().find(|list| *list != 0).unwrap_or(0);
    let rest = all & !oldest;
    if oldest.is_power_of_two() && rest.is_power_of_two() { oldest } else { 0 }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_older_of_two_is_expected() {
        assert_eq!(expected(0b01, [0, 0, 0b10]), 0b10);
        assert_eq!(expected(0, [0, 0b10, 0b01]), 0b10);
        assert_eq!(expected(0b10, [0b01, 0, 0]), 0b01);
        assert_eq!(expected(0b11, [0, 0, 0]), 0, "neither is older");
        assert_eq!(expected(0, [0, 0, 0b11]), 0, "neither is older");
        assert_eq!(expected(0, [0, 0, 0b10]), 0, "nobody who would have answered");
        assert_eq!(expected(0b101, [0, 0, 0b10]), 0, "too many");
    }

    #[test]
    fn looks_are_spared_after_enough_that_were_as_expected_and_not_for_long() {
        let (mut guess, failures) = (Guess::default(), Failures::new());
        for _ in 1..TRUST {
            guess.looked(Some(3), Some(3));
            assert!(!guess.spares_a_look(&failures));
        }
        for _ in 0..3 {
            guess.looked(Some(3), Some(3));
            for _ in 0..RUN {
                assert!(guess.spares_a_look(&failures));
            }
            assert!(!guess.spares_a_look(&failures), "it is time for a look");
        }
        guess.looked(Some(5), None);
        assert!(guess.spares_a_look(&failures), "nothing was expected");
        for others in [(Some(5), Some(3)), (None, Some(3)), (None, None)] {
            (0..MOST).for_each(|_| guess.looked(Some(3), Some(3)));
            assert!(guess.spares_a_look(&failures));
            (0..MOST).for_each(|_| guess.looked(others.0, others.1));
            assert!(!guess.spares_a_look(&failures), "{others:?}");
        }
    }

    #[test]
    fn a_read_in_vain_ends_the_guesses_until_it_is_learnt_anew() {
        let (mut guess, failures) = (Guess::default(), Failures::new());
        (0..MOST).for_each(|_| guess.looked(Some(3), Some(3)));
        assert!(guess.spares_a_look(&failures));
        failures.add();
        assert!(!guess.spares_a_look(&failures));
        for _ in 1..TRUST {
            guess.looked(Some(3), Some(3));
            assert!(!guess.spares_a_look(&failures));
        }
        guess.looked(Some(3), Some(3));
        assert!(guess.spares_a_look(&failures));
    }
}
