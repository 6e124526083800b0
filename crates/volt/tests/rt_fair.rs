//! In what order tasks run that sockets make runnable, on one thread. Counted in polls and answers, so that a busy
//! machine makes little difference.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a test")]

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use volt::io::{AsyncReadExt as _, AsyncWriteExt as _};
use volt::net::UnixStream;
use volt::runtime::{Builder, Runtime};

fn current() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// For what needs both processors, which other tests may have for some seconds.
const TRIES: usize = 60;

/// True if there may be no processor for one thread more on this machine.
#[cfg(target_os = "linux")]
fn is_busy() -> bool {
    let processors = std::thread::available_parallelism().unwrap().get();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    let running = load.split([' ', '/']).nth(3).expect("the running threads of all");
    running.parse::<usize>().unwrap() >= processors
}

fn is_sanitized() -> bool {
    std::env::var_os("ASAN_OPTIONS").or(std::env::var_os("TSAN_OPTIONS")).is_some()
}

fn compute(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Answers each message of `stream`, and computes before that.
async fn answer(mut stream: UnixStream, computes: Duration, answered: Arc<AtomicUsize>) {
    let mut message = [0; 64];
    while stream.read_exact(&mut message).await.is_ok() {
        compute(computes);
        answered.fetch_add(1, Relaxed);
        stream.write_all(&message).await.unwrap();
    }
}

async fn ask(stream: &mut UnixStream) {
    let mut message = [7; 64];
    stream.write_all(&message).await.unwrap();
    stream.read_exact(&mut message).await.unwrap();
}

/// A message and its answer take two looks at the driver, so two polls of a task that always yields: whether that is
/// known from the start, or was quick at first.
#[test]
fn a_socket_waits_for_one_poll_of_a_task_that_yields() {
    const ROUNDS: usize = 50;
    for (time, quick_at_first) in [(100, false), (100, true), (600, false), (600, true)] {
        let polls = current().block_on(async {
            let polls = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&polls);
            let busy = volt::spawn(async move {
                if quick_at_first {
                    volt::task::yield_now().await;
                }
                loop {
                    compute(Duration::from_micros(time));
                    counted.fetch_add(1, Relaxed);
                    volt::task::yield_now().await;
                }
            });
            let mut clients = Vec::new();
            for _ in 0..4 {
                let (ours, theirs) = UnixStream::pair().unwrap();
                volt::spawn(answer(theirs, Duration::ZERO, Arc::default()));
                clients.push(ours);
            }
            ask(&mut clients[0]).await;
            let before = polls.load(Relaxed);
            let asked = clients.into_iter().map(|mut client| {
                volt::spawn(async move {
                    for _ in 0..ROUNDS {
                        ask(&mut client).await;
                    }
                })
            });
            for asked in asked.collect::<Vec<_>>() {
                asked.await.unwrap();
            }
            busy.abort();
            polls.load(Relaxed) - before
        });
        assert!(polls <= 3 * ROUNDS, "{time} {quick_at_first}: {polls}");
    }
}

/// How many answers others have had, at most, while somebody waited for one.
fn longest_wait(connections: usize, rounds: usize, computes: Duration) -> usize {
    current().block_on(async {
        let answered = Arc::new(AtomicUsize::new(0));
        let barrier = Arc::new(volt::sync::Barrier::new(connections));
        let mut clients = Vec::new();
        for _ in 0..connections {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            volt::spawn(answer(theirs, computes, Arc::clone(&answered)));
            let (answered, barrier) = (Arc::clone(&answered), Arc::clone(&barrier));
            clients.push(volt::spawn(async move {
                barrier.wait().await;
                let mut longest = 0;
                for _ in 0..rounds {
                    let before = answered.load(Relaxed);
                    ask(&mut ours).await;
                    longest = longest.max(answered.load(Relaxed) - before);
                }
                longest
            }));
        }
        let mut longest = 0;
        for client in clients {
            longest = longest.max(client.await.unwrap());
        }
        longest
    })
}

/// The thread goes from blocking call to blocking call, and does not wait in the driver meanwhile.
#[test]
fn a_thread_that_waits_for_blocking_calls_looks_at_timers() {
    if is_sanitized() {
        return; // All is slow.
    }
    let runtime = current();
    let late = || {
        let mut late = runtime.block_on(async {
            let sleeper = volt::spawn(async {
                let mut late = Vec::new();
                for _ in 0..100 {
                    let start = Instant::now();
                    volt::time::sleep(Duration::from_millis(1)).await;
                    late.push(start.elapsed().saturating_sub(Duration::from_millis(1)));
                }
                late
            });
            while !sleeper.is_finished() {
                let call = || compute(Duration::from_micros(20));
                volt::task::spawn_blocking(call).await.unwrap();
            }
            sleeper.await.unwrap()
        });
        late.sort_unstable();
        std::thread::sleep(Duration::from_millis(100));
        late[late.len() / 2]
    };
    // A processor that others want is given away.
    let late: Vec<_> =
        (0..TRIES).map(|_| late()).take_while(|&late| late > Duration::from_millis(1)).collect();
    assert!(late.len() < TRIES, "{late:?}");
}

/// Far more tasks than a ring has places. Two connections for each that the others may have had an answer twice.
#[test]
fn connections_have_their_answers_in_turn() {
    const CONNECTIONS: usize = 300;
    for (rounds, computes) in [(6, Duration::from_micros(300)), (60, Duration::ZERO)] {
        let longest = longest_wait(CONNECTIONS, rounds, computes);
        assert!(longest < 5 * CONNECTIONS / 2, "{computes:?}: {longest}");
    }
}

/// What others wake soon does not go to sleep for it.
#[cfg(target_os = "linux")]
#[test]
fn a_thread_that_waits_for_blocking_calls_hardly_sleeps() {
    const CALLS: i64 = 2_000;
    fn switches() -> i64 {
        // SAFETY: zeros are a value of it.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is ours.
        assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) }, 0);
        usage.ru_nvcsw
    }
    if is_sanitized() {
        return; // All is slow.
    }
    let runtime = current();
    // A processor that others want is given away: a machine that is busy all the time shows nothing.
    let mut quiet = Vec::new();
    for _ in 0..TRIES {
        let (was_busy, before) = (is_busy(), switches());
        runtime.block_on(async {
            for i in 0..CALLS {
                let this = Rc::new(i);
                let call = move || {
                    compute(Duration::from_micros(10));
                    i + 1
                };
                assert_eq!(volt::task::spawn_blocking(call).await.unwrap(), *this + 1);
            }
        });
        let slept = switches() - before;
        if slept <= CALLS / 2 {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
        if !was_busy && !is_busy() {
            quiet.push(slept);
        }
    }
    assert!(quiet.len() < TRIES / 6, "{quiet:?}");
}
