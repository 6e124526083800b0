//! The runtime: what runs the tasks.
//!
//! | Type | |
//! |---|---|
//! | [`Runtime`] | the threads, and their end |
//! | [`LocalRuntime`] | one on a single thread, for tasks that are not `Send` |
//! | [`Builder`] | its settings |
//! | [`Handle`] | spawns on a runtime from anywhere |
//! | [`Id`], [`worker_index`] | which runtime, and which of its threads |
//! | [`RuntimeMetrics`] | its statistics |
//! | [`SlowPoll`] | a report of a poll that took long |
//!
//! ```
//! let runtime = volt::runtime::Runtime::new()?;
//! let sum = runtime.block_on(async {
//!     let other = volt::spawn(async { 1 });
//!     other.await.unwrap() + 2
//! });
//! assert_eq!(sum, 3);
//! # std::io::Result::Ok(())
//! ```

pub(crate) mod blocking;
mod builder;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod driver;
mod ended;
mod handle;
pub(crate) mod id;
pub(crate) mod level;
mod local;
pub(crate) mod metrics;
pub(crate) mod outside;
mod processors;
pub(crate) mod scheduler;
mod slow_poll;

/// A deterministic simulation of the multi-thread scheduler, for tests (feature `test-util`).
///
/// A program that waits for the wrong thing usually works: the order in which it hangs is rare.
/// Here a run has no threads. The scheduler's own code moves virtual workers, the time is virtual,
/// and which worker makes the next step is chosen by the seed: each [`run`](sim::Sim::run) is
/// another order, and the same seed is the same order again.
///
/// What can be found: everything that depends on the order of polls, wake-ups, timers and calls
/// from other threads ([`outside`](sim::Sim::outside)). What cannot: a race between two
/// instructions of two threads, since a poll is one step here. Sockets and `spawn_blocking` bring
/// their own order into a run, which no seed repeats: leave them out.
///
/// # A lost wake-up, found and replayed
///
/// ```
/// use std::future::poll_fn;
/// use std::sync::{Arc, Mutex};
/// use std::task::{Poll, Waker};
///
/// use volt::runtime::sim::{Failure, Reason, Sim, explore};
///
/// /// Has room for one waker, which is a mistake: the second waiter's takes the first's place.
/// #[derive(Default)]
/// struct Gate(Mutex<(bool, Option<Waker>)>);
///
/// impl Gate {
///     fn open(&self) {
///         let mut state = self.0.lock().unwrap();
///         state.0 = true;
///         let waker = state.1.take();
///         drop(state);
///         waker.into_iter().for_each(Waker::wake);
///     }
///
///     async fn pass(&self) {
///         poll_fn(|cx| {
///             let mut state = self.0.lock().unwrap();
///             if state.0 {
///                 return Poll::Ready(());
///             }
///             state.1 = Some(cx.waker().clone());
///             Poll::Pending
///         })
///         .await
///     }
/// }
///
/// fn two_pass(seed: u64) -> Result<(), Failure> {
///     let gate = Arc::new(Gate::default());
///     let (opener, first) = (gate.clone(), gate.clone());
///     Sim::new(seed).outside(move |_| opener.open()).run(async move {
///         let other = volt::spawn(async move { first.pass().await });
///         gate.pass().await;
///         other.await.unwrap();
///     })
/// }
///
/// // Some orders are good, and a test on threads would most often see one of these.
/// assert!((0..1000).any(|seed| two_pass(seed).is_ok()));
///
/// // In a test of yours: `explore(0..1000, two_pass).unwrap()`, which would panic with
/// // "seed 0, after 17 steps: nothing is left to run, and the future is not ready (..)".
/// let failure = explore(0..1000, two_pass).unwrap_err();
/// assert_eq!(failure.reason, Reason::Deadlock);
///
/// // The seed is all that a debugger or a log needs to see it again, step by step.
/// assert_eq!(two_pass(failure.seed).unwrap_err(), failure);
/// ```
///
/// With a `Vec<Waker>` in the gate all thousand seeds pass.
///
/// # In a test of yours
///
/// * Make everything inside the closure that gets the seed; nothing may be left from run to run.
/// * An assertion that fails in the future or in a task that it awaits is
///   [`Reason::Panicked`](sim::Reason::Panicked), and prints its message.
/// * A seed that has failed once makes a good regression test, as long as the program's steps stay
///   the same: keep the range of seeds beside it.
#[cfg(all(any(test, feature = "test-util"), not(volt_loom)))]
pub mod sim {
    pub use super::scheduler::sim::{Failure, Reason, Sim, explore};
}

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::time::Duration;

