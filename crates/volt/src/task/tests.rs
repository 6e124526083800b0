//! Sequential tests of tasks, on a scheduler that is a queue.

use std::future::{pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Poll, Wake, Waker};

use super::test::{Dropped, Queue, counting_waker, poll_with};
use super::{Id, JoinError, JoinHandle, try_id};

fn finish<T>(join: &mut JoinHandle<T>) -> Result<T, JoinError> {
    match poll_with(join, Waker::noop()) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("the task has not completed"),
    }
}

mod kept;
mod transitions;

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("bomb");
    }
}

#[test]
fn output_reaches_the_join_handle() {
    let queue = Queue::new();
    let mut join = Queue::spawn(&queue, async { 7 });
    let (counter, waker) = counting_waker();
    assert!(poll_with(&mut join, &waker).is_pending());
    assert!(poll_with(&mut join, &waker).is_pending());
    assert!(!join.is_finished());
    assert_eq!(queue.run(), 1);
    assert_eq!(counter.get(), 1);
    assert!(join.is_finished());
    assert_eq!(finish(&mut join).unwrap(), 7);
    assert!(join.is_finished());
    assert!(catch_unwind(AssertUnwindSafe(|| poll_with(&mut join, &waker))).is_err());
    Queue::shutdown(queue);
}

#[test]
fn future_and_output_are_dropped_once_in_every_order_of_events() {
    // 0: run, then drop the handle; 1: drop the handle, then run; 2: join; 3: never run.
    for order in 0..4 {
        let queue = Queue::new();
        let (owned, futures) = Dropped::counter();
        let (output, outputs) = Dropped::counter();
        let mut join = Queue::spawn(&queue, async move {
            let _owned = owned;
            output
        });
        match order {
            0 => {
                queue.run();
                assert_eq!((futures(), outputs()), (1, 0));
                drop(join);
            }
            1 => {
                drop(join);
                assert_eq!((futures(), outputs()), (0, 0));
                queue.run();
            }
            2 => {
                queue.run();
                drop(finish(&mut join));
                assert_eq!((futures(), outputs()), (1, 1));
            }
            _ => {}
        }
        Queue::shutdown(queue);
        assert_eq!((futures(), outputs()), (1, 1));
    }
}

#[test]
fn waker_that_wakes_itself_yields() {
    let queue = Queue::new();
    let mut polls = 0;
    let mut join = Queue::spawn(
        &queue,
        poll_fn(move |cx| {
            polls += 1;
            if polls == 4 {
                return Poll::Ready(polls);
            }
            cx.waker().wake_by_ref();
            let second = cx.waker().clone();
            second.wake();
            Poll::Pending
        }),
    );
    assert_eq!(queue.run(), 4);
    assert_eq!(queue.yields.load(Relaxed), 3);
    assert_eq!(finish(&mut join).unwrap(), 4);
    Queue::shutdown(queue);
}

#[test]
fn wakers_of_a_task_are_alike_and_count_references() {
    let queue = Queue::new();
    let slot = Arc::new(volt_sync::internal::primitive::Mutex::new(Vec::<Waker>::new()));
    let stored = slot.clone();
    let mut join = Queue::spawn(
        &queue,
        poll_fn(move |cx| {
            let mut stored = stored.lock().unwrap();
            stored.push(cx.waker().clone());
            if stored.len() == 3 { Poll::Ready(()) } else { Poll::Pending }
        }),
    );
    queue.run();
    assert_eq!(join.snapshot().unwrap().refs(), 3, "list, join handle, waker");
    slot.lock().unwrap()[0].wake_by_ref();
    slot.lock().unwrap()[0].wake_by_ref();
    assert_eq!(queue.len(), 1, "notified once");
    queue.run();
    {
        let wakers = slot.lock().unwrap();
        assert!(wakers[0].will_wake(&wakers[1]));
    }
    assert_eq!(join.snapshot().unwrap().refs(), 4);
    let first = slot.lock().unwrap().remove(0);
    first.wake();
    slot.lock().unwrap().push(Waker::noop().clone());
    queue.run();
    finish(&mut join).unwrap();
    // The task is complete and joined; the wakers still keep its memory.
    for waker in std::mem::take(&mut *slot.lock().unwrap()) {
        waker.wake();
    }
    assert_eq!(queue.len(), 0);
    Queue::shutdown(queue);
}

