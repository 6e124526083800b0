//! Random programs read and write on Volt as they do on Tokio, at the same time.
//!
//! A program is some connections of all kinds, and some tasks that share them, each a list of steps: they read, write, peek,
//! copy, wait until something is ready, split, shut down, reset, give up after a while, choose what comes first.
//! `random_streams/play.rs` plays it by the names of both runtimes, on a paused clock, and notes when each step was done and with
//! what result. So that this does not depend on the order in which a runtime polls, each task goes on by itself in some
//! milliseconds of its own, its slot: only one at a time does something, and those that it wakes note it and wait for their turn.
//! What is sent within the machine is there when the call returns, and a clock that is paused stands still while there are events.
//!
//! What is not played, since Volt is meant to differ (`docs/design/tokio-api.md`):
//!
//! * `readable` of unix streams and pipes alone. A short read of a small buffer leaves them readable on Volt. So a step that waits
//!   for it tries to read, and waits again if there is nothing.
//! * A choice between a read and something that is there at once. A read may be put off, and is pending then although there is
//!   something. So the second one begins a millisecond later ([`Op::Either`]).
//! * The `try_` calls, `async_io` and `is_write_closed` of UDP sockets whose peers go away.
//! * Reads of what a task writes that reads in between, and may be put off: how much they find depends on it
//!   ([`Program::exchanges`]).
//! * `readable` of what was just accepted. It is tried once first.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "a test")]

#[path = "support/random.rs"]
mod random;

use proptest::collection::vec;
use proptest::prelude::*;

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
    /// Streams are read in parts of the sizes that were asked for, and questions and answers go on for long. Else it is of
    /// interest how much each read finds, and buffers are small.
    exchanges: bool,
    /// Volt looks for one event at a time.
    one_by_one: bool,
    connections: Vec<Kind>,
    tasks: Vec<Vec<Op>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tcp,
    /// With small buffers.
    Unix,
    /// An `AsyncFd` over a stream of the standard library.
    Fd,
    /// From the first end to the second.
    Pipe,
    /// `io::duplex` of this size.
    Memory(usize),
    Udp(Udp),
    /// Unix datagrams.
    Datagram,
    /// A listener, by TCP or not. The ends are those that connect to it and those that it has accepted.
    Listener(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Udp {
    Connected,
    /// With `send_to`.
    Unconnected,
    /// Connected, and dropped.
    Mortal,
}

/// A step of a task. Limits are in rounds, in which each task has its slot.
#[derive(Clone, Debug)]
enum Op {
    Do(Act),
    Wait(Wait, Option<u64>),
    /// The first that is ready; the second one begins a bit later.
    Either(Wait, Wait, u64),
    Both(Wait, Wait, u64),
}

/// What a task may wait for. The first number is that of an end.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Sleep(u64),
    Read(usize, Read),
    Write(usize, Write),
    /// Reads the one and then the other, so many bytes.
    Chain(usize, usize, usize),
    /// So many bytes from the one to the other.
    Copy(usize, usize, usize),
    CopyBuffered(usize, usize, usize),
    /// So many bytes in each direction.
    CopyBoth(usize, usize, usize),
    /// Sends so many bytes and waits for as many, so often.
    Ask(usize, usize, usize),
    Echo(usize, usize, usize),
    /// `split`, and so many bytes in each direction.
    Borrowed(usize, usize, usize),
    Ready(usize, Side, bool),
    Connect(usize),
    Accept(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Reading,
    Writing,
    Both,
    Error,
}

/// How to read. The first number is that of bytes.
#[derive(Clone, Copy, Debug)]
enum Read {
    Some(usize),
    Exact(usize),
    Buffer(usize),
    /// To the end of a line, through a buffer.
    Line(usize),
    /// Three lines.
    Lines(usize),
    Take(usize),
    ToEnd,
    Messages(usize, usize),
    Peek(usize),
    /// `async_io`.
    Own(usize),
    /// `readable` and `try_read`.
    Ready(usize),
}

#[derive(Clone, Copy, Debug)]
enum Write {
    Some(usize),
    All(usize),
    Vectored(usize, usize),
    /// Through a `BufWriter`.
    Buffered(usize),
    /// So many messages, one each millisecond.
    Messages(usize, usize),
    Flush,
    Shutdown,
    Own(usize),
    Ready(usize),
}

/// What it does at once.
#[derive(Clone, Copy, Debug)]
enum Act {
    TryRead(usize, usize, Try),
    TryWrite(usize, usize, Try),
    Split(usize),
    Reunite(usize),
    /// `into_std` and `from_std`.
    Again(usize),
    Drop(usize),
    DropReader(usize),
    DropWriter(usize),
    Forget(usize),
    Reset(usize),
    TakeError(usize),
    DropListener(usize),
    Abort(usize),
}

#[derive(Clone, Copy, Debug)]
enum Try {
    Plain,
    /// With a second part of this size.
    Vectored(usize),
    Buffer,
    /// `try_io`.
    Own,
}

mod on_tokio {
    use ::tokio as rt;
    include!("random_streams/ends.rs");
    include!("random_streams/calls.rs");
    include!("random_streams/play.rs");
}

mod on_volt {
    use ::volt as rt;
    include!("random_streams/ends.rs");
    include!("random_streams/calls.rs");
    include!("random_streams/play.rs");
}

fn ends() -> impl Strategy<Value = usize> {
    0..6_usize
}

/// How many bytes. Buffers have room for some thousand, but those of TCP, to which only a few of these are written.
fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => 1..16_usize,
        6 => 16..600_usize,
        3 => 600..3000_usize,
        3 => 3000..12_000_usize,
    ]
}

