use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use super::error::{SendTimeoutError, TryRecvError, TrySendError};
use super::{OwnedPermit, Permit, PermitIterator, Receiver, Sender};
use super::{UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use crate::coop;
use crate::test::{Lender, Wakes, drop_at_every_await, not_impl, poll_once, ready};

#[test]
fn handles_permits_and_futures_are_send_and_sync() {
    fn send_sync<T: Send + Sync>() {}
    fn all_send<F: Future + Send>(_: F) {}
    send_sync::<Sender<std::cell::Cell<u8>>>();
    send_sync::<Receiver<std::cell::Cell<u8>>>();
    send_sync::<UnboundedSender<std::cell::Cell<u8>>>();
    send_sync::<UnboundedReceiver<std::cell::Cell<u8>>>();
    send_sync::<Permit<'_, u8>>();
    send_sync::<PermitIterator<'_, u8>>();
    send_sync::<OwnedPermit<u8>>();
    let (tx, mut rx) = channel::<u8>(1);
    all_send(tx.send(1));
    all_send(tx.reserve());
    all_send(tx.reserve_many(1));
    all_send(tx.clone().reserve_owned());
    all_send(tx.closed());
    all_send(rx.recv());
    all_send(rx.recv_many(&mut Vec::new(), 1));
}
not_impl!(Sender<Rc<u8>>: Send);
not_impl!(UnboundedSender<Rc<u8>>: Send);

#[test]
#[should_panic(expected = "mpsc bounded channel requires buffer > 0")]
fn a_buffer_of_zero_panics() {
    channel::<()>(0);
}

#[test]
#[should_panic(expected = "mpsc bounded channel requires buffer <= ")]
fn a_buffer_above_the_maximum_panics() {
    channel::<()>(super::MAX_CAPACITY + 1);
}

#[test]
fn a_send_dropped_at_any_point_gives_its_place_back() {
    let value = Rc::new(());
    drop_at_every_await(
        || {
            let (tx, rx) = channel(1);
            tx.try_send(Rc::new(())).unwrap();
            (tx, std::cell::RefCell::new(rx))
        },
        |(tx, _)| {
            let (tx, value) = (tx.clone(), value.clone());
            async move { tx.send(value).await.unwrap() }
        },
        |(_, rx), _| _ = rx.borrow_mut().try_recv(),
        |(tx, rx)| {
            let mut rx = rx.into_inner();
            while rx.try_recv().is_ok() {}
            assert_eq!(Rc::strong_count(&value), 1, "sent and received, or dropped");
            assert_eq!(tx.capacity(), 1);
        },
    );
}

#[test]
fn reservations_dropped_at_any_point_give_their_places_back() {
    drop_at_every_await(
        || {
            let (tx, rx) = channel(3);
            (0..3).for_each(|i| tx.try_send(i).unwrap());
            (tx, std::cell::RefCell::new(rx))
        },
        |(tx, _)| {
            let tx = tx.clone();
            async move {
                let place = tx.reserve().await.unwrap();
                // The next step makes room for one of them, the one after that for both.
                let two = tx.reserve_many(2).await.unwrap();
                drop(place);
                let one = tx.clone().reserve_owned().await.unwrap();
                drop(two);
                one.send(9);
            }
        },
        |(_, rx), _| _ = rx.borrow_mut().try_recv(),
        |(tx, rx)| {
            while rx.borrow_mut().try_recv().is_ok() {}
            assert_eq!(tx.capacity(), 3);
        },
    );
}

#[test]
fn a_recv_dropped_at_any_point_loses_nothing() {
    drop_at_every_await(
        || {
            let (tx, rx) = channel(4);
            (tx, Lender::new(rx))
        },
        |(_, rx)| {
            let mut rx = rx.lend();
            async move {
                assert_eq!(rx.recv().await, Some(1));
                rx.recv_many(&mut Vec::new(), 1).await
            }
        },
        |(tx, _), _| _ = tx.try_send(1),
        |(tx, rx)| {
            let mut rx = rx.take_back();
            while rx.try_recv().is_ok() {}
            tx.try_send(2).unwrap();
            assert_eq!(ready(rx.recv()), Some(2));
        },
    );
}

#[test]
fn a_recv_of_an_unbounded_channel_dropped_at_any_point_loses_nothing() {
    let sent = Cell::new(0);
    let received = Cell::new(0);
    drop_at_every_await(
        || {
            sent.set(0);
            received.set(0);
            let (tx, rx) = unbounded_channel();
            (tx, Lender::new(rx))
        },
        |(_, rx)| {
            let (mut rx, received) = (rx.lend(), &received);
            async move {
                assert_eq!(rx.recv().await, Some(1));
                received.set(1);
                received.set(1 + rx.recv_many(&mut Vec::new(), 1).await);
            }
        },
        |(tx, _), _| {
            tx.send(1).unwrap();
            sent.set(sent.get() + 1);
        },
        |(_, rx)| {
            let mut rx = rx.take_back();
            while rx.try_recv().is_ok() {
                received.set(received.get() + 1);
            }
            assert_eq!(received.get(), sent.get());
        },
    );
}

#[test]
fn a_wait_for_the_close_dropped_at_any_point_leaves_no_trace() {
    let wakes = Wakes::new();
    drop_at_every_await(
        || {
            let ((tx, rx), (utx, urx)) = (channel::<u8>(1), unbounded_channel::<u8>());
            (tx, Lender::new(rx), utx, Lender::new(urx))
        },
        |(tx, _, utx, _)| {
            let (tx, utx) = (tx.clone(), utx.clone());
            async move {
                tx.closed().await;
                utx.closed().await;
            }
        },
        |(_, rx, _, urx), step| if step == 1 { rx.lend().close() } else { urx.lend().close() },
        |(tx, rx, utx, urx)| {
            drop((rx.take_back(), urx.take_back()));
            assert!(wakes.poll(pin!(tx.closed())).is_ready());
            assert!(wakes.poll(pin!(utx.closed())).is_ready());
        },
    );
}

#[test]
fn a_send_with_a_deadline_dropped_at_any_point_gives_its_place_back() {
    drop_at_every_await(
        || {
            let (tx, rx) = channel(1);
            tx.try_send(0).unwrap();
            (tx, Lender::new(rx))
        },
        |(tx, _)| {
            let tx = tx.clone();
            async move { tx.send_until(1, std::future::pending::<()>()).await.unwrap() }
        },
        |(_, rx), _| _ = rx.lend().try_recv(),
        |(tx, rx)| {
            let mut rx = rx.take_back();
            while rx.try_recv().is_ok() {}
            assert_eq!(tx.capacity(), 1);
        },
    );
}

#[test]
fn a_large_reservation_holds_back_those_that_came_later() {
    let (tx, mut rx) = channel(3);
    (0..3).for_each(|i| tx.try_send(i).unwrap());
    let mut large = pin!(tx.reserve_many(2));
    let mut small = pin!(tx.reserve());
    assert!(poll_once(large.as_mut()).is_pending());
    assert!(poll_once(small.as_mut()).is_pending());
    assert_eq!(rx.try_recv(), Ok(0));
    assert!(poll_once(small.as_mut()).is_pending());
    assert!(matches!(tx.try_reserve(), Err(TrySendError::Full(()))));
    assert_eq!(rx.try_recv(), Ok(1));
    let Poll::Ready(Ok(permits)) = poll_once(large) else { panic!("served") };
    assert!(poll_once(small.as_mut()).is_pending());
    drop(permits);
    let Poll::Ready(Ok(permit)) = poll_once(small) else { panic!("served") };
    permit.send(9);
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(2), Ok(9)));
}

