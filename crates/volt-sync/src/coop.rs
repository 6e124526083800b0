//! The cooperative budget: a task whose operations always find something ready still yields.
//!
//! A runtime gives each poll of a task a number of units with [`with_budget`]. Every operation of
//! this crate that succeeds inside that poll takes one; once they are used up, operations report
//! `Pending` and wake the task at once, so that it goes to the back of the queue. (One that finds that it has to
//! wait anyway, for a lock or permits, may just wait.) Outside such a
//! runtime there is no limit and the two calls cost a thread-local load each.
//!
//! The protocol of an operation: [`poll_proceed`] before looking, [`made_progress`] on success.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::task::{Context, Poll, ready};

use crate::turns;

mod renewal;
pub(crate) use renewal::made_progress_or_renew;

const UNCONSTRAINED: u32 = u32::MAX;
/// Beside the units that are left: how often this poll's budget [was renewed](made_progress_or_renew), and as
/// often as it may be once its time is over.
const RENEWALS: u32 = UNIT - 1;
const UNIT: u32 = 8;

crate::const_thread_local! {
    static BUDGET: Cell<u32> = Cell::new(UNCONSTRAINED);
}

crate::const_thread_local! {
    /// The address of the permits that this poll handed over last (`permits/convoy.rs`), or 0.
    static HANDED_OVER: Cell<usize> = Cell::new(0);
}

crate::const_thread_local! {
    /// What [`allow_turns`] said last, unless there are none at all.
    static TURNS: Cell<Turns> = Cell::new(Turns::NotNow);
}

/// Whether tasks may give others turns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turns {
    NotNow,
    Allowed,
    /// Inside [`without_turns`].
    Never,
}

/// `Pending`, with a wake-up on its way, if the running task has used up its budget.
///
/// ```
/// use std::task::{Context, Poll, Waker, ready};
/// use volt_sync::coop::{made_progress, poll_proceed, with_budget};
///
/// fn poll_next(cx: &mut Context<'_>) -> Poll<u32> {
///     ready!(poll_proceed(cx));
///     // ... the operation succeeded:
///     made_progress();
///     Poll::Ready(1)
/// }
///
/// let mut cx = Context::from_waker(Waker::noop());
/// with_budget(Some(1), || {
///     assert_eq!(poll_next(&mut cx), Poll::Ready(1));
///     assert_eq!(poll_next(&mut cx), Poll::Pending);
/// });
/// ```
#[inline]
pub fn poll_proceed(cx: &mut Context<'_>) -> Poll<()> {
    if has_budget_remaining() {
        return Poll::Ready(());
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}

/// True unless the running task has used up its budget.
///
/// ```
/// use volt_sync::coop::{has_budget_remaining, made_progress, with_budget};
///
/// with_budget(Some(1), || {
///     made_progress();
///     assert!(!has_budget_remaining());
/// });
/// assert!(has_budget_remaining());
/// ```
#[inline]
pub fn has_budget_remaining() -> bool {
    BUDGET.with(|budget| budget.get() >= UNIT)
}

/// True inside a poll that has a budget: a task of a runtime that gives others their turn when this
/// one wakes itself.
#[inline]
pub(crate) fn is_limited() -> bool {
    BUDGET.with(|budget| budget.get() != UNCONSTRAINED)
}

/// For the thread of a runtime: whether a task that wakes itself is soon polled again, because the others
/// take about a microsecond each. Then a task that has a budget, and would have to wait for a channel, gives
/// the others a few turns first: in a crowd on one thread that saves a place in a queue and a wake-up
/// for each message. And the only receiver of a bounded channel (of a ring) has its budget renewed for some
/// microseconds, since its senders may all wait for it. Not allowed until then.
///
/// Tasks without a budget, as those of other executors, need no leave: they give turns if several of one
/// thread have been waiting for the same channel again and again, for as long as turns are short and pay.
///
/// ```
/// // What a runtime does now and then, in each of its threads.
/// let average_poll = std::time::Duration::from_nanos(300);
/// volt_sync::coop::allow_turns(average_poll < std::time::Duration::from_micros(2));
/// ```
#[inline]
pub fn allow_turns(allow: bool) {
    TURNS.with(|turns| {
        if turns.get() != Turns::Never {
            turns.set(if allow { Turns::Allowed } else { Turns::NotNow });
        }
    });
}

/// Runs `f`, in which nobody gives turns: what a thread has learnt of them depends on what it did before,
/// and a simulation must not.
#[doc(hidden)]
pub fn without_turns<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(Turns);
    impl Drop for Restore {
        fn drop(&mut self) {
            TURNS.with(|turns| turns.set(self.0));
        }
    }
    let _restore = Restore(TURNS.with(|turns| turns.replace(Turns::Never)));
    f()
}

