//! Blocking joins that help.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread::ThreadId;
use std::time::Duration;

use volt::runtime::{Builder, Runtime, RuntimeFlavor};
use volt::task::{LocalSet, spawn_local, yield_now};
use volt::time::sleep;

fn flavours() -> Vec<Runtime> {
    let multi = [1, 2, 8].map(|workers| {
        Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
    });
    multi.into_iter().chain([Builder::new_current_thread().build().unwrap()]).collect()
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let left = volt::spawn(async move { fib(n - 1) });
    let right = fib(n - 2);
    left.join().unwrap() + right
}

#[test]
fn fork_and_join_on_workers() {
    for rt in flavours() {
        assert_eq!(rt.block_on(async { volt::spawn(async { fib(14) }).await.unwrap() }), 377);
        assert_eq!(rt.block_on(async { fib(14) }), 377);
    }
}

#[test]
fn a_join_from_outside_helps() {
    for rt in flavours() {
        let _guard = rt.enter();
        let task = volt::spawn(async { fib(10) });
        assert_eq!(task.join().unwrap(), 55);
    }
}

/// The seed's promise: there is progress even if no worker is free to run the target.
#[test]
fn a_join_from_outside_runs_the_task_itself() {
    let (rt, release, busy) = with_its_worker_blocked(|_| ());
    let here = std::thread::current().id();
    let task = rt.spawn(async { std::thread::current().id() });
    assert_eq!(task.join().unwrap(), here);
    release.send(()).unwrap();
    busy.join().unwrap();
}

/// Nor does a thread in `block_on` wait for a worker, though it leaves tasks of unknown kinds to them
/// otherwise: not for what it has spawned itself, and not for what is in the injector.
#[test]
fn a_join_in_block_on_needs_no_worker() {
    let (rt, release, _) = with_its_worker_blocked(|_| ());
    assert_eq!(rt.block_on(async { volt::spawn(async { 7 }).join().unwrap() }), 7);
    release.send(()).expect("the worker still waits for this");

    let (rt, release, _) = with_its_worker_blocked(|_| ());
    let target = rt.spawn(async { 8 });
    assert_eq!(rt.block_on(async { target.join().unwrap() }), 8);
    release.send(()).expect("the worker still waits for this");
}

/// The same in a task that such a thread polls after it has left another one to the workers, and so does not
/// look for tasks elsewhere.
#[test]
fn a_join_in_a_task_of_block_on_needs_no_worker() {
    async fn join(target: Option<volt::task::JoinHandle<u32>>) -> u32 {
        target.map_or(0, |target| target.join().unwrap())
    }
    let needs_no_worker = || {
        let (rt, release, _) = with_its_worker_blocked(|rt| {
            // Until it is known that this kind is quick.
            (0..100).for_each(|_| assert_eq!(rt.spawn(join(None)).join().unwrap(), 0));
        });
        let target = rt.spawn(async { 9 });
        let joined = rt.block_on(async {
            let _of_unknown_kind = volt::spawn(async {});
            volt::spawn(join(Some(target))).await
        });
        assert_eq!(joined.unwrap(), 9);
        // True if the worker still waits for this.
        release.send(()).is_ok()
    };
    // A machine that was busy for a moment may have made the kind look slow, which is left to the worker then.
    assert!((0..5).any(|_| needs_no_worker()), "it waits for the worker");
}

/// A runtime whose only worker waits for a message, after `before`. It gives up after some time, so that a failed test
/// has an end.
fn with_its_worker_blocked(
    before: impl FnOnce(&Runtime),
) -> (Runtime, std::sync::mpsc::Sender<()>, volt::task::JoinHandle<()>) {
    let rt = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    before(&rt);
    let (started, receiver) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let busy = rt.spawn(async move {
        started.send(()).unwrap();
        released.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
    });
    receiver.recv().unwrap();
    (rt, release, busy)
}

#[test]
fn a_join_after_the_end_of_the_runtime() {
    for rt in flavours() {
        let (done, pending) = (rt.spawn(async { 1 }), rt.spawn(std::future::pending::<()>()));
        rt.block_on(async {
            while !done.is_finished() {
                volt::task::yield_now().await;
            }
        });
        drop(rt);
        assert_eq!(done.join().unwrap(), 1);
        assert!(pending.join().unwrap_err().is_cancelled());
    }
}

