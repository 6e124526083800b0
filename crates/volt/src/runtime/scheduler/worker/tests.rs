//! Decisions of one worker, alone or beside a parked one.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Poll, Waker};
use std::time::Duration;

use volt_sync::internal::primitive::{Arc, Mutex, now, processor};

use crate::runtime::config::Config;
use crate::runtime::context;
use crate::runtime::driver::Driver;
use crate::runtime::scheduler::by_hand::with_members;
use crate::runtime::scheduler::idle::Roles;
use crate::runtime::scheduler::queues::runnable::WAKE_NS;
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::worker::{Stage, Step, Worker};
use crate::task::{Notified, Schedule};
use crate::time::Clock;

/// What a fork pushes wakes the others, unless the ring will be empty before they are up: that is so
/// only if both what waits there and what runs now return quickly.
#[test]
fn a_fork_wakes_nobody_only_if_the_poll_that_forks_is_quick() {
    for (runs_quick, waits_quick) in [(true, true), (false, true), (true, false)] {
        let (driver, handle) = Driver::new(2, Clock::real()).unwrap();
        let shared = Shared::new(Config::default(), 2, driver, handle);
        let parks = [shared.park_of(0), shared.park_of(1)];
        let [running, parked] = [0, 1].map(|index| Worker::new(&shared, index, &parks[index]));
        running.pace.set_poll_ns(100.0);
        assert!(shared.idle.park(1, false, false).watcher);
        context::with_worker(&running, || {
            let forks: Vec<_> = [1, 2]
                .into_iter()
                .map(|i| {
                    let task = shared.spawn(async move { i });
                    // SAFETY: the handle keeps the task alive.
                    let kind = unsafe { task.target().unwrap().as_ref() }.type_key();
                    if waits_quick {
                        shared.quick.learn(kind);
                    }
                    let running_kind = if runs_quick { kind } else { 1 };
                    running.slot.kind.store(running_kind, std::sync::atomic::Ordering::Relaxed);
                    if runs_quick && !waits_quick {
                        // Another kind than that of the tasks.
                        shared.quick.learn(32);
                        running.slot.kind.store(32, std::sync::atomic::Ordering::Relaxed);
                    }
                    task
                })
                .collect();
            assert_eq!(shared.idle.is_parked(1), runs_quick && waits_quick);
            drop(forks);
        });
        shared.begin_shutdown();
        for worker in [&running, &parked] {
            context::with_worker(worker, || worker.end());
        }
    }
}

/// Who parks beside a member that will be back soon does not go into the driver before it; beside
/// one that may take long it does.
/// Of two that are parked, the second has no duty.
#[test]
fn who_polls_for_long_wakes_a_member_of_another_processor() {
    let claimed = |poll_ns: f32| {
        let mut claimed = None;
        with_members(|shared, [this, near, far]| {
            for it in [far, near] {
                it.stage.set(Stage::Running);
                context::with_worker(it, || while it.step() != Step::Wait {});
            }
            this.pace.set_poll_ns(poll_ns);
            let here = processor();
            // ORD relaxed: of this thread.
            near.slot.processor.store(here, Relaxed);
            // ORD relaxed: as above.
            far.slot.processor.store(here + 1, Relaxed);
            this.notify();
            let is_up = [near, far].map(|it| !shared.idle.is_parked(it.index));
            claimed = (processor() == here).then_some(is_up);
        });
        claimed
    };
    let claimed = |poll_ns| (0..100).find_map(|_| claimed(poll_ns)).expect("it stays for once");
    assert_eq!(claimed(WAKE_NS), [false, true]);
    assert_eq!(claimed(WAKE_NS - 1.0), [true, false], "its data would have to go there");
}

