//! Who works, who looks for work, who sleeps: the parking protocol.
//!
//! Purpose: a task that becomes runnable is noticed by a worker, at the price of one load when
//! somebody is looking anyway; nobody wakes up for nothing.
//!
//! Vocabulary. A *member* is a worker thread, or a thread inside `block_on` (a guest). It *runs*
//! tasks, or is *searching* the queues of the others, or is *parked*. One parked member waits in
//! the *driver*. One parked member may be the *watcher*: it sleeps with a timeout and looks after
//! the members that run (`stall.rs`), or rests while none does (`doze.rs`).
//!
//! State: one bit for each parked member, in as many words as it takes, and one packed word:
//!
//! | Bits   | Field     | Means                                                                 |
//! |--------|-----------|-----------------------------------------------------------------------|
//! | 0..12  | searching | members that look for work                                            |
//! | 12..25 | parked    | parked bits that nobody has a ticket for                              |
//! | 25..38 | attached  | members                                                               |
//! | 38..51 | watcher   | the watcher's index + 1, or 0                                         |
//! | 51..64 | driver    | the index + 1 of whoever holds the driver, or 0                       |
//!
//! Rejected (see the tests named after the findings):
//! * looking at the queues before publishing the parked bit, or between leaving the searchers and
//!   publishing it: a push in between wakes nobody (P1);
//! * a timeout that wakes parked workers: it hides lost wake-ups and costs power;
//! * counting a member that was claimed while it woke up by itself twice as searcher, or not at
//!   all: one leak disables all later wake-ups (P2). Tickets, below, decide;
//! * one 64-bit word for bits and counts: no more than some 40 members.
//!
//! Protocol to post work: make it visible in a queue (SeqCst store or read-modify-write), then [`notify`]: unless
//! somebody searches or nobody is parked, take a *ticket* (parked - 1, searching + 1 in one CAS),
//! clear any parked bit, and unpark its member, who is now a searcher.
//!
//! Protocol to sleep: [`park`] sets the bit, then in one CAS parked + 1 (and searching - 1); then
//! look at *all* queues, whoever you are; if there is work, [`notify`] as the poster would
//! have (preferring oneself). Only then sleep.
//!
//! To get up without having been claimed ([`unpark_self`]): take a ticket, then clear the own bit.
//! If somebody else has cleared it, give the ticket back: one is claimed.
//!
//! Invariants:
//! 1. Set bits = parked + tickets taken whose bit is not cleared yet (+ bits set whose `parked + 1`
//!    is still to come). So a ticket's holder finds a bit.
//! 2. Whoever clears a bit unparks its member with CLAIMED, except for a member that clears its own.
//! 3. searching counts members in a search and members claimed that have not noticed yet.
//! 4. If all members are parked, one of them holds the driver: the last to park takes it.
//! 5. The content of the driver is accessed only by the member that `driver` names.
//!
//! | Edge  | Release side            | Acquire side               | Carries | Model |
//! |-------|-------------------------|----------------------------|---------|-------|
//! | [ID1] | `total_order`           | `total_order`              | under loom only: work against parking | `outside_push_against_parking` |
//! | [ID2] | `Idle::park`            | `Idle::clear_bit`          | a member's place to sleep | `a_claim_finds_the_members_place_to_sleep` |
//! | [ID3] | `Idle::change`          | `Idle::load`, `Idle::change` | the driver's content; with [IS1] in one total order: work against parking | none: under loom the fences of [ID1] carry both. Litmus test `order_parking::weak_orders_of_the_summary_or_the_queues_lose_a_task` of volt-models |
//!
//! [IS1] and [ID3] are SeqCst accesses: the poster stores to a queue, then loads this word; the
//! sleeper changes this word, then loads the queues. With all four in one total order one of them
//! sees the other (Dekker), and on x86 the loads cost nothing. Loom takes SeqCst loads and stores
//! for weaker than they are, so under it a fence stands between the two (`total_order`).
//!
//! Progress: why no wake-up is lost. A post either sees a searcher, or gives a ticket, or sees
//! nobody parked. (a) A searcher that finds something else and is the last looks at all queues
//! before it runs it, and notifies. One that finds nothing parks, and looks after it is published.
//! (b) A ticket wakes somebody as a searcher: (a). (c) Nobody was parked: every member that parks
//! later looks after that, and sees the work.
//!
//! The same holds for a task that a guest sets aside, with [`notify_taker`]: who posts it wakes nobody but those
//! who take it, a choosy searcher that ends its search or parks wakes one of these for it, as the poster would
//! have, and (c) is about them. Where none of them is parked, it waits for one that runs.
//!
//! And a post wakes no guest that keeps off (`shy.rs`) if there is a watcher: either a worker goes on, which looks before
//! it parks, or the watcher finds that none does; one that would stop beside work watches on until it has caught one.
//!
//! Cost: `notify` with nobody to wake 1 load. Parking 2 RMW, waking somebody 3 RMW and a system
//! call.
//!
//! [`notify`]: Idle::notify
//! [`notify_taker`]: Idle::notify_taker
//! [`park`]: Idle::park
//! [`unpark_self`]: Idle::unpark_self
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};

