//! Random sequences of operations, cancellation included, against a naive model. It knows no turns, which
//! are wake-ups without a reason.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use proptest::prelude::*;
use volt_sync::coop::without_turns;
use volt_sync::{mpmc, mpsc};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A future that has been polled at least once, and how often it was woken since.
struct Running<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    wakes: Arc<Count>,
    expected: bool,
    id: usize,
}

impl<'a, T> Running<'a, T> {
    fn new(id: usize, future: impl Future<Output = T> + 'a) -> Self {
        Self { future: Box::pin(future), wakes: Arc::default(), expected: false, id }
    }

    /// Polls, with a new waker each time.
    fn poll(&mut self) -> Poll<T> {
        self.wakes = Arc::default();
        self.expected = false;
        let waker = Waker::from(self.wakes.clone());
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    fn check_wakes(&self) {
        assert_eq!(
            self.wakes.0.load(Ordering::Relaxed) > 0,
            self.expected,
            "future {} woken without a reason, or not woken",
            self.id
        );
    }
}

/// What a bounded channel with waiting senders does, told naively.
#[derive(Default)]
struct Model {
    capacity: usize,
    queue: VecDeque<usize>,
    /// Reserved by permits and by senders that were served but have not run.
    reserved: usize,
    closed: bool,
    /// Waiting senders: id and need.
    senders: VecDeque<(usize, usize)>,
    /// Waiting receivers: id.
    receivers: VecDeque<usize>,
    /// Those that were woken and came too late; they are woken before the others.
    late: VecDeque<usize>,
    /// Those that were woken and have not run.
    woken: Vec<usize>,
    /// Of those, the senders that have capacity.
    served: Vec<usize>,
}

impl Model {
    fn free(&self) -> usize {
        self.capacity - self.queue.len() - self.reserved
    }

    fn can_reserve(&self, count: usize) -> bool {
        let fits = self.senders.is_empty() && self.free() >= count;
        !self.closed && (fits || count == 0)
    }

    fn serve_senders(&mut self) {
        while let Some(&(id, need)) = self.senders.front() {
            if self.free() < need || self.closed {
                return;
            }
            self.senders.pop_front();
            self.reserved += need;
            self.woken.push(id);
            self.served.push(id);
        }
    }

    /// True if a sender that was woken was served, and not refused.
    fn take_served(&mut self, id: usize) -> bool {
        let at = self.served.iter().position(|&it| it == id);
        at.map(|at| self.served.remove(at)).is_some()
    }

    fn send(&mut self, value: usize) {
        self.queue.push_back(value);
        self.wake_receivers(if self.closed { usize::MAX } else { 1 });
    }

    fn wake_receivers(&mut self, count: usize) {
        let next = || self.late.pop_front().or_else(|| self.receivers.pop_front());
        self.woken.extend(std::iter::from_fn(next).take(count));
    }

    fn recv(&mut self) -> Option<usize> {
        let value = self.queue.pop_front();
        self.serve_senders();
        value
    }

    fn unreserve(&mut self, count: usize) {
        self.reserved -= count;
        self.serve_senders();
        if self.closed && self.reserved == 0 && count > 0 {
            self.wake_receivers(usize::MAX);
        }
    }

    fn close(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            self.woken.extend(self.senders.drain(..).map(|(id, _)| id));
            self.wake_receivers(usize::MAX);
        }
    }

    fn is_over(&self) -> bool {
        self.closed && self.queue.is_empty() && self.reserved == 0
    }

    /// Runs a woken one; false if it has not been.
    fn take_woken(&mut self, id: usize) -> bool {
        let at = self.woken.iter().position(|&it| it == id);
        at.map(|at| self.woken.remove(at)).is_some()
    }
}

