//! Runs one future on the calling thread: the body of every `blocking_*` call.
//!
//! Each thread keeps one [`Parker`] behind a `Waker` for it, so that a call allocates nothing but
//! the first of a thread, and a call nested inside another one.
#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::coop;
use crate::linger::Linger;
use crate::parker::Parker;

struct Thread {
    parker: Parker,
}

impl Wake for Thread {
    fn wake(self: Arc<Self>) {
        self.parker.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.parker.unpark();
    }
}

/// A thread's parker, the waker that unparks it, and what is known of its sleeps.
struct Parking {
    thread: Arc<Thread>,
    waker: Waker,
    linger: Linger,
}

impl Parking {
    fn new() -> Self {
        let thread = Arc::new(Thread { parker: Parker::new() });
        Self { waker: Waker::from(thread.clone()), thread, linger: Linger::new() }
    }
}

/// Polls `future` on this thread until it is ready; the thread sleeps in between, or stays awake for some
/// microseconds if its sleeps were short (`linger.rs`).
///
/// Without a budget, also inside the poll of a task: nobody would give it another one, and a future
/// that finds it used up would wake itself for ever.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let parking = Lease::take();
    let Parking { thread, waker, linger } = parking.get();
    let mut cx = Context::from_waker(waker);
    coop::with_budget(None, || {
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return output;
            }
            // A token left by an earlier call makes one superfluous poll, nothing else.
            linger.sleep(|| thread.parker.is_notified(), || thread.parker.park());
        }
    })
}

#[cfg(not(volt_loom))]
mod cache {
    use super::Parking;
    use std::cell::Cell;

    std::thread_local! {
        static IDLE: Cell<Option<Parking>> = const { Cell::new(None) };
    }

    /// The thread's parking, or a new one if it is in use or the thread is being torn down.
    pub(super) fn take() -> Parking {
        IDLE.try_with(Cell::take).ok().flatten().unwrap_or_else(Parking::new)
    }

    pub(super) fn give_back(parking: Parking) {
        // An error means that the thread is being torn down: the parking is dropped.
        let _ = IDLE.try_with(|idle| idle.set(Some(parking)));
    }
}

/// Loom's objects live for one execution, so nothing is kept.
#[cfg(volt_loom)]
mod cache {
    pub(super) use drop as give_back;

    pub(super) fn take() -> super::Parking {
        super::Parking::new()
    }
}

/// Returns the parking to its thread, also when the future panics.
struct Lease(Option<Parking>);

impl Lease {
    fn take() -> Self {
        Self(Some(cache::take()))
    }

    fn get(&self) -> &Parking {
        self.0.as_ref().expect("present until drop")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(parking) = self.0.take() {
            cache::give_back(parking);
        }
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
