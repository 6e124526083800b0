//! The threads and their queue. `blocking.rs` has the protocol.
#![forbid(unsafe_code)]

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use volt_sync::internal::Parker;
use volt_sync::internal::primitive::{Arc, AtomicUsize, Mutex, MutexGuard, spin, thread};

use super::task;
use crate::task::{JoinHandle, Notified, TaskQueue};

/// How often a thread looks at the queue before it goes to sleep. The first 64 rounds take a
/// microsecond or two, the others give the processor away.
const SPINS: u32 = if cfg!(volt_loom) { 1 } else { 80 };

const SHUT_DOWN: &str = "the runtime has shut down";

/// A hook of the builder.
type Hook = std::sync::Arc<dyn Fn() + Send + Sync>;

/// What the runtime's builder says about blocking threads.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) max_threads: usize,
    pub(crate) keep_alive: Duration,
    pub(crate) stack_size: Option<usize>,
    pub(crate) thread_name: std::sync::Arc<dyn Fn() -> String + Send + Sync>,
    pub(crate) on_start: Option<Hook>,
    pub(crate) on_stop: Option<Hook>,
    /// Called when a closure is queued, and after it has completed (not if it is dropped at
    /// shutdown). A paused clock stands still in between.
    pub(crate) around_task: Option<(Hook, Hook)>,
    /// Called once on each thread before all else; the thread keeps the result until it ends. The
    /// runtime enters its context here. It must not own the pool.
    pub(crate) enter: Option<std::sync::Arc<dyn Fn() -> Box<dyn Any> + Send + Sync>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_threads: 512,
            keep_alive: Duration::from_secs(10),
            stack_size: None,
            thread_name: std::sync::Arc::new(|| "volt-blocking".to_owned()),
            on_start: None,
            on_stop: None,
            around_task: None,
            enter: None,
        }
    }
}

/// The pool. Clones are the same pool; [`shutdown`](Self::shutdown) ends it.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Shared>);

struct Shared {
    config: Config,
    inner: Mutex<Inner>,
    /// The length of the queue, for threads that spin.
    waiting: AtomicUsize,
    /// Where `shutdown` waits for the last thread.
    ended: Parker,
}

struct Inner {
    queue: TaskQueue,
    /// Where the idle threads sleep.
    idle: Vec<Arc<Parker>>,
    /// How many threads will look at the queue again.
    threads: usize,
    /// How many threads have not ended; some may be about to.
    alive: usize,
    on_the_way: bool,
    shutdown: bool,
    /// The thread that ended last; the next one to end, or `shutdown`, joins it.
    ended: Option<thread::JoinHandle<()>>,
    /// The handles of the running threads.
    handles: Vec<(usize, thread::JoinHandle<()>)>,
    next_thread: usize,
}

impl Pool {
    pub(crate) fn new(config: Config) -> Self {
        Self(Arc::new(Shared {
            config,
            inner: Mutex::new(Inner {
                queue: TaskQueue::new(),
                idle: Vec::new(),
                threads: 0,
                alive: 0,
                on_the_way: false,
                shutdown: false,
                ended: None,
                handles: Vec::new(),
                next_thread: 0,
            }),
            waiting: AtomicUsize::new(0),
            ended: Parker::new(),
        }))
    }

