//! One I/O source: what is ready, and who waits for it.
//!
//! Purpose: the meeting point of the thread that turns the reactor, which sets readiness and wakes,
//! and of the tasks, which try the I/O, clear the readiness that they have used up, and wait.
//!
//! Rejected: one waker a direction without a list (two tasks that wait for one socket would keep
//! stealing each other's place); a list alone (the common case, one reader and one writer, would
//! link and unlink for each wait); a lock-free waker slot (saves two of four read-modify-writes of
//! a wait that ends in a system call of a hundred times their cost).
//!
//! State, one word:
//!
//! | bits   | name       | meaning                                                           |
//! |--------|------------|-------------------------------------------------------------------|
//! | 0..6   | ready      | as [`Ready`]                                                      |
//! | 6      | FRESH      | nobody has tried to read yet: worth a try, but not known readable  |
//! | 7      | SHUTDOWN   | the reactor is gone: every wait ends with an error                |
//! | 8      | PUT_OFF   | was readable, and the next read waits until the reactor has looked   |
//! | 9      | REMINDED  | readable because of that, not by an event                          |
//! | 10     | GUESSED   | readable as a guess, see `guess`                                    |
//! | 16..40 | tick       | counts events, so that a clear can tell that one came after its look |
//! | 40..64 | generation | the registration that the slot belongs to now, see `slab`         |
//!
//! Invariants:
//! 1. Readiness is set before the lock is taken to look for waiters; a waiter registers under the
//!    lock and looks at the readiness again before it releases it.
//! 2. A clear changes the word only if no event came since the look that it is based on.
//! 3. A `Waiter` is linked exactly while `fired` is false and its future waits; it is read and
//!    changed only under the lock. One that was forgotten is linked until its registration ends.
//! 4. No waker is cloned, woken or dropped under the lock.
//! 5. PUT_OFF is never set together with READABLE, REMINDED or GUESSED, and an event of reading ends PUT_OFF.
//!
//! | Edge  | Release side  | Acquire side   | Carries | Model |
//! |-------|---------------|----------------|---------|-------|
//! | [RS1] | `Source::set` | `Source::load` | what the reactor's thread knew when the event came | `an_event_carries_what_came_before_it` |
//!
//! Progress: of a registration and an event, the one that takes the lock second sees the other
//! (invariant 1). An event between a try of the I/O and the clear that follows is kept (invariant
//! 2). The tick wraps after 16.7 million events between one look and its clear.
//!
//! Cost: a try on a ready source 1 load; a clear 1 RMW; a wait 2 RMWs and a clone of the waker; an
//! event 3 RMWs and the wake.

use std::fmt;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::task::{Context, Poll, Waker};

use volt_sync::internal::primitive::{AtomicU64, Mutex, MutexGuard, UnsafeCell};
use volt_sync::internal::{Link, LinkedList, Pointers, WakeList, contain};

use crate::io::Ready;
use crate::runtime::outside;

const READY: u64 = 0x3f;
const FRESH: u64 = 1 << 6;
const SHUTDOWN: u64 = 1 << 7;
const PUT_OFF: u64 = 1 << 8;
const REMINDED: u64 = 1 << 9;
const GUESSED: u64 = 1 << 10;
const TICK_SHIFT: u32 = 16;
const GENERATION_SHIFT: u32 = 40;
const COUNTER_MASK: u64 = 0xff_ffff;

/// The state word.
#[derive(Clone, Copy)]
struct Word(u64);

impl Word {
    const fn new(generation: u32, ready: Ready, fresh: bool) -> Self {
        let bits = ready.bits() as u64 | if fresh { FRESH } else { 0 };
        Self(bits | ((generation as u64 & COUNTER_MASK) << GENERATION_SHIFT))
    }

    const fn tick(self) -> u64 {
        (self.0 >> TICK_SHIFT) & COUNTER_MASK
    }

    const fn generation(self) -> u32 {
        (self.0 >> GENERATION_SHIFT) as u32
    }

    const fn ready(self) -> Ready {
        Ready::from_bits((self.0 & READY) as u8)
    }

