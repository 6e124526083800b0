//! Panics in every kind of user code: futures, outputs, drops, closures, hooks, wakers.

use std::cell::Cell;
use std::future::{Future, pending};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{self as std_task, Poll, RawWaker, RawWakerVTable, Wake, Waker};
use std::time::Duration;

use volt::io::AsyncReadExt;
use volt::net::UnixStream;
use volt::runtime::Builder;
use volt::sync::{Mutex, Notify, OnceCell, Semaphore, broadcast, mpsc, oneshot, watch};
use volt::task::{LocalSet, spawn_blocking, yield_now};
use volt::time::sleep;

use crate::support::{Context, Planned, Token, assert_planned, bounded, planned};

/// Panics when it is dropped.
struct Bomb<T>(#[allow(dead_code, reason = "counts the drop")] T);

impl<T> Drop for Bomb<T> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            planned();
        }
    }
}

/// Panics when it is woken.
struct Trap;

impl Wake for Trap {
    fn wake(self: Arc<Self>) {
        planned();
    }
}

pub async fn tasks(mut c: Context) {
    for _ in 0..40 {
        let (token, yields) = (c.token(), c.below(3));
        let task = volt::spawn(async move {
            let _token = token;
            for _ in 0..yields {
                yield_now().await;
            }
            planned();
        });
        assert_planned(task.await.unwrap_err());

        let bomb = Bomb(c.token());
        let task = volt::spawn(async move {
            let _bomb = bomb;
            pending::<()>().await;
        });
        if yields > 0 {
            yield_now().await;
        }
        task.abort();
        assert!(task.await.is_err());

        // The output's drop panics: in the runtime, or where the handle is dropped.
        let bomb = Bomb(c.token());
        let mut task = volt::spawn(async move { bomb });
        for _ in 0..yields {
            yield_now().await;
        }
        if yields == 1 {
            let output = (&mut task).await.ok();
            assert!(catch_unwind(AssertUnwindSafe(|| drop(output))).is_err());
        }
        let _ = catch_unwind(AssertUnwindSafe(|| drop(task)));

        let token = c.token();
        let task = spawn_blocking(move || {
            let _token = token;
            planned();
        });
        assert_planned(task.await.unwrap_err());

        wakers(&mut c).await;
        bad_wakers(&mut c).await;
        closures(&mut c).await;
    }
}

/// Polls `future` with a waker that panics.
fn poll_trapped<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::new(Trap));
    future.poll(&mut std_task::Context::from_waker(&waker))
}

/// Wakers that panic in each place that wakes.
async fn wakers(c: &mut Context) {
    let token = c.plan();
    let wait = c.rng.micros(200);
    let mut task = volt::spawn(async move {
        sleep(wait).await;
        token.run();
    });
    let _ = poll_trapped(Pin::new(&mut task)).is_ready();
    sleep(wait + Duration::from_micros(200)).await;
    if !task.is_finished() {
        task.await.unwrap();
    }

    let (tx, mut rx) = oneshot::channel();
    assert!(poll_trapped(Pin::new(&mut rx)).is_pending());
    let token = c.token();
    let _ = volt::spawn(async move { tx.send(token).is_ok() }).await;
    drop(rx);

    let mut timer = pin!(sleep(Duration::from_micros(50)));
    let early = poll_trapped(timer.as_mut()).is_ready();
    sleep(Duration::from_micros(100)).await;
    if !early {
        timer.await;
    }

    let (mut left, right) = UnixStream::pair().unwrap();
    let mut read = pin!(left.read_u8());
    assert!(poll_trapped(read.as_mut()).is_pending());
    right.try_write(b"x").unwrap();
    sleep(Duration::from_micros(100)).await;
    assert_eq!(read.await.unwrap(), b'x');

    let mutex = Arc::new(Mutex::new(c.token()));
    let guard = mutex.clone().lock_owned().await;
    let mut lock = pin!(mutex.lock());
    assert!(poll_trapped(lock.as_mut()).is_pending());
    let _ = volt::spawn(async move { drop(guard) }).await;
    drop(lock.await);

    let (tx, mut rx) = mpsc::channel(1);
    let mut receive = pin!(rx.recv());
    // A turn that it gives others is a wake-up of its own.
    let polled = loop {
        if let Some(polled) = caught(|| poll_trapped(receive.as_mut())) {
            break polled;
        }
    };
    assert!(polled.is_pending());
    let token = c.token();
    let _ = volt::spawn(async move { tx.send(token).await.is_ok() }).await;
    assert!(receive.await.is_some(), "sent, although the waker panicked");
}

/// Runs what panics as planned, or does not.
fn caught<R>(f: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => Some(result),
        Err(payload) => {
            assert!(payload.is::<Planned>(), "another panic than the planned one");
            None
        }
    }
}

unsafe fn nothing(_: *const ()) {}

unsafe fn panics(_: *const ()) {
    if !std::thread::panicking() {
        planned();
    }
}

unsafe fn panics_instead_of_a_clone(_: *const ()) -> RawWaker {
    planned()
}

unsafe fn same(_: *const ()) -> RawWaker {
    RawWaker::new(std::ptr::null(), &BAD_DROP)
}

static BAD_CLONE: RawWakerVTable =
    RawWakerVTable::new(panics_instead_of_a_clone, nothing, nothing, nothing);
static BAD_DROP: RawWakerVTable = RawWakerVTable::new(same, nothing, nothing, panics);

