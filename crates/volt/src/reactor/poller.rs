//! One wait for events of the operating system, with the resolution of a nanosecond where it has it.
//!
//! Linux: `epoll_pwait2` (5.11) on the descriptor that `mio` made, with a buffer and a decoding of
//! our own, since `mio` rounds timeouts up to milliseconds. Where the kernel (or its sandbox) does
//! not know the call, and on other systems, `mio`'s own poll.
//!
//! What a wait leaves, as it returns no more than so many events, the next one returns, before what has come since: Linux has a
//! queue of the sources that have something to say, and takes only those out of it that it returns.

use std::io;
use std::time::Duration;

use super::EventsPerTurn;
use crate::io::Ready;

pub(crate) struct Poller {
    poll: mio::Poll,
    limits: EventsPerTurn,
    own: Own,
    #[cfg(target_os = "linux")]
    epoll: linux::Epoll,
}

/// For `mio`'s own poll, which fills what it is given: one for waits and one for looks, unless they are alike. Empty until
/// they are needed.
struct Own {
    waiting: mio::Events,
    busy: mio::Events,
}

impl Poller {
    pub(crate) fn new(limits: EventsPerTurn) -> io::Result<Self> {
        let poll = mio::Poll::new()?;
        let limits = limits.clamped();
        let own =
            Own { waiting: mio::Events::with_capacity(0), busy: mio::Events::with_capacity(0) };
        Ok(Self {
            #[cfg(target_os = "linux")]
            epoll: linux::Epoll::new(limits.waiting.max(limits.busy)),
            own,
            limits,
            poll,
        })
    }

    /// True if a wait with this timeout may return two events.
    #[inline]
    pub(crate) fn takes_more_than_one(&self, timeout: Option<Duration>) -> bool {
        self.limits.of(timeout) > 1
    }

    pub(crate) fn registry(&self) -> &mio::Registry {
        self.poll.registry()
    }

    /// Waits once, and passes each event to `deliver`, at most as many as there may be with this timeout. A signal that
    /// arrives ends the wait.
    pub(crate) fn wait(
        &mut self,
        timeout: Option<Duration>,
        mut deliver: impl FnMut(mio::Token, Ready),
    ) -> io::Result<()> {
        let limit = self.limits.of(timeout);
        #[cfg(target_os = "linux")]
        if let Some(result) = self.epoll.wait(&self.poll, limit, timeout, &mut deliver) {
            return result;
        }
        let own = &mut self.own;
        let events = if limit == self.limits.waiting { &mut own.waiting } else { &mut own.busy };
        if events.capacity() < limit {
            *events = mio::Events::with_capacity(limit);
        }
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        for event in &*events {
            deliver(event.token(), readiness(event));
        }
        Ok(())
    }
}

