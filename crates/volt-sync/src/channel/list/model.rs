use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use super::Unbounded;
use crate::block_on::block_on;
use crate::channel::closed::WaitClosed;
use crate::channel::waiter::Waiter;
use crate::primitive::{Arc, explore, explore_preempted, thread};
use crate::test::poll_once;

/// Receives as `mpmc` does.
struct Recv<'a, T>(&'a Unbounded<T>, Waiter);

impl<T> Future for Recv<'_, T> {
    type Output = Option<T>;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        // SAFETY: the waiter is pinned with its future and not moved.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above, for the same reason.
        let waiter = unsafe { Pin::new_unchecked(&mut this.1) };
        this.0.poll_recv(waiter, cx).map(Result::ok)
    }
}

impl<T> Drop for Recv<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the waiter was pinned if it was polled, and is not moved before it is freed.
        self.0.cancel_receiver(unsafe { Pin::new_unchecked(&mut self.1) });
    }
}

fn recv<T>(channel: &Unbounded<T>) -> Recv<'_, T> {
    Recv(channel, Waiter::new(1))
}

fn recv_only<T>(channel: &Unbounded<T>) -> Option<T> {
    block_on(poll_fn(|cx| channel.poll_recv_only(cx)))
}

#[test]
fn messages_arrive_in_order_across_blocks() {
    explore(|| {
        let channel = Arc::new(Unbounded::new());
        let other = channel.clone();
        let sender = thread::spawn(move || {
            for value in 0..3 {
                other.send(Box::new(value)).unwrap();
            }
            other.close();
        });
        for value in 0..3 {
            assert_eq!(recv_only(&channel).as_deref(), Some(&value));
        }
        assert_eq!(recv_only(&channel), None);
        sender.join().unwrap();
    });
}

#[test]
fn two_receivers_share_the_messages_of_two_senders() {
    explore_preempted(1, || {
        let channel = Arc::new(Unbounded::new());
        let senders = [1, 2].map(|value| {
            let other = channel.clone();
            thread::spawn(move || other.send(value).unwrap())
        });
        let other = channel.clone();
        let receiver = thread::spawn(move || block_on(recv(&other)).unwrap());
        assert_eq!(block_on(recv(&channel)).unwrap() + receiver.join().unwrap(), 3);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
}

/// Finding C5.
#[test]
fn a_cancelled_receiver_passes_its_turn_on() {
    explore(|| {
        let channel = Arc::new(Unbounded::new());
        let other = channel.clone();
        let mut second = pin!(recv(&*channel));
        {
            let mut first = pin!(recv(&*channel));
            assert!(poll_once(first.as_mut()).is_pending());
            assert!(poll_once(second.as_mut()).is_pending());
            drop(thread::spawn(move || other.send(1).unwrap()));
        }
        assert_eq!(block_on(second), Some(1));
    });
}

#[test]
fn the_close_wakes_receivers_and_those_who_wait_for_it() {
    explore(|| {
        let channel = Arc::new(Unbounded::<()>::new());
        let other = channel.clone();
        let waiting = thread::spawn(move || block_on(WaitClosed::new(&*other)));
        let other = channel.clone();
        let closer = thread::spawn(move || assert!(other.close()));
        assert_eq!(block_on(recv(&channel)), None);
        closer.join().unwrap();
        waiting.join().unwrap();
    });
}
