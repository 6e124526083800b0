use std::cell::Cell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::{Kind, Limited, MAX_CAPACITY, RING_BYTES};
use crate::block_on::block_on;
use crate::channel::Refused;
use crate::channel::error::TryRecvError;
use crate::channel::ring::Ring;
use crate::channel::waiter::Waiter;
use crate::test::{Wakes, poll_once};
use crate::{mpmc, mpsc};

const KINDS: [Kind; 2] = [Kind::Ring, Kind::List];

#[test]
fn what_does_not_fit_into_a_ring_of_a_mebibyte_is_a_list() {
    let kind = Kind::for_capacity::<[u64; 7]>;
    if cfg!(not(volt_list)) {
        assert_eq!(Ring::<[u64; 7]>::bytes(1 << 14), RING_BYTES);
        assert_eq!((kind(1), kind(1 << 14)), (Kind::Ring, Kind::Ring));
    }
    assert_eq!((kind((1 << 14) + 1), kind(MAX_CAPACITY)), (Kind::List, Kind::List));
    // Blocks of large messages would take more than a few places of them.
    let kind = Kind::for_capacity::<[u8; 1 << 20]>;
    if cfg!(not(volt_list)) {
        assert_eq!((kind(1), kind(128)), (Kind::Ring, Kind::Ring));
    }
    assert_eq!(kind(129), Kind::List);
    assert_eq!(Kind::for_capacity::<()>(MAX_CAPACITY), Kind::List);
}

#[test]
fn places_are_counted_alike() {
    for kind in KINDS {
        let channel = Limited::of(kind, 100);
        for message in 0..70 {
            assert_eq!(channel.try_send(message), Ok(()));
        }
        channel.try_reserve(20).unwrap();
        assert_eq!((channel.capacity(), channel.len(), channel.free()), (100, 70, 10), "{kind:?}");
        assert_eq!(channel.try_reserve(11), Err(Refused::Full));
        channel.try_reserve(10).unwrap();
        assert_eq!(channel.try_send(70), Err((70, Refused::Full)));
        assert_eq!(channel.try_recv(), Ok(0));
        assert_eq!(channel.try_send(70), Ok(()));
        channel.unreserve(15);
        assert_eq!((channel.len(), channel.free()), (70, 15));
        (71..86).for_each(|message| channel.send_reserved(message));
        assert_eq!((channel.len(), channel.free()), (85, 15));
        assert!((1..86).all(|message| channel.try_recv() == Ok(message)));
        assert_eq!(channel.try_recv(), Err(TryRecvError::Empty));
        assert_eq!((channel.len(), channel.free()), (0, 100), "{kind:?}");
        let debug = format!("{channel:?}");
        assert!(debug.contains("capacity: 100") && debug.contains("free: 100"), "{debug}");
    }
}

/// What is reserved may be sent after the close, and only then is the channel at its end.
#[test]
fn reservations_outlive_the_close_alike() {
    for kind in KINDS {
        let channel = Limited::of(kind, 3);
        channel.try_reserve(2).unwrap();
        assert_eq!(channel.try_send(1), Ok(()));
        assert!(channel.close() && !channel.close());
        assert_eq!(channel.try_send(2), Err((2, Refused::Closed)));
        assert_eq!(channel.try_reserve(1), Err(Refused::Closed));
        assert_eq!(channel.try_recv(), Ok(1));
        assert_eq!(channel.try_recv(), Err(TryRecvError::Empty), "{kind:?}: two are reserved");
        channel.send_reserved(3);
        assert_eq!(channel.try_recv(), Ok(3));
        assert_eq!(channel.try_recv(), Err(TryRecvError::Empty), "{kind:?}: one is reserved");
        channel.unreserve(1);
        assert_eq!(channel.try_recv(), Err(TryRecvError::Disconnected), "{kind:?}");
    }
}

/// A sender that waits for a place keeps nobody from none.
#[test]
fn none_are_reserved_at_once_alike() {
    for kind in KINDS {
        let channel = Limited::of(kind, 1);
        channel.try_send(1).unwrap();
        let mut sender = pin!(Waiter::new(1));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(channel.poll_reserve(sender.as_mut(), &mut cx).is_pending());
        assert_eq!(channel.try_reserve(0), Ok(()), "{kind:?}");
        assert!(channel.poll_reserve(pin!(Waiter::new(0)), &mut cx) == Poll::Ready(Ok(())));
        assert_eq!(channel.try_recv(), Ok(1));
        assert!(channel.poll_reserve(sender.as_mut(), &mut cx) == Poll::Ready(Ok(())));
        assert_eq!((channel.len(), channel.free()), (0, 0));
        channel.close();
        assert_eq!(channel.try_reserve(0), Err(Refused::Closed), "{kind:?}");
        assert!(channel.poll_reserve(pin!(Waiter::new(0)), &mut cx) == Poll::Ready(Err(())));
    }
}

