use std::ptr::{self, NonNull};
use std::sync::Arc as StdArc;
use std::sync::atomic::Ordering::Relaxed;

use super::{Help, Worker};
use crate::engine::{Config, Core};
use crate::fork::Promoted;
use crate::frame::Frame;
use crate::parking;
use crate::task::{Action, Task};
use volt_sync::internal::primitive::{Arc, AtomicU32, UnsafeCell, explore, thread};

#[repr(C)]
struct Letter {
    task: Task,
    value: UnsafeCell<u32>,
    runs: AtomicU32,
}

unsafe fn read(task: NonNull<Task>, _: Action) {
    // SAFETY: the model's tasks are letters, which live to its end.
    let letter = unsafe { task.cast::<Letter>().as_ref() };
    letter.value.with_mut(|_| ());
    letter.runs.fetch_add(1, Relaxed);
}

struct Post {
    core: StdArc<Core>,
    worker: Worker,
    letters: [Letter; 2],
}

// SAFETY: loom checks the cells; the worker's are used by the one thread that plays it.
unsafe impl Sync for Post {}
// SAFETY: as for the one above.
unsafe impl Send for Post {}

impl Post {
    fn new() -> Arc<Self> {
        let core = Core::new(Config { threads: 1, ..Config::default() });
        let letter =
            || Letter { task: Task::new(read), value: UnsafeCell::new(0), runs: AtomicU32::new(0) };
        Arc::new(Self {
            worker: Worker::new(StdArc::as_ptr(&core), 0, Some(0)),
            core,
            letters: [letter(), letter()],
        })
    }

    /// Sends a letter, and reads it here if it comes back. True if it was taken.
    fn send(&self, number: usize) -> bool {
        let letter = &self.letters[number];
        letter.value.with_mut(|_| ());
        let task = NonNull::from(letter).cast();
        // SAFETY: alive to the end of the model, and sent once.
        let taken = unsafe { self.worker.post(task) }.is_ok();
        if !taken {
            // SAFETY: refused, so in no queue.
            unsafe { Task::call(task, Action::Run) };
        }
        taken
    }
}

/// A thread that leaves reads what is in its mail; what comes later goes back to its sender.
#[test]
fn mail_is_delivered_or_refused() {
    explore(|| {
        let post = Post::new();
        let other = post.clone();
        let thread = thread::spawn(move || other.worker.leave());
        let taken = [post.send(0), post.send(1)];
        assert!(taken[0] || !taken[1], "what is closed stays closed");
        thread.join().unwrap();
        for letter in &post.letters {
            assert_eq!(letter.runs.load(Relaxed), 1, "each letter is read once");
        }
        drop(post.core.clone());
    });
}

/// Three records, each made by the thread that uses it but for the one in the middle: the first
/// thread gets to the third one's only through what the second one waits for.
#[test]
fn the_thief_of_the_thief_is_seen_whole() {
    struct Chain {
        core: StdArc<Core>,
        first: Worker,
        second: Worker,
        of_first: Promoted,
        of_second: Promoted,
    }
    // SAFETY: each worker's cells are used by the one thread that plays it.
    unsafe impl Sync for Chain {}
    // SAFETY: as for the one above.
    unsafe impl Send for Chain {}
    fn promoted() -> Promoted {
        // SAFETY: a null parent is allowed.
        Promoted::new(unsafe { Frame::new(ptr::null(), parking::mine(), ptr::null()) })
    }
    fn look(worker: &Worker, promoted: &Promoted) {
        for _ in 0..3 {
            assert!(!worker.help(&promoted.frame, &Help::Thief(promoted)), "there is nothing");
            thread::yield_now();
        }
    }
    explore(|| {
        let core = Core::new(Config { threads: 3, ..Config::default() });
        let worker = |index| Worker::new(StdArc::as_ptr(&core), index, Some(index));
        let chain = Arc::new(Chain {
            first: worker(0),
            second: worker(1),
            of_first: promoted(),
            of_second: promoted(),
            core,
        });
        chain.of_first.set_thief(&chain.second);
        let (second, third) = (chain.clone(), chain.clone());
        let third = thread::spawn(move || {
            let worker = Box::new(Worker::new(StdArc::as_ptr(&third.core), 2, Some(2)));
            third.of_second.set_thief(&worker);
            // Given back, so that it outlives the looks of the others.
            worker
        });
        let second = thread::spawn(move || {
            look(&second.second, &second.of_second);
        });
        look(&chain.first, &chain.of_first);
        second.join().unwrap();
        drop(third.join().unwrap());
    });
}
