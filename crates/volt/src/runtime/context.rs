//! What the current thread is doing: which runtime it is in, as what.
//!
//! Invariants: the pointers in [`Context`] are valid while they are there. They are set for the
//! time of a call whose caller keeps the target alive, except by [`EnterGuard`], which owns a
//! count; a guard that is dropped out of order, or in another scope than it was made in, keeps its
//! count for ever instead.

use std::cell::{Cell, OnceCell};
use std::ptr;
use std::task::Waker;

use volt_sync::internal::primitive::Arc;

use super::driver;
use super::scheduler::guests::guest::Guest;
use super::scheduler::parking::park::Park;
use super::scheduler::shared::Shared;
use super::scheduler::worker::Worker;
use crate::task::memory;
use crate::time;

mod enter;

pub use self::enter::EnterGuard;
pub(crate) use self::enter::{Entered, has_entered, put_aside, put_back};

/// Where the current thread may be blocked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    Anywhere,
    /// It polls futures, and must not block, but for `join` and in `block_in_place`.
    ByHelping,
    /// Nor there: a hook was called in the middle of what it does.
    Nowhere,
}

/// What the current thread is doing.
#[derive(Clone, Copy)]
struct Context {
    /// The runtime that `spawn` and the like use.
    runtime: *const Shared,
    /// The member that this thread is.
    worker: *const Worker<'static>,
    /// The `block_on` that this thread is in and for which it may become a guest.
    guest: *const Guest<'static>,
    /// The runtimes whose futures are polled or dropped further down on the stack, whether or not the
    /// thread is still their member.
    frames: *const Frame,
    waits: Waits,
    /// The number of the `EnterGuard` that made `runtime` the current one in this scope, or 0.
    guard: u64,
}

/// Where a thread keeps its context: word by word, since what was written so cannot be read two words at a time before
/// it is in the cache, and a copy in between is of two words at a time.
struct Current {
    runtime: Cell<*const Shared>,
    worker: Cell<*const Worker<'static>>,
    guest: Cell<*const Guest<'static>>,
    frames: Cell<*const Frame>,
    waits: Cell<Waits>,
    guard: Cell<u64>,
}

impl Current {
    const fn new() -> Self {
        Self {
            runtime: Cell::new(ptr::null()),
            worker: Cell::new(ptr::null()),
            guest: Cell::new(ptr::null()),
            frames: Cell::new(ptr::null()),
            waits: Cell::new(Waits::Anywhere),
            guard: Cell::new(0),
        }
    }

    #[inline]
    fn get(&self) -> Context {
        Context {
            runtime: self.runtime.get(),
            worker: self.worker.get(),
            guest: self.guest.get(),
            frames: self.frames.get(),
            waits: self.waits.get(),
            guard: self.guard.get(),
        }
    }

    #[inline]
    fn set(&self, context: Context) {
        let Context { runtime, worker, guest, frames, waits, guard } = context;
        self.runtime.set(runtime);
        self.worker.set(worker);
        self.guest.set(guest);
        self.frames.set(frames);
        self.waits.set(waits);
        self.guard.set(guard);
    }
}

/// A runtime that polls or drops futures from here on up the stack.
struct Frame {
    runtime: *const Shared,
    /// Perhaps nobody but this thread drops its tasks when it shuts down.
    cancels: bool,
    outer: *const Frame,
}

impl Frame {
    /// On top of the others.
    #[inline]
    fn new(runtime: *const Shared, cancels: bool) -> Self {
        Self { runtime, cancels, outer: get().frames }
    }
}

#[cfg(not(volt_loom))]
std::thread_local! {
    static CONTEXT: Current = const { Current::new() };
    static GUARDS: Cell<u64> = const { Cell::new(0) };
    static STACK: Cell<usize> = const { Cell::new(0) };
}
#[cfg(volt_loom)]
volt_sync::internal::primitive::thread_local! {
    static CONTEXT: Current = Current::new();
    static GUARDS: Cell<u64> = Cell::new(0);
    static STACK: Cell<usize> = Cell::new(0);
}
volt_sync::internal::primitive::const_thread_local! {
    /// In a hook: the number of the worker that it was called by. (Not in the context, which is copied for each `block_on`.)
    static HOOK_OF: Cell<Option<usize>> = Cell::new(None);
}

