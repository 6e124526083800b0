use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use proptest::prelude::*;

use super::{AcquirePermits, Closed, Permits, Refused, convoy};
use crate::block_on::block_on;
use crate::coop;
use crate::primitive::{Arc, thread};
use crate::test::{Wakes, poll_once, ready};
use crate::turns;

type Waiting<'a> = Pin<Box<AcquirePermits<'a>>>;

fn queue(permits: &Permits, n: usize) -> Waiting<'_> {
    let mut waiter = Box::pin(permits.acquire(n));
    assert!(poll_once(waiter.as_mut()).is_pending());
    waiter
}

#[test]
fn grants_come_in_the_order_of_the_queue() {
    let permits = Permits::new(0);
    let wakes: Vec<_> = (0..40).map(|_| Wakes::new()).collect();
    let mut waiters: Vec<_> = (0..40).map(|i| Box::pin(permits.acquire(1 + i % 3))).collect();
    for (waiter, wakes) in waiters.iter_mut().zip(&wakes) {
        assert!(wakes.poll(waiter.as_mut()).is_pending());
    }
    let mut given = 0;
    for _ in 0..90 {
        permits.release(1);
        given += 1;
        let (mut sum, mut expected) = (0, 0);
        for i in 0..40 {
            sum += 1 + i % 3;
            expected += usize::from(sum <= given);
        }
        let woken: Vec<_> = wakes.iter().map(Wakes::count).collect();
        let order: Vec<_> = (0..40).map(|i| usize::from(i < expected)).collect();
        assert_eq!(woken, order, "exactly the first {expected} after {given} permits");
    }
    for waiter in waiters {
        assert_eq!(ready(waiter), Ok(()));
    }
    assert_eq!(permits.available(), 90 - 79);
}

/// Waiters that have just been handed the permits of a task that wants them again, and that task's
/// future after its first poll, which gave them a turn.
fn give_turn<'a>(permits: &'a Permits, wakes: &Wakes) -> (Waiting<'a>, Waiting<'a>) {
    turns::forget();
    let oldest = queue(permits, 1);
    let before = wakes.count();
    let mut again = Box::pin(permits.acquire(1));
    coop::with_budget(Some(9), || {
        permits.release(1);
        assert!(wakes.poll(again.as_mut()).is_pending());
    });
    assert_eq!(wakes.count(), before + 1, "it is to be polled after the others");
    (oldest, again)
}

/// Polls until it gives no more turns, and so has a place in the queue. How many it gave.
fn poll_until_it_queues(waiter: Pin<&mut AcquirePermits<'_>>, wakes: &Wakes) -> usize {
    let mut waiter = waiter;
    let before = wakes.count();
    loop {
        let turns = wakes.count();
        coop::with_budget(Some(9), || assert!(wakes.poll(waiter.as_mut()).is_pending()));
        if wakes.count() == turns {
            return turns - before;
        }
    }
}

#[test]
fn who_comes_back_for_permits_that_it_handed_over_gives_others_a_turn() {
    let (permits, wakes) = (Permits::new(0), Wakes::new());
    let (oldest, mut again) = give_turn(&permits, &wakes);
    assert_eq!(ready(oldest), Ok(()));
    permits.release(1);
    assert_eq!(permits.available(), 1, "it does not queue");
    assert_eq!(wakes.poll(again.as_mut()), Poll::Ready(Ok(())));
    assert_eq!((permits.available(), wakes.count()), (0, 1));
    catch_unwind(AssertUnwindSafe(|| wakes.poll(again.as_mut()))).unwrap_err();
}

