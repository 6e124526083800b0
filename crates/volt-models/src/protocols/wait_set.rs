//! Waiters for an event: `volt_sync::wait_set`, with `notify` as its owner. Loom's models have two threads
//! each; here are three and four.
//!
//! As built: one word holds a generation, a permit, whether somebody is queued, and the lock. A word that is
//! neither locked nor queued is changed by one exchange; all else happens under the lock. `notify_waiters`
//! ends the generation and makes all that are queued stale; it wakes them in rounds (of one, here). A waiter
//! that was notified alone and is dropped passes the notification on.

use super::list;
use crate::explorer::{BOTH, Flow, Label, Machine, Memory, Register, ThreadBuilder, Turn, Word};

const LOCKED: i32 = 1;
const QUEUED: i32 = 2;
const PERMIT: i32 = 4;
const GENERATION: i32 = 8;

/// A waiter's status.
const WAITING: i32 = 1;
const ONE: i32 = 2;
const ALL: i32 = 3;

const MOST_WAITERS: usize = 3;

/// What differs from the protocol as it is built.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    AsBuilt,
    /// A dropped waiter keeps the notification that was meant for one.
    KeepsNotification,
    /// A waiter queues without another look at the word.
    QueuesBlindly,
    /// A notification becomes a permit by an exchange although somebody is queued.
    IgnoresQueued,
    /// `notify_waiters` wakes one round.
    OneRound,
    /// A waiter that is polled again believes the generation, and stays in the list.
    StaysStale,
}

#[derive(Clone, Copy)]
struct Set {
    word: Word,
    /// Waiters (`list`).
    live: Word,
    stale: Word,
    status: [Word; MOST_WAITERS],
    woken: [Word; MOST_WAITERS],
    gone: [Word; MOST_WAITERS],
    /// Notifications for one that a waiter has returned with.
    used: Word,
    variant: Variant,
}

fn is_idle(word: i32) -> bool {
    word & (LOCKED | QUEUED) == 0
}

impl Set {
    fn new(machine: &mut Machine, variant: Variant) -> Self {
        Self {
            word: machine.word("word", 0),
            live: machine.word("live", 0),
            stale: machine.word("stale", 0),
            status: machine.words("status", 0),
            woken: machine.words("woken", 0),
            gone: machine.words("gone", 0),
            used: machine.word("used", 0),
            variant,
        }
    }

    /// The lock; what the word is besides goes to `word`.
    fn lock(self, thread: &mut ThreadBuilder<'_>, word: Register) {
        thread.step("lock", move |turn| {
            let free = |word: i32| (word & LOCKED == 0).then_some(word | LOCKED);
            let before = turn.update(self.word, free);
            turn.set(word, before);
            if before & LOCKED == 0 { Flow::Next } else { Flow::Wait }
        });
    }

    fn unlock(self, thread: &mut ThreadBuilder<'_>, word: Register) {
        thread.step("unlock", move |turn| {
            let queued = if turn.peek(self.live) == 0 { 0 } else { QUEUED };
            let value = turn.reg(word) & !QUEUED | queued;
            turn.set(word, 0);
            turn.then(|turn| turn.store(self.word, value))
        });
    }

    /// `Waiter::complete`: the last access to the waiter.
    fn complete(self, turn: &mut Turn<'_>, waiter: i32, status: i32) -> Flow {
        let index = waiter as usize - 1;
        if turn.peek(self.gone[index]) == 1 {
            return Flow::Fail(format!("use after free: waiter {index}"));
        }
        turn.then(|turn| turn.store(self.status[index], status))
    }

    /// Wakes whom the register names, if anybody.
    fn wake(self, thread: &mut ThreadBuilder<'_>, target: Register) {
        thread.step("wake", move |turn| {
            let waiter = turn.reg(target);
            turn.set(target, 0);
            if waiter == 0 {
                return Flow::Next;
            }
            turn.then(|turn| turn.swap(self.woken[waiter as usize - 1], 1))
        });
    }

