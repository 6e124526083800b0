use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use proptest::prelude::*;

use super::error::{RecvError, TryRecvError};
use super::{Receiver, Sender, channel};
use crate::coop;
use crate::primitive::thread;
use crate::test::{Lender, Wakes, drop_at_every_await};

#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

#[test]
fn every_receiver_gets_every_value_and_the_last_one_the_original() {
    let value = Arc::new(());
    let (tx, mut first) = channel(4);
    let mut second = tx.subscribe();
    tx.send(value.clone()).unwrap();
    let clone = first.try_recv().unwrap();
    assert_eq!(Arc::strong_count(&value), 3);
    let original = second.try_recv().unwrap();
    assert_eq!(Arc::strong_count(&value), 3, "moved out, not cloned");
    drop((clone, original));
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn everybody_counts_the_same_senders() {
    let (tx, rx) = channel::<u8>(4);
    let other = tx.clone();
    let weak = other.downgrade();
    let another = weak.clone();
    let weak_counts = [tx.weak_count(), weak.weak_count(), rx.sender_weak_count()];
    assert_eq!(weak_counts, [2; 3]);
    let strong_counts = [tx.strong_count(), weak.strong_count(), rx.sender_strong_count()];
    assert_eq!(strong_counts, [2; 3]);
    drop((tx, another));
    assert_eq!((rx.sender_strong_count(), rx.sender_weak_count()), (1, 1));
    drop(other);
    assert_eq!((rx.sender_strong_count(), rx.sender_weak_count()), (0, 1));
    assert!(weak.upgrade().is_none());
    drop(weak);
    assert_eq!(rx.sender_weak_count(), 0);
}

#[test]
fn a_receiver_that_lags_is_told_how_much() {
    let (tx, mut rx) = channel(4);
    for number in 0..10 {
        tx.send(number).unwrap();
    }
    assert_eq!(rx.try_recv(), Err(TryRecvError::Lagged(6)));
    assert_eq!((6..10).map(|_| rx.try_recv().unwrap()).collect::<Vec<_>>(), [6, 7, 8, 9]);
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn waiting_receivers_are_woken_by_a_value_and_by_the_close() {
    let counter = Arc::new(Counter::default());
    let waker = Waker::from(counter.clone());
    let (tx, mut rx) = channel(4);
    {
        let mut recv = pin!(rx.recv());
        assert!(poll(recv.as_mut(), &waker).is_pending());
        tx.send(1).unwrap();
        assert_eq!(counter.0.load(SeqCst), 1);
        assert_eq!(poll(recv, &waker), Poll::Ready(Ok(1)));
    }
    let mut recv = pin!(rx.recv());
    assert!(poll(recv.as_mut(), &waker).is_pending());
    drop(tx);
    assert_eq!(counter.0.load(SeqCst), 2);
    assert_eq!(poll(recv, &waker), Poll::Ready(Err(RecvError::Closed)));
}

#[test]
fn a_cancelled_receive_loses_nothing() {
    let (tx, mut rx) = channel(4);
    {
        let mut recv = pin!(rx.recv());
        assert!(poll(recv.as_mut(), Waker::noop()).is_pending());
        tx.send(1).unwrap();
    }
    assert_eq!(rx.try_recv(), Ok(1));
}

#[test]
fn a_receive_dropped_at_any_point_loses_nothing() {
    let received = Cell::new(0);
    drop_at_every_await(
        || {
            received.set(0);
            let (tx, rx) = channel(8);
            (tx, Lender::new(rx), Cell::new(0))
        },
        |(_, rx, _)| {
            let (mut rx, received) = (rx.lend(), &received);
            async move {
                for number in 1..=3 {
                    assert_eq!(rx.recv().await, Ok(number));
                    received.set(number);
                }
            }
        },
        |(tx, _, sent), _| {
            sent.set(sent.get() + 1);
            tx.send(sent.get()).unwrap();
        },
        |(tx, rx, sent)| {
            let mut rx = rx.take_back();
            for number in received.get() + 1..=sent.get() {
                assert_eq!(rx.try_recv(), Ok(number));
            }
            assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
            assert!(tx.is_empty());
        },
    );
}

#[test]
fn a_wait_for_the_last_receiver_dropped_at_any_point_leaves_no_trace() {
    drop_at_every_await(
        || {
            let (tx, rx) = channel::<u8>(1);
            (tx, Cell::new(Some(rx)))
        },
        |(tx, _)| {
            let tx = tx.clone();
            async move { tx.closed().await }
        },
        |(_, rx), _| drop(rx.take()),
        |(tx, _)| assert!(poll(pin!(tx.closed()), Waker::noop()).is_ready()),
    );
}

#[test]
fn values_are_dropped_when_everybody_has_got_them_or_is_gone() {
    let value = Arc::new(());
    let (tx, mut first) = channel(2);
    let second = tx.subscribe();
    tx.send(value.clone()).unwrap();
    tx.send(value.clone()).unwrap();
    drop(first.try_recv().unwrap());
    assert_eq!(Arc::strong_count(&value), 3);
    drop(second);
    assert_eq!(Arc::strong_count(&value), 2, "the first one was awaited by `second` alone");
    tx.send(value.clone()).unwrap();
    tx.send(value.clone()).unwrap();
    assert_eq!(Arc::strong_count(&value), 3, "one was overwritten");
    drop(tx);
    drop(first);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn the_channel_reopens_with_a_new_receiver() {
    let (tx, rx) = channel(2);
    drop(rx);
    assert_eq!(tx.send(1).unwrap_err().0, 1);
    let mut rx = tx.subscribe();
    assert_eq!(tx.send(2).unwrap(), 1);
    assert_eq!(rx.try_recv(), Ok(2));
}

#[test]
fn a_receiver_that_is_gone_keeps_no_value_although_a_waker_panics() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let value = Arc::new(());
    let (tx, rx) = channel(4);
    tx.send(value.clone()).unwrap();
    tx.send(value.clone()).unwrap();
    let mut closed = pin!(tx.closed());
    assert!(Wakes::panicking().poll(closed.as_mut()).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(rx))).is_err());
    assert_eq!((Arc::strong_count(&value), tx.len()), (1, 0));
}

