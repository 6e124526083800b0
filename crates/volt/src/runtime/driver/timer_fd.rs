//! A timer of the kernel that is a descriptor: readable from when it goes off until it is set anew.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct TimerFd(OwnedFd);

impl TimerFd {
    pub(super) fn new() -> io::Result<Self> {
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: takes two numbers.
        let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        if timer == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: made just now, and nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(timer) }))
    }

    /// It goes off `after` this time, or never; whatever was set before is forgotten. False if the system refuses it.
    #[must_use]
    pub(super) fn set(&self, after: Option<Duration>) -> bool {
        self.set_time(0, after.unwrap_or_default())
    }

    /// The same, when `CLOCK_MONOTONIC` reads `at`, or at once if it has.
    #[must_use]
    pub(super) fn set_at(&self, at: Duration) -> bool {
        self.set_time(libc::TFD_TIMER_ABSTIME, at)
    }

    fn set_time(&self, flags: libc::c_int, time: Duration) -> bool {
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let time = libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos() as libc::c_long,
        };
        let spec = libc::itimerspec { it_interval: zero, it_value: time };
        // SAFETY: the descriptor is ours, and `spec` is read during the call only.
        let set = unsafe {
            libc::timerfd_settime(self.0.as_raw_fd(), flags, &raw const spec, ptr::null_mut())
        };
        set == 0
    }

    /// How long it is until it goes off; zero if it was not set or has gone off. None if the system does not say it.
    pub(super) fn left(&self) -> Option<Duration> {
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let mut spec = libc::itimerspec { it_interval: zero, it_value: zero };
        // SAFETY: the descriptor is ours, and `spec` is written during the call only.
        let result = unsafe { libc::timerfd_gettime(self.0.as_raw_fd(), &raw mut spec) };
        let libc::timespec { tv_sec, tv_nsec } = spec.it_value;
        let seconds = u64::try_from(tv_sec).ok().filter(|_| result == 0)?;
        Some(Duration::new(seconds, u32::try_from(tv_nsec).ok()?))
    }
}

impl AsRawFd for TimerFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