use volt_sync::internal::primitive::{self, Arc, thread};
use volt_sync::internal::slack;

pub use builder::Builder;
pub use context::{EnterGuard, worker_index};
pub use ended::is_rt_shutdown_err;
pub(crate) use ended::shut_down;
pub use handle::{Handle, RuntimeFlavor, TryCurrentError};
pub use id::Id;
pub use local::{LocalOptions, LocalRuntime};
pub use metrics::RuntimeMetrics;
pub use slow_poll::SlowPoll;

use crate::task::{JoinHandle, boxed_if_large, memory, trace};
use scheduler::guests::guest;
#[allow(unused_imports, reason = "for `JoinHandle::join`")]
pub(crate) use scheduler::guests::helping::block_on_helping;
#[cfg(unix)]
pub(crate) use scheduler::lifecycle::registry::reactors;
use scheduler::lifecycle::threads::Alive;
use scheduler::shared::Shared;
use scheduler::worker::{Turn, Worker};

/// A runtime: its worker threads, its timers, its sockets.
///
/// Dropping it shuts it down: see [`shutdown_timeout`](Self::shutdown_timeout) for what that means;
/// the drop waits for the running polls to return, however long they take, and for its threads to end, with the
/// destructors of their thread-locals.
///
/// It may be dropped on a thread of its own that may block. A closure of `spawn_blocking` that drops
/// its runtime waits for all but itself; the destructor of a thread-local of such a thread, for what runs on the others
/// of its kind, but not for their destructors. `block_in_place` in a task, or in `block_on`, of the runtime
/// waits for nothing: the poll that it is part of has to return first, so the shutdown goes on in
/// the background. So it does in [`on_thread_start`](Builder::on_thread_start) and
/// [`on_thread_stop`](Builder::on_thread_stop), which are part of what a thread of it does.
///
/// # Shutdown
/// Once a shutdown drops tasks, new ones are refused, also in these drops: the future is dropped at once, and the
/// [`JoinHandle`] says that it is cancelled. A closure of `spawn_blocking` still runs if a thread takes it before
/// the last task is gone, and is dropped otherwise.
///
/// A future's drop may block at a shutdown, and wait there for another task of the runtime, by
/// [`JoinHandle::join`] or `block_on` (on a worker in `block_in_place`, as ever): that task is cancelled
/// meanwhile, if need be by the very thread that waits. Two drops that wait for each other wait for
/// ever, and drops that wait in a long chain are stopped by a panic.
///
/// ```
/// let runtime = volt::runtime::Runtime::new()?;
/// let task = runtime.spawn(std::future::pending::<()>());
/// drop(runtime);
/// assert!(task.join().unwrap_err().is_cancelled());
/// # std::io::Result::Ok(())
/// ```
///
/// # Panics
/// Dropping it where futures are polled panics: the thread would wait for itself.
#[derive(Debug)]
pub struct Runtime {
    handle: Handle,
    /// It has been shut down, or somebody else does it.
    done: bool,
}

impl Runtime {
    /// A multi-thread runtime with a worker for each processor: `Builder::new_multi_thread()` as it
    /// is.
    ///
    /// ```
    /// let runtime = volt::runtime::Runtime::new()?;
    /// assert!(runtime.metrics().num_workers() >= 1);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// If the operating system gives no threads or descriptors.
    pub fn new() -> io::Result<Self> {
        Builder::new_multi_thread().enable_all().build()
    }

