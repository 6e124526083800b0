//! Runtimes under load, signals, child processes, and a process that runs out of things.

use std::future::pending;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use volt::io::{AsyncReadExt, AsyncWriteExt};
use volt::net::{TcpListener, TcpStream};
use volt::process::Command;
use volt::runtime::Builder;
use volt::signal::unix::{SignalKind, signal};
use volt::task::{spawn_blocking, yield_now};
use volt::time::sleep;

use crate::limits::limit;
use crate::support::{Context, bounded, sanitized, threads_of_linux};

/// Runtimes are dropped with tasks that are pending, run, wait for a time and for a thread.
pub fn runtimes(mut c: Context) {
    for _ in 0..6 {
        let mut builder = match c.below(4) {
            0 => Builder::new_current_thread(),
            _ => Builder::new_multi_thread(),
        };
        builder.worker_threads(1 + c.below(3) as usize);
        let runtime = builder.enable_all().build().unwrap();
        for _ in 0..60 {
            let (token, kind, wait) = (c.token(), c.below(5), c.rng.micros(2000));
            runtime.spawn(async move {
                let _token = token;
                match kind {
                    0 => pending().await,
                    1 => loop {
                        yield_now().await;
                    },
                    2 => sleep(wait).await,
                    3 => {
                        let _ = spawn_blocking(move || std::thread::sleep(wait)).await;
                    }
                    _ => {
                        // Spawned while the runtime shuts down, maybe.
                        sleep(wait).await;
                        volt::spawn(pending::<()>());
                    }
                }
            });
        }
        if c.below(2) == 0 {
            let token = c.plan();
            runtime.block_on(async move {
                sleep(Duration::from_micros(100)).await;
                token.run();
            });
        }
        match c.below(3) {
            0 => runtime.shutdown_background(),
            1 => runtime.shutdown_timeout(Duration::from_secs(20)),
            _ => drop(runtime),
        }
    }
    if sanitized() {
        return;
    }
    // More stack than there are addresses: the thread does not start, and nothing stays behind.
    let mut builder = Builder::new_multi_thread();
    assert!(builder.worker_threads(2).thread_stack_size(1 << 47).enable_all().build().is_err());
}

pub async fn signals(mut c: Context) {
    let count = 1 + c.below(3);
    let mut listeners: Vec<_> =
        (0..count).map(|_| signal(SignalKind::user_defined1()).unwrap()).collect();
    for _ in 0..5 {
        let this = std::process::id() as libc::pid_t;
        // SAFETY: a signal that has a handler, to this process.
        assert_eq!(unsafe { libc::kill(this, libc::SIGUSR1) }, 0);
        for listener in &mut listeners {
            bounded(listener.recv()).await.unwrap();
        }
    }
}

pub async fn processes(mut c: Context) {
    assert!(bounded(Command::new("true").status()).await.unwrap().success());
    let bytes = vec![5; 1 + c.below(100_000) as usize];
    let mut cat = Command::new("cat");
    let mut child = cat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let copy = bytes.clone();
    let writer = volt::spawn(async move { stdin.write_all(&copy).await });
    let mut output = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut output).await.unwrap();
    assert!(output == bytes, "what went in comes out");
    writer.await.unwrap().unwrap();
    assert!(child.wait().await.unwrap().success());
    // One that nobody waits for, and that ends later.
    let mut orphan = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let stdin = orphan.stdin.take();
    drop(orphan);
    drop(stdin);
    let mut child = Command::new("sleep").arg("1000").kill_on_drop(true).spawn().unwrap();
    if c.below(2) == 0 {
        bounded(child.kill()).await.unwrap();
    }
}

/// Runs this test again, in a process of its own that may run out of things.
pub fn faults(_: Context) {
    // The sanitizers need descriptors and threads, too.
    if sanitized() {
        return;
    }
    for fault in ["descriptors", "threads"] {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "soak", "--nocapture"])
            .env("VOLT_SOAK_FAULT", fault)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "no {fault}: {}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

pub fn fault(name: &str) {
    match name {
        "descriptors" => no_descriptors(),
        "threads" => no_threads(),
        _ => panic!("no such fault: {name}"),
    }
}

fn no_descriptors() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(bounded(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for _ in 0..20 {
            let clients: Vec<_> =
                futures::future::join_all((0..5).map(|_| TcpStream::connect(address))).await;
            limit(libc::RLIMIT_NOFILE, 0);
            let error = listener.accept().await.unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
            assert!(TcpStream::connect(address).await.is_err());
            assert!(Builder::new_multi_thread().enable_all().build().is_err());
            assert!(Command::new("true").stdout(Stdio::piped()).spawn().is_err());
            let task = volt::spawn(async { sleep(Duration::from_millis(1)).await });
            task.await.unwrap();
            limit(libc::RLIMIT_NOFILE, 1000);
            for _ in &clients {
                listener.accept().await.unwrap();
            }
        }
    }));
}

fn no_threads() {
    // The limit does not hold for root.
    // SAFETY: no memory is involved.
    let root = unsafe { libc::geteuid() } == 0;
    // A user of its own: the limit counts all that a user runs.
    let user = 100_000 + std::process::id();
    // SAFETY: no memory is involved.
    if root && unsafe { libc::setresuid(user, user, user) } != 0 {
        println!("soak: threads are not limited: {}", io::Error::last_os_error());
        return;
    }
    let before = threads_of_linux();
    for more in 0..4 {
        // How many of the others' processes count, if this is not a user of its own, is unknown.
        limit(libc::RLIMIT_NPROC, if root { (before + more) as u64 } else { 0 });
        let built = Builder::new_multi_thread().worker_threads(4).enable_all().build();
        assert!(built.is_err(), "4 threads where {more} may start");
        while threads_of_linux() > before {
            std::thread::sleep(Duration::from_millis(1));
        }
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(bounded(async {
            volt::spawn(sleep(Duration::from_millis(1))).await.unwrap();
            if more == 0 {
                assert!(std::panic::catch_unwind(|| spawn_blocking(|| ())).is_err());
            } else if root {
                // Fewer threads than closures: those that there are do all.
                let tasks: Vec<_> = (0..20).map(|number| spawn_blocking(move || number)).collect();
                for (number, task) in tasks.into_iter().enumerate() {
                    assert_eq!(task.await.unwrap(), number);
                }
            }
        }));
        drop(runtime);
        while threads_of_linux() > before {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
