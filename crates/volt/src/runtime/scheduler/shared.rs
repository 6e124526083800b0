//! What the members of one runtime share, and how tasks reach them.
//!
//! Architecture invariants: a task knows its scheduler by an uncounted pointer; `Shared` lives
//! until none of its tasks is alive and no more is accepted (`living.rs`: the shutdown waits for that). A thread that
//! does not keep `Shared` alive takes a count before it hands a task over, because that task may
//! complete, the runtime end, and the memory go, while the thread still looks for somebody to wake.
//!
//! | Edge  | Release side                  | Acquire side         | Carries | Model |
//! |-------|-------------------------------|----------------------|---------|-------|
//! | [SD1] | `Shared::begin_shutdown`      | `Shared::is_shut_down` | nothing but itself; SeqCst, as [IS1] with [ID3]: a member that parks sees it, or is woken | none: under loom the fences of [ID1] stand between. Litmus test `order_parking::a_lifo_push_and_a_retiring_watcher_do_not_miss_each_other` of volt-models has its shape |
//! | [SD2] | `Shared::worker_ended`, `Shared::never_started` | the same | the other workers' last tasks, to the last one that ends | none: loom reads the newest of the counts that it carries, since they are read by a read-modify-write |

use std::future::Future;
use std::panic::Location;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::time::Instant;

use volt_sync::internal::CachePadded;
use volt_sync::internal::primitive::{
    self, Arc, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, UnsafeCell,
};

use super::lifecycle::{hooks, registry};
use super::stalls::stall;
use crate::runtime::blocking::Pool;
use crate::runtime::config::Config;
use crate::runtime::context;
use crate::runtime::driver::{self, Driver};
use crate::runtime::id::Id;
use crate::runtime::metrics::{Counter, SlotMetrics};
use crate::runtime::scheduler::guests::visits::Visits;
use crate::runtime::scheduler::guests::waiting::Waiting;
use crate::runtime::scheduler::idle::{Idle, Summary};
use crate::runtime::scheduler::lifecycle::living::{DriverWaits, Tally};
use crate::runtime::scheduler::lifecycle::threads::Threads;
use crate::runtime::scheduler::pacing::distrust::Distrust;
use crate::runtime::scheduler::pacing::quick::{self, Quick};
use crate::runtime::scheduler::parking::park::Park;
use crate::runtime::scheduler::parking::wish::Wishes;
use crate::runtime::scheduler::queues::injector::{Chain, Injector, Linked};
use crate::runtime::scheduler::queues::lifo::Lifo;
use crate::runtime::scheduler::queues::ring::{Pushed, Ring};
use crate::runtime::scheduler::stalls::crowd::Crowd;
use crate::runtime::slow_poll::SlowPolls;
use crate::task::{self, Header, Home, JoinHandle, Notified, OwnedTasks};

/// Places in a worker's ring.
const RING: usize = if cfg!(volt_loom) { 4 } else { 256 };
/// Places for the tasks that a worker fetched from the injector in one batch.
const BATCH: usize = if cfg!(volt_loom) { 4 } else { 32 };
/// Threads that can be guests (inside `block_on`) of one multi-thread runtime at once.
pub(crate) const GUESTS: usize = if cfg!(volt_loom) { 1 } else { 16 };

// SAFETY: the link is a cell of the header, that `Notified`'s holder has to itself.
unsafe impl Linked for Header {
    #[inline]
    unsafe fn next(node: NonNull<Self>) -> Option<NonNull<Self>> {
        // SAFETY: the caller has the task's `Notified`.
        unsafe { Self::queue_next(node) }
    }

    #[inline]
    unsafe fn set_next(node: NonNull<Self>, next: Option<NonNull<Self>>) {
        // SAFETY: the caller has the task's `Notified`.
        unsafe { Self::set_queue_next(node, next) };
    }
}