fn readiness(event: &mio::event::Event) -> Ready {
    let kinds = [
        (event.is_readable(), Ready::READABLE),
        (event.is_writable(), Ready::WRITABLE),
        (event.is_read_closed(), Ready::READ_CLOSED),
        (event.is_write_closed(), Ready::WRITE_CLOSED),
        (event.is_priority(), Ready::URGENT),
        (event.is_error(), Ready::ERROR),
    ];
    kinds.into_iter().filter(|(is, _)| *is).fold(Ready::EMPTY, |all, (_, kind)| all | kind)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::AsRawFd;
    use std::ptr;
    use std::time::Duration;

    use super::Ready;

    /// Whoever asks for it and waits to read has something to look for, as in `mio`. A read may still find nothing.
    const URGENT: Ready = Ready::from_bits(Ready::URGENT.bits() | Ready::READABLE.bits());

    /// The call and its buffer; without the buffer if the kernel does not know the call.
    pub(super) struct Epoll(Option<Box<[libc::epoll_event]>>);

    impl Epoll {
        /// With room for so many events.
        pub(super) fn new(capacity: usize) -> Self {
            Self(Some(vec![libc::epoll_event { events: 0, u64: 0 }; capacity].into()))
        }

        /// As on a kernel that does not know the call.
        #[cfg(all(test, not(volt_loom)))]
        pub(super) fn unknown() -> Self {
            Self(None)
        }

        /// `None` if the kernel does not know the call. At most `limit` events, for which there is room.
        #[inline]
        pub(super) fn wait(
            &mut self,
            poll: &mio::Poll,
            limit: usize,
            timeout: Option<Duration>,
            mut deliver: impl FnMut(mio::Token, Ready),
        ) -> Option<io::Result<()>> {
            let buffer = &mut self.0.as_mut()?[..limit];
            let count = match wait(poll.as_raw_fd(), buffer, timeout) {
                Ok(count) => count,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => return Some(Ok(())),
                    // Old kernels, and the sandboxes that refuse what they do not know.
                    Some(libc::ENOSYS | libc::EPERM) => {
                        self.0 = None;
                        return None;
                    }
                    _ => return Some(Err(error)),
                },
            };
            for event in &buffer[..count] {
                // Copies, since the struct is packed.
                let (events, token) = ({ event.events }, { event.u64 });
                deliver(mio::Token(token as usize), readiness(events));
            }
            Some(Ok(()))
        }
    }

    /// The kernel's `__kernel_timespec`: 64 bits of each on every platform, where the C library's `timespec` may
    /// have 32.
    #[derive(Debug, PartialEq)]
    #[repr(C)]
    pub(super) struct Timespec {
        pub(super) seconds: i64,
        pub(super) nanoseconds: i64,
    }

    impl From<Duration> for Timespec {
        fn from(duration: Duration) -> Self {
            Self {
                seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
                nanoseconds: i64::from(duration.subsec_nanos()),
            }
        }
    }

    fn wait(
        epoll: libc::c_int,
        buffer: &mut [libc::epoll_event],
        timeout: Option<Duration>,
    ) -> io::Result<usize> {
        let timeout = timeout.map(Timespec::from);
        // SAFETY: the kernel writes at most `buffer.len()` events to the buffer, reads two 64-bit numbers at the timeout's
        // address if there is one, which are a `Timespec` that lives until the call returns, and keeps neither pointer; no
        // signal mask is given.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                epoll,
                buffer.as_mut_ptr(),
                libc::c_int::try_from(buffer.len()).unwrap_or(libc::c_int::MAX),
                timeout.as_ref().map_or(ptr::null(), ptr::from_ref),
                ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// Two comparisons for the common case, data to read.
    ///
    /// A pipe whose reader has gone has no event of its own, only the error: with room to write if there is some.
    /// Other sources have errors that end nothing. As in `mio` they count as the end of writing all the same, since
    /// nothing here says what the descriptor is; a write that would block takes that back.
    #[inline]
    fn readiness(events: u32) -> Ready {
        let has = |flags: libc::c_int| events & flags as u32 != 0;
        let mut ready = Ready::EMPTY;
        if has(libc::EPOLLIN) {
            ready |= Ready::READABLE;
        }
        if has(!libc::EPOLLIN) {
            let rest = [
                (libc::EPOLLOUT, Ready::WRITABLE),
                (libc::EPOLLRDHUP | libc::EPOLLHUP, Ready::READ_CLOSED),
                (libc::EPOLLHUP, Ready::WRITE_CLOSED),
                (libc::EPOLLPRI, URGENT),
                (libc::EPOLLERR, Ready::ERROR),
            ];
            for (flags, kind) in rest {
                if has(flags) {
                    ready |= kind;
                }
            }
            if has(libc::EPOLLERR) && (has(libc::EPOLLOUT) || !has(!libc::EPOLLERR)) {
                ready |= Ready::WRITE_CLOSED;
            }
        }
        ready
    }
}

#[cfg(all(test, target_os = "linux", not(volt_loom)))]
mod tests {
    use std::io::Write;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::os::unix::net::UnixStream;

    use super::*;

    /// What `poller` says of `fd`, whose state does not change. `None` without an event.
    fn state(poller: &mut Poller, fd: &impl AsRawFd, interest: mio::Interest) -> Option<Ready> {
        let fd = fd.as_raw_fd();
        let mut source = mio::unix::SourceFd(&fd);
        poller.registry().register(&mut source, mio::Token(7), interest).unwrap();
        let mut found = None;
        poller.wait(Some(Duration::ZERO), |_, ready| found = Some(ready)).unwrap();
        poller.registry().deregister(&mut source).unwrap();
        found
    }

    fn poller() -> Poller {
        Poller::new(EventsPerTurn::default()).unwrap()
    }

    /// A pipe's writing end without a reader.
    fn abandoned(full: bool) -> OwnedFd {
        let (mut writer, reader) = mio::unix::pipe::new().unwrap();
        while full && writer.write(&[0; 4096]).is_ok() {}
        drop(reader);
        writer.into()
    }

    /// A socket with an error to report.
    fn refused() -> OwnedFd {
        let unused = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(unused).unwrap();
        assert_eq!(socket.send(b"anyone?").unwrap(), 7);
        socket.into()
    }

    #[test]
    fn the_kernel_is_given_a_timeout_of_two_64_bit_numbers_on_every_platform() {
        assert_eq!(size_of::<linux::Timespec>(), 16);
        let long = Duration::new(u64::from(u32::MAX) + 1, 999_999_999);
        let expected = linux::Timespec { seconds: 1 << 32, nanoseconds: 999_999_999 };
        assert_eq!(linux::Timespec::from(long), expected);
        assert_eq!(linux::Timespec::from(Duration::MAX).seconds, i64::MAX);
    }

    /// A socket with urgent data and no other, beside its peer.
    fn urged() -> (OwnedFd, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        assert_eq!(socket2::SockRef::from(&peer).send_out_of_band(b"!").unwrap(), 1);
        (socket.into(), peer)
    }