#[test]
fn a_driver_is_left_to_a_member_in_a_quick_poll() {
    const QUICK: usize = 32;
    const SLOW: usize = 48;
    for (kind, left) in [
        (QUICK, true),
        (SLOW, false),
        (crate::runtime::scheduler::pacing::quick::OF_NO_TASK, false),
    ] {
        let (driver, handle) = Driver::new(2, Clock::real()).unwrap();
        let shared = Shared::new(Config::default(), 2, driver, handle);
        let parks = [shared.park_of(0), shared.park_of(1)];
        let members = [0, 1].map(|index| Worker::new(&shared, index, &parks[index]));
        let park = |worker: &Worker<'_>| {
            worker.ran.set(true);
            worker.stage.set(Stage::Searched);
            assert_eq!(worker.step(), Step::Continue);
            worker.roles.get()
        };
        shared.quick.learn(QUICK);
        members[1].slot.kind.store(kind, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(park(&members[0]), Roles { driver: !left, watcher: true });
        assert_eq!(park(&members[1]), Roles { driver: left, watcher: false });
        shared.begin_shutdown();
        for worker in &members {
            context::with_worker(worker, || worker.end());
        }
    }
}

/// A drop that blocks while its worker ends has the worker end elsewhere, and once: each is counted
/// once, and what the drop waits for is dropped by the other thread.
#[test]
fn a_worker_whose_end_blocks_ends_once_and_on_another_thread() {
    struct WaitsFor(Option<crate::task::JoinHandle<()>>);

    impl Drop for WaitsFor {
        fn drop(&mut self) {
            let task = self.0.take().expect("dropped once");
            let cancelled = crate::task::block_in_place(|| task.join().unwrap_err().is_cancelled());
            assert!(cancelled, "nothing runs this far into a shutdown");
        }
    }

    for workers in [1, 2, 8] {
        let (driver, handle) = Driver::new(workers, Clock::real()).unwrap();
        let shared = Shared::new(Config::default(), workers, driver, handle);
        // Idle ones, and some that are queued.
        for _ in 0..6 {
            let waited_for = shared.spawn(std::future::pending());
            let waits = WaitsFor(Some(waited_for));
            drop(shared.spawn(async move {
                std::future::pending::<()>().await;
                drop(waits);
            }));
        }
        shared.begin_shutdown();
        let parks: Vec<_> = (0..workers).map(|index| shared.park_of(index)).collect();
        for (index, park) in parks.iter().enumerate() {
            let worker = Worker::new(&shared, index, park);
            context::with_worker(&worker, || worker.run_thread());
            assert_eq!(worker.handed_over.get(), index == 0, "the first one drops them");
        }
        assert!(shared.threads.wait(Some(std::time::Duration::from_secs(60))));
        assert_eq!(shared.alive_tasks(), 0);
        assert_eq!(shared.workers_left(), 0);
    }
}

/// What was ready in the driver by the time is run by the member that would have left it to another.
#[test]
fn who_leaves_a_driver_takes_what_is_in_there() {
    const QUICK: usize = 32;
    for ready in [true, false] {
        let (driver, handle) = Driver::new(2, Clock::real()).unwrap();
        let shared = Shared::new(Config::default(), 2, driver, handle);
        let parks = [shared.park_of(0), shared.park_of(1)];
        let members = [0, 1].map(|index| Worker::new(&shared, index, &parks[index]));
        members[1].slot.kind.store(QUICK, std::sync::atomic::Ordering::Relaxed);
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let reader = context::with_worker(&members[0], || {
            let reader = shared.spawn(async move {
                let ours = crate::net::UnixStream::from_std(ours).unwrap();
                ours.readable().await.unwrap();
            });
            assert_eq!(members[0].step(), Step::Continue, "it waits for the message");
            // The reader's kind, which is an address, may have the same place.
            shared.quick.learn(QUICK);
            if ready {
                theirs.write_all(b"!").unwrap();
            }
            assert_eq!(members[0].step(), Step::Continue);
            let stage = if ready { Stage::Running } else { Stage::Searched };
            assert_eq!(members[0].stage.get(), stage);
            assert!(!shared.idle.load().driver_taken(), "the driver is left");
            assert_eq!(members[0].step(), Step::Continue);
            reader
        });
        assert_eq!(reader.is_finished(), ready);
        shared.begin_shutdown();
        for worker in &members {
            context::with_worker(worker, || worker.end());
        }
    }
}

