//! Who works and who sleeps: `runtime::scheduler::idle` with `sleep` and `worker`.
//!
//! As built: one summary word {searching, parked, driver} and a word of parked bits. A member that
//! parks sets its bit, then in one exchange counts itself as parked and no longer searching, then
//! looks at all queues. A poster takes a ticket (parked - 1, searching + 1), clears a bit, and wakes
//! that bit's member. Left out: the watcher, guests that come and go, and the LIFO slot.

use crate::explorer::{Flow, Label, Machine, Memory, Register, ThreadBuilder, Turn, Word};

mod hand_over;

const MEMBERS: usize = 3;

/// What differs from the protocol as it is built.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    AsBuilt,
    /// Looks at the queues, then publishes that it parks (finding P1).
    LooksBeforePublishing,
    /// Leaves the searchers, looks if it was the last, then publishes (finding P1).
    LeavesBeforePublishing,
    /// Only the last searcher looks once more (finding P1e).
    OnlyLastSearcherLooks,
    /// A member that wakes up by itself looks at its bit, then clears it (finding P2).
    WakesWithoutTicket,
    /// The poster's work is a plain store on x86.
    PlainPush,
    /// Nobody takes the driver when the last one parks.
    LastLeavesDriver,
}

#[derive(Clone, Copy)]
struct Idle {
    searching: Word,
    parked: Word,
    driver: Word,
    bits: Word,
    tasks: Word,
    ran: Word,
    token: [Word; MEMBERS],
    /// Members that may still wake up by themselves.
    by_itself: [Word; MEMBERS],
    members: i32,
    variant: Variant,
    /// The first task ends only when the others have run.
    long: bool,
    long_runs: Word,
    total: i32,
}

/// An access to the summary: an exchange. Its fields are words of the model, changed in one step.
fn summary(turn: &mut Turn<'_>, idle: Idle, change: impl FnOnce(&mut Turn<'_>)) {
    turn.update(idle.searching, |_| None);
    change(turn);
}

impl Idle {
    fn new(machine: &mut Machine, members: i32, total: i32, variant: Variant, long: bool) -> Self {
        Self {
            searching: machine.word("searching", 0),
            parked: machine.word("parked", 0),
            driver: machine.word("driver", 0),
            bits: machine.word("bits", 0),
            tasks: machine.word("tasks", 0),
            ran: machine.word("ran", 0),
            token: machine.words("token", 0),
            by_itself: machine.words("wakes by itself", 0),
            members,
            variant,
            long,
            long_runs: machine.word("long task", 0),
            total,
        }
    }

    /// `Idle::notify`, and the wake-up; goes on with the next step.
    fn notify(self, thread: &mut ThreadBuilder<'_>, preferred: Option<usize>) {
        let (bit, out) = (thread.register(), thread.label());
        self.claim(thread, preferred, bit, out);
        self.unpark(thread, bit);
        thread.place(out);
        thread.step("notified", move |turn| turn.then(|turn| turn.set(bit, 0)));
    }

    /// Claims a member, and leaves its index in `bit` for the next step; goes to `out` if nobody is wanted.
    fn claim(
        self,
        thread: &mut ThreadBuilder<'_>,
        preferred: Option<usize>,
        bit: Register,
        out: Label,
    ) {
        let clear = thread.label();
        // Preferring oneself skips the look, and goes straight to the exchange.
        if preferred.is_none() {
            thread.step("notify: load the summary", move |turn| {
                let nobody = turn.load(self.searching) != 0 || turn.peek(self.parked) == 0;
                if nobody { Flow::To(out) } else { Flow::Next }
            });
        }
        thread.step("notify: take a ticket", move |turn| {
            let wants = turn.peek(self.searching) == 0 && turn.peek(self.parked) > 0;
            summary(turn, self, |turn| {
                if wants {
                    turn.bump(self.parked, -1);
                    turn.bump(self.searching, 1);
                }
            });
            if wants { Flow::Next } else { Flow::To(out) }
        });
        if let Some(index) = preferred {
            thread.step("notify: clear my own bit", move |turn| {
                let before = turn.update(self.bits, |bits| Some(bits & !(1 << index)));
                turn.set(bit, index as i32);
                if before >> index & 1 == 1 { Flow::To(clear) } else { Flow::Next }
            });
        }
        thread.choice("notify: clear any bit", self.members as usize, move |turn| {
            let index = turn.way();
            if turn.peek(self.bits) >> index & 1 == 0 {
                return Flow::Wait;
            }
            turn.set(bit, index as i32);
            turn.then(|turn| turn.update(self.bits, |bits| Some(bits & !(1 << index))))
        });
        thread.place(clear);
    }

