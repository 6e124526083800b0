//! Random programs do on Volt what they do on Tokio, at the same time.
//!
//! A program is some tasks, each a list of steps: they wait for locks, permits, messages, each other and the time, give up
//! after a while, choose what comes first, spawn, abort, panic. `random_programs/play.rs` plays it by the names of both
//! runtimes, on a paused clock, and notes when each step was done and with what result. So that this does not depend on the
//! order in which a runtime polls, each task goes on by itself in a millisecond of its own, one of 32, and gives up in another:
//! only one at a time does something, and those that it wakes note that and wait for their turn.
//!
//! Compared are Tokio, Volt on one thread, and Volt in simulations of several workers, with random orders of their
//! steps.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "a test")]

#[path = "support/random.rs"]
mod random;

use proptest::collection::vec;
use proptest::prelude::*;
use volt::runtime::sim::Sim;

/// What happened, at what time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Event {
    ms: u64,
    task: u64,
    what: String,
}

#[derive(Clone, Debug)]
struct Program {
    /// All tasks are of a `LocalSet`.
    is_local: bool,
    tasks: Vec<Vec<Op>>,
}

/// A step of a task. Limits are in rounds of 32 ms.
#[derive(Clone, Debug)]
enum Op {
    Do(Act),
    Wait(Wait, Option<u64>),
    Either(Wait, Wait, u64),
    Both(Wait, Wait, u64),
}

/// What a task may wait for.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Sleep(u64),
    /// One that is put off before it ends.
    SleepOn(u64, u64),
    Yield(u32),
    Burst(u32),
    Lock(usize),
    LockBriefly(usize, u64),
    Read(usize),
    Write(usize),
    Acquire(usize, u32),
    Notified(usize),
    Once(usize, bool),
    Send(usize, u32),
    Reserve(usize),
    Closed(usize),
    Recv(usize),
    RecvUnbounded(usize),
    Broadcast,
    Changed,
    AtLeast(u32),
    Unwatched,
    Answer,
    Join(usize),
    JoinNext,
    Shutdown,
    Tick,
}

/// What it does at once.
#[derive(Clone, Debug)]
enum Act {
    Release(usize),
    Downgrade(usize),
    Split(usize),
    Forget(usize),
    TryLock(usize),
    TryRead(usize),
    TryWrite(usize),
    TryAcquire(usize, u32),
    AddPermits(usize, usize),
    ForgetPermits(usize, usize),
    CloseSemaphore(usize),
    NotifyOne(usize),
    NotifyLast(usize),
    NotifyWaiters(usize),
    TrySend(usize, u32),
    TryRecv(usize),
    CloseReceiver(usize),
    DropReceiver(usize),
    DropSender(usize),
    LookAtChannel(usize),
    SendUnbounded(u32),
    Publish(u32),
    Subscribe,
    Resubscribe,
    Unsubscribe,
    Watch,
    Unwatch,
    Set(u32),
    Raise(u32),
    Ask,
    Tell(u32),
    Ignore,
    Spawn(Vec<Op>),
    SpawnInSet(Vec<Op>),
    Abort(usize),
    IsFinished(usize),
    Detach(usize),
    AbortAll,
    DropSet,
    TryJoinNext,
    StartTicks(u64, Missed),
    ResetTicks,
    Panic,
}

#[derive(Clone, Copy, Debug)]
enum Missed {
    Burst,
    Delay,
    Skip,
}

macro_rules! play_on {
    ($module:ident, $runtime:ident) => {
        mod $module {
            use ::$runtime as rt;
            include!("random_programs/play.rs");
            include!("random_programs/waits.rs");
            include!("random_programs/acts.rs");
        }
    };
}

play_on!(on_tokio, tokio);
play_on!(on_volt, volt);

