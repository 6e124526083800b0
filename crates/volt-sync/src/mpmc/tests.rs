use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use super::{Receiver, RecvFuture, SendFuture, Sender, TryRecvError, TrySendError};
use super::{bounded, unbounded};
use crate::coop;
use crate::test::{Wakes, drop_at_every_await, not_impl, poll_once, ready};

fn send_sync<T: Send + Sync>() {}
fn unwind_safe<T: std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}

#[test]
fn handles_and_futures_are_send_and_sync_and_handles_unpin() {
    fn unpin<T: Unpin>() {}
    send_sync::<Sender<std::cell::Cell<u8>>>();
    send_sync::<Receiver<std::cell::Cell<u8>>>();
    send_sync::<SendFuture<'_, u8>>();
    send_sync::<RecvFuture<'_, u8>>();
    unpin::<Sender<std::marker::PhantomPinned>>();
    unpin::<Receiver<std::marker::PhantomPinned>>();
    unwind_safe::<Sender<u8>>();
    unwind_safe::<Receiver<u8>>();
}
not_impl!(Sender<Rc<u8>>: Send);
not_impl!(Receiver<Rc<u8>>: Sync);
not_impl!(SendFuture<'static, u8>: Unpin);

#[test]
fn waiting_senders_are_served_in_order_and_newcomers_do_not_overtake() {
    let (tx, rx) = bounded(1);
    ready(tx.send(0)).unwrap();
    let mut first = pin!(tx.send(1));
    let mut second = pin!(tx.send(2));
    assert!(poll_once(first.as_mut()).is_pending());
    assert!(poll_once(second.as_mut()).is_pending());
    assert_eq!(rx.try_recv(), Ok(0));
    assert_eq!(tx.try_send(9), Err(TrySendError::Full(9)), "the place is the first one's");
    assert!(poll_once(second.as_mut()).is_pending());
    assert_eq!(poll_once(first), Poll::Ready(Ok(())));
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(poll_once(second), Poll::Ready(Ok(())));
    assert_eq!(rx.try_recv(), Ok(2));
    assert_eq!(tx.try_send(9), Ok(()));
}

#[test]
fn waiting_receivers_are_woken_in_order_and_one_that_came_too_late_stays_in_front() {
    let (tx, rx) = bounded(4);
    let (wakes_one, wakes_two) = (Wakes::new(), Wakes::new());
    let mut one = pin!(rx.recv());
    let mut two = pin!(rx.recv());
    assert!(wakes_one.poll(one.as_mut()).is_pending());
    assert!(wakes_two.poll(two.as_mut()).is_pending());
    tx.try_send(1).unwrap();
    assert_eq!((wakes_one.count(), wakes_two.count()), (1, 0));
    assert_eq!(rx.try_recv(), Ok(1), "a newcomer may take the message");
    assert!(wakes_one.poll(one.as_mut()).is_pending());
    tx.try_send(2).unwrap();
    assert_eq!((wakes_one.count(), wakes_two.count()), (2, 0));
    assert_eq!(poll_once(one), Poll::Ready(Some(2)));
    tx.try_send(3).unwrap();
    assert_eq!(wakes_two.count(), 1);
    assert_eq!(poll_once(two), Poll::Ready(Some(3)));
}

#[test]
fn late_ones_keep_their_order() {
    for capacity in [Some(2), None] {
        let (tx, rx) = capacity.map_or_else(unbounded, bounded);
        let wakes = [Wakes::new(), Wakes::new(), Wakes::new()];
        let mut receivers = [(); 3].map(|()| Box::pin(rx.recv()));
        for (wakes, receiver) in wakes.iter().zip(&mut receivers) {
            assert!(wakes.poll(receiver.as_mut()).is_pending());
        }
        for _ in 0..3 {
            assert!((0..2).all(|i| tx.try_send(i).is_ok()));
            assert!((0..2).all(|i| rx.try_recv() == Ok(i)));
            for (wakes, receiver) in wakes.iter().zip(&mut receivers) {
                assert!(wakes.poll(receiver.as_mut()).is_pending());
            }
        }
        let counts = || wakes.each_ref().map(Wakes::count);
        assert_eq!(counts(), [3, 3, 0]);
        tx.try_send(2).unwrap();
        assert_eq!(counts(), [4, 3, 0], "the older one");
        // Cancelled among the late, with one behind it that is not.
        let [first, second, third] = receivers;
        drop(second);
        tx.try_send(3).unwrap();
        assert_eq!(counts(), [4, 3, 1]);
        drop(first);
        assert_eq!(poll_once(pin!(third)), Poll::Ready(Some(2)));
        assert_eq!(rx.try_recv(), Ok(3));
    }
}

/// Finding C5 and its mirror image, at every point.
#[test]
fn a_recv_dropped_at_any_point_leaves_the_message_to_the_next() {
    for capacity in [Some(1), Some(3), None] {
        drop_at_every_await(
            || capacity.map_or_else(unbounded, bounded),
            |(_, rx)| {
                let rx = rx.clone();
                async move { rx.recv().await }
            },
            |(tx, _), _| assert!(tx.try_send(7).is_ok() || tx.is_full()),
            |(tx, rx)| {
                // What the dropped future did not take is still there, for one that waits.
                let left = rx.len();
                assert_eq!(rx.try_recv().is_ok(), left > 0);
                let mut waiting = pin!(rx.recv());
                assert!(poll_once(waiting.as_mut()).is_pending());
                tx.try_send(8).unwrap();
                assert_eq!(poll_once(waiting), Poll::Ready(Some(8)));
            },
        );
    }
}

#[test]
fn a_send_dropped_at_any_point_gives_its_place_back() {
    for capacity in [1, 3] {
        let value = Rc::new(());
        drop_at_every_await(
            || {
                let (tx, rx) = bounded(capacity);
                (0..capacity).for_each(|_| tx.try_send(Rc::new(())).unwrap());
                (tx, rx)
            },
            |(tx, _)| {
                let (tx, value) = (tx.clone(), value.clone());
                async move { tx.send(value).await }
            },
            |(_, rx), _| _ = rx.try_recv(),
            |(tx, rx)| {
                while rx.try_recv().is_ok() {}
                assert_eq!(Rc::strong_count(&value), 1, "sent and received, or dropped");
                (0..capacity).for_each(|_| tx.try_send(Rc::new(())).unwrap());
                assert!(tx.is_full());
            },
        );
    }
}

#[test]
fn closed_dropped_at_any_point() {
    for capacity in [Some(1), None] {
        drop_at_every_await(
            || capacity.map_or_else(unbounded::<()>, bounded),
            |(tx, _)| {
                let tx = tx.clone();
                async move { tx.closed().await }
            },
            |(_, rx), poll| assert!(poll != 2 || rx.close()),
            |(tx, rx)| {
                rx.close();
                ready(tx.closed());
            },
        );
    }
}

#[test]
fn the_close_refuses_waiting_senders_with_their_messages_and_ends_waiting_receivers() {
    let (tx, rx) = bounded(1);
    tx.try_send(0).unwrap();
    let wakes = Wakes::new();
    let mut send = pin!(tx.send(1));
    assert!(wakes.poll(send.as_mut()).is_pending());
    assert!(rx.close());
    assert_eq!(wakes.count(), 1);
    assert_eq!(poll_once(send).map_err(|error| error.0), Poll::Ready(Err(1)));
    assert_eq!((ready(rx.recv()), ready(rx.recv())), (Some(0), None));

    let (tx, rx) = bounded::<()>(1);
    let mut recv = pin!(rx.recv());
    assert!(wakes.poll(recv.as_mut()).is_pending());
    assert!(tx.close());
    assert_eq!(wakes.count(), 2);
    assert_eq!(poll_once(recv), Poll::Ready(None));
}

#[test]
fn a_sender_that_was_served_before_the_close_but_did_not_run_has_not_sent() {
    let (tx, rx) = bounded(1);
    tx.try_send(0).unwrap();
    let mut send = pin!(tx.send(1));
    assert!(poll_once(send.as_mut()).is_pending());
    assert_eq!(rx.try_recv(), Ok(0));
    rx.close();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty), "the sender may still come");
    assert!(matches!(poll_once(send), Poll::Ready(Err(_))));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
}

