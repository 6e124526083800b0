//! A lock-free, lazily growing CPU thread pool with fork-join, whose core allocates nothing.
//!
//! * [`join`] runs two closures, perhaps in parallel. Until another thread looks for work it costs a
//!   few stores, so it can go down to small pieces. [`scope`] spawns any number of tasks that
//!   borrow; [`spawn`] ones that do not.
//! * [`par`] has the loops over slices and ranges, reductions and sorts.
//! * A [`ThreadPool`] can stand in a `static`, starts its threads when there is work, and uses no
//!   processor time when there is none. The functions of this crate use the pool on whose thread
//!   they are called, or the [default one](global).
//! * Async code hands work over with [`ThreadPool::run`] and awaits it; code on a pool waits for
//!   futures with [`block_on`].
//! * Below all that, [`Task`] nodes that the caller supplies are queued without any allocation.
//!
//! **A waiting thread helps only with its own descendants.** While [`join`] or [`scope`] waits, its
//! thread runs parts of what it waits for, and nothing else. A lock held across `join` is therefore
//! never wanted by some unrelated task on the same stack.
//!
//! **Panics** of closures are caught where they run and go on in whoever waits for them, after all
//! that the wait is for has ended. The pool survives.
//!
//! With the crate `volt-rt` all of it is in `volt::pool`, without it in `volt_pool`, as in the examples here.
//!
//! # Examples
//!
//! ```
//! fn fib(n: u64) -> u64 {
//!     if n < 2 {
//!         return n;
//!     }
//!     let (a, b) = volt_pool::join(|| fib(n - 1), || fib(n - 2));
//!     a + b
//! }
//! assert_eq!(fib(20), 6765);
//! ```

mod api;
mod broadcast;
mod buffer;
mod builder;
mod ending;
mod engine;
mod errand;
mod fork;
mod frame;
mod held;
mod install;
#[cfg(doctest)]
mod lifetimes;
mod made;
mod mail;
mod offer;
pub mod par;
mod parking;
mod payload;
#[cfg(all(test, volt_loom))]
mod played;
mod pool;
mod queue;
mod roster;
mod run;
mod scope;
mod spin;
mod sync_word;
mod task;
mod worker;

pub use api::{
    block_on, broadcast, current_num_threads, current_thread_index, in_place_scope, join, scope,
    spawn, yield_now,
};
pub use builder::{BuildError, Builder};
pub use pool::{Rejected, ThreadPool, global};
pub use run::Run;
pub use scope::Scope;
pub use task::{Action, Task, TaskFn, TaskList};
