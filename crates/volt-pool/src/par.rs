//! Loops, reductions and sorts over slices and ranges that share their work out.
//!
//! All of them split lazily: a thread works through its part in blocks, and gives half of what is
//! left away when another thread asks for work. A block grows until it takes about 5 us, and shrinks when
//! it has taken much longer, so that the split costs nothing next to the work, whatever one element takes;
//! nothing has to be tuned. (The first expensive elements behind cheap ones are in blocks as large as those were.)
//!
//! They run in the pool of the calling thread; a thread outside becomes a guest of the
//! [default pool](crate::global). To use another pool, call them inside
//! [`ThreadPool::enter`](crate::ThreadPool::enter).
//!
//! A panic of a closure goes on in the caller after all parts that had begun have ended; parts that
//! had not begun may be left out.
//!
//! ```
//! use volt_pool::par;
//!
//! let mut squares = par::par_map_range(0..1000, |i| (999 - i) * (999 - i));
//! par::par_sort_unstable(&mut squares);
//! assert!(squares.is_sorted());
//! assert_eq!(par::par_sum::<usize, usize>(&squares), 332_833_500);
//! ```
#![forbid(unsafe_code)]

use std::ops::Range;
use std::time::Duration;

use volt_sync::internal::primitive::now;

use crate::install;
use crate::pool::with_core;
use crate::worker::with_current;

mod sort;

pub use sort::{
    par_sort, par_sort_by, par_sort_by_key, par_sort_unstable, par_sort_unstable_by,
    par_sort_unstable_by_key,
};

/// What a block should take.
const BLOCK: Duration = Duration::from_micros(5);

/// Something that can be cut in two.
trait Part: Send + Sized {
    fn len(&self) -> usize;
    fn cut(self, at: usize) -> (Self, Self);
}

impl Part for Range<usize> {
    fn len(&self) -> usize {
        ExactSizeIterator::len(self)
    }
    fn cut(self, at: usize) -> (Self, Self) {
        (self.start..self.start + at, self.start + at..self.end)
    }
}

impl<T: Sync> Part for &[T] {
    fn len(&self) -> usize {
        <[T]>::len(self)
    }
    fn cut(self, at: usize) -> (Self, Self) {
        self.split_at(at)
    }
}

impl<T: Send> Part for &mut [T] {
    fn len(&self) -> usize {
        <[T]>::len(self)
    }
    fn cut(self, at: usize) -> (Self, Self) {
        self.split_at_mut(at)
    }
}

/// A slice cut only between chunks; its length counts chunks.
struct Chunks<S> {
    slice: S,
    size: usize,
    /// The number of the first chunk.
    first: usize,
}

impl<S: Part> Part for Chunks<S> {
    fn len(&self) -> usize {
        self.slice.len().div_ceil(self.size)
    }
    fn cut(self, at: usize) -> (Self, Self) {
        let Self { slice, size, first } = self;
        let end = slice.len().min(at.saturating_mul(size));
        let (left, right) = slice.cut(end);
        (Self { slice: left, size, first }, Self { slice: right, size, first: first + at })
    }
}

/// True if another thread has asked this one for work.
fn is_asked() -> bool {
    with_current(|worker| worker.is_some_and(|worker| worker.fork.is_asked()))
}

/// Runs `work` in the current pool.
fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    with_core(|core| install::enter(core, work))
}

/// Folds a part, from left to right, in blocks of at first `block` elements.
fn drive<P, A, I, F, C>(mut part: P, mut block: usize, identity: &I, fold: &F, combine: &C) -> A
where
    P: Part,
    A: Send,
    I: Fn() -> A + Sync,
    F: Fn(A, P) -> A + Sync,
    C: Fn(A, A) -> A + Sync,
{
    let mut result = identity();
    loop {
        let len = part.len();
        if len > 1 && is_asked() {
            let (left, right) = part.cut(len / 2);
            let (left, right) = crate::join(
                || drive(left, block, identity, fold, combine),
                || drive(right, block, identity, fold, combine),
            );
            return combine(combine(result, left), right);
        }
        if len <= block {
            return if len == 0 { result } else { fold(result, part) };
        }
        let (head, rest) = part.cut(block);
        part = rest;
        let start = now();
        result = fold(result, head);
        block = next_block(block, start.elapsed());
    }
}

