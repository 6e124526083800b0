//! Channels on one thread: the path without a wait.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::bench::Bench;
use crate::kind::{Broadcast, Channel, Single, Watch, block_on};
use crate::on_tokio::{channel as tokio, fanout};
use crate::on_volt::mpmc::Mpmc;
use crate::on_volt::{channel as volt, fanout as volt_fanout};
use crate::peers::channels as peers;
use crate::registry::Row;

/// Capacity of the rows that fill and drain.
const RING: u64 = 1024;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = one_way();
    rows.extend(there_and_back());
    rows.extend(others());
    rows
}

fn one_way() -> Vec<Row> {
    vec![
        Row::new("channel/try_send", "Bounded: try_send")
            .headline()
            .volt("volt", try_send::<Mpmc>)
            .volt("volt mpsc", try_send::<volt::Bounded>)
            .peer("tokio", try_send::<tokio::Bounded>)
            .peer("kanal", try_send::<peers::Kanal>)
            .peer("flume", try_send::<peers::Flume>)
            .peer("crossbeam", try_send::<peers::Crossbeam>)
            .peer("async-channel", try_send::<peers::AsyncChannel>)
            .peer("tachyonix", try_send::<peers::Tachyonix>)
            .peer("asyncband", try_send::<peers::AsyncbandMpsc>),
        Row::new("channel/try_recv", "Bounded: try_recv")
            .headline()
            .volt("volt", try_recv::<Mpmc>)
            .volt("volt mpsc", try_recv::<volt::Bounded>)
            .peer("tokio", try_recv::<tokio::Bounded>)
            .peer("kanal", try_recv::<peers::Kanal>)
            .peer("flume", try_recv::<peers::Flume>)
            .peer("crossbeam", try_recv::<peers::Crossbeam>)
            .peer("async-channel", try_recv::<peers::AsyncChannel>)
            .peer("tachyonix", try_recv::<peers::Tachyonix>)
            .peer("asyncband", try_recv::<peers::AsyncbandMpsc>),
    ]
}

fn there_and_back() -> Vec<Row> {
    vec![
        Row::new("channel/cap1_try", "Capacity 1: try_send, try_recv")
            .headline()
            .countable()
            .volt("volt", round_trip::<Mpmc, 1>)
            .volt("volt mpsc", round_trip::<volt::Bounded, 1>)
            .peer("tokio", round_trip::<tokio::Bounded, 1>)
            .peer("kanal", round_trip::<peers::Kanal, 1>)
            .peer("flume", round_trip::<peers::Flume, 1>)
            .peer("crossbeam", round_trip::<peers::Crossbeam, 1>)
            .peer("async-channel", round_trip::<peers::AsyncChannel, 1>)
            .peer("tachyonix", round_trip::<peers::Tachyonix, 1>)
            .peer("asyncband", round_trip::<peers::AsyncbandMpsc, 1>),
        Row::new("channel/cap1_await", "Capacity 1: send().await, recv().await")
            .headline()
            .countable()
            .volt("volt", round_trip_await::<Mpmc, 1>)
            .volt("volt mpsc", round_trip_await::<volt::Bounded, 1>)
            .peer("tokio", round_trip_await::<tokio::Bounded, 1>)
            .peer("kanal", round_trip_await::<peers::Kanal, 1>)
            .peer("flume", round_trip_await::<peers::Flume, 1>)
            .peer("async-channel", round_trip_await::<peers::AsyncChannel, 1>)
            .peer("tachyonix", round_trip_await::<peers::Tachyonix, 1>)
            .peer("asyncband", round_trip_await::<peers::AsyncbandMpsc, 1>),
        Row::new("channel/unbounded", "Unbounded: send, try_recv")
            .headline()
            .countable()
            .volt("volt", round_trip::<volt::Unbounded, 0>)
            .volt("volt mpmc", round_trip::<Mpmc, 0>)
            .peer("tokio", round_trip::<tokio::Unbounded, 0>)
            .peer("kanal", round_trip::<peers::Kanal, 0>)
            .peer("flume", round_trip::<peers::Flume, 0>)
            .peer("crossbeam", round_trip::<peers::Crossbeam, 0>)
            .peer("async-channel", round_trip::<peers::AsyncChannel, 0>)
            .peer("asyncband", round_trip::<peers::AsyncbandUnbounded, 0>),
    ]
}

