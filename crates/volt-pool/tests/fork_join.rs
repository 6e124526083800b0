//! `join` and calls between pools, through the public API. (Scopes: `scopes.rs`.)
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use plain threads and clocks"
)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};

use std::time::{Duration, Instant};
use volt_sync::internal::primitive::Mutex;

use proptest::prelude::*;
use volt_pool::{Builder, ThreadPool, join, scope};

#[path = "support/in_time.rs"]
mod in_time;
use in_time::in_time;

fn add(to: &AtomicUsize, count: usize) {
    to.fetch_add(count, SeqCst);
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

#[test]
fn join_computes_with_any_number_of_threads() {
    for threads in [1, 2, 3, 8] {
        let pool = ThreadPool::with_threads(threads);
        assert_eq!(pool.install(|| fib(24)), 46_368);
    }
    assert_eq!(fib(20), 6765);
}

/// `join` promises no parallelism, but with an idle thread it is the rule.
#[test]
fn an_idle_thread_takes_the_second_side() {
    let pool = ThreadPool::with_threads(2);
    let mut together = 0;
    for _ in 0..20 {
        let (a, b) = (AtomicBool::new(false), AtomicBool::new(false));
        let meet = |mine: &AtomicBool, other: &AtomicBool| {
            mine.store(true, SeqCst);
            let deadline = Instant::now() + Duration::from_millis(500);
            while !other.load(SeqCst) && Instant::now() < deadline {
                std::thread::yield_now();
            }
            other.load(SeqCst)
        };
        together += usize::from(pool.join(|| meet(&a, &b), || meet(&b, &a)) == (true, true));
    }
    assert!(together >= 10, "{together} of 20");
}

#[test]
fn a_panic_goes_on_after_both_sides_have_ended() {
    let pool = ThreadPool::with_threads(2);
    for (a, b) in [(true, false), (false, true), (true, true)] {
        for stolen in [false, true] {
            let ended = AtomicUsize::new(0);
            let started = AtomicBool::new(!stolen);
            let side = |panics: bool, name: &'static str, first: bool| {
                struct End<'a>(&'a AtomicUsize);
                impl Drop for End<'_> {
                    fn drop(&mut self) {
                        self.0.fetch_add(1, SeqCst);
                    }
                }
                let _end = End(&ended);
                if first {
                    let deadline = Instant::now() + Duration::from_millis(500);
                    while !started.load(SeqCst) && Instant::now() < deadline {
                        std::thread::yield_now();
                    }
                } else {
                    started.store(true, SeqCst);
                    std::thread::sleep(Duration::from_millis(5));
                }
                if panics {
                    resume_unwind(Box::new(name));
                }
            };
            let result = catch_unwind(AssertUnwindSafe(|| {
                pool.join(|| side(a, "a", true), || side(b, "b", false))
            }));
            let name = *result.unwrap_err().downcast_ref::<&str>().unwrap();
            assert_eq!(name, if a { "a" } else { "b" });
            let begun = started.load(SeqCst) && stolen;
            let expected = if a && !begun { 1..=2 } else { 2..=2 };
            assert!(expected.contains(&ended.load(SeqCst)), "{a} {b} {stolen}");
        }
    }
    assert_eq!(pool.install(|| fib(10)), 55, "the pool survives");
}

/// Counts itself, and waits until there are `count`. False if they have not come in time.
fn meets(begun: &AtomicUsize, count: usize) -> bool {
    add(begun, 1);
    let deadline = Instant::now() + Duration::from_millis(500);
    while begun.load(SeqCst) < count && Instant::now() < deadline {
        std::thread::sleep(Duration::from_micros(100));
    }
    Instant::now() < deadline
}

/// Eight leaves in three levels of forks: the thread that forks goes on to a long leaf with three
/// forks open, and each of them has to find one of the sleeping threads.
#[test]
fn every_open_fork_finds_an_idle_thread() {
    let pool = ThreadPool::with_threads(8);
    pool.broadcast(|_| ());
    let mut together = 0;
    for _ in 0..20 {
        // All are asleep.
        std::thread::sleep(Duration::from_millis(5));
        let begun = AtomicUsize::new(0);
        let leaf = || meets(&begun, 8);
        let two = || join(leaf, leaf) == (true, true);
        let four = || join(two, two) == (true, true);
        together += usize::from(pool.install(|| join(four, four)) == (true, true));
    }
    assert!(together >= 10, "{together} of 20");
}

