//! What a crowd is, and what one member keeps to itself in one.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::time::Duration;

use volt_sync::internal::primitive::Arc;

use super::{CLOSED, FREE, Judge, OFF, PATIENCE, STALE, Sums, WINDOW_NS, attended, system};
use crate::runtime::context;
use crate::runtime::scheduler::by_hand::{self, QUICK};
use crate::runtime::scheduler::pacing::quick;
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::stalls::stall::{Look, SPAN_NS, STALL_NS};
use crate::runtime::scheduler::worker::Worker;
use crate::runtime::{Builder, Runtime};
use crate::task::{JoinHandle, block_in_place};

/// Two members beside a client.
const CROWD: Sums =
    Sums { now_ns: WINDOW_NS, process_ns: WINDOW_NS, idle_ns: WINDOW_NS / 10, parks: 400 };
/// One of them, alone.
const ALONE: Sums = Sums { parks: 60, ..CROWD };

fn decide(judge: &mut Judge, window: Sums) -> bool {
    judge.decide(window, 2)
}

#[test]
fn a_crowd_is_full_and_sleeps_often() {
    let hundredths = |of: u64| WINDOW_NS / 100 * of;
    for (window, crowd) in [
        (CROWD, true),
        (Sums { parks: 200, ..CROWD }, true),
        (Sums { parks: 199, ..CROWD }, false),
        (ALONE, false),
        (Sums { process_ns: hundredths(25), ..CROWD }, true),
        (Sums { process_ns: hundredths(24), ..CROWD }, false),
        (Sums { process_ns: hundredths(115), ..CROWD }, true),
        (Sums { process_ns: hundredths(116), ..CROWD }, false),
        (Sums { idle_ns: hundredths(69), ..CROWD }, true),
        (Sums { idle_ns: hundredths(70), ..CROWD }, false),
        // The first one, since the machine was started.
        (
            Sums {
                now_ns: WINDOW_NS * STALE,
                process_ns: WINDOW_NS * STALE,
                parks: 9_999,
                ..CROWD
            },
            false,
        ),
    ] {
        assert_eq!(decide(&mut Judge::default(), window), crowd, "{window:?}");
    }
    // Each of eight members.
    assert!(!Judge::default().decide(CROWD, 8));
    assert!(Judge::default().decide(Sums { parks: 800, ..CROWD }, 8));
}

#[test]
fn one_that_is_alone_stays_so_while_the_machine_is_full() {
    let full = Sums { process_ns: WINDOW_NS * 2, ..ALONE };
    let idle = Sums { idle_ns: WINDOW_NS, ..ALONE };
    let late = Sums { now_ns: WINDOW_NS * STALE, ..ALONE };
    for ends in [full, idle, late] {
        let mut judge = Judge::default();
        assert!(decide(&mut judge, CROWD));
        for window in [ALONE, CROWD, Sums { process_ns: 0, ..ALONE }] {
            assert!(decide(&mut judge, window));
        }
        assert!(!decide(&mut judge, ends), "{ends:?}");
        assert!(!decide(&mut judge, ALONE));
    }
}

#[test]
fn a_crowd_whose_member_hardly_sleeps_ends_after_some_windows() {
    let seldom = Sums { parks: 9, ..CROWD };
    let mut judge = Judge::default();
    assert!(decide(&mut judge, CROWD));
    for _ in 0..3 {
        (1..PATIENCE).for_each(|_| assert!(decide(&mut judge, seldom)));
        assert!(decide(&mut judge, Sums { parks: 10, ..CROWD }));
    }
    (1..PATIENCE).for_each(|_| assert!(decide(&mut judge, seldom)));
    assert!(!decide(&mut judge, seldom));
    // It begins anew.
    assert!(decide(&mut judge, CROWD));
    assert!(decide(&mut judge, seldom));
}

