#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use proptest::prelude::*;

use super::{Pushed, Ring};

type Small = Ring<u32, 8>;

/// Numbers as pointers: nothing is behind them.
fn task(number: usize) -> NonNull<u32> {
    NonNull::new(std::ptr::without_provenance_mut(4 * (number + 1))).unwrap()
}

fn number(task: NonNull<u32>) -> usize {
    task.as_ptr().addr() / 4 - 1
}

fn push<const N: usize>(ring: &Ring<u32, N>, value: usize) -> Pushed<u32, Vec<usize>> {
    // SAFETY: the tests push from one thread.
    unsafe { ring.push(task(value), |taken| taken.map(number).collect()) }
}

#[test]
fn overflow_moves_the_older_half_in_order() {
    let ring = Small::new();
    for value in 0..8 {
        assert!(matches!(push(&ring, value), Pushed::Stored));
    }
    match push(&ring, 8) {
        Pushed::Overflowed(batch) => assert_eq!(batch, [0, 1, 2, 3]),
        other => panic!("{other:?}"),
    }
    let left: Vec<_> = std::iter::from_fn(|| ring.pop()).map(number).collect();
    assert_eq!(left, [4, 5, 6, 7, 8]);
    assert!(ring.is_empty());
}

#[test]
fn a_thief_takes_half_and_gets_the_oldest_itself() {
    let (from, to) = (Small::new(), Ring::<u32, 16>::new());
    for value in 0..5 {
        let _ = push(&from, value);
    }
    // SAFETY: this thread owns both rings.
    let (oldest, count) = unsafe { from.steal_into(&to) }.unwrap();
    assert_eq!((number(oldest), count), (0, 3));
    let stolen: Vec<_> = std::iter::from_fn(|| to.pop()).map(number).collect();
    assert_eq!(stolen, [1, 2]);
    let left: Vec<_> = std::iter::from_fn(|| from.pop()).map(number).collect();
    assert_eq!(left, [3, 4]);
}

/// Finding P8: the indices wrap after 2^32 operations, not after 2^16, and wrap correctly.
#[test]
fn indices_wrap_around() {
    let ring = Small::starting_at(u32::MAX - 3);
    for round in 0..4 {
        for value in 0..8 {
            assert!(matches!(push(&ring, round * 8 + value), Pushed::Stored));
        }
        assert_eq!((ring.len(), ring.room()), (8, 0));
        for value in 0..8 {
            assert_eq!(number(ring.pop().unwrap()), round * 8 + value);
        }
        assert!(ring.pop().is_none());
    }
}

#[derive(Debug, Clone)]
enum Op {
    Push,
    Pop,
    Steal,
    PopStolen,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn agrees_with_a_deque(ops in proptest::collection::vec(prop_oneof![
        4 => Just(Op::Push), 2 => Just(Op::Pop), 1 => Just(Op::Steal), 2 => Just(Op::PopStolen),
    ], 0..200)) {
        let (ring, to) = (Small::new(), Small::new());
        let (mut model, mut stolen, mut next) = (VecDeque::new(), VecDeque::new(), 0);
        for op in ops {
            match op {
                Op::Push => {
                    match push(&ring, next) {
                        Pushed::Stored => {}
                        Pushed::Overflowed(batch) => {
                            let expected: Vec<usize> = model.drain(..4).collect();
                            prop_assert_eq!(batch, expected);
                        }
                        Pushed::Refused(_) => prop_assert!(false, "no thief is at work"),
                    }
                    model.push_back(next);
                    next += 1;
                }
                Op::Pop => prop_assert_eq!(ring.pop().map(number), model.pop_front()),
                Op::Steal => {
                    // SAFETY: this thread owns both rings.
                    let result = unsafe { ring.steal_into(&to) };
                    let count = model.len() - model.len() / 2;
                    if stolen.len() > 4 || count == 0 {
                        prop_assert!(result.is_none());
                    } else {
                        let (oldest, taken) = result.unwrap();
                        prop_assert_eq!((Some(number(oldest)), taken), (model.pop_front(), count));
                        stolen.extend(model.drain(..count - 1));
                    }
                }
                Op::PopStolen => prop_assert_eq!(to.pop().map(number), stolen.pop_front()),
            }
            prop_assert_eq!((ring.len(), to.len()), (model.len(), stolen.len()));
        }
    }
}

/// Findings P5, P6, P7 on real threads: every task comes out exactly once.
#[test]
fn thieves_and_owner_lose_and_duplicate_nothing() {
    let tasks = 200_000 * std::env::var("VOLT_STRESS").map_or(1, |s| s.parse().unwrap_or(1));
    let ring = Arc::new(Small::new());
    let seen: Arc<Vec<AtomicU32>> = Arc::new((0..tasks).map(|_| AtomicU32::new(0)).collect());
    let (done, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let see = |seen: &[AtomicU32], count: &AtomicUsize, value: NonNull<u32>| {
        assert_eq!(seen[number(value)].fetch_add(1, Ordering::Relaxed), 0, "taken twice");
        count.fetch_add(1, Ordering::Relaxed);
    };
    let thieves: Vec<_> = (0..2)
        .map(|_| {
            let (ring, seen, done, count) =
                (ring.clone(), seen.clone(), done.clone(), count.clone());
            std::thread::spawn(move || {
                let own = Small::new();
                loop {
                    let last = done.load(Ordering::Acquire);
                    // SAFETY: this thread owns `own`.
                    if let Some((oldest, _)) = unsafe { ring.steal_into(&own) } {
                        see(&seen, &count, oldest);
                        std::iter::from_fn(|| own.pop()).for_each(|task| see(&seen, &count, task));
                    } else if last {
                        return;
                    }
                }
            })
        })
        .collect();
    for value in 0..tasks {
        match push(&ring, value) {
            Pushed::Stored => {}
            Pushed::Overflowed(batch) => {
                batch.into_iter().for_each(|number| see(&seen, &count, task(number)));
            }
            Pushed::Refused(task) => see(&seen, &count, task),
        }
        if value % 3 == 0 {
            if let Some(task) = ring.pop() {
                see(&seen, &count, task);
            }
        }
    }
    std::iter::from_fn(|| ring.pop()).for_each(|task| see(&seen, &count, task));
    done.store(true, Ordering::Release);
    thieves.into_iter().for_each(|thief| thief.join().unwrap());
    std::iter::from_fn(|| ring.pop()).for_each(|task| see(&seen, &count, task));
    assert_eq!(count.load(Ordering::Relaxed), tasks);
}