/// Who is alone parks without a search; what is in the ring of a parked member after all, the look after that finds.
#[test]
fn who_runs_alone_does_not_search_and_misses_nothing() {
    for others_run in [false, true] {
        with_members(|shared, [this, parked, other]| {
            let members = if others_run { &[parked][..] } else { &[parked, other][..] };
            for member in members {
                member.stage.set(Stage::Running);
                context::with_worker(member, || while member.step() != Step::Wait {});
            }
            let task = context::with_worker(parked, || shared.spawn(async {}));
            parked.push(parked.slot.lifo.take().unwrap());
            context::with_worker(this, || {
                assert_eq!(this.step(), Step::Continue);
                assert_eq!(task.is_finished(), others_run, "it searches only beside others");
                if !others_run {
                    assert_eq!(this.stage.get(), Stage::Searched);
                    while this.step() != Step::Wait {}
                    this.wait();
                    assert!(this.searching.get(), "it has found that there is something");
                    assert_eq!(this.step(), Step::Continue);
                }
            });
            assert!(task.is_finished());
        });
    }
}

/// A searcher waits for tasks while a member that runs looks at the driver, not while one sleeps in
/// there, and not if others wait already.
#[test]
fn one_searcher_waits_for_what_another_member_finds_in_the_driver() {
    type Does = fn(&Shared);
    let nothing: Does = |_| {};
    let looks: Does = |shared| assert!(shared.idle.take_driver(1));
    let sleeps: Does = |shared| assert!(shared.idle.park(1, false, true).driver);
    let others: Does = |shared| {
        assert!(shared.idle.take_driver(1));
        assert!(shared.idle.start_search() && shared.idle.start_search());
    };
    for (does, waits) in [(nothing, false), (looks, true), (sleeps, false), (others, false)] {
        let (driver, handle) = Driver::new(6, Clock::real()).unwrap();
        let shared = Shared::new(Config::default(), 6, driver, handle);
        let parks: Vec<_> = (0..6).map(|index| shared.park_of(index)).collect();
        let members: Vec<_> =
            (0..6).map(|index| Worker::new(&shared, index, &parks[index])).collect();
        let _task = context::with_worker(&members[1], || shared.spawn(async {}));
        members[1].push(members[1].slot.lifo.take().unwrap());
        assert!(shared.idle.start_search());
        members[0].searching.set(true);
        does(&shared);
        let stolen = members[0].steal_from_a_look();
        assert_eq!(stolen.is_some(), waits);
        if let Some(task) = stolen {
            members[1].push(task);
        }
        shared.begin_shutdown();
        for worker in &members {
            context::with_worker(worker, || worker.end());
        }
    }
}

/// Runs a task on the only worker, and then what it has left there: who ran, in order.
fn order_of<F>(make: impl FnOnce(Order) -> F) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    order_among("", Config::default(), make)
}

/// The same, with tasks of these names behind it in the injector.
fn order_among<F>(behind: &str, config: Config, make: impl FnOnce(Order) -> F) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    let (driver, handle) = Driver::new(1, Clock::real()).unwrap();
    let shared = Shared::new(config, 1, driver, handle);
    let order = Order::default();
    let first = shared.spawn(make(order.clone()));
    behind.chars().for_each(|name| drop(shared.spawn(order.clone().note(name))));
    let park = shared.park_of(0);
    let worker = Worker::new(&shared, 0, &park);
    context::with_worker(&worker, || {
        while shared.alive_tasks() > 0 {
            assert_eq!(worker.step(), Step::Continue);
        }
        assert!(first.is_finished());
        shared.begin_shutdown();
        worker.end();
    });
    order.0.lock().unwrap().clone()
}

#[derive(Clone, Default)]
struct Order(Arc<Mutex<String>>);

impl Order {
    fn add(&self, name: char) {
        self.0.lock().unwrap().push(name);
    }

    /// A task of this name.
    async fn note(self, name: char) {
        self.add(name);
    }
}

/// Three tasks of the worker that runs this, of which the first is in the LIFO slot, and two that come from
/// outside meanwhile.
fn spawn_in_each_place(order: &Order) {
    for name in ['l', 'r', 's'] {
        drop(crate::spawn(order.clone().note(name)));
    }
    let handle = crate::runtime::Handle::current();
    // To wait for another thread would make this a long poll, after which the order may be another.
    context::beside_member(|| {
        for name in ['i', 'j'] {
            drop(handle.spawn(order.clone().note(name)));
        }
    });
}

