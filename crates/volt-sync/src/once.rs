//! A value that is written once: what [`OnceCell`](crate::OnceCell) and [`SetOnce`](crate::SetOnce)
//! are made of. The protocol is in `permits.rs`.
//!
//! State: whoever has the one permit writes the value, and closes the permits then. So "is it there"
//! is one load ([PM4] carries the value), and everybody who waits learns of it from the queue.

use std::mem::MaybeUninit;

use crate::permits::Permits;
use crate::primitive::RawCell;

/// A place for a value, and the permit to fill it.
pub(crate) struct Once<T> {
    permits: Permits,
    /// Initialised if and only if the permits are closed.
    value: RawCell<MaybeUninit<T>>,
}

// SAFETY: the cell owns the value.
unsafe impl<T: Send> Send for Once<T> {}
// SAFETY: the value is shared once it is there, and may come from another thread than it goes to.
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Once<T> {
    crate::const_fn! {
        /// Empty.
        pub(crate) const fn new() -> Self {
            Self { permits: Permits::new(1), value: RawCell::new(MaybeUninit::uninit()) }
        }
    }

    crate::const_fn! {
        /// Full.
        pub(crate) const fn full(value: T) -> Self {
            Self { permits: Permits::new_closed(), value: RawCell::new(MaybeUninit::new(value)) }
        }
    }

    /// One permit, closed when the value is there.
    #[inline]
    pub(crate) const fn permits(&self) -> &Permits {
        &self.permits
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.permits.is_closed().then(|| {
            // SAFETY: the value was written before the permits were closed, and only `&mut self`
            // changes it afterwards.
            unsafe { &*self.value.get().cast::<T>() }
        })
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.permits.is_closed().then(|| {
            // SAFETY: closed, so the value is there.
            unsafe { self.value.get_mut().assume_init_mut() }
        })
    }

    /// Stores the value and lets everybody see it.
    ///
    /// # Safety
    /// 1. The caller has taken the permit, and does not give it back.
    #[inline]
    pub(crate) unsafe fn fill(&self, value: T) {
        // SAFETY: the permit makes the place the caller's (obligation 1) until it is closed, which
        // happens once.
        unsafe { self.value.get().cast::<T>().write(value) };
        self.permits.close_taken();
    }

    pub(crate) fn into_inner(mut self) -> Option<T> {
        self.permits.is_closed().then(|| {
            self.permits = Permits::new(1);
            // SAFETY: it was closed, so the value is there; with open permits nobody reads it again.
            unsafe { self.value.get_mut().assume_init_read() }
        })
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        if let Some(value) = self.get_mut() {
            // SAFETY: the value is there, and nobody reads it again.
            unsafe { std::ptr::drop_in_place(value) };
        }
    }
}

/// What `OnceCell` and `SetOnce` have in common, for a cell with a field `once`.
macro_rules! common {
    ($Cell:ident) => {
        impl<T> $Cell<T> {
            crate::const_fn! {
                /// An empty cell. Allocates nothing.
                ///
                /// # Examples
                /// ```
                #[doc = concat!("use volt_sync::", stringify!($Cell), ";")]
                #[doc = concat!("assert_eq!(", stringify!($Cell), "::<u32>::new().get(), None);")]
                /// ```
                pub const fn new() -> Self {
                    Self { once: Once::new() }
                }
            }

            crate::const_fn! {
                /// As [`new`](Self::new), for statics; the two are the same.
                ///
                /// # Examples
                /// ```
                #[doc = concat!("use volt_sync::", stringify!($Cell), ";")]
                #[doc = concat!("static CELL: ", stringify!($Cell), "<u32> =")]
                #[doc = concat!("    ", stringify!($Cell), "::const_new();")]
                /// assert!(!CELL.initialized());
                /// ```
                pub const fn const_new() -> Self {
                    Self::new()
                }
            }

            crate::const_fn! {
                /// A full cell, for statics.
                ///
                /// # Examples
                /// ```
                #[doc = concat!("use volt_sync::", stringify!($Cell), ";")]
                #[doc = concat!("static CELL: ", stringify!($Cell), "<u32> =")]
                #[doc = concat!("    ", stringify!($Cell), "::const_new_with(5);")]
                /// assert_eq!(CELL.get(), Some(&5));
                /// ```
                pub const fn const_new_with(value: T) -> Self {
                    Self { once: Once::full(value) }
                }
            }

            /// A full cell, or an empty one for `None`.
            ///
            /// # Examples
            /// ```
            #[doc = concat!("let cell = volt_sync::", stringify!($Cell), "::new_with(Some(5));")]
            /// assert_eq!(cell.get(), Some(&5));
            /// ```
            pub fn new_with(value: Option<T>) -> Self {
                value.map_or_else(Self::new, Self::const_new_with)
            }

            /// True if the value is there.
            ///
            /// # Examples
            /// ```
            #[doc = concat!("let cell = volt_sync::", stringify!($Cell), "::new();")]
            /// cell.set(5).unwrap();
            /// assert!(cell.initialized());
            /// ```
            #[inline]
            pub fn initialized(&self) -> bool {
                self.once.permits().is_closed()
            }

            /// The value, if it is there.
            ///
            /// # Examples
            /// ```
            #[doc = concat!("let cell = volt_sync::", stringify!($Cell), "::new_with(Some(5));")]
            /// assert_eq!(cell.get(), Some(&5));
            /// ```
            #[inline]
            pub fn get(&self) -> Option<&T> {
                self.once.get()
            }

            /// The value, if it is there.
            ///
            /// # Examples
            /// ```
            #[doc = concat!("let cell = volt_sync::", stringify!($Cell), "::new_with(Some(5));")]
            /// assert_eq!(cell.into_inner(), Some(5));
            /// ```
            pub fn into_inner(self) -> Option<T> {
                self.once.into_inner()
            }
        }

        impl<T> Default for $Cell<T> {
            fn default() -> Self {
                Self::new()
            }
        }

        impl<T> From<T> for $Cell<T> {
            fn from(value: T) -> Self {
                Self::const_new_with(value)
            }
        }

        impl<T: Clone> Clone for $Cell<T> {
            fn clone(&self) -> Self {
                Self::new_with(self.get().cloned())
            }
        }

        impl<T: PartialEq> PartialEq for $Cell<T> {
            fn eq(&self, other: &Self) -> bool {
                self.get() == other.get()
            }
        }

        impl<T: Eq> Eq for $Cell<T> {}

        impl<T: std::fmt::Debug> std::fmt::Debug for $Cell<T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($Cell)).field("value", &self.get()).finish()
            }
        }
    };
}
pub(crate) use common;
