//! Workers that pass from thread to thread, by joins that are nested deeply and by `block_in_place`,
//! while tasks are aborted, panic, and the runtime ends. Each seed is a program of its own.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use volt::runtime::{Builder, Handle, Runtime};
use volt::task::{JoinError, JoinHandle};

/// The longest that one seed may take: much longer than any does.
const LIMIT: Duration = Duration::from_secs(60);

fn seeds(count: u64) -> u64 {
    count * std::env::var("VOLT_STRESS").map_or(1, |s| s.parse().unwrap_or(1))
}

/// splitmix64.
#[derive(Clone, Copy)]
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ (x >> 31)) % bound
    }
}

/// Counts the tasks of a program that live: it goes up with each spawn, and down with each drop.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self(alive.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many leaves a node has had, or why that is not known: the runtime shut down below it.
type Leaves = Option<u64>;

fn spawn(random: u64, depth: u64, alive: &Arc<AtomicUsize>) -> JoinHandle<Leaves> {
    let counted = Alive::new(alive);
    volt::spawn(async move {
        let leaves = node(Random(random), depth, &counted.0).await;
        drop(counted);
        leaves
    })
}

/// None for a task that was cancelled by a shutdown: nothing else cancels it.
fn leaves(result: Result<Leaves, JoinError>) -> Leaves {
    match result {
        Ok(leaves) => leaves,
        Err(error) => {
            assert!(error.is_cancelled(), "no node panics");
            None
        }
    }
}

fn add(left: Leaves, right: Leaves) -> Leaves {
    Some(left? + right?)
}

/// A task of `depth`, which has that many leaves in the end: all of them below one child, or shared
/// by two. Tasks wait for those only that they have spawned: so whatever runs on top of a join is
/// younger, and none waits for one below it on the stack.
fn node(
    mut random: Random,
    depth: u64,
    alive: &Arc<AtomicUsize>,
) -> Pin<Box<dyn Future<Output = Leaves> + Send + '_>> {
    Box::pin(async move {
        if depth <= 1 {
            if random.below(4) == 0 {
                volt::task::yield_now().await;
            }
            return Some(1);
        }
        let (way, seed) = (random.below(10), random.below(u64::MAX));
        match way {
            // Deep: joins on top of joins, in which the target mostly runs at once.
            0..=3 => add(Some(1), leaves(spawn(seed, depth - 1, alive).join())),
            4 => add(Some(1), leaves(spawn(seed, depth - 1, alive).await)),
            // Wide: the second half is taken by others, or helped with.
            5 => {
                let half = depth / 2;
                let left = spawn(seed, half, alive);
                let right = leaves(spawn(!seed, depth - half, alive).join());
                add(leaves(left.join()), right)
            }
            6 => {
                let below = volt::task::block_in_place(|| {
                    std::thread::sleep(Duration::from_micros(random.below(50)));
                    leaves(spawn(seed, depth - 1, alive).join())
                });
                add(Some(1), below)
            }
            7 => {
                let below = volt::task::block_in_place(|| {
                    Handle::current()
                        .block_on(async { leaves(spawn(seed, depth - 1, alive).await) })
                });
                add(Some(1), below)
            }
            8 => {
                // It runs here or elsewhere, or has no time to.
                let aborted = spawn(seed, 3, alive);
                aborted.abort();
                let below = leaves(spawn(!seed, depth - 1, alive).join());
                if let Err(error) = aborted.join() {
                    assert!(error.is_cancelled());
                }
                add(Some(1), below)
            }
            _ => {
                let counted = Alive::new(alive);
                let panics = volt::spawn(async move {
                    let below = leaves(spawn(seed, depth - 1, &counted.0).join());
                    drop(counted);
                    std::panic::resume_unwind(Box::new(below));
                });
                let error = panics.join().unwrap_err();
                // By the shutdown, before it had its turn.
                if error.is_cancelled() {
                    return None;
                }
                let below = error.into_panic().downcast::<Leaves>();
                add(Some(1), *below.expect("what it panicked with"))
            }
        }
    })
}