    fn unpark(self, thread: &mut ThreadBuilder<'_>, bit: Register) {
        thread.step("notify: unpark(CLAIMED)", move |turn| {
            let index = turn.reg(bit) as usize;
            turn.set(bit, 0);
            turn.then(|turn| turn.swap(self.token[index], 1))
        });
    }

    fn poster(self, machine: &mut Machine, number: usize, tasks: i32) {
        let mut thread = machine.thread(format!("poster {number}"));
        for _ in 0..tasks {
            thread.step("push a task", move |turn| {
                if self.variant == Variant::PlainPush {
                    let now = turn.peek(self.tasks) + 1;
                    return turn.then(|turn| turn.store(self.tasks, now));
                }
                turn.then(|turn| turn.add(self.tasks, 1))
            });
            self.notify(&mut thread, None);
        }
    }

    fn member(self, machine: &mut Machine, index: usize) {
        let mut thread = machine.thread(format!("member {index}"));
        let searching = thread.register();
        let ran = thread.register();
        let [top, park, asleep, claimed] = std::array::from_fn(|_| thread.label());
        self.work(&mut thread, searching, ran, top, park);
        thread.place(park);
        self.publish(&mut thread, index, searching, ran, top, asleep);
        thread.place(asleep);
        thread.choice("asleep", 2, move |turn| {
            if turn.way() == 0 {
                return match turn.exchange(self.token[index], 1, 0) {
                    Ok(()) => Flow::To(claimed),
                    Err(_) => Flow::Wait,
                };
            }
            // A timer, an event or the root future: it has something to run.
            if turn.peek(self.by_itself[index]) == 0 {
                return Flow::Wait;
            }
            turn.bump(self.by_itself[index], -1);
            Flow::Next
        });
        self.get_up(&mut thread, index, top, asleep, claimed);
        thread.place(claimed);
        thread.step("claimed: drop the roles; search", move |turn| {
            turn.set(searching, 1);
            summary(turn, self, |turn| self.leave_driver(turn, index));
            if turn.peek(self.bits) & 1 << index != 0 {
                return Flow::Fail("claimed, but the bit is set".into());
            }
            Flow::To(top)
        });
    }

    /// Takes tasks and runs them, until there is none: then it goes to `park`.
    fn work(
        self,
        thread: &mut ThreadBuilder<'_>,
        searching: Register,
        ran: Register,
        top: Label,
        park: Label,
    ) {
        let (found, run) = (thread.label(), thread.label());
        thread.place(top);
        thread.step("take a task", move |turn| self.take(turn, found, 1));
        thread.step("become a searcher", move |turn| {
            if turn.reg(searching) == 1 {
                return Flow::Next;
            }
            let allowed = 2 * turn.peek(self.searching) < self.members;
            summary(turn, self, |turn| turn.bump(self.searching, i32::from(allowed)));
            turn.set(searching, i32::from(allowed));
            if allowed { Flow::Next } else { Flow::To(park) }
        });
        thread.step("search", move |turn| self.take(turn, found, 1));
        thread.step("found nothing", move |_| Flow::To(park));

        thread.place(found);
        let last = thread.label();
        thread.step("end the search", move |turn| {
            if turn.reg(searching) == 0 {
                return Flow::To(run);
            }
            turn.set(searching, 0);
            let was_last = turn.peek(self.searching) == 1;
            summary(turn, self, |turn| turn.bump(self.searching, -1));
            if was_last { Flow::To(last) } else { Flow::To(run) }
        });
        thread.place(last);
        thread.step("the last searcher looks again", move |turn| {
            if turn.load(self.tasks) > 0 { Flow::Next } else { Flow::To(run) }
        });
        self.notify(thread, None);
        thread.place(run);
        thread.step("run the task", move |turn| {
            turn.set(ran, 1);
            if self.long && turn.peek(self.long_runs) == 0 {
                turn.poke(self.long_runs, 1);
                return Flow::Next;
            }
            turn.bump(self.ran, 1);
            Flow::To(top)
        });
        thread.step("the long task waits for all others", move |turn| {
            if turn.peek(self.ran) < self.total - 1 {
                return Flow::Wait;
            }
            turn.bump(self.ran, 1);
            Flow::To(top)
        });
    }

    fn take(self, turn: &mut Turn<'_>, found: Label, count: i32) -> Flow {
        let before = turn.update(self.tasks, |tasks| (tasks >= count).then_some(tasks - count));
        if before >= count { Flow::To(found) } else { Flow::Next }
    }

    fn leave_driver(self, turn: &mut Turn<'_>, index: usize) {
        if turn.peek(self.driver) == index as i32 + 1 {
            turn.poke(self.driver, 0);
        }
    }

