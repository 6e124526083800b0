//! Fork-join: the same recursive functions on every pool.

use std::time::{Duration, Instant};

use crate::bench::Bench;
use crate::registry::Row;

/// Calls nested in one another, each a join with a leaf.
const CHAIN: u64 = 1_000;

const SORTED: usize = 1_000_000;
/// Below this, a slice is sorted by the standard library.
const SORT_LEAF: usize = 4_096;

const SUMMED: usize = 10_000_000;
const SUM_LEAF: usize = 16_384;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("pool/fib", "fib(20) by join (per join)")
            .headline()
            .volt("volt", on_volt::bench_fib::<20>)
            .peer("rayon", on_rayon::bench_fib::<20>)
            .peer("chili", on_chili::bench_fib::<20>)
            .peer("std threads", on_threads::bench_fib::<20>)
            .floor("sequential", sequential::bench_fib::<20>),
        Row::new("pool/fib_narrow", "fib(10) by join, with entering the pool (per join)")
            .volt("volt", on_volt::bench_fib::<10>)
            .peer("rayon", on_rayon::bench_fib::<10>)
            .peer("chili", on_chili::bench_fib::<10>)
            .peer("std threads", on_threads::bench_fib::<10>)
            .floor("sequential", sequential::bench_fib::<10>),
        Row::new("pool/fib_wide", "fib(27) by join (per join)")
            .volt("volt", on_volt::bench_fib::<27>)
            .peer("rayon", on_rayon::bench_fib::<27>)
            .peer("chili", on_chili::bench_fib::<27>)
            .peer("std threads", on_threads::bench_fib::<27>)
            .floor("sequential", sequential::bench_fib::<27>),
        Row::new("pool/join_deep", "1,000 joins inside one another (per join)")
            .volt("volt", on_volt::bench_chain)
            .peer("rayon", on_rayon::bench_chain)
            .peer("chili", on_chili::bench_chain)
            .peer("std threads", on_threads::bench_chain)
            .floor("sequential", sequential::bench_chain),
        Row::new("pool/quicksort", "Quicksort of 1 M (per element)")
            .headline()
            .volt("volt", on_volt::bench_sort)
            .peer("rayon", on_rayon::bench_sort)
            .peer("chili", on_chili::bench_sort)
            .peer("std threads", on_threads::bench_sort)
            .floor("sequential", sequential::bench_sort),
        Row::new("pool/sum", "Sum of 10 M f64 (per element)")
            .headline()
            .volt("volt", on_volt::bench_sum)
            .peer("rayon", on_rayon::bench_sum)
            .peer("chili", on_chili::bench_sum)
            .peer("std threads", on_threads::bench_sum)
            .floor("sequential", sequential::bench_sum),
    ]
}

/// The recursive functions and their workloads, for one pool: how a join is called, with the
/// context that the pool passes on (if it does), and how the outermost call enters the pool.
macro_rules! fork_join {
    ($name:ident, $join:path, [$($context:ident: $type:ty)?], $enter:path) => {
        pub(crate) mod $name {
            use super::{
                Bench, SORT_LEAF, SUM_LEAF, add, chain_with, fib_with, partition, sort_with, sum_with,
            };

            fn fib($($context: $type,)? n: u64) -> u64 {
                if n < 2 {
                    return n;
                }
                let (a, b) = $join(
                    $($context,)?
                    |$($context)?| fib($($context,)? n - 1),
                    |$($context)?| fib($($context,)? n - 2),
                );
                a + b
            }

            fn chain($($context: $type,)? left: u64) -> u64 {
                if left == 0 {
                    return 0;
                }
                let (below, here) = $join(
                    $($context,)?
                    |$($context)?| chain($($context,)? left - 1),
                    |$($context)?| {
                        $(let _ = $context;)?
                        std::hint::black_box(1)
                    },
                );
                below + here
            }

            fn sort($($context: $type,)? values: &mut [u32]) {
                if values.len() <= SORT_LEAF {
                    values.sort_unstable();
                    return;
                }
                let (left, right) = partition(values);
                $join(
                    $($context,)?
                    |$($context)?| sort($($context,)? left),
                    |$($context)?| sort($($context,)? right),
                );
            }

            fn sum($($context: $type,)? values: &[f64]) -> f64 {
                if values.len() <= SUM_LEAF {
                    return add(values);
                }
                let (left, right) = values.split_at(values.len() / 2);
                let (a, b) = $join(
                    $($context,)?
                    |$($context)?| sum($($context,)? left),
                    |$($context)?| sum($($context,)? right),
                );
                a + b
            }

            pub(crate) fn bench_chain(b: &mut Bench) {
                chain_with(b, |n| $enter(|$($context)?| chain($($context,)? n)));
            }

            pub(crate) fn bench_fib<const N: u64>(b: &mut Bench) {
                fib_with(b, N, |n| $enter(|$($context)?| fib($($context,)? n)));
            }

            pub(crate) fn bench_sort(b: &mut Bench) {
                sort_with(b, |values| $enter(|$($context)?| sort($($context,)? values)));
            }

            pub(crate) fn bench_sum(b: &mut Bench) {
                sum_with(b, |values| $enter(|$($context)?| sum($($context,)? values)));
            }
        }
    };
}

