//! The timers of a runtime: one wheel per worker, and one for all other threads.
//!
//! Purpose: `Sleep` registers and cancels in the shard of the worker that polls it, whose lock
//! nobody else wants; any worker fires what is due in all of them; the one thread that waits in
//! the reactor knows until when it may.
//!
//! Rejected: one wheel under one lock (every worker's timers meet there); a shard per worker that
//! only this worker fires (a long poll would hold up its timers); a reference count per timer on
//! the runtime (a contended line: instead each shard counts, under the lock that is held anyway,
//! the timers that point to it, and the last one frees it when the runtime has gone).
//!
//! State: `Shard::next` is a lower bound of the shard's deadlines (`NEVER`: no timer), changed
//! under its lock. `Shared::sleeping_until`:
//!
//! | Value  | Meaning                                    | Next                                      |
//! |--------|--------------------------------------------|-------------------------------------------|
//! | 0      | nobody waits, or somebody is waking them   | NEVER, by `prepare_wait`                  |
//! | NEVER  | a thread will wait, until when is not known | the time, by that thread; 0, by a registrar |
//! | time   | a thread waits until then                  | 0, by that thread or by an earlier timer  |
//!
//! Invariants:
//! 1. Unlocked, `next` is not later than any deadline in the shard's wheel.
//! 2. A shard is freed when its `Timers` has gone (`closed`, and so no timer is linked) and `refs`
//!    is 0, by whoever makes the second of these true, under the lock.
//! 3. Wakers are woken and dropped outside the locks.
//! 4. `coarse` is never later than the clock (`coarse.rs`): a deadline that it has reached has passed, and a timer for it
//!    is not linked.
//!
//! | Edge  | Release side                | Acquire side            | Carries | Model test |
//! |-------|-----------------------------|-------------------------|---------|------------|
//! | [TW1] | `Shared::announce` (fence)   | `Timers::prepare_wait` (fence) | a lowered `next`, or the published sleep | `first_timer_is_seen_or_wakes_the_waiter` |
//! | [TW2] | `Timers::prepare_wait` (fence) | `Shared::announce` (fence) | the other direction of the same pair | `first_timer_is_seen_or_wakes_the_waiter` |
//!
//! Progress: the registrar lowers `next`, fences, and looks at `sleeping_until`; the waiter stores
//! `sleeping_until`, fences, and looks at every `next`. One of them sees the other (a store-buffer
//! litmus), so a timer is in the waiter's timeout or the waiter is woken. A registrar that finds 0
//! relies on another's wake-up that is on its way, after which the waiter looks again.
//!
//! Cost: registering 1 RMW (the lock), and a fence only if the timer is the shard's earliest; nothing
//! shared if its time has come; the first after a wait in which no timer was pending, one look at the clock.
//! Cancelling 1 RMW; moving one to an earlier time 1 RMW and one look at the clock; `fire_due` with
//! nothing due one load per shard, and one look at the clock if any timer is pending. Firing: two visits of
//! each timer per level, one where it is placed, and one of each that shares the lowest slot and is not due yet.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{self, Relaxed};
use std::task::Waker;
use std::time::Duration;

use volt_sync::internal::primitive::{Arc, AtomicU64, fence};
use volt_sync::internal::{CachePadded, WakeList};

use super::clock::{self, Clock};
use super::entry::{CHECK, Entry, FIRED, REGISTERED, SHUTDOWN};
use super::lock::Lock;
use super::wheel::{Due, NEVER, Wheel};
use coarse::Coarse;
use lead::Lead;
use wakes::Wakes;

mod coarse;
mod lead;
mod wakes;

/// Nobody waits in the reactor.
const AWAKE: u64 = 0;
/// How far `coarse` may lag behind before a busy worker writes it.
const COARSE_NS: u64 = 1 << 16;
/// Timers moved between levels, or passed by, per acquisition of the lock, which may place the recent ones as well.
const BUDGET: usize = if cfg!(volt_loom) { 1 } else { 128 };