    /// `Idle::park`, and the last look.
    fn publish(
        self,
        thread: &mut ThreadBuilder<'_>,
        index: usize,
        searching: Register,
        ran: Register,
        top: Label,
        asleep: Label,
    ) {
        use Variant::{
            LastLeavesDriver, LeavesBeforePublishing, LooksBeforePublishing, OnlyLastSearcherLooks,
        };
        let variant = self.variant;
        let was_last = thread.register();
        if variant == LooksBeforePublishing {
            thread.step("look at the queues (too early)", move |turn| {
                if turn.load(self.tasks) > 0 { Flow::To(top) } else { Flow::Next }
            });
        }
        if variant == LeavesBeforePublishing {
            thread.step("leave the searchers (too early)", move |turn| {
                let by = turn.reg(searching);
                turn.set(searching, 0);
                turn.set(was_last, i32::from(by == 1 && turn.peek(self.searching) == 1));
                summary(turn, self, |turn| turn.bump(self.searching, -by));
                Flow::Next
            });
            thread.step("the last searcher looks (too early)", move |turn| {
                let last = turn.reg(was_last) == 1;
                turn.set(was_last, 0);
                if last && turn.load(self.tasks) > 0 { Flow::To(top) } else { Flow::Next }
            });
        }
        thread.step("park: set the bit", move |turn| {
            turn.then(|turn| turn.update(self.bits, |bits| Some(bits | 1 << index)))
        });
        thread.step("park: count", move |turn| {
            let by = turn.reg(searching);
            let ran_some = turn.reg(ran) == 1;
            turn.set(searching, 0);
            turn.set(ran, 0);
            turn.set(was_last, i32::from(by == 1 && turn.peek(self.searching) == 1));
            summary(turn, self, |turn| {
                turn.bump(self.parked, 1);
                turn.bump(self.searching, -by);
                let all = turn.peek(self.parked) >= self.members && variant != LastLeavesDriver;
                if turn.peek(self.driver) == 0 && (ran_some || all) {
                    turn.poke(self.driver, index as i32 + 1);
                }
            });
            Flow::Next
        });
        if matches!(variant, LooksBeforePublishing | LeavesBeforePublishing) {
            thread.step("sleep", move |_| Flow::To(asleep));
            return;
        }
        thread.step("park: look at the queues once more", move |turn| {
            let looks = variant != OnlyLastSearcherLooks || turn.reg(was_last) == 1;
            turn.set(was_last, 0);
            if looks && turn.load(self.tasks) > 0 { Flow::Next } else { Flow::To(asleep) }
        });
        self.notify(thread, Some(index));
    }

    /// `Worker::get_up`, `Idle::unpark_self`: back to running, without having been claimed.
    fn get_up(
        self,
        thread: &mut ThreadBuilder<'_>,
        index: usize,
        top: Label,
        asleep: Label,
        claimed: Label,
    ) {
        let mine = 1 << index;
        if self.variant == Variant::WakesWithoutTicket {
            thread.step("get up: is my bit set?", move |turn| {
                if turn.load(self.bits) & mine == 0 { Flow::To(asleep) } else { Flow::Next }
            });
            thread.step("get up: clear my bit", move |turn| {
                turn.then(|turn| turn.update(self.bits, |bits| Some(bits & !mine)))
            });
            thread.step("get up: not parked any more", move |turn| {
                summary(turn, self, |turn| {
                    turn.bump(self.parked, -1);
                    self.leave_driver(turn, index);
                });
                Flow::To(top)
            });
            return;
        }
        let again = thread.here();
        let ticket = thread.label();
        thread.step("get up: take a ticket", move |turn| {
            let free = turn.peek(self.parked) > 0;
            summary(turn, self, |turn| {
                if free {
                    turn.bump(self.parked, -1);
                    self.leave_driver(turn, index);
                }
            });
            if free { Flow::To(ticket) } else { Flow::Next }
        });
        thread.step("get up: no ticket; has a claim come?", move |turn| {
            match turn.exchange(self.token[index], 1, 0) {
                Ok(()) => Flow::To(claimed),
                Err(_) => Flow::To(again),
            }
        });
        thread.place(ticket);
        thread.step("get up: clear my bit", move |turn| {
            let before = turn.update(self.bits, |bits| Some(bits & !mine));
            if before & mine != 0 { Flow::To(top) } else { Flow::Next }
        });
        thread.step("get up: claimed meanwhile; give the ticket back", move |turn| {
            summary(turn, self, |turn| turn.bump(self.parked, 1));
            Flow::Next
        });
        thread.step("get up: the claim's token comes", move |turn| {
            match turn.exchange(self.token[index], 1, 0) {
                Ok(()) => Flow::To(claimed),
                Err(_) => Flow::Wait,
            }
        });
    }