#[test]
fn a_join_deeper_than_the_bound_does_not_deadlock() {
    fn nest(depth: u32) -> u32 {
        if depth == 0 { 0 } else { volt::spawn(async move { nest(depth - 1) }).join().unwrap() + 1 }
    }
    for workers in [1, 2, 8] {
        let rt = Builder::new_multi_thread().worker_threads(workers).build().unwrap();
        assert_eq!(rt.block_on(async { volt::spawn(async { nest(100) }).await.unwrap() }), 100);
        // More than the stack of a worker has room for.
        assert_eq!(rt.block_on(async { volt::spawn(async { nest(5_000) }).await.unwrap() }), 5_000);
    }
}

/// What the builder says of its threads' stacks does not hold for the thread in `block_on`.
#[test]
fn a_join_on_a_thread_with_a_stack_of_its_own_is_not_bounded_by_the_builder() {
    fn with_much_below() -> u32 {
        let much = std::hint::black_box([0_u8; 64 << 10]);
        let joined = volt::spawn(async { 7 }).join().unwrap();
        joined + u32::from(std::hint::black_box(much)[0])
    }
    for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
        let rt = builder.worker_threads(1).thread_stack_size(128 << 10).build().unwrap();
        assert_eq!(rt.block_on(async { with_much_below() }), 7);
    }
    let rt = Builder::new_current_thread().thread_stack_size(128 << 10).build().unwrap();
    let task = rt.spawn(async { with_much_below() });
    assert_eq!(rt.block_on(task).unwrap(), 7);
}

/// While another thread has the place of a current-thread runtime, a join waits for it; then it runs the task.
#[test]
fn a_join_takes_the_place_that_becomes_free() {
    let rt = Arc::new(Builder::new_current_thread().build().unwrap());
    for _ in 0..20 {
        let (inside, is_inside) = std::sync::mpsc::channel();
        let theirs = rt.clone();
        let other = std::thread::spawn(move || {
            theirs.block_on(async {
                yield_now().await;
                inside.send(()).unwrap();
                sleep(Duration::from_millis(5)).await;
            });
        });
        is_inside.recv().unwrap();
        let (done, is_done) = std::sync::mpsc::channel();
        let theirs = rt.clone();
        let joins = std::thread::spawn(move || {
            let joined = theirs.block_on(async {
                volt::spawn(async {
                    sleep(Duration::from_millis(10)).await;
                    7
                })
                .join()
            });
            done.send(joined.unwrap()).unwrap();
        });
        assert_eq!(is_done.recv_timeout(Duration::from_secs(30)), Ok(7), "nobody runs the task");
        other.join().unwrap();
        joins.join().unwrap();
    }
}

/// But not with too little stack left to run tasks on: then another thread takes the place.
#[test]
fn a_join_deep_in_its_stack_leaves_the_place_to_others() {
    #[inline(never)]
    fn deeper<R>(levels: u32, f: &mut dyn FnMut() -> R) -> R {
        let used = std::hint::black_box([0_u8; 16 << 10]);
        let result = if levels == 0 { f() } else { deeper(levels - 1, f) };
        std::hint::black_box(used);
        result
    }
    let rt = Arc::new(Builder::new_current_thread().build().unwrap());
    let (go_on, goes_on) = volt::sync::oneshot::channel::<()>();
    let mut task = Some(rt.spawn(async move { goes_on.await.is_ok() }));
    let (inside, is_inside) = std::sync::mpsc::channel();
    let (end, ended) = volt::sync::oneshot::channel::<()>();
    let theirs = rt.clone();
    let other = std::thread::spawn(move || {
        theirs.block_on(async {
            yield_now().await;
            inside.send(()).unwrap();
            ended.await.unwrap();
        });
    });
    is_inside.recv().unwrap();
    let theirs = rt.clone();
    let (done, is_done) = volt::sync::oneshot::channel();
    let joins = move || {
        let joined = theirs.block_on(async { deeper(40, &mut || task.take().unwrap().join()) });
        done.send(joined.unwrap()).unwrap();
    };
    let joins = std::thread::Builder::new().stack_size(4 << 20).spawn(joins).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    end.send(()).unwrap();
    other.join().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    go_on.send(()).unwrap();
    let joined = rt.block_on(async { volt::time::timeout(Duration::from_secs(30), is_done).await });
    assert_eq!(joined, Ok(Ok(true)), "it ran into the end of its stack, or waits for nobody");
    joins.join().unwrap();
}

