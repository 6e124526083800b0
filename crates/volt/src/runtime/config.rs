//! What a builder decides, as the running runtime needs it.

use std::sync::Arc;
use std::time::Duration;

use super::slow_poll;
use crate::choice::Seeded;
use crate::task::Home;

/// A callback of the builder.
pub(crate) type Hook = Arc<dyn Fn() + Send + Sync>;
/// The name of the next thread.
pub(crate) type ThreadName = Arc<dyn Fn() -> String + Send + Sync>;

/// The settings.
#[derive(Clone)]
pub(crate) struct Config {
    /// Of the runtime.
    pub(crate) name: Option<String>,
    /// Use the LIFO slot. A current-thread runtime does not: its order is that of a queue.
    pub(crate) lifo: bool,
    /// How many threads can run at once.
    pub(crate) processors: usize,
    /// Seed of the victims' choice.
    pub(crate) seed: u64,
    /// Seed of the users' choices (`choice.rs`), if it was given.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) choices: Option<u64>,
    /// A fixed interval instead of the adaptive one.
    pub(crate) global_queue_interval: Option<u32>,
    /// A fixed number of polls between two looks at the driver.
    pub(crate) event_interval: Option<u32>,
    pub(crate) thread_name: ThreadName,
    pub(crate) thread_stack_size: Option<usize>,
    pub(crate) thread_keep_alive: Duration,
    pub(crate) max_blocking_threads: usize,
    /// Leave out the look at the queues after publishing that a member parks: for the simulation,
    /// which has to find that.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) planted_bug: bool,
    pub(crate) on_thread_start: Option<Hook>,
    pub(crate) on_thread_stop: Option<Hook>,
    pub(crate) on_thread_park: Option<Hook>,
    pub(crate) on_thread_unpark: Option<Hook>,
    /// Of a `LocalRuntime`: its tasks run on one thread only.
    pub(crate) home: Option<Home>,
    /// Report polls that take longer.
    pub(crate) slow_poll_threshold: Option<Duration>,
    pub(crate) on_slow_poll: Option<slow_poll::Hook>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: None,
            lifo: true,
            processors: usize::MAX,
            seed: 0,
            #[cfg(any(test, feature = "test-util"))]
            choices: None,
            global_queue_interval: None,
            event_interval: None,
            thread_name: Arc::new(|| "volt-worker".into()),
            thread_stack_size: None,
            thread_keep_alive: Duration::from_secs(10),
            max_blocking_threads: 512,
            #[cfg(any(test, feature = "test-util"))]
            planted_bug: false,
            on_thread_start: None,
            on_thread_stop: None,
            on_thread_park: None,
            on_thread_unpark: None,
            home: None,
            slow_poll_threshold: None,
            on_slow_poll: None,
        }
    }
}

impl Config {
    /// Makes the choices of this thread those of the runtime's seed, if it was given one, for as long as the result
    /// lives. `index` tells workers apart.
    #[cfg(any(test, feature = "test-util"))]
    #[inline]
    pub(crate) fn seed_choices(&self, index: usize) -> Option<Seeded> {
        self.choices.map(|seed| Seeded::new(seed.wrapping_add(index as u64)))
    }

    /// Nobody can give it one.
    #[cfg(not(any(test, feature = "test-util")))]
    #[inline]
    pub(crate) fn seed_choices(&self, _index: usize) -> Option<Seeded> {
        None
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("name", &self.name)
            .field("lifo", &self.lifo)
            .field("global_queue_interval", &self.global_queue_interval)
            .field("event_interval", &self.event_interval)
            .field("thread_stack_size", &self.thread_stack_size)
            .field("thread_keep_alive", &self.thread_keep_alive)
            .field("max_blocking_threads", &self.max_blocking_threads)
            .finish_non_exhaustive()
    }
}
