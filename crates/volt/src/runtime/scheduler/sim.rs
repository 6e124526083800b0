//! The scheduler on one thread, with virtual workers and virtual time, every choice from a seed.
//!
//! Purpose: to find wrong interleavings of programs, and of the scheduler itself, and to replay
//! them exactly. The workers are the production's (`worker.rs`, `sleep.rs`, `idle.rs`, the queues);
//! only the loop around their `step` is another one: it picks the next actor at random, and where a
//! thread would sleep it looks whether somebody has given the worker a reason to wake up.
//!
//! What it sees: every order of the workers' steps (taking a task; one poll; a search that found nothing; the
//! publishing that a worker parks; the last look at the queues) and of the actions of threads
//! outside. Not: interleavings inside a step, and weak memory; loom's models do these. (To take a task and to poll
//! it are two steps, as a thread may be stopped in between: otherwise a task that was stolen would always be polled
//! before the one that stayed.)
//!
//! Timeouts of the watcher never pass here, since they could hide a lost wake-up. A clock moves
//! only when all workers sleep and nothing is queued, and then to the next timer.
#![forbid(unsafe_code)]

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};
use std::task::{Context, Poll, Waker};

use volt_sync::internal::primitive::{Arc, thread};

use crate::choice::{self, Seeded};
use crate::reactor::Why;
use crate::runtime::config::Config;
use crate::runtime::context;
use crate::runtime::driver::Driver;
use crate::runtime::handle::Handle;
use crate::runtime::scheduler::shared::Shared;
use crate::runtime::scheduler::worker::{Stage, Step, Worker};
use crate::task::{Header, JoinError, JoinHandle};
use crate::time::Clock;

type Outside = Box<dyn FnOnce(&Handle)>;

/// One simulated run of a multi-thread runtime.
///
/// What the future and its tasks do must depend on nothing but the order in which they are polled: then
/// a seed that fails does so each time. (Where a [`select!`](crate::select!) begins is chosen by the seed as well; where
/// Tokio's does, or in which order a `HashMap` is iterated, is not.) There is one thread, so nothing may block it:
/// [`block_in_place`](crate::task::block_in_place) panics, as it gets no other thread for the worker; a
/// [`JoinHandle::join`] that has to wait and a lock that is held elsewhere wait for ever; and `spawn_blocking`, sockets and files bring in real threads and real time, which nobody waits for: who does is
/// in a [deadlock](Reason::Deadlock). Time is virtual;
/// it moves to the next timer when nothing else can go on.
///
/// ```
/// use volt::runtime::sim::{Sim, explore};
/// use volt::time::{Duration, sleep};
///
/// // A thousand interleavings; hours of virtual time take no time.
/// let explored = explore(0..1000, |seed| {
///     Sim::new(seed).workers(2).run(async {
///         let other = volt::spawn(async { sleep(Duration::from_secs(3600)).await });
///         other.await.unwrap();
///     })
/// });
/// assert_eq!(explored.unwrap(), 1000);
/// ```
pub struct Sim {
    seed: u64,
    workers: usize,
    max_steps: usize,
    planted_bug: bool,
    outside: Vec<Outside>,
}

/// A run that went wrong. [`seed`](Self::seed) replays it.
///
/// ```
/// use volt::runtime::sim::Sim;
///
/// let run = |seed| Sim::new(seed).run(std::future::pending::<()>()).unwrap_err();
/// let failure = run(7);
/// assert_eq!(failure.seed, 7);
/// assert!(failure.to_string().contains("nothing is left to run"));
/// // The seed decides everything: the same run once more.
/// assert_eq!(run(failure.seed), failure);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The seed of the run.
    pub seed: u64,
    /// What went wrong.
    pub reason: Reason,
    /// Which actor did each step: a worker's index, or the number of workers for a thread outside.
    pub trace: Vec<u16>,
}

