//! The hierarchical timer wheel of one shard: a plain data structure, guarded by the shard's lock.
//!
//! Purpose: O(1) insertion and removal of timers whose nodes belong to others, with exact
//! nanosecond deadlines.
//!
//! Rejected: a heap of nodes (removing the earliest of 10,000 costs a dozen cache misses, against
//! two list moves here); a wheel of 1 ms ticks (half a millisecond late on average); waking at
//! each slot's start to move its timers down (wake-ups that fire nothing: the exact deadline is
//! looked up instead, as long as the slot holds few timers).
//!
//! State: level `l` has 64 slots of `2^(10 + 6 l)` ns: 1 us, 65 us, 4.2 ms, ... 9.1 years; nine
//! levels cover all of u64. A timer sits on the level of the highest bit in which its deadline
//! differs from `elapsed`. The last few that were inserted are `recent`: most timers are time limits, and most of those
//! are removed soon; such a one is never placed. They are as soon as anybody looks for the earliest timer, or more
//! come.
//!
//! Invariants:
//! 1. A timer on level `l > 0` agrees with `elapsed` in all bits above that level, and its slot's
//!    index there is greater than that of `elapsed`; on level 0 greater or equal. Hence the first
//!    occupied slot of the lowest occupied level is the earliest of all.
//! 2. `elapsed` only grows, to a value before the start of every occupied slot (then 1 goes on
//!    holding), or to the start of the earliest slot when that slot's timers are moved down, or
//!    inside the earliest slot on level 0.
//! 3. `elapsed` is never later than the clock.
//! 4. A deadline may be later than its slot (it was moved while the timer stayed in its place),
//!    never earlier, except for one that had passed at its insertion.
//! 5. If `visited` is a place above level 0, timers in `cascading`, of which there are some, carry it as their slot,
//!    in which no timer can be inserted meanwhile.
//! 6. If `visited` is a place on level 0, that slot is not empty, and none of its timers before `unvisited` (none of
//!    all, if there is none) is due at `visited_at`. It is the earliest slot, so nothing is moved down meanwhile.
//! 7. The timers in `recent`, at most [`RECENT`], carry [`UNPLACED`] as their slot, and were inserted after all others.
//! 8. `elapsed` is not later than the deadline of a timer in `recent`, except for one that had passed at its insertion: so they
//!    are placed in their order. (The caller of `catch_up` sees to that; who fires places them first.)
//!
//! Cost: inserting and removing takes a constant number of steps, looking at the earliest ones up to [`RECENT`] of them more.
//! `pop_due` moves each timer down a level at a time, and
//! passes by each that shares the earliest slot of level 0 and is not due yet once for each time that it is called
//! for: with that, an interrupted pass goes on where it stopped. So what fires many timers of one slot takes as
//! many steps as they are, which the budget bounds between two releases of the lock.

use std::ptr::NonNull;

use volt_sync::internal::LinkedList;

use super::entry::Entry;

/// No timer.
pub(super) const NEVER: u64 = u64::MAX;

const BASE_BITS: u32 = 10;
const LEVEL_BITS: u32 = 6;
const SLOTS: usize = 1 << LEVEL_BITS;
const LEVELS: usize = 9;
/// In the place of a slot: none.
const NOWHERE: u16 = u16::MAX;
/// In the place of a timer's slot: it is in `recent`.
const UNPLACED: u16 = u16::MAX - 1;
/// The most timers that are not placed.
const RECENT: usize = if cfg!(volt_loom) { 1 } else { 64 };
/// A slot with more timers than this is not searched for its earliest deadline.
const SEARCH: usize = 16;

