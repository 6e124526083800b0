//! Whether a look at the operating system would find an event for one read that was put off, and nothing else.
//!
//! Two tasks of a thread send each other messages through the system, and nobody else has anything to
//! run: each has put its read off, the one that ran last has answered, so the other one's message is there,
//! and a look (`epoll_pwait2`, an eighth of a round trip over TCP) would say just that. So after enough
//! looks that had this one event the read is made without one. It is the one that was put off
//! first, of two. A read that is made in vain costs no more than the look that it was to save.
//!
//! Whoever else waits for the system waits longer by what runs after [`RUN`] guesses at most, the last of which is made
//! within [`RUN_NS`] of the first, until the thread has run out of tasks or the tick has its own look. That look is made
//! whatever the guesses were worth. If it has something else to read, or somebody has waited for something else, it ends the
//! guesses: they make looks rarer, and so what others have waited shows in few of them. (A lone event that was not
//! expected, of two that were not put off, does not: it is mostly one of the pair's.) Learning again takes as
//! long as the first time, which is long for that reason.
//!
//! Two connections whose other ends are elsewhere are guessed as well, if they keep this thread so busy that their
//! messages come in turns.
//!
//! What is not guessed: a read of two that are not in one chunk of the slab, or of a reactor that has more chunks than
//! notes. Rejected: a guess where one read is put off (the other end is in another thread or
//! process, and slower than a read); the newer of two (its message is what the other one will answer).
//!
//! Ordering: all relaxed; a guess is a reminder that comes sooner (`View::remind`), and the read
//! that it allows finds something or not.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::AtomicU32;

/// Guesses between two looks, and the time from the first to the last one.
const RUN: u8 = 3;
const RUN_NS: u64 = 25_000;
/// Looks that were as expected before the first guess. No more are remembered.
const TRUST: u8 = if cfg!(volt_loom) { 1 } else { 64 };
/// What a look takes of them that has found nothing.
const PRICE: u8 = 4;

/// What the thread that turns the reactor knows.
#[derive(Debug, Default)]
pub(super) struct Guess {
    /// Looks that were as expected.
    score: u8,
    /// Guesses that may be made before the next look.
    left: u8,
    /// When the first one after the last look was made.
    first_ns: u64,
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
    /// A look had so many events of use: of reading, the last one from slot `last_read`, and for somebody who waited for
    /// something else. `expected` was what would have been guessed.
    #[inline]
    pub(super) fn looked(
        &mut self,
        useful: usize,
        last_read: Option<usize>,
        expected: Option<usize>,
    ) {
        self.score = match (useful, last_read) {
            (0, _) => self.score.saturating_sub(PRICE),
            (1, Some(read)) if expected == Some(read) => TRUST.min(self.score + 1),
            // One of the pair has not put its read off, as happens now and then (`habit`).
            (1, Some(_)) if expected.is_none() => self.score,
            _ => 0,
        };
        self.left = if self.score >= TRUST { RUN } else { 0 };
    }

    /// True if a look may be spared now. The clock is read only if a guess may be made.
    #[inline]
    pub(super) fn spares_a_look(&mut self, now: impl FnOnce() -> u64, failures: &Failures) -> bool {
        if self.left == 0 {
            return false;
        }
        // ORD relaxed: see the module's documentation.
        let failures = failures.0.load(Relaxed);
        if self.failures != failures {
            *self = Self { failures, ..Self::default() };
            return false;
        }
        let now = now();
        if self.left == RUN {
            self.first_ns = now;
        }
        self.left -= 1;
        now.saturating_sub(self.first_ns) <= RUN_NS
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

    fn trusted() -> (Guess, Failures) {
        let (mut guess, failures) = (Guess::default(), Failures::new());
        for _ in 0..TRUST {
            assert!(!guess.spares_a_look(|| 0, &failures));
            guess.looked(1, Some(3), Some(3));
        }
        (guess, failures)
    }

    #[test]
    fn looks_are_spared_after_enough_that_were_as_expected_and_not_for_long() {
        let (mut guess, failures) = trusted();
        for _ in 0..3 {
            for _ in 0..RUN {
                assert!(guess.spares_a_look(|| 0, &failures));
            }
            assert!(!guess.spares_a_look(|| 0, &failures), "it is time for a look");
            guess.looked(1, Some(3), Some(3));
        }
        guess.looked(1, Some(5), None);
        assert!(guess.spares_a_look(|| 0, &failures), "nothing was expected");
        assert!(guess.spares_a_look(|| RUN_NS, &failures));
        assert!(!guess.spares_a_look(|| RUN_NS + 1, &failures), "the first one was long ago");
    }

    #[test]
    fn a_look_that_has_something_else_for_somebody_ends_the_guesses() {
        for (useful, last_read) in [(1, Some(5)), (2, Some(3)), (1, None), (2, None)] {
            let (mut guess, failures) = trusted();
            guess.looked(useful, last_read, Some(3));
            for _ in 0..TRUST {
                assert!(!guess.spares_a_look(|| 0, &failures));
                guess.looked(1, Some(3), Some(3));
            }
            assert!(guess.spares_a_look(|| 0, &failures), "it has learnt anew");
        }
    }

    #[test]
    fn a_look_that_finds_nothing_costs_a_few_and_a_read_in_vain_all() {
        let (mut guess, failures) = trusted();
        guess.looked(0, None, None);
        (0..PRICE).for_each(|_| guess.looked(1, Some(3), Some(3)));
        assert!(guess.spares_a_look(|| 0, &failures));
        failures.add();
        assert!(!guess.spares_a_look(|| 0, &failures));
        (1..TRUST).for_each(|_| guess.looked(1, Some(3), Some(3)));
        assert!(!guess.spares_a_look(|| 0, &failures));
        guess.looked(1, Some(3), Some(3));
        assert!(guess.spares_a_look(|| 0, &failures));
    }
}
