use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use volt_sync::internal::primitive::thread;

use super::registration::Start;
use super::{Direction, EventsPerTurn, Handle, Reactor, Registration, Why};
use crate::io::{Interest, Ready};

std::thread_local! {
    /// This thread turns all reactors.
    pub(super) static TURNS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

const LONG: Option<Duration> = Some(Duration::from_secs(20));

fn register(handle: &Handle, fd: &impl AsRawFd, start: Start) -> io::Result<Registration> {
    let fd = fd.as_raw_fd();
    let interest = Interest::READABLE | Interest::WRITABLE;
    Registration::new(handle.clone(), &mut mio::unix::SourceFd(&fd), fd, interest, start)
}

/// Two ends; the first one does not block, is registered, and taken to be ready.
fn open_pair(handle: &Handle) -> (UnixStream, UnixStream, Registration) {
    let (a, b) = UnixStream::pair().unwrap();
    a.set_nonblocking(true).unwrap();
    let registration = register(handle, &a, Start::Open).unwrap();
    (a, b, registration)
}

#[allow(clippy::disallowed_methods, reason = "measures a wait")]
fn timed<R>(f: impl FnOnce() -> R) -> (R, Duration) {
    let start = std::time::Instant::now();
    let result = f();
    (result, start.elapsed())
}

#[test]
fn an_unpark_ends_the_wait_that_it_finds_and_else_the_next() {
    let (mut reactor, handle) = Reactor::new(EventsPerTurn::default()).unwrap();
    handle.unpark();
    handle.unpark();
    assert_eq!(reactor.turn(&handle, Some(Duration::ZERO)).unwrap(), 0);
    assert!(timed(|| reactor.turn(&handle, LONG).unwrap()).1 < Duration::from_secs(5));
    let remote = handle.clone();
    // The other thread may wake up before this one waits: the time begins before it is there.
    let asleep = Duration::from_millis(20);
    let (waker, waited) = timed(|| {
        let waker = thread::Builder::new().spawn(move || {
            thread::sleep(asleep);
            remote.unpark();
        });
        reactor.turn(&handle, LONG).unwrap();
        waker
    });
    assert!(waited >= asleep && waited < Duration::from_secs(5), "{waited:?}");
    waker.unwrap().join().unwrap();
}

#[test]
fn a_wait_is_never_shorter_than_asked_and_finer_than_a_millisecond() {
    let (mut reactor, handle) = Reactor::new(EventsPerTurn::default()).unwrap();
    let asked = Duration::from_micros(200);
    let mut waits: Vec<_> =
        (0..50).map(|_| timed(|| reactor.turn(&handle, Some(asked)).unwrap()).1).collect();
    waits.sort();
    assert!(waits[0] >= asked, "{waits:?}");
    if cfg!(target_os = "linux") {
        assert!(waits[10] < Duration::from_micros(900), "{waits:?}");
    }
}

#[test]
fn an_event_makes_its_source_ready_once() {
    let (mut reactor, handle) = Reactor::new(EventsPerTurn::default()).unwrap();
    let (_a, b, registration) = open_pair(&handle);
    assert_eq!(handle.registered(), 1);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(registration.poll_ready(Direction::Read, &mut cx).is_pending());
    // A socket that is open for writing makes no event of it.
    assert_eq!(reactor.turn(&handle, Some(Duration::ZERO)).unwrap(), 0);
    io::Write::write(&mut &b, b"x").unwrap();
    assert_eq!(reactor.turn(&handle, LONG).unwrap(), 1);
    assert!(registration.poll_ready(Direction::Read, &mut cx).is_ready());
    assert_eq!(reactor.turn(&handle, Some(Duration::ZERO)).unwrap(), 0, "edge-triggered");
    drop(b);
    assert_eq!(reactor.turn(&handle, LONG).unwrap(), 1);
    let event = registration.look_to_try(Ready::ALL).unwrap();
    assert!(event.ready().is_read_closed() && event.ready().is_write_closed());
    drop(registration);
    assert_eq!(handle.registered(), 0);
}

/// A paused clock moves on if a turn has no event.
#[test]
fn the_bell_takes_no_events_place() {
    let (mut reactor, handle) = Reactor::new(EventsPerTurn { waiting: 1, busy: 1 }).unwrap();
    let (a, b) = UnixStream::pair().unwrap();
    let registration = register(&handle, &a, Start::Open).unwrap();
    for timeout in [LONG, Some(Duration::ZERO)] {
        handle.0.bell.wake().unwrap();
        io::Write::write(&mut &b, b"x").unwrap();
        assert_eq!(reactor.turn(&handle, timeout).unwrap(), 1);
        assert_eq!(reactor.turn(&handle, Some(Duration::ZERO)).unwrap(), 0, "it has rung once");
    }
    drop(registration);
}

/// With the bell.
#[cfg(target_os = "linux")]
#[test]
fn what_is_the_drivers_own_is_no_event_and_takes_no_events_place() {
    use std::os::fd::AsRawFd;

    let (mut reactor, handle) = Reactor::new(EventsPerTurn { waiting: 1, busy: 1 }).unwrap();
    let [(own, a), (source, b)] = [(); 2].map(|()| UnixStream::pair().unwrap());
    reactor.watch_own(own.as_raw_fd()).unwrap();
    let registration = register(&handle, &source, Start::Open).unwrap();
    for timeout in [LONG, Some(Duration::ZERO)] {
        handle.0.bell.wake().unwrap();
        io::Write::write(&mut &a, b"x").unwrap();
        io::Write::write(&mut &b, b"x").unwrap();
        assert_eq!(reactor.turn(&handle, timeout).unwrap(), 1);
        io::Write::write(&mut &a, b"x").unwrap();
        assert_eq!(reactor.turn(&handle, timeout).unwrap(), 0, "it ends a wait");
    }
    drop(registration);
}

/// Others are ready all the time, and each look has one event.
#[test]
fn a_read_is_put_off_for_a_few_looks_also_if_these_have_not_come_to_its_event() {
    TURNS.set(true);
    let (mut reactor, handle) = Reactor::new(EventsPerTurn { waiting: 1, busy: 1 }).unwrap();
    let pair = Pair::new(&handle);
    let others: Vec<_> = (0..20).map(|_| Pair::new(&handle)).collect();
    assert!(!pair.read(0));
    // One of some is not put off.
    while !handle.owes_a_look() {
        pair.exchange(0, || assert_eq!(reactor.look(&handle, Why::Due).unwrap(), 1));
    }
    others.iter().for_each(|other| other.write_to(0));
    pair.write_to(0);
    let mut looks = 0;
    while handle.owes_a_look() {
        looks += 1;
        let reminded = usize::from(looks == 4);
        assert_eq!(reactor.look(&handle, Why::Due).unwrap(), 1 + reminded);
    }
    assert_eq!(looks, 4, "it waits for the events of others");
    assert!(pair.read(0), "the message is there");
    let left: usize = (0..30).map(|_| reactor.look(&handle, Why::Due).unwrap()).sum();
    assert_eq!(left, 20 - 4, "the events of the others");
}

/// Reads of exactly the size of the messages, which fail when there is none: after some, a failing one
/// is not made before a look has found no event.
#[test]
fn a_read_that_would_fail_is_put_off_until_a_look_without_events() {
    TURNS.set(true);
    let (mut reactor, handle) = Reactor::new(EventsPerTurn::default()).unwrap();
    let (a, b, registration) = open_pair(&handle);
    let mut cx = Context::from_waker(Waker::noop());
    let mut tries = 0;
    let mut read = || {
        let read = registration.poll_io(Direction::Read, &mut cx, |event| {
            tries += 1;
            io::Read::read(&mut &a, &mut [0; 4])?;
            Ok(event)
        });
        if let Poll::Ready(event) = &read {
            registration.has_read(*event.as_ref().unwrap(), false);
        }
        (read.is_ready(), std::mem::take(&mut tries))
    };
    assert_eq!(read(), (false, 1), "a new socket is worth a read");
    let mut saved = 0;
    for round in 0..100 {
        io::Write::write(&mut &b, b"data").unwrap();
        assert_eq!(reactor.turn(&handle, LONG).unwrap(), 1);
        assert_eq!(read(), (true, 1));
        let (ready, tries) = read();
        assert!(!ready && tries <= 1, "{tries} tries");
        saved += 1 - tries;
        // One of some is made, to see if something is left.
        assert_eq!(tries == 0, round >= 3 && (round - 3) % 33 != 32, "round {round}");
    }
    assert_eq!(saved, 95);
    // Two messages at once: the second is found by the look, which would have waited.
    io::Write::write(&mut &b, b"datadata").unwrap();
    assert_eq!(reactor.turn(&handle, LONG).unwrap(), 1);
    assert_eq!(read(), (true, 1));
    assert_eq!(read(), (false, 0));
    assert_eq!(reactor.turn(&handle, LONG).unwrap(), 1);
    assert_eq!(read(), (true, 1));
    // And now nothing is put off.
    assert_eq!(read(), (false, 1));
    let waited = timed(|| reactor.turn(&handle, Some(Duration::from_millis(20))).unwrap());
    assert!(waited.0 == 0 && waited.1 >= Duration::from_millis(20), "{waited:?}");
}

/// The two ends of a unix socket, which read messages of exactly the size of their buffers.
struct Pair {
    ends: [UnixStream; 2],
    registrations: [Registration; 2],
}

impl Pair {
    fn new(handle: &Handle) -> Self {
        let (a, b) = UnixStream::pair().unwrap();
        a.set_nonblocking(true).unwrap();
        b.set_nonblocking(true).unwrap();
        let registrations = [&a, &b].map(|end| register(handle, end, Start::Open).unwrap());
        Self { ends: [a, b], registrations }
    }

    /// Returns whether `end` has read a message.
    fn read(&self, end: usize) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let registration = &self.registrations[end];
        let read = registration.poll_io(Direction::Read, &mut cx, |event| {
            io::Read::read(&mut &self.ends[end], &mut [0; 4])?;
            Ok(event)
        });
        let Poll::Ready(event) = read else { return false };
        registration.has_read(event.unwrap(), false);
        true
    }

    fn write_to(&self, end: usize) {
        io::Write::write_all(&mut &self.ends[1 - end], b"data").unwrap();
    }

    /// A message to `end`, which waits for it, and waits for the next one then.
    fn exchange(&self, end: usize, turn: impl FnOnce()) {
        self.write_to(end);
        turn();
        assert!(self.read(end), "the message is there");
        assert!(!self.read(end));
    }
}