    /// With `ready` added, one tick later.
    const fn after_event(self, ready: Ready) -> Self {
        let tick = (self.tick() + 1) & COUNTER_MASK;
        let known = if ready.intersects(Ready::READ) { PUT_OFF | REMINDED | GUESSED } else { 0 };
        let rest = self.0 & !(COUNTER_MASK << TICK_SHIFT | known);
        Self(rest | (tick << TICK_SHIFT) | ready.bits() as u64)
    }
}

/// What a look at a source found; a clear is based on it.
#[derive(Clone, Copy)]
pub(crate) struct Event(Word);

impl Event {
    /// Everything that is ready.
    #[inline]
    pub(crate) const fn ready(self) -> Ready {
        self.0.ready()
    }

    /// Counts events; two looks that saw no event between them agree.
    #[inline]
    pub(super) const fn tick(self) -> u32 {
        self.0.tick() as u32
    }

    /// Readable, but only so that a read that was put off is made.
    #[inline]
    pub(super) const fn is_reminder(self) -> bool {
        self.0.0 & REMINDED != 0
    }

    /// Readable as a guess.
    #[inline]
    pub(super) const fn is_guess(self) -> bool {
        self.0.0 & GUESSED != 0
    }

    /// The reactor has shut down.
    #[inline]
    pub(crate) const fn is_shutdown(self) -> bool {
        self.0.0 & SHUTDOWN != 0
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Event").field(&self.ready()).finish()
    }
}

/// The direction of a poll-style operation: each has a waker slot of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    /// As `Read`, but an error ends the wait as well.
    Receive,
    Write,
}

impl Direction {
    pub(crate) const fn mask(self) -> Ready {
        match self {
            Self::Read => Ready::READ,
            Self::Receive => Ready::RECEIVE,
            Self::Write => Ready::WRITE,
        }
    }
}

/// One source's readiness and waiters. 64 bytes, so that two sources share no cache line.
#[repr(align(64))]
pub(crate) struct Source {
    word: AtomicU64,
    waiters: Mutex<Waiters>,
}

#[derive(Default)]
struct Waiters {
    reader: Option<Waker>,
    writer: Option<Waker>,
    list: LinkedList<Waiter>,
    /// Numbers the waiters, so that a wake-up in rounds stops at those that came after it.
    tickets: u32,
}

/// A waiting future's node, see invariant 3.
struct Waiter {
    links: Pointers<Waiter>,
    waker: Option<Waker>,
    mask: Ready,
    ticket: u32,
    fired: bool,
}

// SAFETY: always the field `links` of the given node, and its address is computed without a
// reference.
unsafe impl Link for Waiter {
    unsafe fn pointers(node: NonNull<Self>) -> NonNull<Pointers<Self>> {
        // SAFETY: the caller passes a live node, so the field is in bounds.
        let links = unsafe { &raw mut (*node.as_ptr()).links };
        // SAFETY: a field of a live node is not at address zero.
        unsafe { NonNull::new_unchecked(links) }
    }
}

// SAFETY: the only part that is not `Send` and `Sync` by itself is the pointer of a `LinkedList`;
// the nodes are reached only under the lock (invariant 3), and their wakers are `Send + Sync`.
unsafe impl Sync for Source {}
// SAFETY: moving a source moves no node, and what is in it is `Send` for the same reason.
unsafe impl Send for Source {}