use volt_sync::internal::CachePadded;
use volt_sync::internal::primitive::AtomicU64;

/// How many members there can be.
pub(crate) const MAX_MEMBERS: usize = (1 << 12) - 1;

/// The packed word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Summary(u64);

const SEARCHING: Field = Field { shift: 0, bits: 12 };
const PARKED: Field = Field { shift: 12, bits: 13 };
const ATTACHED: Field = Field { shift: 25, bits: 13 };
const WATCHER: Field = Field { shift: 38, bits: 13 };
const DRIVER: Field = Field { shift: 51, bits: 13 };

struct Field {
    shift: u32,
    bits: u32,
}

impl Field {
    #[inline]
    const fn get(&self, word: u64) -> usize {
        (word >> self.shift & ((1 << self.bits) - 1)) as usize
    }

    #[inline]
    const fn set(&self, word: u64, value: usize) -> u64 {
        debug_assert!(value >> self.bits == 0);
        word & !(((1 << self.bits) - 1) << self.shift) | (value as u64) << self.shift
    }
}

impl Summary {
    #[inline]
    pub(crate) const fn searching(self) -> usize {
        SEARCHING.get(self.0)
    }
    #[inline]
    pub(crate) const fn parked(self) -> usize {
        PARKED.get(self.0)
    }
    #[inline]
    pub(crate) const fn attached(self) -> usize {
        ATTACHED.get(self.0)
    }
    #[inline]
    pub(crate) const fn has_watcher(self) -> bool {
        WATCHER.get(self.0) != 0
    }
    /// True if somebody else than `index` is the watcher. (One that was woken is it for some time yet.)
    #[inline]
    pub(crate) const fn is_watched(self, index: usize) -> bool {
        self.has_watcher() && !self.is_watcher(index)
    }
    #[inline]
    pub(crate) const fn is_watcher(self, index: usize) -> bool {
        WATCHER.get(self.0) == index + 1
    }
    #[inline]
    pub(crate) const fn driver_taken(self) -> bool {
        DRIVER.get(self.0) != 0
    }
    pub(crate) const fn driver_holder(self) -> Option<usize> {
        DRIVER.get(self.0).checked_sub(1)
    }
    #[inline]
    pub(crate) const fn has_driver(self, index: usize) -> bool {
        DRIVER.get(self.0) == index + 1
    }

    #[must_use]
    const fn add_searching(self, by: isize) -> Self {
        Self(SEARCHING.set(self.0, self.searching().wrapping_add_signed(by)))
    }
    #[must_use]
    const fn add_parked(self, by: isize) -> Self {
        Self(PARKED.set(self.0, self.parked().wrapping_add_signed(by)))
    }
    #[must_use]
    const fn add_attached(self, by: isize) -> Self {
        Self(ATTACHED.set(self.0, self.attached().wrapping_add_signed(by)))
    }
    #[must_use]
    const fn with_watcher(self, index: Option<usize>) -> Self {
        Self(WATCHER.set(
            self.0,
            match index {
                None => 0,
                Some(index) => index + 1,
            },
        ))
    }
    #[must_use]
    const fn with_driver(self, index: Option<usize>) -> Self {
        Self(DRIVER.set(
            self.0,
            match index {
                None => 0,
                Some(index) => index + 1,
            },
        ))
    }

    /// Without the roles of `index`.
    #[must_use]
    const fn without_roles(mut self, index: usize) -> Self {
        if self.is_watcher(index) {
            self = self.with_watcher(None);
        }
        if self.has_driver(index) {
            self = self.with_driver(None);
        }
        self
    }

