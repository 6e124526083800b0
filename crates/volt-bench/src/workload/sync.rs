//! Locks and friends on one thread: the path without a wait.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::hint::black_box;
use std::task::Waker;

use crate::bench::Bench;
use crate::kind::{Gate, Lock, Once, Permits, SharedLock, Signal, WakerPlace, block_on};
use crate::peers::locks::{AsyncLockSemaphore, BareFlag, BarePair};
use crate::registry::Row;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = locks();
    rows.extend(others());
    rows.extend(waiters());
    rows
}

fn locks() -> Vec<Row> {
    type TokioMutex = tokio::sync::Mutex<u64>;
    type TokioRwLock = tokio::sync::RwLock<u64>;
    vec![
        Row::new("sync/mutex_try", "Mutex: try_lock, unlock")
            .headline()
            .countable()
            .volt("volt", mutex_try::<volt_sync::Mutex<u64>>)
            .peer("tokio", mutex_try::<TokioMutex>)
            .peer("async-lock", mutex_try::<async_lock::Mutex<u64>>)
            .peer("asyncband", mutex_try::<asyncband::mutex::Mutex<u64>>)
            .floor("parking_lot", mutex_try::<parking_lot::Mutex<u64>>)
            .floor("std", mutex_try::<std::sync::Mutex<u64>>)
            .floor("cas pair", mutex_try::<BarePair>),
        Row::new("sync/mutex_lock", "Mutex: lock().await, unlock")
            .headline()
            .countable()
            .volt("volt", mutex_lock::<volt_sync::Mutex<u64>>)
            .peer("tokio", mutex_lock::<TokioMutex>)
            .peer("async-lock", mutex_lock::<async_lock::Mutex<u64>>)
            .peer("asyncband", mutex_lock::<asyncband::mutex::Mutex<u64>>)
            .floor("parking_lot", mutex_lock::<parking_lot::Mutex<u64>>)
            .floor("cas pair", mutex_lock::<BarePair>),
        Row::new("sync/rwlock_try_read", "RwLock: try_read, unlock")
            .headline()
            .countable()
            .volt("volt", try_read::<volt_sync::RwLock<u64>>)
            .peer("tokio", try_read::<TokioRwLock>)
            .peer("async-lock", try_read::<async_lock::RwLock<u64>>)
            .peer("asyncband", try_read::<asyncband::rwlock::RwLock<u64>>)
            .floor("parking_lot", try_read::<parking_lot::RwLock<u64>>)
            .floor("std", try_read::<std::sync::RwLock<u64>>),
        Row::new("sync/rwlock_try_write", "RwLock: try_write, unlock")
            .headline()
            .countable()
            .volt("volt", try_write::<volt_sync::RwLock<u64>>)
            .peer("tokio", try_write::<TokioRwLock>)
            .peer("async-lock", try_write::<async_lock::RwLock<u64>>)
            .peer("asyncband", try_write::<asyncband::rwlock::RwLock<u64>>)
            .floor("parking_lot", try_write::<parking_lot::RwLock<u64>>)
            .floor("std", try_write::<std::sync::RwLock<u64>>),
        Row::new("sync/rwlock_read", "RwLock: read().await, unlock")
            .countable()
            .volt("volt", read::<volt_sync::RwLock<u64>>)
            .peer("tokio", read::<TokioRwLock>)
            .peer("async-lock", read::<async_lock::RwLock<u64>>)
            .peer("asyncband", read::<asyncband::rwlock::RwLock<u64>>)
            .floor("parking_lot", read::<parking_lot::RwLock<u64>>),
        Row::new("sync/semaphore_try", "Semaphore: try_acquire, release")
            .headline()
            .countable()
            .volt("volt", semaphore_try::<volt_sync::Semaphore>)
            .peer("tokio", semaphore_try::<tokio::sync::Semaphore>)
            .peer("async-lock", semaphore_try::<AsyncLockSemaphore>)
            .peer("asyncband", semaphore_try::<asyncband::semaphore::Semaphore>),
        Row::new("sync/semaphore_acquire", "Semaphore: acquire().await, release")
            .countable()
            .volt("volt", semaphore_acquire::<volt_sync::Semaphore>)
            .peer("tokio", semaphore_acquire::<tokio::sync::Semaphore>)
            .peer("async-lock", semaphore_acquire::<AsyncLockSemaphore>)
            .peer("asyncband", semaphore_acquire::<asyncband::semaphore::Semaphore>),
    ]
}