#[test]
fn what_nobody_receives_any_more_leaves_its_places_alike() {
    for kind in KINDS {
        let (channel, message) = (Limited::of(kind, 100), Rc::new(()));
        channel.try_reserve(1).unwrap();
        (0..50).for_each(|_| drop(channel.try_send(message.clone())));
        channel.close();
        channel.discard();
        assert_eq!((Rc::strong_count(&message), channel.len(), channel.free()), (1, 0, 99));
        channel.send_reserved(message.clone());
        assert_eq!(Rc::strong_count(&message), 2, "{kind:?}");
        drop(channel);
        assert_eq!(Rc::strong_count(&message), 1, "{kind:?}");
    }
}

/// Its drop panics, and is counted.
struct Bomb(Rc<Cell<u32>>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
        panic!("a message that panics");
    }
}

/// A few of them, and more than one block, with and without a limit.
#[test]
fn messages_that_panic_in_drop_leave_none_behind() {
    for (capacity, count) in [(Some(4), 3), (Some(100), 70), (Some(1 << 20), 70), (None, 70)] {
        let drops = Rc::default();
        let (tx, rx) = capacity.map_or_else(mpmc::unbounded, mpmc::bounded);
        (0..count).for_each(|_| drop(tx.try_send(Bomb(Rc::clone(&drops)))));
        assert!(catch_unwind(AssertUnwindSafe(|| drop(rx))).is_err());
        assert_eq!(drops.get(), count, "{capacity:?}: although the sender is still there");
    }
}

/// The message has been sent.
#[test]
fn a_receivers_waker_that_panics_comes_after_the_end_of_the_send() {
    for kind in KINDS {
        let channel = Limited::of(kind, 1);
        let wakes = Wakes::panicking();
        let mut waiter = pin!(Waiter::new(1));
        let poll = |cx: &mut Context<'_>| channel.poll_recv(waiter.as_mut(), cx);
        assert!(wakes.poll(pin!(poll_fn(poll))).is_pending());
        let sent = catch_unwind(AssertUnwindSafe(|| channel.try_send(1)));
        assert!(sent.is_err(), "{kind:?}");
        assert_eq!(channel.len(), 1);
        channel.cancel_receiver(waiter);
        assert_eq!(channel.try_recv(), Ok(1));
    }
}

/// As large as nobody's memory.
#[test]
fn a_channel_of_the_largest_capacity_takes_the_memory_of_its_messages() {
    let (tx, mut rx) = mpsc::channel(MAX_CAPACITY);
    assert_eq!((tx.capacity(), tx.max_capacity()), (MAX_CAPACITY, MAX_CAPACITY));
    let permits = tx.try_reserve_many(MAX_CAPACITY - 1).unwrap();
    assert_eq!(tx.capacity(), 1);
    tx.try_send([1_u8; 200]).unwrap();
    assert!(tx.try_send([2; 200]).is_err());
    let mut send = pin!(tx.send([3; 200]));
    assert!(poll_once(send.as_mut()).is_pending());
    drop(permits);
    assert!(poll_once(send).is_ready());
    assert_eq!(rx.try_recv(), Ok([1; 200]));
    assert_eq!(rx.try_recv(), Ok([3; 200]));
    assert_eq!((tx.capacity(), rx.len()), (MAX_CAPACITY, 0));
}

