//! The pool's ring of tasks: `volt_pool::buffer`.
//!
//! As built: the owner stores a slot, then the tail, and looks at the head before that; whoever takes
//! tasks reads (`steal_into`) or knows (`pop`) their slots, and claims them by one exchange of the head.
//! A thief takes half of what it sees. Left out: the thief's own ring; a full ring's way out takes one
//! task instead of half of them.

use crate::explorer::{BOTH, Flow, Label, Machine, Memory, Register, ThreadBuilder, Turn, Word};

const CAPACITY: usize = 3;
/// Of positions that are too narrow: a multiple of the capacity.
const NARROW: i32 = 6;

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    AsBuilt,
    /// The seed's `pop` returns the slot of the new head.
    PopsBehindTheHead,
    /// The thief claims the tasks, then reads their slots.
    ReadsAfterTheClaim,
    /// The tail is stored before the slot.
    PublishesFirst,
    /// The owner goes by a head that it has seen long ago.
    NeverSeesTheHead,
    /// Positions wrap while a thief sleeps (finding P8).
    NarrowPositions,
}

#[derive(Clone, Copy)]
struct Buffer {
    head: Word,
    tail: Word,
    /// A task's bit, or 0.
    slots: [Word; CAPACITY],
    taken: Word,
    variant: Variant,
}

impl Buffer {
    fn after(self, position: i32, by: i32) -> i32 {
        let next = position + by;
        if self.variant == Variant::NarrowPositions { next % NARROW } else { next }
    }

    fn len(self, head: i32, tail: i32) -> i32 {
        let len = tail - head;
        if self.variant == Variant::NarrowPositions { len.rem_euclid(NARROW) } else { len }
    }

    fn slot(self, position: i32) -> Word {
        self.slots[position as usize % CAPACITY]
    }

    /// Runs a task. Which one it is has been read before.
    fn run(self, turn: &mut Turn<'_>, task: i32) -> Flow {
        if task == 0 {
            return Flow::Fail("nothing is in the slot".into());
        }
        if turn.peek(self.taken) & task != 0 {
            return Flow::Fail("a task is taken twice".into());
        }
        turn.bump(self.taken, task);
        Flow::Next
    }

    /// `Buffer::pop`, which goes to `out` if there is nothing.
    fn pop(self, thread: &mut ThreadBuilder<'_>, tail: Register, out: Label) {
        let (head, task) = (thread.register(), thread.register());
        let retry = thread.here();
        thread.step("pop: load the head", move |turn| {
            let now = turn.load(self.head);
            turn.set(head, now);
            if now == turn.reg(tail) { Flow::To(out) } else { Flow::Next }
        });
        thread.step("pop: claim", move |turn| {
            let now = turn.reg(head);
            match turn.exchange(self.head, now, self.after(now, 1)) {
                Ok(()) => Flow::Next,
                Err(_) => Flow::To(retry),
            }
        });
        thread.step("pop: read the slot", move |turn| {
            let by = i32::from(self.variant == Variant::PopsBehindTheHead);
            let value = turn.load(self.slot(turn.reg(head) + by));
            turn.set(task, value);
            turn.set(head, 0);
            Flow::Next
        });
        thread.step("run it", move |turn| {
            let value = turn.reg(task);
            turn.set(task, 0);
            self.run(turn, value)
        });
    }