/// The part of a member that others see.
pub(crate) struct Slot {
    pub(super) lifo: Lifo<Header>,
    /// Counts the polls: a member whose count stands still is in a long poll (`stall.rs`).
    pub(super) polls: AtomicU64,
    /// The kind of the task that is being polled.
    pub(super) kind: AtomicUsize,
    /// When it parked, it was choosy, shy, a bystander (`shy.rs`), or steals nothing until that time (`vain.rs`).
    pub(super) choosy: AtomicBool,
    pub(super) shy: AtomicBool,
    pub(super) bystander: AtomicBool,
    pub(super) vain_until: AtomicU64,
    /// And where it did.
    pub(super) processor: AtomicU32,
    pub(super) tally: Tally,
    pub(super) ring: Ring<Header, RING>,
    pub(super) batch: Ring<Header, BATCH>,
    /// Where the member sleeps. A guest's is its own; see `guest.rs` for who may look.
    pub(super) park: AtomicPtr<Park>,
    pub(crate) metrics: SlotMetrics,
    pub(super) watched: stall::Watched,
}

impl Slot {
    fn new() -> Self {
        Self {
            lifo: Lifo::new(),
            polls: AtomicU64::new(0),
            kind: AtomicUsize::new(0),
            choosy: AtomicBool::new(false),
            shy: AtomicBool::new(false),
            bystander: AtomicBool::new(false),
            vain_until: AtomicU64::new(0),
            processor: AtomicU32::new(0),
            tally: Tally::new(),
            ring: Ring::new(),
            batch: Ring::new(),
            park: AtomicPtr::new(ptr::null_mut()),
            metrics: SlotMetrics::new(),
            watched: stall::Watched::new(),
        }
    }

    /// True if a thief would find something. The LIFO slot does not count: its owner takes it next.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        !self.ring.is_empty() || !self.batch.is_empty()
    }

    /// Polls so far.
    pub(crate) fn polls(&self) -> u64 {
        // ORD relaxed: a statistic.
        self.polls.load(Relaxed)
    }

    /// Tasks that the member has spawned.
    pub(crate) fn spawned(&self) -> u64 {
        self.tally.spawned()
    }

    /// Tasks in the queues, as a snapshot.
    pub(crate) fn depth(&self) -> usize {
        self.ring.len() + self.batch.len() + usize::from(!self.lifo.is_empty())
    }

    /// Takes a task, from wherever. For shutdown.
    pub(super) fn pop_any(&self) -> Option<NonNull<Header>> {
        self.lifo.take().or_else(|| self.ring.pop()).or_else(|| self.batch.pop())
    }
}

/// The scheduler.
pub(crate) struct Shared {
    /// This object, with the provenance of the whole allocation. Null before `Shared::new` ends.
    me: AtomicPtr<Shared>,
    pub(crate) id: Id,
    pub(crate) config: Config,
    pub(super) slots: Box<[CachePadded<Slot>]>,
    /// The members `0..workers` are threads of the runtime, the others guests.
    pub(crate) workers: usize,
    /// Bit `i`: the guest `workers + i` is there.
    guests: AtomicU64,
    /// For the guest's place of a current-thread runtime; and to drop tasks at a shutdown (`cancel.rs`).
    pub(super) waiting: Waiting,
    pub(super) injector: Injector<Header>,
    pub(super) idle: Idle,
    pub(super) quick: Quick,
    /// The kinds that need no timing: the same, and none if slow polls are reported.
    pub(super) untimed: Quick,
    /// The kinds that a watcher has caught in a slow poll, for those that have to be quick for long to count as such.
    pub(super) caught: Quick,
    /// The kinds that have blocked in `block_in_place`: they are not learnt any more.
    pub(super) blocks: Quick,
    pub(super) distrust: Distrust,
    pub(crate) slow: Option<Box<SlowPolls>>,
    pub(super) owned: OwnedTasks,
    driver: UnsafeCell<Driver>,
    pub(super) wishes: Wishes,
    /// How the watcher sleeps (`stall.rs`).
    pub(super) sleep: stall::Sleep,
    pub(super) crowd: Crowd,
    pub(crate) driver_handle: driver::Handle,
    shutdown: AtomicBool,
    /// No more tasks are accepted. Written under the injector's push lock.
    pub(super) closed: AtomicBool,
    /// Nobody waits any more for tasks that are about to be queued. Used under the injector's push lock.
    pub(super) abandoned: AtomicBool,
    /// Since then, this holds a count of itself: who is about to queue a task may have none. Used under the
    /// injector's push lock.
    pub(super) holds_itself: AtomicBool,
    /// Workers that have not ended.
    workers_left: AtomicUsize,
    pub(crate) threads: Arc<Threads>,
    pub(crate) blocking: Pool,
    /// Written under the injector's push lock.
    pub(crate) remote: Counter,
    /// Of threads that are no members: `spawned` is written under the injector's push lock.
    pub(super) outside: Tally,
    pub(super) waits: DriverWaits,
    pub(crate) driver_turns: Counter,
    pub(super) visits: Visits,
}

