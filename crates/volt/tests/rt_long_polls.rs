//! Who waits among tasks that compute for milliseconds in each poll. Counted in their polls, so that
//! a busy machine makes no difference.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use volt::io::{AsyncReadExt as _, AsyncWriteExt as _};
use volt::runtime::{Builder, Handle, Runtime};

const SOON: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

fn multi(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
}

/// Tasks that stay in each poll for some time, then yield.
#[derive(Clone)]
struct Hogs(Arc<(AtomicBool, AtomicUsize)>);

impl Hogs {
    fn start(handle: &Handle, count: usize, quick_at_first: bool, poll: fn()) -> Self {
        let hogs = Self(Arc::new((AtomicBool::new(false), AtomicUsize::new(0))));
        for _ in 0..count {
            let hogs = hogs.clone();
            handle.spawn(async move {
                if quick_at_first {
                    volt::task::yield_now().await;
                }
                while !hogs.0.0.load(Ordering::Relaxed) {
                    poll();
                    hogs.0.1.fetch_add(1, Ordering::Relaxed);
                    volt::task::yield_now().await;
                }
            });
        }
        hogs
    }

    fn polls(&self) -> usize {
        self.0.1.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        if Arc::strong_count(&self.0) > 1 && std::thread::panicking() {
            self.stop();
        }
    }
}

fn milliseconds() {
    std::thread::sleep(Duration::from_millis(2));
}

async fn echo(listener: volt::net::TcpListener) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut byte = [0];
    while stream.read_exact(&mut byte).await.is_ok() {
        stream.write_all(&byte).await.unwrap();
    }
}

/// Asks twenty times; the polls of the hogs meanwhile.
fn ask(address: std::net::SocketAddr, hogs: &Hogs) -> usize {
    let mut client = std::net::TcpStream::connect(address).unwrap();
    client.set_nodelay(true).unwrap();
    client.set_read_timeout(Some(SOON)).unwrap();
    let mut ask = |byte| {
        client.write_all(&[byte]).unwrap();
        let mut answer = [0];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [byte]);
    };
    ask(0);
    let before = hogs.polls();
    (1..=20).for_each(ask);
    hogs.polls() - before
}

