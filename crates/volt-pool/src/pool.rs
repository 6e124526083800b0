//! The pool as its users hold it: submitting and ending.
//!
//! A [`ThreadPool`] is a pointer to its core, which the first use makes, so that a pool can stand in
//! a `static` and move while it is used.
//!
//! | Edge | Release side | Acquire side | Carries | Model that fails without it |
//! |------|--------------|--------------|---------|-----------------------------|
//! | [PL1] | `ThreadPool::make_core` | `ThreadPool::core`, `ThreadPool::make_core` | the core | `the_first_use_makes_one_core` |

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, OnceLock};
use std::thread;

use volt_sync::internal::primitive::AtomicPtr;

use crate::builder::BuildError;
use crate::ending::Ending;
use crate::engine::{Config, Core, processors};
use crate::payload::discard_payload;
use crate::sync_word::MAX_THREADS;
use crate::task::{Action, Task, TaskList};
use crate::worker::with_current;

/// A pool of threads for work that needs a processor.
///
/// Threads start when there is work for them, up to the maximum, and sleep when there is none. A
/// thread that cannot be started is done without; if not a single one can be started, the thread
/// that submits work runs it.
///
/// Dropping a pool shuts it down as [`shutdown`](Self::shutdown) does.
///
/// # Examples
///
/// ```
/// use volt_pool::ThreadPool;
///
/// static POOL: ThreadPool = ThreadPool::with_threads(2);
///
/// let (a, b) = POOL.join(|| 6 * 7, || "hello".len());
/// assert_eq!((a, b), (42, 5));
/// ```
pub struct ThreadPool {
    /// Null until the first use.
    core: AtomicPtr<Core>,
    /// 0 for as many as there are processors.
    threads: u32,
}

/// The pool was shut down: the task was not queued, and is the caller's again.
///
/// ```
/// use std::ptr::NonNull;
/// use volt_pool::{Action, Rejected, Task, ThreadPool};
///
/// unsafe fn never_called(_: NonNull<Task>, _: Action) {}
///
/// let pool = ThreadPool::new();
/// pool.shutdown();
/// let task = Task::new(never_called);
/// // SAFETY: it is not queued, since the pool has ended.
/// assert_eq!(unsafe { pool.schedule(NonNull::from(&task)) }, Err(Rejected));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected;

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the thread pool was shut down")
    }
}

impl std::error::Error for Rejected {}

impl ThreadPool {
    /// The most threads that a pool can have.
    ///
    /// ```
    /// use volt_pool::{BuildError, Builder, ThreadPool};
    ///
    /// let too_many = Builder::new().threads(ThreadPool::MAX_THREADS + 1).build();
    /// assert_eq!(too_many.unwrap_err(), BuildError::TooManyThreads);
    /// ```
    pub const MAX_THREADS: usize = MAX_THREADS as usize;

    volt_sync::internal::primitive::const_fn! {
        /// A pool with as many threads as the process may use processors.
        ///
        /// ```
        /// static POOL: volt_pool::ThreadPool = volt_pool::ThreadPool::new();
        ///
        /// assert_eq!(POOL.install(|| 6 * 7), 42);
        /// ```
        pub const fn new() -> Self {
            Self { core: AtomicPtr::new(ptr::null_mut()), threads: 0 }
        }
    }

    volt_sync::internal::primitive::const_fn! {
        /// A pool with at most `threads` threads.
        ///
        /// ```
        /// let pool = volt_pool::ThreadPool::with_threads(2);
        /// assert_eq!(pool.max_threads(), 2);
        /// ```
        ///
        /// # Panics
        ///
        /// If `threads` is 0 or more than [`MAX_THREADS`](Self::MAX_THREADS); in a `static`, that
        /// is an error of the compiler. [`Builder::build`](crate::Builder::build) returns an error
        /// instead.
        #[track_caller]
        pub const fn with_threads(threads: usize) -> Self {
            assert!(threads > 0, "`threads` of a thread pool is at least 1");
            // A message of a `const fn` is a literal: a test compares it with the constant.
            assert!(threads <= Self::MAX_THREADS, "`threads` of a thread pool is at most 16383");
            Self { core: AtomicPtr::new(ptr::null_mut()), threads: threads as u32 }
        }
    }

