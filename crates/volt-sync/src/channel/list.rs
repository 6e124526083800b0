//! A channel that is a list of blocks, and queues of those who wait, under one small lock: the unbounded one, and
//! a bounded one of many places.
//!
//! Purpose: a send allocates once in 32 messages, or not at all while the channel is drained as fast
//! as it is filled; what a burst needed is freed while it is received. Into the unbounded one a send never waits. The
//! bounded one takes the memory of the messages that are there, and not of as many as fit.
//!
//! Rejected:
//! * Lock-free linked blocks (crossbeam's `SegQueue`, Tokio's list): a second read-modify-write for
//!   each send and receive to mark the place, and another protocol to free blocks.
//! * `VecDeque` under the lock (kanal): growing copies the whole queue while everybody waits, and
//!   the memory of a burst stays.
//! * A semaphore beside an unbounded channel (Tokio): two more read-modify-writes for each message, and another
//!   protocol for "closed, but not all that was reserved has been sent".
//!
//! | State of the list    | head block                | tail block                 |
//! |----------------------|---------------------------|----------------------------|
//! | nothing sent yet     | none                      | none                       |
//! | empty again          | the block kept, `head == tail` | the same              |
//! | messages             | `head..` are messages     | `..tail` are messages      |
//!
//! Invariants:
//! 1. Everything is accessed under the lock; values are moved in and out under it, but neither
//!    dropped nor cloned; blocks are allocated and freed outside of it.
//! 2. Positions `head..` of the first block, all of the middle ones, and `..tail` of the last one
//!    are initialised, and no others.
//! 3. Messages <= notified receivers, as long as a receiver sleeps; see `channel::bounded`.
//! 4. Messages, free and reserved places are as many as the [`Places`]. While a sender sleeps, newcomers take none,
//!    and fewer are free than the oldest sender needs, or somebody is about to serve it.
//! 5. A receiver is told "closed" only if in addition no place is reserved.
//!
//! Ordering edges: those of the lock.
//!
//! Progress: as the lock. A send and the registration of a receiver, a receive and that of a sender, are ordered by it.
//!
//! Cost: send 1 RMW, receive 1 RMW; [`poll_recv_many_only`](List::poll_recv_many_only) 1, and 1 for each 32 messages (or
//! two kilobytes); a receive for which a sender waits 2. Two blocks of memory at most beyond what the messages need.

use std::fmt;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

pub(crate) use self::blocks::BLOCK;
use self::blocks::{Block, Blocks};
pub(crate) use self::places::Places;
use super::closed::Closes;
use super::error::TryRecvError;
use super::lock::SpinLock;
use super::only_turns::OnlyTurns;
use super::waiter::{Place, Queue, State, Waiter, wake_in_rounds};
use crate::cache_padded::Spaced;
use crate::coop;
use crate::first_panic::FirstPanic;
use crate::wake_list::WakeList;

/// How many messages a list holds; under its lock.
pub(crate) trait Limit {
    /// True if there is a place that nobody waits for.
    fn has_place(&self) -> bool;

    /// Takes one of those.
    fn take(&mut self);

    /// So many messages have left their places. True if senders wait for some.
    fn leave(&mut self, count: usize) -> bool;

    /// How many there are, and how many of them are free, if that is limited.
    fn places(&self) -> Option<(usize, usize)>;

    /// True if places are taken for `messages` only: none is reserved.
    fn is_taken_by(&self, messages: usize) -> bool;

    /// Reserves for the oldest senders what they need. True if `wakes` was too short.
    fn serve(&mut self, wakes: &mut WakeList) -> bool;

    /// Sends the senders away. True if `wakes` was too short.
    fn close(&mut self, wakes: &mut WakeList) -> bool;
}

/// As many as memory does.
pub(crate) struct NoLimit;

impl Limit for NoLimit {
    #[inline]
    fn has_place(&self) -> bool {
        true
    }

    #[inline]
    fn take(&mut self) {}

    #[inline]
    fn leave(&mut self, _: usize) -> bool {
        false
    }

    fn places(&self) -> Option<(usize, usize)> {
        None
    }

