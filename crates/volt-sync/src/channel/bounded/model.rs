//! Of both kinds of bounded channels. Each test names the finding of the seed's protocol that it shows repaired. The defective variant
//! is built by `cfg(volt_mutant)`, under which the test fails.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use crate::block_on::block_on;
use crate::channel::closed::WaitClosed;
use crate::channel::error::TryRecvError;
use crate::channel::limited::{Kind, Limited};
use crate::channel::waiter::Waiter;
use crate::primitive::{Arc, explore_preempted, thread};
use crate::test::{Wakes, poll_once};

/// Receives as `mpmc` does.
struct Recv<'a, T>(&'a Limited<T>, Waiter);

impl<'a, T> Recv<'a, T> {
    fn new(channel: &'a Limited<T>) -> Self {
        Self(channel, Waiter::new(1))
    }

    fn waiter(self: Pin<&mut Self>) -> Pin<&mut Waiter> {
        // SAFETY: the waiter is pinned with its future.
        unsafe { self.map_unchecked_mut(|this| &mut this.1) }
    }
}

impl<T> Future for Recv<'_, T> {
    type Output = Option<T>;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let channel = self.0;
        if let Some(value) = channel.recv_if_plain(&self.1) {
            return Poll::Ready(Some(value));
        }
        channel.poll_recv(self.waiter(), cx).map(Result::ok)
    }
}

impl<T> Drop for Recv<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the waiter was pinned if it was polled, and is not moved before it is freed.
        self.0.cancel_receiver(unsafe { Pin::new_unchecked(&mut self.1) });
    }
}

/// Sends as `mpmc` does.
struct Send<'a, T>(&'a Limited<T>, Waiter, Option<T>);

impl<'a, T> Send<'a, T> {
    fn new(channel: &'a Limited<T>, value: T) -> Self {
        Self(channel, Waiter::new(1), Some(value))
    }
}

impl<T> Future for Send<'_, T> {
    type Output = bool;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        // SAFETY: the waiter is pinned with its future and not moved.
        let this = unsafe { self.get_unchecked_mut() };
        if this.0.send_if_plain(&mut this.2, &this.1) {
            return Poll::Ready(true);
        }
        // SAFETY: as above, for the same reason.
        let waiter = unsafe { Pin::new_unchecked(&mut this.1) };
        this.0.poll_send(&mut this.2, waiter, cx).map(|sent| sent.is_ok())
    }
}

impl<T> Drop for Send<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the waiter was pinned if it was polled, and is not moved before it is freed.
        self.0.cancel_sender(unsafe { Pin::new_unchecked(&mut self.1) });
    }
}

fn channel<T>(kind: Kind, capacity: usize) -> Arc<Limited<T>> {
    Arc::new(Limited::of(kind, capacity))
}

fn recv<T>(channel: &Limited<T>) -> Option<T> {
    block_on(Recv::new(channel))
}

fn send<T>(channel: &Limited<T>, value: T) -> bool {
    block_on(Send::new(channel, value))
}

/// The only receiver.
fn recv_only<T>(channel: &Limited<T>) -> Option<T> {
    // SAFETY: the models call this from one thread.
    block_on(poll_fn(|cx| unsafe { channel.poll_recv_only(cx) }))
}

fn model(f: impl Fn(Kind) + Sync + std::marker::Send + Copy + 'static) {
    model_preempted(2, f);
}

/// At most so many preemptions: one, where more would take minutes.
fn model_preempted(bound: usize, f: impl Fn(Kind) + Sync + std::marker::Send + Copy + 'static) {
    for kind in [Kind::Ring, Kind::List] {
        explore_preempted(bound, move || f(kind));
    }
}

#[test]
fn a_value_arrives_with_its_writes() {
    model(|kind| {
        let channel = channel(kind, 2);
        let other = channel.clone();
        let thread = thread::spawn(move || assert!(other.try_send(Box::new(7)).is_ok()));
        assert_eq!(recv(&channel).as_deref(), Some(&7));
        thread.join().unwrap();
    });
}

/// Finding C1, on the receivers' side.
#[test]
fn a_sleeping_receiver_is_woken() {
    model(|kind| {
        let channel = channel(kind, 2);
        let other = channel.clone();
        let thread = thread::spawn(move || assert!(other.try_send(1).is_ok()));
        assert_eq!(recv(&channel), Some(1));
        thread.join().unwrap();
    });
}

