//! How many turns a thread gives others before it waits, and what it has learnt of that.
//!
//! A task that would have to wait for something, a permit or a place in a channel, can give the others a
//! turn instead: it wakes itself, and returns. If those who have what it wants, or make it, run on this
//! very thread, it is there by the time the task is polled again, and a place in a queue, a wake-up and a
//! search are saved. For permits only tasks that have a budget do so (`permits/convoy.rs`). For a channel
//! (`channel/waiter.rs`) they do if their runtime allows it, and on any other executor the tasks of a
//! crowd: if [`CROWD`](crowd::CROWD) times in a row somebody wanted the channel on this thread, and it was never the one
//! that had wanted it before. A task that waits alone, or two that answer each other, find their wake-up
//! the faster way; and who polls a few futures by hand finds each of them in its queue.
//!
//! Turns do not pay if that takes longer: permits that are held across an `.await`, a channel whose
//! other side is slow, or elsewhere. So each thread learns: after some turns of which none paid, it lets
//! opportunities pass, [`SLOWER`](rest::SLOWER) times as many each time. A crowd needs many turns before the first one
//! pays, so it also gives [`LONGER`](rest::LONGER) times as many each time, up to [`MOST`](rest::MOST): in vain are one in eight
//! at first, and fewer each time. A turn that paid is worth [`WORTH`](rest::WORTH) in vain, and undoes a
//! doubling of the rest; how many turns a crowd may need stays known. What a thread has learnt of a lock is found by the lock's address,
//! so that a lock held for long does not speak for one held for nanoseconds. Locks and channels may share
//! a place: then they share what is learnt, and nothing else.
//!
//! A turn is as long as the polls of all who are runnable on the thread: behind thousands of tasks, or one
//! that computes, a turn that pays still costs more than it saves. So they are timed now and then: a wait has as
//! many turns as fit into [`DELAY_NS`](pace::DELAY_NS); if not even one does, opportunities are let pass as above, whether
//! turns pay or not, with one turn between two rests to see if it still takes so long.
//!
//! | Part    | What a thread learns                                        |
//! |---------|-------------------------------------------------------------|
//! | `rest`  | if turns pay, and how many it takes                          |
//! | `pace`  | how long one takes                                          |
//! | `round` | how many give them                                          |
//! | `crowd` | if several tasks want the same                              |
//!
//! The only receiver of a channel gives turns for what other threads send (`channel/only_turns.rs`); what is
//! learnt of these is kept apart, and a turn is long if it takes longer than one of a thread that has
//! nothing else to do: behind its own senders, the receiver would keep them all waiting.
//!
//! Rejected:
//! * All turns given again after one that paid: with 64 senders of one thread that has no LIFO slot, and 8
//!   places, one turn in 64 paid, and a message took 207 ns instead of 75 (Tokio 108).
//! * What was learnt in the lock itself: a word more for each, and a write to a contended line.
//! * Turns on any executor for whoever waits for a channel: two tasks on two threads of Tokio that answer
//!   each other stay apart, where a wake-up brings them together (64 pairs: 133 ns instead of 93).
#![forbid(unsafe_code)]

mod crowd;
mod pace;
mod rest;
mod round;
#[cfg(all(test, not(volt_loom)))]
mod tests;

use std::cell::Cell;
use std::task::Context;

use crowd::Crowd;
use pace::Pace;
use rest::Rest;
use round::Round;

#[cfg(all(test, not(volt_loom)))]
pub(crate) use crowd::CROWD;
pub(crate) use pace::CLOCK;
#[cfg(all(test, not(volt_loom)))]
use rest::FEWEST;
#[cfg(all(test, not(volt_loom)))]
pub(crate) use rest::MOST;

/// What is learnt is kept in so many places.
const PLACES: usize = 8;

/// What a thread has learnt of a lock, or of a channel.
#[derive(Debug)]
pub(crate) struct Lesson {
    rest: Rest,
    pace: Pace,
    round: Round,
    crowd: Crowd,
    handed: Cell<u8>,
}

impl Lesson {
    #[cfg(all(test, not(volt_loom)))]
    const fn new() -> Self {
        Self::within(pace::DELAY_NS)
    }

    /// A turn is to take so long at most.
    const fn within(limit_ns: u32) -> Self {
        Self {
            rest: Rest::new(),
            pace: Pace::new(limit_ns),
            round: Round::new(),
            crowd: Crowd::new(),
            handed: Cell::new(0),
        }
    }

