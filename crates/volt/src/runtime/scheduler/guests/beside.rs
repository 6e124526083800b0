//! `Handle::block_on` of a current-thread runtime: beside the thread that is the runtime, or instead of one.
//!
//! Purpose: whoever has a handle can wait for a future of its own, also if no thread is in the runtime's `block_on`, whose
//! tasks then run on this one. But a poll of that future may compute, or wait for what another thread does, for as long as
//! it likes; and the one in the runtime's `block_on`, whose tasks wait for the place meanwhile, would be told by nobody that
//! it is in use by such a poll. So this thread has the place only between the polls of its own future, and what that spawns
//! goes through the injector.
//!
//! Rejected: to take the place for as long as it is free, as in `Runtime::block_on`: the thread that came second waited
//! for a task, which waited for the place, which the first held while it waited for the second. Never to take it, as
//! Tokio: tasks, timers and sockets that such a future waits for stand still until some thread is in `Runtime::block_on`.

use super::guest::{Guest, Waits};
use crate::runtime::context;
use crate::runtime::scheduler::lifecycle::cancel;
use crate::runtime::scheduler::pacing::quick;

impl Guest<'_> {
    /// Polls the future of this thread, which is pending, until it is ready, as no member. In between, while the place of
    /// the current-thread runtime is free, a guest of its own runs tasks, and leaves when the future was woken.
    pub(crate) fn run_beside<T>(&self, mut poll: impl FnMut() -> Option<T>) -> T {
        loop {
            let visitor = Guest::new(self.shared, self.park, Waits::Visits);
            // In its scope the future is not polled: it is a member's.
            context::as_guest(&visitor, || visitor.run(quick::OF_NO_TASK, || Some(())));
            let shuts_down = visitor.has_left();
            drop(visitor);
            if let Some(output) = poll() {
                return output;
            }
            if shuts_down {
                // Only the future is left.
                loop {
                    if let Some(output) = cancel::wait(self.park, &mut poll) {
                        return output;
                    }
                }
            }
        }
    }
}