    /// Members that are not parked.
    #[inline]
    pub(crate) const fn running(self) -> usize {
        self.attached().saturating_sub(self.parked())
    }
    /// True if a member beside the one that asks, which runs, does so, too.
    #[inline]
    pub(crate) const fn others_run(self) -> bool {
        self.attached() > self.parked() + 1
    }

    /// True if nobody runs.
    #[inline]
    pub(crate) const fn all_parked(self) -> bool {
        self.parked() >= self.attached()
    }

    /// True if something that needs watching should wake somebody.
    #[inline]
    pub(crate) const fn wants_watcher(self) -> bool {
        self.wants_searcher() && !self.has_watcher()
    }

    /// True if a push should wake somebody.
    #[inline]
    pub(crate) const fn wants_searcher(self) -> bool {
        self.searching() == 0 && self.parked() != 0
    }
}

impl std::fmt::Debug for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summary")
            .field("searching", &self.searching())
            .field("parked", &self.parked())
            .field("attached", &self.attached())
            .field("watcher", &WATCHER.get(self.0).checked_sub(1))
            .field("driver", &self.driver_holder())
            .finish()
    }
}

/// Stands where the total order of SeqCst accesses is needed that loom does not give.
#[inline(always)]
pub(super) fn total_order() {
    #[cfg(volt_loom)]
    // ORD[ID1] release: with the fence of the other side, what the total order of the SeqCst
    // ORD[ID1] acquire: accesses gives outside of loom.
    volt_sync::internal::primitive::fence(SeqCst);
}

/// What a member that parked has to do besides sleeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roles {
    /// Waits in the driver.
    pub(crate) driver: bool,
    /// Looks after the running members from time to time.
    pub(crate) watcher: bool,
}

/// How [`Idle::unpark_self`] ended.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SelfUnpark {
    /// The member is up.
    Up,
    /// Somebody has claimed it: the token CLAIMED has come or will come at once, and with it the
    /// member is a searcher. It still has its roles.
    Claimed,
    /// There is no ticket now: the token will come, or a ticket will. Look for both.
    Busy,
}

/// The members' state.
pub(crate) struct Idle {
    summary: CachePadded<AtomicU64>,
    bits: Box<[AtomicU64]>,
}

