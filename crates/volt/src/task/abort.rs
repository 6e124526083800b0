//! The handle that aborts a task.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;

use super::header::Header;
use super::id::Id;
use super::waker;

/// Aborts a task from anywhere, without being able to wait for it.
///
/// # Examples
/// ```
/// volt::run(async {
///     let task = volt::spawn(std::future::pending::<()>());
///     let abort = task.abort_handle();
///     abort.abort();
///     assert!(task.await.unwrap_err().is_cancelled());
///     assert!(abort.is_finished());
/// });
/// ```
///
/// Holding one keeps the task's memory, but not its future or output, which go when it completes.
pub struct AbortHandle {
    /// `None` if the task had been joined before the handle was made.
    task: Option<NonNull<Header>>,
    id: Id,
}

// SAFETY: a counted reference to a header, which is `Sync`.
unsafe impl Send for AbortHandle {}
// SAFETY: a shared handle only changes the state word and copies itself.
unsafe impl Sync for AbortHandle {}

impl UnwindSafe for AbortHandle {}
impl RefUnwindSafe for AbortHandle {}

impl AbortHandle {
    /// # Safety
    /// The caller owns a reference to the task, which becomes the handle's.
    #[inline]
    pub(super) unsafe fn new(task: Option<NonNull<Header>>, id: Id) -> Self {
        Self { task, id }
    }

    fn header(&self) -> Option<&Header> {
        // SAFETY: the handle's reference keeps the task alive.
        self.task.map(|task| unsafe { task.as_ref() })
    }

    /// Aborts the task, as [`JoinHandle::abort`](super::JoinHandle::abort) does.
    ///
    /// ```
    /// volt::run(async {
    ///     let task = volt::spawn(std::future::pending::<()>());
    ///     task.abort_handle().abort();
    ///     assert!(task.await.unwrap_err().is_cancelled());
    /// });
    /// ```
    pub fn abort(&self) {
        if let Some(task) = self.task {
            // SAFETY: the handle has a reference.
            unsafe { waker::abort(task) };
        }
    }

    /// True if the task has completed (or was aborted, and its future is gone).
    ///
    /// ```
    /// volt::run(async {
    ///     let task = volt::spawn(async {});
    ///     let handle = task.abort_handle();
    ///     task.await.unwrap();
    ///     assert!(handle.is_finished());
    /// });
    /// ```
    pub fn is_finished(&self) -> bool {
        self.header().is_none_or(Header::is_complete)
    }

    /// The task's id.
    ///
    /// ```
    /// volt::run(async {
    ///     let task = volt::spawn(async {});
    ///     assert_eq!(task.abort_handle().id(), task.id());
    /// });
    /// ```
    pub fn id(&self) -> Id {
        self.id
    }
}

impl Clone for AbortHandle {
    fn clone(&self) -> Self {
        if let Some(header) = self.header() {
            header.state.ref_inc();
        }
        Self { task: self.task, id: self.id }
    }
}

impl Drop for AbortHandle {
    #[inline]
    fn drop(&mut self) {
        if let Some(task) = self.task {
            // SAFETY: the handle's reference goes away.
            unsafe { Header::release(task, 1) };
        }
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle").field("id", &self.id).finish()
    }
}

#[cfg(test)]
impl AbortHandle {
    /// How many references there are to the task.
    pub(super) fn refs(&self) -> usize {
        self.header().map_or(0, |header| header.state.load().refs() as usize)
    }
}