// SAFETY: the driver is accessed by the member that `idle` names only (`Idle`, invariant 5);
// everything else is for sharing.
unsafe impl Send for Shared {}
// SAFETY: shared access to the driver is by the one member that `idle` names.
unsafe impl Sync for Shared {}

// Panics of user code are contained: none leaves it half changed.
impl std::panic::RefUnwindSafe for Shared {}

impl Shared {
    /// The scheduler of a runtime with `workers` worker threads, which the caller starts.
    pub(crate) fn new(
        config: Config,
        workers: usize,
        driver: Driver,
        driver_handle: driver::Handle,
    ) -> Arc<Self> {
        let (blocking, owner) = hooks::pool(&config, &driver_handle);
        let guests = if workers == 0 { 1 } else { GUESTS };
        let members = workers + guests;
        let slow = config
            .slow_poll_threshold
            .map(|threshold| Box::new(SlowPolls::new(threshold, config.on_slow_poll.clone())));
        let shared = Arc::new(Self {
            me: AtomicPtr::new(ptr::null_mut()),
            id: Id::next(),
            config,
            slots: (0..members).map(|_| CachePadded::new(Slot::new())).collect(),
            workers,
            guests: AtomicU64::new(0),
            waiting: Waiting::new(),
            injector: Injector::new(),
            idle: Idle::new(members),
            quick: Quick::new(),
            untimed: Quick::new(),
            caught: Quick::new(),
            blocks: Quick::new(),
            distrust: Distrust::new(),
            slow,
            owned: OwnedTasks::new(members),
            driver: UnsafeCell::new(driver),
            wishes: Wishes::new(),
            sleep: stall::Sleep::new(),
            crowd: Crowd::new(),
            driver_handle,
            shutdown: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            holds_itself: AtomicBool::new(false),
            workers_left: AtomicUsize::new(workers),
            threads: Arc::new(Threads::new()),
            blocking,
            remote: Counter::new(),
            outside: Tally::new(),
            waits: DriverWaits::new(),
            driver_turns: Counter::new(),
            visits: Visits::new(),
        });
        owner.set(&shared);
        // ORD relaxed: before the scheduler is shared.
        shared.me.store(Arc::as_ptr(&shared).cast_mut(), Relaxed);
        for slot in &shared.slots[..workers] {
            let park = Park::new();
            // SAFETY: the scheduler outlives the threads that sleep here, and those that wake them.
            unsafe { park.set_driver(Some(NonNull::from(&shared.driver_handle))) };
            // ORD relaxed: before the scheduler is shared.
            slot.park.store(Arc::into_raw(Arc::new(park)).cast_mut(), Relaxed);
            shared.idle.attach();
        }
        registry::add(&shared);
        shared
    }

    /// This scheduler, as tasks know it.
    #[inline]
    pub(super) fn pointer(&self) -> NonNull<Self> {
        // ORD relaxed: written before the scheduler was shared.
        let me = self.me.load(Relaxed);
        debug_assert!(!me.is_null());
        // SAFETY: set by `new`.
        unsafe { NonNull::new_unchecked(me) }
    }

    /// The count of the caller's, taken from a reference.
    #[inline]
    pub(crate) fn to_arc(&self) -> Arc<Self> {
        let me = self.pointer().as_ptr();
        // SAFETY: it comes from an `Arc`, and `self` is borrowed from one that is alive.
        unsafe { Arc::increment_strong_count(me) };
        // SAFETY: the count just taken.
        unsafe { Arc::from_raw(me) }
    }

