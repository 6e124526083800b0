//! Statistics.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use volt_sync::internal::primitive::{Arc, AtomicU64};

use super::scheduler::shared::{Shared, Slot};
use super::slow_poll::SlowPoll;

/// A counter. Wraps around.
#[derive(Debug)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds, by the only thread that does.
    #[inline]
    pub(crate) fn add(&self, by: u64) {
        // ORD relaxed: a statistic with one writer.
        self.0.store(self.0.load(Relaxed).wrapping_add(by), Relaxed);
    }

    /// Adds, by any thread.
    #[inline]
    pub(crate) fn add_shared(&self, by: u64) {
        // ORD relaxed: a statistic.
        self.0.fetch_add(by, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // ORD relaxed: a statistic.
        self.0.load(Relaxed)
    }
}

/// What a member counts.
#[derive(Debug)]
pub(crate) struct SlotMetrics {
    pub(crate) steals: Counter,
    pub(crate) stolen: Counter,
    pub(crate) parks: Counter,
    pub(crate) unparks: Counter,
    /// For how long it was awake.
    pub(crate) busy_ns: Counter,
    pub(crate) lifo_hits: Counter,
    pub(crate) batch_fetches: Counter,
    /// Of its polls. Written by any thread: a watcher, or, after a `block_in_place` in such a poll, the
    /// one that was the member.
    pub(crate) slow_polls: Counter,
}

impl SlotMetrics {
    pub(crate) fn new() -> Self {
        Self {
            steals: Counter::new(),
            stolen: Counter::new(),
            parks: Counter::new(),
            unparks: Counter::new(),
            busy_ns: Counter::new(),
            lifo_hits: Counter::new(),
            batch_fetches: Counter::new(),
            slow_polls: Counter::new(),
        }
    }
}

/// Statistics of a runtime, from [`Runtime::metrics`](super::Runtime::metrics) or
/// [`Handle::metrics`](super::Handle::metrics).
///
/// Reading them costs the runtime nothing; each value is a snapshot of its own, and the counters
/// never go back (they wrap around after 2^64). "Members" are the worker threads and the threads
/// inside `block_on`, which run tasks too; `worker_*` methods take a worker's index, below
/// [`num_workers`](Self::num_workers).
///
/// ```
/// let runtime = volt::runtime::Runtime::new()?;
/// runtime.block_on(async { volt::spawn(async {}).await }).unwrap();
/// assert_eq!(runtime.metrics().spawned_tasks_count(), 1);
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct RuntimeMetrics {
    shared: Arc<Shared>,
}

impl RuntimeMetrics {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    fn sum(&self, f: impl Fn(&SlotMetrics) -> &Counter) -> u64 {
        self.shared.all_slots().map(|slot| f(&slot.metrics).get()).fold(0, u64::wrapping_add)
    }

    fn slot(&self, worker: usize) -> &Slot {
        let workers = self.num_workers();
        assert!(worker < workers, "worker {worker} of a runtime with {workers}");
        self.shared.slot(worker)
    }

    fn worker(&self, worker: usize) -> &SlotMetrics {
        &self.slot(worker).metrics
    }

