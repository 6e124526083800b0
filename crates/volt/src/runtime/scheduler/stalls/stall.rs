//! Looking after members that stay in one poll for long.
//!
//! Purpose: what a task that does not yield holds up (its worker's LIFO slot, the driver if nobody
//! waits in it, work that nobody was woken for) is taken over by an idle member. No clock is read
//! per poll, and nobody wakes up while the runtime is idle.
//!
//! One parked member, the *watcher*, sleeps with a timeout. When it passes, the watcher compares
//! each running member's poll count with that of its last look. A count that stood still for
//! [`STALL_NS`] is a stalled member: its LIFO slot is emptied (rings can be stolen from anyway).
//! A driver that nobody has, and that nobody has turned since the last look, is taken. (One that was
//! is looked after by a member that runs: to take it would be to take turns with that member for
//! each event.) If nothing at all happened since the last look and nothing is left to watch, the
//! watcher goes to sleep for good, or rests.
//!
//! A runtime that does a little every few milliseconds should not pay for two wake-ups where one is
//! enough. So the watcher is *drowsy*, and looks after [`CALM_LOOK`] only, as long as each look finds that
//! all is *calm*: all others are parked, and all that they have polled since the last one is of a kind
//! that is known to be quick (`quick.rs`). It becomes so at once if they polled seldom ([`FEW_NS`]), step by step if
//! not. One look that finds somebody at work, and it looks again after
//! [`FIRST_LOOK`]. And a member that is about to poll something of another kind wakes a drowsy
//! watcher ([`Worker::rouse_watcher`]), once for each such period; the next one begins step by
//! step, so that a runtime which polls both kinds wakes it seldom. (The future of a
//! `block_on` is of a kind, too.) What is left: a kind that has been quick and does not return from a
//! poll in such a period is seen at work after [`CALM_LOOK`], and to
//! stand still after a [`FIRST_LOOK`] more, so after about 33 ms; otherwise two looks take 8 ms at most.
//! (33 ms as well for one that is not quick, if the watcher becomes drowsy in the same moment: the
//! flag is a hint.) One that returns sooner, beside a watcher at an alarm, is judged by its member, when that parks
//! (`Worker::judge_run`). A kind of tasks is thought to be quick again after one quick poll, so one that is slow now and then
//! holds up timers each time that the watcher has become drowsy since.
//!
//! And nobody wakes up as long as those who would be watched do: a drowsy watcher sleeps at an alarm that they put off, and
//! turn off if they work less often than that. A watcher that finds nothing to watch, and all parked, stays one there
//! (`doze.rs`), as long as it does not have to be woken for other reasons again and again. Where there is no alarm, or the
//! watcher is the member in the driver, it goes to sleep for good; but one whose
//! first look finds nobody at work, and that nothing was polled since it is one, stays if the last burst of activity
//! was less than [`CALM_LOOK`] ago.
//!
//! Who makes sure that there is a watcher when one is needed: a member that parks while others run
//! becomes it if there is none. A member that pushes to its LIFO slot, or leaves the driver, while
//! others are parked and none watches, wakes one; having found nothing, that one parks, and mostly
//! becomes the watcher. Since a watcher stays for as long as anything happens, this costs one
//! wake-up for each burst of activity, not one for each push.
//!
//! And a push may have relied on the watcher to find the ring, so it gets up for that, too. A choosy guest
//! (`quick.rs`) takes what is for it, and sets the rest aside for the others.
#![forbid(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use volt_sync::internal::primitive::{AtomicU64, AtomicUsize};

use super::doze::Doze;
use crate::runtime::scheduler::pacing::quick::{self, QUICK_NS};
use crate::runtime::scheduler::shared::{Shared, Slot};
use crate::runtime::scheduler::worker::Worker;
use crate::task::Notified;

/// A poll that takes longer is a slow one.
pub(crate) const STALL_NS: u64 = 1_000_000;
/// Time between two looks of the watcher: at first, and at most.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LAST_LOOK: Duration = Duration::from_millis(4);
/// The same while the others do nothing that could take long.
pub(crate) const CALM_LOOK: Duration = Duration::from_millis(32);
/// Members that poll once in more than so much time, all together, poll seldom.
const FEW_NS: u64 = 250_000;

/// The time over which the pace of a member is judged.
pub(crate) const SPAN_NS: u64 = 8_000_000;

