//! Tasks that stay on one thread, and may therefore hold what is not `Send`.
//!
//! Purpose: a scheduler inside a future. Whoever awaits the `LocalSet` (or its `run_until`) runs
//! its tasks.
//!
//! State: a queue for wake-ups from inside (no synchronisation), a queue under a lock for all
//! others, and the waker of whoever drives the set.
//!
//! Invariants:
//! 1. `Shared::local` is touched by the thread of the `LocalSet` only: by the set itself, which is
//!    not `Send`, and by `schedule` if the thread-local `DRIVEN` says that this thread drives it.
//! 2. The `LocalSet`'s drop closes the owned list and empties both queues before it returns. That
//!    is invariant 4 of `task.rs`; the remote path takes its strong count before the hand-over.
//!
//! Progress: the driver registers its waker, then runs what is queued. A task that is queued from
//! outside is queued first and then wakes the driver. One that is queued from inside is seen by the
//! driver, which wakes itself if it leaves anything. What it drives may drive the set as well (`block_on` in
//! `block_in_place`) and register another waker, whose owner is gone later: so the driver registers again, and looks
//! again, before it returns. And there may be several drivers (`run_until`), of which the last one is registered: when
//! it ends, it registers another one, and looks for that one.
//!
//! Cost: a wake-up from inside takes no lock; one from outside a lock and a wake-up of the driver.

pub(crate) mod home;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::marker::{PhantomData, PhantomPinned};
use std::panic::Location;
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use pin_project_lite::pin_project;
use volt_sync::internal::WaiterSlot;
use volt_sync::internal::primitive::{Arc, Mutex, UnsafeCell, spin};

use super::waker::is_of_task;
use super::{Header, JoinHandle, Notified, OwnedTasks, Schedule, TaskQueue, boxed_if_large, trace};
use crate::runtime::{Id, Runtime, context, level};

/// The most tasks that are polled before the driver lets others go first.
pub(crate) const MAX_POLLS: usize = 61;

/// The queue from outside goes first once in this many polls.
const REMOTE_INTERVAL: usize = 31;

/// A set of tasks that run on the thread that drives the set.
///
/// Its tasks need not be `Send`. They run only while the set itself, or a future that
/// [`run_until`](Self::run_until) returned, is polled. Dropping the set drops its tasks.
///
/// # Examples
/// ```
/// use std::rc::Rc;
/// use volt::task::{LocalSet, spawn_local};
///
/// # volt::run(async {
/// let local = LocalSet::new();
/// let shared = Rc::new(7);
/// let sum = local
///     .run_until(async move {
///         let copy = shared.clone();
///         let task = spawn_local(async move { *copy });
///         *shared + task.await.unwrap()
///     })
///     .await;
/// assert_eq!(sum, 14);
/// # });
/// ```
pub struct LocalSet {
    shared: Arc<Shared>,
    /// The futures of `run_until` that were polled and have not ended: where they are pinned, and their wakers.
    /// An entry stays until its future ends; the wakers are counted, since they are used with the list released.
    drivers: RefCell<Vec<(*const (), Rc<Waker>)>>,
    _not_send: PhantomData<*const ()>,
}

struct Shared {
    id: Id,
    local: UnsafeCell<TaskQueue>,
    remote: Mutex<TaskQueue>,
    owned: OwnedTasks,
    driver: WaiterSlot,
}

// SAFETY: `local` is touched on one thread (invariant 1); it is empty when the last `Arc` goes,
// on whatever thread (invariant 2). The rest is `Send`.
unsafe impl Send for Shared {}
// SAFETY: `local` is touched on one thread (invariant 1). The rest is `Sync`.
unsafe impl Sync for Shared {}

