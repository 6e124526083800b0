//! Volt: an async runtime with a work-stealing scheduler.
//!
//! ```
//! #[volt::main]
//! async fn main() {
//!     let answer = volt::spawn(async { 6 * 7 }).await.unwrap();
//!     println!("hello, Volt: {answer}");
//! }
//! ```
//!
//! | Wanted | Take |
//! |---|---|
//! | a runtime for `main`, for a test, for one call | [`#[volt::main]`](macro@main), [`#[volt::test]`](macro@test), [`run`] |
//! | a runtime with settings, or one to keep | [`runtime::Builder`], [`runtime::Runtime`] |
//! | tasks; closures that block | [`spawn`], [`task`]; [`task::spawn_blocking`] |
//! | sleeps, timeouts, intervals | [`time`] |
//! | sockets; reading and writing | [`net`]; [`io`] |
//! | files, child processes, signals | [`fs`], `process`, `signal` |
//! | locks and channels, on any executor | [`sync`]: its page says which one |
//! | the processors: `join`, scopes, parallel loops | [`pool`] |
//! | to wait for several futures | [`select!`], [`join!`], [`try_join!`], [`task::JoinSet`] |
//!
//! Names, paths and signatures are Tokio's: in most programs it is enough to write `volt::` for
//! `tokio::`. The traits of [`io`] are those of the `tokio` crate, so that libraries written for them
//! take Volt's sockets as they are. A library that calls `tokio::spawn`, or uses Tokio's sockets or
//! timers, still needs a Tokio runtime.
//!
//! # Where a runtime is needed
//!
//! [`spawn`], timers, sockets and files need a current runtime, and panic without one. It is there
//! inside of [`run`], [`block_on`](runtime::Runtime::block_on), a task, a closure of
//! [`spawn_blocking`](task::spawn_blocking), and while a guard of [`enter`](runtime::Handle::enter)
//! lives; not on a thread of your own, which has to be given a [`Handle`](runtime::Handle).
//! [`sync`] and [`pool`] need none.
//!
//! # Features
//!
//! None is needed for the above.
//!
//! | Feature | Gives |
//! |---|---|
//! | `hyper` | `volt::hyper`: hyper's executor, timer and sockets |
//! | `futures` | `Stream` and `Sink` for the channels of [`sync::mpmc`] |
//! | `futures-io` | the traits of `futures_io` for the sockets |
//! | `test-util` | `runtime::sim`, a seeded simulation for tests, and `Builder::rng_seed` |
//! | `tracing` | a span of the `tracing` crate for each task |
//!
//! A task's span lasts from its spawn to its end, and is entered while the task is polled. Its target
//! is `volt::task`, its level `TRACE`, its fields `kind` (`task`, `local`, `blocking`), `task.id`
//! (recorded at the first poll), `size.bytes`, and `loc.file`, `loc.line`, `loc.col` of the spawn.

mod choice;
pub mod fs;
#[cfg(feature = "hyper")]
pub mod hyper;
pub mod io;
#[doc(hidden)]
pub mod macro_support;
pub mod net;
#[cfg(unix)]
pub mod process;
mod reactor;
pub mod runtime;
mod select;
#[cfg(unix)]
pub mod signal;
pub mod task;
pub mod time;

pub use runtime::{run, spawn};
/// Waits for all futures, and returns their outputs as a tuple.
///
/// The macro is that of the `tokio` crate, which works on any executor; its page follows. (Where that says `tokio::`, it is
/// `volt::` here.)
///
/// ```
/// volt::run(async {
///     let (one, two) = volt::join!(async { 1 }, async { 2 });
///     assert_eq!((one, two), (1, 2));
/// });
/// ```
pub use tokio::join;
/// Pins futures to the stack, so that they can be polled by reference: in a loop around
/// [`select!`], for one.
///
/// The macro is that of the `tokio` crate; its page follows. (Where that says `tokio::`, it is `volt::` here.)
///
/// ```
/// use std::time::Duration;
///
/// volt::run(async {
///     let work = async {
///         volt::time::sleep(Duration::from_millis(3)).await;
///         "done"
///     };
///     // So that each turn of the loop goes on with the same work.
///     volt::pin!(work);
///     let mut ticks = volt::time::interval(Duration::from_millis(1));
///     let result = loop {
///         volt::select! {
///             result = &mut work => break result,
///             _ = ticks.tick() => println!("still at work"),
///         }
///     };
///     assert_eq!(result, "done");
/// });
/// ```
pub use tokio::pin;
/// Waits until all futures have returned `Ok`, or for the first error.
///
/// The macro is that of the `tokio` crate, which works on any executor; its page follows. (Where that says `tokio::`, it is
/// `volt::` here.)
///
/// ```
/// volt::run(async {
///     let parse = async |text: &str| text.parse::<u32>();
///     assert_eq!(volt::try_join!(parse("3"), parse("4")), Ok((3, 4)));
///     assert!(volt::try_join!(parse("3"), parse("four")).is_err());
/// });
/// ```
pub use tokio::try_join;
// Their pages are those of `volt-macros`.
pub use volt_macros::{main, test};
// Inline, so that links into them hold in documentation without dependencies as well.
#[cfg(doc)]
#[doc(inline)]
pub use volt_pool as pool;
#[cfg(doc)]
#[doc(inline)]
pub use volt_sync as sync;

// The same names for the compiler: with a module its messages say `volt::sync::Mutex`, with a crate under another name
// `volt::volt_sync::Mutex`.
/// The crate `volt-pool`.
#[cfg(not(doc))]
pub mod pool {
    pub use volt_pool::*;
}
/// The crate `volt-sync`.
#[cfg(not(doc))]
pub mod sync {
    pub use volt_sync::*;
}