    /// Spawns `future`.
    #[cfg(any(test, feature = "test-util"))]
    #[track_caller]
    pub(crate) fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_at(future, Location::caller())
    }

    /// Spawns `future`, as `place` has asked for.
    #[inline]
    pub(crate) fn spawn_at<F>(
        &self,
        future: F,
        place: &'static Location<'static>,
    ) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let worker = context::worker_of(self);
        // SAFETY:
        // 1. The shutdown waits for tasks that are counted; who drops one that is not keeps the
        //    scheduler alive.
        // 2. The future is `Send`.
        let (task, join) = unsafe { task::unowned(future, self.pointer(), 0) };
        if let Some(slow) = &self.slow {
            slow.add(task.header().id(), place);
        }
        match worker {
            Some(worker) if self.count_spawned(worker) => worker.schedule_spawned(task),
            Some(_) => self.refuse(task),
            // The caller keeps the scheduler alive.
            None => self.inject(task, true),
        }
        join
    }

    /// Runs `closure` on a blocking thread, with this runtime as the current one.
    #[track_caller]
    pub(crate) fn spawn_blocking<F, R>(&self, closure: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let runtime = self.to_arc();
        let spawned = self.blocking.spawn(move || context::with_entered(&runtime, closure));
        match spawned {
            Ok(join) => join,
            Err(error) => panic!("`spawn_blocking` could not start a thread: {error}"),
        }
    }

    /// Queues a task from a thread that is no member.
    #[cold]
    pub(super) fn schedule_remote(&self, task: Notified) {
        self.to_arc().inject(task, false);
    }

    /// Queues a task for whoever comes first. One that `is_new` is counted, or refused. The caller keeps
    /// the scheduler alive by itself.
    fn inject(&self, task: Notified, is_new: bool) {
        let mut abandoned = false;
        let accept = || {
            if is_new && !self.count_spawned_outside() {
                return false;
            }
            self.remote.add(1);
            // ORD relaxed: under the lock.
            abandoned = self.abandoned.load(Relaxed);
            true
        };
        let task = task.into_raw();
        // SAFETY: the `Notified` is given away.
        if !unsafe { self.injector.push_if(task, accept) } {
            // SAFETY: it was not taken.
            return self.refuse(unsafe { Notified::from_raw(task) });
        }
        self.notify();
        // Killed by `runtime::scheduler::worker::model::shutdown_in_a_hurry_against_a_wake`.
        #[cfg(not(volt_mutant = "abandoned"))]
        if abandoned {
            // Whoever shut it down has not waited for us. Only then: this may be a wake-up under a
            // lock that the task's drop needs, or within the drop of a task that wakes another one.
            context::as_canceller(&self.to_arc(), || {
                self.drain_to_the_last(Some(primitive::now()), || false);
            });
        }
    }

    /// Wakes a member if that is needed, after work was made visible.
    #[inline]
    pub(super) fn notify(&self) {
        if self.idle.load().wants_searcher() {
            self.notify_somebody(None);
        }
    }

    /// A guest that keeps off would do nothing but watch. And rather one that did not fall asleep on the processor `here`.
    #[cold]
    pub(super) fn notify_somebody(&self, here: Option<u32>) {
        let takes = |summary: Summary, index| !summary.has_watcher() || !self.keeps_off(index);
        // ORD relaxed: a hint.
        let processor = |index: usize| self.slots[index].processor.load(Relaxed);
        let is_near = |index| here.is_some_and(|here| processor(index) == here);
        let _ = self.notify_rather(takes, is_near);
    }

    /// As [`notify`](Self::notify), by a guest that keeps off: it need not be told itself, nor others like it.
    pub(super) fn notify_the_others(&self) {
        let _ = self.notify_if(|_, index| !self.keeps_off(index));
    }

    /// Wakes a member that `takes` says of, if there is one, and nobody searches. True if so.
    pub(super) fn notify_if(&self, takes: impl Fn(Summary, usize) -> bool) -> bool {
        self.notify_rather(takes, |_| false)
    }

    /// The same, and rather one that is not near.
    fn notify_rather(
        &self,
        takes: impl Fn(Summary, usize) -> bool,
        is_near: impl Fn(usize) -> bool,
    ) -> bool {
        let index = self.idle.notify_taker(|| self.used_slots().len(), takes, is_near);
        index.inspect(|&index| self.unpark(index)).is_some()
    }

    /// As [`notify`](Self::notify), if a task is set aside, for those who take it.
    pub(super) fn offer_set_aside(&self) {
        if !self.injector.has_set_aside() {
            return;
        }
        // ORD relaxed: a member writes it before it parks, which [ID3] orders.
        let _ = self.notify_if(|_, index| !self.slots[index].choosy.load(Relaxed));
    }

    /// Wakes a member whose parked bit the caller has cleared.
    #[cold]
    pub(super) fn unpark(&self, index: usize) {
        // ORD[GU3] acquire: the guest's place to sleep.
        let park = self.slots[index].park.load(Acquire);
        // SAFETY: a member that was claimed stays until it has its token.
        unsafe { &*park }.claim(&self.driver_handle);
    }

    /// Puts what a push has made a ring overflow with into the injector: as a burst of the member's, if it is one.
    pub(super) fn overflow(&self, pushed: Pushed<Header, Chain<Header>>, burst_of: Option<usize>) {
        match (pushed, burst_of) {
            (Pushed::Stored, _) => {}
            (Pushed::Overflowed(batch), None) => self.injector.push_batch(batch),
            (Pushed::Overflowed(batch), Some(owner)) => self.injector.push_burst(batch, owner),
            // SAFETY: the task is the caller's again.
            (Pushed::Refused(task), _) => unsafe { self.injector.push(task) },
        }
    }

    /// The slots that are or were in use.
    #[inline]
    pub(super) fn used_slots(&self) -> &[CachePadded<Slot>] {
        // ORD[GU2] acquire: SeqCst: a worker that parks sees the guests whose pushes did not see
        // it parked.
        let guests = 64 - self.guests.load(SeqCst).leading_zeros() as usize;
        &self.slots[..self.workers + guests]
    }

    /// True if a searcher, which may be `choosy`, would find something.
    pub(super) fn has_work(&self, choosy: bool) -> bool {
        !self.injector.is_empty_for(choosy) || self.rings_have_work()
    }

    fn rings_have_work(&self) -> bool {
        let has_work = |(index, slot): (usize, &CachePadded<Slot>)| {
            !slot.batch.is_empty() || !slot.ring.is_empty() && !self.is_left_alone(index)
        };
        self.used_slots().iter().enumerate().any(has_work)
    }

    /// The place where worker `index` sleeps. It is the scheduler's, and outlives its threads.
    pub(crate) fn park_of(&self, index: usize) -> Arc<Park> {
        // ORD relaxed: written before the scheduler was shared.
        let park = self.slots[index].park.load(Relaxed);
        // SAFETY: from `Arc::into_raw`, with the count that the scheduler keeps.
        unsafe { Arc::increment_strong_count(park) };
        // SAFETY: the count just taken.
        unsafe { Arc::from_raw(park) }
    }

    /// Makes the calling thread a guest, if there is room: its index.
    pub(super) fn attach_guest(&self, park: &Arc<Park>) -> Option<usize> {
        if self.config.home.as_ref().is_some_and(|home| !home.is_here()) {
            return None;
        }
        let room = self.slots.len() - self.workers;
        // ORD relaxed: the exchange below decides.
        let mut guests = self.guests.load(Relaxed);
        let free = loop {
            let free = guests.trailing_ones();
            if free as usize >= room || self.is_shut_down() {
                return None;
            }
            // ORD[GU2] release: SeqCst, see `used_slots`.
            // ORD[GU1] acquire: the slot as its last guest left it.
            match self.guests.compare_exchange(guests, guests | 1 << free, SeqCst, Relaxed) {
                Ok(_) => break free,
                Err(newer) => guests = newer,
            }
        };
        let index = self.workers + free as usize;
        // ORD[GU3] release: the place to sleep, for those who claim this member.
        self.slots[index].park.store(Arc::as_ptr(park).cast_mut(), Release);
        self.idle.attach();
        Some(index)
    }

    /// The guest `index`, which runs and whose queues are empty, leaves.
    pub(super) fn detach_guest(&self, index: usize) -> bool {
        let slot = &self.slots[index];
        // ORD relaxed: a hint.
        slot.kind.store(quick::OF_NOBODY, Relaxed);
        slot.watched.forget();
        let left_alone = self.idle.detach(index);
        let bit = 1_u64 << (index - self.workers);
        // ORD[GU1] release: the slot as this guest leaves it.
        self.guests.fetch_and(!bit, AcqRel);
        left_alone
    }

    /// Calls `f` with the driver.
    ///
    /// # Safety
    /// The calling member has the driver (`Idle`), and `f` does not call this.
    pub(super) unsafe fn with_driver<R>(&self, f: impl FnOnce(&mut Driver) -> R) -> R {
        self.driver_turns.add(1);
        // SAFETY: obligation: nobody else has the driver.
        self.driver.with_mut(|driver| f(unsafe { &mut *driver }))
    }

    /// True once the runtime shuts down.
    #[inline]
    pub(crate) fn is_shut_down(&self) -> bool {
        // ORD[SD1] acquire: SeqCst: a member that parks sees it, or is woken by `begin_shutdown`.
        self.shutdown.load(SeqCst)
    }

    /// Tells all members to stop. False if they have been told before.
    pub(crate) fn begin_shutdown(&self) -> bool {
        // ORD[SD1] release: SeqCst, before the claims below.
        if self.shutdown.swap(true, SeqCst) {
            return false;
        }
        self.crowd.close();
        self.wake_all();
        self.waiting.wake_all();
        true
    }

    /// Wakes everybody who is parked, to see that the runtime shuts down. Each member that has seen it does so again:
    /// a ticket may have been used for one that was about to park (`Idle`, invariant 1).
    pub(super) fn wake_all(&self) {
        while let Some(index) = self.idle.claim_any() {
            self.unpark(index);
        }
    }

    /// The last `count` workers will not start.
    pub(crate) fn never_started(&self, count: usize) {
        // ORD[SD2] release: these workers have no queues.
        // ORD[SD2] acquire: those of the others, if they have ended already.
        if self.workers_left.fetch_sub(count, AcqRel) == count {
            self.close();
            self.drain_to_the_last(None, || false);
        }
    }

    /// Drops all tasks of a current-thread runtime, local ones first. Waits until `deadline` for those that other threads poll
    /// (its guest, in a long poll) or are about to queue; these threads see to them when they are done.
    pub(crate) fn shut_down_current_thread(&self, deadline: Option<Instant>) {
        context::as_canceller(&self.to_arc(), || {
            self.refuse_all();
            self.config.home.iter().for_each(Home::close);
            self.shut_down_inside();
            self.drain_to_the_last(deadline, || false);
        });
    }

    /// Drops all tasks that can be reached, but for those on the stack of the calling thread, a member.
    /// The rest is done when that one leaves, and by the last worker that ends.
    pub(crate) fn shut_down_inside(&self) {
        self.close();
        self.drain();
    }

    /// A worker has dropped all tasks that it could reach. True if it was the last: [`drain`](Self::drain_to_the_last).
    pub(super) fn worker_ended(&self) -> bool {
        // ORD[SD2] release: this worker's queues are empty, and stay so.
        // ORD[SD2] acquire: those of the others too.
        let left = self.workers_left.fetch_sub(1, AcqRel);
        debug_assert!(left != 0, "each worker ends once");
        left == 1
    }

    #[cfg(all(test, not(volt_loom)))]
    pub(super) fn workers_left(&self) -> usize {
        // ORD relaxed: the test has waited for the workers' threads.
        self.workers_left.load(Relaxed)
    }

    /// The last worker, which has ended, is handed over: it ends once more, on another thread.
    pub(super) fn last_worker_is_back(&self) {
        // ORD relaxed: nobody else is left to change it, and the hand-over orders the next change.
        self.workers_left.fetch_add(1, Relaxed);
    }

    pub(crate) fn injector_len(&self) -> usize {
        self.injector.len()
    }

    pub(crate) fn slot(&self, index: usize) -> &Slot {
        &self.slots[index]
    }

    pub(crate) fn all_slots(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().map(|slot| &**slot)
    }

    /// True for a current-thread runtime.
    #[inline]
    pub(crate) fn is_current_thread(&self) -> bool {
        self.workers == 0
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        debug_assert!(
            std::thread::panicking() || !self.has_tasks(),
            "tasks outlive their scheduler"
        );
        registry::remove(self);
        for slot in &self.slots[..self.workers] {
            // ORD relaxed: nobody else is left.
            let park = slot.park.load(Relaxed);
            // SAFETY: the count of `new`.
            let park = unsafe { Arc::from_raw(park) };
            // SAFETY: no pointer, no obligation.
            unsafe { park.set_driver(None) };
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler")
            .field("workers", &self.workers)
            .field("idle", &self.idle)
            .field("injector", &self.injector)
            .field("owned", &self.owned)
            .finish_non_exhaustive()
    }
}