type Unpark = Box<dyn Fn() + Send + Sync>;

/// The timers of one runtime. Dropping it shuts them down.
pub(crate) struct Timers {
    shards: Box<[NonNull<Shard>]>,
    shared: Arc<Shared>,
}

// SAFETY: the shards are `Sync`, and the pointers to them are valid as long as `self` (invariant 2).
unsafe impl Send for Timers {}
// SAFETY: as for `Send`: shared access to the shards is through their locks.
unsafe impl Sync for Timers {}

struct Shared {
    clock: Clock,
    sleeping_until: AtomicU64,
    coarse: Coarse,
    unpark: OnceLock<Unpark>,
    wakes: Wakes,
    lead: Lead,
}

/// One wheel and its lock.
pub(super) struct Shard(CachePadded<ShardInner>);

struct ShardInner {
    next: AtomicU64,
    locked: Lock<Locked>,
    shared: Arc<Shared>,
}

struct Locked {
    wheel: Wheel,
    /// A timer that may have been the earliest was removed: `next` may be too early.
    stale: bool,
    /// No timer may be linked any more.
    closed: bool,
    /// The `Timers` has let go of the shard.
    orphaned: bool,
    /// Entries whose `shard` points here.
    refs: usize,
}

// SAFETY: the nodes in the wheel are `Send` and `Sync`, and touched under its lock.
unsafe impl Send for Locked {}

/// What has become of a timer that was to be linked.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Registered {
    /// It is linked, and REGISTERED.
    Linked,
    /// Its deadline has passed: it is FIRED.
    Due,
    /// The timers are shut down, and it is SHUTDOWN.
    Closed,
}

/// What has become of a timer that was to be moved to an earlier deadline.
#[must_use]
enum Advanced {
    /// It was not registered any more.
    Gone,
    /// It is linked anew; `earliest`: as the first of its shard.
    Linked { earliest: bool },
    /// That deadline has passed, so it has fired; this is its waker.
    Fired(Waker),
}

impl Timers {
    /// Timers with `shards` wheels (at least one): one for each worker, and the last for all other
    /// threads.
    pub(crate) fn new(shards: usize, clock: Clock) -> Self {
        let now = clock.now_ns();
        let shared = Arc::new(Shared {
            clock,
            sleeping_until: AtomicU64::new(AWAKE),
            coarse: Coarse::new(now),
            unpark: OnceLock::new(),
            wakes: Wakes::new(),
            lead: Lead::new(),
        });
        let shards = (0..shards.max(1)).map(|_| Shard::allocate(shared.clone(), now)).collect();
        Self { shards, shared }
    }

    /// Sets how the thread that waits in the reactor is made to return; once, before use.
    pub(crate) fn set_unpark(&self, unpark: impl Fn() + Send + Sync + 'static) {
        let set = self.shared.unpark.set(Box::new(unpark));
        debug_assert!(set.is_ok(), "set_unpark is called once");
    }

    /// The clock that these timers go by.
    #[inline]
    pub(crate) fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// The shard of worker `index`, or of the threads that are none.
    #[inline]
    pub(super) fn shard(&self, index: Option<usize>) -> NonNull<Shard> {
        let last = self.shards.len() - 1;
        self.shards[index.map_or(last, |index| index.min(last))]
    }

    fn shards(&self) -> impl Iterator<Item = &Shard> {
        // SAFETY: the shards live as long as `self` (invariant 2).
        self.shards.iter().map(|shard| unsafe { shard.as_ref() })
    }

    /// A time not after the earliest deadline of all shards.
    #[inline]
    fn earliest_hint(&self) -> u64 {
        // ORD relaxed: a hint; firing looks again under the lock.
        self.shards().map(|shard| shard.0.next.load(Relaxed)).min().unwrap_or(NEVER)
    }

