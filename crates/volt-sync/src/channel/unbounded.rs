//! An unbounded channel: a list of blocks and a queue of receivers under one small lock.
//!
//! Purpose: a send never waits and allocates once in 32 messages, or not at all while the channel
//! is drained as fast as it is filled; what a burst needed is freed while it is received.
//!
//! Rejected:
//! * Lock-free linked blocks (crossbeam's `SegQueue`, Tokio's list): a second read-modify-write for
//!   each send and receive to mark the place, and another protocol to free blocks.
//! * `VecDeque` under the lock (kanal): growing copies the whole queue while everybody waits, and
//!   the memory of a burst stays.
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
//!
//! Ordering edges: those of the lock.
//!
//! Progress: as the lock. A send and the registration of a receiver are ordered by it.
//!
//! Cost: send 1 RMW, receive 1 RMW; two blocks of memory at most beyond what the messages need.

use std::fmt;
use std::future::Future;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker, ready};

use super::Nothing;
use super::lock::SpinLock;
use super::only_turns::OnlyTurns;
use super::waiter::{Place, Queue, State, Waiter, wake_in_rounds};
use crate::cache_padded::CachePadded;
use crate::coop;

/// Messages in a block.
pub(crate) const BLOCK: usize = if cfg!(volt_loom) { 2 } else { 32 };

struct Block<T> {
    values: [MaybeUninit<T>; BLOCK],
    next: Option<NonNull<Block<T>>>,
}

impl<T> Block<T> {
    fn allocate() -> Box<Self> {
        let mut block = Box::<Self>::new_uninit();
        let block_ptr = block.as_mut_ptr();
        // SAFETY: a place inside the allocation.
        let next = unsafe { &raw mut (*block_ptr).next };
        // SAFETY: as above; writing does not read what was there.
        unsafe { next.write(None) };
        // SAFETY: `next` is written and `values` needs no initialisation.
        unsafe { block.assume_init() }
    }
}

/// The messages.
struct Blocks<T> {
    first: Option<NonNull<Block<T>>>,
    last: Option<NonNull<Block<T>>>,
    head: usize,
    tail: usize,
    /// Blocks behind the first one.
    further: usize,
    /// A block to be used before another is allocated.
    spare: Option<Box<Block<T>>>,
}

impl<T> Blocks<T> {
    const fn new() -> Self {
        Self { first: None, last: None, head: BLOCK, tail: BLOCK, further: 0, spare: None }
    }

    fn len(&self) -> usize {
        self.further * BLOCK + self.tail - self.head
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.head == self.tail && self.further == 0
    }

    /// True if a push needs no block.
    #[inline]
    fn has_room(&self) -> bool {
        self.tail < BLOCK
    }

    /// Appends the spare block. False if there is none.
    #[cold]
    fn append_spare(&mut self) -> bool {
        let spare = self.spare.take();
        let found = spare.is_some();
        if let Some(block) = spare {
            self.append(block);
        }
        found
    }

    /// Makes `block` the spare one. Returns a block that is not needed, to be freed outside the
    /// lock.
    fn provide(&mut self, block: Box<Block<T>>) -> Option<Box<Block<T>>> {
        self.spare.replace(block)
    }

    fn append(&mut self, block: Box<Block<T>>) {
        let block = NonNull::from(Box::leak(block));
        match self.last.replace(block) {
            None => {
                self.first = Some(block);
                self.head = 0;
            }
            Some(mut last) => {
                // SAFETY: the last block is alive, and ours (invariant 1).
                unsafe { last.as_mut() }.next = Some(block);
                self.further += 1;
            }
        }
        self.tail = 0;
    }

    /// # Safety
    /// There [is room](Self::has_room).
    #[inline]
    unsafe fn push(&mut self, value: T) {
        // SAFETY: there is room (obligation), so there is a last block.
        let mut last = unsafe { self.last.unwrap_unchecked() };
        // SAFETY: alive and ours (invariant 1).
        let block = unsafe { last.as_mut() };
        // SAFETY: `tail` is below the length (obligation).
        unsafe { block.values.get_unchecked_mut(self.tail) }.write(value);
        self.tail += 1;
    }

