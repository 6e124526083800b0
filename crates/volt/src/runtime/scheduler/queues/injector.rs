//! The queue between the workers and everybody else: tasks woken by other threads, and overflow.
//!
//! Purpose: an unbounded FIFO that allocates nothing (the tasks are its nodes), from which workers
//! take batches, and whose emptiness costs one load to see.
//!
//! There are two lists: the *open* tasks are for every member, and those *set aside* for the ones that poll
//! anything. A choosy guest (`quick.rs`) sets aside what is not for it, and so finds what waits behind that. A
//! batch has the oldest task that was set aside, if one is due, which is polled at once, and besides only such as have become
//! known to be quick: the others would lie where the guest steals them, and sets them aside again. With whole
//! batches, one task of each was polled and the rest went round, some of them for ever.
//!
//! Each list gives as large a part of its tasks as the other one, so that a task waits as long in either. Rejected: half a batch
//! of each. Of 2,000 connections whose requests took 300 us, a guest set some aside as soon as they came, and those
//! were next: half of all waited for 0.1 s, and one in a hundred for 0.9. In turn, that is 0.3 and 0.6. (Quick tasks among the
//! first open ones go before slow ones whose turn has not come.)
//!
//! Rejected: a lock-free queue. Producers are threads that wake single tasks, consumers take up to
//! 64 at once; the short critical section is cheaper than the reclamation such a queue needs.
//!
//! Rejected: a second queue of this type for what is set aside. A worker would look at two words where it
//! looks at one, for each poll while it is the injector's turn.
//!
//! What was pushed is in lists of its own, the *new* ones, until somebody takes tasks, and moves them behind the *old* ones.
//! Rejected: one mutex for both. To cut a batch off is a walk over tasks that another processor has written, 64 cache
//! misses; a thread that pushed meanwhile went to sleep, and woke up when a busy worker's time slice was over
//! (`a_push_does_not_wait_for_who_takes`; measured in `docs/design/scheduler.md`).
//!
//! What overflows from a ring because of spawns of short tasks is a *burst*. It may wait for some rounds longer than what came from
//! elsewhere (`fetch.rs`), and is best taken back by who has written it: another processor has to fetch each task, its future and
//! what that allocated, and gives the memory back to an allocator that it does not belong to. So bursts are in lists of
//! their own ([`Bursts`]), by whose they are. Of these and the other open tasks, each gives as large a part.
//!
//! State: singly linked lists under each of two mutexes, and their lengths in one atomic word.
//!
//! Invariants:
//! 1. The lengths in `lens` are added to under the mutex of the new lists (the push lock), as tasks are pushed, and subtracted
//!    from after tasks were taken: while nobody pushes, they are not below those of the lists.
//! 2. A linked task is the queue's alone: nobody else holds its `Notified`.
//! 3. Who holds the mutex of the new lists takes no other.
//!
//! | Edge  | Release side                  | Acquire side         | Carries | Model |
//! |-------|-------------------------------|----------------------|---------|-------|
//! | [IS1] | `Injector::publish` (and `Ring::publish`, `Ring::steal_into`) | `Injector::lens`, `Ring::is_empty` | that there is work, to a worker that parks (`idle.rs`) | none: under loom the fences of [ID1] stand between. Litmus test `order_parking::weak_orders_of_the_summary_or_the_queues_lose_a_task` of volt-models |
//!
//! Progress: a thread that is stopped while it pushes holds up all others, for some instructions; one that is stopped while
//! it takes, those that take: at most 128 pointer moves.
//!
//! Cost: push a lock and an unlock, and one read-modify-write; a batch twice the locks, for all its tasks.

use std::ptr::NonNull;
use std::sync::TryLockError;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use volt_sync::internal::CachePadded;
use volt_sync::internal::primitive::{AtomicU64, Mutex, MutexGuard};

/// A node of an intrusive singly linked queue.
///
/// # Safety
/// `next` returns what the last `set_next` of the same node stored.
pub(crate) unsafe trait Linked {
    /// The link of `node`.
    ///
    /// # Safety
    /// `node` is alive, and the caller's alone.
    unsafe fn next(node: NonNull<Self>) -> Option<NonNull<Self>>;