/// Wakers whose clone or whose drop panics, in each place that keeps one.
async fn bad_wakers(c: &mut Context) {
    /// Waits with each bad waker and gives up; then waits as others do.
    macro_rules! survives {
        ($make:expr, $kick:expr) => {{
            for table in [&BAD_CLONE, &BAD_DROP] {
                let mut future = Box::pin($make);
                // SAFETY: the functions of the tables do nothing with the data.
                let waker = unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), table)) };
                let waker = ManuallyDrop::new(waker);
                let mut cx = std_task::Context::from_waker(&waker);
                let first = caught(|| future.as_mut().poll(&mut cx).is_pending());
                assert_ne!(first, Some(false), "nothing is there yet");
                caught(|| drop(future));
                // What keeps the waker beyond its future drops it now.
                let mut future = Box::pin($make);
                let mut cx = std_task::Context::from_waker(Waker::noop());
                caught(|| future.as_mut().poll(&mut cx).is_pending());
                caught(|| drop(future));
            }
            $kick;
            bounded($make).await
        }};
    }

    let notify = Notify::new();
    survives!(notify.notified(), notify.notify_one());

    let semaphore = Semaphore::new(0);
    drop(survives!(semaphore.acquire(), semaphore.add_permits(1)).unwrap());

    let mutex = Arc::new(Mutex::new(c.token()));
    let guard = mutex.clone().lock_owned().await;
    drop(survives!(mutex.lock(), drop(guard)));

    let (tx, mut rx) = oneshot::channel();
    assert!(survives!(&mut rx, assert!(tx.send(c.token()).is_ok())).is_ok());

    let (tx, mut rx) = mpsc::channel(1);
    assert!(survives!(rx.recv(), assert!(tx.try_send(c.token()).is_ok())).is_some());
    tx.try_send(c.token()).ok().unwrap();
    assert!(survives!(tx.reserve(), drop(rx.recv().await)).is_ok());

    let (tx, mut rx) = watch::channel(0);
    survives!(rx.changed(), tx.send(1).unwrap()).unwrap();

    let (tx, mut rx) = broadcast::channel(1);
    assert!(survives!(rx.recv(), assert!(tx.send(1).is_ok())).is_ok());

    let (tx, rx) = oneshot::channel::<()>();
    let token = c.plan();
    let mut task = volt::spawn(async move {
        let _ = rx.await;
        token.run();
    });
    survives!(&mut task, tx.send(()).unwrap()).unwrap();

    let (mut left, right) = UnixStream::pair().unwrap();
    assert_eq!(survives!(left.read_u8(), right.try_write(b"x").unwrap()).unwrap(), b'x');

    let wait = Cell::new(Duration::from_secs(100));
    survives!(sleep(wait.get()), wait.set(Duration::from_millis(1)));
}

/// Its second clone panics.
struct CloneBomb(Token, Arc<std::sync::atomic::AtomicU32>);

impl Clone for CloneBomb {
    fn clone(&self) -> Self {
        if self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 1 {
            planned();
        }
        Self(self.0.another(), self.1.clone())
    }
}

/// Closures and trait methods that the library calls.
async fn closures(c: &mut Context) {
    let (tx, mut first) = broadcast::channel(2);
    let (mut second, mut third) = (tx.subscribe(), tx.subscribe());
    assert!(tx.send(CloneBomb(c.token(), Arc::default())).is_ok());
    drop(first.recv().await.ok().unwrap());
    assert_planned(volt::spawn(async move { drop(second.recv().await) }).await.unwrap_err());
    // The others' value, and the place, are as they were.
    drop(third.recv().await.ok().unwrap());
    assert!(tx.send(CloneBomb(c.token(), Arc::default())).is_ok());
    drop(third.recv().await.ok().unwrap());

    let (tx, rx) = watch::channel(c.token());
    assert!(caught(|| tx.send_modify(|_| planned())).is_none());
    assert!(caught(|| tx.send_if_modified(|_| planned())).is_none());
    tx.send_replace(c.token());
    assert!(rx.has_changed().unwrap());

    let cell = Arc::new(OnceCell::new());
    let clone = cell.clone();
    let task = volt::spawn(async move {
        clone.get_or_init(|| async { planned() }).await;
    });
    assert_planned(task.await.unwrap_err());
    let token = c.token();
    cell.get_or_init(|| async { token }).await;

    let pool = volt::pool::ThreadPool::with_threads(1);
    let token = c.token();
    let joined = caught(|| pool.install(|| volt::pool::join(|| planned(), || drop(token))));
    assert!(joined.is_none());
    assert_eq!(pool.install(|| 3), 3);
    spawn_blocking(move || drop(pool)).await.unwrap();
}

/// Hooks of threads, and tasks of a local set.
pub fn threads(c: Context) {
    let builder = &mut Builder::new_multi_thread();
    builder.worker_threads(2).on_thread_start(|| planned()).on_thread_stop(|| planned());
    let runtime = builder.on_thread_park(|| planned()).on_thread_unpark(|| planned());
    let runtime = runtime.enable_all().build().unwrap();
    for _ in 0..20 {
        let token = c.plan();
        let task = runtime.spawn(async move {
            sleep(Duration::from_micros(50)).await;
            token.run();
        });
        runtime.block_on(bounded(task)).unwrap();
    }
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        for _ in 0..20 {
            let (bomb, token) = (Bomb(c.token()), c.token());
            let dropped = volt::task::spawn_local(async move {
                let _bomb = bomb;
                pending::<()>().await;
            });
            let panics = volt::task::spawn_local(async move {
                let _token = token;
                planned();
            });
            assert_planned(panics.await.unwrap_err());
            dropped.abort();
            assert!(dropped.await.is_err());
        }
    });
}
