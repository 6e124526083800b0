//! Every future of the crate against wakers whose drop panics.
//!
//! A future drops a waker in three places: a clone that was not needed after all, one that another
//! replaces, and one that is kept when the future goes. Whichever panics, the future is as good as
//! dropped: nothing that it was given is lost, and nobody behind it is kept waiting.
#![forbid(unsafe_code)]

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

use crate::test::{Lender, Lent, hostile_waker, poll_once, ready};
use crate::{Barrier, Mutex, Notify, OnceCell, RwLock, Semaphore, SetOnce};
use crate::{broadcast, mpmc, mpsc, oneshot, watch};

type Boxed = Pin<Box<dyn Future<Output = ()>>>;

/// `fulfil` makes the future that `make` returns ready. `check` must find everything as if that
/// future had never been; the flag says whether `fulfil` ran.
fn survives<S: 'static>(
    setup: impl Fn() -> S,
    make: impl Fn(&S) -> Boxed,
    fulfil: impl Fn(&S) + Copy + 'static,
    check: impl Fn(&S, bool),
) {
    survives_polls(&setup, &make, fulfil, &check);
    let state = setup();
    let mut future = make(&state);
    let hostile = hostile_waker(|| ());
    assert!(future.as_mut().poll(&mut Context::from_waker(&hostile)).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(future))).is_err());
    check(&state, false);
}

/// As `survives`, for a waker that stays when its future goes.
fn survives_polls<S: 'static>(
    setup: impl Fn() -> S,
    make: impl Fn(&S) -> Boxed,
    fulfil: impl Fn(&S) + Copy + 'static,
    check: impl Fn(&S, bool),
) {
    for polled_before in [false, true] {
        let state = Rc::new(setup());
        let mut future = make(&state);
        if polled_before {
            assert!(poll_once(future.as_mut()).is_pending());
        }
        let other = state.clone();
        poll_that_panics(future, &hostile_waker(move || fulfil(&other)));
        check(&state, true);
    }
    let state = setup();
    let mut future = make(&state);
    let hostile = hostile_waker(|| ());
    assert!(future.as_mut().poll(&mut Context::from_waker(&hostile)).is_pending());
    poll_that_panics(future, Waker::noop());
    check(&state, false);
}

fn poll_that_panics(mut future: Boxed, waker: &Waker) {
    let mut cx = Context::from_waker(waker);
    let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx).is_ready()));
    assert!(polled.is_err(), "the waker is dropped before the end of the poll");
}

/// A half that a future borrows, and what feeds it.
struct Pair<A, B>(A, Lender<B>);

fn pair<A, B>((a, b): (A, B)) -> Pair<A, B> {
    Pair(a, Lender::new(b))
}

impl<A, B> Pair<A, B> {
    fn lend(&self) -> Lent<B> {
        self.1.lend()
    }
}

#[test]
fn receivers_of_mpmc() {
    for capacity in [Some(2), None] {
        survives(
            move || capacity.map_or_else(mpmc::unbounded, mpmc::bounded),
            |(_, rx)| {
                let rx = rx.clone();
                Box::pin(async move { _ = rx.recv().await })
            },
            |(tx, _)| tx.try_send(1).unwrap(),
            |(tx, rx), sent| {
                if !sent {
                    tx.try_send(1).unwrap();
                }
                assert_eq!(rx.try_recv(), Ok(1));
            },
        );
    }
}

