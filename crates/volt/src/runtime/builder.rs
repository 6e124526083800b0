//! The settings of a runtime.
#![forbid(unsafe_code)]

use std::io;
use std::sync::Arc as StdArc;
use std::time::Duration;

use super::config::Config;
use super::driver::Driver;
use super::scheduler::idle::MAX_MEMBERS;
use super::scheduler::shared::Shared;
use super::slow_poll::{DEFAULT_THRESHOLD, SlowPoll};
use super::{Runtime, RuntimeFlavor, start_worker};
use crate::time::Clock;

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
    config: Config,
}

impl Builder {
    fn new(flavor: RuntimeFlavor) -> Self {
        let lifo = flavor == RuntimeFlavor::MultiThread;
        let config = Config { lifo, seed: random_seed(), ..Config::default() };
        Self { flavor, workers: None, start_paused: false, config }
    }

    /// A runtime with worker threads: one for each processor, unless
    /// [`worker_threads`](Self::worker_threads) says otherwise.
    pub fn new_multi_thread() -> Self {
        Self::new(RuntimeFlavor::MultiThread)
    }

    /// A runtime without threads: the thread in `block_on` runs the tasks, in the order in which
    /// they became runnable.
    pub fn new_current_thread() -> Self {
        Self::new(RuntimeFlavor::CurrentThread)
    }

    /// Sets the number of worker threads. Without it, the environment variable
    /// `VOLT_WORKER_THREADS` or the number of processors decides. No effect on a current-thread
    /// runtime.
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
    /// # Panics
    /// If `threads` is 0.
    #[track_caller]
    pub fn max_blocking_threads(&mut self, threads: usize) -> &mut Self {
        assert!(threads > 0, "`max_blocking_threads` must be at least 1");
        self.config.max_blocking_threads = threads;
        self
    }

    /// How long an idle thread of `spawn_blocking` waits for more work; 10 s if not called.
    pub fn thread_keep_alive(&mut self, duration: Duration) -> &mut Self {
        self.config.thread_keep_alive = duration;
        self
    }

    /// Names the threads; "volt-worker" if not called.
    pub fn thread_name(&mut self, name: impl Into<String>) -> &mut Self {
        let name = name.into();
        self.thread_name_fn(move || name.clone())
    }

    /// Names each thread by a call of `f`.
    pub fn thread_name_fn<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() -> String + Send + Sync + 'static,
    {
        self.config.thread_name = StdArc::new(f);
        self
    }

    /// Sets the size of the threads' stacks, in bytes; the platform's default if not called.
    pub fn thread_stack_size(&mut self, bytes: usize) -> &mut Self {
        self.config.thread_stack_size = Some(bytes);
        self
    }

    /// Called by each thread of the runtime when it starts.
    pub fn on_thread_start(&mut self, f: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.config.on_thread_start = Some(StdArc::new(f));
        self
    }

    /// Called by each thread of the runtime when it ends.
    pub fn on_thread_stop(&mut self, f: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.config.on_thread_stop = Some(StdArc::new(f));
        self
    }

    /// Called by a thread before it sleeps for lack of tasks.
    pub fn on_thread_park(&mut self, f: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.config.on_thread_park = Some(StdArc::new(f));
        self
    }

    /// Called by a thread after it slept.
    pub fn on_thread_unpark(&mut self, f: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.config.on_thread_unpark = Some(StdArc::new(f));
        self
    }

    /// Looks at the global queue every `polls` polls. If not called, the interval adapts to the
    /// time that polls take: one round of the worker's own tasks, from about 10 us to 250 us, and from
    /// 1 to 255 polls.
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
    /// # Panics
    /// If `polls` is 0.
    #[track_caller]
    pub fn event_interval(&mut self, polls: u32) -> &mut Self {
        assert!(polls > 0, "`event_interval` must be at least 1");
        self.config.event_interval = Some(polls);
        self
    }

    /// Reports each poll that takes longer than `threshold`: see [`SlowPoll`], and
    /// [`RuntimeMetrics::slowest_poll`](super::RuntimeMetrics::slowest_poll).
    ///
    /// Without this, and without [`on_slow_poll`](Self::on_slow_poll), slow polls are only counted,
    /// by samples, and the clock is not read for it. Futures of a `LocalSet` are part of the poll
    /// of the set.
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
    /// that polled, and holds it up; a panic in it is contained.
    pub fn on_slow_poll(&mut self, f: impl Fn(&SlowPoll) + Send + Sync + 'static) -> &mut Self {
        self.config.slow_poll_threshold.get_or_insert(DEFAULT_THRESHOLD);
        self.config.on_slow_poll = Some(StdArc::new(f));
        self
    }

    /// Seeds the scheduler's random choices.
    #[cfg(feature = "test-util")]
    pub fn rng_seed(&mut self, seed: u64) -> &mut Self {
        self.config.seed = seed;
        self
    }

    /// Sockets. They are always there; the method is, too, so that programs need no change.
    pub fn enable_io(&mut self) -> &mut Self {
        self
    }

    /// Timers. They are always there.
    pub fn enable_time(&mut self) -> &mut Self {
        self
    }

    /// Sockets and timers. They are always there.
    pub fn enable_all(&mut self) -> &mut Self {
        self
    }

    /// Starts with the clock stopped, for tests: see [`pause`](crate::time::pause).
    ///
    /// Only a current-thread runtime has a clock that can be stopped.
    pub fn start_paused(&mut self, paused: bool) -> &mut Self {
        self.start_paused = paused;
        self
    }

    /// Makes the runtime, and starts its threads.
    ///
    /// # Errors
    /// If the operating system gives no thread or no descriptor: those that were started are
    /// stopped again. If the settings contradict each other, or ask for more than 4,000 workers.
    pub fn build(&mut self) -> io::Result<Runtime> {
        let invalid = |message| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
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
        if workers + 64 > MAX_MEMBERS {
            return invalid("`worker_threads` is too large: a runtime has at most 4,000 workers");
        }
        let (driver, handle) = Driver::new(workers, clock)?;
        let shared = Shared::new(self.config.clone(), workers, driver, handle);
        // If a thread cannot be started, dropping this ends the others.
        let runtime = Runtime::from_shared(shared.clone());
        for index in 0..workers {
            if let Err(error) = start_worker(&shared, index) {
                shared.never_started(workers - index);
                return Err(error);
            }
        }
        Ok(runtime)
    }
}

/// The number of workers that nobody chose.
fn default_workers() -> io::Result<usize> {
    let Ok(text) = std::env::var("VOLT_WORKER_THREADS") else {
        return Ok(std::thread::available_parallelism().map_or(1, usize::from));
    };
    match text.parse() {
        Ok(workers) if workers > 0 => Ok(workers),
        _ => {
            let message = format!("`VOLT_WORKER_THREADS` is \"{text}\", not a positive number");
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
    }
}

/// Different in each process, and for each runtime.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
