//! The safe functions, free-standing and of a pool.
#![forbid(unsafe_code)]

use std::future::Future;
use std::ptr;

use volt_sync::internal::primitive::thread;

use crate::broadcast::broadcast as broadcast_in;
use crate::engine::Core;
use crate::install;
use crate::pool::{ThreadPool, global, spawn_on, with_core};
use crate::run::{Run, run};
use crate::scope::{Scope, run_scope};
use crate::worker::{Worker, with_current};

/// Runs both closures, the second one perhaps on another thread, and returns both results.
///
/// On a thread of a pool, `a` runs at once and in place; `b` runs there after it, unless another
/// thread has taken it in the meantime. Then this thread helps with parts of `b` that the other
/// thread forks, until it has ended. A thread outside of pools becomes a guest of the
/// [default pool](global) for that time, and works in place in the same way.
///
/// There is no promise that both run at the same time: they must not wait for each other. If not a
/// single thread can be started, both run here, and nothing else: what others have queued is left to
/// them, since the caller may hold a lock that it wants.
///
/// # Panics
///
/// With the panic of `a` or of `b`, after both have ended; that of `a` comes first. If `a` panics
/// and `b` has not begun, it never runs.
///
/// # Cost
///
/// A few stores, as long as nobody looks for work. At most 1,024 forks of one thread are open at a
/// time; deeper ones run in sequence.
///
/// # Examples
///
/// ```
/// let mut left = [3, 1, 2];
/// let mut right = [6, 5, 4];
/// volt_pool::join(|| left.sort(), || right.sort());
/// assert_eq!((left, right), ([1, 2, 3], [4, 5, 6]));
/// ```
#[inline]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    with_current(|worker| match worker {
        Some(worker) => worker.join(a, b),
        None => join_outside(a, b),
    })
}

#[cold]
#[inline(never)]
fn join_outside<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    install::enter(global().core(), move || join_inside(a, b))
}

fn join_inside<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB,
{
    with_current(|worker| match worker {
        Some(worker) => worker.join(a, b),
        // No thread could be started, so this is a thread outside.
        None => (a(), b()),
    })
}

/// Calls `body` with a scope into which it can spawn tasks that borrow, and returns when all of
/// them have ended. On a thread of a pool, the tasks run in that pool, elsewhere in the
/// [default one](global). `body` runs in place.
///
/// While it waits, this thread runs tasks of the scope, and forks that come from them.
///
/// # Panics
///
/// With the panic of `body`, or the first one of a task, after all tasks have ended.
///
/// # Examples
///
/// ```
/// let words = ["a", "scope", "borrows"];
/// let mut lengths = [0; 3];
/// volt_pool::scope(|s| {
///     for (word, length) in words.iter().zip(&mut lengths) {
///         s.spawn(move |_| *length = word.len());
///     }
/// });
/// assert_eq!(lengths, [1, 5, 7]);
/// ```
pub fn scope<'scope, F, R>(body: F) -> R
where
    F: FnOnce(&Scope<'scope>) -> R + Send,
    R: Send,
{
    with_core(|core| install::enter(core, || run_scope(core, body)))
}

/// As [`scope`], for a `body` that cannot be sent to another thread. (A `scope` of *another* pool than
/// that of the calling thread runs its body there; this one never does.)
///
/// # Panics
///
/// As [`scope`].
///
/// # Examples
///
/// ```
/// let here = std::thread::current().id();
/// volt_pool::in_place_scope(|s| {
///     assert_eq!(std::thread::current().id(), here);
///     s.spawn(|_| ());
/// });
/// ```
pub fn in_place_scope<'scope, F, R>(body: F) -> R
where
    F: FnOnce(&Scope<'scope>) -> R,
{
    with_core(|core| run_scope_here(core, body))
}

fn run_scope_here<'scope, R>(core: &Core, body: impl FnOnce(&Scope<'scope>) -> R) -> R {
    with_current(|worker| match worker {
        Some(_) => run_scope(core, body),
        None => install::enter_in_place(core, || run_scope(core, body)),
    })
}

/// Runs `work` in the pool of this thread, or the [default one](global): see
/// [`ThreadPool::spawn`].
///
/// # Examples
///
/// ```
/// let (send, receive) = std::sync::mpsc::channel();
/// volt_pool::spawn(move || send.send("done").unwrap());
/// assert_eq!(receive.recv(), Ok("done"));
/// ```
pub fn spawn(work: impl FnOnce() + Send + 'static) {
    with_core(|core| spawn_on(core, work));
}