/// Exchanges `count` messages of a pair in turns. Returns how many looks that took.
fn exchanges(pair: &Pair, reactor: &mut Reactor, handle: &Handle, count: usize) -> u32 {
    let mut looks = 0;
    for round in 0..count {
        pair.exchange(round % 2, || guess_or_look(reactor, handle, &mut looks));
    }
    looks
}

/// Turns a reactor as a member that runs alone, and counts the looks.
fn guess_or_look(reactor: &mut Reactor, handle: &Handle, looks: &mut u32) {
    if !reactor.guess(handle, || 0) {
        *looks += 1;
        reactor.look(handle, Why::Due).unwrap();
    }
}

#[test]
fn messages_to_and_fro_spare_most_looks_and_whoever_else_has_an_event_is_soon_found() {
    TURNS.set(true);
    let (mut reactor, handle) = Reactor::new(EventsPerTurn::default()).unwrap();
    let (pair, other) = (Pair::new(&handle), Pair::new(&handle));
    [&pair, &other].into_iter().for_each(|pair| assert!(!pair.read(0) && !pair.read(1)));
    let exchanges = |reactor: &mut Reactor, count| exchanges(&pair, reactor, &handle, count);
    assert_eq!(exchanges(&mut reactor, 14), 14, "both put nothing off");
    exchanges(&mut reactor, 86);
    let learnt = exchanges(&mut reactor, 1000);
    assert!((250..350).contains(&learnt), "{learnt} looks");

    // The fourth turn at the latest is a look.
    for extra in 0..4 {
        exchanges(&mut reactor, 100 + extra);
        other.write_to(1);
        let mut turns = 0;
        while !other.read(1) {
            turns += 1;
            exchanges(&mut reactor, 1);
            assert!(turns <= 4, "{extra}");
        }
        assert!(!other.read(1));
        assert_eq!(exchanges(&mut reactor, 50), 50, "nothing is guessed beside others");
    }

    // Nobody answers: one read is made in vain, then looks find that there is nothing.
    exchanges(&mut reactor, 100);
    let (mut looks, mut turns) = (0, 0);
    while handle.owes_a_look() {
        guess_or_look(&mut reactor, &handle, &mut looks);
        let _ = (pair.read(0), pair.read(1));
        turns += 1;
        assert!(turns <= 10, "the next turn may wait");
    }
    assert!(looks >= turns - 1, "{looks} looks in {turns} turns");
    let waited = timed(|| reactor.turn(&handle, Some(Duration::from_millis(20))).unwrap());
    assert!(waited.0 == 0 && waited.1 >= Duration::from_millis(20), "{waited:?}");
}