#[derive(Clone, Debug)]
enum Op {
    TrySend,
    TryRecv,
    StartSend,
    StartRecv,
    PollSend(usize),
    PollRecv(usize),
    DropSend(usize),
    DropRecv(usize),
    Close,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::TrySend),
        4 => Just(Op::TryRecv),
        5 => Just(Op::StartSend),
        5 => Just(Op::StartRecv),
        5 => (0..8usize).prop_map(Op::PollSend),
        5 => (0..8usize).prop_map(Op::PollRecv),
        3 => (0..8usize).prop_map(Op::DropSend),
        3 => (0..8usize).prop_map(Op::DropRecv),
        1 => Just(Op::Close),
    ]
}

/// `capacity`: `None` is unbounded.
#[expect(clippy::too_many_lines, reason = "one arm for each operation")]
fn run_mpmc(capacity: Option<usize>, ops: &[Op]) {
    let (tx, rx) = capacity.map_or_else(mpmc::unbounded, mpmc::bounded);
    let mut model = Model { capacity: capacity.unwrap_or(usize::MAX / 2), ..Model::default() };
    let mut sends: Vec<Running<'_, Result<(), mpmc::SendError<usize>>>> = Vec::new();
    let mut recvs: Vec<Running<'_, Option<usize>>> = Vec::new();
    for (id, op) in ops.iter().enumerate() {
        match *op {
            Op::TrySend => {
                let expected = model.can_reserve(1);
                let sent = tx.try_send(id);
                assert_eq!(sent.is_ok(), expected);
                match sent {
                    Ok(()) => model.send(id),
                    Err(error) => {
                        assert_eq!(matches!(error, mpmc::TrySendError::Closed(_)), model.closed);
                        assert_eq!(error.into_inner(), id);
                    }
                }
            }
            Op::TryRecv => {
                let over = model.is_over();
                let expected = model.recv().ok_or(match over {
                    true => mpmc::TryRecvError::Disconnected,
                    false => mpmc::TryRecvError::Empty,
                });
                assert_eq!(rx.try_recv(), expected);
            }
            Op::StartSend => {
                let mut send = Running::new(id, tx.send(id));
                match send.poll() {
                    Poll::Ready(sent) => {
                        assert_eq!(sent.is_ok(), model.can_reserve(1));
                        assert!(sent.is_ok() || model.closed);
                        if sent.is_ok() {
                            model.send(id);
                        }
                    }
                    Poll::Pending => {
                        assert!(!model.can_reserve(1) && !model.closed);
                        model.senders.push_back((id, 1));
                        sends.push(send);
                    }
                }
            }
            Op::PollSend(at) if at < sends.len() => {
                let id = sends[at].id;
                let woken = model.take_woken(id);
                match sends[at].poll() {
                    Poll::Ready(sent) => {
                        assert!(woken);
                        assert_eq!(sent.is_err(), model.closed);
                        let served = model.take_served(id);
                        match sent {
                            Ok(()) => {
                                model.reserved -= 1;
                                model.send(id);
                            }
                            Err(error) => {
                                assert_eq!(error.0, id);
                                model.unreserve(usize::from(served));
                            }
                        }
                        sends.remove(at);
                    }
                    Poll::Pending => assert!(!woken),
                }
            }
            Op::DropSend(at) if at < sends.len() => {
                let id = sends.remove(at).id;
                if !model.take_woken(id) {
                    model.senders.retain(|&(it, _)| it != id);
                    model.serve_senders();
                } else {
                    let served = model.take_served(id);
                    model.unreserve(usize::from(served));
                }
            }
            Op::StartRecv => {
                let mut recv = Running::new(id, rx.recv());
                match recv.poll() {
                    Poll::Ready(value) => {
                        assert!(value.is_some() || model.is_over());
                        assert_eq!(value, model.recv());
                    }
                    Poll::Pending => {
                        assert!(model.queue.is_empty() && !model.is_over());
                        model.receivers.push_back(id);
                        recvs.push(recv);
                    }
                }
            }
            Op::PollRecv(at) if at < recvs.len() => {
                let id = recvs[at].id;
                let woken = model.take_woken(id);
                match recvs[at].poll() {
                    Poll::Ready(value) => {
                        assert!(woken);
                        assert!(value.is_some() || model.is_over());
                        assert_eq!(value, model.recv());
                        recvs.remove(at);
                    }
                    Poll::Pending if woken => {
                        assert!(model.queue.is_empty(), "woken, and there was a message");
                        model.late.push_back(id);
                    }
                    Poll::Pending => {}
                }
            }
            Op::DropRecv(at) if at < recvs.len() => {
                let id = recvs.remove(at).id;
                if !model.take_woken(id) {
                    model.receivers.retain(|&it| it != id);
                    model.late.retain(|&it| it != id);
                } else if !model.queue.is_empty() {
                    model.wake_receivers(1);
                }
            }
            Op::Close => {
                tx.close();
                model.close();
            }
            _ => {}
        }
        for send in &mut sends {
            send.expected = model.woken.contains(&send.id);
            send.check_wakes();
        }
        for recv in &mut recvs {
            recv.expected = model.woken.contains(&recv.id);
            recv.check_wakes();
        }
        assert_eq!(tx.len(), model.queue.len());
        assert_eq!(tx.is_closed(), model.closed);
    }
}