#[test]
fn none_are_reserved_behind_those_that_wait_and_more_than_fit_never() {
    let (tx, mut rx) = channel(1);
    tx.try_send(1).unwrap();
    let mut waits = pin!(tx.send(2));
    assert!(poll_once(waits.as_mut()).is_pending());
    assert_eq!(tx.try_reserve_many(0).unwrap().len(), 0);
    assert_eq!(ready(tx.reserve_many(0)).unwrap().len(), 0);
    for n in [2, usize::MAX] {
        assert!(matches!(tx.try_reserve_many(n), Err(TrySendError::Full(()))));
        assert!(ready(tx.reserve_many(n)).is_err());
    }
    rx.close();
    assert!(ready(waits).is_err());
    for n in [0, 1] {
        assert!(matches!(tx.try_reserve_many(n), Err(TrySendError::Closed(()))));
        assert!(ready(tx.reserve_many(n)).is_err());
    }
    // Whatever has happened to the channel since.
    assert!(matches!(tx.try_reserve_many(2), Err(TrySendError::Full(()))));
}

#[test]
fn dropping_the_large_reservation_lets_the_next_one_through() {
    let (tx, mut rx) = channel(2);
    (0..2).for_each(|i| tx.try_send(i).unwrap());
    let wakes = Wakes::new();
    let mut small = pin!(tx.send(5));
    {
        let mut large = pin!(tx.reserve_many(2));
        assert!(poll_once(large.as_mut()).is_pending());
        assert!(wakes.poll(small.as_mut()).is_pending());
        assert_eq!(rx.try_recv(), Ok(0));
        assert_eq!(wakes.count(), 0);
    }
    assert_eq!(wakes.count(), 1);
    assert!(poll_once(small).is_ready());
}