#[test]
fn senders_of_mpmc() {
    survives(
        || {
            let (tx, rx) = mpmc::bounded(1);
            tx.try_send(1).unwrap();
            (tx, rx)
        },
        |(tx, _)| {
            let tx = tx.clone();
            Box::pin(async move { _ = tx.send(2).await })
        },
        |(_, rx)| assert_eq!(rx.try_recv(), Ok(1)),
        |(tx, rx), received| {
            assert_eq!(rx.try_recv().is_ok(), !received);
            tx.try_send(3).unwrap();
            assert_eq!(rx.try_recv(), Ok(3));
        },
    );
    for capacity in [Some(1), None] {
        survives(
            move || pair(capacity.map_or_else(mpmc::unbounded::<u8>, mpmc::bounded)),
            |Pair(tx, _)| {
                let tx = tx.clone();
                Box::pin(async move { tx.closed().await })
            },
            |Pair(_, rx)| _ = rx.lend().close(),
            |Pair(tx, _), closed| assert_eq!(tx.is_closed(), closed),
        );
    }
}

#[cfg(feature = "futures")]
#[test]
fn streams_and_sinks_of_mpmc() {
    use futures::{SinkExt, StreamExt};
    for capacity in [Some(2), None] {
        survives_polls(
            move || pair(capacity.map_or_else(mpmc::unbounded, mpmc::bounded)),
            |state| {
                let mut rx = state.lend();
                Box::pin(async move { _ = rx.next().await })
            },
            |Pair(tx, _)| tx.try_send(1).unwrap(),
            |Pair(tx, rx), sent| {
                if !sent {
                    tx.try_send(1).unwrap();
                }
                assert_eq!(ready(rx.lend().next()), Some(1));
            },
        );
    }
    survives_polls(
        || {
            let (tx, rx) = mpmc::bounded(1);
            tx.try_send(1).unwrap();
            pair((rx, tx))
        },
        |state| {
            let mut tx = state.lend();
            Box::pin(async move { _ = SinkExt::send(&mut *tx, 2).await })
        },
        |Pair(rx, _)| assert_eq!(rx.try_recv(), Ok(1)),
        |Pair(rx, tx), received| {
            assert_eq!(rx.try_recv().is_ok(), !received);
            ready(SinkExt::send(&mut *tx.lend(), 3)).unwrap();
            assert_eq!(rx.try_recv(), Ok(3));
        },
    );
}

#[test]
fn receivers_of_mpsc() {
    macro_rules! survive {
        ($channel:expr, $send:ident, $many:expr) => {
            survives_polls(
                || pair($channel),
                |state| {
                    let mut rx = state.lend();
                    Box::pin(async move {
                        if $many {
                            rx.recv_many(&mut Vec::new(), 2).await;
                        } else {
                            rx.recv().await;
                        }
                    })
                },
                |Pair(tx, _)| tx.$send(1).unwrap(),
                |Pair(tx, rx), sent| {
                    if !sent {
                        tx.$send(1).unwrap();
                    }
                    assert_eq!(rx.lend().try_recv(), Ok(1));
                },
            )
        };
    }
    for many in [false, true] {
        survive!(mpsc::channel(2), try_send, many);
        survive!(mpsc::unbounded_channel(), send, many);
    }
}

#[test]
fn senders_of_mpsc() {
    for reserve in [0, 1, 2] {
        survives(
            || {
                let (tx, rx) = mpsc::channel(2);
                tx.try_send(1).unwrap();
                tx.try_send(1).unwrap();
                pair((tx, rx))
            },
            |Pair(tx, _)| {
                let tx = tx.clone();
                Box::pin(async move {
                    match reserve {
                        0 => tx.send(2).await.unwrap(),
                        1 => drop(tx.reserve().await),
                        _ => drop(tx.reserve_many(2).await),
                    }
                })
            },
            |Pair(_, rx)| {
                let mut rx = rx.lend();
                assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1), Ok(1)));
            },
            |Pair(tx, rx), received| {
                let mut rx = rx.lend();
                if !received {
                    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1), Ok(1)));
                }
                assert_eq!(tx.capacity(), 2);
            },
        );
    }
    survives(
        || pair(mpsc::channel::<u8>(1)),
        |Pair(tx, _)| {
            let tx = tx.clone();
            Box::pin(async move { tx.closed().await })
        },
        |Pair(_, rx)| rx.lend().close(),
        |Pair(tx, _), closed| assert_eq!(tx.is_closed(), closed),
    );
    survives(
        || pair(mpsc::unbounded_channel::<u8>()),
        |Pair(tx, _)| {
            let tx = tx.clone();
            Box::pin(async move { tx.closed().await })
        },
        |Pair(_, rx)| rx.lend().close(),
        |Pair(tx, _), closed| assert_eq!(tx.is_closed(), closed),
    );
}

