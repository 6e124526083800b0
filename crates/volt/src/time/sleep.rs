//! `sleep` and `Sleep`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use volt_sync::coop;
use volt_sync::internal::Timer;

use super::clock::after;
use super::entry::{CHECK, Entry, FIRED, LAZY, NEW, REGISTERED, SHUTDOWN};
use super::scale::nanos;
use super::timers::{Registered, Shard};
use super::{Instant, scope};
use crate::runtime::outside;

/// Waits until `duration` has passed since this call.
///
/// Never early. Late by what it takes to wake the thread that waits for the runtime's next timer
/// and to run the task: on an idle machine some 10 us after a wait of a millisecond, up to 100 us after
/// longer ones, and 125 us more where many timers end one after the other. A `duration` that would end beyond what a
/// clock can represent, about 290 years from now, waits practically for ever: for 30 years, to which a
/// [paused](super::pause) clock jumps if there is nothing else to do. One of zero does not wait: for a turn of others,
/// use [`yield_now`](crate::task::yield_now).
///
/// # Panics
/// Outside of a Volt runtime; and when it is polled for the first time outside of one, or after
/// its runtime has been shut down.
///
/// # Cancel safety
/// Dropping it cancels the timer.
///
/// # Cost
/// One look at the clock; one lock of this worker's timers when it is first polled, and another
/// when it is dropped. No allocation.
///
/// ```
/// # volt::run(async {
/// use volt::time::{Duration, Instant, sleep};
///
/// let start = Instant::now();
/// sleep(Duration::from_millis(2)).await;
/// assert!(start.elapsed() >= Duration::from_millis(2));
/// # });
/// ```
#[inline]
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    let now = scope::with_timers("time::sleep", |timers| timers.clock().now_ns());
    let state = if duration.is_zero() { FIRED } else { NEW };
    Sleep { entry: Entry::new(state, after(now, nanos(duration))) }
}

/// Waits until `deadline`; done at once if that has passed. Otherwise as [`sleep`].
///
/// # Panics
/// As [`sleep`].
///
/// ```
/// # volt::run(async {
/// use volt::time::{Duration, Instant, sleep_until};
///
/// let deadline = Instant::now() + Duration::from_millis(2);
/// sleep_until(deadline).await;
/// assert!(Instant::now() >= deadline);
/// # });
/// ```
#[track_caller]
pub fn sleep_until(deadline: Instant) -> Sleep {
    scope::with_timers("time::sleep_until", |_| ());
    Sleep::until(deadline)
}

/// The future of [`sleep`] and [`sleep_until`].
///
/// It is not `Unpin`, since the timer is inside: to poll it by reference, for instance in
/// `select!`, pin it with `pin!` or `Box::pin`.
///
/// The timer belongs to the runtime in which the future is first polled. Afterwards any thread
/// may poll, [`reset`](Self::reset) or drop it.
///
/// ```
/// # volt::run(async {
/// use std::pin::pin;
/// use volt::time::{Duration, Instant, sleep};
///
/// let mut timer = pin!(sleep(Duration::from_secs(3600)));
/// timer.as_mut().reset(Instant::now() + Duration::from_millis(1));
/// timer.await;
/// # });
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Sleep {
    entry: Entry,
}

#[cfg(all(target_pointer_width = "64", not(volt_loom)))]
const _: () = assert!(size_of::<Sleep>() <= 56);

impl Sleep {
    /// A timer that has not looked at the clock yet.
    pub(super) fn until(deadline: Instant) -> Self {
        Self { entry: Entry::new(CHECK, deadline.to_ns()) }
    }

    /// A timer that counts `duration` from the first time that it is polled.
    #[inline]
    pub(super) fn lazy(duration: Duration) -> Self {
        Self { entry: Entry::new(LAZY, nanos(duration)) }
    }

    /// A timer that goes through the wheel even if `at` has come.
    #[cfg(all(test, not(volt_loom)))]
    pub(super) fn due(at: u64) -> Self {
        Self { entry: Entry::new(NEW, at) }
    }

