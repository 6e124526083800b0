//! A value on a cache line of its own.
//!
//! Rejected: [`CachePadded`] in what is allocated often. An alignment above two words makes the allocator's slow path of
//! it (glibc's `posix_memalign`, which no cache of the thread serves); to create and drop a channel took twice as long.
//! [`Spaced`] keeps the same distance with the alignment that every allocation has.
#![forbid(unsafe_code)]

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

/// How far apart two values have to be.
///
/// 128 bytes on x86-64 and AArch64: Intel's spatial prefetcher fetches lines in pairs, and several
/// AArch64 cores have lines of 128 bytes. 64 bytes elsewhere.
const LINE: usize =
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) { 128 } else { 64 };

/// What `Spaced` is aligned to: two words, as all that the standard library's allocator has at once.
const ALIGN: usize = 2 * size_of::<usize>();

/// Aligns its content so that no two of them share a cache line.
#[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), repr(align(128)))]
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), repr(align(64)))]
#[derive(Debug, Default)]
pub struct CachePadded<T>(T);

impl<T> CachePadded<T> {
    /// Pads `value`.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the content.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for CachePadded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for CachePadded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

const _: () = assert!(align_of::<CachePadded<u8>>() == LINE);

/// A value, and behind it so much room that what follows is on another cache line, wherever both lie: in a `repr(C)`
/// struct, fields of this type share none with each other, nor with the fields after the last of them. A [`Gap`] in
/// front of the first one keeps that apart from what is before it.
///
/// (The value ends in a piece of [`ALIGN`] bytes at a multiple of that; what follows begins [`LINE`] bytes after that piece.)
#[cfg_attr(target_pointer_width = "64", repr(C, align(16)))]
#[cfg_attr(target_pointer_width = "32", repr(C, align(8)))]
pub(crate) struct Spaced<T> {
    value: T,
    gap: MaybeUninit<[u8; LINE - ALIGN]>,
}

/// Room between two fields of a `repr(C)` struct.
pub(crate) type Gap = Spaced<()>;

const _: () = assert!(align_of::<Gap>() == ALIGN && size_of::<Gap>() == LINE - ALIGN);
const _: () = assert!(size_of::<Spaced<[u8; ALIGN + 1]>>() == LINE + ALIGN);

impl<T> Spaced<T> {
    #[inline]
    pub(crate) const fn new(value: T) -> Self {
        Self { value, gap: MaybeUninit::uninit() }
    }
}

/// No alignment that would take the allocator's slow path. (Loom's types are not the ones that count.)
#[allow(dead_code, reason = "the oldest supported compiler sees no use in an unnamed constant")]
pub(crate) const fn is_quickly_allocated<T>() -> bool {
    cfg!(volt_loom) || align_of::<T>() <= ALIGN
}

impl Gap {
    pub(crate) const GAP: Self = Self::new(());
}

impl<T> Deref for Spaced<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Spaced<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Spaced<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
