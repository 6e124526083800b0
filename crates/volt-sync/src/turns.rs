//! How many turns a thread gives others before it waits, and what it has learnt of that.
//!
//! A task that would have to wait for something, a permit or a place in a channel, can give the others a
//! turn instead: it wakes itself, and returns. If those who have what it wants, or make it, run on this
//! very thread, it is there by the time the task is polled again, and a place in a queue, a wake-up and a
//! search are saved. For permits only tasks that have a budget do so (`permits/convoy.rs`). For a channel
//! (`channel/waiter.rs`) they do if their runtime allows it, and on any other executor the tasks of a
//! crowd: if [`CROWD`] times in a row somebody wanted the channel on this thread, and it was never the one
//! that had wanted it before. A task that waits alone, or two that answer each other, find their wake-up
//! the faster way; and who polls a few futures by hand finds each of them in its queue.
//!
//! Turns do not pay if that takes longer: permits that are held across an `.await`, a channel whose
//! other side is slow, or elsewhere. So each thread learns: after some turns of which none paid, it lets
//! opportunities pass, [`SLOWER`] times as many each time. A crowd needs many turns before the first one
//! pays, so it also gives [`LONGER`] times as many each time, up to [`MOST`]: in vain are one in eight
//! at first, and fewer each time. A turn that paid ends the rest and undoes a doubling of it; how many
//! turns a crowd may need stays known. What a thread has learnt of a lock is found by the lock's address,
//! so that a lock held for long does not speak for one held for nanoseconds. Locks and channels may share
//! a place: then they share what is learnt, and nothing else.
//!
//! A turn is as long as the polls of all who are runnable on the thread: behind thousands of tasks, or one
//! that computes, a turn that pays still costs more than it saves. So one in [`TIMED`] is timed, from the
//! wake-up to the next poll of the same future on the same thread (the task may poll others as well, whose
//! turns would end it too early). A wait has as many turns as fit into [`DELAY_NS`] at the
//! pace of the last one that was timed; if not even one does, opportunities are let pass as above, whether
//! turns pay or not, with one turn between two rests to see if it still takes so long.
//!
//! Rejected:
//! * What was learnt in the lock itself: a word more for each, and a write to a contended line.
//! * Turns on any executor for whoever waits for a channel: two tasks on two threads of Tokio that answer
//!   each other stay apart, where a wake-up brings them together (64 pairs: 133 ns instead of 93).
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::task::Context;
use std::time::Instant;

use crate::primitive::now;

/// So many turns may be in vain, the first time.
const FEWEST: u16 = 8;
/// And at most so many.
pub(crate) const MOST: u16 = 1024;
/// More turns each time.
const LONGER: u16 = 4;
/// So many opportunities are let pass after that, the first time.
const SHORTEST: u32 = 64;
/// And at most so many: some tenths of a second.
const LONGEST: u32 = 1 << 20;
/// More of them each time.
const SLOWER: u32 = 4;
/// One turn in so many is timed.
const TIMED: u8 = 16;
/// The turns of one wait take so long at most, as far as is known.
const DELAY_NS: u32 = 250_000;
/// So often in a row, others wanted it: then they are a crowd.
pub(crate) const CROWD: u8 = 16;
/// Turns can be timed here: not in a model, which has no time, nor where the standard library has no clock.
pub(crate) const CLOCK: bool =
    !cfg!(any(volt_loom, all(target_family = "wasm", target_os = "unknown")));
/// What is learnt is kept in so many places.
const PLACES: usize = 8;

/// What a thread has learnt of a lock, or of a channel.
#[derive(Debug)]
pub(crate) struct Lesson {
    /// Opportunities to let pass now.
    pass: Cell<u32>,
    /// How many to let pass when `turns` are used up.
    rest: Cell<u32>,
    /// Turns that may still be in vain.
    turns: Cell<u16>,
    /// How many these are after one that paid.
    most: Cell<u16>,
    handed: Cell<u8>,
    /// Turns until the next one that is timed.
    untimed: Cell<u8>,
    /// The wait whose turn is timed, and when that began.
    timed: Cell<Option<(usize, Instant)>>,
    /// How long the last one took that was timed.
    turn_ns: Cell<u32>,
    /// What was wanted last, and the task that wanted it.
    last: Cell<(usize, usize)>,
    /// How often in a row that was another task than the time before, up to [`CROWD`].
    others: Cell<u8>,
}

impl Lesson {
    const fn new() -> Self {
        Self {
            pass: Cell::new(0),
            rest: Cell::new(SHORTEST),
            turns: Cell::new(FEWEST),
            most: Cell::new(FEWEST),
            handed: Cell::new(0),
            untimed: Cell::new(0),
            timed: Cell::new(None),
            turn_ns: Cell::new(0),
            last: Cell::new((0, 0)),
            others: Cell::new(0),
        }
    }