/// Nor has a thread more than it was started with.
#[test]
fn joins_are_nested_as_far_as_the_stack_of_the_thread_allows() {
    fn nest(depth: u32) -> u32 {
        if depth == 0 { 0 } else { 1 + volt::spawn(async move { nest(depth - 1) }).join().unwrap() }
    }
    let rt = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let body = move || rt.block_on(async { nest(400) });
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(body).unwrap();
    assert_eq!(thread.join().unwrap(), 400);
}

/// A current-thread runtime has no other thread to go on with: the innermost join says so, before the stack ends.
#[test]
fn a_join_deeper_than_the_bound_panics_on_a_current_thread_runtime() {
    static ENOUGH: AtomicBool = AtomicBool::new(false);
    fn nest(depth: u32) -> Result<u32, String> {
        if depth == 0 || ENOUGH.load(Ordering::Relaxed) {
            return Ok(0);
        }
        match volt::spawn(async move { nest(depth - 1) }).join() {
            Ok(below) => Ok(below? + 1),
            Err(error) => Err((*error.into_panic().downcast::<&str>().unwrap()).to_owned()),
        }
    }
    let rt = Builder::new_current_thread().build().unwrap();
    for _ in 0..3 {
        ENOUGH.store(false, Ordering::Relaxed);
        let error = rt.block_on(async { nest(1_000_000) }).unwrap_err();
        assert_eq!(error, "blocking joins are nested too deeply: use `.await`");
        assert_eq!(rt.metrics().num_alive_tasks(), 1, "what the innermost join wanted");
        ENOUGH.store(true, Ordering::Relaxed);
        rt.block_on(async {
            while rt.metrics().num_alive_tasks() > 0 {
                volt::task::yield_now().await;
            }
        });
    }
    ENOUGH.store(false, Ordering::Relaxed);
    assert_eq!(rt.block_on(async { nest(20) }), Ok(20));
}

/// Where the task of a join ran, or why none did; and where the join was.
type Joined = (Result<ThreadId, String>, ThreadId);

/// A waker that joins a task of the runtime, once.
struct Joins {
    runtime: volt::runtime::Handle,
    said: std::sync::mpsc::Sender<Joined>,
    is_done: AtomicBool,
}

impl Joins {
    fn new(rt: &Runtime) -> (Arc<Self>, std::sync::mpsc::Receiver<Joined>) {
        let (said, message) = std::sync::mpsc::channel();
        let (runtime, is_done) = (rt.handle().clone(), AtomicBool::new(false));
        (Arc::new(Self { runtime, said, is_done }), message)
    }

    /// Waits while whoever turns the driver calls this waker.
    async fn in_the_driver(self: Arc<Self>) {
        let waker = std::task::Waker::from(self.clone());
        let soon = Duration::from_millis(2);
        let mut early = Box::pin(sleep(soon));
        // A thread without a processor may come too late.
        while early.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            early.as_mut().reset(volt::time::Instant::now() + soon);
        }
        for _ in 0..30_000 {
            sleep(Duration::from_millis(1)).await;
            if self.is_done.load(Ordering::Relaxed) {
                break;
            }
        }
    }
}

impl std::task::Wake for Joins {
    fn wake(self: Arc<Self>) {
        let task = self.runtime.spawn(async { std::thread::current().id() });
        let join = std::panic::AssertUnwindSafe(|| task.join().unwrap());
        let joined = std::panic::catch_unwind(join)
            .map_err(|payload| (*payload.downcast::<&str>().unwrap()).to_owned());
        self.said.send((joined, std::thread::current().id())).unwrap();
        self.is_done.store(true, Ordering::Relaxed);
    }
}

const NOBODY: &str = "a waker cannot block in a join: nobody would run the task";

