//! The workloads, by group: what is measured, and with whom.

pub(crate) mod channel;
pub(crate) mod contended;
pub(crate) mod hogs;
pub(crate) mod http;
pub(crate) mod idle;
pub(crate) mod memory;
pub(crate) mod net;
pub(crate) mod oversubscribed;
pub(crate) mod pool;
pub(crate) mod selftest;
pub(crate) mod sync;
pub(crate) mod tasks;
pub(crate) mod time;
