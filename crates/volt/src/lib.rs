//! Volt: an async runtime with a work-stealing scheduler.
//!
//! | Feature | |
//! |---|---|
//! | `futures-io` | the traits of the `futures-io` crate for sockets |
//! | `hyper` | `volt::hyper`: hyper's executor, timer and streams |
//! | `test-util` | `volt::runtime::sim`: a deterministic simulation of the scheduler, for tests |
//! | `tracing` | a span of the `tracing` crate for each task, from its spawn to its end, entered while it is polled: target `volt::task`, level `TRACE`, fields `kind` (`task`, `local`, `blocking`), `task.id` (recorded at the first poll), `size.bytes`, and `loc.file`, `loc.line`, `loc.col` of the spawn |

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
#[cfg(unix)]
pub mod signal;
pub mod task;
pub mod time;

pub use runtime::{run, spawn};
/// Waits for several futures at once, or for the first of several; pins a value on the stack.
///
/// They are those of the `tokio` crate, which work on any executor: the syntax, with `biased`,
/// preconditions and `else`, is described there.
///
/// ```
/// use std::time::Duration;
/// use volt::time::sleep;
///
/// volt::run(async {
///     let (one, two) = volt::join!(async { 1 }, async { 2 });
///     assert_eq!((one, two), (1, 2));
///
///     let answer = volt::select! {
///         biased;
///         () = sleep(Duration::from_secs(60)) => "late",
///         answer = async { "early" }, if one == 1 => answer,
///         else => "never",
///     };
///     assert_eq!(answer, "early");
/// });
/// ```
pub use tokio::{join, pin, select, try_join};
/// Turns an `async fn` into one that runs on a runtime of its own.
///
/// ```
/// #[volt::main(flavor = "multi_thread", worker_threads = 2)]
/// async fn main() -> std::io::Result<()> {
///     let answer = volt::spawn(async { 6 * 7 }).await?;
///     assert_eq!(answer, 42);
///     Ok(())
/// }
/// ```
pub use volt_macros::main;
/// Turns an `async fn` into a test that runs on a runtime of its own.
///
/// ```
/// #[volt::test(start_paused = true)]
/// async fn an_hour_passes_at_once() {
///     volt::time::sleep(std::time::Duration::from_secs(3600)).await;
/// }
/// ```
pub use volt_macros::test;
pub use volt_pool as pool;
pub use volt_sync as sync;