    /// `Notify::notify`.
    fn notify(self, thread: &mut ThreadBuilder<'_>) {
        let (word, target) = (thread.register(), thread.register());
        let (locked, unlock, out) = (thread.label(), thread.label(), thread.label());
        thread.step("notify: load the word", move |turn| {
            let seen = turn.load(self.word);
            turn.set(word, seen);
            Flow::Next
        });
        let again = thread.here();
        thread.step("notify: idle? set PERMIT", move |turn| {
            let seen = turn.reg(word);
            let bypass = self.variant == Variant::IgnoresQueued && seen & LOCKED == 0;
            if !is_idle(seen) && !bypass {
                return Flow::To(locked);
            }
            match turn.exchange(self.word, seen, seen | PERMIT) {
                Ok(()) => {
                    turn.set(word, 0);
                    Flow::To(out)
                }
                Err(actual) => {
                    turn.set(word, actual);
                    Flow::To(again)
                }
            }
        });
        thread.place(locked);
        self.lock(thread, word);
        thread.step("notify: complete the oldest, or set PERMIT", move |turn| {
            let (waiter, rest) = list::pop(turn.peek(self.live));
            if waiter == 0 {
                turn.set(word, turn.reg(word) | PERMIT);
                return Flow::To(unlock);
            }
            turn.poke(self.live, rest);
            turn.set(target, waiter);
            self.complete(turn, waiter, ONE)
        });
        thread.place(unlock);
        self.unlock(thread, word);
        self.wake(thread, target);
        thread.place(out);
        thread.step("notify: done", |_| Flow::Next);
    }

    /// `Notify::notify_waiters`.
    fn notify_waiters(self, thread: &mut ThreadBuilder<'_>) {
        let (word, target, more) = (thread.register(), thread.register(), thread.register());
        let (locked, out) = (thread.label(), thread.label());
        thread.step("all: load the word", move |turn| {
            let seen = turn.load(self.word);
            turn.set(word, seen);
            Flow::Next
        });
        let again = thread.here();
        thread.step("all: idle? the next generation", move |turn| {
            let seen = turn.reg(word);
            if !is_idle(seen) {
                return Flow::To(locked);
            }
            match turn.exchange(self.word, seen, seen + GENERATION) {
                Ok(()) => Flow::To(out),
                Err(actual) => {
                    turn.set(word, actual);
                    Flow::To(again)
                }
            }
        });
        thread.place(locked);
        self.lock(thread, word);
        thread.step("all: the next generation; all are stale", move |turn| {
            turn.set(word, turn.reg(word) + GENERATION);
            let mut live = turn.peek(self.live);
            while live != 0 {
                let (first, rest) = list::pop(live);
                turn.poke(self.stale, list::push(turn.peek(self.stale), first));
                live = rest;
            }
            turn.poke(self.live, 0);
            Flow::Next
        });
        let round = thread.here();
        let unlock = thread.label();
        thread.step("all: complete one that is stale", move |turn| {
            let (waiter, rest) = list::pop(turn.peek(self.stale));
            turn.set(more, i32::from(rest != 0));
            if waiter == 0 {
                return Flow::To(unlock);
            }
            turn.poke(self.stale, rest);
            turn.set(target, waiter);
            self.complete(turn, waiter, ALL)
        });
        thread.place(unlock);
        self.unlock(thread, word);
        self.wake(thread, target);
        thread.step("all: more?", move |turn| {
            let more = turn.reg(more) == 1 && self.variant != Variant::OneRound;
            if more { Flow::Next } else { Flow::To(out) }
        });
        self.lock(thread, word);
        thread.step("all: the next round", move |_| Flow::To(round));
        thread.place(out);
        thread.step("all: done", |_| Flow::End);
    }

