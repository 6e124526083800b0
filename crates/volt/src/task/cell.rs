//! The allocation of a task.

use std::alloc::Layout;
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
use super::memory;
use super::notified::{Notified, Schedule};
use super::state::{Birth, State};

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

/// Allocates a task, with the references of [`State::new`].
#[inline]
pub(super) fn allocate<F, S>(future: F, scheduler: NonNull<S>, birth: Birth) -> NonNull<Header>
where
    F: Future + 'static,
    F::Output: 'static,
    S: Schedule,
{
    let place = memory::allocate(Layout::new::<Cell<F>>()).cast::<Cell<F>>();
    let cell = Cell {
        header: Header {
            state: State::new(birth, id::next_generation()),
            vtable: harness::vtable::<F, S>(),
            queue_next: UnsafeCell::new(None),
            scheduler: scheduler.cast(),
            owned: UnsafeCell::new(Pointers::new()),
            join_waker: UnsafeCell::new(MaybeUninit::uninit()),
        },
        stage: UnsafeCell::new(Stage { future: ManuallyDrop::new(future) }),
    };
    // SAFETY: memory of this layout, and ours.
    unsafe { place.write(cell) };
    place.cast()
}

/// A task that is in no owned list yet: its `Notified` alone keeps it. Its scheduler links it when it
/// is pending for the first time ([`Schedule::link`]), or it never is (blocking closures).
/// `mark` is the scheduler's, see [`Notified::mark`]; 0 if the task may be linked.
///
/// # Safety
/// 1. `scheduler` lives until the task is linked, and as its list demands from then on; or until it
///    has completed.
/// 2. `future` and its output are `Send`, as of `OwnedTasks::bind`.
#[inline]
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
    // The mark takes the place of the shard, which only linked tasks have.
    let task = allocate(future, scheduler, Birth::Marked(mark));
    // SAFETY: the task is kept and has a reference for each of the two.
    let notified = unsafe { Notified::from_raw(task) };
    // SAFETY: the other reference; JOIN_INTEREST is set.
    let join = unsafe { JoinHandle::new(task) };
    (notified, join)
}