    #[test]
    fn both_decodings_say_alike() {
        let (mut ours, mut theirs) = (poller(), poller());
        theirs.epoll = linux::Epoll::unknown();
        let (open, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let (gone, peer) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(peer);
        let (half, other) = std::os::unix::net::UnixStream::pair().unwrap();
        other.shutdown(std::net::Shutdown::Write).unwrap();
        let (full, mut sender) = std::os::unix::net::UnixStream::pair().unwrap();
        sender.write_all(b"data").unwrap();
        let (_writing, reading) = mio::unix::pipe::new().unwrap();
        let (urged, _urging) = urged();
        let cases: [(&str, OwnedFd, bool); 9] = [
            ("a pipe with room and without a reader", abandoned(false), true),
            ("a full one", abandoned(true), true),
            ("a refused datagram", refused(), true),
            ("a stream without a peer", gone.into(), true),
            ("an open stream", open.into(), false),
            ("one with data", full.into(), false),
            ("one whose peer has ended its writing", half.into(), false),
            ("one with urgent data", urged, false),
            ("a pipe's reading end", reading.into(), false),
        ];
        let (reads, writes) = (mio::Interest::READABLE, mio::Interest::WRITABLE);
        let urgent = mio::Interest::PRIORITY;
        for (what, fd, ended) in cases {
            for interest in [reads, writes, reads | writes, urgent, reads | urgent] {
                let found = state(&mut ours, &fd, interest);
                let expected = state(&mut theirs, &fd, interest);
                assert_eq!(found, expected, "{what}, {interest:?}");
                let closed = found.is_some_and(Ready::is_write_closed);
                assert_eq!(closed, ended, "{what}, {interest:?}: {found:?}");
            }
        }
    }

    #[test]
    fn an_error_beside_data_ends_no_writing() {
        // The datagram is there before the error: with both, and no room asked for, nothing says "pipe".
        let (mut ours, server) = (poller(), std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server.local_addr().unwrap()).unwrap();
        server.send_to(b"data", socket.local_addr().unwrap()).unwrap();
        drop(server);
        assert_eq!(socket.send(b"anyone?").unwrap(), 7);
        let found = state(&mut ours, &socket, mio::Interest::READABLE).unwrap();
        assert!(found.is_readable() && found.is_error() && !found.is_write_closed(), "{found:?}");
    }

    /// By both calls: pollers with these limits.
    fn pollers(waiting: usize, busy: usize) -> [Poller; 2] {
        let new = || Poller::new(EventsPerTurn { waiting, busy }).unwrap();
        let (ours, mut theirs) = (new(), new());
        theirs.epoll = linux::Epoll::unknown();
        [ours, theirs]
    }

    /// Sources that `poller` watches, by their numbers, and who writes to them.
    fn watched(poller: &Poller, count: usize) -> Vec<[UnixStream; 2]> {
        let watch = |token| {
            let (source, writer) = UnixStream::pair().unwrap();
            let fd = source.as_raw_fd();
            let (mut fd, read) = (mio::unix::SourceFd(&fd), mio::Interest::READABLE);
            poller.registry().register(&mut fd, mio::Token(token), read).unwrap();
            [source, writer]
        };
        (0..count).map(watch).collect()
    }

    /// The numbers of the sources that a wait has events of.
    fn found(poller: &mut Poller, timeout: Duration) -> Vec<usize> {
        let mut found = Vec::new();
        poller.wait(Some(timeout), |token, _| found.push(token.0)).unwrap();
        found
    }

    #[test]
    fn a_wait_returns_so_many_events_and_the_next_one_goes_on_where_it_has_stopped() {
        const LONG: Duration = Duration::from_secs(20);
        for mut poller in pollers(3, 2) {
            let sources = watched(&poller, 10);
            let write = |source: usize| assert_eq!((&sources[source][1]).write(b"x").unwrap(), 1);
            (0..10).for_each(write);
            assert_eq!(found(&mut poller, Duration::ZERO), [0, 1]);
            write(0);
            assert_eq!(found(&mut poller, LONG), [2, 3, 4]);
            assert_eq!(found(&mut poller, Duration::ZERO), [5, 6]);
            assert_eq!(found(&mut poller, LONG), [7, 8, 9]);
            assert_eq!(found(&mut poller, Duration::ZERO), [0]);
            assert_eq!(found(&mut poller, Duration::ZERO), []);
        }
    }

    #[test]
    fn a_look_may_return_more_than_a_wait() {
        for mut poller in pollers(1, 3) {
            let sources = watched(&poller, 5);
            sources.iter().for_each(|[_, writer]| assert_eq!((&*writer).write(b"x").unwrap(), 1));
            assert_eq!(found(&mut poller, Duration::from_secs(20)), [0]);
            assert_eq!(found(&mut poller, Duration::ZERO), [1, 2, 3]);
            assert_eq!(found(&mut poller, Duration::ZERO), [4]);
        }
    }

    #[test]
    fn more_events_than_there_can_be_are_as_many_as_may_be() {
        for mut poller in pollers(usize::MAX, usize::MAX) {
            let sources = watched(&poller, 2);
            sources.iter().for_each(|[_, writer]| assert_eq!((&*writer).write(b"x").unwrap(), 1));
            assert_eq!(found(&mut poller, Duration::ZERO), [0, 1]);
        }
    }
}