    pub(crate) fn with_config(config: Config) -> Self {
        let threads = config.threads;
        let core = Arc::into_raw(Core::new(config)).cast_mut();
        Self { core: AtomicPtr::new(core), threads }
    }

    #[inline]
    pub(crate) fn core(&self) -> &Core {
        // ORD[PL1] acquire: the core.
        let core = self.core.load(Acquire);
        if core.is_null() {
            return self.make_core();
        }
        // SAFETY: made by `Arc::into_raw`, and ours until we are dropped.
        let core = unsafe { &*core };
        core.made.seen();
        core
    }

    #[cold]
    fn make_core(&self) -> &Core {
        let threads = if self.threads == 0 { processors().min(MAX_THREADS) } else { self.threads };
        let fresh = Core::new(Config { threads, ..Config::default() });
        let fresh = Arc::into_raw(fresh).cast_mut();
        // ORD[PL1] release: the core.
        // ORD[PL1] acquire, on failure: that of whoever was faster.
        match self.core.compare_exchange(ptr::null_mut(), fresh, Release, Acquire) {
            // SAFETY: ours until we are dropped.
            Ok(_) => unsafe { &*fresh },
            Err(theirs) => {
                // SAFETY: made above, and published to nobody.
                drop(unsafe { Arc::from_raw(fresh) });
                // SAFETY: ours until we are dropped.
                let theirs = unsafe { &*theirs };
                theirs.made.seen();
                theirs
            }
        }
    }

    /// The most threads that the pool starts.
    ///
    /// ```
    /// assert_eq!(volt_pool::ThreadPool::with_threads(3).max_threads(), 3);
    /// ```
    pub fn max_threads(&self) -> usize {
        self.core().max_threads()
    }

    /// How many threads were started so far.
    ///
    /// ```
    /// let pool = volt_pool::ThreadPool::with_threads(3);
    /// assert_eq!(pool.started_threads(), 0);
    /// pool.install(|| ());
    /// assert!((1..=3).contains(&pool.started_threads()));
    /// ```
    pub fn started_threads(&self) -> usize {
        self.core().started()
    }

