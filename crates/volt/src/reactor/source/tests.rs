use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::{Direction, Source};
use crate::io::{Interest, Ready};

/// Counts its wake-ups.
#[derive(Default)]
struct Count(volt_sync::internal::primitive::Mutex<usize>);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        *self.0.lock().unwrap() += 1;
    }
}

impl Count {
    fn get(&self) -> usize {
        *self.0.lock().unwrap()
    }
}

fn counter() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (count.clone(), count.into())
}

fn event(source: &Source, ready: Ready) {
    assert!(source.set(0, ready));
    source.wake(ready);
}

#[test]
fn a_clear_keeps_an_event_that_came_after_the_look() {
    let source = Source::new();
    event(&source, Ready::READABLE);
    let seen = source.look(Ready::READ).unwrap();
    event(&source, Ready::READABLE);
    assert!(!source.clear(seen, Ready::READ));
    let seen = source.look(Ready::READ).unwrap();
    assert!(source.clear(seen, Ready::READ));
    assert!(source.look(Ready::READ).is_none());
}

#[test]
fn a_clear_takes_only_its_bits() {
    let source = Source::new();
    event(&source, Ready::READABLE | Ready::READ_CLOSED | Ready::WRITABLE);
    let seen = source.look(Ready::READ).unwrap();
    assert!(source.clear(seen, Ready::READABLE));
    assert_eq!(source.look(Ready::ALL).unwrap().ready(), Ready::READ_CLOSED | Ready::WRITABLE);
}

#[test]
fn a_fresh_source_is_worth_one_read_but_not_readable() {
    let source = Source::new();
    source.reset(7, Ready::WRITABLE, true);
    assert!(source.look(Ready::READ).is_none());
    let seen = source.look_to_try(Ready::READ).unwrap();
    assert!(source.clear(seen, Ready::READ));
    assert!(source.look_to_try(Ready::READ).is_none());
    assert!(source.look_to_try(Ready::WRITE).is_some());
    assert!(!source.set(6, Ready::READABLE), "of another generation");
}

#[test]
fn a_wake_tells_whether_somebody_waited_for_something_else_than_to_read() {
    let source = Source::new();
    let mut cx = Context::from_waker(Waker::noop());
    let both = Ready::READABLE | Ready::WRITABLE;
    assert!(!source.wake(both), "nobody waits");
    for (interest, writes) in [(Interest::READABLE, false), (Interest::WRITABLE, true)] {
        let direction = if writes { Direction::Write } else { Direction::Read };
        assert!(source.poll_ready(direction, &mut cx).is_pending());
        assert_eq!(source.wake(both), writes);
        let mut waits = pin!(source.readiness(interest.mask()));
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        assert_eq!(source.wake(both), writes, "in the list");
    }
}

#[test]
fn each_direction_wakes_its_own_task() {
    let source = Source::new();
    let ((reads, reader), (writes, writer)) = (counter(), counter());
    assert!(source.poll_ready(Direction::Read, &mut Context::from_waker(&reader)).is_pending());
    assert!(source.poll_ready(Direction::Write, &mut Context::from_waker(&writer)).is_pending());
    event(&source, Ready::READABLE);
    assert_eq!((reads.get(), writes.get()), (1, 0));
    event(&source, Ready::WRITE_CLOSED);
    assert_eq!((reads.get(), writes.get()), (1, 1));
    assert!(source.poll_ready(Direction::Write, &mut Context::from_waker(&writer)).is_ready());
}

#[test]
fn the_last_task_to_poll_a_direction_is_woken() {
    let source = Source::new();
    let ((first, a), (second, b)) = (counter(), counter());
    assert!(source.poll_ready(Direction::Read, &mut Context::from_waker(&a)).is_pending());
    assert!(source.poll_ready(Direction::Read, &mut Context::from_waker(&b)).is_pending());
    event(&source, Ready::READABLE);
    assert_eq!((first.get(), second.get()), (0, 1));
}

#[test]
fn more_waiters_than_a_batch_are_all_woken_once() {
    let source = Source::new();
    let (count, waker) = counter();
    let mut cx = Context::from_waker(&waker);
    let mut waits: Vec<_> = (0..100).map(|_| Box::pin(source.readiness(Ready::READ))).collect();
    let mut other = pin!(source.readiness(Ready::WRITE));
    assert!(waits.iter_mut().all(|wait| wait.as_mut().poll(&mut cx).is_pending()));
    assert!(other.as_mut().poll(&mut cx).is_pending());
    waits.drain(40..60);
    event(&source, Ready::READABLE);
    assert_eq!(count.get(), 80);
    assert!(waits.iter_mut().all(|wait| wait.as_mut().poll(&mut cx).is_ready()));
    assert!(other.as_mut().poll(&mut cx).is_pending());
    source.shut_down();
    assert!(matches!(other.as_mut().poll(&mut cx), Poll::Ready(event) if event.is_shutdown()));
}