fn others() -> Vec<Row> {
    type TokioCell = tokio::sync::OnceCell<u64>;
    vec![
        Row::new("sync/oncecell_get", "OnceCell: get")
            .countable()
            .volt("volt", cell_get::<volt_sync::OnceCell<u64>>)
            .peer("tokio", cell_get::<TokioCell>)
            .peer("async-lock", cell_get::<async_lock::OnceCell<u64>>)
            .peer("asyncband", cell_get::<asyncband::once::OnceCell<u64>>)
            .floor("std", cell_get::<std::sync::OnceLock<u64>>),
        Row::new("sync/oncecell_set", "OnceCell: new, set")
            .headline()
            .countable()
            .volt("volt", cell_set::<volt_sync::OnceCell<u64>>)
            .peer("tokio", cell_set::<TokioCell>)
            .peer("async-lock", cell_set::<async_lock::OnceCell<u64>>)
            .peer("asyncband", cell_set::<asyncband::once::OnceCell<u64>>)
            .floor("std", cell_set::<std::sync::OnceLock<u64>>),
        Row::new("sync/notify", "Notify: notify_one, notified().await")
            .headline()
            .countable()
            .volt("volt", notify::<volt_sync::Notify>)
            .peer("tokio", notify::<tokio::sync::Notify>)
            .peer("asyncband", notify::<asyncband::event::AutoResetEvent>)
            .floor("flag", notify::<BareFlag>),
        Row::new("sync/barrier", "Barrier of one: wait().await")
            .countable()
            .volt("volt", barrier::<volt_sync::Barrier>)
            .peer("tokio", barrier::<tokio::sync::Barrier>)
            .peer("async-lock", barrier::<async_lock::Barrier>)
            .peer("asyncband", barrier::<asyncband::barrier::Barrier>),
    ]
}

fn waiters() -> Vec<Row> {
    type Slot = volt_sync::internal::WaiterSlot;
    type ParkingLotList = parking_lot::Mutex<VecDeque<Waker>>;
    type StdList = std::sync::Mutex<VecDeque<Waker>>;
    const NOTE: &str = "A building block that is not public: where the owner of a JoinSet or a pool's joiner \
                        leaves its waker. The waker does nothing, so this is what the place costs. The \
                        lists are double-ended queues behind a lock; they would take several waiters.";
    vec![
        Row::new("sync/waiter_wake", "One waiter: leave the waker, wake it")
            .countable()
            .volt("volt", waiter_wake::<Slot>)
            .peer("atomic-waker", waiter_wake::<atomic_waker::AtomicWaker>)
            .peer("parking_lot list", waiter_wake::<ParkingLotList>)
            .peer("std list", waiter_wake::<StdList>)
            .note(NOTE),
        Row::new("sync/waiter_none", "No waiter: wake")
            .countable()
            .volt("volt", waiter_none::<Slot>)
            .peer("atomic-waker", waiter_none::<atomic_waker::AtomicWaker>)
            .peer("parking_lot list", waiter_none::<ParkingLotList>)
            .peer("std list", waiter_none::<StdList>)
            .note(NOTE),
    ]
}

fn mutex_try<M: Lock>(b: &mut Bench) {
    let mutex = M::create();
    let mutex = black_box(&mutex);
    let mut total = 0;
    b.iter(|n| {
        for _ in 0..n {
            assert!(mutex.try_bump(), "nobody holds it");
        }
        total += n;
    });
    assert_eq!(mutex.count(), total);
}

