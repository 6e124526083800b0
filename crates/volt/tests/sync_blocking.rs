//! Where the functions of `sync` that block are refused, and where they are not; and that a wrong call is named by its place.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

#[path = "support/places.rs"]
mod places;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use places::Places;
use volt::runtime::{Builder, Runtime};
use volt::sync::{Mutex, RwLock, Semaphore, broadcast, mpmc, mpsc, oneshot};
use volt::task::{LocalSet, block_in_place, spawn_blocking, spawn_local, yield_now};

fn runtimes() -> Vec<Runtime> {
    let multi = |workers| Builder::new_multi_thread().worker_threads(workers).build().unwrap();
    vec![Builder::new_current_thread().build().unwrap(), multi(1), multi(2), multi(8)]
}

/// Calls all of them where none has to wait. The names of those that were refused.
fn refused() -> Vec<String> {
    let mut refused = Vec::new();
    let mut call = |name: &str, f: &mut dyn FnMut()| {
        let Err(panic) = catch_unwind(AssertUnwindSafe(f)) else { return };
        let said = panic.downcast::<String>().unwrap();
        let start = format!("`{name}` would block a thread that runs tasks");
        assert!(said.starts_with(&start), "{said}");
        refused.push(name.to_owned());
    };
    let mutex = Arc::new(Mutex::new(()));
    call("Mutex::blocking_lock", &mut || drop(mutex.blocking_lock()));
    call("Mutex::blocking_lock_owned", &mut || drop(mutex.clone().blocking_lock_owned()));
    let lock = RwLock::new(());
    call("RwLock::blocking_read", &mut || drop(lock.blocking_read()));
    call("RwLock::blocking_write", &mut || drop(lock.blocking_write()));
    let semaphore = Arc::new(Semaphore::new(2));
    call("Semaphore::blocking_acquire", &mut || drop(semaphore.blocking_acquire()));
    call("Semaphore::blocking_acquire_many", &mut || drop(semaphore.blocking_acquire_many(2)));
    call("Semaphore::blocking_acquire_owned", &mut || {
        drop(semaphore.clone().blocking_acquire_owned());
    });
    call("Semaphore::blocking_acquire_many_owned", &mut || {
        drop(semaphore.clone().blocking_acquire_many_owned(2));
    });
    let (tx, mut rx) = mpsc::channel(4);
    (0..3).for_each(|i| tx.try_send(i).unwrap());
    call("mpsc::Sender::blocking_send", &mut || tx.blocking_send(3).unwrap());
    call("mpsc::Receiver::blocking_recv", &mut || _ = rx.blocking_recv().unwrap());
    call("mpsc::Receiver::blocking_recv_many", &mut || {
        assert_eq!(rx.blocking_recv_many(&mut Vec::new(), 1), 1);
    });
    let (tx, mut rx) = mpsc::unbounded_channel();
    (0..3).for_each(|i| tx.send(i).unwrap());
    call("mpsc::UnboundedReceiver::blocking_recv", &mut || _ = rx.blocking_recv().unwrap());
    call("mpsc::UnboundedReceiver::blocking_recv_many", &mut || {
        assert_eq!(rx.blocking_recv_many(&mut Vec::new(), 1), 1);
    });
    let (tx, rx) = mpmc::bounded(4);
    tx.try_send(1).unwrap();
    call("mpmc::Sender::blocking_send", &mut || tx.blocking_send(2).unwrap());
    call("mpmc::Receiver::blocking_recv", &mut || _ = rx.blocking_recv().unwrap());
    let (tx, mut rx) = broadcast::channel(4);
    tx.send(1).unwrap();
    call("broadcast::Receiver::blocking_recv", &mut || _ = rx.blocking_recv().unwrap());
    let (tx, rx) = oneshot::channel();
    tx.send(1).unwrap();
    let mut rx = Some(rx);
    call("oneshot::Receiver::blocking_recv", &mut || {
        rx.take().unwrap().blocking_recv().unwrap();
    });
    call("pool::block_on", &mut || volt::pool::block_on(async {}));
    refused
}

const ALL: usize = 18;

#[test]
fn where_futures_are_polled_they_are_refused() {
    for runtime in runtimes() {
        assert_eq!(runtime.block_on(async { refused() }).len(), ALL);
        assert_eq!(runtime.block_on(runtime.spawn(async { refused() })).unwrap().len(), ALL);
        // On whatever thread: the one in `block_on`, or a worker.
        let later = runtime.spawn(async {
            yield_now().await;
            refused()
        });
        assert_eq!(later.join().unwrap().len(), ALL);
        let local = LocalSet::new();
        let task = local.block_on(&runtime, async { spawn_local(async { refused() }).await });
        assert_eq!(task.unwrap().len(), ALL);
    }
}

#[test]
fn elsewhere_they_are_not() {
    for (index, runtime) in runtimes().into_iter().enumerate() {
        assert!(refused().is_empty());
        let _guard = runtime.enter();
        assert!(refused().is_empty(), "this runtime runs nothing here");
        assert!(runtime.block_on(spawn_blocking(refused)).unwrap().is_empty());
        if index > 0 {
            let task = runtime.spawn(async { (block_in_place(refused), refused()) });
            let (inside, behind) = runtime.block_on(task).unwrap();
            assert_eq!((inside.len(), behind.len()), (0, ALL));
        }
        assert!(std::thread::spawn(refused).join().unwrap().is_empty());
    }
}

/// Also where it would wait: nothing hangs, and what is waited for is not lost.
#[test]
fn a_task_that_would_wait_for_itself_panics() {
    for runtime in runtimes() {
        let (tx, rx) = oneshot::channel::<u32>();
        let (again, mut kept) = mpsc::channel(1);
        let task = runtime.spawn(async move {
            let _again = again;
            drop(rx.blocking_recv());
        });
        let error = runtime.block_on(task).unwrap_err();
        assert!(error.is_panic());
        assert!(tx.is_closed());
        runtime.block_on(async {
            let ended = volt::time::timeout(Duration::from_secs(20), kept.recv()).await;
            assert_eq!(ended, Ok(None::<()>));
        });
    }
}

#[test]
fn too_many_permits_are_reported_where_they_are_added() {
    let places = Places::record();
    let semaphore = Semaphore::new(Semaphore::MAX_PERMITS);
    let refused = [1, usize::MAX].map(|n| catch_unwind(|| semaphore.add_permits(n)).is_err());
    let places = places.take();
    assert_eq!((places, refused), (vec![file!().to_owned(); 2], [true; 2]));
}
