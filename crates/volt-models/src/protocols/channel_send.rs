//! Senders that wait for room: `volt_sync::channel::bounded::send`, with the reservations of
//! `channel::ring`. The other half is in `channel`.
//!
//! As built: the first queued sender sets the senders' flag under the lock, looks for room once
//! more, and sets WAITERS in the tail, so that newcomers queue as well. Who frees places looks at the
//! flag and serves the queue in order, by reservations that only the served sender can use. Capacity
//! 2, full at first; senders want some places each and give them back when they have them.

use crate::explorer::{BOTH, Flow, Label, Machine, Memory, Register, ThreadBuilder, Word};

const WAITERS: i32 = 64;
/// The tail's low bits: places that are claimed or reserved, as a count that only grows by claims.
const COUNT: i32 = 63;
const MOST: usize = 2;
const CAPACITY: i32 = 2;

const WAITING: i32 = 1;
const NOTIFIED: i32 = 2;

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    AsBuilt,
    /// A served sender that is dropped keeps its places (finding C5, mirrored).
    KeepsReservation,
    /// The first sender does not look for room after it set the flag (finding C1, mirrored).
    SleepsWithoutLook,
    /// The flag is cleared when one sender was served (finding C4, mirrored).
    ClearsFlag,
    /// Dropping the first sender does not serve the next, who may need less.
    DropServesNobody,
    /// Newcomers take room past those who wait.
    IgnoresWaiters,
}

#[derive(Clone, Copy)]
struct Senders {
    tail: Word,
    head: Word,
    flag: Word,
    lock: Word,
    queue: Word,
    state: [Word; MOST],
    served: [Word; MOST],
    overtaken: Word,
    needs: [i32; MOST],
    variant: Variant,
}

impl Senders {
    fn acquire(self, thread: &mut ThreadBuilder<'_>) {
        thread.step("lock", move |turn| if turn.lock(self.lock) { Flow::Next } else { Flow::Wait });
    }

    fn release(self, thread: &mut ThreadBuilder<'_>) {
        thread.step("unlock", move |turn| turn.then(|turn| turn.store(self.lock, 0)));
    }

    /// `Bounded::serve`, under the lock.
    fn serve(self, thread: &mut ThreadBuilder<'_>) {
        let (tail, room) = (thread.register(), thread.register());
        let (clear, out) = (thread.label(), thread.label());
        let top = thread.here();
        thread.step("serve: load the tail", move |turn| {
            if turn.peek(self.queue) == 0 {
                return Flow::To(clear);
            }
            let now = turn.load(self.tail);
            turn.set(tail, now);
            Flow::Next
        });
        thread.step("serve: load the head", move |turn| {
            let head = turn.load(self.head);
            turn.set(room, CAPACITY - ((turn.reg(tail) & COUNT) - head));
            let first = (turn.peek(self.queue) & 3) as usize - 1;
            if turn.reg(room) < self.needs[first] { Flow::To(out) } else { Flow::Next }
        });
        thread.step("serve: reserve for the oldest", move |turn| {
            let first = (turn.peek(self.queue) & 3) as usize - 1;
            let now = turn.reg(tail);
            if turn.exchange(self.tail, now, now + self.needs[first]).is_ok() {
                let rest = turn.peek(self.queue) >> 2;
                turn.poke(self.queue, rest);
                turn.poke(self.state[first], NOTIFIED);
                turn.poke(self.served[first], 1);
                if self.variant == Variant::ClearsFlag {
                    return Flow::To(clear);
                }
            }
            Flow::To(top)
        });
        thread.place(clear);
        thread.step("serve: nobody is left: clear the flag", move |turn| {
            turn.then(|turn| turn.store(self.flag, 0))
        });
        thread.step("serve: and WAITERS", move |turn| {
            turn.then(|turn| turn.update(self.tail, |tail| Some(tail & !WAITERS)))
        });
        thread.place(out);
        thread.step("served", move |turn| {
            turn.set(tail, 0);
            turn.set(room, 0);
            Flow::Next
        });
    }

    /// `Bounded::freed`.
    fn freed(self, thread: &mut ThreadBuilder<'_>) {
        let out = thread.label();
        thread.step("load the senders' flag", move |turn| {
            if turn.load(self.flag) == 0 { Flow::To(out) } else { Flow::Next }
        });
        self.acquire(thread);
        self.serve(thread);
        self.release(thread);
        thread.place(out);
        thread.step("done", |_| Flow::Next);
    }