#[test]
fn room_for_somebody_who_waits_to_write_ends_the_guesses() {
    TURNS.set(true);
    let (mut reactor, handle) = Reactor::new(EventsPerTurn::default()).unwrap();
    let (pair, other) = (Pair::new(&handle), Pair::new(&handle));
    [&pair, &other].into_iter().for_each(|pair| assert!(!pair.read(0) && !pair.read(1)));
    let mut exchanges = |count| exchanges(&pair, &mut reactor, &handle, count);
    let [mut writer, mut reader] = other.ends.each_ref();
    // The second time its event comes as well, but nobody waits for it.
    for waits in [true, false] {
        let mut cx = Context::from_waker(Waker::noop());
        while let Poll::Ready(written) =
            other.registrations[0].poll_io(Direction::Write, &mut cx, |_| {
                match io::Write::write(&mut writer, &[0; 4096]) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock && !waits => Ok(0),
                    result => result,
                }
            })
        {
            if written.unwrap() == 0 {
                break;
            }
        }
        exchanges(200);
        assert!(exchanges(40) < 20, "guesses");
        while io::Read::read(&mut reader, &mut [0; 4096]).is_ok() {}
        exchanges(4);
        let looks = exchanges(40);
        assert_eq!(looks == 40, waits, "{looks} looks");
    }
}