/// Waits for what nobody else lacks meanwhile.
fn free_waits() -> impl Strategy<Value = Wait> {
    let index = 0..2_usize;
    prop_oneof![
        2 => (0..4_u64).prop_map(Wait::Sleep),
        1 => (0..4_u64, 0..4_u64).prop_map(|(first, then)| Wait::SleepOn(first, then)),
        1 => (1..4_u32).prop_map(Wait::Yield),
        3 => index.clone().prop_map(Wait::Notified),
        4 => (index.clone(), 0..9_u32).prop_map(|(index, value)| Wait::Send(index, value)),
        1 => index.prop_map(Wait::Closed),
        3 => Just(Wait::Broadcast),
        2 => Just(Wait::Changed),
        2 => (0..9_u32).prop_map(Wait::AtLeast),
        1 => Just(Wait::Unwatched),
        2 => Just(Wait::Answer),
        3 => (0..4_usize).prop_map(Wait::Join),
        3 => Just(Wait::JoinNext),
        1 => Just(Wait::Shutdown),
        2 => Just(Wait::Tick),
    ]
}

fn waits() -> impl Strategy<Value = Wait> {
    let index = 0..2_usize;
    let others = prop_oneof![
        4 => index.clone().prop_map(Wait::Lock),
        2 => (index.clone(), 0..3_u64).prop_map(|(index, rounds)| Wait::LockBriefly(index, rounds)),
        3 => index.clone().prop_map(Wait::Read),
        3 => index.clone().prop_map(Wait::Write),
        4 => (index.clone(), 0..4_u32).prop_map(|(index, permits)| Wait::Acquire(index, permits)),
        2 => (index.clone(), any::<bool>()).prop_map(|(index, is_error)| Wait::Once(index, is_error)),
        4 => index.prop_map(Wait::Recv),
        2 => (0..4_usize).prop_map(Wait::RecvUnbounded),
    ];
    prop_oneof![free_waits(), others]
}

/// Also for a place in a channel: not for tasks that may be cancelled. Whoever waits for the place, another one for its message, and one
/// for the end of the task, or for what else it held, would be woken one after the other, or not.
fn all_waits() -> impl Strategy<Value = Wait> {
    prop_oneof![14 => waits(), 1 => (0..2_usize).prop_map(Wait::Reserve)]
}

fn acts() -> impl Strategy<Value = Act> {
    let index = 0..2_usize;
    let value = 0..9_u32;
    let missed = prop::sample::select(vec![Missed::Burst, Missed::Delay, Missed::Skip]);
    let held = prop_oneof![
        6 => (0..4_usize).prop_map(Act::Release),
        2 => (0..4_usize).prop_map(Act::Downgrade),
        2 => (0..4_usize).prop_map(Act::Split),
        1 => (0..4_usize).prop_map(Act::Forget),
        1 => index.clone().prop_map(Act::TryLock),
        1 => index.clone().prop_map(Act::TryRead),
        1 => index.clone().prop_map(Act::TryWrite),
        1 => (index.clone(), 0..4_u32).prop_map(|(index, permits)| Act::TryAcquire(index, permits)),
        2 => (index.clone(), 1..3_usize).prop_map(|(index, permits)| Act::AddPermits(index, permits)),
        1 => (index.clone(), 0..3_usize).prop_map(|(index, permits)| Act::ForgetPermits(index, permits)),
    ];
    let told = prop_oneof![
        6 => index.clone().prop_map(Act::NotifyOne),
        2 => index.clone().prop_map(Act::NotifyLast),
        2 => index.clone().prop_map(Act::NotifyWaiters),
        2 => (index.clone(), value.clone()).prop_map(|(index, value)| Act::TrySend(index, value)),
        2 => index.clone().prop_map(Act::TryRecv),
        2 => index.clone().prop_map(Act::LookAtChannel),
        3 => value.clone().prop_map(Act::SendUnbounded),
        4 => value.clone().prop_map(Act::Publish),
        3 => Just(Act::Subscribe),
        1 => Just(Act::Resubscribe),
        1 => Just(Act::Unsubscribe),
        2 => Just(Act::Watch),
        1 => Just(Act::Unwatch),
        2 => value.clone().prop_map(Act::Set),
        1 => value.clone().prop_map(Act::Raise),
        2 => Just(Act::Ask),
        2 => value.clone().prop_map(Act::Tell),
        1 => Just(Act::Ignore),
    ];
    let tasks = prop_oneof![
        2 => (0..4_usize).prop_map(Act::Abort),
        1 => (0..4_usize).prop_map(Act::IsFinished),
        1 => (0..4_usize).prop_map(Act::Detach),
        1 => Just(Act::AbortAll),
        1 => Just(Act::DropSet),
        1 => Just(Act::TryJoinNext),
        3 => (1..4_u64, missed).prop_map(|(period, missed)| Act::StartTicks(period, missed)),
        1 => Just(Act::ResetTicks),
    ];
    let ends = prop_oneof![
        index.clone().prop_map(Act::CloseSemaphore),
        index.clone().prop_map(Act::CloseReceiver),
        index.clone().prop_map(Act::DropReceiver),
        index.prop_map(Act::DropSender),
        Just(Act::Panic),
    ];
    prop_oneof![12 => held, 16 => told, 6 => tasks, 1 => ends]
}