    /// Fires everything that is due now, and returns how many timers that were. Any thread may
    /// call it at any time; tasks are woken outside the locks.
    #[inline]
    pub(crate) fn fire_due(&self) -> usize {
        self.look(COARSE_NS, None).unwrap_or(0)
    }

    /// The same; `None` if no timer is pending, and so the clock was not looked at. If it was, or just `now`, `coarse`
    /// lags behind by no more than `lag`.
    #[inline]
    fn look(&self, lag: u64, now: Option<u64>) -> Option<usize> {
        let earliest = self.earliest_hint();
        if earliest == NEVER {
            return None;
        }
        let now = now.unwrap_or_else(|| self.shared.clock.now_ns());
        let is_due = earliest <= now;
        // Before it fires: whoever is woken finds all due that should fire by then.
        self.shared.coarse.note(now, if is_due { 0 } else { lag });
        Some(if is_due { self.fire_until(now) } else { 0 })
    }

    #[cold]
    fn fire_until(&self, now: u64) -> usize {
        // ORD relaxed: a hint; firing looks again under the lock.
        let due = |shard: &&Shard| shard.0.next.load(Relaxed) <= now;
        self.shards().filter(due).map(|shard| shard.fire(now)).sum()
    }

    /// Called by the one thread that is about to wait in the reactor: publishes that it will, and
    /// until when, then returns for how long it may wait (`None`: until it is woken), which is somewhat less
    /// than until the timer is due (`lead.rs`): whoever has waited so long calls [`wait_out`](Self::wait_out).
    /// A timer that is registered afterwards with an earlier deadline wakes it.
    ///
    /// With a paused clock there is nothing to wait for: the result is zero if a timer is pending
    /// for whose time the clock may advance by itself, and the caller, if the reactor had no event and there
    /// is still nothing to run, calls [`auto_advance`](Self::auto_advance). It is zero as well if a timer is due, which
    /// [`end_wait`](Self::end_wait) then fires: when its time came, or the clock was stopped, nobody may have looked.
    pub(crate) fn prepare_wait(&self) -> Option<Duration> {
        let earliest = self.publish_sleep()?;
        let clock = &self.shared.clock;
        if clock.is_paused() {
            let advances = earliest <= clock::LAST && clock.may_auto_advance();
            // What counts as due is due: for the start of a slot, the caller would come again and again.
            return (advances || self.next_time() <= clock.now_ns()).then_some(Duration::ZERO);
        }
        let wake_at = self.shared.wakes.wake_at(earliest, |due| self.latest_until(due));
        Some(Duration::from_nanos(self.shared.lead.wait(clock.now_ns(), wake_at)))
    }

    /// The earliest deadline, if there is a timer, which is published. A timer that comes later, but before the
    /// wake-up, is one of a crowd, too, and waits for its end.
    fn publish_sleep(&self) -> Option<u64> {
        // ORD relaxed: the fence orders it.
        self.shared.sleeping_until.store(NEVER, Relaxed);
        // ORD[TW2] release: publishes the sleep to those who register a timer after we looked.
        // ORD[TW1] acquire: sees the timers of those who did not see the sleep.
        fence(Ordering::SeqCst);
        let earliest = self.earliest();
        // Narrows the sleep, which was too wide: no need for a second fence. If a registrar has
        // meanwhile set AWAKE, its wake-up is on its way.
        // ORD relaxed: as above.
        self.shared.sleeping_until.store(earliest, Relaxed);
        (earliest != NEVER).then_some(earliest)
    }

    /// Called first after a wait that, as far as its caller knows, nothing else than the time of `prepare_wait` has
    /// ended: if that time is over, returns when the timer that it was for is due, or when there is something else
    /// to do than to wait: by `idle`, or for a registrar of an earlier timer. (Of the reactor's events it knows nothing.)
    /// The time, if it has looked at the clock last.
    pub(crate) fn wait_out(&self, idle: impl Fn() -> bool) -> Option<u64> {
        let clock = || {
            // ORD relaxed: a hint.
            let awake = self.shared.sleeping_until.load(Relaxed) == AWAKE;
            if awake || !idle() { None } else { self.shared.clock.running_ns() }
        };
        self.shared.lead.end(clock)
    }