/// What [`Wheel::pop_due`] found.
#[derive(Debug)]
#[must_use]
pub(super) enum Due {
    /// This timer is due. It has been unlinked.
    Timer(NonNull<Entry>),
    /// The budget is used up; come again.
    More,
    /// Nothing more is due.
    None,
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Wheel {
    elapsed: u64,
    /// Bit `l`: level `l` has an occupied slot.
    busy_levels: u16,
    busy_slots: [u64; LEVELS],
    slots: Box<[LinkedList<Entry>; LEVELS * SLOTS]>,
    /// The timers that were inserted last, in that order, and how many they are.
    recent: LinkedList<Entry>,
    recent_len: usize,
    /// The slot that `pop_due` has begun with, or [`NOWHERE`].
    visited: u16,
    /// What is left to be moved down of `visited`, above level 0.
    cascading: LinkedList<Entry>,
    /// The next timer to look at in `visited`, on level 0; none at its end.
    unvisited: Option<NonNull<Entry>>,
    /// For which time that is done.
    visited_at: u64,
}

impl Wheel {
    pub(super) fn new(now: u64) -> Self {
        Self {
            elapsed: now,
            busy_levels: 0,
            busy_slots: [0; LEVELS],
            slots: Box::new([const { LinkedList::new() }; LEVELS * SLOTS]),
            recent: LinkedList::new(),
            recent_len: 0,
            visited: NOWHERE,
            cascading: LinkedList::new(),
            unvisited: None,
            visited_at: 0,
        }
    }

    /// Links a timer.
    ///
    /// # Safety
    /// 1. `node` is alive, pinned, and in no list.
    /// 2. It is removed before it is freed.
    /// 3. All access to its links and slot happens under this wheel's lock.
    #[inline]
    pub(super) unsafe fn insert(&mut self, node: NonNull<Entry>) {
        if self.recent_len == RECENT {
            self.place_oldest();
        }
        // SAFETY: `node` is alive (obligation 1).
        unsafe { node.as_ref() }.slot.set(UNPLACED);
        // SAFETY: obligations 1 and 2 are the caller's.
        unsafe { self.recent.push_back(node) };
        self.recent_len += 1;
    }

    /// Places the oldest of the recent timers, if there is one.
    fn place_oldest(&mut self) {
        let Some(node) = self.recent.pop_front() else { return };
        self.recent_len -= 1;
        // SAFETY: it was linked in this wheel, so the obligations hold on, and it is in no list now.
        unsafe { self.insert_placed(node) };
    }

    /// Places all recent timers: for whoever looks at the slots.
    #[inline]
    fn place_recent(&mut self) {
        while self.recent_len > 0 {
            self.place_oldest();
        }
    }

    /// Links a timer by its deadline.
    ///
    /// # Safety
    /// As of [`insert`](Self::insert).
    #[inline]
    unsafe fn insert_placed(&mut self, node: NonNull<Entry>) {
        // SAFETY: `node` is alive (obligation 1).
        let entry = unsafe { node.as_ref() };
        let place = self.place(entry.deadline());
        entry.slot.set(place as u16);
        // SAFETY: obligations 1 and 2 are the caller's.
        unsafe { self.slots[place].push_back(node) };
        let level = place / SLOTS;
        self.busy_slots[level] |= 1 << (place % SLOTS);
        self.busy_levels |= 1 << level;
        if place == usize::from(self.visited) {
            self.unvisited = self.unvisited.or(Some(node));
        }
    }

    /// Unlinks a timer.
    ///
    /// # Safety
    /// `node` is linked in this wheel.
    #[inline]
    pub(super) unsafe fn remove(&mut self, node: NonNull<Entry>) {
        // SAFETY: linked, so alive.
        let slot = unsafe { node.as_ref() }.slot.get();
        if slot == UNPLACED {
            self.recent_len -= 1;
            // SAFETY: linked in the list that it carries (invariant 7).
            return unsafe { self.recent.remove(node) };
        }
        // SAFETY: linked in the slot that it carries.
        unsafe { self.remove_placed(node, slot) };
    }

    /// Unlinks a timer of a `slot`.
    ///
    /// # Safety
    /// `node` is linked in that slot of this wheel.
    #[inline(never)]
    unsafe fn remove_placed(&mut self, node: NonNull<Entry>, slot: u16) {
        if slot == self.visited {
            // SAFETY: linked, in that slot.
            return unsafe { self.remove_visited(node) };
        }
        // SAFETY: linked in the slot that it carries.
        unsafe { self.slots[usize::from(slot)].remove(node) };
        if self.slots[usize::from(slot)].is_empty() {
            self.mark_empty(usize::from(slot));
        }
    }

