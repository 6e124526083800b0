//! Which thread of a pool is awake: `volt_pool::sync_word`, with `engine` and `worker`.
//!
//! As built: `[spawned][idle][notified][state]` in one word; idle threads sleep on a counter of
//! events. Left out: mail for one thread.

use crate::explorer::{Flow, Label, Machine, Memory, Register, ThreadBuilder, Word};

const STATE: i32 = 3;
const PENDING: i32 = 0;
const SIGNALED: i32 = 1;
const WAKING: i32 = 2;
const SHUTDOWN: i32 = 3;
const NOTIFIED: i32 = 4;
const IDLE: i32 = 8;
const SPAWNED: i32 = 64;

const fn idle(word: i32) -> i32 {
    word / IDLE % 8
}

const fn spawned(word: i32) -> i32 {
    word / SPAWNED
}

const fn with_state(word: i32, state: i32) -> i32 {
    word & !STATE | state
}

/// What differs from the protocol as it is built.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    AsBuilt,
    /// A thread that could not be started only takes its count back (finding T2).
    FailureStaysSignaled,
    /// Shutdown does not wake the sleepers (finding T3).
    ShutdownWakesNobody,
    /// A notification ends with a look that no fence orders (finding T7).
    LooksWithoutFence,
    /// Whoever consumed `notified` does not look for more when it has found something.
    ConsumerLooksNoMore,
    /// A thread that finds a queue's lock held believes the queue empty, and the holder does not
    /// look at what came meanwhile (finding T8), nor anywhere else.
    ForgetsAfterUnlock,
}

#[derive(Clone, Copy)]
struct Pool {
    word: Word,
    event: Word,
    tasks: Word,
    queue_lock: Word,
    ran: Word,
    /// Threads to be started; taken by the threads of the model.
    starts: Word,
    failures: Word,
    long: Word,
    max: i32,
    total: i32,
    has_long: bool,
    apart: bool,
    variant: Variant,
}

impl Pool {
    /// Whoever consumed a notification looks at all queues once it has found something.
    fn consumer_looks(&self) -> bool {
        !matches!(self.variant, Variant::ConsumerLooksNoMore | Variant::ForgetsAfterUnlock)
    }

    /// `SyncWord::notify` or, `waking`, `hand_on`; starts a thread if that says so.
    fn notify(self, thread: &mut ThreadBuilder<'_>, waking: bool) {
        let word = thread.register();
        let [slow, post, start, failed, out] = std::array::from_fn(|_| thread.label());
        if !waking {
            if self.variant != Variant::LooksWithoutFence {
                thread.step("notify: fence", |turn| turn.then(|turn| turn.fence()));
            }
            thread.step("notify: look at the word", move |turn| {
                let now = turn.load(self.word);
                let nobody = idle(now) == 0 && spawned(now) >= self.max;
                let skip = now & NOTIFIED != 0 && (now & STATE != PENDING || nobody);
                if skip { Flow::To(out) } else { Flow::Next }
            });
        }
        thread.step("notify: load the word", move |turn| {
            let now = turn.load(self.word);
            turn.set(word, now);
            Flow::Next
        });
        thread.place(slow);
        thread.step("notify: exchange", move |turn| {
            let now = turn.reg(word);
            let state = now & STATE;
            if state == SHUTDOWN {
                return Flow::To(out);
            }
            let can_wake = waking || state == PENDING;
            let wakes = can_wake && idle(now) > 0;
            let starts = can_wake && !wakes && spawned(now) < self.max;
            let mut next = now | NOTIFIED;
            if wakes || starts {
                next = with_state(next, SIGNALED);
            } else if waking {
                next = with_state(next, PENDING);
            } else if now & NOTIFIED != 0 {
                return Flow::To(out);
            }
            if starts {
                next += SPAWNED;
            }
            match turn.exchange(self.word, now, next) {
                Err(changed) => {
                    turn.set(word, changed);
                    Flow::To(slow)
                }
                Ok(()) if wakes => Flow::To(post),
                Ok(()) if starts => Flow::To(start),
                Ok(()) => Flow::To(out),
            }
        });
        thread.place(post);
        thread.step("post an event", move |turn| {
            turn.add(self.event, 1);
            Flow::To(out)
        });
        thread.place(start);
        thread.choice("start a thread", 2, move |turn| {
            if turn.way() == 0 {
                turn.bump(self.starts, 1);
                return Flow::To(out);
            }
            if turn.peek(self.failures) == 0 {
                return Flow::Wait;
            }
            turn.bump(self.failures, -1);
            Flow::To(failed)
        });
        thread.place(failed);
        self.start_failed(thread, out);
        thread.place(out);
        thread.step("notified", move |turn| turn.then(|turn| turn.set(word, 0)));
    }

