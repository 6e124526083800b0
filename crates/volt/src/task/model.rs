//! Loom models of the task protocol.

use std::future::{pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc as StdArc;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Poll, RawWakerVTable, Waker};

use volt_sync::internal::primitive::{Arc, AtomicUsize, UnsafeCell, explore, thread};

use super::test::{Dropped, Queue, counting_waker, poll_with};

/// A task that waits until `flag` is `until`; its waker, taken from a first poll.
fn waiting(
    queue: &Arc<Queue>,
    flag: Arc<AtomicUsize>,
    until: usize,
    owns: Dropped,
) -> (super::JoinHandle<Dropped>, Waker) {
    let slot = StdArc::new(StdMutex::new(None));
    let stored = slot.clone();
    // The future's own state: loom checks that one poll is ordered before the next.
    let mut polls = Some((Polls::default(), owns));
    let join = Queue::spawn(
        queue,
        poll_fn(move |cx| {
            polls.as_ref().unwrap().0.count();
            let mut slot = stored.lock().unwrap();
            if slot.is_none() {
                *slot = Some(cx.waker().clone());
            }
            drop(slot);
            if flag.load(Relaxed) >= until {
                Poll::Ready(polls.take().unwrap().1)
            } else {
                Poll::Pending
            }
        }),
    );
    queue.run();
    let waker = slot.lock().unwrap().clone().unwrap();
    *slot.lock().unwrap() = Some(waker.clone());
    (join, waker)
}

#[derive(Default)]
struct Polls(UnsafeCell<u32>);

// SAFETY: loom checks every access.
unsafe impl Send for Polls {}

impl Drop for Polls {
    fn drop(&mut self) {
        self.count();
    }
}

impl Polls {
    fn count(&self) {
        // SAFETY: only the task's runner gets here; loom checks it.
        self.0.with_mut(|n| unsafe { *n += 1 });
    }
}

fn is_ok<T>(join: &mut super::JoinHandle<T>) -> bool {
    matches!(poll_with(join, Waker::noop()), Poll::Ready(Ok(_)))
}

/// [TK1], [TK2], finding K8: what a waker wrote before it woke is seen by a poll, also if the task
/// was running or notified already.
#[test]
fn wake_while_running_is_seen() {
    explore(|| {
        let queue = Queue::new();
        let flag = Arc::new(AtomicUsize::new(0));
        let (owns, dropped) = Dropped::counter();
        let (mut join, waker) = waiting(&queue, flag.clone(), 2, owns);
        let other = waker.clone();
        let flag2 = flag.clone();
        let thread1 = thread::spawn(move || {
            flag2.fetch_add(1, Relaxed);
            waker.wake_by_ref();
        });
        let queue2 = queue.clone();
        let thread2 = thread::spawn(move || {
            flag.fetch_add(1, Relaxed);
            other.wake();
            queue2.run();
        });
        queue.run();
        thread1.join().unwrap();
        thread2.join().unwrap();
        queue.run();
        assert!(is_ok(&mut join));
        assert_eq!(dropped(), 1);
        Queue::shutdown(queue);
    });
}

