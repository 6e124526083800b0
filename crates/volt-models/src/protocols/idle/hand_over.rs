//! The driver passes from one parked member to another: `Worker::{wait, give_driver, pass_driver}`.
//!
//! As built: a member in the driver whose future is woken by other threads claims another one, and only
//! then lets the driver go and wakes that one, which takes it when it parks. A member whose future is
//! woken by events stores its wish and rings the reactor; the one in the driver lets it go, and then
//! claims the one with the wish. An event is taken by whoever waits in the driver. Member 0 has a future
//! of its own; wishes, gifts, events and wake-ups happen at any time. Left out: as in `idle`.

use super::{Idle, MEMBERS, SC, Variant as Parking, summary};
use crate::explorer::{BOTH, Flow, Label, Machine, Register, ThreadBuilder, Word};

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    AsBuilt,
    /// Lets the driver go without claiming anybody.
    GivesToNobody,
    /// Wakes the claimed one before it lets the driver go.
    GivesTooLate,
    /// Lets the driver go for a wish, without claiming anybody.
    PassesToNobody,
    /// Claims the one with the wish before it lets the driver go.
    PassesTooLate,
}

#[derive(Clone, Copy)]
struct HandOver {
    idle: Idle,
    /// Asks for the driver, gives it away: so often.
    wishes: [Word; MEMBERS],
    gifts: [Word; MEMBERS],
    /// Member 0's wish.
    wish: Word,
    bell: Word,
    events: Word,
    variant: Variant,
}

impl HandOver {
    fn member(self, machine: &mut Machine, index: usize) {
        let (idle, me) = (self.idle, index as i32 + 1);
        let mut thread = machine.thread(format!("member {index}"));
        let (searching, ran) = (thread.register(), thread.register());
        let [top, park, wait, asleep, claimed, itself, wish, rung] =
            std::array::from_fn(|_| thread.label());
        idle.work(&mut thread, searching, ran, top, park);
        thread.place(park);
        idle.publish(&mut thread, index, searching, ran, top, wait);

        thread.place(wait);
        thread.choice("wait: ask for the driver, or give it away?", 3, move |turn| {
            let has_driver = turn.peek(idle.driver) == me;
            match turn.way() {
                0 => Flow::To(asleep),
                1 if !has_driver && turn.peek(self.wishes[index]) > 0 => {
                    turn.bump(self.wishes[index], -1);
                    Flow::To(wish)
                }
                2 if has_driver && turn.peek(self.gifts[index]) > 0 => {
                    turn.bump(self.gifts[index], -1);
                    Flow::Next
                }
                _ => Flow::Wait,
            }
        });
        self.give(&mut thread, index, asleep);
        thread.place(wish);
        thread.step("wish: store it", move |turn| turn.then(|turn| turn.store(self.wish, 1)));
        thread.step("wish: ring the reactor", move |turn| {
            turn.swap(self.bell, 1);
            Flow::To(asleep)
        });

        thread.place(asleep);
        thread.choice("asleep", 4, move |turn| {
            let has_driver = turn.peek(idle.driver) == me;
            match turn.way() {
                0 => match turn.exchange(idle.token[index], 1, 0) {
                    Ok(()) => Flow::To(claimed),
                    Err(_) => Flow::Wait,
                },
                1 if turn.peek(idle.by_itself[index]) > 0 => {
                    turn.bump(idle.by_itself[index], -1);
                    Flow::To(itself)
                }
                // The event's task is this member's own.
                2 if has_driver && turn.peek(self.events) > 0 => {
                    turn.bump(self.events, -1);
                    Flow::To(itself)
                }
                3 if has_driver && turn.peek(self.bell) == 1 => {
                    turn.swap(self.bell, 0);
                    Flow::To(rung)
                }
                _ => Flow::Wait,
            }
        });
        thread.place(rung);
        self.pass(&mut thread, index, wait);
        thread.place(itself);
        thread.step("it will run something", move |turn| turn.then(|turn| turn.set(ran, 1)));
        idle.get_up(&mut thread, index, top, wait, claimed);
        thread.place(claimed);
        thread.step("claimed: drop the roles; search", move |turn| {
            turn.set(searching, 1);
            summary(turn, idle, |turn| idle.leave_driver(turn, index));
            Flow::To(top)
        });
    }

    fn release(self, thread: &mut ThreadBuilder<'_>, index: usize, bit: Option<Register>) {
        thread.step("let the driver go", move |turn| {
            let itself = bit.is_some_and(|bit| turn.reg(bit) == index as i32);
            summary(turn, self.idle, |turn| {
                if !itself {
                    self.idle.leave_driver(turn, index);
                }
            });
            Flow::Next
        });
    }

