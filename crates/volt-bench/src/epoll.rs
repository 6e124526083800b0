//! The little of epoll that the floors and the load generator need.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// An epoll instance; readable sockets are told by the number they were added with.
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the call takes no pointer.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Epoll(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Level-triggered, for reading.
    pub(crate) fn add(&self, socket: &impl AsRawFd, number: u64) -> io::Result<()> {
        self.add_for(socket, number, libc::EPOLLIN)
    }

    /// Edge-triggered, for reading.
    pub(crate) fn add_edges(&self, socket: &impl AsRawFd, number: u64) -> io::Result<()> {
        self.add_for(socket, number, libc::EPOLLIN | libc::EPOLLET)
    }

    fn add_for(&self, socket: &impl AsRawFd, number: u64, events: i32) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events.cast_unsigned(), u64: number };
        // SAFETY: both descriptors are open, and the event outlives the call.
        let result = unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                socket.as_raw_fd(),
                &raw mut event,
            )
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits at most a second; the numbers of the sockets that can be read.
    pub(crate) fn wait(&self, ready: &mut Vec<u64>) -> io::Result<()> {
        const EVENTS: i32 = 64;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS as usize];
        // SAFETY: the buffer holds as many events as the call is told.
        let count =
            unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), EVENTS, 1000) };
        ready.clear();
        match usize::try_from(count) {
            Ok(count) => {
                ready.extend(events[..count].iter().map(|event| event.u64));
                Ok(())
            }
            Err(_) => Err(io::Error::last_os_error()),
        }
    }
}
