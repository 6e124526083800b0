//! Two records of Volt, side by side.
//!
//! Absolute values of two runs cannot be compared on a machine whose speed moves, so each row of
//! each run is first divided by a contender that both have and that did not change: Tokio, or the
//! first peer or floor of the same version in both.

use std::fmt::Write as _;

use super::{interval, number};
use crate::record::{Contender, Record, Role, RowResult};
use crate::stats::{EVEN_BAND, Estimate};

/// A row of both records.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    pub(crate) row: &'a RowResult,
    /// What both are measured by.
    pub(crate) yardstick: &'a str,
    pub(crate) old: Estimate,
    pub(crate) new: Estimate,
}

impl Change<'_> {
    /// New over old, in units of the yardstick; above 1 is slower.
    pub(crate) fn factor(&self) -> f64 {
        self.new.median / self.old.median
    }

    /// Slower, and the intervals do not meet.
    pub(crate) fn regressed(&self) -> bool {
        self.sure() && self.new.low > self.old.high && self.factor() > 1.0 + EVEN_BAND
    }

    pub(crate) fn improved(&self) -> bool {
        self.sure() && self.new.high < self.old.low && self.factor() < 1.0 - EVEN_BAND
    }

    fn sure(&self) -> bool {
        self.old.sure && self.new.sure
    }

    /// By how many percent it regressed at least.
    pub(crate) fn regression_percent(&self) -> f64 {
        if self.regressed() { (self.new.low / self.old.high - 1.0) * 100.0 } else { 0.0 }
    }
}

/// The rows that both have with a common yardstick, in the new record's order.
pub(crate) fn changes<'a>(old: &'a Record, new: &'a Record) -> Vec<Change<'a>> {
    new.rows
        .iter()
        .filter_map(|row| {
            let before = old.rows.iter().find(|r| r.id == row.id)?;
            let usable = |c: &&Contender| {
                c.role != Role::Volt
                    && before.against_named(&c.name).is_some()
                    && row.against_named(&c.name).is_some()
            };
            let yardstick =
                row.named("tokio").filter(usable).or_else(|| row.contenders.iter().find(usable))?;
            Some(Change {
                row,
                yardstick: &yardstick.name,
                old: before.against_named(&yardstick.name)?,
                new: row.against_named(&yardstick.name)?,
            })
        })
        .collect()
}

impl RowResult {
    fn against_named(&self, name: &str) -> Option<Estimate> {
        Some(self.against(self.named(name)?)?.ratio)
    }
}

pub(crate) fn render(old: &Record, new: &Record) -> String {
    let changes = changes(old, new);
    let mut out = format!("\nVolt now against the run of {} ({}):\n", old.started, old.commit);
    for change in &changes {
        let word = if change.regressed() {
            "SLOWER"
        } else if change.improved() {
            "faster"
        } else {
            "same"
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "  {:<44} {:>7}x {word:<7} over {}: {} -> {}",
            change.row.title,
            number(change.factor()),
            change.yardstick,
            interval(change.old),
            interval(change.new)
        );
    }
    let slower = changes.iter().filter(|c| c.regressed()).count();
    let faster = changes.iter().filter(|c| c.improved()).count();
    let _ = writeln!(out, "{} rows in both: {slower} slower, {faster} faster.", changes.len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::example;

    fn scaled(factor: f64, names: &[&str]) -> Record {
        let mut record = example();
        for contender in record.rows.iter_mut().flat_map(|r| &mut r.contenders) {
            if names.contains(&contender.name.as_str()) {
                contender.rounds.iter_mut().flatten().for_each(|v| *v *= factor);
            }
        }
        record
    }

    #[test]
    fn a_slower_volt_is_a_regression() {
        let (old, new) = (example(), scaled(1.5, &["volt"]));
        let changes = changes(&old, &new);
        assert_eq!(changes.len(), 2, "the row without Volt is left out");
        assert!(changes.iter().all(|c| c.regressed() && c.yardstick == "tokio"));
        assert!((40.0..=51.0).contains(&changes[0].regression_percent()));
        assert!(render(&old, &new).contains("2 slower, 0 faster"));
        assert!(render(&new, &old).contains("0 slower, 2 faster"));
    }

    #[test]
    fn a_slower_machine_is_not() {
        let (old, new) = (example(), scaled(3.0, &["volt", "tokio", "async-lock", "parking_lot"]));
        assert!(changes(&old, &new).iter().all(|c| !c.regressed() && !c.improved()));
    }
}
