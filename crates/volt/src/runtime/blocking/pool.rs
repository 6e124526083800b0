//! The threads and their queue. `blocking.rs` has the protocol.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::fmt;
use std::io;
use std::ptr;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use volt_sync::internal::Parker;
use volt_sync::internal::primitive::{self, Arc, AtomicUsize, Mutex, MutexGuard, thread};
use volt_sync::internal::slack;

use super::patience::Patience;
use super::task;
use crate::runtime::{contain, context, thread_name};
use crate::task::{JoinHandle, Notified, TaskQueue};

/// A hook of the builder.
pub(super) type Hook = std::sync::Arc<dyn Fn() + Send + Sync>;

/// What a thread is lent for.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

volt_sync::internal::primitive::const_thread_local! {
    /// The pool that this thread belongs to, an address to compare, and what it does there.
    static PLACE: Cell<(*const (), Part)> = Cell::new((ptr::null(), Part::Works));
}

/// What a thread does for its pool.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// It runs closures, or what it is lent for.
    Works,
    /// It calls a hook, before it is to do so or after it has.
    IsInHook,
    /// No more: its thread-locals are destroyed. The pool does not count it, and one that ends after it joins it.
    Ended,
}

/// True on the threads of any pool.
pub(crate) fn is_blocking_thread() -> bool {
    PLACE.try_with(|place| !place.get().0.is_null()).unwrap_or(false)
}

/// What the runtime's builder says about blocking threads.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) max_threads: usize,
    pub(crate) keep_alive: Duration,
    pub(crate) stack_size: Option<usize>,
    pub(crate) thread_name: std::sync::Arc<dyn Fn() -> String + Send + Sync>,
    /// The hooks of a thread. They must not own the pool.
    pub(crate) on_start: Option<Hook>,
    pub(crate) on_stop: Option<Hook>,
    /// Called when a closure is queued, and after it has completed or was dropped. A paused clock
    /// stands still in between. They do not panic.
    pub(crate) around_task: Option<(Hook, Hook)>,
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
    idle: Vec<Idle>,
    /// Idle threads that do not count, since they came back when there was no room.
    spare: Vec<Idle>,
    /// What threads that were idle have been woken for, if not for the queue.
    lent: Vec<(usize, Job)>,
    /// How many threads will look at the queue again. Those that are lent do not count.
    threads: usize,
    /// How many threads have not ended; some may be about to.
    alive: usize,
    on_the_way: bool,
    /// How many threads will look at the queue when their hook has returned.
    in_hook: usize,
    patience: Patience,
    shutdown: bool,
    /// Threads of the pool for which `shutdown` does not wait: the one that has called it.
    exempt: usize,
    /// The name of the next thread, if it was made already.
    name: Option<String>,
    /// The thread that ended last; the next one to end, or `shutdown` (invariant 5), joins it.
    ended: Option<thread::JoinHandle<()>>,
    /// The handles of the running threads.
    handles: Vec<(usize, thread::JoinHandle<()>)>,
    next_thread: usize,
}

/// An idle thread.
struct Idle {
    number: usize,
    /// Where it sleeps.
    parker: Arc<Parker>,
}