    /// One `Notified` until it completes. `drops`: it may be dropped, or polled for nothing, while it sleeps.
    fn waiter(self, machine: &mut Machine, index: usize, drops: bool) {
        let me = index as i32 + 1;
        let mut thread = machine.thread(format!("waiter {index}"));
        let (generation, word) = (thread.register(), thread.register());
        let [enqueue, asleep, poll, drop, took, unlock, done, out] =
            std::array::from_fn(|_| thread.label());
        thread.step("notified(): load the word", move |turn| {
            let seen = turn.load(self.word);
            turn.set(generation, seen / GENERATION);
            Flow::Next
        });
        thread.step("poll: load the word", move |turn| {
            let seen = turn.load(self.word);
            turn.set(word, seen);
            Flow::Next
        });
        let again = thread.here();
        thread.step("poll: take a permit, or queue", move |turn| {
            let seen = turn.reg(word);
            if seen / GENERATION != turn.reg(generation) {
                return Flow::To(out);
            }
            if seen & PERMIT == 0 || !is_idle(seen) {
                return Flow::To(enqueue);
            }
            match turn.exchange(self.word, seen, seen & !PERMIT) {
                Ok(()) => Flow::To(took),
                Err(actual) => {
                    turn.set(word, actual);
                    Flow::To(again)
                }
            }
        });
        thread.place(enqueue);
        self.lock(&mut thread, word);
        let queue = thread.register();
        thread.step("enqueue: look, and queue", move |turn| {
            let seen = turn.reg(word);
            if self.variant != Variant::QueuesBlindly {
                if seen / GENERATION != turn.reg(generation) {
                    return Flow::Next;
                }
                if seen & PERMIT != 0 {
                    turn.set(word, seen & !PERMIT);
                    turn.bump(self.used, 1);
                    return Flow::Next;
                }
            }
            turn.poke(self.live, list::push(turn.peek(self.live), me));
            turn.set(queue, 1);
            turn.then(|turn| turn.store(self.status[index], WAITING))
        });
        self.unlock(&mut thread, word);
        thread.step("enqueue: sleep, or return", move |turn| {
            let queued = turn.reg(queue) == 1;
            turn.set(queue, 0);
            Flow::To(if queued { asleep } else { out })
        });
        thread.place(asleep);
        thread.choice("asleep", if drops { 3 } else { 1 }, move |turn| match turn.way() {
            0 if turn.peek(self.woken[index]) == 0 => Flow::Wait,
            0 | 1 => Flow::To(poll),
            _ => Flow::To(drop),
        });
        thread.place(poll);
        self.poll_linked(&mut thread, index, [generation, word], [asleep, took, done]);
        thread.place(drop);
        self.cancel(&mut thread, index, [generation, word], [unlock, done]);
        thread.place(took);
        thread.step("returns with a notification for one", move |turn| {
            turn.bump(self.used, 1);
            Flow::Next
        });
        thread.place(done);
        thread.step("freed", move |turn| turn.then(|turn| turn.poke(self.gone[index], 1)));
        thread.place(out);
        thread.step("end", |_| Flow::End);
    }

    /// `Entry::poll`.
    fn poll_linked(
        self,
        thread: &mut ThreadBuilder<'_>,
        index: usize,
        [generation, word]: [Register; 2],
        [asleep, took, done]: [Label; 3],
    ) {
        let me = index as i32 + 1;
        let ended = thread.register();
        let by_status = move |status| match status {
            ONE => Flow::To(took),
            ALL => Flow::To(done),
            _ => Flow::Next,
        };
        thread.step("poll: load the status", move |turn| by_status(turn.load(self.status[index])));
        thread.step("poll: load the word; stale?", move |turn| {
            let seen = turn.load(self.word);
            if seen / GENERATION == turn.reg(generation) { Flow::To(asleep) } else { Flow::Next }
        });
        self.lock(thread, word);
        thread.step("poll: leave the stale ones", move |turn| {
            let status = turn.load(self.status[index]);
            if status == WAITING && self.variant != Variant::StaysStale {
                turn.poke(self.stale, list::remove(turn.peek(self.stale), me));
            }
            turn.set(ended, if status == WAITING { ALL } else { status });
            Flow::Next
        });
        self.unlock(thread, word);
        thread.step("poll: the outcome", move |turn| {
            let status = turn.reg(ended);
            turn.set(ended, 0);
            by_status(status)
        });
    }

    /// `Notify::cancel` and `Entry::cancel`.
    fn cancel(
        self,
        thread: &mut ThreadBuilder<'_>,
        index: usize,
        [generation, word]: [Register; 2],
        [unlock, done]: [Label; 2],
    ) {
        let me = index as i32 + 1;
        let (ended, pass_on) = (thread.register(), thread.label());
        thread.step("drop: load the status", move |turn| {
            let status = turn.load(self.status[index]);
            turn.set(ended, status);
            Flow::To(if status == WAITING { unlock } else { pass_on })
        });
        thread.place(unlock);
        self.lock(thread, word);
        thread.step("drop: leave the list", move |turn| {
            let status = turn.load(self.status[index]);
            turn.set(ended, status);
            if status == WAITING {
                let is_live = turn.reg(word) / GENERATION == turn.reg(generation);
                let list = if is_live { self.live } else { self.stale };
                turn.poke(list, list::remove(turn.peek(list), me));
            }
            Flow::Next
        });
        self.unlock(thread, word);
        thread.place(pass_on);
        thread.step("drop: was it for one?", move |turn| {
            let status = turn.reg(ended);
            turn.set(ended, 0);
            turn.poke(self.gone[index], 1);
            let keep = self.variant == Variant::KeepsNotification;
            if status == ONE && !keep { Flow::Next } else { Flow::To(done) }
        });
        self.notify(thread);
        thread.step("drop: passed on", move |_| Flow::To(done));
    }
}

