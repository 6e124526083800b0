//! The workers' ring: `runtime::scheduler::queues::ring`.
//!
//! As built: `head` packs two indices (`steal`, `real`), `tail` is the third; a thief claims by
//! moving `real`, copies, and gives the places back by moving `steal` up to `real`. Four places;
//! indices count up to a modulus. The release order of the places is in `order_words`.

use crate::explorer::{Flow, Machine, Memory, ThreadBuilder, Turn, Word};

const PLACES: i32 = 4;
/// Of the packed head.
const HALF: i32 = 64;

/// What differs from the ring as it is built.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    AsBuilt,
    /// A thief gives up its third phase when the exchange fails (finding P5).
    AbandonsRelease,
    /// Room is counted from the real head (finding P6).
    RoomFromRealHead,
    /// An overflow goes on while a steal runs (finding P7).
    OverflowsDuringSteal,
    /// A second thief does not refuse (finding P7).
    SecondThief,
    /// Indices wrap after this many, so that a stale claim succeeds (finding P8).
    SmallIndices,
}

#[derive(Clone, Copy)]
struct Ring {
    head: Word,
    tail: Word,
    places: [Word; PLACES as usize],
    variant: Variant,
}

const fn packed(steal: i32, real: i32) -> i32 {
    steal * HALF + real
}

const fn steal(head: i32) -> i32 {
    head / HALF
}

const fn real(head: i32) -> i32 {
    head % HALF
}

impl Ring {
    fn new(machine: &mut Machine, name: &str, variant: Variant) -> Self {
        Self {
            head: machine.word(format!("{name}.head"), 0),
            tail: machine.word(format!("{name}.tail"), 0),
            places: machine.words(&format!("{name}.place"), 0),
            variant,
        }
    }

    fn modulus(self) -> i32 {
        if self.variant == Variant::SmallIndices { PLACES } else { HALF }
    }

    fn plus(self, index: i32, by: i32) -> i32 {
        (index + by).rem_euclid(self.modulus())
    }

    fn distance(self, from: i32, to: i32) -> i32 {
        (to - from).rem_euclid(self.modulus())
    }

    fn place(self, index: i32) -> Word {
        self.places[(index % PLACES) as usize]
    }

    /// The head after the owner took `count` tasks.
    fn advanced(self, head: i32, count: i32) -> i32 {
        let next = self.plus(real(head), count);
        let runs = steal(head) != real(head) && self.variant != Variant::OverflowsDuringSteal;
        packed(if runs { steal(head) } else { next }, next)
    }

    /// The head by which "full" is judged.
    fn first_taken(self, head: i32) -> i32 {
        if self.variant == Variant::RoomFromRealHead { real(head) } else { steal(head) }
    }

    /// `Ring::push`, by the owner: into the ring, or (two of the oldest) into `overflow`.
    fn push(self, thread: &mut ThreadBuilder<'_>, task: i32, overflow: Word) {
        let head = thread.register();
        let [full, publish, out] = std::array::from_fn(|_| thread.label());
        thread.step(format!("push {task}: load the head"), move |turn| {
            let now = turn.load(self.head);
            turn.set(head, now);
            let len = self.distance(self.first_taken(now), turn.peek(self.tail));
            if len < PLACES { Flow::To(publish) } else { Flow::To(full) }
        });
        thread.place(full);
        thread.step("full: claim the older half", move |turn| {
            let now = turn.reg(head);
            let runs = steal(now) != real(now);
            if runs && self.variant != Variant::OverflowsDuringSteal {
                turn.bump(overflow, 1 << task);
                turn.set(head, 0);
                return Flow::To(out);
            }
            match turn.exchange(self.head, now, self.advanced(now, 2)) {
                Ok(()) => {
                    for offset in 0..2 {
                        let moved = turn.peek(self.place(self.plus(real(now), offset)));
                        turn.bump(overflow, 1 << moved);
                    }
                    Flow::To(publish)
                }
                Err(now) if self.distance(self.first_taken(now), turn.peek(self.tail)) < PLACES => {
                    Flow::To(publish)
                }
                Err(_) => {
                    turn.bump(overflow, 1 << task);
                    turn.set(head, 0);
                    Flow::To(out)
                }
            }
        });
        thread.place(publish);
        thread.step("write the place", move |turn| {
            let place = self.place(turn.peek(self.tail));
            turn.set(head, 0);
            turn.then(|turn| turn.store(place, task))
        });
        thread.step("publish the tail", move |turn| {
            let next = self.plus(turn.peek(self.tail), 1);
            turn.then(|turn| turn.store_seq_cst(self.tail, next))
        });
        thread.place(out);
        thread.step("pushed", |_| Flow::Next);
    }

