//! A runtime that takes few events at a time: all are delivered, and no more at once.
#![cfg(unix)]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

#[path = "support/net.rs"]
mod support;

use std::future::Future;
use std::io::Write;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use support::bounded;
use volt::io::AsyncReadExt;
use volt::net::UnixStream;
use volt::runtime::{Builder, Runtime};
use volt::task::{JoinHandle, yield_now};

const SOCKETS: usize = 64;
/// Enough that reads are put off.
const ROUNDS: u8 = 50;

/// With so many events for a turn that waits, and for one that does not.
fn runtimes(waiting: usize, busy: usize) -> Vec<Runtime> {
    let mut builders = vec![Builder::new_current_thread()];
    for workers in [1, 2, 8] {
        builders.push(Builder::new_multi_thread());
        builders.last_mut().unwrap().worker_threads(workers);
    }
    let build = |mut builder: Builder| {
        builder.max_io_events_per_tick(waiting).max_io_events_per_busy_tick(busy);
        builder.build().unwrap()
    };
    builders.into_iter().map(build).collect()
}

/// On all kinds of runtimes, in the thread of `block_on` and on a worker.
fn each<F: Future<Output = ()> + Send + 'static>(test: impl Fn() -> F) {
    for (waiting, busy) in [(1, 1), (3, 1), (1, 512)] {
        for runtime in runtimes(waiting, busy) {
            runtime.block_on(bounded(test()));
            runtime.block_on(async { volt::spawn(bounded(test())).await.unwrap() });
        }
    }
}

/// Who reads, and whom the other ends belong to.
fn pairs() -> (Vec<UnixStream>, Vec<StdStream>) {
    let pair = |_| {
        let (ours, theirs) = StdStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (UnixStream::from_std(ours).unwrap(), theirs)
    };
    (0..SOCKETS).map(pair).unzip()
}

/// Takes a message, in a task of its own.
fn reads(mut stream: UnixStream) -> JoinHandle<(UnixStream, [u8; 4])> {
    volt::spawn(async move {
        let mut message = [0; 4];
        stream.read_exact(&mut message).await.unwrap();
        (stream, message)
    })
}

/// Each of many sockets has a message at the same time, again and again; then the end.
async fn all_are_heard() {
    let (mut readers, mut writers) = pairs();
    for round in 0..ROUNDS {
        let tasks: Vec<_> = readers.drain(..).map(reads).collect();
        if round % 2 == 0 {
            yield_now().await;
        }
        writers.iter_mut().for_each(|writer| writer.write_all(&[round; 4]).unwrap());
        for task in tasks {
            let (reader, message) = task.await.unwrap();
            assert_eq!(message, [round; 4]);
            readers.push(reader);
        }
    }
    drop(writers);
    for mut reader in readers {
        assert_eq!(reader.read(&mut [0]).await.unwrap(), 0);
    }
}

#[test]
fn all_of_many_sockets_that_are_ready_at_once_are_heard() {
    each(all_are_heard);
}

/// A task that leaves its thread no rest, so that every look is one in passing, until this is dropped.
struct Restless(Arc<AtomicBool>);

impl Restless {
    fn spawn() -> Self {
        let stop = Self(Arc::new(AtomicBool::new(false)));
        let stopped = stop.0.clone();
        volt::spawn(async move {
            while !stopped.load(Ordering::Relaxed) {
                yield_now().await;
            }
        });
        stop
    }
}

impl Drop for Restless {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn they_are_heard_beside_a_task_that_leaves_no_rest() {
    each(|| async {
        let _restless = Restless::spawn();
        all_are_heard().await;
    });
}

/// How often a current-thread runtime asks the system, for a message to each of many sockets.
fn turns(builder: &mut Builder, restless: bool) -> u64 {
    let runtime = builder.build().unwrap();
    runtime.block_on(bounded(async {
        let _restless = restless.then(Restless::spawn);
        let (readers, mut writers) = pairs();
        let tasks: Vec<_> = readers.into_iter().map(reads).collect();
        // In their order, and after them a task that has seen them wait.
        volt::spawn(async {}).await.unwrap();
        let before = runtime.metrics().driver_wakeups_count();
        writers.iter_mut().for_each(|writer| writer.write_all(b"data").unwrap());
        for task in tasks {
            task.await.unwrap();
        }
        runtime.metrics().driver_wakeups_count() - before
    }))
}

#[test]
fn a_turn_takes_no_more_than_it_may() {
    let new = Builder::new_current_thread;
    let all = SOCKETS as u64;
    for restless in [false, true] {
        let usual = turns(&mut new(), restless);
        assert!(usual < all / 4, "{usual} turns");
        // The one setting stands for both.
        let few = turns(new().max_io_events_per_tick(2), restless);
        assert!(few >= all / 2, "{few} turns");
        let one = turns(new().max_io_events_per_tick(1), restless);
        assert!(one >= all, "{one} turns");
        let other = turns(new().max_io_events_per_busy_tick(1), restless);
        assert_eq!(other >= all, restless, "{other} turns");
    }
    let many = turns(new().max_io_events_per_tick(1).max_io_events_per_busy_tick(512), true);
    assert!(many < all / 4, "{many} turns");
}

#[test]
#[should_panic(expected = "`max_io_events_per_tick` must be at least 1")]
fn no_events_at_all_are_refused() {
    Builder::new_current_thread().max_io_events_per_tick(0);
}

#[test]
#[should_panic(expected = "`max_io_events_per_busy_tick` must be at least 1")]
fn no_events_at_all_are_refused_in_passing() {
    Builder::new_current_thread().max_io_events_per_busy_tick(0);
}