fn mutex_lock<M: Lock>(b: &mut Bench) {
    let mutex = M::create();
    let mutex = black_box(&mutex);
    let mut total = 0;
    b.iter(|n| {
        block_on(async {
            for _ in 0..n {
                mutex.bump().await;
            }
        });
        total += n;
    });
    assert_eq!(mutex.count(), total);
}

fn try_read<L: SharedLock>(b: &mut Bench) {
    let lock = L::create();
    assert!(lock.try_bump());
    let lock = black_box(&lock);
    b.iter(|n| {
        for _ in 0..n {
            assert_eq!(lock.try_peek(), Some(1));
        }
    });
    assert!(lock.try_bump(), "every reader has left");
}

fn try_write<L: SharedLock>(b: &mut Bench) {
    let lock = L::create();
    let lock = black_box(&lock);
    let mut total = 0;
    b.iter(|n| {
        for _ in 0..n {
            assert!(lock.try_bump(), "nobody holds it");
        }
        total += n;
    });
    assert_eq!(lock.try_peek(), Some(total));
}

fn read<L: SharedLock>(b: &mut Bench) {
    let lock = L::create();
    assert!(lock.try_bump());
    let lock = black_box(&lock);
    b.iter(|n| {
        let sum = block_on(async {
            let mut sum = 0;
            for _ in 0..n {
                sum += lock.peek().await;
            }
            sum
        });
        assert_eq!(sum, n);
    });
    assert!(lock.try_bump(), "every reader has left");
}

fn semaphore_try<S: Permits>(b: &mut Bench) {
    let semaphore = S::create(2);
    let semaphore = black_box(&semaphore);
    b.iter(|n| {
        for _ in 0..n {
            assert!(semaphore.try_pass(), "there are permits");
        }
    });
    assert_eq!(semaphore.available(), 2);
}

fn semaphore_acquire<S: Permits>(b: &mut Bench) {
    let semaphore = S::create(2);
    let semaphore = black_box(&semaphore);
    b.iter(|n| {
        block_on(async {
            for _ in 0..n {
                semaphore.pass().await;
            }
        });
    });
    assert_eq!(semaphore.available(), 2);
}

/// Reads in one round of the loop, so that it unrolls: a read is a load and a branch, and a loop around
/// one of them takes 1.5 or 2 cycles by where the linker has put it, for the same instructions.
const READS: u64 = 16;

fn cell_get<C: Once>(b: &mut Bench) {
    let cell = C::create();
    assert!(block_on(cell.set(7)));
    b.iter_ops(READS, |n| {
        for _ in 0..n {
            let mut sum = 0;
            for _ in 0..READS {
                sum += black_box(&cell).get().expect("set above");
            }
            assert_eq!(sum, 7 * READS);
        }
    });
}

fn cell_set<C: Once>(b: &mut Bench) {
    b.iter(|n| {
        block_on(async {
            for i in 0..n {
                let cell = C::create();
                assert!(black_box(&cell).set(i).await);
                assert_eq!(cell.get(), Some(i));
            }
        });
    });
}

fn notify<S: Signal>(b: &mut Bench) {
    let signal = S::create();
    let signal = black_box(&signal);
    b.iter(|n| {
        block_on(async {
            for _ in 0..n {
                signal.notify();
                signal.wait().await;
            }
        });
    });
}

fn barrier<G: Gate>(b: &mut Bench) {
    let gate = G::create(1);
    let gate = black_box(&gate);
    b.iter(|n| {
        block_on(async {
            for _ in 0..n {
                assert!(gate.pass().await, "the only one leads");
            }
        });
    });
}

fn waiter_wake<P: WakerPlace>(b: &mut Bench) {
    let mut place = P::create();
    let place = black_box(&mut place);
    let waker = black_box(Waker::noop());
    b.iter(|n| {
        for _ in 0..n {
            place.register(waker);
            place.take().expect("just registered").wake();
        }
    });
}

fn waiter_none<P: WakerPlace>(b: &mut Bench) {
    let place = P::create();
    let place = black_box(&place);
    b.iter(|n| {
        for _ in 0..n {
            assert!(place.take().is_none(), "nobody has registered");
        }
    });
}