fn reads() -> impl Strategy<Value = Read> {
    prop_oneof![
        4 => sizes().prop_map(Read::Some),
        3 => sizes().prop_map(Read::Exact),
        2 => sizes().prop_map(Read::Buffer),
        2 => (1..100_usize).prop_map(Read::Line),
        1 => (1..100_usize).prop_map(Read::Lines),
        2 => sizes().prop_map(Read::Take),
        1 => Just(Read::ToEnd),
        3 => (1..9_usize, 1..12_usize).prop_map(|(size, count)| Read::Messages(size, count)),
        2 => sizes().prop_map(Read::Peek),
        2 => sizes().prop_map(Read::Own),
        3 => sizes().prop_map(Read::Ready),
    ]
}

fn writes() -> impl Strategy<Value = Write> {
    let sizes = || prop_oneof![1 => Just(0_usize), 16 => sizes()];
    prop_oneof![
        4 => sizes().prop_map(Write::Some),
        4 => sizes().prop_map(Write::All),
        2 => (1..5000_usize, sizes()).prop_map(|(one, other)| Write::Vectored(one, other)),
        1 => sizes().prop_map(Write::Buffered),
        4 => (1..9_usize, 1..8_usize).prop_map(|(size, count)| Write::Messages(size, count)),
        1 => Just(Write::Flush),
        1 => Just(Write::Shutdown),
        2 => sizes().prop_map(Write::Own),
        3 => sizes().prop_map(Write::Ready),
    ]
}

fn waits(exchanges: bool, chooses: bool) -> impl Strategy<Value = Wait> {
    let sides = vec![Side::Reading, Side::Writing, Side::Both, Side::Error];
    let counted = || (ends(), 1..9_usize, prop_oneof![3 => 1..12_usize, 1 => 12..60_usize]);
    let often = if exchanges { 6 } else { 2 };
    prop_oneof![
        1 => (0..3_u64).prop_map(Wait::Sleep),
        12 => (ends(), reads()).prop_map(|(end, how)| Wait::Read(end, how)),
        12 => (ends(), writes()).prop_map(|(end, how)| Wait::Write(end, how)),
        1 => (ends(), ends(), sizes()).prop_map(|(one, other, size)| Wait::Chain(one, other, size)),
        2 => (ends(), ends(), sizes()).prop_map(|(from, to, size)| Wait::Copy(from, to, size)),
        1 => (ends(), ends(), sizes()).prop_map(|(from, to, size)| Wait::CopyBuffered(from, to, size)),
        2 => (ends(), ends(), sizes()).prop_map(move |(one, other, size)| {
            if chooses { Wait::Copy(one, other, size) } else { Wait::CopyBoth(one, other, size) }
        }),
        often => counted().prop_map(|(end, size, count)| Wait::Ask(end, size, count)),
        often => counted().prop_map(|(end, size, count)| Wait::Echo(end, size, count)),
        1 => (ends(), sizes(), sizes()).prop_map(|(end, size, more)| Wait::Borrowed(end, size, more)),
        3 => (ends(), prop::sample::select(sides), any::<bool>())
            .prop_map(|(end, side, clears)| Wait::Ready(end, side, clears)),
        2 => ends().prop_map(Wait::Connect),
        2 => ends().prop_map(Wait::Accept),
    ]
}

