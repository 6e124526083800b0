//! Tasks that stay RUNNING in the queue, and the note that a poll has woken its own task.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use volt_sync::internal::primitive::Mutex;

use super::finish;
use crate::task::AbortHandle;
use crate::task::test::{Dropped, Queue};

/// A poll within a poll: each wake-up reaches its task, whichever of the two is being polled, and
/// whatever becomes of the inner one.
#[test]
fn wake_ups_in_nested_polls_reach_their_tasks() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum When {
        Before,
        Inside,
        ByValue,
        Elsewhere,
        After,
    }
    for when in [When::Before, When::Inside, When::ByValue, When::Elsewhere, When::After] {
        for (inner_wakes, inner_panics) in [(false, false), (true, false), (true, true)] {
            let queue = Queue::new();
            let theirs = queue.clone();
            let mut polls = 0;
            let mut outer = Queue::spawn(
                &queue,
                poll_fn(move |cx| {
                    polls += 1;
                    if polls == 2 {
                        return Poll::Ready(());
                    }
                    let waker = cx.waker().clone();
                    if when == When::Before {
                        waker.wake_by_ref();
                    }
                    let mut inner_polls = 0;
                    let mut inner = Queue::spawn(
                        &theirs,
                        poll_fn(move |cx| {
                            inner_polls += 1;
                            if inner_wakes && inner_polls == 1 {
                                cx.waker().wake_by_ref();
                            }
                            match when {
                                When::Inside => waker.wake_by_ref(),
                                When::ByValue => {
                                    let clone = waker.clone();
                                    clone.wake();
                                }
                                When::Elsewhere => std::thread::scope(|scope| {
                                    scope.spawn(|| waker.wake_by_ref());
                                }),
                                When::Before | When::After => {}
                            }
                            assert!(!inner_panics, "a test");
                            if inner_polls == 2 { Poll::Ready(()) } else { Poll::Pending }
                        }),
                    );
                    theirs.pop().unwrap().run();
                    assert_eq!(theirs.len(), usize::from(inner_wakes && !inner_panics));
                    theirs.run();
                    assert_eq!(inner.is_finished(), inner_wakes);
                    if inner_wakes {
                        assert_eq!(finish(&mut inner).is_err(), inner_panics);
                    }
                    if when == When::After {
                        cx.waker().wake_by_ref();
                    }
                    Poll::Pending
                }),
            );
            queue.pop().unwrap().run();
            assert_eq!(queue.len(), 1, "{when:?}");
            queue.run();
            finish(&mut outer).unwrap();
            Queue::shutdown(queue);
        }
    }
}

/// A poll that wakes its task and panics leaves no note for the next one, which has the same
/// address or runs on the same thread.
#[test]
fn wake_up_before_a_panic_is_nobody_elses() {
    let queue = Queue::new();
    for _ in 0..10 {
        let mut panics = Queue::spawn(
            &queue,
            poll_fn(|cx| -> Poll<()> {
                cx.waker().wake_by_ref();
                panic!("a test")
            }),
        );
        assert_eq!(queue.run(), 1);
        assert!(finish(&mut panics).unwrap_err().is_panic());
        drop(panics);
        let waits = Queue::spawn(&queue, poll_fn(|_| -> Poll<()> { Poll::Pending }));
        assert_eq!(queue.run(), 1);
        waits.abort();
        assert_eq!(queue.run(), 1, "it was idle");
    }
    Queue::shutdown(queue);
}

/// A task that is kept is aborted: by itself, by others, and by the shutdown.
#[test]
fn abort_of_a_kept_task() {
    for by_itself in [true, false] {
        let queue = Queue::new();
        let (owns, dropped) = Dropped::counter();
        let handle = Arc::new(Mutex::new(None::<AbortHandle>));
        let theirs = handle.clone();
        let mut polls = 0;
        let mut join = Queue::spawn(
            &queue,
            poll_fn(move |cx| -> Poll<()> {
                let _owns = &owns;
                polls += 1;
                assert_eq!(polls, 1);
                cx.waker().wake_by_ref();
                if by_itself {
                    theirs.lock().unwrap().as_ref().unwrap().abort();
                }
                Poll::Pending
            }),
        );
        *handle.lock().unwrap() = Some(join.abort_handle());
        queue.pop().unwrap().run();
        assert_eq!((queue.len(), dropped()), (1, 0));
        if !by_itself {
            join.abort();
            assert_eq!(queue.len(), 1, "queued once");
        }
        queue.run();
        assert!(finish(&mut join).unwrap_err().is_cancelled());
        assert_eq!(dropped(), 1);
        Queue::shutdown(queue);
    }
}