    /// `task` wants what is at `address`. True if it is one of a crowd of this thread.
    pub(crate) fn in_a_crowd(&self, address: usize, task: usize) -> bool {
        let (wanted, by) = self.last.replace((address, task));
        let others = if wanted == address && by != task { self.others.get() + 1 } else { 0 };
        self.others.set(others.min(CROWD));
        others >= CROWD
    }

    /// True if this is an opportunity for a turn of the future at the address `wait`, which is in vain as
    /// far as is known, and not one to let pass. It has `given` some.
    pub(crate) fn give(&self, wait: usize, given: u8) -> bool {
        self.came_back(wait, given > 0);
        let pass = self.pass.get();
        if pass > 0 {
            self.pass.set(pass - 1);
            return false;
        }
        if self.is_long() {
            // One, to see. Should the task not come back here, the next one comes after a rest as well.
            self.time(wait);
            self.pass.set(self.rest.get());
            return true;
        }
        if u32::from(given) * self.turn_ns.get() > DELAY_NS {
            return false;
        }
        match self.untimed.get() {
            0 => self.time(wait),
            untimed => self.untimed.set(untimed - 1),
        }
        let left = self.turns.get() - 1;
        self.turns.set(left);
        if left == 0 {
            let most = (self.most.get() * LONGER).min(MOST);
            self.most.set(most);
            self.turns.set(most);
            self.take_a_rest();
        }
        true
    }

    fn take_a_rest(&self) {
        let rest = self.rest.get();
        self.pass.set(rest);
        self.rest.set((rest * SLOWER).min(LONGEST));
    }

    fn is_long(&self) -> bool {
        self.turn_ns.get() > DELAY_NS
    }

    /// The turn of `wait` that begins is timed.
    fn time(&self, wait: usize) {
        self.untimed.set(TIMED - 1);
        if CLOCK {
            self.timed.set(Some((wait, now())));
        }
    }

    /// The future at `wait` is polled, `after` a turn or for another reason.
    fn came_back(&self, wait: usize, after: bool) {
        let Some((timed, began)) = self.timed.get() else { return };
        if timed == wait {
            self.timed.set(None);
            if after {
                self.took(u32::try_from(began.elapsed().as_nanos()).unwrap_or(u32::MAX));
            }
        }
    }

    /// The turn that was timed took so long.
    fn took(&self, ns: u32) {
        let was_long = self.is_long();
        self.turn_ns.set(ns);
        if self.is_long() {
            self.take_a_rest();
        } else if was_long {
            self.pass.set(0);
        }
    }

    /// A turn of `wait` was not in vain.
    pub(crate) fn paid(&self, wait: usize) {
        self.came_back(wait, true);
        if self.is_long() {
            return;
        }
        let most = self.most.get();
        self.turns.set(most);
        self.pass.set(0);
        let shortest = SHORTEST / u32::from(FEWEST) * u32::from(most);
        self.rest.set((self.rest.get() / 2).max(shortest));
    }

    /// How often this thread has handed something over. It wraps.
    pub(crate) fn handed(&self) -> u8 {
        self.handed.get()
    }

    pub(crate) fn hand_over(&self) {
        self.handed.set(self.handed.get().wrapping_add(1));
    }
}

/// What tells the tasks of a thread apart. Futures of one task, polled with one waker, are one.
pub(crate) fn task(cx: &Context<'_>) -> usize {
    cx.waker().data().addr()
}

std::thread_local! {
    static LESSONS: [Lesson; PLACES] = const { [const { Lesson::new() }; PLACES] };
}

/// Where the lesson of what is at `address` is kept: by the high bits of a product, as in
/// Knuth, The Art of Computer Programming, volume 3, section 6.4.
#[inline]
fn place(address: usize) -> usize {
    let words = (address / size_of::<usize>()) as u32;
    (words.wrapping_mul(0x9E37_79B1) >> (u32::BITS - PLACES.ilog2())) as usize
}

/// What this thread has learnt of what is at `address`.
pub(crate) fn with_lesson<R>(address: usize, f: impl FnOnce(&Lesson) -> R) -> R {
    LESSONS.with(|lessons| f(&lessons[place(address)]))
}

/// Forgets what this thread has learnt, but for how many turns may be in vain.
#[cfg(all(test, not(volt_loom)))]
pub(crate) fn know_a_crowd_of(most: u16) {
    LESSONS.with(|lessons| {
        for lesson in lessons {
            lesson.most.set(most);
            lesson.rest.set(0);
            lesson.turn_ns.set(0);
            lesson.others.set(0);
            // A test has only the turns that it gives, however busy the machine is.
            lesson.timed.set(None);
            lesson.untimed.set(u8::MAX);
            lesson.paid(0);
        }
    });
}

