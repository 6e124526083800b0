//! Who is awake: one word that decides whether a new task wakes a thread, starts one, or neither.
//!
//! Purpose: at most one thread at a time is woken and looks for work ("waking"). It passes that role
//! on only when it found work and there is more, so a burst of tasks wakes the threads one after
//! another instead of all at once, and a pool with enough threads awake makes no system calls.
//! For a fork, or the rest of a chunk, of several sleepers one is woken that fell asleep on another processor than the
//! caller's. The kernel tends to run a thread where it ran last, and there the caller goes on: the
//! woken thread would wait for milliseconds while another processor has nothing to do.
//!
//! Rejected:
//! * The seed's semaphore for sleeping: nobody can be woken for anything but a task. Here the
//!   sleepers wait on a counter of events, so that a message for one thread can wake all.
//! * A notify that returns after a plain look because `notified` is set: on weakly ordered memory,
//!   and with x86's store buffers, the look can come before the push of the task (finding T7). Here
//!   both sides have a fence.
//!
//! State: `[spawned:14][idle:14][-][notified][state:2]`.
//!
//! | State    | Meaning                                | goes to |
//! |----------|----------------------------------------|---------|
//! | PENDING  | nobody is being woken                  | SIGNALED by `notify`, WAKING by `begin_search` |
//! | SIGNALED | a thread is being woken or started     | WAKING by the thread that consumes `notified`, PENDING if it could not be started |
//! | WAKING   | one thread looks for work              | PENDING or SIGNALED by that thread |
//! | SHUTDOWN | the end                                | - |
//!
//! Invariants:
//! 1. A task is pushed before `notify`. Whoever consumes `notified` looks at all queues afterwards.
//! 2. A thread sleeps only after it saw `notified` unset while it was counted in `idle`.
//! 3. A thread that failed to start leaves no trace but the tasks: the state goes back from SIGNALED
//!    to PENDING, and with no thread left `notified` is cleared, since nobody could consume it
//!    (finding T2: the seed's pool is dead after one failure). Their submitters then run the tasks.
//! 4. Nothing overwrites SHUTDOWN, and it wakes all (finding T3).
//!
//! | Edge | Release side | Acquire side | Carries | Model that fails without it |
//! |------|--------------|--------------|---------|-----------------------------|
//! | [SY1] | `SyncWord::notify_one` (its fence), `SyncWord::notify_slow` for `hand_on` | the fences in `SyncWord::wait`, `SyncWord::found`, `SyncWord::start_failed` | the push before the notification, which is seen or notified of | `is_seen_or_notified` |
//! | [SY2] | `SyncWord::post` | `SyncWord::wait` | the change of the word, or the message, that the event is about | `a_task_pushed_before_notify_is_run` |
//!
//! Progress: with `notified` set, or a state other than PENDING, some thread will look at the queues
//! after the push: the one that consumes the bit before it may sleep (invariant 2), or the submitter,
//! if no thread could be started (invariant 3). The look that skips the read-modify-write is ordered
//! by the paired fences: in `notify_one` between push and look, in `wait`, `found` and `start_failed`
//! between consuming the bit and searching.
//!
//! Cost: `notify` with nobody to wake a fence and a load; otherwise 1 RMW, and a system call.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use volt_sync::internal::primitive::{AtomicU32, Futex, fence, processor};

use crate::spin::WokenOn;

const STATE: u32 = 0b11;
const PENDING: u32 = 0;
const SIGNALED: u32 = 1;
const WAKING: u32 = 2;
const SHUTDOWN: u32 = 3;
const NOTIFIED: u32 = 1 << 2;
const IDLE: u32 = 1 << 4;
const SPAWNED: u32 = 1 << 18;
const COUNT: u32 = (1 << 14) - 1;

/// As many threads as the counters hold.
pub(crate) const MAX_THREADS: u32 = COUNT;

/// The packed word.
#[derive(Clone, Copy)]
struct Word(u32);

