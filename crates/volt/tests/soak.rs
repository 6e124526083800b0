//! Mixed load with faults, and invariants that are checked throughout: nothing is lost, nothing runs
//! twice, nothing gets stuck, and memory, descriptors, threads and children go back to the start.
//!
//! | Variable | |
//! |---|---|
//! | `VOLT_SOAK_SECONDS` | how long; 2 if not set |
//! | `VOLT_SOAK_SEED` | repeats the choices of a run that printed it |
//! | `VOLT_SOAK_ONLY` | only the workloads whose names contain it |
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    unreachable_pub,
    reason = "a test"
)]

#[path = "support/limits.rs"]
mod limits;
#[path = "soak/messages.rs"]
mod messages;
#[path = "soak/panics.rs"]
mod panics;
#[path = "soak/sockets.rs"]
mod sockets;
#[path = "soak/support.rs"]
mod support;
#[path = "soak/system.rs"]
mod system;
#[path = "soak/tasks.rs"]
mod tasks;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use support::{Context, Holdings, Rng, Tally};
use volt::runtime::{Builder, Handle, Runtime, RuntimeFlavor};

enum Load {
    Task(fn(Context) -> Pin<Box<dyn Future<Output = ()> + Send>>),
    Thread(fn(Context)),
}

macro_rules! task {
    ($path:path) => {
        (stringify!($path), Load::Task(|context| Box::pin($path(context))))
    };
}

macro_rules! thread {
    ($path:path) => {
        (stringify!($path), Load::Thread($path))
    };
}

const LOADS: &[(&str, Load)] = &[
    task!(tasks::storm),
    thread!(tasks::outside),
    thread!(tasks::guests),
    task!(tasks::cancel),
    task!(panics::tasks),
    thread!(panics::threads),
    task!(tasks::join_sets),
    thread!(tasks::local_sets),
    task!(tasks::blocking),
    task!(tasks::pool),
    task!(messages::mpsc),
    task!(messages::mpmc),
    task!(messages::broadcast),
    task!(messages::watch_and_oneshot),
    task!(messages::locks),
    task!(messages::timers),
    task!(sockets::tcp),
    task!(sockets::unix),
    thread!(system::runtimes),
    task!(system::signals),
    task!(system::processes),
];

/// Once in each group: they start processes.
const RARE_LOADS: &[(&str, Load)] = &[thread!(system::faults)];

/// The longest that a round may take on a machine that does other things, too.
const BOUND: Duration = Duration::from_secs(90);

/// What the process may hold more after a group than before: the first uses of each thread-local
/// and table are over by then.
const SLACK: i64 = 4 * 1024;

/// How much more memory may be resident: what the allocator's arenas cannot give back.
const RESIDENT_KIB: u64 = 8 * 1024;

/// Starts a workload on a thread of its own; its end, with its tally, is told to `done`.
fn start(
    index: usize,
    load: &'static Load,
    context: Context,
    done: mpsc::Sender<(usize, thread::Result<()>)>,
) {
    thread::spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(|| match load {
            Load::Thread(run) => run(context),
            Load::Task(run) => {
                let handle = context.handle.clone();
                if let Err(error) = handle.spawn(run(context)).join() {
                    resume_unwind(error.into_panic());
                }
            }
        }));
        let _ = done.send((index, result));
    });
}

/// Fails the test for a reason that the runtime's figures may explain.
fn fail(handle: &Handle, seed: u64, reason: &str) -> ! {
    println!("soak: FAILED with VOLT_SOAK_SEED={seed}: {reason}\n{:#?}", handle.metrics());
    panic!("{reason}");
}

/// Runs the workloads beside each other, and waits for their ends and until their tallies balance.
fn round(handle: &Handle, seed: u64, rng: &mut Rng, loads: &[&'static (&'static str, Load)]) {
    let (done, ends) = mpsc::channel();
    let begin = Instant::now();
    let tallies: Vec<_> = loads.iter().map(|_| Arc::new(Tally::default())).collect();
    for (index, (_, load)) in loads.iter().enumerate() {
        let (handle, tally) = (handle.clone(), tallies[index].clone());
        start(index, load, Context { rng: rng.fork(), tally, handle }, done.clone());
    }
    let mut running = vec![true; loads.len()];
    while running.contains(&true) {
        match ends.recv_timeout(BOUND.saturating_sub(begin.elapsed())) {
            Ok((index, Ok(()))) => running[index] = false,
            Ok((index, Err(payload))) => {
                let text = payload
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string))
                    .unwrap_or_else(|| "a planned panic that got out".to_owned());
                fail(handle, seed, &format!("{}: {text}", loads[index].0));
            }
            Err(_) => {
                let stuck = running.iter().zip(loads).filter(|(running, _)| **running);
                let names: Vec<_> = stuck.map(|(_, (name, _))| *name).collect();
                fail(handle, seed, &format!("stuck for {BOUND:?}: {}", names.join(", ")));
            }
        }
    }
    let settle = Instant::now();
    for ((name, _), tally) in loads.iter().zip(tallies) {
        while !tally.balances() {
            if settle.elapsed() > Duration::from_secs(20) {
                fail(handle, seed, &format!("{name}: {}", tally.report()));
            }
            thread::sleep(Duration::from_micros(100));
        }
    }
    while handle.metrics().num_alive_tasks() > 0 {
        if settle.elapsed() > Duration::from_secs(20) {
            fail(handle, seed, "tasks are alive after the round");
        }
        thread::sleep(Duration::from_micros(100));
    }
}