fork_join!(on_volt, volt_pool::join, [], super::super::volt_guest);
fork_join!(on_rayon, rayon::join, [], super::super::rayon_enter);
fork_join!(on_chili, chili::Scope::join, [scope: &mut chili::Scope<'_>], super::super::chili_enter);
fork_join!(on_threads, super::super::threads_join, [threads: usize], super::super::threads_enter);
#[cfg(feature = "forte")]
fork_join!(
    on_forte,
    forte::Worker::join,
    [worker: &forte::Worker],
    crate::peers::forte::enter
);
fork_join!(sequential, super::super::one_after_the_other, [], super::super::stay);

fn fib_with(b: &mut Bench, index: u64, mut fib: impl FnMut(u64) -> u64) {
    let (value, next) = (0..index).fold((0, 1), |(a, b), _| (b, a + b));
    // Each call above the leaves joins two.
    let joins = next - 1;
    b.iter_ops(joins, |n| {
        for _ in 0..n {
            assert_eq!(fib(std::hint::black_box(index)), value);
        }
    });
}

fn chain_with(b: &mut Bench, mut chain: impl FnMut(u64) -> u64) {
    b.iter_ops(CHAIN, |n| {
        for _ in 0..n {
            assert_eq!(chain(std::hint::black_box(CHAIN)), CHAIN);
        }
    });
}

fn sort_with(b: &mut Bench, mut sort: impl FnMut(&mut [u32])) {
    let mut state = 0x9e37_79b9_u32;
    let shuffled: Vec<u32> = (0..SORTED)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state
        })
        .collect();
    let sum = |values: &[u32]| values.iter().fold(0_u64, |sum, &v| sum + u64::from(v));
    let expected = sum(&shuffled);
    let mut values = shuffled.clone();
    b.iter_timed(SORTED as u64, |n| {
        let mut spent = Duration::ZERO;
        for _ in 0..n {
            values.copy_from_slice(&shuffled);
            let start = Instant::now();
            sort(&mut values);
            spent += start.elapsed();
            assert!(values.is_sorted() && sum(&values) == expected, "sorted, and the same values");
        }
        spent
    });
}

fn sum_with(b: &mut Bench, mut sum: impl FnMut(&[f64]) -> f64) {
    let values: Vec<f64> = (0..SUMMED).map(|i| (i % 1000) as f64).collect();
    let expected = 499.5 * SUMMED as f64;
    b.iter_ops(SUMMED as u64, |n| {
        for _ in 0..n {
            let sum = sum(std::hint::black_box(&values));
            assert!((sum - expected).abs() < 1.0, "{sum}");
        }
    });
}

/// Eight sums side by side, as a vectorised loop adds.
fn add(values: &[f64]) -> f64 {
    let (chunks, rest) = values.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += value;
        }
    }
    sums.iter().chain(rest).sum()
}

/// Splits around the median of three, without a branch for each value: the left part holds no
/// value above one of the right part's, and neither is empty.
fn partition(values: &mut [u32]) -> (&mut [u32], &mut [u32]) {
    let (first, middle, last) = (values[0], values[values.len() / 2], values[values.len() - 1]);
    let pivot = first.max(middle).min(first.min(middle).max(last));
    let mut at = move_front(values, |value| value < pivot);
    if at == 0 {
        // Nothing is smaller: what equals the pivot goes left.
        at = move_front(values, |value| value <= pivot);
        if at == values.len() {
            // All are equal.
            at /= 2;
        }
    }
    values.split_at_mut(at)
}

/// Moves what satisfies the condition to the front; how many do.
fn move_front(values: &mut [u32], condition: impl Fn(u32) -> bool) -> usize {
    let mut front = 0;
    for i in 0..values.len() {
        let value = values[i];
        values.swap(i, front);
        front += usize::from(condition(value));
    }
    front
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_splits_anything_in_two() {
        let mut state = 1_u32;
        for length in (2..200).chain([5000]) {
            for modulus in [1, 2, 3, 10, u32::MAX] {
                let mut values: Vec<u32> = (0..length)
                    .map(|_| {
                        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        state % modulus
                    })
                    .collect();
                let (left, right) = partition(&mut values);
                assert!(!left.is_empty() && !right.is_empty());
                assert!(left.iter().max() <= right.iter().min(), "{left:?} | {right:?}");
            }
        }
    }
}