impl Idle {
    /// For up to `capacity` members, none of them attached.
    pub(crate) fn new(capacity: usize) -> Self {
        assert!(capacity <= MAX_MEMBERS, "a runtime has at most {MAX_MEMBERS} workers");
        Self {
            summary: CachePadded::new(AtomicU64::new(0)),
            bits: (0..capacity.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The packed word, in the total order with the queues.
    #[inline]
    pub(crate) fn load(&self) -> Summary {
        total_order();
        // ORD[ID3] acquire: SeqCst, after a store to a queue.
        Summary(self.summary.load(SeqCst))
    }

    /// Changes the packed word by `f`, unless that returns None. The word as it was.
    #[inline]
    fn change(&self, f: impl Fn(Summary) -> Option<Summary>) -> Result<Summary, Summary> {
        let mut summary = self.load();
        loop {
            let Some(to) = f(summary) else { return Err(summary) };
            // ORD[ID3] release: the content of the driver; SeqCst, before a load of the queues.
            // ORD[ID3] acquire: the content of the driver.
            match self.summary.compare_exchange_weak(summary.0, to.0, SeqCst, SeqCst) {
                Ok(_) => {
                    total_order();
                    return Ok(summary);
                }
                Err(newer) => summary = Summary(newer),
            }
        }
    }

    /// A member joins; it runs.
    pub(crate) fn attach(&self) {
        let _ = self.change(|summary| Some(summary.add_attached(1)));
    }

    /// A member that runs leaves. True if all others are parked and none holds the driver: the
    /// caller must [`notify`](Self::notify).
    pub(crate) fn detach(&self, index: usize) -> bool {
        let before = self
            .change(|summary| Some(summary.without_roles(index).add_attached(-1)))
            .expect("always changed");
        let after = before.without_roles(index).add_attached(-1);
        after.parked() != 0 && after.parked() == after.attached() && !after.driver_taken()
    }

    /// Becomes a searcher, unless half of the members search already.
    pub(crate) fn start_search(&self) -> bool {
        self.change(|summary| {
            let allowed = 2 * summary.searching() < summary.attached();
            allowed.then(|| summary.add_searching(1))
        })
        .is_ok()
    }

    /// Stops searching, having found something. True if this was the last searcher: the caller
    /// looks at the queues, and [notifies](Self::notify) if they are not empty.
    pub(crate) fn end_search(&self) -> bool {
        let before =
            self.change(|summary| Some(summary.add_searching(-1))).expect("always changed");
        before.searching() == 1
    }

    /// Publishes that member `index` parks. The caller then looks at all queues.
    ///
    /// `searching`: it was a searcher. `ran`: it has run something since it last woke up (or another member
    /// wants company there, `wish.rs`), and so takes the driver back if nobody has it; others leave it to those who run.
    pub(crate) fn park(&self, index: usize, searching: bool, ran: bool) -> Roles {
        // ORD[ID2] release: the member's place to sleep is there.
        self.bits[index / 64].fetch_or(1 << (index % 64), AcqRel);
        let to = |summary: Summary| {
            let mut to = summary.add_parked(1).add_searching(-isize::from(searching));
            let last = to.all_parked();
            if !to.driver_taken() && (ran || last) {
                to = to.with_driver(Some(index));
            }
            // A searcher makes known what it finds, or parks as we do and watches instead of us, who
            // would leave nobody behind when getting up for the driver's next event.
            let others_run = !ran || to.searching() == 0 && to.attached() > to.parked();
            if !to.has_watcher() && others_run {
                to = to.with_watcher(Some(index));
            }
            to
        };
        let before = self.change(|summary| Some(to(summary))).expect("always changed");
        let after = to(before);
        Roles { driver: after.has_driver(index), watcher: after.is_watcher(index) }
    }

    /// Member `index` gets up by itself, as a searcher or to run something.
    pub(crate) fn unpark_self(&self, index: usize, searching: bool) -> SelfUnpark {
        let delta = isize::from(searching);
        let ticket = self.change(|summary| {
            let up = summary.without_roles(index);
            (up.parked() != 0).then(|| up.add_parked(-1).add_searching(delta))
        });
        if ticket.is_err() {
            // Somebody has a ticket for every bit; but perhaps uses it for a member whose own
            // `parked + 1` is still to come, and leaves ours.
            return SelfUnpark::Busy;
        }
        if self.clear_bit(index) {
            return SelfUnpark::Up;
        }
        // Claimed meanwhile: what we hold is a ticket for another member's bit.
        let _ = self.change(|summary| Some(summary.add_parked(1).add_searching(-delta)));
        SelfUnpark::Claimed
    }

    /// Clears the parked bit of `index`: true if it was set.
    fn clear_bit(&self, index: usize) -> bool {
        let bit = 1 << (index % 64);
        // ORD[ID2] acquire: the member's place to sleep.
        self.bits[index / 64].fetch_and(!bit, AcqRel) & bit != 0
    }

    /// Member `index`, which was claimed, gives up its roles.
    pub(crate) fn drop_roles(&self, index: usize) {
        let _ = self.change(|summary| {
            let to = summary.without_roles(index);
            (to != summary).then_some(to)
        });
    }

    /// After work was made visible: claims a parked member if nobody searches. The caller unparks
    /// the returned one with CLAIMED.
    #[inline]
    pub(crate) fn notify(&self) -> Option<usize> {
        if !self.load().wants_searcher() {
            return None;
        }
        self.claim(None)
    }

    /// As [`notify`](Self::notify), by a member that is parked itself and would rather be the one.
    pub(crate) fn notify_preferring(&self, index: usize) -> Option<usize> {
        self.claim(Some(index))
    }

    /// As [`notify`](Self::notify), for what not everybody would take: one of the `members` that `takes` it, rather one
    /// that is not near, and rather one without a duty. Nobody if none of those is parked.
    ///
    /// The members are counted after the look at their state, which orders it: whoever is parked is there.
    pub(crate) fn notify_taker(
        &self,
        members: impl FnOnce() -> usize,
        takes: impl Fn(Summary, usize) -> bool,
        is_near: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let summary = self.load();
        if !summary.wants_searcher() {
            return None;
        }
        let duty =
            |index: usize| (is_near(index), summary.has_driver(index), summary.is_watcher(index));
        let members = members();
        let takers = self.parked().filter(|&index| index < members && takes(summary, index));
        let mut best = None;
        for index in takers {
            best = best.filter(|&other| duty(other) < duty(index)).or(Some(index));
            if duty(index) == (false, false, false) {
                break;
            }
        }
        self.claim(Some(best?))
    }

    #[cold]
    fn claim(&self, preferred: Option<usize>) -> Option<usize> {
        let summary = self.take_ticket(Summary::wants_searcher)?;
        Some(self.clear_preferred_bit(preferred, summary))
    }

    /// Claims a parked member, whoever searches: for shutdown, where everybody must notice.
    pub(crate) fn claim_any(&self) -> Option<usize> {
        let summary = self.take_ticket(|_| true)?;
        Some(self.clear_any_bit(summary))
    }

    /// Claims the watcher, whoever searches, if there is one: to have it look again soon. (If it gets
    /// up meanwhile, another member is claimed for nothing.)
    pub(crate) fn claim_watcher(&self) -> Option<usize> {
        let summary = self.take_ticket(Summary::has_watcher)?;
        Some(self.clear_preferred_bit(WATCHER.get(summary.0).checked_sub(1), summary))
    }

    /// Takes a ticket, if somebody is parked and `wanted`. The word as it was.
    fn take_ticket(&self, wanted: impl Fn(Summary) -> bool) -> Option<Summary> {
        self.change(|summary| {
            (summary.parked() != 0 && wanted(summary))
                .then(|| summary.add_parked(-1).add_searching(1))
        })
        .ok()
    }

    /// Uses a ticket, for `preferred` if that is parked.
    fn clear_preferred_bit(&self, preferred: Option<usize>, summary: Summary) -> usize {
        match preferred {
            Some(index) if self.clear_bit(index) => index,
            _ => self.clear_any_bit(summary),
        }
    }

    /// Uses a ticket: clears one bit, if possible not the watcher's nor that of the member in the
    /// driver, who have something to do; and rather the watcher's, who sleeps on its futex, than that
    /// of the other one, whose way out of the driver is long and who leaves it without anybody.
    fn clear_any_bit(&self, summary: Summary) -> usize {
        for round in 0_u32.. {
            for index in self.parked() {
                let reluctance = match (summary.has_driver(index), summary.is_watcher(index)) {
                    (true, _) => 2,
                    (false, true) => 1,
                    (false, false) => 0,
                };
                if round >= reluctance && self.clear_bit(index) {
                    return index;
                }
            }
            if round > 1 {
                volt_sync::internal::primitive::spin(round);
            }
        }
        unreachable!("a ticket's bit is there (invariant 1)")
    }

    /// Member `index`, parked, takes the driver if nobody has it.
    pub(crate) fn take_driver(&self, index: usize) -> bool {
        self.change(|summary| (!summary.driver_taken()).then(|| summary.with_driver(Some(index))))
            .is_ok()
    }

    /// Gives the driver back.
    pub(crate) fn release_driver(&self, index: usize) {
        let _ = self.change(|summary| {
            debug_assert!(summary.has_driver(index));
            Some(summary.with_driver(None))
        });
    }

    /// Member `index`, parked, becomes the watcher if there is none.
    pub(crate) fn take_watch(&self, index: usize) -> bool {
        self.change(|summary| (!summary.has_watcher()).then(|| summary.with_watcher(Some(index))))
            .is_ok()
    }

    /// The watcher goes to sleep for good. It must look once more afterwards.
    pub(crate) fn release_watch(&self, index: usize) {
        let _ =
            self.change(|summary| summary.is_watcher(index).then(|| summary.with_watcher(None)));
    }

    /// True if a member that runs has the driver: it looks what is in there. As a snapshot.
    pub(crate) fn is_looked_at(&self, summary: Summary) -> bool {
        summary.driver_holder().is_some_and(|index| !self.is_parked(index))
    }

    /// The members whose parked bit is set, word by word as a snapshot.
    fn parked(&self) -> impl Iterator<Item = usize> {
        self.bits.iter().enumerate().flat_map(|(number, word)| {
            // ORD relaxed: a hint; `clear_bit` decides.
            let mut bits = word.load(Relaxed);
            std::iter::from_fn(move || {
                let lowest = number * 64 + bits.trailing_zeros() as usize;
                bits = (bits != 0).then(|| bits & (bits - 1))?;
                Some(lowest)
            })
        })
    }

    /// True if member `index` is parked, as a snapshot.
    pub(crate) fn is_parked(&self, index: usize) -> bool {
        // ORD relaxed: a snapshot.
        self.bits[index / 64].load(Relaxed) & 1 << (index % 64) != 0
    }
}

impl std::fmt::Debug for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.load().fmt(f)
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