#[test]
fn panic_in_a_poll_becomes_an_error() {
    let queue = Queue::new();
    let (owned, futures) = Dropped::counter();
    let mut join = Queue::spawn(&queue, async move {
        let _owned = owned;
        panic!("boom {}", std::hint::black_box(1));
    });
    let id = join.id();
    queue.run();
    assert_eq!(futures(), 1);
    let error: JoinError = finish::<()>(&mut join).unwrap_err();
    assert!(error.is_panic() && !error.is_cancelled());
    assert_eq!(error.id(), id);
    assert_eq!(error.to_string(), format!("task {id} panicked with message \"boom 1\""));
    assert_eq!(format!("{error:?}"), format!("JoinError::Panic({id:?}, \"boom 1\", ...)"));
    assert_eq!(*error.into_panic().downcast::<String>().unwrap(), "boom 1");
    Queue::shutdown(queue);
}

#[test]
fn panic_in_the_drop_of_the_future_becomes_an_error() {
    let queue = Queue::new();
    // While it completes.
    let (output, outputs) = Dropped::counter();
    let bomb = Bomb;
    let mut output = Some(output);
    let mut join = Queue::spawn(
        &queue,
        poll_fn(move |_| {
            let _ = &bomb;
            Poll::Ready(output.take().unwrap())
        }),
    );
    queue.run();
    assert!(finish(&mut join).is_err_and(|error| error.is_panic()));
    assert_eq!(outputs(), 1);
    // While it is cancelled.
    let mut join = Queue::spawn(&queue, async {
        let _bomb = Bomb;
        pending::<()>().await;
    });
    queue.run();
    join.abort();
    queue.run();
    assert!(finish(&mut join).is_err_and(|error| error.is_panic()));
    // After a panic in the poll: the first one counts.
    let bomb = Bomb;
    let mut join = Queue::spawn(
        &queue,
        poll_fn(move |_| -> Poll<()> {
            let _ = &bomb;
            panic_any("first")
        }),
    );
    queue.run();
    let error = finish(&mut join).unwrap_err();
    assert_eq!(*error.try_into_panic().unwrap().downcast::<&str>().unwrap(), "first");
    Queue::shutdown(queue);
}

#[test]
fn panic_in_the_drop_of_the_output_is_swallowed_when_nobody_listens() {
    let queue = Queue::new();
    drop(Queue::spawn(&queue, async { Bomb }));
    queue.run();
    let join = Queue::spawn(&queue, async { Bomb });
    queue.run();
    drop(join);
    drop(Queue::spawn(&queue, async { panic_any(Bomb) }));
    queue.run();
    Queue::shutdown(queue);
}

#[test]
fn panic_in_the_join_waker_is_swallowed() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("waker");
        }
    }
    let queue = Queue::new();
    let mut join = Queue::spawn(&queue, ready(1));
    let waker = Waker::from(Arc::new(Panics));
    assert!(poll_with(&mut join, &waker).is_pending());
    queue.run();
    assert_eq!(finish(&mut join).unwrap(), 1);
    Queue::shutdown(queue);
}

#[test]
fn abort_before_the_first_poll_and_while_idle_and_after_completion() {
    let queue = Queue::new();
    let mut never = Queue::spawn(&queue, async { panic!("was polled") });
    never.abort();
    never.abort();
    let mut idle = Queue::spawn(&queue, pending::<()>());
    queue.run();
    let error: JoinError = finish::<()>(&mut never).unwrap_err();
    assert!(error.is_cancelled());
    assert_eq!(error.to_string(), format!("task {} was cancelled", never.id()));
    assert!(error.try_into_panic().is_err());
    let handle = idle.abort_handle();
    let second = handle.clone();
    drop(handle);
    second.abort();
    assert!(!second.is_finished());
    queue.run();
    assert!(second.is_finished());
    assert_eq!(second.id(), idle.id());
    assert!(finish(&mut idle).is_err_and(|error| error.is_cancelled()));
    let mut done = Queue::spawn(&queue, ready(3));
    queue.run();
    done.abort();
    assert_eq!(finish(&mut done).unwrap(), 3);
    done.abort();
    done.abort_handle().abort();
    assert!(done.abort_handle().is_finished());
    Queue::shutdown(queue);
}

