//! A runtime on one thread, whose tasks need not be `Send`.
//!
//! Purpose: what a `LocalSet` on a current-thread runtime does, as one thing, which also knows its set where the thread polls
//! something else (`task/local/home.rs`).
//!
//! Rejected: one queue for both kinds of tasks (a wake-up would have to tell them apart, on the path of all runtimes).
#![forbid(unsafe_code)]

use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

use super::{Builder, EnterGuard, Handle, Runtime, RuntimeMetrics};
use crate::task::{Home, JoinHandle, LocalSet};

/// A current-thread runtime whose tasks need not be `Send`: it stays on its thread, and all of its tasks do.
///
/// [`spawn_local`](crate::task::spawn_local) works in whatever the runtime polls, and [`spawn`](crate::spawn) as in any other.
/// Other threads spawn tasks that are `Send` by the [`handle`](Self::handle). Tasks run while the thread is in
/// [`block_on`](Self::block_on), and only then: another thread that waits for one, in the handle's `block_on` or in
/// [`JoinHandle::join`], runs none, and its timers and sockets wait as well. (The handle's `block_on` on this thread runs those that
/// are `Send`; a local one waits.)
///
/// Dropping it drops all tasks, on this thread, those that are local first. What these drops spawn, of either kind, is
/// [refused](Runtime#shutdown).
///
/// # Examples
/// ```
/// use std::rc::Rc;
/// use volt::task::spawn_local;
///
/// let runtime = volt::runtime::LocalRuntime::new()?;
/// let sum = runtime.block_on(async {
///     let shared = Rc::new(3);
///     let copy = shared.clone();
///     let local = spawn_local(async move { *copy });
///     // A task of the other kind may spawn local ones, too.
///     let other = volt::spawn(async { spawn_local(async { 4 }).await.unwrap() });
///     local.await.unwrap() + other.await.unwrap()
/// });
/// assert_eq!(sum, 7);
/// # std::io::Result::Ok(())
/// ```
///
/// # Panics
/// Dropping it where futures are polled panics, as for a [`Runtime`].
#[derive(Debug)]
pub struct LocalRuntime {
    // First: its shutdown drops the set's tasks.
    runtime: Runtime,
    set: LocalSet,
}

/// Options of a [`LocalRuntime`] alone. There are none yet.
///
/// ```
/// use volt::runtime::{Builder, LocalOptions};
/// assert!(Builder::new_current_thread().build_local(LocalOptions::default()).is_ok());
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct LocalOptions {
    /// There may be some that are not `Send`.
    _not_send: PhantomData<*const ()>,
}

impl LocalRuntime {
    /// `Builder::new_current_thread()` as it is.
    ///
    /// ```
    /// let runtime = volt::runtime::LocalRuntime::new()?;
    /// assert_eq!(runtime.block_on(async { 1 }), 1);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// If the operating system gives no descriptors.
    pub fn new() -> io::Result<Self> {
        Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
    }

    pub(super) fn build(
        _options: LocalOptions,
        build: impl FnOnce(Home) -> io::Result<Runtime>,
    ) -> io::Result<Self> {
        let set = LocalSet::new();
        let runtime = build(Home::new(&set))?;
        Ok(Self { runtime, set })
    }

    /// A handle, with which other threads spawn tasks that are `Send`. They run on this runtime's thread.
    ///
    /// ```
    /// let runtime = volt::runtime::LocalRuntime::new()?;
    /// let handle = runtime.handle().clone();
    /// let thread = std::thread::spawn(move || handle.spawn(async { std::thread::current().id() }));
    /// let ran_on = runtime.block_on(thread.join().unwrap()).unwrap();
    /// assert_eq!(ran_on, std::thread::current().id());
    /// # std::io::Result::Ok(())
    /// ```
    pub fn handle(&self) -> &Handle {
        self.runtime.handle()
    }

    /// Spawns a task, which need not be `Send`. It runs while the thread is in [`block_on`](Self::block_on).
    ///
    /// ```
    /// use std::rc::Rc;
    ///
    /// let runtime = volt::runtime::LocalRuntime::new()?;
    /// let not_send = Rc::new(1);
    /// let task = runtime.spawn_local(async move { *not_send });
    /// assert_eq!(runtime.block_on(task).unwrap(), 1);
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.set.spawn_local(future)
    }

    /// Runs `closure` on a thread where it may block: see [`spawn_blocking`](crate::task::spawn_blocking).
    ///
    /// ```
    /// let runtime = volt::runtime::LocalRuntime::new()?;
    /// let text = runtime.spawn_blocking(|| std::fs::read_to_string("Cargo.toml"));
    /// assert!(runtime.block_on(text)??.contains("[package]"));
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
        self.runtime.spawn_blocking(closure)
    }

    /// Runs `future`, and all tasks, on this thread until `future` is ready, and gives its output.
    ///
    /// ```
    /// let runtime = volt::runtime::LocalRuntime::new()?;
    /// let name = std::rc::Rc::new(String::from("borrowed"));
    /// assert_eq!(runtime.block_on(async { name.len() }), 8);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If called where futures are polled, or if the future panics.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.set.block_on(&self.runtime, future)
    }

    /// Makes this runtime the current one of the thread, for `spawn_local`, `spawn`, timers and sockets. A `LocalSet` that is
    /// driven inside is no nearer: its own [`spawn_local`](LocalSet::spawn_local) spawns on that.
    ///
    /// ```
    /// let runtime = volt::runtime::LocalRuntime::new()?;
    /// let guard = runtime.enter();
    /// let task = volt::task::spawn_local(async { "no block_on around this" });
    /// drop(guard);
    /// # runtime.block_on(task).unwrap();
    /// # std::io::Result::Ok(())
    /// ```
    pub fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    /// Statistics. Local tasks count as alive; what else they do is the set's own affair.
    ///
    /// ```
    /// let runtime = volt::runtime::LocalRuntime::new()?;
    /// let task = runtime.spawn_local(std::future::pending::<()>());
    /// assert_eq!(runtime.metrics().num_alive_tasks(), 1);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn metrics(&self) -> RuntimeMetrics {
        self.runtime.metrics()
    }

    /// Drops all tasks, and waits at most for `timeout` for closures of `spawn_blocking` that have begun: as
    /// [`Runtime::shutdown_timeout`].
    ///
    /// ```
    /// use std::time::Duration;
    /// let runtime = volt::runtime::LocalRuntime::new()?;
    /// let task = runtime.spawn_local(std::future::pending::<()>());
    /// runtime.shutdown_timeout(Duration::from_millis(10));
    /// assert!(task.is_finished());
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If called where futures are polled.
    #[track_caller]
    pub fn shutdown_timeout(mut self, timeout: Duration) {
        self.runtime.shut_down(Some(timeout));
    }

    /// Drops all tasks, and waits for nothing. May be called from async code.
    ///
    /// ```
    /// volt::run(async {
    ///     let other = volt::runtime::LocalRuntime::new()?;
    ///     other.shutdown_background();
    ///     std::io::Result::Ok(())
    /// })?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn shutdown_background(self) {
        self.shutdown_timeout(Duration::ZERO);
    }
}

// As of a `Runtime`: a panic ends its task, or leaves `block_on`, and what the set has is consistent then.
impl UnwindSafe for LocalRuntime {}
impl RefUnwindSafe for LocalRuntime {}