volt_sync::internal::primitive::const_thread_local! {
    /// Where `spawn_local` spawns, at which level: what runs on top of a wait in the set is none of its tasks.
    static CURRENT: RefCell<Option<(u32, Arc<Shared>)>> = RefCell::new(None);
    /// What this thread drives just now.
    static DRIVEN: Cell<*const Driven> = Cell::new(ptr::null());
    /// Whether another executor polls what drives it.
    static BY_OTHERS: Cell<bool> = Cell::new(false);
}

/// A set that is driven further down on this thread's stack: the frame is in the list while it is, and before
/// the one that it was driven on top of.
struct Driven {
    set: *const Shared,
    outer: *const Driven,
}

impl Driven {
    /// The one that this thread drives just now.
    fn innermost<'a>() -> Option<&'a Self> {
        let top = DRIVEN.try_with(Cell::get).unwrap_or(ptr::null());
        // SAFETY: the frames in the list are on this thread's stack and in use, while whoever asks is called from there.
        unsafe { top.as_ref() }
    }
}

/// True if this thread drives the set whose address this is, or one inside of it, or will: its tasks go on only when what
/// this thread does now has returned.
pub(crate) fn is_driven_below(scheduler: *const ()) -> bool {
    // SAFETY: as the innermost one, the others are on this thread's stack and in use.
    let outer = |driven: &&Driven| unsafe { driven.outer.as_ref() };
    std::iter::successors(Driven::innermost(), outer)
        .any(|driven| ptr::eq(driven.set.cast(), scheduler))
        || home::is_of_runtime(scheduler)
}

/// How many tasks of the set that this thread drives are queued.
pub(crate) fn queued_in_set() -> usize {
    let Some(driven) = Driven::innermost() else { return 0 };
    // SAFETY: a set that is driven is alive.
    let set = unsafe { &*driven.set };
    // SAFETY: this thread drives the set.
    unsafe { set.queued() }
}

/// True if `waker` belongs to a task or a `block_on` of this crate, and no other executor is between
/// them and this thread's runtime.
pub(crate) fn is_polled_by_us(waker: &Waker) -> bool {
    (is_of_task(waker) || context::is_of_place(waker))
        && !BY_OTHERS.try_with(Cell::get).unwrap_or(true)
}

/// Spawns a task on the current [`LocalSet`], or on the current [`LocalRuntime`](crate::runtime::LocalRuntime).
///
/// # Examples
/// ```
/// let local = volt::task::LocalSet::new();
/// let runtime = volt::runtime::Builder::new_current_thread().build().unwrap();
/// let value = local.block_on(&runtime, async {
///     let cell = std::rc::Rc::new(std::cell::Cell::new(1));
///     let theirs = cell.clone();
///     volt::task::spawn_local(async move { theirs.set(2) }).await.unwrap();
///     cell.get()
/// });
/// assert_eq!(value, 2);
/// ```
///
/// # Panics
/// Outside of one: it must be called in a task of a `LocalSet`, in [`LocalSet::run_until`], or
/// while a [`LocalSet::enter`] guard lives; or on the thread of a `LocalRuntime`, in whatever that polls, or while a guard of
/// its `enter` lives.
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let current = home::of_runtime().or_else(current_set).expect(
        "`spawn_local` needs a `LocalSet` or a `LocalRuntime`: call it inside `LocalSet::run_until`, a \
         local task, or `LocalRuntime::block_on`, or under `enter` of one of them",
    );
    let size = size_of::<F>();
    // SAFETY: the current set belongs to this thread: the thread-local is set by a `LocalSet` and
    // its guards only, which stay on their thread; and that of the runtime only counts on its thread.
    boxed_if_large!(pin future: F => unsafe { Shared::spawn(&current, future, size) })
}

fn current_set() -> Option<Arc<Shared>> {
    let current = CURRENT.try_with(|current| current.borrow().clone()).ok().flatten();
    current.filter(|(level, _)| *level == level::current()).map(|(_, set)| set)
}

