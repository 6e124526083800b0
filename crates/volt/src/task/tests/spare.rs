//! The reference to the polled task that is kept for its next waker.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use super::finish;
use crate::task::JoinHandle;
use crate::task::test::Queue;

/// What a poll does with wakers of its task: the ones that it finds, and its own.
type Act = fn(&mut Vec<Waker>, &Waker);

/// Each with how many wakers there are after it, if there were two before.
const ACTS: [(Act, usize); 9] = [
    (|_, _| (), 2),
    (|wakers, own| wakers.push(own.clone()), 3),
    (|wakers, own| wakers.extend([own.clone(), own.clone(), own.clone()]), 5),
    (|wakers, _| drop(wakers.pop()), 1),
    (|wakers, _| wakers.clear(), 0),
    (|wakers, own| *wakers = vec![own.clone()], 1),
    (|wakers, _| wakers.pop().unwrap().wake(), 1),
    (
        |_, own| {
            let clones = [own.clone(), own.clone()];
            clones.into_iter().for_each(Waker::wake);
        },
        2,
    ),
    (
        |wakers, own| {
            let clones = [own.clone(), own.clone(), own.clone()];
            std::thread::scope(|scope| {
                for clone in clones {
                    scope.spawn(move || clone.wake());
                }
            });
            wakers.push(own.clone());
        },
        3,
    ),
];

fn refs<T>(join: &JoinHandle<T>) -> usize {
    join.snapshot().unwrap().refs() as usize
}

/// Whatever a poll does, the count is right after it: of a task that is linked or not, and goes on, or completes, or
/// panics.
#[test]
fn a_poll_ends_with_the_right_count() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum End {
        Pending,
        Woken,
        Ready,
        Panic,
    }
    for linked in [false, true] {
        for (number, (act, left)) in ACTS.into_iter().enumerate() {
            for end in [End::Pending, End::Woken, End::Ready, End::Panic] {
                let queue = Queue::new();
                let spawn = if linked { Queue::spawn } else { Queue::spawn_unlinked };
                // Two wakers are the future's own, and go with it.
                let (mut own, mut polls) = (Vec::new(), 0);
                let (others, theirs) = std::sync::mpsc::channel();
                let mut join = spawn(
                    &queue,
                    poll_fn(move |cx| {
                        polls += 1;
                        if polls == 1 {
                            own.extend([cx.waker().clone(), cx.waker().clone()]);
                            others.send(cx.waker().clone()).unwrap();
                            cx.waker().wake_by_ref();
                            return Poll::Pending;
                        }
                        act(&mut own, cx.waker());
                        match end {
                            End::Pending => return Poll::Pending,
                            End::Woken => cx.waker().wake_by_ref(),
                            End::Ready => return Poll::Ready(()),
                            End::Panic => panic!("a test"),
                        }
                        Poll::Pending
                    }),
                );
                let context = format!("linked: {linked}, act {number}, {end:?}");
                let other = {
                    queue.pop().unwrap().run();
                    theirs.recv().unwrap()
                };
                // The join handle, what is queued, three wakers, and the list.
                assert_eq!(refs(&join), 5 + usize::from(linked), "{context}");
                queue.pop().unwrap().run();
                let queued = queue.len();
                if matches!(end, End::Pending | End::Woken) {
                    assert!(queued == 1 || end == End::Pending, "{context}");
                    let in_list = usize::from(linked || queued == 0);
                    assert_eq!(refs(&join), 1 + queued + left + 1 + in_list, "{context}");
                } else {
                    assert_eq!((queued, refs(&join)), (0, 2), "{context}");
                    assert_eq!(finish(&mut join).is_err(), end == End::Panic, "{context}");
                }
                drop(other);
                Queue::shutdown(queue);
            }
        }
    }
}

/// A waker of another task than the polled one, also of one that is polled further down, counts as it does elsewhere.
#[test]
fn wakers_of_other_tasks_are_counted() {
    let queue = Queue::new();
    let theirs = queue.clone();
    let mut outer = Queue::spawn(
        &queue,
        poll_fn(move |cx| {
            let (waker, spare) = (cx.waker().clone(), cx.waker().clone());
            let mut inner = Queue::spawn(
                &theirs,
                poll_fn(move |cx| {
                    let clones = [waker.clone(), cx.waker().clone(), waker.clone()];
                    drop(clones);
                    Poll::Ready(cx.waker().clone())
                }),
            );
            theirs.pop().unwrap().run();
            assert_eq!(refs(&inner), 2, "the handle, the waker");
            drop(spare);
            drop(finish(&mut inner).unwrap());
            Poll::Ready(())
        }),
    );
    queue.pop().unwrap().run();
    assert_eq!(refs(&outer), 1);
    finish(&mut outer).unwrap();
    Queue::shutdown(queue);
}
