//! The places of a bounded channel that is a list, and their senders. Invariants are those of
//! [`channel::list`](super).

use std::pin::Pin;
use std::ptr::NonNull;
use std::task::Waker;

use super::{Content, Limit, List, Obstacle};
use crate::channel::Refused;
use crate::channel::senders::Senders;
use crate::channel::waiter::{Place, Queue, State, Waiter, wake_in_rounds};
use crate::coop;
use crate::wake_list::WakeList;

/// So many; and those who wait for one.
pub(crate) struct Places {
    capacity: usize,
    /// Neither holding a message nor reserved.
    free: usize,
    senders: Queue,
}

impl Places {
    /// Takes so many of the free ones, unless others wait. None can always be had.
    fn reserve(&mut self, count: usize) -> bool {
        let may = self.senders.is_empty() && count <= self.free || count == 0;
        if may {
            self.free -= count;
        }
        may
    }
}

impl Limit for Places {
    #[inline]
    fn has_place(&self) -> bool {
        self.free > 0 && self.senders.is_empty()
    }

    #[inline]
    fn take(&mut self) {
        self.free -= 1;
    }

    #[inline]
    fn leave(&mut self, count: usize) -> bool {
        self.free += count;
        !self.senders.is_empty()
    }

    #[inline]
    fn is_taken_by(&self, messages: usize) -> bool {
        self.free + messages == self.capacity
    }

    fn places(&self) -> Option<(usize, usize)> {
        Some((self.capacity, self.free))
    }

    fn serve(&mut self, wakes: &mut WakeList) -> bool {
        while let Some(need) = self.senders.first_need() {
            if wakes.is_full() {
                return true;
            }
            if need > self.free {
                return false;
            }
            self.free -= need;
            if let Some(waker) = self.senders.pop(State::Notified) {
                wakes.push(waker);
            }
        }
        false
    }

    fn close(&mut self, wakes: &mut WakeList) -> bool {
        self.senders.pop_into(wakes, State::Closed)
    }
}

impl<T> List<T, Places> {
    pub(crate) fn bounded(capacity: usize) -> Self {
        Self::with_limit(Places { capacity, free: capacity, senders: Queue::new() })
    }

    /// Places that there are, and that a `try_send` could have now.
    pub(crate) fn places(&self) -> (usize, usize) {
        self.0.content.with(|content| (content.limit.capacity, content.limit.free))
    }

    /// Sends if there is a place that nobody waits for.
    #[inline]
    pub(crate) fn try_send(&self, value: T) -> Result<(), (T, Refused)> {
        if let Some(waker) = self.push(value)? {
            waker.wake();
        }
        Ok(())
    }

    /// The same. Returns the receiver to be woken.
    #[inline]
    fn push(&self, value: T) -> Result<Option<Waker>, (T, Refused)> {
        let sent = match self.0.content.with(|content| content.send(value)) {
            Err((value, Obstacle::NeedsBlock)) => self.with_block(|content| content.send(value)),
            sent => sent,
        };
        sent.map_err(|(value, why)| match why {
            Obstacle::Closed => (value, Refused::Closed),
            Obstacle::Full => (value, Refused::Full),
            Obstacle::NeedsBlock => unreachable!("a block was provided"),
        })
    }

    /// Sends with reserved capacity, also after the close.
    pub(crate) fn send_reserved(&self, value: T) {
        match self.push_late(value, true) {
            Ok((first, true)) => self.wake_all_receivers(first),
            Ok((Some(waker), false)) => waker.wake(),
            Ok((None, false)) => {}
            Err(_) => unreachable!("it may be sent after the close"),
        }
    }

    /// The same. Returns a receiver to be woken, and whether all others are to be; gives the value back if the channel is
    /// closed, unless it may be sent then, too.
    fn push_late(&self, value: T, also_closed: bool) -> Result<(Option<Waker>, bool), T> {
        let sent = match self.0.content.with(|content| content.append_late(value, also_closed)) {
            Err((value, Obstacle::NeedsBlock)) => {
                self.with_block(|content| content.append_late(value, also_closed))
            }
            sent => sent,
        };
        sent.map_err(|(value, _)| value)
    }

