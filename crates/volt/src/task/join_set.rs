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
    pub const fn new() -> Self {
        Self { tasks: Completions::new() }
    }

    /// How many tasks have not been joined.
    pub const fn len(&self) -> usize {
        self.tasks.len()
    }

    /// True if no task is left to be joined.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: 'static> JoinSet<T> {
    /// Spawns a task on the current runtime and adds it.
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
    /// # Errors
    /// If the task panicked or was aborted.
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.tasks.pop().map(Self::output)
    }

    /// As [`try_join_next`](Self::try_join_next), with the task's id.
    ///
    /// # Errors
    /// If the task panicked or was aborted; the error has the id.
    pub fn try_join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        let handle = self.tasks.pop()?;
        let id = handle.id();
        Some(Self::output(handle).map(|output| (id, output)))
    }

    /// Polls for a task that has completed: `Ready(None)` if the set is empty.
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        let handle = ready!(self.poll_pop(cx));
        Poll::Ready(handle.map(Self::output))
    }

    /// As [`poll_join_next`](Self::poll_join_next), with the task's id.
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
    /// # Panics
    /// If a task panicked, with its panic; if one was aborted. The others are aborted then.
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
    pub fn abort_all(&mut self) {
        self.tasks.for_each(JoinHandle::abort);
    }

    /// Removes all tasks from the set; they go on.
    pub fn detach_all(&mut self) {
        self.tasks.clear();
    }

    /// Aborts all tasks and waits until they are gone. Panics in them are ignored.
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