#[test]
fn a_panicking_clone_leaves_the_slot_usable() {
    struct Panics(bool);
    impl Clone for Panics {
        fn clone(&self) -> Self {
            assert!(!self.0, "clone");
            Self(false)
        }
    }
    let (tx, mut first) = channel(2);
    let mut second = tx.subscribe();
    tx.send(Panics(true)).unwrap();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| first.try_recv()));
    assert!(result.is_err());
    assert!(matches!(first.try_recv(), Err(TryRecvError::Empty)), "it counts as received");
    assert!(second.try_recv().is_ok(), "the last one gets the original");
    for _ in 0..4 {
        tx.send(Panics(false)).unwrap();
    }
    assert!(matches!(first.try_recv(), Err(TryRecvError::Lagged(2))));
}

/// A sender that has to wait for a clone once held the lock of the whole channel meanwhile.
#[test]
fn a_long_clone_delays_only_the_sender_that_needs_its_place() {
    #[derive(Default)]
    struct Gate {
        begun: AtomicBool,
        may_end: AtomicBool,
    }
    struct Slow(Option<Arc<Gate>>);
    impl Clone for Slow {
        fn clone(&self) -> Self {
            if let Some(gate) = &self.0 {
                gate.begun.store(true, SeqCst);
                wait_for(&gate.may_end);
            }
            Self(None)
        }
    }
    let gate = Arc::new(Gate::default());
    let (tx, mut rx) = channel(1);
    let other = tx.subscribe();
    assert!(tx.send(Slow(Some(gate.clone()))).is_ok());
    let receiver = spawn(move || {
        assert!(rx.try_recv().is_ok());
        rx
    });
    assert!(wait_for(&gate.begun));
    let sender = {
        let tx = tx.clone();
        spawn(move || tx.send(Slow(None)).is_ok())
    };
    // The sender comes to the place, and waits.
    thread::sleep(Duration::from_millis(50));
    let passed = Arc::new(AtomicBool::new(false));
    let bystander = {
        let passed = passed.clone();
        spawn(move || {
            assert_eq!(tx.receiver_count(), 2);
            drop(tx.subscribe());
            passed.store(true, SeqCst);
        })
    };
    let free = wait_for(&passed);
    gate.may_end.store(true, SeqCst);
    assert!(free, "somebody else waits for the clone");
    assert!(sender.join().unwrap());
    bystander.join().unwrap();
    drop(receiver.join().unwrap());
    assert_eq!(other.len(), 2);
}

fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    thread::Builder::new().spawn(f).unwrap()
}

/// False if it takes longer than anything should.
fn wait_for(flag: &AtomicBool) -> bool {
    let begin = crate::primitive::now();
    while !flag.load(SeqCst) {
        if begin.elapsed() > Duration::from_secs(30) {
            return false;
        }
        thread::yield_now();
    }
    true
}

#[test]
fn the_last_receiver_wakes_a_waiting_sender() {
    let counter = Arc::new(Counter::default());
    let waker = Waker::from(counter.clone());
    let (tx, rx) = channel::<()>(1);
    let mut closed = pin!(tx.closed());
    assert!(poll(closed.as_mut(), &waker).is_pending());
    drop(rx);
    assert_eq!(counter.0.load(SeqCst), 1);
    assert!(poll(closed, &waker).is_ready());
}