#[test]
fn either_half_may_go_first() {
    for capacity in [Some(2), None] {
        let value = Rc::new(());
        let (tx, rx) = capacity.map_or_else(unbounded, bounded);
        tx.try_send(value.clone()).unwrap();
        drop(tx);
        assert!(ready(rx.recv()).is_some());
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
        let (tx, rx) = capacity.map_or_else(unbounded, bounded);
        tx.try_send(value.clone()).unwrap();
        drop(rx);
        assert_eq!(Rc::strong_count(&value), 1, "dropped with the last receiver");
        assert!(matches!(tx.try_send(value.clone()), Err(TrySendError::Closed(_))));
        assert!(ready(tx.send(value.clone())).is_err());
        drop(tx);
        assert_eq!(Rc::strong_count(&value), 1);
    }
}

#[test]
fn clones_keep_the_channel_open_and_weak_handles_do_not() {
    let (tx, rx) = bounded::<()>(1);
    let (tx2, rx2) = (tx.clone(), rx.clone());
    assert_eq!((tx.sender_count(), tx.receiver_count()), (2, 2));
    assert!(tx.same_channel(&tx2) && rx.same_channel(&rx2));
    assert!(!tx.same_channel(&bounded(1).0));
    let (weak_tx, weak_rx) = (tx.downgrade(), rx.downgrade());
    drop((tx, rx));
    assert!(!tx2.is_closed());
    assert!(weak_tx.upgrade().is_some_and(|it| it.same_channel(&tx2)));
    assert!(weak_rx.clone().upgrade().is_some_and(|it| it.same_channel(&rx2)));
    drop(tx2);
    assert!(rx2.is_closed() && weak_tx.clone().upgrade().is_none());
    drop(rx2);
    assert!(weak_rx.upgrade().is_none());
}