    /// Runs `work` on a thread of the pool, some time. Nobody waits for it; a panic of it ends
    /// nothing but itself (the panic hook reports it).
    ///
    /// After a shutdown the calling thread runs it.
    ///
    /// Costs one allocation, and a wake-up if a thread sleeps and none is being woken.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = volt_pool::ThreadPool::new();
    /// let (send, receive) = std::sync::mpsc::channel();
    /// pool.spawn(move || send.send(6 * 7).unwrap());
    /// assert_eq!(receive.recv(), Ok(42));
    /// ```
    pub fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        spawn_on(self.core(), work);
    }

    /// Queues `task`, on the calling thread's own queue if it is one of the pool's. Allocates
    /// nothing.
    ///
    /// ```
    /// use std::ptr::NonNull;
    /// use volt_pool::{Action, Task, ThreadPool};
    ///
    /// #[repr(C)]
    /// struct Send42 {
    ///     task: Task,
    ///     to: std::sync::mpsc::Sender<u32>,
    /// }
    ///
    /// unsafe fn run(task: NonNull<Task>, action: Action) {
    ///     // SAFETY: `task` is the first field of a leaked box, and this is called once.
    ///     let this = unsafe { Box::from_raw(task.cast::<Send42>().as_ptr()) };
    ///     if action == Action::Run {
    ///         this.to.send(42).unwrap();
    ///     }
    /// }
    ///
    /// let pool = ThreadPool::new();
    /// let (to, from) = std::sync::mpsc::channel();
    /// let node = NonNull::from(Box::leak(Box::new(Send42 { task: Task::new(run), to })));
    /// // SAFETY: scheduled once; `run` frees it.
    /// unsafe { pool.schedule(node.cast()) }.unwrap();
    /// assert_eq!(from.recv(), Ok(42));
    /// ```
    ///
    /// # Errors
    ///
    /// [`Rejected`] if the pool was shut down.
    ///
    /// # Safety
    ///
    /// 1. `task` is queued nowhere (checked in debug builds), and stays alive and in place until
    ///    its function is called.
    /// 2. Its function may be called on any thread, and does not unwind (if it does, the pool goes
    ///    on, but nobody is told).
    pub unsafe fn schedule(&self, task: NonNull<Task>) -> Result<(), Rejected> {
        // SAFETY: alive, as obligation 1 says.
        unsafe { Task::mark_queued(task) };
        // SAFETY: the caller's promises (1, 2), and marked above.
        let result = unsafe { self.core().schedule(task) };
        result.map_err(|_| {
            // SAFETY: not queued, so alive.
            unsafe { Task::unmark_queued(task) };
            Rejected
        })
    }

    /// Queues a list of tasks with one operation. Allocates nothing.
    ///
    /// # Errors
    ///
    /// The list, if the pool was shut down.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::ptr::NonNull;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use volt_pool::{Action, Task, TaskList, ThreadPool};
    ///
    /// static RUNS: AtomicU32 = AtomicU32::new(0);
    ///
    /// unsafe fn count(task: NonNull<Task>, _: Action) {
    ///     // SAFETY: the task is a box of its own, and this is called once.
    ///     drop(unsafe { Box::from_raw(task.as_ptr()) });
    ///     RUNS.fetch_add(1, Ordering::Relaxed);
    /// }
    ///
    /// fn three() -> TaskList {
    ///     let mut list = TaskList::new();
    ///     for _ in 0..3 {
    ///         let task = NonNull::from(Box::leak(Box::new(Task::new(count))));
    ///         // SAFETY: a fresh node, which `count` frees.
    ///         unsafe { list.push(task) };
    ///     }
    ///     list
    /// }
    ///
    /// let pool = ThreadPool::new();
    /// assert!(pool.schedule_batch(three()).is_ok());
    /// pool.shutdown();
    /// assert_eq!(RUNS.load(Ordering::Relaxed), 3);
    ///
    /// // The pool has ended: the list comes back, and can run here.
    /// pool.schedule_batch(three()).unwrap_err().run();
    /// assert_eq!(RUNS.load(Ordering::Relaxed), 6);
    /// ```
    pub fn schedule_batch(&self, mut list: TaskList) -> Result<(), TaskList> {
        let len = list.len();
        let Some(chain) = list.take() else { return Ok(()) };
        // SAFETY: a list holds scheduled tasks that are in no queue.
        match unsafe { self.core().schedule_chain(chain) } {
            Ok(()) => Ok(()),
            // SAFETY: not queued, so ours again.
            Err(_) => Err(unsafe { TaskList::from_chain(chain, len) }),
        }
    }

    /// Runs everything that is queued, then ends all threads and waits for them. What is submitted
    /// later runs on the thread that submits it. A second call returns when the pool has ended; only
    /// one by a thread of the pool that is ending (in the destructor of a thread-local) returns at
    /// once, since the pool's end waits for it.
    ///
    /// # Panics
    ///
    /// If it is called by a task of this pool, or by something in another pool for which such a task
    /// waits (in a call, or in a shutdown of that pool): it could never end.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// static DONE: AtomicU32 = AtomicU32::new(0);
    ///
    /// let pool = volt_pool::ThreadPool::new();
    /// for _ in 0..100 {
    ///     pool.spawn(|| {
    ///         DONE.fetch_add(1, Ordering::Relaxed);
    ///     });
    /// }
    /// pool.shutdown();
    /// assert_eq!(DONE.load(Ordering::Relaxed), 100);
    /// ```
    pub fn shutdown(&self) {
        self.end(true).run();
    }

    /// Lets the running tasks end, ends all threads and waits for them, and hands back what was
    /// still queued: the caller runs it, or drops it. Calls into the pool whose work is handed back
    /// run it on the calling thread.
    ///
    /// It waits for the running tasks: one that waits for queued work, other than by the functions of
    /// this crate that help, would wait for ever.
    ///
    /// # Panics
    ///
    /// If it is called by a task of this pool, or by something in another pool for which such a task
    /// waits (in a call, or in a shutdown of that pool): it could never end.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = volt_pool::ThreadPool::new();
    /// let left = pool.shutdown_now();
    /// assert!(left.is_empty());
    /// ```
    #[must_use = "dropping the list discards the tasks"]
    pub fn shutdown_now(&self) -> TaskList {
        self.end(false)
    }

    fn end(&self, run: bool) -> TaskList {
        let core = self.core();
        if core.has_ended_here() {
            return TaskList::new();
        }
        let ending = Ending::begin(core);
        assert!(
            ending.is_some(),
            "a thread pool was shut down by one of its own tasks, or by something for which such a \
             task waits: it could never end"
        );
        core.shut_down(run)
    }
}

