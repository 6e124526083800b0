//! One wait for events of the operating system, with the resolution of a nanosecond where it has it.
//!
//! Linux: `epoll_pwait2` (5.11) on the descriptor that `mio` made, with a buffer and a decoding of
//! our own, since `mio` rounds timeouts up to milliseconds. Where the kernel (or its sandbox) does
//! not know the call, and on other systems, `mio`'s own poll.

use std::io;
use std::time::Duration;

use crate::io::Ready;

/// How many events one wait returns at most.
const CAPACITY: usize = 512;

pub(crate) struct Poller {
    poll: mio::Poll,
    /// For `mio`'s own poll: empty until it is needed.
    events: mio::Events,
    #[cfg(target_os = "linux")]
    epoll: linux::Epoll,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let poll = mio::Poll::new()?;
        Ok(Self {
            events: mio::Events::with_capacity(if cfg!(target_os = "linux") {
                0
            } else {
                CAPACITY
            }),
            #[cfg(target_os = "linux")]
            epoll: linux::Epoll::new(),
            poll,
        })
    }

    pub(crate) fn registry(&self) -> &mio::Registry {
        self.poll.registry()
    }

    /// Waits once, and passes each event to `deliver`. A signal that arrives ends the wait.
    pub(crate) fn wait(
        &mut self,
        timeout: Option<Duration>,
        mut deliver: impl FnMut(mio::Token, Ready),
    ) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if let Some(result) = self.epoll.wait(&self.poll, timeout, &mut deliver) {
            return result;
        }
        if self.events.capacity() < CAPACITY {
            self.events = mio::Events::with_capacity(CAPACITY);
        }
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        for event in &self.events {
            deliver(event.token(), readiness(event));
        }
        Ok(())
    }
}

/// An error is worth a try in both directions: whoever tries first gets it.
const ERROR: Ready =
    Ready::from_bits(Ready::ERROR.bits() | Ready::READABLE.bits() | Ready::WRITABLE.bits());

fn readiness(event: &mio::event::Event) -> Ready {
    let kinds = [
        (event.is_readable(), Ready::READABLE),
        (event.is_writable(), Ready::WRITABLE),
        (event.is_read_closed(), Ready::READ_CLOSED),
        // `mio` counts a lone error as this, but it does not last.
        (event.is_write_closed() && !event.is_error(), Ready::WRITE_CLOSED),
        (event.is_priority(), Ready::URGENT),
        (event.is_error(), ERROR),
    ];
    kinds.into_iter().filter(|(is, _)| *is).fold(Ready::EMPTY, |all, (_, kind)| all | kind)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::AsRawFd;
    use std::ptr;
    use std::time::Duration;

    use super::{CAPACITY, ERROR, Ready};

    /// The call and its buffer; without the buffer if the kernel does not know the call.
    pub(super) struct Epoll(Option<Box<[libc::epoll_event]>>);

    impl Epoll {
        pub(super) fn new() -> Self {
            Self(Some(vec![libc::epoll_event { events: 0, u64: 0 }; CAPACITY].into()))
        }

        /// `None` if the kernel does not know the call.
        #[inline]
        pub(super) fn wait(
            &mut self,
            poll: &mio::Poll,
            timeout: Option<Duration>,
            mut deliver: impl FnMut(mio::Token, Ready),
        ) -> Option<io::Result<()>> {
            let buffer = self.0.as_mut()?;
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

    fn wait(
        epoll: libc::c_int,
        buffer: &mut [libc::epoll_event],
        timeout: Option<Duration>,
    ) -> io::Result<usize> {
        let timeout = timeout.map(|timeout| libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            // Below 10^9, so it fits every platform's `c_long`.
            tv_nsec: timeout.subsec_nanos() as libc::c_long,
        });
        // SAFETY: the kernel writes at most `buffer.len()` events to the buffer, reads the timespec,
        // which lives until the call returns, and keeps neither pointer; no signal mask is given.
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
                (libc::EPOLLPRI, Ready::URGENT),
                (libc::EPOLLERR, ERROR),
            ];
            for (flags, kind) in rest {
                if has(flags) {
                    ready |= kind;
                }
            }
        }
        ready
    }
}
