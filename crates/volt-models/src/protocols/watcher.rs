//! A task in a LIFO slot behind a poll that does not end: `runtime::scheduler::{queues::lifo, stalls, parking}`
//! and `Worker::pass_on`.
//!
//! As built: a push into an empty LIFO slot wakes nobody if somebody watches, searches, or nobody is
//! parked. The watcher sleeps with a time-out and takes what waits behind a long poll. Whoever gives
//! the role up, or ends the last search, looks whether somebody is needed. Here an owner pushes once
//! and never returns; two other members park, search, run tasks from outside, and wake up by
//! themselves; any poll may be without end. A ticket and its bit are one step (`idle` has them apart).

use crate::explorer::{Flow, Label, Machine, Memory, Register, ThreadBuilder, Turn, Word};

const MEMBERS: usize = 2;
/// With the owner.
const ATTACHED: i32 = 3;

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    AsBuilt,
    /// The owner does not look whether somebody watches.
    PushesBlindly,
    /// The watcher does not look again after it gave the role up.
    RetiresBlindly,
    /// The end of the last search looks for tasks in queues only.
    EndsBlindly,
    /// A watcher that wakes up by itself does not care for a successor.
    GetsUpBlindly,
}

#[derive(Clone, Copy)]
struct Members {
    searching: Word,
    parked: Word,
    watcher: Word,
    /// 1: parked, and not claimed.
    bit: [Word; MEMBERS],
    token: [Word; MEMBERS],
    by_itself: [Word; MEMBERS],
    tasks: Word,
    lifo: Word,
    variant: Variant,
}

