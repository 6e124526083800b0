//! The handle of a runtime.
#![forbid(unsafe_code)]

use std::fmt;
use std::future::Future;
use std::panic::Location;

use volt_sync::internal::primitive::Arc;

use super::context::{self, EnterGuard};
use super::id::Id;
use super::metrics::RuntimeMetrics;
use super::scheduler::guests::guest;
use super::scheduler::shared::Shared;
use crate::task::{JoinHandle, boxed_if_large, trace};

/// A handle of a runtime: spawns on it from anywhere. Cheap to clone.
///
/// A handle does not keep the runtime from being shut down; tasks that are spawned after that are
/// cancelled at once.
///
/// ```
/// let runtime = volt::runtime::Runtime::new()?;
/// let handle = runtime.handle().clone();
/// let thread = std::thread::spawn(move || handle.spawn(async { 6 * 7 }));
/// let task = thread.join().unwrap();
/// assert_eq!(runtime.block_on(task).unwrap(), 42);
///
/// let handle = runtime.handle().clone();
/// drop(runtime);
/// assert!(handle.spawn(async {}).join().unwrap_err().is_cancelled());
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
}

/// The kind of a runtime.
///
/// ```
/// use volt::runtime::{Handle, RuntimeFlavor};
///
/// volt::run(async {
///     assert_eq!(Handle::current().runtime_flavor(), RuntimeFlavor::MultiThread);
/// });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeFlavor {
    /// All tasks run on the thread that is in `block_on`.
    CurrentThread,
    /// The runtime has threads of its own.
    MultiThread,
}

/// There is no current runtime. From [`Handle::try_current`].
///
/// ```
/// let error = volt::runtime::Handle::try_current().unwrap_err();
/// assert!(error.to_string().starts_with("there is no Volt runtime"));
/// ```
#[derive(Debug)]
pub struct TryCurrentError(());

impl TryCurrentError {
    /// True if the thread is in no runtime.
    ///
    /// ```
    /// assert!(volt::runtime::Handle::try_current().unwrap_err().is_missing_context());
    /// ```
    #[allow(clippy::unused_self, reason = "as in Tokio, where there is another reason")]
    pub fn is_missing_context(&self) -> bool {
        true
    }

    /// True if the thread is ending, and has forgotten already which runtime it was in. That does not happen: it is always false.
    ///
    /// What a thread knows of its runtime has no destructor, so it is there as long as the thread is. Also in the destructors
    /// of thread-locals [`Handle::try_current`] says what it says elsewhere: there is a runtime, if an
    /// [`EnterGuard`] still lives, or there is [none](Self::is_missing_context).
    ///
    /// ```
    /// use std::cell::RefCell;
    /// use volt::runtime::Handle;
    ///
    /// struct Last;
    /// impl Drop for Last {
    ///     fn drop(&mut self) {
    ///         let error = Handle::try_current().unwrap_err();
    ///         assert!(error.is_missing_context() && !error.is_thread_local_destroyed());
    ///     }
    /// }
    ///
    /// std::thread_local! { static LAST: RefCell<Option<Last>> = const { RefCell::new(None) }; }
    /// std::thread::spawn(|| LAST.set(Some(Last))).join().unwrap();
    /// ```
    #[allow(clippy::unused_self, reason = "as in Tokio, where it happens")]
    pub fn is_thread_local_destroyed(&self) -> bool {
        false
    }
}

impl fmt::Display for TryCurrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no Volt runtime: this is neither inside `block_on` nor in a task")
    }
}

