//! Turns that a task gives others before it queues.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use super::{Bounded, NO_TURNS};
use crate::channel::waiter::{LATE, TURNS, Waiter};
use crate::coop::{allow_turns, with_budget, without_turns};
use crate::test::Wakes;
use crate::{mpmc, mpsc, turns};

/// Runs `f` as a task of a runtime whose polls are short.
fn in_a_task<R>(f: impl FnOnce() -> R) -> R {
    turns::know_a_crowd_of(turns::MOST);
    allow_turns(true);
    let result = with_budget(Some(128), f);
    allow_turns(false);
    turns::forget();
    result
}

fn gives_all_turns_then_queues<F: Future>(wakes: &Wakes, mut future: Pin<&mut F>) {
    for turn in 1..=usize::from(TURNS) {
        assert!(wakes.poll(future.as_mut()).is_pending());
        assert_eq!(wakes.count(), turn, "it comes back by itself");
    }
    assert!(wakes.poll(future).is_pending());
    assert_eq!(wakes.count(), usize::from(TURNS), "queued");
}

#[test]
fn who_finds_no_place_gives_turns_then_queues() {
    in_a_task(|| {
        let (tx, rx) = mpmc::bounded(1);
        tx.try_send(1).unwrap();
        let wakes = Wakes::new();
        let mut send = pin!(tx.send(2));
        gives_all_turns_then_queues(&wakes, send.as_mut());
        assert_eq!(rx.try_recv().unwrap(), 1);
        assert_eq!(wakes.count(), usize::from(TURNS) + 1, "served");
        assert!(tx.try_send(3).is_err(), "nobody passes it");
        assert!(wakes.poll(send.as_mut()).is_ready());
        assert_eq!(rx.try_recv().unwrap(), 2);
    });
}

#[test]
fn who_finds_no_message_gives_turns_then_queues() {
    in_a_task(|| {
        let (tx, rx) = mpmc::bounded(1);
        let wakes = Wakes::new();
        let mut recv = pin!(rx.recv());
        gives_all_turns_then_queues(&wakes, recv.as_mut());
        tx.try_send(1).unwrap();
        assert_eq!(wakes.count(), usize::from(TURNS) + 1, "woken");
        assert_eq!(wakes.poll(recv.as_mut()), Poll::Ready(Some(1)));
    });
}

/// After a turn the place, the message, or the end of the channel is found as before one.
#[test]
fn a_turn_may_pay() {
    in_a_task(|| {
        let (tx, rx) = mpmc::bounded(1);
        tx.try_send(1).unwrap();
        let wakes = Wakes::new();
        {
            let mut send = pin!(tx.send(2));
            assert!(wakes.poll(send.as_mut()).is_pending());
            assert_eq!(rx.try_recv().unwrap(), 1);
            assert_eq!(wakes.poll(send.as_mut()), Poll::Ready(Ok(())));
        }
        assert_eq!(rx.try_recv().unwrap(), 2);
        {
            let mut recv = pin!(rx.recv());
            assert!(wakes.poll(recv.as_mut()).is_pending());
            tx.try_send(3).unwrap();
            assert_eq!(wakes.poll(recv.as_mut()), Poll::Ready(Some(3)));
        }
        let mut recv = pin!(rx.recv());
        assert!(wakes.poll(recv.as_mut()).is_pending());
        drop(tx);
        assert_eq!(wakes.poll(recv.as_mut()), Poll::Ready(None));
    });
}

/// Who was notified, and finds that somebody was faster, goes back to the front at once; who is
/// dropped after a turn leaves nothing behind.
#[test]
fn turns_take_no_notification_along() {
    in_a_task(|| {
        let (tx, rx) = mpmc::bounded(2);
        let (first, second) = (Wakes::new(), Wakes::new());
        let mut older = pin!(rx.recv());
        with_budget(None, || assert!(first.poll(older.as_mut()).is_pending()));
        tx.try_send(1).unwrap();
        assert_eq!((first.count(), rx.try_recv().unwrap()), (1, 1));
        assert!(first.poll(older.as_mut()).is_pending());
        assert_eq!(first.count(), 1, "queued at once");
        {
            let mut newer = pin!(rx.recv());
            assert!(second.poll(newer.as_mut()).is_pending());
            assert_eq!(second.count(), 1, "a turn");
        }
        tx.try_send(2).unwrap();
        assert_eq!((first.count(), second.count()), (2, 1));
        assert_eq!(first.poll(older.as_mut()), Poll::Ready(Some(2)));
    });
}

