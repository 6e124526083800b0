//! The word of semaphores and locks: `volt_sync::permits`.
//!
//! As built: `[available][QUEUED][CLOSED][LOCKED]` in one word, and a list under LOCKED. A release
//! deposits; if somebody is queued and nobody holds the lock, it takes the lock in the same exchange
//! and serves. Whoever unlocks does so by an exchange that fails if permits have come meanwhile.

use super::list;
use crate::explorer::{BOTH, Flow, Label, Machine, Memory, ThreadBuilder, Turn, Word};

const LOCKED: i32 = 1;
const QUEUED: i32 = 2;
const ONE: i32 = 8;

const MOST: usize = 3;

const WAITING: i32 = 1;
const GRANTED: i32 = 2;

/// What differs from the protocol as it is built.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    AsBuilt,
    /// A release to a locked word only deposits, and the unlock is a plain write (finding S1).
    UnlocksBlindly,
    /// A newcomer takes permits although others are queued (finding S2).
    Barges,
    /// A granted waiter that is dropped keeps its permits (finding S4).
    KeepsGrant,
    /// The waiter is completed after it was unlinked and the word unlocked (finding S3).
    CompletesAfterUnlock,
    /// Looks for permits, then queues without a further look (finding S1).
    QueuesWithoutLook,
}

#[derive(Clone, Copy)]
struct Permits {
    word: Word,
    /// The queued waiters, two bits each, the oldest lowest.
    list: Word,
    status: [Word; MOST],
    gone: [Word; MOST],
    /// When each waiter queued, and was served: for the order.
    queued_at: [Word; MOST],
    clock: Word,
    /// Permits that acquirers hold.
    held: Word,
    overtaken: Word,
    /// Releasers that have added permits and are about to serve.
    on_the_way: Word,
    total: i32,
    variant: Variant,
    needs: [i32; MOST],
}

const fn available(word: i32) -> i32 {
    word / ONE
}

impl Permits {
    fn new(machine: &mut Machine, variant: Variant, total: i32, needs: &[i32]) -> Self {
        Self {
            word: machine.word("word", total * ONE),
            list: machine.word("list", 0),
            status: machine.words("status", 0),
            gone: machine.words("gone", 0),
            queued_at: machine.words("queued at", 0),
            clock: machine.word("clock", 0),
            held: machine.word("held", 0),
            overtaken: machine.word("overtaken", 0),
            on_the_way: machine.word("releasers on the way", 0),
            total,
            variant,
            needs: std::array::from_fn(|index| needs.get(index).copied().unwrap_or(0)),
        }
    }

    /// `Permits::complete_fitting`: completes queued waiters that `word` suffices for; returns how
    /// many permits they got.
    fn complete_fitting(self, turn: &mut Turn<'_>, word: i32, granted: i32) -> Result<i32, String> {
        let mut granted = granted;
        loop {
            let head = turn.peek(self.list) & 3;
            if head == 0 {
                return Ok(granted);
            }
            let waiter = head as usize - 1;
            if self.needs[waiter] > available(word) - granted {
                return Ok(granted);
            }
            let rest = turn.peek(self.list) >> 2;
            turn.poke(self.list, rest);
            granted += self.needs[waiter];
            self.complete(turn, waiter)?;
        }
    }

    fn complete(self, turn: &mut Turn<'_>, waiter: usize) -> Result<(), String> {
        if turn.peek(self.gone[waiter]) == 1 {
            return Err(format!("use after free: waiter {waiter}"));
        }
        for other in 0..MOST {
            let older = turn.peek(self.queued_at[other]);
            if older != 0 && older < turn.peek(self.queued_at[waiter]) {
                return Err(format!("waiter {waiter} is served before {other}"));
            }
        }
        turn.poke(self.queued_at[waiter], 0);
        turn.poke(self.status[waiter], GRANTED);
        turn.bump(self.held, self.needs[waiter]);
        Ok(())
    }

