//! Many threads: every message arrives exactly once, in the order of its sender, and every value is
//! dropped exactly once. `VOLT_STRESS` scales the number of messages.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;

use volt_sync::{mpmc, mpsc};

fn messages() -> usize {
    let factor = std::env::var("VOLT_STRESS").ok().and_then(|it| it.parse().ok()).unwrap_or(1);
    20_000 * factor
}

/// A message that counts the living.
struct Message {
    sender: usize,
    number: usize,
    alive: Arc<AtomicUsize>,
}

impl Message {
    fn new(sender: usize, number: usize, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self { sender, number, alive: alive.clone() }
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Sends in every way there is; now and then a send is cancelled while it waits.
fn send_all(tx: &mpmc::Sender<Message>, sender: usize, count: usize, alive: &Arc<AtomicUsize>) {
    let mut number = 0;
    while number < count {
        let message = Message::new(sender, number, alive);
        match number % 4 {
            0 => tx.blocking_send(message).unwrap(),
            1 => match tx.try_send(message) {
                Ok(()) => {}
                Err(error) => tx.blocking_send(error.into_inner()).unwrap(),
            },
            2 => {
                let mut send = pin!(tx.send(message));
                match poll_once(send.as_mut()) {
                    Poll::Ready(sent) => sent.unwrap(),
                    // Cancelled: not sent, so this number again.
                    Poll::Pending => continue,
                }
            }
            _ => futures::executor::block_on(tx.send(message)).unwrap(),
        }
        number += 1;
    }
}

/// Receives in every way there is; now and then a wait is cancelled. Returns the number received.
fn receive_all(rx: &mpmc::Receiver<Message>, senders: usize) -> usize {
    let mut next = vec![0; senders];
    let mut count = 0;
    loop {
        let message = match count % 3 {
            0 => rx.blocking_recv(),
            1 => {
                // Cancelled before the next wait: a notified future that is neither polled nor
                // dropped keeps its message waiting.
                let polled = poll_once(pin!(rx.recv()));
                match polled {
                    Poll::Ready(message) => message,
                    Poll::Pending => rx.blocking_recv(),
                }
            }
            _ => futures::executor::block_on(rx.recv()),
        };
        let Some(message) = message else { return count };
        assert!(message.number >= next[message.sender], "the order of one sender");
        next[message.sender] = message.number + 1;
        count += 1;
    }
}

fn run_mpmc(capacity: Option<usize>, senders: usize, receivers: usize) {
    let (tx, rx) = capacity.map_or_else(mpmc::unbounded, mpmc::bounded);
    let alive = Arc::new(AtomicUsize::new(0));
    let each = messages() / senders;
    let received: usize = thread::scope(|scope| {
        let receivers: Vec<_> = (0..receivers)
            .map(|_| {
                let rx = rx.clone();
                scope.spawn(move || receive_all(&rx, senders))
            })
            .collect();
        for sender in 0..senders {
            let (tx, alive) = (tx.clone(), alive.clone());
            scope.spawn(move || send_all(&tx, sender, each, &alive));
        }
        drop(tx);
        drop(rx);
        receivers.into_iter().map(|receiver| receiver.join().unwrap()).sum()
    });
    assert_eq!(received, each * senders);
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

#[test]
fn mpmc_of_every_kind_of_capacity() {
    for capacity in [1, 2, 3, 16, 100] {
        run_mpmc(Some(capacity), 2, 2);
        run_mpmc(Some(capacity), 4, 1);
        run_mpmc(Some(capacity), 1, 4);
    }
}

#[test]
fn mpmc_unbounded() {
    run_mpmc(None, 2, 2);
    run_mpmc(None, 4, 1);
    run_mpmc(None, 1, 4);
}

#[test]
fn the_last_receiver_leaves_in_the_middle() {
    for capacity in [Some(1), Some(64), None] {
        let (tx, rx) = capacity.map_or_else(mpmc::unbounded, mpmc::bounded);
        let alive = Arc::new(AtomicUsize::new(0));
        thread::scope(|scope| {
            for sender in 0..3 {
                let (tx, alive) = (tx.clone(), alive.clone());
                scope.spawn(move || {
                    let mut number = 0;
                    while tx.blocking_send(Message::new(sender, number, &alive)).is_ok() {
                        number += 1;
                    }
                });
            }
            scope.spawn(move || {
                for _ in 0..messages() / 4 {
                    rx.blocking_recv().unwrap();
                }
            });
        });
        assert!(tx.is_closed());
        assert_eq!(tx.len(), 0);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn mpsc_with_permits_batches_and_cancellations() {
    for capacity in [1, 3, 8] {
        let (tx, mut rx) = mpsc::channel(capacity);
        let alive = Arc::new(AtomicUsize::new(0));
        let each = messages() / 3;
        thread::scope(|scope| {
            for sender in 0..3 {
                let (tx, alive) = (tx.clone(), alive.clone());
                scope.spawn(move || {
                    let mut number = 0;
                    while number < each {
                        let want = (number % capacity + 1).min(each - number);
                        {
                            // Cancelled, perhaps after it was served.
                            let mut reserve = pin!(tx.reserve_many(want));
                            let _ = poll_once(reserve.as_mut());
                        }
                        let permits = futures::executor::block_on(tx.reserve_many(want)).unwrap();
                        // One permit is given back, if there are several.
                        for permit in permits.take((want - 1).max(1)) {
                            permit.send(Message::new(sender, number, &alive));
                            number += 1;
                        }
                    }
                });
            }
            drop(tx);
            let mut batch = Vec::new();
            let mut next = [0; 3];
            let mut count = 0;
            loop {
                let got = match count % 2 {
                    0 => rx.blocking_recv_many(&mut batch, 5),
                    _ => rx.blocking_recv().map_or(0, |message| {
                        batch.push(message);
                        1
                    }),
                };
                if got == 0 {
                    break;
                }
                count += got;
                for message in batch.drain(..) {
                    assert_eq!(message.number, next[message.sender]);
                    next[message.sender] += 1;
                }
            }
            assert_eq!(count, each * 3);
        });
        assert_eq!(rx.capacity(), capacity, "every place was given back");
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn mpsc_unbounded() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    let alive = Arc::new(AtomicUsize::new(0));
    let each = messages();
    thread::scope(|scope| {
        for sender in 0..3 {
            let (tx, alive) = (tx.clone(), alive.clone());
            scope.spawn(move || {
                (0..each).for_each(|number| {
                    assert!(tx.send(Message::new(sender, number, &alive)).is_ok());
                });
            });
        }
        drop(tx);
        let mut next = [0; 3];
        while let Some(message) = rx.blocking_recv() {
            assert_eq!(message.number, next[message.sender]);
            next[message.sender] += 1;
        }
        assert_eq!(next, [each; 3]);
    });
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}