impl LocalSet {
    /// A set without tasks.
    ///
    /// ```
    /// let local = volt::task::LocalSet::new();
    /// assert_eq!(volt::run(local.run_until(async { 1 })), 1);
    /// ```
    pub fn new() -> Self {
        let shared = Shared {
            id: Id::next(),
            local: UnsafeCell::new(TaskQueue::new()),
            remote: Mutex::new(TaskQueue::new()),
            owned: OwnedTasks::new(1),
            driver: WaiterSlot::new(),
        };
        Self { shared: Arc::new(shared), drivers: RefCell::new(Vec::new()), _not_send: PhantomData }
    }

    /// Tells this set from all others, and from all runtimes: see [`Id`].
    ///
    /// ```
    /// let (a, b) = (volt::task::LocalSet::new(), volt::task::LocalSet::new());
    /// assert_ne!(a.id(), b.id());
    /// ```
    pub fn id(&self) -> Id {
        self.shared.id
    }

    /// Spawns a task on this set. It runs when the set is driven.
    ///
    /// ```
    /// use std::rc::Rc;
    ///
    /// let local = volt::task::LocalSet::new();
    /// let not_send = Rc::new(1);
    /// let task = local.spawn_local(async move { *not_send });
    /// assert_eq!(volt::run(local.run_until(task)).unwrap(), 1);
    /// ```
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let size = size_of::<F>();
        // SAFETY: a `LocalSet` stays on its thread.
        boxed_if_large!(pin future: F => unsafe { Shared::spawn(&self.shared, future, size) })
    }

    /// Drives the set while `future` runs, and returns what it returns. Tasks that remain wait
    /// for the set to be driven again.
    ///
    /// ```
    /// volt::run(async {
    ///     let local = volt::task::LocalSet::new();
    ///     let value = local.run_until(async { volt::task::spawn_local(async { 1 }).await });
    ///     assert_eq!(value.await.unwrap(), 1);
    /// });
    /// ```
    ///
    /// # Cancel safety
    /// If this is dropped, so is `future`; the set's tasks remain.
    pub fn run_until<F: Future>(&self, future: F) -> impl Future<Output = F::Output> {
        RunUntil {
            future,
            drives: Drives { set: self, polled: Cell::new(false), _pinned: PhantomPinned },
        }
    }

    /// As [`run_until`](Self::run_until), blocking the thread as
    /// [`Runtime::block_on`](crate::runtime::Runtime::block_on) does.
    ///
    /// ```
    /// let runtime = volt::runtime::Runtime::new()?;
    /// let local = volt::task::LocalSet::new();
    /// let value = local.block_on(&runtime, async { volt::task::spawn_local(async { 1 }).await });
    /// assert_eq!(value.unwrap(), 1);
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Panics
    /// If called where futures are polled, or if the future panics.
    #[track_caller]
    pub fn block_on<F: Future>(&self, runtime: &Runtime, future: F) -> F::Output {
        boxed_if_large!(pin future: F => runtime.block_on(self.run_until(future)))
    }

    /// Makes [`spawn_local`] spawn on this set until the guard is dropped.
    ///
    /// # Examples
    /// ```
    /// let local = volt::task::LocalSet::new();
    /// let guard = local.enter();
    /// let task = volt::task::spawn_local(async { 1 });
    /// drop(guard);
    /// # volt::run(async move {
    /// local.await;
    /// assert_eq!(task.await.unwrap(), 1);
    /// # });
    /// ```
    pub fn enter(&self) -> LocalEnterGuard {
        Shared::enter(&self.shared)
    }

    /// Registers a driver.
    fn register(&self, driver: &Waker) {
        // SAFETY: a `LocalSet` stays on its thread, so the calls follow each other.
        unsafe { self.shared.driver.register(driver) };
    }

    /// Registers a driver again if it is not any more: because it has been woken, or because somebody else has
    /// driven the set since, who may be gone. True if tasks are queued since.
    fn register_again(&self, driver: &Waker) -> bool {
        if self.shared.driver.holds(driver) {
            return false;
        }
        self.register(driver);
        // SAFETY: a `LocalSet` stays on its thread.
        unsafe { self.shared.queued() > 0 }
    }

    /// Registers the driver that was the last to come, if there is one. It goes on if tasks are queued.
    fn register_another(&self) {
        loop {
            let last = self.drivers.borrow().last().map(|(_, waker)| Rc::clone(waker));
            let Some(other) = last else { return };
            self.register(&other);
            // To register it is to clone it, and to drop the one before: user code, in which it may have ended.
            let is_other = |(_, waker): &(*const (), Rc<Waker>)| Rc::ptr_eq(waker, &other);
            if self.drivers.borrow().iter().any(is_other) {
                // SAFETY: a `LocalSet` stays on its thread.
                if unsafe { self.shared.queued() } > 0 {
                    other.wake_by_ref();
                }
                return;
            }
        }
    }

    /// Runs tasks; true if some may remain.
    fn tick(&self) -> bool {
        let looks = context::looks_between_yields();
        // SAFETY: a `LocalSet` stays on its thread.
        let queue = || unsafe { self.shared.queued() };
        let mut yields = 0;
        for polls in 0..MAX_POLLS {
            let queued = if looks { queue() } else { 0 };
            // SAFETY: a `LocalSet` stays on its thread.
            match unsafe { self.shared.pop(polls % REMOTE_INTERVAL == 0) } {
                Some(task) => task.run(),
                None => return false,
            }
            if looks && queue() == queued {
                yields += 1;
                if yields >= queued {
                    // All have yielded, it seems, and the thread has other things to look at.
                    return true;
                }
            } else {
                yields = 0;
            }
        }
        true
    }

    /// As [`drive`](Self::drive), for a driver that is polled with `cx`.
    fn drive_for<R>(&self, cx: &mut Context<'_>, f: impl FnOnce(&mut Context<'_>) -> R) -> R {
        struct Restore;
        impl Drop for Restore {
            fn drop(&mut self) {
                let _ended = BY_OTHERS.try_with(|others| others.set(false));
            }
        }
        self.register(cx.waker());
        // What is inside of a set that others drive is driven by others, too.
        let marked = !is_polled_by_us(cx.waker())
            && !BY_OTHERS.try_with(|others| others.replace(true)).unwrap_or(true);
        let _restore = marked.then_some(Restore);
        self.drive(|| f(cx))
    }

    fn drive<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: a `LocalSet` stays on its thread.
        unsafe { Shared::drive(&self.shared, f) }
    }
}

