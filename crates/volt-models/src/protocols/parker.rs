//! Tokens that wake a thread: `volt_sync::parker` and `runtime::scheduler::parking::park` (finding K4), and the
//! timers' hand-shake with the thread in the driver (`runtime::driver`, `time::timers`).

use crate::explorer::{BOTH, Flow, Machine, Memory};

/// `Parker::park_timeout` and `Park::sleep`: the sleeper may come back without a token, resets the
/// word, and looks for work; then it sleeps until it gets a token. `swap`: the reset is one.
fn token(swap: bool) -> Machine {
    const EMPTY: i32 = 0;
    const PARKED: i32 = 1;
    const NOTIFIED: i32 = 2;
    let mut machine = Machine::new();
    let (state, work) = (machine.word("state", EMPTY), machine.word("work", 0));
    let mut waker = machine.thread("waker");
    waker.step("post work", move |turn| turn.then(|turn| turn.store(work, 1)));
    waker.step("unpark: swap(NOTIFIED)", move |turn| turn.then(|turn| turn.swap(state, NOTIFIED)));

    let mut sleeper = machine.thread("sleeper");
    let (park, awake) = (sleeper.label(), sleeper.label());
    sleeper.step("begin: exchange EMPTY for PARKED", move |turn| {
        match turn.exchange(state, EMPTY, PARKED) {
            Ok(()) => Flow::Next,
            Err(_) => Flow::To(awake),
        }
    });
    sleeper.step("the wait times out", |_| Flow::Next);
    if swap {
        sleeper.step("swap(EMPTY)", move |turn| turn.then(|turn| turn.swap(state, EMPTY)));
    } else {
        sleeper.step("store(EMPTY)", move |turn| turn.then(|turn| turn.store(state, EMPTY)));
    }
    sleeper.place(awake);
    sleeper.step(
        "look for work",
        move |turn| {
            if turn.load(work) == 1 { Flow::End } else { Flow::Next }
        },
    );
    sleeper.place(park);
    sleeper.step("begin again", move |turn| match turn.exchange(state, EMPTY, PARKED) {
        Ok(()) | Err(_) => Flow::Next,
    });
    sleeper.step("asleep until NOTIFIED, which is taken", move |turn| {
        match turn.exchange(state, NOTIFIED, EMPTY) {
            Ok(()) => Flow::Next,
            Err(_) => Flow::Wait,
        }
    });
    sleeper.step("look for work", move |turn| {
        if turn.load(work) == 1 { Flow::End } else { Flow::Fail("a token without work".into()) }
    });
    machine
}

/// As built: the reset reads what it replaces.
#[test]
fn a_token_is_never_erased() {
    // The sleeper whose swap took the token sees the work, and ends.
    for memory in BOTH {
        token(true).explore(memory).assert_holds();
    }
}

/// Finding K4: on x86 the buffered store erases a token that came after it was made.
#[test]
fn seed_k4_a_plain_reset_loses_a_token() {
    token(false).explore(Memory::Sequential).assert_holds();
    token(false).explore(Memory::StoreBuffers).assert_fails("wait for ever");
}

/// What the registrars do with the word of the thread in the driver.
#[derive(Clone, Copy, PartialEq)]
enum Timers {
    AsBuilt,
    /// The waiter looks at the timers before it publishes that it waits.
    LooksFirst,
    /// No fences.
    NoFences,
}