#[test]
fn who_hears_that_the_last_receiver_is_gone_finds_no_value() {
    struct Look(Sender<()>, AtomicUsize);
    impl Wake for Look {
        fn wake(self: Arc<Self>) {
            self.1.store(self.0.len(), SeqCst);
        }
    }
    let (tx, rx) = channel(2);
    tx.send(()).unwrap();
    let look = Arc::new(Look(tx.clone(), AtomicUsize::new(9)));
    let mut closed = pin!(tx.closed());
    assert!(poll(closed.as_mut(), &Waker::from(look.clone())).is_pending());
    drop(rx);
    assert_eq!(look.1.load(SeqCst), 0);
}

#[test]
fn a_task_without_budget_yields() {
    let (tx, mut rx) = channel(1);
    tx.send(1).unwrap();
    let mut recv = pin!(rx.recv());
    coop::with_budget(Some(0), || assert!(poll(recv.as_mut(), Waker::noop()).is_pending()));
    assert_eq!(poll(recv, Waker::noop()), Poll::Ready(Ok(1)));
}

#[test]
#[should_panic(expected = "capacity cannot be zero")]
fn zero_capacity_is_refused() {
    let _ = channel::<()>(0);
}

#[test]
fn values_need_not_be_sync() {
    fn check<T: Send + Sync + Unpin>(_: &T) {}
    let (tx, mut rx) = channel::<Cell<u8>>(1);
    check(&tx);
    check(&rx);
    check(&tx.downgrade());
    fn send<T: Send>(_: &T) {}
    send(&rx.recv());
}

#[test]
fn threads_receive_everything_in_order_unless_they_lag() {
    let (tx, rx) = channel(64);
    let count = 30_000_u64;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let mut rx = rx.resubscribe();
            scope.spawn(move || {
                let mut seen = [0_u64; 2];
                let mut missed = 0;
                loop {
                    match rx.blocking_recv() {
                        Ok((sender, number)) => {
                            let last: &mut u64 = &mut seen[sender];
                            assert!(number > *last);
                            missed += 0;
                            *last = number;
                        }
                        Err(RecvError::Lagged(lagged)) => missed += lagged,
                        Err(RecvError::Closed) => break,
                    }
                }
                assert!(missed > 0 || seen == [count, count]);
            });
        }
        for sender in 0..2 {
            let tx = tx.clone();
            scope.spawn(move || {
                for number in 1..=count {
                    tx.send((sender, number)).unwrap();
                }
            });
        }
        drop(tx);
        drop(rx);
    });
}

#[derive(Clone, Debug)]
enum Step {
    Send(u8),
    Subscribe,
    Recv(usize),
    Drop(usize),
}

/// A receiver beside what it should still get.
type Modelled = (Receiver<u8>, VecDeque<u8>, u64);

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<u8>().prop_map(Step::Send),
        1 => Just(Step::Subscribe),
        4 => any::<usize>().prop_map(Step::Recv),
        1 => any::<usize>().prop_map(Step::Drop),
    ]
}

proptest! {
    #[test]
    fn behaves_as_a_queue_for_each_receiver(
        capacity in 1_usize..6,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let tx = Sender::new(capacity);
        let kept = capacity.next_power_of_two();
        let mut receivers: Vec<Modelled> = Vec::new();
        for step in steps {
            let count = receivers.len();
            match step {
                Step::Send(value) => {
                    prop_assert_eq!(tx.send(value).ok(), (count > 0).then_some(count));
                    for (_, queue, missed) in receivers.iter_mut() {
                        queue.push_back(value);
                        if queue.len() > kept {
                            queue.pop_front();
                            *missed += 1;
                        }
                    }
                }
                Step::Subscribe => receivers.push((tx.subscribe(), VecDeque::new(), 0)),
                Step::Recv(which) if count > 0 => {
                    let (rx, queue, missed) = &mut receivers[which % count];
                    let expected = match (std::mem::take(missed), queue.front()) {
                        (0, None) => Err(TryRecvError::Empty),
                        (0, Some(_)) => Ok(queue.pop_front().unwrap()),
                        (lagged, _) => Err(TryRecvError::Lagged(lagged)),
                    };
                    prop_assert_eq!(rx.try_recv(), expected);
                }
                Step::Drop(which) if count > 0 => drop(receivers.swap_remove(which % count)),
                _ => {}
            }
            let longest = receivers.iter().map(|it| it.1.len()).max();
            prop_assert_eq!(tx.len(), longest.unwrap_or(0));
        }
    }
}

const _: () = {
    const fn all<T: std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    all::<Sender<Cell<u8>>>();
    all::<super::WeakSender<Cell<u8>>>();
    all::<Receiver<Cell<u8>>>();
};
