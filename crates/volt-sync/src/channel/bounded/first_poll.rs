//! What a first poll takes at once, and what no other poll may take that way.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use crate::coop;
use crate::test::{Wakes, poll_once, ready};
use crate::{mpmc, mpsc};

fn panics<R>(f: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// Counts its drop.
struct Message(Rc<Cell<u32>>);

impl Drop for Message {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn a_future_that_completed_takes_nothing() {
    let (tx, rx) = mpmc::bounded(4);
    {
        let mut send = pin!(tx.send(1));
        assert!(poll_once(send.as_mut()).is_ready());
        assert!(panics(|| poll_once(send.as_mut())));
    }
    assert_eq!(tx.len(), 1);
    tx.try_send(2).unwrap();
    let mut recv = pin!(rx.recv());
    assert_eq!(poll_once(recv.as_mut()), Poll::Ready(Some(1)));
    assert!(panics(|| poll_once(recv.as_mut())));
    assert_eq!(rx.try_recv(), Ok(2));

    let (tx, mut rx) = mpsc::channel(4);
    let mut send = pin!(tx.send(1));
    assert!(poll_once(send.as_mut()).is_ready());
    assert!(panics(|| poll_once(send.as_mut())));
    assert_eq!(tx.capacity(), 3);
    assert_eq!(rx.try_recv(), Ok(1));
}

#[test]
fn a_receiver_that_is_queued_takes_nothing() {
    let (tx, rx) = mpmc::bounded(4);
    let [one, two, other] = [Wakes::new(), Wakes::new(), Wakes::new()];
    let mut first = pin!(rx.recv());
    let mut second = pin!(rx.recv());
    assert!(one.poll(first.as_mut()).is_pending());
    assert!(two.poll(second.as_mut()).is_pending());
    tx.try_send(1).unwrap();
    assert!(two.poll(second.as_mut()).is_pending(), "the message is the first one's");
    assert!(other.poll(second.as_mut()).is_pending(), "with another waker, too");
    assert_eq!(one.poll(first), Poll::Ready(Some(1)));
    tx.try_send(2).unwrap();
    assert_eq!((two.count(), other.count()), (0, 1));
    assert_eq!(other.poll(second), Poll::Ready(Some(2)));
}

#[test]
fn a_sender_that_was_served_takes_no_second_place() {
    let (tx, rx) = mpmc::bounded(2);
    (1..3).for_each(|message| tx.try_send(message).unwrap());
    let mut send = pin!(tx.send(3));
    assert!(poll_once(send.as_mut()).is_pending());
    assert!(poll_once(send.as_mut()).is_pending(), "still queued");
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1), Ok(2)));
    assert!(poll_once(send).is_ready());
    tx.try_send(4).unwrap();
    assert!(tx.is_full());
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(3), Ok(4)));
}

#[test]
fn without_budget_nothing_is_taken_and_the_task_comes_back() {
    let (tx, rx) = mpmc::bounded(4);
    let (single, mut only) = mpsc::channel(4);
    tx.try_send(1).unwrap();
    let wakes = Wakes::new();
    let mut send = pin!(tx.send(2));
    let mut sending = pin!(single.send(1));
    let mut recv = pin!(rx.recv());
    coop::with_budget(Some(0), || {
        assert!(wakes.poll(send.as_mut()).is_pending());
        assert!(wakes.poll(sending.as_mut()).is_pending());
        assert!(wakes.poll(recv.as_mut()).is_pending());
    });
    assert_eq!((wakes.count(), wakes.clones()), (3, 0));
    assert_eq!((tx.len(), single.capacity()), (1, 4));
    assert!(wakes.poll(send).is_ready());
    assert!(wakes.poll(sending).is_ready());
    assert_eq!(wakes.poll(recv), Poll::Ready(Some(1)));
    assert_eq!((rx.try_recv(), only.try_recv()), (Ok(2), Ok(1)));
}

#[test]
fn a_send_whose_receivers_waker_panics_has_sent() {
    let drops = Rc::default();
    let panicking = Wakes::panicking();
    let (tx, rx) = mpmc::bounded(2);
    let mut recv = Box::pin(rx.recv());
    assert!(panicking.poll(recv.as_mut()).is_pending());
    let mut send = Box::pin(tx.send(Message(Rc::clone(&drops))));
    assert!(panics(|| poll_once(send.as_mut())));
    assert!(panics(|| poll_once(send.as_mut())), "it has completed");
    drop(send);
    assert_eq!((drops.get(), tx.len()), (0, 1));
    drop(poll_once(recv.as_mut()));
    assert_eq!((drops.get(), tx.len()), (1, 0));
}

/// Not more than that one: the sender has its place, and goes on.
#[test]
fn a_recv_whose_senders_waker_panics_loses_its_message() {
    for waited in [false, true] {
        let drops = Rc::default();
        let (tx, rx) = mpmc::bounded(1);
        let mut recv = Box::pin(rx.recv());
        if waited {
            assert!(poll_once(recv.as_mut()).is_pending());
        }
        assert!(tx.try_send(Message(Rc::clone(&drops))).is_ok());
        let panicking = Wakes::panicking();
        let mut send = Box::pin(tx.send(Message(Rc::clone(&drops))));
        assert!(panicking.poll(send.as_mut()).is_pending());
        assert!(panics(|| poll_once(recv.as_mut())));
        assert_eq!(drops.get(), 1);
        assert!(panics(|| poll_once(recv.as_mut())), "it has completed");
        assert!(poll_once(send.as_mut()).is_ready());
        drop(ready(rx.recv()));
        assert_eq!(drops.get(), 2);
    }
}
