//! How many worker threads live, and a wait until none does.
//!
//! A thread is counted until it has dropped its count of the scheduler, so that nothing of the
//! runtime is left when its drop returns; the count lives on its own for that. Then only the destructors of its
//! thread-locals are left: who waits without a timeout joins it as well.
//!
//! Rejected: join handles alone. `block_in_place` passes a worker from thread to thread, and a shutdown
//! with a timeout cannot join.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::ptr;
use std::sync::PoisonError;
use std::time::Duration;

use volt_sync::internal::primitive::{Arc, Condvar, Mutex, spin, thread};

volt_sync::internal::primitive::const_thread_local! {
    /// Which threads this one is one of: an address to compare.
    static OF: Cell<*const Threads> = Cell::new(ptr::null());
}

/// The count.
#[derive(Debug)]
pub(crate) struct Threads {
    alive: Mutex<usize>,
    changed: Condvar,
    /// Those that were started to be workers, one for each. (One that has ended meanwhile, since its worker was handed
    /// over, keeps the addresses of its stack.)
    handles: Mutex<Vec<thread::JoinHandle<()>>>,
}

impl Threads {
    pub(crate) fn new() -> Self {
        Self { alive: Mutex::new(0), changed: Condvar::new(), handles: Mutex::new(Vec::new()) }
    }

    fn enter(&self) {
        *self.alive.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    fn exit(&self) {
        let mut alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        *alive -= 1;
        if *alive == 0 {
            self.changed.notify_all();
        }
    }

    /// Keeps a thread, to join it.
    pub(crate) fn keep(&self, thread: thread::JoinHandle<()>) {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }

    /// Joins all threads that are kept, when [no thread counts](Self::wait) any more: what is left of them is the
    /// destructors of their thread-locals. If this is one of these, its own thread is left out.
    pub(crate) fn join(&self) {
        let current = thread::current().id();
        for thread in self.take_kept() {
            if thread.thread().id() != current {
                let _its_panic = thread.join();
            }
        }
    }

    /// Nobody joins those that are kept: the system need not keep anything of them when they have ended.
    pub(crate) fn detach(&self) {
        drop(self.take_kept());
    }

    fn take_kept(&self) -> Vec<thread::JoinHandle<()>> {
        std::mem::take(&mut *self.handles.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True on a thread that counts, as it has [come](Alive::come): it cannot wait for the others, which would be for itself.
    pub(crate) fn is_one(&self) -> bool {
        OF.try_with(|of| ptr::eq(of.get(), self)).unwrap_or(false)
    }

    /// Waits until there is no thread; at most for `timeout`. True if there is none.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> bool {
        let deadline =
            timeout.and_then(|timeout| volt_sync::internal::primitive::now().checked_add(timeout));
        let mut alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        while *alive > 0 {
            alive = match deadline {
                None => self.changed.wait(alive).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left =
                        deadline.saturating_duration_since(volt_sync::internal::primitive::now());
                    if left.is_zero() {
                        return false;
                    }
                    self.changed.wait_timeout(alive, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        true
    }
}

/// A thread that counts, from before it is started until this is dropped.
#[derive(Debug)]
pub(crate) struct Alive(Arc<Threads>);

impl Alive {
    pub(crate) fn new(threads: &Arc<Threads>) -> Self {
        threads.enter();
        Self(threads.clone())
    }

    /// The thread is there: it is the current one, on which this is dropped.
    pub(crate) fn come(&self) {
        let _ended = OF.try_with(|of| of.set(Arc::as_ptr(&self.0)));
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        if self.0.is_one() {
            let _ended = OF.try_with(|of| of.set(ptr::null()));
        }
        self.0.exit();
    }
}

/// Attempts before the first pause: enough for what another thread is in the middle of.
pub(crate) const BEFORE_PAUSES: u32 = 1000;
/// Pauses before longer ones: some 20 ms.
const SHORT_PAUSES: u32 = 200;
/// Pauses of each length after that.
const PER_LENGTH: u32 = 32;
const SHORTEST: Duration = Duration::from_micros(50);
/// How often the length doubles: up to 3.2 ms.
const DOUBLINGS: u32 = 6;

/// For the end of a shutdown, which waits for another thread's next few instructions, or for a poll of
/// it, which may be a long one: spins, and gives the processor away for a moment once that has taken many
/// `attempts`, and for longer once they are very many. Nobody says when that poll is over.
pub(crate) fn wait_briefly(attempts: u32) {
    spin(attempts);
    if let Some(pause) = pause_after(attempts) {
        #[cfg(not(volt_loom))]
        thread::sleep(pause);
        #[cfg(volt_loom)]
        {
            let _ = pause;
            thread::yield_now();
        }
    }
}

/// A small part of the time that so many attempts have taken.
fn pause_after(attempts: u32) -> Option<Duration> {
    let pauses = attempts.checked_sub(BEFORE_PAUSES + 1)?;
    let doublings = pauses.saturating_sub(SHORT_PAUSES) / PER_LENGTH;
    Some(SHORTEST * (1 << doublings.min(DOUBLINGS)))
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_a_small_part_of_the_wait_and_a_few_milliseconds_at_most() {
        let mut waited = Duration::ZERO;
        assert_eq!(pause_after(BEFORE_PAUSES), None);
        for attempts in BEFORE_PAUSES + 1.. {
            let pause = pause_after(attempts).unwrap();
            if pause > SHORTEST {
                assert!(pause * 20 < waited, "{pause:?} after {waited:?}");
            }
            assert!(pause <= Duration::from_millis(4), "{pause:?}");
            waited += pause;
            if waited > Duration::from_secs(60) {
                assert!(attempts < 25_000, "{attempts} looks in a minute");
                return;
            }
        }
    }
}
