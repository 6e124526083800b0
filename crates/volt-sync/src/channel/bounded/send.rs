//! Senders of a bounded channel; the protocol is in [`channel::bounded`](super).

use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::task::Waker;

use super::{Bounded, Queues, model_fence};
use crate::channel::Refused;
use crate::channel::ring::Free;
use crate::channel::senders::Senders;
use crate::channel::waiter::{Place, State, Waiter, wake_in_rounds};
use crate::coop;
use crate::first_panic::FirstPanic;
use crate::primitive::spin;
use crate::wake_list::WakeList;

impl<T> Senders<T> for Bounded<T> {
    #[inline]
    fn send_at_once(&self, value: &mut Option<T>, waiter: &Waiter) -> Result<(), Refused> {
        let free = self.ring.claim_tail()?;
        waiter.turns_paid(self);
        self.sent(free, value, waiter);
        Ok(())
    }

    #[inline]
    fn send_served(&self, value: &mut Option<T>, waiter: &Waiter) -> Result<(), Refused> {
        let (free, _) = self.ring.claim_reserved(false)?;
        self.sent(free, value, waiter);
        Ok(())
    }

    fn try_reserve(&self, count: usize) -> Result<(), Refused> {
        self.ring.reserve(count, false)
    }

    fn unreserve(&self, count: usize) {
        if count == 0 {
            return;
        }
        let before = self.ring.unreserve(count);
        self.freed();
        if before.is_closed() && before.reserved() == count {
            self.wake_all_receivers();
        }
    }

    fn enqueue_sender(&self, mut waiter: Pin<&mut Waiter>, waker: &Waker) -> Result<(), Refused> {
        let waker = waiter.as_mut().prepare(waker);
        let need = waiter.need();
        let node = waiter.as_mut().node();
        let (outcome, unused) = self.waiting.queues.with(|queues| {
            if queues.senders.is_empty() {
                // ORD[BW2] release: SeqCst, before the last look at the head, in `reserve`.
                self.waiting.senders.store(true, SeqCst);
                model_fence();
                match self.ring.reserve(need, true) {
                    Err(Refused::Full | Refused::Busy) => self.ring.set_waiters(true),
                    outcome => {
                        // ORD relaxed: nobody is queued; the lock orders it.
                        self.waiting.senders.store(false, Relaxed);
                        return (outcome, Some(waker));
                    }
                };
            } else if self.ring.tail().is_closed() {
                return (Err(Refused::Closed), Some(waker));
            }
            // SAFETY: pinned, and unlinked by `cancel_sender` before it is freed.
            unsafe { queues.senders.push(node, waker, Place::Back) };
            (Err(Refused::Full), None)
        });
        if outcome.is_ok() {
            waiter.set_state(State::Notified);
        }
        // User code: if it panics, the future's drop gives the reservation back.
        drop(unused);
        outcome
    }

    fn is_still_waiting(&self, waiter: Pin<&mut Waiter>, waker: &Waker) -> bool {
        waiter.still_waiting(&self.waiting.queues, waker)
    }

    unsafe fn leave_queue(
        &self,
        node: NonNull<Waiter>,
        removed: &mut Option<Waker>,
        wakes: &mut WakeList,
    ) -> bool {
        self.waiting.queues.with(|queues| {
            if removed.is_none() {
                // SAFETY: alive; a WAITING sender is in this queue (obligation).
                *removed = unsafe { queues.senders.remove(node) };
            }
            self.serve(queues, wakes)
        })
    }
}

impl<T> Bounded<T> {
    /// Sends if there is room and nobody waits for it.
    #[inline]
    pub(crate) fn try_send(&self, value: T) -> Result<(), (T, Refused)> {
        let Some(free) = self.ring.claim_tail_once(false) else { return self.try_send_slow(value) };
        free.publish(value);
        self.published();
        Ok(())
    }

    #[inline(never)]
    fn try_send_slow(&self, value: T) -> Result<(), (T, Refused)> {
        let mut attempt = 0;
        loop {
            match self.ring.claim_tail() {
                Ok(free) => {
                    free.publish(value);
                    self.published();
                    return Ok(());
                }
                Err(Refused::Busy) => spin(attempt),
                Err(refused) => return Err((value, refused)),
            }
            attempt = attempt.saturating_add(1);
        }
    }

    /// A poll of a `send` that has not waited, if it is plain: there is budget, and a place that nobody waits
    /// for. False says only that this was not so: the caller goes on with [`poll_send`](Senders::poll_send). If
    /// it does that in a function of its own, and last, it has nothing to save on its stack before: each
    /// such store would delay the exchange.
    #[inline(always)]
    pub(crate) fn send_if_plain(&self, value: &mut Option<T>, waiter: &Waiter) -> bool {
        if !waiter.is_new() || !coop::has_budget_remaining() {
            return false;
        }
        // Beside waiting senders something is reserved most of the time.
        let Some(place) = self.ring.claim_tail_once(true) else { return false };
        self.sent(place, value, waiter);
        true
    }

    /// The end of a `send` that has claimed its place.
    #[inline(always)]
    fn sent(&self, place: Free<'_, T>, value: &mut Option<T>, waiter: &Waiter) {
        place.publish(value.take().expect("present until it is sent"));
        waiter.set_state(State::Done);
        coop::made_progress();
        self.published();
    }

    /// Sends with reserved capacity.
    #[inline]
    pub(crate) fn send_reserved(&self, value: T) {
        let mut attempt = 0;
        loop {
            if let Ok((free, tail)) = self.ring.claim_reserved(true) {
                free.publish(value);
                return self.published_late(tail.is_closed());
            }
            spin(attempt);
            attempt = attempt.saturating_add(1);
        }
    }

    /// A place was freed: serves senders that sleep.
    #[inline]
    pub(super) fn freed(&self) {
        if self.senders_wait() {
            self.serve_senders().resume();
        }
    }

    /// True if a place that was just freed may be waited for.
    #[inline]
    pub(super) fn senders_wait(&self) -> bool {
        model_fence();
        // ORD[BW2] acquire: SeqCst, after the move of the head.
        self.waiting.senders.load(SeqCst)
    }

    /// Serves senders that sleep. Returns the first panic of a waker.
    #[inline(never)]
    pub(super) fn serve_senders(&self) -> FirstPanic {
        wake_in_rounds(|wakes| self.waiting.queues.with(|queues| self.serve(queues, wakes)))
    }

    /// Reserves for the oldest senders what they need. True if `wakes` was too short.
    pub(super) fn serve(&self, queues: &mut Queues, wakes: &mut WakeList) -> bool {
        model_fence();
        while let Some(need) = queues.senders.first_need() {
            if wakes.is_full() {
                return true;
            }
            if self.ring.reserve(need, true).is_err() {
                return false;
            }
            if let Some(waker) = queues.senders.pop(State::Notified) {
                wakes.push(waker);
            }
        }
        // ORD relaxed: nobody is queued; whoever comes next sets it under the lock.
        self.waiting.senders.store(false, Relaxed);
        if self.ring.tail().has_waiters() {
            self.ring.set_waiters(false);
        }
        false
    }
}
