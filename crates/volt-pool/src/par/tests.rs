use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;

use super::*;
use crate::ThreadPool;

fn numbers(len: usize, modulus: u32) -> Vec<(u32, u32)> {
    let mut state = 12_345_u32;
    (0..len)
        .map(|at| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state % modulus, u32::try_from(at).unwrap())
        })
        .collect()
}

#[test]
fn blocks_become_as_long_as_they_are_to_take() {
    assert_eq!(next_block(1, BLOCK / 2), 2);
    assert_eq!(next_block(100, BLOCK), 100);
    assert_eq!(next_block(100, 3 * BLOCK), 100);
    assert_eq!(next_block(100, 10 * BLOCK), 10);
    assert_eq!(next_block(100, Duration::MAX), 1);
    assert_eq!(next_block(usize::MAX, Duration::ZERO), usize::MAX);
}

#[test]
fn sorts_agree_with_the_standard_library() {
    let pool = ThreadPool::with_threads(3);
    // Where each access is looked at, sorting takes ten times as long.
    let large: &[usize] = if cfg!(volt_tsan) { &[20_000] } else { &[50_000, 200_000] };
    for len in [0, 1, 2, 4095, 4097].iter().chain(large).copied() {
        for modulus in [1, 2, 100, u32::MAX] {
            let shuffled = numbers(len, modulus);
            let mut expected = shuffled.clone();
            expected.sort_by_key(|pair| pair.0);
            let mut descending = expected.clone();
            descending.reverse();
            for input in [&shuffled, &expected, &descending] {
                let mut stable = input.clone();
                let mut reference = input.clone();
                reference.sort_by_key(|pair| pair.0);
                pool.install(|| par_sort_by_key(&mut stable, |pair| pair.0));
                assert_eq!(stable, reference, "{len} {modulus}");
                let mut unstable = input.clone();
                pool.install(|| par_sort_unstable_by_key(&mut unstable, |pair| pair.0));
                assert!(unstable.is_sorted_by_key(|pair| pair.0), "{len} {modulus}");
                unstable.sort_unstable();
                reference.sort_unstable();
                assert_eq!(unstable, reference, "the same elements");
            }
        }
    }
}

#[test]
fn a_panic_in_a_comparison_leaves_a_permutation() {
    for stable in [false, true] {
        let mut items: Vec<u32> =
            numbers(60_000, u32::MAX).into_iter().map(|pair| pair.0).collect();
        let mut expected = items.clone();
        let left = volt_sync::internal::primitive::AtomicU32::new(300_000);
        let compare = |a: &u32, b: &u32| {
            let before = left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
            assert_ne!(before, 1, "enough");
            a.cmp(b)
        };
        let result = catch_unwind(AssertUnwindSafe(|| {
            if stable {
                par_sort_by(&mut items, compare);
            } else {
                par_sort_unstable_by(&mut items, compare);
            }
        }));
        assert!(result.is_err());
        items.sort_unstable();
        expected.sort_unstable();
        assert_eq!(items, expected);
    }
}

#[test]
fn a_panic_in_a_loop_reaches_the_caller_and_drops_what_was_made() {
    let made = std::sync::Arc::new(());
    let result = catch_unwind(AssertUnwindSafe(|| {
        par_map_range(0..10_000, |i| {
            assert_ne!(i, 7_000, "the one");
            made.clone()
        })
    }));
    assert!(result.is_err());
    assert_eq!(std::sync::Arc::strong_count(&made), 1);
}

#[test]
fn loops_share_their_work_out() {
    // The system may stop one of the threads for as long as the other one needs for all.
    assert!((0..10).any(|_| both_have_at_least(40)));
}

/// Whether each of two threads has so many of 200 items.
fn both_have_at_least(least: usize) -> bool {
    let pool = ThreadPool::with_threads(2);
    let threads = pool.install(|| {
        par_map_range(0..200, |_| {
            std::thread::sleep(Duration::from_micros(200));
            crate::current_thread_index()
        })
    });
    [Some(0), Some(1)]
        .into_iter()
        .all(|thread| threads.iter().filter(|&&it| it == thread).count() >= least)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60, failure_persistence: None, ..ProptestConfig::default()
    })]
    #[test]
    fn loops_agree_with_iterators(
        items in prop::collection::vec(0..1000_u64, 0..3000),
        size in 1..50_usize,
        threads in 1..4_usize,
    ) {
        let pool = ThreadPool::with_threads(threads);
        pool.install(|| {
            prop_assert_eq!(par_sum::<_, u64>(&items), items.iter().sum::<u64>());
            let doubled: Vec<u64> = items.iter().map(|n| n * 2).collect();
            prop_assert_eq!(&par_map(&items, |n| n * 2), &doubled);
            prop_assert_eq!(&par_map_range(0..items.len(), |i| items[i] * 2), &doubled);
            let mut changed = items.clone();
            par_for_each_mut(&mut changed, |n| *n *= 2);
            prop_assert_eq!(&changed, &doubled);
            let text = |mut text: String, n: &u64| { text += &n.to_string(); text };
            let sequential = items.iter().fold(String::new(), text);
            prop_assert_eq!(par_reduce(&items, String::new, text, |a, b| a + &b), sequential);
            let mut numbered = vec![0; items.len()];
            par_chunks_mut(&mut numbered, size, |number, chunk| chunk.fill(number));
            let expected: Vec<usize> = (0..items.len()).map(|i| i / size).collect();
            prop_assert_eq!(&numbered, &expected);
            let fold = |sum, chunk: &[u64]| sum + chunk.len();
            prop_assert_eq!(par_reduce_chunks(&items, size, || 0, fold, |a, b| a + b), items.len());
            let count = par_reduce_range(0..items.len(), || 0, |n, _| n + 1, |a, b| a + b);
            prop_assert_eq!(count, items.len());
            Ok(())
        })?;
    }
}