#[test]
fn whoever_gave_its_turns_queues_next_and_passes_nobody() {
    let (permits, wakes) = (Permits::new(0), Wakes::new());
    let (oldest, mut again) = give_turn(&permits, &wakes);
    let meanwhile = queue(&permits, 1);
    let turns = poll_until_it_queues(again.as_mut(), &wakes);
    assert_eq!(
        turns, 0,
        "nothing was handed over on this thread meanwhile: it waits for its place"
    );
    let later = queue(&permits, 1);
    assert_eq!(ready(oldest), Ok(()));
    permits.release(1);
    assert_eq!(ready(meanwhile), Ok(()));
    assert_eq!(wakes.count(), 1);
    permits.release(1);
    assert_eq!(wakes.count(), 2);
    assert_eq!(wakes.poll(again.as_mut()), Poll::Ready(Ok(())));
    permits.release(1);
    assert_eq!(ready(later), Ok(()));
}

/// A crowd: the queue becomes shorter from turn to turn.
#[test]
fn turns_go_on_while_this_thread_hands_over_up_to_a_limit() {
    for (known, expected) in [(8, 8), (turns::MOST, usize::from(convoy::EACH))] {
        let (permits, wakes) = (Permits::new(0), Wakes::new());
        let (mut holder, mut again) = give_turn(&permits, &wakes);
        turns::know_a_crowd_of(known);
        let crowd: Vec<_> = (0..200).map(|_| queue(&permits, 1)).collect();
        let mut turns = 0;
        for next in crowd {
            assert_eq!(ready(std::mem::replace(&mut holder, next)), Ok(()));
            coop::with_budget(Some(9), || permits.release(1));
            let before = wakes.count();
            coop::with_budget(Some(9), || assert!(wakes.poll(again.as_mut()).is_pending()));
            if wakes.count() == before {
                break;
            }
            turns += 1;
        }
        // One was given before `known` was.
        assert_eq!(turns, expected.min(usize::from(convoy::EACH) - 1));
    }
}

/// Others than this thread serve the queue.
#[test]
fn one_of_a_crowd_gives_some_turns_whoever_serves_the_queue() {
    for (tasks, expected) in [(8, 0), (32, usize::from(convoy::ELSEWHERE) - 2)] {
        let (permits, wakes) = (Permits::new(0), Wakes::new());
        turns::know_a_crowd_of(turns::MOST);
        let mut crowd: Vec<_> = (0..tasks).map(|_| Box::pin(permits.acquire(1))).collect();
        let all_give = |crowd: &mut [Waiting<'_>]| {
            let before = wakes.count();
            for waiter in crowd {
                coop::with_budget(Some(9), || assert!(wakes.poll(waiter.as_mut()).is_pending()));
            }
            wakes.count() - before
        };
        let serve = || {
            let oldest = queue(&permits, 1);
            permits.release(1);
            assert_eq!(ready(oldest), Ok(()));
        };
        for waiter in &mut crowd {
            coop::with_budget(Some(9), || {
                serve();
                assert!(wakes.poll(waiter.as_mut()).is_pending());
            });
        }
        coop::with_budget(Some(9), serve);
        assert_eq!(all_give(&mut crowd), tasks, "this thread has served the queue");
        let _oldest = queue(&permits, 1);
        let rounds = (0..100).take_while(|_| all_give(&mut crowd) == tasks).count();
        assert_eq!(rounds, expected, "{tasks} tasks");
    }
}

#[test]
fn whoever_gave_a_turn_can_be_dropped_or_find_the_permits_closed() {
    let (permits, wakes) = (Permits::new(0), Wakes::new());
    let (oldest, again) = give_turn(&permits, &wakes);
    drop(again);
    assert_eq!((ready(oldest), wakes.clones()), (Ok(()), 0));
    permits.release(1);
    assert_eq!(permits.available(), 1, "nobody is in the queue");

    assert_eq!(permits.try_acquire(1), Ok(()));
    let (oldest, mut again) = give_turn(&permits, &wakes);
    permits.close();
    assert_eq!(wakes.poll(again.as_mut()), Poll::Ready(Err(Closed)));
    assert_eq!(ready(oldest), Ok(()), "granted before");
}

