//! A runtime with nothing to do makes no system call: neither this one with two workers nor the
//! current-thread one beside it.
//!
//! ```sh
//! cargo build -p volt-rt --example idle && strace -f target/debug/examples/idle
//! ```
//!
//! shows nothing more after `idle`, until ctrl-d ends it. With the argument `tick`, a task ticks every
//! 50 ms. `cargo xtask idle` looks at both.

use std::io::{self, Read};
use std::process::ExitCode;
use std::time::Duration;

use volt::io::AsyncReadExt;
use volt::net::{TcpListener, TcpStream};
use volt::runtime::Builder;
use volt::task::JoinSet;
use volt::time::sleep;

/// What a program has behind it when it waits: tasks that have ended, timers that have fired or were
/// cancelled, connections on which nothing comes.
async fn work() -> io::Result<()> {
    let mut tasks = JoinSet::new();
    for number in 0..100 {
        tasks.spawn(async move {
            let cancelled = volt::spawn(sleep(Duration::from_secs(3600)));
            sleep(Duration::from_micros(50 * number)).await;
            cancelled.abort();
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.expect("the task does not panic");
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let mut client = TcpStream::connect(listener.local_addr()?).await?;
    volt::spawn(async move {
        // The first connection, and then nobody: two tasks wait for their sockets.
        while let Ok((mut peer, _)) = listener.accept().await {
            volt::spawn(async move { peer.read_u8().await });
        }
    });
    volt::spawn(async move { client.read_u8().await });
    Ok(())
}

fn run(ticks: bool) -> io::Result<()> {
    let workers = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    workers.block_on(work())?;
    (0..100).for_each(|_| drop(workers.spawn(async {})));
    if ticks {
        workers.spawn(async {
            let mut interval = volt::time::interval(Duration::from_millis(50));
            loop {
                interval.tick().await;
            }
        });
    }
    let current = Builder::new_current_thread().enable_all().build()?;
    #[allow(clippy::disallowed_methods, reason = "a program of its own")]
    std::thread::spawn(move || {
        current.block_on(async {
            work().await.expect("the loopback device has sockets");
            std::future::pending::<()>().await;
        });
    });
    // Whoever looked after the others goes to sleep for good.
    std::thread::sleep(Duration::from_millis(500));
    println!("idle");
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ticks = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["tick"] => true,
        _ => {
            eprintln!("usage: idle [tick]");
            return ExitCode::from(2);
        }
    };
    match run(ticks) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("idle: {error}");
            ExitCode::FAILURE
        }
    }
}
