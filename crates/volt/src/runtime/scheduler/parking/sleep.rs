//! How a member goes to sleep and gets up: the stages of `worker.rs` after Running.
//!
//! The protocol, and why it loses no wake-up, is in `idle.rs`.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use volt_sync::internal::primitive::{fence, processor, spin};

use super::park::{CLAIMED, EVENT, ROOT};
use crate::reactor::Why;
use crate::runtime::call_hook;
use crate::runtime::driver::{self, Driver};
use crate::runtime::scheduler::idle::{Roles, SelfUnpark};
use crate::runtime::scheduler::stalls::stall::Look;
use crate::runtime::scheduler::worker::{Stage, Step, Worker};
use crate::task::{Header, memory};

/// Wake-ups of a member's own future by the one in the driver before it asks for the driver.
const DRIVER_WISH: u32 = 3;
/// Wake-ups of the future of the member in the driver by other threads before it gives the driver
/// away.
const DRIVER_GIFT: u32 = if cfg!(volt_loom) { 1 } else { 8 };
/// The most members at work whose polls are looked at before a driver is left to them.
const LEAVE_TO: usize = 4;
/// How often a searcher looks whether another member has found something in the driver, and how long
/// it pauses between: about 40 us in all, as sleeping and waking up take. A look that finds 64 sockets
/// takes 10 to 18 us.
const LOOKS: u32 = if cfg!(volt_loom) { 1 } else { 40 };
const PAUSE: u32 = if cfg!(volt_loom) { 1 } else { 40 };

/// Polls of more are long: a look comes late, and a system call is a small part of them.
const LONG_NS: f32 = 20_000.0;
/// What a look would find is not guessed if polls took longer lately: who is not the guess waits for some.
const GUESS_NS: f32 = 10_000.0;

