//! A budget that is renewed.
//!
//! The only receiver of a channel may have a crowd of senders. If its budget is used up while there are
//! messages left, it goes behind all of them; the first ones fill the places that it has freed, and the
//! others find the channel full: each of them is polled in vain for each budget of the receiver, until it
//! queues, and then each message costs a place in the queue, a wake-up and a poll.
//!
//! So while the polls of a thread are short ([`allow_turns`](super::allow_turns)), the budget of such a
//! receiver is renewed when one of its messages takes one of the [`LAST`] units: once, and then again until
//! [`QUICK`] after the first time, but seven times at most (the clock may be coarse). The others wait for that
//! and the last budget at most. A receiver that is not quick has two budgets in a poll; if that makes polls
//! long, there is no leave for it any more. The clock is read once for each renewal, and once when the time is
//! over. A poll inside of this one (a `LocalSet`, a `block_on`) that is renewed begins that time anew; the
//! seven times hold all the same.
//!
//! A budget that is used up is not renewed: another operation may have been refused since then, and what a
//! task asks first is served first, as in `select! { biased; .. }`.
//!
//! Rejected:
//! * A larger budget for each task: nobody knows beforehand how long it will take.
//! * The same for senders: they stop where the channel is full.
//! * More turns in vain before a sender queues: of two threads, the one without the receiver takes the
//!   cache lines from the other for each of them.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::{BUDGET, Givers, RENEWALS, UNIT, givers, made_progress};
use crate::primitive::now;
use crate::turns::CLOCK;

/// So many units each time: what a runtime gives in most cases.
const RENEWED: u32 = 128;
/// The units of which the first one that a message takes renews the budget. Two: whoever sends on what it
/// receives takes one for each, and the last one may be the other's.
const LAST: u32 = 2;
/// About a thousand messages, if nothing is done with them.
const QUICK: Duration = Duration::from_micros(10);

crate::const_thread_local! {
    /// When the budget of a poll was renewed first, of the last poll in which one was.
    static FIRST: Cell<Option<Instant>> = Cell::new(None);
}

/// As [`made_progress`], for an operation that a crowd may wait for.
#[inline]
pub(crate) fn made_progress_or_renew() {
    let left = BUDGET.with(Cell::get);
    if (UNIT..(LAST + 1) * UNIT).contains(&left) {
        renew_or_spend();
    } else {
        made_progress();
    }
}

#[cold]
fn renew_or_spend() {
    let renewed = CLOCK && givers() == Givers::All && renew(now);
    if !renewed {
        made_progress();
    }
}