    #[inline]
    fn is_taken_by(&self, _: usize) -> bool {
        true
    }

    #[inline]
    fn serve(&mut self, _: &mut WakeList) -> bool {
        false
    }

    #[inline]
    fn close(&mut self, _: &mut WakeList) -> bool {
        false
    }
}

pub(crate) type Unbounded<T> = List<T, NoLimit>;

struct Content<T, L> {
    blocks: Blocks<T>,
    closed: bool,
    limit: L,
    receivers: Queue,
    /// The waker of a channel's only receiver, which has no future of its own to lie in.
    receiver: Option<Waker>,
    /// Those who wait for the close.
    waiting_for_close: Queue,
}

pub(crate) struct List<T, L>(Spaced<Shared<T, L>>);

struct Shared<T, L> {
    content: SpinLock<Content<T, L>>,
    only_turns: OnlyTurns,
}

// SAFETY: values, blocks, queues and the limit are accessed under the lock (invariant 1).
unsafe impl<T: Send, L: Send> Send for List<T, L> {}
// SAFETY: as above, for the same reason.
unsafe impl<T: Send, L: Send> Sync for List<T, L> {}

// The content is changed only by short steps that do not panic.
impl<T, L> std::panic::UnwindSafe for List<T, L> {}
impl<T, L> std::panic::RefUnwindSafe for List<T, L> {}

/// What a receive has to do outside of the lock.
struct Then<T> {
    /// To be freed.
    unused: Option<Box<Block<T>>>,
    /// To be served.
    senders_wait: bool,
}

/// Why a send could not do without more.
enum Obstacle {
    Closed,
    Full,
    NeedsBlock,
}

impl<T> Unbounded<T> {
    pub(crate) fn new() -> Self {
        Self::with_limit(NoLimit)
    }

    /// Sends; gives the value back if the channel is closed.
    #[inline]
    pub(crate) fn send(&self, value: T) -> Result<(), T> {
        match self.0.content.with(|content| content.send(value)) {
            Ok(None) => Ok(()),
            Ok(Some(waker)) => {
                waker.wake();
                Ok(())
            }
            Err((value, Obstacle::NeedsBlock)) => self.send_with_block(value),
            Err((value, _)) => Err(value),
        }
    }

    #[inline(never)]
    fn send_with_block(&self, value: T) -> Result<(), T> {
        let waker = self.with_block(|content| content.send(value)).map_err(|(value, _)| value)?;
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }
}

impl<T, L: Limit> List<T, L> {
    fn with_limit(limit: L) -> Self {
        let content = SpinLock::new(Content {
            blocks: Blocks::new(),
            closed: false,
            limit,
            receivers: Queue::new(),
            receiver: None,
            waiting_for_close: Queue::new(),
        });
        Self(Spaced::new(Shared { content, only_turns: OnlyTurns::new() }))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.content.with(|content| content.blocks.len())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.content.with(|content| content.closed)
    }

    /// True if there is no message, and none can come any more.
    #[cfg(feature = "futures")]
    pub(crate) fn has_ended(&self) -> bool {
        self.0.content.with(|content| content.blocks.is_empty() && content.is_final())
    }

    /// Runs `f` under the lock, with a block to spare.
    fn with_block<R>(&self, f: impl FnOnce(&mut Content<T, L>) -> R) -> R {
        let fresh = Block::allocate();
        let (result, unused) = self.0.content.with(|content| {
            let unused = content.blocks.provide(fresh);
            (f(content), unused)
        });
        drop(unused);
        result
    }

    /// Receives if there is a message.
    #[inline]
    pub(crate) fn try_recv(&self) -> Result<T, TryRecvError> {
        let mut message = MaybeUninit::uninit();
        match self.pop_into(&mut message) {
            Ok(then) => {
                // SAFETY: there was a message.
                let message = unsafe { message.assume_init() };
                let panic = self.finish(then);
                if panic.happened() {
                    panic.resume_without(message);
                }
                Ok(message)
            }
            Err(true) => Err(TryRecvError::Disconnected),
            Err(false) => Err(TryRecvError::Empty),
        }
    }

