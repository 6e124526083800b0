//! The settings of a runtime.
#![forbid(unsafe_code)]

use std::io;
use std::sync::Arc as StdArc;
use std::time::Duration;

use super::config::Config;
use super::context;
use super::driver::Driver;
use super::processors;
use super::scheduler::idle::MAX_MEMBERS;
use super::scheduler::shared::{GUESTS, Shared};
use super::slow_poll::{DEFAULT_THRESHOLD, SlowPoll};
use super::{LocalOptions, LocalRuntime, Runtime, RuntimeFlavor, start_worker};
use crate::choice;
use crate::reactor::EventsPerTurn;
use crate::task::Home;
use crate::time::Clock;

/// Guests are members, too.
const MAX_WORKERS: usize = 4_000;
const _: () = assert!(MAX_WORKERS + GUESTS <= MAX_MEMBERS);

/// Makes a [`Runtime`] with settings of its own.
///
/// ```
/// let runtime = volt::runtime::Builder::new_multi_thread()
///     .worker_threads(2)
///     .thread_name("my-worker")
///     .enable_all()
///     .build()?;
/// runtime.block_on(async { /* ... */ });
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct Builder {
    flavor: RuntimeFlavor,
    workers: Option<usize>,
    start_paused: bool,
    max_io_events: Option<usize>,
    max_busy_io_events: Option<usize>,
    config: Config,
}

impl Builder {
    fn new(flavor: RuntimeFlavor) -> Self {
        let lifo = flavor == RuntimeFlavor::MultiThread;
        let config = Config { lifo, seed: choice::random_seed(), ..Config::default() };
        Self {
            flavor,
            workers: None,
            start_paused: false,
            max_io_events: None,
            max_busy_io_events: None,
            config,
        }
    }