#[derive(Clone, Debug)]
enum PermitOp {
    TryReserve(usize),
    StartReserve(usize),
    Poll(usize),
    Drop(usize),
    /// Sends with a permit of the batch.
    Send(usize),
    DropPermits(usize),
    TryRecv,
    Recv,
    RecvMany(usize),
    Close,
}

fn permit_op() -> impl Strategy<Value = PermitOp> {
    prop_oneof![
        3 => (0..6usize).prop_map(PermitOp::TryReserve),
        5 => (0..6usize).prop_map(PermitOp::StartReserve),
        5 => (0..6usize).prop_map(PermitOp::Poll),
        3 => (0..6usize).prop_map(PermitOp::Drop),
        9 => (0..6usize).prop_map(PermitOp::Send),
        3 => (0..6usize).prop_map(PermitOp::DropPermits),
        4 => Just(PermitOp::TryRecv),
        4 => Just(PermitOp::Recv),
        2 => (0..4usize).prop_map(PermitOp::RecvMany),
        1 => Just(PermitOp::Close),
    ]
}

const RECEIVER: usize = usize::MAX;

#[expect(clippy::too_many_lines, reason = "one arm for each operation")]
fn run_mpsc(capacity: usize, ops: &[PermitOp]) {
    let (tx, mut rx) = mpsc::channel(capacity);
    let tx = &tx;
    let mut model = Model { capacity, ..Model::default() };
    type Reserved<'a> = Result<mpsc::PermitIterator<'a, usize>, mpsc::error::SendError<()>>;
    let mut reserves: Vec<(Running<'_, Reserved<'_>>, usize)> = Vec::new();
    let mut batches: Vec<mpsc::PermitIterator<'_, usize>> = Vec::new();
    let receiver = Arc::new(Count::default());
    let waker = Waker::from(receiver.clone());
    let mut cx = Context::from_waker(&waker);
    for (id, op) in ops.iter().enumerate() {
        let wakes = receiver.0.load(Ordering::Relaxed);
        model.take_woken(RECEIVER);
        match *op {
            PermitOp::TryReserve(count) => {
                let reserved = tx.try_reserve_many(count);
                assert_eq!(reserved.is_ok(), model.can_reserve(count));
                if let Ok(batch) = reserved {
                    model.reserved += count;
                    batches.push(batch);
                }
            }
            PermitOp::StartReserve(count) if count <= capacity => {
                let mut reserve = Running::new(id, tx.reserve_many(count));
                match reserve.poll() {
                    Poll::Ready(Ok(batch)) => {
                        assert!(model.can_reserve(count));
                        model.reserved += count;
                        batches.push(batch);
                    }
                    Poll::Ready(Err(_)) => assert!(model.closed),
                    Poll::Pending => {
                        assert!(!model.can_reserve(count) && !model.closed);
                        model.senders.push_back((id, count));
                        reserves.push((reserve, count));
                    }
                }
            }
            PermitOp::StartReserve(count) => {
                assert!(matches!(
                    Running::new(id, tx.reserve_many(count)).poll(),
                    Poll::Ready(Err(_))
                ));
            }
            PermitOp::Poll(at) if at < reserves.len() => {
                let woken = model.take_woken(reserves[at].0.id);
                match reserves[at].0.poll() {
                    Poll::Ready(Ok(batch)) => {
                        assert!(woken);
                        batches.push(batch);
                        reserves.remove(at);
                    }
                    Poll::Ready(Err(_)) => {
                        assert!(woken && model.closed);
                        reserves.remove(at);
                    }
                    Poll::Pending => assert!(!woken),
                }
            }
            PermitOp::Drop(at) if at < reserves.len() => {
                let (reserve, count) = reserves.remove(at);
                // Whether it was served before the close shows in what the channel has reserved.
                let before = capacity - tx.capacity();
                let woken = model.take_woken(reserve.id);
                drop(reserve);
                if !woken {
                    let ids: Vec<usize> = reserves.iter().map(|(it, _)| it.id).collect();
                    model.senders.retain(|(it, _)| ids.contains(it));
                    model.serve_senders();
                } else if !model.closed || capacity - tx.capacity() < before {
                    model.unreserve(count);
                }
            }
            PermitOp::Send(at) if at < batches.len() => {
                if let Some(permit) = batches[at].next() {
                    permit.send(id);
                    model.reserved -= 1;
                    model.send(id);
                } else {
                    drop(batches.remove(at));
                }
            }
            PermitOp::DropPermits(at) if at < batches.len() => {
                let batch = batches.remove(at);
                let left = batch.len();
                drop(batch);
                model.unreserve(left);
            }
            PermitOp::TryRecv => assert_eq!(rx.try_recv().ok(), model.recv()),
            PermitOp::Recv => match rx.poll_recv(&mut cx) {
                Poll::Ready(value) => {
                    assert!(value.is_some() || model.is_over());
                    assert_eq!(value, model.recv());
                }
                Poll::Pending => {
                    assert!(model.queue.is_empty() && !model.is_over());
                    model.receivers = VecDeque::from([RECEIVER]);
                }
            },
            PermitOp::RecvMany(limit) => {
                let mut got = Vec::new();
                match rx.poll_recv_many(&mut cx, &mut got, limit) {
                    Poll::Ready(count) => {
                        assert_eq!(count, got.len());
                        assert_eq!(count, limit.min(model.queue.len()));
                        for value in got {
                            assert_eq!(Some(value), model.recv());
                        }
                    }
                    Poll::Pending => {
                        assert!(model.queue.is_empty() && !model.is_over());
                        model.receivers = VecDeque::from([RECEIVER]);
                    }
                }
            }
            PermitOp::Close => {
                rx.close();
                model.close();
            }
            _ => {}
        }
        let woken = receiver.0.load(Ordering::Relaxed) > wakes;
        assert_eq!(woken, model.woken.contains(&RECEIVER), "the receiver's wake-up");
        for (reserve, _) in &mut reserves {
            reserve.expected = model.woken.contains(&reserve.id);
            reserve.check_wakes();
        }
        assert_eq!(tx.capacity(), model.free());
        assert_eq!((rx.len(), rx.is_closed()), (model.queue.len(), model.closed));
    }
}

proptest! {
    #[test]
    fn mpmc_bounded_does_what_the_model_does(
        capacity in 1..5usize,
        ops in proptest::collection::vec(op(), 1..120),
    ) {
        without_turns(|| run_mpmc(Some(capacity), &ops));
    }

    #[test]
    fn mpmc_unbounded_does_what_the_model_does(
        ops in proptest::collection::vec(op(), 1..200),
    ) {
        run_mpmc(None, &ops);
    }

    #[test]
    fn mpsc_with_permits_does_what_the_model_does(
        capacity in 1..6usize,
        ops in proptest::collection::vec(permit_op(), 1..160),
    ) {
        without_turns(|| run_mpsc(capacity, &ops));
    }
}
