//! Reports of polls that take long: which task, spawned where, for how long.
//!
//! Purpose: a task that computes or blocks in its poll holds up whatever else its thread would do.
//! This finds it, in production if need be.
//!
//! Rejected: the place of the spawn in the task's header (eight bytes of every task, for those who
//! ask); a future around the future, that knows the place (a second allocation, or all code of a task
//! twice). So a table has the places, in a runtime that is told to report, and only there. A look at
//! the clock before each poll that nobody asked for is avoided in the same way: in such a runtime no
//! kind of task is on the list of those that need no timing (`scheduler/pacing/quick.rs`).
//!
//! State: the table in shards by id, each under a lock, with the tasks that have not completed; the
//! slowest poll. User code runs outside the locks.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use volt_sync::internal::primitive::{self, Mutex, MutexGuard};

use super::in_hook;
use super::metrics::{Counter, SlotMetrics};
use crate::task::{Header, Id};

/// A poll that takes longer is a slow one, if nobody says what is.
pub(crate) const DEFAULT_THRESHOLD: Duration = Duration::from_millis(1);
const SHARDS: usize = 16;

/// A callback of the builder.
pub(crate) type Hook = Arc<dyn Fn(&SlowPoll) + Send + Sync>;
type Place = &'static Location<'static>;

/// A poll that took longer than
/// [`Builder::slow_poll_threshold`](super::Builder::slow_poll_threshold).
///
/// It is made when the poll has returned: whoever awaits the task may go on before that.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use volt::runtime::Builder;
///
/// let runtime = Builder::new_multi_thread()
///     .slow_poll_threshold(Duration::from_millis(2))
///     .on_slow_poll(|poll| eprintln!("{poll}"))
///     .build()?;
/// let task = runtime.spawn(async { std::thread::sleep(Duration::from_millis(20)) });
/// let id = task.id();
/// runtime.block_on(task).unwrap();
///
/// let metrics = runtime.metrics();
/// drop(runtime);
/// let slowest = metrics.slowest_poll().unwrap();
/// assert_eq!(slowest.id(), Some(id));
/// assert_eq!(slowest.spawned_at().file(), file!());
/// assert!(slowest.duration() >= Duration::from_millis(20));
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct SlowPoll {
    id: Option<Id>,
    spawned_at: Place,
    future: &'static str,
    duration: Duration,
}

impl SlowPoll {
    /// The task that was polled. None for the future of a `block_on`.
    ///
    /// The task may have completed since; see [`Id`] for how long ids are unique.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    ///
    /// let (reports, reported) = mpsc::channel();
    /// let runtime = volt::runtime::Builder::new_current_thread()
    ///     .on_slow_poll(move |poll| reports.send(poll.id()).unwrap())
    ///     .build()?;
    /// runtime.block_on(async { std::thread::sleep(Duration::from_millis(2)) });
    /// assert_eq!(reported.recv().unwrap(), None);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn id(&self) -> Option<Id> {
        self.id
    }

    /// The call of `spawn` that made the task, or of `block_on`.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    ///
    /// let (reports, reported) = mpsc::channel();
    /// let runtime = volt::runtime::Builder::new_current_thread()
    ///     .on_slow_poll(move |poll| reports.send(poll.spawned_at().line()).unwrap())
    ///     .build()?;
    /// let (task, line) =
    ///     (runtime.spawn(async { std::thread::sleep(Duration::from_millis(2)) }), line!());
    /// runtime.block_on(task).unwrap();
    /// assert!(reported.try_iter().any(|reported| reported == line));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn spawned_at(&self) -> &'static Location<'static> {
        self.spawned_at
    }

    /// The name of the future's type.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    ///
    /// async fn blocks() {
    ///     std::thread::sleep(Duration::from_millis(2));
    /// }
    ///
    /// let (reports, reported) = mpsc::channel();
    /// let runtime = volt::runtime::Builder::new_current_thread()
    ///     .on_slow_poll(move |poll| reports.send(poll.type_name()).unwrap())
    ///     .build()?;
    /// runtime.block_on(blocks());
    /// assert!(reported.recv().unwrap().contains("blocks"));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn type_name(&self) -> &'static str {
        self.future
    }

    /// How long the poll took: by the machine's clock, also where the runtime's is paused. If the
    /// poll has run other tasks (a blocking `join` does), their time is part of it.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let runtime = volt::runtime::Builder::new_current_thread()
    ///     .slow_poll_threshold(Duration::from_millis(1))
    ///     .build()?;
    /// runtime.block_on(async { std::thread::sleep(Duration::from_millis(2)) });
    /// let slowest = runtime.metrics().slowest_poll().unwrap();
    /// assert!(slowest.duration() >= Duration::from_millis(2));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn duration(&self) -> Duration {
        self.duration
    }
}

impl fmt::Display for SlowPoll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "task {id}")?,
            None => f.write_str("the future of `block_on`")?,
        }
        let (place, future) = (self.spawned_at, self.future);
        write!(f, ", spawned at {place}, was in a poll for {:?}: {future}", self.duration)
    }
}

