use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

use super::error::{RecvError, TryRecvError};
use super::{Receiver, Sender, channel};
use crate::coop;
use crate::test::{Lender, drop_at_every_await};

#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Counter {
    fn new() -> (Arc<Self>, Waker) {
        let counter = Arc::new(Self::default());
        (counter.clone(), Waker::from(counter))
    }

    fn wakes(&self) -> usize {
        self.0.load(SeqCst)
    }
}

fn poll<T>(rx: &mut Receiver<T>, waker: &Waker) -> Poll<Result<T, RecvError>> {
    Pin::new(rx).poll(&mut Context::from_waker(waker))
}

#[test]
fn a_value_sent_first_is_ready_at_once() {
    let (tx, mut rx) = channel();
    tx.send(5).unwrap();
    assert_eq!(poll(&mut rx, Waker::noop()), Poll::Ready(Ok(5)));
    assert!(rx.is_terminated());
}

#[test]
fn a_waiting_receiver_is_woken_once() {
    let (counter, waker) = Counter::new();
    let (tx, mut rx) = channel();
    assert!(poll(&mut rx, &waker).is_pending());
    assert!(poll(&mut rx, &waker).is_pending());
    tx.send(5).unwrap();
    assert_eq!(counter.wakes(), 1);
    assert_eq!(poll(&mut rx, &waker), Poll::Ready(Ok(5)));
}

#[test]
fn only_the_last_waker_is_woken() {
    let ((old, old_waker), (new, new_waker)) = (Counter::new(), Counter::new());
    let (tx, mut rx) = channel();
    assert!(poll(&mut rx, &old_waker).is_pending());
    assert!(poll(&mut rx, &new_waker).is_pending());
    tx.send(5).unwrap();
    assert_eq!((old.wakes(), new.wakes()), (0, 1));
    // The replaced waker was dropped when it was replaced.
    drop(old_waker);
    assert_eq!(Arc::strong_count(&old), 1);
}

#[test]
fn a_dropped_sender_wakes_the_receiver_with_an_error() {
    let (counter, waker) = Counter::new();
    let (tx, mut rx) = channel::<()>();
    assert!(poll(&mut rx, &waker).is_pending());
    drop(tx);
    assert_eq!(counter.wakes(), 1);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn a_dropped_receiver_wakes_the_sender() {
    let (counter, waker) = Counter::new();
    let (mut tx, rx) = channel::<()>();
    assert!(tx.poll_closed(&mut Context::from_waker(&waker)).is_pending());
    drop(rx);
    assert_eq!(counter.wakes(), 1);
    assert!(tx.poll_closed(&mut Context::from_waker(&waker)).is_ready());
    assert_eq!(tx.send(()), Err(()));
}

#[test]
fn a_closed_receiver_still_gets_what_was_sent_before() {
    let (tx, mut rx) = channel();
    tx.send(1).unwrap();
    rx.close();
    assert_eq!(rx.try_recv(), Ok(1));

    let (tx, mut rx) = channel();
    rx.close();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(tx.send(1), Err(1));
}

#[test]
fn an_error_from_try_recv_ends_the_receiver() {
    let (tx, mut rx) = channel::<()>();
    drop(tx);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    assert!(rx.is_terminated());
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn a_wait_of_either_half_dropped_at_any_point_loses_nothing() {
    let received = Cell::new(false);
    drop_at_every_await(
        || {
            received.set(false);
            let (tx, rx) = channel();
            (Cell::new(Some(tx)), Lender::new(rx))
        },
        |(_, rx)| {
            let (mut rx, received) = (rx.lend(), &received);
            async move {
                assert_eq!((&mut *rx).await, Ok(7));
                received.set(true);
            }
        },
        |(tx, _), _| {
            if let Some(tx) = tx.take() {
                tx.send(7).unwrap();
            }
        },
        |(_, rx)| {
            let mut rx = rx.take_back();
            assert!(received.get() || rx.try_recv() == Ok(7));
        },
    );
    drop_at_every_await(
        || {
            let (tx, rx) = channel::<u8>();
            (Lender::new(tx), Lender::new(rx))
        },
        |(tx, _)| {
            let mut tx = tx.lend();
            async move { tx.closed().await }
        },
        |(_, rx), _| rx.lend().close(),
        |(tx, _)| assert_eq!(tx.take_back().send(1), Err(1)),
    );
}

#[test]
#[should_panic(expected = "polled after completion")]
fn polling_after_completion_panics() {
    let (tx, mut rx) = channel();
    tx.send(()).unwrap();
    assert!(poll(&mut rx, Waker::noop()).is_ready());
    let _ = poll(&mut rx, Waker::noop());
}

/// The value and both wakers, in every order of dropping the halves, at every stage.
#[test]
fn whatever_is_dropped_first_nothing_leaks() {
    for stage in 0..16 {
        let value = Rc::new(Cell::new(0));
        let ((rx_counter, rx_waker), (tx_counter, tx_waker)) = (Counter::new(), Counter::new());
        let (mut tx, mut rx) = channel();
        if stage & 1 != 0 {
            assert!(poll(&mut rx, &rx_waker).is_pending());
        }
        if stage & 2 != 0 {
            assert!(tx.poll_closed(&mut Context::from_waker(&tx_waker)).is_pending());
        }
        let mut tx = Some(tx);
        if stage & 4 != 0 {
            tx.take().unwrap().send(value.clone()).unwrap();
        }
        if stage & 8 != 0 {
            drop(rx);
            drop(tx);
        } else {
            drop(tx);
            drop(rx);
        }
        drop((rx_waker, tx_waker));
        assert_eq!(Rc::strong_count(&value), 1, "value, stage {stage}");
        assert_eq!(Arc::strong_count(&rx_counter), 1, "receiver's waker, stage {stage}");
        assert_eq!(Arc::strong_count(&tx_counter), 1, "sender's waker, stage {stage}");
    }
}

#[test]
fn a_panicking_waker_loses_nothing() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("waker");
        }
    }
    let (tx, mut rx) = channel();
    assert!(poll(&mut rx, &Waker::from(Arc::new(Panics))).is_pending());
    let sent = std::panic::catch_unwind(|| tx.send(9));
    assert!(sent.is_err(), "the panic reaches the sender");
    assert_eq!(rx.try_recv(), Ok(9));
}

