//! What the macros expand to. Not part of the public API.
#![forbid(unsafe_code)]

pub use std::future::{Future, IntoFuture, poll_fn};
pub use std::pin::pin;
pub use std::task::Poll;

pub use volt_sync::coop::poll_proceed;

use crate::runtime::{Builder, LocalOptions};
pub use crate::select::{all_disabled, declined, from_first, from_random, note, unmatched};
use crate::task::boxed_if_large;

/// A value of any type, which nobody asks for: it names the type that a body returns.
#[cold]
pub fn never<T>() -> T {
    unreachable!("only its type is used")
}

/// Builds the runtime and runs `future` on it.
///
/// # Panics
/// If the runtime cannot be built: the macro's function has nobody to return that to.
#[track_caller]
pub fn block_on<R, F: Future<Output = R>>(builder: &mut Builder, future: F) -> R {
    boxed_if_large!(pin future: F => build_and_run(builder, future))
}

/// As [`block_on`], on a `LocalRuntime`.
///
/// # Panics
/// As `block_on`.
#[track_caller]
pub fn block_on_local<R, F: Future<Output = R>>(builder: &mut Builder, future: F) -> R {
    boxed_if_large!(pin future: F => build_and_run_local(builder, future))
}

#[track_caller]
fn build_and_run_local<F: Future>(builder: &mut Builder, future: F) -> F::Output {
    match builder.build_local(LocalOptions::default()) {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => cannot_build(&error),
    }
}

#[cold]
#[track_caller]
fn cannot_build(error: &std::io::Error) -> ! {
    panic!("cannot build the runtime: {error}")
}

#[track_caller]
fn build_and_run<F: Future>(builder: &mut Builder, future: F) -> F::Output {
    match builder.build() {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => cannot_build(&error),
    }
}
