//! A bounded channel: `volt_sync::channel::bounded`, `channel::ring` and `channel::waiter`.
//!
//! As built: a sender moves the tail, publishes the stamp, looks at the receivers' flag, and wakes
//! the oldest queued receiver under the lock. A receiver that finds tail == head sets the flag under
//! the lock, looks at head and tail again, and queues. A notified receiver that is dropped passes
//! the notification on. Capacity 2; what only senders wait for is in `channel_send`.

use super::list;
use crate::explorer::{BOTH, Flow, Label, Machine, Memory, Register, ThreadBuilder, Word};

/// What differs from the protocol as it is built.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    AsBuilt,
    /// The last look is at the stamp, not at the tail (finding C1).
    LooksAtStamp,
    /// A waker clears the flag although others are queued (findings C3, C4).
    ClearsFlag,
    /// A dropped receiver keeps its notification (finding C5).
    KeepsNotification,
    /// "Not published" is taken for "empty" (finding C6).
    SleepsBesideClaimed,
    /// "Closed" is judged by the bit alone (finding C7).
    ClosedByBit,
    /// The waiter is used after the unlock (finding C9).
    WakesAfterUnlock,
    /// The seed's slot for the only receiver: registered after the look, and looked at by wakers
    /// before the flag only (finding C2).
    Slot,
}

const CLOSED: i32 = 100;
const CAPACITY: i32 = 2;
const MOST_RECEIVERS: usize = 3;

const IDLE: i32 = 0;
const WAITING: i32 = 1;
const NOTIFIED: i32 = 2;

#[derive(Clone, Copy)]
struct Channel {
    head: Word,
    tail: Word,
    /// Position + 1 of the message that is published in each place; 0 if it is empty.
    stamps: [Word; CAPACITY as usize],
    flag: Word,
    lock: Word,
    slot: Word,
    /// The queued receivers (`list`).
    queue: Word,
    state: [Word; MOST_RECEIVERS],
    gone: [Word; MOST_RECEIVERS],
    woken: [Word; MOST_RECEIVERS],
    received: Word,
    variant: Variant,
}

impl Channel {
    fn new(machine: &mut Machine, variant: Variant) -> Self {
        Self {
            head: machine.word("head", 0),
            tail: machine.word("tail", 0),
            stamps: machine.words("stamp", 0),
            flag: machine.word("receivers' flag", 0),
            lock: machine.word("lock", 0),
            slot: machine.word("slot", 0),
            queue: machine.word("queue", 0),
            state: machine.words("state", IDLE),
            gone: machine.words("gone", 0),
            woken: machine.words("woken", 0),
            received: machine.word("received", 0),
            variant,
        }
    }

    fn stamp(self, position: i32) -> Word {
        self.stamps[(position % CAPACITY) as usize]
    }

    /// `Bounded::settle_receivers`, under the lock: the store of the flag, if it is to be cleared.
    fn settle(self, thread: &mut ThreadBuilder<'_>) {
        thread.step("settle: clear the flag if nobody is queued", move |turn| {
            let keep = turn.peek(self.queue) != 0 || turn.peek(self.slot) != 0;
            if keep && self.variant != Variant::ClearsFlag {
                return Flow::Next;
            }
            turn.then(|turn| turn.store(self.flag, 0))
        });
    }

    fn acquire(self, thread: &mut ThreadBuilder<'_>) {
        thread.step("lock", move |turn| if turn.lock(self.lock) { Flow::Next } else { Flow::Wait });
    }

    fn release(self, thread: &mut ThreadBuilder<'_>) {
        thread.step("unlock", move |turn| turn.then(|turn| turn.store(self.lock, 0)));
    }

    /// `Bounded::published`.
    fn published(self, thread: &mut ThreadBuilder<'_>) {
        let out = thread.label();
        let target = thread.register();
        if self.variant == Variant::Slot {
            let miss = thread.label();
            thread.step("take the receiver in the slot", move |turn| {
                let receiver = turn.swap(self.slot, 0);
                turn.set(target, receiver);
                if receiver == 0 { Flow::To(miss) } else { Flow::Next }
            });
            thread.step("wake it", move |turn| {
                let receiver = turn.reg(target) as usize - 1;
                turn.set(target, 0);
                turn.poke(self.state[receiver], NOTIFIED);
                turn.poke(self.woken[receiver], 1);
                Flow::To(out)
            });
            thread.place(miss);
        }
        thread.step("load the receivers' flag", move |turn| {
            if turn.load(self.flag) == 0 { Flow::To(out) } else { Flow::Next }
        });
        self.wake_receiver(thread, target, out);
        thread.place(out);
        thread.step("done", move |turn| turn.then(|turn| turn.set(target, 0)));
    }

