//! How often a member looks at the clock, the driver, and the injector.
//!
//! Purpose: a socket and a timer wait for about [`LOOK_NS`] at most while polls are short, and for
//! about one poll if they are longer; a task in the injector waits for a round of the others; the
//! clock is not read per poll.
//!
//! A *tick* is a number of polls between two looks at the clock. It has as many polls as took
//! [`LOOK_NS`] at the pace of the last tick, but at most twice as many as that one, and at most
//! [`BUDGET`]; it begins with [`FIRST`] after a sleep. A poll that was timed anyway (`quick.rs`) and
//! took long ends it. The driver is looked at after [`BUDGET`] polls or [`LOOK_NS`], whichever comes
//! first. A member that has nothing to run may look sooner, and go on with what it finds: then
//! [`FIRST`] polls are left of the tick at most, and as many are in the next one (an early look, `early.rs`, leaves the tick
//! as it is). The clock is not read for
//! such a look; when it was is told by the polls before and after it, as if all were as long, and its own time
//! counts as theirs.
//!
//! The injector has its turn after a round of the member's own tasks ([`ROUNDS`] of them if only bursts of short spawns are there), or
//! [`LOOK_NS`] if a round takes longer: a task from outside waits no longer than one from inside, which goes to the end of the
//! ring. But after a batch come as many polls of the member's own as there are of these among all that wait (`fetch.rs`),
//! however long: otherwise a flood from outside would leave them one for each batch. If its tasks are short, and the own ones not, its turn goes
//! on with other batches for as long as a round of these takes. And once it was emptied, not again within [`TURN_NS`]: while polls are shorter than a lock, a
//! batch is worth it. What was taken from the injector is run in between, and not counted, unless the member has sent
//! it there (`fetch.rs`, which also says when such tasks come sooner): it is the member's own polls that are measured. A tick in which some of it ran tells only how long the own
//! ones took at most, so it lowers the mean, and never raises it.
//!
//! What is left: polls that become long at once, of kinds that were all seen to be quick, on members
//! that have not slept since: these are noticed after up to [`BUDGET`] polls, once.
//! And a tick that has some of a flood from outside does not tell that the own polls became longer. So it
//! does not make the next tick longer either: if each one has some of it, the injector has its turn in
//! each, and if one has not, the mean follows. But while a batch lasts, ticks are as long as those of
//! nothing else have shown (a flood alone would have the clock read at each poll, for ever after a long
//! one).
//!
//! Rejected: a fixed number of polls (128 polls of 5 ms are 640 ms in which no socket is looked at);
//! the clock at each poll (more than many polls take); a thread that only looks after the driver (it
//! would compete with the members for processors, and take turns with them for each event); a new tick
//! after each look (a message between two sockets of a thread then has a look, a poll and the clock, which
//! is 82 of 1,930 instructions, and the clock's time).
#![forbid(unsafe_code)]

use std::cell::Cell;

use crate::runtime::config::Config;

/// Polls between two looks at the driver, at most.
pub(crate) const BUDGET: u32 = if cfg!(volt_loom) { 4 } else { 128 };
/// Polls of the first tick, and of the first after a sleep.
const FIRST: u32 = if cfg!(volt_loom) { 4 } else { 8 };
/// The time after which a busy member should have looked at the driver, and at the injector.
pub(crate) const LOOK_NS: u64 = 250_000;
/// The time before it looks at an injector again that it has emptied: about that of a wake-up.
const TURN_NS: f32 = 10_000.0;
/// Polls of less are short: who has something to wait for may let the others have theirs first.
const SHORT_NS: f32 = 2_000.0;
/// What does more than to spawn and to wake, as a system call, takes this long at least.
const WORTH_A_LOCK_NS: f32 = 500.0;
/// A member that has run out after more than this has polled for long: a search takes less.
const LONG_NS: f32 = 50_000.0;
/// One whose polls are short reads the clock at so many of these times.
const SHORT_RUNS: u32 = 8;
const MAX_INTERVAL: u32 = 255;
/// If only bursts of spawns have left something there, its turn is after so many rounds.
const ROUNDS: u32 = 4;
/// The injector's turn has so many batches at most. (A paused clock tells no time.)
const BATCHES: u32 = 8;
/// After a long poll, the LIFO slot has one poll for so much of it, up to a limit.
const LIFO_SHARE_NS: u64 = 10_000;
/// One that takes longer counts as several, so that all take a tenth of that time.
const LIFO_POLL_NS: u64 = LIFO_SHARE_NS / 10;
const LIFO_MOST: u32 = 512;
/// A member whose last tick began before that has done little since.
const REST_NS: u64 = 500_000;
/// Weight of the newest tick in the average.
const WEIGHT: f32 = 0.1;

