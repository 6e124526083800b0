//! Tests of `LocalSet`, with an executor that only blocks.
#![allow(clippy::disallowed_methods, reason = "the tests start threads")]

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::panic::catch_unwind;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use volt_sync::internal::{block_on, primitive::Mutex};

use super::{LocalSet, spawn_local};
use crate::task::test::{Dropped, counting_waker};
use crate::task::yield_now;

#[test]
fn tasks_run_while_the_set_is_driven() {
    let set = LocalSet::new();
    let count = Rc::new(Cell::new(0));
    for _ in 0..1000 {
        let count = count.clone();
        drop(set.spawn_local(async move {
            yield_now().await;
            count.set(count.get() + 1);
        }));
    }
    assert_eq!(count.get(), 0);
    block_on(set);
    assert_eq!(count.get(), 1000);
}

#[test]
fn run_until_returns_with_its_future_and_leaves_the_rest() {
    let set = LocalSet::new();
    let (owned, dropped) = Dropped::counter();
    let value = block_on(set.run_until(async {
        drop(spawn_local(async move {
            let _owned = owned;
            pending::<()>().await;
        }));
        spawn_local(async { spawn_local(async { 5 }).await.unwrap() }).await.unwrap()
    }));
    assert_eq!(value, 5);
    assert_eq!(dropped(), 0);
    drop(set);
    assert_eq!(dropped(), 1);
}

#[test]
fn spawn_local_outside_of_a_set_panics() {
    let set = LocalSet::new();
    assert!(catch_unwind(|| drop(spawn_local(async {}))).is_err());
    let guard = set.enter();
    let handle = spawn_local(async { 1 });
    drop(guard);
    assert!(catch_unwind(|| drop(spawn_local(async {}))).is_err());
    assert_eq!(block_on(set.run_until(handle)).unwrap(), 1);
}

#[test]
fn wake_ups_from_another_thread() {
    let set = LocalSet::new();
    let log = Rc::new(RefCell::new(Vec::new()));
    for n in 0..10 {
        let log = log.clone();
        let mut thread = None;
        drop(set.spawn_local(poll_fn(move |cx| {
            if thread.is_some() {
                log.borrow_mut().push(n);
                return Poll::Ready(());
            }
            let waker = cx.waker().clone();
            thread = Some(thread::spawn(move || waker.wake()));
            Poll::Pending
        })));
    }
    block_on(set);
    log.borrow_mut().sort_unstable();
    assert_eq!(*log.borrow(), (0..10).collect::<Vec<_>>());
}

#[test]
fn sets_nest() {
    let (outer, inner) = (LocalSet::new(), LocalSet::new());
    let sum = block_on(outer.run_until(async move {
        let a = spawn_local(async { 1 });
        let b = inner.run_until(async {
            let c = spawn_local(async { 2 }).await.unwrap();
            c + a.await.unwrap()
        });
        // The outer set's task is woken while the inner one is driven.
        b.await + spawn_local(async { 4 }).await.unwrap()
    }));
    assert_eq!(sum, 7);
}

/// Who drives the set inside of its own drive is gone when the outer driver returns, which is to be woken then.
#[test]
fn a_set_that_drives_itself_keeps_its_driver() {
    let set = LocalSet::new();
    let (sender, receiver) = volt_sync::oneshot::channel();
    let mut outer = pin!(set.run_until(async {
        let task = spawn_local(receiver);
        block_on(set.run_until(async {}));
        task.await.unwrap().unwrap()
    }));
    let (wakes, driver) = counting_waker();
    let mut cx = Context::from_waker(&driver);
    assert!(outer.as_mut().poll(&mut cx).is_pending());
    assert_eq!(wakes.get(), 0);
    thread::spawn(move || sender.send(7).unwrap()).join().unwrap();
    assert_eq!(wakes.get(), 1);
    assert!(outer.as_mut().poll(&mut cx).is_pending(), "the task runs, and wakes who awaits it");
    assert_eq!(outer.poll(&mut cx), Poll::Ready(7));
}

/// Of several that drive a set the last one is woken; when it is done, or dropped, another one is.
#[test]
fn who_no_longer_drives_a_set_leaves_that_to_others() {
    for (done, woken_before) in [(true, false), (false, false), (true, true), (false, true)] {
        let set = LocalSet::new();
        let (sender, receiver) = volt_sync::oneshot::channel();
        let ((wakes, waker), (others, other)) = (counting_waker(), counting_waker());
        let (mut cx, mut other) = (Context::from_waker(&waker), Context::from_waker(&other));
        let mut first = pin!(set.run_until(async { spawn_local(receiver).await.unwrap() }));
        assert!(first.as_mut().poll(&mut cx).is_pending());
        let flag = Rc::new(Cell::new(false));
        let ends = flag.clone();
        let ready = move |_: &mut Context<'_>| {
            if ends.get() { Poll::Ready(()) } else { Poll::Pending }
        };
        let mut last = Box::pin(set.run_until(poll_fn(ready)));
        assert!(last.as_mut().poll(&mut other).is_pending());
        let send = || thread::spawn(move || sender.send(7).unwrap()).join().unwrap();
        let send = if woken_before {
            send();
            assert_eq!((wakes.get(), others.get()), (0, 1));
            None
        } else {
            Some(send)
        };
        flag.set(true);
        if done {
            assert!(last.as_mut().poll(&mut other).is_ready());
        } else {
            drop(last);
        }
        if let Some(send) = send {
            assert_eq!(wakes.get(), 0, "there is nothing to do");
            send();
        }
        assert_eq!(wakes.get(), 1, "done: {done}, woken before: {woken_before}");
        while first.as_mut().poll(&mut cx).is_pending() {}
    }
}

