//! The handle that waits for a task.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker, ready};

use super::abort::AbortHandle;
use super::error::JoinError;
use super::harness::swallow;
use super::header::Header;
use super::id::Id;
use super::state::JoinDropped;
use super::waker;

/// Waits for a task, and gives its output.
///
/// Dropping the handle detaches the task: it goes on, and its output is dropped when it completes.
/// As a future, the handle yields `Err` with a [`JoinError`] if the task panicked or was aborted.
///
/// # Examples
/// ```
/// volt::run(async {
///     let sum = volt::spawn(async { 1 + 2 });
///     assert_eq!(sum.await.unwrap(), 3);
///
///     let panics = volt::spawn(async { panic!("oh no") });
///     let error = panics.await.unwrap_err();
///     assert!(error.is_panic());
/// });
/// ```
///
/// # Panics
/// When polled again after it was ready.
///
/// # Cancel safety
/// Polling a `&mut JoinHandle` in a `select!` loses nothing: the output stays until it is taken.
///
/// # Cost
/// One atomic read-modify-write to take the output; one more if it has to be waited for.
pub struct JoinHandle<T> {
    /// `None` once the output was taken.
    task: Option<NonNull<Header>>,
    id: Id,
    _output: PhantomData<T>,
}

// SAFETY: the handle gives access to the output, which may be sent; the header is `Sync`.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: a shared handle gives no access to the output.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> Unpin for JoinHandle<T> {}
impl<T> UnwindSafe for JoinHandle<T> {}
impl<T> RefUnwindSafe for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// # Safety
    /// 1. The caller owns a reference to the task, which becomes the handle's.
    /// 2. JOIN_INTEREST is set, and this is the only handle.
    /// 3. The task's output is a `T`.
    #[inline]
    pub(super) unsafe fn new(task: NonNull<Header>) -> Self {
        // SAFETY: alive by the reference.
        let id = unsafe { task.as_ref() }.id();
        Self { task: Some(task), id, _output: PhantomData }
    }

    #[inline]
    fn header(&self) -> Option<&Header> {
        // SAFETY: the handle's reference keeps the task alive.
        self.task.map(|task| unsafe { task.as_ref() })
    }

    /// Aborts the task: it is dropped at its next `.await`, or before it runs for the first time.
    ///
    /// Awaiting it then yields a [cancelled](JoinError::is_cancelled) error, unless it had completed
    /// before. A blocking closure that has begun cannot be aborted.
    ///
    /// # Examples
    /// ```
    /// volt::run(async {
    ///     let task = volt::spawn(std::future::pending::<()>());
    ///     task.abort();
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
    /// # Examples
    /// ```
    /// volt::run(async {
    ///     let task = volt::spawn(async {});
    ///     while !task.is_finished() {
    ///         volt::task::yield_now().await;
    ///     }
    /// });
    /// ```
    pub fn is_finished(&self) -> bool {
        self.header().is_none_or(Header::is_complete)
    }

    /// The task's id.
    ///
    /// # Examples
    /// ```
    /// volt::run(async {
    ///     let task = volt::spawn(async { volt::task::id() });
    ///     let id = task.id();
    ///     assert_eq!(task.await.unwrap(), id);
    /// });
    /// ```
    pub fn id(&self) -> Id {
        self.id
    }

    /// A handle that can abort the task, but not wait for it.
    ///
    /// # Examples
    /// ```
    /// volt::run(async {
    ///     let task = volt::spawn(std::future::pending::<()>());
    ///     let abort = task.abort_handle();
    ///     volt::spawn(async move { abort.abort() });
    ///     assert!(task.await.unwrap_err().is_cancelled());
    /// });
    /// ```
    #[must_use = "the handle aborts nothing by itself"]
    pub fn abort_handle(&self) -> AbortHandle {
        if let Some(header) = self.header() {
            header.state.ref_inc();
        }
        // SAFETY: the reference was just added.
        unsafe { AbortHandle::new(self.task, self.id) }
    }

    /// Blocks the thread until the task has completed, and gives its output.
    ///
    /// On a thread that runs tasks of a runtime (a worker, or one in `block_on`), this task, if it
    /// waits there, and then other tasks run meanwhile, on top of the one that calls this: fork-join
    /// without `async`. A thread of no runtime joins that of the task, and runs tasks of it. A task
    /// below on the stack goes on only when those above it have ended, so tasks that wait for each other in
    /// other ways than this (a lock that is held across the call, say), or for one that is not their own
    /// child, can deadlock; await the handle where that may be. A limit to the depth is kept: beyond it the
    /// thread just waits.
    ///
    /// # Examples
    /// ```
    /// fn fib(n: u32) -> u64 {
    ///     if n < 2 {
    ///         return u64::from(n);
    ///     }
    ///     let left = volt::spawn(async move { fib(n - 1) });
    ///     fib(n - 2) + left.join().unwrap()
    /// }
    /// assert_eq!(volt::run(async { fib(10) }), 55);
    /// ```
    ///
    /// # Errors
    /// If the task panicked or was aborted.
    ///
    /// # Panics
    /// If the output has been taken, by polling this handle. At the limit of the depth, on a
    /// current-thread runtime. If the task is itself further down on this thread's stack, in a `join`, and so
    /// would never complete. If it is one of a [`LocalSet`](super::LocalSet) that this thread is driving, where
    /// nobody else could run it.
    #[track_caller]
    pub fn join(self) -> Result<T, JoinError> {
        assert!(self.task.is_some(), "`JoinHandle` joined after completion");
        crate::runtime::block_on_helping(self)
    }

    /// The address of the task's scheduler, which may be gone.
    pub(crate) fn scheduler(&self) -> *const () {
        self.header().map_or(std::ptr::null(), |header| header.scheduler.as_ptr().cast_const())
    }

    /// The task, for comparison with others.
    pub(crate) fn target(&self) -> Option<NonNull<Header>> {
        self.task
    }

    /// The output, if the task has completed.
    ///
    /// # Panics
    /// If it was taken before.
    #[inline]
    pub(crate) fn try_take(&mut self) -> Option<Result<T, JoinError>> {
        let task = self.task.expect("`JoinHandle` polled after completion");
        // SAFETY: the handle's reference keeps the task alive.
        let header = unsafe { task.as_ref() };
        if !header.state.load().is_complete() {
            return None;
        }
        self.task = None;
        let mut result = MaybeUninit::<Result<T, JoinError>>::uninit();
        let place = NonNull::from(&mut result).cast();
        // SAFETY: COMPLETE; this is the join handle, and it forgets the task: it asks once. The
        // output is a `T` (obligation 3 of `new`).
        unsafe { (header.vtable.take_output)(task, place) };
        // SAFETY: the handle's reference, which it has just forgotten.
        unsafe { Header::release(task, 1) };
        // SAFETY: `take_output` has written it.
        Some(unsafe { result.assume_init() })
    }

    /// Has `waker` woken when the task completes, or returns it if it already has. Makes an
    /// [`AbortHandle`] by the same operation. Only for a handle that was not polled.
    #[inline]
    pub(super) fn register_first(&mut self, waker: Waker) -> (AbortHandle, Option<Waker>) {
        let header = self.header().expect("the output was not taken");
        // SAFETY: JOIN_WAKER was never set: the place is the handle's.
        header.join_waker.with_mut(|place| unsafe { (*place).write(waker) });
        let registered = header.state.set_join_waker_and_ref();
        // SAFETY: JOIN_WAKER is not set: the runner has left the waker to us.
        let unused = (!registered).then(|| unsafe { header.take_join_waker() });
        // SAFETY: the reference was just added.
        (unsafe { AbortHandle::new(self.task, self.id) }, unused)
    }

    /// Has `waker` woken when the task completes. False if it already has.
    fn register(&self, waker: &Waker) -> bool {
        let header = self.header().expect("checked by `poll`");
        let state = header.state.load();
        if state.is_complete() {
            return false;
        }
        if state.has_join_waker() {
            // SAFETY: while JOIN_WAKER is set nobody writes the place, and the bits of a waker
            // that the runner may have moved out can still be compared.
            let same = header
                .join_waker
                .with(|stored| unsafe { &*stored.cast::<Waker>() }.will_wake(waker));
            if same {
                return true;
            }
            if !header.state.unset_join_waker() {
                return false;
            }
            // SAFETY: we cleared JOIN_WAKER: the waker is ours.
            let old = unsafe { header.take_join_waker() };
            drop(old);
        }
        let waker = waker.clone();
        // SAFETY: neither JOIN_WAKER nor COMPLETE was set, and only we set the former; the runner
        // leaves the place alone without it.
        header.join_waker.with_mut(|place| unsafe { (*place).write(waker) });
        let registered = header.state.set_join_waker();
        if !registered {
            // SAFETY: JOIN_WAKER is not set: the runner has left the waker to us.
            drop(unsafe { header.take_join_waker() });
        }
        registered
    }

    #[cold]
    fn drop_slow(task: NonNull<Header>, dropped: &JoinDropped) {
        // SAFETY: the handle's reference, which is given up below.
        let header = unsafe { task.as_ref() };
        match dropped {
            JoinDropped::Done => return,
            // SAFETY: the transition cleared JOIN_WAKER before the task was COMPLETE: it is ours.
            JoinDropped::DropWaker => swallow(|| drop(unsafe { header.take_join_waker() })),
            // SAFETY: COMPLETE, and the handle has not taken the output.
            JoinDropped::DropOutput => swallow(|| unsafe { (header.vtable.drop_output)(task) }),
        }
        // SAFETY: the handle's reference.
        unsafe { Header::release(task, 1) };
    }

    #[cfg(test)]
    pub(super) fn snapshot(&self) -> Option<super::state::Snapshot> {
        self.header().map(|header| header.state.load())
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(volt_sync::coop::poll_proceed(cx));
        if let Some(result) = self.try_take() {
            volt_sync::coop::made_progress();
            return Poll::Ready(result);
        }
        if self.register(cx.waker()) {
            return Poll::Pending;
        }
        let result = self.try_take().expect("`register` saw that the task is complete");
        volt_sync::coop::made_progress();
        Poll::Ready(result)
    }
}

impl<T> Drop for JoinHandle<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(task) = self.task {
            // SAFETY: the handle's reference keeps the task alive.
            let dropped = unsafe { task.as_ref() }.state.drop_join_handle();
            if dropped != JoinDropped::Done {
                Self::drop_slow(task, &dropped);
            }
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("id", &self.id).finish()
    }
}
