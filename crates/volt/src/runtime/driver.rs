//! What waits for the outside world: the reactor and the timers of one runtime.
//!
//! The [`Driver`] is the part that one member at a time has (`scheduler/idle.rs` says who); the
//! [`Handle`] is everybody's.

#[cfg(not(volt_loom))]
mod ahead;
mod alarm;
#[cfg(all(target_os = "linux", not(volt_loom)))]
mod timer_fd;

use std::io;
use std::time::Duration;

#[cfg(not(volt_loom))]
use self::ahead::Ahead;
use self::alarm::Alarm;
use crate::reactor::{self, EventsPerTurn, Why};
use crate::time::{Clock, Timers};

#[cfg(not(volt_loom))]
use crate::reactor::Reactor;

/// A function without arguments, for the blocking pool.
type Hook = std::sync::Arc<dyn Fn() + Send + Sync>;

/// The part of the driver that all threads share.
pub(crate) struct Handle {
    pub(crate) reactor: reactor::Handle,
    pub(crate) timers: Timers,
    pub(crate) clock: Clock,
    /// Where a member sleeps that waits for nothing, and whose sleep others put off.
    pub(crate) alarm: Alarm,
    #[cfg(volt_loom)]
    bell: volt_sync::internal::Parker,
}

/// The part that waits.
pub(crate) struct Driver {
    #[cfg(not(volt_loom))]
    reactor: Reactor,
    #[cfg(not(volt_loom))]
    ahead: Ahead,
}

impl Driver {
    /// A driver whose timers have a shard for each of `workers`, and that takes the usual number of events.
    ///
    /// # Errors
    /// As [`taking`](Self::taking).
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn new(workers: usize, clock: Clock) -> io::Result<(Self, Handle)> {
        Self::taking(EventsPerTurn::default(), workers, clock)
    }

    /// A driver whose timers have a shard for each of `workers`, and that takes so many `events`.
    ///
    /// # Errors
    /// If the operating system has no descriptors left.
    pub(crate) fn taking(
        events: EventsPerTurn,
        workers: usize,
        clock: Clock,
    ) -> io::Result<(Self, Handle)> {
        let (_reactor, handle) = reactor::Reactor::new(events)?;
        let timers = Timers::new(workers + 1, clock.clone());
        let unpark = handle.clone();
        timers.set_unpark(move || unpark.unpark());
        let handle = Handle {
            reactor: handle,
            timers,
            clock,
            alarm: Alarm::default(),
            #[cfg(volt_loom)]
            bell: volt_sync::internal::Parker::new(),
        };
        let driver = Self {
            #[cfg(not(volt_loom))]
            reactor: _reactor,
            #[cfg(not(volt_loom))]
            ahead: Ahead::default(),
        };
        Ok((driver, handle))
    }

    /// Waits for an event, a timer, an [`unpark`](Handle::unpark), or `limit`; wakes the tasks
    /// concerned, after it has called `is_back`. `idle` tells whether there is still nothing to run: only then a paused clock
    /// moves on, and the last microseconds before a timer is due are waited out here.
    ///
    /// A descriptor that the operating system refuses to wait on is reported by a panic: no
    /// runtime can go on without.
    #[cfg(not(volt_loom))]
    pub(crate) fn wait(
        &mut self,
        handle: &Handle,
        limit: Option<Duration>,
        idle: impl Fn() -> bool,
        is_back: impl Fn(),
    ) {
        let next = handle.timers.prepare_wait();
        let timeout = match (next, limit) {
            (Some(next), Some(limit)) => Some(next.min(limit)),
            (one, other) => one.or(other),
        };
        if next.is_some() {
            // A limit may be exceeded a little.
            volt_sync::internal::slack::sharpen();
        }
        let for_timer = timeout.filter(|_| timeout == next);
        let is_set = for_timer.is_some_and(|wait| self.sets_ahead(&handle.timers, wait));
        let timeout = if is_set { None } else { timeout };
        let turned = self.reactor.turn_calling(&handle.reactor, timeout, &is_back);
        let events = *turned.as_ref().unwrap_or(&0);
        let timed_out = for_timer.is_some() && events == 0;
        // What was put off meanwhile counts on the next look.
        let idles = || idle() && !handle.reactor.owes_a_look();
        let now = timed_out.then(|| handle.timers.wait_out(idles)).flatten();
        is_back();
        let fired = handle.timers.end_wait(events > 0, now);
        turned.expect("the reactor's descriptor is valid");
        if handle.clock.is_paused() && events == 0 && fired == 0 && idle() {
            handle.timers.auto_advance();
        }
    }

    /// True if the wait for the next of the `timers` ends by itself after this time, and need not be told.
    #[cfg(not(volt_loom))]
    fn sets_ahead(&mut self, timers: &Timers, wait: Duration) -> bool {
        // The kernel's timers do not stand still with a clock that does.
        if wait.is_zero() || !timers.clock().is_the_machines() {
            return false;
        }
        let (asked, due) = timers.asked_and_due();
        let set = self.ahead.begin(&self.reactor, wait, asked, due);
        set.inspect(|&at| timers.set_asked(at)).is_some()
    }

    /// Loom has no operating system: the wait is for `unpark` only.
    #[cfg(volt_loom)]
    pub(crate) fn wait(
        &mut self,
        handle: &Handle,
        _limit: Option<Duration>,
        _idle: impl Fn() -> bool,
        is_back: impl Fn(),
    ) {
        handle.bell.park();
        is_back();
    }

    /// Looks for events and timers without waiting.
    #[cfg_attr(volt_loom, allow(unused_variables, reason = "there is no reactor"))]
    pub(crate) fn look(&mut self, handle: &Handle, why: Why) {
        #[cfg(not(volt_loom))]
        self.reactor.look(&handle.reactor, why).expect("the reactor's descriptor is valid");
        handle.timers.fire_due();
    }

    /// Guesses what a look would find. False if it takes a look.
    #[cfg(not(volt_loom))]
    pub(crate) fn guess(&mut self, handle: &Handle) -> bool {
        let guessed = self.reactor.guess(&handle.reactor, || handle.clock.now_ns());
        if guessed {
            handle.timers.fire_due();
        }
        guessed
    }

    /// Loom has no operating system.
    #[cfg(volt_loom)]
    pub(crate) fn guess(&mut self, _: &Handle) -> bool {
        false
    }
}

impl Handle {
    /// Ends the current wait in the driver, or the next.
    pub(crate) fn unpark(&self) {
        #[cfg(not(volt_loom))]
        self.reactor.unpark();
        #[cfg(volt_loom)]
        self.bell.unpark();
    }

    /// What the blocking pool calls around its tasks: a paused clock does not advance meanwhile.
    pub(crate) fn hold_clock(&self) -> Option<(Hook, Hook)> {
        let (clock, held) = (self.clock.clone(), self.clock.clone());
        let reactor = self.reactor.clone();
        let release = move || {
            clock.allow_auto_advance();
            if clock.is_paused() {
                reactor.unpark();
            }
        };
        let hold: Hook = std::sync::Arc::new(move || held.inhibit_auto_advance());
        self.clock.is_pausable().then(|| (hold, std::sync::Arc::new(release) as Hook))
    }

    /// Ends all waits of tasks: those for readiness with an error, those for timers with a panic.
    pub(crate) fn shutdown(&self) {
        self.reactor.shutdown();
        self.timers.shutdown();
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("driver::Handle").field("reactor", &self.reactor).finish_non_exhaustive()
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