    /// Moves the oldest message into `message`, and returns what there is to be done. If there is none: true if none can
    /// come any more, and `message` is left as it was.
    ///
    /// Not a result with the message in it: there the reason lies in the first bytes of the message's place, and the compiler
    /// copies that place in two parts. The second begins between two of the stores that made the message, and waits until
    /// both have reached the cache.
    #[inline(always)]
    fn pop_into(&self, message: &mut MaybeUninit<T>) -> Result<Then<T>, bool> {
        self.0.content.with(|content| match content.blocks.pop() {
            Some((value, unused)) => {
                message.write(value);
                Ok(Then { unused, senders_wait: content.limit.leave(1) })
            }
            None => Err(content.is_final()),
        })
    }

    /// A place was freed: serves senders that sleep. Returns the first panic of a waker.
    #[inline(always)]
    fn finish(&self, then: Then<T>) -> FirstPanic {
        drop(then.unused);
        if then.senders_wait { self.serve_senders() } else { FirstPanic::new() }
    }

    #[inline(never)]
    fn serve_senders(&self) -> FirstPanic {
        wake_in_rounds(|wakes| self.0.content.with(|content| content.serve(wakes)))
    }

    /// As `try_recv`, not inlined: what it keeps on the stack is not for a bounded channel's receive
    /// beside it.
    #[inline(never)]
    pub(crate) fn try_recv_apart(&self) -> Result<T, TryRecvError> {
        self.try_recv()
    }