/// So many waiters, of which the first may be dropped, against calls of `notify_one` and of
/// `notify_waiters`, each from a thread of its own.
fn machine(variant: Variant, waiters: usize, drops: bool, ones: usize, alls: usize) -> Machine {
    let mut machine = Machine::new();
    let set = Set::new(&mut machine, variant);
    for index in 0..waiters {
        set.waiter(&mut machine, index, drops && index == 0);
    }
    for number in 0..ones {
        let mut thread = machine.thread(format!("notify_one {number}"));
        set.notify(&mut thread);
        thread.step("end", |_| Flow::End);
    }
    for number in 0..alls {
        set.notify_waiters(&mut machine.thread(format!("notify_waiters {number}")));
    }
    machine.at_rest(move |view| {
        let (word, asleep) = (view.get(set.word), view.waiting());
        if asleep.iter().any(|name| !name.starts_with("waiter")) || word & LOCKED != 0 {
            return Err(format!("{asleep:?} are stuck"));
        }
        if !asleep.is_empty() && word & PERMIT != 0 {
            return Err(format!("lost wake-up: {asleep:?} sleep beside a permit"));
        }
        let count = list::len(view.get(set.live));
        if count as usize != asleep.len() || view.get(set.stale) != 0 {
            return Err(format!("lost wake-up: {asleep:?} sleep, {count} are queued"));
        }
        let (used, permit) = (view.get(set.used), i32::from(word & PERMIT != 0));
        let ones = ones as i32;
        // Two permits at a time are one.
        if used + permit > ones || (used + permit == 0 && ones > 0) {
            return Err(format!("{used} used, {permit} left of {ones} notifications"));
        }
        Ok(())
    });
    machine
}

const SC: Memory = Memory::Sequential;

#[test]
fn each_notification_for_one_ends_one_wait() {
    for memory in BOTH {
        machine(Variant::AsBuilt, 2, true, 1, 0).explore(memory).assert_holds();
        machine(Variant::AsBuilt, 2, false, 2, 0).explore(memory).assert_holds();
    }
    machine(Variant::AsBuilt, 2, true, 2, 0).explore(SC).assert_holds();
}

#[test]
fn a_notification_for_all_ends_every_wait_that_was_there() {
    for memory in BOTH {
        machine(Variant::AsBuilt, 2, true, 0, 1).explore(memory).assert_holds();
        machine(Variant::AsBuilt, 2, true, 1, 1).explore(memory).assert_holds();
    }
    machine(Variant::AsBuilt, 3, true, 0, 1).explore(SC).assert_holds();
    machine(Variant::AsBuilt, 2, true, 0, 2).explore(SC).assert_holds();
}

#[test]
fn weak_a_dropped_waiter_keeps_a_notification() {
    machine(Variant::KeepsNotification, 2, true, 1, 0).explore(SC).assert_fails("0 used, 0 left");
}

#[test]
fn weak_a_waiter_that_queues_blindly_sleeps_beside_a_permit() {
    machine(Variant::QueuesBlindly, 1, false, 1, 0).explore(SC).assert_fails("lost wake-up");
}

#[test]
fn weak_a_permit_is_left_beside_a_queue() {
    machine(Variant::IgnoresQueued, 1, false, 1, 0).explore(SC).assert_fails("beside a permit");
}

#[test]
fn weak_the_second_round_is_never_woken() {
    machine(Variant::OneRound, 2, false, 0, 1).explore(SC).assert_fails("lost wake-up");
}

#[test]
fn weak_a_waiter_that_has_ended_stays_in_the_list() {
    machine(Variant::StaysStale, 2, true, 0, 1).explore(SC).assert_fails("use after free");
}
