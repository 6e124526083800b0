//! Channels between tasks: every message is counted and summed up.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use crate::bench::Bench;
use crate::kind::{Broadcast, Channel, Runtime, Watch};
use crate::on_tokio::{self, channel as tokio, fanout};
use crate::on_volt::mpmc::Mpmc;
use crate::on_volt::{self, channel as volt, fanout as volt_fanout};
use crate::peers::channels as peers;
use crate::registry::Row;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = many_receivers();
    rows.extend(one_receiver());
    rows
}

fn many_receivers() -> Vec<Row> {
    type Tokio = on_tokio::Multi;
    let mpmc = |id, title| Row::new(id, title).headline().detail();
    vec![
        mpmc("contended/mpmc_4x4_1024", "MPMC 4 to 4, capacity 1024")
            .volt("volt", relay::<on_volt::Multi, Mpmc, 4, 4, 1024>)
            .volt("volt on tokio", relay::<Tokio, Mpmc, 4, 4, 1024>)
            .peer("kanal", relay::<Tokio, peers::Kanal, 4, 4, 1024>)
            .peer("flume", relay::<Tokio, peers::Flume, 4, 4, 1024>)
            .peer("async-channel", relay::<Tokio, peers::AsyncChannel, 4, 4, 1024>)
            .peer("asyncband", relay::<Tokio, peers::Asyncband, 4, 4, 1024>)
            .floor("crossbeam", relay_threads::<4, 4, 1024>)
            .but("on 8 threads instead of tasks"),
        mpmc("contended/mpmc_4x4_16", "MPMC 4 to 4, capacity 16")
            .volt("volt", relay::<on_volt::Multi, Mpmc, 4, 4, 16>)
            .volt("volt on tokio", relay::<Tokio, Mpmc, 4, 4, 16>)
            .peer("kanal", relay::<Tokio, peers::Kanal, 4, 4, 16>)
            .peer("flume", relay::<Tokio, peers::Flume, 4, 4, 16>)
            .peer("async-channel", relay::<Tokio, peers::AsyncChannel, 4, 4, 16>)
            .peer("asyncband", relay::<Tokio, peers::Asyncband, 4, 4, 16>)
            .floor("crossbeam", relay_threads::<4, 4, 16>)
            .but("on 8 threads instead of tasks"),
        mpmc("contended/mpmc_32x32_16", "MPMC 32 to 32, capacity 16")
            .note("more tasks must not mean collapse: compare with the row of 4 to 4")
            .volt("volt", relay::<on_volt::Multi, Mpmc, 32, 32, 16>)
            .volt("volt on tokio", relay::<Tokio, Mpmc, 32, 32, 16>)
            .peer("kanal", relay::<Tokio, peers::Kanal, 32, 32, 16>)
            .peer("flume", relay::<Tokio, peers::Flume, 32, 32, 16>)
            .peer("async-channel", relay::<Tokio, peers::AsyncChannel, 32, 32, 16>)
            .peer("asyncband", relay::<Tokio, peers::Asyncband, 32, 32, 16>),
        Row::new("contended/broadcast_1x4", "Broadcast 1 to 4, capacity 256 (per send)")
            .headline()
            .volt("volt", broadcast::<on_volt::Multi, volt_fanout::ToAll>)
            .volt("volt on tokio", broadcast::<Tokio, volt_fanout::ToAll>)
            .peer("tokio", broadcast::<Tokio, fanout::ToAll>)
            .peer("asyncband", broadcast::<Tokio, peers::AsyncbandBroadcast>),
        Row::new("contended/watch_1x4", "Watch 1 to 4 (per send)")
            .headline()
            .volt("volt", watch::<on_volt::Multi, volt_fanout::Latest>)
            .volt("volt on tokio", watch::<Tokio, volt_fanout::Latest>)
            .peer("tokio", watch::<Tokio, fanout::Latest>)
            .peer("asyncband", watch::<Tokio, peers::AsyncbandWatch>),
    ]
}

