//! All schedulers of the process, for threads that know one only by a task's uncounted pointer.
//!
//! Purpose: a blocking `join` on a thread of no runtime helps the task's runtime. The task may have
//! completed and its runtime be gone, so the pointer is only an address to look for. If another
//! runtime has got the same address since, helping that one does no harm. And any runtime collects the children that
//! nobody waits for.
#![forbid(unsafe_code)]

use volt_sync::internal::primitive::Arc;

#[cfg(unix)]
use crate::reactor;
use crate::runtime::scheduler::shared::Shared;

#[cfg(not(volt_loom))]
mod list {
    use std::sync::{PoisonError, Weak};

    use volt_sync::internal::primitive::{Mutex, MutexGuard};

    use super::Shared;

    static ALL: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

    pub(crate) fn lock() -> MutexGuard<'static, Vec<Weak<Shared>>> {
        ALL.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds a scheduler.
pub(crate) fn add(shared: &Arc<Shared>) {
    #[cfg(not(volt_loom))]
    list::lock().push(Arc::downgrade(shared));
    #[cfg(volt_loom)]
    let _ = shared;
}

/// Removes a scheduler that is being dropped.
pub(crate) fn remove(shared: &Shared) {
    #[cfg(not(volt_loom))]
    list::lock().retain(|other| !std::ptr::eq(other.as_ptr(), shared));
    #[cfg(volt_loom)]
    let _ = shared;
}

/// The scheduler at `address`, if it is alive.
pub(crate) fn find(address: *const ()) -> Option<Arc<Shared>> {
    #[cfg(not(volt_loom))]
    return list::lock().iter().find(|other| other.as_ptr().cast() == address)?.upgrade();
    #[cfg(volt_loom)]
    {
        let _ = address;
        None
    }
}

/// The reactors of all schedulers.
#[cfg(unix)]
pub(crate) fn reactors() -> Vec<reactor::Handle> {
    #[cfg(not(volt_loom))]
    // Collected first: a scheduler whose last reference goes here takes the lock.
    let all: Vec<_> = list::lock().iter().filter_map(std::sync::Weak::upgrade).collect();
    #[cfg(volt_loom)]
    let all = Vec::<Arc<Shared>>::new();
    all.iter().map(|shared| shared.driver_handle.reactor.clone()).collect()
}
