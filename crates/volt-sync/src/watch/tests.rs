use std::cell::Cell;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

use futures::executor::block_on;
use proptest::prelude::*;

use super::{Receiver, Ref, Sender, channel};
use crate::coop;
use crate::test::{Lender, drop_at_every_await};

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
fn a_waiting_receiver_is_woken_by_a_new_value_and_by_the_close() {
    let counter = Arc::new(Counter::default());
    let waker = Waker::from(counter.clone());
    let (tx, mut rx) = channel(0);
    {
        let mut changed = pin!(rx.changed());
        assert!(poll(changed.as_mut(), &waker).is_pending());
        tx.send(1).unwrap();
        assert_eq!(counter.0.load(SeqCst), 1);
        assert!(poll(changed, &waker).is_ready());
    }
    assert_eq!(*rx.borrow(), 1);
    let mut changed = pin!(rx.changed());
    assert!(poll(changed.as_mut(), &waker).is_pending());
    drop(tx);
    assert_eq!(counter.0.load(SeqCst), 2);
    assert!(matches!(poll(changed, &waker), Poll::Ready(Err(_))));
}

#[test]
fn a_receiver_knows_of_the_close_whatever_it_has_seen() {
    let (tx, mut rx) = channel(0);
    let other = tx.clone();
    drop(tx);
    assert!(!rx.is_closed(), "there is another sender");
    other.send(1).unwrap();
    drop(other);
    assert!(rx.is_closed());
    assert_eq!(*rx.borrow_and_update(), 1);
    assert!(rx.is_closed());
}

#[test]
fn a_cancelled_wait_marks_nothing_as_seen() {
    let (tx, mut rx) = channel(0);
    {
        let mut changed = pin!(rx.changed());
        assert!(poll(changed.as_mut(), Waker::noop()).is_pending());
        tx.send(1).unwrap();
    }
    assert!(rx.has_changed().unwrap());
    block_on(rx.changed()).unwrap();
}

#[test]
fn a_wait_dropped_at_any_point_leaves_the_change_to_the_next() {
    let seen = Cell::new(0);
    drop_at_every_await(
        || {
            seen.set(0);
            let (tx, rx) = channel(0);
            (tx, Lender::new(rx))
        },
        |(_, rx)| {
            let (mut rx, seen) = (rx.lend(), &seen);
            async move {
                rx.changed().await.unwrap();
                seen.set(1);
                seen.set(*rx.wait_for(|value| *value == 3).await.unwrap());
            }
        },
        |(tx, _), _| tx.send_modify(|value| *value += 1),
        |(tx, rx)| {
            let mut rx = rx.take_back();
            let value = *tx.borrow();
            assert_eq!(rx.has_changed().unwrap(), value > seen.get());
            assert_eq!(*rx.borrow_and_update(), value);
        },
    );
}

#[test]
fn a_wait_for_the_last_receiver_dropped_at_any_point_leaves_no_trace() {
    drop_at_every_await(
        || {
            let (tx, rx) = channel(0);
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
fn wait_for_looks_at_the_current_value_first() {
    let (tx, mut rx) = channel(7);
    assert_eq!(*block_on(rx.wait_for(|value| *value == 7)).unwrap(), 7);
    tx.send(8).unwrap();
    drop(tx);
    assert!(block_on(rx.wait_for(|value| *value == 9)).is_err());
}

#[test]
fn a_panic_while_modifying_neither_poisons_nor_notifies() {
    let (tx, rx) = channel(1);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        tx.send_modify(|value| {
            *value = 2;
            panic!("modify");
        });
    }));
    assert!(result.is_err());
    assert!(!rx.has_changed().unwrap());
    assert_eq!(*rx.borrow(), 2);
    tx.send(3).unwrap();
    assert_eq!(*rx.borrow(), 3);
}

#[test]
fn a_panic_in_a_condition_poisons_nothing() {
    let (tx, mut rx) = channel(1);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = block_on(rx.wait_for(|_| panic!("condition")));
    }));
    assert!(result.is_err());
    tx.send(2).unwrap();
    assert_eq!(*rx.borrow(), 2);
}

#[test]
fn the_last_receiver_wakes_a_waiting_sender() {
    let counter = Arc::new(Counter::default());
    let waker = Waker::from(counter.clone());
    let (tx, rx) = channel(());
    let other = rx.clone();
    let mut closed = pin!(tx.closed());
    assert!(poll(closed.as_mut(), &waker).is_pending());
    drop(rx);
    assert_eq!(counter.0.load(SeqCst), 0);
    drop(other);
    assert_eq!(counter.0.load(SeqCst), 1);
    assert!(poll(closed, &waker).is_ready());
}