    /// The oldest message, and a block to be freed outside the lock.
    #[inline]
    fn pop(&mut self) -> Option<(T, Option<Box<Block<T>>>)> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: there is a message, so there is a first block.
        let first = unsafe { self.first.unwrap_unchecked() };
        // SAFETY: alive and ours (invariant 1).
        let block = unsafe { first.as_ref() };
        // SAFETY: `head` is below the length: a block is left as soon as it is used up.
        let value = unsafe { block.values.get_unchecked(self.head) };
        // SAFETY: initialised (invariant 2), and moved out only once since `head` moves on.
        let value = unsafe { value.assume_init_read() };
        self.head += 1;
        let unused = if self.head == BLOCK { self.leave(first) } else { None };
        Some((value, unused))
    }

    /// Unlinks the first block, which is used up; keeps it if there is no spare one. The only block
    /// is used again from its start.
    #[inline(never)]
    fn leave(&mut self, first: NonNull<Block<T>>) -> Option<Box<Block<T>>> {
        self.head = 0;
        if self.further == 0 {
            self.tail = 0;
            return None;
        }
        self.further -= 1;
        // SAFETY: blocks are leaked boxes; this one is unlinked here.
        let mut block = unsafe { Box::from_raw(first.as_ptr()) };
        self.first = block.next.take();
        if self.spare.is_some() {
            return Some(block);
        }
        self.spare = Some(block);
        None
    }
}

impl<T> Drop for Blocks<T> {
    fn drop(&mut self) {
        /// Goes on after a destructor that panics.
        struct Drain<'a, T>(&'a mut Blocks<T>);
        impl<T> Drop for Drain<'_, T> {
            fn drop(&mut self) {
                while self.0.pop().is_some() {}
                if let Some(block) = self.0.first.take() {
                    // SAFETY: blocks are leaked boxes; empty, the list has at most this one.
                    drop(unsafe { Box::from_raw(block.as_ptr()) });
                }
            }
        }
        let drain = Drain(self);
        while let Some(popped) = drain.0.pop() {
            drop(popped);
        }
    }
}

struct Content<T> {
    blocks: Blocks<T>,
    closed: bool,
    receivers: Queue,
    /// The waker of a channel's only receiver, which has no future of its own to lie in.
    receiver: Option<Waker>,
    /// Those who wait for the close.
    waiting_for_close: Queue,
}

pub(crate) struct Unbounded<T>(CachePadded<Shared<T>>);

struct Shared<T> {
    content: SpinLock<Content<T>>,
    only_turns: OnlyTurns,
}

// SAFETY: values, blocks and queues are accessed under the lock (invariant 1).
unsafe impl<T: Send> Send for Unbounded<T> {}
// SAFETY: as above, for the same reason.
unsafe impl<T: Send> Sync for Unbounded<T> {}

// The content is changed only by short steps that do not panic.
impl<T> std::panic::UnwindSafe for Unbounded<T> {}
impl<T> std::panic::RefUnwindSafe for Unbounded<T> {}

/// Why a send could not do without more.
enum Obstacle {
    Closed,
    NeedsBlock,
}