/// Of a runtime that does little, sleeps alone tell that it is in no crowd.
#[test]
fn the_system_is_asked_only_where_that_matters() {
    let mut judge = Judge::default();
    let mut sums = Sums { now_ns: 1 << 50, ..Sums::default() };
    // A window of so many sleeps: whether it was a crowd, and the system was asked.
    let mut window = |parks, windows| {
        sums.now_ns += WINDOW_NS * windows;
        sums.parks += parks;
        sums.process_ns += WINDOW_NS;
        let mut asked = false;
        let crowd = judge.judge(Sums { process_ns: 0, ..sums }, 2, || {
            asked = true;
            Some((sums.process_ns, sums.idle_ns))
        });
        (crowd.unwrap(), asked)
    };
    assert_eq!(window(400, 1), (false, false), "the first one, since the machine was started");
    assert_eq!(window(99, 1), (false, false));
    assert_eq!(window(400, 1), (false, true), "there is nothing to compare with");
    assert_eq!(window(400, 1), (true, true));
    assert_eq!(window(10, 1), (true, true), "it may stay one");
    assert_eq!(window(400, STALE), (false, false), "it cannot");
    assert_eq!(window(100, 1), (false, true), "the next one may be one");
    assert_eq!(window(200, 1), (true, true));
    assert_eq!(judge.judge(Sums { now_ns: sums.now_ns + WINDOW_NS, ..sums }, 2, || None), None);
}

#[test]
fn the_idle_time_is_the_second_figure() {
    assert_eq!(system::idle_ns("1662.72 2098.65\n"), Some(2_098_650_000_000));
    assert_eq!(system::idle_ns("1.00 0.07"), Some(70_000_000));
    for nothing in ["", "1662.72", "1662.72 0.00\n", "1 2", "1.0 -2.10", "1.0 99999999999999999.0"]
    {
        assert_eq!(system::idle_ns(nothing), None, "{nothing}");
    }
}

#[test]
fn a_system_with_more_processors_than_workers_has_no_crowds() {
    assert!(system::System::open(0).is_none());
    assert!(system::System::open(1).is_none());
}

#[cfg(target_os = "linux")]
#[test]
fn all_runtimes_have_one_descriptor() {
    let open = || system::System::open(4_000);
    // (None: as on a machine with one processor.)
    if let (Some(one), Some(other)) = (open(), open()) {
        assert!(std::sync::Arc::ptr_eq(&one.uptime, &other.uptime));
        assert!(one.read() <= other.read());
        drop(one);
        assert!(other.read().is_some());
    }
}

/// A window that somebody judges already is not judged by others.
#[test]
fn a_window_is_judged_once() {
    with_members(|shared, _| {
        let due = || shared.crowd.due_ns.load(Relaxed);
        shared.crowd.due_ns.store(7, Relaxed);
        shared.judge_crowd(WINDOW_NS, 6);
        assert_eq!(due(), 7, "that was another window");
        // This system says nothing.
        shared.judge_crowd(WINDOW_NS, 7);
        assert_eq!(due(), u64::MAX);
        assert_eq!(shared.crowd.word.load(Relaxed), OFF);
    });
}

