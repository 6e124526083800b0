//! The right to poll a task once, and the scheduler that is given it.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::header::Header;
use super::state::ToIdle;

/// The exclusive right to poll a task once. Holds one of its references.
///
/// Dropping it cancels the task: a scheduler that lets go of its queue leaks nothing.
pub(crate) struct Notified(NonNull<Header>);

// SAFETY: a task whose future is not `Send` is only ever scheduled by a scheduler that runs it on
// its own thread (`OwnedTasks::bind`, obligation 2); the pointer itself is a counted reference.
unsafe impl Send for Notified {}
// SAFETY: a shared `Notified` gives only access to the header, which is `Sync`.
unsafe impl Sync for Notified {}

impl Notified {
    /// Polls the task.
    #[inline]
    pub(crate) fn run(self) {
        let task = self.into_raw();
        // SAFETY: the `Notified` kept it alive, and passes its reference on.
        let run = unsafe { task.as_ref() }.vtable.run;
        // SAFETY: the function is the task's own, and the right to poll was ours.
        unsafe { run(task) };
    }

    /// Cancels a task that was spawned as [unowned](super::unowned) and is not queued, without a word
    /// to its scheduler.
    #[cold]
    pub(crate) fn refuse(self) {
        let task = self.into_raw();
        // SAFETY: the `Notified` kept it alive, and passes its reference on.
        let header = unsafe { task.as_ref() };
        let _either_way = header.state.to_running();
        // SAFETY: the function is the task's own; the right to poll was ours, and it was never linked.
        unsafe { (header.vtable.cancel_running)(task) };
    }

    /// Gives the right away as a pointer, for a queue.
    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<Header> {
        ManuallyDrop::new(self).0
    }

    /// Takes it back.
    ///
    /// # Safety
    /// The pointer comes from [`into_raw`](Self::into_raw), and is used once.
    #[inline]
    pub(crate) unsafe fn from_raw(task: NonNull<Header>) -> Self {
        Self(task)
    }

    /// What [`unowned`](super::unowned) was given.
    pub(crate) fn mark(&self) -> u8 {
        self.header().state.peek().shard()
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the reference keeps the task alive.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Notified {
    fn drop(&mut self) {
        let cancel = self.header().vtable.cancel_notified;
        // SAFETY: the function is the task's own; the right to poll and the reference were ours.
        unsafe { cancel(self.0) };
    }
}

impl std::fmt::Debug for Notified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Notified").field(self.header()).finish()
    }
}

/// What a task asks of its scheduler, to which it has an uncounted pointer.
///
/// # Safety
/// 1. `release` returns what `OwnedTasks::release` says, of the list that the task was bound to or is
///    linked to by `link`; or false, if the scheduler's tasks are never linked.
/// 2. A scheduler lives at the same address until its `OwnedTasks` are closed and empty, and nobody
///    has a `Notified` of a task that was never linked, nor runs one.
pub(crate) unsafe trait Schedule: Sized + 'static {
    /// Queues a task that became runnable. Any thread may call this.
    ///
    /// # Safety
    /// `this` is the task's scheduler. It is alive as long as `task` is not handed over (invariant
    /// 4 of `task.rs`): an implementation that uses it after that, on a thread that does not keep
    /// the scheduler alive by itself, takes a strong count before.
    unsafe fn schedule(this: NonNull<Self>, task: Notified);

    /// Queues a task that was woken while it ran: behind all others. On the thread that runs it.
    ///
    /// # Safety
    /// As of [`schedule`](Self::schedule).
    unsafe fn yield_now(this: NonNull<Self>, task: Notified) {
        // SAFETY: the same obligations.
        unsafe { Self::schedule(this, task) };
    }

    /// A task that was spawned as [unowned](super::unowned) is pending for the first time: what
    /// `OwnedTasks::link` says. On the thread that runs it.
    ///
    /// # Safety
    /// 1. `this` is the task's scheduler, and alive.
    /// 2. The caller is the task's runner, and the task was never linked.
    unsafe fn link(_this: NonNull<Self>, _task: NonNull<Header>) -> ToIdle {
        unreachable!("the tasks of this scheduler are linked from their spawn on, or never pending")
    }

    /// A task has completed: takes it out of the owned list. On the thread that ran it.
    ///
    /// # Safety
    /// 1. `this` is the task's scheduler, and alive.
    /// 2. It is called once for each task, by its runner.
    ///
    /// True if the task was linked: the list's reference is the caller's.
    unsafe fn release(this: NonNull<Self>, task: NonNull<Header>) -> bool;
}