/// Why a run went wrong.
///
/// ```
/// use volt::runtime::sim::{Reason, Sim};
///
/// let failure = Sim::new(1).run(std::future::pending::<()>()).unwrap_err();
/// assert_eq!(failure.reason, Reason::Deadlock);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// All workers sleep, although a task is queued.
    LostWakeup,
    /// All workers sleep, no timer is pending, and the future is not ready. It may also wait for what the simulation does not:
    /// a blocking closure, a socket, a file.
    Deadlock,
    /// The future is not ready after the given number of steps.
    TooManySteps,
    /// The future panicked.
    Panicked,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            Reason::LostWakeup => "all workers sleep although a task is queued",
            Reason::Deadlock => {
                "nothing is left to run, and the future is not ready (blocking closures, sockets and files are not waited for)"
            }
            Reason::TooManySteps => "the future is not ready after the limit of steps",
            Reason::Panicked => "the future panicked",
        };
        write!(f, "seed {}, after {} steps: {reason}", self.seed, self.trace.len())
    }
}

impl std::error::Error for Failure {}

/// Runs `run` with each seed until one fails. Returns how many there were.
///
/// ```
/// use volt::runtime::sim::{Sim, explore};
///
/// let explored = explore(0..20, |seed| Sim::new(seed).run(async { 1 }));
/// assert_eq!(explored, Ok(20));
/// let failure = explore(5..20, |seed| Sim::new(seed).run(std::future::pending::<()>()));
/// assert_eq!(failure.unwrap_err().seed, 5);
/// ```
///
/// # Errors
/// The first failure.
pub fn explore<T>(
    seeds: impl IntoIterator<Item = u64>,
    mut run: impl FnMut(u64) -> Result<T, Failure>,
) -> Result<usize, Failure> {
    let mut count = 0;
    for seed in seeds {
        run(seed)?;
        count += 1;
    }
    Ok(count)
}

impl Sim {
    /// A run with 2 workers whose choices come from `seed`.
    ///
    /// ```
    /// use volt::runtime::sim::Sim;
    ///
    /// assert_eq!(Sim::new(7).run(async { volt::spawn(async { 1 }).await.unwrap() }), Ok(1));
    /// ```
    pub fn new(seed: u64) -> Self {
        Self { seed, workers: 2, max_steps: 1_000_000, planted_bug: false, outside: Vec::new() }
    }

