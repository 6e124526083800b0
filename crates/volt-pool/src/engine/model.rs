use std::sync::Arc as StdArc;
use std::sync::atomic::Ordering::Relaxed;

use super::{Config, Core, lock};
use crate::task::{Action, Task};
use std::ptr::NonNull;
use volt_sync::internal::primitive::{AtomicU32, thread};

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
    loom::model(move || {
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
