//! Relations between up to 64 events, as rows of bits.

/// The most events of a program.
pub(super) const MOST: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Relation(Vec<u64>);

impl Relation {
    /// The pairs that `holds` accepts, of `n` events.
    pub(super) fn of(n: usize, holds: impl Fn(usize, usize) -> bool) -> Self {
        let row = |from| (0..n).filter(|&to| holds(from, to)).fold(0, |row, to| row | 1 << to);
        Self((0..n).map(row).collect())
    }

    /// The events that `holds` accepts, each with itself.
    pub(super) fn identity(n: usize, holds: impl Fn(usize) -> bool) -> Self {
        Self::of(n, |from, to| from == to && holds(from))
    }

    pub(super) fn has(&self, from: usize, to: usize) -> bool {
        self.0[from] >> to & 1 == 1
    }

    /// This relation, then `other`.
    pub(super) fn then(&self, other: &Self) -> Self {
        let reach = |&row: &u64| {
            let (mut left, mut all) = (row, 0);
            while left != 0 {
                all |= other.0[left.trailing_zeros() as usize];
                left &= left - 1;
            }
            all
        };
        Self(self.0.iter().map(reach).collect())
    }

    pub(super) fn or(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(one, two)| one | two).collect())
    }

    /// Any number of times, at least once.
    pub(super) fn closure(&self) -> Self {
        let mut rows = self.0.clone();
        for via in 0..rows.len() {
            let reach = rows[via];
            for row in &mut rows {
                if *row >> via & 1 == 1 {
                    *row |= reach;
                }
            }
        }
        Self(rows)
    }

    /// This relation, or staying where one is.
    pub(super) fn optional(&self) -> Self {
        Self(self.0.iter().enumerate().map(|(event, row)| row | 1 << event).collect())
    }

    /// The pairs that go from one accepted event to another.
    pub(super) fn between(&self, from: impl Fn(usize) -> bool, to: impl Fn(usize) -> bool) -> Self {
        Self::of(self.0.len(), |one, two| self.has(one, two) && from(one) && to(two))
    }

    /// True if no event is related to itself.
    pub(super) fn is_irreflexive(&self) -> bool {
        self.0.iter().enumerate().all(|(event, row)| row >> event & 1 == 0)
    }

    /// True if there is no cycle.
    pub(super) fn is_acyclic(&self) -> bool {
        self.closure().is_irreflexive()
    }
}