/// What watchers remember of a member, one after the other: who looks gives the role up only after that
/// (`Idle`). Hints only: watchers may change at any time.
#[derive(Debug)]
pub(crate) struct Watched {
    steps: AtomicU64,
    since_ns: AtomicU64,
    /// The poll count of the last slow poll that was counted.
    reported: AtomicU64,
    /// What it had done at the last look that judged its pace, and when that was.
    span_polls: AtomicU64,
    span_ns: AtomicU64,
}

impl Watched {
    pub(crate) fn new() -> Self {
        Self {
            steps: AtomicU64::new(u64::MAX),
            since_ns: AtomicU64::new(0),
            reported: AtomicU64::new(u64::MAX),
            span_polls: AtomicU64::new(0),
            span_ns: AtomicU64::new(0),
        }
    }

    /// The member has left; another one may come.
    pub(crate) fn forget(&self) {
        for hint in [&self.steps, &self.reported] {
            // ORD relaxed: a hint.
            hint.store(u64::MAX, Relaxed);
        }
    }

    /// A look at a member that has done so many [steps](Slot::steps): for how long it has stood still.
    pub(crate) fn look(&self, steps: u64, now: u64) -> u64 {
        // ORD relaxed: hints of one watcher after the other.
        if self.steps.load(Relaxed) != steps {
            // ORD relaxed: as above.
            self.steps.store(steps, Relaxed);
            // ORD relaxed: as above.
            self.since_ns.store(now, Relaxed);
            return 0;
        }
        self.still_ns(steps, now)
    }

    /// For how long a member that has done so many steps stands still, as far as the watchers know.
    pub(crate) fn still_ns(&self, steps: u64, now: u64) -> u64 {
        // ORD relaxed: as in `look`.
        if self.steps.load(Relaxed) != steps {
            return 0;
        }
        // ORD relaxed: as in `look`.
        now.saturating_sub(self.since_ns.load(Relaxed))
    }

    /// True, once for each [`SPAN_NS`], if its polls took longer than quick ones do on average. (In less time it
    /// may just have had no processor.)
    fn is_slow(&self, polls: u64, now: u64) -> bool {
        // ORD relaxed: as in `look`.
        let since = self.span_ns.load(Relaxed);
        let took = now.saturating_sub(since);
        if took < SPAN_NS {
            return false;
        }
        // ORD relaxed: as in `look`.
        let done = polls.wrapping_sub(self.span_polls.load(Relaxed));
        // ORD relaxed: as in `look`.
        self.span_polls.store(polls, Relaxed);
        // ORD relaxed: as in `look`.
        self.span_ns.store(now, Relaxed);
        since != 0 && done.saturating_mul(QUICK_NS) < took
    }

    /// True if the poll of this number is known to be slow.
    pub(crate) fn is_caught(&self, polls: u64) -> bool {
        // ORD relaxed: a hint.
        self.reported.load(Relaxed) == polls
    }

    /// True once for each slow poll. The member itself asks as well.
    pub(crate) fn is_news(&self, polls: u64) -> bool {
        // ORD relaxed: a look, and a hint.
        self.reported.load(Relaxed) != polls && self.reported.swap(polls, Relaxed) != polls
    }
}

impl Shared {
    /// The poll of this number of the member of `slot` takes long, or took. True once for each.
    pub(crate) fn saw_slow_poll(&self, slot: &Slot, polls: u64, kind: usize) -> bool {
        let is_news = slot.watched.is_news(polls);
        if is_news {
            if self.slow.is_none() {
                slot.metrics.slow_polls.add_shared(1);
            }
            self.is_not_quick(kind);
        }
        is_news
    }

    /// What was known of `kind` is so no longer.
    pub(crate) fn is_not_quick(&self, kind: usize) {
        self.quick.forget(kind);
        self.untimed.forget(kind);
    }
}

impl Slot {
    /// Polls and sleeps so far: a member that has done as many as before was in one poll all the time.
    pub(crate) fn steps(&self) -> u64 {
        self.polls().wrapping_add(self.metrics.parks.get())
    }
}

/// What the watcher found.
#[derive(Debug)]
pub(crate) enum Look {
    /// A task to run: the watcher gets up.
    Found(Notified),
    /// Look again after the [interval](Watch::interval).
    Again,
    /// Nothing happens: no need to look again.
    Quiet,
}

/// What members and watchers tell each other of how the watcher sleeps. Hints.
#[derive(Debug)]
pub(crate) struct Sleep {
    is: AtomicUsize,
    /// When a watcher found nothing to watch last.
    quiet_ns: AtomicU64,
    pub(crate) doze: Doze,
}