/// A waker that the driver calls on the thread of a current-thread runtime, or on the only worker: nobody else could run
/// the task.
#[test]
fn a_join_in_a_waker_that_the_only_thread_calls_panics() {
    let one_worker = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    for rt in [Builder::new_current_thread().build().unwrap(), one_worker] {
        let (joins, message) = Joins::new(&rt);
        let task = rt.spawn(joins.in_the_driver());
        if rt.handle().runtime_flavor() == RuntimeFlavor::CurrentThread {
            rt.block_on(task).unwrap();
        }
        // A worker has no guest beside it meanwhile, who could turn the driver for it, or run the task.
        let (said, _) = message.recv_timeout(Duration::from_secs(30)).expect("it hangs");
        assert_eq!(said.unwrap_err(), NOBODY);
        assert_eq!(rt.block_on(async { volt::spawn(async { 1 }).join().unwrap() }), 1);
    }
}

/// If a guest calls it, the only worker runs the task as soon as it can.
#[test]
fn a_join_in_a_waker_that_a_guest_calls_waits_for_the_only_worker() {
    let rt = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (begin, begun) = std::sync::mpsc::channel();
    // Once in a while the worker is another thread before this one waits, and then that may turn the driver.
    let by_a_guest = (0..100).any(|_| {
        let (joins, message) = Joins::new(&rt);
        let begin = begin.clone();
        let busy = rt.spawn(async move {
            begin.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(20));
        });
        begun.recv_timeout(Duration::from_secs(30)).expect("it hangs");
        rt.block_on(joins.in_the_driver());
        rt.block_on(busy).unwrap();
        let (said, thread) = message.recv_timeout(Duration::from_secs(30)).expect("it hangs");
        let by_a_guest = thread == std::thread::current().id();
        match said {
            Ok(ran) => assert!(by_a_guest && ran != thread, "by the worker, for the guest"),
            Err(error) => assert_eq!((by_a_guest, error.as_str()), (false, NOBODY)),
        }
        by_a_guest
    });
    assert!(by_a_guest);
}

/// The only worker is blocked by what the task would end. One of those in `block_on` is in a join, and takes it;
/// the others leave it to each other, and once did so for ever.
#[test]
fn a_guest_in_a_join_gets_what_many_others_leave() {
    const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);
    for guests in [2, 12] {
        let rt = Arc::new(Builder::new_multi_thread().worker_threads(1).build().unwrap());
        let (began, begun) = std::sync::mpsc::channel();
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let blocked = rt.spawn(async move {
            began.send(()).unwrap();
            receive.recv_timeout(LIMIT)
        });
        begun.recv().unwrap();
        let (mut stops, mut threads) = (Vec::new(), Vec::new());
        for _ in 0..guests {
            let (stop, stopped) = volt::sync::oneshot::channel::<()>();
            let rt = rt.clone();
            threads.push(std::thread::spawn(move || drop(rt.block_on(stopped))));
            stops.push(stop);
        }
        let joiner = rt.clone();
        let joiner = std::thread::spawn(move || {
            // The last of the guests.
            std::thread::sleep(std::time::Duration::from_millis(30));
            joiner.block_on(async move {
                volt::task::yield_now().await;
                blocked.join().unwrap()
            })
        });
        std::thread::sleep(std::time::Duration::from_millis(60));
        // Of a kind that nobody knows.
        drop(rt.spawn(async move { send.send(()).unwrap() }));
        assert_eq!(joiner.join().unwrap(), Ok(()), "with {guests} others");
        drop(stops);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// The join and the future share what wakes them, and the join is done first.
#[test]
fn a_join_in_the_first_poll_of_block_on_keeps_no_wake_up_to_itself() {
    for runtime in flavours() {
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (send, mut receive) = volt::sync::oneshot::channel();
            let mut send = Some(send);
            let received = runtime.block_on(std::future::poll_fn(|cx| {
                let polled = Pin::new(&mut receive).poll(cx);
                if let Some(send) = send.take() {
                    assert!(polled.is_pending());
                    volt::spawn(async move { send.send(7).unwrap() }).join().unwrap();
                    return Poll::Pending;
                }
                polled
            }));
            done.send(received).unwrap();
        });
        let received = ended.recv_timeout(std::time::Duration::from_secs(20));
        assert_eq!(received.expect("the wake-up is lost"), Ok(7));
    }
}

