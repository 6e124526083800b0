//! The unit of work: a node that its owner supplies, so that queueing allocates nothing.
//!
//! A [`Task`] is embedded in whatever it works on. The pool only links it into queues and calls it
//! once per `schedule`.

use std::fmt;
use std::ptr::{self, NonNull};

#[cfg(debug_assertions)]
use volt_sync::internal::primitive::AtomicBool;
use volt_sync::internal::primitive::UnsafeCell;

use crate::frame::Frame;
use crate::payload::discard;

/// What the pool wants of a task that it gives back to its owner.
///
/// ```
/// use std::ptr::NonNull;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use volt_pool::{Action, Task, TaskList};
///
/// static RELEASED: AtomicU32 = AtomicU32::new(0);
///
/// unsafe fn count(task: NonNull<Task>, action: Action) {
///     // SAFETY: the task is a box of its own, and this is called once.
///     drop(unsafe { Box::from_raw(task.as_ptr()) });
///     if action == Action::Discard {
///         RELEASED.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// let mut list = TaskList::new();
/// let task = NonNull::from(Box::leak(Box::new(Task::new(count))));
/// // SAFETY: a fresh node, which `count` frees.
/// unsafe { list.push(task) };
/// drop(list);
/// assert_eq!(RELEASED.load(Ordering::Relaxed), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Do the work.
    Run,
    /// The pool was shut down before the task ran: release what it holds.
    Discard,
}

/// The function of a task. Called exactly once per `schedule`; it may free the task, and it may
/// schedule it again.
///
/// ```
/// use std::ptr::NonNull;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use volt_pool::{Action, Task, TaskFn, TaskList};
///
/// static FREED: AtomicBool = AtomicBool::new(false);
///
/// unsafe fn free(task: NonNull<Task>, _: Action) {
///     // SAFETY: the task is a box of its own, and this is called once.
///     drop(unsafe { Box::from_raw(task.as_ptr()) });
///     FREED.store(true, Ordering::Relaxed);
/// }
///
/// let function: TaskFn = free;
/// let task = NonNull::from(Box::leak(Box::new(Task::new(function))));
/// let mut list = TaskList::new();
/// // SAFETY: a fresh node, which `free` frees.
/// unsafe { list.push(task) };
/// list.run();
/// assert!(FREED.load(Ordering::Relaxed));
/// ```
pub type TaskFn = unsafe fn(NonNull<Task>, Action);

/// An intrusive work item: embed it as the *first* field of a `#[repr(C)]` struct, schedule its
/// address, and cast the address back in the task's function.
///
/// # Examples
///
/// ```
/// use std::ptr::NonNull;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use volt_pool::{Action, Task, ThreadPool};
///
/// #[repr(C)]
/// struct Add {
///     task: Task,
///     to: &'static AtomicU32,
/// }
///
/// unsafe fn add(task: NonNull<Task>, action: Action) {
///     // SAFETY: `task` is the first field of a leaked `Add`.
///     let this = unsafe { task.cast::<Add>().as_ref() };
///     if action == Action::Run {
///         this.to.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// static TOTAL: AtomicU32 = AtomicU32::new(0);
/// let pool = ThreadPool::new();
/// let node = Box::leak(Box::new(Add { task: Task::new(add), to: &TOTAL }));
/// // SAFETY: the node is never freed, and scheduled once.
/// unsafe { pool.schedule(NonNull::from(node).cast()) }.unwrap();
/// pool.shutdown();
/// assert_eq!(TOTAL.load(Ordering::Relaxed), 1);
/// ```
// Aligned so that three low bits of its address are free for `Queue`.
#[repr(C, align(8))]
pub struct Task {
    next: UnsafeCell<*mut Task>,
    function: TaskFn,
    /// What waits for this task, or for something of which it is a part. Null for detached work.
    origin: *const Frame,
    #[cfg(debug_assertions)]
    queued: AtomicBool,
}

// SAFETY: a task is moved between threads by design; `schedule`'s caller promises that its function
// may run on any thread.
unsafe impl Send for Task {}
// SAFETY: shared references give access to nothing but the constructor's result; the queues own the
// link while the task is scheduled.
unsafe impl Sync for Task {}

impl Task {
    volt_sync::internal::primitive::const_fn! {
        /// A task that calls `function`.
        ///
        /// ```
        /// use std::ptr::NonNull;
        /// use std::sync::atomic::{AtomicBool, Ordering};
        /// use volt_pool::{Action, Task};
        ///
        /// static RAN: AtomicBool = AtomicBool::new(false);
        ///
        /// unsafe fn run(_: NonNull<Task>, action: Action) {
        ///     RAN.store(action == Action::Run, Ordering::Relaxed);
        /// }
        ///
        /// // No allocation: where the task lies is its owner's affair.
        /// static TASK: Task = Task::new(run);
        /// let pool = volt_pool::ThreadPool::new();
        /// // SAFETY: it lives for ever, and is scheduled once.
        /// unsafe { pool.schedule(NonNull::from(&TASK)) }.unwrap();
        /// pool.shutdown();
        /// assert!(RAN.load(Ordering::Relaxed));
        /// ```
        pub const fn new(function: TaskFn) -> Self {
            Self::within(function, ptr::null())
        }
    }