impl<T> Unbounded<T> {
    pub(crate) fn new() -> Self {
        let content = SpinLock::new(Content {
            blocks: Blocks::new(),
            closed: false,
            receivers: Queue::new(),
            receiver: None,
            waiting_for_close: Queue::new(),
        });
        Self(CachePadded::new(Shared { content, only_turns: OnlyTurns::new() }))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.content.with(|content| content.blocks.len())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.content.with(|content| content.closed)
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
            Err((value, Obstacle::Closed)) => Err(value),
            Err((value, Obstacle::NeedsBlock)) => self.send_with_block(value),
        }
    }

    #[inline(never)]
    fn send_with_block(&self, value: T) -> Result<(), T> {
        let fresh = Block::allocate();
        let (sent, unused) = self.0.content.with(|content| {
            let unused = content.blocks.provide(fresh);
            (content.send(value), unused)
        });
        drop(unused);
        let waker = sent.map_err(|(value, _)| value)?;
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    /// Receives if there is a message.
    #[inline]
    pub(crate) fn try_recv(&self) -> Result<T, Nothing> {
        let (value, block) = self.0.content.with(|content| match content.blocks.pop() {
            Some(popped) => Ok(popped),
            None if content.closed => Err(Nothing::Closed),
            None => Err(Nothing::Empty),
        })?;
        drop(block);
        Ok(value)
    }

    /// As `try_recv`, not inlined: what it keeps on the stack is not for a bounded channel's receive
    /// beside it.
    #[inline(never)]
    pub(crate) fn try_recv_apart(&self) -> Result<T, Nothing> {
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
            match self.try_recv() {
                Ok(value) => {
                    waiter.set_state(State::Done);
                    coop::made_progress();
                    return Poll::Ready(Ok(value));
                }
                Err(Nothing::Closed) => {
                    waiter.set_state(State::Done);
                    coop::made_progress();
                    return Poll::Ready(Err(()));
                }
                Err(_) if self.enqueue(waiter.as_mut(), cx.waker()) => return Poll::Pending,
                Err(_) => {}
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
            match self.try_recv() {
                Ok(value) => {
                    self.0.only_turns.found();
                    coop::made_progress();
                    return Poll::Ready(Some(value));
                }
                Err(Nothing::Closed) => {
                    coop::made_progress();
                    return Poll::Ready(None);
                }
                Err(_) if self.0.only_turns.give(cx) => return Poll::Pending,
                Err(_) if self.register_only(cx.waker()) => return Poll::Pending,
                Err(_) => {}
            }
        }
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
        if limit == 0 {
            ready!(coop::poll_proceed(cx));
            coop::made_progress();
            return Poll::Ready(0);
        }
        let Some(first) = ready!(self.poll_recv_only(cx)) else { return Poll::Ready(0) };
        into.push(first);
        let mut count = 1;
        while count < limit {
            let Ok(value) = self.try_recv() else { break };
            into.push(value);
            count += 1;
        }
        Poll::Ready(count)
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
                content.receivers.pop_into(wakes, State::Notified)
                    || content.waiting_for_close.pop_into(wakes, State::Closed)
            })
        });
        first == Some(true)
    }

    /// Ready once the channel is closed.
    pub(crate) fn poll_closed(
        &self,
        mut waiter: Pin<&mut Waiter>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
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

    /// A future that waits for the close is dropped.
    pub(crate) fn cancel_closed(&self, waiter: Pin<&mut Waiter>) {
        if waiter.state() == State::Waiting {
            let node = waiter.node();
            let removed = self.0.content.with(|content| {
                // SAFETY: alive; a WAITING waiter of the close is in this queue.
                unsafe { content.waiting_for_close.remove(node) }
            });
            drop(removed);
        }
    }

    /// Drops all messages, when nobody can receive them any more.
    pub(crate) fn discard(&self) {
        let empty = Blocks::new();
        drop(self.0.content.with(|content| std::mem::replace(&mut content.blocks, empty)));
    }
}

impl<T> Content<T> {
    /// True if a receiver has no reason to sleep.
    fn has_news(&self) -> bool {
        self.closed || !self.blocks.is_empty()
    }

    /// Appends a message if that needs no new block. Returns the receiver to be woken.
    #[inline]
    fn send(&mut self, value: T) -> Result<Option<Waker>, (T, Obstacle)> {
        if self.closed {
            return Err((value, Obstacle::Closed));
        }
        if !self.blocks.has_room() && !self.blocks.append_spare() {
            return Err((value, Obstacle::NeedsBlock));
        }
        // SAFETY: there is room, just looked at or made.
        unsafe { self.blocks.push(value) };
        // Every store that is saved here lets the next read-modify-write begin earlier.
        let nobody = self.receiver.is_none() && self.receivers.is_empty();
        Ok(if nobody { None } else { self.next_receiver() })
    }

    /// Notifies the receiver that has slept longest.
    #[inline]
    fn next_receiver(&mut self) -> Option<Waker> {
        self.receiver.take().or_else(|| self.receivers.pop(State::Notified))
    }
}

/// A future that waits for the close.
pub(crate) struct WaitClosed<'a, T> {
    channel: &'a Unbounded<T>,
    waiter: Waiter,
}

impl<'a, T> WaitClosed<'a, T> {
    pub(crate) fn new(channel: &'a Unbounded<T>) -> Self {
        Self { channel, waiter: Waiter::new(0) }
    }
}

impl<T> Future for WaitClosed<'_, T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the waiter is pinned with the future and not moved.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above, for the same reason.
        let waiter = unsafe { Pin::new_unchecked(&mut this.waiter) };
        this.channel.poll_closed(waiter, cx)
    }
}

impl<T> Drop for WaitClosed<'_, T> {
    fn drop(&mut self) {
        if self.waiter.is_engaged() {
            // SAFETY: engaged, so it was polled, so it is pinned; it is not moved before it is freed.
            self.channel.cancel_closed(unsafe { Pin::new_unchecked(&mut self.waiter) });
        }
    }
}

impl<T> fmt::Debug for Unbounded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, closed) = self.0.content.with(|content| (content.blocks.len(), content.closed));
        f.debug_struct("Unbounded").field("len", &len).field("closed", &closed).finish()
    }
}

#[cfg(all(test, volt_loom))]
mod model;
