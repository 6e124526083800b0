//! `join`: a fork that costs a few plain stores until somebody asks for work.
//!
//! Purpose: each worker keeps its open forks on a stack of pointers that only it touches. A thread
//! that looks for work sets the stack's `limit` to zero; the owner, which compares with the limit at
//! each fork anyway, then moves its *oldest* fork into its `Offer`, from which anybody can take it.
//! An oldest fork is the largest piece of work, so few of them ever change hands. While more threads
//! sleep than there are offers, the request stands.
//!
//! Rejected:
//! * A Chase-Lev deque (rayon): two full fences for each fork, needed or not.
//! * Promotion at heartbeats (chili, forte): a thread that wakes up every 100 us, and work that is
//!   offered that much later. Asking costs the asker a store and the owner nothing.
//! * A list through the jobs instead of an array: seven stores for a fork instead of four.
//!
//! | A fork is | where | what happens next |
//! |-----------|-------|-------------------|
//! | local | `slots[bottom..tail]` | popped by its owner and run there, or promoted |
//! | offered | `Offer` | taken back by its owner, or claimed |
//! | claimed | a thief's stack frame | run and finished, or returned as unrelated |
//!
//! Invariants:
//! 1. Only the owner touches `slots`, `tail` and `bottom`; `bottom <= tail <= FORKS`.
//! 2. A job outlives its place in the stack, the offer, and the claim: `join` ends only when it was
//!    popped, taken back, or has an outcome.
//! 3. `promoted` is initialised when the job is offered, and before that used by nobody.
//! 4. A promoted job's parent is the frame in which it was forked: the stack below the running
//!    frame's first fork is out of reach while that frame runs (`Worker::within`).
//!
//! | Edge | Release side | Acquire side | Carries | Model that fails without it |
//! |------|--------------|--------------|---------|-----------------------------|
//! | [FK2] | `Promoted::set_thief` | `Promoted::thief` | the thief's record | `the_thief_is_seen_whole` |
//!
//! Progress: a fork that nobody takes is run by its owner. A claimed one is finished by its thief,
//! which runs it at once.
//!
//! Cost: a local `join` 0 RMW, 4 stores. Promotion 1 fence, and a wake-up if a thread sleeps; taking
//! back 1 RMW, claiming 1.

use std::array;
use std::cell::Cell;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;

use volt_sync::internal::primitive::{AtomicPtr, AtomicUsize, UnsafeCell};

use crate::frame::{Frame, Outcome};
use crate::offer::OFFERS;
use crate::payload::{Payload, discard};
use crate::worker::{Help, Worker};

/// How many forks one thread can have open; deeper ones run in sequence.
pub(crate) const FORKS: usize = if cfg!(volt_loom) { 4 } else { 1024 };

/// A thread's open forks.
pub(crate) struct ForkStack {
    tail: Cell<usize>,
    /// The oldest local fork.
    bottom: Cell<usize>,
    /// `FORKS`, or 0 when somebody wants work.
    limit: AtomicUsize,
    slots: [Cell<*const Fork>; FORKS],
}

/// The part of a fork that does not depend on its types.
#[repr(C)]
pub(crate) struct Fork {
    execute: unsafe fn(*const Fork),
    promoted: UnsafeCell<MaybeUninit<Promoted>>,
}

/// What a fork needs once others may have it.
pub(crate) struct Promoted {
    pub(crate) frame: Frame,
    thief: AtomicPtr<Worker>,
}