    /// When it completes.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// use std::time::Duration;
    /// use volt::time::{Instant, sleep_until};
    /// let deadline = Instant::now() + Duration::from_millis(1);
    /// assert_eq!(sleep_until(deadline).deadline(), deadline);
    /// # });
    /// ```
    pub fn deadline(&self) -> Instant {
        let deadline = self.entry.deadline();
        if self.entry.state() == LAZY {
            return Instant::from_ns(after(self.now_ns(), deadline));
        }
        Instant::from_ns(deadline)
    }

    /// True once the deadline has passed.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// use std::pin::pin;
    /// use std::time::Duration;
    /// use volt::time::sleep;
    /// let mut sleep = pin!(sleep(Duration::from_millis(1)));
    /// assert!(!sleep.is_elapsed() || sleep.deadline().elapsed() > Duration::ZERO);
    /// sleep.as_mut().await;
    /// assert!(sleep.is_elapsed());
    /// # });
    /// ```
    pub fn is_elapsed(&self) -> bool {
        match self.entry.state() {
            LAZY => false,
            FIRED if !self.entry.moved.get() => true,
            _ => self.now_ns() >= self.entry.deadline(),
        }
    }

    /// Sets a new deadline, before or after the old one has passed.
    ///
    /// If the timer is running, its task is woken at the new deadline without polling it again.
    /// If it has completed, or was never polled, it must be polled (again) to run.
    ///
    /// If the new deadline is before the old one and has passed, this call wakes the task, and the next
    /// poll is ready.
    ///
    /// Cost: a deadline that only moves later takes one store, and at most one wake-up of the
    /// driver at the old time; one that moves earlier, a lock and a look at the clock.
    ///
    /// # Examples
    /// ```
    /// # volt::run(async {
    /// use std::pin::pin;
    /// use std::time::Duration;
    /// use volt::time::{Instant, sleep};
    /// let mut sleep = pin!(sleep(Duration::from_secs(3600)));
    /// let deadline = Instant::now() + Duration::from_millis(2);
    /// sleep.as_mut().reset(deadline);
    /// sleep.await;
    /// assert!(Instant::now() >= deadline);
    /// # });
    /// ```
    pub fn reset(self: Pin<&mut Self>, deadline: Instant) {
        self.reset_ns(deadline.to_ns());
    }

    pub(super) fn reset_ns(self: Pin<&mut Self>, deadline: u64) {
        let entry = &self.entry;
        if entry.state() == REGISTERED {
            if deadline >= entry.deadline() {
                // The firer looks at the deadline again. If it has just fired for the old one, the
                // next poll finds `moved` and registers anew.
                entry.moved.set(true);
                return entry.set_deadline(deadline);
            }
            if let Some(shard) = entry.shard.get() {
                // SAFETY: valid as the entry counts in its `refs`.
                let shard = unsafe { shard.as_ref() };
                // SAFETY: `self` is the owner, and this is its shard.
                if unsafe { shard.advance(entry, deadline) } {
                    return entry.moved.set(false);
                }
            }
        }
        self.rearm(deadline, CHECK);
    }

    /// As [`reset`](Self::reset) at the time `now`, of a timer that has completed: if `deadline` is later, the next poll
    /// does not look at the clock.
    pub(super) fn restart(self: Pin<&mut Self>, deadline: u64, now: u64) {
        debug_assert_eq!(self.entry.state(), FIRED);
        self.rearm(deadline, if deadline > now { NEW } else { CHECK });
    }

    /// Sets the deadline of an entry that is not registered.
    fn rearm(&self, deadline: u64, state: u8) {
        self.entry.moved.set(false);
        self.entry.set_deadline(deadline);
        self.entry.set_state(state);
    }

    /// When it completes, of a timer that is not one of `timeout`.
    pub(super) fn deadline_ns(&self) -> u64 {
        debug_assert_ne!(self.entry.state(), LAZY);
        self.entry.deadline()
    }

    #[cfg(all(test, volt_loom))]
    pub(super) fn at(state: u8, deadline: u64) -> Self {
        Self { entry: Entry::new(state, deadline) }
    }

    #[cfg(test)]
    pub(super) fn entry(&self) -> &Entry {
        &self.entry
    }