/// It looks often.
const LIGHT: usize = 0;
const DROWSY: usize = 1;
/// It was woken from that, and it, or the next one, has not become drowsy again.
const ROUSED: usize = 2;

impl Sleep {
    pub(crate) fn new() -> Self {
        Self { is: AtomicUsize::new(LIGHT), quiet_ns: AtomicU64::new(0), doze: Doze::new() }
    }

    /// True if the watcher sleeps for long.
    #[inline]
    pub(crate) fn is_drowsy(&self) -> bool {
        // ORD relaxed: a hint.
        self.is.load(Relaxed) == DROWSY
    }

    fn was_roused(&self) -> bool {
        // ORD relaxed: a hint.
        self.is.load(Relaxed) == ROUSED
    }

    pub(crate) fn set_drowsy(&self) {
        self.set(DROWSY);
    }

    fn rouse(&self) {
        self.set(ROUSED);
    }

    /// After a look.
    fn looked(&self, watch: &Watch) {
        if watch.is_drowsy() {
            self.set(DROWSY);
        } else if self.is_drowsy() {
            self.set(LIGHT);
        }
    }

    /// The watcher has nothing to watch.
    fn ended(&self, now_ns: u64) {
        self.set(LIGHT);
        // ORD relaxed: a hint.
        self.quiet_ns.store(now_ns, Relaxed);
    }

    fn set(&self, to: usize) {
        // ORD relaxed: a hint.
        if self.is.load(Relaxed) != to {
            // ORD relaxed: as above.
            self.is.store(to, Relaxed);
        }
    }

    /// True if a watcher may rest that has nothing to watch: if it was not roused just now, and not if the runtime has
    /// nothing to do for the first time, as that is how most end.
    pub(crate) fn allows_rest(&self) -> bool {
        // ORD relaxed: a hint.
        !self.was_roused() && self.quiet_ns.load(Relaxed) != 0
    }

    /// True if a watcher had nothing to watch shortly before this time.
    fn was_short(&self, now_ns: u64) -> bool {
        // ORD relaxed: a hint.
        let quiet = self.quiet_ns.load(Relaxed);
        quiet != 0 && now_ns.saturating_sub(quiet) < CALM_LOOK.as_nanos() as u64
    }
}

/// What the members have polled: all, and those whose last poll was not of a quick kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Polled {
    all: u64,
    unproven: u64,
}

/// A watcher's own state.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Watch {
    polled: Polled,
    /// How often the driver had been turned.
    turns: u64,
    pub(crate) interval: Duration,
    /// It has not looked yet.
    first: bool,
    /// The last burst of activity was not long ago.
    bursts: bool,
    /// Nothing happens: it need not look before somebody gets up (`doze.rs`).
    rests: bool,
}

impl Watch {
    /// True if somebody has turned the driver since this was asked last.
    pub(crate) fn driver_was_turned(&mut self, turns: u64) -> bool {
        std::mem::replace(&mut self.turns, turns) != turns
    }

    /// After a look that found nothing to watch.
    pub(crate) fn rest(&mut self) {
        self.interval = CALM_LOOK;
        self.rests = true;
    }

    /// For how long it sleeps at the alarm; None if it rests.
    pub(crate) fn alarm_after(&self) -> Option<Duration> {
        (!self.rests).then_some(self.interval)
    }

    /// After a look that found something to watch; `calm` if all that was done will not take long.
    fn look_again(&mut self, calm: bool, at_once: bool) {
        self.rests = false;
        self.interval = match self.interval * 2 {
            _ if calm && at_once => CALM_LOOK,
            longer if calm => longer.min(CALM_LOOK),
            _ if self.is_drowsy() => FIRST_LOOK,
            longer => longer.min(LAST_LOOK),
        };
    }

    pub(crate) fn is_drowsy(&self) -> bool {
        self.interval > LAST_LOOK
    }
}

