//! What is large goes to the heap before anything else is done with it.
//!
//! Purpose: a future goes through several functions on its way into a task, or into `block_on`. Where the
//! compiler does not optimize, it lies once in the frame of each of them, so that one of 200 kB would use up the
//! stack of a worker. In a box it is moved once.
//!
//! Rejected: to make the task in the first of these functions (a runtime refuses tasks once it has shut down, and a
//! `LocalSet`, a set and a runtime make theirs in ways of their own); a pinned reference in `block_on` (the future has to
//! be dropped inside, where its runtime is the current one).
#![forbid(unsafe_code)]

/// Sizes as Tokio's, which does the same.
const LIMIT: usize = if cfg!(debug_assertions) { 2_048 } else { 16_384 };

/// True if a `T` should be boxed.
pub(crate) const fn is_large<T>() -> bool {
    size_of::<T>() > LIMIT
}

/// An expression of `$value`, a future (`pin`) or a closure (`new`), which is boxed before if it is large. In each of the functions that
/// are called from outside, as one more in between would have the large one in its frame.
macro_rules! boxed_if_large {
    ($new:ident $value:ident: $type:ty => $then:expr) => {
        if const { $crate::task::is_large::<$type>() } {
            let $value = Box::$new($value);
            $then
        } else {
            $then
        }
    };
}
pub(crate) use boxed_if_large;