fn replace_current(new: Option<(u32, Arc<Shared>)>) -> Option<(u32, Arc<Shared>)> {
    // An error means that the thread is ending: nobody spawns any more.
    CURRENT.try_with(|current| current.replace(new)).ok().flatten()
}

impl Shared {
    /// Spawns a task of a future that had this size before it was boxed.
    ///
    /// # Safety
    /// The caller is on the thread of the `LocalSet`.
    #[track_caller]
    unsafe fn spawn<F>(this: &Arc<Self>, future: F, size: usize) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let future = trace::task("local", future, size, Location::caller());
        // SAFETY: an `Arc`'s, so not null. (That of a reference would not do: `schedule` changes the count.)
        let pointer = unsafe { NonNull::new_unchecked(Arc::as_ptr(this).cast_mut()) };
        // SAFETY:
        // 1. The set's drop closes and empties the list; `release` is below.
        // 2. The set runs, and closes, on the current thread.
        let (join, task) = unsafe { this.owned.bind(0, future, pointer) };
        if let Some(task) = task {
            // SAFETY: we are on the set's thread.
            unsafe { this.push_local(task) };
            if !this.is_driven() {
                this.driver.wake();
            }
        }
        join
    }

    fn enter(this: &Arc<Self>) -> LocalEnterGuard {
        LocalEnterGuard {
            outer: replace_current(Some((level::current(), this.clone()))),
            _not_send: PhantomData,
        }
    }

    /// Makes the set current, and driven by this thread, while `f` runs.
    ///
    /// # Safety
    /// The caller is on the thread of the `LocalSet`.
    unsafe fn drive<R>(this: &Arc<Self>, f: impl FnOnce() -> R) -> R {
        struct Restore(*const Driven);
        impl Drop for Restore {
            fn drop(&mut self) {
                let _ended = DRIVEN.try_with(|driven| driven.set(self.0));
            }
        }
        let _current = Self::enter(this);
        let outer = DRIVEN.try_with(Cell::get).unwrap_or(ptr::null());
        let frame = Driven { set: Arc::as_ptr(this), outer };
        let _restore = Restore(outer);
        let _ended = DRIVEN.try_with(|driven| driven.set(&raw const frame));
        f()
    }

    fn is_driven(&self) -> bool {
        Driven::innermost().is_some_and(|driven| ptr::eq(driven.set, self))
    }

    /// # Safety
    /// The caller is on the thread of the `LocalSet`.
    unsafe fn push_local(&self, task: Notified) {
        // SAFETY: invariant 1; no user code runs inside, so nobody else is in the queue.
        self.local.with_mut(|local| unsafe { &mut *local }.push(task));
    }

    /// How many tasks are queued.
    ///
    /// # Safety
    /// The caller is on the thread of the `LocalSet`.
    unsafe fn queued(&self) -> usize {
        // SAFETY: invariant 1; the queue is not touched meanwhile.
        let local = self.local.with(|local| unsafe { (*local).len() });
        local + self.remote.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// # Safety
    /// The caller is on the thread of the `LocalSet`.
    unsafe fn pop(&self, remote_first: bool) -> Option<Notified> {
        let local = || {
            // SAFETY: invariant 1; no user code runs inside, so nobody else is in the queue.
            self.local.with_mut(|local| unsafe { &mut *local }.pop())
        };
        let remote = || self.remote.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if remote_first { remote().or_else(local) } else { local().or_else(remote) }
    }
}

