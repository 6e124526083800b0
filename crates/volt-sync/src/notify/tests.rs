use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;

use proptest::prelude::*;

use super::{Notified, Notify, OwnedNotified};
use crate::block_on::block_on;
use crate::coop;
use crate::primitive::thread;
use crate::test::{Wakes, drop_at_every_await, hostile_waker, poll_once, ready};

fn queue<'a>(notify: &'a Notify, wakes: &Wakes) -> Pin<Box<Notified<'a>>> {
    let mut notified = Box::pin(notify.notified());
    assert!(wakes.poll(notified.as_mut()).is_pending());
    notified
}

#[test]
fn notify_one_takes_the_oldest_and_notify_last_the_newest() {
    let notify = Notify::new();
    let wakes: Vec<_> = (0..4).map(|_| Wakes::new()).collect();
    let waiters: Vec<_> = wakes.iter().map(|wakes| queue(&notify, wakes)).collect();
    let counts = || wakes.iter().map(Wakes::count).collect::<Vec<_>>();
    notify.notify_one();
    assert_eq!(counts(), [1, 0, 0, 0]);
    notify.notify_last();
    assert_eq!(counts(), [1, 0, 0, 1]);
    notify.notify_one();
    assert_eq!(counts(), [1, 1, 0, 1]);
    drop(waiters);
    assert_eq!(counts(), [1, 1, 1, 1], "the first two pass theirs on, the rest become a permit");
    ready(notify.notified());
    assert!(poll_once(pin!(notify.notified())).is_pending());
}

#[test]
fn a_dropped_notification_is_passed_on_the_way_it_came() {
    let notify = Notify::new();
    let wakes: Vec<_> = (0..3).map(|_| Wakes::new()).collect();
    let mut waiters: Vec<_> = wakes.iter().map(|wakes| queue(&notify, wakes)).collect();
    notify.notify_last();
    drop(waiters.pop());
    assert_eq!((wakes[0].count(), wakes[1].count()), (0, 1), "the newest of the rest");
}

#[test]
fn notify_waiters_counts_from_the_creation_of_a_future() {
    let notify = Notify::new();
    let created = notify.notified();
    let wakes = Wakes::new();
    let waiters: Vec<_> = (0..40).map(|_| queue(&notify, &wakes)).collect();
    notify.notify_waiters();
    assert_eq!((wakes.count(), wakes.clones()), (40, 0));
    ready(created);
    waiters.into_iter().for_each(ready);
    assert!(poll_once(pin!(notify.notified())).is_pending(), "nothing is stored");
}

#[test]
fn who_was_notified_with_all_others_leaves_the_permit_to_the_next() {
    for enables in [false, true] {
        for one_first in [false, true] {
            let notify = Notify::new();
            let mut early = pin!(notify.notified());
            if one_first {
                notify.notify_one();
            }
            notify.notify_waiters();
            if !one_first {
                notify.notify_one();
            }
            assert!(!enables || early.as_mut().enable());
            ready(early);
            ready(notify.notified());
            assert!(poll_once(pin!(notify.notified())).is_pending());
        }
    }
}

/// While `notify_waiters` wakes, a notification for one goes to nobody that it has notified already.
#[test]
fn a_notification_between_the_rounds_of_notify_waiters_is_kept() {
    struct Renotify(Arc<Notify>);
    impl std::task::Wake for Renotify {
        fn wake(self: Arc<Self>) {
            self.0.notify_one();
        }
    }
    let notify = Arc::new(Notify::new());
    let waker = std::task::Waker::from(Arc::new(Renotify(notify.clone())));
    let wakes = Wakes::new();
    let mut waiters: Vec<_> = (0..40).map(|_| Box::pin(notify.notified())).collect();
    for (i, waiter) in waiters.iter_mut().enumerate() {
        let mut cx = std::task::Context::from_waker(&waker);
        let pending = if i == 0 {
            waiter.as_mut().poll(&mut cx).is_pending()
        } else {
            wakes.poll(waiter.as_mut()).is_pending()
        };
        assert!(pending);
    }
    notify.notify_waiters();
    assert_eq!(wakes.count(), 39);
    ready(notify.notified());
}

#[test]
fn panicking_wakers_keep_nobody_from_being_woken() {
    let notify = Notify::new();
    let (bad, good) = (Wakes::panicking(), Wakes::new());
    let waiters: Vec<_> =
        (0..40).map(|i| queue(&notify, if i % 5 == 0 { &bad } else { &good })).collect();
    catch_unwind(AssertUnwindSafe(|| notify.notify_waiters())).unwrap_err();
    assert_eq!((bad.count(), good.count()), (8, 32));
    waiters.into_iter().for_each(ready);
    let waiter = queue(&notify, &bad);
    catch_unwind(AssertUnwindSafe(|| notify.notify_one())).unwrap_err();
    ready(waiter);
}