#[test]
fn permits_outlive_the_close_and_the_end_waits_for_them() {
    let (tx, mut rx) = channel(2);
    let mut permits = tx.try_reserve_many(2).unwrap();
    rx.close();
    assert!(tx.is_closed());
    let wakes = Wakes::new();
    assert!(wakes.poll(pin!(rx.recv())).is_pending());
    permits.next().unwrap().send(1);
    assert_eq!(wakes.count(), 1);
    assert_eq!(ready(rx.recv()), Some(1));
    assert!(wakes.poll(pin!(rx.recv())).is_pending());
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    drop(permits);
    assert_eq!(wakes.count(), 2);
    assert_eq!(ready(rx.recv()), None);
}

#[test]
fn owned_permits_count_as_senders() {
    let (tx, mut rx) = channel(2);
    let permit = tx.try_reserve_owned().unwrap();
    assert_eq!(rx.sender_strong_count(), 1);
    let tx = permit.send(1);
    let permit = tx.clone().try_reserve_owned().unwrap();
    assert!(permit.same_channel_as_sender(&tx));
    let other = tx.try_reserve_owned();
    assert!(matches!(other, Err(TrySendError::Full(_))));
    assert!(permit.same_channel(&permit));
    drop((other, permit));
    assert_eq!((ready(rx.recv()), ready(rx.recv())), (Some(1), None));
}

#[test]
fn send_until_gives_the_message_back_or_sends() {
    let (tx, mut rx) = channel(1);
    assert!(ready(tx.send_until(1, std::future::pending::<()>())).is_ok());
    let late = ready(tx.send_until(2, std::future::ready(())));
    assert_eq!(late, Err(SendTimeoutError::Timeout(2)));
    {
        let mut waiting = pin!(tx.send_until(3, std::future::pending::<()>()));
        assert!(poll_once(waiting.as_mut()).is_pending());
        assert_eq!(rx.try_recv(), Ok(1));
        assert_eq!(poll_once(waiting), Poll::Ready(Ok(())));
    }
    assert_eq!(rx.try_recv(), Ok(3));
    drop(rx);
    let closed = ready(tx.send_until(4, std::future::ready(())));
    assert_eq!(closed, Err(SendTimeoutError::Closed(4)));
}

#[test]
fn recv_many_takes_what_is_there_and_no_more() {
    let (tx, mut rx) = channel(8);
    let (utx, mut urx) = unbounded_channel();
    let mut got = Vec::new();
    assert_eq!(ready(rx.recv_many(&mut got, 0)), 0);
    for i in 0..5 {
        tx.try_send(i).unwrap();
        utx.send(i).unwrap();
    }
    assert_eq!(ready(rx.recv_many(&mut got, 3)), 3);
    assert_eq!(ready(rx.recv_many(&mut got, 3)), 2);
    assert_eq!(ready(urx.recv_many(&mut got, 3)), 3);
    assert_eq!(ready(urx.recv_many(&mut got, 3)), 2);
    assert_eq!(got, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    drop((tx, utx));
    assert_eq!(ready(rx.recv_many(&mut got, 3)), 0);
    assert_eq!(ready(urx.recv_many(&mut got, 3)), 0);
}

#[test]
fn only_the_last_waker_is_woken_and_once_for_many_messages() {
    let (tx, mut rx) = channel(4);
    let (old, new) = (Wakes::new(), Wakes::new());
    assert!(old.poll(pin!(rx.recv())).is_pending());
    assert!(new.poll(pin!(rx.recv())).is_pending());
    assert_eq!(old.clones(), 0);
    (0..3).for_each(|i| tx.try_send(i).unwrap());
    assert_eq!((old.count(), new.count()), (0, 1));
}

#[test]
fn weak_senders_upgrade_while_there_is_a_sender() {
    let (tx, mut rx) = channel::<u8>(1);
    let weak = tx.downgrade();
    let weak2 = weak.clone();
    assert_eq!((weak.strong_count(), weak.weak_count()), (1, 2));
    drop(weak2);
    let upgraded = weak.upgrade().unwrap();
    drop(tx);
    assert_eq!((rx.sender_strong_count(), rx.sender_weak_count()), (1, 1));
    assert!(!rx.is_closed());
    drop(upgraded);
    assert!(weak.upgrade().is_none());
    assert_eq!(ready(rx.recv()), None);
}

#[test]
fn polling_recv_after_completion_panics() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let (tx, mut rx) = channel(2);
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    {
        let mut recv = pin!(rx.recv());
        assert_eq!(poll_once(recv.as_mut()), Poll::Ready(Some(1)));
        assert!(catch_unwind(AssertUnwindSafe(|| poll_once(recv.as_mut()))).is_err());
    }
    assert_eq!(rx.try_recv(), Ok(2));
}

