//! Who should wait in the driver: what one member would like another one to do.
//!
//! A member whose own future is woken by the one in the driver, again and again, would rather wait there itself
//! ([`Worker::wait`](crate::runtime::scheduler::worker::Worker::wait)).
//!
//! And one whose polls are long wants *company*: an event waits for the poll that is under way, unless another member waits in
//! the driver meanwhile. The two ends of a stream, each of which goes on for 60 us before it has to wait for the
//! other, would run one after the other beside an idle processor, though each could begin before the other one ends.
//! So a member which finds that what it wanted to wait for is there already, [`IN_A_ROW`] times, after polls of
//! [`LONG_NS`], asks another one to wait in the driver, if there is a processor for it. For [`COMPANY_NS`] whoever parks does
//! so there, if nobody does yet (a choosy guest only if it has run something), and nobody leaves the driver to those that
//! run (`Worker::leaves_driver`): each of them goes back there after its polls, and so they change places.
//!
//! Where one end only begins when the other one has ended, as with requests that are made one after the other, that is a wake-up
//! on a cold processor for each. Then those that waited there are parked again when the next one wakes up for an event. If
//! that was so for most of [`ENOUGH`] waits, it is over, and nobody asks again for [`PAUSE_NS`], or twice as long each time in a
//! row.
//!
//! Not with shorter polls: the other one is up no sooner, and its processor has none of what is read and written in its
//! cache. Of streams whose polls took 20 us, some had more and some less of a gain than that costs.
//!
//! All hints; who acts on one parks as a member that has run something does, for which the protocol of `idle.rs` holds.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;

use volt_sync::internal::primitive::{AtomicU32, AtomicU64, AtomicUsize};

use crate::runtime::scheduler::pacing::quick;
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::worker::Worker;

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
pub(crate) struct Wishes {
    /// The index + 1 of a member that would rather wait in the driver itself.
    driver: AtomicUsize,
    company: Company,
}

impl Wishes {
    pub(crate) fn new() -> Self {
        Self { driver: AtomicUsize::new(0), company: Company::new() }
    }

    /// Who has asked for the driver.
    pub(crate) fn take_driver(&self) -> Option<usize> {
        // ORD relaxed: a hint.
        if self.driver.load(Relaxed) == 0 {
            return None;
        }
        // ORD relaxed: as above.
        self.driver.swap(0, Relaxed).checked_sub(1)
    }
}

/// All of these are hints: relaxed, and what two members count at the same time may be counted once.
#[derive(Debug)]
struct Company {
    /// Until when somebody should wait in the driver; 0 if that is over.
    until_ns: AtomicU64,
    /// When somebody may ask for it.
    again_ns: AtomicU64,
    /// Waits in the driver while it lasted, and those of them that ended while another one of those who waited there was in
    /// a poll.
    waits: AtomicU32,
    gains: AtomicU32,
    /// Who they are: bits by index, of which 64 share one.
    waiters: AtomicU64,
    /// How long nobody has asked again after it was in vain; 0 if it was not, the last time.
    pause_ns: AtomicU64,
}

impl Company {
    fn new() -> Self {
        let [until_ns, again_ns, waiters, pause_ns] = std::array::from_fn(|_| AtomicU64::new(0));
        let [waits, gains] = std::array::from_fn(|_| AtomicU32::new(0));
        Self { until_ns, again_ns, waits, gains, waiters, pause_ns }
    }

    #[inline]
    fn is_wanted(&self, now: impl FnOnce() -> u64) -> bool {
        // ORD relaxed: a hint.
        let until = self.until_ns.load(Relaxed);
        if until == 0 || now() < until {
            return until != 0;
        }
        // Nobody has to look at the clock again.
        // ORD relaxed: as above.
        let _ = self.until_ns.compare_exchange(until, 0, Relaxed, Relaxed);
        false
    }

    /// Asks for it, at the time `now`, or if it `lasts` for more of it. False if it was in vain lately.
    fn ask(&self, now: u64, lasts: bool) -> bool {
        // ORD relaxed: a hint.
        if now < self.again_ns.load(Relaxed) {
            return false;
        }
        if !lasts {
            // ORD relaxed: as above.
            self.waits.store(0, Relaxed);
            // ORD relaxed: as above.
            self.gains.store(0, Relaxed);
            // ORD relaxed: as above.
            self.waiters.store(0, Relaxed);
        }
        // ORD relaxed: as above.
        self.until_ns.store(now.saturating_add(COMPANY_NS), Relaxed);
        true
    }

    fn end(&self) {
        // ORD relaxed: a hint.
        self.until_ns.store(0, Relaxed);
    }

    /// Member `index` has waited in the driver.
    fn add_waiter(&self, index: usize) {
        let bit = Self::bit(index);
        // ORD relaxed: a hint.
        if self.waiters.load(Relaxed) & bit == 0 {
            // ORD relaxed: as above.
            self.waiters.fetch_or(bit, Relaxed);
        }
    }