#[test]
fn a_task_without_budget_yields() {
    let (tx, mut rx) = channel(0);
    tx.send(1).unwrap();
    let mut changed = pin!(rx.changed());
    coop::with_budget(Some(0), || assert!(poll(changed.as_mut(), Waker::noop()).is_pending()));
    assert!(poll(changed, Waker::noop()).is_ready());
}

#[test]
fn to_wait_for_what_is_so_takes_budget() {
    let (tx, mut rx) = channel(0);
    let mut ready = |condition| poll(pin!(rx.wait_for(|_| condition)), Waker::noop()).is_ready();
    coop::with_budget(Some(1), || assert_eq!((ready(true), ready(true)), (true, false)));
    drop(tx);
    coop::with_budget(Some(1), || assert_eq!((ready(false), ready(false)), (true, false)));
}

#[test]
fn futures_and_handles_are_send_where_the_value_allows() {
    fn send<T: Send>(_: &T) {}
    fn sync<T: Sync>(_: &T) {}
    let (tx, mut rx) = channel(0);
    sync(&tx);
    sync(&rx);
    send(&tx.closed());
    send(&rx.clone().wait_for(|_| true));
    send(&rx.changed());
}

/// Whether a type has a trait.
macro_rules! has {
    ($type:ty: $trait:path) => {{
        #[allow(dead_code, reason = "where the type has the trait")]
        trait Otherwise {
            const HAS: bool = false;
        }
        struct Type<T>(PhantomData<T>);
        impl<T> Otherwise for Type<T> {}
        #[allow(dead_code, reason = "where the type does not have the trait")]
        impl<T: $trait> Type<T> {
            const HAS: bool = true;
        }
        <Type<$type>>::HAS
    }};
}

/// So are Tokio's, which hold a guard of std's.
#[test]
fn a_look_is_to_the_compiler_a_reference_that_stays_in_its_thread() {
    /// Not `Send`.
    type Synced = std::sync::MutexGuard<'static, ()>;
    type Plain<'a> = Ref<'a, u8>;
    type Local<'a> = Ref<'a, Cell<u8>>;
    assert!(!has!(Plain<'static>: Send));
    assert!(has!(Plain<'static>: Sync) && has!(Ref<'static, Synced>: Sync));
    assert!(!has!(Local<'static>: Sync));
    assert!(has!(Plain<'static>: UnwindSafe) && has!(Plain<'static>: RefUnwindSafe));
    assert!(!has!(Local<'static>: UnwindSafe) && !has!(Local<'static>: RefUnwindSafe));
    assert!(has!(Sender<Cell<u8>>: UnwindSafe) && has!(Receiver<Cell<u8>>: UnwindSafe));
    assert!(has!(Sender<Cell<u8>>: RefUnwindSafe) && has!(Receiver<Cell<u8>>: RefUnwindSafe));

    fn longer<'a>(one: Ref<'a, &'static str>, other: &'a str) -> [Ref<'a, &'a str>; 1] {
        assert_ne!(*one, other);
        [one]
    }
    let (tx, _rx) = channel("one");
    assert_eq!(*longer(tx.borrow(), &String::from("other"))[0], "one");
}

#[test]
fn receivers_on_threads_see_the_last_value() {
    let (tx, rx) = channel(0_u64);
    let last = 50_000;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let mut rx = rx.clone();
            scope.spawn(move || {
                let mut before = 0;
                while block_on(rx.changed()).is_ok() {
                    let now = *rx.borrow_and_update();
                    assert!(now >= before, "went back from {before} to {now}");
                    before = now;
                }
                assert_eq!(before, last);
            });
        }
        for value in 1..=last {
            tx.send(value).unwrap();
        }
        drop(tx);
    });
}

/// Against a model: a value, a version, and what each receiver has seen.
#[derive(Clone, Debug)]
enum Step {
    Send(u8),
    SendIf(u8, bool),
    Subscribe,
    Clone(usize),
    Drop(usize),
    Update(usize),
    MarkChanged(usize),
    Changed(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<u8>().prop_map(Step::Send),
        any::<(u8, bool)>().prop_map(|(value, notify)| Step::SendIf(value, notify)),
        Just(Step::Subscribe),
        any::<usize>().prop_map(Step::Clone),
        any::<usize>().prop_map(Step::Drop),
        any::<usize>().prop_map(Step::Update),
        any::<usize>().prop_map(Step::MarkChanged),
        any::<usize>().prop_map(Step::Changed),
    ]
}