fn runtime(random: &mut Random) -> Runtime {
    let workers = [1, 2, 3, 8][random.below(4) as usize];
    // A quarter of it is what nested joins use before they hand over.
    let stack = (192 << 10) + random.below(3) as usize * (64 << 10);
    Builder::new_multi_thread().worker_threads(workers).thread_stack_size(stack).build().unwrap()
}

/// Runs `program` on a thread of its own for each seed. One that hangs is named.
fn explore(count: u64, program: fn(Random)) {
    for seed in 0..seeds(count) {
        let (done, ends) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            program(Random(seed));
            done.send(()).unwrap();
        });
        match ends.recv_timeout(LIMIT) {
            Ok(()) => thread.join().unwrap(),
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("seed {seed} hangs"),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let message = thread.join().unwrap_err();
                panic!("seed {seed} panics: {:?}", message.downcast_ref::<String>());
            }
        }
    }
}

/// Every leaf is counted, whoever runs it, and no task is left.
#[test]
fn nested_joins_and_blocking_calls_lose_no_task() {
    explore(150, |mut random| {
        let alive = Arc::new(AtomicUsize::new(0));
        let rt = runtime(&mut random);
        let depths: Vec<u64> = (0..4).map(|_| 1 + random.below(150)).collect();
        let tasks: Vec<_> = {
            let _guard = rt.enter();
            depths.iter().map(|&depth| spawn(random.below(u64::MAX), depth, &alive)).collect()
        };
        for (depth, task) in depths.into_iter().zip(tasks) {
            // As a guest that awaits it, or one that helps with it.
            let result = if random.below(2) == 0 { rt.block_on(task) } else { task.join() };
            assert_eq!(leaves(result), Some(depth));
        }
        drop(rt);
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    });
}

/// The runtime is dropped while joins wait on top of each other: all of them return, and each task is
/// dropped.
#[test]
fn a_shutdown_below_nested_joins_ends_all_of_them() {
    explore(300, |mut random| {
        let alive = Arc::new(AtomicUsize::new(0));
        let rt = runtime(&mut random);
        let tasks: Vec<_> = {
            let _guard = rt.enter();
            (0..4).map(|_| spawn(random.below(u64::MAX), 100, &alive)).collect()
        };
        std::thread::sleep(Duration::from_micros(random.below(3000)));
        // Either way, some of the joins are on threads that are workers no longer.
        drop(rt);
        assert_eq!(alive.load(Ordering::Relaxed), 0, "a task outlives its runtime");
        for task in tasks {
            if let Some(all) = leaves(task.join()) {
                assert_eq!(all, 100);
            }
        }
    });
}

/// Nobody else is there to drop what the join waits for.
#[test]
fn a_shutdown_cancels_what_the_only_worker_joins() {
    explore(5, |mut random| {
        let rt = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (started, starts) = mpsc::channel();
        let joined = rt.spawn(async move {
            let endless = volt::spawn(async move {
                started.send(()).unwrap();
                loop {
                    volt::task::yield_now().await;
                }
            });
            endless.join().unwrap_err().is_cancelled()
        });
        starts.recv().unwrap();
        std::thread::sleep(Duration::from_micros(random.below(500)));
        drop(rt);
        assert!(joined.join().unwrap());
    });
}

/// A chain of joins, too long for one thread's stack. Those inside of a call of `block_in_place` make
/// a guest of the thread, and count from where its stack begins.
#[test]
fn joins_inside_of_blocking_calls_use_no_more_stack_than_others() {
    fn nest(depth: u32) -> u32 {
        let below = || volt::spawn(async move { nest(depth - 1) }).join().unwrap() + 1;
        match depth {
            0 => 0,
            depth if depth % 150 == 0 => volt::task::block_in_place(below),
            _ => below(),
        }
    }
    for stack in [None, Some(256 << 10)] {
        let mut builder = Builder::new_multi_thread();
        stack.map(|size| builder.thread_stack_size(size));
        let rt = builder.worker_threads(2).build().unwrap();
        assert_eq!(rt.block_on(async { volt::spawn(async { nest(3000) }).await.unwrap() }), 3000);
    }
}

