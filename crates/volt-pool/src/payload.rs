//! Panics of user code whose payloads nobody wants.
#![forbid(unsafe_code)]

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A caught panic.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Runs `work` and drops its panic, if it panics.
pub(crate) fn discard(work: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
        discard_payload(payload);
    }
}

/// Drops a payload, whose own drop may panic; then that second payload is forgotten.
pub(crate) fn discard_payload(payload: Payload) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(move || drop(payload))) {
        mem::forget(second);
    }
}