/// One member's.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    max: u32,
    fixed_interval: Option<u32>,
    /// Polls left in this tick.
    left: Cell<u32>,
    /// Polls of this tick.
    tick: Cell<u32>,
    /// Polls that a tick should have.
    size: Cell<u32>,
    /// When this tick began; 0 if that is not known.
    start_ns: Cell<u64>,
    /// When the driver was looked at, and the polls in the ticks since then.
    looked_ns: Cell<u64>,
    since_look: Cell<u32>,
    /// Polls of this tick before the last look in it, if there was one.
    before_look: Cell<Option<u32>>,
    poll_ns: Cell<f32>,
    /// How often the member has run out.
    runs: Cell<u32>,
    /// Polls of this tick that were of a batch from the injector.
    fetched: Cell<u32>,
    /// Polls that a tick should have in which all are of a batch.
    fetched_size: Cell<u32>,
    /// Polls between two turns of the injector: at most, and at least if it was emptied.
    interval: Cell<u32>,
    gap: Cell<u32>,
    until_injector: Cell<u32>,
    /// So many at least, however long, when it was set.
    fair: Cell<u32>,
    /// How often its turn was put off.
    put_off: Cell<u32>,
    /// Batches of the injector's turn, if that goes on, and the time when it has had enough.
    batches: Cell<u32>,
    enough_ns: Cell<u64>,
}

/// A tick that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tick {
    /// The driver should be looked at.
    pub(crate) look: bool,
    /// How long it took, if its polls were long.
    pub(crate) long_ns: Option<u64>,
    /// It took much longer than it should have: some of its polls were longer than those before.
    pub(crate) overran: bool,
    /// By how many polls of [`LIFO_POLL_NS`] its time is more than its polls are.
    surplus: u32,
}

/// Where a task has waited for its poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Lifo,
    Ring,
    Elsewhere,
}

impl Tick {
    /// How many tasks of the LIFO slot may run before the ring has its turn, if this tick changes
    /// that: after a long poll of a task from the ring, whoever waited for it may take a small part
    /// of that time before the next one; a long poll from the LIFO slot was its run.
    pub(crate) fn lifo_run(self, waited: Waited) -> Option<u32> {
        let took = self.long_ns?;
        match waited {
            Waited::Lifo => Some(0),
            Waited::Ring => {
                Some(u32::try_from(took / LIFO_SHARE_NS).unwrap_or(u32::MAX).min(LIFO_MOST))
            }
            Waited::Elsewhere => None,
        }
    }

    /// What is left of `left` polls of tasks of the LIFO slot after this tick: at least `least`, if there were as many.
    pub(crate) fn lifo_left(self, waited: Waited, left: u32, least: u32) -> u32 {
        let used = if waited == Waited::Lifo { self.surplus } else { 0 };
        left.saturating_sub(used).max(left.min(least))
    }
}

impl Pace {
    pub(crate) fn new(config: &Config) -> Self {
        let max = config.event_interval.unwrap_or(BUDGET);
        let interval = config.global_queue_interval.unwrap_or(MAX_INTERVAL);
        let first = FIRST.min(max);
        Self {
            max,
            fixed_interval: config.global_queue_interval,
            left: Cell::new(first),
            tick: Cell::new(first),
            size: Cell::new(first),
            start_ns: Cell::new(0),
            looked_ns: Cell::new(0),
            since_look: Cell::new(0),
            before_look: Cell::new(None),
            poll_ns: Cell::new(0.0),
            runs: Cell::new(0),
            fetched: Cell::new(0),
            fetched_size: Cell::new(first),
            interval: Cell::new(interval),
            gap: Cell::new(1),
            until_injector: Cell::new(interval),
            fair: Cell::new(1),
            put_off: Cell::new(0),
            batches: Cell::new(0),
            enough_ns: Cell::new(0),
        }
    }

