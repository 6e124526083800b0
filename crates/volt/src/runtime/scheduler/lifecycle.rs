//! Beginning and end. `threads.rs` and `hooks.rs`: of threads; `living.rs`: of tasks, counted; `registry.rs`: of the
//! schedulers of a process; `cancel.rs`: of everything, in a hurry.

pub(crate) mod cancel;
pub(crate) mod hooks;
pub(crate) mod living;
pub(crate) mod registry;
pub(crate) mod threads;