fn others() -> Vec<Row> {
    vec![
        Row::new("channel/create", "Capacity 16: create, try_send, try_recv, drop")
            .countable()
            .why(
                "words that different threads write keep 128 bytes from each other, so a channel has 1,056 bytes; to move it \
                 to its place is a fifth of the time. asyncband's has 280",
            )
            .volt("volt", life::<Mpmc, 16>)
            .volt("volt mpsc", life::<volt::Bounded, 16>)
            .peer("tokio", life::<tokio::Bounded, 16>)
            .peer("kanal", life::<peers::Kanal, 16>)
            .peer("flume", life::<peers::Flume, 16>)
            .peer("crossbeam", life::<peers::Crossbeam, 16>)
            .peer("async-channel", life::<peers::AsyncChannel, 16>)
            .peer("tachyonix", life::<peers::Tachyonix, 16>)
            .peer("asyncband", life::<peers::AsyncbandMpsc, 16>),
        Row::new("channel/oneshot", "Oneshot: create, send, recv().await")
            .headline()
            .countable()
            .volt("volt", oneshot::<volt::Oneshot>)
            .peer("tokio", oneshot::<tokio::Oneshot>)
            .peer("oneshot", oneshot::<peers::OneshotCrate>)
            .peer("asyncband", oneshot::<peers::AsyncbandOneshot>),
        Row::new("channel/broadcast", "Broadcast: send, received by 4")
            .headline()
            .countable()
            .volt("volt", broadcast::<volt_fanout::ToAll>)
            .peer("tokio", broadcast::<fanout::ToAll>)
            .peer("asyncband", broadcast::<peers::AsyncbandBroadcast>),
        Row::new("channel/watch", "Watch: send, borrow")
            .headline()
            .countable()
            .volt("volt", watch::<volt_fanout::Latest>)
            .peer("tokio", watch::<fanout::Latest>)
            .peer("asyncband", watch::<peers::AsyncbandWatch>),
    ]
}

/// Capacity 0 stands for an unbounded channel.
fn capacity(capacity: usize) -> Option<usize> {
    (capacity > 0).then_some(capacity)
}

fn try_send<C: Channel>(b: &mut Bench) {
    let (tx, mut rx) = C::create(Some(RING as usize));
    b.iter_timed(RING, |n| {
        let mut spent = Duration::ZERO;
        for _ in 0..n {
            let start = Instant::now();
            for i in 0..RING {
                assert!(C::try_send(black_box(&tx), i), "there is room");
            }
            spent += start.elapsed();
            (0..RING).for_each(|i| assert_eq!(C::try_recv(&mut rx), Some(i)));
        }
        spent
    });
}

fn try_recv<C: Channel>(b: &mut Bench) {
    let (tx, mut rx) = C::create(Some(RING as usize));
    b.iter_timed(RING, |n| {
        let mut spent = Duration::ZERO;
        for _ in 0..n {
            (0..RING).for_each(|i| assert!(C::try_send(&tx, i), "there is room"));
            let start = Instant::now();
            for i in 0..RING {
                assert_eq!(C::try_recv(black_box(&mut rx)), Some(i));
            }
            spent += start.elapsed();
        }
        spent
    });
}

fn round_trip<C: Channel, const CAPACITY: usize>(b: &mut Bench) {
    let (tx, mut rx) = C::create(capacity(CAPACITY));
    b.iter(|n| {
        for i in 0..n {
            assert!(C::try_send(black_box(&tx), i), "there is room");
            assert_eq!(C::try_recv(black_box(&mut rx)), Some(i));
        }
    });
}

fn round_trip_await<C: Channel, const CAPACITY: usize>(b: &mut Bench) {
    let (tx, mut rx) = C::create(capacity(CAPACITY));
    b.iter(|n| {
        block_on(async {
            for i in 0..n {
                assert!(C::send(black_box(&tx), i).await, "open");
                assert_eq!(C::recv(black_box(&mut rx)).await, Some(i));
            }
        });
    });
}

fn life<C: Channel, const CAPACITY: usize>(b: &mut Bench) {
    b.iter(|n| {
        for i in 0..n {
            let (tx, mut rx) = black_box(C::create(capacity(CAPACITY)));
            assert!(C::try_send(&tx, i), "there is room");
            assert_eq!(C::try_recv(&mut rx), Some(i));
        }
    });
}

fn oneshot<S: Single>(b: &mut Bench) {
    b.iter(|n| {
        block_on(async {
            for i in 0..n {
                let (tx, rx) = black_box(S::create());
                assert!(S::send(tx, i), "open");
                assert_eq!(S::recv(rx).await, Some(i));
            }
        });
    });
}

fn broadcast<B: Broadcast>(b: &mut Bench) {
    let (tx, mut receivers) = B::create(16, 4);
    b.iter(|n| {
        block_on(async {
            for i in 0..n {
                B::send(&tx, i).await;
                for rx in &mut receivers {
                    assert_eq!(B::try_recv(rx), Some(i));
                }
            }
        });
    });
}

fn watch<W: Watch>(b: &mut Bench) {
    let (tx, mut rx) = W::create();
    b.iter(|n| {
        for i in 0..n {
            W::send(black_box(&tx), i);
            assert_eq!(W::get(black_box(&mut rx)), i);
        }
    });
}