    /// Changes the link of `node`.
    ///
    /// # Safety
    /// `node` is alive, and the caller's alone.
    unsafe fn set_next(node: NonNull<Self>, next: Option<NonNull<Self>>);
}

/// A chain of linked nodes, owned.
pub(crate) struct Chain<T> {
    ends: Option<(NonNull<T>, NonNull<T>)>,
    len: usize,
}

// SAFETY: a chain owns its nodes, which are made to move between threads (`Notified` is `Send`).
unsafe impl<T> Send for Chain<T> {}

impl<T: Linked> Chain<T> {
    pub(crate) const fn new() -> Self {
        Self { ends: None, len: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Appends `node`.
    ///
    /// # Safety
    /// `node` is alive, and becomes the chain's alone.
    #[inline]
    pub(crate) unsafe fn push(&mut self, node: NonNull<T>) {
        // SAFETY: the caller gives the node away.
        unsafe { T::set_next(node, None) };
        self.len += 1;
        match &mut self.ends {
            None => self.ends = Some((node, node)),
            Some((_, last)) => {
                // SAFETY: the chain owns its last node.
                unsafe { T::set_next(*last, Some(node)) };
                *last = node;
            }
        }
    }

    /// Takes the first node.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<NonNull<T>> {
        let (first, last) = self.ends?;
        self.len -= 1;
        // SAFETY: the chain owns its nodes.
        let next = unsafe { T::next(first) };
        self.ends = next.map(|next| (next, last));
        Some(first)
    }

    fn append(&mut self, other: Self) {
        let Some((other_first, other_last)) = other.ends else { return };
        self.len += other.len;
        match &mut self.ends {
            None => self.ends = Some((other_first, other_last)),
            Some((_, last)) => {
                // SAFETY: the chain owns its last node.
                unsafe { T::set_next(*last, Some(other_first)) };
                *last = other_last;
            }
        }
    }

    /// Takes nodes as long as `goes_on` says so of the first one, up to `count`.
    fn take_while(&mut self, count: usize, goes_on: impl Fn(NonNull<T>) -> bool) -> Self {
        let mut taken = Self::new();
        while let Some((first, _)) = self.ends {
            if taken.len == count || !goes_on(first) {
                break;
            }
            taken.append(self.take(1));
        }
        taken
    }

    /// Takes up to `count` of the first nodes (four times as many, 64 at most) that are `wanted`, from between the others.
    fn take_some(&mut self, count: usize, wanted: impl Fn(NonNull<T>) -> bool) -> Self {
        let (mut taken, mut passed) = (Self::new(), Self::new());
        let among = (4 * count).min(MAX_BATCH);
        while taken.len < count && taken.len + passed.len < among {
            let Some(node) = self.pop() else { break };
            let to = if wanted(node) { &mut taken } else { &mut passed };
            // SAFETY: it was this chain's.
            unsafe { to.push(node) };
        }
        passed.append(std::mem::replace(self, Self::new()));
        *self = passed;
        taken
    }

    /// Takes the first `count` nodes, or all.
    fn take(&mut self, count: usize) -> Self {
        let mut taken = Self::new();
        if count >= self.len {
            std::mem::swap(self, &mut taken);
            return taken;
        }
        let Some((first, last)) = self.ends else { return taken };
        if count == 0 {
            return taken;
        }
        let mut cut = first;
        for _ in 1..count {
            // SAFETY: the chain owns its nodes, and has more than `count`.
            cut = unsafe { T::next(cut) }.expect("a chain is as long as it says");
        }
        // SAFETY: the chain owns the node, which is not its last.
        let rest = unsafe { T::next(cut) }.expect("a chain is as long as it says");
        // SAFETY: the chain owns the node until it is cut off.
        unsafe { T::set_next(cut, None) };
        taken.ends = Some((first, cut));
        taken.len = count;
        self.ends = Some((rest, last));
        self.len -= count;
        taken
    }
}

impl<T: Linked> FromIterator<NonNull<T>> for Chain<T> {
    /// The caller owns the nodes, and gives them away.
    fn from_iter<I: IntoIterator<Item = NonNull<T>>>(nodes: I) -> Self {
        let mut chain = Self::new();
        for node in nodes {
            // SAFETY: the nodes are given away by whoever has them (a ring that was emptied).
            unsafe { chain.push(node) };
        }
        chain
    }
}

impl<T> std::fmt::Debug for Chain<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").field("len", &self.len).finish()
    }
}