/// Which tasks may give others turns for a channel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Givers {
    Nobody,
    /// Those of a crowd: how the executor runs them is not known.
    Crowds,
    All,
}

/// Who may give turns for a channel in this poll.
#[inline]
pub(crate) fn givers() -> Givers {
    let turns = TURNS.with(Cell::get);
    match (turns, is_limited()) {
        (Turns::Never, _) | (Turns::NotNow, true) => Givers::Nobody,
        (Turns::Allowed, true) => Givers::All,
        (_, false) if turns::CLOCK => Givers::Crowds,
        (_, false) => Givers::Nobody,
    }
}

/// True if the task that is polled may give others turns, even if polls are long.
#[inline]
pub(crate) fn may_give_long_turns() -> bool {
    is_limited() && TURNS.with(|turns| turns.get() != Turns::Never)
}

/// Permits at this address were handed over in this poll.
#[inline]
pub(crate) fn set_handed_over(address: usize) {
    HANDED_OVER.with(|place| place.set(address));
}

/// True if the permits at this address were handed over last, and in this poll. Only once.
#[inline]
pub(crate) fn take_handed_over(address: usize) -> bool {
    HANDED_OVER.with(|place| {
        let same = place.get() == address;
        if same {
            place.set(0);
        }
        same
    })
}

/// Takes one unit of the budget.
///
/// ```
/// use volt_sync::coop::{has_budget_remaining, made_progress, with_budget};
///
/// with_budget(Some(2), || {
///     made_progress();
///     assert!(has_budget_remaining());
///     made_progress();
///     assert!(!has_budget_remaining());
/// });
/// ```
#[inline]
pub fn made_progress() {
    BUDGET.with(|budget| {
        let left = budget.get();
        // Neither below zero nor away from "unconstrained", where it does not even store: a store
        // delays the caller's next read-modify-write.
        if (UNIT..UNCONSTRAINED).contains(&left) {
            budget.set(left - UNIT);
        }
    });
}

/// A budget as it was left at some time, for [`restore`].
///
/// ```
/// use volt_sync::coop::{Left, take_unit};
///
/// let before: Left = take_unit(); // no limit, outside of tasks
/// # let _ = before;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Left(u32);

/// Takes one unit, as [`made_progress`] does, of an operation that has not succeeded yet; returns what was left
/// before.
///
/// ```
/// use volt_sync::coop::{has_budget_remaining, restore, take_unit, with_budget};
///
/// with_budget(Some(1), || {
///     let before = take_unit();
///     assert!(!has_budget_remaining());
///     restore(before); // it did not succeed
///     assert!(has_budget_remaining());
/// });
/// ```
#[inline]
pub fn take_unit() -> Left {
    let left = Left(BUDGET.with(Cell::get));
    made_progress();
    left
}

/// Gives back all that was taken in this poll since [`take_unit`] has returned `left`. Outside of polls with a budget it does
/// nothing.
///
/// ```
/// use volt_sync::coop::{has_budget_remaining, made_progress, restore, take_unit, with_budget};
///
/// with_budget(Some(3), || {
///     let before = take_unit();
///     made_progress();
///     restore(before);
///     (0..2).for_each(|_| made_progress());
///     assert!(has_budget_remaining());
/// });
/// ```
#[inline]
pub fn restore(left: Left) {
    BUDGET.with(|budget| {
        // Nor where there is no limit any more, as outside of the poll: nobody would renew it there.
        if ![left.0, budget.get()].contains(&UNCONSTRAINED) {
            budget.set(left.0);
        }
    });
}