/// How many elements the next block has if the last one had `block` and took so long.
fn next_block(block: usize, took: Duration) -> usize {
    if took < BLOCK {
        return block.saturating_mul(2);
    }
    // Not for a little longer, and never to nothing.
    let times = usize::try_from(took.as_nanos() / BLOCK.as_nanos()).unwrap_or(usize::MAX);
    if times < 4 { block } else { (block / times).max(1) }
}

/// Folds a part in the current pool.
fn reduce<P, A, I, F, C>(part: P, identity: &I, fold: &F, combine: &C) -> A
where
    P: Part,
    A: Send,
    I: Fn() -> A + Sync,
    F: Fn(A, P) -> A + Sync,
    C: Fn(A, A) -> A + Sync,
{
    in_pool(|| drive(part, 1, identity, fold, combine))
}

/// Runs `work` for all parts of `part`.
fn each<P: Part>(part: P, work: &(impl Fn(P) + Sync)) {
    reduce(part, &|| (), &|(), part| work(part), &|(), ()| ());
}

/// Calls `work` for each number of `range`.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// let sum = AtomicUsize::new(0);
/// volt_pool::par::par_for(0..101, |i| {
///     sum.fetch_add(i, Ordering::Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 5050);
/// ```
pub fn par_for(range: Range<usize>, work: impl Fn(usize) + Sync) {
    each(range, &|part: Range<usize>| part.for_each(&work));
}

/// Calls `work` for each element of `items`.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// let letters = AtomicUsize::new(0);
/// volt_pool::par::par_for_each(&["one", "two", "three"], |word| {
///     letters.fetch_add(word.len(), Ordering::Relaxed);
/// });
/// assert_eq!(letters.into_inner(), 11);
/// ```
pub fn par_for_each<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    each(items, &|part: &[T]| part.iter().for_each(&work));
}

/// Calls `work` for each element of `items`, to change it.
///
/// # Examples
///
/// ```
/// let mut numbers = [1, 2, 3];
/// volt_pool::par::par_for_each_mut(&mut numbers, |n| *n *= 10);
/// assert_eq!(numbers, [10, 20, 30]);
/// ```
pub fn par_for_each_mut<T: Send>(items: &mut [T], work: impl Fn(&mut T) + Sync) {
    each(items, &|part: &mut [T]| part.iter_mut().for_each(&work));
}

/// Calls `work` for each chunk of `size` elements, the last one perhaps shorter, with its number.
///
/// # Panics
///
/// If `size` is 0.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// let sums = [const { AtomicU64::new(0) }; 3];
/// volt_pool::par::par_chunks(&[1, 2, 3, 4, 5], 2, |number, chunk| {
///     sums[number].store(chunk.iter().sum(), Ordering::Relaxed);
/// });
/// assert_eq!(sums.map(AtomicU64::into_inner), [3, 7, 5]);
/// ```
#[track_caller]
pub fn par_chunks<T: Sync>(items: &[T], size: usize, work: impl Fn(usize, &[T]) + Sync) {
    assert!(size != 0, "the size of a chunk must not be zero");
    each(Chunks { slice: items, size, first: 0 }, &|part: Chunks<&[T]>| {
        let numbers = part.first..;
        part.slice.chunks(size).zip(numbers).for_each(|(chunk, number)| work(number, chunk));
    });
}

/// As [`par_chunks`], to change the elements.
///
/// # Panics
///
/// If `size` is 0.
///
/// # Examples
///
/// ```
/// let mut numbers = [0; 5];
/// volt_pool::par::par_chunks_mut(&mut numbers, 2, |number, chunk| chunk.fill(number));
/// assert_eq!(numbers, [0, 0, 1, 1, 2]);
/// ```
#[track_caller]
pub fn par_chunks_mut<T: Send>(
    items: &mut [T],
    size: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    assert!(size != 0, "the size of a chunk must not be zero");
    each(Chunks { slice: items, size, first: 0 }, &|part: Chunks<&mut [T]>| {
        let numbers = part.first..;
        part.slice.chunks_mut(size).zip(numbers).for_each(|(chunk, number)| work(number, chunk));
    });
}

/// The results of `function` for each element, in the order of the elements.
///
/// # Examples
///
/// ```
/// let lengths = volt_pool::par::par_map(&["one", "two", "three"], |word| word.len());
/// assert_eq!(lengths, [3, 3, 5]);
/// ```
pub fn par_map<T: Sync, R: Send>(items: &[T], function: impl Fn(&T) -> R + Sync) -> Vec<R> {
    reduce(
        items,
        &Vec::new,
        &|list, part: &[T]| extended(list, part.iter().map(&function)),
        &joined,
    )
}