/// So many members have lists of their own for bursts; further ones share them.
const OWNERS: usize = 8;

/// One of so many batches of bursts is not the taker's own first: what is there of others, who may be in long polls, has
/// its turn as well.
const FOR_OTHERS: usize = 4;

/// Bursts, by who has sent them.
struct Bursts<T> {
    of: [Chain<T>; OWNERS],
    len: usize,
    /// How many batches were taken.
    turn: usize,
}

impl<T: Linked> Bursts<T> {
    const fn new() -> Self {
        Self { of: [const { Chain::new() }; OWNERS], len: 0, turn: 0 }
    }

    fn push(&mut self, chain: Chain<T>, owner: usize) {
        self.len += chain.len();
        self.of[owner % OWNERS].append(chain);
    }

    fn append(&mut self, other: Self) {
        if other.len > 0 {
            self.len += other.len;
            self.of.iter_mut().zip(other.of).for_each(|(of, others)| of.append(others));
        }
    }

    /// Takes the first `count`, of `owner`'s first, or all.
    fn take(&mut self, count: usize, owner: usize) -> Chain<T> {
        self.turn += 1;
        let for_others = self.turn % FOR_OTHERS == 0;
        let first = if for_others { self.turn / FOR_OTHERS } else { owner };
        let (mut taken, count) = (Chain::new(), count.min(self.len));
        for of in first..first + OWNERS {
            if taken.len() == count {
                break;
            }
            taken.append(self.of[of % OWNERS].take(count - taken.len()));
        }
        self.len -= taken.len();
        taken
    }
}

/// What a mutex holds.
struct Lists<T> {
    /// Without the bursts, which are open as well.
    open: Chain<T>,
    bursts: Bursts<T>,
    set_aside: Chain<T>,
    /// What the last batches have left of what was due: to those that were set aside, to open ones beside these, and to
    /// open ones beside bursts.
    carry: [u64; 3],
}

impl<T: Linked> Lists<T> {
    const fn new() -> Self {
        Self { open: Chain::new(), bursts: Bursts::new(), set_aside: Chain::new(), carry: [0; 3] }
    }

    fn append(&mut self, other: Self) {
        self.open.append(other.open);
        self.bursts.append(other.bursts);
        self.set_aside.append(other.set_aside);
    }

    /// Takes `count` open tasks, or all: as many that are of no burst as these are a part of them, but at least one; and of the
    /// bursts, those of `owner` first.
    fn take_open(&mut self, count: usize, owner: usize) -> Chain<T> {
        let (open, bursts) = (self.open.len(), self.bursts.len);
        if bursts == 0 {
            return self.open.take(count);
        }
        let all = open + bursts;
        let part = due(count.min(all) * open, all, &mut self.carry[2]).max(1);
        let mut taken = self.open.take(part.min(count));
        taken.append(self.bursts.take(count - taken.len(), owner));
        // Of bursts there may have been too few.
        taken.append(self.open.take(count - taken.len()));
        taken
    }

    fn has_only_bursts(&self) -> bool {
        self.open.len() == 0 && self.set_aside.len() == 0
    }

    /// They are no bursts any more: beside what was set aside, open tasks are passed over.
    fn end_bursts(&mut self) {
        let all = self.bursts.len;
        self.open.append(self.bursts.take(all, 0));
    }

