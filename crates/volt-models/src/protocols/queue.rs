//! The pool's unbounded queue: `volt_pool::queue`.
//!
//! As built: one word of a chain and the bits CONSUMING and CACHED. `try_lock` catches the chain if
//! the cache is empty and keeps it otherwise; `unlock` writes the cache's bit and keeps the chain.

use crate::explorer::{BOTH, Flow, Machine, Memory, ThreadBuilder, Word};

const CONSUMING: i32 = 1;
const CACHED: i32 = 2;
const BITS: i32 = 3;
/// Above the bits: the set of the chain's tasks.
const SHIFT: i32 = 2;

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    AsBuilt,
    /// Taking the lock writes the bits over the chain (finding K6).
    ForgetsChain,
    /// The unlock writes the bits over what was pushed meanwhile (finding K6).
    UnlocksBlindly,
    /// Two consumers at once.
    NoLock,
}

#[derive(Clone, Copy)]
struct Queue {
    stack: Word,
    cache: Word,
    taken: Word,
    variant: Variant,
}

/// The lowest task of a set, and the others.
const fn split(set: i32) -> (i32, i32) {
    let first = set & -set;
    (first, set & !first)
}

impl Queue {
    fn producer(self, machine: &mut Machine, task: i32) {
        let mut thread = machine.thread(format!("producer {task}"));
        let word = thread.register();
        thread.step("push: load", move |turn| {
            let now = turn.load(self.stack);
            turn.set(word, now);
            Flow::Next
        });
        let again = thread.here();
        thread.step("push: exchange", move |turn| {
            let now = turn.reg(word);
            match turn.exchange(self.stack, now, now | 1 << (task + SHIFT)) {
                Ok(()) => Flow::End,
                Err(changed) => {
                    turn.set(word, changed);
                    Flow::To(again)
                }
            }
        });
    }

    /// `try_lock`, one `pop`, `unlock`.
    fn consume(self, thread: &mut ThreadBuilder<'_>) {
        let [word, caught, next] = std::array::from_fn(|_| thread.register());
        let [have, pop, unlock, out] = std::array::from_fn(|_| thread.label());
        thread.step("try_lock: load", move |turn| {
            let now = turn.load(self.stack);
            turn.set(word, now);
            Flow::Next
        });
        let again = thread.here();
        thread.step("try_lock: exchange", move |turn| {
            let now = turn.reg(word);
            let held = now & CONSUMING != 0 && self.variant != Variant::NoLock;
            if held || now & !CONSUMING == 0 {
                return Flow::To(out);
            }
            let cached = now & CACHED != 0;
            let kept =
                if cached && self.variant != Variant::ForgetsChain { now & !BITS } else { 0 };
            match turn.exchange(self.stack, now, kept | CONSUMING | CACHED) {
                Ok(()) => {
                    turn.set(caught, if cached { turn.peek(self.cache) } else { now >> SHIFT });
                    Flow::To(have)
                }
                Err(changed) => {
                    turn.set(word, changed);
                    Flow::To(again)
                }
            }
        });
        thread.place(have);
        thread.step("pop: from the catch, or catch", move |turn| {
            if turn.reg(caught) != 0 {
                return Flow::To(pop);
            }
            let before = turn.update(self.stack, |now| Some(now & BITS));
            turn.set(caught, before >> SHIFT);
            if before >> SHIFT == 0 { Flow::To(unlock) } else { Flow::Next }
        });
        thread.place(pop);
        thread.step("take one", move |turn| {
            let (first, others) = split(turn.reg(caught));
            turn.set(caught, others);
            if turn.peek(self.taken) & first != 0 {
                return Flow::Fail("a task is taken twice".into());
            }
            turn.bump(self.taken, first);
            Flow::Next
        });
        thread.place(unlock);
        thread.step("unlock: leave the rest in the cache", move |turn| {
            let rest = turn.reg(caught);
            turn.poke(self.cache, rest);
            turn.set(caught, 0);
            turn.set(next, if rest == 0 { 0 } else { CACHED });
            let now = turn.load(self.stack);
            turn.set(word, now);
            Flow::Next
        });
        let retry = thread.here();
        thread.step("unlock: exchange", move |turn| {
            let (now, bits) = (turn.reg(word), turn.reg(next));
            if self.variant == Variant::UnlocksBlindly {
                let blind = now & !BITS | bits;
                turn.swap(self.stack, blind);
                return Flow::To(out);
            }
            match turn.exchange(self.stack, now, now & !BITS | bits) {
                Ok(()) => Flow::To(out),
                Err(changed) => {
                    turn.set(word, changed);
                    Flow::To(retry)
                }
            }
        });
        thread.place(out);
        thread.step("unlocked", move |turn| {
            for register in [word, caught, next] {
                turn.set(register, 0);
            }
            Flow::Next
        });
    }
}

fn machine(variant: Variant, producers: i32, consumers: usize, rounds: usize) -> Machine {
    let mut machine = Machine::new();
    let queue = Queue {
        stack: machine.word("stack", 0),
        cache: machine.word("cache", 0),
        taken: machine.word("taken", 0),
        variant,
    };
    for task in 0..producers {
        queue.producer(&mut machine, task);
    }
    for number in 0..consumers {
        let mut thread = machine.thread(format!("consumer {number}"));
        for _ in 0..rounds {
            queue.consume(&mut thread);
        }
    }
    machine.at_rest(move |view| {
        let stack = view.get(queue.stack);
        let cached = if stack & CACHED != 0 { view.get(queue.cache) } else { 0 };
        let sets = [stack >> SHIFT, cached, view.get(queue.taken)];
        let sum: i32 = sets.iter().sum();
        let all = (1 << producers) - 1;
        let disjoint = sets.iter().fold(0, |all, set| all | set) == sum;
        if disjoint && sum == all { Ok(()) } else { Err(format!("a task is lost: {sets:?}")) }
    });
    machine
}

/// Finding K6: every task is in the chain, in the cache, or taken, and in one of them.
#[test]
fn no_task_is_lost_or_taken_twice() {
    for memory in BOTH {
        machine(Variant::AsBuilt, 2, 2, 2).explore(memory).assert_holds();
    }
    machine(Variant::AsBuilt, 3, 2, 2).explore(Memory::Sequential).assert_holds();
}

/// Finding K6: the seed's `new = CONSUMING | CACHED`.
#[test]
fn seed_k6_taking_the_lock_loses_what_was_pushed() {
    let machine = machine(Variant::ForgetsChain, 3, 1, 2);
    machine.explore(Memory::Sequential).assert_fails("a task is lost");
}

/// Finding K6, at the other end.
#[test]
fn weak_an_unlock_without_comparison_loses_what_was_pushed() {
    let machine = machine(Variant::UnlocksBlindly, 2, 1, 1);
    machine.explore(Memory::Sequential).assert_fails("a task is lost");
}

/// The bit CONSUMING is a lock.
#[test]
fn weak_two_consumers_take_a_task_twice() {
    let machine = machine(Variant::NoLock, 3, 2, 2);
    assert!(machine.explore(Memory::Sequential).counterexample().is_some());
}
