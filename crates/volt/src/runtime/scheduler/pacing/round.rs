//! When the future of a thread in `block_on` has its turn among the tasks.
#![forbid(unsafe_code)]

use super::pace::{BUDGET, LOOK_NS};
use super::quick::QUICK_NS;
use crate::runtime::scheduler::worker::{Step, Worker};

/// So many polls of tasks go before the future of `block_on` on a current-thread runtime, if there are so many.
const ROUND: usize = 61;

/// What a thread does before it polls its own future if that was woken already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    Nothing,
    /// A future that wakes itself goes behind a task.
    Task,
    /// Or behind all that is there ([`Worker::run_round`]).
    Round,
}

impl Worker<'_> {
    /// A future that has woken itself in its first poll goes behind the tasks that are there, in the injector as
    /// well (as many as a tick has; up to the second tick whose polls were not quick), behind as many polls of what they make
    /// runnable as in Tokio, and behind what the driver has: a program may call `block_on(yield_now())` again and again, and in between do
    /// something else. One slow tick does not end it: the thread may have had no processor, and what is done by then should
    /// not depend on that. (Ticks are short at first. Later ones are long enough, mostly.)
    #[cold]
    pub(crate) fn run_round(&self) -> Step {
        self.look_around();
        let there = (self.slot.depth() + self.shared.injector.len()) as u32;
        let now = self.now_ns();
        self.pace.began_by(now);
        let (mut start, mut done_before, mut was_slow) = (now, 0, false);
        for done in 0..BUDGET.min(there.max(self.most_in_a_round() as u32)) {
            if self.pace.is_over() {
                self.maintain();
                if self.shared.is_shut_down() {
                    return Step::Exit;
                }
                let now = self.now_ns();
                let polls = u64::from((done - done_before).max(1));
                let is_slow = now.saturating_sub(start) >= polls * QUICK_NS;
                if is_slow && was_slow {
                    break;
                }
                (start, done_before, was_slow) = (now, done, was_slow || is_slow);
            }
            let Some(task) = self.next().or_else(|| self.fetch()) else { break };
            if matches!(self.poll(task), Step::Exit) {
                return Step::Exit;
            }
        }
        // It has waited for the others already.
        self.before_root.set(1);
        Step::Continue
    }

    /// True if the future of this thread was woken and its turn has come. One that was woken by one of several
    /// tasks goes behind the others, as a task would (`Worker::completed`), or behind [all](Self::round).
    #[inline]
    pub(crate) fn is_roots_turn(&self, goes_behind: Before) -> bool {
        let queues = goes_behind != Before::Nothing;
        let before = if queues { self.before_root.get() } else { 0 };
        if before > 1 && self.others_can_run(goes_behind) {
            self.before_root.set(before - 1);
            return false;
        }
        if !self.take_root() {
            return false;
        }
        if queues {
            // Once for each wake-up.
            let behind = match goes_behind {
                _ if before > 0 => 0,
                Before::Round => self.round(),
                _ => self.fan_in_behind(),
            };
            if behind > 0 {
                self.root.set(true);
                self.before_root.set(behind + 1);
                return false;
            }
            self.before_root.set(0);
        }
        true
    }

    #[inline(always)]
    fn others_can_run(&self, goes_behind: Before) -> bool {
        let beside_ring =
            || !self.slot.batch.is_empty() || !self.shared.injector.is_empty_for(false);
        !self.slot.ring.is_empty() || goes_behind == Before::Round && beside_ring()
    }

    /// On a current-thread runtime, all that can run goes before the future of `block_on` that was woken, also what is
    /// spawned or woken meanwhile: as many polls as in Tokio, since programs and tests look then at what was done;
    /// or as many as take [`LOOK_NS`], if that is less. But one that was woken by one of several tasks goes behind those
    /// that are there in any case. (A task that yields alone is not counted: in Tokio it goes behind that future, too.)
    // Not inline, so that a future that yields alone is polled again soon.
    #[inline(never)]
    pub(crate) fn round(&self) -> usize {
        if !self.others_can_run(Before::Round) {
            return 0;
        }
        let per_poll = self.pace.poll_ns();
        let fit = if per_poll > 0.0 { (LOOK_NS as f32 / per_poll) as usize } else { ROUND };
        fit.min(self.most_in_a_round()).max(self.fan_in_behind())
    }

    /// The same for one that has woken itself, in [`before_root`](Self::before_root).
    #[inline]
    pub(crate) fn behind_itself(&self, goes_behind: Before) -> usize {
        let there = self.slot.depth();
        if goes_behind != Before::Round {
            return there;
        }
        let is_alone = there == 0 && self.shared.injector.is_empty_for(false);
        if is_alone { 1 } else { there.max(self.round() + 1) }
    }

    /// Polls of tasks before the future of `block_on`, if there are so many.
    fn most_in_a_round(&self) -> usize {
        ROUND.min(self.pace.most())
    }

    /// Polls have become long: only those that are there go before the future of this thread.
    pub(crate) fn cut_round(&self) {
        self.before_root.set(self.before_root.get().min(self.slot.ring.len() + 1));
    }
}
