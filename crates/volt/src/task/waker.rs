//! A task as a `Waker`.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::header::Header;
use super::id;
use super::state::Notify;

/// One vtable for all tasks, in one place, so that `Waker::will_wake` compares equal.
static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop);

/// A waker that borrows the reference of the running task.
pub(super) struct WakerRef(ManuallyDrop<Waker>);

impl WakerRef {
    /// # Safety
    /// The task outlives the result.
    #[inline]
    pub(super) unsafe fn new(task: NonNull<Header>) -> Self {
        // SAFETY: the vtable's functions take a pointer to a `Header`; the reference that the
        // waker would drop is not its own, hence `ManuallyDrop`.
        let waker = unsafe { Waker::new(task.as_ptr().cast_const().cast(), &VTABLE) };
        Self(ManuallyDrop::new(waker))
    }
}

impl Deref for WakerRef {
    type Target = Waker;
    #[inline]
    fn deref(&self) -> &Waker {
        &self.0
    }
}

/// True if `waker` is a task's, and not another executor's around one.
pub(super) fn is_of_task(waker: &Waker) -> bool {
    ptr::eq(waker.vtable(), &VTABLE)
}

/// Notifies the task, as `Waker::wake_by_ref` does.
///
/// # Safety
/// The caller has a reference to the task.
#[inline]
unsafe fn notify_by_ref(task: NonNull<Header>) {
    if id::wake_polled(task) {
        // The runner sees it when the poll returns, before it gives up RUNNING.
        return;
    }
    // SAFETY: alive by the caller's reference.
    let header = unsafe { task.as_ref() };
    match header.state.wake_by_ref() {
        // SAFETY: the transition gave us the task's `Notified`.
        Notify::Submit => unsafe { (header.vtable.schedule)(task) },
        Notify::Done => {}
        Notify::Last => unreachable!("the waker's own reference remains"),
    }
}

/// Notifies the task so that it is cancelled.
///
/// # Safety
/// The caller has a reference to the task.
pub(super) unsafe fn abort(task: NonNull<Header>) {
    // SAFETY: alive by the caller's reference.
    let header = unsafe { task.as_ref() };
    if header.state.abort() == Notify::Submit {
        // SAFETY: the transition gave us the task's `Notified`.
        unsafe { (header.vtable.schedule)(task) };
    }
}

/// The task behind a waker's data.
///
/// # Safety
/// `data` comes from `WakerRef::new` or `clone`.
#[inline]
unsafe fn task(data: *const ()) -> NonNull<Header> {
    // SAFETY: it was a `NonNull`.
    unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: the waker's data.
    let task = unsafe { task(data) };
    // SAFETY: alive by the waker's reference.
    unsafe { task.as_ref() }.state.ref_inc();
    RawWaker::new(data, &VTABLE)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: the waker's data.
    let task = unsafe { task(data) };
    // SAFETY: alive by the waker's reference.
    let header = unsafe { task.as_ref() };
    let vtable = header.vtable;
    match header.state.wake_by_val() {
        // SAFETY: the waker's reference is now the `Notified`'s.
        Notify::Submit => unsafe { (vtable.schedule)(task) },
        Notify::Done => {}
        // SAFETY: the waker's reference was the last.
        Notify::Last => unsafe { (vtable.free)(task) },
    }
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the waker's data.
    let task = unsafe { task(data) };
    // SAFETY: the waker has a reference.
    unsafe { notify_by_ref(task) };
}

unsafe fn drop(data: *const ()) {
    // SAFETY: the waker's data.
    let task = unsafe { task(data) };
    // SAFETY: the waker's reference goes away.
    unsafe { Header::release(task, 1) };
}