impl Promoted {
    pub(crate) fn new(frame: Frame) -> Self {
        Self { frame, thief: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Who runs it; null if nobody does yet.
    pub(crate) fn thief(&self) -> *const Worker {
        // ORD[FK2] acquire: the thief's record.
        self.thief.load(Acquire)
    }

    pub(crate) fn set_thief(&self, thief: &Worker) {
        // ORD[FK2] release: the thief's record.
        self.thief.store(ptr::from_ref(thief).cast_mut(), Release);
    }
}

impl Fork {
    /// # Safety
    /// 1. `this` is alive and was offered.
    pub(crate) unsafe fn promoted<'a>(this: *const Self) -> &'a Promoted {
        // SAFETY: alive, as obligation 1 says.
        let cell = unsafe { &(*this).promoted };
        // SAFETY: initialised when it was offered (1, invariant 3), and only shared since.
        cell.with(|promoted| unsafe { &*promoted.cast::<Promoted>() })
    }

    /// Runs the job and keeps its result, or its panic.
    ///
    /// # Safety
    /// 1. `this` was claimed by the caller, and not run.
    pub(crate) unsafe fn execute(this: *const Self) {
        // SAFETY: a claimed job is alive (invariant 2).
        let execute = unsafe { (*this).execute };
        // SAFETY: claimed, not run (1).
        unsafe { execute(this) };
    }
}

impl ForkStack {
    pub(crate) fn new() -> Self {
        Self {
            tail: Cell::new(0),
            bottom: Cell::new(0),
            // Somebody may be looking for work since before this thread started.
            limit: AtomicUsize::new(0),
            slots: array::from_fn(|_| Cell::new(ptr::null())),
        }
    }

    /// Asks the owner to offer its oldest fork, now or when it has one.
    pub(crate) fn ask(&self) {
        // ORD relaxed: a request, looked at before each fork.
        if self.limit.load(Relaxed) != 0 {
            // ORD relaxed: as above.
            self.limit.store(0, Relaxed);
        }
    }

    /// True if somebody asked for work. Only for the owner.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        // ORD relaxed: a request.
        self.limit.load(Relaxed) == 0
    }

    /// Hides the open forks from promotion; returns what `reveal` needs.
    #[inline]
    pub(crate) fn hide(&self) -> usize {
        self.bottom.replace(self.tail.get())
    }

    #[inline]
    pub(crate) fn reveal(&self, bottom: usize) {
        self.bottom.set(bottom);
    }

    /// Takes the oldest local fork.
    fn oldest(&self) -> Option<*const Fork> {
        let bottom = self.bottom.get();
        if bottom == self.tail.get() {
            return None;
        }
        self.bottom.set(bottom + 1);
        Some(self.slots[bottom].get())
    }
}

/// A fork with its function and the place for its result, on the stack of `join`.
#[repr(C)]
struct Job<B, R> {
    fork: Fork,
    function: UnsafeCell<ManuallyDrop<B>>,
    result: UnsafeCell<MaybeUninit<thread::Result<R>>>,
}

impl<B: FnOnce() -> R, R> Job<B, R> {
    #[inline(always)]
    fn new(function: B) -> Self {
        Self {
            fork: Fork { execute: Self::execute, promoted: UnsafeCell::new(MaybeUninit::uninit()) },
            function: UnsafeCell::new(ManuallyDrop::new(function)),
            result: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// # Safety
    /// 1. Called once, by whoever has the job.
    #[inline(always)]
    unsafe fn take(&self) -> B {
        self.function.with_mut(|function| {
            // SAFETY: whoever has the job has its function to itself (1).
            let function = unsafe { &mut *function };
            // SAFETY: taken once (1).
            unsafe { ManuallyDrop::take(function) }
        })
    }

    /// # Safety
    /// 1. `fork` is the first field of a `Self` that the caller claimed.
    unsafe fn execute(fork: *const Fork) {
        // SAFETY: `Self` is `repr(C)` (1), and alive (invariant 2).
        let this = unsafe { &*fork.cast::<Self>() };
        // SAFETY: claimed, and run once (1).
        let function = unsafe { this.take() };
        let result = catch_unwind(AssertUnwindSafe(function));
        // SAFETY: the owner reads it after the outcome only.
        this.result.with_mut(|place| unsafe { (*place).write(result) });
    }

    /// # Safety
    /// 1. The outcome is [`Outcome::Done`], and the result was not taken.
    unsafe fn take_result(&self) -> thread::Result<R> {
        // SAFETY: written before the outcome, and taken once (1).
        self.result.with_mut(|place| unsafe { place.cast::<thread::Result<R>>().read() })
    }
}

/// What became of a promoted fork, seen by its owner.
enum Ended<B, R> {
    Here(B),
    There(thread::Result<R>),
}

impl Worker {
    /// Runs both closures, the second one possibly on another thread.
    #[inline]
    pub(crate) fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA,
        B: FnOnce() -> RB,
    {
        let stack = &self.fork;
        let job = Job::new(b);
        // Of the whole job, which `execute` gets back from it.
        let fork = (&raw const job).cast::<Fork>();
        let tail = stack.tail.get();
        // ORD relaxed: a request for work; what is offered then is published by [FK1].
        if tail >= stack.limit.load(Relaxed) {
            if !self.fork_slow(fork, tail) {
                // SAFETY: not on the stack, so ours.
                let b = unsafe { job.take() };
                return (a(), b());
            }
        } else {
            // SAFETY: below the limit, which is at most `FORKS`.
            let slot = unsafe { stack.slots.get_unchecked(tail) };
            slot.set(fork);
            stack.tail.set(tail + 1);
        }
        // Caught, and not left to a destructor: what this thread runs while it waits for the other
        // half must not find itself in a panic that is not its own.
        let ra = match catch_unwind(AssertUnwindSafe(a)) {
            Ok(ra) => ra,
            Err(panic) => self.abandon(panic, &job, tail),
        };
        stack.tail.set(tail);
        let rb = if stack.bottom.get() <= tail {
            // SAFETY: popped, so ours.
            let b = unsafe { job.take() };
            b()
        } else {
            match self.end_promoted(&job, tail) {
                Ended::Here(b) => b(),
                Ended::There(Ok(rb)) => rb,
                Ended::There(Err(panic)) => resume_unwind(panic),
            }
        };
        (ra, rb)
    }

    /// Ends a fork whose first closure panicked, and goes on with that panic. What the second one
    /// holds, or left, is dropped.
    #[cold]
    #[inline(never)]
    fn abandon<B: FnOnce() -> R, R>(&self, panic: Payload, job: &Job<B, R>, tail: usize) -> ! {
        self.fork.tail.set(tail);
        let ended = if self.fork.bottom.get() <= tail {
            // SAFETY: popped, so ours, and taken once.
            Ended::Here(unsafe { job.take() })
        } else {
            self.end_promoted(job, tail)
        };
        // The first panic goes on; another one must not replace it.
        discard(move || drop(ended));
        resume_unwind(panic)
    }

    /// Pushes a fork although the limit is reached, because somebody wants work or the stack is
    /// full. False if it is full.
    #[cold]
    fn fork_slow(&self, fork: *const Fork, tail: usize) -> bool {
        let stack = &self.fork;
        let asked = stack.is_asked();
        if asked {
            // ORD relaxed: the request is answered below.
            stack.limit.store(FORKS, Relaxed);
        }
        let fits = tail < FORKS;
        if fits {
            stack.slots[tail].set(fork);
            stack.tail.set(tail + 1);
        }
        if asked && self.promote() {
            stack.ask();
        }
        fits
    }

    /// Offers the oldest local fork, unless there is an offer for each thread that sleeps, or is not started
    /// yet, and as many as the core says at least. True if there should be another one.
    fn promote(&self) -> bool {
        let offered = self.offer.len();
        let core = self.core();
        let takers = core.sync.idle() + core.unstarted();
        let wanted = takers.clamp(core.least_offers(), OFFERS);
        if offered >= wanted {
            return false;
        }
        let Some(fork) = self.fork.oldest() else { return false };
        // SAFETY: `current` is the frame in which it was forked (invariant 4), which outlives it.
        let frame = unsafe { Frame::new(self.current(), self.parker(), self) };
        let lineage = frame.lineage();
        let promoted = Promoted::new(frame);
        // SAFETY: on our stack, so alive (invariant 2).
        let cell = unsafe { &(*fork).promoted };
        // SAFETY: local until it is offered below, so nobody else looks (invariant 3).
        cell.with_mut(|place| unsafe { (*place).write(promoted) });
        self.offer.put(fork, lineage);
        self.announce_offer();
        offered + 1 < wanted
    }

    /// Ends a fork that was promoted: runs it here after all, or waits for it and helps meanwhile.
    #[cold]
    fn end_promoted<B: FnOnce() -> R, R>(&self, job: &Job<B, R>, tail: usize) -> Ended<B, R> {
        self.fork.bottom.set(tail);
        let fork = &raw const job.fork;
        let outcome = if self.offer.take_back(fork) {
            // Whoever asked for it has got nothing.
            self.fork.ask();
            Outcome::Returned
        } else {
            // SAFETY: alive, and offered.
            let promoted = unsafe { Fork::promoted(fork) };
            self.wait(&promoted.frame, Help::Thief(promoted))
        };
        match outcome {
            // SAFETY: taken back or returned, so ours.
            Outcome::Returned => Ended::Here(unsafe { job.take() }),
            // SAFETY: done, and taken once.
            Outcome::Done => Ended::There(unsafe { job.take_result() }),
        }
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