impl Word {
    const fn state(self) -> u32 {
        self.0 & STATE
    }
    const fn notified(self) -> bool {
        self.0 & NOTIFIED != 0
    }
    const fn idle(self) -> u32 {
        (self.0 / IDLE) & COUNT
    }
    const fn spawned(self) -> u32 {
        (self.0 / SPAWNED) & COUNT
    }
    const fn with_state(self, state: u32) -> Self {
        Self((self.0 & !STATE) | state)
    }
    const fn with_notified(self, notified: bool) -> Self {
        if notified { Self(self.0 | NOTIFIED) } else { Self(self.0 & !NOTIFIED) }
    }
}

/// The processor of the calling thread, as a kind of sleeper. Processors can share one.
fn here() -> u32 {
    1 << (processor() % u32::BITS)
}

/// Which of several sleepers is woken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whom {
    Anyone,
    /// Rather one that fell asleep on another processor.
    Elsewhere,
}

/// What the caller of a notification has to do.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a thread that was counted has to be started"]
pub(crate) enum Notified {
    /// Nothing: a thread was woken, or will look by itself.
    Done,
    /// Start a thread, or report [`SyncWord::start_failed`].
    Start,
}

/// Why a thread that waited goes on.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a waking thread has to pass its role on"]
pub(crate) enum Waited {
    /// Look for work; `waking` is the role.
    Search { waking: bool },
    /// The pool was shut down.
    Shutdown,
}

#[derive(Debug)]
pub(crate) struct SyncWord {
    word: AtomicU32,
    /// Counts events; idle threads sleep on it.
    event: Futex,
    pub(crate) woken_on: WokenOn,
    #[cfg(all(test, volt_loom))]
    pub(crate) defect: Option<model::Defect>,
}

