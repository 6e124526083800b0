//! Where the functions named `blocking_...` are refused.
//!
//! This crate knows no runtime. One that polls futures on a thread, which must not be blocked meanwhile, says here how to
//! recognise such a thread.
#![forbid(unsafe_code)]

use std::sync::OnceLock;

static POLLS: OnceLock<fn() -> bool> = OnceLock::new();

/// From now on the `blocking_...` functions panic on threads of which `polls` is true. The first call in a process
/// counts.
pub fn refuse_blocking_where(polls: fn() -> bool) {
    let _first = POLLS.set(polls);
}

/// # Panics
/// On a thread that polls the futures of a runtime, whether or not `caller` would have to wait: that it happens to have
/// something at once is no reason to call it there.
#[inline]
#[track_caller]
pub fn assert_may_block(caller: &'static str) {
    if POLLS.get().is_some_and(|polls| polls()) {
        refuse(caller);
    }
}

#[cold]
#[track_caller]
fn refuse(caller: &'static str) -> ! {
    panic!(
        "`{caller}` would block a thread that runs tasks, one of which it may wait for: await instead, or call it in \
         `spawn_blocking`"
    )
}