/// One of these orders is `expected`. The system may stop the thread in any poll, which then was a long one, and
/// changes the order: so there are several tries.
#[track_caller]
fn comes_once(expected: &str, order: impl Fn() -> String) {
    let mut last = String::new();
    let comes = (0..10).any(|_| {
        last = order();
        last == expected
    });
    assert!(comes, "{last}");
}

/// The order of the search, by what is in each place: the LIFO slot, the ring, the injector.
#[test]
fn own_tasks_run_before_those_of_the_injector() {
    comes_once("lrsij", || order_of(|order| async move { spawn_in_each_place(&order) }));
}

/// The rest of a batch is run to its end before anything else, even what its tasks spawn.
#[test]
fn the_batch_runs_before_the_lifo_slot_and_the_ring() {
    comes_once("bclrsij", || {
        order_among("bc", Config::default(), |order| async move { spawn_in_each_place(&order) })
    });
}

/// When it is the injector's turn, it is before the LIFO slot.
#[test]
fn the_injectors_turn_is_before_the_lifo_slot() {
    let config = Config { global_queue_interval: Some(1), ..Config::default() };
    let order = order_among("", config, |order| async move { spawn_in_each_place(&order) });
    assert_eq!(order, "ijlrs");
}

/// A member that has tasks of its own does not wait for another one that takes some of the injector.
#[test]
fn the_injectors_turn_is_later_if_another_member_takes() {
    let config = Config { global_queue_interval: Some(1), ..Config::default() };
    let (driver, handle) = Driver::new(1, Clock::real()).unwrap();
    let shared = Shared::new(config, 1, driver, handle);
    let park = shared.park_of(0);
    let worker = Worker::new(&shared, 0, &park);
    let order = Order::default();
    for name in ['o', 'p', 'i'] {
        drop(shared.spawn(order.clone().note(name)));
    }
    for _ in 0..2 {
        worker.push(shared.injector.pop().unwrap());
    }
    context::with_worker(&worker, || {
        while !worker.pace.injector_has_its_turn() {}
        let takes = shared.injector.try_consumer().expect("nobody takes");
        assert_eq!(worker.step(), Step::Continue);
        drop(takes);
        assert_eq!((worker.step(), worker.step()), (Step::Continue, Step::Continue));
    });
    assert_eq!(*order.0.lock().unwrap(), "oip");
    shared.begin_shutdown();
    context::with_worker(&worker, || worker.end());
}

/// Two workers, the first of which has nothing. The other one has `theirs` in its ring, and the injector
/// `outside`: what the first one runs, in order. If it has `looked`, it has seen the injector empty just before;
/// what its search finds then is before the bar.
fn order_of_search(theirs: &str, outside: &str, looked: bool) -> String {
    let (driver, handle) = Driver::new(2, Clock::real()).unwrap();
    let shared = Shared::new(Config::default(), 2, driver, handle);
    let parks = [shared.park_of(0), shared.park_of(1)];
    let members = [0, 1].map(|index| Worker::new(&shared, index, &parks[index]));
    let order = Order::default();
    for name in theirs.chars() {
        drop(shared.spawn(order.clone().note(name)));
        members[1].push(shared.injector.pop().unwrap());
    }
    outside.chars().for_each(|name| drop(shared.spawn(order.clone().note(name))));
    context::with_worker(&members[0], || {
        if looked {
            members[0].search().into_iter().for_each(|task| members[0].run_now(task));
            order.add('|');
        }
        while members[0].stage.get() == Stage::Running {
            assert_eq!(members[0].step(), Step::Continue);
        }
    });
    shared.begin_shutdown();
    for worker in &members {
        context::with_worker(worker, || worker.end());
    }
    order.0.lock().unwrap().clone()
}

#[test]
fn the_injector_comes_before_other_members() {
    assert_eq!(order_of_search("rs", "ij", false), "ijrs");
    assert_eq!(order_of_search("rs", "", false), "rs");
}

/// A task may come from outside after the first look at the injector. (Of two tasks one is stolen.)
#[test]
fn a_searcher_that_steals_nothing_looks_at_the_injector_once_more() {
    assert_eq!(order_of_search("rs", "ij", true), "r|ijs");
    assert_eq!(order_of_search("", "ij", true), "i|j");
}

