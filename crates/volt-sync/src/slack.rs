//! How late the kernel may end a timed wait.
//!
//! Purpose: Linux ends the timed waits of a thread up to 50 us late, so as to end several at once.
//! A thread that waits for the timers of a runtime asks for 1 ns instead, and gets its old value back when it is no longer
//! a worker, or leaves `block_on`. Threads and processes inherit what the thread has that starts them, and keep it for
//! good: so they are started with the old value.
#![forbid(unsafe_code)]

use std::cell::Cell;

use crate::primitive;

std::thread_local! {
    /// What the thread had before, if it was changed.
    static BEFORE: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Called before a timed wait. Two system calls, the first time.
#[inline]
pub fn sharpen() {
    if BEFORE.get().is_none() {
        sharpen_slow();
    }
}

#[cold]
fn sharpen_slow() {
    BEFORE.set(Some(primitive::timer_slack()));
    primitive::set_timer_slack(1);
}

/// Gives the thread its old value back, if it was changed.
#[inline]
pub fn restore() {
    if let Some(before) = BEFORE.take() {
        primitive::set_timer_slack(before);
    }
}

/// Calls `start`, which starts a thread or a process, with the old value. Two system calls, if it was changed.
pub fn without<R>(start: impl FnOnce() -> R) -> R {
    /// Also if `start` panics.
    struct Sharpen(u32);
    impl Drop for Sharpen {
        fn drop(&mut self) {
            BEFORE.set(Some(self.0));
            primitive::set_timer_slack(1);
        }
    }
    let _sharpen = BEFORE.take().map(|before| {
        primitive::set_timer_slack(before);
        Sharpen(before)
    });
    start()
}

#[cfg(all(test, not(volt_loom), target_os = "linux"))]
#[allow(clippy::disallowed_methods, reason = "a test")]
mod tests {
    use std::panic::catch_unwind;

    use super::*;
    use crate::primitive::{thread, timer_slack};

    #[test]
    fn what_is_started_has_the_old_value_and_the_starter_keeps_its_own() {
        let before = timer_slack();
        assert!(before > 1, "a test's thread has the default slack");
        let started = || thread::spawn(timer_slack).join().unwrap();
        assert_eq!(without(started), before);
        assert_eq!(timer_slack(), before);
        sharpen();
        assert_eq!(started(), 1);
        assert_eq!(without(started), before);
        assert_eq!(timer_slack(), 1);
        assert!(catch_unwind(|| without(|| panic!("on purpose"))).is_err());
        assert_eq!(timer_slack(), 1);
        restore();
        assert_eq!(timer_slack(), before);
    }
}
