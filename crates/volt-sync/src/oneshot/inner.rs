//! What the two halves of a oneshot channel share.
//!
//! Purpose: one allocation, and one read-modify-write for the whole life of a channel whose receiver
//! does not have to wait.
//!
//! Rejected: a reference count. Each half would pay for its decrement; here the bit that says "I am
//! done" is also the one that hands the memory over: who finds the other's bit set frees.
//!
//! State: one byte of bits.
//!
//! | Bit      | Set by   | Means                                                                  |
//! |----------|----------|------------------------------------------------------------------------|
//! | RX_WAKER | receiver | its waker is in `receiver_waker`; cleared by whoever takes it          |
//! | TX_WAKER | sender   | its waker is in `sender_waker`; cleared by whoever takes it            |
//! | TX_BUSY  | sender   | it has taken the receiver's waker and is about to set COMPLETE         |
//! | RX_BUSY  | receiver | it has taken the sender's waker and is about to set CLOSED             |
//! | VALUE    | sender   | (with COMPLETE) the value is in `value`                                |
//! | COMPLETE | sender   | it has left for good: the receiver owns the memory                     |
//! | CLOSED   | receiver | it refuses a value that is not there yet                               |
//! | GONE     | receiver | it has left for good: the sender owns the memory                       |
//!
//! Invariants:
//! 1. A waker's cell is written only by its owner, while neither its WAKER bit nor the other half's
//!    BUSY bit is set. The other half reads it only between clearing the WAKER bit, which sets BUSY
//!    in the same step, and its COMPLETE or CLOSED. So the owner may compare the bits meanwhile.
//! 2. COMPLETE and GONE are never both set: whoever would set the second one frees instead.
//! 3. `value` is the sender's until COMPLETE, and the receiver's after it.
//!
//! | Edge  | Release side                | Acquire side                    | Carries                | Model            |
//! |-------|-----------------------------|---------------------------------|------------------------|------------------|
//! | [OS1] | `Inner::complete`           | `Inner::try_recv` and drop      | the value; the sender has left the memory | `oneshot::model` |
//! | [OS2] | `Inner::drop_receiver`      | `Inner::complete`               | the receiver has left the memory          | `oneshot::model` |
//! | [OS3] | `Inner::register`           | `Inner::take_other`             | the waker in its cell                     | `oneshot::model` |
//! | [OS4] | `Inner::close`              | `Inner::poll_closed`            | what the receiver did before it closed    | `oneshot::model` |
//!
//! Progress: registering ends with a compare-exchange on the word that the other half's last step
//! changes with one too, so one of the two sees the other: either the registration fails on COMPLETE
//! or CLOSED, or the last step finds the WAKER bit. An owner that meets BUSY wakes itself: the other
//! half is a few instructions from being done.
//!
//! Cost: `send` 1 RMW, 2 with a waiting receiver; register 1; receive 0; drop of a receiver that
//! was not sent to 1.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::task::{Poll, Waker};

use crate::first_panic::FirstPanic;
use crate::primitive::{AtomicU8, UnsafeCell, spin};

const RX_WAKER: u8 = 1;
const TX_WAKER: u8 = 1 << 1;
const TX_BUSY: u8 = 1 << 2;
const RX_BUSY: u8 = 1 << 3;
const VALUE: u8 = 1 << 4;
const COMPLETE: u8 = 1 << 5;
const CLOSED: u8 = 1 << 6;
const GONE: u8 = 1 << 7;

type WakerCell = UnsafeCell<MaybeUninit<Waker>>;

pub(super) struct Inner<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
    receiver_waker: WakerCell,
    sender_waker: WakerCell,
}

/// What [`Inner::try_recv`] found.
#[must_use]
pub(super) enum Received<T> {
    /// The sender may still send.
    Nothing,
    /// There will be no value. The memory is still the receiver's to leave.
    Closed,
    /// The value; the memory has been freed.
    Value(T),
}

/// Wakers for the time when the half has done its last step: they are user code, and their panics must
/// not keep the other half from learning of the end.
#[derive(Default)]
struct Wakers {
    /// The other half's, to be woken.
    wake: Option<Waker>,
    /// To be dropped.
    own: Option<Waker>,
    /// To be dropped, too: nobody waits with it any more.
    other: Option<Waker>,
}