#[test]
fn enable_takes_a_place_without_a_waker() {
    let notify = Arc::new(Notify::new());
    let mut first = Box::pin(notify.clone().notified_owned());
    assert!(!first.as_mut().enable());
    assert!(!first.as_mut().enable());
    let wakes = Wakes::new();
    let second = queue(&notify, &wakes);
    notify.notify_one();
    assert_eq!(wakes.count(), 0);
    assert!(first.as_mut().enable());
    assert!(wakes.poll(first.as_mut()).is_ready());
    drop((first, second));
    let mut third = pin!(notify.notified());
    notify.notify_one();
    assert!(third.as_mut().enable(), "the permit is taken");
    assert!(poll_once(pin!(notify.notified())).is_pending());
    assert!(poll_once(third).is_ready());
}

#[test]
fn the_waker_of_the_last_poll_is_woken() {
    let notify = Notify::new();
    let (old, new) = (Wakes::new(), Wakes::new());
    let mut waiter = queue(&notify, &old);
    assert!(old.poll(waiter.as_mut()).is_pending());
    assert_eq!(old.clones(), 1, "the same waker is not cloned again");
    assert!(new.poll(waiter.as_mut()).is_pending());
    notify.notify_one();
    assert_eq!((old.count(), old.clones(), new.count()), (0, 0, 1));
}

#[test]
fn dropping_a_wait_at_any_point_loses_no_notification() {
    drop_at_every_await(
        || Arc::new(Notify::new()),
        |notify| notify.clone().notified_owned(),
        |notify, poll| {
            if poll == 2 {
                notify.notify_one();
            }
        },
        |notify| {
            notify.notify_one();
            ready(notify.notified());
            assert!(poll_once(pin!(notify.notified())).is_pending());
        },
    );
}

#[test]
fn a_task_without_budget_yields() {
    let notify = Notify::new();
    coop::with_budget(Some(1), || {
        notify.notify_one();
        ready(notify.notified());
        notify.notify_one();
        let wakes = Wakes::new();
        assert!(wakes.poll(pin!(notify.notified())).is_pending());
        assert_eq!(wakes.count(), 1);
    });
    ready(notify.notified());
}

#[test]
fn ping_pong_between_two_threads_loses_nothing() {
    let pair = Arc::new((Notify::new(), Notify::new()));
    let other = pair.clone();
    let rounds = 5_000;
    let thread = thread::Builder::new()
        .spawn(move || {
            for _ in 0..rounds {
                block_on(other.0.notified());
                other.1.notify_one();
            }
        })
        .unwrap();
    for _ in 0..rounds {
        pair.0.notify_one();
        block_on(pair.1.notified());
    }
    thread.join().unwrap();
}

#[derive(Clone, Debug)]
enum Op {
    New,
    Poll(usize),
    Enable(usize),
    Drop(usize),
    One,
    Last,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Naive {
    Created,
    /// Completed by `notify_waiters` before its first poll, which so takes no permit.
    CreatedThenAll,
    Waits,
    Notified(Option<bool>),
    Gone,
}

fn notify_one(permit: &mut bool, queue: &mut Vec<usize>, states: &mut [Naive], newest: bool) {
    if queue.is_empty() {
        *permit = true;
        return;
    }
    let id = queue.remove(if newest { queue.len() - 1 } else { 0 });
    states[id] = Naive::Notified(Some(newest));
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        5 => Just(Op::New),
        9 => (0_usize..12).prop_map(Op::Poll),
        2 => (0_usize..12).prop_map(Op::Enable),
        3 => (0_usize..12).prop_map(Op::Drop),
        3 => Just(Op::One),
        2 => Just(Op::Last),
        1 => Just(Op::All),
    ];
    prop::collection::vec(op, 0..60)
}

proptest! {
    #[test]
    fn behaves_as_the_naive_model(ops in ops()) {
        let notify = Notify::new();
        let mut futures: Vec<Option<Pin<Box<Notified<'_>>>>> = Vec::new();
        let (mut permit, mut queue, mut states) = (false, Vec::new(), Vec::new());
        for op in ops {
            match op {
                Op::New => {
                    futures.push(Some(Box::pin(notify.notified())));
                    states.push(Naive::Created);
                }
                Op::Poll(id) | Op::Enable(id) => {
                    let Some(Some(future)) = futures.get_mut(id) else { continue };
                    let enable = matches!(op, Op::Enable(_));
                    let ready = match states[id] {
                        Naive::Created if permit => {
                            permit = false;
                            true
                        }
                        Naive::Created => {
                            states[id] = Naive::Waits;
                            queue.push(id);
                            false
                        }
                        state => state != Naive::Waits,
                    };
                    if ready {
                        states[id] = Naive::Gone;
                    }
                    let polled = if enable {
                        future.as_mut().enable()
                    } else {
                        poll_once(future.as_mut()).is_ready()
                    };
                    prop_assert_eq!(polled, ready);
                }
                Op::Drop(id) => {
                    let Some(future @ Some(_)) = futures.get_mut(id) else { continue };
                    *future = None;
                    queue.retain(|queued| *queued != id);
                    if let Naive::Notified(Some(newest)) = states[id] {
                        notify_one(&mut permit, &mut queue, &mut states, newest);
                    }
                    states[id] = Naive::Gone;
                }
                Op::One | Op::Last => {
                    let newest = matches!(op, Op::Last);
                    if newest { notify.notify_last() } else { notify.notify_one() }
                    notify_one(&mut permit, &mut queue, &mut states, newest);
                }
                Op::All => {
                    notify.notify_waiters();
                    queue.clear();
                    for state in &mut states {
                        *state = match *state {
                            Naive::Created => Naive::CreatedThenAll,
                            Naive::Waits => Naive::Notified(None),
                            other => other,
                        };
                    }
                }
            }
            prop_assert_eq!(notify.set.word().has_permit(), permit);
        }
    }
}

