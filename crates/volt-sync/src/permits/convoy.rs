//! Who has just handed permits over, and wants them back.
//!
//! Tasks that give permits back and take them again in a loop form a convoy as soon as one of them
//! has queued: each release goes to the oldest waiter, so that the releaser's next attempt queues as
//! well, and so on for ever, even if all of them run on one thread and never hold the permits while
//! they sleep. Each operation then costs a place in the queue, a wake-up and a poll.
//!
//! So a task of a runtime with a budget that finds too few permits, and that handed these very
//! permits to a waiter in the same poll, and no others since, gives others a turn before it queues:
//! it wakes itself, and returns. By the time it is polled again, the few that waited have had the
//! permits, and the queue is empty. If not (a run queue that is first in, first out brings it back after
//! one of them), it gives another turn, up to [`EACH`] of them, and then it queues. So it is delayed by
//! [`EACH`] turns at most, and those who queue are served in their order.
//!
//! Turns do not pay if permits are held across an `.await`, or if many wait. So each thread learns:
//! after [`TURNS`] turns of which none paid, it lets opportunities pass, each time twice as many;
//! a turn that paid undoes one doubling. What a thread has learnt of a lock is found by the lock's
//! address, so that a lock held for long does not speak for one held for nanoseconds. Locks may share a
//! place: then they share what is learnt, and nothing else.
//!
//! Rejected:
//! * Letting newcomers take permits past the queue, as locks do that are not fair.
//! * A turn for everybody who would queue: a holder on another thread, or one that sleeps, is not done
//!   sooner for it.
//! * The same without a budget: whoever polls by hand would find that the first poll takes no place in
//!   the queue, and a `block_on` has nothing else to run.
//! * A credit for each turn that paid: a lock held across an `.await` had eight vain turns in a
//!   thousand, each of which may wake a thread: 15 % of its time.
//! * What was learnt in the lock itself: a word more for each, and a write to a contended line.
#![forbid(unsafe_code)]
#![cfg_attr(volt_loom, allow(dead_code, reason = "in models nobody has a budget"))]

use std::cell::Cell;

use super::Permits;
#[cfg(not(volt_loom))]
use crate::coop;

/// So many turns one attempt gives at most.
const EACH: u8 = 4;
/// So many turns may be in vain. They empty a queue of four, in whatever order its tasks are polled.
const TURNS: u8 = 8;
/// So many opportunities are let pass after that, the first time.
const SHORTEST: u32 = 64;
/// And at most so many: some milliseconds.
const LONGEST: u32 = 1 << 16;
/// What is learnt is kept in so many places.
const PLACES: usize = 8;

/// What a thread has learnt of a lock.
#[derive(Debug)]
struct Lesson {
    /// Opportunities to let pass now.
    pass: Cell<u32>,
    /// How many to let pass when `turns` are used up.
    rest: Cell<u32>,
    /// Turns that may still be in vain.
    turns: Cell<u8>,
}

impl Lesson {
    const fn new() -> Self {
        Self { pass: Cell::new(0), rest: Cell::new(SHORTEST), turns: Cell::new(TURNS) }
    }

    /// True if this opportunity is not one to let pass.
    #[inline]
    fn is_due(&self) -> bool {
        let pass = self.pass.get();
        if pass == 0 {
            return true;
        }
        self.pass.set(pass - 1);
        false
    }

    /// A turn is given, in vain as far as is known.
    fn spend(&self) {
        let left = self.turns.get() - 1;
        self.turns.set(left);
        if left == 0 {
            let rest = self.rest.get();
            self.turns.set(TURNS);
            self.pass.set(rest);
            self.rest.set((rest * 2).min(LONGEST));
        }
    }

    /// A turn was not in vain.
    fn paid(&self) {
        self.turns.set(TURNS);
        self.pass.set(0);
        self.rest.set((self.rest.get() / 2).max(SHORTEST));
    }
}

std::thread_local! {
    static LESSONS: [Lesson; PLACES] = const { [const { Lesson::new() }; PLACES] };
}

