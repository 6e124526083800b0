//! The timer of a runtime, as far as a channel needs one.
//!
//! This crate knows no clock. A runtime says here what it sleeps by; that lies in the waiter's future, in a place of a fixed
//! size, so that waiting allocates nothing.

use std::future::Future;
use std::marker::PhantomPinned;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

/// What a runtime sleeps by.
pub trait Timer: Future<Output = ()> + Send + 'static {
    /// A future that is ready when `duration` has passed since its first poll.
    fn after(duration: Duration) -> Self;
}

/// From now on a send with a timeout sleeps by `T`. The first call in a process counts, so two versions of one runtime cannot share
/// this crate.
pub fn sleep_by<T: Timer>() {
    let _first = TIMER.set(Vtable::of::<T>());
}

static TIMER: OnceLock<Vtable> = OnceLock::new();

/// In words of 64 bits. Under loom atomics are larger.
const ROOM: usize = if cfg!(volt_loom) { 16 } else { 7 };

/// Room for a timer, aligned for what atomics of 64 bits ask for on every platform.
#[repr(align(8))]
#[expect(dead_code, reason = "used by its address")]
struct Place(MaybeUninit<[u64; ROOM]>);

/// A [`Timer`], whichever it is.
///
/// By address, not by reference: others may hold a pointer to a timer that waits, which only a type that is not `Unpin` allows
/// beside a `&mut`. A place does not look like one.
///
/// # Safety
/// 1. All of them get the address of a place that is valid, and that nobody else uses.
/// 2. `poll` and `end` get one where `start` has put a timer, which was not moved since, and which `end` has not ended.
struct Vtable {
    start: unsafe fn(*mut Place, Duration),
    poll: unsafe fn(*mut Place, &mut Context<'_>) -> Poll<()>,
    end: unsafe fn(*mut Place),
}

impl Vtable {
    fn of<T: Timer>() -> Self {
        const {
            assert!(size_of::<T>() <= size_of::<Place>(), "a timer fits into its place");
            assert!(align_of::<T>() <= align_of::<Place>(), "a timer fits into its place");
        }
        Self {
            start: |place, duration| {
                // SAFETY: valid (1), and large enough for a `T` and aligned for it, as checked above.
                unsafe { place.cast::<T>().write(T::after(duration)) };
            },
            poll: |place, cx| {
                // SAFETY: there is a `T` (2), and only the caller refers to it here and now (1).
                let timer = unsafe { &mut *place.cast::<T>() };
                // SAFETY: it is not moved before it has ended (2).
                unsafe { Pin::new_unchecked(timer) }.poll(cx)
            },
            // SAFETY: there is a `T` (2), which nobody uses afterwards.
            end: |place| unsafe { place.cast::<T>().drop_in_place() },
        }
    }
}

/// Is ready when a time has passed since its first poll, by the timer of the runtime.
pub(crate) struct Delay {
    duration: Duration,
    timer: Option<&'static Vtable>,
    /// A timer, once there is `timer`.
    place: Place,
    _pinned: PhantomPinned,
}

impl Delay {
    pub(crate) fn new(duration: Duration) -> Self {
        Self { duration, timer: None, place: Place(MaybeUninit::uninit()), _pinned: PhantomPinned }
    }
}

impl Future for Delay {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the timer stays in its place, and nothing else is pinned.
        let this = unsafe { self.get_unchecked_mut() };
        let timer = this.timer.unwrap_or_else(|| {
            let Some(timer) = TIMER.get() else { no_runtime() };
            // SAFETY: the place is a part of `this`.
            unsafe { (timer.start)(&raw mut this.place, this.duration) };
            *this.timer.insert(timer)
        });
        // SAFETY: it was started, in this place, which is pinned with `this` until that is dropped.
        unsafe { (timer.poll)(&raw mut this.place, cx) }
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            // SAFETY: it was started, in this place, and nobody uses it any more.
            unsafe { (timer.end)(&raw mut self.place) };
        }
    }
}

#[cold]
fn no_runtime() -> ! {
    panic!("the channel is full, and there is no Volt runtime whose timer could end the wait")
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