    /// Takes up to `count` tasks: of the open ones, and of those that were set aside. As many of each list as it is a
    /// part of both; but of those that were set aside, beside one, only quick ones. If that makes less of them, so it does
    /// of the open ones that are not quick.
    fn take(
        &mut self,
        count: usize,
        is_quick: impl Fn(NonNull<T>) -> bool,
        owner: usize,
    ) -> (Chain<T>, Chain<T>) {
        let aside = self.set_aside.len();
        if aside == 0 {
            return (self.take_open(count, owner), Chain::new());
        }
        self.end_bursts();
        let open = self.open.len();
        let [carry, carry_open, _] = &mut self.carry;
        let all = open + aside;
        let part = due(count.min(all) * aside, all, carry);
        let mut taken = self.set_aside.take(part.min(1));
        taken.append(self.set_aside.take_while(part.saturating_sub(1), &is_quick));
        let left = count - taken.len();
        if taken.len() == part {
            return (self.open.take(left), taken);
        }
        let first = due(taken.len() * open, aside, carry_open).min(left);
        let mut others = self.open.take(first);
        others.append(self.open.take_some(left - first, &is_quick));
        (others, taken)
    }
}

/// The whole part of `amount / of`, with what was left of it before: `carry` is that, in parts of 2^32.
fn due(amount: usize, of: usize, carry: &mut u64) -> usize {
    let sum = (((amount as u128) << 32) / of as u128) as u64 + *carry;
    *carry = sum & u64::from(u32::MAX);
    (sum >> 32) as usize
}

/// The lengths of both lists: in the low half that of the open tasks. (The 4,294,967,296 tasks that do not fit into a half
/// take 288 GiB.)
#[derive(Clone, Copy)]
struct Lens(u64);

impl Lens {
    const fn new(open: usize, set_aside: usize) -> Self {
        Self((set_aside as u64) << 32 | open as u64)
    }

    #[inline]
    const fn open(self) -> usize {
        self.0 as u32 as usize
    }

    #[inline]
    const fn set_aside(self) -> usize {
        (self.0 >> 32) as usize
    }

    /// Those for a member, which may be choosy.
    #[inline]
    const fn seen_by(self, choosy: bool) -> usize {
        self.open() + if choosy { 0 } else { self.set_aside() }
    }
}

/// The injection queue.
pub(crate) struct Injector<T> {
    lens: AtomicU64,
    /// What was pushed since somebody took tasks.
    new: Mutex<Lists<T>>,
    /// (Apart from what those who push write.)
    old: CachePadded<Mutex<Lists<T>>>,
}

/// The smallest and the largest batch that a worker takes.
pub(crate) const MIN_BATCH: usize = 4;
pub(crate) const MAX_BATCH: usize = 64;

impl<T: Linked> Injector<T> {
    pub(crate) fn new() -> Self {
        let [new, old] = [Lists::new(), Lists::new()].map(Mutex::new);
        Self { lens: AtomicU64::new(0), new, old: CachePadded::new(old) }
    }