#[test]
fn a_waker_that_panics_when_a_turn_is_given_loses_nothing() {
    let (permits, bad) = (Permits::new(0), Wakes::panicking());
    let oldest = queue(&permits, 1);
    turns::forget();
    let mut again = Box::pin(permits.acquire(1));
    coop::with_budget(Some(9), || {
        permits.release(1);
        catch_unwind(AssertUnwindSafe(|| bad.poll(again.as_mut()))).unwrap_err();
    });
    assert_eq!(ready(oldest), Ok(()));
    permits.release(1);
    assert_eq!(poll_once(again.as_mut()), Poll::Ready(Ok(())));
}

#[test]
fn no_turn_is_given_without_a_budget_or_for_what_was_not_handed_over_last_in_this_poll() {
    let (permits, others, wakes) = (Permits::new(0), Permits::new(0), Wakes::new());
    turns::forget();
    let queues = |permits: &Permits| {
        let before = wakes.count();
        let mut waiter = Box::pin(permits.acquire(1));
        assert!(wakes.poll(waiter.as_mut()).is_pending());
        assert_eq!(wakes.count(), before, "no turn");
        permits.release(1);
        assert_eq!(wakes.count(), before + 1, "it was in the queue");
        assert_eq!(ready(waiter), Ok(()));
    };
    queues(&permits);
    queues(&permits);
    coop::with_budget(Some(9), || queues(&permits));
    coop::with_budget(Some(9), || queues(&permits));
    coop::with_budget(Some(9), || {
        queues(&permits);
        queues(&others);
        queues(&permits);
    });
    coop::with_budget(Some(9), || {
        coop::with_budget(Some(9), || queues(&permits));
        queues(&permits);
    });
}

/// A task that drives others, or blocks, inside its poll.
#[test]
fn polls_inside_a_poll_leave_what_it_has_handed_over() {
    let (permits, wakes) = (Permits::new(0), Wakes::new());
    turns::forget();
    let oldest = queue(&permits, 1);
    let mut again = Box::pin(permits.acquire(1));
    coop::with_budget(Some(9), || {
        permits.release(1);
        coop::with_budget(None, || ());
        assert!(wakes.poll(again.as_mut()).is_pending());
    });
    assert_eq!(wakes.count(), 1, "it gave a turn");
    assert_eq!(ready(oldest), Ok(()));
}

/// As with a lock that is always held across an `.await`.
#[test]
fn turns_that_are_always_in_vain_become_rare() {
    let (permits, wakes) = (Permits::new(0), Wakes::new());
    turns::forget();
    let rounds = 400_000;
    let mut holder = queue(&permits, 1);
    for _ in 0..rounds {
        let mut again = Box::pin(permits.acquire(1));
        coop::with_budget(Some(9), || {
            permits.release(1);
            assert!(wakes.poll(again.as_mut()).is_pending());
        });
        poll_until_it_queues(again.as_mut(), &wakes);
        assert_eq!(ready(holder), Ok(()));
        holder = again;
    }
    let turns = wakes.count() - (rounds - 1);
    assert!((8..rounds / 80).contains(&turns), "{turns}");
}

/// Each turn takes 3 ms, and is in vain: whoever gave it queues. That should be learnt at the second one.
#[test]
fn a_turn_after_which_the_wait_queues_is_timed_as_well() {
    let (permits, wakes) = (Permits::new(0), Wakes::new());
    // Nothing is forgotten: this thread has learnt nothing yet, and times its first turn.
    let (mut turns, mut kept) = (0, Vec::new());
    for _ in 0..6 {
        let oldest = queue(&permits, 1);
        let mut again = Box::pin(permits.acquire(1));
        let before = wakes.count();
        coop::with_budget(Some(9), || {
            permits.release(1);
            assert!(wakes.poll(again.as_mut()).is_pending());
        });
        if wakes.count() > before {
            turns += 1;
            std::thread::sleep(std::time::Duration::from_millis(3));
            assert_eq!(poll_until_it_queues(again.as_mut(), &wakes), 0);
        }
        assert_eq!(ready(oldest), Ok(()));
        permits.release(1);
        assert_eq!(wakes.poll(again.as_mut()), Poll::Ready(Ok(())));
        // So that the next one is elsewhere.
        kept.push(again);
    }
    assert!(turns <= 3, "{turns} turns of 3 ms each");
}

