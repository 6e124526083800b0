//! How late the kernel may end a timed wait.
//!
//! Purpose: Linux ends the timed waits of a thread up to 50 us late, so as to end several at once.
//! A thread that waits for the timers of a runtime asks for 1 ns instead. The runtime's own threads
//! keep that; one that was in `block_on` gets its old value back.

use std::cell::Cell;

use volt_sync::internal::primitive;

std::thread_local! {
    /// What the thread had before, if it was changed.
    static BEFORE: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Called before a timed wait. Two system calls, the first time.
#[inline]
pub(crate) fn sharpen() {
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
pub(crate) fn restore() {
    if let Some(before) = BEFORE.take() {
        primitive::set_timer_slack(before);
    }
}

#[cfg(all(test, not(volt_loom), target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn block_on_restores_the_slack_of_its_thread() {
        let runtime = crate::runtime::Builder::new_current_thread().build().unwrap();
        let before = primitive::timer_slack();
        assert!(before > 1, "a test thread has the default slack");
        runtime.block_on(async {
            crate::time::sleep(std::time::Duration::from_millis(1)).await;
            assert_eq!(primitive::timer_slack(), 1);
        });
        assert_eq!(primitive::timer_slack(), before);
    }
}