#[test]
fn halves_of_oneshot() {
    survives_polls(
        || {
            let (tx, rx) = oneshot::channel();
            (std::cell::Cell::new(Some(tx)), Lender::new(rx))
        },
        |(_, rx)| {
            let mut rx = rx.lend();
            Box::pin(async move { drop((&mut *rx).await) })
        },
        |(tx, _)| tx.take().unwrap().send(1).unwrap(),
        |(tx, rx), sent| {
            if !sent {
                tx.take().unwrap().send(1).unwrap();
            }
            assert_eq!(rx.lend().try_recv(), Ok(1));
        },
    );
    survives_polls(
        || {
            pair({
                let (tx, rx) = oneshot::channel::<u8>();
                (std::cell::RefCell::new(rx), tx)
            })
        },
        |state| {
            let mut tx = state.lend();
            Box::pin(async move { tx.closed().await })
        },
        |Pair(rx, _)| rx.borrow_mut().close(),
        |Pair(_, tx), closed| assert_eq!(tx.lend().is_closed(), closed),
    );
}

#[test]
fn halves_of_broadcast() {
    survives(
        || pair(broadcast::channel(2)),
        |state| {
            let mut rx = state.lend();
            Box::pin(async move { _ = rx.recv().await })
        },
        |Pair(tx, _)| _ = tx.send(1).unwrap(),
        |Pair(tx, rx), sent| {
            if !sent {
                tx.send(1).unwrap();
            }
            assert_eq!(rx.lend().try_recv(), Ok(1));
        },
    );
    survives(
        || {
            let (tx, rx) = broadcast::channel::<u8>(2);
            (tx, std::cell::Cell::new(Some(rx)))
        },
        |(tx, _)| {
            let tx = tx.clone();
            Box::pin(async move { tx.closed().await })
        },
        |(_, rx)| drop(rx.take()),
        |(tx, _), closed| assert_eq!(tx.receiver_count(), usize::from(!closed)),
    );
}

#[test]
fn halves_of_watch() {
    for wait_for in [false, true] {
        survives(
            || pair(watch::channel(0)),
            |state| {
                let mut rx = state.lend();
                Box::pin(async move {
                    if wait_for {
                        drop(rx.wait_for(|value| *value == 1).await);
                    } else {
                        rx.changed().await.unwrap();
                    }
                })
            },
            |Pair(tx, _)| tx.send(1).unwrap(),
            |Pair(tx, rx), sent| {
                if !sent {
                    tx.send(1).unwrap();
                }
                ready(rx.lend().changed()).unwrap();
            },
        );
    }
    survives(
        || {
            let (tx, rx) = watch::channel(0);
            (tx, std::cell::Cell::new(Some(rx)))
        },
        |(tx, _)| {
            let tx = tx.clone();
            Box::pin(async move { tx.closed().await })
        },
        |(_, rx)| drop(rx.take()),
        |(tx, _), closed| assert_eq!(tx.is_closed(), closed),
    );
}