/// Forgets what this thread has learnt.
#[cfg(all(test, not(volt_loom)))]
pub(crate) fn forget() {
    know_a_crowd_of(FEWEST);
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::{
        CROWD, DELAY_NS, FEWEST, LONGER, LONGEST, Lesson, MOST, PLACES, SHORTEST, SLOWER, TIMED,
        place,
    };

    /// How many turns are given at the next `opportunities`, if none pays.
    fn in_vain(lesson: &Lesson, opportunities: u32) -> u32 {
        (0..opportunities).filter(|_| lesson.give(0, 0)).count() as u32
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
            lesson.paid(0);
            most = (most * u32::from(LONGER)).min(u32::from(MOST));
        }
        for _ in 0..100 {
            assert_eq!(in_vain(&lesson, most), most);
            lesson.paid(0);
        }
    }

    #[test]
    fn a_turn_that_paid_undoes_one_doubling_of_the_rest_and_leaves_turns_one_in_eight() {
        let lesson = Lesson::new();
        while lesson.rest.get() < LONGEST {
            in_vain(&lesson, 1);
        }
        lesson.paid(0);
        let most = u32::from(MOST);
        assert_eq!(in_vain(&lesson, most + LONGEST / 2), most);
        (0..30).for_each(|_| lesson.paid(0));
        assert_eq!(in_vain(&lesson, most + 8 * most), most);
    }

    #[test]
    fn turns_that_take_long_become_rare_whether_they_pay_or_not() {
        let lesson = Lesson::new();
        assert!(lesson.give(0, 0));
        lesson.took(DELAY_NS + 1);
        let mut rest = SHORTEST;
        for _ in 0..5 {
            lesson.paid(1);
            assert_eq!(in_vain(&lesson, rest), 0);
            rest *= SLOWER;
            lesson.paid(1);
            assert_eq!(in_vain(&lesson, 1), 1, "one, to see");
            lesson.took(DELAY_NS + 1);
        }
        assert_eq!(in_vain(&lesson, rest), 0);
        rest *= SLOWER;
        assert_eq!(in_vain(&lesson, 1), 1, "one, to see");
        // It never came back: so the next one is after a rest as well.
        assert_eq!(in_vain(&lesson, rest), 0);
        assert_eq!(in_vain(&lesson, 1), 1, "one, to see");
        lesson.took(DELAY_NS);
        assert_eq!(in_vain(&lesson, 4), 4);
        lesson.paid(1);
        assert_eq!(in_vain(&lesson, 4), 4);
    }

    #[test]
    fn a_wait_has_the_turns_that_fit_into_the_delay() {
        let lesson = Lesson::new();
        let turns = |ns: u32| {
            lesson.took(ns);
            lesson.paid(1);
            (0..8).take_while(|given| lesson.give(1, *given)).count()
        };
        lesson.untimed.set(TIMED);
        assert_eq!(turns(DELAY_NS), 2);
        assert_eq!(turns(DELAY_NS / 4), 5);
        assert_eq!(turns(1_000), 8);
    }

    /// One in [`TIMED`]; and only if it ends on this thread.
    #[test]
    fn turns_are_timed_until_the_task_comes_back() {
        let lesson = Lesson::new();
        for _ in 0..3 {
            assert!(lesson.give(7, 0));
            assert_eq!(lesson.timed.get().map(|timed| timed.0), Some(7));
            assert!(lesson.give(8, 0));
            lesson.paid(8);
            assert!(lesson.timed.get().is_some(), "that was another task");
            std::thread::sleep(std::time::Duration::from_micros(20));
            lesson.paid(7);
            assert!(lesson.timed.get().is_none());
            assert!(lesson.turn_ns.get() >= 20_000);
            lesson.took(1);
            lesson.paid(7);
            for _ in 2..TIMED {
                assert!(lesson.give(7, 0) && lesson.timed.get().is_none());
                lesson.paid(7);
            }
        }
        assert!(lesson.give(7, 0) && lesson.timed.get().is_some());
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(lesson.give(7, 0), "a wait that begins anew: nobody knows how long the turn was");
        assert_eq!(lesson.turn_ns.get(), 1);
    }

    #[test]
    fn a_crowd_is_many_in_turn_for_the_same() {
        let lesson = Lesson::new();
        let mut tasks = (1..=3).cycle();
        let mut wants = |address| lesson.in_a_crowd(address, tasks.next().unwrap());
        for _ in 0..3 {
            assert!((0..CROWD).all(|_| !wants(1)));
            assert!((0..100).all(|_| wants(1)));
            assert!(!wants(2), "another channel in the same place");
        }
        assert!((0..100).all(|_| !lesson.in_a_crowd(1, 4)), "one alone is no crowd");
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