    /// Sets the number of virtual workers.
    ///
    /// ```
    /// use volt::runtime::sim::Sim;
    ///
    /// let workers = || volt::runtime::Handle::current().metrics().num_workers();
    /// assert_eq!(Sim::new(7).workers(3).run(async move { workers() }), Ok(3));
    /// ```
    ///
    /// # Panics
    /// If it is 0, or above 1,000.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        assert!((1..=1000).contains(&workers), "`workers` must be from 1 to 1000");
        self.workers = workers;
        self
    }

    /// Sets after how many steps the run has failed; a million if not called.
    ///
    /// ```
    /// use volt::runtime::sim::{Reason, Sim};
    ///
    /// let endless = async {
    ///     loop {
    ///         volt::task::yield_now().await;
    ///     }
    /// };
    /// let failure = Sim::new(7).max_steps(100).run(endless).unwrap_err();
    /// assert_eq!(failure.reason, Reason::TooManySteps);
    /// ```
    #[must_use]
    pub fn max_steps(mut self, steps: usize) -> Self {
        self.max_steps = steps;
        self
    }

    /// Adds something that a thread outside of the runtime does, at some time during the run.
    /// Several of them happen in any order.
    ///
    /// ```
    /// use volt::runtime::sim::Sim;
    /// use volt::sync::oneshot;
    ///
    /// let (tx, rx) = oneshot::channel();
    /// let sim = Sim::new(7).outside(move |handle| {
    ///     handle.spawn(async move { tx.send(1) });
    /// });
    /// assert_eq!(sim.run(rx), Ok(Ok(1)));
    /// ```
    #[must_use]
    pub fn outside(mut self, action: impl FnOnce(&Handle) + 'static) -> Self {
        self.outside.push(Box::new(action));
        self
    }

    /// Leaves a step of the parking protocol out. For the test that this is found.
    #[doc(hidden)]
    #[must_use]
    pub fn planted_bug(mut self) -> Self {
        self.planted_bug = true;
        self
    }

    /// Runs `future` as a task of the simulated runtime, and gives its output.
    ///
    /// ```
    /// use volt::runtime::sim::Sim;
    /// use volt::time::{Duration, Instant, sleep};
    ///
    /// let hour = Duration::from_secs(3600);
    /// let slept = Sim::new(7).run(async move {
    ///     let start = Instant::now();
    ///     sleep(hour).await;
    ///     start.elapsed()
    /// });
    /// assert_eq!(slept, Ok(hour));
    /// ```
    ///
    /// # Errors
    /// If it does not complete.
    ///
    /// # Panics
    /// Where futures are polled, as `block_on`; if the system gives no descriptor; or as an action
    /// [`outside`](Self::outside) does, after all tasks have been dropped.
    pub fn run<F>(self, future: F) -> Result<F::Output, Failure>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        context::assert_may_block();
        let _seeded = Seeded::new(self.seed);
        volt_sync::coop::without_turns(|| self.run_alone(future))
    }

    fn run_alone<F>(self, future: F) -> Result<F::Output, Failure>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let config = Config { seed: self.seed, planted_bug: self.planted_bug, ..Config::default() };
        context::introduce();
        let (driver, handle) =
            Driver::new(self.workers, Clock::paused()).expect("the system gives a descriptor");
        let shared = Shared::new(config, self.workers, driver, handle);
        let _simulated = Simulated::new(&shared);
        let parks: Vec<_> = (0..self.workers).map(|index| shared.park_of(index)).collect();
        let workers: Vec<_> = parks
            .iter()
            .enumerate()
            .map(|(index, park)| Worker::new(&shared, index, park))
            .collect();
        let mut join = shared.spawn(future);
        let (seed, max_steps) = (self.seed, self.max_steps);
        let mut world = World {
            shared: &shared,
            workers: &workers,
            outside: self.outside,
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            trace: Vec::new(),
            panic: None,
            taken: vec![None; self.workers],
        };
        let result = world.run(max_steps, || join.is_finished());
        let (trace, panic) = (std::mem::take(&mut world.trace), world.panic.take());
        for (worker, task) in workers.iter().zip(world.taken) {
            task.into_iter().for_each(|task| worker.push(task));
        }
        shared.begin_shutdown();
        for worker in &workers {
            context::with_worker(worker, || worker.end());
        }
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
        let fail = |reason| Failure { seed, reason, trace };
        match result {
            Err(reason) => Err(fail(reason)),
            Ok(()) => output(&mut join).map_err(|_| fail(Reason::Panicked)),
        }
    }
}

/// The output of a task that has completed.
fn output<T>(join: &mut JoinHandle<T>) -> Result<T, JoinError> {
    match std::pin::Pin::new(join).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("the task has completed"),
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim").field("seed", &self.seed).field("workers", &self.workers).finish()
    }
}

volt_sync::internal::primitive::const_thread_local! {
    /// The scheduler that this thread simulates, an address to compare.
    static SIMULATED: Cell<*const Shared> = Cell::new(ptr::null());
}

/// While this lives, the thread simulates a scheduler. It had simulated another one, or none.
struct Simulated(*const Shared);

impl Simulated {
    fn new(shared: &Arc<Shared>) -> Self {
        Self(SIMULATED.with(|simulated| simulated.replace(Arc::as_ptr(shared))))
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        SIMULATED.with(|simulated| simulated.set(self.0));
    }
}

/// Tells whether the workers of `shared` can be handed over to threads: those of a simulation are on one thread.
///
/// # Panics
/// Where a task has asked for that. A drop is called in place, as if the system gave no thread: at the end of a run, or
/// since a poll panics, which it would turn into the end of the process.
pub(crate) fn has_threads(shared: &Arc<Shared>) -> bool {
    if !ptr::eq(SIMULATED.get(), Arc::as_ptr(shared)) {
        return true;
    }
    assert!(
        shared.is_shut_down() || thread::panicking(),
        "`block_in_place` in a simulation: there is no other thread that could go on with the worker's tasks"
    );
    false
}