/// `Timers::prepare_wait` against two registrars (`Shard::announce`), with one `next` each. The
/// waiter waits in the reactor until its time-out or the wake-up, and then looks again. Times: the
/// timers are due at 5 and 3. Its sleep must not be longer than the earliest timer that is
/// registered.
fn timers(how: Timers) -> Machine {
    const NEVER: i32 = 9;
    const AWAKE: i32 = 0;
    let mut machine = Machine::new();
    let until = machine.word("sleeping_until", AWAKE);
    let next: [_; 2] = machine.words("next", NEVER);
    let bell = machine.word("eventfd", 0);
    let done = machine.word("registrars done", 0);
    let timeout = machine.word("timeout of the waiter", 0);
    for (shard, deadline) in [(0, 5), (1, 3)] {
        let mut registrar = machine.thread(format!("registrar {deadline}"));
        let (seen, out, ring) = (registrar.register(), registrar.label(), registrar.label());
        registrar
            .step("lower `next`", move |turn| turn.then(|turn| turn.store(next[shard], deadline)));
        if how != Timers::NoFences {
            registrar.step("fence", |turn| turn.then(|turn| turn.fence()));
        }
        registrar.step("load sleeping_until", move |turn| {
            let value = turn.load(until);
            turn.set(seen, value);
            Flow::Next
        });
        let again = registrar.here();
        registrar.step("earlier than that? exchange for AWAKE", move |turn| {
            if deadline >= turn.reg(seen) {
                return Flow::To(out);
            }
            match turn.exchange(until, turn.reg(seen), AWAKE) {
                Ok(()) => Flow::To(ring),
                Err(changed) => {
                    turn.set(seen, changed);
                    Flow::To(again)
                }
            }
        });
        registrar.place(ring);
        registrar.step("unpark the reactor", move |turn| turn.then(|turn| turn.swap(bell, 1)));
        registrar.place(out);
        registrar.step("registered", move |turn| turn.then(|turn| turn.bump(done, 1)));
    }
    let mut waiter = machine.thread("waiter");
    let least = waiter.register();
    let top = waiter.here();
    let publish = move |turn: &mut crate::explorer::Turn<'_>| {
        turn.poke(timeout, 0);
        turn.set(least, NEVER);
        turn.then(|turn| turn.store(until, NEVER))
    };
    if how != Timers::LooksFirst {
        waiter.step("sleeping_until = NEVER", publish);
        if how == Timers::AsBuilt {
            waiter.step("fence", |turn| turn.then(|turn| turn.fence()));
        }
    }
    for shard in next {
        waiter.step("look at a shard's `next`", move |turn| {
            let value =
                turn.load(shard).min(if turn.reg(least) == 0 { NEVER } else { turn.reg(least) });
            turn.set(least, value);
            Flow::Next
        });
    }
    waiter.step("narrow sleeping_until", move |turn| {
        let value = turn.reg(least);
        turn.then(|turn| turn.store(until, value))
    });
    waiter.step("wait in the reactor", move |turn| {
        let value = turn.reg(least);
        turn.poke(timeout, value);
        Flow::Next
    });
    waiter.step("woken by the reactor", move |turn| {
        if turn.peek(bell) == 0 { Flow::Wait } else { turn.then(|turn| turn.swap(bell, 0)) }
    });
    waiter.step("end_wait: sleeping_until = AWAKE", move |turn| {
        turn.poke(timeout, 0);
        turn.set(least, 0);
        turn.store(until, AWAKE);
        Flow::To(top)
    });
    machine.at_rest(move |view| {
        let earliest = next.iter().map(|&next| view.get(next)).min().expect("two");
        if view.get(done) == 2 && view.get(timeout) <= earliest {
            return Ok(());
        }
        Err(format!("sleeps until {}, though a timer is due at {earliest}", view.get(timeout)))
    });
    machine
}

/// Edges TW1 and TW2, with the second, unfenced store that narrows the sleep: it may erase AWAKE, but
/// then the wake-up of whoever set it is on its way.
#[test]
fn the_thread_in_the_driver_never_sleeps_past_a_timer() {
    for memory in BOTH {
        timers(Timers::AsBuilt).explore(memory).assert_holds();
    }
}

#[test]
fn weak_looking_at_the_timers_before_publishing_the_sleep_misses_one() {
    timers(Timers::LooksFirst).explore(Memory::Sequential).assert_fails("sleeps until");
}

#[test]
fn weak_a_sleep_without_fences_misses_a_timer() {
    timers(Timers::NoFences).explore(Memory::Sequential).assert_holds();
    timers(Timers::NoFences).explore(Memory::StoreBuffers).assert_fails("sleeps until");
}