impl Wakers {
    /// Does what is to be done with them. Returns the first panic.
    #[cold]
    fn finish(self) -> FirstPanic {
        let Self { wake, own, other } = self;
        let mut panic = FirstPanic::new();
        panic.catch(|| wake.into_iter().for_each(Waker::wake));
        panic.catch(|| drop(own));
        panic.catch(|| drop(other));
        panic
    }

    /// The same, for callers that have no value in hand which a panic would drop.
    #[inline]
    fn end(self) {
        match self {
            Self { wake: None, own: None, other: None } => {}
            Self { wake: Some(waker), own: None, other: None } => waker.wake(),
            wakers => wakers.finish().resume(),
        }
    }
}

/// One half's waker: its bit, its cell, and when there is no use in registering it.
struct Half<'a> {
    waker_bit: u8,
    cell: &'a WakerCell,
    /// The other half is reading the cell.
    other_busy: u8,
    /// What the half waits for has happened.
    done: u8,
}

impl<T> Inner<T> {
    pub(super) fn allocate() -> NonNull<Self> {
        NonNull::from(Box::leak(Box::new(Self {
            state: AtomicU8::new(0),
            value: UnsafeCell::new(MaybeUninit::uninit()),
            receiver_waker: UnsafeCell::new(MaybeUninit::uninit()),
            sender_waker: UnsafeCell::new(MaybeUninit::uninit()),
        })))
    }

