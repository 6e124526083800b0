// Plays a program by the names of both runtimes; see `random_programs.rs`.

use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as Cell, PoisonError};
use std::time::Duration;

use rt::sync::{
    Mutex, Notify, OnceCell, OwnedMutexGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard,
    OwnedSemaphorePermit, RwLock, Semaphore, TryAcquireError, broadcast, mpsc, oneshot, watch,
};
use rt::task::{JoinError, JoinHandle, JoinSet, LocalSet, yield_now};
use rt::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until, timeout_at};

use crate::{Act, Event, Missed, Op, Program, Wait};

/// As many tasks there may be. Each one has two milliseconds of its own in a round: in one it alone goes on by itself, in
/// the other it alone gives up.
const TASKS: u64 = 16;
const ROUND: u64 = 2 * TASKS;
const ROUNDS: u64 = 100;

/// What whoever waits with it takes out of its place for that time.
struct Place<T>(Cell<Option<T>>);

struct Taken<'p, T> {
    place: &'p Place<T>,
    item: Option<T>,
}

impl<T> Place<T> {
    fn empty() -> Self {
        Self(Cell::new(None))
    }

    fn of(item: T) -> Self {
        Self(Cell::new(Some(item)))
    }

    fn put(&self, item: T) {
        drop(lock(&self.0).replace(item));
    }

    fn clear(&self) {
        let item = lock(&self.0).take();
        drop(item);
    }

    fn take(&self) -> Option<Taken<'_, T>> {
        let item = lock(&self.0).take()?;
        Some(Taken { place: self, item: Some(item) })
    }
}

impl<T> Taken<'_, T> {
    /// It stays out for good.
    fn keep(mut self) -> Option<T> {
        self.item.take()
    }
}

impl<T> Deref for Taken<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.item.as_ref().expect("taken")
    }
}

impl<T> DerefMut for Taken<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.item.as_mut().expect("taken")
    }
}

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            self.place.put(item);
        }
    }
}

fn lock<T>(cell: &Cell<T>) -> std::sync::MutexGuard<'_, T> {
    cell.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all tasks share.
struct World {
    start: Instant,
    is_local: bool,
    next_id: AtomicU64,
    events: Cell<Vec<Event>>,
    mutexes: [Arc<Mutex<u32>>; 2],
    rwlocks: [Arc<RwLock<u32>>; 2],
    semaphores: [Arc<Semaphore>; 2],
    notifies: [Notify; 2],
    cells: [OnceCell<u64>; 2],
    senders: [Cell<Option<mpsc::Sender<u32>>>; 2],
    receivers: [Place<mpsc::Receiver<u32>>; 2],
    unbounded: mpsc::UnboundedSender<u32>,
    from_unbounded: Place<mpsc::UnboundedReceiver<u32>>,
    broadcast: broadcast::Sender<u32>,
    watched: watch::Sender<u32>,
    asked: Cell<Vec<oneshot::Sender<u32>>>,
}

impl World {
    fn new(is_local: bool) -> Arc<Self> {
        let (senders, receivers): (Vec<_>, Vec<_>) = [1, 3].map(mpsc::channel).into_iter().unzip();
        let (unbounded, from_unbounded) = mpsc::unbounded_channel();
        let mut receivers = receivers.into_iter().map(Place::of);
        let mut senders = senders.into_iter().map(|sender| Cell::new(Some(sender)));
        Arc::new(Self {
            start: Instant::now(),
            is_local,
            next_id: AtomicU64::new(0),
            events: Cell::default(),
            mutexes: Default::default(),
            rwlocks: Default::default(),
            semaphores: [2, 3].map(|permits| Arc::new(Semaphore::new(permits))),
            notifies: Default::default(),
            cells: Default::default(),
            senders: [(); 2].map(|()| senders.next().expect("two")),
            receivers: [(); 2].map(|()| receivers.next().expect("two")),
            unbounded,
            from_unbounded: Place::of(from_unbounded),
            broadcast: broadcast::channel(2).0,
            watched: watch::channel(0).0,
            asked: Cell::default(),
        })
    }

    fn ms(&self) -> u64 {
        let elapsed = Instant::now() - self.start;
        assert_eq!(elapsed.subsec_nanos() % 1_000_000, 0, "all is done at whole milliseconds");
        elapsed.as_millis() as u64
    }

    fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    fn sender(&self, channel: usize) -> Option<mpsc::Sender<u32>> {
        lock(&self.senders[channel]).clone()
    }
}

/// What a task has for itself.
struct Me {
    world: Arc<World>,
    id: u64,
    held: Cell<Vec<Held>>,
    children: Cell<Vec<Arc<Place<JoinHandle<u64>>>>>,
    set: Place<JoinSet<u64>>,
    broadcast: Place<broadcast::Receiver<u32>>,
    watched: Place<watch::Receiver<u32>>,
    answer: Place<oneshot::Receiver<u32>>,
    ticks: Place<Interval>,
}

