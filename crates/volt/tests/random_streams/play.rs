// Plays a program by the names of both runtimes; see `random_streams.rs`. One module with `ends.rs` and `calls.rs`.

use rt::task::{AbortHandle, JoinHandle, LocalSet};
use rt::time::{Instant, sleep_until, timeout_at};

use crate::{Act, Event, Op, Program, Wait};

/// A round has as many slots, of so many milliseconds.
const TASKS: u64 = 4;
const SLOT: u64 = 16;
const ROUND: u64 = TASKS * SLOT;
const ROUNDS: u64 = 64;
/// As much is written to TCP at once: buffers whose sizes the system chooses are never full.
const FEW: usize = 400;

/// What all tasks share.
struct World {
    start: Instant,
    exchanges: bool,
    connections: Vec<Connection>,
    tasks: Cell<Vec<AbortHandle>>,
    events: Cell<Vec<Event>>,
}

impl World {
    fn ms(&self) -> u64 {
        let elapsed = Instant::now() - self.start;
        assert_eq!(elapsed.subsec_nanos() % 1_000_000, 0, "all is done at whole milliseconds");
        elapsed.as_millis() as u64
    }

    fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    fn connection(&self, end: usize) -> &Connection {
        &self.connections[end / 2 % self.connections.len()]
    }

    /// The first one from there on that is a listener's.
    fn listening(&self, end: usize) -> Option<&Connection> {
        let all = (0..self.connections.len()).map(|more| self.connection(end + 2 * more));
        all.into_iter().find(|connection| connection.address.is_some())
    }

    fn end(&self, end: usize) -> &End {
        &self.connection(end).ends[end % 2]
    }

    /// A pipe is read from at one end only, and written to at the other.
    fn reading(&self, end: usize) -> Option<Reading<'_>> {
        let is_pipe = self.connection(end).kind == Kind::Pipe;
        self.end(if is_pipe { end | 1 } else { end }).reading()
    }

    fn writing(&self, end: usize) -> Option<Writing<'_>> {
        let is_pipe = self.connection(end).kind == Kind::Pipe;
        self.end(if is_pipe { end & !1 } else { end }).writing()
    }

    fn source(&self, end: usize) -> Option<Source<'_>> {
        let shared = self.end(end).to_receive.take().map(Source::Shared);
        shared.or_else(|| self.reading(end).map(Source::Stream))
    }

    fn target(&self, end: usize) -> Option<Target<'_>> {
        let shared = self.end(end).to_send.take().map(Target::Shared);
        shared.or_else(|| self.writing(end).map(Target::Stream))
    }

    /// What is in memory is copied bit by bit, as much at once as the scheduler likes.
    fn may_copy(&self, end: usize) -> bool {
        self.exchanges || !matches!(self.connection(end).kind, Kind::Memory(_))
    }

    /// What is next to be written. What is not written after all leaves a gap.
    fn bytes(&self, end: usize, count: usize) -> Vec<u8> {
        let count = if self.connection(end).is_tcp() { count.min(FEW) } else { count };
        // ORD relaxed: all tasks are on one thread.
        let start = self.end(end).written.fetch_add(count as u32, Ordering::Relaxed);
        (start..).take(count).map(byte).collect()
    }
}

struct Me {
    world: Arc<World>,
    id: u64,
}

impl Me {
    /// The beginning of this task's own slot, the `rounds`th after the next one.
    fn later(&self, rounds: u64) -> Instant {
        let begin = self.id * SLOT;
        let round = (self.world.ms() + ROUND - begin) / ROUND;
        self.world.at((round + rounds) * ROUND + begin)
    }

    fn note(&self, what: String) {
        lock(&self.world.events).push(Event { ms: self.world.ms(), task: self.id, what });
    }

    /// What is to be waited for beside `one`: nothing of the same connection, but the other direction. Or it would depend on when
    /// the one is tried whether the other one has something to do.
    fn beside(&self, one: Wait, other: Wait) -> Wait {
        let world = &*self.world;
        let connections = |wait| {
            ends(wait).filter_map(move |end| match wait {
                Wait::Connect(_) | Wait::Accept(_) => world.listening(end),
                _ => Some(world.connection(end)),
            })
        };
        let are_apart =
            connections(one).all(|one| connections(other).all(|other| !std::ptr::eq(one, other)));
        match (one, other) {
            _ if are_apart => other,
            (Wait::Read(one, _), Wait::Write(end, _))
            | (Wait::Write(one, _), Wait::Read(end, _))
                if std::ptr::eq(world.end(one), world.end(end)) =>
            {
                world.end(one).split();
                other
            }
            _ => Wait::Sleep(0),
        }
    }

