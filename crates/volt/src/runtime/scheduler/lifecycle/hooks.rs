//! The pool of blocking threads, whose hooks are called inside the runtime.
//!
//! Purpose: a hook finds its runtime on every thread (`Handle::current`). The scheduler owns the pool, so the pool
//! knows it by a weak count only, and a thread owns it while its hook runs. One that ends after the scheduler, since a
//! shutdown has not waited for it, calls its hook outside.
#![forbid(unsafe_code)]

#[cfg(not(volt_loom))]
use std::sync::{OnceLock, Weak};

use volt_sync::internal::primitive::Arc;

use crate::runtime::blocking::{self, Pool};
use crate::runtime::config::{Config, Hook};
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::{context, driver};

/// Whose pool it is. Under loom, nobody's.
#[derive(Clone, Default)]
pub(crate) struct Owner {
    #[cfg(not(volt_loom))]
    scheduler: std::sync::Arc<OnceLock<Weak<Shared>>>,
}

impl Owner {
    /// Once, before the scheduler is shared.
    pub(crate) fn set(&self, scheduler: &Arc<Shared>) {
        #[cfg(not(volt_loom))]
        let _first = self.scheduler.set(Arc::downgrade(scheduler));
        #[cfg(volt_loom)]
        let _ = scheduler;
    }

    fn get(&self) -> Option<Arc<Shared>> {
        #[cfg(not(volt_loom))]
        return self.scheduler.get()?.upgrade();
        #[cfg(volt_loom)]
        None
    }

    /// `hook`, called inside.
    fn inside(&self, hook: &Hook) -> Hook {
        let (owner, hook) = (self.clone(), hook.clone());
        std::sync::Arc::new(move || match owner.get() {
            Some(scheduler) => context::with_entered(&scheduler, || hook()),
            None => hook(),
        })
    }
}

/// The pool of a scheduler, which it is to be told of.
pub(crate) fn pool(config: &Config, driver: &driver::Handle) -> (Pool, Owner) {
    let owner = Owner::default();
    let inside = |hook: &Option<Hook>| hook.as_ref().map(|hook| owner.inside(hook));
    let pool = Pool::new(blocking::Config {
        max_threads: config.max_blocking_threads,
        keep_alive: config.thread_keep_alive,
        stack_size: config.thread_stack_size,
        thread_name: config.thread_name.clone(),
        on_start: inside(&config.on_thread_start),
        on_stop: inside(&config.on_thread_stop),
        around_task: driver.hold_clock(),
    });
    (pool, owner)
}
