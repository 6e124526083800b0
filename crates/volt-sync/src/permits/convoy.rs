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
//! that take the permits from each other become one that has them to itself. One of a crowd queues only
//! after [`ELSEWHERE`] turns: with several permits both threads serve the queue, and whoever queues
//! because it was the other one's turn keeps it full for all. A task is delayed by
//! [`EACH`] turns at most, and those who queue are served in their order.
//!
//! Turns do not pay if permits are held across an `.await`: `turns.rs` has how a thread learns that.
//!
//! Rejected:
//! * Letting newcomers take permits past the queue, as locks do that are not fair.
//! * A turn for everybody who would queue: a holder on another thread, or one that sleeps, is not done
//!   sooner for it.
//! * Four turns for each attempt, and eight in vain, whatever the queue: a crowd of 64 never got out of
//!   it, and each operation took 75 ns instead of 30.
//! * Many turns for each attempt, whoever serves the queue: four tasks on two threads then stay on both
//!   (24 ns each operation, or 29). With [`ELSEWHERE`] turns for all it is the same; for crowds without that
//!   limit, 64 tasks with one permit stay on both (35 ns, or 40).
//! * Rests of up to a million opportunities: a crowd of 64 with two permits then stays in its queue nearly
//!   for good, once it is there (90 ns, or 55).
//! * A smaller budget after a turn that paid: the waits of a crowd are no shorter for it.
//! * The same without a budget: whoever polls by hand would find that the first poll takes no place in
//!   the queue, and a `block_on` has nothing else to run.
//! * A credit for each turn that paid: a lock held across an `.await` had eight vain turns in a
//!   thousand, each of which may wake a thread: 15 % of its time.
#![forbid(unsafe_code)]

use super::Permits;
use crate::coop;
use crate::turns::{self, Lesson};

/// So many turns one attempt gives at most: a queue of four times as many is gone by then.
pub(super) const EACH: u8 = 64;
/// So many of them one of a crowd gives for sure; each further one only if this thread serves the queue.
pub(super) const ELSEWHERE: u8 = 16;

/// The turns that an attempt has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turns {
    given: u8,
    /// What [`Lesson::handed`] was at the last one.
    handed: u8,
}

fn address(permits: &Permits) -> usize {
    std::ptr::from_ref(permits).addr()
}

fn with_lesson<R>(permits: &Permits, f: impl FnOnce(&Lesson) -> R) -> R {
    turns::with_lesson(address(permits), f)
}

/// The next turn of `wait` after `given` others, unless it is one to let pass.
fn give(lesson: &Lesson, given: u8, wait: usize) -> Option<Turns> {
    lesson.give(wait, given).then(|| Turns { given: given + 1, handed: lesson.handed() })
}

/// Permits were given to a waiter.
#[inline]
pub(super) fn handed_over(permits: &Permits) {
    if coop::is_limited() {
        coop::set_handed_over(address(permits));
        with_lesson(permits, Lesson::hand_over);
    }
}

/// The turn that the future at the address `wait`, which wants the permits, gives others now, if it does. At
/// most once after they were handed over.
#[inline]
pub(super) fn first_turn(permits: &Permits, wait: usize) -> Option<Turns> {
    let gives = coop::may_give_long_turns() && coop::take_handed_over(address(permits));
    if gives { with_lesson(permits, |lesson| give(lesson, 0, wait)) } else { None }
}

/// The next one, after `turns` that were in vain.
pub(super) fn another_turn(permits: &Permits, turns: Turns, wait: usize) -> Option<Turns> {
    let may = turns.given < EACH && coop::may_give_long_turns();
    with_lesson(permits, |lesson| {
        let serves = lesson.handed() != turns.handed;
        let goes_on = may && (serves || (turns.given < ELSEWHERE && lesson.many_give()));
        if goes_on {
            return give(lesson, turns.given, wait);
        }
        lesson.came_back(wait, true);
        None
    })
}

/// After a turn, the permits were there.
pub(super) fn paid(permits: &Permits, wait: usize) {
    with_lesson(permits, |lesson| lesson.paid(wait));
}