enum Held {
    Mutex(#[allow(dead_code, reason = "held")] OwnedMutexGuard<u32>),
    Read(#[allow(dead_code, reason = "held")] OwnedRwLockReadGuard<u32>),
    Write(OwnedRwLockWriteGuard<u32>),
    Permit(OwnedSemaphorePermit),
    Place(mpsc::OwnedPermit<u32>),
}

impl Me {
    /// When this task goes on by itself, the `rounds`th time after the next one.
    fn later(&self, rounds: u64) -> Instant {
        self.next(self.id, rounds)
    }

    /// When it gives up.
    fn limit(&self, rounds: u64) -> Instant {
        self.next(TASKS + self.id, rounds)
    }

    fn next(&self, place: u64, rounds: u64) -> Instant {
        let round = (self.world.ms() + ROUND - place) / ROUND;
        self.world.at((round + rounds) * ROUND + place)
    }

    fn note(&self, what: String) {
        lock(&self.world.events).push(Event { ms: self.world.ms(), task: self.id, what });
    }

    fn hold(&self, held: Held) {
        lock(&self.held).push(held);
    }

    fn let_go(&self, index: usize) -> Option<Held> {
        let mut held = lock(&self.held);
        (!held.is_empty()).then(|| index % held.len()).map(|index| held.remove(index))
    }

    fn child(&self, index: usize) -> Option<Arc<Place<JoinHandle<u64>>>> {
        let children = lock(&self.children);
        (!children.is_empty()).then(|| Arc::clone(&children[index % children.len()]))
    }

    /// A future that plays `ops`, and how to be told of it; none if there are enough tasks.
    fn begin(world: &Arc<World>, ops: &[Op]) -> Option<Pin<Box<dyn Future<Output = u64> + Send>>> {
        // ORD relaxed: tasks are made one after the other.
        let id = world.next_id.fetch_add(1, Ordering::Relaxed);
        let me = Self {
            world: Arc::clone(world),
            id,
            held: Cell::default(),
            children: Cell::default(),
            set: Place::of(JoinSet::new()),
            broadcast: Place::empty(),
            watched: Place::empty(),
            answer: Place::empty(),
            ticks: Place::empty(),
        };
        (id < TASKS).then(|| Box::pin(play_task(me, ops.to_vec())) as _)
    }
}

/// Notes when the future of a task was dropped.
impl Drop for Me {
    fn drop(&mut self) {
        self.note("gone".to_owned());
    }
}

async fn play_task(me: Me, ops: Vec<Op>) -> u64 {
    let mut is_panic = false;
    sleep_until(me.later(0)).await;
    for op in ops {
        is_panic = matches!(op, Op::Do(Act::Panic));
        if is_panic {
            break;
        }
        me.play(op).await;
    }
    // One after the other, so that one waiter at a time is woken.
    while me.let_go(0).is_some() {
        sleep_until(me.later(0)).await;
    }
    if is_panic {
        resume_unwind(Box::new(me.id));
    }
    me.id
}

impl Me {
    async fn play(&self, op: Op) {
        let what = match op {
            Op::Do(act) => self.act(act),
            Op::Wait(what, None) => self.wait(what).await,
            Op::Wait(what, Some(limit)) => {
                let what = timeout_at(self.limit(limit), self.wait(what)).await;
                what.unwrap_or_else(|_| "too late".to_owned())
            }
            Op::Either(one, other, limit) => rt::select! {
                biased;
                what = self.wait(one) => what,
                what = self.wait(other) => format!("the other: {what}"),
                () = sleep_until(self.limit(limit)) => "neither".to_owned(),
            },
            Op::Both(one, other, limit) => {
                let other = rt::task::unconstrained(self.wait(other));
                let both = async { rt::join!(self.wait(one), other) };
                let what = timeout_at(self.limit(limit), both).await;
                what.map_or_else(|_| "too late".to_owned(), |what| format!("{what:?}"))
            }
        };
        self.note(what);
        sleep_until(self.later(0)).await;
    }
}

fn lagged(error: broadcast::error::RecvError) -> u64 {
    match error {
        broadcast::error::RecvError::Closed => 0,
        broadcast::error::RecvError::Lagged(messages) => messages,
    }
}

fn joined(result: Result<u64, JoinError>) -> String {
    match result {
        Ok(id) => format!("task {id} has ended"),
        Err(error) => format!("cancelled {}, panicked {}", error.is_cancelled(), error.is_panic()),
    }
}

/// Plays all tasks, and gives what has happened and what is left.
pub(crate) async fn play(program: Program) -> Vec<Event> {
    let world = World::new(program.is_local);
    let spawn = |ops: &Vec<Op>| {
        let task = Me::begin(&world, ops).expect("few");
        if world.is_local { rt::task::spawn_local(task) } else { rt::spawn(task) }
    };
    let tasks: Vec<_> = program.tasks.iter().map(spawn).collect();
    sleep_until(world.at(ROUND * ROUNDS - 1)).await;
    let mut events = std::mem::take(&mut *lock(&world.events));
    events.sort_by_key(|event| (event.ms, event.task));
    let left = |task: &JoinHandle<u64>| if task.is_finished() { "finished" } else { "waits" };
    events.extend(tasks.iter().zip(0..).map(|(task, id)| Event {
        ms: u64::MAX,
        task: id,
        what: left(task).to_owned(),
    }));
    events
}

/// As [`play`], on one thread, on which there may be local tasks.
pub(crate) async fn play_here(program: Program) -> Vec<Event> {
    if program.is_local {
        LocalSet::new().run_until(play(program)).await
    } else {
        play(program).await
    }
}
