//! Names of runtimes.
#![forbid(unsafe_code)]

use std::fmt;
use std::num::NonZeroU64;
// STD: what a static holds; no model asks which number it gets.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Tells a runtime from all others of the process, and from each [`LocalSet`](crate::task::LocalSet), which has an id of
/// this kind, too.
///
/// From [`Handle::id`](super::Handle::id) and [`LocalSet::id`](crate::task::LocalSet::id). It says nothing else: do not rely on
/// which number is given to whom, nor on their order. No two that are alive have the same, and none is given again
/// within the life of a process. The ids of a [`LocalRuntime`](super::LocalRuntime) and of the set in it are two.
///
/// ```
/// use std::collections::HashSet;
/// use volt::runtime::{Id, Runtime};
///
/// let (a, b) = (Runtime::new()?, Runtime::new()?);
/// let ids: HashSet<Id> = [&a, &b, &a].map(|runtime| runtime.handle().id()).into();
/// assert_eq!(ids.len(), 2);
/// println!("tasks of runtime {}: {}", a.handle().id(), a.metrics().num_alive_tasks());
/// # std::io::Result::Ok(())
/// ```
///
/// # Cost
/// One atomic addition for each runtime or set that is made; a copy of a number after that.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct Id(NonZeroU64);

impl Id {
    /// One that was not given yet.
    pub(crate) fn next() -> Self {
        // ORD relaxed: a number each, and nothing with it.
        let id = NEXT.fetch_add(1, Relaxed);
        // After 2^64 of them.
        Self(NonZeroU64::new(id).unwrap_or(NonZeroU64::MAX))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