/// The driver used to be looked at after 128 polls, however long they took.
#[test]
fn sockets_are_served_among_long_polls() {
    for (workers, quick_at_first) in
        [(1, false), (1, true), (2, false), (2, true), (8, false), (8, true)]
    {
        let rt = multi(workers);
        let listener = rt.block_on(volt::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        rt.spawn(echo(listener));
        let hogs = Hogs::start(rt.handle(), 2 * workers, quick_at_first, milliseconds);
        let polls = ask(address, &hogs);
        hogs.stop();
        assert!(polls < 20 * 20 * workers, "{workers} workers: {polls} polls");
    }
}

#[test]
fn a_current_thread_runtime_serves_sockets_among_long_polls() {
    let rt = Builder::new_current_thread().enable_all().build().unwrap();
    let listener = rt.block_on(volt::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    rt.spawn(echo(listener));
    let hogs = Hogs::start(rt.handle(), 2, true, milliseconds);
    let (done, asked) = volt::sync::oneshot::channel();
    let client = std::thread::spawn({
        let hogs = hogs.clone();
        move || {
            let polls = ask(address, &hogs);
            hogs.stop();
            done.send(()).unwrap();
            polls
        }
    });
    let _either_way = rt.block_on(asked);
    let polls = client.join().unwrap();
    assert!(polls < 20 * 20, "{polls} polls");
}

fn ten_us() {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(10) {
        std::hint::spin_loop();
    }
}

/// It used to wait for 250 us of them.
#[test]
fn a_spawn_from_outside_waits_for_about_a_round_of_busy_tasks() {
    let rt = multi(1);
    let hogs = Hogs::start(rt.handle(), 2, false, ten_us);
    while hogs.polls() < 5_000 {
        std::thread::yield_now();
    }
    let mut most = 0;
    for _ in 0..20 {
        let (done, ran) = mpsc::channel();
        let (handle, others) = (rt.handle().clone(), hogs.clone());
        // On the worker, so that nobody runs between the spawn and the look at the count.
        rt.spawn(async move {
            let before = others.polls();
            let job = async move { done.send(others.polls() - before).unwrap() };
            std::thread::spawn(move || drop(handle.spawn(job))).join().unwrap();
        });
        most = most.max(ran.recv_timeout(SOON).unwrap());
    }
    hogs.stop();
    assert!(most <= 6, "{most} polls of others");
}

/// A worker used to take its share of the global queue every millisecond, however much was left.
#[test]
fn spawns_from_outside_do_not_wait_for_many_rounds_of_busy_tasks() {
    let rt = multi(1);
    let hogs = Hogs::start(rt.handle(), 2, false, ten_us);
    while hogs.polls() < 5_000 {
        std::thread::yield_now();
    }
    // The worker waits until all are spawned.
    let (arrived, at_gate) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    rt.spawn(async move {
        arrived.send(()).unwrap();
        gate.recv().unwrap();
    });
    at_gate.recv_timeout(SOON).unwrap();
    let (done, last) = mpsc::channel();
    for _ in 0..1_000 {
        let (hogs, done) = (hogs.clone(), done.clone());
        rt.spawn(async move { done.send(hogs.polls()).unwrap() });
    }
    drop(done);
    let before = hogs.polls();
    open.send(()).unwrap();
    let mut after = before;
    while let Ok(polls) = last.recv_timeout(SOON) {
        after = after.max(polls);
    }
    hogs.stop();
    assert!(after - before < 100, "{} polls of others", after - before);
}

/// As many of those as in a batch used to go before each poll of the worker's own tasks.
#[test]
fn a_flood_from_outside_leaves_busy_tasks_their_share() {
    const BACKLOG: usize = 200;
    let rt = multi(1);
    let long = || std::thread::sleep(Duration::from_micros(300));
    let hogs = Hogs::start(rt.handle(), 50, false, long);
    let (begun, done) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let run_until = |end: usize| {
        while done.load(Ordering::Relaxed) < end {
            if begun.load(Ordering::Relaxed) < done.load(Ordering::Relaxed) + BACKLOG {
                begun.fetch_add(1, Ordering::Relaxed);
                let done = done.clone();
                rt.spawn(async move {
                    long();
                    done.fetch_add(1, Ordering::Relaxed);
                });
            } else {
                std::thread::yield_now();
            }
        }
    };
    run_until(BACKLOG);
    let before = hogs.polls();
    run_until(BACKLOG + 1_000);
    let polls = hogs.polls() - before;
    hogs.stop();
    assert!(polls > 100, "{polls} polls beside 1,000 of others");
}

/// How often two tasks that `compute` in each poll have woken each other during 100 long polls of others.
fn rounds_of_two_beside_long_polls(compute: fn()) -> usize {
    let rt = multi(1);
    let (ask, mut asked) = volt::sync::mpsc::channel(1);
    let (answer, mut answered) = volt::sync::mpsc::channel(1);
    rt.spawn(async move {
        while let Some(value) = asked.recv().await {
            compute();
            answer.send(value).await.unwrap();
        }
    });
    let hogs = Hogs::start(rt.handle(), 2, false, milliseconds);
    let counted = hogs.clone();
    let (done, rounds) = mpsc::channel();
    rt.spawn(async move {
        let mut rounds = 0_usize;
        while counted.polls() < 100 {
            ask.send(rounds).await.unwrap();
            assert_eq!(answered.recv().await, Some(rounds));
            compute();
            rounds += 1;
        }
        done.send(rounds).unwrap();
    });
    let rounds = rounds.recv_timeout(SOON).unwrap();
    hogs.stop();
    rounds
}

/// Two that wake each other used to have three polls for each long one.
#[test]
fn two_that_wake_each_other_get_a_share_of_the_time_among_long_polls() {
    let rounds = rounds_of_two_beside_long_polls(|| ());
    assert!(rounds > 1_000, "{rounds} rounds during 100 long polls");
}

/// If they compute as well, they get no more of it: they used to have as many polls, however long these were.
#[test]
fn two_that_wake_each_other_and_compute_do_not_hold_up_long_polls() {
    let rounds = rounds_of_two_beside_long_polls(|| {
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(100) {
            std::hint::spin_loop();
        }
    });
    assert!(rounds < 1_000, "{rounds} rounds during 100 long polls");
}

/// What nobody takes is not handed round among the threads in `block_on`: that would get them out of the driver, and
/// keep them from looking after the worker, again and again.
#[test]
fn guests_wait_and_watch_while_a_task_waits_for_the_only_worker() {
    let rt = Arc::new(multi(1));
    let (began, begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let (quick, quick_ran) = mpsc::channel();
    // So that its kind is known to be quick.
    let signal = |quick: mpsc::Sender<()>| async move { quick.send(()).unwrap() };
    for _ in 0..20 {
        // By the worker: nobody watches it.
        drop(rt.spawn(signal(quick.clone())));
        quick_ran.recv().unwrap();
    }
    let blocked = rt.spawn(async move {
        // Into the LIFO slot of this worker.
        drop(volt::spawn(signal(quick)));
        began.send(()).unwrap();
        released.recv_timeout(SOON)
    });
    begun.recv().unwrap();
    let sleeps: [_; 5] = std::array::from_fn(|_| Arc::new(AtomicUsize::new(0)));
    let stop = Arc::new(AtomicBool::new(false));
    let guest = |sleeps: &Arc<AtomicUsize>| {
        let (rt, stop, sleeps) = (rt.clone(), stop.clone(), sleeps.clone());
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                rt.block_on(async { volt::time::sleep(Duration::from_millis(10)).await });
                sleeps.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let guests: Vec<_> = sleeps.iter().map(guest).collect();
    quick_ran.recv_timeout(SOON).expect("a guest takes what a stalled worker has");
    // Of a kind that nobody knows.
    let unknown = rt.spawn(async { std::thread::sleep(Duration::from_millis(1)) });
    let all = || sleeps.iter().map(|sleeps| sleeps.load(Ordering::Relaxed));
    let (start, parks, before) = (Instant::now(), rt.metrics().parks_count(), all().sum::<usize>());
    let first: Vec<usize> = all().collect();
    let slept = || all().zip(&first).all(|(sleeps, first)| sleeps >= first + 10);
    while !slept() && start.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(10));
    }
    let (done, parks) = (slept(), rt.metrics().parks_count() - parks);
    let count = all().sum::<usize>() - before;
    assert!(!unknown.is_finished(), "it waits for the worker");
    stop.store(true, Ordering::Relaxed);
    release.send(()).unwrap();
    guests.into_iter().for_each(|guest| guest.join().unwrap());
    rt.block_on(async {
        assert_eq!(blocked.await.unwrap(), Ok(()));
        unknown.await.unwrap();
    });
    assert!(done, "{count} sleeps of 10 ms in a minute");
    assert!(parks < 20 * count as u64, "guests parked {parks} times for {count} sleeps");
}

/// A thread in `block_on` found a task that was not for it before those behind it, and looked no further.
#[test]
fn quick_tasks_behind_those_for_the_only_worker_do_not_wait_for_it() {
    for in_its_ring in [false, true] {
        let rt = multi(1);
        let (quick, mut ran) = volt::sync::mpsc::unbounded_channel();
        let signal = |quick: volt::sync::mpsc::UnboundedSender<()>| async move {
            quick.send(()).unwrap();
        };
        // So that its kind is known to be quick: by the worker, since nobody is in `block_on`.
        for _ in 0..20 {
            drop(rt.spawn(signal(quick.clone())));
            ran.blocking_recv().unwrap();
        }
        let spawn = move |handle: &Handle| {
            let compute = || async { std::thread::sleep(Duration::from_millis(1)) };
            let unknown: Vec<_> = (0..20).map(|_| handle.spawn(compute())).collect();
            (0..20).for_each(|_| drop(handle.spawn(signal(quick.clone()))));
            unknown
        };
        let (began, begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let theirs = spawn.clone();
        let blocked = rt.spawn(async move {
            let unknown = in_its_ring.then(|| theirs(&Handle::current()));
            began.send(()).unwrap();
            (unknown, released.recv_timeout(SOON))
        });
        begun.recv().unwrap();
        let unknown = (!in_its_ring).then(|| spawn(rt.handle()));
        let all = async {
            for _ in 0..20 {
                ran.recv().await.unwrap();
            }
        };
        rt.block_on(async { volt::time::timeout(SOON / 2, all).await })
            .expect("they wait for the worker");
        assert!(!blocked.is_finished());
        release.send(()).unwrap();
        rt.block_on(async {
            let (theirs, released) = blocked.await.unwrap();
            assert_eq!(released, Ok(()));
            for task in unknown.or(theirs).unwrap() {
                task.await.unwrap();
            }
        });
    }
}

/// A worker takes what a thread in `block_on` has set aside, which that thread steals, and sets aside once more.
#[test]
fn tasks_that_yield_beside_block_on_all_have_their_turn() {
    for (workers, count) in [(1, 5), (1, 8), (1, 9), (2, 9)] {
        let rt = multi(workers);
        let hogs: Vec<_> =
            (0..count).map(|_| Hogs::start(rt.handle(), 1, false, milliseconds)).collect();
        let polls = || hogs.iter().map(Hogs::polls);
        rt.block_on(async {
            while polls().sum::<usize>() < 20 * count {
                volt::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let (all, least) = (polls().sum::<usize>(), polls().min().unwrap());
        hogs.iter().for_each(Hogs::stop);
        assert!(4 * count * least >= all, "{workers} workers: {least} of {all} polls");
    }
}

/// Each of the threads in `block_on` leaves tasks that are not quick to the workers, and woke another one of them for
/// it, while the only worker waited in the driver: for ever, if all places for such threads were taken.
#[test]
fn what_many_guests_leave_to_the_only_worker_reaches_it() {
    let rt = Arc::new(multi(1));
    let (done, ended) = mpsc::channel();
    for _ in 0..40 {
        let (rt, done) = (rt.clone(), done.clone());
        std::thread::spawn(move || {
            for _ in 0..5 {
                rt.block_on(async {
                    let task = volt::spawn(async { (0..20).for_each(|_| ten_us()) });
                    volt::time::sleep(Duration::from_micros(50)).await;
                    task.await.unwrap();
                });
            }
            done.send(()).unwrap();
        });
    }
    for _ in 0..40 {
        ended.recv_timeout(SOON).expect("the tasks go round");
    }
}

/// Quick 300 times, so that a thread in `block_on` may run such tasks; then one stays in its poll for 2 s.
fn quick_until_now() -> impl FnMut(&Handle) -> volt::task::JoinHandle<()> {
    async fn stay(time: Duration) {
        volt::task::yield_now().await;
        std::thread::sleep(time);
    }
    let mut count = 0;
    move |handle| {
        count += 1;
        handle.spawn(stay(if count <= 300 { Duration::ZERO } else { 2 * SECOND }))
    }
}

/// `main` accepts connections, or waits for a signal or for time: no task runs on its thread then.
#[test]
fn a_future_of_block_on_that_waits_for_time_or_io_is_not_held_up_by_tasks() {
    // At the same time: they mostly sleep.
    std::thread::scope(|scope| {
        for workers in [1, 2, 8] {
            for for_time in [true, false] {
                scope.spawn(move || {
                    let took = waits_beside_a_long_poll(workers, for_time);
                    assert!(took < SECOND, "{workers} workers, time: {for_time}: {took:?}");
                });
            }
        }
    });
}

/// For how long a future of `block_on` has waited for 5 ms, or for a connection that came then.
fn waits_beside_a_long_poll(workers: usize, for_time: bool) -> Duration {
    let rt = multi(workers);
    let mut spawn = quick_until_now();
    rt.block_on(async {
        let handle = Handle::current();
        let listener = volt::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // All of them are spawned by a future that waits for more of the same.
        for _ in 0..300 {
            if for_time {
                volt::time::sleep(Duration::from_micros(10)).await;
            } else {
                drop(std::net::TcpStream::connect(address).unwrap());
                listener.accept().await.unwrap();
            }
            drop(spawn(&handle));
        }
        let long = spawn(&handle);
        let start = Instant::now();
        if for_time {
            volt::time::sleep(Duration::from_millis(5)).await;
        } else {
            let client = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(5));
                std::net::TcpStream::connect(address).unwrap()
            });
            listener.accept().await.unwrap();
            client.join().unwrap();
        }
        let took = start.elapsed();
        long.await.unwrap();
        took
    })
}

/// It waits for time, for long or again and again; but nobody else is left who could run a task. For once: when it
/// is over, no task holds it up.
#[test]
fn a_thread_in_block_on_that_waits_for_time_helps_workers_that_all_stand_still() {
    std::thread::scope(|scope| {
        for tick in [SECOND, Duration::from_micros(200)] {
            // A machine that was busy for a moment may have made a quick kind look slow.
            let helps = move || (0..5).any(|_| helps_workers_that_stand_still(tick));
            scope.spawn(move || assert!(helps(), "{tick:?}"));
        }
    });
}

/// True if the task was run.
fn helps_workers_that_stand_still(tick: Duration) -> bool {
    let rt = multi(2);
    let ran = Arc::new(AtomicUsize::new(0));
    let quick = |ran: Arc<AtomicUsize>, stay: Duration| async move {
        std::thread::sleep(stay);
        ran.fetch_add(1, Ordering::Relaxed);
    };
    // So that its kind is known to be quick.
    let spawn = |stay| volt::spawn(quick(ran.clone(), stay));
    rt.block_on(async {
        for _ in 0..300 {
            spawn(Duration::ZERO).await.unwrap();
        }
    });
    let hogs = [(); 2].map(|()| rt.spawn(async { std::thread::sleep(2 * SECOND) }));
    rt.block_on(async {
        volt::time::sleep(Duration::from_millis(100)).await;
        assert!(hogs.iter().all(|hog| !hog.is_finished()));
        drop(spawn(Duration::ZERO));
        let start = Instant::now();
        while start.elapsed() < SECOND {
            volt::time::sleep(tick).await;
        }
        let helped = ran.load(Ordering::Relaxed) == 301;
        assert!(hogs.iter().all(|hog| !hog.is_finished()), "the machine is too slow");
        for hog in hogs {
            hog.await.unwrap();
        }
        let long = spawn(2 * SECOND);
        let start = Instant::now();
        volt::time::sleep(Duration::from_millis(5)).await;
        assert!(start.elapsed() < SECOND);
        long.await.unwrap();
        helped
    })
}

/// What an earlier future of this thread waited for when it was done does not count.
#[test]
fn tasks_that_block_on_waits_for_run_here_whatever_it_waited_for_before() {
    let place = || async { std::thread::current().id() };
    let here = std::thread::current().id();
    let count_here = || {
        let rt = multi(2);
        rt.block_on(async {
            for _ in 0..300 {
                volt::spawn(place()).await.unwrap();
            }
        });
        let runs_here = |_: &usize| {
            rt.block_on(async {
                volt::select! {
                    biased;
                    () = volt::time::sleep(SOON) => unreachable!(),
                    () = std::future::ready(()) => {}
                }
            });
            rt.block_on(async { volt::spawn(place()).await.unwrap() == here })
        };
        (0..100).filter(runs_here).count()
    };
    // A worker that is awake may take one first. And a machine that was busy for a moment may have made a quick kind
    // look slow: the workers run all of it for a while.
    assert!((0..5).any(|_| count_here() > 50));
}

/// A loop in `main` that spawns tasks of a kind that is quick mostly, and blocks now and then: it may wait for such a task
/// that has its thread, but not each time.
#[test]
fn a_kind_that_blocks_now_and_then_does_not_hold_block_on_up_each_time() {
    const BLOCKS: u32 = 12;
    const BLOCKED: Duration = Duration::from_millis(150);
    let times_late = || {
        multi(2).block_on(async {
            let (tell, mut told) = volt::sync::mpsc::channel(100);
            volt::spawn(async move {
                for number in 0..BLOCKS * 200 {
                    volt::time::sleep(Duration::from_millis(1)).await;
                    tell.send((number, Instant::now())).await.unwrap();
                }
            });
            let (mut late, mut last) = (0, 0);
            while let Some((number, at)) = told.recv().await {
                if at.elapsed() > BLOCKED / 2 && number >= last + 100 {
                    (late, last) = (late + 1, number);
                }
                volt::spawn(async move {
                    if number % 200 == 199 {
                        std::thread::sleep(BLOCKED);
                    }
                });
            }
            late
        })
    };
    // By itself it is late up to three times; a machine that stands still for a moment adds to that.
    let mut late = Vec::new();
    let is_seldom = (0..3).any(|_| {
        late.push(times_late());
        late.last().is_some_and(|late| *late <= 4)
    });
    assert!(is_seldom, "{late:?} times in {BLOCKS}");
}