    /// The same, for a thread that goes on some time later: that is no poll's.
    pub(crate) fn handed_over(&self) -> Self {
        let next = self.clone();
        next.start_ns.set(0);
        next
    }

    /// Counts a poll.
    #[inline]
    pub(crate) fn count(&self) {
        self.left.set(self.left.get().saturating_sub(1));
    }

    /// True at the end of a tick: look at the clock, and call [`tick`](Self::tick).
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.left.get() == 0
    }

    /// Ends the tick: a poll took long.
    #[cold]
    pub(crate) fn hurry(&self) {
        self.tick.set(self.tick.get() - self.left.replace(0));
    }

    /// A tick whose beginning is not known has begun at the time `now`, or a little before.
    pub(crate) fn began_by(&self, now: u64) {
        if self.start_ns.get() == 0 {
            self.start_ns.set(now);
        }
    }

    /// The member has slept: a tick begins. `driver`: it waited in the driver. True if the last tick
    /// began long before.
    pub(crate) fn woke(&self, now: u64, driver: bool) -> bool {
        self.hurry();
        let looked = self.before_look.take();
        let rested = now.saturating_sub(self.start_ns.replace(now)) >= REST_NS;
        if driver {
            self.since_look.set(0);
            self.looked_ns.set(now);
        } else {
            if looked.is_some() {
                self.looked_ns.set(now);
            }
            let earlier = if looked.is_some() { 0 } else { self.since_look.get() };
            let polls = self.tick.get() - looked.unwrap_or(0);
            self.since_look.set(earlier.saturating_add(polls));
        }
        self.size.set(self.size.get().min(FIRST));
        self.fetched_size.set(self.fetched_size.get().min(FIRST));
        self.begin(0);
        rested
    }

    /// The member was awake instead of waiting in the driver, and woke up at the time `now`. If it should have looked there
    /// meanwhile, it does after the next poll.
    pub(crate) fn look_if_due(&self, now: u64) {
        let looked = self.looked_ns.get();
        if looked != 0 && now.saturating_sub(looked) >= LOOK_NS {
            self.since_look.set(self.max);
            self.begin(0);
        }
    }

    /// The member has looked at the driver inside a tick. The tick goes on, for [`FIRST`] polls at most,
    /// and the next one has no more, since what was found may be unlike what ran before.
    pub(crate) fn looked(&self) {
        let surplus = self.left.get().saturating_sub(FIRST);
        self.tick.set(self.tick.get() - surplus);
        self.left.set(self.left.get() - surplus);
        self.before_look.set(Some(self.tick.get() - self.left.get()));
        // A tick may be twice as long as the one before.
        self.size.set(self.size.get().min(FIRST / 2));
        self.fetched_size.set(self.fetched_size.get().min(FIRST / 2));
    }

    /// The same between two ticks, until `now`.
    pub(crate) fn looked_at(&self, now: u64) {
        self.looked();
        self.start_ns.set(now);
    }

    /// `queued` tasks of a batch are next.
    fn begin(&self, queued: usize) {
        let until_look = self.max.saturating_sub(self.since_look.get());
        let of_batch = u32::try_from(queued).unwrap_or(u32::MAX).min(self.fetched_size.get());
        let tick = self.size.get().max(of_batch).min(until_look).max(1);
        self.tick.set(tick);
        self.left.set(tick);
        self.fetched.set(0);
    }

    /// True if [`ran_out`](Self::ran_out) should be called when the member runs out of tasks: always, unless its
    /// polls are known to be short.
    #[inline]
    pub(crate) fn times_this_run(&self) -> bool {
        self.runs.set(self.runs.get().wrapping_add(1));
        !self.polls_are_short() || self.runs.get() % SHORT_RUNS == 0
    }

    /// The member has run out of tasks at the time `now`, before the end of a tick: one that sleeps after each
    /// poll ends none. It has looked for tasks meanwhile, so its polls took that long at most; and nearly as
    /// long, if that is more than looking takes.
    #[cold]
    pub(crate) fn ran_out(&self, now: u64) {
        let own = (self.tick.get() - self.left.get()).saturating_sub(self.fetched.get());
        let at_most = now.saturating_sub(self.start_ns.get()) as f32 / own as f32;
        let before = self.poll_ns.get();
        let tells = before == 0.0 || at_most < before || at_most >= LONG_NS;
        if own > 0 && self.start_ns.get() != 0 && tells {
            self.average(at_most);
        }
    }

    /// A tick is over at the time `now`; the next one begins, with `queued` tasks of a batch.
    pub(crate) fn tick(&self, now: u64, queued: usize) -> Tick {
        let polls = self.tick.get().max(1);
        let start = self.start_ns.replace(now);
        let took = if start == 0 { 0 } else { now.saturating_sub(start) };
        let own = polls.saturating_sub(self.fetched.get());
        if start != 0 {
            let at_most = took as f32 / own as f32;
            if own == polls || own != 0 && at_most < self.poll_ns.get() {
                self.average(at_most);
            }
        }
        // As many as fit: none, if `took` is more than all of them may take.
        let fit = (u64::from(polls) * LOOK_NS).checked_div(took).unwrap_or(u64::MAX);
        let fit = u32::try_from(fit).unwrap_or(u32::MAX);
        // What was fetched says nothing of the own ones, which may be all of the next tick.
        let follow = |size: &Cell<u32>, growth| {
            size.set(fit.clamp(1, size.get().saturating_mul(growth).min(self.max)));
        };
        follow(&self.size, if own == polls { 2 } else { 1 });
        if own != polls {
            follow(&self.fetched_size, if own == 0 { 2 } else { 1 });
        }

        if self.looked_ns.get() == 0 {
            self.looked_ns.set(now);
        }
        if let Some(before) = self.before_look.take() {
            self.since_look.set(polls.saturating_sub(before));
            let after = took.saturating_mul(self.since_look.get().into()) / u64::from(polls);
            self.looked_ns.set(now - after.min(now));
        } else {
            self.since_look.set(self.since_look.get().saturating_add(polls));
        }
        let look = self.since_look.get() >= self.max
            || now.saturating_sub(self.looked_ns.get()) >= LOOK_NS;
        if look {
            self.since_look.set(0);
            self.looked_ns.set(now);
        }
        self.begin(queued);
        let long_ns = (took / u64::from(polls) >= LOOK_NS).then_some(took);
        let surplus = (took / LIFO_POLL_NS).saturating_sub(polls.into());
        let surplus = u32::try_from(surplus).unwrap_or(u32::MAX);
        Tick { look, long_ns, overran: took >= 2 * LOOK_NS || long_ns.is_some(), surplus }
    }

    fn average(&self, per_poll: f32) {
        let before = self.poll_ns.get();
        let average =
            if before == 0.0 { per_poll } else { WEIGHT * per_poll + (1.0 - WEIGHT) * before };
        self.poll_ns.set(average);
        if self.fixed_interval.is_none() {
            // Saturating: a tick of no time gives the largest interval.
            let polls = |ns: f32| ((ns / average) as u32).clamp(1, MAX_INTERVAL);
            let interval = polls(LOOK_NS as f32);
            self.interval.set(interval);
            self.gap.set(polls(TURN_NS));
            let most = interval.max(self.fair.get());
            self.until_injector.set(self.until_injector.get().min(most));
        }
    }

    /// True if a task that wakes itself is soon polled again.
    pub(crate) fn polls_are_short(&self) -> bool {
        (1.0..SHORT_NS).contains(&self.poll_ns.get())
    }

    /// True if polls are known to take longer, so that not to be woken up for some saves nothing.
    pub(crate) fn polls_are_not_short(&self) -> bool {
        self.poll_ns.get() >= SHORT_NS
    }

    /// True if polls are known to take so long that a lock for a batch of them is nothing.
    pub(crate) fn polls_are_worth_a_lock(&self) -> bool {
        self.poll_ns.get() >= WORTH_A_LOCK_NS
    }

    /// What a poll of the member's own took lately; 0 if that is not known.
    pub(crate) fn poll_ns(&self) -> f32 {
        self.poll_ns.get()
    }

    #[cfg(all(test, not(volt_loom)))]
    pub(crate) fn set_poll_ns(&self, ns: f32) {
        self.poll_ns.set(ns);
    }

    #[cfg(all(test, not(volt_loom)))]
    pub(crate) fn polls_left(&self) -> u32 {
        self.left.get()
    }

    /// For a test: the polls of this tick take a millisecond each, and more than a tick may.
    #[cfg(all(test, not(volt_loom)))]
    pub(crate) fn began_long_ago(&self) {
        let now = crate::time::machine_ns();
        self.start_ns.set(now - 1_000_000 * u64::from(self.tick.get()));
    }

    /// Counts a poll of a task from a batch of the injector.
    #[inline]
    pub(crate) fn count_fetched(&self) {
        self.fetched.set(self.fetched.get() + 1);
    }

    /// Counts a poll of the member's own. True if it is the injector's turn instead, until it
    /// [had](Self::injector_had_its_turn) it.
    #[inline]
    pub(crate) fn injector_has_its_turn(&self) -> bool {
        let until = self.until_injector.get();
        self.until_injector.set(until.saturating_sub(1));
        until == 0
    }

    /// The injector has its turn before the member's own tasks.
    pub(crate) fn injector_is_next(&self) {
        self.until_injector.set(0);
    }

    /// Polls of the member's own before the injector has its turn.
    pub(crate) fn until_injector(&self) -> u32 {
        self.until_injector.get()
    }

    /// Goes on after a guest with so many of these polls left.
    pub(crate) fn goes_on(&self, until_injector: u32) {
        self.until_injector.set(until_injector.min(self.until_injector.get()));
    }

    /// Polls of a tick, at most.
    pub(crate) fn most(&self) -> usize {
        self.max as usize
    }

    /// The next turn of the injector is after `round` polls of the member's own, or sooner if these
    /// are long; or later if they are short and it is `empty`. There is always one in between.
    pub(crate) fn injector_had_its_turn(&self, round: u32, empty: bool) {
        self.injector_had_its_turn_for(1, round, empty);
    }

    /// The same; but even if these are long, after `fair` polls of a round.
    pub(crate) fn injector_had_its_turn_for(&self, fair: u32, round: u32, empty: bool) {
        let least = if empty { self.gap.get() } else { 1 };
        let interval = self.interval.get();
        let most = interval.max(fair);
        self.fair.set(fair);
        let fixed = self.fixed_interval.is_some();
        self.until_injector.set(if fixed { interval } else { round.max(least).min(most) });
    }

    /// Puts its turn off by another `round`, if it `may` wait: [`ROUNDS`] in all, and [`LOOK_NS`].
    pub(crate) fn puts_injector_off(&self, round: u32, may: impl FnOnce() -> bool) -> bool {
        let rounds = self.put_off.get() + 1;
        let takes = ((rounds + 1) * MAX_INTERVAL) as f32 * self.poll_ns.get();
        let is_soon = rounds < ROUNDS && (1.0..LOOK_NS as f32).contains(&takes);
        let puts_off = round > 0 && is_soon && self.fixed_interval.is_none() && may();
        self.put_off.set(if puts_off { rounds } else { 0 });
        if puts_off {
            self.injector_had_its_turn(round, false);
        }
        puts_off
    }

    /// After `batches` of its turn there is more. Another one is next, for as long as a round of the member's `own` tasks takes.
    pub(crate) fn injector_goes_on(&self, batches: u32, own: usize, now: impl FnOnce() -> u64) {
        if own == 0 || self.fixed_interval.is_some() {
            return;
        }
        if batches == 0 {
            let round = self.poll_ns.get() * own as f32;
            self.enough_ns.set(now() + round.min(LOOK_NS as f32) as u64);
        }
        self.batches.set(batches + 1);
        self.injector_is_next();
    }

    /// So many polls of the member's own follow the turn of the injector in any case.
    pub(crate) fn fair(&self) -> u32 {
        self.fair.get()
    }

    /// How many batches the injector's turn has had, if it goes on; else 0.
    pub(crate) fn take_batches(&self) -> u32 {
        self.batches.take()
    }

    /// True if so many batches are enough, or it is too late for another one.
    pub(crate) fn had_enough(&self, batches: u32, now: u64) -> bool {
        batches >= BATCHES || now >= self.enough_ns.get()
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