    pub(crate) fn from_shared(shared: Arc<Shared>) -> Self {
        Self { handle: Handle::new(shared), done: false }
    }

    /// A handle, with which to spawn from elsewhere.
    ///
    /// ```
    /// # let runtime = volt::runtime::Runtime::new()?;
    /// let handle = runtime.handle().clone();
    /// let thread = std::thread::spawn(move || handle.spawn(async { "from a thread" }));
    /// assert_eq!(runtime.block_on(thread.join().unwrap()).unwrap(), "from a thread");
    /// # std::io::Result::Ok(())
    /// ```
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Spawns a task. It runs even if nobody awaits the result.
    ///
    /// On a current-thread runtime it runs while a thread is in [`block_on`](Self::block_on).
    ///
    /// ```
    /// # let runtime = volt::runtime::Runtime::new()?;
    /// let task = runtime.spawn(async { 6 * 7 });
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
        boxed_if_large!(pin future: F => self.handle.spawn_sized(future, size))
    }

    /// Runs `closure` on a thread where it may block: see [`spawn_blocking`].
    ///
    /// ```
    /// # let runtime = volt::runtime::Runtime::new()?;
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
        let size = size_of::<F>();
        boxed_if_large!(new closure: F => self.handle.spawn_blocking_sized(closure, size))
    }

    /// Runs `future` on this thread until it is ready, and gives its output.
    ///
    /// The thread works for the runtime meanwhile: what the future spawns runs on it, without a
    /// switch to another thread, and it takes other tasks of kinds that have been quick so far while the
    /// future waits for tasks, locks, or channels. A task that computes or blocks for long on this thread
    /// holds the future up for as long. While the future itself waits for time, a socket, a pipe, a process or a
    /// signal, no task runs here, unless all workers are in long polls: the future is polled at once. (What only a
    /// part of it waits for, which was not polled the last time, or the blocking pool, does not count.) Nor does one if the builder was given [`on_thread_start`](Builder::on_thread_start), or a
    /// [`thread_stack_size`](Builder::thread_stack_size) that is larger than this thread's.
    ///
    /// The other way round, if the future's polls have all been short, and one computes or blocks for long, the
    /// workers notice within some 30 ms, in which timers and sockets may wait; the next time, within some
    /// milliseconds.
    ///
    /// On a current-thread runtime all tasks run on the thread that is in `block_on`; a second
    /// thread in `block_on` runs only its own future until the first has finished.
    ///
    /// ```
    /// # let runtime = volt::runtime::Runtime::new()?;
    /// let name = String::from("borrowed");
    /// assert_eq!(runtime.block_on(async { name.len() }), 8);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If called where futures are polled (`block_in_place` and `spawn_blocking` are the ways out),
    /// or if the future panics.
    ///
    /// # Cost
    /// A future that is ready at once: no atomic operation.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        boxed_if_large!(pin future: F => guest::block_on(&self.handle.shared, future))
    }

    /// Makes this runtime the current one of the thread, for `spawn`, timers and sockets.
    ///
    /// ```
    /// # let runtime = volt::runtime::Runtime::new()?;
    /// let guard = runtime.enter();
    /// let task = volt::spawn(async { "no block_on around this" });
    /// drop(guard);
    /// # runtime.block_on(task).unwrap();
    /// # std::io::Result::Ok(())
    /// ```
    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// Statistics.
    ///
    /// ```
    /// # let runtime = volt::runtime::Runtime::new()?;
    /// let task = runtime.spawn(std::future::pending::<()>());
    /// assert_eq!(runtime.metrics().num_alive_tasks(), 1);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn metrics(&self) -> RuntimeMetrics {
        self.handle.metrics()
    }

    /// Shuts the runtime down, and waits for that at most for `timeout`.
    ///
    /// All tasks are dropped, each exactly once: a task that is being polled when that poll returns,
    /// the others at once. A task that never returns from its poll is left behind, with its thread.
    /// Closures of `spawn_blocking` that have begun are waited for, too; the others are dropped.
    ///
    /// The tasks of a current-thread runtime are dropped by this call, except those that another
    /// thread in `block_on` is polling: if the time passes first, that thread drops them.
    ///
    /// ```
    /// use std::time::Duration;
    /// # let runtime = volt::runtime::Runtime::new()?;
    /// let (begun, begins) = std::sync::mpsc::channel();
    /// let (end, ends) = std::sync::mpsc::channel::<()>();
    /// runtime.spawn_blocking(move || {
    ///     begun.send(()).unwrap();
    ///     ends.recv()
    /// });
    /// begins.recv().unwrap();
    /// // The closure waits for longer than we do.
    /// runtime.shutdown_timeout(Duration::from_millis(10));
    /// # drop(end);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If called where futures are polled.
    #[track_caller]
    pub fn shutdown_timeout(mut self, timeout: Duration) {
        self.shut_down(Some(timeout));
    }

    /// Shuts the runtime down without waiting for anything. May be called from async code.
    ///
    /// ```
    /// volt::run(async {
    ///     let other = volt::runtime::Runtime::new()?;
    ///     other.shutdown_background();
    ///     std::io::Result::Ok(())
    /// })?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn shutdown_background(mut self) {
        self.shut_down(Some(Duration::ZERO));
    }

    #[track_caller]
    fn shut_down(&mut self, timeout: Option<Duration>) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        let shared = &self.handle.shared;
        let start = primitive::now();
        let wait = timeout != Some(Duration::ZERO);
        let may_wait = !context::in_async();
        // In `block_in_place`, the poll below on the stack cannot return before we do; nor can the thread of a hook go on.
        let in_hook = shared.threads.is_one() || shared.blocking.is_in_hook();
        let inside = in_hook || context::is_inside(shared);
        let timeout = if may_wait && !inside { timeout } else { Some(Duration::ZERO) };
        if shared.begin_shutdown() && shared.is_current_thread() {
            // There are no other threads of the runtime: the tasks are dropped here.
            if context::is_member_of(shared) {
                let _entered = self.handle.enter();
                shared.shut_down_inside();
            } else {
                let deadline = timeout.and_then(|timeout| start.checked_add(timeout));
                shared.shut_down_current_thread(deadline);
            }
        }
        if timeout != Some(Duration::ZERO) {
            shared.threads.wait(timeout);
        }
        let left = |timeout: Duration| timeout.saturating_sub(start.elapsed());
        shared.blocking.shutdown(timeout.map(left));
        if timeout.is_none() {
            // At the end, as they may wait in their thread-locals for what has been ended above.
            shared.threads.join();
        } else {
            shared.threads.detach();
        }
        assert!(
            !wait || may_wait || thread::panicking(),
            "a runtime must not be dropped where futures are polled: the thread would wait for \
             itself. Use `shutdown_background`, or drop it in `spawn_blocking`"
        );
    }
}

