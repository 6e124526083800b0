//! The Tokio-shaped adapters, on Volt.

use std::sync::OnceLock;

use ::volt as rt;
use rt::runtime::{Runtime, RuntimeMetrics};

#[path = "shaped/channel.rs"]
pub(crate) mod channel;
#[path = "shaped/fanout.rs"]
pub(crate) mod fanout;
#[path = "shaped/http.rs"]
mod http;
#[path = "shaped/locks.rs"]
mod locks;
pub(crate) mod mpmc;
#[path = "shaped/net.rs"]
mod net;
#[path = "shaped/runtime.rs"]
pub(crate) mod runtime;
#[path = "shaped/signals.rs"]
mod signals;
#[path = "shaped/tasks.rs"]
pub(crate) mod tasks;
mod waiter;

pub(crate) use runtime::{Current, Multi};

static METRICS: OnceLock<RuntimeMetrics> = OnceLock::new();

/// Remembers the process's runtime for [`statistics`].
fn started(runtime: &Runtime) {
    // A second runtime in the process is not the one that is measured.
    let _ = METRICS.set(runtime.metrics());
}

/// What the scheduler of this process's runtime has counted; nothing without a runtime.
pub(crate) fn statistics() -> Vec<(&'static str, u64)> {
    METRICS.get().map_or_else(Vec::new, |metrics| {
        vec![
            ("sched_polls", metrics.polls_count()),
            ("sched_spawns", metrics.spawned_tasks_count()),
            ("sched_parks", metrics.parks_count()),
            ("sched_stolen", metrics.stolen_tasks_count()),
            ("sched_lifo", metrics.lifo_hits_count()),
            ("sched_batches", metrics.batch_fetches_count()),
            ("sched_remote", metrics.remote_schedule_count()),
            ("sched_driver", metrics.driver_wakeups_count()),
        ]
    })
}