/// What wakes the one that joins runs while the task is still the one that is polled.
#[test]
fn a_waker_may_join_the_task_that_has_just_completed() {
    struct Takes(
        std::sync::Mutex<Option<volt::task::JoinHandle<u32>>>,
        std::sync::mpsc::Sender<u32>,
    );
    impl std::task::Wake for Takes {
        fn wake(self: Arc<Self>) {
            let task = self.0.lock().unwrap().take().unwrap();
            self.1.send(task.join().unwrap()).unwrap();
        }
    }
    for rt in flavours() {
        let (said, output) = std::sync::mpsc::channel();
        let (go, gone) = volt::sync::oneshot::channel::<()>();
        let task = rt.spawn(async move { gone.await.map_or(1, |()| 5) });
        let takes = Arc::new(Takes(std::sync::Mutex::new(None), said));
        let waker = std::task::Waker::from(takes.clone());
        {
            let mut task = task;
            assert!(Pin::new(&mut task).poll(&mut Context::from_waker(&waker)).is_pending());
            *takes.0.lock().unwrap() = Some(task);
        }
        go.send(()).unwrap();
        rt.block_on(async {
            while rt.metrics().num_alive_tasks() > 0 {
                volt::task::yield_now().await;
            }
        });
        assert_eq!(output.recv_timeout(std::time::Duration::from_secs(20)), Ok(5));
    }
}

/// What a join of `task` says that is refused.
fn refusal(task: volt::task::JoinHandle<()>) -> String {
    let join = std::panic::AssertUnwindSafe(|| task.join().unwrap());
    let payload = std::panic::catch_unwind(join).unwrap_err();
    *payload.downcast::<String>().unwrap()
}

/// Where nobody else could take the task that is polled on top. It would never have come back.
#[test]
fn a_join_of_a_task_below_is_refused() {
    let one = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    for (rt, is_current) in [(one, false), (Builder::new_current_thread().build().unwrap(), true)] {
        // Itself, a task that joins it, and one that joins that.
        for depth in 0..3 {
            let (give, given) = std::sync::mpsc::channel();
            let (send, said) = std::sync::mpsc::channel();
            let task = rt.spawn(async move {
                let own = given.recv().unwrap();
                fn climb(depth: u32, own: volt::task::JoinHandle<()>) -> String {
                    match depth {
                        0 => refusal(own),
                        _ => volt::spawn(async move { climb(depth - 1, own) }).join().unwrap(),
                    }
                }
                send.send(climb(depth, own)).unwrap();
            });
            let id = task.id();
            give.send(task).unwrap();
            // The thread in `block_on` would help beside a worker.
            if is_current {
                rt.block_on(async {
                    while rt.metrics().num_alive_tasks() > 0 {
                        volt::task::yield_now().await;
                    }
                });
            }
            let said = said.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
            assert!(said.contains(&format!("task {id}, which is further down")), "{said}");
            // Joins on its stack are over: others are not refused.
            assert_eq!(rt.spawn(async { fib(3) }).join().unwrap(), 2);
        }
    }
}

/// Only this thread could run the task, and it drives the set further down on its stack.
#[test]
fn a_join_of_a_local_task_by_the_thread_that_drives_its_set_is_refused() {
    async fn joins() -> Vec<String> {
        let mut said = vec![refusal(spawn_local(async {}))];
        said.push(spawn_local(async { refusal(spawn_local(async {})) }).await.unwrap());
        // A set inside of this one is driven on top of it.
        let task = spawn_local(async {});
        said.push(LocalSet::new().run_until(async { refusal(task) }).await);
        // Others are not refused.
        assert_eq!(spawn_local(async { fib(5) }).await.unwrap(), 5);
        let done = spawn_local(async { 1 });
        while !done.is_finished() {
            yield_now().await;
        }
        assert_eq!(done.join().unwrap(), 1);
        said
    }
    for (index, rt) in flavours().into_iter().enumerate() {
        let (send, said) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let local = LocalSet::new();
            send.send(local.block_on(&rt, joins())).unwrap();
            if index == 3 {
                // A task that this thread runs on top, there being no other.
                let below = local.spawn_local(async {});
                let on_top = local.run_until(async {
                    volt::spawn(async move { refusal(below) }).join().unwrap()
                });
                send.send(vec![rt.block_on(on_top)]).unwrap();
            }
        });
        let next = || said.recv_timeout(Duration::from_secs(20)).expect("a join hangs");
        let mut refusals = next();
        if index == 3 {
            refusals.extend(next());
        }
        for said in refusals {
            assert!(said.contains("of a `LocalSet` that this thread drives"), "{said}");
        }
    }
}