/// The same of threads that are still to be started: one is for the first fork, and the next one follows at once.
#[test]
fn every_open_fork_finds_a_thread_of_a_new_pool() {
    let mut together = 0;
    for _ in 0..20 {
        let pool = ThreadPool::with_threads(2);
        let begun = AtomicUsize::new(0);
        let leaf = || meets(&begun, 3);
        let two = || join(leaf, leaf) == (true, true);
        together += usize::from(pool.enter(|| join(two, leaf)) == (true, true));
    }
    assert!(together >= 10, "{together} of 20");
}

/// While the panic of the first half waits for the second one, the same thread helps: what it runs
/// then has no part in the panic, and must not find itself unwinding (a mutex would be poisoned).
#[test]
fn what_a_thread_helps_with_after_a_panic_is_not_panicking() {
    let pool = ThreadPool::with_threads(2);
    let (begun, helped) = (AtomicBool::new(false), AtomicBool::new(false));
    let seen = Mutex::new(Vec::new());
    let deadline = Instant::now() + Duration::from_secs(60);
    let wait_for = |flag: &AtomicBool| {
        while !flag.load(SeqCst) {
            assert!(Instant::now() < deadline, "nobody helps");
            // Forks again and again, so that the one below is offered when somebody asks.
            join(std::thread::yield_now, || ());
        }
    };
    let result = catch_unwind(AssertUnwindSafe(|| {
        pool.install(|| {
            let owner = std::thread::current().id();
            join(
                || {
                    while !begun.load(SeqCst) {
                        std::thread::yield_now();
                    }
                    resume_unwind(Box::new("first"));
                },
                || {
                    begun.store(true, SeqCst);
                    join(
                        || wait_for(&helped),
                        || {
                            let here = std::thread::current().id() == owner;
                            seen.lock().unwrap().push((here, std::thread::panicking()));
                            helped.store(true, SeqCst);
                        },
                    );
                },
            );
        });
    }));
    assert_eq!(*result.unwrap_err().downcast_ref::<&str>().unwrap(), "first");
    assert_eq!(*seen.lock().unwrap(), [(true, false)], "on the thread that waits, not panicking");
}

/// rayon's known deadlock: a thread that waits in `join` runs an unrelated task, which wants the
/// lock that its own stack holds.
#[test]
fn a_lock_held_across_join_is_not_wanted_on_the_same_stack() {
    let pool = ThreadPool::with_threads(2);
    let lock = Arc::new(Mutex::new(0_u64));
    let (done, all) = mpsc::channel();
    let tasks = 300;
    for _ in 0..tasks {
        let (lock, done) = (lock.clone(), done.clone());
        pool.spawn(move || {
            let mut total = lock.lock().unwrap();
            let (a, b) = join(|| fib(12), || fib(13));
            scope(|s| s.spawn(|_| assert_eq!(fib(8), 21)));
            *total += a + b;
            drop(total);
            done.send(()).unwrap();
        });
    }
    for _ in 0..tasks {
        all.recv_timeout(Duration::from_secs(60)).expect("a task waits for its own stack's lock");
    }
    assert_eq!(*lock.lock().unwrap(), tasks * (144 + 233));
}

/// The same with the tasks of one scope, which are related through it, but not to each other.
#[test]
fn siblings_are_not_descendants() {
    let pool = ThreadPool::with_threads(3);
    let lock = Mutex::new(0_u64);
    pool.scope(|s| {
        for _ in 0..200 {
            s.spawn(|_| {
                let mut total = lock.lock().unwrap();
                let (a, b) = join(|| fib(12), || fib(12));
                *total += a + b;
            });
        }
    });
    assert_eq!(*lock.lock().unwrap(), 200 * 288);
}