/// Where the lesson of the permits at `address` is kept: by the high bits of a product, as in
/// Knuth, The Art of Computer Programming, volume 3, section 6.4.
#[inline]
fn place(address: usize) -> usize {
    let words = (address / size_of::<usize>()) as u32;
    (words.wrapping_mul(0x9E37_79B1) >> (u32::BITS - PLACES.ilog2())) as usize
}

fn address(permits: &Permits) -> usize {
    std::ptr::from_ref(permits).addr()
}

/// Permits were given to a waiter.
#[cfg(not(volt_loom))]
#[inline]
pub(super) fn handed_over(permits: &Permits) {
    coop::set_handed_over(address(permits));
}

/// True if whoever wants the permits gives others a turn now. At most once after they were handed
/// over.
#[cfg(not(volt_loom))]
#[inline]
pub(super) fn gives_turn(permits: &Permits) -> bool {
    coop::take_handed_over(address(permits)) && spends_turn(permits)
}

/// The same after `turns` that were in vain.
#[cfg(not(volt_loom))]
pub(super) fn gives_another_turn(permits: &Permits, turns: u8) -> bool {
    turns < EACH && spends_turn(permits)
}

#[cfg(not(volt_loom))]
fn spends_turn(permits: &Permits) -> bool {
    LESSONS.with(|lessons| {
        let lesson = &lessons[place(address(permits))];
        let gives = coop::is_limited() && lesson.is_due();
        if gives {
            lesson.spend();
        }
        gives
    })
}

/// After a turn, the permits were there.
#[cfg(not(volt_loom))]
pub(super) fn paid(permits: &Permits) {
    LESSONS.with(|lessons| lessons[place(address(permits))].paid());
}

#[cfg(volt_loom)]
pub(super) fn handed_over(_permits: &Permits) {}

#[cfg(volt_loom)]
pub(super) fn gives_turn(_permits: &Permits) -> bool {
    false
}

#[cfg(volt_loom)]
pub(super) fn gives_another_turn(_permits: &Permits, _turns: u8) -> bool {
    false
}

#[cfg(volt_loom)]
pub(super) fn paid(_permits: &Permits) {}

/// Forgets what this thread has learnt.
#[cfg(test)]
pub(super) fn forget() {
    LESSONS.with(|lessons| {
        for lesson in lessons {
            lesson.rest.set(0);
            lesson.paid();
        }
    });
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::{LONGEST, Lesson, PLACES, SHORTEST, TURNS, place};

    const ALL: u32 = TURNS as u32;

    /// How many turns are given at the next `opportunities`, if none pays.
    fn in_vain(lesson: &Lesson, opportunities: u32) -> u32 {
        let turns = (0..opportunities).filter(|_| lesson.is_due()).inspect(|_| lesson.spend());
        turns.count() as u32
    }

    #[test]
    fn turns_in_vain_become_rare() {
        let lesson = Lesson::new();
        assert_eq!(in_vain(&lesson, ALL + SHORTEST), ALL);
        assert_eq!(in_vain(&lesson, ALL + 2 * SHORTEST), ALL, "twice as many are let pass");
        let mut rest = 4 * SHORTEST;
        while rest < LONGEST {
            assert_eq!(in_vain(&lesson, ALL + rest), ALL);
            rest *= 2;
        }
        assert_eq!(in_vain(&lesson, 5 * (ALL + LONGEST)), 5 * ALL);
    }

    #[test]
    fn while_turns_pay_none_is_let_pass() {
        let lesson = Lesson::new();
        for _ in 0..100 {
            assert_eq!(in_vain(&lesson, ALL), ALL);
            lesson.paid();
        }
    }

    #[test]
    fn a_turn_that_paid_undoes_one_doubling_only() {
        let lesson = Lesson::new();
        while lesson.rest.get() < LONGEST {
            in_vain(&lesson, 1);
        }
        lesson.paid();
        assert_eq!(in_vain(&lesson, ALL + LONGEST / 2), ALL);
    }

    #[test]
    fn locks_in_a_row_are_spread_over_the_places() {
        for words in 3..70 {
            let mut locks = [0; PLACES];
            for i in 0..100 {
                locks[place(0x1234_5000 + i * words * size_of::<usize>())] += 1;
            }
            assert!(locks.iter().all(|locks| *locks < 50), "{words} words apart: {locks:?}");
        }
    }
}