/// Joins of tasks that run at once, that wait for a timer, a blocking thread or another task, and that nobody has
/// begun; in tasks, in `block_on`, and outside. On a current-thread runtime whatever is helped with runs on top.
/// (Nobody joins what it has spawned before an await: that may be below it on the stack by then.)
#[test]
fn stress_of_joins() {
    async fn node(seed: u64, depth: u32) -> u64 {
        match seed % 5 {
            0 => volt::time::sleep(std::time::Duration::from_micros(seed % 97)).await,
            1 => volt::task::yield_now().await,
            2 => volt::task::spawn_blocking(|| ()).join().unwrap(),
            3 => volt::task::spawn_blocking(|| ()).await.unwrap(),
            _ => {}
        }
        if depth == 0 {
            return 1;
        }
        let below = |way| seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17) ^ way;
        let [left, right] = [1, 2].map(|way| tree(below(way), depth - 1));
        match seed % 3 {
            0 => left.join().unwrap() + right.join().unwrap(),
            1 => right.join().unwrap() + left.await.unwrap(),
            _ => left.await.unwrap() + right.await.unwrap(),
        }
    }
    fn tree(seed: u64, depth: u32) -> volt::task::JoinHandle<u64> {
        let node: std::pin::Pin<Box<dyn Future<Output = u64> + Send>> = Box::pin(node(seed, depth));
        volt::spawn(node)
    }
    let seeds = 15 * std::env::var("VOLT_STRESS").map_or(1, |s| s.parse().unwrap_or(1));
    for rt in flavours() {
        let _guard = rt.enter();
        for seed in 0..seeds {
            let outside = tree(seed, 3);
            let inside = rt.block_on(async {
                tree(!seed, 3).join().unwrap() + tree(seed << 9, 3).await.unwrap()
            });
            assert_eq!((inside, outside.join().unwrap()), (16, 8));
        }
        assert_eq!(rt.metrics().num_alive_tasks(), 0);
    }
}

/// Each worker gets another thread several times, by joins on top of joins that have run their target
/// themselves: these must not go on as a worker that they no longer are.
#[test]
fn joins_below_one_that_hands_its_worker_over_do_not_go_on_as_that_worker() {
    fn nest(depth: u32) -> u32 {
        if depth == 0 { 0 } else { volt::spawn(async move { nest(depth - 1) }).join().unwrap() + 1 }
    }
    for round in 0..20 {
        let rt = Builder::new_multi_thread()
            .worker_threads([1, 2, 8][round % 3])
            .thread_stack_size(256 << 10)
            .build()
            .unwrap();
        let nests: Vec<_> = (0..4).map(|_| rt.spawn(async { nest(200) })).collect();
        for nest in nests {
            assert_eq!(rt.block_on(nest).unwrap(), 200);
        }
    }
}

/// The target runs elsewhere and takes its time: the join parks until it has completed.
#[test]
fn a_join_with_nothing_to_help_with_waits() {
    let rts = [2, 8].map(|n| Builder::new_multi_thread().worker_threads(n).build().unwrap());
    for rt in rts.iter().cycle().take(20) {
        let joined = rt.block_on(async {
            let (started, receiver) = std::sync::mpsc::channel();
            let target = volt::spawn(async move {
                started.send(()).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(3));
                7
            });
            volt::spawn(async move {
                receiver.recv().unwrap();
                target.join().unwrap()
            })
            .await
        });
        assert_eq!(joined.unwrap(), 7);
    }
}

#[test]
fn a_joined_panic_is_an_error() {
    for rt in flavours() {
        rt.block_on(async {
            assert!(volt::spawn(async { panic!("boom") }).join().unwrap_err().is_panic());
        });
    }
}

#[test]
fn joins_of_many_tasks_keep_thread_locals_right() {
    for rt in flavours() {
        let seen = Arc::new(AtomicUsize::new(0));
        rt.block_on(async {
            let tasks: Vec<_> = (0..200)
                .map(|_| {
                    let seen = seen.clone();
                    volt::spawn(async move {
                        let id = volt::task::id();
                        volt::spawn(async {}).join().unwrap();
                        assert_eq!(volt::task::id(), id);
                        seen.fetch_add(1, Ordering::Relaxed);
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        assert_eq!(seen.load(Ordering::Relaxed), 200);
    }
}