/// Pools of one thread each that call into each other: the call back runs on the thread that waits.
#[test]
fn pools_that_call_each_other_do_not_lock_up() {
    let (a, b) = (ThreadPool::with_threads(1), ThreadPool::with_threads(1));
    let deep =
        a.install(|| b.install(|| a.install(|| b.install(|| a.install(|| join(|| 1, || 2))))));
    assert_eq!(deep, (1, 2));
    for _ in 0..200 {
        let (x, y) = a.join(|| b.install(|| a.install(|| fib(5))), || b.install(|| fib(6)));
        assert_eq!((x, y), (5, 8));
    }
    let index = a.install(|| b.install(|| (a.current_thread_index(), b.current_thread_index())));
    assert_eq!(index, (None, Some(0)));
}

/// Also where the caller is a guest, in whatever it runs there.
#[test]
fn install_runs_on_a_thread_of_the_pool() {
    in_time(|| {
        let (pool, other) = (ThreadPool::with_threads(2), ThreadPool::with_threads(1));
        let installed = || pool.install(|| pool.current_thread_index()).is_some();
        let all = |many: &[bool]| many.iter().all(|one| *one);
        for _ in 0..50 {
            assert!(installed(), "from outside");
            assert!(pool.enter(installed));
            assert!(pool.enter(|| pool.enter(|| pool.scope(|_| installed()))));
            assert_eq!(pool.join(installed, installed), (true, true));
            let mut tasks = [false; 40];
            pool.scope(|s| tasks.iter_mut().for_each(|task| s.spawn(|_| *task = installed())));
            assert!(all(&tasks), "in tasks, of which the guest runs some");
            pool.in_place_scope(|s| {
                tasks.iter_mut().for_each(|task| s.spawn(|_| *task = installed()))
            });
            assert!(all(&tasks));
            // Called back by another pool, to the thread that waits for it.
            let here = || std::thread::current().id();
            let back = || pool.install(|| pool.install(here));
            assert_eq!(pool.enter(|| other.install(back)), here());
        }
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            pool.enter(|| pool.install(|| resume_unwind(Box::new("installed"))))
        }));
        assert_eq!(*panicked.unwrap_err().downcast_ref::<&str>().unwrap(), "installed");
        let here = std::thread::current().id();
        assert!(pool.enter(|| pool.enter(|| std::thread::current().id() == here)));
        pool.shutdown();
        assert!(pool.enter(|| pool.install(|| std::thread::current().id() == here)));
    });
}

#[test]
fn broadcast_reaches_every_thread_also_from_inside() {
    let pool = ThreadPool::with_threads(4);
    assert_eq!(pool.broadcast(|index| index), [0, 1, 2, 3]);
    let inside = pool.install(|| volt_pool::broadcast(|_| volt_pool::current_thread_index()));
    assert_eq!(inside, [Some(0), Some(1), Some(2), Some(3)]);
    // While a thread waits for what broadcasts.
    let (_, parts) = pool.join(|| (), || pool.broadcast(|index| index));
    assert_eq!(parts, [0, 1, 2, 3]);
    let result = catch_unwind(AssertUnwindSafe(|| {
        pool.broadcast(|index| assert_ne!(index, 2, "the third"));
    }));
    assert!(result.is_err());
    assert_eq!(pool.broadcast(|index| index), [0, 1, 2, 3]);
}

/// Each task's thread waits for a part of each of the others.
#[test]
fn tasks_that_broadcast_at_the_same_time_do_their_parts_of_each_other() {
    for threads in [2, 3] {
        in_time(move || {
            let pool = ThreadPool::with_threads(threads);
            let part = |index| {
                assert_eq!(volt_pool::current_thread_index(), Some(index));
                1
            };
            let broadcast = move || volt_pool::broadcast(part).len();
            for round in 0..50 {
                let met = Arc::new(Barrier::new(threads));
                let (send, lengths) = mpsc::channel();
                for number in 0..threads {
                    let (met, send) = (met.clone(), send.clone());
                    pool.spawn(move || {
                        met.wait();
                        send.send(if (round + number) % 2 == 0 {
                            (broadcast(), broadcast())
                        } else {
                            // The second one perhaps in another thread.
                            join(broadcast, broadcast)
                        })
                        .unwrap();
                    });
                }
                drop(send);
                assert_eq!(
                    lengths.into_iter().collect::<Vec<_>>(),
                    vec![(threads, threads); threads]
                );
            }
        });
    }
}

