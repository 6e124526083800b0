//! How a pool is made.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::engine::{Config, processors};
use crate::pool::{ThreadPool, set_global};
use crate::sync_word::MAX_THREADS;

/// Makes a [`ThreadPool`].
///
/// # Examples
///
/// ```
/// let pool = volt_pool::Builder::new().threads(2).thread_name("render").build()?;
/// let name = pool.install(|| std::thread::current().name().map(str::to_owned));
/// assert_eq!(name.as_deref(), Some("render"));
/// # Ok::<(), volt_pool::BuildError>(())
/// ```
#[derive(Clone, Default)]
pub struct Builder {
    threads: Option<usize>,
    config: Config,
}

/// Why a pool cannot be made.
///
/// ```
/// use volt_pool::{BuildError, Builder};
///
/// assert_eq!(Builder::new().threads(0).build().unwrap_err(), BuildError::ZeroThreads);
/// let name = Builder::new().thread_name("a\0b").build().unwrap_err();
/// assert_eq!(name, BuildError::InvalidName);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// A pool needs at least one thread.
    ZeroThreads,
    /// More threads than the pool can count: [`ThreadPool::MAX_THREADS`].
    TooManyThreads,
    /// A thread's name contains a zero byte.
    InvalidName,
    /// The default pool exists already.
    GlobalPoolExists,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroThreads => f.write_str("a thread pool needs at least one thread"),
            Self::TooManyThreads => {
                write!(f, "a thread pool can have at most {MAX_THREADS} threads")
            }
            Self::InvalidName => f.write_str("the thread name contains a zero byte"),
            Self::GlobalPoolExists => f.write_str("the default thread pool exists already"),
        }
    }
}

impl Error for BuildError {}

impl Builder {
    /// The defaults: as many threads as the process may use processors, the system's stack size.
    ///
    /// ```
    /// let pool = volt_pool::Builder::new().build()?;
    /// assert!(pool.max_threads() >= 1);
    /// # Ok::<(), volt_pool::BuildError>(())
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The most threads that the pool starts. They start when there is work for them.
    ///
    /// ```
    /// let pool = volt_pool::Builder::new().threads(3).build()?;
    /// assert_eq!((pool.max_threads(), pool.started_threads()), (3, 0));
    /// # Ok::<(), volt_pool::BuildError>(())
    /// ```
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// The name of each thread.
    ///
    /// ```
    /// let pool = volt_pool::Builder::new().thread_name("render").build()?;
    /// let name = pool.install(|| std::thread::current().name().map(str::to_owned));
    /// assert_eq!(name.as_deref(), Some("render"));
    /// # Ok::<(), volt_pool::BuildError>(())
    /// ```
    #[must_use]
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.config.name = Some(name.into());
        self
    }

    /// The stack size of each thread, in bytes.
    ///
    /// ```
    /// let pool = volt_pool::Builder::new().stack_size(16 << 20).build()?;
    /// // More than the 2 MiB that threads have by default.
    /// assert_eq!(pool.install(|| std::hint::black_box([1_u8; 3 << 20])[7]), 1);
    /// # Ok::<(), volt_pool::BuildError>(())
    /// ```
    #[must_use]
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.config.stack_size = Some(bytes);
        self
    }

    /// Called on each thread, with its index, before its first task. A panic of it is discarded.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// static STARTED: AtomicUsize = AtomicUsize::new(0);
    /// let pool = volt_pool::Builder::new()
    ///     .threads(2)
    ///     .on_thread_start(|_index| drop(STARTED.fetch_add(1, Ordering::Relaxed)))
    ///     .build()?;
    /// assert!(pool.install(|| STARTED.load(Ordering::Relaxed)) >= 1);
    /// # Ok::<(), volt_pool::BuildError>(())
    /// ```
    #[must_use]
    pub fn on_thread_start(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.config.on_start = Some(Arc::new(hook));
        self
    }

    /// Called on each thread, with its index, after its last task, unless it spawns more itself. A
    /// panic of it is discarded.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// static STOPPED: AtomicUsize = AtomicUsize::new(0);
    /// let pool = volt_pool::Builder::new()
    ///     .threads(1)
    ///     .on_thread_stop(|_index| drop(STOPPED.fetch_add(1, Ordering::Relaxed)))
    ///     .build()?;
    /// pool.install(|| ());
    /// pool.shutdown();
    /// assert_eq!(STOPPED.load(Ordering::Relaxed), 1);
    /// # Ok::<(), volt_pool::BuildError>(())
    /// ```
    #[must_use]
    pub fn on_thread_stop(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.config.on_stop = Some(Arc::new(hook));
        self
    }

    /// Binds each thread to one of the processors that the process may use, in turn. Only on Linux;
    /// elsewhere, and where it is not permitted, it does nothing.
    ///
    /// ```
    /// let pool = volt_pool::Builder::new().threads(1).pin_threads(true).build()?;
    /// # #[cfg(target_os = "linux")]
    /// assert_eq!(pool.install(|| std::thread::available_parallelism().unwrap().get()), 1);
    /// # Ok::<(), volt_pool::BuildError>(())
    /// ```
    #[must_use]
    pub fn pin_threads(mut self, pin: bool) -> Self {
        self.config.pin = pin;
        self
    }

    /// Makes chosen thread starts fail, to test what then happens.
    #[doc(hidden)]
    #[must_use]
    pub fn fail_start(mut self, fail: impl Fn(usize) -> bool + Send + Sync + 'static) -> Self {
        self.config.fail_start = Some(Arc::new(fail));
        self
    }

    /// Makes the pool. It starts no thread yet.
    ///
    /// ```
    /// assert!(volt_pool::Builder::new().threads(2).build().is_ok());
    /// assert!(volt_pool::Builder::new().threads(usize::MAX).build().is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// If the number of threads is zero or more than can be counted, or the name is no name.
    pub fn build(mut self) -> Result<ThreadPool, BuildError> {
        let threads = match self.threads {
            None => processors().min(MAX_THREADS),
            Some(0) => return Err(BuildError::ZeroThreads),
            Some(threads) => match u32::try_from(threads) {
                Ok(threads) if threads <= MAX_THREADS => threads,
                _ => return Err(BuildError::TooManyThreads),
            },
        };
        if self.config.name.as_deref().is_some_and(|name| name.contains('\0')) {
            return Err(BuildError::InvalidName);
        }
        self.config.threads = threads;
        Ok(ThreadPool::with_config(self.config))
    }

    /// Makes the default pool, which the functions of this crate use outside of pools.
    ///
    /// ```
    /// use volt_pool::{BuildError, Builder};
    ///
    /// Builder::new().threads(2).build_global()?;
    /// assert_eq!(volt_pool::join(|| 1, || 2), (1, 2));
    /// assert_eq!(Builder::new().build_global(), Err(BuildError::GlobalPoolExists));
    /// # Ok::<(), volt_pool::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build), and if there is a default pool already: made by an earlier call,
    /// or by the first use.
    pub fn build_global(self) -> Result<(), BuildError> {
        set_global(self.build()?)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("threads", &self.threads)
            .field("thread_name", &self.config.name)
            .field("stack_size", &self.config.stack_size)
            .field("pin_threads", &self.config.pin)
            .finish_non_exhaustive()
    }
}