    /// `SyncWord::start_failed`; with no thread left, the caller runs the tasks.
    fn start_failed(self, thread: &mut ThreadBuilder<'_>, out: Label) {
        thread.step("start_failed: exchange", move |turn| {
            let before = turn.update(self.word, |now| {
                let mut next = now - SPAWNED;
                if self.variant != Variant::FailureStaysSignaled {
                    if now & STATE == SIGNALED {
                        next = with_state(next, PENDING);
                    }
                    if spawned(next) == 0 {
                        next &= !NOTIFIED;
                    }
                }
                Some(next)
            });
            if spawned(before) == 1 { Flow::Next } else { Flow::To(out) }
        });
        thread.step("run inline what is queued", move |turn| {
            if self.variant == Variant::FailureStaysSignaled {
                return Flow::To(out);
            }
            let count = turn.swap(self.tasks, 0);
            turn.bump(self.ran, count);
            Flow::To(out)
        });
    }

    fn producer(self, machine: &mut Machine, number: usize, tasks: i32, plain: bool) {
        let mut thread = machine.thread(format!("producer {number}"));
        for _ in 0..tasks {
            thread.step("push a task", move |turn| {
                if plain {
                    let now = turn.peek(self.tasks) + 1;
                    return turn.then(|turn| turn.store(self.tasks, now));
                }
                turn.then(|turn| turn.add(self.tasks, 1))
            });
            self.notify(&mut thread, false);
        }
    }

    fn worker(self, machine: &mut Machine, index: usize, running: bool) {
        let mut thread = machine.thread(format!("thread {index}"));
        let (waking, word) = (thread.register(), thread.register());
        let [run, search, exit, wait] = std::array::from_fn(|_| thread.label());
        if !running {
            thread.step("not started", move |turn| {
                if turn.peek(self.starts) == 0 {
                    return Flow::Wait;
                }
                turn.bump(self.starts, -1);
                Flow::Next
            });
        }
        thread.place(wait);
        self.wait(&mut thread, waking, word, search, exit);
        thread.place(search);
        self.find(&mut thread, run, wait, waking);
        thread.place(run);
        thread.step("run the task", move |turn| {
            if self.has_long && turn.peek(self.long) == 0 {
                turn.poke(self.long, 1);
                return Flow::Next;
            }
            turn.bump(self.ran, 1);
            Flow::To(search)
        });
        thread.step("the long task waits for all others", move |turn| {
            if turn.peek(self.ran) < self.total - 1 {
                return Flow::Wait;
            }
            turn.bump(self.ran, 1);
            Flow::To(search)
        });
        thread.place(exit);
        thread.step("exited", move |turn| {
            turn.add(self.word, -SPAWNED);
            Flow::End
        });
    }

