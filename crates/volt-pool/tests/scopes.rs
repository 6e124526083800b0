//! Scopes, through the public API.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use plain threads and clocks"
)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use volt_pool::{Scope, ThreadPool, scope};

#[path = "support/in_time.rs"]
mod in_time;
use in_time::in_time;

fn add(to: &AtomicUsize, count: usize) {
    to.fetch_add(count, SeqCst);
}

#[test]
fn scopes_end_after_all_of_their_tasks_and_pass_a_panic_on() {
    let pool = ThreadPool::with_threads(2);
    let ran = AtomicUsize::new(0);
    fn tree<'s>(s: &Scope<'s>, depth: usize, ran: &'s AtomicUsize) {
        ran.fetch_add(1, SeqCst);
        if depth > 0 {
            s.spawn(move |s| tree(s, depth - 1, ran));
            s.spawn(move |s| tree(s, depth - 1, ran));
        }
    }
    pool.scope(|s| tree(s, 10, &ran));
    assert_eq!(ran.swap(0, SeqCst), 2047);
    pool.in_place_scope(|s| tree(s, 10, &ran));
    assert_eq!(ran.swap(0, SeqCst), 2047);
    let result = catch_unwind(AssertUnwindSafe(|| {
        pool.scope(|s| {
            for index in 0..100 {
                let ran = &ran;
                s.spawn(move |_| {
                    ran.fetch_add(1, SeqCst);
                    if index % 10 == 0 {
                        resume_unwind(Box::new("task"));
                    }
                });
            }
        });
    }));
    assert_eq!(*result.unwrap_err().downcast_ref::<&str>().unwrap(), "task");
    assert_eq!(ran.swap(0, SeqCst), 100, "all others have run");
    let result = catch_unwind(AssertUnwindSafe(|| {
        pool.scope(|s| {
            s.spawn(|_| add(&ran, 1));
            resume_unwind(Box::new("body"));
        })
    }));
    assert_eq!(*result.unwrap_err().downcast_ref::<&str>().unwrap(), "body");
    assert_eq!(ran.load(SeqCst), 1);
}

#[test]
fn a_long_task_holds_no_others_up() {
    let pool = ThreadPool::with_threads(2);
    let ran = AtomicUsize::new(0);
    pool.scope(|s| {
        for index in 0..64 {
            let ran = &ran;
            s.spawn(move |_| {
                if index == 5 {
                    // Whoever took others together with this one.
                    for _ in 0..2000 {
                        if ran.load(SeqCst) == 63 {
                            return;
                        }
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    panic!("{} of 63", ran.load(SeqCst));
                }
                ran.fetch_add(1, SeqCst);
            });
        }
    });
}

/// Each needs a thread of its own, while the owner is busy with the body.
#[test]
fn tasks_that_were_taken_together_with_a_long_one_get_threads() {
    in_time(|| {
        let pool = ThreadPool::with_threads(4);
        let (all, done) = (Barrier::new(3), Barrier::new(4));
        pool.scope(|s| {
            for _ in 0..3 {
                s.spawn(|_| {
                    all.wait();
                    done.wait();
                });
            }
            done.wait();
        });
    });
}

/// The same, of tasks that are spawned while the owner waits for the scope.
#[test]
fn an_owner_that_sleeps_is_one_of_the_threads() {
    in_time(|| {
        let pool = ThreadPool::with_threads(3);
        let all = Barrier::new(3);
        pool.scope(|s| {
            s.spawn(|s| {
                std::thread::sleep(Duration::from_millis(20));
                for _ in 0..3 {
                    s.spawn(|_| {
                        all.wait();
                    });
                }
            });
        });
    });
}

/// The only thread that sleeps in the pool is just woken for something else, which waits for the second task of the
/// scope, as the first one does: its owner has to come.
#[test]
fn a_thread_that_is_woken_for_something_else_does_not_count() {
    in_time(|| {
        let pool = ThreadPool::with_threads(2);
        pool.broadcast(|_| ());
        for _ in 0..10 {
            let [begun, all] = [2, 3].map(|count| Arc::new(Barrier::new(count)));
            pool.scope(|s| {
                s.spawn(|s| {
                    begun.wait();
                    std::thread::sleep(Duration::from_millis(10));
                    let other = all.clone();
                    pool.spawn(move || {
                        other.wait();
                    });
                    s.spawn(|_| {
                        all.wait();
                    });
                    all.wait();
                });
                // On a thread of the pool.
                begun.wait();
            });
        }
    });
}

#[test]
fn scopes_nest_in_the_same_and_in_other_pools() {
    let (a, b) = (ThreadPool::with_threads(2), ThreadPool::with_threads(2));
    let ran = AtomicUsize::new(0);
    a.scope(|s| {
        for _ in 0..10 {
            s.spawn(|_| {
                scope(|s| (0..10).for_each(|_| s.spawn(|_| add(&ran, 1))));
                b.scope(|s| (0..10).for_each(|_| s.spawn(|_| add(&ran, 1))));
                b.in_place_scope(|s| {
                    (0..10).for_each(|_| s.spawn(|_| add(&ran, 1)));
                });
                a.install(|| add(&ran, 1));
            });
        }
    });
    assert_eq!(ran.load(SeqCst), 310);
}

/// A scope that is opened in place from another pool: its owner is a thread of that one, and the only thread of its
/// own pool waits for the owner.
#[test]
fn a_scope_of_a_pool_that_waits_for_its_owner_ends() {
    for threads in [1, 2] {
        in_time(move || {
            let (a, b) = (ThreadPool::with_threads(threads), ThreadPool::with_threads(1));
            for _ in 0..100 {
                let ran = AtomicUsize::new(0);
                let scope = || {
                    a.in_place_scope(|s| {
                        for _ in 0..40 {
                            s.spawn(|s| {
                                assert!(a.current_thread_index().is_some());
                                s.spawn(|_| add(&ran, 1));
                            });
                        }
                        s.spawn(|s| {
                            // Back to the owner, which is in the middle of its wait.
                            b.install(|| s.spawn(|_| add(&ran, 1)));
                            b.in_place_scope(|s| s.spawn(|_| add(&ran, 1)));
                        });
                    });
                };
                a.install(|| b.install(scope));
                assert_eq!(ran.load(SeqCst), 42);
            }
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                a.install(|| {
                    b.install(|| a.in_place_scope(|s| s.spawn(|_| resume_unwind(Box::new("task")))))
                });
            }));
            assert_eq!(*panicked.unwrap_err().downcast_ref::<&str>().unwrap(), "task");
        });
    }
}
