//! Who should wait in the driver: what one member would like another one to do.
//!
//! A member whose own future is woken by the one in the driver, again and again, would rather wait there itself
//! ([`Worker::wait`](super::worker::Worker::wait)).
//!
//! And one whose polls are long wants *company*: an event waits for the poll that is under way, unless another member waits in
//! the driver meanwhile. The two ends of a stream, each of which goes on for 60 us before it has to wait for the
//! other, would run one after the other beside an idle processor, though each could begin before the other one ends.
//! So a member which finds that what it wanted to wait for is there already, [`IN_A_ROW`] times, after polls of
//! [`LONG_NS`], asks another one to wait in the driver, and for [`COMPANY_NS`] nobody leaves the driver to those that run
//! (`Worker::leaves_driver`): each of them goes back there after its polls, and so they change places.
//!
//! Where one end only begins when the other one has ended, as with requests that are made one after the other, that is a wake-up
//! on a cold processor for each. Then the others are parked already when somebody wakes up for an event. If that was so for most of
//! [`ENOUGH`] waits, it is over, and nobody asks again for [`PAUSE_NS`], or twice as long each time in a row.
//!
//! Not with shorter polls: the other one is up no sooner, and its processor has none of what is read and written in its
//! cache. Of streams whose polls took 20 us, some had more and some less of a gain than that costs.
//!
//! All hints; who acts on one parks as a member that has run something does, for which the protocol of `idle.rs` holds.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};

use super::shared::Shared;
use super::worker::Worker;

/// Polls that take as long are long enough for another member.
const LONG_NS: f32 = 40_000.0;
/// What is there within this time was there before.
const AT_ONCE_NS: u64 = 5_000;
/// For so long a wish for company lasts.
const COMPANY_NS: u64 = 8_000_000;
/// After that in vain, nobody asks for so long, at first and at most.
const PAUSE_NS: u64 = 64_000_000;
const MOST_NS: u64 = 1_024_000_000;
/// So many waits tell whether it was in vain.
const ENOUGH: u32 = 4;
/// So often.
const IN_A_ROW: u32 = 3;

/// The wishes.
#[derive(Debug)]
pub(super) struct Wishes {
    /// The index + 1 of a member that would rather wait in the driver itself.
    driver: AtomicUsize,
    /// Who parks next without having run anything should do so in the driver.
    company: AtomicBool,
    /// Until when nobody should leave the driver to others; 0 if nobody has asked for that.
    company_until_ns: AtomicU64,
    /// Waits in the driver of late while that was so, and those of them that ended while another member was in a poll.
    waits: AtomicU32,
    gains: AtomicU32,
    /// How long nobody asks again after that, if it was in vain.
    pause_ns: AtomicU64,
}

impl Wishes {
    pub(super) fn new() -> Self {
        Self {
            driver: AtomicUsize::new(0),
            company: AtomicBool::new(false),
            company_until_ns: AtomicU64::new(0),
            waits: AtomicU32::new(0),
            gains: AtomicU32::new(0),
            pause_ns: AtomicU64::new(0),
        }
    }

    /// Who has asked for the driver.
    pub(super) fn take_driver(&self) -> Option<usize> {
        // ORD relaxed: a hint.
        if self.driver.load(Relaxed) == 0 {
            return None;
        }
        // ORD relaxed: as above.
        self.driver.swap(0, Relaxed).checked_sub(1)
    }

    /// True if a member has asked for company.
    #[inline]
    pub(super) fn take_company(&self) -> bool {
        // ORD relaxed: a hint.
        // In a model no time passes, so that nobody asks.
        !cfg!(volt_loom) && self.company.load(Relaxed) && self.company.swap(false, Relaxed)
    }
}

/// All of these are hints: relaxed, and what two members count at the same time may be counted once.
impl Wishes {
    #[inline]
    fn is_company_wanted(&self, now: impl FnOnce() -> u64) -> bool {
        // ORD relaxed: a hint.
        let until = self.company_until_ns.load(Relaxed);
        until != 0 && now() < until
    }