/// The threads that wait for the broadcasts are not those that have called them.
#[test]
fn broadcasts_of_thieves_get_the_parts_of_those_who_wait_for_them() {
    in_time(|| {
        let pool = ThreadPool::with_threads(4);
        for _ in 0..20 {
            let met = Barrier::new(2);
            let halves = || {
                let begun = AtomicBool::new(false);
                let deadline = Instant::now() + Duration::from_secs(5);
                join(
                    || {
                        while !begun.load(SeqCst) && Instant::now() < deadline {
                            std::thread::yield_now();
                        }
                    },
                    || {
                        begun.store(true, SeqCst);
                        met.wait();
                        volt_pool::broadcast(|index| index).len()
                    },
                )
            };
            let lengths = pool.install(|| join(halves, halves));
            assert_eq!((lengths.0.1, lengths.1.1), (4, 4));
        }
    });
}

#[test]
fn broadcasts_nest_in_the_same_and_in_other_pools() {
    in_time(|| {
        let (a, b) = (ThreadPool::with_threads(3), ThreadPool::with_threads(2));
        for _ in 0..20 {
            let nested = a.broadcast(|_| volt_pool::broadcast(|_| volt_pool::broadcast(|_| 1)));
            let count: i32 = nested.iter().flatten().flatten().sum();
            assert_eq!(count, 27);
            // From each of two pools into the other one.
            let met = Barrier::new(2);
            let from = |one: &ThreadPool, other: &ThreadPool| {
                one.install(|| {
                    met.wait();
                    other.broadcast(|index| index).len()
                })
            };
            let lengths = std::thread::scope(|s| {
                let other = s.spawn(|| from(&b, &a));
                (from(&a, &b), other.join().unwrap())
            });
            assert_eq!(lengths, (2, 3));
        }
        // The panic of a part goes to its own broadcast.
        let panicked = |fails: bool| {
            let broadcast = || volt_pool::broadcast(|_| assert!(!fails, "a part"));
            catch_unwind(AssertUnwindSafe(broadcast)).is_err()
        };
        for _ in 0..20 {
            assert_eq!(a.install(|| join(|| panicked(true), || panicked(false))), (true, false));
        }
    });
}

/// What a thread joins in while it waits may end long after the reason to do so: whoever waits for what is below that on the
/// stack does its parts of what that broadcasts. (Forks and broadcasts by chance; see `broadcast.rs`.)
#[test]
fn forks_and_broadcasts_go_on_top_of_one_another() {
    fn work(depth: u32, seed: u64) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let mut random = by_chance(seed);
        match random() % 8 {
            0..4 => {
                let (a, b) = (random(), random());
                join(|| work(depth, a), || work(depth, b));
            }
            4 => {
                let part = random();
                volt_pool::broadcast(|index| work(depth, part ^ (index as u64) << 32));
            }
            _ => work(depth, random()),
        }
    }
    fn by_chance(seed: u64) -> impl FnMut() -> u64 {
        let mut state = seed | 1;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        }
    }
    in_time(|| {
        let pool = ThreadPool::with_threads(3);
        std::thread::scope(|s| {
            for caller in 0..3 {
                let pool = &pool;
                s.spawn(move || {
                    for round in 0..2_000_u64 {
                        let seed = (caller + 3 * round).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                        pool.install(|| work(6, seed));
                    }
                });
            }
        });
    });
}

/// Calls from pool to pool and back, on top of broadcasts.
#[test]
fn broadcasts_come_back_through_another_pool() {
    in_time(|| {
        for threads in [1, 2] {
            let (a, b) = (ThreadPool::with_threads(threads), ThreadPool::with_threads(2));
            for round in 0..200 {
                let inner = || b.broadcast(|_| 1).len();
                let lengths = a.install(|| {
                    b.broadcast(|_| match round % 2 {
                        0 => a.install(inner),
                        _ => {
                            let mut length = 0;
                            a.in_place_scope(|s| s.spawn(|_| length = inner()));
                            length
                        }
                    })
                });
                assert_eq!(lengths, [2, 2]);
            }
        }
    });
}

