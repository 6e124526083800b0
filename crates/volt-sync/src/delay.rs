//! The timer of a runtime, as far as a channel needs one.
//!
//! This crate knows no clock. A runtime says here what it sleeps by; that lies in the waiter's future, in a place of a fixed
//! size, so that waiting allocates nothing.

use std::fmt;
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

/// From now on a send with a timeout sleeps by `T`. The first call in a process counts.
pub fn sleep_by<T: Timer>() {
    let _first = TIMER.set(Vtable::of::<T>());
}

static TIMER: OnceLock<Vtable> = OnceLock::new();

/// Room for a timer, aligned for what atomics of 64 bits ask for on every platform.
#[repr(align(8))]
struct Place(MaybeUninit<[u64; 7]>);

/// A [`Timer`], whichever it is. `start` makes one in a place, `poll` and `end` want that: `end` once, `poll` before that, and the
/// place is not moved in between.
struct Vtable {
    start: fn(&mut Place, Duration),
    poll: unsafe fn(&mut Place, &mut Context<'_>) -> Poll<()>,
    end: unsafe fn(&mut Place),
}

impl Vtable {
    fn of<T: Timer>() -> Self {
        const {
            assert!(size_of::<T>() <= size_of::<Place>(), "a timer fits into its place");
            assert!(align_of::<T>() <= align_of::<Place>(), "a timer fits into its place");
        }
        Self {
            start: |place, duration| {
                let timer = place.0.as_mut_ptr().cast::<T>();
                // SAFETY: the place is large enough for a `T`, and aligned for it, as checked above.
                unsafe { timer.write(T::after(duration)) };
            },
            poll: |place, cx| {
                // SAFETY: `start` has put a `T` here, as the caller vouches for.
                let timer = unsafe { &mut *place.0.as_mut_ptr().cast::<T>() };
                // SAFETY: the caller does not move it before `end`.
                unsafe { Pin::new_unchecked(timer) }.poll(cx)
            },
            // SAFETY: `start` has put a `T` here, and the caller does not use it any more.
            end: |place| unsafe { place.0.as_mut_ptr().cast::<T>().drop_in_place() },
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
            (timer.start)(&mut this.place, this.duration);
            *this.timer.insert(timer)
        });
        // SAFETY: it was started, in this place, which is pinned with `this` until that is dropped.
        unsafe { (timer.poll)(&mut this.place, cx) }
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            // SAFETY: it was started, and nobody uses it any more.
            unsafe { (timer.end)(&mut self.place) };
        }
    }
}

impl fmt::Debug for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delay").field("duration", &self.duration).finish_non_exhaustive()
    }
}

#[cold]
fn no_runtime() -> ! {
    panic!("the channel is full, and there is no Volt runtime whose timer could end the wait")
}