/// [TK1]: the same for a task that is kept, having woken itself.
#[test]
fn wake_of_a_kept_task_is_seen() {
    explore(|| {
        let queue = Queue::new();
        let flag = Arc::new(AtomicUsize::new(0));
        let (owns, dropped) = Dropped::counter();
        let slot = StdArc::new(StdMutex::new(None));
        let (flag2, stored) = (flag.clone(), slot.clone());
        let mut polls = Some((Polls::default(), owns));
        let mut join = Queue::spawn(
            &queue,
            poll_fn(move |cx| {
                polls.as_ref().unwrap().0.count();
                if flag2.load(Relaxed) == 1 {
                    return Poll::Ready(polls.take().unwrap().1);
                }
                let mut slot = stored.lock().unwrap();
                if slot.is_none() {
                    *slot = Some(cx.waker().clone());
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }),
        );
        queue.pop().unwrap().run();
        assert_eq!(queue.len(), 1, "it woke itself");
        let waker = slot.lock().unwrap().clone().unwrap();
        let queue2 = queue.clone();
        let thread = thread::spawn(move || {
            flag.fetch_add(1, Relaxed);
            waker.wake();
            queue2.run();
        });
        queue.run();
        thread.join().unwrap();
        queue.run();
        assert!(is_ok(&mut join));
        assert_eq!(dropped(), 1);
        Queue::shutdown(queue);
    });
}

/// [TK3], [TK4]: a join handle that changes its waker while the task completes gets the output, or
/// a wake-up of the waker that it gave last.
#[test]
fn join_waker_change_against_completion() {
    explore(|| {
        let queue = Queue::new();
        let (owns, dropped) = Dropped::counter();
        let mut join = Queue::spawn(&queue, ready(owns));
        let (_first, waker) = counting_waker();
        let (last, last_waker) = counting_waker();
        let queue2 = queue.clone();
        let runner = thread::spawn(move || queue2.run());
        let mut done = poll_with(&mut join, &waker).is_ready();
        if !done {
            done = poll_with(&mut join, &last_waker).is_ready();
        }
        runner.join().unwrap();
        if !done {
            assert_eq!(last.get(), 1, "the last waker is woken");
            assert!(is_ok(&mut join));
        }
        assert_eq!(dropped(), 1);
        assert_eq!(StdArc::strong_count(&last), 2, "the waker is not leaked");
        Queue::shutdown(queue);
    });
}

/// [TK3], [TK4]: a join handle that is dropped while the task completes: one of the two drops the
/// output, and one the waker.
#[test]
fn join_drop_against_completion() {
    explore(|| {
        let queue = Queue::new();
        let (owns, dropped) = Dropped::counter();
        let mut join = Queue::spawn(&queue, ready(owns));
        let (counter, waker) = counting_waker();
        let queue2 = queue.clone();
        let runner = thread::spawn(move || queue2.run());
        let _either_way = poll_with(&mut join, &waker);
        drop(_either_way);
        drop(join);
        runner.join().unwrap();
        assert_eq!(dropped(), 1);
        assert_eq!(StdArc::strong_count(&counter), 2, "the waker is not leaked");
        Queue::shutdown(queue);
    });
}

/// Abort, wake and poll at once: the future is dropped once, and the task completes.
#[test]
fn abort_against_wake_and_run() {
    explore(|| {
        let queue = Queue::new();
        let flag = Arc::new(AtomicUsize::new(0));
        let (owns, dropped) = Dropped::counter();
        let (mut join, waker) = waiting(&queue, flag.clone(), 1, owns);
        let abort = join.abort_handle();
        let aborter = thread::spawn(move || abort.abort());
        let queue2 = queue.clone();
        let runner = thread::spawn(move || {
            flag.fetch_add(1, Relaxed);
            waker.wake();
            queue2.run();
        });
        queue.run();
        aborter.join().unwrap();
        runner.join().unwrap();
        queue.run();
        match poll_with(&mut join, Waker::noop()) {
            Poll::Ready(Ok(output)) => drop(output),
            Poll::Ready(Err(error)) => assert!(error.is_cancelled()),
            Poll::Pending => panic!("the task never completed"),
        }
        assert_eq!(dropped(), 1);
        Queue::shutdown(queue);
    });
}

/// [TK5]: the memory is freed (which `free` reports to loom) after every access by the others: the
/// runner, the join handle, a waker.
#[test]
fn last_reference_frees_after_all_others() {
    explore(|| {
        let queue = Queue::new();
        let flag = Arc::new(AtomicUsize::new(0));
        let (owns, dropped) = Dropped::counter();
        let (mut join, waker) = waiting(&queue, flag.clone(), 1, owns);
        flag.fetch_add(1, Relaxed);
        waker.wake_by_ref();
        let task = queue.pop().unwrap();
        let runner = thread::spawn(move || task.run());
        let joiner = thread::spawn(move || {
            let _either_way = is_ok(&mut join);
        });
        drop(waker);
        joiner.join().unwrap();
        runner.join().unwrap();
        assert_eq!(dropped(), 1);
        Queue::shutdown(queue);
    });
}

/// [TK5]: the same for a handle that goes without a waker in the task, after it has taken one out: the clone of the next
/// one has panicked.
#[test]
fn a_handle_that_is_dropped_has_left_the_task() {
    explore(|| {
        let queue = Queue::new();
        let flag = Arc::new(AtomicUsize::new(0));
        let (owns, dropped) = Dropped::counter();
        let (mut join, waker) = waiting(&queue, flag.clone(), 1, owns);
        assert!(poll_with(&mut join, Waker::noop()).is_pending());
        flag.fetch_add(1, Relaxed);
        waker.wake();
        let task = queue.pop().unwrap();
        let runner = thread::spawn(move || task.run());
        let polled = catch_unwind(AssertUnwindSafe(|| poll_with(&mut join, &unclonable_waker())));
        assert!(!matches!(polled, Ok(Poll::Pending)));
        drop(polled);
        drop(join);
        runner.join().unwrap();
        assert_eq!(dropped(), 1);
        Queue::shutdown(queue);
    });
}

/// A waker whose clone panics, without a message.
fn unclonable_waker() -> Waker {
    const VTABLE: RawWakerVTable =
        RawWakerVTable::new(|_| resume_unwind(Box::new(())), |_| {}, |_| {}, |_| {});
    // SAFETY: nothing is behind it.
    unsafe { Waker::new(std::ptr::null(), &VTABLE) }
}

/// [TK6]: shutdown finds a task idle that another thread has just polled, and drops its future.
#[test]
fn shutdown_against_poll() {
    explore(|| {
        let queue = Queue::new();
        let flag = Arc::new(AtomicUsize::new(0));
        let (owns, dropped) = Dropped::counter();
        let (join, waker) = waiting(&queue, flag, 1, owns);
        waker.wake();
        let task = queue.pop().unwrap();
        let runner = thread::spawn(move || task.run());
        Queue::shutdown(queue);
        assert_eq!(dropped(), 1);
        runner.join().unwrap();
        drop(join);
    });
}

/// Invariant 4 of `task.rs`: a wake-up from a foreign thread against the end of the runtime. The
/// scheduler is not used after it is gone (loom checks its `alive` cell), the future dropped once.
#[test]
fn remote_wake_against_shutdown() {
    explore(|| {
        let queue = Queue::new();
        let flag = Arc::new(AtomicUsize::new(0));
        let (owns, dropped) = Dropped::counter();
        let (join, waker) = waiting(&queue, flag, 1, owns);
        let remote = thread::spawn(move || waker.wake());
        Queue::shutdown(queue);
        assert_eq!(dropped(), 1);
        drop(join);
        remote.join().unwrap();
    });
}

/// As above, with an abort, which also makes a `Notified`.
#[test]
fn remote_abort_against_shutdown() {
    explore(|| {
        let queue = Queue::new();
        let flag = Arc::new(AtomicUsize::new(0));
        let (owns, dropped) = Dropped::counter();
        let (mut join, waker) = waiting(&queue, flag, 1, owns);
        let abort = join.abort_handle();
        let remote = thread::spawn(move || {
            abort.abort();
            drop(waker);
        });
        Queue::shutdown(queue);
        assert_eq!(dropped(), 1);
        let Poll::Ready(Err(error)) = poll_with(&mut join, Waker::noop()) else { panic!() };
        assert!(error.is_cancelled());
        remote.join().unwrap();
    });
}

/// [OT1], [TK6]: a first poll that ends as pending while the list is closed: the shutdown finds the task
/// idle, or it is refused. It is dropped once.
#[test]
fn first_idle_against_close() {
    explore(|| {
        let queue = Queue::new();
        let (owns, dropped) = Dropped::counter();
        let polls = Polls::default();
        let join = Queue::spawn_unlinked(
            &queue,
            poll_fn(move |_| {
                let _owns = &owns;
                polls.count();
                Poll::<()>::Pending
            }),
        );
        let task = queue.pop().unwrap();
        let queue2 = queue.clone();
        let runner = thread::spawn(move || {
            task.run();
            // As a worker, who ends after its polls.
            drop(queue2);
        });
        Queue::shutdown(queue);
        runner.join().unwrap();
        assert_eq!(dropped(), 1);
        let mut join = join;
        assert!(poll_with(&mut join, Waker::noop()).is_ready());
    });
}

/// [TK1], [TK2]: a task is woken, aborted, and run by another thread while its first poll ends.
#[test]
fn first_idle_against_wake() {
    explore(|| {
        let queue = Queue::new();
        let (owns, dropped) = Dropped::counter();
        let slot = Arc::new(volt_sync::internal::primitive::Mutex::new(None::<Waker>));
        let flag = Arc::new(AtomicUsize::new(0));
        let (theirs, set) = (slot.clone(), flag.clone());
        let mut polls = Some((Polls::default(), owns));
        let mut join = Queue::spawn_unlinked(
            &queue,
            poll_fn(move |cx| {
                polls.as_ref().unwrap().0.count();
                *theirs.lock().unwrap() = Some(cx.waker().clone());
                if set.load(Relaxed) == 1 {
                    return Poll::Ready(polls.take().unwrap().1);
                }
                Poll::Pending
            }),
        );
        let queue2 = queue.clone();
        let other = thread::spawn(move || {
            flag.store(1, Relaxed);
            let waker = slot.lock().unwrap().take();
            if let Some(waker) = waker {
                waker.wake();
            }
            queue2.run();
        });
        queue.run();
        other.join().unwrap();
        queue.run();
        assert!(is_ok(&mut join));
        assert_eq!(dropped(), 1);
        Queue::shutdown(queue);
    });
}

/// [OT1]: a bind that races with the close is either refused or found by it.
#[test]
fn bind_against_close() {
    explore(|| {
        let queue = Queue::new();
        let (owns, dropped) = Dropped::counter();
        let queue2 = queue.clone();
        let spawner = thread::spawn(move || {
            let mut join = Queue::spawn(&queue2, async move {
                let _owns = owns;
                pending::<()>().await;
            });
            // As a worker that shuts down would.
            while let Some(task) = queue2.pop() {
                drop(task);
            }
            drop(queue2);
            poll_with(&mut join, Waker::noop()).is_ready()
        });
        Queue::shutdown(queue);
        let _seen = spawner.join().unwrap();
        assert_eq!(dropped(), 1);
    });
}
