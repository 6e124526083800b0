use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use super::{Event, Listener};

#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn all_listeners_are_woken_once_also_beyond_one_batch() {
    let event = Event::new();
    let counter = Arc::new(Counter::default());
    let waker = Waker::from(counter.clone());
    let mut listeners: Vec<_> = (0..100).map(|_| Box::pin(event.listener())).collect();
    listeners.iter_mut().for_each(|listener| listener.as_mut().listen(&waker));
    event.notify_if_waiting().resume();
    assert_eq!(counter.0.load(SeqCst), 100);
    event.notify_all().resume();
    assert_eq!(counter.0.load(SeqCst), 100, "nobody listens any more");
}

#[test]
fn a_dropped_listener_is_not_woken_and_its_waker_is_freed() {
    let event = Event::new();
    let counter = Arc::new(Counter::default());
    {
        let waker = Waker::from(counter.clone());
        let mut first = pin!(event.listener());
        first.as_mut().listen(&waker);
        let mut second = Box::pin(event.listener());
        second.as_mut().listen(&waker);
    }
    assert_eq!(Arc::strong_count(&counter), 1);
    event.notify_all().resume();
    assert_eq!(counter.0.load(SeqCst), 0);
}

#[test]
fn listening_again_inside_a_wake_up_waits_for_the_next_notification() {
    static EVENT: Event = Event::new();
    /// Listens again, on another task's behalf, whenever it is woken.
    #[derive(Default)]
    struct Again(AtomicUsize, Mutex<Vec<Pin<Box<Listener<'static>>>>>);
    impl Wake for Again {
        fn wake(self: Arc<Self>) {
            assert!(self.0.fetch_add(1, SeqCst) < 10, "woken by one notification for ever");
            let mut listener = Box::pin(EVENT.listener());
            listener.as_mut().listen(&Waker::from(self.clone()));
            self.1.lock().unwrap().push(listener);
        }
    }
    let again = Arc::new(Again::default());
    let mut listener = Box::pin(EVENT.listener());
    listener.as_mut().listen(&Waker::from(again.clone()));
    EVENT.notify_all().resume();
    assert_eq!(again.0.load(SeqCst), 1);
    EVENT.notify_all().resume();
    assert_eq!(again.0.load(SeqCst), 2);
    let listeners = std::mem::take(&mut *again.1.lock().unwrap());
    drop(listeners);
}

#[test]
fn a_panicking_waker_does_not_keep_the_others_asleep() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("waker");
        }
    }
    let event = Event::new();
    let counter = Arc::new(Counter::default());
    let (panics, counts) = (Waker::from(Arc::new(Panics)), Waker::from(counter.clone()));
    let mut listeners: Vec<_> = (0..40).map(|_| Box::pin(event.listener())).collect();
    for (number, listener) in listeners.iter_mut().enumerate() {
        listener.as_mut().listen(if number % 3 == 0 { &panics } else { &counts });
    }
    let result =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| event.notify_all().resume()));
    assert!(result.is_err());
    assert_eq!(counter.0.load(SeqCst), 26);
}
