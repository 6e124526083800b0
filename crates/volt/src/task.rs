//! Asynchronous tasks: spawned futures, their handles, and what a task can do about itself.
//!
//! | Wanted | Take |
//! |---|---|
//! | a future that runs beside this one | [`spawn`], which gives a [`JoinHandle`] |
//! | the same for many futures, awaited as they end | [`JoinSet`] |
//! | the same for futures that are not `Send` | [`LocalSet`] and [`spawn_local`] |
//! | a closure that blocks: files, foreign libraries | [`spawn_blocking`] |
//! | to block here, inside a task | [`block_in_place`] |
//! | a closure that computes for long | [`volt::pool`](crate::pool), which knows the processors |
//! | to let other tasks run | [`yield_now`], [`consume_budget`] |
//! | a value for each task | [`task_local!`](crate::task_local) |
//!
//! A task is one heap allocation of 64 bytes and the future, whose place the output takes, or it has
//! the memory of one that ended. (A future of more than 16 KiB, or 2 KiB without optimization, is boxed before.) It runs even if nobody awaits it: to drop its [`JoinHandle`] detaches
//! it, [`JoinHandle::abort`] or [`AbortHandle::abort`] cancels it at its next `.await`. A panic ends
//! its task alone, and reaches whoever awaits the handle as a [`JoinError`]. So does the end of the
//! runtime, as cancellation.
//!
//! A task is never interrupted: what it does between two `.await`s holds its thread up.
//!
//! ```
//! volt::run(async {
//!     let sum = volt::spawn(async { 1 + 2 });
//!     let slow = volt::task::spawn_blocking(|| std::fs::read_to_string("/dev/null"));
//!     assert_eq!(sum.await.unwrap(), 3);
//!     assert_eq!(slow.await.unwrap().unwrap(), "");
//!     assert!(volt::spawn(async { panic!("on purpose") }).await.unwrap_err().is_panic());
//! });
//! ```

// Inside. A task is one heap allocation: a `Header` of 64 bytes and, behind it, the future, whose place
// the output takes when it completes. Everybody who can reach it holds one of the references
// below, counted in the header's state word.
//
// | Reference      | How many            | What it may do                                          |
// |----------------|---------------------|---------------------------------------------------------|
// | owned list     | 1 from the first idle time (in a `LocalSet`: from the spawn) until completion | find the task at shutdown |
// | `Notified`     | at most 1           | the exclusive right to poll once; queued by a scheduler |
// | runner         | the `Notified`'s    | exclusive access to the future, while RUNNING           |
// | `JoinHandle`   | at most 1           | the output, once COMPLETE; the join waker's place before |
// | `Waker`        | any number          | notify                                                  |
// | `AbortHandle`  | any number          | notify with CANCELLED                                   |
//
// Access to the header's fields:
//
// | Field          | Who                                                                          |
// |----------------|------------------------------------------------------------------------------|
// | `state`        | everybody; see `state.rs`                                                    |
// | `vtable`, `scheduler` | everybody reads; never written                                        |
// | `queue_next`   | whoever holds the `Notified`, or the shutdown that made the task RUNNING     |
// | `owned`        | under the lock of the task's shard                                           |
// | `join_waker`   | written by the `JoinHandle` while neither JOIN_WAKER nor COMPLETE is set, read by it while JOIN_WAKER is set; moved out by whoever clears JOIN_WAKER, or sets COMPLETE while it is set |
// | future         | the runner                                                                   |
// | output         | the runner until COMPLETE; then the `JoinHandle`, or the runner if there is none |
//
// Invariants:
// 1. A task that is not COMPLETE has a runner, a `Notified`, or a place in an owned list (while it is
//    idle, always that): dropping any other reference is never the last one, so freeing a task runs no
//    user code.
// 2. At most one `Notified` exists, and while it does the task is NOTIFIED, or RUNNING with nobody who
//    runs it (*kept*, see `state.rs`), and not COMPLETE. Shutdown never takes a queued task away from
//    its `Notified`: it only marks it.
// 3. A task enters its owned list before it is idle for the first time (LINKED), and leaves it after
//    its future is gone and before it is COMPLETE; it touches its scheduler no more after that.
// 4. The scheduler lives until its owned list is closed and empty (a runtime's: until all of its tasks
//    have been counted as finished, which comes after that list). With 2 and 3: whoever holds a
//    `Notified` of a task that was ever idle may use the scheduler until it hands the `Notified`
//    over. A thread of another runtime, or of none, therefore takes a strong count *before* the
//    hand-over. The `Notified` of a task that was never idle is nobody's but the spawner's, a
//    queue's, or the runner's, who keep the scheduler alive by themselves (wakers only set NOTIFIED).

mod abort;
mod cell;
pub mod coop;
mod error;
mod harness;
mod header;
mod id;
mod join;
mod join_set;
mod large;
mod local;
pub(crate) mod memory;
mod notified;
mod owned;
mod queue;
mod state;
mod task_local;
#[cfg(feature = "tracing")]
pub(crate) mod trace;
#[cfg(not(feature = "tracing"))]
#[path = "task/trace/off.rs"]
pub(crate) mod trace;
mod waker;
mod yield_now;

pub use crate::runtime::{block_in_place, spawn, spawn_blocking};
pub use abort::AbortHandle;
pub use coop::{Unconstrained, consume_budget, unconstrained};
pub use error::JoinError;
pub use id::{Id, id, try_id};
pub use join::JoinHandle;
pub use join_set::JoinSet;
pub(crate) use local::home::Home;
pub use local::{LocalEnterGuard, LocalSet, spawn_local};
pub(crate) use local::{MAX_POLLS as LOCAL_POLLS, is_driven_below, is_polled_by_us, queued_in_set};
pub use task_local::{__TaskLocalScopes, AccessError, LocalKey, TaskLocalFuture};
pub use yield_now::yield_now;

/// Futures that are returned by this module's functions.
pub mod futures {
    pub use super::task_local::TaskLocalFuture;
}

pub(crate) use cell::unowned;
pub(crate) use header::Header;
pub(crate) use large::{boxed_if_large, is_large};
pub(crate) use notified::{Notified, Schedule};
pub(crate) use owned::OwnedTasks;
pub(crate) use queue::TaskQueue;
pub(crate) use state::ToIdle;

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(test)]
mod test;
#[cfg(all(test, not(volt_loom)))]
mod tests;
