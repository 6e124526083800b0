use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use super::super::word::Word;
use super::super::{Permits, Refused};
use super::{EXACT, EXACT_LEFT, Guessed, NONE};
use crate::test::{Wakes, ready};

/// The guess that the next operation of this thread has, if it is right.
fn right(permits: &Guessed) -> bool {
    permits.guess() == Word::from_bits(permits.permits.word.load(Relaxed))
}

fn take(permits: &Guessed, n: usize) {
    assert_eq!(permits.try_acquire(n), Ok(()));
}

#[test]
fn one_thread_always_guesses_right() {
    let permits = Guessed::new(5);
    for n in [1, 3, 5, 0] {
        take(&permits, n);
        assert!(right(&permits));
        assert_eq!(permits.try_acquire(6), Err(Refused::TooFew));
        permits.release(n);
        assert!(right(&permits));
    }
    take(&permits, 2);
    take(&permits, 3);
    assert_eq!(permits.try_acquire(1), Err(Refused::TooFew));
    permits.release(3);
    permits.release(2);
    assert!(right(&permits));
    assert_eq!(permits.available(), 5);
}

#[test]
fn a_guess_that_is_out_of_date_gives_no_permits_that_are_gone() {
    let permits = Guessed::new(3);
    assert_eq!(permits.forget(2), 2);
    assert!(!right(&permits));
    assert_eq!(permits.try_acquire(2), Err(Refused::TooFew));
    take(&permits, 1);
    assert_eq!(permits.try_acquire(1), Err(Refused::TooFew));
    permits.release(1);
    assert_eq!(permits.available(), 1);
}

#[test]
fn a_guess_that_there_are_too_few_is_not_believed() {
    let permits = Guessed::new(0);
    permits.permits.release(4);
    take(&permits, 3);
    assert!(right(&permits));
    assert_eq!(permits.available(), 1);
}

#[test]
fn a_release_by_a_guess_from_before_the_queue_serves_it() {
    let permits = Guessed::new(1);
    take(&permits, 1);
    let wakes = Wakes::new();
    let mut waiter = Box::pin(permits.acquire(1));
    assert!(wakes.poll(waiter.as_mut()).is_pending());
    assert_eq!(permits.guess(), Word::new(0), "as if nobody waited");
    permits.release(1);
    assert_eq!(wakes.count(), 1);
    assert_eq!(ready(waiter), Ok(()));
    assert_eq!(permits.available(), 0);
}

#[test]
fn nothing_is_taken_by_a_guess_from_before_closing() {
    let permits = Guessed::new(1);
    permits.close();
    assert_eq!(permits.try_acquire(1), Err(Refused::Closed));
    permits.release(1);
    for _ in 0..2 {
        EXACT_LEFT.with(|left| left.set(0));
        assert_eq!(permits.try_acquire(1), Err(Refused::Closed));
    }
}

#[test]
fn a_wrong_guess_ends_guessing_for_a_while() {
    let permits = Guessed::new(9);
    permits.forget(1);
    take(&permits, 1);
    for left in (0..EXACT).rev() {
        assert!(permits.guess() == NONE);
        permits.release(1);
        take(&permits, 1);
        assert_eq!(EXACT_LEFT.with(Cell::get), left);
    }
    assert!(right(&permits));
}

/// To take none is the only way to leave what one has seen of a word with a queue.
#[test]
fn a_release_serves_the_queue_after_somebody_has_left_a_guess_beside_it() {
    let permits = Guessed::new(0);
    let wakes = Wakes::new();
    let mut waiter = Box::pin(permits.acquire(1));
    assert!(wakes.poll(waiter.as_mut()).is_pending());
    take(&permits, 0);
    assert_eq!(permits.guess(), NONE);
    permits.release(1);
    assert_eq!(wakes.count(), 1);
    assert_eq!(ready(waiter), Ok(()));
}

#[test]
fn to_take_none_is_not_a_wrong_guess() {
    let permits = Guessed::new(9);
    EXACT_LEFT.with(|left| left.set(5));
    take(&permits, 0);
    assert_eq!(EXACT_LEFT.with(Cell::get), 4);
    EXACT_LEFT.with(|left| left.set(0));
    permits.forget(1);
    permits.release(0);
    assert_eq!(EXACT_LEFT.with(Cell::get), 0);
}

#[test]
fn a_wrong_guess_of_a_release_ends_guessing_too() {
    let permits = Guessed::new(9);
    assert_eq!(permits.permits.try_acquire(1), Ok(()));
    permits.release(1);
    assert_eq!(EXACT_LEFT.with(Cell::get), EXACT);
    let before = permits.guess.load(Relaxed);
    take(&permits, 3);
    assert_eq!(permits.guess.load(Relaxed), before, "it stores nothing");
}

/// Each has a guess that is out of date, as another thread leaves that does not guess.
#[test]
fn the_guesses_of_several_semaphores_become_right() {
    for several in 1..8 {
        let all: Vec<_> = (0..several).map(|_| Guessed::new(9)).collect();
        for permits in &all {
            EXACT_LEFT.with(|left| left.set(0));
            take(permits, 1);
            permits.permits.release(1);
        }
        let mut exact = 0;
        for _ in 0..10_000 {
            for permits in &all {
                exact += u32::from(EXACT_LEFT.with(Cell::get) > 0);
                take(permits, 1);
                permits.release(1);
            }
        }
        assert!(exact <= several * u32::from(EXACT), "{several}: {exact} without a guess");
    }
}

/// More than half of the most: the sum has to be looked at, which a guess does not replace.
#[test]
#[should_panic(expected = "more than MAX_PERMITS")]
fn a_release_beyond_the_maximum_is_refused() {
    Guessed::new(Permits::MAX).release(1);
}

#[test]
#[should_panic(expected = "more than MAX_PERMITS")]
fn a_release_of_too_many_at_once_is_refused() {
    Guessed::new(1).release(Permits::MAX);
}
