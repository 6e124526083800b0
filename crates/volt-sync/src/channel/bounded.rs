//! A bounded channel: the ring, and those who wait for it.
//!
//! Purpose: the protocol between a data path that takes no lock and futures that sleep.
//!
//! Rejected, each with the finding that shows it:
//! * A release store of the stamp followed by a load of the flag (C1): both sides may miss each
//!   other. What the sleeper looks at again is the tail (the head), which the other side moved by a
//!   SeqCst exchange before its SeqCst load of the flag.
//! * Clearing the flag while somebody is queued (C3, C4).
//! * Sleeping because the oldest place is not published (C6).
//! * Handing a value to a sleeping receiver: if its future is dropped, the value cannot go back to
//!   the front of the ring without an allocation or a look at a second place by every receiver.
//!   Moving the value of a sleeping sender into the ring: a `send` that was dropped, having returned
//!   nothing, would have sent.
//! * A flag for "a receiver is starved", cleared when its wait ends: of four receivers on one thread, two
//!   came too late 64 times for each message that they got. `no_turns` is counted down by receivers that
//!   find nothing: it lasts longer, and no cancellation has to clear it.
//!
//! | Flag, bit             | Set                                | Cleared                      | Read by |
//! |-----------------------|------------------------------------|------------------------------|---------|
//! | `receivers`           | before a receiver's last look      | when no receiver is queued   | senders, after they published |
//! | `senders`             | before a sender's last look        | when no sender is queued     | receivers, after they claimed; whoever gives capacity back |
//! | WAITERS, in the tail  | when the first sender is queued    | with `senders`               | newcomers: they queue as well, after turns if they give any |
//!
//! Invariants:
//! 1. The flags and queues change only under the lock; a queue is empty if its flag is not set.
//! 2. Messages in the ring <= notified receivers, as long as a receiver sleeps. A notified receiver
//!    takes a message, finds the ring empty, or passes the notification on (C5).
//! 3. While a sender sleeps, newcomers take no capacity, and free capacity is less than the oldest
//!    sender needs, or somebody is about to serve it. Senders get capacity in the order in which
//!    they queued, as a reservation that only they can use.
//! 4. A receiver sleeps only if tail == head (C6), and is told "closed" only if in addition CLOSED
//!    is set and nothing is reserved (C7).
//!
//! | Edge  | Release side | Acquire side | Carries | Model that fails without it |
//! |-------|--------------|--------------|---------|-----------------------------|
//! | [BW1] | `Bounded::enqueue_receiver`, `Bounded::register_only` | `Bounded::published` | that a receiver is about to sleep | none: with [RG3] one store-load pair of SeqCst accesses; loom sees fences instead. Litmus test `order_channel::a_sleeping_receiver_or_its_message_is_seen` of volt-models |
//! | [BW2] | `Bounded::enqueue_sender` | `Bounded::freed` | that a sender is about to sleep | none: with [RG4], as [BW1]; and `order_channel::a_sleeping_sender_or_the_only_receivers_free_place_is_seen` |
//!
//! Progress: a sleeper sets its flag, then looks at the ring; the other side changes the ring, then
//! looks at the flag. All four accesses are SeqCst, so one of them sees the other. What a later
//! member of the queue needs follows from the flag of the first through the lock. Loom knows
//! SeqCst only for fences, hence `model_fence`, which is nothing outside of it.
//!
//! Cost: `try_send` and `try_recv` 1 RMW. A sleep is 1 RMW for the lock, 1 for the first flag, 1 for the
//! clone of the waker, and for the first sender 1 for the bit; its wake-up 1 for the lock.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker, ready};

use super::Nothing;
use super::closed::Closes;
use super::lock::SpinLock;
use super::only_turns::OnlyTurns;
use super::ring::Ring;
use super::waiter::{Place, Queue, State, Waiter, wake_in_rounds};
use crate::cache_padded::Spaced;
use crate::coop;
use crate::first_panic::FirstPanic;
use crate::primitive::{AtomicBool, AtomicU8, spin};

/// So many opportunities for a turn receivers let pass when one of them has come too late
/// [`LATE`](super::waiter::LATE) times, so that they get messages in turn for as long as it was passed over.
const NO_TURNS: u8 = 128;

/// Those who sleep.
#[derive(Debug, Default)]
struct Queues {
    senders: Queue,
    receivers: Queue,
    /// The waker of a channel's only receiver, which has no future of its own to lie in.
    receiver: Option<Waker>,
    /// Those who wait for the close.
    closed: Queue,
}

#[derive(Debug)]
struct Waiting {
    receivers: AtomicBool,
    senders: AtomicBool,
    /// At so many opportunities, receivers give no turns.
    no_turns: AtomicU8,
    /// Those that the only receiver gives.
    only_turns: OnlyTurns,
    queues: SpinLock<Queues>,
}