#[test]
fn polling_after_completion_panics() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    for capacity in [Some(2), None] {
        let (tx, rx) = capacity.map_or_else(unbounded, bounded);
        let mut send = pin!(tx.send(1));
        assert!(poll_once(send.as_mut()).is_ready());
        assert!(catch_unwind(AssertUnwindSafe(|| poll_once(send.as_mut()))).is_err());
        let mut recv = pin!(rx.recv());
        assert!(poll_once(recv.as_mut()).is_ready());
        assert!(catch_unwind(AssertUnwindSafe(|| poll_once(recv.as_mut()))).is_err());
        assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    }
}

#[test]
fn each_success_takes_a_unit_of_the_budget_and_without_one_all_wait() {
    for capacity in [Some(8), None] {
        let (tx, rx) = capacity.map_or_else(unbounded, bounded);
        coop::with_budget(Some(2), || {
            ready(tx.send(1)).unwrap();
            assert_eq!(ready(rx.recv()), Some(1));
            let wakes = Wakes::new();
            let mut send = pin!(tx.send(2));
            assert!(wakes.poll(send.as_mut()).is_pending());
            assert_eq!(wakes.count(), 1, "the task comes back");
            let mut recv = pin!(rx.recv());
            assert!(wakes.poll(recv.as_mut()).is_pending());
            coop::with_budget(None, || {
                assert!(poll_once(send).is_ready());
                assert_eq!(poll_once(recv), Poll::Ready(Some(2)));
            });
        });
        drop(tx);
        coop::with_budget(Some(1), || {
            assert_eq!(ready(rx.recv()), None);
            assert!(poll_once(pin!(rx.recv())).is_pending(), "the end takes one as well");
        });
    }
}

#[test]
#[should_panic(expected = "mpmc bounded channel requires capacity > 0")]
fn a_capacity_of_zero_panics() {
    bounded::<()>(0);
}

