//! How many threads can run at once.

// STD: what a static holds; no model asks the system.
use std::sync::PoisonError;

use volt_sync::internal::primitive::StaticMutex;

/// How many processors this thread, and what it starts, may use; None if the system does not say. What its control
/// group leaves it is asked once, since that reads several files: to start and end a runtime took 183 us with it
/// each time, and takes 127.
pub(crate) fn available() -> Option<usize> {
    /// For a thread that may use so many.
    static ASKED: StaticMutex<Option<(usize, Option<usize>)>> = StaticMutex::new(None);
    let allowed = allowed();
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    match *asked {
        Some((same, processors)) if same == allowed => processors,
        _ => {
            let processors = std::thread::available_parallelism().ok().map(usize::from);
            *asked = Some((allowed, processors));
            processors
        }
    }
}

/// The processors on which this thread may run; 0 if there are more than the set has places for, or the system does
/// not say.
fn allowed() -> usize {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: zeros are an empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is ours, of that size, and lives through the call; 0 is the calling thread.
        let result = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
        // SAFETY: it was initialised.
        if result == 0 { unsafe { libc::CPU_COUNT(&set) as usize } } else { 0 }
    }
    #[cfg(not(target_os = "linux"))]
    0
}

#[cfg(all(test, target_os = "linux", not(volt_loom)))]
mod tests;