    fn owner(self, machine: &mut Machine, tasks: i32) {
        let mut thread = machine.thread("owner");
        let tail = thread.register();
        for task in 0..tasks {
            let (push, full) = (thread.label(), thread.label());
            let look = thread.here();
            thread.step("push: load the head", move |turn| {
                let head = turn.load(self.head);
                let blind = self.variant == Variant::NeverSeesTheHead;
                let full_now = self.len(head, turn.reg(tail)) >= CAPACITY as i32 && !blind;
                if full_now { Flow::To(full) } else { Flow::To(push) }
            });
            thread.place(full);
            self.pop(&mut thread, tail, look);
            thread.step("push again", move |_| Flow::To(look));
            thread.place(push);
            let slot = move |turn: &mut Turn<'_>| {
                let at = self.slot(turn.reg(tail));
                turn.then(|turn| turn.store(at, 1 << task))
            };
            let publish = move |turn: &mut Turn<'_>| {
                let next = self.after(turn.reg(tail), 1);
                turn.then(|turn| turn.store(self.tail, next))
            };
            if self.variant == Variant::PublishesFirst {
                thread.step("push: the tail (too early)", publish);
                thread.step("push: the slot", slot);
            } else {
                thread.step("push: the slot", slot);
                thread.step("push: the tail", publish);
            }
            thread.step("pushed", move |turn| {
                let next = self.after(turn.reg(tail), 1);
                turn.then(|turn| turn.set(tail, next))
            });
        }
        let (top, out) = (thread.here(), thread.label());
        self.pop(&mut thread, tail, out);
        thread.step("pop again", move |_| Flow::To(top));
        thread.place(out);
        thread.step("empty", |_| Flow::End);
    }

    /// `Buffer::steal_into`, `rounds` times. It runs what it took.
    fn thief(self, machine: &mut Machine, number: usize, rounds: usize) {
        let mut thread = machine.thread(format!("thief {number}"));
        let [head, half] = std::array::from_fn(|_| thread.register());
        let found: [Register; 2] = std::array::from_fn(|_| thread.register());
        for _ in 0..rounds {
            let [out, read, claim, run] = std::array::from_fn(|_| thread.label());
            let again = thread.here();
            thread.step("steal: load the head", move |turn| {
                let now = turn.load(self.head);
                turn.then(|turn| turn.set(head, now))
            });
            thread.step("steal: load the tail", move |turn| {
                let len = self.len(turn.reg(head), turn.load(self.tail));
                if len <= 0 {
                    return Flow::To(out);
                }
                if len > CAPACITY as i32 {
                    return Flow::To(again);
                }
                turn.set(half, len - len / 2);
                if self.variant == Variant::ReadsAfterTheClaim {
                    Flow::To(claim)
                } else {
                    Flow::Next
                }
            });
            thread.place(read);
            for (number, found) in found.into_iter().enumerate() {
                thread.step("steal: read a slot", move |turn| {
                    if number as i32 >= turn.reg(half) {
                        return Flow::Next;
                    }
                    let value = turn.load(self.slot(turn.reg(head) + number as i32));
                    turn.then(|turn| turn.set(found, value))
                });
            }
            thread.step("steal: read", move |_| {
                if self.variant == Variant::ReadsAfterTheClaim { Flow::To(run) } else { Flow::Next }
            });
            thread.place(claim);
            thread.step("steal: claim", move |turn| {
                let now = turn.reg(head);
                match turn.exchange(self.head, now, self.after(now, turn.reg(half))) {
                    Ok(()) if self.variant == Variant::ReadsAfterTheClaim => Flow::To(read),
                    Ok(()) => Flow::To(run),
                    Err(_) => Flow::To(again),
                }
            });
            thread.place(run);
            for (number, found) in found.into_iter().enumerate() {
                thread.step("run what was stolen", move |turn| {
                    let task = turn.reg(found);
                    turn.set(found, 0);
                    if number as i32 >= turn.reg(half) { Flow::Next } else { self.run(turn, task) }
                });
            }
            thread.place(out);
            thread.step("stolen", move |turn| {
                turn.set(head, 0);
                turn.set(half, 0);
                // Of a claim that failed.
                found.into_iter().for_each(|found| turn.set(found, 0));
                Flow::Next
            });
        }
    }
}

fn machine(variant: Variant, tasks: i32, thieves: usize, rounds: usize) -> Machine {
    let mut machine = Machine::new();
    let buffer = Buffer {
        head: machine.word("head", 0),
        tail: machine.word("tail", 0),
        slots: machine.words("slot", 0),
        taken: machine.word("taken", 0),
        variant,
    };
    buffer.owner(&mut machine, tasks);
    for number in 0..thieves {
        buffer.thief(&mut machine, number, rounds);
    }
    machine.at_rest(move |view| {
        let (taken, all) = (view.get(buffer.taken), (1 << tasks) - 1);
        if taken == all { Ok(()) } else { Err(format!("tasks are lost: {taken:b} of {all:b}")) }
    });
    machine
}

const SC: Memory = Memory::Sequential;

/// Finding K5: every task is taken, once.
#[test]
fn every_task_is_taken_once() {
    for memory in BOTH {
        machine(Variant::AsBuilt, 5, 1, 2).explore(memory).assert_holds();
    }
    machine(Variant::AsBuilt, 4, 2, 1).explore(SC).assert_holds();
    // As many as let narrow positions come round.
    machine(Variant::AsBuilt, 8, 1, 1).explore(SC).assert_holds();
}

#[test]
fn seed_pop_returns_the_slot_of_the_new_head() {
    machine(Variant::PopsBehindTheHead, 2, 0, 0).explore(SC).assert_fails("nothing is in the slot");
}

#[test]
fn weak_a_thief_that_claims_before_it_reads_takes_another_task() {
    let machine = machine(Variant::ReadsAfterTheClaim, 5, 1, 1);
    machine.explore(SC).assert_fails("a task is taken twice");
}

#[test]
fn weak_a_tail_before_its_slot_shows_nothing() {
    let machine = machine(Variant::PublishesFirst, 2, 1, 1);
    machine.explore(SC).assert_fails("nothing is in the slot");
}

#[test]
fn weak_a_full_ring_that_is_pushed_to_loses_tasks() {
    let machine = machine(Variant::NeverSeesTheHead, 4, 1, 1);
    machine.explore(SC).assert_fails("a task is taken twice");
}

/// Finding P8: a thief sleeps until the head comes round, and claims what was taken long ago.
#[test]
fn seed_p8_narrow_positions_let_a_sleeping_thief_take_tasks_again() {
    let machine = machine(Variant::NarrowPositions, 8, 1, 1);
    machine.explore(SC).assert_fails("a task is taken twice");
}
