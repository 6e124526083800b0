//! How many turns a thread gives others before it waits, and what it has learnt of that.
//!
//! A task of a runtime with a budget that would have to wait for something, a permit or a place in a
//! channel, can give the others a turn instead: it wakes itself, and returns. If those who have what it
//! wants, or make it, run on this very thread, it is there by the time the task is polled again, and a
//! place in a queue, a wake-up and a search are saved.
//!
//! Turns do not pay if that takes longer: permits that are held across an `.await`, a channel whose
//! other side is slow, or elsewhere. So each thread learns: after some turns of which none paid, it lets
//! opportunities pass, [`SLOWER`] times as many each time. A crowd needs many turns before the first one
//! pays, so it also gives [`LONGER`] times as many each time, up to [`MOST`]: in vain are one in eight
//! at first, and fewer each time. A turn that paid ends the rest and undoes a doubling of it; how many
//! turns a crowd may need stays known. What a thread has learnt of a lock is found by the lock's address,
//! so that a lock held for long does not speak for one held for nanoseconds. Locks may share a place:
//! then they share what is learnt, and nothing else.
//!
//! Rejected:
//! * What was learnt in the lock itself: a word more for each, and a write to a contended line.
#![forbid(unsafe_code)]

use std::cell::Cell;

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

    /// True if this is an opportunity for a turn, which is in vain as far as is known, and not one to
    /// let pass.
    pub(crate) fn give(&self) -> bool {
        let pass = self.pass.get();
        if pass > 0 {
            self.pass.set(pass - 1);
            return false;
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
        true
    }

    /// A turn was not in vain.
    pub(crate) fn paid(&self) {
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
            lesson.paid();
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
    use super::{FEWEST, LONGER, LONGEST, Lesson, MOST, PLACES, SHORTEST, SLOWER, place};

    /// How many turns are given at the next `opportunities`, if none pays.
    fn in_vain(lesson: &Lesson, opportunities: u32) -> u32 {
        (0..opportunities).filter(|_| lesson.give()).count() as u32
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
