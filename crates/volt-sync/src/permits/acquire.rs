//! The future that waits for permits.

use std::cell::Cell;
use std::future::Future;
use std::marker::PhantomPinned;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};

use super::convoy::{self, Turns};
use super::{Closed, GRANTED, Permits, Refused};
use crate::coop;
use crate::first_panic::FirstPanic;
use crate::waiter::{WAITING, Waiter};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Not in the queue, and never was.
    Fresh,
    /// As Fresh, but others have had turns (`convoy.rs`).
    Yielded(Turns),
    /// `waiter` is initialised, and linked as long as it waits.
    Queued,
    /// Ready was returned.
    Done,
}

/// Waits for `n` permits, in order. Dropping it takes it out of the queue, and gives back permits
/// that it was granted without having returned `Ready`.
///
/// Building one writes three words; the waiter is filled in only when it queues.
pub(crate) struct AcquirePermits<'a> {
    permits: &'a Permits,
    n: usize,
    phase: Cell<Phase>,
    waiter: MaybeUninit<Waiter<usize>>,
    /// A queued waiter is used by other threads through its address, also while a `&mut` to the
    /// pinned future exists. That is what being `!Unpin` permits.
    _pinned: PhantomPinned,
}

// SAFETY: the waiter is accessed as `waiter.rs` says; all else is `Send`.
unsafe impl Send for AcquirePermits<'_> {}
// SAFETY: `&AcquirePermits` gives access to nothing.
unsafe impl Sync for AcquirePermits<'_> {}

impl<'a> AcquirePermits<'a> {
    #[inline]
    pub(super) const fn new(permits: &'a Permits, n: usize) -> Self {
        Self {
            permits,
            n,
            phase: Cell::new(Phase::Fresh),
            waiter: MaybeUninit::uninit(),
            _pinned: PhantomPinned,
        }
    }

    /// The waiter's place.
    #[inline]
    fn waiter(this: NonNull<Self>) -> NonNull<Waiter<usize>> {
        // SAFETY: `this` points to a live future, of which this is a field.
        let waiter = unsafe { &raw mut (*this.as_ptr()).waiter };
        // SAFETY: the address of a field is not null.
        unsafe { NonNull::new_unchecked(waiter.cast()) }
    }
}

impl Future for AcquirePermits<'_> {
    type Output = Result<(), Closed>;

    #[cold]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if !coop::has_budget_remaining() {
            return self.poll_without_budget(cx);
        }
        let result = match self.phase.get() {
            Phase::Fresh => match self.permits.try_acquire(self.n) {
                Ok(()) => Ok(()),
                Err(Refused::Closed) => Err(Closed),
                Err(Refused::TooFew) => return Self::poll_fresh(self, cx),
            },
            _ => return Self::poll_again(self, cx),
        };
        self.done(result)
    }
}