    /// `task` wants what is at `address`. True if it is one of a crowd of this thread.
    pub(crate) fn in_a_crowd(&self, address: usize, task: usize) -> bool {
        self.crowd.wants(address, task)
    }

    /// True if this is an opportunity for a turn of the future at the address `wait`, which is in vain as
    /// far as is known, and not one to let pass. It has `given` some.
    pub(crate) fn give(&self, wait: usize, given: u8) -> bool {
        self.came_back(wait, given > 0);
        if self.rest.lets_pass() {
            return false;
        }
        if self.pace.is_long() {
            // One, to see. Should the task not come back here, the next one comes after a rest as well.
            self.pace.time(wait);
            self.rest.again();
            self.round.gives(wait);
            return true;
        }
        if !self.pace.has_time(given) {
            return false;
        }
        self.pace.begins(wait);
        self.rest.gave();
        self.round.gives(wait);
        true
    }

    /// True if many others give turns on this thread as well.
    pub(crate) fn many_give(&self) -> bool {
        self.round.was_of_many()
    }

    /// The future at `wait` is polled, `after` a turn or for another reason.
    pub(crate) fn came_back(&self, wait: usize, after: bool) {
        if let Some(turn) = self.pace.ends(wait) {
            if after {
                self.took(turn);
            }
        }
    }

    /// The turn that was timed took so long.
    fn took(&self, ns: u32) {
        let was_long = self.pace.is_long();
        let this_is_long = self.pace.took(ns);
        if this_is_long && self.pace.is_long() {
            self.rest.take();
        } else if was_long {
            // They may be short again: the next one will tell.
            self.rest.end();
        }
    }

    /// A turn of `wait` was not in vain.
    pub(crate) fn paid(&self, wait: usize) {
        self.came_back(wait, true);
        if !self.pace.is_long() {
            self.rest.paid();
        }
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

/// One for each place.
type Lessons = [Lesson; PLACES];

std::thread_local! {
    static LESSONS: Lessons = const { [const { Lesson::within(pace::DELAY_NS) }; PLACES] };
    /// Of turns for other threads.
    static BRIEF: Lessons = const { [const { Lesson::within(pace::BRIEF_NS) }; PLACES] };
}

/// A number below `most`, a power of two, for an address: by the high bits of a product, as in
/// Knuth, The Art of Computer Programming, volume 3, section 6.4.
#[inline]
fn hash(address: usize, most: u32) -> u32 {
    let words = (address / size_of::<usize>()) as u32;
    words.wrapping_mul(0x9E37_79B1) >> (u32::BITS - most.ilog2())
}

/// Where the lesson of what is at `address` is kept.
#[inline]
fn place(address: usize) -> usize {
    hash(address, PLACES as u32) as usize
}

/// What this thread has learnt of what is at `address`.
pub(crate) fn with_lesson<R>(address: usize, f: impl FnOnce(&Lesson) -> R) -> R {
    LESSONS.with(|lessons| f(&lessons[place(address)]))
}

/// What this thread has learnt of turns for other threads, which have what is at `address`.
pub(crate) fn with_brief_lesson<R>(address: usize, f: impl FnOnce(&Lesson) -> R) -> R {
    BRIEF.with(|lessons| f(&lessons[place(address)]))
}

/// Forgets what this thread has learnt, but for how many turns may be in vain.
#[cfg(all(test, not(volt_loom)))]
pub(crate) fn know_a_crowd_of(most: u16) {
    let know = |lessons: &Lessons| {
        for lesson in lessons {
            lesson.rest.know(most);
            // A test has only the turns that it gives, however busy the machine is.
            lesson.pace.never();
            lesson.round.forget();
            lesson.crowd.forget();
        }
    };
    LESSONS.with(know);
    BRIEF.with(know);
}

/// Turns are timed again, after [`know_a_crowd_of`].
#[cfg(all(test, not(volt_loom)))]
pub(crate) fn time_turns() {
    BRIEF.with(|lessons| lessons.iter().for_each(|lesson| lesson.pace.again()));
}

/// Forgets what this thread has learnt.
#[cfg(all(test, not(volt_loom)))]
pub(crate) fn forget() {
    know_a_crowd_of(FEWEST);
}
