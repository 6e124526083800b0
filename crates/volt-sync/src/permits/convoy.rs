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
//! permits, and the queue is empty. If not (the scheduler runs some of those who were woken, and then
//! whoever gave a turn), it gives another turn, if this thread has handed the permits over meanwhile:
//! so the queue gets shorter, and is gone after a while, also if 64 tasks were in it. If it has not,
//! the waiters run on another thread, and it queues: then it goes on there as well, and two threads
//! that take the permits from each other become one that has them to itself. A task is delayed by
//! [`EACH`] turns at most, and those who queue are served in their order.
//!
//! Turns do not pay if permits are held across an `.await`. So each thread learns: after some turns of
//! which none paid, it lets opportunities pass, [`SLOWER`] times as many each time. A crowd needs many
//! turns before the first one pays, so it also gives [`LONGER`] times as many each time, up to
//! [`MOST`]: in vain are one in eight at first, and fewer each time. A turn that paid ends the rest and
//! undoes a doubling of it; how many turns a crowd may need stays known. What a thread has learnt of a
//! lock is found by the lock's address, so that a lock held for long does not speak for one held for
//! nanoseconds. Locks may share a place: then they share what is learnt, and nothing else.
//!
//! Rejected:
//! * Letting newcomers take permits past the queue, as locks do that are not fair.
//! * A turn for everybody who would queue: a holder on another thread, or one that sleeps, is not done
//!   sooner for it.
//! * Four turns for each attempt, and eight in vain, whatever the queue: a crowd of 64 never got out of
//!   it, and each operation took 75 ns instead of 30.
//! * Many turns for each attempt, whoever serves the queue: four tasks on two threads then stay on both.
//! * A smaller budget after a turn that paid: the waits of a crowd are no shorter for it.
//! * The same without a budget: whoever polls by hand would find that the first poll takes no place in
//!   the queue, and a `block_on` has nothing else to run.
//! * A credit for each turn that paid: a lock held across an `.await` had eight vain turns in a
//!   thousand, each of which may wake a thread: 15 % of its time.
//! * What was learnt in the lock itself: a word more for each, and a write to a contended line.
#![forbid(unsafe_code)]

use std::cell::Cell;

use super::Permits;
use crate::coop;

/// So many turns one attempt gives at most: a queue of four times as many is gone by then.
pub(super) const EACH: u8 = 64;
/// So many turns may be in vain, the first time.
const FEWEST: u16 = 8;
/// And at most so many.
pub(super) const MOST: u16 = 1024;
/// More turns each time.
const LONGER: u16 = 4;
/// So many opportunities are let pass after that, the first time.
const SHORTEST: u32 = 64;
/// And at most so many: some tenths of a second.
const LONGEST: u32 = 1 << 20;
/// More of them each time.
const SLOWER: u32 = 4;
/// What is learnt is kept in so many places.
const PLACES: usize = 8;

/// The turns that an attempt has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turns {
    given: u8,
    /// What [`Lesson::handed`] was at the last one.
    handed: u8,
}

/// What a thread has learnt of a lock.
#[derive(Debug)]
struct Lesson {
    /// Opportunities to let pass now.
    pass: Cell<u32>,
    /// How many to let pass when `turns` are used up.
    rest: Cell<u32>,
    /// Turns that may still be in vain.
    turns: Cell<u16>,
    /// How many these are after one that paid.
    most: Cell<u16>,
    /// How often this thread has handed permits over. It wraps.
    handed: Cell<u8>,
}

impl Lesson {
    const fn new() -> Self {
        Self {
            pass: Cell::new(0),
            rest: Cell::new(SHORTEST),
            turns: Cell::new(FEWEST),
            most: Cell::new(FEWEST),
            handed: Cell::new(0),
        }
    }

    /// Gives a turn after `given` others, in vain as far as is known, unless this opportunity is one
    /// to let pass.
    fn give(&self, given: u8) -> Option<Turns> {
        let pass = self.pass.get();
        if pass > 0 {
            self.pass.set(pass - 1);
            return None;
        }
        let left = self.turns.get() - 1;
        self.turns.set(left);
        if left == 0 {
            let (rest, most) = (self.rest.get(), (self.most.get() * LONGER).min(MOST));
            self.most.set(most);
            self.turns.set(most);
            self.pass.set(rest);
            self.rest.set((rest * SLOWER).min(LONGEST));
        }
        Some(Turns { given: given + 1, handed: self.handed.get() })
    }

