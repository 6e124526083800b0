//! A waker that panics while an operation has a value in hand whose drop panics as well: the first panic reaches the
//! caller. Were they to meet, the process would die.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::test::{Wakes, poll_once};
use crate::{broadcast, mpmc, mpsc, oneshot, watch};

/// Counts its drop, and panics if it is the first.
#[derive(Clone)]
struct Message<const WORDS: usize>(Rc<Cell<u32>>, [usize; WORDS]);

impl<const WORDS: usize> Message<WORDS> {
    fn new(drops: &Rc<Cell<u32>>) -> Self {
        Self(drops.clone(), [0; WORDS])
    }
}

impl<const WORDS: usize> Drop for Message<WORDS> {
    fn drop(&mut self) {
        if self.0.replace(self.0.get() + 1) == 0 {
            panic_any("a message that panics in drop");
        }
    }
}

/// True if `work` panics with what a waker of [`Wakes::panicking`] does.
fn panics_in_wake<R>(work: impl FnOnce() -> R) -> bool {
    let Err(payload) = catch_unwind(AssertUnwindSafe(work)) else { return false };
    payload.downcast_ref::<&str>().is_some_and(|text| text.contains("a waker that panics"))
}

#[test]
fn a_broadcast_that_overwrites_a_value() {
    let drops = Rc::default();
    let (tx, mut rx) = broadcast::channel(1);
    let late = tx.subscribe();
    assert!(tx.send(Message::<0>::new(&drops)).is_ok());
    let _kept = rx.try_recv();
    let (wakes, mut other) = (Wakes::new(), tx.subscribe());
    let mut recv = pin!(rx.recv());
    assert!(Wakes::panicking().poll(recv.as_mut()).is_pending());
    let mut other_recv = pin!(other.recv());
    assert!(wakes.poll(other_recv.as_mut()).is_pending());
    assert!(panics_in_wake(|| tx.send(Message::new(&drops))));
    assert_eq!((wakes.count(), drops.get()), (1, 1));
    assert!(poll_once(recv).is_ready() && poll_once(other_recv).is_ready());
    drop(late);
}

#[test]
fn a_watch_that_replaces_a_value() {
    for replaces in [false, true] {
        let drops = Rc::default();
        let (tx, mut rx) = watch::channel(Some(Message::<0>::new(&drops)));
        let mut changed = pin!(rx.changed());
        assert!(Wakes::panicking().poll(changed.as_mut()).is_pending());
        assert!(panics_in_wake(|| match replaces {
            true => tx.send_replace(None).is_none(),
            false => tx.send(None).is_ok(),
        }));
        assert_eq!(drops.get(), 1);
        assert!(poll_once(changed).is_ready());
    }
}