/// Polls an `operation` that other code may have written: if it is ready, it costs a unit, unless it took some
/// itself. If the budget is used up, it is not polled, as with [`poll_proceed`].
///
/// So what wraps an unknown operation counts it once, whether or not it knows the budget.
///
/// ```
/// use std::task::{Context, Poll, Waker};
/// use volt_sync::coop::{made_progress, poll_operation, with_budget};
///
/// let mut cx = Context::from_waker(Waker::noop());
/// with_budget(Some(2), || {
///     assert!(poll_operation(&mut cx, |_| Poll::Pending::<()>).is_pending());
///     let ready = poll_operation(&mut cx, |_| Poll::Ready("one unit"));
///     assert_eq!(ready, Poll::Ready("one unit"));
///     let ready = poll_operation(&mut cx, |_| {
///         made_progress();
///         Poll::Ready("the other")
///     });
///     assert_eq!(ready, Poll::Ready("the other"));
///     assert!(poll_operation(&mut cx, |_| Poll::Ready(())).is_pending());
/// });
/// ```
#[inline]
pub fn poll_operation<T>(
    cx: &mut Context<'_>,
    operation: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    ready!(poll_proceed(cx));
    let before = BUDGET.with(Cell::get);
    let result = operation(cx);
    if result.is_ready() && BUDGET.with(Cell::get) == before {
        made_progress();
    }
    result
}

/// Makes an `attempt`, which does not wait, if there is budget; success costs a unit. False if it was not made, or
/// failed.
#[inline]
pub(crate) fn attempt(attempt: impl FnOnce() -> bool) -> bool {
    let succeeded = has_budget_remaining() && attempt();
    if succeeded {
        made_progress();
    }
    succeeded
}

/// Runs `f` with `units` of budget (`None`: unlimited) and restores what was left before.
///
/// ```
/// use volt_sync::coop::with_budget;
///
/// // What a runtime does around each poll of a task.
/// let (tx, rx) = volt_sync::mpmc::unbounded();
/// (0..100).for_each(|i| tx.try_send(i).unwrap());
/// let received = with_budget(Some(10), || {
///     let mut received = 0;
///     let all = async {
///         while rx.recv().await.is_some() {
///             received += 1;
///         }
///     };
///     let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
///     assert!(std::pin::pin!(all).poll(&mut cx).is_pending());
///     received
/// });
/// assert_eq!(received, 10);
/// ```
#[inline]
pub fn with_budget<R>(units: Option<u32>, f: impl FnOnce() -> R) -> R {
    struct Restore {
        budget: u32,
        handed_over: usize,
    }
    impl Drop for Restore {
        #[inline]
        fn drop(&mut self) {
            BUDGET.with(|budget| budget.set(self.budget));
            HANDED_OVER.with(|place| place.set(self.handed_over));
        }
    }
    let most = UNCONSTRAINED / UNIT - 1;
    let units = units.map_or(UNCONSTRAINED, |units| units.min(most) * UNIT);
    let _restore = Restore {
        budget: BUDGET.with(|budget| budget.replace(units)),
        // What one poll handed over says nothing of another, nor of one that it is nested in: the
        // lock may not even exist any more.
        handed_over: HANDED_OVER.with(|place| place.replace(0)),
    };
    f()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_runs_out_and_is_restored() {
        assert!(has_budget_remaining());
        with_budget(Some(2), || {
            made_progress();
            assert!(has_budget_remaining());
            with_budget(None, || (0..10).for_each(|_| made_progress()));
            made_progress();
            assert!(!has_budget_remaining());
            made_progress();
            assert!(!has_budget_remaining());
        });
        assert!(has_budget_remaining());
    }
}