    /// `SyncWord::wait`.
    fn wait(
        self,
        thread: &mut ThreadBuilder<'_>,
        waking: Register,
        word: Register,
        search: Label,
        exit: Label,
    ) {
        let (asleep, event) = (thread.register(), thread.register());
        let (again, sleep) = (thread.label(), thread.label());
        let top = thread.here();
        thread.step("wait: load the event", move |turn| {
            let now = turn.load(self.event);
            turn.set(event, now);
            Flow::Next
        });
        thread.step("wait: load the word", move |turn| {
            let now = turn.load(self.word);
            turn.set(word, now);
            Flow::Next
        });
        thread.place(again);
        thread.step("wait: exchange", move |turn| {
            let (now, sleeps) = (turn.reg(word), turn.reg(asleep) == 1);
            if now & STATE == SHUTDOWN {
                return Flow::To(exit);
            }
            let notified = now & NOTIFIED != 0;
            let mut next = now;
            if notified {
                next &= !NOTIFIED;
                if now & STATE == SIGNALED {
                    next = with_state(next, WAKING);
                }
                if sleeps {
                    next -= IDLE;
                }
            } else if sleeps {
                return Flow::To(sleep);
            } else {
                next += IDLE;
                if turn.reg(waking) == 1 {
                    next = with_state(next, PENDING);
                }
            }
            match turn.exchange(self.word, now, next) {
                Err(changed) => {
                    turn.set(word, changed);
                    Flow::To(again)
                }
                Ok(()) if notified => {
                    let role = now & STATE == SIGNALED || turn.reg(waking) == 1 && !sleeps;
                    turn.set(waking, i32::from(role));
                    for register in [word, asleep, event] {
                        turn.set(register, 0);
                    }
                    Flow::To(search)
                }
                Ok(()) => {
                    turn.set(asleep, 1);
                    turn.set(word, next);
                    Flow::To(again)
                }
            }
        });
        thread.place(sleep);
        thread.step("wait: asleep until another event", move |turn| {
            if turn.peek(self.event) == turn.reg(event) { Flow::Wait } else { Flow::To(top) }
        });
    }

    /// `Worker::live` and `search`: finds a task in a queue with a try-lock, passes the role on, and
    /// goes on at `run`; otherwise at `wait`.
    fn find(self, thread: &mut ThreadBuilder<'_>, run: Label, wait: Label, waking: Register) {
        let (more, tried) = (thread.register(), thread.register());
        let [nothing, shy, hand_on, tell, look] = std::array::from_fn(|_| thread.label());
        let top = thread.here();
        thread.step("find: anything there?", move |turn| {
            if turn.load(self.tasks) == 0 { Flow::To(nothing) } else { Flow::Next }
        });
        thread.step("find: try_lock the queue", move |turn| {
            if self.apart {
                return if turn.peek(self.tasks) > 0 { Flow::Next } else { Flow::To(nothing) };
            }
            if turn.peek(self.tasks) > 0 && turn.swap(self.queue_lock, 1) == 0 {
                return Flow::Next;
            }
            Flow::To(nothing)
        });
        thread.step("find: pop", move |turn| {
            let before = turn.update(self.tasks, |tasks| Some((tasks - 1).max(0)));
            if before == 0 { Flow::To(nothing) } else { Flow::Next }
        });
        thread.step("find: unlock, which tells whether more is there", move |turn| {
            let left = turn.peek(self.tasks) > 0
                && !self.apart
                && self.variant != Variant::ForgetsAfterUnlock;
            turn.set(more, i32::from(left));
            turn.set(tried, 0);
            turn.swap(self.queue_lock, 0);
            match (turn.reg(waking) == 1, left) {
                (true, true) => Flow::To(hand_on),
                (true, false) => Flow::Next,
                (false, true) => Flow::To(tell),
                (false, false) if self.consumer_looks() => Flow::To(look),
                (false, false) => Flow::To(run),
            }
        });
        thread.step("found: end the role, consume `notified`", move |turn| {
            turn.set(waking, 0);
            turn.then(|turn| {
                turn.update(self.word, |now| {
                    (now & STATE == WAKING).then_some(with_state(now, PENDING) & !NOTIFIED)
                })
            })
        });
        thread.step("found: fence", |turn| turn.then(|turn| turn.fence()));
        thread.place(look);
        thread.step("found: is there more?", move |turn| {
            if turn.load(self.tasks) > 0 { Flow::To(tell) } else { Flow::To(run) }
        });
        thread.place(hand_on);
        thread.step("found, and there is more: hand the role on", move |turn| {
            turn.set(waking, 0);
            turn.set(more, 0);
            Flow::Next
        });
        self.notify(thread, true);
        thread.step("go on", move |_| Flow::To(run));
        thread.place(tell);
        thread.step("there is more", move |turn| turn.then(|turn| turn.set(more, 0)));
        self.notify(thread, false);
        thread.step("go on", move |_| Flow::To(run));
        thread.place(nothing);
        thread.step("nothing: begin_search, once", move |turn| {
            if turn.reg(tried) == 1 || turn.reg(waking) == 1 {
                return Flow::To(shy);
            }
            turn.set(tried, 1);
            let before = turn.update(self.word, |now| {
                (now & STATE == PENDING).then_some(with_state(now, WAKING))
            });
            if before & STATE == PENDING {
                turn.set(waking, 1);
                return Flow::To(top);
            }
            Flow::To(shy)
        });
        thread.place(shy);
        thread.step("nothing", move |turn| {
            turn.set(tried, 0);
            Flow::To(wait)
        });
    }