    fn receiver(self, machine: &mut Machine, messages: i32, only: bool) {
        let mut thread = machine.thread("receiver");
        for _ in 0..messages {
            thread.step("take a message: move the head", move |turn| {
                if only {
                    let next = turn.peek(self.head) + 1;
                    return turn.then(|turn| turn.store_seq_cst(self.head, next));
                }
                turn.then(|turn| turn.add(self.head, 1))
            });
            self.freed(&mut thread);
        }
    }

    /// Reserves, and gives back; its future may be dropped while it waits.
    fn sender(self, machine: &mut Machine, index: usize, drops: bool) {
        let need = self.needs[index];
        let me = index as i32 + 1;
        let mut thread = machine.thread(format!("sender {index}"));
        let (tail, queued) = (thread.register(), thread.register());
        let [slow, asleep, have, dropped] = std::array::from_fn(|_| thread.label());
        let top = thread.here();
        thread.step("try: load the tail", move |turn| {
            let now = turn.load(self.tail);
            turn.set(tail, now);
            let barges = self.variant == Variant::IgnoresWaiters;
            if now & WAITERS != 0 && !barges { Flow::To(slow) } else { Flow::Next }
        });
        thread.step("try: load the head", move |turn| {
            let head = turn.load(self.head);
            let room = CAPACITY - ((turn.reg(tail) & COUNT) - head);
            if room < need { Flow::To(slow) } else { Flow::Next }
        });
        thread.step("try: reserve", move |turn| {
            let now = turn.reg(tail);
            if turn.exchange(self.tail, now, now + need).is_err() {
                return Flow::To(top);
            }
            let others = (0..MOST).any(|n| n != index && turn.peek(self.state[n]) == WAITING);
            turn.poke(self.overtaken, i32::from(others));
            Flow::To(have)
        });
        thread.place(slow);
        self.acquire(&mut thread);
        self.enqueue(&mut thread, index, tail, have, asleep);
        thread.place(asleep);
        thread.choice("asleep", if drops { 2 } else { 1 }, move |turn| {
            if turn.way() == 1 {
                return Flow::To(dropped);
            }
            if turn.peek(self.state[index]) == NOTIFIED { Flow::To(have) } else { Flow::Wait }
        });
        thread.place(dropped);
        if drops {
            let served = thread.label();
            self.acquire(&mut thread);
            thread.step("drop: unlink", move |turn| {
                turn.set(queued, i32::from(turn.peek(self.state[index]) == WAITING));
                if turn.reg(queued) == 1 {
                    let (first, rest) = (turn.peek(self.queue) & 3, turn.peek(self.queue) >> 2);
                    turn.poke(self.queue, if first == me { rest } else { first });
                    turn.poke(self.state[index], 0);
                }
                if self.variant == Variant::DropServesNobody {
                    Flow::To(served)
                } else {
                    Flow::Next
                }
            });
            self.serve(&mut thread);
            thread.place(served);
            self.release(&mut thread);
            thread.step("drop: was it served?", move |turn| {
                let keep = self.variant == Variant::KeepsReservation;
                if turn.reg(queued) == 1 || keep { Flow::End } else { Flow::Next }
            });
        }
        thread.place(have);
        thread.step("give back: unreserve", move |turn| {
            turn.poke(self.served[index], 1);
            turn.poke(self.state[index], 0);
            turn.then(|turn| turn.add(self.tail, -need))
        });
        self.freed(&mut thread);
    }

    /// `Bounded::enqueue_sender`, under the lock, which it releases.
    fn enqueue(
        self,
        thread: &mut ThreadBuilder<'_>,
        index: usize,
        tail: Register,
        have: Label,
        asleep: Label,
    ) {
        let need = self.needs[index];
        let (push, room, full) = (thread.label(), thread.label(), thread.label());
        thread.step("first in the queue?", move |turn| {
            if turn.peek(self.queue) == 0 { Flow::Next } else { Flow::To(push) }
        });
        thread.step("set the flag", move |turn| turn.then(|turn| turn.store_seq_cst(self.flag, 1)));
        let again = thread.here();
        thread.step("look: load the tail", move |turn| {
            let now = turn.load(self.tail);
            turn.set(tail, now);
            let blind = self.variant == Variant::SleepsWithoutLook;
            if blind { Flow::To(full) } else { Flow::Next }
        });
        thread.step("look: load the head", move |turn| {
            let head = turn.load(self.head);
            let left = CAPACITY - ((turn.reg(tail) & COUNT) - head);
            if left < need { Flow::To(full) } else { Flow::Next }
        });
        thread.step("look: reserve", move |turn| {
            let now = turn.reg(tail);
            match turn.exchange(self.tail, now, now + need) {
                Ok(()) => Flow::To(room),
                Err(_) => Flow::To(again),
            }
        });
        thread.place(room);
        thread.step("there is room: clear the flag", move |turn| {
            turn.then(|turn| turn.store(self.flag, 0))
        });
        thread.step("unlock", move |turn| {
            turn.store(self.lock, 0);
            Flow::To(have)
        });
        thread.place(full);
        thread.step("set WAITERS", move |turn| {
            turn.then(|turn| turn.update(self.tail, |tail| Some(tail | WAITERS)))
        });
        thread.place(push);
        thread.step("queue", move |turn| {
            turn.set(tail, 0);
            let first = turn.peek(self.queue);
            let me = index as i32 + 1;
            turn.poke(self.queue, if first == 0 { me } else { first | me << 2 });
            turn.poke(self.state[index], WAITING);
            Flow::Next
        });
        thread.step("unlock", move |turn| {
            turn.store(self.lock, 0);
            Flow::To(asleep)
        });
    }
}