impl Pool {
    pub(crate) fn new(config: Config) -> Self {
        Self(Arc::new(Shared {
            config,
            inner: Mutex::new(Inner {
                queue: TaskQueue::new(),
                idle: Vec::new(),
                spare: Vec::new(),
                lent: Vec::new(),
                threads: 0,
                alive: 0,
                on_the_way: false,
                in_hook: 0,
                patience: Patience::default(),
                shutdown: false,
                exempt: 0,
                name: None,
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
        let shared = &*self.0;
        shared.hold();
        let mut inner = shared.lock();
        while !inner.shutdown && inner.threads == 0 {
            if let Some(sleeper) = inner.call_spare() {
                // It needs the lock first.
                sleeper.unpark();
                break;
            }
            let (locked, name) = shared.with_name(inner);
            inner = locked;
            let Some(name) = name else { continue };
            if let Err(error) = self.start(&mut inner, name, None) {
                drop(inner);
                shared.refuse(task);
                return Err(error);
            }
        }
        if inner.shutdown {
            drop(inner);
            let mandatory = task::is_mandatory(&task);
            shared.refuse(task);
            return if mandatory { Err(crate::runtime::shut_down("the runtime")) } else { Ok(()) };
        }
        shared.push(&mut inner, task);
        self.dispatch(inner);
        Ok(())
    }

    /// If a closure waits and nobody is on the way: wakes a thread; or starts one, if more of them wait than
    /// threads are in their hooks.
    fn dispatch<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) {
        loop {
            if inner.queue.is_empty() || inner.on_the_way {
                return;
            }
            if let Some(sleeper) = inner.idle.pop() {
                inner.on_the_way = true;
                drop(inner);
                return sleeper.parker.unpark();
            }
            if inner.threads >= self.0.max_threads() {
                return;
            }
            if let Some(sleeper) = inner.call_spare() {
                drop(inner);
                return sleeper.unpark();
            }
            if inner.queue.len() <= inner.in_hook {
                return;
            }
            let (locked, name) = self.0.with_name(inner);
            inner = locked;
            if let Some(name) = name {
                // A failure is no loss: there are other threads (invariant 1), they come back here.
                let _refused = self.start(&mut inner, name, None);
                return;
            }
        }
    }

    /// Runs `job` at once on a thread of its own: an idle one, or a new one. The number of such
    /// threads has no limit, and as long as the job runs they do not count as the pool's.
    ///
    /// A job does not panic.
    ///
    /// # Errors
    /// If there is no idle thread and none can be started. The job is dropped.
    pub(crate) fn lend(&self, job: Job) -> io::Result<()> {
        let mut inner = self.0.lock();
        loop {
            let spare = inner.spare.pop();
            if let Some(sleeper) = spare.or_else(|| inner.take_idle()) {
                inner.lent.push((sleeper.number, job));
                drop(inner);
                sleeper.parker.unpark();
                return Ok(());
            }
            let (locked, name) = self.0.with_name(inner);
            inner = locked;
            if let Some(name) = name {
                return self.start(&mut inner, name, Some(job));
            }
        }
    }

    /// Starts a thread. It is on its way then, or lent for `job`.
    fn start(&self, inner: &mut Inner, name: String, job: Option<Job>) -> io::Result<()> {
        let mut builder = thread::Builder::new().name(name);
        if let Some(size) = self.0.config.stack_size {
            builder = builder.stack_size(size);
        }
        let number = inner.next_thread;
        let lent = job.is_some();
        let pool = self.clone();
        let handle = slack::without(|| builder.spawn(move || pool.thread(number, job)))?;
        inner.next_thread += 1;
        inner.handles.push((number, handle));
        inner.alive += 1;
        if !lent {
            inner.threads += 1;
            inner.on_the_way = true;
        }
        Ok(())
    }

    /// A thread's life.
    fn thread(self, number: usize, job: Option<Job>) {
        let shared = &*self.0;
        context::set_stack_size(shared.config.stack_size);
        if let Some(hook) = &shared.config.on_start {
            if job.is_none() {
                self.pass_on();
            }
            self.begin(Part::IsInHook);
            contain(|| hook());
        }
        self.begin(Part::Works);
        let mut inner = self.work(number, job);
        let own = inner.handles.iter().position(|(n, _)| *n == number);
        let own = own.map(|at| inner.handles.swap_remove(at).1);
        drop(inner);
        if let Some(hook) = &shared.config.on_stop {
            self.begin(Part::IsInHook);
            contain(|| hook());
        }
        let mut inner = shared.lock();
        inner.alive -= 1;
        let last = inner.alive <= inner.exempt && inner.shutdown;
        let earlier = std::mem::replace(&mut inner.ended, own);
        drop(inner);
        self.begin(Part::Ended);
        // First, since the earlier one may be who waits.
        if last {
            shared.ended.unpark();
        }
        if let Some(earlier) = earlier {
            let _its_panic = earlier.join();
        }
    }

    /// The thread that was on its way calls its hook, which may take long: the next one is sent meanwhile.
    fn pass_on(&self) {
        let mut inner = self.0.lock();
        inner.on_the_way = false;
        inner.in_hook += 1;
        self.dispatch(inner);
    }

    /// Runs closures, and what the thread is lent for, until it has been idle for too long, or the
    /// pool shuts down. Then the queue is empty (or others see to it), the lock held, and the thread
    /// no longer counted in `threads`.
    fn work(&self, number: usize, mut job: Option<Job>) -> MutexGuard<'_, Inner> {
        let shared = &*self.0;
        let parker = Arc::new(Parker::new());
        let mut comes_from_hook = shared.config.on_start.is_some() && job.is_none();
        let mut inner = shared.lock();
        loop {
            // It is running: lent if it has a job, otherwise counted, and on the way or from its hook.
            let counted = match job.take() {
                None => {
                    if std::mem::take(&mut comes_from_hook) {
                        inner.in_hook -= 1;
                    } else {
                        inner.on_the_way = false;
                    }
                    inner = self.work_off(inner);
                    true
                }
                Some(job) => {
                    drop(inner);
                    job();
                    inner = shared.lock();
                    let room = inner.threads < shared.max_threads();
                    inner.threads += usize::from(room);
                    if room && !inner.queue.is_empty() {
                        inner = self.work_off(inner);
                    }
                    room
                }
            };
            if inner.shutdown {
                inner.threads -= usize::from(counted);
                return inner;
            }
            let idle = Idle { number, parker: Arc::clone(&parker) };
            if counted {
                inner.idle.push(idle)
            } else {
                inner.spare.push(idle)
            }
            drop(inner);
            let woken = shared.sleep(&parker);
            inner = shared.lock();
            if !woken {
                if inner.forget(number, counted) {
                    inner.threads -= usize::from(counted);
                    return inner;
                }
                // Called just now: the token is here or about to be.
                drop(inner);
                parker.park();
                inner = shared.lock();
            }
            job = inner.take_job(number);
        }
    }

    /// Runs closures until there have been none for a moment.
    fn work_off<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        let shared = &*self.0;
        loop {
            while let Some(task) = shared.pop(&mut inner) {
                self.dispatch(inner);
                task.run();
                shared.release();
                inner = shared.lock();
            }
            if inner.shutdown || inner.on_the_way {
                return inner;
            }
            inner.on_the_way = true;
            let mut patience = inner.patience;
            drop(inner);
            // ORD relaxed: a hint; the queue is looked at under the lock.
            patience.wait(|| shared.waiting.load(Relaxed) > 0);
            inner = shared.lock();
            inner.patience = patience;
            inner.on_the_way = false;
            if inner.queue.is_empty() {
                return inner;
            }
        }
    }

    /// The identity of the pool.
    fn address(&self) -> *const () {
        ptr::from_ref(&*self.0).cast()
    }

    /// From here on this thread does that for the pool.
    fn begin(&self, part: Part) {
        let _ended = PLACE.try_with(|place| place.set((self.address(), part)));
    }

    /// What this thread does for the pool, if it is one of the pool's.
    fn part(&self) -> Option<Part> {
        let (pool, part) = PLACE.try_with(Cell::get).ok()?;
        (pool == self.address()).then_some(part)
    }

    /// True in a hook of a thread of this pool.
    pub(crate) fn is_in_hook(&self) -> bool {
        self.part() == Some(Part::IsInHook)
    }

    /// Ends the pool: no more closures are accepted, those that have not begun are dropped here
    /// (except mandatory ones). Then waits for the threads, for `timeout` at most; `None`: until
    /// they have ended. Returns whether they have. A thread of the pool does not wait for itself; a
    /// thread-local of it, for none to be gone, but only for what they run.
    pub(crate) fn shutdown(&self, timeout: Option<Duration>) -> bool {
        self.shutdown_by(self.part(), timeout)
    }

    /// As [`shutdown`](Self::shutdown), on a thread that does this for the pool.
    pub(super) fn shutdown_by(&self, part: Option<Part>, timeout: Option<Duration>) -> bool {
        let shared = &*self.0;
        let own = usize::from(part.is_some_and(|part| part != Part::Ended));
        let mut inner = shared.lock();
        let first = !std::mem::replace(&mut inner.shutdown, true);
        inner.exempt = own;
        let mut sleepers = std::mem::take(&mut inner.idle);
        // These count while they end, as if they had been called.
        inner.threads += inner.spare.len();
        let mut spare = std::mem::take(&mut inner.spare);
        sleepers.append(&mut spare);
        let (mut kept, mut dropped) = (TaskQueue::new(), TaskQueue::new());
        while let Some(task) = shared.pop(&mut inner) {
            if task::is_mandatory(&task) { kept.push(task) } else { dropped.push(task) }
        }
        inner.queue.append(&mut kept);
        let alive = inner.alive;
        drop(inner);
        for sleeper in &sleepers {
            sleeper.parker.unpark();
        }
        while let Some(task) = dropped.pop() {
            shared.refuse(task);
        }
        if alive > own && first && !shared.wait_for_end(timeout) {
            return false;
        }
        let mut inner = shared.lock();
        let all = inner.alive <= own;
        // It may be the current thread, or one that waits until this one is gone.
        let ended = inner.ended.take_if(|_| all && part != Some(Part::Ended));
        drop(inner);
        // Its thread-locals take any time.
        if let Some(thread) = ended.filter(|_| timeout.is_none()) {
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

#[cfg(all(test, not(volt_loom)))]
impl Pool {
    /// How many threads are idle or spare.
    pub(super) fn sleeping(&self) -> usize {
        let inner = self.0.lock();
        inner.idle.len() + inner.spare.len()
    }
}

impl Inner {
    /// Takes an idle thread that will not look at the queue again.
    fn take_idle(&mut self) -> Option<Idle> {
        let idle = self.idle.pop()?;
        self.threads -= 1;
        Some(idle)
    }

    /// Sends a spare thread on its way, if there is one: wake it. There must be room.
    fn call_spare(&mut self) -> Option<Arc<Parker>> {
        let spare = self.spare.pop()?;
        self.threads += 1;
        self.on_the_way = true;
        Some(spare.parker)
    }

    /// Removes a thread that gets up by itself. False if it has been called.
    fn forget(&mut self, number: usize, counted: bool) -> bool {
        let list = if counted { &mut self.idle } else { &mut self.spare };
        let at = list.iter().position(|idle| idle.number == number);
        at.map(|at| list.swap_remove(at)).is_some()
    }

    /// What a thread that was called is lent for; otherwise it is on the way.
    fn take_job(&mut self, number: usize) -> Option<Job> {
        let at = self.lent.iter().position(|(lent, _)| *lent == number)?;
        Some(self.lent.swap_remove(at).1)
    }
}

impl Shared {
    fn max_threads(&self) -> usize {
        self.config.max_threads.max(1)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No user code runs under the lock, so a poisoned one is as good.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A closure was made.
    fn hold(&self) {
        if let Some((before, _)) = &self.config.around_task {
            before();
        }
    }

    /// A closure is gone.
    fn release(&self) {
        if let Some((_, after)) = &self.config.around_task {
            after();
        }
    }

    /// Drops a closure that is not run.
    fn refuse(&self, task: Notified) {
        drop(task);
        self.release();
    }

    /// The name for a thread, with the lock held all the time; or none, with the lock given back in
    /// between, and the name kept for the next call: it is made by user code.
    fn with_name<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
    ) -> (MutexGuard<'a, Inner>, Option<String>) {
        if let Some(name) = inner.name.take() {
            return (inner, Some(name));
        }
        drop(inner);
        let before = PLACE.try_with(|place| {
            let before = place.get();
            let part =
                if before.0 == ptr::from_ref(self).cast() { Part::IsInHook } else { before.1 };
            place.replace((before.0, part))
        });
        let name = thread_name(&self.config.thread_name);
        let _ended = before.map(|before| PLACE.try_with(|place| place.set(before)));
        inner = self.lock();
        inner.name = Some(name);
        (inner, None)
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
        let deadline = timeout.and_then(|timeout| primitive::now().checked_add(timeout));
        let Some(deadline) = deadline else {
            self.ended.park();
            return true;
        };
        loop {
            let left = deadline.saturating_duration_since(primitive::now());
            if left.is_zero() {
                return false;
            }
            // A spurious return is not the end.
            if self.ended.park_timeout(left) {
                return true;
            }
        }
    }
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