/// Calls `function` on each thread of the pool of this thread, or of the [default one](global): see
/// [`ThreadPool::broadcast`].
///
/// # Panics
///
/// As [`ThreadPool::broadcast`].
///
/// # Examples
///
/// ```
/// let indices = volt_pool::broadcast(|index| index);
/// assert!(!indices.is_empty());
/// ```
pub fn broadcast<R: Send>(function: impl Fn(usize) -> R + Sync) -> Vec<R> {
    with_core(|core| broadcast_in(core, &function))
}

/// The index of this thread in its pool, from 0 to the number of threads; `None` outside of pools.
///
/// # Examples
///
/// ```
/// assert_eq!(volt_pool::current_thread_index(), None);
/// let pool = volt_pool::ThreadPool::with_threads(1);
/// assert_eq!(pool.install(volt_pool::current_thread_index), Some(0));
/// ```
pub fn current_thread_index() -> Option<usize> {
    with_current(|worker| worker.and_then(Worker::thread))
}

/// The most threads of this thread's pool, or of the [default one](global).
///
/// # Examples
///
/// ```
/// let pool = volt_pool::ThreadPool::with_threads(3);
/// assert_eq!(pool.install(volt_pool::current_num_threads), 3);
/// ```
pub fn current_num_threads() -> usize {
    with_core(Core::max_threads)
}

/// Runs one piece of work of this thread's pool, whatever it is. True if there was one. Outside of
/// pools it gives the processor away, and returns false.
///
/// This is the only function that runs *unrelated* work on the caller's stack: hold no lock across
/// it that other work may want.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// static READY: AtomicBool = AtomicBool::new(false);
///
/// let pool = volt_pool::ThreadPool::with_threads(1);
/// pool.install(|| {
///     volt_pool::spawn(|| READY.store(true, Ordering::Release));
///     while !READY.load(Ordering::Acquire) {
///         volt_pool::yield_now();
///     }
/// });
/// ```
pub fn yield_now() -> bool {
    with_current(|worker| {
        let worker = worker.filter(|worker| worker.thread().is_some());
        let found = worker.and_then(|worker| worker.find().map(|found| (worker, found)));
        match found {
            Some((worker, (work, more))) => {
                if more {
                    worker.core().notify();
                }
                worker.run(work);
                true
            }
            None => {
                thread::yield_now();
                false
            }
        }
    })
}

/// Waits for `future` on this thread, which sleeps in between. On a thread of a pool, that thread
/// does nothing else meanwhile: the future must not need it.
///
/// # Panics
/// Where a Volt runtime polls futures: in a task, in the future of `block_on`, and in wakers and hooks that it calls.
///
/// # Examples
///
/// ```
/// let pool = volt_pool::ThreadPool::with_threads(2);
/// let future = pool.run(|| 6 * 7);
/// assert_eq!(volt_pool::block_on(future), 42);
/// ```
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    volt_sync::internal::assert_may_block("pool::block_on");
    volt_sync::internal::block_on(future)
}

impl ThreadPool {
    /// Runs `function` on a thread of the pool, and returns its result. On a thread of this pool it
    /// runs at once. (The caller of [`enter`](Self::enter), and of whatever enters the pool, is none.)
    /// Inside, the functions of this crate use this pool.
    ///
    /// If the pool was shut down, or not a single thread can be started, it runs on the calling
    /// thread. If that is a thread of another pool, or has entered one, it may be called back to while
    /// it waits: calls from inside `function` into the caller's own pool run on the caller's thread.
    ///
    /// # Deadlocks
    ///
    /// A thread of another pool that waits here runs nothing else, since its caller may hold a lock.
    /// So two pools whose tasks call into each other *without* being parts of one call can block each
    /// other: when each thread of the one waits for the other, and each of the other for the one. Let
    /// such calls go in one direction only, or let async code wait for [`run`](Self::run).
    ///
    /// # Panics
    ///
    /// With the panic of `function`.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = volt_pool::ThreadPool::with_threads(2);
    /// assert_eq!(pool.install(|| volt_pool::join(|| 1, || 2)), (1, 2));
    /// ```
    pub fn install<F, R>(&self, function: F) -> R
    where
        F: FnOnce() -> R + Send,
        R: Send,
    {
        install::install(self.core(), function)
    }

    /// Makes this pool the current one while `function` runs, so that [`join`], [`scope`] and
    /// [`par`](crate::par) use it. A thread outside of pools becomes a guest for that time: `function`
    /// runs in place, and the threads of the pool take from it what it forks. That costs about
    /// 50 ns, where [`install`](Self::install) wakes a thread and waits for it. On a thread of
    /// another pool it is the same as `install`.
    ///
    /// # Panics
    ///
    /// With the panic of `function`.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = volt_pool::ThreadPool::with_threads(2);
    /// let here = std::thread::current().id();
    /// let squares = pool.enter(|| {
    ///     assert_eq!(std::thread::current().id(), here);
    ///     volt_pool::par::par_map_range(0..4, |i| i * i)
    /// });
    /// assert_eq!(squares, [0, 1, 4, 9]);
    /// ```
    pub fn enter<F, R>(&self, function: F) -> R
    where
        F: FnOnce() -> R + Send,
        R: Send,
    {
        install::enter(self.core(), function)
    }

