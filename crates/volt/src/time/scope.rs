//! How timers find the runtime that they run in.

use std::cell::Cell;
use std::ptr;
use std::ptr::NonNull;
use std::time::Instant as StdInstant;

use volt_sync::internal::primitive;

use super::scale;
use super::timers::{Shard, Timers};

#[cfg(not(volt_loom))]
std::thread_local! {
    static CURRENT: Cell<Scope> = const { Cell::new((ptr::null(), None)) };
}
#[cfg(volt_loom)]
primitive::thread_local! {
    static CURRENT: Cell<Scope> = Cell::new((ptr::null(), None));
}

/// Whether any clock of this process was ever paused: until then, reading the time needs no look
/// at the current runtime.
#[cfg(not(volt_loom))]
mod ever_paused {
    use std::sync::atomic::Ordering::Relaxed;
    use volt_sync::internal::primitive::AtomicBool;

    static EVER_PAUSED: AtomicBool = AtomicBool::new(false);

    pub(super) fn set() {
        // ORD relaxed: whoever pauses a clock runs on the thread that reads it.
        EVER_PAUSED.store(true, Relaxed);
    }

    #[inline]
    pub(super) fn get() -> bool {
        // ORD relaxed: as above.
        EVER_PAUSED.load(Relaxed)
    }
}

/// Loom's atomics cannot be static; its models do not read the machine's clock.
#[cfg(volt_loom)]
mod ever_paused {
    pub(super) fn set() {}

    pub(super) fn get() -> bool {
        true
    }
}

/// A clock is about to be paused.
pub(super) fn note_pause() {
    ever_paused::set();
}

/// The time of the current runtime's clock, or the machine's outside of one.
#[inline]
pub(super) fn now() -> StdInstant {
    if ever_paused::get() { now_slow() } else { primitive::now() }
}

#[cold]
fn now_slow() -> StdInstant {
    match try_with_timers(|timers| timers.clock().clone()) {
        // A clock that was never paused agrees with the machine's.
        Some(clock) => scale::to_instant(clock.now_ns()),
        None => primitive::now(),
    }
}

/// As [`now`], on the clock's scale.
#[inline]
pub(super) fn now_ns() -> u64 {
    if ever_paused::get() { scale::to_ns(now_slow()) } else { scale::machine_ns() }
}

/// Calls `f` with the timers of the current runtime.
///
/// # Panics
/// If there is none, naming `caller`.
#[inline]
#[track_caller]
pub(super) fn with_timers<R>(caller: &'static str, f: impl FnOnce(&Timers) -> R) -> R {
    match try_with_timers(f) {
        Some(result) => result,
        None => no_runtime(caller),
    }
}

/// Calls `f` with the shard of the current thread in the current runtime's timers.
///
/// # Panics
/// If there is no runtime, naming `caller`.
#[inline]
#[track_caller]
pub(super) fn with_shard<R>(caller: &'static str, f: impl FnOnce(&Shard) -> R) -> R {
    with_timers(caller, |timers| {
        let shard: NonNull<Shard> = timers.shard(CURRENT.with(Cell::get).1);
        // SAFETY: it lives as long as `timers`.
        f(unsafe { shard.as_ref() })
    })
}

#[cold]
#[track_caller]
fn no_runtime(caller: &'static str) -> ! {
    panic!(
        "`{caller}` needs a Volt runtime: call it inside `block_on`, a spawned task, or under \
         `Handle::enter`"
    )
}

#[inline]
fn try_with_timers<R>(f: impl FnOnce(&Timers) -> R) -> Option<R> {
    let timers = CURRENT.with(Cell::get).0;
    // SAFETY: whoever called `enter_scope` keeps it alive until `restore_scope`.
    (!timers.is_null()).then(|| f(unsafe { &*timers }))
}

/// What timers know of the thread: the runtime's timers (or null), and the worker's index.
pub(crate) type Scope = (*const Timers, Option<usize>);

/// Sets what timers know of the thread; returns what it was. `timers` stays alive while it is set.
#[inline]
pub(crate) fn enter_scope(timers: *const Timers, index: Option<usize>) -> Scope {
    CURRENT.with(|current| current.replace((timers, index)))
}

/// Takes an [`enter_scope`] back.
#[inline]
pub(crate) fn restore_scope(scope: Scope) {
    CURRENT.with(|current| current.set(scope));
}

/// Calls `f` with `timers` as the current ones, as worker `index`.
#[cfg(all(test, not(volt_loom)))]
pub(crate) fn enter<R>(timers: &Timers, index: Option<usize>, f: impl FnOnce() -> R) -> R {
    struct Restore(Scope);
    impl Drop for Restore {
        fn drop(&mut self) {
            restore_scope(self.0);
        }
    }
    let _restore = Restore(enter_scope(timers, index));
    f()
}