/// With any number of workers, or none; in the second group of a run of the other flavour than in the first.
fn runtime(rng: &mut Rng, first: Option<RuntimeFlavor>) -> (Runtime, String) {
    let several = [1, 2, 4, 8][rng.below(4) as usize];
    let workers = match first {
        Some(RuntimeFlavor::CurrentThread) => several,
        Some(_) => 0,
        None if rng.below(5) == 0 => 0,
        None => several,
    };
    let mut builder = match workers {
        0 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    let builder = builder.worker_threads(workers.max(1)).max_blocking_threads(8);
    let runtime = builder.thread_keep_alive(Duration::from_millis(5)).enable_all().build().unwrap();
    let name = match workers {
        0 => "current-thread".to_owned(),
        _ => format!("{workers} workers"),
    };
    (runtime, name)
}

/// Some rounds on one runtime, of which nothing is left. Returns the rounds, the tasks, and its description.
fn group(
    seed: u64,
    rng: &mut Rng,
    end: Instant,
    (runtime, name): (Runtime, String),
) -> (u64, u64, String) {
    let handle = runtime.handle().clone();
    let current = handle.runtime_flavor() == RuntimeFlavor::CurrentThread;
    let (stop, stopped) = volt::sync::oneshot::channel::<()>();
    // Somebody has to run a current-thread runtime.
    let runner = current.then(|| {
        let handle = handle.clone();
        thread::spawn(move || handle.block_on(stopped).unwrap())
    });
    let only = std::env::var("VOLT_SOAK_ONLY").unwrap_or_default();
    let wanted = |load: &&(&str, Load)| load.0.contains(&only);
    let mut rounds = 0;
    while rounds == 0 || (rounds < 8 && Instant::now() < end) {
        let mut loads: Vec<_> = LOADS.iter().filter(wanted).collect();
        if rounds == 0 {
            loads.extend(RARE_LOADS.iter().filter(wanted));
        }
        round(&handle, seed, rng, &loads);
        rounds += 1;
    }
    let spawned = handle.metrics().spawned_tasks_count();
    if let Some(runner) = runner {
        stop.send(()).unwrap();
        runner.join().unwrap();
    }
    drop((handle, runtime));
    (rounds, spawned, name)
}

#[test]
fn soak() {
    if let Ok(fault) = std::env::var("VOLT_SOAK_FAULT") {
        return system::fault(&fault);
    }
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seconds = number("VOLT_SOAK_SECONDS").unwrap_or(2);
    let seed = number("VOLT_SOAK_SEED").unwrap_or_else(|| {
        use std::hash::{BuildHasher, Hasher};
        std::hash::RandomState::new().build_hasher().finish()
    });
    println!("soak: {seconds} s, VOLT_SOAK_SEED={seed}");
    let begin = Instant::now();
    let end = begin + Duration::from_secs(seconds);
    let mut rng = Rng::new(seed);
    let (mut groups, mut rounds, mut spawned) = (0, 0, 0);
    let mut start: Option<Holdings> = None;
    let mut first = None;
    while groups < 2 || Instant::now() < end {
        let built = runtime(&mut rng, first.filter(|_| groups == 1));
        first = first.or(Some(built.0.handle().runtime_flavor()));
        // Half of a short run for each flavour.
        let end = if groups == 0 { begin + (end - begin) / 2 } else { end };
        let (more, tasks, name) = group(seed, &mut rng, end, built);
        (groups, rounds, spawned) = (groups + 1, rounds + more, spawned + tasks);
        let holdings = match &start {
            // The first group's leftovers are the start: what is made once in a process.
            None => {
                thread::sleep(Duration::from_millis(200));
                *start.insert(Holdings::now().trimmed())
            }
            Some(start) => match Holdings::settle(start, SLACK) {
                Ok(holdings) => holdings,
                Err(holdings) => {
                    let files = support::open_files();
                    panic!(
                        "VOLT_SOAK_SEED={seed}: {start:?} at the start, now {holdings:?}, {files:?}"
                    )
                }
            },
        };
        println!(
            "soak: {:>4} s, group {groups}, {name}: {more} rounds, {tasks} tasks; then {} bytes, \
             {} descriptors, {} threads, {} KiB resident",
            begin.elapsed().as_secs(),
            holdings.bytes,
            holdings.descriptors,
            holdings.threads,
            holdings.resident_kib
        );
        let grown = holdings.resident_kib.saturating_sub(start.unwrap().resident_kib);
        assert!(
            grown < RESIDENT_KIB || support::sanitized(),
            "VOLT_SOAK_SEED={seed}: {grown} KiB more are resident"
        );
    }
    println!(
        "soak: clean: {groups} groups, {rounds} rounds, {spawned} tasks in {} s",
        begin.elapsed().as_secs()
    );
}