    /// `Bounded::wake_receiver`.
    fn wake_receiver(self, thread: &mut ThreadBuilder<'_>, target: Register, out: Label) {
        let early = self.variant != Variant::WakesAfterUnlock;
        let touch = move |turn: &mut crate::explorer::Turn<'_>| {
            let receiver = turn.reg(target) as usize - 1;
            if turn.peek(self.gone[receiver]) == 1 {
                return Flow::Fail(format!("use after free: receiver {receiver}"));
            }
            turn.poke(self.state[receiver], NOTIFIED);
            Flow::Next
        };
        self.acquire(thread);
        thread.step("pop the oldest receiver", move |turn| {
            let (receiver, rest) = list::pop(turn.peek(self.queue));
            turn.poke(self.queue, rest);
            turn.set(target, receiver);
            if receiver != 0 && early { touch(turn) } else { Flow::Next }
        });
        self.settle(thread);
        self.release(thread);
        thread.step("wake it", move |turn| {
            if turn.reg(target) == 0 {
                return Flow::To(out);
            }
            if !early {
                if let Flow::Fail(reason) = touch(turn) {
                    return Flow::Fail(reason);
                }
            }
            let receiver = turn.reg(target) as usize - 1;
            turn.poke(self.woken[receiver], 1);
            Flow::Next
        });
    }

    fn sender(self, machine: &mut Machine, number: usize, closes: bool) {
        let mut thread = machine.thread(format!("sender {number}"));
        let at = thread.register();
        let out = thread.label();
        thread.step("claim_tail", move |turn| {
            if turn.peek(self.tail) >= CLOSED {
                return Flow::To(out);
            }
            turn.then(|turn| {
                let position = turn.add(self.tail, 1);
                turn.set(at, position);
            })
        });
        thread.step("publish the stamp", move |turn| {
            let position = turn.reg(at);
            turn.then(|turn| turn.store(self.stamp(position), position + 1))
        });
        self.published(&mut thread);
        if closes {
            thread.step("close: set CLOSED", move |turn| {
                turn.then(|turn| turn.add(self.tail, CLOSED))
            });
            let rounds = thread.here();
            self.acquire(&mut thread);
            let target = thread.register();
            thread.step("close: pop a receiver", move |turn| {
                let (receiver, rest) = list::pop(turn.peek(self.queue));
                turn.poke(self.queue, rest);
                turn.set(target, receiver);
                if receiver != 0 {
                    turn.poke(self.state[receiver as usize - 1], NOTIFIED);
                }
                Flow::Next
            });
            self.settle(&mut thread);
            self.release(&mut thread);
            thread.step("close: wake it", move |turn| {
                let receiver = turn.reg(target);
                turn.set(target, 0);
                if receiver == 0 {
                    return Flow::Next;
                }
                turn.poke(self.woken[receiver as usize - 1], 1);
                Flow::To(rounds)
            });
        }
        thread.place(out);
        thread.step("end", |_| Flow::End);
    }

    /// A receiver that polls until it has one message, or the channel is closed. `drops`: its future
    /// may be dropped while it sleeps.
    fn receiver(self, machine: &mut Machine, index: usize, drops: bool) {
        let me = index as i32 + 1;
        let mut thread = machine.thread(format!("receiver {index}"));
        let (at, seen) = (thread.register(), thread.register());
        let [nothing, queue, asleep, dropped, closed] = std::array::from_fn(|_| thread.label());
        let top = thread.here();
        thread.step("load the head", move |turn| {
            let head = turn.load(self.head);
            turn.set(at, head);
            Flow::Next
        });
        thread.step("load the stamp", move |turn| {
            let head = turn.reg(at);
            let stamp = turn.load(self.stamp(head));
            if stamp == head + 1 { Flow::Next } else { Flow::To(nothing) }
        });
        thread.step("claim_head", move |turn| {
            let head = turn.reg(at);
            match turn.exchange(self.head, head, head + 1) {
                Ok(()) => {
                    turn.bump(self.received, 1);
                    Flow::End
                }
                Err(_) => Flow::To(top),
            }
        });
        thread.place(nothing);
        thread.step("nothing: load the tail", move |turn| {
            let tail = turn.load(self.tail);
            let position = tail % CLOSED;
            if self.variant == Variant::ClosedByBit && tail >= CLOSED {
                return Flow::To(closed);
            }
            if position == turn.reg(at) {
                return Flow::To(if tail >= CLOSED { closed } else { queue });
            }
            if self.variant == Variant::SleepsBesideClaimed || self.variant == Variant::LooksAtStamp
            {
                return Flow::To(queue);
            }
            // Busy: claimed but not published, or the head is old. Spins, or wakes itself.
            Flow::To(top)
        });
        thread.place(queue);
        self.acquire(&mut thread);
        thread.step("set the flag", move |turn| turn.then(|turn| turn.store_seq_cst(self.flag, 1)));
        thread.step("look: load the head", move |turn| {
            let head = turn.load(self.head);
            turn.set(at, head);
            Flow::Next
        });
        let (stay, sleep) = (thread.label(), thread.label());
        thread.step("look: load the tail", move |turn| {
            let head = turn.reg(at);
            let empty = match self.variant {
                Variant::LooksAtStamp | Variant::SleepsBesideClaimed | Variant::Slot => {
                    turn.load(self.stamp(head)) != head + 1
                }
                _ => turn.load(self.tail) == head,
            };
            Flow::To(if empty { sleep } else { stay })
        });
        thread.place(stay);
        self.settle(&mut thread);
        thread.step("unlock, and try again", move |turn| {
            turn.store(self.lock, 0);
            Flow::To(top)
        });
        thread.place(sleep);
        thread.step("queue", move |turn| {
            turn.poke(self.state[index], WAITING);
            if self.variant == Variant::Slot {
                return turn.then(|turn| turn.swap(self.slot, me));
            }
            let queue = turn.peek(self.queue);
            turn.poke(self.queue, list::push(queue, me));
            Flow::Next
        });
        self.release(&mut thread);
        thread.place(asleep);
        thread.choice("asleep", if drops { 2 } else { 1 }, move |turn| {
            if turn.way() == 1 {
                return Flow::To(dropped);
            }
            if turn.peek(self.woken[index]) == 0 {
                return Flow::Wait;
            }
            turn.poke(self.woken[index], 0);
            turn.set(seen, 0);
            turn.set(at, 0);
            Flow::To(top)
        });
        thread.place(dropped);
        if drops {
            self.drop_receiver(&mut thread, index, at);
        }
        thread.place(closed);
        thread.step("told \"closed\"", move |turn| {
            let left = turn.peek(self.head) < turn.peek(self.tail) % CLOSED;
            if left && self.variant == Variant::ClosedByBit {
                return Flow::Fail("closed, though a message is left".into());
            }
            Flow::End
        });
    }

    /// `Bounded::cancel_receiver`.
    fn drop_receiver(self, thread: &mut ThreadBuilder<'_>, index: usize, at: Register) {
        let me = index as i32 + 1;
        let (was_queued, target) = (thread.register(), thread.register());
        let gone = thread.label();
        self.acquire(thread);
        thread.step("drop: unlink", move |turn| {
            let queue = turn.peek(self.queue);
            turn.set(was_queued, i32::from(turn.peek(self.state[index]) == WAITING));
            turn.poke(self.queue, list::remove(queue, me));
            Flow::Next
        });
        self.settle(thread);
        self.release(thread);
        thread.step("drop: was it notified?", move |turn| {
            let keep = self.variant == Variant::KeepsNotification;
            if turn.reg(was_queued) == 1 || keep { Flow::To(gone) } else { Flow::Next }
        });
        thread.step("drop: load the head", move |turn| {
            let head = turn.load(self.head);
            turn.set(at, head);
            Flow::Next
        });
        thread.step("drop: load the tail; pass it on?", move |turn| {
            if turn.load(self.tail) == turn.reg(at) { Flow::To(gone) } else { Flow::Next }
        });
        self.wake_receiver(thread, target, gone);
        thread.place(gone);
        thread.step("freed", move |turn| {
            turn.poke(self.gone[index], 1);
            Flow::End
        });
    }
}