/// Both halves have waited: one with a waker that panics when it is woken, the other with one that does in drop.
#[test]
fn halves_of_a_oneshot_that_have_waited() {
    struct Waits;
    impl Wake for Waits {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Waits {
        fn drop(&mut self) {
            panic_any("a waker that panics in drop, too");
        }
    }
    let panicking = Wakes::panicking().waker();
    let wakes = &mut Context::from_waker(&panicking);
    for sends in [false, true] {
        let (mut tx, mut rx) = oneshot::channel();
        assert!(Pin::new(&mut rx).poll(wakes).is_pending());
        let waits = Waker::from(Arc::new(Waits));
        assert!(tx.poll_closed(&mut Context::from_waker(&waits)).is_pending());
        // The sender's is the last one.
        drop(waits);
        assert!(panics_in_wake(|| if sends { _ = tx.send(1) } else { drop(tx) }));
        assert_eq!(rx.try_recv().is_ok(), sends);
    }
    let (mut tx, mut rx) = oneshot::channel::<u8>();
    assert!(tx.poll_closed(wakes).is_pending());
    let waits = Waker::from(Arc::new(Waits));
    assert!(Pin::new(&mut rx).poll(&mut Context::from_waker(&waits)).is_pending());
    drop(waits);
    assert!(panics_in_wake(|| drop(rx)));
    assert!(tx.is_closed());
}

#[test]
fn a_oneshot_that_is_refused() {
    let drops = Rc::default();
    let (tx, mut rx) = oneshot::channel();
    assert!(Wakes::panicking().poll(Pin::new(&mut rx)).is_pending());
    rx.close();
    assert!(panics_in_wake(|| tx.send(Message::<0>::new(&drops))));
    assert_eq!(drops.get(), 1);
}

/// Of a channel with `capacity` places, all of them taken, for one of which a sender waits.
fn receives<const WORDS: usize>(capacity: usize) {
    macro_rules! loses_one {
        ($channel:expr, $rx:ident => $receive:expr) => {{
            let drops = Rc::default();
            #[allow(unused_mut, reason = "receivers of mpmc are shared")]
            let (tx, mut $rx) = $channel;
            for _ in 0..capacity {
                assert!(tx.try_send(Message::<WORDS>::new(&drops)).is_ok());
            }
            {
                let mut send = pin!(tx.send(Message::new(&drops)));
                assert!(Wakes::panicking().poll(send.as_mut()).is_pending());
                assert!(panics_in_wake(|| $receive));
                assert_eq!(drops.get(), 1);
                assert!(poll_once(send).is_ready());
            }
        }};
    }
    loses_one!(mpsc::channel(capacity), rx => rx.try_recv());
    loses_one!(mpsc::channel(capacity), rx => poll_once(pin!(rx.recv())));
    loses_one!(mpmc::bounded(capacity), rx => rx.try_recv());
    loses_one!(mpmc::bounded(capacity), rx => poll_once(pin!(rx.recv())));
    // A future that has waited.
    loses_one!(mpmc::bounded(capacity), rx => {
        let mut recv = pin!(rx.recv());
        crate::coop::with_budget(Some(0), || assert!(poll_once(recv.as_mut()).is_pending()));
        poll_once(recv)
    });
}

#[test]
fn a_receive_that_serves_a_sender() {
    receives::<0>(1);
    receives::<7>(1);
}

/// The channel is a list.
#[test]
fn a_receive_of_a_large_channel_that_serves_a_sender() {
    receives::<0>(1 << 17);
    receives::<7>(1 << 14);
}

/// A waiting sender leaves, and its turn goes to another one, whose waker panics. What it did not send panics as well.
fn leaves<const WORDS: usize>(capacity: usize) {
    macro_rules! loses_one {
        ($channel:expr, $tx:ident, $message:ident => $send:expr, $it:ident => $leaves:expr) => {{
            let drops = Rc::new(Cell::new(1));
            #[allow(unused_mut, reason = "receivers of mpmc are shared")]
            let ($tx, mut rx) = $channel;
            for _ in 0..capacity {
                assert!($tx.try_send(Message::<WORDS>::new(&drops)).is_ok());
            }
            let $message = Message::<WORDS>::new(&drops);
            let mut $it = Box::pin($send);
            assert!(poll_once($it.as_mut()).is_pending());
            let mut stays = pin!($tx.send(Message::new(&drops)));
            assert!(Wakes::panicking().poll(stays.as_mut()).is_pending());
            drop(rx.try_recv());
            drops.set(0);
            assert!(panics_in_wake(|| $leaves));
            assert_eq!(drops.get(), 1);
            assert!(poll_once(stays).is_ready());
        }};
    }
    let timeout = Cell::new(false);
    let passed =
        || std::future::poll_fn(|_| if timeout.get() { Poll::Ready(()) } else { Poll::Pending });
    loses_one!(mpsc::channel(capacity), tx, message => tx.send(message), it => drop(it));
    loses_one!(mpmc::bounded(capacity), tx, message => tx.send(message), it => drop(it));
    loses_one!(mpsc::channel(capacity), tx, message => tx.send_until(message, passed()), it => {
        // Its place is there, but no budget to look.
        timeout.set(true);
        crate::coop::with_budget(Some(0), || _ = poll_once(it.as_mut()));
    });
}

#[test]
fn a_sender_that_leaves() {
    leaves::<0>(1);
    leaves::<7>(1);
}

#[test]
fn a_sender_that_leaves_a_large_channel() {
    leaves::<0>(1 << 17);
    leaves::<7>(1 << 14);
}
