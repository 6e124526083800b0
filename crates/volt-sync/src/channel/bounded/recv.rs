//! Receivers of a bounded channel; the protocol is in [`channel::bounded`](super).

use std::pin::Pin;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::task::{Context, Poll, Waker, ready};

use super::{Bounded, NO_TURNS, Queues, model_fence};
use crate::channel::error::TryRecvError;
use crate::channel::waiter::{Place, State, Waiter, wake_in_rounds};
use crate::channel::{Nothing, settle};
use crate::coop;
use crate::primitive::spin;

impl<T> Bounded<T> {
    /// Receives if there is a message.
    #[inline]
    pub(crate) fn try_recv(&self) -> Result<T, TryRecvError> {
        let Some(full) = self.ring.claim_head_once() else { return self.try_recv_slow() };
        Ok(self.freed_after(full.take()))
    }

    /// As `freed`, and gives `value` back: a caller that ends with this keeps nothing on its stack. A larger value is
    /// there anyway, and would be copied.
    #[inline(always)]
    fn freed_after(&self, value: T) -> T {
        if size_of::<T>() > size_of::<usize>() {
            if self.senders_wait() {
                let panic = self.serve_senders();
                if panic.happened() {
                    panic.resume_without(value);
                }
            }
            return value;
        }
        if self.senders_wait() { self.serve_senders_after(value) } else { value }
    }

    #[inline(never)]
    fn serve_senders_after(&self, value: T) -> T {
        let panic = self.serve_senders();
        if panic.happened() {
            panic.resume_without(value);
        }
        value
    }

    #[inline(never)]
    fn try_recv_slow(&self) -> Result<T, TryRecvError> {
        let mut attempt = 0;
        loop {
            match self.ring.claim_head() {
                Ok(full) => return Ok(self.freed_after(full.take())),
                Err(Nothing::Busy) => spin(attempt),
                Err(nothing) => return Err(nothing.into()),
            }
            attempt = attempt.saturating_add(1);
        }
    }

    /// A poll of a `recv` that has not waited, if it is plain: there is budget, and a message that is
    /// published. `None` says only that this was not so: the caller goes on with
    /// [`poll_recv`](Self::poll_recv), as after [`send_if_plain`](Self::send_if_plain).
    #[inline(always)]
    pub(crate) fn recv_if_plain(&self, waiter: &Waiter) -> Option<T> {
        if !waiter.is_new() || !coop::has_budget_remaining() {
            return None;
        }
        let value = self.ring.claim_head_once()?.take();
        waiter.set_state(State::Done);
        coop::made_progress();
        Some(self.freed_after(value))
    }