fn one_receiver() -> Vec<Row> {
    type Tokio = on_tokio::Multi;
    vec![
        Row::new("contended/mpsc_4x1_1024", "MPSC 4 to 1, capacity 1024")
            .headline()
            .detail()
            .volt("volt", relay::<on_volt::Multi, volt::Bounded, 4, 1, 1024>)
            .volt("volt on tokio", relay::<Tokio, volt::Bounded, 4, 1, 1024>)
            .volt("volt mpmc on tokio", relay::<Tokio, Mpmc, 4, 1, 1024>)
            .peer("tokio", relay::<Tokio, tokio::Bounded, 4, 1, 1024>)
            .peer("kanal", relay::<Tokio, peers::Kanal, 4, 1, 1024>)
            .peer("flume", relay::<Tokio, peers::Flume, 4, 1, 1024>)
            .peer("async-channel", relay::<Tokio, peers::AsyncChannel, 4, 1, 1024>)
            .peer("tachyonix", relay::<Tokio, peers::Tachyonix, 4, 1, 1024>)
            .peer("asyncband", relay::<Tokio, peers::AsyncbandMpsc, 4, 1, 1024>)
            .floor("crossbeam", relay_threads::<4, 1, 1024>)
            .but("on 5 threads instead of tasks"),
        Row::new("contended/spsc_64", "SPSC, capacity 64")
            .headline()
            .detail()
            .volt("volt", relay::<on_volt::Multi, volt::Bounded, 1, 1, 64>)
            .volt("volt on tokio", relay::<Tokio, volt::Bounded, 1, 1, 64>)
            .volt("volt mpmc on tokio", relay::<Tokio, Mpmc, 1, 1, 64>)
            .peer("tokio", relay::<Tokio, tokio::Bounded, 1, 1, 64>)
            .peer("kanal", relay::<Tokio, peers::Kanal, 1, 1, 64>)
            .peer("flume", relay::<Tokio, peers::Flume, 1, 1, 64>)
            .peer("async-channel", relay::<Tokio, peers::AsyncChannel, 1, 1, 64>)
            .peer("tachyonix", relay::<Tokio, peers::Tachyonix, 1, 1, 64>)
            .peer("asyncband", relay::<Tokio, peers::AsyncbandMpsc, 1, 1, 64>)
            .floor("crossbeam", relay_threads::<1, 1, 64>)
            .but("on 2 threads instead of tasks"),
    ]
}

async fn send_all<C: Channel>(tx: C::Tx, from: u64, to: u64) {
    for value in from..to {
        assert!(C::send(&tx, value).await, "open");
    }
}

/// The count and the sum of what arrives.
async fn recv_all<C: Channel>(mut rx: C::Rx) -> (u64, u64) {
    let (mut count, mut sum) = (0, 0_u64);
    while let Some(value) = C::recv(&mut rx).await {
        count += 1;
        sum = sum.wrapping_add(value);
    }
    (count, sum)
}

fn check(n: u64, received: impl Iterator<Item = (u64, u64)>) {
    let (count, sum) =
        received.fold((0, 0_u64), |(c, s), (count, sum)| (c + count, s.wrapping_add(sum)));
    assert_eq!(count, n, "every message arrives once");
    assert_eq!(sum, (0..n).fold(0, u64::wrapping_add), "unchanged");
}

/// Message numbers of sender `i`.
fn share<const SENDERS: usize>(n: u64, i: usize) -> (u64, u64) {
    let at = |i: usize| n * i as u64 / SENDERS as u64;
    (at(i), at(i + 1))
}

pub(crate) fn relay<
    R: Runtime,
    C: Channel,
    const SENDERS: usize,
    const RECEIVERS: usize,
    const CAPACITY: usize,
>(
    b: &mut Bench,
) {
    let runtime = R::start();
    if b.detail() {
        return relay_stamps::<R, C, SENDERS, RECEIVERS, CAPACITY>(b, &runtime);
    }
    b.iter(|n| {
        let (tx, rx) = C::create(Some(CAPACITY));
        let receivers: Vec<_> = C::receivers(rx, RECEIVERS)
            .into_iter()
            .map(|rx| runtime.spawn_outside(recv_all::<C>(rx)))
            .collect();
        let send = |i| {
            let (from, to) = share::<SENDERS>(n, i);
            runtime.spawn_outside(send_all::<C>(tx.clone(), from, to))
        };
        let senders: Vec<_> = (0..SENDERS).map(send).collect();
        drop(tx);
        runtime.block_on(join_all(senders));
        let received = runtime.block_on(join_all(receivers));
        check(n, received.into_iter());
    });
}

/// How long a message is under way, and how evenly the senders get theirs in: each message is the
/// moment at which it was sent.
fn relay_stamps<
    R: Runtime,
    C: Channel,
    const SENDERS: usize,
    const RECEIVERS: usize,
    const CAPACITY: usize,
>(
    b: &mut Bench,
    runtime: &R,
) {
    let (tx, rx) = C::create(Some(CAPACITY));
    let (start, stop) = (Instant::now(), Arc::new(AtomicBool::new(false)));
    let now = move || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let receive = |mut rx: C::Rx| async move {
        let mut waits = Vec::new();
        while let Some(sent) = C::recv(&mut rx).await {
            waits.push(now().saturating_sub(sent));
        }
        waits
    };
    let send = |tx: C::Tx, stop: Arc<AtomicBool>| async move {
        let mut sent = 0_u64;
        while !stop.load(Ordering::Relaxed) {
            assert!(C::send(&tx, now()).await, "open");
            sent += 1;
            if sent.is_multiple_of(64) {
                // A sender that never finds the channel full must not keep its worker.
                R::yield_now().await;
            }
        }
        sent
    };
    let receivers: Vec<_> = C::receivers(rx, RECEIVERS)
        .into_iter()
        .map(|rx| runtime.spawn_outside(receive(rx)))
        .collect();
    let senders: Vec<_> =
        (0..SENDERS).map(|_| runtime.spawn_outside(send(tx.clone(), Arc::clone(&stop)))).collect();
    drop(tx);
    std::thread::sleep(b.duration() * 4);
    stop.store(true, Ordering::Relaxed);
    let sent = runtime.block_on(join_all(senders));
    let waits = runtime.block_on(join_all(receivers)).concat();
    assert_eq!(waits.len() as u64, sent.iter().sum::<u64>(), "every message arrives once");
    b.fairness(waits, &sent);
}