/// Threads that fill it, wait and reserve; each message arrives once, and those of a sender in their order.
#[test]
fn threads_meet_in_a_list() {
    const SENDERS: u32 = 3;
    const MESSAGES: u32 = if cfg!(volt_tsan) { 2_000 } else { 20_000 };
    let channel = Limited::of(Kind::List, 40);
    let send = |sender: u32| {
        for message in 0..MESSAGES {
            let mut value = Some((sender, message));
            match message % 3 {
                0 => {
                    block_on(async {
                        let mut waiter = pin!(Waiter::new(1));
                        let poll = |cx: &mut Context<'_>| channel.poll_reserve(waiter.as_mut(), cx);
                        assert_eq!(poll_fn(poll).await, Ok(()));
                    });
                    channel.send_reserved((sender, message));
                }
                1 => {
                    while let Some(tried) = value.take() {
                        value = channel.try_send(tried).err().map(|(back, _)| back);
                        std::thread::yield_now();
                    }
                }
                _ => block_on(async {
                    let mut waiter = pin!(Waiter::new(1));
                    let poll =
                        |cx: &mut Context<'_>| channel.poll_send(&mut value, waiter.as_mut(), cx);
                    assert_eq!(poll_fn(poll).await, Ok(()));
                }),
            }
        }
    };
    let receive = || {
        let mut last = [None; SENDERS as usize];
        let mut count = 0;
        loop {
            let mut waiter = pin!(Waiter::new(1));
            let poll = |cx: &mut Context<'_>| channel.poll_recv(waiter.as_mut(), cx);
            let Ok((sender, message)) = block_on(poll_fn(poll)) else {
                return count;
            };
            let before = last[sender as usize].replace(message);
            assert!(before < Some(message), "{sender}: {message} after {before:?}");
            count += 1;
        }
    };
    let received: u32 = std::thread::scope(|scope| {
        let receivers = [(); 2].map(|()| scope.spawn(receive));
        let senders = std::array::from_fn::<_, { SENDERS as usize }, _>(|sender| {
            scope.spawn(move || send(sender as u32))
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        channel.close();
        receivers.into_iter().map(|receiver| receiver.join().unwrap()).sum()
    });
    assert_eq!(received, SENDERS * MESSAGES);
    assert_eq!((channel.len(), channel.free()), (0, 40));
}

/// Also those that use up what was reserved when nobody received any more.
#[test]
fn late_messages_that_panic_in_drop_leave_none_behind() {
    for kind in KINDS {
        let drops = Rc::default();
        let channel = Limited::of(kind, 4);
        channel.try_reserve(3).unwrap();
        channel.close();
        channel.discard();
        (0..3).for_each(|_| channel.send_reserved(Bomb(Rc::clone(&drops))));
        assert!(catch_unwind(AssertUnwindSafe(|| drop(channel))).is_err());
        assert_eq!(drops.get(), 3, "{kind:?}");
    }
}

/// A waker that is woken by the close, before others are, gives a place back.
#[test]
fn nobody_is_served_after_the_close() {
    struct GivesBack(Arc<Limited<u8>>);
    impl Wake for GivesBack {
        fn wake(self: Arc<Self>) {
            self.0.unreserve(1);
        }
    }
    for kind in KINDS {
        let channel = Arc::new(Limited::of(kind, 1));
        channel.try_reserve(1).unwrap();
        let mut waiters: Vec<_> = (0..40).map(|_| Box::pin(Waiter::new(1))).collect();
        for (index, waiter) in waiters.iter_mut().enumerate() {
            let waker = match index {
                0 => Arc::new(GivesBack(channel.clone())).into(),
                _ => Waker::noop().clone(),
            };
            let mut cx = Context::from_waker(&waker);
            assert!(channel.poll_reserve(waiter.as_mut(), &mut cx).is_pending());
        }
        channel.close();
        let mut cx = Context::from_waker(Waker::noop());
        for mut waiter in waiters {
            let outcome = channel.poll_reserve(waiter.as_mut(), &mut cx);
            assert_eq!(outcome, Poll::Ready(Err(())), "{kind:?}");
        }
        assert_eq!(channel.try_recv(), Err(TryRecvError::Disconnected));
    }
}

/// Senders that refill it meanwhile are not served for ever, and if one of their wakers panics no message is lost.
#[test]
fn a_batch_is_what_was_there() {
    struct Refills(Arc<Limited<u32>>);
    impl Wake for Refills {
        fn wake(self: Arc<Self>) {
            // The place is the woken one's.
            self.0.send_reserved(7);
            panic!("a waker that panics");
        }
    }
    for kind in KINDS {
        let channel = Arc::new(Limited::of(kind, 100));
        (0..100).for_each(|message| channel.try_send(message).unwrap());
        let mut waiter = Box::pin(Waiter::new(1));
        let waker = Arc::new(Refills(channel.clone())).into();
        let mut cx = Context::from_waker(&waker);
        assert!(channel.poll_reserve(waiter.as_mut(), &mut cx).is_pending());
        let mut batch = Vec::new();
        let mut cx = Context::from_waker(Waker::noop());
        let receive = |batch: &mut Vec<u32>, limit, cx: &mut Context<'_>| {
            // SAFETY: this thread is the only receiver.
            catch_unwind(AssertUnwindSafe(|| unsafe {
                channel.poll_recv_many_only(batch, limit, cx)
            }))
        };
        assert!(receive(&mut batch, 70, &mut cx).is_err(), "{kind:?}");
        assert_eq!(batch, Vec::from_iter(0..70));
        assert!(matches!(receive(&mut batch, usize::MAX, &mut cx), Ok(Poll::Ready(31))));
        assert_eq!(batch, Vec::from_iter((0..100).chain([7])));
        assert_eq!((channel.len(), channel.free()), (0, 100));
    }
}