#[inline]
fn get() -> Context {
    CONTEXT.with(Current::get)
}

#[inline]
fn set(context: Context) {
    CONTEXT.with(|current| current.set(context));
}

/// Calls `f` with another context.
#[inline]
fn scope<R>(change: impl FnOnce(&mut Context), f: impl FnOnce() -> R) -> R {
    struct Restore(Context, time::Scope);
    impl Drop for Restore {
        #[inline]
        fn drop(&mut self) {
            set(self.0);
            time::restore_scope(self.1);
            if self.0.waits != Waits::Anywhere {
                memory::keep();
            }
        }
    }
    let old = get();
    // The guards of the scope outside are none of this one: it returns to what they have set.
    let mut new = Context { guard: 0, ..old };
    change(&mut new);
    set(new);
    let _restore = Restore(old, time_scope(&new));
    if new.waits == Waits::Anywhere {
        memory::give_back();
    }
    f()
}

/// Tells the timers where they are; returns what was before.
#[inline]
fn time_scope(context: &Context) -> time::Scope {
    // SAFETY: valid by the invariant.
    let timers = unsafe { context.runtime.as_ref() }.map(|runtime| &runtime.driver_handle.timers);
    // SAFETY: valid by the invariant.
    let index = unsafe { context.worker.as_ref() }.map(|worker| worker.index);
    time::enter_scope(timers, index)
}

/// Calls `f` as the member `worker`, which polls tasks.
pub(crate) fn with_worker<R>(worker: &Worker<'_>, f: impl FnOnce() -> R) -> R {
    let frame = Frame::new(Arc::as_ptr(worker.shared), false);
    let change = |context: &mut Context| {
        context.frames = &raw const frame;
        context.runtime = Arc::as_ptr(worker.shared);
        context.worker = ptr::from_ref(worker).cast();
        context.guest = ptr::null();
        context.waits = Waits::ByHelping;
    };
    scope(change, f)
}

/// Calls `f` inside `block_on`.
#[inline]
pub(crate) fn with_guest<R>(guest: &Guest<'_>, f: impl FnOnce() -> R) -> R {
    let _seeded = guest.shared.config.seed_choices(0);
    as_guest(guest, f)
}

/// Calls `f` as one who may become the member `guest`.
#[inline]
pub(crate) fn as_guest<R>(guest: &Guest<'_>, f: impl FnOnce() -> R) -> R {
    let frame = Frame::new(Arc::as_ptr(guest.shared), false);
    let change = |context: &mut Context| {
        context.frames = &raw const frame;
        context.runtime = Arc::as_ptr(guest.shared);
        context.worker = ptr::null();
        context.guest = ptr::from_ref(guest).cast();
        context.waits = Waits::ByHelping;
    };
    scope(change, f)
}

/// # Panics
/// If the thread polls futures.
#[inline]
#[track_caller]
pub(crate) fn assert_may_block() {
    if in_async() {
        cannot_block();
    }
}

#[cold]
#[track_caller]
fn cannot_block() -> ! {
    assert_no_hook();
    panic!(
        "`block_on` inside of a runtime: the thread would be blocked while it has tasks to run. \
         Use `.await` or `spawn_blocking`, or, on a multi-thread runtime, wrap the call in `block_in_place`"
    )
}

/// The current guest has become a member, or is none any more.
#[inline]
pub(crate) fn set_worker(worker: *const Worker<'_>) {
    let mut context = get();
    context.worker = worker.cast();
    set(context);
    time_scope(&context);
    if worker.is_null() { memory::give_back() } else { memory::keep() }
}

/// Calls `f` on a thread that may block: no member, but in the same runtime.
pub(crate) fn outside_async<R>(f: impl FnOnce() -> R) -> R {
    let change = |context: &mut Context| {
        context.worker = ptr::null();
        context.guest = ptr::null();
        context.waits = Waits::Anywhere;
    };
    scope(change, f)
}

