//! Runtime-agnostic async locks, semaphores and channels whose waiters live inside the futures.
//!
//! Everything here runs on any executor: it knows wakers and nothing else (but for [`mpsc::Sender::send_timeout`], which sleeps by
//! the timers of Volt). Names and signatures are
//! those of `tokio::sync`. A wait allocates nothing, whoever waits first is served first, and every
//! future may be dropped at any point: what that gives back or passes on stands at each of them.
//!
//! With the crate `volt-rt` all of it is in `volt::sync`, without it in `volt_sync`, as in the examples here.
//!
//! # Which channel?
//!
//! | Wanted                                                      | Take                             |
//! |-------------------------------------------------------------|----------------------------------|
//! | one answer to one request                                   | [`oneshot`]                      |
//! | a queue with one consumer, with backpressure                | [`mpsc::channel`]                |
//! | the same without backpressure (the consumer keeps up)       | [`mpsc::unbounded_channel`]      |
//! | a queue with several consumers, each value for one of them  | [`mpmc::bounded`], [`mpmc::unbounded`] |
//! | every value to every receiver                               | [`broadcast`]                    |
//! | only the newest value, to every receiver                    | [`watch`]                        |
//! | no value, only "something happened"                         | [`Notify`]                       |
//!
//! # Which lock?
//!
//! | Wanted                                               | Take                                       |
//! |------------------------------------------------------|--------------------------------------------|
//! | a value that is never locked across an `.await`      | `std::sync::Mutex`: cheaper when contended |
//! | a value that is                                      | [`Mutex`]                                  |
//! | the same, mostly read                                | [`RwLock`]: writers are not starved        |
//! | at most N at once                                    | [`Semaphore`]                              |
//! | a value that is computed once                        | [`OnceCell`]; [`SetOnce`] to wait for it   |
//! | a meeting point of N tasks                           | [`Barrier`]                                |
//!
//! # On other runtimes
//!
//! Tokio gives each task a budget of operations, so that one whose channel or lock is always ready
//! yields now and then. Volt does the same, and these types take part ([`coop`]). Of Tokio's budget
//! this crate knows nothing: there, and on executors without one, a loop that never finds anything to
//! wait for does not yield, and no timeout around it fires. Put a `yield_now`, or Tokio's
//! `coop::consume_budget`, into such a loop.
//!
//! The feature `futures` gives the senders and receivers of [`mpmc`] `Sink` and `Stream`. To call their
//! methods, add the crate `futures` as well.
//!
//! # Blocking
//!
//! Functions named `blocking_...` are for threads that run no tasks. In a task of a Volt runtime they panic, as Tokio's do
//! in one of Tokio's. On other executors they do not, since this crate does not know them: they block the task's thread,
//! perhaps for ever.
//!
//! ```
//! # volt_doctest::run(|| async {
//! let (tx, mut rx) = volt_sync::mpsc::channel(1);
//! let thread = std::thread::spawn(move || (1..=3).for_each(|i| tx.blocking_send(i).unwrap()));
//! let mut sum = 0;
//! while let Some(i) = rx.recv().await {
//!     sum += i;
//! }
//! assert_eq!(sum, 6);
//! thread.join().unwrap();
//! # });
//! ```

pub mod broadcast;
pub mod coop;
#[doc(hidden)]
pub mod internal;
pub mod mpmc;
pub mod mpsc;
pub mod oneshot;
pub mod watch;

mod barrier;
mod block_on;
mod cache_padded;
mod channel;
mod delay;
mod error;
mod event;
mod first_panic;
mod held;
#[cfg(all(test, not(volt_loom)))]
mod hostile_wakers;
mod linger;
mod linked_list;
mod may_block;
mod mutex;
mod notify;
mod once;
mod once_cell;
mod parker;
mod permits;
mod primitive;
mod rwlock;
mod semaphore;
mod set_once;
mod slack;
#[cfg(test)]
mod test;
mod turns;
#[cfg(all(test, not(volt_loom)))]
mod two_panics;
mod wait_set;
mod waiter;
mod waiter_slot;
mod wake_list;

pub use barrier::{Barrier, BarrierWaitResult};
pub use error::{AcquireError, TryAcquireError, TryLockError};
pub use mutex::{MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard};
pub use notify::{Notify, futures};
pub use once_cell::{OnceCell, SetError};
pub use rwlock::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock,
    RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard,
};
pub use semaphore::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
pub use set_once::{SetOnce, SetOnceError};