    fn now_ns(&self) -> u64 {
        match self.entry.shard.get() {
            // SAFETY: valid as the entry counts in its `refs`.
            Some(shard) => unsafe { shard.as_ref() }.clock().now_ns(),
            None => scope::now_ns(),
        }
    }

    /// As `poll`, outside of the cooperative budget.
    #[inline]
    #[track_caller]
    pub(super) fn poll_elapsed(
        self: Pin<&mut Self>,
        caller: &'static str,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let entry = &self.entry;
        let state = entry.state();
        if state == FIRED && !entry.moved.get() {
            return Poll::Ready(());
        }
        let polled = match state {
            NEW => self.register(caller, cx),
            // SAFETY: `self` is the owner and registered the entry, since REGISTERED.
            REGISTERED if unsafe { entry.will_wake(cx.waker()) } => Poll::Pending,
            state => self.poll_slow(state, caller, cx),
        };
        if polled.is_pending() {
            outside::waits();
        }
        polled
    }

    #[track_caller]
    fn poll_slow(
        self: Pin<&mut Self>,
        state: u8,
        caller: &'static str,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let entry = &self.entry;
        match state {
            SHUTDOWN => shut_down(),
            REGISTERED => {
                if let Some(shard) = entry.shard.get() {
                    // SAFETY: valid as the entry counts in its `refs`.
                    let shard = unsafe { shard.as_ref() };
                    // SAFETY: `self` is the owner, and this is its shard.
                    if unsafe { shard.set_waker(entry, cx.waker()) } {
                        return Poll::Pending;
                    }
                }
                // It has fired meanwhile, or was shut down: the state says which.
                return self.poll_elapsed(caller, cx);
            }
            LAZY => {
                let now = self.now_ns();
                entry.set_deadline(after(now, entry.deadline()));
                entry.set_state(NEW);
                return self.register(caller, cx);
            }
            _ => {}
        }
        // CHECK, or fired for a deadline that was moved since.
        entry.moved.set(false);
        if self.now_ns() >= entry.deadline() {
            entry.set_state(FIRED);
            return Poll::Ready(());
        }
        entry.set_state(NEW);
        self.register(caller, cx)
    }

    #[track_caller]
    fn register(self: Pin<&mut Self>, caller: &'static str, cx: &mut Context<'_>) -> Poll<()> {
        let (entry, waker) = (&self.entry, cx.waker());
        let shard = match entry.shard.get() {
            Some(shard) => shard,
            None => scope::shard(caller),
        };
        // SAFETY: owned, pinned by `self`, not REGISTERED (1); `drop` calls `forget` (2). This is its shard, which is valid as the
        // entry counts in its `refs`, or that of this thread, whose timers are kept alive until the end of the scope (3).
        let registered = unsafe { Shard::register(shard, entry, waker) };
        match registered {
            Registered::Linked => Poll::Pending,
            Registered::Due => Poll::Ready(()),
            Registered::Closed => shut_down(),
        }
    }
}

#[cold]
#[track_caller]
fn shut_down() -> ! {
    panic!("a timer was polled whose Volt runtime has been shut down")
}

impl Future for Sleep {
    type Output = ();

    #[inline]
    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if coop::poll_proceed(cx).is_pending() {
            return Poll::Pending;
        }
        let poll = self.poll_elapsed("time::sleep", cx);
        if poll.is_ready() {
            coop::made_progress();
        }
        poll
    }
}

pin_project_lite::pin_project! {
    /// What the channels' `send_timeout` sleeps by.
    pub(crate) struct SendTimer {
        #[pin]
        sleep: Sleep,
    }
}

impl Timer for SendTimer {
    fn after(duration: Duration) -> Self {
        Self { sleep: Sleep::lazy(duration) }
    }
}

impl Future for SendTimer {
    type Output = ();

    #[track_caller]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().sleep.poll_elapsed("mpsc::Sender::send_timeout", cx)
    }
}

impl Drop for Sleep {
    #[inline]
    fn drop(&mut self) {
        if let Some(shard) = self.entry.shard.get() {
            // SAFETY: the entry is owned by `self`, and this is its shard.
            unsafe { Shard::forget(shard, &self.entry) };
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline())
            .field("is_elapsed", &self.is_elapsed())
            .finish()
    }
}