fn acts() -> impl Strategy<Value = Act> {
    let how = || {
        prop_oneof![
            Just(Try::Plain),
            sizes().prop_map(Try::Vectored),
            Just(Try::Buffer),
            Just(Try::Own),
        ]
    };
    let tries = prop_oneof![
        (ends(), sizes(), how()).prop_map(|(end, size, how)| Act::TryRead(end, size, how)),
        (ends(), sizes(), how()).prop_map(|(end, size, how)| Act::TryWrite(end, size, how)),
    ];
    let parts = prop_oneof![
        6 => ends().prop_map(Act::Split),
        4 => ends().prop_map(Act::Reunite),
        2 => ends().prop_map(Act::Again),
        1 => ends().prop_map(Act::Drop),
        1 => ends().prop_map(Act::DropReader),
        1 => ends().prop_map(Act::DropWriter),
        1 => ends().prop_map(Act::Forget),
        3 => ends().prop_map(Act::Reset),
        1 => ends().prop_map(Act::TakeError),
    ];
    let ends = prop_oneof![ends().prop_map(Act::DropListener), (0..4_usize).prop_map(Act::Abort)];
    prop_oneof![20 => tries, 14 => parts, 1 => ends]
}

/// Who chooses what comes first is not told in which order several things come at once. So either tasks choose, or they do several
/// things at once.
fn ops(exchanges: bool, chooses: bool) -> impl Strategy<Value = Op> {
    let waits = move || waits(exchanges, chooses);
    let limit = || 0..4_u64;
    prop_oneof![
        3 => acts().prop_map(Op::Do),
        6 => (waits(), prop::option::weighted(0.8, limit())).prop_map(|(wait, limit)| Op::Wait(wait, limit)),
        3 => (waits(), waits(), limit()).prop_map(move |(one, other, limit)| {
            if chooses { Op::Either(one, other, limit) } else { Op::Both(one, other, limit) }
        }),
    ]
}

fn kinds() -> impl Strategy<Value = Kind> {
    let udp = vec![Udp::Connected, Udp::Unconnected, Udp::Mortal];
    prop_oneof![
        4 => Just(Kind::Tcp),
        4 => Just(Kind::Unix),
        2 => Just(Kind::Fd),
        2 => Just(Kind::Pipe),
        1 => (1..200_usize).prop_map(Kind::Memory),
        2 => prop::sample::select(udp).prop_map(Kind::Udp),
        2 => Just(Kind::Datagram),
        3 => any::<bool>().prop_map(Kind::Listener),
    ]
}

fn programs() -> impl Strategy<Value = Program> {
    let (local, one_by_one) = (prop::bool::weighted(0.2), prop::bool::weighted(0.2));
    let flags = (any::<bool>(), any::<bool>(), local, one_by_one);
    flags.prop_flat_map(|(exchanges, chooses, is_local, one_by_one)| {
        let tasks = vec(vec(ops(exchanges, chooses && !one_by_one), 1..16), 2..5);
        let program = (vec(kinds(), 1..4), tasks);
        program.prop_map(move |(connections, tasks)| Program {
            is_local,
            exchanges,
            one_by_one,
            connections,
            tasks,
        })
    })
}

/// What Tokio does.
fn on_tokio(program: &Program) -> Vec<Event> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(on_tokio::play(program.clone()))
}

fn on_volt(program: &Program) -> Vec<Event> {
    let mut builder = volt::runtime::Builder::new_current_thread();
    if program.one_by_one {
        builder.max_io_events_per_tick(1);
    }
    let runtime = builder.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(on_volt::play(program.clone()))
}

/// On a busy machine the system may pass something on late, which neither runtime can know. What is different each time is a
/// difference.
const RETRIES: u32 = 3;

proptest! {
    #![proptest_config(random::config())]

    #[test]
    fn programs_read_and_write_on_volt_as_on_tokio(program in programs()) {
        let (mut done, mut expected) = (on_volt(&program), on_tokio(&program));
        for _ in 0..RETRIES {
            if done == expected {
                break;
            }
            (done, expected) = (on_volt(&program), on_tokio(&program));
        }
        prop_assert_eq!(done, expected);
    }
}