impl AcquirePermits<'_> {
    /// Takes no permits that are there. Who has to wait takes its place all the same: whoever asks later is behind it. (Permits that
    /// come at that moment are taken.)
    #[cold]
    fn poll_without_budget(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        if self.phase.get() != Phase::Fresh || !self.permits.are_too_few(self.n) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.take_or_enqueue(cx)
    }

    /// Gives others a turn if they were just handed the permits; otherwise waits.
    #[cold]
    fn poll_fresh(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        match convoy::first_turn(self.permits, self.address()) {
            Some(turns) => self.give_turn(turns, cx),
            None => self.wait(cx),
        }
    }

    /// Looks after the others had `turns`.
    fn poll_yielded(
        self: Pin<&mut Self>,
        turns: Turns,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Closed>> {
        match self.permits.try_acquire(self.n) {
            Ok(()) => {
                convoy::paid(self.permits, self.address());
                self.done(Ok(()))
            }
            Err(Refused::Closed) => self.done(Err(Closed)),
            Err(Refused::TooFew) => match convoy::another_turn(self.permits, turns, self.address())
            {
                Some(turns) => self.give_turn(turns, cx),
                None => self.wait(cx),
            },
        }
    }

    /// What tells this wait apart from the others of its task.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn give_turn(&self, turns: Turns, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        self.phase.set(Phase::Yielded(turns));
        // User code, which may panic: the next poll then is as after a turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Spins, then queues.
    fn wait(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        if self.permits.spin_for(self.n) {
            return self.done(Ok(()));
        }
        self.take_or_enqueue(cx)
    }

    #[inline]
    fn take_or_enqueue(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        // User code, which may panic: nothing has happened yet.
        let waker = cx.waker().clone();
        match self.as_mut().enqueue(waker) {
            Some(result) => self.done(result),
            None => Poll::Pending,
        }
    }

    #[inline]
    fn done(&self, result: Result<(), Closed>) -> Poll<Result<(), Closed>> {
        self.phase.set(Phase::Done);
        coop::made_progress();
        Poll::Ready(result)
    }

    /// Takes the permits or a place in the queue (`None`).
    fn enqueue(mut self: Pin<&mut Self>, waker: Waker) -> Option<Result<(), Closed>> {
        let (permits, n) = (self.permits, self.n);
        // SAFETY: nothing is moved out.
        let this = NonNull::from(unsafe { self.as_mut().get_unchecked_mut() });
        let waiter = Self::waiter(this);
        // SAFETY: the place is inside `this`, and not in use before the Queued phase.
        unsafe { waiter.write(Waiter::new(waker, n)) };
        let word = match permits.take_or_lock(n) {
            Ok(result) => {
                let give_back = GiveBack { permits, n: if result.is_ok() { n } else { 0 } };
                // SAFETY: never linked, so the waker is still ours; the waiter is not used again.
                drop(unsafe { Waiter::take_waker(waiter) });
                std::mem::forget(give_back);
                return Some(result);
            }
            Err(word) => word,
        };
        self.phase.set(Phase::Queued);
        permits.queue.with_mut(|queue| {
            // SAFETY: the lock is held.
            let queue = unsafe { &mut *queue };
            // SAFETY: 1. Pinned, initialised above, in no list. 2. `drop` unlinks it.
            unsafe { queue.push_back(waiter) };
        });
        permits.serve(word);
        // The permits may have come in between.
        self.look()
    }

    /// The result, if the wait has ended.
    fn look(self: Pin<&mut Self>) -> Option<Result<(), Closed>> {
        // SAFETY: nothing is moved out.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: called in the Queued phase, so the waiter is initialised.
        let status = unsafe { Waiter::status(Self::waiter(NonNull::from(&mut *this))) };
        if status == WAITING {
            return None;
        }
        this.phase.set(Phase::Done);
        Some(if status == GRANTED { Ok(()) } else { Err(Closed) })
    }

    #[cold]
    fn poll_again(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        match self.phase.get() {
            Phase::Queued => self.poll_queued(cx),
            Phase::Yielded(turns) => self.poll_yielded(turns, cx),
            _ => panic!("the future of a lock or a semaphore was polled after completion"),
        }
    }

    fn poll_queued(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        if self.as_mut().look_or_update(cx) {
            return Poll::Pending;
        }
        match self.look() {
            None => Poll::Pending,
            Some(result) => {
                coop::made_progress();
                Poll::Ready(result)
            }
        }
    }

    /// True if the wait goes on and its end will wake `cx`.
    fn look_or_update(self: Pin<&mut Self>, cx: &mut Context<'_>) -> bool {
        // SAFETY: nothing is moved out.
        let this = unsafe { self.get_unchecked_mut() };
        let permits = this.permits;
        let waiter = Self::waiter(NonNull::from(this));
        // SAFETY: initialised in the Queued phase.
        if unsafe { Waiter::status(waiter) } != WAITING {
            return false;
        }
        // SAFETY: initialised, and its owner is here.
        if unsafe { Waiter::will_wake(waiter, cx.waker()) } {
            return true;
        }
        let waker = cx.waker().clone();
        let word = permits.lock();
        // SAFETY: initialised in the Queued phase; only its status is read.
        let old = if unsafe { Waiter::status(waiter) } == WAITING {
            // SAFETY: 1. The owner, with the lock. 2. It waits.
            unsafe { Waiter::replace_waker(waiter, waker) }
        } else {
            waker
        };
        permits.serve(word);
        drop(old);
        // `serve` may have completed this waiter too.
        false
    }

    /// Takes the waiter out of the queue, or gives back what it was granted (invariant 5).
    #[cold]
    fn cancel(&mut self) {
        // The permits are passed on also if a waker panics.
        let mut panic = FirstPanic::new();
        let (permits, n) = (self.permits, self.n);
        let waiter = Self::waiter(NonNull::from(self));
        // SAFETY: initialised in the Queued phase.
        let mut status = unsafe { Waiter::status(waiter) };
        if status == WAITING {
            let word = permits.lock();
            let mut waker = None;
            // SAFETY: initialised in the Queued phase, and its owner is here.
            status = unsafe { Waiter::status(waiter) };
            if status == WAITING {
                permits.queue.with_mut(|queue| {
                    // SAFETY: the lock is held.
                    let queue = unsafe { &mut *queue };
                    // SAFETY: a waiter that waits is linked.
                    unsafe { queue.remove(waiter) };
                });
                // SAFETY: it waited, the lock is held, and it is not used again.
                waker = Some(unsafe { Waiter::take_waker(waiter) });
            }
            panic.catch(|| permits.serve(word));
            panic.catch(|| drop(waker));
        }
        #[cfg(volt_loom)]
        // SAFETY: unlinked by us, or by whoever completed it.
        unsafe {
            Waiter::retire(waiter);
        }
        if status == GRANTED {
            panic.catch(|| permits.release(n));
        }
        panic.resume();
    }
}

/// Gives permits back at the end of its scope, also when a waker panics.
struct GiveBack<'a> {
    permits: &'a Permits,
    n: usize,
}

impl Drop for GiveBack<'_> {
    fn drop(&mut self) {
        self.permits.release(self.n);
    }
}

impl Drop for AcquirePermits<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.phase.get() == Phase::Queued {
            self.cancel();
        }
    }
}