/// Calls `f`, which may block, on a thread that drops the tasks of `runtime` at its shutdown, and is
/// perhaps the only one that does: where it blocks, it goes on with that (`cancel.rs`).
pub(crate) fn as_canceller<R>(runtime: &Arc<Shared>, f: impl FnOnce() -> R) -> R {
    let frame = Frame::new(Arc::as_ptr(runtime), true);
    let change = |context: &mut Context| {
        context.frames = &raw const frame;
        context.runtime = Arc::as_ptr(runtime);
        context.worker = ptr::null();
        context.guest = ptr::null();
        context.waits = Waits::Anywhere;
    };
    scope(change, f)
}

/// Calls `f` with each runtime whose [canceller](as_canceller) this thread is.
pub(crate) fn for_each_cancelled(mut f: impl FnMut(&Arc<Shared>)) {
    let mut next = get().frames;
    // SAFETY: valid by the invariant: the frames belong to calls that this one is inside of.
    while let Some(frame) = unsafe { next.as_ref() } {
        if frame.cancels {
            // SAFETY: valid by the invariant.
            f(&unsafe { &*frame.runtime }.to_arc());
        }
        next = frame.outer;
    }
}

/// Calls `f`, which may block, with `runtime` as the current one.
pub(crate) fn with_entered<R>(runtime: &Arc<Shared>, f: impl FnOnce() -> R) -> R {
    let change = |context: &mut Context| {
        context.runtime = Arc::as_ptr(runtime);
        context.worker = ptr::null();
        context.guest = ptr::null();
        context.waits = Waits::Anywhere;
    };
    scope(change, f)
}

/// Calls `f`, user code in the middle of what this thread does as a member of its runtime, as of no member:
/// what becomes runnable in it goes through the injector, and whoever runs it is told; and nobody else
/// becomes that member meanwhile. So it cannot wait for tasks, of which it may be the only one to run them.
///
/// (A member that parks has looked at its own queues for the last time; one whose poll is over has looked
/// whether it was handed over.)
pub(crate) fn beside_member<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(Option<usize>);
    impl Drop for Restore {
        fn drop(&mut self) {
            HOOK_OF.with(|hook_of| hook_of.set(self.0));
        }
    }
    let index = current_worker(index_of).or_else(index_beside_hook);
    let _restore = Restore(HOOK_OF.with(|hook_of| hook_of.replace(index)));
    let change = |context: &mut Context| {
        if context.waits == Waits::ByHelping {
            context.waits = Waits::Nowhere;
        }
        context.worker = ptr::null();
        context.guest = ptr::null();
    };
    scope(change, f)
}

/// The number of the worker whose hook this is called in, if it is.
fn index_beside_hook() -> Option<usize> {
    (get().waits == Waits::Nowhere).then(|| HOOK_OF.with(Cell::get))?
}

/// The number of `worker` among those that the metrics count. A guest beside workers is none of them; one of a
/// current-thread runtime is its worker 0.
fn index_of(worker: Option<&Worker<'_>>) -> Option<usize> {
    let worker = worker?;
    (worker.index < worker.shared.workers.max(1)).then_some(worker.index)
}

