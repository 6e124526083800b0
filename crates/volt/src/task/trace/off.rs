//! What `trace` is without the feature `tracing`: nothing.
#![forbid(unsafe_code)]

use std::future::Future;
use std::panic::Location;

/// The future itself.
#[inline]
pub(crate) fn task<F: Future>(
    _kind: &'static str,
    future: F,
    _size: usize,
    _place: &'static Location<'static>,
) -> F {
    future
}

/// The closure itself.
#[inline]
pub(crate) fn blocking<F: FnOnce() -> R, R>(
    closure: F,
    _size: usize,
    _place: &'static Location<'static>,
) -> F {
    closure
}