impl Drop for Runtime {
    #[track_caller]
    fn drop(&mut self) {
        self.shut_down(None);
    }
}

/// Runs `future` on a new multi-thread runtime, and gives its output.
///
/// ```
/// let sum = volt::run(async { volt::spawn(async { 1 }).await.unwrap() + 2 });
/// assert_eq!(sum, 3);
/// ```
///
/// # Panics
/// If the runtime cannot be started, or the future panics.
#[track_caller]
pub fn run<F: Future>(future: F) -> F::Output {
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => panic!("`volt::run` could not start a runtime: {error}"),
    };
    runtime.block_on(future)
}

/// Spawns a task on the current runtime. It runs even if nobody awaits the result.
///
/// ```
/// volt::run(async {
///     let task = volt::spawn(async { 6 * 7 });
///     assert_eq!(task.await.unwrap(), 42);
/// });
/// ```
///
/// # Panics
/// Outside of a runtime.
///
/// # Cost
/// One allocation, or none if a task of the same size has ended on this thread; one more for a future of more than
/// 16 KiB (2 KiB without optimization). From a task of the same runtime no lock and no other thread is involved.
#[inline]
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let size = size_of::<F>();
    boxed_if_large!(pin future: F => spawn_sized(future, size))
}

#[inline]
#[track_caller]
fn spawn_sized<F>(future: F, size: usize) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let place = Location::caller();
    let future = trace::task("task", future, size, place);
    context::with_runtime("spawn", |runtime| runtime.spawn_at(future, place))
}

