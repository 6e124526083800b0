//! Two or three threads, bounded by `LOOM_MAX_PREEMPTIONS`.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Poll, Waker};

use super::Event;
use crate::block_on::block_on;
use crate::primitive::{Arc, AtomicBool, Mutex, explore, explore_preempted, thread};

struct Shared {
    event: Event,
    flag: AtomicBool,
    lock: Mutex<()>,
}

fn shared() -> Arc<Shared> {
    let (event, flag) = (Event::new(), AtomicBool::new(false));
    Arc::new(Shared { event, flag, lock: Mutex::new(()) })
}

fn wait(shared: &Shared, look: impl Fn(&Shared) -> bool) {
    let mut listener = pin!(shared.event.listener());
    block_on(poll_fn(|cx| {
        listener.as_mut().listen(cx.waker());
        if look(shared) { Poll::Ready(()) } else { Poll::Pending }
    }));
}

#[test]
fn notify_all_reaches_whoever_does_not_see_the_change() {
    explore_preempted(1, || {
        let shared = shared();
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || wait(&shared, |it| it.flag.load(Relaxed)))
            })
            .collect();
        shared.flag.store(true, Relaxed);
        shared.event.notify_all().resume();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

#[test]
fn notify_if_waiting_relies_on_the_callers_lock() {
    explore(|| {
        let shared = shared();
        let waiter = {
            let shared = shared.clone();
            thread::spawn(move || {
                wait(&shared, |it| {
                    let _guard = it.lock.lock().unwrap();
                    it.flag.load(Relaxed)
                });
            })
        };
        let guard = shared.lock.lock().unwrap();
        shared.flag.store(true, Relaxed);
        drop(guard);
        shared.event.notify_if_waiting().resume();
        waiter.join().unwrap();
    });
}

#[test]
fn a_listener_is_dropped_or_changes_its_waker_while_it_is_notified() {
    explore(|| {
        let shared = shared();
        let notifier = {
            let shared = shared.clone();
            thread::spawn(move || shared.event.notify_all().resume())
        };
        {
            let mut listener = Box::pin(shared.event.listener());
            listener.as_mut().listen(Waker::noop());
            struct Other;
            impl std::task::Wake for Other {
                fn wake(self: std::sync::Arc<Self>) {}
            }
            listener.as_mut().listen(&Waker::from(std::sync::Arc::new(Other)));
        }
        notifier.join().unwrap();
    });
}
