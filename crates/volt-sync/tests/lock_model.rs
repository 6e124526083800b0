//! Locks and cells against naive models: random sequences of operations, cancellation included.
//!
//! After each step the wake-ups are those of the model, in its order, each by the latest waker of its
//! future, and none besides. The documents would allow wake-ups without a reason; on one thread, without
//! a budget, there are none.
#![allow(clippy::disallowed_types, reason = "a test")]

mod by_hand;

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use by_hand::{Running, Wakes, names, take};
use proptest::collection::vec;
use proptest::prelude::*;
use volt_sync::{
    Barrier, MappedMutexGuard, Mutex, MutexGuard, OnceCell, OwnedMutexGuard, OwnedRwLockReadGuard,
    OwnedRwLockWriteGuard, RwLock, RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard,
    SetError, SetOnce, SetOnceError,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
}

/// A lock, told naively; a mutex is one that is only written.
#[derive(Default)]
struct LockModel {
    max_readers: usize,
    readers: usize,
    writer: bool,
    waiting: VecDeque<(usize, Kind)>,
    /// Those that have the lock and do not know it yet.
    granted: Vec<usize>,
    woken: Vec<usize>,
}

impl LockModel {
    fn fits(&self, kind: Kind) -> bool {
        match kind {
            Kind::Read => !self.writer && self.readers < self.max_readers,
            Kind::Write => !self.writer && self.readers == 0,
        }
    }

    /// Somebody comes who does not wait. True if it has the lock.
    fn try_enter(&mut self, kind: Kind) -> bool {
        let enters = self.waiting.is_empty() && self.fits(kind);
        if enters {
            self.enter(kind);
        }
        enters
    }

    fn enter(&mut self, kind: Kind) {
        match kind {
            Kind::Read => self.readers += 1,
            Kind::Write => self.writer = true,
        }
    }

    fn leave(&mut self, kind: Kind) {
        match kind {
            Kind::Read => self.readers -= 1,
            Kind::Write => self.writer = false,
        }
        self.serve();
    }

    fn downgrade(&mut self) {
        self.writer = false;
        self.readers += 1;
        self.serve();
    }

    fn serve(&mut self) {
        while let Some(&(id, kind)) = self.waiting.front() {
            if !self.fits(kind) {
                return;
            }
            self.waiting.pop_front();
            self.enter(kind);
            self.granted.push(id);
            self.woken.push(id);
        }
    }

    fn cancel(&mut self, id: usize, kind: Kind) {
        if take(&mut self.granted, id) {
            self.leave(kind);
        } else {
            self.waiting.retain(|&(it, _)| it != id);
            self.serve();
        }
    }
}

enum Lock {
    Mutex(Arc<Mutex<usize>>),
    RwLock(Arc<RwLock<usize>>),
}