    /// How much sooner than after `rest` a wait would be told to end.
    #[cfg(all(test, not(volt_loom)))]
    pub(crate) fn lead_ns(&self, rest: Duration) -> u64 {
        rest.as_nanos() as u64 - self.shared.lead.wait(0, rest.as_nanos() as u64)
    }

    /// Called after the wait, or [`wait_out`](Self::wait_out), which has returned `now`: fires what is due, and returns how
    /// many timers that were; `events`: there was something else.
    #[inline]
    pub(crate) fn end_wait(&self, events: bool, now: Option<u64>) -> usize {
        // ORD relaxed: a registrar that still sees the sleep wakes us once too often.
        self.shared.sleeping_until.store(AWAKE, Relaxed);
        let Some(fired) = self.look(0, now) else {
            self.forget_time();
            return 0;
        };
        if fired > 0 && !events {
            self.shared.wakes.count();
        }
        fired
    }

    /// Lets a paused clock run on, for the thread that waits in the reactor as well, which may wait for no time. False if
    /// it is not paused.
    pub(super) fn resume(&self) -> bool {
        let resumed = self.shared.clock.resume();
        if resumed {
            self.shared.announce(AWAKE);
        }
        resumed
    }

    /// Called when time has passed, or was stopped or moved, without a look at the clock here: the next timer that is
    /// registered looks.
    #[inline]
    pub(super) fn forget_time(&self) {
        self.shared.coarse.forget();
    }

    /// If the clock is paused and may advance by itself: moves it to the earliest deadline, fires
    /// what is due then, and returns how many timers that were. Called when the runtime is idle.
    pub(crate) fn auto_advance(&self) -> usize {
        loop {
            if !self.shared.clock.auto_advance_to(self.next_time()) {
                return 0;
            }
            // That may have been the start of a slot with many timers, none of which is due then.
            match self.fire_due() {
                0 => {}
                fired => return fired,
            }
        }
    }

    /// To when a paused clock advances: to the earliest deadline ([`NEVER`] if there is none), or somewhat less, but always
    /// further if nothing is due now.
    pub(crate) fn next_time(&self) -> u64 {
        let earliest = self.earliest();
        if earliest > self.shared.clock.now_ns() {
            return earliest;
        }
        self.shards().map(Shard::next_exactly).min().unwrap_or(NEVER)
    }

    /// The earliest deadline in nanoseconds of the clock ([`NEVER`] if there is none), or somewhat less.
    fn earliest(&self) -> u64 {
        // ORD relaxed: ordered by the caller's fence, if it needs any.
        let pending = |shard: &&Shard| shard.0.next.load(Relaxed) != NEVER;
        self.shards().filter(pending).map(Shard::refresh).min().unwrap_or(NEVER)
    }

    /// The latest deadline by the time `until`, which is a good guess if there are many.
    #[cold]
    fn latest_until(&self, until: u64) -> u64 {
        // ORD relaxed: a hint.
        let begun = |shard: &&Shard| shard.0.next.load(Relaxed) <= until;
        let latest = |shard: &Shard| shard.0.locked.with(|locked| locked.wheel.latest_until(until));
        self.shards().filter(begun).map(latest).max().unwrap_or(0)
    }

    /// Ends all pending timers: their tasks are woken, and polling such a `Sleep` panics. No timer
    /// can be registered afterwards.
    pub(crate) fn shutdown(&self) {
        for shard in self.shards() {
            shard.close();
        }
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        self.shutdown();
        for &shard in &self.shards {
            // SAFETY: valid: only here does `self` let go of it, once per shard.
            unsafe { Shard::release(shard, |locked| locked.orphaned = true) };
        }
    }
}

