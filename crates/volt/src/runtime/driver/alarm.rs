//! A place where a thread sleeps until a time that others may move meanwhile.
//!
//! Purpose: the end of a wait on a futex, or in the reactor, is known before it begins. Here it is a timer of its own.
//! (Where there is no such timer, or no descriptors are left for one, there is no alarm. If the system refuses to set it
//! later, it rings at once, and is not used again.)
#![forbid(unsafe_code)]

use std::sync::OnceLock;
use std::time::Duration;

/// Made when it is first needed. Three descriptors.
#[derive(Debug, Default)]
pub(crate) struct Alarm(OnceLock<Option<imp::Alarm>>);

impl Alarm {
    /// True if it can be used; otherwise the rest does nothing.
    pub(crate) fn is_there(&self) -> bool {
        self.0.get_or_init(|| imp::Alarm::new().ok()).as_ref().is_some_and(imp::Alarm::works)
    }

    fn made(&self) -> Option<&imp::Alarm> {
        self.0.get()?.as_ref()
    }

    /// It goes off after this time, or never; whatever was set before is forgotten.
    pub(crate) fn set(&self, after: Option<Duration>) {
        if let Some(alarm) = self.made() {
            if !alarm.set(after) {
                alarm.ring();
            }
        }
    }

    /// Sleeps until it goes off or [rings](Self::ring), or has rung since the last sleep; or by chance less. For
    /// one thread at a time.
    pub(crate) fn sleep(&self) {
        if let Some(alarm) = self.made() {
            alarm.sleep();
        }
    }

    /// Ends the sleep, or the next one.
    pub(crate) fn ring(&self) {
        if let Some(alarm) = self.made() {
            alarm.ring();
        }
    }
}

#[cfg(all(target_os = "linux", not(volt_loom)))]
mod imp {
    use std::io;
    use std::os::fd::AsRawFd;
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    use mio::unix::SourceFd;
    use mio::{Events, Interest, Poll, Token, Waker};
    use volt_sync::internal::primitive::{AtomicBool, Mutex};

    use crate::runtime::driver::timer_fd::TimerFd;

    #[derive(Debug)]
    pub(super) struct Alarm {
        sleeper: Mutex<(Poll, Events)>,
        bell: Waker,
        timer: TimerFd,
        is_refused: AtomicBool,
    }

    impl Alarm {
        pub(super) fn new() -> io::Result<Self> {
            let timer = TimerFd::new()?;
            let poll = Poll::new()?;
            let fd = timer.as_raw_fd();
            let mut source = SourceFd(&fd);
            poll.registry().register(&mut source, Token(0), Interest::READABLE)?;
            let bell = Waker::new(poll.registry(), Token(1))?;
            let sleeper = Mutex::new((poll, Events::with_capacity(2)));
            Ok(Self { sleeper, bell, timer, is_refused: AtomicBool::new(false) })
        }

        pub(super) fn works(&self) -> bool {
            // ORD relaxed: a hint.
            !self.is_refused.load(Relaxed)
        }

        /// False if the system refuses it.
        #[must_use]
        pub(super) fn set(&self, after: Option<Duration>) -> bool {
            let set = self.timer.set(after);
            if !set {
                // ORD relaxed: a hint.
                self.is_refused.store(true, Relaxed);
            }
            set
        }

        pub(super) fn sleep(&self) {
            let mut sleeper =
                self.sleeper.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let (poll, events) = &mut *sleeper;
            match poll.poll(events, None) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    panic!("the alarm's descriptor is valid: {error}");
                }
                _ => {}
            }
        }

        pub(super) fn ring(&self) {
            self.bell.wake().expect("the alarm's descriptor is valid");
        }
    }
}

#[cfg(not(all(target_os = "linux", not(volt_loom))))]
mod imp {
    use std::io;
    use std::time::Duration;

    #[derive(Debug)]
    pub(super) enum Alarm {}

    impl Alarm {
        pub(super) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn works(&self) -> bool {
            match *self {}
        }

        pub(super) fn set(&self, _: Option<Duration>) -> bool {
            match *self {}
        }

        pub(super) fn sleep(&self) {
            match *self {}
        }

        pub(super) fn ring(&self) {
            match *self {}
        }
    }
}

#[cfg(all(test, target_os = "linux", not(volt_loom)))]
mod tests {
    use volt_sync::internal::primitive::now;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(10);

    #[test]
    fn it_goes_off_at_the_time_that_was_set_last() {
        let alarm = Alarm::default();
        assert!(alarm.is_there());
        let start = now();
        std::thread::scope(|scope| {
            alarm.set(Some(LONG));
            let sleeper = scope.spawn(|| alarm.sleep());
            std::thread::sleep(SHORT);
            alarm.set(None);
            std::thread::sleep(SHORT);
            alarm.set(Some(SHORT));
            sleeper.join().unwrap();
        });
        assert!((3 * SHORT..LONG).contains(&start.elapsed()), "{:?}", start.elapsed());
    }

    #[test]
    fn a_time_that_has_passed_is_forgotten_when_another_one_is_set() {
        let alarm = Alarm::default();
        assert!(alarm.is_there());
        alarm.set(Some(SHORT));
        std::thread::sleep(2 * SHORT);
        let start = now();
        alarm.set(Some(SHORT));
        alarm.sleep();
        assert!(start.elapsed() >= SHORT, "{:?}", start.elapsed());
    }

    #[test]
    fn a_ring_ends_the_sleep_or_the_next_one() {
        let alarm = Alarm::default();
        assert!(alarm.is_there());
        alarm.set(None);
        alarm.ring();
        alarm.sleep();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| alarm.sleep());
            std::thread::sleep(SHORT);
            alarm.ring();
            sleeper.join().unwrap();
        });
    }

    #[test]
    fn one_that_was_never_needed_does_nothing() {
        let alarm = Alarm::default();
        alarm.ring();
        alarm.set(Some(LONG));
        alarm.sleep();
    }
}
