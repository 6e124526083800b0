//! The word of [`Permits`](super::Permits): `[available : BITS - 3][QUEUED][CLOSED][LOCKED]`.
#![forbid(unsafe_code)]

use super::{Permits, Refused};

const LOCKED: usize = 1;
const CLOSED: usize = 2;
const QUEUED: usize = 4;
const SHIFT: u32 = 3;
/// At least half of the most permits are available.
const MANY: usize = 1 << (usize::BITS - 1);
/// So few permits that all threads that there can be, if each adds as many at once, bring less than a quarter of the most:
/// 2^26 threads, or 2^20 if addresses have 32 bits, since each takes a page of them.
const FEW: usize = Permits::MAX >> if usize::BITS < 64 { 22 } else { 28 };

/// One value of the word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(usize);

impl Word {
    /// `available` permits and nothing else.
    #[inline(always)]
    pub(super) const fn new(available: usize) -> Self {
        Self(available << SHIFT)
    }

    #[inline(always)]
    pub(super) const fn from_bits(bits: usize) -> Self {
        Self(bits)
    }

    #[inline(always)]
    pub(super) const fn bits(self) -> usize {
        self.0
    }

    #[inline(always)]
    pub(super) const fn available(self) -> usize {
        self.0 >> SHIFT
    }

    #[inline(always)]
    pub(super) const fn is_locked(self) -> bool {
        self.0 & LOCKED != 0
    }

    #[inline(always)]
    pub(super) const fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    #[inline(always)]
    pub(super) const fn is_queued(self) -> bool {
        self.0 & QUEUED != 0
    }

    /// Not only a number of permits.
    #[inline(always)]
    pub(super) const fn has_flags(self) -> bool {
        self.0 & (LOCKED | CLOSED | QUEUED) != 0
    }

    #[inline(always)]
    pub(super) const fn with_locked(self) -> Self {
        Self(self.0 | LOCKED)
    }

    #[inline(always)]
    pub(super) const fn with_closed(self) -> Self {
        Self(self.0 | CLOSED)
    }

    #[inline(always)]
    pub(super) const fn with_queued(self) -> Self {
        Self(self.0 | QUEUED)
    }

    /// Without the lock, and with QUEUED as given.
    #[inline(always)]
    pub(super) const fn unlocked(self, queued: bool) -> Self {
        Self(self.0 & !(LOCKED | QUEUED) | if queued { QUEUED } else { 0 })
    }

    /// `n` permits less; there must be as many.
    #[inline(always)]
    pub(super) const fn take(self, n: usize) -> Self {
        Self(self.0 - (n << SHIFT))
    }

    /// `n` permits more, or `None` if they do not fit.
    #[inline(always)]
    pub(super) const fn add(self, n: usize) -> Option<Self> {
        if n > Permits::MAX {
            // They do not even alone: a part of them would be lost below.
            return None;
        }
        match self.0.checked_add(n << SHIFT) {
            Some(bits) => Some(Self(bits)),
            None => None,
        }
    }

    /// After the addition of `deposit`, bits of permits, has wrapped: without them. If others have
    /// brought as many since, so that the rest does not fit, as many as do.
    #[inline(always)]
    pub(super) const fn without_wrapped(self, deposit: usize) -> Self {
        match self.0.checked_sub(deposit) {
            None => Self(self.0.wrapping_sub(deposit)),
            Some(_) => Self(self.0 | (usize::MAX << SHIFT)),
        }
    }

    /// True if nobody waits and a few more permits fit, also if others add as few at the same time.
    #[inline(always)]
    pub(super) const fn is_easy_to_add(self) -> bool {
        self.0 & (QUEUED | MANY) == 0
    }

    /// True if many others may add `n` permits at the same time.
    #[inline(always)]
    pub(super) const fn are_few(n: usize) -> bool {
        n <= FEW
    }

    /// True if the addition of `deposit`, permits only, wraps.
    #[inline(always)]
    pub(super) const fn wraps_with(self, deposit: Self) -> bool {
        self.0.checked_add(deposit.0).is_none()
    }

    /// `n` permits less, if a newcomer may take them.
    #[inline(always)]
    pub(super) const fn take_free(self, n: usize) -> Result<Self, Refused> {
        if self.0 & (QUEUED | CLOSED) == 0 && self.available() >= n {
            Ok(self.take(n))
        } else if self.is_closed() {
            Err(Refused::Closed)
        } else if n == 0 {
            Ok(self)
        } else {
            Err(Refused::TooFew)
        }
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Permits")
            .field("available", &self.available())
            .field("queued", &self.is_queued())
            .field("closed", &self.is_closed())
            .finish()
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::{FEW, Permits, Word};

    /// A guard has a `u32`, which of 32 bits is more than there can be permits.
    #[test]
    fn what_has_no_place_in_the_word_is_not_added() {
        for n in [Permits::MAX + 1, 1 << (usize::BITS - 3), usize::MAX] {
            assert_eq!(Word::new(0).add(n), None, "{n}");
            assert_eq!(Word::new(1).with_closed().add(n), None, "{n}");
        }
        assert_eq!(Word::new(0).add(Permits::MAX), Some(Word::new(Permits::MAX)));
        assert_eq!(Word::new(1).add(Permits::MAX), None);
    }

    /// Whatever the width: a mutex's permit, and those of an `acquire_many` of a few.
    #[test]
    fn the_usual_releases_are_of_few() {
        assert!((0..=100).all(Word::are_few));
        const { assert!(FEW < Permits::MAX / 4) };
    }
}