    /// The end of a `send`.
    fn sent(&self, waiter: &Waiter, receiver: Option<Waker>) {
        waiter.set_state(State::Done);
        coop::made_progress();
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }

    /// The last reservation of a closed channel is used up: nobody has anything to wait for any more.
    #[cold]
    fn wake_all_receivers(&self, mut first: Option<Waker>) {
        wake_in_rounds(|wakes| {
            first.take().into_iter().for_each(|waker| wakes.push(waker));
            self.0.content.with(|content| content.pop_receivers(wakes))
        })
        .resume();
    }
}

impl<T> Content<T, Places> {
    /// Appends a message whose place is reserved. As `push_late`.
    fn append_late(
        &mut self,
        value: T,
        also_closed: bool,
    ) -> Result<(Option<Waker>, bool), (T, Obstacle)> {
        // Killed by `channel::bounded::model::who_is_sent_away_or_has_sent_knows_it`.
        #[cfg(not(volt_mutant = "list_served_late"))]
        if self.closed && !also_closed {
            return Err((value, Obstacle::Closed));
        }
        if !self.makes_room() {
            return Err((value, Obstacle::NeedsBlock));
        }
        // SAFETY: there is room, just looked at or made.
        let waker = unsafe { self.append(value) };
        Ok((waker, self.is_final()))
    }

    /// Notifies the receivers. True if `wakes` was too short.
    fn pop_receivers(&mut self, wakes: &mut WakeList) -> bool {
        if wakes.is_full() {
            return true;
        }
        self.receiver.take().into_iter().for_each(|waker| wakes.push(waker));
        self.receivers.pop_into(wakes, State::Notified)
    }
}

impl<T> Senders<T> for List<T, Places> {
    fn send_at_once(&self, value: &mut Option<T>, waiter: &Waiter) -> Result<(), Refused> {
        let message = value.take().expect("present until it is sent");
        let receiver = match self.push(message) {
            Ok(receiver) => receiver,
            Err((message, why)) => {
                *value = Some(message);
                return Err(why);
            }
        };
        waiter.turns_paid(self);
        self.sent(waiter, receiver);
        Ok(())
    }

    fn send_served(&self, value: &mut Option<T>, waiter: &Waiter) -> Result<(), Refused> {
        let message = value.take().expect("present until it is sent");
        match self.push_late(message, false) {
            Ok((receiver, _)) => {
                self.sent(waiter, receiver);
                Ok(())
            }
            Err(message) => {
                *value = Some(message);
                Err(Refused::Closed)
            }
        }
    }

    fn try_reserve(&self, count: usize) -> Result<(), Refused> {
        self.0.content.with(|content| match content.closed {
            true => Err(Refused::Closed),
            false if content.limit.reserve(count) => Ok(()),
            false => Err(Refused::Full),
        })
    }

    fn unreserve(&self, count: usize) {
        if count == 0 {
            return;
        }
        let mut count = Some(count);
        wake_in_rounds(|wakes| {
            self.0.content.with(|content| {
                content.limit.leave(count.take().unwrap_or(0));
                content.serve(wakes) || content.is_final() && content.pop_receivers(wakes)
            })
        })
        .resume();
    }

    fn enqueue_sender(&self, mut waiter: Pin<&mut Waiter>, waker: &Waker) -> Result<(), Refused> {
        let waker = waiter.as_mut().prepare(waker);
        let need = waiter.need();
        let node = waiter.as_mut().node();
        let (outcome, unused) = self.0.content.with(|content| {
            if content.closed {
                return (Err(Refused::Closed), Some(waker));
            }
            if content.limit.reserve(need) {
                return (Ok(()), Some(waker));
            }
            // SAFETY: pinned, and unlinked by `cancel_sender` before it is freed.
            unsafe { content.limit.senders.push(node, waker, Place::Back) };
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
        waiter.still_waiting(&self.0.content, waker)
    }

    unsafe fn leave_queue(
        &self,
        node: NonNull<Waiter>,
        removed: &mut Option<Waker>,
        wakes: &mut WakeList,
    ) -> bool {
        self.0.content.with(|content| {
            if removed.is_none() {
                // SAFETY: alive; a WAITING sender is in this queue (obligation).
                *removed = unsafe { content.limit.senders.remove(node) };
            }
            content.serve(wakes)
        })
    }
}
