//! A crowd on two threads whose tasks give each other turns: every message arrives exactly once, and
//! nobody sleeps for ever. `VOLT_STRESS` scales the number of messages.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use volt_sync::mpmc;

const TASKS: usize = 16;

fn messages() -> usize {
    let factor = std::env::var("VOLT_STRESS").ok().and_then(|it| it.parse().ok()).unwrap_or(1);
    2_000 * factor
}

thread_local! {
    /// The task that is polled, by the address of its flag.
    static POLLED: Cell<*const Flag> = const { Cell::new(std::ptr::null()) };
}

struct Flag {
    woken: AtomicBool,
    /// How often the task has woken itself.
    turns: AtomicUsize,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if POLLED.get() == Arc::as_ptr(self) {
            self.turns.fetch_add(1, Ordering::Relaxed);
        }
        self.woken.store(true, Ordering::Release);
    }
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Polls whoever is woken, one after the other, until all are done. How many turns they gave.
fn run(tasks: Vec<Task>) -> usize {
    let flag = || Arc::new(Flag { woken: AtomicBool::new(true), turns: AtomicUsize::new(0) });
    let mut tasks: Vec<_> = tasks.into_iter().map(|task| (flag(), task)).collect();
    let mut turns = 0;
    while !tasks.is_empty() {
        let mut idle = true;
        tasks.retain_mut(|(flag, task)| {
            if !flag.woken.swap(false, Ordering::Acquire) {
                return true;
            }
            idle = false;
            let waker = Waker::from(flag.clone());
            POLLED.set(Arc::as_ptr(flag));
            let polled = task.as_mut().poll(&mut Context::from_waker(&waker));
            POLLED.set(std::ptr::null());
            if polled == Poll::Ready(()) {
                turns += flag.turns.load(Ordering::Relaxed);
            }
            polled.is_pending()
        });
        if idle {
            thread::yield_now();
        }
    }
    turns
}

/// The executor is one that the channel knows nothing of.
#[test]
fn crowds_on_two_threads_give_turns_and_lose_nothing() {
    let each = messages();
    let (tx, rx) = mpmc::bounded::<Box<usize>>(2);
    let seen: Arc<Vec<_>> =
        Arc::new((0..2 * TASKS * each).map(|_| AtomicBool::new(false)).collect());
    let crowd = |thread: usize, tx: mpmc::Sender<_>, rx: mpmc::Receiver<Box<usize>>| {
        let mut tasks: Vec<Task> = Vec::new();
        for task in 0..TASKS {
            let (tx, rx, seen) = (tx.clone(), rx.clone(), seen.clone());
            let first = (thread * TASKS + task) * each;
            tasks.push(Box::pin(async move {
                for number in first..first + each {
                    tx.send(Box::new(number)).await.unwrap();
                }
            }));
            tasks.push(Box::pin(async move {
                while let Some(number) = rx.recv().await {
                    assert!(!seen[*number].swap(true, Ordering::Relaxed), "{number} again");
                }
            }));
        }
        drop((tx, rx));
        run(tasks)
    };
    let turns = thread::scope(|scope| {
        let handles = [0, 1].map(|thread| {
            let (tx, rx, crowd) = (tx.clone(), rx.clone(), &crowd);
            scope.spawn(move || crowd(thread, tx, rx))
        });
        drop((tx, rx));
        handles.map(|handle| handle.join().unwrap())
    });
    assert!(seen.iter().all(|seen| seen.load(Ordering::Relaxed)));
    assert!(turns.iter().all(|turns| *turns > 0), "{turns:?}");
}
