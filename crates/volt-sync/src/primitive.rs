//! The one layer through which Volt touches atomics, cells, threads and the futex.
//!
//! Purpose: the same source runs on OS threads and, under `--cfg volt_loom`, inside the loom model
//! checker. No other module names the standard library's atomics, cells, locks or threads (`cargo
//! xtask tidy` holds that).
//!
//! What differs between the two is only here: `native.rs` forwards to `std` and the operating
//! system, `model.rs` to loom.

#[cfg(volt_loom)]
#[path = "primitive/model.rs"]
mod imp;
#[cfg(not(volt_loom))]
#[path = "primitive/native.rs"]
mod imp;

pub use imp::*;

/// A cell for user data that is handed out by reference, so that no closure can bound the access.
///
/// Loom cannot check it. Models put an [`UnsafeCell`] inside the data and access that.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct RawCell<T: ?Sized>(std::cell::UnsafeCell<T>);

impl<T> RawCell<T> {
    /// Wraps `value`.
    #[inline(always)]
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Returns the content.
    #[inline(always)]
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> RawCell<T> {
    /// Where the content is.
    #[inline(always)]
    pub const fn get(&self) -> *mut T {
        self.0.get()
    }

    /// Where the content is, from the place of the cell alone.
    #[inline(always)]
    pub const fn raw_get(cell: *const Self) -> *mut T {
        // The cell is transparent.
        std::cell::UnsafeCell::raw_get(cell as *const std::cell::UnsafeCell<T>)
    }

    /// The content, borrowed for as long as the cell is.
    #[inline(always)]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// Declares thread-locals with constant initial values.
#[doc(hidden)]
#[macro_export]
macro_rules! const_thread_local {
    ($($(#[$meta:meta])* static $name:ident: $type:ty = $init:expr;)*) => {
        $crate::internal::primitive::thread_local! {
            $($(#[$meta])* static $name: $type = const { $init };)*
        }
    };
}

/// Declares a constructor that is `const` on threads and plain under loom, whose atomics cannot be
/// made in constants.
#[doc(hidden)]
#[macro_export]
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis const fn $($rest:tt)*) => {
        #[cfg(not(volt_loom))]
        $(#[$meta])* $vis const fn $($rest)*
        #[cfg(volt_loom)]
        $(#[$meta])* $vis fn $($rest)*
    };
    ($(#[$meta:meta])* $vis:vis const unsafe fn $($rest:tt)*) => {
        #[cfg(not(volt_loom))]
        $(#[$meta])* $vis const unsafe fn $($rest)*
        #[cfg(volt_loom)]
        $(#[$meta])* $vis unsafe fn $($rest)*
    };
}