/// Finding S2.
#[test]
fn nobody_takes_permits_past_a_waiter() {
    let permits = Permits::new(1);
    let big = queue(&permits, 3);
    assert_eq!(permits.try_acquire(1), Err(Refused::TooFew));
    assert_eq!(permits.available(), 0, "the permit is reserved");
    assert_eq!(permits.forget(1), 0);
    let small = queue(&permits, 1);
    permits.release(2);
    assert_eq!(ready(big), Ok(()));
    permits.release(1);
    assert_eq!(ready(small), Ok(()));
}

/// Finding S4.
#[test]
fn dropping_a_granted_waiter_passes_the_permits_on() {
    let permits = Permits::new(0);
    let first = queue(&permits, 2);
    let wakes = Wakes::new();
    let mut second = pin!(permits.acquire(1));
    assert!(wakes.poll(second.as_mut()).is_pending());
    permits.release(2);
    assert_eq!(wakes.count(), 0);
    drop(first);
    assert_eq!(wakes.count(), 1);
    assert_eq!(poll_once(second), Poll::Ready(Ok(())));
    assert_eq!(permits.available(), 1);
}

/// Findings S5 to S7: what a cancelled waiter had gathered goes to the oldest one left.
#[test]
fn dropping_the_oldest_waiter_serves_the_next() {
    let permits = Permits::new(1);
    let first = queue(&permits, 2);
    let (mut second, mut third) = (queue(&permits, 1), queue(&permits, 1));
    drop(first);
    assert_eq!(poll_once(second.as_mut()), Poll::Ready(Ok(())));
    assert!(poll_once(third.as_mut()).is_pending());
}

#[test]
fn a_waiter_keeps_its_place_and_its_waker_across_polls() {
    let permits = Permits::new(0);
    let (old, new) = (Wakes::new(), Wakes::new());
    let mut first = Box::pin(permits.acquire(1));
    assert!(old.poll(first.as_mut()).is_pending());
    let second = queue(&permits, 1);
    assert!(old.poll(first.as_mut()).is_pending());
    assert_eq!(old.clones(), 1, "the same waker is not cloned again");
    assert!(new.poll(first.as_mut()).is_pending());
    assert_eq!((old.clones(), new.clones()), (0, 1), "the old one is dropped");
    permits.release(1);
    assert_eq!((old.count(), new.count()), (0, 1));
    assert_eq!(ready(first), Ok(()));
    drop(second);
    permits.release(1);
    assert_eq!(permits.available(), 1);
}

#[test]
fn no_permits_are_always_there_until_closed() {
    let permits = Permits::new(0);
    let waiter = queue(&permits, 1);
    assert_eq!(permits.try_acquire(0), Ok(()));
    assert_eq!(ready(permits.acquire(0)), Ok(()));
    permits.close();
    assert_eq!(permits.try_acquire(0), Err(Refused::Closed));
    assert_eq!(ready(waiter), Err(Closed));
}

#[test]
fn close_wakes_all_in_order_and_stays() {
    let permits = Permits::new(1);
    let wakes = Wakes::new();
    let mut waiters: Vec<_> = (0..50).map(|_| Box::pin(permits.acquire(2))).collect();
    for waiter in &mut waiters {
        assert!(wakes.poll(waiter.as_mut()).is_pending());
    }
    permits.close();
    permits.close();
    assert_eq!((wakes.count(), wakes.clones()), (50, 0));
    for waiter in waiters {
        assert_eq!(ready(waiter), Err(Closed));
    }
    permits.release(1);
    assert_eq!(permits.available(), 2);
    assert_eq!(ready(permits.acquire(1)), Err(Closed));
}

