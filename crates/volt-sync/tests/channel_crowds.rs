//! Many tasks of a thread that send to one: the only receiver's budget is renewed, so that it does not go
//! behind all of them while the channel is full.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use volt_sync::coop::{allow_turns, with_budget};
use volt_sync::mpsc;

const SENDERS: usize = 64;
const EACH: usize = 1_000;
const MESSAGES: usize = SENDERS * EACH;
/// Small, so that one renewal is more than the channel holds: it does not matter how fast the machine is.
const BUDGET: u32 = 8;
const CAPACITY: usize = 64;

type Task = Pin<Box<dyn Future<Output = ()>>>;

#[derive(Default)]
struct Woken {
    polled: Option<usize>,
    /// Whom another woke last: it is next, as in the scheduler of a runtime.
    next: Option<usize>,
    others: VecDeque<usize>,
}

struct Flag {
    task: usize,
    woken: Arc<Mutex<Woken>>,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        let mut woken = self.woken.lock().unwrap();
        if woken.next == Some(self.task) || woken.others.contains(&self.task) {
            return;
        }
        let back = if woken.polled == Some(self.task) {
            Some(self.task)
        } else {
            woken.next.replace(self.task)
        };
        woken.others.extend(back);
    }
}

/// Polls the tasks until nobody is woken, and returns how often.
fn run(mut tasks: Vec<Task>) -> usize {
    let woken =
        Arc::new(Mutex::new(Woken { others: (0..tasks.len()).collect(), ..Woken::default() }));
    let waker = |task| Waker::from(Arc::new(Flag { task, woken: woken.clone() }));
    let wakers: Vec<_> = (0..tasks.len()).map(waker).collect();
    let mut left = tasks.len();
    for polls in 0.. {
        let task = {
            let mut woken = woken.lock().unwrap();
            let task = woken.next.take().or_else(|| woken.others.pop_front());
            woken.polled = task;
            task
        };
        let Some(task) = task else {
            assert_eq!(left, 0, "somebody sleeps for ever");
            return polls;
        };
        let mut cx = Context::from_waker(&wakers[task]);
        if with_budget(Some(BUDGET), || tasks[task].as_mut().poll(&mut cx)).is_ready() {
            left -= 1;
            tasks[task] = Box::pin(std::future::pending());
        }
    }
    unreachable!()
}

/// How many polls all messages take.
fn polls() -> usize {
    let (tx, mut rx) = mpsc::channel(CAPACITY);
    let received = Rc::new(Cell::new(0));
    let send = |_| {
        let tx = tx.clone();
        let all = async move {
            for i in 0..EACH {
                tx.send(i).await.unwrap();
            }
        };
        Box::pin(all) as Task
    };
    let mut tasks: Vec<_> = (0..SENDERS).map(send).collect();
    drop(tx);
    let count = received.clone();
    tasks.push(Box::pin(async move {
        while rx.recv().await.is_some() {
            count.set(count.get() + 1);
        }
    }));
    let polls = run(tasks);
    assert_eq!(received.get(), MESSAGES);
    polls
}

#[test]
fn a_crowd_of_senders_is_not_polled_in_vain() {
    allow_turns(true);
    let polls = polls();
    // A sender's budget is a poll of it, and one of the receiver.
    assert!(polls < MESSAGES / 2, "{polls} polls for {MESSAGES} messages");
}