impl std::error::Error for TryCurrentError {}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The handle of the runtime that this thread is in.
    ///
    /// ```
    /// use volt::runtime::Handle;
    /// volt::run(async {
    ///     let handle = Handle::current();
    ///     let thread = std::thread::spawn(move || handle.block_on(async { 1 }));
    ///     assert_eq!(thread.join().unwrap(), 1);
    /// });
    /// ```
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn current() -> Self {
        context::with_runtime("Handle::current", |runtime| Self::new(runtime.to_arc()))
    }

    /// As [`current`](Self::current).
    ///
    /// ```
    /// use volt::runtime::Handle;
    ///
    /// assert!(Handle::try_current().is_err());
    /// volt::run(async { assert!(Handle::try_current().is_ok()) });
    /// ```
    ///
    /// # Errors
    /// Outside of a runtime.
    pub fn try_current() -> Result<Self, TryCurrentError> {
        context::try_with_runtime(|runtime| Self::new(runtime.to_arc())).ok_or(TryCurrentError(()))
    }

    /// Spawns a task. It runs even if nobody awaits the result.
    ///
    /// ```
    /// let runtime = volt::runtime::Runtime::new()?;
    /// let task = runtime.handle().spawn(async { 6 * 7 });
    /// assert_eq!(runtime.block_on(task).unwrap(), 42);
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let size = size_of::<F>();
        boxed_if_large!(pin future: F => self.spawn_sized(future, size))
    }

    /// As [`spawn`](Self::spawn), of a future that had this size before it was boxed.
    #[track_caller]
    pub(super) fn spawn_sized<F>(&self, future: F, size: usize) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let place = Location::caller();
        self.shared.spawn_at(trace::task("task", future, size, place), place)
    }

    /// Runs `closure` on a thread where it may block: as [`spawn_blocking`](super::spawn_blocking).
    ///
    /// ```
    /// let runtime = volt::runtime::Runtime::new()?;
    /// let closure = runtime.handle().spawn_blocking(|| std::fs::exists("/").unwrap());
    /// assert!(runtime.block_on(closure).unwrap());
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If no thread can be started, and there is none.
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, closure: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let size = size_of::<F>();
        boxed_if_large!(new closure: F => self.spawn_blocking_sized(closure, size))
    }

    /// As [`spawn_blocking`](Self::spawn_blocking), of a closure that had this size before it was boxed.
    #[track_caller]
    pub(super) fn spawn_blocking_sized<F, R>(&self, closure: F, size: usize) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.shared.spawn_blocking(trace::blocking(closure, size, Location::caller()))
    }

    /// Runs `future` on this thread until it is ready: as
    /// [`Runtime::block_on`](super::Runtime::block_on), beside the other threads that wait in one.
    ///
    /// On a current-thread runtime, tasks run here only between the polls of `future`, and only while no thread is in
    /// [`Runtime::block_on`](super::Runtime::block_on): when that one comes, it waits for the task that runs here, and then runs them
    /// all. (In Tokio they run in the runtime's `block_on` only, and do not if there is none.) So a poll of `future` after
    /// which it is pending costs about 0.5 us there, and a task that blocks for what `future` does blocks for ever.
    ///
    /// If the runtime is shut down meanwhile, the future goes on alone; its timers and sockets fail.
    ///
    /// ```
    /// let runtime = volt::runtime::Runtime::new()?;
    /// let handle = runtime.handle().clone();
    /// let thread = std::thread::spawn(move || handle.block_on(async { volt::spawn(async { 1 }).await }));
    /// assert_eq!(thread.join().unwrap().unwrap(), 1);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If called where futures are polled, or if the future panics.
    #[inline]
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        boxed_if_large!(pin future: F => guest::block_on_beside(&self.shared, future))
    }

    /// Makes this runtime the current one of the thread, until the guard is dropped.
    ///
    /// ```
    /// let runtime = volt::runtime::Runtime::new()?;
    /// let guard = runtime.handle().enter();
    /// let task = volt::spawn(async { 1 });
    /// drop(guard);
    /// assert_eq!(runtime.block_on(task).unwrap(), 1);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn enter(&self) -> EnterGuard<'_> {
        EnterGuard::new(self.shared.clone())
    }

    /// The kind of the runtime.
    ///
    /// ```
    /// use volt::runtime::{Builder, RuntimeFlavor};
    ///
    /// let runtime = Builder::new_current_thread().build()?;
    /// assert_eq!(runtime.handle().runtime_flavor(), RuntimeFlavor::CurrentThread);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn runtime_flavor(&self) -> RuntimeFlavor {
        if self.shared.is_current_thread() {
            RuntimeFlavor::CurrentThread
        } else {
            RuntimeFlavor::MultiThread
        }
    }

    /// Tells the runtime from all others, and from each [`LocalSet`](crate::task::LocalSet): see [`Id`].
    ///
    /// ```
    /// use volt::runtime::{Handle, Runtime};
    ///
    /// let runtime = Runtime::new()?;
    /// let id = runtime.handle().id();
    /// assert_eq!(runtime.block_on(async { Handle::current().id() }), id);
    /// assert_ne!(Runtime::new()?.handle().id(), id);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn id(&self) -> Id {
        self.shared.id
    }

    /// The name that the runtime was given by [`Builder::name`](super::Builder::name), if it was.
    ///
    /// ```
    /// use volt::runtime::{Builder, Handle};
    ///
    /// let runtime = Builder::new_current_thread().name("storage").build()?;
    /// assert_eq!(runtime.handle().name(), Some("storage"));
    /// let nameless = Builder::new_current_thread().build()?;
    /// assert_eq!(nameless.block_on(async { Handle::current().name().map(str::to_owned) }), None);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.shared.config.name.as_deref()
    }

    /// Statistics.
    ///
    /// ```
    /// let runtime = volt::runtime::Runtime::new()?;
    /// let task = runtime.spawn(std::future::pending::<()>());
    /// assert_eq!(runtime.handle().metrics().num_alive_tasks(), 1);
    /// # drop(task);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn metrics(&self) -> RuntimeMetrics {
        RuntimeMetrics::new(self.shared.clone())
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut handle = f.debug_struct("Handle");
        handle.field("flavor", &self.runtime_flavor()).field("id", &self.id());
        if let Some(name) = self.name() {
            handle.field("name", &name);
        }
        handle.finish_non_exhaustive()
    }
}