/// Runs `closure` on a thread where it may block for as long as it likes.
///
/// There are up to [`max_blocking_threads`](Builder::max_blocking_threads) such threads; they start
/// when they are needed, and end when they have been idle for a while. If the system gives no more
/// of them, the closures wait for those that there are. Inside the closure the runtime is the
/// current one: `Handle::current().block_on(...)` works.
///
/// A closure that has begun cannot be aborted.
///
/// ```
/// volt::run(async {
///     let text = volt::task::spawn_blocking(|| std::fs::read_to_string("Cargo.toml")).await;
///     assert!(text.unwrap().unwrap().contains("[package]"));
/// });
/// ```
///
/// # Panics
/// Outside of a runtime; or if no thread can be started, and there is none.
#[track_caller]
pub fn spawn_blocking<F, R>(closure: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let size = size_of::<F>();
    boxed_if_large!(new closure: F => spawn_blocking_sized(closure, size))
}

#[track_caller]
fn spawn_blocking_sized<F, R>(closure: F, size: usize) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let closure = trace::blocking(closure, size, Location::caller());
    context::with_runtime("spawn_blocking", |runtime| runtime.spawn_blocking(closure))
}

/// As [`spawn_blocking`], for closures whose effect was reported already: one that was accepted is
/// run even if the runtime shuts down before it begins.
///
/// # Errors
/// If the runtime has shut down, or has no thread and can start none.
///
/// # Panics
/// Outside of a runtime.
#[track_caller]
pub(crate) fn spawn_mandatory_blocking<F, R>(closure: F) -> io::Result<JoinHandle<R>>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let closure = trace::blocking(closure, size_of::<F>(), Location::caller());
    context::with_runtime("spawn_blocking", |runtime| {
        let theirs = runtime.to_arc();
        runtime.blocking.spawn_mandatory(move || context::with_entered(&theirs, closure))
    })
}

/// Runs `f`, which may block or compute for long, while another thread takes over this worker's
/// tasks.
///
/// Inside a task of a multi-thread runtime, the worker gets a new thread, and this one goes on with
/// `f` and the rest of the poll. Inside `block_on` the other workers take the queued tasks. Outside
/// of a runtime, `f` is just called. `block_on` may be called inside of `f`.
///
/// In the drop of a future, too, when a multi-thread runtime shuts down: the other thread cancels the
/// remaining tasks, so `f` may wait for them. If the system gives no other thread, `f` is called all the
/// same, and where it blocks for tasks of a runtime that shuts down, this thread cancels them.
///
/// If the runtime shuts down meanwhile, what `f` waits for ends, and what the rest of the poll waits for: a socket with an error, a sleep with a panic.
///
/// In a waker that is called for an event or a timer, `f` must not wait for such, nor for anything that does: this thread is
/// the one that looks for them, and cannot be replaced there.
///
/// The task cannot do anything else meanwhile (other branches of its `join!`, say), and cannot be
/// aborted; [`spawn_blocking`] is the better choice where its bounds
/// allow it.
///
/// ```
/// # let runtime = volt::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
/// # runtime.block_on(async {
/// let task = volt::spawn(async {
///     volt::task::block_in_place(|| {
///         std::thread::sleep(std::time::Duration::from_millis(1));
///         42
///     })
/// });
/// assert_eq!(task.await.unwrap(), 42);
/// # });
/// # std::io::Result::Ok(())
/// ```
///
/// # Panics
/// On the thread of a current-thread runtime, and in the `sim` of feature `test-util`, which has one thread.
#[track_caller]
pub fn block_in_place<F, R>(f: F) -> R
where
    F: FnOnce() -> R,
{
    guest::block_in_place(f)
}