#[test]
fn a_panicking_waker_keeps_nobody_from_being_woken() {
    let permits = Permits::new(0);
    let (bad, good) = (Wakes::panicking(), Wakes::new());
    let mut waiters: Vec<_> = (0..40).map(|_| Box::pin(permits.acquire(1))).collect();
    for (i, waiter) in waiters.iter_mut().enumerate() {
        let wakes = if i % 5 == 0 { &bad } else { &good };
        assert!(wakes.poll(waiter.as_mut()).is_pending());
    }
    catch_unwind(AssertUnwindSafe(|| permits.release(41))).unwrap_err();
    assert_eq!((bad.count(), good.count()), (8, 32));
    for waiter in waiters {
        assert_eq!(ready(waiter), Ok(()));
    }
    assert_eq!(permits.available(), 1);
}

#[test]
fn a_panicking_waker_in_front_does_not_lose_what_a_cancelled_waiter_had() {
    let permits = Permits::new(0);
    let bad = Wakes::panicking();
    let first = queue(&permits, 2);
    let mut second = Box::pin(permits.acquire(1));
    assert!(bad.poll(second.as_mut()).is_pending());
    permits.release(1);
    catch_unwind(AssertUnwindSafe(|| drop(first))).unwrap_err();
    assert_eq!(ready(second), Ok(()));
}

#[test]
fn more_than_the_maximum_is_refused_and_changes_nothing() {
    let permits = Permits::new(Permits::MAX);
    for n in [1, Permits::MAX + 1, usize::MAX] {
        catch_unwind(|| permits.release(n)).unwrap_err();
        assert_eq!(permits.available(), Permits::MAX);
    }
    let waiter = {
        permits.try_acquire(2).unwrap();
        queue(&permits, Permits::MAX)
    };
    catch_unwind(|| permits.release(3)).unwrap_err();
    permits.release(2);
    assert_eq!(ready(waiter), Ok(()));
}

#[test]
fn polling_after_completion_panics() {
    let permits = Permits::new(1);
    let mut future = pin!(permits.acquire(1));
    assert!(poll_once(future.as_mut()).is_ready());
    catch_unwind(AssertUnwindSafe(|| poll_once(future.as_mut()))).unwrap_err();
    assert_eq!(permits.available(), 0);
}

#[test]
fn a_task_without_budget_yields_and_a_success_costs_a_unit() {
    let permits = Permits::new(3);
    let wakes = Wakes::new();
    coop::with_budget(Some(2), || {
        let mut future = pin!(async {
            for _ in 0..3 {
                permits.acquire(1).await.unwrap();
            }
        });
        assert!(wakes.poll(future.as_mut()).is_pending());
        assert_eq!((wakes.count(), permits.available()), (1, 1));
    });
    assert_eq!(ready(permits.acquire(1)), Ok(()), "no limit outside");
}

#[test]
fn who_has_to_wait_has_its_place_also_without_budget() {
    let permits = Permits::new(0);
    let mut first = pin!(permits.acquire(1));
    coop::with_budget(Some(0), || assert!(poll_once(first.as_mut()).is_pending()));
    let mut second = queue(&permits, 1);
    permits.release(1);
    assert!(poll_once(second.as_mut()).is_pending());
    assert_eq!(ready(first), Ok(()));
}

/// As the task of a runtime: each poll has a budget.
fn limited<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let mut future = Box::pin(future);
    poll_fn(move |cx| coop::with_budget(Some(100), || future.as_mut().poll(cx)))
}