struct World<'a, 'r> {
    shared: &'a Arc<Shared>,
    workers: &'a [Worker<'r>],
    outside: Vec<Outside>,
    random: u64,
    trace: Vec<u16>,
    /// What an action outside has panicked with. It ends the run, but only after a shutdown: the tasks hold the
    /// scheduler, which holds them.
    panic: Option<Box<dyn Any + Send>>,
    /// What each worker polls next.
    taken: Vec<Option<NonNull<Header>>>,
}

impl World<'_, '_> {
    fn run(&mut self, max_steps: usize, finished: impl Fn() -> bool) -> Result<(), Reason> {
        let mut ready = Vec::new();
        while !finished() && self.panic.is_none() {
            if self.trace.len() >= max_steps {
                return Err(Reason::TooManySteps);
            }
            ready.clear();
            ready.extend((0..self.workers.len()).filter(|&index| self.workers[index].is_ready()));
            if !self.outside.is_empty() {
                ready.push(self.workers.len());
            }
            if ready.is_empty() {
                self.let_time_pass()?;
                continue;
            }
            let actor = ready[self.choose(ready.len())];
            self.trace.push(u16::try_from(actor).expect("at most a thousand workers"));
            match self.workers.get(actor) {
                Some(worker) => {
                    let taken = &mut self.taken[actor];
                    context::with_worker(worker, || worker.step_or_wake(taken));
                }
                None => self.act_outside(),
            }
        }
        Ok(())
    }

    /// A thread outside does something.
    fn act_outside(&mut self) {
        let chosen = self.choose(self.outside.len());
        let action = self.outside.swap_remove(chosen);
        let handle = Handle::new(self.shared.clone());
        // Nothing of the action's is used after its panic, which goes on to the caller.
        self.panic = catch_unwind(AssertUnwindSafe(|| action(&handle))).err();
    }

    /// Everybody sleeps.
    fn let_time_pass(&self) -> Result<(), Reason> {
        if self.shared.has_work(false) {
            return Err(Reason::LostWakeup);
        }
        let driver = &self.shared.driver_handle;
        if !driver.clock.advance_to(driver.timers.next_time()) {
            return Err(Reason::Deadlock);
        }
        // The one in the driver wakes up; that there is one is part of the protocol.
        let in_driver = self.workers.iter().find(|worker| worker.roles.get().driver);
        let worker = in_driver.ok_or(Reason::LostWakeup)?;
        context::with_worker(worker, || worker.wake_in_driver());
        Ok(())
    }

    /// A number below `bound`.
    fn choose(&mut self, bound: usize) -> usize {
        (choice::next(&mut self.random) >> 33) as usize % bound
    }
}

impl Worker<'_> {
    /// True if this worker's thread would run.
    fn is_ready(&self) -> bool {
        self.stage.get() != Stage::Asleep || self.park.is_notified()
    }

    fn step_or_wake(&self, taken: &mut Option<NonNull<Header>>) {
        if self.stage.get() == Stage::Asleep {
            return self.woke(self.park.take(), self.roles.get());
        }
        let step = match taken.take() {
            Some(task) => self.poll(task),
            None => self.step_to_take(taken),
        };
        match step {
            Step::Continue | Step::Wait => {}
            Step::Exit => unreachable!("the simulation ends before the runtime does"),
        }
    }

    /// As [`step`](Self::step), but a task that is found is only taken.
    fn step_to_take(&self, taken: &mut Option<NonNull<Header>>) -> Step {
        if let Some(step) = self.step_without_task() {
            return step;
        }
        *taken = self.next();
        if taken.is_some() {
            return Step::Continue;
        }
        match self.look_elsewhere() {
            ControlFlow::Break(task) => {
                *taken = Some(task);
                Step::Continue
            }
            ControlFlow::Continue(step) => step,
        }
    }

    /// As the driver's return from a wait.
    fn wake_in_driver(&self) {
        self.turn_driver(|driver, handle| driver.look(handle, Why::Due));
        let mut roles = self.roles.get();
        roles.watcher = false;
        self.woke(self.park.take(), roles);
    }
}

#[cfg(test)]
mod tests;