    /// Somebody has waited in the driver until `now`, for what came later; `others` were in a poll then.
    fn count_wait(&self, others: bool, now: u64) {
        // ORD relaxed: hints.
        let [waits, gains] = [&self.waits, &self.gains].map(|it| it.load(Relaxed));
        let (mut waits, mut gains) = (waits + 1, gains + u32::from(others));
        if waits >= ENOUGH {
            let mut pause = 0;
            if gains < waits / 2 {
                // ORD relaxed: a hint.
                pause = (2 * self.pause_ns.load(Relaxed)).clamp(PAUSE_NS, MOST_NS);
                // ORD relaxed: as above.
                self.company_until_ns.store(now, Relaxed);
            }
            // ORD relaxed: as above.
            self.pause_ns.store(pause, Relaxed);
            (waits, gains) = (0, 0);
        }
        // ORD relaxed: as above.
        self.waits.store(waits, Relaxed);
        // ORD relaxed: as above.
        self.gains.store(gains, Relaxed);
    }

    /// Begins at the time `now`, unless it lasts, or was in vain lately.
    fn begins_company(&self, now: u64) -> bool {
        // ORD relaxed: hints.
        let [until, pause] = [&self.company_until_ns, &self.pause_ns].map(|it| it.load(Relaxed));
        if now < until.saturating_add(pause) {
            return false;
        }
        // ORD relaxed: as above.
        self.company_until_ns.store(now.saturating_add(COMPANY_NS), Relaxed);
        // ORD relaxed: as above.
        self.company.store(true, Relaxed);
        true
    }
}

impl Shared {
    /// Member `index` asks whoever waits in the driver to make room.
    pub(super) fn wish_for_driver(&self, index: usize) {
        // ORD relaxed: a hint; the reactor's wake-up orders it.
        self.wishes.driver.store(index + 1, Relaxed);
        self.driver_handle.unpark();
    }
}

impl Worker<'_> {
    /// Has a member asked for company lately?
    #[inline]
    pub(super) fn is_company_wanted(&self) -> bool {
        // In a model no time passes, so that nobody asks.
        !cfg!(volt_loom) && self.shared.wishes.is_company_wanted(|| self.now_ns())
    }

    /// Before a wait in the driver: the time, if it tells something.
    #[inline]
    pub(super) fn begins_to_wait(&self) -> Option<u64> {
        let is_long = self.pace.poll_ns() >= LONG_NS;
        (is_long && self.shared.idle.load().attached() > 1).then(|| self.now_ns())
    }

    /// A wait in the driver that began at `start` has ended `now`, and this member goes on.
    pub(super) fn has_waited(&self, start: u64, now: u64) {
        let at_once = now.saturating_sub(start) < AT_ONCE_NS;
        let in_a_row = if at_once { self.ready_waits.get() + 1 } else { 0 };
        self.ready_waits.set(in_a_row);
        let wishes = &self.shared.wishes;
        if !at_once && wishes.is_company_wanted(|| now) {
            let summary = self.shared.idle.load();
            let idle = summary.parked() + summary.searching() + 1;
            wishes.count_wait(summary.attached() > idle, now);
        }
        if in_a_row >= IN_A_ROW {
            self.ready_waits.set(0);
            self.ask_for_company(now);
        }
    }

    #[cold]
    fn ask_for_company(&self, now: u64) {
        let summary = self.shared.idle.load();
        let is_free = summary.wants_searcher() && !summary.driver_taken();
        if is_free && self.shared.wishes.begins_company(now) {
            // ORD relaxed: a hint. (A choosy guest would set aside what it finds.)
            let is_choosy = |index: usize| self.shared.slot(index).choosy.load(Relaxed);
            self.shared.notify_if(|_, index| !is_choosy(index) && !self.shared.keeps_off(index));
        }
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