    volt_sync::internal::primitive::const_fn! {
        /// A task for which, through `origin`, somebody waits.
        pub(crate) const fn within(function: TaskFn, origin: *const Frame) -> Self {
            Self {
                next: UnsafeCell::new(ptr::null_mut()),
                function,
                origin,
                #[cfg(debug_assertions)]
                queued: AtomicBool::new(false),
            }
        }
    }

    /// # Safety
    /// 1. `task` is alive.
    pub(crate) unsafe fn origin(task: NonNull<Self>) -> *const Frame {
        // SAFETY: alive (1); the field never changes.
        unsafe { (*task.as_ptr()).origin }
    }

    /// # Safety
    /// 1. `task` is alive, and the caller owns its link.
    pub(crate) unsafe fn next(task: NonNull<Self>) -> Option<NonNull<Self>> {
        // SAFETY: alive, as obligation 1 says.
        let cell = unsafe { &(*task.as_ptr()).next };
        // SAFETY: the caller owns the link (1).
        NonNull::new(cell.with(|next| unsafe { *next }))
    }

    /// # Safety
    /// 1. `task` is alive, and the caller owns its link.
    pub(crate) unsafe fn set_next(task: NonNull<Self>, to: Option<NonNull<Self>>) {
        // SAFETY: alive, as obligation 1 says.
        let cell = unsafe { &(*task.as_ptr()).next };
        let to = to.map_or(ptr::null_mut(), NonNull::as_ptr);
        // SAFETY: the caller owns the link (1).
        cell.with_mut(|next| unsafe { *next = to });
    }

    /// Notes that the task is in a queue now.
    ///
    /// # Safety
    /// 1. `task` is alive.
    #[inline(always)]
    pub(crate) unsafe fn mark_queued(task: NonNull<Self>) {
        #[cfg(debug_assertions)]
        {
            // SAFETY: alive, as obligation 1 says.
            let queued = unsafe { &(*task.as_ptr()).queued };
            // ORD relaxed: a check against misuse, which carries nothing.
            let twice = queued.swap(true, std::sync::atomic::Ordering::Relaxed);
            assert!(!twice, "a task was scheduled that is already queued");
        }
        #[cfg(not(debug_assertions))]
        let _ = task;
    }

    /// Takes [`mark_queued`](Self::mark_queued) back: the task was refused.
    ///
    /// # Safety
    /// 1. `task` is alive.
    pub(crate) unsafe fn unmark_queued(task: NonNull<Self>) {
        #[cfg(debug_assertions)]
        {
            // SAFETY: alive, as obligation 1 says.
            let queued = unsafe { &(*task.as_ptr()).queued };
            // ORD relaxed: a check against misuse, which carries nothing.
            queued.store(false, std::sync::atomic::Ordering::Relaxed);
        }
        #[cfg(not(debug_assertions))]
        let _ = task;
    }

    /// Calls the task's function.
    ///
    /// # Safety
    /// 1. `task` was scheduled, and is in no queue any more.
    #[inline(always)]
    pub(crate) unsafe fn call(task: NonNull<Self>, action: Action) {
        // SAFETY: a scheduled task is alive (1).
        unsafe { Self::unmark_queued(task) };
        // SAFETY: a scheduled task is alive (1).
        let function = unsafe { (*task.as_ptr()).function };
        // SAFETY: this is the one call for the `schedule` that queued it (1).
        unsafe { function(task, action) };
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}

/// A linked chain of tasks, in the order in which they were added: what `schedule_batch` takes, and
/// what a shutdown hands back.
///
/// Dropping a list discards its tasks: each is called with [`Action::Discard`].
///
/// # Examples
///
/// ```
/// use std::ptr::NonNull;
/// use volt_pool::{Action, Task, TaskList};
///
/// unsafe fn free(task: NonNull<Task>, _: Action) {
///     // SAFETY: made by `Box::into_raw` below, called once.
///     drop(unsafe { Box::from_raw(task.as_ptr()) });
/// }
///
/// let mut list = TaskList::new();
/// for _ in 0..3 {
///     let task = Box::into_raw(Box::new(Task::new(free)));
///     // SAFETY: a fresh node, which `free` frees.
///     unsafe { list.push(NonNull::new_unchecked(task)) };
/// }
/// assert_eq!(list.len(), 3);
/// list.run();
/// ```
#[derive(Default)]
pub struct TaskList {
    ends: Option<(NonNull<Task>, NonNull<Task>)>,
    len: usize,
}

// SAFETY: whoever pushed the tasks promised that they may run on any thread.
unsafe impl Send for TaskList {}
// SAFETY: a shared list gives access to its length only.
unsafe impl Sync for TaskList {}

impl TaskList {
    /// An empty list.
    ///
    /// ```
    /// let list = volt_pool::TaskList::new();
    /// assert!(list.is_empty());
    /// ```
    pub const fn new() -> Self {
        Self { ends: None, len: 0 }
    }

