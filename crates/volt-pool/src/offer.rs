//! The forks that a worker offers to the others.
//!
//! Purpose: a promoted fork stands in one of a few places until somebody who looks for work claims
//! it, or its owner takes it back. There is an offer for each sleeping thread, as far as the places
//! go: with a single one, a thread that goes on to something long after two forks would keep the
//! second one to itself, while others sleep.
//!
//! Rejected: as many places as threads. Whoever claims a fork forks as well, so the work reaches
//! everybody in a few steps.
//!
//! Invariants:
//! 1. Only the owner fills a place, and only an empty one.
//!
//! | Edge | Release side | Acquire side | Carries | Model that fails without it |
//! |------|--------------|--------------|---------|-----------------------------|
//! | [FK1] | `Place::put` | `Place::claim` | the job and all that happened before the fork | `a_fork_is_run_once_wherever_it_runs` |
//!
//! Cost: an offer 0 RMW; claiming and taking back 1.
#![forbid(unsafe_code)]

use std::array;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use volt_sync::internal::primitive::{AtomicPtr, AtomicUsize};

use crate::fork::Fork;
use crate::frame::Lineage;

/// How many forks one thread can offer at a time.
pub(crate) const OFFERS: usize = if cfg!(volt_loom) { 2 } else { 4 };

/// What a worker offers to the others.
pub(crate) struct Offer {
    places: [Place; OFFERS],
}

struct Place {
    job: AtomicPtr<Fork>,
    /// The [`Lineage`] of the offered job: a hint by which related work is found.
    lineage: AtomicUsize,
}

impl Place {
    #[inline]
    fn is_empty(&self) -> bool {
        // ORD relaxed: a hint for all but the owner, which alone fills it.
        self.job.load(Relaxed).is_null()
    }

    fn is_related(&self, ancestor: Lineage) -> bool {
        // ORD relaxed: a hint.
        !self.is_empty() && Lineage::from_bits(self.lineage.load(Relaxed)).may_include(ancestor)
    }

    fn put(&self, job: *const Fork, lineage: Lineage) {
        // ORD relaxed: a hint.
        self.lineage.store(lineage.bits(), Relaxed);
        // ORD[FK1] release: the job and what happened before the fork.
        self.job.store(job.cast_mut(), Release);
    }

    fn claim(&self) -> Option<NonNull<Fork>> {
        // ORD relaxed: a look, by which an empty place is left alone.
        let job = self.job.load(Relaxed);
        if job.is_null() {
            return None;
        }
        // ORD[FK1] acquire: the job.
        // ORD relaxed: a failure carries nothing.
        let claimed = self.job.compare_exchange(job, ptr::null_mut(), Acquire, Relaxed);
        // What was there, and not what was seen: another job may lie where that one was.
        claimed.ok().and_then(NonNull::new)
    }

    fn take_back(&self, job: *const Fork) -> bool {
        // ORD relaxed: the owner has put it here itself.
        ptr::eq(self.job.load(Relaxed), job)
            // ORD relaxed: the owner gets back what it published.
            && self.job.compare_exchange(job.cast_mut(), ptr::null_mut(), Relaxed, Relaxed).is_ok()
    }
}

impl Offer {
    pub(crate) fn new() -> Self {
        let place =
            |_| Place { job: AtomicPtr::new(ptr::null_mut()), lineage: AtomicUsize::new(0) };
        Self { places: array::from_fn(place) }
    }

    /// True if nothing is offered: a hint.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.places.iter().all(Place::is_empty)
    }

    /// How much is offered; for the owner, at most that.
    pub(crate) fn len(&self) -> usize {
        self.places.iter().filter(|place| !place.is_empty()).count()
    }

    /// True if something that is offered may descend from `ancestor`: a hint.
    pub(crate) fn is_related(&self, ancestor: Lineage) -> bool {
        self.places.iter().any(|place| place.is_related(ancestor))
    }

    /// Offers `job`. Only for the owner, when [`len`](Self::len) was less than [`OFFERS`].
    pub(crate) fn put(&self, job: *const Fork, lineage: Lineage) {
        let place = self.places.iter().find(|place| place.is_empty());
        let place = place.expect("the owner has seen an empty place, and nobody else fills it");
        place.put(job, lineage);
    }

    /// Takes an offered job, which the caller has to run or return.
    pub(crate) fn claim(&self) -> Option<NonNull<Fork>> {
        self.places.iter().find_map(Place::claim)
    }

    /// As `claim`, of a job that may descend from `ancestor`.
    pub(crate) fn claim_related(&self, ancestor: Lineage) -> Option<NonNull<Fork>> {
        self.places.iter().filter(|place| place.is_related(ancestor)).find_map(Place::claim)
    }

    /// Takes `job` back. False if somebody claimed it.
    pub(crate) fn take_back(&self, job: *const Fork) -> bool {
        self.places.iter().any(|place| place.take_back(job))
    }
}
