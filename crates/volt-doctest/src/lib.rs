//! Runs the examples of volt-sync's documentation on several executors: they are to work on any.
#![forbid(unsafe_code)]

use std::future::Future;

/// Runs the future that `example` makes on `futures::executor`, and another one on Tokio. Returns
/// the output of the second.
///
/// # Panics
/// If the example does, or Tokio's runtime cannot be built.
///
/// ```
/// let mut runs = 0;
/// volt_doctest::run(|| {
///     runs += 1;
///     async {}
/// });
/// assert_eq!(runs, 2);
/// ```
pub fn run<F: Future>(mut example: impl FnMut() -> F) -> F::Output {
    futures::executor::block_on(example());
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime without drivers").block_on(example())
}