#[repr(C)]
pub(crate) struct Bounded<T> {
    ring: Ring<T>,
    waiting: Spaced<Waiting>,
}

// The content is changed only by short steps that do not panic.
impl<T> std::panic::UnwindSafe for Bounded<T> {}
impl<T> std::panic::RefUnwindSafe for Bounded<T> {}

impl<T> fmt::Debug for Bounded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ring.fmt(f)
    }
}

/// Stands for the total order of the SeqCst accesses around it, which loom does not know.
#[inline(always)]
fn model_fence() {
    // Killed by `channel::bounded::model::a_sleeping_receiver_is_woken`.
    #[cfg(not(volt_mutant = "channel_c1"))]
    #[cfg(volt_loom)]
    // ORD relaxed: no edge of its own, see above.
    crate::primitive::fence(std::sync::atomic::Ordering::SeqCst);
}

impl<T> Bounded<T> {
    #[inline(always)]
    pub(crate) fn new(capacity: usize) -> Self {
        let waiting = Waiting {
            receivers: AtomicBool::new(false),
            senders: AtomicBool::new(false),
            no_turns: AtomicU8::new(0),
            only_turns: OnlyTurns::new(),
            queues: SpinLock::new(Queues::default()),
        };
        Self { ring: Ring::new(capacity), waiting: Spaced::new(waiting) }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.ring.capacity()
    }

    pub(crate) fn len(&self) -> usize {
        self.ring.snapshot().0
    }

    /// Places that a `try_send` could have now.
    pub(crate) fn free(&self) -> usize {
        self.ring.snapshot().1
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.ring.tail().is_closed()
    }

    /// True if there is no message, and none can come any more.
    #[cfg(feature = "futures")]
    pub(crate) fn has_ended(&self) -> bool {
        self.ring.look() == Some(Nothing::Closed)
    }

    /// Refuses further sends and wakes everybody. False if it was closed already.
    pub(crate) fn close(&self) -> bool {
        if self.ring.close().is_closed() {
            return false;
        }
        wake_in_rounds(|wakes| {
            self.waiting.queues.with(|queues| {
                if let Some(waker) = queues.receiver.take() {
                    wakes.push(waker);
                }
                // Receivers look for themselves: there may be messages left.
                let more = queues.senders.pop_into(wakes, State::Closed)
                    || queues.receivers.pop_into(wakes, State::Notified)
                    || queues.closed.pop_into(wakes, State::Closed);
                if queues.senders.is_empty() {
                    // ORD relaxed: nobody is queued, and nobody can be any more.
                    self.waiting.senders.store(false, Relaxed);
                    self.ring.set_waiters(false);
                }
                self.settle_receivers(queues);
                more
            })
        })
        .resume();
        true
    }

    /// Drops all messages, when nobody can receive them any more.
    ///
    /// # Panics
    /// If the drop of a message does, with the first such panic, when all are gone.
    pub(crate) fn discard(&self) {
        let mut attempt = 0;
        let mut panic = FirstPanic::new();
        loop {
            match self.ring.claim_head() {
                Ok(full) => {
                    let message = full.take();
                    panic.catch(|| drop(message));
                }
                Err(Nothing::Busy) => {
                    spin(attempt);
                    attempt = attempt.saturating_add(1);
                }
                Err(_) => break,
            }
        }
        panic.resume();
    }
}

impl<T> Closes for Bounded<T> {
    fn poll_closed(&self, mut waiter: Pin<&mut Waiter>, cx: &mut Context<'_>) -> Poll<()> {
        ready!(coop::poll_proceed(cx));
        if waiter.polled("closed") == State::Waiting
            && waiter.as_mut().still_waiting(&self.waiting.queues, cx.waker())
        {
            return Poll::Pending;
        }
        if !self.is_closed() {
            let waker = waiter.as_mut().prepare(cx.waker());
            let node = waiter.as_mut().node();
            let unused = self.waiting.queues.with(|queues| {
                // The closer sets the bit, then takes the lock.
                if self.is_closed() {
                    return Some(waker);
                }
                // SAFETY: pinned, and unlinked by `cancel_closed` before it is freed.
                unsafe { queues.closed.push(node, waker, Place::Back) };
                None
            });
            if unused.is_none() {
                return Poll::Pending;
            }
        }
        waiter.set_state(State::Done);
        coop::made_progress();
        Poll::Ready(())
    }

    fn cancel_closed(&self, waiter: Pin<&mut Waiter>) {
        if waiter.state() == State::Waiting {
            let node = waiter.node();
            // SAFETY: alive; a WAITING waiter of `closed` is in this queue.
            drop(self.waiting.queues.with(|queues| unsafe { queues.closed.remove(node) }));
        }
    }
}

mod recv;
mod send;

#[cfg(all(test, not(volt_loom)))]
mod first_poll;
#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
