//! The real worker, with real tasks, on loom's threads. A lost wake-up is a deadlock to loom.

use std::future::{Future, poll_fn};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::task::{Poll, Waker};

use volt_sync::internal::primitive::{
    Arc, AtomicUsize, Mutex, explore, explore_preempted, fence, thread,
};

use crate::runtime::be_worker;
use crate::runtime::config::Config;
use crate::runtime::context;
use crate::runtime::driver::Driver;
use crate::runtime::outside;
use crate::runtime::scheduler::guests::{guest, helping};
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::worker::Worker;
use crate::task::{Header, JoinHandle};
use crate::time::Clock;

/// Counts its drops.
struct Count(Arc<AtomicUsize>);

impl Drop for Count {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn config() -> Config {
    Config { seed: 1, ..Config::default() }
}

fn scheduler(workers: usize) -> Arc<Shared> {
    scheduler_with(config(), workers)
}

fn scheduler_with(config: Config, workers: usize) -> Arc<Shared> {
    let (driver, handle) = Driver::new(workers, Clock::real()).unwrap();
    Shared::new(config, workers, driver, handle)
}

type Started = (Arc<Shared>, Vec<thread::JoinHandle<()>>);

/// Starts the worker threads.
fn start(shared: &Arc<Shared>) -> Vec<thread::JoinHandle<()>> {
    (0..shared.workers)
        .map(|index| {
            let shared = shared.clone();
            thread::spawn(move || be_worker(&shared, index))
        })
        .collect()
}

/// The only worker sleeps. Its way there is not part of the model: nobody else runs meanwhile.
fn start_asleep(config: Config) -> Started {
    let parks = std::sync::Arc::new(loom::sync::Notify::new());
    let theirs = parks.clone();
    let hook = move || theirs.notify();
    let config = Config { on_thread_park: Some(std::sync::Arc::new(hook)), ..config };
    let shared = scheduler_with(config, 1);
    let threads = start(&shared);
    parks.wait();
    (shared, threads)
}

/// The only worker goes to sleep.
fn start_one(config: Config) -> Started {
    let shared = scheduler_with(config, 1);
    let threads = start(&shared);
    (shared, threads)
}

fn stop(shared: &Shared, threads: Vec<thread::JoinHandle<()>>) {
    shared.begin_shutdown();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Where the end is not part of the model.
fn stop_quietly(shared: &Shared, threads: Vec<thread::JoinHandle<()>>) {
    loom::stop_exploring();
    stop(shared, threads);
}

/// Two workers and a thread outside: what it spawns runs, and a shutdown ends everything. (Also the
/// regression for a shutdown whose only ticket was used for a worker that was just parking, so that
/// the other one slept on.)
#[test]
fn outside_spawn_against_parking() {
    explore_preempted(1, || {
        let shared = scheduler(2);
        let threads = start(&shared);
        let task = shared.spawn(async { 1 });
        assert_eq!(volt_sync::internal::block_on(task).unwrap(), 1);
        stop(&shared, threads);
    });
}

/// One worker; a task waits for a thread that is no member.
#[test]
fn outside_wake_against_parking() {
    explore(|| {
        let shared = scheduler(1);
        let threads = start(&shared);
        let state = Arc::new((AtomicUsize::new(0), Mutex::new(None::<Waker>)));
        let theirs = state.clone();
        let task = shared.spawn(poll_fn(move |cx| {
            *theirs.1.lock().unwrap() = Some(cx.waker().clone());
            if theirs.0.load(SeqCst) == 1 { Poll::Ready(()) } else { Poll::Pending }
        }));
        state.0.store(1, SeqCst);
        let waker = state.1.lock().unwrap().take();
        if let Some(waker) = waker {
            waker.wake();
        }
        volt_sync::internal::block_on(task).unwrap();
        stop(&shared, threads);
    });
}

/// Shutdown against a spawn: the task runs or is cancelled, and is dropped once in any case.
#[test]
fn shutdown_against_spawn() {
    explore(|| {
        let shared = scheduler(1);
        let threads = start(&shared);
        let drops = Arc::new(AtomicUsize::new(0));
        let spawner = thread::spawn({
            let (shared, count) = (shared.clone(), Count(drops.clone()));
            move || {
                drop(shared.spawn(async move {
                    let _count = count;
                    std::future::pending::<()>().await;
                }));
            }
        });
        stop(&shared, threads);
        spawner.join().unwrap();
        drop(shared);
        assert_eq!(drops.load(Relaxed), 1);
    });
}

/// A thread that is no member wakes a task while the runtime ends and its memory goes.
#[test]
fn shutdown_against_remote_wake() {
    explore(|| {
        let shared = scheduler(1);
        let threads = start(&shared);
        let waker = Arc::new(Mutex::new(None::<Waker>));
        let theirs = waker.clone();
        drop(shared.spawn(poll_fn(move |cx| {
            *theirs.lock().unwrap() = Some(cx.waker().clone());
            Poll::<()>::Pending
        })));
        let outside = thread::spawn(move || {
            let waker = waker.lock().unwrap().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        });
        stop(&shared, threads);
        drop(shared);
        outside.join().unwrap();
    });
}

/// A guest spawns, awaits, and leaves while the worker looks for work.
#[test]
fn guest_leaves_while_others_push() {
    explore_preempted(1, || {
        let shared = scheduler(1);
        let threads = start(&shared);
        let outside = thread::spawn({
            let shared = shared.clone();
            move || shared.spawn(async { 2 })
        });
        let one = guest::block_on(&shared, async { crate::spawn(async { 1 }).await.unwrap() });
        let two = outside.join().unwrap();
        assert_eq!(one + volt_sync::internal::block_on(two).unwrap(), 3);
        stop_quietly(&shared, threads);
    });
}

/// The thread in `block_on` is the only member: it waits in the driver, and is woken there to run
/// what a thread outside spawned.
#[test]
fn current_thread_is_woken_in_the_driver() {
    explore(|| {
        let shared = scheduler(0);
        let state = Arc::new((AtomicUsize::new(0), Mutex::new(None::<Waker>)));
        let outside = thread::spawn({
            let (shared, state) = (shared.clone(), state.clone());
            move || {
                drop(shared.spawn(async move {
                    state.0.store(1, SeqCst);
                    let waker = state.1.lock().unwrap().take();
                    if let Some(waker) = waker {
                        waker.wake();
                    }
                }));
            }
        });
        guest::block_on(
            &shared,
            poll_fn(|cx| {
                *state.1.lock().unwrap() = Some(cx.waker().clone());
                if state.0.load(SeqCst) == 1 { Poll::Ready(()) } else { Poll::Pending }
            }),
        );
        outside.join().unwrap();
        shared.begin_shutdown();
        shared.shut_down_current_thread(None);
    });
}

/// A task joins another one by helping, while a second worker may take it first.
#[test]
fn join_helping() {
    explore_preempted(1, || {
        let shared = scheduler(2);
        let threads = start(&shared);
        let task = shared.spawn(async {
            let inner = crate::spawn(async { 1 });
            helping::block_on_helping(inner).unwrap() + 1
        });
        assert_eq!(volt_sync::internal::block_on(task).unwrap(), 2);
        stop_quietly(&shared, threads);
    });
}

/// The thread in `block_on` computes after it has sent its batch behind its ring, and so leaves that
/// to the worker, which parks meanwhile.
#[test]
fn a_batch_that_goes_back_against_parking() {
    explore_preempted(2, || {
        let shared = scheduler(1);
        let threads = start(&shared);
        guest::block_on(&shared, async {
            let task = crate::spawn(async {});
            context::current_member(|member| {
                let member = member.unwrap();
                if let Some(task) = member.slot.lifo.take() {
                    // SAFETY: this member owns the ring, and there is room.
                    unsafe { member.slot.batch.push_quiet(task) };
                    fence(SeqCst);
                    member.shared.notify();
                }
                member.send_batch_back();
            });
            volt_sync::internal::block_on(task).unwrap();
        });
        stop(&shared, threads);
    });
}

/// The runtime ends while its only worker joins a task that waits for ever: the join drops it, or it was
/// dropped before.
#[test]
fn join_helping_against_shutdown() {
    explore(|| {
        let shared = scheduler(1);
        let threads = start(&shared);
        let drops = Arc::new(AtomicUsize::new(0));
        let counts = [Count(drops.clone()), Count(drops.clone())];
        drop(shared.spawn(async move {
            let [outer, inner] = counts;
            let joined = crate::spawn(async move {
                let _inner = inner;
                std::future::pending::<()>().await;
            });
            assert!(helping::block_on_helping(joined).unwrap_err().is_cancelled());
            drop(outer);
        }));
        stop(&shared, threads);
        assert_eq!(shared.alive_tasks(), 0);
        assert_eq!(drops.load(Relaxed), 2);
    });
}

/// A guest in the driver, woken from outside, gives the driver to the worker while it is woken once
/// more.
#[test]
fn the_driver_is_given_away_against_wakes() {
    explore_preempted(1, || {
        let shared = scheduler(1);
        let threads = start(&shared);
        let state = Arc::new((AtomicUsize::new(0), Mutex::new(None::<Waker>)));
        let theirs = state.clone();
        let outside = thread::spawn(move || {
            for round in 1..=2 {
                theirs.0.store(round, SeqCst);
                let waker = theirs.1.lock().unwrap().take();
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
        });
        guest::block_on(
            &shared,
            poll_fn(|cx| {
                *state.1.lock().unwrap() = Some(cx.waker().clone());
                if state.0.load(SeqCst) == 2 { Poll::Ready(()) } else { Poll::Pending }
            }),
        );
        outside.join().unwrap();
        stop(&shared, threads);
    });
}

/// [LV2]: a current-thread runtime is shut down by a thread that does not wait, while one in `Handle::block_on` spawns and
/// runs a task that spawns another one: one of them drops that, once.
#[test]
fn shutdown_in_a_hurry_against_a_guest() {
    explore_preempted(2, || {
        let shared = scheduler(0);
        let drops = Arc::new(AtomicUsize::new(0));
        let guest = thread::spawn({
            let (shared, count) = (shared.clone(), Count(drops.clone()));
            move || {
                guest::block_on_beside(&shared, async move {
                    let task = crate::spawn(async move {
                        // Counted by the member that this thread is while it runs tasks.
                        drop(crate::spawn(async move {
                            let _count = count;
                        }));
                    });
                    let _or_cancelled = task.await;
                });
            }
        });
        shared.begin_shutdown();
        shared.shut_down_current_thread(Some(volt_sync::internal::primitive::now()));
        guest.join().unwrap();
        assert_eq!(shared.alive_tasks(), 0);
        drop(shared);
        assert_eq!(drops.load(Relaxed), 1);
    });
}

/// A guest takes a task that was never idle, and is in no list, while a shutdown waits for all of them:
/// the future is gone when that returns.
#[test]
fn shutdown_against_a_guest_that_takes_tasks() {
    explore(|| {
        let shared = scheduler(0);
        let drops = Arc::new(AtomicUsize::new(0));
        let count = Count(drops.clone());
        drop(shared.spawn(async move {
            let _count = count;
            std::future::pending::<()>().await;
        }));
        let state = Arc::new((AtomicUsize::new(0), Mutex::new(None::<Waker>)));
        let guest = thread::spawn({
            let (shared, state) = (shared.clone(), state.clone());
            move || {
                guest::block_on_beside(
                    &shared,
                    poll_fn(|cx| {
                        *state.1.lock().unwrap() = Some(cx.waker().clone());
                        if state.0.load(SeqCst) == 1 { Poll::Ready(()) } else { Poll::Pending }
                    }),
                );
            }
        });
        shared.begin_shutdown();
        shared.shut_down_current_thread(None);
        assert_eq!(drops.load(Relaxed), 1);
        state.0.store(1, SeqCst);
        let waker = state.1.lock().unwrap().take();
        if let Some(waker) = waker {
            waker.wake();
        }
        guest.join().unwrap();
        assert_eq!(shared.alive_tasks(), 0);
    });
}

/// A thread wakes a task of a current-thread runtime while another one shuts it down and does not wait:
/// one of them drops the task.
#[test]
fn shutdown_in_a_hurry_against_a_wake() {
    explore(|| {
        let shared = scheduler(0);
        let drops = Arc::new(AtomicUsize::new(0));
        let waker = Arc::new(Mutex::new(None::<Waker>));
        guest::block_on(&shared, async {
            let (count, theirs) = (Count(drops.clone()), waker.clone());
            let mut task = crate::spawn(poll_fn(move |cx| {
                let _count = &count;
                *theirs.lock().unwrap() = Some(cx.waker().clone());
                Poll::<()>::Pending
            }));
            // It is idle when this is polled again.
            let mut polls = 0;
            poll_fn(|cx| {
                polls += 1;
                assert!(std::pin::Pin::new(&mut task).poll(cx).is_pending());
                if polls == 1 {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(())
            })
            .await;
        });
        let waker = waker.lock().unwrap().take().unwrap();
        let outside = thread::spawn(move || waker.wake());
        shared.begin_shutdown();
        shared.shut_down_current_thread(Some(volt_sync::internal::primitive::now()));
        outside.join().unwrap();
        assert_eq!(shared.alive_tasks(), 0);
        assert_eq!(drops.load(Relaxed), 1);
    });
}

/// A thread spawns on a current-thread runtime while another one shuts it down and does not wait:
/// one of them drops the task.
#[test]
fn shutdown_in_a_hurry_against_a_spawn() {
    explore(|| {
        let shared = scheduler(0);
        let drops = Arc::new(AtomicUsize::new(0));
        let outside = thread::spawn({
            let (shared, count) = (shared.clone(), Count(drops.clone()));
            move || {
                drop(shared.spawn(async move {
                    let _count = count;
                }));
            }
        });
        shared.begin_shutdown();
        shared.shut_down_current_thread(Some(volt_sync::internal::primitive::now()));
        outside.join().unwrap();
        assert_eq!(shared.alive_tasks(), 0);
        assert_eq!(drops.load(Relaxed), 1);
    });
}

/// A thread sets a task aside, as a choosy guest would.
fn sets_aside(shared: &Arc<Shared>) -> (JoinHandle<u32>, impl FnOnce() + use<>) {
    // So that its spawn wakes nobody.
    let task = shared.spawn(async { 1 });
    let queued = Queued(shared.injector.pop().unwrap());
    let shared = shared.clone();
    let set_aside = move || {
        let Queued(queued) = { queued };
        // SAFETY: taken from the queue just now.
        unsafe { shared.injector.set_aside(queued) };
        shared.offer_set_aside();
    };
    (task, set_aside)
}

/// A task that is in no queue.
struct Queued(NonNull<Header>);

// SAFETY: it stands for the task's `Notified`, which is `Send`.
unsafe impl Send for Queued {}

/// The thread in `block_on` has spawned a task that is not for it, and is in a long poll: the worker, which parks,
/// gets it. `shy`: the thread runs no tasks at all, though it could run this one.
fn what_a_guest_leaves_against_parking(shy: bool) {
    explore_preempted(1, move || {
        let shared = scheduler(1);
        let threads = start(&shared);
        let mut task = None;
        guest::block_on(
            &shared,
            poll_fn(|cx| match task.take() {
                None => {
                    if shy {
                        outside::waits();
                    }
                    task = Some(crate::spawn(async { 1 }));
                    // A task comes before the next poll.
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Some(task) => {
                    assert_eq!(volt_sync::internal::block_on(task).unwrap(), 1);
                    Poll::Ready(())
                }
            }),
        );
        stop(&shared, threads);
    });
}

#[test]
fn what_a_guest_sets_aside_against_parking() {
    what_a_guest_leaves_against_parking(false);
}

#[test]
fn what_a_shy_guest_spawns_against_parking() {
    what_a_guest_leaves_against_parking(true);
}

/// Another thread spawns a task while a guest that runs none goes to sleep, and the worker sleeps, or goes to
/// sleep as well.
fn a_push_beside_a_guest(preemptions: usize, start: fn(Config) -> Started, keeps_off: KeepsOff) {
    let is_shy = matches!(keeps_off, KeepsOff::Shy);
    let processors = if is_shy { usize::MAX } else { 1 };
    explore_preempted(preemptions, move || {
        let (shared, threads) = start(Config { processors, ..config() });
        let (sender, receiver) = volt_sync::oneshot::channel();
        let theirs = shared.clone();
        let other = thread::spawn(move || drop(theirs.spawn(async { sender.send(1).unwrap() })));
        let mut receiver = std::pin::pin!(receiver);
        let output = guest::block_on(
            &shared,
            poll_fn(|cx| {
                if is_shy {
                    outside::waits();
                }
                receiver.as_mut().poll(cx)
            }),
        );
        assert_eq!(output.unwrap(), 1);
        other.join().unwrap();
        stop_quietly(&shared, threads);
    });
}

/// Why a guest leaves tasks to others.
#[derive(Clone, Copy)]
enum KeepsOff {
    Shy,
    /// The worker takes the only processor.
    Bystander,
}

#[test]
fn a_push_beside_a_shy_guest_that_parks() {
    a_push_beside_a_guest(2, start_asleep, KeepsOff::Shy);
}

#[test]
fn a_push_beside_a_shy_guest_and_a_worker_that_park() {
    a_push_beside_a_guest(1, start_one, KeepsOff::Shy);
}

#[test]
fn a_push_beside_a_bystander_that_parks() {
    a_push_beside_a_guest(2, start_asleep, KeepsOff::Bystander);
}

#[test]
fn a_push_beside_a_bystander_and_a_worker_that_park() {
    a_push_beside_a_guest(1, start_one, KeepsOff::Bystander);
}

/// A task is set aside while the thread in `block_on` searches, which does not look there, and so while nobody is
/// woken for it: that thread parks, and wakes the worker.
#[test]
fn what_is_set_aside_against_a_choosy_guest_that_parks() {
    explore(|| {
        let shared = scheduler(1);
        let (task, set_aside) = sets_aside(&shared);
        let threads = start(&shared);
        let other = thread::spawn(set_aside);
        assert_eq!(guest::block_on(&shared, task).unwrap(), 1);
        other.join().unwrap();
        stop_quietly(&shared, threads);
    });
}

/// The same, and that thread is in a long poll then.
#[test]
fn what_is_set_aside_against_a_choosy_guest_that_ends_its_search() {
    explore_preempted(1, || {
        let shared = scheduler(1);
        let (task, set_aside) = sets_aside(&shared);
        let threads = start(&shared);
        let state = Arc::new((AtomicUsize::new(0), Mutex::new(None::<Waker>)));
        let theirs = state.clone();
        let other = thread::spawn(move || {
            set_aside();
            theirs.0.store(1, SeqCst);
            let waker = theirs.1.lock().unwrap().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        });
        let mut task = Some(task);
        guest::block_on(
            &shared,
            poll_fn(|cx| {
                *state.1.lock().unwrap() = Some(cx.waker().clone());
                if state.0.load(SeqCst) == 0 {
                    return Poll::Pending;
                }
                let task = task.take().expect("it is ready now");
                assert_eq!(volt_sync::internal::block_on(task).unwrap(), 1);
                Poll::Ready(())
            }),
        );
        other.join().unwrap();
        stop(&shared, threads);
    });
}

/// The only worker is in a long poll. A task is set aside while a thread that was choosy when it parked last parks
/// in a join, where it takes anything.
#[test]
fn what_is_set_aside_against_a_join_that_parks() {
    explore(|| {
        let shared = scheduler(1);
        let park = shared.park_of(0);
        let busy = Worker::new(&shared, 0, &park);
        shared.slot(1).choosy.store(true, Relaxed);
        let (task, set_aside) = sets_aside(&shared);
        let other = thread::spawn(set_aside);
        guest::block_on(&shared, async {
            assert_eq!(helping::block_on_helping(task).unwrap(), 1);
        });
        other.join().unwrap();
        shared.begin_shutdown();
        context::with_worker(&busy, || busy.end());
    });
}

/// A task is set aside while the runtime ends: it runs or is dropped, once.
#[test]
fn shutdown_against_what_is_set_aside() {
    explore(|| {
        let shared = scheduler(1);
        let (task, set_aside) = sets_aside(&shared);
        let threads = start(&shared);
        let other = thread::spawn(set_aside);
        stop(&shared, threads);
        other.join().unwrap();
        assert_eq!(shared.alive_tasks(), 0);
        assert!(task.is_finished());
    });
}
