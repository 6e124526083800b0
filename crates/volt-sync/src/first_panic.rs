//! Panics of user code that must not keep the rest of an operation from being done.
#![forbid(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What a panic carries.
type Payload = Box<dyn Any + Send>;

/// The first of several panics, kept until everything else is done.
#[derive(Default)]
#[must_use = "a panic is to go on"]
pub(crate) struct FirstPanic(Option<Payload>);

impl FirstPanic {
    /// No panic yet.
    pub(crate) const fn new() -> Self {
        Self(None)
    }

    /// Runs `work`, which may panic.
    #[inline]
    pub(crate) fn catch(&mut self, work: impl FnOnce()) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
            self.keep(payload);
        }
    }

    #[cold]
    fn keep(&mut self, payload: Payload) {
        if self.0.is_none() {
            self.0 = Some(payload);
        } else {
            discard_payload(payload);
        }
    }

    /// True if there was one.
    pub(crate) const fn happened(&self) -> bool {
        self.0.is_some()
    }

    /// Goes on with the first panic, if there was one.
    ///
    /// # Panics
    /// With that.
    #[inline]
    pub(crate) fn resume(self) {
        if let Some(payload) = self.0 {
            resume_unwind(payload);
        }
    }

    /// Goes on with the first panic, by somebody who has `value` in hand, which is dropped before: if that panics as
    /// well, the two must not meet.
    #[cold]
    pub(crate) fn resume_without<T>(mut self, value: T) -> ! {
        self.catch(|| drop(value));
        self.resume();
        unreachable!("there was a panic")
    }
}

/// Runs `work`. If that panics, what `rest` gives is dropped before the panic goes on: otherwise the unwinding would do that,
/// and if it panics as well, the two would meet.
///
/// # Panics
/// As `work`.
#[inline]
pub(crate) fn or_drop<T, R>(work: impl FnOnce() -> R, rest: impl FnOnce() -> T) -> R {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|payload| FirstPanic(Some(payload)).resume_without(rest()))
}

/// Runs `work`, mostly a waker, which may panic, and swallows that.
#[inline]
pub fn contain(work: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(work)) {
        discard_payload(payload);
    }
}

/// Drops what a panic carried. That is user code too: if it panics in turn, what that carries is
/// forgotten, since its drop might do the same for ever.
pub(crate) fn discard_payload(payload: Payload) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(move || drop(payload))) {
        std::mem::forget(second);
    }
}

#[cfg(all(test, not(volt_loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

    use super::FirstPanic;

    /// A payload whose drop panics, with another one of its kind.
    struct Bomb(u32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 {
                panic_any(Self(self.0));
            }
        }
    }

    #[test]
    fn the_first_panic_goes_on_and_the_others_do_no_harm() {
        let mut panic = FirstPanic::new();
        panic.catch(|| ());
        panic.catch(|| panic_any(Bomb(0)));
        panic.catch(|| panic_any(Bomb(1)));
        let payload = catch_unwind(AssertUnwindSafe(|| panic.resume())).unwrap_err();
        assert_eq!(payload.downcast_ref::<Bomb>().unwrap().0, 0);
        FirstPanic::new().resume();
    }
}