async fn join_all<F: Future>(joins: Vec<F>) -> Vec<F::Output> {
    let mut outputs = Vec::with_capacity(joins.len());
    for join in joins {
        outputs.push(join.await);
    }
    outputs
}

/// The same with threads and crossbeam's channel.
fn relay_threads<const SENDERS: usize, const RECEIVERS: usize, const CAPACITY: usize>(
    b: &mut Bench,
) {
    b.iter_timed(1, |n| {
        let (tx, rx) = crossbeam_channel::bounded::<u64>(CAPACITY);
        let ready = Barrier::new(SENDERS + RECEIVERS + 1);
        std::thread::scope(|scope| {
            let receive = |rx: crossbeam_channel::Receiver<u64>| {
                ready.wait();
                rx.iter().fold((0_u64, 0_u64), |(count, sum), value| {
                    (count + 1, sum.wrapping_add(value))
                })
            };
            let receivers: Vec<_> = (0..RECEIVERS)
                .map(|_| {
                    let rx = rx.clone();
                    scope.spawn(move || receive(rx))
                })
                .collect();
            for i in 0..SENDERS {
                let (tx, ready) = (tx.clone(), &ready);
                let (from, to) = share::<SENDERS>(n, i);
                scope.spawn(move || {
                    ready.wait();
                    (from..to).for_each(|value| tx.send(value).expect("open"));
                });
            }
            drop((tx, rx));
            ready.wait();
            let start = Instant::now();
            check(n, receivers.into_iter().map(|r| r.join().expect("the receiver ends well")));
            start.elapsed()
        })
    });
}

/// The sender stays within the capacity: after each window every receiver says that it is through.
pub(crate) fn broadcast<R: Runtime, B: Broadcast>(b: &mut Bench) {
    const WINDOW: u64 = 256;
    const RECEIVERS: usize = 4;
    let runtime = R::start();
    b.iter_ops(WINDOW, |n| {
        let (tx, receivers) = B::create(WINDOW as usize, RECEIVERS);
        let (through, all_through) = async_channel::bounded::<()>(RECEIVERS);
        let receive = |mut rx: B::Rx| {
            let through = through.clone();
            async move {
                let mut next = 0;
                while let Some(value) = B::recv(&mut rx).await {
                    assert_eq!(value, next, "in order, none lost");
                    next += 1;
                    if next % WINDOW == 0 {
                        through.send(()).await.expect("open");
                    }
                }
                next
            }
        };
        let receivers: Vec<_> =
            receivers.into_iter().map(|rx| runtime.spawn_outside(receive(rx))).collect();
        let sender = runtime.spawn_outside(async move {
            for window in 0..n {
                for i in 0..WINDOW {
                    B::send(&tx, window * WINDOW + i).await;
                }
                for _ in 0..RECEIVERS {
                    all_through.recv().await.expect("open");
                }
            }
        });
        runtime.block_on(sender);
        let received = runtime.block_on(join_all(receivers));
        assert!(received.iter().all(|&r| r == n * WINDOW), "all received all");
    });
}

/// The sender yields now and then; receivers may skip values, and must see the last.
pub(crate) fn watch<R: Runtime, W: Watch>(b: &mut Bench) {
    let runtime = R::start();
    b.iter(|n| {
        let (tx, rx) = W::create();
        let receive = |mut rx: W::Rx| async move {
            let mut last = W::get(&mut rx);
            while W::changed(&mut rx).await {
                let value = W::get(&mut rx);
                assert!(value >= last, "never backwards");
                last = value;
            }
            last
        };
        let receivers: Vec<_> =
            (0..4).map(|_| runtime.spawn_outside(receive(rx.clone()))).collect();
        drop(rx);
        let sender = runtime.spawn_outside(async move {
            for i in 1..=n {
                W::send(&tx, i);
                if i % 32 == 0 {
                    R::yield_now().await;
                }
            }
        });
        runtime.block_on(sender);
        let seen = runtime.block_on(join_all(receivers));
        assert!(seen.iter().all(|&last| last == n), "all see the last value");
    });
}