/// The number of the worker that this thread is, if it is one: the one that the `worker_` methods of
/// [`RuntimeMetrics`](super::RuntimeMetrics) take.
///
/// * In a task that a worker polls: a number below [`num_workers`](super::RuntimeMetrics::num_workers), which may be another
///   one after each `.await`. It is that of the runtime that polls, also under the [`EnterGuard`] of another one.
/// * On a thread in `block_on` of a multi-thread runtime: `None`, in its own future and in the tasks that it runs meanwhile
///   (see [`Runtime::block_on`](super::Runtime::block_on)); the same in [`JoinHandle::join`](crate::task::JoinHandle::join). So here a task may get `None`; in Tokio no such thread runs
///   tasks. Where [`Builder::on_thread_start`](super::Builder::on_thread_start) is set, none does here either.
/// * On the thread that runs a current-thread runtime, or a [`LocalRuntime`](super::LocalRuntime): `Some(0)`, in the future of
///   `block_on` as well as in tasks. `None` in the `block_on` of another thread, as long as there is one that runs the tasks,
///   and in the future of [`Handle::block_on`](super::Handle::block_on).
/// * In [`on_thread_park`](super::Builder::on_thread_park), [`on_thread_unpark`](super::Builder::on_thread_unpark) and
///   [`on_slow_poll`](super::Builder::on_slow_poll): that of the worker that calls them. (`None` after the first poll in a
///   `block_on`, which mostly is no worker's: see [`polls_count`](super::RuntimeMetrics::polls_count).) In
///   [`on_thread_start`](super::Builder::on_thread_start) and [`on_thread_stop`](super::Builder::on_thread_stop): `None`.
/// * In `spawn_blocking` and outside of runtimes: `None`. Also inside [`block_in_place`](crate::task::block_in_place), and in the
///   rest of a poll that has called it on a worker: another thread is that worker by then.
///
/// # Examples
/// ```
/// use volt::runtime::{Builder, worker_index};
///
/// let runtime = Builder::new_multi_thread().worker_threads(2).build()?;
/// let (tell, told) = std::sync::mpsc::channel();
/// runtime.spawn(async move { tell.send(worker_index()) });
/// // This thread is not in `block_on` meanwhile, so a worker runs the task.
/// assert!(told.recv().unwrap().is_some_and(|index| index < 2));
/// assert_eq!(runtime.block_on(async { worker_index() }), None);
///
/// let runtime = Builder::new_current_thread().build()?;
/// assert_eq!(runtime.block_on(async { worker_index() }), Some(0));
/// assert_eq!(worker_index(), None);
/// # std::io::Result::Ok(())
/// ```
///
/// # Cost
/// A look at two thread-locals. In a `block_on` of a current-thread runtime that has not begun to run tasks, what it costs
/// to begin.
pub fn worker_index() -> Option<usize> {
    if let Some(index) = index_beside_hook() {
        return Some(index);
    }
    // Whether it is the one that runs the tasks is known when it begins to.
    if runs_current_thread() { current_member(index_of) } else { current_worker(index_of) }
}

/// # Panics
/// In a hook of a member.
#[track_caller]
pub(crate) fn assert_no_hook() {
    assert!(
        get().waits != Waits::Nowhere,
        "this hook cannot wait for tasks: its thread may be the one that runs them"
    );
}

/// Tells `volt-sync`, which knows no runtime, how this one recognises its threads, and what it sleeps by.
pub(crate) fn introduce() {
    volt_sync::internal::refuse_blocking_where(in_async);
    volt_sync::internal::sleep_by::<time::SendTimer>();
}

/// True while the thread polls futures.
#[inline]
pub(crate) fn in_async() -> bool {
    get().waits != Waits::Anywhere
}

/// The member of `shared` that this thread is. A thread in `block_on` becomes one.
#[inline]
pub(crate) fn worker_of(shared: &Shared) -> Option<&Worker<'_>> {
    let context = get();
    // SAFETY: valid by the invariant; the caller's thread cannot leave that scope before it
    // returns to where it was entered, which is below on the stack.
    if let Some(worker) = unsafe { context.worker.cast::<Worker<'_>>().as_ref() } {
        return ptr::eq(Arc::as_ptr(worker.shared), shared).then_some(worker);
    }
    if context.guest.is_null() { None } else { become_guest(context.guest, shared) }
}

/// (Not with the whole context, which every caller of `worker_of` would copy for it.)
#[cold]
fn become_guest<'a>(guest: *const Guest<'static>, shared: &'a Shared) -> Option<&'a Worker<'a>> {
    // SAFETY: as in `worker_of`.
    let guest = unsafe { guest.cast::<Guest<'_>>().as_ref() }?;
    if ptr::eq(Arc::as_ptr(guest.shared), shared) { guest.attach() } else { None }
}

