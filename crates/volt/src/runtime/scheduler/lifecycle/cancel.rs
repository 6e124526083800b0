//! Blocking waits on a thread that drops tasks when its runtime shuts down.
//!
//! The drop of a future may block: in `block_on`, or in a blocking `join`. What it waits for may be a
//! task that the same shutdown is to drop later. If the thread that it blocks is the only one that
//! drops tasks, the wait would never end; so such a thread, a *canceller*, goes on with that while it
//! waits, on top of the drop that waits. Cancellers are
//!
//! * a member in a blocking join ([`Worker::cancel_until`]);
//! * the thread that shuts a current-thread runtime down, with its local tasks, and a guest that it has left that to;
//! * a worker in a blocking call that no other thread could be started for.
//!
//! The last two are named by frames of the thread's context (`context::as_canceller`), since they
//! are no members where they wait. Who only waits for a runtime that others shut down is none: the
//! drop of a task may wait for what that thread's own future does.
//!
//! What it waits for may be a timer or a socket as well, or somebody who waits for these, and nobody looks at them any more. So a
//! canceller ends such waits, once the runtime takes no more tasks.
//!
//! Rejected: to refuse such waits with a panic (the same drop may block on a multi-thread runtime, and
//! does so for a reason); to drop only what the join names (the future of a `block_on` names nothing).
//!
//! Hazard: a task that is dropped on top of the wait, and itself waits for the one below, waits for
//! ever. The same holds for tasks below a blocking join.
#![cfg_attr(not(test), forbid(unsafe_code))]

use volt_sync::internal::primitive::Arc;

use super::threads::wait_briefly;
use crate::runtime::scheduler::guests::guest::stack_is_used_up_by;
use crate::runtime::scheduler::parking::park::{Park, ROOT};
use crate::runtime::scheduler::worker::Worker;
use crate::runtime::{context, level};
use crate::task::Home;

/// Sleeps until the future of this thread was woken, which it may have been already, and polls it. A
/// canceller drops tasks meanwhile.
pub(crate) fn wait<T>(park: &Arc<Park>, poll: &mut impl FnMut() -> Option<T>) -> Option<T> {
    struct Awake<'a>(&'a Arc<Park>);
    impl Drop for Awake<'_> {
        fn drop(&mut self) {
            context::for_each_cancelled(|shared| shared.waiting.remove(self.0));
        }
    }
    let awake = Awake(park);
    for attempt in 0.. {
        // Some tasks may be on their way into a queue, and some in a poll of another thread.
        if park.is_notified() || !cancel(park) {
            break;
        }
        wait_briefly(attempt);
    }
    while park.sleep(None) & ROOT == 0 {}
    drop(awake);
    poll()
}

/// Drops the tasks that can be reached of each runtime that has shut down and whose canceller this
/// thread is. True if one of them has tasks left.
///
/// # Panics
/// If such waits are nested too deeply.
fn cancel(park: &Arc<Park>) -> bool {
    let mut left = false;
    context::for_each_cancelled(|shared| {
        // First: a shutdown that begins after the look wakes us.
        shared.waiting.add(park);
        if !shared.is_shut_down() {
            return;
        }
        let has_tasks =
            || shared.has_tasks() || shared.config.home.as_ref().is_some_and(Home::has_tasks);
        if has_tasks() {
            // More than where tasks are run: a thread that is here because of that limit goes on.
            assert!(
                !stack_is_used_up_by(2),
                "blocking calls are nested too deeply in drops of futures: each waits for the next one"
            );
            level::above(|_| context::as_canceller(shared, || shared.shut_down_inside()));
            left |= has_tasks();
        }
        // What this thread waits for may be one of these, and it is the one that would look.
        shared.end_waits();
    });
    left
}

impl Worker<'_> {
    /// The runtime shuts down below a blocking join: drops tasks until `poll` has an output, since
    /// nobody else may be there who would, and what it waits for may be one of them.
    #[cold]
    pub(crate) fn cancel_until<T>(&self, poll: &mut impl FnMut() -> Option<T>) -> T {
        self.end_search();
        for attempt in 0.. {
            if let Some(output) = poll() {
                return output;
            }
            // Some tasks may be on their way into a queue, and some in a poll of another thread.
            self.give_up_tasks();
            self.shared.shut_down_inside();
            // Whom it waits for may wait for one of these, and as long as it does, no worker is the last one.
            self.shared.end_waits();
            wait_briefly(attempt);
        }
        unreachable!("the loop has no end")
    }
}

#[cfg(all(test, volt_loom))]
mod model;
#[cfg(all(test, not(volt_loom)))]
mod tests;