    /// `Permits::serve`, with LOCKED held. Goes on with the next step.
    fn serve(self, thread: &mut ThreadBuilder<'_>) {
        let (word, granted, late) = (thread.register(), thread.register(), thread.register());
        let out = thread.label();
        thread.step("serve: load the word", move |turn| {
            let now = turn.load(self.word);
            turn.set(word, now);
            turn.set(granted, 0);
            Flow::Next
        });
        let again = thread.here();
        thread.step("serve: complete those who fit", move |turn| {
            let (now, before) = (turn.reg(word), turn.reg(granted));
            if self.variant == Variant::CompletesAfterUnlock {
                // Unlinks one, and completes it later.
                let head = turn.peek(self.list) & 3;
                if head != 0 && turn.reg(late) == 0 {
                    let need = self.needs[head as usize - 1];
                    if need <= available(now) - before {
                        let rest = turn.peek(self.list) >> 2;
                        turn.poke(self.list, rest);
                        turn.set(late, head);
                        turn.set(granted, before + need);
                    }
                }
                return Flow::Next;
            }
            match self.complete_fitting(turn, now, before) {
                Ok(sum) => turn.then(|turn| turn.set(granted, sum)),
                Err(reason) => Flow::Fail(reason),
            }
        });
        thread.step("serve: unlock, if nothing has come", move |turn| {
            let now = turn.reg(word);
            let queued = if turn.peek(self.list) == 0 { 0 } else { QUEUED };
            let unlocked =
                |from: i32, granted| (from - granted * ONE) & !(LOCKED | QUEUED) | queued;
            let sum = turn.reg(granted);
            if self.variant == Variant::UnlocksBlindly {
                turn.update(self.word, |now| Some(unlocked(now, sum)));
                return Flow::To(out);
            }
            match turn.exchange(self.word, now, unlocked(now, sum)) {
                Ok(()) => Flow::To(out),
                Err(changed) => {
                    turn.set(word, changed);
                    Flow::To(again)
                }
            }
        });
        thread.place(out);
        thread.step("served; wakes them", move |turn| {
            let waiter = turn.reg(late);
            for register in [word, granted, late] {
                turn.set(register, 0);
            }
            if waiter == 0 {
                return Flow::Next;
            }
            match self.complete(turn, waiter as usize - 1) {
                Ok(()) => Flow::Next,
                Err(reason) => Flow::Fail(reason),
            }
        });
    }

    /// `Permits::release`: the look, the addition, and `release_queued`.
    fn give_back(self, thread: &mut ThreadBuilder<'_>, n: i32) {
        let (word, deposit) = (thread.register(), thread.register());
        let [slow, serve, out] = std::array::from_fn(|_| thread.label());
        thread.step("release: look at the word", move |turn| {
            let now = turn.load(self.word);
            turn.set(deposit, n);
            turn.set(word, now);
            if now & QUEUED != 0 { Flow::To(slow) } else { Flow::Next }
        });
        thread.step("release: add", move |turn| {
            turn.bump(self.held, -n);
            let queued = turn.peek(self.word) & QUEUED != 0;
            turn.bump(self.on_the_way, i32::from(queued));
            turn.add(self.word, n * ONE);
            turn.set(deposit, 0);
            turn.set(word, 0);
            if queued { Flow::Next } else { Flow::To(out) }
        });
        thread.step("release: look again", move |turn| {
            let now = turn.load(self.word);
            turn.set(word, now);
            Flow::Next
        });
        thread.place(slow);
        thread.step("release: deposit, and take the lock if it is free", move |turn| {
            let (now, n) = (turn.reg(word), turn.reg(deposit));
            let free = now & QUEUED != 0 && now & LOCKED == 0;
            let on_the_way = if n == 0 { -1 } else { 0 };
            if n == 0 && !free {
                turn.bump(self.on_the_way, on_the_way);
                return Flow::To(out);
            }
            let next = (now + n * ONE) | if free { LOCKED } else { 0 };
            match turn.exchange(self.word, now, next) {
                Ok(()) => {
                    turn.bump(self.held, -n);
                    turn.bump(self.on_the_way, on_the_way);
                    turn.set(word, 0);
                    turn.set(deposit, 0);
                    if free { Flow::To(serve) } else { Flow::To(out) }
                }
                Err(changed) => {
                    turn.set(word, changed);
                    Flow::To(slow)
                }
            }
        });
        thread.place(serve);
        self.serve(thread);
        thread.place(out);
        thread.step("released", move |turn| {
            turn.set(word, 0);
            turn.set(deposit, 0);
            Flow::Next
        });
    }