    fn closer(self, machine: &mut Machine) {
        let mut thread = machine.thread("closer");
        thread.step("shut_down", move |turn| {
            turn.then(|turn| turn.update(self.word, |now| Some(now | SHUTDOWN)))
        });
        if self.variant != Variant::ShutdownWakesNobody {
            thread.step("post_all", move |turn| turn.then(|turn| turn.add(self.event, 1)));
        }
        thread.step("wait for the threads", move |turn| {
            if spawned(turn.load(self.word)) == 0 { Flow::Next } else { Flow::Wait }
        });
        thread.step("drain what is queued", move |turn| turn.then(|turn| turn.swap(self.tasks, 0)));
    }
}

/// What happens in a model.
#[derive(Clone, Copy)]
struct Scene {
    variant: Variant,
    /// Tasks of each producer.
    producers: &'static [i32],
    max: i32,
    /// Threads that are started already.
    running: i32,
    failures: i32,
    /// The first task ends after all others.
    long: bool,
    /// Each task is in a queue of its own, so that who takes one is not told of others.
    apart: bool,
    /// Pushes are plain stores.
    plain: bool,
    /// An older notification is still to be consumed.
    notified: bool,
    shutdown: bool,
}

const SCENE: Scene = Scene {
    variant: Variant::AsBuilt,
    producers: &[2],
    max: 2,
    running: 0,
    failures: 0,
    long: false,
    apart: false,
    plain: false,
    notified: false,
    shutdown: false,
};

fn machine(scene: Scene) -> Machine {
    let mut machine = Machine::new();
    let pool = Pool {
        word: machine.word("word", scene.running * SPAWNED + i32::from(scene.notified) * NOTIFIED),
        event: machine.word("event", 0),
        tasks: machine.word("tasks", 0),
        queue_lock: machine.word("queue's lock", 0),
        ran: machine.word("ran", 0),
        starts: machine.word("starts", 0),
        failures: machine.word("failures", scene.failures),
        long: machine.word("long", 0),
        max: scene.max,
        total: scene.producers.iter().sum(),
        has_long: scene.long,
        apart: scene.apart,
        variant: scene.variant,
    };
    for (number, &tasks) in scene.producers.iter().enumerate() {
        pool.producer(&mut machine, number, tasks, scene.plain);
    }
    for index in 0..scene.max {
        pool.worker(&mut machine, index as usize, index < scene.running);
    }
    if scene.shutdown {
        pool.closer(&mut machine);
    }
    machine.invariant(move |view| {
        let word = view.get(pool.word);
        if word & STATE == SIGNALED && word & NOTIFIED == 0 {
            return Err("SIGNALED, but nothing to consume".into());
        }
        Ok(())
    });
    machine.at_rest(move |view| {
        if scene.shutdown {
            let ended = view.has_ended("closer");
            return if ended { Ok(()) } else { Err("shutdown hangs".into()) };
        }
        let ran = view.get(pool.ran);
        if ran < pool.total {
            return Err(format!("lost wake-up: {} tasks have not run", pool.total - ran));
        }
        Ok(())
    });
    machine
}