/// A place, or several, or none since the channel closed.
#[test]
fn whoever_gave_turns_reserves_or_gets_its_value_back() {
    in_a_task(|| {
        let (tx, mut rx) = mpsc::channel(2);
        let wakes = Wakes::new();
        (1..3).for_each(|value| tx.try_send(value).unwrap());
        {
            let mut reserve = pin!(tx.reserve());
            assert!(wakes.poll(reserve.as_mut()).is_pending());
            assert_eq!((wakes.count(), rx.try_recv()), (1, Ok(1)));
            let Poll::Ready(Ok(permit)) = wakes.poll(reserve) else { panic!("there is a place") };
            permit.send(3);
        }
        {
            let mut reserve = pin!(tx.reserve_many(2));
            assert!(wakes.poll(reserve.as_mut()).is_pending());
            assert_eq!(rx.try_recv(), Ok(2));
            assert!(wakes.poll(reserve.as_mut()).is_pending());
            assert_eq!((wakes.count(), rx.try_recv()), (3, Ok(3)));
            let Poll::Ready(Ok(permits)) = wakes.poll(reserve) else { panic!("there is room") };
            permits.zip(4..).for_each(|(permit, value)| permit.send(value));
        }
        let (mut send, mut reserve) = (pin!(tx.send(6)), pin!(tx.reserve()));
        assert!(wakes.poll(send.as_mut()).is_pending());
        assert!(wakes.poll(reserve.as_mut()).is_pending());
        assert_eq!(wakes.count(), 5);
        rx.close();
        let Poll::Ready(Err(back)) = wakes.poll(send) else { panic!("closed") };
        assert_eq!(back.0, 6);
        assert!(matches!(wakes.poll(reserve), Poll::Ready(Err(_))));
        assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(4), Ok(5)));
    });
}

