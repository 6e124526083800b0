//! A set of tasks that are joined as they complete.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::task::{Context, Poll, ready};

use super::{AbortHandle, Id, JoinError, JoinHandle, LocalSet};
use crate::runtime::Handle;
use completions::Completions;

mod completions;
#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;

/// Tasks that are spawned together and joined in the order in which they complete.
///
/// All tasks return the same type. Dropping the set aborts those that have not completed.
///
/// # Examples
/// ```
/// use volt::task::JoinSet;
///
/// volt::run(async {
///     let mut set = JoinSet::new();
///     for n in 0..10 {
///         set.spawn(async move { n });
///     }
///     let mut sum = 0;
///     while let Some(result) = set.join_next().await {
///         sum += result.unwrap();
///     }
///     assert_eq!(sum, 45);
/// });
/// ```
///
/// # Cost
/// Adding a task allocates nothing but the task (amortised), and joining one looks at no others.
pub struct JoinSet<T> {
    tasks: Completions<T>,
}

impl<T> JoinSet<T> {
    /// An empty set. Does not allocate.
    ///
    /// ```
    /// let set = volt::task::JoinSet::<()>::new();
    /// assert!(set.is_empty());
    /// ```
    pub const fn new() -> Self {
        Self { tasks: Completions::new() }
    }

    /// How many tasks have not been joined.
    ///
    /// ```
    /// volt::run(async {
    ///     let mut set = volt::task::JoinSet::new();
    ///     set.spawn(async {});
    ///     set.spawn(std::future::pending());
    ///     assert_eq!(set.len(), 2);
    ///     // Completed or not: what counts is whether they were joined.
    ///     set.join_next().await.unwrap().unwrap();
    ///     assert_eq!(set.len(), 1);
    /// });
    /// ```
    pub const fn len(&self) -> usize {
        self.tasks.len()
    }

