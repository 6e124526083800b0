//! The allocation of a task.

use std::any::Any;
use std::future::Future;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;

use volt_sync::internal::Pointers;
use volt_sync::internal::primitive::UnsafeCell;

use super::harness;
use super::header::Header;
use super::id;
use super::join::JoinHandle;
use super::notified::{Notified, Schedule};
use super::state::State;

/// Header and future in one allocation. The header comes first, so that a pointer to one is a
/// pointer to the other.
#[repr(C)]
pub(super) struct Cell<F: Future> {
    pub(super) header: Header,
    pub(super) stage: UnsafeCell<Stage<F>>,
}

/// The future, then its output or what went wrong. The state word says which: RUNNING or before:
/// the future (until the runner has dropped it); COMPLETE: the output; COMPLETE and FAILED: the
/// failure. `repr(C)`: all of them lie at its address.
#[repr(C)]
pub(super) union Stage<F: Future> {
    pub(super) future: ManuallyDrop<F>,
    pub(super) output: ManuallyDrop<F::Output>,
    pub(super) failure: ManuallyDrop<Failure>,
}

/// Why a task has no output: the payload of its panic, or `None` if it was cancelled. Boxed twice,
/// since it would else make every small task larger.
pub(super) type Failure = Option<Box<Box<dyn Any + Send>>>;

/// Allocates a task with `refs` references.
#[inline]
pub(super) fn allocate<F, S>(
    future: F,
    scheduler: NonNull<S>,
    refs: u32,
    shard: u8,
) -> NonNull<Header>
where
    F: Future + 'static,
    F::Output: 'static,
    S: Schedule,
{
    let cell = Box::new(Cell {
        header: Header {
            state: State::new(refs, shard, id::next_generation()),
            vtable: harness::vtable::<F, S>(),
            queue_next: UnsafeCell::new(None),
            scheduler: scheduler.cast(),
            owned: UnsafeCell::new(Pointers::new()),
            join_waker: UnsafeCell::new(MaybeUninit::uninit()),
        },
        stage: UnsafeCell::new(Stage { future: ManuallyDrop::new(future) }),
    });
    NonNull::from(Box::leak(cell)).cast()
}

/// A task that is in no owned list: its `Notified` alone keeps it, and it must not be pending
/// after that has run (blocking closures). `mark` is the scheduler's, see [`Notified::mark`].
///
/// # Safety
/// `scheduler` lives until the task has completed, and its `release` returns false.
pub(crate) unsafe fn unowned<F, S>(
    future: F,
    scheduler: NonNull<S>,
    mark: u8,
) -> (Notified, JoinHandle<F::Output>)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Schedule,
{
    // The mark takes the place of the shard, which only owned tasks have.
    let task = allocate(future, scheduler, 2, mark);
    // SAFETY: the task is kept and has a reference for each of the two.
    let notified = unsafe { Notified::from_raw(task) };
    // SAFETY: the other reference; JOIN_INTEREST is set.
    let join = unsafe { JoinHandle::new(task) };
    (notified, join)
}