impl std::fmt::Debug for Timers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timers").field("shards", &self.shards.len()).finish_non_exhaustive()
    }
}

impl Shared {
    /// Wakes the thread in the reactor if it would sleep beyond `deadline`, of which it has been told.
    #[inline]
    fn announce(&self, deadline: u64) {
        let sleeping_until = &self.sleeping_until;
        // ORD[TW1] release: publishes the lowered `next`, or that the clock runs, to a thread about to wait.
        // ORD[TW2] acquire: sees the sleep of one that did not see it.
        fence(Ordering::SeqCst);
        // ORD relaxed: the fence orders it.
        let mut until = sleeping_until.load(Relaxed);
        while deadline < until {
            // One wake-up is enough for all who come until the sleeper looks again.
            // ORD relaxed: ordered by the fences; `unpark` synchronizes by itself.
            match sleeping_until.compare_exchange(until, AWAKE, Relaxed, Relaxed) {
                Ok(_) => return self.unpark(),
                Err(changed) => until = changed,
            }
        }
    }

    #[cold]
    fn unpark(&self) {
        if let Some(unpark) = self.unpark.get() {
            unpark();
        }
    }
}

impl Shard {
    fn allocate(shared: Arc<Shared>, now: u64) -> NonNull<Self> {
        let locked = Locked {
            wheel: Wheel::new(now),
            stale: false,
            closed: false,
            orphaned: false,
            refs: 0,
        };
        let inner = ShardInner { next: AtomicU64::new(NEVER), locked: Lock::new(locked), shared };
        NonNull::from(Box::leak(Box::new(Self(CachePadded::new(inner)))))
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.0.shared.clock
    }

    /// Links `entry`, unless its deadline has passed, as far as that is known without a look at the clock; a clone
    /// of `waker` is woken then.
    ///
    /// # Safety
    /// 1. The caller owns the entry, which is pinned and not REGISTERED.
    /// 2. Before it is freed or moved, [`Shard::forget`] is called.
    /// 3. Its `shard` is `at` or none. That is valid, and of `allocate`: who forgets the entry may free it.
    #[inline]
    pub(super) unsafe fn register(at: NonNull<Self>, entry: &Entry, waker: &Waker) -> Registered {
        // SAFETY: valid by obligation 3.
        let this = &*unsafe { at.as_ref() }.0;
        let deadline = entry.deadline();
        let (coarse, is_due) = this.shared.coarse.reaches(deadline, &this.shared.clock);
        if is_due {
            entry.moved.set(false);
            entry.set_state(FIRED);
            return Registered::Due;
        }
        let waker = waker.clone();
        let linked = this.locked.with(|locked| {
            if locked.closed {
                entry.set_state(SHUTDOWN);
                return Err(waker);
            }
            if entry.shard.get().is_none() {
                entry.shard.set(Some(at));
                locked.refs += 1;
            }
            // SAFETY: owned by the caller, the lock is held, and an entry that is not REGISTERED
            // holds no waker.
            unsafe { entry.put_waker(waker) };
            entry.moved.set(false);
            entry.set_state(REGISTERED);
            // Not beyond a timer that is due (invariant 1).
            // ORD relaxed: changed under this lock.
            locked.wheel.catch_up(coarse.min(this.next.load(Relaxed)));
            // SAFETY: alive and pinned (1), in no list as it was not REGISTERED, removed by
            // `forget` (2); links and slot are touched under this lock only.
            unsafe { locked.wheel.insert(NonNull::from(entry)) };
            Ok(this.lower(deadline))
        });
        match linked {
            Ok(false) => {}
            Ok(true) => this.shared.announce(deadline),
            Err(_waker) => return Registered::Closed, // Dropped outside the lock (invariant 3).
        }
        Registered::Linked
    }