proptest! {
    #[test]
    fn behaves_as_the_model(steps in prop::collection::vec(step(), 0..60)) {
        let tx = Sender::new(0_u8);
        let mut receivers: Vec<(Receiver<u8>, bool)> = Vec::new();
        let mut current = 0;
        for step in steps {
            let count = receivers.len();
            match step {
                Step::Send(value) => {
                    prop_assert_eq!(tx.send(value).is_ok(), count > 0);
                    if count > 0 {
                        current = value;
                        receivers.iter_mut().for_each(|it| it.1 = true);
                    }
                }
                Step::SendIf(value, notify) => {
                    tx.send_if_modified(|it| {
                        *it = value;
                        notify
                    });
                    current = value;
                    receivers.iter_mut().for_each(|it| it.1 |= notify);
                }
                Step::Subscribe => receivers.push((tx.subscribe(), false)),
                Step::Clone(which) if count > 0 => {
                    let copy = receivers[which % count].clone();
                    receivers.push(copy);
                }
                Step::Drop(which) if count > 0 => drop(receivers.swap_remove(which % count)),
                Step::Update(which) if count > 0 => {
                    let (rx, news) = &mut receivers[which % count];
                    let look = rx.borrow_and_update();
                    prop_assert_eq!((*look, look.has_changed()), (current, *news));
                    *news = false;
                }
                Step::MarkChanged(which) if count > 0 => {
                    let (rx, news) = &mut receivers[which % count];
                    rx.mark_changed();
                    *news = true;
                }
                Step::Changed(which) if count > 0 => {
                    let (rx, news) = &mut receivers[which % count];
                    let ready = poll(pin!(rx.changed()), Waker::noop()).is_ready();
                    prop_assert_eq!(ready, *news);
                    *news = false;
                }
                _ => {}
            }
            for (rx, news) in &receivers {
                prop_assert_eq!(rx.has_changed().unwrap(), *news);
                prop_assert_eq!(*rx.borrow(), current);
            }
            prop_assert_eq!(tx.receiver_count(), receivers.len());
        }
    }
}

/// A sender whose closure runs until it is told to leave, on another thread.
#[allow(clippy::disallowed_methods, reason = "a test that needs threads of the system")]
fn sender_at_work(
    tx: Sender<u8>,
    modifies: bool,
) -> (std::sync::mpsc::Sender<()>, std::thread::JoinHandle<Sender<u8>>) {
    let (inside, entered) = std::sync::mpsc::channel();
    let (leave, left) = std::sync::mpsc::channel::<()>();
    let sender = std::thread::spawn(move || {
        tx.send_if_modified(|value| {
            inside.send(()).unwrap();
            left.recv().unwrap();
            *value += 1;
            modifies
        });
        tx
    });
    entered.recv().unwrap();
    (leave, sender)
}

/// Tokio's `changed` does not look at the value, so that neither a borrow nor a sender's closure
/// keeps it from returning. Nor does it come back by itself until the closure has ended.
#[test]
fn a_receiver_sleeps_while_a_senders_closure_runs() {
    for modifies in [true, false] {
        let (tx, mut rx) = channel(0);
        let (leave, sender) = sender_at_work(tx, modifies);
        let counter = Arc::new(Counter::default());
        let waker = Waker::from(counter.clone());
        {
            let mut changed = pin!(rx.changed());
            for _ in 0..3 {
                assert!(poll(changed.as_mut(), &waker).is_pending());
            }
            assert_eq!(counter.0.load(SeqCst), 0, "it would keep the processor busy");
            leave.send(()).unwrap();
            let tx = sender.join().unwrap();
            assert!(counter.0.load(SeqCst) > 0, "the end of the closure wakes it");
            let before = counter.0.load(SeqCst);
            assert_eq!(poll(changed.as_mut(), &waker).is_ready(), modifies);
            if !modifies {
                tx.send(9).unwrap();
                assert_eq!(counter.0.load(SeqCst), before + 1);
                assert!(poll(changed, &waker).is_ready());
            }
        }
    }
}

/// A sender waits for the borrow, so that the receiver cannot have the lock either.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test that needs threads of the system")]
fn a_receiver_sleeps_while_a_sender_waits_for_a_borrow() {
    let (tx, mut rx) = channel(0);
    let other = rx.clone();
    let borrow = other.borrow();
    let sender = std::thread::spawn(move || {
        tx.send(1).unwrap();
        tx
    });
    let counter = Arc::new(Counter::default());
    let waker = Waker::from(counter.clone());
    let mut changed = pin!(rx.changed());
    // Until the sender waits, the receiver can have the lock: then it sleeps as well.
    for _ in 0..100 {
        assert!(poll(changed.as_mut(), &waker).is_pending());
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(counter.0.load(SeqCst), 0);
    drop(borrow);
    let _tx = sender.join().unwrap();
    assert!(counter.0.load(SeqCst) > 0);
    assert!(poll(changed, &waker).is_ready());
}