    fn receiver(&self) -> Half<'_> {
        let (waker_bit, other_busy, done) = (RX_WAKER, TX_BUSY, COMPLETE | CLOSED);
        Half { waker_bit, cell: &self.receiver_waker, other_busy, done }
    }

    fn sender(&self) -> Half<'_> {
        let (waker_bit, other_busy, done) = (TX_WAKER, RX_BUSY, CLOSED);
        Half { waker_bit, cell: &self.sender_waker, other_busy, done }
    }

    pub(super) fn is_closed(&self) -> bool {
        // ORD[OS4] acquire: whoever sees the channel closed sees what came before.
        self.state.load(Acquire) & CLOSED != 0
    }

    pub(super) fn has_value(&self) -> bool {
        // ORD relaxed: a hint; `try_recv` looks again.
        self.state.load(Relaxed) & VALUE != 0
    }

    /// Ready once the sender has left or the channel is closed. Only for the receiver.
    pub(super) fn poll_complete(&self, waker: &Waker) -> Poll<()> {
        self.register(&self.receiver(), waker)
    }

    /// Ready once the channel is closed. Only for the sender.
    pub(super) fn poll_closed(&self, waker: &Waker) -> Poll<()> {
        self.register(&self.sender(), waker)
    }

    /// Leaves `waker` in the half's cell, unless what it waits for has happened.
    fn register(&self, half: &Half<'_>, waker: &Waker) -> Poll<()> {
        // ORD[OS4] acquire: as in `is_closed`. After COMPLETE the receiver looks again, with `try_recv`.
        let mut state = self.state.load(Acquire);
        if state & half.done != 0 {
            return Poll::Ready(());
        }
        if state & half.waker_bit != 0 {
            // SAFETY: only the owner writes the cell (invariant 1), it did before it set the bit, and
            // only the bits are compared: the other half may just be moving the waker out.
            let same = half.cell.with(|cell| unsafe { (*cell.cast::<Waker>()).will_wake(waker) });
            if same {
                return Poll::Pending;
            }
            let old;
            (state, old) = self.withdraw(half);
            // User code, which may panic: the state is that of a half that does not wait.
            drop(old);
        }
        if state & (half.done | half.other_busy) != 0 {
            return self.settle(half, state, waker);
        }
        let new = waker.clone();
        // SAFETY: neither bit is set, so the cell is ours (invariant 1).
        half.cell.with_mut(|cell| unsafe { (*cell).write(new) });
        loop {
            let new = state | half.waker_bit;
            // ORD[OS3] release: publishes the waker to the other half.
            // ORD[OS4] acquire: a failure may read CLOSED, as in `is_closed`.
            match self.state.compare_exchange_weak(state, new, Release, Acquire) {
                Ok(_) => return Poll::Pending,
                Err(now) if now & (half.done | half.other_busy) != 0 => {
                    // SAFETY: the bit was never set, so the waker is still ours.
                    drop(half.cell.with(|cell| unsafe { cell.cast::<Waker>().read() }));
                    return self.settle(half, now, waker);
                }
                Err(now) => state = now,
            }
        }
    }

    /// Registration found the other half done, or a few instructions away from it.
    fn settle(&self, half: &Half<'_>, state: u8, waker: &Waker) -> Poll<()> {
        if state & half.done != 0 {
            return Poll::Ready(());
        }
        spin(0);
        waker.wake_by_ref();
        Poll::Pending
    }

    /// Takes the half's own waker back, unless the other half has it already. Returns the state after
    /// that, and the waker, which the caller drops when a panic of it can do no harm.
    fn withdraw(&self, half: &Half<'_>) -> (u8, Option<Waker>) {
        // ORD[OS4] acquire: it may read CLOSED, as in `is_closed`.
        let before = self.state.fetch_and(!half.waker_bit, Acquire);
        let waker = (before & half.waker_bit != 0).then(|| {
            // SAFETY: we cleared the bit, so the waker is ours again (invariant 1).
            half.cell.with(|cell| unsafe { cell.cast::<Waker>().read() })
        });
        (before & !half.waker_bit, waker)
    }

    /// Claims the other half's waker: clears its bit and sets `busy`. `None` if the state changed.
    fn take_other(&self, other: &Half<'_>, busy: u8, state: u8) -> Option<Waker> {
        debug_assert_eq!(busy, other.other_busy);
        let claimed = state & !other.waker_bit | busy;
        // ORD[OS3] acquire: the waker in the cell.
        self.state.compare_exchange(state, claimed, Acquire, Relaxed).ok()?;
        // SAFETY: we cleared the bit and set ours, so the waker is ours (invariant 1).
        Some(other.cell.with(|cell| unsafe { cell.cast::<Waker>().read() }))
    }

    /// Sends the value, and leaves.
    ///
    /// # Safety
    /// 1. `this` is alive, and the caller is the sender.
    /// 2. The sender does not use `this` after this call.
    #[inline]
    pub(super) unsafe fn send(this: NonNull<Self>, value: T) -> Result<(), T> {
        // SAFETY: alive (obligation 1).
        let inner = unsafe { this.as_ref() };
        // SAFETY: the value's cell is the sender's until COMPLETE (invariant 3).
        inner.value.with_mut(|cell| unsafe { (*cell).write(value) });
        // Nobody waits and nobody has left: the ordinary case.
        // ORD relaxed: a guess, which the exchange verifies.
        if inner.state.load(Relaxed) == 0 {
            // ORD[OS1] release: publishes the value, and that the sender has left.
            let sent = inner.state.compare_exchange(0, VALUE | COMPLETE, Release, Relaxed);
            if sent.is_ok() {
                return Ok(());
            }
        }
        // SAFETY: the obligations of this function, handed on; the value was written.
        unsafe { Self::send_slow(this) }
    }

    /// Sends the value that was written: somebody waits, or has closed or left.
    ///
    /// # Safety
    /// As [`send`](Self::send), and the value is in its cell.
    #[cold]
    unsafe fn send_slow(this: NonNull<Self>) -> Result<(), T> {
        // SAFETY: alive (obligation 1).
        let inner = unsafe { this.as_ref() };
        let mut last = Wakers::default();
        // SAFETY: the obligations of this function, handed on.
        if unsafe { Self::complete(this, VALUE, &mut last) } {
            last.end();
            return Ok(());
        }
        // SAFETY: not completed, so alive and ours; the value was written above.
        let value = inner.value.with(|cell| unsafe { cell.cast::<T>().read() });
        // SAFETY: the obligations of this function, handed on; nothing of `inner` is used after it.
        unsafe { Self::complete(this, 0, &mut last) };
        let panic = last.finish();
        if panic.happened() {
            panic.resume_without(value);
        }
        Err(value)
    }

    /// The sender leaves without a value.
    ///
    /// # Safety
    /// As [`send`](Self::send).
    pub(super) unsafe fn drop_sender(this: NonNull<Self>) {
        let mut last = Wakers::default();
        // SAFETY: the obligations of this function, handed on.
        unsafe { Self::complete(this, 0, &mut last) };
        last.end();
    }

    /// The sender's last step. False if `value` is VALUE and the channel is closed: then the sender
    /// has not left. The wakers go to `last`.
    ///
    /// # Safety
    /// As [`send`](Self::send), if the result is true.
    unsafe fn complete(this: NonNull<Self>, value: u8, last: &mut Wakers) -> bool {
        // SAFETY: alive (obligation 1).
        let inner = unsafe { this.as_ref() };
        let mut waker = None;
        // ORD[OS2] acquire: a GONE is the receiver's last access.
        let mut state = inner.state.load(Acquire);
        if state & TX_WAKER != 0 {
            (state, last.own) = inner.withdraw(&inner.sender());
        }
        loop {
            if state & CLOSED != 0 && value != 0 {
                // The receiver does not wait, and its waker need not be woken.
                last.other = waker;
                return false;
            }
            if state & GONE != 0 {
                // SAFETY: the receiver has left (invariant 2), so nobody else uses the memory; no
                // value is in it, since `value` is 0 here.
                unsafe { Self::free(this) };
                return true;
            }
            if state & RX_WAKER != 0 {
                waker = inner.take_other(&inner.receiver(), TX_BUSY, state);
                // ORD[OS2] acquire: as above.
                state = inner.state.load(Acquire);
                continue;
            }
            let new = state & !TX_BUSY | value | COMPLETE;
            // ORD[OS1] release: publishes the value, and that the sender has left.
            // ORD[OS2] acquire: a failure may read GONE. Success acquires nothing.
            match inner.state.compare_exchange_weak(state, new, Release, Acquire) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        last.wake = waker;
        true
    }

    /// Takes the value if it is there, and frees the memory with it.
    ///
    /// # Safety
    /// 1. `this` is alive, and the caller is the receiver.
    /// 2. If the result is `Received::Value`, the receiver does not use `this` any more.
    #[inline]
    pub(super) unsafe fn try_recv(this: NonNull<Self>) -> Received<T> {
        // SAFETY: alive (obligation 1).
        let inner = unsafe { this.as_ref() };
        // ORD[OS1] acquire: the value, and that the sender has left.
        let state = inner.state.load(Acquire);
        if state & VALUE != 0 {
            // SAFETY: COMPLETE makes the value ours (invariant 3), and it is read once: the memory
            // is freed below.
            let value = inner.value.with(|cell| unsafe { cell.cast::<T>().read() });
            // SAFETY: COMPLETE makes the memory ours (invariant 2).
            unsafe { Self::leave_complete(this, state) };
            Received::Value(value)
        } else if state & (COMPLETE | CLOSED) != 0 {
            Received::Closed
        } else {
            Received::Nothing
        }
    }

    /// Closes the channel: a value that is not there yet will be refused.
    pub(super) fn close(&self) {
        // SAFETY: alive as long as the reference, since the bits are without GONE.
        let (_, waker) = unsafe { Self::close_with(NonNull::from(self), CLOSED) };
        waker.into_iter().for_each(Waker::wake);
    }

    /// Sets `bits`, which include CLOSED; the caller wakes the sender's waker. Does nothing after COMPLETE and
    /// returns false then.
    ///
    /// Takes a pointer, since a reference among the arguments would have to stay valid until the
    /// return, and after GONE the sender may free the memory before that.
    ///
    /// # Safety
    /// 1. `this` is alive, and the caller is the receiver.
    /// 2. If the result is true and `bits` include GONE, the receiver does not use `this` any more.
    unsafe fn close_with(this: NonNull<Self>, bits: u8) -> (bool, Option<Waker>) {
        // SAFETY: alive (obligation 1), and not used after the exchange that sets GONE.
        let inner = unsafe { this.as_ref() };
        let mut waker = None;
        // ORD relaxed: the exchanges below decide.
        let mut state = inner.state.load(Relaxed);
        loop {
            if state & COMPLETE != 0 {
                return (false, waker);
            }
            if state & TX_WAKER != 0 && state & CLOSED == 0 {
                waker = inner.take_other(&inner.sender(), RX_BUSY, state);
                // ORD relaxed: the exchanges decide.
                state = inner.state.load(Relaxed);
                continue;
            }
            // ORD[OS2] release: with GONE, the receiver's last access.
            // ORD[OS4] release: what came before the close.
            let new = state & !RX_BUSY | bits;
            match inner.state.compare_exchange_weak(state, new, Release, Relaxed) {
                Ok(_) => return (true, waker),
                Err(now) => state = now,
            }
        }
    }

    /// The receiver leaves: the value, if any, is dropped.
    ///
    /// # Safety
    /// 1. `this` is alive, and the caller is the receiver.
    /// 2. The receiver does not use `this` after this call.
    #[inline(never)]
    pub(super) unsafe fn drop_receiver(this: NonNull<Self>) {
        // SAFETY: alive (obligation 1).
        let inner = unsafe { this.as_ref() };
        // ORD relaxed: only whether our own waker is there; `withdraw` looks again.
        if inner.state.load(Relaxed) & (RX_WAKER | COMPLETE) == RX_WAKER {
            // Dropped at the end: see `Wakers`.
            let (_, own) = inner.withdraw(&inner.receiver());
            let mut panic = FirstPanic::new();
            // SAFETY: the obligations of this function, handed on.
            panic.catch(|| unsafe { Self::drop_receiver_without_waker(this) });
            panic.catch(|| drop(own));
            return panic.resume();
        }
        // SAFETY: the obligations of this function, handed on.
        unsafe { Self::drop_receiver_without_waker(this) };
    }

    /// The same, when the receiver has no waker in its cell.
    ///
    /// # Safety
    /// As [`drop_receiver`](Self::drop_receiver).
    unsafe fn drop_receiver_without_waker(this: NonNull<Self>) {
        // SAFETY: the obligations of this function, handed on.
        let (left, waker) = unsafe { Self::close_with(this, CLOSED | GONE) };
        let Some(waker) = waker else {
            if !left {
                // SAFETY: the sender has set COMPLETE; the rest is handed on.
                unsafe { Self::drop_complete(this) };
            }
            return;
        };
        let mut panic = FirstPanic::new();
        if !left {
            // SAFETY: the sender has set COMPLETE; the rest is handed on.
            panic.catch(|| unsafe { Self::drop_complete(this) });
        }
        panic.catch(|| waker.wake());
        panic.resume();
    }

    /// Drops the value, if there is one, and frees the memory.
    ///
    /// # Safety
    /// As [`leave_complete`](Self::leave_complete), with the value still there.
    unsafe fn drop_complete(this: NonNull<Self>) {
        // SAFETY: alive and ours: the sender has set COMPLETE.
        match unsafe { Self::try_recv(this) } {
            Received::Value(value) => drop(value),
            // SAFETY: COMPLETE makes the memory ours (invariant 2); there is no value in it.
            _ => unsafe { Self::leave_complete(this, COMPLETE) },
        }
    }

    /// Frees memory that COMPLETE has handed over, in the given state.
    ///
    /// # Safety
    /// 1. `this` is alive, COMPLETE is set, and the caller is the receiver.
    /// 2. The value, if any, has been taken out. 3. `this` is not used after this call.
    #[inline]
    unsafe fn leave_complete(this: NonNull<Self>, state: u8) {
        debug_assert!(state & RX_WAKER == 0, "the sender takes the waker before it completes");
        // SAFETY: the sender has left (invariant 2), so nobody else uses the memory.
        unsafe { Self::free(this) };
    }

    /// Frees the memory. The cells are not dropped: whoever takes a content drops it.
    ///
    /// # Safety
    /// 1. `this` is alive and no other half uses it. 2. It is not used after this call.
    #[inline]
    unsafe fn free(this: NonNull<Self>) {
        // SAFETY: it was made by `Box` in `allocate`, and is freed once (obligations 1, 2).
        let inner = unsafe { Box::from_raw(this.as_ptr()) };
        // Lets loom report any use by the other half that is not ordered before this.
        #[cfg(volt_loom)]
        {
            inner.value.with_mut(|_| ());
            inner.receiver_waker.with_mut(|_| ());
            inner.sender_waker.with_mut(|_| ());
        }
        drop(inner);
    }
}