/// Finding C1, on the senders' side.
#[test]
fn a_place_is_reused_after_its_value_left() {
    model(|kind| {
        let channel = channel(kind, 1);
        let other = channel.clone();
        let thread = thread::spawn(move || {
            assert!(send(&other, Box::new(1)));
            assert!(send(&other, Box::new(2)));
        });
        assert_eq!(recv(&channel).as_deref(), Some(&1));
        assert_eq!(recv(&channel).as_deref(), Some(&2));
        thread.join().unwrap();
    });
}

#[test]
fn two_senders_take_turns_on_one_place() {
    model(|kind| {
        let channel = channel(kind, 1);
        let threads = [1, 2].map(|value| {
            let other = channel.clone();
            thread::spawn(move || assert!(send(&other, value)))
        });
        assert_eq!(recv(&channel).unwrap() + recv(&channel).unwrap(), 3);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn two_receivers_share_two_messages() {
    model_preempted(1, |kind| {
        let channel = channel(kind, 2);
        let other = channel.clone();
        let receiver = thread::spawn(move || recv(&other).unwrap());
        let other = channel.clone();
        let sender = thread::spawn(move || {
            assert!(other.try_send(1).is_ok());
            assert!(other.try_send(2).is_ok());
        });
        assert_eq!(recv(&channel).unwrap() + receiver.join().unwrap(), 3);
        sender.join().unwrap();
    });
}

/// Findings C3 and C4. (C2, a receiver that registers where the sender no longer looks, cannot be
/// told: there is one place to register.)
#[test]
fn the_flag_stays_while_others_sleep() {
    model(|kind| {
        let channel = channel(kind, 2);
        let (first, second) = (Wakes::new(), Wakes::new());
        let mut one = pin!(Recv::new(&channel));
        let mut two = pin!(Recv::new(&channel));
        assert!(first.poll(one.as_mut()).is_pending());
        assert!(second.poll(two.as_mut()).is_pending());
        assert!(channel.try_send(1).is_ok());
        assert_eq!((first.count(), second.count()), (1, 0));
        assert!(channel.try_send(2).is_ok());
        assert_eq!((first.count(), second.count()), (1, 1));
        assert_eq!(poll_once(one), Poll::Ready(Some(1)));
        assert_eq!(poll_once(two), Poll::Ready(Some(2)));
    });
}

/// Finding C5.
#[test]
fn a_cancelled_receiver_passes_its_turn_on() {
    model(|kind| {
        let channel = channel(kind, 2);
        let other = channel.clone();
        let mut second = pin!(Recv::new(&*channel));
        {
            let mut first = pin!(Recv::new(&*channel));
            assert!(poll_once(first.as_mut()).is_pending());
            assert!(poll_once(second.as_mut()).is_pending());
            let thread = thread::spawn(move || assert!(other.try_send(1).is_ok()));
            // Dropped while it sleeps, while it is woken, or afterwards.
            drop(first);
            drop(thread);
        }
        assert_eq!(block_on(second), Some(1));
    });
}

/// Finding C5, mirrored.
#[test]
fn a_cancelled_sender_passes_its_turn_on() {
    model(|kind| {
        let channel = channel(kind, 1);
        assert!(channel.try_send(0).is_ok());
        let other = channel.clone();
        let mut second = pin!(Send::new(&*channel, 2));
        let thread;
        {
            let mut first = pin!(Send::new(&*channel, 1));
            assert!(poll_once(first.as_mut()).is_pending());
            assert!(poll_once(second.as_mut()).is_pending());
            thread = thread::spawn(move || assert_eq!(other.try_recv(), Ok(0)));
        }
        assert!(block_on(second));
        thread.join().unwrap();
        assert_eq!(channel.try_recv(), Ok(2));
    });
}

/// The cancelled sender was served a moment ago, and a waker that its cancellation has to wake panics.
#[test]
fn a_panicking_waker_loses_no_capacity_of_a_cancelled_sender() {
    model(|kind| {
        let channel = channel(kind, 2);
        (0..2).for_each(|i| channel.try_send(i).unwrap());
        let other = channel.clone();
        let mut cancelled = Box::pin(Send::new(&channel, 2));
        assert!(poll_once(cancelled.as_mut()).is_pending());
        let mut served = Box::pin(Send::new(&channel, 3));
        let _ = Wakes::panicking().poll(served.as_mut());
        let receiver = thread::spawn(move || {
            // Either thread may be the one that wakes.
            let _ = catch_unwind(AssertUnwindSafe(|| other.try_recv()));
            let _ = catch_unwind(AssertUnwindSafe(|| other.try_recv()));
        });
        let _ = catch_unwind(AssertUnwindSafe(|| drop(cancelled)));
        receiver.join().unwrap();
        drop(served);
        assert_eq!(channel.free(), 2);
    });
}

/// A sender that was served, and whose message comes too late for a receiver that leaves; also if it needs a block.
#[test]
fn who_is_sent_away_or_has_sent_knows_it() {
    for capacity in [1, 2] {
        model(move |kind| {
            let channel = channel(kind, capacity);
            let value = Arc::new(());
            (0..capacity).for_each(|_| assert!(channel.try_send(None).is_ok()));
            let (mut waiter, mut message) = (Box::pin(Waiter::new(1)), Some(Some(value.clone())));
            let silent = || Context::from_waker(std::task::Waker::noop());
            assert!(channel.poll_send(&mut message, waiter.as_mut(), &mut silent()).is_pending());
            assert!(channel.try_recv().is_ok());
            let other = channel.clone();
            let sender = thread::spawn(move || {
                let sent = other.poll_send(&mut message, waiter.as_mut(), &mut silent());
                assert_eq!(sent == Poll::Ready(Ok(())), message.is_none());
                message.is_none()
            });
            channel.close();
            let messages = std::iter::from_fn(|| channel.try_recv().ok());
            let received = messages.filter(Option::is_some).count();
            channel.discard();
            let sent = sender.join().unwrap();
            assert!(sent || received == 0);
            assert_eq!((channel.len(), channel.free()), (0, capacity), "nobody receives it");
            assert_eq!(Arc::strong_count(&value), 1);
        });
    }
}

/// Finding C6: one message is published behind one that is not; two receivers come.
#[test]
fn nobody_sleeps_beside_an_unpublished_place() {
    model(|kind| {
        let channel = channel(kind, 2);
        // A list has no such place.
        let Limited::Ring(ring) = &*channel else { return };
        let at = ring.ring.claim_tail().unwrap();
        assert!(channel.try_send(2).is_ok());
        let (first, second) = (Wakes::new(), Wakes::new());
        let mut one = pin!(Recv::new(&channel));
        let mut two = pin!(Recv::new(&channel));
        assert!(first.poll(one.as_mut()).is_pending());
        assert!(second.poll(two.as_mut()).is_pending());
        at.publish(1);
        ring.published();
        // Both come back: by themselves, or woken.
        assert!(first.count() > 0 && second.count() > 0, "a receiver sleeps beside a message");
        assert_eq!(poll_once(one), Poll::Ready(Some(1)));
        assert_eq!(poll_once(two), Poll::Ready(Some(2)));
    });
}

/// Finding C7: what was sent before the close is received.
#[test]
fn a_message_sent_before_the_close_is_received() {
    model(|kind| {
        let channel = channel(kind, 2);
        let other = channel.clone();
        let thread = thread::spawn(move || {
            assert!(other.try_send(1).is_ok());
            assert!(other.close());
        });
        assert_eq!(recv(&channel), Some(1));
        assert_eq!(recv(&channel), None);
        thread.join().unwrap();
    });
}

#[test]
fn the_close_wakes_two_receivers() {
    model(|kind| {
        let channel = channel::<()>(kind, 1);
        let other = channel.clone();
        let receiver = thread::spawn(move || assert_eq!(recv(&other), None));
        let other = channel.clone();
        let closer = thread::spawn(move || assert!(other.close()));
        assert_eq!(recv(&channel), None);
        closer.join().unwrap();
        receiver.join().unwrap();
    });
}

#[test]
fn the_close_refuses_a_sleeping_sender_or_it_has_sent() {
    model(|kind| {
        let channel = channel(kind, 1);
        assert!(channel.try_send(0).is_ok());
        let other = channel.clone();
        let closer = thread::spawn(move || {
            let first = other.try_recv();
            other.close();
            first
        });
        let sent = send(&channel, 1);
        assert_eq!(closer.join().unwrap(), Ok(0));
        assert_eq!(channel.try_recv(), if sent { Ok(1) } else { Err(TryRecvError::Disconnected) });
    });
}

#[test]
fn the_last_reservation_after_the_close_wakes_both_receivers() {
    model(|kind| {
        let channel = channel(kind, 1);
        channel.try_reserve(1).unwrap();
        channel.close();
        let other = channel.clone();
        let receiver = thread::spawn(move || recv(&other));
        let other = channel.clone();
        let sender = thread::spawn(move || other.send_reserved(1));
        let received = recv(&channel);
        sender.join().unwrap();
        assert_eq!(received.is_some(), receiver.join().unwrap().is_none());
    });
}

#[test]
fn a_reservation_given_back_after_the_close_ends_the_channel() {
    model(|kind| {
        let channel = channel::<()>(kind, 2);
        channel.try_reserve(2).unwrap();
        channel.close();
        let other = channel.clone();
        let sender = thread::spawn(move || other.unreserve(2));
        assert_eq!(recv_only(&channel), None);
        sender.join().unwrap();
    });
}

#[test]
fn a_reservation_given_back_serves_a_sleeping_sender() {
    model(|kind| {
        let channel = channel(kind, 1);
        channel.try_reserve(1).unwrap();
        let other = channel.clone();
        let holder = thread::spawn(move || other.unreserve(1));
        assert!(send(&channel, 1));
        holder.join().unwrap();
        assert_eq!(channel.try_recv(), Ok(1));
        assert_eq!(channel.free(), 1);
    });
}

/// The first wants both places, the second one; nobody overtakes.
#[test]
fn a_large_need_is_served_before_a_later_small_one() {
    model(|kind| {
        let channel = channel(kind, 2);
        assert!(channel.try_send(1).is_ok());
        assert!(channel.try_send(2).is_ok());
        let mut large = pin!(Waiter::new(2));
        let poll = |waiter: Pin<&mut Waiter>, channel: &Limited<i32>| {
            channel.poll_reserve(waiter, &mut Context::from_waker(std::task::Waker::noop()))
        };
        assert!(poll(large.as_mut(), &channel).is_pending());
        let other = channel.clone();
        let receiver = thread::spawn(move || {
            assert_eq!(other.try_recv(), Ok(1));
            assert_eq!(other.try_recv(), Ok(2));
        });
        let mut small = pin!(Waiter::new(1));
        let overtook = poll(small.as_mut(), &channel).is_ready();
        assert!(!overtook || !large.is_engaged() || channel.free() == 0);
        receiver.join().unwrap();
        assert!(poll(large.as_mut(), &channel).is_ready());
        assert!(!overtook);
        channel.cancel_sender(small);
        channel.unreserve(2);
        assert_eq!(channel.free(), 2);
    });
}

/// The waker given last is the one that is woken.
#[test]
fn a_changed_waker_is_the_one_that_is_woken() {
    model(|kind| {
        let channel = channel(kind, 1);
        let other = channel.clone();
        let mut receiver = pin!(Recv::new(&*channel));
        let stale = Wakes::new();
        assert!(stale.poll(receiver.as_mut()).is_pending());
        let thread = thread::spawn(move || assert!(other.try_send(1).is_ok()));
        assert_eq!(block_on(receiver), Some(1));
        thread.join().unwrap();
        assert_eq!(stale.clones(), 0, "the old waker is dropped");
    });
}

#[test]
fn the_only_receiver_gets_everything_from_two_senders() {
    model(|kind| {
        let channel = channel(kind, 1);
        let threads = [1, 2].map(|value| {
            let other = channel.clone();
            thread::spawn(move || assert!(send(&other, value)))
        });
        assert_eq!(recv_only(&channel).unwrap() + recv_only(&channel).unwrap(), 3);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn the_only_receiver_takes_a_batch() {
    model(|kind| {
        let channel = channel(kind, 2);
        let other = channel.clone();
        let sender = thread::spawn(move || {
            for value in [1, 2, 3] {
                assert!(send(&other, Box::new(value)));
            }
        });
        let mut got = Vec::new();
        while got.len() < 3 {
            // SAFETY: this thread is the only receiver.
            block_on(poll_fn(|cx| unsafe { channel.poll_recv_many_only(&mut got, 4, cx) }));
        }
        assert_eq!(got.iter().map(|value| **value).sum::<i32>(), 6);
        sender.join().unwrap();
    });
}

#[test]
fn the_close_is_awaited() {
    model(|kind| {
        let channel = channel::<()>(kind, 1);
        let other = channel.clone();
        let closer = thread::spawn(move || other.close());
        block_on(WaitClosed::new(&*channel));
        assert!(channel.is_closed());
        assert!(closer.join().unwrap());
    });
}