    fn has_waiter(&self, index: usize) -> bool {
        // ORD relaxed: a hint.
        self.waiters.load(Relaxed) & Self::bit(index) != 0
    }

    const fn bit(index: usize) -> u64 {
        1 << (index % 64)
    }

    /// Somebody has waited in the driver until `now`, for what came later. Was that a `gain`?
    fn count_wait(&self, gain: bool, now: u64) {
        // ORD relaxed: hints.
        let [waits, gains] = [&self.waits, &self.gains].map(|it| it.load(Relaxed));
        let (mut waits, mut gains) = (waits + 1, gains + u32::from(gain));
        if waits >= ENOUGH {
            let mut pause = 0;
            if gains < waits / 2 {
                // ORD relaxed: a hint.
                pause = (2 * self.pause_ns.load(Relaxed)).clamp(PAUSE_NS, MOST_NS);
                // ORD relaxed: as above.
                self.again_ns.store(now.saturating_add(pause), Relaxed);
                self.end();
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
}

impl Shared {
    /// Member `index` asks whoever waits in the driver to make room.
    pub(crate) fn wish_for_driver(&self, index: usize) {
        // ORD relaxed: a hint; the reactor's wake-up orders it.
        self.wishes.driver.store(index + 1, Relaxed);
        self.driver_handle.unpark();
    }
}

impl Worker<'_> {
    /// Has a member asked for company lately?
    #[inline]
    pub(crate) fn is_company_wanted(&self) -> bool {
        // In a model no time passes, so that nobody asks.
        !cfg!(volt_loom) && self.shared.wishes.company.is_wanted(|| self.now_ns())
    }

    /// Before a wait in the driver: notes the time, if that will tell something.
    #[inline]
    pub(crate) fn begins_to_wait(&self) {
        if self.is_company_wanted() {
            self.shared.wishes.company.add_waiter(self.index);
        }
        let is_long = self.pace.poll_ns() >= LONG_NS;
        let tells = is_long && self.shared.idle.load().attached() > 1;
        self.waited_ns.set(tells.then(|| (self.now_ns(), 0)));
        if !tells {
            self.ready_waits.set(0);
        }
    }

    /// After it, and before what has ended it is told to anybody.
    #[inline]
    pub(crate) fn ends_to_wait(&self) {
        if let Some((start, 0)) = self.waited_ns.get() {
            self.waited_ns.set(Some((start, self.now_ns())));
        }
    }

    /// A wait in the driver has ended for an event, `now`, and this member goes on.
    pub(crate) fn has_waited_for_event(&self, now: u64) {
        let Some((start, end)) = self.waited_ns.take() else { return };
        let at_once = end.saturating_sub(start) < AT_ONCE_NS;
        let in_a_row = if at_once { self.ready_waits.get() + 1 } else { 0 };
        self.ready_waits.set(in_a_row);
        let company = &self.shared.wishes.company;
        if !at_once && company.is_wanted(|| now) {
            company.count_wait(self.others_go_on(), now);
        }
        if in_a_row >= IN_A_ROW {
            self.ready_waits.set(0);
            self.ask_for_company(now);
        }
    }

    /// Is another one of those who have waited in the driver meanwhile in a poll? (One that searches has ended its polls, and
    /// any of them may be that one.)
    fn others_go_on(&self) -> bool {
        let (shared, company) = (self.shared, &self.shared.wishes.company);
        let goes_on = |index: usize| {
            index != self.index
                && company.has_waiter(index)
                && !shared.idle.is_parked(index)
                // ORD relaxed: a hint. (A guest that has left is not parked.)
                && shared.slot(index).kind.load(Relaxed) != quick::OF_NOBODY
        };
        let indices = 0..shared.used_slots().len();
        indices.filter(|&index| goes_on(index)).count() > shared.idle.load().searching()
    }

    #[cold]
    fn ask_for_company(&self, now: u64) {
        let (shared, company) = (self.shared, &self.shared.wishes.company);
        let summary = shared.idle.load();
        let has_processor =
            summary.running() < shared.config.processors && !shared.crowd.is_there();
        let is_free = summary.wants_searcher() && !summary.driver_taken();
        let lasts = company.is_wanted(|| now);
        if !is_free || !has_processor || !company.ask(now, lasts) {
            return;
        }
        company.add_waiter(self.index);
        // ORD relaxed: a hint. (A choosy guest would set aside what it finds.)
        let is_choosy = |index: usize| shared.slot(index).choosy.load(Relaxed);
        let takes = |_, index| !is_choosy(index) && !shared.keeps_off(index);
        if !shared.notify_if(takes) && !lasts {
            company.end();
        }
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