#[test]
fn writing_is_registered_when_it_has_failed_and_reports_room_that_is_there() {
    let (mut reactor, handle) = Reactor::new(EventsPerTurn::default()).unwrap();
    let (_a, _b, registration) = open_pair(&handle);
    let event = registration.look_to_try(Ready::WRITE).expect("taken to be writable");
    registration.used_up(event, Ready::WRITE).unwrap();
    assert!(registration.look_to_try(Ready::WRITE).is_none());
    assert_eq!(reactor.turn(&handle, LONG).unwrap(), 1);
    assert!(registration.look_to_try(Ready::WRITE).is_some());
}

/// A short write reports no error: the next one does.
#[test]
fn what_cannot_be_registered_after_a_short_write_is_left_writable() {
    let (mut reactor, handle) = Reactor::new(EventsPerTurn::default()).unwrap();
    let (a, _b, registration) = open_pair(&handle);
    let event = registration.look_to_try(Ready::WRITE).expect("taken to be writable");
    let fd = a.as_raw_fd();
    registration.deregister(&mut mio::unix::SourceFd(&fd)).unwrap();
    registration.clear(event, Ready::WRITABLE);
    let event = registration.look_to_try(Ready::WRITE).expect("it is writable still");
    assert!(registration.used_up(event, Ready::WRITE).is_err());
    assert_eq!(reactor.turn(&handle, Some(Duration::ZERO)).unwrap(), 0);
}

#[test]
fn a_source_that_cannot_be_registered_is_an_error_and_leaves_nothing() {
    let (_reactor, handle) = Reactor::new(EventsPerTurn::default()).unwrap();
    let file = std::fs::File::open("/proc/self/status").unwrap();
    assert!(register(&handle, &file, Start::Unknown).is_err());
    assert!(register(&handle, &-1, Start::Unknown).is_err());
    assert_eq!(handle.registered(), 0);
}

#[test]
fn shutdown_ends_waits_and_refuses_registrations() {
    let (mut reactor, handle) = Reactor::new(EventsPerTurn::default()).unwrap();
    let (a, b) = UnixStream::pair().unwrap();
    let registration = register(&handle, &a, Start::Unknown).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let mut wait = pin!(registration.ready(Interest::READABLE));
    assert!(wait.as_mut().poll(&mut cx).is_pending());
    assert!(registration.poll_ready(Direction::Write, &mut cx).is_pending());
    handle.shutdown();
    assert!(matches!(wait.as_mut().poll(&mut cx), Poll::Ready(Err(_))));
    assert!(register(&handle, &b, Start::Unknown).is_err());
    let waited = timed(|| reactor.turn(&handle, LONG).unwrap()).1;
    assert!(waited < Duration::from_secs(5));
    // The reactor may go before the registrations.
    drop(reactor);
    drop(handle);
    assert!(matches!(registration.poll_ready(Direction::Write, &mut cx), Poll::Ready(Err(_))));
}

#[test]
fn who_has_connected_hears_no_more_of_room_until_there_was_none() {
    let (mut reactor, handle) = Reactor::new(EventsPerTurn::default()).unwrap();
    let (a, b) = UnixStream::pair().unwrap();
    a.set_nonblocking(true).unwrap();
    let registration = register(&handle, &a, Start::Unknown).unwrap();
    assert!(registration.look_to_try(Ready::WRITE).is_none(), "nothing is known");
    assert_eq!(reactor.turn(&handle, LONG).unwrap(), 1);
    registration.disarm().unwrap();
    let events = |reactor: &mut Reactor| {
        io::Write::write_all(&mut &a, b"data").unwrap();
        io::Read::read_exact(&mut &b, &mut [0; 4]).unwrap();
        reactor.turn(&handle, Some(Duration::ZERO)).unwrap()
    };
    assert_eq!(events(&mut reactor), 0, "the peer has taken a message");
    let event = registration.look_to_try(Ready::WRITE).expect("it is writable still");
    registration.used_up(event, Ready::WRITE).unwrap();
    assert_eq!(reactor.turn(&handle, LONG).unwrap(), 1);
    assert_eq!(events(&mut reactor), 1, "as it is asked about");
}