    /// Replaces the waker of a registered entry. False if it is not registered any more.
    ///
    /// # Safety
    /// The caller owns the entry, and its `shard` is this one.
    pub(super) unsafe fn set_waker(&self, entry: &Entry, waker: &Waker) -> bool {
        let waker = waker.clone();
        let old = self.0.locked.with(|locked| {
            if !locked.is_registered(entry) {
                return Err(waker);
            }
            // SAFETY: the lock is held; REGISTERED, and a new waker follows.
            let old = unsafe { entry.take_waker() };
            // SAFETY: owned, the lock is held, and the old waker was taken out.
            unsafe { entry.put_waker(waker) };
            Ok(old)
        });
        old.is_ok() // The waker that is not needed is dropped here, outside the lock.
    }

    /// Moves a registered entry to an earlier deadline. If that has passed, fires it, as the next poll does not look
    /// at the clock. False if it is not registered any more.
    ///
    /// # Safety
    /// The caller owns the entry, and its `shard` is this one.
    // Not inline, so that a reset to a later time is short.
    #[inline(never)]
    pub(super) unsafe fn advance(&self, entry: &Entry, deadline: u64) -> bool {
        let this = &*self.0;
        let is_due = deadline <= this.shared.clock.now_ns();
        let advanced = this.locked.with(|locked| {
            if !locked.is_registered(entry) {
                return Advanced::Gone;
            }
            let node = NonNull::from(entry);
            // SAFETY: REGISTERED, so linked in this shard's wheel.
            unsafe { locked.wheel.remove(node) };
            entry.set_deadline(deadline);
            if is_due {
                locked.stale = true;
                // SAFETY: it was REGISTERED and has just been unlinked.
                return Advanced::Fired(unsafe { Locked::finish(node, FIRED) });
            }
            // SAFETY: it was linked here, so the obligations hold on, and it is in no list now.
            unsafe { locked.wheel.insert(node) };
            Advanced::Linked { earliest: this.lower(deadline) }
        });
        match advanced {
            Advanced::Gone => return false,
            Advanced::Linked { earliest: false } => {}
            Advanced::Linked { earliest: true } => this.shared.announce(deadline),
            Advanced::Fired(waker) => waker.wake(), // Outside the lock (invariant 3).
        }
        true
    }

    /// Cancels `entry` if it is registered, and ends its hold on the shard.
    ///
    /// # Safety
    /// The caller owns the entry, and its `shard` is `this`.
    // Not inline, so that dropping a timer that was never registered is one look.
    #[inline(never)]
    pub(super) unsafe fn forget(this: NonNull<Self>, entry: &Entry) {
        let mut waker = None;
        let cancel = |locked: &mut Locked| {
            if locked.is_registered(entry) {
                // SAFETY: REGISTERED, so linked in this shard's wheel.
                unsafe { locked.wheel.remove(NonNull::from(entry)) };
                // SAFETY: the lock is held; REGISTERED, and the state changes below.
                waker = Some(unsafe { entry.take_waker() });
                locked.stale = true;
            }
            entry.set_state(CHECK);
            entry.shard.set(None);
            locked.refs -= 1;
        };
        // SAFETY: `this` is valid, as the entry counts in its `refs`; that count ends here, once,
        // as the entry's `shard` is cleared.
        unsafe { Self::release(this, cancel) };
        drop(waker); // Outside the lock (invariant 3).
    }

    /// Gives up one hold on the shard, under the lock, by `give_up`; frees it after the last.
    ///
    /// # Safety
    /// `this` is valid, and the caller has a hold on it that `give_up` ends.
    #[inline]
    unsafe fn release(this: NonNull<Self>, give_up: impl FnOnce(&mut Locked)) {
        // SAFETY: `this` is valid, which the caller says.
        let shard = unsafe { this.as_ref() };
        let last = shard.0.locked.with(|locked| {
            give_up(locked);
            locked.orphaned && locked.refs == 0
        });
        if last {
            // SAFETY: made by `allocate`; nobody has a hold on it any more (invariant 2), and this
            // is seen by one thread only, the last to give one up.
            drop(unsafe { Box::from_raw(this.as_ptr()) });
        }
    }