    /// Unlinks a timer of the slot that `pop_due` has begun with.
    ///
    /// # Safety
    /// `node` is linked in this wheel, and its slot is `visited`.
    unsafe fn remove_visited(&mut self, node: NonNull<Entry>) {
        let place = usize::from(self.visited);
        if place >= SLOTS {
            // SAFETY: linked here (invariant 5).
            unsafe { self.cascading.remove(node) };
            if self.cascading.is_empty() {
                self.visited = NOWHERE;
            }
            return;
        }
        if self.unvisited == Some(node) {
            // SAFETY: linked in the slot that it carries.
            self.unvisited = unsafe { self.slots[place].next(node) };
        }
        // SAFETY: linked in the slot that it carries, which is on level 0.
        unsafe { self.slots[place].remove(node) };
        if self.slots[place].is_empty() {
            self.mark_empty(place);
            self.visited = NOWHERE;
        }
    }

    /// Tells the wheel that the clock has reached `now`, where that takes no work: timers that are
    /// placed afterwards land on a lower level. No timer's deadline is before `now` (invariant 8).
    #[inline]
    pub(super) fn catch_up(&mut self, now: u64) {
        if now >> BASE_BITS > self.elapsed >> BASE_BITS && self.first_start() > now {
            self.elapsed = now; // Invariant 2.
        }
    }

    /// Unlinks one timer whose deadline is not after `now`, in the order of their level-0 slots
    /// and, within a slot, of their insertion. Takes from `budget` for every timer that it moves
    /// down a level or passes by. If another caller with a later `now` is not done with a slot, that counts for it.
    pub(super) fn pop_due(&mut self, now: u64, budget: &mut usize) -> Due {
        self.place_recent();
        loop {
            if let Some(node) = self.cascading.front() {
                if *budget == 0 {
                    return Due::More;
                }
                *budget -= 1;
                // SAFETY: the front is linked, and carries `visited` (invariant 5).
                unsafe { self.remove_visited(node) };
                // SAFETY: it was linked in this wheel, so the obligations hold on, and it is in no
                // list now.
                unsafe { self.insert_placed(node) };
                continue;
            }
            let Some(place) = self.first() else { break };
            let start = self.start(place);
            if start > now {
                break;
            }
            if place >= SLOTS {
                self.elapsed = start; // Invariant 2.
                self.cascading = std::mem::take(&mut self.slots[place]);
                self.visited = place as u16;
                self.mark_empty(place);
                continue;
            }
            self.elapsed = self.elapsed.max(start);
            match self.pop_from(place, now, budget) {
                Due::None => {}
                found => return found,
            }
            if self.busy_slots[0] & (1 << place) != 0 {
                self.visited = NOWHERE;
                break; // The rest of this slot is not due yet.
            }
        }
        // Invariants 2 and 3. The partly due slot of level 0 contains `now`.
        self.elapsed = self.elapsed.max(now);
        Due::None
    }

    /// A time not after the earliest deadline, exact unless many timers share its slot; `NEVER` if
    /// there is none.
    pub(super) fn next(&mut self) -> u64 {
        self.place_recent();
        self.earliest(SEARCH)
    }

    /// The same, but exact on level 0, where a slot with many is not moved down. Looks at all that share it.
    #[cold]
    pub(super) fn next_exactly(&mut self) -> u64 {
        self.place_recent();
        let is_lowest = self.first().is_some_and(|place| place < SLOTS);
        self.earliest(if is_lowest { usize::MAX } else { SEARCH })
    }

    fn earliest(&self, search: usize) -> u64 {
        if !self.cascading.is_empty() {
            return self.elapsed;
        }
        let Some(place) = self.first() else { return NEVER };
        let start = self.start(place);
        let list = &self.slots[place];
        // A deadline that was moved out of the slot must not hide those of later slots.
        let mut earliest = start | ((1 << shift(place / SLOTS)) - 1);
        let mut node = list.front();
        for _ in 0..search {
            let Some(current) = node else { return earliest };
            // SAFETY: linked, so alive.
            earliest = earliest.min(unsafe { current.as_ref() }.deadline());
            // SAFETY: linked in `list`.
            node = unsafe { list.next(current) };
        }
        if node.is_none() { earliest } else { start }
    }