    /// Takes the lock; `Permits::lock`.
    fn lock(self, thread: &mut ThreadBuilder<'_>) {
        thread.step("lock", move |turn| {
            let before =
                turn.update(self.word, |word| (word & LOCKED == 0).then_some(word | LOCKED));
            if before & LOCKED == 0 { Flow::Next } else { Flow::Wait }
        });
    }

    /// `AcquirePermits`: polled until it is granted, or dropped; then it gives its permits back.
    fn acquirer(self, machine: &mut Machine, index: usize, drops: bool) {
        let me = index as i32 + 1;
        let need = self.needs[index];
        let mut thread = machine.thread(format!("acquirer {index}"));
        let word = thread.register();
        let [locked, asleep, holding, dropped] = std::array::from_fn(|_| thread.label());
        thread.step("look at the word", move |turn| {
            let now = turn.load(self.word);
            turn.set(word, now);
            Flow::Next
        });
        let again = thread.here();
        thread.step("take permits, or the lock", move |turn| {
            self.take_or_lock(turn, word, need, [holding, locked, again])
        });
        thread.place(locked);
        thread.step("queue", move |turn| {
            let list = turn.peek(self.list);
            turn.poke(self.list, list::push(list, me));
            turn.poke(self.status[index], WAITING);
            turn.bump(self.clock, 1);
            let now = turn.peek(self.clock);
            turn.poke(self.queued_at[index], now);
            turn.set(word, 0);
            Flow::Next
        });
        self.serve(&mut thread);
        thread.place(asleep);
        thread.choice("asleep", if drops { 2 } else { 1 }, move |turn| {
            if turn.way() == 1 {
                return Flow::To(dropped);
            }
            if turn.peek(self.status[index]) == GRANTED { Flow::To(holding) } else { Flow::Wait }
        });
        thread.place(dropped);
        if drops {
            self.cancel(&mut thread, index);
        }
        thread.place(holding);
        self.give_back(&mut thread, need);
    }

    /// `Permits::take_or_lock`; goes on at one of {taken, locked, again}.
    fn take_or_lock(
        self,
        turn: &mut Turn<'_>,
        word: crate::explorer::Register,
        need: i32,
        [taken, locked, again]: [Label; 3],
    ) -> Flow {
        let now = turn.reg(word);
        let may_take = now & QUEUED == 0 || self.variant == Variant::Barges;
        let takes = may_take && available(now) >= need;
        if !takes && now & LOCKED != 0 {
            let now = turn.load(self.word);
            turn.set(word, now);
            return if now & LOCKED == 0 { Flow::To(again) } else { Flow::Wait };
        }
        let to = if takes { now - need * ONE } else { now | QUEUED | LOCKED };
        if self.variant == Variant::QueuesWithoutLook && !takes {
            // The exchange checks the lock only.
            let before =
                turn.update(self.word, |now| (now & LOCKED == 0).then_some(now | QUEUED | LOCKED));
            return if before & LOCKED == 0 { Flow::To(locked) } else { Flow::Wait };
        }
        match turn.exchange(self.word, now, to) {
            Ok(()) if takes => {
                turn.set(word, 0);
                turn.bump(self.held, need);
                if (0..MOST).any(|other| turn.peek(self.queued_at[other]) != 0) {
                    turn.poke(self.overtaken, 1);
                }
                Flow::To(taken)
            }
            Ok(()) => Flow::To(locked),
            Err(changed) => {
                turn.set(word, changed);
                Flow::To(again)
            }
        }
    }