    #[allow(clippy::too_many_lines, reason = "an arm for each step")]
    async fn wait(&self, what: Wait) -> String {
        let world = &*self.world;
        match what {
            Wait::Sleep(rounds) => {
                sleep_until(self.later(rounds)).await;
                "slept".to_owned()
            }
            Wait::Borrowed(end, size, more) => {
                let Some(mut whole) = world.end(end).whole.take() else { return taken() };
                let bytes = world.bytes(end, more);
                whole.read_and_write(size, &bytes).await
            }
            Wait::Read(end, mut how) => {
                let Some(mut source) = world.source(end) else { return taken() };
                how = match (how, world.connection(end).kind) {
                    (
                        Read::Own(size) | Read::Line(size) | Read::Lines(size),
                        Kind::Udp(Udp::Mortal),
                    ) => Read::Some(size),
                    (Read::Messages(..), _) | (_, Kind::Udp(_) | Kind::Datagram) => how,
                    (Read::Take(_) | Read::ToEnd, kind) if kind != Kind::Fd => how,
                    _ if world.exchanges => Read::Exact(room(how)),
                    _ => how,
                };
                read(&mut source, how).await
            }
            Wait::Write(end, how) => {
                let Some(mut target) = world.target(end) else { return taken() };
                self.write(end, &mut target, how).await
            }
            Wait::Chain(one, other, size) => {
                let Some(mut one) = world.reading(one) else { return taken() };
                let Some(mut other) = world.reading(other) else { return taken() };
                let (mut all, both) = (Vec::new(), one.io().chain(other.io()));
                got(both.take(size as u64).read_to_end(&mut all).await, &all)
            }
            Wait::Copy(from, to, size) | Wait::CopyBuffered(from, to, size) => {
                if !world.may_copy(from) {
                    return taken();
                }
                let few = if world.connection(to).is_tcp() { size.min(FEW) } else { size };
                let Some(mut from) = world.reading(from) else { return taken() };
                let Some(mut to) = world.writing(to) else { return taken() };
                let mut from = from.io().take(few as u64);
                done(if matches!(what, Wait::Copy(..)) {
                    rt::io::copy(&mut from, to.io()).await
                } else {
                    // Of what is read in several parts it is not told how much of it comes at once.
                    let capacity = if world.exchanges { 64 } else { 20_000 };
                    let mut from = BufReader::with_capacity(capacity, from);
                    rt::io::copy_buf(&mut from, to.io()).await
                })
            }
            Wait::CopyBoth(one, other, size) => {
                let (connection, beside) = (world.connection(one), world.connection(other));
                let is_ring = std::ptr::eq(connection, beside);
                if is_ring || !world.may_copy(one) || !world.may_copy(other) {
                    return taken();
                }
                // Not more to TCP than there is room for.
                if connection.is_tcp() != beside.is_tcp() {
                    return taken();
                }
                let Some(mut one) = world.end(one).whole.take() else { return taken() };
                let Some(mut other) = world.end(other).whole.take() else { return taken() };
                // Or what goes round in a ring of copies would do so for ever.
                let limited = |stream| {
                    let (reader, writer) = rt::io::split(stream);
                    rt::io::join(reader.take(size as u64), writer)
                };
                let (mut one, mut other) = (limited(one.io()), limited(other.io()));
                done(rt::io::copy_bidirectional(&mut one, &mut other).await)
            }
            Wait::Ask(end, size, count) => self.exchange(end, size, count, true).await,
            Wait::Echo(end, size, count) => self.exchange(end, size, count, false).await,
            Wait::Ready(end, side, clears) => self.ready(end, side, clears).await,
            Wait::Connect(end) => {
                let Some(connection) = world.listening(end) else { return taken() };
                done(connection.connect().await)
            }
            Wait::Accept(end) => {
                let Some(connection) = world.listening(end) else { return taken() };
                let Some(listener) = connection.listener.take() else { return taken() };
                done(connection.accept(&listener).await)
            }
        }
    }

    /// Questions and answers.
    async fn exchange(&self, end: usize, size: usize, count: usize, asks: bool) -> String {
        let (world, mut all) = (&*self.world, Vec::new());
        world.end(end).split();
        let Some(mut source) = world.source(end) else { return taken() };
        let Some(mut target) = world.target(end) else { return taken() };
        let most = if world.connection(end).is_tcp() { 9 } else { count };
        for number in 0..if world.exchanges { count.min(most) } else { 1 } {
            for sends in [asks, !asks] {
                let result = if sends {
                    write_all(&mut target, &world.bytes(end, size)).await
                } else {
                    read_exact(&mut source, size, &mut all).await
                };
                if let Err(error) = result {
                    return format!("{} in {number}, {}", failed(&error), text(&all));
                }
            }
        }
        text(&all)
    }