#[test]
#[should_panic(expected = "mpmc bounded channel requires capacity <= ")]
fn a_capacity_above_the_maximum_panics() {
    bounded::<()>(super::MAX_CAPACITY + 1);
}

#[test]
fn a_panicking_waker_reaches_the_caller_after_all_were_woken_and_nothing_is_stuck() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let (tx, rx) = bounded::<u8>(1);
    let (bad, good) = (Wakes::panicking(), Wakes::new());
    let mut one = pin!(rx.recv());
    let mut two = pin!(rx.recv());
    assert!(bad.poll(one.as_mut()).is_pending());
    assert!(good.poll(two.as_mut()).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| tx.close())).is_err());
    assert_eq!((bad.count(), good.count()), (1, 1));
    assert_eq!((poll_once(one), poll_once(two)), (Poll::Ready(None), Poll::Ready(None)));
}

#[test]
fn a_waker_that_panics_keeps_no_message_of_a_receiver_that_is_gone() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    for capacity in [Some(1), None] {
        let (tx, rx) = capacity.map_or_else(unbounded, bounded);
        let message = std::rc::Rc::new(());
        tx.try_send(message.clone()).unwrap();
        let mut closed = pin!(tx.closed());
        assert!(Wakes::panicking().poll(closed.as_mut()).is_pending());
        assert!(catch_unwind(AssertUnwindSafe(|| drop(rx))).is_err());
        assert_eq!(std::rc::Rc::strong_count(&message), 1);
    }
}

#[test]
fn more_waiters_than_fit_into_one_round_are_all_woken() {
    let (tx, rx) = bounded::<u8>(1);
    let wakes = Wakes::new();
    let mut all: Vec<_> = (0..100).map(|_| Box::pin(rx.recv())).collect();
    for recv in &mut all {
        assert!(wakes.poll(recv.as_mut()).is_pending());
    }
    tx.close();
    assert_eq!(wakes.count(), 100);
}

#[cfg(feature = "futures")]
mod adapters {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use futures::stream::FusedStream;
    use futures::{SinkExt, StreamExt};

    use super::{Poll, Wakes, bounded, pin, poll_once, ready, unbounded};

    #[test]
    fn a_receiver_is_a_stream_that_waits_and_ends() {
        for capacity in [Some(2), None] {
            let (tx, mut rx) = capacity.map_or_else(unbounded, bounded);
            let wakes = Wakes::new();
            assert!(wakes.poll(pin!(rx.next())).is_pending());
            tx.try_send(1).unwrap();
            assert_eq!(wakes.count(), 1);
            assert_eq!(ready(rx.next()), Some(1));
            tx.try_send(2).unwrap();
            drop(tx);
            assert_eq!(
                (ready(rx.next()), ready(rx.next()), ready(rx.next())),
                (Some(2), None, None)
            );
        }
    }

    #[test]
    fn a_stream_that_is_dropped_passes_its_turn_on() {
        let (tx, mut rx) = bounded(1);
        let other = rx.clone();
        assert!(poll_once(pin!(rx.next())).is_pending());
        let wakes = Wakes::new();
        let mut recv = pin!(other.recv());
        assert!(wakes.poll(recv.as_mut()).is_pending());
        tx.try_send(1).unwrap();
        drop(rx);
        assert_eq!(wakes.count(), 1);
        assert_eq!(poll_once(recv), Poll::Ready(Some(1)));
    }

    /// What a sink reserved before the close is sent, or given back, after it.
    #[test]
    fn a_stream_has_ended_only_when_nothing_can_come_any_more() {
        for (capacity, sends) in [(2, true), (2, false), (1 << 20, true), (1 << 20, false)] {
            let (mut tx, mut rx) = bounded::<u8>(capacity);
            assert!(poll_once(pin!(std::future::poll_fn(|cx| tx.poll_ready_unpin(cx)))).is_ready());
            tx.close();
            assert!(!rx.is_terminated(), "of {capacity} places one is reserved");
            let wakes = Wakes::new();
            assert!(wakes.poll(pin!(rx.next())).is_pending());
            if sends {
                tx.start_send_unpin(1).unwrap();
                assert!(!rx.is_terminated(), "there is a message");
                assert_eq!(ready(rx.next()), Some(1));
            } else {
                ready(SinkExt::close(&mut tx)).unwrap();
            }
            assert!(rx.is_terminated());
            assert_eq!((wakes.count(), ready(rx.next())), (1, None));
        }
        let (tx, mut rx) = unbounded();
        tx.try_send(1).unwrap();
        tx.close();
        assert!(!rx.is_terminated());
        assert_eq!(ready(rx.next()), Some(1));
        assert!(rx.is_terminated());
    }