    /// True if no task is left to be joined.
    ///
    /// ```
    /// volt::run(async {
    ///     let mut set = volt::task::JoinSet::new();
    ///     set.spawn(async {});
    ///     assert!(!set.is_empty());
    ///     set.join_next().await.unwrap().unwrap();
    ///     assert!(set.is_empty());
    /// });
    /// ```
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: 'static> JoinSet<T> {
    /// Spawns a task on the current runtime and adds it.
    ///
    /// ```
    /// volt::run(async {
    ///     let mut set = volt::task::JoinSet::new();
    ///     let abort = set.spawn(std::future::pending::<()>());
    ///     abort.abort();
    ///     assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
    /// });
    /// ```
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn spawn<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        self.insert(crate::spawn(future))
    }

    /// Spawns a task on the runtime of `handle` and adds it.
    ///
    /// ```
    /// let runtime = volt::runtime::Runtime::new()?;
    /// let mut set = volt::task::JoinSet::new();
    /// set.spawn_on(async { 1 }, runtime.handle());
    /// assert_eq!(runtime.block_on(set.join_all()), [1]);
    /// # std::io::Result::Ok(())
    /// ```
    #[track_caller]
    pub fn spawn_on<F>(&mut self, future: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        self.insert(handle.spawn(future))
    }

    /// Spawns a task on the current [`LocalSet`] and adds it.
    ///
    /// ```
    /// use std::rc::Rc;
    /// use volt::task::{JoinSet, LocalSet};
    ///
    /// volt::run(async {
    ///     let local = LocalSet::new();
    ///     let outputs = local.run_until(async {
    ///         let mut set = JoinSet::new();
    ///         let not_send = Rc::new(1);
    ///         set.spawn_local(async move { *not_send });
    ///         set.join_all().await
    ///     });
    ///     assert_eq!(outputs.await, [1]);
    /// });
    /// ```
    ///
    /// # Panics
    /// Outside of a `LocalSet`.
    #[track_caller]
    pub fn spawn_local<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.insert(super::spawn_local(future))
    }

    /// Spawns a task on `local_set` and adds it.
    ///
    /// ```
    /// use volt::task::{JoinSet, LocalSet};
    ///
    /// volt::run(async {
    ///     let local = LocalSet::new();
    ///     let mut set = JoinSet::new();
    ///     set.spawn_local_on(async { 1 }, &local);
    ///     assert_eq!(local.run_until(set.join_all()).await, [1]);
    /// });
    /// ```
    #[track_caller]
    pub fn spawn_local_on<F>(&mut self, future: F, local_set: &LocalSet) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.insert(local_set.spawn_local(future))
    }

    /// Runs `closure` where it may block (see [`spawn_blocking`](super::spawn_blocking)), and adds
    /// that as a task.
    ///
    /// ```
    /// volt::run(async {
    ///     let mut set = volt::task::JoinSet::new();
    ///     set.spawn_blocking(|| std::fs::exists("/").unwrap());
    ///     assert_eq!(set.join_all().await, [true]);
    /// });
    /// ```
    ///
    /// # Panics
    /// Outside of a runtime, or if there is no thread.
    #[track_caller]
    pub fn spawn_blocking<F>(&mut self, closure: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        self.insert(super::spawn_blocking(closure))
    }

    /// As [`spawn_blocking`](Self::spawn_blocking), on the runtime of `handle`.
    ///
    /// ```
    /// let runtime = volt::runtime::Runtime::new()?;
    /// let mut set = volt::task::JoinSet::new();
    /// set.spawn_blocking_on(|| 1, runtime.handle());
    /// assert_eq!(runtime.block_on(set.join_all()), [1]);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If there is no thread.
    #[track_caller]
    pub fn spawn_blocking_on<F>(&mut self, closure: F, handle: &Handle) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        self.insert(handle.spawn_blocking(closure))
    }

    /// Adds a task.
    pub(crate) fn insert(&mut self, handle: JoinHandle<T>) -> AbortHandle {
        self.tasks.insert(handle)
    }

    /// Waits for one of the tasks. `None` if the set is empty.
    ///
    /// ```
    /// volt::run(async {
    ///     let mut set = volt::task::JoinSet::new();
    ///     set.spawn(async { 1 });
    ///     assert_eq!(set.join_next().await.unwrap().unwrap(), 1);
    ///     assert!(set.join_next().await.is_none());
    /// });
    /// ```
    ///
    /// # Errors
    /// If the task panicked or was aborted.
    ///
    /// # Cancel safety
    /// If this is dropped, no task has been removed from the set.
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        poll_fn(|cx| self.poll_join_next(cx)).await
    }

    /// As [`join_next`](Self::join_next), with the task's id.
    ///
    /// ```
    /// volt::run(async {
    ///     let mut set = volt::task::JoinSet::new();
    ///     let id = set.spawn(async { 1 }).id();
    ///     assert_eq!(set.join_next_with_id().await.unwrap().unwrap(), (id, 1));
    /// });
    /// ```
    ///
    /// # Errors
    /// If the task panicked or was aborted; the error has the id.
    ///
    /// # Cancel safety
    /// If this is dropped, no task has been removed from the set.
    pub async fn join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        poll_fn(|cx| self.poll_join_next_with_id(cx)).await
    }

    /// Joins a task that has completed. `None` if there is none.
    ///
    /// A task that completes just now may be [finished](AbortHandle::is_finished) a moment before it
    /// can be joined.
    ///
    /// ```
    /// volt::run(async {
    ///     let mut set = volt::task::JoinSet::new();
    ///     let abort = set.spawn(std::future::pending::<()>());
    ///     assert!(set.try_join_next().is_none());
    ///     abort.abort();
    ///     let output = loop {
    ///         match set.try_join_next() {
    ///             Some(output) => break output,
    ///             None => volt::task::yield_now().await,
    ///         }
    ///     };
    ///     assert!(output.unwrap_err().is_cancelled());
    /// });
    /// ```
    ///
    /// # Errors
    /// If the task panicked or was aborted.
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.tasks.pop().map(Self::output)
    }

    /// As [`try_join_next`](Self::try_join_next), with the task's id.
    ///
    /// ```
    /// volt::run(async {
    ///     let mut set = volt::task::JoinSet::new();
    ///     let id = set.spawn(async { 1 }).id();
    ///     let output = loop {
    ///         match set.try_join_next_with_id() {
    ///             Some(output) => break output,
    ///             None => volt::task::yield_now().await,
    ///         }
    ///     };
    ///     assert_eq!(output.unwrap(), (id, 1));
    /// });
    /// ```
    ///
    /// # Errors
    /// If the task panicked or was aborted; the error has the id.
    pub fn try_join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        let handle = self.tasks.pop()?;
        let id = handle.id();
        Some(Self::output(handle).map(|output| (id, output)))
    }

    /// Polls for a task that has completed: `Ready(None)` if the set is empty.
    ///
    /// If it is `Pending`, the task of `cx` is woken when one completes.
    ///
    /// ```
    /// use std::future::poll_fn;
    ///
    /// volt::run(async {
    ///     let mut set = volt::task::JoinSet::new();
    ///     set.spawn(async { 1 });
    ///     let output = poll_fn(|cx| set.poll_join_next(cx)).await;
    ///     assert_eq!(output.unwrap().unwrap(), 1);
    /// });
    /// ```
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        let handle = ready!(self.poll_pop(cx));
        Poll::Ready(handle.map(Self::output))
    }

    /// As [`poll_join_next`](Self::poll_join_next), with the task's id.
    ///
    /// ```
    /// use std::future::poll_fn;
    ///
    /// volt::run(async {
    ///     let mut set = volt::task::JoinSet::new();
    ///     let id = set.spawn(async { 1 }).id();
    ///     let output = poll_fn(|cx| set.poll_join_next_with_id(cx)).await;
    ///     assert_eq!(output.unwrap().unwrap(), (id, 1));
    /// });
    /// ```
    pub fn poll_join_next_with_id(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Id, T), JoinError>>> {
        let handle = ready!(self.poll_pop(cx));
        Poll::Ready(handle.map(|handle| {
            let id = handle.id();
            Self::output(handle).map(|output| (id, output))
        }))
    }

    fn poll_pop(&mut self, cx: &mut Context<'_>) -> Poll<Option<JoinHandle<T>>> {
        ready!(volt_sync::coop::poll_proceed(cx));
        if self.is_empty() {
            return Poll::Ready(None);
        }
        let mut handle = self.tasks.pop();
        if handle.is_none() {
            if let Some(waiter) = self.tasks.waiter() {
                // SAFETY: `&mut self` keeps two of these calls apart.
                unsafe { waiter.register(cx.waker()) };
            }
            handle = self.tasks.pop();
        }
        match handle {
            None => Poll::Pending,
            Some(handle) => {
                volt_sync::coop::made_progress();
                Poll::Ready(Some(handle))
            }
        }
    }

    fn output(mut handle: JoinHandle<T>) -> Result<T, JoinError> {
        handle.try_take().expect("a task that woke the set has completed")
    }

    /// Waits for all tasks, and returns their outputs in the order in which they completed.
    ///
    /// ```
    /// volt::run(async {
    ///     let set: volt::task::JoinSet<_> = (0..3).map(|n| async move { n }).collect();
    ///     let mut outputs = set.join_all().await;
    ///     outputs.sort();
    ///     assert_eq!(outputs, [0, 1, 2]);
    /// });
    /// ```
    ///
    /// # Panics
    /// If a task panicked, with its panic; if one was aborted. The others are aborted then.
    ///
    /// # Cancel safety
    /// Not safe: dropping the future drops the set, which aborts its tasks, and the outputs that it
    /// had collected. A loop over [`join_next`](Self::join_next) keeps both.
    pub async fn join_all(mut self) -> Vec<T> {
        let mut outputs = Vec::with_capacity(self.len());
        while let Some(result) = self.join_next().await {
            match result {
                Ok(output) => outputs.push(output),
                Err(error) => match error.try_into_panic() {
                    Ok(payload) => resume_unwind(payload),
                    Err(error) => panic!("{error}"),
                },
            }
        }
        outputs
    }

    /// Aborts all tasks. They stay in the set until they are joined.
    ///
    /// ```
    /// volt::run(async {
    ///     let mut set = volt::task::JoinSet::new();
    ///     set.spawn(std::future::pending::<()>());
    ///     set.abort_all();
    ///     assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
    /// });
    /// ```
    pub fn abort_all(&mut self) {
        self.tasks.for_each(JoinHandle::abort);
    }

    /// Removes all tasks from the set; they go on.
    ///
    /// ```
    /// volt::run(async {
    ///     let (tx, rx) = volt::sync::oneshot::channel();
    ///     let mut set = volt::task::JoinSet::new();
    ///     set.spawn(async move { tx.send(1) });
    ///     set.detach_all();
    ///     assert!(set.is_empty());
    ///     drop(set);
    ///     assert_eq!(rx.await, Ok(1));
    /// });
    /// ```
    pub fn detach_all(&mut self) {
        self.tasks.clear();
    }

    /// Aborts all tasks and waits until they are gone. Panics in them are ignored.
    ///
    /// # Cancel safety
    /// Safe: the first poll has aborted all, and those that are not gone yet stay in the set. Call it
    /// again to wait for them.
    ///
    /// ```
    /// volt::run(async {
    ///     let alive = std::sync::Arc::new(());
    ///     let theirs = alive.clone();
    ///     let mut set = volt::task::JoinSet::new();
    ///     set.spawn(async move {
    ///         std::future::pending::<()>().await;
    ///         drop(theirs);
    ///     });
    ///     set.shutdown().await;
    ///     assert_eq!(std::sync::Arc::strong_count(&alive), 1);
    /// });
    /// ```
    pub async fn shutdown(&mut self) {
        self.abort_all();
        while self.join_next().await.is_some() {}
    }
}

/// Spawns every future of the iterator.
impl<T, F> Extend<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    fn extend<I: IntoIterator<Item = F>>(&mut self, futures: I) {
        futures.into_iter().for_each(|future| {
            self.spawn(future);
        });
    }
}

/// Spawns every future of the iterator.
///
/// # Examples
/// ```
/// use volt::task::JoinSet;
///
/// volt::run(async {
///     let set: JoinSet<u32> = (0..4).map(|n| async move { n * n }).collect();
///     let mut squares = set.join_all().await;
///     squares.sort();
///     assert_eq!(squares, [0, 1, 4, 9]);
/// });
/// ```
impl<T, F> FromIterator<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    fn from_iter<I: IntoIterator<Item = F>>(futures: I) -> Self {
        let mut set = Self::new();
        set.extend(futures);
        set
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        self.tasks.for_each(JoinHandle::abort);
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet").field("len", &self.len()).finish()
    }
}
