//! Senders that wait for a place: what both kinds of bounded channels have in common.
//!
//! Purpose: one protocol, the states of which are those of the [`Waiter`], over two kinds of places.
//!
//! | State         | The sender                                                                       |
//! |---------------|----------------------------------------------------------------------------------|
//! | IDLE, YIELDED | tries, may give others a turn, and queues                                         |
//! | WAITING       | is queued                                                                        |
//! | NOTIFIED      | owns the reservation of what it needs: uses it, or gives it back if it is dropped |
//! | CLOSED        | was sent away by the close                                                       |
//! | DONE          | has sent, reserved, or been refused                                              |
//!
//! Invariants:
//! 1. Whoever frees places reserves as many for the oldest sender as it needs, then the next, as long as there are as
//!    many. Newcomers get none while a sender is queued.
//! 2. Nobody gets a reservation after the close. A `send` that was given one before gives it back when it is polled, or
//!    dropped; the receivers' end waits for that, as for the other reservations.
//!
//! Progress: that of the kind (`channel::bounded`, `channel::list`).

use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker, ready};

use super::waiter::{State, Waiter, wake_in_rounds};
use super::{Refused, settle};
use crate::coop;
use crate::first_panic::{self, FirstPanic};
use crate::wake_list::WakeList;

pub(crate) trait Senders<T>: Sized {
    /// Sends if there is a place that nobody waits for. Then `value` is taken and `waiter` DONE, before a receiver is
    /// woken.
    fn send_at_once(&self, value: &mut Option<T>, waiter: &Waiter) -> Result<(), Refused>;

    /// The same, with the reservation that `waiter` owns. `Busy` if a receiver has still to leave the place.
    fn send_served(&self, value: &mut Option<T>, waiter: &Waiter) -> Result<(), Refused>;

    /// Reserves `count` places if they are free and nobody waits for them.
    fn try_reserve(&self, count: usize) -> Result<(), Refused>;

    /// Gives reserved places back, to those who wait first.
    fn unreserve(&self, count: usize);

    /// Queues a sender, unless it gets its reservation at once (then it is NOTIFIED) or the channel is
    /// closed.
    fn enqueue_sender(&self, waiter: Pin<&mut Waiter>, waker: &Waker) -> Result<(), Refused>;

    /// As [`Waiter::still_waiting`].
    fn is_still_waiting(&self, waiter: Pin<&mut Waiter>, waker: &Waker) -> bool;

    /// Takes `node` out of the queue if it is there, and serves those behind it, who may need less. True if `wakes`
    /// was too short.
    ///
    /// # Safety
    /// `node` is alive, and if it is WAITING it is a sender in this channel's queue.
    unsafe fn leave_queue(
        &self,
        node: NonNull<Waiter>,
        removed: &mut Option<Waker>,
        wakes: &mut WakeList,
    ) -> bool;

    /// Sends, or waits in the order of arrival.
    ///
    /// `value` is taken when it is sent.
    fn poll_send(
        &self,
        value: &mut Option<T>,
        mut waiter: Pin<&mut Waiter>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ()>> {
        ready!(coop::poll_proceed(cx));
        waiter.polled("send");
        if matches!(waiter.state(), State::Idle | State::Yielded) {
            match self.send_at_once(value, &waiter) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(Refused::Closed) => {
                    waiter.set_state(State::Done);
                    return Poll::Ready(Err(()));
                }
                Err(_) if waiter.give_turn(self, cx) => return Poll::Pending,
                Err(_) => {}
            }
        }
        if ready!(self.poll_enqueued(waiter.as_mut(), cx)).is_err() {
            waiter.set_state(State::Done);
            return Poll::Ready(Err(()));
        }
        let mut attempt = 0;
        loop {
            match self.send_served(value, &waiter) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(Refused::Closed) => {
                    // Served, but the close came before the message.
                    waiter.set_state(State::Done);
                    first_panic::or_drop(|| self.unreserve(1), || value.take());
                    return Poll::Ready(Err(()));
                }
                Err(_) if settle(attempt) => attempt += 1,
                Err(_) => break,
            }
        }
        // Still NOTIFIED: a drop gives the reservation back.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reserves what `waiter` needs, or waits in the order of arrival. The caller owns the
    /// reservation after `Ready(Ok)`.
    fn poll_reserve(
        &self,
        mut waiter: Pin<&mut Waiter>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ()>> {
        ready!(coop::poll_proceed(cx));
        if matches!(waiter.polled("reserve"), State::Idle | State::Yielded) {
            match self.try_reserve(waiter.need()) {
                Ok(()) => {
                    waiter.turns_paid(self);
                    waiter.set_state(State::Notified);
                }
                Err(Refused::Closed) => {}
                Err(_) if waiter.give_turn(self, cx) => return Poll::Pending,
                Err(_) => {}
            }
        }
        let outcome = ready!(self.poll_enqueued(waiter.as_mut(), cx));
        waiter.set_state(State::Done);
        coop::made_progress();
        Poll::Ready(outcome)
    }

    /// Ready once the waiter is NOTIFIED, which means that its reservation is made, or the channel
    /// closed.
    fn poll_enqueued(
        &self,
        mut waiter: Pin<&mut Waiter>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ()>> {
        loop {
            match waiter.state() {
                State::Notified => return Poll::Ready(Ok(())),
                State::Closed => return Poll::Ready(Err(())),
                State::Waiting => {
                    if self.is_still_waiting(waiter.as_mut(), cx.waker()) {
                        return Poll::Pending;
                    }
                }
                State::Idle | State::Yielded | State::Done => {
                    match self.enqueue_sender(waiter.as_mut(), cx.waker()) {
                        Ok(()) => {}
                        Err(Refused::Closed) => waiter.set_state(State::Closed),
                        Err(_) => return Poll::Pending,
                    }
                }
            }
        }
    }

    /// A waiting sender's future is dropped.
    fn cancel_sender(&self, mut waiter: Pin<&mut Waiter>) {
        let state = waiter.state();
        let need = waiter.need();
        let node = waiter.as_mut().node();
        // Capacity is passed on also if a waker panics.
        let mut panic = FirstPanic::new();
        if state == State::Waiting {
            let mut removed = None;
            // SAFETY: alive; a WAITING sender is in this queue.
            panic = wake_in_rounds(|wakes| unsafe { self.leave_queue(node, &mut removed, wakes) });
            panic.catch(|| drop(removed));
        }
        if waiter.state() == State::Notified {
            // Not once more when the waiter is dropped.
            waiter.set_state(State::Done);
            // Finding C5, mirrored: its capacity is for the next.
            // Killed by `channel::bounded::model::a_cancelled_sender_passes_its_turn_on`.
            #[cfg(not(volt_mutant = "channel_c5_sender"))]
            panic.catch(|| self.unreserve(need));
        }
        panic.resume();
    }
}
