//! A pool's core: what its threads share, how they start and how they end.
//!
//! Invariants:
//! 1. A core is made inside a standard `Arc`, and each of its threads holds one. So records, queues
//!    and the word outlive every thread, and the last thread's last access (finding T4).
//! 2. A task is in exactly one queue from `schedule` until it is called.
//! 3. `injector` is closed only when all threads have ended; what a closed injector refuses goes
//!    back to the caller.
//!
//! Threads start when there is work and nobody to do it. A thread that cannot be started is taken
//! back; with no thread at all, whoever submitted work runs what is queued (finding T2). A `join`
//! starts threads as well, but never runs the queue: its caller may hold a lock that a task wants.
//! So whoever submits while another thread tries to start the pool's first one waits for the outcome.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Weak};
use std::time::Duration;

use volt_sync::internal::primitive::{
    AtomicBool, AtomicUsize, Mutex, MutexGuard, const_thread_local, fence, thread,
};
use volt_sync::internal::{Parker, slack};

use crate::ending;
use crate::made::Made;
use crate::offer::OFFERS;
use crate::parking;
use crate::payload::{discard, discard_payload};
use crate::queue::{Closed, Queue};
use crate::roster::Roster;
use crate::spin::SPIN;
use crate::sync_word::{Notified, SyncWord};
use crate::task::{Action, Task, TaskList};
use crate::worker::{self, Worker};

/// Called with a thread's index.
pub(crate) type Hook = Arc<dyn Fn(usize) + Send + Sync>;

/// What a pool is told when it is made.
#[derive(Clone, Default)]
pub(crate) struct Config {
    pub(crate) threads: u32,
    pub(crate) name: Option<String>,
    pub(crate) stack_size: Option<usize>,
    pub(crate) pin: bool,
    pub(crate) on_start: Option<Hook>,
    pub(crate) on_stop: Option<Hook>,
    /// Called before each start with its number; true makes it fail.
    pub(crate) fail_start: Option<Arc<dyn Fn(usize) -> bool + Send + Sync>>,
}

pub(crate) struct Core {
    /// Itself, for its threads.
    me: Weak<Self>,
    /// Tells it from all other pools.
    pub(crate) number: u64,
    pub(crate) sync: SyncWord,
    pub(crate) injector: Queue,
    pub(crate) workers: Roster,
    config: Config,
    /// Set by a shutdown that hands tasks back instead of running them.
    abandoned: AtomicBool,
    /// Only touched where threads start and end.
    handles: Mutex<Vec<thread::JoinHandle<()>>>,
    /// Held by the one shutdown at a time.
    ending: Mutex<()>,
    /// How often a start was tried.
    starts: AtomicUsize,
    /// How many threads have a number.
    threads: AtomicUsize,
    /// Set when the first thread was started: there is one until the pool ends.
    attended: AtomicBool,
    /// Records of guests that are not in use.
    guests: Mutex<Vec<Guest>>,
    /// The parkers of those who wait for a scope of this pool and have no record in it.
    owners_elsewhere: Mutex<Vec<&'static Parker>>,
    spin: Duration,
    least_offers: usize,
    pub(crate) made: Made,
}

/// A pool for which this thread runs what no thread could be started for, further down on its stack.
struct Inline {
    core: *const Core,
    outer: *const Inline,
}

const_thread_local! {
    /// The innermost of them. Tasks of one pool may submit to another one.
    static INLINE: Cell<*const Inline> = Cell::new(ptr::null());
}

/// A guest's record, while nobody uses it.
struct Guest(*const Worker);

// SAFETY: records are `Send`, and one that is not in use belongs to whoever takes it.
unsafe impl Send for Guest {}

/// Calls `part`, again after each panic: a raw task that panics must not take the thread with it.
fn run_to_the_end(worker: &Worker, part: impl Fn(&Worker)) {
    while let Err(payload) = catch_unwind(AssertUnwindSafe(|| part(worker))) {
        discard_payload(payload);
        worker.reset();
    }
}