#[test]
fn locks() {
    survives(
        || {
            let semaphore = Arc::new(Semaphore::new(3));
            let held = semaphore.clone().try_acquire_many_owned(3).unwrap();
            (semaphore, std::cell::Cell::new(Some(held)))
        },
        |(semaphore, _)| {
            let semaphore = semaphore.clone();
            Box::pin(async move { drop(semaphore.acquire_many(2).await) })
        },
        |(_, held)| drop(held.take()),
        |(semaphore, held), _| {
            drop(held.take());
            assert_eq!(semaphore.available_permits(), 3);
        },
    );
    survives(
        || {
            let mutex = Arc::new(Mutex::new(()));
            let held = mutex.clone().try_lock_owned().unwrap();
            (mutex, std::cell::Cell::new(Some(held)))
        },
        |(mutex, _)| {
            let mutex = mutex.clone();
            Box::pin(async move { drop(mutex.lock().await) })
        },
        |(_, held)| drop(held.take()),
        |(mutex, held), _| {
            drop(held.take());
            drop(mutex.try_lock().unwrap());
        },
    );
    for write in [false, true] {
        survives(
            || {
                let lock = Arc::new(RwLock::new(()));
                let held = lock.clone().try_write_owned().unwrap();
                (lock, std::cell::Cell::new(Some(held)))
            },
            |(lock, _)| {
                let lock = lock.clone();
                Box::pin(async move {
                    if write {
                        drop(lock.write().await);
                    } else {
                        drop(lock.read().await);
                    }
                })
            },
            |(_, held)| drop(held.take()),
            |(lock, held), _| {
                drop(held.take());
                drop(lock.try_write().unwrap());
            },
        );
    }
}

#[test]
fn events() {
    survives(
        || Arc::new(Notify::new()),
        |notify| {
            let notify = notify.clone();
            Box::pin(async move { notify.notified().await })
        },
        |notify| notify.notify_one(),
        |notify, notified| {
            assert_eq!(poll_once(std::pin::pin!(notify.notified())).is_ready(), notified);
        },
    );
    survives(
        || Arc::new(SetOnce::new()),
        |cell| {
            let cell = cell.clone();
            Box::pin(async move { _ = cell.wait().await })
        },
        |cell| cell.set(1).unwrap(),
        |cell, set| assert_eq!(cell.get().is_some(), set),
    );
}

/// Somebody else is making the value, and gives up.
#[test]
fn the_next_one_makes_the_value_of_a_once_cell() {
    survives(
        || {
            let cell = Arc::new(OnceCell::new());
            let other = cell.clone();
            let mut making: Boxed =
                Box::pin(async move { _ = other.get_or_init(std::future::pending::<u8>).await });
            assert!(poll_once(making.as_mut()).is_pending());
            (cell, std::cell::Cell::new(Some(making)))
        },
        |(cell, _)| {
            let cell = cell.clone();
            Box::pin(async move { _ = cell.get_or_init(std::future::pending::<u8>).await })
        },
        |(_, making)| drop(making.take()),
        |(cell, making), _| {
            drop(making.take());
            assert_eq!(*ready(cell.get_or_init(|| async { 7 })), 7);
        },
    );
}

/// The one who panics has arrived if it leads, and otherwise never was there.
#[test]
fn a_barrier() {
    survives(
        || {
            let barrier = Arc::new(Barrier::new(2));
            (barrier, std::cell::Cell::new(None::<Boxed>))
        },
        |(barrier, _)| {
            let barrier = barrier.clone();
            Box::pin(async move { _ = barrier.wait().await })
        },
        |(barrier, first)| {
            let barrier = barrier.clone();
            let mut wait: Boxed = Box::pin(async move { _ = barrier.wait().await });
            let led = poll_once(wait.as_mut()).is_ready();
            first.set(Some(if led { Box::pin(async {}) } else { wait }));
        },
        |(barrier, first), arrived| {
            if arrived {
                ready(first.take().unwrap());
            }
            let pair = [barrier.clone(), barrier.clone()];
            let [mut one, two] = pair.map(|barrier| {
                let wait: Boxed = Box::pin(async move { _ = barrier.wait().await });
                wait
            });
            assert!(poll_once(one.as_mut()).is_pending());
            ready(two);
            ready(one);
        },
    );
}