    async fn ready(&self, end: usize, side: Side, clears: bool) -> String {
        let connection = self.world.connection(end);
        let source = if side == Side::Writing { None } else { self.world.source(end) };
        let target = if side == Side::Reading { None } else { self.world.target(end) };
        let result = match (&source, &target) {
            (None, Some(_)) if side != Side::Writing => return taken(),
            (Some(Source::Shared(_)), None) if side == Side::Both => return taken(),
            (Some(Source::Shared(shared)), _) | (None, Some(Target::Shared(shared))) => {
                if connection.kind == Kind::Udp(Udp::Mortal) {
                    return taken();
                }
                // What is cleared and still there may be told of again, if a read was put off meanwhile.
                ready(shared, interest(side), clears && !self.world.exchanges).await
            }
            (Some(Source::Stream(reader)), _) => match reader.socket() {
                Socket::Tcp(stream) => stream.ready(interest(side)).await,
                Socket::Unix(_) | Socket::Other => return taken(),
            },
            (None, Some(Target::Stream(writer))) => match writer.socket() {
                Socket::Tcp(stream) => stream.ready(interest(side)).await,
                Socket::Unix(_) | Socket::Other => return taken(),
            },
            (None, None) => return taken(),
        };
        result.map_or_else(|error| failed(&error), kinds_of)
    }

    async fn write(&self, end: usize, target: &mut Target<'_>, how: Write) -> String {
        let world = &*self.world;
        let (size, more, count) = match how {
            Write::Flush | Write::Shutdown => (0, 0, 1),
            Write::Messages(size, count) => (size, 0, count),
            Write::Vectored(size, more) => (size, more, 1),
            Write::Some(size)
            | Write::All(size)
            | Write::Buffered(size)
            | Write::Own(size)
            | Write::Ready(size) => (size, 0, 1),
        };
        if count == 1 {
            let (bytes, more) = (world.bytes(end, size), world.bytes(end, more));
            return write(target, how, &bytes, &more).await;
        }
        let begin = world.ms();
        for number in 0..count {
            if let Err(error) = write_all(target, &world.bytes(end, size)).await {
                return format!("{} in {number}", failed(&error));
            }
            sleep_until(world.at(begin + 1 + number as u64)).await;
        }
        "all written".to_owned()
    }

    fn act(&self, act: Act) -> String {
        let world = &*self.world;
        match act {
            Act::TryRead(end, size, how) => match world.source(end) {
                Some(Source::Shared(_)) if world.connection(end).kind == Kind::Udp(Udp::Mortal) => {
                    taken()
                }
                Some(source) => try_read(source, how, size),
                None => taken(),
            },
            Act::TryWrite(end, size, how) => {
                let Some(target) = world.target(end) else { return taken() };
                let more = if let Try::Vectored(more) = how { more } else { 0 };
                try_write(target, how, &world.bytes(end, size), &world.bytes(end, more))
            }
            Act::Split(end) => format!("split {}", world.end(end).split()),
            Act::Reunite(end) => format!("reunited {}", world.end(end).reunite()),
            Act::Again(end) => format!("registered again {}", world.end(end).again()),
            Act::Drop(end) => {
                let (connection, end) = (world.connection(end), world.end(end));
                if connection.kind == Kind::Udp(Udp::Connected) {
                    return taken();
                }
                let stream = [end.whole.clear(), end.reader.clear(), end.writer.clear()];
                format!("dropped {stream:?}, {:?}", [end.to_receive.clear(), end.to_send.clear()])
            }
            Act::DropReader(end) => format!("dropped {}", world.end(end).reader.clear()),
            Act::DropWriter(end) => format!("dropped {}", world.end(end).writer.clear()),
            Act::Forget(end) => {
                match world.end(end).writer.take().map(Taken::keep) {
                    Some(Out::Tcp(writer)) => writer.forget(),
                    Some(Out::Unix(writer)) => writer.forget(),
                    _ => return "dropped".to_owned(),
                }
                "forgotten".to_owned()
            }
            Act::Reset(end) => {
                let (will_reset, _) = (world.end(end).will_reset(), self.act(Act::Drop(end)));
                format!("reset {will_reset}")
            }
            Act::TakeError(end) => match world.source(end) {
                Some(source) => done(source.take_error().map(|e| e.map(|e| e.kind()))),
                None => taken(),
            },
            Act::DropListener(end) => {
                let connection = world.listening(end);
                format!("dropped {:?}", connection.map(|connection| connection.listener.clear()))
            }
            Act::Abort(task) => {
                let tasks = lock(&world.tasks);
                let task = &tasks[task % tasks.len()];
                task.abort();
                format!("aborted, had ended {}", task.is_finished())
            }
        }
    }
}

