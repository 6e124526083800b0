//! The list of a pool's threads: grows without a lock, and is read without one.
//!
//! Purpose: threads and guests have a record each. Thieves visit each other by index, so that they
//! can start anywhere and step by any number. Records are stored in segments of doubling size, which
//! never move.
//!
//! Rejected: the seed's linked list, whose followers all visit the newest thread first.
//!
//! | Edge | Release side | Acquire side | Carries | Model that fails without it |
//! |------|--------------|--------------|---------|-----------------------------|
//! | [RO1] | `Roster::segment` | `Roster::get`, `Roster::segment` | the segment's slots | `the_segment_is_seen_with_its_slots` |
//! | [RO2] | `Roster::publish` | `Roster::get` | the record | `a_published_record_is_seen_whole` |

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use volt_sync::internal::primitive::{AtomicPtr, AtomicUsize};

use crate::made::Made;
use crate::sync_word::MAX_THREADS;
use crate::worker::Worker;

/// The size of the first segment.
const FIRST: usize = if cfg!(volt_loom) { 2 } else { 32 };
const SEGMENTS: usize = if cfg!(volt_loom) { 15 } else { 11 };
/// How many records there can be: nearly four times `MAX_THREADS`, the rest for guests.
pub(crate) const RECORDS: usize = FIRST * ((1 << SEGMENTS) - 1);

/// A place for a record.
struct Slot {
    worker: AtomicPtr<Worker>,
    made: Made,
}

pub(crate) struct Roster {
    /// How many indices were given out; the last ones may not have a record yet.
    len: AtomicUsize,
    segments: [AtomicPtr<Slot>; SEGMENTS],
}

/// The segment of `index`, and the place in it.
fn locate(index: usize) -> (usize, usize) {
    let segment = (index / FIRST + 1).ilog2() as usize;
    (segment, index - FIRST * ((1 << segment) - 1))
}

impl Roster {
    pub(crate) fn new() -> Self {
        Self {
            len: AtomicUsize::new(0),
            segments: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// Gives out an index for a thread of the pool. There is always one: guests leave enough.
    pub(crate) fn reserve(&self) -> usize {
        // ORD relaxed: the record is published by [RO2].
        self.len.fetch_add(1, Relaxed)
    }

    /// Gives out an index for a guest, unless the rest is for the pool's own threads.
    pub(crate) fn reserve_for_guest(&self) -> Option<usize> {
        let more = |len| (len < RECORDS - MAX_THREADS as usize).then_some(len + 1);
        // ORD relaxed: the record is published by [RO2].
        // ORD relaxed: a stale number makes the exchange fail.
        self.len.fetch_update(Relaxed, Relaxed, more).ok()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        // ORD relaxed: an index without a record is skipped.
        self.len.load(Relaxed)
    }

    /// The record at `index`, if there is one yet.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&Worker> {
        let (segment, at) = locate(index);
        // ORD[RO1] acquire: the segment's slots.
        let slots = self.segments[segment].load(Acquire);
        if slots.is_null() {
            return None;
        }
        // SAFETY: `at` is inside the segment.
        let slot = unsafe { self.slot(slots, at) };
        // ORD[RO2] acquire: the record.
        let worker = slot.worker.load(Acquire);
        // SAFETY: null, or a record that lives as long as the roster.
        let worker = unsafe { worker.as_ref() }?;
        worker.made.seen();
        Some(worker)
    }

    /// Puts the record of a reserved index in its place, and keeps it.
    pub(crate) fn publish(&self, index: usize, worker: Box<Worker>) -> *const Worker {
        let (segment, at) = locate(index);
        let slots = self.segment(segment);
        let worker = Box::into_raw(worker);
        // SAFETY: `at` is inside the segment.
        let slot = unsafe { self.slot(slots, at) };
        // ORD[RO2] release: the record.
        slot.worker.store(worker, Release);
        worker
    }

    /// # Safety
    /// 1. `slots` is a segment of this roster, and `at` below its size.
    #[inline]
    unsafe fn slot(&self, slots: *const Slot, at: usize) -> &Slot {
        // SAFETY: inside the segment (1).
        let slot = unsafe { slots.add(at) };
        // SAFETY: segments live as long as the roster.
        let slot = unsafe { &*slot };
        slot.made.seen();
        slot
    }

    /// The segment, made if it is not there yet.
    fn segment(&self, segment: usize) -> *const Slot {
        // ORD[RO1] acquire: the segment's slots.
        let slots = self.segments[segment].load(Acquire);
        if !slots.is_null() {
            return slots;
        }
        let empty = || Slot { worker: AtomicPtr::new(ptr::null_mut()), made: Made::new() };
        let fresh: Box<[Slot]> = (0..FIRST << segment).map(|_| empty()).collect();
        let fresh = Box::into_raw(fresh).cast::<Slot>();
        // ORD[RO1] release: the slots.
        // ORD[RO1] acquire, on failure: those of whoever was faster.
        match self.segments[segment].compare_exchange(ptr::null_mut(), fresh, Release, Acquire) {
            Ok(_) => fresh,
            Err(theirs) => {
                // SAFETY: made above, and published to nobody.
                unsafe { free(fresh, segment) };
                theirs
            }
        }
    }

    /// All records.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Worker> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

/// # Safety
/// 1. `slots` is the segment of that number, and nobody uses it any more.
unsafe fn free(slots: *mut Slot, segment: usize) {
    let slice = ptr::slice_from_raw_parts_mut(slots, FIRST << segment);
    // SAFETY: it was made from a box of this size (1).
    drop(unsafe { Box::from_raw(slice) });
}

impl Drop for Roster {
    fn drop(&mut self) {
        for index in 0..self.len() {
            if let Some(worker) = self.get(index) {
                let worker = ptr::from_ref(worker).cast_mut();
                // SAFETY: made from a box in `publish`; the threads have ended, since each of them
                // holds the core, of which this is a part.
                drop(unsafe { Box::from_raw(worker) });
            }
        }
        for (number, segment) in self.segments.iter().enumerate() {
            // ORD relaxed: `&mut self` comes after every other access.
            let slots = segment.load(Relaxed);
            if !slots.is_null() {
                // SAFETY: the segment of that number, used by nobody any more.
                unsafe { free(slots, number) };
            }
        }
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_a_place_of_its_own() {
        let mut expected = (0, 0);
        for index in 0..RECORDS {
            assert_eq!(locate(index), expected);
            expected.1 += 1;
            if expected.1 == FIRST << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert_eq!(expected, (SEGMENTS, 0));
        const { assert!(RECORDS > 3 * MAX_THREADS as usize) };
    }
}