#[test]
fn the_only_receiver_gives_turns_then_registers() {
    fn check(rx: &mut impl FnMut(&mut Context<'_>) -> Poll<Option<i32>>, send: &dyn Fn(i32)) {
        let wakes = Wakes::new();
        let mut recv = || rx(&mut Context::from_waker(&wakes.waker()));
        for turn in 1..=usize::from(TURNS) {
            assert!(recv().is_pending());
            assert_eq!(wakes.count(), turn, "it comes back by itself");
        }
        assert!(recv().is_pending());
        assert!(recv().is_pending(), "for another reason: it is registered");
        assert_eq!(wakes.count(), usize::from(TURNS));
        send(1);
        assert_eq!(wakes.count(), usize::from(TURNS) + 1, "woken");
        assert_eq!(recv(), Poll::Ready(Some(1)));
        assert!(recv().is_pending());
        assert_eq!(wakes.count(), usize::from(TURNS) + 2, "a turn again");
        send(2);
        assert_eq!(wakes.count(), usize::from(TURNS) + 2, "nobody sleeps");
        assert_eq!(recv(), Poll::Ready(Some(2)));
    }
    in_a_task(|| {
        let (tx, mut rx) = mpsc::channel(1);
        check(&mut |cx| rx.poll_recv(cx), &|value| tx.try_send(value).unwrap());
        let (tx, mut rx) = mpsc::unbounded_channel();
        check(&mut |cx| rx.poll_recv(cx), &|value| tx.send(value).unwrap());
    });
}

/// Otherwise its senders may be behind it.
#[test]
fn the_only_receiver_gives_turns_only_where_they_are_brief() {
    in_a_task(|| {
        // As on a thread that knows nothing, but may give turns.
        turns::forget();
        turns::time_turns();
        let (tx, mut rx) = mpsc::channel(1);
        let wakes = Wakes::new();
        let mut given = 0;
        for value in 0..100 {
            let mut recv = || rx.poll_recv(&mut Context::from_waker(&wakes.waker()));
            let before = wakes.count();
            assert!(recv().is_pending());
            given += wakes.count() - before;
            std::thread::sleep(std::time::Duration::from_micros(1));
            // So it pays.
            tx.try_send(value).unwrap();
            assert_eq!(recv(), Poll::Ready(Some(value)));
        }
        assert!(given < 50, "{given} turns of more than 50 us");
    });
}

/// Whether a receiver that just came gives a turn.
fn a_newcomer_gives_a_turn(channel: &Bounded<i32>) -> bool {
    let (mut waiter, wakes) = (pin!(Waiter::new(1)), Wakes::new());
    assert!(recv(channel, waiter.as_mut(), &wakes).is_pending());
    channel.cancel_receiver(waiter);
    wakes.count() == 1
}

fn recv(channel: &Bounded<i32>, waiter: Pin<&mut Waiter>, wakes: &Wakes) -> Poll<Result<i32, ()>> {
    channel.poll_recv(waiter, &mut Context::from_waker(&wakes.waker()))
}

/// Queues a receiver, then takes each message of which it is notified, until it is starved.
fn starve(channel: &Bounded<i32>, mut waiter: Pin<&mut Waiter>, wakes: &Wakes) {
    with_budget(None, || assert!(recv(channel, waiter.as_mut(), wakes).is_pending()));
    for late in 1..=LATE {
        assert!(a_newcomer_gives_a_turn(channel));
        assert!(!waiter.is_starved());
        assert!(channel.try_send(1).is_ok());
        assert_eq!(channel.try_recv(), Ok(1));
        assert!(recv(channel, waiter.as_mut(), wakes).is_pending());
        assert_eq!(wakes.count(), usize::from(late), "it was woken each time, and queued at once");
    }
    assert!(waiter.is_starved() && !a_newcomer_gives_a_turn(channel));
}

/// Whatever becomes of that one: it gets a message, or is dropped while it sleeps or is notified.
#[test]
fn others_give_no_turns_for_a_while_when_a_receiver_is_starved() {
    type End = fn(&Bounded<i32>, Pin<&mut Waiter>, &Wakes);
    let ends: [End; 3] = [
        |channel, waiter, wakes| {
            assert!(channel.try_send(2).is_ok());
            assert_eq!(recv(channel, waiter, wakes), Poll::Ready(Ok(2)));
        },
        |channel, waiter, _| channel.cancel_receiver(waiter),
        |channel, waiter, _| {
            assert!(channel.try_send(2).is_ok());
            assert_eq!(channel.try_recv(), Ok(2));
            channel.cancel_receiver(waiter);
        },
    ];
    for end in ends {
        in_a_task(|| {
            let (channel, wakes) = (Bounded::new(4), Wakes::new());
            let mut waiter = pin!(Waiter::new(1));
            starve(&channel, waiter.as_mut(), &wakes);
            end(&channel, waiter, &wakes);
            for _ in 1..NO_TURNS {
                assert!(!a_newcomer_gives_a_turn(&channel));
            }
            assert!(a_newcomer_gives_a_turn(&channel), "that is over");
        });
    }
}

/// Until it has its message, each time that it comes too late.
#[test]
fn a_receiver_that_stays_starved_keeps_the_others_from_turns() {
    in_a_task(|| {
        let (channel, wakes) = (Bounded::new(4), Wakes::new());
        let mut waiter = pin!(Waiter::new(1));
        starve(&channel, waiter.as_mut(), &wakes);
        for _ in 0..300 {
            assert!(channel.try_send(1).is_ok());
            assert_eq!(channel.try_recv(), Ok(1));
            assert!(recv(&channel, waiter.as_mut(), &wakes).is_pending());
            assert!(!a_newcomer_gives_a_turn(&channel));
        }
        channel.cancel_receiver(waiter);
    });
}

/// One task polls two receivers, and a turn takes a millisecond: a turn of one does not end where the
/// other is polled, so that the thread learns how long they are.
#[test]
fn two_futures_of_a_task_do_not_shorten_each_others_turns() {
    let turns_of = |both: bool| {
        let (tx, rx) = mpmc::bounded(4);
        let wakes = Wakes::new();
        for _ in 0..30 {
            let (mut one, mut two) = (pin!(rx.recv()), pin!(rx.recv()));
            for poll in 0..4 {
                if wakes.poll(one.as_mut()).is_ready()
                    || (both && wakes.poll(two.as_mut()).is_ready())
                {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
                if poll == 2 {
                    tx.try_send(1).unwrap();
                }
            }
        }
        wakes.count()
    };
    // Each on a thread that has learnt nothing yet.
    let [one, both] = [false, true].map(|both| {
        let case = move || {
            allow_turns(true);
            with_budget(Some(100_000), || turns_of(both))
        };
        std::thread::scope(|scope| scope.spawn(case).join().unwrap())
    });
    assert!(one < 45 && both < 90, "{one}, {both}");
}

#[cfg(feature = "futures")]
#[test]
fn streams_and_sinks_give_turns_then_queue() {
    use futures::{SinkExt, StreamExt};
    in_a_task(|| {
        let (mut tx, mut rx) = mpmc::bounded(1);
        let wakes = Wakes::new();
        for value in 0..3 {
            {
                let mut next = pin!(rx.next());
                assert!(wakes.poll(next.as_mut()).is_pending());
                tx.try_send(value).unwrap();
                assert_eq!(wakes.poll(next), Poll::Ready(Some(value)));
            }
            tx.try_send(value).unwrap();
            {
                let mut send = pin!(SinkExt::send(&mut tx, value + 1));
                assert!(wakes.poll(send.as_mut()).is_pending());
                assert_eq!(rx.try_recv(), Ok(value));
                assert!(wakes.poll(send).is_ready());
            }
            assert_eq!(rx.try_recv(), Ok(value + 1));
        }
        assert_eq!(wakes.count(), 6);
        let wakes = Wakes::new();
        gives_all_turns_then_queues(&wakes, pin!(rx.next()));
        tx.try_send(9).unwrap();
        assert_eq!(wakes.count(), usize::from(TURNS) + 1, "woken");
        assert_eq!(wakes.poll(pin!(rx.next())), Poll::Ready(Some(9)));
    });
}

#[test]
fn a_waker_that_panics_when_a_turn_is_given_loses_nothing() {
    in_a_task(|| {
        let (tx, rx) = mpmc::bounded(1);
        let (bad, wakes) = (Wakes::panicking(), Wakes::new());
        let mut recv = pin!(rx.recv());
        catch_unwind(AssertUnwindSafe(|| bad.poll(recv.as_mut()))).unwrap_err();
        tx.try_send(1).unwrap();
        assert_eq!(wakes.poll(recv), Poll::Ready(Some(1)));
        tx.try_send(2).unwrap();
        let mut send = pin!(tx.send(3));
        catch_unwind(AssertUnwindSafe(|| bad.poll(send.as_mut()))).unwrap_err();
        assert_eq!(rx.try_recv(), Ok(2));
        assert!(wakes.poll(send).is_ready());
        assert_eq!((rx.try_recv(), bad.count()), (Ok(3), 2));
    });
}

/// On an executor of which nothing is known.
#[test]
fn only_a_crowd_gives_turns_without_a_budget() {
    turns::forget();
    let (tx, rx) = mpmc::bounded::<i32>(1);
    let tasks = [Wakes::new(), Wakes::new()];
    let waits = |task: usize| {
        let before = tasks[task].count();
        assert!(tasks[task].poll(pin!(rx.recv()).as_mut()).is_pending());
        tasks[task].count() > before
    };
    for i in 0..usize::from(turns::CROWD) {
        assert!(!waits(i % 2), "no crowd yet");
    }
    assert!(waits(0) && waits(1) && waits(0));
    assert!(!without_turns(|| waits(1)), "a simulation has none");
    assert!(!with_budget(Some(9), || waits(1)), "a runtime that does not allow it");
    assert!(waits(1));
    {
        let mut recv = pin!(rx.recv());
        assert!(tasks[0].poll(recv.as_mut()).is_pending());
        assert_eq!(tasks[0].count(), 3, "a turn");
        assert!(tasks[0].poll(recv.as_mut()).is_pending());
        assert_eq!(tasks[0].count(), 3, "nobody else was here: it queues");
        tx.try_send(1).unwrap();
        assert_eq!(tasks[0].count(), 4, "woken");
        assert_eq!(tasks[0].poll(recv), Poll::Ready(Some(1)));
    }
    assert!(!waits(1), "the crowd is gone");
    turns::forget();
}

#[test]
fn nobody_alone_gives_turns_without_a_budget_or_leave() {
    let queues_at_once = || {
        let (_tx, rx) = mpmc::bounded::<i32>(1);
        let wakes = Wakes::new();
        assert!(wakes.poll(pin!(rx.recv()).as_mut()).is_pending());
        assert_eq!(wakes.count(), 0);
    };
    queues_at_once();
    with_budget(Some(9), queues_at_once);
    allow_turns(true);
    queues_at_once();
    allow_turns(false);
}