    fn lock_new(&self) -> MutexGuard<'_, Lists<T>> {
        self.new.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Begins to take tasks, after whoever does so already.
    pub(crate) fn consumer(&self) -> Consumer<'_, T> {
        let old = self.old.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Consumer { injector: self, old }
    }

    /// Begins to take tasks, unless somebody does so already.
    pub(crate) fn try_consumer(&self) -> Option<Consumer<'_, T>> {
        let old = match self.old.try_lock() {
            Ok(old) => old,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Consumer { injector: self, old })
    }

    #[inline]
    fn lens(&self) -> Lens {
        // ORD[IS1] acquire: SeqCst; the total order with the addition in `publish` decides.
        Lens(self.lens.load(SeqCst))
    }

    /// Makes it known that there are more. Under the mutex of the new lists.
    #[inline]
    fn publish(&self, more: Lens) {
        // ORD[IS1] release: SeqCst, see `lens`.
        self.lens.fetch_add(more.0, SeqCst);
    }

    /// True if there is nothing to take for a member, which may be choosy; for the parking protocol, as
    /// `Ring::is_empty`.
    #[inline]
    pub(crate) fn is_empty_for(&self, choosy: bool) -> bool {
        let lens = self.lens();
        lens.0 == 0 || choosy && lens.open() == 0
    }

    /// True if there is something that choosy members do not take.
    #[inline]
    pub(crate) fn has_set_aside(&self) -> bool {
        self.lens().set_aside() != 0
    }

    /// The number of tasks, as a snapshot.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len_for(false)
    }

    #[inline]
    pub(crate) fn len_for(&self, choosy: bool) -> usize {
        // ORD relaxed: a hint; whoever acts on it takes the lock.
        Lens(self.lens.load(Relaxed)).seen_by(choosy)
    }

    /// Appends `node`.
    ///
    /// # Safety
    /// `node` is alive, and becomes the queue's alone.
    pub(crate) unsafe fn push(&self, node: NonNull<T>) {
        // SAFETY: the same obligation.
        let _always = unsafe { self.push_if(node, || true) };
    }

    /// As [`push`](Self::push), if `accept`, called under the lock, says so. Else the node is still the
    /// caller's, and this says false.
    ///
    /// # Safety
    /// As of `push`.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn push_if(&self, node: NonNull<T>, accept: impl FnOnce() -> bool) -> bool {
        let mut new = self.lock_new();
        if !accept() {
            return false;
        }
        // SAFETY: the same obligation.
        unsafe { new.open.push(node) };
        self.publish(Lens::new(1, 0));
        true
    }

    /// Appends `node` for those who are not choosy.
    ///
    /// # Safety
    /// As of `push`.
    pub(crate) unsafe fn set_aside(&self, node: NonNull<T>) {
        let mut new = self.lock_new();
        // SAFETY: the same obligation.
        unsafe { new.set_aside.push(node) };
        self.publish(Lens::new(0, 1));
    }

    /// Calls `f` while nobody pushes: each push comes before it, with all that it leaves to see, or after.
    pub(crate) fn between_pushes<R>(&self, f: impl FnOnce() -> R) -> R {
        let _new = self.lock_new();
        f()
    }

    /// Appends a chain.
    pub(crate) fn push_batch(&self, chain: Chain<T>) {
        let mut new = self.lock_new();
        let len = chain.len();
        new.open.append(chain);
        self.publish(Lens::new(len, 0));
    }

    /// Appends what the ring of the member `owner` has overflowed with, because of spawns of short tasks.
    pub(crate) fn push_burst(&self, chain: Chain<T>, owner: usize) {
        let mut new = self.lock_new();
        let len = chain.len();
        new.bursts.push(chain, owner);
        self.publish(Lens::new(len, 0));
    }

    /// Takes a node, from wherever.
    pub(crate) fn pop(&self) -> Option<NonNull<T>> {
        self.consumer().pop_batch(1, Some(|_| false), 0).pop()
    }

    /// How many tasks a member, which may be `choosy`, should take: its share among so many, from 4 to 64.
    #[inline]
    pub(crate) fn fair_share(&self, members: usize, choosy: bool) -> usize {
        (self.len_for(choosy) / members.max(1)).clamp(MIN_BATCH, MAX_BATCH)
    }
}

/// Takes nodes; nobody else does meanwhile.
#[must_use]
pub(crate) struct Consumer<'a, T> {
    injector: &'a Injector<T>,
    old: MutexGuard<'a, Lists<T>>,
}

impl<T: Linked> Consumer<'_, T> {
    /// True if all that is there is of bursts.
    pub(crate) fn has_only_bursts(&self) -> bool {
        self.old.has_only_bursts() && self.injector.lock_new().has_only_bursts()
    }

    /// Takes up to `count` nodes, for the member `owner`. For a choosy one (None) the oldest open ones; for others some of each list
    /// ([`Lists::take`]), those that were set aside first.
    pub(crate) fn pop_batch(
        self,
        count: usize,
        is_quick: Option<impl Fn(NonNull<T>) -> bool>,
        owner: usize,
    ) -> Chain<T> {
        let Self { injector, mut old } = self;
        let new = std::mem::replace(&mut *injector.lock_new(), Lists::new());
        old.append(new);
        let (open, mut taken) = match is_quick {
            None => (old.take_open(count, owner), Chain::new()),
            Some(is_quick) => old.take(count, is_quick, owner),
        };
        let set_aside = taken.len();
        taken.append(open);
        // ORD relaxed: a consumer need not be seen: the stale lengths make somebody look in vain.
        injector.lens.fetch_sub(Lens::new(taken.len() - set_aside, set_aside).0, Relaxed);
        taken
    }
}

impl<T: Linked> std::fmt::Debug for Injector<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Injector").field("len", &self.len()).finish()
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