/// Renews a budget, unless it has been renewed for long enough, or often enough: a clock may be coarse.
fn renew(now: impl Fn() -> Instant) -> bool {
    let budget = BUDGET.with(Cell::get);
    let renewals = budget & RENEWALS;
    if renewals == RENEWALS {
        return false;
    }
    let now = now();
    let first = FIRST.with(Cell::get).filter(|_| renewals > 0);
    if first.is_some_and(|first| now.saturating_duration_since(first) > QUICK) {
        // The other of the last units need not ask the clock again.
        BUDGET.with(|cell| cell.set(budget | RENEWALS));
        return false;
    }
    FIRST.with(|cell| cell.set(first.or(Some(now))));
    BUDGET.with(|budget| budget.set(RENEWED * UNIT + renewals + 1));
    true
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::{QUICK, RENEWED, now, renew};
    use crate::coop::{
        allow_turns, has_budget_remaining, made_progress, with_budget, without_turns,
    };
    use crate::mpsc;

    /// How many units were left.
    fn use_up() -> u32 {
        let mut units = 0;
        while has_budget_remaining() {
            made_progress();
            units += 1;
        }
        units
    }

    #[test]
    fn a_budget_is_renewed_until_it_takes_too_long() {
        let start = now();
        for poll in 0..3 {
            let start = start + poll * 10 * QUICK;
            with_budget(Some(3), || {
                assert_eq!(use_up(), 3);
                for after in [Duration::ZERO, QUICK / 2, QUICK] {
                    assert!(renew(|| start + after));
                    assert_eq!(use_up(), RENEWED);
                }
                for _ in 0..2 {
                    assert!(!renew(|| start + QUICK + Duration::from_nanos(1)));
                    assert!(!has_budget_remaining(), "it stays used up");
                }
            });
        }
    }

    /// How many of a thousand messages a receiver gets in one poll that has a budget for five.
    fn received() -> usize {
        let (tx, mut rx) = mpsc::channel(1000);
        (0..1000).for_each(|i| tx.try_send(i).unwrap());
        let mut received = 0;
        with_budget(Some(5), || {
            let all = async {
                while rx.recv().await.is_some() {
                    received += 1;
                }
            };
            let wakes = crate::test::Wakes::new();
            assert!(wakes.poll(std::pin::pin!(all)).is_pending());
            assert!(received == 1000 || wakes.count() == 1, "it comes back by itself");
        });
        received
    }

    #[test]
    fn only_who_may_give_turns_has_its_budget_renewed() {
        assert_eq!(received(), 5, "no leave");
        allow_turns(true);
        assert!(received() > RENEWED as usize);
        assert_eq!(without_turns(received), 5, "a simulation");
        allow_turns(false);
        assert_eq!(received(), 5, "no leave any more");
    }

    /// A renewed budget does not make the next poll's one larger, nor that of a poll inside of it.
    #[test]
    fn a_renewal_is_for_one_poll() {
        with_budget(Some(1), || {
            assert_eq!(use_up(), 1);
            assert!(renew(now));
            with_budget(Some(2), || assert_eq!(use_up(), 2));
            assert_eq!(use_up(), RENEWED);
        });
        with_budget(Some(2), || assert_eq!(use_up(), 2));
        with_budget(Some(u32::MAX), || assert!(has_budget_remaining()));
    }

    /// A clock that is coarse, or stands still.
    #[test]
    fn renewals_end_if_the_clock_does_not_move() {
        let start = now();
        with_budget(Some(3), || {
            use_up();
            let renewals = (0..10_000).take_while(|_| {
                let renewed = renew(|| start);
                use_up();
                renewed
            });
            let renewals = renewals.count();
            assert!(renewals < 10_000, "{} messages in one poll", renewals * RENEWED as usize);
        });
    }

    /// Who is refused by the time is not asked for it again in this poll.
    #[test]
    fn the_clock_is_read_once_after_the_last_renewal() {
        let start = now();
        let reads = Cell::new(0);
        let renew_after = |time| {
            renew(|| {
                reads.set(reads.get() + 1);
                start + time
            })
        };
        with_budget(Some(3), || {
            assert!(renew_after(Duration::ZERO));
            for _ in 0..3 {
                assert!(!renew_after(2 * QUICK));
            }
            assert_eq!(reads.get(), 2);
            assert_eq!(use_up(), RENEWED, "a refusal takes nothing");
        });
        with_budget(Some(3), || assert!(renew_after(2 * QUICK), "of another poll"));
    }

    /// A poll inside of a poll (a `LocalSet`, a `block_on`) may move the outer one's time, but not by much.
    #[test]
    fn a_renewal_inside_prolongs_the_one_outside_by_seven_renewals_at_most() {
        let start = now();
        with_budget(Some(3), || {
            for i in 0..7 {
                let time = start + i * QUICK;
                if !renew(|| time) {
                    return;
                }
                use_up();
                with_budget(Some(3), || {
                    use_up();
                    assert!(renew(|| time + QUICK / 2));
                });
            }
            assert!(!renew(|| start));
        });
    }

    /// What a task polled before the receiver, and found ready but for the budget, is before the receiver
    /// also now: `select! { biased; .. }`.
    #[test]
    fn a_renewal_passes_no_branch_that_was_polled_before() {
        allow_turns(true);
        let (stop, stopped) = crate::oneshot::channel();
        let (tx, mut rx) = mpsc::channel(4);
        tx.try_send(1).unwrap();
        tx.try_send(2).unwrap();
        let mut stopped = std::pin::pin!(stopped);
        let wakes = crate::test::Wakes::new();
        with_budget(Some(1), || {
            assert!(wakes.poll(std::pin::pin!(rx.recv())).is_ready());
            stop.send(()).unwrap();
            let first = wakes.poll(stopped.as_mut()).is_ready();
            let second = wakes.poll(std::pin::pin!(rx.recv())).is_ready();
            assert!(first || !second, "a message was received after the stop");
        });
        allow_turns(false);
    }

    /// An operation that succeeds without a look at the budget.
    #[test]
    fn a_renewed_budget_that_is_used_up_stays_so() {
        with_budget(Some(1), || {
            use_up();
            assert!(renew(now));
            use_up();
            (0..3).for_each(|_| made_progress());
            assert!(!has_budget_remaining());
        });
    }
}