#[test]
fn a_task_without_budget_yields() {
    let (counter, waker) = Counter::new();
    let (tx, mut rx) = channel();
    tx.send(1).unwrap();
    coop::with_budget(Some(0), || assert!(poll(&mut rx, &waker).is_pending()));
    assert_eq!(counter.wakes(), 1);
    assert_eq!(rx.try_recv(), Ok(1));
}

#[test]
fn threads_exchange_many_values() {
    let rounds = 20_000;
    let (requests, inbox) = std::sync::mpsc::channel::<(usize, Sender<usize>)>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for (number, answer) in inbox {
                answer.send(number * 2).unwrap();
            }
        });
        for number in 0..rounds {
            let (tx, rx) = channel();
            requests.send((number, tx)).unwrap();
            assert_eq!(rx.blocking_recv(), Ok(number * 2));
        }
        drop(requests);
    });
}

#[test]
fn halves_are_send_and_sync_as_their_value_allows() {
    fn check<T: Send + Sync + Unpin>() {}
    // `Cell` is not `Sync`, and need not be: only one half holds the value at a time.
    check::<Sender<Cell<u8>>>();
    check::<Receiver<Cell<u8>>>();
}

/// A waker whose last drop panics; the other half must learn of the end all the same.
struct PanicsInDrop;

impl Wake for PanicsInDrop {
    fn wake(self: Arc<Self>) {}
}

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("drop of a waker");
    }
}

#[test]
fn a_sender_whose_waker_panics_in_drop_has_sent_nevertheless() {
    let value = Arc::new(());
    let (mut tx, mut rx) = channel();
    let waker = Waker::from(Arc::new(PanicsInDrop));
    assert!(tx.poll_closed(&mut Context::from_waker(&waker)).is_pending());
    // The channel's is the last reference now.
    drop(waker);
    let sent = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tx.send(value.clone())));
    assert!(sent.is_err(), "the panic reaches the sender");
    assert!(rx.try_recv().is_ok());
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_receiver_whose_waker_panics_in_drop_has_closed_nevertheless() {
    let (tx, mut rx) = channel();
    let waker = Waker::from(Arc::new(PanicsInDrop));
    assert!(poll(&mut rx, &waker).is_pending());
    drop(waker);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(rx))).is_err());
    assert!(tx.is_closed());
    assert_eq!(tx.send(1), Err(1));
}