/// A mutex without poisoning: nothing here panics while it holds one.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Core {
    pub(crate) fn new(config: Config) -> Arc<Self> {
        let processors = processors();
        let spin =
            if config.threads <= processors && processors > 1 { SPIN } else { Duration::ZERO };
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            number: ending::new_number(),
            sync: SyncWord::new(),
            injector: Queue::new(),
            workers: Roster::new(),
            abandoned: AtomicBool::new(false),
            handles: Mutex::new(Vec::new()),
            ending: Mutex::new(()),
            starts: AtomicUsize::new(0),
            threads: AtomicUsize::new(0),
            attended: AtomicBool::new(false),
            guests: Mutex::new(Vec::new()),
            owners_elsewhere: Mutex::new(Vec::new()),
            spin: if cfg!(volt_loom) { Duration::ZERO } else { spin },
            least_offers: if config.threads > processors { OFFERS } else { 1 },
            made: Made::new(),
            config,
        })
    }

    pub(crate) fn max_threads(&self) -> usize {
        self.config.threads as usize
    }

    /// How many threads have not started yet.
    pub(crate) fn unstarted(&self) -> usize {
        self.max_threads().saturating_sub(self.started())
    }

    pub(crate) fn spin_limit(&self) -> Duration {
        self.spin
    }

    /// How much a thread offers at least once somebody has asked. With more threads than processors
    /// that is all it can: nobody reaches what else it has forked while it waits for a processor.
    pub(crate) fn least_offers(&self) -> usize {
        self.least_offers
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        // ORD relaxed: looked at between tasks; the shutdown drains what is left.
        self.abandoned.load(Relaxed)
    }

    /// The number of threads that have started.
    pub(crate) fn started(&self) -> usize {
        // ORD relaxed: a count.
        self.threads.load(Relaxed)
    }

    /// Lets the calling thread, which is in no pool, work in this one for the time of `work`. With
    /// more guests than there can be records, this one stays outside.
    pub(crate) fn as_guest<R>(&self, work: impl FnOnce(Option<&Worker>) -> R) -> R {
        struct Leave<'a>(&'a Core, *const Worker);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                Worker::enter(ptr::null());
                lock(&self.0.guests).push(Guest(self.1));
            }
        }
        let parker = parking::mine();
        let free = {
            let mut guests = lock(&self.guests);
            let free = guests.pop();
            if let Some(Guest(record)) = free {
                // SAFETY: the roster keeps it as long as `self` lives, and it is ours.
                unsafe { &*record }.adopt(parker);
            }
            free
        };
        let record = match free {
            Some(Guest(record)) => record,
            None => match self.workers.reserve_for_guest() {
                Some(index) => {
                    self.workers.publish(index, Box::new(Worker::new(self, index, None)))
                }
                None => return work(None),
            },
        };
        // SAFETY: the roster keeps it as long as `self` lives.
        let worker = unsafe { &*record };
        let _leave = Leave(self, record);
        Worker::enter(record);
        work(Some(worker))
    }

    /// Calls `wait`, by which a thread without a record here waits for a scope of this pool, so that
    /// the end of the pool wakes it.
    pub(crate) fn as_owner_elsewhere(&self, parker: &'static Parker, wait: impl FnOnce()) {
        struct Leave<'a>(&'a Core, &'static Parker);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                let mut owners = lock(&self.0.owners_elsewhere);
                if let Some(at) = owners.iter().position(|parker| ptr::eq(*parker, self.1)) {
                    owners.swap_remove(at);
                }
            }
        }
        lock(&self.owners_elsewhere).push(parker);
        let _leave = Leave(self, parker);
        wait();
    }

    /// The calling thread's record, if it is a thread of this pool, or a guest in it.
    #[inline]
    pub(crate) fn own_worker(&self) -> Option<&Worker> {
        // SAFETY: set by the thread itself, whose record outlives its run.
        let worker = unsafe { worker::current().as_ref() }?;
        ptr::eq(worker.core(), self).then_some(worker)
    }

    #[inline]
    fn own_thread(&self) -> Option<&Worker> {
        self.own_worker().filter(|worker| worker.thread().is_some())
    }

    /// Queues a task, on this thread if it is one of the pool's.
    ///
    /// # Safety
    /// 1. The task is alive until it is called, and marked as queued, but in no queue.
    #[inline]
    pub(crate) unsafe fn schedule(&self, task: NonNull<Task>) -> Result<(), Closed> {
        match self.own_thread() {
            Some(worker) => {
                // SAFETY: our own record; the task is in no queue (1).
                unsafe { worker.push(task) };
                self.notify();
                Ok(())
            }
            // SAFETY: the task is in no queue (1).
            None => unsafe { self.inject((task, task)) },
        }
    }

    /// Queues a chain.
    ///
    /// # Safety
    /// 1. As for `schedule`, for each task of the chain.
    pub(crate) unsafe fn schedule_chain(
        &self,
        chain: (NonNull<Task>, NonNull<Task>),
    ) -> Result<(), Closed> {
        match self.own_thread() {
            Some(worker) => {
                // SAFETY: in no queue (1).
                unsafe { worker.push_chain(chain) };
                self.notify();
                Ok(())
            }
            // SAFETY: in no queue (1).
            None => unsafe { self.inject(chain) },
        }
    }

    /// Queues a chain from outside, and makes sure that it is run. For a thread that was one of the
    /// pool's the pool has ended: all others may have as well, and the shutdown, which takes what
    /// is left, waits for this one.
    ///
    /// # Safety
    /// 1. As for `schedule`, for each task of the chain.
    #[inline]
    unsafe fn inject(&self, chain: (NonNull<Task>, NonNull<Task>)) -> Result<(), Closed> {
        if self.has_ended_here() {
            return Err(Closed);
        }
        // SAFETY: in no queue (1).
        unsafe { self.injector.push(chain) }?;
        self.notify();
        // Killed by `engine::model::a_task_queued_during_a_start_that_fails_is_run`.
        #[cfg(not(volt_mutant = "submitters_run_what_no_thread_runs"))]
        if !self.is_attended() {
            self.attend();
        }
        Ok(())
    }

    /// Counts a thread that a model plays.
    #[cfg(all(test, volt_loom))]
    pub(crate) fn count_played_thread(&self) {
        assert!(self.sync.count_start(1));
        // ORD relaxed: see `is_attended`.
        self.attended.store(true, Relaxed);
    }

    /// True once a thread was started.
    fn is_attended(&self) -> bool {
        // ORD relaxed: a thread that was counted and does not fail to start searches after the
        // notification, see `sync_word`.
        self.attended.load(Relaxed)
    }

    /// Runs what is queued if no thread can be started for it. The caller has queued something.
    #[cold]
    fn attend(&self) {
        let mut attempt = 0;
        while self.sync.spawned() > 0 {
            // Somebody else starts the first thread just now, and may run nothing if that fails.
            volt_sync::internal::primitive::spin(attempt);
            attempt += 1;
            if self.is_attended() || self.sync.is_shut_down() {
                return;
            }
        }
        self.run_inline();
    }

    /// True if the calling thread was one of the pool's, and has ended its part.
    #[inline]
    pub(crate) fn has_ended_here(&self) -> bool {
        ending::ended_here() == self.number
    }

    /// Makes sure that somebody looks at the queues.
    #[inline]
    pub(crate) fn notify(&self) {
        if self.sync.notify(self.config.threads) == Notified::Start {
            self.start_thread();
        }
    }

    /// As `notify`, of something that may be long, with which the caller goes on as well.
    pub(crate) fn notify_elsewhere(&self) {
        if self.sync.notify_elsewhere(self.config.threads) == Notified::Start {
            self.start_thread();
        }
    }

    /// The waking thread found work: passes its role on if there is more.
    pub(crate) fn found(&self, more: bool) {
        if more {
            if self.sync.hand_on(self.config.threads) == Notified::Start {
                self.start_thread();
            }
            return;
        }
        self.sync.found();
        if self.has_work() {
            self.notify();
        }
    }

    pub(crate) fn has_work(&self) -> bool {
        self.injector.is_waiting() || self.workers.iter().any(Worker::has_work)
    }

    /// Starts the thread that was just counted. False if that is not possible.
    #[cold]
    fn start_thread(&self) -> bool {
        // Held during the start: the thread may end before its handle is in the list, and a
        // shutdown that finds neither would not wait for it.
        let mut handles = lock(&self.handles);
        let started = self.try_start().map(|handle| handles.push(handle)).is_ok();
        drop(handles);
        if started {
            // ORD relaxed: see `is_attended`.
            self.attended.store(true, Relaxed);
        } else {
            // With no thread left, each submitter runs what it has queued.
            self.sync.start_failed();
        }
        started
    }

    fn try_start(&self) -> io::Result<thread::JoinHandle<()>> {
        // ORD relaxed: counts.
        let number = self.starts.fetch_add(1, Relaxed);
        if self.config.fail_start.as_ref().is_some_and(|fail| fail(number)) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let mut builder = thread::Builder::new()
            .name(self.config.name.as_deref().unwrap_or("volt-pool").to_owned());
        if let Some(size) = self.config.stack_size {
            builder = builder.stack_size(size);
        }
        let core = self.me.upgrade().expect("who starts a thread holds the core");
        slack::without(|| builder.spawn(move || core.thread_main()))
    }

    fn thread_main(self: Arc<Self>) {
        // ORD relaxed: a count.
        let number = self.threads.fetch_add(1, Relaxed);
        if self.config.pin {
            pin(number);
        }
        let index = self.workers.reserve();
        let record = Worker::new(&raw const *self, index, Some(number));
        let worker = self.workers.publish(index, Box::new(record));
        Worker::enter(worker);
        // SAFETY: the roster keeps it as long as `self` lives.
        let worker = unsafe { &*worker };
        if let Some(hook) = &self.config.on_start {
            discard(|| hook(number));
        }
        run_to_the_end(worker, Worker::live);
        if let Some(hook) = &self.config.on_stop {
            discard(|| hook(number));
            // It may have queued something here, and perhaps nobody waits for this thread.
            run_to_the_end(worker, Worker::leave);
        }
        Worker::enter(ptr::null());
        ending::note_end(self.number);
        self.sync.exited();
    }

    /// Starts all threads that the pool may have, as far as that is possible, and waits until
    /// they have records.
    pub(crate) fn start_all(&self) {
        while self.sync.count_start(self.config.threads) && self.start_thread() {}
        let mut attempt = 0;
        while self.workers.iter().filter(|worker| worker.thread().is_some()).count()
            < self.sync.spawned() as usize
            && !self.sync.is_shut_down()
        {
            volt_sync::internal::primitive::spin(attempt);
            attempt += 1;
        }
    }

    /// Runs what is queued, since there is no thread for it.
    #[cold]
    fn run_inline(&self) {
        struct Leave<'a>(&'a Inline);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                INLINE.with(|inline| inline.set(self.0.outer));
            }
        }
        let outer = INLINE.with(Cell::get);
        let mut running = outer;
        // SAFETY: null, or further down on this thread's stack.
        while let Some(inline) = unsafe { running.as_ref() } {
            if ptr::eq(inline.core, self) {
                // The caller down there does it.
                return;
            }
            running = inline.outer;
        }
        let inline = Inline { core: self, outer };
        INLINE.with(|innermost| innermost.set(&raw const inline));
        let _leave = Leave(&inline);
        self.run_queue();
    }

    /// True if there are tasks in the pool's queue and no thread at all. One that is just being
    /// started does not count: if that fails, nobody wakes who waits.
    pub(crate) fn is_unattended(&self) -> bool {
        // Not only when nobody has the queue: see `run_queue`.
        !self.injector.is_empty() && (!self.is_attended() || self.sync.spawned() == 0)
    }

    /// For a thread that waits: runs what is queued if there is no thread for it. False if there
    /// was nothing to do.
    pub(crate) fn run_unattended(&self) -> bool {
        let unattended = self.is_unattended();
        if unattended {
            self.run_queue();
        }
        unattended
    }

    /// Runs tasks until the queue is empty, or there is a thread for them. Whoever else runs it leaves
    /// it while it takes one; then it runs that one, which may wait for the others.
    fn run_queue(&self) {
        let mut attempt = 0;
        while self.is_unattended() {
            let Some(mut consumer) = self.injector.try_lock() else {
                volt_sync::internal::primitive::spin(attempt);
                attempt += 1;
                continue;
            };
            attempt = 0;
            let task = consumer.pop();
            // What is left is what the next round looks for.
            let _left = consumer.unlock();
            if let Some(task) = task {
                // A raw task that panics must not unwind into whoever happened to submit.
                // SAFETY: out of the queue.
                discard(|| unsafe { Task::call(task, Action::Run) });
            }
        }
    }

    /// Ends all threads. Returns what was not run; with `run`, that is what was submitted from
    /// outside while they ended. The caller has an [`Ending`](crate::ending::Ending).
    pub(crate) fn shut_down(&self, run: bool) -> TaskList {
        let _ending = lock(&self.ending);
        if !run {
            // ORD relaxed: threads look between tasks.
            self.abandoned.store(true, Relaxed);
        }
        self.announce_end();
        let mut attempt = 0;
        loop {
            let (handles, counted) = {
                let mut handles = lock(&self.handles);
                // Under the lock: see `start_thread`.
                (std::mem::take(&mut *handles), self.sync.spawned())
            };
            if handles.is_empty() && counted == 0 {
                break;
            }
            // A thread that was counted and has no handle yet is just being started.
            if handles.is_empty() {
                volt_sync::internal::primitive::spin(attempt);
                attempt += 1;
            }
            for handle in handles {
                // Its panics were caught; an error cannot be.
                let _ = handle.join();
            }
        }
        self.injector.close();
        let mut left = TaskList::new();
        self.injector.drain(&mut left);
        for worker in self.workers.iter() {
            worker.drain(&mut left);
        }
        left
    }

    /// Tells the threads to end, waits for none of them, and wakes all who may wait for a scope: they look for its tasks
    /// themselves from now on, see `scope.rs`. To others it is a wake-up too much.
    pub(crate) fn announce_end(&self) {
        self.sync.shut_down();
        // ORD SeqCst fence: between the flag and the wake-ups; pairs with `State::announce` and
        // `Frame::sleep`.
        fence(SeqCst);
        // Killed by `scope::model::a_task_spawned_beside_a_shutdown_is_run`.
        #[cfg(not(volt_mutant = "a_shutdown_wakes_the_owners"))]
        self.wake_all_who_wait();
    }

    fn wake_all_who_wait(&self) {
        let guests = lock(&self.guests);
        self.workers.iter().for_each(|worker| worker.parker().unpark());
        drop(guests);
        lock(&self.owners_elsewhere).iter().for_each(|parker| parker.unpark());
    }
}

/// How many processors this process may use.
pub(crate) fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}

/// Binds the calling thread to one of the processors that it may use.
#[cfg(target_os = "linux")]
pub(crate) fn pin(index: usize) {
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: all zeros is the empty set.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is of the size that is given.
    if unsafe { libc::sched_getaffinity(0, size, &raw mut allowed) } != 0 {
        return;
    }
    let all: Vec<usize> = (0..libc::CPU_SETSIZE as usize)
        // SAFETY: the index is below CPU_SETSIZE.
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &allowed) })
        .collect();
    let Some(&cpu) = all.get(index % all.len().max(1)) else { return };
    // SAFETY: all zeros is the empty set.
    let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the index is below CPU_SETSIZE.
    unsafe { libc::CPU_SET(cpu, &mut one) };
    // SAFETY: the set is of the size that is given. A failure leaves the thread unpinned.
    unsafe { libc::sched_setaffinity(0, size, &raw const one) };
}

#[cfg(not(target_os = "linux"))]
fn pin(_index: usize) {}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
