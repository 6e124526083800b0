//! A shutdown finds every task, wherever it is, and drops it once.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use volt::runtime::{Builder, Handle, Runtime};
use volt::task::{JoinHandle, block_in_place, yield_now};

const SOON: Duration = Duration::from_secs(60);
/// More tasks than this are not there at once.
const CROWD: usize = 1000;

/// xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// What the tasks of one runtime share.
#[derive(Default)]
struct State {
    made: AtomicUsize,
    dropped: AtomicUsize,
    wakers: Mutex<Vec<Waker>>,
    stop: AtomicBool,
    blocks: bool,
}

impl State {
    fn alive(&self) -> usize {
        let dropped = self.dropped.load(Ordering::SeqCst);
        self.made.load(Ordering::SeqCst) - dropped
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// In each future.
struct Counted(Arc<State>);

impl Counted {
    fn new(state: &Arc<State>) -> Self {
        state.made.fetch_add(1, Ordering::SeqCst);
        Self(state.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// Pending for ever, but for its waker.
async fn waits(state: &State) {
    poll_fn(|cx| {
        state.wakers.lock().unwrap().push(cx.waker().clone());
        Poll::<()>::Pending
    })
    .await;
}

/// Spawns a task that does one thing or another.
fn spawn(handle: &Handle, state: &Arc<State>, kind: u64) -> JoinHandle<()> {
    let counted = Counted::new(state);
    let theirs = handle.clone();
    handle.spawn(async move {
        let state = &counted.0;
        match kind % 7 {
            0 => {}
            1 => loop {
                yield_now().await;
            },
            2 => waits(state).await,
            3 => {
                let _or_cancelled = spawn(&theirs, state, kind / 7).await;
            }
            4 if state.blocks => block_in_place(thread::yield_now),
            5 if state.blocks => {
                let _or_cancelled = spawn(&theirs, state, 0).join();
                waits(state).await;
            }
            _ => {
                yield_now().await;
                waits(state).await;
            }
        }
    })
}

/// Ends a runtime while tasks are spawned outside, by a guest and by tasks, and woken.
fn storm(runtime: Runtime, blocks: bool, seed: u64) {
    let state = Arc::new(State { blocks, ..State::default() });
    let handle = runtime.handle().clone();
    let mut random = Random(seed | 1);
    let start = |run: fn(&Handle, &Arc<State>, Random) -> Vec<JoinHandle<()>>, seed: u64| {
        let (handle, state) = (handle.clone(), state.clone());
        thread::spawn(move || run(&handle, &state, Random(seed | 1)))
    };
    let threads = [
        start(outside, random.below(u64::MAX)),
        start(guest, random.below(u64::MAX)),
        start(wakes, random.below(u64::MAX)),
    ];
    thread::sleep(Duration::from_micros(random.below(1500)));
    drop(runtime);
    // Who spawns now is refused.
    thread::sleep(Duration::from_micros(random.below(200)));
    state.stop.store(true, Ordering::SeqCst);
    // First: one that the guest polls may be counted as finished, and complete a moment later.
    let tasks: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    for task in tasks {
        assert!(task.is_finished(), "a task has outlived its runtime (seed {seed})");
    }
    state.wakers.lock().unwrap().clear();
    assert_eq!(state.alive(), 0, "a task was lost (seed {seed})");
    assert_eq!(handle.metrics().num_alive_tasks(), 0);
}

fn outside(handle: &Handle, state: &Arc<State>, mut random: Random) -> Vec<JoinHandle<()>> {
    let mut tasks = Vec::new();
    while !state.stopped() {
        if state.alive() < CROWD {
            let task = spawn(handle, state, random.below(7 * 7 * 7));
            if random.below(4) == 0 {
                tasks.push(task);
            }
        } else {
            thread::yield_now();
        }
    }
    tasks
}

fn guest(handle: &Handle, state: &Arc<State>, mut random: Random) -> Vec<JoinHandle<()>> {
    let mut tasks = Vec::new();
    while !state.stopped() {
        handle.block_on(async {
            for _ in 0..random.below(20) {
                if state.alive() < CROWD {
                    tasks.push(spawn(handle, state, random.below(7 * 7 * 7)));
                }
                if random.below(3) == 0 {
                    yield_now().await;
                }
            }
        });
    }
    tasks
}

fn wakes(_: &Handle, state: &Arc<State>, mut random: Random) -> Vec<JoinHandle<()>> {
    while !state.stopped() {
        let woken = {
            let mut wakers = state.wakers.lock().unwrap();
            match wakers.len() as u64 {
                0 => None,
                len => Some(wakers.swap_remove(random.below(len) as usize)),
            }
        };
        match woken {
            Some(waker) => waker.wake(),
            None => thread::yield_now(),
        }
    }
    Vec::new()
}

fn storms(build: impl Fn() -> Runtime + Send + 'static, blocks: bool) {
    let rounds = if cfg!(miri) { 1 } else { 40 };
    let (tx, rx) = mpsc::channel();
    thread::spawn(move || {
        for seed in 1..=rounds {
            storm(build(), blocks, seed * 0x9E37_79B9);
            tx.send(seed).unwrap();
        }
    });
    for seed in 1..=rounds {
        rx.recv_timeout(SOON).unwrap_or_else(|_| panic!("round {seed} hangs, or panicked"));
    }
}

fn multi(workers: usize) {
    let build =
        move || Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap();
    storms(build, true);
}

#[test]
fn one_worker_leaves_no_task() {
    multi(1);
}

#[test]
fn two_workers_leave_no_task() {
    multi(2);
}

#[test]
fn eight_workers_leave_no_task() {
    multi(8);
}

#[test]
fn a_current_thread_runtime_leaves_no_task() {
    storms(|| Builder::new_current_thread().enable_all().build().unwrap(), false);
}

/// The thread that drops the runtime does not wait.
#[test]
fn a_shutdown_in_the_background_leaves_no_task() {
    let (tx, rx) = mpsc::channel();
    thread::spawn(move || {
        for workers in 1..=40_usize {
            let runtime = match workers % 3 {
                0 => Builder::new_current_thread().build().unwrap(),
                n => Builder::new_multi_thread().worker_threads(n).build().unwrap(),
            };
            let state = Arc::new(State::default());
            let handle = runtime.handle().clone();
            let tasks: Vec<_> = (0..50).map(|kind| spawn(&handle, &state, kind)).collect();
            let stop = state.clone();
            let theirs = handle.clone();
            let guest = thread::spawn(move || guest(&theirs, &stop, Random(workers as u64)));
            runtime.shutdown_background();
            state.stop.store(true, Ordering::SeqCst);
            drop(guest.join().unwrap());
            // A task is finished a moment after its future was dropped.
            while handle.metrics().num_alive_tasks() > 0
                || state.alive() > 0
                || !tasks.iter().all(JoinHandle::is_finished)
            {
                thread::yield_now();
            }
            tx.send(()).unwrap();
        }
    });
    for _ in 0..40 {
        rx.recv_timeout(SOON).expect("a task was lost, or its thread panicked");
    }
}