    /// The number of worker threads; for a current-thread runtime 1: the thread in `block_on`.
    ///
    /// ```
    /// use volt::runtime::Builder;
    ///
    /// let threads = Builder::new_multi_thread().worker_threads(3).build()?;
    /// assert_eq!(threads.metrics().num_workers(), 3);
    /// assert_eq!(Builder::new_current_thread().build()?.metrics().num_workers(), 1);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn num_workers(&self) -> usize {
        self.shared.workers.max(1)
    }

    /// Tasks that were spawned and have not completed.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// let task = runtime.spawn(async {});
    /// assert_eq!(runtime.metrics().num_alive_tasks(), 1);
    /// runtime.block_on(task).unwrap();
    /// assert_eq!(runtime.metrics().num_alive_tasks(), 0);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn num_alive_tasks(&self) -> usize {
        self.shared.alive_tasks()
    }

    /// Threads of `spawn_blocking`.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// assert_eq!(runtime.metrics().num_blocking_threads(), 0);
    /// runtime.block_on(runtime.spawn_blocking(|| ())).unwrap();
    /// assert_eq!(runtime.metrics().num_blocking_threads(), 1, "it waits for more");
    /// # std::io::Result::Ok(())
    /// ```
    pub fn num_blocking_threads(&self) -> usize {
        self.shared.blocking.metrics().0
    }

    /// Threads of `spawn_blocking` that have nothing to do.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// let metrics = runtime.metrics();
    /// let idle = runtime.spawn_blocking(move || metrics.num_idle_blocking_threads());
    /// assert_eq!(runtime.block_on(idle).unwrap(), 0, "the only one runs the closure");
    /// # std::io::Result::Ok(())
    /// ```
    pub fn num_idle_blocking_threads(&self) -> usize {
        self.shared.blocking.metrics().1
    }

    /// Closures of `spawn_blocking` that wait for a thread.
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    ///
    /// let runtime =
    ///     volt::runtime::Builder::new_current_thread().max_blocking_threads(1).build()?;
    /// let ((started, wait_start), (end, wait_end)) = (channel(), channel::<()>());
    /// let first = runtime.spawn_blocking(move || {
    ///     started.send(()).unwrap();
    ///     let _ = wait_end.recv();
    /// });
    /// wait_start.recv().unwrap();
    /// let second = runtime.spawn_blocking(|| ());
    /// assert_eq!(runtime.metrics().blocking_queue_depth(), 1);
    /// drop(end);
    /// runtime.block_on(async { (first.await, second.await).1.unwrap() });
    /// assert_eq!(runtime.metrics().blocking_queue_depth(), 0);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn blocking_queue_depth(&self) -> usize {
        self.shared.blocking.metrics().2
    }

    /// Tasks in the queue for tasks that were woken or spawned by other threads.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// let task = runtime.spawn(async {});
    /// assert_eq!(runtime.metrics().global_queue_depth(), 1);
    /// runtime.block_on(task).unwrap();
    /// assert_eq!(runtime.metrics().global_queue_depth(), 0);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn global_queue_depth(&self) -> usize {
        self.shared.injector_len()
    }

    /// Tasks ever spawned.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// runtime.block_on(async {
    ///     for _ in 0..10 {
    ///         volt::spawn(async {}).await.unwrap();
    ///     }
    /// });
    /// assert_eq!(runtime.metrics().spawned_tasks_count(), 10);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn spawned_tasks_count(&self) -> u64 {
        self.shared.spawned_tasks()
    }

    /// Tasks that were spawned or woken by threads that are no members.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// let task = runtime.spawn(async { volt::spawn(async {}).await });
    /// runtime.block_on(task).unwrap().unwrap();
    /// assert_eq!(runtime.metrics().remote_schedule_count(), 1, "the outer one");
    /// # std::io::Result::Ok(())
    /// ```
    pub fn remote_schedule_count(&self) -> u64 {
        self.shared.remote.get()
    }

    /// Polls ever done, of tasks and of the futures of `block_on`; but not the first poll in a
    /// `block_on`, since its thread joins the runtime only if it has to wait.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// let task = runtime.spawn(volt::task::yield_now());
    /// runtime.block_on(task).unwrap();
    /// assert!(runtime.metrics().polls_count() >= 2, "two of the task");
    /// # std::io::Result::Ok(())
    /// ```
    pub fn polls_count(&self) -> u64 {
        self.shared.all_slots().map(|slot| slot.polls()).fold(0, u64::wrapping_add)
    }

    /// Tasks taken from other members' queues.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// runtime.block_on(async { volt::spawn(async {}).await }).unwrap();
    /// assert_eq!(runtime.metrics().stolen_tasks_count(), 0, "there is one member only");
    /// # std::io::Result::Ok(())
    /// ```
    pub fn stolen_tasks_count(&self) -> u64 {
        self.sum(|slot| &slot.stolen)
    }

    /// How often members found something in another member's queue, the threads in `block_on` included.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// runtime.block_on(async { volt::spawn(async {}).await }).unwrap();
    /// assert_eq!(runtime.metrics().steal_operations_count(), 0, "there is one member only");
    /// # std::io::Result::Ok(())
    /// ```
    pub fn steal_operations_count(&self) -> u64 {
        self.sum(|slot| &slot.steals)
    }

    /// How often members went to sleep.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// runtime.block_on(async { volt::time::sleep(std::time::Duration::from_millis(1)).await });
    /// assert!(runtime.metrics().parks_count() >= 1);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn parks_count(&self) -> u64 {
        self.sum(|slot| &slot.parks)
    }

    /// Polls of the task that was made runnable last, before older ones. None on a current-thread
    /// runtime.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// let task = runtime.spawn(async { volt::spawn(async {}).await });
    /// runtime.block_on(task).unwrap().unwrap();
    /// assert_eq!(runtime.metrics().lifo_hits_count(), 0, "it runs them in order");
    /// # std::io::Result::Ok(())
    /// ```
    pub fn lifo_hits_count(&self) -> u64 {
        self.sum(|slot| &slot.lifo_hits)
    }

    /// Batches taken from the global queue.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// let task = runtime.spawn(async {});
    /// runtime.block_on(task).unwrap();
    /// assert_eq!(runtime.metrics().batch_fetches_count(), 1);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn batch_fetches_count(&self) -> u64 {
        self.sum(|slot| &slot.batch_fetches)
    }

    /// Polls that took longer than
    /// [`Builder::slow_poll_threshold`](super::Builder::slow_poll_threshold). Without that: polls
    /// that were seen to take longer than a millisecond, which is looked for while other members are idle.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let runtime = volt::runtime::Builder::new_current_thread()
    ///     .slow_poll_threshold(Duration::from_millis(1))
    ///     .build()?;
    /// runtime.block_on(async { std::thread::sleep(Duration::from_millis(2)) });
    /// assert_eq!(runtime.metrics().slow_polls_count(), 1);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn slow_polls_count(&self) -> u64 {
        match &self.shared.slow {
            Some(slow) => slow.count.get(),
            None => self.sum(|slot| &slot.slow_polls),
        }
    }

    /// The poll that took longest, among those that were longer than
    /// [`Builder::slow_poll_threshold`](super::Builder::slow_poll_threshold); None without that.
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
    pub fn slowest_poll(&self) -> Option<SlowPoll> {
        self.shared.slow.as_ref()?.slowest()
    }

    /// How often the driver was asked for events (or for what it would have answered) or waited in.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// runtime.block_on(async { volt::time::sleep(std::time::Duration::from_millis(1)).await });
    /// assert!(runtime.metrics().driver_wakeups_count() >= 1);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn driver_wakeups_count(&self) -> u64 {
        self.shared.driver_turns.get()
    }

    /// Polls done by `worker`.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// let task = runtime.spawn(volt::task::yield_now());
    /// runtime.block_on(task).unwrap();
    /// assert!(runtime.metrics().worker_poll_count(0) >= 2, "two of the task");
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// As all `worker_*` methods: if there is no such worker.
    pub fn worker_poll_count(&self, worker: usize) -> u64 {
        let _ = self.worker(worker);
        self.shared.slot(worker).polls()
    }

    /// Tasks that `worker` took from other members' queues.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// runtime.block_on(async { volt::spawn(async {}).await }).unwrap();
    /// assert_eq!(runtime.metrics().worker_stolen_tasks_count(0), 0, "there is no other member");
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn worker_stolen_tasks_count(&self, worker: usize) -> u64 {
        self.worker(worker).stolen.get()
    }

    /// How often `worker` found something in another member's queue.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// runtime.block_on(async { volt::spawn(async {}).await }).unwrap();
    /// assert_eq!(runtime.metrics().worker_steal_operations(0), 0, "there is no other member");
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn worker_steal_operations(&self, worker: usize) -> u64 {
        self.worker(worker).steals.get()
    }

    /// How often `worker` went to sleep.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// runtime.block_on(async { volt::time::sleep(std::time::Duration::from_millis(1)).await });
    /// assert!(runtime.metrics().worker_park_count(0) >= 1);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn worker_park_count(&self, worker: usize) -> u64 {
        self.worker(worker).parks.get()
    }

    /// How often `worker` went to sleep and woke up, together: it sleeps while this is odd, unless it changes just now.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// runtime.block_on(async { volt::time::sleep(std::time::Duration::from_millis(1)).await });
    /// let count = runtime.metrics().worker_park_unpark_count(0);
    /// assert!(count >= 2 && count % 2 == 0);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn worker_park_unpark_count(&self, worker: usize) -> u64 {
        let metrics = self.worker(worker);
        // This one first: it does not look as if it had woken up before it slept.
        let unparks = metrics.unparks.get();
        unparks.wrapping_add(metrics.parks.get())
    }

    /// For how long `worker` was awake, in all: it polled tasks, or looked for some. By the runtime's clock, and counted
    /// between its polls, every so often, and before it sleeps or ends. Of a current-thread runtime, not the first poll of a
    /// `block_on`, as in [`polls_count`](Self::polls_count).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// runtime.block_on(async {
    ///     volt::time::sleep(Duration::from_millis(1)).await;
    ///     std::thread::sleep(Duration::from_millis(5));
    ///     volt::time::sleep(Duration::from_millis(30)).await;
    /// });
    /// let busy = runtime.metrics().worker_total_busy_duration(0);
    /// assert!(busy >= Duration::from_millis(5), "it slept in a poll");
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn worker_total_busy_duration(&self, worker: usize) -> Duration {
        Duration::from_nanos(self.worker(worker).busy_ns.get())
    }

    /// Tasks that were spawned by tasks on `worker`.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// runtime.block_on(async { volt::spawn(async {}).await }).unwrap();
    /// assert_eq!(runtime.metrics().worker_local_spawn_count(0), 1);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn worker_local_spawn_count(&self, worker: usize) -> u64 {
        self.slot(worker).spawned()
    }

    /// Polls by `worker` of the task that was made runnable last.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// let task = runtime.spawn(async { volt::spawn(async {}).await });
    /// runtime.block_on(task).unwrap().unwrap();
    /// assert_eq!(runtime.metrics().worker_lifo_hits_count(0), 0, "it runs them in order");
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn worker_lifo_hits_count(&self, worker: usize) -> u64 {
        self.worker(worker).lifo_hits.get()
    }

    /// Batches that `worker` took from the global queue.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// let task = runtime.spawn(async {});
    /// runtime.block_on(task).unwrap();
    /// assert_eq!(runtime.metrics().worker_batch_fetches_count(0), 1);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn worker_batch_fetches_count(&self, worker: usize) -> u64 {
        self.worker(worker).batch_fetches.get()
    }

    /// Polls by `worker` that [`slow_polls_count`](Self::slow_polls_count) counts. (The first poll in a
    /// `block_on` is mostly no worker's: see [`polls_count`](Self::polls_count).)
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let runtime = volt::runtime::Builder::new_current_thread()
    ///     .slow_poll_threshold(Duration::from_millis(1))
    ///     .build()?;
    /// let task = runtime.spawn(async { std::thread::sleep(Duration::from_millis(2)) });
    /// runtime.block_on(task).unwrap();
    /// assert_eq!(runtime.metrics().worker_slow_polls_count(0), 1);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn worker_slow_polls_count(&self, worker: usize) -> u64 {
        self.worker(worker).slow_polls.get()
    }

    /// Tasks in the queues of `worker`.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// let metrics = runtime.metrics();
    /// runtime.block_on(async {
    ///     let tasks = [volt::spawn(async {}), volt::spawn(async {})];
    ///     assert_eq!(metrics.worker_local_queue_depth(0), 2);
    ///     for task in tasks {
    ///         task.await.unwrap();
    ///     }
    /// });
    /// assert_eq!(metrics.worker_local_queue_depth(0), 0);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn worker_local_queue_depth(&self, worker: usize) -> usize {
        let _ = self.worker(worker);
        self.shared.slot(worker).depth()
    }
}