    /// `Ring::pop`: takes one task, if there is one, and runs it.
    fn pop(self, thread: &mut ThreadBuilder<'_>, runs: Word) {
        let (head, task) = (thread.register(), thread.register());
        let out = thread.label();
        thread.step("pop: load the head", move |turn| {
            let now = turn.load(self.head);
            turn.set(head, now);
            Flow::Next
        });
        let again = thread.here();
        thread.step("pop: load the tail", move |turn| {
            let tail = turn.load(self.tail);
            if tail == real(turn.reg(head)) { Flow::To(out) } else { Flow::Next }
        });
        thread.step("pop: read the place", move |turn| {
            let read = turn.load(self.place(real(turn.reg(head))));
            turn.set(task, read);
            Flow::Next
        });
        thread.step("pop: claim", move |turn| {
            let now = turn.reg(head);
            match turn.exchange(self.head, now, self.advanced(now, 1)) {
                Ok(()) => run(turn, runs, task),
                Err(newer) => {
                    turn.set(head, newer);
                    Flow::To(again)
                }
            }
        });
        thread.place(out);
        thread.step("popped", move |turn| {
            turn.set(head, 0);
            turn.set(task, 0);
            Flow::Next
        });
    }

    /// `Ring::steal_into` by the owner of `to`, which then runs all that it has.
    fn steal_into(self, thread: &mut ThreadBuilder<'_>, to: Self, runs: Word) {
        let [head, count, copied, oldest] = std::array::from_fn(|_| thread.register());
        let [copy, release, publish, out] = std::array::from_fn(|_| thread.label());
        thread.step("steal: room in my ring?", move |turn| {
            let mine = turn.load(to.head);
            let used = to.distance(to.first_taken(mine), turn.peek(to.tail));
            if PLACES - used < PLACES / 2 { Flow::To(out) } else { Flow::Next }
        });
        thread.step("steal: load the head", move |turn| {
            let now = turn.load(self.head);
            turn.set(head, now);
            Flow::Next
        });
        let again = thread.here();
        thread.step("steal: load the tail", move |turn| {
            let now = turn.reg(head);
            if steal(now) != real(now) && self.variant != Variant::SecondThief {
                return Flow::To(out);
            }
            let len = self.distance(real(now), turn.load(self.tail));
            turn.set(count, len - len / 2);
            if len == 0 { Flow::To(out) } else { Flow::Next }
        });
        thread.step("steal: claim", move |turn| {
            let (now, count) = (turn.reg(head), turn.reg(count));
            let next = self.plus(real(now), count);
            match turn.exchange(self.head, now, packed(steal(now), next)) {
                Ok(()) => {
                    turn.set(copied, 0);
                    Flow::To(copy)
                }
                Err(newer) => {
                    turn.set(head, newer);
                    Flow::To(again)
                }
            }
        });
        thread.place(copy);
        thread.step("steal: read a place", move |turn| {
            let (first, offset) = (real(turn.reg(head)), turn.reg(copied));
            let task = turn.load(self.place(self.plus(first, offset)));
            if offset == 0 {
                turn.set(oldest, task);
            } else {
                // Nobody looks at my places beyond my tail.
                let mine = to.plus(turn.peek(to.tail), offset - 1);
                turn.poke(to.place(mine), task);
            }
            turn.set(copied, offset + 1);
            if offset + 1 < turn.reg(count) {
                return Flow::To(copy);
            }
            let (now, count) = (turn.reg(head), turn.reg(count));
            turn.set(head, packed(steal(now), self.plus(real(now), count)));
            Flow::To(release)
        });
        thread.place(release);
        thread.step("steal: give the places back", move |turn| {
            let now = turn.reg(head);
            match turn.exchange(self.head, now, packed(real(now), real(now))) {
                Ok(()) => Flow::To(publish),
                Err(_) if self.variant == Variant::AbandonsRelease => Flow::To(publish),
                Err(newer) => {
                    turn.set(head, newer);
                    Flow::To(release)
                }
            }
        });
        thread.place(publish);
        thread.step("steal: publish in my ring, run the oldest", move |turn| {
            let more = turn.reg(count) - 1;
            let flow = run(turn, runs, oldest);
            if more == 0 || flow != Flow::Next {
                return flow;
            }
            let tail = to.plus(turn.peek(to.tail), more);
            turn.then(|turn| turn.store_seq_cst(to.tail, tail))
        });
        thread.place(out);
        thread.step("stolen", move |turn| {
            for register in [head, count, copied, oldest] {
                turn.set(register, 0);
            }
            Flow::Next
        });
    }
}

