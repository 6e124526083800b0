//! Where one thread sleeps: on its futex, in the driver, or at the alarm.
//!
//! Purpose: the `Parker` of `volt-sync` with two more things to know: why the thread was woken,
//! and whether it sleeps in the driver, whom only the reactor's own wake-up gets out, or at the driver's
//! alarm (`doze.rs`), which has to ring.
//!
//! State: one word of reasons and the way of sleeping.
//!
//! | Bit     | Set by                   | Cleared by   | Means                                      |
//! |---------|--------------------------|--------------|--------------------------------------------|
//! | CLAIMED | whoever cleared the thread's parked bit (`idle.rs`) | `take` | it is counted as a searcher  |
//! | ROOT    | the waker of the future that the thread polls itself | `take` | poll that future          |
//! | EVENT   | the same, if it wakes the thread while turning the driver | `take` | where ROOT came from |
//! | FUTEX   | `sleep`                  | `take`       | asleep on the word                         |
//! | DRIVER  | `enter_driver`           | `take`       | asleep in the driver                       |
//! | ALARM   | `enter_alarm`            | `take`       | asleep at the alarm                        |
//!
//! Invariants:
//! 1. Only the thread itself sets FUTEX, DRIVER and ALARM, and only while no reason is set.
//! 2. A reason is cleared only by the thread's read-modify-write that reports it (finding K4: a
//!    plain store could erase a reason that it never saw).
//! 3. `driver` points to a live driver handle, or is None; it changes only under its lock.
//!
//! | Edge  | Release side   | Acquire side | Carries                   | Model |
//! |-------|----------------|--------------|---------------------------|-------|
//! | [SP1] | `Park::unpark`, `Park::claim` | `Park::take` | what the waker did before | `unpark_against_sleep` |
//!
//! Progress: the word is compared by the futex itself, so a reason that is set before the thread
//! sleeps keeps it awake; one that is set later finds FUTEX, DRIVER or ALARM and wakes it. A thread that sets one
//! itself, in its turn of the driver, has returned from the wait of that turn, and takes the reasons after it.
//!
//! Cost: unpark 1 RMW, and a system call only if the thread sleeps; `take` with nothing to take a
//! load.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::task::{RawWaker, RawWakerVTable, Waker};
use std::time::Duration;

use volt_sync::internal::primitive::{Arc, Futex, Mutex};

use crate::runtime::scheduler::worker::Worker;
use crate::runtime::{context, driver};

/// Woken by a claim of the parked bit: the thread is counted as a searcher.
pub(crate) const CLAIMED: u32 = 1;
/// Woken by the waker of its own future.
pub(crate) const ROOT: u32 = 2;
/// With ROOT: an event or a timer was the reason, not another thread.
pub(crate) const EVENT: u32 = 16;
const FUTEX: u32 = 4;
const DRIVER: u32 = 8;
const ALARM: u32 = 32;
const PLACES: u32 = FUTEX | DRIVER | ALARM;
const REASONS: u32 = CLAIMED | ROOT | EVENT;

/// One thread's place to sleep.
pub(crate) struct Park {
    state: Futex,
    /// The driver that the thread may be sleeping in, for its own waker, which can outlive it.
    driver: Mutex<Option<NonNull<driver::Handle>>>,
}

// SAFETY: `driver` is shared with other threads, and driver handles are `Sync`.
unsafe impl Send for Park {}
// SAFETY: the pointer is accessed under the lock, and its target is for sharing.
unsafe impl Sync for Park {}

impl Park {
    pub(crate) fn new() -> Self {
        Self { state: Futex::new(0), driver: Mutex::new(None) }
    }

    /// Names the driver in which the thread may sleep from now on.
    ///
    /// # Safety
    /// `driver` stays alive until it is replaced.
    pub(crate) unsafe fn set_driver(&self, driver: Option<NonNull<driver::Handle>>) {
        *self.driver.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = driver;
    }

    /// Gives the thread a reason to be awake, and wakes it.
    #[inline]
    pub(crate) fn unpark(&self, reason: u32) {
        let sleep = self.give(reason);
        if sleep != 0 {
            self.wake(sleep);
        }
    }

    /// Gives the thread a reason. Where it sleeps, if it is the caller's to wake it.
    #[inline]
    fn give(&self, reason: u32) -> u32 {
        // ORD[SP1] release: everything before this call happens before the `take` that reports it.
        let previous = self.state.word().fetch_or(reason, Release);
        if previous & REASONS == 0 { previous & PLACES } else { 0 }
    }