#[test]
fn abort_of_the_running_task_takes_effect_at_its_next_pending() {
    let queue = Queue::new();
    let slot = Arc::new(volt_sync::internal::primitive::Mutex::new(None::<super::AbortHandle>));
    let stored = slot.clone();
    let mut join = Queue::spawn(
        &queue,
        poll_fn(move |_| {
            stored.lock().unwrap().take().unwrap().abort();
            Poll::<()>::Pending
        }),
    );
    *slot.lock().unwrap() = Some(join.abort_handle());
    assert_eq!(queue.run(), 1);
    assert!(finish(&mut join).is_err_and(|error| error.is_cancelled()));
    Queue::shutdown(queue);
}

#[test]
fn id_is_the_running_tasks_in_polls_and_drops() {
    struct Records(Arc<volt_sync::internal::primitive::Mutex<Vec<Option<Id>>>>);
    impl Drop for Records {
        fn drop(&mut self) {
            self.0.lock().unwrap().push(try_id());
        }
    }
    let queue = Queue::new();
    let seen = Arc::new(volt_sync::internal::primitive::Mutex::new(Vec::new()));
    let (in_future, in_output) = (Records(seen.clone()), Records(seen.clone()));
    let join = Queue::spawn(&queue, async move {
        let in_future = in_future;
        in_future.0.lock().unwrap().push(Some(super::id()));
        in_output
    });
    let id = join.id();
    drop(join);
    queue.run();
    assert_eq!(*seen.lock().unwrap(), [Some(id); 3]);
    assert_eq!(try_id(), None);
    assert!(catch_unwind(super::id).is_err());
    let other = Queue::spawn(&queue, pending::<()>());
    assert_ne!(other.id(), id, "not given again at once");
    Queue::shutdown(queue);
}

#[test]
fn shutdown_drops_idle_and_queued_tasks_and_refuses_new_ones() {
    let queue = Queue::new();
    let (owned, futures) = Dropped::counter();
    let mut joins = Vec::new();
    for round in 0..2 {
        for _ in 0..100 {
            let owned = owned.clone();
            joins.push(Queue::spawn(&queue, async move {
                let _owned = owned;
                pending::<()>().await;
            }));
        }
        if round == 0 {
            queue.run();
        }
    }
    assert_eq!(queue.owned.len(), 200);
    drop(owned);
    let kept = queue.clone();
    Queue::shutdown(queue);
    assert_eq!(futures(), 201);
    assert_eq!(kept.owned.len(), 0);
    joins.push(Queue::spawn(&kept, pending()));
    assert_eq!(kept.len(), 0);
    for mut join in joins {
        assert!(finish(&mut join).is_err_and(|error| error.is_cancelled()));
    }
}

#[test]
fn dropping_a_notified_cancels_its_task() {
    let queue = Queue::new();
    let (mut join, notified) = Queue::bind(&queue, async {});
    drop(notified);
    assert!(finish(&mut join).is_err_and(|error| error.is_cancelled()));
    assert!(queue.owned.is_empty());
    Queue::shutdown(queue);
}

#[test]
fn future_with_large_alignment() {
    #[repr(align(256))]
    #[derive(Clone, Copy)]
    struct Aligned(u8);
    let queue = Queue::new();
    let value = Aligned(9);
    let mut join = Queue::spawn(&queue, async move {
        let value = value;
        std::future::ready(()).await;
        assert_eq!((&raw const value).addr() % 256, 0);
        value
    });
    queue.run();
    assert_eq!(finish(&mut join).unwrap().0, 9);
    Queue::shutdown(queue);
}

#[test]
fn budget_of_a_poll_is_limited() {
    let queue = Queue::new();
    let mut join = Queue::spawn(&queue, async {
        let mut taken = 0;
        while volt_sync::coop::has_budget_remaining() {
            volt_sync::coop::made_progress();
            taken += 1;
        }
        taken
    });
    queue.run();
    assert_eq!(finish(&mut join).unwrap(), 128);
    Queue::shutdown(queue);
}

#[test]
fn small_task_takes_72_bytes() {
    use super::cell::Cell;
    fn size<F: Future>(_: &F) -> usize {
        size_of::<Cell<F>>()
    }
    assert_eq!(size(&ready(1_u32)), 72);
    assert_eq!(size(&pending::<()>()), 72);
}