impl Worker<'_> {
    #[cold]
    pub(crate) fn step_to_sleep(&self) -> Step {
        debug_assert_ne!(self.stage.get(), Stage::Running, "`step` handles it");
        match self.stage.get() {
            Stage::Searched => {
                self.publish();
                Step::Continue
            }
            Stage::Published => {
                if self.looks_again() {
                    self.notify_of_work();
                }
                self.stage.set(Stage::Asleep);
                if self.shared.is_shut_down() {
                    self.get_up(false);
                }
                Step::Continue
            }
            Stage::Running | Stage::Asleep => Step::Wait,
        }
    }

    /// Counts this member as parked.
    fn publish(&self) {
        self.judge_run();
        self.be_shy_again();
        let is_company = || !self.choosy.get() && self.is_company_wanted();
        let returns = (self.ran.replace(false) || is_company()) && !self.leaves_driver();
        let searching = self.searching.replace(false);
        // ORD relaxed: before the change of the members' state ([ID3]).
        // Killed by `runtime::scheduler::worker::model::what_is_set_aside_against_a_join_that_parks`.
        #[cfg(not(volt_mutant = "choosy_late"))]
        self.slot.choosy.store(self.choosy.get(), Relaxed);
        // ORD relaxed: as above.
        self.slot.shy.store(self.shy.get(), Relaxed);
        // ORD relaxed: as above.
        self.slot.bystander.store(self.is_bystander(), Relaxed);
        // ORD relaxed: as above.
        self.slot
            .vain_until
            .store(if self.steals_in_vain() { self.vain_until() } else { 0 }, Relaxed);
        if !cfg!(volt_loom) {
            // ORD relaxed: a hint.
            self.slot.processor.store(processor(), Relaxed);
        }
        let roles = self.shared.idle.park(self.index, searching, returns);
        // Counted by now, it is a step that a watcher's look beforehand has not seen (`Slot::steps`).
        self.slot.metrics.parks.add(1);
        // ORD relaxed: too late.
        #[cfg(volt_mutant = "choosy_late")]
        self.slot.choosy.store(self.choosy.get(), Relaxed);
        self.roles.set(roles);
        if roles.watcher {
            self.watch.set(self.begin_watch());
        }
        self.stage.set(Stage::Published);
    }

    /// True if this member leaves a driver that nobody has to the members that run, since each of them
    /// is in a poll of a quick kind and will be back there soon. (If one is not, the watcher takes the
    /// driver.) Otherwise two members whose tasks talk to each other would take turns in the driver,
    /// and get each other out of it for each event. (Not if these polls are so long that one of them has asked for
    /// company: `wish.rs`.)
    fn leaves_driver(&self) -> bool {
        let summary = self.shared.idle.load();
        let working = summary.running();
        let us = summary.searching() + usize::from(!self.searching.get());
        if summary.driver_taken() || working <= us || working > us + LEAVE_TO {
            return false;
        }
        self.shared.others_are_quick(self.index) && !self.is_company_wanted()
    }

    /// A member that would leave the driver to those that run takes what is in there already: else it
    /// would sleep beside work. True if there was something.
    pub(crate) fn looks_before_leaving(&self) -> bool {
        if !self.ran.get() || !self.leaves_driver() {
            return false;
        }
        self.look_at_driver(Why::Due);
        if self.slot.ring.is_empty() {
            return self.root_woken();
        }
        self.pace.looked();
        true
    }

    /// True if a read that is put off would wait for a look, which it makes unnecessary in vain: behind others that wait
    /// for theirs, it would go before these, or after.
    pub(crate) fn polls_are_long(&self) -> bool {
        self.pace.poll_ns() >= LONG_NS
    }

    /// If a read was put off, the next turn of the driver is a look (or a guess of what that would find) and no
    /// wait: a member that runs alone makes it without parking before and getting up after it. True if there is
    /// something to run now.
    #[inline]
    pub(crate) fn looks_instead_of_parking(&self) -> bool {
        self.shared.driver_handle.reactor.owes_a_look()
            && !self.searching.get()
            && self.looks_while_alone()
    }

    fn looks_while_alone(&self) -> bool {
        if self.shared.idle.load().others_run() {
            return false;
        }
        let may_guess = (1.0..GUESS_NS).contains(&self.pace.poll_ns());
        let mut guessed = false;
        let had_driver = self.borrows_driver(|driver, handle| {
            guessed = may_guess && driver.guess(handle);
            if !guessed {
                driver.look(handle, Why::Due);
            }
        });
        if !had_driver {
            return false;
        }
        if !guessed {
            self.pace.looked();
        }
        // As after a wait in the driver: what is alone in the ring is the next to run.
        let summary = self.shared.idle.load();
        if summary.wants_watcher() || self.shares_what_was_found(summary) {
            self.notify();
        }
        !self.slot.ring.is_empty() || self.root_woken()
    }

    /// Waits for what another member finds that looks at the driver: all that was ready may be in
    /// there, and whoever sleeps has to be woken for it a moment later. One searcher does so, beside
    /// the one that looks, which may be a searcher as well.
    pub(crate) fn steal_from_a_look(&self) -> Option<NonNull<Header>> {
        let goes_on = || {
            let summary = self.shared.idle.load();
            summary.searching() <= 2 && self.shared.idle.is_looked_at(summary)
        };
        if !goes_on() {
            return None;
        }
        for _ in 0..LOOKS {
            (0..PAUSE).for_each(spin);
            let over = !goes_on();
            let task = self.steal();
            if over || task.is_some() {
                return task;
            }
        }
        None
    }

    /// Whether this member looks at the queues once more after it has published that it parks.
    fn looks_again(&self) -> bool {
        #[cfg(any(test, feature = "test-util"))]
        if self.shared.config.planted_bug {
            return false;
        }
        true
    }

    /// A parked member that has found work that nobody may have been told of does what its poster would have,
    /// and would rather be the one that is woken.
    fn notify_of_work(&self) {
        let has_work = self.shared.has_work(self.choosy.get());
        if has_work && self.shared.keeps_off(self.index) {
            // Killed by `runtime::scheduler::worker::model::a_push_beside_a_shy_guest_that_parks`.
            #[cfg(not(volt_mutant = "shy_and_quiet"))]
            self.shared.notify_the_others();
        } else if has_work {
            if let Some(index) = self.shared.idle.notify_preferring(self.index) {
                self.shared.unpark(index);
            }
        }
        // Killed by `runtime::scheduler::worker::model::what_is_set_aside_against_a_choosy_guest_that_parks`.
        #[cfg(not(volt_mutant = "parked_quietly"))]
        if self.choosy.get() {
            self.shared.offer_set_aside();
        }
    }

    /// Sleeps until there is a reason to wake up, or for some time.
    #[cold]
    pub(crate) fn wait(&self) {
        debug_assert_eq!(self.stage.get(), Stage::Asleep);
        let roles = self.roles.get();
        if self.root_wakes.get() >= DRIVER_WISH && !roles.driver {
            self.root_wakes.set(0);
            // The one in the driver wakes us each time: save that, unless it has tasks to run as well.
            if !self.shy.get() || !self.workers_have_polled() {
                self.shared.wish_for_driver(self.index);
            }
        }
        if self.rings.get() >= DRIVER_GIFT && roles.driver {
            self.rings.set(0);
            self.give_driver();
        }
        let roles = self.roles.get();
        let limit = roles.watcher.then(|| self.watch.get().interval);
        // A panic of a hook must not unwind: the parked bit is set.
        call_hook(self.shared.config.on_thread_park.as_deref());
        memory::give_back();
        let mut turned = false;
        let reasons = if roles.driver {
            self.begins_to_wait();
            turned = self.linger_and_wait_in_driver(limit);
            self.park.take()
        } else if roles.watcher && self.dozes() {
            self.doze()
        } else {
            self.linger.sleep(|| self.park.is_notified(), || self.park.sleep(limit))
        };
        memory::keep();
        let now = self.now_ns();
        self.busy_since.set(now);
        self.slept_beside_sources();
        self.rested.set(self.pace.woke(now, turned));
        if roles.driver && !turned {
            self.pace.look_if_due(now);
        }
        self.rhythm.woke(self.run.begin(now, self.slot.polls()));
        volt_sync::coop::allow_turns(self.pace.polls_are_short());
        self.look_for_crowd(now);
        self.woke(reasons, roles);
        if self.is_running() {
            let for_event = reasons & CLAIMED == 0 && reasons & (ROOT | EVENT) != ROOT;
            if turned && for_event {
                self.has_waited_for_event(now);
            }
            self.put_off_watcher(|| now);
        }
        if let Some(hook) = self.shared.config.on_thread_unpark.as_deref() {
            self.call_unpark_hook(hook);
        }
    }

    /// It may block, but in no poll: the watcher sees that this member stands still, and blames no kind for it.
    #[cold]
    pub(crate) fn call_unpark_hook(&self, hook: &(dyn Fn() + Send + Sync)) {
        let _ = self.slot.watched.is_news(self.slot.polls());
        call_hook(Some(hook));
        let _ = self.run.begin(self.now_ns(), self.slot.polls());
    }

    /// True if this member, which watches, is drowsy, and there is an alarm.
    fn dozes(&self) -> bool {
        self.watch.get().is_drowsy() && self.shared.driver_handle.alarm.is_there()
    }

    /// True if the workers have polled anything since this was asked last.
    fn workers_have_polled(&self) -> bool {
        let polls = (0..self.shared.workers).map(|index| self.shared.slot(index).polls());
        let sum = polls.fold(0, u64::wrapping_add);
        self.others_polls.replace(sum) != sum
    }

    /// As [`wait_in_driver`](Self::wait_in_driver). The one thread of a runtime lingers before, while it is others that
    /// wake it soon, as those that run its blocking calls: neither they nor it make a system call for that. (One of several
    /// would rather leave the driver to another: [`give_driver`](Self::give_driver).) Events and timers wait for 60 us
    /// meanwhile, or as between two ticks, as long as it is woken each time.
    fn linger_and_wait_in_driver(&self, limit: Option<Duration>) -> bool {
        // By a clock that stands still, a look is never due.
        if !self.shared.is_current_thread() || self.shared.driver_handle.clock.is_paused() {
            return self.wait_in_driver(limit);
        }
        let is_notified = || self.park.is_notified();
        let mut by_others = false;
        let turned = self.linger.sleep(is_notified, || {
            let turned = self.wait_in_driver(limit);
            by_others = self.park.was_woken_by_others();
            turned
        });
        if !by_others {
            self.linger.forget();
        }
        turned
    }

    /// Waits for events, timers, and others. False if there is a reason not to.
    fn wait_in_driver(&self, limit: Option<Duration>) -> bool {
        if !self.park.enter_driver() {
            return false;
        }
        self.let_watcher_rest();
        let nothing_to_run = || !self.has_own_tasks() && !self.park.is_notified();
        let is_back = || {
            self.ends_to_wait();
            self.end_watchers_rest();
        };
        self.turn_driver(|driver, handle| driver.wait(handle, limit, nothing_to_run, is_back));
        true
    }

    /// Calls `f` with the driver, unless somebody has it.
    fn borrows_driver(&self, f: impl FnOnce(&mut Driver, &driver::Handle)) -> bool {
        let takes = self.shared.idle.take_driver(self.index);
        if takes {
            self.turn_driver(f);
            self.shared.idle.release_driver(self.index);
        }
        takes
    }

    /// Looks into the driver, unless somebody has it, and has others take a part of what is found.
    pub(crate) fn look_at_driver(&self, why: Why) {
        let looked = self.borrows_driver(|driver, handle| driver.look(handle, why));
        // What was there before an early look, others were told of.
        let untold = || why != Why::Early || self.found.get() > 0;
        if looked && untold() && self.slot.has_work() && self.tells_others() {
            // ORD[IS1] release: what was pushed quietly, before a look at the members' state.
            fence(SeqCst);
            self.notify();
        }
    }

    /// A poll of `kind` took much longer than a look. If its task has yielded and nothing else is left, nobody else may look
    /// soon; and the next poll is timed as well.
    #[cold]
    pub(crate) fn look_between_yields(&self, kind: usize) {
        let yields = self.yielded.take();
        let is_alone = yields.is_some() && !self.has_own_tasks() && self.slot.batch.is_empty();
        self.yielded.set(yields);
        if is_alone {
            self.shared.untimed.forget(kind);
            self.look_at_driver(Why::Hurry);
            self.pace.looked();
        }
    }

    /// Calls `f` with the driver, which this member has. What becomes runnable meanwhile goes to
    /// its ring, or before that (`maintain.rs`), and wakes nobody.
    pub(crate) fn turn_driver(&self, f: impl FnOnce(&mut Driver, &driver::Handle)) {
        debug_assert!(self.shared.idle.load().has_driver(self.index));
        self.quiet.set(true);
        self.found_quick.set(true);
        self.found.set(0);
        let handle = &self.shared.driver_handle;
        let root_was_woken = self.root_woken();
        // SAFETY: this member has the driver. A turn calls wakers, which may block; `hand_over` and
        // `block_on_helping` see to it that nobody becomes or is this member then, and turns it again.
        unsafe { self.shared.with_driver(|driver| f(driver, handle)) };
        self.quiet.set(false);
        self.note_what_was_found();
        if self.shared.is_current_thread() && !root_was_woken && self.root_woken() {
            // It goes before what was found with it.
            self.before_root.set(1);
        }
    }

    fn has_own_tasks(&self) -> bool {
        !self.slot.ring.is_empty() || !self.slot.lifo.is_empty() || self.yielded.get().is_some()
    }

    /// Decides what a return from sleep means.
    pub(crate) fn woke(&self, reasons: u32, roles: Roles) {
        let root = reasons & ROOT != 0 && self.roots.get() > 0;
        if root {
            self.root.set(true);
        }
        if reasons & CLAIMED != 0 {
            return self.claimed();
        }
        if root {
            // Who could have saved a way: the one in the driver by letting us wait there, or we by
            // letting somebody else.
            let event = reasons & EVENT != 0;
            self.root_wakes.set(if event && !roles.driver { self.root_wakes.get() + 1 } else { 0 });
            self.rings.set(if event || !roles.driver { 0 } else { self.rings.get() + 1 });
        }
        if root || self.has_own_tasks() || self.shared.is_shut_down() {
            return self.get_up(false);
        }
        if roles.driver {
            if let Some(index) = self.shared.wishes.take_driver() {
                return self.pass_driver(index);
            }
        }
        if roles.watcher {
            self.watch_expired();
        }
    }

    /// Lets member `index` wait in the driver instead of this one, which stays asleep.
    ///
    /// Somebody is awake then, and the last to park takes the driver (`idle.rs`, invariant 4): the
    /// member that is claimed here, or the searcher that there is, or whoever has claimed us.
    fn pass_driver(&self, index: usize) {
        self.shared.idle.release_driver(self.index);
        self.roles.set(Roles { driver: false, ..self.roles.get() });
        if let Some(claimed) = self.shared.idle.notify_preferring(index) {
            self.shared.unpark(claimed);
        }
    }

    /// Lets another parked member wait in the driver: this one's future is woken by other threads,
    /// which get it out of a futex sooner.
    ///
    /// Somebody is awake then, as in [`pass_driver`](Self::pass_driver).
    fn give_driver(&self) {
        if self.shared.idle.load().parked() < 2 {
            return;
        }
        let Some(claimed) = self.shared.idle.notify() else { return };
        if claimed != self.index {
            self.shared.idle.release_driver(self.index);
            self.roles.set(Roles { driver: false, ..self.roles.get() });
        }
        self.shared.unpark(claimed);
    }

    /// True while this member handles what happened in the driver.
    pub(crate) fn turns_driver(&self) -> bool {
        self.quiet.get()
    }

    /// The watcher's time is up (or it woke by chance).
    pub(crate) fn watch_expired(&self) {
        let mut watch = self.watch.get();
        let may_rest = self.may_rest();
        let look = self.look_after_others(&mut watch);
        let attended = watch.driver_was_turned(self.shared.driver_turns.get());
        self.watch.set(watch);
        self.be_shy_again();
        if self.shy.get() && self.has_to_help() {
            self.shy.set(false);
        }
        // ORD relaxed: a hint; this member is parked, and looks at the queues below.
        self.slot.shy.store(self.shy.get(), Relaxed);
        let mut roles = self.roles.get();
        // Who does not look again does not leave the driver to others either.
        let left_to_others = attended && matches!(look, Look::Again);
        if !roles.driver && !left_to_others && self.shared.idle.take_driver(self.index) {
            roles.driver = true;
            self.roles.set(roles);
        }
        match look {
            Look::Found(task) => {
                self.get_up(true);
                self.push(task.into_raw());
                return;
            }
            Look::Again => {}
            Look::Quiet if may_rest && !roles.driver && self.shared.idle.load().all_parked() => {
                watch.rest();
                self.watch.set(watch);
                self.shared.sleep.set_drowsy();
            }
            Look::Quiet => {
                self.shared.idle.release_watch(self.index);
                // Look again: who pushed before may have relied on us.
                // And a member that runs and just looks into the driver leaves it to nobody.
                let summary = self.shared.idle.load();
                let is_kept = summary.has_driver(self.index)
                    || summary.driver_taken() && !self.shared.idle.is_looked_at(summary);
                // Or others that were not woken for work, as there was a watcher: until one is held up.
                let left = || {
                    self.shared.has_work(true)
                        && self.shared.keeps_off(self.index)
                        && self.shared.nobody_is_held_up(self.index)
                };
                roles.watcher = (!is_kept || self.shared.relies_on_a_watcher() || left())
                    && self.shared.idle.take_watch(self.index);
                self.roles.set(roles);
            }
        }
        // Killed by `runtime::scheduler::stalls::crowd::model::a_push_against_a_watcher_that_stops`.
        #[cfg(not(volt_mutant = "stops_quietly"))]
        self.notify_of_work();
    }

    /// True if this member, which watches, may go on doing so if it finds nothing to watch.
    fn may_rest(&self) -> bool {
        self.shared.sleep.allows_rest()
            && !self.shared.crowd.is_there()
            && self.shared.driver_handle.alarm.is_there()
    }

    /// Somebody has cleared this member's parked bit: it is a searcher now.
    pub(crate) fn claimed(&self) {
        if self.roles.replace(Roles::default()) != Roles::default() {
            self.shared.idle.drop_roles(self.index);
        }
        self.searching.set(true);
        self.gets_up();
    }

    /// It is no longer parked.
    fn gets_up(&self) {
        self.slot.metrics.unparks.add(1);
        self.stage.set(Stage::Running);
    }

    /// Leaves the parked members without having been claimed.
    fn get_up(&self, search: bool) {
        let had = self.roles.get();
        for attempt in 0.. {
            match self.shared.idle.unpark_self(self.index, search) {
                SelfUnpark::Up => {
                    self.roles.set(Roles::default());
                    self.searching.set(search);
                    self.gets_up();
                    break;
                }
                SelfUnpark::Claimed => {
                    for attempt in 0.. {
                        if self.take_claim() {
                            return self.claimed();
                        }
                        spin(attempt);
                    }
                }
                SelfUnpark::Busy => {
                    if self.take_claim() {
                        return self.claimed();
                    }
                    spin(attempt);
                }
            }
        }
        if !search && (had.driver || had.watcher) {
            self.attend();
            let summary = self.shared.idle.load();
            if summary.wants_watcher() || self.shares_what_was_found(summary) {
                self.notify();
            }
        }
    }

    /// True if the token of a claim has come. A wake-up of the root future is remembered.
    fn take_claim(&self) -> bool {
        let reasons = self.park.take();
        self.root.set(self.root.get() || reasons & ROOT != 0);
        reasons & CLAIMED != 0
    }

    /// True if the future that this thread polls itself was woken.
    #[inline]
    pub(crate) fn root_woken(&self) -> bool {
        self.roots.get() > 0 && (self.root.get() || self.park.is_notified())
    }

    /// As [`root_woken`](Self::root_woken), and forgets it. While running only.
    #[inline]
    pub(crate) fn take_root(&self) -> bool {
        self.root.replace(false) || (self.park.is_notified() && self.park.take() & ROOT != 0)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.stage.get() == Stage::Running
    }
}