    /// [`join`] in this pool.
    ///
    /// # Panics
    ///
    /// As [`join`].
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = volt_pool::ThreadPool::with_threads(2);
    /// assert_eq!(pool.join(|| 1, || 2), (1, 2));
    /// ```
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        install::enter(self.core(), move || join_inside(a, b))
    }

    /// [`scope`] in this pool.
    ///
    /// # Panics
    ///
    /// As [`scope`].
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = volt_pool::ThreadPool::with_threads(2);
    /// let mut numbers = vec![1, 2, 3];
    /// pool.scope(|s| {
    ///     for number in &mut numbers {
    ///         s.spawn(move |_| *number += 1);
    ///     }
    /// });
    /// assert_eq!(numbers, [2, 3, 4]);
    /// ```
    pub fn scope<'scope, F, R>(&self, body: F) -> R
    where
        F: FnOnce(&Scope<'scope>) -> R + Send,
        R: Send,
    {
        install::enter(self.core(), || run_scope(self.core(), body))
    }

    /// [`in_place_scope`] in this pool.
    ///
    /// # Panics
    ///
    /// As [`scope`].
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = volt_pool::ThreadPool::with_threads(2);
    /// let mut answer = 0;
    /// pool.in_place_scope(|s| s.spawn(|_| answer = 42));
    /// assert_eq!(answer, 42);
    /// ```
    pub fn in_place_scope<'scope, F, R>(&self, body: F) -> R
    where
        F: FnOnce(&Scope<'scope>) -> R,
    {
        run_scope_here(self.core(), body)
    }

    /// Calls `function` once on each thread of the pool, with the thread's index, and returns the
    /// results in the order of the indices. Starts all threads of the pool first, as far as that is
    /// possible.
    ///
    /// A thread does its part when it has ended what it is doing, or while it waits for something
    /// of which this broadcast is a part. If a task calls this, also while it waits for anything else in a pool: in
    /// a `join`, a `scope`, an `install`, another broadcast. So tasks may broadcast at the same time; but whoever waits in
    /// a pool in which they do should hold no lock meanwhile that `function` wants. And calls that go from one pool to
    /// another and back may lock up if parts of broadcasts call broadcasts in both. If not a single thread can be
    /// started, or the pool was shut down, the result may be empty.
    ///
    /// # Panics
    ///
    /// With the first panic of a call, after all have ended.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = volt_pool::ThreadPool::with_threads(2);
    /// assert_eq!(pool.broadcast(|index| index * 10), [0, 10]);
    /// ```
    pub fn broadcast<R: Send>(&self, function: impl Fn(usize) -> R + Sync) -> Vec<R> {
        broadcast_in(self.core(), &function)
    }

    /// Queues `work` at once, and returns a future of its result: how async code hands work to the
    /// pool. The future can be polled by any executor.
    ///
    /// Dropping the future before `work` has begun cancels it: the closure is dropped at once on the
    /// dropping thread and never runs. If `work` has begun, it runs to its end, and its result is
    /// dropped. If the pool is shut down and hands the work back, polling the future runs it there.
    ///
    /// # Panics
    ///
    /// Awaiting it panics with the panic of `work`.
    ///
    /// # Examples
    ///
    /// ```
    /// # volt_pool::block_on(async {
    /// let pool = volt_pool::ThreadPool::new();
    /// let sum = pool.run(|| (1..=100_u32).sum::<u32>()).await;
    /// assert_eq!(sum, 5050);
    /// # });
    /// ```
    pub fn run<F, T>(&self, work: F) -> Run<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        run(self.core(), work)
    }

    /// The index of this thread in *this* pool; `None` on all other threads.
    ///
    /// # Examples
    ///
    /// ```
    /// let pool = volt_pool::ThreadPool::with_threads(1);
    /// assert_eq!(pool.current_thread_index(), None);
    /// assert_eq!(pool.install(|| pool.current_thread_index()), Some(0));
    /// ```
    pub fn current_thread_index(&self) -> Option<usize> {
        with_current(|worker| {
            let worker = worker.filter(|worker| ptr::eq(worker.core(), self.core()));
            worker.and_then(Worker::thread)
        })
    }
}