#[test]
fn threads_exclude_each_other_and_lose_no_permit() {
    let permits = Arc::new(Permits::new(2));
    let rounds = 2_000;
    let threads: Vec<_> = (0..4)
        .map(|i| {
            let permits = permits.clone();
            thread::Builder::new()
                .spawn(move || {
                    for round in 0..rounds {
                        let n = 1 + (round + i) % 2;
                        if round % 7 == 0 {
                            // Poll once and give up.
                            let mut future = pin!(permits.acquire(n));
                            if poll_once(future.as_mut()).is_pending() {
                                continue;
                            }
                        } else if round % 2 == 0 {
                            block_on(permits.acquire(n)).unwrap();
                        } else {
                            block_on(limited(permits.acquire(n))).unwrap();
                        }
                        permits.release(n);
                    }
                })
                .unwrap()
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(permits.available(), 2);
}

/// What `Permits` should do, without any concurrency.
#[derive(Default)]
struct Naive {
    available: usize,
    closed: bool,
    queue: VecDeque<(usize, usize)>,
    ended: Vec<(usize, Result<(), Closed>)>,
}

impl Naive {
    fn try_acquire(&mut self, n: usize) -> Result<(), Refused> {
        if self.closed {
            Err(Refused::Closed)
        } else if n > 0 && (n > self.available || !self.queue.is_empty()) {
            Err(Refused::TooFew)
        } else {
            self.available -= n;
            Ok(())
        }
    }

    fn serve(&mut self) {
        while let Some(&(id, n)) = self.queue.front() {
            if self.closed {
                self.ended.push((id, Err(Closed)));
            } else if n <= self.available {
                self.available -= n;
                self.ended.push((id, Ok(())));
            } else {
                return;
            }
            self.queue.pop_front();
        }
    }

    fn result(&self, id: usize) -> Option<Result<(), Closed>> {
        self.ended.iter().find(|ended| ended.0 == id).map(|ended| ended.1)
    }
}

#[test]
fn permits_up_to_the_maximum_can_be_added_by_few_and_by_many() {
    let half = Permits::MAX / 2;
    for (start, parts) in [
        (0, vec![1, half, half]),
        (half - 1, vec![1, 1, half]),
        (half, vec![1, half]),
        (Permits::MAX - 2, vec![1, 1]),
        (0, vec![Permits::MAX]),
        (0, vec![Permits::MAX >> 28, (Permits::MAX >> 28) + 1]),
    ] {
        let permits = Permits::new(start);
        parts.iter().for_each(|n| permits.release(*n));
        let total = start + parts.iter().sum::<usize>();
        assert_eq!(permits.available(), total);
        let more = Permits::MAX - total + 1;
        assert!(catch_unwind(AssertUnwindSafe(|| permits.release(more))).is_err());
        assert_eq!(permits.available(), total, "nothing was added");
        assert_eq!(permits.try_acquire(total), Ok(()));
    }
}

/// The step that loom does not reach (see STYLE.md): a waiter came while the counter was wrapped.
#[test]
fn the_repair_of_a_counter_that_wrapped_serves_those_who_found_too_few() {
    let permits = Permits::new(Permits::MAX);
    let deposit = super::word::Word::new(3).bits();
    permits.word.fetch_add(deposit, std::sync::atomic::Ordering::SeqCst);
    let wakes = Wakes::new();
    let mut waiter = pin!(permits.acquire(4));
    assert!(wakes.poll(waiter.as_mut()).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| permits.undo(deposit))).is_err());
    assert_eq!((wakes.count(), permits.available()), (1, Permits::MAX - 4));
    assert_eq!(poll_once(waiter), Poll::Ready(Ok(())));
}

/// As above: a second release came while the counter was wrapped, and did not notice.
#[test]
fn the_repair_of_a_counter_that_wrapped_leaves_all_that_fit() {
    use std::sync::atomic::Ordering::SeqCst;
    let permits = Permits::new(Permits::MAX);
    let (first, second) = (super::word::Word::new(3).bits(), super::word::Word::new(2).bits());
    permits.word.fetch_add(first, SeqCst);
    permits.word.fetch_add(second, SeqCst);
    assert!(catch_unwind(AssertUnwindSafe(|| permits.undo(first))).is_err());
    assert_eq!(permits.available(), Permits::MAX);
    assert_eq!(permits.try_acquire(Permits::MAX), Ok(()));
    assert_eq!(permits.available(), 0);
}

