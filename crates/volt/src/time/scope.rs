//! How timers find the runtime that they run in.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::time::Instant as StdInstant;

use volt_sync::internal::primitive;

use super::scale;
use super::timers::{Shard, Timers};

#[cfg(not(volt_loom))]
std::thread_local! {
    static CURRENT: Cell<Scope> = const { Cell::new(Scope::NONE) };
}
#[cfg(volt_loom)]
primitive::thread_local! {
    static CURRENT: Cell<Scope> = Cell::new(Scope::NONE);
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

/// The shard of the current thread in the current runtime's timers. It lives as long as these: until the end of the scope.
///
/// # Panics
/// If there is no runtime, naming `caller`.
#[inline]
#[track_caller]
pub(super) fn shard(caller: &'static str) -> NonNull<Shard> {
    match NonNull::new(get().shard) {
        Some(shard) => shard,
        None => no_runtime(caller),
    }
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
    let timers = get().timers;
    // SAFETY: whoever called `enter_scope` keeps it alive until `restore_scope`.
    (!timers.is_null()).then(|| f(unsafe { &*timers }))
}

/// What timers know of the thread: the runtime's timers, and the shard among them that is the worker's; or null.
#[derive(Clone, Copy)]
pub(crate) struct Scope {
    timers: *const Timers,
    shard: *mut Shard,
}

impl Scope {
    const NONE: Self = Self { timers: ptr::null(), shard: ptr::null_mut() };
}

/// (Read in a closure that returns nothing: no look for an error is left then.)
#[inline]
fn get() -> Scope {
    let mut scope = Scope::NONE;
    CURRENT.with(|current| scope = current.get());
    scope
}

/// Sets what timers know of the thread, which is the worker `index` or none; returns what it was. `timers` stays alive while it is set.
#[inline]
pub(crate) fn enter_scope(timers: Option<&Timers>, index: Option<usize>) -> Scope {
    let scope = timers.map_or(Scope::NONE, |timers| Scope {
        timers: ptr::from_ref(timers),
        shard: timers.shard(index).as_ptr(),
    });
    CURRENT.with(|current| current.replace(scope))
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
    let _restore = Restore(enter_scope(Some(timers), index));
    f()
}