    /// A turn was not in vain.
    fn paid(&self) {
        let most = self.most.get();
        self.turns.set(most);
        self.pass.set(0);
        let shortest = SHORTEST / u32::from(FEWEST) * u32::from(most);
        self.rest.set((self.rest.get() / 2).max(shortest));
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

fn with_lesson<R>(permits: &Permits, f: impl FnOnce(&Lesson) -> R) -> R {
    LESSONS.with(|lessons| f(&lessons[place(address(permits))]))
}

/// Permits were given to a waiter.
#[inline]
pub(super) fn handed_over(permits: &Permits) {
    if coop::is_limited() {
        coop::set_handed_over(address(permits));
        with_lesson(permits, |lesson| lesson.handed.set(lesson.handed.get().wrapping_add(1)));
    }
}

/// The turn that whoever wants the permits gives others now, if it does. At most once after they were
/// handed over.
#[inline]
pub(super) fn first_turn(permits: &Permits) -> Option<Turns> {
    let gives = coop::is_limited() && coop::take_handed_over(address(permits));
    if gives { with_lesson(permits, |lesson| lesson.give(0)) } else { None }
}

/// The next one, after `turns` that were in vain.
pub(super) fn another_turn(permits: &Permits, turns: Turns) -> Option<Turns> {
    if turns.given >= EACH || !coop::is_limited() {
        return None;
    }
    with_lesson(permits, |lesson| {
        if lesson.handed.get() == turns.handed { None } else { lesson.give(turns.given) }
    })
}

/// After a turn, the permits were there.
pub(super) fn paid(permits: &Permits) {
    with_lesson(permits, Lesson::paid);
}

/// Forgets what this thread has learnt.
#[cfg(all(test, not(volt_loom)))]
pub(super) fn forget() {
    know_a_crowd_of(FEWEST);
}

/// The same, but for how many turns may be in vain.
#[cfg(all(test, not(volt_loom)))]
pub(super) fn know_a_crowd_of(most: u16) {
    LESSONS.with(|lessons| {
        for lesson in lessons {
            lesson.most.set(most);
            lesson.rest.set(0);
            lesson.paid();
        }
    });
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::{FEWEST, LONGER, LONGEST, Lesson, MOST, PLACES, SHORTEST, SLOWER, place};

    /// How many turns are given at the next `opportunities`, if none pays.
    fn in_vain(lesson: &Lesson, opportunities: u32) -> u32 {
        (0..opportunities).filter(|_| lesson.give(0).is_some()).count() as u32
    }

    #[test]
    fn turns_in_vain_become_rare() {
        let lesson = Lesson::new();
        let (mut most, mut rest) = (u32::from(FEWEST), SHORTEST);
        while rest < LONGEST {
            assert_eq!(in_vain(&lesson, most), most);
            assert_eq!(in_vain(&lesson, rest), 0);
            most = (most * u32::from(LONGER)).min(u32::from(MOST));
            rest *= SLOWER;
        }
        assert_eq!(in_vain(&lesson, 5 * (u32::from(MOST) + LONGEST)), 5 * u32::from(MOST));
    }

    #[test]
    fn while_turns_pay_none_is_let_pass() {
        let lesson = Lesson::new();
        let mut most = u32::from(FEWEST);
        while most < u32::from(MOST) {
            assert_eq!(in_vain(&lesson, most), most);
            lesson.paid();
            most = (most * u32::from(LONGER)).min(u32::from(MOST));
        }
        for _ in 0..100 {
            assert_eq!(in_vain(&lesson, most), most);
            lesson.paid();
        }
    }

    #[test]
    fn a_turn_that_paid_undoes_one_doubling_of_the_rest_and_leaves_turns_one_in_eight() {
        let lesson = Lesson::new();
        while lesson.rest.get() < LONGEST {
            in_vain(&lesson, 1);
        }
        lesson.paid();
        let most = u32::from(MOST);
        assert_eq!(in_vain(&lesson, most + LONGEST / 2), most);
        (0..30).for_each(|_| lesson.paid());
        assert_eq!(in_vain(&lesson, most + 8 * most), most);
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