#[derive(Clone, Debug)]
enum Op {
    Try(usize),
    Start(usize),
    Poll(usize),
    Drop(usize),
    Release(usize),
    Forget(usize),
    Close,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        2 => (0_usize..4).prop_map(Op::Try),
        6 => (0_usize..5).prop_map(Op::Start),
        3 => (0_usize..20).prop_map(Op::Poll),
        3 => (0_usize..20).prop_map(Op::Drop),
        6 => (0_usize..5).prop_map(Op::Release),
        1 => (0_usize..3).prop_map(Op::Forget),
        1 => Just(Op::Close),
    ];
    prop::collection::vec(op, 0..60)
}

proptest! {
    #[test]
    fn behaves_as_the_naive_model(start in 0_usize..4, ops in ops(), closes in any::<bool>()) {
        let permits = Permits::new(start);
        let mut naive = Naive { available: start, ..Naive::default() };
        // Each waiter with what it wants; `None` once polled to its end or dropped.
        let mut waiters: Vec<(Option<Waiting<'_>>, usize, Wakes)> = Vec::new();
        for op in ops {
            match op {
                Op::Try(n) => prop_assert_eq!(permits.try_acquire(n), naive.try_acquire(n)),
                Op::Start(n) => {
                    let wakes = Wakes::new();
                    let mut waiter = Box::pin(permits.acquire(n));
                    let polled = wakes.poll(waiter.as_mut());
                    let waiter = match naive.try_acquire(n) {
                        Ok(()) => { prop_assert_eq!(polled, Poll::Ready(Ok(()))); None }
                        Err(Refused::Closed) => {
                            prop_assert_eq!(polled, Poll::Ready(Err(Closed)));
                            None
                        }
                        Err(Refused::TooFew) => {
                            prop_assert!(polled.is_pending());
                            naive.queue.push_back((waiters.len(), n));
                            Some(waiter)
                        }
                    };
                    waiters.push((waiter, n, wakes));
                }
                Op::Poll(id) => {
                    if let Some((place @ Some(_), _, wakes)) = waiters.get_mut(id) {
                        let waiter = place.as_mut().unwrap();
                        let waker = wakes.waker();
                        let polled = waiter.as_mut().poll(&mut Context::from_waker(&waker));
                        match naive.result(id) {
                            None => prop_assert!(polled.is_pending()),
                            Some(result) => {
                                prop_assert_eq!(polled, Poll::Ready(result));
                                *place = None;
                            }
                        }
                    }
                }
                Op::Drop(id) => {
                    if let Some((place @ Some(_), n, _)) = waiters.get_mut(id) {
                        *place = None;
                        match naive.result(id) {
                            Some(Ok(())) => naive.available += *n,
                            Some(Err(Closed)) => {}
                            None => naive.queue.retain(|queued| queued.0 != id),
                        }
                        naive.serve();
                    }
                }
                Op::Release(n) => {
                    permits.release(n);
                    naive.available += n;
                    naive.serve();
                }
                Op::Forget(n) => {
                    let n = if naive.queue.is_empty() { n.min(naive.available) } else { 0 };
                    naive.available -= n;
                    prop_assert_eq!(permits.forget(n), n);
                }
                Op::Close if closes => {
                    permits.close();
                    naive.closed = true;
                    naive.serve();
                }
                Op::Close => {}
            }
            let available = if naive.queue.is_empty() { naive.available } else { 0 };
            prop_assert_eq!(permits.available(), available);
            prop_assert_eq!(permits.is_closed(), naive.closed);
            for (id, (_, _, wakes)) in waiters.iter().enumerate() {
                prop_assert_eq!(wakes.count(), usize::from(naive.result(id).is_some()), "{}", id);
            }
        }
    }
}