/// Members 0, which is attended, 1 and 2, all of which run.
fn with_members(test: impl FnOnce(&Arc<Shared>, [&Worker<'_>; 3])) {
    by_hand::with_members(|shared, members| {
        for worker in members {
            worker.slot.kind.store(QUICK, Relaxed);
            worker.pace.set_poll_ns(1_000.0);
        }
        shared.set_crowd(true);
        members[0].attend();
        test(shared, members);
    });
}

fn word(shared: &Shared) -> usize {
    // ORD relaxed: of one thread, or of one that has waited for the other.
    shared.crowd.word.load(Relaxed)
}

/// Two tasks of a quick kind: the second waits in the ring of `worker`.
fn fork(worker: &Worker<'_>) -> [JoinHandle<()>; 2] {
    context::with_worker(worker, || {
        [(), ()].map(|()| {
            let task = worker.shared.spawn(async {});
            // SAFETY: the handle keeps the task alive.
            let kind = unsafe { task.target().unwrap().as_ref() }.type_key();
            worker.shared.quick.learn(kind);
            worker.slot.kind.store(kind, Relaxed);
            task
        })
    })
}

#[test]
fn a_ring_is_left_alone_while_somebody_watches() {
    with_members(|shared, [alone, searcher, watcher]| {
        assert!(alone.is_attended());
        assert!(shared.idle.park(watcher.index, false, false).watcher);
        let _tasks = fork(alone);
        assert_eq!(alone.slot.ring.len(), 1);
        assert!(shared.idle.is_parked(watcher.index), "nobody was woken");
        assert!(!alone.tells_others());
        assert!(!shared.has_work(false));
        assert!(searcher.steal().is_none());
        // Its batch is for all.
        let task = alone.slot.ring.pop().unwrap();
        // SAFETY: this thread is the member, and there is room.
        unsafe { alone.slot.batch.push_quiet(task) };
        assert!(shared.has_work(false));
        let stolen = searcher.steal().unwrap();
        alone.push(stolen);
        // Who is parked itself, as in a waker that blocks in the driver, has no privilege.
        let _ = shared.idle.park(alone.index, false, true);
        assert!(shared.has_work(false));
    });
}

#[test]
fn who_parks_without_a_watcher_takes_the_ring() {
    with_members(|shared, [alone, searcher, _]| {
        let _tasks = fork(alone);
        assert!(alone.is_attended());
        assert!(shared.has_work(false));
        alone.push(searcher.steal().expect("nobody watches"));
        assert!(shared.has_work(false));
        assert!(alone.tells_others());
        assert!(!alone.is_attended());
    });
}

#[test]
fn more_work_than_for_two_milliseconds_is_shared() {
    with_members(|shared, [alone, _, watcher]| {
        assert!(shared.idle.park(watcher.index, false, false).watcher);
        alone.pace.set_poll_ns(40_000.0);
        let _tasks: Vec<_> = (0..25).map(|_| fork(alone)).collect();
        assert!(!alone.tells_others(), "less than the limit in all");
        let _others = fork(alone);
        assert!(!alone.is_attended());
        assert!(!shared.idle.is_parked(watcher.index), "it was woken");
        assert!(alone.steal().is_none() && shared.has_work(false));
    });
}

/// What does not fit into the ring is in the injector, for all: they are told, however short it is.
#[test]
fn what_does_not_fit_into_the_ring_is_shared() {
    with_members(|shared, [alone, _, watcher]| {
        assert!(shared.idle.park(watcher.index, false, false).watcher);
        let mut tasks = Vec::new();
        while shared.injector.is_empty_for(false) {
            assert!(shared.idle.is_parked(watcher.index), "too early");
            tasks.push(fork(alone));
        }
        assert!(!shared.idle.is_parked(watcher.index), "nobody was told");
        watcher.claimed();
        watcher.end_search();
        let _ = shared.idle.park(watcher.index, false, false);
        alone.attend();
        assert!(alone.is_attended() && alone.tells_others());
        assert!(!alone.is_attended());
    });
}

/// Who watches is woken, and has something in its ring already, as from the driver.
#[test]
fn nobody_is_left_alone_because_it_watches_itself() {
    with_members(|shared, [alone, ..]| {
        assert!(shared.idle.park(alone.index, false, false).watcher);
        let _task = shared.spawn(async {});
        assert!(!shared.idle.is_parked(alone.index));
        alone.push(shared.injector.pop().unwrap());
        assert!(alone.is_attended() && shared.idle.load().has_watcher());
        assert!(shared.has_work(false), "nobody looks after it");
        alone.claimed();
        alone.end_search();
    });
}

/// Also one whose ring became long while a searcher was up, so that no push woke anybody.
#[test]
fn a_tick_shares_a_ring_that_is_long() {
    with_members(|shared, [alone, _, watcher]| {
        assert!(shared.idle.park(watcher.index, false, false).watcher);
        assert!(shared.idle.start_search());
        let _tasks = fork(alone);
        alone.pace.set_poll_ns(40_000.0);
        let _others: Vec<_> = (0..30).map(|_| fork(alone)).collect();
        assert!(alone.is_attended());
        alone.attend();
        assert!(!alone.is_attended() && shared.has_work(false));
        shared.idle.end_search();
    });
}

#[test]
fn who_is_not_known_to_be_quick_is_not_attended() {
    with_members(|shared, [member, other, _]| {
        let attends = |worker: &Worker<'_>| {
            worker.attend();
            worker.is_attended()
        };
        assert!(!attends(other), "somebody is, and runs");
        member.share_ring();
        assert_eq!(word(shared), FREE);
        for ns in [0.0, 50_000.0] {
            member.pace.set_poll_ns(ns);
            assert!(!attends(member), "{ns}");
        }
        member.pace.set_poll_ns(49_000.0);
        member.slot.kind.store(quick::OF_NO_TASK, Relaxed);
        assert!(!attends(member));
        member.slot.kind.store(QUICK, Relaxed);
        assert!(attends(member));
        let _ = shared.idle.park(member.index, false, true);
        assert!(attends(other), "the first one sleeps");
        shared.set_crowd(false);
        assert_eq!(word(shared), OFF);
        assert!(!attends(other));
    });
}

#[test]
fn a_guest_that_sets_a_task_aside_gives_the_privilege_up() {
    with_members(|shared, [guest, ..]| {
        guest.choosy.set(true);
        let task = shared.spawn(async {});
        assert_eq!(guest.step(), crate::runtime::scheduler::worker::Step::Continue);
        assert!(shared.injector.has_set_aside() && !guest.is_attended());
        drop(task);
    });
}

#[test]
fn a_poll_that_may_be_long_shares_the_ring() {
    with_members(|shared, [alone, _, watcher]| {
        assert!(shared.idle.park(watcher.index, false, false).watcher);
        let _tasks = fork(alone);
        assert!(alone.is_attended());
        alone.rouse_watcher();
        assert!(!alone.is_attended());
        assert!(!shared.idle.is_parked(watcher.index), "it was woken");
    });
}

#[test]
fn what_is_shared_may_be_in_the_batch() {
    with_members(|shared, [alone, _, watcher]| {
        assert!(shared.idle.park(watcher.index, false, false).watcher);
        let _tasks = fork(alone);
        let task = alone.slot.ring.pop().unwrap();
        // SAFETY: this thread is the member, and there is room.
        unsafe { alone.slot.batch.push_quiet(task) };
        alone.share_ring();
        assert!(!shared.idle.is_parked(watcher.index), "it was woken");
    });
}

#[test]
fn the_watcher_stays_beside_a_ring_that_is_left_alone() {
    assert!((0..100).any(|_| the_watcher_stays_in_time()), "it always takes too long");
}

/// False if that took so long that the member stood still: the system may stop the thread.
fn the_watcher_stays_in_time() -> bool {
    let mut in_time = false;
    with_members(|shared, [alone, _, watcher]| {
        assert!(shared.idle.park(watcher.index, false, false).watcher);
        let mut watch = watcher.begin_watch();
        alone.count_poll();
        let start = watcher.now_ns();
        assert!(matches!(watcher.look_after_others(&mut watch), Look::Again));
        let was_quiet = matches!(watcher.look_after_others(&mut watch), Look::Quiet);
        let _tasks = fork(alone);
        drop(alone.slot.lifo.take().map(|task| alone.adopt(task)));
        let stays = matches!(watcher.look_after_others(&mut watch), Look::Again);
        in_time = watcher.now_ns() - start < STALL_NS;
        if in_time {
            assert!(was_quiet && stays);
            assert!(alone.is_attended(), "not for a millisecond yet");
        }
    });
    in_time
}

#[test]
fn looks_do_not_become_rare_in_a_crowd() {
    with_members(|shared, [alone, other, watcher]| {
        assert!(shared.idle.park(watcher.index, false, false).watcher);
        let _ = shared.idle.park(other.index, false, false);
        let _ = shared.idle.park(alone.index, false, true);
        let mut watch = watcher.begin_watch();
        for _ in 0..10 {
            alone.count_poll();
            assert!(matches!(watcher.look_after_others(&mut watch), Look::Again));
            assert!(watch.interval <= Duration::from_millis(4));
        }
    });
}

/// The end of a crowd while somebody watches, who has something to do: somebody else is told.
#[test]
fn the_end_of_a_crowd_shares_the_ring() {
    with_members(|shared, [alone, other, guest]| {
        assert!(shared.idle.park(guest.index, false, false).watcher);
        let _ = shared.idle.park(other.index, false, false);
        let _tasks = fork(alone);
        assert_eq!(alone.slot.ring.len(), 1);
        assert_eq!(shared.idle.load().parked(), 2, "nobody was woken");
        shared.set_crowd(false);
        assert_eq!(shared.idle.load().parked(), 1, "somebody was");
    });
}

#[test]
fn a_crowd_wakes_a_watcher_that_sleeps_for_long() {
    with_members(|shared, [alone, _, watcher]| {
        alone.share_ring();
        assert!(shared.idle.park(watcher.index, false, false).watcher);
        shared.sleep.set_drowsy();
        alone.attend();
        assert!(alone.is_attended());
        assert!(!shared.idle.is_parked(watcher.index), "it was woken");
    });
}

/// Its polls never stand still for long, but they are long.
#[test]
fn whose_polls_become_long_is_attended_no_longer() {
    assert!((0..100).any(|_| polls_become_long_in_time()), "it always takes too long");
}

/// False if two looks were not soon after each other: the system may stop the thread.
fn polls_become_long_in_time() -> bool {
    let mut in_time = false;
    with_members(|shared, [alone, _, watcher]| {
        assert!(shared.idle.park(watcher.index, false, false).watcher);
        let mut watch = watcher.begin_watch();
        let count = |polls: usize| (0..polls).for_each(|_| alone.count_poll());
        let mut look = || {
            assert!(matches!(watcher.look_after_others(&mut watch), Look::Again));
            alone.is_attended()
        };
        count(1);
        assert!(look(), "the first look has nothing to compare with");
        std::thread::sleep(Duration::from_millis(9));
        count(1_000_000);
        let start = watcher.now_ns();
        assert!(look());
        count(1);
        let is_attended = look();
        in_time = watcher.now_ns() - start < SPAN_NS;
        if in_time {
            assert!(is_attended, "not for long enough");
            std::thread::sleep(Duration::from_millis(9));
            count(10);
            assert!(!look());
        }
    });
    in_time
}

/// A fan-out of a kind that was quick, and computes now: another member helps.
#[test]
fn tasks_that_become_long_do_not_stay_on_one_member() {
    let mut waits: Vec<_> = (0..5).map(|_| until_another_helps()).collect();
    waits.sort();
    assert!(waits[2] < Duration::from_millis(30), "{waits:?}");
}

fn until_another_helps() -> Duration {
    let runtime = crowded();
    let (tell, told) = mpsc::channel();
    let task = runtime.spawn(async move {
        until_alone().await;
        let start = crate::time::Instant::now();
        let here = std::thread::current().id();
        let tasks: Vec<_> = (0..100)
            .map(|_| {
                let tell = tell.clone();
                crate::spawn(become_long(Some((here, start, tell))))
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    let waited = told.recv_timeout(Duration::from_secs(10)).expect("nobody helps");
    task.join().unwrap();
    waited
}

type Elsewhere = (std::thread::ThreadId, crate::time::Instant, mpsc::Sender<Duration>);

/// Tells when it runs on another thread, and takes long; or is quick.
async fn become_long(long: Option<Elsewhere>) {
    if let Some((here, start, tell)) = long {
        if std::thread::current().id() != here {
            let _ = tell.send(start.elapsed());
        }
        std::thread::sleep(Duration::from_micros(2_500));
    }
}

#[test]
fn who_stands_still_is_attended_no_longer() {
    with_members(|shared, [alone, other, watcher]| {
        let _ = shared.idle.park(other.index, false, false);
        assert!(
            shared.idle.park(watcher.index, false, false).watcher
                || shared.idle.load().has_watcher()
        );
        let _tasks = fork(alone);
        let mut watch = watcher.begin_watch();
        while alone.is_attended() {
            assert!(matches!(watcher.look_after_others(&mut watch), Look::Again | Look::Found(_)));
        }
        assert!(shared.has_work(false));
        assert_eq!(shared.idle.load().searching(), 1, "somebody was woken");
    });
}

#[test]
fn nobody_is_attended_after_a_shutdown() {
    with_members(|shared, [alone, _, watcher]| {
        assert!(shared.idle.park(watcher.index, false, false).watcher);
        let _tasks = fork(alone);
        assert!(!shared.has_work(false));
        shared.begin_shutdown();
        assert!(shared.has_work(false));
        shared.set_crowd(true);
        alone.attend();
        assert_eq!(word(shared), CLOSED);
    });
}

/// A runtime of two workers, in a crowd for good.
fn crowded() -> Runtime {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let shared = &runtime.handle().shared;
    // ORD relaxed: a worker that judges meanwhile finds no crowd: set again below.
    shared.crowd.due_ns.store(u64::MAX, Relaxed);
    drop(shared.crowd.judge.lock().unwrap().system.take());
    shared.set_crowd(true);
    runtime
}

/// Sends itself, or first waits until the others have done so.
async fn tell(others: usize, done: mpsc::Sender<()>, told: Option<mpsc::Receiver<()>>) {
    if let Some(told) = told {
        for _ in 0..others {
            told.recv_timeout(Duration::from_secs(20)).expect("the others have run meanwhile");
        }
        return;
    }
    let _ = done.send(());
}

/// The kind of `tell` is known to be quick, and the pace as well.
fn warm_up(runtime: &Runtime) {
    runtime.block_on(async {
        for _ in 0..20 {
            let tasks: Vec<_> =
                (0..64).map(|_| crate::spawn(tell(0, mpsc::channel().0, None))).collect();
            for task in tasks {
                task.await.unwrap();
            }
        }
    });
    // A worker may have been about to judge when the runtime was made.
    runtime.handle().shared.set_crowd(true);
}

/// A published defect of an earlier design: a ring was left to its member also while nobody watched.
#[test]
fn tasks_from_outside_do_not_wait_for_one_that_blocks() {
    let runtime = crowded();
    warm_up(&runtime);
    for _ in 0..20 {
        let (done, told) = mpsc::channel();
        let first = runtime.spawn(tell(3, done.clone(), Some(told)));
        let others = [0; 3].map(|_| runtime.spawn(tell(0, done.clone(), None)));
        first.join().unwrap();
        others.into_iter().for_each(|task| task.join().unwrap());
    }
}

/// Until the member that runs this keeps its ring to itself.
async fn until_alone() {
    crate::task::yield_now().await;
    for _ in 0..5_000 {
        let tasks: Vec<_> = (0..64).map(|_| crate::spawn(become_long(None))).collect();
        for task in tasks {
            task.await.unwrap();
        }
        let is_alone = context::current_worker(|worker| {
            let worker = worker.expect("a member");
            worker.is_attended()
                && worker.has_little_work()
                && worker.shared.idle.load().has_watcher()
        });
        if is_alone {
            return;
        }
    }
    panic!("it is never alone");
}

#[test]
fn what_a_task_has_spawned_does_not_wait_for_it() {
    let runtime = crowded();
    for _ in 0..20 {
        let task = runtime.spawn(async {
            until_alone().await;
            let (done, told) = mpsc::channel();
            let _tasks = [0; 3].map(|_| crate::spawn(tell(0, done.clone(), None)));
            for _ in 0..3 {
                told.recv_timeout(Duration::from_secs(20)).expect("they have run meanwhile");
            }
        });
        task.join().unwrap();
    }
}

/// Makes the calling member the attended one.
fn take_privilege() -> (Arc<Shared>, usize) {
    context::current_worker(|worker| {
        let worker = worker.expect("a member");
        worker.shared.crowd.word.store(attended(worker.index), Relaxed);
        (worker.shared.clone(), worker.index)
    })
}

#[test]
fn what_may_block_gives_the_privilege_up() {
    let runtime = crowded();
    let blocks = runtime.spawn(async {
        let (shared, _) = take_privilege();
        block_in_place(|| word(&shared))
    });
    assert_eq!(blocks.join().unwrap(), FREE);
    let joins = runtime.spawn(async {
        let child = crate::spawn(async {});
        let (shared, index) = take_privilege();
        // ORD relaxed: of this thread.
        let kind = || shared.slot(index).kind.load(Relaxed);
        let before = kind();
        child.join().unwrap();
        assert_eq!(kind(), before, "it is in that poll again");
        word(&shared)
    });
    assert_eq!(joins.join().unwrap(), FREE);
    let shared = runtime.block_on(async {
        // A guest, which it becomes by this.
        drop(crate::spawn(async {}));
        take_privilege().0
    });
    assert_eq!(word(&shared), FREE);
}
