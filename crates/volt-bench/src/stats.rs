//! Medians, their confidence intervals and the verdict on a ratio.
//!
//! A contender's round gives one number. What is compared is the ratio of two contenders *within* a
//! round, because both then met the same machine; the answer is the median of those ratios with
//! the interval that the sign test gives it (no assumption about the distribution).
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

/// Ratios closer to 1 than this are "even" whatever their interval says: code alignment alone
/// moves a loop by as much.
pub(crate) const EVEN_BAND: f64 = 0.02;

/// The share of cases in which the median may lie outside the interval.
const ALPHA: f64 = 0.05;

/// Fewer values than this have no 95 % interval.
pub(crate) const FEWEST: usize = 6;

/// A median and the interval that holds it with at least 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// There were values enough for such an interval; if not, it is the whole range.
    pub(crate) sure: bool,
}

/// How Volt stands in a row. Lower values are better in every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Ahead,
    Even,
    Behind,
}

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Verdict::Ahead => "ahead",
            Verdict::Even => "even",
            Verdict::Behind => "behind",
        }
    }
}

/// The middle value (the mean of the two middle ones), or `None` of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let sorted = sort(values);
    let mid = sorted.len() / 2;
    Some(if sorted.len() % 2 == 1 {
        sorted[mid]
    } else {
        f64::midpoint(sorted[mid - 1], sorted[mid])
    })
}

/// The value below which the share `q` of the (sorted) values lies; nearest rank.
pub(crate) fn quantile_sorted(sorted: &[u64], q: f64) -> u64 {
    if sorted.is_empty() {
        return 0;
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank is small and positive"
    )]
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// Median and sign-test interval.
pub(crate) fn estimate(values: &[f64]) -> Option<Estimate> {
    let median = median(values)?;
    let sorted = sort(values);
    let drop = order_statistic(sorted.len());
    let (low, high) = (sorted[drop], sorted[sorted.len() - 1 - drop]);
    Some(Estimate { median, low, high, sure: sorted.len() >= FEWEST })
}

/// How many values may be left out at either end so that the rest still covers the median with
/// probability `1 - ALPHA`: the largest k with `2 P(Binomial(n, 1/2) <= k - 1) <= ALPHA`.
fn order_statistic(n: usize) -> usize {
    let mut probability = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut below = 0.0;
    let mut k = 0;
    while k < n / 2 {
        below += probability;
        if 2.0 * below > ALPHA {
            break;
        }
        k += 1;
        probability *= (n - k + 1) as f64 / k as f64;
    }
    // k values may lie below the interval's end; the end itself is the k-th, counted from one.
    k.saturating_sub(1)
}

/// The ratio of two contenders, round by round. `resolution` is added to both sides, so that a
/// row whose best value is zero (an idle runtime) still has a ratio.
pub(crate) fn ratio(
    ours: &[Option<f64>],
    theirs: &[Option<f64>],
    resolution: f64,
) -> Option<Estimate> {
    let ratios: Vec<f64> = ours
        .iter()
        .zip(theirs)
        .filter_map(|(ours, theirs)| Some(((*ours)? + resolution) / ((*theirs)? + resolution)))
        .filter(|ratio| ratio.is_finite())
        .collect();
    estimate(&ratios)
}

/// Ahead or behind only when the whole interval lies on that side of 1 and the median is outside
/// the band that counts as even; with too few rounds for an interval, nothing is claimed.
pub(crate) fn verdict(ratio: Estimate) -> Verdict {
    if !ratio.sure {
        Verdict::Even
    } else if ratio.high < 1.0 && ratio.median < 1.0 - EVEN_BAND {
        Verdict::Ahead
    } else if ratio.low > 1.0 && ratio.median > 1.0 + EVEN_BAND {
        Verdict::Behind
    } else {
        Verdict::Even
    }
}

fn sort(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_even_and_nothing() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn interval_ranks_match_the_sign_test_tables() {
        // Number of values left out at each end at 95 %: the published tables of the sign test.
        for (n, expected) in
            [(1, 0), (5, 0), (6, 0), (8, 0), (9, 1), (11, 1), (12, 2), (15, 3), (20, 5), (25, 7)]
        {
            assert_eq!(order_statistic(n), expected, "n = {n}");
        }
    }

    #[test]
    fn one_wild_round_of_nine_does_not_move_the_interval() {
        let mut values = vec![1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.0];
        values.push(50.0);
        let estimate = estimate(&values).unwrap();
        assert!(estimate.high < 1.1, "{estimate:?}");
        assert_eq!(estimate.median, 1.0);
    }

    #[test]
    fn quantiles_are_nearest_rank() {
        let values: Vec<u64> = (1..=1000).collect();
        assert_eq!(quantile_sorted(&values, 0.5), 500);
        assert_eq!(quantile_sorted(&values, 0.999), 999);
        assert_eq!(quantile_sorted(&values, 1.0), 1000);
        assert_eq!(quantile_sorted(&[], 0.5), 0);
    }

    #[test]
    fn ratio_pairs_rounds_and_skips_missing_ones() {
        let ours = [Some(1.0), None, Some(3.0), Some(4.0)];
        let theirs = [Some(2.0), Some(2.0), Some(6.0), None];
        let few = Estimate { median: 0.5, low: 0.5, high: 0.5, sure: false };
        assert_eq!(ratio(&ours, &theirs, 0.0), Some(few));
        assert_eq!(verdict(few), Verdict::Even, "two rounds claim nothing");
        assert_eq!(ratio(&[None], &[Some(1.0)], 0.0), None);
    }

    #[test]
    fn ratio_of_zeros_is_even_with_a_resolution_and_nothing_without() {
        let zero = [Some(0.0); 6];
        assert_eq!(ratio(&zero, &zero, 0.0), None);
        assert_eq!(verdict(ratio(&zero, &zero, 1.0).unwrap()), Verdict::Even);
    }

    #[test]
    fn verdict_needs_the_whole_interval_and_more_than_the_band() {
        let of = |median, low, high| verdict(Estimate { median, low, high, sure: true });
        assert_eq!(of(0.5, 0.4, 0.6), Verdict::Ahead);
        assert_eq!(of(0.5, 0.4, 1.1), Verdict::Even);
        assert_eq!(of(0.99, 0.985, 0.995), Verdict::Even);
        assert_eq!(of(1.5, 1.2, 1.9), Verdict::Behind);
        assert_eq!(of(1.5, 0.9, 1.9), Verdict::Even);
        assert_eq!(of(1.01, 1.005, 1.02), Verdict::Even);
    }
}
