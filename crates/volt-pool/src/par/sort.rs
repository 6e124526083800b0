//! Parallel sorts: the standard library's, on parts.
//!
//! Unstable: quicksort by a branchless partition until the parts are small enough, or nobody wants
//! work, then `sort_unstable_by`. Stable: merge sort whose merges are cut in two by rotating the
//! middle, so that they run in parallel, in place; small ones are left to `sort_by`, which
//! recognises the two runs and merges them in linear time.
//!
//! Nothing is moved out of the slice, so that after a panic of the comparison the slice still holds
//! the same elements, in some order.
#![forbid(unsafe_code)]

use std::cmp::Ordering;

use super::in_pool;

/// Parts below this are sorted by one thread.
const SMALL: usize = 4096;

/// Sorts `items`; equal elements may change their order. As fast as
/// [`sort_unstable`](slice::sort_unstable) with one thread, and allocates nothing.
///
/// # Panics
///
/// As [`sort_unstable`](slice::sort_unstable): may panic if the order is not total.
///
/// # Examples
///
/// ```
/// let mut numbers = [5, 1, 4, 2, 3];
/// volt_pool::par::par_sort_unstable(&mut numbers);
/// assert_eq!(numbers, [1, 2, 3, 4, 5]);
/// ```
pub fn par_sort_unstable<T: Ord + Send>(items: &mut [T]) {
    sort_unstable(items, &T::cmp);
}

/// As [`par_sort_unstable`], by a comparison.
///
/// # Panics
///
/// As [`par_sort_unstable`], and with the panic of `compare`.
///
/// # Examples
///
/// ```
/// let mut numbers = [0.5, -1.0, 2.0];
/// volt_pool::par::par_sort_unstable_by(&mut numbers, f64::total_cmp);
/// assert_eq!(numbers, [-1.0, 0.5, 2.0]);
/// ```
pub fn par_sort_unstable_by<T: Send>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering + Sync) {
    sort_unstable(items, &compare);
}

/// As [`par_sort_unstable`], by a key.
///
/// # Panics
///
/// As [`par_sort_unstable`], and with the panic of `key`.
///
/// # Examples
///
/// ```
/// let mut words = ["three", "a", "is"];
/// volt_pool::par::par_sort_unstable_by_key(&mut words, |word| word.len());
/// assert_eq!(words, ["a", "is", "three"]);
/// ```
pub fn par_sort_unstable_by_key<T: Send, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K + Sync) {
    sort_unstable(items, &|a: &T, b: &T| key(a).cmp(&key(b)));
}

/// Sorts `items`; equal elements keep their order.
///
/// # Panics
///
/// As [`sort`](slice::sort): may panic if the order is not total.
///
/// # Examples
///
/// ```
/// let mut words = ["c", "a", "b"];
/// volt_pool::par::par_sort(&mut words);
/// assert_eq!(words, ["a", "b", "c"]);
/// ```
pub fn par_sort<T: Ord + Send>(items: &mut [T]) {
    sort_stable(items, &T::cmp);
}

/// As [`par_sort`], by a comparison.
///
/// # Panics
///
/// As [`par_sort`], and with the panic of `compare`.
///
/// # Examples
///
/// ```
/// let mut pairs = [(1, 'b'), (0, 'x'), (1, 'a')];
/// volt_pool::par::par_sort_by(&mut pairs, |a, b| a.0.cmp(&b.0));
/// assert_eq!(pairs, [(0, 'x'), (1, 'b'), (1, 'a')]);
/// ```
pub fn par_sort_by<T: Send>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering + Sync) {
    sort_stable(items, &compare);
}

/// As [`par_sort`], by a key.
///
/// # Panics
///
/// As [`par_sort`], and with the panic of `key`.
///
/// # Examples
///
/// ```
/// let mut words = ["bb", "a", "aa", "b"];
/// volt_pool::par::par_sort_by_key(&mut words, |word| word.len());
/// assert_eq!(words, ["a", "b", "bb", "aa"]);
/// ```
pub fn par_sort_by_key<T: Send, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K + Sync) {
    sort_stable(items, &|a: &T, b: &T| key(a).cmp(&key(b)));
}

fn sort_unstable<T: Send>(items: &mut [T], compare: &(impl Fn(&T, &T) -> Ordering + Sync)) {
    if items.len() <= SMALL {
        items.sort_unstable_by(compare);
        return;
    }
    in_pool(|| quicksort(items, leaf(items.len()), 2 * items.len().ilog2(), compare));
}