impl Source {
    /// A slot that belongs to no registration.
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU64::new(Word::new(0, Ready::EMPTY, false).0),
            waiters: Mutex::new(Waiters::default()),
        }
    }

    /// Gives the slot to a new registration. `fresh`: worth a read before the first event.
    pub(crate) fn reset(&self, generation: u32, ready: Ready, fresh: bool) {
        // ORD relaxed: the registration hands itself to other threads by its owner's means, the
        // slab's lock puts this after `retire`, and events of other generations fail their exchange.
        self.word.store(Word::new(generation, ready, fresh).0, Relaxed);
    }

    /// Takes the slot from its registration. Late events are ignored from now on.
    pub(crate) fn retire(&self, next_generation: u32) {
        // ORD relaxed: an exchange, so that it comes after every event of this generation that has
        // changed the word; those that come now change nothing.
        self.word.swap(Word::new(next_generation, Ready::EMPTY, false).0, Relaxed);
        let mut waiters = self.lock();
        // A waiter borrows its registration, but may have been forgotten while it was pinned: it leaves the list now.
        while let Some(node) = waiters.list.front() {
            // SAFETY: `node` is linked in this list. Its memory is valid, since it was pinned and not dropped, and nobody
            // polls or drops it any more, since its borrow has ended: so nobody takes it out a second time.
            unsafe { waiters.list.remove(node) };
        }
        let wakers = (waiters.reader.take(), waiters.writer.take());
        drop(waiters);
        drop(wakers);
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        // Nothing under the lock can panic (invariant 4), so a poisoned one is consistent, too.
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn load(&self) -> Word {
        // ORD[RS1] acquire: whoever sees the event sees what came before it.
        Word(self.word.load(Acquire))
    }

    #[inline]
    fn look_for(&self, bits: u64) -> Option<Event> {
        let word = self.load();
        (word.0 & (bits | SHUTDOWN) != 0).then_some(Event(word))
    }

    /// What is ready, if some of `mask` is.
    #[inline]
    pub(crate) fn look(&self, mask: Ready) -> Option<Event> {
        self.look_for(u64::from(mask.bits()))
    }

    /// What is ready, and an error, which somebody has cleared.
    fn with_error(&self) -> Event {
        Event(Word(self.load().0 | u64::from(Ready::ERROR.bits())))
    }

    /// As [`look`](Self::look), but a source that nobody has read from counts as readable.
    #[inline]
    pub(crate) fn look_to_try(&self, mask: Ready) -> Option<Event> {
        let fresh = if mask.intersects(Ready::READABLE) { FRESH } else { 0 };
        self.look_for(u64::from(mask.bits()) | fresh)
    }

    /// As [`look_to_try`](Self::look_to_try), for somebody who does not wait: a source counts as
    /// readable if a read was put off.
    pub(super) fn look_at_once(&self, mask: Ready) -> Option<Event> {
        let more = if mask.intersects(Ready::READABLE) { FRESH | PUT_OFF } else { 0 };
        self.look_for(u64::from(mask.bits()) | more)
    }

    /// The tick of the last event, if there is nothing to read as far as is known.
    #[inline]
    pub(super) fn unreadable_since(&self) -> Option<u32> {
        let word = self.load();
        let worth_a_try = u64::from(Ready::READABLE.bits()) | FRESH | SHUTDOWN;
        (word.0 & worth_a_try == 0).then(|| word.tick() as u32)
    }

    /// Adds readiness, unless the slot has passed to another registration. Returns whether it did.
    pub(crate) fn set(&self, generation: u32, ready: Ready) -> bool {
        self.update(|word| (word.generation() == generation).then(|| word.after_event(ready)))
    }

    /// Takes `bits` back, which the I/O after `event` has used up. Returns false if another event
    /// came since: then there is something new to find.
    pub(crate) fn clear(&self, event: Event, bits: Ready) -> bool {
        let mut mask = u64::from(bits.bits());
        if bits.intersects(Ready::READABLE) {
            mask |= FRESH | PUT_OFF | REMINDED | GUESSED;
        }
        self.update(|word| (word.tick() == event.0.tick()).then_some(Word(word.0 & !mask)))
    }

    /// Puts the next read off: from now on the source is readable after an event or a
    /// [`remind`](Self::remind). False if there is more to know than `event`, which is that it may
    /// be readable.
    pub(super) fn put_off(&self, event: Event) -> bool {
        let read = u64::from(Ready::READ.bits()) | SHUTDOWN;
        let readable = u64::from(Ready::READABLE.bits());
        self.update(|word| {
            let same = word.tick() == event.0.tick() && word.0 & read == readable;
            let ended = readable | FRESH | REMINDED | GUESSED;
            same.then_some(Word(word.0 & !ended | PUT_OFF))
        })
    }

    /// Makes a read that was put off worth a try. Returns whether one was.
    pub(super) fn remind(&self) -> bool {
        self.end_put_off(REMINDED)
    }

    /// As [`remind`](Self::remind), since an event is likely.
    pub(super) fn guess(&self) -> bool {
        self.end_put_off(GUESSED)
    }

    fn end_put_off(&self, why: u64) -> bool {
        let ended = self.update(|word| {
            let next = Word(word.after_event(Ready::READABLE).0 | why);
            (word.0 & PUT_OFF != 0).then_some(next)
        });
        if ended {
            self.wake(Ready::READABLE);
        }
        ended
    }

    /// Replaces the word by what `change` makes of it, until it returns `None` or succeeds.
    fn update(&self, change: impl Fn(Word) -> Option<Word>) -> bool {
        // ORD relaxed: only a first guess, the exchange below decides.
        let mut word = Word(self.word.load(Relaxed));
        while let Some(next) = change(word) {
            // ORD[RS1] release: publishes what came before the event; AcqRel, so that a clear hands
            // on what an earlier event carried, and the event that it then stands for.
            match self.word.compare_exchange_weak(word.0, next.0, AcqRel, Relaxed) {
                Ok(_) => return true,
                Err(seen) => word = Word(seen),
            }
        }
        false
    }

    /// Ends every wait, present and future.
    pub(crate) fn shut_down(&self) {
        self.update(|word| Some(Word(word.0 | SHUTDOWN)));
        self.wake(Ready::ALL);
    }

    /// Wakes whoever waits for any of `ready`. A panic of a waker is contained: the hook has
    /// reported it, and neither the other tasks nor the reactor's thread are to suffer from it.
    /// True if one of them does not wait to read.
    pub(crate) fn wake(&self, ready: Ready) -> bool {
        let mut waiters = self.lock();
        // One that does not wait for an error as well finds nothing then, and waits on.
        let reader = if ready.intersects(Ready::RECEIVE) { waiters.reader.take() } else { None };
        let writer = if ready.intersects(Ready::WRITE) { waiters.writer.take() } else { None };
        let mut writes = writer.is_some();
        if waiters.list.is_empty() {
            drop(waiters);
            reader.into_iter().chain(writer).for_each(|waker| contain(|| waker.wake()));
            return writes;
        }
        let mut wakers = WakeList::new();
        reader.into_iter().chain(writer).for_each(|waker| wakers.push(waker));
        let last = waiters.tickets;
        while waiters.collect(ready, last, &mut wakers, &mut writes) {
            drop(waiters);
            contain(|| wakers.wake_all());
            waiters = self.lock();
        }
        drop(waiters);
        contain(|| wakers.wake_all());
        writes
    }

    /// Waits in the slot of `direction`. The last task to poll is the one that is woken.
    pub(crate) fn poll_ready(&self, direction: Direction, cx: &mut Context<'_>) -> Poll<Event> {
        let mask = direction.mask();
        if let Some(event) = self.look(mask) {
            return Poll::Ready(event);
        }
        let waker = cx.waker().clone();
        let mut waiters = self.lock();
        let outcome = match self.look(mask) {
            Some(event) => (Poll::Ready(event), Some(waker)),
            None => {
                let slot = match direction {
                    Direction::Read | Direction::Receive => &mut waiters.reader,
                    Direction::Write => &mut waiters.writer,
                };
                (Poll::Pending, slot.replace(waker))
            }
        };
        drop(waiters);
        if outcome.0.is_pending() {
            outside::waits();
        }
        // The waker that is left over (the old one, if any) is dropped here, outside the lock.
        outcome.0
    }

    /// Waits for some of `mask` in the list: any number of tasks can.
    pub(crate) fn readiness(&self, mask: Ready) -> Readiness<'_> {
        Readiness {
            source: self,
            mask,
            waiting: false,
            waiter: UnsafeCell::new(Waiter {
                links: Pointers::new(),
                waker: None,
                mask,
                ticket: 0,
                fired: false,
            }),
            _pinned: PhantomPinned,
        }
    }
}

