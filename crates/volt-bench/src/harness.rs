//! The parent: rounds of child processes, in rotating order, for each row.
#![forbid(unsafe_code)]

mod process;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::bench::{Mode, Sample};
use crate::load::Mark;
use crate::record::{Contender, Load, RowResult};
use crate::registry::Row;
use crate::{stats, transfer};

pub(crate) use process::{Child, Reexec};

/// An interval that is wider than this share of its median is worth more rounds.
const WIDE: f64 = 0.15;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    /// Rounds of rows that measure for a fixed time.
    pub(crate) long_rounds: usize,
    /// They are doubled up to so many times their number, while Volt's ratio to the best peer is wide.
    pub(crate) patience: usize,
    pub(crate) detail_rounds: usize,
    pub(crate) batch: Duration,
    /// A child that takes longer hangs.
    pub(crate) timeout: Duration,
}

impl Plan {
    /// The headline rows in under three minutes.
    pub(crate) fn quick() -> Self {
        Plan {
            rounds: 9,
            long_rounds: 6,
            patience: 1,
            detail_rounds: 1,
            batch: Duration::from_millis(5),
            timeout: Duration::from_secs(20),
        }
    }

    /// Every row in under half an hour.
    pub(crate) fn full() -> Self {
        Plan {
            rounds: 9,
            long_rounds: 9,
            patience: 4,
            detail_rounds: 3,
            batch: Duration::from_millis(20),
            timeout: Duration::from_secs(60),
        }
    }

    fn rounds_of(&self, row: &Row) -> usize {
        if row.long { self.long_rounds } else { self.rounds }
    }

    /// How many rounds a row may have in the end.
    fn most_rounds_of(&self, row: &Row) -> usize {
        if row.long { self.long_rounds } else { self.rounds * self.patience }
    }

    /// Child processes that a row takes at least: the unit of the progress bar.
    pub(crate) fn steps(&self, row: &Row) -> u64 {
        let passes = self.rounds_of(row) + 2 + if row.detail { self.detail_rounds } else { 0 };
        (passes * row.contenders.len()) as u64
    }
}

/// Starts one child; the seam at which tests put their own.
pub(crate) trait Start {
    fn start(&mut self, child: &Child<'_>) -> Result<Sample, String>;
}

/// Measures a row: calibration, rounds, then the passes beside time. A contender that fails is
/// reported and left out of the rest; the row goes on. `step` is called after each child.
pub(crate) fn measure(
    row: &Row,
    plan: &Plan,
    start: &mut dyn Start,
    step: &mut dyn FnMut(&str),
) -> RowResult {
    let mark = Mark::now();
    let mut result = nothing_yet(row);
    let mut extra = vec![Extra::default(); result.contenders.len()];
    let mut child = |contender: &mut Contender, mode: Mode, pass: &str| {
        if contender.failure.is_some() {
            step(&contender.name);
            return None;
        }
        let sample = start.start(&Child {
            row: row.id,
            contender: &contender.name,
            mode,
            iterations: contender.iterations,
            batch: plan.batch,
            timeout: plan.timeout,
        });
        step(&contender.name);
        sample.map_err(|reason| contender.failure = Some(format!("{pass}: {reason}"))).ok()
    };

    for contender in &mut result.contenders {
        if let Some(sample) = child(contender, Mode::Calibrate, "calibration") {
            contender.iterations = sample.iterations.max(1);
        }
    }
    let (rounds, most) = (plan.rounds_of(row), plan.most_rounds_of(row));
    for round in 0..most {
        // Not after each round: who stops as soon as an interval is narrow prefers those that are so by luck.
        let asks = round % rounds == 0 && (round / rounds).is_power_of_two();
        if asks && !is_wide(&result) {
            break;
        }
        result.transfer_ns.push(transfer::nanoseconds());
        for index in rotated(extra.len(), round) {
            let contender = &mut result.contenders[index];
            let sample = child(contender, Mode::Time, &format!("round {}", round + 1));
            contender.rounds.push(sample.as_ref().and_then(|sample| sample.value));
            extra[index].keep(sample.map(|sample| sample.extra).unwrap_or_default());
        }
    }
    for (contender, extra) in result.contenders.iter_mut().zip(&mut extra) {
        if let Some(sample) = child(contender, Mode::Alloc, "allocation pass") {
            // A workload that measures in its own way only rehearsed.
            if sample.value.is_none() {
                extra.keep(sample.extra);
            }
        }
    }
    for round in 0..if row.detail { plan.detail_rounds } else { 0 } {
        for index in rotated(extra.len(), round) {
            let contender = &mut result.contenders[index];
            if let Some(sample) = child(contender, Mode::Detail, "fairness pass") {
                extra[index].keep(sample.extra);
            }
        }
    }
    for (contender, extra) in result.contenders.iter_mut().zip(extra) {
        contender.extra = extra.medians();
    }
    result.load = mark.load();
    result
}

/// Whether Volt's ratio to the best peer is not known well yet. What it is has no part in that, so that
/// nobody's luck ends the rounds.
fn is_wide(result: &RowResult) -> bool {
    let alive = |contender: &Contender| contender.failure.is_none();
    let standing = result.standing().filter(|standing| alive(standing.other));
    let ratio = standing.map(|standing| standing.ratio);
    result.volt().is_some_and(alive)
        && ratio.is_some_and(|ratio| ratio.high - ratio.low > WIDE * ratio.median)
}

/// The row before anything is measured.
fn nothing_yet(row: &Row) -> RowResult {
    let contenders = row.contenders.iter();
    RowResult {
        id: row.id.to_owned(),
        group: row.group().to_owned(),
        title: row.title.to_owned(),
        unit: row.unit.to_owned(),
        headline: row.headline,
        resolution: row.resolution,
        note: row.note.to_owned(),
        repeats: row.repeats.to_owned(),
        load: Load::default(),
        transfer_ns: Vec::new(),
        contenders: contenders
            .map(|contender| Contender {
                name: contender.name.to_owned(),
                role: contender.role,
                note: contender.note.to_owned(),
                // Until it is calibrated.
                iterations: 0,
                rounds: Vec::new(),
                extra: BTreeMap::new(),
                failure: None,
            })
            .collect(),
    }
}

/// What the children of a contender have told beside its time.
#[derive(Clone, Default)]
struct Extra(BTreeMap<String, Vec<f64>>);

impl Extra {
    fn keep(&mut self, extra: BTreeMap<String, f64>) {
        for (name, value) in extra {
            self.0.entry(name).or_default().push(value);
        }
    }

    fn medians(self) -> BTreeMap<String, f64> {
        self.0.into_iter().filter_map(|(name, all)| Some((name, stats::median(&all)?))).collect()
    }
}

/// Each round starts with another contender, so that none always follows the same one's heat.
fn rotated(len: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..len).map(move |i| (i + round) % len)
}

#[cfg(test)]
mod tests;