/// So many senders with a message each (the last of which may close), and receivers, of which the
/// first may be dropped.
fn machine(
    variant: Variant,
    senders: usize,
    closes: bool,
    receivers: usize,
    drops: bool,
) -> Machine {
    let mut machine = Machine::new();
    let channel = Channel::new(&mut machine, variant);
    for number in 0..senders {
        channel.sender(&mut machine, number, closes && number + 1 == senders);
    }
    for index in 0..receivers {
        channel.receiver(&mut machine, index, drops && index == 0);
    }
    machine.invariant(move |view| {
        let (head, tail) = (view.get(channel.head), view.get(channel.tail) % CLOSED);
        if head > tail { Err("the head has passed the tail".into()) } else { Ok(()) }
    });
    machine.at_rest(move |view| {
        let left = view.get(channel.tail) % CLOSED - view.get(channel.head);
        let asleep: Vec<_> =
            view.waiting().into_iter().filter(|name| name.starts_with("receiver")).collect();
        if !asleep.is_empty() && (left > 0 || view.get(channel.tail) >= CLOSED) {
            return Err(format!("lost wake-up: {asleep:?} sleep, {left} messages"));
        }
        if view.waiting().len() > asleep.len() {
            return Err("a sender is stuck".into());
        }
        Ok(())
    });
    machine
}