impl Default for ThreadPool {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        // ORD relaxed: `&mut self` comes after every other use.
        let core = self.core.load(Relaxed);
        if core.is_null() {
            return;
        }
        // SAFETY: made by `Arc::into_raw`, and ours.
        let core = unsafe { Arc::from_raw(core) };
        if let Some(ending) = Ending::begin(&core) {
            let left = core.shut_down(true);
            drop(ending);
            left.run();
            return;
        }
        // The threads hold the core, end by themselves, and run what is queued.
        core.announce_end();
        assert!(
            thread::panicking(),
            "a thread pool was dropped by one of its own tasks, or by something for which such a task \
             waits: it could never end"
        );
    }
}

impl fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool")
            .field("max_threads", &self.max_threads())
            .field("started_threads", &self.started_threads())
            .finish()
    }
}

/// A closure in a box, with its node.
#[repr(C)]
struct Spawned<F> {
    task: Task,
    work: F,
}

impl<F: FnOnce() + Send> Spawned<F> {
    /// # Safety
    /// 1. `task` is the first field of a boxed `Self` that was scheduled.
    unsafe fn call(task: NonNull<Task>, action: Action) {
        // SAFETY: made from a box (1), and called once.
        let this = unsafe { Box::from_raw(task.cast::<Self>().as_ptr()) };
        let work = this.work;
        let result = catch_unwind(AssertUnwindSafe(|| match action {
            Action::Run => work(),
            Action::Discard => drop(work),
        }));
        if let Err(payload) = result {
            discard_payload(payload);
        }
    }
}

pub(crate) fn spawn_on<F: FnOnce() + Send + 'static>(core: &Core, work: F) {
    let node = Box::new(Spawned { task: Task::new(Spawned::<F>::call), work });
    // SAFETY: a box is not null.
    let task = unsafe { NonNull::new_unchecked(Box::into_raw(node)) }.cast::<Task>();
    // SAFETY: fresh and alive until it is called.
    unsafe { Task::mark_queued(task) };
    // SAFETY: fresh, alive until it is called, and the closure is `Send`.
    if unsafe { core.schedule(task) }.is_err() {
        // SAFETY: refused, so in no queue.
        unsafe { Task::call(task, Action::Run) };
    }
}

static GLOBAL: OnceLock<ThreadPool> = OnceLock::new();

/// The default pool, made at its first use with as many threads as the process may use processors
/// (or before by [`Builder::build_global`](crate::Builder::build_global)).
///
/// # Examples
///
/// ```
/// assert!(volt_pool::global().max_threads() >= 1);
/// ```
pub fn global() -> &'static ThreadPool {
    GLOBAL.get_or_init(ThreadPool::new)
}

pub(crate) fn set_global(pool: ThreadPool) -> Result<(), BuildError> {
    GLOBAL.set(pool).map_err(|_| BuildError::GlobalPoolExists)
}

/// The pool of the calling thread, or the default one.
pub(crate) fn with_core<R>(work: impl FnOnce(&Core) -> R) -> R {
    with_current(|worker| match worker {
        Some(worker) => work(worker.core()),
        None => work(global().core()),
    })
}

#[cfg(all(test, volt_loom))]
mod model;