/// Unrelated chains of calls, one in each direction.
#[test]
fn each_of_two_pools_broadcasts_by_way_of_the_other() {
    in_time(|| {
        let (a, b) = (ThreadPool::with_threads(2), ThreadPool::with_threads(2));
        let chain = |one: &ThreadPool, other: &ThreadPool| {
            for _ in 0..200 {
                let length = one.install(|| other.install(|| other.broadcast(|_| ()).len()));
                assert_eq!(length, 2);
            }
        };
        std::thread::scope(|s| {
            s.spawn(|| chain(&a, &b));
            s.spawn(|| chain(&b, &a));
        });
    });
}

/// A broadcast from outside waits until the thread is free: the task there may hold what it wants.
#[test]
fn a_broadcast_from_outside_wants_no_lock_of_a_task_that_broadcasts() {
    in_time(|| {
        let pool = ThreadPool::with_threads(2);
        let (lock, begun) = (Mutex::new(0), AtomicUsize::new(0));
        std::thread::scope(|s| {
            s.spawn(|| {
                pool.install(|| {
                    let mut count = lock.lock().unwrap();
                    let here = volt_pool::current_thread_index();
                    volt_pool::broadcast(|index| {
                        add(&begun, 1);
                        if Some(index) != here {
                            std::thread::sleep(Duration::from_millis(100));
                        }
                    });
                    *count += 1;
                });
            });
            while begun.load(SeqCst) < 2 {
                std::thread::yield_now();
            }
            pool.broadcast(|_| *lock.lock().unwrap() += 1);
        });
        assert_eq!(*lock.lock().unwrap(), 3);
    });
}

#[test]
fn eight_threads_on_few_processors_do_not_collapse() {
    let pool = ThreadPool::with_threads(8);
    for _ in 0..20 {
        assert_eq!(pool.install(|| fib(20)), 6765);
        let ran = AtomicUsize::new(0);
        pool.scope(|s| (0..1000).for_each(|_| s.spawn(|_| add(&ran, 1))));
        assert_eq!(ran.load(SeqCst), 1000);
    }
}

/// A shape of nested work.
#[derive(Clone, Debug)]
enum Work {
    Leaf(u32),
    Join(Box<Work>, Box<Work>),
    Scope(Vec<Work>),
    Panic,
}

fn work() -> impl Strategy<Value = Work> {
    let leaf = prop_oneof![9 => (0..1000_u32).prop_map(Work::Leaf), 1 => Just(Work::Panic)];
    leaf.prop_recursive(6, 64, 4, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Work::Join(a.into(), b.into())),
            prop::collection::vec(inner, 0..4).prop_map(Work::Scope),
        ]
    })
}

impl Work {
    /// The sum of the leaves, or `None` if something panics.
    fn expected(&self) -> Option<u64> {
        match self {
            Self::Leaf(value) => Some(u64::from(*value)),
            Self::Panic => None,
            Self::Join(a, b) => Some(a.expected()? + b.expected()?),
            Self::Scope(parts) => parts.iter().map(Self::expected).sum(),
        }
    }

    fn run(&self) -> u64 {
        match self {
            Self::Leaf(value) => u64::from(*value),
            Self::Panic => resume_unwind(Box::new(())),
            Self::Join(a, b) => {
                let (a, b) = join(|| a.run(), || b.run());
                a + b
            }
            Self::Scope(parts) => {
                let total = Mutex::new(0);
                scope(|s| {
                    for part in parts {
                        let total = &total;
                        s.spawn(move |_| {
                            let sum = part.run();
                            *total.lock().unwrap() += sum;
                        });
                    }
                });
                total.into_inner().unwrap()
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn nested_work_gives_the_sequential_result(work in work(), threads in 1..4_usize) {
        let pool = Builder::new().threads(threads).build().unwrap();
        for _ in 0..3 {
            let result = catch_unwind(AssertUnwindSafe(|| pool.install(|| work.run())));
            prop_assert_eq!(result.ok(), work.expected());
        }
    }
}