// SAFETY:
// 1. `release` unlinks the task from `owned`.
// 2. The drop of the `LocalSet`, which has a strong count, closes and empties it.
unsafe impl Schedule for Shared {
    unsafe fn schedule(this: NonNull<Self>, task: Notified) {
        // SAFETY: alive: we have not handed the task over.
        let shared = unsafe { this.as_ref() };
        if shared.is_driven() {
            // SAFETY: this thread drives the set, so it is the set's.
            return unsafe { shared.push_local(task) };
        }
        // SAFETY: alive, and the pointer is an `Arc`'s.
        unsafe { Arc::increment_strong_count(this.as_ptr()) };
        // SAFETY: the count was just added.
        let shared = unsafe { Arc::from_raw(this.as_ptr()) };
        shared.remote.lock().unwrap_or_else(PoisonError::into_inner).push(task);
        shared.driver.wake();
    }

    unsafe fn release(this: NonNull<Self>, task: NonNull<Header>) -> bool {
        // SAFETY: alive: the task is in the list.
        let shared = unsafe { this.as_ref() };
        // SAFETY: the runner calls this once.
        unsafe { shared.owned.release(task) }
    }
}

/// Drives the set until all of its tasks have completed.
impl Future for LocalSet {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.drive_for(cx, |_| self.tick()) {
            cx.waker().wake_by_ref();
            Poll::Pending
        } else if self.shared.owned.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Shared {
    /// Drops all tasks that can be reached, and what is spawned later at once.
    ///
    /// # Safety
    /// The caller is on the thread of the `LocalSet`.
    unsafe fn cancel(this: &Arc<Self>) {
        let cancel = || {
            this.owned.close_and_cancel(|| ());
            // SAFETY: we are on the set's thread.
            while let Some(task) = unsafe { this.pop(false) } {
                drop(task);
            }
        };
        // SAFETY: the same obligation.
        unsafe { Self::drive(this, cancel) };
    }

    /// Drops all tasks, and what is spawned later at once. Not within the drop of one of them, which would wait for itself.
    ///
    /// # Safety
    /// The caller is on the thread of the `LocalSet`.
    unsafe fn close(this: &Arc<Self>) {
        for attempt in 0.. {
            // SAFETY: the same obligation.
            unsafe { Self::cancel(this) };
            if this.owned.is_empty() {
                return;
            }
            // Some thread is about to queue a task: a few instructions more.
            spin(attempt);
        }
    }
}

impl Drop for LocalSet {
    fn drop(&mut self) {
        // SAFETY: a `LocalSet` stays on its thread.
        unsafe { Shared::close(&self.shared) };
    }
}

impl Default for LocalSet {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LocalSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSet").field("tasks", &self.shared.owned.len()).finish()
    }
}

