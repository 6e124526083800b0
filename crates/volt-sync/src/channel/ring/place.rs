//! The places of a ring: what a claim gives, and how it is used up. Edges and invariants are those of
//! [`channel::ring`](super).

use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::Release;

use super::cursor::Cursor;
use crate::primitive::{AtomicU64, UnsafeCell};

/// The bit of a stamp that says that the place holds a message.
pub(super) const PUBLISHED: u64 = 1;

pub(super) struct Place<T> {
    pub(super) stamp: AtomicU64,
    pub(super) value: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Place<T> {
    fn first_lap() -> Self {
        Self { stamp: AtomicU64::new(0), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }
}

/// A place that a sender has claimed: the next receivers wait until it is published.
#[must_use = "a claimed place has to be published"]
pub(crate) struct Free<'a, T> {
    pub(super) place: &'a Place<T>,
    /// The place's stamp when it is published.
    pub(super) published: u64,
    /// The tail, and what the claim has made of it.
    pub(super) tail: (&'a Cursor, u64),
}

/// A place that a receiver has claimed: the senders of the next lap wait until it is left.
#[must_use = "a claimed place has to be left"]
pub(crate) struct Full<'a, T> {
    pub(super) place: &'a Place<T>,
    /// The place's stamp when it is free again.
    pub(super) free: u64,
    /// The head, and what the claim has made of it.
    pub(super) head: (&'a Cursor, u64),
}

impl<T> Free<'_, T> {
    /// Writes the value and hands it to the receivers.
    #[inline]
    pub(crate) fn publish(self, value: T) {
        // SAFETY: the claim, which is used up here, makes the place ours until we publish
        // (invariant 2).
        self.place.value.with_mut(|place| unsafe { place.write(MaybeUninit::new(value)) });
        // ORD[RG1] release: hands the value to the receiver that claims the position.
        self.place.stamp.store(self.published, Release);
        self.tail.0.leave_guess(self.tail.1);
    }
}

impl<T> Full<'_, T> {
    /// Moves the value out and frees the place.
    #[inline]
    pub(crate) fn take(self) -> T {
        // SAFETY: published before the claim, which is used up here, and so initialised, and ours until we free it
        // (invariant 2).
        let value = self.place.value.with(|place| unsafe { place.cast::<T>().read() });
        // ORD[RG2] release: the place is empty. The same
        // ORD[RG5] release: for those who have another place.
        self.place.stamp.store(self.free, Release);
        self.head.0.leave_guess(self.head.1);
        value
    }
}

/// Up to so many bytes, the stamps are written; more are not touched before they are used. (glibc's `calloc` does not
/// take what the thread has freed before.)
#[cfg(not(volt_loom))]
const SMALL: usize = 1024;

/// Places that may be written in the first lap.
#[cfg(not(volt_loom))]
pub(super) fn places<T>(length: usize) -> Box<[Place<T>]> {
    let layout = std::alloc::Layout::array::<Place<T>>(length).expect("channel too large");
    if layout.size() <= SMALL {
        return (0..length).map(|_| Place::first_lap()).collect();
    }
    // SAFETY: a place holds an atomic, so the layout is not empty.
    let places = unsafe { std::alloc::alloc_zeroed(layout) };
    if places.is_null() {
        std::alloc::handle_alloc_error(layout);
    }
    let places = std::ptr::slice_from_raw_parts_mut(places.cast::<Place<T>>(), length);
    // SAFETY: allocated with the layout of the slice; zeros are a valid stamp, and the value needs
    // no initialisation.
    unsafe { Box::from_raw(places) }
}

#[cfg(volt_loom)]
pub(super) fn places<T>(length: usize) -> Box<[Place<T>]> {
    (0..length).map(|_| Place::first_lap()).collect()
}