/// The current guest has left its runtime, for good.
pub(crate) fn forget_member() {
    let mut context = get();
    context.worker = ptr::null();
    context.guest = ptr::null();
    set(context);
    time_scope(&context);
    memory::give_back();
}

/// The member that this thread is, of whatever runtime.
#[inline]
pub(crate) fn current_worker<R>(f: impl FnOnce(Option<&Worker<'_>>) -> R) -> R {
    // SAFETY: valid by the invariant, while `f` runs in that scope.
    f(unsafe { get().worker.as_ref() })
}

/// True if this thread is a member of `shared`.
pub(crate) fn is_member_of(shared: &Shared) -> bool {
    current_worker(|worker| worker.is_some_and(|worker| ptr::eq(&**worker.shared, shared)))
}

/// True if this thread looks at its sockets when all that can run has yielded.
pub(crate) fn looks_between_yields() -> bool {
    current_worker(|worker| worker.is_some_and(Worker::looks_between_yields))
}

/// True while this thread, a member, handles what happened in the driver.
pub(crate) fn turns_driver() -> bool {
    current_worker(|worker| worker.is_some_and(Worker::turns_driver))
}

/// True if this thread is the one that runs the tasks of a current-thread runtime.
pub(crate) fn runs_current_thread() -> bool {
    current_guest(|guest| guest.is_some_and(|guest| guest.shared.is_current_thread()))
}

/// True if a future of `shared` is polled or dropped further down on this thread's stack, even if the
/// thread may block meanwhile (`block_in_place`).
pub(crate) fn is_inside(shared: &Shared) -> bool {
    let mut next = get().frames;
    // SAFETY: valid by the invariant: the frames belong to calls that this one is inside of.
    while let Some(frame) = unsafe { next.as_ref() } {
        if ptr::eq(frame.runtime, shared) {
            return true;
        }
        next = frame.outer;
    }
    false
}

/// True if futures are polled or dropped further down on this thread's stack than by the innermost call that does.
pub(crate) fn is_nested() -> bool {
    // SAFETY: valid by the invariant: the frames belong to calls that this one is inside of.
    unsafe { get().frames.as_ref() }.is_some_and(|frame| !frame.outer.is_null())
}

/// True if this thread, further down on its stack, is a [canceller](as_canceller) of `shared`, perhaps in the place of
/// one of its workers.
pub(crate) fn cancels(shared: &Arc<Shared>) -> bool {
    let mut any = false;
    for_each_cancelled(|cancelled| any |= Arc::ptr_eq(cancelled, shared));
    any
}

/// An address where this thread's stack begins: in its outermost call that polls or drops futures.
pub(crate) fn stack_base() -> Option<usize> {
    let mut frame = get().frames;
    // SAFETY: valid by the invariant: the frames belong to calls that this one is inside of.
    while let Some(next) = unsafe { frame.as_ref() }.map(|it| it.outer).filter(|it| !it.is_null()) {
        frame = next;
    }
    (!frame.is_null()).then(|| frame.addr())
}

/// This thread was started with a stack of so many bytes, if that was asked for.
pub(crate) fn set_stack_size(bytes: Option<usize>) {
    STACK.with(|stack| stack.set(bytes.unwrap_or(0)));
}

/// The least size of a stack where nobody says it, as where a sandbox refuses what the C library asks for: the
/// smallest that a system gives to threads by default.
const UNKNOWN_STACK: usize = 512 << 10;

/// The size of this thread's stack, or what can be relied on. The system is asked once.
pub(crate) fn stack_size() -> usize {
    STACK.with(|stack| {
        if stack.get() == 0 {
            stack.set(volt_sync::internal::primitive::stack_size().unwrap_or(UNKNOWN_STACK));
        }
        stack.get()
    })
}

/// As [`current_worker`], but a thread in `block_on` becomes a member first.
pub(crate) fn current_member<R>(f: impl FnOnce(Option<&Worker<'_>>) -> R) -> R {
    let context = get();
    // SAFETY: valid by the invariant.
    if let (true, Some(guest)) = (context.worker.is_null(), unsafe { context.guest.as_ref() }) {
        guest.attach();
    }
    current_worker(f)
}

/// The `block_on` that this thread is in, if it may become a guest for it, or is one.
pub(crate) fn current_guest<R>(f: impl FnOnce(Option<&Guest<'_>>) -> R) -> R {
    // SAFETY: valid by the invariant, while `f` runs in that scope.
    f(unsafe { get().guest.as_ref() })
}

/// The current-thread runtime that this thread polls a future beside.
pub(crate) fn beside_runtime() -> Option<Arc<Shared>> {
    current_guest(|guest| Some(guest.filter(|guest| guest.is_beside())?.shared.clone()))
}

/// Calls `f` with the current runtime's scheduler.
#[inline]
pub(crate) fn try_with_runtime<R>(f: impl FnOnce(&Shared) -> R) -> Option<R> {
    // SAFETY: valid by the invariant, while `f` runs in that scope.
    unsafe { get().runtime.as_ref() }.map(f)
}

/// Calls `f` with the current runtime's scheduler.
///
/// # Panics
/// If there is none.
#[inline]
#[track_caller]
pub(crate) fn with_runtime<R>(caller: &'static str, f: impl FnOnce(&Shared) -> R) -> R {
    // SAFETY: valid by the invariant, while `f` runs in that scope.
    match unsafe { get().runtime.as_ref() } {
        Some(runtime) => f(runtime),
        None => no_runtime(caller),
    }
}

/// Calls `f` with the current runtime's driver.
///
/// # Panics
/// If there is none.
#[inline]
#[track_caller]
pub(crate) fn with_driver<R>(caller: &'static str, f: impl FnOnce(&driver::Handle) -> R) -> R {
    with_runtime(caller, |runtime| f(&runtime.driver_handle))
}

/// # Panics
/// If there is no current runtime.
#[track_caller]
pub(crate) fn require(caller: &'static str) {
    with_runtime(caller, |_| ());
}

#[cold]
#[track_caller]
fn no_runtime(caller: &'static str) -> ! {
    panic!(
        "`{caller}` needs a Volt runtime: call it inside `block_on`, a spawned task, or under \
         `Handle::enter`"
    )
}

/// A thread's own place to sleep, and its waker.
struct Place {
    park: Arc<Park>,
    waker: Waker,
    /// A `block_on` of this thread uses it.
    taken: Cell<bool>,
}

impl Place {
    fn new() -> Self {
        let park = Arc::new(Park::new());
        let waker = Park::waker(&park);
        Self { park, waker, taken: Cell::new(false) }
    }
}

#[cfg(not(volt_loom))]
std::thread_local! {
    static PLACE: OnceCell<Place> = const { OnceCell::new() };
}
#[cfg(volt_loom)]
volt_sync::internal::primitive::thread_local! {
    static PLACE: OnceCell<Place> = OnceCell::new();
}

/// True if `waker` is that of a place to sleep. (Perhaps not if the thread is ending.)
pub(crate) fn is_of_place(waker: &Waker) -> bool {
    let own = |place: &Place| ptr::eq(place.waker.vtable(), waker.vtable());
    PLACE.try_with(|place| place.get().is_some_and(own)).unwrap_or(false)
}

/// Calls `f` with a place to sleep that nobody else on this thread uses, and its waker.
#[inline]
pub(crate) fn with_place<R>(f: impl FnOnce(&Arc<Park>, &Waker) -> R) -> R {
    struct Free<'a>(&'a Cell<bool>);
    impl Drop for Free<'_> {
        fn drop(&mut self) {
            self.0.set(false);
        }
    }
    let mut f = Some(f);
    let result = PLACE.try_with(|place| {
        let place = place.get_or_init(Place::new);
        if place.taken.replace(true) {
            return None;
        }
        let _free = Free(&place.taken);
        f.take().map(|f| f(&place.park, &place.waker))
    });
    if let Ok(Some(result)) = result {
        return result;
    }
    // Nested, or the thread is ending.
    let place = Place::new();
    let f = f.take().expect("not called above");
    f(&place.park, &place.waker)
}
