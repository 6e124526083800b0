//! Timers that come at equal distances: the kernel is told of the next one while the thread waits for this one.
//!
//! Purpose: to set a processor's timer takes a virtual machine out of its guest, for 6 us where this was measured; and
//! whoever begins a wait that ends before all that the processor has set its timer for does that. When the timer goes
//! off, the kernel sets it for the next one anyway: if it knows that by then, it is set once for each wait and not
//! twice. So a wait of a beat is for a timer of the kernel that was set a wait ago, and sets the one for the next.
//! (A loop around `epoll_pwait2`, each wait a millisecond after the last: 18.5 us of processor time for a wait, and 11.9
//! so. From 2 ms on there is nothing to win: the scheduler's own tick, of 4 ms, is what the processor's timer is set for.)
//!
//! Rejected: to have an `Interval` say when it will be due again: not only intervals do, and what has come three times at
//! the same distance to the nanosecond comes again, mostly. If it does not, one wait ends without a reason, or two if
//! an event had ended this one.
//!
//! State: the timers take turns, `turn` is that of the timer that is waited for. A time that is set and still to come has not
//! gone off, and who waits then is woken by it, even if it goes off before the wait has begun: nobody else takes the
//! reactor's events. All times are the machine's: a clock that was stopped has no beat, as the kernel's timers went on.
//! And a clock that is not the kernel's, as a library shows it to a program under test (`libfaketime`), has none: a timer might
//! not go off for years. So the first one is asked, once, when it will.
//!
//! Cost: a comparison for each wait for a timer. In a beat, one system call more.
#![forbid(unsafe_code)]

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::reactor::Reactor;

/// So many times the distance has to be the same as before.
const REPEATS: u32 = 3;
/// The distances for which it is worth a system call.
const PERIODS_NS: RangeInclusive<u64> = 50_000..=2_000_000;
/// A time that is set is as good as another one that is so near: that of a lead (`lead.rs`) changes each time.
const NEAR_NS: u64 = 10_000;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    beat: Beat,
    timers: imp::Timers,
}

impl Ahead {
    /// A wait is to end after `wait`, at the time `asked` of the machine's clock, for a timer that is `due`. When it ends by
    /// itself, if it is one of a beat.
    #[inline]
    pub(super) fn begin(
        &mut self,
        reactor: &Reactor,
        wait: Duration,
        asked: u64,
        due: u64,
    ) -> Option<u64> {
        let period = self.beat.period(due)?;
        let set = |turn, at| self.timers.set(reactor, turn, at);
        self.beat.begin(asked.checked_sub(wait.as_nanos() as u64)?, asked, period, set)
    }
}

#[derive(Debug, Default)]
struct Beat {
    /// For when the last wait was, how long after the one before it that is, and how often in a row it was as long.
    due: u64,
    period: u64,
    repeats: u32,
    turn: usize,
    /// For when the timers are set.
    set_for: [u64; 2],
}

impl Beat {
    /// The distance of the timers, the next of which is `due`, if they have a beat.
    fn period(&mut self, due: u64) -> Option<u64> {
        let period = due.wrapping_sub(self.due);
        if period != 0 {
            self.repeats = if period == self.period { self.repeats.saturating_add(1) } else { 0 };
            (self.due, self.period) = (due, period);
            self.turn = 1 - self.turn;
        }
        (self.repeats >= REPEATS && PERIODS_NS.contains(&self.period)).then_some(self.period)
    }

    /// Has `set` set what is not set `now`, which takes the timer and for when.
    #[cold]
    fn begin(
        &mut self,
        now: u64,
        asked: u64,
        period: u64,
        mut set: impl FnMut(usize, u64) -> bool,
    ) -> Option<u64> {
        for (turn, at) in [(self.turn, asked), (1 - self.turn, asked.checked_add(period)?)] {
            let is_set = self.set_for[turn] > now && self.set_for[turn].abs_diff(at) <= NEAR_NS;
            if !is_set {
                self.set_for[turn] = 0;
                if !set(turn, at) {
                    return None;
                }
                self.set_for[turn] = at;
            }
        }
        Some(self.set_for[self.turn])
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use std::io;
    use std::os::fd::AsRawFd;
    use std::time::Duration;

    use super::NEAR_NS;
    use crate::reactor::Reactor;
    use crate::runtime::driver::timer_fd::TimerFd;
    use crate::time::{machine_ns, reading_at};

    /// One that is set for so much later has not gone off when it is asked.
    const LATER: Duration = Duration::from_secs(3600);

    /// Made when they are first needed. None if there are no descriptors left for them, the system refuses to set them, or they
    /// go by another clock.
    #[derive(Debug, Default)]
    pub(super) enum Timers {
        #[default]
        Unused,
        Made([TimerFd; 2]),
        Refused,
    }

    impl Timers {
        fn made(reactor: &Reactor) -> io::Result<Self> {
            let timers = [TimerFd::new()?, TimerFd::new()?];
            if !goes_by(&timers[0], || reading_at(machine_ns())) {
                return Err(io::ErrorKind::Unsupported.into());
            }
            for timer in &timers {
                reactor.watch_own(timer.as_raw_fd())?;
            }
            Ok(Self::Made(timers))
        }

        /// Timer `turn` ends a wait in the reactor at the time `at`. False if it does not.
        pub(super) fn set(&mut self, reactor: &Reactor, turn: usize, at: u64) -> bool {
            if let Self::Unused = self {
                *self = Self::made(reactor).unwrap_or(Self::Refused);
            }
            let is_set = match self {
                Self::Made(timers) => reading_at(at)
                    .is_some_and(|reading| timers[turn].set_at(Duration::from_nanos(reading))),
                Self::Unused | Self::Refused => false,
            };
            if !is_set {
                *self = Self::Refused;
            }
            is_set
        }
    }

    /// True if the timer goes by the clock that `reading` reads, in nanoseconds. It is set for a time that is far away.
    pub(super) fn goes_by(timer: &TimerFd, reading: impl Fn() -> Option<u64>) -> bool {
        let its_clock = |now: u64| {
            let at = Duration::from_nanos(now).checked_add(LATER)?;
            let left = timer.set_at(at).then(|| timer.left())??;
            u64::try_from(at.checked_sub(left)?.as_nanos()).ok()
        };
        let Some(before) = reading() else { return false };
        let its = its_clock(before);
        let after = reading();
        let earliest = before.saturating_sub(NEAR_NS);
        let latest = after.map(|after| after.saturating_add(NEAR_NS));
        its.zip(latest).is_some_and(|(its, latest)| (earliest..=latest).contains(&its))
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use crate::reactor::Reactor;

    #[derive(Debug, Default)]
    pub(super) struct Timers;

    impl Timers {
        pub(super) fn set(&mut self, _: &Reactor, _: usize, _: u64) -> bool {
            false
        }
    }
}

#[cfg(test)]
mod tests;