fn ops(waits: impl Strategy<Value = Wait> + Clone) -> impl Strategy<Value = Op> {
    let (one, other) = (waits.clone(), waits.clone());
    let two = (waits.clone(), waits.clone());
    let limit = || 0..6_u64;
    prop_oneof![
        5 => acts().prop_map(Op::Do),
        4 => (waits, prop::option::weighted(0.8, limit())).prop_map(|(wait, limit)| Op::Wait(wait, limit)),
        // Not beside others: how many are done in one poll differs.
        1 => prop::sample::select(vec![1, 100, 200]).prop_map(|times| Op::Wait(Wait::Burst(times), None)),
        2 => (one, other, limit()).prop_map(|(one, other, limit)| Op::Either(one, other, limit)),
        1 => (two, limit()).prop_map(|((one, other), limit)| Op::Both(one, other, limit)),
    ]
}

fn programs() -> impl Strategy<Value = Program> {
    let child = vec(ops(waits().boxed()), 0..8);
    // Several of these may be cancelled at once, in any order.
    let child_in_set = vec(ops(free_waits().boxed()), 0..8);
    let op = prop_oneof![
        8 => ops(all_waits().boxed()),
        1 => child.prop_map(|ops| Op::Do(Act::Spawn(ops))),
        1 => child_in_set.prop_map(|ops| Op::Do(Act::SpawnInSet(ops))),
    ];
    let tasks = vec(vec(op, 1..16), 1..6);
    (any::<bool>(), tasks).prop_map(|(is_local, tasks)| Program { is_local, tasks })
}

/// What Tokio does.
fn on_tokio(program: &Program) -> Vec<Event> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(on_tokio::play_here(program.clone()))
}

fn on_one_thread(program: &Program) -> Vec<Event> {
    let mut builder = volt::runtime::Builder::new_current_thread();
    let runtime = builder.start_paused(true).build().unwrap();
    runtime.block_on(on_volt::play_here(program.clone()))
}

fn in_a_simulation(program: &Program, workers: usize, seed: u64) -> Vec<Event> {
    let program = Program { is_local: false, ..program.clone() };
    Sim::new(seed).workers(workers).run(on_volt::play(program)).unwrap()
}

proptest! {
    #![proptest_config(random::config())]

    #[test]
    fn programs_do_on_volt_what_they_do_on_tokio(program in programs(), seed in any::<u64>()) {
        let expected = on_tokio(&program);
        prop_assert_eq!(&on_one_thread(&program), &expected);
        for workers in 1..=3 {
            prop_assert_eq!(&in_a_simulation(&program, workers, seed), &expected, "{} workers", workers);
        }
    }
}