#[test]
fn what_is_ready_without_a_message_takes_budget_as_well() {
    let (tx, mut rx) = channel::<u8>(4);
    let (utx, mut urx) = unbounded_channel::<u8>();
    let mut buffer = Vec::new();
    coop::with_budget(Some(2), || {
        assert_eq!(ready(rx.recv_many(&mut buffer, 0)), 0);
        assert_eq!(ready(urx.recv_many(&mut buffer, 0)), 0);
        assert!(!coop::has_budget_remaining());
        assert!(poll_once(pin!(rx.recv_many(&mut buffer, 0))).is_pending());
        assert!(poll_once(pin!(urx.recv_many(&mut buffer, 0))).is_pending());
    });
    drop((tx, utx));
    coop::with_budget(Some(4), || {
        assert_eq!(ready(rx.recv()), None);
        assert_eq!(ready(rx.recv_many(&mut buffer, 1)), 0);
        assert_eq!(ready(urx.recv()), None);
        assert_eq!(ready(urx.recv_many(&mut buffer, 1)), 0);
        assert!(!coop::has_budget_remaining());
    });
}

#[test]
fn the_budget_is_taken_and_respected() {
    let (tx, mut rx) = channel(4);
    let (utx, mut urx) = unbounded_channel();
    coop::with_budget(Some(3), || {
        drop(ready(tx.reserve()).unwrap());
        ready(tx.send(1)).unwrap();
        utx.send(1).unwrap();
        assert_eq!(ready(urx.recv()), Some(1));
        let wakes = Wakes::new();
        assert!(wakes.poll(pin!(rx.recv())).is_pending());
        assert!(wakes.poll(pin!(rx.recv_many(&mut Vec::new(), 1))).is_pending());
        assert!(wakes.poll(pin!(urx.recv())).is_pending());
        assert!(wakes.poll(pin!(tx.reserve())).is_pending());
        assert_eq!(wakes.count(), 4, "the task comes back");
    });
    assert_eq!(tx.capacity(), 3);
}

#[test]
fn values_of_either_half_are_dropped_exactly_once() {
    let value = Rc::new(());
    let (tx, mut rx) = channel(4);
    let (utx, urx) = unbounded_channel();
    for _ in 0..3 {
        assert!(tx.try_send(value.clone()).is_ok());
        assert!(utx.send(value.clone()).is_ok());
    }
    drop(rx.try_recv());
    assert_eq!(Rc::strong_count(&value), 6);
    let permit = tx.try_reserve().unwrap();
    drop((rx, urx));
    assert_eq!(Rc::strong_count(&value), 1, "dropped with the receivers");
    permit.send(value.clone());
    assert_eq!(Rc::strong_count(&value), 2, "sent behind the receiver");
    drop((tx, utx));
    assert_eq!(Rc::strong_count(&value), 1, "dropped with the channel");
}

#[test]
fn a_waker_that_panics_keeps_no_message_of_a_receiver_that_is_gone() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let message = Rc::new(());
    let (tx, rx) = channel(1);
    tx.try_send(message.clone()).unwrap();
    let mut closed = pin!(tx.closed());
    assert!(Wakes::panicking().poll(closed.as_mut()).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(rx))).is_err());
    let (tx, rx) = unbounded_channel();
    tx.send(message.clone()).unwrap();
    let mut closed = pin!(tx.closed());
    assert!(Wakes::panicking().poll(closed.as_mut()).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(rx))).is_err());
    assert_eq!(Rc::strong_count(&message), 1);
}
