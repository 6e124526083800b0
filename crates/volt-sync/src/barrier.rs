//! A meeting point; its protocol is in `wait_set.rs`.
//!
//! State: the set's extra data is how many have arrived in this generation.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::coop;
use crate::first_panic::FirstPanic;
use crate::wait_set::{ALL, Entry, WaitSet};
use crate::waiter::WAITING;
use crate::wake_list::WakeList;

/// Lets tasks wait until a number of them have arrived.
///
/// **Semantics.** [`wait`](Self::wait) is ready once as many tasks as were given to
/// [`new`](Self::new) wait; then the barrier starts over. The last to arrive is the leader.
///
/// **When to use which.** For rounds of work that all must have finished. To wait for the end of tasks
/// join them; for one event take [`Notify`](crate::Notify) or [`SetOnce`](crate::SetOnce).
///
/// **Cancel safety.** Dropping a waiting future takes its arrival back, as if it had never come
/// (Tokio keeps counting it). One whose barrier has opened already has no effect on the others.
///
/// **Fairness.** All are woken in the order of their arrival.
///
/// **Cost.** Arriving is one atomic read-modify-write and a store, for the leader as well; a barrier
/// for one task costs nothing. Nothing allocates.
///
/// **Memory.** Seven words.
///
/// # Examples
/// ```
/// use volt_sync::Barrier;
///
/// # volt_doctest::run(|| async {
/// let barrier = Barrier::new(3);
/// let (a, b, c) = futures::join!(barrier.wait(), barrier.wait(), barrier.wait());
/// let leaders = [a, b, c].iter().filter(|result| result.is_leader()).count();
/// assert_eq!(leaders, 1);
/// # });
/// ```
pub struct Barrier {
    n: usize,
    set: WaitSet<usize>,
}

impl Barrier {
    crate::const_fn! {
        /// A barrier for `n` tasks; 0 counts as 1. Allocates nothing.
        ///
        /// # Examples
        /// ```
        /// # volt_doctest::run(|| async {
        /// let barrier = volt_sync::Barrier::new(1);
        /// assert!(barrier.wait().await.is_leader());
        /// # });
        /// ```
        pub const fn new(n: usize) -> Self {
            Self { n: if n == 0 { 1 } else { n }, set: WaitSet::new(0) }
        }
    }

    /// Waits until all have arrived.
    ///
    /// # Cancel safety
    /// Cancelling takes the arrival back.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let barrier = volt_sync::Barrier::new(2);
    /// let (one, two) = futures::join!(barrier.wait(), barrier.wait());
    /// assert_eq!((one.is_leader(), two.is_leader()), (false, true));
    /// # });
    /// ```
    pub async fn wait(&self) -> BarrierWaitResult {
        Wait { barrier: self, entry: Entry::new(0), phase: Phase::Fresh }.await
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("n", &self.n).finish_non_exhaustive()
    }
}

/// What [`Barrier::wait`] returns.
///
/// # Examples
/// ```
/// # volt_doctest::run(|| async {
/// let barrier = volt_sync::Barrier::new(1);
/// let result: volt_sync::BarrierWaitResult = barrier.wait().await;
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// True for exactly one of the tasks that met: the last to arrive.
    ///
    /// # Examples
    /// ```
    /// # volt_doctest::run(|| async {
    /// let barrier = volt_sync::Barrier::new(1);
    /// assert!(barrier.wait().await.is_leader());
    /// # });
    /// ```
    #[must_use]
    pub const fn is_leader(&self) -> bool {
        self.0
    }
}

enum Phase {
    Fresh,
    Arrived,
    Done,
}

/// The future behind [`Barrier::wait`].
struct Wait<'a> {
    barrier: &'a Barrier,
    entry: Entry,
    phase: Phase,
}

impl Future for Wait<'_> {
    type Output = BarrierWaitResult;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<BarrierWaitResult> {
        ready!(coop::poll_proceed(cx));
        // SAFETY: only `entry` is pinned, and it is not moved out.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: structural pinning of `entry`.
        let entry = unsafe { Pin::new_unchecked(&mut this.entry) };
        let leader = match this.phase {
            Phase::Fresh if this.barrier.n == 1 => true,
            Phase::Fresh => {
                this.phase = Phase::Arrived;
                if !arrive(this.barrier, entry, cx) {
                    return Poll::Pending;
                }
                true
            }
            Phase::Arrived => {
                if entry.poll(&this.barrier.set, Some(cx.waker())) == WAITING {
                    return Poll::Pending;
                }
                false
            }
            Phase::Done => panic!("the future of `Barrier::wait` was polled after completion"),
        };
        this.phase = Phase::Done;
        coop::made_progress();
        Poll::Ready(BarrierWaitResult(leader))
    }
}

/// Counts this arrival. True for the last one, which wakes the others.
#[cold]
fn arrive(barrier: &Barrier, mut entry: Pin<&mut Entry>, cx: &Context<'_>) -> bool {
    // User code, outside the lock; for nothing if this is the last.
    let waker = cx.waker().clone();
    let (mut unused, mut wakers) = (None, WakeList::new());
    let more = barrier.set.locked(|word, lists| {
        if lists.extra + 1 == barrier.n {
            lists.extra = 0;
            unused = Some(waker);
            return Some(lists.open(word, &mut wakers));
        }
        lists.extra += 1;
        entry.set(Entry::new(word.generation()));
        // SAFETY: 1. New; of the word's generation. 2. The same barrier.
        unsafe { entry.enqueue(waker, lists) };
        None
    });
    // The others are woken also if a waker panics.
    let mut panic = FirstPanic::new();
    let leads = more.is_some();
    if let Some(more) = more {
        panic = barrier.set.wake(wakers, more);
    }
    panic.catch(|| drop(unused));
    panic.resume();
    leads
}

impl Drop for Wait<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.entry.is_linked() {
            // SAFETY: a linked entry was pinned, and is not moved before it is gone.
            let entry = unsafe { Pin::new_unchecked(&mut self.entry) };
            let status = entry.cancel(&self.barrier.set, |arrived| *arrived -= 1);
            debug_assert!(status == WAITING || status == ALL);
        }
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