enum Guard<'a> {
    Mutex(MutexGuard<'a, usize>),
    MappedMutex(MappedMutexGuard<'a, usize>),
    OwnedMutex(OwnedMutexGuard<usize>),
    Read(RwLockReadGuard<'a, usize>),
    Write(RwLockWriteGuard<'a, usize>),
    MappedWrite(RwLockMappedWriteGuard<'a, usize>),
    OwnedRead(OwnedRwLockReadGuard<usize>),
    OwnedWrite(OwnedRwLockWriteGuard<usize>),
}

impl Lock {
    fn try_lock(&self, kind: Kind, owned: bool) -> Option<Guard<'_>> {
        match (self, kind, owned) {
            (Self::Mutex(lock), _, false) => lock.try_lock().ok().map(Guard::Mutex),
            (Self::Mutex(lock), _, true) => {
                lock.clone().try_lock_owned().ok().map(Guard::OwnedMutex)
            }
            (Self::RwLock(lock), Kind::Read, false) => lock.try_read().ok().map(Guard::Read),
            (Self::RwLock(lock), Kind::Read, true) => {
                lock.clone().try_read_owned().ok().map(Guard::OwnedRead)
            }
            (Self::RwLock(lock), Kind::Write, false) => lock.try_write().ok().map(Guard::Write),
            (Self::RwLock(lock), Kind::Write, true) => {
                lock.clone().try_write_owned().ok().map(Guard::OwnedWrite)
            }
        }
    }

    async fn lock(&self, kind: Kind, owned: bool) -> Guard<'_> {
        match (self, kind, owned) {
            (Self::Mutex(lock), _, false) => Guard::Mutex(lock.lock().await),
            (Self::Mutex(lock), _, true) => Guard::OwnedMutex(lock.clone().lock_owned().await),
            (Self::RwLock(lock), Kind::Read, false) => Guard::Read(lock.read().await),
            (Self::RwLock(lock), Kind::Read, true) => {
                Guard::OwnedRead(lock.clone().read_owned().await)
            }
            (Self::RwLock(lock), Kind::Write, false) => Guard::Write(lock.write().await),
            (Self::RwLock(lock), Kind::Write, true) => {
                Guard::OwnedWrite(lock.clone().write_owned().await)
            }
        }
    }
}

impl Guard<'_> {
    fn value(&self) -> usize {
        match self {
            Guard::Mutex(guard) => **guard,
            Guard::MappedMutex(guard) => **guard,
            Guard::OwnedMutex(guard) => **guard,
            Guard::Read(guard) => **guard,
            Guard::Write(guard) => **guard,
            Guard::MappedWrite(guard) => **guard,
            Guard::OwnedRead(guard) => **guard,
            Guard::OwnedWrite(guard) => **guard,
        }
    }

    fn write(&mut self) {
        *match self {
            Guard::Mutex(guard) => &mut **guard,
            Guard::MappedMutex(guard) => &mut **guard,
            Guard::OwnedMutex(guard) => &mut **guard,
            Guard::Write(guard) => &mut **guard,
            Guard::MappedWrite(guard) => &mut **guard,
            Guard::OwnedWrite(guard) => &mut **guard,
            Guard::Read(_) | Guard::OwnedRead(_) => return,
        } += 1;
    }

    fn can_downgrade(&self) -> bool {
        matches!(self, Guard::Write(_) | Guard::OwnedWrite(_))
    }

    fn downgrade(self) -> Self {
        match self {
            Guard::Write(guard) => Guard::Read(guard.downgrade()),
            Guard::OwnedWrite(guard) => Guard::OwnedRead(guard.downgrade()),
            other => other,
        }
    }

    fn map(self) -> Self {
        match self {
            Guard::Mutex(guard) => Guard::MappedMutex(MutexGuard::map(guard, |it| it)),
            Guard::Read(guard) => Guard::Read(RwLockReadGuard::map(guard, |it| it)),
            Guard::Write(guard) => Guard::MappedWrite(RwLockWriteGuard::map(guard, |it| it)),
            other => other,
        }
    }
}

#[derive(Clone, Debug)]
enum LockOp {
    Try(Kind, bool),
    Start(Kind, bool),
    Poll(usize, bool),
    Cancel(usize),
    Unlock(usize),
    Downgrade(usize),
    Map(usize),
}

fn lock_op() -> impl Strategy<Value = LockOp> {
    let kind = || prop_oneof![2 => Just(Kind::Read), 1 => Just(Kind::Write)];
    prop_oneof![
        3 => (kind(), any::<bool>()).prop_map(|(kind, owned)| LockOp::Try(kind, owned)),
        7 => (kind(), any::<bool>()).prop_map(|(kind, owned)| LockOp::Start(kind, owned)),
        6 => (0..8usize, any::<bool>()).prop_map(|(at, fresh)| LockOp::Poll(at, fresh)),
        3 => (0..8usize).prop_map(LockOp::Cancel),
        6 => (0..4usize).prop_map(LockOp::Unlock),
        2 => (0..4usize).prop_map(LockOp::Downgrade),
        1 => (0..4usize).prop_map(LockOp::Map),
    ]
}

#[expect(clippy::too_many_lines, reason = "one arm for each operation")]
fn run_lock(lock: &Lock, max_readers: usize, ops: &[LockOp]) {
    let wakes = Arc::new(Wakes::default());
    let only = |kind| if let Lock::Mutex(_) = lock { Kind::Write } else { kind };
    let mut model = LockModel { max_readers, ..LockModel::default() };
    let mut value = 0;
    let mut running: Vec<Running<'_, (Guard<'_>, Kind)>> = Vec::new();
    let mut kinds: Vec<Kind> = Vec::new();
    let mut held: Vec<(Guard<'_>, Kind)> = Vec::new();
    for (id, op) in ops.iter().enumerate() {
        let before = held.len();
        match *op {
            LockOp::Try(kind, owned) => {
                let kind = only(kind);
                let guard = lock.try_lock(kind, owned);
                assert_eq!(guard.is_some(), model.try_enter(kind));
                held.extend(guard.map(|guard| (guard, kind)));
            }
            LockOp::Start(kind, owned) => {
                let kind = only(kind);
                let future = async move { (lock.lock(kind, owned).await, kind) };
                let mut waiter = Running::new(id, &wakes, future);
                match waiter.poll(false) {
                    Poll::Ready(guard) => {
                        assert!(model.try_enter(kind), "past the queue");
                        held.push(guard);
                    }
                    Poll::Pending => {
                        assert!(!model.try_enter(kind), "it was free");
                        model.waiting.push_back((id, kind));
                        running.push(waiter);
                        kinds.push(kind);
                    }
                }
            }
            LockOp::Poll(at, fresh) if at < running.len() => {
                let granted = take(&mut model.granted, running[at].id());
                match running[at].poll(fresh) {
                    Poll::Ready(guard) => {
                        assert!(granted, "out of order");
                        held.push(guard);
                        running.remove(at);
                        kinds.remove(at);
                    }
                    Poll::Pending => assert!(!granted, "it has the lock"),
                }
            }
            LockOp::Cancel(at) if at < running.len() => {
                model.cancel(running.remove(at).id(), kinds.remove(at));
            }
            LockOp::Unlock(at) if at < held.len() => {
                let (guard, kind) = held.swap_remove(at);
                drop(guard);
                model.leave(kind);
            }
            LockOp::Downgrade(at) if at < held.len() && held[at].0.can_downgrade() => {
                let (guard, _) = held.swap_remove(at);
                held.push((guard.downgrade(), Kind::Read));
                model.downgrade();
            }
            LockOp::Map(at) if at < held.len() => {
                let (guard, kind) = held.swap_remove(at);
                held.push((guard.map(), kind));
            }
            _ => {}
        }
        // A new writer writes, and everybody reads what was written last.
        if held.len() > before && held[before].1 == Kind::Write {
            held[before].0.write();
            value += 1;
        }
        for (guard, _) in &held {
            assert_eq!(guard.value(), value);
        }
        let woken = std::mem::take(&mut model.woken);
        assert_eq!(wakes.take(), names(&woken, &running), "step {id}: {op:?}");
    }
    drop(running);
    drop(held);
    assert!(lock.try_lock(Kind::Write, false).is_some(), "all have gone");
    assert_eq!(wakes.count(), 0, "wakers are left");
}

#[derive(Clone, Debug)]
enum WaitOp {
    Start,
    Poll(usize, bool),
    Cancel(usize),
    /// Only for a cell.
    Set,
}

fn wait_op() -> impl Strategy<Value = WaitOp> {
    prop_oneof![
        12 => Just(WaitOp::Start),
        12 => (0..8usize, any::<bool>()).prop_map(|(at, fresh)| WaitOp::Poll(at, fresh)),
        5 => (0..8usize).prop_map(WaitOp::Cancel),
        1 => Just(WaitOp::Set),
    ]
}

fn run_barrier(n: usize, ops: &[WaitOp]) {
    let wakes = Arc::new(Wakes::default());
    let barrier = Barrier::new(n);
    let mut running: Vec<Running<'_, _>> = Vec::new();
    // The model: who has arrived, in order, and who was let through and does not know it yet.
    let (mut arrived, mut open) = (Vec::new(), Vec::new());
    for (id, op) in ops.iter().enumerate() {
        let mut woken = Vec::new();
        match *op {
            WaitOp::Start => {
                let mut waiter = Running::new(id, &wakes, barrier.wait());
                let last = arrived.len() + 1 >= n;
                match waiter.poll(false) {
                    Poll::Ready(result) => {
                        assert!(last && result.is_leader());
                        woken = std::mem::take(&mut arrived);
                        open.extend(&woken);
                    }
                    Poll::Pending => {
                        assert!(!last);
                        arrived.push(id);
                        running.push(waiter);
                    }
                }
            }
            WaitOp::Poll(at, fresh) if at < running.len() => {
                let opened = take(&mut open, running[at].id());
                match running[at].poll(fresh) {
                    Poll::Ready(result) => {
                        assert!(opened && !result.is_leader());
                        running.remove(at);
                    }
                    Poll::Pending => assert!(!opened),
                }
            }
            WaitOp::Cancel(at) if at < running.len() => {
                let id = running.remove(at).id();
                // Its arrival is taken back, unless the barrier has opened for it.
                let _ = take(&mut arrived, id) || take(&mut open, id);
            }
            _ => {}
        }
        assert_eq!(wakes.take(), names(&woken, &running), "step {id}: {op:?}");
    }
    drop(running);
    assert_eq!(wakes.count(), 0, "wakers are left");
}

fn run_set_once(ops: &[WaitOp]) {
    let wakes = Arc::new(Wakes::default());
    let cell = SetOnce::new();
    let mut running: Vec<Running<'_, &usize>> = Vec::new();
    // The model: the value, and who waits, in order.
    let (mut value, mut waiting) = (None, Vec::new());
    for (id, op) in ops.iter().enumerate() {
        let mut woken = Vec::new();
        match *op {
            WaitOp::Start => {
                let mut waiter = Running::new(id, &wakes, cell.wait());
                match (waiter.poll(false), value) {
                    (Poll::Ready(got), Some(value)) => assert_eq!(*got, value),
                    (Poll::Pending, None) => {
                        waiting.push(id);
                        running.push(waiter);
                    }
                    (polled, value) => panic!("{polled:?}, and the value is {value:?}"),
                }
            }
            WaitOp::Poll(at, fresh) if at < running.len() => {
                match (running[at].poll(fresh), value) {
                    (Poll::Ready(got), Some(value)) => {
                        assert_eq!(*got, value);
                        running.remove(at);
                    }
                    (polled, value) => assert!(polled.is_pending() && value.is_none()),
                }
            }
            WaitOp::Cancel(at) if at < running.len() => {
                take(&mut waiting, running.remove(at).id());
            }
            WaitOp::Set => {
                let expected = if value.is_none() { Ok(()) } else { Err(SetOnceError(id)) };
                assert_eq!(cell.set(id), expected);
                value = value.or(Some(id));
                woken = std::mem::take(&mut waiting);
            }
            _ => {}
        }
        assert_eq!(cell.get(), value.as_ref());
        assert_eq!(wakes.take(), names(&woken, &running), "step {id}: {op:?}");
    }
    drop(running);
    assert_eq!(wakes.count(), 0, "wakers are left");
}

/// `OnceCell`, told naively.
#[derive(Default)]
struct OnceModel {
    value: Option<usize>,
    /// Who may run its function, or does.
    makes: Option<usize>,
    waiting: VecDeque<usize>,
    /// Those that were woken since the value is there.
    done: Vec<usize>,
    woken: Vec<usize>,
}

impl OnceModel {
    /// Whoever made the value has none.
    fn next(&mut self) {
        self.makes = self.waiting.pop_front();
        self.woken.extend(self.makes);
    }

    fn fill(&mut self, value: usize) {
        self.value = Some(value);
        self.makes = None;
        self.woken.extend(self.waiting.drain(..));
        self.done.extend(&self.woken);
    }

    /// `id` runs its function, as far as `answer` lets it.
    fn make(&mut self, id: usize, answer: Option<bool>) -> Poll<Result<usize, usize>> {
        assert_eq!(self.makes, Some(id));
        match answer {
            None => return Poll::Pending,
            Some(true) => self.fill(id),
            Some(false) => self.next(),
        }
        Poll::Ready(if answer == Some(true) { Ok(id) } else { Err(id) })
    }

    fn start(&mut self, id: usize, answer: Option<bool>) -> Poll<Result<usize, usize>> {
        if let Some(value) = self.value {
            return Poll::Ready(Ok(value));
        }
        if self.makes.is_none() {
            self.makes = Some(id);
            return self.make(id, answer);
        }
        self.waiting.push_back(id);
        Poll::Pending
    }

    fn poll(&mut self, id: usize, answer: Option<bool>) -> Poll<Result<usize, usize>> {
        if take(&mut self.done, id) {
            return Poll::Ready(Ok(self.value.expect("that is why it was woken")));
        }
        if self.makes == Some(id) { self.make(id, answer) } else { Poll::Pending }
    }

    fn cancel(&mut self, id: usize) {
        if self.makes == Some(id) {
            return self.next();
        }
        take(&mut self.done, id);
        self.waiting.retain(|&it| it != id);
    }

    fn set(&mut self, value: usize) -> Result<(), SetError<usize>> {
        if self.value.is_some() {
            return Err(SetError::AlreadyInitializedError(value));
        }
        if self.makes.is_some() {
            return Err(SetError::InitializingError(value));
        }
        self.fill(value);
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum OnceOp {
    /// With a function that waits for its answer, or has it already.
    Start(Option<bool>),
    /// Whether a function that waits succeeds.
    Answer(usize, bool),
    Poll(usize, bool),
    Cancel(usize),
    Set,
}

fn once_op() -> impl Strategy<Value = OnceOp> {
    let answer = prop_oneof![12 => Just(None), 1 => Just(Some(true)), 3 => Just(Some(false))];
    prop_oneof![
        8 => answer.prop_map(OnceOp::Start),
        3 => (0..6usize, prop_oneof![1 => Just(true), 3 => Just(false)])
            .prop_map(|(at, ok)| OnceOp::Answer(at, ok)),
        8 => (0..6usize, any::<bool>()).prop_map(|(at, fresh)| OnceOp::Poll(at, fresh)),
        5 => (0..6usize).prop_map(OnceOp::Cancel),
        1 => Just(OnceOp::Set),
    ]
}

/// Makes the value `id`, or fails with it, once there is an answer.
fn maker<'a>(
    cell: &'a OnceCell<usize>,
    id: usize,
    answer: Rc<Cell<Option<bool>>>,
) -> Pin<Box<dyn Future<Output = Result<usize, usize>> + 'a>> {
    let made = move || {
        poll_fn(move |_| match answer.get() {
            None => Poll::Pending,
            Some(ok) => Poll::Ready(if ok { Ok(id) } else { Err(id) }),
        })
    };
    Box::pin(async move { cell.get_or_try_init(made).await.copied() })
}

fn run_once(ops: &[OnceOp]) {
    let wakes = Arc::new(Wakes::default());
    let cell = OnceCell::new();
    let mut model = OnceModel::default();
    let mut running: Vec<Running<'_, Result<usize, usize>>> = Vec::new();
    let mut answers: Vec<Rc<Cell<Option<bool>>>> = Vec::new();
    for (id, op) in ops.iter().enumerate() {
        match *op {
            OnceOp::Start(answer) => {
                let shared = Rc::new(Cell::new(answer));
                let mut maker = Running::new(id, &wakes, maker(&cell, id, shared.clone()));
                let polled = maker.poll(false);
                assert_eq!(polled, model.start(id, answer));
                if polled.is_pending() {
                    running.push(maker);
                    answers.push(shared);
                }
            }
            OnceOp::Answer(at, ok) if at < running.len() => answers[at].set(Some(ok)),
            OnceOp::Poll(at, fresh) if at < running.len() => {
                let polled = running[at].poll(fresh);
                assert_eq!(polled, model.poll(running[at].id(), answers[at].get()));
                if polled.is_ready() {
                    running.remove(at);
                    answers.remove(at);
                }
            }
            OnceOp::Cancel(at) if at < running.len() => {
                answers.remove(at);
                model.cancel(running.remove(at).id());
            }
            OnceOp::Set => assert_eq!(cell.set(id), model.set(id)),
            _ => {}
        }
        assert_eq!(cell.get(), model.value.as_ref());
        let woken = std::mem::take(&mut model.woken);
        assert_eq!(wakes.take(), names(&woken, &running), "step {id}: {op:?}");
    }
    drop(running);
    assert_eq!(wakes.count(), 0, "wakers are left");
}

proptest! {
    #[test]
    fn a_mutex_does_what_the_model_does(ops in vec(lock_op(), 1..160)) {
        run_lock(&Lock::Mutex(Arc::new(Mutex::new(0))), 0, &ops);
    }

    #[test]
    fn an_rwlock_does_what_the_model_does(max in 1..5u32, ops in vec(lock_op(), 1..160)) {
        let lock = Lock::RwLock(Arc::new(RwLock::with_max_readers(0, max)));
        run_lock(&lock, max as usize, &ops);
    }

    #[test]
    fn a_barrier_does_what_the_model_does(n in 0..6usize, ops in vec(wait_op(), 1..120)) {
        run_barrier(n, &ops);
    }

    #[test]
    fn a_once_cell_does_what_the_model_does(ops in vec(once_op(), 1..80)) {
        run_once(&ops);
    }

    #[test]
    fn a_set_once_does_what_the_model_does(ops in vec(wait_op(), 1..80)) {
        run_set_once(&ops);
    }
}