    /// Receives, or waits in the order of arrival. `Err` if nothing can come any more.
    pub(crate) fn poll_recv(
        &self,
        mut waiter: Pin<&mut Waiter>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<T, ()>> {
        ready!(coop::poll_proceed(cx));
        if waiter.polled("recv") == State::Waiting
            && waiter.as_mut().still_waiting(&self.waiting.queues, cx.waker())
        {
            return Poll::Pending;
        }
        let mut attempt = 0;
        loop {
            match self.ring.claim_head() {
                Ok(full) => {
                    let value = full.take();
                    waiter.turns_paid(self);
                    waiter.set_state(State::Done);
                    coop::made_progress();
                    return Poll::Ready(Ok(self.freed_after(value)));
                }
                Err(Nothing::Closed) => {
                    waiter.set_state(State::Done);
                    coop::made_progress();
                    return Poll::Ready(Err(()));
                }
                Err(Nothing::Busy) if settle(attempt) => attempt += 1,
                Err(Nothing::Busy) => {
                    // Comes back by itself; if it is dropped before, it must not keep a
                    // notification to itself.
                    waiter.set_state(State::Notified);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Err(Nothing::Empty) => {
                    if self.may_give_turn() && waiter.give_turn(self, cx) {
                        return Poll::Pending;
                    }
                    if self.enqueue_receiver(waiter.as_mut(), cx.waker()) {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    /// False if receivers are to queue at once, since one of them was starved a short while ago.
    fn may_give_turn(&self) -> bool {
        // ORD relaxed: a hint; one turn more or less does no harm.
        let left = self.waiting.no_turns.load(Relaxed);
        if left > 0 {
            // ORD relaxed: as above; of two threads that count, one may not.
            self.waiting.no_turns.store(left - 1, Relaxed);
        }
        left == 0
    }

    /// Queues a receiver, unless there is something to receive or the channel is closed.
    ///
    /// One that was notified, but too late, waits on before those that were not. Whoever is faster by
    /// turns is so again and again, if all run in the same order each time: hence `no_turns`.
    fn enqueue_receiver(&self, mut waiter: Pin<&mut Waiter>, waker: &Waker) -> bool {
        let place = if waiter.state() == State::Notified { Place::Late } else { Place::Back };
        let waker = waiter.as_mut().prepare(waker);
        let node = waiter.as_mut().node();
        let unused = self.waiting.queues.with(|queues| {
            // Behind another receiver the flag is set: the lock orders its store before our look.
            if queues.receivers.is_empty() {
                // ORD[BW1] release: SeqCst, before the last look at the tail.
                self.waiting.receivers.store(true, SeqCst);
            }
            model_fence();
            if self.ring.look().is_some() {
                self.settle_receivers(queues);
                return Some(waker);
            }
            // SAFETY: pinned, and unlinked by `cancel_receiver` before it is freed.
            unsafe { queues.receivers.push(node, waker, place) };
            None
        });
        if unused.is_none() && waiter.is_starved() {
            // ORD relaxed: a hint.
            self.waiting.no_turns.store(NO_TURNS, Relaxed);
        }
        unused.is_none()
    }

    /// A receiver's future is dropped.
    pub(crate) fn cancel_receiver(&self, mut waiter: Pin<&mut Waiter>) {
        if waiter.state() == State::Waiting {
            let node = waiter.as_mut().node();
            let removed = self.waiting.queues.with(|queues| {
                // SAFETY: alive; a WAITING receiver is in this queue.
                let removed = unsafe { queues.receivers.remove(node) };
                self.settle_receivers(queues);
                removed
            });
            if removed.is_some() {
                return;
            }
        }
        // Finding C5: what it was notified of is for the next.
        // Killed by `channel::bounded::model::a_cancelled_receiver_passes_its_turn_on`.
        #[cfg(not(volt_mutant = "channel_c5"))]
        if waiter.state() == State::Notified && self.ring.look().is_some() {
            self.wake_receiver();
        }
    }

    // ------------------------------------------------------------------ the only receiver

    /// As [`try_recv`](Self::try_recv).
    ///
    /// # Safety
    /// No other thread receives at the same time.
    #[inline]
    pub(crate) unsafe fn try_recv_only(&self) -> Result<T, TryRecvError> {
        let mut attempt = 0;
        loop {
            // SAFETY: the only receiver (obligation), all of whose operations use their claims up before they end.
            match unsafe { self.ring.claim_only_head() } {
                Ok(full) => return Ok(self.freed_after(full.take())),
                Err(Nothing::Busy) => spin(attempt),
                Err(nothing) => return Err(nothing.into()),
            }
            attempt = attempt.saturating_add(1);
        }
    }

    /// Receives, or registers the waker.
    ///
    /// # Safety
    /// No other thread receives at the same time.
    #[inline]
    pub(crate) unsafe fn poll_recv_only(&self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        ready!(coop::poll_proceed(cx));
        let mut attempt = 0;
        loop {
            // SAFETY: the only receiver (obligation), all of whose operations use their claims up before they end.
            match unsafe { self.ring.claim_only_head() } {
                Ok(full) => {
                    let value = full.take();
                    self.waiting.only_turns.found();
                    coop::made_progress_or_renew();
                    return Poll::Ready(Some(self.freed_after(value)));
                }
                Err(Nothing::Closed) => {
                    coop::made_progress();
                    return Poll::Ready(None);
                }
                Err(nothing) => {
                    if self.wait_only(nothing, attempt, cx) {
                        return Poll::Pending;
                    }
                }
            }
            attempt = attempt.saturating_add(1);
        }
    }

    /// Receives up to `limit` messages, or registers the waker. 0 if nothing can come any more.
    ///
    /// # Safety
    /// No other thread receives at the same time.
    pub(crate) unsafe fn poll_recv_many_only(
        &self,
        into: &mut Vec<T>,
        limit: usize,
        cx: &mut Context<'_>,
    ) -> Poll<usize> {
        ready!(coop::poll_proceed(cx));
        if limit == 0 {
            coop::made_progress();
            return Poll::Ready(0);
        }
        let mut attempt = 0;
        loop {
            // SAFETY: the only receiver (obligation).
            match unsafe { self.ring.take_many(into, limit) } {
                Ok(count) => {
                    self.waiting.only_turns.found();
                    self.freed();
                    coop::made_progress();
                    return Poll::Ready(count);
                }
                Err(Nothing::Closed) => {
                    coop::made_progress();
                    return Poll::Ready(0);
                }
                Err(nothing) => {
                    if self.wait_only(nothing, attempt, cx) {
                        return Poll::Pending;
                    }
                }
            }
            attempt = attempt.saturating_add(1);
        }
    }

    /// Waits a moment or registers the waker: true if the only receiver is to return `Pending`.
    #[inline(never)]
    fn wait_only(&self, nothing: Nothing, attempt: u32, cx: &mut Context<'_>) -> bool {
        match nothing {
            Nothing::Empty => self.waiting.only_turns.give(cx) || self.register_only(cx.waker()),
            _ if settle(attempt) => false,
            _ => {
                cx.waker().wake_by_ref();
                true
            }
        }
    }

    /// Registers the waker of the only receiver; false if there is something to receive or the
    /// channel is closed.
    fn register_only(&self, waker: &Waker) -> bool {
        let mut waker = Some(waker.clone());
        let (sleep, unused) = self.waiting.queues.with(|queues| {
            // ORD[BW1] release: SeqCst, before the last look at the tail.
            self.waiting.receivers.store(true, SeqCst);
            model_fence();
            if self.ring.look().is_some() {
                let old = queues.receiver.take();
                self.settle_receivers(queues);
                return (false, old);
            }
            std::mem::swap(&mut queues.receiver, &mut waker);
            (true, None)
        });
        drop(unused);
        sleep
    }

    // ------------------------------------------------------------------ waking them

    /// A message has been published: wakes a receiver that sleeps.
    #[inline]
    pub(super) fn published(&self) {
        model_fence();
        // ORD[BW1] acquire: SeqCst, after the move of the tail.
        if self.waiting.receivers.load(SeqCst) {
            self.wake_receiver();
        }
    }

    /// As `published`; after the close this may have been the last message, which all must know.
    #[inline]
    pub(super) fn published_late(&self, closed: bool) {
        if closed { self.wake_all_receivers() } else { self.published() }
    }

    #[inline(never)]
    pub(super) fn wake_receiver(&self) {
        let waker = self.waiting.queues.with(|queues| {
            let waker = queues.receiver.take().or_else(|| queues.receivers.pop(State::Notified));
            self.settle_receivers(queues);
            waker
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    #[cold]
    pub(super) fn wake_all_receivers(&self) {
        model_fence();
        wake_in_rounds(|wakes| {
            self.waiting.queues.with(|queues| {
                if let Some(waker) = queues.receiver.take() {
                    wakes.push(waker);
                }
                let more = queues.receivers.pop_into(wakes, State::Notified);
                self.settle_receivers(queues);
                more
            })
        })
        .resume();
    }

    /// Clears the receivers' flag if nobody is queued.
    pub(super) fn settle_receivers(&self, queues: &Queues) {
        // Findings C3, C4.
        // Killed by `channel::bounded::model::the_flag_stays_while_others_sleep`.
        #[cfg(not(volt_mutant = "channel_c4"))]
        if !queues.receivers.is_empty() || queues.receiver.is_some() {
            return;
        }
        // ORD relaxed: nobody is queued; whoever comes next sets it under the lock.
        self.waiting.receivers.store(false, Relaxed);
    }
}