const SC: Memory = Memory::Sequential;

/// Finding T1 (which held in the seed): no task is left, and none waits behind a long one while a
/// thread sleeps or could be started.
#[test]
fn no_task_is_left_and_none_waits_beside_a_sleeping_thread() {
    machine(SCENE).explore(SC).assert_holds();
    machine(Scene { producers: &[1, 1], ..SCENE }).explore(SC).assert_holds();
    machine(Scene { long: true, ..SCENE }).explore(SC).assert_holds();
    machine(Scene { producers: &[1, 1], running: 2, long: true, ..SCENE })
        .explore(SC)
        .assert_holds();
    machine(Scene { producers: &[3], running: 1, ..SCENE }).explore(SC).assert_holds();
}

/// Finding T2: threads that cannot be started leave no trace; the caller runs the tasks.
#[test]
fn a_failed_start_leaves_the_pool_alive() {
    machine(Scene { failures: 1, ..SCENE }).explore(SC).assert_holds();
    machine(Scene { failures: 2, producers: &[1, 1], ..SCENE }).explore(SC).assert_holds();
    machine(Scene { failures: 1, running: 1, producers: &[1, 1], ..SCENE })
        .explore(SC)
        .assert_holds();
}

/// Finding T2.
#[test]
fn seed_t2_a_failed_start_kills_the_pool() {
    let scene = Scene { variant: Variant::FailureStaysSignaled, failures: 1, ..SCENE };
    machine(scene).explore(SC).assert_fails("lost wake-up");
}

/// Findings T3 and T5: shutdown reaches every thread, also if there is none.
#[test]
fn shutdown_ends_every_thread() {
    let scene = Scene { shutdown: true, producers: &[1], ..SCENE };
    machine(Scene { running: 2, ..scene }).explore(SC).assert_holds();
    machine(scene).explore(SC).assert_holds();
    machine(Scene { producers: &[], max: 0, ..scene }).explore(SC).assert_holds();
    let scene = Scene { variant: Variant::ShutdownWakesNobody, running: 1, max: 1, ..scene };
    machine(scene).explore(SC).assert_fails("shutdown hangs");
}

/// Finding T7: a push by a plain store, and a look at the word before it has arrived.
#[test]
fn seed_t7_a_look_without_fence_loses_a_task_on_x86() {
    // A notification from before is still to be consumed.
    let scene = Scene { producers: &[1], max: 1, running: 1, plain: true, notified: true, ..SCENE };
    machine(scene).explore(Memory::StoreBuffers).assert_holds();
    let scene = Scene { variant: Variant::LooksWithoutFence, ..scene };
    machine(scene).explore(SC).assert_holds();
    machine(scene).explore(Memory::StoreBuffers).assert_fails("lost wake-up");
}

/// Finding T8: the holder of a queue's try-lock does not look at what came meanwhile.
#[test]
fn seed_t8_a_contended_lock_swallows_a_notification() {
    let scene = Scene { running: 2, long: true, producers: &[2], ..SCENE };
    machine(scene).explore(SC).assert_holds();
    let scene = Scene { variant: Variant::ForgetsAfterUnlock, ..scene };
    machine(scene).explore(SC).assert_fails("lost wake-up");
}

/// Two pushes to different queues set `notified` once. The thread that consumes it takes one task; if
/// it were not to look for more, a second thread, whose search came before the push, would sleep while
/// the other task waits for the end of a poll.
#[test]
fn tasks_in_two_queues_share_one_notification() {
    let scene = Scene { running: 2, long: true, apart: true, ..SCENE };
    machine(scene).explore(SC).assert_holds();
    let scene = Scene { variant: Variant::ConsumerLooksNoMore, ..scene };
    machine(scene).explore(SC).assert_fails("lost wake-up");
}