/// A guest that has nothing but tasks that are not for it looks at the driver between them.
#[test]
fn a_flood_of_tasks_that_are_set_aside_does_not_keep_a_guest_from_the_driver() {
    let (driver, handle) = Driver::new(2, Clock::real()).unwrap();
    let shared = Shared::new(Config::default(), 1, driver, handle);
    let park = shared.park_of(0);
    let member = Worker::new(&shared, 0, &park);
    member.choosy.set(true);
    (0..1000).for_each(|_| drop(shared.spawn(async {})));
    context::with_worker(&member, || {
        let turns = shared.driver_turns.get();
        while !shared.injector.is_empty_for(true) {
            assert_eq!(member.step(), Step::Continue);
        }
        assert_eq!(shared.alive_tasks(), 1000, "nobody runs them");
        assert!(shared.driver_turns.get() > turns);
    });
    shared.begin_shutdown();
    context::with_worker(&member, || member.end());
}

/// How many tasks are in the LIFO slot, the ring, the batch, and the injector.
fn places(worker: &Worker<'_>) -> [usize; 4] {
    let slot = worker.slot;
    let lifo = usize::from(!slot.lifo.is_empty());
    [lifo, slot.ring.len(), slot.batch.len(), worker.shared.injector.len()]
}

/// The numbers of the design: a ring of 256, of which half goes to the injector when it is full; a batch of
/// 32, and what does not fit goes to the ring if that is empty; 64 tasks of the injector at once.
#[test]
fn the_queues_have_the_designs_sizes() {
    let (driver, handle) = Driver::new(1, Clock::real()).unwrap();
    let shared = Shared::new(Config::default(), 1, driver, handle);
    let park = shared.park_of(0);
    let worker = Worker::new(&shared, 0, &park);
    context::with_worker(&worker, || {
        (0..257).for_each(|_| drop(shared.spawn(async {})));
        assert_eq!(places(&worker), [1, 256, 0, 0]);
        drop(shared.spawn(async {}));
        assert_eq!(places(&worker), [1, 129, 0, 128]);
        worker.pace.set_poll_ns(5_000.0);
        drop(worker.fetch().map(|task| worker.adopt(task)));
        assert_eq!(places(&worker), [1, 129, 32, 95]);
        let taken =
            std::iter::from_fn(|| worker.slot.batch.pop().or_else(|| worker.slot.ring.pop()));
        taken.for_each(|task| drop(worker.adopt(task)));
        drop(worker.fetch().map(|task| worker.adopt(task)));
        assert_eq!(places(&worker), [1, 31, 32, 31]);
    });
    shared.begin_shutdown();
    context::with_worker(&worker, || worker.end());
}

/// A chain of tasks, each of which spawns the next: it has three polls, then the oldest of the ring has
/// one, and the chain goes behind the others.
#[test]
fn three_polls_from_the_lifo_slot_then_one_from_the_ring() {
    fn chain(order: Order, left: u32) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            order.add('l');
            if left > 1 {
                drop(crate::spawn(chain(order, left - 1)));
            }
        })
    }
    // If nothing waits in the ring, the limit is none.
    comes_once("lllrrrlllll", || {
        order_of(|order| async move {
            drop(crate::spawn(chain(order.clone(), 8)));
            for _ in 0..3 {
                let order = order.clone();
                drop(crate::spawn(async move { order.add('r') }));
            }
        })
    });
}

/// Who is woken last runs first; the one before it goes from the LIFO slot to the ring.
#[test]
fn a_wake_up_evicts_the_lifo_slot_to_the_ring() {
    let order = order_of(|order| async move {
        let wakers = Arc::new(Mutex::new(Vec::<Waker>::new()));
        for name in ['1', '2', '3'] {
            let (order, wakers) = (order.clone(), wakers.clone());
            let mut waits = true;
            drop(crate::spawn(poll_fn(move |cx| {
                if std::mem::take(&mut waits) {
                    wakers.lock().unwrap().push(cx.waker().clone());
                    return Poll::Pending;
                }
                order.add(name);
                Poll::Ready(())
            })));
        }
        // They run, in the order of their spawns.
        crate::task::yield_now().await;
        let wakers = std::mem::take(&mut *wakers.lock().unwrap());
        wakers.into_iter().for_each(Waker::wake);
    });
    assert_eq!(order, "312");
}

