//! The part of a task that is the same for all of them.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::task::Waker;

use volt_sync::internal::primitive::UnsafeCell;
use volt_sync::internal::{Link, Pointers};

use super::id::Id;
use super::state::State;

/// The front of a task's allocation. `task.rs` says who may access which field.
#[repr(C)]
pub(crate) struct Header {
    pub(super) state: State,
    pub(super) vtable: &'static Vtable,
    /// The link of the queue that the task's `Notified` is in.
    pub(super) queue_next: UnsafeCell<Option<NonNull<Header>>>,
    /// The scheduler, uncounted; its type is the vtable's secret.
    pub(super) scheduler: NonNull<()>,
    pub(super) owned: UnsafeCell<Pointers<Header>>,
    pub(super) join_waker: UnsafeCell<MaybeUninit<Waker>>,
}

#[cfg(all(not(volt_loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Header>() == 64);

/// What depends on the types of the future and of the scheduler.
pub(super) struct Vtable {
    /// Polls the task once. Consumes the `Notified`'s reference.
    pub(super) run: unsafe fn(NonNull<Header>),
    /// Drops the future of a notified task. Consumes the `Notified`'s reference.
    pub(super) cancel_notified: unsafe fn(NonNull<Header>),
    /// Drops the future of a RUNNING task that is in no owned list. Consumes the runner's reference.
    pub(super) cancel_running: unsafe fn(NonNull<Header>),
    /// Hands the `Notified` to the scheduler.
    pub(super) schedule: unsafe fn(NonNull<Header>),
    /// Moves the output to a place for a `Result<T, JoinError>`.
    pub(super) take_output: unsafe fn(NonNull<Header>, NonNull<()>),
    /// Drops the output. May panic.
    pub(super) drop_output: unsafe fn(NonNull<Header>),
    /// Frees the memory. Runs no user code.
    pub(super) free: unsafe fn(NonNull<Header>),
    pub(super) type_name: fn() -> &'static str,
}

// SAFETY: the fields are accessed by the rules of `task.rs`, which hold across threads.
unsafe impl Send for Header {}
// SAFETY: a shared header gives access to its cells by those rules only.
unsafe impl Sync for Header {}

impl Header {
    /// The next task in the queue that this one's `Notified` is in.
    ///
    /// # Safety
    /// The caller holds the task's `Notified`.
    #[inline]
    pub(crate) unsafe fn queue_next(task: NonNull<Self>) -> Option<NonNull<Self>> {
        // SAFETY: the `Notified` keeps the task alive.
        let header = unsafe { task.as_ref() };
        // SAFETY: and makes its holder the only one to access the link.
        header.queue_next.with(|next| unsafe { *next })
    }

    /// Links the task to the next one in its queue.
    ///
    /// # Safety
    /// The caller holds the task's `Notified`.
    #[inline]
    pub(crate) unsafe fn set_queue_next(task: NonNull<Self>, next: Option<NonNull<Self>>) {
        // SAFETY: the `Notified` keeps the task alive.
        let header = unsafe { task.as_ref() };
        // SAFETY: and makes its holder the only one to access the link.
        header.queue_next.with_mut(|place| unsafe { *place = next });
    }

    /// True once the output (or the error) of the task is there.
    pub(crate) fn is_complete(&self) -> bool {
        self.state.load().is_complete()
    }

    /// True if the task is in its owned list, or was.
    #[inline]
    pub(crate) fn is_linked(&self) -> bool {
        self.state.peek().is_linked()
    }

    /// The name of the future's type.
    pub(crate) fn type_name(&self) -> &'static str {
        (self.vtable.type_name)()
    }

    /// The same for all tasks of one type of future (and, rarely, for others). A function, as there is one of a type in a
    /// program, or few; of the table, which is a constant, an optimising compiler makes one for each place that spawns.
    #[inline]
    pub(crate) fn type_key(&self) -> usize {
        self.vtable.run as usize
    }

    /// The task's id.
    #[inline]
    pub(crate) fn id(&self) -> Id {
        Id::new(NonNull::from(self), self.state.peek().generation())
    }

    /// Drops `refs` references, and the task if they were the last.
    ///
    /// # Safety
    /// The caller owns that many references and uses none of them again.
    #[inline]
    pub(super) unsafe fn release(task: NonNull<Self>, refs: u32) {
        // SAFETY: the references keep the task alive.
        let header = unsafe { task.as_ref() };
        let free = header.vtable.free;
        if header.state.ref_dec(refs) {
            // SAFETY: they were the last, so nobody else can reach the task.
            unsafe { free(task) };
        }
    }

    /// Moves the join waker out of its place.
    ///
    /// # Safety
    /// The place is the caller's by the rules of `task.rs`, and holds a waker.
    #[inline]
    pub(super) unsafe fn take_join_waker(&self) -> Waker {
        // `with`: a join handle may still be comparing the bits with another waker's.
        // SAFETY: initialised, and nobody else moves it out.
        self.join_waker.with(|waker| unsafe { waker.cast::<Waker>().read() })
    }
}

impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task")
            .field("id", &self.id())
            .field("state", &self.state)
            .field("future", &self.type_name())
            .finish()
    }
}

// SAFETY:
// 1. It is always the field `owned` of the node.
// 2. All references to headers are shared ones, and `owned` is a cell.
unsafe impl Link for Header {
    #[inline]
    unsafe fn pointers(node: NonNull<Self>) -> NonNull<Pointers<Self>> {
        // SAFETY: the caller says that the node is alive.
        let header = unsafe { node.as_ref() };
        // SAFETY: the address of a field is not null.
        header.owned.with_mut(|links| unsafe { NonNull::new_unchecked(links) })
    }
}