#[test]
fn a_waiter_whose_readiness_was_used_up_waits_again() {
    let source = Source::new();
    let (count, waker) = counter();
    let mut cx = Context::from_waker(&waker);
    let mut wait = pin!(source.readiness(Ready::READ));
    assert!(wait.as_mut().poll(&mut cx).is_pending());
    event(&source, Ready::READABLE);
    let seen = source.look(Ready::READ).unwrap();
    assert!(source.clear(seen, Ready::READ));
    assert!(wait.as_mut().poll(&mut cx).is_pending());
    event(&source, Ready::READABLE);
    assert_eq!(count.get(), 2);
    assert!(wait.as_mut().poll(&mut cx).is_ready());
}

#[test]
fn who_waits_for_errors_is_told_of_one_that_a_reader_has_cleared() {
    let source = Source::new();
    let (count, waker) = counter();
    let mut cx = Context::from_waker(&waker);
    let mut errors = pin!(source.readiness(Ready::ERROR));
    let mut datagrams = pin!(source.readiness(Ready::RECEIVE));
    assert!(errors.as_mut().poll(&mut cx).is_pending());
    assert!(datagrams.as_mut().poll(&mut cx).is_pending());
    event(&source, Ready::READABLE);
    assert_eq!(count.get(), 1, "the one that receives");
    event(&source, Ready::ERROR);
    assert_eq!(count.get(), 2);
    assert!(source.clear(source.look(Ready::RECEIVE).unwrap(), Ready::RECEIVE));
    assert!(datagrams.as_mut().poll(&mut cx).is_pending());
    let told = errors.as_mut().poll(&mut cx);
    assert!(matches!(told, Poll::Ready(event) if event.ready() == Ready::ERROR), "{told:?}");
    // Once: the next wait is for the next error.
    let mut errors = pin!(source.readiness(Ready::ERROR));
    assert!(errors.as_mut().poll(&mut cx).is_pending());
}

#[test]
fn an_error_ends_no_wait_to_read() {
    let source = Source::new();
    let (count, waker) = counter();
    let mut cx = Context::from_waker(&waker);
    assert!(source.poll_ready(Direction::Read, &mut cx).is_pending());
    event(&source, Ready::ERROR);
    assert!(source.poll_ready(Direction::Read, &mut cx).is_pending());
    assert!(source.poll_ready(Direction::Receive, &mut cx).is_ready());
    event(&source, Ready::READABLE);
    assert!(count.get() >= 1);
    assert!(source.poll_ready(Direction::Read, &mut cx).is_ready());
}

#[test]
fn a_waiter_is_woken_by_its_latest_waker() {
    let source = Source::new();
    let ((first, a), (second, b)) = (counter(), counter());
    let mut wait = pin!(source.readiness(Ready::READ));
    assert!(wait.as_mut().poll(&mut Context::from_waker(&a)).is_pending());
    assert!(wait.as_mut().poll(&mut Context::from_waker(&b)).is_pending());
    assert_eq!(Arc::strong_count(&first), 2, "the old waker is dropped");
    event(&source, Ready::READABLE);
    assert_eq!((first.get(), second.get()), (0, 1));
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker's own panic");
    }
}

#[test]
fn a_panicking_waker_keeps_no_other_from_being_woken() {
    let source = Source::new();
    let (count, waker) = counter();
    let bad = Waker::from(Arc::new(Panics));
    assert!(source.poll_ready(Direction::Read, &mut Context::from_waker(&bad)).is_pending());
    let mut waits: Vec<_> = (0..40).map(|_| Box::pin(source.readiness(Ready::READ))).collect();
    for (i, wait) in waits.iter_mut().enumerate() {
        let waker = if i == 3 { &bad } else { &waker };
        assert!(wait.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    }
    event(&source, Ready::READABLE);
    assert_eq!(count.get(), 39);
}

#[test]
fn retiring_drops_the_wakers_and_voids_late_events() {
    let source = Source::new();
    let (count, waker) = counter();
    assert!(source.poll_ready(Direction::Read, &mut Context::from_waker(&waker)).is_pending());
    drop(waker);
    source.retire(1);
    assert_eq!(Arc::strong_count(&count), 1);
    assert!(!source.set(0, Ready::READABLE));
}