    /// Runs `closure` on one of the pool's threads. After shutdown it is dropped, and the handle
    /// says that it was cancelled.
    ///
    /// # Errors
    /// If there is no thread, and none can be started. The closure is dropped.
    pub(crate) fn spawn<F, R>(&self, closure: F) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let (task, join) = task::new(closure, false);
        self.queue(task).map(|()| join)
    }

    /// As [`spawn`](Self::spawn), but a closure that was accepted is run even if the runtime shuts
    /// down before it begins.
    ///
    /// # Errors
    /// Also if the pool has shut down.
    pub(crate) fn spawn_mandatory<F, R>(&self, closure: F) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let (task, join) = task::new(closure, true);
        self.queue(task).map(|()| join)
    }

    fn queue(&self, task: Notified) -> io::Result<()> {
        if let Some((before, _)) = &self.0.config.around_task {
            before();
        }
        let mut inner = self.0.lock();
        if inner.shutdown {
            drop(inner);
            let mandatory = task::is_mandatory(&task);
            drop(task);
            return if mandatory { Err(io::Error::other(SHUT_DOWN)) } else { Ok(()) };
        }
        let started = if inner.threads == 0 { self.start(&mut inner) } else { Ok(()) };
        if let Err(error) = started {
            drop(inner);
            drop(task);
            return Err(error);
        }
        self.0.push(&mut inner, task);
        self.dispatch(inner);
        Ok(())
    }

    /// If a closure waits and nobody is on the way: wakes a thread, or starts one.
    fn dispatch(&self, mut inner: MutexGuard<'_, Inner>) {
        if inner.queue.is_empty() || inner.on_the_way {
            return;
        }
        if let Some(sleeper) = inner.idle.pop() {
            inner.on_the_way = true;
            drop(inner);
            sleeper.unpark();
        } else if inner.threads < self.0.config.max_threads.max(1) {
            // A failure is no loss: there are other threads (invariant 1), they come back here.
            let _refused = self.start(&mut inner);
        }
    }

    /// Starts a thread; it is on its way then.
    fn start(&self, inner: &mut Inner) -> io::Result<()> {
        let config = &self.0.config;
        let mut builder = thread::Builder::new().name((config.thread_name)());
        if let Some(size) = config.stack_size {
            builder = builder.stack_size(size);
        }
        let number = inner.next_thread;
        let pool = self.clone();
        let handle = builder.spawn(move || pool.thread(number))?;
        inner.next_thread += 1;
        inner.handles.push((number, handle));
        inner.threads += 1;
        inner.alive += 1;
        inner.on_the_way = true;
        Ok(())
    }

    /// A thread's life.
    fn thread(self, number: usize) {
        let shared = &*self.0;
        let entered = shared.config.enter.as_ref().and_then(|enter| contain(|| enter()));
        if let Some(hook) = &shared.config.on_start {
            contain(|| hook());
        }
        let mut inner = self.work();
        inner.threads -= 1;
        let own = inner.handles.iter().position(|(n, _)| *n == number);
        let own = own.map(|at| inner.handles.swap_remove(at).1);
        drop(inner);
        if let Some(hook) = &shared.config.on_stop {
            contain(|| hook());
        }
        contain(|| drop(entered));
        let mut inner = shared.lock();
        inner.alive -= 1;
        let last = inner.alive == 0 && inner.shutdown;
        let earlier = std::mem::replace(&mut inner.ended, own);
        drop(inner);
        if let Some(earlier) = earlier {
            let _its_panic = earlier.join();
        }
        if last {
            shared.ended.unpark();
        }
    }

    /// Runs closures until the thread has been idle for too long, or the pool shuts down. The queue
    /// is empty then, and the lock held.
    fn work(&self) -> MutexGuard<'_, Inner> {
        let shared = &*self.0;
        let sleeper = Arc::new(Parker::new());
        let mut inner = shared.lock();
        inner.on_the_way = false;
        loop {
            while let Some(task) = shared.pop(&mut inner) {
                self.dispatch(inner);
                task.run();
                if let Some((_, after)) = &shared.config.around_task {
                    after();
                }
                inner = shared.lock();
            }
            if inner.shutdown {
                return inner;
            }
            if !inner.on_the_way {
                inner.on_the_way = true;
                drop(inner);
                shared.spin();
                inner = shared.lock();
                inner.on_the_way = false;
                if inner.shutdown || !inner.queue.is_empty() {
                    continue;
                }
            }
            inner.idle.push(Arc::clone(&sleeper));
            drop(inner);
            let woken = shared.sleep(&sleeper);
            inner = shared.lock();
            if !woken {
                match inner.idle.iter().position(|other| Arc::ptr_eq(other, &sleeper)) {
                    Some(at) => {
                        inner.idle.swap_remove(at);
                        return inner;
                    }
                    None => {
                        // Called just now: the token is here or about to be.
                        drop(inner);
                        sleeper.park();
                        inner = shared.lock();
                    }
                }
            }
            inner.on_the_way = false;
        }
    }

    /// Ends the pool: no more closures are accepted, those that have not begun are dropped here
    /// (except mandatory ones). Then waits for the threads, for `timeout` at most; `None`: until
    /// they have ended. Returns whether they have.
    pub(crate) fn shutdown(&self, timeout: Option<Duration>) -> bool {
        let shared = &*self.0;
        let mut inner = shared.lock();
        let first = !std::mem::replace(&mut inner.shutdown, true);
        let sleepers = std::mem::take(&mut inner.idle);
        let (mut kept, mut dropped) = (TaskQueue::new(), TaskQueue::new());
        while let Some(task) = shared.pop(&mut inner) {
            if task::is_mandatory(&task) { kept.push(task) } else { dropped.push(task) }
        }
        inner.queue.append(&mut kept);
        let alive = inner.alive;
        drop(inner);
        for sleeper in &sleepers {
            sleeper.unpark();
        }
        drop(dropped);
        if alive > 0 && first && !shared.wait_for_end(timeout) {
            return false;
        }
        let mut inner = shared.lock();
        let all = inner.alive == 0;
        let ended = if all { inner.ended.take() } else { None };
        drop(inner);
        if let Some(thread) = ended {
            let _its_panic = thread.join();
        }
        all
    }

    /// How many threads there are, how many of them are idle, and how many closures wait.
    pub(crate) fn metrics(&self) -> (usize, usize, usize) {
        let inner = self.0.lock();
        (inner.threads, inner.idle.len(), inner.queue.len())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No user code runs under the lock, so a poisoned one is as good.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, inner: &mut Inner, task: Notified) {
        inner.queue.push(task);
        // ORD relaxed: a hint; the spinner looks again under the lock.
        self.waiting.store(inner.queue.len(), Relaxed);
    }

    fn pop(&self, inner: &mut Inner) -> Option<Notified> {
        let task = inner.queue.pop()?;
        // ORD relaxed: a hint; the spinner looks again under the lock.
        self.waiting.store(inner.queue.len(), Relaxed);
        Some(task)
    }

    /// Looks for a closure for a moment.
    fn spin(&self) {
        for attempt in 0..SPINS {
            // ORD relaxed: a hint; the caller looks again under the lock.
            if self.waiting.load(Relaxed) > 0 {
                return;
            }
            spin(attempt);
        }
    }

    /// Sleeps until called, or for the keep-alive time. Returns whether a token was consumed.
    fn sleep(&self, sleeper: &Parker) -> bool {
        let keep_alive = self.config.keep_alive;
        if keep_alive.is_zero() {
            return false;
        }
        // A spurious return only ends the thread early.
        sleeper.park_timeout(keep_alive)
    }

    /// Waits until the last thread has ended. False if that takes longer than `timeout`.
    fn wait_for_end(&self, timeout: Option<Duration>) -> bool {
        match timeout {
            None => {
                self.ended.park();
                true
            }
            Some(timeout) if timeout.is_zero() => false,
            // A spurious return says "not yet", which the caller checks.
            Some(timeout) => self.ended.park_timeout(timeout),
        }
    }
}

/// Runs a hook. A panic in it has been reported, and shall not cost a thread.
fn contain<R>(hook: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(hook)).ok()
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (threads, idle, waiting) = self.metrics();
        f.debug_struct("blocking::Pool")
            .field("threads", &threads)
            .field("idle", &idle)
            .field("waiting", &waiting)
            .finish()
    }
}