const SC: Memory = Memory::Sequential;

/// Findings C1 to C6, C9 (and the prototype's C10), as built.
#[test]
fn no_receiver_sleeps_beside_a_message() {
    for memory in BOTH {
        machine(Variant::AsBuilt, 1, false, 1, false).explore(memory).assert_holds();
        machine(Variant::AsBuilt, 1, false, 2, true).explore(memory).assert_holds();
        machine(Variant::AsBuilt, 2, false, 2, true).explore(memory).assert_holds();
    }
}

/// Finding C7, as built: the close wakes everybody, and nobody is told "closed" too early.
#[test]
fn the_close_reaches_every_receiver_after_the_messages() {
    for memory in BOTH {
        machine(Variant::AsBuilt, 1, true, 2, true).explore(memory).assert_holds();
    }
    machine(Variant::AsBuilt, 2, true, 1, false).explore(SC).assert_holds();
}

/// Finding C1: on x86 the stamp's store is still in the sender's buffer when it reads the flag.
#[test]
fn seed_c1_looking_at_the_stamp_loses_a_message_on_x86() {
    let build = || machine(Variant::LooksAtStamp, 1, false, 1, false);
    build().explore(SC).assert_holds();
    build().explore(Memory::StoreBuffers).assert_fails("lost wake-up");
}

/// Finding C2: the receiver registers in the slot after its look, while the sender, past its swap of
/// the slot, looks only at the list.
#[test]
fn seed_c2_a_slot_beside_the_list_loses_a_message() {
    machine(Variant::Slot, 1, false, 1, false).explore(SC).assert_fails("lost wake-up");
}

/// Findings C3 and C4.
#[test]
fn seed_c4_clearing_the_flag_beside_a_sleeper_loses_a_message() {
    machine(Variant::ClearsFlag, 2, false, 2, false).explore(SC).assert_fails("lost wake-up");
}

/// Finding C5.
#[test]
fn seed_c5_a_dropped_receiver_keeps_its_notification() {
    machine(Variant::KeepsNotification, 1, false, 2, true).explore(SC).assert_fails("lost wake-up");
}

/// Finding C6.
#[test]
fn seed_c6_sleeping_beside_an_unpublished_place_strands_a_message() {
    let machine = machine(Variant::SleepsBesideClaimed, 2, false, 2, false);
    machine.explore(SC).assert_fails("lost wake-up");
}

/// Finding C7.
#[test]
fn seed_c7_the_bit_alone_hides_the_last_message() {
    machine(Variant::ClosedByBit, 1, true, 1, false).explore(SC).assert_fails("a message is left");
}

/// Finding C9.
#[test]
fn seed_c9_a_waiter_is_used_after_the_unlock() {
    machine(Variant::WakesAfterUnlock, 1, false, 1, true)
        .explore(SC)
        .assert_fails("use after free");
}