    /// The latest deadline by the time `until`, or 0; and `until` if a short search does not tell.
    pub(super) fn latest_until(&mut self, until: u64) -> u64 {
        self.place_recent();
        let busy_levels = (0..LEVELS).filter(|level| self.busy_levels & 1 << level != 0);
        let places = busy_levels.flat_map(|level| {
            let busy = self.busy_slots[level];
            let slots = (0..SLOTS).filter(move |slot| busy & 1 << slot != 0);
            slots.map(move |slot| level * SLOTS + slot)
        });
        let lists =
            places.take_while(|place| self.start(*place) <= until).map(|place| &self.slots[place]);
        let mut timers = std::iter::once(&self.cascading).chain(lists).flat_map(|list| {
            // SAFETY: linked in `list`.
            std::iter::successors(list.front(), |node| unsafe { list.next(*node) })
        });
        // SAFETY: linked, so alive.
        let deadlines =
            timers.by_ref().take(SEARCH).map(|node| unsafe { node.as_ref() }.deadline());
        let latest = deadlines.filter(|deadline| *deadline <= until).max().unwrap_or(0);
        if timers.next().is_none() { latest } else { until }
    }

    /// Unlinks any timer, for shutdown.
    pub(super) fn pop_any(&mut self) -> Option<NonNull<Entry>> {
        let node = match self.recent.front().or(self.cascading.front()) {
            Some(node) => node,
            None => self.slots[self.first()?].front()?,
        };
        // SAFETY: the front of a list of this wheel is linked in it.
        unsafe { self.remove(node) };
        Some(node)
    }

    /// Unlinks the next due timer of a level-0 slot, which is not empty, and moves those that do not belong there.
    fn pop_from(&mut self, place: usize, now: u64, budget: &mut usize) -> Due {
        if usize::from(self.visited) != place || now > self.visited_at {
            self.visited = place as u16;
            self.unvisited = self.slots[place].front();
            self.visited_at = now;
        }
        while let Some(node) = self.unvisited {
            // SAFETY: linked, so alive.
            let deadline = unsafe { node.as_ref() }.deadline();
            let belongs = self.place(deadline) == place;
            if belongs && deadline <= self.visited_at {
                // SAFETY: linked in this slot.
                unsafe { self.remove_visited(node) };
                return Due::Timer(node);
            }
            if *budget == 0 {
                return Due::More;
            }
            *budget -= 1;
            if belongs {
                // SAFETY: linked in this list.
                self.unvisited = unsafe { self.slots[place].next(node) };
                continue;
            }
            // It was moved later: to where it belongs, so that it fires in order.
            // SAFETY: linked in this slot.
            unsafe { self.remove_visited(node) };
            // SAFETY: it was linked in this wheel, so the obligations hold on, and it is in no list now.
            unsafe { self.insert_placed(node) };
        }
        Due::None
    }

    /// The place of a deadline: level times 64 plus slot.
    #[inline]
    fn place(&self, deadline: u64) -> usize {
        let at = deadline.max(self.elapsed);
        // The lowest bit stands for "level 0", which has no difference above the base.
        let differing = ((at ^ self.elapsed) >> BASE_BITS) | 1;
        let level = (differing.ilog2() / LEVEL_BITS) as usize;
        let slot = (at >> shift(level)) as usize % SLOTS;
        level * SLOTS + slot
    }

    /// The earliest occupied place (invariant 1).
    #[inline]
    fn first(&self) -> Option<usize> {
        if self.busy_levels == 0 {
            return None;
        }
        let level = self.busy_levels.trailing_zeros() as usize;
        Some(level * SLOTS + self.busy_slots[level].trailing_zeros() as usize)
    }

    /// When the slot at `place` begins.
    #[inline]
    fn start(&self, place: usize) -> u64 {
        let shift = shift(place / SLOTS);
        let slot = (place % SLOTS) as u64;
        // All bits above the level are those of `elapsed` (invariant 1).
        let above = u64::MAX.checked_shl(shift + LEVEL_BITS).unwrap_or(0);
        (self.elapsed & above) | (slot << shift)
    }

    /// When the earliest occupied slot begins.
    #[inline]
    fn first_start(&self) -> u64 {
        if !self.cascading.is_empty() {
            return 0;
        }
        self.first().map_or(NEVER, |place| self.start(place))
    }

    #[inline]
    fn mark_empty(&mut self, place: usize) {
        let level = place / SLOTS;
        self.busy_slots[level] &= !(1 << (place % SLOTS));
        if self.busy_slots[level] == 0 {
            self.busy_levels &= !(1 << level);
        }
    }
}

/// The bit at which the slots of `level` begin.
#[inline]
const fn shift(level: usize) -> u32 {
    BASE_BITS + LEVEL_BITS * level as u32
}

#[cfg(all(test, not(volt_loom)))]
mod tests;