    /// Receives, or waits in the order of arrival. `Err` if nothing can come any more.
    #[inline]
    pub(crate) fn poll_recv(
        &self,
        mut waiter: Pin<&mut Waiter>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<T, ()>> {
        ready!(coop::poll_proceed(cx));
        if waiter.polled("recv") == State::Waiting
            && waiter.as_mut().still_waiting(&self.0.content, cx.waker())
        {
            return Poll::Pending;
        }
        loop {
            let mut message = MaybeUninit::uninit();
            match self.pop_into(&mut message) {
                Ok(then) => {
                    // SAFETY: there was a message.
                    let message = unsafe { message.assume_init() };
                    waiter.set_state(State::Done);
                    coop::made_progress();
                    let panic = self.finish(then);
                    if panic.happened() {
                        panic.resume_without(message);
                    }
                    return Poll::Ready(Ok(message));
                }
                Err(true) => {
                    waiter.set_state(State::Done);
                    coop::made_progress();
                    return Poll::Ready(Err(()));
                }
                Err(false) if self.enqueue(waiter.as_mut(), cx.waker()) => return Poll::Pending,
                Err(false) => {}
            }
        }
    }

    /// Queues a receiver, unless there is something to receive or the channel is closed.
    ///
    /// It takes no message: if the drop of the waker that is not needed panics, that would be lost.
    #[inline(never)]
    fn enqueue(&self, mut waiter: Pin<&mut Waiter>, waker: &Waker) -> bool {
        let place = if waiter.state() == State::Notified { Place::Late } else { Place::Back };
        let waker = waiter.as_mut().prepare(waker);
        let node = waiter.node();
        let unused = self.0.content.with(|content| {
            if content.has_news() {
                return Some(waker);
            }
            // SAFETY: pinned, and unlinked by `cancel_receiver` before it is freed.
            unsafe { content.receivers.push(node, waker, place) };
            None
        });
        unused.is_none()
    }

    /// A receiver's future is dropped.
    pub(crate) fn cancel_receiver(&self, waiter: Pin<&mut Waiter>) {
        if !matches!(waiter.state(), State::Waiting | State::Notified) {
            return;
        }
        let node = waiter.node();
        let (removed, next) = self.0.content.with(|content| {
            // SAFETY: alive; a WAITING receiver is in this queue.
            let removed = unsafe { content.receivers.remove(node) };
            // Finding C5: what it was notified of is for the next.
            let pass_on = removed.is_none() && !content.blocks.is_empty();
            (removed, if pass_on { content.next_receiver() } else { None })
        });
        drop(removed);
        if let Some(waker) = next {
            waker.wake();
        }
    }

    /// Receives, or registers the waker of the only receiver. `None` if nothing can come any more.
    #[inline]
    pub(crate) fn poll_recv_only(&self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        ready!(coop::poll_proceed(cx));
        loop {
            let mut message = MaybeUninit::uninit();
            match self.pop_into(&mut message) {
                Ok(then) => {
                    // SAFETY: there was a message.
                    let message = unsafe { message.assume_init() };
                    self.0.only_turns.found();
                    coop::made_progress();
                    let panic = self.finish(then);
                    if panic.happened() {
                        panic.resume_without(message);
                    }
                    return Poll::Ready(Some(message));
                }
                Err(true) => {
                    coop::made_progress();
                    return Poll::Ready(None);
                }
                Err(false) if self.0.only_turns.give(cx) => return Poll::Pending,
                Err(false) if self.register_only(cx.waker()) => return Poll::Pending,
                Err(false) => {}
            }
        }
    }

    /// As `poll_recv_only`, not inlined, for the same reason as `try_recv_apart`.
    #[inline(never)]
    pub(crate) fn poll_recv_only_apart(&self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll_recv_only(cx)
    }

    /// Registers the waker of the only receiver; as `enqueue`.
    #[inline(never)]
    fn register_only(&self, waker: &Waker) -> bool {
        let waker = waker.clone();
        let (sleeps, unused) = self.0.content.with(|content| {
            if content.has_news() {
                return (false, Some(waker));
            }
            (true, content.receiver.replace(waker))
        });
        drop(unused);
        sleeps
    }

    /// Receives up to `limit` messages, or registers the waker. 0 if nothing can come any more.
    pub(crate) fn poll_recv_many_only(
        &self,
        into: &mut Vec<T>,
        limit: usize,
        cx: &mut Context<'_>,
    ) -> Poll<usize> {
        ready!(coop::poll_proceed(cx));
        loop {
            let (len, is_final) =
                self.0.content.with(|content| (content.blocks.len(), content.is_final()));
            let count = len.min(limit);
            if count > 0 {
                into.reserve(count);
                let then = self.pop_many(into, count);
                self.0.only_turns.found();
                coop::made_progress();
                self.finish(then).resume();
            } else if limit > 0 && !is_final {
                if self.0.only_turns.give(cx) || self.register_only(cx.waker()) {
                    return Poll::Pending;
                }
                continue;
            } else {
                coop::made_progress();
            }
            return Poll::Ready(count);
        }
    }

    /// Moves `count` messages, which are there as this is the only receiver, into `into`, which has room for them. A block
    /// of them at a time, or fewer if they are large: the lock is for brief use.
    fn pop_many(&self, into: &mut Vec<T>, count: usize) -> Then<T> {
        let mut then = Then { unused: None, senders_wait: false };
        let most = BLOCK.min((2048 / size_of::<T>().max(1)).max(1));
        for first in (0..count).step_by(most) {
            let run = most.min(count - first);
            then = self.0.content.with(|content| {
                let mut unused = None;
                for (message, block) in std::iter::from_fn(|| content.blocks.pop()).take(run) {
                    into.push(message);
                    // One at most: so many messages end one block.
                    unused = unused.or(block);
                }
                Then { unused, senders_wait: content.limit.leave(run) }
            });
        }
        then
    }

    /// Refuses further sends and wakes everybody. False if it was closed already.
    pub(crate) fn close(&self) -> bool {
        let mut first = None;
        wake_in_rounds(|wakes| {
            self.0.content.with(|content| {
                if !*first.get_or_insert(!std::mem::replace(&mut content.closed, true)) {
                    return false;
                }
                if let Some(waker) = content.receiver.take() {
                    wakes.push(waker);
                }
                // Receivers look for themselves: there may be messages left.
                content.limit.close(wakes)
                    || content.receivers.pop_into(wakes, State::Notified)
                    || content.waiting_for_close.pop_into(wakes, State::Closed)
            })
        })
        .resume();
        first == Some(true)
    }

    /// Drops all messages, when nobody can receive them any more.
    ///
    /// # Panics
    /// If the drop of a message does, with the first such panic, when all are gone.
    pub(crate) fn discard(&self) {
        let empty = Blocks::new();
        drop(self.0.content.with(|content| {
            // Nobody waits: the channel is closed.
            content.limit.leave(content.blocks.len());
            std::mem::replace(&mut content.blocks, empty)
        }));
    }
}

impl<T, L: Limit> Content<T, L> {
    /// True if nothing can come any more.
    fn is_final(&self) -> bool {
        self.closed && self.limit.is_taken_by(self.blocks.len())
    }