    /// A waiting sender's waker panics when it is given the place.
    #[test]
    fn a_stream_goes_on_after_a_waker_that_panics() {
        let (tx, mut rx) = bounded(1);
        tx.try_send(1).unwrap();
        let mut send = pin!(tx.send(2));
        assert!(Wakes::panicking().poll(send.as_mut()).is_pending());
        assert!(catch_unwind(AssertUnwindSafe(|| poll_once(pin!(rx.next())))).is_err());
        assert_eq!(poll_once(send), Poll::Ready(Ok(())));
        assert_eq!(ready(rx.next()), Some(2));
    }

    /// As above, when a sink gives its place back.
    #[test]
    fn the_last_sink_closes_the_channel_although_a_waker_panics() {
        let (mut tx, rx) = bounded::<u8>(1);
        let weak = tx.downgrade();
        assert!(poll_once(pin!(std::future::poll_fn(|cx| tx.poll_ready_unpin(cx)))).is_ready());
        let other = tx.clone();
        let mut send = Box::pin(other.send(2));
        assert!(Wakes::panicking().poll(send.as_mut()).is_pending());
        assert!(catch_unwind(AssertUnwindSafe(|| drop(tx))).is_err());
        assert_eq!(poll_once(send.as_mut()), Poll::Ready(Ok(())));
        drop(send);
        drop(other);
        assert_eq!(ready(rx.recv()), Some(2));
        assert!(weak.upgrade().is_none());
        assert_eq!(poll_once(pin!(rx.recv())), Poll::Ready(None));
    }

    /// As above, when a stream passes its turn on.
    #[test]
    fn the_last_stream_closes_the_channel_although_a_waker_panics() {
        let (tx, mut rx) = bounded(1);
        let other = rx.clone();
        assert!(poll_once(pin!(rx.next())).is_pending());
        let mut recv = Box::pin(other.recv());
        assert!(Wakes::panicking().poll(recv.as_mut()).is_pending());
        tx.try_send(1).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(rx))).is_err());
        drop(recv);
        drop(other);
        assert!(tx.is_closed());
    }

    #[test]
    fn a_sender_is_a_sink_that_reserves_its_place() {
        let (mut tx, rx) = bounded(1);
        assert!(ready(SinkExt::send(&mut tx, 1)).is_ok());
        let wakes = Wakes::new();
        assert!(wakes.poll(pin!(tx.feed(2))).is_pending());
        assert_eq!(rx.try_recv(), Ok(1));
        assert_eq!(wakes.count(), 1);
        assert!(rx.is_full(), "reserved");
        assert!(ready(tx.feed(2)).is_ok());
        assert_eq!(rx.try_recv(), Ok(2));
        assert!(poll_once(pin!(std::future::poll_fn(|cx| tx.poll_ready_unpin(cx)))).is_ready());
        assert!(rx.is_full());
        drop(tx);
        assert!(!rx.is_full(), "given back");
        let (mut tx, rx) = unbounded();
        assert!(ready(SinkExt::send(&mut tx, 1)).is_ok());
        drop(rx);
        assert!(ready(SinkExt::send(&mut tx, 2)).is_err());
    }
}

/// What tells the kinds apart takes no memory of its own, and one look.
#[test]
fn a_kind_is_told_by_a_byte_of_the_ring() {
    use crate::channel::bounded::Bounded;
    assert_eq!(size_of::<super::Flavor<u64>>(), size_of::<Bounded<u64>>());
}