impl Waiters {
    /// Takes the wakers of the list's waiters for `ready`, up to the ticket `last`, and notes whether one does not wait
    /// to read. True if the batch is full, and there may be more.
    fn collect(
        &mut self,
        ready: Ready,
        last: u32,
        wakers: &mut WakeList,
        writes: &mut bool,
    ) -> bool {
        let mut next = self.list.front();
        while let Some(mut node) = next {
            // SAFETY: linked, so alive, and the lock is held (invariant 3).
            next = unsafe { self.list.next(node) };
            // SAFETY: as above; no other reference to the node's fields exists.
            let waiter = unsafe { node.as_mut() };
            if (last.wrapping_sub(waiter.ticket)) > u32::MAX / 2 {
                return false;
            }
            if !waiter.mask.intersects(ready) {
                continue;
            }
            if wakers.is_full() {
                return true;
            }
            *writes |= !waiter.mask.intersects(Ready::READ);
            waiter.waker.take().into_iter().for_each(|waker| wakers.push(waker));
            waiter.fired = true;
            // SAFETY: `node` is linked in this list.
            unsafe { self.list.remove(node) };
        }
        false
    }
}

/// Future of [`Source::readiness`].
///
/// Cancel safety: dropping it leaves the list and loses nothing, since readiness stays set until
/// somebody clears it.
#[must_use = "futures do nothing unless polled"]
pub(crate) struct Readiness<'a> {
    source: &'a Source,
    mask: Ready,
    /// The node has been linked, and may have been unlinked since by a wake-up.
    waiting: bool,
    waiter: UnsafeCell<Waiter>,
    _pinned: PhantomPinned,
}