/// Waits in its drop for another task.
struct Waits {
    other: Option<JoinHandle<()>>,
    handle: Handle,
    dropped: Arc<AtomicUsize>,
}

impl Drop for Waits {
    fn drop(&mut self) {
        let (other, handle) = (self.other.take().expect("dropped once"), self.handle.clone());
        let result = volt::task::block_in_place(|| handle.block_on(other));
        assert!(result.unwrap_err().is_cancelled());
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Futures whose drop blocks for a task that the same shutdown cancels, perhaps later: a worker that
/// waited there itself would wait for ever.
#[test]
fn drops_that_block_at_a_shutdown_end_and_run_once() {
    explore(30, |mut random| {
        let dropped = Arc::new(AtomicUsize::new(0));
        for workers in [1, 2, 8] {
            let rt = Builder::new_multi_thread().worker_threads(workers).build().unwrap();
            let count = 1 + random.below(20) as usize;
            for _ in 0..count {
                let (dropped, handle) = (dropped.clone(), rt.handle().clone());
                let waits = Waits { other: Some(rt.spawn(pending())), handle, dropped };
                drop(rt.spawn(async move {
                    pending::<()>().await;
                    drop(waits);
                }));
            }
            // Some tasks are idle by then, others still queued.
            std::thread::sleep(Duration::from_micros(random.below(200)));
            drop(rt);
            assert_eq!(dropped.swap(0, Ordering::Relaxed), count, "{workers} workers");
        }
    });
}

/// The same for tasks that are all idle, so that one thread finds all of them at once: the drop of one
/// waits for another one that comes behind it. A current-thread runtime has no other thread.
#[test]
fn drops_at_a_shutdown_may_wait_for_tasks_that_are_cancelled_after_them() {
    type Wait = fn(JoinHandle<()>) -> Result<(), JoinError>;
    struct WaitsForLater(Arc<Mutex<Option<JoinHandle<()>>>>, Wait);

    impl Drop for WaitsForLater {
        fn drop(&mut self) {
            let later = self.0.lock().unwrap().take().expect("dropped once");
            assert!(self.1(later).unwrap_err().is_cancelled());
        }
    }

    let ways: [(&str, Wait); 3] = [
        ("join", JoinHandle::join),
        ("join in place", |task| volt::task::block_in_place(|| task.join())),
        ("block_on in place", |task| {
            volt::task::block_in_place(|| Handle::current().block_on(task))
        }),
    ];
    for (name, wait) in ways {
        for workers in [0, 1] {
            let program = move || {
                let rt = match workers {
                    0 => Builder::new_current_thread().build().unwrap(),
                    _ => Builder::new_multi_thread().worker_threads(workers).build().unwrap(),
                };
                rt.block_on(async {
                    for _ in 0..10 {
                        let later = Arc::new(Mutex::new(None));
                        let waits = WaitsForLater(later.clone(), wait);
                        drop(volt::spawn(async move {
                            pending::<()>().await;
                            drop(waits);
                        }));
                        *later.lock().unwrap() = Some(volt::spawn(pending()));
                    }
                    volt::task::yield_now().await;
                });
                std::thread::sleep(Duration::from_millis(10));
                drop(rt);
            };
            let (done, ends) = mpsc::channel();
            let thread = std::thread::spawn(move || {
                program();
                done.send(()).unwrap();
            });
            let ended = ends.recv_timeout(LIMIT);
            assert_ne!(ended, Err(mpsc::RecvTimeoutError::Timeout), "{name}, {workers} workers");
            thread.join().unwrap();
        }
    }
}

/// The thread that drops a current-thread runtime is not one that polls its tasks: it may block.
#[test]
fn drops_of_a_current_thread_runtime_may_block_when_it_shuts_down() {
    struct Blocks(Arc<AtomicUsize>);

    impl Drop for Blocks {
        fn drop(&mut self) {
            self.0.fetch_add(volt::task::block_in_place(|| 1), Ordering::Relaxed);
        }
    }

    let dropped = Arc::new(AtomicUsize::new(0));
    let rt = Builder::new_current_thread().build().unwrap();
    for _ in 0..10 {
        let blocks = Blocks(dropped.clone());
        drop(rt.spawn(async move {
            pending::<()>().await;
            drop(blocks);
        }));
    }
    rt.block_on(volt::task::yield_now());
    drop(rt);
    assert_eq!(dropped.load(Ordering::Relaxed), 10);
}

/// An executor of others, for example, would poll for ever what finds the budget used up.
#[test]
fn what_is_run_in_place_has_no_budget() {
    let rt = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let task = rt.spawn(async {
        while volt::task::coop::has_budget_remaining() {
            volt_sync::coop::made_progress();
        }
        let inside = volt::task::block_in_place(volt::task::coop::has_budget_remaining);
        (inside, volt::task::coop::has_budget_remaining())
    });
    assert_eq!(rt.block_on(task).unwrap(), (true, false));
}

/// Blocks in a waker that the driver calls for a timer, on a worker of a runtime of two.
fn block_in_a_turn(block: impl FnOnce(&Handle) + Send + 'static) {
    struct Blocks<F>(Handle, Mutex<Option<F>>, mpsc::Sender<u64>);
    impl<F: FnOnce(&Handle) + Send + 'static> std::task::Wake for Blocks<F> {
        fn wake(self: Arc<Self>) {
            let block = self.1.lock().unwrap().take().unwrap();
            let turns = || self.0.metrics().driver_wakeups_count();
            let before = turns();
            block(&self.0);
            self.2.send(turns() - before).unwrap();
        }
    }
    let rt = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (done, wait) = mpsc::channel();
    let blocks = Blocks(rt.handle().clone(), Mutex::new(Some(block)), done);
    let task = rt.spawn(async move {
        let mut sleep = Box::pin(volt::time::sleep(Duration::from_millis(10)));
        let waker = std::task::Waker::from(Arc::new(blocks));
        assert!(sleep.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
        pending::<()>().await;
    });
    assert_eq!(wait.recv_timeout(LIMIT).expect("it hangs"), 0, "turns within the turn");
    task.abort();
    // The driver is as before.
    let sleeps = rt.spawn(async { volt::time::sleep(Duration::from_millis(1)).await });
    rt.block_on(sleeps).unwrap();
}

#[test]
fn a_waker_that_blocks_in_place_leaves_the_driver_where_it_is() {
    block_in_a_turn(|_| {
        volt::task::block_in_place(|| std::thread::sleep(Duration::from_millis(50)));
    });
}

#[test]
fn a_waker_that_joins_leaves_the_driver_where_it_is() {
    block_in_a_turn(|handle| {
        let task = handle.spawn(async {
            std::thread::sleep(Duration::from_millis(50));
            7
        });
        assert_eq!(task.join().unwrap(), 7);
    });
}

/// Each thread that went on as the worker used to begin anew: with the newest task, and with some polls before it would
/// look at anything else.
#[test]
fn workers_that_are_handed_over_again_and_again_look_at_everything() {
    fn job(jobs: Arc<AtomicUsize>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            jobs.fetch_add(1, Ordering::Relaxed);
            drop(volt::spawn(job(jobs)));
            volt::task::block_in_place(|| std::thread::sleep(Duration::from_micros(100)));
        })
    }
    for workers in [1, 2] {
        let rt = Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap();
        let jobs = Arc::new(AtomicUsize::new(0));
        (0..workers).for_each(|_| drop(rt.spawn(job(jobs.clone()))));
        while jobs.load(Ordering::Relaxed) < 100 {
            std::thread::yield_now();
        }
        let (done, dones) = mpsc::channel();
        let other = done.clone();
        rt.spawn(async move { done.send("a task from outside").unwrap() });
        rt.spawn(async move {
            volt::time::sleep(Duration::from_millis(1)).await;
            other.send("a timer").unwrap();
        });
        (0..2).for_each(|_| _ = dones.recv_timeout(LIMIT).unwrap());
        let start = std::time::Instant::now();
        rt.shutdown_timeout(LIMIT);
        assert!(start.elapsed() < LIMIT);
    }
}