impl Worker<'_> {
    /// This member becomes the watcher.
    pub(crate) fn begin_watch(&self) -> Watch {
        // The last one may have been, and was woken for something else.
        if self.shared.sleep.is_drowsy() {
            self.shared.sleep.set(LIGHT);
        }
        let now = self.now_ns();
        for (index, slot) in self.shared.used_slots().iter().enumerate() {
            if index != self.index && !self.shared.idle.is_parked(index) {
                slot.watched.look(slot.steps(), now);
            }
        }
        Watch {
            polled: self.polled(),
            turns: self.shared.driver_turns.get(),
            interval: FIRST_LOOK,
            first: true,
            bursts: self.shared.sleep.was_short(now),
            rests: false,
        }
    }

    /// What the others have polled.
    fn polled(&self) -> Polled {
        let mut sum = Polled::default();
        for (index, slot) in self.shared.used_slots().iter().enumerate() {
            // ORD relaxed: hints.
            let (polls, kind) = (slot.polls(), slot.kind.load(Relaxed));
            sum.all = sum.all.wrapping_add(polls);
            let proven = index == self.index || kind == quick::OF_NOBODY;
            if !proven && !self.shared.quick.knows(kind) {
                sum.unproven = sum.unproven.wrapping_add(polls);
            }
        }
        sum
    }

    /// The watcher's look at the others.
    #[cold]
    pub(crate) fn look_after_others(&self, watch: &mut Watch) -> Look {
        let shared = self.shared;
        let now = self.now_ns();
        let (mut busy, mut at_work) = (false, false);
        for (index, slot) in shared.used_slots().iter().enumerate() {
            // ORD relaxed: a hint.
            let kind = slot.kind.load(Relaxed);
            if index == self.index || kind == quick::OF_NOBODY || shared.idle.is_parked(index) {
                continue;
            }
            at_work = true;
            let polls = slot.polls();
            let still = slot.watched.look(slot.steps(), now);
            shared.saw_still(index, still, kind, now);
            let stalled = still >= STALL_NS;
            let waiting = !slot.lifo.is_empty();
            busy |= waiting || shared.is_kept(index);
            if slot.watched.is_slow(polls, now) || stalled {
                shared.share_ring_of(index);
            }
            if !stalled {
                continue;
            }
            if shared.saw_slow_poll(slot, polls, kind) {
                shared.caught.learn(kind);
            }
            if waiting {
                if let Some(task) = slot.lifo.take() {
                    self.count_stolen(1);
                    // SAFETY-relevant: see `Worker::adopt`.
                    return Look::Found(self.adopt(task));
                }
            }
        }
        let before = std::mem::replace(&mut watch.polled, self.polled());
        let polls = watch.polled.all.wrapping_sub(before.all);
        let calm = !at_work && watch.polled.unproven == before.unproven && !shared.crowd.is_there();
        // Who stands still is known by two looks, and a shy guest may have to help, as may a bystander.
        let first = std::mem::take(&mut watch.first);
        let helps =
            || self.shy.get() && !self.unfit.get() || self.is_bystander() || self.steals_in_vain();
        let may_help = || helps() && shared.has_work(true);
        let stays = at_work && (first || may_help()) || calm && first && watch.bursts;
        if polls == 0 && !busy && !stays {
            watch.interval = FIRST_LOOK;
            shared.sleep.ended(now);
            return Look::Quiet;
        }
        let few = polls.saturating_mul(FEW_NS) < watch.interval.as_nanos() as u64;
        watch.look_again(calm, few && !shared.sleep.was_roused());
        shared.sleep.looked(watch);
        Look::Again
    }

    /// At the look of this member that was just now: true if all workers have been in one poll for long.
    pub(crate) fn no_worker_goes_on(&self) -> bool {
        let now = self.now_ns();
        // Who was claimed just now searches.
        self.shared.idle.load().searching() == usize::from(self.searching.get())
            && (0..self.shared.workers).all(|index| {
                let slot = self.shared.slot(index);
                !self.shared.idle.is_parked(index)
                    && slot.watched.look(slot.steps(), now) >= STALL_NS
            })
    }

    /// Before a poll that may take long: the watcher should look again soon, and nothing is left alone.
    #[inline]
    pub(crate) fn rouse_watcher(&self) {
        self.share_ring();
        self.wake_drowsy_watcher();
    }

    /// A watcher that sleeps for long should look again soon.
    #[inline]
    pub(crate) fn wake_drowsy_watcher(&self) {
        if self.shared.sleep.is_drowsy() {
            self.rouse_drowsy_watcher();
        }
    }

    #[cold]
    fn rouse_drowsy_watcher(&self) {
        self.shared.sleep.rouse();
        // It finds nothing to do, parks, and becomes the watcher again.
        if let Some(index) = self.shared.idle.claim_watcher() {
            self.shared.unpark(index);
        }
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