    /// The drop of a waiting future; goes on with giving back if it was granted.
    fn cancel(self, thread: &mut ThreadBuilder<'_>, index: usize) {
        let me = index as i32 + 1;
        let granted = thread.register();
        let (out, free) = (thread.label(), thread.label());
        thread.step("drop: granted?", move |turn| {
            turn.set(granted, i32::from(turn.peek(self.status[index]) == GRANTED));
            if turn.reg(granted) == 1 { Flow::To(free) } else { Flow::Next }
        });
        self.lock(thread);
        thread.step("drop: granted meanwhile? else unlink", move |turn| {
            if turn.peek(self.status[index]) == GRANTED {
                turn.set(granted, 1);
            } else {
                let list = turn.peek(self.list);
                turn.poke(self.list, list::remove(list, me));
                turn.poke(self.queued_at[index], 0);
            }
            Flow::Next
        });
        self.serve(thread);
        thread.place(free);
        thread.step("drop: freed; gives back what it was granted", move |turn| {
            turn.poke(self.gone[index], 1);
            let keeps = self.variant == Variant::KeepsGrant;
            if turn.reg(granted) == 1 && !keeps {
                turn.set(granted, 0);
                return Flow::To(out);
            }
            if turn.reg(granted) == 1 {
                let need = self.needs[index];
                turn.bump(self.held, -need);
            }
            Flow::End
        });
        thread.place(out);
    }
}

/// `total` permits; acquirers with these needs, the first of which may be dropped while it waits.
fn machine(variant: Variant, total: i32, needs: &[i32], drops: bool) -> Machine {
    let mut machine = Machine::new();
    let permits = Permits::new(&mut machine, variant, total, needs);
    for index in 0..needs.len() {
        permits.acquirer(&mut machine, index, drops && index == 0);
    }
    machine.invariant(move |view| {
        let word = view.get(permits.word);
        if word & LOCKED == 0 && word & QUEUED == 0 && view.get(permits.list) != 0 {
            return Err("a list without QUEUED".into());
        }
        if view.get(permits.overtaken) != 0 {
            return Err("a newcomer has overtaken a queued waiter".into());
        }
        if word & LOCKED == 0 && word & QUEUED != 0 && view.get(permits.on_the_way) == 0 {
            let head = view.get(permits.list) & 3;
            if head != 0 && permits.needs[head as usize - 1] <= available(word) {
                return Err("permits float past a waiter".into());
            }
        }
        Ok(())
    });
    machine.at_rest(move |view| {
        let waiting = view.waiting();
        if !waiting.is_empty() {
            return Err(format!("{waiting:?} sleep for ever"));
        }
        let word = view.get(permits.word);
        if word != permits.total * ONE || view.get(permits.held) != 0 {
            return Err(format!("permits leaked: {} are left", available(word)));
        }
        Ok(())
    });
    machine
}

const SC: Memory = Memory::Sequential;

/// Findings S1, S2, S4, S5, S7: invariants 1 and 3 of `permits.rs`, first in first out, and no permit
/// is lost, with a waiter that is dropped at any time.
#[test]
fn permits_reach_the_oldest_waiter_and_none_is_lost() {
    for memory in BOTH {
        machine(Variant::AsBuilt, 1, &[1, 1], true).explore(memory).assert_holds();
    }
    machine(Variant::AsBuilt, 1, &[1, 1, 1], true).explore(SC).assert_holds();
    machine(Variant::AsBuilt, 2, &[1, 2, 1], true).explore(SC).assert_holds();
    machine(Variant::AsBuilt, 2, &[2, 1, 1], true).explore(SC).assert_holds();
}

/// Finding S1: a deposit that relies on whoever unlocks, which does not look.
#[test]
fn seed_s1_a_blind_unlock_leaves_a_floating_permit() {
    machine(Variant::UnlocksBlindly, 1, &[1, 1], false).explore(SC).assert_fails("float");
}

/// Finding S1: between the look for permits and the place in the queue, a permit comes back. (Serving
/// after queueing saves the day in this protocol: it is what looks again.)
#[test]
fn queueing_after_an_old_look_is_saved_by_serving() {
    machine(Variant::QueuesWithoutLook, 1, &[1, 1], false).explore(SC).assert_holds();
}

/// Finding S2.
#[test]
fn seed_s2_a_newcomer_overtakes() {
    machine(Variant::Barges, 2, &[2, 1, 1], false).explore(SC).assert_fails("overtaken");
}

/// Finding S3.
#[test]
fn seed_s3_a_waiter_is_completed_after_it_is_gone() {
    machine(Variant::CompletesAfterUnlock, 1, &[1, 1], true)
        .explore(SC)
        .assert_fails("use after free");
}

/// Finding S4.
#[test]
fn seed_s4_a_dropped_grant_is_lost() {
    machine(Variant::KeepsGrant, 1, &[1, 1], true).explore(SC).assert_fails("permits leaked");
}
