//! The Tokio-shaped adapters, on Tokio.

use ::tokio as rt;

#[path = "shaped/channel.rs"]
pub(crate) mod channel;
#[path = "shaped/fanout.rs"]
pub(crate) mod fanout;
#[path = "shaped/http.rs"]
mod http;
#[path = "shaped/locks.rs"]
mod locks;
#[path = "shaped/net.rs"]
mod net;
#[path = "shaped/runtime.rs"]
pub(crate) mod runtime;
#[path = "shaped/signals.rs"]
mod signals;
#[path = "shaped/tasks.rs"]
pub(crate) mod tasks;

/// Tokio's stable counters say too little to be shown.
fn started(_: &rt::runtime::Runtime) {}

pub(crate) use runtime::{Current, Multi};
