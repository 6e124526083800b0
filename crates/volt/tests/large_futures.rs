//! Futures and closures that are large: each way into a runtime has to take one of 500 kB on a thread whose stack has
//! 2 MiB, as a test's or a worker's has, also where the compiler does not optimize. (If not, this process is aborted.)

use std::hint::black_box;
use std::io;

use volt::runtime::{Builder, LocalRuntime, Runtime};
use volt::task::{JoinSet, LocalSet, yield_now};

const SIZE: usize = 500_000;

fn sum(bytes: &[u8]) -> usize {
    black_box(bytes).iter().map(|&byte| usize::from(byte)).sum()
}

/// A future of that size.
async fn large() -> usize {
    let bytes = [1_u8; SIZE];
    yield_now().await;
    sum(&bytes)
}

fn large_closure() -> impl FnOnce() -> usize + Send + 'static {
    let bytes = [1_u8; SIZE];
    move || sum(&bytes)
}

/// Calls `f` on a thread with a stack of the usual size.
fn on_a_thread(f: impl FnOnce() -> usize + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(2 << 20);
        let thread = thread.spawn_scoped(scope, f).expect("the system gives a thread");
        assert_eq!(thread.join().expect("no panic"), SIZE);
    });
}

fn both(f: impl Fn(Runtime) -> usize + Sync) -> io::Result<()> {
    for runtime in [
        Builder::new_current_thread().build()?,
        Builder::new_multi_thread().worker_threads(1).build()?,
    ] {
        on_a_thread(|| f(runtime));
    }
    Ok(())
}

#[test]
fn block_on() -> io::Result<()> {
    both(|runtime| runtime.block_on(large()))?;
    both(|runtime| runtime.handle().block_on(large()))?;
    both(|runtime| LocalSet::new().block_on(&runtime, large()))?;
    on_a_thread(|| volt::run(large()));
    on_a_thread(|| LocalRuntime::new().expect("descriptors").block_on(large()));
    Ok(())
}

#[test]
fn main_and_test() {
    #[volt::main]
    async fn with_workers() -> usize {
        let bytes = [1_u8; SIZE];
        yield_now().await;
        sum(&bytes)
    }
    #[volt::main(flavor = "current_thread")]
    async fn alone() -> usize {
        let bytes = [1_u8; SIZE];
        yield_now().await;
        sum(&bytes)
    }
    #[volt::main(flavor = "local")]
    async fn local() -> usize {
        let bytes = [1_u8; SIZE];
        yield_now().await;
        sum(&bytes)
    }
    on_a_thread(with_workers);
    on_a_thread(alone);
    on_a_thread(local);
}

#[test]
fn spawn() -> io::Result<()> {
    both(|runtime| runtime.block_on(async { volt::spawn(large()).await.unwrap() }))?;
    both(|runtime| runtime.block_on(runtime.spawn(large())).unwrap())?;
    both(|runtime| runtime.block_on(runtime.handle().spawn(large())).unwrap())
}

#[test]
fn spawn_in_a_task() -> io::Result<()> {
    both(|runtime| {
        let task = runtime.spawn(async { volt::spawn(large()).await.unwrap() });
        runtime.block_on(task).unwrap()
    })
}

#[test]
fn spawn_in_a_set() -> io::Result<()> {
    both(|runtime| {
        let mut set = JoinSet::new();
        set.spawn_on(large(), runtime.handle());
        runtime.block_on(set.join_next()).unwrap().unwrap()
    })?;
    both(|runtime| {
        runtime.block_on(async {
            let mut set = JoinSet::new();
            set.spawn(large());
            set.join_next().await.unwrap().unwrap()
        })
    })
}

#[test]
fn spawn_local() -> io::Result<()> {
    both(|runtime| {
        let local = LocalSet::new();
        let task = local.spawn_local(large());
        local.block_on(&runtime, task).unwrap()
    })?;
    both(|runtime| {
        let task = async { volt::task::spawn_local(large()).await.unwrap() };
        LocalSet::new().block_on(&runtime, task)
    })?;
    on_a_thread(|| {
        let runtime = LocalRuntime::new().expect("descriptors");
        let first = runtime.spawn_local(large());
        assert_eq!(runtime.block_on(first).unwrap(), SIZE);
        let closure = runtime.spawn_blocking(large_closure());
        assert_eq!(runtime.block_on(closure).unwrap(), SIZE);
        runtime.block_on(async { volt::task::spawn_local(large()).await.unwrap() })
    });
    both(|runtime| {
        let (local, mut set) = (LocalSet::new(), JoinSet::new());
        set.spawn_local_on(large(), &local);
        local.block_on(&runtime, set.join_next()).unwrap().unwrap()
    })
}

#[test]
fn spawn_blocking() -> io::Result<()> {
    both(|runtime| runtime.block_on(runtime.spawn_blocking(large_closure())).unwrap())?;
    both(|runtime| {
        runtime.block_on(async { volt::task::spawn_blocking(large_closure()).await.unwrap() })
    })?;
    both(|runtime| {
        let mut set = JoinSet::new();
        set.spawn_blocking_on(large_closure(), runtime.handle());
        runtime.block_on(set.join_next()).unwrap().unwrap()
    })
}

/// The runtime is there while the future is dropped, wherever that has been put.
#[test]
fn is_dropped_in_its_runtime() -> io::Result<()> {
    struct Spawns(volt::sync::oneshot::Sender<()>);
    impl Drop for Spawns {
        fn drop(&mut self) {
            let (unused, _) = volt::sync::oneshot::channel();
            let sender = std::mem::replace(&mut self.0, unused);
            volt::spawn(async move { sender.send(()) });
        }
    }
    both(|runtime| {
        let (sender, receiver) = volt::sync::oneshot::channel();
        let spawns = Spawns(sender);
        let size = runtime.block_on(async {
            let _spawns = spawns;
            let bytes = [1_u8; SIZE];
            yield_now().await;
            sum(&bytes)
        });
        runtime.block_on(receiver).expect("it was spawned");
        size
    })
}
