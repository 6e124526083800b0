//! Cooperative scheduling: the budget that makes a busy task yield.
//!
//! A task may do 128 successful operations (receiving a message, taking a lock, reading a socket,
//! joining a task) in one poll. After that, operations report `Pending` and wake the task at once,
//! so that it goes to the back of the queue and the others get their turn. So a loop over Volt's sockets,
//! channels, locks, tasks, streams in memory or copies needs to do nothing for this.
//!
//! What Volt cannot count is left to the task: the futures of other crates ([`cooperative`] counts those),
//! the types of the `tokio` crate that are not under `volt::` (their budget is one that only Tokio's
//! runtime sets), and loops that never ask such an operation. Those compute, or read bytes that are there,
//! as `lines()` of a `&[u8]` does, on Tokio as well; [`consume_budget`] is for them.
//!
//! The receiver of a bounded [`mpsc`](crate::sync::mpsc) channel may have more, if tasks are quick: of what
//! its senders put there, it takes as much as it can in about ten microseconds before it yields.
//!
//! # Examples
//! A loop that computes without ever waiting can take part:
//! ```
//! # volt::run(async {
//! let mut sum = 0_u64;
//! for n in 0..1000 {
//!     sum += n;
//!     volt::task::coop::consume_budget().await; // yields now and then
//! }
//! # assert_eq!(sum, 499_500);
//! # });
//! ```
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use volt_sync::coop::Left;

/// True unless the running task has used up its budget for this poll.
///
/// # Examples
/// ```
/// assert!(volt::task::coop::has_budget_remaining()); // outside of tasks there is no limit
/// ```
#[inline]
pub fn has_budget_remaining() -> bool {
    volt_sync::coop::has_budget_remaining()
}

/// Takes one unit of the budget; yields if none is left.
///
/// ```
/// use volt::task::coop::{consume_budget, has_budget_remaining};
///
/// volt::run(async {
///     let task = volt::spawn(async {
///         let mut units = 0;
///         while has_budget_remaining() {
///             consume_budget().await;
///             units += 1;
///         }
///         // The next poll has a new budget.
///         consume_budget().await;
///         assert!(has_budget_remaining());
///         units
///     });
///     assert_eq!(task.await.unwrap(), 128);
/// });
/// ```
///
/// # Cancel safety
/// Nothing is lost if it is dropped.
pub async fn consume_budget() {
    poll_fn(|cx| {
        ready!(volt_sync::coop::poll_proceed(cx));
        volt_sync::coop::made_progress();
        Poll::Ready(())
    })
    .await;
}

/// For hand-written futures: `Pending`, with a wake-up on its way, if the budget is used up;
/// otherwise a guard on which to report success.
///
/// # Examples
/// ```
/// use std::task::{Context, Poll, ready};
///
/// fn poll_next(cx: &mut Context<'_>) -> Poll<u32> {
///     let coop = ready!(volt::task::coop::poll_proceed(cx));
///     // ... the operation succeeded:
///     coop.made_progress();
///     Poll::Ready(1)
/// }
/// # assert!(poll_next(&mut Context::from_waker(std::task::Waker::noop())).is_ready());
/// ```
#[inline]
pub fn poll_proceed(cx: &mut Context<'_>) -> Poll<RestoreOnPending> {
    ready!(volt_sync::coop::poll_proceed(cx));
    let before = volt_sync::coop::take_unit();
    Poll::Ready(RestoreOnPending { before: Cell::new(Some(before)), _of_this_thread: PhantomData })
}

/// What [`poll_proceed`] returns, having taken a unit of the budget. If it is dropped before
/// [`made_progress`](Self::made_progress) is called, it gives that back, and whatever was taken meanwhile.
///
/// ```
/// use std::task::{Context, Poll, Waker};
/// use volt::task::coop::poll_proceed;
///
/// let mut cx = Context::from_waker(Waker::noop());
/// let Poll::Ready(coop) = poll_proceed(&mut cx) else { unreachable!("outside of tasks") };
/// coop.made_progress();
/// ```
#[derive(Debug)]
#[must_use]
pub struct RestoreOnPending {
    before: Cell<Option<Left>>,
    /// As the budget is.
    _of_this_thread: PhantomData<*const ()>,
}

impl RestoreOnPending {
    /// The operation succeeded.
    ///
    /// ```
    /// use std::future::poll_fn;
    /// use std::task::{Poll, ready};
    /// use volt::task::coop::{has_budget_remaining, poll_proceed};
    ///
    /// volt::run(async {
    ///     let task = volt::spawn(poll_fn(|cx| {
    ///         for _ in 0..128 {
    ///             ready!(poll_proceed(cx)).made_progress();
    ///         }
    ///         Poll::Ready(has_budget_remaining())
    ///     }));
    ///     assert!(!task.await.unwrap(), "128 units are one poll's budget");
    /// });
    /// ```
    #[inline]
    pub fn made_progress(&self) {
        self.before.set(None);
    }
}

impl Drop for RestoreOnPending {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.before.get() {
            volt_sync::coop::restore(before);
        }
    }
}

pin_project! {
    /// The future of [`cooperative`].
    ///
    /// ```
    /// use std::future::ready;
    /// use volt::task::coop::{Coop, cooperative};
    ///
    /// let coop: Coop<_> = cooperative(ready(1));
    /// assert_eq!(volt::run(coop), 1);
    /// ```
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Coop<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Coop<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let coop = ready!(poll_proceed(cx));
        let output = ready!(self.project().future.poll(cx));
        coop.made_progress();
        Poll::Ready(output)
    }
}

/// Makes `future` take a unit of the budget when it completes, and yield before that if there is
/// none. What it took itself in a poll is given back if it is pending then. For futures that other crates made.
///
/// ```
/// use std::future::ready;
/// use volt::task::coop::{cooperative, has_budget_remaining};
///
/// volt::run(async {
///     let task = volt::spawn(async {
///         for _ in 0..128 {
///             cooperative(ready(())).await;
///         }
///         has_budget_remaining()
///     });
///     assert!(!task.await.unwrap(), "the next one yields");
/// });
/// ```
#[inline]
pub fn cooperative<F: Future>(future: F) -> Coop<F> {
    Coop { future }
}

pin_project! {
    /// The future of [`unconstrained`].
    ///
    /// ```
    /// use volt::task::coop::{Unconstrained, unconstrained};
    ///
    /// let future: Unconstrained<_> = unconstrained(std::future::ready(1));
    /// assert_eq!(volt::run(future), 1);
    /// ```
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Unconstrained<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Unconstrained<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let future = self.project().future;
        volt_sync::coop::with_budget(None, || future.poll(cx))
    }
}

/// Polls `future` without a budget: it does not yield before it has to wait.
///
/// A loop inside it that always finds something ready starves the other tasks of its worker.
///
/// # Examples
/// ```
/// # volt::run(async {
/// assert_eq!(volt::task::unconstrained(async { 1 }).await, 1);
/// # });
/// ```
#[inline]
pub fn unconstrained<F>(future: F) -> Unconstrained<F> {
    Unconstrained { future }
}
