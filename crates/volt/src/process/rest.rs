//! Looking again at children of whose end there is no sign.
//!
//! Purpose: there may be no descriptor for a sign; and a pidfd is readable from the end of its process on, whose status is
//! first of all for the process that traces it, which may take what time it likes. So whoever waits for such a child is
//! woken now and then, and those that nobody waits for (`orphans.rs`) are looked at; by the machine's time, whatever a runtime's
//! clock says, and whether or not one is left.
//!
//! Rejected: a timer of the runtime's, which a paused clock never fires, or fires at once. A thread that stays.
//!
//! State: who waits for the next look, and whether orphans do. There is a thread while there is somebody; such children are few.
#![forbid(unsafe_code)]

use std::future::poll_fn;
use std::ops::DerefMut;
use std::sync::PoisonError;
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use volt_sync::internal::contain;
use volt_sync::internal::primitive::StaticMutex;
use volt_sync::internal::slack;

use super::orphans;
use crate::runtime::outside;

/// How long such a child is left alone before the next look.
const REST: Duration = Duration::from_millis(10);

/// The same if the system gives no thread that could wait, on the thread that looks.
const SHORT_REST: Duration = Duration::from_millis(1);

static RESTING: StaticMutex<Resting> =
    StaticMutex::new(Resting { wakers: Vec::new(), orphans: false, rounds: 0, thread: false });

struct Resting {
    wakers: Vec<Waker>,
    /// There are orphans to look at.
    orphans: bool,
    /// So many times they have been woken.
    rounds: u64,
    thread: bool,
}

impl Resting {
    /// False if the system gives no thread.
    fn has_thread(&mut self) -> bool {
        if !self.thread {
            let thread = thread::Builder::new().name("volt-children".to_owned());
            self.thread = slack::without(|| thread.spawn(wake_the_rested)).is_ok();
        }
        self.thread
    }
}

fn resting() -> impl DerefMut<Target = Resting> {
    RESTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ready after [`REST`] at most; a poll that comes earlier is no reason to look. If the system gives no thread, it is after
/// [`SHORT_REST`], for which this one sleeps: that is better than to look without a rest, or never.
pub(super) async fn rest() {
    let mut until = None;
    poll_fn(|cx| {
        // Cloned and dropped outside of the lock.
        let waker = cx.waker().clone();
        let mut resting = resting();
        if resting.rounds >= *until.get_or_insert(resting.rounds + 1) {
            return Poll::Ready(());
        }
        if !resting.has_thread() {
            until = Some(resting.rounds);
            drop(resting);
            thread::sleep(SHORT_REST);
            waker.wake();
        } else if !resting.wakers.iter().any(|other| other.will_wake(&waker)) {
            resting.wakers.push(waker);
        }
        outside::waits();
        Poll::Pending
    })
    .await;
}

/// Has orphans looked at after a rest. (If the system gives no thread, they are when a child is started or dropped.)
pub(super) fn look_at_orphans() {
    let mut resting = resting();
    resting.orphans = true;
    resting.has_thread();
}

fn wake_the_rested() {
    loop {
        thread::sleep(REST);
        // One that rests from here on sets it again.
        let looks = std::mem::take(&mut resting().orphans);
        let left = looks && orphans::look_again();
        let wakers = {
            let mut resting = resting();
            resting.orphans |= left;
            resting.thread = resting.orphans || !resting.wakers.is_empty();
            if !resting.thread {
                return;
            }
            resting.rounds += 1;
            std::mem::take(&mut resting.wakers)
        };
        wakers.into_iter().for_each(|waker| contain(|| waker.wake()));
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use std::sync::Arc;
    use std::task::{Context, Wake};
    use volt_sync::internal::primitive::Mutex;

    use super::*;
    use crate::time::Instant;

    /// Nor does it leave more wake-ups than rests.
    #[test]
    fn a_poll_that_comes_early_ends_no_rest() {
        #[derive(Default)]
        struct Woken(Mutex<u32>);
        impl Wake for Woken {
            fn wake(self: Arc<Self>) {
                *self.0.lock().unwrap() += 1;
            }
        }
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let start = Instant::now();
        for _ in 0..10 {
            let mut rest = std::pin::pin!(rest());
            while rest.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                thread::yield_now();
            }
        }
        assert!(start.elapsed() > 5 * REST);
        assert!(*woken.0.lock().unwrap() <= 10);
    }
}
