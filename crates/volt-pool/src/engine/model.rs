use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc as StdArc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{Config, Core, lock};
use crate::install::install;
use crate::task::{Action, Task};
use volt_sync::internal::Parker;
use volt_sync::internal::primitive::{AtomicU32, explore, explore_preempted, thread};

#[repr(C)]
struct Node {
    task: Task,
    runs: AtomicU32,
}

unsafe fn count(task: NonNull<Task>, _: Action) {
    // SAFETY: the model's task is a leaked node.
    unsafe { task.cast::<Node>().as_ref() }.runs.fetch_add(1, Relaxed);
}

fn schedule(core: &Core, node: &'static Node) {
    let task = NonNull::from(node).cast();
    // SAFETY: leaked, and queued once.
    if unsafe { core.schedule(task) }.is_err() {
        // SAFETY: refused, so in no queue.
        unsafe { Task::call(task, Action::Run) };
    }
}

/// A submission that starts a thread, while `during` runs.
fn start_during(during: impl Fn(&Core) -> bool + Sync + Send + 'static) {
    explore(move || {
        let core = Core::new(Config { threads: 1, ..Config::default() });
        let node = Box::leak(Box::new(Node { task: Task::new(count), runs: AtomicU32::new(0) }));
        let node: &'static Node = node;
        let other = core.clone();
        let starter = thread::spawn(move || schedule(&other, node));
        let ended = during(&core);
        starter.join().unwrap();
        assert!(!ended || lock(&core.handles).is_empty(), "a thread was not joined");
        core.shut_down(true).run();
        assert_eq!(node.runs.load(Relaxed), 1, "the task has run, here or there");
        assert_eq!(StdArc::strong_count(&core), 1, "the threads are gone");
        // SAFETY: leaked above, and nobody uses it any more.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(node).cast_mut()) });
    });
}

#[test]
fn a_start_races_with_a_shutdown() {
    start_during(|core| {
        core.shut_down(true).run();
        true
    });
}

/// However soon a thread ends, its handle is in the list by then: the look of the shutdown, which
/// takes it for the end if there is neither a handle nor a thread.
#[test]
fn a_thread_that_ends_at_once_is_joined() {
    start_during(|core| {
        core.sync.shut_down();
        let handles = lock(&core.handles);
        // Loom would not switch between a lone look and the end of the thread.
        thread::yield_now();
        handles.is_empty() && core.sync.spawned() == 0
    });
}

/// A pool of which no thread can be started.
fn without_threads() -> StdArc<Core> {
    let fail_start: StdArc<dyn Fn(usize) -> bool + Send + Sync> = StdArc::new(|_| true);
    Core::new(Config { threads: 1, fail_start: Some(fail_start), ..Config::default() })
}

/// A `join` that offers a fork tries to start a thread, and must not run the queue when that fails.
#[test]
fn a_task_queued_during_a_start_that_fails_is_run() {
    explore(|| {
        let core = without_threads();
        let node = Box::leak(Box::new(Node { task: Task::new(count), runs: AtomicU32::new(0) }));
        let node: &'static Node = node;
        let other = core.clone();
        let joiner = thread::spawn(move || other.notify());
        schedule(&core, node);
        assert_eq!(node.runs.load(Relaxed), 1, "who queued it has run it");
        joiner.join().unwrap();
        core.shut_down(true).run();
        // SAFETY: leaked above, and nobody uses it any more.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(node).cast_mut()) });
    });
}

#[repr(C)]
struct Meets {
    task: Task,
    ran: AtomicU32,
    /// The task for which this one waits.
    other: *const Meets,
    parker: Parker,
}

// SAFETY: the pointer is only read, and the model keeps what it points to.
unsafe impl Sync for Meets {}

unsafe fn meet(task: NonNull<Task>, _: Action) {
    // SAFETY: the model's tasks are two of these, which it keeps.
    let this = unsafe { task.cast::<Meets>().as_ref() };
    this.ran.store(1, Release);
    // SAFETY: null, or as above.
    let Some(other) = (unsafe { this.other.as_ref() }) else { return this.parker.unpark() };
    while other.ran.load(Acquire) == 0 {
        other.parker.park();
    }
}

/// Whoever submits runs what is queued, or leaves it to somebody who does. Not to a thread that was
/// about to take another task, which waits for this one.
#[test]
fn a_task_queued_while_another_one_is_taken_is_run() {
    explore_preempted(3, || {
        let core = without_threads();
        let task = |other| Meets {
            task: Task::new(meet),
            ran: AtomicU32::new(0),
            other,
            parker: Parker::new(),
        };
        let first: &'static Meets = Box::leak(Box::new(task(std::ptr::null())));
        let second = task(std::ptr::from_ref(first));
        let submit = |core: &Core, task: &Meets| {
            let task = NonNull::from(task).cast();
            // SAFETY: the task lives until it has run.
            unsafe { Task::mark_queued(task) };
            // SAFETY: in no queue.
            unsafe { core.schedule(task) }.unwrap();
        };
        let other = core.clone();
        let submitter = thread::spawn(move || submit(&other, first));
        submit(&core, &second);
        submitter.join().unwrap();
        assert_eq!(first.ran.load(Relaxed) + second.ran.load(Relaxed), 2);
        core.shut_down(true).run();
        // SAFETY: leaked above, and nobody uses it any more.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(first).cast_mut()) });
    });
}

#[repr(C)]
struct Waits {
    task: Task,
    core: *const Core,
    result: Cell<u32>,
}

unsafe fn install_one(task: NonNull<Task>, _: Action) {
    // SAFETY: the model's task is a `Waits`, which it keeps.
    let waits = unsafe { task.cast::<Waits>().as_ref() };
    // SAFETY: the model keeps the core.
    waits.result.set(install(unsafe { &*waits.core }, || 1));
}

/// A task that its submitter runs leaves what it queues to that one, except while it waits for it. A
/// start that fails at that time is no reason to sleep.
#[test]
fn a_wait_during_a_start_that_fails_runs_the_queue() {
    // The start has to begin after the wait's first look, and to fail after its second one.
    explore_preempted(4, || {
        let core = without_threads();
        let waits =
            Waits { task: Task::new(install_one), core: &raw const *core, result: Cell::new(0) };
        let task = NonNull::from(&waits).cast();
        // SAFETY: the task lives until it has run.
        unsafe { Task::mark_queued(task) };
        let other = core.clone();
        let joiner = thread::spawn(move || other.notify());
        // SAFETY: in no queue, and this thread runs it.
        unsafe { core.schedule(task) }.unwrap();
        assert_eq!(waits.result.get(), 1);
        joiner.join().unwrap();
        core.shut_down(true).run();
    });
}