    #[cold]
    fn fire(&self, now: u64) -> usize {
        let mut fired = 0;
        let mut wakers = WakeList::new();
        let mut more = true;
        while more {
            more = self.0.locked.with(|locked| {
                let mut budget = BUDGET;
                while !wakers.is_full() {
                    match locked.wheel.pop_due(now, &mut budget) {
                        Due::Timer(node) => {
                            // SAFETY: it was REGISTERED and has just been unlinked.
                            wakers.push(unsafe { Locked::finish(node, FIRED) });
                            fired += 1;
                        }
                        Due::More => return true,
                        Due::None => {
                            self.0.set_next(locked);
                            return false;
                        }
                    }
                }
                true
            });
            wake(&mut wakers);
        }
        fired
    }

    /// Makes `next` exact again if a removal made it too early, and returns it.
    fn refresh(&self) -> u64 {
        self.0.locked.with(|locked| {
            if locked.stale {
                self.0.set_next(locked);
            }
            // ORD relaxed: changed under this lock.
            self.0.next.load(Relaxed)
        })
    }

    /// A time not after the earliest deadline ([`NEVER`] if there is none), which is later than now if nothing is due,
    /// once `fire` was called for now if `next` had come.
    #[cold]
    fn next_exactly(&self) -> u64 {
        self.0.locked.with(|locked| {
            // Either may be the more exact one: what has come by both, `fire` visits.
            // ORD relaxed: changed under this lock.
            locked.wheel.next_exactly().max(self.0.next.load(Relaxed))
        })
    }

    #[cold]
    fn close(&self) {
        let mut wakers = WakeList::new();
        let mut more = true;
        while more {
            more = self.0.locked.with(|locked| {
                locked.closed = true;
                while !wakers.is_full() {
                    let Some(node) = locked.wheel.pop_any() else {
                        self.0.set_next(locked);
                        return false;
                    };
                    // SAFETY: it was REGISTERED and has just been unlinked.
                    wakers.push(unsafe { Locked::finish(node, SHUTDOWN) });
                }
                true
            });
            wake(&mut wakers);
        }
    }
}

impl ShardInner {
    /// Under the lock: keeps invariant 1 for a new deadline. True if it is the earliest.
    #[inline]
    fn lower(&self, deadline: u64) -> bool {
        // ORD relaxed: changed under the lock.
        let earlier = deadline < self.next.load(Relaxed);
        if earlier {
            // ORD relaxed: the fence of `announce` orders it.
            self.next.store(deadline, Relaxed);
        }
        earlier
    }

    /// Under the lock: recomputes `next`.
    fn set_next(&self, locked: &mut Locked) {
        locked.stale = false;
        // ORD relaxed: it only grows here, which nobody must learn of.
        self.next.store(locked.wheel.next(), Relaxed);
    }
}

impl Locked {
    /// Only asked by the owner of an entry whose shard this is, under the lock.
    #[inline]
    fn is_registered(&self, entry: &Entry) -> bool {
        entry.state() == REGISTERED
    }

    /// Publishes the end of a timer and returns its waker. The entry is not touched afterwards.
    ///
    /// # Safety
    /// `node` was REGISTERED under the lock, which is held, and has just been unlinked.
    #[inline]
    unsafe fn finish(node: NonNull<Entry>, state: u8) -> Waker {
        // SAFETY: alive: its owner needs the lock, held here, before it may free it.
        let entry = unsafe { node.as_ref() };
        // SAFETY: the lock is held; REGISTERED, and the state changes below.
        let waker = unsafe { entry.take_waker() };
        entry.finish(state);
        waker
    }
}

/// Wakes all. A panic in somebody's waker must not stop the other timers: it is reported by the
/// panic hook and goes no further.
fn wake(wakers: &mut WakeList) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| wakers.wake_all())) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(payload);
        }
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
