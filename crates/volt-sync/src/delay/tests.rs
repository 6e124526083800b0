use std::cell::Cell;
use std::marker::PhantomPinned;
use std::pin::pin;
use std::task::Waker;

use super::*;
use crate::mpsc::{self, error::SendTimeoutError};

std::thread_local! {
    /// Timers that were made and have not ended.
    static ALIVE: Cell<i32> = const { Cell::new(0) };
    static MADE: Cell<i32> = const { Cell::new(0) };
}

/// Ready at the third poll; and as one that others point to, it is never moved.
struct Third {
    polls: u64,
    at: usize,
    _pinned: PhantomPinned,
}

impl Timer for Third {
    fn after(duration: Duration) -> Self {
        assert!(duration < Duration::MAX, "too long");
        ALIVE.set(ALIVE.get() + 1);
        MADE.set(MADE.get() + 1);
        Self { polls: 0, at: 0, _pinned: PhantomPinned }
    }
}

impl Future for Third {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let here = (&raw const *self).addr();
        // SAFETY: nothing is moved.
        let this = unsafe { self.get_unchecked_mut() };
        if this.polls == 0 {
            this.at = here;
        }
        assert_eq!(this.at, here);
        this.polls += 1;
        if this.polls < 3 { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Drop for Third {
    fn drop(&mut self) {
        ALIVE.set(ALIVE.get() - 1);
    }
}

#[test]
fn a_timer_is_made_at_the_first_poll_and_ends_with_its_delay() {
    sleep_by::<Third>();
    let mut cx = Context::from_waker(Waker::noop());
    drop(Delay::new(Duration::ZERO));
    assert_eq!(MADE.get(), 0);
    for polls in 1..4 {
        let mut delay = Box::pin(Delay::new(Duration::ZERO));
        for _ in 1..polls {
            assert!(delay.as_mut().poll(&mut cx).is_pending());
        }
        assert_eq!(delay.as_mut().poll(&mut cx).is_ready(), polls == 3);
        assert_eq!((ALIVE.get(), MADE.get()), (1, polls));
        drop(delay);
        assert_eq!(ALIVE.get(), 0);
    }
}

#[test]
fn a_timer_that_cannot_be_made_is_none() {
    sleep_by::<Third>();
    let mut delay = Box::pin(Delay::new(Duration::MAX));
    let poll = std::panic::AssertUnwindSafe(|| {
        let mut cx = Context::from_waker(Waker::noop());
        delay.as_mut().poll(&mut cx)
    });
    assert!(std::panic::catch_unwind(poll).is_err());
    drop(delay);
    assert_eq!((ALIVE.get(), MADE.get()), (0, 0));
}

#[test]
fn a_send_gives_its_message_back_when_the_timer_is_ready() {
    sleep_by::<Third>();
    let (tx, _rx) = mpsc::channel(1);
    let mut cx = Context::from_waker(Waker::noop());
    let mut sent = pin!(tx.send_timeout(1, Duration::ZERO));
    assert_eq!(sent.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
    assert_eq!(MADE.get(), 0, "there was room");
    let mut full = pin!(tx.send_timeout(2, Duration::ZERO));
    assert!(full.as_mut().poll(&mut cx).is_pending());
    assert!(full.as_mut().poll(&mut cx).is_pending());
    assert_eq!(full.as_mut().poll(&mut cx), Poll::Ready(Err(SendTimeoutError::Timeout(2))));
}