/// Runs a task: each bit of `runs` is a task that ran.
fn run(turn: &mut Turn<'_>, runs: Word, register: crate::explorer::Register) -> Flow {
    let task = turn.reg(register);
    if task == 0 {
        return Flow::Fail("an empty place was taken".into());
    }
    if turn.peek(runs) >> task & 1 == 1 {
        return Flow::Fail(format!("task {task} runs twice"));
    }
    turn.bump(runs, 1 << task);
    Flow::Next
}

/// An owner that pushes tasks 1.. with pops in between, and thieves with rings of their own.
fn machine(variant: Variant, pushes: &[i32], thieves: usize, steals: usize) -> Machine {
    let mut machine = Machine::new();
    let runs = machine.word("runs", 0);
    let overflow = machine.word("overflow", 0);
    let ring = Ring::new(&mut machine, "ring", variant);
    let rings: Vec<_> =
        (0..thieves).map(|n| Ring::new(&mut machine, &format!("thief {n}"), variant)).collect();
    let mut owner = machine.thread("owner");
    let mut last = 0;
    for &count in pushes {
        for _ in 0..count {
            last += 1;
            ring.push(&mut owner, last, overflow);
        }
        ring.pop(&mut owner, runs);
    }
    for (number, &to) in rings.iter().enumerate() {
        let mut thief = machine.thread(format!("thief {number}"));
        for _ in 0..steals {
            ring.steal_into(&mut thief, to, runs);
            to.pop(&mut thief, runs);
        }
    }
    machine.at_rest(move |view| {
        let mut found = view.get(runs);
        let mut add = |bits: i32| {
            let twice = found & bits != 0;
            found |= bits;
            if twice { Err("a task is in two places".to_string()) } else { Ok(()) }
        };
        add(view.get(overflow))?;
        for ring in std::iter::once(ring).chain(rings.iter().copied()) {
            let head = view.get(ring.head);
            if steal(head) != real(head) {
                return Err("places are never given back".into());
            }
            let mut index = real(head);
            while index != view.get(ring.tail) {
                add(1 << view.get(ring.place(index)))?;
                index = ring.plus(index, 1);
            }
        }
        let all = (1 << (last + 1)) - 2;
        if found == all { Ok(()) } else { Err(format!("tasks {:b} are lost", all & !found)) }
    });
    machine
}

const SC: Memory = Memory::Sequential;

/// Findings P5 to P7: no task is lost or runs twice, with thieves and overflow.
#[test]
fn no_task_is_lost_or_runs_twice() {
    machine(Variant::AsBuilt, &[3, 2], 1, 2).explore(SC).assert_holds();
    machine(Variant::AsBuilt, &[4, 3], 1, 1).explore(SC).assert_holds();
    machine(Variant::AsBuilt, &[6], 2, 1).explore(SC).assert_holds();
    machine(Variant::AsBuilt, &[4, 1], 1, 1).explore(Memory::StoreBuffers).assert_holds();
}

/// Finding P5.
#[test]
fn seed_p5_an_abandoned_release_loses_places() {
    machine(Variant::AbandonsRelease, &[3], 1, 1).explore(SC).assert_fails("never given back");
}

/// Finding P6.
#[test]
fn seed_p6_room_from_the_real_head_overwrites_tasks() {
    let outcome = machine(Variant::RoomFromRealHead, &[4, 3], 1, 1).explore(SC);
    assert!(outcome.counterexample().is_some());
}

/// Finding P7.
#[test]
fn seed_p7_an_overflow_during_a_steal_breaks_the_ring() {
    let outcome = machine(Variant::OverflowsDuringSteal, &[6, 1], 1, 1).explore(SC);
    assert!(outcome.counterexample().is_some());
}

/// Finding P7.
#[test]
fn seed_p7_a_second_thief_gives_back_what_is_not_its_own() {
    let outcome = machine(Variant::SecondThief, &[4, 3], 2, 1).explore(SC);
    assert!(outcome.counterexample().is_some());
}

/// Finding P8: with indices that wrap, a stale claim succeeds. (Wrapping after as many as there are
/// places also makes a full ring look empty; the ring is never full here.)
#[test]
fn seed_p8_wrapping_indices_run_a_task_twice() {
    let outcome = machine(Variant::SmallIndices, &[1, 1, 1, 1, 1], 1, 1).explore(SC);
    outcome.assert_fails("twice");
    machine(Variant::AsBuilt, &[1, 1, 1, 1, 1], 1, 1).explore(SC).assert_holds();
}