pin_project! {
    /// The future of `run_until`.
    struct RunUntil<'a, F> {
        #[pin]
        future: F,
        // After the future: its drop may drive the set.
        #[pin]
        drives: Drives<'a>,
    }
}

/// What drives the set as long as this is pinned.
struct Drives<'a> {
    set: &'a LocalSet,
    /// It was polled, and has not ended.
    polled: Cell<bool>,
    _pinned: PhantomPinned,
}

impl Drives<'_> {
    /// What tells it from others: each is at a place of its own until it is dropped.
    fn address(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    /// It will go on when `driver` is woken.
    fn goes_on(self: Pin<&Self>, driver: &Waker) {
        let is_mine = |entry: &(*const (), Rc<Waker>)| entry.0 == self.address();
        let is_known = |entry| is_mine(entry) && entry.1.will_wake(driver);
        if self.set.drivers.borrow().iter().any(is_known) {
            return;
        }
        let new = (self.address(), Rc::new(driver.clone()));
        let mut drivers = self.set.drivers.borrow_mut();
        let old = drivers.iter().position(is_mine).map(|at| drivers.swap_remove(at));
        drivers.push(new);
        drop(drivers);
        drop(old);
    }

    /// It will not: another one takes its place, and goes on if tasks are queued, as this one will not look.
    fn ends(&self) {
        if !self.polled.replace(false) {
            return;
        }
        let mut drivers = self.set.drivers.borrow_mut();
        let mine = drivers.iter().position(|(address, _)| *address == self.address());
        let left = mine.map(|at| drivers.swap_remove(at));
        // Wakers are user code, which may drive the set.
        drop(drivers);
        drop(left);
        self.set.register_another();
    }
}

impl Drop for Drives<'_> {
    fn drop(&mut self) {
        self.ends();
    }
}

impl<F: Future> Future for RunUntil<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let drives = this.drives.into_ref();
        let set = drives.set;
        drives.polled.set(true);
        set.drive_for(cx, |cx| {
            if let Poll::Ready(output) = this.future.poll(cx) {
                drives.ends();
                return Poll::Ready(output);
            }
            drives.goes_on(cx.waker());
            if set.tick() || set.register_again(cx.waker()) {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
    }
}

/// What [`LocalSet::enter`] returns.
///
/// ```
/// let local = volt::task::LocalSet::new();
/// let guard = local.enter();
/// let task = volt::task::spawn_local(async { 1 });
/// drop(guard);
/// assert_eq!(volt::run(local.run_until(task)).unwrap(), 1);
/// ```
pub struct LocalEnterGuard {
    outer: Option<(u32, Arc<Shared>)>,
    _not_send: PhantomData<*const ()>,
}

impl Drop for LocalEnterGuard {
    fn drop(&mut self) {
        drop(replace_current(self.outer.take()));
    }
}

impl fmt::Debug for LocalEnterGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEnterGuard").finish_non_exhaustive()
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