    /// Gives the thread the reason CLAIMED, and wakes it. It sleeps nowhere else than here and in `driver`.
    ///
    /// A thread that has this reason may be gone, with this object, before the call returns: it may have
    /// been about to wake up by itself. So nothing of it is read after that; of the futex, the address is used.
    pub(crate) fn claim(&self, driver: &driver::Handle) {
        match self.give(CLAIMED) {
            FUTEX => self.state.wake(1),
            DRIVER => driver.unpark(),
            ALARM => driver.alarm.ring(),
            _ => {}
        }
    }

    #[cold]
    fn wake(&self, sleep: u32) {
        if sleep == FUTEX {
            self.state.wake(1);
            return;
        }
        if self.is_awake_in_driver() {
            return;
        }
        let driver = self.driver.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(driver) = *driver {
            // SAFETY: it is replaced, under the lock that we hold, before it is freed.
            let driver = unsafe { driver.as_ref() };
            if sleep == ALARM { driver.alarm.ring() } else { driver.unpark() }
        }
    }

    /// True if this is the caller's own, whose turn of the driver has what woke it: it takes its reasons when
    /// the turn ends. To get it out of there would end its next wait before that begins.
    fn is_awake_in_driver(&self) -> bool {
        let is_ours = |worker: &Worker<'_>| worker.turns_driver() && ptr::eq(&**worker.park, self);
        context::current_worker(|worker| worker.is_some_and(is_ours))
    }

    /// The reason to poll the thread's future, with where it comes from if the thread sleeps.
    #[inline]
    fn root_reason(&self) -> u32 {
        // ORD relaxed: a hint.
        let sleeps = self.state.word().load(Relaxed) & PLACES != 0;
        if sleeps && context::turns_driver() { ROOT | EVENT } else { ROOT }
    }

    /// Takes the reasons that have been given.
    #[inline]
    pub(crate) fn take(&self) -> u32 {
        // ORD relaxed: a look; what it announces is taken below.
        if self.state.word().load(Relaxed) == 0 {
            return 0;
        }
        // ORD[SP1] acquire: what the waker did before.
        self.state.word().swap(0, Acquire) & REASONS
    }

    /// True if a reason has been given.
    #[inline]
    pub(crate) fn is_notified(&self) -> bool {
        // ORD relaxed: a look; `take` acquires.
        self.state.word().load(Relaxed) & REASONS != 0
    }

    /// True if another thread has given a reason, and no event or timer.
    pub(crate) fn was_woken_by_others(&self) -> bool {
        // ORD relaxed: a look; `take` acquires.
        let reasons = self.state.word().load(Relaxed) & REASONS;
        reasons != 0 && reasons & EVENT == 0
    }

    /// Sleeps on the futex until there is a reason, at most for `timeout`. Returns the reasons:
    /// none after the timeout, or by chance.
    pub(crate) fn sleep(&self, timeout: Option<Duration>) -> u32 {
        if self.enter(FUTEX) {
            self.state.wait(FUTEX, timeout);
        }
        self.take()
    }

    /// Announces that the thread is about to sleep in the driver. False if there is a reason not to.
    pub(crate) fn enter_driver(&self) -> bool {
        self.enter(DRIVER)
    }

    /// The same, at the driver's alarm.
    pub(crate) fn enter_alarm(&self) -> bool {
        self.enter(ALARM)
    }

    fn enter(&self, place: u32) -> bool {
        // ORD relaxed: entering the sleep carries nothing.
        self.state.word().compare_exchange(0, place, Relaxed, Relaxed).is_ok()
    }

    /// A waker that gives `park` the reason ROOT.
    pub(crate) fn waker(park: &Arc<Self>) -> Waker {
        let park = Arc::into_raw(park.clone());
        // SAFETY: the functions of the table treat the pointer as a counted `Arc<Park>`, are
        // thread-safe, and the count is the one that `into_raw` gave up.
        unsafe { Waker::from_raw(RawWaker::new(park.cast(), &VTABLE)) }
    }
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, release);

unsafe fn clone(park: *const ()) -> RawWaker {
    // SAFETY: the waker holds a count.
    unsafe { Arc::increment_strong_count(park.cast::<Park>()) };
    RawWaker::new(park, &VTABLE)
}

unsafe fn wake(park: *const ()) {
    // SAFETY: the waker, which is consumed, holds a count.
    let park = unsafe { Arc::from_raw(park.cast::<Park>()) };
    park.unpark(park.root_reason());
}

unsafe fn wake_by_ref(park: *const ()) {
    // SAFETY: the waker holds a count while this runs.
    let park = unsafe { &*park.cast::<Park>() };
    park.unpark(park.root_reason());
}

unsafe fn release(park: *const ()) {
    // SAFETY: the waker, which is consumed, holds a count.
    drop(unsafe { Arc::from_raw(park.cast::<Park>()) });
}

impl std::fmt::Debug for Park {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Park").field("state", self.state.word()).finish_non_exhaustive()
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