    /// Reserves for the oldest senders what they need, unless the channel is closed: those who are still queued are about
    /// to be sent away. True if `wakes` was too short.
    fn serve(&mut self, wakes: &mut WakeList) -> bool {
        !self.closed && self.limit.serve(wakes)
    }

    /// True if a receiver has no reason to sleep.
    fn has_news(&self) -> bool {
        !self.blocks.is_empty() || self.is_final()
    }

    /// Appends a message if that needs no new block. Returns the receiver to be woken.
    #[inline]
    fn send(&mut self, value: T) -> Result<Option<Waker>, (T, Obstacle)> {
        if self.closed {
            return Err((value, Obstacle::Closed));
        }
        if !self.limit.has_place() {
            return Err((value, Obstacle::Full));
        }
        if !self.makes_room() {
            return Err((value, Obstacle::NeedsBlock));
        }
        self.limit.take();
        // SAFETY: there is room, just looked at or made.
        Ok(unsafe { self.append(value) })
    }

    /// True if there is room for a message, at once or in the spare block.
    #[inline]
    fn makes_room(&mut self) -> bool {
        self.blocks.has_room() || self.blocks.append_spare()
    }

    /// Appends a message whose place is taken. Returns the receiver to be woken.
    ///
    /// # Safety
    /// [There is room](Self::makes_room).
    #[inline]
    unsafe fn append(&mut self, value: T) -> Option<Waker> {
        // SAFETY: there is room (obligation).
        unsafe { self.blocks.push(value) };
        // Every store that is saved here lets the next read-modify-write begin earlier.
        let nobody = self.receiver.is_none() && self.receivers.is_empty();
        if nobody { None } else { self.next_receiver() }
    }

    /// Notifies the receiver that has slept longest.
    #[inline]
    fn next_receiver(&mut self) -> Option<Waker> {
        self.receiver.take().or_else(|| self.receivers.pop(State::Notified))
    }
}

impl<T, L: Limit> Closes for List<T, L> {
    fn poll_closed(&self, mut waiter: Pin<&mut Waiter>, cx: &mut Context<'_>) -> Poll<()> {
        ready!(coop::poll_proceed(cx));
        if waiter.polled("closed") == State::Waiting
            && waiter.as_mut().still_waiting(&self.0.content, cx.waker())
        {
            return Poll::Pending;
        }
        let waker = waiter.as_mut().prepare(cx.waker());
        let node = waiter.as_mut().node();
        let unused = self.0.content.with(|content| {
            if content.closed {
                return Some(waker);
            }
            // SAFETY: pinned, and unlinked by `cancel_closed` before it is freed.
            unsafe { content.waiting_for_close.push(node, waker, Place::Back) };
            None
        });
        if unused.is_none() {
            return Poll::Pending;
        }
        waiter.set_state(State::Done);
        coop::made_progress();
        Poll::Ready(())
    }

    fn cancel_closed(&self, waiter: Pin<&mut Waiter>) {
        if waiter.state() == State::Waiting {
            let node = waiter.node();
            let removed = self.0.content.with(|content| {
                // SAFETY: alive; a WAITING waiter of the close is in this queue.
                unsafe { content.waiting_for_close.remove(node) }
            });
            drop(removed);
        }
    }
}

impl<T, L: Limit> fmt::Debug for List<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, closed, places) = self
            .0
            .content
            .with(|content| (content.blocks.len(), content.closed, content.limit.places()));
        let mut list = f.debug_struct("List");
        list.field("len", &len).field("closed", &closed);
        if let Some((capacity, free)) = places {
            list.field("capacity", &capacity).field("free", &free);
        }
        list.finish()
    }
}

mod blocks;
mod places;

#[cfg(all(test, volt_loom))]
mod model;