    /// Appends `task`.
    ///
    /// ```
    /// use std::ptr::NonNull;
    /// use volt_pool::{Action, Task, TaskList, ThreadPool};
    ///
    /// unsafe fn free(task: NonNull<Task>, _: Action) {
    ///     // SAFETY: the task is a box of its own, and this is called once.
    ///     drop(unsafe { Box::from_raw(task.as_ptr()) });
    /// }
    ///
    /// let mut list = TaskList::new();
    /// for _ in 0..3 {
    ///     let task = NonNull::from(Box::leak(Box::new(Task::new(free))));
    ///     // SAFETY: a fresh node, which `free` frees.
    ///     unsafe { list.push(task) };
    /// }
    /// assert_eq!(list.len(), 3);
    /// let pool = ThreadPool::new();
    /// assert!(pool.schedule_batch(list).is_ok());
    /// pool.shutdown();
    /// ```
    ///
    /// # Safety
    /// 1. `task` is in no list or queue, and stays alive and in place until its function is called.
    /// 2. Its function may be called on any thread.
    pub unsafe fn push(&mut self, task: NonNull<Task>) {
        // SAFETY: alive, as obligation 1 says.
        unsafe { Task::mark_queued(task) };
        // SAFETY: not queued or marked elsewhere (1).
        unsafe { self.append(task) };
    }

    /// Appends a task that is marked as queued.
    ///
    /// # Safety
    /// 1. `task` is alive, scheduled, and in no list or queue.
    pub(crate) unsafe fn append(&mut self, task: NonNull<Task>) {
        // SAFETY: in no list, so the link is ours (1).
        unsafe { Task::set_next(task, None) };
        self.ends = Some(match self.ends {
            None => (task, task),
            Some((head, tail)) => {
                // SAFETY: `tail` is in our list.
                unsafe { Task::set_next(tail, Some(task)) };
                (head, task)
            }
        });
        self.len += 1;
    }

    /// # Safety
    /// 1. The chain has `len` scheduled tasks, which are in no queue.
    pub(crate) unsafe fn from_chain(chain: (NonNull<Task>, NonNull<Task>), len: usize) -> Self {
        // SAFETY: the last link is ours (1); a failed push may have set it.
        unsafe { Task::set_next(chain.1, None) };
        Self { ends: Some(chain), len }
    }

    pub(crate) fn pop(&mut self) -> Option<NonNull<Task>> {
        let (head, tail) = self.ends?;
        // SAFETY: `head` is in our list.
        let next = unsafe { Task::next(head) };
        self.ends = next.map(|next| (next, tail));
        self.len -= 1;
        Some(head)
    }

    /// Takes the chain out.
    pub(crate) fn take(&mut self) -> Option<(NonNull<Task>, NonNull<Task>)> {
        self.len = 0;
        self.ends.take()
    }

    /// The number of tasks.
    ///
    /// ```
    /// assert_eq!(volt_pool::TaskList::new().len(), 0);
    /// ```
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there is none.
    ///
    /// ```
    /// assert!(volt_pool::TaskList::default().is_empty());
    /// ```
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Runs all tasks on this thread, in order. A panic of a task is dropped, as in a pool.
    ///
    /// ```
    /// use std::ptr::NonNull;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use volt_pool::{Action, Task, TaskList};
    ///
    /// static RUNS: AtomicU32 = AtomicU32::new(0);
    ///
    /// unsafe fn count(task: NonNull<Task>, _: Action) {
    ///     // SAFETY: the task is a box of its own, and this is called once.
    ///     drop(unsafe { Box::from_raw(task.as_ptr()) });
    ///     RUNS.fetch_add(1, Ordering::Relaxed);
    /// }
    ///
    /// let mut list = TaskList::new();
    /// let task = NonNull::from(Box::leak(Box::new(Task::new(count))));
    /// // SAFETY: a fresh node, which `count` frees.
    /// unsafe { list.push(task) };
    /// list.run();
    /// assert_eq!(RUNS.load(Ordering::Relaxed), 1);
    /// ```
    pub fn run(mut self) {
        self.call_all(Action::Run);
    }

    fn call_all(&mut self, action: Action) {
        while let Some(task) = self.pop() {
            // SAFETY: out of the list, so in no queue.
            discard(|| unsafe { Task::call(task, action) });
        }
    }
}

impl Drop for TaskList {
    fn drop(&mut self) {
        self.call_all(Action::Discard);
    }
}

impl fmt::Debug for TaskList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskList").field("len", &self.len).finish()
    }
}
