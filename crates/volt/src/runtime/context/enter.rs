//! The runtime that a guard has made the current one. Invariants are those of [`context`](super).

use std::marker::PhantomData;
use std::num::NonZeroU64;

use volt_sync::internal::primitive::Arc;

use super::{GUARDS, get, set, time_scope};
use crate::runtime::Handle;
use crate::runtime::scheduler::shared::Shared;

/// Makes a runtime the current one until it is dropped. From `Runtime::enter` and `Handle::enter`.
///
/// Guards are dropped in the reverse order of their making.
///
/// ```
/// let runtime = volt::runtime::Runtime::new()?;
/// let guard = runtime.enter();
/// assert!(volt::runtime::Handle::try_current().is_ok());
/// drop(guard);
/// assert!(volt::runtime::Handle::try_current().is_err());
/// # std::io::Result::Ok(())
/// ```
#[must_use = "the runtime is the current one only as long as the guard exists"]
pub struct EnterGuard<'a> {
    _undo: Undo,
    _handle: PhantomData<&'a Handle>,
}

/// What guards have made of the current runtime of a scope, while it is [put aside](put_aside).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entered {
    runtime: *const Shared,
    guard: NonZeroU64,
}

/// True if a guard of this scope is there.
#[inline]
pub(crate) fn has_entered() -> bool {
    get().guard != 0
}

/// What is polled from here on is not the caller's: the current runtime is that which polls it, instead of one that a
/// guard of the caller's has entered.
#[cold]
pub(crate) fn put_aside() -> Option<Entered> {
    let mut context = get();
    let guard = NonZeroU64::new(context.guard)?;
    let entered = Entered { runtime: context.runtime, guard };
    // SAFETY: valid by the invariant: the frames belong to calls that this one is inside of.
    context.runtime = unsafe { context.frames.as_ref() }?.runtime;
    context.guard = 0;
    set(context);
    time_scope(&context);
    Some(entered)
}

/// The caller's futures are polled again, in the scope where this was put aside.
#[cold]
pub(crate) fn put_back(entered: Entered) {
    let mut context = get();
    // A guard that was forgotten meanwhile keeps its runtime for ever, and enters it no longer.
    (context.runtime, context.guard) = (entered.runtime, entered.guard.get());
    set(context);
    time_scope(&context);
}

/// What the guard undoes. The lifetime is not in the type that implements `Drop`: so a runtime may be shut down, by value,
/// under a guard that is dropped later, as with Tokio's.
struct Undo {
    /// Owned; kept for ever if the guard is forgotten.
    runtime: *const Shared,
    previous: *const Shared,
    /// Its number, which no other guard of the thread ever has, and that of the one before.
    number: u64,
    before: u64,
}

impl EnterGuard<'_> {
    pub(crate) fn new(runtime: Arc<Shared>) -> Self {
        let mut context = get();
        let (previous, before) = (context.runtime, context.guard);
        let number = GUARDS.with(|guards| {
            guards.set(guards.get() + 1);
            guards.get()
        });
        context.runtime = Arc::into_raw(runtime);
        context.guard = number;
        set(context);
        time_scope(&context);
        let undo = Undo { runtime: context.runtime, previous, number, before };
        Self { _undo: undo, _handle: PhantomData }
    }
}

impl Drop for Undo {
    #[track_caller]
    fn drop(&mut self) {
        let mut context = get();
        if context.guard != self.number {
            // The count stays: another guard, or this thread, still has the pointer.
            assert!(
                std::thread::panicking(),
                "`EnterGuard`s must be dropped in the reverse order of their making, and where \
                 they were made"
            );
            return;
        }
        context.guard = self.before;
        context.runtime = self.previous;
        set(context);
        time_scope(&context);
        // SAFETY: the count that `new` kept; the pointer is gone from the context.
        drop(unsafe { Arc::from_raw(self.runtime) });
    }
}

impl std::fmt::Debug for EnterGuard<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnterGuard").finish_non_exhaustive()
    }
}