/// The reports of one runtime.
pub(crate) struct SlowPolls {
    threshold: Duration,
    hook: Option<Hook>,
    places: [Mutex<HashMap<Id, Place>>; SHARDS],
    slowest: Mutex<Option<SlowPoll>>,
    pub(crate) count: Counter,
}

/// A poll that is being timed.
pub(crate) struct Timing {
    start: Instant,
    id: Option<Id>,
    spawned_at: Place,
    future: &'static str,
}

impl SlowPolls {
    pub(crate) fn new(threshold: Duration, hook: Option<Hook>) -> Self {
        Self {
            threshold,
            hook,
            places: std::array::from_fn(|_| Mutex::new(HashMap::new())),
            slowest: Mutex::new(None),
            count: Counter::new(),
        }
    }

    fn shard(&self, id: Id) -> MutexGuard<'_, HashMap<Id, Place>> {
        // An id's low bits are those of an address that is a multiple of 8, divided by 8; tasks are
        // some cache lines apart.
        let shard = (id.as_u64() >> 4) as usize % SHARDS;
        self.places[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task was made.
    #[cold]
    pub(crate) fn add(&self, id: Id, place: Place) {
        self.shard(id).insert(id, place);
    }

    /// A task completes.
    #[cold]
    pub(crate) fn remove(&self, id: Id) {
        self.shard(id).remove(&id);
    }

    /// All tasks are gone, some of them without a [`remove`](Self::remove).
    pub(crate) fn clear(&self) {
        for shard in &self.places {
            *shard.lock().unwrap_or_else(PoisonError::into_inner) = HashMap::new();
        }
    }

    /// A task is about to be polled.
    pub(crate) fn begin(&self, task: &Header) -> Timing {
        let id = task.id();
        // It is there until the task has completed.
        let spawned_at = self.shard(id).get(&id).copied().unwrap_or_else(|| Location::caller());
        Timing { id: Some(id), spawned_at, future: task.type_name(), start: primitive::now() }
    }

    /// The future of a `block_on` is about to be polled.
    pub(crate) fn begin_root<F>(&self, spawned_at: Place) -> Timing {
        let future = std::any::type_name::<F>();
        Timing { id: None, spawned_at, future, start: primitive::now() }
    }

    /// The poll has returned. A slow one is counted for `member`, if it was one's.
    pub(crate) fn end(&self, timing: &Timing, member: Option<&SlotMetrics>) {
        let duration = timing.start.elapsed();
        if duration >= self.threshold {
            if let Some(member) = member {
                member.slow_polls.add_shared(1);
            }
            self.report(timing, duration);
        }
    }

    #[cold]
    fn report(&self, timing: &Timing, duration: Duration) {
        let Timing { id, spawned_at, future, .. } = *timing;
        let report = SlowPoll { id, spawned_at, future, duration };
        self.count.add_shared(1);
        let mut slowest = self.slowest.lock().unwrap_or_else(PoisonError::into_inner);
        if slowest.as_ref().is_none_or(|slowest| slowest.duration < duration) {
            *slowest = Some(report.clone());
        }
        drop(slowest);
        if let Some(hook) = &self.hook {
            in_hook(|| hook(&report));
        }
    }

    /// The poll that took longest so far.
    pub(crate) fn slowest(&self) -> Option<SlowPoll> {
        self.slowest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many tasks are in the table.
    #[cfg(all(test, not(volt_loom)))]
    fn len(&self) -> usize {
        self.places.iter().map(|shard| shard.lock().unwrap().len()).sum()
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::*;
    use crate::runtime::{Builder, Runtime};

    fn runtimes() -> [Runtime; 2] {
        [Builder::new_multi_thread, Builder::new_current_thread]
            .map(|flavor| flavor().slow_poll_threshold(Duration::from_millis(20)).build().unwrap())
    }

    /// Tasks that completed, were aborted, panicked, or were dropped in the queue.
    #[test]
    fn no_task_stays_in_the_table() {
        for rt in runtimes() {
            let handle = rt.handle().clone();
            let slow = handle.shared.slow.as_deref().unwrap();
            rt.block_on(async {
                let pending = crate::spawn(std::future::pending::<()>());
                let quick: Vec<_> = (0..100).map(|i| crate::spawn(async move { i })).collect();
                let panics = crate::spawn(async { panic!("a test") });
                pending.abort();
                assert!(pending.await.unwrap_err().is_cancelled());
                assert!(panics.await.unwrap_err().is_panic());
                for (i, task) in quick.into_iter().enumerate() {
                    assert_eq!(task.await.unwrap(), i);
                }
            });
            assert_eq!(slow.len(), 0);
            drop(rt.spawn(std::future::pending::<()>()));
            assert_eq!(slow.len(), 1);
            drop(rt);
            assert_eq!(slow.len(), 0);
        }
    }
}
