//! A value on a cache line of its own.
#![forbid(unsafe_code)]

use std::ops::{Deref, DerefMut};

/// Aligns its content so that no two of them share a cache line.
///
/// 128 bytes on x86-64 and AArch64: Intel's spatial prefetcher fetches lines in pairs, and several
/// AArch64 cores have lines of 128 bytes. 64 bytes elsewhere.
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
