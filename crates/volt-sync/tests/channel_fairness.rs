//! Tasks of one thread that receive from one channel, and give each other turns: each has its share.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use volt_sync::coop::{allow_turns, with_budget};
use volt_sync::mpmc;

const MESSAGES: usize = 20_000;

type Woken = Arc<Mutex<VecDeque<usize>>>;

struct Flag {
    task: usize,
    woken: AtomicBool,
    queue: Woken,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        if !self.woken.swap(true, Ordering::Relaxed) {
            self.queue.lock().unwrap().push_back(self.task);
        }
    }
}

/// Polls the tasks in the order in which they are woken, until nobody is.
fn run(mut tasks: Vec<Pin<Box<dyn Future<Output = ()>>>>, budget: Option<u32>) {
    let queue = Woken::default();
    let flag = |task| Arc::new(Flag { task, woken: AtomicBool::new(false), queue: queue.clone() });
    let flags: Vec<_> = (0..tasks.len()).map(flag).collect();
    let wakers: Vec<_> = flags.iter().map(|flag| Waker::from(flag.clone())).collect();
    wakers.iter().for_each(Waker::wake_by_ref);
    let mut left = tasks.len();
    loop {
        let next = queue.lock().unwrap().pop_front();
        let Some(task) = next else { break };
        flags[task].woken.store(false, Ordering::Relaxed);
        let mut cx = Context::from_waker(&wakers[task]);
        let polled = with_budget(budget, || tasks[task].as_mut().poll(&mut cx));
        if polled.is_ready() {
            left -= 1;
            tasks[task] = Box::pin(std::future::pending());
        }
    }
    assert_eq!(left, 0, "somebody sleeps for ever");
}

/// How many messages each receiver got.
fn shares(
    senders: usize,
    receivers: usize,
    capacity: usize,
    messages: usize,
    budget: Option<u32>,
) -> Vec<usize> {
    let got = Rc::new(RefCell::new(vec![0; receivers]));
    let (tx, rx) = mpmc::bounded(capacity);
    let mut tasks: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    for receiver in 0..receivers {
        let (rx, got) = (rx.clone(), got.clone());
        tasks.push(Box::pin(async move {
            while rx.recv().await.is_some() {
                got.borrow_mut()[receiver] += 1;
            }
        }));
    }
    let next = Rc::new(Cell::new(0));
    for _ in 0..senders {
        let (tx, next) = (tx.clone(), next.clone());
        tasks.push(Box::pin(async move {
            while next.get() < messages {
                next.set(next.get() + 1);
                tx.send(()).await.unwrap();
            }
        }));
    }
    drop((tx, rx));
    run(tasks, budget);
    got.take()
}

/// On an executor of which nothing is known, and on one that allows turns.
#[test]
fn each_receiver_gets_at_least_a_third_of_its_share() {
    for budget in [None, Some(128)] {
        for (senders, receivers, capacity) in
            [(1, 2, 1), (1, 2, 2), (1, 4, 1), (1, 4, 2), (2, 4, 1), (4, 8, 2), (4, 4, 16)]
        {
            // A thread of its own: what it learns of turns must not depend on the other cases.
            let case = move || {
                allow_turns(true);
                shares(senders, receivers, capacity, MESSAGES, budget)
            };
            let got = std::thread::scope(|scope| scope.spawn(case).join().unwrap());
            assert_eq!(got.iter().sum::<usize>(), MESSAGES);
            let least = MESSAGES / receivers / 3;
            assert!(
                got.iter().all(|got| *got >= least),
                "{senders} to {receivers}, capacity {capacity}, budget {budget:?}: {got:?}"
            );
        }
    }
}
