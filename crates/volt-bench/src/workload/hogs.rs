//! How long the polite wait while other tasks keep every worker busy for milliseconds at a time.
//!
//! Twice as many hogs as workers: whatever wakes meets a busy runtime, and has to wait for a hog's
//! poll to end, or for more than one if the scheduler lets hogs go first.
#![forbid(unsafe_code)]

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::bench::Bench;
use crate::kind::{Channel, Runtime, Sockets, Timers, workers};
use crate::on_tokio;
use crate::on_volt;
use crate::peers::channels::AsyncChannel;
use crate::peers::smol;
use crate::registry::Row;

pub(crate) fn rows() -> Vec<Row> {
    let row = |id, title| {
        Row::new(id, title)
            .long()
            .unit("us", 50.0)
            .note("4 tasks compute for 1 to 10 ms in each poll, then yield; 2 workers")
    };
    vec![
        row("hogs/ticker", "Lateness of a sleep of 1 ms among CPU hogs, p99")
            .headline()
            .volt("volt", ticker::<on_volt::Multi>)
            .peer("tokio", ticker::<on_tokio::Multi>)
            .peer("async-executor", ticker::<smol::Multi>),
        row("hogs/ping_pong", "Ping-pong of two tasks among CPU hogs, p99")
            .volt("volt", ping_pong::<on_volt::Multi, on_volt::channel::Bounded>)
            .peer("tokio", ping_pong::<on_tokio::Multi, on_tokio::channel::Bounded>)
            .peer("async-executor", ping_pong::<smol::Multi, AsyncChannel>),
        row("hogs/requests", "Small requests over TCP from outside among CPU hogs, p99")
            .volt("volt", requests::<on_volt::Multi>)
            .peer("tokio", requests::<on_tokio::Multi>)
            .peer("async-executor", requests::<smol::Multi>),
    ]
}

struct Hogs {
    stop: AtomicBool,
    burned_ns: AtomicU64,
    start: Instant,
}

impl Hogs {
    fn start<R: Runtime>(runtime: &R) -> Arc<Self> {
        let hogs = Arc::new(Hogs {
            stop: AtomicBool::new(false),
            burned_ns: AtomicU64::new(0),
            start: Instant::now(),
        });
        for first in 0..2 * workers() as u64 {
            let hogs = Arc::clone(&hogs);
            R::detach(runtime.spawn_outside(async move {
                // Each begins elsewhere in the same round of poll times; 7 and 10 have no common
                // factor, so each of the ten comes as often.
                let mut turn = first * 3;
                while !hogs.stop.load(Ordering::Relaxed) {
                    hogs.burn(Duration::from_millis(turn * 7 % 10 + 1));
                    turn += 1;
                    R::yield_now().await;
                }
            }));
        }
        // All of them are running before anything is measured.
        std::thread::sleep(Duration::from_millis(15));
        hogs
    }

    fn burn(&self, time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time {
            std::hint::spin_loop();
        }
        let ns = u64::try_from(time.as_nanos()).expect("milliseconds");
        self.burned_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Ends the hogs and reports the waits. A runtime that keeps waits short by starving the hogs is
    /// seen by their share of the workers' time.
    fn report(&self, b: &mut Bench, mut waits: Vec<u64>) {
        self.stop.store(true, Ordering::Relaxed);
        let available = self.start.elapsed().as_nanos() as f64 * workers() as f64;
        b.extra("hog_share", self.burned_ns.load(Ordering::Relaxed) as f64 / available);
        waits.sort_unstable();
        b.value(crate::stats::quantile_sorted(&waits, 0.99) as f64 / 1000.0);
        b.waits(waits);
    }
}

fn time(b: &Bench) -> Duration {
    if b.rehearsal() {
        Duration::from_millis(40)
    } else {
        (b.duration() * 16).clamp(Duration::from_millis(500), Duration::from_millis(700))
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn ticker<R: Timers>(b: &mut Bench) {
    const TICK: Duration = Duration::from_millis(1);
    let (runtime, time) = (R::start(), time(b));
    let hogs = Hogs::start(&runtime);
    let waits = runtime.run_task(async move {
        let (begin, mut waits) = (Instant::now(), Vec::new());
        while waits.is_empty() || begin.elapsed() < time {
            let start = Instant::now();
            R::sleep(TICK).await;
            waits.push(ns(start.elapsed().saturating_sub(TICK)));
        }
        waits
    });
    hogs.report(b, waits);
}

fn ping_pong<R: Runtime, C: Channel>(b: &mut Bench) {
    let (runtime, time) = (R::start(), time(b));
    let hogs = Hogs::start(&runtime);
    let waits = runtime.run_task(async move {
        let (ask, mut asked) = C::create(Some(1));
        let (answer, mut answered) = C::create(Some(1));
        R::detach(R::spawn(async move {
            while let Some(value) = C::recv(&mut asked).await {
                assert!(C::send(&answer, value + 1).await, "awaited");
            }
        }));
        let (begin, mut waits) = (Instant::now(), Vec::new());
        while waits.is_empty() || begin.elapsed() < time {
            let (start, value) = (Instant::now(), waits.len() as u64);
            assert!(C::send(&ask, value).await, "open");
            assert_eq!(C::recv(&mut answered).await, Some(value + 1));
            waits.push(ns(start.elapsed()));
        }
        waits
    });
    hogs.report(b, waits);
}

fn requests<R: Sockets>(b: &mut Bench) {
    let (runtime, time) = (R::start(), time(b));
    let (mut listener, address) = runtime.block_on(R::listen());
    R::detach(runtime.spawn_outside(async move {
        let mut stream = R::accept(&mut listener).await;
        let mut request = [0; 64];
        while R::read(&mut stream, &mut request).await {
            R::write(&mut stream, &request).await;
        }
    }));
    let mut client = std::net::TcpStream::connect(address).expect("connect");
    client.set_nodelay(true).expect("nodelay");
    let hogs = Hogs::start(&runtime);
    let (begin, mut waits) = (Instant::now(), Vec::new());
    while waits.is_empty() || begin.elapsed() < time {
        // Requests come now and then, not in answer to the last one.
        std::thread::sleep(Duration::from_micros(500));
        let (start, sent) = (Instant::now(), [u8::try_from(waits.len() % 251).expect("small"); 64]);
        client.write_all(&sent).expect("write");
        let mut answer = [0; 64];
        client.read_exact(&mut answer).expect("read");
        assert_eq!(answer, sent);
        waits.push(ns(start.elapsed()));
    }
    hogs.report(b, waits);
}