/// The results of `function` for each number of `range`, in their order.
///
/// # Examples
///
/// ```
/// assert_eq!(volt_pool::par::par_map_range(0..4, |i| i * i), [0, 1, 4, 9]);
/// ```
pub fn par_map_range<R: Send>(range: Range<usize>, function: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let fold = |list, part: Range<usize>| extended(list, part.map(&function));
    reduce(range, &Vec::new, &fold, &joined)
}

fn extended<R>(mut list: Vec<R>, more: impl Iterator<Item = R>) -> Vec<R> {
    list.extend(more);
    list
}

fn joined<R>(mut left: Vec<R>, mut right: Vec<R>) -> Vec<R> {
    if left.is_empty() {
        return right;
    }
    left.append(&mut right);
    left
}

/// Folds the elements into one value: each part starts with `identity()`, takes its elements in with
/// `fold`, and neighbouring results are put together by `combine`, which must be associative. The
/// order of the elements is kept.
///
/// # Examples
///
/// ```
/// let words = ["lazy", "binary", "splitting"];
/// let longest = volt_pool::par::par_reduce(
///     &words,
///     || "",
///     |longest, word| if word.len() > longest.len() { word } else { longest },
///     |a, b| if b.len() > a.len() { b } else { a },
/// );
/// assert_eq!(longest, "splitting");
/// ```
pub fn par_reduce<'a, T: Sync, A: Send>(
    items: &'a [T],
    identity: impl Fn() -> A + Sync,
    fold: impl Fn(A, &'a T) -> A + Sync,
    combine: impl Fn(A, A) -> A + Sync,
) -> A {
    let fold = |start, part: &'a [T]| part.iter().fold(start, &fold);
    reduce(items, &identity, &fold, &combine)
}

/// As [`par_reduce`], over the numbers of `range`.
///
/// # Examples
///
/// ```
/// let sum = volt_pool::par::par_reduce_range(1..101, || 0, |sum, i| sum + i, |a, b| a + b);
/// assert_eq!(sum, 5050);
/// ```
pub fn par_reduce_range<A: Send>(
    range: Range<usize>,
    identity: impl Fn() -> A + Sync,
    fold: impl Fn(A, usize) -> A + Sync,
    combine: impl Fn(A, A) -> A + Sync,
) -> A {
    let fold = |start, part: Range<usize>| part.fold(start, &fold);
    reduce(range, &identity, &fold, &combine)
}

/// As [`par_reduce`], with whole chunks of `size` elements (the last one perhaps shorter) taken in
/// at once: for loops that the compiler vectorises.
///
/// # Panics
///
/// If `size` is 0.
///
/// # Examples
///
/// ```
/// let values: Vec<f64> = (0..1000).map(f64::from).collect();
/// let sum = volt_pool::par::par_reduce_chunks(
///     &values,
///     128,
///     || 0.0,
///     |sum, chunk| sum + chunk.iter().sum::<f64>(),
///     |a, b| a + b,
/// );
/// assert_eq!(sum, 499_500.0);
/// ```
#[track_caller]
pub fn par_reduce_chunks<'a, T: Sync, A: Send>(
    items: &'a [T],
    size: usize,
    identity: impl Fn() -> A + Sync,
    fold: impl Fn(A, &'a [T]) -> A + Sync,
    combine: impl Fn(A, A) -> A + Sync,
) -> A {
    assert!(size != 0, "the size of a chunk must not be zero");
    let fold = |start, part: Chunks<&'a [T]>| part.slice.chunks(size).fold(start, &fold);
    reduce(Chunks { slice: items, size, first: 0 }, &identity, &fold, &combine)
}

/// The sum of the elements.
///
/// # Examples
///
/// ```
/// let numbers: Vec<u64> = (1..=100).collect();
/// let sum: u64 = volt_pool::par::par_sum(&numbers);
/// assert_eq!(sum, 5050);
/// ```
pub fn par_sum<'a, T, S>(items: &'a [T]) -> S
where
    T: Sync,
    S: Send + std::iter::Sum<&'a T> + std::iter::Sum<S>,
{
    let none = || std::iter::empty::<S>().sum();
    let add = |a: S, b: S| [a, b].into_iter().sum();
    reduce(items, &none, &|sum, part: &'a [T]| add(sum, part.iter().sum()), &add)
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