    fn checks(self, machine: &mut Machine) {
        machine.invariant(move |view| {
            let negative = [self.searching, self.parked].iter().any(|&word| view.get(word) < 0);
            if negative { Err("a count is negative".into()) } else { Ok(()) }
        });
        machine.at_rest(move |view| {
            let (searching, parked) = (view.get(self.searching), view.get(self.parked));
            if view.get(self.ran) < self.total {
                return Err(format!(
                    "lost wake-up: {} tasks wait",
                    self.total - view.get(self.ran)
                ));
            }
            if searching != 0 {
                return Err(format!("{searching} searchers have leaked"));
            }
            if parked != self.members || view.get(self.bits).count_ones() as i32 != parked {
                return Err(format!("{parked} members count as parked, with other bits"));
            }
            if view.get(self.driver) == 0 {
                return Err("nobody waits in the driver".into());
            }
            Ok(())
        });
    }
}

/// `members` members, posters that push so many tasks each, and members that wake up by themselves.
fn machine(
    variant: Variant,
    members: usize,
    posters: &[i32],
    by_itself: &[usize],
    long: bool,
) -> Machine {
    let mut machine = Machine::new();
    let total = posters.iter().sum();
    let idle = Idle::new(&mut machine, members as i32, total, variant, long);
    for (number, &tasks) in posters.iter().enumerate() {
        idle.poster(&mut machine, number, tasks);
    }
    for index in 0..members {
        idle.member(&mut machine, index);
    }
    for &index in by_itself {
        machine.start(idle.by_itself[index], 1);
    }
    idle.checks(&mut machine);
    machine
}

const SC: Memory = Memory::Sequential;

/// Findings P1 and P1f: no task is left, no searcher leaks, and somebody is in the driver.
#[test]
fn no_task_is_lost_between_posters_and_parking_members() {
    machine(Variant::AsBuilt, 2, &[2], &[], false).explore(SC).assert_holds();
    machine(Variant::AsBuilt, 2, &[1, 1], &[], false).explore(SC).assert_holds();
    machine(Variant::AsBuilt, 3, &[2], &[], false).explore(SC).assert_holds();
}

/// The same with the store buffers of x86.
#[test]
fn no_task_is_lost_with_store_buffers() {
    machine(Variant::AsBuilt, 2, &[1, 1], &[], false).explore(Memory::StoreBuffers).assert_holds();
}

/// Finding P1f: a task does not wait behind a long one while a member sleeps.
#[test]
fn no_task_waits_beside_a_sleeping_member() {
    machine(Variant::AsBuilt, 2, &[2], &[], true).explore(SC).assert_holds();
    machine(Variant::AsBuilt, 2, &[1, 1], &[], true).explore(SC).assert_holds();
}

/// Finding P2: tickets decide who is claimed, also for members that get up by themselves.
#[test]
fn members_that_wake_by_themselves_leak_no_searcher() {
    machine(Variant::AsBuilt, 2, &[2], &[0], false).explore(SC).assert_holds();
    machine(Variant::AsBuilt, 2, &[1], &[0, 1], false).explore(SC).assert_holds();
    machine(Variant::AsBuilt, 2, &[2], &[0], true).explore(SC).assert_holds();
}

/// Finding P1.
#[test]
fn seed_p1_looking_before_publishing_loses_a_task() {
    let machine = machine(Variant::LooksBeforePublishing, 2, &[1], &[], false);
    machine.explore(SC).assert_fails("lost wake-up");
}

/// Finding P1.
#[test]
fn seed_p1_leaving_the_searchers_before_publishing_loses_a_task() {
    let machine = machine(Variant::LeavesBeforePublishing, 2, &[2], &[], false);
    machine.explore(SC).assert_fails("lost wake-up");
}

/// Finding P1e.
#[test]
fn seed_p1e_without_every_members_last_look_a_task_waits() {
    let machine = machine(Variant::OnlyLastSearcherLooks, 2, &[2], &[], true);
    machine.explore(SC).assert_fails("lost wake-up");
}

/// Finding P2.
#[test]
fn seed_p2_waking_without_a_ticket_breaks_the_counts() {
    let machine = machine(Variant::WakesWithoutTicket, 2, &[1], &[0], false);
    assert!(machine.explore(SC).counterexample().is_some());
}

/// A push that x86 may keep in its store buffer while the summary is read.
#[test]
fn weak_a_plain_push_loses_a_task_on_x86() {
    let build = || machine(Variant::PlainPush, 1, &[1], &[], false);
    build().explore(SC).assert_holds();
    build().explore(Memory::StoreBuffers).assert_fails("lost wake-up");
}

/// Invariant 4 of `idle.rs`.
#[test]
fn weak_nobody_waits_in_the_driver_if_the_last_leaves_it() {
    let machine = machine(Variant::LastLeavesDriver, 2, &[1], &[], false);
    machine.explore(SC).assert_fails("driver");
}