// SAFETY: the waiter is touched only under the source's lock once it is linked; before and after
// only through `Pin<&mut Self>`.
unsafe impl Send for Readiness<'_> {}
// SAFETY: `&Readiness` gives access to nothing.
unsafe impl Sync for Readiness<'_> {}

impl Readiness<'_> {
    fn node(&self) -> NonNull<Waiter> {
        self.waiter.with_mut(|waiter| {
            // SAFETY: the address of a field is not null.
            unsafe { NonNull::new_unchecked(waiter) }
        })
    }

    /// Registers. Returns the event instead if there is one.
    fn enqueue(&mut self, cx: &mut Context<'_>) -> Option<Event> {
        let mut node = self.node();
        let waker = cx.waker().clone();
        let mut waiters = self.source.lock();
        let event = self.source.look(self.mask);
        if event.is_some() {
            drop(waiters);
            drop(waker);
            return event;
        }
        waiters.tickets = waiters.tickets.wrapping_add(1);
        // SAFETY: not linked, so that only this future, borrowed mutably, reaches the node.
        let waiter = unsafe { node.as_mut() };
        waiter.waker = Some(waker);
        waiter.ticket = waiters.tickets;
        waiter.fired = false;
        // SAFETY: the future is pinned (its only callers have a `Pin`), the node is in no list, and
        // `drop` removes it before the memory goes.
        unsafe { waiters.list.push_back(node) };
        drop(waiters);
        self.waiting = true;
        None
    }

    /// Looks whether a wake-up has unlinked the node; otherwise makes sure that the right waker is
    /// in it. Returns whether it was.
    fn take_fired(&mut self, cx: &mut Context<'_>) -> bool {
        let mut node = self.node();
        let mut replacement = None;
        loop {
            let waiters = self.source.lock();
            // SAFETY: the node may be linked; the lock is held (invariant 3).
            let waiter = unsafe { node.as_mut() };
            if waiter.fired {
                drop(waiters);
                self.waiting = false;
                return true;
            }
            if waiter.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                return false;
            }
            if let Some(waker) = replacement.take() {
                let old = waiter.waker.replace(waker);
                drop(waiters);
                drop(old);
                return false;
            }
            drop(waiters);
            replacement = Some(cx.waker().clone());
        }
    }
}

impl Future for Readiness<'_> {
    type Output = Event;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Event> {
        // SAFETY: nothing is moved out of the future.
        let this = unsafe { self.get_unchecked_mut() };
        let was_waiting = this.waiting;
        if !was_waiting || this.take_fired(cx) {
            // Fired or not yet registered: the word decides, since somebody else may have used up what
            // the wake-up was for.
            if let Some(event) = this.source.look(this.mask).or_else(|| match this.mask {
                // But who has received all datagrams has not looked at the queue of errors.
                Ready::ERROR if was_waiting => Some(this.source.with_error()),
                _ => this.enqueue(cx),
            }) {
                return Poll::Ready(event);
            }
        }
        outside::waits();
        Poll::Pending
    }
}

impl Drop for Readiness<'_> {
    fn drop(&mut self) {
        if !self.waiting {
            return;
        }
        let mut node = self.node();
        let mut waiters = self.source.lock();
        // SAFETY: the lock is held (invariant 3).
        let waiter = unsafe { node.as_mut() };
        let waker = waiter.waker.take();
        if !waiter.fired {
            // SAFETY: not fired, so linked (invariant 3).
            unsafe { waiters.list.remove(node) };
        }
        drop(waiters);
        drop(waker);
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
