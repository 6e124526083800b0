//! Turns that a task gives others before it queues.

use std::pin::{Pin, pin};
use std::task::Poll;

use crate::channel::waiter::TURNS;
use crate::coop::{allow_turns, with_budget};
use crate::mpmc;
use crate::test::Wakes;
use crate::turns;

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

#[test]
fn without_a_budget_or_leave_nobody_gives_turns() {
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