/// It has registered, though it was never pending.
#[test]
fn who_drives_a_set_once_leaves_that_to_others() {
    let set = LocalSet::new();
    let (sender, receiver) = volt_sync::oneshot::channel();
    let ((wakes, waker), (_, other)) = (counting_waker(), counting_waker());
    let (mut cx, mut other) = (Context::from_waker(&waker), Context::from_waker(&other));
    let mut first = pin!(set.run_until(async { spawn_local(receiver).await.unwrap() }));
    assert!(first.as_mut().poll(&mut cx).is_pending());
    assert!(pin!(set.run_until(async {})).poll(&mut other).is_ready());
    thread::spawn(move || sender.send(7).unwrap()).join().unwrap();
    assert_eq!(wakes.get(), 1);
    while first.as_mut().poll(&mut cx).is_pending() {}
}

/// Of those that are woken alike, one spawns, and ends.
#[test]
fn what_a_driver_spawns_that_ends_is_run_by_another_one() {
    let set = LocalSet::new();
    let (sender, receiver) = volt_sync::oneshot::channel();
    let spawns = async {
        yield_now().await;
        spawn_local(async { sender.send(7).unwrap() });
    };
    let both = async { tokio::join!(set.run_until(receiver), set.run_until(spawns)).0 };
    assert_eq!(block_on(both), Ok(7));
}

#[test]
fn drop_of_a_task_may_spawn_and_wake() {
    struct Spawns(Rc<Cell<u32>>);
    impl Drop for Spawns {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            let again = self.0.clone();
            drop(spawn_local(async move {
                again.set(100);
            }));
        }
    }
    let count = Rc::new(Cell::new(0));
    let set = LocalSet::new();
    let held = Spawns(count.clone());
    drop(set.spawn_local(async move {
        let _held = held;
        pending::<()>().await;
    }));
    block_on(set.run_until(yield_now()));
    drop(set);
    assert_eq!(count.get(), 1, "spawned on a closed set: dropped");
}

#[test]
fn panic_stays_in_its_task() {
    let set = LocalSet::new();
    let handle = set.spawn_local(async { panic!("local") });
    let other = set.spawn_local(async { 1 });
    block_on(set);
    assert!(block_on(handle).unwrap_err().is_panic());
    assert_eq!(block_on(other).unwrap(), 1);
}

/// A driver whose waker polls it, as an executor does that runs what is woken at once.
struct Inline {
    future: RefCell<Option<Pin<Box<dyn Future<Output = ()>>>>>,
    polls: Cell<bool>,
    woken: AtomicUsize,
    thread: thread::ThreadId,
}

impl Inline {
    fn new(future: impl Future<Output = ()> + 'static) -> Arc<Self> {
        Arc::new(Self {
            future: RefCell::new(Some(Box::pin(future))),
            polls: Cell::new(false),
            woken: AtomicUsize::new(0),
            thread: thread::current().id(),
        })
    }

    fn poll(self: &Arc<Self>) {
        let waker = Waker::from(self.clone());
        let Some(mut future) = self.future.take() else { return };
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            *self.future.borrow_mut() = Some(future);
        }
    }

    fn end(&self) {
        drop(self.future.take());
    }

    fn woken(&self) -> usize {
        self.woken.load(SeqCst)
    }
}

// SAFETY: the cells are used on the thread that made it, since all else looks at `thread` first, and the future is dropped
// there by `end`.
unsafe impl Send for Inline {}
// SAFETY: other threads only count in it, which is atomic.
unsafe impl Sync for Inline {}

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, SeqCst);
        if thread::current().id() == self.thread && self.polls.get() {
            self.poll();
        }
    }
}

/// Futures of `run_until`. When one ends that drives the set, another one is woken to take its place. That one may be polled
/// in its wake-up, and end there, or later: what is left is the first one.
#[test]
fn who_is_woken_to_drive_a_set_may_be_polled_at_once() {
    for (polls, ends_at_once) in [(false, false), (true, false), (true, true)] {
        let set = Rc::new(LocalSet::new());
        let drives = |future: Pin<Box<dyn Future<Output = ()>>>| {
            let set = set.clone();
            Inline::new(async move { set.run_until(future).await })
        };
        let gate = Arc::new(Mutex::new(None));
        let (ran, ends) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
        let (theirs, runs, end) = (gate.clone(), ran.clone(), ends.clone());
        drop(set.spawn_local(async move {
            let mut first = true;
            poll_fn(|cx| {
                if !std::mem::take(&mut first) {
                    return Poll::Ready(());
                }
                *theirs.lock().unwrap() = Some(cx.waker().clone());
                Poll::Pending
            })
            .await;
            runs.set(true);
        }));
        let second = poll_fn(move |_| if end.get() { Poll::Ready(()) } else { Poll::Pending });
        let first = drives(Box::pin(pending()));
        let second = drives(Box::pin(second));
        let third = drives(Box::pin(pending()));
        second.polls.set(polls);
        [&first, &second, &third].into_iter().for_each(Inline::poll);
        // A task is queued, so the second one is woken when the third one ends.
        drop(set.spawn_local(async {}));
        ends.set(ends_at_once);
        third.end();
        assert_eq!(second.future.borrow().is_none(), ends_at_once);
        ends.set(true);
        second.poll();
        let fourth = drives(Box::pin(pending()));
        fourth.poll();
        fourth.end();
        let before = (first.woken(), second.woken());
        let waker = gate.lock().unwrap().take().unwrap();
        thread::spawn(move || Waker::wake(waker)).join().unwrap();
        assert_eq!(
            (first.woken(), second.woken()),
            (before.0 + 1, before.1),
            "{polls}, {ends_at_once}"
        );
        first.poll();
        assert!(ran.get());
        first.end();
        second.end();
    }
}