/// A task of the LIFO slot and three of the ring compute, the first of these after it has made two
/// sockets readable; who waits for them computes as well if `long`.
fn order_around_a_look(long: bool) -> String {
    fn compute() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    order_of(|order| async move {
        let mut peers = Vec::new();
        for name in ['a', 'b'] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            peers.push(theirs);
            let order = order.clone();
            drop(crate::spawn(async move {
                let ours = crate::net::UnixStream::from_std(ours).unwrap();
                ours.readable().await.unwrap();
                order.add(name);
                if long {
                    compute();
                }
            }));
        }
        // They run, and wait.
        crate::task::yield_now().await;
        for name in ['0', '1', '2', '3'] {
            let order = order.clone();
            let peers = if name == '1' { std::mem::take(&mut peers) } else { Vec::new() };
            drop(crate::spawn(async move {
                order.add(name);
                for mut peer in &peers {
                    peer.write_all(b"!").unwrap();
                }
                compute();
            }));
        }
    })
}

/// One of the orders around a look is `expected`. The system may stop the thread in any poll, which then was a long one:
/// so there are several tries, and `others`, whatever the load of the machine. If it was the first poll of who waits,
/// that kind is not a quick one, and overtakes nobody.
#[track_caller]
fn comes_as_expected(long: bool, expected: &str, others: &[&str]) {
    let mut orders = (0..200).map(|_| order_around_a_look(long));
    assert!(orders.any(|order| {
        assert!(order == expected || others.contains(&&*order), "{order}");
        order == expected
    }));
}

#[test]
fn what_a_look_finds_after_a_long_poll_runs_before_the_ring() {
    comes_as_expected(false, "01ab23", &["01a23b", "0123ab"]);
}

#[test]
fn long_polls_of_what_overtook_the_ring_take_turns_with_it() {
    comes_as_expected(true, "01a23b", &["0123ab"]);
}

/// A thread that wakes a task keeps nothing but the task: a shutdown that does not wait for it leaves it the
/// scheduler.
#[test]
fn a_task_that_a_shutdown_did_not_wait_for_has_its_scheduler() {
    let (driver, handle) = Driver::new(1, Clock::real()).unwrap();
    let shared = Shared::new(Config::default(), 0, driver, handle);
    let drops = Arc::new(());
    let theirs = drops.clone();
    drop(shared.spawn(async move { drop(theirs) }));
    // As of a thread between its wake-up's decision and the queue.
    let task = shared.injector.pop().unwrap();
    shared.begin_shutdown();
    shared.shut_down_current_thread(Some(volt_sync::internal::primitive::now()));
    assert_eq!(Arc::strong_count(&shared), 2);
    // SAFETY: taken from a queue, whose `Notified` it was.
    let task = unsafe { Notified::from_raw(task) };
    // SAFETY: the scheduler is alive, and the task was not handed over.
    unsafe { <Shared as Schedule>::schedule(std::ptr::NonNull::from(&*shared), task) };
    assert_eq!((Arc::strong_count(&shared), Arc::strong_count(&drops)), (1, 1));
}

/// A shutdown that waits for a task in a long poll elsewhere looks less and less often, and sees the end soon.
#[test]
fn a_shutdown_that_waits_for_long_looks_seldom() {
    const LONG: Duration = Duration::from_millis(600);
    let (driver, handle) = Driver::new(1, Clock::real()).unwrap();
    let shared = Shared::new(Config::default(), 0, driver, handle);
    drop(shared.spawn(async {}));
    // As of a thread that polls it.
    let task = Cell::new(shared.injector.pop());
    shared.begin_shutdown();
    shared.close();
    let (start, looks, ended) = (now(), Cell::new(0), Cell::new(None));
    shared.drain_to_the_last(None, || {
        looks.set(looks.get() + 1);
        if start.elapsed() > LONG {
            if let Some(task) = task.take() {
                // SAFETY: taken from a queue, whose `Notified` it was.
                drop(unsafe { Notified::from_raw(task) });
                ended.set(Some(looks.get()));
            }
        }
        false
    });
    assert!(ended.get().unwrap() < 2_000, "{looks:?} looks in {LONG:?}");
    assert_eq!(Some(looks.get()), ended.get(), "the next look sees the end");
}