/// Starts a thread that is worker `index` of `shared`.
///
/// # Errors
/// If the operating system gives no thread.
pub(crate) fn start_worker(shared: &Arc<Shared>, index: usize) -> io::Result<()> {
    let builder = thread::Builder::new().name(thread_name(&shared.config.thread_name));
    #[cfg(not(volt_loom))]
    let builder = match shared.config.thread_stack_size {
        Some(size) => builder.stack_size(size),
        None => builder,
    };
    let alive = Alive::new(&shared.threads);
    let theirs = shared.clone();
    // The thread is counted until it has let go of the scheduler, or could not be started.
    let body = move || {
        alive.come();
        let _alive = alive;
        let shared = theirs;
        worker_thread(&shared, index);
    };
    slack::without(|| builder.spawn(body)).map(|thread| shared.threads.keep(thread))
}

/// The life of a worker thread.
fn worker_thread(shared: &Arc<Shared>, index: usize) {
    context::set_stack_size(shared.config.thread_stack_size);
    let call = |hook: &Option<config::Hook>| {
        context::with_entered(shared, || call_hook(hook.as_deref()));
    };
    call(&shared.config.on_thread_start);
    be_worker(shared, index);
    call(&shared.config.on_thread_stop);
}

/// Goes on as worker `index` until the runtime shuts down, or the worker is handed over.
fn be_worker(shared: &Arc<Shared>, index: usize) {
    be_worker_after(shared, index, None);
}

/// The same, from where the thread was that was this worker `before`.
fn be_worker_after(shared: &Arc<Shared>, index: usize, before: Option<Turn>) {
    let park = shared.park_of(index);
    let mut worker = Worker::new(shared, index, &park);
    if let Some(turn) = before {
        worker.go_on_from(turn);
    }
    memory::keep();
    slack::sharpen();
    context::with_worker(&worker, || worker.run_thread());
    slack::restore();
    memory::give_back();
}

/// Lets another thread go on as worker `index` of `shared`, which is at that `turn`: an idle one of the blocking pool, if
/// there is one. When it is no longer that worker, it returns to the pool.
///
/// # Errors
/// If the operating system gives no thread.
///
/// # Panics
/// In a simulation, which has none.
pub(crate) fn hand_over_worker(shared: &Arc<Shared>, index: usize, turn: Turn) -> io::Result<()> {
    #[cfg(all(any(test, feature = "test-util"), not(volt_loom)))]
    if !scheduler::sim::has_threads(shared) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let alive = Alive::new(&shared.threads);
    let theirs = shared.clone();
    shared.blocking.lend(Box::new(move || {
        // Counted until it has let go of the scheduler.
        let _alive = alive;
        let shared = theirs;
        be_worker_after(&shared, index, Some(turn));
    }))
}

/// Names the next thread, by user code. A name that is missing because of a panic, or that the
/// operating system would not take, is no reason not to start a thread.
pub(crate) fn thread_name(name: &config::ThreadName) -> String {
    let mut name = in_hook(|| name()).unwrap_or_else(|| "volt-worker".to_owned());
    name.retain(|c| c != '\0');
    name
}

/// Calls a hook of the builder.
pub(crate) fn call_hook(hook: Option<&(dyn Fn() + Send + Sync)>) {
    if let Some(hook) = hook {
        in_hook(hook);
    }
}

/// Calls user code in the middle of what a member does: beside the member, see
/// [`context::beside_member`]. A panic in it has been reported, and shall not cost a thread: the shutdown
/// counts on it.
pub(crate) fn in_hook<R>(f: impl FnOnce() -> R) -> Option<R> {
    context::beside_member(|| contain(f))
}

/// Calls user code that nothing depends on.
pub(crate) fn contain<R>(f: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => Some(result),
        Err(payload) => {
            // A payload may panic in its own drop.
            if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                std::mem::forget(second);
            }
            None
        }
    }
}