impl SyncWord {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
            event: Futex::new(0),
            woken_on: WokenOn::new(),
            #[cfg(all(test, volt_loom))]
            defect: None,
        }
    }

    /// Makes sure that some thread looks at the queues after this call. Called after a push.
    #[inline]
    pub(crate) fn notify(&self, max: u32) -> Notified {
        self.notify_one(max, Whom::Anyone)
    }

    /// As `notify`, of something long, with which the caller goes on as well.
    pub(crate) fn notify_elsewhere(&self, max: u32) -> Notified {
        self.notify_one(max, Whom::Elsewhere)
    }

    #[inline]
    fn notify_one(&self, max: u32, whom: Whom) -> Notified {
        #[cfg(all(test, volt_loom))]
        if self.defect == Some(model::Defect::LookWithoutFence) {
            return self.notify_slow(false, max, whom);
        }
        // ORD[SY1] release: a SeqCst fence between the push and the look; see Progress.
        fence(SeqCst);
        // ORD relaxed: ordered by the fence.
        let word = Word(self.word.load(Relaxed));
        let nobody = word.idle() == 0 && word.spawned() >= max;
        if word.notified() && (word.state() != PENDING || nobody) {
            return Notified::Done;
        }
        self.notify_slow(false, max, whom)
    }

    /// Passes the role of the waking thread on, to another thread if there is one.
    pub(crate) fn hand_on(&self, max: u32) -> Notified {
        self.notify_slow(true, max, Whom::Anyone)
    }

    #[cold]
    fn notify_slow(&self, waking: bool, max: u32, whom: Whom) -> Notified {
        // ORD relaxed: a stale word makes the exchange fail; a look that ends the call is ordered by
        // the fence in `notify_one`.
        let mut word = Word(self.word.load(Relaxed));
        loop {
            if word.state() == SHUTDOWN {
                return Notified::Done;
            }
            let can_wake = waking || word.state() == PENDING;
            let wake = can_wake && word.idle() > 0;
            let start = can_wake && !wake && word.spawned() < max;
            let mut new = word.with_notified(true);
            if wake || start {
                new = new.with_state(SIGNALED);
            } else if waking {
                new = new.with_state(PENDING);
            } else if word.notified() {
                return Notified::Done;
            }
            if start {
                new = Word(new.0 + SPAWNED);
            }
            // ORD[SY1] release: what `hand_on` is called for; `notify_one` has its fence.
            match self.word.compare_exchange_weak(word.0, new.0, Release, Relaxed) {
                Err(now) => word = Word(now),
                Ok(_) if wake => {
                    self.woken_on.note();
                    self.wake_one(whom == Whom::Elsewhere && word.idle() > 1);
                    return Notified::Done;
                }
                Ok(_) if start => return Notified::Start,
                Ok(_) => return Notified::Done,
            }
        }
    }

    /// Counts an event, for which the caller then wakes sleepers.
    fn post(&self) {
        // ORD[SY2] release: a thread that reads the new count sees what it is about.
        self.event.word().fetch_add(1, Release);
    }

    /// Wakes one sleeper, rather one that fell asleep on another processor if that is asked for.
    fn wake_one(&self, elsewhere: bool) {
        self.post();
        let woken = elsewhere && self.event.wake_one_of(!here());
        #[cfg(all(test, volt_loom))]
        if elsewhere && self.defect == Some(model::Defect::WakesOnlyElsewhere) {
            return;
        }
        if !woken {
            self.event.wake(1);
        }
    }

    /// Wakes all sleepers, which look whether there is something for them.
    pub(crate) fn post_all(&self) {
        self.post();
        self.event.wake_all();
    }

    /// Takes the role of the waking thread, if nobody has it.
    pub(crate) fn begin_search(&self) -> bool {
        // ORD relaxed: a stale word makes the exchange fail.
        let word = Word(self.word.load(Relaxed));
        let new = word.with_state(WAKING).0;
        word.state() == PENDING
            // ORD relaxed: the role carries nothing.
            && self.word.compare_exchange(word.0, new, Relaxed, Relaxed).is_ok()
    }

    /// Ends the role of the waking thread, which found work. The caller looks at all queues
    /// afterwards and notifies if there is more: this consumes `notified`.
    pub(crate) fn found(&self) {
        // ORD relaxed: a stale word makes the exchange fail.
        let mut word = Word(self.word.load(Relaxed));
        while word.state() == WAKING {
            let new = word.with_state(PENDING).with_notified(false);
            // ORD relaxed: the fence below acquires.
            match self.word.compare_exchange_weak(word.0, new.0, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(now) => word = Word(now),
            }
        }
        // ORD[SY1] acquire: a SeqCst fence between consuming the bit and the caller's look; see Progress.
        fence(SeqCst);
    }

    /// Sleeps until there is something to look for. `waking` is the caller's role, which it loses
    /// when it falls asleep. `mail` tells whether there is something for this very thread.
    pub(crate) fn wait(&self, waking: bool, mail: impl Fn() -> bool) -> Waited {
        let mut asleep = false;
        loop {
            // ORD[SY2] acquire: an event that is counted here is seen in the word below.
            let event = self.event.word().load(Acquire);
            // ORD relaxed: a stale word makes the exchange fail, or is followed by an event.
            let mut word = Word(self.word.load(Relaxed));
            loop {
                if word.state() == SHUTDOWN {
                    return Waited::Shutdown;
                }
                let has_mail = asleep && mail();
                let mut new = word;
                if word.notified() || has_mail {
                    if word.notified() {
                        new = new.with_notified(false);
                        if word.state() == SIGNALED {
                            new = new.with_state(WAKING);
                        }
                    }
                    if asleep {
                        new = Word(new.0 - IDLE);
                    }
                    #[cfg(all(test, volt_loom))]
                    if self.defect == Some(model::Defect::AwakeButIdle) {
                        new = Word(new.0 + IDLE);
                    }
                } else if asleep {
                    break;
                } else {
                    new = Word(new.0 + IDLE);
                    if waking {
                        new = new.with_state(PENDING);
                    }
                }
                // ORD relaxed: the fence below acquires.
                match self.word.compare_exchange_weak(word.0, new.0, Relaxed, Relaxed) {
                    Err(now) => word = Word(now),
                    Ok(_) if word.notified() || has_mail => {
                        // ORD[SY1] acquire: a SeqCst fence between consuming the bit and the search; see Progress.
                        fence(SeqCst);
                        let signaled = word.notified() && word.state() == SIGNALED;
                        return Waited::Search { waking: signaled || (waking && !asleep) };
                    }
                    Ok(_) => {
                        asleep = true;
                        word = new;
                    }
                }
            }
            self.event.wait_as(event, here());
        }
    }

    /// Counts a thread that the caller starts, whether or not there is work. False if there are
    /// `max` already, or the pool was shut down.
    pub(crate) fn count_start(&self, max: u32) -> bool {
        // ORD relaxed: a stale word makes the exchange fail.
        let mut word = Word(self.word.load(Relaxed));
        while word.spawned() < max && word.state() != SHUTDOWN {
            // ORD relaxed: counting carries nothing.
            match self.word.compare_exchange_weak(word.0, word.0 + SPAWNED, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = Word(now),
            }
        }
        false
    }

    /// Takes back the count of a thread that could not be started. If none is left, each submitter
    /// runs what it has queued.
    #[cold]
    pub(crate) fn start_failed(&self) {
        #[cfg(all(test, volt_loom))]
        if self.defect == Some(model::Defect::FailureStaysSignaled) {
            // ORD relaxed: stronger, as in the seed.
            self.word.fetch_sub(SPAWNED, Release);
            return;
        }
        // ORD relaxed: a stale word makes the exchange fail.
        let mut word = Word(self.word.load(Relaxed));
        loop {
            let mut new = Word(word.0 - SPAWNED);
            if word.state() == SIGNALED {
                new = new.with_state(PENDING);
            }
            if new.spawned() == 0 {
                new = new.with_notified(false);
            }
            // ORD relaxed: the fence below acquires.
            match self.word.compare_exchange_weak(word.0, new.0, Relaxed, Relaxed) {
                Err(now) => word = Word(now),
                Ok(_) => {
                    // ORD[SY1] acquire: a SeqCst fence between consuming the bit and the caller's search; see Progress.
                    fence(SeqCst);
                    return;
                }
            }
        }
    }

    /// Ends all waiting. True for the first call.
    pub(crate) fn shut_down(&self) -> bool {
        // ORD relaxed: what the shutdown is about is carried by the event.
        let before = Word(self.word.fetch_or(SHUTDOWN, Relaxed));
        #[cfg(all(test, volt_loom))]
        if self.defect == Some(model::Defect::ShutdownWakesOne) {
            // The models' futex wakes all, so the mutant wakes nobody beyond the first event.
            return before.state() != SHUTDOWN;
        }
        self.post_all();
        before.state() != SHUTDOWN
    }

    /// A thread's last access to the pool.
    pub(crate) fn exited(&self) {
        // ORD relaxed: a count. A shutdown joins each thread, which carries what they did (finding
        // K7 is about one that only counts).
        self.word.fetch_sub(SPAWNED, Relaxed);
    }

    /// How many threads are started or being started.
    pub(crate) fn spawned(&self) -> u32 {
        // ORD relaxed: a count, see `exited`.
        Word(self.word.load(Relaxed)).spawned()
    }

    /// How many threads sleep and can be woken for work: a hint, none after a shutdown. Those that
    /// sleep then are still counted in the word, but leave.
    pub(crate) fn idle(&self) -> usize {
        // ORD relaxed: a hint; who relies on it has a fence before this.
        let word = Word(self.word.load(Relaxed));
        // Killed by `scope::model::a_task_spawned_beside_a_shutdown_is_run`.
        #[cfg(not(volt_mutant = "nobody_is_idle_after_a_shutdown"))]
        if word.state() == SHUTDOWN {
            return 0;
        }
        word.idle() as usize
    }

    /// Counts a sleeper that a model does not play.
    #[cfg(all(test, volt_loom))]
    pub(crate) fn count_sleeper(&self) {
        // ORD relaxed: a count.
        self.word.fetch_add(IDLE, Relaxed);
    }

    /// True if a thread sleeps that can be woken for work: a hint, as `idle`.
    pub(crate) fn has_idle(&self) -> bool {
        self.idle() > 0
    }

    /// As `has_idle`, of one that is not being woken for something else.
    pub(crate) fn has_free_idle(&self) -> bool {
        // ORD relaxed: as in `idle`.
        let woken = Word(self.word.load(Relaxed)).state() == SIGNALED;
        self.idle() > usize::from(woken)
    }

    /// True after [`shut_down`](Self::shut_down): a hint for threads that do not wait here.
    pub(crate) fn is_shut_down(&self) -> bool {
        // ORD relaxed: a hint.
        Word(self.word.load(Relaxed)).state() == SHUTDOWN
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