/// The size at which parts are left to one thread: several for each thread.
fn leaf(len: usize) -> usize {
    (len / (8 * crate::current_num_threads())).max(SMALL)
}

/// `depth` bounds the recursion: bad pivots end in the standard library's sort.
fn quicksort<T: Send>(
    mut items: &mut [T],
    leaf: usize,
    mut depth: u32,
    compare: &(impl Fn(&T, &T) -> Ordering + Sync),
) {
    loop {
        if items.len() <= leaf || depth == 0 {
            items.sort_unstable_by(compare);
            return;
        }
        depth -= 1;
        choose_pivot(items, compare);
        let middle = partition(items, |item, pivot| compare(item, pivot).is_lt());
        if middle < items.len() / 16 {
            // Few are smaller: perhaps many are equal. Those are in their place then.
            let rest = &mut items[middle..];
            let equal = partition(rest, |item, pivot| compare(item, pivot).is_le()) + 1;
            let (left, right) = items.split_at_mut(middle);
            left.sort_unstable_by(compare);
            items = &mut right[equal..];
            continue;
        }
        let (left, right) = items.split_at_mut(middle);
        let right = &mut right[1..];
        crate::join(
            || quicksort(left, leaf, depth, compare),
            || quicksort(right, leaf, depth, compare),
        );
        return;
    }
}

/// Puts the median of three medians of three first.
fn choose_pivot<T>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) {
    let step = items.len() / 9;
    let median = |a: usize, b: usize, c: usize| {
        let less = |x: usize, y: usize| compare(&items[x], &items[y]).is_lt();
        match (less(a, b), less(b, c), less(a, c)) {
            (true, true, _) | (false, false, _) => b,
            (true, false, true) | (false, true, false) => c,
            _ => a,
        }
    };
    let thirds = [0, 3, 6].map(|at| median(at * step, (at + 1) * step, (at + 2) * step));
    let pivot = median(thirds[0], thirds[1], thirds[2]);
    items.swap(0, pivot);
}

/// Moves the elements that belong before the first one, the pivot, to the front, then the pivot
/// between them and the rest. Returns the pivot's place. No branch depends on the comparisons.
fn partition<T>(items: &mut [T], before: impl Fn(&T, &T) -> bool) -> usize {
    let Some((pivot, rest)) = items.split_first_mut() else { return 0 };
    let mut count = 0;
    for at in 0..rest.len() {
        let belongs = before(&rest[at], pivot);
        rest.swap(at, count);
        count += usize::from(belongs);
    }
    items.swap(0, count);
    count
}

fn sort_stable<T: Send>(items: &mut [T], compare: &(impl Fn(&T, &T) -> Ordering + Sync)) {
    if items.len() <= SMALL {
        items.sort_by(compare);
        return;
    }
    in_pool(|| merge_sort(items, leaf(items.len()), compare));
}

fn merge_sort<T: Send>(
    items: &mut [T],
    leaf: usize,
    compare: &(impl Fn(&T, &T) -> Ordering + Sync),
) {
    if items.len() <= leaf {
        items.sort_by(compare);
        return;
    }
    let middle = items.len() / 2;
    let (left, right) = items.split_at_mut(middle);
    crate::join(|| merge_sort(left, leaf, compare), || merge_sort(right, leaf, compare));
    merge(items, middle, leaf, compare);
}

/// Merges the two sorted runs before and after `middle`.
fn merge<T: Send>(
    items: &mut [T],
    middle: usize,
    leaf: usize,
    compare: &(impl Fn(&T, &T) -> Ordering + Sync),
) {
    let (left, right) = items.split_at(middle);
    if left.is_empty() || right.is_empty() {
        return;
    }
    if items.len() <= leaf.max(4) {
        // Two runs, which it recognises.
        items.sort_by(compare);
        return;
    }
    // Cuts the longer run in its middle, and the other where that element belongs: equal elements
    // of the left run stay before those of the right one.
    let (a, b) = if left.len() >= right.len() {
        let a = left.len() / 2;
        (a, right.partition_point(|item| compare(item, &left[a]).is_lt()))
    } else {
        let b = right.len() / 2;
        (left.partition_point(|item| compare(item, &right[b]).is_le()), b)
    };
    items[a..middle + b].rotate_left(middle - a);
    let (first, second) = items.split_at_mut(a + b);
    let second_middle = middle - a;
    crate::join(|| merge(first, a, leaf, compare), || merge(second, second_middle, leaf, compare));
}
