//! When the future of a thread in `block_on` has its turn among the tasks.
#![forbid(unsafe_code)]

use super::pace::{BUDGET, LOOK_NS};
use super::quick::QUICK_NS;
use super::worker::{Step, Worker};

/// So many polls of tasks go before the future of `block_on` on a current-thread runtime, if there are so many.
const ROUND: usize = 61;

/// What a thread does before it polls its own future if that was woken already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    /// A future that wakes itself goes behind a task.
    Task,
    /// Or behind all that is there ([`Worker::run_round`]).
    Round,
}

impl Worker<'_> {
    /// A future that has woken itself in its first poll goes behind the tasks that are there, in the injector as
    /// well (as many as a tick has; one tick, if they are not quick), behind a [round](Self::round) of what they make
    /// runnable, and behind what the driver has: a program may call `block_on(yield_now())` again and again, and in between do
    /// something else.
    #[cold]
    pub(super) fn run_round(&self) -> Step {
        self.look_at_driver(false);
        let start = self.now_ns();
        let there = self.slot.depth() + self.shared.injector.len();
        for done in 0..BUDGET.min(there.max(ROUND) as u32) {
            if self.pace.is_over() {
                self.maintain();
                if self.shared.is_shut_down() {
                    return Step::Exit;
                }
                if self.now_ns().saturating_sub(start) >= u64::from(done.max(1)) * QUICK_NS {
                    break;
                }
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
    pub(super) fn is_roots_turn(&self, goes_behind: Before) -> bool {
        let queues = goes_behind != Before::Nothing;
        let before = if queues { self.before_root.get() } else { 0 };
        if before > 1 && !self.slot.ring.is_empty() {
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

    /// On a current-thread runtime, all that can run goes before the future of `block_on` that was woken, also what is
    /// spawned or woken meanwhile: as many polls as in Tokio, since programs and tests look then at what was done.
    /// If polls are long, those that are there, and as many as take [`LOOK_NS`].
    #[inline]
    pub(super) fn round(&self) -> usize {
        let (there, per_poll) = (self.slot.ring.len(), self.pace.poll_ns());
        let fit = if per_poll > 0.0 { (LOOK_NS as f32 / per_poll) as usize } else { ROUND };
        if there == 0 { 0 } else { there.max(fit.min(ROUND)) }
    }

    /// Polls have become long: only those that are there go before the future of this thread.
    pub(super) fn cut_round(&self) {
        self.before_root.set(self.before_root.get().min(self.slot.ring.len() + 1));
    }
}