impl Members {
    /// An exchange of the summary, whose fields are words of the model.
    fn change(self, turn: &mut Turn<'_>, change: impl FnOnce(&mut Turn<'_>)) {
        turn.update(self.searching, |_| None);
        change(turn);
    }

    fn notify(self, thread: &mut ThreadBuilder<'_>) {
        let target = thread.register();
        let out = thread.label();
        thread.step("notify: load the summary", move |turn| {
            let wants = turn.load(self.searching) == 0 && turn.peek(self.parked) > 0;
            if wants { Flow::Next } else { Flow::To(out) }
        });
        thread.choice("notify: claim", MEMBERS, move |turn| {
            if turn.peek(self.searching) != 0 || turn.peek(self.parked) == 0 {
                turn.load(self.searching);
                return Flow::To(out);
            }
            let index = turn.way();
            if turn.peek(self.bit[index]) == 0 {
                return Flow::Wait;
            }
            self.change(turn, |turn| {
                turn.bump(self.parked, -1);
                turn.bump(self.searching, 1);
                turn.poke(self.bit[index], 0);
            });
            turn.set(target, index as i32);
            Flow::Next
        });
        thread.step("notify: unpark", move |turn| {
            let index = turn.reg(target) as usize;
            turn.set(target, 0);
            turn.then(|turn| turn.swap(self.token[index], 1))
        });
        thread.place(out);
        thread.step("notified", |_| Flow::Next);
    }

    fn owner(self, machine: &mut Machine) {
        let mut thread = machine.thread("owner");
        let out = thread.label();
        thread
            .step("push into the LIFO slot", move |turn| turn.then(|turn| turn.swap(self.lifo, 1)));
        thread.step("load the summary: is a watcher wanted?", move |turn| {
            let searching = turn.load(self.searching);
            let wants =
                searching == 0 && turn.peek(self.parked) > 0 && turn.peek(self.watcher) == 0;
            if wants && self.variant != Variant::PushesBlindly { Flow::Next } else { Flow::To(out) }
        });
        self.notify(&mut thread);
        thread.place(out);
        thread.step("a poll without end", |_| Flow::End);
    }

    fn member(self, machine: &mut Machine, index: usize) {
        let mut thread = machine.thread(format!("member {index}"));
        let (searching, had) = (thread.register(), thread.register());
        let [found, run, park, asleep, claimed, itself, expired] =
            std::array::from_fn(|_| thread.label());
        let top = thread.here();
        let take = move |turn: &mut Turn<'_>| {
            let before = turn.update(self.tasks, |tasks| (tasks > 0).then_some(tasks - 1));
            if before > 0 { Flow::To(found) } else { Flow::Next }
        };
        thread.step("take a task", take);
        thread.step("become a searcher", move |turn| {
            if turn.reg(searching) == 1 {
                return Flow::Next;
            }
            if 2 * turn.peek(self.searching) >= ATTACHED {
                return Flow::To(park);
            }
            turn.set(searching, 1);
            self.change(turn, |turn| turn.bump(self.searching, 1));
            Flow::Next
        });
        thread.step("search", take);
        thread.step("found nothing", move |_| Flow::To(park));
        thread.place(found);
        self.end_search(&mut thread, searching, run);
        thread.place(run);
        thread.choice("run it", 2, move |turn| Self::run(turn, top));

        thread.place(park);
        thread.step("park", move |turn| {
            let by = turn.reg(searching);
            turn.set(searching, 0);
            self.change(turn, |turn| {
                turn.bump(self.parked, 1);
                turn.bump(self.searching, -by);
                turn.poke(self.bit[index], 1);
                if turn.peek(self.watcher) == 0 {
                    turn.poke(self.watcher, index as i32 + 1);
                }
            });
            Flow::Next
        });
        thread.step("look at the queues once more", move |turn| {
            if turn.load(self.tasks) > 0 { Flow::Next } else { Flow::To(asleep) }
        });
        self.notify(&mut thread);
        thread.place(asleep);
        thread.choice("asleep", 3, move |turn| match turn.way() {
            0 => match turn.exchange(self.token[index], 1, 0) {
                Ok(()) => Flow::To(claimed),
                Err(_) => Flow::Wait,
            },
            1 if turn.peek(self.by_itself[index]) > 0 => {
                turn.bump(self.by_itself[index], -1);
                Flow::To(itself)
            }
            2 if turn.peek(self.watcher) == index as i32 + 1 => Flow::To(expired),
            _ => Flow::Wait,
        });
        thread.place(claimed);
        thread.step("claimed: drop the roles", move |turn| {
            turn.set(searching, 1);
            self.change(turn, |turn| self.without_roles(turn, index));
            Flow::To(top)
        });

        thread.place(itself);
        let searches = thread.register();
        self.get_up(&mut thread, index, (searches, had), asleep);
        let careless = thread.label();
        thread.step("up: was it the watcher, and is one wanted?", move |turn| {
            let was = turn.reg(had) == 1;
            turn.set(had, 0);
            if !was || self.variant == Variant::GetsUpBlindly {
                return Flow::To(careless);
            }
            let wants = turn.load(self.searching) == 0 && turn.peek(self.watcher) == 0;
            if wants { Flow::Next } else { Flow::To(careless) }
        });
        self.notify(&mut thread);
        thread.place(careless);
        thread.choice("run its own task", 2, move |turn| Self::run(turn, top));

        thread.place(expired);
        self.expired(&mut thread, index, asleep, found, searching);
    }

    /// A poll that ends, or one that does not.
    fn run(turn: &Turn<'_>, top: Label) -> Flow {
        if turn.way() == 0 { Flow::To(top) } else { Flow::End }
    }

    fn without_roles(self, turn: &mut Turn<'_>, index: usize) {
        if turn.peek(self.watcher) == index as i32 + 1 {
            turn.poke(self.watcher, 0);
        }
    }

    /// `Worker::end_search` and `pass_on`.
    fn end_search(self, thread: &mut ThreadBuilder<'_>, searching: Register, run: Label) {
        let unwatched = thread.register();
        let (tell, queues) = (thread.label(), thread.label());
        thread.step("end the search", move |turn| {
            if turn.reg(searching) == 0 {
                return Flow::To(run);
            }
            turn.set(searching, 0);
            let last = turn.peek(self.searching) == 1;
            self.change(turn, |turn| turn.bump(self.searching, -1));
            if last { Flow::Next } else { Flow::To(run) }
        });
        thread.step("pass_on: load the summary", move |turn| {
            turn.load(self.searching);
            if turn.peek(self.parked) == 0 {
                return Flow::To(run);
            }
            let looks = turn.peek(self.watcher) == 0 && self.variant != Variant::EndsBlindly;
            if looks { Flow::Next } else { Flow::To(queues) }
        });
        thread.step("pass_on: look at the LIFO slots", move |turn| {
            if turn.load(self.lifo) == 1 { Flow::To(tell) } else { Flow::Next }
        });
        thread.place(queues);
        thread.step("pass_on: look at the queues", move |turn| {
            if turn.load(self.tasks) > 0 { Flow::Next } else { Flow::To(run) }
        });
        thread.place(tell);
        thread.step("pass_on: notify", move |turn| turn.then(|turn| turn.set(unwatched, 0)));
        self.notify(thread);
    }

    /// `Idle::unpark_self`; if it was claimed meanwhile, it sleeps until the token comes.
    fn get_up(
        self,
        thread: &mut ThreadBuilder<'_>,
        index: usize,
        (searches, had): (Register, Register),
        asleep: Label,
    ) {
        thread.step("get up", move |turn| {
            if turn.peek(self.bit[index]) == 0 {
                return Flow::To(asleep);
            }
            let by = turn.reg(searches);
            turn.set(had, i32::from(turn.peek(self.watcher) == index as i32 + 1));
            self.change(turn, |turn| {
                self.without_roles(turn, index);
                turn.poke(self.bit[index], 0);
                turn.bump(self.parked, -1);
                turn.bump(self.searching, by);
            });
            Flow::Next
        });
    }

    /// `Worker::watch_expired`.
    fn expired(
        self,
        thread: &mut ThreadBuilder<'_>,
        index: usize,
        asleep: Label,
        found: Label,
        searching: Register,
    ) {
        let me = index as i32 + 1;
        let retire = thread.label();
        thread.step("watch: a task behind a long poll?", move |turn| {
            if turn.swap(self.lifo, 0) == 1 { Flow::Next } else { Flow::To(retire) }
        });
        thread.step("watch: get up with it, as a searcher", move |turn| {
            if turn.peek(self.bit[index]) == 0 {
                // Claimed meanwhile: the token is on its way, and it is a searcher anyway.
                return match turn.exchange(self.token[index], 1, 0) {
                    Ok(()) => {
                        self.without_roles(turn, index);
                        turn.set(searching, 1);
                        Flow::To(found)
                    }
                    Err(_) => Flow::Wait,
                };
            }
            turn.set(searching, 1);
            self.change(turn, |turn| {
                self.without_roles(turn, index);
                turn.poke(self.bit[index], 0);
                turn.bump(self.parked, -1);
                turn.bump(self.searching, 1);
            });
            Flow::To(found)
        });
        thread.place(retire);
        thread.step("watch: quiet: release the role", move |turn| {
            self.change(turn, |turn| self.without_roles(turn, index));
            let blind = self.variant == Variant::RetiresBlindly;
            if blind { Flow::To(asleep) } else { Flow::Next }
        });
        thread.step("watch: look at the LIFO slots again", move |turn| {
            if turn.load(self.lifo) == 1 { Flow::Next } else { Flow::To(asleep) }
        });
        thread.step("watch: take the role again", move |turn| {
            self.change(turn, |turn| {
                if turn.peek(self.watcher) == 0 {
                    turn.poke(self.watcher, me);
                }
            });
            Flow::To(asleep)
        });
    }
}