const _: () = {
    const fn all<T: Send + Sync + std::panic::RefUnwindSafe>() {}
    const fn send_sync<T: Send + Sync>() {}
    all::<Notify>();
    send_sync::<Notified<'static>>();
    send_sync::<OwnedNotified>();
};
crate::test::not_impl!(Notified<'static>: Unpin);

#[test]
fn enable_keeps_the_waker_of_an_earlier_poll() {
    let notify = Notify::new();
    let wakes = Wakes::new();
    let mut notified = queue(&notify, &wakes);
    assert!(!notified.as_mut().enable());
    notify.notify_one();
    assert_eq!(wakes.count(), 1);
    assert!(notified.as_mut().enable());
}

/// A waker whose destructor looks whether the lock is free.
mod observer {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::SeqCst;
    use std::task::{RawWaker, RawWakerVTable, Waker};

    use super::Notify;

    pub(super) static DROPS: AtomicUsize = AtomicUsize::new(0);
    pub(super) static UNDER_LOCK: AtomicUsize = AtomicUsize::new(0);

    static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, drop, |_| (), drop);

    fn clone(notify: *const ()) -> RawWaker {
        RawWaker::new(notify, &VTABLE)
    }

    fn drop(notify: *const ()) {
        // SAFETY: `waker`'s caller keeps it alive.
        let notify = unsafe { &*notify.cast::<Notify>() };
        DROPS.fetch_add(1, SeqCst);
        UNDER_LOCK.fetch_add(usize::from(!notify.set.word().is_idle()), SeqCst);
    }

    /// `notify` must outlive all clones of the waker, and nobody may wait when they are dropped.
    pub(super) fn waker(notify: &Notify) -> Waker {
        // SAFETY: the functions above do nothing with the pointer but to look.
        unsafe { Waker::from_raw(clone(std::ptr::from_ref(notify).cast())) }
    }
}

/// Polls a future, whose turn has not come yet, from inside a wake-up.
struct PollsLast {
    notify: Arc<Notify>,
    last: std::sync::Mutex<Option<Pin<Box<OwnedNotified>>>>,
}

impl std::task::Wake for PollsLast {
    fn wake(self: Arc<Self>) {
        let mut last = self.last.lock().unwrap().take().expect("woken once");
        let waker = observer::waker(&self.notify);
        let mut cx = std::task::Context::from_waker(&waker);
        assert!(last.as_mut().poll(&mut cx).is_ready());
    }
}

#[test]
fn a_waker_that_comes_too_late_is_dropped_outside_the_lock() {
    let notify = Arc::new(Notify::new());
    // One more than are woken in a round.
    let mut waiters: Vec<_> = (0..17).map(|_| Box::pin(notify.clone().notified_owned())).collect();
    let polls_last =
        Arc::new(PollsLast { notify: notify.clone(), last: std::sync::Mutex::new(None) });
    let waker = std::task::Waker::from(polls_last.clone());
    let mut cx = std::task::Context::from_waker(&waker);
    assert!(waiters[0].as_mut().poll(&mut cx).is_pending());
    waiters[1..].iter_mut().for_each(|waiter| assert!(poll_once(waiter.as_mut()).is_pending()));
    *polls_last.last.lock().unwrap() = waiters.pop();
    notify.notify_waiters();
    assert!(observer::DROPS.load(std::sync::atomic::Ordering::SeqCst) > 0);
    assert_eq!(observer::UNDER_LOCK.load(std::sync::atomic::Ordering::SeqCst), 0);
}

/// The notification comes while the waker is cloned, so that the clone is not needed.
#[test]
fn a_waker_that_panics_in_drop_loses_no_notification() {
    for polled_before in [false, true] {
        let notify = Arc::new(Notify::new());
        let mut notified = Box::pin(notify.clone().notified_owned());
        if polled_before {
            assert!(poll_once(notified.as_mut()).is_pending());
        }
        let other = notify.clone();
        let waker = hostile_waker(move || other.notify_one());
        let mut cx = std::task::Context::from_waker(&waker);
        let poll = || notified.as_mut().poll(&mut cx).is_ready();
        catch_unwind(AssertUnwindSafe(poll)).unwrap_err();
        drop(notified);
        ready(notify.notified());
    }
}
