//! `oneshot` and the unbounded `mpsc` channel against naive models: random sequences of operations, dropped
//! halves and cancelled futures included.
//!
//! After each step the wake-ups are those of the model, in its order, each by the latest waker of whoever
//! waits, and none besides: so few are promised nowhere, but neither channel wakes without a reason. One
//! wake-up comes although nobody waits any more: a cancelled `recv` or `poll_closed` leaves its waker with
//! its half of the channel.
#![allow(clippy::disallowed_types, reason = "a test")]

mod by_hand;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use by_hand::{Name, Running, Task, Wakes, names, take};
use proptest::collection::vec;
use proptest::prelude::*;
use volt_sync::mpsc::error::TryRecvError;
use volt_sync::mpsc::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender};
use volt_sync::oneshot::error::TryRecvError as TryRecvOnce;
use volt_sync::{mpsc, oneshot};

/// A message, which counts how many of them there are.
#[derive(Debug)]
struct Message(usize, #[expect(dead_code, reason = "it counts by being there")] Rc<()>);

/// The ids of the two tasks that are no futures.
const RECEIVER: usize = usize::MAX;
const SENDER: usize = usize::MAX - 1;

#[derive(Clone, Debug)]
enum OnceOp {
    Send,
    DropSender,
    PollClosed(bool),
    Poll(bool),
    TryRecv,
    Close,
    DropReceiver,
}

fn once_op() -> impl Strategy<Value = OnceOp> {
    prop_oneof![
        2 => Just(OnceOp::Send),
        1 => Just(OnceOp::DropSender),
        6 => any::<bool>().prop_map(OnceOp::PollClosed),
        6 => any::<bool>().prop_map(OnceOp::Poll),
        3 => Just(OnceOp::TryRecv),
        1 => Just(OnceOp::Close),
        1 => Just(OnceOp::DropReceiver),
    ]
}

/// A oneshot channel, told naively.
#[derive(Default)]
struct OnceModel {
    value: Option<usize>,
    sender_gone: bool,
    /// The receiver was closed, has returned something, or is gone.
    closed: bool,
    receiver_waits: Option<Name>,
    sender_waits: Option<Name>,
    woken: Vec<Name>,
}

impl OnceModel {
    /// `value` is `None` for a sender that is dropped. True if it is sent.
    fn send(&mut self, value: Option<usize>) -> bool {
        self.sender_gone = true;
        self.sender_waits = None;
        if !self.closed {
            self.value = value;
        }
        self.woken.extend(self.receiver_waits.take());
        !self.closed
    }

    fn close(&mut self) {
        self.closed = true;
        self.woken.extend(self.sender_waits.take());
    }

    fn leave(&mut self) {
        self.receiver_waits = None;
        self.value = None;
        self.close();
    }

    fn recv(&mut self) -> Result<usize, TryRecvOnce> {
        let over = self.sender_gone || self.closed;
        let received =
            self.value.ok_or(if over { TryRecvOnce::Closed } else { TryRecvOnce::Empty });
        if received != Err(TryRecvOnce::Empty) {
            self.leave();
        }
        received
    }
}

fn run_oneshot(ops: &[OnceOp]) {
    let wakes = Arc::new(Wakes::default());
    let live = Rc::new(());
    let (tx, rx) = oneshot::channel();
    let (mut tx, mut rx) = (Some(tx), Some(rx));
    let (mut sender, mut receiver) = (Task::new(SENDER, &wakes), Task::new(RECEIVER, &wakes));
    let mut model = OnceModel::default();
    for (id, op) in ops.iter().enumerate() {
        match *op {
            OnceOp::Send => {
                if let Some(tx) = tx.take() {
                    let sent = tx.send(Message(id, live.clone()));
                    assert_eq!(sent.is_ok(), model.send(Some(id)));
                    assert!(sent.is_ok() || sent.is_err_and(|message| message.0 == id));
                }
            }
            OnceOp::DropSender => {
                if tx.take().is_some() {
                    model.send(None);
                }
            }
            OnceOp::PollClosed(fresh) => {
                if let Some(tx) = &mut tx {
                    let polled = tx.poll_closed(&mut sender.context(fresh));
                    assert_eq!(polled.is_ready(), model.closed);
                    model.sender_waits = polled.is_pending().then(|| sender.name());
                }
            }
            OnceOp::Poll(fresh) => {
                let Some(rx) = rx.as_mut().filter(|rx| !rx.is_terminated()) else { continue };
                let polled = Pin::new(rx).poll(&mut receiver.context(fresh));
                match (polled, model.recv()) {
                    (Poll::Ready(Ok(message)), Ok(id)) => assert_eq!(message.0, id),
                    (Poll::Ready(Err(_)), Err(TryRecvOnce::Closed)) => {}
                    (Poll::Pending, Err(TryRecvOnce::Empty)) => {
                        model.receiver_waits = Some(receiver.name());
                    }
                    (polled, expected) => panic!("step {id}: {polled:?} instead of {expected:?}"),
                }
            }
            OnceOp::TryRecv => {
                if let Some(rx) = &mut rx {
                    let received = rx.try_recv().map(|message| message.0);
                    let ends = received != Err(TryRecvOnce::Empty);
                    assert_eq!(received, model.recv());
                    assert_eq!(rx.is_terminated(), ends);
                }
            }
            OnceOp::Close => {
                if let Some(rx) = &mut rx {
                    rx.close();
                    model.close();
                }
            }
            OnceOp::DropReceiver => {
                if rx.take().is_some() {
                    model.leave();
                }
            }
        }
        assert_eq!(wakes.take(), std::mem::take(&mut model.woken), "step {id}: {op:?}");
        assert_eq!(Rc::strong_count(&live) - 1, usize::from(model.value.is_some()), "messages");
        assert!(tx.as_ref().is_none_or(|tx| tx.is_closed() == model.closed));
        assert!(rx.as_ref().is_none_or(|rx| rx.is_empty() == model.value.is_none()));
    }
    drop((tx, rx, sender, receiver));
    assert_eq!(wakes.count(), 0, "wakers are left");
    assert_eq!(Rc::strong_count(&live), 1, "messages are left");
}

#[derive(Clone, Debug)]
enum Op {
    Send(usize),
    Clone(usize),
    DropSender(usize),
    Downgrade(usize),
    Upgrade(usize),
    DropWeak(usize),
    StartClosed(usize),
    PollClosed(usize, bool),
    CancelClosed(usize),
    /// Starts `recv`, or polls the one that waits.
    Recv(bool),
    CancelRecv,
    TryRecv,
    /// Polls once, and cancels.
    RecvMany(usize, bool),
    Close,
    DropReceiver,
}

fn op() -> impl Strategy<Value = Op> {
    let at = || 0..4usize;
    prop_oneof![
        24 => at().prop_map(Op::Send),
        3 => at().prop_map(Op::Clone),
        4 => at().prop_map(Op::DropSender),
        3 => at().prop_map(Op::Downgrade),
        3 => at().prop_map(Op::Upgrade),
        2 => at().prop_map(Op::DropWeak),
        3 => at().prop_map(Op::StartClosed),
        4 => (at(), any::<bool>()).prop_map(|(at, fresh)| Op::PollClosed(at, fresh)),
        2 => at().prop_map(Op::CancelClosed),
        24 => any::<bool>().prop_map(Op::Recv),
        6 => Just(Op::CancelRecv),
        6 => Just(Op::TryRecv),
        4 => (0..40usize, any::<bool>()).prop_map(|(limit, fresh)| Op::RecvMany(limit, fresh)),
        1 => Just(Op::Close),
        1 => Just(Op::DropReceiver),
    ]
}

/// An unbounded channel, told naively.
#[derive(Default)]
struct Model {
    queue: VecDeque<usize>,
    strong: usize,
    weak: usize,
    closed: bool,
    receiver_waits: Option<Name>,
    /// Those who wait for the close, in order.
    closing: Vec<usize>,
    /// Who is woken: the receiver, then those.
    receiver_woken: Option<Name>,
    woken: Vec<usize>,
}

impl Model {
    fn send(&mut self, value: usize) -> bool {
        if !self.closed {
            self.queue.push_back(value);
            self.receiver_woken = self.receiver_woken.or(self.receiver_waits.take());
        }
        !self.closed
    }

    fn recv(&mut self) -> Result<usize, TryRecvError> {
        let none = if self.closed { TryRecvError::Disconnected } else { TryRecvError::Empty };
        self.queue.pop_front().ok_or(none)
    }

    fn close(&mut self) {
        self.closed = true;
        self.receiver_woken = self.receiver_waits.take();
        self.woken = std::mem::take(&mut self.closing);
    }

    fn drop_sender(&mut self) {
        self.strong -= 1;
        if self.strong == 0 {
            self.close();
        }
    }
}

/// The receiver, and a future that has borrowed it.
type Shared = Rc<RefCell<Option<UnboundedReceiver<Message>>>>;

#[expect(clippy::await_holding_refcell_ref, reason = "nobody uses it before the future is dropped")]
async fn recv(rx: Shared) -> Option<Message> {
    let mut rx = rx.borrow_mut();
    rx.as_mut().expect("not dropped").recv().await
}

/// Waits for the close with a sender of its own.
async fn closed(tx: UnboundedSender<Message>) {
    tx.closed().await;
}

#[expect(clippy::too_many_lines, reason = "one arm for each operation")]
fn run_unbounded(ops: &[Op]) {
    let wakes = Arc::new(Wakes::default());
    let live = Rc::new(());
    let (tx, rx) = mpsc::unbounded_channel();
    let rx: Shared = Rc::new(RefCell::new(Some(rx)));
    let mut senders = vec![tx];
    let mut weak: Vec<WeakUnboundedSender<Message>> = Vec::new();
    let mut closing: Vec<Running<'_, ()>> = Vec::new();
    let mut receiving: Option<Running<'_, Option<Message>>> = None;
    let mut receiver = Task::new(RECEIVER, &wakes);
    let mut model = Model { strong: 1, ..Model::default() };
    for (id, op) in ops.iter().enumerate() {
        // Nobody else uses the receiver while `recv` waits.
        let idle = receiving.is_none() && rx.borrow().is_some();
        match *op {
            Op::Send(at) if at < senders.len() => {
                // Now and then more than a block of them.
                for id in (id * 100..).take(if id % 16 == 0 { 40 } else { 1 }) {
                    let sent = senders[at].send(Message(id, live.clone()));
                    assert!(sent.as_ref().is_err_and(|error| error.0.0 == id) || sent.is_ok());
                    assert_eq!(sent.is_ok(), model.send(id));
                }
            }
            Op::Clone(at) if at < senders.len() => {
                senders.push(senders[at].clone());
                model.strong += 1;
            }
            Op::DropSender(at) if at < senders.len() => {
                drop(senders.remove(at));
                model.drop_sender();
            }
            Op::Downgrade(at) if at < senders.len() => {
                weak.push(senders[at].downgrade());
                model.weak += 1;
            }
            Op::Upgrade(at) if at < weak.len() => {
                let sender = weak[at].upgrade();
                assert_eq!(sender.is_some(), model.strong > 0);
                model.strong += usize::from(sender.is_some());
                senders.extend(sender);
            }
            Op::DropWeak(at) if at < weak.len() => {
                weak.remove(at);
                model.weak -= 1;
            }
            Op::StartClosed(at) if at < senders.len() => {
                let mut waiter = Running::new(id, &wakes, closed(senders[at].clone()));
                let polled = waiter.poll(false);
                assert_eq!(polled.is_ready(), model.closed);
                if polled.is_pending() {
                    model.strong += 1;
                    model.closing.push(id);
                    closing.push(waiter);
                }
            }
            Op::PollClosed(at, fresh) if at < closing.len() => {
                let polled = closing[at].poll(fresh);
                assert_eq!(polled.is_ready(), model.closed);
                if polled.is_ready() {
                    closing.remove(at);
                    model.drop_sender();
                }
            }
            Op::CancelClosed(at) if at < closing.len() => {
                take(&mut model.closing, closing.remove(at).id());
                model.drop_sender();
            }
            Op::Recv(fresh) if idle || receiving.is_some() => {
                let start = || Running::new(id, &wakes, recv(rx.clone()));
                let mut waiter = receiving.take().unwrap_or_else(start);
                match (waiter.poll(fresh), model.recv()) {
                    (Poll::Ready(Some(message)), Ok(id)) => assert_eq!(message.0, id),
                    (Poll::Ready(None), Err(TryRecvError::Disconnected)) => {}
                    (Poll::Pending, Err(TryRecvError::Empty)) => {
                        model.receiver_waits = Some(waiter.name());
                        receiving = Some(waiter);
                    }
                    (polled, expected) => panic!("step {id}: {polled:?} instead of {expected:?}"),
                }
            }
            Op::CancelRecv => receiving = None,
            Op::TryRecv if idle => {
                let received = rx.borrow_mut().as_mut().map(UnboundedReceiver::try_recv);
                assert_eq!(received.map(|it| it.map(|message| message.0)), Some(model.recv()));
            }
            Op::RecvMany(limit, fresh) if idle => {
                let (mut rx, mut got) = (rx.borrow_mut(), Vec::new());
                let rx = rx.as_mut().expect("idle");
                let polled = pin!(rx.recv_many(&mut got, limit)).poll(&mut receiver.context(fresh));
                let expected = limit.min(model.queue.len());
                if expected == 0 && limit > 0 && !model.closed {
                    assert_eq!(polled, Poll::Pending);
                    model.receiver_waits = Some(receiver.name());
                } else {
                    assert_eq!(polled, Poll::Ready(expected));
                }
                let expected: Vec<usize> = model.queue.drain(..expected).collect();
                assert_eq!(got.iter().map(|message| message.0).collect::<Vec<_>>(), expected);
            }
            Op::Close if idle => {
                rx.borrow_mut().as_mut().expect("idle").close();
                model.close();
            }
            Op::DropReceiver if idle => {
                rx.take();
                model.queue.clear();
                model.close();
            }
            _ => {}
        }
        let mut woken: Vec<Name> = model.receiver_woken.take().into_iter().collect();
        woken.extend(names(&std::mem::take(&mut model.woken), &closing));
        assert_eq!(wakes.take(), woken, "step {id}: {op:?}");
        assert_eq!(Rc::strong_count(&live) - 1, model.queue.len(), "messages");
        for tx in &senders {
            assert_eq!((tx.strong_count(), tx.weak_count()), (model.strong, model.weak));
            assert_eq!(tx.is_closed(), model.closed);
        }
        for weak in &weak {
            assert_eq!((weak.strong_count(), weak.weak_count()), (model.strong, model.weak));
        }
        if receiving.is_none() {
            if let Some(rx) = rx.borrow().as_ref() {
                assert_eq!((rx.len(), rx.is_closed()), (model.queue.len(), model.closed));
                assert_eq!(rx.sender_strong_count(), model.strong);
                assert_eq!(rx.sender_weak_count(), model.weak);
            }
        }
    }
    drop((receiving, rx, closing, senders, weak, receiver));
    assert_eq!(wakes.count(), 0, "wakers are left");
    assert_eq!(Rc::strong_count(&live), 1, "messages are left");
}

proptest! {
    #[test]
    fn a_oneshot_does_what_the_model_does(ops in vec(once_op(), 1..24)) {
        run_oneshot(&ops);
    }

    #[test]
    fn an_unbounded_mpsc_does_what_the_model_does(ops in vec(op(), 1..120)) {
        run_unbounded(&ops);
    }
}