fn machine(variant: Variant, tasks: i32, by_itself: [i32; MEMBERS]) -> Machine {
    let mut machine = Machine::new();
    let members = Members {
        searching: machine.word("searching", 0),
        parked: machine.word("parked", 0),
        watcher: machine.word("watcher", 0),
        bit: machine.words("bit", 0),
        token: machine.words("token", 0),
        by_itself: machine.words("wakes by itself", 0),
        tasks: machine.word("tasks", 0),
        lifo: machine.word("lifo", 0),
        variant,
    };
    members.owner(&mut machine);
    for (index, times) in by_itself.into_iter().enumerate() {
        members.member(&mut machine, index);
        machine.start(members.by_itself[index], times);
    }
    let mut poster = machine.thread("poster");
    for _ in 0..tasks {
        poster.step("push a task", move |turn| turn.then(|turn| turn.add(members.tasks, 1)));
        members.notify(&mut poster);
    }
    machine.at_rest(move |view| {
        if view.get(members.parked) == 0 {
            // Everybody is in a poll that does not end.
            return Ok(());
        }
        if view.get(members.lifo) == 1 {
            return Err("stuck in the LIFO slot".into());
        }
        if view.get(members.tasks) > 0 { Err("a task is lost".into()) } else { Ok(()) }
    });
    machine
}

const SC: Memory = Memory::Sequential;

/// Edge LF1 and the progress notes of `idle.rs`: while a member is parked, somebody takes the task out
/// of the slot, although every poll may be without end.
#[test]
fn a_task_behind_a_long_poll_is_taken_by_the_watcher() {
    machine(Variant::AsBuilt, 0, [0, 0]).explore(SC).assert_holds();
    machine(Variant::AsBuilt, 1, [0, 0]).explore(SC).assert_holds();
    machine(Variant::AsBuilt, 1, [1, 0]).explore(SC).assert_holds();
}

#[test]
fn weak_a_push_that_does_not_look_for_a_watcher_is_stuck() {
    machine(Variant::PushesBlindly, 0, [0, 0]).explore(SC).assert_fails("stuck");
}

#[test]
fn weak_a_watcher_that_retires_without_a_last_look_leaves_a_task() {
    machine(Variant::RetiresBlindly, 0, [0, 0]).explore(SC).assert_fails("stuck");
}

#[test]
fn weak_the_end_of_a_search_that_ignores_the_slots_leaves_a_task() {
    machine(Variant::EndsBlindly, 1, [0, 0]).explore(SC).assert_fails("stuck");
}

#[test]
fn weak_a_watcher_that_gets_up_without_a_successor_leaves_a_task() {
    machine(Variant::GetsUpBlindly, 0, [1, 0]).explore(SC).assert_fails("stuck");
}