    /// `Worker::give_driver`.
    fn give(self, thread: &mut ThreadBuilder<'_>, index: usize, asleep: Label) {
        let (idle, bit, out) = (self.idle, thread.register(), thread.label());
        thread.step("give: load the summary", move |turn| {
            turn.load(idle.searching);
            if turn.peek(idle.parked) < 2 { Flow::To(asleep) } else { Flow::Next }
        });
        if self.variant == Variant::GivesToNobody {
            self.release(thread, index, None);
        } else {
            idle.claim(thread, None, bit, out);
            if self.variant == Variant::GivesTooLate {
                idle.unpark(thread, bit);
                self.release(thread, index, None);
            } else {
                self.release(thread, index, Some(bit));
                idle.unpark(thread, bit);
            }
        }
        thread.place(out);
        thread.step("given", move |turn| {
            turn.set(bit, 0);
            Flow::To(asleep)
        });
    }

    /// `Worker::pass_driver`, if there is a wish.
    fn pass(self, thread: &mut ThreadBuilder<'_>, index: usize, wait: Label) {
        thread.step("pass: take the wish", move |turn| {
            if turn.swap(self.wish, 0) == 0 { Flow::To(wait) } else { Flow::Next }
        });
        if self.variant == Variant::PassesTooLate {
            self.idle.notify(thread, Some(0));
            self.release(thread, index, None);
        } else {
            self.release(thread, index, None);
            if self.variant != Variant::PassesToNobody {
                self.idle.notify(thread, Some(0));
            }
        }
        thread.step("passed", move |_| Flow::To(wait));
    }
}

/// What happens: so many tasks from outside, events, wake-ups of member 0's future, wishes of that member,
/// and gifts of each.
#[derive(Clone, Copy, Default)]
struct Story {
    tasks: i32,
    events: i32,
    wakes: i32,
    wishes: i32,
    gifts: [i32; MEMBERS],
}

fn machine(variant: Variant, members: usize, story: Story) -> Machine {
    let mut machine = Machine::new();
    let count = members as i32;
    let idle = Idle::new(&mut machine, count, story.tasks, Parking::AsBuilt, false);
    let hand_over = HandOver {
        idle,
        wishes: machine.words("wishes", 0),
        gifts: machine.words("gifts", 0),
        wish: machine.word("wish", 0),
        bell: machine.word("bell", 0),
        events: machine.word("events", story.events),
        variant,
    };
    machine.start(idle.by_itself[0], story.wakes);
    machine.start(hand_over.wishes[0], story.wishes);
    for (word, gifts) in hand_over.gifts.into_iter().zip(story.gifts) {
        machine.start(word, gifts);
    }
    (0..members).for_each(|index| hand_over.member(&mut machine, index));
    if story.tasks > 0 {
        idle.poster(&mut machine, 0, story.tasks);
    }
    idle.checks(&mut machine);
    machine
}

const GIFT: Story = Story { tasks: 0, events: 1, wakes: 1, wishes: 0, gifts: [1, 0, 0] };
const WISH: Story = Story { tasks: 0, events: 1, wakes: 1, wishes: 1, gifts: [0; MEMBERS] };

/// Invariant 4 of `idle.rs` through every hand-over: whenever all sleep, one waits in the driver; no
/// event, no task and no searcher is left behind.
#[test]
fn the_driver_always_has_somebody_when_all_sleep() {
    for memory in BOTH {
        for story in [GIFT, WISH] {
            machine(Variant::AsBuilt, 2, story).explore(memory).assert_holds();
            machine(Variant::AsBuilt, 2, Story { tasks: 1, ..story })
                .explore(memory)
                .assert_holds();
        }
    }
    let both = Story { wishes: 1, gifts: [1, 1, 0], ..GIFT };
    machine(Variant::AsBuilt, 2, both).explore(SC).assert_holds();
    machine(Variant::AsBuilt, 3, Story { wakes: 0, ..GIFT }).explore(SC).assert_holds();
    machine(Variant::AsBuilt, 3, Story { wakes: 0, ..WISH }).explore(SC).assert_holds();
}

#[test]
fn weak_a_driver_that_is_given_to_nobody_is_left_alone() {
    machine(Variant::GivesToNobody, 2, GIFT).explore(SC).assert_fails("driver");
}

#[test]
fn weak_a_driver_that_is_let_go_after_the_wake_up_is_left_alone() {
    machine(Variant::GivesTooLate, 2, GIFT).explore(SC).assert_fails("driver");
}

#[test]
fn weak_a_driver_that_is_passed_to_nobody_is_left_alone() {
    machine(Variant::PassesToNobody, 2, WISH).explore(SC).assert_fails("driver");
}

#[test]
fn weak_a_driver_that_is_passed_after_the_wake_up_is_left_alone() {
    machine(Variant::PassesTooLate, 2, WISH).explore(SC).assert_fails("driver");
}