    /// A runtime with worker threads: one for each processor, unless
    /// [`worker_threads`](Self::worker_threads) says otherwise.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    /// assert_eq!(runtime.metrics().num_workers(), 2);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn new_multi_thread() -> Self {
        Self::new(RuntimeFlavor::MultiThread)
    }

    /// A runtime without threads: the thread in `block_on` runs the tasks, in the order in which
    /// they became runnable.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().build()?;
    /// let here = std::thread::current().id();
    /// let task = runtime.spawn(async { std::thread::current().id() });
    /// assert_eq!(runtime.block_on(task).unwrap(), here);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn new_current_thread() -> Self {
        Self::new(RuntimeFlavor::CurrentThread)
    }

    /// Sets the number of worker threads. Without it, the environment variable
    /// `VOLT_WORKER_THREADS` or the number of processors decides. No effect on a current-thread
    /// runtime.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_multi_thread().worker_threads(3).build()?;
    /// assert_eq!(runtime.metrics().num_workers(), 3);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If `workers` is 0.
    #[track_caller]
    pub fn worker_threads(&mut self, workers: usize) -> &mut Self {
        assert!(workers > 0, "`worker_threads` must be at least 1");
        self.workers = Some(workers);
        self
    }

    /// Limits the threads of `spawn_blocking`; 512 if not called.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_multi_thread()
    ///     .worker_threads(1)
    ///     .max_blocking_threads(2)
    ///     .build()?;
    /// let closures: Vec<_> = (0..10).map(|i| runtime.spawn_blocking(move || i)).collect();
    /// for (i, closure) in closures.into_iter().enumerate() {
    ///     assert_eq!(runtime.block_on(closure).unwrap(), i);
    /// }
    /// assert!(runtime.metrics().num_blocking_threads() <= 2);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If `threads` is 0.
    #[track_caller]
    pub fn max_blocking_threads(&mut self, threads: usize) -> &mut Self {
        assert!(threads > 0, "`max_blocking_threads` must be at least 1");
        self.config.max_blocking_threads = threads;
        self
    }

    /// How long an idle thread of `spawn_blocking` waits for more work; 10 s if not called.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let runtime = volt::runtime::Builder::new_current_thread()
    ///     .thread_keep_alive(Duration::from_millis(1))
    ///     .build()?;
    /// runtime.block_on(runtime.spawn_blocking(|| ())).unwrap();
    /// while runtime.metrics().num_blocking_threads() > 0 {
    ///     std::thread::sleep(Duration::from_millis(1));
    /// }
    /// # std::io::Result::Ok(())
    /// ```
    pub fn thread_keep_alive(&mut self, duration: Duration) -> &mut Self {
        self.config.thread_keep_alive = duration;
        self
    }

    /// Names the runtime, for logs and the like: [`Handle::name`](super::Handle::name). If not called, it has no name. The
    /// threads' names are another matter: [`thread_name`](Self::thread_name).
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().name("storage").build()?;
    /// assert_eq!(runtime.handle().name(), Some("storage"));
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If `name` is empty, or nothing but white space.
    #[track_caller]
    pub fn name(&mut self, name: impl Into<String>) -> &mut Self {
        let name = name.into();
        assert!(!name.trim().is_empty(), "`name` must not be empty");
        self.config.name = Some(name);
        self
    }

    /// Names the threads; "volt-worker" if not called.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().thread_name("mine").build()?;
    /// let name = runtime.spawn_blocking(|| std::thread::current().name().map(str::to_owned));
    /// assert_eq!(runtime.block_on(name).unwrap().as_deref(), Some("mine"));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn thread_name(&mut self, name: impl Into<String>) -> &mut Self {
        let name = name.into();
        self.thread_name_fn(move || name.clone())
    }

    /// Names each thread by a call of `f`.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// static NUMBER: AtomicU32 = AtomicU32::new(0);
    /// let runtime = volt::runtime::Builder::new_current_thread()
    ///     .thread_name_fn(|| format!("mine-{}", NUMBER.fetch_add(1, Ordering::Relaxed)))
    ///     .build()?;
    /// let name = runtime.spawn_blocking(|| std::thread::current().name().map(str::to_owned));
    /// assert_eq!(runtime.block_on(name).unwrap().as_deref(), Some("mine-0"));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn thread_name_fn<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() -> String + Send + Sync + 'static,
    {
        self.config.thread_name = StdArc::new(f);
        self
    }

    /// Sets the size of the threads' stacks, in bytes; the platform's default if not called.
    ///
    /// A thread in `block_on` whose own stack is smaller runs no tasks, unless it is the runtime's only thread.
    ///
    /// ```
    /// let runtime =
    ///     volt::runtime::Builder::new_current_thread().thread_stack_size(16 << 20).build()?;
    /// // More than the 2 MiB that threads have by default.
    /// let closure = runtime.spawn_blocking(|| std::hint::black_box([1_u8; 3 << 20])[0]);
    /// assert_eq!(runtime.block_on(closure).unwrap(), 1);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn thread_stack_size(&mut self, bytes: usize) -> &mut Self {
        self.config.thread_stack_size = Some(bytes);
        self
    }

    /// Called by each thread of the runtime when it starts.
    ///
    /// The runtime is the current one in it, on threads of `spawn_blocking`, too. Such a thread has a closure to run:
    /// how long the hook takes is how long that one waits. So it should not wait for another closure: the thread may be the one
    /// that is to run that.
    ///
    /// It is not called by threads in `block_on`, which then run no tasks, unless the runtime has no other threads.
    ///
    /// A panic in it is contained: the thread goes on.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicI32, Ordering};
    ///
    /// static THREADS: AtomicI32 = AtomicI32::new(0);
    /// let runtime = volt::runtime::Builder::new_multi_thread()
    ///     .worker_threads(2)
    ///     .on_thread_start(|| drop(THREADS.fetch_add(1, Ordering::Relaxed)))
    ///     .on_thread_stop(|| drop(THREADS.fetch_sub(1, Ordering::Relaxed)))
    ///     .build()?;
    /// let counted = runtime.spawn_blocking(|| THREADS.load(Ordering::Relaxed));
    /// assert!(runtime.block_on(counted).unwrap() >= 1);
    /// drop(runtime);
    /// assert_eq!(THREADS.load(Ordering::Relaxed), 0);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn on_thread_start(&mut self, f: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.config.on_thread_start = Some(StdArc::new(f));
        self
    }

    /// Called by each thread of the runtime when it ends.
    ///
    /// The runtime is the current one in it, unless a shutdown has not waited for this thread, and it is no more. It
    /// may have shut down: then what is spawned is cancelled.
    ///
    /// A panic in it is contained. The runtime's drop waits for it.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// static STOPPED: AtomicU32 = AtomicU32::new(0);
    /// let runtime = volt::runtime::Builder::new_multi_thread()
    ///     .worker_threads(2)
    ///     .on_thread_stop(|| drop(STOPPED.fetch_add(1, Ordering::Relaxed)))
    ///     .build()?;
    /// drop(runtime);
    /// assert_eq!(STOPPED.load(Ordering::Relaxed), 2);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn on_thread_stop(&mut self, f: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.config.on_thread_stop = Some(StdArc::new(f));
        self
    }

    /// Called by a thread before it sleeps for lack of tasks.
    ///
    /// It may spawn tasks and wake them, which is as from a thread of no runtime. It cannot wait for them
    /// (`block_on`, `join` and `block_in_place` panic), and should not block: this may be the thread that
    /// runs them, and waits for events. A panic in it is contained.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// static PARKED: AtomicU32 = AtomicU32::new(0);
    /// let runtime = volt::runtime::Builder::new_multi_thread()
    ///     .worker_threads(1)
    ///     .on_thread_park(|| drop(PARKED.fetch_add(1, Ordering::Relaxed)))
    ///     .build()?;
    /// // The worker has nothing to do.
    /// while PARKED.load(Ordering::Relaxed) == 0 {
    ///     std::thread::yield_now();
    /// }
    /// # drop(runtime);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn on_thread_park(&mut self, f: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.config.on_thread_park = Some(StdArc::new(f));
        self
    }

    /// Called by a thread after it slept.
    ///
    /// What holds for [`on_thread_park`](Self::on_thread_park) holds for it, too.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// static PARKED: AtomicU32 = AtomicU32::new(0);
    /// static UNPARKED: AtomicU32 = AtomicU32::new(0);
    /// let runtime = volt::runtime::Builder::new_multi_thread()
    ///     .worker_threads(2)
    ///     .on_thread_park(|| drop(PARKED.fetch_add(1, Ordering::Relaxed)))
    ///     .on_thread_unpark(|| drop(UNPARKED.fetch_add(1, Ordering::Relaxed)))
    ///     .build()?;
    /// // Nobody sleeps any more when the workers have ended.
    /// drop(runtime);
    /// assert_eq!(UNPARKED.load(Ordering::Relaxed), PARKED.load(Ordering::Relaxed));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn on_thread_unpark(&mut self, f: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.config.on_thread_unpark = Some(StdArc::new(f));
        self
    }

    /// Looks at the global queue every `polls` polls. If not called, the interval adapts to the
    /// time that polls take: one round of the worker's own tasks, from about 10 us to 250 us, and from
    /// 1 to 255 polls; or one poll, while polls take 2 us or more and tasks for which the worker's queue had no room are
    /// there.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_multi_thread()
    ///     .worker_threads(1)
    ///     .global_queue_interval(31)
    ///     .build()?;
    /// // A task that is always ready does not starve one that comes from outside.
    /// drop(runtime.spawn(async {
    ///     loop {
    ///         volt::task::yield_now().await;
    ///     }
    /// }));
    /// assert_eq!(runtime.block_on(async { runtime.spawn(async { 1 }).await.unwrap() }), 1);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If `polls` is 0.
    #[track_caller]
    pub fn global_queue_interval(&mut self, polls: u32) -> &mut Self {
        assert!(polls > 0, "`global_queue_interval` must be at least 1");
        self.config.global_queue_interval = Some(polls);
        self
    }

    /// Looks at timers and sockets after `polls` polls at the latest, if no idle thread does; 128 if
    /// not called. Among polls that take long it looks sooner, after about 250 us.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let runtime = volt::runtime::Builder::new_current_thread().event_interval(8).build()?;
    /// // A timer fires although there is always a task to run.
    /// drop(runtime.spawn(async {
    ///     loop {
    ///         volt::task::yield_now().await;
    ///     }
    /// }));
    /// runtime.block_on(async { volt::time::sleep(Duration::from_millis(1)).await });
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If `polls` is 0.
    #[track_caller]
    pub fn event_interval(&mut self, polls: u32) -> &mut Self {
        assert!(polls > 0, "`event_interval` must be at least 1");
        self.config.event_interval = Some(polls);
        self
    }

    /// Takes at most `events` events of sockets, pipes and the like from the system at a time; 512 if not called, and
    /// 65,536 at most. What is left is taken the next time.
    ///
    /// So many tasks may become runnable at once, or twice as many, as one may wait to read and another one to write.
    ///
    /// ```
    /// use volt::net::UdpSocket;
    ///
    /// let runtime = volt::runtime::Builder::new_current_thread().max_io_events_per_tick(1).build()?;
    /// runtime.block_on(async {
    ///     let (a, b) = (UdpSocket::bind("127.0.0.1:0").await?, UdpSocket::bind("127.0.0.1:0").await?);
    ///     b.send_to(b"to a", a.local_addr()?).await?;
    ///     a.send_to(b"to b", b.local_addr()?).await?;
    ///     // Both are there: two events.
    ///     assert_eq!((a.recv(&mut [0; 8]).await?, b.recv(&mut [0; 8]).await?), (4, 4));
    ///     std::io::Result::Ok(())
    /// })?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If `events` is 0.
    ///
    /// # Cost
    /// On Linux 12 bytes for each, as long as the runtime lives (on some platforms 16). The fewer, the more calls of the system.
    #[track_caller]
    pub fn max_io_events_per_tick(&mut self, events: usize) -> &mut Self {
        assert!(events > 0, "`max_io_events_per_tick` must be at least 1");
        self.max_io_events = Some(events);
        self
    }

    /// The same where the system is only asked what is there, and not waited for: mostly while there are tasks to run (see
    /// [`event_interval`](Self::event_interval)). As many as of
    /// [`max_io_events_per_tick`](Self::max_io_events_per_tick) if not called, and it may be more.
    ///
    /// With a small number a runtime that has too much to do leaves what comes in addition to the system, which keeps it as long as
    /// there is room, instead of making its own queues longer. The price is that an event may have to wait for several
    /// such looks: with a number of 1 a busy thread takes one event for each round of up to 128 polls.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_multi_thread()
    ///     .worker_threads(1)
    ///     .max_io_events_per_tick(128)
    ///     .max_io_events_per_busy_tick(8)
    ///     .build()?;
    /// runtime.block_on(volt::net::TcpListener::bind("127.0.0.1:0"))?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If `events` is 0.
    #[track_caller]
    pub fn max_io_events_per_busy_tick(&mut self, events: usize) -> &mut Self {
        assert!(events > 0, "`max_io_events_per_busy_tick` must be at least 1");
        self.max_busy_io_events = Some(events);
        self
    }

    /// Reports each poll that takes longer than `threshold`: see [`SlowPoll`], and
    /// [`RuntimeMetrics::slowest_poll`](super::RuntimeMetrics::slowest_poll).
    ///
    /// Without this, and without [`on_slow_poll`](Self::on_slow_poll), slow polls are only counted,
    /// by samples, and the clock is not read for it. Futures of a `LocalSet` are part of the poll
    /// of the set.
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
    ///
    /// # Cost
    /// In a runtime that reports: two looks at the clock and an uncontended lock for each poll, and
    /// an entry in a table for each task while it lives. In others nothing.
    pub fn slow_poll_threshold(&mut self, threshold: Duration) -> &mut Self {
        self.config.slow_poll_threshold = Some(threshold);
        self
    }

    /// Calls `f` after each poll that took longer than the
    /// [threshold](Self::slow_poll_threshold), 1 ms if there is none. It is called by the thread
    /// that polled, and holds it up; what it may do is told at [`on_thread_park`](Self::on_thread_park). A
    /// panic in it is contained.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    ///
    /// let (reports, reported) = mpsc::channel();
    /// let runtime = volt::runtime::Builder::new_current_thread()
    ///     .on_slow_poll(move |poll| reports.send(poll.duration()).unwrap())
    ///     .build()?;
    /// runtime.block_on(async { std::thread::sleep(Duration::from_millis(2)) });
    /// assert!(reported.recv().unwrap() >= Duration::from_millis(2));
    /// # std::io::Result::Ok(())
    /// ```
    pub fn on_slow_poll(&mut self, f: impl Fn(&SlowPoll) + Send + Sync + 'static) -> &mut Self {
        self.config.slow_poll_threshold.get_or_insert(DEFAULT_THRESHOLD);
        self.config.on_slow_poll = Some(StdArc::new(f));
        self
    }

    /// Seeds the scheduler's random choices, and those of [`select!`](crate::select!) in its tasks and in
    /// [`block_on`](crate::runtime::Runtime::block_on).
    ///
    /// On a current-thread runtime each call of `block_on` makes the same choices. With several workers the
    /// choices of each follow the seed, but which of them polls a task is a matter of time:
    /// [`sim`](crate::runtime::sim) replays that as well.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_multi_thread().worker_threads(2).rng_seed(7).build()?;
    /// assert_eq!(runtime.block_on(async { 1 }), 1);
    /// # std::io::Result::Ok(())
    /// ```
    #[cfg(feature = "test-util")]
    pub fn rng_seed(&mut self, seed: u64) -> &mut Self {
        self.config.seed = seed;
        self.config.choices = Some(seed);
        self
    }

    /// Sockets. They are always there; the method is, too, so that programs need no change.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().enable_io().build()?;
    /// runtime.block_on(volt::net::TcpListener::bind("127.0.0.1:0"))?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn enable_io(&mut self) -> &mut Self {
        self
    }

    /// Timers. They are always there.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().enable_time().build()?;
    /// runtime.block_on(async { volt::time::sleep(std::time::Duration::from_millis(1)).await });
    /// # std::io::Result::Ok(())
    /// ```
    pub fn enable_time(&mut self) -> &mut Self {
        self
    }

    /// Sockets and timers. They are always there.
    ///
    /// ```
    /// let runtime = volt::runtime::Builder::new_current_thread().enable_all().build()?;
    /// assert_eq!(runtime.block_on(async { 1 }), 1);
    /// # std::io::Result::Ok(())
    /// ```
    pub fn enable_all(&mut self) -> &mut Self {
        self
    }

    /// Starts with the clock stopped, for tests: see [`pause`](crate::time::pause).
    ///
    /// Only a current-thread runtime has a clock that can be stopped.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let runtime = volt::runtime::Builder::new_current_thread().start_paused(true).build()?;
    /// runtime.block_on(async {
    ///     let start = volt::time::Instant::now();
    ///     volt::time::sleep(Duration::from_secs(3600)).await;
    ///     assert_eq!(start.elapsed(), Duration::from_secs(3600));
    /// });
    /// # std::io::Result::Ok(())
    /// ```
    pub fn start_paused(&mut self, paused: bool) -> &mut Self {
        self.start_paused = paused;
        self
    }

    /// Makes the runtime, and starts its threads.
    ///
    /// ```
    /// use std::io::ErrorKind;
    /// use volt::runtime::Builder;
    ///
    /// assert!(Builder::new_current_thread().build().is_ok());
    /// let contradiction = Builder::new_multi_thread().start_paused(true).build();
    /// assert_eq!(contradiction.unwrap_err().kind(), ErrorKind::InvalidInput);
    /// ```
    ///
    /// # Errors
    /// If the operating system gives no thread or no descriptor: those that were started are
    /// stopped again. If the settings contradict each other, or ask for more than 4,000 workers.
    pub fn build(&mut self) -> io::Result<Runtime> {
        self.build_at(None)
    }

    /// Makes the runtime for tasks that need not be `Send`: see [`LocalRuntime`].
    ///
    /// ```
    /// use volt::runtime::{Builder, LocalOptions};
    ///
    /// let runtime = Builder::new_current_thread().build_local(LocalOptions::default())?;
    /// let task = runtime.spawn_local(async { 1 });
    /// assert_eq!(runtime.block_on(task).unwrap(), 1);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// As [`build`](Self::build).
    ///
    /// # Panics
    /// With [`new_multi_thread`](Self::new_multi_thread): such tasks stay on one thread.
    #[track_caller]
    pub fn build_local(&mut self, options: LocalOptions) -> io::Result<LocalRuntime> {
        assert!(
            self.flavor == RuntimeFlavor::CurrentThread,
            "`build_local` needs `Builder::new_current_thread`: a `LocalRuntime` has one thread"
        );
        LocalRuntime::build(options, |home| self.build_at(Some(home)))
    }

    fn events_per_turn(&self) -> EventsPerTurn {
        let default = EventsPerTurn::default();
        let busy = self.max_busy_io_events.or(self.max_io_events).unwrap_or(default.busy);
        EventsPerTurn { waiting: self.max_io_events.unwrap_or(default.waiting), busy }
    }

    /// Makes the runtime; one that is at `home` on one thread.
    fn build_at(&mut self, home: Option<Home>) -> io::Result<Runtime> {
        let invalid = |message: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        let (workers, clock) = match (self.flavor, self.start_paused) {
            (RuntimeFlavor::MultiThread, true) => {
                return invalid("`start_paused` needs a current-thread runtime");
            }
            (RuntimeFlavor::MultiThread, false) => {
                (self.workers.map_or_else(default_workers, Ok)?, Clock::real())
            }
            (RuntimeFlavor::CurrentThread, true) => (0, Clock::paused()),
            (RuntimeFlavor::CurrentThread, false) => (0, Clock::pausable()),
        };
        if workers > MAX_WORKERS {
            let name =
                if self.workers.is_some() { "worker_threads" } else { "VOLT_WORKER_THREADS" };
            return invalid(&format!("`{name}` is too large: a runtime has at most 4,000 workers"));
        }
        context::introduce();
        let (driver, handle) = Driver::taking(self.events_per_turn(), workers, clock)?;
        // Where there are no workers, nobody asks.
        let processors = (workers > 0).then(processors::available).flatten();
        let processors = processors.unwrap_or(usize::MAX);
        let config = Config { processors, home, ..self.config.clone() };
        let shared = Shared::new(config, workers, driver, handle);
        #[cfg(unix)]
        crate::process::watch_orphans_in(&shared.driver_handle.reactor);
        shared.look_for_crowds();
        let runtime = Runtime::from_shared(shared.clone());
        for index in 0..workers {
            if let Err(error) = start_worker(&shared, index) {
                shared.never_started(workers - index);
                let started = format!("worker thread {} of {workers}", index + 1);
                let message = format!("{started} could not be started: {error}");
                // The others end; where futures are polled, in the background.
                if context::in_async() {
                    runtime.shutdown_background();
                }
                return Err(io::Error::new(error.kind(), message));
            }
        }
        Ok(runtime)
    }
}

/// The number of workers that nobody chose.
fn default_workers() -> io::Result<usize> {
    let Ok(text) = std::env::var("VOLT_WORKER_THREADS") else {
        return Ok(processors::available().unwrap_or(1));
    };
    match text.parse() {
        Ok(workers) if workers > 0 => Ok(workers),
        _ => {
            let message = format!("`VOLT_WORKER_THREADS` is \"{text}\", not a positive number");
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
    }
}