/// Two senders with these needs, of which the first may be dropped, and a receiver of the messages
/// with which the channel is full; if it is the `only` one it moves the head by a store.
fn machine(variant: Variant, needs: [i32; MOST], drops: bool, only: bool) -> Machine {
    let mut machine = Machine::new();
    let senders = Senders {
        tail: machine.word("tail", CAPACITY),
        head: machine.word("head", 0),
        flag: machine.word("senders' flag", 0),
        lock: machine.word("lock", 0),
        queue: machine.word("queue", 0),
        state: machine.words("state", 0),
        served: machine.words("served", 0),
        overtaken: machine.word("overtaken", 0),
        needs,
        variant,
    };
    senders.receiver(&mut machine, CAPACITY, only);
    for index in 0..MOST {
        senders.sender(&mut machine, index, drops && index == 0);
    }
    machine.invariant(move |view| {
        let tail = view.get(senders.tail);
        if view.get(senders.overtaken) == 1 && tail & WAITERS != 0 {
            return Err("a newcomer has overtaken a waiting sender".into());
        }
        let used = (tail & COUNT) - view.get(senders.head);
        if used > CAPACITY { Err(format!("{used} places are used")) } else { Ok(()) }
    });
    machine.at_rest(move |view| {
        if !view.waiting().is_empty() {
            return Err(format!("lost wake-up: {:?}", view.waiting()));
        }
        let used = (view.get(senders.tail) & COUNT) - view.get(senders.head);
        let clean = view.get(senders.tail) & WAITERS == 0 && view.get(senders.flag) == 0;
        match (used, clean) {
            (0, true) => Ok(()),
            (0, false) => Err("WAITERS or the flag stays".into()),
            _ => Err(format!("{used} places are never given back")),
        }
    });
    machine
}

const SC: Memory = Memory::Sequential;

/// Findings C1 to C5, mirrored: edges BW2 and RG4, and invariant 3 of `bounded.rs`.
#[test]
fn no_sender_sleeps_beside_room_that_it_needs() {
    for memory in BOTH {
        machine(Variant::AsBuilt, [1, 1], true, true).explore(memory).assert_holds();
    }
    machine(Variant::AsBuilt, [2, 1], true, false).explore(SC).assert_holds();
    machine(Variant::AsBuilt, [1, 2], true, false).explore(SC).assert_holds();
}

/// Finding C5, mirrored.
#[test]
fn weak_a_dropped_sender_keeps_its_reservation() {
    let outcome = machine(Variant::KeepsReservation, [1, 1], true, false).explore(SC);
    assert!(outcome.counterexample().is_some());
}

/// Finding C1, mirrored.
#[test]
fn weak_sleeping_without_a_last_look_loses_room() {
    machine(Variant::SleepsWithoutLook, [1, 1], false, false).explore(SC).assert_fails("lost");
}

/// Finding C4, mirrored.
#[test]
fn weak_clearing_the_flag_beside_a_sleeping_sender_loses_room() {
    machine(Variant::ClearsFlag, [1, 1], false, false).explore(SC).assert_fails("lost");
}

/// Whoever drops the first sender serves the next, who may need less, and clears WAITERS.
#[test]
fn weak_a_dropped_sender_serves_nobody() {
    machine(Variant::DropServesNobody, [2, 1], true, false).explore(SC).assert_fails("stays");
}

/// Invariant 3 of `bounded.rs`.
#[test]
fn weak_newcomers_overtake_waiting_senders() {
    machine(Variant::IgnoresWaiters, [2, 1], false, false).explore(SC).assert_fails("overtaken");
}