/// Notes when the future of a task was dropped.
impl Drop for Me {
    fn drop(&mut self) {
        self.note("gone".to_owned());
    }
}

/// Whose ends take part in it.
fn ends(wait: Wait) -> impl Iterator<Item = usize> {
    let ends = match wait {
        Wait::Sleep(_) => [None, None],
        Wait::Read(end, _)
        | Wait::Write(end, _)
        | Wait::Ask(end, ..)
        | Wait::Echo(end, ..)
        | Wait::Ready(end, ..)
        | Wait::Borrowed(end, ..)
        | Wait::Connect(end)
        | Wait::Accept(end) => [Some(end), None],
        Wait::Chain(one, other, _)
        | Wait::Copy(one, other, _)
        | Wait::CopyBuffered(one, other, _)
        | Wait::CopyBoth(one, other, _) => [Some(one), Some(other)],
    };
    ends.into_iter().flatten()
}

async fn play_task(me: Me, ops: Vec<Op>) {
    sleep_until(me.later(0)).await;
    for op in ops {
        let played = format!("{op:?}");
        let what = match op {
            Op::Do(act) => me.act(act),
            Op::Wait(what, None) => me.wait(what).await,
            Op::Wait(what, Some(limit)) => {
                timeout_at(me.later(limit), me.wait(what)).await.unwrap_or_else(|e| e.to_string())
            }
            Op::Either(one, other, limit) => {
                let other = me.beside(one, other);
                let bit_later = me.world.at(me.world.ms() + 1);
                rt::select! {
                    biased;
                    what = me.wait(one) => what,
                    what = async {
                        sleep_until(bit_later).await;
                        me.wait(other).await
                    } => format!("the other: {what}"),
                    () = sleep_until(me.later(limit)) => "neither".to_owned(),
                }
            }
            Op::Both(one, other, limit) => {
                let other = me.beside(one, other);
                let both = async { rt::join!(me.wait(one), me.wait(other)) };
                let both = timeout_at(me.later(limit), both).await;
                both.map_or_else(|e| e.to_string(), |what| format!("{what:?}"))
            }
        };
        me.world.connections.iter().for_each(Connection::settle);
        me.note(format!("{played}: {what}"));
        sleep_until(me.later(0)).await;
    }
}

/// Plays all tasks, and gives what has happened and what is left.
pub(crate) async fn play(program: Program) -> Vec<Event> {
    if program.is_local {
        LocalSet::new().run_until(play_all(program)).await
    } else {
        play_all(program).await
    }
}

async fn play_all(program: Program) -> Vec<Event> {
    let mut connections = Vec::new();
    for kind in program.connections {
        connections.push(Connection::new(kind, !program.exchanges).await);
    }
    let world = Arc::new(World {
        start: Instant::now(),
        exchanges: program.exchanges,
        connections,
        tasks: Cell::default(),
        events: Cell::default(),
    });
    let me = |id| Me { world: Arc::clone(&world), id };
    let spawn = |(ops, id)| {
        let task = play_task(me(id), ops);
        if program.is_local { rt::task::spawn_local(task) } else { rt::spawn(task) }
    };
    let tasks: Vec<JoinHandle<()>> = program.tasks.into_iter().zip(0..).map(spawn).collect();
    lock(&world.tasks).extend(tasks.iter().map(JoinHandle::abort_handle));
    sleep_until(world.at(ROUND * ROUNDS + SLOT - 1)).await;
    let me = me(TASKS);
    for end in 0..2 * world.connections.len() {
        me.note(format!("left at {end}: {}", me.act(Act::TryRead(end, 100_000, Try::Plain))));
        world.end(end).will_reset();
    }
    for (task, id) in tasks.iter().zip(0..) {
        me.note(format!("task {id} has ended: {}", task.is_finished()));
    }
    let mut events = std::mem::take(&mut *lock(&world.events));
    events.sort_by_key(|event| (event.ms, event.task));
    events
}
