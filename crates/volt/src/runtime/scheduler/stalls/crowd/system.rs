//! What the operating system knows of a crowd: how long the process has run, and the machine has not.
//!
//! `/proc/uptime` is opened when a runtime starts: later the process may have no descriptors left, or no
//! right to open files. The runtimes of the process have it in common, and the last one closes it. Other
//! systems do not say; nor does Linux where the idle time is 0, as in some containers.
//!
//! Rejected: one descriptor for good. A program that closes all descriptors between two runtimes, to become
//! a daemon, would have another file read in its place; and what could not be opened once would stay so.

#[cfg(target_os = "linux")]
use std::fs::File;
#[cfg(target_os = "linux")]
// STD: what a static holds; no model asks the system.
use std::sync::{Arc, PoisonError, Weak};

#[cfg(target_os = "linux")]
use volt_sync::internal::primitive::StaticMutex;

#[cfg(target_os = "linux")]
use crate::runtime::processors;

/// Where to ask.
#[derive(Debug)]
pub(super) struct System {
    #[cfg(target_os = "linux")]
    pub(super) uptime: Arc<File>,
}

/// The one of all runtimes.
#[cfg(target_os = "linux")]
fn uptime() -> Option<Arc<File>> {
    static SHARED: StaticMutex<Weak<File>> = StaticMutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().or_else(|| {
        let file = Arc::new(File::open("/proc/uptime").ok()?);
        *shared = Arc::downgrade(&file);
        Some(file)
    })
}

#[cfg(target_os = "linux")]
impl System {
    /// None if this is no system for as many `workers`: if there is one processor, or one for each
    /// worker and more; or if it does not say what is asked.
    pub(super) fn open(workers: usize) -> Option<Self> {
        let processors = processors::available()?;
        if processors < 2 || workers < processors {
            return None;
        }
        let system = Self { uptime: uptime()? };
        system.read().map(|_| system)
    }

    /// The processor time of the process, and the idle time of all processors, in nanoseconds.
    pub(super) fn read(&self) -> Option<(u64, u64)> {
        use std::os::unix::fs::FileExt;

        let mut text = [0; 64];
        let length = self.uptime.read_at(&mut text, 0).ok()?;
        let idle_ns = idle_ns(std::str::from_utf8(&text[..length]).ok()?)?;
        Some((process_ns()?, idle_ns))
    }
}

#[cfg(not(target_os = "linux"))]
impl System {
    pub(super) fn open(_workers: usize) -> Option<Self> {
        None
    }

    pub(super) fn read(&self) -> Option<(u64, u64)> {
        None
    }
}

/// The second figure of `/proc/uptime`: seconds with two decimals. None if it is 0.
#[cfg(any(target_os = "linux", test))]
pub(super) fn idle_ns(text: &str) -> Option<u64> {
    let (seconds, hundredths) = text.split_whitespace().nth(1)?.split_once('.')?;
    let (seconds, hundredths): (u64, u64) = (seconds.parse().ok()?, hundredths.parse().ok()?);
    let ns = seconds.checked_mul(100)?.checked_add(hundredths)?.checked_mul(10_000_000)?;
    (ns != 0).then_some(ns)
}

#[cfg(target_os = "linux")]
fn process_ns() -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours, and lives through the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    let (seconds, ns) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    (result == 0).then_some(seconds * 1_000_000_000 + ns)
}
